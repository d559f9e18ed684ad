//! The link packet by packet beside ns-3's, and the exact number of packets that a dumbbell carries.
//!
//! ```text
//!  flows on a dumbbell ─ what comes to the bottleneck ─▶ ┐               ┌─▶ PointToPointNetDevice, DropTailQueue ─▶ ns3.csv
//!  bursts ──────────────────────────────────────────────▶│ when, octets ─┤                                              ║
//!                                                        ┘               └─▶ namecast_netem::Link ──────────────────── equal?
//! ```
//!
//! `interop/ns3/run.sh` has ns-3 carry the schedules of this file, and writes `fixtures/ns3.csv`: for each [`CHUNK`] packets how many
//! were dropped, and the sum of the times from the entrance to the far end of all others.

use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use namecast_apps::sequence::{Fetcher, FetcherConfig, Server, ServerConfig};
use namecast_forward as forward;
use namecast_netem::{self as netem, Bytes, Link, Output, Queue};
use namecast_packet::Name;
use namecast_sim::topology::{Dumbbell, Limits, LinkIndex, Topology, routes};
use namecast_sim::trace::LinkSink;
use namecast_sim::workload::{Choice, Requester, RequesterConfig, Responder, Spacing};
use namecast_sim::{Network, NodeConfig};
use namecast_stream::path::NumberedConfig;
use namecast_stream::rate::RateControl;
use namecast_units::{Bitrate, ByteSize, Instant, Random};

/// What ns-3 made of the schedules.
const NS3: &str = include_str!("../fixtures/ns3.csv");
/// Packets of a line of it.
const CHUNK: usize = 100;
/// Queue of the papers' dumbbell.
const QUEUE: usize = 50;

/// Packets that come to a link.
struct Schedule {
    name: &'static str,
    link: netem::Config,
    packets: Vec<Packet>,
}

/// One packet, as the link's entrance saw it.
#[derive(Clone, Copy)]
struct Packet {
    at: Instant,
    octets: usize,
    /// When it was at the far end; none if it was dropped.
    arrival: Option<Instant>,
}

impl Schedule {
    /// As `interop/ns3/link.cc` reads it.
    fn written(&self) -> String {
        let rate = self.link.rate.as_ref().and_then(netem::Rate::constant);
        let rate = rate.unwrap().as_bps();
        let mut text = format!("{rate} {} {QUEUE}\n", self.link.delay.as_nanos());
        for packet in &self.packets {
            writeln!(text, "{} {}", packet.at.as_nanos(), packet.octets).unwrap();
        }
        text
    }

    /// As `interop/ns3/link.cc` writes what became of it.
    fn fates(&self) -> String {
        let mut text = String::new();
        for packet in &self.packets {
            let (at, octets) = (packet.at.as_nanos(), packet.octets);
            match packet.arrival {
                Some(arrival) => writeln!(text, "{at} {octets} {}", arrival.as_nanos()).unwrap(),
                None => writeln!(text, "{at} {octets} dropped").unwrap(),
            }
        }
        text
    }

    /// Packets dropped, and nanoseconds from the entrance to the far end of all others, of each chunk.
    fn chunks(&self) -> impl Iterator<Item = (u64, u64)> {
        self.packets.chunks(CHUNK).map(|chunk| {
            let arrivals = chunk
                .iter()
                .filter_map(|packet| Some((packet.arrival?, packet.at)));
            let transit = arrivals.map(|(arrival, at)| arrival.as_nanos() - at.as_nanos());
            let dropped = chunk.iter().filter(|packet| packet.arrival.is_none());
            (dropped.count() as u64, transit.sum())
        })
    }

    /// Whether a packet takes a whole number of nanoseconds, whatever its size.
    fn is_exact(&self) -> bool {
        let rate = self.link.rate.as_ref().and_then(netem::Rate::constant);
        8_000_000_000 % rate.unwrap().as_bps() == 0
    }
}

