use namecast_packet::KeyLocator;
use namecast_packet::lp::NackReason;
use namecast_packet::signature::{DigestSigner, DigestVerifier, Ed25519Signer, KeyPair};
use namecast_units::Timestamp;

use super::*;

/// The face that leads to the neighbour.
const FACE: u64 = 300;

fn at(milliseconds: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_millis(milliseconds),
        wall: Timestamp::from_micros(1_790_000_000_000_000 + milliseconds * 1_000),
    }
}

fn wanted(announcement: Option<Announcing>) -> Wanted {
    let prefix: Name = "/p".parse().unwrap();
    let announcer = Announcer::new(prefix.clone(), Box::new(DigestSigner));
    Wanted {
        prefix,
        cost: 7,
        captures: false,
        announcement: announcement.map(|when| (announcer, when)),
        credential: Credential::None,
    }
}

const NEIGHBOUR: Option<Neighbour> = Some(Neighbour {
    face: FACE,
    addressee: Addressee::LOCAL,
    is_datagram: false,
});

fn registrar(wanted: Wanted) -> Registrar {
    Registrar::new(RegistrationConfig::default(), wanted, 5)
}

/// The only frame that it sends, as an Interest; and what it reports.
fn drain(registrar: &mut Registrar) -> (Option<Interest>, Vec<RegistrationEvent>) {
    let (mut sent, mut events) = (None, Vec::new());
    while let Some(output) = registrar.poll_output() {
        match output {
            Output::Send(frame) => {
                let packet = LpPacket::decode(frame).unwrap();
                assert_eq!(packet.next_hop_face, Some(FACE));
                let interest = Packet::decode(packet.fragment.unwrap()).unwrap();
                let Packet::Interest(interest) = interest else {
                    panic!("only Interests are sent");
                };
                assert_eq!(sent.replace(interest), None);
            }
            Output::Event(event) => events.push(event),
        }
    }
    (sent, events)
}

fn verb(interest: &Interest) -> String {
    interest.name().prefix(4).to_string()
}

fn parameters(interest: &Interest) -> ControlParameters {
    let component = interest.name().get(4).unwrap();
    ControlParameters::decode(&Bytes::copy_from_slice(component.value)).unwrap()
}

fn respond(code: u64, interest: &Interest) -> Bytes {
    let response = ControlResponse {
        code,
        text: "why".to_owned(),
        parameters: ControlParameters::default(),
    };
    answer(interest, response.encode())
}

fn answer(interest: &Interest, content: Bytes) -> Bytes {
    let name = match interest.can_be_prefix() {
        true => interest.name().builder().version(1).segment(0).finish(),
        false => interest.name().clone(),
    };
    let data = Data::builder(name)
        .content(content)
        .freshness(Duration::from_secs(1));
    data.sign(&DigestSigner).wire().clone()
}

fn nack(interest: &Interest) -> Bytes {
    face::refusal(interest, None, NackReason::NoRoute)
}

/// `strategy-choice/list` of a forwarder with one strategy for all names.
fn strategies(strategy: &str) -> Bytes {
    let choice = Choice {
        prefix: Name::root(),
        strategy: format!("/localhost/nfd/strategy/{strategy}")
            .parse()
            .unwrap(),
    };
    choice.encode()
}

fn state(state: RegistrationState) -> RegistrationEvent {
    RegistrationEvent::State(state)
}

/// The command is signed by digest, names prefix, cost and a client's origin, and is repeated after 300 s.
#[test]
fn a_prefix_is_registered_as_soon_as_there_is_a_neighbour_and_again_after_the_refresh() {
    let mut registrar = registrar(wanted(None));
    registrar.handle_timeout(at(0));
    assert_eq!(drain(&mut registrar), (None, vec![]));
    assert_eq!(registrar.poll_timeout(), None);
    registrar.set_neighbour(at(10), NEIGHBOUR);
    let (command, _) = drain(&mut registrar);
    let command = command.unwrap();
    assert_eq!(verb(&command), "/localhost/nfd/rib/register");
    assert!(command.verify(&DigestVerifier).is_ok());
    let expected = ControlParameters {
        name: Some("/p".parse().unwrap()),
        origin: Some(65),
        cost: Some(7),
        flags: Some(CHILD_INHERIT),
        ..ControlParameters::default()
    };
    assert_eq!(parameters(&command), expected);
    registrar.handle_frame(at(12), respond(200, &command));
    assert_eq!(
        drain(&mut registrar),
        (None, vec![state(RegistrationState::Registered)])
    );
    assert_eq!(registrar.poll_timeout(), Some(at(300_012).monotonic));
    registrar.handle_timeout(at(300_012));
    let (again, events) = drain(&mut registrar);
    assert_eq!((verb(&again.unwrap()), events), (verb(&command), vec![]));
}

