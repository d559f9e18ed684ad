//! Verifies what was recorded: leads of samples by the time at which each was published, as it says.
//!
//! Metadata, catalogues and key boxes only lead to samples, so their key counts if it ever did. Whoever holds a key that has ended can
//! date a packet back: docs/decisions/0027 says what that is worth.

use std::sync::Arc;

use namecast_packet::tlv::{DATA, SIGNATURE_VALUE, Writer, element_size};
use namecast_packet::{Data, SignatureInfo, Verifier, VerifyError};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::{Lead, RungNames, SegmentKind};
use namecast_units::Timestamp;

use super::Trust;
use crate::trust::{Judgement, Moment, SharedChains};

/// Returns what verifies packets that were recorded: by chains at the time of each, else as `live` does.
pub(crate) fn recorded_verifier(trust: &Trust, live: &SharedVerifier) -> SharedVerifier {
    match trust {
        Trust::Schema(chains) => Arc::new(RecordedVerifier(chains.clone())),
        _ => live.clone(),
    }
}

/// Verifies recordings of any signer that the schema allows.
#[derive(Debug)]
struct RecordedVerifier(SharedChains);

impl Verifier for RecordedVerifier {
    fn verify(
        &self,
        info: &SignatureInfo,
        portion: &[u8],
        value: &[u8],
    ) -> Result<(), VerifyError> {
        let unknown = || VerifyError::UnknownKey(info.key_locator.clone());
        let mut wire = Writer::default();
        let length = portion.len() + element_size(SIGNATURE_VALUE, value.len());
        wire.header(DATA, length).raw(portion);
        wire.element(SIGNATURE_VALUE, value);
        // Portions of Interests are none of Data.
        let data = Data::decode(wire.finish()).map_err(|_| unknown())?;
        let moment = published_at(&data).map_or(Moment::Ever, Moment::Recorded);
        match self.0.with(|chains| chains.judge(&data, moment)) {
            Judgement::Accepted { .. } => Ok(()),
            Judgement::Missing(_) | Judgement::Refused(_) => Err(unknown()),
        }
    }
}

/// Returns when a sample was published, as its lead or a copy of it says; `None`: `data` is neither.
fn published_at(data: &Data) -> Option<Timestamp> {
    let (_, id) = RungNames::of_segment(data.name())?;
    if !id.is_lead() && id.kind != SegmentKind::LeadCopy {
        return None;
    }
    // A malformed one is read by nobody, whatever its time.
    let lead = Lead::decode(data).ok();
    Some(lead.map_or(Timestamp::default(), |lead| lead.header().published_at()))
}
