//! Tracks over a network: everybody, single persons, and the hint.

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use namecast_apps::live::publisher::{Publisher, PublisherConfig};
use namecast_apps::live::watcher::{PastConfig, Speed, Watched, Watcher, WatcherConfig};
use namecast_apps::tracks::{self, HINT, Hint, Person, Sample, Stage, TRACKS};
use namecast_packet::Packet;
use namecast_packet::lp::LpPacket;
use namecast_sim::live::Signing;
use namecast_sim::topology::{Topology, routes};
use namecast_sim::{Application, ApplicationId, Network, NodeConfig, Now, Output};
use namecast_stream::ProducerConfig;
use namecast_units::{Instant, Timestamp};

use crate::live_world::{link, ms, root};

/// Ticks a second.
const RATE: u32 = 60;
const MAX: usize = 16;
/// When virtual time starts.
const WALL: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// Publishes those who are here at a time.
struct Cameras {
    publisher: Option<(Publisher, Stage)>,
    people: fn(Duration) -> Vec<&'static str>,
    ticks: u64,
}

impl Cameras {
    fn next_at(&self) -> Instant {
        let number = u32::try_from(self.ticks).unwrap();
        Instant::ZERO + Duration::from_secs(1) / RATE * number
    }

    fn publisher(&mut self, now: Now) -> &mut (Publisher, Stage) {
        self.publisher.get_or_insert_with(|| {
            let config = PublisherConfig {
                root: root(),
                streams: vec![tracks::stream(MAX, RATE)],
                producer: ProducerConfig::default(),
                shared_since: None,
            };
            let (signer, certificate) = Signing::Hmac.signer(&root());
            let mut publisher = Publisher::new(config, now.wall, signer, &certificate).unwrap();
            let stage = Stage::new(&mut publisher, now.wall).unwrap();
            (publisher, stage)
        })
    }
}

