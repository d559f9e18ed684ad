//! Requests for any next packets, through whole nodes.

use bytes::Bytes;
use namecast_forward::{AnyNext, AnyNextConfig, DropReason, ExtensionFields, FaceConfig};
use namecast_packet::lp::NackReason;
use namecast_packet::signature::NullSigner;
use namecast_packet::{
    AnyNextRequest, ChunksHad, Data, Extensions, Interest, LpPacket, Nonce, any_next,
};

use crate::feedback::speaking;
use crate::topology::{End, Net, Seen, data, interest, millis, name};

const NOT_HERE: AnyNextRequest = AnyNextRequest {
    pending: AnyNextRequest::NOT_HERE,
    seen: 0,
    refresh: false,
};

fn wants(pending: u16, seen: u32) -> AnyNextRequest {
    AnyNextRequest {
        pending,
        seen,
        refresh: false,
    }
}

/// A request of flow `/f`, with a PIT token.
fn request(uri: &str, request: AnyNextRequest, token: &'static [u8]) -> Bytes {
    let mut packet = LpPacket::carrying(interest(uri, 7).wire().clone());
    packet.pit_token = (!token.is_empty()).then(|| Bytes::from_static(token));
    packet
        .extensions
        .set(Extensions::ANY_NEXT, request.encode());
    packet.encode()
}

/// Data of flow `/f` with their number on the link and the requests to spare.
fn answer(uri: &str, number: u32, spare: u64) -> Bytes {
    let mut packet = LpPacket::carrying(data(uri).wire().clone());
    let extensions = &mut packet.extensions;
    extensions.set(Extensions::ANY_NEXT, number.to_be_bytes());
    extensions.set_number(Extensions::MIN_PENDING_REQUESTS, spare);
    packet.encode()
}

fn requested(seen: &Seen) -> Option<AnyNextRequest> {
    let value = seen.header.extensions.get(Extensions::ANY_NEXT);
    value.and_then(AnyNextRequest::decode)
}

/// Number on the link and requests to spare.
fn numbered(seen: &Seen) -> (Option<u32>, Option<u64>) {
    let extensions = &seen.header.extensions;
    let number = extensions.get(Extensions::ANY_NEXT);
    (
        number.and_then(any_next::decode_number),
        extensions.number(Extensions::MIN_PENDING_REQUESTS),
    )
}

/// A node with a provider of `/f` and others.
struct Fan {
    net: Net,
    provider: End,
}

impl Fan {
    fn new() -> Self {
        Self::with(AnyNextConfig::default())
    }

    fn with(config: AnyNextConfig) -> Self {
        let mut net = Net::new(1);
        let hop = Box::new(AnyNext::new(config));
        net.nodes[0].forwarder.install(hop);
        let provider = net.face(0, speaking());
        net.route(0, "/f", provider.1, 0);
        Self { net, provider }
    }

    fn receiver(&mut self) -> End {
        self.net.face(0, speaking())
    }
}

/// Each has as many copies as it has requests, numbers and a token of its own, and the least of what there is to spare.
#[test]
fn each_face_gets_copies_of_its_own() {
    let mut fan = Fan::new();
    let [slow, fast] = [fan.receiver(), fan.receiver()];
    fan.net.send(slow, request("/f", wants(1, 10), b"slow"));
    fan.net.send(fast, request("/f", wants(3, 0), b"fast"));
    let up = fan.net.seen(fan.provider);
    let up: Vec<_> = up.iter().map(|it| requested(it).unwrap()).collect();
    assert_eq!(up[0].pending, 1);
    assert_eq!(up[1], wants(3, 0));
    for number in 1..=4 {
        let spare = u64::from(10 - number);
        fan.net
            .send(fan.provider, answer(&format!("/f/{number}"), number, spare));
    }
    let [slow, fast] = [slow, fast].map(|end| fan.net.seen(end));
    assert_eq!(slow.len(), 1);
    assert_eq!(numbered(&slow[0]), (Some(11), Some(0)));
    assert_eq!(slow[0].header.pit_token.as_deref(), Some(&b"slow"[..]));
    let fast: Vec<_> = fast.iter().map(numbered).collect();
    let expected = [(1, 2), (2, 1), (3, 0)];
    let expected = expected.map(|(number, spare)| (Some(number), Some(spare)));
    assert_eq!(fast, expected);
    let count = fan.net.nodes[0].counters().any_next;
    assert_eq!((count.requests, count.sent, count.data), (2, 2, 4));
    assert_eq!(count.copies, 4);
}

