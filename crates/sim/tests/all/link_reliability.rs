//! Link reliability in a network: large packets over links that lose frames.

use core::convert::Infallible;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use namecast_forward::{DropReason, ReliabilityCounters};
use namecast_netem as netem;
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, LpPacket, Name, Nonce, Packet};
use namecast_sim::topology::{LinkService, Topology, routes};
use namecast_sim::{Application, ApplicationId, Network, NodeConfig, Now, Output};
use namecast_units::{Bitrate, Instant};

/// Octets of Content: with name and signature info seven fragments at an MTU of 1400.
const CONTENT: usize = 8_300;

fn name(number: u64) -> Name {
    format!("/p/{number}").parse().unwrap()
}

/// Answers every Interest with Data of [`CONTENT`] octets.
#[derive(Default)]
struct Server {
    outputs: VecDeque<Bytes>,
    /// Interests that came, repetitions included.
    asked: u64,
}

impl Application for Server {
    type Event = Infallible;

    fn handle_frame(&mut self, _: Now, frame: Bytes) {
        let packet = LpPacket::decode(frame).unwrap().fragment.unwrap();
        let interest = Interest::decode(packet).unwrap();
        self.asked += 1;
        let data = Data::builder(interest.name().clone())
            .content(vec![7; CONTENT])
            .sign(&NullSigner);
        self.outputs.push_back(data.wire().clone());
    }

    fn handle_timeout(&mut self, _: Now) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.outputs.pop_front().map(Output::Send)
    }
}

/// Requests so many packets once, one after another, and notes which come.
struct Asker {
    packets: u64,
    interval: Duration,
    next: u64,
    outputs: VecDeque<Bytes>,
    arrived: BTreeSet<Name>,
    marked: u64,
}

impl Asker {
    fn new(packets: u64) -> Self {
        Self {
            packets,
            interval: Duration::from_millis(10),
            next: 0,
            outputs: VecDeque::new(),
            arrived: BTreeSet::new(),
            marked: 0,
        }
    }

    /// Share of the packets that arrived.
    fn share(&self) -> f64 {
        self.arrived.len() as f64 / self.packets as f64
    }
}

impl Application for Asker {
    type Event = Infallible;

