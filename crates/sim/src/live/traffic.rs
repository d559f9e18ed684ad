//! Packets that pass an application's face.

use bytes::Bytes;
use namecast_packet::{LpPacket, Packet};
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
        nacks: 0,
    };

    /// Counts one frame.
    pub(super) fn count(&mut self, frame: &Bytes) {
        let Ok(header) = LpPacket::decode(frame.clone()) else {
            return;
        };
        let is_nack = header.nack.is_some();
        match header.fragment.map(Packet::decode) {
            Some(Ok(Packet::Data(data))) => {
                self.data += 1;
                self.data_size += ByteSize::of(data.wire());
            }
            Some(Ok(Packet::Interest(_))) if is_nack => self.nacks += 1,
            Some(Ok(Packet::Interest(interest))) => {
                self.interests += 1;
                self.interest_size += ByteSize::of(interest.wire());
            }
            Some(Err(_)) | None => {}
        }
    }
}
