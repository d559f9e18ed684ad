//! Sound that is published as it came: Opus and AAC, with what a decoder has to know of them.

use bytes::Bytes;
use namecast_stream::SampleRate;
use namecast_units::Bitrate;

use super::super::encoded::two_digits;
use super::super::{AudioConfig, CopiedAudio};
use super::MAX_CHANNELS;
use super::demuxer::Packet;
use crate::headers::AAC_RATES;
use crate::nut::{NutClass, NutStream};

const OPUS_RATE: u32 = 48_000;
/// Samples of a usual Opus packet.
const OPUS_PACKET: u32 = 960;

/// A packet of AAC with a header of its own: ADTS, ISO/IEC 14496-3, 1.A.2.
struct Adts<'a> {
    /// The AudioSpecificConfig that the header stands for.
    description: [u8; 2],
    sound: &'a [u8],
}

/// Returns the parts of a packet that begins with a whole header.
fn adts(packet: &[u8]) -> Option<Adts<'_>> {
    let [0xff, second, third, fourth, _, _, blocks, ..] = *packet else {
        return None;
    };
    // Sync word and layer; one block of sound.
    let is_header = second & 0xf6 == 0xf0 && blocks & 3 == 0;
    // Without a checksum 7 octets, with one 9.
    let sound = packet.get(if second & 1 == 1 { 7 } else { 9 }..)?;
    let kind = (third >> 6) + 1;
    let rate = third >> 2 & 0xf;
    let channels = (third & 1) << 2 | fourth >> 6;
    let description = [kind << 3 | rate >> 1, (rate & 1) << 7 | channels << 3];
    is_header.then_some(Adts { description, sound })
}

/// The sound of one packet, without a header of its own.
pub(super) fn bare(packet: &Bytes, copied: &CopiedAudio) -> Bytes {
    match adts(packet) {
        Some(adts) if copied.codec == CopiedAudio::AAC => packet.slice_ref(adts.sound),
        _ => packet.clone(),
    }
}

/// How the sound of `stream` is published as it is, if it can be; `first` are the first packets, any of which may be of others.
pub(super) fn copied(number: usize, stream: &NutStream, first: &[Packet]) -> Option<AudioConfig> {
    let packets = first.iter().filter(|packet| packet.stream == number);
    let packets: Vec<_> = packets.map(|packet| &packet.payload).collect();
    let NutClass::Audio(_, channels @ 1..=MAX_CHANNELS) = stream.class else {
        return None;
    };
    let copied = match &stream.codec[..] {
        b"Opus" => opus(packets.first()),
        _ if is_aac(stream) => aac(stream, packets.first())?,
        _ => return None,
    };
    let octets: usize = packets.iter().map(|packet| packet.len()).sum();
    let per_packet = octets as u64 * 8 / (packets.len() as u64).max(1);
    let per_second = per_packet * u64::from(copied.rate.num) / u64::from(copied.rate.den);
    Some(AudioConfig {
        bitrate: two_digits(per_second).clamp(Bitrate::kbps(6), Bitrate::mbps(1)),
        channels,
        copied: Some(copied),
    })
}

/// Whether the sound is AAC: by its number in WAV, or as MP4 names it.
pub(super) fn is_aac(stream: &NutStream) -> bool {
    stream.codec.starts_with(&[0xff, 0]) || stream.codec.eq_ignore_ascii_case(b"mp4a")
}

/// Codecs that ffmpeg decodes from NUT, by their numbers in WAV: PCM, IEEE float, A-law, µ-law, MP2, MP3, AC-3, DTS, FLAC, Vorbis.
const FROM_NUT: [u16; 10] = [
    0x01, 0x03, 0x06, 0x07, 0x50, 0x55, 0x2000, 0x2001, 0xf1ac, 0x566f,
];

