//! Rooms: a root whose anchor publishes a schema, a roster and certificates, and readers who keep up with them.
//!
//! ```text
//!  newcomer ── 32=join ──▶ Host ── certificate ──▶ newcomer
//!  Host ── 32=trust, 32=roster, certificates ──▶ Bulletin ──▶ trust::SharedChains ──▶ watchers, fetchers, sessions, recorders
//! ```

mod bulletin;
mod door;
mod host;
mod join;
mod joiner;

pub use bulletin::{Bulletin, BulletinConfig, Event, Part};
pub use door::JoinCounters;
pub use host::{Host, HostEvent};
pub use join::{InvitationSecret, Join, Link, NotALink, TOKEN_SIZE, Welcome, join_name};
pub use joiner::{JoinEvent, JoinFailure, Joined, Joiner, WaitReason};
