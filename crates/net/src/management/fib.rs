//! Management of the forwarding information base: `fib/add-nexthop`, `fib/remove-nexthop`, `fib/list`.

use bytes::Bytes;
use namecast_apps::management::Item;
use namecast_apps::management::numbers::{COST, FACE_ID};
use namecast_forward::FaceId;
use namecast_packet::tlv::{self, Element, Reader, Writer};
use namecast_packet::{DecodeError, Name, tlv_fields};
use serde::Serialize;

use super::rib::check_not_management;
use super::{ControlParameters, MAX_PREFIX_COMPONENTS, Manager, Refused};
use crate::node::{NextHops, NodeError};

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
            hop.encode_to(writer);
        }
    }

    fn read_field(&mut self, wire: &Bytes, field: &Element) -> Result<(), DecodeError> {
        match field.element_type {
            tlv::NAME => self.prefix = Name::from_element(wire, field)?,
            NextHopRecord::TYPE => {
                let record = Reader::within(wire, field.value.clone());
                self.next_hops
                    .push(NextHopRecord::decode_fields(wire, record)?);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Item for NextHopRecord {
    const TYPE: u32 = 129;
    const WHAT: &'static str = "NextHopRecord";

    tlv_fields! {
        FACE_ID => face,
        COST => cost,
    }
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
        check_not_management(&prefix)?;
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
