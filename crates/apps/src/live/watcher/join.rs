//! Finds out what is published and who signs it: metadata, certificate, catalogue. Goes on asking while watching, so
//! that a publisher that was started again is noticed.
//!
//! ```text
//!  round trip 1    metadata: catalogue, newest samples
//!  round trip 2    certificate │ newest key sample │ samples after it │ samples that do not exist yet
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::HmacVerifier;
use namecast_packet::{Data, Interest, Name, Nonce};
use namecast_stream::consumer::{LineUp, SharedVerifier};
use namecast_stream::{Catalogue, Metadata};
use namecast_units::{Instant, Timestamp};

use super::Watcher;
use super::config::Trust;
use super::fetch::{Fetch, Progress};
use super::output::{Event, Output, RejoinReason, Verdict};
use super::pull::{self, LinedUp, Pulled};
use super::trust::{Judge, TrustedKey, certificate_of};

/// Probes whose answers are still expected.
const MOST_PROBES: usize = 8;
/// Lifetime of Interests for metadata, certificate and catalogue.
const LIFETIME: Duration = Duration::from_secs(1);
/// First wait for a certificate; doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Transmissions of its Interest, before the join begins anew.
const MOST_ATTEMPTS: u32 = 4;

/// The Interest for a certificate.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub name: Name,
    /// Whether caches were no help.
    must_be_fresh: bool,
    attempts: u32,
    pub retry_at: Instant,
}

/// Metadata that waits for the key that signed it.
#[derive(Clone, Debug)]
pub(super) struct Held {
    data: Data,
}

/// Metadata probes that are out.
#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    sent: VecDeque<(Nonce, Instant)>,
    pub next_at: Option<Instant>,
    /// When the newest answer was served, by the publisher's clock.
    served_at: Timestamp,
}

impl Request {
    const fn new(now: Instant, name: Name) -> Self {
        Self {
            name,
            must_be_fresh: false,
            attempts: 0,
            retry_at: now,
        }
    }
}

impl Watcher {
    /// Sends a metadata Interest, and says when the next one is due.
    pub(super) fn probe(&mut self, now: Instant) {
        if self.started_at.is_none() {
            self.started_at = Some(now);
            self.event(Event::AskingForMetadata);
        }
        let interval = if self.is_steady() {
            self.until_common_probe(now)
        } else {
            self.config.starved_probe_interval
        };
        self.probes.next_at = Some(now + interval.max(Duration::from_millis(1)));
        let nonce = self.nonce();
        if self.probes.sent.len() == MOST_PROBES {
            self.probes.sent.pop_front();
            self.counters.timed_out += 1;
        }
        self.counters.retransmitted += u64::from(!self.probes.sent.is_empty());
        self.probes.sent.push_back((nonce, now));
        let interest = Interest::builder(self.names.metadata())
            .can_be_prefix()
            .must_be_fresh()
            .lifetime(LIFETIME);
        self.send(interest.build(nonce));
    }

    /// Time until the next probe while all is well: when the publisher's clock, as far as it is known, shows a multiple of
    /// the interval. All watchers then ask at one time, so that nodes combine their Interests, and the publisher answers
    /// as often as if there were one.
    fn until_common_probe(&self, now: Instant) -> Duration {
        let interval = self.config.probe_interval;
        let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        let Some(offset) = self.clock.micros().filter(|_| micros > 0) else {
            return interval;
        };
        let there = self.wall(now).as_micros().saturating_add_signed(offset);
        let wait = Duration::from_micros(micros - there % micros);
        // Not twice in a short time when a probe went out for another reason, or the clock was found to be a little off.
        if wait < interval / 2 {
            wait + interval
        } else {
            wait
        }
    }

    pub(super) fn send(&mut self, interest: Interest) {
        self.counters.sent += 1;
        self.push(Output::Interest(interest.wire().clone()));
    }

    /// Sends certificate and catalogue Interests that are due.
    pub(super) fn send_requests(&mut self, now: Instant) {
        if let Some(mut request) = self.certificate.take_if(|request| request.retry_at <= now) {
            if self.send_request(now, &mut request) {
                self.certificate = Some(request);
            } else if self.trusted.is_none() {
                // Whoever answered has no certificate: what it said is worth nothing.
                self.forget();
            }
        }
        if let Some(mut fetch) = self.fetch.take_if(|fetch| fetch.retry_at <= now)
            && let Some((names, before)) = fetch.ask(now)
        {
            self.fetch = Some(fetch);
            for name in names {
                self.counters.retransmitted += u64::from(before > 0);
                self.counters.timed_out += u64::from(before > 0);
                let nonce = self.nonce();
                // A cache that holds a bad segment must not answer twice.
                let interest = Interest::builder(name).lifetime(LIFETIME);
                let interest = if before > 0 {
                    interest.must_be_fresh()
                } else {
                    interest
                };
                self.send(interest.build(nonce));
            }
        }
    }

