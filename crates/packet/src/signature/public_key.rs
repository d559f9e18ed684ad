//! Public keys, as certificates carry them: SubjectPublicKeyInfo (RFC 5280, section 4.1.2.7) in DER.

use bytes::Bytes;
use ed25519_dalek::Verifier as _;
use p256::pkcs8::spki::SubjectPublicKeyInfoRef;
use p256::pkcs8::{DecodePublicKey, EncodePublicKey, ObjectIdentifier};
use sha2::{Digest as _, Sha256};

use super::rsa_key::RsaPublicKey;
use super::verifiers::expect_type;
use super::{SignatureInfo, SignatureType, Verifier, VerifyError};

/// id-Ed25519, RFC 8410.
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
/// id-ecPublicKey, RFC 5480.
const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// rsaEncryption, RFC 8017.
const RSA_ENCRYPTION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// A key that checks signatures, and the algorithm it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublicKey {
    /// Ed25519.
    Ed25519(ed25519_dalek::VerifyingKey),
    /// ECDSA over the curve P-256.
    EcdsaP256(p256::ecdsa::VerifyingKey),
    /// RSA, to verify PKCS#1 v1.5 signatures.
    Rsa(RsaPublicKey),
}

/// Why octets are not a usable key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not a SubjectPublicKeyInfo, or not a key of the algorithm it names.
    #[error("malformed key")]
    Malformed,
    /// The algorithm is none of those supported.
    #[error("the key's algorithm is not supported: use Ed25519, ECDSA on P-256 or RSA")]
    Unsupported,
    /// The algorithm or curve of this name is not supported.
    #[error("{0} keys are not supported: use Ed25519, ECDSA on P-256 or RSA")]
    UnsupportedKind(&'static str),
}

/// Algorithms and curves that are known by name only.
const UNSUPPORTED: [(ObjectIdentifier, &str); 6] = [
    (ObjectIdentifier::new_unwrap("1.3.132.0.34"), "P-384"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.35"), "P-521"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.33"), "P-224"),
    (ObjectIdentifier::new_unwrap("1.3.132.0.10"), "secp256k1"),
    (ObjectIdentifier::new_unwrap("1.3.101.113"), "Ed448"),
    (
        ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.10"),
        "RSA-PSS",
    ),
];

/// Why a key of this algorithm or curve cannot be used.
fn unsupported(identifier: ObjectIdentifier) -> KeyError {
    let known = UNSUPPORTED.iter().find(|(known, _)| *known == identifier);
    known.map_or(KeyError::Unsupported, |(_, name)| {
        KeyError::UnsupportedKind(name)
    })
}

/// Reads a key on a curve: P-256, by its name or, as ndn-cxx and older OpenSSL write it, by its parameters.
fn read_ec(der: &[u8], info: &SubjectPublicKeyInfoRef<'_>) -> Result<PublicKey, KeyError> {
    let key = match info.algorithm.parameters_oid() {
        Ok(P256) => p256::ecdsa::VerifyingKey::from_public_key_der(der).ok(),
        Ok(other) => return Err(unsupported(other)),
        Err(_) => {
            let parameters = info.algorithm.parameters.ok_or(KeyError::Malformed)?;
            if !is_p256(parameters.value()) {
                return Err(KeyError::UnsupportedKind("other than P-256 elliptic-curve"));
            }
            p256::ecdsa::VerifyingKey::from_sec1_bytes(info.subject_public_key.raw_bytes()).ok()
        }
    };
    key.map(PublicKey::EcdsaP256).ok_or(KeyError::Malformed)
}

