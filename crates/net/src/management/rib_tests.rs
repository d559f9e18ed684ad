use super::*;
use namecast_units::{Duration, Random};

const FACE: FaceId = FaceId::from_number(300);
const OTHER: FaceId = FaceId::from_number(301);

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn route(cost: u64) -> Route {
    Route {
        cost,
        flags: CHILD_INHERIT,
        expires: None,
    }
}

fn change(prefix: &str, face: FaceId, cost: Option<u64>) -> Change {
    Change {
        prefix: name(prefix),
        face,
        cost,
    }
}

#[test]
fn the_cheapest_origin_counts_and_the_last_to_go_ends_the_next_hop() {
    let mut rib = Rib::new(10, 1_000);
    let a = name("/a");
    let costs = |cost| vec![change("/a", FACE, cost)];
    assert_eq!(rib.register(&a, FACE, 0, route(7)), Ok(costs(Some(7))));
    assert_eq!(rib.register(&a, FACE, 255, route(3)), Ok(costs(Some(3))));
    assert_eq!(rib.register(&a, FACE, 0, route(5)), Ok(vec![]));
    assert_eq!(rib.unregister(&a, FACE, 255), costs(Some(5)));
    assert_eq!(rib.unregister(&a, FACE, 255), []);
    assert_eq!(rib.unregister(&a, FACE, 0), costs(None));
    assert!(rib.is_empty() && rib.installed.is_empty());
}

#[test]
fn a_route_ends_at_its_time_and_not_before() {
    let at = Instant::ZERO + Duration::from_secs(9);
    let mut rib = Rib::new(10, 1_000);
    rib.register(&name("/a"), FACE, 0, route(7)).unwrap();
    let short = Route {
        cost: 1,
        expires: Some(at),
        ..route(1)
    };
    rib.register(&name("/a"), FACE, 1, short).unwrap();
    assert_eq!(rib.poll_timeout(), Some(at));
    let before = at.saturating_sub(Duration::from_nanos(1));
    assert_eq!(rib.handle_timeout(before), []);
    assert_eq!(rib.handle_timeout(at), [change("/a", FACE, Some(7))]);
    assert_eq!(rib.poll_timeout(), None);
}

#[test]
fn a_full_table_takes_renewals_only() {
    let mut rib = Rib::new(1, 1_000);
    rib.register(&name("/a"), FACE, 0, route(7)).unwrap();
    assert_eq!(rib.register(&name("/a"), FACE, 1, route(7)), Err(RibFull));
    assert!(rib.register(&name("/a"), FACE, 0, route(8)).is_ok());
    rib.retain_faces(|face| face != FACE);
    assert!(rib.register(&name("/a"), FACE, 1, route(7)).is_ok());
}

/// 20 prefixes with a route of their own, and room for 60 next hops: those of `/` from one face are inherited and fill 41, the
/// next face's would need 62. It is refused, and nothing is left of it; what was there can be renewed and taken back.
#[test]
fn inherited_next_hops_are_bounded() {
    let mut rib = Rib::new(1_000, 60);
    for number in 0..20 {
        let prefix = name(&format!("/{number}"));
        rib.register(&prefix, FACE, 0, route(7)).unwrap();
    }
    let [second, third] = [302, 303].map(FaceId::from_number);
    let inherited = rib.register(&Name::root(), second, 0, route(1)).unwrap();
    assert_eq!((inherited.len(), rib.installed.len()), (21, 41));
    let before = rib.installed.clone();
    assert_eq!(
        rib.register(&Name::root(), third, 0, route(1)),
        Err(RibFull)
    );
    assert_eq!((&rib.installed, rib.count), (&before, 21));
    let alone = Route {
        flags: 0,
        ..route(1)
    };
    assert!(rib.register(&Name::root(), third, 0, alone).is_ok());
    let before = rib.installed.clone();
    // A renewal that would hand it down leaves the route as it was.
    assert_eq!(
        rib.register(&Name::root(), third, 0, route(2)),
        Err(RibFull)
    );
    assert_eq!((&rib.installed, rib.count), (&before, 22));
    assert_eq!(rib.unregister(&Name::root(), third, 0).len(), 1);
    assert_eq!(rib.unregister(&Name::root(), second, 0).len(), 21);
    assert_eq!(rib.installed.len(), 20);
}

/// `/a/b` has a next hop of its own and that of `/a`, the nearer one where both have it; `/a/c`, which has no route, has no
/// entry. Nothing comes from `/x`.
#[test]
fn longer_prefixes_that_have_routes_inherit() {
    let mut rib = Rib::new(10, 1_000);
    rib.register(&name("/x"), OTHER, 0, route(1)).unwrap();
    rib.register(&name("/a/b"), FACE, 0, route(7)).unwrap();
    let both = [change("/a", OTHER, Some(9)), change("/a/b", OTHER, Some(9))];
    assert_eq!(rib.register(&name("/a"), OTHER, 0, route(9)).unwrap(), both);
    let farther = [change("/", OTHER, Some(4))];
    assert_eq!(
        rib.register(&name("/"), OTHER, 0, route(4)).unwrap(),
        farther
    );
    let own = [change("/a/b", OTHER, Some(2))];
    assert_eq!(
        rib.register(&name("/a/b"), OTHER, 0, route(2)).unwrap(),
        own
    );
    assert_eq!(
        rib.unregister(&name("/a/b"), OTHER, 0),
        [change("/a/b", OTHER, Some(9))]
    );
    // With /a's own route gone, what / hands down is left.
    let left = [change("/a/b", OTHER, Some(4)), change("/a", OTHER, None)];
    assert_eq!(rib.unregister(&name("/a"), OTHER, 0), left);
}

