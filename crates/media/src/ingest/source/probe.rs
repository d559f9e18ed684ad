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
///
/// # Errors
/// If the pictures are encrypted.
pub(in super::super) fn turn_of(file: &Path) -> Result<u32, IngestError> {
    #[derive(Default, Deserialize)]
    struct Probed {
        streams: Vec<Described>,
        #[serde(default)]
        packets: Vec<Described>,
    }
    #[derive(Deserialize)]
    struct Described {
        #[serde(default)]
        side_data_list: Vec<SideData>,
    }
    #[derive(Deserialize)]
    struct SideData {
        rotation: Option<i32>,
        side_data_type: Option<String>,
    }
    let entries = "-select_streams v:0 -read_intervals %+#1 -show_entries stream_side_data=rotation:packet=codec_type:packet_side_data";
    // What ffprobe cannot read, ffmpeg will explain.
    let Probed { streams, packets } = probe(file, entries).unwrap_or_default();
    let mut of_packets = packets.iter().flat_map(|packet| &packet.side_data_list);
    if of_packets.any(|data| data.side_data_type.as_deref() == Some("Encryption info")) {
        return Err(IngestError::Encrypted(file.to_owned()));
    }
    let mut of_streams = streams.iter().flat_map(|stream| &stream.side_data_list);
    let rotation = of_streams.find_map(|data| data.rotation).unwrap_or(0);
    // What is in the file is the turn the other way.
    Ok(u32::try_from((-rotation).rem_euclid(360)).unwrap_or(0) / 90 * 90)
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
