//! Constants of ARC, and every point where its readings differ.

use core::time::Duration;

use namecast_units::{ByteSize, parse_duration};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rate::Loss;

/// Constants of ARC (\[ARC\] Table 2), and every point where the text, as printed, cannot be meant, or leaves something open.
///
/// [`literal`](Self::literal) is the text to the letter, [`resolved`](Self::resolved) what we take it to mean. Each switch
/// can be set by itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// P, the control period.
    #[serde(with = "namecast_units::duration")]
    pub period: Duration,
    /// jitter_offset: an average RTT up to this much above the least one is no sign of congestion.
    #[serde(with = "namecast_units::duration")]
    pub jitter_offset: Duration,
    /// α, increase in the adaptive phase, in pps^1.5 per period.
    pub alpha: f64,
    /// β, decrease on a rising RTT, in pps^0.5 per period.
    pub beta: f64,
    /// γ, decrease on loss, in pps^0.5 per period.
    pub gamma: f64,
    /// δ, increase in the start phase, in pps per period.
    pub delta: f64,
    /// χ, size of the packets that pps counts.
    pub reference_size: ByteSize,
    /// s, what one Interest brings.
    pub packet_size: PacketSize,
    /// pps at the start, in packets per second: not in the paper. The authors' code starts with the bitrate of the stream
    /// that plays; see [`RateControl::starting_at`](crate::rate::RateControl::starting_at).
    pub initial_rate: f64,
    /// pps never falls below this: not in the paper, where α/√pps then grows without bound, and pps − β·√pps reaches zero
    /// at β² = ¼.
    pub min_rate: f64,
    /// pps never rises above this: a bound, not in the paper.
    pub greatest_rate: f64,
    /// When the start phase goes on. Printed: either (Algorithm 2).
    pub start_while: StartWhile,
    /// Whether the newest packet of one period counts in the next again. Printed: yes ("for i in latest_seq(t−P) to
    /// latest_seq(t)").
    pub loop_bounds: LoopBounds,
    /// Whether a period in which nothing came and nothing was lost leaves all as it is. Not in the paper: with half-open
    /// bounds AvgRTT is 0/0, which is neither case 1 nor case 2, so case 3.
    pub hold_when_empty: bool,
    /// How RTT_min is found.
    #[serde(flatten)]
    pub min_rtt: MinRttConfig,
    /// What counts as loss, and what it does.
    #[serde(flatten)]
    pub loss: LossConfig,
    /// What case 1 does while congestion_sign is set. Printed: clears it.
    pub case1_with_sign: CaseOneWithSign,
    /// Interests out, at most, as a multiple of what k·pps requests in one timeout; zero: no such net. Not in the paper.
    pub window_factor: f64,
}

/// How RTT_min, the RTT without queues, is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MinRttConfig {
    /// How long an RTT counts for RTT_min. Printed: for ever.
    #[serde(rename = "min-rtt-window")]
    pub window: MinRttWindow,
    /// Parts in which a finite window forgets: values leave one part at a time, so it is between `parts − 1` and `parts`
    /// parts long. The authors' code has two of 10 s each.
    #[serde(rename = "min-rtt-parts")]
    pub parts: u32,
    /// If not one of so many packets came within jitter_offset of RTT_min, the path delay increased, and RTT_min is the
    /// least of those packets; zero: no such rule. Not in the paper, whose text wants ARC to tell a new source from
    /// congestion. Without it, pps falls towards α/β until the old RTT_min is forgotten.
    pub source_change_after: u32,
}

/// What counts as loss, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LossConfig {
    /// What counts as loss. Printed: gaps.
    #[serde(rename = "loss-signal")]
    pub signal: LossSignal,
    /// Whether loss sets congestion_sign. Printed: no. Authors' code: yes.
    #[serde(rename = "loss-sets-sign")]
    pub sets_sign: bool,
    /// Least time after which an Interest counts as timed out. The timer is that of \[RFC6298\] with jitter_offset for its
    /// granularity, as the paper has none.
    #[serde(with = "namecast_units::duration")]
    pub min_timeout: Duration,
    /// Whether, while nothing arrives, one timeout a timer counts and the timer doubles, as in \[RFC6298\] §5. Otherwise each
    /// period of a blackout decreases pps, down to almost nothing. Not in the paper, which knows no timer.
    pub timeouts_back_off: bool,
}

/// s, what one Interest brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSize {
    /// Always this much (Table 2).
    Fixed(ByteSize),
    /// s ← 0.9·s + 0.1·size, from the first size on (authors' code).
    Smoothed,
}

/// When the start phase goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartWhile {
    /// While case 1 holds *or* nothing was lost: as printed, so that it ends only when both fail at once.
    Either,
    /// While case 1 holds *and* nothing was lost: as the text says, "promptly" with any symptom of congestion.
    Both,
}

