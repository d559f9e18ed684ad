//! Data packets and certificates.

use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::DigestVerifier;
use namecast_packet::{
    Certificate, Component, ContentType, Data, KeyLocator, Name, PublicKey, Signer, VerifyError,
};
use namecast_units::Timestamp;

use crate::support::{
    Exception, Vector, assert_encodes, ecdsa_signer, signature_info, signer, spki, vectors,
    verifier,
};

const NOT_CANONICAL: [Exception; 8] = [
    ("py-data-digest", 5, "ContentType 0, written out"),
    ("py-data-no-content", 5, "ContentType 0, written out"),
    (
        "py-data-meta",
        3,
        "ContentType 0, written out beside others",
    ),
    (
        "py-data-hmac",
        3,
        "ContentType 0, written out beside others",
    ),
    (
        "py-data-ecdsa",
        3,
        "ContentType 0, written out beside others",
    ),
    (
        "py-data-ed25519",
        3,
        "ContentType 0, written out beside others",
    ),
    ("py-data-rsa", 5, "ContentType 0, written out"),
    ("py-data-null", 5, "ContentType 0, written out"),
];

fn packets() -> impl Iterator<Item = Vector> {
    ["data", "certificates", "management", "sync-rdr"]
        .into_iter()
        .flat_map(vectors)
        .filter(|vector| vector.text("kind") == "data")
}

fn final_block(stated: &Vector) -> Option<Name> {
    let block = stated.get("finalBlockId");
    let kind = block.number("type")?.try_into().unwrap();
    let value = &block.octets("value").unwrap();
    Some(Name::root().child(Component { kind, value }))
}

#[test]
fn data_decodes_to_the_stated_fields() {
    let mut seen = 0;
    for vector in packets() {
        let (id, stated) = (vector.id(), vector.get("decoded"));
        let data = Data::decode(vector.wire()).unwrap();
        assert_eq!(*data.name(), stated.name("name"), "{id}");
        let content_type = stated.number("contentType").unwrap();
        assert_eq!(data.content_type(), ContentType::from(content_type), "{id}");
        assert_eq!(data.content_type().number(), content_type, "{id}");
        let freshness = stated.number("freshnessPeriod").unwrap_or(0);
        assert_eq!(data.freshness(), Duration::from_millis(freshness), "{id}");
        assert_eq!(data.final_block(), final_block(&stated).as_ref(), "{id}");
        assert_eq!(data.content(), stated.octets("content"), "{id}");
        let extensions = data.signature_info().extensions;
        let info = signature_info(&stated.get("sigInfo"), extensions);
        assert_eq!(data.signature_info(), info, "{id}");
        assert_eq!(
            data.signature_value(),
            stated.octets("sigValue").unwrap(),
            "{id}"
        );
        assert_eq!(
            data.signed_portion(),
            stated.octets("signed_portion").unwrap(),
            "{id}"
        );
        assert_eq!(
            data.implicit_digest()[..],
            stated.octets("implicit_digest").unwrap(),
            "{id}"
        );
        seen += 1;
    }
    assert_eq!(seen, 22 + 7 + 1 + 1);
}

#[test]
fn data_encodes_to_the_same_octets() {
    for vector in packets() {
        let stated = vector.get("decoded");
        let decoded = Data::decode(vector.wire()).unwrap();
        let extensions = decoded.signature_info().extensions;
        let mut builder = Data::builder(stated.name("name"))
            .content_type(stated.number("contentType").unwrap().into());
        if let Some(freshness) = stated.number("freshnessPeriod") {
            builder = builder.freshness(Duration::from_millis(freshness));
        }
        if let Some(id) = final_block(&stated) {
            builder = builder.final_block(id);
        }
        if let Some(content) = stated.octets("content") {
            builder = builder.content(content);
        }
        let info = signature_info(&stated.get("sigInfo"), extensions);
        let data = builder.sign(&signer(&vector, &info));
        assert_encodes(&vector, data.wire(), &NOT_CANONICAL);
        assert_eq!(
            Data::decode(data.wire().clone()),
            Ok(data),
            "{}",
            vector.id()
        );
    }
}

#[test]
fn data_verifies_and_damaged_data_does_not() {
    let mut verified = 0;
    for vector in packets() {
        let id = vector.id();
        let data = Data::decode(vector.wire()).unwrap();
        let Some(verifier) = verifier(&vector) else {
            assert_eq!(
                data.verify(&DigestVerifier),
                Err(VerifyError::Unsigned),
                "{id}"
            );
            continue;
        };
        assert_eq!(data.verify(&*verifier), Ok(()), "{id}");
        verified += 1;

        for portion in [flip_first(data.signed_portion()), Vec::new()] {
            let wrong = verifier.verify(&data.signature_info(), &portion, data.signature_value());
            assert_eq!(wrong, Err(VerifyError::Wrong), "{id}");
        }
        let mut octets = vector.wire().to_vec();
        *octets.last_mut().unwrap() ^= 1;
        let damaged = Data::decode(octets.into()).unwrap();
        assert_eq!(damaged.verify(&*verifier), Err(VerifyError::Wrong), "{id}");
    }
    assert_eq!(verified, 20 + 7 + 1 + 1, "all but two null signatures");
}

fn flip_first(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    octets[0] ^= 1;
    octets
}

