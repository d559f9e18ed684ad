//! NUT, the container in which ffmpeg hands over encoded frames and takes them: it says size, time and key flag of each
//! at once, for every codec alike, so no frame waits for the next.
//!
//! Of what is read, only what ffmpeg writes is understood; anything else is an error that names what. From the NUT Open
//! Container Format 20130327 (version 3).

mod cursor;
pub(crate) mod writer;

use bytes::{Buf, Bytes, BytesMut};

use cursor::Cursor;

const FILE_ID: &[u8] = b"nut/multimedia container\0";
const MAIN_START: u64 = 0x4E4D_7A56_1F5F_04AD;
const STREAM_START: u64 = 0x4E53_1140_5BF2_F9DB;
const SYNC_START: u64 = 0x4E4B_E4AD_EECA_4569;
const INFO_START: u64 = 0x4E49_AB68_B596_BA78;
const INDEX_START: u64 = 0x4E58_DD67_2F23_E64E;
/// Frames longer than this share no header with others.
const ELISION_MAX: usize = 4_096;
/// Largest header packet and largest frame that are accepted.
const MAX_HEADER: usize = 1 << 16;
pub(crate) const MAX_FRAME: usize = 8 << 20;
/// Most streams and time bases of a file.
pub(crate) const MAX_STREAMS: usize = 16;

const FLAG_KEY: u64 = 1;
const FLAG_CODED_PTS: u64 = 8;
const FLAG_STREAM_ID: u64 = 16;
const FLAG_SIZE_MSB: u64 = 32;
const FLAG_CHECKSUM: u64 = 64;
const FLAG_RESERVED: u64 = 128;
const FLAG_SIDE_DATA: u64 = 256;
const FLAG_HEADER_INDEX: u64 = 1_024;
const FLAG_MATCH_TIME: u64 = 2_048;
const FLAG_CODED: u64 = 4_096;
const FLAG_INVALID: u64 = 8_192;

/// Why the octets are not what ffmpeg writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NutError {
    /// The file does not start as NUT does.
    #[error("not a NUT file")]
    NotNut,
    /// A number, length or count is beyond what is sensible.
    #[error("NUT {0} is out of range")]
    OutOfRange(&'static str),
    /// A frame came before the headers that explain it.
    #[error("NUT frame before its headers")]
    NoHeader,
    /// Something that ffmpeg does not write.
    #[error("NUT {0} is not supported")]
    Unsupported(&'static str),
}

/// What a stream holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NutClass {
    /// Pictures of this width and height, in pixels.
    Video(u32, u32),
    /// Sound: samples a second, and channels.
    Audio(u32, u32),
    /// Subtitles or data.
    Other,
}

/// One stream of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NutStream {
    /// What it holds.
    pub class: NutClass,
    /// The codec's FourCC, or a tag of two octets.
    pub codec: Bytes,
    /// What decoders need before the first frame.
    pub parameters: Bytes,
    /// Frames that a decoder holds back to put them into the order in which they are shown.
    pub decode_delay: u64,
}

impl NutStream {
    /// Channels of sound; 0 of anything else.
    pub(crate) const fn channels(&self) -> u32 {
        match self.class {
            NutClass::Audio(_, channels) => channels,
            NutClass::Video(..) | NutClass::Other => 0,
        }
    }
}

/// One encoded frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NutFrame {
    /// Which stream of the file it is of.
    pub stream: usize,
    /// Presentation time, in seconds: numerator and denominator of the file's time base applied to it.
    pub time: MediaTime,
    /// The frame can be decoded without others.
    pub key: bool,
    /// The encoded frame.
    pub payload: Bytes,
}

/// A time as count of a unit that is `unit_num / unit_den` seconds long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaTime {
    /// How many units.
    pub count: u64,
    /// Length of the unit in seconds: numerator.
    pub unit_num: u64,
    /// Length of the unit in seconds: denominator.
    pub unit_den: u64,
}

impl MediaTime {
    /// The time in ticks of `rate` per second, to the nearest; at most [`MAX_TICKS`](Self::MAX_TICKS).
    pub fn ticks(self, rate: u32) -> u64 {
        let scaled = u128::from(self.count) * u128::from(self.unit_num);
        let unit = u128::from(self.unit_den.max(1));
        let ticks = scaled.checked_mul(rate.into()).map(|it| {
            let (whole, rest) = (it / unit, it % unit);
            whole + u128::from(rest >= unit - unit / 2)
        });
        let ticks = ticks.and_then(|it| u64::try_from(it).ok());
        ticks.unwrap_or(u64::MAX).min(Self::MAX_TICKS)
    }

