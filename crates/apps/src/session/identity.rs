//! Who sends a set-up: the static key, and the certificate whose key signs it.

use bytes::Bytes;
use namecast_packet::tlv::{self, Fields, Reader, Writer};
use namecast_packet::{Certificate, Data, Name, SignatureInfo, Signer, Verifier};
use namecast_units::Timestamp;
use x25519_dalek::{PublicKey, StaticSecret};

use super::noise::{KEY, Pattern, Side};
use super::refusal::Refusal;
use crate::discovery::{Judge, Signer as PeerSigner, Trust};

/// Element of payloads, critical: the signature of the static key.
const STATIC_SIGNATURE: u32 = 147;

/// In front of the static key where the certificate's key signs it. No signed portion of a packet begins so.
const STATIC_PREFIX: &[u8] = b"namecast-noise-static-key:";
/// What prologues begin with: those of calls, and of new keys for a session.
const CALL_LABEL: &[u8] = b"namecast session, version 2:";
const RENEWAL_LABEL: &[u8] = b"namecast session, version 2, renewed:";

/// Who one is.
pub(super) struct Own {
    pub(super) root: Name,
    pub(super) static_key: StaticSecret,
    pub(super) static_public: [u8; KEY],
    /// The certificate, and its key's signature of the static key.
    pub(super) payload: Bytes,
}

impl Own {
    /// Has `signer`, whose certificate is `certificate`, sign the static key.
    pub(super) fn new(
        root: Name,
        static_key: StaticSecret,
        signer: &dyn Signer,
        certificate: &Data,
    ) -> Self {
        let static_public = PublicKey::from(&static_key).to_bytes();
        let mut payload = Writer::default();
        payload.element(STATIC_SIGNATURE, &signer.sign(&signed(&static_public)));
        payload.raw(certificate.wire());
        Self {
            root,
            static_key,
            static_public,
            payload: payload.finish(),
        }
    }

    pub(super) fn side<'a>(
        &'a self,
        pattern: Pattern,
        prologue: &'a [u8],
        remote: Option<&'a [u8; KEY]>,
        seed: &'a [u8; 32],
    ) -> Side<'a> {
        Side {
            pattern,
            prologue,
            static_key: &self.static_key,
            remote,
            seed,
        }
    }
}

/// What the certificate's key signs.
fn signed(static_public: &[u8; KEY]) -> Vec<u8> {
    [STATIC_PREFIX, static_public].concat()
}

/// Binds the names of both sides.
pub(super) fn prologue(callee: &Name, caller: &Name) -> Vec<u8> {
    let mut prologue = Writer::default();
    prologue.raw(CALL_LABEL);
    callee.encode(&mut prologue);
    caller.encode(&mut prologue);
    prologue.finish().to_vec()
}

/// Binds the handshake that a session's keys are of.
pub(super) fn renewal_prologue(hash: &[u8; 32]) -> Vec<u8> {
    [RENEWAL_LABEL, hash].concat()
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What names of its packets start with.
    pub root: Name,
    /// Whose key it is: a prefix of the root.
    pub identity: Name,
    /// Public key of the certificate, and its trust verdict.
    pub signer: PeerSigner,
    /// Static X25519 key, by which it may be called with less cost.
    pub static_key: [u8; 32],
}

/// A set-up that is refused, with the peer if its key is not trusted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) peer: Option<Box<Peer>>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            peer: None,
        }
    }
}

/// Which peers are admitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission<'a> {
    /// Root of this side, which ends with the component of the application.
    pub(super) own_root: &'a Name,
    pub(super) trust: &'a Trust,
    /// SHA-256 digests of public keys; `None`: whoever `trust` accepts.
    pub(super) authorised: Option<&'a [[u8; 32]]>,
    pub(super) wall: Timestamp,
}

impl Admission<'_> {
    /// Judges who sent `payload` with `static_key` and speaks for `root`.
    ///
    /// # Errors
    /// If the key is not admitted, or has not signed the static key.
    pub(super) fn judge(
        &self,
        root: &Name,
        static_key: [u8; KEY],
        payload: &[u8],
    ) -> Result<Peer, Refused> {
        let (signature, certificate) = read_payload(payload)?;
        let decoded = Certificate::decode(certificate.clone()).map_err(|_| Refusal::Malformed)?;
        let identity = decoded.identity().detached();
        let judge = Judge {
            root: &identity,
            trust: self.trust,
            known: None,
            wall: self.wall,
            is_past: false,
        };
        let (signer, key) = judge.judge(certificate).ok_or(Refusal::Malformed)?;
        let digest = signer.key_digest;
        let is_own_name = self.is_root_of(root, &identity);
        let is_admitted = self.authorised.is_none_or(|keys| keys.contains(&digest));
        let peer = Peer {
            root: root.detached(),
            identity,
            signer,
            static_key,
        };
        let Some(key) = key.filter(|_| is_own_name && is_admitted) else {
            return Err(Refused {
                refusal: Refusal::Untrusted,
                peer: Some(Box::new(peer)),
            });
        };
        let info = SignatureInfo::new(key.signature_type(), None);
        key.verify(&info, &signed(&static_key), &signature)
            .map_err(|_| Refusal::OtherCertificate)?;
        Ok(peer)
    }

    /// Returns whether `root` is that of `identity`: the identity, and exactly the component of the application behind it. So neither
    /// `/` nor `/alice/talk` passes for `/alice`.
    fn is_root_of(&self, root: &Name, identity: &Name) -> bool {
        identity.is_prefix_of(root)
            && root.len() == identity.len() + 1
            && root.last() == self.own_root.last()
    }
}

fn read_payload(payload: &[u8]) -> Result<(Bytes, Data), Refusal> {
    const ORDER: [u32; 2] = [STATIC_SIGNATURE, tlv::DATA];
    let octets = Bytes::copy_from_slice(payload);
    let mut fields = Fields::new(Reader::new(&octets), "payload", &ORDER);
    let (mut signature, mut certificate) = (None, None);
    while let Some(field) = fields.field().map_err(|_| Refusal::Malformed)? {
        if field.element_type == STATIC_SIGNATURE {
            signature = Some(octets.slice(field.value));
        } else {
            let data = Data::decode(octets.slice(field.whole()));
            certificate = Some(data.map_err(|_| Refusal::Malformed)?);
        }
    }
    signature.zip(certificate).ok_or(Refusal::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_an_identity_and_the_application() {
        let name = |text: &str| -> Name { text.parse().unwrap() };
        let own_root = name("/bob/talk");
        let admission = Admission {
            own_root: &own_root,
            trust: &Trust::FirstUse,
            authorised: None,
            wall: Timestamp::from_micros(0),
        };
        for (root, identity, expected) in [
            ("/alice/talk", "/alice", true),
            ("/alice/talk/talk", "/alice/talk", true),
            ("/alice/talk", "/", false),
            ("/alice/talk", "/alice/talk", false),
            ("/alice/home/talk", "/alice", false),
            ("/alice/exchange", "/alice", false),
            ("/alice/talk", "/bob", false),
        ] {
            let found = admission.is_root_of(&name(root), &name(identity));
            assert_eq!(found, expected, "{root} of {identity}");
        }
    }
}