    fn handle_frame(&mut self, _: Now, frame: Bytes) {
        let header = LpPacket::decode(frame).unwrap();
        self.marked += header.congestion_mark.min(1);
        if let Ok(Packet::Data(data)) = Packet::decode(header.fragment.unwrap()) {
            assert_eq!(data.content().unwrap().len(), CONTENT);
            assert!(self.arrived.insert(data.name().clone()), "twice");
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        while self.poll_timeout().is_some_and(|due| due <= now.monotonic) {
            let interest = Interest::builder(name(self.next)).build(Nonce::from(self.next as u32));
            self.outputs.push_back(interest.wire().clone());
            self.next += 1;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = u32::try_from(self.next).unwrap();
        (self.next < self.packets).then(|| Instant::ZERO + self.interval * next)
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.outputs.pop_front().map(Output::Send)
    }
}

/// P – C, with 25 ms each way and 100 Mbit/s.
struct World {
    network: Network,
    asker: ApplicationId,
    server: ApplicationId,
}

impl World {
    fn new(loss: netem::Loss, packets: u64, service: LinkService) -> Self {
        let config = netem::Config {
            rate: Some(Bitrate::mbps(100).into()),
            delay: Duration::from_millis(25),
            loss,
            ..netem::Config::default()
        };
        Self::over(&config, packets, service)
    }

    fn over(config: &netem::Config, packets: u64, service: LinkService) -> Self {
        let mut topology = Topology::default();
        let (p, c) = (topology.add_node("P"), topology.add_node("C"));
        let link = topology.connect(p, c, config);
        topology.links[link].service = service;
        let mut network = Network::new(&topology, 1, |_| NodeConfig::default());
        let towards = routes::towards(&topology, p);
        let server = Server::default();
        let prefix = "/p".parse().unwrap();
        let server = network.add_producer(p, &prefix, server, &towards).unwrap();
        let asker = network.add_application(c, Asker::new(packets));
        Self {
            network,
            asker,
            server,
        }
    }

    /// Until all is over: the last Interest, its lifetime, and the last Ack.
    fn run(&mut self) -> &Asker {
        let asker: &Asker = self.network.application(self.asker).unwrap();
        let asking = asker.interval * u32::try_from(asker.packets).unwrap();
        self.network.run_for(asking + Duration::from_secs(10));
        self.network.application(self.asker).unwrap()
    }

    /// What the link service of a node counts.
    fn counters(&self, node: usize) -> ReliabilityCounters {
        let face = self.network.face_of(node, 0).unwrap();
        let forwarder = self.network.node(node);
        forwarder.face_counters(face).unwrap().reliability
    }

    fn dropped(&self, reason: DropReason) -> u64 {
        let nodes = [0, 1].map(|node| self.network.node(node).counters().drops.get(reason));
        nodes.iter().sum()
    }
}

const RELIABLE: LinkService = LinkService {
    mtu: Some(1_400),
    reliability: true,
    node_queue: None,
};

const PLAIN: LinkService = LinkService {
    reliability: false,
    ..RELIABLE
};

/// 10 000 packets of seven fragments, of which one may miss: 99.99 %. Alone, of 1 − p to the eighth with the Interest,
/// 66 % arrive at 5 % and 43 % at 10 %.
#[test]
fn large_packets_cross_links_that_lose_frames() {
    const PACKETS: u64 = 10_000;
    for (share, alone) in [(0.05, 0.66), (0.1, 0.43)] {
        for loss in [
            netem::Loss::Random { share },
            netem::Loss::bursts(share, 5.0),
        ] {
            let mut world = World::new(loss, PACKETS, RELIABLE);
            let arrived = world.run().share();
            assert!(arrived >= 0.999_9, "{loss:?}: {arrived}");
            // A lost frame is sent again once, and one whose Ack was lost too often; with each Ack said once it is twice the
            // share and more.
            let sent = 7.0 * PACKETS as f64;
            let again = world.counters(0).retransmitted as f64 / sent;
            assert!((share..1.9 * share).contains(&again), "{loss:?}: {again}");
            let left = [0, 1].map(|node| world.network.node(node).poll_timeout());
            assert_eq!(left, [None; 2]);
        }
        let mut world = World::new(netem::Loss::Random { share }, 3_000, PLAIN);
        let arrived = world.run().share();
        assert!((arrived - alone).abs() < 0.03, "{arrived}");
    }
}

/// Nothing is sent twice. Data has room for the Interests' Acks; an Interest has, but comes later than most fragments'
/// Acks may wait, so that there is a frame of Acks for each packet of seven fragments, and no more.
#[test]
fn on_a_good_link_it_costs_acks_alone() {
    let mut world = World::new(netem::Loss::None, 1_000, RELIABLE);
    assert_eq!(world.run().arrived.len(), 1_000);
    for node in [0, 1] {
        let counters = world.counters(node);
        let fragments = [7_000, 1_000][node];
        assert_eq!(
            (counters.acknowledged, counters.retransmitted),
            (fragments, 0)
        );
        assert_eq!(counters.ack_frames, [0, 1_000][node]);
        assert_eq!(world.network.node(node).counters().drops.total(), 0);
    }
}

/// Duplicates and overtaking change nothing for those above.
#[test]
fn copies_and_overtaking_stay_on_the_link() {
    let config = netem::Config {
        rate: Some(Bitrate::mbps(100).into()),
        delay: Duration::from_millis(25),
        jitter: netem::Jitter {
            spread: Duration::from_millis(10),
            reorder: true,
            ..netem::Jitter::default()
        },
        loss: netem::Loss::Random { share: 0.05 },
        duplicate: 0.05,
        ..netem::Config::default()
    };
    let mut world = World::over(&config, 5_000, RELIABLE);
    assert_eq!(world.run().arrived.len(), 5_000);
    let server: &Server = world.network.application(world.server).unwrap();
    assert_eq!(server.asked, 5_000);
    assert!(world.dropped(DropReason::DuplicateFragment) > 1_000);
    assert_eq!(world.dropped(DropReason::Loop), 0);
}

/// Marks of a queue that builds up reach the asker, whichever fragment they were on.
#[test]
fn congestion_marks_survive_fragments_and_retransmissions() {
    let config = netem::Config {
        rate: Some(Bitrate::mbps(6).into()),
        delay: Duration::from_millis(25),
        loss: netem::Loss::Random { share: 0.02 },
        queue: netem::Queue::codel(1_000, true),
        ..netem::Config::default()
    };
    for service in [PLAIN, RELIABLE] {
        let mut world = World::over(&config, 300, service);
        let asker = world.run();
        let share = asker.marked as f64 / asker.arrived.len() as f64;
        assert!(share > 0.05, "{service:?}: {share}");
    }
}

/// A node that starts again counts its frames from other numbers, so that its neighbour takes none for a copy.
#[test]
fn a_node_that_starts_again_is_heard() {
    let mut world = World::new(netem::Loss::None, 1_000, RELIABLE);
    for (at, is_up) in [(3_000, false), (3_500, true)] {
        let at = Instant::ZERO + Duration::from_millis(at);
        let change = move |network: &mut Network| network.set_node_up(0, is_up);
        world.network.schedule(at, change);
    }
    let arrived = world.run().arrived.len();
    // What it missed was sent again until it was back.
    assert_eq!(arrived, 1_000);
}
