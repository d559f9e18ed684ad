//! What others may try with bundles: an Interest that comes with Data gets nowhere where it would not have come by itself.

use bytes::Bytes;
use namecast_forward::{
    Actions, BundleCounters, Config, ContentStoreConfig, Context, DropReason, ExtensionFields,
    FaceConfig, Hop, InterestRate, Piggyback, PitConfig,
};
use namecast_packet::{Interest, LpPacket, Nonce, Packet, piggyback};
use namecast_units::{ByteSize, Instant, Random};

use crate::topology::{End, Net, Seen, data, interest, millis, name};

/// A node with bundles between two neighbours that take them, played by the test, and a third one.
struct Between {
    net: Net,
    left: End,
    right: End,
    other: End,
}

fn neighbour() -> FaceConfig {
    FaceConfig {
        extension_fields: ExtensionFields::On,
        ..FaceConfig::default()
    }
}

impl Between {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let mut net = Net::with(config);
        net.nodes[0].forwarder.install(Box::<Piggyback>::default());
        let [left, right, other] = [(); 3].map(|()| net.face(0, neighbour()));
        net.route(0, "/left", left.1, 0);
        net.route(0, "/right", right.1, 0);
        Self {
            net,
            left,
            right,
            other,
        }
    }

    /// The neighbour on the right requests Data of the left, which come with such a value. Returns what goes to the right.
    fn pass(&mut self, uri: &str, value: &[u8]) -> Vec<Seen> {
        self.net.ask(self.right, &interest(uri, 1));
        self.net.seen(self.left);
        let frame = LpPacket::bundle(data(uri).wire(), value);
        self.net.send(self.left, frame);
        self.net.seen(self.right)
    }

    /// As [`pass`](Self::pass), with a whole Interest.
    fn pass_with(&mut self, uri: &str, asked: &Interest) -> Vec<Seen> {
        self.pass(uri, &piggyback::encode(asked, &name(uri)))
    }

    fn counted(&self) -> BundleCounters {
        let forwarder = &self.net.nodes[0].forwarder;
        let counted = forwarder.counters().bundles;
        let mut sum = BundleCounters::default();
        for face in [self.left, self.right, self.other] {
            sum += forwarder.bundles(face.1);
        }
        assert_eq!(sum, counted, "what faces count is what the node counts");
        counted
    }

    fn drops(&self, reason: DropReason) -> u64 {
        self.net.nodes[0].counters().drops.get(reason)
    }

    fn pending(&self) -> usize {
        self.net.nodes[0].forwarder.pending_interests()
    }
}

/// Returns whether `seen` are the Data of `uri` by themselves.
fn is_alone(seen: &[Seen], uri: &str) -> bool {
    matches!(seen, [seen] if seen.packet == Packet::Data(data(uri)) && seen.header == LpPacket::default())
}

#[test]
fn a_whole_bundle_goes_on_as_it_came() {
    let mut node = Between::new();
    let value = piggyback::encode(&interest("/right/2", 7), &name("/left/1"));
    let seen = node.pass("/left/1", &value);
    assert_eq!(seen[0].packet, Packet::Data(data("/left/1")));
    assert_eq!(seen[0].header.piggybacked_interest, Some(value));
    assert_eq!((seen.len(), node.pending()), (1, 1));
    // What answers the Interest goes back to the left.
    node.net.answer(node.right, &data("/right/2"));
    assert_eq!(node.net.data(node.left), [data("/right/2")]);
}

