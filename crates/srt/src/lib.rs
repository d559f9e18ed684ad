//! A listener for SRT in a process of its own, by libsrt, which is loaded at run time.
//!
//! ```text
//!  pushers ─ UDP ─▶ libsrt ─ Listener (child process) ─ reports ─▶ parent: `namecast serve`
//!                                                     ◀─ orders ──
//! ```
//!
//! libsrt is C++ that reads what strangers send. In a process of its own, a datagram that breaks it ends the listener alone, and the
//! parent starts another one.

#![warn(
    clippy::indexing_slicing,
    reason = "frames come from a process that reads what strangers send: parsers use checked reads"
)]

mod child;
mod frames;
#[cfg(any(test, feature = "hostile"))]
#[doc(hidden)]
pub mod hostile;
mod library;

pub use child::run;
pub use frames::{Closed, Failure, FrameError, Frames, Listen, MAX_STREAM_ID, Order, Report};

/// A request for a cookie, which begins a handshake: a listener answers it, and keeps nothing of it. Big-endian words from
/// draft-sharabayko-srt-01, section 3.2.1: control packet 0, version 4, datagrams, sequence number, MTU 1500, window 8192, induction.
pub const INDUCTION: [u8; 64] = {
    let mut octets = [0; 64];
    octets[0] = 0x80;
    octets[19] = 4;
    octets[23] = 2;
    octets[27] = 1;
    (octets[30], octets[31]) = (0x05, 0xdc);
    octets[34] = 0x20;
    octets[39] = 1;
    octets[43] = 1;
    octets
};

/// Reason for a rejected handshake, as libsrt's `access_control.h` numbers them.
pub mod reject {
    /// The stream ID cannot be understood.
    pub const BAD_REQUEST: i32 = 1_400;
    /// The key is missing or wrong.
    pub const UNAUTHORIZED: i32 = 1_401;
    /// Too many connections or streams.
    pub const OVERLOAD: i32 = 1_402;
    /// Another connection pushes this stream.
    pub const CONFLICT: i32 = 1_409;
}
