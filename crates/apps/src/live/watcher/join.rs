//! Finds out what is published and who signs it: metadata, certificate, catalogue. Goes on asking while watching, so
//! that a publisher that was started again is noticed.
//!
//! ```text
//!  round trip 1    metadata: catalogue, newest samples
//!  round trip 2    certificate │ newest key sample │ samples after it │ samples that do not exist yet
//! ```

use std::sync::Arc;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::HmacVerifier;
use namecast_packet::{Data, Interest, Name};
use namecast_stream::consumer::{LineUp, SharedVerifier};
use namecast_stream::path::{Object, Retry, Token};
use namecast_stream::{Catalogue, Metadata};
use namecast_units::{Instant, Timestamp};

use super::Watcher;
use super::output::{Event, RejoinReason, Watched};
use super::pull::{self, LinedUp, Pulled};
use crate::discovery::{
    CERTIFICATE, CLIENT, Fetch, Judge, METADATA, PROBE_SPACING, Progress, Refusal, Signer, Trust,
    TrustedKey, Verdict, certificate, certificate_of, metadata,
};

const CHALLENGE: Token = Token::object(CLIENT, 2);
/// Time from one metadata probe to the next while all is well.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// Time from one metadata probe to the next while nothing arrives.
const STARVED_PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Once so much playing time was published without being requested, playback goes on with the newest key sample instead of
/// playing the backlog.
const MAX_BEHIND: Duration = Duration::from_secs(1);
/// Of a certificate. Once it is given up, the join begins anew.
const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(2),
    max_interests: 4,
};

/// A request for metadata that is made for nobody else.
pub(super) fn challenge(name: Name) -> Object {
    Object::new(CHALLENGE, Interest::builder(name), None)
}

/// Metadata that came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    metadata: Metadata,
    at: Instant,
    /// When our request left that it answers, if that is known.
    asked_at: Option<Instant>,
}

impl Heard {
    /// The publisher's clock when it answered.
    fn served_at(&self) -> Timestamp {
        let latest = self.metadata.latest.first();
        latest.map(|latest| latest.served_at).unwrap_or_default()
    }

    fn round_trip(&self) -> Option<Duration> {
        self.asked_at.map(|sent| self.at.since(sent))
    }
}

/// Metadata that waits for the key that signed it.
#[derive(Clone, Debug)]
pub(super) struct Held {
    data: Data,
    heard: Heard,
}

impl Watcher {
    /// Sends a metadata Interest as soon as one may leave, and says when the next one is due.
    pub(super) fn probe(&mut self, now: Instant) {
        if self.started_at.is_none() {
            self.started_at = Some(now);
            self.event(Event::AskingForMetadata);
        }
        let starved = STARVED_PROBE_INTERVAL;
        let earliest = self.probes.earliest(starved);
        if let Some(earliest) = earliest.filter(|at| *at > now) {
            let next_at = self.probes.next_at.unwrap_or(earliest);
            self.probes.next_at = Some(next_at.min(earliest));
            return;
        }
        let interval = if self.is_steady() {
            self.until_common_probe(now)
        } else {
            self.probes.backed_off(starved, PROBE_INTERVAL)
        };
        self.probes.next_at = Some(now + interval.max(PROBE_SPACING));
        let metadata = metadata(&self.names);
        let nonce = self.requester.want_object(now, metadata);
        self.probes.on_sent(now, nonce);
    }

    /// Sends a metadata Interest as if nothing arrived.
    pub(super) fn probe_soon(&mut self, now: Instant) {
        let interval = STARVED_PROBE_INTERVAL;
        let soon = self
            .probes
            .sent_at
            .map_or(now, |sent| now.max(sent + interval));
        self.probes.next_at = self.probes.next_at.map(|at| at.min(soon));
    }

