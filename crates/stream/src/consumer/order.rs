//! In which order samples are delivered, and when a missing one is passed over.
//!
//! ```text
//!   key 7 ──▶ delta 41 ──▶ delta 42 ──▶ key 8 ──▶ delta 43 …
//! ```
//!
//! A key sample names the delta sample that follows it, a delta sample the key sample it depends on; from both it shows
//! which of the two sequences goes on.

use std::collections::BTreeMap;

use core::ops::Bound;

use namecast_units::Timestamp;

use crate::names::SampleClass;
use crate::sample::SampleHeader;

use super::assembler::Assembly;

/// Class and sequence number of a sample.
pub(super) type SampleKey = (SampleClass, u64);
/// Samples requested and not yet delivered.
pub(super) type Samples = BTreeMap<SampleKey, Assembly>;

/// The sample delivered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Last {
    /// Key sample of its group.
    pub key: u64,
    /// Delta sample that would continue the group.
    pub next_delta: u64,
    /// Playback position.
    pub position: u64,
    /// When it was published.
    pub published_at: Timestamp,
}

/// Where playback is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// All samples are key samples.
    standalone: bool,
    /// Only this key sample or a later one can come next; deltas of earlier ones are of no use.
    first_key: u64,
    /// The next sample must be this key sample.
    needs_key: bool,
    last: Option<Last>,
}

/// The next sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is complete.
    Ready(SampleKey),
    /// It is known which one it is, but it is not complete.
    Incomplete(SampleKey),
    /// Which of the two sequences goes on is not known.
    Unknown,
}

impl Order {
    /// Playback that starts with key sample `first_key`.
    pub(super) const fn new(standalone: bool, first_key: u64) -> Self {
        Self {
            standalone,
            first_key,
            needs_key: true,
            last: None,
        }
    }

    /// Returns the sample delivered last.
    pub(super) const fn last(&self) -> Option<Last> {
        self.last
    }

    /// Returns the earliest key sample that is still of use.
    pub(super) const fn first_key(&self) -> u64 {
        self.first_key
    }

    /// Returns whether playback waits for a key sample to go on with.
    pub(super) const fn needs_key(&self) -> bool {
        self.needs_key
    }

    /// Returns whether a delta sample that depends on `key` is of no use.
    pub(super) const fn is_useless(&self, key: u64) -> bool {
        key < self.first_key
    }

    /// Returns which sample is next.
    pub(super) fn next(&self, samples: &Samples) -> Next {
        let Some(last) = self.last.filter(|_| !self.needs_key) else {
            return state(samples, (SampleClass::Key, self.first_key));
        };
        let lead_of = |key: SampleKey| samples.get(&key).and_then(Assembly::lead);
        let delta = (SampleClass::Delta, last.next_delta);
        if !self.standalone
            && lead_of(delta).is_some_and(|lead| lead.header().other_sequence == last.key)
        {
            return state(samples, delta);
        }
        let key = (SampleClass::Key, last.key.saturating_add(1));
        let follows = |header: &SampleHeader| header.other_sequence <= last.next_delta;
        match lead_of(key) {
            Some(lead) if self.standalone || follows(lead.header()) => state(samples, key),
            // A delta of the next group is here: this one is over.
            _ if self.standalone
                || lead_of(delta).is_some_and(|lead| lead.header().other_sequence > last.key) =>
            {
                Next::Incomplete(key)
            }
            _ => Next::Unknown,
        }
    }

    /// Records that the sample `key` with `header` was delivered.
    pub(super) fn advance(&mut self, key: SampleKey, header: &SampleHeader) {
        let (group, next_delta) = match key {
            (SampleClass::Key, sequence) => (sequence, header.other_sequence),
            (SampleClass::Delta, sequence) => (self.first_key, sequence.saturating_add(1)),
        };
        self.first_key = group;
        self.needs_key = false;
        self.last = Some(Last {
            key: group,
            next_delta,
            position: header.position,
            published_at: header.published_at(),
        });
    }

    /// Makes key sample `first_key`, or the next one after it, the next to be delivered.
    pub(super) const fn skip_to(&mut self, first_key: u64) {
        self.first_key = first_key;
        self.needs_key = true;
    }

    /// Complete key samples that playback could skip to, earliest first.
    pub(super) fn candidates<'a>(
        &self,
        samples: &'a Samples,
    ) -> impl DoubleEndedIterator<Item = &'a Assembly> {
        let awaited = match (self.needs_key, self.last) {
            (false, Some(last)) => last.key,
            _ => self.first_key,
        };
        let from = Bound::Excluded((SampleClass::Key, awaited));
        let to = Bound::Included((SampleClass::Key, u64::MAX));
        samples
            .range((from, to))
            .map(|(_, sample)| sample)
            .filter(|sample| sample.complete.is_some())
    }
}

fn state(samples: &Samples, key: SampleKey) -> Next {
    let complete = samples
        .get(&key)
        .is_some_and(|sample| sample.complete.is_some());
    if complete {
        Next::Ready(key)
    } else {
        Next::Incomplete(key)
    }
}
