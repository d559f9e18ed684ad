//! Metadata Interests whose answers are expected.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::Nonce;
use namecast_units::Instant;

/// Probes whose answers are still expected.
const MAX_PROBES: usize = 8;
/// Shortest time from one probe to the next, whatever calls for them. Doubles with each that is not answered.
pub(crate) const PROBE_SPACING: Duration = Duration::from_millis(100);
/// Nonces of the last probes, and when they left.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentProbes(VecDeque<(Nonce, Instant)>);

impl SentProbes {
    pub(crate) fn push(&mut self, now: Instant, nonce: Nonce) {
        if self.0.len() == MAX_PROBES {
            self.0.pop_front();
        }
        self.0.push_back((nonce, now));
    }

    /// When the probe left that had `nonce`.
    pub(crate) fn sent_at(&self, nonce: Nonce) -> Option<Instant> {
        let mut sent = self.0.iter();
        Some(sent.find(|(own, _)| *own == nonce)?.1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
