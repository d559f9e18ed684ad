//! Pending Interest table: who waits for which Data, and where it was asked for.

use core::num::NonZeroU32;
use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use hashbrown::{HashMap, HashTable};
use namecast_packet::lp::NackReason;
use namecast_packet::{Component, Data, Interest, Name, Nonce};
use namecast_units::{ByteSize, Instant};
use slab::Slab;
use smallvec::SmallVec;

use super::expiry::MEMORY_PER_PLACE as EXPIRY;
use super::list::{Links, List};
use super::spares::Spares;
use super::{NameHashes, States, memory};
use crate::config::Keep;
use crate::face::FaceId;
use crate::fields::KeptFields;
use crate::name_hash::HashedKeys;

/// Place of a pending Interest in the table, until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId(NonZeroU32);

impl EntryId {
    /// The entry in place `place` of the table, counted from 0.
    pub(crate) fn from_place(place: usize) -> Self {
        let number = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("memory does not hold 2^32 entries"))
    }

    /// The entry's place in the table.
    pub(crate) const fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// A downstream that waits.
#[derive(Clone, Debug)]
pub(crate) struct InRecord {
    pub(crate) face: FaceId,
    /// Of the latest Interest.
    pub(crate) nonce: Nonce,
    /// When the last of the downstream's Interests expires: several consumers may be behind its face.
    pub(crate) expiry: Instant,
    /// Of the latest Interest.
    pub(crate) fields: KeptFields,
    /// The latest Interest: a Nack returns it.
    pub(crate) wire: Bytes,
}

/// An upstream that was asked.
#[derive(Clone, Debug)]
pub(crate) struct OutRecord {
    pub(crate) face: FaceId,
    /// Of the latest Interest.
    pub(crate) nonce: Nonce,
    /// Whether it follows a route, and does not look for one.
    pub(crate) non_discovery: bool,
    pub(crate) sent_at: Instant,
    /// When the last of the Interests sent there expires.
    pub(crate) expiry: Instant,
    /// The upstream's refusal of the latest Interest.
    pub(crate) nack: Option<NackReason>,
    /// Least time until the Interest goes there again, for strategies that count per upstream.
    pub(crate) suppression: Duration,
}

impl OutRecord {
    fn is_pending(&self, now: Instant) -> bool {
        self.expiry > now && self.nack.is_none()
    }

    /// Whether the upstream waits at least half as long as the downstreams that wait until `expiry`. Otherwise their Interest is not
    /// held back as a repetition: a consumer could starve others by short Interests for the same names.
    pub(crate) fn lasts(&self, now: Instant, expiry: Instant) -> bool {
        self.expiry > now && self.expiry.since(self.sent_at) * 2 >= expiry.since(now)
    }
}

/// Place of a face's [`FaceShare`], until the face is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShareId(u32);

impl ShareId {
    #[cfg(test)]
    pub(crate) fn from_place(place: usize) -> Self {
        Self(memory::short(place))
    }
}

/// Stands for one choice of a strategy until that is taken back: small, as every pending Interest has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChoiceId(u32);

impl ChoiceId {
    /// No choice: counts nowhere.
    pub(crate) const NONE: Self = Self(u32::MAX);
    /// What holds where nothing was chosen.
    pub(crate) const DEFAULT: Self = Self(u32::MAX - 1);

    pub(crate) fn from_place(place: usize) -> Self {
        let number = u32::try_from(place).expect("names of thousands of millions do not fit");
        Self(number)
    }

    /// The place among the choices; none of the two above.
    pub(crate) const fn place(self) -> usize {
        self.0 as usize
    }
}

/// What one face has in the table.
#[derive(Clone, Copy, Debug)]
struct FaceShare {
    face: FaceId,
    /// Entries whose first in-record is the face's, in the order in which it began to wait. Each entry is in one face's list,
    /// so that a full table can tell who takes how much of it.
    entries: List,
    /// In-records of the face, first or not.
    records: u32,
    /// Octets of their Interests.
    octets: u64,
}

impl FaceShare {
    /// How much the face takes of what there is too little of.
    const fn of(&self, shortage: Shortage) -> u64 {
        match shortage {
            Shortage::Entries => self.entries.len() as u64,
            Shortage::Memory => self.octets + self.records as u64 * ENTRY.as_bytes(),
        }
    }
}

