//! Writes NUT: the container in which players and ffmpeg take what was received, with exact times and any codec.
//!
//! Each frame has a sync point before it, so that a player can begin anywhere. From the NUT Open Container Format
//! 20130327 (version 3).

use bytes::Bytes;
use namecast_stream::SampleRate;
use namecast_stream::catalogue::{Rung, StreamInfo, StreamKind};

use super::{
    FILE_ID, FLAG_CHECKSUM, FLAG_CODED, FLAG_CODED_PTS, FLAG_KEY, FLAG_SIZE_MSB, FLAG_STREAM_ID,
    INFO_START, MAIN_START, NutClass, NutStream, STREAM_START, SYNC_START,
};
use crate::annex_b::picture;

const VERSION: u64 = 3;
/// Octets between two sync points at most; there is one before each frame.
const MAX_DISTANCE: u64 = 65_536;
/// Times are in units of one microsecond.
const TIME_BASE: (u64, u64) = (1, 1_000_000);
/// Times are always written whole: this many lower bits could stand alone.
const MSB_PTS_SHIFT: u32 = 7;
const MAX_PTS_DISTANCE: u64 = 1_000_000;
/// The one frame code in use; its flags are written with each frame.
const FRAME_CODE: u8 = 0;
/// No shape of pixels: pictures may state it.
const UNKNOWN: (u32, u32) = (0, 0);
/// The kind of an information field: the signed number −1.
const STRING: u64 = 2;
/// Samples that an Opus decoder gives before the first that counts: RFC 7845, section 5.1.
const OPUS_PRE_SKIP: u16 = 120;

/// A number in groups of seven bits, highest first.
fn put_number(octets: &mut Vec<u8>, number: u64) {
    let groups = (64 - number.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let bits = (number >> (group * 7)) as u8 & 0x7f;
        octets.push(if group > 0 { bits | 0x80 } else { bits });
    }
}

fn put_octets(octets: &mut Vec<u8>, value: &[u8]) {
    put_number(octets, value.len() as u64);
    octets.extend_from_slice(value);
}

