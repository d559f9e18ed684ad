//! Places that strangers share: a source takes as many as are free, and where none is left, the one with most gives one up.
//!
//! ```text
//!              ┌─ source with most places has more than the newcomer would have ─▶ its idlest gives way
//!   no place ──┼─ the idlest of that source was not used for a while ────────────▶ it gives way
//!              └─ neither ──────────────────────────────────────────────────────▶ the newcomer is refused
//! ```
//!
//! [`Occupants`] is the rule as a plain value; [`Entrance`] applies it to the connections of a server.

use core::fmt;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast_units::{Duration, Instant};
use smart_default::SmartDefault;
use tokio_util::sync::CancellationToken;

use crate::Clock;

/// What was used less long ago is not idle.
const GRACE: Duration = Duration::from_secs(2);
/// Time in which a newcomer may come to use its place: until then idle ones give way first.
const FIRST_USE: Duration = Duration::from_secs(1);

/// Addresses that most likely belong to one site: a /24 of IPv4, a /56 of IPv6 (RFC 6177), or this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// This machine.
    Loopback,
    /// The first three octets of IPv4 addresses.
    V4([u8; 3]),
    /// The first seven octets of IPv6 addresses.
    V6([u8; 7]),
}

impl Source {
    /// Returns the source that an address belongs to.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Loopback,
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, ..] = address.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Loopback => formatter.write_str("this machine"),
            Self::V4([a, b, c]) => write!(formatter, "{}/24", Ipv4Addr::new(a, b, c, 0)),
            Self::V6([a, b, c, d, e, f, g]) => {
                let address = [a, b, c, d, e, f, g, 0, 0, 0, 0, 0, 0, 0, 0, 0];
                write!(formatter, "{}/56", Ipv6Addr::from(address))
            }
        }
    }
}

/// How idle a place is, the idlest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Idleness {
    /// Since it was taken, not used at all.
    UnusedSince(Instant),
    /// Used last at this time.
    UsedAt(Instant),
}

/// Places of one source, the idlest first.
#[derive(Clone, Debug, SmartDefault)]
struct Places<K> {
    unused: BTreeSet<(Instant, K)>,
    used: BTreeSet<(Instant, K)>,
}

impl<K: Copy + Ord> Places<K> {
    fn insert(&mut self, idleness: Idleness, key: K) {
        match idleness {
            Idleness::UnusedSince(time) => self.unused.insert((time, key)),
            Idleness::UsedAt(time) => self.used.insert((time, key)),
        };
    }

    fn remove(&mut self, idleness: Idleness, key: K) {
        match idleness {
            Idleness::UnusedSince(time) => self.unused.remove(&(time, key)),
            Idleness::UsedAt(time) => self.used.remove(&(time, key)),
        };
    }

    fn len(&self) -> usize {
        self.unused.len() + self.used.len()
    }

    fn idlest(&self) -> Option<(Idleness, K)> {
        let unused = self.unused.first();
        let unused = unused.map(|&(time, key)| (Idleness::UnusedSince(time), key));
        let used = self.used.first();
        unused.or_else(|| used.map(|&(time, key)| (Idleness::UsedAt(time), key)))
    }

    /// Returns the place that anybody may have: an unused one whose time for a first use is over, an idle one, or any unused one.
    fn forfeited(&self, now: Instant) -> Option<K> {
        let is_over = |&&(since, _): &&(Instant, K), time| now.since(since) >= time;
        let unused = self.unused.first();
        let idle = || self.used.first().filter(|it| is_over(it, GRACE));
        let mature = unused.filter(|it| is_over(it, FIRST_USE));
        mature.or_else(idle).or(unused).map(|&(_, key)| key)
    }
}

/// Those who have places, by source and by when they last used them.
#[derive(Clone, Debug, SmartDefault)]
pub struct Occupants<K> {
    occupants: BTreeMap<K, (Source, Idleness)>,
    by_source: BTreeMap<Source, Places<K>>,
    /// Sources, those with most places first, and of these the one with the idlest occupant.
    order: BTreeSet<(Reverse<usize>, Idleness, Source)>,
}

impl<K: Copy + Ord> Occupants<K> {
    /// Records that `key` of `source` takes a place, of no use yet. One that had a place already has this one instead.
    pub fn insert(&mut self, now: Instant, key: K, source: Source) {
        self.set(key, source, Idleness::UnusedSince(now));
    }

    /// Records that `key` used its place.
    pub fn touch(&mut self, now: Instant, key: K) {
        if let Some(&(source, idleness)) = self.occupants.get(&key)
            && idleness < Idleness::UsedAt(now)
        {
            self.set(key, source, Idleness::UsedAt(now));
        }
    }

    fn set(&mut self, key: K, source: Source, idleness: Idleness) {
        self.remove(key);
        self.occupants.insert(key, (source, idleness));
        self.change(source, |places| places.insert(idleness, key));
    }

    /// Frees the place of `key`.
    pub fn remove(&mut self, key: K) {
        if let Some((source, idleness)) = self.occupants.remove(&key) {
            self.change(source, |places| places.remove(idleness, key));
        }
    }

