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

use bytes::Bytes;
use namecast_packet::{Extensions, LpPacket};
use namecast_units::Instant;

use super::offers::{Offers, SharedOffers};

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
    /// What it takes.
    takes: SharedOffers,
    /// What it is to hear that this node takes.
    offers: SharedOffers,
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

    /// Returns whether it was asked in vain a second time.
    pub(crate) fn keeps_silent(&self) -> bool {
        self.unanswered.load(Relaxed) >= 2
    }

    /// Returns what it takes; nothing unless it speaks extension fields.
    pub(crate) fn takes(&self) -> Offers {
        match self.speaks.load(Relaxed) {
            true => self.takes.get(),
            false => Offers::NONE,
        }
    }

    /// Has it hear that this node takes these, with each question and answer.
    pub(crate) fn offer(&self, offers: Offers) {
        self.offers.add(offers);
    }

    /// Returns what it is to hear that this node takes.
    pub(crate) fn offers(&self) -> Offers {
        self.offers.get()
    }

    /// Records that it asked or answered, and what it takes.
    pub(super) fn hear(&self, now: Instant, takes: Offers) {
        self.takes.set(takes);
        self.speaks.store(true, Relaxed);
        self.unanswered.store(0, Relaxed);
        self.ask_at.store((now + REFRESH).as_nanos(), Relaxed);
    }

    /// Forgets everything: another may be there now.
    pub(super) fn forget(&self) {
        self.speaks.store(false, Relaxed);
        self.takes.set(Offers::NONE);
        self.unanswered.store(0, Relaxed);
        self.ask_at.store(0, Relaxed);
    }
}

/// The frame that answers.
pub(super) fn answer(offers: Offers) -> Bytes {
    alone(ANSWER, offers)
}

/// The frame that asks where no packet does.
pub(crate) fn question(offers: Offers) -> Bytes {
    alone(QUESTION, offers)
}

fn alone(support: u64, offers: Offers) -> Bytes {
    let mut packet = LpPacket::default();
    packet.extensions.set_number(Extensions::SUPPORT, support);
    offers.tell(&mut packet);
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
        neighbour.hear(at(1), Offers::NONE);
        assert_eq!(neighbour.speaks(), Some(true));
        assert_eq!(asked(&neighbour, 1..18), [11, 12, 14]);
        assert_eq!(neighbour.speaks(), Some(true));
        assert_eq!(asked(&neighbour, 18..26), [18]);
        assert_eq!(neighbour.speaks(), Some(false));
        neighbour.hear(at(26), Offers::NONE);
        assert_eq!(neighbour.speaks(), Some(true));
        neighbour.forget();
        assert_eq!(neighbour.speaks(), None);
        assert!(neighbour.ask(at(26)));
    }
}
