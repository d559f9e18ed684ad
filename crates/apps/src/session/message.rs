//! What is sealed in a packet: what its sender has received, and a message.
//!
//! ```text
//! kind: 1 octet    next: number    skipped: number    held: number    body: the rest
//! ```
//!
//! Numbers are as TLV has its types.

use namecast_packet::tlv;
use namecast_units::Duration;

/// In the first octet: more can be sent at once.
const MORE: u8 = 0x80;
/// Unit of `held`.
const HELD_UNIT: Duration = Duration::from_micros(100);

/// What a packet is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but what all packets say.
    Nothing,
    /// The body is the application's.
    Message,
    /// The callee takes the call.
    Accept,
    /// Nothing follows; the body says why, for people.
    Close,
    /// The body is a handshake message, of new keys for the session.
    SetUp,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Message,
        Self::Accept,
        Self::Close,
        Self::SetUp,
    ];
}

/// An opened packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) kind: Kind,
    /// More can be sent at once, so that the next Interests need not wait.
    pub(super) more: bool,
    /// All of the other's numbers below this one have come, or are not waited for any more.
    pub(super) next: u64,
    /// Numbers before this packet's that are not used, or of empty packets.
    pub(super) skipped: u64,
    /// How long the Interest waited.
    pub(super) held: Duration,
    pub(super) body: &'a [u8],
}

impl<'a> Message<'a> {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.body.len() + 12);
        let more = if self.more { MORE } else { 0 };
        octets.push(self.kind as u8 | more);
        let held = self.held.as_nanos() / HELD_UNIT.as_nanos();
        for number in [self.next, self.skipped, held as u64] {
            push_number(&mut octets, number);
        }
        octets.extend_from_slice(self.body);
        octets
    }

    /// Reads a message; `None` if it breaks the format.
    pub(super) fn decode(octets: &'a [u8]) -> Option<Self> {
        let (&first, mut rest) = octets.split_first()?;
        let kind = *Kind::ALL.get(usize::from(first & !MORE))?;
        let [next, skipped, held] = [
            take_number(&mut rest)?,
            take_number(&mut rest)?,
            take_number(&mut rest)?,
        ];
        Some(Self {
            kind,
            more: first & MORE != 0,
            next,
            skipped,
            held: HELD_UNIT.saturating_mul(u32::try_from(held).unwrap_or(u32::MAX)),
            body: rest,
        })
    }
}

fn push_number(octets: &mut Vec<u8>, number: u64) {
    match number {
        0..=252 => octets.push(number as u8),
        253..=0xffff => {
            octets.push(253);
            octets.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            octets.push(254);
            octets.extend_from_slice(&(number as u32).to_be_bytes());
        }
        _ => {
            octets.push(255);
            octets.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (&first, tail) = rest.split_first()?;
    let width = match first {
        0..=252 => 0,
        253 => 2,
        254 => 4,
        255 => 8,
    };
    let (value, tail) = tail.split_at_checked(width)?;
    *rest = tail;
    if width == 0 {
        return Some(u64::from(first));
    }
    tlv::read_number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_read_again() {
        for number in [
            0,
            252,
            253,
            65_535,
            65_536,
            u64::from(u32::MAX),
            1 << 32,
            u64::MAX,
        ] {
            for kind in Kind::ALL {
                let message = Message {
                    kind,
                    more: number % 2 == 0,
                    next: number,
                    skipped: number / 3,
                    held: HELD_UNIT * 700,
                    body: b"body",
                };
                assert_eq!(Message::decode(&message.encode()), Some(message));
            }
        }
    }

    /// One octet for each field of a fresh session.
    #[test]
    fn a_header_takes_four_octets_and_halves_are_refused() {
        let message = Message {
            kind: Kind::Nothing,
            more: false,
            next: 252,
            skipped: 0,
            held: Duration::from_millis(25),
            body: &[],
        };
        let octets = message.encode();
        assert_eq!(octets.len(), 4);
        for length in 0..4 {
            assert_eq!(Message::decode(&octets[..length]), None);
        }
        assert_eq!(Message::decode(&[5, 0, 0, 0]), None, "no such kind");
        assert_eq!(Message::decode(&[0, 255, 0, 0]), None);
    }
}
