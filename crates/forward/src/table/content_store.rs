//! Content store: Data that passed, bounded in bytes.
//!
//! Packets are copied in, unless the configuration says that their frames have memory of their own. What arrives is a slice of
//! whatever buffer the link received into, and a slice keeps its whole buffer alive; a copy makes the bound true.
//!
//! Names are in order only from the first Interest with CanBePrefix on, as keeping them so takes as much time as all else in
//! the store. If that Interest comes late, putting a full store in order takes the time of some tens of thousands of packets.

use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;
use hashbrown::HashTable;
use namecast_packet::{Data, Interest, Name};
use namecast_units::{ByteSize, Instant};
use sha2::{Digest, Sha256};
use slab::Slab;
use smallvec::SmallVec;

use super::eviction::Eviction;
use super::order::{Named, Order};
use super::spares::Spares;
use super::{NameHashes, memory};
use crate::config::{CachePolicy, ContentStoreConfig, Keep};

/// How much the content store holds, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Memory that the packets may take, bookkeeping included.
    pub capacity: ByteSize,
    /// Whether Data is taken in.
    pub admits: bool,
    /// Whether Interests are answered.
    pub serves: bool,
}

/// What became of an erasure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erased {
    /// Packets that were removed.
    pub count: usize,
    /// Whether there are more of that prefix.
    pub is_more_left: bool,
}

#[derive(Debug)]
struct Entry {
    wire: Bytes,
    /// Where in `wire` the name's TLV-VALUE is.
    name: Range<u32>,
    hash: u64,
    /// First instant at which the packet is not fresh any more. Zero: never was, as it has no FreshnessPeriod.
    stale_from: Instant,
}

impl Entry {
    fn name(&self) -> &[u8] {
        &self.wire[self.name.start as usize..self.name.end as usize]
    }

    fn is_named(&self, name: &[u8], hash: u64) -> bool {
        self.hash == hash && self.name() == name
    }

    fn is_fresh(&self, now: Instant) -> bool {
        now < self.stale_from
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.wire).into()
    }
}

/// Cached Data.
#[derive(Debug)]
#[repr(C)]
pub struct ContentStore {
    // First what look-ups touch, then what insertions do.
    /// Entries by hash of their name. A place takes 32 bits.
    index: HashTable<u32>,
    options: CacheOptions,
    used: ByteSize,
    /// Memory that a packet takes besides its octets.
    overhead: ByteSize,
    entries: Slab<Entry>,
    /// Packets whose names begin with `/localhost`.
    local_packets: usize,
    keep: Keep,
    spares: Spares,
    eviction: Eviction,
    /// From the first look-up of a prefix on.
    order: Option<Order>,
    max_versions: usize,
}

impl Named for Slab<Entry> {
    fn name(&self, place: usize) -> &[u8] {
        self[place].name()
    }

    fn hash(&self, place: usize) -> u64 {
        self[place].hash
    }

    fn stale_from(&self, place: usize) -> Instant {
        self[place].stale_from
    }
}

impl ContentStore {
    pub(crate) fn new(keep: Keep, config: ContentStoreConfig) -> Self {
        let ContentStoreConfig {
            policy, capacity, ..
        } = config;
        Self {
            keep,
            spares: Spares::default(),
            options: CacheOptions {
                capacity,
                admits: true,
                serves: true,
            },
            max_versions: config.max_versions.max(1),
            used: ByteSize::ZERO,
            entries: Slab::new(),
            index: HashTable::new(),
            overhead: overhead(policy, keep),
            local_packets: 0,
            order: None,
            eviction: Eviction::new(policy),
        }
    }

    /// Memory that a packet takes.
    fn memory_of(&self, wire: &[u8]) -> ByteSize {
        ByteSize::of(wire) + self.overhead
    }

    /// Returns how many packets there are.
    pub fn packets(&self) -> usize {
        self.entries.len()
    }

    /// Returns the memory that the packets take.
    pub const fn size(&self) -> ByteSize {
        self.used
    }

    /// Returns how much there may be, and what becomes of it.
    pub const fn options(&self) -> CacheOptions {
        self.options
    }

    /// Changes the options; what is beyond a smaller capacity goes at once.
    pub fn set_options(&mut self, options: CacheOptions) {
        self.options = options;
        self.shrink();
    }

    /// Removes at most `limit` packets whose names begin with `prefix`, in canonical order.
    pub fn erase(&mut self, prefix: &Name, limit: usize) -> Erased {
        let had_order = self.order.is_some();
        let mut count = 0;
        while count < limit
            && let Some(id) = self.first_below(prefix)
        {
            self.remove(id);
            count += 1;
        }
        let is_more_left = self.first_below(prefix).is_some();
        if !had_order {
            // Keeping it costs each packet that passes.
            self.order = None;
        }
        Erased {
            count,
            is_more_left,
        }
    }

