//! Watchers of one program, with players that write down what they would show.

use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_apps::live::watcher::{
    Event, Frame, ObjectId, TableSizes, Watch, WatchId, Watched, Watchers, WatchersConfig,
};
use namecast_apps::live::{Stats, WatcherConfig};
use namecast_apps::object::{self, FetcherConfig};
use namecast_apps::{Application, Now, Output};
use namecast_packet::Name;
use namecast_stream::StreamKind;
use namecast_stream::consumer::synchroniser::Observation;
use namecast_stream::path::Weight;
use namecast_units::{Bitrate, ByteSize, Duration, Instant, Timestamp};

use super::identity::Signing;
use super::requests::Requests;
use super::traffic::Traffic;

/// How to watch, and when.
#[derive(Clone, Debug)]
pub struct LiveWatcherConfig {
    /// The watcher. Its wall clock and whom it trusts are set when it starts.
    pub watcher: WatcherConfig,
    /// How the stream is signed.
    pub signing: Signing,
    /// When it joins, on the host's clock.
    pub start: Duration,
    /// When it leaves.
    pub stop: Option<Duration>,
    /// An object that is fetched over the same uplink from the start on.
    pub object: Option<Name>,
    /// Frames and events that are remembered, the last ones.
    pub max_records: usize,
}

impl LiveWatcherConfig {
    /// Watches `root` from the start on.
    pub fn new(root: Name) -> Self {
        Self {
            watcher: WatcherConfig::new(root),
            signing: Signing::default(),
            start: Duration::ZERO,
            stop: None,
            object: None,
            max_records: 1 << 20,
        }
    }
}

/// What became of one frame. Times are the host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRecord {
    /// Video or audio.
    pub stream: StreamKind,
    /// Rung it was pulled from.
    pub rung: String,
    /// Playback order; the same frame has the same position in every rung.
    pub position: u64,
    /// Whether it decodes by itself.
    pub key: bool,
    /// Octets of the frame.
    pub size: usize,
    /// Publisher's wall clock at capture.
    pub captured_at: Timestamp,
    /// When it was complete.
    pub complete_at: Instant,
    /// When the decoder got it.
    pub handed_out_at: Instant,
    /// When it was to be shown.
    pub render_at: Instant,
    /// Whether it was only needed to catch up with the live edge.
    pub catching_up: bool,
}

impl FrameRecord {
    /// Whether it was shown: it was complete in time.
    pub fn is_rendered(&self) -> bool {
        self.complete_at <= self.render_at
    }
}

/// A player that shows every frame in time, and drops late ones, with its records.
#[derive(Debug)]
struct Player {
    config: LiveWatcherConfig,
    /// By which it is known, while it watches.
    id: Option<WatchId>,
    has_stopped: bool,
    /// Frames delivered and not due yet, by the time at which they are, and the order in which they came.
    to_render: BTreeMap<(Instant, u64), (StreamKind, u64)>,
    handed_out: u64,
    payload: ByteSize,
    /// The object that is being fetched, and what has come of it.
    fetching: Option<ObjectId>,
    fetched: ByteSize,
    records: VecDeque<FrameRecord>,
    events: VecDeque<(Instant, Event)>,
    /// What first segments of the video showed.
    observations: VecDeque<Observation>,
    final_stats: Option<Stats>,
}

impl Player {
    const fn new(config: LiveWatcherConfig) -> Self {
        Self {
            config,
            id: None,
            has_stopped: false,
            to_render: BTreeMap::new(),
            handed_out: 0,
            payload: ByteSize::ZERO,
            fetching: None,
            fetched: ByteSize::ZERO,
            records: VecDeque::new(),
            events: VecDeque::new(),
            observations: VecDeque::new(),
            final_stats: None,
        }
    }

    fn start(&mut self, now: Now, watchers: &mut Watchers) {
        let since_zero = now.monotonic.since(Instant::ZERO).as_micros() as u64;
        let wall_at_zero = now.wall.as_micros().saturating_sub(since_zero);
        self.id = Some(watchers.add(WatcherConfig {
            wall_at_zero: Timestamp::from_micros(wall_at_zero),
            trust: self.config.signing.trust(),
            ..self.config.watcher.clone()
        }));
        self.fetching = self.config.object.clone().map(|name| {
            watchers.fetch(FetcherConfig {
                wall_at_zero: Timestamp::from_micros(wall_at_zero),
                trust: self.config.signing.trust(),
                ..FetcherConfig::new(name)
            })
        });
    }

    fn stop(&mut self, now: Now, watchers: &mut Watchers) {
        if let Some(id) = self.id.take() {
            self.final_stats = watchers.stats(now.monotonic, id);
            watchers.remove(id);
        }
        if let Some(id) = self.fetching.take() {
            watchers.forget_object(id);
        }
        self.has_stopped = true;
        self.to_render.clear();
    }

    /// Joins and leaves when the configuration says.
    fn come_and_go(&mut self, now: Now, watchers: &mut Watchers) {
        let is_past = |time: Duration| Instant::ZERO + time <= now.monotonic;
        if self.config.stop.is_some_and(is_past) {
            self.stop(now, watchers);
        } else if self.id.is_none() && !self.has_stopped && is_past(self.config.start) {
            self.start(now, watchers);
        }
    }

