use core::time::Duration;

use namecast_packet::signature::{Ed25519Signer, KeyPair as _};
use namecast_packet::{KeyLocator, Nonce, PublicKey, Validity};

use super::super::join::TOKEN_SIZE;
use super::*;

const ROOT: &str = "/calls/fox";

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pair(seed: u8, locator: &str) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(name(locator)))
}

fn key(seed: u8) -> PublicKey {
    pair(seed, "/").public_key()
}

fn anchor() -> Certificate {
    let validity = Validity::of_own_key(Timestamp::from_micros(0));
    Certificate::self_signed(&name(ROOT), b"1", 1, validity, &pair(100, ROOT))
}

fn secret(token: u8) -> InvitationSecret {
    InvitationSecret::of_token(&[token; TOKEN_SIZE])
}

fn host() -> Host {
    let anchor = anchor();
    let signer = pair(100, &anchor.name().to_string());
    let mut host = Host::new(name(ROOT), Box::new(signer), anchor).unwrap();
    host.set_invitations(&[secret(1)]);
    host
}

/// A request of the key of `seed`, with an invitation.
fn join(seed: u8, token: u8) -> Join {
    let place = (&name(ROOT), &key(100).digest());
    let keys = (key(seed), [seed; 32]);
    Join::new(place, &secret(token), keys, format!("newcomer {seed}"))
}

/// The Interest of a request, signed with the key of `signer`.
fn interest(join: &Join, signer: u8) -> Interest {
    let signer = pair(signer, "/newcomer");
    let interest = Interest::builder(join_name(&name(ROOT))).parameters(join.encode());
    interest.sign(Nonce([1; 4]), &signer, &signer.info())
}

fn now(seconds: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_secs(seconds),
        wall: Timestamp::from_micros(1_760_000_000_000_000),
    }
}

/// Gives the host an Interest from a face.
fn send(host: &mut Host, seconds: u64, interest: &Interest, face: u64) {
    let link = LpPacket {
        incoming_face: Some(face),
        ..LpPacket::carrying(interest.wire().clone())
    };
    host.handle_frame(now(seconds), link.encode());
}

/// Outputs of the host: Data, Nacks, and digests of the keys to decide on.
#[derive(Debug, Default)]
struct Out {
    data: Vec<Data>,
    nacks: usize,
    asked: Vec<[u8; 32]>,
}

fn drain(host: &mut Host) -> Out {
    let mut out = Out::default();
    while let Some(output) = host.poll_output() {
        match output {
            Output::Event(HostEvent::Join(join)) => out.asked.push(join.key.digest()),
            Output::Event(HostEvent::Leave(name)) => panic!("{name} leaves"),
            Output::Send(frame) => match face::open(frame).unwrap().unwrap() {
                (Packet::Data(data), _) => out.data.push(data),
                (Packet::Interest(_), link) => out.nacks += usize::from(link.nack.is_some()),
            },
        }
    }
    out
}

fn welcome(seed: u8) -> Welcome {
    let uri = name(&format!("{ROOT}/m{seed}/KEY/1/fox/v=1"));
    let validity = Validity::of_own_key(Timestamp::from_micros(0));
    let issuer = pair(100, &anchor().name().to_string());
    Welcome {
        schema_version: 1,
        roster_version: 2,
        certificate: Certificate::issue(uri, &key(seed), validity, &[], &issuer).unwrap(),
    }
}

/// Nine newcomers with one link get nine certificates, each under the name of its own Interest, signed by the anchor.
#[test]
fn each_newcomer_gets_a_certificate() {
    let mut host = host();
    for seed in 1..=9 {
        let interest = interest(&join(seed, 1), seed);
        send(&mut host, 0, &interest, u64::from(seed));
        assert_eq!(drain(&mut host).asked, [key(seed).digest()]);
        host.welcome(key(seed).digest(), &welcome(seed));
        let out = drain(&mut host);
        let [answer] = &out.data[..] else {
            panic!("{out:?}");
        };
        assert!(interest.matches(answer));
        assert!(answer.verify(&key(100)).is_ok());
        let read = Welcome::decode(&answer.content().unwrap());
        assert_eq!(read, Ok(welcome(seed)));
    }
    assert_eq!(host.join_counters().welcomed, 9);
}