    /// The first packet in canonical order whose name begins with `prefix`.
    fn first_below(&mut self, prefix: &Name) -> Option<usize> {
        self.put_in_order();
        let order = self.order.as_ref()?;
        order.first(&self.entries, prefix.value())
    }

    /// Keeps `data`; one that is here already becomes fresh again.
    pub(crate) fn insert(&mut self, now: Instant, data: &Data, hashes: &NameHashes) {
        self.insert_for(now, (data, hashes), data.freshness());
    }

    /// Keeps `data`, which is fresh for `freshness`.
    pub(crate) fn insert_for(
        &mut self,
        now: Instant,
        (data, hashes): (&Data, &NameHashes),
        freshness: Duration,
    ) {
        let hash = hashes.whole();
        let size = self.memory_of(data.wire());
        if !self.options.admits || size > self.options.capacity {
            return;
        }
        // Fresh to the nanosecond at which the period ends.
        let stale_from = match freshness {
            Duration::ZERO => Instant::ZERO,
            period => now + period + Duration::from_nanos(1),
        };
        match self.has_hash(hash) {
            true => self.insert_version(data, hash, stale_from),
            false => self.add(data, hash, stale_from),
        }
        self.shrink();
    }

    /// Removes what the policy gives up first until the rest is within the capacity.
    fn shrink(&mut self) {
        while self.used > self.options.capacity
            && let Some(victim) = self.eviction.victim()
        {
            self.remove(victim);
        }
    }

    /// Keeps a packet of whose name, or of a name with the same hash, there are others, in place of the oldest of them if there
    /// are too many.
    fn insert_version(&mut self, data: &Data, hash: u64, stale_from: Instant) {
        let versions = self.versions(data.name().value(), hash);
        let mut ids = versions.iter().copied();
        if let Some(same) = ids.find(|&id| self.entries[id].wire == data.wire()) {
            self.eviction.touch(same);
            if stale_from > Instant::ZERO {
                self.entries[same].stale_from = stale_from;
                if let Some(order) = &mut self.order {
                    order.update(&self.entries, same);
                }
            }
            return;
        }
        let alike = self.alike(hash);
        if alike.len() >= self.max_versions {
            let oldest = self.eviction.oldest_of(&alike);
            oldest.into_iter().for_each(|id| self.remove(id));
        }
        self.add(data, hash, stale_from);
    }

