//! Finds out what is published and who signs it: metadata, certificate, catalogue. Goes on asking while watching, so
//! that a publisher that was started again is noticed.
//!
//! ```text
//!  round trip 1    metadata: catalogue, newest samples
//!  round trip 2    certificate │ newest key sample │ samples after it │ samples that do not exist yet
//! ```

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{Data, Name};
use namecast_stream::consumer::LineUp;
use namecast_stream::path::{Request, Token};
use namecast_stream::{Catalogue, Metadata, StreamKind};
use namecast_units::{Instant, Timestamp};

use super::Watch;
use super::output::{Event, RejoinReason, Watched};
use super::stream::{self, LinedUp, Pulled};
use crate::discovery::{
    Judge, Probes, Progress, Trust, Verdict, certificate_of, metadata, recorded_verifier, verifier,
};

/// Once so much playing time was published without being requested, playback goes on with the newest key sample instead of
/// playing the backlog.
const MAX_BEHIND: Duration = Duration::from_secs(1);

/// Metadata that came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    metadata: Metadata,
    at: Instant,
    /// When our request left that it answers, if that is known.
    asked_at: Option<Instant>,
}

impl Heard {
    pub(super) const fn new(metadata: Metadata, at: Instant, asked_at: Option<Instant>) -> Self {
        Self {
            metadata,
            at,
            asked_at,
        }
    }

    /// The publisher's clock when it answered.
    fn served_at(&self) -> Timestamp {
        let latest = self.metadata.latest.first();
        latest.map(|latest| latest.served_at).unwrap_or_default()
    }

    fn round_trip(&self) -> Option<Duration> {
        self.asked_at.map(|sent| self.at.since(sent))
    }
}

impl Watch {
    /// Sends a metadata Interest as soon as one may leave, and says when the next one is due.
    pub(super) fn probe(&mut self, now: Instant) {
        if self.meters.start(now) {
            self.outbox.event(Event::AskingForMetadata);
        }
        if !self.probes.may_leave(now) {
            return;
        }
        let wall = self.config.wall(now);
        let there = || {
            let offset = self.clock.micros()?;
            let there = wall.as_micros().saturating_add_signed(offset);
            Some(Timestamp::from_micros(there))
        };
        let common = self
            .streams
            .are_steady(self.catalogues.is_announced(), self.travel.is_away())
            .then(|| Probes::until_common(there()));
        self.gather();
        let metadata = metadata(self.probes.token, &self.names);
        self.requests.push_back(Request::Object(metadata));
        self.probes.on_wanted(now, common);
    }

    /// Does without an object that did not come. Returns whether it is one.
    pub(super) fn on_object_dropped(&mut self, token: Token) -> bool {
        if token == self.authority.token() {
            if self.authority.on_dropped() {
                // Whoever answered has no certificate: what it said is worth nothing.
                self.forget();
            }
        } else if self.catalogues.fetcher.has_requested(token) {
            self.catalogues.fetcher.end();
        } else {
            let (was_box, event) = self.unsealing.on_dropped(token);
            event.into_iter().for_each(|it| self.outbox.event(it));
            return was_box;
        }
        true
    }

    /// Takes metadata, which answers `token`. Returns whether an answer is expected.
    pub(super) fn on_metadata(&mut self, now: Instant, token: Token, data: &Data) -> bool {
        let challenged_at = self.proof.challenged_at();
        let challenged_at = challenged_at.filter(|_| token == self.proof.token());
        if !self.probes.is_out() && challenged_at.is_none() {
            return false;
        }
        let Some(metadata) = data.content().and_then(|c| Metadata::decode(&c).ok()) else {
            self.meters.counters_mut().malformed += 1;
            return true;
        };
        let probed_at = metadata.nonce.and_then(|it| self.probes.sent_at(it));
        let heard = Heard::new(metadata, now, challenged_at.or(probed_at));
        if self.authority.is_of_the_past() && !self.travel.holds_start() {
            // Live playback needs a signer who counts now.
            self.authority.reset();
            self.forget();
        }
        if let Some(verifier) = self.authority.verifier() {
            if data.verify(&**verifier).is_err() {
                // Damaged, forged, or the publisher has another key now.
                self.meters.counters_mut().verification_failures += 1;
                if self.streams.is_starved() && !self.authority.is_requesting() {
                    self.ask_for_certificate(now, data);
                }
            } else if self.accept(&heard) {
                self.act(now, &heard);
            }
        } else if !self.authority.is_holding() {
            // One at a time: the key decides about the first.
            self.ask_for_certificate(now, data);
            if self.authority.is_requesting() {
                self.act(now, &heard);
                self.authority.hold(data.clone(), heard);
            }
        }
        true
    }

