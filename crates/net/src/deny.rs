//! Addresses that nobody may come from.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, PoisonError, RwLock};

/// All addresses that begin with the same bits, such as `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u32,
}

/// Not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address or a prefix, as in 192.0.2.0/24 or 2001:db8::/32")]
pub struct ParseNetworkError;

impl Network {
    /// Returns whether an address is one of them. IPv4 addresses in IPv6 form count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let different = match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                u128::from(own.to_bits() ^ other.to_bits()) << 96
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => own.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        different.leading_zeros() >= self.length
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ParseNetworkError)?;
        let address = address.to_canonical();
        let whole = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => Ipv6Addr::BITS,
        };
        let length = length.map_or(Ok(whole), str::parse).ok();
        let length = length.filter(|length| *length <= whole);
        let length = length.ok_or(ParseNetworkError)?;
        Ok(Self { address, length })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.length)
    }
}

/// Networks that nobody may come from. Clones share them, so that they can be changed while a node runs.
#[derive(Clone, Debug, Default)]
pub struct DenyList(Arc<RwLock<Vec<Network>>>);

impl DenyList {
    /// Returns whether nobody may come from `address`.
    pub fn contains(&self, address: IpAddr) -> bool {
        let networks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        networks.iter().any(|network| network.contains(address))
    }

    /// Takes these networks instead.
    pub fn set(&self, networks: Vec<Network>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = networks;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_what_begins_alike() {
        for (network, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("192.0.2.7/31", "::ffff:192.0.2.6", "192.0.2.8"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "::2"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network}");
            assert!(!network.contains(outside.parse().unwrap()), "{network}");
            assert_eq!(network.to_string().parse(), Ok(network));
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for wrong in [
            "",
            "192.0.2",
            "192.0.2.0/33",
            "::/129",
            "::/-1",
            "a/8",
            "1.2.3.4/",
        ] {
            assert_eq!(wrong.parse::<Network>(), Err(ParseNetworkError), "{wrong}");
        }
    }
}
