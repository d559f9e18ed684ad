//! Tests of nodes with sockets. They are one binary, which takes less time to build than many.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod burst;
mod common;
#[cfg(target_os = "linux")]
mod ethernet;
mod faces;
mod hops;
#[cfg(target_os = "linux")]
mod hosts;
mod key_store;
mod learning;
mod listeners;
mod multicast;
#[cfg(target_os = "linux")]
#[path = "common/namespace.rs"]
mod namespace;
mod restart;
mod several_forwarders;
#[cfg(target_os = "linux")]
mod strangers;
mod transports;
