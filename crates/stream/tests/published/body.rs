//! Catalogue, metadata, newest sample and time index as anybody may write them: what is read keeps its bounds and reads back as it was
//! written, and a consumer lives with every stream that a catalogue may describe. Body of a fuzz target (see `fuzz/`), run here
//! on damaged ones.

#[path = "../single/mod.rs"]
mod single;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::HmacVerifier;
use namecast_packet::{Interest, Name};
use namecast_stream::consumer::{Config, Consumer, Playout, Source, StartAt};
use namecast_stream::index::TimeIndex;
use namecast_stream::metadata::MAX_LATEST;
use namecast_stream::path::{Budget, LiveConfig, Uplink, UplinkConfig};
use namecast_stream::{
    Catalogue, CatalogueError, Latest, Metadata, NewestSample, Rung, RungNames, SampleClass,
    SegmentId, StreamInfo, StreamNames,
};
use namecast_units::{Bitrate, Instant, Timestamp};

use single::{Single, SingleOutput};

/// Times that a consumer is called when something is due.
const STEPS: usize = 24;
/// Calls after which time must have moved on.
const MAX_CALLS: usize = 1_000;
/// When the consumer starts.
const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);

/// The first octet says what the others are.
pub(crate) fn catalogue_metadata(octets: &[u8]) {
    let Some((what, rest)) = octets.split_first() else {
        return;
    };
    match what % 5 {
        0 => drop(catalogue(rest)),
        1 => drop(metadata(&Bytes::copy_from_slice(rest))),
        2 => newest(&Bytes::copy_from_slice(rest)),
        3 => together(rest),
        _ => time_index(&Bytes::copy_from_slice(rest)),
    }
}

fn catalogue(json: &[u8]) -> Option<Catalogue> {
    let catalogue = Catalogue::decode(json).ok()?;
    assert!(json.len() <= 65_536 && catalogue.signer.len() <= 1_024);
    assert!(catalogue.streams.len() <= 8);
    for stream in &catalogue.streams {
        assert_eq!(
            catalogue.stream(&stream.name),
            Some(stream),
            "no name is there twice"
        );
        assert!((1..=64).contains(&stream.name.len()) && stream.rungs.len() <= 16);
        assert!((256..=8_000).contains(&stream.segment_size) && stream.parity_percent <= 100);
        for rung in &stream.rungs {
            assert_eq!(
                stream.rung(&rung.name),
                Some(rung),
                "no name is there twice"
            );
            within_bounds(rung);
            named(stream, rung);
        }
    }
    match catalogue.encode() {
        Ok(written) => {
            let read = Catalogue::decode(&written).expect("what was written is read");
            assert_eq!(read, catalogue);
        }
        // "other" may be longer than the kind that was not known.
        Err(CatalogueError::TooLarge(_)) => assert!(json.len() > 65_000),
        Err(error) => panic!("{error}"),
    }
    Some(catalogue)
}

fn within_bounds(rung: &Rung) {
    assert!((1..=64).contains(&rung.name.len()) && (1..=64).contains(&rung.codec_string.len()));
    assert!(rung.bitrate <= Bitrate::mbps(10_000));
    let period = rung.rate.period();
    assert!(period >= Duration::from_millis(1), "{period:?}");
    assert!(period <= Duration::from_secs(3_600), "{period:?}");
    assert!((1..=100_000).contains(&rung.key_interval));
    let bounded = |value: Option<u32>, most| value.is_none_or(|v| (1..=most).contains(&v));
    assert!(bounded(rung.width, 32_768) && bounded(rung.height, 32_768));
    assert!(bounded(rung.sample_rate, 768_000) && bounded(rung.channels, 255));
    if let Some(inter_frame) = rung.inter_frame {
        assert!((2..=32).contains(&inter_frame.samples) && (1..=8).contains(&inter_frame.parity));
    }
}

/// Whatever streams and rungs are called, their segments have names of their own.
fn named(stream: &StreamInfo, rung: &Rung) {
    assert!(!["catalogue", "KEY"].contains(&stream.name.as_str()) && rung.name != "index");
    let names = StreamNames::new("/demo".parse().expect("a name"));
    let rung = names.rung(&stream.name, &rung.name);
    assert_eq!(rung.prefix().len(), 3);
    let lead = SegmentId::lead(SampleClass::Delta, 7);
    let found = RungNames::of_segment(&rung.segment(lead));
    assert_eq!(found, Some((rung.prefix().clone(), lead)));
    assert_eq!(rung.parse(&names.catalogue_segment(1, 0)), None);
    assert_eq!(rung.parse(&names.metadata()), None);
}

