//! Self-learning: routes are found by asking everybody, made by announcements, and end.

use core::time::Duration;

use bytes::Bytes;
use namecast_forward::{
    Config, DropReason, FaceConfig, FaceId, LearnedRoute, LearningConfig, StrategyKind,
};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::{Ed25519Signer, KeyPair, NullSigner, Signer};
use namecast_packet::{Data, Interest, KeyLocator, LpPacket, Name, Nonce, PrefixAnnouncement};
use namecast_units::Instant;

use crate::topology::{End, Net, data, interest, millis, name};

mod announcements;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// `count` nodes that learn.
fn learning(count: usize) -> Net {
    let mut net = Net::new(count);
    for node in &mut net.nodes {
        node.forwarder
            .set_strategy(name("/"), StrategyKind::SelfLearning)
            .unwrap();
    }
    net
}

/// One node that learns, with an application and two neighbours played by the test.
fn with_neighbours(config: LearningConfig) -> (Net, End, [End; 2]) {
    let mut net = Net::with(Config {
        learning: config,
        ..Config::default()
    });
    net.nodes[0]
        .forwarder
        .set_strategy(name("/"), StrategyKind::SelfLearning)
        .unwrap();
    let consumer = net.app(0);
    let neighbours = [(); 2].map(|()| net.face(0, FaceConfig::default()));
    (net, consumer, neighbours)
}

fn announcement(prefix: &str, expiration: Duration, signer: &dyn Signer) -> Bytes {
    let announcement = PrefixAnnouncement::sign(&name(prefix), 1, expiration, None, signer);
    announcement.data().wire().clone()
}

/// Data with these octets as their announcement.
fn with(uri: &str, announcement: &Bytes) -> Bytes {
    let mut packet = LpPacket::carrying(data(uri).wire().clone());
    packet.prefix_announcement = Some(announcement.clone());
    packet.encode()
}

/// Data that announce `prefix` for `expiration`.
fn announcing(uri: &str, prefix: &str, expiration: Duration) -> Bytes {
    with(uri, &announcement(prefix, expiration, &NullSigner))
}

fn non_discovery(uri: &str, nonce: u32) -> Bytes {
    let mut packet = LpPacket::carrying(interest(uri, nonce).wire().clone());
    packet.non_discovery = true;
    packet.encode()
}

fn routes(net: &Net, node: usize) -> Vec<(String, FaceId)> {
    let routes = net.nodes[node].forwarder.learned_routes();
    routes
        .map(|route| (route.prefix.to_string(), route.face))
        .collect()
}

/// How many Interests each neighbour got, and how many of them must not be flooded.
fn asked(net: &mut Net, ends: [End; 2]) -> [(usize, usize); 2] {
    ends.map(|end| {
        let seen = net.seen(end);
        let marked = seen.iter().filter(|seen| seen.header.non_discovery).count();
        (seen.len(), marked)
    })
}

fn signer(seed: u8) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(Name::root()))
}

/// Interests that each node sent so far.
fn sent(net: &Net) -> Vec<u64> {
    let nodes = net.nodes.iter();
    nodes
        .map(|node| node.counters().outgoing.interests)
        .collect()
}

/// Has the first neighbour announce `/p` in answer to the application.
fn learn(net: &mut Net, consumer: End, neighbours: [End; 2], expiration: Duration) {
    net.ask(consumer, &interest("/p/learn", 9_999));
    net.send(neighbours[0], announcing("/p/learn", "/p", expiration));
    assert_eq!(net.data(consumer).len(), 1);
    assert_eq!(asked(net, neighbours), [(1, 0), (1, 0)]);
    assert_eq!(routes(net, 0), [("/p".to_owned(), neighbours[0].1)]);
}