    /// Largest number of ticks: as in ffmpeg, whose times are signed, so that a duration can be added.
    pub const MAX_TICKS: u64 = i64::MAX as u64;
}

/// What a frame code stands for.
#[derive(Clone, Copy, Debug, Default)]
struct FrameCode {
    flags: u64,
    stream: u64,
    size_mul: u64,
    size_lsb: u64,
    pts_delta: i64,
    reserved: u64,
    header: u64,
}

/// The main header.
#[derive(Debug)]
struct MainHeader {
    streams: usize,
    time_bases: Vec<(u64, u64)>,
    codes: Vec<FrameCode>,
    /// Starts of frames that many have in common and that are therefore left out of them.
    elided: Vec<Bytes>,
}

/// Takes octets as they come, gives frames as soon as their last octet is there.
#[derive(Debug, Default)]
pub struct NutReader {
    buffer: BytesMut,
    identified: bool,
    main: Option<MainHeader>,
    streams: Vec<NutStream>,
    clocks: Vec<StreamClock>,
}

/// How the times of a stream's frames are written.
#[derive(Clone, Copy, Debug)]
struct StreamClock {
    time_base: (u64, u64),
    /// How many lower bits of the time frames carry.
    msb_shift: u32,
    last_pts: u64,
}

impl StreamClock {
    /// Sets the time to that of a sync point, which is in another stream's unit.
    fn restate(&mut self, count: u64, unit: (u64, u64)) {
        let scaled = u128::from(count) * u128::from(unit.0) * u128::from(self.time_base.1);
        let by = (u128::from(unit.1) * u128::from(self.time_base.0)).max(1);
        self.last_pts = u64::try_from(scaled / by).unwrap_or(u64::MAX);
    }
}

impl NutReader {
    /// Appends octets that ffmpeg wrote.
    pub fn push(&mut self, octets: &[u8]) {
        self.buffer.extend_from_slice(octets);
    }

    /// The file's streams, as far as their headers were read.
    pub fn streams(&self) -> &[NutStream] {
        &self.streams
    }

    /// Whether the headers of all streams were read.
    pub fn is_known(&self) -> bool {
        (self.main.as_ref()).is_some_and(|main| main.streams == self.streams.len())
    }

    /// The next whole frame, or `None` until more octets come.
    ///
    /// # Errors
    /// The first thing that is not as ffmpeg writes it; nothing can be read after it.
    pub fn frame(&mut self) -> Result<Option<NutFrame>, NutError> {
        loop {
            match self.step()? {
                Step::Incomplete => return Ok(None),
                Step::Header => {}
                Step::Frame(frame) => return Ok(Some(frame)),
            }
        }
    }

    fn step(&mut self) -> Result<Step, NutError> {
        if !self.identified {
            if self.buffer.len() < FILE_ID.len() {
                return Ok(Step::Incomplete);
            }
            if !self.buffer.starts_with(FILE_ID) {
                return Err(NutError::NotNut);
            }
            self.buffer.advance(FILE_ID.len());
            self.identified = true;
        }
        match self.buffer.first() {
            None => Ok(Step::Incomplete),
            Some(b'N') => self.header_packet(),
            Some(_) => self.data_frame(),
        }
    }

    fn header_packet(&mut self) -> Result<Step, NutError> {
        let mut cursor = Cursor::new(&self.buffer);
        let Some((start, length)) = cursor.packet_start()? else {
            return Ok(Step::Incomplete);
        };
        let from = cursor.at;
        if self.buffer.len() < from + length {
            return Ok(Step::Incomplete);
        }
        let packet = self.buffer.split_to(from + length).freeze().slice(from..);
        let mut fields = Cursor::new(&packet);
        match start {
            MAIN_START => self.main = Some(MainHeader::decode(&mut fields)?),
            STREAM_START => self.stream_header(&mut fields)?,
            SYNC_START => self.sync_point(fields.required("sync point")?)?,
            INFO_START | INDEX_START => {}
            _ => return Err(NutError::Unsupported("start code")),
        }
        Ok(Step::Header)
    }

