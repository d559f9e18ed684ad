//! Management of the forwarding information base: `fib/list`.

use bytes::Bytes;
use namecast_packet::tlv::{self, Reader, Writer};
use namecast_packet::{DecodeError, Name};
use serde::Serialize;

use super::dataset::Item;
use super::numbers::{COST, FACE_ID};
use crate::node::NextHops;

const NEXT_HOP_RECORD: u32 = 129;

/// The next hops of one prefix, as `fib/list` tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FibEntry {
    /// Names it is for.
    #[serde(serialize_with = "super::serialize_text")]
    pub prefix: Name,
    /// Where they lead.
    pub next_hops: Vec<NextHopRecord>,
}

/// One next hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NextHopRecord {
    /// The face it leads to.
    pub face: u64,
    /// Which of several is taken: the lowest.
    pub cost: u64,
}

impl Item for FibEntry {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "FibEntry";

    fn encode_fields(&self, writer: &mut Writer) {
        self.prefix.encode(writer);
        for hop in &self.next_hops {
            writer.nested(NEXT_HOP_RECORD, |record| {
                record.number(FACE_ID, hop.face).number(COST, hop.cost);
            });
        }
    }

    fn decode_fields(wire: &Bytes, mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        let mut entry = Self::default();
        while let Some(field) = reader.element(Self::WHAT)? {
            match field.element_type {
                tlv::NAME => entry.prefix = Name::from_element(wire, &field)?,
                NEXT_HOP_RECORD => {
                    let record = Reader::within(wire, field.value);
                    entry.next_hops.push(decode_next_hop(wire, record)?);
                }
                _ => {}
            }
        }
        Ok(entry)
    }
}

fn decode_next_hop(wire: &Bytes, mut reader: Reader<'_>) -> Result<NextHopRecord, DecodeError> {
    let mut hop = NextHopRecord::default();
    while let Some(field) = reader.element("NextHopRecord")? {
        match field.element_type {
            FACE_ID => hop.face = field.number("FaceId", wire)?,
            COST => hop.cost = field.number("Cost", wire)?,
            _ => {}
        }
    }
    Ok(hop)
}

/// All next hops, by prefix.
pub(super) fn entries(hops: NextHops) -> Vec<FibEntry> {
    let mut entries: Vec<FibEntry> = Vec::new();
    for ((prefix, face), cost) in hops {
        let hop = NextHopRecord {
            face: face.number(),
            cost,
        };
        match entries.last_mut() {
            Some(last) if last.prefix == prefix => last.next_hops.push(hop),
            _ => entries.push(FibEntry {
                prefix,
                next_hops: vec![hop],
            }),
        }
    }
    entries
}
