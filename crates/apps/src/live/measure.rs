//! What a watcher measures: latency by stage, rates, and how far the publisher's clock is from ours.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_stream::StreamKind;
use namecast_stream::consumer::Sample;
use namecast_units::{Histogram, Instant, Timestamp};

use super::stats::{Latency, StageShares};
use super::watcher::Stages;

/// Frames that wait for the front-end's report.
const MAX_FRAMES: usize = 1_024;
/// Shown frames that the latency figures are taken from.
const MAX_SHOWN: usize = 600;
/// Clock measurements with a longer round trip than the best are not better than what is known, for so long.
const OFFSET_AGE: Duration = Duration::from_secs(30);
/// Clocks drift apart by less than this in that time; measurements that differ by more show that one was set.
const MAX_DRIFT: Duration = Duration::from_millis(20);

pub(super) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// How far the publisher's clock is from ours, estimated as NTP does: from the answer with the shortest round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClockOffset {
    best: Option<(Instant, Duration, i64)>,
}

impl ClockOffset {
    /// Takes an answer that the producer gave at `served_at` to an Interest of ours, `rtt` before `wall_now`.
    ///
    /// offset = ServedAt − (arrival − rtt / 2); wrong by at most rtt / 2.
    pub(super) fn on_answer(
        &mut self,
        now: Instant,
        rtt: Duration,
        wall_now: Timestamp,
        served_at: Timestamp,
    ) {
        let half = i64::try_from(rtt.as_micros() / 2).unwrap_or(i64::MAX);
        let offset = served_at.micros_since(wall_now).saturating_add(half);
        let keep = self.best.is_some_and(|(at, best, known)| {
            // Each is wrong by at most half its round trip.
            let apart = Duration::from_micros(known.abs_diff(offset));
            let agree = apart <= (best + rtt) / 2 + MAX_DRIFT;
            best < rtt && now.since(at) < OFFSET_AGE && agree
        });
        if !keep {
            self.best = Some((now, rtt, offset));
        }
    }

    /// Publisher's clock less ours in microseconds.
    pub(super) fn micros(&self) -> Option<i64> {
        self.best.map(|(_, _, offset)| offset)
    }

    /// The round trip that it was measured with.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.best.map(|(_, rtt, _)| rtt)
    }
}

/// Octets over the last second.
#[derive(Clone, Debug, Default)]
pub(super) struct RateMeter {
    /// Tenth of a second, and octets in it.
    tenths: VecDeque<(u64, u64)>,
}

impl RateMeter {
    const TENTHS: u64 = 10;

    fn tenth(now: Instant) -> u64 {
        now.as_nanos() / 100_000_000
    }

    pub(super) fn add(&mut self, now: Instant, octets: u64) {
        let tenth = Self::tenth(now);
        match self.tenths.back_mut() {
            Some((last, sum)) if *last >= tenth => *sum += octets,
            _ => self.tenths.push_back((tenth, octets)),
        }
        while self.tenths.len() as u64 > Self::TENTHS + 1 {
            self.tenths.pop_front();
        }
    }

    /// Bits per second over the last ten whole tenths of a second.
    pub(super) fn bits_per_second(&self, now: Instant) -> u64 {
        let this = Self::tenth(now);
        let recent = |tenth: u64| tenth < this && tenth + Self::TENTHS >= this;
        let sum: u64 = self
            .tenths
            .iter()
            .filter(|(tenth, _)| recent(*tenth))
            .map(|(_, octets)| octets)
            .sum();
        sum.saturating_mul(8)
    }
}

/// One frame between hand-out and display.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    captured_at: Timestamp,
    stages: Stages,
    decode: Duration,
    /// Whether it was only needed to catch up after a join.
    catching_up: bool,
}

/// One frame that was shown: total and stages, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Shown {
    total: f64,
    shares: StageShares,
}

/// Follows frames from hand-out to display.
#[derive(Clone, Debug, Default)]
pub(super) struct Frames {
    tracked: BTreeMap<(u8, u64), Tracked>,
    shown: VecDeque<Shown>,
    /// Total of every frame.
    latencies: Histogram,
}

const fn rank(stream: StreamKind) -> u8 {
    match stream {
        StreamKind::Video => 0,
        StreamKind::Audio => 1,
        StreamKind::Data => 2,
        StreamKind::Other => 3,
    }
}

impl Frames {
    /// Splits the time of `sample` up to the moment it was complete. `way` is publication to arrival of the lead, `reorder_delay`
    /// the largest composition offset of the rung: a picture that has less waited for others before it was decoded.
    pub(super) fn stages(sample: &Sample, way: Duration, reorder_delay: Duration) -> Stages {
        let header = &sample.header;
        let reordered = reorder_delay.saturating_sub(header.composition_offset);
        Stages {
            encode: header.encoded_after + reordered,
            publish: header.published_after.saturating_sub(header.encoded_after),
            network: way,
            reassembly: sample.complete_at.since(sample.lead_at),
        }
    }