    fn ask_for_certificate(&mut self, now: Instant, data: &Data) {
        let Some(name) = certificate_of(self.names.root(), &self.config.trust, data) else {
            self.meters.counters_mut().verification_failures += 1;
            return;
        };
        if !self.authority.may_request(now, &name) {
            return;
        }
        self.outbox
            .event(Event::AskingForCertificate { name: name.clone() });
        self.authority.request(name);
    }

    pub(super) fn on_certificate(&mut self, now: Instant, data: &Data) {
        let judge = Judge {
            root: self.names.root(),
            trust: &self.config.trust,
            known: self.authority.trusted(),
            wall: self.config.wall(now),
            is_past: self.travel.holds_start(),
        };
        let Some((signer, key)) = judge.judge(data.clone()) else {
            self.meters.counters_mut().verification_failures += 1;
            self.authority.reject(now);
            return;
        };
        if let Some(signer) = self.authority.on_judged(signer) {
            self.outbox.push(Watched::Signer(signer.clone()));
        }
        let Some(key) = key else {
            self.meters.counters_mut().verification_failures += 1;
            if self.authority.trusted().is_some() {
                self.authority.on_refused(now, data.name());
            } else {
                self.forget();
                // No better signer will be there in a moment.
                self.probes.rest(now);
            }
            return;
        };
        let trust = &self.config.trust;
        let live = verifier(trust, data.name(), key.clone());
        let recorded = recorded_verifier(trust, &live);
        let signer = self.authority.signer();
        let verifier = match signer.is_some_and(|it| it.verdict == Verdict::CertifiedThen) {
            true => recorded.clone(),
            false => live,
        };
        let accepted = self.authority.accept(key, verifier);
        if accepted.is_ok() {
            self.travel.set_verifier(recorded);
        }
        match accepted {
            Ok(Some((heard, verifier))) => {
                self.proof.begin(now);
                self.accept(&heard);
                self.outbox.announce(&mut self.catalogues);
                for consumer in self.streams.consumers() {
                    consumer.set_verifier(now, verifier.clone());
                }
            }
            Ok(None) => {}
            Err(signer) => {
                self.meters.counters_mut().verification_failures += 1;
                if let Some(signer) = signer {
                    self.outbox.push(Watched::Signer(signer));
                }
                self.forget();
                self.probe(now);
            }
        }
    }

    /// Drops what nobody vouches for.
    fn forget(&mut self) {
        self.authority.forget();
        self.catalogues.forget();
        self.streams.end();
        self.resting.clear();
    }

    /// Takes what verified metadata says of the publisher: its clock, and that it is there. Returns whether the metadata is
    /// not older than what was heard before.
    fn accept(&mut self, heard: &Heard) -> bool {
        let (at, served_at) = (heard.at, heard.served_at());
        let is_answer = heard.asked_at.is_some();
        // An archive repeats what the publisher said last.
        let Some(is_news) = self.probes.on_served(served_at, is_answer) else {
            self.meters.counters_mut().unexpected += 1;
            return false;
        };
        if let Trust::Schema(chains) = &self.config.trust {
            let known = chains.with(|chains| chains.roster_version());
            let told = heard.metadata.roster_version;
            let event = self.roster.on_told(at, known, told);
            event.into_iter().for_each(|it| self.outbox.event(it));
        }
        self.meters.on_heard(at);
        if let Some(sent) = heard.asked_at {
            self.sessions.on_clock(at, self.travel.heard(), served_at);
            self.proof.on_answer(sent, served_at);
            self.requests.push_back(Request::Forget(self.proof.token()));
            let wall = self.config.wall(at);
            self.clock.on_answer(at, at.since(sent), wall, served_at);
        }
        if is_answer || is_news {
            self.travel.on_heard(at, served_at);
        }
        self.travel.on_latest(&heard.metadata.latest);
        true
    }

