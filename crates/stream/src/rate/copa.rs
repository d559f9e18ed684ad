//! Copa \[COPA\]: a few packets of its own in the queue, whatever the round-trip time.

use core::time::Duration;

use namecast_units::{Instant, WindowedMinimum};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::window::{Pacing, Window};
use super::{Arrival, Estimates, Loss, Lost, RateController, RoundTrip, RoundTripConfig, Target};

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
    /// 1/δ: packets that a flow wants in the queue. \[COPA\] §2.1 has 2; links of few packets a round trip are as full with
    /// 1.5, and their queues half as long.
    #[default(1.5)]
    pub queued: f64,
    /// What losses leave of 1/δ, at least.
    #[default(0.25)]
    pub min_queued: f64,
    /// How long the least round-trip time is remembered (10 s in \[COPA\] §2.1).
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_secs(10))]
    pub min_rtt_window: Duration,
    /// What the timeout is longer than the smoothed round-trip time, at least (200 ms in Linux).
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(200))]
    pub timeout_margin: Duration,
}

/// Rounds in one direction after which the velocity doubles (\[COPA\] §2.1).
const STEADY_ROUNDS: u32 = 3;
/// Parts of the window of the least round-trip time.
const MIN_RTT_PARTS: u32 = 10;
/// What a round without loss gives back of 1/δ, as a share of all of it.
const RECOVERY: f64 = 0.125;

/// Copa \[COPA\] §2.1: the window goes up while fewer than 1/δ of its packets wait in queues, and down while more do.
///
/// ```text
/// d_q = RTT_standing − RTT_min              queued = cwnd·d_q / RTT_standing
///
/// Data:   cwnd ← cwnd ± v/(δ·cwnd),   + if queued ≤ 1/δ     (cwnd/RTT_standing ≤ λ_t = 1/(δ·d_q))
/// round:  v ← 2·v  if cwnd has gone the same way for three rounds and goes on;  else v ← 1
/// ```
///
/// | paper        | here               | meaning                                                        |
/// |--------------|--------------------|----------------------------------------------------------------|
/// | cwnd         | `window`           | Interests out                                                  |
/// | 1/δ          | `queued`           | packets that a flow wants in the queue                         |
/// | v            | `velocity`         | packets by which the window moves in a round, times δ          |
/// | RTT_min      | `min_rtt`        | least of 10 s: the path without queues                         |
/// | RTT_standing | `standing`         | least of half a round: the queue without the jitter of packets |
///
/// As many packets wait whatever the round-trip time, so flows of different ways get the same, and a link is full at any
/// delay. Differs from the paper:
/// - slow start ends at what the path delivers, cwnd·RTT_min/RTT_standing, since the queue that it has built is known;
/// - instead of the mode that competes with flows that fill buffers, a round with a loss halves 1/δ and one without gives an
///   eighth back. Where a short buffer cannot hold 1/δ of every flow, they so want less; and losses that have nothing to do
///   with queues do not make the window smaller, as they would if they halved it.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    window: Window,
    pacing: Pacing,
    round_trip: RoundTrip,
    min_rtt: WindowedMinimum<Duration>,
    standing: Standing,
    /// 1/δ as losses have left it.
    queued: f64,
    velocity: f64,
    round: Round,
}

/// The least round-trip time of the last half round, or a little more.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    before: Option<Duration>,
    current: Option<Duration>,
    /// When `current` began.
    since: Instant,
}

impl Standing {
    fn push(&mut self, now: Instant, rtt: Duration, smoothed: Duration) {
        if now.since(self.since) * 4 >= smoothed {
            (self.before, self.current) = (self.current.take(), None);
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
    }

    fn get(&self) -> Option<Duration> {
        self.before.into_iter().chain(self.current).min()
    }
}

/// One round: what was requested after it began, up to the first answer to that.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    began: Instant,
    /// The window at its beginning.
    window: f64,
    is_up: bool,
    /// Rounds in this direction before it.
    steady: u32,
    has_loss: bool,
}

