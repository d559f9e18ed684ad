//! RSA keys, which only verify.

use bytes::Bytes;
use p256::pkcs8::spki::SubjectPublicKeyInfoRef;
use p256::pkcs8::{DecodePublicKey as _, EncodePublicKey as _};
use rsa::Pkcs1v15Sign;
use sha2::{Digest as _, Sha256};

/// A key that checks PKCS#1 v1.5 signatures over SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaPublicKey(rsa::RsaPublicKey);

impl RsaPublicKey {
    /// Reads a SubjectPublicKeyInfo whose algorithm is rsaEncryption; `None` if it is malformed or too large.
    pub(super) fn from_spki(der: &[u8], _: &SubjectPublicKeyInfoRef<'_>) -> Option<Self> {
        rsa::RsaPublicKey::from_public_key_der(der).ok().map(Self)
    }

    pub(super) fn to_spki(&self) -> Bytes {
        let document = self.0.to_public_key_der();
        let document = document.expect("a key is far smaller than DER's limit");
        Bytes::from(document.into_vec())
    }

    /// RSASSA-PKCS1-v1_5: RFC 8017, section 8.2.2.
    pub(super) fn verifies(&self, portion: &[u8], value: &[u8]) -> bool {
        let digest = Sha256::digest(portion);
        let padding = Pkcs1v15Sign::new::<Sha256>();
        self.0.verify(padding, &digest, value).is_ok()
    }
}