/// Unanswered after 1 s, then pauses of 250, 500, 750, 750 ms; a refusal counts like silence.
#[test]
fn failures_are_followed_by_longer_and_longer_pauses() {
    let mut registrar = registrar(wanted(None));
    registrar.set_neighbour(at(0), NEIGHBOUR);
    let mut now = 0;
    let mut events = Vec::new();
    for pause in [250, 500, 750, 750] {
        let (command, _) = drain(&mut registrar);
        assert!(command.is_some(), "{now}");
        registrar.handle_timeout(at(now + 999));
        registrar.handle_timeout(at(now + 1_000));
        events.extend(drain(&mut registrar).1);
        now += 1_000 + pause;
        assert_eq!(registrar.poll_timeout(), Some(at(now).monotonic));
        registrar.handle_timeout(at(now - 1));
        assert_eq!(drain(&mut registrar).0, None);
        registrar.handle_timeout(at(now));
    }
    assert_eq!(events, [state(RegistrationState::Unanswered)]);
    let (command, _) = drain(&mut registrar);
    registrar.handle_frame(at(now), respond(403, &command.unwrap()));
    let refused = RegistrationState::Refused("403 why".to_owned());
    assert_eq!(drain(&mut registrar).1, [state(refused)]);
    registrar.handle_timeout(at(now + 750));
    let (command, _) = drain(&mut registrar);
    registrar.handle_frame(at(now + 751), nack(&command.unwrap()));
    let [RegistrationEvent::State(RegistrationState::Refused(why))] = &drain(&mut registrar).1[..]
    else {
        panic!("a Nack is a refusal");
    };
    assert!(why.contains("NoRoute"), "{why}");
}

/// A forwarder that came back has forgotten; one that is away is not asked.
#[test]
fn a_neighbour_that_comes_back_is_asked_at_once() {
    let mut registrar = registrar(wanted(None));
    registrar.set_neighbour(at(0), NEIGHBOUR);
    let command = drain(&mut registrar).0.unwrap();
    registrar.handle_frame(at(1), respond(200, &command));
    registrar.set_neighbour(at(50), None);
    assert_eq!(registrar.poll_timeout(), None);
    registrar.handle_timeout(at(400_000));
    assert_eq!(drain(&mut registrar).0, None);
    registrar.set_neighbour(at(400_001), NEIGHBOUR);
    assert!(drain(&mut registrar).0.is_some());
}

/// Datagrams: the route has a lifetime of four repetitions of 1.5 s.
#[test]
fn a_route_over_datagrams_ends_when_it_is_not_repeated() {
    let mut registrar = registrar(wanted(None));
    let datagrams = NEIGHBOUR.map(|it| Neighbour {
        is_datagram: true,
        ..it
    });
    registrar.set_neighbour(at(0), datagrams);
    let command = drain(&mut registrar).0.unwrap();
    let lifetime = parameters(&command).expiration;
    assert_eq!(lifetime, Some(Duration::from_secs(6)));
    registrar.handle_frame(at(1), respond(200, &command));
    assert_eq!(registrar.poll_timeout(), Some(at(1_501).monotonic));
}

#[test]
fn a_local_neighbour_that_learns_is_told_the_announcement_and_another_is_not() {
    for (strategy, when, expected) in [
        ("self-learning/v=1", Announcing::WhereLearned, true),
        ("best-route/v=5", Announcing::WhereLearned, false),
        ("best-route/v=5", Announcing::Always, true),
    ] {
        let mut registrar = registrar(wanted(Some(when)));
        registrar.set_neighbour(at(0), NEIGHBOUR);
        let command = drain(&mut registrar).0.unwrap();
        registrar.handle_frame(at(1), respond(200, &command));
        let mut next = drain(&mut registrar).0;
        if when == Announcing::WhereLearned {
            let question = next.unwrap();
            assert_eq!(verb(&question), "/localhost/nfd/strategy-choice/list");
            registrar.handle_frame(at(2), answer(&question, strategies(strategy)));
            next = drain(&mut registrar).0;
        }
        let announced = next.map(|announcement| {
            registrar.handle_frame(at(3), respond(200, &announcement));
            verb(&announcement)
        });
        let announce = expected.then(|| "/localhost/nfd/rib/announce".to_owned());
        assert_eq!(announced, announce, "{strategy} {when:?}");
        let told = RegistrationEvent::Announced(Ok(()));
        assert_eq!(drain(&mut registrar).1.contains(&told), expected);
        // Everything that was told is taken back, one after another.
        registrar.cancel(at(4));
        let mut origins = Vec::new();
        let mut events = Vec::new();
        loop {
            let (command, more) = drain(&mut registrar);
            events.extend(more);
            let Some(command) = command else { break };
            assert_eq!(verb(&command), "/localhost/nfd/rib/unregister");
            origins.push(parameters(&command).origin.unwrap());
            registrar.handle_frame(at(5), respond(200, &command));
        }
        assert_eq!(origins, [65, 129][..1 + usize::from(expected)]);
        assert_eq!(events, [state(RegistrationState::Ended)]);
        assert_eq!(registrar.poll_timeout(), None);
    }
}