/// ```text
///  consumer ─ 0 ─── 1 ─── 2 ─ producer
///                   │
///                   3
/// ```
#[test]
fn the_first_interest_goes_everywhere_and_the_next_straight_to_the_producer() {
    let mut net = learning(4);
    let (to_1, _) = net.link(0, 1);
    let (to_2, _) = net.link(1, 2);
    net.link(1, 3);
    let (consumer, producer) = (net.app(0), net.app(2));
    net.route(2, "/p", producer.1, 0);
    net.ask(consumer, &interest("/p/1", 1));
    // To 1; to 2 and 3; to the producer; and 3 has nobody to ask, and does not complain.
    assert_eq!(sent(&net), [1, 2, 1, 0]);
    assert_eq!(net.interests(producer).len(), 1);
    net.send(producer, announcing("/p/1", "/p", HOUR));
    let seen = net.seen(consumer);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header, LpPacket::default());
    let learned = (0..4).map(|node| routes(&net, node));
    let expected = [
        vec![("/p".to_owned(), to_1)],
        vec![("/p".to_owned(), to_2)],
        vec![],
        vec![],
    ];
    assert!(learned.eq(expected));
    net.ask(consumer, &interest("/p/2", 2));
    assert_eq!(sent(&net), [2, 3, 2, 0]);
    // Names that nobody announced are looked for as before.
    net.ask(consumer, &interest("/q", 3));
    assert_eq!(sent(&net), [3, 5, 2, 0]);
}

/// A producer's node has its application's announcement at hand also where a cache answers.
#[test]
fn what_follows_a_route_is_marked_and_what_looks_for_one_is_told() {
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
    learn(&mut net, consumer, neighbours, HOUR);
    let announcement = announcement("/p", HOUR, &NullSigner);
    net.ask(consumer, &interest("/p/2", 2));
    assert_eq!(asked(&mut net, neighbours), [(1, 1), (0, 0)]);
    // The other neighbour looks for a route: it gets ours, with the first's announcement, from the cache as well.
    for nonce in [3, 4] {
        net.ask(neighbours[1], &interest("/p/3", nonce));
        if nonce == 3 {
            assert_eq!(asked(&mut net, [neighbours[0]; 2])[0], (1, 1));
            net.answer(neighbours[0], &data("/p/3"));
        }
        let seen = net.seen(neighbours[1]);
        assert_eq!(seen.len(), 1);
        assert_eq!(
            seen[0].header.prefix_announcement.as_ref(),
            Some(&announcement)
        );
    }
    // It follows one: then it needs none, and where there is none, that is an error and no reason to ask everybody.
    net.send(neighbours[1], non_discovery("/p/4", 5));
    assert_eq!(asked(&mut net, [neighbours[0]; 2])[0], (1, 1));
    net.answer(neighbours[0], &data("/p/4"));
    let seen = net.seen(neighbours[1]);
    assert_eq!((seen.len(), &seen[0].header), (1, &LpPacket::default()));
    net.send(neighbours[1], non_discovery("/q/1", 6));
    assert_eq!(net.nacks(neighbours[1]), [NackReason::NoRoute]);
    assert_eq!(net.seen(neighbours[0]), []);
}

/// The application announces once; its node repeats that beside cached Data, until the announcement ends.
#[test]
fn a_producers_node_announces_what_its_application_announced() {
    let (mut net, producer, neighbours) = with_neighbours(LearningConfig::default());
    net.route(0, "/p", producer.1, 0);
    let announced = |net: &mut Net| {
        let seen = net.seen(neighbours[0]);
        seen.into_iter()
            .map(|seen| seen.header.prefix_announcement.is_some())
            .collect::<Vec<_>>()
    };
    net.ask(neighbours[0], &interest("/p/1", 1));
    let seen = net.seen(producer);
    assert_eq!((seen.len(), seen[0].header.non_discovery), (1, false));
    net.send(producer, announcing("/p/1", "/p", HOUR));
    net.ask(neighbours[0], &interest("/p/2", 2));
    net.answer(producer, &data("/p/2"));
    net.ask(neighbours[0], &interest("/p/2", 3));
    assert_eq!(announced(&mut net), [true; 3]);
    assert_eq!(
        routes(&net, 0),
        [],
        "the application's own route is no learned one"
    );
    net.run_for(HOUR);
    net.ask(neighbours[0], &interest("/p/2", 4));
    assert_eq!(announced(&mut net), [false]);
    assert_eq!(net.seen(neighbours[1]), []);
}

