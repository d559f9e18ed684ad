//! Hops of a program's own in a node with sockets, whose work one or several forwarders do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::common::{data, eventually, fetch, interest, loopback, name, produce, soon};
use namecast_apps::sequence::{
    Delivery, Fetcher, FetcherConfig, Provider, ProviderConfig, ServerConfig,
};
use namecast_forward::{Actions, AnyNextConfig, Context, FaceId, Hop, NamedHop, PiggybackConfig};
use namecast_net::{ApplicationFace, FaceUri, Handle, Node, NodeConfig, drive};
use namecast_packet::{Extensions, LpPacket, Name, Packet};
use namecast_stream::path::NumberedConfig;
use namecast_units::{Bitrate, Duration, Instant};

/// Enough that each of two forwarders has some.
const NAMES: u64 = 40;

/// What the hops of all forwarders of a node saw.
#[derive(Debug, Default)]
struct Notes {
    interests: u64,
    data: u64,
    labels: BTreeSet<u64>,
    shards: BTreeSet<u16>,
}

/// Writes down what passes, and labels Interests.
#[derive(Debug)]
struct Counting {
    shard: u16,
    notes: Arc<Mutex<Notes>>,
}

impl Hop for Counting {
    fn on_interest(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let mut notes = self.notes.lock().unwrap();
        notes.interests += u64::from(name("/here").is_prefix_of(context.name));
        notes.shards.insert(self.shard);
        let label = context.fields.extensions.number(Extensions::PATH_LABEL);
        notes.labels.extend(label);
        Actions::default().set_field(Extensions::PATH_LABEL, vec![7])
    }

    fn on_data(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let mut notes = self.notes.lock().unwrap();
        notes.data += u64::from(name("/here").is_prefix_of(context.name));
        Actions::default()
    }
}

/// Knows the answer to everything.
#[derive(Debug)]
struct Answering;

impl Hop for Answering {
    fn on_interest(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        Actions::answer(data(context.name.clone(), 10))
    }
}

fn start(forwarders: usize) -> (Node, Arc<Mutex<Notes>>) {
    let notes = Arc::<Mutex<Notes>>::default();
    let shared = Arc::clone(&notes);
    let config = NodeConfig {
        forwarders,
        ..NodeConfig::default()
    };
    let config = config
        .hop(move |shard| {
            let notes = Arc::clone(&shared);
            Box::new(Counting {
                shard: shard.index,
                notes,
            })
        })
        .strategy("knowing", |_| Box::new(Answering));
    (Node::start(config), notes)
}

async fn fetch_all(application: &mut ApplicationFace, prefix: &str) {
    for number in 0..NAMES {
        let wanted = name(&format!("{prefix}/{number}"));
        let fetched = fetch(application, &wanted).await;
        assert_eq!(fetched, data(wanted, 10));
    }
}

/// An installed hop of each forwarder sees its share of names, and all together see all; a strategy has its name in management, and
/// answers where there is no route.
#[tokio::test]
async fn hops_see_all_packets_and_answer() {
    for forwarders in [1, 2] {
        let (node, notes) = start(forwarders);
        produce(&node, "/here", 10).await;
        let mut consumer = node.application_face().await.unwrap();
        fetch_all(&mut consumer, "/here").await;
        {
            let notes = notes.lock().unwrap();
            assert!((NAMES..NAMES + 5).contains(&notes.interests), "{notes:?}");
            assert!((NAMES..NAMES + 5).contains(&notes.data), "{notes:?}");
            assert_eq!(notes.shards.len(), forwarders);
        }
        let uri = name("/localhost/nfd/strategy/knowing");
        let kind = node.strategy_named(&uri).unwrap();
        node.set_strategy(&name("/known"), kind).unwrap();
        fetch_all(&mut consumer, "/known").await;
        let status = node.status().await.unwrap();
        let chosen = status
            .strategies
            .iter()
            .find(|it| it.prefix == name("/known"));
        assert_eq!(
            chosen.unwrap().strategy,
            name("/localhost/nfd/strategy/knowing/v=1")
        );
        assert!(
            node.strategy_named(&name("/localhost/nfd/strategy/other"))
                .is_err()
        );
        node.shutdown().await;
    }
}

