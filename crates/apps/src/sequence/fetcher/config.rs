//! What a fetcher is told when it is made.

use core::time::Duration;

use namecast_packet::Name;
use namecast_stream::path::NumberedConfig;

use super::repair::Ending;
use crate::receivers::ReceiverId;
use crate::sequence::server::ServerConfig;

/// How Data are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// One number after the other.
    #[default]
    Numbered,
    /// Any next Data of the flow \[SAID\], without the numbers that left for others meanwhile.
    AnyNext,
}

/// What to fetch and how.
#[derive(Clone, Debug)]
pub struct FetcherConfig {
    /// Name before the number.
    pub prefix: Name,
    /// Which numbers, and how fast.
    pub requests: NumberedConfig,
    /// Which of them are requested.
    pub delivery: Delivery,
    /// Where a flow of any next Data ends, and how what is missing is requested; `None`: it has no end.
    pub ending: Option<Ending>,
    /// Makes the Data that neighbours hear of, with [`Repair::FromPeers`](super::Repair::FromPeers).
    pub server: ServerConfig,
    /// Has the sender hear what has come, from the receiver of this number, and acknowledges Data if the sender wants that.
    pub reports_as: Option<ReceiverId>,
    /// Length of the intervals that [`samples`](super::Fetcher::samples) tells of; `None`: no samples.
    pub sample_interval: Option<Duration>,
    /// Samples kept, at most; none after that.
    pub max_samples: usize,
    /// Arrivals kept until they are polled, at most, of which the oldest go first; zero: they are not wanted.
    pub max_fetched: usize,
}

impl FetcherConfig {
    /// Fetches `requests` under `prefix`.
    pub fn new(prefix: Name, requests: NumberedConfig) -> Self {
        Self {
            server: ServerConfig {
                prefix: prefix.clone(),
                ..ServerConfig::default()
            },
            ending: None,
            prefix,
            requests,
            delivery: Delivery::Numbered,
            reports_as: None,
            sample_interval: Some(Duration::from_millis(10)),
            max_samples: 200_000,
            max_fetched: 0,
        }
    }
}