/// What passes a dumbbell's bottleneck, link 0, and what comes to it from the producers.
#[derive(Default)]
struct Watch {
    from_producers: Vec<LinkIndex>,
    packets: Vec<Packet>,
    /// Packets that have left the bottleneck's entrance, dropped ones passed over.
    next: usize,
}

impl LinkSink for Watch {
    fn record(&mut self, link: LinkIndex, from_second: bool, output: &Output) {
        let is_bottleneck = link == 0 && !from_second;
        match output {
            Output::Delivered { at, frame, .. }
                if self.from_producers.contains(&link) && !from_second =>
            {
                self.packets.push(Packet {
                    at: *at,
                    octets: frame.len(),
                    arrival: None,
                });
            }
            // What is still under way when time ends is taken away by the caller; until then it is what was not dropped.
            Output::Delivered { at, frame, .. } if is_bottleneck => {
                while self.packets[self.next].arrival == Some(Instant::ZERO) {
                    self.next += 1;
                }
                let packet = &mut self.packets[self.next];
                assert_eq!(packet.octets, frame.len(), "packet {}", self.next);
                packet.arrival = Some(*at);
                self.next += 1;
            }
            // The last one that came.
            Output::Dropped { at, frame, .. } if is_bottleneck => {
                let packet = self.packets.last_mut().unwrap();
                assert_eq!((packet.at, packet.octets), (*at, frame.len()));
                packet.arrival = Some(Instant::ZERO);
            }
            _ => {}
        }
    }
}

fn link(rate: Bitrate, delay: Duration) -> netem::Config {
    netem::Config {
        rate: Some(rate.into()),
        delay,
        queue: Queue::DropTail { packets: QUEUE },
        ..netem::Config::default()
    }
}

/// Flows on the dumbbell of ARC's figures 4 and 12, and what they bring to its bottleneck.
fn flows(name: &'static str, flows: usize, rate: Bitrate, control: &str, seconds: u64) -> Schedule {
    let link = link(rate, Duration::from_millis(8));
    let shape = Dumbbell {
        flows,
        bottleneck: link.clone(),
        ..Dumbbell::default()
    };
    let topology = shape.build(&Limits::default()).unwrap();
    // Without caches, or what was dropped would come from the router.
    let config = NodeConfig {
        forwarder: forward::Config {
            content_store: forward::ContentStoreConfig::with_capacity(ByteSize::ZERO),
            ..forward::Config::default()
        },
        ..NodeConfig::default()
    };
    let mut network = Network::new(&topology, 1, |_| config.clone());
    let mut random = Random::from_seed(1);
    let control: RateControl = control.parse().unwrap();
    for flow in 1..=flows {
        add_flow(&mut network, &topology, flow, control, &mut random);
    }
    let producers = (1..=flows).map(|flow| topology.node(&format!("P{flow}")).unwrap());
    let producers: Vec<_> = producers.collect();
    let links = 0..topology.links.len();
    let watch = Rc::new(RefCell::new(Watch {
        from_producers: links
            .filter(|&link| producers.contains(&topology.links[link].ends.0))
            .collect(),
        ..Watch::default()
    }));
    network.set_link_sink(Box::new(Rc::clone(&watch)));
    network.run_until(Instant::ZERO + Duration::from_secs(seconds));

    let mut watch = watch.borrow_mut();
    let undecided = watch
        .packets
        .iter()
        .skip(watch.next)
        .position(|packet| packet.arrival.is_none());
    let (passed, next) = (watch.packets.len(), watch.next);
    watch
        .packets
        .truncate(undecided.map_or(passed, |first| next + first));
    for packet in &mut watch.packets {
        packet.arrival = packet.arrival.filter(|&at| at != Instant::ZERO);
    }
    let packets = watch.packets.clone();
    Schedule {
        name,
        link,
        packets,
    }
}

