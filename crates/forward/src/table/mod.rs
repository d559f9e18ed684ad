//! What a node remembers: routes, pending Interests, cached Data, Nonces of the past.

#[cfg(test)]
mod chosen_names_tests;
mod content_store;
mod dead_nonce;
mod eviction;
mod expiry;
mod face_bundles;
mod faces;
mod fib;
mod ghosts;
pub(crate) mod list;
mod memory;
mod order;
pub(crate) mod pit;
mod prefix_table;
mod recency;
mod s3_fifo;
mod scope;
mod spares;
mod states;
mod tables;

pub use content_store::{CacheOptions, ContentStore, Erased};
pub(crate) use dead_nonce::DeadNonceList;
pub(crate) use expiry::ExpiryQueue;
pub(crate) use faces::{Face, FaceTable};
pub use fib::NextHop;
pub(crate) use fib::{Fib, NextHops};
pub use pit::EntryId;
pub(crate) use pit::{ChoiceId, Pit, ShareId};
pub(crate) use prefix_table::PrefixTable;
pub(crate) use scope::{is_localhost, scope_allows};
pub(crate) use states::{Slot, States};
pub(crate) use tables::{Outcome, Tables};

use crate::name_hash::{NameHasher, NameHashes};

/// Why a route or a strategy was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddRouteError {
    /// There is no such face.
    #[error("no such face")]
    UnknownFace,
    /// Prefixes may have 32 components, as in NFD.
    #[error("the prefix has more than 32 components")]
    NameTooLong,
    /// There are as many prefixes as the configuration allows.
    #[error("the table is full")]
    TableFull,
}
