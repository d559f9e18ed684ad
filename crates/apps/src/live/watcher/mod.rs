//! Watches one published root: finds out what there is, who signs it, and pulls video and audio in step.

mod catalogues;
mod config;
mod events;
mod join;
mod output;
mod owner;
mod roster;
mod rungs;
mod sealed;
mod seek;
mod stats;
mod steering;
mod stream;
mod streams;

use core::time::Duration;
use std::collections::VecDeque;

use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest};
use namecast_stream::consumer::{self, Consumer, Delivery, Sample};
use namecast_stream::path::{self, ClientId, Clients, Nacked, Request, Token, Uplink, Weight};
use namecast_stream::{Rung, StreamKind, StreamNames};
use namecast_units::{Bitrate, Instant, Timestamp};

pub use config::{PastConfig, RungChoice, WatcherConfig};
pub(in crate::live) use output::Label;
pub use output::{Event, Frame, RejoinReason, Stages, Unkept, Watched};
pub use owner::{ObjectId, WatchId, Watcher, Watchers, WatchersConfig};
pub use seek::Seek;
pub use stats::TableSizes;

pub use super::liveness::Liveness;
pub use super::past::Speed;

use super::liveness::Proof;
use super::measure::{ClockOffset, Frames};
use crate::discovery::{Authority, Probes};
pub use crate::discovery::{Pin, Refusal, Signer, Trust, Verdict};
use catalogues::{Catalogues, Sessions};
use join::Heard;
use output::Outbox;
use roster::RosterWatch;
use sealed::{Held, Unsealing};
use stats::Meters;
use stream::ConsumerFactory;
use streams::Streams;

/// Outputs of a watch that are kept until they are polled; the oldest frames go first beyond it.
pub const MAX_OUTPUTS: usize = 4_096;
/// Longest playout target: beyond it, buffers would be too small.
const MAX_TARGET: Duration = Duration::from_secs(10);

/// One root that is watched: a client of the uplink of a [`Watcher`] or of [`Watchers`], which carry out its requests at once.
pub struct Watch {
    config: WatcherConfig,
    names: StreamNames,
    probes: Probes,
    authority: Authority<Heard>,
    catalogues: Catalogues,
    streams: Streams,
    /// Streams of the catalogue that are not wanted at the moment.
    resting: Vec<stream::Pulled>,
    /// Numbers of what requests anything for it.
    clients: Clients,
    /// Requests to the uplink that nobody has taken yet, in order.
    requests: VecDeque<Request>,
    /// What requests packets to find out what the path carries.
    prober: ClientId,
    travel: seek::Travel,
    unsealing: Unsealing,
    roster: RosterWatch,
    sessions: Sessions,
    proof: Proof,
    clock: ClockOffset,
    meters: Meters,
    outbox: Outbox,
    /// When the front-end changed something that has not taken effect yet.
    changed_at: Option<Instant>,
}

impl core::fmt::Debug for Watch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Watch")
            .field("root", self.names.root())
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

impl Watch {
    /// Joins at the first timeout.
    fn new(config: WatcherConfig, mut clients: Clients) -> Self {
        let prober = clients.draw();
        Self {
            names: StreamNames::new(config.root.clone()),
            probes: Probes::new(clients.draw().object(0)),
            authority: Authority::new(clients.draw().object(0)),
            catalogues: Catalogues::new(clients.draw()),
            streams: Streams::default(),
            resting: Vec::new(),
            travel: seek::Travel::new(config.past.from, clients.draw()),
            unsealing: Unsealing::new(config.root.clone(), config.reader.clone(), clients.draw()),
            roster: RosterWatch::default(),
            sessions: Sessions::default(),
            proof: Proof::new(config.seed, clients.draw().object(0)),
            prober,
            clients,
            requests: VecDeque::from([Request::Weigh(prober, config.weight)]),
            clock: ClockOffset::default(),
            meters: Meters::default(),
            outbox: Outbox::new(MAX_OUTPUTS),
            changed_at: None,
            config,
        }
    }

    /// Does what is due. Early and repeated calls do nothing.
    fn handle_timeout(&mut self, now: Instant) {
        if self.probes.poll_timeout() <= now {
            self.probe(now);
        }
        for consumer in self.streams.consumers() {
            consumer.handle_timeout(now);
        }
        for events in self.streams.events() {
            events.handle_timeout(now);
        }
    }

