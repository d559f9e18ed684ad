//! A watcher, with a player that writes down what it would show.

use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_apps::live::watcher::{Event, Frame, TableSizes, Watched};
use namecast_apps::live::{Stats, Watcher, WatcherConfig};
use namecast_apps::{Application, Now, Output};
use namecast_packet::Name;
use namecast_stream::StreamKind;
use namecast_stream::consumer::synchroniser::Observation;
use namecast_units::{ByteSize, Duration, Instant, Timestamp};

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

/// A watcher whose player shows every frame in time, and drops late ones.
#[derive(Debug)]
pub struct LiveWatcher {
    config: LiveWatcherConfig,
    watcher: Option<Watcher>,
    has_stopped: bool,
    /// Frames delivered and not due yet, by the time at which they are, and the order in which they came.
    to_render: BTreeMap<(Instant, u64), (StreamKind, u64)>,
    handed_out: u64,
    payload: ByteSize,
    records: VecDeque<FrameRecord>,
    events: VecDeque<(Instant, Event)>,
    /// What first segments of the video showed.
    observations: VecDeque<Observation>,
    outputs: VecDeque<Bytes>,
    traffic: Traffic,
    requests: Requests,
    final_stats: Option<Stats>,
}

impl LiveWatcher {
    /// A watcher that joins when its configuration says.
    pub const fn new(config: LiveWatcherConfig) -> Self {
        Self {
            config,
            watcher: None,
            has_stopped: false,
            to_render: BTreeMap::new(),
            handed_out: 0,
            payload: ByteSize::ZERO,
            records: VecDeque::new(),
            events: VecDeque::new(),
            observations: VecDeque::new(),
            outputs: VecDeque::new(),
            traffic: Traffic::NONE,
            requests: Requests::new(),
            final_stats: None,
        }
    }

    /// What it was told.
    pub const fn config(&self) -> &LiveWatcherConfig {
        &self.config
    }

    /// The watcher, while it watches.
    pub const fn watcher(&self) -> Option<&Watcher> {
        self.watcher.as_ref()
    }

    /// Changes the watcher, while it watches: its target, its rung, …
    pub fn change(&mut self, now: Now, change: impl FnOnce(&mut Watcher, Instant)) {
        if let Some(watcher) = &mut self.watcher {
            change(watcher, now.monotonic);
        }
        self.drain(now);
    }

    /// Its figures at `now`, or when it left; none before it joined.
    pub fn stats(&self, now: Instant) -> Option<Stats> {
        let current = self.watcher.as_ref().map(|watcher| watcher.stats(now));
        current.or_else(|| self.final_stats.clone())
    }

    /// Sizes of the watcher's tables.
    pub fn table_sizes(&self) -> TableSizes {
        let watcher = self.watcher.as_ref();
        watcher.map(Watcher::table_sizes).unwrap_or_default()
    }

    /// Frames in decoding order.
    pub const fn records(&self) -> &VecDeque<FrameRecord> {
        &self.records
    }

    /// What the watcher told, and when.
    pub const fn events(&self) -> &VecDeque<(Instant, Event)> {
        &self.events
    }

    /// What the first segments of the video's samples showed, in the order they came.
    pub const fn observations(&self) -> &VecDeque<Observation> {
        &self.observations
    }

    /// Packets at its face.
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Interests that it has sent.
    pub const fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Octets of all frames that it ever got.
    pub const fn payload(&self) -> ByteSize {
        self.payload
    }

    fn start(&mut self, now: Now) {
        let since_zero = now.monotonic.since(Instant::ZERO).as_micros() as u64;
        let wall_at_zero = now.wall.as_micros().saturating_sub(since_zero);
        self.watcher = Some(Watcher::new(WatcherConfig {
            wall_at_zero: Timestamp::from_micros(wall_at_zero),
            trust: self.config.signing.trust(),
            ..self.config.watcher.clone()
        }));
    }

    fn stop(&mut self, now: Now) {
        self.final_stats = self.stats(now.monotonic);
        self.watcher = None;
        self.has_stopped = true;
        self.to_render.clear();
    }

    fn render_due(&mut self, now: Now) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        while let Some(entry) = self.to_render.first_entry()
            && entry.key().0 <= now.monotonic
        {
            let (stream, position) = entry.remove();
            watcher.handle_rendered(now.monotonic, stream, position);
        }
    }

    /// Takes everything from the watcher.
    fn drain(&mut self, now: Now) {
        while let Some(output) = self.watcher.as_mut().and_then(Watcher::poll_output) {
            match output {
                Output::Send(wire) => {
                    self.traffic.count(&wire);
                    self.requests.record(now.monotonic, &wire);
                    self.outputs.push_back(wire);
                }
                Output::Event(Watched::Frame(frame)) => self.on_frame(now, &frame),
                Output::Event(Watched::Event(event)) => {
                    let most = self.config.max_records;
                    push(&mut self.events, most, (now.monotonic, event));
                }
                Output::Event(Watched::Discontinuity { stream, is_jump }) => {
                    self.to_render
                        .retain(|_, (of, _)| !is_jump || *of != stream);
                }
                Output::Event(Watched::Catalogue(_) | Watched::Signer(_)) => {}
            }
        }
        self.render_due(now);
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
    fn observe(&mut self) {
        let watcher = self.watcher.as_ref();
        let consumer = watcher.and_then(|watcher| watcher.consumer(StreamKind::Video));
        let observed = consumer.and_then(|consumer| consumer.schedule().synchroniser().observed());
        let Some(observed) = observed else {
            return;
        };
        let is_new = |last: &Observation| (last.at, last.index) != (observed.at, observed.index);
        if self.observations.back().is_none_or(is_new) {
            push(&mut self.observations, self.config.max_records, *observed);
        }
    }
}

fn push<T>(records: &mut VecDeque<T>, most: usize, record: T) {
    if records.len() >= most.max(1) {
        records.pop_front();
    }
    records.push_back(record);
}

impl Application for LiveWatcher {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.traffic.count(&frame);
        if let Some(watcher) = &mut self.watcher {
            watcher.handle_packet(now.monotonic, frame);
        }
        self.observe();
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        let is_past = |time: Duration| Instant::ZERO + time <= now.monotonic;
        if self.config.stop.is_some_and(is_past) {
            self.stop(now);
        } else if self.watcher.is_none() && !self.has_stopped && is_past(self.config.start) {
            self.start(now);
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.handle_timeout(now.monotonic);
        }
        self.drain(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.has_stopped {
            return None;
        }
        let Some(watcher) = &self.watcher else {
            return Some(Instant::ZERO + self.config.start);
        };
        let stop = self.config.stop.map(|stop| Instant::ZERO + stop);
        let render = self.to_render.first_key_value().map(|((at, _), _)| *at);
        [watcher.poll_timeout(), stop, render]
            .into_iter()
            .flatten()
            .min()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.outputs.pop_front().map(Output::Send)
    }
}