    pub(super) fn nonce(&mut self) -> Nonce {
        Nonce::from(self.random.next_u64() as u32)
    }

    fn send_request(&mut self, now: Instant, request: &mut Request) -> bool {
        if request.attempts >= MOST_ATTEMPTS {
            return false;
        }
        self.counters.retransmitted += u64::from(request.attempts > 0);
        self.counters.timed_out += u64::from(request.attempts > 0);
        request.retry_at = now + FIRST_WAIT * (1 << request.attempts);
        request.attempts += 1;
        let interest = Interest::builder(request.name.clone())
            .can_be_prefix()
            .lifetime(LIFETIME);
        let interest = if request.must_be_fresh {
            interest.must_be_fresh()
        } else {
            interest
        };
        let nonce = self.nonce();
        self.send(interest.build(nonce));
        true
    }

    /// Takes Data that is not a sample. Tells whether it was asked for.
    pub(super) fn on_object(&mut self, now: Instant, data: &Data) -> bool {
        if self.names.metadata().is_prefix_of(data.name()) {
            return self.on_metadata(now, data);
        }
        let is_certificate = |request: &Request| request.name.is_prefix_of(data.name());
        if self.certificate.as_ref().is_some_and(is_certificate) {
            self.on_certificate(now, data);
            return true;
        }
        let is_segment = |fetch: &Fetch| fetch.wants(data.name());
        if self.fetch.as_ref().is_some_and(is_segment) {
            self.on_catalogue_segment(now, data);
            return true;
        }
        false
    }

    fn on_metadata(&mut self, now: Instant, data: &Data) -> bool {
        if self.probes.sent.is_empty() {
            return false;
        }
        let Some(metadata) = data.content().and_then(|c| Metadata::decode(&c).ok()) else {
            self.counters.malformed += 1;
            return true;
        };
        if let Some(verifier) = &self.verifier {
            if data.verify(&**verifier).is_err() {
                self.on_foreign_metadata(now, data);
                return true;
            }
        } else if self.held.is_none() {
            self.ask_for_certificate(now, data);
            if self.certificate.is_none() {
                return true;
            }
            self.held = Some(Held { data: data.clone() });
        } else {
            // One at a time: the key decides about the first.
            return true;
        }
        self.process(now, &metadata);
        true
    }

    /// Metadata that the trusted key did not sign: damaged, forged, or the publisher has another key now.
    fn on_foreign_metadata(&mut self, now: Instant, data: &Data) {
        self.counters.verification_failures += 1;
        if self.is_starved && self.certificate.is_none() {
            self.ask_for_certificate(now, data);
        }
    }

    fn ask_for_certificate(&mut self, now: Instant, data: &Data) {
        let Some(name) = certificate_of(self.names.root(), data) else {
            self.counters.verification_failures += 1;
            return;
        };
        self.event(Event::AskingForCertificate { name: name.clone() });
        let mut request = Request::new(now, name);
        // A certificate that was refused may be a cache's, not the publisher's.
        request.must_be_fresh = self
            .signer
            .as_ref()
            .is_some_and(|signer| matches!(signer.verdict, Verdict::Refused(_)));
        self.certificate = Some(request);
        self.send_requests(now);
    }