/// Data get through, whatever came with them; what that was is counted.
#[test]
fn what_is_no_interest_leaves_the_data_as_they_are() {
    let nested = LpPacket::bundle(data("/left/9").wire(), interest("/right/9", 9).wire());
    let whole = interest("/right/2", 7).wire().clone();
    let compact = piggyback::encode(&interest("/right/2", 7), &name("/left/1"));
    let own = |asked: Interest| piggyback::encode(&asked, &name("/left/1"));
    let prefix = Interest::builder(name("/left"))
        .can_be_prefix()
        .build(Nonce([1; 4]));
    let malformed: fn(&BundleCounters) -> u64 = |count| count.refused_malformed;
    let own_data: fn(&BundleCounters) -> u64 = |count| count.refused_own_data;
    for (value, reason) in [
        (nested.clone(), malformed),
        (data("/right/2").wire().clone(), malformed),
        (whole.slice(..whole.len() - 1), malformed),
        (compact.slice(..4), malformed),
        (compact.slice(..compact.len() - 1), malformed),
        (Bytes::from_static(&[piggyback::EMBEDDED]), malformed),
        (Bytes::from_static(&[0xFF; 9]), malformed),
        (own(interest("/left/1", 7)), own_data),
        (own(prefix), own_data),
    ] {
        let mut node = Between::new();
        let seen = node.pass("/left/1", &value);
        assert!(is_alone(&seen, "/left/1"), "{value:?}: {seen:?}");
        assert_eq!(
            (reason(&node.counted()), node.pending()),
            (1, 0),
            "{value:?}"
        );
    }
    // One half of the frame is missing: there is nothing in it that could be trusted.
    let mut node = Between::new();
    node.net.ask(node.right, &interest("/left/1", 1));
    let frame = LpPacket::bundle(data("/left/1").wire(), &compact);
    for end in 1..frame.len() {
        node.net.send(node.left, frame.slice(..end));
    }
    assert_eq!(node.drops(DropReason::Malformed), frame.len() as u64 - 1);
    assert_eq!((node.net.seen(node.right).len(), node.pending()), (0, 1));
}

/// In front of an Interest, from a neighbour with which nothing was agreed, and at a node without bundles: the packet itself goes its
/// way.
#[test]
fn an_interest_out_of_place_is_not_taken() {
    let mut node = Between::new();
    let value = interest("/right/2", 7).wire().clone();
    let frame = LpPacket::bundle(interest("/right/1", 6).wire(), &value);
    node.net.send(node.left, frame);
    assert_eq!(node.net.interests(node.right), [interest("/right/1", 6)]);
    assert_eq!((node.counted().refused_misplaced, node.pending()), (1, 1));

    for (face, is_on) in [(FaceConfig::default(), true), (neighbour(), false)] {
        let mut net = Net::new(1);
        if is_on {
            net.nodes[0].forwarder.install(Box::<Piggyback>::default());
        }
        let (left, right) = (net.face(0, face), net.face(0, neighbour()));
        net.route(0, "/left", left.1, 0);
        net.route(0, "/right", right.1, 0);
        net.ask(right, &interest("/left/1", 1));
        net.send(left, LpPacket::bundle(data("/left/1").wire(), &value));
        assert!(is_alone(&net.seen(right), "/left/1"));
        let counters = net.nodes[0].counters();
        assert_eq!(counters.bundles.refused_unannounced, 1);
        assert_eq!(net.nodes[0].forwarder.pending_interests(), 0);
    }
}

#[test]
fn an_interest_with_data_does_not_leave_its_scope() {
    let mut node = Between::new();
    for prefix in ["/localhost", "/localhop"] {
        node.net.route(0, prefix, node.right.1, 0);
    }
    let seen = node.pass_with("/left/1", &interest("/localhost/nfd/x", 7));
    assert!(is_alone(&seen, "/left/1"));
    assert_eq!(node.drops(DropReason::Scope), 1);
    let seen = node.pass_with("/left/2", &interest("/localhop/x", 8));
    assert!(is_alone(&seen, "/left/2"));
    assert_eq!(
        (node.counted().plain_route, node.drops(DropReason::NoRoute)),
        (1, 1)
    );
    assert_eq!(node.pending(), 0);
}

/// The Interest that comes back by another way, with the Data of somebody, is a loop as it would be by itself.
#[test]
fn an_interest_with_data_does_not_go_in_circles() {
    let mut node = Between::new();
    node.net.ask(node.other, &interest("/right/2", 7));
    assert_eq!(node.net.interests(node.right).len(), 1);
    let seen = node.pass_with("/left/1", &interest("/right/2", 7));
    assert!(is_alone(&seen, "/left/1"));
    assert_eq!(node.drops(DropReason::Loop), 1);
}

