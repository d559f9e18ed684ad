//! A forwarder as an operator has it: configured by a file, asked by commands, killed and started again.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::program::{Program, command, until};
use namecast_net::{FaceUri, Node, NodeConfig};
use serde_json::Value;

/// Where the commands look first.
const SOCKET: &str = "namecast/forwarder.sock";

fn namecast(home: &Path, arguments: &str) -> Output {
    command(home, arguments).output().unwrap()
}

/// What a command prints.
#[track_caller]
fn told(home: &Path, arguments: &str) -> String {
    let output = namecast(home, arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json(home: &Path, arguments: &str) -> Value {
    serde_json::from_str(&told(home, &format!("{arguments} --json"))).unwrap()
}

/// Why a command fails.
#[track_caller]
fn refused(home: &Path, arguments: &str) -> String {
    let output = namecast(home, arguments);
    assert!(!output.status.success(), "{arguments}");
    assert_eq!(output.stdout, b"", "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

/// A forwarder, once it listens.
fn forwarder(home: &Path, arguments: &str) -> Program {
    let mut forwarder = Program::start(home, &format!("forwarder --json --port 0 {arguments}"));
    forwarder.lines().next().unwrap();
    forwarder
}

fn uris(faces: &Value) -> Vec<&str> {
    let faces = faces.as_array().unwrap().iter();
    faces.map(|face| face["uri"].as_str().unwrap()).collect()
}

/// Prefix, origin, cost and flags of all routes.
fn routes(rib: &Value) -> Vec<(&str, u64, u64, u64)> {
    let entries = rib.as_array().unwrap().iter();
    let routes = entries.flat_map(|entry| {
        let prefix = entry["prefix"].as_str().unwrap();
        let number = |route: &Value, field: &str| route[field].as_u64().unwrap();
        entry["routes"]
            .as_array()
            .unwrap()
            .iter()
            .map(move |route| {
                let [origin, cost, flags] =
                    ["origin", "cost", "flags"].map(|field| number(route, field));
                (prefix, origin, cost, flags)
            })
    });
    routes.collect()
}

#[test]
fn faces_are_managed_by_commands() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let _forwarder = forwarder(home, "--udp off --tcp off");
    let uri = "udp4://127.0.0.1:9";
    let made = json(home, &format!("face create {uri} --reliability --mtu 1000"));
    let number = made["face"].as_u64().unwrap();
    assert_eq!(
        (&made["uri"], &made["flags"], &made["mtu"]),
        (&uri.into(), &6.into(), &1_000.into())
    );
    let by_name = json(home, "face show udp://localhost:9");
    assert_eq!(by_name["face"], number);
    let again = refused(home, "face create udp4://localhost:9");
    assert!(
        again.contains(&format!("face {number} leads to {uri} already")),
        "{again}"
    );
    let changed = json(
        home,
        &format!("face update {uri} --reliability off --persistency permanent"),
    );
    assert_eq!(
        (&changed["flags"], &changed["persistency"]),
        (&4.into(), &2.into())
    );
    let marks = "--congestion-marking off --congestion-threshold 30000 --congestion-interval 20ms";
    let changed = json(home, &format!("face update {number} {marks}"));
    assert_eq!(
        [
            &changed["flags"],
            &changed["default_congestion_threshold"],
            &changed["base_congestion_marking_interval"]
        ],
        [0, 30_000, 20_000_000]
    );
    let wrong = refused(
        home,
        &format!("face update {number} --persistency on-demand"),
    );
    assert!(
        wrong.contains("Invalid properties specified (409)"),
        "{wrong}"
    );
    let list = told(home, "face list");
    let line = list.lines().find(|line| line.contains(uri)).unwrap();
    assert!(
        line.starts_with(&format!("{number} ")) && line.contains("permanent"),
        "{list}"
    );
    let shown = told(home, &format!("face show {number}"));
    assert!(
        shown.contains(uri) && shown.contains("1000 octets"),
        "{shown}"
    );
    let gone = told(home, &format!("face destroy {uri}"));
    assert_eq!(gone, format!("face {number} to {uri} is gone\n"));
    assert!(!uris(&json(home, "face list")).contains(&uri));
    let nothing = refused(home, &format!("face destroy {uri}"));
    assert!(nothing.contains("namecast face list"), "{nothing}");
}

/// Between the two looks at the node's counters, only the looks themselves ask: for status/general, cs/info,
/// faces/list and strategy-choice/list. All are for /, whose strategy they pass.
#[test]
fn what_happens_in_a_second_is_shown_once() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let _forwarder = forwarder(home, "--udp off --tcp off");
    let view = json(home, "top --once");
    let seconds = view["seconds"].as_f64().unwrap();
    assert!(seconds >= 1.0, "{view}");
    let counted = |rates: &Value| {
        let in_all = |what| format!("{:.0}", rates[what].as_f64().unwrap() * seconds);
        ["in_interests", "out_data"].map(in_all)
    };
    assert_eq!(counted(&view["per_second"]), ["4", "4"], "{view}");
    let mut faces = view["faces"].as_array().unwrap().iter();
    let is_asking = |face: &Value| counted(&face["per_second"]) == ["4", "4"];
    assert!(faces.any(is_asking), "{view}");
    let strategy = &view["strategies"][0];
    assert_eq!(strategy["prefix"], "/");
    let satisfied = strategy["per_second"]["satisfied"].as_f64().unwrap();
    assert_eq!(format!("{:.0}", satisfied * seconds), "4", "{view}");
    let text = told(home, "top --once --faces 1");
    assert!(
        text.starts_with("namecast-") && text.contains("\nFACE  INTERESTS IN"),
        "{text}"
    );
    // Two of the node, an empty one, three of faces, one of those left out; an empty one, and two of the one strategy.
    assert_eq!(text.lines().count(), 10, "{text}");
}

/// What a forwarder says with -v, line by line.
#[test]
fn logs_are_json_if_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let output = namecast(
        home,
        "forwarder -vv --log-format json --udp off --tcp off --port 0 --duration 1s",
    );
    let logs = String::from_utf8(output.stderr).unwrap();
    let events: Vec<Value> = logs
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_face = |event: &&Value| event["fields"]["message"] == "face up";
    let event = events.iter().find(of_face).unwrap();
    assert_eq!(event["level"], "DEBUG");
    assert!(event["timestamp"].is_string() && event["fields"]["face"].is_string());
}

#[test]
fn routes_strategies_and_the_content_store_are_managed_by_commands() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let _forwarder = forwarder(home, "--udp off --tcp off");
    let added = json(
        home,
        "route add /a udp4://127.0.0.1:9 --cost 7 --capture --expires 1h",
    );
    // Without a key, nothing captures: the route only precedes those of shorter names (flag 4).
    assert_eq!(routes(&Value::Array(vec![added])), [("/a", 255, 7, 5)]);
    json(
        home,
        "route add /a udp4://127.0.0.1:9 --origin client --no-inherit",
    );
    let listed = json(home, "route list");
    assert_eq!(routes(&listed), [("/a", 65, 0, 0), ("/a", 255, 7, 5)]);
    let table = told(home, "route list");
    assert!(
        table.contains("udp4://127.0.0.1:9") && table.contains("static"),
        "{table}"
    );
    told(home, "route remove /a udp4://127.0.0.1:9");
    assert_eq!(routes(&json(home, "route list")), [("/a", 65, 0, 0)]);
    let nowhere = refused(home, "route add /a 9999");
    assert!(nowhere.contains("no face 9999"), "{nowhere}");

    let set = told(home, "strategy set /a multicast");
    assert_eq!(set, "/a has /localhost/nfd/strategy/multicast/v=5\n");
    assert_eq!(json(home, "strategy list")[1]["prefix"], "/a");
    let unknown = refused(home, "strategy set /a fastest");
    assert!(
        unknown.contains("best-route") && unknown.contains("404"),
        "{unknown}"
    );
    told(home, "strategy unset /a");
    assert_eq!(json(home, "strategy list").as_array().unwrap().len(), 1);

    let store = json(home, "cs config --capacity 10 --serve off");
    assert_eq!(
        (&store["capacity"], &store["flags"]),
        (&10.into(), &1.into())
    );
    assert!(told(home, "cs info").contains("of at most 80.0 KiB\n"));
    assert_eq!(json(home, "cs erase /")["erased"], 0);

    let status = json(home, "status");
    assert!(
        status["general"]["version"]
            .as_str()
            .unwrap()
            .starts_with("namecast-")
    );
    assert_eq!(status["cs"]["capacity"], 10);
    assert!(uris(&status["faces"]).contains(&"internal://management"));
    assert_eq!(routes(&status["rib"]), [("/a", 65, 0, 0)]);
    let channels = status["channels"].as_array().unwrap();
    assert!(
        channels
            .iter()
            .any(|channel| channel["local_uri"].as_str().unwrap().ends_with(SOCKET))
    );
    let text = told(home, "status");
    assert!(text.contains("\nRoutes\nPREFIX"), "{text}");
}

