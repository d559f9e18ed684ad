//! Interests that come back are found out, in the PIT and after it.

use namecast_forward::{
    Config, ContentStoreConfig, DropReason, FaceConfig, LinkType, StrategyKind,
};
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Nonce};

use crate::topology::{Net, interest, millis, name};

/// A route around three nodes: the node that meets the Interest again says so, and the consumer learns at once.
#[test]
fn a_ring_of_three_ends_with_nack_duplicate() {
    let mut net = Net::new(3);
    for node in 0..3 {
        let next = (node + 1) % 3;
        let (out, _) = net.link(node, next);
        net.route(node, "/", out, 0);
    }
    let consumer = net.app(0);
    net.ask(consumer, &interest("/p", 1));
    assert_eq!(net.nacks(consumer), [NackReason::Duplicate]);
    let loops: Vec<_> = net
        .nodes
        .iter()
        .map(|n| n.counters().drops.get(DropReason::Loop))
        .collect();
    assert_eq!(loops, [1, 0, 0]);
    assert!(
        net.nodes
            .iter()
            .all(|node| node.forwarder.pending_interests() == 0)
    );
}

/// The same with multicast on every node, links both ways: each Interest crosses each link once each way at most, and the
/// answer ends it.
#[test]
fn a_ring_with_multicast_carries_each_interest_once() {
    let mut net = Net::new(3);
    for node in 0..3 {
        net.nodes[node]
            .forwarder
            .set_strategy(name("/"), StrategyKind::Multicast)
            .unwrap();
    }
    for node in 0..3 {
        let next = (node + 1) % 3;
        let (out, back) = net.link(node, next);
        net.route(node, "/", out, 0);
        net.route(next, "/", back, 0);
    }
    let (consumer, producer) = (net.app(0), net.app(1));
    net.route(1, "/", producer.1, 0);
    net.ask(consumer, &interest("/p", 1));
    assert_eq!(net.interests(producer).len(), 1);
    net.answer(producer, &crate::topology::data("/p"));
    assert_eq!(net.data(consumer).len(), 1);
    let sent: u64 = net
        .nodes
        .iter()
        .map(|node| node.counters().outgoing.interests)
        .sum();
    assert!(sent <= 7, "{sent}");
}

#[test]
fn a_repeated_nonce_is_a_retransmission_only_from_the_one_neighbour_that_can_have_sent_it() {
    for (link_type, loops) in [(LinkType::PointToPoint, 0), (LinkType::MultiAccess, 1)] {
        let mut net = Net::new(1);
        let consumer = net.face(
            0,
            FaceConfig {
                link_type,
                ..FaceConfig::default()
            },
        );
        let producer = net.app(0);
        net.route(0, "/", producer.1, 0);
        net.ask(consumer, &interest("/p", 1));
        net.run_for(millis(10));
        net.ask(consumer, &interest("/p", 1));
        assert_eq!(net.nodes[0].counters().drops.get(DropReason::Loop), loops);
        assert_eq!(
            net.interests(producer).len() as u64,
            2 - loops,
            "{link_type:?}"
        );
        assert_eq!(net.seen(consumer), [], "shared links carry no Nacks");
    }
}

#[test]
fn a_nonce_is_remembered_for_six_seconds_after_its_interest_expired() {
    for (wait, nacked) in [(5_999, true), (6_000, false)] {
        let mut net = Net::new(1);
        let (consumer, other, producer) = (net.app(0), net.app(0), net.app(0));
        net.route(0, "/", producer.1, 0);
        net.ask(
            consumer,
            &Interest::builder(name("/p"))
                .lifetime(millis(50))
                .build(Nonce::from(1)),
        );
        net.run_for(millis(50));
        assert_eq!(net.nodes[0].counters().unsatisfied, 1);
        net.run_for(millis(wait));
        net.ask(other, &interest("/p", 1));
        assert_eq!(net.seen(other).len(), usize::from(nacked), "{wait}");
        assert_eq!(
            net.nodes[0].counters().drops.get(DropReason::Loop),
            u64::from(nacked)
        );
    }
}

/// What Data satisfied is stopped by the cache, unless the cache could not answer: then the Nonce is remembered.
#[test]
fn a_satisfied_nonce_is_remembered_only_if_it_asked_for_fresh_data() {
    for fresh in [false, true] {
        let mut net = Net::with(Config {
            content_store: ContentStoreConfig::with_capacity(namecast_units::ByteSize::ZERO),
            ..Config::default()
        });
        let (consumer, producer) = (net.app(0), net.app(0));
        net.route(0, "/", producer.1, 0);
        let mut builder = Interest::builder(name("/p"));
        if fresh {
            builder = builder.must_be_fresh();
        }
        let interest = builder.build(Nonce::from(1));
        net.ask(consumer, &interest);
        net.answer(producer, &crate::topology::data("/p"));
        net.seen(consumer);
        net.ask(consumer, &interest);
        let expected = if fresh {
            vec![NackReason::Duplicate]
        } else {
            vec![]
        };
        assert_eq!(net.nacks(consumer), expected);
    }
}
