//! Interests find producers, Data finds everybody who waits.

use core::time::Duration;

use bytes::Bytes;
use namecast_forward::{Config, DropReason, FaceConfig, FaceId, LinkType, Scope};
use namecast_packet::tlv::{self, Writer};
use namecast_packet::{Component, Interest, LpPacket, Nonce};

use crate::topology::{End, Net, data, interest, millis, name};

/// Consumers on node 0, a producer of `/p` on node 1.
fn two_nodes() -> (Net, End) {
    let mut net = Net::new(2);
    let (to_producer, _) = net.link(0, 1);
    let producer = net.app(1);
    net.route(0, "/p", to_producer, 0);
    net.route(1, "/p", producer.1, 0);
    (net, producer)
}

#[test]
fn interests_of_one_name_go_up_once_and_data_comes_back_to_all() {
    let (mut net, producer) = two_nodes();
    let consumers = [net.app(0), net.app(0), net.app(0)];
    for (nonce, &consumer) in (1..).zip(&consumers) {
        net.ask(consumer, &interest("/p/1", nonce));
    }
    assert_eq!(net.interests(producer), [interest("/p/1", 1)]);
    assert_eq!(net.nodes[0].counters().aggregated, 2);

    net.answer(producer, &data("/p/1"));
    for consumer in consumers {
        assert_eq!(net.data(consumer), [data("/p/1")]);
    }
    assert_eq!(net.nodes[1].counters().outgoing.data, 1);
    assert_eq!(net.nodes[0].counters().outgoing.data, 3);
    assert_eq!(
        (
            net.nodes[0].forwarder.pending_interests(),
            net.nodes[0].poll_timeout()
        ),
        (0, None)
    );
}

/// Selectors are part of what makes two Interests equal.
#[test]
fn interests_with_other_selectors_are_not_aggregated() {
    let (mut net, producer) = two_nodes();
    let consumer = net.app(0);
    net.ask(consumer, &interest("/p/1", 1));
    net.ask(
        consumer,
        &Interest::builder(name("/p/1"))
            .can_be_prefix()
            .build(Nonce::from(2)),
    );
    net.ask(
        consumer,
        &Interest::builder(name("/p/1"))
            .must_be_fresh()
            .build(Nonce::from(3)),
    );
    assert_eq!(net.interests(producer).len(), 3);
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 3);
    // One packet satisfies all three, and the face gets it once.
    net.answer(producer, &data("/p/1"));
    assert_eq!(net.data(consumer).len(), 1);
    assert_eq!(net.nodes[0].counters().satisfied, 3);
}

#[test]
fn data_with_a_longer_name_answers_only_who_allowed_it() {
    let (mut net, producer) = two_nodes();
    let (exact, prefix) = (net.app(0), net.app(0));
    net.ask(exact, &interest("/p/a", 1));
    net.ask(
        prefix,
        &Interest::builder(name("/p/a"))
            .can_be_prefix()
            .build(Nonce::from(2)),
    );
    net.answer(producer, &data("/p/a/b/c"));
    assert_eq!(net.data(exact), []);
    assert_eq!(net.data(prefix), [data("/p/a/b/c")]);
    assert_eq!(net.nodes[0].forwarder.pending_interests(), 1);
}

#[test]
fn a_digest_chooses_among_packets_of_one_name() {
    let (mut net, producer) = two_nodes();
    let consumer = net.app(0);
    let digest = data("/p/a").implicit_digest();
    let full = name("/p/a").child(Component {
        kind: Component::IMPLICIT_DIGEST,
        value: &digest,
    });
    net.ask(
        consumer,
        &Interest::builder(full.clone()).build(Nonce::from(1)),
    );
    let other = namecast_packet::Data::builder(name("/p/a"))
        .content("other")
        .sign(&namecast_packet::signature::NullSigner);
    net.answer(producer, &other);
    assert_eq!(net.data(consumer), []);
    assert_eq!(
        net.nodes[1].counters().drops.get(DropReason::Unsolicited),
        1
    );
    net.answer(producer, &data("/p/a"));
    assert_eq!(net.data(consumer), [data("/p/a")]);
    // From now on the cache knows it by its digest.
    net.ask(consumer, &Interest::builder(full).build(Nonce::from(2)));
    assert_eq!(net.data(consumer), [data("/p/a")]);
    assert_eq!(net.nodes[0].counters().content_store_hits, 1);
}