/// Returns whether ffmpeg decodes the sound from NUT, which lacks some of what other codecs need.
pub(super) fn decodes_from_nut(stream: &NutStream) -> bool {
    let is_numbered = match stream.codec[..] {
        [low, high] | [low, high, 0, 0] => FROM_NUT.contains(&u16::from_le_bytes([low, high])),
        // PCM as NUT names it, in either order of octets.
        [b'P', _, b'D', _] | [_, b'D', _, b'P'] => true,
        _ => false,
    };
    is_numbered || is_aac(stream) || &stream.codec[..] == b"Opus"
}

/// AAC that is decoded everywhere: low complexity, or that with one of its two extensions.
fn aac(stream: &NutStream, first: Option<&&Bytes>) -> Option<CopiedAudio> {
    let description = match first.and_then(|packet| adts(packet)) {
        Some(adts) => Bytes::copy_from_slice(&adts.description),
        None => stream.parameters.clone(),
    };
    let [head, second, ..] = description[..] else {
        return None;
    };
    let (kind, rate) = (head >> 3, (head & 7) << 1 | second >> 7);
    // What does not state its channels in one number is left to the encoder.
    let channels = second >> 3 & 0xf;
    let is_plain = matches!(kind, 2 | 5 | 29) && (1..=2).contains(&channels);
    let sample_rate = *AAC_RATES.get(usize::from(rate)).filter(|_| is_plain)?;
    // Whether a packet has 960 samples, which is for radio only.
    let is_short = kind == 2 && second >> 2 & 1 == 1;
    Some(CopiedAudio {
        codec: CopiedAudio::AAC,
        codec_string: format!("mp4a.40.{kind}"),
        sample_rate,
        rate: SampleRate::new(sample_rate, if is_short { 960 } else { 1_024 }),
        description,
    })
}

fn opus(first: Option<&&Bytes>) -> CopiedAudio {
    let samples = first.and_then(|packet| opus_samples(packet));
    CopiedAudio {
        codec: CopiedAudio::OPUS,
        codec_string: "opus".to_owned(),
        sample_rate: OPUS_RATE,
        rate: SampleRate::new(OPUS_RATE, samples.unwrap_or(OPUS_PACKET)),
        description: Bytes::new(),
    }
}

