use core::time::Duration;

use namecast_netem::{self as netem, Loss, Queue};
use namecast_units::{Bitrate, ByteSize, Random};

use super::{read, write};
use crate::topology::{Limits, ScaleFree, Topology};

/// As in ndnSIM's own examples: tabs, comments, partitions, links without queue, with and without loss.
const FILE: &str = "\
# topo.txt

router

#node\tcity\ty\tx\tmpi-partition
leaf-1\tNA\t80\t40\t1
leaf-2  NA  0 0
rtr # the middle
root\tNA\t-2.5\t1e1

link

# from\tto
leaf-1 rtr 10Mbps 1 10ms 20
leaf-2\trtr\t61328158bps\t1743\t9049us\tns3::RedQueue,MeanPktSize=100\t
rtr leaf-1 10Mbps 1 10ms 20
rtr root 1Gbps 71 5ms
root leaf-1 100kb/s 0 0.5ms 10 ns3::RateErrorModel,ErrorUnit=ERROR_UNIT_PACKET,ErrorRate=0.9
leaf-2 root 1Mbps 2 1s ns3::DropTailQueue<Packet>,MaxSize=3000B 0.25
";

fn parse(text: &str) -> Result<Topology, String> {
    read(text, "t.txt", &Limits::default()).map_err(|error| error.to_string())
}

#[test]
fn ndnsims_files_are_read() {
    let topology = parse(FILE).unwrap();
    topology.check(&Limits::default()).unwrap();
    let nodes: Vec<_> = topology
        .nodes
        .iter()
        .map(|node| (node.name.as_str(), node.position))
        .collect();
    assert_eq!(
        nodes,
        [
            ("leaf-1", Some((40.0, 80.0))),
            ("leaf-2", None),
            ("rtr", None),
            ("root", Some((10.0, -2.5)))
        ]
    );
    let ends: Vec<_> = topology
        .links
        .iter()
        .map(|link| (link.ends, link.cost))
        .collect();
    assert_eq!(
        ends,
        [
            ((0, 2), 1),
            ((1, 2), 1743),
            ((2, 3), 71),
            ((3, 0), 0),
            ((1, 3), 2)
        ]
    );
    let config = |link: usize| {
        assert_eq!(topology.links[link].forward, topology.links[link].backward);
        topology.links[link].forward.clone()
    };
    let expected = |bps, micros, queue, loss| netem::Config {
        rate: Some(Bitrate::bps(bps).into()),
        delay: Duration::from_micros(micros),
        queue,
        loss,
        ..netem::Config::default()
    };
    let tail = |packets| Queue::DropTail { packets };
    assert_eq!(
        config(0),
        expected(10_000_000, 10_000, tail(20), Loss::None)
    );
    let red = Queue::Red {
        packets: 25,
        min: 5.0,
        max: 15.0,
        max_probability: 0.02,
        weight: 0.002,
        gentle: true,
    };
    assert_eq!(config(1), expected(61_328_158, 9_049, red, Loss::None));
    assert_eq!(
        config(2),
        expected(1_000_000_000, 5_000, tail(100), Loss::None)
    );
    let loss = Loss::Random { share: 0.9 };
    assert_eq!(config(3), expected(100_000, 500, tail(10), loss));
    let bytes = Queue::DropTailBytes {
        size: ByteSize::bytes(3_000),
    };
    let loss = Loss::Random { share: 0.25 };
    assert_eq!(config(4), expected(1_000_000, 1_000_000, bytes, loss));
}

#[test]
fn line_ends_of_windows_are_read_too() {
    assert_eq!(parse(&FILE.replace('\n', "\r\n")), parse(FILE));
}

/// Three routers and then `links`, so that the first link is line 6.
fn with_links(links: &str) -> Result<Topology, String> {
    parse(&format!("router\na\nb\nc\nlink\n{links}"))
}

