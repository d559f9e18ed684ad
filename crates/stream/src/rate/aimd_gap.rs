//! AIMD that learns of congestion from gaps, as TCP does with selective acknowledgements: additive increase,
//! multiplicative decrease, in its own favour.

use core::time::Duration;

use namecast_units::Instant;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::law::{self, Law};
use super::window::Window;

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Interests at the start (10 in \[RFC6928\]).
    #[default(10.0)]
    pub initial_window: f64,
    /// Interests at least; two, so that a loss can be followed by something that shows it.
    #[default(2.0)]
    pub min_window: f64,
    /// Whether the window is spread over its round trip, as Linux does.
    #[default(true)]
    pub paced: bool,
    /// Growth per window of Data in congestion avoidance.
    #[default(1.0)]
    pub increase: f64,
    /// What is left of the window after congestion.
    #[default(0.5)]
    pub decrease: f64,
    /// What the timeout is longer than the smoothed round-trip time, at least (200 ms in Linux).
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(200))]
    pub timeout_margin: Duration,
}

/// Additive increase, multiplicative decrease (\[RFC5681\]):
///
/// ```text
/// Data:           W ← W + a/W
/// congestion:     W ← b·W
/// ```
///
/// | here             | meaning                                              |
/// |------------------|------------------------------------------------------|
/// | W                | window in Interests                                  |
/// | a                | `increase`                                           |
/// | b                | `decrease`                                           |
#[derive(Clone, Copy, Debug)]
pub struct AimdGap {
    increase: f64,
    decrease: f64,
}

/// Slow start, then the law of [`AimdGap`]. Congestion is a gap, a Nack or a mark, once per window; a timeout starts anew from
/// the least window.
pub type Controller = law::Controller<AimdGap>;

impl Controller {
    /// A controller in slow start.
    pub fn new(config: Config) -> Self {
        let law = AimdGap {
            increase: config.increase,
            decrease: config.decrease,
        };
        Self::with_law(
            law,
            Window::new(config.initial_window, config.min_window),
            config.paced,
            config.timeout_margin,
        )
    }
}

impl Law for AimdGap {
    const NAME: &'static str = "aimd-gap";

    fn avoid_congestion(&mut self, _now: Instant, window: &mut Window, _rtt: Option<Duration>) {
        window.grow(self.increase / window.size());
    }

    fn on_congestion(&mut self, window: &Window) -> f64 {
        self.decrease * window.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};
    use crate::rate::{Arrival, Loss, Lost, RateController};

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
        // What was requested before shows nothing, neither good nor bad.
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
