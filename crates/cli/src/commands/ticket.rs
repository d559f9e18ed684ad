//! Ticket for a receiver: the name, and the key of a private object.

use core::fmt;
use core::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use namecast_apps::object::transfer::ContentKey;
use namecast_packet::Name;

/// A name, and the key behind `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(super) name: Name,
    pub(super) key: Option<ContentKey>,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        match &self.key {
            Some(key) => write!(f, "#{}", URL_SAFE_NO_PAD.encode(key.octets())),
            None => Ok(()),
        }
    }
}

impl FromStr for Ticket {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, key) = match text.split_once('#') {
            Some((name, key)) => (name, Some(key)),
            None => (text, None),
        };
        let name: Name = name.parse().map_err(|error| format!("'{name}': {error}"))?;
        let key = key.map(|key| {
            let octets = URL_SAFE_NO_PAD.decode(key).ok();
            let octets = octets.and_then(|octets| <[u8; 32]>::try_from(octets).ok());
            octets.map(ContentKey::new).ok_or_else(|| {
                "the ticket is damaged: write all of it, as the sender printed it".to_owned()
            })
        });
        Ok(Self {
            name,
            key: key.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_come_back_as_they_were() {
        for key in [None, Some(ContentKey::new([0xA5; 32]))] {
            let ticket = Ticket {
                name: "/files/a".parse().unwrap(),
                key,
            };
            assert_eq!(ticket.to_string().parse(), Ok(ticket));
        }
        let damaged = "/files/a#abc".parse::<Ticket>().unwrap_err();
        assert!(damaged.contains("damaged"), "{damaged}");
        assert!("%".parse::<Ticket>().is_err());
    }
}
