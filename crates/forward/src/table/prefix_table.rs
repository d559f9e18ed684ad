//! Values by name prefix, found by longest match.

use hashbrown::HashTable;
use namecast_packet::Name;

use super::{AddRouteError, NameHasher, NameHashes};

/// Most components of a prefix in a table, as in NFD.
pub(crate) const MAX_PREFIX_COMPONENTS: usize = 32;

#[derive(Debug)]
struct Entry<T> {
    prefix: Name,
    hash: u64,
    depth: usize,
    value: T,
}

/// Values by name prefix. Nothing is ever learnt from the order in which the table holds them.
#[derive(Debug)]
pub(crate) struct PrefixTable<T> {
    hasher: NameHasher,
    capacity: usize,
    entries: HashTable<Entry<T>>,
    /// How many prefixes there are of each length, so that look-ups skip lengths without any.
    depths: [usize; MAX_PREFIX_COMPONENTS + 1],
}

impl<T> PrefixTable<T> {
    pub(crate) fn new(hasher: NameHasher, capacity: usize) -> Self {
        Self {
            hasher,
            capacity,
            entries: HashTable::new(),
            depths: [0; MAX_PREFIX_COMPONENTS + 1],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
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
        let is_it = |entry: &Entry<T>| entry.prefix == *prefix;
        if self.entries.find(hash, is_it).is_none() {
            if self.entries.len() >= self.capacity {
                return Err(AddRouteError::TableFull);
            }
            let entry = Entry {
                prefix: prefix.detached(),
                hash,
                depth,
                value: make(),
            };
            self.entries.insert_unique(hash, entry, |entry| entry.hash);
            self.depths[depth] += 1;
        }
        let entry = self.entries.find_mut(hash, is_it);
        Ok(&mut entry.expect("inserted if it was not there").value)
    }

    pub(crate) fn get_mut(&mut self, prefix: &Name) -> Option<&mut T> {
        let hashes = self.hasher.hashes(prefix, MAX_PREFIX_COMPONENTS)?;
        let entry = self
            .entries
            .find_mut(hashes.whole(), |entry| entry.prefix == *prefix)?;
        Some(&mut entry.value)
    }

    pub(crate) fn remove(&mut self, prefix: &Name) {
        let Some(hashes) = self.hasher.hashes(prefix, MAX_PREFIX_COMPONENTS) else {
            return;
        };
        let found = self
            .entries
            .find_entry(hashes.whole(), |entry| entry.prefix == *prefix);
        if let Ok(entry) = found {
            self.depths[entry.remove().0.depth] -= 1;
        }
    }

    /// Keeps the values for which `keep` says so.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let depths = &mut self.depths;
        self.entries.retain(|entry| {
            let kept = keep(&mut entry.value);
            depths[entry.depth] -= usize::from(!kept);
            kept
        });
    }

    /// The value of the longest prefix of `name`, whose hashes are `hashes`.
    pub(crate) fn longest_match(&self, name: &Name, hashes: &NameHashes) -> Option<&T> {
        let deepest = hashes.depth().min(MAX_PREFIX_COMPONENTS);
        (0..=deepest)
            .rev()
            .filter(|&depth| self.depths[depth] > 0)
            .find_map(|depth| {
                let octets = hashes.prefix(name, depth);
                let is_it = |entry: &Entry<T>| entry.prefix.value() == octets;
                self.entries.find(hashes.hash(depth), is_it)
            })
            .map(|entry| &entry.value)
    }
}