    /// Acts on metadata that is verified, or as if it were while its key is on the way.
    fn act(&mut self, now: Instant, heard: &Heard) {
        self.probes.on_answer();
        self.requests.push_back(Request::Forget(self.probes.token));
        let rtt = heard.round_trip();
        let rtt = rtt.map(|rtt| Request::RoundTrip(self.probes.token.client, rtt));
        self.requests.extend(rtt);
        if self.travel.is_past() {
            return;
        }
        let metadata = &heard.metadata;
        self.adopt(now, metadata);
        let has_started = self.streams.iter().any(|pulled| pulled.has_started);
        if self.travel.holds_start() && !has_started {
            return;
        }
        let playout = self.streams.playout(now, &self.config);
        let delay = playout.delay(now, heard.served_at());
        for consumer in self.streams.consumers() {
            if let Some(rtt) = heard.round_trip() {
                consumer.schedule_mut().on_round_trip(now, rtt);
            }
            consumer.schedule_mut().on_served(now, delay);
        }
        self.streams.share_playout(now, &self.config);
        self.line_up(now, metadata);
        if !self
            .streams
            .are_steady(self.catalogues.is_announced(), self.travel.is_away())
        {
            self.probes.expect(now);
        }
    }

    /// Takes the catalogue that metadata names, if it is another than ours.
    fn adopt(&mut self, now: Instant, metadata: &Metadata) {
        let name = &metadata.catalogue_name;
        if self.catalogues.knows(name) {
            return;
        }
        if let Some(content) = &metadata.catalogue {
            self.catalogues.fetcher.end();
            self.install(now, name.detached(), content);
            return;
        }
        if !self.names.root().is_prefix_of(name) {
            self.meters.counters_mut().malformed += 1;
            return;
        }
        self.catalogues.fetcher.begin(name.detached());
    }

    pub(super) fn on_catalogue_segment(&mut self, now: Instant, token: Token, data: &Data) {
        let number = token.segment.index;
        let Some(verifier) = self.authority.verifier() else {
            // The key is on the way; the segment is requested again once it is here.
            return;
        };
        if data.verify(&**verifier).is_err() {
            self.meters.counters_mut().verification_failures += 1;
            self.catalogues.fetcher.reject(number);
            return;
        }
        match self.catalogues.take(number, data) {
            Some((name, Progress::TooLarge)) => self.refuse(name, "too large"),
            Some((name, Progress::Whole(content))) => {
                self.install(now, name, &content);
                // Newest samples are known from metadata only: they are requested at once.
                self.probe(now);
            }
            Some((_, Progress::Partial)) | None => {}
        }
    }

    /// Does without `catalogue`, and does not look at it again: what has a version does not change.
    fn refuse(&mut self, catalogue: Name, why: &str) {
        self.catalogues.refuse(catalogue);
        self.outbox.event(Event::BadCatalogue(why.to_owned()));
    }