#[test]
fn routes_that_do_not_hand_down_and_prefixes_that_capture_end_inheritance() {
    let mut rib = Rib::new(10, 1_000);
    let with = |cost, flags| Route {
        flags,
        ..route(cost)
    };
    rib.register(&name("/a/b/c"), FACE, 0, route(7)).unwrap();
    let only = [change("/a", OTHER, Some(1))];
    assert_eq!(
        rib.register(&name("/a"), OTHER, 0, with(1, 0)).unwrap(),
        only
    );
    let now = [change("/a/b/c", OTHER, Some(1))];
    assert_eq!(rib.register(&name("/a"), OTHER, 0, route(1)).unwrap(), now);
    // What is captured at /a/b comes neither to it nor to what is below.
    let captured = [change("/a/b", FACE, Some(5)), change("/a/b/c", OTHER, None)];
    assert_eq!(
        rib.register(&name("/a/b"), FACE, 0, with(5, CAPTURE))
            .unwrap(),
        captured
    );
    // The face that captured is gone, and with it all its routes.
    let released = rib.retain_faces(|face| face != FACE);
    assert_eq!(released, []);
    assert_eq!(rib.installed.len(), 1);
    rib.register(&name("/a/b/c"), OTHER, 0, route(3)).unwrap();
    rib.register(&name("/a/b"), FACE, 0, with(5, CAPTURE))
        .unwrap();
    rib.register(&name("/"), FaceId::from_number(302), 0, route(8))
        .unwrap();
    let released = rib.retain_faces(|face| face != FACE);
    let third = FaceId::from_number(302);
    assert_eq!(released, [change("/a/b/c", third, Some(8))]);
}

/// Against a twin that works everything out anew: whatever comes and goes, the forwarder has been told what the routes say.
#[test]
fn what_the_forwarder_was_told_is_what_the_routes_come_to() {
    let mut random = Random::from_seed(7);
    let mut rib = Rib::new(50, 1_000);
    let mut told = BTreeMap::new();
    let prefixes = ["/", "/a", "/a/b", "/a/b/c", "/a/bb", "/b"].map(name);
    for _ in 0..5_000 {
        let prefix = &prefixes[random.below(6) as usize];
        let face = FaceId::from_number(300 + random.below(3));
        let origin = random.below(2);
        let changes = match random.below(5) {
            0..3 => {
                let route = Route {
                    flags: random.below(4),
                    ..route(random.below(9))
                };
                rib.register(prefix, face, origin, route)
                    .unwrap_or_default()
            }
            3 => rib.unregister(prefix, face, origin),
            _ if random.chance(0.1) => {
                told.retain(|(_, to), _| *to != face);
                rib.retain_faces(|living| living != face)
            }
            _ => Vec::new(),
        };
        for Change { prefix, face, cost } in changes {
            match cost {
                Some(cost) => told.insert((prefix, face), cost),
                None => told.remove(&(prefix, face)),
            };
        }
        let mut expected = BTreeMap::new();
        for prefix in rib.routes.keys() {
            let hops = rib.next_hops(prefix).into_iter();
            expected.extend(hops.map(|(face, cost)| ((prefix.clone(), face), cost)));
        }
        assert_eq!(told, expected);
    }
    assert!(told.len() > 5);
}

/// An archive's `/a/v/index`, and a publisher's `/a` and an operator's `/` from lower faces, in any order: the archive is asked
/// first, and they stay for when it does not answer. Whatever is free of cost is no reason to come before it.
#[test]
fn a_route_that_precedes_comes_before_those_that_its_prefix_inherits() {
    let [operator, publisher, archive] = [300, 301, 302].map(FaceId::from_number);
    let routes = [
        ("/", operator, route(0)),
        ("/a", publisher, route(0)),
        (
            "/a/v/index",
            archive,
            Route {
                flags: CHILD_INHERIT | PRECEDE,
                ..route(27)
            },
        ),
    ];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut rib = Rib::new(10, 1_000);
        for (prefix, face, route) in order.map(|at| routes[at]) {
            rib.register(&name(prefix), face, 0, route).unwrap();
        }
        let costs =
            |rib: &Rib, prefix| rib.next_hops(&name(prefix)).into_iter().collect::<Vec<_>>();
        let expected = [(operator, 28), (publisher, 28), (archive, 27)];
        assert_eq!(costs(&rib, "/a/v/index"), expected, "{order:?}");
        assert_eq!(costs(&rib, "/a"), [(operator, 0), (publisher, 0)]);
        rib.unregister(&name("/a/v/index"), archive, 0);
        assert_eq!(rib.installed.len(), 3);
    }
}
