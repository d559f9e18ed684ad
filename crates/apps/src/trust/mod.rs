//! Trust schemas: rules that say which key may sign which name, and chains of certificates up to an anchor.

mod chain;
mod refusal;
pub mod schema;
mod shared;
pub mod template;

pub use chain::{Anchor, ChainConfig, Chains, Judgement, Moment, SetBack};
pub use refusal::{Counters, Refusal};
pub use shared::{SchemaVerifier, SharedChains};