fn add_flow(
    network: &mut Network,
    topology: &Topology,
    flow: usize,
    control: RateControl,
    random: &mut Random,
) {
    let node = |letter| topology.node(&format!("{letter}{flow}")).unwrap();
    let prefix: Name = format!("/p{flow}").parse().unwrap();
    let server = Server::new(ServerConfig {
        prefix: prefix.clone(),
        content_size: 1_024,
        wire_size: Some(1_074),
        ..ServerConfig::default()
    });
    let towards = routes::towards(topology, node('P'));
    network
        .add_producer(node('P'), &prefix, server.unwrap(), &towards)
        .unwrap();
    let requests = NumberedConfig {
        control,
        retransmit: true,
        seed: random.next_u64(),
        ..NumberedConfig::default()
    };
    let fetcher = Fetcher::new(FetcherConfig::new(prefix, requests));
    let fetcher = network.add_application(node('C'), fetcher);
    let start = Duration::from_nanos(random.below(10_000_000));
    network.schedule(Instant::ZERO + start, move |network| {
        network.with_application(fetcher, |fetcher: &mut Fetcher, now| {
            fetcher.start(now.monotonic);
        });
    });
}

/// Bursts of up to 90 packets of 60 to 1500 octets, some of which find the queue full and some an idle link.
fn bursts(name: &'static str, rate: Bitrate) -> Schedule {
    let config = link(rate, Duration::from_millis(8));
    let mut link = Link::new(config.clone(), 1);
    let mut random = Random::from_seed(4);
    let mut at = 0;
    let mut packets: Vec<Packet> = Vec::new();
    let mut fates = Fates::default();
    for _ in 0..60 {
        at += random.below(60_000_000);
        for _ in 0..random.below(90) {
            at += 1 + random.below(20_000);
            let octets = 60 + random.below(1_441) as usize;
            let entrance = Instant::from_nanos(at);
            packets.push(Packet {
                at: entrance,
                octets,
                arrival: None,
            });
            let number = u32::try_from(packets.len() - 1).unwrap().to_be_bytes();
            let mut frame = number.to_vec();
            frame.resize(octets, 0);
            link.handle_frame(entrance, Bytes::from(frame));
            fates.take(&mut link);
        }
    }
    while let Some(at) = link.poll_timeout() {
        link.handle_timeout(at);
        fates.take(&mut link);
    }
    for (number, arrival) in fates.0 {
        packets[number].arrival = arrival;
    }
    Schedule {
        name,
        link: config,
        packets,
    }
}

/// What became of packets that begin with their numbers.
#[derive(Default)]
struct Fates(Vec<(usize, Option<Instant>)>);

impl Fates {
    fn take(&mut self, link: &mut Link) {
        while let Some(output) = link.poll_output() {
            let (frame, arrival) = match &output {
                Output::Delivered { at, frame, .. } => (frame, Some(*at)),
                Output::Dropped { frame, .. } => (frame, None),
            };
            let number = u32::from_be_bytes(frame[..4].try_into().unwrap());
            self.0.push((number as usize, arrival));
        }
    }
}

fn schedules() -> Vec<Schedule> {
    let (slow, fast) = (Bitrate::mbps(10), Bitrate::mbps(100));
    vec![
        flows("one-arc", 1, slow, "arc", 4),
        flows("one-aimd", 1, slow, "aimd-gap", 4),
        flows("one-window", 1, slow, "window:80", 2),
        flows("32-arc", 32, fast, "arc", 2),
        flows("32-aimd", 32, fast, "aimd-gap", 1),
        bursts("bursts", slow),
        bursts("bursts-3-mbit", Bitrate::mbps(3)),
    ]
}

/// Packets of a busy period, fewer than so many; each may be a nanosecond off where it takes no whole number of them.
const BUSY: u64 = 500;

