//! The store through its public face: what was synced is read, whatever happens to files.

use std::fs;
use std::path::{Path as FilePath, PathBuf};

use namecast_packet::signature::NullSigner;
use namecast_stream::segmenter::{SegmenterConfig, Stamp};
use namecast_stream::{Sample, SampleClass, Segmenter, StreamNames};
use namecast_units::Random;
use tempfile::TempDir;

use super::*;

mod bucket;
mod power;
#[cfg(feature = "s3")]
mod s3;

use namecast_packet::Data;

/// Publisher's clock at the first sample.
const START: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
const PERIOD: Duration = Duration::from_millis(40);
/// Samples from one key sample to the next.
const GROUP: u64 = 5;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn rung() -> Name {
    name("/demo/video/1M")
}

fn captured_at(position: u64) -> Timestamp {
    START + PERIOD * u32::try_from(position).unwrap()
}

/// Both clocks when the publisher's shows `wall`.
fn moment(wall: Timestamp) -> Moment {
    Moment {
        monotonic: Instant::ZERO + wall.since(START),
        wall,
    }
}

/// Both clocks at the capture of a sample.
fn at(position: u64) -> Moment {
    moment(captured_at(position))
}

fn keep(age: Duration) -> RetentionConfig {
    RetentionConfig {
        keep: Some(age),
        ..RetentionConfig::default()
    }
}

/// Class and number of the sample at `position`, and the number that it refers to.
fn numbers(position: u64) -> (SampleClass, u64, u64) {
    let (group, within) = (position / GROUP, position % GROUP);
    let deltas = group * (GROUP - 1);
    match within {
        0 => (SampleClass::Key, group, deltas),
        _ => (SampleClass::Delta, deltas + within - 1, group),
    }
}

/// The packets of the sample at `position`: three data and one parity segment.
fn sample(position: u64) -> Vec<Data> {
    let names = StreamNames::new(name("/demo")).rung("video", "1M");
    let config = SegmenterConfig {
        segment_size: 1_000,
        parity_percent: 20,
    };
    let segmenter = Segmenter::new(names, config);
    let (class, sequence, other_sequence) = numbers(position);
    let mut payload = vec![0; 2_500];
    Random::from_seed(position).fill(&mut payload);
    let sample = Sample {
        class,
        sequence,
        other_sequence,
        position,
        captured_at: captured_at(position),
        composition_offset: Duration::ZERO,
        encoded_at: captured_at(position),
        payload: payload.into(),
        seal: None,
    };
    let stamp = Stamp {
        published_at: captured_at(position) + Duration::from_millis(9),
        asked: None,
    };
    let segments = segmenter.segment(&sample, stamp, &NullSigner).unwrap();
    segments.iter().cloned().collect()
}

fn config(directory: &TempDir, writer: u32) -> Config {
    let location = Location::Directory(directory.path().to_owned());
    Config {
        chunk_size: ByteSize::bytes(40_000),
        ..Config::new(name("/demo"), location, writer)
    }
}

async fn open(directory: &TempDir, writer: u32) -> Archive {
    Archive::open(config(directory, writer), moment(START))
        .await
        .unwrap()
}

async fn read(archive: &Archive, position: u64) -> Option<Vec<Data>> {
    let (class, sequence, _) = numbers(position);
    archive.sample(&rung(), class, sequence).await.unwrap()
}

/// Writes samples, synced one by one, and seals what is due.
async fn write(archive: &Archive, positions: core::ops::Range<u64>) -> Writer {
    let mut writer = Writer::new(archive.clone());
    for position in positions {
        let now = at(position);
        writer.append(now, &sample(position)).unwrap();
        writer.sync(now).await.unwrap();
        archive.maintain(now).await.unwrap();
    }
    writer
}

