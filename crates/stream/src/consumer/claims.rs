//! What a lead says of its sample's size is only as good as the segments that come: a lead may be signed and still lie.
//!
//! ```text
//!   lead: 480 segments ──▶ asked for: all, or a few where claims failed lately ──▶ the first that comes: all others
//! ```

use super::Consumer;
use super::order::SampleKey;
use super::segments::SegmentCounts;

/// Segments that a round asks for of a sample that is larger than expected, while none of them has come.
pub(super) const FEW: usize = 8;

impl Consumer {
    /// Asks for the segments of a sample that its lead tells of. Tells whether any were missing.
    ///
    /// All at once where the claim is as usual, or nothing speaks against it: a frame that is large indeed would come a
    /// round trip later. While another such claim stands unproven, only a few.
    pub(super) fn ask_claimed(&mut self, key: SampleKey) -> bool {
        let is_doubtful = self.samples.get(&key).is_some_and(|s| s.is_doubtful);
        let is_suspect = self.doubts.is_some_and(|other| other != key);
        if is_doubtful {
            self.doubts.get_or_insert(key);
        }
        match is_doubtful && is_suspect {
            true => self.ask_some(key, FEW),
            false => self.ask_missing(key),
        }
    }

    /// A segment came that the lead of `key` vouches for: it has as many as it says.
    pub(super) fn believe(&mut self, key: SampleKey) {
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        if !core::mem::take(&mut sample.is_doubtful) {
            return;
        }
        let counts = sample.lead().map(SegmentCounts::of);
        if let Some(counts) = counts {
            self.segments.observe(key.0, counts);
        }
        self.doubts = None;
        self.ask_missing(key);
    }
}
