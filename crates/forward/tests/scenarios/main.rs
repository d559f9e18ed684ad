//! Whole nodes, joined by links without delay, in virtual time.
#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error has failed, in helpers as well"
)]

mod adaptive;
mod any_next;
mod bundles;
mod bundles_hostile;
mod cache;
mod churn;
mod counters;
mod delivery;
mod extension_fields;
mod feedback;
mod flooding;
mod hops;
mod hostile;
mod learning;
mod link;
mod loops;
mod nacks;
mod path_labels;
mod pcon;
mod protection;
mod shards;
mod strategies;
mod strategy_counters;
mod topology;
