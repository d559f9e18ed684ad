//! How much may be out at a time, and how fast Interests may leave.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use smart_default::SmartDefault;

use crate::rate::{
    Arrival, Lost, Pacer, ParseRateControlError, RateControl, RateController, Usage,
};

use super::measure::Path;

/// Constants of the controller for live media.
#[derive(Clone, Copy, Debug, PartialEq, SmartDefault)]
pub struct LiveConfig {
    /// Interests leave so long before they must.
    #[default(Duration::from_millis(5))]
    pub guard: Duration,
    /// How much faster than the link Interests may leave.
    #[default(1.15)]
    pub pace: f64,
    /// The same where nothing queues although Interests wait.
    #[default(1.5)]
    pub ramp: f64,
    /// Packets that may leave at once, and that the window always has room for.
    #[default(6)]
    pub bucket: u32,
    /// Packets that may leave before anything was measured: the first key sample of a low bitrate.
    #[default(48)]
    pub first_burst: u32,
    /// Least window in packets.
    #[default(12)]
    pub min_window: u32,
    /// The least pace.
    #[default(Bitrate::kbps(400))]
    pub min_pace: Bitrate,
}

/// Which controller bounds a watcher's requests.
///
/// As text: `live`, or a name that [`RateControl`] knows, but for `unlimited`: everything that a watcher requests is bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Control {
    /// The one for live media.
    #[default]
    Live,
    /// Another one, by name.
    Rate(RateControl),
}

impl Control {
    /// Returns the budget, for a stream that needs `rate` from the start.
    pub fn build(self, now: Instant, rate: Bitrate) -> Budget {
        match self {
            Self::Live => Budget::live(LiveConfig::default()),
            Self::Rate(control) => Budget::controller(control.starting_at(rate).build(now)),
        }
    }
}

/// A text that names no controller of watchers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseControlError {
    /// There is no bound.
    #[error("'unlimited' is no controller of a watcher: write live, or another one with a bound")]
    Unlimited,
    /// There is no such name.
    #[error("{0}, or live")]
    Unknown(#[from] ParseRateControlError),
}

impl FromStr for Control {
    type Err = ParseControlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "live" => Ok(Self::Live),
            other => Self::try_from(other.parse::<RateControl>()?),
        }
    }
}

impl TryFrom<RateControl> for Control {
    type Error = ParseControlError;

    fn try_from(control: RateControl) -> Result<Self, Self::Error> {
        match control {
            RateControl::Unlimited => Err(ParseControlError::Unlimited),
            control => Ok(Self::Rate(control)),
        }
    }
}

impl Serialize for Control {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Live => sink.serialize_str("live"),
            Self::Rate(control) => control.serialize(sink),
        }
    }
}

/// As a file writes it: a name, or a table with a kind and parameters.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Name(String),
    Table(RateControl),
}

impl<'de> Deserialize<'de> for Control {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let control = match Written::deserialize(source)? {
            Written::Name(name) => name.parse(),
            Written::Table(control) => Self::try_from(control),
        };
        control.map_err(de::Error::custom)
    }
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("live"),
            Self::Rate(control) => control.fmt(f),
        }
    }
}

/// Bits of a packet of usual size.
pub const PACKET: f64 = 8_640.0;
/// There is room for so many at least, however large they are.
const LARGE_PACKETS: f64 = 3.0;
/// Something has waited for so long: it is no burst.
const BACKLOGGED: Duration = Duration::from_millis(60);
/// Where nothing queues although Interests wait, the window grows by no more than so many times the queue that it aims at.
const RAMP_QUEUES: f64 = 1.25;
/// Where delays vary by more than that, in seconds, and by more than a few packets take, pairs of packets come apart by themselves,
/// and show less than the path carries.
const UNSTEADY: f64 = 0.02;
/// Share of what the path carries in a round trip that may be out while objects are requested beside live media: the rest is room in
/// which queues empty, so that the least delay of the path stays known.
const SPARE_SHARE: f64 = 0.9;
/// Largest factor by which that share grows where nothing queues.
const SPARE_RAMP: f64 = 1.15;
/// Timers are no finer.
const MIN_WAIT: Duration = Duration::from_micros(500);
/// Bounds of the queue that losses prove too long.
const MIN_QUEUE_CAP: f64 = 0.008;
const NO_CAP: f64 = 1.0;

/// Delay first: a window that keeps the link busy and its queue short, whatever is wanted.
///
/// ```text
/// W = max(12 packets, C · (RTT + 15 ms + min(queue cap, 12 % of the target in 25…60 ms)))
/// P = max(400 kbit/s, 1.15 · C)
/// ```
#[derive(Clone, Debug)]
pub struct Live {
    config: LiveConfig,
    /// Bits of the largest packet.
    largest: f64,
    window: f64,
    /// The same where objects are requested beside live media.
    spare: f64,
    pace: f64,
    tokens: f64,
    filled_at: Instant,
    queue_cap: f64,
    capped_at: Instant,
    /// A queue is long; and nothing more is requested until it is not.
    is_long: bool,
    is_holding: bool,
}

