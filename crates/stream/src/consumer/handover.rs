//! What is left to another rung of the stream, or left over by it, while two are pulled.
//!
//! ```text
//!   this rung   ───────────────▶│ ask_before
//!   another one                 │──────▶        all rungs have the same positions
//!   one on trial  ·  ·  ·  ·  ·  ·  ·  ·        within an allowance: samples for which there is no rate are passed over
//! ```
//!
//! Within an allowance samples are requested when they exist, not before: Interests that wait at the producer bring a whole sample at
//! once, however slowly they left. Those for which there is no rate left are passed over whole, so that what is requested is always the
//! newest there is.

use namecast_units::{Bitrate, ByteSize, Instant};

use crate::names::SampleClass;
use crate::sample::SampleHeader;

use super::order::SampleKey;

/// What may be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Rate of Data.
    pub rate: Bitrate,
    /// What one Interest is taken to bring; a full segment if that is not known.
    pub packet_size: Option<ByteSize>,
}

/// A key sample, and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStart {
    /// Number of the key sample.
    pub key_sequence: u64,
    /// Its position.
    pub position: u64,
    /// Number of the delta sample that follows it.
    pub next_delta: u64,
}

/// What one rung leaves to others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Handover {
    /// Samples from this position on are requested by another rung's consumer.
    ask_before: Option<u64>,
    /// What may be requested beside another rung.
    allowance: Option<Allowance>,
    /// The newest group of which the key sample's lead came.
    newest_group: Option<GroupStart>,
    /// Until then no cache may answer: they may hold Data of an earlier publisher under names that come again.
    fresh_until: Option<Instant>,
}

impl Handover {
    /// Forgets the groups of another numbering.
    pub(super) const fn restart(&mut self) {
        self.newest_group = None;
    }

    /// Leaves samples from `position` on to another rung; `None`: none.
    pub(super) const fn set_ask_before(&mut self, position: Option<u64>) {
        self.ask_before = position;
    }

    /// Returns whether another rung's consumer requests the sample at `position`.
    pub(super) fn is_left_to_another(&self, position: Option<u64>) -> bool {
        let before_and_at = self.ask_before.zip(position);
        before_and_at.is_some_and(|(before, position)| position >= before)
    }

    /// Returns what may be requested; `None`: what the controller allows.
    pub(super) const fn allowance(&self) -> Option<Allowance> {
        self.allowance
    }

    /// Sets what may be requested. Returns whether that is news.
    pub(super) fn set_allowance(&mut self, allowance: Option<Allowance>) -> bool {
        let before = core::mem::replace(&mut self.allowance, allowance);
        before != allowance
    }

    /// Sets until when no cache may answer: they may hold Data of an earlier publisher under names that come again.
    pub const fn set_fresh_until(&mut self, until: Option<Instant>) {
        self.fresh_until = until;
    }

    /// Returns whether caches may not answer.
    pub(super) fn needs_fresh(&self, now: Instant) -> bool {
        self.fresh_until.is_some_and(|until| now < until)
    }

    /// Records what the lead of `key` says of its group.
    pub(super) fn on_lead(&mut self, (class, sequence): SampleKey, header: &SampleHeader) {
        let is_newer = |group: GroupStart| group.position < header.position;
        if class == SampleClass::Key && self.newest_group.is_none_or(is_newer) {
            self.newest_group = Some(GroupStart {
                key_sequence: sequence,
                position: header.position,
                next_delta: header.other_sequence,
            });
        }
    }

    /// Returns the newest group that has begun.
    pub const fn newest_group(&self) -> Option<GroupStart> {
        self.newest_group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_from_the_change_on_are_left_to_the_other_rung() {
        let mut handover = Handover::default();
        assert!(!handover.is_left_to_another(Some(60)));
        handover.set_ask_before(Some(60));
        let is_left = [Some(59), Some(60), None].map(|at| handover.is_left_to_another(at));
        assert_eq!(is_left, [false, true, false]);
        handover.restart();
        assert!(handover.is_left_to_another(Some(60)), "until it is ended");
    }

    #[test]
    fn an_allowance_is_news_once() {
        let mut handover = Handover::default();
        let allowance = Some(Allowance {
            rate: Bitrate::kbps(100),
            packet_size: None,
        });
        assert!(!handover.set_allowance(None));
        assert!(handover.set_allowance(allowance));
        assert!(!handover.set_allowance(allowance));
    }
}