#[test]
fn wrong_lines_are_refused_with_their_place() {
    for (links, message) in [
        (
            "a d 1Mbps 1",
            "t.txt:6:3: found 'd', expected the name of a router above",
        ),
        (
            "a b 1Mbps",
            "t.txt:6: found 'a b 1Mbps', expected from, to, bandwidth and metric",
        ),
        (
            "a b 1MBps 1",
            "t.txt:6:5: found '1MBps', expected a bandwidth in bits per second above zero, such as 10Mbps",
        ),
        (
            "a b 1 1",
            "t.txt:6:5: found '1', expected a bandwidth in bits per second above zero, such as 10Mbps",
        ),
        (
            "a b 0Mbps 1",
            "t.txt:6:5: found '0Mbps', expected a bandwidth in bits per second above zero, such as 10Mbps",
        ),
        (
            "a b 1Mbps -1",
            "t.txt:6:11: found '-1', expected a metric: a whole number",
        ),
        (
            "a b 1Mbps 4.5",
            "t.txt:6:11: found '4.5', expected a metric: a whole number",
        ),
        (
            "a b 1Mbps 99999999999",
            "t.txt:6:11: found '99999999999', expected a metric of at most 4294967295",
        ),
        (
            "a b 1Mbps 1 10",
            "t.txt:6:13: found '10', expected a delay such as 10ms",
        ),
        (
            "a b 1Mbps 1 -1ms",
            "t.txt:6:13: found '-1ms', expected a delay such as 10ms",
        ),
        (
            "a b 1Mbps 1 nanms",
            "t.txt:6:13: found 'nanms', expected a delay such as 10ms",
        ),
        (
            "a b 1Mbps 1 1ms 1\nb a 1Mbps 1 2ms 1",
            "t.txt:7: found a link that differs, expected what line 6 says about the same two nodes",
        ),
        (
            "a b 1Mbps 1 1ms 9 0 x",
            "t.txt:6:21: found 'x', expected at most from, to, bandwidth, metric, delay, queue and loss",
        ),
    ] {
        assert_eq!(with_links(links).unwrap_err(), message);
    }
}

#[test]
fn wrong_queues_and_losses_are_refused() {
    for column in [
        "0",
        "-1",
        "1.5",
        "100000001",
        "DropTailQueue",
        "ns3::PfifoFastQueueDisc",
        "ns3::DropTailQueue,MaxSize=5",
        "ns3::DropTailQueue,MaxPackets",
        "ns3::RedQueue,MinTh=16",
        "ns3::RedQueue,MinTh=nan",
        "ns3::RedQueue,QW=0",
        "ns3::RedQueue,Mode=QUEUE_MODE_BYTES",
        "ns3::RedQueue,Wait=false",
        "ns3::RedQueue,MinTh=15",
        "ns3::CoDelQueue,Target=5",
        "ns3::CoDelQueue,Interval=0ms",
        "1 1.5",
        "1 -0.5",
        "1 nan",
        "1 ns3::RateErrorModel,ErrorRate=0.5",
        "1 ns3::RateErrorModel,ErrorUnit=ERROR_UNIT_BYTE,ErrorRate=0.5",
        "1 ns3::RateErrorModel,ErrorUnit=ERROR_UNIT_PACKET",
        "1 ns3::BurstErrorModel,ErrorRate=0.5",
    ] {
        let error = with_links(&format!("a b 1Mbps 1 1ms {column}")).unwrap_err();
        assert!(error.starts_with("t.txt:6:"), "{column}: {error}");
    }
    let error = with_links("a b 1Mbps 1 1ms ns3::RedQueue,Wait=false").unwrap_err();
    assert!(
        error.ends_with("Mode=QUEUE_MODE_PACKETS, not Wait"),
        "{error}"
    );
}

#[test]
fn what_is_not_there_or_there_twice_is_refused() {
    for (text, message) in [
        (
            "",
            "t.txt:1: found the end of the file, expected a line 'router'",
        ),
        (
            "# x\n",
            "t.txt:1: found the end of the file, expected a line 'router'",
        ),
        (
            "a b 1Mbps 1\n",
            "t.txt:1: found 'a b 1Mbps 1', expected a line 'router'",
        ),
        (
            "router\na\n",
            "t.txt:2: found the end of the file, expected a line 'link'",
        ),
        (
            "router\na\na\n",
            "t.txt:3:1: found 'a', expected another name: it is taken by line 2",
        ),
        (
            "router\na NA 5\n",
            "t.txt:2: found 'a NA 5', expected an x after the y",
        ),
        (
            "router\na NA 5 nan\n",
            "t.txt:2:8: found 'nan', expected a finite number: the position's x",
        ),
        (
            "router\na NA 5 5 -1\n",
            "t.txt:2:10: found '-1', expected a partition: a whole number",
        ),
        (
            "router\na NA 5 5 1 1\n",
            "t.txt:2:12: found '1', expected at most name, comment, y, x and partition",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err(), message);
    }
}

