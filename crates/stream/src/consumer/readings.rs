//! What others read of a consumer.

use core::time::Duration;

use namecast_units::Instant;

use crate::path::{Client, PathView};

use super::pipeline::demand;
use super::{Consumer, Counters, Sizes, Source, Synchroniser};

impl Consumer {
    /// Returns the playback position of the sample delivered last.
    pub fn position(&self) -> Option<u64> {
        self.playback.order().last().map(|last| last.position)
    }

    /// Returns what the stream's own packets say of the path's delay.
    pub fn base(&self, now: Instant) -> Option<i64> {
        self.timeline.base(now)
    }

    /// Returns when a verified lead arrived last, or the consumer was started.
    pub const fn last_arrival(&self) -> Option<Instant> {
        self.pipeline.last_arrival()
    }

    /// Returns what it sees of the path.
    pub const fn path(&self) -> &PathView {
        &self.path
    }

    /// Returns by which the requester knows it.
    pub const fn client(&self) -> Client {
        self.client
    }

    /// Returns what it counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the rung it pulls.
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the samples known to be published since the start.
    pub fn published(&self) -> u64 {
        self.pipeline.published()
    }

    /// λ: samples that may be in flight, by the gaps between arrivals; else those that need to be, ⌈(DRD + margin)/T⌉.
    pub fn interest_lead(&self, now: Instant) -> u64 {
        let period = self.source.rate.period();
        let needed = || demand(self.ahead_by(now), Duration::ZERO, period);
        self.synchroniser.lead().unwrap_or_else(needed)
    }

    /// Its synchroniser: the state, and what was observed until then.
    pub const fn synchroniser(&self) -> &Synchroniser {
        &self.synchroniser
    }

    /// Playing time of complete samples, from the one due `now` to the last.
    pub fn buffered_time(&self, now: Instant) -> Duration {
        let last = self
            .assembler
            .samples()
            .values()
            .filter(|sample| sample.complete.is_some())
            .filter_map(|sample| Some(sample.lead()?.header().published_at()))
            .max();
        last.map_or(Duration::ZERO, |published_at| {
            self.timeline.render_at(now, published_at).since(now)
        })
    }

    /// Returns the sizes of its tables.
    pub fn sizes(&self) -> Sizes {
        self.assembler.sizes()
    }
}
