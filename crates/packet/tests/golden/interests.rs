//! Interests, signed and not.

use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::DigestVerifier;
use namecast_packet::{Interest, Name, Nonce, VerifyError};

use crate::support::{
    Exception, Vector, assert_encodes, signature_info, signer, unhex, vectors, verifier,
};

const NOT_CANONICAL: [Exception; 2] = [
    (
        "py-interest-default",
        4,
        "the default lifetime, written out",
    ),
    ("py-interest-no-nonce", -6, "no Nonce"),
];

fn interests() -> impl Iterator<Item = Vector> {
    ["interests", "signed-interests", "management", "sync-rdr"]
        .into_iter()
        .flat_map(vectors)
        .filter(|vector| vector.text("kind") == "interest")
}

#[test]
fn interests_decode_to_the_stated_fields() {
    let mut seen = 0;
    for vector in interests() {
        check_fields(&vector, &Interest::decode(vector.wire()).unwrap());
        seen += 1;
    }
    assert_eq!(seen, 21 + 10 + 10 + 2);
}

fn check_fields(vector: &Vector, interest: &Interest) {
    let (id, stated) = (vector.id(), vector.get("decoded"));
    assert_eq!(*interest.name(), stated.name("name"), "{id}");
    assert_eq!(interest.can_be_prefix(), stated.flag("canBePrefix"), "{id}");
    assert_eq!(interest.must_be_fresh(), stated.flag("mustBeFresh"), "{id}");
    assert_eq!(interest.forwarding_hint(), hints(&stated), "{id}");
    assert_eq!(interest.nonce(), nonce(&stated), "{id}");
    let lifetime = stated.number("lifetime").unwrap_or(4_000);
    assert_eq!(interest.lifetime(), Duration::from_millis(lifetime), "{id}");
    let hops = stated.number("hopLimit");
    assert_eq!(interest.hop_limit().map(u64::from), hops, "{id}");
    assert_eq!(
        interest.parameters(),
        stated.octets("appParameters"),
        "{id}"
    );
    assert_eq!(
        interest.signature_value(),
        stated.octets("sigValue"),
        "{id}"
    );
    let info = stated.get("sigInfo");
    let info = (!info.is_null()).then(|| signature_info(&info, Bytes::new()));
    assert_eq!(interest.signature_info(), info.as_ref(), "{id}");
    let portion = stated.octets("signed_portion").unwrap_or_default();
    assert_eq!(interest.signed_portion(), portion, "{id}");
    assert_eq!(interest.check_parameters_digest(), Ok(()), "{id}");
}

fn hints(stated: &Vector) -> Vec<Name> {
    let uris = stated.texts("forwardingHint");
    uris.iter().map(|uri| uri.parse().unwrap()).collect()
}

fn nonce(stated: &Vector) -> Option<Nonce> {
    let octets = stated.octets("nonce")?;
    Some(Nonce(octets[..].try_into().unwrap()))
}

#[test]
fn interests_encode_to_the_same_octets() {
    for vector in interests() {
        let stated = vector.get("decoded");
        let mut builder = Interest::builder(stated.name("name"));
        if stated.flag("canBePrefix") {
            builder = builder.can_be_prefix();
        }
        if stated.flag("mustBeFresh") {
            builder = builder.must_be_fresh();
        }
        builder = hints(&stated)
            .into_iter()
            .fold(builder, |b, hint| b.forwarding_hint(hint));
        if let Some(lifetime) = stated.number("lifetime") {
            builder = builder.lifetime(Duration::from_millis(lifetime));
        }
        if let Some(hops) = stated.number("hopLimit") {
            builder = builder.hop_limit(hops.try_into().unwrap());
        }
        if let Some(parameters) = stated.octets("appParameters") {
            builder = builder.parameters(parameters);
        }
        let nonce = nonce(&stated).unwrap_or(Nonce([0; 4]));
        let info = stated.get("sigInfo");
        let interest = if info.is_null() {
            builder.build(nonce)
        } else {
            let info = signature_info(&info, Bytes::new());
            builder.sign(nonce, &*signer(&vector, &info), &info)
        };
        assert_encodes(&vector, interest.wire(), &NOT_CANONICAL);
    }
}

#[test]
fn signed_interests_verify_and_damaged_ones_do_not() {
    let mut verified = 0;
    for vector in interests() {
        let interest = Interest::decode(vector.wire()).unwrap();
        let signed = interest.signature_info().is_some();
        let Some(verifier) = verifier(&vector).filter(|_| signed) else {
            assert_eq!(interest.verify(&DigestVerifier), Err(VerifyError::Unsigned));
            continue;
        };
        assert_eq!(interest.verify(&*verifier), Ok(()), "{}", vector.id());
        verified += 1;

        let mut octets = vector.wire().to_vec();
        *octets.last_mut().unwrap() ^= 1;
        let damaged = Interest::decode(octets.into()).unwrap();
        let error = Err(VerifyError::ParametersDigest);
        assert_eq!(damaged.verify(&*verifier), error, "{}", vector.id());
        // Whoever changes a packet can put the digest right, but not the signature.
        let wrong = verifier.verify(
            damaged.signature_info().unwrap(),
            &damaged.signed_portion(),
            &damaged.signature_value().unwrap(),
        );
        assert_eq!(wrong, Err(VerifyError::Wrong), "{}", vector.id());
    }
    assert_eq!(
        verified,
        9 + 9,
        "all but the null signature, and all commands signed in the new form"
    );
}

#[test]
fn an_interest_without_a_nonce_gets_one_in_its_place() {
    let mut sent =
        Interest::decode(unhex("0507 0703080141 2100".replace(' ', "").as_str())).unwrap();
    for nonce in [0xA1B2_C3D4, 0] {
        sent.set_nonce(Nonce::from(nonce));
        assert_eq!(sent.wire(), &unhex("050d070308014121000a04a1b2c3d4"));
    }
}
