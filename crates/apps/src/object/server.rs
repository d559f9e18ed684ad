//! The serving end of objects.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::tlv::Writer;
use namecast_packet::{
    Certificate, Component, Data, Interest, MAX_PACKET_SIZE, Name, Packet, Signer,
};
use namecast_stream::names::METADATA;
use namecast_units::{ByteSize, Instant, Timestamp};

use super::parts;
use crate::discovery::certificates;
use crate::{Application, Now, Output, face};

/// Largest content of a segment: leaves 800 octets of a packet for name and signature.
const MAX_SEGMENT_SIZE: usize = 8_000;
/// Default content of a segment: with its signature and names of 60 octets it takes three datagrams of 1400 octets, or four of 1172.
const SEGMENT_SIZE: usize = 3_800;
/// How long caches may take an object for the newest whose name ends in a number, as that of a part of a series: it has one version.
const NUMBERED_FRESHNESS: Duration = Duration::from_secs(3_600);
/// Versions of one object: the newest, and the one before it for those who are fetching it.
const MAX_VERSIONS: usize = 2;

/// What to serve, within which bounds.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What all names start with.
    pub prefix: Name,
    /// Content of each segment but the last, in octets: 1 to 8000.
    pub segment_size: usize,
    /// How long caches may take a version for the newest.
    pub freshness: Duration,
    /// Names of objects.
    pub max_objects: usize,
    /// Content of all objects.
    pub max_size: ByteSize,
    /// Interests that wait for objects to be put.
    pub max_pending: usize,
    /// How long an Interest waits, if its own lifetime is longer.
    pub max_lifetime: Duration,
    /// Packets kept until they are polled; those beyond are dropped.
    pub max_output: usize,
}

impl ServerConfig {
    /// Serves up to 256 MiB under `prefix`, in segments of 3800 octets.
    pub const fn new(prefix: Name) -> Self {
        Self {
            prefix,
            segment_size: SEGMENT_SIZE,
            freshness: Duration::from_secs(1),
            max_objects: 65_536,
            max_size: ByteSize::mebibytes(256),
            max_pending: 1_024,
            max_lifetime: Duration::from_secs(10),
            max_output: 4_096,
        }
    }
}

/// Why a server cannot be made, or an object cannot be put.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The certificate is another key's.
    #[error("certificate {0} is not of the key that signs")]
    Certificate(Name),
    /// Segments cannot have this size.
    #[error("segments of {0} octets: expected 1 to 8000")]
    SegmentSize(usize),
    /// An object cannot have this name.
    #[error("{0} is no name of an object: expected one under {1}, without version, segment or key")]
    Name(Name, Name),
    /// The name leaves a segment no room in a packet.
    #[error(
        "packets of {0} are larger than 8800 octets: choose a shorter name or smaller segments"
    )]
    LongName(Name),
    /// Objects that are to stay take all the room.
    #[error("no room for {0}: remove objects, or raise max_objects or max_size")]
    Full(Name),
}

/// The name of an object that Interests wait for, and that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested(pub Name);

/// What became of packets that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Interests answered by Data.
    pub answered: u64,
    /// Interests answered by a Nack.
    pub refused: u64,
    /// Interests whose lifetime ended while they waited.
    pub expired: u64,
    /// Packets that break the format, or hold no Interest.
    pub malformed: u64,
    /// Interests and answers dropped because a table was full.
    pub overflow: u64,
}

/// An object with its newest versions, the newest last.
#[derive(Debug)]
struct Stored {
    versions: VecDeque<Version>,
    /// It was put because a stranger requested it, so it may be dropped.
    is_on_request: bool,
}

#[derive(Debug)]
struct Version {
    number: u64,
    size: u64,
    segments: Vec<Data>,
    /// Names this version, for those who look for it by realtime data retrieval (RDR), as ndn-cxx, ndnd and NDNts do.
    metadata: Data,
}

/// An Interest that waits for its object.
#[derive(Debug)]
struct Waiter {
    interest: Interest,
    pit_token: Option<Bytes>,
    expires_at: Instant,
}

