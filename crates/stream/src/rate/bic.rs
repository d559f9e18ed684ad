//! Binary Increase Congestion control \[BIC\].

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
    /// Interests at least.
    #[default(2.0)]
    pub min_window: f64,
    /// Whether the window is spread over its round trip, as Linux does.
    #[default(true)]
    pub paced: bool,
    /// Window below which it is AIMD (14 in the paper).
    #[default(14.0)]
    pub low_window: f64,
    /// Most growth per window of Data (16 in ndnSIM).
    #[default(16.0)]
    pub greatest_increment: f64,
    /// Distance to the plateau that is taken for none.
    #[default(0.01)]
    pub min_increment: f64,
    /// What is left of the window after congestion (0.8 in ndnSIM, 0.875 in the paper).
    #[default(0.8)]
    pub decrease: f64,
    /// The same below `low_window`.
    #[default(0.5)]
    pub low_decrease: f64,
    /// Whether a flow that does not reach its old plateau makes room.
    #[default(true)]
    pub fast_convergence: bool,
    /// What the timeout is longer than the smoothed round-trip time, at least (200 ms in Linux).
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(200))]
    pub timeout_margin: Duration,
}

/// Binary Increase Congestion control \[BIC\]: the window approaches the one at which congestion came by halves, and looks
/// beyond it in steps that double.
///
/// ```text
/// below ssthresh:          W ← W + 1 per Data
/// W < low window:          W ← W + 1/W
/// W < max:                 W ← W + min(target − W, S)/W;   then min ← W, target ← (max + min)/2
/// beyond max:              W ← W + s/W, where s = 1, 2, 4, … S doubles each time W has grown by s
/// congestion:              max ← W, or (W + b·W)/2 if W < max;  ssthresh ← min ← W ← b·W;  target ← (max + min)/2
/// ```
///
/// | paper          | here                 | meaning                                    |
/// |----------------|----------------------|--------------------------------------------|
/// | W              | `window`             | Interests out                              |
/// | max, min       | `greatest`, `least`  | bounds of the search                       |
/// | S              | `greatest_increment` | fastest growth                             |
/// | s              | `Beyond::step`       | growth while looking beyond                |
/// | b              | `decrease`           | what is left                               |
///
/// Differs from ndnSIM, in its favour: it starts with slow start, and listens to gaps.
#[derive(Clone, Copy, Debug)]
pub struct Bic {
    config: Config,
    /// Bounds of the binary search; the upper one is infinite if none is known.
    least: f64,
    greatest: f64,
    beyond: Option<Beyond>,
}

/// The search for a new plateau.
#[derive(Clone, Copy, Debug)]
struct Beyond {
    step: f64,
    /// Window at which the step doubles.
    until: f64,
}

/// Slow start, then the law of [`Bic`]. Congestion is a gap, a Nack or a mark, once per window; a timeout starts anew from
/// the least window.
pub type Controller = law::Controller<Bic>;

impl Controller {
    /// A controller in slow start.
    pub fn new(config: Config) -> Self {
        Self::with_law(
            Bic::new(config),
            Window::new(config.initial_window, config.min_window),
            config.paced,
            config.timeout_margin,
        )
    }
}

impl Bic {
    pub(super) const fn new(config: Config) -> Self {
        Self {
            config,
            least: 0.0,
            greatest: f64::INFINITY,
            beyond: None,
        }
    }

    fn search(&mut self, window: &mut Window) {
        let size = window.size();
        let greatest_increment = self.config.greatest_increment;
        let distance = match self.greatest.is_finite() {
            true => (self.least.max(0.0) + self.greatest) / 2.0 - size,
            false => greatest_increment,
        };
        let increment = distance
            .max(self.config.min_increment)
            .min(greatest_increment);
        window.grow(increment / size);
        let size = window.size();
        if size + self.config.min_increment < self.greatest {
            self.least = size;
        } else {
            self.greatest = f64::INFINITY;
            self.beyond = Some(Beyond {
                step: 1.0,
                until: size + 1.0,
            });
        }
    }

    fn look_beyond(&mut self, window: &mut Window, mut beyond: Beyond) {
        window.grow(beyond.step / window.size());
        let size = window.size();
        if size >= beyond.until {
            beyond.step = (2.0 * beyond.step).min(self.config.greatest_increment);
            beyond.until = size + beyond.step;
        }
        self.beyond = Some(beyond);
    }
}

impl Law for Bic {
    const NAME: &'static str = "bic";

    fn avoid_congestion(&mut self, _now: Instant, window: &mut Window, _rtt: Option<Duration>) {
        let size = window.size();
        if size < self.config.low_window {
            window.grow(1.0 / size);
        } else if let Some(beyond) = self.beyond {
            self.look_beyond(window, beyond);
        } else {
            self.search(window);
        }
    }

