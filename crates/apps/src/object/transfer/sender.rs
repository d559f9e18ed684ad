//! The sending end: serves one version of an object of files.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::any_next::PendingRequests;
use namecast_packet::lp::NackReason;
use namecast_packet::tlv::Writer;
use namecast_packet::{
    AnyNextRequest, Certificate, Component, Data, Extensions, Interest, LpPacket, MAX_PACKET_SIZE,
    Name, Packet, Signer,
};
use namecast_stream::names::METADATA;
use namecast_units::{Bitrate, ByteSize, Duration, Instant};

use super::order::Order;
use super::packets::{FRESHNESS, Packets};
use super::{ContentKey, Contents, ContentsError, table_of};
use crate::object::{Server, ServerConfig, ServerError, parts};
use crate::receivers::{self, Heard, Pacing, ReceiverId, Receivers, Report, reporter};
use crate::{Application, Now, Output, face};

/// Segments that leave in one step: requests that come meanwhile are taken between two steps.
const BATCH: u32 = 32;
/// Pause after the content has left. Receivers that lack little fetch that by name; the others request again, as nothing comes.
const PAUSE: Duration = Duration::from_millis(100);
/// Without requests for so long, the next one begins at the first segment.
const IDLE: Duration = Duration::from_secs(2);

/// How fast segments leave for who requests any next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Policy {
    /// As fast as the fastest receiver requests.
    #[default]
    AsAsked,
    /// At this rate of whole frames, while any receiver requests.
    Rate(Bitrate),
    /// As fast as the receiver at this quantile of all can take them, while any requests: 0, the slowest. Until receivers have
    /// reported, as asked.
    Quantile(f64),
}

/// Configuration of a sender.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Name of the object, without a version.
    pub name: Name,
    /// What it holds.
    pub contents: Contents,
    /// How fast.
    pub policy: Policy,
    /// Key that seals a private object.
    pub key: Option<ContentKey>,
}

/// Gives the content of segments.
pub trait Source {
    /// Returns the content of segment `number`, parity included once there is any.
    ///
    /// # Errors
    /// If it is not what the table says any more, or cannot be read.
    fn read(&mut self, number: u64) -> Result<Bytes, SourceError>;
}

/// Why content cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(pub String);

/// Report of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// Parity is needed: make it, then call [`Sender::add_parity`]. Reported once.
    NeedsParity,
    /// Content cannot be read; Interests for it are refused.
    Failed(SourceError),
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounters {
    /// Segments that left for requests of any next.
    pub provided: u64,
    /// Of those, parity.
    pub parity: u64,
    /// Segments that answered Interests with their names.
    pub answered: u64,
    /// Interests sent back with a Nack.
    pub refused: u64,
    /// Reports of receivers.
    pub reports: u64,
    /// Packets that break the format.
    pub malformed: u64,
}

/// Sends an object: any next segments to who requests those, and whichever segment is requested by name.
///
/// A plain value: after each call take everything from `poll_output`.
pub struct Sender {
    config: SenderConfig,
    packets: Packets,
    source: Box<dyn Source + Send>,
    /// Signs, and serves table and certificate.
    server: Server,
    metadata: Data,
    order: Order,
    /// Those of its node, from the first on.
    requests: Option<PendingRequests>,
    token: Option<Bytes>,
    requested_at: Instant,
    /// When the next segment may leave.
    next_at: Instant,
    pacing: Option<Pacing>,
    parity: Parity,
    receivers: Receivers,
    outputs: VecDeque<Output<SenderEvent>>,
    counters: SenderCounters,
}

impl core::fmt::Debug for Sender {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sender")
            .field("config", &self.config)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// How far parity is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parity {
    /// Nobody has needed it so far, or there is none.
    Unneeded,
    /// All content has left once: whoever requests more needs parity.
    Due,
    /// It is being made, or there.
    Requested,
}

