//! Reading vectors, and the keys they were made with.

use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::{
    DigestSigner, DigestVerifier, EcdsaSigner, Ed25519Signer, HmacSigner, HmacVerifier, NullSigner,
};
use namecast_packet::tlv::{Reader, Writer};
use namecast_packet::{
    Component, KeyLocator, Name, PublicKey, SignatureInfo, SignatureType, Signer, Verifier,
};
use serde_json::Value;

/// One vector, or a part of one.
pub(crate) struct Vector(Value);

impl Vector {
    /// Field `key`; null if there is none.
    pub(crate) fn get(&self, key: &str) -> Self {
        Self(self.0[key].clone())
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("no {key}"))
    }

    pub(crate) fn id(&self) -> &str {
        self.text("id")
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        self.0[key].as_bool().unwrap()
    }

    /// A number, which may be written as text, since JSON's lose digits.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        match &self.0[key] {
            Value::String(text) => Some(text.parse().unwrap()),
            other => other.as_u64(),
        }
    }

    /// Octets written in hexadecimal.
    pub(crate) fn octets(&self, key: &str) -> Option<Bytes> {
        self.0[key].as_str().map(unhex)
    }

    pub(crate) fn wire(&self) -> Bytes {
        self.octets("wire").unwrap()
    }

    pub(crate) fn list(&self, key: &str) -> Vec<Self> {
        let list = self.0[key].as_array().unwrap();
        list.iter().cloned().map(Self).collect()
    }

    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        let list = self.0[key].as_array().unwrap();
        list.iter().map(|v| v.as_str().unwrap().into()).collect()
    }

    /// The name under `key`, put together from its components.
    pub(crate) fn name(&self, key: &str) -> Name {
        self.get(key)
            .list("components")
            .iter()
            .fold(Name::root().builder(), |name, component| {
                name.component(Component {
                    kind: component.number("type").unwrap().try_into().unwrap(),
                    value: &component.octets("value").unwrap(),
                })
            })
            .finish()
    }
}

pub(crate) fn vectors(file: &str) -> Vec<Vector> {
    Vector(read(file)).list("vectors")
}

fn read(file: &str) -> Value {
    let path = format!("{}/tests/vectors/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn unhex(text: &str) -> Bytes {
    let octet = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(octet).collect()
}

/// SignatureInfo as the vector's `sigInfo` states it, with `extensions` as given: their fields are certificates'.
pub(crate) fn signature_info(stated: &Vector, extensions: Bytes) -> SignatureInfo {
    let locator = stated.get("keyLocator");
    let locator = match locator.octets("digest") {
        Some(digest) => Some(KeyLocator::Digest(digest)),
        None if locator.is_null() => None,
        None => Some(KeyLocator::Name(locator.text("name").parse().unwrap())),
    };
    let number = stated.number("nonce_uint");
    let number = number.map(|nonce| Bytes::copy_from_slice(&nonce.to_be_bytes()));
    let signature_type = SignatureType::from(stated.number("type").unwrap());
    SignatureInfo {
        nonce: stated.octets("nonce").or(number),
        time: stated.number("time").map(Duration::from_millis),
        sequence: stated.number("seqNum"),
        extensions,
        ..SignatureInfo::new(signature_type, locator)
    }
}

/// What checks the signature of `vector`; `None` if it has a null signature.
pub(crate) fn verifier(vector: &Vector) -> Option<Box<dyn Verifier>> {
    let keys = Vector(read("keys"));
    let signature = vector.get("signature");
    if signature.get("key").is_null() {
        let info = vector.get("decoded").get("sigInfo");
        return (info.number("type") == Some(0)).then(|| Box::new(DigestVerifier) as _);
    }
    let key = keys.get(signature.text("key"));
    Some(match key.octets("spki_hex") {
        Some(spki) => Box::new(PublicKey::from_spki(&spki).unwrap()),
        None => Box::new(HmacVerifier::new(&key.octets("raw_hex").unwrap())),
    })
}

/// What signs as `vector` was signed: with the key where that gives the same octets again, else with the stated value.
pub(crate) fn signer(vector: &Vector, info: &SignatureInfo) -> Box<dyn Signer> {
    let keys = Vector(read("keys"));
    let locator = || info.key_locator.clone().unwrap();
    let signer: Box<dyn Signer> = match info.signature_type {
        SignatureType::DigestSha256 => Box::new(DigestSigner),
        SignatureType::Null => Box::new(NullSigner),
        SignatureType::HmacWithSha256 => {
            let key = keys.get("hmac").octets("raw_hex").unwrap();
            Box::new(HmacSigner::new(&key, locator()))
        }
        SignatureType::Ed25519 => {
            let seed = keys.get("ed25519_bob").octets("seed_hex").unwrap();
            Box::new(Ed25519Signer::from_seed(
                seed[..].try_into().unwrap(),
                locator(),
            ))
        }
        _ => Box::new(Stated(
            vector.get("decoded").octets("sigValue").unwrap(),
            info.clone(),
        )),
    };
    let plain = SignatureInfo::new(info.signature_type, info.key_locator.clone());
    assert_eq!(signer.info(), plain, "{}", vector.id());
    Box::new(WithInfo(signer, info.clone()))
}

/// The signer of key `name`, which names itself `/`.
pub(crate) fn ecdsa_signer(name: &str) -> EcdsaSigner {
    let scalar = Vector(read("keys")).get(name).octets("d_hex").unwrap();
    let locator = KeyLocator::Name(Name::root());
    EcdsaSigner::from_scalar(scalar[..].try_into().unwrap(), locator).unwrap()
}

/// SubjectPublicKeyInfo of key `name`.
pub(crate) fn spki(name: &str) -> Bytes {
    let key = Vector(read("keys")).get(name);
    key.octets("spki_hex").unwrap()
}

/// Signs with octets known before.
struct Stated(Bytes, SignatureInfo);

impl Signer for Stated {
    fn info(&self) -> SignatureInfo {
        SignatureInfo::new(self.1.signature_type, self.1.key_locator.clone())
    }

    fn sign(&self, _portion: &[u8]) -> Bytes {
        self.0.clone()
    }
}

/// Signs as another, and says more.
struct WithInfo(Box<dyn Signer>, SignatureInfo);

impl Signer for WithInfo {
    fn info(&self) -> SignatureInfo {
        self.1.clone()
    }

    fn sign(&self, portion: &[u8]) -> Bytes {
        self.0.sign(portion)
    }
}

/// Checks that `wire` is a sequence of elements that is written again to the same octets.
pub(crate) fn assert_walks(wire: &[u8]) {
    let mut reader = Reader::new(wire);
    let mut writer = Writer::default();
    while let Some(element) = reader.element("element").unwrap() {
        writer.element(element.element_type, &wire[element.value]);
    }
    assert_eq!(writer.as_slice(), wire);
}

/// A vector that we would encode differently: its id, how many octets longer than ours it is, and why.
pub(crate) type Exception = (&'static str, isize, &'static str);

/// Checks that `encoded` is the vector's wire, or differs from it as `exceptions` state.
pub(crate) fn assert_encodes(vector: &Vector, encoded: &[u8], exceptions: &[Exception]) {
    let wire = vector.wire();
    match exceptions.iter().find(|(id, ..)| *id == vector.id()) {
        None => assert_eq!(encoded, wire, "{}", vector.id()),
        Some((id, longer, why)) => {
            let found = wire.len().cast_signed() - encoded.len().cast_signed();
            assert_eq!(found, *longer, "{id}: {why}");
        }
    }
}
