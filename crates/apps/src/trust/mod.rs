//! Who may publish what: rules that say which key may sign which name, and chains of certificates up to an anchor.

mod chain;
mod refusal;
pub mod schema;
mod verifier;

pub use chain::{Anchor, ChainConfig, Chains, Judgement, SetBack};
pub use refusal::{Counters, Refusal};
pub use verifier::SchemaVerifier;
