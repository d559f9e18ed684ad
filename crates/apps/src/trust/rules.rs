//! Configuration of a reader that judges by a schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use namecast_packet::Certificate;

use super::chain::{Anchor, ChainConfig, Chains};
use super::schema::Schema;

/// Configuration of a reader that judges by a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Which key may sign which name.
    pub schema: Arc<Schema>,
    /// Version of the schema.
    pub version: u64,
    /// Trust anchor.
    pub anchor: Anchor,
    /// Certificates between signers and the anchor, and the anchor's own.
    pub certificates: Vec<Certificate>,
    /// SHA-256 digests of public keys that were revoked.
    pub revoked: BTreeSet<[u8; 32]>,
    /// Limits of chains.
    pub config: ChainConfig,
}

impl Rules {
    /// Judges by `schema` and `anchor`, and knows nothing else.
    pub fn new(schema: Arc<Schema>, anchor: Anchor) -> Self {
        Self {
            schema,
            version: 0,
            anchor,
            certificates: Vec::new(),
            revoked: BTreeSet::new(),
            config: ChainConfig::default(),
        }
    }

    /// Returns chains that know what these rules know.
    pub fn chains(&self) -> Chains {
        let mut chains = Chains::new(
            self.schema.clone(),
            self.version,
            self.anchor.clone(),
            self.config,
        );
        for certificate in &self.certificates {
            // One without a usable key vouches for nobody.
            let _ = chains.offer(certificate.data().clone());
        }
        // No list is older than the first.
        let _ = chains.set_revoked(0, self.revoked.clone());
        chains
    }
}
