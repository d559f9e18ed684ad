//! Objects under the stream's name that a player in the page requests: playlists and segments.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_apps::live::watcher::{Pin, Signer, Trust, Verdict};
use namecast_apps::object::{
    Downloaded, Downloader, DownloaderConfig, Event, FetcherConfig, TooMany,
};
use namecast_packet::{Name, ParseNameError};
use namecast_stream::Catalogue;
use namecast_stream::path::Control;
use namecast_units::{Bitrate, ByteSize, Instant, Timestamp};
use serde::Serialize;

use crate::outbox::{Outbox, Source, TabEvent};

/// Codec in the catalogue of a stream that is published as segments.
const HLS: &str = "hls";
/// Objects at a time: a playlist and a segment for picture and sound each.
const MAX_OBJECTS: usize = 4;
/// Largest object: ten seconds at 25 Mbit/s.
const MAX_SIZE: ByteSize = ByteSize::mebibytes(32);
/// Interests for one packet: what is not there is given up after some seconds.
const MAX_ATTEMPTS: u32 = 8;

/// Why an object is not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It is no name.
    #[error("'{0}' is no name: {1}")]
    Name(String, ParseNameError),
    /// A playlist may name anything, and whoever signed it has no say elsewhere.
    #[error("{0} is not under {1}, whose signer it would need")]
    Elsewhere(Name, Name),
    /// It is not known yet who signs the stream.
    #[error("nobody is known yet to sign {0}")]
    NoSigner(Name),
    /// There are too many.
    #[error(transparent)]
    TooMany(#[from] TooMany),
}

/// What the objects' Data shows of the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct FilesFigures {
    /// What bounds requests.
    controller: &'static str,
    /// The rate that it allows; none: it has a window only.
    controller_rate_bps: Option<u64>,
    /// Least round trip to whoever answers, and what the newest Data took more.
    rtt_ms: f64,
    queueing_ms: f64,
    /// Rate that a cache said lately of the path behind it.
    offered_bps: Option<u64>,
    /// Interests for what was requested before.
    retransmissions: u64,
}

/// Fetches objects under one root, signed as its stream is.
#[derive(Debug)]
pub(crate) struct Files {
    root: Name,
    wall_at_zero: Timestamp,
    control: Control,
    seed: u64,
    /// Key of the signer named last, until something is here that it signed.
    candidate: Option<[u8; 32]>,
    /// Once the signer is known.
    downloader: Option<Downloader>,
    is_package: bool,
    /// What is here by now of each object, in octets, and how much of it that is: told once a batch.
    progress: BTreeMap<u64, (u64, f64)>,
}

impl Files {
    pub(crate) const fn new(
        root: Name,
        wall_at_zero: Timestamp,
        control: Control,
        seed: u64,
    ) -> Self {
        Self {
            root,
            wall_at_zero,
            control,
            seed,
            candidate: None,
            downloader: None,
            is_package: false,
            progress: BTreeMap::new(),
        }
    }

    /// Takes a signer that would count.
    pub(crate) fn handle_signer(&mut self, signer: &Signer) {
        let counts = !matches!(signer.verdict, Verdict::Refused(_));
        self.candidate = counts.then_some(signer.key_digest);
    }

    /// The signer named last has signed the catalogue. A stream has one key as long as it is watched.
    pub(crate) fn handle_catalogue(&mut self, catalogue: &Catalogue) {
        self.is_package = catalogue.streams.iter().any(|it| it.codec == HLS);
        let Some(digest) = self.candidate.take() else {
            return;
        };
        let fetcher = FetcherConfig {
            trust: Trust::Pinned(Pin::Digest(digest)),
            wall_at_zero: self.wall_at_zero,
            control: self.control,
            seed: self.seed,
            max_size: MAX_SIZE,
            max_attempts: MAX_ATTEMPTS,
            ..FetcherConfig::new(Name::root())
        };
        let config = DownloaderConfig {
            fetcher,
            max_objects: MAX_OBJECTS,
        };
        self.downloader
            .get_or_insert_with(|| Downloader::new(config));
    }