fn metadata(content: &Bytes) -> Option<Metadata> {
    let metadata = Metadata::decode(content).ok()?;
    assert!(metadata.latest.len() <= MAX_LATEST);
    let written = metadata.encode();
    assert_eq!(Metadata::decode(&written).as_ref(), Ok(&metadata));
    // What does not fit is left out, and nothing else.
    let half = written.len() / 2;
    let smaller = metadata.clone().encode_within(half);
    let read = Metadata::decode(&smaller).expect("what was written is read");
    assert!(smaller.len() <= half || read.latest.is_empty() && read.catalogue.is_none());
    assert!(metadata.latest.starts_with(&read.latest));
    assert_eq!(read.catalogue_name, metadata.catalogue_name);
    Some(metadata)
}

fn newest(content: &Bytes) {
    if let Ok(newest) = NewestSample::decode(content) {
        assert_eq!(NewestSample::decode(&newest.encode()), Ok(newest));
    }
}

fn time_index(content: &Bytes) {
    if let Ok(index) = TimeIndex::decode(content) {
        assert!(index.rungs.len() <= 16);
        assert_eq!(TimeIndex::decode(&index.encode()), Ok(index));
    }
}

/// Two octets of length, a catalogue, and metadata that say where its streams are: each rung is played from there.
fn together(octets: &[u8]) {
    let Some((length, rest)) = octets.split_first_chunk() else {
        return;
    };
    let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
    let (json, content) = rest.split_at(length);
    let metadata = metadata(&Bytes::copy_from_slice(content));
    let Some(catalogue) = catalogue(json) else {
        return;
    };
    let latest = metadata.map_or_else(Vec::new, |metadata| metadata.latest);
    let names = StreamNames::new("/demo".parse().expect("a name"));
    let rungs = catalogue
        .streams
        .iter()
        .flat_map(|stream| stream.rungs.iter().map(move |rung| (stream, rung)));
    for (at, (stream, rung)) in rungs.take(4).enumerate() {
        let source = Source::new(&names, stream, rung);
        assert!(source.bitrate_with_parity() >= rung.bitrate);
        let latest = latest.get(at).or(latest.first()).cloned();
        play(source, latest);
    }
}

/// Requests samples that nobody answers, as often as something is due.
fn play(source: Source, latest: Option<Latest>) {
    let config = Config::default();
    let (max_outstanding, prefix) = (config.max_outstanding, source.names.prefix().clone());
    let live = Budget::live(LiveConfig::default());
    let mut uplink = Uplink::new(UplinkConfig::default(), live);
    let mut consumer = Consumer::new(&config, source, uplink.new_client());
    let mut now = Instant::ZERO;
    let playout = Playout {
        wall_at_zero: WALL,
        base: None,
        target: Duration::from_millis(100),
    };
    consumer.set_playout(now, playout, Duration::ZERO);
    consumer.set_verifier(now, Arc::new(HmacVerifier::new(b"key")));
    let latest = latest.unwrap_or(Latest {
        rung: prefix.clone(),
        key_sequence: Some(5),
        delta_sequence: Some(300),
        key_position: Some(0),
        served_at: WALL,
        next_delta: None,
    });
    consumer.start(now, &latest, StartAt::NewestKey);
    let mut single = Single::new(consumer, uplink);
    single.handle_timeout(now);
    for step in 0..STEPS {
        if step == STEPS / 2 {
            let _ = single.consumer.line_up(now, &latest, true);
            single.consumer.catch_up(now);
        }
        let mut calls = 0;
        while single.poll_timeout().is_some_and(|at| at <= now) {
            single.handle_timeout(now);
            calls += 1;
            assert!(calls < MAX_CALLS, "time stands still");
        }
        let interests = sent(&mut single, &prefix);
        assert!(interests <= max_outstanding, "{interests}");
        let sizes = single.consumer.sizes();
        assert!(
            sizes.outstanding <= max_outstanding && sizes.queued <= max_outstanding,
            "{sizes:?}"
        );
        let Some(next) = single.poll_timeout() else {
            break;
        };
        now = next;
    }
}

/// Interests that leave, each for the rung.
fn sent(single: &mut Single, prefix: &Name) -> usize {
    let is_of_rung = |interest: &Interest| prefix.is_prefix_of(interest.name());
    let mut count = 0;
    while let Some(output) = single.poll_output() {
        if let SingleOutput::Interest(interest) = output {
            assert!(is_of_rung(&interest), "{:?}", interest.name());
            count += 1;
        }
    }
    count
}
