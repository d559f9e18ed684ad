//! One object that is fetched, over a path that others may share.
//!
//! ```text
//!  Discovering ──a segment──▶ Certifying ──its key──▶ Pulling ──all segments──▶ Fetched
//!       ▲    └──────────── the key is known ────────────▲ │
//!       └───────────── wrong signature, or the version is gone
//! ```

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, Name};
use namecast_stream::consumer::Delivery;
use namecast_stream::path::{self, ClientId, Kind, Nacked, Object, Request, Retry, Token, Want};
use namecast_units::{ByteSize, Instant};

use super::config::{Event, Failure, Fetched, FetcherConfig, FetcherCounters};
use super::segments::{Segments, Vain};
use super::signer::{KnownSigner, Missing, Unfit};
use super::throughput::{Beyond, Throughput};
use crate::discovery::certificate;
use crate::object::parts;

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

/// What objects show that counts for the next.
#[derive(Clone, Default)]
pub(crate) struct Learned {
    /// The signer, once it has signed what came.
    signer: Option<KnownSigner>,
    /// The path behind caches.
    beyond: Beyond,
}

/// One object that is fetched: its newest version, whose every segment is verified.
pub(crate) struct Fetch {
    config: FetcherConfig,
    /// By which the uplink knows it.
    client: ClientId,
    requests: VecDeque<Request>,
    /// Round trip of the path, which whoever knows it sets before each call.
    pub(crate) round_trip: Duration,
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
    throughput: Throughput,
    /// Progress only as it is now, and the end.
    events: VecDeque<Event>,
    counters: FetcherCounters,
}

impl core::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Fetch")
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Learned {
    /// Takes what a later object showed.
    pub(super) fn update(&mut self, later: Self) {
        self.signer = later.signer.or(self.signer.take());
        self.beyond = self.beyond.and(later.beyond);
    }
}

impl Fetch {
    /// An object that is requested at the first [`handle_timeout`](Self::handle_timeout), by `client`.
    /// `learned`: from objects before this one.
    pub(crate) fn new(config: FetcherConfig, client: ClientId, learned: Learned) -> Self {
        Self {
            config,
            client,
            requests: VecDeque::new(),
            round_trip: Duration::ZERO,
            stage: Stage::Idle,
            known: learned.signer,
            restarts: 0,
            left: None,
            probe_at: Instant::ZERO,
            probes: 0,
            nack: None,
            throughput: Throughput::new(learned.beyond),
            events: VecDeque::new(),
            counters: FetcherCounters::default(),
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Stage::Idle = self.stage {
            self.discover(now);
        }
        self.probe(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Idle => Some(Instant::ZERO),
            Stage::Pulling(_) => Some(self.probe_at),
            Stage::Over | Stage::Discovering | Stage::Certifying(_) => None,
        }
    }

    /// Whether nothing more is requested.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// Whether `token` is one of its own.
    pub(crate) fn has_requested(&self, token: Token) -> bool {
        token.client == self.client
    }

    /// Returns what it shows that counts for the next object.
    pub(super) fn learned(&self) -> Learned {
        Learned {
            signer: self.known.clone(),
            beyond: self.throughput.beyond(),
        }
    }

    /// Returns the signer, once it has signed what came.
    pub(super) const fn known_signer(&self) -> Option<&KnownSigner> {
        self.known.as_ref()
    }

    pub(super) const fn counters(&self) -> &FetcherCounters {
        &self.counters
    }

    /// The next report.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the next thing to request or to withdraw, until `None`.
    pub(crate) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Takes the Data that answers `token`. Returns whether it is of use.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        token: Token,
        (data, delivery): (&Data, Delivery),
    ) -> bool {
        match &self.stage {
            Stage::Discovering if token == self.discovery() => {
                let (name, version, segment) = parts(data.name());
                let is_left = self.left.as_ref() == Some(&data.name().parent());
                let is_ours = name == self.config.name && version.is_some();
                if is_ours && segment.is_some_and(|number| number == 0 || !is_left) {
                    self.throughput
                        .on_data(now, ByteSize::of(data.wire()), &delivery.feedback);
                    self.on_first_segment(now, data.clone());
                    return true;
                }
            }
            Stage::Certifying(_) if token == self.certificate() => {
                self.on_certificate(now, data.clone());
                return true;
            }
            Stage::Pulling(_) => {
                if let Some(number) = self.number_of(token) {
                    self.on_segment(now, number, (data, delivery));
                    return true;
                }
            }
            _ => {}
        }
        false
    }

