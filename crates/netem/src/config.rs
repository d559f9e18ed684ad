//! What a link is like.

use std::sync::Arc;

use namecast_units::{Bitrate, ByteSize, Duration};
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::jitter::Jitter;
use crate::loss::Loss;
use crate::rate::{Rate, TraceFile};
use crate::schedule::Schedule;

/// One direction of a link. The default is a perfect one: any rate, no delay, no loss.
///
/// Probabilities are shares between 0 and 1, per frame. [`validate`](Self::validate) says what is wrong with one that was
/// read from somewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Rate at which frames are serialised; none: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Propagation delay, after serialisation.
    #[serde(with = "namecast_units::duration")]
    pub delay: Duration,
    /// What each frame carries on the link besides itself, such as 28 octets of IPv4 and UDP in a tunnel. It takes its time, its room in a
    /// queue of bytes, and counts as delivered; it is never damaged.
    pub headers: ByteSize,
    /// What is added to the delay, frame by frame.
    pub jitter: Jitter,
    /// Frames that vanish before they reach the queue.
    pub loss: Loss,
    /// Times at which the link is down.
    pub outages: Vec<Outage>,
    /// Changes of rate and delay, in order of time; where the rate is a trace or a model, of the delay only.
    pub schedule: Vec<Step>,
    /// What happens to frames that wait to be serialised.
    pub queue: Queue,
    /// Share of frames that arrive twice, the copy right behind the original.
    pub duplicate: f64,
    /// Share of frames of which one bit is flipped.
    pub corrupt: f64,
    /// Most frames that have left the queue and have not arrived; one that finds as many is dropped. It bounds the memory of a
    /// link without a rate, and lies far above what a sensible rate and delay need.
    #[default(1 << 20)]
    pub max_in_flight: usize,
}

impl Config {
    /// Replaces a trace by what `read` makes of its file, and a model by what it draws, unless [`validate`](Self::validate)
    /// refuses the model. Links that are to share a schedule get the same one from `read`.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn resolve_rate<E>(
        &mut self,
        read: impl FnOnce(&TraceFile) -> Result<Arc<Schedule>, E>,
    ) -> Result<(), E> {
        let schedule = match &self.rate {
            Some(Rate::Trace(file)) => Some(read(file)?),
            Some(rate @ Rate::Model(model)) if model.is_sound() => rate.schedule(),
            _ => None,
        };
        if let Some(schedule) = schedule {
            self.rate = Some(Rate::Schedule(schedule));
        }
        Ok(())
    }
}

/// A time at which the link is down: what is under way at its start is lost, and so is all that is sent before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// Its start, since the link's zero.
    #[serde(with = "namecast_units::duration")]
    pub from: Duration,
    /// Its end.
    #[serde(with = "namecast_units::duration")]
    pub until: Duration,
}

/// A change of a link under way. The frame that is being serialised keeps its rate; a frame gets the delay of the moment at
/// which its serialisation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Step {
    /// When, since the link's zero.
    #[serde(with = "namecast_units::duration")]
    pub at: Duration,
    /// The rate from then on; none: as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bitrate>,
    /// The delay from then on; none: as before.
    #[serde(
        default,
        with = "namecast_units::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    pub delay: Option<Duration>,
}

