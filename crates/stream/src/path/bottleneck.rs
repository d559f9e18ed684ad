//! Whether Data of different owners passes one bottleneck, as queueing delays show (compare RFC 8382).
//!
//! Data that meets one queue at one time is delayed alike. So owners stand apart if all Data of one waits while none of another
//! does; and two paths have one bottleneck if their delays rise and fall together.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_units::Instant;

/// Time over which delays of owners are compared.
const SPAN: Duration = Duration::from_millis(300);
/// Most packets kept of that time.
const MAX_PACKETS: usize = 2_048;
/// Least packets of an owner in that time. One in ten at either end does not count.
const MIN_PACKETS: usize = 8;
/// Difference of delays, in seconds, that one queue does not explain.
const MARGIN: f64 = 0.02;

/// Queueing delays of single packets, in seconds, and whose they were.
#[derive(Clone, Debug, Default)]
pub(super) struct Delays {
    packets: VecDeque<(Instant, u32, f64)>,
}

impl Delays {
    /// Records that a packet of `owner` waited for `delay`.
    pub(super) fn on_arrival(&mut self, now: Instant, owner: u32, delay: f64) {
        let is_old = |packets: &VecDeque<(Instant, u32, f64)>| {
            let first = packets.front();
            first.is_some_and(|(at, ..)| now.since(*at) > SPAN) || packets.len() == MAX_PACKETS
        };
        while is_old(&self.packets) {
            self.packets.pop_front();
        }
        self.packets.push_back((now, owner, delay));
    }

    /// Returns the owner whose Data waits most, if all of it waits for longer than any Data of another owner.
    pub(super) fn apart(&self, now: Instant) -> Option<u32> {
        let mut of_owners: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let recent = self
            .packets
            .iter()
            .filter(|(at, ..)| now.since(*at) <= SPAN);
        for (_, owner, delay) in recent {
            of_owners.entry(*owner).or_default().push(*delay);
        }
        let known = of_owners
            .into_iter()
            .filter(|(_, delays)| delays.len() >= MIN_PACKETS);
        let ranges = known.map(|(owner, mut delays)| {
            delays.sort_by(f64::total_cmp);
            let tenth = delays.len().div_ceil(10);
            (owner, delays[tenth], delays[delays.len() - 1 - tenth])
        });
        let ranges: Vec<_> = ranges.collect();
        let (slowest, least, _) = *ranges.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let others = ranges.iter().filter(|(owner, ..)| *owner != slowest);
        let most = others.map(|(.., most)| *most).reduce(f64::min)?;
        (least > most + MARGIN).then_some(slowest)
    }
}

/// Least number of times at which both paths had an arrival.
const MIN_COMMON: usize = 40;
/// Least standard deviation of delays that says anything, in seconds.
const MIN_DEVIATION: f64 = 0.005;
/// Least common share of the delays' variation on paths with one bottleneck.
const MIN_SHARE: f64 = 0.8;

/// Returns whether two paths' queueing delays at the same times, in seconds, rise and fall together, and by as much.
pub(super) fn are_alike(delays: &[(f64, f64)]) -> bool {
    if delays.len() < MIN_COMMON {
        return false;
    }
    let count = delays.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| delays.iter().map(of).sum::<f64>() / count;
    let (a, b) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let (mut of_a, mut of_b, mut of_both) = (0.0, 0.0, 0.0);
    for (own, other) in delays.iter().map(|pair| (pair.0 - a, pair.1 - b)) {
        of_a += own * own / count;
        of_b += other * other / count;
        of_both += own * other / count;
    }
    let least = MIN_DEVIATION * MIN_DEVIATION;
    of_a.min(of_b) > least && 2.0 * of_both >= MIN_SHARE * (of_a + of_b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Two owners, each with a packet in 20 ms, which wait for these times.
    fn delays(first: impl Fn(u64) -> f64, second: impl Fn(u64) -> f64) -> Delays {
        let mut delays = Delays::default();
        for millis in (0..400).step_by(20) {
            delays.on_arrival(at(millis), 0, first(millis));
            delays.on_arrival(at(millis + 10), 1, second(millis));
        }
        delays
    }

    /// 60 ms and nothing: apart. 60 ms and 41, with a margin of 20: not; with 39: apart.
    #[test]
    fn owners_in_different_queues_stand_apart() {
        let apart = |second: f64| delays(|_| second, |_| 0.06).apart(at(400));
        assert_eq!(apart(0.0), Some(1));
        assert_eq!(apart(0.039), Some(1));
        assert_eq!(apart(0.041), None);
        // Jitter of up to 60 ms does not delay every packet.
        let jittery = delays(|millis| (millis % 70) as f64 / 1_000.0, |_| 0.06);
        assert_eq!(jittery.apart(at(400)), None);
    }

    /// A queue that comes and goes delays both; one packet in ten that a link repeated says nothing.
    #[test]
    fn owners_in_one_queue_do_not_stand_apart() {
        let queue = |millis: u64| (millis % 100) as f64 / 1_000.0;
        assert_eq!(delays(queue, queue).apart(at(400)), None);
        let repeated = |millis: u64| if millis == 200 { 0.0 } else { 0.06 };
        let apart = delays(|_| 0.0, repeated).apart(at(400));
        assert_eq!(apart, Some(1));
    }

    /// With seven packets of one in 300 ms, or none but one owner's, nothing is known.
    #[test]
    fn few_packets_show_nothing() {
        let mut few = Delays::default();
        for millis in (0..300).step_by(10) {
            few.on_arrival(at(millis), 0, 0.0);
        }
        assert_eq!(few.apart(at(300)), None);
        for millis in (300..370).step_by(10) {
            few.on_arrival(at(millis), 1, 0.1);
        }
        assert_eq!(few.apart(at(370)), None);
        few.on_arrival(at(370), 1, 0.1);
        assert_eq!(few.apart(at(370)), Some(1));
    }

    fn alike(first: impl Fn(usize) -> f64, second: impl Fn(usize) -> f64) -> bool {
        let delays: Vec<_> = (0..100).map(|at| (first(at), second(at))).collect();
        are_alike(&delays)
    }

    /// A saw of 36 ms, whose deviation is 11.5 ms: like itself, and like itself a fixed delay later. Of half its height 2·½ / (1 + ¼)
    /// = .8 is common: just enough.
    #[test]
    fn delays_are_alike_that_rise_and_fall_together() {
        let saw = |at: usize| (at % 10) as f64 * 0.004;
        assert!(alike(saw, saw));
        assert!(alike(saw, |at| saw(at) + 0.03));
        assert!(alike(saw, |at| saw(at) * 0.51));
        assert!(!alike(saw, |at| saw(at) * 0.49));
        assert!(!alike(saw, |at| saw(at + 5)));
    }

    #[test]
    fn what_hardly_varies_or_is_little_is_not_alike() {
        let saw = |at: usize| (at % 10) as f64 * 0.001;
        assert!(!alike(saw, saw), "2.9 ms of deviation");
        assert!(alike(|at| saw(at) * 2.0, |at| saw(at) * 2.0), "5.7 ms");
        let few = [(0.0, 0.0), (0.1, 0.1)].repeat(19);
        assert!(!are_alike(&few));
        let enough = [(0.0, 0.0), (0.1, 0.1)].repeat(20);
        assert!(are_alike(&enough));
    }
}
