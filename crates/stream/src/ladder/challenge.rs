//! Tries the next higher rung while the current one is shown, as \[RTSD\] does (§3.5, §4.1.5).
//!
//! ```text
//!               period over: fetch the rung above, too
//!             ┌──────────────────────────────────────▶┐
//!         Fetching                                Challenge ──▶ change over to the rung above
//!             │└◀──────────────────────────────────────┘            once the estimate exceeds what it needs
//!             ▼                congestion
//!   change over to the rung below,
//!   from either, once the estimate is less than the current one needs
//! ```

use core::time::Duration;

use namecast_units::{Bitrate, Instant};
use smart_default::SmartDefault;

use crate::consumer::Allowance;
use crate::rate::{Arrival, PathEvent, RateController, Usage, arc};

/// Constants of [`Challenge`], and all that \[RTSD\] leaves open about it.
///
/// Open as well, and settled in the code:
///
/// - The rung above is the next one, and so is the rung below ("a lower bitrate").
/// - A Challenge that finds neither congestion nor enough bandwidth goes on.
/// - ARC listens to both rungs at all times, so that an estimate outlives the Challenge which made it.
/// - The rung above is requested when its samples exist, so that ARC's rate of Interests is one of Data
///   ([`Consumer::set_allowance`](crate::consumer::Consumer::set_allowance)). Interests ahead of production bring a whole sample
///   at once, however slowly they left: each key sample then looked like congestion.
/// - Of the current rung, DRDs are those of leads: in a later segment's there is the burst that it came in.
/// - A change over takes place at the next key sample, with nothing fetched twice, as for [`Ladder`](super::Ladder).
#[derive(Clone, Copy, Debug, PartialEq, SmartDefault)]
pub struct Config {
    /// Time in Fetching before the next Challenge. The paper says "periodically"; in its Fig. 25 the first begins after 2 s.
    #[default(Duration::from_secs(2))]
    pub period: Duration,
    /// Share by which the estimate must exceed what the rung above needs. The paper has none: as soon as the rung above is
    /// the current one, the same bandwidth is the bound for going down, and one decrease of ARC's would cross it.
    #[default(0.1)]
    pub hysteresis: f64,
    /// Whether congestion ends a Challenge. The paper does not say. Without that, the rung above is requested at the rate of
    /// what is left of the link for as long as it does not fit, which is what the 3500 kbit/s of Fig. 25 look like.
    #[default(true)]
    pub aborts: bool,
    /// The estimate (§3.5.1). pps starts with what the first rung needs, as in the code of ARC's authors.
    #[default(arc::Config::resolved())]
    pub arc: arc::Config,
}

/// Time from a change that failed to the next attempt: "instantly", but not at one instant for ever.
const RETRY: Duration = Duration::from_millis(100);

/// What [`Challenge`] wants done. Rungs are numbered by bitrate, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Fetch this rung as well as the current one, no faster than [`Challenge::allowance`] says.
    Try(usize),
    /// Fetch the current rung alone again.
    Abort,
    /// Fetch this rung alone from now on, and report that it is shown, or has not come.
    Move(usize),
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// One rung is fetched; since then it was the newest there is.
    Fetching(Option<Instant>),
    /// Two are. ARC had lowered its rate so often when that began.
    Challenge(u64),
    /// Playback is changing over.
    Moving,
}

/// Chooses a rung by what ARC estimates of the bandwidth while two are fetched.
///
/// ```text
/// estimate = 8·χ·pps                              need(r) = bitrate(r) · (1 + parity)
/// allowance for the rung above = estimate − need(current)
///
/// up:     in Challenge, estimate > need(above) · (1 + hysteresis)
/// down:   estimate < need(current), at once
/// ```
///
/// pps is what both rungs have together. The current one's Interests leave by the clock of its samples, so that only those
/// for the rung above follow pps (§4.1.5).
#[derive(Clone, Debug)]
pub struct Challenge {
    config: Config,
    /// Of each rung, lowest first.
    needs: Vec<Bitrate>,
    current: usize,
    phase: Phase,
    /// A change that failed is not tried again before.
    not_before: Instant,
    arc: arc::Controller,
    /// What comes, to tell whether pps is what keeps more from coming.
    usage: Usage,
}

