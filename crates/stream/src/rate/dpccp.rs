//! DPCCP-R: the delay-based path-specified congestion control of \[DPCCP\], reconstructed from what \[RFCC\] says of it.

use core::time::Duration;

use namecast_units::{Bitrate, Instant};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::backlog::{Backlog, Meter, PacketRate, Regulator, TIMER};
use super::{Arrival, Estimates, Lost, RateController, RoundTrip, Target};

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Packets a second at the start.
    #[default(10.0)]
    pub initial_rate: f64,
    /// Δ1: packets that wait when the start ends.
    #[default(2.0)]
    pub leave_start: f64,
    /// Δ2: packets that are to wait.
    #[default(20.0)]
    pub setpoint: f64,
    /// Packets over which the rate is measured.
    #[default(48)]
    pub window: usize,
    /// Weight of a new measurement of the rate.
    #[default(0.75)]
    pub alpha: f64,
    /// Round trips without queues between two changes of the step.
    #[default(3.0)]
    pub periods: f64,
    /// What is left of the rate after a loss, once in a round trip.
    #[default(0.5)]
    pub decrease: f64,
    /// Packets a second, at least.
    #[default(1.0)]
    pub min_rate: f64,
    /// Packets a second, at most.
    #[default(100_000.0)]
    pub max_rate: f64,
}

/// DPCCP-R: doubles its rate in each round trip until Δ1 packets wait, and then keeps Δ2 waiting.
///
/// ```text
/// Δ = (RTT − RTT_base)·r                   RTT ← ⅞·RTT + ⅛·sample, RTT_base the least of all
///
/// start:       sr ← 2·sr each round trip, while Δ ≤ Δ1
/// regulation:  A-AIAD, as RFCC's: that is where [RFCC] has it from
/// loss:        sr ← sr/2, once in a round trip
/// ```
///
/// The paper itself was not available. That the backlog is estimated by Little's law, Δ1 and Δ2, the regulation and its K are
/// \[RFCC\]'s account of it; the start, what losses do, and that RTT_base is the least for ever are our reading. In its favour,
/// the pause between two segments is not taken for a rate.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    rate: PacketRate,
    meter: Meter,
    timer: RoundTrip,
    /// Seconds.
    rtt: Option<f64>,
    base_rtt: f64,
    /// When the rate is doubled next; `None`: the start is over.
    doubles_at: Option<Instant>,
    regulator: Regulator,
    decreased_at: Option<Instant>,
}

impl Controller {
    /// A controller at its start.
    pub fn new(now: Instant, config: Config) -> Self {
        Self {
            rate: PacketRate::new(config.initial_rate, config.min_rate, config.max_rate),
            meter: Meter::new(config.window, config.alpha),
            timer: RoundTrip::new(TIMER),
            rtt: None,
            base_rtt: f64::INFINITY,
            doubles_at: Some(now),
            regulator: Regulator::new(now),
            decreased_at: None,
            config,
        }
    }

    /// Δ.
    fn backlog(&self) -> f64 {
        let queueing = self.rtt.map_or(0.0, |rtt| rtt - self.base_rtt);
        queueing.max(0.0) * self.meter.rate()
    }

    fn smoothed(&self) -> Duration {
        Duration::from_secs_f64(self.rtt.unwrap_or(0.0))
    }

