//! Rate feedback congestion control \[RFCC\]: a consumer that survives a cache running dry.
//!
//! ```text
//!              Δ > Δ1                               farther source
//!   Filling ───────────▶ Regulation ────────────────────────────────▶ Holding the rate that caches told
//!      │  ▲                  ▲                                               │ one round trip
//!      │  └── Δ ≤ Δ1 ────────┴── Δ > Δ1 ─────────────────────────────────────┘
//!      └── farther source ──▶ Holding
//! ```

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_units::{Bitrate, Instant, WindowedMinimum};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::backlog::{Backlog, Meter, PacketRate, Regulator, TIMER};
use super::{Arrival, Estimates, Lost, RateController, RoundTrip, Target};

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Packets a second at the start.
    #[default(10.0)]
    pub initial_rate: f64,
    /// β: by how much more is requested in the first stage of a round of filling.
    #[default(0.25)]
    pub beta: f64,
    /// Δ1: packets that wait when filling ends.
    #[default(2.0)]
    pub leave_filling: f64,
    /// Δ2: packets that are to wait.
    #[default(20.0)]
    pub setpoint: f64,
    /// Δ2 is at least what comes in this time.
    #[serde(with = "namecast_units::duration")]
    pub setpoint_delay: Duration,
    /// N: packets over which rates are measured.
    #[default(48)]
    pub window: usize,
    /// Weight of a new measurement of a rate.
    #[default(0.75)]
    pub alpha: f64,
    /// K: round trips without queues between two changes of ρ.
    #[default(3.0)]
    pub periods: f64,
    /// ψ: packets of whose sources the most frequent counts.
    #[default(32)]
    pub source_window: usize,
    /// Which packets show the round-trip time without queues.
    #[default(BaseRtt::SecondStage)]
    pub base_rtt: BaseRtt,
    /// How long a round-trip time without queues is remembered: practically for ever, as printed.
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_secs(100_000))]
    pub base_rtt_window: Duration,
    /// Whether pauses between segments are left out of rates. The paper leaves them out at caches, by the coefficient of variation, but says
    /// nothing of consumers, whose rate would fall with each segment.
    #[default(true)]
    pub leave_out_pauses: bool,
    /// A tag counts as so many times the rate of receiving, at most. Not in the paper, which takes any at its word; zero: as there.
    #[default(4.0)]
    pub max_tag_gain: f64,
    /// What is left of the rate after a loss, once in a round trip, as DPCCP-R has it. Not in the paper, which does not mention losses; 1: as
    /// there.
    #[default(0.5)]
    pub decrease: f64,
    /// Packets a second, at least.
    #[default(1.0)]
    pub min_rate: f64,
    /// Packets a second, at most.
    #[default(100_000.0)]
    pub max_rate: f64,
}

/// Which packets show the round-trip time without queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaseRtt {
    /// Those of the second stage of filling: as printed. A source that shows first in regulation has none, and no backlog.
    SecondStage,
    /// All. Data that others have requested just before come sooner than the source can answer, and are then taken for the path without
    /// queues.
    All,
}

impl Config {
    /// Δ1 and Δ2 as printed, 2 and 20.
    pub fn printed() -> Self {
        Self::default()
    }

    /// Δ1 and Δ2 the other way round, in case they were mixed up: 20 packets of 8000 octets are more than some of the paper's
    /// buffers hold.
    pub fn swapped() -> Self {
        Self {
            leave_filling: 20.0,
            setpoint: 2.0,
            ..Self::default()
        }
    }

    /// Δ2 as a delay: what comes in 10 ms, and two packets at least, whatever the rate. Any packet of the last 2 s shows the round-trip
    /// time without queues, so that no source is without.
    pub fn by_delay() -> Self {
        Self {
            setpoint: 2.0,
            setpoint_delay: Duration::from_millis(10),
            base_rtt: BaseRtt::All,
            base_rtt_window: Duration::from_secs(2),
            ..Self::default()
        }
    }
}

