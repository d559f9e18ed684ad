//! Management of the forwarding information base: `fib/add-nexthop`, `fib/remove-nexthop`, `fib/list`.

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_packet::tlv::{self, Reader, Writer};
use namecast_packet::{DecodeError, Name};
use serde::Serialize;

use super::dataset::Item;
use super::numbers::{COST, FACE_ID};
use super::{ControlParameters, MAX_PREFIX_COMPONENTS, Manager, Refused};
use crate::node::{NextHops, NodeError};

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

impl Manager {
    pub(super) async fn execute_fib(
        &self,
        verb: &[u8],
        parameters: &ControlParameters,
        from: FaceId,
    ) -> Result<ControlParameters, Refused> {
        let prefix = parameters.name.clone().ok_or_else(Refused::invalid)?;
        let face = match parameters.face {
            None | Some(0) => from,
            Some(other) => FaceId::from_number(other),
        };
        let done = ControlParameters {
            name: Some(prefix.clone()),
            face: Some(face.number()),
            ..ControlParameters::default()
        };
        match verb {
            b"add-nexthop" => {
                let cost = parameters.cost.unwrap_or(0);
                self.add_next_hop(prefix, face, cost).await?;
                Ok(ControlParameters {
                    cost: Some(cost),
                    ..done
                })
            }
            b"remove-nexthop" => {
                let removed = self.node.remove_route(prefix, face).await;
                removed.map_err(Refused::internal)?;
                Ok(done)
            }
            _ => Err(Refused::new(501, "Unsupported command")),
        }
    }

    async fn add_next_hop(&self, prefix: Name, face: FaceId, cost: u64) -> Result<(), Refused> {
        if prefix.len() > MAX_PREFIX_COMPONENTS {
            let text = format!("FIB entry prefix cannot exceed {MAX_PREFIX_COMPONENTS} components");
            return Err(Refused::new(414, text));
        }
        let added = self.node.add_route(prefix, face, cost).await;
        added.map_err(|error| match error {
            NodeError::NoSuchFace(_) => Refused::new(410, "Face not found"),
            other => Refused::internal(other),
        })
    }
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
