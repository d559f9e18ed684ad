//! Maps of real providers, as Rocketfuel measured them.
//!
//! Two kinds of files: weights and latencies of links, `<from> <to> <value>` a line ([`read_weights`]), and router-level
//! maps, `.cch` ([`read_map`]).

mod map;
mod weights;

pub use map::{LinkRange, MapOptions, read_map};
pub use weights::read_weights;

/// A file that was read, and what errors call it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// What it holds.
    pub text: &'a str,
    /// Its name.
    pub file: &'a str,
}