/// Serves objects under one prefix, each segment signed, and the signer's certificate.
///
/// After each call take everything from [`poll_output`](Self::poll_output) and [`poll_event`](Self::poll_event), and call
/// [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout). Early or repeated calls are harmless.
pub struct Server {
    config: ServerConfig,
    signer: Box<dyn Signer + Send>,
    certificate: Certificate,
    /// What names of the signer's certificates start with.
    certificates: Name,
    objects: BTreeMap<Name, Stored>,
    /// Objects that may be dropped, the oldest first.
    on_request: VecDeque<Name>,
    /// Content of all objects.
    size: u64,
    pending: BTreeMap<Name, Vec<Waiter>>,
    /// Pending objects that no event has told of yet.
    requested: VecDeque<Name>,
    outputs: VecDeque<Bytes>,
    counters: ServerCounters,
}

impl core::fmt::Debug for Server {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Server")
            .field("config", &self.config)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server without objects, which signs with `signer` and serves the signer's `certificate`.
    ///
    /// # Errors
    /// If `certificate` is not the signer's, or segments cannot have the configured size.
    pub fn new(
        config: ServerConfig,
        signer: Box<dyn Signer + Send>,
        certificate: Certificate,
    ) -> Result<Self, ServerError> {
        let locator = signer.info().key_locator;
        if !locator.is_some_and(|locator| certificate.matches(&locator)) {
            return Err(ServerError::Certificate(certificate.name().clone()));
        }
        if !(1..=MAX_SEGMENT_SIZE).contains(&config.segment_size) {
            return Err(ServerError::SegmentSize(config.segment_size));
        }
        Ok(Self {
            config,
            signer,
            certificates: certificates(&certificate.identity()),
            certificate,
            objects: BTreeMap::new(),
            on_request: VecDeque::new(),
            size: 0,
            pending: BTreeMap::new(),
            requested: VecDeque::new(),
            outputs: VecDeque::new(),
            counters: ServerCounters::default(),
        })
    }

    /// Publishes `content` as the newest version of `name`, and answers the Interests that waited for it. Returns the name
    /// with the version, which is `wall` in microseconds.
    ///
    /// The version before it stays available until the next one. An object stays until it is removed; one that was put in
    /// answer to [`poll_event`](Self::poll_event) is dropped when others need the room.
    ///
    /// # Errors
    /// If no object can have this name, or there is no room for it.
    pub fn put(
        &mut self,
        name: Name,
        content: Bytes,
        wall: Timestamp,
    ) -> Result<Name, ServerError> {
        if !self.is_object(&name) {
            return Err(ServerError::Name(name, self.config.prefix.clone()));
        }
        let newest = self.objects.get(&name).and_then(|it| it.versions.back());
        let after = newest.map_or(0, |newest| newest.number.saturating_add(1));
        let number = wall.as_micros().max(after);
        let versioned = name.builder().version(number).finish();
        let size = content.len() as u64;
        self.make_room(&name, size)?;
        let is_numbered = name.last().is_some_and(|it| it.kind == Component::SEQUENCE);
        let freshness = match is_numbered {
            true => NUMBERED_FRESHNESS,
            false => self.config.freshness,
        };
        let segments = self.sign(&versioned, &content, freshness)?;
        let metadata = self.sign_metadata(&name, &versioned, number)?;
        let is_on_request = self.pending.contains_key(&name) && !self.requested.contains(&name);
        let stored = self.objects.entry(name.detached()).or_insert_with(|| {
            if is_on_request {
                self.on_request.push_back(name.detached());
            }
            Stored {
                versions: VecDeque::new(),
                is_on_request,
            }
        });
        if stored.versions.len() == MAX_VERSIONS {
            self.size -= stored.versions.pop_front().map_or(0, |oldest| oldest.size);
        }
        self.size += size;
        let first = segments[0].wire().clone();
        stored.versions.push_back(Version {
            number,
            size,
            segments,
            metadata,
        });
        for waiter in self.withdraw(&name) {
            self.reply(first.clone(), waiter.pit_token);
        }
        Ok(versioned)
    }

    /// Signs the segments of `content`.
    fn sign(
        &self,
        versioned: &Name,
        content: &Bytes,
        freshness: Duration,
    ) -> Result<Vec<Data>, ServerError> {
        let size = self.config.segment_size;
        let last = content.len().saturating_sub(1) / size;
        let end = Name::root().builder().segment(last as u64).finish();
        let segments = (0..=last).map(|number| {
            let from = number * size;
            let part = content.slice(from..content.len().min(from + size));
            let freshness = match number {
                0 => freshness,
                _ => Duration::ZERO,
            };
            let data = Data::builder(versioned.builder().segment(number as u64).finish())
                .freshness(freshness)
                .final_block(end.clone())
                .content(part)
                .sign(&*self.signer);
            let fits = data.wire().len() <= MAX_PACKET_SIZE;
            fits.then_some(data)
                .ok_or_else(|| ServerError::LongName(versioned.clone()))
        });
        segments.collect()
    }