/// RFCC on one path: it fills the bottleneck, keeps so many packets waiting, and takes the rate that caches told as soon as Data
/// come from farther away.
///
/// ```text
/// δ_h = (RTT_h − RTT_base,h)·r_h           of each source, which hops h tell apart; RTT_h ← ⅞·RTT_h + ⅛·sample   (7)
/// Δ = Σ δ_h                                over the sources of the last N packets, of which r_h/r are of h       (9, 11)
///
/// filling:     sr = (1 + β)·sr* for a round trip, sr* for another, sr* ← (1 + β)·sr*, while Δ ≤ Δ1               (5, 6)
/// regulation:  sr = r ± ρ, once in a round trip: A-AIAD towards Δ2                                              (10, 12)
/// source:      cs = mode of the hops of the last ψ packets                                                      (13)
///              farther: sr = Bc for a round trip; then filling or regulation                                    (15)
///              nearer:  Δ = δ_cs, all else stays                                                                (14)
/// ```
///
/// | paper      | here           | meaning                                                              |
/// |------------|----------------|----------------------------------------------------------------------|
/// | sr         | `rate`         | packets requested in a second                                        |
/// | sr*        | `tolerable`    | the same that the path has borne                                     |
/// | RTT, RTT_base | `Flow`    | round-trip time of one source's Data, and without queues             |
/// | r          | `meter`        | rate at which Data come                                              |
/// | U, cs      | `sources`, `source` | hops of the last ψ packets, and the most frequent                |
/// | Bc         | `tag`          | rate at which the cache got what it answered with                     |
///
/// What the paper leaves open, as read here: only the last tag counts, whichever nearer source it came from, since what comes
/// from the producer has none when the switch shows; without one, the rate of receiving. A source has the mode once U is full; of two as
/// frequent, the one that was so first. r_h is a source's share of r, and both begin anew where the source changes: measured by itself, as (8)
/// may mean, the rate of a cache counts as long as one packet of it is among the last N, and is then requested of the producer. A loss halves the rate, and ends filling.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    rate: PacketRate,
    state: State,
    flows: BTreeMap<u8, Flow>,
    /// Hops of the last N packets.
    recent: VecDeque<u8>,
    /// r.
    meter: Meter,
    sources: VecDeque<u8>,
    source: Option<u8>,
    tag: Option<Bitrate>,
    timer: RoundTrip,
    decreased_at: Option<Instant>,
    regulator: Regulator,
    /// Nothing more is requested for the time being.
    is_paused: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Sends at `tolerable`, and more in the first stage, until then.
    Filling {
        is_first_stage: bool,
        tolerable: f64,
        until: Instant,
    },
    Regulation,
    /// Keeps the rate until then.
    Holding(Instant),
}

/// Data of one source.
#[derive(Clone, Debug)]
struct Flow {
    /// Seconds.
    rtt: Option<f64>,
    base_rtt: WindowedMinimum<Duration>,
}

/// Parts of the window of the round-trip time without queues.
const BASE_RTT_PARTS: u32 = 10;

impl Flow {
    fn new(config: &Config) -> Self {
        let part = (config.base_rtt_window / BASE_RTT_PARTS).max(Duration::from_millis(1));
        Self {
            rtt: None,
            base_rtt: WindowedMinimum::new(part, u64::from(BASE_RTT_PARTS)),
        }
    }

    /// How much longer Data take than without queues, in seconds.
    fn delay(&self, now: Instant) -> f64 {
        match (self.rtt, self.base_rtt.minimum(now)) {
            (Some(rtt), Some(base)) => (rtt - base.as_secs_f64()).max(0.0),
            _ => 0.0,
        }
    }
}