    fn render_due(&mut self, now: Now, watch: &mut Watch) {
        while let Some(entry) = self.to_render.first_entry()
            && entry.key().0 <= now.monotonic
        {
            let (stream, position) = entry.remove();
            watch.handle_rendered(now.monotonic, stream, position);
        }
    }

    /// Notes what has come of the object.
    fn take_object(&mut self, watchers: &mut Watchers) {
        while let Some(event) = self.fetching.and_then(|id| watchers.poll_object(id)) {
            self.fetched = match event {
                object::Event::Progress { octets, .. } => ByteSize::bytes(octets),
                object::Event::Fetched(fetched) => ByteSize::of(&fetched.content),
                object::Event::Failed(_) => self.fetched,
            };
        }
    }

    fn on_watched(&mut self, now: Now, watched: Watched) {
        match watched {
            Watched::Frame(frame) => self.on_frame(now, &frame),
            Watched::Event(event) => {
                let most = self.config.max_records;
                push(&mut self.events, most, (now.monotonic, event));
            }
            Watched::Discontinuity { stream, is_jump } => {
                self.to_render
                    .retain(|_, (of, _)| !is_jump || *of != stream);
            }
            Watched::Catalogue(_) | Watched::Signer(_) => {}
        }
    }

    fn on_frame(&mut self, now: Now, frame: &Frame) {
        let record = FrameRecord {
            stream: frame.stream,
            rung: frame.rung.clone(),
            position: frame.position,
            key: frame.key,
            size: frame.payload.len(),
            captured_at: frame.captured_at,
            complete_at: frame.complete_at,
            handed_out_at: now.monotonic,
            render_at: frame.render_at,
            catching_up: frame.catching_up,
        };
        self.handed_out += 1;
        self.payload += ByteSize::of(&frame.payload);
        if record.is_rendered() {
            let due = (record.render_at, self.handed_out);
            self.to_render.insert(due, (record.stream, record.position));
        }
        push(&mut self.records, self.config.max_records, record);
    }

    /// Records the first segment of a video sample, if the last packet was one.
    fn observe(&mut self, watch: &Watch) {
        let consumer = watch.consumer(StreamKind::Video);
        let observed = consumer.and_then(|consumer| consumer.schedule().synchroniser().observed());
        let Some(observed) = observed else {
            return;
        };
        let is_new = |last: &Observation| (last.at, last.index) != (observed.at, observed.index);
        if self.observations.back().is_none_or(is_new) {
            push(&mut self.observations, self.config.max_records, *observed);
        }
    }

    /// When it joins, or leaves, or shows the next frame.
    fn poll_timeout(&self) -> Option<Instant> {
        if self.has_stopped {
            return None;
        }
        let start = Some(self.config.start).filter(|_| self.id.is_none());
        let times = [start, self.config.stop].into_iter().flatten();
        let times = times.map(|time| Instant::ZERO + time);
        let render = self.to_render.first_key_value().map(|((at, _), _)| *at);
        times.chain(render).min()
    }
}

fn push<T>(records: &mut VecDeque<T>, most: usize, record: T) {
    if records.len() >= most.max(1) {
        records.pop_front();
    }
    records.push_back(record);
}

/// One watcher, or several over one uplink, whose players show every frame in time, and drop late ones.
#[derive(Debug)]
pub struct LiveWatcher {
    players: Vec<Player>,
    watchers: Watchers,
    outputs: VecDeque<Bytes>,
    traffic: Traffic,
    requests: Requests,
}

impl LiveWatcher {
    /// A watcher that joins when its configuration says.
    pub fn new(config: LiveWatcherConfig) -> Self {
        let watchers = Watchers::new(WatchersConfig {
            seed: config.watcher.seed,
            control: config.watcher.control,
        });
        Self {
            players: vec![Player::new(config)],
            watchers,
            outputs: VecDeque::new(),
            traffic: Traffic::NONE,
            requests: Requests::new(),
        }
    }

    /// Adds a watcher that shares the uplink, before the first timeout. Returns its place.
    pub fn add(&mut self, config: LiveWatcherConfig) -> usize {
        self.players.push(Player::new(config));
        self.players.len() - 1
    }

