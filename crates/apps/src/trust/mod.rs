//! Trust schemas: rules that say which key may sign which name, chains of certificates up to an anchor, and rosters.

mod chain;
mod exchange;
mod refusal;
mod roster;
pub mod schema;
mod shared;
pub mod template;

pub use chain::{Anchor, ChainConfig, Chains, Judgement, Moment, SetBack};
pub use exchange::{EXCHANGE_KEY, ExchangeSecret};
pub use refusal::{Counters, Refusal};
pub use roster::{MAX_ENTRIES, MAX_TEXT, Member, Revocation, Roster};
pub use shared::{SchemaVerifier, SharedChains};
