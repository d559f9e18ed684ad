//! A small JPEG of one encoded picture, for lists of streams and previews of links.

use std::io::{Read as _, Write as _};

use namecast_stream::{Rung, StreamInfo};

use crate::ingest::IngestError;
use crate::ingest::ffmpeg::{Process, pipe_url, words};
use crate::nut::writer;

/// Width of a thumbnail, in pixels: the least of which sites make a large preview of a link.
pub const THUMBNAIL_WIDTH: u32 = 640;
/// Largest thumbnail, in octets. A JPEG of that width has 20 to 60 kB.
const MAX_SIZE: u64 = 1 << 20;
/// Memory of an ffmpeg that decodes a picture of a stranger, in octets.
const MAX_MEMORY: u64 = 1 << 30;
/// Processor time that it may take, in seconds. A picture takes 0.1 s.
const MAX_SECONDS: u32 = 5;

/// Markers of JPEG that begin and end a picture: ITU-T T.81, table B.1.
const JPEG_START: &[u8] = b"\xff\xd8";
const JPEG_END: &[u8] = b"\xff\xd9";

/// Why there is no thumbnail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ThumbnailError {
    /// ffmpeg cannot be started.
    #[error(transparent)]
    Ffmpeg(#[from] IngestError),
    /// ffmpeg made no picture of it.
    #[error("ffmpeg made no thumbnail: {0}")]
    NoPicture(String),
}

/// Returns the key frame `key` of `rung` as a JPEG, [`THUMBNAIL_WIDTH`] pixels wide. Waits for ffmpeg, for some 0.15 s.
///
/// # Errors
/// If there is no ffmpeg, or it cannot decode the picture.
pub fn thumbnail(stream: &StreamInfo, rung: &Rung, key: &[u8]) -> Result<Vec<u8>, ThumbnailError> {
    let mut file = writer::file_header(&[writer::published(stream, rung, key)]);
    writer::put_frame(&mut file, 0, 0, true, key);
    let line = format!(
        "-timelimit {MAX_SECONDS} -threads 1 -f nut -i - -frames:v 1 \
         -vf scale={THUMBNAIL_WIDTH}:-2:out_range=full,format=yuvj420p -threads 1 -q:v 6 -f mjpeg"
    );
    let mut arguments: Vec<_> = words(&line).collect();
    arguments.push(pipe_url(0));
    let (mut process, outputs) = Process::start(&arguments, 1)?;
    process.confine(MAX_MEMORY);
    let mut stdin = process.stdin();
    let mut picture = Vec::new();
    std::thread::scope(|scope| {
        // An ffmpeg that has what it needs, or fails, does not read the rest.
        scope.spawn(move || stdin.write_all(&file));
        for output in outputs {
            // What came until an error is no whole picture, which is checked below.
            let _ = output.take(MAX_SIZE).read_to_end(&mut picture);
        }
    });
    let is_whole = picture.starts_with(JPEG_START) && picture.ends_with(JPEG_END);
    match is_whole {
        true => Ok(picture),
        false => Err(ThumbnailError::NoPicture(process.end())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hls::tests::stream;
    use crate::ingest::ffmpeg::{output, program};
    use namecast_stream::StreamKind;
    use std::process::Command;

    /// A picture of one colour, encoded by `encoder` in the raw form `form`.
    fn encoded(encoder: &str, form: &str) -> Vec<u8> {
        let mut command = Command::new(program());
        let line = format!(
            "-loglevel error -f lavfi -i color=0x2060c0:s=320x240 -frames:v 1 -c:v {encoder} -f {form} -"
        );
        command.args(words(&line));
        let made = output(command).unwrap();
        assert!(made.status.success() && !made.stdout.is_empty());
        made.stdout
    }

    /// Average red, green and blue of a JPEG, and its width and height.
    fn colour(jpeg: &[u8]) -> ([u8; 3], (u16, u16)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("picture.jpg");
        std::fs::write(&path, jpeg).unwrap();
        let mut command = Command::new(program());
        command.args(["-loglevel", "error", "-i"]).arg(&path);
        command.args(words(
            "-vf scale=1:1:flags=area -f rawvideo -pix_fmt rgb24 -",
        ));
        let pixel = output(command).unwrap().stdout;
        // Start of frame: marker, length, precision, then height and width (ITU-T T.81, B.2.2).
        let mut windows = jpeg.windows(2);
        let at = windows.position(|it| it == b"\xff\xc0").unwrap() + 5;
        let number = |at: usize| u16::from_be_bytes([jpeg[at], jpeg[at + 1]]);
        (pixel.try_into().unwrap(), (number(at + 2), number(at)))
    }

    /// 320×240 becomes 640×480, in the colours of the source.
    #[test]
    fn a_key_frame_becomes_a_small_picture() {
        for (codec, encoder, form) in [
            ("h264", "libx264 -pix_fmt yuv420p", "h264"),
            ("av1", "libaom-av1 -cpu-used 8", "obu"),
        ] {
            let mut stream = stream(StreamKind::Video, codec, &[("1M", 1_000)]);
            (stream.rungs[0].width, stream.rungs[0].height) = (Some(320), Some(240));
            let key = encoded(encoder, form);
            let picture = thumbnail(&stream, &stream.rungs[0], &key).unwrap();
            let (colour, size) = colour(&picture);
            assert_eq!(size, (640, 480), "{codec}");
            for (seen, meant) in colour.into_iter().zip([0x20, 0x60, 0xc0]) {
                assert!(seen.abs_diff(meant) <= 4, "{codec}: {colour:?}");
            }
        }
    }

    #[test]
    fn octets_without_a_picture_are_refused() {
        let stream = stream(StreamKind::Video, "h264", &[("1M", 1_000)]);
        let refused = thumbnail(&stream, &stream.rungs[0], &[0; 4_000]);
        assert!(
            matches!(refused, Err(ThumbnailError::NoPicture(_))),
            "{refused:?}"
        );
    }
}