    /// Returns when there is something to do next, if nothing arrives.
    fn poll_timeout(&self) -> Option<Instant> {
        let asks_since = self.config.past.asks_since && self.has_joined();
        let lead = |kind| self.config.lead(kind);
        let all = [
            self.changed_at,
            Some(self.probes.poll_timeout()),
            self.streams.poll_timeout(),
            self.travel.poll_timeout(asks_since, lead),
            self.proof.poll_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    /// Takes its next request to the uplink, until `None`.
    fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Moves the playout target, at most 10 s. Frames that were not delivered yet are re-timed at once; none is lost or
    /// repeated.
    pub fn set_target(&mut self, now: Instant, target: Duration) {
        self.config.target = target.min(MAX_TARGET);
        self.config.adaptive_target = None;
        self.changed_at = Some(now);
    }

    /// Sets how long before they are shown frames of video are delivered from now on.
    pub fn set_decode_lead(&mut self, now: Instant, lead: Duration) {
        self.config.decode_lead = lead;
        self.changed_at = Some(now);
    }

    /// Sets the weight of its pictures beside those of other watches over the same uplink. Where there is not room for all, those of
    /// heavier watches leave first, and each chooses its bitrate by a part of the room according to its weight.
    pub fn set_weight(&mut self, now: Instant, weight: Weight) {
        self.config.weight = weight;
        self.requests.push_back(Request::Weigh(self.prober, weight));
        self.changed_at = Some(now);
    }

    /// Chooses another bitrate of the video; playback changes over at a key frame, without a gap where both rungs come.
    pub fn set_rung(&mut self, now: Instant, rung: RungChoice) {
        self.config.rung = rung;
        if self.travel.is_past() {
            self.travel.seek_again(now);
            self.changed_at = Some(now);
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
        self.changed_at = Some(now);
    }

    /// Begins to pull `rung` of the stream at place `at` as well as the one that is shown, if it is another.
    fn prepare_rung(&mut self, now: Instant, at: usize, rung: &Rung) {
        let client = self.clients.draw();
        let mut pulled = self.streams.take_out(at);
        let factory = self.factory(now, client);
        let is_chosen = pulled.auto.is_none();
        if !is_chosen || !pulled.change_at_next_key(now, &factory, &rung.name) {
            factory.prepare(now, &mut pulled, rung);
        }
        let needs_metadata = pulled.upcoming.is_some();
        self.streams.put_back(at, pulled);
        if needs_metadata {
            self.probe(now);
        }
    }

    /// Records that the front-end decoded a frame, which took `took`.
    pub fn handle_decoded(&mut self, stream: StreamKind, position: u64, took: Duration) {
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
        self.changed_at = Some(now);
    }

    /// Records that the transport came back.
    fn handle_link_change(&mut self, now: Instant) {
        self.probes.on_link_change();
        self.probe(now);
        for consumer in self.streams.consumers() {
            consumer.handle_link_change(now);
        }
        for events in self.streams.events() {
            events.handle_link_change(now);
        }
        self.gather();
        self.travel.handle_link_change(now);
    }

    /// The consumer that frames of the stream of this kind come from, if it is pulled.
    pub fn consumer(&self, stream: StreamKind) -> Option<&Consumer> {
        self.streams.get(stream).map(|pulled| &pulled.consumer)
    }

    /// The consumer of the next rung, which is pulled as well, to change over to or to try it, if there is one.
    pub fn upcoming(&self, stream: StreamKind) -> Option<&Consumer> {
        Some(&self.streams.get(stream)?.upcoming.as_ref()?.consumer)
    }

    /// Rate that the path of `uplink` carries, as far as the choice of this stream's rung has found out.
    pub fn bandwidth(&self, stream: StreamKind, uplink: &Uplink) -> Option<Bitrate> {
        let auto = self.streams.get(stream)?.auto.as_ref()?;
        let capacity = uplink.path().carried() as u64;
        Some(auto.estimate().unwrap_or(Bitrate::bps(capacity)))
    }

    fn factory(&self, now: Instant, client: ClientId) -> ConsumerFactory<'_> {
        ConsumerFactory {
            sound: self.streams.sound_need(),
            config: &self.config,
            names: &self.names,
            verifier: self.authority.verifier(),
            playout: self.streams.playout(now, &self.config),
            client,
        }
    }

    /// Passes Data on to whoever wants it. Returns whether it is of use, or comes too late for that.
    fn handle_answer(
        &mut self,
        now: Instant,
        token: Token,
        (data, delivery): (&Data, Delivery),
    ) -> bool {
        if let Some(events) = self.streams.events_of(token.client) {
            let Some(verifier) = self.authority.verifier() else {
                return true;
            };
            let taken = events.handle_answer(now, token, (data, &**verifier));
            self.meters.counters_mut().verification_failures += u64::from(taken.is_err());
            if taken.is_ok() {
                self.meters.on_heard(now);
            }
            return taken.unwrap_or(true);
        }
        if let Some(consumer) = self.streams.consumer(token.client) {
            consumer.handle_data(now, token.segment, data, delivery);
            return true;
        }
        if let Some(taken) = self.travel.handle_answer(now, token, data) {
            self.meters.counters_mut().verification_failures += u64::from(taken.is_err());
            return taken.unwrap_or(true);
        }
        if token == self.probes.token || token == self.proof.token() {
            return self.on_metadata(now, token, data);
        } else if token == self.authority.token() {
            self.on_certificate(now, data);
        } else if self.catalogues.fetcher.has_requested(token) {
            self.on_catalogue_segment(now, token, data);
        } else if self.unsealing.has_requested(token) {
            self.on_key_box(now, token, data);
        }
        // Else its consumer is gone: it shows something of the path.
        true
    }

    /// Records that the Interest of one of its wants came back.
    fn handle_nacked(
        &mut self,
        now: Instant,
        nacked: Nacked,
        (interest, reason): (&Interest, NackReason),
    ) {
        let Nacked {
            token, is_latest, ..
        } = nacked;
        if let Some(events) = self.streams.events_of(token.client) {
            events.handle_nack(now, nacked, reason);
        } else if let Some(consumer) = self.streams.consumer(token.client) {
            self.requests.push_back(Request::TakeBack(nacked, reason));
            consumer.handle_nack(now, token.segment, (interest.nonce(), reason));
            if reason == NackReason::None && token.segment.is_lead() && is_latest {
                // The publisher knows nothing of a sample that should come: it may be another one.
                self.probes.hasten(now);
            }
        } else if !self.travel.on_nack(now, nacked) {
            // Metadata, certificate and catalogue are requested again in their own time.
            self.meters.counters_mut().nacked += 1;
        }
    }

    /// Counts an Interest that came back and that nobody waits for any more.
    fn count_nack(&mut self, interest: &Interest) {
        let name = interest.name();
        let of_rung = |it: &mut Consumer| it.source().names.prefix().is_prefix_of(name);
        let is_object =
            self.names.root().is_prefix_of(name) && !self.streams.consumers().any(of_rung);
        let counters = self.meters.counters_mut();
        counters.nacked += u64::from(is_object);
        counters.unexpected += u64::from(!is_object);
    }

    /// Takes an event of one of its requests, or of the path.
    fn handle_event(&mut self, now: Instant, event: &path::Event) {
        for consumer in self.streams.consumers() {
            consumer.on_event(now, event);
        }
        match *event {
            path::Event::Sent { token, nonce, .. } if token == self.probes.token => {
                self.probes.on_sent(now, nonce);
            }
            // A consumer's is for it alone.
            path::Event::Dropped(token) => {
                if let Some(events) = self.streams.events_of(token.client) {
                    events.on_dropped(token);
                    return self.gather();
                }
                if !self.on_object_dropped(token) && self.travel.on_dropped(token) {
                    self.run_past(now);
                }
                self.gather();
            }
            _ => {}
        }
    }

    /// Takes the requests of all its clients but consumers.
    fn gather(&mut self) {
        while let Some(request) = self
            .authority
            .poll_request()
            .or_else(|| self.catalogues.fetcher.poll_request())
            .or_else(|| self.travel.poll_request())
            .or_else(|| self.unsealing.poll_request())
            .or_else(|| self.streams.poll_request())
        {
            self.requests.push_back(request);
        }
    }

    /// After every event: keeps clocks equal, changes rungs, takes what consumers want, notices starvation.
    fn settle(&mut self, now: Instant) {
        self.changed_at = None;
        self.gather();
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
    }

    /// Lets ladders decide. Returns whether any did.
    fn steer(&mut self, now: Instant, sight: &steering::Sight<'_>) -> bool {
        let mut steered = false;
        for at in 0..self.streams.len() {
            if !self.streams.at(at).is_steered() || self.travel.is_away() {
                continue;
            }
            let client = self.clients.draw();
            let mut pulled = self.streams.take_out(at);
            let wheel = steering::Wheel {
                factory: self.factory(now, client),
                sight: *sight,
                prober: self.prober,
            };
            let wants = pulled.steer(now, &wheel);
            self.streams.put_back(at, pulled);
            steered = true;
            self.requests.extend(wants.into_iter().map(Request::Want));
        }
        if steered {
            self.drain(now);
        }
        steered
    }

    /// Finds out whether what is shown is live.
    fn prove(&mut self, now: Instant) {
        if let Some(challenge) = self.proof.poll_want(now, &self.names) {
            self.requests.push_back(Request::Object(challenge));
        }
        let (wall, target) = (self.config.wall(now), self.streams.target(&self.config));
        if let Some(liveness) = self.proof.news(now, wall, target) {
            self.outbox.event(Event::Liveness(liveness));
        }
    }

    fn drain(&mut self, now: Instant) {
        for at in 0..self.streams.len() {
            let label = self.streams.at(at).label.clone();
            while let Some((client, output)) = self.streams.at(at).poll_output() {
                match output {
                    consumer::Output::Discontinuity => self.take(now, Held::Gap(label.clone())),
                    consumer::Output::Sample(sample) => {
                        let origin = self.streams.at(at).origin(client);
                        self.take(now, Held::sample(label.clone(), (sample, false), origin));
                    }
                    consumer::Output::Request(Request::RoundTrip(..))
                        if !self.streams.counts_round_trips(client) => {}
                    consumer::Output::Request(request) => self.requests.push_back(request),
                }
            }
            for retired in core::mem::take(&mut self.streams.at(at).retired) {
                let tokens = retired.tokens();
                self.requests.push_back(Request::Withdraw(tokens));
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
        let Label { kind: stream, name } = pulled.label.clone();
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
            name,
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
