use namecast_apps::management::{ControlParameters, sign_command};
use namecast_apps::trust::schema::Limits;
use namecast_apps::trust::template::Template;
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Component, KeyLocator, Nonce, Signer, Validity};

use super::*;
use crate::key_store;

/// Time of all commands but those that are too old.
const NOW: u64 = 1_790_000_000_000_000;
const DAY: u64 = 86_400_000_000;
const GRACE: Duration = Duration::from_secs(120);
/// Seed of the anchor's key.
const FOX: u8 = 1;
const ANN: u8 = 2;
const BOB: u8 = 3;
const ANCHOR: &str = "/calls/fox/KEY/1/self/v=1";

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pair(seed: u8, locator: &str) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(name(locator)))
}

/// The certificate `uri` of the key of `seed`, valid until this time, signed by `issuer`.
fn certificate(uri: &str, seed: u8, not_after: u64, issuer: &Ed25519Signer) -> Data {
    let validity = Validity {
        not_before: Timestamp::from_micros(NOW - 30 * DAY),
        not_after: Timestamp::from_micros(not_after),
    };
    let key = pair(seed, uri).public_key();
    let issued = Certificate::issue(name(uri), &key, validity, &[], issuer);
    issued.unwrap().data().clone()
}

/// The certificate of a member of /calls/fox.
fn member(id: &str, seed: u8, not_after: u64) -> Data {
    let uri = format!("/calls/fox/{id}/KEY/1/fox/v=1");
    certificate(&uri, seed, not_after, &pair(FOX, ANCHOR))
}

fn anchor() -> Data {
    certificate(ANCHOR, FOX, NOW + DAY, &pair(FOX, ANCHOR))
}

/// Rights of the members of /calls/fox, whose rules were read.
fn rights() -> Rights {
    let rights = Rights::new([TrustRoot {
        root: name("/calls/fox"),
        anchor: Anchor::Digest(pair(FOX, ANCHOR).public_key().digest()),
    }]);
    rights.lock().started_at = Timestamp::from_micros(NOW - DAY);
    let rules = Template::Call.rules(&name("/calls/fox"));
    let schema = Arc::new(Schema::compile(&rules, &Limits::default()).unwrap());
    let set = rights.0.roots[0].chains.with(|it| it.set_schema(1, schema));
    set.unwrap();
    rights
}

/// A command to register `prefix`, signed at a time by the key of `seed`, which shows these certificates.
fn command(prefix: &str, seed: u8, at: u64, shown: &[Data]) -> Interest {
    let signer = pair(seed, &shown[0].name().to_string());
    signed(prefix, &signer, at, shown)
}

fn signed(prefix: &str, signer: &dyn Signer, at: u64, shown: &[Data]) -> Interest {
    let parameters = ControlParameters {
        name: Some(name(prefix)),
        ..ControlParameters::default()
    };
    let uri = name("/localhop/nfd/rib/register").child(Component {
        kind: Component::GENERIC,
        value: &parameters.encode(),
    });
    let shown: Vec<u8> = shown.iter().flat_map(|it| it.wire().to_vec()).collect();
    let command = Interest::builder(uri).parameters(shown);
    let nonces = (Nonce(key_store::random()), key_store::random());
    sign_command(command, signer, Duration::from_micros(at), GRACE, nonces)
}

/// Passes a command of a face, at a time in milliseconds.
fn pass(
    rights: &Rights,
    (command, prefix): (&Interest, &str),
    (face, at): (u64, u64),
) -> Result<(), RightRefusal> {
    assert!(Showing::is_in(command) && rights.has_root_of(&name(prefix)));
    rights.admit(&Showing {
        command,
        prefix: &name(prefix),
        from: FaceId::from_number(face),
        now: Instant::ZERO + Duration::from_millis(at),
        wall: Timestamp::from_micros(NOW),
        grace: GRACE,
    })
}

fn register(rights: &Rights, prefix: &str, seed: u8, shown: &[Data]) -> Result<(), RightRefusal> {
    let command = command(prefix, seed, NOW, shown);
    pass(rights, (&command, prefix), (7, 0))
}

const WEEK: u64 = NOW + 7 * DAY;

