//! Name components as schemas write them.

use bytes::Bytes;
use namecast_packet::tlv::Writer;
use namecast_packet::{Component, hex_decode, percent_decode};

/// Types whose value is written as a decimal number.
const NUMBERED: [(&str, u16); 5] = [
    ("seg", Component::SEGMENT),
    ("off", Component::BYTE_OFFSET),
    ("v", Component::VERSION),
    ("t", Component::TIMESTAMP),
    ("seq", Component::SEQUENCE),
];
/// Types whose value is written in hexadecimal.
const DIGESTS: [(&str, u16); 2] = [
    ("sha256digest", Component::IMPLICIT_DIGEST),
    ("params-sha256", Component::PARAMETERS_DIGEST),
];

/// Reads a component as python-ndn's `Component.from_str` does: unlike in URIs of the packet format, periods alone stand for
/// themselves, and an empty text is an empty component. Returns it with type and length, or what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Bytes, &'static str> {
    let is_allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"-._~=%".contains(&octet);
    if !text.bytes().all(is_allowed) {
        return Err("it has characters other than letters, digits and - . _ ~ = %");
    }
    let Some((word, value)) = text.split_once('=') else {
        return Ok(element(Component::GENERIC, &percent_decode(text)?));
    };
    if value.contains('=') {
        return Err("it has two signs =");
    }
    if let Some(&(_, kind)) = DIGESTS.iter().find(|(known, _)| *known == word) {
        let octets = hex_decode(value).ok_or("it is not hexadecimal")?;
        return Ok(element(kind, &octets));
    }
    if let Some(&(_, kind)) = NUMBERED.iter().find(|(known, _)| *known == word) {
        let number = value
            .parse()
            .map_err(|_| "it has no decimal number below 2^64")?;
        let mut writer = Writer::default();
        writer.number(kind.into(), number);
        return Ok(writer.finish());
    }
    let kind = word.parse().ok().filter(|&kind: &u16| kind > 0);
    let kind = kind.ok_or("its type is unknown")?;
    Ok(element(kind, &percent_decode(value)?))
}

fn element(kind: u16, value: &[u8]) -> Bytes {
    let mut writer = Writer::default();
    writer.element(kind.into(), value);
    writer.finish()
}
