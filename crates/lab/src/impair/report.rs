//! What a relay tells about itself.

use hdrhistogram::Histogram;
use namecast_netem::Counters;
use namecast_units::Duration;
use serde::Serialize;

use super::DISTURBED_ABOVE;

/// What happened so far.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Since the start.
    pub seconds: f64,
    /// Whether the thread has real-time priority; if not, other programs delay it.
    pub realtime: bool,
    /// Clients known now.
    pub clients: usize,
    /// Datagrams from clients beyond the bound, which were not taken.
    pub refused: u64,
    /// More than one frame in a hundred was more than 1 ms later than its link wanted.
    pub disturbed: bool,
    /// How much later than their link wanted frames left, in both directions: from the kernel's receive time of a datagram on.
    pub error_ms: Quantiles,
    /// The same for frames since the report before this.
    pub recent_error_ms: Quantiles,
    /// From clients to the server.
    pub forward: Flow,
    /// From the server to clients.
    pub backward: Flow,
}

/// One direction.
#[derive(Clone, Debug, Serialize)]
pub struct Flow {
    /// Datagrams that came.
    pub received: u64,
    /// Octets of these.
    pub received_bytes: u64,
    /// Datagrams sent on, copies included.
    pub delivered: u64,
    /// Octets of these.
    pub delivered_bytes: u64,
    /// Datagrams that did not pass the link.
    pub dropped: Drops,
    /// Datagrams that passed it, but that the system did not take, or whose client was forgotten.
    pub send_failed: u64,
    /// Datagrams with a congestion mark.
    pub marked: u64,
    /// Datagrams to be marked that are no NDN link packets, and were sent on as they were.
    pub unmarkable: u64,
    /// Datagrams that were sent twice.
    pub duplicated: u64,
    /// Datagrams with one bit flipped.
    pub corrupted: u64,
    /// Mean time that datagrams waited in the queue.
    pub queue_ms_mean: f64,
    /// Datagrams that wait in the queue now.
    pub queue_packets: usize,
    /// How much later than the link wanted frames left.
    pub error_ms: Quantiles,
}

/// Datagrams that did not pass a link, by reason.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Drops {
    /// The queue was full.
    pub queue_full: u64,
    /// The queue discipline chose it.
    pub active_queue: u64,
    /// Random loss.
    pub loss: u64,
    /// An outage.
    pub down: u64,
    /// Too many were in flight.
    pub in_flight_full: u64,
}

impl From<&Counters> for Drops {
    fn from(counters: &Counters) -> Self {
        Self {
            queue_full: counters.queue_full,
            active_queue: counters.active_queue,
            loss: counters.lost,
            down: counters.down,
            in_flight_full: counters.in_flight_full,
        }
    }
}

impl Drops {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.queue_full + self.active_queue + self.loss + self.down + self.in_flight_full
    }
}

/// Some quantiles, in milliseconds; zero if there is nothing.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    /// Half are at most so large.
    pub p50: f64,
    /// 99 of 100 are at most so large.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

impl Quantiles {
    /// Whether more than one frame in a hundred was too late.
    pub fn is_disturbed(&self) -> bool {
        self.p99 > DISTURBED_ABOVE.as_secs_f64() * 1e3
    }
}

/// Delay errors as they occur, within one percent.
#[derive(Clone, Debug)]
pub(crate) struct Errors(Histogram<u64>);

/// Smallest and largest error that is told from others, in nanoseconds.
const RANGE: (u64, u64) = (1_000, 60_000_000_000);

impl Errors {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(RANGE.0, RANGE.1, 2);
        Self(histogram.expect("the bounds are as the library wants them"))
    }

    pub(crate) fn record(&mut self, error: Duration) {
        let nanos = u64::try_from(error.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanos);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        // The histogram's smallest value stands for all below a microsecond.
        if self.0.is_empty() {
            return Quantiles::default();
        }
        let millis = |nanos: u64| nanos as f64 / 1e6;
        Quantiles {
            p50: millis(self.0.value_at_quantile(0.5)),
            p99: millis(self.0.value_at_quantile(0.99)),
            max: millis(self.0.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 98 errors of 0.1 ms, one of 0.9 and one of 5 ms: 99 of 100 are at most 0.9 ms, within the histogram's percent.
    #[test]
    fn one_late_frame_in_a_hundred_is_no_disturbance() {
        let mut errors = Errors::new();
        (0..98).for_each(|_| errors.record(Duration::from_micros(100)));
        errors.record(Duration::from_micros(900));
        errors.record(Duration::from_millis(5));
        let quantiles = errors.quantiles();
        assert!((0.099..0.102).contains(&quantiles.p50), "{quantiles:?}");
        assert!((0.89..0.92).contains(&quantiles.p99), "{quantiles:?}");
        assert!((4.95..5.06).contains(&quantiles.max), "{quantiles:?}");
        assert!(!quantiles.is_disturbed());
        errors.record(Duration::from_millis(5));
        assert!(errors.quantiles().is_disturbed());
        errors.clear();
        assert!(errors.quantiles().max <= 0.0, "{errors:?}");
    }
}
