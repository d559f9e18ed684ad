//! Sound of a call: from a microphone or file as packets of Opus, and packets in time to a speaker or file. ffmpeg codes both ways.
//!
//! ```text
//!  microphone ─▶ ffmpeg, Opus ─ NUT ─▶ Spoken ─▶ the other side
//!  speaker ◀── ffmpeg ◀─ NUT ── Playout: in order, in time, lost ones concealed ◀── the other side
//! ```

mod microphone;
mod playout;
mod speaker;

pub use microphone::{Microphone, Spoken};
pub use playout::{Frame, Playout, PlayoutCounters};
pub use speaker::{Sink, Speaker};

use namecast_units::Duration;

/// Sound in one packet.
pub const PACKET: Duration = Duration::from_millis(20);
