//! Addresses of faces, as NFD writes them.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::PathBuf;

use crate::MacAddress;
use crate::host::{DEFAULT_PORT, Host, split_port};
use crate::interface::{index_of, name_of};

/// Port of WebSocket where a URI names none.
pub const DEFAULT_WEBSOCKET_PORT: u16 = 9696;
/// Port of WebSocket over TLS where a URI names none.
const SECURE_WEBSOCKET_PORT: u16 = 443;

/// One end of a face.
///
/// | form                      | meaning                                     |
/// |---------------------------|---------------------------------------------|
/// | `udp4://127.0.0.1:6363`   | UDP; `udp6://[::1]:6363`, `udp://` also read |
/// | `udp6://[fe80::1%eth0]:6363`| a neighbour on an interface; `%25eth0` and numbers also read |
/// | `udp4://224.0.23.170:56363`| all that joined a group                    |
/// | `tcp4://127.0.0.1:6363`   | TCP; `tcp6://`, `tcp://` also read           |
/// | `udp://router.example:6363`| a host by name, looked up at each connection; `udp4`, `udp6`, `tcp`, `tcp4`, `tcp6` too |
/// | `unix:///run/nfd/nfd.sock`| Unix stream socket                          |
/// | `ws://127.0.0.1:9696/ws`  | WebSocket; host names are taken             |
/// | `wss://router.example/ws/`| WebSocket over TLS                         |
/// | `wsclient://127.0.0.1:50` | a WebSocket that was accepted               |
/// | `quic://127.0.0.1:443`    | a WebTransport session                      |
/// | `ether://[02:00:00:00:00:01]`| an Ethernet interface, or a group of them |
/// | `dev://eth0`              | an interface of this machine                |
/// | `fd://3`                  | a Unix socket that was accepted             |
/// | `internal://management`   | an application in this process              |
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaceUri {
    /// UDP.
    Udp(SocketAddr),
    /// TCP.
    Tcp(SocketAddr),
    /// UDP or TCP to a host by name.
    Host(Host),
    /// A Unix stream socket by path.
    Unix(PathBuf),
    /// An accepted Unix socket, by a number that tells it from others.
    Accepted(u64),
    /// A WebSocket server.
    WebSocket {
        /// `host:port`.
        authority: String,
        /// Path, with its leading slash.
        path: String,
        /// Over TLS.
        is_secure: bool,
    },
    /// A WebSocket client that connected to this node.
    WebSocketClient(SocketAddr),
    /// A WebTransport session.
    WebTransport(SocketAddr),
    /// A peer on Ethernet, or all that listen to a group.
    Ethernet(MacAddress),
    /// A network interface of this machine by name.
    Device(String),
    /// An application of this process.
    Internal(String),
}

/// A text that is not a face URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{uri:?} is not a face address: {reason}; write udp://HOST:PORT, tcp://HOST:PORT, unix:///PATH, ws://HOST:PORT/PATH or wss://HOST/PATH"
)]
pub struct ParseFaceUriError {
    uri: String,
    reason: &'static str,
}

impl FaceUri {
    /// Whether both ends of a face to this address are on this machine.
    pub fn is_loopback(&self) -> bool {
        if let Some(address) = self.address() {
            return address.to_canonical().is_loopback();
        }
        match self {
            Self::Host(host) => host.is_loopback(),
            Self::WebSocket { authority, .. } => is_loopback_authority(authority),
            Self::Unix(_) | Self::Accepted(_) | Self::Internal(_) => true,
            _ => false,
        }
    }

