//! What happened on a path in the last seconds, in bins of time.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::Instant;

/// Length of a bin.
const BIN: Duration = Duration::from_millis(5);
/// Bins that are kept: 6 s.
const KEPT: u64 = 1_200;

/// What happened within one bin. Times in seconds, sizes in bits.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    slot: u64,
    delivered: f64,
    arrivals: u32,
    queue_min: f64,
    queue_sum: f64,
    queue_max: f64,
    steps: u32,
    step_sum: f64,
    rise: f64,
    pairs: u32,
    pair_bits: f64,
    pair_gap: f64,
    lost: u32,
    squeezed: u32,
    cross: f64,
}

/// Several packets known to have been queued back to back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PairSum {
    pub count: u32,
    pub bits: f64,
    /// Seconds from the first to the last.
    pub gap: f64,
}

/// Arrivals, queueing delays, pairs, losses of the last seconds. Spans are rounded down to whole bins, of which the last has only begun.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    bins: VecDeque<Bin>,
}

fn slot(at: Instant) -> u64 {
    at.as_nanos() / BIN.as_nanos() as u64
}

impl History {
    fn bin(&mut self, now: Instant) -> &mut Bin {
        let slot = slot(now);
        if self.bins.back().is_none_or(|last| last.slot < slot) {
            while self
                .bins
                .front()
                .is_some_and(|first| first.slot + KEPT < slot)
            {
                self.bins.pop_front();
            }
            self.bins.push_back(Bin {
                slot,
                queue_min: f64::INFINITY,
                ..Bin::default()
            });
        }
        let last = self.bins.len() - 1;
        &mut self.bins[last]
    }

    fn last(&self, now: Instant, span: Duration) -> impl Iterator<Item = &Bin> {
        let after = slot(now.saturating_sub(span));
        let since = move |bin: &&Bin| bin.slot > after || after == 0;
        self.bins.iter().rev().take_while(since)
    }

    /// Records a packet of `bits` that was queued for `queue`.
    pub(super) fn on_arrival(&mut self, now: Instant, bits: f64, queue: f64) {
        let bin = self.bin(now);
        bin.delivered += bits;
        bin.arrivals += 1;
        bin.queue_min = bin.queue_min.min(queue);
        bin.queue_max = bin.queue_max.max(queue);
        bin.queue_sum += queue;
    }

    /// Records by how much the queueing of two packets, one right after the other, differs.
    pub(super) fn on_step(&mut self, now: Instant, step: f64) {
        let bin = self.bin(now);
        bin.steps += 1;
        bin.step_sum += step;
    }

    /// Records by how much longer a packet queued than what was left of the queue of the one before it.
    pub(super) fn on_rise(&mut self, now: Instant, rise: f64) {
        let bin = self.bin(now);
        bin.rise = bin.rise.max(rise);
    }

    /// Returns the most by which a packet queued longer than that.
    pub(super) fn rise(&self, now: Instant, span: Duration) -> f64 {
        self.last(now, span).map(|bin| bin.rise).fold(0.0, f64::max)
    }

    /// Records a packet of `bits` that came `gap` after one which it was queued behind.
    pub(super) fn on_pair(&mut self, now: Instant, bits: f64, gap: f64) {
        let bin = self.bin(now);
        bin.pairs += 1;
        bin.pair_bits += bits;
        bin.pair_gap += gap;
    }

    /// Records a loss, and whether a queue was full.
    pub(super) fn on_loss(&mut self, now: Instant, is_squeezed: bool) {
        let bin = self.bin(now);
        bin.lost += 1;
        bin.squeezed += u32::from(is_squeezed);
    }

    /// Returns the share of packets lost while a queue was full.
    pub(super) fn squeezed(&self, now: Instant, span: Duration) -> f64 {
        let (lost, total) = self.last(now, span).fold((0, 0), |(lost, total), bin| {
            (lost + bin.squeezed, total + bin.lost + bin.arrivals)
        });
        f64::from(lost) / f64::from(total.max(20))
    }

    /// Records that others kept the link busy for `work`.
    pub(super) fn on_cross(&mut self, now: Instant, work: f64) {
        self.bin(now).cross += work;
    }

