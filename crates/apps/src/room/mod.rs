//! Rooms: a root whose anchor publishes a schema, a roster and certificates, and readers who keep up with them.
//!
//! ```text
//!  Host ── 32=trust, 32=roster, certificates ──▶ Bulletin ──▶ trust::SharedChains ──▶ watchers, fetchers, sessions, recorders
//! ```

mod bulletin;
mod host;

pub use bulletin::{Bulletin, BulletinConfig, Event, Part};
pub use host::Host;
