//! The consumer of \[PCON\]: windows that follow the marks of the nodes' queues.

use core::time::Duration;

use namecast_units::Instant;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::law::Law;
use super::recovery::Recovery;
use super::window::Window;
use super::{
    Arrival, Estimates, Loss, Lost, RateController, RoundTrip, RoundTripConfig, Target, bic, cubic,
};

/// How a window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// By one in a round trip.
    Aimd,
    /// As [`bic`] does.
    Bic,
    /// As [`cubic`] does.
    Cubic,
}

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// How the window grows.
    #[default(Mode::Bic)]
    pub mode: Mode,
    /// Whether each mark makes the window smaller, since the nodes space them. Otherwise one does for all that was under way, as in
    /// ndnSIM.
    #[default(true)]
    pub every_mark: bool,
    /// Interests at the start, and at least.
    #[default(1.0)]
    pub initial_window: f64,
    /// What is left of the window after congestion.
    #[default(0.5)]
    pub decrease: f64,
    /// Share of the Interests under way that must be answered after a decrease, beyond those that were requested before it, for the
    /// next; of marks, where not each counts.
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

impl Config {
    /// As published: BIC, and a half is left after each mark.
    pub fn published() -> Self {
        Self::default()
    }

    /// As `ConsumerPcon` of ndnSIM 2.5 and later has it.
    pub fn ndnsim(mode: Mode) -> Self {
        Self {
            mode,
            every_mark: false,
            decrease: match mode {
                Mode::Aimd => 0.5,
                Mode::Bic | Mode::Cubic => 0.8,
            },
            suppression: 0.5,
            ..Self::default()
        }
    }
}

/// PCON's consumer: slow start, then AIMD, BIC or CUBIC; marks, refusals and timeouts make the window smaller.
///
/// ```text
/// Data:             W ← W + 1 below ssthresh, the law's growth above; BIC below 14 Interests only, as its authors' code
/// mark:             ssthresh ← W ← b·W     each (published), or if highest > recovery (ndnSIM)
/// timeout or Nack:  the same if highest > recovery: conservative window adaptation
///                   recovery ← next + s·(next − highest)
/// ```
///
/// | paper, ndnSIM  | here             | meaning                                                        |
/// |----------------|------------------|----------------------------------------------------------------|
/// | W              | `window`         | Interests out                                                  |
/// | b              | `decrease`       | what is left                                                   |
/// | highest        | `highest`        | newest Interest that was answered                              |
/// | recovery       | `recovery`       | when it must have been requested, for the next decrease        |
/// | s              | `suppression`    | 0, or 0.5 in ndnSIM                                            |
///
/// Differs from both: points in the sequence are points in time, and `next − highest`, the Interests under way, one
/// smoothed round-trip time. The laws are this crate's, CUBIC's target being a round trip ahead, without its extras: no fast
/// convergence, no region friendly to AIMD. Data that were overtaken are waited for: two paths without labels overtake
/// each other all the time.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    config: Config,
    window: Window,
    growth: Growth,
    round_trip: RoundTrip,
    recovery: Recovery,
}

#[derive(Clone, Copy, Debug)]
enum Growth {
    Aimd,
    Bic(bic::Bic),
    Cubic(cubic::Cubic),
}

/// Window from which on BIC searches, in slow start or not.
const LOW_WINDOW: f64 = 14.0;

impl Controller {
    /// A controller in slow start.
    pub fn new(config: Config) -> Self {
        let timer = RoundTripConfig::new(config.min_timeout, config.timeout_margin);
        let growth = match config.mode {
            Mode::Aimd => Growth::Aimd,
            Mode::Bic => Growth::Bic(bic::Bic::new(bic::Config {
                low_window: LOW_WINDOW,
                decrease: config.decrease,
                low_decrease: config.decrease,
                ..bic::Config::default()
            })),
            Mode::Cubic => Growth::Cubic(cubic::Cubic::new(cubic::Config {
                decrease: config.decrease,
                fast_convergence: false,
                reno_friendly: false,
                ..cubic::Config::default()
            })),
        };
        Self {
            window: Window::new(config.initial_window, config.initial_window),
            growth,
            round_trip: RoundTrip::new(timer),
            recovery: Recovery::new(config.suppression),
            config,
        }
    }

    fn grow(&mut self, now: Instant) {
        let (window, rtt) = (&mut self.window, self.round_trip.smoothed());
        let is_searching = matches!(self.growth, Growth::Bic(_)) && window.size() >= LOW_WINDOW;
        if window.in_slow_start() && !is_searching {
            window.grow(1.0);
            return;
        }
        match &mut self.growth {
            Growth::Aimd => window.grow(1.0 / window.size()),
            Growth::Bic(bic) => bic.avoid_congestion(now, window, rtt),
            Growth::Cubic(cubic) => cubic.avoid_congestion(now, window, rtt),
        }
    }

