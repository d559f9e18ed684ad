use namecast_packet::Packet;
use namecast_packet::lp::NackReason;
use namecast_packet::signature::{KeyPair as _, NullSigner};

use super::super::{Host, HostEvent, Part};
use super::*;
use crate::fixtures::{self, name, pair, validity};
use crate::trust::Roster;
use crate::{Application as _, Now, Output, face};

const ROOT: &str = "/calls/fox";
/// Seeds of the keys of the anchor, of two members and of a stranger.
const FOX: u8 = 1;
const ANN: u8 = 2;
const BOB: u8 = 3;
const EVE: u8 = 4;

fn anchor() -> Certificate {
    let pair = pair(FOX, &name(ROOT));
    Certificate::self_signed(&name(ROOT), b"1", 1, validity(), &pair)
}

/// Version `version` of the certificate of the key of `seed`.
fn certificate(seed: u8, version: u64) -> Certificate {
    let uri = name(&format!("{ROOT}/m{seed}/KEY/1/fox/v={version}"));
    let key = pair(seed, &uri).public_key();
    let issuer = pair(FOX, anchor().name());
    Certificate::issue(uri, &key, validity(), &[], &issuer).unwrap()
}

fn now(millis: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_millis(millis),
        wall: validity().not_before,
    }
}

/// A host of these certificates, which are of its roster 1.
fn host(members: &[Certificate]) -> Host {
    let signer = pair(FOX, anchor().name());
    let mut host = Host::new(name(ROOT), Box::new(signer), anchor()).unwrap();
    set_members(&mut host, 1, members);
    host
}

fn set_members(host: &mut Host, version: u64, members: &[Certificate]) {
    let roster = Roster {
        members: members.iter().map(fixtures::member).collect(),
        revocations: Vec::new(),
    };
    assert!(members.iter().all(|it| host.add_certificate(it)));
    host.publish(Part::Roster, version, roster.encode())
        .unwrap();
}

/// The request of the holder of `certificate`, signed with the key of `seed`.
fn request(seed: u8, certificate: &Certificate) -> Interest {
    let signer = pair(seed, certificate.name());
    leave(&name(ROOT), &signer, Nonce([1; 4]))
}

/// Outcomes of what the host was given.
#[derive(Debug, Default, PartialEq, Eq)]
struct Out {
    leavers: Vec<Name>,
    answers: Vec<Name>,
    refusals: Vec<NackReason>,
}

fn give(host: &mut Host, millis: u64, interest: &Interest) -> Out {
    host.handle_frame(now(millis), interest.wire().clone());
    drain(host)
}

fn drain(host: &mut Host) -> Out {
    let mut out = Out::default();
    while let Some(output) = host.poll_output() {
        match output {
            Output::Event(HostEvent::Leave(name)) => out.leavers.push(name),
            Output::Event(HostEvent::Join(_)) => panic!("nobody joins"),
            Output::Send(frame) => match face::open(frame).unwrap().unwrap() {
                (Packet::Data(data), _) => {
                    let key = pair(FOX, &name(ROOT)).public_key();
                    assert!(data.verify(&key).is_ok());
                    out.answers.push(data.name().clone());
                }
                (_, link) => out.refusals.extend(link.nack),
            },
        }
    }
    out
}

fn answered(interest: &Interest) -> Out {
    Out {
        answers: vec![interest.name().clone()],
        ..Out::default()
    }
}

fn refused(reason: NackReason) -> Out {
    Out {
        refusals: vec![reason],
        ..Out::default()
    }
}

/// The request waits until a roster without the member is published, which answers it. It is reported once, however often it is sent, and answered at once
/// from then on.
#[test]
fn a_member_leaves() {
    let [ann, bob] = [ANN, BOB].map(|seed| certificate(seed, 1));
    let mut host = host(&[ann.clone(), bob.clone()]);
    let interest = request(ANN, &ann);
    let reported = Out {
        leavers: vec![ann.name().clone()],
        ..Out::default()
    };
    assert_eq!(give(&mut host, 0, &interest), reported);
    assert_eq!(give(&mut host, 1_000, &interest), Out::default());
    // Another roster in which she is.
    set_members(&mut host, 2, &[ann.clone(), bob.clone()]);
    assert_eq!(drain(&mut host), Out::default());
    set_members(&mut host, 3, &[bob]);
    assert_eq!(drain(&mut host), answered(&interest));
    assert_eq!(give(&mut host, 1_100, &interest), answered(&interest));
    let counters = LeaveCounters {
        requests: 3,
        held: 2,
        repeated: 1,
        ..LeaveCounters::default()
    };
    assert_eq!(host.leave_counters(), &counters);
}

