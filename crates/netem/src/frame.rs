//! What a link carries.

use bytes::Bytes;

/// Something that a link can carry: octets, perhaps with a note for whoever takes it out again.
pub trait Frame: Clone {
    /// Returns its octets, for which serialisation takes time; headers of the link come on top.
    fn octets(&self) -> usize;

    /// Flips bit `bit`, counted from the most significant one of the first octet; `bit` is below 8·[`octets`](Self::octets).
    /// Others that share the octets do not notice.
    fn flip_bit(&mut self, bit: usize);
}

impl Frame for Bytes {
    fn octets(&self) -> usize {
        self.len()
    }

    fn flip_bit(&mut self, bit: usize) {
        let mut octets = self.to_vec();
        octets[bit / 8] ^= 0x80 >> (bit % 8);
        *self = Self::from(octets);
    }
}