#[test]
fn a_pending_interest_lives_to_the_exact_nanosecond_of_its_lifetime() {
    for (late, delivered) in [(0, 1), (1, 0)] {
        let (mut net, producer) = two_nodes();
        let consumer = net.app(0);
        net.ask(
            consumer,
            &Interest::builder(name("/p/1"))
                .lifetime(millis(100))
                .build(Nonce::from(1)),
        );
        assert_eq!(net.nodes[0].poll_timeout(), Some(net.now + millis(100)));
        // Nobody calls handle_timeout: the frame itself must not find what is over.
        net.now += Duration::from_nanos(99_999_999 + late);
        net.answer(producer, &data("/p/1"));
        assert_eq!(net.data(consumer).len(), delivered);
        let unsatisfied = net.nodes[1].counters().unsatisfied;
        assert_eq!(unsatisfied, late);
    }
}

/// In-records of 100 ms at 0 and of 30 ms at 50 ms: the entry ends at 100 ms, the second downstream at 80 ms.
#[test]
fn the_latest_in_record_keeps_the_entry_and_each_ends_by_itself() {
    let mut net = Net::new(1);
    let (first, second, producer) = (net.app(0), net.app(0), net.app(0));
    net.route(0, "/", producer.1, 0);
    let lasting = |lifetime, nonce| {
        Interest::builder(name("/p/1"))
            .lifetime(millis(lifetime))
            .build(Nonce::from(nonce))
    };
    net.ask(first, &lasting(100, 1));
    net.run_for(millis(50));
    net.ask(second, &lasting(30, 2));
    assert_eq!(
        net.nodes[0].poll_timeout(),
        Some(namecast_units::Instant::ZERO + millis(100))
    );
    net.run_for(millis(30));
    net.answer(producer, &data("/p/1"));
    assert_eq!((net.data(first).len(), net.data(second).len()), (1, 0));
}

#[test]
fn each_downstream_gets_its_own_pit_token_back() {
    let (mut net, producer) = two_nodes();
    let tokens: [&[u8]; 3] = [b"abcdef", b"\x00", b""];
    let consumers = tokens.map(|token| {
        let consumer = net.app(0);
        let mut packet = LpPacket::carrying(interest("/p/1", token.len() as u32).wire().clone());
        packet.pit_token = (!token.is_empty()).then(|| Bytes::from_static(token));
        net.send(consumer, packet.encode());
        consumer
    });
    let upstream = net.seen(producer);
    assert_eq!(
        upstream[0].header.pit_token, None,
        "tokens are between neighbours"
    );
    net.answer(producer, &data("/p/1"));
    let echoed = consumers.map(|consumer| net.seen(consumer)[0].header.pit_token.clone());
    let expected = [
        Some(Bytes::from_static(b"abcdef")),
        Some(Bytes::from_static(b"\x00")),
        None,
    ];
    assert_eq!(echoed, expected);
    // The cache echoes as well.
    let mut packet = LpPacket::carrying(interest("/p/1", 9).wire().clone());
    packet.pit_token = Some(Bytes::from_static(b"cached"));
    net.send(consumers[2], packet.encode());
    assert_eq!(
        net.seen(consumers[2])[0].header.pit_token.as_deref(),
        Some(&b"cached"[..])
    );
}

