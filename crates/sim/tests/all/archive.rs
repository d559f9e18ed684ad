//! An archive beside a live publisher: it records everything, answers when the publisher is gone, and watchers rewind.
//!
//! ```text
//!   P ── R ── C
//!        │
//!        A
//! ```

use core::convert::Infallible;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use crate::live_world::{LiveWorld, link, ms, root, watch};
use bytes::Bytes;
use namecast_apps::archive::recorder::{self, Event as RecorderEvent, Recorded};
use namecast_apps::archive::server::{Found, Lookup};
use namecast_apps::archive::{Recorder, RecorderConfig, Server, ServerConfig};
use namecast_apps::live::watcher::{Event, RungChoice, Seek, Unkept};
use namecast_packet::{Data, Name};
use namecast_sim::live::{FrameRecord, LiveWatcherConfig, Media, MediaRung};
use namecast_sim::{Application, ApplicationId, HostClock, NodeConfig, Now, Output};
use namecast_stream::index::{IndexedSample, RungIndex, TimeIndex};
use namecast_stream::{Lead, RungNames, SampleClass, StreamKind};
use namecast_units::{Bitrate, Instant, Timestamp};

/// Everything that was recorded, by the plainest means.
#[derive(Default)]
struct Store {
    samples: BTreeMap<(Name, SampleClass, u64), Vec<Data>>,
    objects: BTreeMap<Name, Data>,
    events: Vec<RecorderEvent>,
    /// A recorder that goes on for another one records a little again.
    may_repeat: bool,
    /// Samples captured before are missing from the time index, as from that of a publisher that began then.
    index_from: Timestamp,
    /// Samples of this rung captured before are not kept.
    later: Option<(&'static str, Timestamp)>,
}

impl Store {
    fn keep(&mut self, packets: Vec<Data>) {
        let name = packets[0].name();
        let rung = name.prefix(name.len() - 4);
        let id = RungNames::new(rung.clone()).parse(name).unwrap();
        assert!(id.is_lead());
        let lead = Lead::decode(&packets[0]).unwrap();
        assert_eq!(packets.len(), lead.data_count() + lead.parity_count());
        if self.later.is_some_and(|(name, time)| {
            rung.to_string().ends_with(name) && lead.header().captured_at < time
        }) {
            return;
        }
        let before = self.samples.insert((rung, id.class, id.sequence), packets);
        assert!(before.is_none() || self.may_repeat, "recorded twice");
    }

    fn find(&self, lookup: &Lookup) -> Found {
        match lookup {
            Lookup::Sample {
                rung,
                class,
                sequence,
            } => {
                let key = (rung.clone(), *class, *sequence);
                Found::Packets(self.samples.get(&key).cloned().unwrap_or_default())
            }
            Lookup::Object(prefix) => {
                let below = self.objects.range(prefix..);
                let below = below.take_while(|(name, _)| prefix.is_prefix_of(name));
                Found::Packets(
                    below
                        .last()
                        .map(|(_, data)| data.clone())
                        .into_iter()
                        .collect(),
                )
            }
            Lookup::Index { stream, time } => Found::Index(self.index(stream, *time)),
        }
    }

