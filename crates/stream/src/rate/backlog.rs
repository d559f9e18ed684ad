//! Packets that wait in queues, by Little's law, and the rate that keeps so many waiting: what \[RFCC\] takes from \[DPCCP\].

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

use super::{RoundTripConfig, Target};

/// Before so many packets have come after a pause, the rate of before it counts.
const MIN_SAMPLES: usize = 8;

/// The timer of losses, which the papers do not mention: as \[RFC6298\] with its least second: a source that is farther away is no
/// loss.
pub(super) const TIMER: RoundTripConfig =
    RoundTripConfig::new(Duration::from_secs(1), Duration::from_millis(200));

/// How fast packets arrive, (1) and (8) of \[RFCC\]:
///
/// ```text
/// r ← α·(N − 1)/(t_last − t_first) + (1 − α)·r
/// ```
///
/// Differs from the paper, which prints N / (t_tail − t_head): N arrivals are N − 1 intervals, so its rates are 2 % too high.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    /// N.
    window: usize,
    /// α.
    gain: f64,
    arrivals: VecDeque<Instant>,
    /// Packets a second, once known.
    rate: Option<f64>,
}

impl Meter {
    pub(super) fn new(window: usize, gain: f64) -> Self {
        Self {
            window: window.clamp(2, 4_096),
            gain: gain.clamp(0.0, 1.0),
            arrivals: VecDeque::new(),
            rate: None,
        }
    }

    pub(super) fn on_arrival(&mut self, now: Instant) {
        if self.arrivals.len() >= self.window {
            self.arrivals.pop_front();
        }
        self.arrivals.push_back(now);
        let first = self.arrivals.front().copied().unwrap_or(now);
        let (count, span) = (self.arrivals.len(), now.since(first).as_secs_f64());
        let is_enough = count >= MIN_SAMPLES || self.rate.is_none() && count > 1;
        if is_enough && span > 0.0 {
            let raw = (count - 1) as f64 / span;
            let before = self.rate.unwrap_or(raw);
            self.rate = Some(self.gain * raw + (1.0 - self.gain) * before);
        }
    }

    /// Forgets arrivals before a pause, which says nothing of the path, but not what rate they had.
    pub(super) fn interrupt(&mut self) {
        self.arrivals.clear();
    }

    /// Returns packets a second, zero if unknown.
    pub(super) fn rate(&self) -> f64 {
        self.rate.unwrap_or(0.0)
    }
}

/// Adaptive additive increase, additive decrease, (10) and (12) of \[RFCC\]: brings the backlog Δ to its setpoint Δ2.
///
/// ```text
/// sr = r + ρ  if Δ < Δ2,   r − ρ  if Δ > Δ2,   r  if equal
///
/// ρ ← 1               if (Δ − Δ2)·(Δ2 − Δ_last) ≥ 0: it has crossed the setpoint
/// ρ ← ρ + 1           if |Δ − Δ_lastK|/K < 1
/// ρ ← max(1, ρ − 1)   if |Δ − Δ_lastK|/K > 1
/// ```
///
/// | paper   | here      | meaning                                                    |
/// |---------|-----------|------------------------------------------------------------|
/// | ρ       | `step`    | packets a second, as it is added to a rate                 |
/// | Δ_last  | `last`    | backlog at the last update, a round trip ago               |
/// | Δ_lastK | `anchor`  | backlog K round trips without queues ago                   |
///
/// The paper leaves open when a crossing is looked for: here at every update, since at every K-th most would be missed, and the
/// rate would go on in steps that were grown far from the setpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regulator {
    step: f64,
    last: f64,
    anchor: f64,
    anchored_at: Instant,
    next: Instant,
}

/// What an update goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backlog {
    /// Δ in packets.
    pub packets: f64,
    /// Δ2 in packets.
    pub setpoint: f64,
    /// r, packets a second.
    pub rate: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// K round trips without queues.
    pub periods: Duration,
}

impl Regulator {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            step: 1.0,
            last: 0.0,
            anchor: 0.0,
            anchored_at: now,
            next: now,
        }
    }

    /// Returns the rate from now on, in packets a second; `None`: a round trip has not passed since it was set.
    pub(super) fn update(&mut self, now: Instant, periods: f64, backlog: &Backlog) -> Option<f64> {
        if now < self.next {
            return None;
        }
        self.next = now + backlog.rtt;
        let (packets, setpoint) = (backlog.packets, backlog.setpoint);
        let has_crossed = (packets - setpoint) * (setpoint - self.last) >= 0.0;
        if has_crossed {
            self.step = 1.0;
        } else if now.since(self.anchored_at) >= backlog.periods {
            let speed = (packets - self.anchor).abs() / periods.max(1.0);
            if speed < 1.0 {
                self.step += 1.0;
            } else if speed > 1.0 {
                self.step = (self.step - 1.0).max(1.0);
            }
        }
        if has_crossed || now.since(self.anchored_at) >= backlog.periods {
            (self.anchor, self.anchored_at) = (packets, now);
        }
        self.last = packets;
        let direction = (setpoint - packets).partial_cmp(&0.0);
        Some(match direction {
            Some(core::cmp::Ordering::Greater) => backlog.rate + self.step,
            Some(core::cmp::Ordering::Less) => backlog.rate - self.step,
            _ => backlog.rate,
        })
    }
}