    /// Takes the segment that shows the version: verifies it, or requests the certificate that it needs for that.
    fn on_first_segment(&mut self, now: Instant, data: Data) {
        self.requests.push_back(Request::Forget(self.discovery()));
        if let Some(known) = &self.known {
            match known.has_signed(&data) {
                true => self.pull(now, &data),
                false => self.restart(now, Failure::BadSignature),
            }
            return;
        }
        let Some(missing) = Missing::of(&self.config.name, &self.config.trust, data) else {
            self.restart(now, Failure::ForeignSigner);
            return;
        };
        // A certificate that did not fit may be a cache's, not the signer's.
        let must_be_fresh = self.restarts > 0;
        let (token, retry) = (self.certificate(), self.retry());
        let object = certificate(token, missing.name.clone(), must_be_fresh, Some(retry));
        self.requests.push_back(Request::Object(object));
        self.stage = Stage::Certifying(missing);
    }

    fn on_certificate(&mut self, now: Instant, data: Data) {
        let Stage::Certifying(missing) = &self.stage else {
            return;
        };
        match missing.judge(now, &self.config, data) {
            Ok((known, held)) => {
                self.requests.push_back(Request::Forget(self.certificate()));
                self.known = Some(known);
                self.pull(now, &held);
            }
            Err(Unfit::NoCertificate) => {
                self.counters.verification_failures += 1;
                let token = self.certificate();
                self.requests.push_back(Request::Reject(token));
                self.requests.push_back(Request::Hasten(token, now));
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

    fn on_segment(&mut self, now: Instant, number: u64, (data, delivery): (&Data, Delivery)) {
        let size = ByteSize::of(data.wire());
        self.throughput.on_data(now, size, &delivery.feedback);
        self.wait(now, 0);
        let token = self.token(number);
        let (Stage::Pulling(segments), Some(known)) = (&mut self.stage, &self.known) else {
            return;
        };
        segments.set_out(number, false);
        if !segments.is_wanted(number) {
            self.counters.unexpected += 1;
        } else if !known.has_signed(data) {
            self.counters.verification_failures += 1;
            self.requests.push_back(Request::Reject(token));
            self.request_again(number, Vain::Forged(delivery.face));
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
        self.events.push_back(Event::Progress {
            received,
            total,
            octets: segments.size(),
        });
        if received == total {
            let (name, content) = (segments.name().clone(), segments.content());
            let signer = known.signer.clone();
            let fetched = Fetched {
                name,
                content,
                signer,
                flow: self.throughput.flow(now, self.round_trip),
            };
            self.end(Event::Fetched(fetched));
            return;
        }
        while let Stage::Pulling(segments) = &mut self.stage
            && let Some(number) = segments.next(self.config.max_wanted.max(1))
        {
            self.request(number, None);
        }
    }

    /// Requests segment `number` again; ends if that was so too often.
    fn request_again(&mut self, number: u64, vain: Vain) {
        let Stage::Pulling(segments) = &mut self.stage else {
            return;
        };
        match segments.on_vain(number) {
            Some(times) if times >= self.config.max_attempts => {
                self.end(Event::Failed(vain.failure()));
            }
            Some(_) => self.request(number, Some(vain)),
            None => {}
        }
    }

    fn request(&mut self, number: u64, vain: Option<Vain>) {
        let token = self.token(number);
        let Stage::Pulling(segments) = &self.stage else {
            return;
        };
        let (kind, forged) = match vain {
            None => (Kind::Object, None),
            Some(Vain::Forged(face)) => (Kind::ObjectRepair, Some(face)),
            Some(Vain::Lost | Vain::Nacked(_)) => (Kind::ObjectRepair, None),
            // What is lost fills the window: this one leaves nevertheless.
            Some(Vain::Silence) => (Kind::Sound, None),
        };
        let want = Want {
            token,
            name: segments.name().builder().segment(number).finish(),
            lifetime: LIFETIME,
            // What is forged may be in a cache.
            must_be_fresh: forged.is_some(),
            avoid_face: forged.flatten(),
            kind,
            size: segments.packet_size(),
            available_at: None,
            not_before: None,
            due: None,
            deadline: None,
        };
        self.requests.push_back(Request::Want(want));
    }

    /// Sets when nothing has come for long, after `probes` probes without Data.
    fn wait(&mut self, now: Instant, probes: u32) {
        let once = 2 * self.round_trip + PROBE_MARGIN;
        self.probe_at = now + (once * (1 << probes.min(8))).min(MAX_PROBE_INTERVAL);
        self.probes = probes;
    }

    /// Requests one segment again while nothing comes: its Data shows that what is out before it is lost.
    fn probe(&mut self, now: Instant) {
        if let Stage::Pulling(segments) = &self.stage
            && self.probe_at <= now
        {
            let first = segments.first_out();
            if let Some(number) = first {
                self.request_again(number, Vain::Silence);
            }
            self.wait(now, self.probes + 1);
        }
    }

    const fn discovery(&self) -> Token {
        self.client.object(0)
    }

    const fn certificate(&self) -> Token {
        self.client.object(1)
    }

    /// Segment `number`, since fetching began anew last.
    const fn token(&self, number: u64) -> Token {
        self.client.object(self.first_segment() + number)
    }

    const fn first_segment(&self) -> u64 {
        (1 + self.restarts as u64) << 32
    }

    /// The number of the segment that `token` is for, if it was requested since fetching began anew last.
    fn number_of(&self, token: Token) -> Option<u64> {
        let number = token.segment.index.checked_sub(self.first_segment())?;
        (number <= u64::from(u32::MAX)).then_some(number)
    }

    /// Takes an Interest that came back for `reason`.
    pub(crate) fn handle_nack(&mut self, now: Instant, nacked: Nacked, reason: NackReason) {
        let token = nacked.token;
        // Nodes without a route may find one: only the publisher refuses without a reason.
        let is_final = reason == NackReason::None;
        match &self.stage {
            Stage::Discovering if token == self.discovery() => {
                self.nack = Some(reason);
                if is_final {
                    self.end(Event::Failed(Failure::Refused(reason)));
                }
            }
            Stage::Certifying(_) if token == self.certificate() && is_final => {
                self.restart(now, Failure::Refused(reason));
            }
            Stage::Pulling(_) if nacked.is_latest => {
                let Some(number) = self.number_of(token) else {
                    return;
                };
                if is_final {
                    // This version is gone; there may be another one.
                    self.restart(now, Failure::Refused(reason));
                } else if reason == NackReason::Congestion {
                    self.set_out(number, false);
                    self.requests.push_back(Request::TakeBack(nacked, reason));
                    self.request_again(number, Vain::Nacked(reason));
                }
            }
            _ => {}
        }
    }

    fn set_out(&mut self, number: u64, is_out: bool) {
        if let Stage::Pulling(segments) = &mut self.stage {
            segments.set_out(number, is_out);
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
        self.throughput.on_request(now);
        let interest = Interest::builder(self.config.name.clone());
        let interest = interest.can_be_prefix().must_be_fresh();
        let object = Object::new(self.discovery(), interest, Some(self.retry()));
        self.requests.push_back(Request::Object(object));
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

    /// Returns by which the uplink knows it.
    pub(super) const fn client(&self) -> ClientId {
        self.client
    }

    /// Requests nothing more.
    fn withdraw(&mut self) {
        self.requests
            .push_back(Request::Withdraw(self.client.tokens()));
    }

    /// Records what became of a request of its own.
    pub(crate) fn handle_event(&mut self, now: Instant, event: &path::Event) {
        match *event {
            path::Event::Sent { token, .. } => {
                if let Some(number) = self.number_of(token) {
                    self.set_out(number, true);
                }
            }
            path::Event::Lost(token) | path::Event::Dropped(token) => self.on_lost(now, token),
            _ => {}
        }
    }

    fn on_lost(&mut self, now: Instant, token: Token) {
        match &self.stage {
            Stage::Discovering if token == self.discovery() => {
                let why = self.nack.map_or(Failure::Unanswered, Failure::Refused);
                self.end(Event::Failed(why));
            }
            Stage::Certifying(_) if token == self.certificate() => {
                self.restart(now, Failure::Unanswered);
            }
            Stage::Pulling(_) => {
                if let Some(number) = self.number_of(token) {
                    self.request_again(number, Vain::Lost);
                }
            }
            _ => {}
        }
    }
}
