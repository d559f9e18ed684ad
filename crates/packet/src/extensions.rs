//! Link header fields that are not in NDNLPv2: experiments', by number.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::tlv;

/// Link header fields outside of NDNLPv2, each a number and octets.
///
/// Their numbers are those from 852 to 956 that are multiples of four, which every known implementation skips, but for 876, which has
/// a field of its own. So there are 26 at most. What they mean is for those who read them; a neighbour that knows nothing of
/// a field forgets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "nearly all packets have none, and each of them would be larger"
)]
pub struct Extensions(Option<Box<BTreeMap<u32, Bytes>>>);

impl Extensions {
    /// The rate at which Data come from behind a cache; a number.
    pub const RATE_TAG: u32 = 852;
    /// Links that a packet has crossed since it was made or came out of a cache; a number.
    pub const HOP_COUNT: u32 = 856;
    /// The path that an Interest is to take, as the nodes on it wrote it down.
    pub const PATH_LABEL: u32 = 860;
    /// Whether any next packet of a flow is requested, and not one name; a number.
    pub const ANY_NEXT: u32 = 864;
    /// The fewest requests that are left over at any node on the path; a number.
    pub const MIN_PENDING_REQUESTS: u32 = 868;
    /// An Interest that travels with Data.
    pub const PIGGYBACKED_INTEREST: u32 = 872;
    /// Whether extension fields are spoken here; a number, 1 for a question and 2 for the answer. Links alone say and hear it.
    pub const SUPPORT: u32 = 880;

    /// AvoidFaceId, which is a field of [`LpPacket`](crate::LpPacket).
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
            && number != Self::AVOID_FACE_ID
    }

    /// Returns the octets of a field.
    pub fn get(&self, number: u32) -> Option<&Bytes> {
        self.0.as_ref()?.get(&number)
    }

    /// Returns the value of a field that is a number; `None` if there is no such field, or it is none.
    pub fn number(&self, number: u32) -> Option<u64> {
        tlv::read_number(self.get(number)?)
    }

    /// Adds a field, or changes it.
    ///
    /// # Panics
    /// If `number` [is no extension field's](Self::has_number).
    pub fn set(&mut self, number: u32, octets: impl Into<Bytes>) {
        assert!(Self::has_number(number), "{number} is no extension field's");
        let fields = self.0.get_or_insert_default();
        fields.insert(number, octets.into());
    }

    /// Adds a field that is a number, or changes it.
    ///
    /// # Panics
    /// If `number` [is no extension field's](Self::has_number).
    pub fn set_number(&mut self, number: u32, value: u64) {
        let octets = value.to_be_bytes();
        let shortest = &octets[octets.len() - tlv::number_size(value)..];
        self.set(number, Bytes::copy_from_slice(shortest));
    }

    /// Takes a field out.
    pub fn remove(&mut self, number: u32) -> Option<Bytes> {
        let fields = self.0.as_mut()?;
        let removed = fields.remove(&number);
        if fields.is_empty() {
            self.0 = None;
        }
        removed
    }

    /// Returns whether there are no fields.
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns all fields, in ascending order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Bytes)> {
        let fields = self.0.iter().flat_map(|fields| fields.iter());
        fields.map(|(&number, octets)| (number, octets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LpPacket;

    /// On both sides of AvoidFaceId, with the numbers in the order that link headers must have.
    #[test]
    fn fields_come_back_as_they_were_set() {
        let mut extensions = Extensions::default();
        extensions.set(900, &b"later"[..]);
        extensions.set_number(Extensions::RATE_TAG, 70_000);
        extensions.set(Extensions::PATH_LABEL, Bytes::new());
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
        assert_eq!(found.get(852).map(Bytes::len), Some(2));
        assert_eq!((found.number(860), found.number(904)), (None, None));
    }

    #[test]
    fn nothing_is_left_of_the_last_field_that_is_taken_out() {
        let mut extensions = Extensions::default();
        extensions.set_number(Extensions::SUPPORT, 1);
        assert_eq!(extensions.remove(Extensions::RATE_TAG), None);
        assert!(!extensions.is_empty());
        let removed = extensions.remove(Extensions::SUPPORT);
        assert_eq!(removed.as_deref(), Some(&[1][..]));
        assert_eq!(extensions, Extensions::NONE);
    }

    #[test]
    fn other_numbers_are_none() {
        let none = [848, 853, 876, 960, 98];
        assert!(
            none.into_iter()
                .all(|number| !Extensions::has_number(number))
        );
        assert_eq!(
            (0..2_000)
                .filter(|&number| Extensions::has_number(number))
                .count(),
            26
        );
    }
}