    /// Returns the peer's address, if the face is one over IP to a peer whose address is known.
    pub const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Udp(address)
            | Self::Tcp(address)
            | Self::WebSocketClient(address)
            | Self::WebTransport(address) => Some(address.ip()),
            _ => None,
        }
    }

    /// Why no peer can be at this address, if so.
    pub fn obstacle(&self) -> Option<&'static str> {
        let (port, is_wildcard) = match self {
            Self::Udp(address) | Self::Tcp(address) => {
                (address.port(), address.ip().to_canonical().is_unspecified())
            }
            Self::Host(host) => (host.port, false),
            _ => return None,
        };
        match (port, is_wildcard) {
            (0, _) => Some("expected a port from 1 to 65535"),
            (_, true) => Some("expected the address of one peer, not the wildcard"),
            _ => None,
        }
    }

    /// Whether a face to this address is over UDP.
    pub const fn is_udp(&self) -> bool {
        match self {
            Self::Udp(_) => true,
            Self::Host(host) => host.is_udp,
            _ => false,
        }
    }
}

/// Whether `host[:port]` certainly means this machine.
pub(crate) fn is_loopback_authority(authority: &str) -> bool {
    if let Ok(address) = authority.parse::<SocketAddr>() {
        return address.ip().to_canonical().is_loopback();
    }
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => authority.split(':').next().unwrap_or(""),
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

impl fmt::Display for FaceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = |address: &SocketAddr| if address.is_ipv4() { 4 } else { 6 };
        match self {
            Self::Udp(address) => write!(f, "udp{}://{}", family(address), Zoned(address)),
            Self::Tcp(address) => write!(f, "tcp{}://{}", family(address), Zoned(address)),
            Self::Host(host) => write!(f, "{host}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Accepted(number) => write!(f, "fd://{number}"),
            Self::WebSocket {
                authority,
                path,
                is_secure,
            } => {
                let scheme = if *is_secure { "wss" } else { "ws" };
                write!(f, "{scheme}://{authority}{path}")
            }
            Self::WebSocketClient(address) => write!(f, "wsclient://{address}"),
            Self::WebTransport(address) => write!(f, "quic://{address}"),
            Self::Ethernet(address) => write!(f, "ether://[{address}]"),
            Self::Device(name) => write!(f, "dev://{name}"),
            Self::Internal(name) => write!(f, "internal://{name}"),
        }
    }
}

impl FromStr for FaceUri {
    type Err = ParseFaceUriError;

    fn from_str(uri: &str) -> Result<Self, ParseFaceUriError> {
        let error = |reason| ParseFaceUriError {
            uri: uri.to_owned(),
            reason,
        };
        let (scheme, rest) = uri.split_once("://").ok_or(error("it has no scheme"))?;
        let socket = |family| socket_address(rest, family).map_err(error);
        let peer = |is_udp, family| match (socket_address(rest, family), is_udp) {
            (Ok(address), true) => Ok(Self::Udp(address)),
            (Ok(address), false) => Ok(Self::Tcp(address)),
            (Err(reason), _) => Host::parse(is_udp, family, rest)
                .map(Self::Host)
                .ok_or_else(|| error(reason)),
        };
        match scheme {
            "udp" => peer(true, None),
            "udp4" => peer(true, Some(4)),
            "udp6" => peer(true, Some(6)),
            "tcp" => peer(false, None),
            "tcp4" => peer(false, Some(4)),
            "tcp6" => peer(false, Some(6)),
            "quic" => socket(None).map(Self::WebTransport),
            "wsclient" => socket(None).map(Self::WebSocketClient),
            "unix" if rest.starts_with('/') && rest.len() > 1 => Ok(Self::Unix(rest.into())),
            "unix" => Err(error("the path of a Unix socket starts with /")),
            "ws" => websocket(rest, false).map_err(error),
            "wss" => websocket(rest, true).map_err(error),
            "ether" => ethernet(rest).map_err(error),
            "dev" if !rest.is_empty() && !rest.contains('/') => Ok(Self::Device(rest.to_owned())),
            "dev" => Err(error("the name of an interface is missing")),
            _ => Err(error("the scheme is not known")),
        }
    }
}

/// An address with the name of its zone's interface, or its number if there is no such interface.
struct Zoned<'a>(&'a SocketAddr);

