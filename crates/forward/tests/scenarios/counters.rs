//! What faces count of pending Interests.

use namecast_forward::FaceCounters;
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Nonce};

use crate::topology::{End, Net, data, interest, millis, name};

/// Two consumers and a producer of `/p` on one node.
fn one_node() -> (Net, [End; 2], End) {
    let mut net = Net::new(1);
    let consumers = [net.app(0), net.app(0)];
    let producer = net.app(0);
    net.route(0, "/p", producer.1, 0);
    (net, consumers, producer)
}

/// Satisfied and expired, as a downstream and as an upstream.
fn outcomes(net: &Net, (node, face): End) -> [u64; 4] {
    let counters: FaceCounters = net.nodes[node].face_counters(face).unwrap();
    [
        counters.satisfied_in,
        counters.expired_in,
        counters.satisfied_out,
        counters.expired_out,
    ]
}

/// The second consumer's Interest and the first one's retransmission join the entry; each face has one record in it.
#[test]
fn satisfied_interests_count_once_for_each_face() {
    let (mut net, [first, second], producer) = one_node();
    net.ask(first, &interest("/p/1", 1));
    net.ask(second, &interest("/p/1", 2));
    net.run_for(millis(20));
    net.ask(first, &interest("/p/1", 3));
    assert_eq!(net.interests(producer).len(), 2);
    assert_eq!(outcomes(&net, first), [0; 4]);
    net.answer(producer, &data("/p/1"));
    let counted = [first, second, producer].map(|end| outcomes(&net, end));
    assert_eq!(counted, [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]);
    // What the cache answers was never pending.
    net.ask(first, &interest("/p/1", 4));
    assert_eq!(net.data(first).len(), 2);
    assert_eq!(outcomes(&net, first), [1, 0, 0, 0]);
    assert_eq!(net.nodes[0].counters().satisfied, 1);
}

/// The entry ends with its last record, 200 ms after the start, and all its records with it.
#[test]
fn expired_interests_count_once_for_each_face() {
    let (mut net, [first, second], producer) = one_node();
    for (consumer, nonce) in [(first, 1), (second, 2)] {
        let interest = Interest::builder(name("/p/1")).lifetime(millis(100 * u64::from(nonce)));
        net.ask(consumer, &interest.build(Nonce::from(nonce)));
    }
    net.run_for(millis(199));
    assert_eq!(net.nodes[0].counters().expired, 0);
    net.run_for(millis(1));
    let counted = [first, second, producer].map(|end| outcomes(&net, end));
    assert_eq!(counted, [[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]]);
    let counters = net.nodes[0].counters();
    assert_eq!((counters.expired, counters.unsatisfied), (1, 1));
}

#[test]
fn refused_interests_are_unsatisfied_but_not_expired() {
    let (mut net, [consumer, _], producer) = one_node();
    net.ask(consumer, &interest("/p/1", 1));
    net.nack(producer, &interest("/p/1", 1), NackReason::NoRoute);
    assert_eq!(net.nacks(consumer).len(), 1);
    net.run_for(millis(10_000));
    let counted = [consumer, producer].map(|end| outcomes(&net, end));
    assert_eq!(counted, [[0; 4], [0; 4]]);
    let counters = net.nodes[0].counters();
    assert_eq!((counters.expired, counters.unsatisfied), (0, 1));
}
