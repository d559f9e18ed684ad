//! Frames on a byte stream: elements one behind another, as on TCP and Unix sockets.

use bytes::{Bytes, BytesMut};
use namecast_forward::Keep;
use namecast_packet::lp::{FRAGMENT, LP_PACKET};
use namecast_packet::{Name, tlv};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::link::{BATCH_FRAMES, LinkDrop, LinkReceiver, MAX_FRAME_SIZE};
use crate::log_limit;
use crate::node::{Intake, LinkEnd, SessionEnd};

/// Room for reading: several small frames, or a large one and the start of the next.
const READ_SIZE: usize = 32 * 1024;
/// What is wrong with an element that is longer than any packet.
const TOO_LONG: &str = "an element is too long";
/// Octets after which a batch is written, full or not.
const WRITE_SIZE: usize = 64 * 1024;

/// Carries frames both ways until the connection or the face ends.
pub(crate) async fn run(
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Unpin,
    link: &mut LinkEnd,
) -> SessionEnd {
    let (intake, queue) = link.split();
    let end = tokio::select! {
        end = read(reader, &intake) => end,
        end = write(writer, queue) => end,
    };
    let Err(end) = end;
    if let SessionEnd::Framing(_) | SessionEnd::Oversized(_) = end {
        intake.dropped(LinkDrop::Framing);
    }
    if let SessionEnd::Oversized(_) = end
        && let Some(left_out) = log_limit::admit("oversized")
    {
        tracing::warn!(reason = %end, "closing a connection{left_out}");
    }
    end
}

async fn read(
    mut reader: impl AsyncRead + Unpin,
    intake: &Intake,
) -> Result<core::convert::Infallible, SessionEnd> {
    let mut splitter = FrameSplitter::default();
    loop {
        splitter.buffer.reserve(READ_SIZE);
        if reader.read_buf(&mut splitter.buffer).await? == 0 {
            return Err(SessionEnd::Closed);
        }
        loop {
            let mut frames = Vec::new();
            let split = splitter.split(&mut frames, BATCH_FRAMES);
            let full = frames.len() == BATCH_FRAMES;
            if !frames.is_empty() {
                intake.deliver(frames)?;
            }
            split?;
            if !full {
                break;
            }
        }
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    queue: &mut LinkReceiver,
) -> Result<core::convert::Infallible, SessionEnd> {
    let mut batch = Vec::with_capacity(BATCH_FRAMES);
    let mut octets = Vec::with_capacity(WRITE_SIZE);
    while queue.recv_many(&mut batch, BATCH_FRAMES).await {
        for frame in batch.drain(..) {
            if octets.len() + frame.len() > WRITE_SIZE {
                writer.write_all(&octets).await?;
                octets.clear();
            }
            octets.extend_from_slice(&frame);
        }
        writer.write_all(&octets).await?;
        octets.clear();
    }
    writer.shutdown().await?;
    Err(SessionEnd::Stopped)
}

/// Cuts a stream of octets into elements.
#[derive(Debug, Default)]
struct FrameSplitter {
    buffer: BytesMut,
}

impl FrameSplitter {
    /// Appends at most `limit` whole frames to `frames`: small ones as pieces of the read buffer, large ones in memory of their
    /// own, as [`Keep::LargeFrames`] says.
    ///
    /// # Errors
    /// If what follows cannot be the start of a frame. The frames before it are in `frames`.
    fn split(&mut self, frames: &mut Vec<Bytes>, limit: usize) -> Result<(), SessionEnd> {
        while frames.len() < limit {
            let length = match frame_length(&self.buffer) {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(TOO_LONG) => match oversized(&self.buffer) {
                    None if self.may_be_named() => break,
                    Some(packet) => return Err(SessionEnd::Oversized(packet)),
                    None => return Err(SessionEnd::Framing(TOO_LONG)),
                },
                Err(problem) => return Err(SessionEnd::Framing(problem)),
            };
            if self.buffer.len() < length {
                break;
            }
            let frame = self.buffer.split_to(length);
            frames.push(match length > Keep::SMALL {
                true => Bytes::copy_from_slice(&frame),
                false => frame.freeze(),
            });
        }
        Ok(())
    }
}

impl FrameSplitter {
    /// Whether a packet starts here whose name may still come.
    fn may_be_named(&self) -> bool {
        let packets = [tlv::INTEREST, tlv::DATA, LP_PACKET];
        let first = self.buffer.first().map(|&octet| u32::from(octet));
        first.is_some_and(|first| packets.contains(&first)) && self.buffer.len() < MAX_FRAME_SIZE
    }
}

/// Length of the element at the start of `octets`, whole or not; `None` if its header is not there yet.
///
/// # Errors
/// If no element starts so, or one that is longer than any packet.
pub(super) fn frame_length(octets: &[u8]) -> Result<Option<usize>, &'static str> {
    let Some((element_type, type_size)) = variable_number(octets)? else {
        return Ok(None);
    };
    if element_type == 0 || element_type > u64::from(u32::MAX) {
        return Err("an element type is out of range");
    }
    let Some((length, length_size)) = variable_number(&octets[type_size..])? else {
        return Ok(None);
    };
    let whole = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_add(type_size + length_size))
        .filter(|&whole| whole <= MAX_FRAME_SIZE);
    whole.map(Some).ok_or(TOO_LONG)
}