    fn decrease(&mut self, now: Instant) {
        let left = match &mut self.growth {
            Growth::Aimd => self.config.decrease * self.window.size(),
            Growth::Bic(bic) => bic.on_congestion(&self.window),
            Growth::Cubic(cubic) => cubic.on_congestion(&self.window),
        };
        self.window.decrease_to(now, left);
    }

    /// Once for all that was under way.
    fn decrease_once(&mut self, now: Instant) {
        if self.recovery.begins(now, &self.round_trip) {
            self.decrease(now);
        }
    }
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        if let Some(rtt) = data.rtt {
            self.round_trip.on_sample(rtt);
        }
        self.recovery.on_data(data.asked_at);
        match (data.congestion_marked, self.config.every_mark) {
            (true, true) => self.decrease(now),
            (true, false) => self.decrease_once(now),
            (false, _) => self.grow(now),
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        match lost.kind {
            Loss::Gap => {}
            Loss::Timeout => {
                self.recovery
                    .back_off(now, lost.asked_at, &mut self.round_trip);
                self.decrease_once(now);
            }
            Loss::Nack => self.decrease_once(now),
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
        match (self.config.every_mark, self.config.mode) {
            (true, Mode::Bic) => "pcon",
            (_, Mode::Aimd) => "pcon-aimd",
            (_, Mode::Bic) => "pcon-bic",
            (_, Mode::Cubic) => "pcon-cubic",
        }
    }

    fn estimates(&self) -> Estimates {
        self.round_trip.estimates()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};

    fn data(pcon: &mut Controller, millis: u64, is_marked: bool) -> f64 {
        let now = at(millis * 1_000);
        let data = Arrival {
            congestion_marked: is_marked,
            ..arrival(now, at((millis - 20) * 1_000))
        };
        pcon.on_data(now, &data);
        pcon.window.size()
    }

    /// 1 → 14 in slow start, then by 16/14. Two marks leave a quarter, whatever was under way; below 14 it is AIMD again.
    #[test]
    fn each_mark_halves_the_window_as_published() {
        let mut pcon = Controller::new(Config::published());
        for _ in 0..13 {
            data(&mut pcon, 20, false);
        }
        assert!((pcon.window.size() - 14.0).abs() < 1e-9);
        let grown = data(&mut pcon, 20, false);
        assert!((grown - (14.0 + 16.0 / 14.0)).abs() < 1e-9);
        data(&mut pcon, 30, true);
        let left = data(&mut pcon, 30, true);
        assert!((left - grown / 4.0).abs() < 1e-9);
        assert!((data(&mut pcon, 31, false) - (left + 1.0 / left)).abs() < 1e-9);
    }

    /// In ndnSIM one mark in one and a half round trips counts, and 0.8 is left of BIC's and CUBIC's windows.
    #[test]
    fn one_mark_counts_for_all_that_was_under_way_in_ndnsim() {
        for (mode, left) in [(Mode::Aimd, 5.0), (Mode::Bic, 8.0), (Mode::Cubic, 8.0)] {
            let mut pcon = Controller::new(Config::ndnsim(mode));
            for _ in 0..9 {
                data(&mut pcon, 20, false);
            }
            assert!((data(&mut pcon, 21, true) - left).abs() < 1e-9, "{mode:?}");
            assert!((data(&mut pcon, 22, true) - left).abs() < 1e-9);
            // Requested at 31 ms, when half a round trip had passed; the mark of 22 ms was of 2 ms.
            assert!((data(&mut pcon, 51, true) - left).abs() < 1e-9);
            let again = data(&mut pcon, 52, true);
            assert!(again < left, "{mode:?}: {again}");
        }
    }

    #[test]
    fn timeouts_and_refusals_count_once_and_gaps_not_at_all() {
        let mut pcon = Controller::new(Config::published());
        for _ in 0..7 {
            data(&mut pcon, 20, false);
        }
        pcon.on_loss(at(21_000), &lost(at(0), Loss::Gap));
        assert!((pcon.window.size() - 8.0).abs() < 1e-9);
        pcon.on_loss(at(21_000), &lost(at(0), Loss::Nack));
        pcon.on_loss(at(22_000), &lost(at(0), Loss::Timeout));
        assert!((pcon.window.size() - 4.0).abs() < 1e-9);
        data(&mut pcon, 43, false);
        pcon.on_loss(at(43_000), &lost(at(22_000), Loss::Timeout));
        assert!(pcon.window.size() < 3.0);
    }
}
