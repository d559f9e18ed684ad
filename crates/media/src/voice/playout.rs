//! When each packet is played: so long after the earliest that it could have come as nearly all need.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_units::{Duration, Instant, WindowedMinimum};

use super::PACKET;

/// Packets ahead of what is played that are kept.
const MAX_AHEAD: u64 = 250;
/// How far back the earliest packet is looked for, in spans: clocks of microphones and speakers differ.
const SPAN: Duration = Duration::from_secs(1);
const SPANS: u64 = 5;

/// So many late ones in a row are no losses: the microphone or the path has become later.
const MAX_LATE: u32 = 5;

/// Packets of which is known how much later they came than the earliest: those of ten seconds.
const MAX_LATENESSES: usize = 500;
/// Those that it takes to judge by, and packets from one judgement to the next.
const MIN_LATENESSES: usize = 100;
const REVIEW_INTERVAL: u32 = 25;
/// Share of packets that come before they are due, per mille.
const IN_TIME: usize = 998;
/// What the target is shortened to, beyond what they need.
const MARGIN: Duration = Duration::from_millis(10);
/// Shortest target, if more is allowed.
const MIN_TARGET: Duration = Duration::from_millis(40);

/// What is played for 20 ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The packet of this number.
    Packet(u64, Bytes),
    /// Nothing came in time: what was before goes on, quieter and quieter.
    Concealed,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutCounters {
    /// Played.
    pub played: u64,
    /// Concealed, as they were not there.
    pub concealed: u64,
    /// Came after they would have been played.
    pub late: u64,
    /// Most concealed ones in a row.
    pub longest_gap: u64,
    /// Left out, to be heard sooner.
    pub left_out: u64,
}

/// Puts packets of 20 ms in order and in time.
///
/// ```text
/// due(n)   = origin + target + n·20 ms          origin = min over 5 s (arrival(k) − k·20 ms)
/// late(k)  = arrival(k) − k·20 ms − origin      needed = what 99.8 % of late(k) are below, of 10 s
/// ```
///
/// The target begins as the longest that is allowed. Each half second it grows to what is needed, by concealed packets, or becomes
/// 20 ms shorter if that is still 10 ms more than needed, by one packet that is left out.
///
/// Five late packets in a row begin this anew.
#[derive(Debug)]
pub struct Playout {
    target: Duration,
    max_target: Duration,
    /// Where the target is to be.
    wanted: Duration,
    latenesses: VecDeque<Duration>,
    /// Packets since the target was judged.
    unreviewed: u32,
    /// In nanoseconds on the monotonic clock.
    origin: WindowedMinimum<i128>,
    waiting: BTreeMap<u64, Bytes>,
    /// The next to be played, once anything has come.
    next: Option<u64>,
    gap: u64,
    /// Packets in a row that came too late.
    late: u32,
    counters: PlayoutCounters,
}

fn nanos(at: Instant) -> i128 {
    i128::from(at.as_nanos())
}

fn position(number: u64) -> i128 {
    i128::from(number) * PACKET.as_nanos() as i128
}

impl Playout {
    /// Plays packets `max_target` after the earliest that they could have come, or less where that does as well.
    pub fn new(max_target: Duration) -> Self {
        Self {
            target: max_target,
            max_target,
            wanted: max_target,
            latenesses: VecDeque::new(),
            unreviewed: 0,
            origin: WindowedMinimum::new(SPAN, SPANS),
            waiting: BTreeMap::new(),
            next: None,
            gap: 0,
            late: 0,
            counters: PlayoutCounters::default(),
        }
    }

    /// How long after the earliest that they could have come packets are played now.
    pub const fn target(&self) -> Duration {
        self.target
    }

    /// What became of packets.
    pub const fn counters(&self) -> &PlayoutCounters {
        &self.counters
    }

    /// Takes the packet of this number; of several with one number the first counts.
    pub fn handle_packet(&mut self, now: Instant, number: u64, payload: Bytes) {
        let next = *self.next.get_or_insert(number);
        if number < next {
            self.counters.late += 1;
            self.late += 1;
            if self.late < MAX_LATE {
                self.on_lateness(now, number);
                return;
            }
            self.origin = WindowedMinimum::new(SPAN, SPANS);
            self.next = Some(number);
            self.waiting.clear();
        }
        self.late = 0;
        if number.saturating_sub(next) >= MAX_AHEAD {
            return;
        }
        self.origin.push(now, nanos(now) - position(number));
        self.waiting.entry(number).or_insert(payload);
        self.on_lateness(now, number);
    }

