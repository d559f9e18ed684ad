//! What applications register, as a routing daemon hears of it.

use std::time::Duration;

use namecast_packet::signature::{DigestSigner, DigestVerifier};
use namecast_packet::{Data, Interest, LpPacket, Packet};

use super::super::{Client, ControlParameters, ControlResponse, GeneralStatus};
use super::{about, ask};
use crate::{
    ApplicationFace, ManagementConfig, Node, NodeConfig, ReadvertiseConfig, RegistrationConfig,
};

const TIMEOUT: Duration = Duration::from_secs(60);

fn start(timeout: Duration) -> Node {
    Node::start(NodeConfig {
        management: ManagementConfig {
            readvertise: Some(ReadvertiseConfig {
                backoff: (Duration::from_millis(5), Duration::from_millis(20)),
                ..ReadvertiseConfig::default()
            }),
            ..ManagementConfig::default()
        },
        registration: RegistrationConfig {
            timeout,
            ..RegistrationConfig::default()
        },
        ..NodeConfig::default()
    })
}

fn from(prefix: &str, origin: u64, cost: u64) -> ControlParameters {
    ControlParameters {
        origin: Some(origin),
        cost: Some(cost),
        ..about(prefix)
    }
}

/// A daemon with a face of its own, which has registered where it is asked.
async fn daemon(node: &Node) -> ApplicationFace {
    let mut face = node.application_face().await.unwrap();
    let own = from("/localhost/nlsr", 128, 0);
    assert_eq!(ask(&mut face, "rib/register", &own).await.code, 200);
    face
}

/// The next command to the daemon: verb and parameters.
async fn hear(daemon: &mut ApplicationFace) -> (Interest, String, ControlParameters) {
    let frame = tokio::time::timeout(TIMEOUT, daemon.recv()).await;
    let packet = LpPacket::decode(frame.unwrap().unwrap()).unwrap();
    let Ok(Packet::Interest(command)) = Packet::decode(packet.fragment.unwrap()) else {
        panic!("no Interest");
    };
    assert_eq!(command.verify(&DigestVerifier), Ok(()));
    let name = command.name().clone();
    // The form that ndnd insists on: parameters, and after them a digest only.
    assert_eq!(
        (name.len(), name.prefix(3)),
        (6, super::name("/localhost/nlsr/rib"))
    );
    let info = command.signature_info().unwrap();
    assert!(info.time.is_some() && info.nonce.is_some());
    let verb = name.get(3).unwrap().to_string();
    let parameters = name.get(4).unwrap().value.to_vec();
    let parameters = ControlParameters::decode(&parameters.into()).unwrap();
    (command, verb, parameters)
}

/// As NLSR does where it keeps the prefix in a file, too.
async fn agree(daemon: &ApplicationFace, command: &Interest) {
    let response = ControlResponse {
        code: 205,
        text: "OK".to_owned(),
        parameters: ControlParameters::default(),
    };
    let data = Data::builder(command.name().clone()).content(response.encode());
    let data = data.sign(&DigestSigner);
    daemon.send(data.wire().clone()).await.unwrap();
}

/// The next command that is not the repetition of one that was answered too late, answered.
async fn hear_next(daemon: &mut ApplicationFace, expected: (&str, &ControlParameters)) {
    loop {
        let (command, verb, parameters) = hear(daemon).await;
        agree(daemon, &command).await;
        if (&*verb, &parameters) == expected {
            return;
        }
    }
}

fn at_cost(prefix: &str, cost: u64) -> ControlParameters {
    ControlParameters {
        cost: Some(cost),
        flags: Some(0),
        ..about(prefix)
    }
}

async fn told(node: &Node, wanted: u64) {
    let waiting = async {
        while node.status().await.unwrap().readvertising.unwrap().told != wanted {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

#[tokio::test]
async fn a_daemon_hears_what_applications_register_and_that_it_ends() {
    let node = start(Duration::from_millis(50));
    let mut app = node.application_face().await.unwrap();
    // What an operator, a daemon or an announcement made, and what does not leave the machine, is not for it.
    for (prefix, origin) in [
        ("/static", 255),
        ("/routed", 128),
        ("/announced", 129),
        ("/localhost/x", 0),
        ("/localhop/x", 65),
    ] {
        ask(&mut app, "rib/register", &from(prefix, origin, 0)).await;
    }
    ask(&mut app, "rib/register", &from("/a", 65, 9)).await;
    let mut daemon = daemon(&node).await;
    // Nor is what the daemon registers with an application's origin.
    let of_daemon = ControlParameters {
        face: Some(daemon.id().number()),
        ..from("/of/daemon", 0, 0)
    };
    ask(&mut app, "rib/register", &of_daemon).await;
    let (first, verb, parameters) = hear(&mut daemon).await;
    assert_eq!((&*verb, &parameters), ("register", &at_cost("/a", 9)));
    // That got lost: it is said again, as a new command.
    let (second, verb, parameters) = hear(&mut daemon).await;
    assert_eq!((&*verb, &parameters), ("register", &at_cost("/a", 9)));
    assert_ne!(first.name().get(5), second.name().get(5));
    hear_next(&mut daemon, ("register", &at_cost("/a", 9))).await;
    told(&node, 1).await;
    ask(&mut app, "rib/register", &from("/a", 0, 4)).await;
    hear_next(&mut daemon, ("register", &at_cost("/a", 4))).await;
    ask(&mut app, "rib/unregister", &from("/a", 0, 0)).await;
    hear_next(&mut daemon, ("register", &at_cost("/a", 9))).await;
    drop(app);
    hear_next(&mut daemon, ("unregister", &about("/a"))).await;
    told(&node, 0).await;
    let status = node.status().await.unwrap().readvertising.unwrap();
    assert_eq!((status.daemons, status.prefixes), (1, 0));
    assert!(
        status.registered >= 3 && status.unregistered >= 1 && status.failed >= 1,
        "{status:?}"
    );
}

#[tokio::test]
async fn a_daemon_that_comes_back_hears_everything_again() {
    let node = start(TIMEOUT);
    let mut app = node.application_face().await.unwrap();
    for prefix in ["/a", "/b"] {
        ask(&mut app, "rib/register", &about(prefix)).await;
    }
    let mut first = daemon(&node).await;
    hear_next(&mut first, ("register", &at_cost("/b", 0))).await;
    told(&node, 2).await;
    drop(first);
    told(&node, 0).await;
    ask(&mut app, "rib/unregister", &about("/a")).await;
    let mut second = daemon(&node).await;
    let (command, verb, parameters) = hear(&mut second).await;
    assert_eq!((&*verb, &parameters), ("register", &at_cost("/b", 0)));
    agree(&second, &command).await;
    told(&node, 1).await;

    let mut client = Client::of_node(&node).await.unwrap();
    let general: GeneralStatus = client.status().await.unwrap();
    assert_eq!(general.readvertising.unwrap().prefixes, 1);
    let silent = Node::start(NodeConfig::default());
    let mut client = Client::of_node(&silent).await.unwrap();
    assert_eq!(client.status().await.unwrap().readvertising, None);
}