/// Why nothing can be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The table cannot be sent.
    #[error(transparent)]
    Contents(#[from] ContentsError),
    /// Name or certificate do not suit.
    #[error(transparent)]
    Server(#[from] ServerError),
}

impl Sender {
    /// A sender of `source`'s content, signed by `signer`, whose `certificate` it serves.
    ///
    /// # Errors
    /// If no object can have the name, the table cannot be sent, or the certificate is another key's.
    pub fn new(
        config: SenderConfig,
        (signer, certificate): (Box<dyn Signer + Send>, Certificate),
        source: Box<dyn Source + Send>,
        now: Now,
    ) -> Result<Self, SendError> {
        let table = config.contents.encode()?;
        let table = match &config.key {
            Some(key) => key.seal_table(&table),
            None => table.into(),
        };
        let mut server = Server::new(ServerConfig::new(config.name.clone()), signer, certificate)?;
        server.put(table_of(&config.name), table, now.wall)?;
        let flow = config
            .name
            .builder()
            .version(config.contents.version)
            .finish();
        let metadata = metadata(&config.name, &flow, (server.signer(), now));
        let sender = Self {
            order: Order::new(&config.contents),
            packets: Packets::new(&config.contents, flow, config.key.clone()),
            source,
            server,
            metadata,
            requests: None,
            token: None,
            requested_at: Instant::ZERO,
            next_at: Instant::ZERO,
            pacing: match config.policy {
                Policy::Quantile(quantile) => Some(Pacing::new(quantile)),
                Policy::AsAsked | Policy::Rate(_) => None,
            },
            parity: Parity::Unneeded,
            receivers: Receivers::default(),
            outputs: VecDeque::new(),
            counters: SenderCounters::default(),
            config,
        };
        let content = Bytes::from(vec![0; sender.config.contents.segment_size as usize]);
        let longest = sender
            .packets
            .build(u64::MAX, &content, sender.server.signer());
        match longest.wire().len() > MAX_PACKET_SIZE {
            true => Err(ServerError::LongName(sender.config.name).into()),
            false => Ok(sender),
        }
    }

    /// Returns the name with the version.
    pub const fn flow(&self) -> &Name {
        &self.packets.flow
    }

    /// Lets parity leave, which [`Source::read`] gives from now on.
    pub const fn add_parity(&mut self) {
        self.order.add_parity();
    }

    /// Returns the receivers that report, without those that have left.
    pub fn receivers(&self, now: Instant) -> Vec<(ReceiverId, Heard)> {
        self.receivers
            .present(now)
            .map(|(id, heard)| (*id, *heard))
            .collect()
    }

    /// Returns how many receivers have reported that they have all.
    pub const fn complete(&self) -> u64 {
        self.receivers.complete()
    }

    /// Returns what it counted.
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    fn handle_packet(&mut self, now: Instant, frame: Bytes) {
        match face::open(frame.clone()) {
            Ok(Some((Packet::Interest(interest), link))) if link.nack.is_none() => {
                let (object, ..) = parts(interest.name());
                let is_metadata = object.last() == Some(Component::keyword(METADATA))
                    && object.parent() == self.config.name;
                if let Some(value) = link.extensions.get(Extensions::ANY_NEXT) {
                    self.on_request(now, (&interest, value), link.pit_token.clone());
                } else if let Some(id) = reporter(self.flow(), interest.name()) {
                    self.on_report(now, (id, &interest), link.pit_token);
                } else if let Some((id, numbers)) = receivers::acknowledged(self.flow(), &interest)
                {
                    if let Some(pacing) = &mut self.pacing {
                        pacing.on_acknowledged(now, id, &numbers);
                    }
                } else if is_metadata {
                    let metadata = self.metadata.clone();
                    self.answer(&interest, &metadata, link.pit_token);
                } else if object == self.config.name {
                    self.on_interest(&interest, link.pit_token);
                } else {
                    self.server.handle_packet(now, frame);
                }
            }
            _ => self.counters.malformed += 1,
        }
    }

    /// Takes a request for any next segments.
    fn on_request(
        &mut self,
        now: Instant,
        (interest, value): (&Interest, &[u8]),
        token: Option<Bytes>,
    ) {
        let Some(request) = AnyNextRequest::decode(value) else {
            self.counters.malformed += 1;
            return;
        };
        if interest.name() != self.flow() {
            self.refuse(interest, token);
            return;
        }
        if now.since(self.requested_at) >= IDLE && self.pending() == 0 {
            self.order.restart();
        }
        self.requested_at = now;
        match &mut self.requests {
            Some(requests) => requests.update(&request),
            None => self.requests = Some(PendingRequests::new(&request)),
        }
        self.token = token.map(|token| Bytes::copy_from_slice(&token));
    }

    fn pending(&self) -> u16 {
        self.requests.as_ref().map_or(0, PendingRequests::count)
    }

    /// Takes an Interest for a segment, or for the newest version.
    fn on_interest(&mut self, interest: &Interest, token: Option<Bytes>) {
        let (_, version, segment) = parts(interest.name());
        let number = segment.unwrap_or(0);
        let is_ours = version.is_none_or(|it| it == self.config.contents.version);
        let is_here = is_ours && number < self.config.contents.segments();
        match is_here.then(|| self.segment(number)).flatten() {
            Some(data) => self.answer(interest, &data, token),
            None => self.refuse(interest, token),
        }
    }

    fn on_report(
        &mut self,
        now: Instant,
        (id, interest): (ReceiverId, &Interest),
        token: Option<Bytes>,
    ) {
        let report = interest.parameters().and_then(|it| Report::decode(&it));
        let is_whole = interest.check_parameters_digest().is_ok();
        let Some(report) = report.filter(|_| is_whole) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.reports += 1;
        let sender = (&mut self.receivers, self.pacing.as_mut());
        let answer = receivers::on_report(now, sender, (id, report));
        let data = Data::builder(interest.name().clone())
            .content(answer)
            .sign(self.server.signer());
        self.send(face::answer(data.wire().clone(), token));
    }

    fn answer(&mut self, interest: &Interest, data: &Data, token: Option<Bytes>) {
        if interest.matches(data) {
            self.counters.answered += 1;
            self.send(face::answer(data.wire().clone(), token));
        } else {
            self.refuse(interest, token);
        }
    }

    fn refuse(&mut self, interest: &Interest, token: Option<Bytes>) {
        self.counters.refused += 1;
        self.send(face::refusal(interest, token, NackReason::None));
    }

    fn send(&mut self, frame: Bytes) {
        self.outputs.push_back(Output::Send(frame));
    }

    /// Reads and signs a segment.
    fn segment(&mut self, number: u64) -> Option<Data> {
        match self.source.read(number) {
            Ok(content) => {
                let signer = self.server.signer();
                Some(self.packets.build(number, &content, signer))
            }
            Err(error) => {
                self.outputs
                    .push_back(Output::Event(SenderEvent::Failed(error)));
                None
            }
        }
    }

    /// Sends segments that are requested and due.
    fn provide(&mut self, now: Instant) {
        for _ in 0..BATCH {
            let is_held = self.pacing.as_ref().is_some_and(|it| !it.may_send());
            if self.next_at > now || self.pending() == 0 || is_held {
                return;
            }
            let number = self.order.next();
            let Some(data) = self.segment(number) else {
                self.requests = None;
                return;
            };
            let Some(link) = self.requests.as_mut().and_then(PendingRequests::answer) else {
                return;
            };
            self.counters.provided += 1;
            self.counters.parity += u64::from(number >= self.config.contents.segments());
            let frame = self.frame(data.wire().clone(), link);
            let size = ByteSize::of(&frame);
            self.send(frame);
            if let Policy::Rate(rate) = self.config.policy {
                self.next_at = self.next_at.max(now) + size / rate;
            }
            if let Some(pacing) = &mut self.pacing {
                pacing.on_sent(now, number);
            }
            if self.order.is_after_content() {
                self.end_content(now);
            }
        }
    }

    /// Data with its number on the link, and the requests to spare.
    fn frame(&self, data: Bytes, link: u32) -> Bytes {
        let mut packet = LpPacket {
            pit_token: self.token.clone(),
            ..LpPacket::carrying(data)
        };
        let fields = &mut packet.extensions;
        fields.set(Extensions::ANY_NEXT, link.to_be_bytes());
        fields.set_number(Extensions::MIN_PENDING_REQUESTS, self.pending().into());
        packet.encode()
    }

    /// After the content: waits for requests anew, and for parity if some are pending.
    fn end_content(&mut self, now: Instant) {
        if let Some(requests) = &mut self.requests {
            requests.withdraw();
        }
        self.next_at = now + PAUSE;
        if self.parity == Parity::Unneeded && self.config.contents.coding.is_some() {
            self.parity = Parity::Due;
        }
    }

    /// Requests parity once content has left and there are requests still.
    fn request_parity(&mut self, now: Instant) {
        if self.parity == Parity::Due && self.pending() > 0 && self.next_at <= now {
            self.parity = Parity::Requested;
            let event = SenderEvent::NeedsParity;
            self.outputs.push_back(Output::Event(event));
        }
    }
}

/// Signs `/<name>/32=metadata/v=<time>/seg=0`, whose content is the name with the version.
fn metadata(name: &Name, flow: &Name, (signer, now): (&dyn Signer, Now)) -> Data {
    let name = name
        .builder()
        .keyword(METADATA)
        .version(now.wall.as_micros());
    let mut content = Writer::default();
    flow.encode(&mut content);
    Data::builder(name.segment(0).finish())
        .freshness(FRESHNESS)
        .final_block(Name::root().builder().segment(0).finish())
        .content(content.finish())
        .sign(signer)
}

impl Application for Sender {
    type Event = SenderEvent;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.server.handle_timeout(now.monotonic);
        self.request_parity(now.monotonic);
        if let Some(pacing) = &mut self.pacing {
            pacing.handle_timeout(now.monotonic);
        }
        self.provide(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let may_send = self.pacing.as_ref().is_none_or(Pacing::may_send);
        let provide = (self.pending() > 0 && may_send).then_some(self.next_at);
        let pacing = self.pacing.as_ref().and_then(Pacing::poll_timeout);
        let all = [self.server.poll_timeout(), provide, pacing];
        all.into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output<SenderEvent>> {
        if let Some(output) = self.outputs.pop_front() {
            return Some(output);
        }
        let frame = self.server.poll_output();
        // Nothing is put on request.
        while let Some(crate::object::Requested(name)) = self.server.poll_event() {
            self.server.refuse(&name);
        }
        frame
            .or_else(|| self.server.poll_output())
            .map(Output::Send)
    }
}
