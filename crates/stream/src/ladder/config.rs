//! How a rung is chosen.

use super::{Config, challenge};
use crate::choice::choices;

/// How a rung is chosen, and the constants of that.
#[derive(Clone, Debug, PartialEq)]
pub enum LadderConfig {
    /// By [`Ladder`](super::Ladder): by the path.
    Live(Config),
    /// By [`Challenge`](super::Challenge), as \[RTSD\] has it: a higher rung is fetched as well as the current one.
    Paper(challenge::Config),
}

impl Default for LadderConfig {
    fn default() -> Self {
        Self::Live(Config::default())
    }
}

/// How a rung is chosen, without constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LadderProfile {
    /// [`LadderConfig::Live`].
    #[default]
    Namecast,
    /// [`LadderConfig::Paper`].
    Paper,
}

choices!(
    LadderProfile,
    "ladder profile",
    Namecast = "namecast",
    Paper = "paper"
);
