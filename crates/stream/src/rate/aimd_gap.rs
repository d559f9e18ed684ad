//! AIMD that learns of congestion from gaps, as TCP does with selective acknowledgements: additive increase,
//! multiplicative decrease, in its own favour.

use core::time::Duration;

use namecast_units::Instant;
use serde::{Deserialize, Serialize};

use super::window::{Pacing, Window};
use super::{Arrival, Estimates, Loss, Lost, RateController, RoundTrip, RoundTripConfig, Target};

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Config {
    /// Interests at the start (10 in [RFC6928]).
    pub initial_window: f64,
    /// Interests at least; two, so that a loss can be followed by something that shows it.
    pub least_window: f64,
    /// Whether the window is spread over its round trip, as Linux does.
    pub paced: bool,
    /// Growth per window of Data in congestion avoidance.
    pub increase: f64,
    /// What is left of the window after congestion.
    pub decrease: f64,
    /// What the timeout is longer than the smoothed round-trip time, at least (200 ms in Linux).
    #[serde(with = "namecast_units::duration")]
    pub timeout_margin: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            initial_window: 10.0,
            least_window: 2.0,
            paced: true,
            increase: 1.0,
            decrease: 0.5,
            timeout_margin: Duration::from_millis(200),
        }
    }
}

/// Additive increase, multiplicative decrease ([RFC5681], [RFC6298]):
///
/// ```text
/// Data:           W ← W + 1 below ssthresh,  W ← W + a/W above
/// gap or mark:    ssthresh ← W ← b·W         once per window
/// timeout:        ssthresh ← b·W, W ← least  once per window
/// ```
///
/// | here             | meaning                                              |
/// |------------------|------------------------------------------------------|
/// | W                | window in Interests                                  |
/// | ssthresh         | where slow start ends; infinite at first             |
/// | a                | `increase`                                           |
/// | b                | `decrease`                                           |
///
/// All losses of one window lead to one decrease, as with selective acknowledgements: what was asked for before the last
/// decrease counts no more. How far packets may overtake each other before that is a gap is the pipeline's choice.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    config: Config,
    window: Window,
    slow_start_until: f64,
    round_trip: RoundTrip,
    pacing: Pacing,
}

impl Controller {
    /// A controller in slow start.
    pub fn new(config: Config) -> Self {
        Self {
            window: Window::new(config.initial_window, config.least_window),
            slow_start_until: f64::INFINITY,
            round_trip: RoundTrip::new(RoundTripConfig::new(
                config.timeout_margin,
                config.timeout_margin,
            )),
            pacing: Pacing::default(),
            config,
        }
    }

    fn on_congestion(&mut self, now: Instant, asked_at: Instant) {
        if self.window.is_news(asked_at) {
            self.window
                .decrease_to(now, self.config.decrease * self.window.size());
            self.slow_start_until = self.window.size();
        }
    }
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        self.pacing.on_data(data.size);
        if let Some(rtt) = data.rtt {
            self.round_trip.on_sample(rtt);
        }
        if data.congestion_marked {
            self.on_congestion(now, data.asked_at);
        } else if data.is_limiting && self.window.is_news(data.asked_at) {
            let size = self.window.size();
            self.window.grow(if size < self.slow_start_until {
                1.0
            } else {
                self.config.increase / size
            });
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        match lost.kind {
            Loss::Gap | Loss::Nack => self.on_congestion(now, lost.asked_at),
            // The gap before it was answered already.
            Loss::Timeout if lost.repeated => {}
            Loss::Timeout => {
                if self.window.is_news(lost.asked_at) {
                    self.round_trip.back_off();
                    self.slow_start_until = self.config.decrease * self.window.size();
                    self.window.decrease_to(now, 0.0);
                }
            }
        }
    }

    fn target(&self) -> Target {
        let slow_start = self.window.size() < self.slow_start_until;
        let rtt = self.round_trip.smoothed();
        let rate = self.pacing.rate(self.window.size(), rtt, slow_start);
        Target {
            rate: rate.filter(|_| self.config.paced),
            window: Some(self.window.allowed()),
            timeout: Some(self.round_trip.timeout()),
            packet_size: self.pacing.packet_size(),
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        "aimd-gap"
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            average_rtt: self.round_trip.smoothed(),
            ..Estimates::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};

    fn window(controller: &Controller) -> f64 {
        controller.window.size()
    }

    /// 10, then one more for each of ten: 20. A gap: 10. Ten in congestion avoidance: about one more.
    #[test]
    fn it_grows_by_one_a_window_and_halves_once_for_all_that_is_lost_of_one() {
        let mut aimd = Controller::new(Config::default());
        for _ in 0..10 {
            aimd.on_data(at(20_000), &arrival(at(20_000), at(0)));
        }
        assert_eq!(aimd.target().window, Some(20));
        for asked_at in 0..5 {
            aimd.on_loss(at(40_000), &lost(at(20_000 + asked_at), Loss::Gap));
        }
        assert_eq!(aimd.target().window, Some(10));
        // What was asked for before shows nothing, neither good nor bad.
        aimd.on_data(at(45_000), &arrival(at(45_000), at(40_000)));
        assert!((window(&aimd) - 10.0).abs() < 1e-9);
        for _ in 0..10 {
            aimd.on_data(at(60_000), &arrival(at(60_000), at(40_001)));
        }
        // 10 + 1/10 + 1/10.1 + …: √(100 + 2·10) = 10.95 and a little more.
        assert!((10.95..=10.97).contains(&window(&aimd)), "{aimd:?}");
        aimd.on_loss(at(60_001), &lost(at(40_001), Loss::Gap));
        assert!((5.47..=5.49).contains(&window(&aimd)), "{aimd:?}");
    }

    /// SRTT 20 ms, so the timeout is 220 ms; after one it is 440 ms, and the window starts anew towards half.
    #[test]
    fn a_timeout_starts_anew() {
        let mut aimd = Controller::new(Config::default());
        aimd.on_data(at(20_000), &arrival(at(20_000), at(0)));
        assert_eq!(aimd.target().timeout, Some(Duration::from_millis(220)));
        for _ in 0..2 {
            aimd.on_loss(at(220_000), &lost(at(20_000), Loss::Timeout));
        }
        assert_eq!(aimd.target().timeout, Some(Duration::from_millis(440)));
        assert_eq!(aimd.target().window, Some(2));
        // Slow start up to 11 · ½ = 5.5, then 6 + 1/6.
        for _ in 0..5 {
            aimd.on_data(at(250_000), &arrival(at(250_000), at(221_000)));
        }
        assert!((window(&aimd) - (6.0 + 1.0 / 6.0)).abs() < 1e-9);
        let repeated = Lost {
            repeated: true,
            ..lost(at(240_000), Loss::Timeout)
        };
        aimd.on_loss(at(260_000), &repeated);
        assert_eq!(aimd.target().window, Some(6));
    }

    #[test]
    fn marks_count_as_loss_and_unused_windows_do_not_grow() {
        let mut aimd = Controller::new(Config::default());
        let unused = Arrival {
            is_limiting: false,
            ..arrival(at(20_000), at(0))
        };
        aimd.on_data(at(20_000), &unused);
        assert_eq!(aimd.target().window, Some(10));
        let marked = Arrival {
            congestion_marked: true,
            ..arrival(at(20_000), at(0))
        };
        for _ in 0..2 {
            aimd.on_data(at(20_000), &marked);
        }
        assert_eq!(aimd.target().window, Some(5));
    }
}