/// An application need not say it beside its Data; where nobody learns, nothing is remembered and nothing said.
#[test]
fn what_an_application_announces_to_its_node_goes_with_its_data() {
    for learns in [true, false] {
        let (mut net, producer, neighbours) = with_neighbours(LearningConfig::default());
        if !learns {
            net.nodes[0]
                .forwarder
                .set_strategy(name("/"), StrategyKind::BestRoute)
                .unwrap();
        }
        net.route(0, "/p", producer.1, 0);
        let announcement = PrefixAnnouncement::sign(&name("/p"), 1, MINUTE, None, &NullSigner);
        assert!(
            net.nodes[0]
                .forwarder
                .learning(net.now)
                .announce(producer.1, &announcement)
        );
        net.ask(neighbours[0], &interest("/p/1", 1));
        net.answer(producer, &data("/p/1"));
        let seen = net.seen(neighbours[0]);
        let wire = learns.then(|| announcement.data().wire().clone());
        assert_eq!(
            (seen.len(), &seen[0].header.prefix_announcement),
            (1, &wire)
        );
        net.run_for(MINUTE);
        assert_eq!(net.nodes[0].poll_timeout(), None);
        assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 1);
        assert_eq!(net.nodes[0].counters().announcements_refused, 0);
    }
    let (mut net, producer, _) = with_neighbours(LearningConfig {
        keys: vec![signer(1).public_key()],
        ..LearningConfig::default()
    });
    let of_another = PrefixAnnouncement::sign(&name("/p"), 1, MINUTE, None, &signer(2));
    assert!(
        !net.nodes[0]
            .forwarder
            .learning(net.now)
            .announce(producer.1, &of_another)
    );
    assert_eq!(net.nodes[0].counters().announcements_refused, 1);
}

/// The announcement has 37 octets, and 120 count for all that may stand beside it; of a frame, peers read 8800.
#[test]
fn an_announcement_that_does_not_fit_is_left_out_and_the_data_arrives() {
    for (mtu, content, is_announced) in [
        (Some(157), 0, true),
        (Some(156), 0, false),
        (None, 8_600, true),
        (None, 8_643, false),
    ] {
        let (mut net, producer, _) = with_neighbours(LearningConfig::default());
        net.route(0, "/p", producer.1, 0);
        let config = FaceConfig {
            mtu,
            ..FaceConfig::default()
        };
        let neighbour = net.face(0, config);
        net.ask(neighbour, &interest("/p/1", 1));
        let large = Data::builder(name("/p/1")).content(vec![0; content]);
        let mut packet = LpPacket::carrying(large.sign(&NullSigner).wire().clone());
        let announcement = announcement("/p", HOUR, &NullSigner);
        assert_eq!(announcement.len(), 37);
        packet.prefix_announcement = Some(announcement);
        net.send(producer, packet.encode());
        let seen = net.seen(neighbour);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].header.prefix_announcement.is_some(), is_announced);
    }
}

/// Used after 5 minutes, an idle route of 10 minutes' life ends after 15; an announcement of 12 minutes ends after these.
#[test]
fn a_route_ends_when_it_is_not_used_and_when_its_announcement_does() {
    for (announced, end) in [(HOUR, 15 * MINUTE), (12 * MINUTE, 12 * MINUTE)] {
        let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
        learn(&mut net, consumer, neighbours, announced);
        let first = announced.min(10 * MINUTE);
        let expires = |net: &Net| {
            net.nodes[0]
                .forwarder
                .learned_routes()
                .next()
                .map(|it| it.expires)
        };
        assert_eq!(expires(&net), Some(Instant::ZERO + first));
        net.run_for(5 * MINUTE);
        net.ask(consumer, &interest("/p/1", 1));
        net.answer(neighbours[0], &data("/p/1"));
        assert_eq!(expires(&net), Some(Instant::ZERO + end));
        net.run_for(end - 5 * MINUTE - Duration::from_nanos(1));
        assert_eq!(routes(&net, 0).len(), 1);
        assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 1);
        net.run_for(Duration::from_nanos(1));
        assert_eq!(routes(&net, 0), []);
        assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 0);
        assert_eq!(net.nodes[0].poll_timeout(), None);
        asked(&mut net, neighbours);
        net.ask(consumer, &interest("/p/2", 2));
        assert_eq!(asked(&mut net, neighbours), [(1, 0), (1, 0)]);
    }
}

