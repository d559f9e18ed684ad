//! Archives against files of any octets.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use std::fs;

use bytes::Bytes;
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Name};
use namecast_stream::SampleClass;
use namecast_units::{Instant, Random, Timestamp};
use tempfile::TempDir;

use crate::chunk::ChunkId;
use crate::index::{ChunkIndex, Place};
use crate::record::{RecordError, Subject};
use crate::{Archive, Config, Location, Moment, Writer};

#[test]
fn damaged_seeds_harm_nothing() {
    damaged_seeds::harm_nothing(
        "archive_record",
        4,
        100,
        damaged_seeds::any,
        body::archive_record,
    );
}

/// Pieces of all kinds in any order.
#[test]
fn random_scripts_harm_nothing() {
    let mut random = Random::from_seed(12);
    for _ in 0..1_000 {
        body::archive_record(&script(&mut random));
    }
}

fn script(random: &mut Random) -> Vec<u8> {
    let mut script = vec![2];
    for _ in 0..random.below(12) {
        let number = random.below(40) as u8;
        script.extend([random.next_u64() as u8, number]);
        script.extend((0..number / 2).map(|_| random.next_u64() as u8));
    }
    script
}

const ROOT: &str = "/demo";
const NOW: Moment = Moment {
    monotonic: Instant::ZERO,
    wall: Timestamp::from_micros(1_760_000_000_000_000),
};

/// Opens an archive of `files`, each with its extension.
async fn open(files: &[(&str, &Bytes)]) -> (TempDir, Archive) {
    let directory = TempDir::new().unwrap();
    let place = directory.path().join(&ROOT[1..]);
    fs::create_dir_all(&place).unwrap();
    for (name, octets) in files {
        fs::write(place.join(name), octets).unwrap();
    }
    let location = Location::Directory(directory.path().to_owned());
    let config = Config::new(ROOT.parse().unwrap(), location, 1);
    let archive = Archive::open(config, NOW).await.unwrap();
    (directory, archive)
}

/// What scripts leave of chunks that were being written and of sealed ones, under indexes of others: an archive starts, and
/// answers every question.
#[tokio::test]
async fn an_archive_starts_whatever_its_files_hold() {
    let mut random = Random::from_seed(13);
    let rung: Name = "/demo/video/1M".parse().unwrap();
    let indexes: Vec<Vec<u8>> = damaged_seeds::seeds("archive_record")
        .into_iter()
        .filter(|seed| seed[0] == 3)
        .collect();
    let id = |begun_at: u64, extension: &str| {
        let begun_at = Timestamp::from_micros(begun_at);
        format!(
            "{}.{extension}",
            ChunkId {
                begun_at,
                writer: 7
            }
        )
    };
    for round in 0..30 {
        let (open_chunk, _, cut) = body::build(&script(&mut random)[1..]);
        let (sealed, whole, _) = body::build(&script(&mut random)[1..]);
        let index = &indexes[round % indexes.len()];
        let index = body::framed(&damaged_seeds::damaged(
            &mut random,
            &index[1..],
            damaged_seeds::any,
        ));
        let (_directory, archive) = open(&[
            (&id(1, "open"), &open_chunk.slice(..cut)),
            (&id(2, "chunk"), &sealed),
            (&id(u64::MAX, "chunk"), &sealed),
            (&id(u64::MAX, "index"), &index),
        ])
        .await;
        for stream in archive.streams() {
            archive.since(&stream).await.unwrap();
            for time in [0, NOW.wall.as_micros(), u64::MAX] {
                archive
                    .find(&stream, Timestamp::from_micros(time))
                    .await
                    .unwrap();
            }
        }
        for sequence in [3, 9, 10] {
            for class in SampleClass::ALL {
                archive.sample(&rung, class, sequence).await.unwrap();
            }
        }
        let object = archive.object(&ROOT.parse().unwrap()).await.unwrap();
        // It goes on, whatever the newest chunk is called.
        let more = Data::builder("/demo/more".parse().unwrap()).sign(&NullSigner);
        let mut writer = Writer::new(archive.clone());
        writer.append(NOW, &[more]).unwrap();
        writer.sync(NOW).await.unwrap();
        archive.maintain(NOW).await.unwrap();
        assert!(archive.figures().octets >= sealed.len() as u64);
        let holds_object = whole.keys().any(|&at| {
            let record = crate::record::decode(&sealed.slice(at..)).unwrap().0;
            matches!(Subject::of(&record), Some(Subject::Object(_)))
        });
        // The chunk without an index is read itself.
        assert!(object.is_some() || !holds_object, "round {round}");
    }
}

/// Indexes with right checksums, as whoever may write to a bucket can make them. Where no record can be, the chunk is read
/// instead; where one could be and is not, that is damage.
#[tokio::test]
async fn an_index_that_claims_more_than_there_is_leads_nowhere() {
    let name: Name = "/demo/KEY/1".parse().unwrap();
    let (chunk, _, _) = body::build(&[2, 0]);
    let answer = async |offset, length| {
        let mut index = ChunkIndex::default();
        let place = Place { offset, length };
        index.insert(place, &Subject::Object(name.clone()));
        let (_directory, archive) = open(&[
            ("0000000000000001-00000007.chunk", &chunk),
            ("0000000000000001-00000007.index", &index.encode()),
        ])
        .await;
        let object = archive.object(&name).await.unwrap();
        (
            object.is_some(),
            archive.poll_damage().map(|it| (it.offset, it.error)),
        )
    };
    for (offset, length) in [(u64::MAX, 77), (0, u32::MAX), (0, 12), (5, 0)] {
        assert_eq!(
            answer(offset, length).await,
            (true, None),
            "{offset}, {length}"
        );
    }
    let beyond = answer(1_000, 77).await;
    assert_eq!(beyond, (false, Some((1_000, RecordError::CutOff))));
}
