//! Headers of codecs, of any octets.

use bytes::Bytes;

use crate::annex_b;
use crate::headers::{self, Picture, Sound};
use crate::nut::writer::{h264_parameters, opus_head};
use crate::parameters::Parameters;
use crate::script::Script;

/// Largest side of a picture, most samples a second, and most channels.
const MAX_SIDE: u32 = 16_384;
const MAX_RATE: u32 = 384_000;
const MAX_CHANNELS: u32 = 32;
/// Most pictures that are decoded before one that is shown earlier.
const MAX_REORDERED: u64 = 16;

/// The first octet states the codec. What is read is within bounds.
pub fn codec_headers(octets: &[u8]) {
    let mut script = Script(octets);
    let Some(codec) = script.octet() else {
        return;
    };
    let rest = script.0;
    match codec % 12 {
        0 => picture(headers::h264(rest)),
        1 => picture(headers::hevc(rest)),
        2 => av1(rest),
        3 => picture(headers::vp9(rest)),
        4 => picture(headers::vp8(rest)),
        5 => sound(headers::aac(rest)),
        6 => opus(rest),
        7 => flac(rest),
        8 => sound(headers::ac3(rest)),
        9 => configured(script, Parameters::avc),
        10 => configured(script, Parameters::hevc),
        _ => start_codes(rest),
    }
}

fn picture(picture: Option<Picture>) {
    if let Some(picture) = picture {
        let sides = [picture.width, picture.height];
        assert!(sides.iter().all(|side| (1..=MAX_SIDE).contains(side)));
        assert!(picture.reorder.is_none_or(|depth| depth <= MAX_REORDERED));
        assert!(!picture.found("x").to_string().is_empty());
    }
}

fn sound(sound: Option<Sound>) {
    if let Some(sound) = sound {
        assert!((1..=MAX_RATE).contains(&sound.sample_rate));
        assert!(sound.channels <= MAX_CHANNELS);
    }
}

/// The sequence header is part of what it is found in, and is found again in a frame that it is put before.
fn av1(obus: &[u8]) {
    let header = headers::av1_sequence_header(obus);
    let read = headers::av1(obus);
    if let Some(header) = header {
        assert!(obus.windows(header.len()).any(|it| it == header));
        let frame = Bytes::from_static(b"\x32\x00");
        let whole = headers::av1_whole(&frame, header);
        assert!(whole.ends_with(&frame));
        if whole != frame {
            assert_eq!(headers::av1_sequence_header(&whole), Some(header));
            assert_eq!(headers::av1(&whole), read);
        }
    } else {
        assert_eq!(read, None);
    }
    if let Some((found, record)) = read {
        assert_eq!(record[0], 0x81);
        picture(Some(found));
    }
}

fn opus(head: &[u8]) {
    let read = headers::opus(head);
    if let Some(found) = read {
        let written = opus_head(found.channels, found.sample_rate);
        assert_eq!(headers::opus(&written), read);
    }
    sound(read);
}

fn flac(header: &[u8]) {
    if let Some((info, found)) = headers::flac(header) {
        assert_eq!(info.len(), 34);
        sound(Some(found));
    }
}

/// A record of decoder configuration, and a frame.
fn configured(mut script: Script<'_>, read: fn(&[u8]) -> Option<Parameters>) {
    let length = script.number(2) as usize;
    let Some(parameters) = read(script.take(length)) else {
        return;
    };
    assert!((1..=4).contains(&parameters.length_size));
    if let Some(set) = parameters.sequence() {
        picture(headers::h264(set));
        picture(headers::hevc(set));
    }
    let frame = script.0;
    let (delta, key) = (
        parameters.convert(frame, false),
        parameters.convert(frame, true),
    );
    assert_eq!(delta.is_some(), key.is_some(), "either is malformed");
    if let (Some(delta), Some(key)) = (delta, key) {
        assert!(key.ends_with(&delta));
        assert!(key.len() - delta.len() <= parameters.sets.len());
        assert!(delta.len() <= frame.len() * 4);
    }
    if let Some(whole) = parameters.prepend(frame) {
        assert!(whole.ends_with(frame));
        assert!(parameters.convert(&whole, true).is_some());
    }
}

/// Units of a frame with start codes are parts of it, in order and without overlap.
fn start_codes(frame: &[u8]) {
    let mut total = 0;
    for unit in annex_b::units(frame) {
        assert!(!unit.windows(3).any(|it| it == [0, 0, 1]));
        assert_ne!(unit.last(), Some(&0));
        total += unit.len() + 3;
    }
    assert!(total <= frame.len());
    assert!(h264_parameters(frame).len() <= frame.len());
    picture(annex_b::picture(frame));
    if let Some((width, height)) = annex_b::pixel_aspect(frame) {
        assert!(width <= 0xffff && height <= 0xffff);
    }
}
