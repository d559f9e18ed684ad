//! Conversations of two: each side produces for the other and keeps Interests waiting for what the other will produce \[PIGGYBACK\].
//!
//! ```text
//!  caller                                                                     callee
//!    │── Interest /bob/talk/call/alice/talk, signed, with an ephemeral key ────▶│ half open
//!    │◀─ Data, signed, with the other ephemeral key and a proof of the keys ────│
//!    │◀─ Interest /alice/talk/<call>/32=confirm ────────────────────────────────│
//!    │── Data, signed over all that was said, with a proof of the keys ────────▶│ established: now it rings
//!    │                                                                          │
//!    │◀══ Data /bob/talk/<call>/seq=k and Interest /alice/talk/<call>/seq=n+w ══│
//!    │═══ Data /alice/talk/<call>/seq=n and Interest /bob/talk/<call>/seq=k+w ═▶│
//! ```
//!
//! Set-up is SIGMA in three messages: both sign what binds both names and both ephemeral keys, and show that they have the session's
//! keys. Contents are sealed by keys that nobody can compute once both have ended, and each number is opened once.
//!
//! Names are exact and sequential, and w Interests wait for what does not exist yet ([`Flow`]). Data and the next Interest are put
//! out together, so that a link may send them as one; nothing here depends on whether it does.

mod config;
mod endpoint;
pub mod exchange;
mod handshake;
mod keys;
mod message;
mod names;
mod receiver;
mod sender;
mod stream;

#[cfg(test)]
mod tests;

pub use config::{EndpointConfig, Flow, SessionConfig};
pub use endpoint::{End, Endpoint, EndpointCounters, Event, Full, NoCall};
pub use handshake::Peer;
pub use names::CallId;
pub use receiver::ReceiverCounters;
pub use sender::SenderCounters;
pub use stream::SessionStats;
