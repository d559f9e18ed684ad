//! What browsers and OBS push by WebRTC (WHIP, RFC 9725), as a container that is read like a pipe.
//!
//! ```text
//!  offer ─▶ Offer ─▶ Session ─▶ answer
//!  datagrams, time ─▶ Session: ICE, DTLS, SRTP, frames by str0m ─▶ Program: one clock, NUT ─▶ octets
//!                     └─▶ datagrams: answers to ICE, requests for key frames and lost packets
//! ```
//!
//! No socket and no HTTP here: whoever has them hands over what came and sends what is given.

mod offer;
mod program;
mod session;
mod track_clock;

pub use offer::{MAX_OFFER, Offer, OfferError};
pub use session::{Counters, Credentials, Datagram, Ended, Output, Session, user_fragment};

#[cfg(test)]
mod tests;