    /// Records how late a packet came, and judges the target now and then.
    fn on_lateness(&mut self, now: Instant, number: u64) {
        let Some(origin) = self.origin.minimum(now) else {
            return;
        };
        let late = nanos(now) - position(number) - origin;
        if self.latenesses.len() >= MAX_LATENESSES {
            self.latenesses.pop_front();
        }
        let late = Duration::from_nanos(u64::try_from(late).unwrap_or(0));
        self.latenesses.push_back(late);
        self.unreviewed += 1;
        if self.unreviewed < REVIEW_INTERVAL || self.latenesses.len() < MIN_LATENESSES {
            return;
        }
        self.unreviewed = 0;
        let mut sorted: Vec<_> = self.latenesses.iter().copied().collect();
        sorted.sort();
        let place = sorted.len().saturating_sub(1) * IN_TIME / 1_000;
        let needed = sorted.get(place).copied().unwrap_or_default();
        let needed = needed.min(self.max_target);
        let min_target = MIN_TARGET.min(self.max_target);
        // What comes just then is too late.
        while self.wanted <= needed {
            self.wanted += PACKET;
        }
        if self.wanted >= needed + MARGIN + PACKET {
            self.wanted -= PACKET;
        }
        self.wanted = self.wanted.clamp(min_target, self.max_target);
    }

