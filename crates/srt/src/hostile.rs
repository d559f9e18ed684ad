//! Body of the fuzz target of frames (see `fuzz/`).

#[cfg(test)]
#[path = "../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use crate::frames::{Frames, MAX_OCTETS, Message, Order, Report};

/// Octets that arrive at once where frames arrive in parts.
const PART: usize = 7;

/// The first octet states the direction. Frames read alike whole and in parts, and each says the same once written.
pub fn srt_frames(octets: &[u8]) {
    match octets.split_first() {
        None => {}
        Some((what, rest)) if what % 2 == 0 => frames(rest, Frames::report, Report::frame),
        Some((_, rest)) => frames(rest, Frames::order, Order::frame),
    }
}

fn frames<T: Message + PartialEq + core::fmt::Debug, E: core::fmt::Display>(
    octets: &[u8],
    next: fn(&mut Frames) -> Result<Option<T>, E>,
    frame: fn(&T) -> Vec<u8>,
) {
    let whole = read([octets], next);
    assert_eq!(whole, read(octets.chunks(PART), next));
    let (messages, _) = whole;
    let written: Vec<u8> = messages.iter().flat_map(frame).collect();
    assert_eq!(read([&written[..]], next), (messages, None));
}

fn read<'a, T, E: core::fmt::Display>(
    parts: impl IntoIterator<Item = &'a [u8]>,
    next: fn(&mut Frames) -> Result<Option<T>, E>,
) -> (Vec<T>, Option<String>) {
    let (mut frames, mut messages) = (Frames::default(), Vec::new());
    for part in parts {
        frames.received.extend_from_slice(part);
        loop {
            match next(&mut frames) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error.to_string())),
            }
        }
        assert!(frames.received.len() <= 8_192 + MAX_OCTETS);
    }
    (messages, None)
}

#[cfg(test)]
mod tests {
    use super::damaged_seeds::{any, harm_nothing};

    #[test]
    fn damaged_frames_harm_nothing() {
        harm_nothing("srt_frames", 2, 300, any, super::srt_frames);
    }
}
