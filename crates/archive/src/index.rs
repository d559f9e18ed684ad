//! What a chunk holds and where: by name, and by time of capture.
//!
//! An index is written beside its chunk, so that nobody has to read the chunk to know. It begins with a summary, which
//! is all that is kept in memory of chunks that nobody requests. If it is missing or damaged, the chunk is read instead.
//!
//! ```text
//!   "NCI1" │ length, CRC-32 of the summary │ summary │ length, CRC-32 of the places │ places
//! ```

use std::collections::BTreeMap;

use core::ops::RangeInclusive;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use namecast_packet::{Data, Name, tlv};
use namecast_stream::SampleClass;
use namecast_stream::sample::SampleHeader;
use namecast_units::Timestamp;

use crate::record::{self, Scanned, Subject};

const MAGIC: [u8; 4] = *b"NCI1";
const FRAME: usize = 8;
/// Octets read to get the summary: several times that of the usual chunk.
pub(crate) const FIRST_READ: u64 = 16 << 10;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Octets of the chunk before it.
    pub offset: u64,
    /// Octets of it, with header.
    pub length: u32,
}

/// A sample in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleEntry {
    /// Where its packets are.
    pub place: Place,
    /// Decoding order.
    pub position: u64,
    /// Of a delta sample its key sample, of a key sample the delta sample after it.
    pub other_sequence: u64,
    /// Publisher's clock at capture.
    pub captured_at: Timestamp,
    /// Publisher's clock at publication.
    pub published_at: Timestamp,
}

impl SampleEntry {
    fn new(place: Place, header: &SampleHeader) -> Self {
        Self {
            place,
            position: header.position,
            other_sequence: header.other_sequence,
            captured_at: header.captured_at,
            published_at: header.published_at(),
        }
    }
}

/// Class and sequence number of a sample.
pub(crate) type SampleKey = (SampleClass, u64);

/// What a chunk holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkIndex {
    objects: BTreeMap<Name, Place>,
    rungs: BTreeMap<Name, BTreeMap<SampleKey, SampleEntry>>,
}

/// What is known of a rung in a chunk without its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// First and last number of key samples, and of delta samples.
    pub sequences: [Option<RangeInclusive<u64>>; 2],
    /// First and last time of capture.
    pub captured: RangeInclusive<Timestamp>,
}

/// What is known of a chunk without its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub objects: Vec<Name>,
    pub rungs: BTreeMap<Name, Span>,
}

impl ChunkIndex {
    /// Records a record. One that is there already stays where it is.
    pub(crate) fn insert(&mut self, place: Place, subject: &Subject) {
        match subject {
            Subject::Object(name) => {
                self.objects.entry(name.clone()).or_insert(place);
            }
            Subject::Sample { rung, lead, header } => {
                let samples = self.rungs.entry(rung.clone()).or_default();
                let key = (lead.class, lead.sequence);
                samples
                    .entry(key)
                    .or_insert_with(|| SampleEntry::new(place, header));
            }
        }
    }

    /// Returns where the sample is.
    pub(crate) fn sample(&self, rung: &Name, key: SampleKey) -> Option<Place> {
        Some(self.rungs.get(rung)?.get(&key)?.place)
    }

    /// Returns the last object under `prefix`: numbers of versions grow.
    pub(crate) fn object(&self, prefix: &Name) -> Option<(&Name, Place)> {
        let below = self.objects.range(prefix..);
        let below = below.take_while(|(name, _)| prefix.is_prefix_of(name));
        below.last().map(|(name, place)| (name, *place))
    }

    /// Returns the sample of `rung` that was captured last at or before `time`, of those that `wanted` accepts.
    pub(crate) fn at_or_before(
        &self,
        rung: &Name,
        time: Timestamp,
        wanted: impl Fn(SampleClass) -> bool,
    ) -> Option<(SampleKey, SampleEntry)> {
        let samples = self.rungs.get(rung)?.iter();
        samples
            .filter(|((class, _), entry)| wanted(*class) && entry.captured_at <= time)
            .max_by_key(|(_, entry)| (entry.captured_at, entry.position))
            .map(|(key, entry)| (*key, *entry))
    }

    /// Returns the first key sample of `rung` that was captured after `time`.
    pub(crate) fn key_after(&self, rung: &Name, time: Timestamp) -> Option<(u64, SampleEntry)> {
        let keys = (SampleClass::Key, 0)..=(SampleClass::Key, u64::MAX);
        let samples = self.rungs.get(rung)?.range(keys);
        samples
            .filter(|(_, entry)| entry.captured_at > time)
            .min_by_key(|(_, entry)| entry.captured_at)
            .map(|((_, sequence), entry)| (*sequence, *entry))
    }

