//! Interest Control Protocol \[ICP\]: a window whose timer is the sign of congestion.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::Instant;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::window::Window;
use super::{Arrival, Estimates, Loss, Lost, RateController, Target};

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Interests at the start.
    #[default(2.0)]
    pub initial_window: f64,
    /// Whether the window doubles in each round trip until the first decrease. Not in the paper, where a flow takes as many
    /// round trips to find its bandwidth as it needs Interests.
    #[default(true)]
    pub slow_start: bool,
    /// η, growth per window of Data.
    #[default(1.0)]
    pub increase: f64,
    /// β, what is left of the window after a timeout.
    #[default(0.5)]
    pub decrease: f64,
    /// δ, where between the least and the greatest round-trip time the timer lies: 0.8 in the authors' simulator, 0.5 in
    /// the paper.
    #[default(0.8)]
    pub timer_share: f64,
    /// Round-trip times that the timer rests on: 30 in the authors' simulator, 20 in the paper.
    #[default(30)]
    pub samples: usize,
    /// What the timer is longer by. Not in the paper, where the noise of a real path is enough: without any, the least and
    /// the greatest of an idle path are the same, and every packet is late.
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(10))]
    pub granularity: Duration,
}

/// Interest Control Protocol \[ICP\]:
///
/// ```text
/// Data:     W ← W + η/W
/// timeout:  W ← ⌊β·W⌋       once per τ, and only once the samples are complete
///
/// τ = RTT_min + δ·(RTT_max − RTT_min)     over the last samples of Interests sent once
/// ```
///
/// | paper          | here          | meaning                          |
/// |----------------|---------------|----------------------------------|
/// | W              | `window`      | Interests out                    |
/// | η, β           | `increase`, `decrease` | gains                   |
/// | δ              | `timer_share` | place of the timer               |
/// | RTT_min, _max  | of `rtts`     | extremes of the last samples     |
///
/// A queue that grows lifts the round-trip time above τ, so that no packet needs to be dropped.
///
/// Differs from the paper, in its favour: see [`Config::slow_start`] and [`Config::granularity`]; and a timeout with one Interest out, which cannot be
/// congestion of our making, throws the samples away. Otherwise a way that becomes longer than τ, with every Interest
/// repeated and so none measured, would keep the window at one for ever.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    window: Window,
    rtts: VecDeque<Duration>,
    /// τ, once the samples are complete.
    timer: Option<Duration>,
}

/// Most samples that a configuration can request.
const MAX_SAMPLES: usize = 4_096;

impl Controller {
    /// A controller without samples.
    pub fn new(config: Config) -> Self {
        let samples = config.samples.clamp(1, MAX_SAMPLES);
        Self {
            window: Window::new(config.initial_window, 1.0),
            rtts: VecDeque::with_capacity(samples),
            timer: None,
            config: Config { samples, ..config },
        }
    }

    fn on_sample(&mut self, rtt: Duration) {
        if self.rtts.len() >= self.config.samples {
            self.rtts.pop_front();
        }
        self.rtts.push_back(rtt);
        if self.rtts.len() == self.config.samples {
            let least = self.rtts.iter().min().copied().unwrap_or_default();
            let greatest = self.rtts.iter().max().copied().unwrap_or_default();
            let share = (greatest - least).mul_f64(self.config.timer_share.clamp(0.0, 1.0));
            self.timer = Some(least + share + self.config.granularity);
        }
    }

    fn on_congestion(&mut self, now: Instant) {
        let Some(timer) = self.timer else {
            return;
        };
        let is_due = self
            .window
            .decreased_at()
            .is_none_or(|at| now.since(at) > timer);
        if !is_due {
            return;
        }
        if self.window.allowed() == 1 {
            self.rtts.clear();
            self.timer = None;
        }
        let left = self.config.decrease * self.window.size();
        self.window.decrease_to(now, left.floor());
    }
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        if let Some(rtt) = data.rtt {
            self.on_sample(rtt);
        }
        if data.congestion_marked {
            self.on_congestion(now);
        } else if data.is_limiting && !data.was_lost {
            if self.config.slow_start && self.window.decreased_at().is_none() {
                self.window.grow(1.0);
                return;
            }
            self.window.grow(self.config.increase / self.window.size());
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        // Gaps are not among its signs: without a timeout there is no loss.
        if lost.kind != Loss::Gap {
            self.on_congestion(now);
        }
    }

    fn target(&self) -> Target {
        Target {
            window: Some(self.window.allowed()),
            timeout: self.timer,
            ignores_gaps: true,
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        "aimd-icp"
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            min_rtt: self.rtts.iter().min().copied(),
            ..Estimates::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};

    fn three_samples() -> Config {
        Config {
            samples: 3,
            slow_start: false,
            granularity: Duration::from_millis(1),
            ..Config::default()
        }
    }

    /// RTTs 20, 30, 25 ms: τ = 20 + 0.8·10 + 1 = 29 ms; then 30, 25, 40: 25 + 0.8·15 + 1 = 38 ms.
    #[test]
    fn the_timer_lies_between_the_extremes_of_the_last_samples() {
        let mut icp = Controller::new(three_samples());
        let mut timers = Vec::new();
        for millis in [20, 30, 25, 40] {
            icp.on_data(
                at(50_000),
                &arrival(at(50_000), at(50_000 - millis * 1_000)),
            );
            timers.push(icp.target().timeout.map(|timer| timer.as_millis()));
        }
        assert_eq!(timers, [None, None, Some(29), Some(38)]);
    }

    /// 2 + 1/2 + 1/2.5 + 1/2.9 = 3.2448; halved and floored 1. A second timeout within τ does nothing.
    #[test]
    fn it_grows_by_one_a_window_and_halves_once_per_timer() {
        let mut icp = Controller::new(three_samples());
        icp.on_loss(at(0), &lost(at(0), Loss::Timeout));
        assert_eq!(icp.target().window, Some(2));
        for _ in 0..3 {
            icp.on_data(at(20_000), &arrival(at(20_000), at(0)));
        }
        assert!((icp.window.size() - 3.2448).abs() < 1e-4);
        icp.on_loss(at(30_000), &lost(at(9_000), Loss::Gap));
        assert_eq!(icp.target().window, Some(3));
        icp.on_loss(at(30_000), &lost(at(9_000), Loss::Timeout));
        assert!((icp.window.size() - 1.0).abs() < 1e-9);
        for _ in 0..60 {
            icp.on_data(at(40_000), &arrival(at(40_000), at(20_000)));
        }
        let before = icp.window.size();
        // τ = 21 ms: not before 51 ms.
        icp.on_loss(at(51_000), &lost(at(30_000), Loss::Timeout));
        assert!((icp.window.size() - before).abs() < 1e-9);
        icp.on_loss(at(51_001), &lost(at(30_000), Loss::Timeout));
        assert!((icp.window.size() - (before / 2.0).floor()).abs() < 1e-9);
    }

    /// The round trip is longer than τ now, and each Interest is repeated before its answer comes.
    #[test]
    fn a_longer_path_does_not_hold_the_window_down_for_ever() {
        let mut icp = Controller::new(three_samples());
        for _ in 0..3 {
            icp.on_data(at(20_000), &arrival(at(20_000), at(0)));
        }
        for step in 1..4 {
            icp.on_loss(at(step * 100_000), &lost(at(0), Loss::Timeout));
        }
        assert_eq!((icp.target().window, icp.target().timeout), (Some(1), None));
    }
}
