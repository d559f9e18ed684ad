//! Packets that pass an application's face.

use bytes::Bytes;
use namecast_packet::tlv::{self, Reader};
use namecast_packet::{Data, LpPacket};
use namecast_units::ByteSize;

/// Packets at an application's face, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Interests.
    pub interests: u64,
    /// Octets of them.
    pub interest_size: ByteSize,
    /// Data.
    pub data: u64,
    /// Octets of it.
    pub data_size: ByteSize,
    /// Octets of its Content.
    pub content_size: ByteSize,
    /// Interests that came back.
    pub nacks: u64,
}

impl Traffic {
    /// None yet.
    pub(super) const NONE: Self = Self {
        interests: 0,
        interest_size: ByteSize::ZERO,
        data: 0,
        data_size: ByteSize::ZERO,
        content_size: ByteSize::ZERO,
        nacks: 0,
    };

    /// Counts one frame.
    pub(super) fn count(&mut self, frame: &Bytes) {
        let Ok(header) = LpPacket::decode(frame.clone()) else {
            return;
        };
        let is_nack = header.nack.is_some();
        let Some(wire) = header.fragment else {
            return;
        };
        // Whoever takes the packet decodes the rest.
        match Reader::new(&wire).peek_type("packet") {
            Ok(tlv::DATA) => {
                self.data += 1;
                self.data_size += ByteSize::of(&wire);
                let content = Data::decode(wire).ok().and_then(|data| data.content());
                self.content_size +=
                    content.map_or(ByteSize::ZERO, |content| ByteSize::of(&content));
            }
            Ok(tlv::INTEREST) if is_nack => self.nacks += 1,
            Ok(tlv::INTEREST) => {
                self.interests += 1;
                self.interest_size += ByteSize::of(&wire);
            }
            Ok(_) | Err(_) => {}
        }
    }
}
