//! How nodes forward: which next hops they know, and which of them they choose.

use namecast_forward::{AsfConfig, PconProfile, StrategyKind};
use serde::{Deserialize, Serialize};

/// Strategy of every node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The cheapest next hop.
    #[default]
    BestRoute,
    /// The cheapest next hop; an Interest waits as long as an equal one is pending, as in CCNx, and not 10 ms as in NFD.
    Ccnx,
    /// All next hops.
    Multicast,
    /// Any next hop.
    Random,
    /// Any next hop, cheap ones more often.
    Weighted,
    /// The next hop that answers fastest.
    Asf,
    /// Any next hop by its share, which falls with marks: as \[PCON\] was published.
    Pcon,
    /// The same as ndnSIM has it.
    PconNdnsim,
}

impl From<Strategy> for StrategyKind {
    fn from(strategy: Strategy) -> Self {
        match strategy {
            Strategy::BestRoute | Strategy::Ccnx => Self::BestRoute,
            Strategy::Multicast => Self::Multicast,
            Strategy::Random => Self::Random,
            Strategy::Weighted => Self::Weighted,
            Strategy::Asf => Self::Asf(AsfConfig::DEFAULT),
            Strategy::Pcon => Self::Pcon(PconProfile::Published),
            Strategy::PconNdnsim => Self::Pcon(PconProfile::NdnSim),
        }
    }
}

/// Which next hops nodes know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routes {
    /// One on a shortest way to each producer.
    #[default]
    Shortest,
    /// All that lead nearer to a producer.
    All,
}