impl fmt::Display for Zoned<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            SocketAddr::V6(address) if address.scope_id() != 0 => name_of(address.scope_id()),
            _ => None,
        };
        match name {
            Some(name) => write!(f, "[{}%{name}]:{}", self.0.ip(), self.0.port()),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The interface of this name or number.
fn interface_index(zone: &str) -> Option<u32> {
    let number = || zone.parse().ok().filter(|&index| name_of(index).is_some());
    index_of(zone).or_else(number)
}

/// Reads an IPv6 address with the zone that it needs: `[fe80::1%eth0]:6363`, `%25eth0` as URIs escape it, or a number.
fn zoned_address(text: &str) -> Option<Result<SocketAddr, &'static str>> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => (text, ""),
    };
    let (address, zone) = host.split_once('%')?;
    let address: Ipv6Addr = address.parse().ok()?;
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().ok()?,
        None if port.is_empty() => DEFAULT_PORT,
        None => return None,
    };
    let unescaped = zone.strip_prefix("25").filter(|zone| !zone.is_empty());
    let spellings = [Some(zone), unescaped].into_iter().flatten();
    let mut known = spellings.filter_map(interface_index);
    Some(match known.next() {
        Some(zone) => Ok(SocketAddrV6::new(address, port, 0, zone).into()),
        None => Err("this machine has no interface of the zone after %"),
    })
}

/// Reads an address; one of a link needs the interface that it is on.
fn socket_address(text: &str, family: Option<u8>) -> Result<SocketAddr, &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let address = match zoned_address(text) {
        Some(address) => address?,
        None => plain_address(text)?,
    };
    match (family, address) {
        (Some(4), SocketAddr::V6(_)) => Err("the address is not an IPv4 address"),
        (Some(6), SocketAddr::V4(_)) => Err("the address is not an IPv6 address"),
        (_, SocketAddr::V6(local))
            if local.ip().is_unicast_link_local() && local.scope_id() == 0 =>
        {
            Err("a link-local address needs its interface, as in [fe80::1%eth0]:6363")
        }
        _ => Ok(address),
    }
}

fn plain_address(text: &str) -> Result<SocketAddr, &'static str> {
    Ok(match text.parse::<SocketAddr>() {
        Ok(address) => address,
        Err(_) => {
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            let address = bare.parse().map_err(
                |_| "expected an address or a host, as in 127.0.0.1:6363 or router.example",
            )?;
            SocketAddr::new(address, DEFAULT_PORT)
        }
    })
}

fn ethernet(rest: &str) -> Result<FaceUri, &'static str> {
    let inner = rest
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = inner.and_then(|inner| inner.parse().ok());
    let expected = "an Ethernet address is written as ether://[01:00:5e:00:17:aa]";
    address.map(FaceUri::Ethernet).ok_or(expected)
}

