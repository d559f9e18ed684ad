//! Best-route, multicast and random choose as NFD's do.

use core::time::Duration;

use namecast_forward::StrategyKind;
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Nonce};

use crate::topology::{End, Net, data, interest, millis, name};

fn with_upstreams<const N: usize>(strategy: StrategyKind) -> (Net, End, [End; N]) {
    let mut net = Net::new(1);
    let consumer = net.app(0);
    let upstreams = core::array::from_fn(|_| net.app(0));
    for (cost, upstream) in (1..).zip(&upstreams) {
        net.route(0, "/p", upstream.1, cost);
    }
    net.nodes[0]
        .forwarder
        .set_strategy(name("/p"), strategy)
        .unwrap();
    (net, consumer, upstreams)
}

#[test]
fn the_cheapest_hop_is_asked_first_and_retransmissions_try_the_others() {
    let (mut net, consumer, upstreams) = with_upstreams::<3>(StrategyKind::BestRoute);
    // Intervals are 10, 20, 40 ms, so each of these is due to the nanosecond; after the last hop, the first again.
    for (nonce, wait) in (1..).zip([0, 10, 20, 40]) {
        net.run_for(millis(wait));
        net.ask(consumer, &interest("/p", nonce));
    }
    let sent = upstreams.map(|upstream| net.interests(upstream));
    let nonces = sent.map(|sent| sent.iter().map(|i| i.nonce().unwrap()).collect::<Vec<_>>());
    let expected = [vec![1, 4], vec![2], vec![3]];
    assert_eq!(
        nonces,
        expected.map(|all| all.into_iter().map(Nonce::from).collect::<Vec<_>>())
    );
}

#[test]
fn a_retransmission_is_held_back_until_the_interval_is_over() {
    let (mut net, consumer, [upstream]) = with_upstreams(StrategyKind::BestRoute);
    net.ask(consumer, &interest("/p", 1));
    net.run_for(Duration::from_nanos(9_999_999));
    net.ask(consumer, &interest("/p", 2));
    assert_eq!(net.interests(upstream).len(), 1);
    net.run_for(Duration::from_nanos(1));
    net.ask(consumer, &interest("/p", 3));
    assert_eq!(net.interests(upstream), [interest("/p", 3)]);
    assert_eq!(net.nodes[0].counters().aggregated, 1);
}

/// Retransmitting every millisecond: sent at 0, then after 10, 20, 40, 80, 160, and every 250 ms from then on.
#[test]
fn the_interval_doubles_up_to_a_quarter_of_a_second() {
    let (mut net, consumer, [upstream]) = with_upstreams(StrategyKind::BestRoute);
    let mut sent_at = Vec::new();
    for at in 0..1_000 {
        net.ask(consumer, &interest("/p", at));
        if !net.interests(upstream).is_empty() {
            sent_at.push(at);
        }
        net.run_for(millis(1));
    }
    assert_eq!(sent_at, [0, 10, 30, 70, 150, 310, 560, 810]);
}

#[test]
fn multicast_asks_all_but_the_face_it_came_from() {
    let (mut net, consumer, upstreams) = with_upstreams::<3>(StrategyKind::Multicast);
    net.ask(consumer, &interest("/p", 1));
    for upstream in upstreams {
        assert_eq!(net.interests(upstream), [interest("/p", 1)]);
    }
    net.run_for(millis(10));
    net.ask(upstreams[0], &interest("/p", 2));
    let again = upstreams.map(|upstream| net.interests(upstream).len());
    assert_eq!(again, [0, 1, 1]);
    // Each upstream has an interval of its own: the first's is still 10 ms and over, the others' are 20 ms and running.
    net.run_for(millis(19));
    net.ask(consumer, &interest("/p", 3));
    let again = upstreams.map(|upstream| net.interests(upstream).len());
    assert_eq!(again, [1, 0, 0]);
    net.answer(upstreams[2], &data("/p"));
    assert_eq!(
        (net.data(consumer).len(), net.data(upstreams[0]).len()),
        (1, 1)
    );
    // The slower upstreams' answers find nobody waiting.
    net.answer(upstreams[1], &data("/p"));
    assert_eq!(net.seen(consumer), []);
}

#[test]
fn multicast_keeps_interests_for_next_hops_that_come_later() {
    let (mut net, consumer, []) = with_upstreams(StrategyKind::Multicast);
    net.ask(consumer, &interest("/p/1", 1));
    net.ask(
        consumer,
        &Interest::builder(name("/p/2"))
            .lifetime(millis(10))
            .build(Nonce::from(2)),
    );
    assert_eq!(net.seen(consumer), []);
    net.run_for(millis(10));
    let late = net.app(0);
    net.route(0, "/p", late.1, 0);
    net.settle();
    assert_eq!(net.interests(late), [interest("/p/1", 1)]);
    // A change of cost is no new next hop; best-route does not look back.
    net.route(0, "/p", late.1, 5);
    net.settle();
    assert_eq!(net.seen(late), []);
}

#[test]
fn the_longest_prefix_chooses_the_strategy() {
    let (mut net, consumer, upstreams) = with_upstreams::<2>(StrategyKind::Multicast);
    net.nodes[0]
        .forwarder
        .set_strategy(name("/p/single"), StrategyKind::BestRoute)
        .unwrap();
    net.ask(consumer, &interest("/p/single/1", 1));
    assert_eq!(upstreams.map(|u| net.interests(u).len()), [1, 0]);
    net.nodes[0].forwarder.unset_strategy(&name("/p/single"));
    net.ask(consumer, &interest("/p/single/2", 2));
    assert_eq!(upstreams.map(|u| net.interests(u).len()), [1, 1]);
}

