//! When a publisher announces its name.

use clap::ValueEnum;
use namecast_net::Announcing;

/// Whether forwarders that learn routes are told that this is the place to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Announce {
    /// Where the forwarder's strategy for the name is self-learning.
    Auto,
    /// In any case.
    Always,
    /// Not at all.
    Never,
}

impl Announce {
    /// The same for the node.
    pub const fn when(self) -> Option<Announcing> {
        match self {
            Self::Auto => Some(Announcing::WhereLearned),
            Self::Always => Some(Announcing::Always),
            Self::Never => None,
        }
    }
}
