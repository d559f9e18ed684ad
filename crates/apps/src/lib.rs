//! Applications as namespaces and state machines, without a clock or a socket of their own.

mod application;
pub mod archive;
pub mod cues;
mod discovery;
mod face;
#[cfg(test)]
mod fixtures;
pub mod group;
pub mod live;
pub mod management;
mod neighbours;
pub mod object;
mod receivers;
pub mod registration;
pub mod room;
mod samples;
pub mod sealed;
pub mod sequence;
pub mod session;
pub mod tracks;
pub mod trust;

pub use application::{Application, Now, Output, step};
