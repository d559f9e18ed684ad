//! When chunks are old enough to be deleted, whatever the clocks of hosts and publishers show.
//!
//! A chunk that came while the archive runs is as old as the monotonic time since then: no wall clock has a say. For chunks
//! that were found at opening, the wall clock is asked one thing, how long the archive did not run, and is accepted only
//! after it has agreed with the monotonic one for [`RetentionConfig::settle`], and if it is not before what they say.
//! Until then they are as old as their own writer went on for, and as this archive runs.

use std::collections::BTreeMap;

use core::time::Duration;

use namecast_units::{Instant, Timestamp};
use smart_default::SmartDefault;

use crate::chunk::ChunkId;

/// The time by both of a host's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The monotonic clock, which never jumps.
    pub monotonic: Instant,
    /// The wall clock, which may be wrong, and jumps when it is put right.
    pub wall: Timestamp,
}

/// How long chunks are kept, and how careful deletion is.
#[derive(Clone, Debug, SmartDefault)]
pub struct RetentionConfig {
    /// Age at which chunks are deleted; `None`: never.
    pub keep: Option<Duration>,
    /// Time for which a wall clock must agree with the monotonic one before it is accepted: longer than time servers take to
    /// put a clock right after a machine has started.
    #[default(Duration::from_mins(10))]
    pub settle: Duration,
    /// How far a clock that agrees may drift meanwhile: clocks are slewed by 0.5 ms a second at most, 0.3 s in ten minutes.
    #[default(Duration::from_secs(1))]
    pub max_drift: Duration,
    /// Chunks deleted by age in a minute: twenty times what one archive of the default configuration writes, so that it
    /// never falls behind, and slow enough for a mistake to be noticed.
    #[default(120)]
    pub max_deleted_per_minute: usize,
}

/// Microseconds from the monotonic clock's zero to 1970, as the wall clock has it.
type Offset = i128;

fn offset(now: Moment) -> Offset {
    i128::from(now.wall.as_micros()) - i128::from(now.monotonic.as_nanos() / 1_000)
}

/// Decides which chunks are too old. It knows no clock: the time is an argument.
#[derive(Debug)]
pub(crate) struct Retention {
    config: RetentionConfig,
    opened_at: Instant,
    /// The last stamp of each writer among the chunks found at opening.
    last_stamps: BTreeMap<u32, Timestamp>,
    /// The offset that the wall clock has now, and since when.
    candidate: (Offset, Instant),
    /// The offset by which chunks found at opening are judged.
    accepted: Option<Offset>,
    /// The offset by which new chunks are named.
    naming: Offset,
    /// When the current minute began, and chunks deleted in it.
    minute: (Instant, usize),
}

impl Retention {
    /// Retention of an archive that is opened `now`.
    pub(crate) fn new(now: Moment, config: RetentionConfig) -> Self {
        Self {
            config,
            opened_at: now.monotonic,
            last_stamps: BTreeMap::new(),
            candidate: (offset(now), now.monotonic),
            accepted: None,
            naming: offset(now),
            minute: (now.monotonic, 0),
        }
    }

    /// Records a chunk that was there at opening.
    pub(crate) fn on_found(&mut self, id: ChunkId) {
        let last = self.last_stamps.entry(id.writer).or_default();
        *last = id.begun_at.max(*last);
    }

    /// Reads the clocks. Early and repeated calls are harmless.
    pub(crate) fn handle_time(&mut self, now: Moment) {
        let shown = offset(now);
        let drift = Duration::from_micros(
            u64::try_from(shown.abs_diff(self.candidate.0)).unwrap_or(u64::MAX),
        );
        if drift > self.config.max_drift {
            self.candidate = (shown, now.monotonic);
        }
        if now.monotonic.since(self.candidate.1) < self.config.settle {
            return;
        }
        self.naming = self.candidate.0;
        let newest = self.last_stamps.values().max().copied();
        // A time before what was kept is wrong, or those stamps are.
        if newest.is_none_or(|newest| now.wall >= newest) {
            self.accepted.get_or_insert(self.candidate.0);
        }
    }

    /// Returns the name of a chunk that is begun `now`: names grow, so it is after `newest`, the last one known.
    pub(crate) fn stamp(&self, now: Instant, newest: Option<Timestamp>) -> Timestamp {
        let micros = self.naming + i128::from(now.as_nanos() / 1_000);
        let micros = u64::try_from(micros.max(0)).unwrap_or(u64::MAX);
        let after = newest.map_or(0, |newest| newest.as_micros().saturating_add(1));
        Timestamp::from_micros(micros.max(after))
    }

    /// Returns how old a chunk is at least. `received_at` is when it came, if it came while this archive runs.
    pub(crate) fn age(&self, now: Instant, id: ChunkId, received_at: Option<Instant>) -> Duration {
        if let Some(received_at) = received_at {
            return now.since(received_at);
        }
        let last = self.last_stamps.get(&id.writer).copied();
        let written = last.map_or(Duration::ZERO, |last| last.since(id.begun_at));
        let least = written + now.since(self.opened_at);
        let Some(accepted) = self.accepted else {
            return least;
        };
        let wall = accepted + i128::from(now.as_nanos() / 1_000);
        let micros = wall - i128::from(id.begun_at.as_micros());
        least.max(Duration::from_micros(
            u64::try_from(micros.max(0)).unwrap_or(u64::MAX),
        ))
    }

    /// Returns whether a chunk of this age is to be deleted; `chunk_age` is how long it may have been written to.
    pub(crate) fn is_expired(&self, age: Duration, chunk_age: Duration) -> bool {
        self.config.keep.is_some_and(|keep| age > keep + chunk_age)
    }

    /// Chunks that may be deleted by age now.
    pub(crate) fn allowance(&mut self, now: Instant) -> usize {
        if now.since(self.minute.0) >= Duration::from_mins(1) {
            self.minute = (now, 0);
        }
        self.config
            .max_deleted_per_minute
            .saturating_sub(self.minute.1)
    }

    /// Records that a chunk was deleted by age.
    pub(crate) fn on_deleted(&mut self) {
        self.minute.1 += 1;
    }
}

#[cfg(test)]
mod tests;
