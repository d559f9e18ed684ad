//! Whether the neighbour on a link speaks extension fields.
//!
//! ```text
//!   packet that fields should go with ── + SUPPORT 1 ──▶   neighbour
//!                                     ◀── SUPPORT 2 ──  in a frame of its own
//!   packets with their fields ──────────────────────▶
//! ```
//!
//! The question rides on a packet that has fields to carry, so that a node without any sends nothing; whoever does not know
//! it skips it. It is the asker's word, too: who asks speaks. While there are fields to carry it is repeated, with growing
//! pauses until there is an answer, and now and then after that, since the neighbour may have been started anew.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use namecast_packet::{Extensions, LpPacket};
use namecast_units::Instant;

/// Values of [`Extensions::SUPPORT`].
pub(crate) const QUESTION: u64 = 1;
pub(super) const ANSWER: u64 = 2;
/// Pause after the first question; each is twice as long as the one before, up to the longest, which is 64 s.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_DOUBLINGS: u32 = 6;
/// Pause after an answer: for so long a neighbour that was started anew does not know this node, and takes no fields.
const REFRESH: Duration = Duration::from_secs(10);
/// Questions in a row without an answer after which the neighbour does not speak the fields, or not any more.
const MAX_UNANSWERED: u32 = 3;
/// Pause between two answers, shorter than that between two questions of a node such as this.
pub(super) const ANSWER_PAUSE: Duration = Duration::from_millis(500);

/// What is known of a neighbour, which the link finds out and forwarders read, whichever thread they are on.
#[derive(Debug, Default)]
pub(crate) struct Neighbour {
    speaks: AtomicBool,
    unanswered: AtomicU32,
    /// When to ask next, in nanoseconds.
    ask_at: AtomicU64,
    /// Whether it takes bundles.
    takes_bundles: AtomicBool,
    /// Whether it is to hear that this node takes bundles.
    offers_bundles: AtomicBool,
}

impl Neighbour {
    /// Returns whether it speaks extension fields; `None` as long as that is unknown.
    pub(crate) fn speaks(&self) -> Option<bool> {
        match (self.speaks.load(Relaxed), self.unanswered.load(Relaxed)) {
            (true, _) => Some(true),
            (false, ..MAX_UNANSWERED) => None,
            (false, _) => Some(false),
        }
    }

    /// Returns whether the packet that leaves now is to ask.
    pub(crate) fn ask(&self, now: Instant) -> bool {
        let at = self.ask_at.load(Relaxed);
        if now.as_nanos() < at {
            return false;
        }
        let unanswered = self.unanswered.load(Relaxed);
        let pause = FIRST_PAUSE * (1 << unanswered.min(MAX_DOUBLINGS));
        let next = (now + pause).as_nanos();
        let is_first = (self.ask_at).compare_exchange(at, next, Relaxed, Relaxed);
        if is_first.is_err() {
            // Another thread asks.
            return false;
        }
        if unanswered >= MAX_UNANSWERED {
            self.speaks.store(false, Relaxed);
        }
        (self.unanswered).store(unanswered.saturating_add(1), Relaxed);
        true
    }

    /// Returns whether it speaks extension fields and takes bundles.
    pub(crate) fn takes_bundles(&self) -> bool {
        self.takes_bundles.load(Relaxed) && self.speaks.load(Relaxed)
    }

    /// Has it hear that this node takes bundles, with each question and answer.
    pub(crate) fn offer_bundles(&self) {
        self.offers_bundles.store(true, Relaxed);
    }

    pub(crate) fn offers_bundles(&self) -> bool {
        self.offers_bundles.load(Relaxed)
    }

    /// Records that it asked or answered, and whether it takes bundles.
    pub(super) fn hear(&self, now: Instant, takes_bundles: bool) {
        self.takes_bundles.store(takes_bundles, Relaxed);
        self.speaks.store(true, Relaxed);
        self.unanswered.store(0, Relaxed);
        self.ask_at.store((now + REFRESH).as_nanos(), Relaxed);
    }

    /// Forgets everything: another may be there now.
    pub(super) fn forget(&self) {
        self.speaks.store(false, Relaxed);
        self.takes_bundles.store(false, Relaxed);
        self.unanswered.store(0, Relaxed);
        self.ask_at.store(0, Relaxed);
    }
}

/// The frame that answers.
pub(super) fn answer(offers_bundles: bool) -> bytes::Bytes {
    let mut packet = LpPacket {
        piggybacked_interest: offers_bundles.then(bytes::Bytes::new),
        ..LpPacket::default()
    };
    packet.extensions.set_number(Extensions::SUPPORT, ANSWER);
    packet.encode()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Seconds at which a packet asks, of one in each.
    fn asked(neighbour: &Neighbour, seconds: impl Iterator<Item = u64>) -> Vec<u64> {
        seconds.filter(|&it| neighbour.ask(at(it))).collect()
    }

    /// Pauses of 1, 2, 4 … 64 s; after the third question it is known that nobody answers.
    #[test]
    fn a_neighbour_that_does_not_answer_is_asked_ever_more_rarely() {
        let neighbour = Neighbour::default();
        assert_eq!(asked(&neighbour, 0..3), [0, 1]);
        assert_eq!(neighbour.speaks(), None);
        let later = asked(&neighbour, 3..260);
        assert_eq!(later, [3, 7, 15, 31, 63, 127, 191, 255]);
        assert_eq!(neighbour.speaks(), Some(false));
    }

    /// Answered at second 1, asked again 10 s later; the questions at 11, 12 and 14 are not answered, and the next, 4 s later,
    /// is to somebody who does not speak.
    #[test]
    fn a_neighbour_that_answered_is_believed_until_it_answers_no_more() {
        let neighbour = Neighbour::default();
        assert!(neighbour.ask(at(0)));
        neighbour.hear(at(1), false);
        assert_eq!(neighbour.speaks(), Some(true));
        assert_eq!(asked(&neighbour, 1..18), [11, 12, 14]);
        assert_eq!(neighbour.speaks(), Some(true));
        assert_eq!(asked(&neighbour, 18..26), [18]);
        assert_eq!(neighbour.speaks(), Some(false));
        neighbour.hear(at(26), false);
        assert_eq!(neighbour.speaks(), Some(true));
        neighbour.forget();
        assert_eq!(neighbour.speaks(), None);
        assert!(neighbour.ask(at(26)));
    }
}