#[test]
fn members_register_their_names_and_those_that_they_share() {
    let rights = rights();
    let (ann, bob) = (member("ann", ANN, WEEK), member("bob", BOB, WEEK));
    // With the anchor's certificate or, once the node has that, without it.
    let shown = [ann.clone(), anchor()];
    assert_eq!(register(&rights, "/calls/fox/ann", ANN, &shown), Ok(()));
    for prefix in ["/calls/fox/ann", "/calls/fox/v=3", "/calls/fox/ann/plan"] {
        let shown = core::slice::from_ref(&ann);
        assert_eq!(register(&rights, prefix, ANN, shown), Ok(()), "{prefix}");
    }
    let of_bob = core::slice::from_ref(&bob);
    assert_eq!(register(&rights, "/calls/fox/v=3", BOB, of_bob), Ok(()));
    assert_eq!(register(&rights, "/calls/fox", FOX, &[anchor()]), Ok(()));
    assert_eq!(rights.counters().unwrap().admitted, 6);
}

/// Each with its reason, which is counted, and a sentence.
#[test]
fn others_are_refused() {
    let rights = rights();
    let ann = member("ann", ANN, WEEK);
    let refused = |prefix: &str, seed, shown: &[Data]| {
        let refusal = register(&rights, prefix, seed, shown).unwrap_err();
        (refusal.reason(), refusal.to_string())
    };
    let chain = [ann.clone(), anchor()];
    let own = "/calls/fox/ann";
    let (reason, text) = refused("/calls/fox/bob", ANN, &chain);
    assert_eq!(reason, "not_allowed");
    assert!(text.contains("does not allow this key"), "{text}");
    // Nothing below the root belongs to everybody, and its name to the anchor alone.
    assert_eq!(refused("/calls/fox", ANN, &chain).0, "not_allowed");
    // Somebody else's key, under Ann's certificate.
    let (reason, text) = refused(own, BOB, &chain);
    assert_eq!(reason, "signature");
    assert!(text.contains("the key of the certificate"), "{text}");
    // Ann's name, certified by Bob's own key.
    let forged = certificate(
        "/calls/fox/ann/KEY/2/fox/v=1",
        BOB,
        WEEK,
        &pair(BOB, ANCHOR),
    );
    let shown = [forged, anchor()];
    assert_eq!(refused(own, BOB, &shown).0, "wrong_signature");
    // Another room's anchor, which has the same name.
    let other = certificate(ANCHOR, 9, WEEK, &pair(9, ANCHOR));
    let of_other = certificate("/calls/fox/ann/KEY/3/fox/v=1", BOB, WEEK, &pair(9, ANCHOR));
    let anchors = ["other_anchor", "wrong_signature"];
    let reason = refused(own, BOB, &[of_other, other]).0;
    assert!(anchors.contains(&reason), "{reason}");
    // It ended more than a day ago.
    let ended = member("eve", 8, NOW - DAY - 1_000_000);
    let (reason, text) = refused("/calls/fox/eve", 8, &[ended, anchor()]);
    assert_eq!(reason, "not_valid_now");
    assert!(text.contains("is not valid now"), "{text}");
    let reasons = rights.counters().unwrap().refused;
    assert_eq!(reasons.values().sum::<u64>(), 6);
}

/// Revoked keys, and a chain whose middle is missing.
#[test]
fn revoked_keys_are_refused_at_once() {
    let rights = rights();
    let chain = [member("ann", ANN, WEEK), anchor()];
    assert_eq!(register(&rights, "/calls/fox/ann", ANN, &chain), Ok(()));
    let digest = pair(ANN, "/").public_key().digest();
    let revoked = [(digest, Timestamp::from_micros(NOW))].into();
    let set = rights.0.roots[0]
        .chains
        .with(|it| it.set_revoked(2, revoked));
    set.unwrap();
    let refusal = register(&rights, "/calls/fox/ann", ANN, &chain).unwrap_err();
    assert_eq!(refusal.reason(), "revoked");
    let fresh = self::rights();
    let alone = [member("ann", ANN, WEEK)];
    let refusal = register(&fresh, "/calls/fox/ann", ANN, &alone).unwrap_err();
    assert_eq!(refusal.reason(), "missing_certificate");
}

