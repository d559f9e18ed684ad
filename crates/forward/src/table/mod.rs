//! What a node remembers: routes, pending Interests, cached Data, Nonces of the past.

#[cfg(test)]
mod chosen_names_tests;
mod content_store;
mod dead_nonce;
mod eviction;
mod expiry;
mod fib;
mod ghosts;
mod learned;
pub(crate) mod list;
mod measurements;
mod memory;
mod name_hash;
mod order;
pub(crate) mod pit;
mod prefix_table;
mod recency;
mod s3_fifo;
mod spares;
mod strategy_choices;

pub(crate) use content_store::ContentStore;
pub use content_store::{CacheOptions, Erased};
pub(crate) use dead_nonce::DeadNonceList;
pub(crate) use expiry::ExpiryQueue;
pub(crate) use fib::{Fib, NextHop};
pub(crate) use learned::{Heard, Learned};
pub(crate) use measurements::{Exchange, Measurements, Namespace, Standing};
pub use name_hash::HashKey;
pub(crate) use name_hash::{NameHasher, NameHashes};
pub(crate) use pit::{Pit, ShareId};
pub(crate) use prefix_table::PrefixTable;
pub(crate) use strategy_choices::{ChoiceId, StrategyChoices};

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
