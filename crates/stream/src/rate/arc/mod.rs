//! Consumer-driven Adaptive Rate Control \[ARC\]: the mean RTT and the losses of each short period decide.
//!
//! ```text
//!              no loss, RTT low: pps += δ            no loss, RTT low or falling: pps += α/√pps
//!                  ┌──────┐                                        ┌──────┐
//!                  │      ▼      loss or RTT high: pps /= 2        │      ▼
//!   100 pps ────▶   Start   ─────────────────────────────────────▶  Adaptive
//!                                                                  │      ▲
//!                                                                  └──────┘
//!                                       RTT rising for two periods: pps −= β·√pps;  loss: pps −= γ·√pps
//! ```

mod config;
#[cfg(test)]
mod tests;

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant, WindowedMinimum};

use super::{Arrival, Estimates, Loss, Lost, RateController, RoundTrip, RoundTripConfig, Target};

pub use config::{
    CaseOneWithSign, Config, LoopBounds, LossConfig, LossSignal, MinRttConfig, MinRttWindow,
    PacketSize, Profile, StartWhile,
};

/// Silent periods that are worked off one by one, at most; longer silence counts as so long.
const MAX_SILENT_PERIODS: u32 = 100_000;
/// Room for the few Interests of a slow consumer in the window that is but a net.
const MIN_WINDOW: f64 = 16.0;

/// ARC, with the readings that its [`Config`] chooses.
///
/// At the end of every period P, over the packets `i` of the period:
///
/// ```text
/// AvgRTT = Σ RTT_i / received          case 1: AvgRTT ≤ RTT_min + jitter_offset
///                                      case 2: else, AvgRTT ≤ that of the period before
///                                      case 3: else
///
/// Start:     case 1 and nothing lost:  pps ← pps + δ
///            else:                     pps ← pps / 2, and on to Adaptive
///
/// Adaptive:  nothing lost, case 1 or 2:  if cs { cs ← false } else { pps ← pps + α/√pps }
///            nothing lost, case 3:       if cs { pps ← pps − β·√pps } else { cs ← true }
///            lost:                       pps ← pps − γ·√pps
///
/// I = 1 / (k·pps),   k = χ / s,   bandwidth = 8·χ·pps
/// ```
///
/// | paper           | here                     | meaning                                        |
/// |-----------------|--------------------------|------------------------------------------------|
/// | pps             | `pps`                    | packets of size χ requested in a second        |
/// | P               | `period`                 | time from one decision to the next             |
/// | RTT_min         | `min_rtt`              | RTT without queues                             |
/// | jitter_offset   | `jitter_offset`          | what RTTs differ by without a queue            |
/// | congestion_sign | `congestion_sign` (cs)   | the last period was of the other kind          |
/// | α, β, γ, δ      | `alpha` … `delta`        | gains                                          |
/// | χ               | `reference_size`         | reference size, the same for all               |
/// | s               | `packet_size`            | mean size of this stream's packets             |
/// | k               | –                        | χ/s, so that equal pps are equal octets        |
/// | latest_seq      | `newest`, by `asked_at`  | newest packet received                         |
///
/// Differs from the paper: bandwidth is printed as 8·s·pps, which is right for s = χ only, since k·pps packets of s octets
/// are χ·pps octets. What else differs is a switch of [`Config`] each.
///
/// Where the application requests less than it may ([`Arrival::is_limiting`]), as a live stream does, pps does not rise:
/// the paper's consumers always ask for all they may.
#[derive(Clone, Debug)]
pub struct Controller {
    config: Config,
    phase: Phase,
    pps: f64,
    /// Times that it was lowered.
    decreases: u64,
    congestion_sign: bool,
    /// s in octets, once known.
    packet_size: Option<f64>,
    /// AvgRTT of the last period that had one.
    average_rtt: Option<Duration>,
    min_rtt: MinRtt,
    round_trip: RoundTrip,
    /// Until then a timeout tells nothing new, unless something arrives.
    quiet_until: Instant,
    /// When the current period ends.
    period_end: Instant,
    current: Period,
    /// The newest packet received: when it was requested, and its RTT.
    newest: Option<Newest>,
    /// The same at the end of the period before.
    boundary: Option<Newest>,
}