fn files(directory: &FilePath, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut unread = vec![directory.to_owned()];
    while let Some(directory) = unread.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                unread.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn what_is_appended_can_be_read_once_it_is_synced_and_not_before() {
    let directory = TempDir::new().unwrap();
    let archive = open(&directory, 1).await;
    let mut writer = Writer::new(archive.clone());
    writer.append(moment(START), &sample(0)).unwrap();
    assert_eq!(read(&archive, 0).await, None);
    writer.sync(moment(START)).await.unwrap();
    assert_eq!(read(&archive, 0).await, Some(sample(0)));
    assert_eq!(read(&archive, 1).await, None);
}

/// 100 samples of some 3.5 kB in chunks of 40 kB: all are read from the sealed chunks, also by an archive that is opened
/// later and by one that opens the chunks without their indexes.
#[tokio::test]
async fn chunks_are_sealed_and_read_by_others_with_and_without_indexes() {
    let directory = TempDir::new().unwrap();
    let archive = open(&directory, 1).await;
    let writer = write(&archive, 0..100).await;
    writer.finish(at(100)).await.unwrap();
    archive.maintain(at(100)).await.unwrap();
    assert_eq!(archive.counters().sealed, archive.figures().chunks);
    assert!((8..=12).contains(&archive.figures().chunks));
    let all_there = async |archive: &Archive| {
        for position in 0..100 {
            assert_eq!(read(archive, position).await, Some(sample(position)));
        }
        assert_eq!(read(archive, 100).await, None);
        assert_eq!(archive.counters().damaged, 0);
    };
    all_there(&archive).await;
    let other = open(&directory, 2).await;
    all_there(&other).await;
    assert_eq!(other.counters().rebuilt, 0);
    files(directory.path(), "index")
        .iter()
        .for_each(|index| fs::remove_file(index).unwrap());
    let without = open(&directory, 3).await;
    all_there(&without).await;
    assert!(without.counters().rebuilt >= archive.figures().chunks);
}

#[tokio::test]
async fn an_archive_learns_of_the_chunks_of_others() {
    let directory = TempDir::new().unwrap();
    let (one, two) = (open(&directory, 1).await, open(&directory, 2).await);
    let writer = write(&one, 0..30).await;
    writer.finish(at(30)).await.unwrap();
    one.maintain(at(30)).await.unwrap();
    assert_eq!(read(&two, 3).await, None);
    two.refresh(moment(START)).await.unwrap();
    assert_eq!(read(&two, 3).await, Some(sample(3)));
}

/// Whatever a crash leaves of the open chunk: every record that is whole is read, later ones are not there, nothing
/// panics, and writing goes on.
#[tokio::test]
async fn a_crash_at_any_octet_loses_only_the_tail() {
    let source = TempDir::new().unwrap();
    let archive = open(&source, 1).await;
    let _writer = write(&archive, 0..8).await;
    let path = files(source.path(), "open").remove(0);
    let octets = fs::read(&path).unwrap();
    let record = crate::record::encode(&sample(0)).unwrap().len();
    let mut random = Random::from_seed(11);
    for _ in 0..40 {
        let cut = usize::try_from(random.below(octets.len() as u64)).unwrap();
        let directory = TempDir::new().unwrap();
        let place = directory
            .path()
            .join(path.strip_prefix(source.path()).unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, &octets[..cut]).unwrap();
        let archive = open(&directory, 2).await;
        let whole = crate::record::scan(&octets[..cut].to_vec().into())
            .filter(|scanned| matches!(scanned, crate::record::Scanned::Record { .. }))
            .count() as u64;
        assert!(whole + 1 >= cut as u64 / (record as u64 + 16));
        for position in 0..8 {
            let expected = (position < whole).then(|| sample(position));
            assert_eq!(read(&archive, position).await, expected, "cut at {cut}");
        }
        assert_eq!(archive.counters().damaged, 0);
        archive.maintain(at(8)).await.unwrap();
        write(&archive, 8..9).await;
        assert_eq!(read(&archive, 8).await, Some(sample(8)));
    }
}

/// Octets of a sealed chunk change: samples that they do not belong to are read as they were, the others are not there,
/// and each damage is told with its file and offset.
#[tokio::test]
async fn a_damaged_record_is_told_and_the_others_are_read() {
    let mut random = Random::from_seed(23);
    for round in 0..20 {
        let directory = TempDir::new().unwrap();
        let archive = open(&directory, 1).await;
        let writer = write(&archive, 0..20).await;
        writer.finish(at(20)).await.unwrap();
        archive.maintain(at(20)).await.unwrap();
        let chunks = files(directory.path(), "chunk");
        let chunk = &chunks[usize::try_from(random.below(chunks.len() as u64)).unwrap()];
        let mut octets = fs::read(chunk).unwrap();
        let at = usize::try_from(random.below(octets.len() as u64)).unwrap();
        octets[at] ^= 0x80;
        fs::write(chunk, octets).unwrap();
        if round % 2 == 0 {
            files(directory.path(), "index")
                .iter()
                .for_each(|index| fs::remove_file(index).unwrap());
        }
        let archive = open(&directory, 2).await;
        let mut missing = 0;
        for position in 0..20 {
            match read(&archive, position).await {
                Some(packets) => assert_eq!(packets, sample(position)),
                None => missing += 1,
            }
        }
        assert_eq!(missing, 1, "round {round}, octet {at}");
        let damage = archive.poll_damage().unwrap();
        let file = chunk.file_name().unwrap().to_str().unwrap();
        assert!(damage.file.ends_with(file), "{damage}");
        let offset = usize::try_from(damage.offset).unwrap();
        assert!(offset <= at && at < offset + 4_500, "{damage}, octet {at}");
    }
}

#[tokio::test]
async fn whole_chunks_are_deleted_by_age_and_size() {
    let directory = TempDir::new().unwrap();
    let mut aged = config(&directory, 1);
    aged.chunk_age = Duration::from_secs(1);
    aged.retention = keep(Duration::from_secs(3));
    let archive = Archive::open(aged, moment(START)).await.unwrap();
    let _writer = write(&archive, 0..250).await;
    // Ten seconds were written; of the last three nothing is deleted.
    assert_eq!(read(&archive, 100).await, None);
    for position in 250 - 75..250 {
        assert_eq!(read(&archive, position).await, Some(sample(position)));
    }
    assert!(archive.counters().deleted >= 5);
    // The oldest group that is whole.
    let since = archive.since(&name("/demo/video")).await.unwrap().unwrap();
    assert!(captured_at(100) < since && since <= captured_at(250 - 75 + GROUP));
    assert!((100..250).any(|p| p % GROUP == 0 && captured_at(p) == since));
    assert_eq!(
        files(directory.path(), "index").len() as u64 + 1,
        archive.figures().chunks
    );

    let directory = TempDir::new().unwrap();
    let mut small = config(&directory, 1);
    small.keep_size = Some(ByteSize::bytes(100_000));
    let archive = Archive::open(small, moment(START)).await.unwrap();
    let _writer = write(&archive, 0..100).await;
    let octets: u64 = files(directory.path(), "chunk")
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .sum();
    assert!((60_000..=100_000).contains(&octets), "{octets}");
    assert_eq!(read(&archive, 99).await, Some(sample(99)));
    assert_eq!(read(&archive, 0).await, None);
}

/// Every time from before the first sample to after the last, against a walk through all samples.
#[tokio::test]
async fn times_are_found_as_by_looking_at_every_sample() {
    let directory = TempDir::new().unwrap();
    let archive = open(&directory, 1).await;
    // Nothing is kept of the samples 40 to 59.
    let writer = write(&archive, 0..40).await;
    writer.finish(at(40)).await.unwrap();
    archive.maintain(at(40)).await.unwrap();
    let _writer = write(&archive, 60..100).await;
    let kept = |position: &u64| !(40..60).contains(position);
    let stream = name("/demo/video");
    for step in 0..210 {
        let time = START + PERIOD / 2 * step;
        let before = (0..100).filter(kept).filter(|p| captured_at(*p) <= time);
        let (last, key) = (
            before.clone().next_back(),
            before.rev().find(|p| p % GROUP == 0),
        );
        let next = (0..100)
            .filter(kept)
            .find(|p| p % GROUP == 0 && captured_at(*p) > time);
        let found = archive.find(&stream, time).await.unwrap();
        let [found] = &found[..] else {
            panic!("one rung")
        };
        assert_eq!(found.rung, rung());
        assert_eq!(Some(found.sample.entry.position), last);
        assert_eq!(Some(found.key.entry.position), key);
        assert_eq!(found.next_key.map(|next| next.entry.position), next);
        assert_eq!(found.newest, [Some(19), Some(79)]);
        let (class, sequence, other) = numbers(last.unwrap());
        assert_eq!(
            (found.sample.class, found.sample.sequence),
            (class, sequence)
        );
        assert_eq!(found.sample.entry.other_sequence, other);
    }
    let early = Timestamp::from_micros(START.as_micros() - 1);
    assert_eq!(archive.find(&stream, early).await.unwrap(), []);
    assert_eq!(archive.since(&stream).await.unwrap(), Some(captured_at(0)));
    assert_eq!(archive.since(&name("/demo")).await.unwrap(), None);
    assert_eq!(archive.find(&name("/demo"), START).await.unwrap(), []);
}

/// A publisher's clock went back 40 times, to the same time: a lookup between samples, and one after all, reads a few indexes, and finds
/// what is there.
#[tokio::test]
async fn chunks_of_one_time_are_not_all_looked_into() {
    let directory = TempDir::new().unwrap();
    let archive = open(&directory, 1).await;
    for round in 0..40 {
        let mut writer = Writer::new(archive.clone());
        for position in 0..2 * GROUP {
            let now = at(1_000 * (round + 1) + position);
            writer.append(now, &sample(position)).unwrap();
            writer.sync(now).await.unwrap();
        }
        let now = at(1_000 * (round + 1) + 2 * GROUP);
        writer.finish(now).await.unwrap();
        archive.maintain(now).await.unwrap();
    }
    assert!(files(directory.path(), "chunk").len() >= 40);
    let half = PERIOD / 2;
    for (position, next) in [(GROUP - 1, Some(GROUP)), (2 * GROUP - 1, None)] {
        let reader = open(&directory, 2).await;
        let time = captured_at(position) + half;
        let found = reader.find(&name("/demo/video"), time).await.unwrap();
        assert_eq!(found[0].sample.entry.position, position);
        assert_eq!(found[0].key.entry.position, position + 1 - GROUP);
        let next_key = found[0].next_key.map(|next| next.entry.position);
        assert_eq!(next_key, next);
        let read = reader.shared.tables().loaded.len();
        assert!((1..=4).contains(&read), "{read} indexes");
    }
}

#[tokio::test]
async fn lasting_objects_begin_each_chunk_and_give_way_to_their_successors() {
    let directory = TempDir::new().unwrap();
    let archive = open(&directory, 1).await;
    let mut writer = Writer::new(archive.clone());
    let object = |text: &str| Data::builder(name(text)).content("x").sign(&NullSigner);
    let catalogue = name("/demo/catalogue");
    for version in ["v=1", "v=2"] {
        for segment in ["seg=0", "seg=1"] {
            let object = object(&format!("/demo/catalogue/{version}/{segment}"));
            writer
                .append_lasting(moment(START), &object, &catalogue)
                .unwrap();
        }
    }
    writer
        .append_lasting(moment(START), &object("/demo/KEY/1"), &name("/demo/KEY"))
        .unwrap();
    writer.sync(moment(START)).await.unwrap();
    // The next chunk repeats version 2 and the key.
    let later = START + Duration::from_secs(60);
    writer.append(moment(later), &sample(0)).unwrap();
    writer.sync(moment(later)).await.unwrap();
    archive.maintain(moment(later)).await.unwrap();
    let first = files(directory.path(), "chunk").remove(0);
    fs::remove_file(first).unwrap();
    archive.refresh(moment(START)).await.unwrap();
    let find = async |text: &str| archive.object(&name(text)).await.unwrap();
    assert_eq!(find("/demo/catalogue/v=1").await, None);
    for kept in [
        "/demo/catalogue/v=2/seg=0",
        "/demo/catalogue/v=2/seg=1",
        "/demo/KEY/1",
    ] {
        assert_eq!(find(kept).await, Some(object(kept)));
    }
}