impl Challenge {
    /// One for rungs that need these bitrates, parity included, lowest first, on rung number `current`.
    ///
    /// Gives `None` if there is no choice.
    pub fn new(now: Instant, config: Config, needs: &[Bitrate], current: usize) -> Option<Self> {
        let is_ladder = needs.len() > 1 && needs.is_sorted();
        let need = needs.get(current).filter(|_| is_ladder)?;
        let packets = need.as_bps() as f64 / config.arc.reference_size.as_bits().max(1) as f64;
        let arc = arc::Config {
            initial_rate: packets,
            ..config.arc
        };
        Some(Self {
            needs: needs.to_vec(),
            current,
            phase: Phase::Fetching(None),
            not_before: Instant::ZERO,
            arc: arc::Controller::new(now, arc),
            usage: Usage::default(),
            config,
        })
    }

    /// Returns the rung that playback is on.
    pub const fn current(&self) -> usize {
        self.current
    }

    /// 8·χ·pps, for payload.
    pub fn estimate(&self) -> Bitrate {
        self.arc.bandwidth()
    }

    /// Returns whether two rungs are to be fetched.
    pub const fn is_challenging(&self) -> bool {
        matches!(self.phase, Phase::Challenge(_))
    }

    /// Returns how fast the rung above may be requested.
    pub fn allowance(&self) -> Allowance {
        let need = self.needs[self.current].as_bps();
        let rate = self.estimate().as_bps().saturating_sub(need);
        Allowance {
            rate: Bitrate::bps(rate),
            packet_size: self.arc.target().packet_size,
        }
    }

    /// Records what a packet of either rung showed.
    pub fn on_event(&mut self, now: Instant, event: &PathEvent) {
        match event {
            PathEvent::Data(data) => {
                self.usage.on_sent(now, data.size);
                let data = Arrival {
                    is_limiting: self.usage.is_limited_by(now, self.estimate()),
                    ..*data
                };
                self.arc.on_data(now, &data);
            }
            PathEvent::Lost(lost) => self.arc.on_loss(now, lost),
        }
    }

