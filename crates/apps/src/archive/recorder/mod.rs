//! Records one published root: every packet of every rung, verified, as it was signed.
//!
//! ```text
//!  metadata, once a second ──▶ newest samples ──▶ leads ──▶ all segments that they name ──▶ Recorded::Sample
//! ```
//!
//! It asks only for what is published, once metadata says so: completeness comes before latency, watchers' Interests stay the
//! first ones, and most answers come from caches.

mod join;
mod queue;

use std::collections::{BTreeMap, VecDeque};

use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{Data, Interest, Name, Packet};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::path::{
    self, Budget, ClientId, LiveConfig, Object, Received, Retry, Token, Uplink, UplinkConfig,
};
use namecast_stream::{Catalogue, Lead, RungNames, SampleClass, StreamNames};
use namecast_units::{ByteSize, Instant, Timestamp};

use crate::discovery::{CatalogueFetcher, SentProbes, Signer, Trust};
use crate::samples::{self, Limits, News, Sequence, Taken};
use crate::{Application, Now, Output, face};
use queue::Supplements;

/// How to record one root. [`RecorderConfig::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct RecorderConfig {
    /// The name that was published, such as `/demo`.
    pub root: Name,
    /// Whose signature counts. On first use: a publisher with another key is not recorded.
    pub trust: Trust,
    /// Wall clock at [`Instant::ZERO`].
    pub wall_at_zero: Timestamp,
    /// Seed of the Nonces.
    pub seed: u64,
    /// Time from one metadata Interest to the next.
    pub probe_interval: Duration,
    /// No new metadata for so long: the publisher counts as gone.
    pub silence: Duration,
    /// Interests out at a time.
    pub max_outstanding: usize,
    /// Samples pulled at a time, in each sequence.
    pub max_samples: usize,
    /// Transmissions of an Interest before its sample is given up: six take some eight seconds.
    pub max_attempts: u32,
    /// Older samples than this many before the newest are not asked for after an outage: no cache has them.
    pub max_behind: u64,
    /// The last number kept of each rung's key samples and delta samples, by an earlier recorder. This one goes on there,
    /// if the publisher is no more than [`resume_within`](Self::resume_within) ahead.
    pub kept: BTreeMap<Name, [Option<u64>; 2]>,
    /// A publisher that began no longer ago is recorded from its first sample, which it has in memory; another one from its newest
    /// key samples. Metadata may be found a [`probe_interval`](Self::probe_interval) after the first sample, and pictures and sound
    /// would begin apart by a group.
    pub begin_within: Duration,
    /// How much of the past publishers have in memory.
    pub resume_within: Duration,
    /// How long before the last number recording goes on: of that, some samples may have been waited for still.
    pub resume_overlap: Duration,
    /// Outputs kept until they are polled; samples beyond it are lost.
    pub max_outputs: usize,
}

impl RecorderConfig {
    /// Records all of `root`.
    pub fn new(root: Name) -> Self {
        Self {
            root,
            trust: Trust::FirstUse,
            wall_at_zero: Timestamp::default(),
            seed: 0,
            probe_interval: Duration::from_secs(1),
            silence: Duration::from_secs(3),
            max_outstanding: 256,
            max_samples: 256,
            max_attempts: 6,
            max_behind: 3_000,
            kept: BTreeMap::new(),
            begin_within: Duration::from_secs(5),
            resume_within: Duration::from_secs(30),
            resume_overlap: Duration::from_secs(2),
            max_outputs: 8_192,
        }
    }
}

/// What a recorder reports.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// Packets of a sample to keep, its lead first.
    Sample(Vec<Data>),
    /// A packet to keep by itself.
    Object {
        /// The packet.
        data: Box<Data>,
        /// For certificate and catalogue: the name under which earlier versions are.
        replaces: Option<Name>,
    },
    /// Something people may want to read.
    Event(Event),
}

