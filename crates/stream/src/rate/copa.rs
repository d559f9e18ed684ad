//! Copa \[COPA\]: a few packets of its own in the queue, whatever the round-trip time.

use core::time::Duration;

use namecast_units::{Bitrate, Instant};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::feedback::Feedback;

use super::sources::{Moved, Sources};
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
    /// Whether it uses what nodes say: sources are told apart by their hops, and a cache's tag bounds what it requests.
    #[default(true)]
    pub use_feedback: bool,
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
/// | RTT_min      | in `sources`       | least of 10 s: the path without queues                         |
/// | RTT_standing | in `sources`       | least of half a round: the queue without the jitter of packets |
///
/// As many packets wait whatever the round-trip time, so flows of different ways get the same, and a link is full at any
/// delay. Differs from the paper:
/// - sources of Data are told apart by their hops, where nodes count them: each has its own RTT_min and RTT_standing, and the
///   window is what gives the same rate where the source changes. What a cache tells of the rate behind it bounds the window
///   while it answers, so that no more than 20 ms of queue build up there when it runs dry; and it is the rate of what is then requested,
///   as soon as it is silent, before the first answer from beyond it, but at no more than what came before, and at no more
///   than twice of that once answers come;
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
    sources: Sources,
    /// 1/δ as losses have left it.
    queued: f64,
    velocity: f64,
    round: Round,
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
            sources: Sources::new(part, u64::from(MIN_RTT_PARTS)),
            queued: config.queued,
            velocity: 1.0,
            round: Round::default(),
            config,
        }
    }

    fn adjust(&mut self, now: Instant) {
        let Some((least, standing)) = self.sources.delays(now) else {
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

    /// Octets of a packet.
    fn octets(&self) -> f64 {
        let size = self.pacing.packet_size();
        size.map_or(1_024.0, |size| size.as_bytes() as f64)
    }

    /// Data come from another source: the window is what it was there, or else what gives the same rate. Where a cache has run dry it is
    /// what the cache told, and the queue of before says nothing any more.
    fn on_moved(&mut self, now: Instant, moved: Moved) {
        let told = self.sources.window_beyond(now, self.octets());
        if let Some(told) = told.filter(|_| moved.has_run_dry) {
            self.window.decrease_to(now, told);
            self.velocity = 1.0;
            self.round = Round {
                began: now,
                window: self.window.size(),
                ..Round::default()
            };
            return;
        }
        let same_rate = self.window.size() * moved.ratio;
        let size = moved.window.or(told).unwrap_or(same_rate);
        self.window.grow(size - self.window.size());
        self.round.window = self.window.size();
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
        let told = match self.config.use_feedback {
            true => data.feedback,
            false => Feedback::default(),
        };
        self.sources.on_data(now, &told, data.is_limiting);
        if let Some(rtt) = data.rtt {
            self.round_trip.on_sample(rtt);
            let rtts = (rtt, self.round_trip.smoothed().unwrap_or(rtt));
            let hops = told.hop_count.unwrap_or(0);
            if let Some(moved) = self
                .sources
                .on_round_trip(now, hops, rtts, self.window.size())
            {
                self.on_moved(now, moved);
            }
        }
        if data.asked_at >= self.round.began {
            self.end_round(now);
        }
        // Until what was requested after a cut has come, the queue is still that of before.
        if data.is_limiting && self.window.is_news(data.asked_at) {
            self.adjust(now);
        }
        if let Some(most) = self.sources.window_at_cache(now, self.octets())
            && self.window.size() > most
        {
            self.window.grow(most - self.window.size());
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
        let mut rate = self.pacing.rate(&self.window, self.round_trip.smoothed());
        let mut window = self.window.size();
        if let Some((packets, more)) = self.sources.beyond_dry_cache(self.octets()) {
            rate = Some(Bitrate::bps((packets * self.octets() * 8.0) as u64));
            window += more;
        }
        Target {
            rate,
            window: Some(window as u32),
            timeout: Some(self.round_trip.timeout()),
            packet_size: self.pacing.packet_size(),
            // Data of caches and of producers overtake each other.
            ignores_gaps: self.sources.are_several(),
        }
    }

    fn name(&self) -> &'static str {
        "copa"
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.sources.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.sources.runs_dry_at()
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            min_rtt: self.sources.min_rtt(),
            ..self.round_trip.estimates()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::Source;
    use crate::rate::reports::{arrival, at, lost};
    use namecast_units::ByteSize;

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

    fn from(hops: u8, micros: u64, rtt: u64, tag: Option<Bitrate>) -> Arrival {
        let mut data = arrival(at(micros), at(micros - rtt));
        data.size = ByteSize::bytes(1_250);
        data.feedback = Feedback {
            hop_count: Some(hops),
            offered: tag,
            source: Some(if tag.is_some() {
                Source::Cache
            } else {
                Source::Producer
            }),
            label: None,
            spare: None,
        };
        data
    }

    /// A cache 10 ms away that gets 5 Mbit/s, which are 475 packets of 1250 octets a second with 5 % less: one each 2 ms for a second.
    fn at_a_cache() -> Controller {
        let mut copa = Controller::new(Config::default());
        for step in 0..500 {
            let now = 100_000 + step * 2_000;
            copa.on_data(at(now), &from(1, now, 10_000, Some(Bitrate::mbps(5))));
        }
        copa
    }

    /// 475 · 10 ms, and the 10 that come in 20 ms of 500 a second: nothing more may be on its way when the cache runs dry.
    #[test]
    fn a_tag_bounds_the_window_while_the_cache_answers() {
        let copa = at_a_cache();
        assert!(
            (copa.window.size() - 14.75).abs() < 1e-6,
            "{}",
            copa.window.size()
        );
        let mut deaf = Controller::new(Config {
            use_feedback: false,
            ..Config::default()
        });
        for step in 0..500 {
            let now = 100_000 + step * 2_000;
            deaf.on_data(at(now), &from(1, now, 10_000, Some(Bitrate::mbps(5))));
        }
        assert!(deaf.window.size() > 100.0);
    }

    /// 25 ms of silence: what the cache told is requested, for a quarter of a second at most, as nobody knows how far it is.
    #[test]
    fn a_silent_cache_has_run_dry() {
        let mut copa = at_a_cache();
        let last = 100_000 + 499 * 2_000;
        assert_eq!(copa.poll_timeout(), Some(at(last + 25_000)));
        copa.handle_timeout(at(last + 24_999));
        assert_eq!(copa.target().window, Some(14));
        copa.handle_timeout(at(last + 25_000));
        let target = copa.target();
        assert_eq!(target.rate, Some(Bitrate::kbps(4_750)));
        // 14.75 + 475 / 4.
        assert_eq!(target.window, Some(133));
        assert_eq!(copa.poll_timeout(), None);
        // The first answer from beyond: 475 a second with 100 ms.
        let now = last + 90_000;
        copa.on_data(at(now), &from(4, now, 100_000, None));
        assert!(
            (copa.window.size() - 47.5).abs() < 1e-6,
            "{}",
            copa.window.size()
        );
    }

    /// 2⁶³ bit/s: no more than came before while the cache is silent, and twice that when a farther source answers. 8 bit/s: the least
    /// window.
    #[test]
    fn a_stranger_s_tag_raises_nothing_above_what_comes() {
        let mut copa = at_a_cache();
        let now = 100_000 + 500 * 2_000;
        copa.on_data(at(now), &from(1, now, 10_000, Some(Bitrate::bps(1 << 63))));
        copa.handle_timeout(at(now + 25_000));
        assert_eq!(copa.target().rate, Some(Bitrate::mbps(5)));
        let now = now + 90_000;
        copa.on_data(at(now), &from(4, now, 100_000, None));
        // 2 · 500 · 100 ms.
        assert!(copa.window.size() <= 100.0, "{}", copa.window.size());
        let mut copa = at_a_cache();
        let now = 100_000 + 500 * 2_000;
        copa.on_data(at(now), &from(1, now, 10_000, Some(Bitrate::bps(8))));
        assert_eq!(copa.target().window, Some(2));
    }

    /// Back and forth between sources 10 and 100 ms away: the rate stays what it is.
    #[test]
    fn sources_in_turn_leave_the_rate_as_it_is() {
        let mut copa = Controller::new(Config::default());
        let producer = |now, hops, rtt| from(hops, now, rtt, None);
        copa.on_data(at(200_000), &producer(200_000, 4, 100_000));
        copa.window.decrease_to(at(200_000), 40.0);
        for turn in 1..=10_u64 {
            let now = 200_000 + turn * 1_000;
            let (hops, rtt) = if turn % 2 == 1 {
                (1, 10_000)
            } else {
                (4, 100_000)
            };
            copa.on_data(at(now), &producer(now, hops, rtt));
            let expected = if turn % 2 == 1 { 4.0 } else { 40.0 };
            assert!((copa.window.size() - expected).abs() < 1e-6, "{turn}");
        }
    }
}
