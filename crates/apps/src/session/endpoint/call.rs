//! One call, from the answer to its set-up on.

use std::sync::Arc;

use namecast_packet::{Data, Name, PublicKey};
use namecast_units::{Duration, Instant};

use super::super::handshake::Peer;
use super::super::keys::SessionKeys;
use super::super::stream::Session;
use super::events::End;

/// From one confirmation that is requested to the next.
const CONFIRMATION_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) enum Stage {
    /// Called: the caller has to show its keys.
    HalfOpen(Box<HalfOpen>),
    /// Established; the caller keeps what it showed.
    Open { confirmation: Option<Data> },
    /// Over; still answers, so that the other side has the last message. The application is told of `end` then.
    Closing { until: Instant, end: Option<End> },
}

#[derive(Debug)]
pub(super) struct HalfOpen {
    pub(super) answer: Data,
    pub(super) keys: SessionKeys,
    pub(super) confirmation: Name,
    /// When the confirmation was requested last, how often, and when it is next.
    pub(super) requested: (Instant, u32),
    pub(super) until: Instant,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) peer: Peer,
    pub(super) key: Arc<PublicKey>,
    pub(super) stage: Stage,
    pub(super) session: Session,
}

impl HalfOpen {
    pub(super) fn due(&self) -> Instant {
        match self.requested {
            (at, 0) => at,
            (at, _) => at + CONFIRMATION_INTERVAL,
        }
    }
}
