//! What tests of a consumer and of its parts begin with: a stream of 25 samples a second and a key sample each second, of which
//! nothing is known yet.

use core::time::Duration;

use namecast_packet::KeyLocator;
use namecast_packet::signature::HmacSigner;
use namecast_units::{Bitrate, Instant, Timestamp};

use crate::catalogue::{SampleRate, StreamKind};
use crate::metadata::Latest;
use crate::names::{RungNames, SampleClass};
use crate::sample::SampleHeader;
use crate::segmenter::{Sample, Segmenter, SegmenterConfig, Segments, Stamp};

use super::{Playout, Source};

/// The wall clock at [`Instant::ZERO`].
pub(super) const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
/// 25 samples a second.
pub(super) const PERIOD: Duration = ms(40);

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

pub(super) fn names() -> RungNames {
    RungNames::new("/demo/video/1M".parse().unwrap())
}

/// 3000 bytes every 40 ms, a key sample each second.
pub(super) fn source() -> Source {
    Source {
        kind: StreamKind::Video,
        names: names(),
        rate: SampleRate::new(25, 1),
        key_interval: 25,
        bitrate: Bitrate::kbps(600),
        segment_size: 1_000,
        parity_percent: 20,
        inter_frame: None,
        reorder_delay: Duration::ZERO,
        is_newest: false,
        every: 1,
    }
}

/// A target of 150 ms, and a base delay that is not known yet.
pub(super) const fn playout() -> Playout {
    Playout {
        wall_at_zero: WALL,
        base: None,
        target: ms(150),
    }
}

/// The newest samples, of which the key sample has position 0.
pub(super) fn latest(key: u64, delta: u64) -> Latest {
    Latest {
        rung: names().prefix().clone(),
        key_sequence: Some(key),
        delta_sequence: Some(delta),
        key_position: Some(0),
        served_at: WALL,
        next_delta: None,
    }
}

/// What the lead of a sample of one byte says, captured at its time.
pub(super) fn header(position: u64, other_sequence: u64) -> SampleHeader {
    SampleHeader {
        captured_at: WALL + PERIOD * u32::try_from(position).unwrap(),
        composition_offset: Duration::ZERO,
        encoded_after: Duration::ZERO,
        published_after: Duration::ZERO,
        position,
        other_sequence,
        payload_size: 1,
        shard_size: None,
        parity_count: 0,
        asked: None,
        seal: None,
    }
}

pub(super) fn segmenter() -> Segmenter {
    let config = SegmenterConfig {
        parity_percent: 20,
        ..SegmenterConfig::default()
    };
    Segmenter::new(names(), config)
}

pub(super) fn signer(key: &[u8]) -> HmacSigner {
    HmacSigner::new(key, KeyLocator::Name("/demo/KEY/1".parse().unwrap()))
}

/// Key sample `sequence` of `size` bytes, after which delta sample `next_delta` comes, signed with `key`.
pub(super) fn key_sample(sequence: u64, size: usize, next_delta: u64) -> Segments {
    let sample = Sample {
        class: SampleClass::Key,
        sequence,
        other_sequence: next_delta,
        position: 0,
        captured_at: WALL,
        composition_offset: Duration::ZERO,
        encoded_at: WALL,
        payload: vec![1; size].into(),
        seal: None,
    };
    let stamp = Stamp {
        published_at: WALL,
        asked: None,
    };
    segmenter()
        .segment(&sample, stamp, &signer(b"key"))
        .unwrap()
}
