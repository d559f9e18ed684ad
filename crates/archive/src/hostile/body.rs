//! Chunks and indexes of any octets: they are read in order and to their end, nothing is found that is not there, and what was
//! written whole is found whatever lies around it. Body of a fuzz target (see `fuzz/`), run here on damaged chunks.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::{BufMut, Bytes, BytesMut};
use namecast_packet::Data;
use namecast_packet::signature::NullSigner;
use namecast_stream::segmenter::{SegmenterConfig, Stamp};
use namecast_stream::{Sample, SampleClass, Segmenter, StreamNames};
use namecast_units::{Duration, Timestamp};

use crate::index::{ChunkIndex, Summary};
use crate::record::{self, RecordError, Scanned, Subject};

/// Octets that a script may grow to.
const MAX_SIZE: usize = 1 << 13;

/// The first octet says what the others are.
pub(crate) fn archive_record(octets: &[u8]) {
    let Some((what, rest)) = octets.split_first() else {
        return;
    };
    match what % 4 {
        0 => drop(chunk(&Bytes::copy_from_slice(rest))),
        1 => index(&Bytes::copy_from_slice(rest)),
        2 => script(rest),
        _ => index(&framed(rest)),
    }
}

/// Goes through a chunk, and returns its records by offset.
pub(crate) fn chunk(octets: &Bytes) -> BTreeMap<usize, Vec<Data>> {
    let mut records = BTreeMap::new();
    let (mut end, mut is_torn, mut is_damaged) = (0, false, false);
    for scanned in record::scan(octets) {
        assert!(!is_torn, "nothing follows a torn end");
        let begins_record = match &scanned {
            Scanned::Record { .. } => true,
            Scanned::Damaged { error, .. } => *error == RecordError::Packets,
            Scanned::Torn { .. } => false,
        };
        assert!(
            begins_record || !is_damaged,
            "damage ends where a record begins"
        );
        is_damaged = !begins_record;
        let (offset, length) = match scanned {
            Scanned::Record {
                offset,
                length,
                packets,
            } => {
                let whole = octets.slice(offset..offset + length);
                assert_eq!(record::encode(&packets), Ok(whole));
                records.insert(offset, packets);
                (offset, length)
            }
            Scanned::Damaged { offset, length, .. } => (offset, length),
            Scanned::Torn { offset, length } => {
                is_torn = true;
                (offset, length)
            }
        };
        assert_eq!(offset, end, "each octet belongs to one piece");
        assert!(length > 0);
        end += length;
    }
    assert_eq!(end, octets.len());
    found(octets, &records);
    records
}

/// The index of a chunk leads to records of it, each of them if no two are of one subject.
fn found(octets: &Bytes, records: &BTreeMap<usize, Vec<Data>>) {
    let (index, wrong) = ChunkIndex::of_chunk(octets);
    assert!(index.len() <= records.len());
    assert_eq!(index.len() == 0, records.is_empty());
    assert!(wrong.iter().all(|it| !matches!(it, Scanned::Record { .. })));
    for packets in records.values() {
        let subject = Subject::of(packets).expect("records hold packets");
        let place = match &subject {
            Subject::Sample { rung, lead, .. } => index.sample(rung, (lead.class, lead.sequence)),
            Subject::Object(name) => index.object(name).map(|(_, place)| place),
        };
        let place = place.expect("what is in a chunk is in its index");
        let offset = usize::try_from(place.offset).expect("it is within the chunk");
        let (read, length) = record::decode(&octets.slice(offset..)).expect("a record");
        assert_eq!(
            (Some(&read), length),
            (records.get(&offset), place.length as usize)
        );
    }
    lookups(&index);
    written(&index);
}

fn index(octets: &Bytes) {
    if let Some(Err(needed)) = Summary::decode(octets) {
        assert!(needed > octets.len() as u64);
    }
    if let Some(index) = ChunkIndex::decode(octets) {
        lookups(&index);
        written(&index);
    }
}

/// An index reads back as it was written.
fn written(index: &ChunkIndex) {
    let octets = index.encode();
    assert_eq!(Summary::decode(&octets), Some(Ok(index.summary())));
    assert_eq!(ChunkIndex::decode(&octets).as_ref(), Some(index));
}

/// What is found by time is from that time.
fn lookups(index: &ChunkIndex) {
    for rung in index.rungs() {
        let Some(captured) = index.captured(rung) else {
            continue;
        };
        let (first, last) = captured.into_inner();
        assert!(first <= last);
        let at = |time| index.at_or_before(rung, time, |_| true);
        assert_eq!(at(first).map(|(_, entry)| entry.captured_at), Some(first));
        assert_eq!(at(last).map(|(_, entry)| entry.captured_at), Some(last));
        assert_eq!(index.key_after(rung, last), None);
        let newest = SampleClass::ALL.map(|class| index.last(rung, class));
        assert!(newest.iter().any(Option::is_some));
    }
}

