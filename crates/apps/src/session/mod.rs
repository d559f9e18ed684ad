//! Conversations of two: each side produces for the other and keeps Interests waiting for what the other will produce \[PIGGYBACK\].
//!
//! ```text
//!  caller                                                                     callee
//!    │── Interest /bob/talk/call/alice/talk: e ────────────────────────────────▶│ half open
//!    │◀─ Data: e, ee, s, es, certificate ───────────────────────────────────────│
//!    │◀─ Interest /alice/talk/<call>/32=confirm ────────────────────────────────│
//!    │── Data: s, se, certificate; a proof under the session's keys ───────────▶│ established: now it rings
//!    │                                                                          │
//!    │◀══ Data /bob/talk/<call>/seq=k and Interest /alice/talk/<call>/seq=n+w ══│
//!    │═══ Data /alice/talk/<call>/seq=n and Interest /bob/talk/<call>/seq=k+w ═▶│
//! ```
//!
//! Set-up is a Noise handshake: XX, as above, or IK where the caller knows the callee's static key, with the caller's key and
//! certificate in the first packet. The certificate's key signs the static key. Contents are sealed by keys that nobody can compute
//! once both have ended, and each number is opened once.
//!
//! Names are exact and sequential, and w Interests wait for what does not exist yet ([`Flow`]). Data and the next Interest are put
//! out together, so that a link may send them as one; nothing here depends on whether it does.

mod config;
mod endpoint;
pub mod exchange;
mod handshake;
mod identity;
mod keyring;
mod keys;
mod known;
mod message;
mod names;
mod noise;
mod puzzle;
mod receiver;
mod refusal;
mod remembered;
mod sender;
mod stream;

#[cfg(test)]
mod tests;

pub use config::{EndpointConfig, Flow, SessionConfig, SetupLimits};
pub use endpoint::{End, Endpoint, EndpointCounters, Event, Full, NoCall};
pub use identity::Peer;
pub use known::KnownPeer;
pub use names::CallId;
pub use receiver::ReceiverCounters;
pub use refusal::{Refusal, RefusalCounters};
pub use sender::SenderCounters;
pub use stream::SessionStats;