/// Which packets a period looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoopBounds {
    /// From the newest of the period before, itself included: as printed. A silent period looks at that packet again.
    Inclusive,
    /// Those after it.
    HalfOpen,
}

/// How long an RTT counts for RTT_min.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinRttWindow {
    /// For ever.
    Forever,
    /// For about this long.
    Last(Duration),
}

/// What counts as loss. A Nack does in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossSignal {
    /// Data that was overtaken.
    Gap,
    /// Data that was overtaken, or did not come in time; each Interest once.
    GapOrTimeout,
    /// Data that did not come in time (authors' code).
    Timeout,
}

impl LossSignal {
    /// Returns whether a sign of `kind` counts; `repeated` if the same Interest had another one before.
    pub(super) fn counts(self, kind: Loss, repeated: bool) -> bool {
        match (self, kind) {
            (Self::GapOrTimeout, _) | (_, Loss::Nack) => !repeated,
            (Self::Gap, Loss::Gap) | (Self::Timeout, Loss::Timeout) => true,
            (Self::Gap, Loss::Timeout) | (Self::Timeout, Loss::Gap) => false,
        }
    }
}

/// What case 1 does while congestion_sign is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseOneWithSign {
    /// It clears the sign: as printed.
    Clears,
    /// It does not count as case 1: a rising RTT then decreases pps (authors' code).
    Passes,
}

/// A set of readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The text to the letter.
    Literal,
    /// What we take it to mean.
    Resolved,
    /// The same with a rule of ours that finds a new source soon.
    SourceRule,
}

impl Config {
    /// The text to the letter.
    pub const fn literal() -> Self {
        let size = ByteSize::bytes(1_024);
        Self {
            period: Duration::from_millis(10),
            jitter_offset: Duration::from_millis(10),
            alpha: 20.0,
            beta: 0.5,
            gamma: 0.5,
            delta: 20.0,
            reference_size: size,
            packet_size: PacketSize::Fixed(size),
            initial_rate: 100.0,
            min_rate: 1.0,
            greatest_rate: 1e6,
            start_while: StartWhile::Either,
            loop_bounds: LoopBounds::Inclusive,
            hold_when_empty: false,
            min_rtt: MinRttConfig {
                window: MinRttWindow::Forever,
                parts: 10,
                source_change_after: 0,
            },
            loss: LossConfig {
                signal: LossSignal::Gap,
                sets_sign: false,
                min_timeout: Duration::from_millis(100),
                timeouts_back_off: false,
            },
            case1_with_sign: CaseOneWithSign::Clears,
            window_factor: 0.0,
        }
    }

    /// What we take the text to mean.
    pub const fn resolved() -> Self {
        let literal = Self::literal();
        Self {
            packet_size: PacketSize::Smoothed,
            start_while: StartWhile::Both,
            loop_bounds: LoopBounds::HalfOpen,
            hold_when_empty: true,
            min_rtt: MinRttConfig {
                window: MinRttWindow::Last(Duration::from_secs(10)),
                ..literal.min_rtt
            },
            loss: LossConfig {
                signal: LossSignal::GapOrTimeout,
                timeouts_back_off: true,
                ..literal.loss
            },
            window_factor: 2.0,
            ..literal
        }
    }

    /// The same, with 500 packets without one near RTT_min taken for a longer way.
    pub const fn with_source_rule() -> Self {
        let resolved = Self::resolved();
        Self {
            min_rtt: MinRttConfig {
                source_change_after: 500,
                ..resolved.min_rtt
            },
            ..resolved
        }
    }

    /// The configuration of `profile`.
    pub const fn of(profile: Profile) -> Self {
        match profile {
            Profile::Literal => Self::literal(),
            Profile::Resolved => Self::resolved(),
            Profile::SourceRule => Self::with_source_rule(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::resolved()
    }
}

const SMOOTHED: &str = "smoothed";
const FOREVER: &str = "forever";

impl Serialize for PacketSize {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(size) => size.serialize(sink),
            Self::Smoothed => sink.serialize_str(SMOOTHED),
        }
    }
}

impl<'de> Deserialize<'de> for PacketSize {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        if text == SMOOTHED {
            return Ok(Self::Smoothed);
        }
        let size = text.parse().map(Self::Fixed);
        size.map_err(|error| serde::de::Error::custom(format!("{error}, or {SMOOTHED}")))
    }
}

impl Serialize for MinRttWindow {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Last(span) => namecast_units::duration::serialize(span, sink),
            Self::Forever => sink.serialize_str(FOREVER),
        }
    }
}

impl<'de> Deserialize<'de> for MinRttWindow {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        if text == FOREVER {
            return Ok(Self::Forever);
        }
        let span = parse_duration(&text).map(Self::Last);
        span.map_err(|error| serde::de::Error::custom(format!("{error}, or {FOREVER}")))
    }
}