    /// The watcher at `place` with its records; the first is at place 0.
    pub fn shown(&self, place: usize) -> Shown<'_> {
        let player = &self.players[place];
        Shown { live: self, player }
    }

    /// Configuration of the first.
    pub fn config(&self) -> &LiveWatcherConfig {
        &self.players[0].config
    }

    /// The first watcher, while it watches.
    pub fn watcher(&self) -> Option<&Watch> {
        self.shown(0).watch()
    }

    /// Changes the first watcher, while it watches: its target, its rung, …
    pub fn change(&mut self, now: Now, change: impl FnOnce(&mut Watch, Instant)) {
        let id = self.players[0].id;
        if let Some(watch) = id.and_then(|id| self.watchers.get_mut(id)) {
            change(watch, now.monotonic);
        }
        self.drain(now);
    }

    /// Sets the weight of the watcher at `place`, now and when it starts.
    pub fn set_weight(&mut self, now: Now, place: usize, weight: Weight) {
        let player = &mut self.players[place];
        player.config.watcher.weight = weight;
        if let Some(watch) = player.id.and_then(|id| self.watchers.get_mut(id)) {
            watch.set_weight(now.monotonic, weight);
        }
        self.drain(now);
    }

    /// Figures of the first at `now`, or when it left; none before it joined.
    pub fn stats(&self, now: Instant) -> Option<Stats> {
        self.shown(0).stats(now)
    }

    /// Sizes of the first watcher's tables.
    pub fn table_sizes(&self) -> TableSizes {
        self.shown(0).table_sizes()
    }

    /// Frames of the first in decoding order.
    pub fn records(&self) -> &VecDeque<FrameRecord> {
        self.shown(0).records()
    }

    /// Events of the first, with their times.
    pub fn events(&self) -> &VecDeque<(Instant, Event)> {
        self.shown(0).events()
    }

    /// Observations at the first segments of the first one's video samples, in the order they came.
    pub fn observations(&self) -> &VecDeque<Observation> {
        self.shown(0).observations()
    }

    /// Packets at the face.
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Interests that were sent.
    pub const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Octets of all frames that the first ever got.
    pub fn payload(&self) -> ByteSize {
        self.shown(0).payload()
    }

    /// Takes everything from the watchers.
    fn drain(&mut self, now: Now) {
        while let Some(output) = self.watchers.poll_output() {
            match output {
                Output::Send(wire) => {
                    self.traffic.count(&wire);
                    self.requests.record(now.monotonic, &wire);
                    self.outputs.push_back(wire);
                }
                Output::Event((id, watched)) => {
                    let mut players = self.players.iter_mut();
                    if let Some(player) = players.find(|player| player.id == Some(id)) {
                        player.on_watched(now, watched);
                    }
                }
            }
        }
        for player in &mut self.players {
            player.take_object(&mut self.watchers);
            if let Some(watch) = player.id.and_then(|id| self.watchers.get_mut(id)) {
                player.render_due(now, watch);
            }
        }
    }
}

/// One watcher of a [`LiveWatcher`], with its records.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    live: &'a LiveWatcher,
    player: &'a Player,
}

impl<'a> Shown<'a> {
    /// The watcher, while it watches.
    pub fn watch(&self) -> Option<&'a Watch> {
        self.live.watchers.get(self.player.id?)
    }

    /// Its figures at `now`, or when it left; none before it joined.
    pub fn stats(&self, now: Instant) -> Option<Stats> {
        let id = self.player.id;
        let current = id.and_then(|id| self.live.watchers.stats(now, id));
        current.or_else(|| self.player.final_stats.clone())
    }

    /// Rate that the path carries, as far as the choice of this stream's rung has found out.
    pub fn bandwidth(&self, stream: StreamKind) -> Option<Bitrate> {
        let uplink = self.live.watchers.uplink(self.player.id?)?;
        self.watch()?.bandwidth(stream, uplink)
    }

    /// Sizes of the watcher's tables.
    pub fn table_sizes(&self) -> TableSizes {
        self.watch().map(Watch::table_sizes).unwrap_or_default()
    }

    /// Frames in decoding order.
    pub const fn records(&self) -> &'a VecDeque<FrameRecord> {
        &self.player.records
    }

    /// Events of the watcher, with their times.
    pub const fn events(&self) -> &'a VecDeque<(Instant, Event)> {
        &self.player.events
    }

    /// Observations at the first segments of the video's samples, in the order they came.
    pub const fn observations(&self) -> &'a VecDeque<Observation> {
        &self.player.observations
    }

    /// Packets at the face, which all that share it see.
    pub const fn traffic(&self) -> &'a Traffic {
        &self.live.traffic
    }

    /// Interests that were sent, for all that share the uplink.
    pub const fn requests(&self) -> &'a Requests {
        &self.live.requests
    }

    /// Octets of all frames that it ever got.
    pub const fn payload(&self) -> ByteSize {
        self.player.payload
    }

    /// Content of the object that it fetches, as far as it has come.
    pub const fn object(&self) -> ByteSize {
        self.player.fetched
    }
}

impl Application for LiveWatcher {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.traffic.count(&frame);
        if !self.players.iter().all(|player| player.id.is_none()) {
            self.watchers.handle_frame(now, frame);
        }
        for player in &mut self.players {
            if let Some(watch) = player.id.and_then(|id| self.watchers.get(id)) {
                player.observe(watch);
            }
        }
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        for player in &mut self.players {
            player.come_and_go(now, &mut self.watchers);
        }
        if self.players.iter().any(|player| player.id.is_some()) {
            self.watchers.handle_timeout(now);
        }
        self.drain(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let watches = self.players.iter().any(|player| player.id.is_some());
        let watchers = watches.then(|| self.watchers.poll_timeout()).flatten();
        let players = self.players.iter().filter_map(Player::poll_timeout);
        players.chain(watchers).min()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.outputs.pop_front().map(Output::Send)
    }
}