/// The first Interest asks over UDP; later ones bring the label. The producer's node, which sets fields too, knows as well.
#[tokio::test]
async fn fields_of_hops_reach_a_neighbour_that_speaks_them() {
    for forwarders in [1, 2] {
        let ((near, _), (far, at_far)) = (start(forwarders), start(forwarders));
        produce(&far, "/here", 10).await;
        let listener = far.listen_udp(loopback()).await.unwrap();
        let face = near.connect(listener.uri().clone()).await.unwrap();
        near.add_route(name("/here"), face, 0).await.unwrap();
        soon("connection", near.connected(face)).await.unwrap();
        let mut consumer = near.application_face().await.unwrap();
        fetch_all(&mut consumer, "/here").await;
        eventually("answer", async || {
            let status = near.status().await.unwrap();
            let face = status.faces.iter().find(|it| it.id == face.number());
            face.unwrap().speaks_extensions.filter(|speaks| *speaks)
        })
        .await;
        let last = name("/here/last");
        assert_eq!(fetch(&mut consumer, &last).await, data(last, 10));
        assert_eq!(at_far.lock().unwrap().labels, BTreeSet::from([7]));
        near.shutdown().await;
        far.shutdown().await;
    }
}

/// Two applications that answer each other and request the next packet at once, at two nodes over UDP. Their nodes find out that both
/// take bundles, and make them; with several forwarders they take them apart. The applications see packets one by one.
#[tokio::test]
async fn nodes_send_data_and_interests_of_applications_together() {
    for forwarders in [1, 2] {
        let [near, far] = [(); 2].map(|()| {
            let config = NodeConfig {
                forwarders,
                ..NodeConfig::default()
            };
            // Long enough for a busy machine.
            let piggyback = NamedHop::Piggyback(PiggybackConfig {
                wait: Duration::from_millis(100),
                ..PiggybackConfig::default()
            });
            Node::start(config.hop(move |_| piggyback.build()))
        });
        let listener = far.listen_udp(loopback()).await.unwrap();
        let to_far = near.connect(listener.uri().clone()).await.unwrap();
        soon("connection", near.connected(to_far)).await.unwrap();
        let mut alice = near.application_face().await.unwrap();
        let mut bob = far.application_face().await.unwrap();
        near.add_route(name("/alice"), alice.id(), 0).await.unwrap();
        near.add_route(name("/bob"), to_far, 0).await.unwrap();
        far.add_route(name("/bob"), bob.id(), 0).await.unwrap();
        let lifetime = Duration::from_secs(10);
        alice
            .send(interest(name("/bob/0"), lifetime))
            .await
            .unwrap();
        let mut asked = receive(&mut bob).await;
        let to_near = eventually("a face to the other node", async || {
            let status = far.status().await.unwrap();
            let mut faces = status.faces.iter();
            let face = faces.find(|face| face.remote.starts_with("udp"));
            face.map(|face| FaceId::from_number(face.id))
        });
        let to_near = to_near.await;
        far.add_route(name("/alice"), to_near, 0).await.unwrap();
        for number in 0..NAMES {
            let (from, to, theirs) = match number % 2 {
                0 => (&bob, &mut alice, "alice"),
                _ => (&alice, &mut bob, "bob"),
            };
            let Packet::Interest(interested) = &asked else {
                panic!("{asked:?}");
            };
            let answer = data(interested.name().clone(), 10);
            let next = name(&format!("/{theirs}/{}", number + 1));
            from.send(answer.wire().clone()).await.unwrap();
            from.send(interest(next.clone(), lifetime)).await.unwrap();
            let mut came = [receive(to).await, receive(to).await];
            came.sort_by_key(|packet| matches!(packet, Packet::Interest(_)));
            assert_eq!(came[0], Packet::Data(answer));
            [_, asked] = came;
        }
        let status = near.status().await.unwrap();
        let bundles = |what: &str| status.bundles.get(what).copied().unwrap_or_default();
        match forwarders {
            1 => assert!(
                bundles("joined") > 10 && bundles("received") > 10,
                "{status:?}"
            ),
            _ => assert_eq!(bundles("sent"), 0),
        }
        near.shutdown().await;
        far.shutdown().await;
    }
}

async fn receive(application: &mut ApplicationFace) -> Packet {
    let frame = soon("a packet", application.recv()).await.unwrap();
    // PIT tokens come in a link header.
    let packet = LpPacket::decode(frame).unwrap();
    assert_eq!(packet.piggybacked_interest, None);
    Packet::decode(packet.fragment.unwrap()).unwrap()
}

