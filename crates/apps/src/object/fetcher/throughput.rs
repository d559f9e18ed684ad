//! What the Data of an object shows of the path that objects take.

use namecast_stream::path::{Feedback, Source};
use namecast_units::{Bitrate, ByteSize, Duration, Instant};

use super::config::Flow;

/// Of an object that is smaller, round trips are most of the time that it takes.
const MIN_MEASURED: ByteSize = ByteSize::bytes(65_536);

/// How fast an object came, and how fast it would have come without caches.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    requested_at: Option<Instant>,
    came_at: Option<Instant>,
    octets: ByteSize,
    /// Octets of those that caches answered.
    cached: ByteSize,
    /// Rate that the last cache said of the path behind it.
    offered: Option<Bitrate>,
    /// Rate of that path as objects before this showed it.
    beyond: Option<Bitrate>,
}

impl Throughput {
    /// That of an object for which nothing was requested yet.
    pub(super) fn new(beyond: Option<Bitrate>) -> Self {
        Self {
            beyond,
            ..Self::default()
        }
    }

    /// Records that the object was requested; the first time counts.
    pub(super) fn on_request(&mut self, now: Instant) {
        self.requested_at.get_or_insert(now);
    }

    /// Records Data of the object.
    pub(super) fn on_data(&mut self, now: Instant, size: ByteSize, feedback: &Feedback) {
        self.came_at.get_or_insert(now);
        self.octets += size;
        if feedback.source == Some(Source::Cache) {
            self.cached += size;
        }
        self.offered = feedback.offered.or(self.offered);
    }

    /// Returns what the object's Data shows, the last of which has come now. `round_trip` is that of the path.
    pub(super) fn flow(&mut self, now: Instant, round_trip: Duration) -> Flow {
        let came_at = self.came_at.unwrap_or(now);
        let waited = came_at.since(self.requested_at.unwrap_or(came_at));
        let round_trip = round_trip.min(waited);
        let flowed = round_trip + now.since(came_at);
        let is_cached = self.cached + self.cached > self.octets;
        if self.offered.is_some() {
            self.beyond = self.offered;
        } else if !is_cached && self.octets >= MIN_MEASURED {
            self.beyond = Some(self.octets / flowed);
        }
        let beyond = self.beyond.map(|rate| self.octets / rate);
        let beyond = beyond.filter(|_| self.offered.is_some() || is_cached);
        Flow {
            waited: waited - round_trip,
            flowed: flowed.max(beyond.unwrap_or_default()),
        }
    }

    /// Returns the rate of the path behind caches, as far as this object and those before it showed it.
    pub(super) const fn beyond(&self) -> Option<Bitrate> {
        self.beyond
    }
}
