//! Interfaces that come after the forwarder, and go and come back, in a network namespace of the test's own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use namecast_cli::forwarder_config::Settings;
use namecast_net::{Node, NodeStatus};
use namecast_packet::{Interest, Nonce};

/// Longer than anything takes on a machine that works at all.
const TIMEOUT: Duration = Duration::from_secs(60);

fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
}

/// True inside a namespace without interfaces. Outside, runs `test` there, or says why not.
fn is_inside(test: &str) -> bool {
    crate::namespace::is_inside(test, "true")
}

fn settings(text: &str) -> Settings {
    let quiet = "listen = { udp = [], tcp = [], unix = [] }\n";
    Settings::parse(Path::new("f.toml"), &format!("{quiet}{text}")).unwrap()
}

async fn status_with(node: &Node, what: &str, wanted: impl Fn(&NodeStatus) -> bool) -> NodeStatus {
    let asking = async {
        loop {
            let status = node.status().await.unwrap();
            if wanted(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(TIMEOUT, asking).await;
    found.unwrap_or_else(|_| panic!("never happened: {what}"))
}

/// Remote and local addresses of the faces on interfaces, with the prefixes that lead there.
fn faces(status: &NodeStatus) -> Vec<(String, String, Vec<String>)> {
    let on_interface = status.faces.iter().filter_map(|face| {
        let local = face.local.clone()?;
        let routes = status.routes.iter().filter(|route| route.face == face.id);
        let prefixes = routes.map(|route| route.prefix.clone()).collect();
        Some((face.remote.clone(), local, prefixes))
    });
    let mut all: Vec<_> = on_interface.collect();
    all.sort();
    all
}

/// Asks at one node, and waits until the other hears it over Ethernet, where it had heard nothing before.
async fn ask(node: &Node, name: &str, far: &Node) {
    let consumer = node.application_face().await.unwrap();
    let interest = Interest::builder(name.parse().unwrap()).build(Nonce([1, 2, 3, 4]));
    consumer.send(interest.wire().clone()).await.unwrap();
    status_with(far, "the Interest", |status| {
        let mut faces = status.faces.iter();
        faces.any(|face| face.remote.starts_with("ether://") && face.incoming.interests == 1)
    })
    .await;
}

const BOTH: &str = r#"
[[multicast]]
interface = "late0"
[[ethernet]]
interface = "late0"
[[face]]
uri = "ether://[02:00:00:00:00:01]"
interface = "late0"
[[route]]
prefix = "/all"
face = "ether://[01:00:5e:00:17:aa]"
interface = "late0"
[[route]]
prefix = "/one"
face = "ether://[02:00:00:00:00:01]"
interface = "late0"
[[route]]
prefix = "/group"
face = "udp4://224.0.23.170:56363"
"#;

/// The interface comes, then an address of it, and only then is it up. Each brings what it makes possible.
#[tokio::test]
async fn faces_are_made_once_their_interface_is_there() {
    if !is_inside("faces_are_made_once_their_interface_is_there") {
        return;
    }
    let at_once = "faces = { interface-timeout = \"0s\" }\n";
    let refused = settings(&format!("{at_once}{BOTH}")).start().await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("no such interface, only lo"), "{refused}");

    let (node, listeners) = settings(BOTH).start().await.unwrap();
    assert_eq!(listeners.remarks.len(), 2, "{:?}", listeners.remarks);
    assert_eq!(faces(&node.status().await.unwrap()), []);
    ip("link add late0 type veth peer name far0");
    let on_late = |remote: &str, prefix: &str| {
        let prefixes = vec![prefix.to_owned()];
        (remote.to_owned(), "dev://late0".to_owned(), prefixes)
    };
    let ethernet = [
        on_late("ether://[01:00:5e:00:17:aa]", "/all"),
        on_late("ether://[02:00:00:00:00:01]", "/one"),
    ];
    status_with(&node, "Ethernet faces", |status| faces(status) == ethernet).await;
    ip("address add 192.0.2.1/24 dev late0");
    let group = on_late("udp4://224.0.23.170:56363", "/group");
    let all = [&ethernet[..], &[group]].concat();
    status_with(&node, "the group's face", |status| faces(status) == all).await;

    ip("link set late0 up");
    ip("link set far0 up");
    let text = "[[ethernet]]\ninterface = \"far0\"\n";
    let (far, _far_listeners) = settings(text).start().await.unwrap();
    ask(&node, "/all/1", &far).await;

    drop(listeners);
    let group = &all[2..];
    status_with(&node, "the end of Ethernet faces", |status| {
        faces(status) == group
    })
    .await;
}

/// Both interfaces of a pair, up, the near one with an address.
fn make_pair() {
    ip("link add late0 type veth peer name far0");
    ip("address add 192.0.2.1/24 dev late0");
    ip("link set late0 up");
    ip("link set far0 up");
}

/// Numbers of the faces on interfaces, if there are all three, each with its route.
fn numbers(status: &NodeStatus) -> Option<Vec<u64>> {
    let found = faces(status);
    let has_routes = found.iter().all(|(_, _, prefixes)| prefixes.len() == 1);
    let on_interface = status.faces.iter().filter(|face| face.local.is_some());
    (found.len() == 3 && has_routes).then(|| on_interface.map(|face| face.id).collect())
}

/// The interface is removed, which ends its faces, and comes back later; then it is replaced faster than anybody looks,
/// and loses its address for a while, which only the group over IP needs.
#[tokio::test]
async fn faces_end_with_their_interface_and_come_back_with_it() {
    if !is_inside("faces_end_with_their_interface_and_come_back_with_it") {
        return;
    }
    make_pair();
    let (node, listeners) = settings(BOTH).start().await.unwrap();
    assert_eq!((listeners.remarks.len(), listeners.uris().len()), (0, 1));
    let first = numbers(&node.status().await.unwrap()).unwrap();

    ip("link delete late0");
    status_with(&node, "no faces", |status| faces(status).is_empty()).await;
    assert_eq!(node.status().await.unwrap().listeners.len(), 0);
    make_pair();
    let status = status_with(&node, "all faces", |status| numbers(status).is_some()).await;
    let second = numbers(&status).unwrap();
    assert!(second.iter().all(|face| !first.contains(face)));

    ip("link delete late0");
    make_pair();
    let is_new = |status: &NodeStatus| {
        numbers(status).is_some_and(|third| third.iter().all(|face| !second.contains(face)))
    };
    let status = status_with(&node, "all faces again", is_new).await;
    let third = numbers(&status).unwrap();
    let text = "[[ethernet]]\ninterface = \"far0\"\n";
    let (far, _far_listeners) = settings(text).start().await.unwrap();
    ask(&node, "/all/1", &far).await;

    ip("address delete 192.0.2.1/24 dev late0");
    status_with(&node, "no group", |status| faces(status).len() == 2).await;
    ip("address add 192.0.2.2/24 dev late0");
    let status = status_with(&node, "the group", |status| numbers(status).is_some()).await;
    let kept = numbers(&status).unwrap();
    let kept = kept.iter().filter(|face| third.contains(face));
    assert_eq!(kept.count(), 2, "the Ethernet faces");
}

#[tokio::test]
async fn an_interface_that_cannot_be_used_is_not_waited_for() {
    // It is there, and no Ethernet.
    let refused = settings("[[ethernet]]\ninterface = \"lo\"\n").start().await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("lo is not Ethernet"), "{refused}");
}