/// Two faces wait under the prefix, one of them for two names, and a third face waits for another name.
#[tokio::test]
async fn faces_that_wait_for_a_stream_are_counted() {
    for forwarders in [1, 2] {
        let node = Node::start(NodeConfig {
            forwarders,
            ..NodeConfig::default()
        });
        let nobody = node.application_face().await.unwrap();
        node.add_route(Name::root(), nobody.id(), 0).await.unwrap();
        let mut faces = Vec::new();
        for names in [&["/show/1", "/show/2"][..], &["/show/2"], &["/shows/1"]] {
            let face = node.application_face().await.unwrap();
            for wanted in names {
                let wanted = interest(name(wanted), Duration::from_secs(60));
                face.send(wanted).await.unwrap();
            }
            faces.push(face);
        }
        let show = name("/show");
        let waiting = async || (node.waiting_faces(&show).len() == 2).then_some(());
        eventually("two who wait", waiting).await;
        let ids = faces[..2].iter().map(ApplicationFace::id).collect();
        assert_eq!(node.waiting_faces(&show), ids);
        assert!(node.waiting_faces(&name("/other")).is_empty());
        node.shutdown().await;
    }
}

/// Packets of a flow.
const COUNT: u64 = 2_000;

fn any_next_node(forwarders: usize) -> Node {
    let config = NodeConfig {
        forwarders,
        ..NodeConfig::default()
    };
    Node::start(config.hop(|_| NamedHop::AnyNext(AnyNextConfig::default()).build()))
}

/// Routes `/flow` from a node to another.
async fn route(node: &Node, to: &FaceUri) {
    let face = node.connect(to.clone()).await.unwrap();
    soon("connection", node.connected(face)).await.unwrap();
    node.add_route(name("/flow"), face, 0).await.unwrap();
}

/// Starts a receiver of any next packets of `/flow`, with `window` requests out at a time.
async fn receive_any_next(node: &Node, window: u32) -> Handle<Fetcher> {
    let face = node.application_face().await.unwrap();
    let requests = NumberedConfig {
        count: Some(COUNT),
        control: format!("window:{window}").parse().unwrap(),
        ..NumberedConfig::default()
    };
    let fetcher = Fetcher::new(FetcherConfig {
        delivery: Delivery::AnyNext,
        ..FetcherConfig::new(name("/flow"), requests)
    });
    let (fetcher, mut events) = drive(node.clock(), face, fetcher).spawn(|| {});
    tokio::spawn(async move { events.recv().await });
    let start = fetcher.call(|fetcher, now| fetcher.start(now.monotonic));
    start.await.unwrap();
    fetcher
}

/// One flow for two receivers behind a node where their links part, over UDP: the slow one has one request out at a time, the fast one
/// 64. The provider sends each Data once, and the node a copy to each receiver that has a request left.
#[tokio::test]
async fn one_flow_serves_receivers_of_every_speed() {
    for forwarders in [1, 2] {
        let nodes = [(); 4].map(|()| any_next_node(forwarders));
        let [provider, middle, slow, fast] = &nodes;
        let at_provider = provider.listen_udp(loopback()).await.unwrap();
        let at_middle = middle.listen_udp(loopback()).await.unwrap();
        route(middle, at_provider.uri()).await;
        let face = provider.application_face().await.unwrap();
        let local = provider.add_route(name("/flow"), face.id(), 0);
        local.await.unwrap();
        let server = ServerConfig {
            prefix: name("/flow"),
            end: Some(COUNT),
            ..ServerConfig::default()
        };
        let rate = Bitrate::mbps(20);
        let flow = Provider::new(ProviderConfig {
            server,
            rate,
            quantile: None,
            start: Instant::ZERO,
        })
        .unwrap();
        let (flow, _events) = drive(provider.clock(), face, flow).spawn(|| {});
        let mut receivers = Vec::new();
        for (node, window) in [(slow, 1), (fast, 64)] {
            route(node, at_middle.uri()).await;
            receivers.push(receive_any_next(node, window).await);
        }
        let provided = async || flow.call(|flow, _| flow.provided()).await.unwrap();
        let all = async || (provided().await == COUNT).then_some(());
        eventually("all Data", all).await;
        let mut received = Vec::new();
        for fetcher in &receivers {
            let data = fetcher.call(|fetcher, _| fetcher.figures().data).await;
            received.push(data.unwrap());
        }
        let status = middle.status().await.unwrap();
        let counted = |what: &str| status.any_next.get(what).copied().unwrap_or_default();
        // A busy machine may lose some.
        let most = COUNT * 9 / 10;
        assert!(received[1] >= most && received[0] > 0, "{received:?}");
        assert!((most..=COUNT).contains(&counted("data")), "{status:?}");
        assert!(counted("copies") >= received.iter().sum(), "{status:?}");
        for node in &nodes {
            node.shutdown().await;
        }
    }
}