/// Whether this is the content of ECParameters (SEC 1, appendix C.2) of P-256: with or without the seed and the cofactor, and
/// the base point compressed or not.
fn is_p256(parameters: &[u8]) -> bool {
    let after_field = parameters.strip_prefix(&P256_FIELD[..]);
    let curve = after_field.and_then(|rest| {
        let rest = rest.strip_prefix(&[0x30])?;
        let (&length, rest) = rest.split_first()?;
        rest.split_at_checked(usize::from(length))
    });
    let Some((curve, rest)) = curve else {
        return false;
    };
    let seed = curve.strip_prefix(&P256_COEFFICIENTS[..]);
    let has_curve = seed.is_some_and(|seed| seed.is_empty() || seed == P256_SEED);
    let (x, y) = P256_BASE.split_at(32);
    let points = [
        [&[0x04, 0x41, 0x04], x, y].concat(),
        [&[0x04, 0x21, 0x03], x].concat(),
    ];
    let after_base = points
        .iter()
        .find_map(|point| rest.strip_prefix(&point[..]));
    let cofactor = after_base.and_then(|rest| rest.strip_prefix(&P256_ORDER[..]));
    has_curve && matches!(cofactor, Some([] | [0x02, 0x01, 0x01]))
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo in DER. A curve may be named or spelt out.
    ///
    /// # Errors
    /// If it is malformed, or the algorithm is not supported.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let info = SubjectPublicKeyInfoRef::try_from(der).map_err(|_| KeyError::Malformed)?;
        match info.algorithm.oid {
            ED25519 => DecodePublicKey::from_public_key_der(der)
                .map(Self::Ed25519)
                .map_err(|_| KeyError::Malformed),
            EC_PUBLIC_KEY => read_ec(der, &info),
            RSA_ENCRYPTION => RsaPublicKey::from_spki(der, &info)
                .map(Self::Rsa)
                .ok_or(KeyError::Malformed),
            other => Err(unsupported(other)),
        }
    }

    /// Returns the key as SubjectPublicKeyInfo in DER.
    pub fn to_spki(&self) -> Bytes {
        let document = match self {
            Self::Ed25519(key) => key.to_public_key_der(),
            Self::EcdsaP256(key) => key.to_public_key_der(),
            Self::Rsa(key) => return key.to_spki(),
        };
        let document = document.expect("a key is far smaller than DER's limit");
        Bytes::from(document.into_vec())
    }

    /// SHA-256 digest of [`to_spki`](Self::to_spki), as a KeyLocator's KeyDigest holds it.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.to_spki()).into()
    }

    /// Type of the signatures that this key checks.
    pub const fn signature_type(&self) -> SignatureType {
        match self {
            Self::Ed25519(_) => SignatureType::Ed25519,
            Self::EcdsaP256(_) => SignatureType::Sha256WithEcdsa,
            Self::Rsa(_) => SignatureType::Sha256WithRsa,
        }
    }
}

/// secp256r1, RFC 5480.
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
/// Version 1 and the prime field of P-256, in DER.
#[rustfmt::skip]
const P256_FIELD: [u8; 49] = [
    0x02, 0x01, 0x01, 0x30, 0x2c, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x01, 0x01, 0x02, 0x21,
    0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff,
];
/// Its coefficients a and b.
#[rustfmt::skip]
const P256_COEFFICIENTS: [u8; 68] = [
    0x04, 0x20, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xfc, 0x04, 0x20, 0x5a, 0xc6, 0x35, 0xd8, 0xaa, 0x3a, 0x93, 0xe7, 0xb3, 0xeb, 0xbd, 0x55,
    0x76, 0x98, 0x86, 0xbc, 0x65, 0x1d, 0x06, 0xb0, 0xcc, 0x53, 0xb0, 0xf6, 0x3b, 0xce, 0x3c, 0x3e,
    0x27, 0xd2, 0x60, 0x4b,
];
/// The seed that b was drawn from.
#[rustfmt::skip]
const P256_SEED: [u8; 23] = [
    0x03, 0x15, 0x00, 0xc4, 0x9d, 0x36, 0x08, 0x86, 0xe7, 0x04, 0x93, 0x6a, 0x66, 0x78, 0xe1, 0x13,
    0x9d, 0x26, 0xb7, 0x81, 0x9f, 0x7e, 0x90,
];
/// Its base point, x and y.
#[rustfmt::skip]
const P256_BASE: [u8; 64] = [
    0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96,
    0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16,
    0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5,
];
/// Its order.
#[rustfmt::skip]
const P256_ORDER: [u8; 35] = [
    0x02, 0x21, 0x00, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc,
    0x63, 0x25, 0x51,
];