#[test]
fn who_finds_no_forwarder_is_told_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let absent = refused(home, "face list --connect unix:///no/such.sock");
    assert!(
        absent.contains("no forwarder at unix:///no/such.sock"),
        "{absent}"
    );
    let wrong = refused(home, "face list --connect 127.0.0.1");
    assert!(wrong.contains("write udp://"), "{wrong}");
}

const CONFIG: &str = r#"
listen = { udp = [], tcp = [] }
content-store = { capacity = "1 MiB", serve = false }

[[face]]
uri = "udp4://127.0.0.1:9"
persistency = "permanent"
mtu = 1200
[[face]]
uri = "unix:///no/such.sock"

[[route]]
prefix = "/far"
face = "udp4://127.0.0.1:9"
cost = 100
[[route]]
prefix = "/"
face = "unix:///no/such.sock"
inherit = false

[[strategy]]
prefix = "/far"
name = "asf"
"#;

fn assert_as_configured(home: &Path) {
    let status = json(home, "status");
    let faces = uris(&status["faces"]);
    assert!(
        faces.contains(&"udp4://127.0.0.1:9") && faces.contains(&"unix:///no/such.sock"),
        "{faces:?}"
    );
    let by_number: Vec<_> = status["faces"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|face| face["uri"] == "udp4://127.0.0.1:9")
        .collect();
    assert_eq!(
        (&by_number[0]["persistency"], &by_number[0]["mtu"]),
        (&2.into(), &1_200.into())
    );
    let configured: Vec<_> = routes(&status["rib"])
        .into_iter()
        .filter(|route| route.1 == 255)
        .collect();
    assert_eq!(configured, [("/", 255, 0, 0), ("/far", 255, 100, 1)]);
    assert_eq!(status["strategies"][1]["prefix"], "/far");
    // A packet is reckoned as 8 KiB; of the flags, 1 is to admit.
    assert_eq!(
        (&status["cs"]["capacity"], &status["cs"]["flags"]),
        (&128.into(), &1.into())
    );
}

