//! What a power cut leaves: unsynced octets dropped, kept in part or as zeros, indexes missing, empty and torn, syncs that fail.

use super::*;

/// Copies a directory.
fn copy(from: &FilePath, to: &FilePath) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Leaves of a file what was synced, and of the rest some octets, or as many zeros, which file systems do.
fn tear(path: &FilePath, synced: u64, random: &mut Random) {
    let octets = fs::read(path).unwrap();
    let synced = usize::try_from(synced).unwrap();
    let left = usize::try_from(random.below((octets.len() - synced) as u64 + 1)).unwrap();
    let mut torn = octets[..synced + left].to_vec();
    if random.below(2) == 0 {
        torn[synced..].fill(0);
    }
    fs::write(path, torn).unwrap();
}

/// The power is cut at every write of a run (samples of 40 ms, 25 of them synced at a time). Whatever it
/// leaves, the archive starts, every sample that was synced is read as it was signed, and recording goes on.
#[tokio::test]
async fn a_power_cut_at_any_write_loses_nothing_that_was_synced() {
    cut_power_at_each_of(200).await;
}

/// Two minutes of samples.
#[tokio::test]
#[ignore = "takes a minute and a half"]
async fn a_power_cut_at_any_write_of_minutes_loses_nothing_that_was_synced() {
    cut_power_at_each_of(3_000).await;
}

async fn cut_power_at_each_of(writes: u64) {
    let mut random = Random::from_seed(31);
    let directory = TempDir::new().unwrap();
    let archive = open(&directory, 1).await;
    let mut writer = Writer::new(archive.clone());
    // Samples that are synced, and the octets of the open chunk that are.
    let (mut synced, mut length) = (0, 0);
    for position in 0..writes {
        writer.append(at(position), &sample(position)).unwrap();
        // Every write is cut; it is opened, and read.
        let after = TempDir::new().unwrap();
        copy(directory.path(), after.path());
        for path in files(after.path(), "open") {
            tear(&path, length, &mut random);
        }
        let indexes = files(after.path(), "index");
        if let Some(index) = indexes.last() {
            match random.below(4) {
                0 => fs::remove_file(index).unwrap(),
                1 => fs::write(index, "").unwrap(),
                2 => tear(index, 0, &mut random),
                _ => {}
            }
        }
        let again = open(&after, 2).await;
        let recent = synced - synced.min(30)..synced;
        // Of the 100 samples and more in the last four chunks, which stay, some.
        let old = (0..3).map(|_| synced - 1 - random.below(synced.min(90)));
        let old: Vec<_> = if synced > 0 {
            old.collect()
        } else {
            Vec::new()
        };
        for looked_at in recent.chain(old) {
            let found = read(&again, looked_at).await;
            let is_there = found == Some(sample(looked_at));
            assert!(is_there, "{looked_at} of {synced}, cut after {position}");
        }
        assert_eq!(again.counters().damaged, 0);
        let mut next = Writer::new(again.clone());
        next.append(at(position), &sample(9_999)).unwrap();
        next.sync(at(position)).await.unwrap();
        assert_eq!(read(&again, 9_999).await, Some(sample(9_999)));

        if position % 25 == 24 {
            writer.sync(at(position)).await.unwrap();
            archive.maintain(at(position)).await.unwrap();
            synced = position + 1;
            let open = files(directory.path(), "open");
            length = open
                .first()
                .map_or(0, |path| fs::metadata(path).unwrap().len());
        }
        // What is checked above stays small enough to be copied three thousand times.
        if position % 200 == 199 {
            for path in files(directory.path(), "chunk").iter().rev().skip(4) {
                drop(fs::remove_file(path.with_extension("index")));
                fs::remove_file(path).unwrap();
            }
        }
    }
}