/// NoRoute ends a route; that a link is congested does not.
#[test]
fn a_next_hop_that_knows_no_route_is_forgotten_and_everybody_is_asked_again() {
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
    learn(&mut net, consumer, neighbours, HOUR);
    for (nonce, reason, left) in [
        (1, NackReason::Congestion, 1),
        (2, NackReason::Duplicate, 1),
        (3, NackReason::NoRoute, 0),
    ] {
        net.ask(consumer, &interest("/p/1", nonce));
        assert_eq!(asked(&mut net, neighbours), [(1, 1), (0, 0)]);
        net.nack(neighbours[0], &interest("/p/1", nonce), reason);
        assert_eq!(net.nacks(consumer), [reason]);
        assert_eq!(routes(&net, 0).len(), left);
    }
    net.ask(consumer, &interest("/p/1", 4));
    assert_eq!(asked(&mut net, neighbours), [(1, 0), (1, 0)]);
    // Of those who were asked in vain nobody downstream hears, as any other may still answer.
    for neighbour in neighbours {
        net.nack(neighbour, &interest("/p/1", 4), NackReason::NoRoute);
    }
    assert_eq!(net.seen(consumer), []);
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);
}

/// Three in a row; Data in between begin the count anew.
#[test]
fn a_next_hop_that_falls_silent_is_given_up() {
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
    learn(&mut net, consumer, neighbours, HOUR);
    let ask = |net: &mut Net, nonce: u32, answered: bool| {
        let uri = format!("/p/{nonce}");
        let interest = Interest::builder(name(&uri)).lifetime(millis(100));
        net.ask(consumer, &interest.build(Nonce::from(nonce)));
        if answered {
            net.answer(neighbours[0], &data(&uri));
        }
        net.run_for(millis(100));
        asked(net, neighbours).map(|(all, _)| all)
    };
    for (nonce, answered) in (1..).zip([false, false, true, false, false, false]) {
        assert_eq!(ask(&mut net, nonce, answered), [1, 0], "{nonce}");
    }
    assert_eq!(routes(&net, 0), []);
    assert_eq!(ask(&mut net, 7, false), [1, 1]);
}

/// A ring of four with the consumer at 0 and the producer at 2, which is reached by 1 first.
fn ring() -> (Net, End, End, [FaceId; 4], [FaceId; 4]) {
    let mut net = learning(4);
    let links = [0, 1, 2, 3].map(|node| net.link(node, (node + 1) % 4));
    let (consumer, producer) = (net.app(0), net.app(2));
    net.route(2, "/p", producer.1, 0);
    net.ask(consumer, &interest("/p/0", 1_000));
    assert_eq!(net.interests(producer).len(), 1);
    net.send(producer, announcing("/p/0", "/p", HOUR));
    assert_eq!(net.data(consumer).len(), 1);
    let (next, previous) = (links.map(|link| link.0), links.map(|link| link.1));
    assert_eq!(routes(&net, 0), [("/p".to_owned(), next[0])]);
    (net, consumer, producer, next, previous)
}

