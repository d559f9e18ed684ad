//! Chains that all readers of a program judge by: streams, objects, sessions and recordings.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use namecast_packet::tlv::{NAME, Reader};
use namecast_packet::{Data, Name, PublicKey, SignatureInfo, Verifier, VerifyError};

use super::chain::{Chains, Judgement, Moment};

/// Chains that several readers judge by. A new version of schema or roster is in force for all of them at once, a certificate that one of them
/// fetched serves the others, and refusals are counted together. Clones share the chains and are equal to each other alone.
#[derive(Clone)]
pub struct SharedChains(Arc<Mutex<Chains>>);

impl SharedChains {
    /// Shares `chains`.
    pub fn new(chains: Chains) -> Self {
        Self(Arc::new(Mutex::new(chains)))
    }

    /// Calls `act` with the chains, while nobody else has them.
    pub fn with<T>(&self, act: impl FnOnce(&mut Chains) -> T) -> T {
        // A panic leaves no chain half changed: each is judged before it is written.
        let mut chains = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut chains)
    }

    /// Judges a certificate: whether its key counts for the names that the schema lets it sign.
    pub fn judge_certificate(&self, certificate: &Data, moment: Moment) -> Judgement {
        self.with(|chains| chains.judge_certificate(certificate, moment))
    }

    /// Returns what verifies packets of `key`, which was judged by the certificate of this name.
    pub fn verifier(&self, certificate: &Name, key: Arc<PublicKey>) -> SchemaVerifier {
        SchemaVerifier {
            chains: self.clone(),
            certificate: certificate.detached(),
            key,
        }
    }
}

impl PartialEq for SharedChains {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for SharedChains {}

impl fmt::Debug for SharedChains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|chains| {
            f.debug_struct("SharedChains")
                .field("schema", chains.schema())
                .field("counters", chains.counters())
                .finish_non_exhaustive()
        })
    }
}

/// Verifies Data of one signer: its certificate must still count, and the schema let its key sign each name. For pipelines with one signer.
#[derive(Clone, Debug)]
pub struct SchemaVerifier {
    chains: SharedChains,
    certificate: Name,
    key: Arc<PublicKey>,
}

impl SchemaVerifier {
    /// Returns whether the key may sign the Data whose signed portion is `portion`: that begins with its name.
    fn allows(&self, portion: &[u8]) -> bool {
        let Ok(Some(element)) = Reader::new(portion).element("Name") else {
            return false;
        };
        if element.element_type != NAME {
            return false;
        }
        let octets = Bytes::copy_from_slice(&portion[element.whole()]);
        let Ok(name) = Name::decode(&octets) else {
            return false;
        };
        let allowed = self
            .chains
            .with(|chains| chains.allow(&name, &self.certificate, &self.key));
        allowed.is_ok()
    }
}

impl Verifier for SchemaVerifier {
    fn verify(
        &self,
        info: &SignatureInfo,
        portion: &[u8],
        value: &[u8],
    ) -> Result<(), VerifyError> {
        match self.allows(portion) {
            true => self.key.verify(info, portion, value),
            false => Err(VerifyError::UnknownKey(info.key_locator.clone())),
        }
    }
}
