//! Watches one published root: finds out what there is, who signs it, and pulls video and audio in step.

mod catalogues;
mod clients;
mod config;
mod join;
mod output;
mod rungs;
mod seek;
mod stats;
mod steering;
mod stream;
mod streams;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{LpPacket, Packet};
use namecast_stream::consumer::{self, Consumer, Sample};
use namecast_stream::path::{ClientId, Request, Uplink, UplinkConfig};
use namecast_stream::{Rung, StreamKind, StreamNames};
use namecast_units::{Bitrate, Instant, Timestamp};

pub use config::{RungChoice, WatcherConfig};
pub use output::{Event, Frame, RejoinReason, Stages, Unkept, Watched};
pub use seek::Seek;
pub use stats::TableSizes;

pub use super::liveness::Liveness;

use super::liveness::Proof;
use super::measure::{ClockOffset, Frames};
use crate::discovery::{Authority, Probes};
pub use crate::discovery::{Pin, Refusal, Signer, Trust, Verdict};
use crate::{Application, Now, Output, face};
use catalogues::{Catalogues, Sessions};
use join::Heard;
use output::Outbox;
use stats::Meters;
use stream::ConsumerFactory;
use streams::Streams;

/// Longest playout target: beyond it, buffers would be too small.
const MAX_TARGET: Duration = Duration::from_secs(10);

