//! Watches one published root: finds out what there is, who signs it, and pulls video and audio in step.

mod config;
mod figures;
mod join;
mod liveness;
mod measure;
mod output;
mod past;
mod probes;
mod probing;
mod pull;
mod requests;
mod rungs;
mod seek;
mod sessions;
mod steer;

use std::collections::VecDeque;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{Data, Interest, LpPacket, Name, Packet, lp::NackReason};
use namecast_stream::consumer::{self, Consumer, Delivery, Playout, Sample, SharedVerifier, Shown};
use namecast_stream::path::{Client, Requester, RequesterConfig};
use namecast_stream::{Catalogue, Rung, StreamKind, StreamNames};
use namecast_units::{Bitrate, Instant, Timestamp};

pub use config::{RungChoice, WatcherConfig};
pub use figures::TableSizes;
pub use liveness::Liveness;
pub use output::{Event, Frame, RejoinReason, Stages, Unkept, Watched};
pub use seek::Seek;

use super::stats::Stats;
use crate::discovery::{Fetch, TrustedKey};
pub use crate::discovery::{Pin, Refusal, Signer, Trust, Verdict};
use crate::{Application, Now, Output, face};
use measure::{ClockOffset, Frames, RateMeter};
use pull::{ConsumerFactory, Pulled, Retired};

/// Nothing has arrived for this long: the stream is starved. A frame or two late are none of it.
const STARVATION: Duration = Duration::from_millis(500);
/// Longest playout target: beyond it, buffers would be too small.
const MOST_TARGET: Duration = Duration::from_secs(10);

fn requester(config: &WatcherConfig) -> Requester {
    let bounds = RequesterConfig {
        seed: config.seed,
        target: config.target,
        ..RequesterConfig::default()
    };
    Requester::new(
        bounds,
        config.control.build(Instant::ZERO, Bitrate::default()),
    )
}

/// Watches one published root.
///
/// Give it what arrives ([`handle_packet`](Self::handle_packet)) and the time ([`handle_timeout`](Self::handle_timeout)
/// whenever [`poll_timeout`](Self::poll_timeout) says so), and after each call take everything from
/// [`poll_output`](Self::poll_output). The first call of `handle_timeout` starts the join. Early and repeated calls are
/// harmless.
pub struct Watcher {
    config: WatcherConfig,
    names: StreamNames,
    /// When the first Interest left.
    started_at: Option<Instant>,
    /// From then to the first frame.
    joined_after: Option<Duration>,
    probes: probes::Probes,
    /// Metadata that waits for its key, the certificate that is requested, and the catalogue.
    held: Option<join::Held>,
    certificate: Option<Name>,
    fetch: Option<Fetch>,
    trusted: Option<TrustedKey>,
    verifier: Option<SharedVerifier>,
    /// The signer judged last, trusted or not.
    signer: Option<Signer>,
    catalogue: Option<(Name, Catalogue)>,
    /// The catalogue that was refused last.
    refused: Option<Name>,
    /// Whether the catalogue was verified and handed out.
    is_announced: bool,
    streams: Vec<Pulled>,
    /// Everything that is requested over the path.
    requester: Requester,
    next_client: Client,
    /// Consumers that are gone, some of whose Data may still come.
    retired: VecDeque<Retired>,
    steered_at: Instant,
    travel: seek::Travel,
    is_starved: bool,
    rejoins: u64,
    sessions: sessions::Sessions,
    proof: liveness::Proof,
    clock: ClockOffset,
    wire: RateMeter,
    payload: RateMeter,
    frames: Frames,
    counters: figures::OwnCounters,
    outputs: VecDeque<Output<Watched>>,
}

impl core::fmt::Debug for Watcher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Watcher")
            .field("root", self.names.root())
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

