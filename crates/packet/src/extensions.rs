//! Link header fields that are not in NDNLPv2: experiments', by number.

use smallvec::SmallVec;

use crate::tlv;

/// Link header fields outside of NDNLPv2, each a number and octets.
///
/// Their numbers are those from 852 to 956 that are multiples of four, which every known implementation skips, but for 872 and 876, which have
/// fields of their own. So there are 25 at most. `docs/wire.md` says what those that have names mean; a neighbour that knows nothing
/// of a field forgets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
// In a box, as nearly all packets have none, and each of them would be larger.
pub struct Extensions(Option<Box<Elements>>);

/// The fields as they stand on the wire, in ascending order of their numbers. Those of one packet mostly fit in place.
type Elements = SmallVec<[u8; 64]>;

/// First octet of each element: the type takes two more.
const LONG_TYPE: u8 = 253;
/// First octet of a length that takes two more, or four.
const SHORT: u8 = 253;
const WORD: u8 = 254;

impl Extensions {
    /// Bit/s at which whole Data come to the content store that answered, from where it gets them; a number above 0.
    pub const RATE_TAG: u32 = 852;
    /// Nodes that Data have passed since the one that answered; a number up to 255.
    pub const HOP_COUNT: u32 = 856;
    /// The path that an Interest is to take, or that Data took: see [`PathLabel`](crate::PathLabel).
    pub const PATH_LABEL: u32 = 860;
    /// Before an Interest, a [request](crate::AnyNextRequest) for any next packets of a flow; before Data that answer one, their number on
    /// the link; empty beside [`SUPPORT`](Self::SUPPORT), that such requests are counted here.
    pub const ANY_NEXT: u32 = 864;
    /// The fewest requests that are left over at any node on the path; a number up to 65 535.
    pub const MIN_PENDING_REQUESTS: u32 = 868;
    /// Whether extension fields are spoken here; a number, 1 for a question and 2 for the answer. Links alone say and hear it.
    pub const SUPPORT: u32 = 880;
    /// What answered: [`FROM_PRODUCER`](Self::FROM_PRODUCER) or [`FROM_CONTENT_STORE`](Self::FROM_CONTENT_STORE).
    pub const SOURCE: u32 = 884;
    /// Asks whether a frame of this size arrives: eight random octets and padding. Links alone say and hear it.
    pub const PATH_PROBE: u32 = 888;
    /// The eight random octets of a [`PATH_PROBE`](Self::PATH_PROBE) that arrived. Links alone say and hear it.
    pub const PATH_ANSWER: u32 = 892;
    /// Without a packet: the [chunks](crate::ChunksHad) of a flow that a neighbour has.
    pub const CHUNKS_HAD: u32 = 896;

    /// Value of [`SOURCE`](Self::SOURCE): the producer, by the node that it is on.
    pub const FROM_PRODUCER: u64 = 1;
    /// Value of [`SOURCE`](Self::SOURCE): a node's content store.
    pub const FROM_CONTENT_STORE: u64 = 2;

    /// PiggybackedInterest and AvoidFaceId, which are fields of [`LpPacket`](crate::LpPacket).
    pub(crate) const PIGGYBACKED_INTEREST: u32 = 872;
    pub(crate) const AVOID_FACE_ID: u32 = 876;
    /// No fields.
    pub const NONE: Self = Self(None);

    const FIRST: u32 = Self::RATE_TAG;
    const LAST: u32 = 956;

    /// Returns whether a number may be an extension field's.
    pub const fn has_number(number: u32) -> bool {
        Self::FIRST <= number
            && number <= Self::LAST
            && number.is_multiple_of(4)
            && number != Self::PIGGYBACKED_INTEREST
            && number != Self::AVOID_FACE_ID
    }

