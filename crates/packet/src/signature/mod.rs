//! Signatures: who signed a packet, and how to make and check it.
//!
//! NDN Packet Format v0.3, sections "Signature" and "Signed Interest".

mod public_key;
#[cfg_attr(target_family = "wasm", path = "rsa_key_in_browser.rs")]
mod rsa_key;
mod signers;
mod verifiers;

pub use public_key::{KeyError, PublicKey};
pub use rsa_key::RsaPublicKey;
pub use signers::{DigestSigner, EcdsaSigner, Ed25519Signer, HmacSigner, KeyPair, NullSigner};
pub use verifiers::{DigestVerifier, HmacVerifier};

use core::ops::Range;
use core::time::Duration;

use bytes::Bytes;

use crate::error::{DecodeError, Problem};
use crate::name::Name;
use crate::tlv::{self, Element, Fields, Reader, Writer};

/// Algorithm of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignatureType {
    /// SHA-256 digest: integrity, no signer.
    DigestSha256,
    /// RSA, PKCS#1 v1.5.
    Sha256WithRsa,
    /// ECDSA; the signature is a DER sequence of r and s.
    Sha256WithEcdsa,
    /// HMAC with a shared key.
    HmacWithSha256,
    /// Ed25519 over the signed portion itself.
    Ed25519,
    /// No signature: something else vouches for the packet.
    Null,
    /// An algorithm this implementation does not know.
    Other(u64),
}

impl SignatureType {
    /// Returns the assigned number.
    pub const fn number(self) -> u64 {
        match self {
            Self::DigestSha256 => 0,
            Self::Sha256WithRsa => 1,
            Self::Sha256WithEcdsa => 3,
            Self::HmacWithSha256 => 4,
            Self::Ed25519 => 5,
            Self::Null => 200,
            Self::Other(number) => number,
        }
    }
}

impl From<u64> for SignatureType {
    fn from(number: u64) -> Self {
        match number {
            0 => Self::DigestSha256,
            1 => Self::Sha256WithRsa,
            3 => Self::Sha256WithEcdsa,
            4 => Self::HmacWithSha256,
            5 => Self::Ed25519,
            200 => Self::Null,
            other => Self::Other(other),
        }
    }
}

/// Where to find the key that checks a signature.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyLocator {
    /// Name of the key or of its certificate.
    Name(Name),
    /// SHA-256 digest of the public key.
    Digest(Bytes),
}

/// SignatureInfo of a Data packet or a signed Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureInfo {
    /// Algorithm.
    pub signature_type: SignatureType,
    /// Key, unless the algorithm has none.
    pub key_locator: Option<KeyLocator>,
    /// Random octets against replay; signed Interests only.
    pub nonce: Option<Bytes>,
    /// Time since 1970 against replay, in whole milliseconds; signed Interests only.
    pub time: Option<Duration>,
    /// Counter against replay; signed Interests only.
    pub sequence: Option<u64>,
    /// Elements that follow, octet for octet: ValidityPeriod and descriptions of a certificate.
    pub extensions: Bytes,
}

/// Type of ValidityPeriod, known wherever a SignatureInfo stands.
pub const VALIDITY_PERIOD: u32 = 253;

impl SignatureInfo {
    /// An info with nothing but an algorithm and a key.
    pub const fn new(signature_type: SignatureType, key_locator: Option<KeyLocator>) -> Self {
        Self {
            signature_type,
            key_locator,
            nonce: None,
            time: None,
            sequence: None,
            extensions: Bytes::new(),
        }
    }

    pub(crate) fn decode(wire: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        let parts = Parts::read(wire, element)?;
        let key_locator = parts.key_locator.map(|locator| match locator.element_type {
            tlv::NAME => KeyLocator::Name(Name::from_checked(wire.slice(locator.value))),
            _ => KeyLocator::Digest(wire.slice(locator.value)),
        });
        Ok(Self {
            signature_type: parts.signature_type,
            key_locator,
            nonce: parts.nonce.map(|range| wire.slice(range)),
            time: parts.time,
            sequence: parts.sequence,
            extensions: wire.slice(parts.extensions),
        })
    }

    /// Returns whether [`decode`](Self::decode) would take this element, without making anything of it.
    pub(crate) fn check(octets: &[u8], element: &Element) -> Result<(), DecodeError> {
        Parts::read(octets, element).map(drop)
    }

    /// Appends this info as an element of type `element_type`.
    pub(crate) fn encode(&self, element_type: u32, writer: &mut Writer) {
        writer.nested(element_type, |info| {
            info.number(tlv::SIGNATURE_TYPE, self.signature_type.number());
            match &self.key_locator {
                Some(KeyLocator::Name(name)) => {
                    info.nested(tlv::KEY_LOCATOR, |locator| name.encode(locator));
                }
                Some(KeyLocator::Digest(digest)) => {
                    info.nested(tlv::KEY_LOCATOR, |locator| {
                        locator.element(tlv::KEY_DIGEST, digest);
                    });
                }
                None => {}
            }
            if let Some(nonce) = &self.nonce {
                info.element(tlv::SIGNATURE_NONCE, nonce);
            }
            if let Some(time) = self.time {
                let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
                info.number(tlv::SIGNATURE_TIME, millis);
            }
            if let Some(sequence) = self.sequence {
                info.number(tlv::SIGNATURE_SEQ_NUM, sequence);
            }
            info.raw(&self.extensions);
        });
    }
}