impl Controller {
    /// A controller that begins to fill the path.
    pub fn new(now: Instant, config: Config) -> Self {
        let config = Config {
            window: config.window.clamp(2, 4_096),
            source_window: config.source_window.clamp(1, 4_096),
            ..config
        };
        let rate = PacketRate::new(config.initial_rate, config.min_rate, config.max_rate);
        Self {
            state: State::Filling {
                is_first_stage: false,
                // The first round begins with the first Data, and with the initial rate.
                tolerable: rate.get() / (1.0 + config.beta.max(0.0)),
                until: now,
            },
            rate,
            flows: BTreeMap::new(),
            recent: VecDeque::new(),
            meter: Meter::new(config.window, config.alpha),
            sources: VecDeque::new(),
            source: None,
            tag: None,
            timer: RoundTrip::new(TIMER),
            decreased_at: None,
            regulator: Regulator::new(now),
            is_paused: false,
            config,
        }
    }

    /// Δ.
    fn backlog(&self, now: Instant) -> f64 {
        let delays = self.flows.iter().map(|(hops, flow)| {
            let packets = self.recent.iter().filter(|recent| *recent == hops);
            match packets.count() {
                0 => 0.0,
                packets => packets as f64 * flow.delay(now),
            }
        });
        self.received() * delays.sum::<f64>() / (self.recent.len() as f64).max(1.0)
    }

    /// r, packets a second.
    fn received(&self) -> f64 {
        self.meter.rate()
    }

    /// Takes a packet into the measurements of its source.
    fn measure(&mut self, now: Instant, hops: u8, data: &Arrival) {
        let config = &self.config;
        if self.recent.len() >= config.window {
            self.recent.pop_front();
        }
        let was_active = self.recent.contains(&hops);
        self.recent.push_back(hops);
        let flow = self.flows.entry(hops).or_insert_with(|| Flow::new(config));
        if !was_active {
            flow.rtt = None;
        }
        if let Some(rtt) = data.rtt {
            self.timer.on_sample(rtt);
            let in_second_stage = matches!(
                self.state,
                State::Filling {
                    is_first_stage: false,
                    ..
                }
            );
            if config.base_rtt == BaseRtt::All || in_second_stage {
                flow.base_rtt.push(now, rtt);
            }
            let rtt = rtt.as_secs_f64();
            flow.rtt = Some(flow.rtt.map_or(rtt, |mean| mean + (rtt - mean) / 8.0));
        }
        if data.is_limiting || !config.leave_out_pauses {
            self.meter.on_arrival(now);
        }
    }

    /// Between segments all that is measured goes on but rates, which would fall.
    fn on_pause(&mut self) {
        self.is_paused = true;
        self.meter.interrupt();
    }

    /// Whether the most frequent source is another one, and farther away than before; `None`: it is the same.
    fn look_for_switch(&mut self, hops: u8) -> Option<bool> {
        if self.sources.len() >= self.config.source_window {
            self.sources.pop_front();
        }
        self.sources.push_back(hops);
        if self.sources.len() < self.config.source_window {
            return None;
        }
        let source = mode(&self.sources)?;
        let before = self.source.replace(source)?;
        if before == source {
            return None;
        }
        self.sources.clear();
        Some(source > before)
    }

    /// What a cache told, as far as it is taken at its word.
    fn told(&self) -> f64 {
        let received = self.received();
        let Some(tag) = self.tag else {
            return received;
        };
        let (tag, gain) = (self.rate.packets(tag), self.config.max_tag_gain);
        match gain > 0.0 {
            true => tag.min(gain * received),
            false => tag,
        }
    }

    /// Decides on the rate.
    fn steer(&mut self, now: Instant, rtt: Duration) {
        let packets = self.backlog(now);
        let is_full = packets > self.config.leave_filling;
        match self.state {
            State::Filling { .. } if is_full => self.begin_regulation(now, rtt),
            State::Filling {
                is_first_stage,
                tolerable,
                until,
            } if now >= until => match is_first_stage {
                true => self.fill(false, tolerable, now + rtt),
                false => {
                    let next = (1.0 + self.config.beta) * tolerable;
                    self.fill(true, next.min(self.config.max_rate), now + rtt);
                }
            },
            State::Holding(until) if now >= until => match is_full {
                true => self.begin_regulation(now, rtt),
                false => self.fill(true, self.rate.get(), now + rtt),
            },
            State::Regulation => self.regulate(now, packets, rtt),
            State::Filling { .. } | State::Holding(_) => {}
        }
    }

