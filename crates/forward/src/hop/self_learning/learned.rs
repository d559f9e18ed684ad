//! Prefix announcements that were heard, and the routes made from them.

use std::collections::BTreeSet;

use bytes::Bytes;
use namecast_packet::Name;
use namecast_units::{Duration, Instant};

use crate::face::FaceId;
use crate::name_hash::{NameHasher, NameHashes};
use crate::table::{AddRouteError, PrefixTable};

/// One announcement of a prefix, by one face.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) face: FaceId,
    /// The announcement, a whole Data packet.
    pub(crate) wire: Bytes,
    /// When the announcement ends, however much it is used.
    pub(crate) until: Instant,
    /// When it is forgotten, unless the route is used before.
    pub(crate) expiry: Instant,
    /// Whether the FIB has the route by this announcement alone.
    pub(crate) is_route: bool,
    /// Interests in a row whose time ran out.
    pub(crate) timeouts: u32,
    /// When the expiry is looked at next: it may have been put off since the timer was set.
    timer: Instant,
}

impl Heard {
    pub(crate) const fn new(face: FaceId, wire: Bytes, until: Instant, expiry: Instant) -> Self {
        Self {
            face,
            wire,
            until,
            expiry,
            is_route: false,
            timeouts: 0,
            timer: expiry,
        }
    }
}

/// Announcements by prefix and face. Routes are the FIB's to keep; what is removed here says whether it was one.
#[derive(Debug)]
pub(crate) struct Learned {
    /// Prefixes whose strategy learns.
    pub(crate) choices: usize,
    capacity: usize,
    len: usize,
    prefixes: PrefixTable<Vec<Heard>>,
    timers: BTreeSet<(Instant, FaceId, Name)>,
}

impl Learned {
    /// Room for `capacity` pairs of a prefix and a face.
    pub(crate) fn new(hasher: NameHasher, capacity: usize) -> Self {
        Self {
            choices: 0,
            capacity,
            len: 0,
            prefixes: PrefixTable::new(hasher, capacity),
            timers: BTreeSet::new(),
        }
    }

    /// The announcement of exactly `prefix` by `face`.
    pub(crate) fn get_mut(&mut self, prefix: &Name, face: FaceId) -> Option<&mut Heard> {
        let heard = self.prefixes.get_mut(prefix)?;
        heard.iter_mut().find(|heard| heard.face == face)
    }

    /// Adds an announcement, or puts it in the place of the face's last one of that prefix, whose route it keeps.
    ///
    /// # Errors
    /// If there is no room, or the prefix is too long for a route.
    pub(crate) fn insert(&mut self, prefix: &Name, heard: Heard) -> Result<(), AddRouteError> {
        let old = self.remove(prefix, heard.face);
        if self.len >= self.capacity {
            return Err(AddRouteError::TableFull);
        }
        let is_route = old.is_some_and(|old| old.is_route);
        let all = self.prefixes.get_or_insert(prefix, Vec::new)?;
        self.timers
            .insert((heard.timer, heard.face, prefix.clone()));
        all.push(Heard { is_route, ..heard });
        self.len += 1;
        Ok(())
    }

    /// Forgets an announcement.
    pub(crate) fn remove(&mut self, prefix: &Name, face: FaceId) -> Option<Heard> {
        let all = self.prefixes.get_mut(prefix)?;
        let at = all.iter().position(|heard| heard.face == face)?;
        let removed = all.remove(at);
        if all.is_empty() {
            self.prefixes.remove(prefix);
        }
        self.timers.remove(&(removed.timer, face, prefix.clone()));
        self.len -= 1;
        Some(removed)
    }

