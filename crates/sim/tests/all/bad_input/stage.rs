//! Publisher, router and watcher, looked at while they run.

use std::ops::Range;
use std::time::Duration;

use namecast_apps::live::Stats;
use namecast_apps::live::watcher::{Event, MAX_OUTPUTS, RejoinReason, TableSizes, WatcherConfig};
use namecast_netem as netem;
use namecast_sim::live::{FrameRecord, LiveWatcher, LiveWatcherConfig, Media, Signing};
use namecast_sim::topology::Topology;
use namecast_sim::{ApplicationId, HostClock, Network, NodeConfig, Now};
use namecast_stream::{StreamKind, consumer};
use namecast_units::Instant;

use crate::live_world::{LiveWorld, link, ms, watch};

/// A clean path, and one that loses 2 % each way.
pub(crate) const LOSSES: [f64; 2] = [0.0, 0.02];
/// One frame of the video.
pub(crate) const PERIOD: Duration = Duration::from_nanos(33_333_334);
/// Tables are looked at this often.
const STEP: Duration = ms(50);

/// P – R – C, with 25 ms from each to the next. R – C loses frames.
pub(crate) struct Stage {
    pub(crate) world: LiveWorld,
    pub(crate) watcher: ApplicationId,
    /// Share of frames lost on R – C, each way.
    pub(crate) loss: f64,
    /// Largest that any table of the watcher was.
    pub(crate) peak: TableSizes,
}

/// Watches the video, 250 ms behind what the network allows: two and a half round trips.
pub(crate) fn viewer() -> LiveWatcherConfig {
    let config = watch();
    LiveWatcherConfig {
        watcher: WatcherConfig {
            audio: false,
            target: ms(250),
            ..config.watcher
        },
        ..config
    }
}

impl Stage {
    /// A stage with nobody but the watcher `config`.
    pub(crate) fn new(loss: f64, config: LiveWatcherConfig) -> Self {
        Self::of(loss, config, [HostClock::default(); 2], Signing::default())
    }

    /// A stage for long runs: packets carry HMACs, which are quick.
    pub(crate) fn quick(loss: f64, clocks: [HostClock; 2]) -> Self {
        Self::of(loss, viewer(), clocks, Signing::Hmac)
    }

    pub(crate) fn of(
        loss: f64,
        config: LiveWatcherConfig,
        [near, far]: [HostClock; 2],
        signing: Signing,
    ) -> Self {
        let mut topology = Topology::default();
        let [p, r, c] = ["P", "R", "C"].map(|name| topology.add_node(name));
        let lossy = netem::Config {
            loss: netem::Loss::Random { share: loss },
            ..link(ms(25))
        };
        topology.connect(p, r, &link(ms(25)));
        topology.connect(r, c, &lossy);
        let network = Network::new(&topology, 1, |node| NodeConfig {
            clock: match node {
                _ if node == p => near,
                _ if node == c => far,
                _ => HostClock::default(),
            },
            ..NodeConfig::default()
        });
        let mut world = LiveWorld {
            network,
            topology,
            signing,
        };
        let watcher = world.watch("C", config);
        Self {
            world,
            watcher,
            loss,
            peak: TableSizes::default(),
        }
    }

    /// A stage with the usual video and the usual viewer.
    pub(crate) fn playing(loss: f64) -> (Self, ApplicationId) {
        let mut stage = Self::new(loss, viewer());
        let publisher = stage.world.publish("P", vec![Media::video()]);
        (stage, publisher)
    }

    /// Runs, and checks the watcher's tables against their bounds all the time.
    pub(crate) fn run_until(&mut self, end: Duration) {
        let end = Instant::ZERO + end;
        while self.world.now() < end {
            let next = end.min(self.world.now() + STEP);
            self.world.network.run_until(next);
            self.check_tables();
        }
    }

    fn check_tables(&mut self) {
        let live: &LiveWatcher = self.world.watcher(self.watcher);
        let bounds = &live.config().watcher;
        let most: &consumer::Config = &bounds.consumer;
        let sizes = live.table_sizes();
        let now = live.table_sizes().consumers;
        assert!(now.samples <= most.max_samples, "{now:?}");
        assert!(now.complete <= most.max_samples, "{now:?}");
        assert!(now.buffered <= most.max_buffered, "{now:?}");
        assert!(now.outstanding <= most.max_outstanding, "{now:?}");
        assert!(now.queued <= most.max_outstanding, "{now:?}");
        assert!(now.unverified <= most.max_unverified, "{now:?}");
        assert!(sizes.outputs <= MAX_OUTPUTS, "{sizes:?}");
        assert!(sizes.frames <= 1_024, "{sizes:?}");
        let peak = &mut self.peak;
        let larger = |peak: &mut usize, now: usize| *peak = now.max(*peak);
        larger(&mut peak.consumers.samples, now.samples);
        larger(&mut peak.consumers.complete, now.complete);
        larger(&mut peak.consumers.buffered, now.buffered);
        larger(&mut peak.consumers.outstanding, now.outstanding);
        larger(&mut peak.consumers.queued, now.queued);
        larger(&mut peak.consumers.unverified, now.unverified);
        larger(&mut peak.outputs, sizes.outputs);
        larger(&mut peak.frames, sizes.frames);
    }

