//! The client, and what a node with keys lets which client do.

use namecast_packet::signature::DigestSigner;
use namecast_packet::{Certificate, Data, Interest, LpPacket, Name};
use namecast_units::{ByteSize, Duration};

use super::super::{
    CAPTURE, CHILD_INHERIT, Client, ClientError, ControlParameters, FaceStatus, FibEntry, Item,
    PRECEDE, StrategyChoice,
};
use super::{ControlResponse, about, name, to};
use crate::{
    Clock, FaceUri, Identity, KeyStore, ManagementConfig, Node, NodeConfig, RegistrationConfig,
};

/// A node and a client on a Unix socket.
async fn connected(config: NodeConfig, directory: &std::path::Path) -> (Node, Client) {
    let node = Node::start(config);
    let path = directory.join("node.sock");
    let listener = node.listen_unix(&path).await.unwrap();
    let asking = Node::start(NodeConfig::default());
    let face = asking.connect(FaceUri::Unix(path)).await.unwrap();
    asking.connected(face).await.unwrap();
    let client = Client::of_peer(&asking, face).await.unwrap();
    drop(listener);
    (node, client)
}

/// Two hundred faces take three segments of 8000 octets.
#[tokio::test]
async fn a_client_commands_and_reads_lists_of_any_length() {
    let directory = tempfile::tempdir().unwrap();
    let (node, mut client) = connected(NodeConfig::default(), directory.path()).await;
    let wanted = to("udp4://127.0.0.1:9");
    let created = client.command("faces/create", &wanted);
    let face = created.await.unwrap().face.unwrap();
    let refused = client.command("faces/create", &wanted).await;
    let Err(ClientError::Refused {
        code: 409,
        parameters,
        ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!(parameters.face, Some(face));
    let mut others = Vec::new();
    for _ in 0..200 {
        others.push(node.application_face().await.unwrap());
    }
    let faces: Vec<FaceStatus> = client.list("faces/list").await.unwrap();
    assert!(faces.iter().any(|known| known.face == face));
    assert_eq!(faces.len(), node.faces().await.unwrap().len());
    assert!(faces.len() > 200);
    let status = client.status().await.unwrap();
    assert_eq!(status.fib_entries, 1);
    assert_eq!(client.list::<FibEntry>("fib/list").await.unwrap().len(), 1);
}

/// Nobody answers.
fn silent() -> ManagementConfig {
    ManagementConfig {
        enabled: false,
        ..ManagementConfig::default()
    }
}

/// A forwarder whose content store answers twice with a list from before the question, as NFD's does for a second.
#[tokio::test]
async fn a_list_from_before_is_asked_for_again() {
    let node = Node::start(NodeConfig {
        management: silent(),
        ..NodeConfig::caching(ByteSize::ZERO)
    });
    let mut store = node.application_face().await.unwrap();
    let prefix = name("/localhost/nfd/strategy-choice/list");
    node.add_route(prefix.clone(), store.id(), 0).await.unwrap();
    let mut client = Client::of_node(&node).await.unwrap();
    let millis = || Clock::new().wall().as_micros() / 1_000;
    let before = millis() - 500;
    let list = |version, uri| {
        let choice = StrategyChoice {
            prefix: name(uri),
            ..StrategyChoice::default()
        };
        let segment = prefix.builder().version(version).segment(0).finish();
        let last = Name::root().builder().segment(0).finish();
        let data = Data::builder(segment).freshness(Duration::from_secs(1));
        data.final_block(last)
            .content(choice.encode())
            .sign(&DigestSigner)
    };
    let answering = async {
        for (version, uri) in [
            (Some(before), "/old"),
            (Some(before), "/old"),
            (None, "/new"),
        ] {
            store.recv().await.unwrap();
            let data = list(version.unwrap_or_else(millis), uri);
            store.send(data.wire().clone()).await.unwrap();
        }
    };
    let (choices, ()) = tokio::join!(
        client.list::<StrategyChoice>("strategy-choice/list"),
        answering
    );
    assert_eq!(choices.unwrap()[0].prefix, name("/new"));
}

#[tokio::test]
async fn what_is_not_answered_is_said_so() {
    let node = Node::start(NodeConfig {
        management: silent(),
        registration: RegistrationConfig {
            timeout: Duration::from_millis(10),
            ..RegistrationConfig::default()
        },
        ..NodeConfig::default()
    });
    let mut client = Client::of_node(&node).await.unwrap();
    let listed = client.list::<FaceStatus>("faces/list").await;
    let unanswered = ClientError::Unanswered(Duration::from_millis(10));
    let nacked = matches!(&listed, Err(ClientError::Nacked(reason)) if reason.contains("NoRoute"));
    assert!(nacked || listed == Err(unanswered), "{listed:?}");
}

/// An operator whose keys are in `directory`, and a node whose commands take its key.
fn operated(directory: &std::path::Path) -> (Identity, NodeConfig) {
    let keys = KeyStore::open(directory.join("keys")).unwrap();
    let operator = keys.identity(&name("/operator")).unwrap();
    let certificate = Certificate::decode(operator.certificate.clone()).unwrap();
    let config = NodeConfig {
        management: ManagementConfig {
            keys: vec![certificate],
            ..ManagementConfig::default()
        },
        ..NodeConfig::default()
    };
    (operator, config)
}

#[tokio::test]
async fn a_node_with_keys_takes_from_others_only_what_is_open() {
    let directory = tempfile::tempdir().unwrap();
    let (operator, config) = operated(directory.path());
    let (node, mut client) = connected(config, directory.path()).await;
    let choice = ControlParameters {
        strategy: Some(name("/localhost/nfd/strategy/multicast")),
        ..about("/a")
    };
    let refused = client.command("strategy-choice/set", &choice).await;
    assert!(
        matches!(refused, Err(ClientError::Refused { code: 403, .. })),
        "{refused:?}"
    );
    client.command("rib/register", &about("/a")).await.unwrap();
    let mut client = client.signing_with(operator.signer);
    client
        .command("strategy-choice/set", &choice)
        .await
        .unwrap();
    let mut own = Client::of_node(&node).await.unwrap();
    own.command(
        "strategy-choice/set",
        &ControlParameters {
            name: Some(name("/b")),
            ..choice
        },
    )
    .await
    .unwrap();
    let choices: Vec<StrategyChoice> = own.list("strategy-choice/list").await.unwrap();
    assert_eq!(choices.len(), 3);
}

/// Whoever reaches a port of this machine must not have it connect elsewhere: over TCP it takes a key, although none is configured;
/// on the Unix socket it does not.
#[tokio::test]
async fn only_the_unix_socket_makes_faces_without_a_key() {
    let node = Node::start(NodeConfig::default());
    let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let listener = node.listen_tcp(address).await.unwrap();
    let asking = Node::start(NodeConfig::default());
    let uri = FaceUri::Tcp(*listener.address());
    let face = asking.connect(uri).await.unwrap();
    asking.connected(face).await.unwrap();
    let mut client = Client::of_peer(&asking, face).await.unwrap();
    let wanted = to("udp4://127.0.0.1:9");
    let refused = client.command("faces/create", &wanted).await;
    let is_refused = matches!(refused, Err(ClientError::Refused { code: 403, .. }));
    assert!(is_refused, "{refused:?}");
    client.command("rib/register", &about("/a")).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (_node, mut client) = connected(NodeConfig::default(), directory.path()).await;
    client.command("faces/create", &wanted).await.unwrap();
}

/// The flag is never refused. A key and applications of this process capture; for others, the route precedes.
#[tokio::test]
async fn capturing_takes_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let (operator, config) = operated(directory.path());
    let (node, mut client) = connected(config, directory.path()).await;
    let wanted = ControlParameters {
        flags: Some(CAPTURE | CHILD_INHERIT),
        ..about("/a")
    };
    let flags = |made: Result<ControlParameters, ClientError>| made.unwrap().flags;
    let made = client.command("rib/register", &wanted).await;
    assert_eq!(flags(made), Some(CHILD_INHERIT | PRECEDE));
    let mut client = client.signing_with(operator.signer);
    let made = client.command("rib/register", &wanted).await;
    assert_eq!(flags(made), wanted.flags);
    let mut own = Client::of_node(&node).await.unwrap();
    assert_eq!(
        flags(own.command("rib/register", &wanted).await),
        wanted.flags
    );
}

/// Neither the prefixes that management answers under nor longer ones take a route of somebody else, by `rib` or by `fib`; those
/// beside them do.
#[tokio::test]
async fn management_keeps_its_names() {
    let node = Node::start(NodeConfig::default());
    let mut client = Client::of_node(&node).await.unwrap();
    for command in ["rib/register", "fib/add-nexthop"] {
        for taken in [
            "/localhost/nfd",
            "/localhost/nfd/rib",
            "/localhop/nfd/rib/register",
        ] {
            let refused = client.command(command, &about(taken)).await;
            let is_refused = matches!(refused, Err(ClientError::Refused { code: 403, .. }));
            assert!(is_refused, "{command} {taken}: {refused:?}");
        }
        for free in ["/localhost/nlsr", "/localhop/nlsr", "/nfd"] {
            client.command(command, &about(free)).await.unwrap();
        }
    }
}

/// Refuses commands that are not later than the one before, as NFD does, in NFD's words: the first two times here.
#[tokio::test]
async fn a_command_that_came_too_late_is_signed_again() {
    let directory = tempfile::tempdir().unwrap();
    let (operator, _) = operated(directory.path());
    let node = Node::start(NodeConfig {
        management: silent(),
        ..NodeConfig::caching(ByteSize::ZERO)
    });
    let mut forwarder = node.application_face().await.unwrap();
    let prefix = name("/localhost/nfd/rib/register");
    node.add_route(prefix, forwarder.id(), 0).await.unwrap();
    let client = Client::of_node(&node).await.unwrap();
    let mut client = client.signing_with(operator.signer);
    let answering = async {
        let mut times = Vec::new();
        for (code, text) in [
            (403, "authorization rejected"),
            (403, "authorization rejected"),
            (200, "OK"),
        ] {
            let packet = LpPacket::decode(forwarder.recv().await.unwrap()).unwrap();
            let command = Interest::decode(packet.fragment.unwrap()).unwrap();
            times.push(command.signature_info().unwrap().time.unwrap());
            let response = ControlResponse {
                code,
                text: text.to_owned(),
                parameters: about("/a"),
            };
            let data = Data::builder(command.name().clone()).content(response.encode());
            let data = data.sign(&DigestSigner);
            forwarder.send(data.wire().clone()).await.unwrap();
        }
        times
    };
    let parameters = about("/a");
    let (done, times) = tokio::join!(client.command("rib/register", &parameters), answering);
    assert_eq!(done.unwrap().name, Some(name("/a")));
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
}
