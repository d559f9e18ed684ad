//! The window of a receiver of any next packets \[SAID\].
//!
//! ```text
//!            MMPR = 0                 0 < MMPR ≤ X              Y windows in a row with MMPR > 0
//!  Growing ◀───────────▶ Climbing ────────────────▶ Stable ◀─┐
//!   W + 1                 W + 1       ▲              hold     │ MMPR > 0
//!     ▲  ▲                  ▼ MMPR > X│                │      │
//!     │  └── MMPR = 0 ──── Paused ────┘       MMPR = 0 ▼      │
//!     │                     hold                  Observing ──┘
//!     │                                             hold
//!     └──────── Y windows in a row with MMPR = 0 ──────┘
//! ```
//!
//! MMPR is the least number of requests to spare that came with the Data of one window: zero while requests are used up as they
//! arrive. More requests than are used up would be a burst when supply rises. A congestion mark makes the window smaller, and has it
//! grow again.

use namecast_packet::any_next;
use namecast_units::Instant;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::{Arrival, Lost, RateController, Target};

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Requests at the start.
    #[default(1.0)]
    pub initial_window: f64,
    /// X, requests to spare above which the window stops to grow at once.
    #[default(5)]
    pub max_spare: u16,
    /// Y, windows in a row that settle a matter.
    #[default(5)]
    pub windows: u32,
    /// Whether the window doubles until the first mark, or the first requests to spare. Not in the paper, where the start takes half a
    /// minute at round-trip times of 0.3 s.
    pub slow_start: bool,
    /// Whether the window is cut in proportion to the share of marked Data, as in \[RFC8257\], instead of by half. Not in the paper.
    pub proportional: bool,
    /// Weight of the newest window in the share of marked Data.
    #[default(0.0625)]
    pub gain: f64,
}

impl Config {
    /// The paper's.
    pub fn printed() -> Self {
        Self::default()
    }

    /// Ours, with slow start and cuts in proportion to marks.
    pub fn ours() -> Self {
        Self {
            slow_start: true,
            proportional: true,
            ..Self::default()
        }
    }
}

/// What the window does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// G.
    Growing,
    /// C.
    Climbing,
    /// P.
    Paused,
    /// S.
    Stable,
    /// O.
    Observing,
}

/// The window machine of \[SAID\], Fig. 8, evaluated once as many Data have come as the window is large.
///
/// Differs from the paper: "state S" after a mark, where the window begins to grow, is Growing.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    window: f64,
    state: State,
    /// Windows in a row with, or in Observing without requests to spare.
    count: u32,
    in_slow_start: bool,
    /// Data in this window, and how many end it.
    data: u32,
    length: u32,
    marked: u32,
    min_spare: u16,
    /// Whether a mark has made the window smaller since it began.
    was_cut: bool,
    /// α, share of marked Data; 1 at first, as in \[RFC8257\].
    marked_share: f64,
}

/// Largest window: what nodes count at most.
const MAX_WINDOW: f64 = any_next::MAX_PENDING as f64;

impl Controller {
    /// A controller that has seen nothing.
    pub fn new(config: Config) -> Self {
        // `max` first: a configuration may hold what is not a number.
        let window = config.initial_window.max(1.0).clamp(1.0, MAX_WINDOW);
        let mut controller = Self {
            config,
            window,
            state: State::Growing,
            count: 0,
            in_slow_start: config.slow_start,
            data: 0,
            length: 1,
            marked: 0,
            min_spare: u16::MAX,
            was_cut: false,
            marked_share: 1.0,
        };
        controller.begin_window(window);
        controller
    }

    fn begin_window(&mut self, length: f64) {
        self.data = 0;
        self.marked = 0;
        self.min_spare = u16::MAX;
        self.length = (length as u32).max(1);
    }

    fn resize(&mut self, window: f64) {
        self.window = window.clamp(1.0, MAX_WINDOW);
    }

    fn grow_anew(&mut self) {
        self.state = State::Growing;
        self.count = 0;
        self.in_slow_start = false;
    }

    /// Halves the window at the first mark of one, the next of which then begins: what is marked in the round trip after it left before.
    fn halve(&mut self) {
        if self.was_cut {
            return;
        }
        let before = self.window;
        self.resize((before / 2.0).floor());
        self.grow_anew();
        self.begin_window(before);
        self.was_cut = true;
    }

    fn end_window(&mut self) {
        let share = f64::from(self.marked) / f64::from(self.data.max(1));
        if self.config.proportional {
            self.marked_share += self.config.gain * (share - self.marked_share);
        }
        if self.config.proportional && self.marked > 0 {
            self.resize(self.window * (1.0 - self.marked_share / 2.0));
            self.grow_anew();
        } else {
            self.evaluate(self.min_spare);
        }
        self.was_cut = false;
        self.begin_window(self.window);
    }

    /// Evaluates one window with `spare` requests to spare: MMPR.
    fn evaluate(&mut self, spare: u16) {
        let (limit, windows) = (self.config.max_spare, self.config.windows);
        self.in_slow_start &= spare == 0;
        match (self.state, spare) {
            (State::Growing | State::Climbing | State::Paused, 0) => {
                self.state = State::Growing;
                self.count = 0;
                let step = if self.in_slow_start { self.window } else { 1.0 };
                self.resize(self.window + step);
            }
            (State::Growing | State::Climbing | State::Paused, _) => {
                self.count += 1;
                if self.count >= windows {
                    self.state = State::Stable;
                } else if spare > limit {
                    self.state = State::Paused;
                } else {
                    self.state = State::Climbing;
                    self.resize(self.window + 1.0);
                }
            }
            (State::Stable, 0) => {
                self.state = State::Observing;
                self.count = 1;
            }
            (State::Observing, 0) => {
                self.count += 1;
                if self.count >= windows {
                    self.grow_anew();
                    self.resize(self.window + 1.0);
                }
            }
            (State::Stable | State::Observing, _) => self.state = State::Stable,
        }
    }
}