    /// First and last time of capture in `rung`.
    pub(crate) fn captured(&self, rung: &Name) -> Option<RangeInclusive<Timestamp>> {
        let times = || self.rungs.get(rung).into_iter().flat_map(BTreeMap::values);
        let times = || times().map(|entry| entry.captured_at);
        Some(times().min()?..=times().max()?)
    }

    /// Returns the last number of `class` in `rung`.
    pub(crate) fn last(&self, rung: &Name, class: SampleClass) -> Option<u64> {
        let samples = self.rungs.get(rung)?;
        let last = samples.range((class, 0)..=(class, u64::MAX)).next_back();
        last.map(|((_, sequence), _)| *sequence)
    }

    /// Returns the names of the rungs.
    pub(crate) fn rungs(&self) -> impl Iterator<Item = &Name> {
        self.rungs.keys()
    }

    /// Returns the samples and objects.
    pub(crate) fn len(&self) -> usize {
        self.objects.len() + self.rungs.values().map(BTreeMap::len).sum::<usize>()
    }

    /// Returns what is known without places.
    pub(crate) fn summary(&self) -> Summary {
        let rungs = self.rungs.iter().filter_map(|(rung, samples)| {
            let sequences = SampleClass::ALL.map(|class| {
                let mut of_class = samples.range((class, 0)..=(class, u64::MAX));
                let ((_, first), _) = of_class.next()?;
                let last = of_class.next_back().map_or(*first, |((_, last), _)| *last);
                Some(*first..=last)
            });
            let times = || samples.values().map(|entry| entry.captured_at);
            let captured = times().min()?..=times().max()?;
            let span = Span {
                sequences,
                captured,
            };
            Some((rung.clone(), span))
        });
        Summary {
            objects: self.objects.keys().cloned().collect(),
            rungs: rungs.collect(),
        }
    }

    /// Returns the index of a chunk of `octets`, and what is wrong with them.
    pub(crate) fn of_chunk(octets: &Bytes) -> (Self, Vec<Scanned>) {
        let mut index = Self::default();
        let mut wrong = Vec::new();
        for scanned in record::scan(octets) {
            match scanned {
                Scanned::Record {
                    offset,
                    length,
                    packets,
                } => index.insert_packets(offset, length, &packets),
                other => wrong.push(other),
            }
        }
        (index, wrong)
    }

    fn insert_packets(&mut self, offset: usize, length: usize, packets: &[Data]) {
        let place = Place {
            offset: offset as u64,
            length: u32::try_from(length).expect("records are bounded"),
        };
        if let Some(subject) = Subject::of(packets) {
            self.insert(place, &subject);
        }
    }