    fn on_congestion(&mut self, window: &Window) -> f64 {
        let size = window.size();
        let left = size
            * match size < self.config.low_window {
                true => self.config.low_decrease,
                false => self.config.decrease,
            };
        let is_below = self.greatest.is_finite() && size < self.greatest;
        self.greatest = match is_below && self.config.fast_convergence {
            true => (size + left) / 2.0,
            false => size,
        };
        self.least = window.bounded(left);
        self.beyond = None;
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};
    use crate::rate::{Loss, RateController};

    /// In slow start from 10 to 100, then a gap.
    fn at_eighty() -> Controller {
        let mut bic = Controller::new(Config::default());
        for _ in 0..90 {
            bic.on_data(at(1_000), &arrival(at(1_000), at(0)));
        }
        for _ in 0..3 {
            bic.on_loss(at(1_000), &lost(at(500), Loss::Gap));
        }
        assert!((bic.window.size() - 80.0).abs() < 1e-9);
        bic
    }

    fn data(bic: &mut Controller) -> f64 {
        bic.on_data(at(3_000), &arrival(at(3_000), at(2_000)));
        bic.window.size()
    }

    /// Between 80 and 100: 80 + (90 − 80)/80 = 80.125; then (80.125 + 100)/2 = 90.0625, 80.125 + 9.9375/80.125 = 80.249.
    #[test]
    fn the_window_goes_half_the_way_to_its_plateau() {
        let mut bic = at_eighty();
        assert!((data(&mut bic) - 80.125).abs() < 1e-9);
        assert!((data(&mut bic) - 80.249_025).abs() < 1e-6);
        // Each window of Data takes it about 39 % nearer, 1 − e^(−½).
        let mut count = 2;
        while data(&mut bic) < 99.0 {
            count += 1;
        }
        assert!((480..=580).contains(&count), "{count}");
    }

    /// Far below the plateau, growth is 16 a window: 80 → 80 + 16/80.
    #[test]
    fn growth_has_a_limit() {
        let mut bic = at_eighty();
        bic.law.greatest = 500.0;
        assert!((data(&mut bic) - 80.2).abs() < 1e-9);
    }

    /// At the plateau it looks beyond: by 1 up to 101, by 2 up to 103, by 4 up to 107.
    #[test]
    fn beyond_the_plateau_steps_double() {
        let mut bic = at_eighty();
        bic.window.grow(19.995);
        data(&mut bic);
        let start = bic.window.size();
        let mut steps = Vec::new();
        for _ in 0..1_000 {
            let before = bic.window.size();
            steps.push(((data(&mut bic) - before) * before).round() as u32);
        }
        assert!((99.99..100.1).contains(&start), "{start}");
        steps.dedup();
        assert_eq!(steps, [1, 2, 4, 8, 16]);
    }

    /// Congestion at 80.125, below 100: the next plateau is (80.125 + 64.1)/2.
    #[test]
    fn a_flow_that_does_not_reach_its_plateau_makes_room() {
        let mut bic = at_eighty();
        data(&mut bic);
        bic.on_loss(at(4_000), &lost(at(3_500), Loss::Gap));
        assert!((bic.law.greatest - 72.1125).abs() < 1e-9);
        assert!((bic.window.size() - 64.1).abs() < 1e-9);
    }

    /// 12 is below 14: halved, then one more a window.
    #[test]
    fn small_windows_are_aimd() {
        let mut bic = Controller::new(Config {
            initial_window: 12.0,
            ..Config::default()
        });
        bic.on_loss(at(1_000), &lost(at(0), Loss::Gap));
        assert_eq!(bic.target().window, Some(6));
        assert!((data(&mut bic) - (6.0 + 1.0 / 6.0)).abs() < 1e-9);
    }

    /// 18 would leave 14.4, but the window stays at 16: the search goes on between 16 and 18.
    #[test]
    fn the_search_starts_where_the_window_is() {
        let mut bic = Controller::new(Config {
            initial_window: 18.0,
            min_window: 16.0,
            ..Config::default()
        });
        bic.on_loss(at(1_000), &lost(at(500), Loss::Gap));
        assert!((data(&mut bic) - (16.0 + 1.0 / 16.0)).abs() < 1e-9);
    }

    /// From 100: slow start up to 80, then on towards 100.
    #[test]
    fn a_timeout_starts_anew() {
        let mut bic = Controller::new(Config {
            initial_window: 100.0,
            ..Config::default()
        });
        bic.on_loss(at(1_000), &lost(at(0), Loss::Timeout));
        assert_eq!(bic.target().window, Some(2));
        for _ in 0..78 {
            data(&mut bic);
        }
        assert!((bic.window.size() - 80.0).abs() < 1e-9);
        assert!((data(&mut bic) - 80.125).abs() < 1e-9);
        assert!((bic.law.greatest - 100.0).abs() < 1e-9);
    }
}