    fn index(&self, stream: &Name, time: Timestamp) -> TimeIndex {
        let mut rungs: BTreeMap<&Name, Vec<IndexedSample>> = BTreeMap::new();
        for ((rung, class, sequence), packets) in &self.samples {
            if rung.parent() == *stream {
                let lead = Lead::decode(&packets[0]).unwrap();
                if lead.header().captured_at < self.index_from {
                    continue;
                }
                rungs.entry(rung).or_default().push(IndexedSample {
                    class: *class,
                    sequence: *sequence,
                    other_sequence: lead.header().other_sequence,
                    position: lead.header().position,
                    captured_at: lead.header().captured_at,
                    published_at: lead.header().published_at(),
                });
            }
        }
        let keys = rungs.values().flatten();
        let keys = keys.filter(|sample| sample.class == SampleClass::Key);
        let since = keys.map(|key| key.captured_at).min();
        let index = rungs.into_iter().filter_map(|(rung, mut samples)| {
            samples.sort_by_key(|sample| sample.captured_at);
            let is_key = |sample: &&IndexedSample| sample.class == SampleClass::Key;
            let before = samples.iter().filter(|sample| sample.captured_at <= time);
            let newest = SampleClass::ALL.map(|class| {
                let of_class = samples.iter().filter(|sample| sample.class == class);
                of_class.map(|sample| sample.sequence).max()
            });
            let mut after = samples.iter().filter(|sample| sample.captured_at > time);
            Some(RungIndex {
                rung: rung.clone(),
                key: *before.clone().rev().find(is_key)?,
                sample: *before.clone().next_back()?,
                next_key: after.find(is_key).copied(),
                newest,
            })
        });
        TimeIndex {
            rungs: index.collect(),
            delegation: None,
            since,
        }
    }
}

struct Recording {
    recorder: Recorder,
    store: Rc<RefCell<Store>>,
    interests: VecDeque<Bytes>,
}

impl Store {
    fn oldest_key(&self) -> Timestamp {
        let keys = self
            .samples
            .iter()
            .filter(|((_, class, _), _)| *class == SampleClass::Key);
        let captured =
            keys.map(|(_, packets)| Lead::decode(&packets[0]).unwrap().header().captured_at);
        captured.min().unwrap()
    }
}

impl Recording {
    fn drain(&mut self) {
        let mut store = self.store.borrow_mut();
        while let Some(output) = self.recorder.poll_output() {
            match output {
                Output::Send(wire) => self.interests.push_back(wire),
                Output::Event(Recorded::Sample(packets)) => store.keep(packets),
                Output::Event(Recorded::Object { data, .. }) => {
                    store.objects.insert(data.name().clone(), *data);
                }
                Output::Event(Recorded::Event(event)) => store.events.push(event),
            }
        }
    }
}

impl Application for Recording {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.recorder.handle_packet(now.monotonic, frame);
        self.drain();
    }

    fn handle_timeout(&mut self, now: Now) {
        self.recorder.handle_timeout(now.monotonic);
        self.drain();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.recorder.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.interests.pop_front().map(Output::Send)
    }
}

struct Serving {
    server: Server,
    store: Rc<RefCell<Store>>,
}

impl Application for Serving {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.server.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        loop {
            match self.server.poll_output()? {
                Output::Send(frame) => return Some(Output::Send(frame)),
                Output::Event(lookup) => {
                    let found = self.store.borrow().find(&lookup);
                    self.server.handle_found(Instant::ZERO, &lookup, found);
                }
            }
        }
    }
}

/// Names under which the archive is the nearest, and at what cost it stands in for the publisher.
const ARCHIVE: &str = "/demo/32=archive/1";
const STAND_IN: u64 = 100;

struct World {
    live: LiveWorld,
    publisher: ApplicationId,
    recording: ApplicationId,
    store: Rc<RefCell<Store>>,
}

