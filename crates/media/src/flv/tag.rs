//! The bodies of FLV's audio and video tags, with those of Enhanced RTMP: <https://veovera.org/docs/enhanced/enhanced-rtmp-v2>.

use bytes::Bytes;

/// Codecs that a tag names, and what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// By its number in FLV's first specification.
    Numbered(u8),
    /// By four characters.
    FourCc([u8; 4]),
}

/// H.264 and AAC by their numbers, and the number that some encoders give HEVC.
pub(super) const AVC: Codec = Codec::Numbered(7);
pub(super) const AAC: Codec = Codec::Numbered(10);
pub(super) const NUMBERED_HEVC: Codec = Codec::Numbered(12);

const FLV_TAG_HEADER: usize = 11;

/// Content of a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) codec: Codec,
    pub(super) body: Body,
    /// Whether there may be tracks beside the first, which are left out.
    pub(super) has_tracks: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Decoder configuration.
    Config(Bytes),
    Frame {
        key: bool,
        /// Milliseconds from decoding to presentation.
        offset: i32,
        data: Bytes,
    },
    /// The end of a sequence, metadata, a command: nothing to decode.
    Nothing,
}

/// Packet types of video (table "VideoPacketType") and of audio ("AudioPacketType"), which agree in these.
const SEQUENCE_START: u8 = 0;
const CODED_FRAMES: u8 = 1;
const CODED_FRAMES_X: u8 = 3;
const MOD_EX: u8 = 7;
const VIDEO_METADATA: u8 = 4;
const VIDEO_MULTITRACK: u8 = 6;
const AUDIO_MULTITRACK: u8 = 5;
/// Frame types: section "ExVideoTagHeader".
const KEY: u8 = 1;
const COMMAND: u8 = 5;
/// Sound format of enhanced tags.
const ENHANCED_SOUND: u8 = 9;
const MANY_TRACKS: u8 = 1;
const MANY_CODECS: u8 = 2;

/// Largest decoder configuration that is accepted, in octets: real ones have less than a thousand, and each key frame may get a copy.
pub(super) const MAX_CONFIG: usize = 1 << 14;

/// Octets of a tag, taken one after another.
struct Octets(Bytes);

impl Octets {
    fn take(&mut self, count: usize) -> Option<Bytes> {
        (count <= self.0.len()).then(|| self.0.split_to(count))
    }

    fn number(&mut self, count: usize) -> Option<u32> {
        let octets = self.take(count)?;
        Some(octets.iter().fold(0, |sum, it| sum << 8 | u32::from(*it)))
    }

