//! Random addition to the delay.

use core::f64::consts::TAU;

use namecast_units::{Duration, Random};

use serde::{Deserialize, Serialize};

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
    /// The upper half of a bell curve: one frame in two gets no addition. The mean is spread/√(2π).
    Normal,
}

/// Draws one addition after another.
#[derive(Clone, Debug)]
pub(crate) struct JitterProcess {
    config: Jitter,
    random: Random,
}

impl JitterProcess {
    pub(crate) const fn new(config: Jitter, random: Random) -> Self {
        Self { config, random }
    }

    /// Returns what is added to the delay of the next frame.
    pub(crate) fn next(&mut self) -> Duration {
        let spread = u64::try_from(self.config.spread.as_nanos()).unwrap_or(u64::MAX);
        match self.config.shape {
            JitterShape::Uniform if spread == 0 => Duration::ZERO,
            JitterShape::Uniform => {
                Duration::from_nanos(self.random.below(spread.saturating_add(1)))
            }
            JitterShape::Normal => {
                let addition = standard_normal(&mut self.random) * spread as f64;
                // A cast saturates: negative draws become zero.
                Duration::from_nanos(addition as u64)
            }
        }
    }
}

/// Returns a draw from the normal distribution with mean 0 and deviation 1, by the method of Box and Muller: √(−2·ln u)·cos(2π·v).
pub fn standard_normal(random: &mut Random) -> f64 {
    // In (0, 1], as zero has no logarithm.
    let u = 1.0 - random.unit();
    let v = random.unit();
    (-2.0 * libm::log(u)).sqrt() * libm::cos(TAU * v)
}