    /// Makes `content` the catalogue, and begins to pull what it lists.
    fn install(&mut self, now: Instant, name: Name, content: &Bytes) {
        let catalogue = match Catalogue::decode(content) {
            Ok(catalogue) => catalogue.preferring(&self.config.streams),
            Err(error) => return self.refuse(name, &error.to_string()),
        };
        let known = self.catalogues.current();
        let lasts = |pulled: &Pulled| {
            let mut wanted = self.config.wanted(&catalogue);
            known.is_some_and(|it| pulled.lasts(it, &catalogue))
                && wanted.any(|it| *it == pulled.info)
        };
        let before = self.streams.end_if(|pulled| !lasts(pulled));
        let has_kept = self.streams.len() > 0;
        if known.is_some() && !(has_kept && before.is_empty()) {
            self.meters.counters_mut().rejoins += 1;
            self.outbox
                .event(Event::Rejoining(RejoinReason::NewCatalogue));
        }
        self.gather();
        if !has_kept {
            self.unsealing.forget_held();
            // What the publisher before it did not answer, this one will not: nothing of that is in a queue.
            self.requests
                .push_back(Request::GiveUp(self.clients.tokens()));
        }
        if let Some(left) = self.catalogues.name() {
            for (stream, shown) in before.iter().filter_map(Pulled::left) {
                self.sessions.leave(left, stream, shown);
            }
        }
        self.resting.extend(before);
        for kind in self.pull_wanted(now, &name, &catalogue) {
            self.outbox.event(Event::NoSuchStream { stream: kind });
        }
        self.resting.clear();
        self.catalogues.install(name, catalogue);
        if self.authority.verifier().is_some() {
            self.outbox.announce(&mut self.catalogues);
        }
    }

    /// Pulls the wanted streams of `catalogue` that are not pulled. Returns the kinds that it does not list.
    fn pull_wanted(&mut self, now: Instant, name: &Name, catalogue: &Catalogue) -> Vec<StreamKind> {
        let mut missing: Vec<_> = self.config.kinds().collect();
        let wanted = self.config.wanted(catalogue);
        let wanted = wanted.filter_map(|info| {
            let choice = self.config.choice(info.kind);
            Some((info, stream::choose(info, &choice)?))
        });
        let wanted: Vec<_> = wanted.collect();
        for (info, rung) in wanted {
            let kind = info.kind;
            missing.retain(|it| *it != kind);
            if self.streams.iter().any(|pulled| pulled.is_of(info)) {
                continue;
            }
            let client = self.clients.draw();
            let mut pulled = self.factory(now, client).pull(now, info, rung);
            let began_at = catalogue.start(&info.name);
            let has_first = matches!(kind, StreamKind::Data | StreamKind::Audio);
            pulled.first = has_first.then(|| rung.rate.first_sequence(began_at));
            if let Some(at) = self.resting.iter().position(|old| old.is_of(info)) {
                pulled.inherit(self.resting.swap_remove(at));
            }
            let shown = self.sessions.shown_before(now, name, &info.name);
            pulled.begin_after(shown, self.sessions.fresh_until(now));
            if pulled.had_frame {
                self.outbox.push(Watched::gap(kind));
            }
            self.streams.push(pulled);
        }
        missing
    }

    /// Chooses whether video and audio are pulled. A stream that is left out costs no requests; one that comes back starts at its
    /// newest key sample. In the past playback starts again at its time.
    pub fn set_wanted(&mut self, now: Instant, video: bool, audio: bool) {
        if (self.config.video, self.config.audio) == (video, audio) {
            return;
        }
        (self.config.video, self.config.audio) = (video, audio);
        self.travel.seek_again(now);
        let wanted: Vec<_> = self.config.kinds().collect();
        let ended = self.streams.end_if(|it| !wanted.contains(&it.kind()));
        let known = self.catalogues.name().cloned();
        if let Some((name, catalogue)) = known.zip(self.catalogues.current().cloned()) {
            for (stream, shown) in ended.iter().filter_map(Pulled::left) {
                self.sessions.leave(&name, stream, shown);
            }
            self.resting.extend(ended);
            self.pull_wanted(now, &name, &catalogue);
            self.streams.forget_starvation();
            self.probe(now);
        }
        self.changed_at = Some(now);
    }

    /// Starts streams, or compares them with what the publisher says of its newest samples.
    fn line_up(&mut self, now: Instant, metadata: &Metadata) {
        let starved = self.streams.is_starved();
        let fresh_until = self.sessions.fresh_until(now);
        let mut events = Vec::new();
        let mut resets = Vec::new();
        for pulled in self.streams.iter_mut() {
            let kind = pulled.kind();
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
                self.meters.counters_mut().rejoins += 1;
            }
        }
        if !resets.is_empty() {
            self.unsealing.forget_held();
        }
        for stream in resets {
            self.outbox.push(Watched::gap(stream));
        }
        for event in events {
            self.outbox.event(event);
        }
    }
}
