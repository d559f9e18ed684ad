//! Verifiers that need no public key.

use core::fmt;

use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};

use super::signers::hmac_key;
use super::{SignatureInfo, SignatureType, Verifier, VerifyError};

/// Checks SHA-256 digests: finds damage, does not say who sent the packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct DigestVerifier;

impl Verifier for DigestVerifier {
    fn verify(
        &self,
        info: &SignatureInfo,
        portion: &[u8],
        value: &[u8],
    ) -> Result<(), VerifyError> {
        expect_type(info, SignatureType::DigestSha256)?;
        if value == Sha256::digest(portion).as_slice() {
            Ok(())
        } else {
            Err(VerifyError::Wrong)
        }
    }
}

/// Checks signatures made with a shared key. Does not look at the KeyLocator: there is but this key.
#[derive(Clone)]
pub struct HmacVerifier(Hmac<Sha256>);

impl HmacVerifier {
    /// A verifier with the secret `key`, of any length.
    pub fn new(key: &[u8]) -> Self {
        Self(hmac_key(key))
    }
}

impl Verifier for HmacVerifier {
    fn verify(
        &self,
        info: &SignatureInfo,
        portion: &[u8],
        value: &[u8],
    ) -> Result<(), VerifyError> {
        expect_type(info, SignatureType::HmacWithSha256)?;
        let mac = self.0.clone().chain_update(portion);
        // Takes equally long for every wrong value, so that it cannot be guessed octet by octet.
        mac.verify_slice(value).map_err(|_| VerifyError::Wrong)
    }
}

impl fmt::Debug for HmacVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HmacVerifier(..)")
    }
}

/// Checks that a signature claims to be of the one type its verifier can judge.
pub(super) fn expect_type(
    info: &SignatureInfo,
    expected: SignatureType,
) -> Result<(), VerifyError> {
    match info.signature_type {
        found if found == expected => Ok(()),
        SignatureType::Null => Err(VerifyError::Unsigned),
        found => Err(VerifyError::Unsupported(found)),
    }
}
