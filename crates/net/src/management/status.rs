//! The node as a whole: `status/general`.

use bytes::Bytes;
use namecast_apps::management::text;
use namecast_packet::DecodeError;
use namecast_packet::tlv::{Reader, Writer};
use namecast_units::{Duration, Timestamp};
use serde::Serialize;

use super::ReadvertisingStatus;
use crate::node::NodeStatus;

const NFD_VERSION: u32 = 128;
const START_TIMESTAMP: u32 = 129;
const CURRENT_TIMESTAMP: u32 = 130;
const NAME_TREE_ENTRIES: u32 = 131;
const FIB_ENTRIES: u32 = 132;
const PIT_ENTRIES: u32 = 133;
const MEASUREMENTS_ENTRIES: u32 = 134;
const CS_ENTRIES: u32 = 135;
const IN_INTERESTS: u32 = 144;
const IN_DATA: u32 = 145;
const OUT_INTERESTS: u32 = 146;
const OUT_DATA: u32 = 147;
const IN_NACKS: u32 = 151;
const OUT_NACKS: u32 = 152;
const SATISFIED_INTERESTS: u32 = 153;
const UNSATISFIED_INTERESTS: u32 = 154;

/// Ours, from the numbers for applications, and even, so that others skip them: what a routing daemon is told, in the order of
/// [`ReadvertisingStatus`].
const READVERTISING: [u32; 6] = [240, 242, 244, 246, 248, 250];

const WHAT: &str = "GeneralStatus";

/// The node, as `status/general` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GeneralStatus {
    /// Program and version.
    pub version: String,
    /// When the node started, in milliseconds since 1970.
    pub start_millis: u64,
    /// When this was told, in milliseconds since 1970.
    pub current_millis: u64,
    /// Names in NFD's name tree; here there is none.
    pub name_tree_entries: u64,
    /// Prefixes with next hops.
    pub fib_entries: u64,
    /// Pending Interests.
    pub pit_entries: u64,
    /// Prefixes that a strategy has measurements of, which have not expired.
    pub measurements_entries: u64,
    /// Packets in the content store.
    pub cs_entries: u64,
    /// Interests from all faces.
    pub in_interests: u64,
    /// Data from all faces.
    pub in_data: u64,
    /// Nacks from all faces.
    pub in_nacks: u64,
    /// Interests to all faces.
    pub out_interests: u64,
    /// Data to all faces.
    pub out_data: u64,
    /// Nacks to all faces.
    pub out_nacks: u64,
    /// Interests that Data satisfied.
    pub satisfied_interests: u64,
    /// Interests that nothing satisfied.
    pub unsatisfied_interests: u64,
    /// What a routing daemon is told; none if nothing, and other forwarders do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readvertising: Option<ReadvertisingStatus>,
}

impl GeneralStatus {
    /// The node at the time `now`.
    pub(super) fn new(now: Timestamp, node: &NodeStatus) -> Self {
        let current_millis = now.as_micros() / 1_000;
        let uptime = Duration::from_secs_f64(node.uptime_seconds).as_millis();
        let uptime = u64::try_from(uptime).unwrap_or(u64::MAX);
        Self {
            version: concat!("namecast-", env!("CARGO_PKG_VERSION")).to_owned(),
            start_millis: current_millis.saturating_sub(uptime),
            current_millis,
            name_tree_entries: 0,
            fib_entries: node.routed_prefixes as u64,
            pit_entries: node.pending_interests as u64,
            measurements_entries: node.measured_prefixes as u64,
            cs_entries: node.cached_packets as u64,
            in_interests: node.incoming.interests,
            in_data: node.incoming.data,
            in_nacks: node.incoming.nacks,
            out_interests: node.outgoing.interests,
            out_data: node.outgoing.data,
            out_nacks: node.outgoing.nacks,
            satisfied_interests: node.satisfied,
            unsatisfied_interests: node.unsatisfied,
            readvertising: node.readvertising,
        }
    }

    /// The dataset: fields without an element around them.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.element(NFD_VERSION, self.version.as_bytes());
        for (element_type, number) in [
            (START_TIMESTAMP, self.start_millis),
            (CURRENT_TIMESTAMP, self.current_millis),
            (NAME_TREE_ENTRIES, self.name_tree_entries),
            (FIB_ENTRIES, self.fib_entries),
            (PIT_ENTRIES, self.pit_entries),
            (MEASUREMENTS_ENTRIES, self.measurements_entries),
            (CS_ENTRIES, self.cs_entries),
            (IN_INTERESTS, self.in_interests),
            (IN_DATA, self.in_data),
            (IN_NACKS, self.in_nacks),
            (OUT_INTERESTS, self.out_interests),
            (OUT_DATA, self.out_data),
            (OUT_NACKS, self.out_nacks),
            (SATISFIED_INTERESTS, self.satisfied_interests),
            (UNSATISFIED_INTERESTS, self.unsatisfied_interests),
        ] {
            writer.number(element_type, number);
        }
        let readvertising = self.readvertising.map(ReadvertisingStatus::in_order);
        for (element_type, number) in READVERTISING
            .into_iter()
            .zip(readvertising.into_iter().flatten())
        {
            writer.number(element_type, number);
        }
        writer.finish()
    }

    /// Decodes the dataset; unknown fields are skipped.
    ///
    /// # Errors
    /// On a malformed field.
    pub fn decode(wire: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(wire);
        let mut status = Self::default();
        while let Some(field) = reader.element(WHAT)? {
            let number = || field.number(WHAT, wire);
            match field.element_type {
                NFD_VERSION => status.version = text(wire, &field),
                START_TIMESTAMP => status.start_millis = number()?,
                CURRENT_TIMESTAMP => status.current_millis = number()?,
                NAME_TREE_ENTRIES => status.name_tree_entries = number()?,
                FIB_ENTRIES => status.fib_entries = number()?,
                PIT_ENTRIES => status.pit_entries = number()?,
                MEASUREMENTS_ENTRIES => status.measurements_entries = number()?,
                CS_ENTRIES => status.cs_entries = number()?,
                IN_INTERESTS => status.in_interests = number()?,
                IN_DATA => status.in_data = number()?,
                IN_NACKS => status.in_nacks = number()?,
                OUT_INTERESTS => status.out_interests = number()?,
                OUT_DATA => status.out_data = number()?,
                OUT_NACKS => status.out_nacks = number()?,
                SATISFIED_INTERESTS => status.satisfied_interests = number()?,
                UNSATISFIED_INTERESTS => status.unsatisfied_interests = number()?,
                other => {
                    if let Some(at) = READVERTISING.iter().position(|&number| number == other) {
                        let readvertising = status.readvertising.get_or_insert_default();
                        *readvertising.in_order_mut()[at] = number()?;
                    }
                }
            }
        }
        Ok(status)
    }
}