    /// The first packet in canonical order that answers `interest`; becomes the most recently used one.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        interest: &Interest,
        hashes: &NameHashes,
    ) -> Option<Bytes> {
        if !self.options.serves {
            return None;
        }
        if self.local_packets == 0 && is_local(interest.name().value()) {
            // Management is asked by prefixes, and its answers are never cached: order is not worth while for these.
            return None;
        }
        // Where prefixes are asked for at all, that begins before the store is large: then order costs least.
        if interest.can_be_prefix() {
            self.keep_order();
        }
        if self.entries.is_empty() {
            return None;
        }
        let fresh = interest.must_be_fresh();
        let name = interest.name();
        let found = if hashes.ends_in_digest() {
            self.find_digest(now, interest, hashes)
        } else if !interest.can_be_prefix() {
            self.first_version(name.value(), hashes.whole(), now, fresh)
        } else {
            self.find_prefix(now, name, fresh)
        }?;
        self.eviction.touch(found);
        Some(self.entries[found].wire.clone())
    }

    fn find_digest(&self, now: Instant, interest: &Interest, hashes: &NameHashes) -> Option<usize> {
        let digest = interest.name().last()?.value;
        let versions = self.versions(interest.name().parent().value(), hashes.parent());
        versions.into_iter().find(|&id| {
            let entry = &self.entries[id];
            (entry.is_fresh(now) || !interest.must_be_fresh()) && entry.digest() == digest
        })
    }

    fn find_prefix(&self, now: Instant, prefix: &Name, fresh: bool) -> Option<usize> {
        let (order, prefix) = (self.order.as_ref()?, prefix.value());
        let first = match fresh {
            true => order.first_fresh(&self.entries, prefix, now),
            false => order.first(&self.entries, prefix),
        }?;
        let first = &self.entries[first];
        self.first_version(first.name(), first.hash, now, fresh)
    }

    /// Keeps names in order from now on. What that takes is taken from the packets, beforehand: memory that has
    /// been used once stays with the process.
    fn keep_order(&mut self) {
        if self.order.is_none() {
            self.overhead += Order::MEMORY_PER_PLACE;
            let each = Order::MEMORY_PER_PLACE.as_bytes();
            self.used += ByteSize::bytes(each * self.entries.len() as u64);
            self.shrink();
            self.put_in_order();
        }
    }

    fn put_in_order(&mut self) {
        let entries = &self.entries;
        self.order.get_or_insert_with(|| {
            let mut order = Order::default();
            entries.iter().for_each(|(id, _)| order.add(entries, id));
            order
        });
    }

    /// The packet of exactly this name with the smallest digest, among the fresh ones if `fresh`.
    fn first_version(&self, name: &[u8], hash: u64, now: Instant, fresh: bool) -> Option<usize> {
        if !self.has_hash(hash) {
            return None;
        }
        let mut versions = self.versions(name, hash);
        versions.retain(|id| !fresh || self.entries[*id].is_fresh(now));
        match versions[..] {
            [] => None,
            [only] => Some(only),
            _ => versions
                .into_iter()
                .min_by_key(|&id| self.entries[id].digest()),
        }
    }

    /// Whether there is a packet whose name has this hash. Mostly there is none, which takes less time to see than to list.
    fn has_hash(&self, hash: u64) -> bool {
        let is_it = |&id: &u32| self.entries[id as usize].hash == hash;
        self.index.find(hash, is_it).is_some()
    }

    /// Packets that a look-up of a name with this hash compares with it.
    #[cfg(test)]
    pub(crate) fn candidates(&self, hash: u64) -> usize {
        self.index.iter_hash(hash).count()
    }

    /// All packets whose names have this hash.
    fn alike(&self, hash: u64) -> SmallVec<[usize; 8]> {
        let places = self.index.iter_hash(hash).map(|&id| id as usize);
        places.filter(|&id| self.entries[id].hash == hash).collect()
    }

    /// All packets of exactly this name, in order of their place.
    fn versions(&self, name: &[u8], hash: u64) -> SmallVec<[usize; 8]> {
        let mut ids = SmallVec::new();
        for id in self.index.iter_hash(hash).map(|&id| id as usize) {
            if self.entries[id].is_named(name, hash) {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        ids
    }

    fn add(&mut self, data: &Data, hash: u64, stale_from: Instant) {
        let wire = match self.keep.copies(data.wire().len()) {
            true => self.spares.copy(data.wire()),
            false => data.wire().clone(),
        };
        let entry = Entry {
            name: small(data.name_range()),
            wire,
            hash,
            stale_from,
        };
        self.used += self.memory_of(&entry.wire);
        self.local_packets += usize::from(is_local(entry.name()));
        let id = self.entries.insert(entry);
        if let Some(order) = &mut self.order {
            order.add(&self.entries, id);
        }
        let entries = &self.entries;
        let hash_of = |&id: &u32| entries[id as usize].hash;
        self.index.insert_unique(hash, memory::short(id), hash_of);
        self.eviction.add(id, hash);
    }

    fn remove(&mut self, id: usize) {
        self.eviction.remove(id);
        if let Some(order) = &mut self.order {
            order.remove(&self.entries, id);
        }
        let entry = self.entries.remove(id);
        self.used -= self.memory_of(&entry.wire);
        self.local_packets -= usize::from(is_local(entry.name()));
        let is_it = |&other: &u32| other as usize == id;
        if let Ok(place) = self.index.find_entry(entry.hash, is_it) {
            place.remove();
        }
        if self.keep.copies(entry.wire.len()) {
            self.spares.take_back(entry.wire);
        }
    }
}

/// An [`Entry`].
const ENTRY: ByteSize = ByteSize::bytes(56);
/// A packet's entry in the index. Packets come and go, which leaves marks in a hash table: it grows once more where it is
/// more than half full of them, and then is between 7/32 and 7/16 full. Five octets an entry, 16 in the middle.
const INDEX: ByteSize = ByteSize::bytes(16);

const _: () = memory::check::<Entry>(ENTRY);

/// Memory that a cached packet takes besides its octets, without its place in [`Order`].
fn overhead(policy: CachePolicy, keep: Keep) -> ByteSize {
    let buffer = match keep {
        Keep::Frames => memory::FRAME,
        Keep::Copies | Keep::LargeFrames => memory::COPY,
    };
    ENTRY + INDEX + buffer + Eviction::memory_per_place(policy)
}

/// Whether a name begins with `/localhost`, by its TLV-VALUE.
fn is_local(name: &[u8]) -> bool {
    name.starts_with(b"\x08\x09localhost")
}

/// Packets are short.
fn small(range: Range<usize>) -> Range<u32> {
    let short = |at: usize| u32::try_from(at).expect("packets have 8800 octets at most");
    short(range.start)..short(range.end)
}

#[cfg(test)]
#[path = "content_store_tests.rs"]
mod tests;