/// An index of any kind of damage is made anew, and is whole the next time.
#[tokio::test]
async fn any_unreadable_index_is_made_anew() {
    for damage in 0..5 {
        let directory = TempDir::new().unwrap();
        let archive = open(&directory, 1).await;
        let writer = write(&archive, 0..30).await;
        writer.finish(at(30)).await.unwrap();
        archive.maintain(at(30)).await.unwrap();
        for index in files(directory.path(), "index") {
            let octets = fs::read(&index).unwrap();
            fs::remove_file(&index).unwrap();
            match damage {
                0 => {}
                1 => fs::write(&index, "").unwrap(),
                2 => fs::write(&index, &octets[..10]).unwrap(),
                3 => fs::write(&index, vec![0; octets.len()]).unwrap(),
                _ => fs::create_dir(&index).unwrap(),
            }
        }
        let again = open(&directory, 2).await;
        for position in 0..30 {
            let found = read(&again, position).await;
            assert_eq!(found, Some(sample(position)), "damage {damage}");
        }
        assert!(again.counters().rebuilt > 0);
        if damage < 4 {
            let third = open(&directory, 3).await;
            assert_eq!(third.counters().rebuilt, 0, "damage {damage}");
        }
    }
}

/// Of two roots, one below the other, each has its own chunks, whatever their names.
#[tokio::test]
async fn roots_do_not_touch_each_others_chunks() {
    let directory = TempDir::new().unwrap();
    let below = Config {
        root: name("/demo/open"),
        ..config(&directory, 1)
    };
    let below = Archive::open(below, moment(START)).await.unwrap();
    let writer = write(&below, 0..30).await;
    writer.finish(at(30)).await.unwrap();
    below.maintain(at(30)).await.unwrap();
    let before = files(directory.path(), "chunk");
    let above = open(&directory, 2).await;
    assert_eq!(above.figures().chunks, 0);
    above.maintain(at(31)).await.unwrap();
    assert_eq!(files(directory.path(), "chunk"), before);
    assert_eq!(read(&below, 0).await, Some(sample(0)));
}

/// The host's clock goes wrong, by hours and years, for six seconds and for an hour, in both directions: nothing is
/// deleted early. Once it is right again, what is too old goes.
#[tokio::test]
async fn a_wrong_clock_deletes_nothing() {
    for hours in [2, -2, 8_760, -8_760_i64] {
        let directory = TempDir::new().unwrap();
        let mut config = config(&directory, 1);
        config.retention = keep(Duration::from_hours(24));
        let archive = Archive::open(config, at(0)).await.unwrap();
        let writer = write(&archive, 0..100).await;
        writer.finish(at(100)).await.unwrap();
        let chunks = archive.figures().chunks;
        for second in (4..10).chain((20..3_620).step_by(10)) {
            let right = moment(START + Duration::from_secs(second));
            let micros = right.wall.as_micros().cast_signed() + hours * 3_600_000_000;
            let wrong = Moment {
                wall: Timestamp::from_micros(micros.cast_unsigned()),
                ..right
            };
            archive.maintain(wrong).await.unwrap();
        }
        assert_eq!(
            (archive.counters().deleted, archive.figures().chunks),
            (0, chunks)
        );
        for (second, left) in [(86_400, chunks), (86_416, 0)] {
            let right = moment(START + Duration::from_secs(second));
            archive.maintain(right).await.unwrap();
            assert_eq!(archive.figures().chunks, left, "{hours} h, {second} s");
        }
    }
}

/// A day of chunks, 8 640: a sample and a time are found by looking into a bounded number of them.
#[test]
fn lookups_do_not_look_at_every_chunk() {
    let mut chunks = RungChunks::default();
    for n in 0..8_640_u64 {
        let id = ChunkId {
            begun_at: START + PERIOD * u32::try_from(n * 250).unwrap(),
            writer: 1,
        };
        let span = crate::index::Span {
            sequences: [Some(n * 5..=n * 5 + 4), Some(n * 245..=n * 245 + 244)],
            captured: id.begun_at..=id.begun_at + Duration::from_secs(10),
        };
        chunks.insert(id, &span);
    }
    let begun = |n: u64| START + Duration::from_secs(n * 10);
    let found = chunks.with_sample(SampleClass::Key, 20_003);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].begun_at, begun(4_000));
    let time = begun(4_000) + Duration::from_secs(5);
    let before = chunks.before(time);
    assert_eq!((before.len(), before[0].id.begun_at), (64, begun(4_000)));
    let after = chunks.after(time);
    assert_eq!((after.len(), after[0].id.begun_at), (64, begun(4_000)));
    assert_eq!(
        chunks.newest(SampleClass::Delta).unwrap().1,
        8_639 * 245 + 244
    );
}
