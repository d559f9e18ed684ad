//! NDN Packet Format v0.3 and NDNLPv2: octets to packets and back.
//!
//! ```text
//!   octets ──▶ LpPacket ──▶ Packet ──▶ Interest | Data ──▶ Name, SignatureInfo, …
//! ```
//!
//! Decoding copies nothing: a packet holds the octets it came in, and its fields are slices of them.
//! Encoding is canonical: shortest numbers, fields in order, defaults left out.

pub mod any_next;
mod certificate;
mod copy;
mod data;
mod error;
mod extensions;
mod fields;
mod interest;
pub mod lp;
mod manifest;
mod name;
mod path_label;
pub mod piggyback;
mod prefix_announcement;
pub mod signature;
pub mod tlv;

pub use any_next::{AnyNextRequest, ChunksHad};
pub use certificate::{Certificate, Description, Validity};
pub use data::{ContentType, Data, DataBuilder, DataTemplate};
pub use error::{DecodeError, Problem};
pub use extensions::Extensions;
pub use fields::Field;
pub use interest::{Interest, InterestBuilder, InterestTemplate, Nonce};
pub use lp::LpPacket;
pub use manifest::{Digests, PacketDigest};
pub use name::{Component, Name, NameBuilder, ParseNameError, hex_decode, percent_decode};
pub use path_label::{HopLabel, PathLabel};
pub use prefix_announcement::PrefixAnnouncement;
pub use signature::{
    KeyLocator, PublicKey, SignatureInfo, SignatureType, Signer, Verifier, VerifyError,
};

use bytes::Bytes;

/// Largest network-layer packet that NDN nodes exchange, in octets.
pub const MAX_PACKET_SIZE: usize = 8_800;

/// A network-layer packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A request for one Data packet.
    Interest(Interest),
    /// A named and signed answer.
    Data(Data),
}

impl Packet {
    /// Decodes one Interest or Data that fills `wire` whole.
    ///
    /// # Errors
    /// The first violation of the packet format, with field and offset.
    pub fn decode(wire: Bytes) -> Result<Self, DecodeError> {
        match tlv::Reader::new(&wire).peek_type("packet")? {
            tlv::INTEREST => Interest::decode(wire).map(Self::Interest),
            tlv::DATA => Data::decode(wire).map(Self::Data),
            other => Err(DecodeError::new(
                "packet",
                0,
                Problem::UnexpectedType(other),
            )),
        }
    }

    /// Returns the packet's octets.
    pub fn wire(&self) -> &Bytes {
        match self {
            Self::Interest(interest) => interest.wire(),
            Self::Data(data) => data.wire(),
        }
    }
}

/// The README's example is compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