impl RateController for Controller {
    fn on_data(&mut self, _now: Instant, data: &Arrival) {
        self.data += 1;
        // Where nobody says what is to spare, requests are used up as they arrive.
        let spare = data.feedback.spare.unwrap_or(0);
        self.min_spare = self.min_spare.min(spare);
        if data.congestion_marked {
            self.marked += 1;
            if !self.config.proportional {
                self.halve();
            }
        }
        if self.data >= self.length {
            self.end_window();
        }
    }

    /// Receivers of any next packets lose nothing that they have asked for: what does not come is a hole, and no request is lost.
    fn on_loss(&mut self, _now: Instant, _lost: &Lost) {}

    fn target(&self) -> Target {
        Target {
            window: Some(self.window as u32),
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        "said"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at};

    /// Whole windows of Data with `spare` requests to spare each; the windows after them.
    fn windows(controller: &mut Controller, spares: &[u16]) -> Vec<u32> {
        let windows = spares.iter().map(|&spare| {
            for _ in 0..controller.length {
                data(controller, spare, false);
            }
            controller.target().window.unwrap_or(0)
        });
        windows.collect()
    }

    fn data(controller: &mut Controller, spare: u16, congestion_marked: bool) {
        let mut data = arrival(at(10), at(0));
        data.feedback.spare = Some(spare);
        data.congestion_marked = congestion_marked;
        controller.on_data(at(10), &data);
    }

    /// Five windows in a row with up to five to spare settle it, and so do five of which some have more.
    #[test]
    fn the_window_grows_until_there_are_requests_to_spare() {
        let mut controller = Controller::new(Config::printed());
        let grown = windows(&mut controller, &[0, 0, 0, 1, 2, 5, 1, 1, 1, 1]);
        assert_eq!(grown, [2, 3, 4, 5, 6, 7, 8, 8, 8, 8]);
        assert_eq!(controller.state, State::Stable);

        let mut controller = Controller::new(Config::printed());
        let held = windows(&mut controller, &[0, 6, 9, 3, 0, 6, 6, 6, 1, 6]);
        assert_eq!(held, [2, 2, 2, 3, 4, 4, 4, 4, 5, 5]);
        assert_eq!(controller.state, State::Stable);
    }

    /// Four windows without are a passing matter, five are not.
    #[test]
    fn a_stable_window_grows_after_five_without() {
        let mut controller = Controller::new(Config::printed());
        windows(&mut controller, &[9, 9, 9, 9, 9]);
        assert_eq!(controller.state, State::Stable);
        assert_eq!(windows(&mut controller, &[0, 0, 0, 0, 1]), [1; 5]);
        assert_eq!(controller.state, State::Stable);
        assert_eq!(
            windows(&mut controller, &[0, 0, 0, 0, 0, 0]),
            [1, 1, 1, 1, 2, 3]
        );
        assert_eq!(controller.state, State::Growing);
    }

    /// The first mark halves 9 to 4; more in the nine Data after it are of what left before, and the next is not.
    #[test]
    fn a_mark_halves_the_window_once_a_window() {
        let mut controller = Controller::new(Config {
            initial_window: 9.0,
            ..Config::printed()
        });
        data(&mut controller, 7, true);
        assert_eq!(controller.target().window, Some(4));
        for _ in 0..8 {
            data(&mut controller, 0, true);
        }
        assert_eq!(controller.target().window, Some(4));
        data(&mut controller, 0, false);
        assert_eq!(
            (controller.target().window, controller.state),
            (Some(5), State::Growing)
        );
        data(&mut controller, 0, true);
        assert_eq!(controller.target().window, Some(2));
        for _ in 0..3 {
            data(&mut controller, 0, true);
            controller.was_cut = false;
        }
        assert_eq!(controller.target().window, Some(1));
    }

    /// 1, 2, 4, 8, while α falls to (15/16)³ = 0.82397; then one in eight marked: α = 0.82397 − (0.82397 − 1/8)/16 = 0.78029, and
    /// 8 · (1 − α/2) = 4.87885.
    #[test]
    fn ours_starts_fast_and_cuts_by_the_share_of_marks() {
        let mut controller = Controller::new(Config::ours());
        assert_eq!(windows(&mut controller, &[0, 0, 0]), [2, 4, 8]);
        data(&mut controller, 0, true);
        (0..7).for_each(|_| data(&mut controller, 0, false));
        assert!(
            (controller.window - 4.878_845).abs() < 1e-6,
            "{controller:?}"
        );
        windows(&mut controller, &[0]);
        assert!(
            (controller.window - 5.878_845).abs() < 1e-6,
            "{controller:?}"
        );

        let mut controller = Controller::new(Config::ours());
        assert_eq!(windows(&mut controller, &[0, 0, 1, 0]), [2, 4, 5, 6]);
    }

    #[test]
    fn windows_stay_within_what_nodes_count() {
        let mut controller = Controller::new(Config {
            initial_window: f64::NAN,
            ..Config::ours()
        });
        windows(&mut controller, &[0; 14]);
        assert_eq!(controller.target().window, Some(4_096));
    }
}
