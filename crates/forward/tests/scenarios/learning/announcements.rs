//! Which announcements count: asked for, whole, signed by those who may, and within their period.

use namecast_packet::Validity;
use namecast_units::Timestamp;

use super::*;

/// Data from a face that was not asked may answer, but what it announces counts for nothing, nor is it passed on; and so
/// with Data that nobody asked for.
#[test]
fn nobody_announces_unasked() {
    let (mut net, _, [asking, asked]) = with_neighbours(LearningConfig::default());
    net.ask(asking, &interest("/p/1", 1));
    let late = net.face(0, FaceConfig::default());
    net.send(late, announcing("/p/1", "/p", HOUR));
    net.send(asked, announcing("/p/1", "/p", HOUR));
    net.send(late, announcing("/p/2", "/p", HOUR));
    let seen = net.seen(asking);
    assert_eq!((seen.len(), &seen[0].header), (1, &LpPacket::default()));
    assert_eq!(routes(&net, 0), []);
    let counters = net.nodes[0].counters();
    assert_eq!(
        (counters.routes_learned, counters.announcements_refused),
        (0, 0)
    );
}

/// Each answers an Interest for `/p/n`, and the Data reach who asked, without the announcement.
#[test]
fn bad_announcements_cost_nothing_but_themselves() {
    let (mut net, _, [asking, asked]) = with_neighbours(LearningConfig::default());
    let good = announcement("/p", HOUR, &NullSigner);
    let bad = [
        announcement("/q", HOUR, &NullSigner),
        announcement("/p", Duration::ZERO, &NullSigner),
        announcement(&"/p".repeat(33), HOUR, &NullSigner),
        data("/p").wire().clone(),
        good.slice(..good.len() - 1),
        Bytes::new(),
    ];
    for (number, announcement) in (1..).zip(&bad) {
        let uri = format!("{}/{number}", "/p".repeat(33));
        net.ask(asking, &interest(&uri, number));
        net.send(asked, with(&uri, announcement));
        let seen = net.seen(asking);
        assert_eq!((seen.len(), &seen[0].header), (1, &LpPacket::default()));
        let counters = net.nodes[0].counters();
        assert_eq!(counters.announcements_refused, u64::from(number));
    }
    assert_eq!(routes(&net, 0), []);
    assert_eq!(net.nodes[0].poll_timeout(), None);
}

/// With room for two, a third is refused, and not passed on: who followed it would be turned away here.
#[test]
fn announcements_are_bounded() {
    let (mut net, _, [asking, asked]) = with_neighbours(LearningConfig {
        max_routes: 2,
        ..LearningConfig::default()
    });
    let mut passed_on = Vec::new();
    for (number, prefix) in (1..).zip(["/1", "/2", "/3", "/2"]) {
        let uri = format!("{prefix}/{number}");
        if prefix == "/2" && number == 4 {
            // Found by its route, so this is no news.
            net.ask(asking, &interest(&uri, number));
            net.answer(asked, &data(&uri));
        } else {
            net.ask(asking, &interest(&uri, number));
            net.send(asked, announcing(&uri, prefix, HOUR));
        }
        let seen = net.seen(asking);
        passed_on.push(seen[0].header.prefix_announcement.is_some());
    }
    assert_eq!(passed_on, [true, true, false, true]);
    let prefixes: Vec<_> = routes(&net, 0)
        .into_iter()
        .map(|(prefix, _)| prefix)
        .collect();
    assert_eq!(prefixes, ["/1", "/2"]);
    let counters = net.nodes[0].counters();
    assert_eq!(
        (counters.routes_learned, counters.announcements_refused),
        (2, 1)
    );
    // What ended makes room.
    net.run_for(HOUR);
    net.ask(asking, &interest("/3/x", 9));
    net.send(asked, announcing("/3/x", "/3", HOUR));
    assert_eq!(routes(&net, 0).len(), 1);
}