impl Application for Cameras {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        Application::handle_frame(&mut self.publisher(now).0, now, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.next_at() <= now.monotonic {
            self.ticks += 1;
            let ids = (self.people)(now.monotonic.since(Instant::ZERO)).into_iter();
            let people: Vec<_> = ids.map(|id| person(id, now.wall)).collect();
            let (publisher, stage) = self.publisher(now);
            stage.publish(publisher, now, &people).unwrap();
        }
        Application::handle_timeout(&mut self.publisher(now).0, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self.publisher.as_ref();
        let own = own.map_or(Some(Instant::ZERO), |it| Application::poll_timeout(&it.0));
        own.into_iter().chain([self.next_at()]).min()
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        match Application::poll_output(&mut self.publisher.as_mut()?.0)? {
            Output::Send(frame) => Some(Output::Send(frame)),
            Output::Event(_) => self.poll_output(),
        }
    }
}

fn person(id: &str, at: Timestamp) -> Person {
    let json = format!(r#"{{"id":"{id}","x":1,"y":2,"z":3}}"#);
    Person::from_json(json.as_bytes(), at).unwrap()
}

/// Reads streams, and keeps what came of each.
struct Reader {
    watcher: Watcher,
    samples: BTreeMap<String, Vec<(Instant, Bytes)>>,
    /// Data packets under the family's name, by the component behind it.
    packets: BTreeMap<String, u64>,
    interests: u64,
    frames: Vec<Bytes>,
}

impl Reader {
    fn drain(&mut self, now: Now) {
        while let Some(output) = self.watcher.poll_output() {
            match output {
                Output::Send(frame) => {
                    self.interests += 1;
                    self.frames.push(frame);
                }
                Output::Event(Watched::Frame(frame)) => {
                    let of = self.samples.entry(frame.name.to_string()).or_default();
                    of.push((now.monotonic, frame.payload));
                }
                Output::Event(_) => {}
            }
        }
    }

    /// Ticks of everybody, or of a person, and who was in them.
    fn ticks(&self, stream: &str) -> Vec<(u64, Vec<String>)> {
        let samples = self.samples.get(stream).into_iter().flatten();
        let samples = samples.map(|(_, payload)| {
            let sample = Sample::decode(payload, MAX).unwrap();
            let ids = sample.people.into_iter().map(|person| person.id);
            (sample.tick, ids.collect())
        });
        samples.collect()
    }
}

impl Application for Reader {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let link = LpPacket::decode(frame.clone()).unwrap();
        if let Some(Ok(Packet::Data(data))) = link.fragment.map(Packet::decode) {
            let under = data.name().components().nth(2).filter(|_| {
                let family = root().builder().generic(TRACKS).finish();
                family.is_prefix_of(data.name())
            });
            if let Some(under) = under {
                let word = String::from_utf8(under.value.to_vec()).unwrap();
                *self
                    .packets
                    .entry(format!("{}={word}", under.kind))
                    .or_default() += 1;
            }
        }
        self.watcher.handle_packet(now.monotonic, frame);
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.watcher.handle_timeout(now.monotonic);
        self.drain(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.watcher.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        (!self.frames.is_empty()).then(|| Output::Send(self.frames.remove(0)))
    }
}

/// Reads all tracks.
fn config() -> WatcherConfig {
    WatcherConfig {
        video: false,
        audio: false,
        data: true,
        trust: Signing::Hmac.trust(),
        wall_at_zero: WALL,
        ..WatcherConfig::new(root())
    }
}

struct World {
    network: Network,
    cameras: ApplicationId,
    readers: Vec<ApplicationId>,
}

/// Cameras at a router, and readers of these streams, 20 ms away.
fn world(people: fn(Duration) -> Vec<&'static str>, wishes: &[(&[&str], Option<u32>)]) -> World {
    let mut topology = Topology::default();
    let [host, router] = ["P", "R"].map(|name| topology.add_node(name));
    topology.connect(host, router, &link(ms(0)));
    let nodes: Vec<_> = (0..wishes.len())
        .map(|number| {
            let node = topology.add_node(format!("C{number}"));
            topology.connect(router, node, &link(ms(20)));
            node
        })
        .collect();
    let mut network = Network::new(&topology, 7, |_| NodeConfig::default());
    let towards = routes::towards(&topology, host);
    let cameras = Cameras {
        publisher: None,
        people,
        ticks: 1,
    };
    let cameras = network
        .add_producer(host, &root(), cameras, &towards)
        .unwrap();
    let readers = nodes
        .into_iter()
        .zip(wishes)
        .map(|(node, (streams, most))| {
            let watcher = Watcher::new(WatcherConfig {
                streams: streams.iter().map(|it| (*it).to_owned()).collect(),
                max_data_rate: *most,
                seed: node as u64,
                ..config()
            });
            let reader = Reader {
                watcher,
                samples: BTreeMap::new(),
                packets: BTreeMap::new(),
                interests: 0,
                frames: Vec::new(),
            };
            network.add_application(node, reader)
        });
    let readers = readers.collect();
    World {
        network,
        cameras,
        readers,
    }
}

impl World {
    fn run_until(&mut self, at: Duration) {
        self.network.run_until(Instant::ZERO + at);
    }

    fn reader(&self, at: usize) -> &Reader {
        self.network.application(self.readers[at]).unwrap()
    }

    fn published(&self) -> u64 {
        let cameras: &Cameras = self.network.application(self.cameras).unwrap();
        let (publisher, _) = cameras.publisher.as_ref().unwrap();
        publisher.producer_counters().samples
    }
}

/// A reader of one person receives that person and nothing of the others, each tick; people may be called as keywords are. Others are not
/// published apart.
#[test]
fn a_reader_of_one_person_receives_that_person_alone() {
    let people = |_| vec!["all", "ann", "hint", "32=all", "a/b"];
    let mut world = world(
        people,
        &[
            (&["tracks/8=ann"], None),
            (&["tracks/8=all", "tracks/8=hint"], None),
            (&["tracks/8=32=all", "tracks/8=a/b"], Some(30)),
            (&[TRACKS], None),
        ],
    );
    world.run_until(ms(2_000));
    let before = world.published();
    world.run_until(ms(7_000));
    // In five seconds: everybody, and five of five people.
    let published = world.published() - before;
    assert!((1_798..=1_802).contains(&published), "{published}");
    let ann = world.reader(0);
    let packets: Vec<_> = ann.packets.keys().collect();
    assert_eq!(packets, ["8=ann"]);
    for (at, stream, id, step) in [
        (0, "tracks/8=ann", "ann", 1),
        (1, "tracks/8=all", "all", 1),
        (1, "tracks/8=hint", "hint", 1),
        (2, "tracks/8=32=all", "32=all", 2),
        (2, "tracks/8=a/b", "a/b", 2),
    ] {
        let ticks = world.reader(at).ticks(stream);
        let expected = 6 * u64::from(RATE) / step;
        assert!(ticks.len() as u64 >= expected, "{id}: {}", ticks.len());
        assert!(ticks.iter().all(|(_, ids)| *ids == [id]), "{id}");
        let steady = ticks[ticks.len() - 200 / step as usize..].windows(2);
        let steps: Vec<_> = steady.map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(steps.iter().all(|it| *it == step), "{id}: {steps:?}");
    }
    let all = world.reader(3).ticks(TRACKS);
    assert!(all.len() > 390, "{}", all.len());
    assert!(all.iter().all(|(_, ids)| ids.len() == 5));
}

/// Without a reader, persons are not signed: one sample a tick.
#[test]
fn nobody_is_published_apart_unless_somebody_asks() {
    let mut world = world(|_| vec!["ann", "bob"], &[(&[TRACKS], None)]);
    world.run_until(ms(5_000));
    let published = world.published();
    assert!((298..=301).contains(&published), "{published}");
}

/// The hint says who is here and since when, five times a second, and who has come or left is known within 200 ms and the way.
#[test]
fn the_hint_tells_who_is_here() {
    let people = |at: Duration| match at.as_millis() {
        0..3_000 => vec!["ann"],
        3_000..6_000 => vec!["ann", "bob"],
        _ => vec!["bob"],
    };
    let mut world = world(people, &[(&[HINT], Some(tracks::HINTS_PER_SECOND))]);
    world.run_until(ms(9_000));
    let hints = &world.reader(0).samples[HINT];
    assert!((38..=46).contains(&hints.len()), "{}", hints.len());
    let read = hints
        .iter()
        .map(|(at, payload)| (*at, Hint::decode(payload, MAX).unwrap()));
    let read: Vec<_> = read.collect();
    for (since, ids) in [(3_000, &["ann", "bob"][..]), (6_000, &["bob"][..])] {
        let here = |hint: &Hint| {
            hint.people
                .iter()
                .map(|(id, _)| id.as_str())
                .eq(ids.iter().copied())
        };
        let (at, hint) = read.iter().find(|(_, hint)| here(hint)).unwrap();
        let after = at.since(Instant::ZERO + ms(since));
        assert!(after <= ms(200 + 17 + 25), "{ids:?} after {after:?}");
        let bob = hint.people.iter().find(|(id, _)| id == "bob").unwrap().1;
        let came = bob.since(WALL).as_micros();
        assert!((3_000_000..3_017_000).contains(&came), "{came}");
    }
    assert!(read.is_sorted_by(|(_, one), (_, next)| one.tick < next.tick));
}

/// A reader of somebody who is not here sends half the Interests of one of somebody who is, and has them within two seconds after they come, again and
/// again.
#[test]
fn somebody_who_comes_later_is_found() {
    let people = |at: Duration| match at.as_millis() {
        0..10_000 | 15_000..20_000 => vec!["bob"],
        _ => vec!["ann", "bob"],
    };
    let mut world = world(people, &[(&["tracks/8=ann"], None), (&[TRACKS], None)]);
    world.run_until(ms(2_000));
    let before = world.reader(0).interests;
    world.run_until(ms(10_000));
    let asked = world.reader(0).interests - before;
    assert!(asked <= 8 * 60, "{asked} Interests in 8 s");
    world.run_until(ms(15_000));
    let first = world.reader(0).ticks("tracks/8=ann").len();
    assert!(first >= 3 * RATE as usize, "{first}");
    world.run_until(ms(25_000));
    let second = world.reader(0).ticks("tracks/8=ann").len() - first;
    assert!(second >= 3 * RATE as usize, "{second}");
    // The reader of everybody misses nothing.
    let all = world.reader(1).ticks(TRACKS);
    assert!(all.windows(2).all(|pair| pair[1].0 == pair[0].0 + 1));
}

/// Played again from the publisher's own past at 8, 1 and a quarter of the speed, ticks are those that were live, in the same order, and take so much
/// less or more time; of every second tick, too.
#[test]
fn a_replay_at_any_speed_has_the_same_ticks() {
    for (times, most, length) in [
        (8.0, None, 14_000),
        (8.0, Some(30), 14_000),
        (1.0, None, 4_000),
        (0.25, None, 2_000),
    ] {
        let people = |_| vec!["ann", "bob"];
        let mut world = world(people, &[(&[TRACKS], None), (&[TRACKS], None)]);
        world.run_until(ms(21_000));
        let (id, from) = (world.readers[1], WALL + ms(5_000));
        world
            .network
            .with_application(id, |reader: &mut Reader, _| {
                reader.samples.clear();
                reader.watcher = Watcher::new(WatcherConfig {
                    past: PastConfig {
                        from: Some(from),
                        speed: Speed::new(times).unwrap(),
                        ..PastConfig::default()
                    },
                    max_data_rate: most,
                    seed: 77,
                    ..config()
                });
            });
        world.run_until(ms(21_000 + 10_000));
        let of = |at: usize| world.reader(at).samples[TRACKS].iter();
        let tick = |payload: &Bytes| Sample::decode(payload, MAX).unwrap().tick;
        let live: BTreeMap<u64, &Bytes> = of(0).map(|(_, it)| (tick(it), it)).collect();
        // What was captured from then on, for this long.
        let step = most.map_or(1, |most| u64::from(RATE / most));
        let count = length * u64::from(RATE) / 1_000 / step;
        let replayed: Vec<_> = of(1).take(count as usize + 1).collect();
        assert_eq!(replayed.len() as u64, count + 1, "{times}");
        let first = tick(&replayed[0].1);
        let expected = tracks::stream(MAX, RATE).rungs[0].rate.first_sequence(from);
        assert!(first.abs_diff(expected) <= 2, "{first} {expected}");
        for (number, (_, payload)) in (0..).zip(&replayed) {
            let number = first + number * step;
            assert_eq!(Some(&payload), live.get(&number), "{times} {number}");
        }
        let took = replayed[count as usize].0.since(replayed[0].0);
        let took = took.as_secs_f64() * times * 1_000.0 / length as f64;
        assert!((0.9..=1.1).contains(&took), "{times}: {took}");
    }
}