/// A step or an incident, with a sentence for people.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// Who signs, and whether that counts.
    Signer(Signer),
    /// Everything in this version of the catalogue is recorded from now on.
    Recording {
        /// Its version.
        version: u64,
    },
    /// The catalogue was refused.
    BadCatalogue(String),
    /// These samples could not be had.
    Gap {
        /// Name of the rung.
        rung: Name,
        /// Key or delta.
        class: SampleClass,
        /// First and last.
        sequences: RangeInclusive<u64>,
    },
    /// The publisher does not answer any more.
    Silent,
    /// It answers again.
    Recovered,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signer(signer) => write!(f, "signed by {} ({})", signer.key_name, signer.verdict),
            Self::Recording { version } => write!(f, "recording catalogue v={version}"),
            Self::BadCatalogue(why) => write!(f, "catalogue refused: {why}"),
            Self::Gap {
                rung,
                class,
                sequences,
            } => write!(
                f,
                "gap: {rung} has no {} samples {} to {}",
                class.word(),
                sequences.start(),
                sequences.end()
            ),
            Self::Silent => f.write_str("the publisher does not answer; waiting for it"),
            Self::Recovered => f.write_str("the publisher answers again"),
        }
    }
}

/// What a recorder has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests sent.
    pub interests: u64,
    /// Samples of which every packet came.
    pub complete: u64,
    /// Samples kept without some of their packets.
    pub incomplete: u64,
    /// Samples that could not be had.
    pub missing: u64,
    /// Packets that are not what was signed.
    pub verification_failures: u64,
    /// Packets that break the format.
    pub malformed: u64,
    /// Packets that nobody asked for, or came twice.
    pub unexpected: u64,
    /// Interests that came back.
    pub nacked: u64,
    /// Outputs lost because nobody polled.
    pub outputs_dropped: u64,
}

/// Time span that a publisher can answer from memory, in capture times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherMemory {
    /// When it began to publish, or its memory begins, whichever is later.
    pub since: Timestamp,
    /// When it answered last.
    pub until: Timestamp,
}

/// One rung being recorded.
#[derive(Debug)]
struct Rung {
    client: ClientId,
    names: RungNames,
    is_standalone: bool,
    /// Number of the publisher's first sample, key and delta.
    first: u64,
    /// From one key sample to the next, and from one delta sample.
    periods: [Duration; 2],
    /// Key and delta.
    sequences: [Sequence; 2],
}

impl Rung {
    /// A rung of a publisher that began at `began`.
    fn new(
        client: ClientId,
        names: RungNames,
        rung: &namecast_stream::Rung,
        began: Timestamp,
    ) -> Self {
        Self {
            client,
            names,
            is_standalone: rung.key_interval <= 1,
            first: rung.rate.first_sequence(began),
            periods: [
                rung.rate.period() * rung.key_interval.max(1),
                rung.rate.period(),
            ],
            sequences: SampleClass::ALL.map(Sequence::new),
        }
    }
}

/// Records one published root.
///
/// Give it what arrives and the time, and after each call take everything from [`poll_output`](Self::poll_output). The first
/// call of [`handle_timeout`](Self::handle_timeout) starts. Early and repeated calls are harmless.
#[derive(Debug)]
pub struct Recorder {
    config: RecorderConfig,
    names: StreamNames,
    uplink: Uplink,
    /// Tokens of the metadata and certificate requests.
    metadata: Token,
    certificate: Token,
    probed_at: Option<Instant>,
    probe_at: Instant,
    probes: SentProbes,
    /// The certificate that is asked for, and metadata that waits for it.
    unjudged: Option<(Name, Data)>,
    signer: Option<Signer>,
    verifier: Option<PublisherVerifier>,
    catalogues: CatalogueFetcher,
    catalogue: Option<(Name, Catalogue)>,
    /// When the newest metadata was made, by the publisher's clock, and when it came.
    served_at: Option<Timestamp>,
    heard_at: Option<Instant>,
    is_silent: bool,
    rungs: Vec<Rung>,
    supplements: Supplements,
    outputs: VecDeque<Output<Recorded>>,
    counters: Counters,
}

/// Verifies what the publisher signs.
struct PublisherVerifier(SharedVerifier);

impl fmt::Debug for PublisherVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublisherVerifier")
    }
}

