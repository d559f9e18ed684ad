//! Tracks \[RTSD §4.2\]: positions of people, all of one tick in one sample.
//!
//! ```text
//!  JSON lines ─▶ Lines ──────┐
//!  OpenPTrack ─▶ OpenPTrack ─┼─▶ Crowd ─ each tick ─▶ Stage ─▶ samples ─▶ Sample, Ticks ─▶ JSON lines, CSV
//! ```
//!
//! A tick is one sample, and its number is the sample's: `/<root>/tracks/32=all/key/seq=<tick>/…`. It counts from 2025-01-01 in ticks by the publisher's
//! clock, so ticks of several publishers of one rate have the same numbers. Each person has samples of their own, of the same form and numbers, under
//! `/<root>/tracks/<id>/…`, and the [hint](Hint) is `/<root>/tracks/32=hint/…`: they are published while somebody requests them. A sample is
//!
//! | octets | field |
//! |---|---|
//! | 1 | version: 1 |
//! | 8 | number of the tick |
//! | 2 | number of clocks, and each: 1 octet of length, UTF-8 |
//! | rest | people, each: 1 octet of length and the id, UTF-8; 4, 4, 4: x, y and z in 0.1 mm, signed; 8: time of measurement in µs since 1970; 2: clock, 0 for the publisher's, else counted from 1; 2 octets of length and the other fields, a JSON object or nothing |
//!
//! Numbers are in network byte order. Ids are generic components, and `all` and `hint` are keywords: people may be called `all` or `hint`.

mod crowd;
mod hint;
mod lines;
mod open_ptrack;
mod person;
mod sample;
mod stage;
#[cfg(test)]
mod tests;

pub use crowd::{Crowd, walking};
pub use hint::Hint;
pub use lines::{LineError, Lines, MAX_LINE};
pub use open_ptrack::{MAX_DATAGRAM, OpenPTrack};
pub use person::{MAX_EXTRA, MAX_ID, MAX_METRES, Person, TrackError, check_id, csv_header};
pub use sample::{MAX_SAMPLE, Sample, Ticks, encode};
pub use stage::{Stage, StageError};

use namecast_stream::StreamInfo;

/// Name of the family of everybody.
pub const TRACKS: &str = "tracks";
/// Name of the stream of the hint.
pub const HINT: &str = "tracks/32=hint";
/// Hints a second, beside those when somebody comes or goes.
pub const HINTS_PER_SECOND: u32 = 5;
/// Most people, unless the publisher is given another bound.
pub const MAX_PEOPLE: usize = 1_024;
/// Octets of a person in the mean, which a sample has room for.
pub const PERSON_SIZE: usize = 60;

/// Describes the stream of `people` people, `ticks_per_second` times a second.
pub fn stream(people: usize, ticks_per_second: u32) -> StreamInfo {
    let octets = (people * PERSON_SIZE).min(MAX_SAMPLE);
    let octets = u32::try_from(octets).expect("at most 320 000");
    StreamInfo::family(TRACKS, ticks_per_second, octets)
}