/// Counted down at each node: 0 is refused, 1 ends here, 5 goes on as 4.
#[test]
fn an_interest_with_data_has_no_more_hops_than_it_may() {
    for (hops, left) in [(0, None), (1, None), (5, Some(4))] {
        let mut node = Between::new();
        let asked = Interest::builder(name("/right/2")).hop_limit(hops);
        let seen = node.pass_with("/left/1", &asked.build(Nonce([1; 4])));
        assert_eq!(seen.len(), 1);
        let value = seen[0].header.piggybacked_interest.clone();
        let went = value.map(|value| piggyback::decode(&value, &data("/left/1")).unwrap());
        assert_eq!(went.and_then(|it| it.hop_limit()), left);
        assert_eq!(node.drops(DropReason::HopLimit), u64::from(left.is_none()));
    }
}

/// A quota of two pending Interests, one Interest a second, and a full table: the third and what is too fast is refused, with or without
/// Data.
#[test]
fn an_interest_with_data_counts_for_its_face() {
    let limited = |pit: PitConfig| Config {
        pit,
        ..Config::default()
    };
    let mut node = Between::with(limited(PitConfig {
        face_capacity: 2,
        ..PitConfig::default()
    }));
    for number in 0..4 {
        let asked = interest(&format!("/right/{number}"), 10 + number);
        node.pass_with(&format!("/left/{number}"), &asked);
    }
    assert_eq!((node.drops(DropReason::FaceQuota), node.pending()), (2, 2));

    let mut node = Between::with(limited(PitConfig {
        face_interest_rate: Some(InterestRate {
            per_second: 1,
            burst: 1,
        }),
        ..PitConfig::default()
    }));
    for number in 0..3 {
        node.net.run_for(millis(400));
        let asked = interest(&format!("/right/{number}"), 10 + number);
        let uri = format!("/left/{number}");
        node.net.ask(node.right, &interest(&uri, number));
        let value = piggyback::encode(&asked, &name(&uri));
        node.net
            .send(node.left, LpPacket::bundle(data(&uri).wire(), &value));
    }
    assert!(node.drops(DropReason::InterestRate) > 1);
}

/// Refuses all Interests for `/right/refused`.
#[derive(Debug)]
struct Refusing;

impl Hop for Refusing {
    fn on_interest(&mut self, _now: Instant, context: &mut Context<'_>) -> Actions {
        let is_refused = name("/right/refused").is_prefix_of(context.name);
        match is_refused {
            true => Actions::drop(DropReason::Hop),
            false => Actions::default(),
        }
    }
}

#[test]
fn what_a_strategy_refuses_does_not_go_with_data_either() {
    let mut node = Between::new();
    let strategy = node.net.nodes[0]
        .forwarder
        .add_strategy("refusing", Box::new(Refusing));
    let chosen = node.net.nodes[0]
        .forwarder
        .set_strategy(name("/right"), strategy);
    chosen.expect("there is room");
    let seen = node.pass_with("/left/1", &interest("/right/refused/1", 7));
    assert!(is_alone(&seen, "/left/1"));
    assert_eq!((node.drops(DropReason::Hop), node.pending()), (1, 0));
}

/// Data that nobody asked for bring their Interest where the FIB says, and are dropped.
#[test]
fn an_interest_rides_on_requested_data_only() {
    let mut node = Between::new();
    let value = piggyback::encode(&interest("/right/2", 7), &name("/left/1"));
    node.net
        .send(node.left, LpPacket::bundle(data("/left/1").wire(), &value));
    assert_eq!(node.net.interests(node.right), [interest("/right/2", 7)]);
    assert_eq!(node.drops(DropReason::Unsolicited), 1);
    assert_eq!(
        (node.counted().plain_unsolicited, node.counted().sent),
        (1, 0)
    );
    // The content store answers with Data alone.
    let seen = node.pass_with("/left/3", &interest("/right/4", 8));
    assert!(seen[0].header.piggybacked_interest.is_some());
    node.net.ask(node.other, &interest("/left/3", 9));
    assert!(is_alone(&node.net.seen(node.other), "/left/3"));
}

/// Somebody requests the Data first, to get the Interest as well. It goes to the one whose names it is for, with the Data if that one
/// requested them too, and else by itself.
#[test]
fn who_requests_the_data_first_does_not_catch_the_interest() {
    let mut node = Between::new();
    node.net.ask(node.other, &interest("/left/1", 3));
    let seen = node.pass_with("/left/1", &interest("/right/2", 7));
    assert!(seen[0].header.piggybacked_interest.is_some());
    assert!(is_alone(&node.net.seen(node.other), "/left/1"));

    node.net.ask(node.other, &interest("/left/3", 4));
    let value = piggyback::encode(&interest("/right/4", 8), &name("/left/3"));
    node.net.seen(node.right);
    node.net
        .send(node.left, LpPacket::bundle(data("/left/3").wire(), &value));
    assert!(is_alone(&node.net.seen(node.other), "/left/3"));
    assert_eq!(node.net.interests(node.right), [interest("/right/4", 8)]);
    let counted = node.counted();
    assert_eq!((counted.sent, counted.plain_route), (1, 1));
}