impl World {
    /// All links take `delay`; P publishes, A records from the start.
    fn new(delay: Duration, media: Vec<Media>) -> Self {
        let links = [("P", "R"), ("A", "R"), ("C", "R")];
        let mut live = LiveWorld::of(&links, &link(delay), |_| NodeConfig::default());
        let publisher = live.publish("P", media);
        let store = Rc::new(RefCell::new(Store::default()));
        let node = live.node("A");
        let zero = HostClock::default().read(Instant::ZERO).wall;
        let recorder = Recorder::new(RecorderConfig {
            wall_at_zero: zero,
            ..RecorderConfig::new(root())
        });
        let recording = live.network.add_application(
            node,
            Recording {
                recorder,
                store: store.clone(),
                interests: VecDeque::new(),
            },
        );
        let server = Server::new(ServerConfig {
            delegation: Some(ARCHIVE.parse().unwrap()),
            ..ServerConfig::new(root())
        });
        let serving = live.network.add_application(
            node,
            Serving {
                server,
                store: store.clone(),
            },
        );
        let face = live.network.application_face(serving);
        let router = live.node("R");
        let to_archive = live.network.face_of(router, live.link("A", "R")).unwrap();
        let names = ["/demo/video/index", "/demo/audio/index", ARCHIVE];
        let nearest = names.map(|name| (name.parse().unwrap(), 0));
        for (name, cost) in nearest.into_iter().chain([(root(), STAND_IN)]) {
            live.network
                .add_route(node, name.clone(), face, cost)
                .unwrap();
            live.network
                .add_route(router, name, to_archive, cost)
                .unwrap();
        }
        Self {
            live,
            publisher,
            recording,
            store,
        }
    }

    fn counters(&self) -> recorder::Counters {
        let recording: &Recording = self.live.network.application(self.recording).unwrap();
        *recording.recorder.counters()
    }

    fn kill_publisher(&mut self, at: Duration) {
        self.live
            .with_publisher(at, self.publisher, |publisher, _| publisher.die());
    }

    fn seek(&mut self, at: Duration, id: ApplicationId, to: Seek) {
        self.live
            .network
            .schedule(Instant::ZERO + at, move |network| {
                network.with_application(
                    id,
                    |watcher: &mut namecast_sim::live::LiveWatcher, now| {
                        watcher.change(now, |watcher, now| watcher.seek(now, to));
                    },
                );
            });
    }

    /// Video frames that were shown, that were delivered at `from` or later, in the order of their times.
    fn shown(&self, id: ApplicationId, from: Duration) -> Vec<FrameRecord> {
        let records = self.live.watcher(id).records().iter();
        let from = Instant::ZERO + from;
        let mut shown: Vec<_> = records
            .filter(|r| r.stream == StreamKind::Video && r.is_rendered())
            .filter(|r| r.handed_out_at >= from)
            .cloned()
            .collect();
        shown.sort_by_key(|record| record.render_at);
        shown
    }
}

/// The publisher's clock at virtual time `at`.
fn wall(at: Duration) -> Timestamp {
    HostClock::default().read(Instant::ZERO).wall + at
}

/// Frames follow each other, each shown when it was captured, shifted by the same time.
fn assert_normal_speed(shown: &[FrameRecord]) {
    for pair in shown.windows(2) {
        assert_eq!(pair[1].position, pair[0].position + 1);
        let captured = pair[1].captured_at.since(pair[0].captured_at);
        let between = pair[1].render_at.since(pair[0].render_at);
        assert!(captured.abs_diff(between) < ms(1), "{pair:?}");
    }
}