/// Where a packet takes no whole number of nanoseconds, either simulator rounds each, and not in the same direction.
#[test]
fn the_link_does_with_each_packet_what_ns3_does() {
    let mut lines = NS3.lines().skip(1);
    let mut dropped_of_all = 0;
    for schedule in schedules() {
        let name = schedule.name;
        let tolerance = match schedule.is_exact() {
            true => 0,
            false => CHUNK as u64 * BUSY,
        };
        assert!(schedule.packets.len() > 2_000, "{name}");
        for (chunk, (dropped, transit)) in schedule.chunks().enumerate() {
            let first = chunk * CHUNK;
            let line = lines
                .next()
                .unwrap_or_else(|| panic!("{name}: ns-3 had fewer packets"));
            let fields: Vec<&str> = line.split(',').collect();
            let [of, their_first, their_dropped, their_transit] = fields[..] else {
                panic!("{line}");
            };
            assert_eq!((of, their_first.parse()), (name, Ok(first)));
            assert_eq!(
                their_dropped.parse(),
                Ok(dropped),
                "{name}: dropped from packet {first} on"
            );
            let apart = transit.abs_diff(their_transit.parse().unwrap());
            assert!(
                apart <= tolerance,
                "{name}: {apart} ns apart from packet {first} on"
            );
            dropped_of_all += dropped;
        }
    }
    assert_eq!(lines.next(), None, "ns-3 had more packets");
    assert!(dropped_of_all > 3_000, "{dropped_of_all}");
}

/// ConsumerCbr of ndnSIM 2.8, 1100 Interests a second in all for Data with 1024 octets of content, received 395 919 packets in a minute with one
/// flow over 10 Mbit/s, and 659 224 in ten seconds with 32 over 100 Mbit/s; all consumers start at zero. Either may have sent
/// one Interest more by the end, each of which is six packets.
#[test]
fn a_dumbbell_carries_as_many_packets_as_in_ndnsim() {
    for (flows, rate, interests, seconds, expected) in
        [(1, 10, 1_100, 60, 395_919), (32, 100, 11_000, 10, 659_224)]
    {
        let shape = Dumbbell {
            flows,
            bottleneck: link(Bitrate::mbps(rate), Duration::from_millis(8)),
            ..Dumbbell::default()
        };
        let topology = shape.build(&Limits::default()).unwrap();
        let mut network = Network::new(&topology, 1, |_| NodeConfig::default());
        for flow in 1..=flows {
            let node = |letter| topology.node(&format!("{letter}{flow}")).unwrap();
            let prefix: Name = format!("/p{flow}").parse().unwrap();
            let responder = Responder::new(1_024, Duration::ZERO);
            let towards = routes::towards(&topology, node('P'));
            network
                .add_producer(node('P'), &prefix, responder, &towards)
                .unwrap();
            let requester = Requester::new(RequesterConfig {
                prefix,
                interval: Duration::from_secs(flows as u64) / interests,
                spacing: Spacing::Even,
                choice: Choice::Sequence,
                lifetime: Duration::from_secs(2),
                start: Duration::ZERO,
                seed: flow as u64,
            });
            network.add_application(node('C'), requester);
        }
        network.run_until(Instant::ZERO + Duration::from_secs(seconds));
        let apart = network.hops().abs_diff(expected);
        assert!(
            apart <= 6 * flows as u64,
            "{flows}: {} packets, {apart} apart",
            network.hops()
        );
    }
}

#[test]
#[ignore = "writes the schedules for interop/ns3/run.sh into the directory NS3_SCHEDULES"]
fn write_schedules() {
    let directory = std::env::var("NS3_SCHEDULES").unwrap();
    for schedule in schedules() {
        let path = |kind: &str| Path::new(&directory).join(format!("{}.{kind}", schedule.name));
        std::fs::write(path("schedule"), schedule.written()).unwrap();
        std::fs::write(path("ours"), schedule.fates()).unwrap();
    }
}
