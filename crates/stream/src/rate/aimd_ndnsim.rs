//! AIMD as ndnSIM's window consumer has it \[NDNSIM\]: driven by a retransmission timer of at least 200 ms.

use core::time::Duration;

use namecast_units::Instant;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::recovery::Recovery;
use super::window::Window;
use super::{Arrival, Estimates, Loss, Lost, RateController, RoundTrip, RoundTripConfig, Target};

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Interests at the start, and at least.
    #[default(1.0)]
    pub initial_window: f64,
    /// What is left of the window after congestion.
    #[default(0.5)]
    pub decrease: f64,
    /// Share of the Interests under way that must be answered after a decrease, beyond those that were requested before
    /// it, for the next.
    #[default(0.5)]
    pub suppression: f64,
    /// Least timeout.
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(200))]
    pub min_timeout: Duration,
    /// What the timeout is longer than the smoothed round-trip time, at least: ndnSIM looks every 50 ms.
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(50))]
    pub timeout_margin: Duration,
}

/// AIMD with conservative window adaptation, as `ConsumerPcon` of ndnSIM 2.5 and later:
///
/// ```text
/// Data:             W ← W + 1 below ssthresh,  W ← W + 1/W above
/// timeout or mark:  if highest > recovery:  recovery ← next + s·(next − highest),  ssthresh ← W ← max(1, b·W)
/// RTO ← 2·RTO at the first timeout of each round, up to 64 times, until the next sample
/// ```
///
/// | ndnSIM               | here            | meaning                                        |
/// |----------------------|-----------------|------------------------------------------------|
/// | `m_window`           | W               | Interests out                                  |
/// | `m_highData`         | highest         | newest Interest that was answered              |
/// | `m_recPoint`         | recovery        | when it must have been requested, for the next decrease |
/// | `m_addRttSuppress`   | s, `suppression` | 0.5                                           |
///
/// Differs from it: points in the sequence are points in time, where `next − highest`, the Interests under way, is one
/// smoothed round-trip time; timers are exact, and the timeout has a margin, instead of being checked every 50 ms. What was
/// requested before the timer doubled does not double it again, as one check of ndnSIM finds all of a burst with the old
/// timer: with an exact one, each loss of a burst would wait twice as long as the one before.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    config: Config,
    window: Window,
    round_trip: RoundTrip,
    recovery: Recovery,
}

impl Controller {
    /// A controller in slow start.
    pub fn new(config: Config) -> Self {
        Self {
            window: Window::new(config.initial_window, config.initial_window),
            round_trip: RoundTrip::new(RoundTripConfig::new(
                config.min_timeout,
                config.timeout_margin,
            )),
            recovery: Recovery::new(config.suppression),
            config,
        }
    }

    fn on_congestion(&mut self, now: Instant) {
        if self.recovery.begins(now, &self.round_trip) {
            let left = self.config.decrease * self.window.size();
            self.window.decrease_to(now, left);
        }
    }
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        if let Some(rtt) = data.rtt {
            self.round_trip.on_sample(rtt);
        }
        self.recovery.on_data(data.asked_at);
        if data.congestion_marked {
            self.on_congestion(now);
        } else if data.is_limiting {
            self.window.grow(if self.window.in_slow_start() {
                1.0
            } else {
                1.0 / self.window.size()
            });
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        match lost.kind {
            // Its timer is all it listens to.
            Loss::Gap => {}
            Loss::Timeout => {
                self.recovery
                    .back_off(now, lost.asked_at, &mut self.round_trip);
                self.on_congestion(now);
            }
            Loss::Nack => self.on_congestion(now),
        }
    }

    fn target(&self) -> Target {
        Target {
            window: Some(self.window.allowed()),
            timeout: Some(self.round_trip.timeout()),
            ignores_gaps: true,
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        "aimd-ndnsim"
    }

    fn estimates(&self) -> Estimates {
        self.round_trip.estimates()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};

    /// 1 → 9 with eight Data of 20 ms. A timeout: 4.5, and none further before Data comes that was requested more than half
    /// a round-trip time later. Then 4.5 + 1/4.5 = 4.7222, halved 2.3611.
    #[test]
    fn it_halves_once_in_one_and_a_half_round_trips() {
        let mut aimd = Controller::new(Config::default());
        for _ in 0..8 {
            aimd.on_data(at(20_000), &arrival(at(20_000), at(0)));
        }
        assert_eq!(aimd.target().window, Some(9));
        aimd.on_loss(at(30_000), &lost(at(0), Loss::Gap));
        assert_eq!(aimd.target().window, Some(9));
        for _ in 0..3 {
            aimd.on_loss(at(220_000), &lost(at(20_000), Loss::Timeout));
        }
        assert!((aimd.window.size() - 4.5).abs() < 1e-9);
        // 200 ms doubled once for the three, and again for what was requested after that.
        assert_eq!(aimd.target().timeout, Some(Duration::from_millis(400)));
        aimd.on_loss(at(640_000), &lost(at(230_000), Loss::Timeout));
        assert_eq!(aimd.target().timeout, Some(Duration::from_millis(800)));
        aimd.on_data(at(250_000), &arrival(at(250_000), at(230_000)));
        assert!((aimd.window.size() - 4.7222).abs() < 1e-4);
        assert_eq!(aimd.target().timeout, Some(Duration::from_millis(200)));
        aimd.on_loss(at(250_000), &lost(at(40_000), Loss::Timeout));
        assert!((aimd.window.size() - 4.7222).abs() < 1e-4);
        aimd.on_data(at(251_000), &arrival(at(251_000), at(230_001)));
        let before = aimd.window.size();
        aimd.on_loss(at(251_000), &lost(at(41_000), Loss::Timeout));
        assert!((aimd.window.size() - before / 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_never_falls_below_its_start() {
        let mut aimd = Controller::new(Config::default());
        aimd.on_loss(at(1_000_000), &lost(at(0), Loss::Timeout));
        assert_eq!(aimd.target().window, Some(1));
    }
}
