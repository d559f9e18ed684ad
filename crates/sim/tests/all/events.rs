//! Events over links that lose packets: each arrives once and in order, soon, at every reader.

use core::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use namecast_apps::live::publisher::{Publisher, PublisherConfig};
use namecast_apps::live::watcher::{Watched, Watcher, WatcherConfig};
use namecast_netem as netem;
use namecast_sim::live::Signing;
use namecast_sim::topology::{NodeIndex, Topology, routes};
use namecast_sim::{Application, ApplicationId, Network, NodeConfig, Now, Output};
use namecast_stream::{ProducerConfig, Reading, StreamInfo};
use namecast_units::{Instant, Timestamp};

use crate::live_world::{link, ms, root};

const STREAM: &str = "cues";
/// A data stream beside it, with a rhythm, and one more.
const OTHERS: [&str; 2] = ["levels", "spare"];
/// The readers have joined by then.
pub(crate) const FIRST: Duration = ms(6_000);

/// Publishes an event of `size` octets every `every`, which begins with its number and the time.
pub(crate) struct Desk {
    publisher: Option<Publisher>,
    every: Duration,
    size: usize,
    count: u64,
    sent: u64,
    publishes_others: bool,
    reading: Reading,
    /// Samples a second that the catalogue tells of.
    rate: u32,
}

impl Desk {
    fn next_at(&self) -> Option<Instant> {
        let number = u32::try_from(self.sent).unwrap();
        (self.sent < self.count).then(|| Instant::ZERO + FIRST + self.every * number)
    }

    fn publisher(&mut self, now: Now) -> &mut Publisher {
        self.publisher.get_or_insert_with(|| {
            let config = PublisherConfig {
                root: root(),
                streams: vec![
                    StreamInfo::data(OTHERS[0], 2, 200),
                    StreamInfo {
                        reading: self.reading,
                        ..StreamInfo::data(STREAM, self.rate, 200)
                    },
                    StreamInfo::data(OTHERS[1], 2, 200),
                ],
                producer: ProducerConfig::default(),
                shared_since: None,
            };
            let (signer, certificate) = Signing::Hmac.signer(&root());
            Publisher::new(config, now.wall, signer, &certificate).unwrap()
        })
    }
}

impl Application for Desk {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        Application::handle_frame(self.publisher(now), now, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        while self.next_at().is_some_and(|at| at <= now.monotonic) {
            let mut event = vec![0; self.size];
            event[..8].copy_from_slice(&self.sent.to_be_bytes());
            if self.publishes_others {
                for other in OTHERS {
                    let sample = self.sent.to_be_bytes().to_vec();
                    let publisher = self.publisher(now);
                    publisher.publish_sample(now, other, sample).unwrap();
                }
            }
            self.publisher(now)
                .publish_sample(now, STREAM, event)
                .unwrap();
            self.sent += 1;
        }
        Application::handle_timeout(self.publisher(now), now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = self.publisher.as_ref();
        let own = own.map_or(Some(Instant::ZERO), Application::poll_timeout);
        own.into_iter().chain(self.next_at()).min()
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        match Application::poll_output(self.publisher.as_mut()?)? {
            Output::Send(frame) => Some(Output::Send(frame)),
            Output::Event(_) => self.poll_output(),
        }
    }
}

/// Reads events, and keeps the number of each and when it came.
pub(crate) struct Reader {
    watcher: Option<Watcher>,
    joins_at: Instant,
    /// Names of the streams to read.
    streams: Vec<String>,
    pub(crate) heard: Vec<(u64, Instant)>,
    /// Samples of other streams.
    others: Vec<(String, u64)>,
    gaps: u32,
    interests: u64,
    max_data_rate: Option<u32>,
}

impl Reader {
    fn drain(&mut self, now: Now, frames: &mut Vec<Bytes>) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        while let Some(output) = watcher.poll_output() {
            match output {
                Output::Send(frame) => {
                    self.interests += 1;
                    frames.push(frame);
                }
                Output::Event(Watched::Frame(frame)) => {
                    let number = u64::from_be_bytes(*frame.payload.first_chunk().unwrap());
                    match &*frame.name {
                        STREAM => self.heard.push((number, now.monotonic)),
                        other => self.others.push((other.to_owned(), number)),
                    }
                }
                Output::Event(Watched::Discontinuity { .. }) => self.gaps += 1,
                Output::Event(_) => {}
            }
        }
    }
}

