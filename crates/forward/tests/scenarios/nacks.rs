//! Nacks come back merged, to those who wait, and only where links carry them.

use namecast_forward::{
    AsfConfig, Config, DropReason, FaceConfig, LinkType, PitConfig, StrategyKind, Suppression,
};
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, LpPacket, Nonce};

use crate::topology::{End, Net, data, interest, millis, name};

/// A consumer, and two upstreams that both got `/p` from it.
fn asked_both() -> (Net, End, [End; 2]) {
    let mut net = Net::new(1);
    let (consumer, first, second) = (net.app(0), net.app(0), net.app(0));
    net.route(0, "/p", first.1, 1);
    net.route(0, "/p", second.1, 2);
    net.ask(consumer, &interest("/p", 1));
    net.run_for(millis(10));
    net.ask(consumer, &interest("/p", 2));
    assert_eq!(net.interests(first), [interest("/p", 1)]);
    assert_eq!(net.interests(second), [interest("/p", 2)]);
    (net, consumer, [first, second])
}

#[test]
fn the_consumer_hears_the_mildest_reason_once_all_upstreams_refused() {
    let (mut net, consumer, [first, second]) = asked_both();
    net.nack(first, &interest("/p", 1), NackReason::NoRoute);
    assert_eq!(net.seen(consumer), []);
    net.nack(second, &interest("/p", 2), NackReason::Congestion);
    let seen = net.seen(consumer);
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header.nack, Some(NackReason::Congestion));
    // With the Interest that the consumer sent last, so that it knows which one failed.
    assert_eq!(seen[0].packet.wire(), interest("/p", 2).wire());
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);
}

#[test]
fn data_from_the_other_upstream_still_counts_after_a_nack() {
    let (mut net, consumer, [first, second]) = asked_both();
    net.nack(first, &interest("/p", 1), NackReason::Congestion);
    net.answer(second, &data("/p"));
    assert_eq!(net.data(consumer), [data("/p")]);
}

#[test]
fn a_nack_that_nobody_asked_for_changes_nothing() {
    let (mut net, consumer, [first, second]) = asked_both();
    net.nack(first, &interest("/p", 99), NackReason::NoRoute);
    net.nack(second, &interest("/p", 1), NackReason::NoRoute);
    net.nack(consumer, &interest("/p", 2), NackReason::NoRoute);
    net.nack(first, &interest("/other", 1), NackReason::NoRoute);
    assert_eq!(
        net.nodes[0]
            .counters()
            .drops
            .get(DropReason::UnexpectedNack),
        4
    );
    net.answer(first, &data("/p"));
    assert_eq!(net.data(consumer).len(), 1);
}

#[test]
fn no_route_is_said_at_once_with_the_token() {
    let mut net = Net::new(1);
    let consumer = net.app(0);
    let mut packet = LpPacket::carrying(interest("/p", 1).wire().clone());
    packet.pit_token = Some(bytes::Bytes::from_static(b"token!"));
    net.send(consumer, packet.encode());
    let seen = net.seen(consumer);
    assert_eq!(seen[0].header.nack, Some(NackReason::NoRoute));
    assert_eq!(seen[0].header.pit_token.as_deref(), Some(&b"token!"[..]));
    assert_eq!(
        (
            net.nodes[0].forwarder.pending_interests(),
            net.nodes[0].poll_timeout()
        ),
        (0, None)
    );
    assert_eq!(net.nodes[0].counters().drops.get(DropReason::NoRoute), 1);
}

#[test]
fn shared_links_neither_carry_nor_heed_nacks() {
    let mut net = Net::new(1);
    let shared = net.face(
        0,
        FaceConfig {
            link_type: LinkType::MultiAccess,
            ..FaceConfig::default()
        },
    );
    let consumer = net.app(0);
    net.ask(shared, &interest("/none", 1));
    assert_eq!(net.seen(shared), []);
    net.route(0, "/p", shared.1, 0);
    net.ask(consumer, &interest("/p", 2));
    net.nack(shared, &interest("/p", 2), NackReason::NoRoute);
    assert_eq!(
        (
            net.seen(consumer),
            net.nodes[0].forwarder.pending_interests()
        ),
        (vec![], 1)
    );
}

