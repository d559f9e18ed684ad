//! What live streams do with bad input: the stream goes on, or says why not, and no table grows beyond its bound.
//!
//! Each case runs over a clean path and over one that loses 2 % of frames in each direction.

mod catalogues;
mod clocks;
mod floods;
mod gaps;
mod lies;
mod replays;
mod restarts;
mod silence;
mod stage;
mod storms;
mod strangers;
mod studio;