/// What was delivered is in the content store, also what nobody had a request left for; exact names are answered as ever and
/// use up no request, and who waits both ways gets one copy.
#[test]
fn exact_names_are_as_ever() {
    let mut fan = Fan::new();
    let [receiver, other] = [fan.receiver(), fan.receiver()];
    fan.net.send(receiver, request("/f", wants(2, 0), b""));
    fan.net.seen(fan.provider);
    for end in [receiver, other] {
        fan.net
            .ask(end, &interest("/f/1", 1 + end.1.number() as u32));
    }
    fan.net.send(fan.provider, answer("/f/1", 1, 0));
    let [mut seen, mut plain] = [receiver, other].map(|end| fan.net.seen(end));
    assert_eq!((seen.len(), plain.len()), (1, 1));
    assert_eq!(numbered(&seen.remove(0)).0, Some(1));
    assert_eq!(numbered(&plain.remove(0)), (None, None));

    // A repair, whose Data have no number: one request is left afterwards.
    fan.net.ask(receiver, &interest("/f/0", 9));
    fan.net.answer(fan.provider, &data("/f/0"));
    assert_eq!(fan.net.data(receiver).len(), 1);
    fan.net.send(fan.provider, answer("/f/2", 2, 0));
    fan.net.send(fan.provider, answer("/f/3", 3, 0));
    assert_eq!(fan.net.data(receiver).len(), 1);
    for number in 1..=3 {
        fan.net
            .ask(other, &interest(&format!("/f/{number}"), 20 + number));
    }
    assert_eq!(fan.net.data(other).len(), 3);
}

/// A request that comes round ends, as it never exceeds what raised it.
#[test]
fn requests_in_a_loop_of_nodes_end() {
    let mut net = Net::new(3);
    for node in 0..3 {
        let hop = Box::<AnyNext>::default();
        net.nodes[node].forwarder.install(hop);
    }
    for (near, far) in [(0, 1), (1, 2), (2, 0)] {
        let (face, _) = net.link_with(near, far, speaking());
        net.route(near, "/f", face, 0);
    }
    let receiver = net.face(0, speaking());
    net.send(receiver, request("/f", wants(5, 0), b""));
    for span in [100, 300, 1_000] {
        net.run_for(millis(span));
        let refresh = AnyNextRequest {
            refresh: true,
            ..wants(5, 0)
        };
        net.send(receiver, request("/f", refresh, b""));
    }
    let sent: u64 = (0..3)
        .map(|node| net.nodes[node].counters().any_next.sent)
        .sum();
    assert!(sent <= 3 * 5, "{sent}");
}

