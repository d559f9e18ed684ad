//! Any number of objects over one path, as a player of segments requests them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::Name;
use namecast_stream::path::Uplink;
use namecast_units::Instant;

use super::config::{Event, FetcherConfig, FetcherCounters};
use super::fetch::{Fetch, Learned};
use super::outlet::{self, Outlet};
use crate::{Application, Now, Output};

/// How objects are fetched.
#[derive(Clone, Debug)]
pub struct DownloaderConfig {
    /// What holds for each object; its name is that of none.
    pub fetcher: FetcherConfig,
    /// Objects at a time.
    pub max_objects: usize,
}

/// What became of the object with this number.
#[derive(Clone, Debug, PartialEq)]
pub struct Downloaded(pub u64, pub Event);

/// As many objects are being fetched as may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} objects are being fetched already: wait for one, or give one up")]
pub struct TooMany(pub usize);

/// Fetches objects, several at a time, with one controller: what one shows of the path counts for the next. The signer of the
/// first is known from then on.
///
/// It is used as a [`Fetcher`](super::Fetcher) is.
pub struct Downloader {
    config: DownloaderConfig,
    outlet: Outlet,
    fetches: BTreeMap<u64, Fetch>,
    learned: Learned,
    /// Of objects that are over, and of what belongs to none.
    counters: FetcherCounters,
    events: VecDeque<Downloaded>,
}

impl core::fmt::Debug for Downloader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Downloader")
            .field("config", &self.config)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}

impl Downloader {
    /// A downloader that fetches nothing yet.
    pub fn new(config: DownloaderConfig) -> Self {
        let max_queued = config.fetcher.max_wanted * config.max_objects;
        Self {
            outlet: Outlet::new(&config.fetcher, max_queued),
            fetches: BTreeMap::new(),
            learned: Learned::default(),
            counters: FetcherCounters::default(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Fetches the object `name`, known as `number` from now on; another one of that number is given up.
    ///
    /// # Errors
    /// If that is one too many.
    pub fn fetch(&mut self, now: Instant, number: u64, name: Name) -> Result<(), TooMany> {
        self.give_up(number);
        if self.fetches.len() >= self.config.max_objects {
            return Err(TooMany(self.config.max_objects));
        }
        let config = FetcherConfig {
            name,
            ..self.config.fetcher.clone()
        };
        let client = self.outlet.uplink.new_client();
        let mut fetch = Fetch::new(config, client, self.learned.clone());
        fetch.handle_timeout(now);
        self.fetches.insert(number, fetch);
        self.settle(now);
        Ok(())
    }

    /// Requests nothing more of object `number`, and reports nothing more of it.
    pub fn give_up(&mut self, number: u64) {
        if let Some(fetch) = self.fetches.remove(&number) {
            self.outlet.uplink.withdraw(&fetch.client().tokens());
            self.counters += *fetch.counters();
        }
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in a link packet. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, wire: Bytes) {
        if let Some(arrived) = outlet::open(wire, &mut self.counters) {
            let mut fetches: Vec<_> = self.fetches.values_mut().collect();
            let is_of_use = self.outlet.handle(now, &arrived, &mut fetches);
            self.counters.unexpected += u64::from(!is_of_use);
        }
        self.settle(now);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let round_trip = self.outlet.uplink.path().round_trip(now);
        for fetch in self.fetches.values_mut() {
            fetch.round_trip = round_trip;
            fetch.handle_timeout(now);
        }
        self.settle(now);
    }

    /// Sends what may be sent, requests again what is lost, and lets go of what is over.
    fn settle(&mut self, now: Instant) {
        let mut fetches: Vec<_> = self.fetches.values_mut().collect();
        self.outlet.settle(now, &mut fetches);
        for (number, fetch) in &mut self.fetches {
            let reports = core::iter::from_fn(|| fetch.poll_event());
            self.events
                .extend(reports.map(|it| Downloaded(*number, it)));
        }
        let over: Vec<_> = self.fetches.extract_if(.., |_, it| it.is_over()).collect();
        for (_, fetch) in over {
            self.counters += *fetch.counters();
            self.learned.update(fetch.learned());
        }
    }

    /// The link is another: what is out will not come. Nothing is given up.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.outlet.uplink.handle_link_change();
        self.outlet.uplink.restart_objects(now);
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.fetches.is_empty() {
            return None;
        }
        let fetches = self.fetches.values().filter_map(Fetch::poll_timeout);
        fetches.chain(self.outlet.poll_timeout()).min()
    }

    /// The next packet for the application face, until `None`: an Interest.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.outlet.poll_output()
    }

    /// The next report, until `None`.
    pub fn poll_event(&mut self) -> Option<Downloaded> {
        self.events.pop_front()
    }

    /// Everything that is requested over the path, and what is known of it.
    pub const fn uplink(&self) -> &Uplink {
        &self.outlet.uplink
    }

    /// What arrived.
    pub fn counters(&self) -> FetcherCounters {
        let mut counters = self.counters;
        for fetch in self.fetches.values() {
            counters += *fetch.counters();
        }
        counters
    }
}

impl Application for Downloader {
    type Event = Downloaded;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Output<Downloaded>> {
        if let Some(packet) = Self::poll_output(self) {
            return Some(Output::Send(packet));
        }
        self.poll_event().map(Output::Event)
    }
}
