//! Whole nodes, joined by links without delay, in virtual time.
#![expect(missing_docs, reason = "tests say what they show by their names")]
#![expect(
    unreachable_pub,
    reason = "helpers are shared by the modules of this test"
)]

mod cache;
mod delivery;
mod hostile;
mod link;
mod loops;
mod nacks;
mod strategies;
mod topology;
