//! Random loss.

use namecast_units::Random;
use serde::{Deserialize, Serialize};

/// Random loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    tag = "kind"
)]
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

impl Loss {
    /// Loss of `share` of all frames in bursts of `mean_burst` frames on average: everything is lost while bad, nothing
    /// while good. A burst of at most one frame is independent loss, and so is the loss of everything.
    pub fn bursts(share: f64, mean_burst: f64) -> Self {
        if mean_burst <= 1.0 || share >= 1.0 {
            return Self::Random { share };
        }
        let bad_to_good = 1.0 / mean_burst;
        Self::GilbertElliott {
            // In the long run as many bursts begin as end: (1 − share) · good_to_bad = share · bad_to_good.
            good_to_bad: share * bad_to_good / (1.0 - share),
            bad_to_good,
            loss_good: 0.0,
            loss_bad: 1.0,
        }
    }
}

/// Decides for one frame after another whether it is lost.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    config: Loss,
    is_bad: bool,
    random: Random,
}

impl LossProcess {
    /// A process that starts in the good state.
    pub(crate) const fn new(config: Loss, random: Random) -> Self {
        Self {
            config,
            is_bad: false,
            random,
        }
    }

    /// Returns whether the next frame is lost. It draws as often for each frame, whatever comes of it.
    pub(crate) fn next(&mut self) -> bool {
        match self.config {
            Loss::None => false,
            Loss::Random { share } => self.random.chance(share),
            Loss::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            } => {
                let changes = match self.is_bad {
                    true => bad_to_good,
                    false => good_to_bad,
                };
                self.is_bad ^= self.random.chance(changes);
                let share = if self.is_bad { loss_bad } else { loss_good };
                self.random.chance(share)
            }
        }
    }
}
