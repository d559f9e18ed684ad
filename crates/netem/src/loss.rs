//! Random loss.

use namecast_units::Random;

use crate::config::Loss;

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

    /// Whether the next frame is lost. It draws as often for each frame, whatever comes of it.
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
                let share = match self.is_bad {
                    true => loss_bad,
                    false => loss_good,
                };
                self.random.chance(share)
            }
        }
    }
}