impl Verifier for PublicKey {
    /// Does not look at the KeyLocator: whose key this is, the caller knows.
    fn verify(
        &self,
        info: &SignatureInfo,
        portion: &[u8],
        value: &[u8],
    ) -> Result<(), VerifyError> {
        expect_type(info, self.signature_type())?;
        let right = match self {
            // Strict: refuses keys of small order, under which one signature fits many messages.
            Self::Ed25519(key) => ed25519_dalek::Signature::from_slice(value)
                .is_ok_and(|signature| key.verify_strict(portion, &signature).is_ok()),
            Self::EcdsaP256(key) => p256::ecdsa::DerSignature::try_from(value)
                .is_ok_and(|signature| key.verify(portion, &signature).is_ok()),
            Self::Rsa(key) => key.verifies(portion, value),
        };
        if right {
            Ok(())
        } else {
            Err(VerifyError::Wrong)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::octets;
    use super::*;
    use crate::signature::{Ed25519Signer, KeyLocator, KeyPair as _, Signer as _};

    #[test]
    fn other_curves_and_algorithms_are_told_from_malformed_keys() {
        // secp384r1 and X25519, by their object identifiers; then an Ed25519 key one octet short.
        let p384 = [0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x22];
        let ec = [0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01];
        let other_curve = [
            &[0x30, 0x16, 0x30, 0x10],
            &ec[..],
            &p384,
            &[0x03, 0x02, 0x00, 0x04],
        ];
        let refused = PublicKey::from_spki(&other_curve.concat()).unwrap_err();
        assert_eq!(refused, KeyError::UnsupportedKind("P-384"));
        assert_eq!(
            refused.to_string(),
            "P-384 keys are not supported: use Ed25519, ECDSA on P-256 or RSA"
        );
        let mut x25519 = vec![
            0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x6E, 0x03, 0x21, 0,
        ];
        x25519.extend([1; 32]);
        assert_eq!(PublicKey::from_spki(&x25519), Err(KeyError::Unsupported));
        let mut short = vec![
            0x30, 0x29, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x20, 0,
        ];
        short.extend([1; 31]);
        assert_eq!(PublicKey::from_spki(&short), Err(KeyError::Malformed));
        assert_eq!(PublicKey::from_spki(b""), Err(KeyError::Malformed));
    }

    /// One key as OpenSSL writes it, with the curve's name and with its parameters; with another base point it is no key of P-256.
    #[test]
    fn a_curve_may_be_spelt_out() {
        let named = PublicKey::from_spki(&octets(NAMED)).unwrap();
        let explicit = octets(EXPLICIT);
        assert_eq!(PublicKey::from_spki(&explicit), Ok(named));
        let base = explicit
            .windows(32)
            .position(|part| part == &P256_BASE[..32]);
        let mut other = explicit.clone();
        other[base.unwrap() + 31] ^= 1;
        assert!(matches!(
            PublicKey::from_spki(&other),
            Err(KeyError::UnsupportedKind(_))
        ));
        for length in 0..explicit.len() {
            assert!(PublicKey::from_spki(&explicit[..length]).is_err());
        }
    }

    const NAMED: &str = "3059301306072a8648ce3d020106082a8648ce3d0301070342000429d3323343f6476155f509987c9aed67bd472384b6a02595303ed789a3e8506cd771203934592f2236d00b8e6da98af1299d69d439c003c03ccc6cdc8c5b9ad4";
    const EXPLICIT: &str = "3082014b3082010306072a8648ce3d02013081f7020101302c06072a8648ce3d0101022100ffffffff00000001000000000000000000000000ffffffffffffffffffffffff305b0420ffffffff00000001000000000000000000000000fffffffffffffffffffffffc04205ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b031500c49d360886e704936a6678e1139d26b7819f7e900441046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5022100ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc6325510201010342000429d3323343f6476155f509987c9aed67bd472384b6a02595303ed789a3e8506cd771203934592f2236d00b8e6da98af1299d69d439c003c03ccc6cdc8c5b9ad4";

    /// The identity point as a key, and as R with s = 0, satisfies the plain equation for every message.
    #[test]
    fn a_key_of_small_order_verifies_nothing() {
        let mut identity = [0; 32];
        identity[0] = 1;
        let key = ed25519_dalek::VerifyingKey::from_bytes(&identity).unwrap();
        let mut signature = [0; 64];
        signature[0] = 1;
        let info = SignatureInfo::new(SignatureType::Ed25519, None);
        let verdict = PublicKey::Ed25519(key).verify(&info, b"anything", &signature);
        assert_eq!(verdict, Err(VerifyError::Wrong));
    }

    #[test]
    fn signatures_of_any_length_are_judged() {
        let locator = KeyLocator::Name("/a".parse().unwrap());
        let signer = Ed25519Signer::from_seed([1; 32], locator);
        let (key, info) = (signer.public_key(), signer.info());
        let good = signer.sign(b"portion");
        assert_eq!(key.verify(&info, b"portion", &good), Ok(()));
        for bad in [&good[..63], &[&good[..], &[0]].concat(), &[]] {
            assert_eq!(key.verify(&info, b"portion", bad), Err(VerifyError::Wrong));
        }
    }
}