struct Device {
    reader: Reader,
    frames: Vec<Bytes>,
}

impl Application for Device {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        if let Some(watcher) = &mut self.reader.watcher {
            watcher.handle_packet(now.monotonic, frame);
        }
        self.reader.drain(now, &mut self.frames);
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.reader.watcher.is_none() && self.reader.joins_at <= now.monotonic {
            let since_zero = now.monotonic.since(Instant::ZERO).as_micros() as u64;
            self.reader.watcher = Some(Watcher::new(WatcherConfig {
                video: false,
                audio: false,
                data: true,
                streams: self.reader.streams.clone(),
                max_data_rate: self.reader.max_data_rate,
                trust: Signing::Hmac.trust(),
                // Equal seeds give equal Nonces, which nodes take for a loop.
                seed: self.reader.joins_at.since(Instant::ZERO).as_millis() as u64,
                wall_at_zero: Timestamp::from_micros(now.wall.as_micros() - since_zero),
                ..WatcherConfig::new(root())
            }));
        }
        if let Some(watcher) = &mut self.reader.watcher {
            watcher.handle_timeout(now.monotonic);
        }
        self.reader.drain(now, &mut self.frames);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.reader.watcher {
            Some(watcher) => watcher.poll_timeout(),
            None => Some(self.reader.joins_at),
        }
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        (!self.frames.is_empty()).then(|| Output::Send(self.frames.remove(0)))
    }
}

pub(crate) struct Stage {
    pub(crate) network: Network,
    devices: Vec<ApplicationId>,
    desk: ApplicationId,
    router: NodeIndex,
}

/// Delay of the devices' links.
const DELAY: Duration = ms(25);

/// A desk at a router, and devices behind links of this delay that lose this share of packets each way.
pub(crate) fn stage(
    seed: u64,
    devices: usize,
    (loss, delay): (f64, Duration),
    desk: Desk,
) -> Stage {
    let mut names = vec![STREAM.to_owned()];
    names.extend(desk.publishes_others.then(|| OTHERS[0].to_owned()));
    let mut topology = Topology::default();
    let [host, router] = ["P", "R"].map(|name| topology.add_node(name));
    topology.connect(host, router, &link(ms(0)));
    let lossy = netem::Config {
        loss: netem::Loss::Random { share: loss },
        ..link(delay)
    };
    let nodes: Vec<_> = (0..devices)
        .map(|number| {
            let node = topology.add_node(format!("C{number}"));
            topology.connect(router, node, &lossy);
            node
        })
        .collect();
    let mut network = Network::new(&topology, seed, |_| NodeConfig::default());
    let towards = routes::towards(&topology, host);
    let desk = network.add_producer(host, &root(), desk, &towards).unwrap();
    let devices = nodes.into_iter().enumerate().map(|(number, node)| {
        let reader = Reader {
            watcher: None,
            joins_at: Instant::ZERO + ms(100 + 20 * number as u64),
            streams: names.clone(),
            heard: Vec::new(),
            others: Vec::new(),
            gaps: 0,
            interests: 0,
            max_data_rate: None,
        };
        let device = Device {
            reader,
            frames: Vec::new(),
        };
        network.add_application(node, device)
    });
    let devices = devices.collect();
    Stage {
        network,
        devices,
        desk,
        router,
    }
}

impl Stage {
    /// Interests that came to the router.
    fn interests(&self) -> u64 {
        let faces = self.network.forwarder(self.router).faces();
        faces.map(|face| face.counters.incoming.interests).sum()
    }

    pub(crate) fn readers(&self) -> impl Iterator<Item = &Reader> {
        let devices = self.devices.iter();
        devices.map(|id| &self.network.application::<Device>(*id).unwrap().reader)
    }

    /// All delays of events from publication on, in order of length, once each reader has had every event once and in order.
    fn delays(&self) -> Vec<Duration> {
        let desk: &Desk = self.network.application(self.desk).unwrap();
        let mut delays = Vec::new();
        for reader in self.readers() {
            let numbers: Vec<_> = reader.heard.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, (0..desk.count).collect::<Vec<_>>());
            assert_eq!(reader.gaps, 0);
            delays.extend(reader.heard.iter().map(|&(number, at)| {
                let number = u32::try_from(number).unwrap();
                at.since(Instant::ZERO + FIRST + desk.every * number)
            }));
        }
        delays.sort_unstable();
        delays
    }
}

