//! Show cues \[RTSD §4.3\]: a desk sends cues with their times, and all devices execute each once, at the same moment.
//!
//! ```text
//!  desk ── event: cue 12.5, go, at t + 300 ms ──▶ device ── journal ── t + 300 ms ──▶ executed
//!    ◀──────────── event of the device: cue 12.5 executed, 0.4 ms late ────────────────┘
//! ```
//!
//! Cues are events of `/<show>/cues/<list>/<desk>`, stream [`CUES`]. Their times are those of the desk's clock, to which each device knows its
//! offset. A device writes a cue to its journal before it executes it, so that no cue is executed twice after a crash. Of several desks
//! devices obey the one with the highest term, and a desk that hears of a higher one stops.

mod cue;
mod desk;
mod device;
mod log;
pub mod osc;
mod press;
mod terms;

pub use cue::{Action, Cue, CueError, CueId, DeskClock, Done, MAX_CUE, MAX_TERM, Outcome};
pub use desk::Desk;
pub use device::{Device, DeviceConfig, DeviceCounters, Output};
pub use log::{Log, LogError, LogLine, Message, Publisher, Signed};
pub use press::{Press, PressError};
pub use terms::{Leader, Standing, Terms};

use namecast_packet::Name;
use namecast_stream::StreamInfo;

/// Stream of a desk's cues.
pub const CUES: &str = "cues";
/// Name of the cue list: a show has one.
const LIST: &str = "main";
/// Stream of a desk's reports on what it refused to send: nobody but archives and logs reads it.
pub const REFUSED: &str = "refused";
/// Stream of a device's reports.
pub const ACKS: &str = "acks";
/// Most cues, and most reports of a device, a second that numbers leave room for.
const PER_SECOND: u32 = 100;
/// Octets of a usual one.
const USUAL: u32 = 200;

/// Root under which a desk of `show` publishes cues.
pub fn desk_root(show: &Name, desk: &str) -> Name {
    let cues = show.builder().generic("cues");
    cues.generic(LIST).generic(desk).finish()
}

/// Name of a desk in the roster of `show`, where the show is a room.
pub fn desk_identity(show: &Name, desk: &str) -> Name {
    show.builder().generic("desk").generic(desk).finish()
}

/// Root under which a device of `show` publishes, and its name in the roster.
pub fn device_root(show: &Name, device: &str) -> Name {
    let devices = show.builder().generic("device");
    devices.generic(device).finish()
}

/// The stream that `name` is of.
pub fn stream(name: &str) -> StreamInfo {
    StreamInfo::events(name, PER_SECOND, USUAL)
}
