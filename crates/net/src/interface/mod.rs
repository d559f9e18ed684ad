//! The machine's network interfaces.

#[cfg_attr(windows, path = "windows.rs")]
mod system;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

pub(crate) use system::{index_of, name_of};

/// How often an interface is looked at that others rely on.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// What the faces of an interface rely on: that it is there, the same as before, with the address that they send from.
///
/// To be made before the faces are, so that nothing is missed.
#[derive(Clone, Debug)]
pub struct InterfaceWatch {
    name: String,
    index: u32,
    source: Option<IpAddr>,
}

impl InterfaceWatch {
    /// Of the interface `name`; if a `group` is given, also of the address that is sent to it from.
    ///
    /// # Errors
    /// If there is no such interface, or no such address of it.
    pub fn new(name: &str, group: Option<IpAddr>) -> io::Result<Self> {
        let interface = Interface::find(name)?;
        let source = group.map(|group| interface.source_for(group)).transpose()?;
        Ok(Self {
            name: interface.name,
            index: interface.index,
            source: source.map(|source| source.ip()),
        })
    }

    /// Waits until what faces rely on is no more, and tells why. An interface that is down is still there.
    pub async fn lost(&self) -> String {
        loop {
            tokio::time::sleep(WATCH_INTERVAL).await;
            if let Some(reason) = self.reason() {
                return reason;
            }
        }
    }

    fn reason(&self) -> Option<String> {
        let interface = match Interface::find(&self.name) {
            Ok(interface) => interface,
            Err(error) => return Some(error.to_string()),
        };
        if interface.index != self.index {
            return Some("another interface has its name now".to_owned());
        }
        let source = self.source.filter(|source| !interface.has(*source))?;
        Some(format!("it has lost its address {source}"))
    }
}

/// One network interface, as it was when it was looked for.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    /// Its number in the system.
    pub(crate) index: u32,
    addresses: Vec<IpAddr>,
}

impl Interface {
    /// The interface called `name`.
    ///
    /// # Errors
    /// If there is none; the error names those that there are.
    pub(crate) fn find(name: &str) -> io::Result<Self> {
        let all = system::addresses()?;
        let Some(index) = index_of(name) else {
            let mut names: Vec<_> = all.into_iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            let message = format!("there is no such interface, only {}", names.join(", "));
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        };
        let of_this = all.into_iter().filter(|(found, _)| found == name);
        Ok(Self {
            name: name.to_owned(),
            index,
            addresses: of_this.filter_map(|(_, address)| address).collect(),
        })
    }

    /// An address to send to `group` from, which is of the same family.
    ///
    /// # Errors
    /// If the interface has none.
    pub(crate) fn source_for(&self, group: IpAddr) -> io::Result<SocketAddr> {
        let of_family = |address: &&IpAddr| address.is_ipv4() == group.is_ipv4();
        let mut sources = self.addresses.iter().filter(of_family).map(|&ip| match ip {
            IpAddr::V6(ip) if ip.is_unicast_link_local() => {
                SocketAddrV6::new(ip, 0, 0, self.index).into()
            }
            _ => SocketAddr::from((ip, 0)),
        });
        // What reaches one link only is sent from an address of that link (RFC 6724, rule 2).
        let is_of_link = |source: &SocketAddr| match source.ip() {
            IpAddr::V4(_) => true,
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        let (mut first, mut of_link) = (None, None);
        for source in &mut sources {
            first.get_or_insert(source);
            if is_of_link(&source) {
                of_link.get_or_insert(source);
            }
        }
        let family = if group.is_ipv4() { 4 } else { 6 };
        of_link.or(first).ok_or_else(|| {
            let message = format!("interface {} has no IPv{family} address", self.name);
            io::Error::new(io::ErrorKind::AddrNotAvailable, message)
        })
    }

    /// Whether this is one of its addresses.
    fn has(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// `group` as a socket address on this interface.
    pub(crate) fn scoped(&self, group: SocketAddr) -> SocketAddr {
        match group {
            SocketAddr::V6(group) if is_link_scoped(*group.ip()) => {
                SocketAddrV6::new(*group.ip(), group.port(), 0, self.index).into()
            }
            other => other,
        }
    }

    /// Longest payload of a frame, in octets, if the system tells.
    #[cfg(target_os = "linux")]
    pub(crate) fn mtu(&self) -> Option<usize> {
        let read = |file: &str| {
            let path = format!("/sys/class/net/{}/{file}", self.name);
            let text = std::fs::read_to_string(path).ok()?;
            text.trim().parse::<usize>().ok()
        };
        // Where another network namespace's files are mounted, the name may stand for another interface.
        let is_this =
            read("ifindex").and_then(|index| u32::try_from(index).ok()) == Some(self.index);
        if is_this { read("mtu") } else { None }
    }
}

/// Whether a group's number means something on one link only: interface-local and link-local scope (RFC 4291, 2.7).
fn is_link_scoped(group: Ipv6Addr) -> bool {
    group.is_multicast() && matches!(group.octets()[1] & 0x0F, 1 | 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_refused_with_those_that_are() {
        let error = Interface::find("nowhere0").unwrap_err().to_string();
        assert!(error.contains("no such interface, only "), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_loopback_interface_has_its_address() {
        let interface = Interface::find("lo").unwrap();
        let group = "224.0.23.170".parse().unwrap();
        let source = interface.source_for(group).unwrap();
        assert_eq!(source, "127.0.0.1:0".parse().unwrap());
        assert_eq!(interface.mtu(), Some(65_536));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_faces_rely_on_is_the_same_interface_with_the_same_address() {
        let group = "224.0.23.170".parse().unwrap();
        let watch = InterfaceWatch::new("lo", Some(group)).unwrap();
        assert_eq!(watch.reason(), None);
        let replaced = InterfaceWatch {
            index: watch.index + 1,
            ..watch.clone()
        };
        let reason = replaced.reason().unwrap();
        assert_eq!(reason, "another interface has its name now");
        let moved = InterfaceWatch {
            source: Some("192.0.2.1".parse().unwrap()),
            ..watch.clone()
        };
        let reason = moved.reason().unwrap();
        assert_eq!(reason, "it has lost its address 192.0.2.1");
        let removed = InterfaceWatch {
            name: "nowhere0".to_owned(),
            ..watch
        };
        assert!(removed.reason().unwrap().contains("no such interface"));
        assert!(InterfaceWatch::new("nowhere0", None).is_err());
    }

    #[test]
    fn only_groups_of_one_link_carry_the_interface() {
        let interface = Interface {
            name: "x".to_owned(),
            index: 7,
            addresses: Vec::new(),
        };
        let scoped = |group: &str| interface.scoped(group.parse().unwrap()).to_string();
        assert_eq!(scoped("[ff02::1234]:56363"), "[ff02::1234%7]:56363");
        assert_eq!(scoped("[ff05::1234]:56363"), "[ff05::1234]:56363");
        assert_eq!(scoped("224.0.23.170:56363"), "224.0.23.170:56363");
        let error = interface.source_for("ff02::1".parse().unwrap());
        assert!(error.unwrap_err().to_string().contains("no IPv6 address"));
    }
}
