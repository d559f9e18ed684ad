//! Metadata probes: which are out, and when the next one leaves.

use core::time::Duration;

use namecast_packet::Nonce;
use namecast_units::{Instant, Timestamp};

use crate::discovery::{PROBE_SPACING, SentProbes};

/// Probes without an answer until those of a starved watcher become rarer by half.
const PATIENCE: u32 = 8;

/// Probes of a watcher.
#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    pub sent: SentProbes,
    /// When the last one left, answered or not.
    pub sent_at: Option<Instant>,
    /// Since the last answer.
    unanswered: u32,
    pub next_at: Option<Instant>,
    /// When the newest answer was served, by the publisher's clock.
    pub served_at: Timestamp,
}

impl Probes {
    /// `interval`, or longer where nobody answers; at most `most`.
    pub(super) fn backed_off(&self, interval: Duration, most: Duration) -> Duration {
        let doublings = (self.unanswered / PATIENCE).min(8);
        (interval * (1 << doublings)).min(most.max(interval))
    }

    /// The earliest time for another probe, which waits for nothing but its turn: after `most`, if not sooner.
    pub(super) fn earliest(&self, most: Duration) -> Option<Instant> {
        let spacing = PROBE_SPACING * (1 << self.unanswered.saturating_sub(1).min(8));
        self.sent_at
            .map(|sent| sent + spacing.min(most.max(PROBE_SPACING)))
    }

    pub(super) fn on_sent(&mut self, now: Instant, nonce: Nonce) {
        self.sent.push(now, nonce);
        self.sent_at = Some(now);
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// An answer came: no other is expected.
    pub(super) fn on_answer(&mut self) {
        self.sent.clear();
        self.unanswered = 0;
    }

    /// Expects answers again.
    pub(super) fn on_link_change(&mut self) {
        self.unanswered = 0;
    }
}
