//! A network in virtual time: the nodes and applications that run on sockets, on emulated links.
//!
//! ```text
//!  topology (code, TOML, ndnSIM, Rocketfuel) ─▶ Network ─▶ trace (ndnSIM's tables, CSV, Parquet)
//!                                                 ▲
//!                                  applications, schedule of events
//! ```
//!
//! The same network with the same seed gives the same events to the nanosecond, on every machine.

mod application;
mod clock;
mod hop;
pub mod live;
mod network;
pub mod scenario;
pub mod topology;
pub mod trace;
pub mod workload;

pub use clock::HostClock;
pub use hop::CustomHop;
pub use namecast_apps::{Application, Now, Output};
pub use network::{ApplicationId, MAX_CALLS_AT_INSTANT, Network, NodeConfig};
