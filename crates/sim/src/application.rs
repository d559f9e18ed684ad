//! Applications: values with a face.

use std::any::Any;

use bytes::Bytes;
use namecast_apps::sequence::{Fetcher, Server};
use namecast_units::{Duration, Instant};

use crate::clock::Now;

/// A program on a host. It speaks the dialect of every state machine here; times are the host's.
pub trait Application: Any {
    /// Takes a frame from its face: a bare Interest or Data, or an LpPacket.
    fn handle_frame(&mut self, now: Now, frame: Bytes);

    /// Does what is due. Early calls do nothing.
    fn handle_timeout(&mut self, now: Now);

    /// When to call [`handle_timeout`](Self::handle_timeout) next, on the host's monotonic clock.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next frame for its face.
    fn poll_output(&mut self) -> Option<Bytes>;

    /// The next Data that it fetched, for traces, if it says so.
    fn poll_fetched(&mut self) -> Option<Fetched> {
        None
    }
}

/// A Data packet that an application asked for and got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Its number.
    pub sequence: u64,
    /// Since the last Interest for it.
    pub delay: Duration,
    /// Since the first Interest for it.
    pub full_delay: Duration,
    /// Interests sent for it.
    pub transmissions: u32,
}

impl Application for Fetcher {
    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Bytes> {
        Self::poll_output(self)
    }

    fn poll_fetched(&mut self) -> Option<Fetched> {
        let fetched = Self::poll_fetched(self)?;
        Some(Fetched {
            sequence: fetched.sequence,
            delay: fetched.delay,
            full_delay: fetched.full_delay,
            transmissions: fetched.transmissions,
        })
    }
}

impl Application for Server {
    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Bytes> {
        Self::poll_output(self)
    }
}
