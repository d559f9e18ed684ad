//! Peers by the names of their hosts.

use core::fmt;
use std::io;
use std::net::SocketAddr;

/// Port of UDP and TCP where a URI names none.
pub const DEFAULT_PORT: u16 = 6363;
/// Addresses of one host that are tried.
const MAX_ADDRESSES: usize = 8;
/// Characters of a name and of each of its labels (RFC 1035 section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// The name that means this machine whatever a name server answers (RFC 6761 section 6.3).
const LOCALHOST: &str = "localhost";

/// UDP or TCP to a host by name, whose addresses are looked up at each connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Host {
    /// UDP, not TCP.
    pub is_udp: bool,
    /// Version of IP, 4 or 6; `None`: whichever the host has.
    pub family: Option<u8>,
    /// Name of the host, in lower case.
    pub name: String,
    /// Port there.
    pub port: u16,
}

impl Host {
    /// Reads `name` or `name:port`.
    pub(crate) fn parse(is_udp: bool, family: Option<u8>, text: &str) -> Option<Self> {
        let (name, port) = split_port(text.strip_suffix('/').unwrap_or(text));
        is_host_name(name).then(|| Self {
            is_udp,
            family,
            name: name.to_lowercase(),
            port: port.unwrap_or(DEFAULT_PORT),
        })
    }

    /// Whether the name can only mean this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.name == LOCALHOST
    }

    /// Looks up the addresses, in the order in which the system prefers them: 8 at most.
    ///
    /// # Errors
    /// If there is none, or no name server answers.
    pub async fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let found = tokio::net::lookup_host((self.name.as_str(), self.port)).await;
        let found = found.map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot look up {}: {error}", self.name),
            )
        })?;
        let mut addresses: Vec<_> = found.filter(|address| self.may_be_at(address)).collect();
        addresses.dedup();
        addresses.truncate(MAX_ADDRESSES);
        match addresses.is_empty() {
            true => Err(self.nowhere()),
            false => Ok(addresses),
        }
    }

    /// A face to this machine may command, so no answer of a name server moves it elsewhere.
    fn may_be_at(&self, address: &SocketAddr) -> bool {
        let is_of_family = match self.family {
            Some(4) => address.is_ipv4(),
            Some(6) => address.is_ipv6(),
            _ => true,
        };
        let is_here = address.ip().to_canonical().is_loopback();
        is_of_family && (is_here || !self.is_loopback()) && !address.ip().is_multicast()
    }

    fn nowhere(&self) -> io::Error {
        let name = &self.name;
        let family = self
            .family
            .map_or_else(String::new, |family| format!("v{family}"));
        let text = format!("{name} has no IP{family} address that can be connected to");
        io::Error::new(io::ErrorKind::AddrNotAvailable, text)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_udp { "udp" } else { "tcp" })?;
        if let Some(family) = self.family {
            write!(f, "{family}")?;
        }
        write!(f, "://{}:{}", self.name, self.port)
    }
}

/// Splits `host:port`, if there is a port.
pub(crate) fn split_port(authority: &str) -> (&str, Option<u16>) {
    let split = authority.rsplit_once(':');
    match split.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

/// Whether it is a name, and not an address with a mistake: the last label of a name is no number.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_known = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(is_known)
            && !label.starts_with('-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= MAX_NAME
        && name.split('.').all(is_label)
        && !last.bytes().all(|octet| octet.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, family: Option<u8>) -> Host {
        Host::parse(true, family, name).unwrap()
    }

    #[tokio::test]
    async fn the_hosts_file_is_asked() {
        let addresses = host("localhost:7", Some(4)).resolve().await.unwrap();
        assert_eq!(addresses, [SocketAddr::from(([127, 0, 0, 1], 7))]);
    }

    #[test]
    fn a_face_to_this_machine_never_leads_elsewhere() {
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 7));
        assert!(!host("localhost", None).may_be_at(&elsewhere));
        assert!(host("router.example", None).may_be_at(&elsewhere));
        assert!(!host("router.example", Some(6)).may_be_at(&elsewhere));
        let group = SocketAddr::from(([224, 0, 23, 170], 7));
        assert!(!host("router.example", None).may_be_at(&group));
    }

    #[test]
    fn names_are_told_from_addresses() {
        assert!(is_host_name("router") && is_host_name("a_b.example."));
        let long = "a".repeat(64);
        for text in ["", ".", "a..b", "1.2.3", "[::1]", "a b", "-a", "a/b", &long] {
            assert!(!is_host_name(text), "{text}");
        }
    }
}