impl Recorder {
    /// A recorder that starts at the first [`handle_timeout`](Self::handle_timeout).
    pub fn new(config: RecorderConfig) -> Self {
        let bounds = UplinkConfig {
            seed: config.seed,
            ..UplinkConfig::default()
        };
        let mut uplink = Uplink::new(bounds, Budget::live(LiveConfig::default()));
        let client = uplink.new_client();
        Self {
            names: StreamNames::new(config.root.clone()),
            metadata: client.object(0),
            certificate: client.object(1),
            catalogues: CatalogueFetcher::new(uplink.new_client()),
            supplements: Supplements::new([uplink.new_client(), uplink.new_client()]),
            uplink,
            probed_at: None,
            probe_at: Instant::ZERO,
            probes: SentProbes::default(),
            unjudged: None,
            signer: None,
            verifier: None,
            catalogue: None,
            served_at: None,
            heard_at: None,
            is_silent: false,
            rungs: Vec::new(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in an LpPacket. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, packet: Bytes) {
        match face::open(packet) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                self.handle_data(now, &data);
            }
            Ok(Some((Packet::Interest(interest), link))) if link.nack.is_some() => {
                self.handle_nack(now, &interest);
            }
            Ok(_) => self.counters.unexpected += 1,
            Err(_) => self.counters.malformed += 1,
        }
        self.settle(now);
    }

    fn handle_data(&mut self, now: Instant, data: &Data) {
        let received = Received::new(ByteSize::of(data.wire()), false);
        self.uplink.handle_data(now, data.name(), &received);
        let mut is_of_use = false;
        while let Some(answer) = self.uplink.poll_answer() {
            let token = answer.token;
            is_of_use |= match self.rungs.iter().position(|it| it.client == token.client) {
                Some(rung) => self.on_segment(now, rung, token, data),
                None => self.on_object(now, token, data),
            };
        }
        self.counters.unexpected += u64::from(!is_of_use);
    }

    fn on_segment(&mut self, now: Instant, at: usize, token: Token, data: &Data) -> bool {
        let Some(verifier) = &self.verifier else {
            return false;
        };
        let rung = &mut self.rungs[at];
        let id = token.segment;
        let (taken, lead) = rung.sequences[id.class.index()].on_data(id, data, &*verifier.0);
        for request in taken.requests(now, token) {
            self.uplink.carry_out(now, request);
        }
        self.counters.verification_failures += u64::from(taken == Taken::Bad);
        let header = lead.as_ref().map(Lead::header);
        if let Some(seal) = header.and_then(|header| header.seal) {
            self.supplements.boxes.on_seal(self.names.root(), &seal);
        }
        let deltas = &mut rung.sequences[SampleClass::Delta.index()];
        if let Some(lead) = lead
            && id.class == SampleClass::Key
            && !rung.is_standalone
            && !deltas.has_started()
        {
            deltas.start_at(lead.header().other_sequence);
        }
        taken != Taken::Unwanted
    }

    fn handle_nack(&mut self, now: Instant, interest: &Interest) {
        self.counters.nacked += 1;
        for nacked in self.uplink.handle_nack(interest) {
            if self.rungs.iter().any(|it| it.client == nacked.token.client) {
                self.uplink.carry_out(now, samples::on_nack(now, nacked));
            }
        }
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.ask_for_objects(now);
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let uplink = self.uplink.poll_timeout();
        uplink.into_iter().chain([self.probe_at]).min()
    }

    /// The next thing to do or to know, until `None`.
    pub fn poll_output(&mut self) -> Option<Output<Recorded>> {
        self.outputs.pop_front()
    }

