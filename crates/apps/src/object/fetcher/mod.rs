//! The requesting end of one object.
//!
//! ```text
//!  Discovering ──a segment──▶ Certifying ──its key──▶ Pulling ──all segments──▶ Fetched
//!       ▲    └──────────── the key is known ────────────▲ │
//!       └───────────── wrong signature, or the version is gone
//! ```

mod config;
mod segments;
mod signer;

use std::collections::VecDeque;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, LpPacket, Name, Packet};
use namecast_stream::consumer::Delivery;
use namecast_stream::path::{
    self, Client, Feedback, Kind, Object, Received, Requester, RequesterConfig, Retry, Token, Want,
};
use namecast_units::{Bitrate, ByteSize, Instant};

pub use config::{Event, Failure, Fetched, FetcherConfig, FetcherCounters};

use super::parts;
use crate::discovery::certificate;
use crate::{Application, Now, Output, face};
use segments::{Segments, Vain};
use signer::{KnownSigner, Missing, Unfit};

/// The client of what is requested outside the budget. Segments belong to the clients after it, one for each start.
const CLIENT: Client = 0;
const DISCOVERY: Token = Token::object(CLIENT, 0);
const CERTIFICATE: Token = Token::object(CLIENT, 1);
/// First and longest wait for the first segment, and for the certificate. An Interest lives as long as the longest, so that
/// one is pending whenever an object is put on request.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Lifetime of an Interest for a segment, which exists.
const LIFETIME: Duration = Duration::from_secs(2);
/// Without Data for two round trips and this time, one segment is requested again: nothing may follow that shows a loss.
const PROBE_MARGIN: Duration = Duration::from_millis(100);
/// Each such probe without Data doubles that time, up to this.
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// Times that fetching begins anew.
const MAX_RESTARTS: u32 = 3;

#[derive(Debug)]
enum Stage {
    Idle,
    Discovering,
    /// A segment waits for its signer's certificate.
    Certifying(Missing),
    Pulling(Segments),
    Over,
}

/// Fetches one object: its newest version, whose every segment is verified.
///
/// Give it what arrives ([`handle_packet`](Self::handle_packet)) and the time ([`handle_timeout`](Self::handle_timeout)
/// whenever [`poll_timeout`](Self::poll_timeout) says so), and after each call take everything from
/// [`poll_output`](Self::poll_output) and [`poll_event`](Self::poll_event). The first call of `handle_timeout` starts. Early
/// and repeated calls are harmless.
pub struct Fetcher {
    config: FetcherConfig,
    requester: Requester,
    stage: Stage,
    /// The signer, once it has signed what came.
    known: Option<KnownSigner>,
    restarts: u32,
    /// The version that was being fetched before: some of its segments may still come.
    left: Option<Name>,
    /// When to probe whether segments that are out are lost, and how often that was done since one came.
    probe_at: Instant,
    probes: u32,
    /// Why an Interest for a first segment came back.
    nack: Option<NackReason>,
    outputs: VecDeque<Bytes>,
    /// Progress only as it is now, and the end.
    events: VecDeque<Event>,
    counters: FetcherCounters,
}