/// Two neighbours of a consumer both ask one node, which so gets one Interest twice. With multicast it asks upstream once and
/// answers both, so that either neighbour may fail meanwhile; with best-route the second copy is a loop.
#[test]
fn copies_that_come_two_ways_are_both_answered_with_multicast() {
    for (strategy, is_answered) in [
        (StrategyKind::Multicast, true),
        (StrategyKind::BestRoute, false),
    ] {
        let (mut net, first, [upstream]) = with_upstreams::<1>(strategy);
        let second = net.app(0);
        net.ask(first, &interest("/p", 1));
        net.ask(second, &interest("/p", 1));
        assert_eq!(net.interests(upstream), [interest("/p", 1)]);
        if !is_answered {
            assert_eq!(net.nacks(second), [NackReason::Duplicate]);
        }
        net.answer(upstream, &data("/p"));
        let got = [first, second].map(|end| net.data(end).len());
        assert_eq!(got, [1, usize::from(is_answered)], "{strategy:?}");
    }
}

/// What comes back from where it was sent to is a loop all the same.
#[test]
fn multicast_takes_no_loop_for_another_way() {
    let (mut net, consumer, upstreams) = with_upstreams::<2>(StrategyKind::Multicast);
    net.ask(consumer, &interest("/p", 1));
    assert_eq!(net.interests(upstreams[0]).len(), 1);
    net.ask(upstreams[0], &interest("/p", 1));
    assert_eq!(net.nacks(upstreams[0]), [NackReason::Duplicate]);
    net.answer(upstreams[1], &data("/p"));
    assert_eq!(
        (net.data(consumer).len(), net.data(upstreams[0]).len()),
        (1, 0)
    );
}

/// Asks `count` times, each name once, and lets whoever is asked answer; tells how often each was.
fn shares<const N: usize>(
    net: &mut Net,
    consumer: End,
    upstreams: [End; N],
    count: u32,
) -> [usize; N] {
    let mut asked = [0; N];
    for number in 0..count {
        let uri = format!("/p/{number}");
        net.ask(consumer, &interest(&uri, number));
        for (upstream, asked) in upstreams.into_iter().zip(&mut asked) {
            if !net.interests(upstream).is_empty() {
                *asked += 1;
                net.answer(upstream, &data(&uri));
            }
        }
        assert_eq!(net.data(consumer).len(), 1);
    }
    asked
}

/// Of 9000 Interests each of three next hops gets 3000, and σ = √(9000 · 1/3 · 2/3) = 45.
#[test]
fn random_shares_equally_whatever_the_cost() {
    let (mut net, consumer, upstreams) = with_upstreams::<3>(StrategyKind::Random);
    let asked = shares(&mut net, consumer, upstreams, 9_000);
    assert_eq!(asked.iter().sum::<usize>(), 9_000);
    for share in asked {
        assert!((2_821..=3_179).contains(&share), "{asked:?}");
    }
}

/// Costs of 0, 1 and 3 stand for 1, 1/2 and 1/4: of 7000 Interests 4000, 2000 and 1000, with σ of 41, 38 and 29.
#[test]
fn weighted_shares_by_cost() {
    let (mut net, consumer, upstreams) = with_upstreams::<3>(StrategyKind::Weighted);
    for (upstream, cost) in upstreams.iter().zip([0, 1, 3]) {
        net.route(0, "/p", upstream.1, cost);
    }
    let asked = shares(&mut net, consumer, upstreams, 7_000);
    assert_eq!(asked.iter().sum::<usize>(), 7_000);
    for ((share, mean), deviation) in asked
        .into_iter()
        .zip([4_000, 2_000, 1_000])
        .zip([41, 38, 29])
    {
        assert!(share.abs_diff(mean) <= 4 * deviation, "{asked:?}");
    }
}

#[test]
fn random_never_sends_back_and_refuses_what_has_nowhere_to_go() {
    let (mut net, consumer, upstreams) = with_upstreams::<2>(StrategyKind::Random);
    for nonce in 0..100 {
        net.ask(upstreams[0], &interest(&format!("/p/{nonce}"), nonce));
    }
    assert_eq!(upstreams.map(|u| net.interests(u).len()), [0, 100]);
    net.nodes[0]
        .forwarder
        .remove_route(&name("/p"), upstreams[1].1);
    net.ask(upstreams[0], &interest("/p/none", 1));
    assert_eq!(net.nacks(upstreams[0]), [NackReason::NoRoute]);
    // Its own Nacks are those of best-route.
    net.ask(consumer, &interest("/p/some", 2));
    net.nack(
        upstreams[0],
        &interest("/p/some", 2),
        NackReason::Congestion,
    );
    assert_eq!(net.nacks(consumer), [NackReason::Congestion]);
}

#[test]
fn random_holds_retransmissions_back_as_best_route_does() {
    let (mut net, consumer, [upstream]) = with_upstreams(StrategyKind::Random);
    let mut sent_at = Vec::new();
    for at in 0..100 {
        net.ask(consumer, &interest("/p", at));
        if !net.interests(upstream).is_empty() {
            sent_at.push(at);
        }
        net.run_for(millis(1));
    }
    assert_eq!(sent_at, [0, 10, 30, 70]);
}

/// Multicast passes no Nack on, whatever upstreams say; with the last one the Interest ends.
#[test]
fn multicast_keeps_nacks_to_itself() {
    let (mut net, consumer, upstreams) = with_upstreams::<2>(StrategyKind::Multicast);
    net.ask(consumer, &interest("/p", 1));
    net.nack(upstreams[0], &interest("/p", 1), NackReason::NoRoute);
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 1);
    net.nack(upstreams[1], &interest("/p", 1), NackReason::NoRoute);
    assert_eq!(
        (
            net.seen(consumer),
            net.nodes[0].forwarder.pending_interests()
        ),
        (vec![], 0)
    );
}