    /// When the next packet is due, once anything has come.
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let target = self.target.as_nanos() as i128;
        // Nothing for as long as the window: what came last still counts.
        let origin = self.origin.minimum(now).or_else(|| self.origin.last())?;
        let due = origin + target + position(self.next?);
        Some(Instant::from_nanos(u64::try_from(due).unwrap_or(0)))
    }

    /// What is due to be played, until `None`.
    pub fn poll_frame(&mut self, now: Instant) -> Option<Frame> {
        if self.poll_timeout(now)? > now {
            return None;
        }
        let mut number = self.next?;
        if self.target >= self.wanted + PACKET {
            self.target -= PACKET;
            self.counters.left_out += 1;
            self.waiting.remove(&number);
            number += 1;
        }
        // After a concealed packet one is to be heard.
        if self.wanted > self.target && self.gap == 0 {
            self.target = self.wanted.min(self.target + PACKET);
            return Some(self.conceal());
        }
        self.next = Some(number + 1);
        if let Some(payload) = self.waiting.remove(&number) {
            self.gap = 0;
            self.counters.played += 1;
            return Some(Frame::Packet(number, payload));
        }
        Some(self.conceal())
    }

    fn conceal(&mut self) -> Frame {
        self.gap += 1;
        self.counters.concealed += 1;
        self.counters.longest_gap = self.counters.longest_gap.max(self.gap);
        Frame::Concealed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Returns what is played, and when, up to `until`.
    fn play(playout: &mut Playout, until: u64) -> Vec<(u64, Option<u64>)> {
        let mut played = Vec::new();
        while let Some(due) = playout
            .poll_timeout(at(until))
            .filter(|&due| due <= at(until))
        {
            let frame = playout.poll_frame(due).unwrap();
            let number = match frame {
                Frame::Packet(number, _) => Some(number),
                Frame::Concealed => None,
            };
            let millis = due.since(Instant::ZERO).as_millis() as u64;
            played.push((millis, number));
        }
        played
    }

    /// 100 ms after the first came at 1000: 0 at 1100, 1 at 1120. 2 is lost, 3 comes before 4 is due, and 5 too late.
    #[test]
    fn packets_are_played_in_order_and_in_time() {
        let mut playout = Playout::new(Duration::from_millis(100));
        assert_eq!(playout.poll_timeout(at(0)), None);
        for (millis, number) in [(1_000, 0), (1_035, 1), (1_080, 4), (1_085, 3), (1_130, 6)] {
            playout.handle_packet(at(millis), number, Bytes::new());
        }
        let expected = [
            (1_100, Some(0)),
            (1_120, Some(1)),
            (1_140, None),
            (1_160, Some(3)),
            (1_180, Some(4)),
            (1_200, None),
            (1_220, Some(6)),
        ];
        assert_eq!(play(&mut playout, 1_230), expected);
        playout.handle_packet(at(1_231), 5, Bytes::new());
        let counters = PlayoutCounters {
            played: 5,
            concealed: 2,
            late: 1,
            longest_gap: 1,
            left_out: 0,
        };
        assert_eq!(*playout.counters(), counters);
    }

    /// The microphone's clock is 1 % slow: in a minute 30 packets' time is to be filled, and some more until that is noticed.
    #[test]
    fn clocks_that_drift_are_followed() {
        let mut playout = Playout::new(Duration::from_millis(60));
        for number in 0..3_000 {
            let now = at(number * 202 / 10);
            while playout.poll_frame(now).is_some() {}
            playout.handle_packet(now, number, Bytes::new());
        }
        let counters = playout.counters();
        assert!(counters.concealed <= 50, "{counters:?}");
        assert!(counters.played >= 2_900, "{counters:?}");
    }

    /// A microphone that begins with half a second at once, and then speaks in time. Packets 25 to 29 come at 500 to 580 ms, too late;
    /// what was due from 120 to 580 ms is concealed, and from then on all is played.
    #[test]
    fn who_has_become_later_is_heard_again_soon() {
        let mut playout = Playout::new(Duration::from_millis(100));
        for number in 0..200 {
            let now = at(if number < 25 { 0 } else { number * 20 });
            while playout.poll_frame(now).is_some() {}
            playout.handle_packet(now, number, Bytes::new());
        }
        let counters = playout.counters();
        assert_eq!(
            (counters.late, counters.longest_gap),
            (5, 24),
            "{counters:?}"
        );
        assert!(counters.played >= 185, "{counters:?}");
    }

    /// Packets come up to so many steps of 5 ms late, as if drawn.
    fn hear(playout: &mut Playout, numbers: core::ops::Range<u64>, steps: u64) -> PlayoutCounters {
        let before = *playout.counters();
        let mut arrivals: Vec<_> = numbers
            .map(|number| (number * 20 + number * 7 % steps * 5, number))
            .collect();
        arrivals.sort_unstable();
        for (millis, number) in arrivals {
            while playout.poll_frame(at(millis)).is_some() {}
            playout.handle_packet(at(millis), number, Bytes::new());
        }
        let after = *playout.counters();
        PlayoutCounters {
            played: after.played - before.played,
            concealed: after.concealed - before.concealed,
            late: after.late - before.late,
            longest_gap: after.longest_gap,
            left_out: after.left_out - before.left_out,
        }
    }

    /// Up to 15 ms late: 150, 130, 110, 90, 70 and then 50 ms, as 30 would be less than 10 ms beyond that. Up to 95 ms late: five
    /// steps of 20 ms from 40, in the first of which those that came later are lost. Up to 245 ms: no more than is allowed.
    #[test]
    fn the_target_follows_what_comes_late() {
        let mut playout = Playout::new(Duration::from_millis(150));
        let calm = hear(&mut playout, 0..500, 4);
        assert_eq!(playout.target(), Duration::from_millis(50));
        assert_eq!((calm.left_out, calm.concealed, calm.late), (5, 0, 0));
        hear(&mut playout, 500..1_000, 20);
        assert_eq!(playout.target(), Duration::from_millis(100));
        let known = hear(&mut playout, 1_000..2_000, 20);
        assert_eq!((known.left_out, known.concealed, known.late), (0, 0, 0));
        assert_eq!(known.longest_gap, 2, "{known:?}");
        hear(&mut playout, 2_000..3_000, 50);
        assert_eq!(playout.target(), Duration::from_millis(150));
    }

    /// One in a hundred comes 60 ms late, as what is requested again does.
    #[test]
    fn what_is_repaired_is_waited_for() {
        let mut playout = Playout::new(Duration::from_millis(150));
        let mut arrivals: Vec<_> = (0..2_000)
            .map(|number| {
                (
                    number * 20 + if number % 100 == 50 { 60 } else { 0 },
                    number,
                )
            })
            .collect();
        arrivals.sort_unstable();
        for (millis, number) in arrivals {
            while playout.poll_frame(at(millis)).is_some() {}
            playout.handle_packet(at(millis), number, Bytes::new());
        }
        let counters = playout.counters();
        assert_eq!((counters.late, counters.concealed), (0, 0), "{counters:?}");
        assert!(playout.target() < Duration::from_millis(100));
    }

    #[test]
    fn packets_far_ahead_are_not_kept() {
        let mut playout = Playout::new(Duration::from_millis(60));
        playout.handle_packet(at(0), 5, Bytes::new());
        playout.handle_packet(at(1), 5 + MAX_AHEAD, Bytes::new());
        playout.handle_packet(at(1), u64::MAX, Bytes::new());
        assert_eq!(playout.waiting.len(), 1);
    }
}