    fn stream_header(&mut self, fields: &mut Cursor<'_>) -> Result<(), NutError> {
        let main = self.main.as_ref().ok_or(NutError::NoHeader)?;
        let number = fields.required("stream")?;
        // ffmpeg repeats the headers now and then.
        if number < self.streams.len() as u64 {
            return Ok(());
        }
        if number != self.streams.len() as u64 || self.streams.len() >= main.streams {
            return Err(NutError::OutOfRange("stream"));
        }
        let (stream, clock) = decode_stream_header(fields, &main.time_bases)?;
        self.streams.push(stream);
        self.clocks.push(clock);
        Ok(())
    }

    /// A sync point restates the time of all streams: the lower bits alone do not follow from the last frame.
    fn sync_point(&mut self, coded: u64) -> Result<(), NutError> {
        let main = self.main.as_ref().ok_or(NutError::NoHeader)?;
        // There is at least one time base.
        let bases = main.time_bases.len().max(1) as u64;
        let base = usize::try_from(coded % bases).ok();
        let base = base.and_then(|base| main.time_bases.get(base));
        let base = *base.ok_or(NutError::OutOfRange("sync point"))?;
        for clock in &mut self.clocks {
            clock.restate(coded / bases, base);
        }
        Ok(())
    }

    fn data_frame(&mut self) -> Result<Step, NutError> {
        let Some(main) = self
            .main
            .as_ref()
            .filter(|it| it.streams == self.streams.len())
        else {
            return Err(NutError::NoHeader);
        };
        let mut cursor = Cursor::new(&self.buffer);
        let Some(header) = FrameHeader::decode(&mut cursor, main)? else {
            return Ok(Step::Incomplete);
        };
        let elided = main.elided.get(header.elided);
        let elided = elided.ok_or(NutError::OutOfRange("header index"))?;
        let stored = header
            .size
            .checked_sub(elided.len())
            .ok_or(NutError::OutOfRange("frame size"))?;
        let from = cursor.at;
        if self.buffer.len() < from + stored {
            self.buffer.reserve(from + stored - self.buffer.len());
            return Ok(Step::Incomplete);
        }
        let clock = self.clocks.get_mut(header.stream);
        let clock = clock.ok_or(NutError::OutOfRange("stream"))?;
        let shift = clock.msb_shift;
        let pts = match header.pts {
            Pts::Delta(delta) => clock.last_pts.saturating_add_signed(delta),
            Pts::Coded(low) if low < 1 << shift => full_pts(clock.last_pts, low, shift),
            Pts::Coded(whole) => whole - (1 << shift),
        };
        clock.last_pts = pts;
        let elided = elided.clone();
        let (unit_num, unit_den) = clock.time_base;
        let octets = self.buffer.split_to(from + stored);
        let mut payload = BytesMut::with_capacity(header.size);
        payload.extend_from_slice(&elided);
        payload.extend_from_slice(octets.get(from..).unwrap_or_default());
        Ok(Step::Frame(NutFrame {
            stream: header.stream,
            time: MediaTime {
                count: pts,
                unit_num,
                unit_den,
            },
            key: header.key,
            payload: payload.freeze(),
        }))
    }
}

enum Step {
    Incomplete,
    Header,
    Frame(NutFrame),
}

/// The time whose lower `shift` bits are `low` and that is nearest to `last`; of two, the later.
fn full_pts(last: u64, low: u64, shift: u32) -> u64 {
    let mask = (1_u64 << shift) - 1;
    let delta = last.wrapping_sub(mask >> 1);
    (low.wrapping_sub(delta) & mask).wrapping_add(delta)
}

enum Pts {
    /// So much after the last frame's.
    Delta(i64),
    /// Below 2^shift: the lower bits only; else the whole time plus 2^shift.
    Coded(u64),
}

struct FrameHeader {
    stream: usize,
    key: bool,
    pts: Pts,
    /// Size of the frame, elided start included.
    size: usize,
    elided: usize,
}

