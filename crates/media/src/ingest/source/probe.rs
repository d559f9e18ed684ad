//! What files say of themselves.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::super::IngestError;
use super::super::ffmpeg::{output, probe_program, words};

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
    let probed: Probed = probe(file, "-show_entries stream=codec_type")?;
    let mut kinds = probed.streams.iter().map(|it| it.codec_type.as_deref());
    Ok(kinds.any(|kind| kind == Some("audio")))
}

/// By how many degrees the pictures of a file have to be turned clockwise before they are shown: 0, 90, 180 or 270.
pub(in super::super) fn turn_of(file: &Path) -> u32 {
    #[derive(Deserialize)]
    struct Probed {
        streams: Vec<ProbedStream>,
    }
    #[derive(Deserialize)]
    struct ProbedStream {
        #[serde(default)]
        side_data_list: Vec<SideData>,
    }
    #[derive(Deserialize)]
    struct SideData {
        rotation: Option<i32>,
    }
    let entries = "-select_streams v:0 -show_entries stream_side_data=rotation";
    let probed: Option<Probed> = probe(file, entries).ok();
    let streams = probed.into_iter().flat_map(|probed| probed.streams);
    let mut data = streams.flat_map(|stream| stream.side_data_list);
    let rotation = data.find_map(|data| data.rotation).unwrap_or(0);
    // What is in the file is the turn the other way.
    u32::try_from((-rotation).rem_euclid(360)).unwrap_or(0) / 90 * 90
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
