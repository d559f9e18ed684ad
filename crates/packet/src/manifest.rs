//! Digests that let one signed packet vouch for many unsigned ones.
//!
//! Element Digests of `docs/stream-format.md`: 16 octets suffice, since only a second preimage helps a forger.

use bytes::Bytes;

use crate::data::Data;
use crate::error::{DecodeError, Problem};
use crate::tlv::Writer;

/// The first 16 octets of the SHA-256 digest of a whole Data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketDigest([u8; Self::SIZE]);

impl PacketDigest {
    /// Octets of one digest.
    pub const SIZE: usize = 16;

    /// The digest of `data`.
    pub fn of(data: &Data) -> Self {
        let digest = data.implicit_digest();
        let (head, _) = digest
            .split_first_chunk()
            .expect("SHA-256 has more octets than we keep");
        Self(*head)
    }

    /// Returns the digest's octets.
    pub const fn as_bytes(&self) -> &[u8; Self::SIZE] {
        &self.0
    }
}

impl From<[u8; Self::SIZE]> for PacketDigest {
    fn from(octets: [u8; Self::SIZE]) -> Self {
        Self(octets)
    }
}

/// Digests of packets that belong together, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests(Bytes);

impl Digests {
    /// Type of the element that holds the digests.
    pub const ELEMENT: u32 = 150;

    /// The digests of `packets`.
    pub fn from_packets<'a>(packets: impl IntoIterator<Item = &'a Data>) -> Self {
        packets.into_iter().map(PacketDigest::of).collect()
    }

    /// Reads the TLV-VALUE of the element, which shares its memory with the result.
    ///
    /// # Errors
    /// [`Problem::BadLength`] if it does not hold whole digests.
    pub fn decode(value: &Bytes) -> Result<Self, DecodeError> {
        if value.len().is_multiple_of(PacketDigest::SIZE) {
            Ok(Self(value.clone()))
        } else {
            let problem = Problem::BadLength(value.len());
            Err(DecodeError::new("Digests", 0, problem))
        }
    }

    /// Appends the element, even if empty: bare payload may follow, which must not be taken for an element.
    pub fn encode(&self, writer: &mut Writer) {
        writer.element(Self::ELEMENT, &self.0);
    }

    /// Returns the element's TLV-VALUE.
    pub const fn value(&self) -> &Bytes {
        &self.0
    }

    /// Returns the number of digests.
    pub const fn len(&self) -> usize {
        self.0.len() / PacketDigest::SIZE
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Digest `index`, counted from 0.
    pub fn get(&self, index: usize) -> Option<PacketDigest> {
        let start = index.checked_mul(PacketDigest::SIZE)?;
        let (head, _) = self.0.get(start..)?.split_first_chunk()?;
        Some(PacketDigest(*head))
    }

    /// Returns whether `data` is the packet that digest `index` belongs to; no if there is no such digest.
    pub fn matches(&self, index: usize, data: &Data) -> bool {
        self.get(index)
            .is_some_and(|digest| digest == PacketDigest::of(data))
    }

    /// Returns the digests in their order.
    pub fn iter(&self) -> impl Iterator<Item = PacketDigest> + '_ {
        let (digests, _) = self.0.as_chunks();
        digests.iter().map(|octets| PacketDigest(*octets))
    }
}

impl FromIterator<PacketDigest> for Digests {
    fn from_iter<I: IntoIterator<Item = PacketDigest>>(digests: I) -> Self {
        let octets: Vec<_> = digests.into_iter().flat_map(|digest| digest.0).collect();
        Self(octets.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::NullSigner;

    fn packet(content: &'static str) -> Data {
        Data::builder("/a/seg=1".parse().unwrap())
            .content(content)
            .sign(&NullSigner)
    }

    #[test]
    fn a_digest_fits_its_packet_in_its_place_only() {
        let (first, second) = (packet("first"), packet("second"));
        let digests = Digests::from_packets([&first, &second]);
        assert_eq!((digests.len(), digests.value().len()), (2, 32));
        assert!(digests.matches(0, &first) && digests.matches(1, &second));
        assert!(!digests.matches(1, &first) && !digests.matches(0, &second));
        assert!(!digests.matches(2, &first) && !digests.matches(usize::MAX, &first));
        assert_eq!(
            digests.get(0).unwrap().as_bytes()[..],
            first.implicit_digest()[..16]
        );
        assert_eq!(Digests::decode(digests.value()), Ok(digests.clone()));
        assert_eq!(digests.iter().collect::<Digests>(), digests);
    }

    #[test]
    fn half_a_digest_is_refused() {
        let error = Digests::decode(&Bytes::from_static(&[0; 24])).unwrap_err();
        assert_eq!(
            (error.field, error.problem),
            ("Digests", Problem::BadLength(24))
        );
        assert!(Digests::decode(&Bytes::new()).unwrap().is_empty());
    }
}