impl FrameHeader {
    /// `None` if the header is not whole yet.
    fn decode(cursor: &mut Cursor<'_>, main: &MainHeader) -> Result<Option<Self>, NutError> {
        let Some(code) = cursor.octet() else {
            return Ok(None);
        };
        let code = main.codes.get(usize::from(code));
        let code = *code.ok_or(NutError::OutOfRange("frame code"))?;
        let mut flags = code.flags;
        if flags & FLAG_INVALID != 0 {
            return Err(NutError::OutOfRange("frame code"));
        }
        // Reads a field that is there if `flag` is set; an incomplete one ends the attempt.
        macro_rules! field {
            ($flag:expr, $default:expr) => {
                if flags & $flag == 0 {
                    $default
                } else {
                    match cursor.number()? {
                        Some(number) => number,
                        None => return Ok(None),
                    }
                }
            };
        }
        flags ^= field!(FLAG_CODED, 0);
        let stream = field!(FLAG_STREAM_ID, code.stream);
        let stream = usize::try_from(stream).map_err(|_| NutError::OutOfRange("stream"))?;
        let coded_pts = field!(FLAG_CODED_PTS, 0);
        let size_msb = field!(FLAG_SIZE_MSB, 0);
        let _match_time = field!(FLAG_MATCH_TIME, 0);
        let mut elided = field!(FLAG_HEADER_INDEX, code.header);
        let reserved = field!(FLAG_RESERVED, code.reserved);
        for _ in 0..reserved.min(MAX_HEADER as u64) {
            if cursor.number()?.is_none() {
                return Ok(None);
            }
        }
        if flags & FLAG_CHECKSUM != 0 && !cursor.skip(4) {
            return Ok(None);
        }
        if flags & FLAG_SIDE_DATA != 0 {
            return Err(NutError::Unsupported("side data"));
        }
        let size = size_msb
            .checked_mul(code.size_mul)
            .and_then(|size| size.checked_add(code.size_lsb))
            .and_then(|size| usize::try_from(size).ok())
            .filter(|&size| size <= MAX_FRAME)
            .ok_or(NutError::OutOfRange("frame size"))?;
        if size > ELISION_MAX {
            elided = 0;
        }
        let elided = usize::try_from(elided)
            .ok()
            .filter(|&index| index < main.elided.len())
            .ok_or(NutError::OutOfRange("header index"))?;
        let pts = match flags & FLAG_CODED_PTS {
            0 => Pts::Delta(code.pts_delta),
            _ => Pts::Coded(coded_pts),
        };
        Ok(Some(Self {
            stream,
            key: flags & FLAG_KEY != 0,
            pts,
            size,
            elided,
        }))
    }
}

impl MainHeader {
    fn decode(fields: &mut Cursor<'_>) -> Result<Self, NutError> {
        if fields.required("version")? > 3 {
            return Err(NutError::Unsupported("version"));
        }
        let streams = bounded(fields.required("stream count")?, "stream count")?;
        fields.required("max distance")?;
        let count = bounded(fields.required("time base count")?, "time base count")?;
        let mut time_bases = Vec::with_capacity(count);
        for _ in 0..count {
            let base = (fields.required("time base")?, fields.required("time base")?);
            if base.0 == 0 || base.1 == 0 {
                return Err(NutError::OutOfRange("time base"));
            }
            time_bases.push(base);
        }
        let codes = decode_codes(fields)?;
        let mut elided = vec![Bytes::new()];
        // The last four octets of the packet are its checksum.
        if fields.left() > 4 {
            for _ in 0..fields.required("header count")?.min(127) {
                elided.push(Bytes::copy_from_slice(fields.octets("elided header")?));
            }
        }
        Ok(Self {
            streams,
            time_bases,
            codes,
            elided,
        })
    }
}

/// The table of what each of the 256 frame codes stands for, which is run-length coded.
fn decode_codes(fields: &mut Cursor<'_>) -> Result<Vec<FrameCode>, NutError> {
    let mut codes = Vec::with_capacity(256);
    let mut run = FrameCode {
        size_mul: 1,
        ..FrameCode::default()
    };
    while codes.len() < 256 {
        let before = codes.len();
        run.flags = fields.required("flags")?;
        let present = fields.required("field count")?;
        if present > 0 {
            run.pts_delta = fields.signed("pts delta")?;
        }
        if present > 1 {
            run.size_mul = fields.required("size multiplier")?;
        }
        if present > 2 {
            run.stream = fields.required("stream")?;
        }
        run.size_lsb = if present > 3 {
            fields.required("size")?
        } else {
            0
        };
        run.reserved = if present > 4 {
            fields.required("reserved")?
        } else {
            0
        };
        let count = match present {
            0..=5 => run.size_mul.saturating_sub(run.size_lsb),
            _ => fields.required("run length")?,
        };
        if present > 6 {
            fields.signed("match time")?;
        }
        if present > 7 {
            run.header = fields.required("header index")?;
        }
        for _ in 8..present.min(MAX_HEADER as u64) {
            fields.required("reserved")?;
        }
        let mut code = run;
        for _ in 0..count.min(256) {
            // 'N' starts header packets, so it is no frame code.
            if codes.len() == usize::from(b'N') {
                codes.push(FrameCode {
                    flags: FLAG_INVALID,
                    ..FrameCode::default()
                });
            }
            if codes.len() < 256 {
                codes.push(code);
                // A size that is too large is refused where a frame has it.
                code.size_lsb = code.size_lsb.saturating_add(1);
            }
        }
        if codes.len() == before {
            return Err(NutError::OutOfRange("run length"));
        }
    }
    Ok(codes)
}

