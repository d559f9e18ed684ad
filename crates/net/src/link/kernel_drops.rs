//! What the kernel says about a UDP socket.

use std::net::{IpAddr, SocketAddr};

/// Datagrams that the kernel dropped at the sockets bound to `address`; `None` where it does not tell.
pub(crate) fn kernel_drops(address: SocketAddr) -> Option<u64> {
    let file = match address {
        SocketAddr::V4(_) => "/proc/self/net/udp",
        SocketAddr::V6(_) => "/proc/self/net/udp6",
    };
    drops_in(&std::fs::read_to_string(file).ok()?, address)
}

/// Reads Linux's table of UDP sockets: the second column is the local address, the last the number of drops.
fn drops_in(table: &str, address: SocketAddr) -> Option<u64> {
    let local = kernel_form(address);
    let drops = table
        .lines()
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .filter(|columns| columns.get(1) == Some(&local.as_str()))
        .filter_map(|columns| columns.last()?.parse::<u64>().ok());
    drops.reduce(|sum, more| sum.saturating_add(more))
}

/// An address as Linux writes it: words of four octets in the machine's order, in hexadecimal.
fn kernel_form(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes(word.try_into().expect("a chunk of four")));
    let words: String = words.map(|word| format!("{word:08X}")).collect();
    format!("{words}:{:04X}", address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a little-endian machine prints it: 127.0.0.1 is 0100007F, port 6363 is 18DB.
    #[test]
    #[cfg(target_endian = "little")]
    fn drops_are_found_by_local_address() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            12: 0100007F:18DB 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 7 2 0 41\n\
            13: 0100007F:18DC 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 7 2 0 5\n";
        let drops = |address: &str| drops_in(table, address.parse().unwrap());
        assert_eq!(drops("127.0.0.1:6363"), Some(41));
        assert_eq!(drops("127.0.0.1:6364"), Some(5));
        assert_eq!(drops("127.0.0.1:6365"), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn version_6_addresses_are_four_words() {
        let form = kernel_form("[::1]:1".parse().unwrap());
        assert_eq!(form, "00000000000000000000000001000000:0001");
    }
}