    fn on_round(&mut self, now: Instant) {
        let packets = self.backlog();
        if let Some(at) = self.doubles_at {
            if packets <= self.config.leave_start {
                if now >= at {
                    self.rate.set(2.0 * self.rate.get());
                    self.doubles_at = Some(now + self.smoothed());
                }
                return;
            }
            self.doubles_at = None;
            self.regulator = Regulator::new(now);
        }
        let backlog = Backlog {
            packets,
            setpoint: self.config.setpoint,
            rate: self.meter.rate(),
            rtt: self.smoothed(),
            periods: Duration::from_secs_f64(self.base_rtt * self.config.periods.clamp(0.0, 1e3)),
        };
        if let Some(rate) = self.regulator.update(now, self.config.periods, &backlog) {
            self.rate.set(rate);
        }
    }
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        self.rate.on_size(data.size);
        if let Some(rtt) = data.rtt {
            self.timer.on_sample(rtt);
            let rtt = rtt.as_secs_f64();
            self.base_rtt = self.base_rtt.min(rtt);
            self.rtt = Some(self.rtt.map_or(rtt, |mean| mean + (rtt - mean) / 8.0));
        }
        if !data.is_limiting {
            self.meter.interrupt();
        } else {
            self.meter.on_arrival(now);
            if self.rtt.is_some() {
                self.on_round(now);
            }
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        if lost.repeated || self.decreased_at.is_some_and(|at| lost.asked_at <= at) {
            return;
        }
        self.decreased_at = Some(now);
        self.doubles_at = None;
        self.timer.back_off();
        self.rate.set(self.config.decrease * self.rate.get());
        self.regulator = Regulator::new(now + self.smoothed());
    }

    fn target(&self) -> Target {
        self.rate.target(self.timer.timeout())
    }

    fn name(&self) -> &'static str {
        "dpccp"
    }

    fn estimates(&self) -> Estimates {
        let seconds = |value: f64| Some(value).filter(|it| it.is_finite());
        Estimates {
            bandwidth: Some(self.rate.bitrate(self.rate.get()))
                .filter(|rate| *rate > Bitrate::ZERO),
            average_rtt: self.rtt.map(Duration::from_secs_f64),
            min_rtt: seconds(self.base_rtt).map(Duration::from_secs_f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Loss;
    use crate::rate::reports::{arrival, at, lost};

    /// A packet every 10 ms with a round-trip time of 100 ms: 10, 20 at the first, 40 and 80 a round trip later each. Then
    /// 140 ms: RTT is 105, 109.4 … until (RTT − 100 ms)·100 packets a second are above 2, at 120.7 ms.
    #[test]
    fn the_start_doubles_until_something_waits() {
        let mut dpccp = Controller::new(at(0), Config::default());
        let mut rates = vec![dpccp.rate.get()];
        for step in 10..=30_u64 {
            let now = at(step * 10_000);
            dpccp.on_data(now, &arrival(now, at(step * 10_000 - 100_000)));
            if rates.last() != Some(&dpccp.rate.get()) {
                rates.push(dpccp.rate.get());
            }
        }
        assert_eq!(rates, [10.0, 20.0, 40.0, 80.0]);
        for step in 31..=35_u64 {
            let now = at(step * 10_000);
            dpccp.on_data(now, &arrival(now, at(step * 10_000 - 140_000)));
            assert_eq!(dpccp.doubles_at.is_some(), step < 36, "{step}");
        }
        let now = at(360_000);
        dpccp.on_data(now, &arrival(now, at(220_000)));
        assert_eq!(dpccp.doubles_at, None);
        // r + 1.
        assert!(
            (dpccp.rate.get() - 101.0).abs() < 1e-6,
            "{}",
            dpccp.rate.get()
        );
    }

    /// Longer round trips are taken for a queue for ever: a source further away makes its rate fall below what comes.
    #[test]
    fn a_farther_source_is_taken_for_a_queue() {
        let mut dpccp = Controller::new(at(0), Config::default());
        for step in 10..2_000_u64 {
            let now = at(step * 10_000);
            let rtt = if step < 500 { 50_000 } else { 350_000 };
            dpccp.on_data(
                now,
                &arrival(now, at(step * 10_000 - rtt.min(step * 10_000))),
            );
        }
        // 300 ms · 100 packets a second are 30 packets.
        assert!((dpccp.backlog() - 30.0).abs() < 0.1, "{}", dpccp.backlog());
        assert!(dpccp.rate.get() < 100.0);
    }

    #[test]
    fn a_loss_halves_the_rate_once_in_a_round_trip() {
        let mut dpccp = Controller::new(at(0), Config::default());
        dpccp.on_data(at(100_000), &arrival(at(100_000), at(0)));
        for _ in 0..3 {
            dpccp.on_loss(at(200_000), &lost(at(150_000), Loss::Gap));
        }
        assert!((dpccp.rate.get() - 10.0).abs() < 1e-9);
    }
}