    fn fill(&mut self, is_first_stage: bool, tolerable: f64, until: Instant) {
        let gain = if is_first_stage {
            self.config.beta
        } else {
            0.0
        };
        self.rate.set((1.0 + gain) * tolerable);
        self.state = State::Filling {
            is_first_stage,
            tolerable,
            until,
        };
    }

    fn begin_regulation(&mut self, now: Instant, rtt: Duration) {
        self.state = State::Regulation;
        self.regulator = Regulator::new(now);
        let packets = self.backlog(now);
        self.regulate(now, packets, rtt);
    }

    fn regulate(&mut self, now: Instant, packets: f64, rtt: Duration) {
        let base = self.source.and_then(|source| self.flows.get(&source));
        let base = base.and_then(|flow| flow.base_rtt.minimum(now));
        let rate = self.received();
        let by_delay = rate * self.config.setpoint_delay.as_secs_f64();
        let backlog = Backlog {
            packets,
            setpoint: self.config.setpoint.max(by_delay),
            rate,
            rtt,
            periods: base
                .unwrap_or(rtt)
                .mul_f64(self.config.periods.clamp(0.0, 1e3)),
        };
        if let Some(rate) = self.regulator.update(now, self.config.periods, &backlog) {
            self.rate.set(rate);
        }
    }
}

