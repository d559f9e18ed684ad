//! Topologies as scenario files name them, from all formats, and as large as they may get.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use namecast_forward::{CongestionLaw, CongestionMarking};
use namecast_netem::{self as netem, Queue};
use namecast_sim::topology::rocketfuel::{Source, read_weights};
use namecast_sim::topology::{AccessHosts, Limits, ScaleFree, Spec, Topology, ndnsim, routes};
use namecast_units::{Bitrate, ByteSize, Random};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// A scenario file, as far as topologies are concerned.
#[derive(Debug, serde::Deserialize)]
struct Scenario {
    topology: Spec,
}

fn spec(toml: &str) -> Result<Spec, String> {
    let scenario: Scenario = toml::from_str(toml).map_err(|error| error.to_string())?;
    Ok(scenario.topology)
}

fn build(toml: &str) -> Result<Topology, String> {
    let built = spec(toml)?.build(&fixtures());
    built.map_err(|error| {
        error
            .to_string()
            .replace(&fixtures().display().to_string(), "…")
    })
}

/// Numbers of nodes and links, and whether all are connected.
fn counts(toml: &str) -> (usize, usize, bool) {
    let topology = build(toml).expect("the file is sound");
    topology
        .check(&Limits::default())
        .expect("builders keep their promise");
    (
        topology.nodes.len(),
        topology.links.len(),
        topology.is_connected(),
    )
}