/// What the controller is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It looks for the bandwidth.
    Start,
    /// It follows the bandwidth.
    Adaptive,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    asked_at: Instant,
    rtt: Option<Duration>,
}

/// What one period has seen so far.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    arrived: u32,
    /// Of those, how many have an RTT.
    measured: u32,
    rtt_sum: Duration,
    lost: u32,
    is_limiting: bool,
}

impl Period {
    const fn is_empty(&self) -> bool {
        self.arrived == 0 && self.lost == 0
    }

    fn add_rtt(&mut self, rtt: Duration) {
        self.measured += 1;
        self.rtt_sum = self.rtt_sum.saturating_add(rtt);
    }
}

/// RTT_min: the least of a long window, unless a short one says that the path delay increased.
#[derive(Clone, Debug)]
struct MinRtt {
    forever: Option<Duration>,
    /// The window that forgets, if there is one.
    long: Option<WindowedMinimum<Duration>>,
    /// The last packets, by their number instead of the time.
    short: Option<WindowedMinimum<Duration>>,
    count: u64,
    jitter_offset: Duration,
}

/// Parts of the window of the last packets.
const SHORT_PARTS: u32 = 5;

impl MinRtt {
    fn new(config: &MinRttConfig, jitter_offset: Duration) -> Self {
        let parts = config.parts.max(1);
        let window =
            |length: Duration, parts: u32| WindowedMinimum::new(length / parts, u64::from(parts));
        let packets = config.source_change_after;
        Self {
            forever: None,
            long: match config.window {
                MinRttWindow::Forever => None,
                MinRttWindow::Last(length) => Some(window(length, parts)),
            },
            short: (packets > 0)
                .then(|| window(Duration::from_nanos(u64::from(packets)), SHORT_PARTS)),
            count: 0,
            jitter_offset,
        }
    }

    fn push(&mut self, now: Instant, rtt: Duration) {
        match &mut self.long {
            Some(long) => long.push(now, rtt),
            None => self.forever = Some(self.forever.map_or(rtt, |least| least.min(rtt))),
        }
        self.count += 1;
        if let Some(short) = &mut self.short {
            short.push(Instant::from_nanos(self.count), rtt);
        }
    }

    fn minimum(&self, now: Instant) -> Option<Duration> {
        let least = match &self.long {
            Some(long) => long.minimum(now)?,
            None => self.forever?,
        };
        let short = self.short.as_ref();
        let lately = short.and_then(|short| short.minimum(Instant::from_nanos(self.count)));
        Some(match lately {
            Some(lately) if lately > least + self.jitter_offset => lately,
            _ => least,
        })
    }
}

/// Which of the paper's three cases a period is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Low,
    Falling,
    Rising,
}

impl Controller {
    /// A controller whose first period begins `now`.
    pub fn new(now: Instant, config: Config) -> Self {
        Self {
            phase: Phase::Start,
            pps: config
                .initial_rate
                .clamp(config.min_rate, config.greatest_rate),
            decreases: 0,
            congestion_sign: false,
            packet_size: match config.packet_size {
                PacketSize::Fixed(size) => Some(size.as_bytes() as f64),
                PacketSize::Smoothed => None,
            },
            average_rtt: None,
            min_rtt: MinRtt::new(&config.min_rtt, config.jitter_offset),
            round_trip: RoundTrip::new(RoundTripConfig::new(
                config.loss.min_timeout,
                config.jitter_offset,
            )),
            quiet_until: Instant::ZERO,
            period_end: now + config.period,
            current: Period::default(),
            newest: None,
            boundary: None,
            config,
        }
    }

    /// pps: packets of size χ requested in a second.
    pub const fn pps(&self) -> f64 {
        self.pps
    }

