//! Holds a consumer to a rate that somebody else decides: what is left beside another rung that is shown.
//!
//! Samples are asked for when they exist, not before: Interests that wait at the producer bring a whole sample at once, however
//! slowly they left. Those for which there is no rate left are passed over whole, so that what is asked for is always the
//! newest there is.

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

use crate::names::SampleClass;
use crate::path::Limit;

use super::assembly::Asked;
use super::order::SampleKey;
use super::{Consumer, Output};

/// What may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Rate of Data.
    pub rate: Bitrate,
    /// What one Interest is taken to bring; a full segment if that is not known.
    pub packet_size: Option<ByteSize>,
}

impl Consumer {
    /// Asks no faster than allowed; `None`: than the controller allows.
    pub fn set_allowance(&mut self, now: Instant, allowance: Option<Allowance>) {
        if self.allowance != allowance {
            self.allowance = allowance;
            let segment = ByteSize::bytes(u64::from(self.source.segment_size));
            let limit = allowance.map(|allowance| Limit {
                rate: allowance.rate,
                packet_size: allowance.packet_size.unwrap_or(segment),
            });
            self.outputs.push_back(Output::Limit(limit));
            self.settle(now);
        }
    }

    /// Passes over the next delta sample if the allowance has not sufficed for those before it: Interests of more than a
    /// sample period still wait. Key samples never are passed over.
    pub(super) fn passes_over(&mut self, class: SampleClass, sequence: u64) -> bool {
        let Some(allowance) = self.allowance.filter(|_| class == SampleClass::Delta) else {
            return false;
        };
        let in_a_period = (allowance.rate * self.source.rate.period()).as_bytes();
        let waiting = self.waiting as u64;
        let waiting = waiting * u64::from(self.source.segment_size);
        let newest = self.pipeline.newest(class).unwrap_or(sequence);
        // Of a stream that stands still, no more than a jump is passed over.
        let is_near = sequence.saturating_sub(newest) <= self.config.most_jump;
        let is_behind = waiting > in_a_period && is_near;
        if is_behind {
            // Nothing of it will come, and others must not wait for that.
            self.pipeline.assume(class, sequence);
        }
        is_behind
    }

    /// Time that Data took which existed when it was asked for, as all does that an allowance is for. Those that are asked for
    /// ahead come one behind the other, so that only a lead's time tells of queues.
    pub(super) fn plain_round_trip(
        &self,
        now: Instant,
        key: SampleKey,
        asked: &Asked,
    ) -> Option<Duration> {
        self.allowance?;
        let soonest = self.timeline.earliest(now, self.published_at(key)?);
        (asked.attempts == 1 && soonest <= asked.last_at).then(|| now.since(asked.last_at))
    }

    /// Forgets all samples up to `position`: another rung has shown them.
    pub fn forget_up_to(&mut self, position: u64) {
        let is_past = |key: &SampleKey| {
            let at = self.timeline.position(*key);
            at.is_some_and(|at| at <= position)
        };
        let keys = self.samples.keys().copied();
        let past: Vec<SampleKey> = keys.filter(is_past).collect();
        for key in past {
            self.remove(key);
        }
    }
}
