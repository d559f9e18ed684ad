//! The requesting end of objects: of one, or of any number over one path.
//!
//! ```text
//!  Fetcher     ── Fetch ──┐
//!  Downloader ─┬─ Fetch ──┴─▶ Outlet: Uplink, packets that leave
//!              └─ Fetch
//! ```

mod config;
mod downloader;
mod fetch;
mod outlet;
mod segments;
mod signer;
mod throughput;

use bytes::Bytes;
use namecast_stream::path::Uplink;
use namecast_units::Instant;

pub use config::{Event, Failure, Fetched, FetcherConfig, FetcherCounters, Flow};
pub use downloader::{Downloaded, Downloader, DownloaderConfig, TooMany};

use crate::{Application, Now, Output};
pub(crate) use fetch::{Fetch, Learned};
use outlet::Outlet;
pub(super) use signer::KnownSigner;

/// Fetches one object: its newest version, whose every segment is verified.
///
/// Give it what arrives ([`handle_packet`](Self::handle_packet)) and the time ([`handle_timeout`](Self::handle_timeout)
/// whenever [`poll_timeout`](Self::poll_timeout) says so), and after each call take everything from
/// [`poll_output`](Self::poll_output) and [`poll_event`](Self::poll_event). The first call of `handle_timeout` starts. Early
/// and repeated calls are harmless.
pub struct Fetcher {
    outlet: Outlet,
    fetch: Fetch,
    /// What arrived, apart from what the object itself counts.
    arrived: FetcherCounters,
}

impl core::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Fetcher")
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl Fetcher {
    /// A fetcher that starts at the first [`handle_timeout`](Self::handle_timeout).
    pub fn new(config: FetcherConfig) -> Self {
        let mut outlet = Outlet::new(&config, config.max_wanted);
        Self {
            fetch: Fetch::new(config, outlet.uplink.new_client(), Learned::default()),
            outlet,
            arrived: FetcherCounters::default(),
        }
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in a link packet. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, wire: Bytes) {
        if let Some(arrived) = outlet::open(wire, &mut self.arrived) {
            let is_of_use = self.outlet.handle(now, &arrived, &mut [&mut self.fetch]);
            self.arrived.unexpected += u64::from(!is_of_use);
        }
        self.settle(now);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.fetch.round_trip = self.outlet.uplink.path().round_trip(now);
        self.fetch.handle_timeout(now);
        self.settle(now);
    }

    /// Sends what may be sent, and requests again what is lost.
    fn settle(&mut self, now: Instant) {
        self.outlet.settle(now, &mut [&mut self.fetch]);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.fetch.is_over() {
            return None;
        }
        let due = [self.fetch.poll_timeout(), self.outlet.poll_timeout()];
        due.into_iter().flatten().min()
    }

    /// The next packet for the application face, until `None`: an Interest.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.outlet.poll_output()
    }

    /// The next report, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.fetch.poll_event()
    }

    /// Returns the signer, once it has signed what came.
    pub(super) fn known_signer(&self) -> Option<KnownSigner> {
        self.fetch.known_signer().cloned()
    }

    /// Everything that is requested over the path, and what is known of it.
    pub const fn uplink(&self) -> &Uplink {
        &self.outlet.uplink
    }

    /// What arrived.
    pub fn counters(&self) -> FetcherCounters {
        let mut counters = self.arrived;
        counters += *self.fetch.counters();
        counters
    }
}

impl Application for Fetcher {
    type Event = Event;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Output<Event>> {
        if let Some(packet) = Self::poll_output(self) {
            return Some(Output::Send(packet));
        }
        self.poll_event().map(Output::Event)
    }
}
