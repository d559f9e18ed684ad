//! Segments as packets: as the sender signs them, and as receivers put them together again for neighbours.

use bytes::Bytes;
use namecast_packet::{Data, Name, SignatureInfo, Signer};
use namecast_units::Duration;

use super::{ContentKey, Contents};
use crate::object::KnownSigner;

/// How long caches may take a version for the newest.
pub(super) const FRESHNESS: Duration = Duration::from_secs(1);

/// Gives segments that came from the sender.
pub trait KeptSegments {
    /// Returns content and signature of a segment; `None` if it is not here.
    fn read(&mut self, number: u64) -> Option<(Bytes, Bytes)>;
}

/// An object as its packets name it.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    /// Name with the version.
    pub(super) flow: Name,
    /// Number of the last segment with content.
    pub(super) last: u64,
    /// Key of a private object.
    pub(super) key: Option<ContentKey>,
}

impl Packets {
    pub(super) fn new(contents: &Contents, flow: Name, key: Option<ContentKey>) -> Self {
        Self {
            flow,
            last: contents.segments() - 1,
            key,
        }
    }

    /// Makes the packet of a segment.
    pub(super) fn build(&self, number: u64, content: &Bytes, signer: &dyn Signer) -> Data {
        let content = match &self.key {
            Some(key) => key.seal(number, content),
            None => content.clone(),
        };
        let freshness = match number {
            0 => FRESHNESS,
            _ => Duration::ZERO,
        };
        Data::builder(self.flow.builder().segment(number).finish())
            .freshness(freshness)
            .final_block(Name::root().builder().segment(self.last).finish())
            .content(content)
            .sign(signer)
    }
}

/// Signs with a signature that came.
struct Repeated {
    info: SignatureInfo,
    signature: Bytes,
}

impl Signer for Repeated {
    fn info(&self) -> SignatureInfo {
        self.info.clone()
    }

    fn sign(&self, _portion: &[u8]) -> Bytes {
        self.signature.clone()
    }
}

/// Serves segments that came.
pub(super) struct Serving {
    packets: Packets,
    kept: Box<dyn KeptSegments + Send>,
    /// SignatureInfo of all segments; `None` before the first arrives.
    info: Option<SignatureInfo>,
}

impl Serving {
    pub(super) fn new(packets: Packets, kept: Box<dyn KeptSegments + Send>) -> Self {
        Self {
            packets,
            kept,
            info: None,
        }
    }

    /// Takes a segment of the sender.
    pub(super) fn on_segment(&mut self, data: &Data) {
        self.info.get_or_insert_with(|| data.signature_info());
    }

    /// Returns the packet of a segment, if it is what the sender signed.
    pub(super) fn data(&mut self, number: u64, signer: &KnownSigner) -> Option<Data> {
        let info = self.info.clone()?;
        let (content, signature) = self.kept.read(number)?;
        let signed = Repeated { info, signature };
        let data = self.packets.build(number, &content, &signed);
        signer.has_signed(&data).then_some(data)
    }
}
