//! Interfaces as Unix systems list them.

use std::io;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{if_nameindex, if_nametoindex};

/// Returns each interface name with each of its IP addresses, and without an address for entries of other families.
pub(super) fn addresses() -> io::Result<Vec<(String, Option<IpAddr>)>> {
    let listed = getifaddrs()?.map(|entry| {
        let address = entry.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|it| IpAddr::V4(it.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|it| IpAddr::V6(it.ip())))
        });
        (entry.interface_name, address)
    });
    Ok(listed.collect())
}

/// Returns the number of an interface.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    if_nametoindex(name).ok()
}

/// Returns the name of an interface.
pub(crate) fn name_of(index: u32) -> Option<String> {
    let interfaces = if_nameindex().ok()?;
    let found = interfaces.iter().find(|found| found.index() == index)?;
    Some(found.name().to_string_lossy().into_owned())
}