/// Each comes back as a Nack that says so, and leaves nothing behind.
#[test]
fn bad_requests_are_sent_back_and_counted() {
    let mut fan = Fan::new();
    let receiver = fan.receiver();
    let with = |interest: &Interest, value: &[u8]| {
        let mut packet = LpPacket::carrying(interest.wire().clone());
        packet.extensions.set(Extensions::ANY_NEXT, value);
        packet.encode()
    };
    let good = wants(5, 0).encode();
    let build = |uri: &str| Interest::builder(name(uri));
    let bad = [
        with(&build("/f").can_be_prefix().build(Nonce([1; 4])), &good),
        with(&build("/f").must_be_fresh().build(Nonce([2; 4])), &good),
        with(&build("/f").build(Nonce([3; 4])), &good[..6]),
        with(&build("/f").build(Nonce([4; 4])), &[]),
        with(
            &build(&format!("/f/{}", "x".repeat(1_100))).build(Nonce([5; 4])),
            &good,
        ),
    ];
    let count = bad.len() as u64;
    for frame in bad {
        fan.net.send(receiver, frame);
        let [seen] = <[Seen; 1]>::try_from(fan.net.seen(receiver)).unwrap();
        assert_eq!(seen.header.nack, Some(NackReason::NoRoute));
        assert_eq!(requested(&seen), Some(NOT_HERE));
    }
    // Nobody serves it; and what is of this host only.
    fan.net.send(receiver, request("/g", wants(5, 0), b"t"));
    let [seen] = <[Seen; 1]>::try_from(fan.net.seen(receiver)).unwrap();
    assert_eq!(requested(&seen), Some(NOT_HERE));
    assert_eq!(seen.header.pit_token.as_deref(), Some(&b"t"[..]));
    let application = fan.net.app(0);
    fan.net.route(0, "/localhost/f", application.1, 0);
    fan.net
        .send(receiver, request("/localhost/f", wants(5, 0), b""));
    let local = fan.net.app(0);
    fan.net
        .send(local, request("/localhost/f", wants(5, 0), b""));
    assert_eq!(fan.net.seen(application), []);
    let counters = fan.net.nodes[0].counters();
    assert_eq!(counters.any_next.refused_malformed, count + 1);
    assert_eq!(counters.any_next.refused_route, 1);
    assert_eq!(counters.drops.get(DropReason::Scope), 1);
    assert_eq!(counters.drops.get(DropReason::AnyNext), count + 2);
    assert_eq!(fan.net.seen(fan.provider), []);
    assert_eq!(fan.net.nodes[0].forwarder.pending_interests(), 0);
}

/// 10^5 flows from one face: as many as it may have are counted, the others come back, and others have theirs.
#[test]
fn flows_of_a_face_are_bounded() {
    let mut fan = Fan::with(AnyNextConfig {
        max_flows_of_face: 1_024,
        max_counters: 1_500,
    });
    let [greedy, second, third] = [(); 3].map(|()| fan.receiver());
    for flow in 0..100_000 {
        fan.net
            .send(greedy, request(&format!("/f/{flow}"), wants(5, 0), b""));
    }
    let refused = |fan: &Fan| fan.net.nodes[0].counters().any_next.refused_flows;
    assert_eq!(refused(&fan), 100_000 - 1_024);
    assert_eq!(fan.net.seen(greedy).len(), 100_000 - 1_024);
    fan.net.send(second, request("/f/0", wants(5, 0), b""));
    assert_eq!(refused(&fan), 100_000 - 1_024);
    for flow in 0..600 {
        fan.net
            .send(second, request(&format!("/f/x/{flow}"), wants(5, 0), b""));
    }
    // 1500 for the node: 1024 and 1 were taken.
    assert_eq!(refused(&fan), 100_000 - 1_024 + 600 - 475);
    // Who leaves, and who is silent for two seconds, gives room to others.
    fan.net.nodes[0].remove_face(fan.net.now, greedy.1);
    fan.net.send(third, request("/f/y", wants(5, 0), b""));
    assert_eq!(fan.net.seen(third), []);
    fan.net.run_for(millis(3_100));
    for flow in 0..1_024 {
        fan.net
            .send(third, request(&format!("/f/z/{flow}"), wants(5, 0), b""));
    }
    assert_eq!(fan.net.seen(third), []);
}

/// A neighbour that has not said that it speaks is asked, and its request comes back meanwhile; one that speaks but does not
/// count is not asked, either way.
#[test]
fn requests_go_only_between_neighbours_that_count_them() {
    let mut net = Net::new(3);
    for node in [0, 1] {
        net.nodes[node].forwarder.install(Box::<AnyNext>::default());
    }
    let (near, _) = net.link_with(0, 1, FaceConfig::default());
    let (foreign, _) = net.link_with(0, 2, FaceConfig::default());
    net.route(0, "/f", near, 0);
    net.route(0, "/g", foreign, 0);
    let provider = net.app(1);
    net.route(1, "/f", provider.1, 0);
    let receiver = net.app(0);

    // Unknown: it is asked, and the request waits until it is repeated.
    net.send(receiver, request("/f", wants(5, 0), b""));
    assert_eq!(net.seen(receiver), []);
    assert_eq!(net.seen(provider), []);
    net.send(receiver, request("/f", wants(5, 0), b""));
    let seen = net.seen(provider);
    assert_eq!(requested(&seen[0]).map(|it| it.pending), Some(5));
    net.send(provider, answer("/f/1", 1, 4));
    assert_eq!(numbered(&net.seen(receiver)[0]), (Some(1), Some(4)));

    // Silent: after the second question in vain the request comes back.
    for pause in [0, 300, 1_000] {
        net.run_for(millis(pause));
        net.send(receiver, request("/g", wants(5, 0), b""));
    }
    let seen = net.seen(receiver);
    assert_eq!(requested(&seen[0]), Some(NOT_HERE));
    assert!(net.nodes[0].counters().any_next.refused_foreign > 0);
}