    fn on_certificate(&mut self, now: Instant, data: &Data) {
        let judge = Judge {
            root: self.names.root(),
            trust: &self.config.trust,
            known: self.trusted.as_ref(),
            wall: self.wall(now),
        };
        let Some((signer, key)) = judge.judge(data.clone()) else {
            self.counters.verification_failures += 1;
            if let Some(request) = &mut self.certificate {
                request.must_be_fresh = true;
                request.retry_at = now;
            }
            self.send_requests(now);
            return;
        };
        self.certificate = None;
        if self.signer.as_ref() != Some(&signer) {
            self.signer = Some(signer.clone());
            self.push(Output::Signer(signer));
        }
        let Some(key) = key else {
            self.counters.verification_failures += 1;
            if self.trusted.is_none() {
                self.forget();
                // No better signer will be there in a moment.
                self.probes.next_at = Some(now + self.config.probe_interval);
            }
            return;
        };
        self.trusted
            .get_or_insert_with(|| TrustedKey { key: key.clone() });
        let verifier: SharedVerifier = match &self.config.trust {
            Trust::Secret(secret) => Arc::new(HmacVerifier::new(secret)),
            Trust::FirstUse | Trust::Pinned(_) => key,
        };
        self.verifier = Some(verifier.clone());
        let Some(held) = self.held.take() else {
            return;
        };
        if held.data.verify(&*verifier).is_err() {
            self.counters.verification_failures += 1;
            self.forget();
            self.probe(now);
            return;
        }
        self.announce();
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            consumer.set_verifier(now, verifier.clone());
        }
        if self.fetch.is_some() {
            self.send_requests(now);
        }
    }

    /// Drops what nobody vouches for.
    fn forget(&mut self) {
        self.held = None;
        self.certificate = None;
        self.fetch = None;
        self.catalogue = None;
        for pulled in core::mem::take(&mut self.streams) {
            self.withdraw(&pulled);
        }
        self.is_announced = false;
    }

    /// Acts on metadata that is verified, or as if it were while its key is on the way.
    fn process(&mut self, now: Instant, metadata: &Metadata) {
        let own = metadata.nonce.and_then(|nonce| {
            let sent = self.probes.sent.iter().find(|(own, _)| *own == nonce)?;
            Some(now.since(sent.1))
        });
        let served_at = metadata.latest.first().map(|latest| latest.served_at);
        let served_at = served_at.unwrap_or_default();
        if own.is_none() && served_at < self.probes.served_at {
            self.counters.unexpected += 1;
            return;
        }
        self.probes.sent.clear();
        // An archive repeats what the publisher said last.
        let before = core::mem::replace(&mut self.probes.served_at, served_at);
        let is_news = before != Timestamp::default() && served_at > before;
        if own.is_some() {
            self.sessions.on_clock(now, self.travel.heard(), served_at);
        }
        if own.is_some() || is_news {
            self.travel.on_heard(now, served_at);
        }
        if let Some(rtt) = own {
            self.requester.on_round_trip(now, rtt);
            let wall = self.wall(now);
            self.clock.on_answer(now, rtt, wall, served_at);
        }
        self.travel.on_latest(&metadata.latest);
        if self.travel.is_past() {
            return;
        }
        self.adopt(now, metadata);
        if self.travel.holds_start() && !self.streams.iter().any(|pulled| pulled.has_started) {
            return;
        }
        let delay = self.playout(now).delay(now, served_at);
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            if let Some(rtt) = own {
                consumer.on_round_trip(now, rtt);
            }
            consumer.on_served(now, delay);
        }
        self.share_playout(now);
        self.line_up(now, metadata);
        if !self.is_steady() {
            let soon = now + self.config.starved_probe_interval;
            self.probes.next_at = self.probes.next_at.map(|at| at.min(soon));
        }
    }

    /// Takes the catalogue that metadata names, if it is another than ours.
    fn adopt(&mut self, now: Instant, metadata: &Metadata) {
        let known = self.catalogue.as_ref().map(|(name, _)| name);
        let fetching = self.fetch.as_ref().map(|fetch| &fetch.catalogue_name);
        let name = &metadata.catalogue_name;
        if known == Some(name) || fetching == Some(name) {
            return;
        }
        if let Some(content) = &metadata.catalogue {
            self.fetch = None;
            self.install(now, name.detached(), content);
            return;
        }
        let is_ours = self.names.root().is_prefix_of(name);
        if !is_ours {
            self.counters.malformed += 1;
            return;
        }
        self.fetch = Some(Fetch::new(now, name.detached()));
        self.send_requests(now);
    }

    fn on_catalogue_segment(&mut self, now: Instant, data: &Data) {
        let Some(verifier) = &self.verifier else {
            // The key is on the way; the fetch's timer asks again once it is here.
            return;
        };
        let verified = data.verify(&**verifier).is_ok();
        let Some(mut fetch) = self.fetch.take() else {
            return;
        };
        let progress = if verified {
            fetch.take(data)
        } else {
            self.counters.verification_failures += 1;
            Progress::Partial
        };
        match progress {
            Progress::TooLarge => {
                self.event(Event::BadCatalogue("too large".to_owned()));
                return;
            }
            Progress::Whole(content) => {
                self.install(now, fetch.catalogue_name, &content);
                // Newest samples are known from metadata only: ask for them at once.
                self.probe(now);
                return;
            }
            Progress::Known => fetch.retry_at = now,
            Progress::Partial => {}
        }
        self.fetch = Some(fetch);
        self.send_requests(now);
    }

    /// Makes `content` the catalogue, and begins to pull what it lists.
    fn install(&mut self, now: Instant, name: Name, content: &Bytes) {
        let catalogue = match Catalogue::decode(content) {
            Ok(catalogue) => catalogue,
            Err(error) => {
                self.event(Event::BadCatalogue(error.to_string()));
                return;
            }
        };
        if self.catalogue.is_some() {
            self.rejoins += 1;
            self.event(Event::Rejoining(RejoinReason::NewCatalogue));
        }
        let mut before = core::mem::take(&mut self.streams);
        for pulled in &before {
            self.withdraw(pulled);
        }
        // What the publisher before it did not answer, this one will not: nothing of that is in a queue.
        self.requester.handle_link_change();
        if let Some((left, _)) = &self.catalogue {
            for (kind, shown) in before.iter().filter_map(|old| Some((old.kind, old.shown?))) {
                self.sessions.leave(left, kind, shown);
            }
        }
        for (kind, choice) in self.config.wanted() {
            let info = catalogue.streams.iter().find(|stream| stream.kind == kind);
            let Some((info, rung)) =
                info.and_then(|info| Some((info, pull::choose(info, &choice)?)))
            else {
                self.event(Event::NoSuchStream { stream: kind });
                continue;
            };
            let client = self.client();
            let mut pulled = self.factory(now).pull(now, info, rung, client);
            if let Some(at) = before.iter().position(|old| old.kind == kind) {
                pulled.inherit(before.swap_remove(at));
            }
            let shown = self.sessions.shown_before(now, &name, kind);
            pulled.begin_after(shown, self.sessions.fresh_until(now));
            if pulled.had_frame {
                self.push(Output::gap(kind));
            }
            self.streams.push(pulled);
        }
        self.catalogue = Some((name, catalogue));
        self.is_announced = false;
        if self.verifier.is_some() {
            self.announce();
        }
    }

    /// Tells of the catalogue, which is verified by now.
    fn announce(&mut self) {
        let Some((_, catalogue)) = self.catalogue.clone() else {
            return;
        };
        if !core::mem::replace(&mut self.is_announced, true) {
            let version = catalogue.version;
            self.event(Event::Catalogue { version });
            self.push(Output::Catalogue(catalogue));
        }
    }

    /// Starts streams, or compares them with what the publisher says of its newest samples.
    fn line_up(&mut self, now: Instant, metadata: &Metadata) {
        let starved = self.is_starved;
        let most_behind = self.config.most_behind;
        let fresh_until = self.sessions.fresh_until(now);
        let mut events = Vec::new();
        let mut resets = Vec::new();
        for pulled in &mut self.streams {
            let kind = pulled.kind;
            let reason = match pulled.line_up(now, &metadata.latest, starved) {
                Some(LinedUp::Started(key_sequence)) => {
                    events.push(Event::StartingAt {
                        stream: kind,
                        rung: pulled.rung.clone(),
                        key_sequence,
                    });
                    continue;
                }
                Some(LinedUp::Known(LineUp::OutOfLine)) => RejoinReason::OutOfLine,
                Some(LinedUp::Known(LineUp::Missed(span))) if span > most_behind => {
                    RejoinReason::FarBehind
                }
                Some(LinedUp::Known(LineUp::Missed(_))) => {
                    pulled.consumer.catch_up(now);
                    continue;
                }
                None => continue,
            };
            if let Some(key_sequence) = pulled.restart(now, &metadata.latest, fresh_until) {
                events.push(Event::Rejoining(reason));
                events.push(Event::StartingAt {
                    stream: kind,
                    rung: pulled.rung.clone(),
                    key_sequence,
                });
                resets.extend(pulled.had_frame.then_some(kind));
                self.rejoins += 1;
            }
        }
        for stream in resets {
            self.push(Output::gap(stream));
        }
        for event in events {
            self.event(event);
        }
    }
}
