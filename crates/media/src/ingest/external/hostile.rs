//! Bodies of fuzz targets: captions of an input, and its packets on their way to what is published. See `fuzz/`.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use namecast_units::Timestamp;

use super::super::Wish;
use super::super::description::Description;
use super::captions::hostile as captions_hostile;
use super::continuity::{Continuity, Gaps};
use super::demuxer::Packet;
use super::framecrc::Lines;
use super::joiner::Joiner;
use super::merge::Merge;
use super::refusal::reason;
use super::resolve::Pictures;
use super::sound;
use super::turn::Turn;
use super::unpacked::Unpacked;
use super::{MAX_CHANNELS, size::SizeWatch};
use crate::ingest::CopiedAudio;
use crate::ingest::source::Input;
use crate::nut::{NutClass, NutStream};
use crate::script::Script;

/// Packets of a script: less than are listened to before an input is known.
const MAX_PACKETS: usize = 64;
/// Codecs of a script.
const CODECS: [&[u8]; 8] = [
    b"H264",
    b"VP90",
    b"AV01",
    b"HEVC",
    b"Opus",
    b"\xff\0\0\0",
    b"mp4a",
    b"fLaC",
];

/// The first octet states what the others are: octets of captions, or lines that ffmpeg writes, of packets or of an input.
pub fn captions(octets: &[u8]) {
    let mut script = Script(octets);
    match script.octet().map(|it| it % 6) {
        None => {}
        Some(4) => packet_lines(script.0),
        Some(5) => description(script.0),
        Some(kind) => captions_hostile::captions(kind, script.0),
    }
}

fn packet_lines(text: &[u8]) {
    let (mut lines, text) = (Lines::default(), String::from_utf8_lossy(text));
    for line in text.lines() {
        if let Some(packet) = lines.read(line) {
            assert!(packet.stream < 16);
            assert!(packet.decoded_at != Some(i64::MIN));
        }
    }
}

fn description(text: &[u8]) {
    let (mut description, text) = (Description::default(), String::from_utf8_lossy(text));
    text.lines().for_each(|line| description.read(line));
    assert!(description.subtitles.len() <= 64);
    assert!(description.format.len() <= text.len());
    if let Some(picture) = &description.picture {
        assert!(picture.pixel_aspect.is_none_or(|it| it.0 > 0 && it.1 > 0));
    }
    assert!(!reason(&Input::StandardInput, &text).is_empty());
}

/// A stream, and packets with any times: each keeps its place, decoding times of a stream never go back, and what is published of it is
/// within bounds.
pub fn packets(octets: &[u8]) {
    let mut script = Script(octets);
    let stream = stream(&mut script);
    let mut joiner = joiner(&mut script);
    joiner.set_depth(0, stream.decode_delay);
    let mut made = Vec::new();
    while made.len() < MAX_PACKETS
        && let Some(flags) = script.octet()
    {
        let mut packet = packet(&mut script, flags);
        joiner.join(&mut packet);
        assert!(packet.dts <= packet.pts);
        made.push(packet);
    }
    let ordered = in_order(&made);
    published(&stream, &ordered);
}

fn stream(script: &mut Script<'_>) -> NutStream {
    let what = script.octet().unwrap_or(0);
    let codec = CODECS.iter().cycle().nth(what.into()).expect("a cycle");
    let class = match usize::from(what) % CODECS.len() {
        0..=3 => NutClass::Video(script.number(2) as u32, script.number(2) as u32),
        _ => NutClass::Audio(script.number(3) as u32, script.number(1) as u32),
    };
    let length = script.number(1) as usize;
    NutStream {
        class,
        codec: Bytes::from_static(codec),
        parameters: Bytes::copy_from_slice(script.take(length)),
        decode_delay: script.number(1),
    }
}

/// A joiner with up to 255 octets of lines.
fn joiner(script: &mut Script<'_>) -> Joiner {
    let length = script.number(1) as usize;
    let text = String::from_utf8_lossy(script.take(length)).into_owned();
    let (sender, receiver) = sync_channel(MAX_PACKETS);
    let mut lines = Lines::default();
    for line in text.lines().take(MAX_PACKETS) {
        if let Some(line) = lines.read(line) {
            sender.send(line).expect("there is room");
        }
    }
    Joiner::new(receiver, 2)
}

fn packet(script: &mut Script<'_>, flags: u8) -> Packet {
    // Times of any size, small ones mostly.
    let width = if flags & 1 == 0 { 3 } else { 8 };
    let (pts, arrived) = (script.number(width), script.number(3));
    let length = script.number(if flags & 2 == 0 { 1 } else { 2 }) as usize;
    Packet {
        stream: usize::from(flags >> 2 & 1),
        dts: pts,
        pts,
        key: flags & 8 != 0,
        has_side_data: flags & 16 != 0,
        payload: Bytes::copy_from_slice(script.take(length)),
        arrived_at: Timestamp::from_micros(arrived),
        ..Packet::default()
    }
}

/// Returns the packets as they go through what corrects and merges them.
fn in_order(packets: &[Packet]) -> Vec<Packet> {
    let (mut unpacked, mut merge) = (Unpacked::new(0), Merge::default());
    packets.iter().for_each(|it| unpacked.push(it.clone()));
    unpacked.finish();
    merge.fill(core::iter::from_fn(|| unpacked.pop()));
    let mut merged: Vec<_> = core::iter::from_fn(|| merge.pop()).collect();
    assert_eq!(merged.len(), packets.len(), "none is lost");
    for gaps in [Gaps::Live, Gaps::File, Gaps::Meant] {
        let mut continuity = Continuity::default();
        continuity.gaps = gaps;
        let mut last = BTreeMap::new();
        for packet in &mut merged {
            continuity.place(packet);
            let before = last.insert(packet.stream, packet.dts);
            assert!(before <= Some(packet.dts), "time goes back");
        }
    }
    merged
}

/// Resolves what is published.
fn published(stream: &NutStream, packets: &[Packet]) {
    if let Some(config) = sound::copied(0, stream, packets) {
        assert!((1..=MAX_CHANNELS).contains(&config.channels));
        let copied = config.copied.expect("it is copied");
        assert!(copied.sample_rate <= 96_000 && copied.rate.den > 0);
        for packet in packets {
            let bare = sound::bare(&packet.payload, &copied);
            assert!(packet.payload.ends_with(&bare));
            assert!(copied.codec == CopiedAudio::AAC || bare == packet.payload);
        }
    }
    if !matches!(stream.class, NutClass::Video(..)) {
        return;
    }
    let first: Vec<_> = packets.iter().filter(|packet| packet.stream == 0).collect();
    if let Some(key) = first.iter().find(|packet| packet.key) {
        let mut sizes = SizeWatch::new(stream, &key.payload);
        for packet in &first {
            let change = sizes.change(&packet.payload);
            assert!(change.is_none_or(|(before, now)| before != now));
        }
    }
    let pictures = Pictures {
        stream,
        first,
        described: Default::default(),
        turn: Turn::default(),
    };
    if let Ok(resolved) = pictures.resolve("input", &Wish::default(), None) {
        let video = resolved.video;
        assert!(video.rate.num > 0 && video.rate.den > 0);
        assert!(video.rate.num / video.rate.den <= 240);
        assert!(!video.ladder.rungs().is_empty());
        for rung in video.ladder.rungs() {
            assert!(rung.bitrate.as_bps() <= 60_000_000);
        }
    }
}
