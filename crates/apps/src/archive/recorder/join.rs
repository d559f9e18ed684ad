//! Metadata, certificate and catalogue: asked for, verified and kept as they were signed.

use core::time::Duration;

use namecast_packet::{Certificate, Data, Name};
use namecast_stream::metadata::{Latest, Metadata};
use namecast_stream::path::{Request, Token};
use namecast_stream::{Catalogue, SampleClass};
use namecast_units::{Instant, Timestamp};

use super::{Event, PublisherVerifier, Recorded, Recorder, Rung};
use crate::discovery::{
    Judge, PROBE_SPACING, Progress, Trust, Verdict, certificate, certificate_of, certificates,
    metadata, verifier,
};
use crate::trust::{Judgement, Moment};

impl Recorder {
    /// Requests metadata, and for certificate and catalogue while they are missing.
    pub(super) fn ask_for_objects(&mut self, now: Instant) {
        if self.probe_at <= now {
            self.queue_rules();
            self.probed_at = Some(now);
            self.probe_at = now + self.config.probe_interval.max(PROBE_SPACING);
            let metadata = metadata(self.metadata, &self.names);
            self.uplink.want_object(now, metadata);
            if let Some((name, _)) = &self.unjudged {
                let certificate = certificate(self.certificate, name.clone(), true, None);
                self.uplink.want_object(now, certificate);
            }
        }
    }

    /// Makes the next metadata Interest leave now, or when it may.
    pub(super) fn hasten_probe(&mut self, now: Instant) {
        let earliest = self.probed_at.map(|at| at + PROBE_SPACING);
        self.probe_at = self.probe_at.min(earliest.map_or(now, |at| at.max(now)));
    }

    /// Takes Data that is no segment of a rung. Returns whether it is of use.
    pub(super) fn on_object(&mut self, now: Instant, token: Token, data: &Data) -> bool {
        if token == self.metadata {
            self.on_metadata(now, data);
        } else if token == self.certificate && self.unjudged.is_some() {
            self.on_certificate(now, data);
        } else if self.catalogues.has_requested(token) {
            self.on_catalogue_segment(now, token.segment.index, data);
        } else if self.supplements.queue_of(token).is_some() {
            self.on_queued(now, token, data);
        } else {
            return false;
        }
        true
    }

    /// Requests the versions of schema and roster that are in force, unless they are recorded.
    fn queue_rules(&mut self) {
        let Trust::Schema(chains) = &self.config.trust else {
            return;
        };
        let versions = chains.with(|it| [it.schema_version(), it.roster_version()]);
        self.supplements.on_versions(versions);
    }

    /// Keeps a packet of a key box, of a schema or of a roster.
    fn on_queued(&mut self, now: Instant, token: Token, data: &Data) {
        let is_genuine = match &self.config.trust {
            Trust::Schema(chains) => {
                let wall = self.config.wall_at_zero + now.since(Instant::ZERO);
                let judged = chains.with(|it| it.judge(data, Moment::Live(wall)));
                matches!(judged, Judgement::Accepted { .. })
            }
            _ => {
                let verifier = self.verifier.as_ref();
                verifier.is_some_and(|verifier| data.verify(&*verifier.0).is_ok())
            }
        };
        if !is_genuine {
            self.counters.verification_failures += 1;
            self.uplink.carry_out(now, Request::Reject(token));
            return;
        }
        let uplink = (&mut self.uplink, self.config.max_attempts);
        let queue = self.supplements.queue_of(token);
        let replaces = queue.and_then(|queue| queue.on_packet(now, data, uplink));
        self.push(Recorded::Object {
            data: Box::new(data.clone()),
            replaces,
        });
    }

    /// Keeps the certificates from the signer's to the anchor's, whose name tells the room.
    fn keep_issuers(&mut self, certificate: &Name) {
        let Trust::Schema(chains) = &self.config.trust else {
            return;
        };
        let issuers = chains.with(|it| it.issuers(certificate));
        let anchor = issuers.last().map(Certificate::identity);
        self.supplements.room = Some(anchor.unwrap_or_else(|| self.names.root().clone()));
        for issuer in issuers {
            self.push(Recorded::Object {
                data: Box::new(issuer.data().clone()),
                replaces: Some(certificates(&issuer.identity())),
            });
        }
    }

    fn on_metadata(&mut self, now: Instant, data: &Data) {
        let Some(metadata) = data.content().and_then(|c| Metadata::decode(&c).ok()) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(verifier) = &self.verifier else {
            self.ask_for_certificate(now, data);
            return;
        };
        if data.verify(&*verifier.0).is_err() {
            self.counters.verification_failures += 1;
            return;
        }
        let served_at = metadata.latest.first().map(|latest| latest.served_at);
        let answers_us = metadata
            .nonce
            .is_some_and(|nonce| self.probes.sent_at(nonce).is_some());
        if served_at <= self.served_at && !answers_us {
            // A cache's, or our own archive's: the producer is gone. What was made for our own Interest is new whatever
            // the publisher's clock shows: it may have been set back.
            return;
        }
        self.served_at = served_at;
        self.heard_at = Some(now);
        self.push(Recorded::Object {
            data: Box::new(data.clone()),
            replaces: None,
        });
        let known = self.catalogue.as_ref().map(|(name, _)| name);
        let name = &metadata.catalogue_name;
        if known == Some(name) {
            self.take_latest(&metadata.latest);
        } else if self.catalogues.fetching() != Some(name) && self.names.root().is_prefix_of(name) {
            self.catalogues.begin(name.detached());
        }
    }

