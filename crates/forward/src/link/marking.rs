//! When to mark packets: by NFD's rule, which is like CoDel's but goes by the octets that wait, or by CoDel's own.

use core::time::Duration;

use namecast_units::{ByteSize, CoDel, Instant};
use smart_default::SmartDefault;

/// How long a packet may wait in a link's queue (\[RFC8289\], section 4.3).
const TARGET: Duration = Duration::from_millis(5);

/// What a link's congestion is seen by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionLaw {
    /// The octets that wait when a packet is queued, as NFD has it.
    #[default]
    Nfd,
    /// The same as NFD had it before, and ndnSIM 2 has it: the first packet of a long queue is marked at once, if the last mark
    /// was an interval ago.
    NdnSim,
    /// The time that a packet has waited when it leaves the queue: CoDel (RFC 8289), which marks instead of dropping.
    CoDel,
    /// The same as PCON was published with: the first mark of a long queue at once, the n-th 1.1 intervals/√(n-1) after the one before it.
    Pcon,
}

/// When a link counts as congested.
///
/// The defaults are NFD's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct CongestionMarking {
    /// What it is seen by.
    #[default(CongestionLaw::Nfd)]
    pub law: CongestionLaw,
    /// How long more than the threshold must wait until a packet is marked, and the longest pause between two marks.
    #[default(Duration::from_millis(100))]
    pub interval: Duration,
    /// Octets that may wait; CoDel does not go by them.
    #[default(ByteSize::bytes(65_536))]
    pub threshold: ByteSize,
}

/// One link's marks, where packets are queued.
#[derive(Clone, Copy, Debug, Default)]
pub struct CongestionMarker {
    /// When the link counts as congested.
    pub rule: CongestionMarking,
    /// Whether packets are marked then.
    pub is_on: bool,
    /// When the next packet is marked if the queue stays as long; none while it is short.
    next_at: Option<Instant>,
    /// When a packet was marked last.
    last_at: Option<Instant>,
    /// Marks since the queue became long.
    marks: u32,
}

impl CongestionMarker {
    /// A link without a queue yet; none: its packets are not marked until that is chosen for it.
    pub fn new(rule: Option<CongestionMarking>) -> Self {
        Self {
            rule: rule.unwrap_or_default(),
            is_on: rule.is_some(),
            ..Self::default()
        }
    }

    /// The queue is empty.
    pub(super) const fn rest(&mut self) {
        (self.next_at, self.marks) = (None, 0);
    }

    /// Whether to mark a packet that is queued at `now` behind so many octets.
    pub(super) fn marks(&mut self, now: Instant, queued: ByteSize) -> bool {
        if !self.is_on || queued <= self.rule.threshold {
            self.rest();
            return false;
        }
        match self.rule.law {
            CongestionLaw::Nfd => self.marks_after_an_interval(now),
            CongestionLaw::NdnSim => self.marks_at_once(now),
            CongestionLaw::CoDel | CongestionLaw::Pcon => false,
        }
    }

    /// The first mark comes after one interval, the n-th one interval/√n after the one before it was due.
    fn marks_after_an_interval(&mut self, now: Instant) -> bool {
        let next_at = *self.next_at.get_or_insert(now + self.rule.interval);
        let is_due = now >= next_at;
        if is_due {
            self.marks = self.marks.saturating_add(1);
            self.next_at = Some(next_at + self.pause(self.marks.saturating_add(1)));
        }
        is_due
    }

    /// The first mark comes an interval after the last one of the queue before, the n-th after that interval/√(n-1) after the one
    /// before it was due.
    fn marks_at_once(&mut self, now: Instant) -> bool {
        let rested = |last: Instant| now >= last + self.rule.interval;
        let is_due = self.next_at.is_some_and(|at| now >= at) || self.last_at.is_none_or(rested);
        if is_due {
            let due_at = self.next_at.filter(|_| self.marks > 0).unwrap_or(now);
            self.marks = self.marks.saturating_add(1);
            self.next_at = Some(due_at + self.pause(self.marks));
            self.last_at = Some(now);
        }
        is_due
    }

    fn pause(&self, number: u32) -> Duration {
        self.rule.interval.div_f64(f64::from(number).sqrt())
    }
}

/// The far end of a link's queue, where it shows how long each packet has waited.
#[derive(Clone, Debug)]
pub(super) struct SojournMarker {
    codel: CoDel,
    pcon: PconMarker,
}

impl SojournMarker {
    /// A queue that may be long for `interval`.
    pub(super) const fn new(interval: Duration) -> Self {
        Self {
            codel: CoDel::marking(TARGET, interval),
            pcon: PconMarker::new(interval),
        }
    }

    /// Whether to mark a frame of so many octets that was queued at `since` and leaves now; so many stay behind it.
    pub(super) fn marks(
        &mut self,
        law: CongestionLaw,
        (now, since): (Instant, Instant),
        (octets, left): (usize, u64),
    ) -> bool {
        match law {
            CongestionLaw::CoDel => self.codel.acts(now, since, octets, left),
            CongestionLaw::Pcon => self.pcon.marks(now, now.since(since)),
            CongestionLaw::Nfd | CongestionLaw::NdnSim => false,
        }
    }
}

/// The queue that \[PCON\] was published with.
#[derive(Clone, Debug)]
struct PconMarker {
    interval: Duration,
    /// Since when packets have waited too long.
    since: Option<Instant>,
    next_at: Instant,
    marks: u32,
}