    /// Records a frame that was delivered.
    pub(super) fn on_handed_out(&mut self, stream: StreamKind, sample: &Sample, stages: Stages) {
        let encode = u64::try_from(stages.encode.as_micros()).unwrap_or(u64::MAX);
        let encoded_at = sample.header.encoded_at().as_micros();
        let tracked = Tracked {
            captured_at: Timestamp::from_micros(encoded_at.saturating_sub(encode)),
            stages,
            decode: Duration::ZERO,
            catching_up: sample.catching_up,
        };
        let key = (rank(stream), sample.header.position);
        self.tracked.insert(key, tracked);
        if self.tracked.len() > MAX_FRAMES {
            // Frames that the front-end decoded and did not show.
            self.tracked.pop_first();
        }
    }

    pub(super) fn on_decoded(&mut self, stream: StreamKind, position: u64, took: Duration) {
        if let Some(frame) = self.tracked.get_mut(&(rank(stream), position)) {
            frame.decode = took;
        }
    }

    /// Records a frame that was shown; `publisher_now` is the publisher's wall clock now. Whether it is known.
    pub(super) fn on_rendered(
        &mut self,
        stream: StreamKind,
        position: u64,
        publisher_now: Timestamp,
        counts: bool,
    ) -> bool {
        let Some(frame) = self.tracked.remove(&(rank(stream), position)) else {
            return false;
        };
        if !counts || frame.catching_up {
            return true;
        }
        let latency = publisher_now.since(frame.captured_at);
        self.latencies.record(latency);
        let total = millis(latency);
        let mut shares = StageShares {
            capture: 0.0,
            encode: millis(frame.stages.encode),
            publish: millis(frame.stages.publish),
            network: millis(frame.stages.network),
            reassembly: millis(frame.stages.reassembly),
            buffer: 0.0,
            decode: millis(frame.decode),
        };
        let known = shares.encode + shares.publish + shares.network + shares.reassembly;
        shares.buffer = (total - known - shares.decode).max(0.0);
        self.shown.push_back(Shown { total, shares });
        if self.shown.len() > MAX_SHOWN {
            self.shown.pop_front();
        }
        true
    }

    /// Frames that wait for a report.
    pub(super) fn len(&self) -> usize {
        self.tracked.len()
    }

    pub(super) fn latency(&self) -> Latency {
        let mut totals: Vec<_> = self.shown.iter().map(|frame| frame.total).collect();
        totals.sort_by(f64::total_cmp);
        let count = totals.len() as f64;
        let mean = |share: fn(&StageShares) -> f64| {
            self.shown
                .iter()
                .map(|frame| share(&frame.shares))
                .sum::<f64>()
                / count.max(1.0)
        };
        Latency {
            p50_ms: percentile(&totals, 50),
            p95_ms: percentile(&totals, 95),
            p99_ms: percentile(&totals, 99),
            stages: StageShares {
                capture: mean(|s| s.capture),
                encode: mean(|s| s.encode),
                publish: mean(|s| s.publish),
                network: mean(|s| s.network),
                reassembly: mean(|s| s.reassembly),
                buffer: mean(|s| s.buffer),
                decode: mean(|s| s.decode),
            },
            frames: totals.len() as u64,
            histogram: self.latencies,
        }
    }
}

/// The smallest value that at least `percent` of `sorted` do not exceed; 0 if there are none.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Publisher 5 s ahead, 40 ms each way: it answers when our clock says 1.040 s and its own 6.040 s.
    #[test]
    fn the_offset_is_that_of_the_shortest_round_trip() {
        let mut clock = ClockOffset::default();
        let ms = |millis: u64| Timestamp::from_micros(millis * 1_000);
        let rtt = Duration::from_millis;
        clock.on_answer(at(1_080), rtt(80), ms(1_080), ms(6_040));
        assert_eq!(clock.micros(), Some(5_000_000));
        // A queue on the way back makes a longer round trip wrong by half of the excess: not taken.
        clock.on_answer(at(2_180), rtt(180), ms(2_180), ms(7_040));
        assert_eq!(clock.micros(), Some(5_000_000));
        // After half a minute it is better than nothing: 37.040 − (32.180 − 0.090) = 4.95 s.
        clock.on_answer(at(32_180), rtt(180), ms(32_180), ms(37_040));
        assert_eq!(clock.micros(), Some(4_950_000));
    }

    /// 1000 octets every 100 ms are 80 kbit/s.
    #[test]
    fn the_meter_counts_the_last_whole_second() {
        let mut meter = RateMeter::default();
        (0..50).for_each(|step| meter.add(at(step * 100), 1_000));
        assert_eq!(meter.bits_per_second(at(5_000)), 80_000);
        assert_eq!(meter.bits_per_second(at(5_500)), 40_000);
        assert_eq!(meter.bits_per_second(at(6_100)), 0);
    }

    #[test]
    fn percentiles_are_ranks() {
        let values: Vec<_> = (1..=200).map(f64::from).collect();
        let ranks = [50, 95, 99].map(|percent| percentile(&values, percent) as u64);
        assert_eq!(ranks, [100, 190, 198]);
        assert!(percentile(&[], 50).abs() < 1e-9);
        assert!((percentile(&[7.0], 99) - 7.0).abs() < 1e-9);
    }
}
