use namecast_forward::{InterestRate, UnsolicitedData};
use namecast_net::{CongestionLaw, CongestionMarking, ReadvertiseConfig, UnixAccess};
use namecast_units::Duration;

use super::*;

fn parse(text: &str) -> Result<Settings, Problems> {
    Settings::parse(Path::new("f.toml"), text)
}

/// An empty file, the documented one and the program agree.
#[test]
fn the_documented_defaults_are_the_programs() {
    let empty = format!("{:?}", parse("").unwrap());
    assert_eq!(format!("{:?}", Settings::default()), empty);
    let node = format!("{:?}", NodeConfig::default());
    assert_eq!(format!("{:?}", Settings::default().node), node);
}

/// Without the number signs, the examples at the end of the documented file are right too.
#[test]
fn the_documented_examples_are_right() {
    let (settings, examples) = DEFAULT.split_once("# [[multicast]]").unwrap();
    let lines = examples.lines().map(|line| line.trim_start_matches("# "));
    let examples: Vec<_> = lines.collect();
    let text = format!("{settings}[[multicast]]{}", examples.join("\n"));
    let settings = parse(&text).unwrap();
    let uri: FaceUri = "udp4://192.0.2.1:6363".parse().unwrap();
    assert_eq!(settings.faces[0].uri, uri);
    assert_eq!(settings.faces[0].options.mtu, Some(1_200));
    let keep_alive = Some(Duration::from_secs(10));
    assert_eq!(settings.faces[0].options.keep_alive, keep_alive);
    assert_eq!(settings.faces[1].options.keep_alive, None);
    let route = StaticRoute {
        prefix: Name::root(),
        face: uri,
        interface: None,
        cost: 100,
        flags: 1,
    };
    let multicast = StaticRoute {
        prefix: "/here".parse().unwrap(),
        face: FaceUri::Udp(UdpMulticast::GROUP_V4),
        interface: Some("eth0".to_owned()),
        cost: 0,
        flags: 1,
    };
    assert_eq!(settings.routes, [route, multicast]);
    assert_eq!(settings.multicast, [UdpMulticast::on("eth0")]);
    let ethernet = EthernetConfig {
        mtu: Some(1_500),
        ..EthernetConfig::on("eth0")
    };
    assert_eq!(settings.ethernet, [ethernet]);
    let peer = FaceUri::Ethernet("02:00:00:00:00:01".parse().unwrap());
    assert_eq!(settings.faces[1].uri, peer);
    assert_eq!(settings.faces[1].interface.as_deref(), Some("eth0"));
    let rights = format!("{:?}", settings.node.management.rights);
    assert!(rights.contains(r#"/calls/fox"#), "{rights}");
    let conference = "/conference".parse().unwrap();
    let strategies = [(conference, StrategyKind::Multicast)];
    assert_eq!(settings.strategies, strategies);
}

#[test]
fn what_is_written_takes_effect() {
    let text = r#"
        threads = 3
        listen = { udp = [], tcp = ["[::1]:7000"], unix = ["/tmp/n"], unix-mode = "0660", unix-group = "ndn" }
        udp = { reliability = true, mtu = 1200, loopback-mtu = 2000, idle-timeout = "1m", keep-alive = "25s", max-faces = 9, own-sockets = 8, loopback-is-local = false }
        faces = { congestion = "codel", extension-fields = "off" }
        content-store = { capacity = "1 MiB", policy = "s3-fifo", admit = false, unsolicited = "admit-local", versions = 2 }
        tables = { faces = 7, routes = 6, pending-interests = 5, face-pending-interests = 4, face-interest-rate = { per-second = 3, burst = 2 }, dead-nonce-lifetime = "3s", max-lifetime = "1h", max-nonlocal-lifetime = "5s", queue-memory = "1 kB" }
        learning = { routes = 8, route-lifetime = "2m", max-timeouts = 1 }
        management = { localhop = true, open = ["cs"], time-grace = "1s", nonces = 3 }
        rib = { readvertise-nlsr = true }
    "#;
    let settings = parse(text).unwrap();
    assert_eq!((settings.udp.len(), settings.tcp.len()), (0, 1));
    assert_eq!(settings.tcp[0].to_string(), "[::1]:7000");
    assert_eq!(settings.unix, Some(vec![PathBuf::from("/tmp/n")]));
    let access = UnixAccess {
        mode: Some(0o660),
        group: Some("ndn".to_owned()),
    };
    assert_eq!(settings.unix_access, access);
    let cache = Cache {
        admits: false,
        serves: true,
    };
    assert_eq!(settings.cache, cache);
    let node = settings.node;
    assert!(node.udp.reliability && !node.udp.loopback_is_local);
    assert_eq!((node.udp.mtu, node.udp.max_faces), (1_200, 9));
    assert_eq!(node.udp.loopback_mtu, 2_000);
    assert_eq!((node.forwarders, node.udp.peer_sockets), (3, 8));
    assert_eq!(node.udp.idle_timeout.as_secs(), 60);
    assert_eq!(node.udp.keep_alive, Some(Duration::from_secs(25)));
    let marking = CongestionMarking {
        law: CongestionLaw::CoDel,
        ..CongestionMarking::default()
    };
    assert_eq!(node.congestion_marking, Some(marking));
    assert_eq!(node.extension_fields, namecast_net::ExtensionFields::Off);
    let off = parse("[faces]\ncongestion = \"off\"").unwrap().node;
    assert_eq!(off.congestion_marking, None);
    let older = parse("[faces]\ncongestion = \"ndnsim\"").unwrap().node;
    assert_eq!(older.congestion_marking.unwrap().law, CongestionLaw::NdnSim);
    assert_eq!(node.link_queue_size.as_bytes(), 1_000);
    let plane = node.forwarder;
    assert_eq!(plane.content_store.capacity.as_bytes(), 1 << 20);
    assert_eq!((plane.content_store.max_versions, plane.max_faces), (2, 7));
    assert_eq!(
        (plane.pit.capacity, plane.dead_nonces.lifetime.as_secs()),
        (5, 3)
    );
    assert_eq!(plane.pit.face_capacity, 4);
    let lifetimes = [plane.pit.max_lifetime, plane.pit.max_nonlocal_lifetime];
    assert_eq!(lifetimes.map(|lifetime| lifetime.as_secs()), [3_600, 5]);
    let rate = InterestRate {
        per_second: 3,
        burst: 2,
    };
    assert_eq!(plane.pit.face_interest_rate, Some(rate));
    assert_eq!(plane.content_store.unsolicited, UnsolicitedData::AdmitLocal);
    let learning = plane.learning;
    assert_eq!((learning.max_routes, learning.max_timeouts), (8, 1));
    assert_eq!(learning.route_lifetime.as_secs(), 120);
    let management = node.management;
    assert!(management.allow_localhop);
    assert_eq!((management.max_routes, management.max_nonces), (6, 3));
    assert_eq!(management.open_modules, ["cs"]);
    assert_eq!(management.time_grace.as_secs(), 1);
    assert_eq!(management.readvertise, Some(ReadvertiseConfig::default()));
}

/// PCON's link, as its authors' successors had it in ndnSIM: 20 packets of 1024 octets.
#[test]
fn hops_and_the_threshold_of_marks_are_read() {
    let text = "hops = [\"rate-feedback/window~24\", \"path-labels\"]\n\
                [faces]\ncongestion-threshold = \"20480 B\"\ncongestion = \"pcon\"";
    let marking = parse(text).unwrap().node.congestion_marking.unwrap();
    assert_eq!(marking.law, CongestionLaw::Pcon);
    assert_eq!(marking.threshold.as_bytes(), 20_480);
    assert_refused("hops = [\"mine\"]", "1:9", "write hop-count, rate-feedback");
    let zero = "hops = [\"rate-feedback/window~0\"]";
    assert_refused(zero, "1:9", "window: write 3 to 1024");
}

#[track_caller]
fn assert_refused(text: &str, place: &str, words: &str) {
    let problems = parse(text).unwrap_err().to_string();
    let place = format!("f.toml:{place}: ");
    assert!(problems.starts_with(&place), "{text}\n{problems}");
    assert!(problems.contains(words), "{text}\n{problems}");
}

/// Each mistake with the place that it is found at, and words that say what was expected.
#[test]
fn a_wrong_value_is_told_with_its_place_and_what_was_expected() {
    for (section, line, column, words) in [
        ("listen", "udp = 5", 7, "sequence"),
        ("listen", "tcp = [\"here\"]", 8, "ADDRESS:PORT"),
        ("tables", "face = 3", 1, "expected one of `faces`"),
        ("tables", "faces = 0", 9, "expected 1 to"),
        ("tables", "faces = -1", 9, "integer"),
        (
            "tables",
            "face-interest-rate = { per-second = 0, burst = 1 }",
            37,
            "nonzero",
        ),
        ("tables", "max-lifetime = \"0s\"", 16, "more than 0"),
        (
            "tables",
            "max-nonlocal-lifetime = \"0s\"",
            25,
            "more than 0",
        ),
        ("udp", "mtu = 63", 7, "expected 64 to 8800"),
        ("udp", "idle-timeout = 5", 16, "string"),
        ("udp", "idle-timeout = \"5\"", 16, "write 100ms"),
        ("faces", "congestion = \"red\"", 14, "`codel`"),
        ("faces", "extension-fields = true", 20, "string"),
        ("udp", "keep-alive = 25", 14, "string"),
        ("content-store", "policy = \"fifo\"", 10, "`lru`"),
        ("content-store", "capacity = \"much\"", 12, "write 20480"),
        ("management", "open = [\"rip\"]", 9, "'rib'"),
        ("learning", "max-timeouts = 0", 16, "nonzero"),
        ("learning", "keys = [\"no.cert\"]", 9, "no.cert"),
        ("management", "keys = [\"no.cert\"]", 9, "no.cert"),
    ] {
        let text = format!("[{section}]\n\n{line}\n");
        assert_refused(&text, &format!("3:{column}"), words);
    }
    assert_refused("listen = [", "1:11", "array");
}

#[test]
fn faces_and_what_leads_to_them_have_to_fit() {
    let tcp = "uri = \"tcp4://192.0.2.1:1\"";
    for (text, line, column, words) in [
        ("mtu = 1200", 1, 1, "missing field `uri`"),
        ("uri = \"here\"", 2, 7, "write udp://"),
        ("uri = \"fd://3\"", 2, 7, "udp://"),
        ("uri = \"udp4://224.0.23.170:56363\"", 2, 7, "[[multicast]]"),
        (&format!("{tcp}\nmtu = 1200"), 3, 7, "only UDP and Ethernet"),
        (
            &format!("{tcp}\nkeep-alive = \"10s\""),
            2,
            7,
            "only UDP faces",
        ),
        (
            "uri = \"udp4://192.0.2.1:1\"\nkeep-alive = 10",
            3,
            14,
            "string",
        ),
        (
            &format!("{tcp}\nlocal-fields = true"),
            3,
            16,
            "this machine",
        ),
        (
            &format!("{tcp}\npersistency = \"on-demand\""),
            3,
            15,
            "`persistent`",
        ),
    ] {
        let text = format!("[[face]]\n{text}");
        assert_refused(&text, &format!("{line}:{column}"), words);
    }
    let unknown = "[[route]]\nprefix = \"/\"\nface = \"udp4://192.0.2.1:1\"";
    assert_refused(unknown, "3:8", "a face of this file");
    assert_refused("[[route]]\nprefix = 5", "2:10", "string");
    let trust =
        |root: &str, anchor: &str| format!("[[trust]]\nroot = \"{root}\"\nanchor = \"{anchor}\"\n");
    let digest = "0a".repeat(32);
    assert_refused(&trust("/a=%", &digest), "2:8", "expected a name");
    assert_refused(&trust("/calls/fox", "0a0a"), "3:10", "the 64 digits");
    let twice = trust("/calls/fox", &digest).repeat(2);
    assert_refused(&twice, "5:8", "/calls/fox has an anchor already");
    assert_refused("[[trust]]\nroot = \"/a\"", "1:1", "missing field `anchor`");
    let strategy = |prefix: &str, name: &str| {
        format!("[[strategy]]\nprefix = \"{prefix}\"\nname = \"{name}\"")
    };
    assert_refused(&strategy("/", "fast"), "3:8", "best-route");
    let long = strategy(&"/x".repeat(33), "random");
    assert_refused(&long, "2:10", "expected at most 32");
}

/// Each mistake about an interface with its place.
#[test]
fn faces_on_interfaces_have_to_fit() {
    const MULTICAST: &str = "[[multicast]]\ninterface = \"eth0\"\n";
    const ETHERNET: &str = "[[ethernet]]\ninterface = \"eth0\"\n";
    let face = |uri: &str| format!("{ETHERNET}[[face]]\nuri = \"{uri}\"\n");
    let peer = "ether://[02:00:00:00:00:01]";
    for (text, place, words) in [
        ("[[multicast]]\n", "1:1", "missing field `interface`"),
        ("[[multicast]]\ninterface = \"\"", "2:13", "as in eth0"),
        (
            &format!("{MULTICAST}group = \"192.0.2.1:56363\""),
            "3:9",
            "GROUP:PORT",
        ),
        (
            &format!("{MULTICAST}group = \"224.0.23.170:0\""),
            "3:9",
            "GROUP:PORT",
        ),
        (
            &format!("{MULTICAST}group = \"224.0.23.170\""),
            "3:9",
            "GROUP:PORT",
        ),
        (
            &format!("{MULTICAST}mtu = 63"),
            "3:7",
            "expected 64 to 8800",
        ),
        (
            &format!("{MULTICAST}{MULTICAST}"),
            "4:13",
            "expected one such face",
        ),
        (
            &format!("{ETHERNET}{ETHERNET}"),
            "4:13",
            "expected one such face",
        ),
        (&format!("{ETHERNET}max-faces = -1"), "3:13", "integer"),
        (&face("ether://[01:00:5e:00:17:aa]"), "4:7", "[[ethernet]]"),
        (&face(peer), "4:7", "an interface as well"),
        (
            &format!("{}interface = \"eth1\"", face(peer)),
            "5:13",
            "[[ethernet]]",
        ),
        (
            &format!("{}interface = \"eth0\"", face("tcp4://192.0.2.1:1")),
            "5:13",
            "only Ethernet",
        ),
    ] {
        assert_refused(text, place, words);
    }
    let other = MULTICAST.replace("eth0", "eth1");
    let route = "[[route]]\nprefix = \"/\"\nface = \"udp4://224.0.23.170:56363\"\n";
    assert_refused(
        &format!("{MULTICAST}{other}{route}"),
        "7:8",
        "several such faces",
    );
    let whole = format!("{MULTICAST}{other}{route}interface = \"eth1\"");
    let routes = parse(&whole).unwrap().routes;
    assert_eq!(routes[0].interface.as_deref(), Some("eth1"));
    let routes = parse(&format!("{MULTICAST}{route}")).unwrap().routes;
    assert_eq!(routes[0].interface.as_deref(), Some("eth0"));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text =
        "[tables]\nfaces = 0\nroutes = 999999999999\n[[face]]\nuri = \"quic://192.0.2.1:1\"\n";
    let Problems(problems) = parse(text).unwrap_err();
    let lines: Vec<_> = problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [2, 3, 5]);
    let text = "[[face]]\nuri = \"udp4://192.0.2.1:1\"\n[[face]]\nuri = \"udp4://192.0.2.1:1\"\n";
    let problems = parse(text).unwrap_err().to_string();
    assert!(
        problems.starts_with("f.toml:4:7: udp4://192.0.2.1:1: expected one face"),
        "{problems}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let problems = Settings::read(Path::new("/no/such.toml")).unwrap_err();
    assert!(problems.to_string().starts_with("/no/such.toml: "));
}

/// The second of two would win, and the first be there for nothing.
#[test]
fn a_second_strategy_of_a_prefix_is_refused_with_its_line() {
    let one = "[[strategy]]\nprefix = \"/a\"\nname = \"multicast\"\n";
    let other = one.replace("/a", "/b").replace("multicast", "asf");
    assert_eq!(parse(&format!("{one}{other}")).unwrap().strategies.len(), 2);
    let twice = parse(&format!("{one}{other}{}", one.replace("multicast", "asf"))).unwrap_err();
    let twice = twice.to_string();
    assert!(twice.starts_with("f.toml:7:"), "{twice}");
    assert!(twice.contains("/a has a strategy already"), "{twice}");
}

#[test]
fn permissions_of_the_socket_are_octal() {
    for wrong in ["666x", "0888", "7777", ""] {
        let error = parse(&format!("[listen]\nunix-mode = \"{wrong}\"")).unwrap_err();
        assert!(error.to_string().contains("f.toml:2:13"), "{error}");
    }
}
