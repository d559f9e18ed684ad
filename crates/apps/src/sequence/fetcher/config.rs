//! What a fetcher is told when it is made.

use core::time::Duration;

use namecast_packet::Name;
use namecast_stream::rate::RateControl;
use namecast_units::ByteSize;

/// What to fetch and how.
#[derive(Clone, Debug)]
pub struct FetcherConfig {
    /// Name before the number.
    pub prefix: Name,
    /// First number.
    pub first: u64,
    /// How many; `None`: without end.
    pub count: Option<u64>,
    /// What decides how fast.
    pub control: RateControl,
    /// Lifetime of the Interests, in whole milliseconds. Without retransmission, a lost number may come late for so long.
    pub lifetime: Duration,
    /// Whether to ask again for what was lost. Otherwise it is left out, as real-time applications do.
    pub retransmit: bool,
    /// Packets that Data may be overtaken by before it counts as lost: zero on paths that keep the order.
    pub reordering_tolerance: u32,
    /// Least time after which unanswered Interests count as lost, where the controller has no timer.
    pub least_timeout: Duration,
    /// Numbers asked for, or lost, and not forgotten yet, at most; a net below the controller.
    pub max_in_flight: usize,
    /// Time's worth of the allowed rate that may leave at once. Zero paces to the nanosecond; machines want some
    /// milliseconds.
    pub burst: Duration,
    /// Content that one packet is taken to bring before one has come.
    pub expected_size: ByteSize,
    /// Seed of the Nonces.
    pub seed: u64,
    /// Length of the intervals that [`samples`](super::Fetcher::samples) tells of; `None`: no samples.
    pub sample_interval: Option<Duration>,
    /// Samples kept, at most; none after that.
    pub most_samples: usize,
    /// Arrivals kept until they are polled, at most, of which the oldest go first; zero: they are not wanted.
    pub most_fetched: usize,
}

impl Default for FetcherConfig {
    /// Everything under `/`, as fast as possible: set [`prefix`](Self::prefix) and [`control`](Self::control).
    fn default() -> Self {
        Self {
            prefix: Name::root(),
            first: 0,
            count: None,
            control: RateControl::Unlimited,
            lifetime: Duration::from_secs(2),
            retransmit: false,
            reordering_tolerance: 0,
            least_timeout: Duration::from_millis(100),
            max_in_flight: 1 << 17,
            burst: Duration::ZERO,
            expected_size: ByteSize::bytes(1_024),
            seed: 0,
            sample_interval: Some(Duration::from_millis(10)),
            most_samples: 200_000,
            most_fetched: 0,
        }
    }
}
