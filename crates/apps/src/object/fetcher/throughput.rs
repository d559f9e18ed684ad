//! What the Data of an object shows of the path that objects take.

use namecast_stream::path::{Feedback, Source};
use namecast_units::{Bitrate, ByteSize, Duration, Instant};

use super::config::Flow;

/// Of an object that is smaller, round trips are most of the time that it takes.
const MIN_MEASURED: ByteSize = ByteSize::bytes(65_536);

/// What is known of the path behind caches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beyond {
    /// What others leave of it, as objects showed that no cache had.
    measured: Option<Bitrate>,
    /// All of it, as the last cache told.
    offered: Option<Bitrate>,
}

impl Beyond {
    /// Returns it with what was learned `later`.
    pub(super) fn and(self, later: Self) -> Self {
        Self {
            measured: later.measured.or(self.measured),
            offered: later.offered.or(self.offered),
        }
    }

    /// Returns the rate to count on. Somebody has fetched what a cache gives, and may go on: until objects show what that leaves, it is half of
    /// the path.
    fn rate(self) -> Option<Bitrate> {
        match (self.measured, self.offered) {
            (Some(measured), Some(offered)) => Some(measured.min(offered)),
            (None, Some(offered)) => Some(Bitrate::bps(offered.as_bps() / 2)),
            (measured, None) => measured,
        }
    }
}

/// How fast an object came, and how fast it would have come without caches.
#[derive(Debug, Default)]
pub(super) struct Throughput {
    requested_at: Option<Instant>,
    came_at: Option<Instant>,
    octets: ByteSize,
    /// Octets of those that caches answered.
    cached: ByteSize,
    beyond: Beyond,
}

impl Throughput {
    /// That of an object for which nothing was requested yet.
    pub(super) fn new(beyond: Beyond) -> Self {
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
        self.beyond.offered = feedback.offered.or(self.beyond.offered);
    }

    /// Returns what the object's Data shows, the last of which has come now. `round_trip` is that of the path.
    pub(super) fn flow(&mut self, now: Instant, round_trip: Duration) -> Flow {
        let came_at = self.came_at.unwrap_or(now);
        let waited = came_at.since(self.requested_at.unwrap_or(came_at));
        let round_trip = round_trip.min(waited);
        let flowed = round_trip + now.since(came_at);
        let is_cached = self.cached + self.cached > self.octets;
        if !is_cached && self.octets >= MIN_MEASURED {
            self.beyond.measured = Some(self.octets / flowed);
        }
        let behind = self.beyond.rate().map_or(Duration::ZERO, |rate| {
            let share = self.cached.as_bytes() as f64 / self.octets.as_bytes().max(1) as f64;
            flowed.mul_f64(1.0 - share) + self.cached / rate
        });
        Flow {
            waited: waited - round_trip,
            flowed: flowed.max(behind),
        }
    }

    /// Returns what is known of the path behind caches, as this object and those before it showed it.
    pub(super) const fn beyond(&self) -> Beyond {
        self.beyond
    }
}
