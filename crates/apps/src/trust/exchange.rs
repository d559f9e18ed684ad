//! X25519 keys of members, by which they read sealed streams.

use core::fmt;

use hkdf::Hkdf;
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};

/// Key of a certificate's description that has the public key, 32 octets.
pub const EXCHANGE_KEY: &str = "x25519";
/// Purpose of the derived secret.
const LABEL: &[u8] = b"namecast exchange key, version 1";

/// A member's X25519 secret.
#[derive(Clone)]
pub struct ExchangeSecret(StaticSecret);

impl ExchangeSecret {
    /// Derives it from the seed of the member's Ed25519 key, by HKDF-SHA256 (RFC 5869): whoever keeps one secret keeps both.
    ///
    /// # Panics
    /// Never: 32 octets are fewer than HKDF gives.
    pub fn of_seed(seed: &[u8; 32]) -> Self {
        let mut secret = [0; 32];
        let derived = Hkdf::<Sha256>::new(None, seed).expand(LABEL, &mut secret);
        derived.expect("HKDF-SHA256 gives up to 8160 octets");
        Self(StaticSecret::from(secret))
    }

    /// Returns the public key.
    pub fn public(&self) -> [u8; 32] {
        PublicKey::from(&self.0).to_bytes()
    }

    /// Returns the secret.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }
}

impl fmt::Debug for ExchangeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExchangeSecret")
    }
}
