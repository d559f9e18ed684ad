//! What a trace says about a frame, however damaged it is.

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::tlv::{self, Reader};
use namecast_packet::{LpPacket, Name};

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKind {
    /// An Interest.
    Interest,
    /// A Data packet.
    Data,
    /// An Interest that comes back.
    Nack,
    /// A later piece of a packet, link headers only, or nothing that can be read.
    Other,
}

impl PacketKind {
    /// As traces write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interest => "interest",
            Self::Data => "data",
            Self::Nack => "nack",
            Self::Other => "other",
        }
    }
}

/// A frame as a trace sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it carries.
    pub packet: PacketKind,
    /// The network packet without link headers, or the piece of it.
    pub fragment: Option<Bytes>,
    /// Set on a Nack.
    pub nack: Option<NackReason>,
    /// Congestion on the path so far, as the frame says.
    pub congestion_mark: u64,
}

impl Frame {
    /// Looks at the outermost headers only; nothing inside the network packet is checked.
    pub fn read(frame: &Bytes) -> Self {
        let Ok(link) = LpPacket::decode(frame.clone()) else {
            return Self {
                packet: PacketKind::Other,
                fragment: None,
                nack: None,
                congestion_mark: 0,
            };
        };
        // Later pieces may start with any octets.
        let first = link.fragment.as_ref().filter(|_| link.fragment_index == 0);
        let outer = first.and_then(|packet| Reader::new(packet).peek_type("packet").ok());
        let packet = match (outer, link.nack) {
            (Some(tlv::INTEREST), Some(_)) => PacketKind::Nack,
            (Some(tlv::INTEREST), None) => PacketKind::Interest,
            (Some(tlv::DATA), None) => PacketKind::Data,
            _ => PacketKind::Other,
        };
        Self {
            packet,
            fragment: link.fragment,
            nack: link.nack,
            congestion_mark: link.congestion_mark,
        }
    }

    /// The packet's name, if it is an Interest, Data or Nack whose name is whole in this frame.
    pub fn name(&self) -> Option<Name> {
        if self.packet == PacketKind::Other {
            return None;
        }
        let packet = self.fragment.as_ref()?;
        // The outer length may promise more than a first piece holds, so it is skipped, not followed.
        let start = 1 + match packet.get(1)? {
            0..=252 => 1,
            253 => 3,
            254 => 5,
            255 => 9,
        };
        if start > packet.len() {
            return None;
        }
        let mut reader = Reader::within(packet, start..packet.len());
        let element = reader.element("Name").ok()??;
        Name::from_element(packet, &element).ok()
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;
    use namecast_packet::{Data, Interest, Nonce};

    use super::*;

    fn interest(uri: &str) -> Bytes {
        let name: Name = uri.parse().unwrap();
        Interest::builder(name).build(Nonce::from(7)).wire().clone()
    }

    fn data(uri: &str, octets: usize) -> Bytes {
        let name: Name = uri.parse().unwrap();
        let data = Data::builder(name)
            .content(vec![7; octets])
            .sign(&NullSigner);
        data.wire().clone()
    }

    fn seen(frame: &Bytes) -> (PacketKind, Option<String>, u64) {
        let frame = Frame::read(frame);
        (
            frame.packet,
            frame.name().map(|name| name.to_string()),
            frame.congestion_mark,
        )
    }

    #[test]
    fn interests_data_and_nacks_are_told_apart() {
        let name = Some("/a/b".to_owned());
        assert_eq!(
            seen(&interest("/a/b")),
            (PacketKind::Interest, name.clone(), 0)
        );
        // A length of one octet, of three and of five.
        for octets in [10, 1_000, 70_000] {
            assert_eq!(
                seen(&data("/a/b", octets)),
                (PacketKind::Data, name.clone(), 0)
            );
        }
        let marked = LpPacket {
            congestion_mark: 1,
            ..LpPacket::carrying(data("/a/b", 9))
        };
        assert_eq!(seen(&marked.encode()), (PacketKind::Data, name.clone(), 1));
        let nack = LpPacket {
            nack: Some(NackReason::NoRoute),
            ..LpPacket::carrying(interest("/a/b"))
        };
        assert_eq!(seen(&nack.encode()), (PacketKind::Nack, name, 0));
    }

    #[test]
    fn a_first_piece_has_a_name_and_a_later_one_has_not() {
        let whole = data("/a/b", 1_000);
        let piece = |index, range| LpPacket {
            sequence: Some(index),
            fragment_index: index,
            fragment_count: Some(2),
            ..LpPacket::carrying(whole.slice(range))
        };
        let name = Some("/a/b".to_owned());
        assert_eq!(
            seen(&piece(0, 0..500).encode()),
            (PacketKind::Data, name, 0)
        );
        assert_eq!(seen(&piece(0, 0..6).encode()), (PacketKind::Data, None, 0));
        assert_eq!(
            seen(&piece(1, 0..500).encode()),
            (PacketKind::Other, None, 0)
        );
    }

    #[test]
    fn headers_only_and_rubbish_are_other() {
        let idle = LpPacket {
            acks: vec![1],
            ..LpPacket::default()
        };
        assert_eq!(seen(&idle.encode()).0, PacketKind::Other);
        let wires = [
            data("/a/b", 300),
            interest("/a/b"),
            LpPacket::carrying(interest("/a")).encode_whole(),
        ];
        for wire in wires {
            for at in 0..wire.len() {
                let _ = seen(&wire.slice(..at));
                for octet in [0, 5, 6, 100, 252, 253, 254, 255] {
                    let mut damaged = wire.to_vec();
                    damaged[at] = octet;
                    let _ = seen(&damaged.into());
                }
            }
        }
        assert_eq!(seen(&Bytes::new()), (PacketKind::Other, None, 0));
    }
}
