//! Data and an Interest in one packet: two people who talk across a forwarder, and what others may try with that.

use namecast_forward::{
    BundleCounters, Config, FaceConfig, FaceId, Node, Piggyback, PiggybackConfig,
};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, LpPacket, Packet, piggyback};
use namecast_units::Instant;

use crate::topology::{End, Net, data, interest, millis, name};

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

    /// One side answers what it was asked, and requests the next packet of the other.
    fn answer_and_ask(&mut self, from: End, answer: &Data, asked: &Interest) {
        self.net.answer(from, answer);
        self.net.ask(from, asked);
    }

    /// Packets with these numbers each way, with one Interest waiting on each side; returns the forwarder's frames to Alice and to Bob.
    fn talk(&mut self, numbers: core::ops::Range<u32>) -> [u64; 2] {
        let before = [self.to_alice, self.to_bob].map(|face| self.frames(face));
        self.net.ask(self.alice, &said("bob", numbers.start));
        self.net.run_for(millis(2));
        for number in numbers.clone() {
            let heard = packets(self.net.seen(self.bob));
            assert_eq!(heard.last(), Some(&Packet::Interest(said("bob", number))));
            self.answer_and_ask(self.bob, &spoken("bob", number), &said("alice", number));
            let expected = [
                Packet::Data(spoken("bob", number)),
                Packet::Interest(said("alice", number)),
            ];
            assert_eq!(packets(self.net.seen(self.alice)), expected);
            self.net.answer(self.alice, &spoken("alice", number));
            if number + 1 < numbers.end {
                self.net.ask(self.alice, &said("bob", number + 1));
            }
        }
        // The last one waits for an Interest that does not come.
        self.net.run_for(millis(1));
        let heard = packets(self.net.seen(self.bob));
        assert_eq!(heard, [Packet::Data(spoken("alice", numbers.end - 1))]);
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
    assert_eq!(call.talk(0..50), [50, 51]);
    let bundles = call.bundles();
    assert_eq!(
        (bundles.received, bundles.sent, bundles.joined),
        (99, 99, 0)
    );
    assert_eq!((bundles.looked_up, bundles.followed), (2, 97));
    let mut plain = Call::new(&[]);
    assert_eq!(plain.talk(0..50), [100, 100]);
    assert_eq!(plain.bundles(), BundleCounters::default());
    // What is kept are Data alone.
    call.net.ask(call.alice, &interest("/bob/call/x/7", 700));
    assert_eq!(call.net.data(call.alice), [spoken("bob", 7)]);
    assert_eq!(call.net.interests(call.bob), []);
}

/// Frames of 50 exchanges to Alice and to Bob: half where both ends of a link have bundles, and the side that sends joins them.
#[test]
fn a_talk_goes_on_where_some_know_nothing_of_bundles() {
    for (with_bundles, frames) in [
        (&[0, 2][..], [100, 100]),
        (&[1][..], [100, 100]),
        (&[0, 1][..], [100, 100]),
        (&[1, 2][..], [100, 100]),
    ] {
        let mut call = Call::new(with_bundles);
        assert_eq!(call.talk(0..50), frames, "{with_bundles:?}");
        let bundles = call.bundles();
        let is_between = with_bundles.len() == 2 && with_bundles.contains(&1);
        assert_eq!(bundles.split_neighbour > 40, is_between, "{with_bundles:?}");
        assert_eq!(bundles.sent, 0);
    }
}

/// How many frames a node makes of a bundle, and of Data and an Interest, for a neighbour whose link takes `mtu` octets.
fn frames(payload: usize, link: &FaceConfig) -> [usize; 2] {
    [true, false].map(|is_bundle| {
        let mut node = Node::new(Config::default());
        install(&mut node);
        let [left, right] = [(); 2].map(|()| node.add_face(link.clone()).unwrap());
        node.forwarder.add_route(name("/left"), left, 0).unwrap();
        node.forwarder.add_route(name("/right"), right, 0).unwrap();
        let packet = Data::builder(name("/left/1")).content(vec![7; payload]);
        let packet = packet.sign(&NullSigner);
        let asked = interest("/right/2", 7);
        let now = Instant::ZERO;
        let wire = interest("/left/1", 1).wire().clone();
        node.handle_frame(now, right, wire);
        while node.poll_output().is_some() {}
        let value = piggyback::encode(&asked, packet.name());
        let mut whole = LpPacket::carrying(packet.wire().clone());
        whole.piggybacked_interest = is_bundle.then_some(value);
        let pieces = namecast_forward::fragment(&whole, 0, 1_400, 400).unwrap();
        pieces
            .into_iter()
            .for_each(|piece| node.handle_frame(now, left, piece));
        if !is_bundle {
            node.handle_frame(now, left, asked.wire().clone());
        }
        let sent = core::iter::from_fn(|| node.poll_output());
        let sizes = sent.map(|it| it.frame.len());
        sizes.inspect(|&size| assert!(size <= 1_400)).count()
    })
}

