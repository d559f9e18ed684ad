//! Pending Interest table: who waits for which Data, and where it was asked for.

use core::num::NonZeroU32;
use core::time::Duration;

use bytes::Bytes;
use hashbrown::{HashMap, HashTable};
use namecast_packet::lp::NackReason;
use namecast_packet::{Component, Data, Interest, Name, Nonce};
use namecast_units::{ByteSize, Instant};
use slab::Slab;
use smallvec::SmallVec;

use super::name_hash::HashedKeys;
use super::{NameHashes, name_hash};
use crate::face::FaceId;

/// Place of an entry in the table, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryId(NonZeroU32);

impl EntryId {
    /// The entry in place `place` of the table, counted from 0.
    pub(crate) fn from_place(place: usize) -> Self {
        let number = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("memory does not hold four thousand million entries"))
    }

    /// The entry's place in the table.
    pub(crate) const fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Octets that a downstream wants back with the answer; kept apart from the frame that they came in.
pub(crate) type PitToken = SmallVec<[u8; 8]>;

/// A downstream that waits.
#[derive(Clone, Debug)]
pub(crate) struct InRecord {
    pub(crate) face: FaceId,
    /// Of the latest Interest.
    pub(crate) nonce: Nonce,
    pub(crate) expiry: Instant,
    pub(crate) token: Option<PitToken>,
    /// The latest Interest: a Nack returns it.
    pub(crate) wire: Bytes,
}

/// An upstream that was asked.
#[derive(Clone, Debug)]
pub(crate) struct OutRecord {
    pub(crate) face: FaceId,
    /// Of the latest Interest.
    pub(crate) nonce: Nonce,
    pub(crate) sent_at: Instant,
    pub(crate) expiry: Instant,
    /// The upstream's refusal of the latest Interest.
    pub(crate) nack: Option<NackReason>,
    /// Least time until the Interest goes there again, for strategies that count per upstream.
    pub(crate) suppression: Duration,
}

/// One entry: an Interest of some name and selectors, from all who sent it to all it was sent to.
#[derive(Clone, Debug)]
pub(crate) struct PendingInterest {
    pub(crate) name: Name,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    pub(crate) in_records: SmallVec<[InRecord; 1]>,
    pub(crate) out_records: SmallVec<[OutRecord; 1]>,
    /// When the last in-record expires, and the entry with it.
    pub(crate) expiry: Instant,
    /// Least time until it is sent again, for strategies that count per entry.
    pub(crate) suppression: Duration,
    /// Hash of the name.
    pub(crate) hash: u64,
    depth: usize,
    /// Hash of the name without the implicit digest that it ends in, if it does.
    digest_parent: Option<u64>,
}

impl PendingInterest {
    pub(crate) fn in_record(&self, face: FaceId) -> Option<&InRecord> {
        self.in_records.iter().find(|record| record.face == face)
    }

    pub(crate) fn out_record(&self, face: FaceId) -> Option<&OutRecord> {
        self.out_records.iter().find(|record| record.face == face)
    }

    /// Whether an upstream may still answer.
    pub(crate) fn has_pending_out_record(&self, now: Instant) -> bool {
        self.out_records
            .iter()
            .any(|record| record.expiry > now && record.nack.is_none())
    }

    /// Whether an Interest with `nonce` came in or went out.
    pub(crate) fn has_nonce(&self, nonce: Nonce) -> bool {
        let mut incoming = self.in_records.iter().map(|record| record.nonce);
        let mut outgoing = self.out_records.iter().map(|record| record.nonce);
        incoming.any(|other| other == nonce) || outgoing.any(|other| other == nonce)
    }

    /// Renews or adds the record of an Interest that was sent now.
    pub(crate) fn record_sent(&mut self, record: OutRecord, next: impl Fn(Duration) -> Duration) {
        let old = self
            .out_records
            .iter_mut()
            .find(|old| old.face == record.face);
        match old {
            Some(old) if old.expiry > record.sent_at => {
                let suppression = next(old.suppression);
                *old = OutRecord {
                    suppression,
                    ..record
                };
            }
            Some(old) => *old = record,
            None => self.out_records.push(record),
        }
    }