    /// Fetches the newest version of the object named by `uri`, known as `number` from now on.
    pub(crate) fn fetch(&mut self, now: Instant, number: u64, uri: &str) -> Result<(), FetchError> {
        let name: Name = uri
            .parse()
            .map_err(|why| FetchError::Name(uri.to_owned(), why))?;
        if !self.root.is_prefix_of(&name) || name == self.root {
            return Err(FetchError::Elsewhere(name, self.root.clone()));
        }
        let downloader = self.downloader.as_mut();
        let downloader = downloader.ok_or_else(|| FetchError::NoSigner(self.root.clone()))?;
        Ok(downloader.fetch(now, number, name)?)
    }

    /// Fetches object `number` no more.
    pub(crate) fn give_up(&mut self, number: u64) {
        self.progress.remove(&number);
        if let Some(downloader) = &mut self.downloader {
            downloader.give_up(number);
        }
    }

    /// Returns whether the stream is published as segments.
    pub(crate) const fn is_package(&self) -> bool {
        self.is_package
    }

    /// Takes a frame that the node sends on its face.
    pub(crate) fn handle_frame(&mut self, now: Instant, frame: Bytes) {
        if let Some(downloader) = &mut self.downloader {
            downloader.handle_packet(now, frame);
        }
    }

    /// Another transport takes the place of the one before.
    pub(crate) fn handle_link_change(&mut self, now: Instant) {
        if let Some(downloader) = &mut self.downloader {
            downloader.handle_link_change(now);
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(downloader) = &mut self.downloader {
            downloader.handle_timeout(now);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.downloader.as_ref().and_then(Downloader::poll_timeout)
    }

    /// The next packet for the node.
    pub(crate) fn poll_output(&mut self) -> Option<Bytes> {
        self.downloader.as_mut()?.poll_output()
    }

    /// What is known of the path; nothing before the signer is known.
    pub(crate) fn figures(&self, now: Instant) -> Option<FilesFigures> {
        let uplink = self.downloader.as_ref()?.uplink();
        let (path, budget) = (uplink.path(), uplink.budget());
        Some(FilesFigures {
            controller: budget.name(),
            controller_rate_bps: budget.rate().map(Bitrate::as_bps),
            rtt_ms: path.round_trip(now).as_secs_f64() * 1e3,
            queueing_ms: path.queue_now() * 1e3,
            offered_bps: path.offered(now).map(Bitrate::as_bps),
            retransmissions: uplink.counters().retransmissions,
        })
    }

    /// Tells the page what became of objects.
    pub(crate) fn report(&mut self, watch: u32, outbox: &mut Outbox) {
        let Some(downloader) = &mut self.downloader else {
            return;
        };
        while let Some(Downloaded(number, event)) = downloader.poll_event() {
            match event {
                Event::Progress {
                    received,
                    total,
                    octets,
                } => {
                    let share = received as f64 / total.max(1) as f64;
                    self.progress.insert(number, (octets, share));
                }
                Event::Fetched(fetched) => {
                    self.progress.remove(&number);
                    outbox.fetched(watch, number, fetched.flow, &fetched.content);
                }
                Event::Failed(why) => {
                    self.progress.remove(&number);
                    let why = why.to_string();
                    outbox.event(Source::Watch(watch), &TabEvent::Unfetched { number, why });
                }
            }
        }
    }

    /// Tells the page how much is here of what is being fetched.
    pub(crate) fn report_progress(&mut self, watch: u32, outbox: &mut Outbox) {
        for (number, (octets, share)) in core::mem::take(&mut self.progress) {
            let event = TabEvent::Fetching {
                number,
                octets,
                share,
            };
            outbox.event(Source::Watch(watch), &event);
        }
    }
}