/// Payloads around those at which Data take one frame more: a bundle takes one frame less than its parts, or as many.
#[test]
fn a_bundle_takes_no_frame_that_its_parts_would_not() {
    let on = FaceConfig {
        extension_fields: namecast_forward::ExtensionFields::On,
        mtu: Some(1_400),
        ..FaceConfig::default()
    };
    let reliable = FaceConfig {
        reliability: true,
        ..on.clone()
    };
    for link in [on, reliable] {
        let mut joint = [0; 2];
        for payload in (1_250..1_400).chain(2_600..2_800).chain(3_900..4_200) {
            let [bundle, apart] = frames(payload, &link);
            assert!(
                (apart - 1..=apart).contains(&bundle),
                "{payload}: {bundle} {apart}"
            );
            joint[usize::from(bundle == apart)] += 1;
        }
        let [less, equal] = joint;
        // The Interest takes about 40 octets of 650.
        assert!(less > 400 && (60..250).contains(&equal), "{less} {equal}");
    }
    assert_eq!(
        frames(
            100,
            &FaceConfig {
                mtu: None,
                ..FaceConfig::default()
            }
        )[1],
        2
    );
}

/// An application with a neighbour that takes bundles and has requested `/app/0` to `/app/9`.
struct Local {
    net: Net,
    app: End,
    neighbour: End,
}

impl Local {
    fn new(config: PiggybackConfig) -> Self {
        let mut net = Net::new(1);
        net.nodes[0]
            .forwarder
            .install(Box::new(Piggyback::new(config)));
        let app = net.app(0);
        let neighbour = net.face(
            0,
            FaceConfig {
                extension_fields: namecast_forward::ExtensionFields::On,
                ..FaceConfig::default()
            },
        );
        net.route(0, "/app", app.1, 0);
        net.route(0, "/", neighbour.1, 0);
        for number in 0..10 {
            net.ask(neighbour, &interest(&format!("/app/{number}"), number));
        }
        net.seen(app);
        Self {
            net,
            app,
            neighbour,
        }
    }

    /// The application answers, or asks. Returns whether the neighbour hears nothing, packets one by one, or bundles.
    fn data(&mut self, number: u32) -> Vec<bool> {
        self.net.answer(self.app, &data(&format!("/app/{number}")));
        self.heard()
    }

    fn interest(&mut self, number: u32) -> Vec<bool> {
        self.net
            .ask(self.app, &interest(&format!("/b/{number}"), 100 + number));
        self.heard()
    }

    fn after(&mut self, micros: u64) -> Vec<bool> {
        self.net.run_for(core::time::Duration::from_micros(micros));
        self.heard()
    }

    fn heard(&mut self) -> Vec<bool> {
        let seen = self.net.seen(self.neighbour).into_iter();
        seen.map(|seen| seen.header.piggybacked_interest.is_some())
            .collect()
    }
}

/// Either may be first; 1 ms is the longest that one waits. After two waits of a kind in vain, packets of that kind wait no more until
/// one of the other comes right behind them.
#[test]
fn packets_of_an_application_wait_a_moment_for_each_other() {
    let mut local = Local::new(PiggybackConfig::default());
    assert_eq!(local.data(0), []);
    assert_eq!(local.after(999), []);
    assert_eq!(local.interest(0), [true]);
    assert_eq!(local.interest(1), []);
    assert_eq!(local.data(1), [true]);
    // Two that wait together wait once.
    assert_eq!([local.interest(2), local.interest(3)], [[], []]);
    assert_eq!(local.after(1_000), [false, false]);
    assert_eq!(local.interest(4), []);
    assert_eq!(local.after(1_000), [false]);
    assert_eq!(local.interest(5), [false]);
    assert_eq!(local.after(5_000), []);
    // Data have not waited in vain.
    assert_eq!([local.data(2), local.interest(6)], [vec![], vec![true]]);
    assert_eq!(local.after(5_000), []);
    for number in [3, 4] {
        assert_eq!(local.data(number), []);
        assert_eq!(local.after(1_000), [false]);
    }
    assert_eq!(local.data(5), [false]);
    assert_eq!(local.interest(7), [false]);
    assert_eq!(local.after(5_000), []);
    // Several at once, the oldest with the oldest.
    assert_eq!([local.data(6), local.data(7)], [[], []]);
    assert_eq!([local.interest(8), local.interest(9)], [[true], [true]]);
    let counted = local.net.nodes[0].counters().bundles;
    assert_eq!((counted.sent, counted.joined), (5, 5));
    let counters = local.net.nodes[0].face_counters(local.neighbour.1).unwrap();
    let outgoing = counters.outgoing;
    assert_eq!(
        (outgoing.data, outgoing.interests, outgoing.frames),
        (8, 10, 13)
    );
}