/// What bounds requests.
#[derive(Debug)]
pub enum Budget {
    /// By the path: for live media.
    Live(Box<Live>),
    /// By a rate controller.
    Controller {
        /// The controller.
        controller: Box<dyn RateController>,
        /// Spaces Interests.
        pacer: Pacer,
        /// Whether its target is what holds requests back.
        usage: Usage,
    },
}

/// What a budget goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Interests wait.
    pub is_waiting: bool,
    /// What all that is played needs.
    pub need: Bitrate,
}

impl Live {
    fn new(config: LiveConfig) -> Self {
        Self {
            largest: PACKET,
            window: f64::from(config.first_burst) * PACKET,
            spare: 0.0,
            pace: config.min_pace.as_bps() as f64,
            tokens: f64::from(config.first_burst) * PACKET,
            filled_at: Instant::ZERO,
            queue_cap: NO_CAP,
            capped_at: Instant::ZERO,
            is_long: false,
            is_holding: false,
            config,
        }
    }

    /// Learns of the size of a packet that is to be requested, perhaps before anything was measured.
    fn on_size(&mut self, size: ByteSize, is_first: bool) {
        let before = self.room_for(self.config.first_burst);
        self.largest = self.largest.max(size.as_bits() as f64);
        if is_first {
            let room = self.room_for(self.config.first_burst);
            self.tokens += room - before;
            self.window = room;
        }
    }

    /// Bits of so many packets of usual size, or of the few large ones that are worth a sample.
    fn room_for(&self, packets: u32) -> f64 {
        (f64::from(packets) * PACKET).max(LARGE_PACKETS * self.largest)
    }

    fn on_tick(&mut self, now: Instant, path: &Path, load: &Load) {
        let target = path.target().as_secs_f64();
        let idle_for = Duration::from_millis(80);
        let is_idle =
            load.is_waiting && path.is_flowing(now) && path.queue_min(now, idle_for) < 0.004;
        let ramp = if is_idle { self.config.ramp } else { 1.0 };
        // While something waits, what came through of late counts: what is requested now would wait behind it.
        let is_backlogged = path
            .backlogged_since()
            .is_some_and(|since| now.since(since) > BACKLOGGED);
        let mut carried = match is_backlogged {
            true => path.fast_capacity(),
            false => path.carried().max(path.fast_capacity()),
        };
        let is_unsteady = path.jitter() > UNSTEADY.max(3.0 * PACKET / path.capacity());
        if path.is_contended(now) || is_unsteady {
            carried = carried.max(1.3 * load.need.as_bps() as f64);
        }
        if let Some(offered) = path.offered(now) {
            carried = carried.min(0.95 * offered.as_bps() as f64);
        }
        carried *= 1.0 - path.marked() / 2.0;
        let queue = self.queue_cap.min((0.12 * target).clamp(0.025, 0.06));
        let span = path.round_trip(now) + self.config.guard;
        let mut least = self.room_for(self.config.min_window);
        let mut min_pace = self.config.min_pace.as_bps() as f64;
        if path.last_arrival().is_none() {
            // What is published while nothing can have come yet leaves with the first key sample.
            let need = load.need.as_bps() as f64;
            least = self.room_for(self.config.first_burst) + need * span.as_secs_f64();
            min_pace = min_pace.max(need);
        }
        let more = ramp.min(SPARE_RAMP);
        self.spare = SPARE_SHARE * carried * more * path.round_trip(now).as_secs_f64();
        let span = span.as_secs_f64() + queue;
        // What leaves shows a round trip later: of a long one, half would be a long queue.
        let more = ((ramp - 1.0) * span).min(RAMP_QUEUES * queue);
        self.window = (carried * (span + more)).max(least);
        let pace = (carried * self.config.pace).max(min_pace);
        self.fill(now);
        self.pace = pace * ramp;
        self.is_long = Self::is_long(now, path, target);
        let is_much = path.queued() > 300e3 * target || path.capacity() < 0.6e6;
        self.is_holding = self.is_long && is_much;
        if self.is_long {
            // Half of what a round trip carries drains a queue of ours. If the delay stays, it is no queue of ours.
            let little = path.fast_capacity() * span / 2.0;
            self.window = little.clamp(LARGE_PACKETS * self.largest, least);
        }
        if now.since(self.capped_at) > Duration::from_secs(2) && self.queue_cap < NO_CAP {
            self.queue_cap *= 1.0008;
        }
    }

    /// Returns whether a queue is far above what stands there anyway.
    fn is_long(now: Instant, path: &Path, target: f64) -> bool {
        let standing = path
            .queue_min(now, Duration::from_secs(2))
            .min(target / 2.0);
        let limit = (0.4 * target).clamp(0.04, 0.2);
        path.queue_of_many() - standing > limit
    }