/// CRC-32 with polynomial 0x04c11db7, not reflected, from zero.
fn crc32(octets: &[u8]) -> u32 {
    octets.iter().fold(0, |crc, &octet| {
        (0..8).fold(crc ^ u32::from(octet) << 24, |crc, _| {
            crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}

/// Appends a header packet: start code, length, content, checksum.
fn put_packet(octets: &mut Vec<u8>, start: u64, content: &[u8]) {
    octets.extend_from_slice(&start.to_be_bytes());
    put_number(octets, content.len() as u64 + 4);
    octets.extend_from_slice(content);
    octets.extend_from_slice(&crc32(content).to_be_bytes());
}

/// What starts a file with these streams.
pub(crate) fn file_header(streams: &[NutStream]) -> Vec<u8> {
    let mut octets = main_header(streams.len());
    for (index, stream) in streams.iter().enumerate() {
        put_packet(
            &mut octets,
            STREAM_START,
            &stream_header(index, stream, UNKNOWN),
        );
    }
    octets
}

/// Returns the header of a file with one stream of pictures, with the pixel aspect ratio (width over height) and the frame rate:
/// encoders need both, and few codecs state them.
pub(crate) fn picture_header(
    stream: &NutStream,
    pixel_aspect: (u32, u32),
    rate: SampleRate,
) -> Vec<u8> {
    let mut octets = main_header(1);
    put_packet(
        &mut octets,
        STREAM_START,
        &stream_header(0, stream, pixel_aspect),
    );
    put_rate(&mut octets, 0, rate);
    octets
}

/// Appends the frame rate of stream `stream` to the header.
pub(crate) fn put_rate(octets: &mut Vec<u8>, stream: usize, rate: SampleRate) {
    let mut info = Vec::new();
    // Streams are counted from 1; no chapter; one field, which is a string.
    for number in [stream as u64 + 1, 0, 0, 0, 1] {
        put_number(&mut info, number);
    }
    put_octets(&mut info, b"r_frame_rate");
    put_number(&mut info, STRING);
    put_octets(&mut info, format!("{}/{}", rate.num, rate.den).as_bytes());
    put_packet(octets, INFO_START, &info);
}

fn main_header(streams: usize) -> Vec<u8> {
    let mut octets = FILE_ID.to_vec();
    let mut main = Vec::new();
    let (num, den) = TIME_BASE;
    for number in [VERSION, streams as u64, MAX_DISTANCE, 1, num, den] {
        put_number(&mut main, number);
    }
    // All 255 frame codes (N is none) mean the same: no fields preset. Six fields: pts delta, size multiplier, stream,
    // size, reserved, run length.
    for number in [FLAG_CODED, 6, 0, 1, 0, 0, 0, 255] {
        put_number(&mut main, number);
    }
    // No elided headers.
    put_number(&mut main, 0);
    put_packet(&mut octets, MAIN_START, &main);
    octets
}

fn stream_header(index: usize, stream: &NutStream, pixel_aspect: (u32, u32)) -> Vec<u8> {
    let mut header = Vec::new();
    let (class, numbers) = match stream.class {
        NutClass::Video(width, height) => {
            (0, vec![width, height, pixel_aspect.0, pixel_aspect.1, 0])
        }
        NutClass::Audio(sample_rate, channels) => (1, vec![sample_rate, 1, channels]),
        NutClass::Other => (3, vec![]),
    };
    put_number(&mut header, index as u64);
    put_number(&mut header, class);
    put_octets(&mut header, &stream.codec);
    let shift = u64::from(MSB_PTS_SHIFT);
    for number in [0, shift, MAX_PTS_DISTANCE, stream.decode_delay, 0] {
        put_number(&mut header, number);
    }
    put_octets(&mut header, &stream.parameters);
    for number in numbers {
        put_number(&mut header, number.into());
    }
    header
}

/// A published stream as one of a file. `first` is the first key frame of the pictures.
pub(crate) fn published(stream: &StreamInfo, rung: &Rung, first: &[u8]) -> NutStream {
    let codec: &[u8] = match stream.codec.as_str() {
        "vp8" => b"VP80",
        "vp9" => b"VP90",
        "av1" => b"AV01",
        "opus" => b"Opus",
        // By its number in WAV, as ffmpeg writes it.
        "aac" => b"\xff\0\0\0",
        _ => b"H264",
    };
    let (class, parameters) = if stream.kind == StreamKind::Audio {
        let channels = rung.channels.unwrap_or(1);
        let sample_rate = rung.sample_rate.unwrap_or(48_000);
        let parameters = match &rung.description {
            Some(digits) => from_hexadecimal(digits),
            None => opus_head(channels, sample_rate),
        };
        (NutClass::Audio(sample_rate, channels), parameters)
    } else {
        let parameters = match stream.codec.as_str() {
            "h264" => h264_parameters(first).to_vec(),
            _ => Vec::new(),
        };
        let size = NutClass::Video(rung.width.unwrap_or(0), rung.height.unwrap_or(0));
        (size, parameters)
    };
    NutStream {
        class,
        codec: Bytes::copy_from_slice(codec),
        parameters: parameters.into(),
        // At a varying frame rate the delay says little of the number.
        decode_delay: match rung.reorder_delay {
            0 => 0,
            _ => picture(first)
                .and_then(|it| it.reorder)
                .unwrap_or(rung.reorder_depth()),
        },
    }
}

/// Octets of hexadecimal digits; what is no digit, which a catalogue does not have, is left out.
fn from_hexadecimal(digits: &str) -> Vec<u8> {
    let digits = digits.chars().filter_map(|digit| digit.to_digit(16));
    let digits: Vec<_> = digits.collect();
    let pairs = digits.chunks_exact(2);
    let octets = pairs.map(|pair| pair.iter().fold(0, |sum, it| sum << 4 | it) as u8);
    octets.collect()
}

/// The sequence and picture parameter sets that a key frame in Annex B form starts with: some containers want them apart.
pub(crate) fn h264_parameters(key_frame: &[u8]) -> &[u8] {
    const START_CODE: [u8; 3] = [0, 0, 1];
    let is_parameters = |octet: u8| matches!(octet & 0x1f, 7 | 8);
    let windows = key_frame.windows(START_CODE.len() + 1).enumerate();
    let mut units = windows.filter_map(|(at, octets)| match octets.split_last()? {
        (kind, start) if *start == START_CODE => Some((at, *kind)),
        _ => None,
    });
    // An access unit delimiter may come first.
    let Some((start, _)) = units.find(|&(_, kind)| is_parameters(kind)) else {
        return &[];
    };
    let end = units.find(|&(_, kind)| !is_parameters(kind));
    let end = end.map_or(key_frame.len(), |(at, _)| at);
    // Start codes may have a fourth octet, which belongs to what follows.
    match key_frame.get(start..end).unwrap_or_default() {
        [parameters @ .., 0] => parameters,
        parameters => parameters,
    }
}

/// The identification header of RFC 7845, section 5.1.
pub(crate) fn opus_head(channels: u32, sample_rate: u32) -> Vec<u8> {
    let mut head = b"OpusHead\x01".to_vec();
    head.push(u8::try_from(channels).unwrap_or(1));
    head.extend_from_slice(&OPUS_PRE_SKIP.to_le_bytes());
    head.extend_from_slice(&sample_rate.to_le_bytes());
    head.extend_from_slice(&[0; 3]);
    head
}

/// Appends one frame of stream `stream` that is shown `micros` after the file's beginning. Frames come in decoding order.
pub(crate) fn put_frame(
    octets: &mut Vec<u8>,
    stream: usize,
    micros: u64,
    key: bool,
    payload: &[u8],
) {
    let mut sync = Vec::new();
    put_number(&mut sync, micros);
    put_number(&mut sync, 0);
    put_packet(octets, SYNC_START, &sync);
    let flags = FLAG_CODED_PTS | FLAG_STREAM_ID | FLAG_SIZE_MSB | FLAG_CHECKSUM;
    let flags = flags | if key { FLAG_KEY } else { 0 };
    let mut header = vec![FRAME_CODE];
    put_number(&mut header, flags);
    put_number(&mut header, stream as u64);
    put_number(&mut header, micros.saturating_add(1 << MSB_PTS_SHIFT));
    put_number(&mut header, payload.len() as u64);
    octets.extend_from_slice(&header);
    octets.extend_from_slice(&crc32(&header).to_be_bytes());
    octets.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::super::NutReader;
    use super::*;
    use namecast_stream::{Reading, SampleRate};
    use namecast_units::Bitrate;

    fn video() -> StreamInfo {
        StreamInfo {
            name: "video".to_owned(),
            kind: StreamKind::Video,
            codec: "h264".to_owned(),
            rungs: vec![Rung {
                name: "1M".to_owned(),
                bitrate: Bitrate::mbps(1),
                width: Some(640),
                height: Some(360),
                rate: SampleRate::new(30, 1),
                key_interval: 30,
                reorder_delay: 0,
                codec_string: "avc1.42C01E".to_owned(),
                sample_rate: None,
                channels: None,
                inter_frame: None,
                description: None,
            }],
            segment_size: 1_000,
            parity_percent: 20,
            reading: Reading::default(),
        }
    }

    /// CRC-32/MPEG-2 differs only in its start value; from zero, "123456789" gives 0x89a1897f.
    #[test]
    fn checksum_is_that_of_the_format() {
        assert_eq!(crc32(b"123456789"), 0x89a1_897f);
    }

    /// Delimiter, sequence parameters, picture parameters, picture.
    #[test]
    fn parameters_are_taken_from_the_start_of_a_key_frame() {
        let frame =
            b"\0\0\0\x01\x09\x10\0\0\0\x01\x67\x42\xc0\0\0\0\x01\x68\xce\0\0\0\x01\x65\x88\x84";
        assert_eq!(
            h264_parameters(frame),
            b"\0\0\x01\x67\x42\xc0\0\0\0\x01\x68\xce"
        );
        assert_eq!(h264_parameters(b"\0\0\x01\x65\x88"), b"");
        assert_eq!(h264_parameters(b""), b"");
    }

    #[test]
    fn numbers_take_as_few_octets_as_they_need() {
        let written = |number| {
            let mut octets = Vec::new();
            put_number(&mut octets, number);
            octets
        };
        assert_eq!(written(0), [0]);
        assert_eq!(written(127), [127]);
        assert_eq!(written(128), [0x81, 0]);
        assert_eq!(written(u64::MAX).len(), 10);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let stream = video();
        let mut file = file_header(&[published(&stream, &stream.rungs[0], &[])]);
        let frames = [
            (1_000_000, true, vec![7; 70_000]),
            (1_033_333, false, vec![9; 10]),
        ];
        for (micros, key, payload) in &frames {
            put_frame(&mut file, 0, *micros, *key, payload);
        }
        let mut reader = NutReader::default();
        reader.push(&file);
        for (micros, key, payload) in &frames {
            let frame = reader.frame().unwrap().unwrap();
            assert_eq!((frame.time.ticks(1_000_000), frame.key), (*micros, *key));
            assert_eq!(frame.payload, *payload);
        }
        assert_eq!(reader.frame(), Ok(None));
    }
}
