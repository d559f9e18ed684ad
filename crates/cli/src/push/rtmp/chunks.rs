//! RTMP's chunks: messages, cut so that a short one need not wait for a long one. Adobe's specification, section 5.3.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes, BytesMut};

use super::session::RtmpError;

/// Octets of a message, and of all that have begun: far above any key frame.
pub(super) const MAX_MESSAGE: usize = 8 << 20;
/// Chunk streams; encoders use five.
const MAX_STREAMS: usize = 16;
/// Chunk size until another one is set.
const FIRST_CHUNK_SIZE: usize = 128;
/// In place of a time that does not fit; it follows in four octets.
const EXTENDED: u32 = 0xff_ffff;

/// A whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// What it is.
    pub(super) kind: u8,
    /// In milliseconds.
    pub(super) time: u32,
    pub(super) payload: Bytes,
}

/// Puts messages together.
#[derive(Debug)]
pub(super) struct ChunkReader {
    input: BytesMut,
    chunk_size: usize,
    streams: BTreeMap<u32, ChunkStream>,
    /// The stream of the chunk that has begun, and how many of its octets have not come.
    open: Option<(u32, usize)>,
    /// Octets of messages that have begun.
    begun: usize,
}

/// The last header of a chunk stream, and its message as far as it has come.
#[derive(Debug, Default)]
struct ChunkStream {
    header: MessageHeader,
    payload: BytesMut,
    /// Set from a message's first chunk to its last.
    has_begun: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct MessageHeader {
    kind: u8,
    len: usize,
    time: u32,
    /// As it was written: a time, or the distance to the one before.
    delta: u32,
    /// Whether it took four octets more.
    is_extended: bool,
}

impl Default for ChunkReader {
    fn default() -> Self {
        Self {
            input: BytesMut::new(),
            chunk_size: FIRST_CHUNK_SIZE,
            streams: BTreeMap::new(),
            open: None,
            begun: 0,
        }
    }
}

impl ChunkReader {
    /// Takes what came.
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.input.extend_from_slice(octets);
    }

    /// Takes the peer's chunk size.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn set_chunk_size(&mut self, size: u32) -> Result<(), RtmpError> {
        match size {
            1..=0x7fff_ffff => {
                self.chunk_size = size as usize;
                Ok(())
            }
            _ => Err(RtmpError::ChunkSize(size)),
        }
    }

    /// Forgets a message that has begun, as its sender gave it up.
    pub(super) fn abort(&mut self, stream: u32) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            self.begun = self.begun.saturating_sub(stream.payload.len());
            stream.payload.clear();
            stream.has_begun = false;
        }
    }

    /// The next message that is whole; `None` if there is none yet.
    ///
    /// # Errors
    /// If what came is no chunk, or breaks a bound. Nothing can be read after that.
    pub(super) fn next(&mut self) -> Result<Option<Message>, RtmpError> {
        loop {
            let (number, left) = match self.open {
                Some(open) => open,
                None => match self.begin()? {
                    Some(open) => open,
                    None => return Ok(None),
                },
            };
            let count = left.min(self.input.len());
            let stream = self.streams.entry(number).or_default();
            stream
                .payload
                .extend_from_slice(&self.input.split_to(count));
            self.begun += count;
            if self.begun > MAX_MESSAGE {
                return Err(RtmpError::TooLong(self.begun));
            }
            if count < left {
                self.open = Some((number, left - count));
                return Ok(None);
            }
            self.open = None;
            let MessageHeader {
                kind, len, time, ..
            } = stream.header;
            if stream.payload.len() == len {
                stream.has_begun = false;
                self.begun = self.begun.saturating_sub(len);
                return Ok(Some(Message {
                    kind,
                    time,
                    payload: core::mem::take(&mut stream.payload).freeze(),
                }));
            }
        }
    }

    /// Reads a chunk's header: its stream, and how many octets follow.
    fn begin(&mut self) -> Result<Option<(u32, usize)>, RtmpError> {
        let mut octets = Octets(&self.input);
        let Some((format, number)) = octets.basic_header() else {
            return Ok(None);
        };
        let known = self.streams.get(&number);
        let has_begun = known.is_some_and(|it| it.has_begun);
        let is_first = known.is_none();
        if has_begun && format != 3
            || is_first && (format != 0 || self.streams.len() == MAX_STREAMS)
        {
            return Err(RtmpError::ChunkStream(number));
        }
        let mut header = known.map(|it| it.header).unwrap_or_default();
        let come = known.map_or(0, |it| it.payload.len());
        if octets
            .message_header(format, !has_begun, &mut header)
            .is_none()
        {
            return Ok(None);
        }
        if header.len > MAX_MESSAGE {
            return Err(RtmpError::TooLong(header.len));
        }
        let rest = octets.0.len();
        self.input.advance(self.input.len().saturating_sub(rest));
        let stream = self.streams.entry(number).or_default();
        stream.header = header;
        stream.has_begun = true;
        Ok(Some((
            number,
            self.chunk_size.min(header.len.saturating_sub(come)),
        )))
    }
}