/// What does not answer anything that is asked, or answers it too late, changes nothing.
#[test]
fn a_cancelled_registration_ends_whatever_the_neighbour_does() {
    let mut silent = registrar(wanted(None));
    silent.set_neighbour(at(0), NEIGHBOUR);
    let command = drain(&mut silent).0.unwrap();
    silent.cancel(at(1));
    assert!(drain(&mut silent).0.is_some());
    silent.handle_frame(at(2), respond(200, &command));
    silent.handle_frame(at(2), Bytes::from_static(&[5, 3, 1]));
    assert_eq!(drain(&mut silent), (None, vec![]));
    silent.handle_timeout(at(1_001));
    assert_eq!(
        drain(&mut silent),
        (None, vec![state(RegistrationState::Ended)])
    );
    let mut alone = registrar(wanted(None));
    alone.cancel(at(0));
    assert_eq!(
        drain(&mut alone),
        (None, vec![state(RegistrationState::Ended)])
    );
    let mut left = registrar(wanted(None));
    left.set_neighbour(at(0), NEIGHBOUR);
    drain(&mut left);
    left.cancel(at(1));
    drain(&mut left);
    left.set_neighbour(at(2), None);
    assert_eq!(drain(&mut left).1, [state(RegistrationState::Ended)]);
}

/// The longest choice above a prefix holds for it; below, any that learns is reason enough.
#[test]
fn a_prefix_is_announced_where_its_own_strategy_or_one_below_learns() {
    let choice = |prefix: &str, strategy: &str| Choice {
        prefix: prefix.parse().unwrap(),
        strategy: format!("/localhost/nfd/strategy/{strategy}")
            .parse()
            .unwrap(),
    };
    let choices = [
        choice("/", "best-route/v=5"),
        choice("/a", "self-learning/v=1"),
        choice("/a/b", "multicast/v=5"),
        choice("/c/d", "self-learning/v=2"),
    ];
    let list: Vec<u8> = choices.iter().flat_map(|choice| choice.encode()).collect();
    let list = Bytes::from(list);
    for (prefix, expected) in [
        ("/", true),
        ("/a", true),
        ("/a/x", true),
        ("/a/b", false),
        ("/a/b/x", false),
        ("/b", false),
        ("/c", true),
        ("/c/x", false),
        ("/c/d/x", true),
    ] {
        assert_eq!(
            are_learning(&list, &prefix.parse().unwrap()),
            expected,
            "{prefix}"
        );
    }
    assert!(!are_learning(&Bytes::new(), &"/a".parse().unwrap()));
}

/// Another cost is registered at once, also while the answer to the one before is awaited; the same one is not.
#[test]
fn another_cost_is_registered_at_once() {
    let mut registrar = registrar(Wanted {
        captures: true,
        ..wanted(None)
    });
    registrar.set_cost(at(0), 8);
    registrar.set_neighbour(at(10), NEIGHBOUR);
    let asked = |registrar: &mut Registrar| {
        let command = drain(registrar).0?;
        let route = parameters(&command);
        Some((route.cost?, route.flags?))
    };
    let flags = CHILD_INHERIT | CAPTURE;
    assert_eq!(asked(&mut registrar), Some((8, flags)));
    registrar.set_cost(at(20), 9);
    assert_eq!(asked(&mut registrar), Some((9, flags)));
    registrar.set_cost(at(30), 9);
    assert_eq!(asked(&mut registrar), None);
    registrar.cancel(at(40));
    assert!(drain(&mut registrar).0.is_some());
    registrar.set_cost(at(50), 10);
    assert_eq!(drain(&mut registrar).0, None);
}

/// A member's command is signed with its key and shows its certificates, when it registers and when it unregisters. It is repeated every 10 s, as
/// its route ends 30 s after it was registered last.
#[test]
fn members_register_by_their_key_and_show_their_certificates() {
    let name = |uri: &str| uri.parse::<Name>().unwrap();
    let key = name("/calls/fox/ann/KEY/1/fox/v=1");
    let signer = |seed| Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(key.clone()));
    let certificates = ["/calls/fox/ann", "/calls/fox"].map(|it| {
        let name = name(it).child(Component::generic("certificate"));
        Data::builder(name).sign(&DigestSigner)
    });
    let member = Member::new(Box::new(signer(1)), &certificates);
    let mut registrar = registrar(Wanted {
        credential: Credential::Member(member),
        ..wanted(None)
    });
    registrar.set_neighbour(at(0), NEIGHBOUR);
    let command = drain(&mut registrar).0.unwrap();
    let shown = certificates.map(|it| it.wire().clone()).concat();
    let is_by_member = |command: &Interest| {
        command.verify(&signer(1).public_key()).is_ok()
            && command.verify(&signer(2).public_key()).is_err()
            && command.parameters().as_deref() == Some(&shown[..])
    };
    assert!(is_by_member(&command));
    registrar.handle_frame(at(5), respond(200, &command));
    drain(&mut registrar);
    assert_eq!(registrar.poll_timeout(), Some(at(10_005).monotonic));
    registrar.cancel(at(20));
    let command = drain(&mut registrar).0.unwrap();
    assert!(command.name().to_string().contains("rib/unregister"));
    assert!(is_by_member(&command));
}