    /// Bits that arrived.
    pub(super) fn delivered(&self, now: Instant, span: Duration) -> f64 {
        self.last(now, span).map(|bin| bin.delivered).sum()
    }

    /// Returns the least queueing delay; `None` if nothing arrived.
    pub(super) fn queue_min(&self, now: Instant, span: Duration) -> Option<f64> {
        let least = self.last(now, span).map(|bin| bin.queue_min);
        least.reduce(f64::min).filter(|least| least.is_finite())
    }

    /// Returns the greatest queueing delay.
    pub(super) fn queue_max(&self, now: Instant, span: Duration) -> f64 {
        let greatest = self.last(now, span).map(|bin| bin.queue_max);
        greatest.fold(0.0, f64::max)
    }

    /// Returns the mean queueing delay of all that arrived.
    pub(super) fn queue_mean(&self, now: Instant, span: Duration) -> f64 {
        let (sum, count) = self.last(now, span).fold((0.0, 0), |(sum, count), bin| {
            (sum + bin.queue_sum, count + bin.arrivals)
        });
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    }

    /// Returns the mean queueing delays of what arrived in one bin on both paths, the newest first.
    pub(super) fn common(&self, other: &Self) -> Vec<(f64, f64)> {
        let mean = |bin: &Bin| bin.queue_sum / f64::from(bin.arrivals);
        let arrived = |bin: &&Bin| bin.arrivals > 0;
        let mut others = other.bins.iter().rev().filter(arrived).peekable();
        let own = self.bins.iter().rev().filter(arrived);
        let pairs = own.filter_map(|bin| {
            while others.next_if(|other| other.slot > bin.slot).is_some() {}
            let same = others.peek().filter(|other| other.slot == bin.slot)?;
            Some((mean(bin), mean(same)))
        });
        pairs.collect()
    }

    /// Returns the mean step between queueing delays, of the last `most` steps.
    pub(super) fn step_mean(&self, now: Instant, span: Duration, most: u32) -> f64 {
        let (mut sum, mut count) = (0.0, 0);
        for bin in self.last(now, span) {
            sum += bin.step_sum;
            count += bin.steps;
            if count >= most {
                break;
            }
        }
        if count == 0 {
            0.0
        } else {
            sum / f64::from(count)
        }
    }

    /// Returns all pairs.
    pub(super) fn pairs(&self, now: Instant, span: Duration) -> PairSum {
        let mut sum = PairSum::default();
        for bin in self.last(now, span) {
            sum.count += bin.pairs;
            sum.bits += bin.pair_bits;
            sum.gap += bin.pair_gap;
        }
        sum
    }

    /// Returns the share of packets lost; zero where fewer than `least` were sent.
    pub(super) fn loss(&self, now: Instant, span: Duration, least: u32) -> f64 {
        let (mut lost, mut total) = (0, 0);
        for bin in self.last(now, span) {
            lost += bin.lost;
            total += bin.lost + bin.arrivals;
        }
        if total < least {
            return 0.0;
        }
        f64::from(lost) / f64::from(total.max(1))
    }

    /// Returns the time for which others kept the link busy.
    pub(super) fn cross(&self, now: Instant, span: Duration) -> f64 {
        self.last(now, span).map(|bin| bin.cross).sum()
    }

    /// Returns the number of packets that arrived.
    pub(super) fn arrivals(&self, now: Instant, span: Duration) -> u32 {
        self.last(now, span).map(|bin| bin.arrivals).sum()
    }

    /// Takes `shift` off all queueing delays, and forgets pairs.
    pub(super) fn rebase(&mut self, shift: f64) {
        for bin in &mut self.bins {
            bin.queue_min = (bin.queue_min - shift).max(0.0);
            bin.queue_max = (bin.queue_max - shift).max(0.0);
            let arrivals = f64::from(bin.arrivals);
            bin.queue_sum = (bin.queue_sum - shift * arrivals).max(0.0);
            (bin.pairs, bin.pair_bits, bin.pair_gap) = (0, 0.0, 0.0);
        }
    }
}
