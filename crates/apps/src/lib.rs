//! Applications as namespaces and state machines, without a clock or a socket of their own.

pub mod archive;
mod face;
pub mod live;
pub mod object;
pub mod sequence;