/// What a full table has no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    Entries,
    Memory,
}

/// One entry: an Interest of some name and selectors, from all who sent it to all it was sent to.
#[derive(Debug)]
pub(crate) struct PendingInterest {
    pub(crate) name: Name,
    pub(crate) can_be_prefix: bool,
    pub(crate) must_be_fresh: bool,
    /// Whose strategy decided last.
    pub(crate) choice: ChoiceId,
    pub(crate) in_records: SmallVec<[InRecord; 1]>,
    pub(crate) out_records: SmallVec<[OutRecord; 1]>,
    /// When the last in-record expires, and the entry with it.
    pub(crate) expiry: Instant,
    /// Least time until it is sent again, for strategies that count per entry.
    pub(crate) suppression: Duration,
    /// Hash of the name.
    pub(crate) hash: u64,
    /// What hops remember of it.
    pub(crate) states: States,
    /// Octets of the Interest that the name is a part of, and keeps in memory.
    name_buffer: u32,
    depth: u32,
    /// Whether the name ends in an implicit digest.
    asks_for_digest: bool,
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
        self.out_records.iter().any(|record| record.is_pending(now))
    }

    /// Whether an Interest with `nonce` came in or went out.
    pub(crate) fn has_nonce(&self, nonce: Nonce) -> bool {
        let mut incoming = self.in_records.iter().map(|record| record.nonce);
        let mut outgoing = self.out_records.iter().map(|record| record.nonce);
        incoming.any(|other| other == nonce) || outgoing.any(|other| other == nonce)
    }

    /// Sets the time at which the last of the in-records expires.
    fn expire_with_records(&mut self) {
        let expiries = self.in_records.iter().map(|record| record.expiry);
        self.expiry = expiries.max().unwrap_or(Instant::ZERO);
    }

    /// Renews or adds the record of an Interest that was sent now.
    fn record_sent(&mut self, record: OutRecord, next: impl Fn(Duration) -> Duration) {
        let old = self
            .out_records
            .iter_mut()
            .find(|old| old.face == record.face);
        match old {
            Some(old) if old.expiry > record.sent_at => {
                *old = OutRecord {
                    suppression: next(old.suppression),
                    expiry: old.expiry.max(record.expiry),
                    ..record
                };
            }
            Some(old) => *old = record,
            None => self.out_records.push(record),
        }
    }

    /// Memory that the entry takes.
    fn memory(&self) -> ByteSize {
        let digest_parent = self.asks_for_digest.then_some(DIGEST_PARENT);
        ENTRY
            + buffer(self.name_buffer as usize)
            + digest_parent.unwrap_or_default()
            + self.memory_received()
            + self.memory_sent()
    }

    /// Memory that those who wait take, beside what the entry takes in any case.
    fn memory_received(&self) -> ByteSize {
        let records = self.in_records.iter();
        records.fold(moved_out(&self.in_records, IN_RECORD), |sum, record| {
            let fields = ByteSize::bytes(record.fields.heap_bytes() as u64);
            match self.is_named_by(record) {
                true => sum + fields,
                false => sum + fields + buffer(record.wire.len()),
            }
        })
    }

    /// Memory that those who were asked take.
    fn memory_sent(&self) -> ByteSize {
        moved_out(&self.out_records, OUT_RECORD)
    }

    /// Whether the name is a part of this record's Interest, so that both are in memory once.
    fn is_named_by(&self, record: &InRecord) -> bool {
        let wire = record.wire.as_ptr_range();
        wire.contains(&self.name.value().as_ptr())
    }

    fn is_for(&self, interest: &Interest) -> bool {
        self.name == *interest.name()
            && self.can_be_prefix == interest.can_be_prefix()
            && self.must_be_fresh == interest.must_be_fresh()
    }
}

/// A [`PendingInterest`] with a record of either kind in it.
const BARE_ENTRY: ByteSize = ByteSize::bytes(240);
/// Records that do not fit into the entry.
const IN_RECORD: ByteSize = ByteSize::bytes(80);
const OUT_RECORD: ByteSize = ByteSize::bytes(64);
/// A digest that is asked for.
const DIGEST_PARENT: ByteSize = ByteSize::bytes(2 * memory::index(16).as_bytes());