    /// Signs `/<name>/32=metadata/v=<version>/seg=0`, whose content is the name with the version.
    fn sign_metadata(
        &self,
        name: &Name,
        versioned: &Name,
        number: u64,
    ) -> Result<Data, ServerError> {
        let name = name.builder().keyword(METADATA).version(number);
        let mut content = Writer::default();
        versioned.encode(&mut content);
        let data = Data::builder(name.segment(0).finish())
            .freshness(self.config.freshness)
            .final_block(Name::root().builder().segment(0).finish())
            .content(content.finish())
            .sign(&*self.signer);
        let fits = data.wire().len() <= MAX_PACKET_SIZE;
        fits.then_some(data)
            .ok_or_else(|| ServerError::LongName(versioned.clone()))
    }

    /// Drops objects that were put on request until there is room for `size` more octets of `name`.
    fn make_room(&mut self, name: &Name, size: u64) -> Result<(), ServerError> {
        let versions = self.objects.get(name).map(|stored| &stored.versions);
        let outdated = versions.filter(|versions| versions.len() == MAX_VERSIONS);
        let freed = outdated.map_or(0, |versions| versions[0].size);
        let more = usize::from(versions.is_none());
        loop {
            let total = (self.size - freed).saturating_add(size);
            if total <= self.config.max_size.as_bytes()
                && self.objects.len() + more <= self.config.max_objects
            {
                return Ok(());
            }
            let other = self.on_request.iter().find(|other| *other != name);
            let Some(other) = other.cloned() else {
                return Err(ServerError::Full(name.clone()));
            };
            self.remove(&other);
        }
    }

    /// Returns what signs.
    pub(crate) fn signer(&self) -> &dyn Signer {
        &*self.signer
    }

    /// Removes all versions of `name`. Returns whether there were any.
    pub fn remove(&mut self, name: &Name) -> bool {
        let Some(stored) = self.objects.remove(name) else {
            return false;
        };
        self.size -= stored.versions.iter().map(|it| it.size).sum::<u64>();
        if stored.is_on_request {
            self.on_request.retain(|other| other != name);
        }
        true
    }

    /// Refuses the Interests that wait for `name`, by a Nack.
    pub fn refuse(&mut self, name: &Name) {
        for waiter in self.withdraw(name) {
            self.send_back(&waiter.interest, waiter.pit_token);
        }
    }

    /// Takes the Interests that wait for `name` out of the table.
    fn withdraw(&mut self, name: &Name) -> Vec<Waiter> {
        self.requested.retain(|requested| requested != name);
        self.pending.remove(name).unwrap_or_default()
    }

