//! Tracks \[RTSD §4.2\]: positions of people, all of one tick in one sample.
//!
//! ```text
//!  JSON lines ─▶ Lines ──────┐
//!  OpenPTrack ─▶ OpenPTrack ─┼─▶ Crowd ─ each tick ─▶ encode ─▶ samples ─▶ Ticks ─▶ JSON lines, CSV
//! ```
//!
//! A tick has one sample while its people take [`MAX_SAMPLE`] octets, and several beyond. A sample is
//!
//! | octets | field |
//! |---|---|
//! | 1 | version: 1 |
//! | 8 | number of the tick |
//! | 2, 2 | number of this part of the tick, from 0; number of parts |
//! | 1 | number of clocks, and each: 1 octet of length, UTF-8 |
//! | rest | people, each: 1 octet of length and the id, UTF-8; 4, 4, 4: x, y and z in 0.1 mm, signed; 8: time of measurement in µs since 1970; 1: clock, 0 for the publisher's, else counted from 1; 2 octets of length and the other fields, a JSON object or nothing |
//!
//! Numbers are in network byte order. Where names have ids as components they are generic, and `all` and `hint` of the family are keywords:
//! people may be called `all` or `hint`.

mod crowd;
mod lines;
mod open_ptrack;
mod person;
mod sample;
#[cfg(test)]
mod tests;

pub use crowd::{Crowd, walking};
pub use lines::{LineError, Lines, MAX_LINE};
pub use open_ptrack::{MAX_DATAGRAM, OpenPTrack};
pub use person::{MAX_EXTRA, MAX_ID, MAX_METRES, Person, TrackError, csv_header};
pub use sample::{MAX_PARTS, MAX_SAMPLE, Sample, Ticks, encode};

use namecast_stream::StreamInfo;

/// Name of the data stream of everybody.
pub const TRACKS: &str = "tracks";
/// Most people, unless the publisher is given another bound.
pub const MAX_PEOPLE: usize = 1_024;
/// Octets of a person in the mean, which a sample has room for.
pub const PERSON_SIZE: usize = 60;

/// Describes the stream of `people` people, `ticks_per_second` times a second.
pub fn stream(people: usize, ticks_per_second: u32) -> StreamInfo {
    let octets = people.min(MAX_PEOPLE) * PERSON_SIZE;
    let octets = u32::try_from(octets).expect("at most 61 440");
    StreamInfo::newest(TRACKS, ticks_per_second, octets)
}