fn uplink(config: &WatcherConfig) -> Uplink {
    let bounds = UplinkConfig {
        seed: config.seed,
        target: config.target,
        ..UplinkConfig::default()
    };
    Uplink::new(
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
    probes: Probes,
    authority: Authority<Heard>,
    catalogues: Catalogues,
    streams: Streams,
    /// Streams of the catalogue that are not wanted at the moment, one of a kind.
    resting: Vec<stream::Pulled>,
    /// Everything that is requested over the path.
    uplink: Uplink,
    /// What requests packets to find out what the path carries.
    prober: ClientId,
    travel: seek::Travel,
    sessions: Sessions,
    proof: Proof,
    clock: ClockOffset,
    meters: Meters,
    outbox: Outbox,
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
        let mut uplink = uplink(&config);
        Self {
            names: StreamNames::new(config.root.clone()),
            probes: Probes::new(uplink.new_client().object(0)),
            authority: Authority::new(uplink.new_client().object(0)),
            catalogues: Catalogues::new(uplink.new_client()),
            streams: Streams::default(),
            resting: Vec::new(),
            travel: seek::Travel::new(config.from, uplink.new_client()),
            sessions: Sessions::default(),
            proof: Proof::new(config.seed, uplink.new_client().object(0)),
            prober: uplink.new_client(),
            uplink,
            clock: ClockOffset::default(),
            meters: Meters::default(),
            outbox: Outbox::new(config.max_outputs),
            config,
        }
    }

    /// Takes what the application face delivered: Data or a Nack, bare or in an LpPacket. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, packet: Bytes) {
        match face::open(packet) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                self.handle_data(now, &data, face::delivery(&link));
            }
            Ok(Some((
                Packet::Interest(interest),
                LpPacket {
                    nack: Some(reason), ..
                },
            ))) => {
                self.handle_nack(now, &interest, reason);
            }
            Ok(_) => self.meters.counters_mut().unexpected += 1,
            Err(_) => self.meters.counters_mut().malformed += 1,
        }
        self.settle(now);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.probes.poll_timeout() <= now {
            self.probe(now);
        }
        for consumer in self.streams.consumers() {
            consumer.handle_timeout(now);
        }
        self.settle(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let asks_since = self.config.asks_since && self.has_joined();
        let lead = |kind| self.config.lead(kind);
        let all = [
            Some(self.probes.poll_timeout()),
            self.streams.poll_timeout(),
            self.travel.poll_timeout(asks_since, lead),
            self.proof.poll_timeout(),
            self.uplink.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Returns the next thing to do or to know, until `None`.
    pub fn poll_output(&mut self) -> Option<Output<Watched>> {
        self.outbox.pop()
    }

    /// Moves the playout target, at most 10 s. Frames that were not delivered yet are re-timed at once; none is lost or
    /// repeated.
    pub fn set_target(&mut self, now: Instant, target: Duration) {
        self.config.target = target.min(MAX_TARGET);
        self.config.adaptive_target = None;
        self.settle(now);
    }

    /// Sets by how much packets are handled after they arrive, as this machine is busy: neither a queue on the path nor loss. Zero
    /// by default.
    pub const fn set_wake_delay(&mut self, delay: Duration) {
        self.uplink.set_wake_delay(delay);
    }

    /// Chooses another bitrate of the video; playback changes over at a key frame, without a gap where both rungs come.
    pub fn set_rung(&mut self, now: Instant, rung: RungChoice) {
        self.config.rung = rung;
        if self.travel.is_past() {
            self.travel.seek_again(now);
            self.settle(now);
            return;
        }
        let Some(at) = self.streams.place(StreamKind::Video) else {
            return;
        };
        let sound = self.streams.sound_need();
        let pulled = self.streams.at(at);
        if self.config.rung == RungChoice::Auto {
            pulled.choose_by_itself(now, &self.config.ladder, sound);
        } else if let Some(rung) = stream::choose(&pulled.info, &self.config.rung).cloned() {
            pulled.auto = None;
            self.prepare_rung(now, at, &rung);
        }
        self.settle(now);
    }

    /// Begins to pull `rung` of the stream at place `at` as well as the one that is shown, if it is another.
    fn prepare_rung(&mut self, now: Instant, at: usize, rung: &Rung) {
        let client = self.uplink.new_client();
        let mut pulled = self.streams.take_out(at);
        let wheel = self.wheel(now, client);
        let is_chosen = pulled.auto.is_none();
        if !is_chosen || !pulled.change_at_next_key(now, &wheel, &rung.name) {
            wheel.factory.prepare(now, &mut pulled, rung, client);
        }
        let needs_metadata = pulled.upcoming.is_some();
        self.streams.put_back(at, pulled);
        if needs_metadata {
            self.probe(now);
        }
    }

    /// Records that the front-end decoded a frame, which took `took`.
    pub fn handle_decoded(
        &mut self,
        _now: Instant,
        stream: StreamKind,
        position: u64,
        took: Duration,
    ) {
        self.meters.frames_mut().on_decoded(stream, position, took);
    }

    /// Records that the front-end showed a frame.
    pub fn handle_rendered(&mut self, now: Instant, stream: StreamKind, position: u64) {
        let offset = self.clock.micros().unwrap_or(0);
        let wall = self.config.wall(now).as_micros();
        let publisher_now = Timestamp::from_micros(wall.saturating_add_signed(offset));
        let counts = stream == StreamKind::Video || !self.config.video;
        let frames = self.meters.frames_mut();
        let known = frames.on_rendered(stream, position, publisher_now, counts);
        if let Some(pulled) = self.streams.get_mut(stream).filter(|_| known) {
            pulled.rendered += 1;
        }
    }

    /// Records that the decoder failed: the next frame delivered is a key frame, after a
    /// [`Watched::Discontinuity`].
    pub fn handle_decoder_error(&mut self, now: Instant, stream: StreamKind) {
        if let Some(pulled) = self.streams.get_mut(stream) {
            pulled.decoder_errors += 1;
            pulled.decoding.reset();
            pulled.consumer.handle_decoder_error(now);
        }
        self.travel.seek_again(now);
        self.settle(now);
    }

    /// Records that the transport came back: everything that is pending is retransmitted at once.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.probes.on_link_change();
        self.probe(now);
        for consumer in self.streams.consumers() {
            consumer.handle_link_change(now);
        }
        self.carry_out(now);
        self.uplink.handle_link_change();
        self.uplink.restart_objects(now);
        self.travel.handle_link_change(now);
        self.settle(now);
    }

    /// The consumer that frames of the stream of this kind come from, if it is pulled.
    pub fn consumer(&self, stream: StreamKind) -> Option<&Consumer> {
        self.streams.get(stream).map(|pulled| &pulled.consumer)
    }

    /// The consumer of the next rung, which is pulled as well, to change over to or to try it, if there is one.
    pub fn upcoming(&self, stream: StreamKind) -> Option<&Consumer> {
        Some(&self.streams.get(stream)?.upcoming.as_ref()?.consumer)
    }

    /// What the way carries, as far as the choice of the rung of this stream has found out.
    pub fn bandwidth(&self, stream: StreamKind) -> Option<Bitrate> {
        let auto = self.streams.get(stream)?.auto.as_ref()?;
        let capacity = self.uplink.path().carried() as u64;
        Some(auto.estimate().unwrap_or(Bitrate::bps(capacity)))
    }

    /// Everything that is requested over the path, and what is known of it.
    pub const fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    fn factory(&self, now: Instant) -> ConsumerFactory<'_> {
        ConsumerFactory {
            sound: self.streams.sound_need(),
            config: &self.config,
            names: &self.names,
            verifier: self.authority.verifier(),
            playout: self.streams.playout(now, &self.config),
        }
    }

    fn wheel(&self, now: Instant, client: ClientId) -> steering::Wheel<'_> {
        steering::Wheel {
            factory: self.factory(now),
            path: self.uplink.path(),
            backlog: self.uplink.backlog(now),
            prober: self.prober,
            client,
        }
    }

    /// After every event: keeps clocks equal, changes rungs, passes on what consumers want, notices starvation.
    fn settle(&mut self, now: Instant) {
        self.carry_out(now);
        self.run_past(now);
        self.streams.share_playout(now, &self.config);
        let pulled = self.streams.iter_mut();
        let upcoming = pulled.map(|pulled| pulled.deliver_before_switch(now));
        if upcoming.fold(false, |any, is_upcoming| any | is_upcoming) {
            // A consumer that is replaced takes along what it has delivered.
            self.drain(now);
        }
        let pulled = self.streams.iter_mut();
        let switched: Vec<_> = pulled.filter_map(|it| it.switch_if_due(now)).collect();
        for rung in switched {
            self.outbox.event(Event::SwitchedRung { rung });
        }
        // Prepares the change to rungs that suit the way better.
        for at in 0..self.streams.len() {
            let pulled = self.streams.at(at);
            if !pulled.is_steered()
                && let Some(rung) = pulled.watch_rung(now)
            {
                self.prepare_rung(now, at, &rung);
            }
        }
        match self.streams.check_starvation(now) {
            Some(true) => {
                self.outbox.event(Event::Starved);
                self.probe(now);
            }
            Some(false) => self.outbox.event(Event::Recovered),
            None => {}
        }
        self.drain(now);
        self.prove(now);
        self.run_uplink(now);
        self.steer(now);
    }

    /// Finds out whether what is shown is live.
    fn prove(&mut self, now: Instant) {
        if let Some(challenge) = self.proof.poll_want(now, &self.names) {
            self.uplink.want_object(now, challenge);
        }
        let (wall, target) = (self.config.wall(now), self.streams.target(&self.config));
        if let Some(liveness) = self.proof.news(now, wall, target) {
            self.outbox.event(Event::Liveness(liveness));
        }
    }

    fn drain(&mut self, now: Instant) {
        for at in 0..self.streams.len() {
            let stream = self.streams.at(at).kind;
            while let Some((client, output)) = self.streams.at(at).poll_output() {
                match output {
                    consumer::Output::Discontinuity => self.outbox.push(Watched::gap(stream)),
                    consumer::Output::Sample(sample) => self.hand_out(now, at, sample, false),
                    consumer::Output::Request(Request::RoundTrip(_))
                        if !self.streams.counts_round_trips(client) => {}
                    consumer::Output::Request(request) => self.uplink.carry_out(now, request),
                }
            }
            for retired in core::mem::take(&mut self.streams.at(at).retired) {
                self.uplink.withdraw(&retired.tokens());
            }
        }
    }

    fn hand_out(&mut self, now: Instant, at: usize, sample: Sample, decode_only: bool) {
        let pulled = self.streams.at(at);
        if !(pulled.decoding).takes(&pulled.rung, sample.key, &sample.header) {
            return;
        }
        let way = self
            .streams
            .playout(now, &self.config)
            .delay(sample.lead_at, sample.header.published_at())
            .saturating_add(self.clock.micros().unwrap_or(0));
        let way = Duration::from_micros(u64::try_from(way).unwrap_or(0));
        let pulled = self.streams.at(at);
        let stages = Frames::stages(&sample, way, pulled.reorder_delay());
        let stream = pulled.kind;
        let is_first = !core::mem::replace(&mut pulled.had_frame, true);
        // What was shown at another rung is only decoded.
        let is_again = pulled.decoding.is_again(&sample.header);
        let decode_only = decode_only || is_again;
        if !is_again {
            let shown = output::shown_with(&pulled.info, pulled.shown, &sample.header);
            pulled.shown = Some(shown);
        }
        let rung = pulled.rung.clone();
        self.meters.on_sample(now, stream, &sample, stages);
        self.proof.on_frame(now, sample.header.captured_at);
        if is_first {
            let after = self.meters.on_first_frame(now);
            self.outbox.event(Event::FirstFrame { stream, after });
        }
        self.outbox.push(Watched::Frame(Frame {
            stream,
            rung,
            position: sample.header.position,
            key: sample.key,
            payload: sample.payload,
            captured_at: sample.header.captured_at,
            composition_offset: sample.header.composition_offset,
            render_at: sample.render_at,
            complete_at: sample.complete_at,
            late: sample.late,
            catching_up: sample.catching_up,
            decode_only,
            stages,
        }));
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
