//! Management of the content store: `cs/config`, `cs/erase`, `cs/info`.

use namecast_apps::management::Item;
use namecast_apps::management::numbers::{CAPACITY, FLAGS};
use namecast_forward::CacheOptions;
use namecast_packet::tlv_fields;
use namecast_units::ByteSize;
use serde::Serialize;

use super::{ControlParameters, Manager, Refused};
use crate::node::{CacheUpdate, ContentStoreDescription};

const HITS: u32 = 129;
const MISSES: u32 = 130;
const ENTRIES: u32 = 135;
/// Ours, which others skip.
const MEMORY: u32 = 240;
const MEMORY_CAPACITY: u32 = 242;

/// Content store flag: Data is taken in.
pub const ADMIT: u64 = 1;
/// Content store flag: Interests are answered.
pub const SERVE: u64 = 2;

/// Management counts capacity in packets, and the store in octets: what NFD's configuration reckons for a packet.
const NOMINAL_PACKET: ByteSize = ByteSize::bytes(8 << 10);
/// Packets that one command erases at most, as in NFD. The response says whether there are more.
const ERASE_LIMIT: u64 = 256;

impl Manager {
    pub(super) async fn execute_content_store(
        &self,
        verb: &[u8],
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        match verb {
            b"config" => self.configure_content_store(parameters),
            b"erase" => self.erase(parameters),
            _ => Err(Refused::new(501, "Unsupported command")),
        }
    }

    fn configure_content_store(
        &self,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, Refused> {
        if parameters.flags.is_some() != parameters.mask.is_some() {
            return Err(Refused::invalid());
        }
        let size = |packets: u64| packets.saturating_mul(NOMINAL_PACKET.as_bytes());
        let update = CacheUpdate {
            capacity: parameters.capacity.map(size).map(ByteSize::bytes),
            admits: parameters.flag(ADMIT),
            serves: parameters.flag(SERVE),
        };
        let options = self.node.update_cache(update);
        let options = options.map_err(Refused::internal)?;
        Ok(ControlParameters {
            capacity: Some(nominal_packets(&options)),
            flags: Some(flags(&options)),
            ..ControlParameters::default()
        })
    }

    fn erase(&self, parameters: &ControlParameters) -> Result<ControlParameters, Refused> {
        let prefix = parameters.name.clone().ok_or_else(Refused::invalid)?;
        let wanted = parameters.count.unwrap_or(u64::MAX);
        if wanted == 0 {
            return Err(Refused::invalid());
        }
        let limit = usize::try_from(wanted.min(ERASE_LIMIT)).expect("the limit is small");
        let erased = self.node.erase_cached(&prefix, limit);
        let erased = erased.map_err(Refused::internal)?;
        let is_unfinished = wanted > ERASE_LIMIT && erased.is_more_left;
        Ok(ControlParameters {
            name: Some(prefix),
            count: Some(erased.count as u64),
            capacity: is_unfinished.then_some(ERASE_LIMIT),
            ..ControlParameters::default()
        })
    }
}

/// The content store, as `cs/info` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CsInfo {
    /// Packets that there may be. A forwarder of ours bounds memory: so many of the nominal size, or as many smaller ones as
    /// there are.
    pub capacity: u64,
    /// [`ADMIT`] and [`SERVE`].
    pub flags: u64,
    /// Packets that there are.
    pub entries: u64,
    /// Interests that were answered.
    pub hits: u64,
    /// Interests that could not be answered.
    pub misses: u64,
    /// Memory that the packets take, in octets, if it is told.
    pub memory: Option<u64>,
    /// Memory that they may take, in octets, if it is told.
    pub memory_capacity: Option<u64>,
}

impl Item for CsInfo {
    const TYPE: u32 = 128;
    const WHAT: &'static str = "CsInfo";

    tlv_fields! {
        CAPACITY => capacity,
        FLAGS => flags,
        ENTRIES => entries,
        HITS => hits,
        MISSES => misses,
        MEMORY => memory,
        MEMORY_CAPACITY => memory_capacity,
    }
}

impl From<ContentStoreDescription> for CsInfo {
    fn from(store: ContentStoreDescription) -> Self {
        let entries = store.packets as u64;
        Self {
            capacity: nominal_packets(&store.options).max(entries),
            flags: flags(&store.options),
            entries,
            hits: store.hits,
            misses: store.misses,
            memory: Some(store.size.as_bytes()),
            memory_capacity: Some(store.options.capacity.as_bytes()),
        }
    }
}

/// To the nearest: several forwarders share a capacity, of which some octets may be left.
const fn nominal_packets(options: &CacheOptions) -> u64 {
    let half = NOMINAL_PACKET.as_bytes() / 2;
    options.capacity.as_bytes().saturating_add(half) / NOMINAL_PACKET.as_bytes()
}

const fn flags(options: &CacheOptions) -> u64 {
    let admit = if options.admits { ADMIT } else { 0 };
    let serve = if options.serves { SERVE } else { 0 };
    admit | serve
}