impl Controller {
    /// A controller in slow start.
    pub fn new(config: Config) -> Self {
        let margin = config.timeout_margin;
        let part = config.min_rtt_window / MIN_RTT_PARTS;
        Self {
            window: Window::new(config.initial_window, config.min_window),
            pacing: Pacing::default(),
            round_trip: RoundTrip::new(RoundTripConfig::new(margin, margin)),
            min_rtt: WindowedMinimum::new(part, u64::from(MIN_RTT_PARTS)),
            standing: Standing::default(),
            queued: config.queued,
            velocity: 1.0,
            round: Round::default(),
            config,
        }
    }

    /// RTT_min and RTT_standing, in seconds.
    fn delays(&self, now: Instant) -> Option<(f64, f64)> {
        let least = self.min_rtt.minimum(now)?.as_secs_f64();
        let standing = self.standing.get()?.as_secs_f64();
        (standing > 0.0).then_some((least, standing))
    }

    fn adjust(&mut self, now: Instant) {
        let Some((least, standing)) = self.delays(now) else {
            return;
        };
        let size = self.window.size();
        let queued = size * (standing - least).max(0.0) / standing;
        let is_up = queued <= self.queued;
        if self.window.in_slow_start() {
            match is_up {
                true => self.window.grow(1.0),
                false => self.window.decrease_to(now, size * least / standing),
            }
            return;
        }
        if is_up != self.round.is_up {
            self.velocity = 1.0;
        }
        let step = self.velocity * self.queued / size;
        self.window.grow(if is_up { step } else { -step });
    }

    fn end_round(&mut self, now: Instant) {
        let size = self.window.size();
        let is_up = size > self.round.window;
        let steady = match is_up == self.round.is_up {
            true => self.round.steady + 1,
            false => 0,
        };
        // In one round, the window never moves by more than itself.
        let most = (size / self.queued).max(1.0);
        self.velocity = match steady > STEADY_ROUNDS {
            true => (self.velocity * 2.0).min(most),
            false => 1.0,
        };
        let queued = match self.round.has_loss {
            true => self.queued / 2.0,
            false => self.queued + RECOVERY * self.config.queued,
        };
        let most = self.config.queued.max(self.config.min_queued);
        self.queued = queued.clamp(self.config.min_queued, most).max(1e-3);
        self.round = Round {
            began: now,
            window: size,
            is_up,
            steady,
            has_loss: false,
        };
    }
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        self.pacing.on_data(data.size);
        if let Some(rtt) = data.rtt {
            self.round_trip.on_sample(rtt);
            self.min_rtt.push(now, rtt);
            let smoothed = self.round_trip.smoothed().unwrap_or(rtt);
            self.standing.push(now, rtt, smoothed);
        }
        if data.asked_at >= self.round.began {
            self.end_round(now);
        }
        // Until what was requested after a cut has come, the queue is still that of before.
        if data.is_limiting && self.window.is_news(data.asked_at) {
            self.adjust(now);
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        if !self.window.is_news(lost.asked_at) {
            return;
        }
        self.round.has_loss = true;
        match lost.kind {
            Loss::Timeout if lost.repeated => {}
            Loss::Timeout => {
                self.round_trip.back_off();
                self.window.start_anew(now, self.window.size() / 2.0);
            }
            Loss::Gap | Loss::Nack => {}
        }
    }

    fn target(&self) -> Target {
        Target {
            rate: self.pacing.rate(&self.window, self.round_trip.smoothed()),
            window: Some(self.window.allowed()),
            timeout: Some(self.round_trip.timeout()),
            packet_size: self.pacing.packet_size(),
            ..Target::default()
        }
    }

