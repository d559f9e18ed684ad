//! Management of the content store: `cs/info`.

use bytes::Bytes;
use namecast_packet::DecodeError;
use namecast_packet::tlv::{Element, Writer};
use namecast_units::ByteSize;
use serde::Serialize;

use super::dataset::Item;
use super::numbers::{CAPACITY, FLAGS};
use crate::node::ContentStoreDescription;

const HITS: u32 = 129;
const MISSES: u32 = 130;
const ENTRIES: u32 = 135;

/// Content store flag: Data is taken in.
pub const ADMIT: u64 = 1;
/// Content store flag: Interests are answered.
pub const SERVE: u64 = 2;

/// Management counts capacity in packets, and the store in octets: what NFD's configuration reckons for a packet.
const NOMINAL_PACKET: ByteSize = ByteSize::bytes(8 << 10);

/// The content store, as `cs/info` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CsInfo {
    /// Packets that there may be.
    pub capacity: u64,
    /// [`ADMIT`] and [`SERVE`].
    pub flags: u64,
    /// Packets that there are.
    pub entries: u64,
    /// Interests that were answered.
    pub hits: u64,
    /// Interests that could not be answered.
    pub misses: u64,
}

impl Item for CsInfo {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "CsInfo";

    fn encode_fields(&self, writer: &mut Writer) {
        writer
            .number(CAPACITY, self.capacity)
            .number(FLAGS, self.flags)
            .number(ENTRIES, self.entries)
            .number(HITS, self.hits)
            .number(MISSES, self.misses);
    }

    fn read_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError> {
        let number = || field.number(Self::WHAT, wire);
        match field.element_type {
            CAPACITY => self.capacity = number()?,
            FLAGS => self.flags = number()?,
            ENTRIES => self.entries = number()?,
            HITS => self.hits = number()?,
            MISSES => self.misses = number()?,
            _ => {}
        }
        Ok(())
    }
}

impl From<ContentStoreDescription> for CsInfo {
    fn from(store: ContentStoreDescription) -> Self {
        Self {
            capacity: store.capacity.as_bytes() / NOMINAL_PACKET.as_bytes(),
            flags: ADMIT | SERVE,
            entries: store.packets as u64,
            hits: store.hits,
            misses: store.misses,
        }
    }
}