fn websocket(rest: &str, is_secure: bool) -> Result<FaceUri, &'static str> {
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    if authority.is_empty() {
        return Err("the host is missing");
    }
    let port = match is_secure {
        true => SECURE_WEBSOCKET_PORT,
        false => DEFAULT_WEBSOCKET_PORT,
    };
    let authority = match split_port(authority) {
        (_, Some(_)) => authority.to_owned(),
        (_, None) => format!("{authority}:{port}"),
    };
    Ok(FaceUri::WebSocket {
        authority,
        path: path.to_owned(),
        is_secure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(uri: &str) -> String {
        uri.parse::<FaceUri>().unwrap().to_string()
    }

    #[test]
    fn canonical_forms_read_back_as_they_are() {
        for uri in [
            "udp4://127.0.0.1:6363",
            "udp6://[::1]:6363",
            "tcp4://192.0.2.1:1",
            "unix:///run/nfd/nfd.sock",
            "udp://router.example:6363",
            "udp6://localhost:7",
            "tcp4://a-b.example:6363",
            "ws://example.net:9696/ws",
            "wss://example.net:443/ws/",
            "wsclient://127.0.0.1:50",
            "quic://127.0.0.1:443",
            "udp4://224.0.23.170:56363",
            "ether://[01:00:5e:00:17:aa]",
            "dev://eth0.7",
        ] {
            assert_eq!(parsed(uri), uri);
        }
    }

    /// The loopback interface is number 1 on Linux; its name differs elsewhere.
    #[test]
    fn zones_are_read_in_both_spellings_and_written_by_name() {
        let name = name_of(1).unwrap();
        let canonical = format!("udp6://[fe80::7%{name}]:6363");
        for zone in [&name, &format!("25{name}"), "1", "251"] {
            for end in ["]:6363", "]"] {
                assert_eq!(parsed(&format!("udp6://[fe80::7%{zone}{end}")), canonical);
            }
        }
        assert_eq!(parsed(&canonical.replace("udp6", "udp")), canonical);
        let unknown = "tcp6://[fe80::7%none0]:1".parse::<FaceUri>().unwrap_err();
        assert!(unknown.to_string().contains("no interface"), "{unknown}");
        let missing = "udp6://[fe80::7]:6363".parse::<FaceUri>().unwrap_err();
        assert!(missing.to_string().contains("%eth0"), "{missing}");
    }

    #[test]
    fn no_peer_is_at_port_0_or_at_all_addresses() {
        for uri in [
            "udp4://192.0.2.1:0",
            "tcp://router.example:0",
            "udp4://0.0.0.0:6363",
            "tcp6://[::]:6363",
            "udp6://[::ffff:0.0.0.0]:6363",
        ] {
            assert!(
                uri.parse::<FaceUri>().unwrap().obstacle().is_some(),
                "{uri}"
            );
        }
        let sound: FaceUri = "udp4://192.0.2.1:1".parse().unwrap();
        assert_eq!(sound.obstacle(), None);
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        assert_eq!(parsed("udp://127.0.0.1"), "udp4://127.0.0.1:6363");
        assert_eq!(parsed("tcp6://[::1]"), "tcp6://[::1]:6363");
        assert_eq!(parsed("ws://localhost"), "ws://localhost:9696/");
        assert_eq!(parsed("wss://example.net"), "wss://example.net:443/");
        assert_eq!(parsed("udp://Router.Example/"), "udp://router.example:6363");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        for (uri, reason) in [
            ("127.0.0.1:6363", "no scheme"),
            ("udp4://[::1]:6363", "not an IPv4"),
            ("tcp6://127.0.0.1", "not an IPv6"),
            ("udp://router.example:port", "an address or a host"),
            ("udp://127.0.0.1.5", "an address or a host"),
            ("tcp://-router:6363", "an address or a host"),
            ("tcp://", "an address or a host"),
            ("unix://run/nfd.sock", "starts with /"),
            ("unix://", "starts with /"),
            ("ws://", "host is missing"),
            ("ether://01:00:5e:00:17:aa", "written as ether://["),
            ("ether://[01:00:5e:00:17]", "written as ether://["),
            ("dev://", "interface is missing"),
            ("null://", "not known"),
        ] {
            let error = uri.parse::<FaceUri>().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn loopback_is_told_from_the_rest() {
        let local = |uri: &str| uri.parse::<FaceUri>().unwrap().is_loopback();
        assert!(local("udp4://127.9.9.9:1") && local("tcp6://[::1]:1"));
        assert!(local("tcp6://[::ffff:127.0.0.1]:1"));
        assert!(local("udp://localhost") && !local("udp://localhost.example"));
        assert!(local("ws://localhost:1/") && local("ws://[::1]:1/") && local("unix:///x"));
        assert!(!local("udp4://192.0.2.1:1") && !local("ws://localhost.example:1/"));
        assert!(!local("ether://[02:00:00:00:00:01]") && !local("dev://lo"));
        assert!(!local("ws://127.0.0.1.example:1/"));
    }
}
