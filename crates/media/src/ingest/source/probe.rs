//! What files say of themselves.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::IngestError;
use super::super::ffmpeg::{local, output, probe_program, words};

/// Whether a file has sound.
///
/// # Errors
/// If ffprobe is missing or cannot read the file.
pub(in super::super) fn has_sound(file: &Path) -> Result<bool, IngestError> {
    #[derive(Deserialize)]
    struct Probed {
        streams: Vec<ProbedStream>,
    }
    #[derive(Deserialize)]
    struct ProbedStream {
        codec_type: Option<String>,
    }
    let probed: Probed = probe(local(file), "-show_entries stream=codec_type")?;
    let mut kinds = probed.streams.iter().map(|it| it.codec_type.as_deref());
    Ok(kinds.any(|kind| kind == Some("audio")))
}

/// Returns the first two rows of the matrix by which the pictures of a file are turned before they are shown; `None` if ffprobe is
/// missing, or knows none.
pub(in super::super) fn display_matrix(file: &Path) -> Option<[i64; 6]> {
    #[derive(Deserialize)]
    struct Probed {
        streams: Vec<Described>,
    }
    #[derive(Deserialize)]
    struct Described {
        #[serde(default)]
        side_data_list: Vec<SideData>,
    }
    #[derive(Deserialize)]
    struct SideData {
        displaymatrix: Option<String>,
    }
    let entries = "-select_streams v:0 -show_entries stream_side_data=displaymatrix";
    let probed: Probed = probe(local(file), entries).ok()?;
    let mut side_data = probed.streams.iter().flat_map(|it| &it.side_data_list);
    rows(side_data.find_map(|it| it.displaymatrix.as_deref())?)
}

/// Reads lines such as `00000000:       -65536           0           0`.
fn rows(text: &str) -> Option<[i64; 6]> {
    let rows = text.lines().filter_map(|line| line.split_once(':'));
    let numbers = rows.flat_map(|(_, row)| row.split_whitespace());
    let numbers: Vec<i64> = numbers.map_while(|it| it.parse().ok()).take(6).collect();
    numbers.try_into().ok()
}

/// What ffprobe says when it is asked for `entries`.
pub(in super::super) fn probe<T: DeserializeOwned>(
    file: impl AsRef<OsStr>,
    entries: &str,
) -> Result<T, IngestError> {
    let mut command = Command::new(probe_program());
    command
        .args(words(&format!("-loglevel error {entries} -of json -i")))
        .arg(file.as_ref());
    let output = output(command).map_err(IngestError::NoFfmpeg)?;
    serde_json::from_slice(&output.stdout).map_err(|_| IngestError::Unreadable {
        input: file.as_ref().to_string_lossy().into_owned(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_read_as_ffprobe_prints_it() {
        let text = "\n00000000:       -65536           0           0\n00000001:            0       65536           0\n\
                    00000002:            0           0  1073741824\n";
        assert_eq!(rows(text), Some([-65_536, 0, 0, 0, 65_536, 0]));
        assert_eq!(rows("00000000: 1 2 x"), None);
    }
}