    /// Returns the index as it is written.
    pub(crate) fn encode(&self) -> Bytes {
        let mut summary = BytesMut::new();
        self.summary().encode(&mut summary);
        let mut places = BytesMut::new();
        places.put_u32_le(u32::try_from(self.objects.len()).expect("chunks are bounded"));
        for (name, place) in &self.objects {
            put_name(&mut places, name);
            put_place(&mut places, *place);
        }
        for (rung, samples) in &self.rungs {
            put_name(&mut places, rung);
            places.put_u32_le(u32::try_from(samples.len()).expect("chunks are bounded"));
            for ((class, sequence), entry) in samples {
                places.put_u8(u8::try_from(class.index()).expect("there are two classes"));
                places.put_u64_le(*sequence);
                put_place(&mut places, entry.place);
                places.put_u64_le(entry.position);
                places.put_u64_le(entry.other_sequence);
                places.put_u64_le(entry.captured_at.as_micros());
                places.put_u64_le(entry.published_at.as_micros());
            }
        }
        let mut whole = BytesMut::from(&MAGIC[..]);
        put_frame(&mut whole, &summary);
        put_frame(&mut whole, &places);
        whole.freeze()
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` if that was changed.
    pub(crate) fn decode(octets: &Bytes) -> Option<Self> {
        let mut rest = octets.clone();
        take_magic(&mut rest)?;
        take_frame(&mut rest)?;
        let mut places = take_frame(&mut rest)?;
        let mut index = Self::default();
        for _ in 0..places.try_get_u32_le().ok()? {
            let name = take_name(&mut places)?;
            index.objects.insert(name, take_place(&mut places)?);
        }
        while places.has_remaining() {
            let rung = take_name(&mut places)?;
            let mut samples = BTreeMap::new();
            for _ in 0..places.try_get_u32_le().ok()? {
                let (key, entry) = take_entry(&mut places)?;
                samples.insert(key, entry);
            }
            index.rungs.insert(rung, samples);
        }
        Some(index)
    }
}

impl Summary {
    fn encode(&self, to: &mut BytesMut) {
        to.put_u32_le(u32::try_from(self.objects.len()).expect("chunks are bounded"));
        self.objects.iter().for_each(|name| put_name(to, name));
        for (rung, span) in &self.rungs {
            put_name(to, rung);
            for range in &span.sequences {
                // None: the last before the first.
                let (first, last) = range
                    .as_ref()
                    .map_or((1, 0), |range| (*range.start(), *range.end()));
                to.put_u64_le(first);
                to.put_u64_le(last);
            }
            to.put_u64_le(span.captured.start().as_micros());
            to.put_u64_le(span.captured.end().as_micros());
        }
    }

    /// Reads the summary that an index begins with. `Err` with the octets that it takes if `octets` are fewer.
    pub(crate) fn decode(octets: &Bytes) -> Option<Result<Self, u64>> {
        let mut rest = octets.clone();
        take_magic(&mut rest)?;
        let length = (&rest[..]).try_get_u32_le().ok()? as usize;
        let needed = MAGIC.len() + FRAME + length;
        if octets.len() < needed {
            return Some(Err(needed as u64));
        }
        let mut rest = take_frame(&mut rest)?;
        let mut summary = Self::default();
        for _ in 0..rest.try_get_u32_le().ok()? {
            summary.objects.push(take_name(&mut rest)?);
        }
        while rest.has_remaining() {
            let rung = take_name(&mut rest)?;
            let mut number = || rest.try_get_u64_le().ok();
            let mut range = || Some((number()?, number()?));
            let sequences =
                [range()?, range()?].map(|(first, last)| (first <= last).then_some(first..=last));
            let (first, last) = range()?;
            let captured = Timestamp::from_micros(first)..=Timestamp::from_micros(last);
            let span = Span {
                sequences,
                captured,
            };
            summary.rungs.insert(rung, span);
        }
        Some(Ok(summary))
    }
}

fn put_frame(to: &mut BytesMut, octets: &[u8]) {
    to.put_u32_le(u32::try_from(octets.len()).expect("chunks are bounded"));
    to.put_u32_le(crc32fast::hash(octets));
    to.put_slice(octets);
}

fn put_name(to: &mut BytesMut, name: &Name) {
    let mut writer = tlv::Writer::default();
    name.encode(&mut writer);
    to.put_u16_le(u16::try_from(writer.len()).expect("names fit packets"));
    to.put_slice(writer.as_slice());
}

fn put_place(to: &mut BytesMut, place: Place) {
    to.put_u64_le(place.offset);
    to.put_u32_le(place.length);
}

fn take_magic(from: &mut Bytes) -> Option<()> {
    let is_there = from.starts_with(&MAGIC);
    is_there.then(|| from.advance(MAGIC.len()))
}

fn take_frame(from: &mut Bytes) -> Option<Bytes> {
    let length = from.try_get_u32_le().ok()? as usize;
    let checksum = from.try_get_u32_le().ok()?;
    let octets = (length <= from.len()).then(|| from.split_to(length))?;
    (crc32fast::hash(&octets) == checksum).then_some(octets)
}

fn take_name(from: &mut Bytes) -> Option<Name> {
    let length = usize::from(from.try_get_u16_le().ok()?);
    let octets = (length <= from.len()).then(|| from.split_to(length))?;
    Some(Name::decode(&octets).ok()?.detached())
}

/// `None` also for places where no record can be, so that an index of such is refused and made anew.
fn take_place(from: &mut Bytes) -> Option<Place> {
    let offset = from.try_get_u64_le().ok()?;
    let length = from.try_get_u32_le().ok()?;
    offset.checked_add(length.into())?;
    let packets = (length as usize).checked_sub(record::HEADER)?;
    let is_possible = (1..=record::MAX_LENGTH).contains(&packets);
    is_possible.then_some(Place { offset, length })
}

fn take_entry(from: &mut Bytes) -> Option<(SampleKey, SampleEntry)> {
    let class = from.try_get_u8().ok()?;
    let class = SampleClass::ALL.get(usize::from(class))?;
    let sequence = from.try_get_u64_le().ok()?;
    let place = take_place(from)?;
    let mut number = || from.try_get_u64_le().ok();
    let entry = SampleEntry {
        place,
        position: number()?,
        other_sequence: number()?,
        captured_at: Timestamp::from_micros(number()?),
        published_at: Timestamp::from_micros(number()?),
    };
    Some(((*class, sequence), entry))
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn entry(captured: u64) -> SampleEntry {
        SampleEntry {
            place: Place {
                offset: captured * 3,
                length: 77,
            },
            position: captured,
            other_sequence: 9,
            captured_at: Timestamp::from_micros(captured),
            published_at: Timestamp::from_micros(captured + 5),
        }
    }

    /// Keys at 100 and 140, deltas at 110, 120, 130 in one rung; a lone key at 105 in another.
    fn index() -> ChunkIndex {
        let mut index = ChunkIndex::default();
        let (one, two) = ("/d/v/1".parse().unwrap(), "/d/v/2".parse().unwrap());
        let place = Place {
            offset: 0,
            length: 77,
        };
        for name in ["/d/KEY/1", "/d/m/v=1/seg=0", "/d/m/v=2/seg=0", "/d/n"] {
            index.objects.insert(name.parse().unwrap(), place);
        }
        let key = |n| (SampleClass::Key, n);
        let delta = |n| (SampleClass::Delta, n);
        let samples = [
            (key(7), 100),
            (delta(50), 110),
            (delta(51), 120),
            (delta(52), 130),
            (key(8), 140),
        ];
        let samples = samples.map(|(key, captured)| (key, entry(captured)));
        index.rungs.insert(one, samples.into());
        index.rungs.insert(two, [(key(3), entry(105))].into());
        index
    }

    #[test]
    fn it_reads_back_whole_and_as_a_summary() {
        let octets = index().encode();
        assert_eq!(ChunkIndex::decode(&octets), Some(index()));
        assert_eq!(Summary::decode(&octets), Some(Ok(index().summary())));
        let short = Summary::decode(&octets.slice(..20)).unwrap();
        let needed = usize::try_from(short.unwrap_err()).unwrap();
        let enough = octets.slice(..needed);
        assert_eq!(Summary::decode(&enough), Some(Ok(index().summary())));
        let span = &index().summary().rungs[&"/d/v/1".parse().unwrap()];
        assert_eq!(span.sequences, [Some(7..=8), Some(50..=52)]);
        let micros = Timestamp::from_micros;
        assert_eq!(span.captured, micros(100)..=micros(140));
    }

    #[test]
    fn times_are_looked_up_exactly() {
        let (index, rung) = (index(), "/d/v/1".parse().unwrap());
        let at = |time: u64, key_only: bool| {
            let wanted = |class| !key_only || class == SampleClass::Key;
            let found = index.at_or_before(&rung, Timestamp::from_micros(time), wanted);
            found.map(|(key, _)| key)
        };
        assert_eq!(at(99, false), None);
        assert_eq!(at(100, false), Some((SampleClass::Key, 7)));
        assert_eq!(at(119, false), Some((SampleClass::Delta, 50)));
        assert_eq!(at(120, false), Some((SampleClass::Delta, 51)));
        assert_eq!(at(139, true), Some((SampleClass::Key, 7)));
        assert_eq!(at(9_999, false), Some((SampleClass::Key, 8)));
        let after = |time| index.key_after(&rung, Timestamp::from_micros(time));
        assert_eq!(after(100).map(|(key, _)| key), Some(8));
        assert_eq!(after(140), None);
    }

    #[test]
    fn of_objects_the_newest_version_is_found() {
        let index = index();
        let find = |name: &str| {
            let found = index.object(&name.parse().unwrap());
            found.map(|(name, _)| name.to_string())
        };
        assert_eq!(find("/d/m"), Some("/d/m/v=2/seg=0".to_owned()));
        assert_eq!(find("/d/m/v=1"), Some("/d/m/v=1/seg=0".to_owned()));
        assert_eq!(find("/d/x"), None);
    }

    #[test]
    fn a_changed_index_is_refused() {
        let octets = index().encode();
        let mut random = Random::from_seed(3);
        for at in 0..octets.len() {
            let mut changed = octets.to_vec();
            changed[at] ^= 1 << random.below(8);
            assert_eq!(ChunkIndex::decode(&changed.into()), None, "octet {at}");
            let cut = octets.slice(..at);
            assert_eq!(ChunkIndex::decode(&cut), None);
            let _ = Summary::decode(&cut);
        }
    }
}