    fn name(&self) -> &'static str {
        "copa"
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            min_rtt: self.min_rtt.minimum(self.standing.since),
            ..self.round_trip.estimates()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};

    /// Returns a controller with a window of 100 after slow start, 50 ms of RTT_min and rounds of 100 ms.
    fn at_hundred(rtt_ms: u64) -> Controller {
        let mut copa = Controller::new(Config {
            queued: 2.0,
            ..Config::default()
        });
        copa.on_data(at(50_000), &arrival(at(50_000), at(0)));
        copa.window.decrease_to(at(50_000), 100.0);
        copa.round.began = at(1_000_000);
        copa.on_data(
            at(900_000),
            &arrival(at(900_000), at(900_000 - rtt_ms * 1_000)),
        );
        copa.window.decrease_to(at(60_000), 100.0);
        copa
    }

    /// 100 packets at 51 ms of which 1 ms is queue: 1.96 wait, fewer than 2. At 52 ms it is 3.85.
    #[test]
    fn the_window_moves_towards_two_packets_in_the_queue() {
        for (rtt_ms, moves) in [(51, 0.02), (52, -0.02)] {
            let mut copa = at_hundred(rtt_ms);
            copa.round.is_up = moves > 0.0;
            let now = at(950_000);
            copa.on_data(now, &arrival(now, at(950_000 - rtt_ms * 1_000)));
            let moved = copa.window.size() - 100.0;
            assert!((moved - moves).abs() < 1e-9, "{rtt_ms}: {moved}");
        }
    }

    /// A queue of 150 ms on top of 50 ms ends slow start at a quarter of the window: what the path delivers in 50 ms.
    #[test]
    fn slow_start_ends_at_what_the_path_delivers() {
        let mut copa = Controller::new(Config::default());
        copa.on_data(at(50_000), &arrival(at(50_000), at(0)));
        assert!((copa.window.size() - 11.0).abs() < 1e-9);
        copa.window.grow(89.0);
        copa.on_data(at(300_000), &arrival(at(300_000), at(100_000)));
        assert!((copa.window.size() - 100.0).abs() < 1.001);
        // The least of half a round is still that of before: RTT_standing follows a quarter of a round later.
        for step in 1..=3 {
            let now = at(300_000 + step * 60_000);
            copa.on_data(now, &arrival(now, at(100_000 + step * 60_000)));
        }
        let size = copa.window.size();
        assert!((25.0..=26.0).contains(&size), "{size}");
        assert!(!copa.window.in_slow_start());
    }

    /// Up in each round: one doubling from the fourth round on.
    #[test]
    fn velocity_doubles_after_three_rounds_in_one_direction() {
        let mut copa = at_hundred(50);
        copa.round = Round::default();
        copa.round.is_up = true;
        let mut velocities = Vec::new();
        for round in 1..=6 {
            copa.window.grow(1.0);
            copa.end_round(at(1_000_000 * round));
            velocities.push(copa.velocity as u64);
        }
        assert_eq!(velocities, [1, 1, 1, 2, 4, 8]);
        copa.window.grow(-10.0);
        copa.end_round(at(9_000_000));
        assert!((copa.velocity - 1.0).abs() < 1e-9);
    }

    /// 2, 1, ½, ¼ and no less; back by a quarter each round.
    #[test]
    fn losses_make_it_want_less_of_the_queue_and_not_less_of_the_link() {
        let mut copa = at_hundred(50);
        let mut wanted = Vec::new();
        for round in 1..=4 {
            copa.on_loss(at(1_000_000), &lost(at(990_000), Loss::Gap));
            copa.end_round(at(1_000_000 * round));
            wanted.push(copa.queued);
        }
        assert_eq!(wanted, [1.0, 0.5, 0.25, 0.25]);
        assert!((copa.window.size() - 100.0).abs() < 1e-9);
        copa.end_round(at(9_000_000));
        assert!((copa.queued - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_timeout_starts_anew() {
        let mut copa = at_hundred(50);
        copa.on_loss(at(2_000_000), &lost(at(1_000_000), Loss::Timeout));
        assert_eq!(copa.target().window, Some(2));
        copa.on_loss(at(2_000_100), &lost(at(1_500_000), Loss::Timeout));
        assert_eq!(copa.target().window, Some(2));
        assert!(copa.window.in_slow_start());
    }
}