/// A face behind which two nodes share entries can tell them apart by token only.
#[test]
fn a_face_gets_data_once_for_each_of_its_tokens() {
    let (mut net, producer) = two_nodes();
    let consumer = net.app(0);
    for (token, prefix) in [(b"a", false), (b"b", true)] {
        let mut builder = Interest::builder(name("/p/1"));
        if prefix {
            builder = builder.can_be_prefix();
        }
        let mut packet = LpPacket::carrying(
            builder
                .build(Nonce::from(u32::from(token[0])))
                .wire()
                .clone(),
        );
        packet.pit_token = Some(Bytes::from_static(token));
        net.send(consumer, packet.encode());
    }
    net.answer(producer, &data("/p/1"));
    let mut tokens: Vec<_> = net
        .seen(consumer)
        .iter()
        .filter_map(|seen| seen.header.pit_token.clone())
        .collect();
    tokens.sort();
    assert_eq!(tokens, [&b"a"[..], b"b"]);
}

#[test]
fn packets_pass_octet_for_octet_with_elements_nobody_knows() {
    let (mut net, producer) = two_nodes();
    let consumer = net.app(0);
    let mut wire = Writer::default();
    wire.nested(tlv::INTEREST, |body| {
        name("/p/odd").encode(body);
        body.element(240, b"unknown")
            .element(tlv::NONCE, &[1, 2, 3, 4]);
        body.element(tlv::HOP_LIMIT, &[9])
            .element(65_000, b"unknown");
    });
    let mut wire = wire.finish().to_vec();
    net.send(consumer, Bytes::from(wire.clone()));
    let hop_limit = wire.windows(3).position(|w| w == [34, 1, 9]).unwrap() + 2;
    // Two nodes count the HopLimit down, and change nothing else.
    wire[hop_limit] = 7;
    assert_eq!(net.interests(producer)[0].wire(), &wire);
}

#[test]
fn an_interest_without_nonce_gets_one_from_the_seed() {
    let sent = |seed| {
        let mut net = Net::with(Config {
            seed,
            ..Config::default()
        });
        let (consumer, producer) = (net.app(0), net.app(0));
        net.route(0, "/", producer.1, 0);
        let mut wire = Writer::default();
        wire.nested(tlv::INTEREST, |body| name("/p").encode(body));
        net.send(consumer, wire.finish());
        net.interests(producer)[0].nonce().unwrap()
    };
    assert_eq!(sent(1), sent(1));
    assert_ne!(sent(1), sent(2));
}

#[test]
fn localhost_stays_on_the_host_and_localhop_goes_one_hop() {
    let mut net = Net::new(2);
    let (out, inward) = net.link(0, 1);
    let (onward, _) = net.link(1, 0);
    let (local, service) = (net.app(0), net.app(1));
    net.route(0, "/localhost", out, 0);
    net.route(0, "/localhop", out, 0);
    net.route(1, "/localhop", onward, 0);
    net.route(1, "/localhop", service.1, 1);
    net.route(1, "/localhost", service.1, 0);

    net.ask(local, &interest("/localhost/a", 1));
    assert_eq!(net.nacks(local).len(), 1, "no eligible next hop");
    net.send((1, inward), interest("/localhost/a", 2).wire().clone());
    net.send((1, inward), data("/localhost/a").wire().clone());
    assert_eq!(net.nodes[1].counters().drops.get(DropReason::Scope), 2);
    assert_eq!(net.seen(service), []);

    net.ask(local, &interest("/localhop/a", 3));
    // Not over the cheaper link, which would be a second hop.
    assert_eq!(net.interests(service), [interest("/localhop/a", 3)]);
    net.answer(service, &data("/localhop/a"));
    assert_eq!(net.data(local), [data("/localhop/a")]);
}