/// Eight seconds of video and audio: every sample that was published up to a moment before the end is kept, whole, once,
/// with certificate and catalogue; none was asked for in vain.
#[test]
fn everything_is_recorded() {
    let mut world = World::new(ms(10), vec![Media::video(), Media::audio()]);
    world.live.run_until(ms(8_000));
    let counters = world.counters();
    assert_eq!((counters.incomplete, counters.missing), (0, 0));
    assert_eq!(counters.verification_failures + counters.malformed, 0);
    let store = world.store.borrow();
    for (stream, rate) in [("video", 30), ("audio", 50)] {
        let of_stream = store
            .samples
            .iter()
            .filter(|((rung, ..), _)| rung.to_string().starts_with(&format!("/demo/{stream}/")));
        let mut positions: Vec<_> = of_stream
            .map(|(_, packets)| Lead::decode(&packets[0]).unwrap().header().position)
            .collect();
        positions.sort_unstable();
        // It asks once a second, so the last second may be missing, and the first answer names samples of almost a second.
        assert!(positions[0] == 0 && *positions.last().unwrap() >= 6 * rate);
        assert!(positions.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }
    let has = |prefix: &str| {
        let prefix: Name = prefix.parse().unwrap();
        store.objects.keys().any(|name| prefix.is_prefix_of(name))
    };
    assert!(has("/demo/KEY") && has("/demo/catalogue") && has("/demo/32=metadata"));
}

/// The archive has the higher rung from 6 s on only: who wants it from 4 s on gets it from there, with the sound of up to two seconds
/// before.
#[test]
fn a_rung_that_begins_later_than_others_is_played_from_its_beginning() {
    let mut media = Media::video();
    media.rungs = [("200k", 200), ("1M", 1_000)]
        .map(|(name, rate)| MediaRung::new(name, Bitrate::kbps(rate)))
        .into();
    let mut world = World::new(ms(10), vec![media, Media::audio()]);
    world.store.borrow_mut().later = Some(("1M", wall(ms(6_000))));
    world.kill_publisher(ms(12_000));
    let mut config = watch();
    config.start = ms(20_000);
    config.watcher.past.from = Some(wall(ms(4_010)));
    config.watcher.rung = RungChoice::Highest;
    let watcher = world.live.watch("C", config);
    world.live.run_until(ms(30_000));
    let records = world.live.watcher(watcher).records();
    let first = |kind| records.iter().find(|it| it.stream == kind).unwrap();
    let picture = first(StreamKind::Video);
    assert_eq!(
        (picture.rung.as_str(), picture.position, picture.key),
        ("1M", 180, true)
    );
    let sound = first(StreamKind::Audio);
    let before = picture.captured_at.since(sound.captured_at);
    assert!(ms(1_900) < before && before <= ms(2_000), "{before:?}");
    assert_eq!(picture.render_at.since(sound.render_at), before);
}

/// A watcher goes back 20 s, to a time between two frames: it sees the frame before the time within 500 ms, then the others
/// at normal speed; then live again within 500 ms, without a frame from the past.
fn rewind_and_return(delay: Duration) {
    let mut world = World::new(delay, vec![Media::video(), Media::audio()]);
    let watcher = world.live.watch("C", watch());
    let to = wall(ms(10_000)) + ms(17);
    world.seek(ms(30_000), watcher, Seek::To(to));
    world.seek(ms(36_000), watcher, Seek::Live);
    world.live.run_until(ms(40_000));
    let shown = world.shown(watcher, ms(30_000));
    let past: Vec<_> = shown
        .iter()
        .filter(|r| r.captured_at < wall(ms(29_000)))
        .cloned()
        .collect();
    let first = &past[0];
    assert!(
        first.captured_at <= to && to.since(first.captured_at) < ms(34),
        "{first:?}"
    );
    let after = first.render_at.since(Instant::ZERO + ms(30_000));
    assert!(after <= ms(500), "a frame from the past after {after:?}");
    assert_normal_speed(&past);
    assert!(past.len() >= 30 * 5, "{} frames", past.len());
    let live: Vec<_> = shown
        .iter()
        .filter(|r| r.captured_at >= wall(ms(29_000)))
        .cloned()
        .collect();
    let back = live
        .iter()
        .find(|r| r.handed_out_at >= Instant::ZERO + ms(36_000))
        .unwrap();
    let after = back.render_at.since(Instant::ZERO + ms(36_000));
    assert!(after <= ms(500), "a live frame after {after:?}");
    assert!(wall(ms(36_500)).since(back.captured_at) < ms(1_000));
    let later = live.iter().filter(|r| r.captured_at >= wall(ms(37_000)));
    let later: Vec<_> = later.cloned().collect();
    assert!(later.len() >= 30 * 2);
    assert_normal_speed(&later);
}

#[test]
fn a_watcher_rewinds_and_returns_within_half_a_second() {
    rewind_and_return(ms(10));
}

#[test]
fn a_watcher_rewinds_and_returns_at_100_ms_round_trip_too() {
    rewind_and_return(ms(25));
}

/// The publisher is gone for 20 s: who comes now finds metadata, certificate, catalogue and samples in the archive, and
/// plays what there was to its end.
#[test]
fn the_past_is_there_when_the_publisher_is_gone() {
    let mut world = World::new(ms(10), vec![Media::video(), Media::audio()]);
    world.kill_publisher(ms(20_000));
    let from = wall(ms(12_000));
    let mut config = watch();
    config.start = ms(40_000);
    config.watcher.past.from = Some(from);
    let watcher = world.live.watch("C", config);
    world.live.run_until(ms(55_000));
    let shown = world.shown(watcher, Duration::ZERO);
    let first = &shown[0];
    assert!(first.captured_at <= from && from.since(first.captured_at) < ms(34));
    let after = first.render_at.since(Instant::ZERO + ms(40_000));
    // The join's timers run against a publisher that does not answer.
    assert!(after <= ms(2_000), "after {after:?}");
    assert_normal_speed(&shown);
    let last = shown.last().unwrap().captured_at;
    assert!(
        wall(ms(20_000)).since(last) < ms(1_100),
        "{:?}",
        shown.last()
    );
    let store = world.store.borrow();
    assert!(store.events.contains(&RecorderEvent::Silent));
}

/// The publisher is started again after five seconds: its new numbers are recorded too, and playback passes over the gap.
#[test]
fn playback_passes_over_the_gap_of_a_restart() {
    let mut world = World::new(ms(10), vec![Media::video()]);
    world.kill_publisher(ms(12_000));
    world
        .live
        .with_publisher(ms(17_000), world.publisher, |publisher, now| {
            publisher.restart(now)
        });
    let watcher = world.live.watch(
        "C",
        LiveWatcherConfig {
            start: ms(30_000),
            ..watch()
        },
    );
    world.seek(ms(32_000), watcher, Seek::To(wall(ms(9_000))));
    world.live.run_until(ms(44_000));
    let shown = world.shown(watcher, ms(32_000));
    let is_before = |record: &&FrameRecord| record.captured_at < wall(ms(12_000));
    let is_after =
        |record: &&FrameRecord| (wall(ms(17_000))..wall(ms(29_000))).contains(&record.captured_at);
    let before: Vec<_> = shown.iter().filter(is_before).cloned().collect();
    let after: Vec<_> = shown.iter().filter(is_after).cloned().collect();
    assert!(
        before.len() >= 30 && after.len() >= 60,
        "{} {}",
        before.len(),
        after.len()
    );
    assert_normal_speed(&before);
    assert_normal_speed(&after);
    let pause = after[0].render_at.since(before.last().unwrap().render_at);
    assert!(pause < ms(2_500), "{pause:?}");
}

/// Nothing was kept of the time before the recorder came: the watcher says so and since when there is something, and live
/// goes on without a missing frame.
#[test]
fn a_time_of_which_nothing_is_kept_is_told() {
    let mut world = World::new(ms(10), vec![Media::video()]);
    let mut config = watch();
    config.watcher.past.asks_since = true;
    let watcher = world.live.watch("C", config);
    let early = Timestamp::from_micros(wall(Duration::ZERO).as_micros() - 5_000_000);
    world.seek(ms(15_000), watcher, Seek::To(early));
    world.live.run_until(ms(18_000));
    let oldest = world.store.borrow().oldest_key();
    let unkept = Unkept::NotThere {
        since: Some(oldest),
    };
    let told = Event::NothingKept { to: early, unkept };
    let watched = world.live.watcher(watcher);
    assert!(watched.events().iter().any(|(_, event)| *event == told));
    let shown = world.shown(watcher, ms(12_000));
    assert!(shown.len() >= 30 * 5);
    assert_normal_speed(&shown);
    let stats = watched.stats(Instant::ZERO + ms(18_000)).unwrap();
    let oldest = oldest.as_micros() as f64 / 1e3;
    assert_eq!(stats.kept_since_ms, Some(oldest));
}

/// Pictures may be shown 320 ms after they are decoded: from the beginning that the archive names, all of them are played.
#[test]
fn the_beginning_that_is_kept_can_be_played() {
    let media = Media {
        reorder_delay: ms(320),
        ..Media::video()
    };
    let mut world = World::new(ms(10), vec![media]);
    world.kill_publisher(ms(6_000));
    world.live.run_until(ms(9_000));
    let mut config = watch();
    config.start = ms(10_000);
    config.watcher.past.from = Some(world.store.borrow().oldest_key());
    let watcher = world.live.watch("C", config);
    world.live.run_until(ms(18_000));
    let shown = world.shown(watcher, ms(10_000));
    assert!(shown.len() >= 30 * 4 && shown[0].position == 0);
    assert_normal_speed(&shown);
}

/// After a restart the publisher answers for the time index until an archive takes over: a watcher that knows of an older past
/// goes there within 1.5 s of that, and says after 5 s that nothing is kept if no archive does.
#[test]
fn a_watcher_waits_for_the_index_of_an_archive() {
    for taken_over_at in [Some(ms(17_500)), None] {
        let mut world = World::new(ms(10), vec![Media::video()]);
        let mut config = watch();
        config.watcher.past.asks_since = true;
        let watcher = world.live.watch("C", config);
        let to = wall(ms(5_000)) + ms(17);
        world.seek(ms(15_000), watcher, Seek::To(to));
        world.live.run_until(ms(14_900));
        world.store.borrow_mut().index_from = wall(ms(14_500));
        if let Some(at) = taken_over_at {
            world.live.run_until(at);
            world.store.borrow_mut().index_from = Timestamp::default();
        }
        world.live.run_until(ms(24_000));
        let events = world.live.watcher(watcher).events();
        let told = events
            .iter()
            .find(|(_, event)| matches!(event, Event::NothingKept { .. }));
        let shown = world.shown(watcher, ms(15_000));
        let past = shown.iter().find(|it| it.captured_at < wall(ms(14_000)));
        let (happened_at, expected_at) = match taken_over_at {
            Some(at) => {
                let first = past.unwrap();
                assert!(first.captured_at <= to && to.since(first.captured_at) < ms(34));
                assert!(told.is_none());
                (first.render_at, at)
            }
            None => {
                assert!(past.is_none());
                (told.unwrap().0, ms(20_000))
            }
        };
        let expected_at = Instant::ZERO + expected_at;
        let latest_at = expected_at + ms(1_500);
        assert!(
            (expected_at..latest_at).contains(&happened_at),
            "{happened_at:?}"
        );
    }
}

/// While the past is fetched, live goes on; while another time is fetched, the past does. No frame comes after the jump
/// that was captured before it, and those that are only decoded are marked.
#[test]
fn what_plays_goes_on_until_the_other_time_is_here() {
    let mut world = World::new(ms(40), vec![Media::video(), Media::audio()]);
    let watcher = world.live.watch("C", watch());
    world.seek(ms(30_000), watcher, Seek::To(wall(ms(10_500))));
    world.seek(ms(34_000), watcher, Seek::To(wall(ms(20_500))));
    world.live.run_until(ms(38_000));
    let shown = world.shown(watcher, ms(28_000));
    let jumps: Vec<_> = shown
        .windows(2)
        .filter(|pair| pair[1].position != pair[0].position + 1)
        .map(|pair| (pair[0].render_at, pair[1].captured_at, pair[1].render_at))
        .collect();
    let [(left, first, came), (left_again, second, came_again)] = jumps[..] else {
        panic!("{} jumps", jumps.len());
    };
    for (asked, to, captured_at) in [
        (ms(30_000), wall(ms(10_500)), first),
        (ms(34_000), wall(ms(20_500)), second),
    ] {
        assert!(
            captured_at <= to && to.since(captured_at) < ms(34),
            "{asked:?}"
        );
    }
    for (left, came) in [(left, came), (left_again, came_again)] {
        // Two round trips of 160 ms went by meanwhile.
        assert!(
            came.since(left) < ms(150),
            "{:?} without a frame",
            came.since(left)
        );
    }
}

/// The publisher's clock is wrong for a while, which it tells in every answer: recording goes on within five seconds
/// (it asks once a second), when the clock goes wrong and when it is put right, and nothing is missing.
#[test]
fn recording_goes_on_whatever_the_publishers_clock_does() {
    const HOUR: i64 = 3_600_000_000;
    for offset in [HOUR, 2 * HOUR, -2 * HOUR, 8_760 * HOUR, -8_760 * HOUR] {
        let mut world = World::new(ms(10), vec![Media::video()]);
        let host = world.live.node("P");
        for (at, micros) in [(10_000, offset), (15_000, 0)] {
            world
                .live
                .network
                .schedule(Instant::ZERO + ms(at), move |network| {
                    network.set_wall_offset(host, micros);
                });
        }
        let mut before = 0;
        for second in (5..=60).step_by(5) {
            world.live.run_until(ms(second * 1_000));
            let complete = world.counters().complete;
            // 150 frames are published in five seconds.
            let new = complete - before;
            assert!(
                second == 5 || (100..=200).contains(&new),
                "{new} frames until {second} s, offset {offset}"
            );
            before = complete;
        }
        let counters = world.counters();
        assert_eq!((counters.incomplete, counters.missing), (0, 0));
        let store = world.store.borrow();
        assert!(!store.events.contains(&RecorderEvent::Silent), "{offset}");
    }
}

/// The recorder is killed for ten seconds, at any moment of a second: the next one goes on where it ended, and no sample
/// is missing, since the publisher has half a minute in memory.
#[test]
fn nothing_is_missing_after_a_kill_while_the_publisher_has_it() {
    for offset in [0, 130, 470, 910] {
        let mut world = World::new(ms(10), vec![Media::video(), Media::audio()]);
        world.store.borrow_mut().may_repeat = true;
        let id = world.recording;
        for (at, name) in [(8_000 + offset, "/nobody"), (18_000 + offset, "/demo")] {
            let store = world.store.clone();
            let at = Instant::ZERO + ms(at);
            world.live.network.schedule(at, move |network| {
                let mut kept: BTreeMap<Name, [Option<u64>; 2]> = BTreeMap::new();
                for (rung, class, sequence) in store.borrow().samples.keys() {
                    let newest = kept.entry(rung.clone()).or_default();
                    newest[class.index()] = newest[class.index()].max(Some(*sequence));
                }
                network.with_application(id, |recording: &mut Recording, now: Now| {
                    recording.recorder = Recorder::new(RecorderConfig {
                        wall_at_zero: HostClock::default().read(Instant::ZERO).wall,
                        seed: 7,
                        kept,
                        ..RecorderConfig::new(name.parse().unwrap())
                    });
                    recording.handle_timeout(now);
                });
            });
        }
        world.live.run_until(ms(30_000));
        // Nothing is requested in vain, key samples of long ago neither.
        let counters = world.counters();
        assert_eq!((counters.incomplete, counters.missing), (0, 0));
        let store = world.store.borrow();
        for (stream, rate) in [("video", 30), ("audio", 50)] {
            let of_stream = store.samples.iter().filter(|((rung, ..), _)| {
                rung.to_string().starts_with(&format!("/demo/{stream}/"))
            });
            let mut positions: Vec<_> = of_stream
                .map(|(_, packets)| Lead::decode(&packets[0]).unwrap().header().position)
                .collect();
            positions.sort_unstable();
            assert!(*positions.last().unwrap() >= 28 * rate, "{stream}");
            let gap = positions.windows(2).find(|pair| pair[1] != pair[0] + 1);
            assert_eq!(gap, None, "{stream}, killed at 8 s and {offset} ms");
        }
    }
}