    fn octet(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    /// A signed number of three octets.
    fn offset(&mut self) -> Option<i32> {
        self.number(3).map(|it| (it << 8).cast_signed() >> 8)
    }

    fn four_cc(&mut self) -> Option<[u8; 4]> {
        self.take(4)?[..].try_into().ok()
    }

    /// Passes over what modifies a packet, up to its type.
    fn modifiers(&mut self, mut packet: u8) -> Option<u8> {
        while packet == MOD_EX {
            let mut size = self.number(1)? + 1;
            if size == 256 {
                size = self.number(2)? + 1;
            }
            self.take(size as usize)?;
            packet = self.octet()? & 0x0f;
        }
        Some(packet)
    }

    /// The codec and the rest of the first track, as a multitrack packet has it; `None` if it has no such track.
    fn first_track(&mut self, kind: u8) -> Option<[u8; 4]> {
        let mut codec = match kind {
            MANY_CODECS => [0; 4],
            _ => self.four_cc()?,
        };
        loop {
            if kind == MANY_CODECS {
                codec = self.four_cc()?;
            }
            let track = self.octet()?;
            if kind == MANY_TRACKS || kind == MANY_CODECS {
                let size = self.number(3)? as usize;
                let data = self.take(size)?;
                if track == 0 {
                    self.0 = data;
                    return Some(codec);
                }
            } else {
                return (track == 0).then_some(codec);
            }
        }
    }
}

/// Reads a video tag; `None` if it is cut off or its configuration is too large.
pub(super) fn video(payload: &Bytes) -> Option<Tag> {
    let mut octets = Octets(payload.clone());
    let first = octets.octet()?;
    let key = first >> 4 & 7 == KEY;
    let is_command = first >> 4 & 7 == COMMAND;
    if first & 0x80 != 0 {
        return enhanced_video(octets, first & 0x0f, key, is_command);
    }
    let codec = Codec::Numbered(first & 0x0f);
    let body = match codec {
        _ if is_command => Body::Nothing,
        AVC | NUMBERED_HEVC => {
            let packet = octets.octet()?;
            let offset = octets.offset()?;
            match packet {
                SEQUENCE_START => config(octets.0)?,
                CODED_FRAMES => frame(key, offset, octets.0),
                _ => Body::Nothing,
            }
        }
        _ => frame(key, 0, octets.0),
    };
    Some(Tag {
        codec,
        body,
        has_tracks: false,
    })
}

fn enhanced_video(mut octets: Octets, packet: u8, key: bool, is_command: bool) -> Option<Tag> {
    let mut packet = octets.modifiers(packet)?;
    let has_tracks = packet == VIDEO_MULTITRACK;
    let nothing = |codec| Tag {
        codec: Codec::FourCc(codec),
        body: Body::Nothing,
        has_tracks,
    };
    if is_command && packet != VIDEO_METADATA {
        return Some(nothing([0; 4]));
    }
    let codec = if has_tracks {
        let kinds = octets.octet()?;
        packet = kinds & 0x0f;
        match octets.first_track(kinds >> 4) {
            Some(codec) => codec,
            None => return Some(nothing([0; 4])),
        }
    } else {
        octets.four_cc()?
    };
    let has_offset = matches!(&codec, b"avc1" | b"hvc1" | b"vvc1");
    let body = match packet {
        SEQUENCE_START => config(octets.0)?,
        CODED_FRAMES if has_offset => {
            let offset = octets.offset()?;
            frame(key, offset, octets.0)
        }
        CODED_FRAMES | CODED_FRAMES_X => frame(key, 0, octets.0),
        _ => Body::Nothing,
    };
    Some(Tag {
        codec: Codec::FourCc(codec),
        body,
        has_tracks,
    })
}

/// Reads an audio tag; `None` if it is cut off or its configuration is too large.
pub(super) fn audio(payload: &Bytes) -> Option<Tag> {
    let mut octets = Octets(payload.clone());
    let first = octets.octet()?;
    let format = first >> 4;
    if format == ENHANCED_SOUND {
        return enhanced_audio(octets, first & 0x0f);
    }
    let codec = Codec::Numbered(format);
    let body = match codec {
        AAC => match octets.octet()? {
            SEQUENCE_START => config(octets.0)?,
            _ => frame(true, 0, octets.0),
        },
        _ => frame(true, 0, octets.0),
    };
    Some(Tag {
        codec,
        body,
        has_tracks: false,
    })
}

fn enhanced_audio(mut octets: Octets, packet: u8) -> Option<Tag> {
    let mut packet = octets.modifiers(packet)?;
    let has_tracks = packet == AUDIO_MULTITRACK;
    let mut codec = [0; 4];
    let mut body = Body::Nothing;
    let first = if has_tracks {
        let kinds = octets.octet()?;
        packet = kinds & 0x0f;
        octets.first_track(kinds >> 4)
    } else {
        Some(octets.four_cc()?)
    };
    if let Some(first) = first {
        codec = first;
        body = match packet {
            SEQUENCE_START => config(octets.0)?,
            CODED_FRAMES => frame(true, 0, octets.0),
            _ => Body::Nothing,
        };
    }
    Some(Tag {
        codec: Codec::FourCc(codec),
        body,
        has_tracks,
    })
}

/// `None` if the configuration is too large.
fn config(config: Bytes) -> Option<Body> {
    (config.len() <= MAX_CONFIG).then_some(Body::Config(config))
}

fn frame(key: bool, offset: i32, data: Bytes) -> Body {
    match data.is_empty() {
        true => Body::Nothing,
        false => Body::Frame { key, offset, data },
    }
}

/// Appends a tag of FLV: header, payload, and the length of both.
pub(super) fn put_tag(octets: &mut Vec<u8>, kind: u8, time: i64, payload: &[u8]) {
    // Messages are shorter than 2^24, and FLV's times wrap as RTMP's do.
    let len = payload.len() as u32;
    let [highest, time @ ..] = (time as u32).to_be_bytes();
    octets.reserve(payload.len() + FLV_TAG_HEADER + 4);
    octets.push(kind);
    let [_, size @ ..] = len.to_be_bytes();
    octets.extend(size);
    octets.extend(time);
    octets.push(highest);
    octets.extend([0, 0, 0]);
    octets.extend_from_slice(payload);
    octets.extend((len + FLV_TAG_HEADER as u32).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(octets: &[u8]) -> Option<Tag> {
        video(&Bytes::copy_from_slice(octets))
    }

    fn expect(codec: Codec, body: Body) -> Option<Tag> {
        let has_tracks = false;
        Some(Tag {
            codec,
            body,
            has_tracks,
        })
    }

    fn picture(key: bool, offset: i32, data: &'static [u8]) -> Body {
        frame(key, offset, Bytes::from_static(data))
    }

    /// H.264 by its number, shown 80 ms later; HEVC by its name, once with an offset of −1 ms, once without; AV1, which has none.
    #[test]
    fn tags_name_their_codec_either_way() {
        assert_eq!(
            parse(&[0x17, 1, 0, 0, 80, 7]),
            expect(AVC, picture(true, 80, &[7]))
        );
        let hevc = Codec::FourCc(*b"hvc1");
        let config = Body::Config(Bytes::from_static(&[1, 2]));
        assert_eq!(parse(b"\x90hvc1\x01\x02"), expect(hevc, config));
        assert_eq!(
            parse(b"\xa1hvc1\xff\xff\xff\x07"),
            expect(hevc, picture(false, -1, &[7]))
        );
        assert_eq!(parse(b"\x93hvc1\x07"), expect(hevc, picture(true, 0, &[7])));
        let av1 = Codec::FourCc(*b"av01");
        assert_eq!(
            parse(b"\x91av01\x07\x08"),
            expect(av1, picture(true, 0, &[7, 8]))
        );
        assert_eq!(parse(b"\x92av01"), expect(av1, Body::Nothing));
        assert_eq!(parse(b"\x94av01\x02"), expect(av1, Body::Nothing));
        assert_eq!(parse(&[0x57, 0]), expect(AVC, Body::Nothing));
    }

    /// A modifier of two octets, and one of 258, before the packet's type.
    #[test]
    fn modifiers_are_passed_over() {
        let av1 = Codec::FourCc(*b"av01");
        let whole = expect(av1, picture(true, 0, &[7]));
        assert_eq!(parse(b"\x97\x01ab\x01av01\x07"), whole);
        let long = [&b"\x97\xff\x01\x01"[..], &[0; 258], b"\x01av01\x07"].concat();
        assert_eq!(parse(&long), whole);
        assert_eq!(parse(b"\x97\xff\x01\x01\x00"), None);
    }

    /// One track, two of one codec, two of two, and one that is not the first.
    #[test]
    fn the_first_of_several_tracks_is_taken() {
        let body = |octets: &[u8]| parse(octets).map(|it| (it.codec, it.body, it.has_tracks));
        let first = Some((Codec::FourCc(*b"av01"), picture(true, 0, &[7]), true));
        assert_eq!(body(b"\x96\x01av01\x00\x07"), first);
        assert_eq!(
            body(b"\x96\x11av01\x01\x00\x00\x02xx\x00\x00\x00\x01\x07"),
            first
        );
        assert_eq!(
            body(b"\x96\x21vp09\x01\x00\x00\x00av01\x00\x00\x00\x01\x07"),
            first
        );
        let (_, none, has_tracks) = body(b"\x96\x01av01\x01\x07").unwrap();
        assert_eq!((none, has_tracks), (Body::Nothing, true));
    }

    #[test]
    fn sound_names_its_codec_either_way() {
        let parse = |octets: &[u8]| audio(&Bytes::copy_from_slice(octets));
        let config = |data: &'static [u8]| Body::Config(Bytes::from_static(data));
        assert_eq!(
            parse(&[0xaf, 0, 0x11, 0x90]),
            expect(AAC, config(&[0x11, 0x90]))
        );
        assert_eq!(parse(&[0xaf, 1, 7]), expect(AAC, picture(true, 0, &[7])));
        let opus = Codec::FourCc(*b"Opus");
        assert_eq!(
            parse(b"\x90OpusOpusHead"),
            expect(opus, config(b"OpusHead"))
        );
        assert_eq!(parse(b"\x91Opus\x07"), expect(opus, picture(true, 0, &[7])));
        assert_eq!(parse(b"\x92Opus"), expect(opus, Body::Nothing));
        let mp3 = Codec::Numbered(2);
        assert_eq!(parse(&[0x2f, 7]), expect(mp3, picture(true, 0, &[7])));
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(b"\x90Opu"), None);
    }

    #[test]
    fn tags_are_as_flv_has_them() {
        let mut tag = Vec::new();
        put_tag(&mut tag, 9, 0x0102_0304, &[7, 8]);
        let expected = [9, 0, 0, 2, 2, 3, 4, 1, 0, 0, 0, 7, 8, 0, 0, 0, 13];
        assert_eq!(tag, expected);
    }
}