impl core::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Fetcher")
            .field("config", &self.config)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Fetcher {
    /// A fetcher that starts at the first [`handle_timeout`](Self::handle_timeout).
    pub fn new(config: FetcherConfig) -> Self {
        let bounds = RequesterConfig {
            seed: config.seed,
            max_queued: config.max_wanted,
            max_attempts: config.max_attempts,
            ..RequesterConfig::default()
        };
        let budget = config.control.build(Instant::ZERO, Bitrate::default());
        Self {
            requester: Requester::new(bounds, budget),
            stage: Stage::Idle,
            known: None,
            restarts: 0,
            left: None,
            probe_at: Instant::ZERO,
            probes: 0,
            nack: None,
            outputs: VecDeque::new(),
            events: VecDeque::new(),
            counters: FetcherCounters::default(),
            config,
        }
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in a link packet. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, wire: Bytes) {
        match face::open(wire) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                let delivery = Delivery {
                    congestion_marked: link.congestion_mark > 0,
                    face: link.incoming_face,
                    feedback: Feedback::read(&link.extensions),
                };
                self.handle_data(now, data, delivery);
            }
            Ok(Some((Packet::Interest(interest), link))) => match link.nack {
                Some(reason) => self.handle_nack(now, &interest, reason),
                None => self.counters.unexpected += 1,
            },
            Ok(_) => self.counters.unexpected += 1,
            Err(_) => self.counters.malformed += 1,
        }
        self.settle(now);
    }

    fn handle_data(&mut self, now: Instant, data: Data, delivery: Delivery) {
        match &self.stage {
            Stage::Discovering => {
                let (name, version, segment) = parts(data.name());
                let is_left = self.left.as_ref() == Some(&data.name().parent());
                let is_ours = name == self.config.name && version.is_some();
                if is_ours && segment.is_some_and(|number| number == 0 || !is_left) {
                    self.on_first_segment(now, data);
                    return;
                }
            }
            Stage::Certifying(missing) if missing.name.is_prefix_of(data.name()) => {
                self.on_certificate(now, data);
                return;
            }
            Stage::Pulling(segments) => {
                if let Some(number) = segments.number_of(data.name()) {
                    self.on_segment(now, number, &data, delivery);
                    return;
                }
            }
            _ => {}
        }
        self.counters.unexpected += 1;
    }

    /// Takes the segment that shows the version: verifies it, or requests the certificate that it needs for that.
    fn on_first_segment(&mut self, now: Instant, data: Data) {
        self.requester.forget(DISCOVERY);
        if let Some(known) = &self.known {
            match known.has_signed(&data) {
                true => self.pull(now, &data),
                false => self.restart(now, Failure::BadSignature),
            }
            return;
        }
        let Some(missing) = Missing::of(&self.config.name, data) else {
            self.restart(now, Failure::ForeignSigner);
            return;
        };
        // A certificate that did not fit may be a cache's, not the signer's.
        let must_be_fresh = self.restarts > 0;
        let object = Object {
            token: CERTIFICATE,
            ..certificate(missing.name.clone(), must_be_fresh, Some(self.retry()))
        };
        self.requester.want_object(now, object);
        self.stage = Stage::Certifying(missing);
    }

    fn on_certificate(&mut self, now: Instant, data: Data) {
        let Stage::Certifying(missing) = &self.stage else {
            return;
        };
        match missing.judge(now, &self.config, data) {
            Ok((known, held)) => {
                self.requester.forget(CERTIFICATE);
                self.known = Some(known);
                self.pull(now, &held);
            }
            Err(Unfit::NoCertificate) => {
                self.counters.verification_failures += 1;
                self.requester.reject(CERTIFICATE);
                self.requester.hasten(CERTIFICATE, now);
            }
            // Its key is not kept: the right one could not take its place any more.
            Err(Unfit::Refused(why)) => self.restart(now, why),
        }
    }

    /// Begins to request the segments of the version that `data` is of, which is verified.
    fn pull(&mut self, now: Instant, data: &Data) {
        match Segments::begin(data, self.config.max_size) {
            Ok(segments) => {
                self.stage = Stage::Pulling(segments);
                self.wait(now, 0);
                self.on_progress(now);
            }
            Err(why) => self.end(Event::Failed(why)),
        }
    }

    fn on_segment(&mut self, now: Instant, number: u64, data: &Data, delivery: Delivery) {
        let token = self.token(number);
        let received = Received {
            size: ByteSize::of(data.wire()),
            congestion_marked: delivery.congestion_marked,
            feedback: delivery.feedback,
        };
        self.requester.handle_data(now, token, &received);
        self.wait(now, 0);
        let (Stage::Pulling(segments), Some(known)) = (&mut self.stage, &self.known) else {
            return;
        };
        if !segments.is_wanted(number) {
            self.counters.unexpected += 1;
        } else if !known.has_signed(data) {
            self.counters.verification_failures += 1;
            self.requester.reject(token);
            self.request_again(now, number, Vain::Forged(delivery.face));
        } else {
            match segments.take(number, data) {
                Ok(()) => self.on_progress(now),
                Err(why) => self.end(Event::Failed(why)),
            }
        }
    }

    /// Reports that a segment came, and ends or requests others.
    fn on_progress(&mut self, now: Instant) {
        let (Stage::Pulling(segments), Some(known)) = (&self.stage, &self.known) else {
            return;
        };
        let (received, total) = segments.progress();
        self.events.clear();
        self.events.push_back(Event::Progress { received, total });
        if received == total {
            let fetched = Fetched {
                name: segments.name().clone(),
                content: segments.content(),
                signer: known.signer.clone(),
            };
            self.end(Event::Fetched(fetched));
            return;
        }
        while let Stage::Pulling(segments) = &mut self.stage
            && let Some(number) = segments.next(self.config.max_wanted.max(1))
        {
            self.request(now, number, None);
        }
    }

    /// Requests segment `number` again; ends if that was so too often.
    fn request_again(&mut self, now: Instant, number: u64, vain: Vain) {
        let Stage::Pulling(segments) = &mut self.stage else {
            return;
        };
        match segments.on_vain(number) {
            Some(times) if times >= self.config.max_attempts => {
                self.end(Event::Failed(vain.failure()));
            }
            Some(_) => self.request(now, number, Some(vain)),
            None => {}
        }
    }

    fn request(&mut self, now: Instant, number: u64, vain: Option<Vain>) {
        let token = self.token(number);
        let Stage::Pulling(segments) = &self.stage else {
            return;
        };
        let (kind, forged) = match vain {
            None => (Kind::Delta, None),
            Some(Vain::Forged(face)) => (Kind::Repair, Some(face)),
            Some(Vain::Lost | Vain::Nacked(_)) => (Kind::Repair, None),
            // What is lost fills the window: this one leaves nevertheless.
            Some(Vain::Silence) => (Kind::Sound, None),
        };
        let want = Want {
            token,
            name: segments.name().builder().segment(number).finish(),
            lifetime: LIFETIME,
            // What is forged may be in a cache.
            must_be_fresh: forged.is_some(),
            can_be_prefix: false,
            avoid_face: forged.flatten(),
            kind,
            size: segments.packet_size(),
            available_at: None,
            not_before: None,
            due: None,
            deadline: None,
        };
        self.requester.want(now, want);
    }

    /// Sets when nothing has come for long, after `probes` probes without Data.
    fn wait(&mut self, now: Instant, probes: u32) {
        let once = 2 * self.requester.path().round_trip(now) + PROBE_MARGIN;
        self.probe_at = now + (once * (1 << probes.min(8))).min(MAX_PROBE_INTERVAL);
        self.probes = probes;
    }

    /// Requests one segment again while nothing comes: its Data shows that what is out before it is lost.
    fn probe(&mut self, now: Instant) {
        if let Stage::Pulling(segments) = &self.stage
            && self.probe_at <= now
        {
            let is_out = |number: &u64| self.requester.is_out(self.token(*number));
            let first = segments.wanted().find(is_out);
            if let Some(number) = first {
                self.request_again(now, number, Vain::Silence);
            }
            self.wait(now, self.probes + 1);
        }
    }

    const fn token(&self, number: u64) -> Token {
        Token::object(CLIENT + 1 + self.restarts, number)
    }

    fn handle_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) {
        self.counters.nacked += 1;
        let name = interest.name();
        // Nodes without a route may find one: only the publisher refuses without a reason.
        let is_final = reason == NackReason::None;
        match &self.stage {
            Stage::Discovering if *name == self.config.name => {
                self.nack = Some(reason);
                if is_final {
                    self.end(Event::Failed(Failure::Refused(reason)));
                }
            }
            Stage::Certifying(missing) if *name == missing.name && is_final => {
                self.restart(now, Failure::Refused(reason));
            }
            Stage::Pulling(segments) => {
                let Some(number) = segments.number_of(name) else {
                    return;
                };
                let (token, nonce) = (self.token(number), interest.nonce());
                if !self.requester.is_latest(token, nonce) {
                    return;
                }
                if is_final {
                    // This version is gone; there may be another one.
                    self.restart(now, Failure::Refused(reason));
                } else if reason == NackReason::Congestion {
                    self.requester.handle_nack(now, token, nonce, reason);
                    self.request_again(now, number, Vain::Nacked(reason));
                }
            }
            _ => {}
        }
    }

    /// Begins anew with the newest version, unless that was done too often.
    fn restart(&mut self, now: Instant, why: Failure) {
        self.counters.verification_failures += u64::from(why == Failure::BadSignature);
        self.withdraw();
        if self.restarts == MAX_RESTARTS {
            self.end(Event::Failed(why));
            return;
        }
        self.restarts += 1;
        if let Stage::Pulling(segments) = &self.stage {
            self.left = Some(segments.name().clone());
        }
        self.discover(now);
    }

    fn discover(&mut self, now: Instant) {
        if self.config.name.is_empty() {
            self.end(Event::Failed(Failure::Unanswered));
            return;
        }
        let interest = Interest::builder(self.config.name.clone());
        let interest = interest.can_be_prefix().must_be_fresh();
        let object = Object::new(DISCOVERY, interest, Some(self.retry()));
        self.requester.want_object(now, object);
        self.stage = Stage::Discovering;
    }

    const fn retry(&self) -> Retry {
        Retry {
            first_wait: FIRST_WAIT,
            max_wait: MAX_WAIT,
            max_interests: self.config.max_attempts,
        }
    }

    /// Requests nothing more, and reports the end.
    fn end(&mut self, event: Event) {
        self.withdraw();
        self.stage = Stage::Over;
        self.events.push_back(event);
    }

    fn withdraw(&mut self) {
        for client in [CLIENT, self.token(0).client] {
            self.requester.withdraw_client(client);
        }
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Stage::Idle = self.stage {
            self.discover(now);
        }
        self.probe(now);
        self.settle(now);
    }

    /// Sends what may be sent, and requests again what is lost.
    fn settle(&mut self, now: Instant) {
        loop {
            self.requester.handle_timeout(now);
            let mut is_settled = true;
            while let Some(event) = self.requester.poll_event() {
                match event {
                    path::Event::Interest {
                        interest,
                        avoid_face,
                    } => {
                        let packet = LpPacket {
                            avoid_face,
                            ..LpPacket::carrying(interest.wire().clone())
                        };
                        self.outputs.push_back(packet.encode());
                    }
                    path::Event::Lost(token) | path::Event::Dropped(token) => {
                        is_settled = false;
                        self.on_lost(now, token);
                    }
                    _ => {}
                }
            }
            if is_settled {
                return;
            }
        }
    }

    fn on_lost(&mut self, now: Instant, token: Token) {
        let number = token.segment.index;
        match &self.stage {
            Stage::Discovering if token == DISCOVERY => {
                let why = self.nack.map_or(Failure::Unanswered, Failure::Refused);
                self.end(Event::Failed(why));
            }
            Stage::Certifying(_) if token == CERTIFICATE => {
                self.restart(now, Failure::Unanswered);
            }
            Stage::Pulling(_) if token == self.token(number) => {
                self.request_again(now, number, Vain::Lost);
            }
            _ => {}
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let requester = self.requester.poll_timeout();
        match self.stage {
            Stage::Idle => Some(Instant::ZERO),
            Stage::Over => None,
            Stage::Pulling(_) => requester.into_iter().chain([self.probe_at]).min(),
            Stage::Discovering | Stage::Certifying(_) => requester,
        }
    }

    /// The next packet for the application face, until `None`: an Interest.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }

    /// The next report, until `None`.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Everything that is requested over the path, and what is known of it.
    pub const fn requester(&self) -> &Requester {
        &self.requester
    }

    /// What arrived.
    pub const fn counters(&self) -> &FetcherCounters {
        &self.counters
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
