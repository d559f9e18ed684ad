//! Keeps chains up to date: schema and roster of a root, and certificates that chains lack.
//!
//! ```text
//!  every 5 s   /<root>/32=trust    newest version ─ signed by the anchor ─▶ Chains::set_schema
//!              /<root>/32=roster   newest version ─ signed by the anchor ─▶ Chains::set_revoked
//!  always      /<root>/32=roster/v=<next>/seg=0 waits at the host until it is published
//!  at once     certificates of Chains::poll_missing ──────────────────────▶ Chains::offer
//! ```

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Component, ContentType, Data, Interest, LpPacket, Name, Packet};
use namecast_units::{ByteSize, Instant, Random, Timestamp};

use crate::discovery::{Pin, Trust};
use crate::object::{self, Downloaded, Downloader, DownloaderConfig, Failure, FetcherConfig};
use crate::trust::schema::{Limits, Schema};
use crate::trust::{Anchor, Chains, Moment, Roster, SetBack, SharedChains};
use crate::{Application, Now, Output, face};

/// Component behind the root of a published schema.
const SCHEMA: &str = "trust";
/// Component behind the root of a roster.
const ROSTER: &str = "roster";

/// Largest roster and schema.
const MAX_SIZE: ByteSize = ByteSize::mebibytes(4);
/// Certificates that are requested at a time.
const MAX_CERTIFICATES: usize = 8;
/// From one look at what chains lack to the next, as they do not say when they lack a certificate.
const MISSING_INTERVAL: Duration = Duration::from_millis(250);
/// Interests for one certificate, and how long each waits.
const MAX_ATTEMPTS: u32 = 4;
const CERTIFICATE_WAIT: Duration = Duration::from_secs(1);
/// Lifetime of the Interest for the next roster, and from one to the next: one that is lost delays a roster by this time.
const NEXT_WAIT: Duration = Duration::from_secs(2);

/// Configuration of a bulletin.
#[derive(Clone, Debug)]
pub struct BulletinConfig {
    /// Root whose schema and roster are read; `None`: certificates alone are fetched.
    pub root: Option<Name>,
    /// Key that signs both.
    pub anchor: Anchor,
    /// From one look for a newer version to the next.
    pub interval: Duration,
    /// Wall clock at [`Instant::ZERO`].
    pub wall_at_zero: Timestamp,
    /// Seed of the Nonces.
    pub seed: u64,
}

impl BulletinConfig {
    /// Reads schema and roster of `root` every 5 s.
    pub const fn new(root: Option<Name>, anchor: Anchor) -> Self {
        Self {
            root,
            anchor,
            interval: Duration::from_secs(5),
            wall_at_zero: Timestamp::from_micros(0),
            seed: 0,
        }
    }
}

/// One of both objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The schema.
    Schema,
    /// The roster.
    Roster,
}

impl Part {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Schema, Self::Roster];

    /// Returns the name of its object, without a version.
    pub fn name(self, root: &Name) -> Name {
        let word = match self {
            Self::Schema => SCHEMA,
            Self::Roster => ROSTER,
        };
        root.builder().keyword(word).finish()
    }
}

impl core::fmt::Display for Part {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Schema => "schema",
            Self::Roster => "roster",
        })
    }
}

/// Report of a bulletin.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// This version of the schema is in force.
    Schema(u64),
    /// This version of the roster is in force.
    Roster(u64, Arc<Roster>),
    /// A version older than the one in force was received. It is reported once for each version.
    SetBack(Part, SetBack),
    /// An object that the anchor signed is malformed.
    Malformed(Part, String),
    /// Nothing acceptable was received.
    Failed(Part, Failure),
}

/// The Interest for the next roster.
#[derive(Debug)]
struct NextRoster {
    name: Name,
    ask_at: Instant,
    /// Whether neither an answer nor a refusal arrived.
    is_out: bool,
}

/// A certificate that is requested.
#[derive(Debug)]
struct Wanted {
    name: Name,
    ask_at: Instant,
    attempts: u32,
}

/// Reads schema and roster of a root, and fetches certificates that chains lack.
pub struct Bulletin {
    config: BulletinConfig,
    chains: SharedChains,
    downloader: Downloader,
    look_at: Instant,
    /// Versions in force or refused, of schema and roster.
    seen: [Option<u64>; 2],
    next_roster: Option<NextRoster>,
    wanted: Vec<Wanted>,
    missing_at: Instant,
    nonces: Random,
    outputs: VecDeque<Output<Event>>,
}