#[test]
fn a_hop_limit_of_one_reaches_the_next_nodes_applications_and_no_further() {
    let mut net = Net::new(3);
    let ((a, on_b), (b, _)) = (net.link(0, 1), net.link(1, 2));
    let (consumer, near, far) = (net.app(0), net.app(1), net.app(2));
    net.route(0, "/", a, 0);
    net.route(1, "/far", b, 0);
    net.route(1, "/near", near.1, 0);
    net.route(2, "/", far.1, 0);
    let limited = |uri: &str, hops, nonce| {
        Interest::builder(name(uri))
            .hop_limit(hops)
            .build(Nonce::from(nonce))
    };
    net.ask(consumer, &limited("/near", 2, 1));
    assert_eq!(net.interests(near)[0].hop_limit(), Some(0));
    net.ask(consumer, &limited("/far", 2, 2));
    assert_eq!(net.seen(far), []);
    assert_eq!(net.nodes[1].counters().drops.get(DropReason::HopLimit), 1);
    net.ask(consumer, &limited("/far/3", 3, 3));
    assert_eq!(net.interests(far)[0].hop_limit(), Some(0));
    net.send((1, on_b), limited("/near", 0, 4).wire().clone());
    assert_eq!(net.seen(near), []);
    assert_eq!(net.nodes[1].counters().drops.get(DropReason::HopLimit), 2);
}

#[test]
fn the_chosen_next_hop_is_for_local_applications_with_local_fields() {
    let mut net = Net::new(1);
    let fields = FaceConfig {
        scope: Scope::Local,
        local_fields: true,
        ..FaceConfig::default()
    };
    let chooser = net.face(0, fields.clone());
    let plain = net.app(0);
    let remote = net.face(
        0,
        FaceConfig {
            scope: Scope::NonLocal,
            ..fields
        },
    );
    let (cheap, chosen) = (net.app(0), net.app(0));
    net.route(0, "/", cheap.1, 0);
    for (nonce, from) in (1..).zip([chooser, plain, remote]) {
        let mut packet = LpPacket::carrying(interest("/p", nonce).wire().clone());
        packet.next_hop_face = Some(chosen.1.number());
        net.send(from, packet.encode());
    }
    assert_eq!(net.interests(chosen), [interest("/p", 1)]);
    assert_eq!(net.seen(cheap), []);
    assert_eq!(
        net.nodes[0]
            .counters()
            .drops
            .get(DropReason::LocalFieldsOff),
        2
    );
    // Or avoids one, which the others then do not see; where there is no other, it is asked all the same.
    net.route(0, "/", chosen.1, 10);
    for (nonce, from) in (5..).zip([chooser, plain]) {
        let uri = format!("/avoid/{nonce}");
        let mut packet = LpPacket::carrying(interest(&uri, nonce).wire().clone());
        packet.avoid_face = Some(cheap.1.number());
        net.send(from, packet.encode());
    }
    assert_eq!(net.interests(chosen), [interest("/avoid/5", 5)]);
    assert_eq!(net.interests(cheap), [interest("/avoid/6", 6)]);
    let mut packet = LpPacket::carrying(interest("/p/only", 7).wire().clone());
    net.nodes[0]
        .forwarder
        .remove_route(&"/".parse().unwrap(), chosen.1);
    packet.avoid_face = Some(cheap.1.number());
    net.send(chooser, packet.encode());
    assert_eq!(net.interests(cheap), [interest("/p/only", 7)]);
    // The chooser also learns where answers come from: a face, or the cache.
    net.answer(chosen, &data("/p"));
    net.ask(chooser, &interest("/p", 4));
    let sources: Vec<_> = net
        .seen(chooser)
        .iter()
        .map(|seen| seen.header.incoming_face.unwrap())
        .collect();
    assert_eq!(sources, [chosen.1.number(), FaceId::CONTENT_STORE.number()]);
}