/// The most frequent of `sources`; of several, the one that had so many first.
fn mode(sources: &VecDeque<u8>) -> Option<u8> {
    let mut counts = [0_u16; 256];
    let mut mode = None;
    let mut most = 0;
    for &source in sources {
        let count = &mut counts[usize::from(source)];
        *count += 1;
        if *count > most {
            (most, mode) = (*count, Some(source));
        }
    }
    mode
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        let hops = data.feedback.hop_count.unwrap_or(0);
        self.rate.on_size(data.size);
        self.tag = data.feedback.offered.or(self.tag);
        if !data.is_limiting && self.config.leave_out_pauses {
            self.on_pause();
        }
        self.measure(now, hops, data);
        let switched = self.look_for_switch(hops);
        let rtt = self.flows.get(&hops).and_then(|flow| flow.rtt);
        let Some(rtt) = rtt.map(Duration::from_secs_f64) else {
            return;
        };
        if let Some(is_farther) = switched {
            self.recent.retain(|recent| *recent == hops);
            if is_farther {
                self.rate.set(self.told());
                self.meter.interrupt();
                self.state = State::Holding(now + rtt);
            }
        }
        if !data.is_limiting && self.config.leave_out_pauses {
            return;
        }
        if core::mem::take(&mut self.is_paused)
            && let State::Filling { tolerable, .. } = self.state
        {
            // What was tried before the pause has shown nothing.
            self.fill(true, tolerable, now + rtt);
        }
        self.steer(now, rtt);
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        if lost.repeated || self.decreased_at.is_some_and(|at| lost.asked_at <= at) {
            return;
        }
        self.decreased_at = Some(now);
        self.timer.back_off();
        self.rate.set(self.config.decrease * self.rate.get());
        let recent = self.recent.iter().filter_map(|hops| self.flows.get(hops));
        let rtt = recent.filter_map(|flow| flow.rtt).fold(0.0, f64::max);
        self.state = State::Regulation;
        self.regulator = Regulator::new(now + Duration::from_secs_f64(rtt));
    }

    fn target(&self) -> Target {
        self.rate.target(self.timer.timeout())
    }

    fn name(&self) -> &'static str {
        "rfcc"
    }

    fn estimates(&self) -> Estimates {
        let flow = self.source.and_then(|source| self.flows.get(&source));
        Estimates {
            bandwidth: Some(self.rate.bitrate(self.rate.get())),
            average_rtt: flow.and_then(|flow| flow.rtt).map(Duration::from_secs_f64),
            min_rtt: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at};
    use namecast_units::ByteSize;

    const RTT: u64 = 80_000;

    fn from(hops: u8, now: u64, rtt: u64) -> Arrival {
        let mut data = arrival(at(now), at(now.saturating_sub(rtt)));
        data.size = ByteSize::bytes(8_000);
        data.feedback.hop_count = Some(hops);
        data
    }

    /// `count` packets 10 ms apart from `start` on.
    fn feed(rfcc: &mut Controller, start: u64, count: u64, data: impl Fn(u64) -> Arrival) -> u64 {
        for step in 0..count {
            let now = start + step * 10_000;
            rfcc.on_data(at(now), &data(now));
        }
        start + count * 10_000
    }

    /// Each round takes two round trips and brings a quarter more: ⌈ln(312.5/10)/ln 1.25⌉ = 16 rounds, 2.56 s, until 20 Mbit/s of
    /// 8000 octets are sr*, however full the path gets: packets come at a fixed rate here.
    #[test]
    fn filling_takes_as_long_as_its_formula_says() {
        let mut rfcc = Controller::new(at(0), Config::default());
        let mut now = RTT;
        let reached = loop {
            rfcc.on_data(at(now), &from(3, now, RTT));
            match rfcc.state {
                State::Filling { tolerable, .. } if tolerable >= 312.5 => break now,
                State::Filling { .. } => now += 1_000,
                _ => panic!("nothing waits"),
            }
        };
        let took = reached - RTT;
        assert!((2_560_000..2_600_000).contains(&took), "{took}");
    }

    #[test]
    fn the_first_stage_sends_more_and_the_second_waits() {
        let mut rfcc = Controller::new(at(0), Config::default());
        let mut rates = vec![];
        for round in 1..=5 {
            let now = round * RTT;
            rfcc.on_data(at(now), &from(3, now, RTT));
            rates.push(rfcc.rate.get());
        }
        assert_eq!(rates, [12.5, 10.0, 15.625, 12.5, 19.53125]);
    }

    /// 100 packets a second, which wait 40 ms and then none from one hop, 20 ms from another: 4 and 2 packets.
    #[test]
    fn the_backlog_is_told_apart_by_source() {
        let mut rfcc = Controller::new(
            at(0),
            Config {
                leave_filling: 1e9,
                ..Config::default()
            },
        );
        let now = feed(&mut rfcc, RTT, 60, |now| from(3, now, RTT));
        let now = feed(&mut rfcc, now, 60, |now| from(3, now, RTT + 40_000));
        assert!((rfcc.backlog(at(now)) - 4.0).abs() < 0.01);
        assert!((rfcc.received() - 100.0).abs() < 1e-6);
        let before = rfcc.backlog(at(now));
        // A nearer source: its round trip is no backlog, and neither is the other's as soon as it is most of what comes.
        let now = feed(&mut rfcc, now, 32, |now| from(1, now, 10_000));
        assert_eq!(rfcc.source, Some(1));
        assert!(before > 3.9 && rfcc.backlog(at(now)) < 1e-9);
    }

    /// 17 of 32 from the producer: the last tag that a cache told counts, although what shows the switch has none.
    #[test]
    fn the_remembered_tag_is_the_rate_at_a_switch_to_a_farther_source() {
        let mut rfcc = Controller::new(at(0), Config::default());
        let tagged = |now| {
            let mut data = from(1, now, 10_000);
            data.feedback.offered = Some(Bitrate::kbps(3_200));
            data
        };
        let now = feed(&mut rfcc, RTT, 100, tagged);
        assert_eq!(rfcc.source, Some(1));
        let now = feed(&mut rfcc, now, 16, |now| from(3, now, RTT));
        assert_eq!(rfcc.source, Some(1));
        // 3.2 Mbit/s of 8000 octets are 50 a second.
        let now = feed(&mut rfcc, now, 1, |now| from(3, now, RTT));
        assert_eq!((rfcc.source, rfcc.rate.get()), (Some(3), 50.0));
        assert!(matches!(rfcc.state, State::Holding(_)) && rfcc.sources.is_empty());
        // A round trip later it goes on from there.
        let _ = feed(&mut rfcc, now, 9, |now| from(3, now, RTT));
        let filling = State::Filling {
            is_first_stage: true,
            tolerable: 50.0,
            until: at(now + 7 * 10_000 + RTT),
        };
        assert_eq!(rfcc.state, filling);
    }

    /// A cache sends 1000 packets a second, the producer behind it 100, with a queue of 20: from a round trip after the switch on no more is
    /// requested than comes now, though packets of the cache are still among the last 48.
    #[test]
    fn the_rate_of_the_cache_is_not_requested_of_the_producer() {
        let mut rfcc = Controller::new(at(0), Config::default());
        let mut now = RTT;
        for _ in 0..100 {
            now += 1_000;
            rfcc.on_data(at(now), &from(1, now, 10_000));
        }
        assert!((rfcc.received() - 1_000.0).abs() < 1e-6);
        for packet in 0..80 {
            now += 10_000;
            let rtt = RTT + 10_000 * packet.min(20);
            rfcc.on_data(at(now), &from(3, now, rtt));
            // 17 show the switch, and a round trip with a full queue is 28 more.
            if packet >= 16 + 29 {
                assert!(rfcc.rate.get() < 110.0, "{packet}: {:?}", rfcc.rate);
            }
        }
        assert_eq!((rfcc.source, rfcc.state), (Some(3), State::Regulation));
        assert!(
            (99.0..101.0).contains(&rfcc.received()),
            "{}",
            rfcc.received()
        );
    }

    /// Tags of 8 bit/s, 2⁶³ bit/s and both in turn: never above four times what comes from both sources, and a quarter more once it is filled again, nor
    /// below the least rate.
    #[test]
    fn lying_tags_are_bounded() {
        for tags in [[8, 8], [1 << 63, 1 << 63], [8, 1 << 63]] {
            let mut rfcc = Controller::new(at(0), Config::default());
            let lying = |now: u64| {
                let mut data = from(1, now, 10_000);
                let tag = tags[usize::try_from(now / 10_000 % 2).unwrap()];
                data.feedback.offered = Some(Bitrate::bps(tag));
                data
            };
            let now = feed(&mut rfcc, RTT, 60, lying);
            let _ = feed(&mut rfcc, now, 32, |now| from(3, now, RTT));
            assert_eq!(rfcc.source, Some(3));
            assert!(
                (1.0..=1_000.1).contains(&rfcc.rate.get()),
                "{:?}",
                rfcc.rate
            );
        }
        let as_printed = Config {
            max_tag_gain: 0.0,
            ..Config::default()
        };
        let mut rfcc = Controller::new(at(0), as_printed);
        rfcc.tag = Some(Bitrate::bps(1 << 63));
        rfcc.rate.set(rfcc.told());
        assert!((rfcc.rate.get() - 100_000.0).abs() < 1e-9);
    }

    #[test]
    fn of_two_sources_as_frequent_the_first_to_be_so_counts() {
        assert_eq!(mode(&[1, 1, 3, 3].into()), Some(1));
        assert_eq!(mode(&[1, 3, 3, 1].into()), Some(3));
        assert_eq!(mode(&VecDeque::new()), None);
    }

    /// A second without requests leaves the rate of receiving as it was.
    #[test]
    fn pauses_between_segments_are_no_rate() {
        let mut rfcc = Controller::new(at(0), Config::default());
        let now = feed(&mut rfcc, RTT, 60, |now| from(3, now, RTT));
        let paused = |now| Arrival {
            is_limiting: false,
            ..from(3, now, RTT)
        };
        let now = feed(&mut rfcc, now, 3, paused);
        let _ = feed(&mut rfcc, now + 1_000_000, 30, |now| from(3, now, RTT));
        assert!(
            (rfcc.received() - 100.0).abs() < 1e-6,
            "{}",
            rfcc.received()
        );
    }
}