#[test]
fn there_is_a_bound_on_what_is_read() {
    let limits = Limits {
        nodes: 2,
        ..Limits::default()
    };
    let error = read("router\na\nb\nc\nlink\n", "t", &limits).unwrap_err();
    assert_eq!(error.to_string(), "nodes: found 3, expected at most 2");
}

#[test]
fn what_is_written_is_read_back() {
    let topology = parse(FILE).unwrap();
    assert_eq!(parse(&write(&topology).unwrap()).unwrap(), topology);
    for seed in 0..100 {
        let topology = random(seed);
        assert_eq!(
            parse(&write(&topology).unwrap()).unwrap(),
            topology,
            "seed {seed}"
        );
    }
}

fn random(seed: u64) -> Topology {
    let shape = ScaleFree {
        nodes: 20,
        links: 30,
        seed,
        link: netem::Config::default(),
        access_hosts: None,
    };
    let mut topology = shape.build(&Limits::default()).unwrap();
    let mut random = Random::from_seed(seed);
    for node in &mut topology.nodes {
        node.position = random
            .chance(0.5)
            .then(|| (random.unit() - 0.5, random.unit()));
    }
    for link in &mut topology.links {
        let packets = 1 + usize::try_from(random.below(1_000)).unwrap();
        let queue = match random.below(4) {
            0 => Queue::DropTailBytes {
                size: ByteSize::bytes(1 + random.below(1 << 40)),
            },
            1 => Queue::Red {
                packets,
                min: random.unit(),
                max: 1.0 + random.unit(),
                max_probability: 1.0 / (1 + random.below(100)) as f64,
                weight: 0.5 + random.unit() / 2.0,
                gentle: random.chance(0.5),
            },
            2 => Queue::CoDel {
                packets,
                target: Duration::from_nanos(1 + random.below(1 << 30)),
                interval: Duration::from_micros(1 + random.below(1 << 30)),
                mark: false,
            },
            _ => Queue::DropTail { packets },
        };
        let share = random.unit();
        link.cost = random.below(1 << 32);
        link.forward = netem::Config {
            rate: Some(Bitrate::bps(1 + random.below(1 << 40)).into()),
            delay: Duration::from_nanos(random.below(1 << 40)),
            queue,
            loss: if share > 0.5 {
                Loss::Random { share }
            } else {
                Loss::None
            },
            ..netem::Config::default()
        };
        link.backward = link.forward.clone();
    }
    topology
}

#[test]
fn what_the_format_cannot_say_is_not_written() {
    let refused = |change: fn(&mut Topology)| {
        let mut topology = parse(FILE).unwrap();
        change(&mut topology);
        write(&topology).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|t| t.links[0].backward.delay = Duration::ZERO),
        "link leaf-1 – rtr: found directions that differ, expected one configuration for both"
    );
    refused(|t| t.nodes[0].position = Some((0.0, 0.0)));
    for change in [
        |config: &mut netem::Config| config.rate = None,
        |config: &mut netem::Config| config.corrupt = 0.1,
        |config: &mut netem::Config| config.jitter.spread = Duration::from_millis(1),
    ] {
        let mut topology = parse(FILE).unwrap();
        change(&mut topology.links[0].forward);
        change(&mut topology.links[0].backward);
        write(&topology).unwrap_err();
    }
}

/// Every octet of a good file, damaged in a few ways: an error or a sound topology, never a panic.
#[test]
fn damaged_files_never_panic() {
    for at in 0..FILE.len() {
        for octet in ["", "\n", "\t", "-", "é", "9"] {
            let damaged = format!("{}{octet}{}", &FILE[..at], &FILE[at + 1..]);
            if let Ok(topology) = parse(&damaged) {
                topology.check(&Limits::default()).unwrap();
            }
        }
    }
}