/// With no wait, what is given before the output is taken travels together, and nothing else waits.
#[test]
fn no_more_wait_than_may_and_none_if_none_may() {
    let mut local = Local::new(PiggybackConfig {
        max_waiting: 1,
        ..PiggybackConfig::default()
    });
    assert_eq!((local.data(0), local.data(1)), (vec![], vec![false]));
    let mut local = Local::new(PiggybackConfig {
        wait: core::time::Duration::ZERO,
        ..PiggybackConfig::default()
    });
    assert_eq!(
        (local.data(0), local.interest(0)),
        (vec![false], vec![false])
    );
    let together = [
        data("/app/1").wire().clone(),
        interest("/b/1", 101).wire().clone(),
    ];
    let (node, face) = local.app;
    for frame in together {
        local.net.nodes[node].handle_frame(local.net.now, face, frame);
    }
    local.net.settle();
    assert_eq!(local.heard(), [true]);
}

/// Signed with the Data, from an application that says that the Interest is to be sent: the Data go on whole to everybody, the Interest
/// by itself to those who take no bundles, and what a content store answers with requests nothing.
#[test]
fn an_interest_within_data_goes_with_them_and_is_sent_once() {
    let asked = interest("/b/1", 7);
    let value = piggyback::encode(&asked, &name("/app/0"));
    let packet = Data::builder(name("/app/0")).content("x").embed(value);
    let packet = packet.sign(&NullSigner);
    let marked = LpPacket::bundle(packet.wire(), &[piggyback::EMBEDDED]);
    let mut local = Local::new(PiggybackConfig::default());
    local.net.send(local.app, marked.clone());
    let seen = local.net.seen(local.neighbour);
    assert_eq!(packets(seen.clone()), [Packet::Data(packet.clone())]);
    let value = seen[0].header.piggybacked_interest.as_deref();
    assert_eq!(value, Some(&[piggyback::EMBEDDED][..]));
    assert_eq!(local.net.nodes[0].forwarder.pending_interests(), 10);
    local.net.answer(local.neighbour, &data("/b/1"));
    assert_eq!(local.net.data(local.app), [data("/b/1")]);
    // From the content store it is inert, and so it is where nothing is said of it.
    local.net.ask(local.neighbour, &interest("/app/0", 50));
    assert_eq!(local.heard(), [false]);
    let value = piggyback::encode(&interest("/b/2", 8), &name("/app/1"));
    let other = Data::builder(name("/app/1")).embed(value);
    local.net.answer(local.app, &other.sign(&NullSigner));
    local.net.run_for(millis(2));
    assert_eq!(local.heard(), [false]);

    let mut net = Net::new(1);
    install(&mut net.nodes[0]);
    let (app, plain) = (net.app(0), net.face(0, FaceConfig::default()));
    net.route(0, "/app", app.1, 0);
    net.route(0, "/", plain.1, 0);
    net.ask(plain, &interest("/app/0", 1));
    net.send(app, marked);
    let expected = [Packet::Data(packet), Packet::Interest(asked)];
    assert_eq!(packets(net.seen(plain)), expected);
}

/// A bundle is lost, and with it both halves; what is retransmitted by itself gets there, and bundles go on.
#[test]
fn what_was_lost_is_requested_one_by_one() {
    let mut call = Call::new(&[0, 1, 2]);
    call.talk(0..3);
    call.net.ask(call.alice, &said("bob", 10));
    call.net.run_for(millis(1));
    call.net.seen(call.bob);
    call.net.cut((1, call.to_alice));
    call.answer_and_ask(call.bob, &spoken("bob", 10), &said("alice", 10));
    assert_eq!(call.net.seen(call.alice), []);
    call.net
        .mend((0, FaceId::from_number(256)), (1, call.to_alice));
    call.net.run_for(millis(300));
    // From the content store of the forwarder.
    call.net.ask(call.alice, &interest("/bob/call/x/10", 99));
    call.net.run_for(millis(1));
    assert_eq!(call.net.data(call.alice), [spoken("bob", 10)]);
    call.net.ask(call.bob, &interest("/alice/call/x/10", 98));
    call.net.run_for(millis(1));
    assert_eq!(call.net.interests(call.alice).len(), 1);
    assert_eq!(call.talk(20..40), [20, 21]);
}