/// What happens to frames that wait to be serialised. A frame being serialised has left the queue, and one that finds the
/// link idle never waits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    tag = "kind"
)]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    DropTail {
        /// Most frames that wait.
        packets: usize,
    },
    /// The same, bounded in bytes.
    DropTailBytes {
        /// Most bytes that wait; a frame counts as at least one.
        size: ByteSize,
    },
    /// CoDel, \[RFC8289\] section 5.
    #[serde(rename = "codel")]
    CoDel {
        /// Most frames that wait.
        #[serde(default = "default_packets")]
        packets: usize,
        /// Acceptable standing delay; RFC 8289 section 4.3: 5 ms.
        #[serde(default = "codel_target", with = "namecast_units::duration")]
        target: Duration,
        /// Time above it before anything is done; RFC 8289 section 4.3: 100 ms.
        #[serde(default = "codel_interval", with = "namecast_units::duration")]
        interval: Duration,
        /// Mark frames instead of dropping them.
        #[serde(default)]
        mark: bool,
    },
    /// Random early detection that marks, by the averaged number of frames that wait: \[RED\].
    Red {
        /// Most frames that wait.
        #[serde(default = "default_packets")]
        packets: usize,
        /// Average below which nothing is marked.
        #[serde(default = "red_min")]
        min: f64,
        /// Average from which everything is marked, unless gentle.
        #[serde(default = "red_max")]
        max: f64,
        /// Probability of marking just below `max`.
        #[serde(default = "red_max_probability")]
        max_probability: f64,
        /// Weight of the newest observation in the average.
        #[serde(default = "red_weight")]
        weight: f64,
        /// Whether the probability rises to 1 between `max` and 2·`max`, instead of jumping.
        #[serde(default)]
        gentle: bool,
    },
    /// PI², \[RFC9332\] appendix A: the square of a proportional-integral controller's output is the probability of a mark.
    Pi2 {
        /// Most frames that wait.
        #[serde(default = "default_packets")]
        packets: usize,
        /// Delay to hold; RFC 9332: 15 ms.
        #[serde(default = "pi2_target", with = "namecast_units::duration")]
        target: Duration,
        /// Time between two updates; RFC 9332: 16 ms.
        #[serde(default = "pi2_update", with = "namecast_units::duration")]
        update: Duration,
        /// Integral gain in hertz; RFC 9332: 0.16.
        #[serde(default = "pi2_alpha")]
        alpha: f64,
        /// Proportional gain in hertz; RFC 9332: 3.2.
        #[serde(default = "pi2_beta")]
        beta: f64,
    },
    /// A shallow ramp of marks by the time a frame waited, as for low-latency traffic in \[RFC9332\].
    Ramp {
        /// Most frames that wait.
        #[serde(default = "default_packets")]
        packets: usize,
        /// Wait below which nothing is marked; RFC 9332: 0.8 ms.
        #[serde(default = "ramp_min", with = "namecast_units::duration")]
        min: Duration,
        /// Wait from which everything is marked; RFC 9332: 1.2 ms.
        #[serde(default = "ramp_max", with = "namecast_units::duration")]
        max: Duration,
    },
}

/// As much as a Linux interface's queue holds.
const fn default_packets() -> usize {
    1_000
}

const fn codel_target() -> Duration {
    Duration::from_millis(5)
}

const fn codel_interval() -> Duration {
    Duration::from_millis(100)
}

const fn red_min() -> f64 {
    5.0
}

const fn red_max() -> f64 {
    15.0
}

const fn red_max_probability() -> f64 {
    0.1
}

const fn red_weight() -> f64 {
    0.002
}

const fn pi2_target() -> Duration {
    Duration::from_millis(15)
}

const fn pi2_update() -> Duration {
    Duration::from_millis(16)
}

const fn pi2_alpha() -> f64 {
    0.16
}

const fn pi2_beta() -> f64 {
    3.2
}

const fn ramp_min() -> Duration {
    Duration::from_micros(800)
}

const fn ramp_max() -> Duration {
    Duration::from_micros(1_200)
}

impl Default for Queue {
    /// As much as a Linux interface's queue holds.
    fn default() -> Self {
        Self::DropTail {
            packets: default_packets(),
        }
    }
}

impl Queue {
    /// CoDel with the RFC's constants, in a queue of `packets`.
    pub const fn codel(packets: usize, mark: bool) -> Self {
        Self::CoDel {
            packets,
            target: codel_target(),
            interval: codel_interval(),
            mark,
        }
    }

    /// RED with today's usual constants (5 and 15 packets, 0.1, 0.002), not gentle, in a queue of `packets`.
    pub const fn red(packets: usize) -> Self {
        Self::Red {
            packets,
            min: red_min(),
            max: red_max(),
            max_probability: red_max_probability(),
            weight: red_weight(),
            gentle: false,
        }
    }

    /// PI² with the RFC's constants, in a queue of `packets`.
    pub const fn pi2(packets: usize) -> Self {
        Self::Pi2 {
            packets,
            target: pi2_target(),
            update: pi2_update(),
            alpha: pi2_alpha(),
            beta: pi2_beta(),
        }
    }

    /// The shallow ramp with the RFC's constants, in a queue of `packets`.
    pub const fn ramp(packets: usize) -> Self {
        Self::Ramp {
            packets,
            min: ramp_min(),
            max: ramp_max(),
        }
    }
}
