//! What chance holds for each frame.

use namecast_units::{Duration, Random};

use crate::config::Config;
use crate::jitter::JitterProcess;
use crate::loss::{Loss, LossProcess};

/// What a link draws random numbers for, each from a sequence of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Loss,
    Jitter,
    Duplicate,
    Corrupt,
    Queue,
}

impl Purpose {
    /// Returns the sequence of this purpose that `seed` stands for.
    pub(crate) fn sequence(self, seed: u64) -> Random {
        let mut root = Random::from_seed(seed);
        let mut word = root.next_u64();
        for _ in 0..self as u32 {
            word = root.next_u64();
        }
        Random::from_seed(word)
    }
}

/// What will happen to one frame, queue aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// It vanishes.
    pub(crate) is_lost: bool,
    /// It arrives twice.
    pub(crate) has_copy: bool,
    /// The bit that is flipped.
    pub(crate) flipped: Option<u32>,
    /// Added to the delay.
    pub(crate) addition: Duration,
}

/// Draws the fates of frames when they are handed in. The n-th frame's loss, jitter, copy and damage depend on the seed and
/// n alone: switching one of them on, or another queue, leaves the others as they were.
#[derive(Clone, Debug)]
pub(crate) struct Chance {
    loss: Option<LossProcess>,
    jitter: Option<JitterProcess>,
    duplicate: Option<(f64, Random)>,
    corrupt: Option<(f64, Random)>,
}

impl Chance {
    /// None if nothing of it is random.
    pub(crate) fn new(config: &Config, seed: u64) -> Option<Box<Self>> {
        let shared =
            |share: f64, purpose: Purpose| (share > 0.0).then(|| (share, purpose.sequence(seed)));
        let chance = Self {
            loss: (config.loss != Loss::None)
                .then(|| LossProcess::new(config.loss, Purpose::Loss.sequence(seed))),
            jitter: (config.jitter.spread > Duration::ZERO)
                .then(|| JitterProcess::new(config.jitter, Purpose::Jitter.sequence(seed))),
            duplicate: shared(config.duplicate, Purpose::Duplicate),
            corrupt: shared(config.corrupt, Purpose::Corrupt),
        };
        let is_random = chance.loss.is_some()
            || chance.jitter.is_some()
            || chance.duplicate.is_some()
            || chance.corrupt.is_some();
        is_random.then(|| Box::new(chance))
    }

    /// Returns the fate of the next frame, which has `octets`.
    pub(crate) fn next(&mut self, octets: usize) -> Fate {
        let flipped = self.corrupt.as_mut().and_then(|(share, random)| {
            let is_hit = random.chance(*share);
            let bit = random.below(octets as u64 * 8);
            (is_hit && octets > 0)
                .then(|| u32::try_from(bit).ok())
                .flatten()
        });
        Fate {
            is_lost: self.loss.as_mut().is_some_and(LossProcess::next),
            has_copy: (self.duplicate.as_mut())
                .is_some_and(|(share, random)| random.chance(*share)),
            flipped,
            addition: (self.jitter.as_mut()).map_or(Duration::ZERO, JitterProcess::next),
        }
    }
}