    fn ask_for_certificate(&mut self, now: Instant, metadata: &Data) {
        let Some(name) = certificate_of(self.names.root(), &self.config.trust, metadata) else {
            self.counters.verification_failures += 1;
            return;
        };
        if self
            .unjudged
            .as_ref()
            .is_none_or(|(asked, _)| *asked != name)
        {
            let certificate = certificate(self.certificate, name.clone(), false, None);
            self.uplink.want_object(now, certificate);
            self.unjudged = Some((name, metadata.clone()));
        }
    }

    fn on_certificate(&mut self, now: Instant, data: &Data) {
        let judge = Judge {
            root: self.names.root(),
            trust: &self.config.trust,
            known: None,
            wall: self.config.wall_at_zero + now.since(Instant::ZERO),
            is_past: false,
        };
        let Some((signer, key)) = judge.judge(data.clone()) else {
            self.counters.verification_failures += 1;
            return;
        };
        let refused = matches!(signer.verdict, Verdict::Refused(_));
        if !refused || self.signer.as_ref() != Some(&signer) {
            self.signer = Some(signer.clone());
            self.push(Recorded::Event(Event::Signer(signer)));
        }
        let Some(key) = key else {
            self.counters.verification_failures += 1;
            return;
        };
        let Some((_, metadata)) = self.unjudged.take() else {
            return;
        };
        let verifier = verifier(&self.config.trust, data.name(), key);
        if metadata.verify(&*verifier).is_err() {
            // One of the two is forged. A key that is seen for the first time must not keep the right one out.
            self.counters.verification_failures += 1;
            return;
        }
        self.verifier = Some(PublisherVerifier(verifier));
        self.push(Recorded::Object {
            data: Box::new(data.clone()),
            replaces: Some(certificates(self.names.root())),
        });
        self.keep_issuers(data.name());
        self.on_metadata(now, &metadata);
    }

    fn on_catalogue_segment(&mut self, now: Instant, number: u64, data: &Data) {
        let verified = self
            .verifier
            .as_ref()
            .is_some_and(|verifier| data.verify(&*verifier.0).is_ok());
        if !verified {
            self.counters.verification_failures += 1;
            self.catalogues.reject(number);
            return;
        }
        let Some(name) = self.catalogues.fetching().cloned() else {
            return;
        };
        let progress = self.catalogues.handle_answer(number, data);
        if progress != Progress::TooLarge {
            let catalogues = self.names.root().builder();
            let catalogues = catalogues.generic(namecast_stream::names::CATALOGUE);
            self.push(Recorded::Object {
                data: Box::new(data.clone()),
                replaces: Some(catalogues.finish()),
            });
        }
        match progress {
            Progress::TooLarge => {
                self.push(Recorded::Event(Event::BadCatalogue("too large".to_owned())));
            }
            Progress::Whole(content) => match Catalogue::decode(&content) {
                Ok(catalogue) => self.install(now, name, catalogue),
                Err(error) => {
                    let event = Event::BadCatalogue(error.to_string());
                    self.push(Recorded::Event(event));
                }
            },
            Progress::Partial => {}
        }
    }

    /// Begins to pull what `catalogue` lists, in place of what an earlier one did.
    fn install(&mut self, now: Instant, name: Name, catalogue: Catalogue) {
        for rung in &mut self.rungs {
            rung.sequences.iter_mut().for_each(super::Sequence::end);
            self.uplink.withdraw(&rung.client.tokens());
        }
        self.drain();
        self.rungs = catalogue
            .streams
            .iter()
            .flat_map(|stream| stream.rungs.iter().map(move |rung| (stream, rung)))
            .map(|(stream, rung)| {
                let names = self.names.rung(&stream.name, &rung.name);
                let began = catalogue.start(&stream.name);
                Rung::new(self.uplink.new_client(), names, rung, began)
            })
            .collect();
        let version = catalogue.version;
        self.catalogue = Some((name, catalogue));
        self.push(Recorded::Event(Event::Recording { version }));
        // Newest samples are known from metadata only: ask for them as soon as may be.
        self.hasten_probe(now);
    }

    /// Learns what is published.
    fn take_latest(&mut self, latest: &[Latest]) {
        let began = self.catalogue.as_ref().map(|(_, it)| it.version);
        let began = Timestamp::from_micros(began.unwrap_or_default());
        for rung in &mut self.rungs {
            let own = latest
                .iter()
                .find(|latest| latest.rung == *rung.names.prefix());
            let Some(own) = own else {
                continue;
            };
            let newest = [own.key_sequence, own.delta_sequence];
            let kept = self.config.kept.get(rung.names.prefix());
            let kept = kept.copied().unwrap_or_default();
            for class in SampleClass::ALL.map(SampleClass::index) {
                let sequence = &mut rung.sequences[class];
                sequence.on_published(newest[class]);
                let Some((newest, kept)) = newest[class].zip(kept[class]) else {
                    continue;
                };
                let period = rung.periods[class].as_nanos().max(1);
                let samples = |span: Duration| (span.as_nanos() / period) as u64;
                let behind = newest.checked_sub(kept);
                if behind.is_some_and(|behind| behind <= samples(self.config.resume_within)) {
                    let overlap = samples(self.config.resume_overlap);
                    sequence.start_at((kept + 1).saturating_sub(overlap));
                }
            }
            if own.served_at.since(began) <= self.config.begin_within {
                let first = rung.first;
                rung.sequences.iter_mut().for_each(|it| it.start_at(first));
            }
            // The key sample's lead tells with which delta sample to start.
            if let Some(key) = own.key_sequence {
                rung.sequences[SampleClass::Key.index()].start_at(key);
            }
        }
    }
}