impl PconMarker {
    const fn new(interval: Duration) -> Self {
        Self {
            interval,
            since: None,
            next_at: Instant::ZERO,
            marks: 0,
        }
    }

    fn marks(&mut self, now: Instant, waited: Duration) -> bool {
        if waited <= TARGET {
            (self.since, self.marks) = (None, 0);
            return false;
        }
        let since = *self.since.get_or_insert(now);
        if now.since(since) <= self.interval {
            self.marks = 0;
            return false;
        }
        let is_due = now >= self.next_at;
        if is_due {
            self.marks = self.marks.saturating_add(1);
            let pause = self.interval * 11 / 10;
            self.next_at = now + pause.div_f64(f64::from(self.marks).sqrt());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: ByteSize = ByteSize::bytes(65_537);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn marker() -> CongestionMarker {
        CongestionMarker::new(Some(CongestionMarking::default()))
    }

    /// With a packet each millisecond: the first mark after 100 ms, then 100/√2 = 70.7, 100/√3 = 57.7 and 50 ms later.
    #[test]
    fn marks_come_ever_faster_while_the_queue_is_long() {
        let mut marker = marker();
        let marked: Vec<_> = (0..300).filter(|&ms| marker.marks(at(ms), LONG)).collect();
        assert_eq!(marked, [100, 171, 229, 279]);
    }

    /// Packets at 0, 150 and 165 ms: the first mark is due at 100 ms and comes at 150, the next is due at 170.7 and not at 220.7.
    #[test]
    fn a_mark_that_comes_late_delays_no_other() {
        let mut marker = marker();
        let marked = [0, 150, 165, 171, 228, 229].map(|ms| marker.marks(at(ms), LONG));
        assert_eq!(marked, [false, true, false, true, false, true]);
    }

    /// The first packet at once, then 100, 70.7 and 57.7 ms after each other; a queue that is long again begins anew, but no sooner
    /// than 100 ms after the last mark at 229 ms.
    #[test]
    fn ndnsim_marks_the_first_packet_at_once() {
        let mut marker = marker();
        marker.rule.law = CongestionLaw::NdnSim;
        let marked: Vec<_> = (0..260).filter(|&ms| marker.marks(at(ms), LONG)).collect();
        assert_eq!(marked, [0, 100, 171, 229]);
        assert!(!marker.marks(at(260), ByteSize::ZERO));
        let again: Vec<_> = (270..440)
            .filter(|&ms| marker.marks(at(ms), LONG))
            .collect();
        assert_eq!(again, [329, 429]);
    }

    /// RFC 8289 with a packet each millisecond that waited for 10: above the target of 5 ms from 10 ms on, so first at 110,
    /// then after 100/√1, 100/√2 and 100/√3 ms. However many octets wait, NFD's rule is silent.
    #[test]
    fn codel_goes_by_the_time_that_packets_waited() {
        let mut sojourn = SojournMarker::new(Duration::from_millis(100));
        let waited = |ms: u64, sojourn: &mut SojournMarker| {
            sojourn.marks(CongestionLaw::CoDel, (at(ms), at(ms - 10)), (1_000, 50_000))
        };
        let marked: Vec<_> = (10..350).filter(|&ms| waited(ms, &mut sojourn)).collect();
        assert_eq!(marked, [110, 210, 281, 339]);
        let mut marker = CongestionMarker::new(Some(CongestionMarking {
            law: CongestionLaw::CoDel,
            ..CongestionMarking::default()
        }));
        assert!((0..300).all(|ms| !marker.marks(at(ms), LONG)));
    }

    /// A packet each millisecond that waited for 10: more than the interval of 100 ms above the target at 111, then after 110,
    /// 110/√2 = 77.8 and 110/√3 = 63.5 ms. A queue that is long again may be marked at once, but no sooner than the pause is over.
    #[test]
    fn pcon_marks_by_its_own_codel() {
        let mut sojourn = SojournMarker::new(Duration::from_millis(100));
        let mut marks = |ms: u64, waited: u64| {
            let times = (at(ms), at(ms - waited));
            sojourn.marks(CongestionLaw::Pcon, times, (1_000, 0))
        };
        let marked: Vec<_> = (10..400).filter(|&ms| marks(ms, 10)).collect();
        assert_eq!(marked, [111, 221, 299, 363]);
        assert!(!marks(400, 5));
        let marked: Vec<_> = (401..650).filter(|&ms| marks(ms, 6)).collect();
        assert_eq!(marked, [502, 612]);
    }

    #[test]
    fn a_queue_that_was_short_once_begins_anew() {
        let mut marker = marker();
        assert!(!marker.marks(at(0), LONG));
        assert!(!marker.marks(at(90), marker.rule.threshold));
        assert!(!marker.marks(at(100), LONG));
        assert!(!marker.marks(at(199), LONG));
        assert!(marker.marks(at(200), LONG));
    }

    #[test]
    fn a_link_whose_marks_were_turned_off_begins_anew_when_they_are_on_again() {
        let mut marker = marker();
        assert!(!marker.marks(at(0), LONG));
        marker.is_on = false;
        assert!(!marker.marks(at(100), LONG));
        marker.is_on = true;
        assert!(!marker.marks(at(101), LONG));
        assert!(!marker.marks(at(200), LONG));
        assert!(marker.marks(at(201), LONG));
    }
}