    /// Octets that the entry's Interests hold.
    fn octets(&self) -> ByteSize {
        self.in_records
            .iter()
            .map(|record| ByteSize::of(&record.wire))
            .sum::<ByteSize>()
            + ByteSize::of(self.name.value())
    }

    fn is_for(&self, interest: &Interest) -> bool {
        self.name == *interest.name()
            && self.can_be_prefix == interest.can_be_prefix()
            && self.must_be_fresh == interest.must_be_fresh()
    }
}

/// The pending Interests of a node. Bounds are the pipeline's to keep: see [`Pit::is_full`].
#[derive(Debug)]
pub(crate) struct Pit {
    capacity: usize,
    max_octets: ByteSize,
    octets: ByteSize,
    entries: Slab<PendingInterest>,
    /// Entries by hash of their whole name.
    index: HashTable<usize>,
    /// How many entries with CanBePrefix there are of each number of components, up to the largest there was.
    prefix_depths: Vec<usize>,
    /// How many entries ask for a digest of the Data whose name has this hash, so that digests are computed only where
    /// somebody asks for one.
    digest_parents: HashMap<u64, usize, HashedKeys>,
}

impl Pit {
    pub(crate) fn new(capacity: usize, max_octets: ByteSize) -> Self {
        Self {
            capacity,
            max_octets,
            octets: ByteSize::ZERO,
            entries: Slab::new(),
            index: HashTable::new(),
            prefix_depths: Vec::new(),
            digest_parents: HashMap::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no room for an Interest of `size` more octets, in a new entry or not.
    pub(crate) fn is_full(&self, is_new: bool, size: ByteSize) -> bool {
        is_new && self.entries.len() >= self.capacity || self.octets + size > self.max_octets
    }

    pub(crate) fn get(&self, id: EntryId) -> &PendingInterest {
        &self.entries[id.place()]
    }

    pub(crate) fn get_mut(&mut self, id: EntryId) -> &mut PendingInterest {
        &mut self.entries[id.place()]
    }

    /// All entries, in order of their place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryId, &PendingInterest)> {
        self.entries
            .iter()
            .map(|(id, entry)| (EntryId::from_place(id), entry))
    }

    /// The entry for Interests equal to `interest`, in name and selectors.
    pub(crate) fn find(&self, interest: &Interest, hashes: &NameHashes) -> Option<EntryId> {
        let is_it = |&id: &usize| self.entries[id].is_for(interest);
        self.index
            .find(hashes.whole(), is_it)
            .copied()
            .map(EntryId::from_place)
    }

    /// Adds an entry without records for `interest`, which must have none. `name` is the Interest's, to be kept.
    pub(crate) fn insert(
        &mut self,
        interest: &Interest,
        name: Name,
        hashes: &NameHashes,
        suppression: Duration,
    ) -> EntryId {
        let entry = PendingInterest {
            name,
            can_be_prefix: interest.can_be_prefix(),
            must_be_fresh: interest.must_be_fresh(),
            in_records: SmallVec::new(),
            out_records: SmallVec::new(),
            expiry: Instant::ZERO,
            suppression,
            hash: hashes.whole(),
            depth: hashes.depth(),
            digest_parent: hashes.ends_in_digest().then(|| hashes.parent()),
        };
        if entry.can_be_prefix {
            let length = self.prefix_depths.len().max(entry.depth + 1);
            self.prefix_depths.resize(length, 0);
            self.prefix_depths[entry.depth] += 1;
        }
        if let Some(parent) = entry.digest_parent {
            *self.digest_parents.entry(parent).or_default() += 1;
        }
        self.octets += entry.octets();
        let id = self.entries.insert(entry);
        let entries = &self.entries;
        self.index
            .insert_unique(hashes.whole(), id, |&id| entries[id].hash);
        EntryId::from_place(id)
    }

    /// Adds the record of a downstream, or renews it; sets the entry's expiry to its latest record's. Says whether the
    /// record is new.
    pub(crate) fn record_received(&mut self, id: EntryId, record: InRecord) -> bool {
        let entry = &mut self.entries[id.place()];
        self.octets += ByteSize::of(&record.wire);
        let mut records = entry.in_records.iter_mut();
        let old = records.find(|old| old.face == record.face);
        let is_new = old.is_none();
        match old {
            Some(old) => {
                self.octets -= ByteSize::of(&old.wire);
                *old = record;
            }
            None => entry.in_records.push(record),
        }
        let expiries = entry.in_records.iter().map(|record| record.expiry);
        entry.expiry = expiries.max().expect("there is at least the new record");
        is_new
    }

    /// Forgets that the downstream waits; returns its record.
    pub(crate) fn take_in_record(&mut self, id: EntryId, face: FaceId) -> Option<InRecord> {
        let records = &mut self.entries[id.place()].in_records;
        let at = records.iter().position(|record| record.face == face)?;
        let record = records.remove(at);
        self.octets -= ByteSize::of(&record.wire);
        Some(record)
    }

    /// Forgets what a face waits for and was asked for.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        let octets = &mut self.octets;
        for (_, entry) in &mut self.entries {
            *octets -= entry.octets();
            entry.in_records.retain(|record| record.face != face);
            entry.out_records.retain(|record| record.face != face);
            *octets += entry.octets();
        }
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, id: EntryId) -> PendingInterest {
        let entry = self.entries.remove(id.place());
        self.octets -= entry.octets();
        if let Ok(place) = self
            .index
            .find_entry(entry.hash, |&other| other == id.place())
        {
            place.remove();
        }
        if entry.can_be_prefix {
            self.prefix_depths[entry.depth] -= 1;
        }
        if let Some(parent) = entry.digest_parent
            && let Some(count) = self.digest_parents.get_mut(&parent)
        {
            *count -= 1;
            if *count == 0 {
                self.digest_parents.remove(&parent);
            }
        }
        entry
    }