    /// Returns how often pps was lowered: because of losses, or of round-trip times that rose twice running.
    pub const fn decreases(&self) -> u64 {
        self.decreases
    }

    /// Returns whether it still looks for the bandwidth.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// I, time from one Interest to the next, once s is known.
    pub fn interval(&self) -> Option<Duration> {
        let k = self.config.reference_size.as_bytes() as f64 / self.packet_size?;
        Some(Duration::from_secs_f64(1.0 / (k * self.pps)))
    }

    /// 8·χ·pps.
    pub fn bandwidth(&self) -> Bitrate {
        Bitrate::bps((self.config.reference_size.as_bits() as f64 * self.pps) as u64)
    }

    /// Closes the periods that ended before `now`.
    fn advance(&mut self, now: Instant) {
        let mut silent = 0;
        while self.period_end < now {
            if self.current.is_empty() {
                silent += 1;
                if !self.listens_to_silence() || silent > MAX_SILENT_PERIODS {
                    self.skip_to(now);
                    return;
                }
            }
            self.close_period();
        }
    }

    /// Returns whether a period in which nothing happened changes anything.
    const fn listens_to_silence(&self) -> bool {
        !self.config.hold_when_empty && self.boundary.is_some()
    }

    /// Passes over periods without a trace, to the one that `now` is in.
    fn skip_to(&mut self, now: Instant) {
        let period = self.config.period.max(Duration::from_nanos(1));
        let passed = now
            .since(self.period_end)
            .as_nanos()
            .div_ceil(period.as_nanos());
        let passed = u64::try_from(passed * period.as_nanos()).unwrap_or(u64::MAX);
        self.period_end += Duration::from_nanos(passed);
        self.boundary = self.newest;
    }

    fn close_period(&mut self) {
        let end = self.period_end;
        self.period_end += self.config.period.max(Duration::from_nanos(1));
        let mut period = core::mem::take(&mut self.current);
        let was_empty = period.is_empty();
        let before = core::mem::replace(&mut self.boundary, self.newest);
        if was_empty && self.config.hold_when_empty {
            return;
        }
        if was_empty {
            // Nobody was told to hold back.
            period.is_limiting = true;
        }
        if let (LoopBounds::Inclusive, Some(before)) = (self.config.loop_bounds, before)
            && let Some(rtt) = before.rtt
        {
            period.add_rtt(rtt);
        }
        let average = (period.measured > 0).then(|| period.rtt_sum / period.measured);
        if average.is_none() && period.lost == 0 && !was_empty {
            // Data came whose round-trip times mean nothing.
            return;
        }
        let case = self.case_of(end, average);
        self.average_rtt = average.or(self.average_rtt);
        match self.phase {
            Phase::Start => self.start(&period, case),
            Phase::Adaptive => self.adapt(&period, case),
        }
        self.pps = self
            .pps
            .clamp(self.config.min_rate, self.config.greatest_rate);
    }

    fn case_of(&self, now: Instant, average: Option<Duration>) -> Case {
        let Some(average) = average else {
            return Case::Rising;
        };
        let least = self.min_rtt.minimum(now).unwrap_or(average);
        let passes = self.congestion_sign && self.config.case1_with_sign == CaseOneWithSign::Passes;
        if average <= least + self.config.jitter_offset && !passes {
            Case::Low
        } else if self.average_rtt.is_none_or(|before| average <= before) {
            Case::Falling
        } else {
            Case::Rising
        }
    }

    /// Algorithm 2.
    fn start(&mut self, period: &Period, case: Case) {
        let (is_low, is_whole) = (case == Case::Low, period.lost == 0);
        let goes_on = match self.config.start_while {
            StartWhile::Either => is_low || is_whole,
            StartWhile::Both => is_low && is_whole,
        };
        if !goes_on {
            self.lower_to(self.pps / 2.0);
            self.phase = Phase::Adaptive;
        } else if period.is_limiting {
            self.pps += self.config.delta;
        }
    }