const _: () = memory::check::<PendingInterest>(BARE_ENTRY);
const _: () = memory::check::<InRecord>(IN_RECORD);
const _: () = memory::check::<OutRecord>(OUT_RECORD);

/// Memory that an entry takes besides its Interests: itself, its place in the index, in the order of expiry and in a face's
/// list.
const ENTRY: ByteSize = ByteSize::bytes(
    BARE_ENTRY.as_bytes()
        + memory::index(4).as_bytes()
        + EXPIRY.as_bytes()
        + size_of::<Links>() as u64,
);

/// Interests of `/localhost` may go beyond the table's bounds by one part in so many.
const RESERVE: u64 = 64;

/// Memory that an Interest of so many octets takes.
fn buffer(octets: usize) -> ByteSize {
    ByteSize::bytes(octets as u64) + memory::COPY
}

/// Memory of records, of so many octets `each`, which are more than fit into the entry itself.
fn moved_out<T>(records: &SmallVec<[T; 1]>, each: ByteSize) -> ByteSize {
    match records.spilled() {
        true => ByteSize::bytes(records.capacity() as u64 * each.as_bytes()),
        false => ByteSize::ZERO,
    }
}

/// The pending Interests of a node. Bounds are the pipeline's to keep: see [`Pit::shortage`].
#[derive(Debug)]
pub(crate) struct Pit {
    capacity: usize,
    max_memory: ByteSize,
    memory: ByteSize,
    entries: Slab<PendingInterest>,
    /// Neighbours of each entry in the list of the face whose in-record is its first.
    links: Vec<Links>,
    shares: Slab<FaceShare>,
    /// Entries by hash of their whole name. A place takes 32 bits.
    index: HashTable<u32>,
    /// How many entries with CanBePrefix there are of each number of components, up to the largest there was.
    prefix_depths: Vec<usize>,
    /// How many entries ask for a digest of the Data whose name has this hash, so that digests are computed only where
    /// somebody looks for one.
    digest_parents: HashMap<u64, usize, HashedKeys>,
    /// That hash, of each entry that does.
    digests: BTreeMap<EntryId, u64>,
    spares: Spares,
}