impl Watcher {
    /// A watcher that will join at the first [`handle_timeout`](Self::handle_timeout).
    pub fn new(config: WatcherConfig) -> Self {
        Self {
            names: StreamNames::new(config.root.clone()),
            started_at: None,
            joined_after: None,
            probes: probes::Probes::default(),
            held: None,
            certificate: None,
            fetch: None,
            trusted: None,
            verifier: None,
            signer: None,
            catalogue: None,
            refused: None,
            is_announced: false,
            streams: Vec::new(),
            requester: requester(&config),
            next_client: 0,
            retired: VecDeque::new(),
            steered_at: Instant::ZERO,
            travel: seek::Travel::new(config.from),
            is_starved: false,
            rejoins: 0,
            sessions: sessions::Sessions::default(),
            proof: liveness::Proof::new(config.seed),
            clock: ClockOffset::default(),
            wire: RateMeter::default(),
            payload: RateMeter::default(),
            frames: Frames::default(),
            counters: figures::OwnCounters::default(),
            outputs: VecDeque::new(),
            config,
        }
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in an LpPacket. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, packet: Bytes) {
        match face::open(packet) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                let delivery = Delivery {
                    congestion_marked: link.congestion_mark > 0,
                    face: link.incoming_face,
                };
                self.handle_data(now, &data, delivery);
            }
            Ok(Some((
                Packet::Interest(interest),
                LpPacket {
                    nack: Some(reason), ..
                },
            ))) => {
                self.handle_nack(now, &interest, reason);
            }
            Ok(_) => self.counters.unexpected += 1,
            Err(_) => self.counters.malformed += 1,
        }
        self.settle(now);
    }

    fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) {
        self.wire.add(now, data.wire().len() as u64);
        if self.on_past_data(now, data) {
            return;
        }
        let taken = self.on_segment(now, data, delivery);
        if !taken && !self.on_object(now, data) {
            self.counters.unexpected += 1;
        }
    }

    fn handle_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) {
        if self.on_past_nack(now, interest) {
            return;
        }
        let (mut taken, mut is_refused) = (false, false);
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            if let Some(token) = consumer.token_of(interest.name()) {
                is_refused = reason == NackReason::None
                    && token.segment.is_lead()
                    && self.requester.is_latest(token, interest.nonce());
                self.requester
                    .handle_nack(now, token, interest.nonce(), reason);
                taken = consumer.handle_nack(now, interest, reason);
                break;
            }
        }
        if is_refused {
            // The publisher knows nothing of a sample that should come: it may be another one.
            self.probe_soon(now);
        }
        // Metadata, certificate and catalogue are requested again in their own time.
        if !taken && self.names.root().is_prefix_of(interest.name()) {
            self.counters.nacked += 1;
        } else if !taken {
            self.counters.unexpected += 1;
        }
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.probes.next_at.is_none_or(|at| at <= now) {
            self.probe(now);
        }
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            consumer.handle_timeout(now);
        }
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = [
            self.probes.next_at.or(Some(Instant::ZERO)),
            self.starves_at(),
            self.past_timeout(),
            self.proof.poll_timeout(),
            self.requester.poll_timeout(),
        ];
        let streams = self.streams.iter().flat_map(Pulled::poll_timeouts);
        own.into_iter().flatten().chain(streams).min()
    }

    /// The next thing to do or to know, until `None`.
    pub fn poll_output(&mut self) -> Option<Output<Watched>> {
        self.outputs.pop_front()
    }

    /// Moves the playout target, at most 10 s. Frames that were not handed out yet are re-timed at once; none is lost or
    /// repeated.
    pub fn set_target(&mut self, now: Instant, target: Duration) {
        self.config.target = target.min(MOST_TARGET);
        self.settle(now);
    }

    /// Chooses another bitrate of the video; playback changes over at a key frame, without a gap where both rungs come.
    pub fn set_rung(&mut self, now: Instant, rung: RungChoice) {
        self.config.rung = rung;
        if self.travel.is_past() {
            self.seek_again(now);
            self.settle(now);
            return;
        }
        let video = self
            .streams
            .iter()
            .position(|pulled| pulled.kind == StreamKind::Video);
        let Some(at) = video else {
            return;
        };
        let pulled = &mut self.streams[at];
        if self.config.rung == RungChoice::Auto {
            let sound = self.sound_need();
            self.streams[at].choose_by_itself(now, &self.config.ladder, sound);
        } else if let Some(rung) = pull::choose(&pulled.info, &self.config.rung).cloned() {
            pulled.auto = None;
            self.prepare_rung(now, at, &rung);
        }
        self.settle(now);
    }

    /// Begins to pull `rung` of the stream at place `at` beside the one that is shown, if it is another.
    fn prepare_rung(&mut self, now: Instant, at: usize, rung: &Rung) {
        let client = self.client();
        let mut pulled = self.streams.remove(at);
        let wheel = steer::Wheel {
            factory: self.factory(now),
            requester: &self.requester,
            client,
        };
        let is_chosen = pulled.auto.is_none();
        if !is_chosen || !pulled.change_at_next_key(now, &wheel, &rung.name) {
            wheel.factory.prepare(now, &mut pulled, rung, client);
        }
        let needs_metadata = pulled.upcoming.is_some();
        self.streams.insert(at, pulled);
        if needs_metadata {
            self.probe(now);
        }
    }

    /// Takes note that the front-end decoded a frame, which took `took`.
    pub fn handle_decoded(
        &mut self,
        _now: Instant,
        stream: StreamKind,
        position: u64,
        took: Duration,
    ) {
        self.frames.on_decoded(stream, position, took);
    }

    /// Takes note that the front-end showed a frame.
    pub fn handle_rendered(&mut self, now: Instant, stream: StreamKind, position: u64) {
        let offset = self.clock.micros().unwrap_or(0);
        let wall = self.wall(now).as_micros();
        let publisher_now = Timestamp::from_micros(wall.saturating_add_signed(offset));
        let counts = stream == StreamKind::Video || !self.config.video;
        let known = self
            .frames
            .on_rendered(stream, position, publisher_now, counts);
        if let Some(pulled) = self.stream_mut(stream).filter(|_| known) {
            pulled.rendered += 1;
        }
    }

    /// Takes note that the decoder failed: the next frame handed out is a key frame, after a
    /// [`Watched::Discontinuity`].
    pub fn handle_decoder_error(&mut self, now: Instant, stream: StreamKind) {
        if let Some(pulled) = self.stream_mut(stream) {
            pulled.decoder_errors += 1;
            pulled.consumer.handle_decoder_error(now);
        }
        self.seek_again(now);
        self.settle(now);
    }

    /// Takes note that the transport came back: everything that is pending is asked for again at once.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.probes.on_link_change();
        self.probe(now);
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            consumer.handle_link_change(now);
        }
        self.requester.handle_link_change();
        self.requester.restart_objects(now);
        self.travel.handle_link_change(now);
        self.settle(now);
    }

    /// Figures for people.
    pub fn stats(&self, now: Instant) -> Stats {
        self.figures(now)
    }

    /// The consumer that frames of the stream of this kind come from, if it is pulled.
    pub fn consumer(&self, stream: StreamKind) -> Option<&Consumer> {
        self.stream(stream).map(|pulled| &pulled.consumer)
    }

    /// The consumer of the rung that is pulled beside it, to change over to or to try it, if there is one.
    pub fn upcoming(&self, stream: StreamKind) -> Option<&Consumer> {
        Some(&self.stream(stream)?.upcoming.as_ref()?.consumer)
    }

    /// What the way carries, as far as the choice of the rung of this stream has found out.
    pub fn bandwidth(&self, now: Instant, stream: StreamKind) -> Option<Bitrate> {
        let auto = self.stream(stream)?.auto.as_ref()?;
        let capacity = self.requester.path().carried() as u64;
        let _ = now;
        Some(auto.estimate().unwrap_or(Bitrate::bps(capacity)))
    }

    /// Sizes of all tables, to see that they are bounded.
    pub fn table_sizes(&self) -> TableSizes {
        self.sizes()
    }

    fn stream_mut(&mut self, kind: StreamKind) -> Option<&mut Pulled> {
        self.streams.iter_mut().find(|pulled| pulled.kind == kind)
    }

    /// Our wall clock now.
    fn wall(&self, now: Instant) -> Timestamp {
        self.config.wall_at_zero + now.since(Instant::ZERO)
    }

    fn playout(&self, now: Instant) -> Playout {
        pull::playout(
            &self.streams,
            now,
            self.config.wall_at_zero,
            self.config.target,
        )
    }

    /// Everything that is requested over the path, and what is known of it.
    pub const fn requester(&self) -> &Requester {
        &self.requester
    }

    fn factory(&self, now: Instant) -> ConsumerFactory<'_> {
        ConsumerFactory {
            sound: self.sound_need(),
            config: &self.config,
            names: &self.names,
            verifier: self.verifier.as_ref(),
            playout: self.playout(now),
        }
    }

    /// Gives all streams the same clock.
    fn share_playout(&mut self, now: Instant) {
        let playout = self.playout(now);
        for pulled in &mut self.streams {
            let lead = self.config.lead(pulled.kind);
            for consumer in pulled.consumers() {
                consumer.set_playout(now, playout, lead);
            }
        }
    }

    /// Whether there is nothing to find out at the moment.
    fn is_steady(&self) -> bool {
        let started = |pulled: &Pulled| {
            let upcoming = pulled.upcoming.as_ref().filter(|_| !pulled.is_steered());
            pulled.has_started
                && upcoming.is_none_or(|it| it.consumer.schedule().last_arrival().is_some())
        };
        let is_playing = self.travel.is_away() || self.streams.iter().all(started);
        self.is_announced && !self.is_starved && is_playing
    }

    fn last_arrival(&self) -> Option<Instant> {
        self.streams
            .iter()
            .filter_map(|pulled| pulled.consumer.schedule().last_arrival())
            .max()
    }

    /// When the streams count as starved if nothing arrives before.
    fn starves_at(&self) -> Option<Instant> {
        let last = self.last_arrival().filter(|_| !self.is_starved)?;
        Some(last + STARVATION)
    }

    /// After every event: keeps clocks equal, changes rungs, passes on what consumers want, notices starvation.
    fn settle(&mut self, now: Instant) {
        self.run_past(now);
        self.share_playout(now);
        let mut switched = Vec::new();
        for pulled in &mut self.streams {
            if let Some(rung) = pulled.switch_if_due(now) {
                // What the old rung had ready comes first.
                switched.push(rung);
            }
        }
        for rung in switched {
            self.event(Event::SwitchedRung { rung });
        }
        self.watch_rungs(now);
        let starved = self
            .last_arrival()
            .is_some_and(|last| now.since(last) >= STARVATION);
        if starved != self.is_starved {
            self.is_starved = starved;
            self.event(if starved {
                Event::Starved
            } else {
                Event::Recovered
            });
            if starved {
                self.probe(now);
            }
        }
        self.drain(now);
        self.prove(now);
        self.run_requester(now);
        self.steer(now);
    }

    /// Finds out whether what is shown is live.
    fn prove(&mut self, now: Instant) {
        if let Some(name) = self.proof.poll_challenge(now, &self.names) {
            self.requester.want_object(now, join::challenge(name));
        }
        let (wall, target) = (self.wall(now), self.config.target);
        if let Some(liveness) = self.proof.news(now, wall, target) {
            self.event(Event::Liveness(liveness));
        }
    }

    /// Prepares the change to rungs that suit the way better.
    fn watch_rungs(&mut self, now: Instant) {
        for at in 0..self.streams.len() {
            if self.streams[at].is_steered() {
                continue;
            }
            let Some(rung) = self.streams[at].watch_rung(now) else {
                continue;
            };
            self.prepare_rung(now, at, &rung);
        }
    }

    fn drain(&mut self, now: Instant) {
        for at in 0..self.streams.len() {
            while let Some((client, output)) = self.streams[at].poll_output() {
                let stream = self.streams[at].kind;
                match (client, output) {
                    (_, consumer::Output::Discontinuity) => self.push(Watched::gap(stream)),
                    (_, consumer::Output::Sample(sample)) => self.hand_out(now, at, sample, false),
                    (client, request) => self.on_request(now, client, request),
                }
            }
            for retired in core::mem::take(&mut self.streams[at].retired) {
                self.retire(retired);
            }
        }
    }

    fn hand_out(&mut self, now: Instant, at: usize, sample: Sample, decode_only: bool) {
        self.payload.add(now, sample.payload.len() as u64);
        let way = self
            .playout(now)
            .delay(sample.lead_at, sample.header.published_at())
            .saturating_add(self.clock.micros().unwrap_or(0));
        let way = Duration::from_micros(u64::try_from(way).unwrap_or(0));
        let stages = Frames::stages(&sample, way);
        let pulled = &mut self.streams[at];
        let stream = pulled.kind;
        let is_first = !core::mem::replace(&mut pulled.had_frame, true);
        let shown = Shown {
            position: Some(sample.header.position),
            captured_at: sample.header.captured_at,
        };
        // What was shown at another rung is only decoded.
        let again = pulled
            .shown
            .filter(|before| pulled.is_steered() && before.covers(&sample.header));
        let decode_only = decode_only || again.is_some();
        pulled.shown = Some(again.unwrap_or(shown));
        let rung = pulled.rung.clone();
        self.frames.on_handed_out(stream, &sample, stages);
        self.proof.on_frame(now, sample.header.captured_at);
        if is_first {
            let after = now.since(self.started_at.unwrap_or(now));
            self.joined_after.get_or_insert(after);
            self.event(Event::FirstFrame { stream, after });
        }
        self.push(Watched::Frame(Frame {
            stream,
            rung,
            position: sample.header.position,
            key: sample.key,
            payload: sample.payload,
            captured_at: sample.header.captured_at,
            render_at: sample.render_at,
            complete_at: sample.complete_at,
            late: sample.late,
            catching_up: sample.catching_up,
            decode_only,
            stages,
        }));
    }

    fn event(&mut self, event: Event) {
        self.push(Watched::Event(event));
    }

    fn push(&mut self, watched: Watched) {
        self.put(Output::Event(watched));
    }

    fn put(&mut self, output: Output<Watched>) {
        if self.outputs.len() >= self.config.most_outputs {
            // Nobody listens. What is asked for is asked for again in time; frames can be skipped.
            self.outputs.pop_front();
            self.counters.outputs_dropped += 1;
        }
        self.outputs.push_back(output);
    }
}

impl Application for Watcher {
    type Event = Watched;

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
