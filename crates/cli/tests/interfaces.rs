//! Interfaces that come after the forwarder, in a network namespace of the test's own.
//!
//! The test runs itself again inside the namespace, and is skipped where none may be made.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use namecast_cli::forwarder_config::Settings;
use namecast_net::{Node, NodeStatus};
use namecast_packet::{Interest, Nonce};

/// Longer than anything takes on a machine that works at all.
const PATIENCE: Duration = Duration::from_secs(60);
/// Set where the test runs inside its namespace.
const INSIDE: &str = "NAMECAST_TEST_NAMESPACE";
/// Makes a user namespace, in which this user is root, and a network namespace in it.
const UNSHARE: [&str; 5] = ["unshare", "--user", "--map-root-user", "--net", "--mount"];
/// This namespace's view of its interfaces, of which there is none but `lo`.
const SET_UP: &str = "mount -t sysfs none /sys && ip link show lo";

fn system(command: &[&str]) -> std::process::Output {
    let output = Command::new(command[0]).args(&command[1..]).output();
    output.unwrap()
}

fn ip(arguments: &str) {
    let words: Vec<_> = arguments.split(' ').collect();
    let output = system(&[&["ip"], &words[..]].concat());
    assert!(output.status.success(), "{arguments}: {output:?}");
}

/// True inside a namespace. Outside, runs `test` there, or says why not.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let has_unshare = Path::new("/usr/bin/unshare").exists();
    let can = has_unshare && {
        let possible = system(&[&UNSHARE[..], &["sh", "-c", SET_UP]].concat());
        possible.status.success()
    };
    if !can {
        eprintln!("skipped, as no namespace can be made");
        return false;
    }
    let run = format!("{SET_UP} >/dev/null && exec \"$0\" \"$@\"");
    let this = std::env::current_exe().unwrap();
    let output = Command::new(UNSHARE[0])
        .args(&UNSHARE[1..])
        .args(["sh", "-c", &run])
        .arg(this)
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{printed}"
    );
    false
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
    let found = tokio::time::timeout(PATIENCE, asking).await;
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
    let at_once = "faces = { interface-patience = \"0s\" }\n";
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
    let consumer = node.application_face().await.unwrap();
    let interest = Interest::builder("/all/1".parse().unwrap()).build(Nonce([1, 2, 3, 4]));
    consumer.send(interest.wire().clone()).await.unwrap();
    status_with(&far, "the Interest", |status| {
        let mut faces = status.faces.iter();
        faces.any(|face| face.remote.starts_with("ether://") && face.incoming.interests == 1)
    })
    .await;

    drop(listeners);
    let group = &all[2..];
    status_with(&node, "the end of Ethernet faces", |status| {
        faces(status) == group
    })
    .await;
}

#[tokio::test]
async fn an_interface_that_cannot_be_used_is_not_waited_for() {
    // It is there, and no Ethernet.
    let refused = settings("[[ethernet]]\ninterface = \"lo\"\n").start().await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("lo is not Ethernet"), "{refused}");
}