/// What a SignatureInfo says, and where in its packet.
struct Parts {
    signature_type: SignatureType,
    /// A Name or a KeyDigest.
    key_locator: Option<Element>,
    nonce: Option<Range<usize>>,
    time: Option<Duration>,
    sequence: Option<u64>,
    extensions: Range<usize>,
}

impl Parts {
    fn read(octets: &[u8], element: &Element) -> Result<Self, DecodeError> {
        const ORDER: [u32; 6] = [
            tlv::SIGNATURE_TYPE,
            tlv::KEY_LOCATOR,
            tlv::SIGNATURE_NONCE,
            tlv::SIGNATURE_TIME,
            tlv::SIGNATURE_SEQ_NUM,
            VALIDITY_PERIOD,
        ];
        let mut signature_type = None;
        let mut parts = Self {
            signature_type: SignatureType::Null,
            key_locator: None,
            nonce: None,
            time: None,
            sequence: None,
            extensions: 0..0,
        };
        let reader = Reader::within(octets, element.value.clone());
        let mut fields = Fields::new(reader, "SignatureInfo", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                tlv::SIGNATURE_TYPE => {
                    signature_type = Some(field.number("SignatureType", octets)?.into());
                }
                tlv::KEY_LOCATOR => parts.key_locator = Some(read_key_locator(octets, &field)?),
                tlv::SIGNATURE_NONCE if field.value.is_empty() => {
                    return Err(field.error("SignatureNonce", Problem::BadLength(0)));
                }
                tlv::SIGNATURE_NONCE => parts.nonce = Some(field.value),
                tlv::SIGNATURE_TIME => {
                    let millis = field.number("SignatureTime", octets)?;
                    parts.time = Some(Duration::from_millis(millis));
                }
                tlv::SIGNATURE_SEQ_NUM => {
                    parts.sequence = Some(field.number("SignatureSeqNum", octets)?);
                }
                _ => parts.extensions = field.start..element.value.end,
            }
        }
        parts.signature_type =
            signature_type.ok_or(element.error("SignatureType", Problem::Missing))?;
        Ok(parts)
    }
}

/// Returns the Name or KeyDigest in the KeyLocator `element`.
fn read_key_locator(octets: &[u8], element: &Element) -> Result<Element, DecodeError> {
    let reader = Reader::within(octets, element.value.clone());
    let mut fields = Fields::new(reader, "KeyLocator", &[tlv::NAME, tlv::KEY_DIGEST]);
    let Some(locator) = fields.field()? else {
        return Err(element.error("KeyLocator", Problem::Missing));
    };
    // A digest may have any length, as one that is no SHA-256 digest harms nobody: it fits no key.
    if locator.element_type == tlv::NAME {
        Name::check(octets, &locator)?;
    }
    match fields.field()? {
        None => Ok(locator),
        Some(second) => Err(second.error("KeyLocator", Problem::Critical(second.element_type))),
    }
}

/// Makes signatures with one key.
pub trait Signer {
    /// SignatureInfo of the packets this signer signs.
    fn info(&self) -> SignatureInfo;

    /// Signature of `portion`.
    fn sign(&self, portion: &[u8]) -> Bytes;
}

impl<S: Signer + ?Sized> Signer for Box<S> {
    fn info(&self) -> SignatureInfo {
        (**self).info()
    }

    fn sign(&self, portion: &[u8]) -> Bytes {
        (**self).sign(portion)
    }
}

/// Judges signatures.
pub trait Verifier {
    /// Checks that `value` is a signature of `portion` as `info` claims.
    ///
    /// # Errors
    /// If it is wrong, or this verifier cannot judge it.
    fn verify(&self, info: &SignatureInfo, portion: &[u8], value: &[u8])
    -> Result<(), VerifyError>;
}

/// Why a signature was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The packet has no signature.
    #[error("not signed")]
    Unsigned,
    /// The verifier does not know the algorithm.
    #[error("signature type {} is not supported", .0.number())]
    Unsupported(SignatureType),
    /// The verifier has no key with this name.
    #[error("signer {0:?} is not known")]
    UnknownKey(Option<KeyLocator>),
    /// The signature does not belong to these octets and this key.
    #[error("signature is wrong")]
    Wrong,
    /// The name's parameters digest is not that of the parameters.
    #[error("parameters digest is wrong")]
    ParametersDigest,
    /// The key is not valid at this time.
    #[error("key is not valid now")]
    Expired,
}

/// Octets of a string of hexadecimal digits.
#[cfg(test)]
fn octets(hex: &str) -> Vec<u8> {
    let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(octet).collect()
}