    /// Ends ARC's periods. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.arc.handle_timeout(now);
    }

    /// Returns what to do now. `is_fetching`: the current rung's newest samples are fetched, and it has the path to itself.
    pub fn decide(&mut self, now: Instant, is_fetching: bool) -> Option<Step> {
        if self.phase == Phase::Moving {
            return None;
        }
        let is_too_much = self.estimate() < self.needs[self.current];
        if self.current > 0 && is_too_much && now >= self.not_before {
            self.phase = Phase::Moving;
            return Some(Step::Move(self.current - 1));
        }
        let above = self.current + 1;
        let need = self.needs.get(above)?.as_bps() as f64;
        match self.phase {
            Phase::Challenge(_)
                if self.estimate().as_bps() as f64 > need * (1.0 + self.config.hysteresis) =>
            {
                self.phase = Phase::Moving;
                Some(Step::Move(above))
            }
            Phase::Challenge(decreases)
                if self.config.aborts && self.arc.decreases() > decreases =>
            {
                self.phase = Phase::Fetching(Some(now));
                Some(Step::Abort)
            }
            Phase::Fetching(_) if !is_fetching => {
                self.phase = Phase::Fetching(None);
                None
            }
            Phase::Fetching(since) => {
                let since = since.unwrap_or(now);
                let is_over = now.since(since) >= self.config.period;
                self.phase = match is_over {
                    true => Phase::Challenge(self.arc.decreases()),
                    false => Phase::Fetching(Some(since)),
                };
                is_over.then_some(Step::Try(above))
            }
            Phase::Challenge(_) | Phase::Moving => None,
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) and [`decide`](Self::decide) may have something new.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let next = match self.phase {
            Phase::Fetching(Some(since)) if self.current + 1 < self.needs.len() => {
                Some(since + self.config.period)
            }
            _ => None,
        };
        next.into_iter().chain(self.arc.poll_timeout()).min()
    }

    /// Records that playback has changed over to rung number `rung`.
    pub fn on_moved(&mut self, rung: usize) {
        self.current = rung.min(self.needs.len() - 1);
        self.phase = Phase::Fetching(None);
    }

    /// Records that the rung that was to come has not, which is tried again after a moment, or that all was started again.
    pub fn on_stayed(&mut self, now: Instant) {
        if self.phase == Phase::Moving {
            self.not_before = now + RETRY;
        }
        self.phase = Phase::Fetching(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Loss;
    use crate::rate::reports::{arrival, lost};

    const PERIOD: Duration = Duration::from_millis(10);
    const RTT: Duration = Duration::from_millis(20);
    const NEEDS: [Bitrate; 3] = [
        Bitrate::kbps(240),
        Bitrate::kbps(1_200),
        Bitrate::kbps(3_600),
    ];

    /// A stream of which always as much comes as ARC requests.
    struct Bench {
        challenge: Challenge,
        now: Instant,
        rtt: Duration,
    }

    impl Bench {
        fn on(current: usize, config: Config) -> Self {
            let now = Instant::ZERO + Duration::from_secs(1);
            let challenge = Challenge::new(now, config, &NEEDS, current).unwrap();
            Self {
                challenge,
                now,
                rtt: RTT,
            }
        }

        /// On the lowest rung, where Challenge has just begun.
        fn challenging(config: Config) -> Self {
            let mut bench = Self::on(0, config);
            assert_eq!(bench.decide(), None);
            bench.now += config.period;
            assert_eq!(bench.decide(), Some(Step::Try(1)));
            bench
        }

        /// One of ARC's periods, in which 10 Mbit/s came with this round-trip time; before it nothing, if that has grown.
        fn period(&mut self, rtt: Duration) {
            self.now += rtt.saturating_sub(self.rtt);
            self.rtt = rtt;
            for _ in 0..12 {
                let data = arrival(self.now, self.now.saturating_sub(rtt));
                self.challenge.on_event(self.now, &PathEvent::Data(data));
            }
            self.end();
        }

        fn end(&mut self) {
            self.now += PERIOD;
            self.challenge.handle_timeout(self.now);
        }

        fn lose(&mut self) {
            let lost = lost(self.now.saturating_sub(RTT), Loss::Gap);
            self.challenge.on_event(self.now, &PathEvent::Lost(lost));
        }

        fn decide(&mut self) -> Option<Step> {
            self.challenge.decide(self.now, true)
        }

        fn kbps(&self) -> f64 {
            self.challenge.estimate().as_bps() as f64 / 1e3
        }
    }

    /// ARC starts at 240 kbit/s, and every period adds 20 packets of 8192 bits a second: 240 + 163.84·n. The rung above needs
    /// 1200, and with a tenth more 1320: 1223 after six periods is not enough, 1387 after seven is.
    #[test]
    fn it_goes_up_when_the_estimate_exceeds_the_need_by_a_tenth() {
        let mut bench = Bench::challenging(Config::default());
        for _ in 0..6 {
            bench.period(RTT);
            assert_eq!(bench.decide(), None);
        }
        assert!((bench.kbps() - 1_223.04).abs() < 0.01, "{}", bench.kbps());
        bench.period(RTT);
        assert_eq!(bench.decide(), Some(Step::Move(1)));
        assert!(!bench.challenge.is_challenging());
        // Nothing more until that is reported.
        bench.period(RTT);
        assert_eq!(bench.decide(), None);

        let without = Config {
            hysteresis: 0.0,
            ..Config::default()
        };
        let mut bench = Bench::challenging(without);
        (0..6).for_each(|_| bench.period(RTT));
        assert_eq!(bench.decide(), Some(Step::Move(1)));
    }

    /// What the current rung needs is not for the other: after three periods, 491.52 of 731.52 kbit/s are left.
    #[test]
    fn the_rung_above_may_have_what_the_current_one_leaves() {
        let mut bench = Bench::challenging(Config::default());
        assert_eq!(bench.challenge.allowance().rate, Bitrate::ZERO);
        (0..3).for_each(|_| bench.period(RTT));
        assert_eq!(bench.challenge.allowance().rate, Bitrate::bps(491_520));
    }

    /// At 1200 kbit/s, which is exactly what is needed, it stays. A loss ends ARC's start phase: half of that is not enough.
    #[test]
    fn it_goes_down_at_once_when_the_estimate_is_below_the_need() {
        let mut bench = Bench::on(1, Config::default());
        assert!((bench.kbps() - 1_200.0).abs() < 0.01);
        assert_eq!(bench.decide(), None);
        bench.lose();
        bench.period(RTT);
        assert!((bench.kbps() - 600.0).abs() < 0.01, "{}", bench.kbps());
        assert_eq!(bench.decide(), Some(Step::Move(0)));
        // If the rung below does not come, that is tried again, but not at the same instant for ever.
        bench.challenge.on_stayed(bench.now);
        assert_eq!(bench.decide(), None);
        bench.now += RETRY;
        assert_eq!(bench.decide(), Some(Step::Move(0)));
        bench.challenge.on_moved(0);
        // There is nothing below.
        bench.lose();
        bench.period(RTT);
        assert_eq!(bench.decide(), None);
    }

    /// From Challenge as well: 1200 + 163.84 is more than enough, a decrease by half is not.
    #[test]
    fn a_trial_ends_with_the_change_down() {
        let mut bench = Bench::on(1, Config::default());
        assert_eq!(bench.decide(), None);
        bench.now += Duration::from_secs(2);
        assert_eq!(bench.decide(), Some(Step::Try(2)));
        bench.period(RTT);
        assert_eq!(bench.decide(), None);
        bench.lose();
        bench.period(RTT);
        assert_eq!(bench.decide(), Some(Step::Move(0)));
    }

    /// ARC's start phase ends with the first period whose round trips are 10 ms too long. From then on it takes two in which
    /// they rise: the first only arms ARC's sign.
    #[test]
    fn congestion_ends_a_trial_and_two_seconds_later_there_is_another() {
        let mut bench = Bench::challenging(Config::default());
        bench.period(RTT);
        bench.period(RTT + Duration::from_millis(15));
        assert_eq!(bench.decide(), Some(Step::Abort));
        let again_at = bench.now + Duration::from_secs(2);
        assert!(bench.challenge.poll_timeout() <= Some(again_at));
        while bench.now < again_at {
            assert_eq!(bench.decide(), None);
            bench.end();
        }
        assert_eq!(bench.challenge.poll_timeout(), Some(again_at));
        assert_eq!(bench.decide(), Some(Step::Try(1)));

        bench.period(RTT);
        bench.period(RTT + Duration::from_millis(12));
        assert_eq!(bench.decide(), None);
        bench.period(RTT + Duration::from_millis(14));
        assert_eq!(bench.decide(), Some(Step::Abort));
    }

    #[test]
    fn a_trial_can_be_told_to_go_on() {
        let goes_on = Config {
            aborts: false,
            ..Config::default()
        };
        let mut bench = Bench::challenging(goes_on);
        bench.lose();
        bench.period(RTT);
        assert!((bench.kbps() - 120.0).abs() < 0.01, "{}", bench.kbps());
        assert_eq!(bench.decide(), None);
        assert!(bench.challenge.is_challenging());
    }

    #[test]
    fn a_loss_ends_a_trial() {
        let mut bench = Bench::challenging(Config::default());
        bench.lose();
        bench.period(RTT);
        assert_eq!(bench.decide(), Some(Step::Abort));
    }

    /// The period counts from when the newest samples are fetched, and a change that failed counts as a beginning.
    #[test]
    fn nothing_is_tried_before_the_period_is_over() {
        let mut bench = Bench::on(0, Config::default());
        for _ in 0..500 {
            assert_eq!(bench.challenge.decide(bench.now, false), None);
            bench.end();
        }
        assert_eq!(bench.decide(), None);
        bench.now += Duration::from_millis(1_999);
        assert_eq!(bench.decide(), None);
        bench.challenge.on_stayed(bench.now);
        bench.now += Duration::from_millis(1);
        assert_eq!(bench.decide(), None);
        bench.now += Duration::from_secs(2);
        assert_eq!(bench.decide(), Some(Step::Try(1)));
    }

    #[test]
    fn above_the_highest_rung_there_is_nothing_to_try() {
        let mut bench = Bench::on(2, Config::default());
        assert_eq!(bench.decide(), None);
        bench.now += Duration::from_secs(60);
        assert_eq!(bench.decide(), None);
        assert!(Challenge::new(bench.now, Config::default(), &NEEDS[..1], 0).is_none());
        assert!(Challenge::new(bench.now, Config::default(), &NEEDS, 3).is_none());
    }

    /// The stream's own 240 kbit/s, without a sign of congestion, say nothing of more than twice that.
    #[test]
    fn what_is_not_asked_for_raises_no_estimate() {
        let mut bench = Bench::on(0, Config::default());
        for _ in 0..1_000 {
            let mut data = arrival(bench.now, bench.now.saturating_sub(RTT));
            data.size = namecast_units::ByteSize::bytes(300);
            bench.challenge.on_event(bench.now, &PathEvent::Data(data));
            bench.end();
        }
        // One more step than the half of it.
        assert!((480.0..650.0).contains(&bench.kbps()), "{}", bench.kbps());
    }
}