/// A count of streams or time bases: at least one, and not so many that a mistake would fill the memory.
fn bounded(count: u64, field: &'static str) -> Result<usize, NutError> {
    let count = usize::try_from(count).ok();
    let count = count.filter(|count| (1..=MAX_STREAMS).contains(count));
    count.ok_or(NutError::OutOfRange(field))
}

/// A stream header after its number.
fn decode_stream_header(
    fields: &mut Cursor<'_>,
    time_bases: &[(u64, u64)],
) -> Result<(NutStream, StreamClock), NutError> {
    let class = fields.required("stream class")?;
    let codec = Bytes::copy_from_slice(fields.octets("codec")?);
    let base = usize::try_from(fields.required("time base")?).ok();
    let time_base = base.and_then(|base| time_bases.get(base));
    let time_base = *time_base.ok_or(NutError::OutOfRange("time base"))?;
    let shift = u32::try_from(fields.required("pts bits")?).ok();
    let msb_shift = shift.filter(|shift| (1..=16).contains(shift));
    let msb_shift = msb_shift.ok_or(NutError::OutOfRange("pts bits"))?;
    fields.required("pts distance")?;
    let decode_delay = fields.required("decode delay")?;
    fields.required("stream flags")?;
    let parameters = Bytes::copy_from_slice(fields.octets("codec parameters")?);
    let mut number = |field| {
        let number = u32::try_from(fields.required(field)?);
        number.map_err(|_| NutError::OutOfRange(field))
    };
    let class = match class {
        0 => NutClass::Video(number("width")?, number("height")?),
        1 => {
            let (rate, of) = (number("sample rate")?, number("sample rate")?);
            NutClass::Audio(rate / of.max(1), number("channels")?)
        }
        _ => NutClass::Other,
    };
    let stream = NutStream {
        class,
        codec,
        parameters,
        decode_delay,
    };
    let clock = StreamClock {
        time_base,
        msb_shift,
        last_pts: 0,
    };
    Ok((stream, clock))
}

#[cfg(test)]
mod tests {
    use super::writer::{file_header, put_frame};
    use super::*;
    use namecast_units::Random;
    use std::process::Command;

