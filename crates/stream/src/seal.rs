//! The element Seal: which key a sealed sample was sealed with.

use bytes::{BufMut, Bytes, BytesMut};
use namecast_packet::tlv::{number_size, read_number};

/// Steps of a generation. A publisher begins another generation instead of one more.
pub const MAX_STEPS: u16 = 1_024;

/// Key of a sealed sample, as named in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seal {
    /// Start of the publisher: random octets.
    pub start: [u8; 4],
    /// Generation of its keys.
    pub generation: u64,
    /// Step of the generation.
    pub step: u16,
}

impl Seal {
    /// Returns it as the value of its element: start, step in two octets, generation in 1, 2, 4 or 8.
    pub fn encode(&self) -> Bytes {
        let mut octets = BytesMut::with_capacity(14);
        octets.put_slice(&self.start);
        octets.put_u16(self.step);
        let size = number_size(self.generation);
        octets.put_slice(&self.generation.to_be_bytes()[8 - size..]);
        octets.freeze()
    }

    /// Reads the value of its element; `None` if it is none, or its step is not one.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let (start, rest) = octets.split_first_chunk()?;
        let (step, rest) = rest.split_first_chunk()?;
        let step = u16::from_be_bytes(*step);
        let generation = read_number(rest)?;
        let is_shortest = number_size(generation) == rest.len();
        (step < MAX_STEPS && is_shortest).then_some(Self {
            start: *start,
            generation,
            step,
        })
    }
}