    /// Does something to the watcher now, as its node could.
    pub(crate) fn with_watcher<R>(&mut self, act: impl FnOnce(&mut LiveWatcher, Now) -> R) -> R {
        let done = self.world.network.with_application(self.watcher, act);
        done.unwrap()
    }

    pub(crate) fn live(&self) -> &LiveWatcher {
        self.world.watcher(self.watcher)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.live().stats(self.world.now()).unwrap()
    }

    /// Interests that the watcher sent, and Data that came to it.
    pub(crate) fn packets(&self) -> [u64; 2] {
        let network = &self.world.network;
        let forwarder = network.node(self.world.node("C"));
        let face = network.application_face(self.watcher);
        let counters = forwarder.face_counters(face).unwrap();
        [counters.incoming.interests, counters.outgoing.data]
    }

    /// Frames shown in time, by the watcher's clock.
    pub(crate) fn shown(&self, span: Range<Duration>) -> Vec<&FrameRecord> {
        let span = Instant::ZERO + span.start..Instant::ZERO + span.end;
        let records = self.live().records().iter();
        let shown = records.filter(|record| {
            record.stream == StreamKind::Video
                && record.is_rendered()
                && span.contains(&record.render_at)
        });
        shown.collect()
    }

    /// The longest time without a new picture in `span`.
    pub(crate) fn longest_gap(&self, span: Range<Duration>) -> Duration {
        let (mut last, end) = (Instant::ZERO + span.start, Instant::ZERO + span.end);
        let mut longest = Duration::ZERO;
        let mut times: Vec<_> = self.shown(span).iter().map(|r| r.render_at).collect();
        times.sort_unstable();
        for at in times.into_iter().chain([end]) {
            longest = longest.max(at.since(last));
            last = at;
        }
        longest
    }

    /// Frames due in `span` that were not shown, of 30 a second.
    pub(crate) fn missing(&self, span: Range<Duration>) -> u64 {
        let due = ((span.end - span.start).as_millis() as u64 * 30).div_ceil(1_000);
        due.saturating_sub(self.shown(span).len() as u64)
    }

    /// Frames that loss alone may take in the seconds around an incident.
    pub(crate) fn allowance(&self) -> u64 {
        if self.loss > 0.0 { 5 } else { 1 }
    }

    /// Time that loss alone may take.
    pub(crate) fn slack(&self) -> Duration {
        if self.loss > 0.0 { ms(150) } else { ms(1) }
    }

    /// Whether so many frames are missing, and more only for loss.
    pub(crate) fn assert_about(&self, missing: u64, expected: u64) {
        let most = expected + self.allowance();
        assert!(
            (expected.saturating_sub(1)..=most).contains(&missing),
            "{missing} missing instead of {expected} at {}",
            self.loss
        );
    }

    /// Whether all frames due in `span` were shown, one more or less at each end; of a path with loss, 97 %.
    pub(crate) fn assert_steady(&self, span: Range<Duration>) {
        let due = (span.end - span.start).as_secs_f64() * 30.0;
        let missing = self.missing(span.clone()) as f64;
        let most = if self.loss > 0.0 { due * 0.03 } else { 0.0 };
        assert!(missing <= most + 1.0, "{missing} of {due} in {span:?}");
    }

    /// Whether no more of the frames between the first and the last shown in `span` are missing than loss may take: 3 %.
    pub(crate) fn assert_whole(&self, span: Range<Duration>) {
        let shown = self.shown(span);
        let (first, last) = (shown[0].position, shown[shown.len() - 1].position);
        let all = last - first + 1;
        let most = if self.loss > 0.0 { all * 3 / 100 } else { 0 };
        assert!(all - shown.len() as u64 <= most, "{} of {all}", shown.len());
    }

    /// Mean time from a frame's arrival to its showing, of frames shown in `span`.
    pub(crate) fn delay(&self, span: Range<Duration>) -> Duration {
        let shown = self.shown(span);
        let waits = shown.iter().map(|r| r.render_at.since(r.complete_at));
        waits.sum::<Duration>() / shown.len() as u32
    }

    /// Frames are delivered in an order that decodes: positions rise by one except to a key frame.
    pub(crate) fn assert_decodable(&self) {
        let video = |record: &&FrameRecord| record.stream == StreamKind::Video;
        let records: Vec<_> = self.live().records().iter().filter(video).collect();
        for pair in records.windows(2) {
            let follows = pair[1].position == pair[0].position.wrapping_add(1);
            assert!(follows || pair[1].key, "{pair:?}");
        }
    }

    /// Events that `is_it` is true for, and when they happened.
    pub(crate) fn events(&self, is_it: impl Fn(&Event) -> bool) -> Vec<Duration> {
        let events = self.live().events().iter();
        let found = events.filter(|(_, event)| is_it(event));
        found.map(|(at, _)| at.since(Instant::ZERO)).collect()
    }

    /// When the watcher joined again for `reason`.
    pub(crate) fn rejoined(&self, reason: RejoinReason) -> Vec<Duration> {
        self.events(|event| *event == Event::Rejoining(reason))
    }

    pub(crate) fn starved(&self) -> Vec<Duration> {
        self.events(|event| *event == Event::Starved)
    }

    pub(crate) fn recovered(&self) -> Vec<Duration> {
        self.events(|event| *event == Event::Recovered)
    }
}