/// Killed without a word, the forwarder comes back with what its file says, and its applications come back by themselves.
/// How long that may take is fixed by the defaults of `NodeConfig`, whose test adds up the pauses.
#[test]
fn a_killed_forwarder_comes_back_as_configured_and_with_its_applications() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::write(home.join("forwarder.toml"), CONFIG).unwrap();
    let mut first = forwarder(home, "--config forwarder.toml");
    assert_as_configured(home);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let application = runtime.block_on(async {
        let node = Node::start(NodeConfig::default());
        let face = node
            .connect(FaceUri::Unix(home.join(SOCKET)))
            .await
            .unwrap();
        let registration = node.register_prefix(face, "/application".parse().unwrap(), 3);
        assert!(registration.registered().await);
        node
    });
    let registered = || {
        let listed = json(home, "route list");
        let is_there = routes(&listed).contains(&("/application", 65, 3, 1));
        is_there.then_some(())
    };
    until("registration", registered);
    told(home, "route add /forgotten udp4://127.0.0.1:9");
    first.kill();
    let _second = forwarder(home, "--config forwarder.toml");
    assert_as_configured(home);
    until("registration again", registered);
    runtime.block_on(application.shutdown());
}

#[test]
fn a_wrong_file_is_refused_whole_with_the_place() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let wrong = CONFIG.replace("cost = 100", "cost = \"low\"");
    fs::write(home.join("forwarder.toml"), wrong).unwrap();
    let refused = refused(home, "forwarder --config forwarder.toml --port 0");
    // The line is that of the cost, which begins in column 8.
    assert!(
        refused.starts_with("namecast: forwarder.toml:15:8: "),
        "{refused}"
    );
    assert!(refused.contains("expected u64"), "{refused}");
    assert!(!home.join(SOCKET).exists());
    let printed = told(home, "forwarder --print-config");
    fs::write(home.join("forwarder.toml"), printed.replace(":6363", ":0")).unwrap();
    let _forwarder = forwarder(home, "--config forwarder.toml");
    assert_eq!(json(home, "cs info")["capacity"], 8_192);
}

#[test]
fn where_keys_are_configured_others_may_register_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    fs::write(home.join("operator.cert"), told(home, "key /operator")).unwrap();
    let config = "listen = { udp = [], tcp = [] }\nmanagement.keys = [\"operator.cert\"]\n\
                  [[face]]\nuri = \"udp4://127.0.0.1:9\"\n[[route]]\nprefix = \"/far\"\nface = \"udp4://127.0.0.1:9\"\n";
    fs::write(home.join("forwarder.toml"), config).unwrap();
    let _forwarder = forwarder(home, "--config forwarder.toml");
    // What the file says needs no key.
    assert_eq!(routes(&json(home, "route list")), [("/far", 255, 0, 1)]);
    for (command, advice) in [
        ("cs erase /", "--sign-as NAME"),
        ("cs erase / --sign-as /somebody", "'namecast key /somebody'"),
    ] {
        let refused = refused(home, command);
        assert!(
            refused.contains("403") && refused.contains(advice),
            "{refused}"
        );
    }
    assert_eq!(
        told(home, "cs erase / --sign-as /operator"),
        "0 packets below / are gone\n"
    );
    told(home, "route add /a udp4://127.0.0.1:9");
}