/// The node before the gap knows at once and says so; the consumer asks again, and the other way round is found.
#[test]
fn a_link_that_is_down_is_routed_around() {
    let (mut net, consumer, producer, next, previous) = ring();
    let now = net.now;
    net.nodes[1].remove_face(now, next[1]);
    net.nodes[2].remove_face(now, previous[1]);
    net.ask(consumer, &interest("/p/1", 1));
    assert_eq!(net.nacks(consumer), [NackReason::NoRoute]);
    assert_eq!(routes(&net, 0), []);
    net.ask(consumer, &interest("/p/1", 2));
    assert_eq!(net.interests(producer).len(), 1);
    net.send(producer, announcing("/p/1", "/p", HOUR));
    assert_eq!(net.data(consumer).len(), 1);
    // Face 3 of the ring leads from 3 to 0, so node 0's other face is its end of that.
    assert_eq!(routes(&net, 0), [("/p".to_owned(), previous[3])]);
    let before = sent(&net);
    net.ask(consumer, &interest("/p/2", 3));
    let more: Vec<_> = sent(&net).iter().zip(before).map(|(a, b)| a - b).collect();
    assert_eq!(more, [1, 0, 1, 1]);
}

/// Nobody is told: three Interests are lost, then the other way round is found.
#[test]
fn a_link_that_carries_nothing_is_routed_around() {
    let (mut net, consumer, producer, next, previous) = ring();
    net.cut((1, next[1]));
    for nonce in 1..=3 {
        net.ask(consumer, &interest(&format!("/p/{nonce}"), nonce));
        net.run_for(Duration::from_secs(4));
        assert_eq!(net.interests(producer).len(), 0);
    }
    assert_eq!((routes(&net, 0), routes(&net, 1)), (vec![], vec![]));
    net.ask(consumer, &interest("/p/4", 4));
    assert_eq!(net.interests(producer).len(), 1);
    net.send(producer, announcing("/p/4", "/p", HOUR));
    assert_eq!(net.data(consumer).len(), 1);
    assert_eq!(routes(&net, 0), [("/p".to_owned(), previous[3])]);
}

/// Four nodes, each linked with each: one sends three Interests and each other one two, whatever the loops. Six are second
/// copies. Once nothing is pending the Nonces are still known.
#[test]
fn a_flood_crosses_each_link_once_each_way_at_most() {
    let mut net = learning(4);
    for (a, b) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
        net.link(a, b);
    }
    let consumer = net.app(0);
    let loops = |net: &Net| -> u64 {
        let nodes = net.nodes.iter();
        nodes
            .map(|node| node.counters().drops.get(DropReason::Loop))
            .sum()
    };
    net.ask(consumer, &interest("/p", 1));
    assert_eq!(sent(&net), [3, 2, 2, 2]);
    assert_eq!(loops(&net), 6);
    net.run_for(Duration::from_secs(4));
    assert!(
        net.nodes
            .iter()
            .all(|node| node.forwarder.pending_interests() == 0)
    );
    let outsider = net.face(3, FaceConfig::default());
    net.ask(outsider, &interest("/p", 1));
    assert_eq!(sent(&net), [3, 2, 2, 2]);
    assert_eq!(loops(&net), 7);
}

/// Retransmissions to everybody are held back for 10 ms, then 20 ms.
#[test]
fn retransmissions_are_not_flooded_at_once() {
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
    let mut counts = Vec::new();
    for (nonce, wait) in (1..).zip([0, 9, 1, 19, 1]) {
        net.run_for(millis(wait));
        net.ask(consumer, &interest("/p/1", nonce));
        counts.push(asked(&mut net, neighbours).map(|(all, _)| all));
    }
    assert_eq!(counts, [[1, 1], [0, 0], [1, 1], [0, 0], [1, 1]]);
}

/// Whoever follows a route that this node does not have does not spoil the search of another, and gets the Data too.
#[test]
fn one_who_follows_waits_with_one_who_searches() {
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
    let other = net.face(0, FaceConfig::default());
    net.ask(consumer, &interest("/p/1", 1));
    net.send(other, non_discovery("/p/1", 2));
    net.answer(neighbours[0], &data("/p/1"));
    assert_eq!(net.data(consumer).len(), 1);
    let seen = net.seen(other);
    // The Interest that it was asked, and the Data.
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[1].clone().data(), data("/p/1"));
}

