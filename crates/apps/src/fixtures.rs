//! Fixtures for unit tests of uplink clients and of rooms.

use namecast_packet::signature::Ed25519Signer;
use namecast_packet::{Certificate, KeyLocator, Name, Validity};
use namecast_stream::path::{Budget, ClientId, LiveConfig, Uplink, UplinkConfig};
use namecast_units::{Duration, Instant, Timestamp};

use crate::Now;
use crate::trust::Member;

/// Wall-clock time at which tests of rooms begin, in microseconds since 1970.
pub(crate) const WALL: u64 = 1_760_000_000_000_000;

/// An uplink of which nothing is known.
pub(crate) fn uplink() -> Uplink {
    Uplink::new(UplinkConfig::default(), Budget::live(LiveConfig::default()))
}

/// The first client of an uplink.
pub(crate) fn client() -> ClientId {
    uplink().new_client()
}

/// Reads a name.
pub(crate) fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// Both clocks, `millis` after the beginning.
pub(crate) fn now(millis: u64) -> Now {
    Now {
        monotonic: Instant::ZERO + Duration::from_millis(millis),
        wall: Timestamp::from_micros(WALL + millis * 1_000),
    }
}

/// The key of `seed`, which names `locator` as its certificate.
pub(crate) fn pair(seed: u8, locator: &Name) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(locator.clone()))
}

/// Validity of certificates.
pub(crate) fn validity() -> Validity {
    Validity::of_own_key(Timestamp::from_micros(WALL))
}

/// A roster's entry for the holder of a certificate.
pub(crate) fn member(certificate: &Certificate) -> Member {
    Member {
        certificate: certificate.name().clone(),
        key_digest: certificate.public_key().unwrap().digest(),
        until: validity().not_after,
        role: "member".to_owned(),
        exchange_key: None,
        label: String::new(),
    }
}