    /// Returns the octets of a field.
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        let mut fields = self.iter();
        fields.find_map(|(other, octets)| (other == number).then_some(octets))
    }

    /// Returns the value of a field that is a number; `None` if there is no such field, or it is none.
    pub fn number(&self, number: u32) -> Option<u64> {
        tlv::read_number(self.get(number)?)
    }

    /// Adds a field, or changes it.
    ///
    /// # Panics
    /// If `number` [is no extension field's](Self::has_number).
    pub fn set(&mut self, number: u32, octets: impl AsRef<[u8]>) {
        assert!(Self::has_number(number), "{number} is no extension field's");
        let octets = octets.as_ref();
        let mut header = [LONG_TYPE, (number >> 8) as u8, number as u8, 0, 0, 0, 0, 0];
        let header = match octets.len() {
            length @ 0..=252 => {
                header[3] = length as u8;
                &header[..4]
            }
            length @ 253..=0xFFFF => {
                header[3] = SHORT;
                header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
                &header[..6]
            }
            length => {
                header[3] = WORD;
                header[4..].copy_from_slice(&(length as u32).to_be_bytes());
                &header[..]
            }
        };
        let (start, end) = self.place(number);
        let elements = self.0.get_or_insert_default();
        elements.drain(start..end);
        elements.insert_from_slice(start, octets);
        elements.insert_from_slice(start, header);
    }

    /// Appends an element that was decoded, and whose number is above all others'.
    pub(crate) fn push(&mut self, element: &[u8]) {
        self.0.get_or_insert_default().extend_from_slice(element);
    }

    /// Adds a field that is a number, or changes it.
    ///
    /// # Panics
    /// If `number` [is no extension field's](Self::has_number).
    pub fn set_number(&mut self, number: u32, value: u64) {
        assert!(Self::has_number(number), "{number} is no extension field's");
        let size = tlv::number_size(value);
        let [.., high, low] = number.to_be_bytes();
        let mut element = [LONG_TYPE, high, low, size as u8, 0, 0, 0, 0, 0, 0, 0, 0];
        element[4..4 + size].copy_from_slice(&value.to_be_bytes()[8 - size..]);
        let (start, end) = self.place(number);
        let elements = self.0.get_or_insert_default();
        if start < elements.len() {
            elements.drain(start..end);
        }
        elements.insert_from_slice(start, &element[..4 + size]);
    }

    /// Takes a field out; returns whether there was one.
    pub fn remove(&mut self, number: u32) -> bool {
        let (start, end) = self.place(number);
        if start < end
            && let Some(elements) = &mut self.0
        {
            elements.drain(start..end);
            if elements.is_empty() {
                self.0 = None;
            }
        }
        start < end
    }

    /// Returns whether there are no fields.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns all fields, in ascending order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut rest = self.elements();
        core::iter::from_fn(move || {
            let (number, octets, after) = split(rest)?;
            rest = after;
            Some((number, octets))
        })
    }

    /// Returns the fields whose numbers are below `number`, and the others, as they stand on the wire.
    pub(crate) fn split_at(&self, number: u32) -> (&[u8], &[u8]) {
        self.elements().split_at(self.place(number).0)
    }

    /// Where the element of `number` is or would be, and where it ends.
    fn place(&self, number: u32) -> (usize, usize) {
        let all = self.elements();
        let mut rest = all;
        while let Some((other, _, after)) = split(rest) {
            if other >= number {
                let start = all.len() - rest.len();
                let end = if other == number {
                    all.len() - after.len()
                } else {
                    start
                };
                return (start, end);
            }
            rest = after;
        }
        (all.len(), all.len())
    }

    /// Returns how many octets the fields take.
    pub(crate) fn len(&self) -> usize {
        self.elements().len()
    }

    /// Returns all fields as they stand on the wire.
    #[inline]
    pub(crate) fn elements(&self) -> &[u8] {
        self.0.as_deref().map_or(&[], |elements| elements)
    }
}

/// The first of the elements: its number, its value, and the others.
#[inline]
fn split(elements: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let &[_, high, low, first, ref rest @ ..] = elements else {
        return None;
    };
    let (length, rest) = match (first, rest) {
        (SHORT, &[a, b, ref rest @ ..]) => (u32::from_be_bytes([0, 0, a, b]), rest),
        (WORD, &[a, b, c, d, ref rest @ ..]) => (u32::from_be_bytes([a, b, c, d]), rest),
        (length, rest) => (length.into(), rest),
    };
    let (octets, after) = rest.split_at_checked(length as usize)?;
    Some((u32::from_be_bytes([0, 0, high, low]), octets, after))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::LpPacket;

    /// On both sides of AvoidFaceId, with the numbers in the order that link headers must have.
    #[test]
    fn fields_come_back_as_they_were_set() {
        let mut extensions = Extensions::default();
        extensions.set(900, &b"later"[..]);
        extensions.set_number(Extensions::RATE_TAG, 70_000);
        extensions.set(Extensions::PATH_LABEL, []);
        extensions.set_number(Extensions::RATE_TAG, 300);
        let packet = LpPacket {
            avoid_face: Some(7),
            extensions,
            ..LpPacket::carrying(Bytes::from_static(&[6, 1, 0]))
        };
        let decoded = LpPacket::decode(packet.encode()).expect("well-formed");
        assert_eq!(decoded, packet);
        let found = &decoded.extensions;
        let numbers: Vec<_> = found.iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [852, 860, 900]);
        assert_eq!(found.number(852), Some(300));
        assert_eq!(found.get(852).map(<[u8]>::len), Some(2));
        assert_eq!((found.number(860), found.number(904)), (None, None));
    }

    /// As a map of numbers and octets would have them, with lengths of each form.
    #[test]
    fn fields_are_what_a_map_of_them_is() {
        let mut random = namecast_units::Random::from_seed(1);
        let (mut extensions, mut map) = (Extensions::default(), std::collections::BTreeMap::new());
        for _ in 0..2_000 {
            let number = [852, 860, 868, 880, 956][random.below(5) as usize];
            if random.chance(0.3) {
                assert_eq!(extensions.remove(number), map.remove(&number).is_some());
            } else {
                let length = [0, 1, 252, 253, 65_535, 65_536][random.below(6) as usize];
                let octets = vec![random.next_u64() as u8; length];
                extensions.set(number, &octets);
                map.insert(number, octets);
            }
            let fields = extensions.iter();
            assert!(fields.eq(map.iter().map(|(&number, octets)| (number, &octets[..]))));
            let wire = LpPacket {
                extensions: extensions.clone(),
                ..LpPacket::default()
            }
            .encode_whole();
            assert_eq!(
                LpPacket::decode(wire).expect("well-formed").extensions,
                extensions
            );
        }
    }

    #[test]
    fn nothing_is_left_of_the_last_field_that_is_taken_out() {
        let mut extensions = Extensions::default();
        extensions.set_number(Extensions::SUPPORT, 1);
        assert!(!extensions.remove(Extensions::RATE_TAG));
        assert!(!extensions.is_empty());
        assert!(extensions.remove(Extensions::SUPPORT));
        assert_eq!(extensions, Extensions::NONE);
    }

    #[test]
    fn other_numbers_are_none() {
        let none = [848, 853, 872, 876, 960, 98];
        assert!(
            none.into_iter()
                .all(|number| !Extensions::has_number(number))
        );
        assert_eq!(
            (0..2_000)
                .filter(|&number| Extensions::has_number(number))
                .count(),
            25
        );
    }
}
