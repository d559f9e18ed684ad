//! What is counted for each choice of a strategy.

use namecast_forward::{StrategyCounters, StrategyKind};
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, LpPacket, Nonce};

use crate::topology::{End, Net, data, interest, millis, name};

/// An application that asks, one that answers for `/a` and `/b`, and multicast for `/a`.
fn node() -> (Net, End, End) {
    let mut net = Net::new(1);
    let (consumer, producer) = (net.app(0), net.app(0));
    net.route(0, "/a", producer.1, 0);
    net.route(0, "/b", producer.1, 0);
    net.nodes[0]
        .forwarder
        .set_strategy(name("/a"), StrategyKind::Multicast)
        .unwrap();
    (net, consumer, producer)
}

/// What is counted for each prefix.
fn counted(net: &Net) -> Vec<(String, StrategyCounters)> {
    let choices = net.nodes[0].forwarder.strategies();
    choices
        .map(|choice| (choice.prefix.to_string(), choice.counters))
        .collect()
}

fn of(net: &Net, prefix: &str) -> StrategyCounters {
    let all = counted(net);
    let choice = all.iter().find(|(other, _)| other == prefix);
    choice.unwrap().1
}

/// One Interest of each fate, for names of one choice; the other counts none of them.
#[test]
fn each_fate_counts_once_for_the_choice_that_decided() {
    for (prefix, other) in [("/", "/a"), ("/a", "/")] {
        let (mut net, consumer, producer) = node();
        let uri = |number: u32| match prefix {
            "/" => format!("/b/{number}"),
            _ => format!("{prefix}/{number}"),
        };
        let counters = |net: &Net| {
            assert_eq!(of(net, other), StrategyCounters::default());
            of(net, prefix)
        };
        // Satisfied, after one copy that was held back and one that was sent.
        net.ask(consumer, &interest(&uri(1), 1));
        net.ask(consumer, &interest(&uri(1), 2));
        net.run_for(millis(10));
        net.ask(consumer, &interest(&uri(1), 3));
        net.answer(producer, &data(&uri(1)));
        let mut expected = StrategyCounters {
            interests: 3,
            suppressed: 1,
            retransmissions: 1,
            satisfied: 1,
            ..StrategyCounters::default()
        };
        assert_eq!(counters(&net), expected);
        // By the cache.
        net.ask(consumer, &interest(&uri(1), 4));
        assert_eq!(counters(&net), expected);
        // Nobody answers.
        let slow = Interest::builder(name(&uri(2))).lifetime(millis(100));
        net.ask(consumer, &slow.build(Nonce::from(5)));
        net.run_for(millis(100));
        expected.interests += 1;
        expected.timeouts += 1;
        assert_eq!(counters(&net), expected);
        // A Nack, which ends the Interest, so that it does not run out of time as well.
        net.ask(consumer, &interest(&uri(3), 6));
        net.nack(producer, &interest(&uri(3), 6), NackReason::NoRoute);
        net.run_for(millis(10_000));
        expected.interests += 1;
        expected.nacks += 1;
        assert_eq!(counters(&net), expected);
    }
}

#[test]
fn interests_without_a_next_hop_count_as_rejected() {
    let (mut net, consumer, _) = node();
    net.ask(consumer, &interest("/c", 1));
    let expected = StrategyCounters {
        interests: 1,
        rejected: 1,
        ..StrategyCounters::default()
    };
    assert_eq!(of(&net, "/"), expected);
}

/// Then no strategy has decided.
#[test]
fn an_interest_whose_sender_chose_the_face_counts_nowhere() {
    let (mut net, _, producer) = node();
    let mut config = namecast_forward::FaceConfig::application("test");
    config.local_fields = true;
    let consumer = net.face(0, config);
    let mut packet = LpPacket::carrying(interest("/a/1", 1).wire().clone());
    packet.next_hop_face = Some(producer.1.number());
    net.send(consumer, packet.encode());
    net.answer(producer, &data("/a/1"));
    assert_eq!(net.seen(consumer).len(), 1);
    assert_eq!(of(&net, "/a"), StrategyCounters::default());
}

/// A choice begins at zero, also where one of the same place was; the same choice again changes nothing. What was pending
/// under a choice that is no more counts for none.
#[test]
fn counters_live_and_die_with_their_choice() {
    let (mut net, consumer, producer) = node();
    net.ask(consumer, &interest("/a/1", 1));
    net.nodes[0]
        .forwarder
        .set_strategy(name("/a"), StrategyKind::Multicast)
        .unwrap();
    assert_eq!(of(&net, "/a").interests, 1);
    net.nodes[0]
        .forwarder
        .set_strategy(name("/a"), StrategyKind::BestRoute)
        .unwrap();
    net.answer(producer, &data("/a/1"));
    assert_eq!(of(&net, "/a"), StrategyCounters::default());
    net.ask(consumer, &interest("/a/2", 2));
    net.nodes[0].forwarder.unset_strategy(&name("/a"));
    net.nodes[0]
        .forwarder
        .set_strategy(name("/b"), StrategyKind::Multicast)
        .unwrap();
    net.answer(producer, &data("/a/2"));
    let none = StrategyCounters::default();
    assert_eq!(
        counted(&net),
        [("/".to_owned(), none), ("/b".to_owned(), none)]
    );
    assert_eq!(net.nodes[0].counters().satisfied, 2);
    net.nodes[0]
        .forwarder
        .set_strategy(name("/"), StrategyKind::Random)
        .unwrap();
    net.ask(consumer, &interest("/a/3", 3));
    net.answer(producer, &data("/a/3"));
    assert_eq!((of(&net, "/").interests, of(&net, "/").satisfied), (1, 1));
}