    /// Forgets what a face announced.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        let of_face = self.timers.iter().filter(|(_, other, _)| *other == face);
        let prefixes: Vec<_> = of_face.map(|(.., prefix)| prefix.clone()).collect();
        for prefix in prefixes {
            self.remove(&prefix, face);
        }
    }

    /// The announcement that made the route by which an Interest for `name`, with these hashes, went to `face`.
    pub(crate) fn route_mut(
        &mut self,
        name: &Name,
        hashes: &NameHashes,
        face: FaceId,
    ) -> Option<&mut Heard> {
        let all = self.prefixes.longest_match_mut(name, hashes)?;
        let mut of_face = all.iter_mut().filter(|heard| heard.face == face);
        of_face.find(|heard| heard.is_route)
    }

    /// Forgets that announcement; gives the route's prefix.
    pub(crate) fn remove_route(
        &mut self,
        name: &Name,
        hashes: &NameHashes,
        face: FaceId,
    ) -> Option<Name> {
        self.route_mut(name, hashes, face)?;
        let prefix = self.longest_prefix(name, hashes)?;
        self.remove(&prefix, face).map(|_| prefix)
    }

    /// The longest prefix of `name`, with these hashes, that is announced.
    pub(crate) fn longest_prefix(&self, name: &Name, hashes: &NameHashes) -> Option<Name> {
        let (depth, _) = self.prefixes.longest_prefix(name, hashes)?;
        Some(name.prefix(depth))
    }

    /// Data came by the route: it works, and stays for `lifetime` from `now` if its announcement does. Tells when it would have
    /// ended, and when it does now; nothing if there is none.
    pub(crate) fn on_used(
        &mut self,
        (name, hashes): (&Name, &NameHashes),
        face: FaceId,
        now: Instant,
        lifetime: Duration,
    ) -> Option<(Instant, Instant)> {
        let route = self.route_mut(name, hashes, face)?;
        route.timeouts = 0;
        let expiry = route.until.min(now + lifetime);
        Some((core::mem::replace(&mut route.expiry, expiry), expiry))
    }

    /// An announcement of the longest announced prefix of `name`, to be passed on.
    pub(crate) fn announcement(&self, name: &Name, hashes: &NameHashes) -> Option<Bytes> {
        let all = self.prefixes.longest_match(name, hashes)?;
        all.first().map(|heard| heard.wire.clone())
    }

    /// When [`pop_due`](Self::pop_due) may have something.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, ..)| at)
    }

    /// Forgets the first announcement that ended by `now`; tells what it was.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<(Name, Heard)> {
        while let Some((at, ..)) = self.timers.first()
            && *at <= now
        {
            let (_, face, prefix) = self.timers.pop_first()?;
            let heard = self.get_mut(&prefix, face)?;
            if heard.expiry <= now {
                let heard = self.remove(&prefix, face)?;
                return Some((prefix, heard));
            }
            heard.timer = heard.expiry;
            let again = heard.timer;
            self.timers.insert((again, face, prefix));
        }
        None
    }

    /// All announcements, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, &Heard)> {
        let all = self.prefixes.iter();
        all.flat_map(|(prefix, heard)| heard.iter().map(move |heard| (prefix, heard)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use namecast_units::Random;

    use super::*;
    use crate::name_hash::HashKey;

    /// Against a map that is looked through whole: what is there, when it ends, and how much fits.
    #[test]
    fn the_table_holds_what_a_plain_map_holds() {
        let mut random = Random::from_seed(3);
        let hasher = NameHasher::new(HashKey::FIXED);
        let mut table = Learned::new(hasher, 20);
        let mut map: BTreeMap<(Name, FaceId), Instant> = BTreeMap::new();
        let (mut now, mut full, mut ended) = (Instant::ZERO, 0, 0);
        let lifetime = Duration::from_nanos(50);
        for _ in 0..20_000 {
            let prefix: Name = format!("/{}", random.below(10)).parse().unwrap();
            let face = FaceId::from_number(random.below(5));
            let key = (prefix.clone(), face);
            match random.below(10) {
                0..5 => {
                    let until = now + Duration::from_nanos(1 + random.below(200));
                    let expiry = until.min(now + lifetime);
                    let heard = Heard::new(face, Bytes::new(), until, expiry);
                    let fits = map.contains_key(&key) || map.len() < 20;
                    let added = table.insert(&prefix, heard);
                    assert_eq!(added.is_ok(), fits);
                    full += usize::from(!fits);
                    if fits {
                        table.get_mut(&prefix, face).unwrap().is_route = true;
                        map.insert(key, expiry);
                    }
                }
                5 => assert_eq!(
                    table.remove(&prefix, face).is_some(),
                    map.remove(&key).is_some()
                ),
                6 if random.chance(0.1) => {
                    table.remove_face(face);
                    map.retain(|(_, other), _| *other != face);
                }
                7 => {
                    let hashes = hasher.hashes(&prefix, 8).unwrap();
                    table.on_used((&prefix, &hashes), face, now, lifetime);
                    if let Some(expiry) = map.get_mut(&key) {
                        let until = table.get_mut(&prefix, face).unwrap().until;
                        *expiry = until.min(now + lifetime);
                    }
                }
                _ => now += Duration::from_nanos(random.below(10)),
            }
            while let Some((prefix, heard)) = table.pop_due(now) {
                assert!(
                    map.remove(&(prefix, heard.face))
                        .is_some_and(|at| at <= now)
                );
                ended += 1;
            }
            assert!(map.values().all(|&expiry| expiry > now));
            assert!(table.poll_timeout().is_none_or(|at| at > now));
            assert_eq!((table.len, table.timers.len()), (map.len(), map.len()));
            let held = table
                .iter()
                .map(|(prefix, heard)| (prefix.clone(), heard.face));
            assert_eq!(held.filter(|key| map.contains_key(key)).count(), map.len());
        }
        assert!(full > 100 && ended > 1_000, "{full} {ended}");
    }
}
