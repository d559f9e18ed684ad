//! NUT files of any octets.

use crate::nut::writer::{file_header, put_frame};
use crate::nut::{MAX_FRAME, MAX_STREAMS, NutError, NutFrame, NutReader, NutStream};

/// Octets read at once where a file arrives in parts.
const PART: usize = 13;

type File = (Vec<NutStream>, Vec<NutFrame>, Option<NutError>);

/// A file reads alike whole and in parts, its frames and streams are bounded, and what was read is read again once written.
pub fn nut(octets: &[u8]) {
    let whole = read([octets]);
    assert_eq!(whole, read(octets.chunks(PART)));
    let (streams, frames, _) = whole;
    assert!(streams.len() <= MAX_STREAMS);
    for frame in &frames {
        assert!(frame.payload.len() <= MAX_FRAME);
        assert!(frame.stream < streams.len());
    }
    if streams.is_empty() {
        return;
    }
    let mut written = file_header(&streams);
    for frame in &frames {
        let micros = frame.time.ticks(1_000_000);
        put_frame(
            &mut written,
            frame.stream,
            micros,
            frame.key,
            &frame.payload,
        );
    }
    let (again_streams, again, error) = read([&written[..]]);
    assert_eq!((&again_streams, error), (&streams, None));
    assert_eq!(again.len(), frames.len());
    for (again, frame) in again.iter().zip(&frames) {
        assert_eq!(
            (again.stream, again.key, &again.payload),
            (frame.stream, frame.key, &frame.payload)
        );
        assert_eq!(again.time.ticks(1_000_000), frame.time.ticks(1_000_000));
    }
}

/// Reads a file whose octets arrive in these parts, up to its first error.
fn read<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> File {
    let mut reader = NutReader::default();
    let mut frames = Vec::new();
    for part in parts {
        reader.push(part);
        loop {
            match reader.frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (reader.streams().to_vec(), frames, Some(error)),
            }
        }
    }
    (reader.streams().to_vec(), frames, None)
}