/// A rate in packets a second, of packets whose mean size is learned, within bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketRate {
    rate: f64,
    min: f64,
    max: f64,
    /// Octets: 0.9 of it and 0.1 of the newest.
    size: Option<f64>,
}

/// What a packet is taken to bring before one has come.
const ASSUMED_SIZE: f64 = 1_024.0;

impl PacketRate {
    pub(super) fn new(rate: f64, min: f64, max: f64) -> Self {
        let min = min.max(1e-3);
        let mut limited = Self {
            rate: min,
            min,
            max: max.max(min),
            size: None,
        };
        limited.set(rate);
        limited
    }

    pub(super) fn get(&self) -> f64 {
        self.rate
    }

    pub(super) fn set(&mut self, rate: f64) {
        // `max` first: what was worked out may be no number.
        self.rate = rate.max(self.min).min(self.max);
    }

    pub(super) fn on_size(&mut self, size: ByteSize) {
        let size = size.as_bytes() as f64;
        self.size = Some(self.size.map_or(size, |mean| 0.9 * mean + 0.1 * size));
    }

    fn size(&self) -> f64 {
        self.size.unwrap_or(ASSUMED_SIZE).max(1.0)
    }

    /// Returns `rate` in packets a second.
    pub(super) fn packets(&self, rate: Bitrate) -> f64 {
        rate.as_bps() as f64 / 8.0 / self.size()
    }

    /// Returns what so many packets a second are.
    pub(super) fn bitrate(&self, packets: f64) -> Bitrate {
        Bitrate::bps((packets * self.size() * 8.0) as u64)
    }

    /// Returns what it allows. Data of caches and of producers overtake each other, which is no loss: what is lost shows by its timer.
    pub(super) fn target(&self, timeout: Duration) -> Target {
        Target {
            rate: Some(self.bitrate(self.rate)),
            timeout: Some(timeout),
            ignores_gaps: true,
            packet_size: Some(ByteSize::bytes(self.size().round() as u64)),
            ..Target::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::at;

    /// 48 arrivals 10 ms apart are 100 a second; then one every 5 ms: after 48 of them 200, but for what is left of the old.
    #[test]
    fn intervals_are_counted_not_arrivals() {
        let mut meter = Meter::new(48, 0.75);
        for step in 0..48 {
            meter.on_arrival(at(step * 10_000));
        }
        assert!((meter.rate() - 100.0).abs() < 1e-9);
        for step in 1..=60 {
            meter.on_arrival(at(470_000 + step * 5_000));
        }
        assert!((meter.rate() - 200.0).abs() < 0.1, "{}", meter.rate());
    }

    #[test]
    fn a_pause_that_says_nothing_is_left_out() {
        let mut meter = Meter::new(48, 0.75);
        for step in 0..48 {
            meter.on_arrival(at(step * 10_000));
        }
        meter.interrupt();
        for step in 0..7 {
            meter.on_arrival(at(2_000_000 + step));
        }
        assert!((meter.rate() - 100.0).abs() < 1e-9);
    }

    fn backlog(packets: f64) -> Backlog {
        Backlog {
            packets,
            setpoint: 20.0,
            rate: 100.0,
            rtt: Duration::from_millis(100),
            periods: Duration::from_millis(300),
        }
    }

    /// From 0 towards 20 at half a packet in three round trips: ρ is 1, 1, 1 and 2 after K of them; at 19 and then 21 it
    /// has crossed, and is 1 again.
    #[test]
    fn steps_grow_while_the_backlog_stands_and_begin_anew_where_it_crosses() {
        let mut regulator = Regulator::new(at(0));
        let mut rates = Vec::new();
        let backlogs = [1.0, 1.2, 1.4, 1.5, 1.6, 1.7, 1.8, 9.0, 19.0, 21.0, 20.0];
        for (round, packets) in (1..).zip(backlogs) {
            let now = at(round * 100_000);
            rates.extend(regulator.update(now, 3.0, &backlog(packets)));
            // A round trip has not passed.
            assert_eq!(regulator.update(now, 3.0, &backlog(packets)), None);
        }
        // (9 − 1.8)/3 > 1 takes one off again when K round trips have passed, at 19.
        let expected = [
            101.0, 101.0, 102.0, 102.0, 102.0, 103.0, 103.0, 103.0, 102.0, 99.0, 100.0,
        ];
        assert_eq!(rates, expected);
    }

    #[test]
    fn rates_stay_within_their_bounds() {
        let mut rate = PacketRate::new(10.0, 1.0, 1_000.0);
        rate.set(f64::NAN);
        assert!((rate.get() - 1.0).abs() < 1e-9);
        rate.set(f64::INFINITY);
        assert!((rate.get() - 1_000.0).abs() < 1e-9);
        rate.on_size(ByteSize::bytes(8_000));
        assert_eq!(rate.target(Duration::ZERO).rate, Some(Bitrate::mbps(64)));
        assert!((rate.packets(Bitrate::mbps(64)) - 1_000.0).abs() < 1e-9);
    }
}
