//! How next hops have served a namespace, for strategies that learn from it.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_units::{Instant, Random};

use super::AsfConfig;
use crate::face::FaceId;
use crate::link::RttEstimator;

/// Time to wait for Data from a next hop that never gave any; \[RFC6298\] §2.1, as in ndn-cxx.
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Bounds of the time to wait for Data: ndn-cxx's.
const MIN_RTO: Duration = Duration::from_millis(200);
const MAX_RTO: Duration = Duration::from_secs(60);

/// The first probe of a namespace comes at random within this time; NFD's.
const FIRST_PROBE: Duration = Duration::from_secs(5);

/// How a next hop has done, best first as for forwarding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// It gave Data, after this smoothed round-trip time.
    Working(Duration),
    /// Nobody knows.
    Unmeasured,
    /// It refused, or did not answer for several times in a row.
    TimedOut,
}

/// An Interest for Data of a measured namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) now: Instant,
    /// Hash of the namespace's prefix.
    pub(crate) namespace: u64,
    /// Face that the Interest went to, or the answer came from.
    pub(crate) face: FaceId,
    /// Hash of the Interest's name.
    pub(crate) name: u64,
}

/// Measurements by namespace and next hop.
///
/// Nothing here has a timer: what is due is done when the next hop is looked at, with the same result.
#[derive(Debug)]
pub(crate) struct Measurements {
    /// Most pairs of namespace and next hop.
    capacity: usize,
    /// Pairs there are.
    len: usize,
    /// By hash of the prefix.
    namespaces: BTreeMap<u64, Namespace>,
    /// No pair expires before.
    next_expiry: Instant,
}

/// Next hops of one namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    probe_at: Instant,
    hops: Vec<Measured>,
}

/// One next hop of a namespace.
#[derive(Debug)]
struct Measured {
    face: FaceId,
    rtt: RttEstimator,
    has_failed: bool,
    /// Interests in a row whose time was up.
    timeouts: u32,
    watched: Option<Watched>,
    /// When it is forgotten, unless it is used before.
    expiry: Instant,
}

/// An Interest whose Data is waited for; of each next hop one at a time, as in NFD.
#[derive(Clone, Copy, Debug)]
struct Watched {
    name: u64,
    sent_at: Instant,
    deadline: Instant,
}

