//! Fixtures for unit tests of uplink clients.

use namecast_stream::path::{Budget, ClientId, LiveConfig, Uplink, UplinkConfig};

/// An uplink of which nothing is known.
pub(crate) fn uplink() -> Uplink {
    Uplink::new(UplinkConfig::default(), Budget::live(LiveConfig::default()))
}

/// The first client of an uplink.
pub(crate) fn client() -> ClientId {
    uplink().new_client()
}
