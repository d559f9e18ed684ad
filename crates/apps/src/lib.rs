//! Applications as namespaces and state machines, without a clock or a socket of their own.

mod application;
pub mod archive;
mod face;
pub mod live;
pub mod management;
pub mod object;
pub mod registration;
pub mod sequence;

pub use application::{Application, Now, Output, step};