    fn change(&mut self, source: Source, change: impl FnOnce(&mut Places<K>)) {
        let places = self.by_source.entry(source).or_default();
        let rank = |places: &Places<K>| {
            let (idleness, _) = places.idlest()?;
            Some((Reverse(places.len()), idleness, source))
        };
        if let Some(before) = rank(places) {
            self.order.remove(&before);
        }
        change(places);
        match rank(places) {
            Some(after) => {
                self.order.insert(after);
            }
            None => {
                self.by_source.remove(&source);
            }
        }
    }

    /// Returns who gives way for one more of `newcomer`, where no place is free; `None`: nobody.
    pub fn gives_way(&self, now: Instant, newcomer: Source) -> Option<K> {
        let &(Reverse(most), _, source) = self.order.first()?;
        let places = self.by_source.get(&source)?;
        let is_unfair = most > self.count(newcomer) + 1;
        let taken = || Some(places.idlest().filter(|_| is_unfair)?.1);
        places.forfeited(now).or_else(taken)
    }

    /// Returns when `key` last used its place, if it ever did.
    pub fn used_at(&self, key: K) -> Option<Instant> {
        match self.occupants.get(&key)?.1 {
            Idleness::UnusedSince(_) => None,
            Idleness::UsedAt(time) => Some(time),
        }
    }

    /// Returns the number of places that `source` has.
    pub fn count(&self, source: Source) -> usize {
        self.by_source.get(&source).map_or(0, Places::len)
    }

    /// Returns the number of places that are taken.
    pub fn len(&self) -> usize {
        self.occupants.len()
    }

    /// Returns whether no place is taken.
    pub fn is_empty(&self) -> bool {
        self.occupants.is_empty()
    }

    /// Returns all sources with the number of places of each, those with most first.
    pub fn sources(&self) -> impl Iterator<Item = (Source, usize)> {
        let order = self.order.iter();
        order.map(|&(Reverse(count), _, source)| (source, count))
    }
}

/// A server's places for connections. Clones share them.
#[derive(Clone, Debug)]
pub struct Entrance(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    places: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    occupants: Occupants<u64>,
    connections: BTreeMap<u64, Connection>,
    next: u64,
}

#[derive(Debug)]
struct Connection {
    /// When it was used, in nanoseconds of the clock: written by whoever serves it, without a lock.
    used_at: Arc<AtomicU64>,
    /// Ends it.
    gives_way: CancellationToken,
}

impl Entrance {
    /// So many places.
    pub fn new(places: usize) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared { places, state }))
    }

    /// Takes a place for a connection from `address`. Another connection may end for that.
    pub fn admit(&self, address: IpAddr) -> Option<Place> {
        let (now, source) = (Clock::new().now(), Source::of(address));
        let mut state = self.lock();
        if state.occupants.len() >= self.0.places {
            let idlest = state.idlest(now, source)?;
            state.remove(idlest)?.gives_way.cancel();
        }
        let key = state.next;
        state.next += 1;
        let used_at = Arc::new(AtomicU64::new(nanoseconds(now)));
        let gives_way = CancellationToken::new();
        let connection = Connection {
            used_at: Arc::clone(&used_at),
            gives_way: gives_way.clone(),
        };
        state.connections.insert(key, connection);
        state.occupants.insert(now, key, source);
        state.occupants.touch(now, key);
        Some(Place {
            entrance: self.clone(),
            key,
            used_at,
            gives_way,
        })
    }

    /// Returns the number of places that are taken.
    pub fn taken(&self) -> usize {
        self.lock().occupants.len()
    }

    /// Returns all sources with the number of places of each, those with most first.
    pub fn sources(&self) -> Vec<(Source, usize)> {
        self.lock().occupants.sources().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns who gives way for a newcomer, once it is known when those who might were last used.
    fn idlest(&mut self, now: Instant, newcomer: Source) -> Option<u64> {
        loop {
            let idlest = self.occupants.gives_way(now, newcomer)?;
            let noted = self.occupants.used_at(idlest)?;
            let used_at = self
                .connections
                .get(&idlest)?
                .used_at
                .load(Ordering::Relaxed);
            let used_at = Instant::ZERO + Duration::from_nanos(used_at);
            if used_at <= noted {
                return Some(idlest);
            }
            self.occupants.touch(used_at, idlest);
        }
    }

    fn remove(&mut self, key: u64) -> Option<Connection> {
        self.occupants.remove(key);
        self.connections.remove(&key)
    }
}

/// One connection's place, which is free once this is dropped.
#[derive(Debug)]
#[must_use = "dropping the place frees it"]
pub struct Place {
    entrance: Entrance,
    key: u64,
    used_at: Arc<AtomicU64>,
    gives_way: CancellationToken,
}

impl Place {
    /// Records that the connection is used.
    pub fn touch(&self) {
        let now = nanoseconds(Clock::new().now());
        self.used_at.store(now, Ordering::Relaxed);
    }