pub(crate) fn desk(every: Duration, size: usize, count: u64) -> Desk {
    Desk {
        publisher: None,
        every,
        size,
        count,
        sent: 0,
        publishes_others: false,
        reading: Reading::Events,
        rate: 100,
    }
}

/// A cue a second to eight devices, 5 % loss each way, eight times: all 360 arrive, 99 % within 60 ms beyond the path's 25, and none later than a
/// question and two round trips.
#[test]
fn every_event_arrives_soon_whatever_is_lost() {
    for seed in 1..=8 {
        let mut stage = stage(seed, 8, (0.05, DELAY), desk(ms(1_000), 120, 45));
        stage.network.run_until(Instant::ZERO + ms(54_000));
        let delays = stage.delays();
        assert_eq!(delays.len(), 360);
        assert!(delays[356] <= ms(85), "{seed}: {:?}", &delays[350..]);
        assert!(delays[359] <= ms(700), "{seed}: {:?}", &delays[350..]);
    }
}

/// Events of five segments, thirty in a second: each is whole, and no later than its packets' repair takes.
#[test]
fn bursts_of_large_events_arrive_whole_and_in_order() {
    let mut stage = stage(5, 4, (0.05, DELAY), desk(ms(33), 4_500, 30));
    stage.network.run_until(Instant::ZERO + ms(24_000));
    let delays = stage.delays();
    assert_eq!(delays.len(), 120);
    assert!(delays[119] <= ms(3_000), "{:?}", &delays[110..]);
}

/// Between events a device sends at most five Interests a second.
#[test]
fn a_reader_that_waits_sends_few_interests() {
    let mut stage = stage(5, 1, (0.0, DELAY), desk(ms(1_000), 120, 1));
    stage.network.run_until(Instant::ZERO + ms(10_000));
    let before = stage.readers().next().unwrap().interests;
    stage.network.run_until(Instant::ZERO + ms(70_000));
    let after = stage.readers().next().unwrap().interests;
    assert!(
        (200..=300).contains(&(after - before)),
        "{}",
        after - before
    );
}

/// The readers' links are gone for five seconds: what was published meanwhile comes when they are back.
#[test]
fn what_is_published_while_a_reader_is_cut_off_arrives_later() {
    let mut stage = stage(5, 1, (0.0, DELAY), desk(ms(500), 120, 20));
    stage.network.run_until(Instant::ZERO + ms(8_000));
    stage.network.set_link_up(1, false);
    stage.network.run_until(Instant::ZERO + ms(13_000));
    assert!(stage.readers().next().unwrap().heard.len() <= 5);
    stage.network.set_link_up(1, true);
    stage.network.run_until(Instant::ZERO + ms(13_600));
    let heard = stage.readers().next().unwrap().heard.len();
    assert!(heard >= 14, "{heard}");
    stage.network.run_until(Instant::ZERO + ms(19_000));
    assert_eq!(stage.delays().len(), 20);
}

/// A reader that names two of three data streams has all samples of both, and each sample says of which stream it is.
#[test]
fn a_reader_takes_all_data_streams_that_it_names() {
    let desk = Desk {
        publishes_others: true,
        ..desk(ms(500), 120, 20)
    };
    let mut stage = stage(5, 1, (0.0, DELAY), desk);
    stage.network.run_until(Instant::ZERO + ms(18_000));
    assert_eq!(stage.delays().len(), 20);
    let others: Vec<_> = (0..20).map(|it| (OTHERS[0].to_owned(), it)).collect();
    assert_eq!(stage.readers().next().unwrap().others, others);
}

