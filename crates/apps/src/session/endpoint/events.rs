//! What an endpoint reports and counts.

use bytes::Bytes;
use derive_more::AddAssign;

use super::super::identity::Peer;
use super::super::names::CallId;
use super::super::refusal::RefusalCounters;

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum End {
    /// This side closed it, and the other has everything.
    #[error("closed")]
    Own,
    /// The other side closed it, and said why.
    #[error("{0}")]
    Other(String),
    /// The session's keys were used for too long, as the other side took no new ones.
    #[error("its keys could not be renewed")]
    Unrenewed,
    /// Nothing came for too long.
    #[error("nothing has come from the other side for too long")]
    Silence,
}

/// Why a call was not established.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCall {
    /// No answer came.
    #[error("no answer")]
    Unanswered,
    /// Nobody on the path knows a route.
    #[error("no route to it")]
    NoRoute,
    /// The callee wants more puzzles solved than a caller does.
    #[error("too much load")]
    Overloaded,
    /// Who answers is not who was called.
    #[error("answered by {}, {}", .0.signer.key_name, .0.signer.verdict)]
    Untrusted(Box<Peer>),
}

/// What an endpoint reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Both sides have shown their keys. Whoever was called now accepts or closes.
    Established {
        /// The call.
        call: CallId,
        /// Who is there.
        peer: Box<Peer>,
        /// Whether this side was called.
        was_called: bool,
    },
    /// The other side takes the call.
    Accepted(CallId),
    /// A message came.
    Message(CallId, Bytes),
    /// Messages can be sent again.
    Room(CallId),
    /// The call is over.
    Ended(CallId, End),
    /// Somebody called whose signature does not count; told once a second.
    Refused(Box<Peer>),
    /// One's own call was not answered.
    Failed(NoCall),
}

/// There is no room for a message, or no such call. The message is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full(pub Bytes);

/// What an endpoint counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AddAssign)]
pub struct EndpointCounters {
    /// Calls whose set-up was answered.
    pub answered: u64,
    /// Calls, of either side, whose keys were shown.
    pub established: u64,
    /// Sessions that got new keys.
    pub renewed: u64,
    /// Packets of set-ups that were refused, and others that break the format.
    pub refused: RefusalCounters,
    /// Half-open calls whose caller never showed its keys.
    pub unconfirmed: u64,
    /// Set-ups answered that came with a solved puzzle.
    pub solved: u64,
    /// Half-open calls of strangers that newer ones displaced.
    pub evicted: u64,
    /// Packets of no call.
    pub unknown: u64,
}