    fn fill(&mut self, now: Instant) {
        let depth = self.room_for(self.config.bucket).max(0.004 * self.pace);
        let earned = self.pace * now.since(self.filled_at).as_secs_f64();
        self.tokens = (self.tokens + earned).min(depth.max(self.tokens));
        self.filled_at = now;
    }

    fn on_loss(&mut self, now: Instant, path: &Path) {
        if path.is_full(now) {
            let queue = path.queue_max(now, Duration::from_millis(100));
            self.queue_cap = self.queue_cap.min(0.45 * queue).max(MIN_QUEUE_CAP);
            self.capped_at = now;
        }
    }
}

impl Budget {
    /// The controller for live media.
    pub fn live(config: LiveConfig) -> Self {
        Self::Live(Box::new(Live::new(config)))
    }

    /// Another controller.
    pub fn controller(controller: Box<dyn RateController>) -> Self {
        Self::Controller {
            controller,
            pacer: Pacer::default(),
            usage: Usage::default(),
        }
    }

    /// Returns the controller's name, for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Live(_) => "live",
            Self::Controller { controller, .. } => controller.name(),
        }
    }

    /// Returns the rate that it allows; `None`: it has a window only.
    pub fn rate(&self) -> Option<Bitrate> {
        match self {
            Self::Live(live) => Some(Bitrate::bps(live.pace as u64)),
            Self::Controller { controller, .. } => controller.target().rate,
        }
    }

    /// Learns of the size of a packet that is to be requested, perhaps before anything was measured.
    pub(super) fn on_size(&mut self, size: ByteSize, is_first: bool) {
        if let Self::Live(live) = self {
            live.on_size(size, is_first);
        }
    }

    pub(super) fn on_tick(&mut self, now: Instant, path: &Path, load: &Load) {
        match self {
            Self::Live(live) => live.on_tick(now, path, load),
            Self::Controller { controller, .. } => controller.handle_timeout(now),
        }
    }

    /// Returns whether another paced Interest may leave in addition to `bits` and `count` others.
    pub(super) fn allows(&mut self, now: Instant, bits: f64, count: usize) -> bool {
        match self {
            Self::Live(live) => {
                live.fill(now);
                !live.is_holding && live.tokens > 0.0 && bits < live.window
            }
            Self::Controller {
                controller, pacer, ..
            } => {
                let target = controller.target();
                let has_room = target.window.is_none_or(|window| count < window as usize);
                has_room && pacer.next_send(target.rate) <= now
            }
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, size: ByteSize) {
        match self {
            Self::Live(live) => live.tokens -= size.as_bits() as f64,
            Self::Controller {
                controller,
                pacer,
                usage,
            } => {
                let target = controller.target();
                let size = target.packet_size.unwrap_or(size);
                pacer.on_sent(now, size, target.rate);
                usage.on_sent(now, size);
            }
        }
    }

    /// Returns whether an object may be requested beside live media, in addition to `bits`.
    pub(super) fn has_spare(&self, bits: f64) -> bool {
        match self {
            Self::Live(live) => bits < live.spare,
            Self::Controller { .. } => true,
        }
    }

    /// Returns whether it is what keeps more from being requested.
    pub(super) fn is_limiting(&mut self, now: Instant, count: usize) -> bool {
        match self {
            Self::Live(_) => false,
            Self::Controller {
                controller, usage, ..
            } => {
                let target = controller.target();
                match (target.rate, target.window) {
                    (Some(rate), _) => usage.is_limited_by(now, rate),
                    (None, Some(window)) => count * 2 >= window as usize,
                    (None, None) => false,
                }
            }
        }
    }

    pub(super) fn on_data(&mut self, now: Instant, arrival: &Arrival) {
        if let Self::Controller { controller, .. } = self {
            controller.on_data(now, arrival);
        }
    }

    pub(super) fn on_loss(&mut self, now: Instant, path: &Path, lost: &Lost) {
        match self {
            Self::Live(live) => live.on_loss(now, path),
            Self::Controller { controller, .. } => controller.on_loss(now, lost),
        }
    }

    /// Returns when more may leave, if it is time that is missing.
    pub(super) fn next_send(&self) -> Option<Instant> {
        match self {
            Self::Live(live) => {
                // With tokens left, something else is missing.
                let missing = Some(-live.tokens).filter(|missing| *missing >= 0.0)?;
                let wait = Duration::from_secs_f64((missing + 1.0) / live.pace);
                Some(live.filled_at + wait.max(MIN_WAIT))
            }
            Self::Controller {
                controller, pacer, ..
            } => Some(pacer.next_send(controller.target().rate)),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Live(_) => None,
            Self::Controller { controller, .. } => controller.poll_timeout(),
        }
    }

    /// Returns whether little or nothing is requested, as a queue is long.
    pub(super) fn is_cautious(&self) -> bool {
        matches!(self, Self::Live(live) if live.is_long)
    }

    /// Returns whether nothing more is requested until a queue is gone.
    pub fn is_holding(&self) -> bool {
        matches!(self, Self::Live(live) if live.is_holding)
    }
}