#[test]
fn a_link_may_have_a_queue_in_its_nodes() {
    let link = |queue: &str| {
        let toml = format!(
            "[topology]\nkind = \"explicit\"\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
             link = [{{ ends = [\"a\", \"b\"], node-queue = {queue} }}]\n"
        );
        build(&toml).map(|topology| topology.links[0].service.node_queue.unwrap())
    };
    let plain = link(r#"{ socket-buffer = "64 KiB" }"#).unwrap();
    assert_eq!(plain.socket_buffer, ByteSize::bytes(65_536));
    assert_eq!(plain.send_queue.max_size, ByteSize::mebibytes(4));
    let nfds = CongestionMarking::default();
    assert_eq!(plain.send_queue.marking, Some(nfds));
    let other =
        r#"{ socket-buffer = "1 KiB", law = "codel", interval = "50ms", threshold = "2 KiB" }"#;
    let marking = CongestionMarking {
        law: CongestionLaw::CoDel,
        interval: Duration::from_millis(50),
        threshold: ByteSize::bytes(2_048),
    };
    assert_eq!(link(other).unwrap().send_queue.marking, Some(marking));
    let unmarked = link(r#"{ socket-buffer = "1 KiB", law = "none" }"#).unwrap();
    assert_eq!(unmarked.send_queue.marking, None);
    assert!(link(r#"{ law = "nfd" }"#).is_err());
}

#[test]
fn every_kind_is_built_from_toml() {
    let link = r#"link = { rate = "10 Mbit/s", delay = "5ms" }"#;
    for (toml, expected) in [
        (r#"topology = { kind = "dumbbell" }"#.to_owned(), (4, 3)),
        (
            r#"topology = { kind = "dumbbell", flows = 32, consumer-delay-step = "5ms" }"#.to_owned(),
            (66, 65),
        ),
        (r#"topology = { kind = "parking-lot", bottlenecks = 3, rates = ["4 Mbit/s"] }"#.to_owned(), (12, 11)),
        (format!(r#"topology = {{ kind = "line", nodes = 4, {link} }}"#), (4, 3)),
        (r#"topology = { kind = "tree", depth = 3, fanout = 2 }"#.to_owned(), (15, 14)),
        (
            format!("[topology]\nkind = \"grid\"\nwidth = 10\nheight = 10\n{link}\naccess-hosts = {{ count = 100 }}"),
            (200, 280),
        ),
        (r#"topology = { kind = "diamond", south-cost = 2 }"#.to_owned(), (4, 4)),
        (
            r#"topology = { kind = "scale-free", nodes = 79, links = 147, seed = 3 }"#.to_owned(),
            (79, 147),
        ),
        (
            "[topology]\nkind = \"explicit\"\n[[topology.node]]\nname = \"a\"\n[[topology.node]]\nname = \"b\"\n\
             position = [1, 2.5]\n[[topology.link]]\nends = [\"a\", \"b\"]\n"
                .to_owned(),
            (2, 1),
        ),
        (r#"topology = { kind = "file", path = "ring.txt", format = "ndnsim" }"#.to_owned(), (4, 4)),
        (
            r#"topology = { kind = "file", path = "ring.weights.intra", format = "rocketfuel-weights" }"#
                .to_owned(),
            (3, 3),
        ),
        (
            r#"topology = { kind = "file", path = "ring.cch", format = "rocketfuel-map" }"#.to_owned(),
            (3, 3),
        ),
        (
            r#"topology = { kind = "file", path = "ring.cch", format = "rocketfuel-map", map = { radius = 1 } }"#
                .to_owned(),
            (4, 4),
        ),
    ] {
        assert_eq!(counts(&toml), (expected.0, expected.1, true), "{toml}");
    }
}

#[test]
fn links_are_what_the_file_says() {
    let toml = r#"
        [topology]
        kind = "explicit"
        node = [{ name = "a" }, { name = "b" }, { name = "c" }]

        [[topology.link]]
        ends = ["b", "a"]
        cost = 7
        config = { rate = "10 Mbit/s", delay = "5ms", queue = { kind = "drop-tail", packets = 50 } }
        back = { rate = "1 Mbit/s" }

        [[topology.link]]
        ends = ["b", "c"]
        config = { loss = { kind = "random", share = 0.5 } }
    "#;
    let topology = build(toml).expect("the file is sound");
    let first = &topology.links[0];
    assert_eq!((first.ends, first.cost), ((1, 0), 7));
    assert_eq!(first.forward.delay, Duration::from_millis(5));
    assert_eq!(first.forward.queue, Queue::DropTail { packets: 50 });
    assert_eq!(first.backward.rate, Some(Bitrate::mbps(1).into()));
    assert_eq!(first.backward.delay, Duration::ZERO);
    let second = &topology.links[1];
    assert_eq!((second.ends, second.cost), ((1, 2), 1));
    assert_eq!(second.forward, second.backward);
    assert_eq!(second.forward.loss, netem::Loss::Random { share: 0.5 });
}

#[test]
fn weights_and_latencies_are_two_files() {
    let toml = r#"
        [topology]
        kind = "file"
        path = "ring.weights.intra"
        latencies = "ring.latencies.intra"
        format = "rocketfuel-weights"
        link = { rate = "1 Gbit/s" }
        access-hosts = { count = 3, link = { delay = "1ms" } }
    "#;
    let topology = build(toml).expect("the files are sound");
    let links: Vec<_> = topology
        .links
        .iter()
        .map(|link| {
            (
                link.cost,
                link.forward.delay.as_millis(),
                link.forward.rate.clone(),
            )
        })
        .collect();
    let core = || Some(Bitrate::mbps(1_000).into());
    assert_eq!(
        links[..3],
        [(3, 7, core()), (4, 2, core()), (8, 30, core())]
    );
    assert_eq!(links[3..], [const { (1, 1, None) }; 3]);
    assert_eq!(topology.nodes[5].name, "acc2");
}

/// Wrong files are refused with the place and what was expected there; of TOML the place is the topology's.
#[test]
fn what_is_wrong_is_said() {
    let file = |path: &str, format: &str, more: &str| {
        format!("topology = {{ kind = \"file\", path = \"{path}\", format = \"{format}\"{more} }}")
    };
    for (toml, message) in [
        (file("latin1.txt", "ndnsim", ""), "…/latin1.txt:3: found octet 0xe9, expected UTF-8 text"),
        (
            file("ring.cch", "ndnsim", ""),
            "…/ring.cch:1: found '1 @Here + bb (2) &2 -> <2> <3>  =a.examp…', expected a line 'router'",
        ),
        (
            file("ring.txt", "rocketfuel-map", ""),
            "…/ring.txt:2:1: found 'router', expected a uid: a whole number",
        ),
        (
            file("ring.txt", "rocketfuel-weights", ""),
            "…/ring.txt:2: found 'router', expected from, to and weight",
        ),
        (
            file("ring.txt", "ndnsim", ", latencies = \"x\""),
            "latencies: found a value, expected it only with format = \"rocketfuel-weights\"",
        ),
        (
            file("ring.txt", "ndnsim", ", map = {}"),
            "map: found a value, expected it only with format = \"rocketfuel-map\"",
        ),
        (
            "topology = { kind = \"dumbbell\", flows = 0 }".to_owned(),
            "flows: found 0, expected at least 1",
        ),
        (
            "topology = { kind = \"grid\", width = 1000, height = 1000 }".to_owned(),
            "nodes: found 1000000, expected at most 100000",
        ),
        (
            "topology = { kind = \"line\", nodes = 2, link = { duplicate = nan } }".to_owned(),
            "link n0 – n1: duplicate: expected a share between 0 and 1",
        ),
        (
            "topology = { kind = \"explicit\", node = [{ name = \"a\" }], link = [{ ends = [\"a\", \"b\"] }] }"
                .to_owned(),
            "ends of link 0: found b, expected the name of a node",
        ),
        (
            "topology = { kind = \"explicit\", node = [{ name = \"a\" }, { name = \"a\" }] }".to_owned(),
            "node name: found a, expected another: it is taken",
        ),
    ] {
        assert_eq!(build(&toml).expect_err(&toml), message);
    }
}

#[test]
fn files_that_are_not_there_and_wrong_toml_are_named() {
    let toml = r#"topology = { kind = "file", path = "nowhere.txt", format = "ndnsim" }"#;
    let missing = build(toml).expect_err("there is no such file");
    assert!(missing.starts_with("…/nowhere.txt: "), "{missing}");
    for (toml, part) in [
        (
            "\n\ntopology = { kind = \"dumbell\" }",
            "expected one of `dumbbell`, `parking-lot`, `line`",
        ),
        (
            "\n\ntopology = { kind = \"line\", node = 3 }",
            "unknown field `node`, expected one of `nodes`",
        ),
        (
            "\n\ntopology = { kind = \"line\", nodes = -3 }",
            "invalid value: integer `-3`",
        ),
        (
            "\n\ntopology = { kind = \"line\", nodes = 2, link = { rate = \"3 Mb\" } }",
            "'3 Mb' is not a rate",
        ),
    ] {
        let error = spec(toml).expect_err(toml);
        assert!(error.contains("line 3") && error.contains(part), "{error}");
    }
}

#[test]
fn files_may_be_too_large() {
    let spec = spec(r#"topology = { kind = "file", path = "ring.txt", format = "ndnsim" }"#);
    let limits = Limits {
        file: namecast_units::ByteSize::bytes(100),
        ..Limits::default()
    };
    let error = spec.expect("sound").build_within(&fixtures(), &limits);
    let error = error.expect_err("the file has more octets").to_string();
    assert!(error.ends_with("expected at most 100 B"), "{error}");
}

/// A map of the size of AS 3967, made up: 79 routers, 147 links, weights in halves, latencies in whole milliseconds, once for
/// each direction.
fn look_alike(seed: u64) -> (String, String) {
    let shape = ScaleFree {
        nodes: 79,
        links: 147,
        seed,
        link: netem::Config::default(),
        access_hosts: None,
    };
    let graph = shape.build(&Limits::default()).expect("the shape is sound");
    let mut random = Random::from_seed(seed);
    let (mut weights, mut latencies) = (String::new(), String::new());
    let cities = ["San+Jose,+CA", "Weehawken,+NJ", "Oak+Brook,+IL"];
    let name = |node: usize| format!("{}{node}", cities[node % cities.len()]);
    for link in &graph.links {
        let (from, to) = (name(link.ends.0), name(link.ends.1));
        let weight = (1 + random.below(45)) as f64 / 2.0;
        let latency = 1 + random.below(44);
        for (from, to) in [(&from, &to), (&to, &from)] {
            writeln!(weights, "{from} {to} {weight}").expect("memory");
            writeln!(latencies, "{from} {to} {latency}").expect("memory");
        }
    }
    (weights, latencies)
}

#[test]
fn a_map_of_real_size_survives_every_format() {
    for seed in 0..20 {
        let (weights, latencies) = look_alike(seed);
        let core = netem::Config {
            rate: Some(Bitrate::mbps(1_000).into()),
            queue: Queue::DropTail { packets: 1_000 },
            ..netem::Config::default()
        };
        let source = |text| Source { text, file: "map" };
        let limits = Limits::default();
        let routers = read_weights(source(&weights), Some(source(&latencies)), &core, &limits);
        let routers = routers.expect("the map is sound");
        assert_eq!((routers.nodes.len(), routers.links.len()), (79, 147));
        let costs = routers.links.iter().map(|link| link.cost);
        assert!(costs.clone().all(|cost| (1..=45).contains(&cost)));
        let hosts = AccessHosts {
            count: 79,
            link: core,
            seed: 1,
        };
        let whole = routers
            .with_access_hosts(&hosts, &limits)
            .expect("there is room");
        assert_eq!((whole.nodes.len(), whole.links.len()), (158, 226));
        let text = ndnsim::write(&whole).expect("it has nothing that the format lacks");
        let again = ndnsim::read(&text, "again", &limits).expect("what we write, we read");
        assert!(again == whole, "seed {seed}");
    }
}

/// Ten thousand nodes, eight producers: every node knows a way to each, and none is a loop.
#[test]
fn large_networks_get_routes() {
    let toml = "topology = { kind = \"scale-free\", nodes = 10000, links = 20000, access-hosts = { count = 108 } }";
    let topology = build(toml).expect("the shape is sound");
    let graph = routes::Graph::new(&topology);
    for producer in 10_000..10_008 {
        let distances = graph.distances(producer);
        let towards = graph.towards(producer);
        let mut farthest = 0;
        for (node, link) in towards.iter().enumerate() {
            let here = distances[node].expect("all are connected");
            farthest = farthest.max(here.hops);
            let Some(link) = *link else {
                assert_eq!(node, producer);
                continue;
            };
            let next = topology.links[link]
                .other_end(node)
                .expect("it is one of its links");
            let there = distances[next].expect("all are connected");
            assert_eq!((there.cost + 1, there.hops + 1), (here.cost, here.hops));
        }
        // Few hops to anywhere: what makes such graphs small worlds.
        assert!((6..=16).contains(&farthest), "{farthest}");
    }
}

/// Maps as they are found: what makes no sense is ignored with a remark, and an empty one is refused.
#[test]
fn imperfect_maps_are_read_and_empty_ones_refused() {
    let folder = std::env::temp_dir().join(format!("namecast-maps-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let build = |format: &str, text: &str| {
        std::fs::write(folder.join("map"), text).unwrap();
        let spec = format!("kind = \"file\"\npath = \"map\"\nformat = \"{format}\"\n");
        let spec: Spec = toml::from_str(&spec).unwrap();
        spec.build(&folder).map_err(|error| error.to_string())
    };
    let own = build("ndnsim", "router\na\nb\nlink\na b 10Mbps 1\na a 10Mbps 1\n").unwrap();
    assert_eq!((own.links.len(), own.remarks.len()), (1, 1));
    let absent = "1 @a + bb (1) -> <2> <9> =a r0\n";
    assert!(
        build("rocketfuel-map", absent)
            .unwrap_err()
            .contains("map:1:")
    );
    let absent = absent.replace("(1)", "(2)");
    assert_eq!(build("rocketfuel-map", &absent).unwrap().remarks.len(), 1);
    for (format, text) in [
        ("ndnsim", "router\nlink\n"),
        ("rocketfuel-map", ""),
        ("rocketfuel-weights", "# nothing\n"),
        ("graphml", "<graphml/>"),
        ("mini-ndn", "[nodes]\n"),
    ] {
        let error = build(format, text).unwrap_err();
        assert!(
            error.contains("map:") && error.contains("expected a "),
            "{error}"
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
