//! Who signs, without anything being generated.

use namecast_packet::signature::{Ed25519Signer, HmacSigner};
use namecast_packet::{Certificate, KeyLocator, Name, Signer, Validity};
use namecast_units::Timestamp;

use namecast_apps::live::watcher::Trust;

/// How packets are signed. Both ends of a stream must say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signing {
    /// With Ed25519, as on sockets; the key is made from a seed. Publishers with one seed have one key.
    Ed25519 {
        /// What the key is made from.
        seed: u8,
    },
    /// With an HMAC, for runs in which signatures would take most of the time. Leads are 32 octets shorter.
    Hmac,
}

impl Default for Signing {
    fn default() -> Self {
        Self::Ed25519 { seed: 1 }
    }
}

/// The secret of [`Signing::Hmac`].
const SECRET: [u8; 32] = [0x5e; 32];

/// Identifier of every key.
const KEY_ID: &str = "1";

impl Signing {
    /// The signer of `root`, and its certificate.
    pub fn signer(self, root: &Name) -> (Box<dyn Signer + Send>, Certificate) {
        let seed = match self {
            Self::Ed25519 { seed } => seed,
            Self::Hmac => 0,
        };
        let name = root.builder().generic("KEY").generic(KEY_ID).finish();
        let locator = KeyLocator::Name(name);
        let signer = Ed25519Signer::from_seed([seed; 32], locator.clone());
        let validity = Validity {
            not_before: Timestamp::from_micros(0),
            not_after: Timestamp::from_micros(u64::MAX / 2),
        };
        let certificate = Certificate::self_signed(root, KEY_ID.as_bytes(), 1, validity, &signer);
        let signer: Box<dyn Signer + Send> = match self {
            Self::Ed25519 { .. } => Box::new(signer),
            Self::Hmac => Box::new(HmacSigner::new(&SECRET, locator)),
        };
        (signer, certificate)
    }

    /// What watchers go by.
    pub const fn trust(self) -> Trust {
        match self {
            Self::Ed25519 { .. } => Trust::FirstUse,
            Self::Hmac => Trust::Secret(SECRET),
        }
    }
}