#[test]
fn congestion_marks_travel_with_interests_and_data_but_not_from_the_cache() {
    let (mut net, producer) = two_nodes();
    let consumer = net.app(0);
    let mut packet = LpPacket::carrying(interest("/p/1", 1).wire().clone());
    packet.congestion_mark = 3;
    net.send(consumer, packet.encode());
    assert_eq!(net.seen(producer)[0].header.congestion_mark, 3);
    let mut packet = LpPacket::carrying(data("/p/1").wire().clone());
    packet.congestion_mark = 1;
    net.send(producer, packet.encode());
    net.ask(consumer, &interest("/p/1", 2));
    let marks: Vec<_> = net
        .seen(consumer)
        .iter()
        .map(|seen| seen.header.congestion_mark)
        .collect();
    assert_eq!(marks, [1, 0]);
}

#[test]
fn a_forwarding_hint_leads_where_the_name_has_no_route_and_ends_in_its_region() {
    let regions = vec![name("/region/site")];
    let mut net = Net::with(Config {
        producer_regions: regions,
        ..Config::default()
    });
    let (consumer, hinted, own) = (net.app(0), net.app(0), net.app(0));
    net.route(0, "/via", hinted.1, 0);
    net.route(0, "/p", own.1, 0);
    let hint = |delegations: &[&str], nonce| {
        let start = Interest::builder(name("/p/1"));
        let builder = delegations
            .iter()
            .fold(start, |b, d| b.forwarding_hint(name(d)));
        builder.build(Nonce::from(nonce))
    };
    net.ask(consumer, &hint(&["/nowhere", "/via/x"], 1));
    assert_eq!(
        (net.interests(hinted).len(), net.interests(own).len()),
        (1, 0)
    );
    net.run_for(millis(4_000));
    net.ask(consumer, &hint(&["/via/x", "/region"], 2));
    assert_eq!(
        (net.interests(hinted).len(), net.interests(own).len()),
        (0, 1)
    );
}

#[test]
fn data_returns_on_the_link_it_came_from_only_if_that_is_ad_hoc() {
    for (link_type, times) in [(LinkType::MultiAccess, 0), (LinkType::AdHoc, 1)] {
        let mut net = Net::new(1);
        let shared = net.face(
            0,
            FaceConfig {
                link_type,
                ..FaceConfig::default()
            },
        );
        let consumer = net.app(0);
        net.route(0, "/", shared.1, 0);
        net.ask(consumer, &interest("/p", 1));
        net.send(shared, interest("/p", 2).wire().clone());
        net.seen(shared);
        net.answer(shared, &data("/p"));
        assert_eq!(net.data(consumer).len(), 1);
        assert_eq!(net.seen(shared).len(), times, "{link_type:?}");
    }
}

#[test]
fn a_face_that_ends_takes_its_routes_and_interests_with_it() {
    let (mut net, producer) = two_nodes();
    let (gone, stays) = (net.app(0), net.app(0));
    net.ask(gone, &interest("/p/1", 1));
    net.ask(stays, &interest("/p/1", 2));
    net.nodes[0].remove_face(net.now, gone.1);
    net.answer(producer, &data("/p/1"));
    assert_eq!((net.data(gone).len(), net.data(stays).len()), (0, 1));

    net.nodes[1].remove_face(net.now, producer.1);
    assert_eq!(net.nodes[1].forwarder.routed_prefixes(), 0);
    net.ask(stays, &interest("/p/2", 3));
    assert_eq!(net.nacks(stays).len(), 1);
    net.nodes[1].remove_face(net.now, producer.1);
}

#[test]
fn the_same_calls_give_the_same_frames() {
    let run = || {
        let (mut net, producer) = two_nodes();
        let consumer = net.app(0);
        for number in 0..200 {
            net.ask(consumer, &interest(&format!("/p/{}", number % 90), number));
            net.run_for(millis(7));
        }
        net.answer(producer, &data("/p/3"));
        (
            format!("{:?}", net.seen(producer)),
            format!("{:?}", net.nodes),
        )
    };
    assert_eq!(run(), run());
}
