//! What happens to a packet, step by step, in NFD's order: one function per pipeline.
//!
//! ```text
//!  frame ─▶ receive ─┬─▶ incoming Interest ─┬─ content store hit ─▶ outgoing Data
//!                    │                      └─ miss ─▶ hops ──────▶ outgoing Interest
//!                    ├─▶ incoming Data ─────── hops ─▶ outgoing Data, to all who wait
//!                    └─▶ incoming Nack ─────── hops ─▶ outgoing Nack
//! ```

mod bundle;
mod data;
mod expiry;
mod forwarder;
mod interest;
mod nack;
mod output;
mod receive;

pub use forwarder::{Forwarder, LearnedRoute, StrategyChoice, Transmit};