/// A chunk, as far as it has come.
struct Octets<'a>(&'a [u8]);

impl Octets<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn three(&mut self) -> Option<u32> {
        let [a, b, c] = self.take()?;
        Some(u32::from_be_bytes([0, a, b, c]))
    }

    /// The format, and the number of the chunk stream: section 5.3.1.1.
    fn basic_header(&mut self) -> Option<(u8, u32)> {
        let [first] = self.take()?;
        let number = match first & 0x3f {
            0 => {
                let [low] = self.take()?;
                64 + u32::from(low)
            }
            1 => 64 + u32::from(u16::from_le_bytes(self.take()?)),
            number => number.into(),
        };
        Some((first >> 6, number))
    }

    /// The message's header, which leaves out what is as before: section 5.3.1.2. None if it has not come yet.
    fn message_header(
        &mut self,
        format: u8,
        is_new: bool,
        header: &mut MessageHeader,
    ) -> Option<()> {
        if format < 3 {
            header.delta = self.three()?;
        }
        if format < 2 {
            header.len = self.three()? as usize;
            [header.kind] = self.take()?;
        }
        if format == 0 {
            let _stream_of_messages: [u8; 4] = self.take()?;
        }
        if format < 3 {
            header.is_extended = header.delta == EXTENDED;
            if header.is_extended {
                header.delta = u32::from_be_bytes(self.take()?);
            }
        } else if header.is_extended {
            self.pass_over(header.delta)?;
        }
        if is_new {
            header.time = match format {
                0 => header.delta,
                _ => header.time.wrapping_add(header.delta),
            };
        }
        Some(())
    }

    /// Passes over an extended time that is repeated: the specification wants it in each further chunk, and some encoders leave it out.
    /// None if that cannot be told yet.
    fn pass_over(&mut self, time: u32) -> Option<()> {
        let time = time.to_be_bytes();
        let common = self.0.iter().zip(&time).take_while(|(a, b)| a == b).count();
        match self.0.split_at_checked(common) {
            Some((_, rest)) if common == time.len() => self.0 = rest,
            Some((_, [])) => return None,
            _ => {}
        }
        Some(())
    }
}