    /// All entries that `data` satisfies, in order of their place. No component of its name may be a digest.
    pub(crate) fn matches(&self, data: &Data, hashes: &NameHashes) -> SmallVec<[EntryId; 4]> {
        let mut found = SmallVec::new();
        let name = data.name();
        for (depth, &count) in self.prefix_depths.iter().enumerate().take(hashes.depth()) {
            if count == 0 {
                continue;
            }
            for &id in self.index.iter_hash(hashes.hash(depth)) {
                let entry = &self.entries[id];
                if entry.can_be_prefix && entry.depth == depth && entry.name.is_prefix_of(name) {
                    found.push(EntryId::from_place(id));
                }
            }
        }
        for &id in self.index.iter_hash(hashes.whole()) {
            if self.entries[id].name == *name {
                found.push(EntryId::from_place(id));
            }
        }
        if !self.digest_parents.is_empty() && self.digest_parents.contains_key(&hashes.whole()) {
            self.match_digest(data, hashes, &mut found);
        }
        found.sort_unstable();
        found
    }

    fn match_digest(&self, data: &Data, hashes: &NameHashes, found: &mut SmallVec<[EntryId; 4]>) {
        let digest = data.implicit_digest();
        let full = data.name().child(Component {
            kind: Component::IMPLICIT_DIGEST,
            value: &digest,
        });
        let hash = name_hash::full_name(hashes.whole(), &digest);
        let entries = self.index.iter_hash(hash).copied();
        let is_match = |id: &usize| self.entries[*id].name == full;
        found.extend(entries.filter(is_match).map(EntryId::from_place));
    }
}

#[cfg(test)]
#[path = "pit_tests.rs"]
mod tests;