/// Positions 60 times a second, 2 % loss each way, 50 ms: of the newest at most one in two hundred is left out, and 99 % are there 25 ms
/// after their time on the path. One after the other they rise, and none waits for a lost one.
#[test]
fn the_newest_waits_for_none_before_it() {
    let every = Duration::from_micros(16_667);
    let desk = Desk {
        reading: Reading::Newest,
        ..desk(every, 600, 600)
    };
    let mut stage = stage(5, 4, (0.02, ms(50)), desk);
    stage.network.run_until(Instant::ZERO + ms(18_000));
    let mut delays = Vec::new();
    for reader in stage.readers() {
        assert!(
            reader
                .heard
                .is_sorted_by(|before, after| before.0 < after.0)
        );
        delays.extend(reader.heard.iter().map(|&(number, at)| {
            let number = u32::try_from(number).unwrap();
            at.since(Instant::ZERO + FIRST + every * number)
        }));
    }
    assert!(delays.len() >= 2_388, "{}", delays.len());
    delays.sort_unstable();
    let p99 = delays[delays.len() * 99 / 100];
    assert!(p99 <= ms(75), "{p99:?}");
}

/// Interests at the router, of ten seconds of `rate` positions a second to two readers that take `most` of them, and the numbers that the first
/// reader had of these. Sixteen seconds before: of its first 200 samples a reader requests leads twice, until none was lost.
fn interests_of(rate: u32, most: Option<u32>) -> (u64, Vec<u64>) {
    let every = Duration::from_secs(1) / rate;
    let desk = Desk {
        reading: Reading::Newest,
        rate,
        ..desk(every, 600, u64::from(rate) * 28)
    };
    let mut stage = stage(5, 2, (0.0, ms(20)), desk);
    for id in stage.devices.clone() {
        stage
            .network
            .with_application(id, |device: &mut Device, _| {
                device.reader.max_data_rate = most;
            });
    }
    stage.network.run_until(Instant::ZERO + FIRST + ms(16_000));
    let before = stage.interests();
    let had = stage.readers().next().unwrap().heard.len();
    stage.network.run_until(Instant::ZERO + FIRST + ms(26_000));
    let numbers = stage.readers().next().unwrap().heard[had..].iter();
    let numbers = numbers.map(|(number, _)| *number).collect();
    (stage.interests() - before, numbers)
}

/// A reader of every k-th number has each of these, and requests nothing else: of 60, 30 and 120 a second it sends half the Interests for half the
/// samples, and a quarter for a quarter, with 10 % for metadata. A cap that does not divide the rate leaves the next lower part.
#[test]
fn a_reader_of_every_second_number_sends_half_the_interests() {
    for (rate, most, every) in [
        (60, 30, 2),
        (60, 15, 4),
        (60, 45, 2),
        (30, 15, 2),
        (120, 60, 2),
        (60, 60, 1),
    ] {
        let (all, _) = interests_of(rate, None);
        let (some, numbers) = interests_of(rate, Some(most));
        let share = some as f64 / all as f64;
        let part = 1.0 / every as f64;
        assert!(
            (part * 0.9..=part * 1.1).contains(&share),
            "{rate} {most}: {some} of {all}"
        );
        let steps = numbers.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(steps.clone().all(|step| step == every), "{rate} {most}");
        let expected = 10 * u64::from(rate) / every;
        assert!(
            (expected - 1..=expected + 1).contains(&(numbers.len() as u64)),
            "{rate} {most}: {}",
            numbers.len()
        );
    }
}

/// The delays of every second of 60 positions a second are those of all: 2 % loss each way, 50 ms, and at most one in two hundred is left out.
#[test]
fn every_second_of_the_newest_waits_for_none_before_it() {
    let every = Duration::from_micros(16_667);
    let desk = Desk {
        reading: Reading::Newest,
        rate: 60,
        ..desk(every, 600, 600)
    };
    let mut stage = stage(5, 4, (0.02, ms(50)), desk);
    for id in stage.devices.clone() {
        stage
            .network
            .with_application(id, |device: &mut Device, _| {
                device.reader.max_data_rate = Some(30);
            });
    }
    stage.network.run_until(Instant::ZERO + ms(18_000));
    let mut delays = Vec::new();
    for reader in stage.readers() {
        delays.extend(reader.heard.iter().map(|&(number, at)| {
            let number = u32::try_from(number).unwrap();
            at.since(Instant::ZERO + FIRST + every * number)
        }));
    }
    assert!((1_194..=1_200).contains(&delays.len()), "{}", delays.len());
    delays.sort_unstable();
    let p99 = delays[delays.len() * 99 / 100];
    assert!(p99 <= ms(75), "{p99:?}");
}
