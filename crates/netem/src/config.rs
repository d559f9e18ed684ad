//! What a link is like.

use namecast_units::{Bitrate, ByteSize, Duration};
use serde::{Deserialize, Serialize};

/// One direction of a link. The default is a perfect one: any rate, no delay, no loss.
///
/// Probabilities are shares between 0 and 1, per frame.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Rate at which frames are serialised; none: at once.
    pub rate: Option<Bitrate>,
    /// Propagation delay, after serialisation.
    #[serde(with = "namecast_units::duration")]
    pub delay: Duration,
    /// What is added to the delay, frame by frame.
    pub jitter: Jitter,
    /// Frames that vanish before they reach the queue.
    pub loss: Loss,
    /// Times at which everything vanishes.
    pub outages: Vec<Outage>,
    /// Changes of rate and delay, in order of time.
    pub schedule: Vec<Step>,
    /// What happens to frames that wait to be serialised.
    pub queue: Queue,
    /// Share of frames that arrive twice.
    pub duplicate: f64,
    /// Share of frames of which one bit is flipped.
    pub corrupt: f64,
}

/// Random addition to the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Jitter {
    /// Uniform: the largest addition. Normal: the standard deviation; negative draws count as zero.
    #[serde(with = "namecast_units::duration")]
    pub spread: Duration,
    /// How additions are distributed.
    pub shape: JitterShape,
    /// Whether a frame may overtake earlier ones; otherwise it waits for them.
    pub reorder: bool,
}

/// How jitter is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterShape {
    /// Each addition between zero and the spread is equally likely.
    #[default]
    Uniform,
    /// Half of a bell curve.
    Normal,
}

/// Random loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Each frame is lost with the same probability.
    Random {
        /// Share of frames lost.
        share: f64,
    },
    /// A chain of two states, stepped once for each frame before its fate is drawn: bursts of loss.
    GilbertElliott {
        /// Probability of going from good to bad.
        good_to_bad: f64,
        /// Probability of going from bad to good; its inverse is the mean length of a burst in frames.
        bad_to_good: f64,
        /// Share lost while good.
        #[serde(default)]
        loss_good: f64,
        /// Share lost while bad.
        #[serde(default = "always")]
        loss_bad: f64,
    },
}

const fn always() -> f64 {
    1.0
}

/// A time at which nothing passes.
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

/// A change of a link under way. The frame that is being serialised keeps its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Step {
    /// When, since the link's zero.
    #[serde(with = "namecast_units::duration")]
    pub at: Duration,
    /// The rate from then on; none: as before.
    #[serde(default)]
    pub rate: Option<Bitrate>,
    /// The delay from then on; none: as before.
    #[serde(default, with = "namecast_units::optional_duration")]
    pub delay: Option<Duration>,
}

/// What happens to frames that wait to be serialised. A frame being serialised has left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    DropTail {
        /// Most frames that wait.
        packets: usize,
    },
    /// The same, bounded in bytes.
    DropTailBytes {
        /// Most bytes that wait.
        size: ByteSize,
    },
    /// CoDel, RFC 8289.
    CoDel {
        /// Most frames that wait.
        packets: usize,
        /// Acceptable standing delay; RFC 8289 §4.2: 5 ms.
        #[serde(with = "namecast_units::duration")]
        target: Duration,
        /// Time above it before anything is done; RFC 8289 §4.2: 100 ms.
        #[serde(with = "namecast_units::duration")]
        interval: Duration,
        /// Mark frames instead of dropping them.
        mark: bool,
    },
    /// Random early detection that marks, by the averaged number of frames that wait.
    Red {
        /// Most frames that wait.
        packets: usize,
        /// Average below which nothing is marked.
        min: f64,
        /// Average from which everything is marked, unless gentle.
        max: f64,
        /// Probability of marking just below `max`.
        max_probability: f64,
        /// Weight of the newest observation in the average.
        weight: f64,
        /// Whether the probability rises to 1 between `max` and 2·`max`, instead of jumping.
        gentle: bool,
    },
    /// PI², RFC 9332 appendix A: the square of a proportional-integral controller's output is the probability of a mark.
    Pi2 {
        /// Most frames that wait.
        packets: usize,
        /// Delay to hold; RFC 9332: 15 ms.
        #[serde(with = "namecast_units::duration")]
        target: Duration,
        /// Time between two updates; RFC 9332: 16 ms.
        #[serde(with = "namecast_units::duration")]
        update: Duration,
        /// Integral gain in hertz; RFC 9332: 0.16.
        alpha: f64,
        /// Proportional gain in hertz; RFC 9332: 3.2.
        beta: f64,
    },
    /// A shallow ramp of marks by the time a frame waited, as for low-latency traffic in RFC 9332.
    Ramp {
        /// Most frames that wait.
        packets: usize,
        /// Wait below which nothing is marked; RFC 9332: 0.8 ms.
        #[serde(with = "namecast_units::duration")]
        min: Duration,
        /// Wait from which everything is marked; RFC 9332: 1.2 ms.
        #[serde(with = "namecast_units::duration")]
        max: Duration,
    },
}

impl Default for Queue {
    /// As much as a Linux interface's queue holds.
    fn default() -> Self {
        Self::DropTail { packets: 1_000 }
    }
}
