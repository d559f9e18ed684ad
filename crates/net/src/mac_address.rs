//! Addresses of network interfaces.

use core::fmt;
use core::str::FromStr;

/// A 48-bit address of an Ethernet interface, or of a group of them (IEEE 802).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All forwarders of NDN on a link, as NFD has it: the group that stands for 224.0.23.170 (RFC 1112, section 6.4).
    pub const NDN_MULTICAST: Self = Self([0x01, 0x00, 0x5E, 0x00, 0x17, 0xAA]);

    /// Whether it stands for a group of interfaces, or all: its first octet is odd.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text that is not the address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an interface's address is written as 01:00:5e:00:17:aa")]
pub struct ParseMacAddressError;

impl FromStr for MacAddress {
    type Err = ParseMacAddressError;

    fn from_str(text: &str) -> Result<Self, ParseMacAddressError> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().ok_or(ParseMacAddressError)?;
            let is_byte = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
            if !is_byte {
                return Err(ParseMacAddressError);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| ParseMacAddressError)?;
        }
        match parts.next() {
            None => Ok(Self(octets)),
            Some(_) => Err(ParseMacAddressError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_they_are_written() {
        let group: MacAddress = "01:00:5E:00:17:aA".parse().unwrap();
        assert_eq!(group, MacAddress::NDN_MULTICAST);
        assert_eq!(group.to_string(), "01:00:5e:00:17:aa");
        assert!(group.is_group());
        assert!(!MacAddress([0x02, 0, 0, 0, 0, 1]).is_group());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "01:00:5e:00:17",
            "01:00:5e:00:17:aa:bb",
            "1:0:5e:0:17:aa",
            "01:00:5e:00:17:+a",
            "01-00-5e-00-17-aa",
        ] {
            assert_eq!(text.parse::<MacAddress>(), Err(ParseMacAddressError));
        }
    }
}
