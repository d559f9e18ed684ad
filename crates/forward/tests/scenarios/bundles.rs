//! Data and an Interest in one packet: two people who talk across a forwarder, and what others may try with that.

use bytes::Bytes;
use namecast_forward::{
    Actions, BundleCounters, Config, Context, DropReason, FaceConfig, FaceId, Hop, Node, Piggyback,
    PiggybackConfig, PitConfig, Scope,
};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, LpPacket, Nonce, Packet, piggyback};
use namecast_units::Instant;

use crate::topology::{End, Net, data, fresh_data, interest, millis, name};

fn install(node: &mut Node) {
    node.forwarder.install(Box::new(Piggyback::default()));
}

/// Alice at node 0 and Bob at node 2, with a forwarder between.
struct Call {
    net: Net,
    alice: End,
    bob: End,
    /// The forwarder's faces to either.
    to_alice: FaceId,
    to_bob: FaceId,
}

impl Call {
    /// With bundles at these nodes.
    fn new(with_bundles: &[usize]) -> Self {
        Self::across(with_bundles, FaceConfig::default())
    }

    fn across(with_bundles: &[usize], link: FaceConfig) -> Self {
        let mut net = Net::new(3);
        for &node in with_bundles {
            install(&mut net.nodes[node]);
        }
        let (near_alice, to_alice) = net.link_with(0, 1, link.clone());
        let (to_bob, near_bob) = net.link_with(1, 2, link);
        let (alice, bob) = (net.app(0), net.app(2));
        net.route(0, "/alice", alice.1, 0);
        net.route(0, "/bob", near_alice, 0);
        net.route(1, "/alice", to_alice, 0);
        net.route(1, "/bob", to_bob, 0);
        net.route(2, "/bob", bob.1, 0);
        net.route(2, "/alice", near_bob, 0);
        Self {
            net,
            alice,
            bob,
            to_alice,
            to_bob,
        }
    }

    /// One side answers what it was asked, and asks for the next packet of the other.
    fn answer_and_ask(&mut self, from: End, answer: &Data, asked: &Interest) {
        self.net.answer(from, answer);
        self.net.ask(from, asked);
    }

    /// `count` packets each way, with one Interest waiting on each side; returns the forwarder's frames to Alice and to Bob.
    fn talk(&mut self, count: u32) -> [u64; 2] {
        let before = [self.to_alice, self.to_bob].map(|face| self.frames(face));
        self.net.ask(self.alice, &said("bob", 0));
        for number in 0..count {
            let heard = packets(self.net.seen(self.bob));
            assert_eq!(heard.last(), Some(&Packet::Interest(said("bob", number))));
            self.answer_and_ask(self.bob, &spoken("bob", number), &said("alice", number));
            let expected = [
                Packet::Data(spoken("bob", number)),
                Packet::Interest(said("alice", number)),
            ];
            assert_eq!(packets(self.net.seen(self.alice)), expected);
            self.net.answer(self.alice, &spoken("alice", number));
            if number + 1 < count {
                self.net.ask(self.alice, &said("bob", number + 1));
            }
        }
        // The last one waits for an Interest that does not come.
        self.net.run_for(millis(1));
        let heard = packets(self.net.seen(self.bob));
        assert_eq!(heard, [Packet::Data(spoken("alice", count - 1))]);
        let after = [self.to_alice, self.to_bob].map(|face| self.frames(face));
        [after[0] - before[0], after[1] - before[1]]
    }

    /// Frames that the forwarder sent by a face.
    fn frames(&self, face: FaceId) -> u64 {
        let face = self.net.nodes[1].forwarder.face(face);
        face.unwrap().counters.outgoing.frames
    }

    fn bundles(&self) -> BundleCounters {
        self.net.nodes[1].forwarder.counters().bundles
    }
}

fn said(who: &str, number: u32) -> Interest {
    interest(&format!("/{who}/call/x/{number}"), number + 1)
}

fn spoken(who: &str, number: u32) -> Data {
    data(&format!("/{who}/call/x/{number}"))
}

fn packets(seen: Vec<crate::topology::Seen>) -> Vec<Packet> {
    seen.into_iter().map(|seen| seen.packet).collect()
}

/// One packet each way for N exchanges, and one more from the side that began: N and N + 1 frames instead of 2N. The FIB is asked about
/// the first Interest of each direction alone, of which Alice's first comes by itself.
#[test]
fn a_talk_takes_half_the_packets_and_one_look_up() {
    let mut call = Call::new(&[0, 1, 2]);
    assert_eq!(call.talk(50), [50, 51]);
    let bundles = call.bundles();
    assert_eq!(
        (bundles.received, bundles.sent, bundles.joined),
        (99, 99, 0)
    );
    assert_eq!((bundles.looked_up, bundles.followed), (2, 97));
    let mut plain = Call::new(&[]);
    assert_eq!(plain.talk(50), [100, 100]);
    assert_eq!(plain.bundles(), BundleCounters::default());
    // What is kept are Data alone.
    call.net.ask(call.alice, &interest("/bob/call/x/7", 700));
    assert_eq!(call.net.data(call.alice), [spoken("bob", 7)]);
    assert_eq!(call.net.interests(call.bob), []);
}

/// Each node with or without bundles: those who have none get and send packets one by one.
#[test]
fn a_talk_goes_on_where_some_know_nothing_of_bundles() {
    for (with_bundles, frames) in [
        (&[0, 2][..], [100, 100]),
        (&[1][..], [100, 100]),
        (&[0, 1][..], [100, 100]),
        (&[1, 2][..], [50, 100]),
    ] {
        let mut call = Call::new(with_bundles);
        let [to_alice, to_bob] = call.talk(50);
        let apart = u64::from(!with_bundles.contains(&2)) + u64::from(!with_bundles.contains(&0));
        assert!(
            to_alice <= 100 && to_bob <= 100,
            "{with_bundles:?} {apart} {frames:?} {to_alice} {to_bob}"
        );
    }
}