/// Eve signs in Ann's name, or under a certificate that the host did not issue, or under none; Bob signs in Ann's name. Ann stays, and each reason has a
/// counter.
#[test]
fn nobody_leaves_for_another() {
    let [ann, bob] = [ANN, BOB].map(|seed| certificate(seed, 1));
    let mut host = host(&[ann.clone(), bob.clone()]);
    for seed in [EVE, BOB] {
        let forged = request(seed, &ann);
        assert_eq!(give(&mut host, 0, &forged), refused(NackReason::None));
    }
    let foreign = request(EVE, &certificate(EVE, 1));
    assert_eq!(give(&mut host, 0, &foreign), refused(NackReason::None));
    let unsigned = Interest::builder(leave_name(&name(ROOT))).build(Nonce([2; 4]));
    assert_eq!(give(&mut host, 0, &unsigned), refused(NackReason::None));
    let unnamed = leave(&name(ROOT), &NullSigner, Nonce([3; 4]));
    assert_eq!(give(&mut host, 0, &unnamed), refused(NackReason::None));
    let counters = LeaveCounters {
        requests: 5,
        malformed: 2,
        unknown_certificate: 1,
        wrong_signature: 2,
        ..LeaveCounters::default()
    };
    assert_eq!(host.leave_counters(), &counters);
    // Bob's own request is one.
    assert_eq!(give(&mut host, 0, &request(BOB, &bob)).leavers.len(), 1);
}

/// Ann left and joined again. What she sent then is sent again by somebody else: it is refused, and she stays.
#[test]
fn a_replayed_request_does_not_end_a_later_membership() {
    let [before, after] = [1, 2].map(|version| certificate(ANN, version));
    let mut host = host(core::slice::from_ref(&before));
    let interest = request(ANN, &before);
    assert_eq!(give(&mut host, 0, &interest).leavers.len(), 1);
    set_members(&mut host, 2, &[]);
    assert_eq!(drain(&mut host), answered(&interest));
    set_members(&mut host, 3, core::slice::from_ref(&after));
    assert_eq!(give(&mut host, 9_000, &interest), refused(NackReason::None));
    assert_eq!(host.leave_counters().replaced, 1);
    let again = request(ANN, &after);
    assert_eq!(
        give(&mut host, 9_000, &again).leavers,
        [after.name().clone()]
    );
}

/// 10⁴ forged requests in Ann's name in a second: 256 signatures are verified, the others are sent back, and Bob leaves meanwhile. With the next second Ann
/// has her turn.
#[test]
fn a_flood_harms_nobody_else() {
    let [ann, bob] = [ANN, BOB].map(|seed| certificate(seed, 1));
    let mut host = host(&[ann.clone(), bob.clone()]);
    let forged = request(EVE, &ann);
    for number in 0..10_000 {
        give(&mut host, number / 11, &forged);
    }
    assert_eq!(host.leave_counters().wrong_signature, 256);
    assert_eq!(host.leave_counters().dropped_full, 10_000 - 256);
    let busy = give(&mut host, 910, &request(ANN, &ann));
    assert_eq!(busy, refused(NackReason::Congestion));
    assert_eq!(give(&mut host, 910, &request(BOB, &bob)).leavers.len(), 1);
    assert_eq!(give(&mut host, 1_000, &request(ANN, &ann)).leavers.len(), 1);
}

/// Requests that nobody decides are forgotten after their lifetime, and are reported again when they are sent again.
#[test]
fn requests_end_with_their_lifetime() {
    let ann = certificate(ANN, 1);
    let mut host = host(core::slice::from_ref(&ann));
    let interest = request(ANN, &ann);
    give(&mut host, 0, &interest);
    let lifetime = Some(Instant::ZERO + LIFETIME);
    assert_eq!(host.poll_timeout(), lifetime);
    host.handle_timeout(now(4_000));
    assert_eq!(host.poll_timeout(), None);
    assert_eq!(give(&mut host, 4_000, &interest).leavers.len(), 1);
}