impl Pit {
    pub(crate) fn new(capacity: usize, max_memory: ByteSize) -> Self {
        Self {
            capacity,
            max_memory,
            memory: ByteSize::ZERO,
            entries: Slab::new(),
            links: Vec::new(),
            shares: Slab::new(),
            index: HashTable::new(),
            prefix_depths: Vec::new(),
            digest_parents: HashMap::default(),
            digests: BTreeMap::new(),
            spares: Spares::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns what is missing for an Interest of `octets`, in a new entry or not; `None` if there is room. Local ones have some
    /// of their own, so that a flooded node can be asked what ails it.
    pub(crate) fn shortage(&self, is_new: bool, octets: usize, is_local: bool) -> Option<Shortage> {
        let reserve = |bound: u64| if is_local { bound.div_ceil(RESERVE) } else { 0 };
        let capacity = self.capacity as u64;
        let capacity = capacity.saturating_add(reserve(capacity));
        let max_memory = self.max_memory + ByteSize::bytes(reserve(self.max_memory.as_bytes()));
        let entry = if is_new { ENTRY } else { ByteSize::ZERO };
        if is_new && self.entries.len() as u64 >= capacity {
            return Some(Shortage::Entries);
        }
        (self.memory + entry + buffer(octets) > max_memory).then_some(Shortage::Memory)
    }

    pub(crate) fn get(&self, id: EntryId) -> &PendingInterest {
        &self.entries[id.place()]
    }

    pub(crate) fn get_mut(&mut self, id: EntryId) -> &mut PendingInterest {
        &mut self.entries[id.place()]
    }

    /// How many entries there are whose names have this hash.
    pub(crate) fn count_alike(&self, hash: u64) -> usize {
        let alike = self
            .places(hash)
            .filter(|&id| self.entries[id].hash == hash);
        alike.count()
    }

    /// Entries that a look-up of a name with this hash compares with it.
    #[cfg(test)]
    pub(crate) fn candidates(&self, hash: u64) -> usize {
        self.places(hash).count()
    }

    /// All entries, in order of their place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryId, &PendingInterest)> {
        self.entries
            .iter()
            .map(|(id, entry)| (EntryId::from_place(id), entry))
    }

    /// The entry for Interests equal to `interest`, in name and selectors.
    pub(crate) fn find(&self, interest: &Interest, hashes: &NameHashes) -> Option<EntryId> {
        let hash = hashes.whole();
        let is_it = |&id: &u32| {
            let entry = &self.entries[id as usize];
            entry.hash == hash && entry.is_for(interest)
        };
        self.index
            .find(hash, is_it)
            .map(|&id| EntryId::from_place(id as usize))
    }

    /// Adds an entry without records for `interest`, which must have none. `name` is the Interest's, to be kept, and
    /// part of octets of the same length.
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
            choice: ChoiceId::NONE,
            in_records: SmallVec::new(),
            out_records: SmallVec::new(),
            expiry: Instant::ZERO,
            suppression,
            hash: hashes.whole(),
            states: States::default(),
            name_buffer: memory::short(interest.wire().len()),
            depth: memory::short(hashes.depth()),
            asks_for_digest: hashes.ends_in_digest(),
        };
        if entry.can_be_prefix {
            let depth = hashes.depth();
            let length = self.prefix_depths.len().max(depth + 1);
            self.prefix_depths.resize(length, 0);
            self.prefix_depths[depth] += 1;
        }
        self.memory += entry.memory();
        let id = self.entries.insert(entry);
        if hashes.ends_in_digest() {
            *self.digest_parents.entry(hashes.parent()).or_default() += 1;
            self.digests
                .insert(EntryId::from_place(id), hashes.parent());
        }
        let entries = &self.entries;
        let hash_of = |&id: &u32| entries[id as usize].hash;
        self.index
            .insert_unique(hashes.whole(), memory::short(id), hash_of);
        EntryId::from_place(id)
    }

    /// Makes room to count what `face` has in the table.
    pub(crate) fn add_face(&mut self, face: FaceId) -> ShareId {
        let share = FaceShare {
            face,
            entries: List::default(),
            records: 0,
            octets: 0,
        };
        ShareId(memory::short(self.shares.insert(share)))
    }

    /// Forgets a face that waits for nothing, and what it was asked for.
    pub(crate) fn remove_face(&mut self, face: FaceId, share: ShareId) {
        self.shares.remove(share.0 as usize);
        for (_, entry) in &mut self.entries {
            if entry.out_record(face).is_some() {
                self.memory -= entry.memory_sent();
                entry.out_records.retain(|record| record.face != face);
                self.memory += entry.memory_sent();
            }
        }
    }

    /// In-records of a face.
    pub(crate) fn records_of(&self, share: ShareId) -> usize {
        self.shares[share.0 as usize].records as usize
    }

    /// The face that has most of what there is too little of, and the entry for which it has waited longest. `None` if nobody
    /// waits for anything.
    pub(crate) fn largest_share(&self, shortage: Shortage) -> Option<(FaceId, EntryId)> {
        let shares = self.shares.iter().map(|(_, share)| share);
        let waiting = shares.filter_map(|share| Some((share, share.entries.oldest()?)));
        let (share, oldest) = waiting.max_by_key(|(share, _)| share.of(shortage))?;
        Some((share.face, EntryId::from_place(oldest)))
    }

    /// Adds the record of a downstream, or renews it, which never makes it expire earlier; sets the entry's expiry to its latest
    /// record's.
    pub(crate) fn record_received(&mut self, id: EntryId, record: InRecord, share: ShareId) {
        let entry = &mut self.entries[id.place()];
        let share = &mut self.shares[share.0 as usize];
        self.memory -= entry.memory_received();
        share.octets += record.wire.len() as u64;
        let mut records = entry.in_records.iter_mut();
        match records.find(|old| old.face == record.face) {
            Some(old) => {
                share.octets -= old.wire.len() as u64;
                let expiry = old.expiry.max(record.expiry);
                *old = InRecord { expiry, ..record };
            }
            None => {
                share.records += 1;
                if entry.in_records.is_empty() {
                    share.entries.append(&mut self.links, id.place());
                }
                entry.in_records.push(record);
            }
        }
        self.memory += entry.memory_received();
        entry.expire_with_records();
    }

    /// Forgets that the downstream waits; returns its record. What it takes of its face's share, and of the next one's, is for
    /// [`leave`](Self::leave) and [`take_over`](Self::take_over).
    pub(crate) fn take_in_record(&mut self, id: EntryId, face: FaceId) -> Option<InRecord> {
        let entry = &mut self.entries[id.place()];
        let mut records = entry.in_records.iter();
        let at = records.position(|record| record.face == face)?;
        self.memory -= entry.memory_received();
        let record = entry.in_records.remove(at);
        self.memory += entry.memory_received();
        entry.expire_with_records();
        Some(record)
    }

    /// Takes a record of entry `id` out of its face's `share`; `is_first` if it was the entry's first.
    pub(crate) fn leave(&mut self, id: EntryId, record: &InRecord, is_first: bool, share: ShareId) {
        let share = &mut self.shares[share.0 as usize];
        share.records -= 1;
        share.octets -= record.wire.len() as u64;
        if is_first {
            share.entries.remove(&mut self.links, id.place());
        }
    }

    /// Makes entry `id` one of the face whose record has become its first.
    pub(crate) fn take_over(&mut self, id: EntryId, share: ShareId) {
        let share = &mut self.shares[share.0 as usize];
        share.entries.append(&mut self.links, id.place());
    }

    /// The entries that a face waits for.
    pub(crate) fn awaited_by(&self, face: FaceId) -> Vec<EntryId> {
        let waits = |(_, entry): &(EntryId, &PendingInterest)| entry.in_record(face).is_some();
        self.iter().filter(waits).map(|(id, _)| id).collect()
    }

    /// Lets no entry count for a choice that is no more.
    pub(crate) fn forget_choice(&mut self, choice: ChoiceId) {
        for (_, entry) in &mut self.entries {
            if entry.choice == choice {
                entry.choice = ChoiceId::NONE;
            }
        }
    }

    /// Renews or adds the record of an Interest that was sent now; `next` is how suppression grows.
    pub(crate) fn record_sent(
        &mut self,
        id: EntryId,
        record: OutRecord,
        next: impl Fn(Duration) -> Duration,
    ) {
        let entry = &mut self.entries[id.place()];
        self.memory -= entry.memory_sent();
        entry.record_sent(record, next);
        self.memory += entry.memory_sent();
    }

    /// A copy of an Interest, for an entry or a record.
    pub(crate) fn copy(&mut self, octets: &[u8]) -> Bytes {
        self.spares.copy(octets)
    }

    /// Takes back the memory of a former entry's Interests, of those that were [copies](Self::copy).
    pub(crate) fn take_back(&mut self, entry: PendingInterest, keep: Keep) {
        drop(entry.name);
        for record in entry.in_records {
            if keep.copies(record.wire.len()) {
                self.spares.take_back(record.wire);
            }
        }
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, id: EntryId) -> PendingInterest {
        let entry = self.entries.remove(id.place());
        self.memory -= entry.memory();
        let is_it = |&other: &u32| other as usize == id.place();
        if let Ok(place) = self.index.find_entry(entry.hash, is_it) {
            place.remove();
        }
        if entry.can_be_prefix {
            self.prefix_depths[entry.depth as usize] -= 1;
        }
        if entry.asks_for_digest
            && let Some(parent) = self.digests.remove(&id)
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
            for id in self.places(hashes.hash(depth)) {
                let entry = &self.entries[id];
                if entry.can_be_prefix
                    && entry.depth as usize == depth
                    && entry.name.is_prefix_of(name)
                {
                    found.push(EntryId::from_place(id));
                }
            }
        }
        for id in self.places(hashes.whole()) {
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
        let hash = hashes.full_name(&digest);
        let entries = self.places(hash);
        let is_match = |id: &usize| self.entries[*id].name == full;
        found.extend(entries.filter(is_match).map(EntryId::from_place));
    }

    /// Places of entries whose names may have this hash.
    fn places(&self, hash: u64) -> impl Iterator<Item = usize> {
        self.index.iter_hash(hash).map(|&id| id as usize)
    }
}

#[cfg(test)]
#[path = "pit_tests.rs"]
mod tests;
