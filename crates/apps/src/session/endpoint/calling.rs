//! One's own call, until it is answered.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, Name};
use namecast_units::{Duration, Instant, Random};
use x25519_dalek::StaticSecret;

use super::super::handshake::Peer;
use super::super::names;
use super::NoCall;
use crate::discovery::Trust;

/// First and longest time from one transmission to the next.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const MAX_RETRY: Duration = Duration::from_secs(1);
/// After this time a call is signed anew.
const MAX_AGE: Duration = Duration::from_secs(4);

pub(super) struct Calling {
    pub(super) interest: Interest,
    pub(super) secret: StaticSecret,
    pub(super) callee: Name,
    pub(super) trust: Trust,
    /// Who answered, and does not count.
    pub(super) refused: Option<Box<Peer>>,
    nack: Option<NackReason>,
    sent_at: Option<Instant>,
    transmissions: u32,
    signed_at: Instant,
    until: Instant,
}

impl core::fmt::Debug for Calling {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Calling")
            .field("callee", &self.callee)
            .finish_non_exhaustive()
    }
}

impl Calling {
    pub(super) fn new(
        now: Instant,
        (interest, secret): (Interest, StaticSecret),
        (callee, trust): (Name, Trust),
        until: Instant,
    ) -> Self {
        Self {
            interest,
            secret,
            callee,
            trust,
            refused: None,
            nack: None,
            sent_at: None,
            transmissions: 0,
            signed_at: now,
            until,
        }
    }

    /// Whether the callee may have given up the call, and would take this Interest for a replayed one.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        now.since(self.signed_at) >= MAX_AGE
    }

    /// Goes on with another Interest.
    pub(super) fn renew(&mut self, now: Instant, (interest, secret): (Interest, StaticSecret)) {
        (self.interest, self.secret) = (interest, secret);
        (self.sent_at, self.transmissions, self.signed_at) = (None, 0, now);
    }

    pub(super) fn is_answer(&self, data: &Data) -> bool {
        self.interest.matches(data)
    }

    /// How long the answer that comes now took, if the Interest was sent once.
    pub(super) fn rtt(&self, now: Instant) -> Option<Duration> {
        let sent_at = self.sent_at?;
        (self.transmissions == 1).then(|| now.since(sent_at))
    }

    pub(super) fn on_nack(&mut self, interest: &Interest, reason: NackReason) {
        if interest.name() == self.interest.name() {
            self.nack = Some(reason);
        }
    }

    /// Returns the Interest if it is to be sent, again.
    ///
    /// # Errors
    /// If it has been sent for too long.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        random: &mut Random,
    ) -> Result<Option<Bytes>, NoCall> {
        if self.until <= now {
            return Err(match (self.refused.take(), self.nack) {
                (Some(peer), _) => NoCall::Untrusted(peer),
                (None, Some(NackReason::NoRoute)) => NoCall::NoRoute,
                (None, _) => NoCall::Unanswered,
            });
        }
        if self.due() > now {
            return Ok(None);
        }
        self.sent_at = Some(now);
        self.transmissions += 1;
        let nonce = names::draw_nonce(random);
        Ok(Some(self.interest.with_nonce(nonce).wire().clone()))
    }

    fn due(&self) -> Instant {
        let Some(sent_at) = self.sent_at else {
            return Instant::ZERO;
        };
        let doublings = self.transmissions.saturating_sub(1).min(10);
        sent_at + (FIRST_RETRY * 2_u32.pow(doublings)).min(MAX_RETRY)
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        self.due().min(self.until)
    }
}