    /// Whether an object can have this name.
    fn is_object(&self, name: &Name) -> bool {
        let is_end = |last: Component<'_>| {
            matches!(last.kind, Component::VERSION | Component::SEGMENT)
                || last == Component::keyword(METADATA)
        };
        self.config.prefix.is_prefix_of(name)
            && name.last().is_some_and(|last| !is_end(last))
            && !self.certificates.is_prefix_of(name)
    }

    /// Takes what an application face received: an Interest, bare or in a link packet. Anything else is counted. An Interest
    /// for what does not exist is refused by a Nack, unless its object may be put yet.
    pub fn handle_packet(&mut self, now: Instant, wire: Bytes) {
        self.handle_timeout(now);
        match face::open(wire) {
            Ok(Some((Packet::Interest(interest), link))) if link.nack.is_none() => {
                self.handle_interest(now, interest, link.pit_token);
            }
            _ => self.counters.malformed += 1,
        }
    }

    fn handle_interest(&mut self, now: Instant, interest: Interest, pit_token: Option<Bytes>) {
        let name = interest.name();
        let may_be_put =
            interest.can_be_prefix() && self.is_object(name) && !self.objects.contains_key(name);
        match may_be_put && self.find(&interest).is_none() {
            true => self.hold(now, interest, pit_token),
            false => self.answer(&interest, pit_token),
        }
    }

    /// Answers `interest` by what is put, or refuses it.
    pub(crate) fn answer(&mut self, interest: &Interest, pit_token: Option<Bytes>) {
        let found = self.find(interest).map(|data| data.wire().clone());
        match found {
            Some(wire) => self.reply(wire, pit_token),
            None => self.send_back(interest, pit_token),
        }
    }

    /// The packet that answers `interest`: the first segment of the newest version, or the one that is named.
    fn find(&self, interest: &Interest) -> Option<&Data> {
        let data = if self.certificates.is_prefix_of(interest.name()) {
            self.certificate.data()
        } else {
            let (object, version, segment) = parts(interest.name());
            if object.last() == Some(Component::keyword(METADATA)) {
                let metadata = &self
                    .objects
                    .get(&object.parent())?
                    .versions
                    .back()?
                    .metadata;
                return interest.matches(metadata).then_some(metadata);
            }
            let versions = &self.objects.get(&object)?.versions;
            let version = match version {
                Some(number) => versions.iter().find(|version| version.number == number),
                None => versions.back(),
            };
            let number = usize::try_from(segment.unwrap_or(0)).ok()?;
            version?.segments.get(number)?
        };
        interest.matches(data).then_some(data)
    }

    /// Lets `interest` wait for its object.
    fn hold(&mut self, now: Instant, interest: Interest, pit_token: Option<Bytes>) {
        let name = interest.name().detached();
        let expires_at = now + interest.lifetime().min(self.config.max_lifetime);
        let waiter = Waiter {
            interest,
            pit_token,
            expires_at,
        };
        let waiting = self.pending.get_mut(&name);
        let mut same = waiting.into_iter().flatten();
        if let Some(same) = same.find(|other| other.pit_token == waiter.pit_token) {
            // It was retransmitted: one answer is enough.
            *same = waiter;
            return;
        }
        if self.pending() >= self.config.max_pending {
            self.counters.overflow += 1;
            return;
        }
        let waiting = self.pending.entry(name.clone()).or_default();
        if waiting.is_empty() {
            self.requested.push_back(name);
        }
        waiting.push(waiter);
    }

    fn reply(&mut self, data: Bytes, pit_token: Option<Bytes>) {
        self.counters.answered += 1;
        self.push(face::answer(data, pit_token));
    }

    fn send_back(&mut self, interest: &Interest, pit_token: Option<Bytes>) {
        self.counters.refused += 1;
        // Not NoRoute: by that, nodes would give up the route that led here.
        self.push(face::refusal(interest, pit_token, NackReason::None));
    }

    fn push(&mut self, packet: Bytes) {
        if self.outputs.len() < self.config.max_output {
            self.outputs.push_back(packet);
        } else {
            self.counters.overflow += 1;
        }
    }

    /// Drops Interests whose lifetime has ended. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        let before = self.pending();
        self.pending.retain(|_, waiting| {
            waiting.retain(|waiter| waiter.expires_at > now);
            !waiting.is_empty()
        });
        self.requested
            .retain(|name| self.pending.contains_key(name));
        self.counters.expired += (before - self.pending()) as u64;
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiters = self.pending.values().flatten();
        waiters.map(|waiter| waiter.expires_at).min()
    }

    /// The next packet for the application face, until `None`: Data, in a link packet only if the Interest's PIT token goes
    /// with it; or a Nack.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }

    /// The next object that was requested and does not exist, until `None`: [`put`](Self::put) it, or
    /// [`refuse`](Self::refuse) it. Each is returned once while Interests wait for it.
    pub fn poll_event(&mut self) -> Option<Requested> {
        self.requested.pop_front().map(Requested)
    }

    /// Interests that wait for objects to be put.
    pub fn pending(&self) -> usize {
        self.pending.values().map(Vec::len).sum()
    }

    /// Content of all objects, older versions included.
    pub const fn size(&self) -> ByteSize {
        ByteSize::bytes(self.size)
    }

    /// What became of packets that arrived.
    pub const fn counters(&self) -> &ServerCounters {
        &self.counters
    }
}

impl Application for Server {
    type Event = Requested;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Output<Requested>> {
        if let Some(packet) = Self::poll_output(self) {
            return Some(Output::Send(packet));
        }
        self.poll_event().map(Output::Event)
    }
}