/// Captured commands lead nobody's Interests elsewhere: each works once, and those from before the start or too long ago never.
#[test]
fn a_command_works_once() {
    let rights = rights();
    let chain = [member("ann", ANN, WEEK), anchor()];
    let own = "/calls/fox/ann";
    let first = command(own, ANN, NOW, &chain);
    assert_eq!(pass(&rights, (&first, own), (7, 0)), Ok(()));
    let replayed = pass(&rights, (&first, own), (8, 0)).unwrap_err();
    assert_eq!(replayed, RightRefusal::Command(Refusal::Repeated));
    let old = command(own, ANN, NOW - 121_000_000, &chain);
    let refusal = pass(&rights, (&old, own), (8, 0)).unwrap_err();
    assert_eq!(refusal.reason(), "time_or_nonce");
    let restarted = self::rights();
    restarted.lock().started_at = Timestamp::from_micros(NOW + 1_000);
    let refusal = pass(&restarted, (&first, own), (8, 0)).unwrap_err();
    assert_eq!(refusal, RightRefusal::Command(Refusal::Old));
    // Another member's commands are unaffected by how many Ann signs.
    for at in 1..=2_000 {
        let command = command(own, ANN, NOW + 1_000 * at, &chain);
        let _ = pass(&rights, (&command, own), (7, 0));
    }
    let bob = [member("bob", BOB, WEEK), anchor()];
    let command = command("/calls/fox/bob", BOB, NOW, &bob);
    assert_eq!(pass(&rights, (&command, "/calls/fox/bob"), (8, 0)), Ok(()));
}

/// 64 a second of each face, whoever signed them.
#[test]
fn a_face_cannot_have_more_judged_than_its_share() {
    let rights = rights();
    let chain = [member("eve", ANN, WEEK), anchor()];
    let command = command("/calls/fox/ann", ANN, NOW, &chain);
    let pass = |from| pass(&rights, (&command, "/calls/fox/ann"), from).unwrap_err();
    let reasons: Vec<_> = (0..100).map(|_| pass((7, 0)).reason()).collect();
    assert!(reasons[..64].iter().all(|it| *it == "not_allowed"));
    assert!(reasons[64..].iter().all(|it| *it == "too_often"));
    assert_eq!(pass((8, 0)).reason(), "not_allowed");
    assert_eq!(pass((7, 1_000)).reason(), "not_allowed");
    // A thousand faces at once: those beyond wait for the next second.
    for face in 100..1_200 {
        pass((face, 1_000));
    }
    assert_eq!(rights.lock().faces.len(), MAX_FACES);
    assert_eq!(pass((5_000, 1_500)).reason(), "too_often");
    assert_eq!(pass((5_000, 2_500)).reason(), "not_allowed");
}

/// Five certificates, octets that are none, and the rules of nobody.
#[test]
fn what_cannot_be_judged_is_refused() {
    let rights = rights();
    let ann = member("ann", ANN, WEEK);
    let reason = |rights: &Rights, shown: &[Data]| {
        let refusal = register(rights, "/calls/fox/ann", ANN, shown);
        refusal.unwrap_err().reason()
    };
    let five = [ann.clone(), anchor(), anchor(), anchor(), anchor()];
    assert_eq!(reason(&rights, &five), "malformed");
    let none = Data::builder(name("/calls/fox/ann/KEY/1/fox/v=1")).content(vec![0; 99]);
    let none = none.sign(&pair(FOX, ANCHOR));
    assert_eq!(reason(&rights, &[none]), "malformed");
    let unread = Rights::new([rights.0.roots[0].root.clone()]);
    let refusal = register(&unread, "/calls/fox/ann", ANN, &[ann]).unwrap_err();
    assert_eq!(refusal.reason(), "no_schema");
    assert!(refusal.to_string().contains("trust serve /calls/fox"));
    // The anchor needs no rules for its root, so that its host can publish them.
    assert_eq!(register(&unread, "/calls/fox", FOX, &[anchor()]), Ok(()));
    let other = certificate(ANCHOR, 9, WEEK, &pair(9, ANCHOR));
    let refusal = register(&unread, "/calls/fox", 9, &[other]);
    assert_eq!(refusal.unwrap_err().reason(), "no_schema");
}