impl core::fmt::Debug for Bulletin {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bulletin")
            .field("config", &self.config)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

impl Bulletin {
    /// Keeps `chains` up to date.
    pub fn new(config: BulletinConfig, chains: SharedChains) -> Self {
        let pin = match &config.anchor {
            Anchor::Digest(digest) => Pin::Digest(*digest),
            Anchor::Certificate(certificate) => Pin::Certificate(certificate.clone()),
        };
        let fetcher = FetcherConfig {
            trust: Trust::Pinned(pin),
            wall_at_zero: config.wall_at_zero,
            seed: config.seed,
            max_size: MAX_SIZE,
            ..FetcherConfig::new(Name::root())
        };
        Self {
            downloader: Downloader::new(DownloaderConfig {
                fetcher,
                max_objects: Part::ALL.len(),
            }),
            nonces: Random::from_seed(config.seed),
            config,
            chains,
            look_at: Instant::ZERO,
            seen: [None; 2],
            next_roster: None,
            wanted: Vec::new(),
            missing_at: Instant::ZERO,
            outputs: VecDeque::new(),
        }
    }

    /// Looks for newer versions now.
    pub const fn look(&mut self, now: Instant) {
        self.look_at = now;
    }

    fn settle(&mut self, now: Now) {
        self.chains.with(|it| it.tell(Moment::Live(now.wall)));
        if let Some(root) = &self.config.root
            && self.look_at <= now.monotonic
        {
            self.look_at = now.monotonic + self.config.interval;
            for (number, part) in (0..).zip(Part::ALL) {
                let name = part.name(root);
                // There is room for both.
                let _ = self.downloader.fetch(now.monotonic, number, name);
            }
        }
        self.downloader.handle_timeout(now.monotonic);
        while let Some(Downloaded(number, event)) = self.downloader.poll_event() {
            let part = Part::ALL[usize::from(number == 1)];
            match event {
                object::Event::Fetched(fetched) => self.on_fetched(part, &fetched),
                object::Event::Failed(why) => self.report(Event::Failed(part, why)),
                object::Event::Progress { .. } => {}
            }
        }
        self.request_certificates(now.monotonic);
        self.request_next_roster(now.monotonic);
        while let Some(packet) = self.downloader.poll_output() {
            self.outputs.push_back(Output::Send(packet));
        }
    }

