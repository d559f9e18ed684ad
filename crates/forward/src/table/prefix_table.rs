//! Values by name prefix, found by longest match.

use hashbrown::HashTable;
use namecast_packet::Name;
use slab::Slab;

use super::{AddRouteError, NameHasher, NameHashes, memory};

/// Most components of a prefix in a table, as in NFD.
pub(crate) const MAX_PREFIX_COMPONENTS: usize = 32;

#[derive(Debug)]
struct Entry<T> {
    prefix: Name,
    hash: u64,
    depth: usize,
    value: T,
}

/// Values by name prefix.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PrefixTable<T> {
    // First what look-ups touch.
    /// Bit by bit the lengths of which there are any, so that look-ups skip the others.
    used_depths: u64,
    /// Entries by hash of their prefix. A place takes 32 bits.
    index: HashTable<u32>,
    entries: Slab<Entry<T>>,
    /// How many prefixes there are of each length, up to the largest there was.
    depths: Vec<usize>,
    hasher: NameHasher,
    capacity: usize,
}

const _: () = assert!(MAX_PREFIX_COMPONENTS < u64::BITS as usize);

impl<T> PrefixTable<T> {
    pub(crate) fn new(hasher: NameHasher, capacity: usize) -> Self {
        Self {
            hasher,
            capacity,
            entries: Slab::new(),
            index: HashTable::new(),
            depths: Vec::new(),
            used_depths: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the components of the longest prefix; 0 if there is none.
    #[inline]
    pub(crate) fn deepest(&self) -> usize {
        self.used_depths.checked_ilog2().unwrap_or(0) as usize
    }

    /// The value of exactly `prefix`, made by `make` if there is none.
    pub(crate) fn get_or_insert(
        &mut self,
        prefix: &Name,
        make: impl FnOnce() -> T,
    ) -> Result<&mut T, AddRouteError> {
        let hashes = self
            .hasher
            .hashes(prefix, MAX_PREFIX_COMPONENTS)
            .ok_or(AddRouteError::NameTooLong)?;
        let (hash, depth) = (hashes.whole(), hashes.depth());
        let id = match self.find(hash, depth, prefix) {
            Some(id) => id,
            None if self.entries.len() >= self.capacity => return Err(AddRouteError::TableFull),
            None => {
                let id = self.entries.insert(Entry {
                    prefix: prefix.clone(),
                    hash,
                    depth,
                    value: make(),
                });
                let entries = &self.entries;
                let hash_of = |&id: &u32| entries[id as usize].hash;
                self.index.insert_unique(hash, memory::short(id), hash_of);
                if depth >= self.depths.len() {
                    self.depths.resize(depth + 1, 0);
                }
                self.depths[depth] += 1;
                self.used_depths |= 1 << depth;
                id
            }
        };
        Ok(&mut self.entries[id].value)
    }

    /// All prefixes with their values, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &T)> {
        let all = self.entries.iter();
        all.map(|(_, entry)| (&entry.prefix, &entry.value))
    }

    pub(crate) fn get_mut(&mut self, prefix: &Name) -> Option<&mut T> {
        let id = self.find_prefix(prefix)?;
        Some(&mut self.entries[id].value)
    }

    pub(crate) fn remove(&mut self, prefix: &Name) {
        if let Some(id) = self.find_prefix(prefix) {
            self.remove_entry(id);
        }
    }

    /// The value in `place`, which [`longest_place`](Self::longest_place) gave, if it is there still.
    pub(crate) fn at(&self, place: usize) -> Option<&T> {
        self.entries.get(place).map(|entry| &entry.value)
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn at_mut(&mut self, place: usize) -> Option<&mut T> {
        self.entries.get_mut(place).map(|entry| &mut entry.value)
    }

    /// Keeps the values for which `keep` says so.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let all = self.entries.iter_mut();
        let leaving: Vec<_> = all
            .filter_map(|(id, entry)| (!keep(&mut entry.value)).then_some(id))
            .collect();
        leaving.into_iter().for_each(|id| self.remove_entry(id));
    }

    /// The value of the longest prefix of `name`, whose hashes are `hashes`.
    pub(crate) fn longest_match(&self, name: &Name, hashes: &NameHashes) -> Option<&T> {
        self.longest_prefix(name, hashes).map(|(_, value)| value)
    }

    /// The same, to be changed.
    pub(crate) fn longest_match_mut(&mut self, name: &Name, hashes: &NameHashes) -> Option<&mut T> {
        let (place, _) = self.longest_place(name, hashes)?;
        self.at_mut(place)
    }

    /// The longest prefix of `name`, whose hashes are `hashes`: its number of components, and its value.
    pub(crate) fn longest_prefix(&self, name: &Name, hashes: &NameHashes) -> Option<(usize, &T)> {
        let (place, value) = self.longest_place(name, hashes)?;
        Some((self.entries[place].depth, value))
    }

    /// The longest prefix of `name`, whose hashes are `hashes`: its place until it is removed, and its value.
    #[inline]
    pub(crate) fn longest_place(&self, name: &Name, hashes: &NameHashes) -> Option<(usize, &T)> {
        let deepest = hashes.depth().min(MAX_PREFIX_COMPONENTS);
        let mut depths = self.used_depths & ((2 << deepest) - 1);
        while let Some(depth) = depths.checked_ilog2() {
            let depth = depth as usize;
            if let Some(id) = self.find(hashes.hash(depth), depth, name) {
                return Some((id, &self.entries[id].value));
            }
            depths ^= 1 << depth;
        }
        None
    }

    /// The place of exactly `prefix`.
    pub(crate) fn place(&self, prefix: &Name) -> Option<usize> {
        self.find_prefix(prefix)
    }

    fn find_prefix(&self, prefix: &Name) -> Option<usize> {
        let hashes = self.hasher.hashes(prefix, MAX_PREFIX_COMPONENTS)?;
        self.find(hashes.whole(), hashes.depth(), prefix)
    }

    /// The entry of the first `depth` components of `name`, which hash to `hash`.
    fn find(&self, hash: u64, depth: usize, name: &Name) -> Option<usize> {
        let is_it = |&id: &u32| {
            let entry = &self.entries[id as usize];
            entry.depth == depth && entry.prefix.is_prefix_of(name)
        };
        self.index.find(hash, is_it).map(|&id| id as usize)
    }

    fn remove_entry(&mut self, id: usize) {
        let entry = self.entries.remove(id);
        self.depths[entry.depth] -= 1;
        if self.depths[entry.depth] == 0 {
            self.used_depths ^= 1 << entry.depth;
        }
        if let Ok(place) = self
            .index
            .find_entry(entry.hash, |&other| other as usize == id)
        {
            place.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use namecast_packet::Component;
    use namecast_units::Random;

    use super::*;
    use crate::name_hash::HashKey;

    fn random_name(random: &mut Random) -> Name {
        (0..random.below(5)).fold(Name::root(), |name, _| {
            let word = ["a", "b"][usize::try_from(random.below(2)).unwrap()];
            name.child(Component::generic(word))
        })
    }

    /// Against a map whose every prefix is tried, longest first.
    #[test]
    fn the_table_finds_what_a_plain_map_finds() {
        let mut random = Random::from_seed(8);
        let hasher = NameHasher::new(HashKey::FIXED);
        let mut table = PrefixTable::new(hasher, 12);
        let mut map = BTreeMap::new();
        let mut full = 0;
        for number in 0..20_000_u64 {
            let name = random_name(&mut random);
            match random.below(10) {
                0..3 => match table.get_or_insert(&name, || number) {
                    Ok(&mut value) => assert_eq!(value, *map.entry(name).or_insert(number)),
                    Err(error) => {
                        assert_eq!(error, AddRouteError::TableFull);
                        assert!(map.len() == 12 && !map.contains_key(&name));
                        full += 1;
                    }
                },
                3..5 => {
                    table.remove(&name);
                    map.remove(&name);
                }
                5 if random.chance(0.05) => {
                    table.retain(|value| *value % 2 == 0);
                    map.retain(|_, value| *value % 2 == 0);
                }
                _ => {
                    let hashes = hasher.hashes(&name, 8).unwrap();
                    let prefixes: Vec<_> = name.prefixes().collect();
                    let expected = prefixes.iter().rev().find_map(|prefix| map.get(prefix));
                    assert_eq!(table.longest_match(&name, &hashes), expected);
                    let depth = table.longest_prefix(&name, &hashes).map(|(depth, _)| depth);
                    let longest = prefixes.iter().rposition(|prefix| map.contains_key(prefix));
                    assert_eq!(depth, longest);
                }
            }
            assert_eq!(table.len(), map.len());
        }
        assert!(full > 10, "{full}");
        table.retain(|_| false);
        assert!(table.depths.iter().all(|&count| count == 0));
        assert_eq!(table.used_depths, 0);
        assert!(table.index.is_empty());
    }
}