#[test]
fn requests_of_neighbours_that_offered_nothing_are_refused() {
    let mut fan = Fan::new();
    let auto = FaceConfig {
        extension_fields: ExtensionFields::Auto,
        ..FaceConfig::default()
    };
    let stranger = fan.net.face(0, auto);
    let refused = |fan: &Fan| fan.net.nodes[0].counters().any_next.refused_unoffered;
    fan.net.send(stranger, request("/f", wants(5, 0), b""));
    let [seen] = <[Seen; 1]>::try_from(fan.net.seen(stranger)).unwrap();
    assert_eq!(seen.header.nack, Some(NackReason::NoRoute));
    assert_eq!(seen.header.extensions.number(Extensions::SUPPORT), Some(1));
    assert_eq!(refused(&fan), 1);
    // It speaks, but counts nothing.
    let mut support = LpPacket::default();
    support.extensions.set_number(Extensions::SUPPORT, 2);
    fan.net.send(stranger, support.encode());
    fan.net.send(stranger, request("/f", wants(5, 0), b""));
    assert_eq!(refused(&fan), 2);
    support.extensions.set(Extensions::ANY_NEXT, []);
    fan.net.send(stranger, support.encode());
    fan.net.seen(stranger);
    fan.net.send(stranger, request("/f", wants(5, 0), b""));
    assert_eq!((refused(&fan), fan.net.seen(stranger)), (2, vec![]));
    assert_eq!(fan.net.seen(fan.provider).len(), 1);
}

/// Whoever was told by the next hop that it has no such flow tells all who requested it.
#[test]
fn a_refusal_reaches_all_downstreams() {
    let mut fan = Fan::new();
    let [one, two] = [fan.receiver(), fan.receiver()];
    for (end, token) in [(one, &b"1"[..]), (two, b"2")] {
        fan.net.send(end, request("/f", wants(5, 0), token));
    }
    let sent = fan.net.seen(fan.provider).remove(0);
    let mut back = LpPacket::carrying(sent.interest().wire().clone());
    back.nack = Some(NackReason::NoRoute);
    back.extensions.set(Extensions::ANY_NEXT, NOT_HERE.encode());
    fan.net.send(fan.provider, back.encode());
    for (end, token) in [(one, b"1"), (two, b"2")] {
        let [seen] = <[Seen; 1]>::try_from(fan.net.seen(end)).unwrap();
        assert_eq!(requested(&seen), Some(NOT_HERE));
        assert_eq!(seen.header.pit_token.as_deref(), Some(&token[..]));
    }
    fan.net.send(fan.provider, answer("/f/1", 1, 0));
    assert_eq!(fan.net.seen(one), []);
}

/// Chunks of `/f` that a neighbour has.
fn had(hops_left: u8, ranges: &[(u32, u32)]) -> Bytes {
    let had = ChunksHad {
        flow: name("/f"),
        chunk_size: 10,
        hops_left,
        expiry: 60,
        ranges: ranges.to_vec(),
    };
    let mut packet = LpPacket::default();
    packet.extensions.set(Extensions::CHUNKS_HAD, had.encode());
    packet.encode()
}

/// What an end has heard of chunks: hops left and ranges.
fn heard(net: &mut Net, end: End) -> Vec<(u8, Vec<(u32, u32)>)> {
    let packets = net.bare(end).into_iter();
    let had = packets.filter_map(|packet| {
        let value = packet.extensions.get(Extensions::CHUNKS_HAD)?;
        ChunksHad::decode(&Bytes::copy_from_slice(value))
    });
    had.map(|had| (had.hops_left, had.ranges)).collect()
}

