//! Trust schemas: rules that say which key may sign which name, and chains of certificates up to an anchor.

mod chain;
mod refusal;
mod rules;
pub mod schema;
pub mod template;
mod verifier;

pub use chain::{Anchor, ChainConfig, Chains, Judgement, SetBack};
pub use refusal::{Counters, Refusal};
pub use rules::Rules;
pub use verifier::SchemaVerifier;