/// Samples in a packet of Opus, at 48 000 a second: RFC 6716, section 3.1.
fn opus_samples(packet: &[u8]) -> Option<u32> {
    let head = *packet.first()?;
    let frame = match head >> 3 {
        mode @ 0..12 if mode & 3 == 3 => 2_880,
        mode @ 0..12 => 480 << (mode & 3),
        mode @ 12..16 => 480 << (mode & 1),
        mode => 120 << (mode & 3),
    };
    let frames = match head & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 0x3f),
    };
    // A packet has up to 120 ms.
    Some(frame * frames).filter(|samples| (120..=5_760).contains(samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(codec: &'static [u8], parameters: &'static [u8], channels: u32) -> NutStream {
        NutStream {
            class: NutClass::Audio(44_100, channels),
            codec: Bytes::from_static(codec),
            parameters: Bytes::from_static(parameters),
            decode_delay: 0,
        }
    }

    fn packet(payload: &'static [u8]) -> Packet {
        Packet {
            stream: 1,
            key: true,
            payload: Bytes::from_static(payload),
            ..Packet::default()
        }
    }

    /// Low complexity at 44 100, two channels: 00010 0100 0010 000 is 0x12 0x10. With ADTS: profile 01, rate 0100, channels 010.
    const CONFIG: &[u8] = &[0x12, 0x10];
    const ADTS: &[u8] = &[0xff, 0xf1, 0x50, 0x80, 0x01, 0x7f, 0xfc, 0x21, 0x10];

    #[test]
    fn aac_is_described_alike_with_and_without_headers() {
        let bare_sound = packet(&[0x21, 0x10]);
        let by_config = copied(1, &stream(b"mp4a", CONFIG, 2), &[bare_sound]).unwrap();
        let by_header = copied(1, &stream(&[0xff, 0, 0, 0], &[], 2), &[packet(ADTS)]).unwrap();
        let sound = by_config.copied.unwrap();
        assert_eq!(by_header.copied.as_ref(), Some(&sound));
        assert_eq!(sound.codec_string, "mp4a.40.2");
        assert_eq!(sound.rate, SampleRate::new(44_100, 1_024));
        assert_eq!(sound.description, CONFIG);
        let stripped = bare(&Bytes::from_static(ADTS), &sound);
        assert_eq!(stripped, &[0x21, 0x10][..]);
        assert_eq!(bare(&stripped, &sound), stripped);
    }

    /// A header that states a checksum has 9 octets: where the packet ends before, it is no header.
    #[test]
    fn a_header_that_is_cut_is_sound() {
        let copied_sound = copied(1, &stream(b"mp4a", CONFIG, 2), &[]).unwrap();
        let sound = copied_sound.copied.unwrap();
        let with_checksum = [0xff, 0xf0, 0, 0, 0, 0, 0, 1, 2, 3];
        for len in 0..9 {
            let cut = Bytes::copy_from_slice(&with_checksum[..len]);
            assert_eq!(bare(&cut, &sound), cut);
        }
        let whole = Bytes::copy_from_slice(&with_checksum);
        assert_eq!(bare(&whole, &sound), &[3][..]);
        let without_checksum = Bytes::from_static(&[0xff, 0xf1, 0, 0, 0, 0, 0]);
        assert_eq!(bare(&without_checksum, &sound), &[][..]);
        let cut = Packet {
            payload: Bytes::copy_from_slice(&with_checksum[..7]),
            ..packet(&[])
        };
        assert_eq!(copied(1, &stream(&[0xff, 0, 0, 0], &[], 2), &[cut]), None);
    }

    /// Mode 31 with one frame: 20 ms. Mode 16 with two: 5 ms. Mode 3 with three: 180 ms, which no packet has.
    #[test]
    fn opus_packets_say_how_long_they_are() {
        assert_eq!(opus_samples(&[31 << 3]), Some(960));
        assert_eq!(opus_samples(&[16 << 3 | 1]), Some(240));
        assert_eq!(opus_samples(&[3 << 3 | 3, 3]), None);
        let sound = copied(1, &stream(b"Opus", &[], 1), &[packet(&[31 << 3])]).unwrap();
        assert_eq!((sound.channels, sound.bitrate), (1, Bitrate::kbps(6)));
        assert_eq!(sound.copied.unwrap().rate, SampleRate::new(48_000, 960));
    }

    #[test]
    fn sound_that_nut_cannot_carry_is_known() {
        for codec in [
            &b"\xff\0\0\0"[..],
            b"Opus",
            b"PSD\x10",
            b"\x10DSP",
            b"\0 \0\0",
        ] {
            assert!(decodes_from_nut(&stream(codec, &[], 2)), "{codec:?}");
        }
        for codec in [&b"alac"[..], b"a\x01\0\0", b"\x11\0\0\0", b"wvpk", b""] {
            assert!(!decodes_from_nut(&stream(codec, &[], 2)), "{codec:?}");
        }
    }

    #[test]
    fn what_players_would_not_take_is_left_to_the_encoder() {
        let none = |stream: &NutStream| assert_eq!(copied(1, stream, &[]), None);
        none(&stream(b"mp4a", CONFIG, 6));
        none(&stream(b"mp4a", &[], 2));
        // Main profile; channels stated elsewhere; a rate that is reserved.
        none(&stream(b"mp4a", &[0x0a, 0x10], 2));
        none(&stream(b"mp4a", &[0x12, 0x00], 2));
        none(&stream(b"mp4a", &[0x16, 0x90], 2));
        none(&stream(b"fLaC", &[], 2));
    }
}