#[test]
fn with_keys_only_their_owners_announce() {
    let (mut net, consumer, [first, second]) = with_neighbours(LearningConfig {
        keys: vec![signer(1).public_key(), signer(2).public_key()],
        ..LearningConfig::default()
    });
    for (nonce, seed, is_learned) in [(1, 3, false), (2, 2, true)] {
        let uri = format!("/p/{nonce}");
        net.ask(consumer, &interest(&uri, nonce));
        let announcement = announcement("/p", HOUR, &signer(seed));
        net.send(first, with(&uri, &announcement));
        assert_eq!(routes(&net, 0).len(), usize::from(is_learned));
    }
    // The very same octets need no second look, but others do.
    net.nodes[0].forwarder.remove_route(&name("/p"), first.1);
    net.ask(consumer, &interest("/p/3", 3));
    net.send(second, announcing("/p/3", "/p", HOUR));
    assert_eq!(routes(&net, 0), []);
    assert_eq!(net.nodes[0].counters().announcements_refused, 2);
}

/// The node started a minute after 2000-01-01; one announcement was valid until then, one is from a minute later on.
#[test]
fn announcements_hold_within_their_validity() {
    const START: u64 = 946_684_860;
    let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
    let valid = |from, to| {
        let validity = Validity {
            not_before: at(from),
            not_after: at(to),
        };
        let signed = PrefixAnnouncement::sign(&name("/p"), 1, HOUR, Some(validity), &NullSigner);
        signed.data().wire().clone()
    };
    let past = valid(START - 60, START);
    let future = valid(START + 60, START + 120);
    for (epoch, expected) in [
        (
            Some(at(START)),
            [(true, false), (false, true), (false, false)],
        ),
        (None, [(true, true); 3]),
    ] {
        let learned = |wait: u64, wire: &Bytes| {
            let (mut net, consumer, [neighbour, _]) = with_neighbours(LearningConfig {
                epoch,
                ..LearningConfig::default()
            });
            net.run_for(Duration::from_secs(wait));
            net.ask(consumer, &interest("/p/1", 1));
            net.send(neighbour, with("/p/1", wire));
            routes(&net, 0).len() == 1
        };
        let seen = [0, 60, 121].map(|wait| (learned(wait, &past), learned(wait, &future)));
        assert_eq!(seen, expected);
    }
}

/// At 2000-01-01 an announcement says that it holds for an hour, and also that it is valid for a minute more only: the
/// minute counts, for the route's end and for whoever announces by command. After it, the same is refused by its period.
#[test]
fn a_route_ends_with_the_period_of_its_announcement() {
    let start = Timestamp::from_micros(946_684_800_000_000);
    let (mut net, consumer, neighbours) = with_neighbours(LearningConfig {
        epoch: Some(start),
        ..LearningConfig::default()
    });
    let validity = Validity {
        not_before: start,
        not_after: start + MINUTE,
    };
    let signed = PrefixAnnouncement::sign(&name("/p"), 1, HOUR, Some(validity), &NullSigner);
    net.ask(consumer, &interest("/p/1", 1));
    net.send(neighbours[0], with("/p/1", signed.data().wire()));
    let end = Instant::ZERO + MINUTE + Duration::from_micros(1);
    let ends = |net: &Net| {
        let route = net.nodes[0].forwarder.learned_routes().next();
        route.map(|route| route.expires)
    };
    assert_eq!(ends(&net), Some(end));
    net.run_for(Duration::from_secs(30));
    net.ask(consumer, &interest("/p/2", 2));
    net.answer(neighbours[0], &data("/p/2"));
    assert_eq!(ends(&net), Some(end), "however much it is used");
    let left = net.nodes[0]
        .forwarder
        .learning(net.now)
        .announced_for(&signed);
    assert_eq!(left, MINUTE / 2 + Duration::from_micros(1));
    net.run_for(Duration::from_secs(31));
    assert_eq!(ends(&net), None);
    let now = net.now;
    assert!(
        !net.nodes[0]
            .forwarder
            .learning(now)
            .announce(neighbours[0].1, &signed)
    );
    let counters = net.nodes[0].counters();
    assert_eq!(
        (
            counters.announcements_out_of_period,
            counters.announcements_refused
        ),
        (1, 1)
    );
}