    /// Algorithm 3.
    fn adapt(&mut self, period: &Period, case: Case) {
        let root = self.pps.sqrt();
        match case {
            _ if period.lost > 0 => {
                self.lower_to(self.pps - self.config.gamma * root);
                self.congestion_sign |= self.config.loss.sets_sign;
            }
            Case::Low | Case::Falling if self.congestion_sign => self.congestion_sign = false,
            Case::Low | Case::Falling if period.is_limiting => {
                self.pps += self.config.alpha / root;
            }
            Case::Low | Case::Falling => {}
            Case::Rising if self.congestion_sign => {
                self.lower_to(self.pps - self.config.beta * root);
            }
            Case::Rising => self.congestion_sign = true,
        }
    }

    const fn lower_to(&mut self, pps: f64) {
        self.pps = pps;
        self.decreases += 1;
    }

    /// s ← 0.9·s + 0.1·size.
    fn smooth_size(&mut self, size: ByteSize) {
        if self.config.packet_size == PacketSize::Smoothed {
            let size = size.as_bytes().max(1) as f64;
            let smoothed = self.packet_size.map_or(size, |s| 0.9 * s + 0.1 * size);
            self.packet_size = Some(smoothed);
        }
    }

    /// Returns a hard cap independent of the pacing: several times what is requested in one timeout.
    fn window(&self) -> Option<u32> {
        let asked = self.round_trip.timeout().as_secs_f64() / self.interval()?.as_secs_f64();
        (self.config.window_factor > 0.0)
            .then(|| (self.config.window_factor * asked).ceil().max(MIN_WINDOW) as u32)
    }
}

impl RateController for Controller {
    fn on_data(&mut self, now: Instant, data: &Arrival) {
        self.advance(now);
        self.quiet_until = Instant::ZERO;
        self.smooth_size(data.size);
        if let Some(rtt) = data.rtt {
            self.round_trip.on_sample(rtt);
        }
        let boundary = self.boundary.map(|newest| newest.asked_at);
        if boundary.is_some_and(|boundary| data.asked_at < boundary) {
            // It comes before latest_seq(t−P): no period looks there.
            return;
        }
        if data.was_lost && data.rtt.is_some() {
            // Counted as a gap in this very period, and here before its end.
            self.current.lost = self.current.lost.saturating_sub(1);
        }
        self.current.arrived += 1;
        self.current.is_limiting |= data.is_limiting;
        if let Some(rtt) = data.rtt {
            self.current.add_rtt(rtt);
            self.min_rtt.push(now, rtt);
        }
        let is_newest = self
            .newest
            .is_none_or(|newest| data.asked_at >= newest.asked_at);
        if is_newest {
            self.newest = Some(Newest {
                asked_at: data.asked_at,
                rtt: data.rtt,
            });
        }
    }

    fn on_loss(&mut self, now: Instant, lost: &Lost) {
        self.advance(now);
        if !self.config.loss.signal.counts(lost.kind, lost.repeated) {
            return;
        }
        if lost.kind == Loss::Timeout && self.config.loss.timeouts_back_off {
            if now < self.quiet_until {
                return;
            }
            self.quiet_until = now + self.round_trip.timeout();
            self.round_trip.back_off();
        }
        self.current.lost += 1;
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        if self.period_end <= now {
            self.close_period();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (!self.current.is_empty() || self.listens_to_silence()).then_some(self.period_end)
    }

    fn target(&self) -> Target {
        Target {
            rate: Some(self.bandwidth()),
            window: self.window(),
            timeout: Some(self.round_trip.timeout()),
            ignores_gaps: self.config.loss.signal == LossSignal::Timeout,
            packet_size: self
                .packet_size
                .map(|size| ByteSize::bytes(size.round() as u64)),
        }
    }

    fn name(&self) -> &'static str {
        "arc"
    }

    fn estimates(&self) -> Estimates {
        Estimates {
            bandwidth: Some(self.bandwidth()),
            average_rtt: self.average_rtt,
            min_rtt: self.min_rtt.minimum(self.period_end),
        }
    }
}
