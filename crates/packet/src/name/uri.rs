//! Names written as URIs.

use core::str::FromStr;

use super::{Component, DIGEST_SIZE, DIGESTS, NUMBERED, Name, NameBuilder, is_digest};

/// A URI that is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{component:?} is not a name component: {reason}")]
pub struct ParseNameError {
    component: String,
    reason: &'static str,
}

impl FromStr for Name {
    type Err = ParseNameError;

    /// Reads the URI form, with or without the scheme `ndn:`. Empty path segments are skipped.
    fn from_str(uri: &str) -> Result<Self, ParseNameError> {
        let path = uri.strip_prefix("ndn:").unwrap_or(uri);
        // After a scheme, `//` starts an authority, which names ignore.
        let path = match path.strip_prefix("//") {
            Some(rest) if path.len() < uri.len() => {
                rest.split_once('/').map_or("", |(_, path)| path)
            }
            _ => path,
        };
        path.split('/')
            .filter(|segment| !segment.is_empty())
            .try_fold(NameBuilder::default(), |name, segment| {
                parse_component(name, segment).map_err(|reason| ParseNameError {
                    component: segment.to_owned(),
                    reason,
                })
            })
            .map(NameBuilder::finish)
    }
}

fn parse_component(name: NameBuilder, segment: &str) -> Result<NameBuilder, &'static str> {
    let Some((word, text)) = segment.split_once('=') else {
        return append(name, Component::GENERIC, unescape(segment)?);
    };
    if let Some(&(kind, _)) = DIGESTS.iter().find(|(_, known)| *known == word) {
        return append(
            name,
            kind,
            hex_decode(text).ok_or("a digest has 64 hexadecimal digits")?,
        );
    }
    if let Some(&(kind, _)) = NUMBERED.iter().find(|(_, known)| *known == word) {
        let number = text.parse().ok().filter(|_| !text.starts_with('+'));
        return Ok(name.number(kind, number.ok_or("not a decimal number")?));
    }
    match word.parse::<u16>() {
        Ok(kind) if kind > 0 && !word.starts_with(['0', '+']) => {
            append(name, kind, unescape(text)?)
        }
        _ => Err("unknown component type"),
    }
}

fn append(name: NameBuilder, kind: u16, value: Vec<u8>) -> Result<NameBuilder, &'static str> {
    if is_digest(kind) && value.len() != DIGEST_SIZE {
        return Err("a digest has 32 octets");
    }
    Ok(name.component(Component {
        kind,
        value: &value,
    }))
}

fn unescape(text: &str) -> Result<Vec<u8>, &'static str> {
    if text.bytes().all(|octet| octet == b'.') {
        return match text.len() {
            0..3 => Err("fewer than three periods"),
            periods => Ok(vec![b'.'; periods - 3]),
        };
    }
    percent_decode(text)
}

/// Returns the octets of `text`, in which `%` and two hexadecimal digits stand for an octet.
///
/// # Errors
/// The name of the mistake, if an escape is incomplete or has other characters than digits.
pub fn percent_decode(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            octets.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or("incomplete escape")?;
        octets.push(hex_octet(digits).ok_or("escape is not hexadecimal")?);
        rest = after;
    }
    Ok(octets)
}

/// Returns the octets that pairs of hexadecimal digits stand for; `None` if `text` has anything else.
pub fn hex_decode(text: &str) -> Option<Vec<u8>> {
    text.as_bytes().chunks(2).map(hex_octet).collect()
}

fn hex_octet(digits: &[u8]) -> Option<u8> {
    let digit = |octet: u8| char::from(octet).to_digit(16);
    match digits {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    }
}