/// Two neighbours that each asked the other: one must give in, or both wait in vain.
#[test]
fn the_last_upstream_is_told_if_it_waits_for_us() {
    let (mut net, consumer, [first, second]) = asked_both();
    // The second upstream asks the same of us; suppressed, since the latest transmission is young.
    net.ask(second, &interest("/p", 3));
    net.nack(first, &interest("/p", 1), NackReason::NoRoute);
    assert_eq!(net.nacks(second), [NackReason::NoRoute]);
    assert_eq!(
        net.seen(consumer),
        [],
        "the second may still have another way"
    );
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 1);
}

/// After all upstreams refused, the next Interest starts anew, without suppression.
#[test]
fn a_refused_interest_may_be_sent_again_at_once() {
    let patient = Suppression {
        initial: millis(10_000),
        max: millis(10_000),
        multiplier: 2,
    };
    let mut net = Net::with(Config {
        pit: PitConfig {
            suppression: patient,
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let (consumer, producer) = (net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    net.ask(consumer, &interest("/p", 1));
    net.nack(producer, &interest("/p", 1), NackReason::Congestion);
    net.ask(consumer, &interest("/p", 2));
    assert_eq!(net.interests(producer).len(), 2);
}

/// A quota of ten: 15 of 25 are refused at once, and what is pending is still answered.
#[test]
fn a_face_that_has_used_its_quota_is_told_but_served() {
    let mut net = Net::with(Config {
        pit: PitConfig {
            face_capacity: 10,
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let (consumer, producer) = (net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    let asks = |number| {
        Interest::builder(name(&format!("/{number}")))
            .lifetime(millis(100))
            .build(Nonce::from(number))
    };
    (0..25).for_each(|number| net.ask(consumer, &asks(number)));
    assert_eq!(net.nacks(consumer), [NackReason::Congestion; 15]);
    assert_eq!(net.nodes[0].counters().drops.get(DropReason::FaceQuota), 15);
    assert_eq!(net.interests(producer).len(), 10);
    let again = Interest::builder(name("/3")).lifetime(millis(100));
    net.ask(consumer, &again.build(Nonce::from(100)));
    assert_eq!(net.seen(consumer), []);
    net.answer(producer, &data("/3"));
    assert_eq!(net.data(consumer), [data("/3")]);
    net.run_for(millis(100));
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);
    net.ask(consumer, &asks(50));
    assert_eq!(net.interests(producer).len(), 1);
}

/// Of two upstreams one let its Interest's lifetime pass and the other refuses: nobody is left to wait for.
#[test]
fn an_upstream_whose_time_is_over_is_waited_for_no_longer() {
    for kind in [
        StrategyKind::BestRoute,
        StrategyKind::Asf(AsfConfig::DEFAULT),
    ] {
        let mut net = Net::new(1);
        let (consumer, first, second) = (net.app(0), net.app(0), net.app(0));
        net.route(0, "/p", first.1, 1);
        net.route(0, "/p", second.1, 2);
        net.nodes[0]
            .forwarder
            .set_strategy(name("/"), kind)
            .unwrap();
        let short = Interest::builder(name("/p")).lifetime(millis(20));
        net.ask(consumer, &short.build(Nonce::from(1)));
        net.run_for(millis(10));
        net.ask(consumer, &interest("/p", 2));
        assert_eq!(net.interests(second), [interest("/p", 2)]);
        net.run_for(millis(10));
        net.nack(second, &interest("/p", 2), NackReason::NoRoute);
        assert_eq!(net.nacks(consumer), [NackReason::NoRoute], "{kind:?}");
        assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);
    }
}