#[test]
fn a_verifier_judges_its_own_signature_type_only() {
    for vector in packets() {
        let data = Data::decode(vector.wire()).unwrap();
        let found = data.signature_info().signature_type;
        for name in ["ecdsa_alice", "ed25519_bob", "rsa_carol"] {
            let key = PublicKey::from_spki(&spki(name)).unwrap();
            let error = data.verify(&key).err();
            let foreign =
                !vector.get("signature").get("key").is_null() && key.signature_type() != found;
            if foreign {
                assert_eq!(
                    error,
                    Some(VerifyError::Unsupported(found)),
                    "{}",
                    vector.id()
                );
            }
        }
    }
}

#[test]
fn keys_are_written_as_they_were_read() {
    for name in ["ecdsa_root", "ecdsa_alice", "ed25519_bob", "rsa_carol"] {
        let key = PublicKey::from_spki(&spki(name)).unwrap();
        assert_eq!(key.to_spki(), spki(name), "{name}");
    }
}

/// RFC 6979: the same octets get the same signature, so that signing needs no source of randomness.
#[test]
fn ecdsa_signs_deterministically() {
    let signer = ecdsa_signer("ecdsa_alice");
    assert_eq!(signer.sign(b"octets"), signer.sign(b"octets"));
    assert_ne!(signer.sign(b"octets"), signer.sign(b"others"));
    let data = Data::builder("/a".parse().unwrap())
        .content("b")
        .sign(&signer);
    let key = |name| PublicKey::from_spki(&spki(name)).unwrap();
    assert_eq!(data.verify(&key("ecdsa_alice")), Ok(()));
    assert_eq!(data.verify(&key("ecdsa_root")), Err(VerifyError::Wrong));
}

#[test]
fn certificates_hold_the_stated_fields() {
    for vector in vectors("certificates") {
        let (id, stated) = (vector.id(), vector.get("decoded"));
        let data = Data::decode(vector.wire()).unwrap();
        let certificate = Certificate::decode(data).unwrap();
        let name = stated.name("name");
        assert_eq!(certificate.identity(), name.prefix(name.len() - 4), "{id}");
        assert_eq!(certificate.key_name(), name.prefix(name.len() - 2), "{id}");
        assert_eq!(
            certificate.key_id(),
            name.get(name.len() - 3).unwrap(),
            "{id}"
        );
        assert_eq!(
            certificate.issuer(),
            name.get(name.len() - 2).unwrap(),
            "{id}"
        );
        assert_eq!(Some(certificate.version()), name.last(), "{id}");
        // 2023-01-01 and 2043-01-01, by `date -u -d … +%s`.
        let validity = certificate.validity();
        assert_eq!(
            validity.not_before,
            Timestamp::from_micros(1_672_531_200_000_000),
            "{id}"
        );
        assert_eq!(
            validity.not_after,
            Timestamp::from_micros(2_303_683_200_000_000),
            "{id}"
        );
        let key = certificate.public_key().unwrap();
        assert_eq!(Some(key.to_spki()), stated.octets("content"), "{id}");
        let own = KeyLocator::Name(certificate.key_name());
        assert!(certificate.matches(&own), "{id}");
        let info = certificate.data().signature_info();
        let self_signed = certificate.matches(info.key_locator.as_ref().unwrap());
        assert_eq!(self_signed, certificate.data().verify(&key).is_ok(), "{id}");
    }
}

#[test]
fn descriptions_are_kept() {
    let vectors = vectors("certificates");
    let described = vectors.iter().filter_map(|vector| {
        let data = Data::decode(vector.wire()).unwrap();
        let certificate = Certificate::decode(data).unwrap();
        let descriptions = certificate.descriptions().to_vec();
        (!descriptions.is_empty()).then_some((vector.id(), descriptions))
    });
    let described: Vec<_> = described.collect();
    let [("py-cert-additional-description", entries)] = &described[..] else {
        panic!("{described:?}");
    };
    let texts: Vec<_> = entries
        .iter()
        .map(|entry| (&entry.key[..], &entry.value[..]))
        .collect();
    assert_eq!(texts, [(&b"Organization"[..], &b"UCLA"[..])]);
}

#[test]
fn data_that_lacks_what_a_certificate_needs_is_none() {
    let plain = |vector: &Vector| Certificate::decode(Data::decode(vector.wire()).unwrap());
    assert!(vectors("data").iter().all(|vector| plain(vector).is_err()));

    let vector = &vectors("certificates")[2];
    let good = Data::decode(vector.wire()).unwrap();
    let signer = signer(vector, &good.signature_info());
    let refused = |name: &str, content_type, freshness, content: Option<Bytes>| {
        let mut builder = Data::builder(name.parse().unwrap())
            .content_type(content_type)
            .freshness(Duration::from_millis(freshness));
        if let Some(content) = content {
            builder = builder.content(content);
        }
        let decoded = Certificate::decode(builder.sign(&signer));
        decoded.err().map(|error| error.field)
    };
    let (name, key) = ("/a/KEY/1/self/v=1", || good.content());
    assert_eq!(refused(name, ContentType::Key, 1, key()), None);
    assert_eq!(refused("/KEY/1/self/v=1", ContentType::Key, 1, key()), None);
    let bad_name = Some("certificate name");
    assert_eq!(refused("/1/self/v=1", ContentType::Key, 1, key()), bad_name);
    assert_eq!(
        refused("/a/key/1/self/v=1", ContentType::Key, 1, key()),
        bad_name
    );
    assert_eq!(
        refused(name, ContentType::Blob, 1, key()),
        Some("ContentType")
    );
    assert_eq!(
        refused(name, ContentType::Key, 0, key()),
        Some("FreshnessPeriod")
    );
    assert_eq!(refused(name, ContentType::Key, 1, None), Some("Content"));
    assert_eq!(
        refused(name, ContentType::Key, 1, Some(Bytes::new())),
        Some("Content")
    );
}
