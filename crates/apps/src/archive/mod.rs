//! An archive of a live stream: a [`Recorder`] that pulls every packet, and a [`Server`] that answers for the producer.
//! Where packets are kept is the front-end's.

pub mod recorder;
pub mod server;

pub use recorder::{Recorder, RecorderConfig};
pub use server::{Server, ServerConfig};