/// Appends a message in chunks of `chunk_size`; `stream` is that of messages: 0 for control, 1 for the one that is pushed.
pub(super) fn put(octets: &mut Vec<u8>, kind: u8, stream: u32, payload: &[u8], chunk_size: usize) {
    // Control messages have their own chunk stream, as the specification wants.
    let number = if kind < 7 { 2 } else { 3 };
    let len = u32::try_from(payload.len()).unwrap_or(EXTENDED);
    octets.extend([number, 0, 0, 0]);
    let [_, len @ ..] = len.to_be_bytes();
    octets.extend(len);
    octets.push(kind);
    octets.extend(stream.to_le_bytes());
    for (index, chunk) in payload.chunks(chunk_size).enumerate() {
        if index > 0 {
            octets.push(0xc0 | number);
        }
        octets.extend(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads octets that come one by one, and all at once.
    fn read(chunk_size: u32, octets: &[u8]) -> Result<Vec<Message>, RtmpError> {
        let (mut slow, mut fast) = (ChunkReader::default(), ChunkReader::default());
        slow.set_chunk_size(chunk_size)?;
        fast.set_chunk_size(chunk_size)?;
        fast.push(octets);
        let at_once: Result<Vec<_>, _> = core::iter::from_fn(|| fast.next().transpose()).collect();
        let mut messages = Vec::new();
        for octet in octets {
            slow.push(&[*octet]);
            match slow.next() {
                Ok(message) => messages.extend(message),
                Err(error) => {
                    assert_eq!(at_once, Err(error.clone()));
                    return Err(error);
                }
            }
        }
        assert_eq!(at_once, Ok(messages.clone()));
        Ok(messages)
    }

    fn message(kind: u8, time: u32, payload: &[u8]) -> Message {
        let payload = Bytes::copy_from_slice(payload);
        Message {
            kind,
            time,
            payload,
        }
    }

    /// A header of each format: at 1000 ms; 40 ms later with its own length and kind; 20 ms later; another 20 ms later.
    #[test]
    fn headers_leave_out_what_is_as_before() {
        let octets = [
            &[4, 0, 3, 0xe8, 0, 0, 2, 9, 1, 0, 0, 0, b'a', b'b'][..],
            &[0x44, 0, 0, 40, 0, 0, 1, 8, b'c'],
            &[0x84, 0, 0, 20, b'd'],
            &[0xc4, b'e'],
        ];
        let expected = [
            message(9, 1_000, b"ab"),
            message(8, 1_040, b"c"),
            message(8, 1_060, b"d"),
            message(8, 1_080, b"e"),
        ];
        assert_eq!(read(128, &octets.concat()).unwrap(), expected);
    }

    /// Five octets in chunks of two, with another stream's message between; streams 64 and 320 have longer numbers. The time
    /// 0x01000000 needs four octets, in each chunk.
    #[test]
    fn messages_are_put_together_from_interleaved_chunks() {
        let octets = [
            &[
                0, 0, 255, 255, 255, 0, 0, 5, 9, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2,
            ][..],
            &[1, 0, 1, 0, 0, 9, 0, 0, 1, 8, 1, 0, 0, 0, 7],
            &[0xc0, 0, 1, 0, 0, 0, 3, 4],
            &[0xc0, 0, 1, 0, 0, 0, 5],
        ];
        let expected = [message(8, 9, &[7]), message(9, 1 << 24, &[1, 2, 3, 4, 5])];
        assert_eq!(read(2, &octets.concat()).unwrap(), expected);
    }

    /// After 4 h 39 min 37.215 s, 0xffffff ms, times take four octets more. Some encoders repeat them in each further chunk, some
    /// do not. The second message, of which only the distance of 40 ms is written, takes none.
    #[test]
    fn long_sessions_are_read_whether_their_times_are_repeated_or_not() {
        for time in [0xff_ffff_u32, 0x0100_0000, u32::MAX - 10] {
            for repeated in [&time.to_be_bytes()[..], &[]] {
                let octets = [
                    &[4, 255, 255, 255, 0, 0, 5, 9, 1, 0, 0, 0][..],
                    &time.to_be_bytes(),
                    &[1, 2],
                    &[0xc4],
                    repeated,
                    &[3, 4],
                    &[0xc4],
                    repeated,
                    &[5],
                    &[0x84, 0, 0, 40, 6, 7, 0xc4, 8, 9, 0xc4, 10],
                ];
                let expected = [
                    message(9, time, &[1, 2, 3, 4, 5]),
                    message(9, time.wrapping_add(40), &[6, 7, 8, 9, 10]),
                ];
                assert_eq!(read(2, &octets.concat()).unwrap(), expected);
            }
        }
    }

    /// A payload that begins as the time does, but goes on differently, belongs to the message.
    #[test]
    fn payloads_that_resemble_the_time_stay_whole() {
        let octets = [
            &[4, 255, 255, 255, 0, 0, 6, 9, 1, 0, 0, 0, 1, 0, 0, 0][..],
            &[7, 8, 0xc4, 1, 0, 0xc4, 0, 9],
        ];
        let expected = [message(9, 1 << 24, &[7, 8, 1, 0, 0, 9])];
        assert_eq!(read(2, &octets.concat()).unwrap(), expected);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut octets = Vec::new();
        let long: Vec<u8> = (0..=255).collect();
        put(&mut octets, 20, 1, &long, 100);
        put(&mut octets, 1, 0, &[], 100);
        let expected = [message(20, 0, &long), message(1, 0, &[])];
        assert_eq!(read(100, &octets).unwrap(), expected);
    }

    #[test]
    fn a_message_that_was_given_up_is_forgotten() {
        let mut reader = ChunkReader::default();
        reader.set_chunk_size(1).unwrap();
        reader.push(&[4, 0, 0, 0, 0, 0, 2, 9, 1, 0, 0, 0, 1]);
        assert_eq!(reader.next(), Ok(None));
        reader.abort(4);
        reader.push(&[4, 0, 0, 0, 0, 0, 1, 8, 1, 0, 0, 0, 2]);
        assert_eq!(reader.next(), Ok(Some(message(8, 0, &[2]))));
    }

    /// A first header that refers to one before; one in a message that has begun; a long message; more chunk streams than anybody
    /// uses; many messages that have begun; sizes that are none.
    #[test]
    fn what_breaks_a_bound_is_refused() {
        assert_eq!(read(128, &[0xc3]), Err(RtmpError::ChunkStream(3)));
        let twice = [3, 0, 0, 0, 0, 0, 2, 9, 1, 0, 0, 0, 1, 3];
        assert_eq!(read(1, &twice), Err(RtmpError::ChunkStream(3)));
        let long = [3, 0, 0, 0, 0x80, 0, 1, 9, 1, 0, 0, 0];
        assert_eq!(read(128, &long), Err(RtmpError::TooLong((8 << 20) + 1)));
        let streams = (2..=18).flat_map(|it| [it, 0, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0]);
        let streams: Vec<u8> = streams.collect();
        assert_eq!(read(128, &streams), Err(RtmpError::ChunkStream(18)));

        let mut reader = ChunkReader::default();
        reader.set_chunk_size(5 << 20).unwrap();
        for number in [3, 4] {
            reader.push(&[number, 0, 0, 0, 0x60, 0, 0, 9, 1, 0, 0, 0]);
            reader.push(&vec![0; 5 << 20]);
        }
        assert_eq!(reader.next(), Err(RtmpError::TooLong(10 << 20)));

        for size in [0, 1 << 31, u32::MAX] {
            let set = ChunkReader::default().set_chunk_size(size);
            assert_eq!(set, Err(RtmpError::ChunkSize(size)));
        }
    }
}
