//! Publisher and watchers in virtual time.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is the way to report what cannot be"
)]

mod changing;
mod joining;
mod playing;
mod recorded;
mod reordering;
mod rooms;
mod sealed;
mod swarm;
mod trouble;
mod wanted;
mod world;