impl Measurements {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            len: 0,
            namespaces: BTreeMap::new(),
            next_expiry: Instant::ZERO,
        }
    }

    /// Pairs of namespace and next hop, with those that nobody has looked at since they expired.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Namespaces of which something is measured that has not expired.
    pub(crate) fn living_namespaces(&self, now: Instant) -> usize {
        let lives = |namespace: &&Namespace| namespace.hops.iter().any(|hop| hop.expiry > now);
        self.namespaces.values().filter(lives).count()
    }

    pub(crate) fn namespace(&self, hash: u64) -> Option<&Namespace> {
        self.namespaces.get(&hash)
    }

    /// An Interest was sent. If there is no room for another next hop, it stays unmeasured.
    pub(crate) fn on_sent(&mut self, sent: &Exchange, asf: &AsfConfig, random: &mut Random) {
        let now = sent.now;
        if self.hop(sent).is_none() && !self.make_room(now) {
            return;
        }
        let namespace = self.namespaces.entry(sent.namespace);
        let namespace = namespace.or_insert_with(|| Namespace {
            probe_at: now,
            hops: Vec::new(),
        });
        let before = namespace.hops.len();
        namespace.hops.retain(|hop| hop.expiry > now);
        if namespace.hops.is_empty() {
            let nanos = u64::try_from(FIRST_PROBE.as_nanos()).expect("five seconds");
            namespace.probe_at = now + Duration::from_nanos(random.below(nanos + 1));
        }
        let known = namespace.hops.iter().position(|hop| hop.face == sent.face);
        let at = known.unwrap_or_else(|| {
            namespace.hops.push(Measured::new(sent.face));
            namespace.hops.len() - 1
        });
        let hop = &mut namespace.hops[at];
        hop.settle(now, asf);
        hop.expiry = now + asf.measurements_lifetime;
        hop.watched.get_or_insert_with(|| Watched {
            name: sent.name,
            sent_at: now,
            deadline: now + hop.rtt.rto(),
        });
        self.next_expiry = self.next_expiry.min(hop.expiry);
        self.len = self.len - before + namespace.hops.len();
    }

    /// Data came. `sent_at` is when the Interest went to that face, if that is still pending; otherwise another face
    /// answered first, and this answer counts if it was watched for.
    pub(crate) fn on_data(&mut self, answer: &Exchange, sent_at: Option<Instant>, asf: &AsfConfig) {
        let Some(hop) = self.hop(answer) else { return };
        hop.settle(answer.now, asf);
        let watched = hop.watched.filter(|watched| watched.name == answer.name);
        let Some(sent_at) = sent_at.or(watched.map(|watched| watched.sent_at)) else {
            return;
        };
        if watched.is_some() {
            hop.watched = None;
        }
        hop.rtt.on_ack(answer.now.since(sent_at));
        hop.has_failed = false;
        hop.timeouts = 0;
        hop.expiry = answer.now + asf.measurements_lifetime;
    }

    /// A Nack came, which is as bad as the last timeout.
    pub(crate) fn on_nack(&mut self, answer: &Exchange) {
        let Some(hop) = self.hop(answer) else { return };
        hop.watched = hop.watched.filter(|watched| watched.name != answer.name);
        hop.has_failed = true;
        hop.timeouts = 0;
    }

    /// A probe was sent: the next one comes after an interval.
    pub(crate) fn on_probe(&mut self, namespace: u64, next: Instant) {
        if let Some(namespace) = self.namespaces.get_mut(&namespace) {
            namespace.probe_at = next;
        }
    }

    /// Forgets a face.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        self.retain(|hop| hop.face != face);
    }

    fn hop(&mut self, exchange: &Exchange) -> Option<&mut Measured> {
        let namespace = self.namespaces.get_mut(&exchange.namespace)?;
        let mut hops = namespace.hops.iter_mut();
        hops.find(|hop| hop.face == exchange.face && hop.expiry > exchange.now)
    }

    /// Whether there is room for one more pair, once those that have expired are gone.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.len >= self.capacity && now >= self.next_expiry {
            self.retain(|hop| hop.expiry > now);
            let hops = self.namespaces.values().flat_map(|space| &space.hops);
            self.next_expiry = hops.map(|hop| hop.expiry).min().unwrap_or(now);
        }
        self.len < self.capacity
    }

    fn retain(&mut self, keep: impl Fn(&Measured) -> bool) {
        self.namespaces.retain(|_, namespace| {
            namespace.hops.retain(&keep);
            !namespace.hops.is_empty()
        });
        self.len = self.namespaces.values().map(|space| space.hops.len()).sum();
    }
}

impl Namespace {
    /// How the next hop has done.
    pub(crate) fn standing(&self, face: FaceId, now: Instant, asf: &AsfConfig) -> Standing {
        let mut hops = self.hops.iter();
        let hop = hops.find(|hop| hop.face == face && hop.expiry > now);
        hop.map_or(Standing::Unmeasured, |hop| hop.standing(now, asf))
    }

    /// Whether some other next hop than the best is to be tried.
    pub(crate) fn is_probe_due(&self, now: Instant) -> bool {
        now >= self.probe_at && self.hops.iter().any(|hop| hop.expiry > now)
    }
}

impl Measured {
    fn new(face: FaceId) -> Self {
        Self {
            face,
            rtt: RttEstimator::default(),
            has_failed: false,
            timeouts: 0,
            watched: None,
            expiry: Instant::ZERO,
        }
    }

    fn is_overdue(&self, now: Instant) -> bool {
        self.watched.is_some_and(|watched| watched.deadline <= now)
    }

    fn standing(&self, now: Instant, asf: &AsfConfig) -> Standing {
        let fails_now = self.is_overdue(now) && self.timeouts + 1 >= asf.max_timeouts;
        match self.rtt.smoothed() {
            _ if self.has_failed || fails_now => Standing::TimedOut,
            Some(smoothed) => Standing::Working(smoothed),
            None => Standing::Unmeasured,
        }
    }

    /// Takes note of a time that is up.
    fn settle(&mut self, now: Instant, asf: &AsfConfig) {
        if !self.is_overdue(now) {
            return;
        }
        self.watched = None;
        self.timeouts += 1;
        if self.timeouts >= asf.max_timeouts {
            self.has_failed = true;
            self.timeouts = 0;
        }
    }
}

impl RttEstimator {
    /// Time to wait for Data.
    fn rto(&self) -> Duration {
        let expected = self.expected(Duration::ZERO);
        expected.map_or(INITIAL_RTO, |time| time.clamp(MIN_RTO, MAX_RTO))
    }
}

#[cfg(test)]
#[path = "measurements_tests.rs"]
mod tests;