/// Two objects, a key sample, and two delta samples, which are the records of scripts.
static WHOLE: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let object = |name: &str| {
        let name = name.parse().expect("a name");
        vec![Data::builder(name).content(&[7; 20][..]).sign(&NullSigner)]
    };
    let names = StreamNames::new("/demo".parse().expect("a name"));
    let config = SegmenterConfig {
        segment_size: 300,
        parity_percent: 20,
    };
    let segmenter = Segmenter::new(names.rung("video", "1M"), config);
    let sample = |class, sequence, other_sequence, position| {
        let captured_at = Timestamp::from_micros(1_760_000_000_000_000 + position);
        let sample = Sample {
            class,
            sequence,
            other_sequence,
            position,
            captured_at,
            composition_offset: Duration::ZERO,
            encoded_at: captured_at,
            payload: vec![5; 500].into(),
            seal: None,
        };
        let stamp = Stamp {
            published_at: captured_at,
            asked: None,
        };
        let segments = segmenter.segment(&sample, stamp, &NullSigner);
        segments.expect("a sample").iter().cloned().collect()
    };
    let records = [
        object("/demo/KEY/1"),
        object("/demo/catalogue/v=1/seg=0"),
        sample(SampleClass::Key, 3, 9, 20),
        sample(SampleClass::Delta, 9, 3, 21),
        sample(SampleClass::Delta, 10, 3, 22),
    ];
    let encode = |packets: &Vec<Data>| record::encode(packets).expect("it fits");
    records.iter().map(encode).collect()
});

fn take<'a>(octets: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = octets.split_at(count.min(octets.len()));
    *octets = rest;
    taken
}

/// Returns the beginning of a record.
fn header(length: usize, checksum: u32) -> [u8; record::HEADER] {
    let mut header = *b"NCR1\0\0\0\0\0\0\0\0";
    let length = u32::try_from(length).expect("scripts are short");
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// A chunk by a script, and how much of it is left. Whole records that are left are found.
fn script(script: &[u8]) {
    let (chunk, whole, cut) = build(script);
    let records = self::chunk(&chunk);
    assert!(whole.keys().all(|offset| records.contains_key(offset)));
    let records = self::chunk(&chunk.slice(..cut));
    let left = whole.iter().filter(|&(_, &end)| end <= cut);
    for (offset, _) in left {
        assert!(records.contains_key(offset), "{offset} of {cut}");
    }
}

/// Returns the octets of a script's chunk, begin and end of its whole records, and a place to cut.
pub(crate) fn build(mut script: &[u8]) -> (Bytes, BTreeMap<usize, usize>, usize) {
    let mut chunk = BytesMut::new();
    let mut whole = BTreeMap::new();
    let mut cut = 0;
    while let &[what, number, ref rest @ ..] = script
        && chunk.len() < MAX_SIZE
    {
        script = rest;
        let count = usize::from(number);
        let record = &WHOLE[count % WHOLE.len()];
        match what % 6 {
            0 => chunk.put_slice(take(&mut script, count)),
            // A right checksum of what need not be packets.
            1 => {
                let body = take(&mut script, count);
                chunk.put_slice(&header(body.len(), crc32fast::hash(body)));
                chunk.put_slice(body);
            }
            2 => {
                whole.insert(chunk.len(), chunk.len() + record.len());
                chunk.put_slice(record);
            }
            // A record with one octet that is another.
            3 => {
                let at = chunk.len() + usize::from(what) * 7 % record.len();
                chunk.put_slice(record);
                chunk[at] ^= 1 << (number % 8);
            }
            // The beginning of a record that is not there.
            4 => chunk.put_slice(&header(count * 64, 0)),
            _ => cut = chunk.len() + count,
        }
    }
    let chunk = chunk.freeze();
    let cut = cut.min(chunk.len());
    (chunk, whole, cut)
}

/// Returns an index with right checksums: the first two octets are the length of the summary.
pub(crate) fn framed(octets: &[u8]) -> Bytes {
    let mut rest = octets;
    let length = take(&mut rest, 2);
    let length = length
        .iter()
        .fold(0, |sum, octet| sum << 8 | usize::from(*octet));
    let mut index = BytesMut::from(&b"NCI1"[..]);
    for part in [take(&mut rest, length), rest] {
        index.put_u32_le(u32::try_from(part.len()).expect("it is short"));
        index.put_u32_le(crc32fast::hash(part));
        index.put_slice(part);
    }
    index.freeze()
}