    /// Records that the transport came back: everything that is pending is retransmitted at once.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.hasten_probe(now);
        self.uplink.restart_objects(now);
        self.handle_timeout(now);
    }

    /// What it counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What is recorded, once it is known.
    pub fn catalogue(&self) -> Option<&Catalogue> {
        self.catalogue.as_ref().map(|(_, catalogue)| catalogue)
    }

    /// Returns what the publisher has in memory, once it has answered.
    pub fn publisher_memory(&self) -> Option<PublisherMemory> {
        let began = Timestamp::from_micros(self.catalogue()?.version);
        let until = self.served_at?;
        let oldest = until.as_micros();
        let oldest = oldest.saturating_sub(self.config.resume_within.as_micros() as u64);
        Some(PublisherMemory {
            since: began.max(Timestamp::from_micros(oldest)),
            until,
        })
    }

    /// Samples published and not kept yet.
    pub fn backlog(&self) -> u64 {
        self.sequences().map(Sequence::backlog).sum()
    }

    fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.rungs.iter().flat_map(|rung| &rung.sequences)
    }

    fn settle(&mut self, now: Instant) {
        self.carry_out(now);
        self.uplink.handle_timeout(now);
        self.pull(now);
        while let Some(event) = self.uplink.poll_event() {
            match event {
                path::Event::Interest { interest, .. } => {
                    self.counters.interests += 1;
                    self.put(Output::Send(interest.wire().clone()));
                }
                path::Event::Sent { token, nonce, .. } if token == self.metadata => {
                    self.probes.push(now, nonce);
                }
                path::Event::Dropped(token) => self.on_dropped(now, token),
                _ => {}
            }
        }
        self.drain();
        let silent = self
            .heard_at
            .is_some_and(|heard| now.since(heard) >= self.config.silence);
        if silent != self.is_silent {
            self.is_silent = silent;
            let event = if silent {
                Event::Silent
            } else {
                Event::Recovered
            };
            self.push(Recorded::Event(event));
        }
    }

    /// Does what the fetcher of catalogues wants.
    fn carry_out(&mut self, now: Instant) {
        while let Some(request) = self.catalogues.poll_request() {
            self.uplink.carry_out(now, request);
        }
    }

    /// Does without what did not come.
    fn on_dropped(&mut self, now: Instant, token: Token) {
        let rung = self.rungs.iter_mut().find(|it| it.client == token.client);
        if let Some(rung) = rung {
            rung.sequences[token.segment.class.index()].give_up(token.segment.sequence);
            self.uplink.withdraw(&token.sample());
            self.pull(now);
        } else {
            match self.supplements.queue_of(token) {
                Some(queue) => queue.give_up(),
                None => drop(self.catalogues.end()),
            }
        }
    }

    /// Requests what is published, within the bounds.
    fn pull(&mut self, now: Instant) {
        let limits = Limits {
            max_samples: self.config.max_samples,
            max_behind: self.config.max_behind,
        };
        let retry = Retry {
            max_interests: self.config.max_attempts,
            ..samples::RETRY
        };
        let clients = self.rungs.iter().map(|rung| rung.client);
        let attempts = self.config.max_attempts;
        self.supplements.pull(now, &mut self.uplink, attempts);
        let mut out: usize = clients.map(|it| self.uplink.objects_out(it)).sum();
        for rung in &mut self.rungs {
            for sequence in &mut rung.sequences {
                sequence.begin(&limits, u64::MAX);
                for segment in sequence.ask(self.config.max_outstanding.saturating_sub(out)) {
                    out += 1;
                    let client = rung.client;
                    let interest = Interest::builder(rung.names.segment(segment));
                    let object = Object::new(client.token(segment), interest, Some(retry));
                    self.uplink.want_object(now, object);
                }
            }
        }
    }

    fn drain(&mut self) {
        let mut outputs = Vec::new();
        for rung in &mut self.rungs {
            for (class, sequence) in SampleClass::ALL.into_iter().zip(&mut rung.sequences) {
                while let Some(news) = sequence.poll_news() {
                    outputs.push(match news {
                        News::Sample(_, packets, whole) => {
                            self.counters.complete += u64::from(whole);
                            self.counters.incomplete += u64::from(!whole);
                            let packets = packets.into_iter().map(|(_, data)| data);
                            Recorded::Sample(packets.collect())
                        }
                        News::Gap(sequences) => {
                            let missing = sequences.end() - sequences.start() + 1;
                            self.counters.missing += missing;
                            Recorded::Event(Event::Gap {
                                rung: rung.names.prefix().clone(),
                                class,
                                sequences,
                            })
                        }
                    });
                }
            }
        }
        outputs.into_iter().for_each(|output| self.push(output));
    }

    fn push(&mut self, recorded: Recorded) {
        self.put(Output::Event(recorded));
    }

    fn put(&mut self, output: Output<Recorded>) {
        if self.outputs.len() >= self.config.max_outputs {
            self.counters.outputs_dropped += 1;
        } else {
            self.outputs.push_back(output);
        }
    }
}

impl Application for Recorder {
    type Event = Recorded;

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
        Self::poll_output(self)
    }
}