/// Flows are followed while the FIB is as it was, and told apart by prefixes of any length.
#[test]
fn an_interest_goes_where_routes_lead_now() {
    let mut node = Between::new();
    for number in 0..3 {
        let uri = format!("/left/{number}");
        node.pass_with(&uri, &interest(&format!("/right/{number}"), 7 + number));
    }
    let counted = node.counted();
    assert_eq!((counted.looked_up, counted.followed), (1, 2));
    // A route for one name of the flow.
    node.net.route(0, "/right/4", node.other.1, 0);
    let seen = node.pass_with("/left/4", &interest("/right/4", 17));
    assert!(is_alone(&seen, "/left/4"));
    assert_eq!(node.net.interests(node.other), [interest("/right/4", 17)]);
    node.net.nodes[0]
        .forwarder
        .remove_route(&name("/right/4"), node.other.1);
    node.net.nodes[0]
        .forwarder
        .remove_route(&name("/right"), node.right.1);
    node.net.route(0, "/right", node.other.1, 0);
    let seen = node.pass_with("/left/5", &interest("/right/5", 18));
    assert!(is_alone(&seen, "/left/5"));
    assert_eq!(node.net.interests(node.other), [interest("/right/5", 18)]);
}

/// Whatever is done to the Interest's half, Data that somebody waits for arrive; whatever is done to the frame, nothing else suffers.
#[test]
fn a_million_damaged_bundles_harm_nothing() {
    let mut random = Random::from_seed(872);
    let mut node = Between::with(Config {
        pit: PitConfig {
            capacity: 100,
            ..PitConfig::default()
        },
        content_store: ContentStoreConfig::with_capacity(ByteSize::ZERO),
        ..Config::default()
    });
    let count = 1_000_000;
    let mut passed = 0;
    for number in 0..count {
        let uri = format!("/left/{}", number % 1_000);
        let asked = interest(&format!("/right/{number}"), number);
        let mut value = piggyback::encode(&asked, &name(&uri)).to_vec();
        let is_frame = random.chance(0.5);
        if !is_frame {
            damage(&mut random, &mut value);
        }
        let packet = data(&uri);
        let mut frame = LpPacket::bundle(packet.wire(), &value).to_vec();
        if is_frame {
            damage(&mut random, &mut frame);
        }
        let requested = interest(&uri, number);
        let node = &mut node;
        node.net.now += millis(1);
        let now = node.net.now;
        let forwarder = &mut node.net.nodes[0];
        forwarder.handle_frame(now, node.right.1, requested.wire().clone());
        while forwarder.poll_output().is_some() {}
        forwarder.handle_frame(now, node.left.1, frame.into());
        while let Some(transmit) = forwarder.poll_output() {
            let sent = LpPacket::decode(transmit.frame).expect("well-formed");
            passed += u32::from(!is_frame && sent.fragment.as_ref() == Some(packet.wire()));
        }
        assert!(forwarder.forwarder.pending_interests() <= 100, "{number}");
    }
    // About half of them.
    assert!(
        (count * 49 / 100..count * 51 / 100).contains(&passed),
        "{passed}"
    );
    assert!(node.counted().refused_malformed > 100_000);
    let seen = node.pass_with("/left/last", &interest("/right/last", 1));
    assert!(seen[0].header.piggybacked_interest.is_some());
}

/// Changes, cuts or extends some octets.
fn damage(random: &mut Random, octets: &mut Vec<u8>) {
    let place = random.below(octets.len() as u64) as usize;
    match random.below(4) {
        0 => octets.truncate(place.max(1)),
        1 => octets.insert(place, random.next_u64() as u8),
        2 => octets[place] ^= 1 << random.below(8),
        _ => {
            for octet in &mut octets[place..] {
                *octet = random.next_u64() as u8;
            }
        }
    }
}
