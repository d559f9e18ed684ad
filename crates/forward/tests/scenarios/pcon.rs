//! PCON's forwarding: shares of next hops that fall with marks.

use namecast_forward::{FaceConfig, PconProfile, StrategyKind};
use namecast_packet::lp::NackReason;
use namecast_packet::{LpPacket, Name};
use namecast_units::Duration;

use crate::topology::{End, Net, data, interest, millis};

/// A node with two upstreams, played by the test; the first is cheaper.
struct Two {
    net: Net,
    consumer: End,
    upstreams: [End; 2],
    number: u32,
}

impl Two {
    fn new(profile: PconProfile) -> Self {
        let mut net = Net::new(1);
        let consumer = net.app(0);
        let upstreams = [(); 2].map(|()| net.face(0, FaceConfig::default()));
        for (upstream, cost) in upstreams.into_iter().zip([0, 10]) {
            net.route(0, "/", upstream.1, cost);
        }
        let forwarder = &mut net.nodes[0].forwarder;
        let strategy = StrategyKind::Pcon(profile);
        forwarder.set_strategy(Name::root(), strategy).unwrap();
        Self {
            net,
            consumer,
            upstreams,
            number: 0,
        }
    }

    /// Sends so many Interests, whose Data come marked from the first upstream if they `are_marked`. Returns how many went to each.
    fn exchange(&mut self, count: u32, are_marked: bool) -> [u32; 2] {
        let mut sent = [0; 2];
        for _ in 0..count {
            self.number += 1;
            let uri = format!("/{}", self.number);
            self.net.ask(self.consumer, &interest(&uri, self.number));
            for (place, upstream) in self.upstreams.into_iter().enumerate() {
                if self.net.seen(upstream).is_empty() {
                    continue;
                }
                sent[place] += 1;
                let mut packet = LpPacket::carrying(data(&uri).wire().clone());
                packet.congestion_mark = u64::from(are_marked && place == 0);
                self.net.send(upstream, packet.encode());
            }
            assert_eq!(self.net.data(self.consumer).len(), 1);
        }
        sent
    }
}

/// All go to the cheapest until its Data are marked: 0.98^150 is 5 %. One in a thousand goes to both.
#[test]
fn marks_move_interests_to_another_next_hop() {
    let mut two = Two::new(PconProfile::Published);
    let before = two.exchange(2_000, false);
    assert_eq!(before[0], 2_000);
    assert!((1..10).contains(&before[1]), "{before:?}");
    two.exchange(400, true);
    let after = two.exchange(400, false);
    assert!(after[0] > 0 && after[0] < after[1], "{after:?}");
}

/// 400 Interests, half each give or take five deviations of 10; there are no probes.
#[test]
fn in_ndnsim_shares_are_equal_at_first() {
    let mut two = Two::new(PconProfile::NdnSim);
    let [first, second] = two.exchange(400, false);
    assert_eq!(first + second, 400);
    assert!(first.abs_diff(200) < 50, "{first}");
}

/// Whoever else wants what is pending waits, however late; a retransmission goes on at once.
#[test]
fn others_wait_and_retransmissions_go_on() {
    let mut two = Two::new(PconProfile::Published);
    let other = two.net.app(0);
    two.net.ask(two.consumer, &interest("/a", 1));
    two.net.now += millis(500);
    two.net.ask(other, &interest("/a", 2));
    let first = two.upstreams[0];
    assert_eq!(two.net.interests(first).len(), 1);
    two.net.ask(other, &interest("/a", 3));
    assert_eq!(two.net.interests(first).len(), 1);
    two.net.answer(first, &data("/a"));
    assert_eq!(
        [two.consumer, other].map(|end| two.net.data(end).len()),
        [1, 1]
    );
}

/// Interests that nobody answers take two percent of all from where they went: fifty are enough for everything.
#[test]
fn a_dead_next_hop_loses_its_share() {
    let mut two = Two::new(PconProfile::Published);
    for number in 0..60 {
        two.net
            .ask(two.consumer, &interest(&format!("/lost/{number}"), number));
    }
    two.net.run_for(Duration::from_secs(5));
    for upstream in two.upstreams {
        two.net.seen(upstream);
    }
    let after = two.exchange(100, false);
    assert!(after[0] <= 1, "{after:?}");
}

/// The direction of Interests is congested: their Data tell the consumer. What another says of its Interest is not held against
/// those who come later.
#[test]
fn a_marked_interest_marks_its_data() {
    let mut two = Two::new(PconProfile::Published);
    let mut packet = LpPacket::carrying(interest("/a", 1).wire().clone());
    packet.congestion_mark = 1;
    two.net.send(two.consumer, packet.encode());
    two.net.answer(two.upstreams[0], &data("/a"));
    assert_eq!(two.net.seen(two.consumer)[0].header.congestion_mark, 1);
    two.net.ask(two.consumer, &interest("/a", 2));
    assert_eq!(two.net.seen(two.consumer)[0].header.congestion_mark, 0);
}

/// With one next hop, with none, and with one that is gone in between.
#[test]
fn next_hops_come_and_go() {
    let mut two = Two::new(PconProfile::Published);
    let [first, second] = two.upstreams;
    two.exchange(50, true);
    two.net.ask(two.consumer, &interest("/a", 900));
    two.net.nodes[0].remove_face(two.net.now, first.1);
    two.net.answer(second, &data("/a"));
    for end in [second, two.consumer] {
        two.net.seen(end);
    }
    two.net.ask(two.consumer, &interest("/b", 901));
    assert_eq!(two.net.interests(second).len(), 1);
    two.net
        .nack(second, &interest("/b", 901), NackReason::Congestion);
    assert_eq!(two.net.nacks(two.consumer), [NackReason::Congestion]);
    two.net.nodes[0].remove_face(two.net.now, second.1);
    two.net.ask(two.consumer, &interest("/c", 902));
    assert_eq!(two.net.nacks(two.consumer), [NackReason::NoRoute]);
}