/// A neighbour to which the only route leads back looks for another, so everybody else is asked.
#[test]
fn a_route_back_to_who_asks_is_none() {
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
    learn(&mut net, consumer, neighbours, HOUR);
    net.ask(neighbours[0], &interest("/p/1", 1));
    assert_eq!(asked(&mut net, neighbours), [(0, 0), (1, 0)]);
    net.send(neighbours[0], non_discovery("/p/2", 2));
    assert_eq!(net.nacks(neighbours[0]), [NackReason::NoRoute]);
    assert_eq!(net.seen(neighbours[1]), []);
}

/// What an operator adds stays, whatever was learned; what he removes, or a face that ends, takes the learned route along.
#[test]
fn an_operators_word_counts_more() {
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
    learn(&mut net, consumer, neighbours, HOUR);
    let learned = net.nodes[0].forwarder.learned_routes().next();
    let expected = LearnedRoute {
        prefix: name("/p"),
        face: neighbours[0].1,
        cost: 2_048,
        expires: Instant::ZERO + 10 * MINUTE,
    };
    assert_eq!(learned, Some(expected));
    net.route(0, "/p", neighbours[0].1, 7);
    assert_eq!(routes(&net, 0), []);
    net.run_for(2 * HOUR);
    assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 1);
    net.ask(consumer, &interest("/p/1", 1));
    assert_eq!(asked(&mut net, neighbours), [(1, 1), (0, 0)]);
    // What follows the operator's route is no answer to a search, but a search of another's may be answered by it.
    net.nack(neighbours[0], &interest("/p/1", 1), NackReason::NoRoute);
    assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 1);
    net.nodes[0]
        .forwarder
        .remove_route(&name("/p"), neighbours[0].1);
    assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 0);
    assert_eq!(net.nodes[0].poll_timeout(), None);
}

#[test]
fn learned_routes_go_with_their_face_and_with_the_last_choice() {
    for removes_face in [true, false] {
        let (mut net, consumer, neighbours) = with_neighbours(LearningConfig::default());
        net.nodes[0]
            .forwarder
            .set_strategy(name("/other"), StrategyKind::SelfLearning)
            .unwrap();
        learn(&mut net, consumer, neighbours, HOUR);
        let now = net.now;
        if removes_face {
            net.nodes[0].remove_face(now, neighbours[0].1);
        } else {
            net.nodes[0]
                .forwarder
                .set_strategy(name("/"), StrategyKind::BestRoute)
                .unwrap();
            assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 1);
            net.nodes[0].forwarder.unset_strategy(&name("/other"));
        }
        assert_eq!(routes(&net, 0), []);
        assert_eq!(net.nodes[0].forwarder.routed_prefixes(), 0);
        assert_eq!(net.nodes[0].poll_timeout(), None);
    }
}

/// Between learning nodes, one with static routes: it takes no part, and stands in nobody's way.
#[test]
fn other_strategies_pass_on_what_learning_nodes_tell_each_other() {
    let mut net = learning(3);
    net.nodes[1]
        .forwarder
        .set_strategy(name("/"), StrategyKind::BestRoute)
        .unwrap();
    net.nodes[1].forwarder.unset_strategy(&name("/"));
    let (to_1, _) = net.link(0, 1);
    let (to_2, _) = net.link(1, 2);
    net.route(1, "/p", to_2, 0);
    let (consumer, producer) = (net.app(0), net.app(2));
    net.route(2, "/p", producer.1, 0);
    net.ask(consumer, &interest("/p/1", 1));
    net.send(producer, announcing("/p/1", "/p", HOUR));
    assert_eq!(net.data(consumer).len(), 1);
    let learned = [0, 1, 2].map(|node| routes(&net, node));
    assert_eq!(learned, [vec![("/p".to_owned(), to_1)], vec![], vec![]]);
    // Behind it, an Interest that follows a route still does.
    net.nodes[2].forwarder.remove_route(&name("/p"), producer.1);
    net.link(2, 0);
    net.ask(consumer, &interest("/p/2", 2));
    assert_eq!(net.nacks(consumer), [NackReason::NoRoute]);
}