/// The first Interest for what a neighbour has goes there, the second along the route; nobody gets back its own.
#[test]
fn what_a_neighbour_has_is_requested_there_first() {
    let mut fan = Fan::new();
    let [asking, holder] = [fan.receiver(), fan.receiver()];
    fan.net.send(holder, had(1, &[(0, 0), (2, 3)]));
    let asked = |fan: &mut Fan, number: u32, nonce: u32| {
        let uri = format!("/f/seq={number}");
        fan.net.ask(asking, &interest(&uri, nonce));
        [holder, fan.provider].map(|end| fan.net.interests(end).len())
    };
    assert_eq!(asked(&mut fan, 9, 1), [1, 0]);
    fan.net.run_for(millis(100));
    assert_eq!(asked(&mut fan, 9, 2), [0, 1]);
    assert_eq!(asked(&mut fan, 10, 3), [0, 1], "a chunk that it has not");
    fan.net.ask(holder, &interest("/f/seq=20", 4));
    assert_eq!(fan.net.interests(holder).len(), 0);
    let count = fan.net.nodes[0].counters().any_next;
    assert_eq!((count.announcements, count.to_holders), (1, 1));
}

/// The union goes to all others, and no further than two hops; a neighbour that counts no requests is not heard.
#[test]
fn chunks_are_told_two_hops_off() {
    let mut fan = Fan::new();
    let [one, other] = [fan.receiver(), fan.receiver()];
    fan.net.send(one, had(1, &[(0, 3)]));
    fan.net.run_for(millis(1));
    assert_eq!(heard(&mut fan.net, other), [(0, vec![(0, 3)])]);
    assert_eq!(heard(&mut fan.net, one), []);
    fan.net.send(other, had(0, &[(5, 5)]));
    fan.net.run_for(millis(600));
    assert_eq!(heard(&mut fan.net, one), [], "it was two hops off already");
    let stranger = fan.net.face(0, FaceConfig::default());
    fan.net.send(stranger, had(1, &[(9, 9)]));
    fan.net.run_for(millis(600));
    let count = fan.net.nodes[0].counters().any_next;
    assert_eq!((count.announcements, count.refused_announcements), (2, 1));
}

/// An Interest that the holder sends back goes along the route, and four of them in a row are enough: the holder rests.
#[test]
fn a_holder_that_refuses_costs_nobody_an_answer() {
    let mut fan = Fan::new();
    let [asking, holder] = [fan.receiver(), fan.receiver()];
    fan.net.send(holder, had(1, &[(0, 0)]));
    for number in 0..5 {
        let uri = format!("/f/seq={number}");
        fan.net.ask(asking, &interest(&uri, 1 + number));
        let asked = fan.net.interests(holder);
        assert_eq!(asked.len(), usize::from(number < 4), "{number}");
        for asked in asked {
            fan.net.nack(holder, &asked, NackReason::None);
        }
        assert_eq!(fan.net.interests(fan.provider).len(), 1, "{number}");
        fan.net.answer(fan.provider, &data(&uri));
        let seen = fan.net.seen(asking);
        assert_eq!((seen.len(), seen[0].header.nack), (1, None));
    }
    assert_eq!(fan.net.nodes[0].forwarder.pending_interests(), 0);
}

/// A holder's Data are not fresh here, though they say so, and an Interest that must be fresh goes to the provider.
#[test]
fn a_forgery_of_a_holder_is_passed_by() {
    let mut fan = Fan::new();
    let [asking, holder] = [fan.receiver(), fan.receiver()];
    fan.net.send(holder, had(1, &[(0, 0)]));
    fan.net.ask(asking, &interest("/f/seq=3", 1));
    assert_eq!(fan.net.interests(holder).len(), 1);
    let forged = Data::builder(name("/f/seq=3")).freshness(millis(3_600_000));
    let forged = forged.content("forged").sign(&NullSigner);
    fan.net.answer(holder, &forged);
    assert_eq!(fan.net.data(asking).len(), 1);
    let again = Interest::builder(name("/f/seq=3")).must_be_fresh();
    fan.net.ask(asking, &again.build(Nonce([9; 4])));
    let asked = [holder, fan.provider].map(|end| fan.net.interests(end).len());
    assert_eq!((asked, fan.net.data(asking).len()), ([0, 1], 0));
}