    /// Waits until the place is another's; then the connection ends.
    pub fn gives_way(&self) -> impl Future<Output = ()> + Send + use<> {
        self.gives_way.clone().cancelled_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self.entrance.lock().remove(self.key);
    }
}

fn nanoseconds(time: Instant) -> u64 {
    time.since(Instant::ZERO).as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn source(text: &str) -> Source {
        Source::of(text.parse().unwrap())
    }

    #[test]
    fn a_source_is_what_one_site_has() {
        for (address, expected) in [
            ("127.0.0.1", "this machine"),
            ("127.9.9.9", "this machine"),
            ("::1", "this machine"),
            ("::ffff:127.0.0.1", "this machine"),
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.1", "192.0.2.0/24"),
            ("2001:db8:1:2ff::1", "2001:db8:1:200::/56"),
            ("2001:db8:1:300::1", "2001:db8:1:300::/56"),
        ] {
            assert_eq!(source(address).to_string(), expected, "{address}");
        }
    }

    /// A has 3 places, B 2, C 1, all used now. One more of C, or of D, takes A's idlest; one more of B, which would have as many as
    /// A, and of A itself, nobody's.
    #[test]
    fn who_has_more_gives_way_to_who_has_less() {
        let [a, b, c, d] = ["10.0.1.1", "10.0.2.1", "10.0.3.1", "10.0.4.1"].map(source);
        let mut occupants = Occupants::default();
        for (key, source) in [(1, a), (2, a), (3, a), (4, b), (5, b), (6, c)] {
            occupants.insert(at(9), key, source);
            occupants.touch(at(10), key);
        }
        occupants.touch(at(11), 1);
        for (newcomer, expected) in [(a, None), (b, None), (c, Some(2)), (d, Some(2))] {
            assert_eq!(occupants.gives_way(at(11), newcomer), expected);
        }
        assert_eq!(
            occupants.sources().collect::<Vec<_>>(),
            [(a, 3), (b, 2), (c, 1)]
        );
        occupants.remove(2);
        occupants.remove(2);
        assert_eq!(occupants.count(a), 2);
    }

    /// Two of equal sources: the one that was not used for 2 s gives way to anybody, and not a nanosecond before.
    #[test]
    fn the_idlest_of_equals_gives_way_once_it_is_idle() {
        let [a, b] = ["10.0.1.1", "10.0.2.1"].map(source);
        let mut occupants = Occupants::default();
        for (time, key, source) in [(at(10), 1, a), (at(11), 2, b)] {
            occupants.insert(time, key, source);
            occupants.touch(time, key);
        }
        let just_before = at(12).saturating_sub(Duration::from_nanos(1));
        for newcomer in [a, b] {
            assert_eq!(occupants.gives_way(just_before, newcomer), None);
            assert_eq!(occupants.gives_way(at(12), newcomer), Some(1));
        }
        occupants.touch(at(12), 1);
        assert_eq!(occupants.gives_way(at(13), a), Some(2));
        occupants.insert(at(10), 3, b);
        occupants.insert(at(11), 4, a);
        assert_eq!(occupants.gives_way(at(12), a), Some(3));
    }

    /// While a place that was taken at 10 s may come to be used, an idle one gives way in its stead; then it goes before that one.
    #[test]
    fn a_newcomer_has_time_for_a_first_use() {
        let a = source("10.0.1.1");
        let mut occupants = Occupants::default();
        occupants.insert(at(1), 1, a);
        occupants.touch(at(8), 1);
        occupants.insert(at(10), 2, a);
        let just_before = at(11).saturating_sub(Duration::from_nanos(1));
        assert_eq!(occupants.gives_way(just_before, a), Some(1));
        assert_eq!(occupants.gives_way(at(11), a), Some(2));
        // One that is in use never goes before an unused one.
        occupants.touch(just_before, 1);
        assert_eq!(occupants.gives_way(just_before, a), Some(2));
    }

    /// One of 300 viewers behind an address loses nothing to the others while places are free, and one of elsewhere gets in when
    /// none is.
    #[test]
    fn a_full_entrance_lets_in_who_comes_from_elsewhere() {
        let crowd = "192.0.2.1".parse().unwrap();
        let entrance = Entrance::new(300);
        let mut places: Vec<_> = (0..300).map(|_| entrance.admit(crowd).unwrap()).collect();
        let given_away = |places: &[Place]| -> Vec<_> {
            let is_given_away = |&at: &usize| places[at].gives_way.is_cancelled();
            (0..places.len()).filter(is_given_away).collect()
        };
        assert!(given_away(&places).is_empty());
        assert!(entrance.admit(crowd).is_none());
        places[0].touch();
        let other = entrance.admit("198.51.100.1".parse().unwrap()).unwrap();
        assert_eq!(given_away(&places), [1]);
        drop(places.remove(1));
        assert_eq!(entrance.sources().iter().map(|it| it.1).sum::<usize>(), 300);
        drop((places, other));
        assert_eq!(entrance.sources(), []);
    }
}
