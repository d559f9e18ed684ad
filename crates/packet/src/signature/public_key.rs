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
    /// The algorithm or curve is none of those supported.
    #[error("key algorithm is not supported")]
    Unsupported,
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo in DER. Curves must be named, not spelt out.
    ///
    /// # Errors
    /// If it is malformed, or the algorithm is not supported.
    pub fn from_spki(der: &[u8]) -> Result<Self, KeyError> {
        let info = SubjectPublicKeyInfoRef::try_from(der).map_err(|_| KeyError::Malformed)?;
        match info.algorithm.oid {
            ED25519 => DecodePublicKey::from_public_key_der(der)
                .map(Self::Ed25519)
                .map_err(|_| KeyError::Malformed),
            EC_PUBLIC_KEY if info.algorithm.parameters_oid() != Ok(P256) => {
                Err(KeyError::Unsupported)
            }
            EC_PUBLIC_KEY => DecodePublicKey::from_public_key_der(der)
                .map(Self::EcdsaP256)
                .map_err(|_| KeyError::Malformed),
            RSA_ENCRYPTION => RsaPublicKey::from_spki(der, &info)
                .map(Self::Rsa)
                .ok_or(KeyError::Malformed),
            _ => Err(KeyError::Unsupported),
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
        assert_eq!(
            PublicKey::from_spki(&other_curve.concat()),
            Err(KeyError::Unsupported)
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
