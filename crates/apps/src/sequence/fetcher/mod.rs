//! Fetches numbered Data as fast as a controller allows.

mod config;
mod figures;
mod repair;
mod uplink;

impl Application for Fetcher {
    type Event = Fetched;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        if let Some(frame) = Self::poll_output(self) {
            return Some(Output::Send(frame));
        }
        self.poll_fetched().map(Output::Event)
    }
}

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::tlv::{self, Fields, Reader};
use namecast_packet::{
    Component, Data, DecodeError, Extensions, Interest, InterestTemplate, LpPacket, Nonce,
    any_next, lp::NackReason,
};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::path::{Feedback, NumberedAnswer, Received, Unanswered};
use namecast_units::{Bitrate, ByteSize, Instant, Random};

pub use config::{Delivery, FetcherConfig};
pub use figures::{Fetched, Figures, Sample, Segment};
pub use repair::{Ended, Ending, Repair};

use super::server::Server;
use crate::receivers::Reporting;
use crate::{Application, Now, Output, face};
use figures::{Sampler, Segments, State};
use repair::{RepairOutput, Repairs};
use uplink::{Flow, Uplink};

/// Fetches `/<prefix>/seq=<n>` for consecutive n, as fast as its controller allows.
///
/// A plain value: give it packets and the time, and take everything from [`poll_output`](Self::poll_output) after each
/// call. Nothing is asked for before [`start`](Self::start).
///
/// [`NumberedPaths`](namecast_stream::path::NumberedPaths) decides what is sent and when, and what is lost; or
/// [`AnyNext`](namecast_stream::path::AnyNext), with that [delivery](Delivery).
pub struct Fetcher {
    config: FetcherConfig,
    template: InterestTemplate,
    flow: Flow,
    verifier: Option<SharedVerifier>,
    uplink: Uplink,
    /// From the start on, if it reports.
    reporting: Option<Reporting>,
    random: Random,
    /// From the start on, of a flow that ends; and what serves neighbours.
    repairs: Option<Repairs>,
    server: Option<Server>,
    /// Reports, acknowledgements and repair to be sent.
    frames: VecDeque<Bytes>,
    fetched: VecDeque<Fetched>,
    sampler: Sampler,
    segments: Segments,
    figures: Figures,
}

impl core::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Fetcher")
            .field("prefix", &self.config.prefix)
            .field("figures", &self.figures())
            .finish_non_exhaustive()
    }
}

/// What the link says of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    is_marked: bool,
    feedback: Feedback,
    /// Number of any next Data on the link.
    number: Option<u32>,
    /// The whole frame.
    frame: ByteSize,
    /// The node's face that it came from, where the node says that.
    face: Option<u64>,
}

/// What a Data packet says, as far as a fetcher looks.
struct Found {
    number: u64,
    size: ByteSize,
}

impl Fetcher {
    /// A fetcher that waits for [`start`](Self::start), and takes Data unverified.
    pub fn new(config: FetcherConfig) -> Self {
        let interest = Interest::builder(config.prefix.clone());
        let interest = interest.lifetime(config.requests.lifetime);
        let interval = config.sample_interval.unwrap_or_default();
        Self {
            template: interest.template(Component::SEQUENCE),
            verifier: None,
            flow: Flow::new(&config),
            uplink: Uplink::new(&config),
            reporting: None,
            random: Random::from_seed(config.requests.seed),
            repairs: None,
            server: None,
            frames: VecDeque::new(),
            fetched: VecDeque::new(),
            sampler: Sampler::new(interval, config.max_samples),
            segments: Segments::default(),
            figures: Figures::default(),
            config,
        }
    }

    /// The same fetcher, which drops Data that `verifier` does not accept.
    #[must_use]
    pub fn verifying(mut self, verifier: SharedVerifier) -> Self {
        self.verifier = Some(verifier);
        self
    }