    /// Time until the next probe while all is well: when the publisher's clock, as far as it is known, shows a multiple of
    /// the interval. All watchers then ask at one time, so that nodes combine their Interests, and the publisher answers
    /// as often as if there were one.
    fn until_common_probe(&self, now: Instant) -> Duration {
        let interval = PROBE_INTERVAL;
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

    /// Does without an object that did not come. Returns whether it is one.
    pub(super) fn on_object_dropped(&mut self, token: Token) -> bool {
        if token == CERTIFICATE {
            self.certificate = None;
            if self.trusted.is_none() {
                // Whoever answered has no certificate: what it said is worth nothing.
                self.forget();
            }
        } else if Fetch::has_requested(token) {
            self.end_fetch();
        } else {
            return false;
        }
        true
    }

    fn end_fetch(&mut self) {
        self.fetch = None;
        Fetch::end(&mut self.requester);
    }

    /// Takes Data that is not a sample. Tells whether it was asked for.
    pub(super) fn on_object(&mut self, now: Instant, data: &Data) -> bool {
        if self.names.metadata().is_prefix_of(data.name()) {
            return self.on_metadata(now, data);
        }
        let is_certificate = |name: &Name| name.is_prefix_of(data.name());
        if self.certificate.as_ref().is_some_and(is_certificate) {
            self.on_certificate(now, data);
            return true;
        }
        let fetch = self.fetch.as_ref();
        let token = fetch.and_then(|fetch| fetch.token_of(data.name()));
        if let Some(token) = token {
            self.on_catalogue_segment(now, token, data);
        }
        token.is_some()
    }

    fn on_metadata(&mut self, now: Instant, data: &Data) -> bool {
        let challenged_at = self.proof.sent(data.name());
        if self.probes.sent.is_empty() && challenged_at.is_none() {
            return false;
        }
        let Some(metadata) = data.content().and_then(|c| Metadata::decode(&c).ok()) else {
            self.counters.malformed += 1;
            return true;
        };
        let probed_at = metadata
            .nonce
            .and_then(|nonce| self.probes.sent.sent_at(nonce));
        let heard = Heard {
            metadata,
            at: now,
            asked_at: challenged_at.or(probed_at),
        };
        if let Some(verifier) = &self.verifier {
            if data.verify(&**verifier).is_err() {
                self.on_foreign_metadata(now, data);
            } else if self.believe(&heard) {
                self.act(now, &heard);
            }
        } else if self.held.is_none() {
            // One at a time: the key decides about the first.
            self.ask_for_certificate(now, data);
            if self.certificate.is_some() {
                self.act(now, &heard);
                let data = data.clone();
                self.held = Some(Held { data, heard });
            }
        }
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
        // A certificate that was refused may be a cache's, not the publisher's.
        let is_refused = |signer: &Signer| matches!(signer.verdict, Verdict::Refused(_));
        let must_be_fresh = self.signer.as_ref().is_some_and(is_refused);
        let certificate = certificate(name.clone(), must_be_fresh, Some(RETRY));
        self.requester.want_object(now, certificate);
        self.certificate = Some(name);
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
            self.requester.disbelieve(CERTIFICATE);
            self.requester.hasten(CERTIFICATE, now);
            return;
        };
        self.certificate = None;
        self.requester.forget(CERTIFICATE);
        if self.signer.as_ref() != Some(&signer) {
            self.signer = Some(signer.clone());
            self.push(Watched::Signer(signer));
        }
        let Some(key) = key else {
            self.counters.verification_failures += 1;
            if self.trusted.is_none() {
                self.forget();
                // No better signer will be there in a moment.
                self.probes.next_at = Some(now + PROBE_INTERVAL);
            }
            return;
        };
        let verifier: SharedVerifier = match &self.config.trust {
            Trust::Secret(secret) => Arc::new(HmacVerifier::new(secret)),
            Trust::FirstUse | Trust::Remembered(_) | Trust::Pinned(_) => key.clone(),
        };
        let held = self.held.take();
        let is_foreign = |held: &Held| held.data.verify(&*verifier).is_err();
        if held.as_ref().is_some_and(is_foreign) {
            self.on_wrong_certificate(now);
            return;
        }
        self.trusted.get_or_insert(TrustedKey { key });
        self.verifier = Some(verifier.clone());
        let Some(held) = held else {
            return;
        };
        self.proof.begin(now);
        self.believe(&held.heard);
        self.announce();
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            consumer.set_verifier(now, verifier.clone());
        }
    }

    /// The key of the certificate did not sign what was to be verified with it. One of the two is forged, so a key that is
    /// seen for the first time is not kept: the right one could not take its place any more.
    fn on_wrong_certificate(&mut self, now: Instant) {
        self.counters.verification_failures += 1;
        if let Some(signer) = &mut self.signer {
            signer.verdict = Verdict::Refused(Refusal::NotSigner);
            let signer = signer.clone();
            self.push(Watched::Signer(signer));
        }
        self.forget();
        self.probe(now);
    }

    /// Drops what nobody vouches for.
    fn forget(&mut self) {
        self.held = None;
        self.certificate = None;
        self.requester.forget(CERTIFICATE);
        self.end_fetch();
        self.catalogue = None;
        self.refused = None;
        for pulled in core::mem::take(&mut self.streams) {
            self.withdraw(&pulled);
        }
        self.is_announced = false;
    }

    /// Takes what verified metadata says of the publisher: its clock, and that it is there. Returns whether the metadata is
    /// not older than what was heard before.
    fn believe(&mut self, heard: &Heard) -> bool {
        let (at, served_at) = (heard.at, heard.served_at());
        if heard.asked_at.is_none() && served_at < self.probes.served_at {
            self.counters.unexpected += 1;
            return false;
        }
        // An archive repeats what the publisher said last.
        let before = core::mem::replace(&mut self.probes.served_at, served_at);
        let is_news = before != Timestamp::default() && served_at > before;
        if let Some(sent) = heard.asked_at {
            self.sessions.on_clock(at, self.travel.heard(), served_at);
            self.proof.on_answer(sent, served_at);
            let wall = self.wall(at);
            self.clock.on_answer(at, at.since(sent), wall, served_at);
        }
        if heard.asked_at.is_some() || is_news {
            self.travel.on_heard(at, served_at);
        }
        self.travel.on_latest(&heard.metadata.latest);
        true
    }

    /// Acts on metadata that is verified, or as if it were while its key is on the way.
    fn act(&mut self, now: Instant, heard: &Heard) {
        self.probes.on_answer();
        self.requester.forget(METADATA);
        if let Some(rtt) = heard.round_trip() {
            self.requester.on_round_trip(now, rtt);
        }
        if self.travel.is_past() {
            return;
        }
        let metadata = &heard.metadata;
        self.adopt(now, metadata);
        if self.travel.holds_start() && !self.streams.iter().any(|pulled| pulled.has_started) {
            return;
        }
        let delay = self.playout(now).delay(now, heard.served_at());
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            if let Some(rtt) = heard.round_trip() {
                consumer.schedule_mut().on_round_trip(now, rtt);
            }
            consumer.schedule_mut().on_served(now, delay);
        }
        self.share_playout(now);
        self.line_up(now, metadata);
        if !self.is_steady() {
            let soon = now + STARVED_PROBE_INTERVAL;
            self.probes.next_at = self.probes.next_at.map(|at| at.min(soon));
        }
    }

    /// Takes the catalogue that metadata names, if it is another than ours.
    fn adopt(&mut self, now: Instant, metadata: &Metadata) {
        let known = self.catalogue.as_ref().map(|(name, _)| name);
        let fetching = self.fetch.as_ref().map(|fetch| &fetch.catalogue_name);
        let name = &metadata.catalogue_name;
        if known == Some(name) || fetching == Some(name) || self.refused.as_ref() == Some(name) {
            return;
        }
        if let Some(content) = &metadata.catalogue {
            self.end_fetch();
            self.install(now, name.detached(), content);
            return;
        }
        let is_ours = self.names.root().is_prefix_of(name);
        if !is_ours {
            self.counters.malformed += 1;
            return;
        }
        self.fetch = Some(Fetch::begin(now, name.detached(), &mut self.requester));
    }

    fn on_catalogue_segment(&mut self, now: Instant, token: Token, data: &Data) {
        let Some(verifier) = &self.verifier else {
            // The key is on the way; the segment is requested again once it is here.
            return;
        };
        if data.verify(&**verifier).is_err() {
            self.counters.verification_failures += 1;
            self.requester.disbelieve(token);
            return;
        }
        let Some(mut fetch) = self.fetch.take() else {
            return;
        };
        match fetch.take(now, token, data, &mut self.requester) {
            Progress::TooLarge => self.refuse(fetch.catalogue_name, "too large"),
            Progress::Whole(content) => {
                self.install(now, fetch.catalogue_name, &content);
                // Newest samples are known from metadata only: ask for them at once.
                self.probe(now);
            }
            Progress::Partial => self.fetch = Some(fetch),
        }
    }

    /// Does without `catalogue`, and does not look at it again: what has a version does not change.
    fn refuse(&mut self, catalogue: Name, why: &str) {
        self.refused = Some(catalogue);
        self.event(Event::BadCatalogue(why.to_owned()));
    }

    /// Makes `content` the catalogue, and begins to pull what it lists.
    fn install(&mut self, now: Instant, name: Name, content: &Bytes) {
        let catalogue = match Catalogue::decode(content) {
            Ok(catalogue) => catalogue,
            Err(error) => return self.refuse(name, &error.to_string()),
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
                self.push(Watched::gap(kind));
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
            self.push(Watched::Catalogue(catalogue));
        }
    }

    /// Starts streams, or compares them with what the publisher says of its newest samples.
    fn line_up(&mut self, now: Instant, metadata: &Metadata) {
        let starved = self.is_starved;
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
                Some(LinedUp::Known(LineUp::Missed(span))) if span > MAX_BEHIND => {
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
            self.push(Watched::gap(stream));
        }
        for event in events {
            self.event(event);
        }
    }
}