/// Which packet is at the start of `octets`, as far as it is there: its kind and name. `None`: that has not come yet, or it is
/// none with a name.
fn oversized(octets: &[u8]) -> Option<String> {
    let header = |octets: &[u8]| {
        let (element_type, type_size) = variable_number(octets).ok()??;
        let (length, length_size) = variable_number(&octets[type_size..]).ok()??;
        let length = usize::try_from(length).ok()?;
        Some((
            u32::try_from(element_type).ok()?,
            type_size + length_size,
            length,
        ))
    };
    let (mut element_type, mut start, _) = header(octets)?;
    if element_type == LP_PACKET {
        let mut field = header(&octets[start..])?;
        while field.0 != FRAGMENT {
            start = start.checked_add(field.1)?.checked_add(field.2)?;
            field = header(octets.get(start..)?)?;
        }
        start += field.1;
        let (inner, size, _) = header(&octets[start..])?;
        (element_type, start) = (inner, start + size);
    }
    let kind = match element_type {
        tlv::DATA => "Data",
        tlv::INTEREST => "an Interest",
        _ => return None,
    };
    let (tlv::NAME, size, length) = header(&octets[start..])? else {
        return None;
    };
    let end = start.checked_add(size)?.checked_add(length)?;
    let name = Name::decode(&Bytes::copy_from_slice(octets.get(start..end)?)).ok()?;
    Some(format!("{kind} {name}"))
}