    /// Starts, or goes on after [`stop`](Self::stop).
    pub fn start(&mut self, now: Instant) {
        self.sampler.start(now);
        self.segments.start(now);
        self.uplink.start(now);
        let flow = &self.config.prefix;
        let begin = |id| Reporting::new(now, (flow.clone(), id), &mut self.random);
        self.reporting = self.config.reports_as.map(begin);
        if let (Some(ending), None) = (self.config.ending, &self.repairs) {
            self.repairs = Some(Repairs::new(now, self.config.prefix.clone(), ending));
            let serves = ending.repair == Repair::FromPeers;
            let server = serves.then(|| Server::new(self.config.server.clone()).ok());
            self.server = server.flatten();
        }
        self.settle(now);
    }

    /// Requests nothing more, neither new nor lost. What is out still counts.
    pub fn stop(&mut self, now: Instant) {
        self.sample(now);
        self.reporting = None;
        self.uplink.stop();
    }

    /// Takes a packet from the face: Data, or what the link says about one.
    pub fn handle_packet(&mut self, now: Instant, wire: Bytes) {
        self.sample(now);
        self.on_frame(now, wire);
        self.settle(now);
    }

    fn on_frame(&mut self, now: Instant, wire: Bytes) {
        let frame = ByteSize::of(&wire);
        if wire.first().copied().map(u32::from) == Some(tlv::INTEREST) {
            self.serve(&wire, None);
        } else if wire.first().copied().map(u32::from) == Some(tlv::DATA) {
            let link = Link {
                frame,
                ..Link::default()
            };
            self.on_wire(now, wire, &link);
        } else if let Ok(packet) = LpPacket::decode(wire) {
            let link = Link {
                is_marked: packet.congestion_mark > 0,
                feedback: Feedback::read(&packet.extensions),
                number: (packet.extensions.get(Extensions::ANY_NEXT))
                    .and_then(any_next::decode_number),
                frame,
                face: packet.incoming_face,
            };
            let had = packet.extensions.get(Extensions::CHUNKS_HAD);
            if let (Some(repairs), Some(had)) = (&mut self.repairs, had) {
                repairs.on_announcement(now, had);
            }
            match (packet.nack, packet.fragment) {
                (Some(reason), Some(interest)) => self.on_nack(now, interest, reason),
                (None, Some(wire)) => match wire.first().copied().map(u32::from) {
                    Some(tlv::INTEREST) => self.serve(&wire, packet.pit_token),
                    _ => self.on_wire(now, wire, &link),
                },
                (_, None) => {}
            }
        } else {
            self.figures.malformed += 1;
        }
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sample(now);
        if let Some(reporting) = &mut self.reporting {
            // A flow has no end.
            let state = (self.figures.data, u64::MAX);
            let report = reporting.poll_report(now, state, &mut self.random);
            self.frames.extend(report.map(|it| it.wire().clone()));
        }
        self.uplink.handle_timeout(now);
        self.settle(now);
    }

    /// Requests what is missing, and tells neighbours what is not.
    fn settle(&mut self, now: Instant) {
        let Some(repairs) = &mut self.repairs else {
            return;
        };
        if self.uplink.is_numbered() {
            return repairs.end_numbered(now, self.uplink.is_done());
        }
        let Some(any_next) = self.uplink.any_next() else {
            return;
        };
        let size = ByteSize::bytes(self.config.server.content_size as u64);
        repairs.settle(now, any_next, size);
        let ending = self.config.ending;
        any_next
            .set_needed(ending.map_or(u64::MAX, |it| it.count.saturating_sub(any_next.received())));
        while let Some(output) = repairs.poll_output() {
            self.frames.push_back(match output {
                RepairOutput::Frame(frame) => frame,
                RepairOutput::Request(number, avoid_face) => {
                    let nonce = Nonce::draw(&mut self.random);
                    face::request(&self.template.build(number, nonce), avoid_face)
                }
            });
        }
    }

