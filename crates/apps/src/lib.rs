//! Applications as namespaces and state machines, without a clock or a socket of their own.

pub mod archive;
pub mod live;
pub mod sequence;
