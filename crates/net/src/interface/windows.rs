//! Interfaces as Windows lists them.

use std::io;
use std::net::IpAddr;

use if_addrs::get_if_addrs;

/// Returns the name of each interface with each of its IP addresses.
pub(super) fn addresses() -> io::Result<Vec<(String, Option<IpAddr>)>> {
    let listed = get_if_addrs()?.into_iter();
    Ok(listed.map(|it| (it.name.clone(), Some(it.ip()))).collect())
}

/// Returns the number of an interface.
pub(crate) fn index_of(name: &str) -> Option<u32> {
    let mut interfaces = get_if_addrs().ok()?.into_iter();
    interfaces.find(|found| found.name == name)?.index
}

/// Returns the name of an interface.
pub(crate) fn name_of(index: u32) -> Option<String> {
    let mut interfaces = get_if_addrs().ok()?.into_iter();
    let found = interfaces.find(|found| found.index == Some(index))?;
    Some(found.name)
}
