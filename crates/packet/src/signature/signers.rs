//! Keys that sign. None draws random numbers: keys are arguments, and ECDSA derives its nonces (RFC 6979).

use core::fmt;

use bytes::Bytes;
use ed25519_dalek::Signer as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::{KeyError, KeyLocator, PublicKey, SignatureInfo, SignatureType, Signer};

/// A signer whose signatures anybody can check.
pub trait KeyPair: Signer {
    /// Returns the key that checks this signer's signatures.
    fn public_key(&self) -> PublicKey;
}

/// Leaves packets unsigned: a digest elsewhere vouches for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSigner;

impl Signer for NullSigner {
    fn info(&self) -> SignatureInfo {
        SignatureInfo::new(SignatureType::Null, None)
    }

    fn sign(&self, _portion: &[u8]) -> Bytes {
        Bytes::new()
    }
}

/// Signs with a SHA-256 digest: shows damage, says nothing of who sent the packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct DigestSigner;

impl Signer for DigestSigner {
    fn info(&self) -> SignatureInfo {
        SignatureInfo::new(SignatureType::DigestSha256, None)
    }

    fn sign(&self, portion: &[u8]) -> Bytes {
        Bytes::copy_from_slice(&Sha256::digest(portion))
    }
}

/// Signs with a key that signer and verifier share.
#[derive(Clone)]
pub struct HmacSigner {
    key: Hmac<Sha256>,
    locator: KeyLocator,
}

impl HmacSigner {
    /// A signer with the secret `key`, of any length.
    pub fn new(key: &[u8], locator: KeyLocator) -> Self {
        Self {
            key: hmac_key(key),
            locator,
        }
    }
}

pub(super) fn hmac_key(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl Signer for HmacSigner {
    fn info(&self) -> SignatureInfo {
        SignatureInfo::new(SignatureType::HmacWithSha256, Some(self.locator.clone()))
    }

    fn sign(&self, portion: &[u8]) -> Bytes {
        let mac = self.key.clone().chain_update(portion).finalize();
        Bytes::copy_from_slice(&mac.into_bytes())
    }
}

impl fmt::Debug for HmacSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        secretly("HmacSigner", &self.locator, f)
    }
}

/// Signs with ECDSA over the curve P-256, deterministically (RFC 6979).
#[derive(Clone)]
pub struct EcdsaSigner {
    key: p256::ecdsa::SigningKey,
    locator: KeyLocator,
}

impl EcdsaSigner {
    /// A signer with the secret `scalar`, big endian.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] if it is zero, or not below the order of the curve.
    pub fn from_scalar(scalar: &[u8; 32], locator: KeyLocator) -> Result<Self, KeyError> {
        let key = p256::ecdsa::SigningKey::from_slice(scalar).map_err(|_| KeyError::Malformed)?;
        Ok(Self { key, locator })
    }
}

impl Signer for EcdsaSigner {
    fn info(&self) -> SignatureInfo {
        SignatureInfo::new(SignatureType::Sha256WithEcdsa, Some(self.locator.clone()))
    }

    fn sign(&self, portion: &[u8]) -> Bytes {
        let signature: p256::ecdsa::DerSignature = self.key.sign(portion);
        Bytes::copy_from_slice(signature.as_bytes())
    }
}

impl KeyPair for EcdsaSigner {
    fn public_key(&self) -> PublicKey {
        PublicKey::EcdsaP256(*self.key.verifying_key())
    }
}

impl fmt::Debug for EcdsaSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        secretly("EcdsaSigner", &self.locator, f)
    }
}

/// Signs with Ed25519, the stream's default: short signatures, and fast enough for one per sample.
#[derive(Clone)]
pub struct Ed25519Signer {
    key: ed25519_dalek::SigningKey,
    locator: KeyLocator,
}

impl Ed25519Signer {
    /// A signer with the secret `seed`.
    pub fn from_seed(seed: [u8; 32], locator: KeyLocator) -> Self {
        Self {
            key: ed25519_dalek::SigningKey::from_bytes(&seed),
            locator,
        }
    }
}

impl Signer for Ed25519Signer {
    fn info(&self) -> SignatureInfo {
        SignatureInfo::new(SignatureType::Ed25519, Some(self.locator.clone()))
    }

    fn sign(&self, portion: &[u8]) -> Bytes {
        Bytes::copy_from_slice(&self.key.sign(portion).to_bytes())
    }
}

impl KeyPair for Ed25519Signer {
    fn public_key(&self) -> PublicKey {
        PublicKey::Ed25519(self.key.verifying_key())
    }
}

impl fmt::Debug for Ed25519Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        secretly("Ed25519Signer", &self.locator, f)
    }
}

/// Prints a signer without its secret.
fn secretly(kind: &str, locator: &KeyLocator, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.debug_struct(kind)
        .field("locator", locator)
        .finish_non_exhaustive()
}

#[cfg(test)]
mod tests {
    use super::super::octets;
    use super::*;
    use crate::Name;

    fn locator() -> KeyLocator {
        KeyLocator::Name(Name::root())
    }

    /// RFC 6979, section A.2.5, with SHA-256 and the message "sample": r and s, in DER.
    #[test]
    fn ecdsa_gives_the_signature_of_the_standard() {
        let scalar = octets("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
        let signer = EcdsaSigner::from_scalar(&scalar.try_into().unwrap(), locator()).unwrap();
        let r = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716";
        let s = "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8";
        let der = octets(&format!("3046022100{r}022100{s}"));
        assert_eq!(signer.sign(b"sample"), der);
    }

    #[test]
    fn a_scalar_outside_the_group_is_refused() {
        for scalar in [[0; 32], [0xFF; 32]] {
            let error = EcdsaSigner::from_scalar(&scalar, locator()).unwrap_err();
            assert_eq!(error, KeyError::Malformed);
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let seed = [0xAB; 32];
        let signers: [&dyn fmt::Debug; 3] = [
            &HmacSigner::new(&seed, locator()),
            &Ed25519Signer::from_seed(seed, locator()),
            &EcdsaSigner::from_scalar(&seed, locator()).unwrap(),
        ];
        for signer in signers {
            let printed = format!("{signer:?}").to_lowercase();
            assert!(
                !printed.contains("171") && !printed.contains("abab"),
                "{printed}"
            );
        }
    }

    /// Nodes move their signers between threads.
    #[test]
    fn signers_can_be_boxed_and_sent() {
        let signer: Box<dyn Signer + Send> = Box::new(Ed25519Signer::from_seed([1; 32], locator()));
        assert_eq!(signer.sign(b"a").len(), 64);
    }
}