    /// A header packet; its content is followed by what stands for a checksum, which nobody checks.
    fn packet(start: u64, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len() + 4).unwrap();
        [&start.to_be_bytes()[..], &[length], content, &[0; 4]].concat()
    }

    /// One stream, one time base of a second, and frame codes in one run, the first of size 2^64 − 1.
    #[test]
    fn sizes_beyond_all_bounds_are_refused() {
        let largest = [&[0x81][..], &[0xff; 8], &[0x7f]].concat();
        let head = [3, 1, 0, 1, 1, 1, 0, 6, 0, 1, 0];
        let run = [0, 0x81, 0x7f, 0];
        let main = packet(MAIN_START, &[&head[..], &largest, &run].concat());
        let stream = packet(STREAM_START, &[0, 0, 0, 0, 7, 0, 0, 0, 0, 2, 2, 0, 0, 0]);
        let mut reader = NutReader::default();
        reader.push(&[FILE_ID, &main, &stream].concat());
        assert_eq!(reader.frame(), Ok(None));
        assert!(reader.is_known());
        reader.push(&[1]);
        assert_eq!(reader.frame(), Err(NutError::OutOfRange("frame size")));
    }

    /// A second main header announces one stream where there are two.
    #[test]
    fn streams_are_no_more_than_were_announced() {
        let stream = NutStream {
            class: NutClass::Other,
            codec: Bytes::new(),
            parameters: Bytes::new(),
            decode_delay: 0,
        };
        let two = file_header(&[stream.clone(), stream.clone()]);
        let one = file_header(core::slice::from_ref(&stream));
        let further = packet(STREAM_START, &[2, 3, 0, 0, 7, 0, 0, 0, 0]);
        let mut reader = NutReader::default();
        reader.push(&[&two[..], &one[FILE_ID.len()..], &further].concat());
        assert_eq!(reader.frame(), Err(NutError::OutOfRange("stream")));
        assert_eq!(reader.streams().len(), 2);
    }

    /// The last time that ffmpeg has leaves room for a duration, and is read as it was written.
    #[test]
    fn times_are_as_large_as_those_of_ffmpeg() {
        let far = MediaTime {
            count: u64::MAX,
            unit_num: u64::MAX,
            unit_den: 1,
        };
        assert_eq!(far.ticks(1_000_000), MediaTime::MAX_TICKS);
        let mut octets = Vec::new();
        put_frame(&mut octets, 0, MediaTime::MAX_TICKS, true, b"x");
        assert!(!octets.is_empty());
    }

    /// Twelve frames of a test picture as ffmpeg writes them, and the same frames as ffprobe sees them.
    fn recorded() -> (Vec<u8>, Vec<(u64, bool, usize)>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("recorded.nut");
        let made = Command::new("ffmpeg")
            .args(["-loglevel", "error", "-f", "lavfi", "-i"])
            .arg("testsrc2=size=640x360:rate=30:duration=0.4")
            .args([
                "-c:v",
                "libx264",
                "-preset",
                "ultrafast",
                "-g",
                "5",
                "-bf",
                "0",
            ])
            .args(["-write_index", "0", "-f", "nut"])
            .arg(&path)
            .status();
        assert!(made.unwrap().success());
        let probed = Command::new("ffprobe")
            .args(["-loglevel", "error", "-show_entries"])
            .args(["packet=pts_time,size,flags", "-of", "csv=p=0"])
            .arg(&path)
            .output()
            .unwrap();
        let packets = String::from_utf8(probed.stdout).unwrap();
        let packet = |line: &str| {
            let fields: Vec<_> = line.split(',').collect();
            let seconds: f64 = fields[0].parse().unwrap();
            let size = fields[1].parse().unwrap();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small"
            )]
            let tick = (seconds * 30.0).round() as u64;
            (tick, fields[2].starts_with('K'), size)
        };
        let expected = packets.lines().map(packet).collect();
        (std::fs::read(path).unwrap(), expected)
    }

    fn read_all(reader: &mut NutReader) -> Vec<(u64, bool, usize)> {
        let mut frames = Vec::new();
        while let Some(frame) = reader.frame().unwrap() {
            frames.push((frame.time.ticks(30), frame.key, frame.payload.len()));
        }
        frames
    }

    #[test]
    fn frames_are_those_that_ffprobe_sees() {
        let (octets, expected) = recorded();
        let mut reader = NutReader::default();
        reader.push(&octets);
        let frames = read_all(&mut reader);
        assert_eq!(frames, expected);
        assert_eq!(frames.len(), 12);
        let keys: Vec<_> = frames
            .iter()
            .filter(|frame| frame.1)
            .map(|frame| frame.0)
            .collect();
        assert_eq!(keys, [0, 5, 10]);
    }

    /// However the pipe cuts the octets, a frame comes out with its last octet and not later.
    #[test]
    fn a_frame_comes_out_with_its_last_octet() {
        let (octets, expected) = recorded();
        let mut reader = NutReader::default();
        let mut frames = Vec::new();
        for (at, octet) in octets.iter().enumerate() {
            reader.push(&[*octet]);
            frames.extend(read_all(&mut reader));
            if at + 1 == octets.len() {
                assert_eq!(frames, expected);
            }
        }
        assert!(reader.buffer.is_empty());
    }

    #[test]
    fn damaged_octets_are_refused_without_panic() {
        let (octets, _) = recorded();
        let mut random = Random::from_seed(5);
        for _ in 0..2_000 {
            let mut damaged = octets.clone();
            for _ in 0..=random.below(4) {
                let at = usize::try_from(random.below(600)).unwrap();
                damaged[at] ^= u8::try_from(1 + random.below(255)).unwrap();
            }
            let mut reader = NutReader::default();
            reader.push(&damaged);
            while let Ok(Some(_)) = reader.frame() {}
        }
        let mut reader = NutReader::default();
        reader.push(b"RIFF, or anything else that is long enough");
        assert_eq!(reader.frame(), Err(NutError::NotNut));
    }
}
