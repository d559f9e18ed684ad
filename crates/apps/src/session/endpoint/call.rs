//! Calls: half open until the caller has shown its keys, then with a session.

use bytes::Bytes;
use namecast_packet::{Data, Name};
use namecast_units::{Duration, Instant};
use zeroize::Zeroizing;

use super::super::handshake::Incoming;
use super::super::identity::Peer;
use super::super::keys::SessionKeys;
use super::super::stream::Session;
use super::events::End;
use super::renewal::Renewal;

/// From one confirmation that is requested to the next.
const CONFIRMATION_INTERVAL: Duration = Duration::from_millis(250);
/// Interests for packets that a half-open call keeps until it is open.
const MAX_EARLY: usize = 64;

#[derive(Debug)]
pub(super) enum Stage {
    /// Established; the caller keeps what it showed.
    Open { confirmation: Option<Data> },
    /// Over; still answers, so that the other side has the last message. The application is told of `end` then.
    Closing { until: Instant, end: Option<End> },
    /// Never admitted; answers so that the other side hears that.
    Refusing { until: Instant },
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) peer: Peer,
    pub(super) stage: Stage,
    pub(super) renewal: Renewal,
    pub(super) session: Session,
}

/// A set-up that was answered; the caller has to show its keys.
pub(super) struct HalfOpen {
    pub(super) caller: Name,
    pub(super) incoming: Incoming,
    /// Seed of the answer's ephemeral key.
    pub(super) seed: Zeroizing<[u8; 32]>,
    pub(super) answer: Data,
    /// Who calls, if the first message says it.
    pub(super) peer: Option<(Peer, SessionKeys)>,
    /// Whether the caller's static key was known: others do not displace it.
    pub(super) is_known: bool,
    pub(super) confirmation: Name,
    /// When the confirmation was requested last, how often, and when it is next.
    pub(super) requested: (Instant, u32),
    /// Whether a confirmation has been requested since one was read: reading costs key exchanges.
    pub(super) is_expected: bool,
    pub(super) until: Instant,
    /// Interests for packets of this side, which came before the confirmation.
    pub(super) early: Vec<EarlyInterest>,
}

/// An Interest for a packet, with its PIT token and lifetime.
pub(super) struct EarlyInterest {
    pub(super) number: u64,
    pub(super) asked: (Option<Bytes>, Duration),
}

impl HalfOpen {
    pub(super) fn due(&self) -> Instant {
        match self.requested {
            (at, 0) => at,
            (at, _) => at + CONFIRMATION_INTERVAL,
        }
    }

    pub(super) fn keep(&mut self, number: u64, asked: (Option<Bytes>, Duration)) {
        if self.early.len() < MAX_EARLY {
            self.early.push(EarlyInterest { number, asked });
        }
    }
}
