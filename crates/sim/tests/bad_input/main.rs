//! What live streams do with bad input: the stream goes on, or says why not, and no table grows beyond its bound.
//!
//! Each case runs over a clean path and over one that loses 2 % of frames in each direction.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod catalogues;
mod clocks;
mod floods;
mod gaps;
mod lies;
#[path = "../live_world/mod.rs"]
mod live_world;
mod replays;
mod restarts;
mod silence;
mod stage;
mod storms;
mod studio;
