//! One key, for the names that a schema lets it sign.

use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::tlv::{NAME, Reader};
use namecast_packet::{Name, PublicKey, SignatureInfo, Verifier, VerifyError};

use super::schema::Schema;

/// Verifies Data of one signer: the schema must let its key sign each name. For pipelines with one signer.
#[derive(Clone, Debug)]
pub struct SchemaVerifier {
    schema: Arc<Schema>,
    certificate: Name,
    key: Arc<PublicKey>,
}

impl SchemaVerifier {
    /// Verifies with `key`, whose certificate was judged and is called `certificate`.
    pub fn new(schema: Arc<Schema>, certificate: Name, key: Arc<PublicKey>) -> Self {
        Self {
            schema,
            certificate: certificate.detached(),
            key,
        }
    }

    /// Returns whether the schema lets the key sign the Data whose signed portion is `portion`: that begins with its name.
    fn allows(&self, portion: &[u8]) -> Option<bool> {
        let element = Reader::new(portion).element("Name").ok()??;
        if element.element_type != NAME {
            return None;
        }
        let octets = Bytes::copy_from_slice(&portion[element.whole()]);
        let name = Name::decode(&octets).ok()?;
        self.schema.allows(&name, &self.certificate).ok()
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
            Some(true) => self.key.verify(info, portion, value),
            _ => Err(VerifyError::UnknownKey(info.key_locator.clone())),
        }
    }
}