/// What was captured of a join: sent again it is answered with the same certificate, and nobody is asked again; with another key in it, another
/// signer, another invitation or changed it is refused.
#[test]
fn what_was_captured_lets_nobody_else_in() {
    let mut host = host();
    let captured = interest(&join(1, 1), 1);
    send(&mut host, 0, &captured, 1);
    host.welcome(key(1).digest(), &welcome(1));
    let first = drain(&mut host).data;
    for (seconds, face) in [(1, 1), (5_000, 9)] {
        send(&mut host, seconds, &captured, face);
        let again = drain(&mut host);
        assert_eq!((again.data, again.asked.len()), (first.clone(), 0));
    }
    let mut with_other_key = join(1, 1);
    with_other_key.key = key(2);
    send(&mut host, 6_000, &interest(&with_other_key, 2), 9);
    assert_eq!(host.join_counters().wrong_tag, 1);
    // The key of somebody else in a request of one's own, by whoever has the token: the signature tells.
    send(&mut host, 6_000, &interest(&join(3, 1), 2), 9);
    assert_eq!(host.join_counters().wrong_signature, 1);
    send(&mut host, 6_000, &interest(&join(2, 8), 2), 9);
    assert_eq!(host.join_counters().unknown_invitation, 1);
    let empty = Interest::builder(join_name(&name(ROOT))).build(Nonce([2; 4]));
    send(&mut host, 6_000, &empty, 9);
    assert_eq!(host.join_counters().malformed, 1);
    let out = drain(&mut host);
    assert_eq!((out.data.len(), out.asked.len(), out.nacks), (0, 0, 4));
}

/// 10⁴ requests a second of one who has the link, each of another key: 32 wait, and others get in meanwhile.
#[test]
fn a_flood_of_one_member_leaves_room_for_others() {
    let mut host = host();
    for number in 0..10_000_u32 {
        let mut seed = [9; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        let signer = Ed25519Signer::from_seed(seed, KeyLocator::Name(name("/newcomer")));
        let keys = (signer.public_key(), seed);
        let place = (&name(ROOT), &key(100).digest());
        let join = Join::new(place, &secret(1), keys, String::new());
        let interest = Interest::builder(join_name(&name(ROOT))).parameters(join.encode());
        let interest = interest.sign(Nonce([1; 4]), &signer, &signer.info());
        send(&mut host, 0, &interest, 1);
    }
    let out = drain(&mut host);
    assert_eq!((out.asked.len(), host.waiting().count()), (32, 32));
    assert_eq!(host.join_counters().dropped_full, 10_000 - 32);
    send(&mut host, 0, &interest(&join(1, 1), 1), 2);
    assert_eq!(drain(&mut host).asked, [key(1).digest()]);
}

/// Requests that wait: 32 of a face and 64 altogether, each asked about once. Wrong tags take no place. Those that nobody decides end after
/// a minute, and those refused at once.
#[test]
fn requests_that_wait_are_bounded() {
    let mut host = host();
    for _ in 0..100 {
        send(&mut host, 0, &interest(&join(1, 8), 1), 1);
    }
    assert_eq!(host.waiting().count(), 0);
    for seed in 1..=33 {
        for _ in 0..3 {
            send(&mut host, 0, &interest(&join(seed, 1), seed), 1);
        }
    }
    let out = drain(&mut host);
    assert_eq!((out.asked.len(), host.waiting().count()), (32, 32));
    assert_eq!(host.join_counters().dropped_full, 3);
    for seed in 101..=180 {
        send(
            &mut host,
            1,
            &interest(&join(seed, 1), seed),
            u64::from(seed),
        );
    }
    assert_eq!(host.waiting().count(), 64);
    host.turn_away(key(1).digest());
    assert_eq!(
        (host.waiting().count(), host.join_counters().refused),
        (63, 1)
    );
    assert_eq!(host.poll_timeout(), Some(now(60).monotonic));
    host.handle_timeout(now(60));
    assert_eq!(host.waiting().count(), 32);
    host.handle_timeout(now(61));
    assert_eq!(
        (host.waiting().count(), host.join_counters().expired),
        (0, 63)
    );
}