/// A TLV-TYPE or TLV-LENGTH and the octets it takes, or `None` if `octets` ends before it does.
///
/// Unlike [`namecast_packet::tlv::Reader`], which works on whole packets, this tells what is missing from what is wrong.
fn variable_number(octets: &[u8]) -> Result<Option<(u64, usize)>, &'static str> {
    let Some(&first) = octets.first() else {
        return Ok(None);
    };
    let width = match first {
        0..=252 => return Ok(Some((u64::from(first), 1))),
        253 => 2,
        254 => 4,
        255 => 8,
    };
    let Some(number) = octets.get(1..=width).and_then(tlv::read_number) else {
        return Ok(None);
    };
    match 1 + width == tlv::variable_number_size(number) {
        true => Ok(Some((number, 1 + width))),
        false => Err("a number is not in its shortest form"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_units::Random;

    fn split_all(splitter: &mut FrameSplitter) -> Result<Vec<Bytes>, SessionEnd> {
        let mut frames = Vec::new();
        splitter.split(&mut frames, usize::MAX).map(|()| frames)
    }

    fn element(element_type: u32, length: usize) -> Bytes {
        let mut writer = tlv::Writer::default();
        writer.element(element_type, &vec![0xAB; length]);
        writer.finish()
    }

    /// However the octets are cut on their way, the same frames come out.
    #[test]
    fn frames_do_not_depend_on_how_the_stream_is_cut() {
        let mut random = Random::from_seed(4);
        let frames: Vec<_> = [0, 1, 252, 253, 5_000, MAX_FRAME_SIZE - 4]
            .into_iter()
            .flat_map(|length| [element(6, length), element(100, length)])
            .collect();
        let stream = frames.concat();
        for _ in 0..50 {
            let mut splitter = FrameSplitter::default();
            let (mut rest, mut seen) = (&stream[..], Vec::new());
            while !rest.is_empty() {
                let most = rest.len().min(3_000);
                let size = 1 + usize::try_from(random.below(most as u64)).unwrap();
                let (now, later) = rest.split_at(size);
                splitter.buffer.extend_from_slice(now);
                seen.extend(split_all(&mut splitter).unwrap());
                rest = later;
            }
            assert_eq!(seen, frames);
        }
    }

    /// The longest frame is 8800 + 128 octets; type and length take 1 + 3 of them here, so the value has 8924.
    #[test]
    fn a_frame_of_8928_octets_passes_and_one_more_does_not() {
        assert_eq!(frame_length(&element(6, 8_924)), Ok(Some(8_928)));
        assert_eq!(
            frame_length(&element(6, 8_925)),
            Err("an element is too long")
        );
    }

    #[test]
    fn what_starts_no_element_is_told_before_more_octets_come() {
        for octets in [
            &[0, 5][..],
            &[253, 0, 252],
            &[6, 253, 0, 252],
            &[6, 254, 0, 0, 1, 0],
            &[6, 255, 0, 0, 0, 0, 255, 255, 255, 255],
            &[6, 255, 255, 255, 255, 255, 255, 255, 255, 255],
            &[255, 0, 0, 0, 1, 0, 0, 0, 0],
        ] {
            assert!(frame_length(octets).is_err(), "{octets:?}");
        }
        for octets in [&[][..], &[6], &[253, 1], &[6, 253, 1], &[6, 254, 1, 0, 0]] {
            assert_eq!(frame_length(octets), Ok(None), "{octets:?}");
        }
    }

    /// A Data packet of 9000 octets, bare and in a link packet after a field, is named once its name is there.
    #[test]
    fn a_packet_that_is_too_long_is_named() {
        let name: Name = "/a/large".parse().unwrap();
        let mut data = tlv::Writer::default();
        data.nested(tlv::DATA, |data| {
            name.encode(data);
            data.element(21, &[0; 9_000]);
        });
        let data = data.finish();
        let mut wrapped = tlv::Writer::default();
        wrapped.nested(LP_PACKET, |packet| {
            packet.element(98, &[1; 6]);
            packet.element(FRAGMENT, &data);
        });
        for stream in [data.clone(), wrapped.finish()] {
            let mut splitter = FrameSplitter::default();
            let mut ended = None;
            for (at, octet) in stream.iter().enumerate() {
                splitter.buffer.extend_from_slice(&[*octet]);
                if let Err(end) = split_all(&mut splitter) {
                    ended = Some((at, end.to_string()));
                    break;
                }
            }
            let (at, text) = ended.unwrap();
            assert!(at < 40, "{at}");
            assert!(text.starts_with("Data /a/large is longer than"), "{text}");
        }
        // Without a name it ends once more octets came than a packet has; what is no packet ends at once.
        for (element_type, octets) in [(tlv::DATA, MAX_FRAME_SIZE), (77, 4)] {
            let mut splitter = FrameSplitter::default();
            let stream = element(element_type, 9_000);
            splitter.buffer.extend_from_slice(&stream[..octets - 1]);
            assert!(split_all(&mut splitter).unwrap().is_empty());
            splitter
                .buffer
                .extend_from_slice(&stream[octets - 1..octets]);
            let end = split_all(&mut splitter).unwrap_err();
            assert!(matches!(end, SessionEnd::Framing(TOO_LONG)), "{end}");
        }
    }

    #[test]
    fn frames_before_malformed_octets_still_arrive() {
        let mut splitter = FrameSplitter::default();
        splitter.buffer.extend_from_slice(&element(6, 3));
        splitter.buffer.extend_from_slice(&[0, 0]);
        let mut frames = Vec::new();
        assert!(splitter.split(&mut frames, 8).is_err());
        assert_eq!(frames, [element(6, 3)]);
    }

    #[test]
    fn a_batch_has_no_more_frames_than_asked_for() {
        let mut splitter = FrameSplitter::default();
        (0..5).for_each(|_| splitter.buffer.extend_from_slice(&element(6, 3)));
        let mut frames = Vec::new();
        splitter.split(&mut frames, 3).unwrap();
        assert_eq!(frames.len(), 3);
        assert_eq!(split_all(&mut splitter).unwrap().len(), 2);
    }
}
