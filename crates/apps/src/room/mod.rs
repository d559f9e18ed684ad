//! Rooms: a root whose anchor publishes a schema, a roster and certificates, and readers who keep up with them.
//!
//! ```text
//!  newcomer ── 32=join ──▶ Host ── certificate ──▶ newcomer
//!  leaver ── 32=leave ──▶ Host ── roster without it ──▶ members, and an answer ──▶ leaver
//!  Host ── 32=trust, 32=roster, certificates ──▶ Bulletin ──▶ trust::SharedChains ──▶ watchers, fetchers, sessions, recorders
//! ```

use namecast_packet::Name;
use namecast_stream::names::KEY;

mod bulletin;
mod door;
mod host;
mod join;
mod joiner;
mod leave;

pub use bulletin::{Bulletin, BulletinConfig, Event, Part};
pub use door::JoinCounters;
pub use host::{Host, HostEvent};
pub use join::{InvitationSecret, Join, Link, NotALink, TOKEN_SIZE, Welcome, join_name};
pub use joiner::{JoinEvent, JoinFailure, Joined, Joiner, WaitReason};
pub use leave::{LeaveCounters, leave, leave_name};

/// Returns the prefixes of what a host publishes for anybody to keep and serve: schema, rosters, and the anchor's certificates.
pub fn published_names(root: &Name) -> [Name; 3] {
    let keys = root.builder().generic(KEY).finish();
    [Part::Schema.name(root), Part::Roster.name(root), keys]
}