    fn report(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn on_fetched(&mut self, part: Part, fetched: &object::Fetched) {
        let last = fetched.name.last();
        let Some(version) = last.and_then(|last| last.number_of(Component::VERSION)) else {
            return;
        };
        let seen = &mut self.seen[usize::from(part == Part::Roster)];
        if seen.replace(version) == Some(version) {
            return;
        }
        let outcome = match part {
            Part::Schema => self.set_schema(version, &fetched.content),
            Part::Roster => self.set_roster(version, &fetched.content),
        };
        self.report(outcome);
    }

    fn set_schema(&self, version: u64, content: &Bytes) -> Event {
        let schema = match Schema::decode(content, &Limits::default()) {
            Ok(schema) => Arc::new(schema),
            Err(error) => return Event::Malformed(Part::Schema, error.to_string()),
        };
        match self.chains.with(|it| it.set_schema(version, schema)) {
            Ok(()) => Event::Schema(version),
            Err(set_back) => Event::SetBack(Part::Schema, set_back),
        }
    }

    fn set_roster(&self, version: u64, content: &Bytes) -> Event {
        let roster = match Roster::decode(content) {
            Ok(roster) => Arc::new(roster),
            Err(error) => return Event::Malformed(Part::Roster, error.to_string()),
        };
        let revoked = roster.revoked();
        match self.chains.with(|it| it.set_revoked(version, revoked)) {
            Ok(()) => Event::Roster(version, roster),
            Err(set_back) => Event::SetBack(Part::Roster, set_back),
        }
    }

    /// Lets an Interest for the roster after the newest one wait at the host.
    fn request_next_roster(&mut self, now: Instant) {
        let Some((root, seen)) = self.config.root.as_ref().zip(self.seen[1]) else {
            return;
        };
        // A version that was refused as set back was seen, too.
        let known = seen.max(self.chains.with(|it| it.roster_version()));
        let name = Part::Roster.name(root).builder();
        let name = name.version(known.saturating_add(1)).segment(0).finish();
        let next = self.next_roster.as_ref();
        if next.is_some_and(|it| it.name == name && it.ask_at > now) {
            return;
        }
        let interest = Interest::builder(name.clone())
            .lifetime(NEXT_WAIT)
            .build((self.nonces.next_u64() as u32).into());
        let packet = face::request(&interest, None);
        self.outputs.push_back(Output::Send(packet));
        let ask_at = now + NEXT_WAIT;
        self.next_roster = Some(NextRoster {
            name,
            ask_at,
            is_out: true,
        });
    }

    /// Takes a packet that may answer or refuse the Interest for the next roster.
    fn on_next_roster(&mut self, now: Instant, (packet, link): (&Packet, &LpPacket)) {
        let Some((root, next)) = self
            .config
            .root
            .as_ref()
            .zip(self.next_roster.as_mut().filter(|it| it.is_out))
        else {
            return;
        };
        match packet {
            // The download that begins now takes it for its first segment, and verifies it.
            Packet::Data(data) if *data.name() == next.name => {
                let _ = self.downloader.fetch(now, 1, Part::Roster.name(root));
                while self.downloader.poll_output().is_some() {}
            }
            // The host refuses what will not exist: it has a newer version than the next one.
            Packet::Interest(interest) if *interest.name() == next.name => {
                if link.nack == Some(NackReason::None) {
                    self.look_at = now;
                }
            }
            _ => return,
        }
        // Until a newer roster is in force, nothing more is to be learned of this one sooner than by the next look.
        (next.is_out, next.ask_at) = (false, now + self.config.interval);
    }

    /// Requests what chains lack.
    fn request_certificates(&mut self, now: Instant) {
        self.missing_at = now + MISSING_INTERVAL;
        while self.wanted.len() < MAX_CERTIFICATES
            && let Some(name) = self.chains.with(Chains::poll_missing)
        {
            if self.wanted.iter().all(|wanted| wanted.name != name) {
                self.wanted.push(Wanted {
                    name,
                    ask_at: now,
                    attempts: 0,
                });
            }
        }
        for wanted in self.wanted.iter_mut().filter(|it| it.ask_at <= now) {
            wanted.attempts += 1;
            wanted.ask_at = now + CERTIFICATE_WAIT;
            if wanted.attempts > MAX_ATTEMPTS {
                continue;
            }
            let interest = Interest::builder(wanted.name.clone())
                .can_be_prefix()
                .lifetime(CERTIFICATE_WAIT)
                .build((self.nonces.next_u64() as u32).into());
            let packet = face::request(&interest, None);
            self.outputs.push_back(Output::Send(packet));
        }
        self.wanted.retain(|wanted| wanted.attempts <= MAX_ATTEMPTS);
    }

    /// Takes a certificate. Returns whether it is one.
    fn on_certificate(&mut self, data: &Data) -> bool {
        if data.content_type() != ContentType::Key {
            return false;
        }
        self.wanted.retain(|it| !it.name.is_prefix_of(data.name()));
        // Chains count what is none.
        let _ = self.chains.with(|it| it.offer(data.clone()));
        true
    }
}

impl Application for Bulletin {
    type Event = Event;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        if let Ok(Some((packet, link))) = face::open(frame.clone()) {
            if let Packet::Data(data) = &packet {
                // The downloader requests the anchor's certificate itself, and chains need it, too.
                self.on_certificate(data);
            }
            self.on_next_roster(now.monotonic, (&packet, &link));
        }
        self.downloader.handle_packet(now.monotonic, frame);
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.settle(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let asks = self.wanted.iter().map(|wanted| wanted.ask_at);
        let asks = asks.chain(self.next_roster.as_ref().map(|it| it.ask_at));
        let look = self.config.root.as_ref().map(|_| self.look_at);
        let others = look.into_iter().chain(self.downloader.poll_timeout());
        asks.chain(others).chain([self.missing_at]).min()
    }

    fn poll_output(&mut self) -> Option<Output<Event>> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
#[path = "bulletin_tests.rs"]
mod tests;