    /// Answers a neighbour's Interest, if the number has come.
    fn serve(&mut self, interest: &Bytes, token: Option<Bytes>) {
        let number = super::server::name_of(interest).ok();
        let number = number.and_then(|it| super::number_in(&self.config.prefix, it.value()));
        let (Some(server), Some(number)) = (&mut self.server, number) else {
            return;
        };
        let any_next = self.uplink.any_next();
        let is_here = any_next.is_some_and(|it| it.next_missing(number, number + 1).is_none());
        if is_here && let Some(data) = server.data(number) {
            self.figures.served += 1;
            self.frames.push_back(face::answer(data, token));
        }
    }

    /// What became of a flow that ends.
    pub fn ended(&self) -> Option<&Ended> {
        self.repairs.as_ref().map(Repairs::ended)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let report = self.reporting.as_ref().map(Reporting::next_at);
        let repairs = self.repairs.as_ref().and_then(Repairs::poll_timeout);
        let all = [self.uplink.poll_timeout(), report, repairs];
        all.into_iter().flatten().min()
    }

    /// The next packet to send, until `None`.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        let frame = self.frames.pop_front();
        frame.or_else(|| self.uplink.poll_output(&self.template, &self.flow))
    }

    /// The next number that came, if the configuration wants them kept.
    pub fn poll_fetched(&mut self) -> Option<Fetched> {
        self.fetched.pop_front()
    }

    /// What it counted.
    pub fn figures(&self) -> Figures {
        Figures {
            requests: self.uplink.counters(),
            in_flight: self.uplink.in_flight() as u64,
            ..self.figures
        }
    }

    /// What each interval since the start brought.
    pub fn samples(&self) -> &[Sample] {
        self.sampler.samples()
    }

    /// The segments that are complete, the first [`MAX_SEGMENTS`](Segment::MAX) of them, and when Data first came from producers again
    /// after most had come from caches.
    pub fn segments(&self) -> (&[Segment], &[Instant]) {
        self.segments.get()
    }

    /// The paths in use.
    pub fn paths(&self) -> usize {
        self.uplink.paths()
    }

    /// The bandwidth of content that the controller takes to be its own.
    pub fn estimate(&self) -> Option<Bitrate> {
        self.uplink.estimate()
    }

    /// Whether every number has come, or been given up, and nothing is under way.
    pub fn is_done(&self) -> bool {
        self.uplink.is_done()
    }

    /// Closes the intervals of the samples before anything changes.
    fn sample(&mut self, now: Instant) {
        if self.sampler.is_due(now) {
            let state = State {
                estimate: self.estimate(),
                window: self.uplink.window(),
                in_flight: self.uplink.in_flight(),
            };
            self.sampler.advance(now, &state);
        }
    }

    fn on_wire(&mut self, now: Instant, wire: Bytes, link: &Link) {
        let whole = ByteSize::of(&wire);
        let found = match &self.verifier {
            None => self.read(&wire),
            Some(verifier) => match Data::decode(wire.clone()) {
                Ok(data) if data.verify(&**verifier).is_err() => {
                    self.figures.unverified += 1;
                    return;
                }
                Ok(data) => self.read(data.wire()),
                Err(error) => Err(error),
            },
        };
        match found {
            Ok(Some(found)) => self.on_data(now, &found, (whole, link)),
            Ok(None) => self.on_other_data(now, wire),
            Err(_) => self.figures.malformed += 1,
        }
    }

    /// Takes Data that are none of the flow's: the answer to a report, or nothing of use.
    fn on_other_data(&mut self, now: Instant, wire: Bytes) {
        let data = Data::decode(wire);
        let answered = match (&mut self.reporting, data) {
            (Some(reporting), Ok(data)) if reporting.is_answer(data.name()) => {
                reporting.on_answer(now, &data).is_ok()
            }
            _ => false,
        };
        self.figures.unasked += u64::from(!answered);
    }

    /// Number and size of a Data packet, whose structure is checked but not kept. `None`: it has another name.
    fn read(&self, wire: &[u8]) -> Result<Option<Found>, DecodeError> {
        const ORDER: [u32; 4] = [
            tlv::META_INFO,
            tlv::CONTENT,
            tlv::SIGNATURE_INFO,
            tlv::SIGNATURE_VALUE,
        ];
        let missing = || DecodeError::new("Data", wire.len(), namecast_packet::Problem::Missing);
        let whole = Reader::new(wire).only("Data", tlv::DATA)?;
        let mut reader = Reader::within(wire, whole.value);
        let name = reader
            .element("Name")?
            .filter(|name| name.element_type == tlv::NAME);
        let name = name.ok_or_else(missing)?;
        let mut size = ByteSize::ZERO;
        let mut last = 0;
        let mut fields = Fields::new(reader, "Data", &ORDER);
        while let Some(field) = fields.field()? {
            if field.element_type == tlv::CONTENT {
                size = ByteSize::of(&wire[field.value.clone()]);
            }
            last = field.element_type;
        }
        if last != tlv::SIGNATURE_VALUE {
            return Err(missing());
        }
        let number = super::number_in(&self.config.prefix, &wire[name.value]);
        Ok(number.map(|number| Found { number, size }))
    }

    fn on_data(&mut self, now: Instant, found: &Found, (whole, link): (ByteSize, &Link)) {
        let received = Received {
            size: found.size,
            congestion_marked: link.is_marked,
            feedback: link.feedback.of_content(found.size, whole),
        };
        let before = self.uplink.progress();
        let numbers = (found.number, link.number);
        let mut answer = self.uplink.handle_data(now, numbers, &received);
        if let Some(repairs) = &mut self.repairs {
            let how = (link.is_marked, link.face);
            let is_any_next = link.number.is_some();
            let was_requested = repairs.on_data(now, found.number, how, is_any_next);
            if let Some(any_next) = self.uplink.any_next()
                && was_requested
                && !is_any_next
            {
                answer = any_next.handle_repair(now, found.number);
            }
            if let Some(any_next) = self.uplink.any_next()
                && answer.is_ok()
            {
                repairs.on_number(found.number, any_next);
            }
        }
        if let Some(reporting) = &mut self.reporting {
            let acknowledged = reporting.acknowledge(found.number, &mut self.random);
            self.frames.extend(acknowledged.map(|it| it.wire().clone()));
            if answer.is_ok() {
                reporting.on_content(found.size.as_bytes());
            }
        }
        match answer {
            Ok(answer) => {
                self.figures.on_data(found.size, &answer);
                self.figures.wire += link.frame;
                self.figures.congestion_marks += u64::from(link.is_marked);
                if self.config.requests.segment.is_some() {
                    let is_last = self.uplink.progress().index != before.index;
                    self.segments.on_data(now, &received, is_last);
                }
                self.sampler.on_data(&received, answer.rtt);
                self.keep_fetched(now, found, &answer);
            }
            Err(Unanswered::Duplicate) => self.figures.duplicates += 1,
            Err(Unanswered::NotRequested) => self.figures.unasked += 1,
        }
    }

    fn keep_fetched(&mut self, now: Instant, found: &Found, answer: &NumberedAnswer) {
        if self.config.max_fetched == 0 {
            return;
        }
        if self.fetched.len() >= self.config.max_fetched {
            self.fetched.pop_front();
        }
        self.fetched.push_back(Fetched {
            sequence: found.number,
            delay: now.since(answer.sent_at),
            full_delay: now.since(answer.first_sent_at),
            transmissions: answer.transmissions,
            size: found.size,
        });
    }

    /// Takes an Interest that came back.
    fn on_nack(&mut self, now: Instant, interest: Bytes, reason: NackReason) {
        let Ok(interest) = Interest::decode(interest) else {
            self.figures.malformed += 1;
            return;
        };
        let number = super::number_in(&self.config.prefix, interest.name().value());
        let is_ours = number.is_some() || *interest.name() == self.config.prefix;
        let is_congestion = reason == NackReason::Congestion;
        let what = (number, interest.nonce());
        let repairs = self.repairs.as_mut().zip(number);
        let is_repair = repairs.is_some_and(|(it, number)| it.on_nack(now, number));
        let is_out = is_ours && (is_repair || self.uplink.handle_nack(now, what, is_congestion));
        self.figures.unasked += u64::from(!is_out);
    }
}
