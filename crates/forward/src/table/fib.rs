//! Forwarding information base: which faces lead to which names.

use namecast_packet::{Interest, Name};
use smallvec::SmallVec;

use super::prefix_table::PrefixTable;
use super::{AddRouteError, NameHasher, NameHashes};
use crate::config::Config;
use crate::face::FaceId;

/// A face that leads to a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Where it leads.
    pub face: FaceId,
    /// Which of several to take: the lowest.
    pub cost: u64,
}

/// Next hops of a prefix, mostly one, which needs no memory of its own to be fetched from.
pub(crate) type NextHops = SmallVec<[NextHop; 1]>;

/// Next hops by prefix; each prefix's list is sorted by cost, then by face.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Fib {
    prefixes: PrefixTable<NextHops>,
    hasher: NameHasher,
    /// Changes that there were.
    version: u64,
}

impl Fib {
    pub(crate) fn new(hasher: NameHasher, capacity: usize) -> Self {
        Self {
            prefixes: PrefixTable::new(hasher, capacity),
            hasher,
            version: 1,
        }
    }

    /// Returns a number that differs after every change.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// Returns the components of the longest prefix.
    pub(crate) fn deepest(&self) -> usize {
        self.prefixes.deepest()
    }

    /// Adds a route, or changes its cost; returns whether the next hop is new.
    pub(crate) fn add(&mut self, prefix: &Name, hop: NextHop) -> Result<bool, AddRouteError> {
        self.version += 1;
        let hops = self.prefixes.get_or_insert(prefix, NextHops::new)?;
        let before = hops.len();
        hops.retain(|other| other.face != hop.face);
        let is_new = hops.len() == before;
        let at = hops.partition_point(|other| (other.cost, other.face) < (hop.cost, hop.face));
        hops.insert(at, hop);
        Ok(is_new)
    }

    /// Whether there is a route.
    pub(crate) fn contains(&mut self, prefix: &Name, face: FaceId) -> bool {
        let hops = self.prefixes.get_mut(prefix);
        hops.is_some_and(|hops| hops.iter().any(|hop| hop.face == face))
    }

    /// Removes a route; a prefix without routes goes too.
    pub(crate) fn remove(&mut self, prefix: &Name, face: FaceId) {
        self.version += 1;
        let Some(hops) = self.prefixes.get_mut(prefix) else {
            return;
        };
        hops.retain(|hop| hop.face != face);
        if hops.is_empty() {
            self.prefixes.remove(prefix);
        }
    }

    /// Removes all routes to `face`.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        self.version += 1;
        self.prefixes.retain(|hops| {
            hops.retain(|hop| hop.face != face);
            !hops.is_empty()
        });
    }

    /// Next hops of the longest prefix of `name` that has any, cheapest first.
    pub(crate) fn next_hops(&self, name: &Name, hashes: &NameHashes) -> &[NextHop] {
        self.prefixes
            .longest_match(name, hashes)
            .map_or(&[], SmallVec::as_slice)
    }

    /// Components of the longest prefix of `name` that has next hops; 0 if there is none.
    pub(crate) fn depth(&self, name: &Name, hashes: &NameHashes) -> usize {
        self.prefixes
            .longest_prefix(name, hashes)
            .map_or(0, |(depth, _)| depth)
    }

    /// Next hops for an Interest whose name's hashes are `hashes`: by the first delegation of its ForwardingHint that has
    /// any, or by its name if there is no hint or it leads to a region of the node's own.
    pub(crate) fn next_hops_for(
        &self,
        interest: &Interest,
        hashes: &NameHashes,
        config: &Config,
    ) -> &[NextHop] {
        let hint = interest.forwarding_hint();
        let regions = &config.producer_regions;
        let leads_here = |delegation: &Name| regions.iter().any(|r| delegation.is_prefix_of(r));
        if hint.is_empty() || hint.iter().any(leads_here) {
            return self.next_hops(interest.name(), hashes);
        }
        hint.iter()
            .filter_map(|delegation| {
                let hashes = self.hasher.hashes(delegation, config.max_name_components)?;
                Some(self.next_hops(delegation, &hashes))
            })
            .find(|hops| !hops.is_empty())
            .unwrap_or(&[])
    }

    pub(crate) fn len(&self) -> usize {
        self.prefixes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name_hash::HashKey;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn hop(face: u64, cost: u64) -> NextHop {
        NextHop {
            face: FaceId::from_number(face),
            cost,
        }
    }

    fn lookup(fib: &Fib, uri: &str) -> Vec<NextHop> {
        let name = name(uri);
        let hashes = NameHasher::new(HashKey::FIXED).hashes(&name, 64).unwrap();
        fib.next_hops(&name, &hashes).to_vec()
    }

    #[test]
    fn the_longest_prefix_wins_and_its_cheapest_hop_comes_first() {
        let mut fib = Fib::new(NameHasher::new(HashKey::FIXED), 10);
        fib.add(&name("/"), hop(1, 0)).unwrap();
        fib.add(&name("/a"), hop(2, 20)).unwrap();
        fib.add(&name("/a"), hop(3, 10)).unwrap();
        fib.add(&name("/a/b/c"), hop(4, 0)).unwrap();
        assert_eq!(lookup(&fib, "/a/b"), [hop(3, 10), hop(2, 20)]);
        assert_eq!(lookup(&fib, "/a/b/c/d"), [hop(4, 0)]);
        assert_eq!(lookup(&fib, "/ab"), [hop(1, 0)]);
        assert_eq!(fib.add(&name("/a"), hop(2, 5)), Ok(false));
        assert_eq!(lookup(&fib, "/a"), [hop(2, 5), hop(3, 10)]);
        fib.remove(&name("/a/b/c"), FaceId::from_number(4));
        assert_eq!(lookup(&fib, "/a/b/c/d"), [hop(2, 5), hop(3, 10)]);
        fib.remove_face(FaceId::from_number(2));
        fib.remove_face(FaceId::from_number(3));
        assert_eq!(lookup(&fib, "/a/b/c/d"), [hop(1, 0)]);
        assert_eq!(fib.len(), 1);
    }

    #[test]
    fn a_full_table_and_a_name_too_deep_are_refused() {
        let mut fib = Fib::new(NameHasher::new(HashKey::FIXED), 1);
        let deep = name(&"/x".repeat(33));
        assert_eq!(fib.add(&deep, hop(1, 0)), Err(AddRouteError::NameTooLong));
        fib.add(&name("/a"), hop(1, 0)).unwrap();
        assert_eq!(
            fib.add(&name("/b"), hop(1, 0)),
            Err(AddRouteError::TableFull)
        );
        assert_eq!(fib.add(&name("/a"), hop(2, 0)), Ok(true));
    }
}
