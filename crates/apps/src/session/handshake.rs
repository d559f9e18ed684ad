//! The packets by which a call is set up: who is there, with which ephemeral key, and who has shown that it has the session's keys.

use std::sync::Arc;

use bytes::Bytes;
use namecast_packet::tlv::{self, Fields, Reader, Writer};
use namecast_packet::{Certificate, Data, Interest, Name, Nonce, PublicKey, Signer};
use namecast_units::{Duration, Timestamp};
use x25519_dalek::StaticSecret;

use super::keys::{SessionKeys, transcript};
use super::names::{self, CallId};
use crate::discovery::{Judge, Signer as PeerSigner, Trust};

/// Elements of parameters and contents: all critical.
const EPHEMERAL_KEY: u32 = 129;
const PROOF: u32 = 131;
const TRANSCRIPT: u32 = 133;

/// Who one is.
pub(super) struct Own {
    pub(super) root: Name,
    pub(super) signer: Box<dyn Signer + Send>,
    pub(super) certificate: Data,
}

/// Who is at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What names of its packets start with.
    pub root: Name,
    /// Whose key it is: a prefix of the root.
    pub identity: Name,
    /// The key, and what is thought of it.
    pub signer: PeerSigner,
}

/// Why a packet of a set-up does not count.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It breaks the format.
    Malformed,
    /// It is not signed as it says, or the keys are not shown.
    Forged,
    /// It is signed by somebody who does not count.
    Untrusted(Box<Peer>),
}

/// Which peers count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission<'a> {
    pub(super) trust: &'a Trust,
    /// The root that peers must have; `None`: any.
    pub(super) root: Option<&'a Name>,
    /// SHA-256 digests of public keys; `None`: whoever `trust` accepts.
    pub(super) authorised: Option<&'a [[u8; 32]]>,
    pub(super) wall: Timestamp,
}

impl Admission<'_> {
    /// Judges who has `certificate` and speaks for `root`.
    fn judge(&self, root: &Name, certificate: Data) -> Result<(Peer, Arc<PublicKey>), Refused> {
        let decoded = Certificate::decode(certificate.clone()).map_err(|_| Refused::Malformed)?;
        let identity = decoded.identity().detached();
        let judge = Judge {
            root: &identity,
            trust: self.trust,
            known: None,
            wall: self.wall,
        };
        let (signer, key) = judge.judge(certificate).ok_or(Refused::Malformed)?;
        let digest = signer.key_digest;
        let is_own_name = identity.is_prefix_of(root);
        let is_meant = self.root.is_none_or(|meant| meant == root);
        let is_admitted = is_meant && self.authorised.is_none_or(|keys| keys.contains(&digest));
        let peer = Peer {
            root: root.detached(),
            identity,
            signer,
        };
        match key.filter(|_| is_own_name && is_admitted) {
            Some(key) => Ok((peer, key)),
            None => Err(Refused::Untrusted(Box::new(peer))),
        }
    }
}

/// Signs the Interest that calls `callee`. Sent again, it must be the same but for its Nonce.
pub(super) fn call(
    own: &Own,
    callee: &Name,
    secret: &StaticSecret,
    lifetime: Duration,
    nonce: [u8; 8],
) -> Interest {
    let mut parameters = Writer::default();
    parameters.element(
        EPHEMERAL_KEY,
        x25519_dalek::PublicKey::from(secret).as_bytes(),
    );
    parameters.raw(own.certificate.wire());
    let mut info = own.signer.info();
    info.nonce = Some(Bytes::copy_from_slice(&nonce));
    Interest::builder(names::call(callee, &own.root))
        .parameters(parameters.finish())
        .lifetime(lifetime)
        .sign(
            Nonce([nonce[0], nonce[1], nonce[2], nonce[3]]),
            &*own.signer,
            &info,
        )
}

/// A call that came, read and not judged.
pub(super) struct Invitation {
    pub(super) caller: Name,
    pub(super) interest: Interest,
    fields: Read,
}

/// The identifier of a call: the beginning of the digest of its parameters and signature.
pub(super) fn call_id(interest: &Interest) -> Option<CallId> {
    let digest = interest.name().last()?.value;
    digest.get(..8)?.try_into().ok().map(CallId)
}

impl Invitation {
    /// # Errors
    /// If it is no call to `callee`.
    pub(super) fn read(callee: &Name, interest: Interest) -> Result<Self, Refused> {
        let caller = names::caller(callee, interest.name()).ok_or(Refused::Malformed)?;
        let parameters = interest.parameters().ok_or(Refused::Malformed)?;
        Ok(Self {
            caller,
            fields: Read::of(parameters)?,
            interest,
        })
    }

    /// Checks who calls.
    ///
    /// # Errors
    /// If it is not the one it says, or does not count.
    pub(super) fn check(
        &self,
        admission: &Admission<'_>,
    ) -> Result<(Peer, Arc<PublicKey>), Refused> {
        let certificate = self.fields.certificate.clone().ok_or(Refused::Malformed)?;
        let (peer, key) = admission.judge(&self.caller, certificate)?;
        self.interest.verify(&*key).map_err(|_| Refused::Forged)?;
        Ok((peer, key))
    }

    /// Derives the session's keys, and signs the answer.
    ///
    /// # Errors
    /// If the caller's ephemeral key is none.
    pub(super) fn answer(
        &self,
        own: &Own,
        secret: &StaticSecret,
    ) -> Result<(Data, SessionKeys), Refused> {
        let public = x25519_dalek::PublicKey::from(secret).to_bytes();
        let caller_key = self.fields.key.ok_or(Refused::Malformed)?;
        let said = said(&self.interest, &public, &own.certificate);
        let keys = SessionKeys::derive(secret, caller_key, said).ok_or(Refused::Forged)?;
        let mut content = Writer::default();
        content.element(EPHEMERAL_KEY, &public);
        content.element(PROOF, &keys.prove(false));
        content.raw(own.certificate.wire());
        let data = Data::builder(self.interest.name().clone());
        let data = data.content(content.finish()).sign(&*own.signer);
        Ok((data, keys))
    }
}

/// What binds a session: both names, both certificates and both ephemeral keys, the caller's by the digest that ends the name.
fn said(interest: &Interest, callee_key: &[u8; 32], callee_certificate: &Data) -> [u8; 32] {
    let name = interest.name().value();
    transcript([&name[..], callee_key, &callee_certificate.wire()[..]])
}

/// Reads the callee's answer to `interest`: who it is, and the session's keys, which it has shown to have.
///
/// # Errors
/// If it is not the callee's, or does not count.
pub(super) fn read_answer(
    callee: &Name,
    (interest, secret): (&Interest, &StaticSecret),
    data: &Data,
    admission: &Admission<'_>,
) -> Result<(Peer, SessionKeys, Arc<PublicKey>), Refused> {
    let fields = Read::of(data.content().unwrap_or_default())?;
    let certificate = fields.certificate.ok_or(Refused::Malformed)?;
    let (peer, key) = admission.judge(callee, certificate.clone())?;
    data.verify(&*key).map_err(|_| Refused::Forged)?;
    let callee_key = fields.key.ok_or(Refused::Malformed)?;
    let said = said(interest, &callee_key, &certificate);
    let keys = SessionKeys::derive(secret, callee_key, said).ok_or(Refused::Forged)?;
    let proof = keys.check_proof(false, &fields.proof);
    proof.map_err(|_| Refused::Forged)?;
    Ok((peer, keys, key))
}

/// Signs what the caller shows last: all that was said, and that it has the keys.
pub(super) fn confirm(own: &Own, name: Name, keys: &SessionKeys) -> Data {
    let mut content = Writer::default();
    content.element(PROOF, &keys.prove(true));
    content.element(TRANSCRIPT, keys.transcript());
    Data::builder(name)
        .content(content.finish())
        .sign(&*own.signer)
}

/// Checks what the caller shows last.
///
/// # Errors
/// If it is not the caller's, of this very call.
pub(super) fn check_confirmation(
    data: &Data,
    key: &PublicKey,
    keys: &SessionKeys,
) -> Result<(), Refused> {
    let fields = Read::of(data.content().unwrap_or_default())?;
    data.verify(key).map_err(|_| Refused::Forged)?;
    let is_of_call = fields.transcript.as_deref() == Some(&keys.transcript()[..]);
    let proof = keys.check_proof(true, &fields.proof);
    proof.ok().filter(|()| is_of_call).ok_or(Refused::Forged)
}

/// The elements of parameters and contents that are there.
#[derive(Default)]
struct Read {
    key: Option<[u8; 32]>,
    proof: Bytes,
    transcript: Option<Bytes>,
    certificate: Option<Data>,
}

impl Read {
    fn of(octets: Bytes) -> Result<Self, Refused> {
        const ORDER: [u32; 4] = [EPHEMERAL_KEY, PROOF, TRANSCRIPT, tlv::DATA];
        let mut read = Self::default();
        let mut fields = Fields::new(Reader::new(&octets), "call", &ORDER);
        while let Some(field) = fields.field().map_err(|_| Refused::Malformed)? {
            match field.element_type {
                EPHEMERAL_KEY => {
                    let key = octets[field.value].try_into();
                    read.key = Some(key.map_err(|_| Refused::Malformed)?);
                }
                PROOF => read.proof = octets.slice(field.value),
                TRANSCRIPT => read.transcript = Some(octets.slice(field.value)),
                _ => {
                    let certificate = Data::decode(octets.slice(field.whole()));
                    read.certificate = Some(certificate.map_err(|_| Refused::Malformed)?);
                }
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::KeyLocator;
    use namecast_packet::signature::{Ed25519Signer, KeyPair};

    use super::super::keys::Secrets;
    use super::*;

    /// Whoever has the caller's key and heard everything, but has no ephemeral secret, shows nothing.
    #[test]
    fn a_signature_without_the_keys_confirms_nothing() {
        let [caller, callee] = [1, 2].map(|seed| Secrets::new([seed; 32]).draw());
        let public = x25519_dalek::PublicKey::from(&callee).to_bytes();
        let keys = SessionKeys::derive(&caller, public, [7; 32]).unwrap();
        let signer = Ed25519Signer::from_seed([3; 32], KeyLocator::Name(Name::root()));
        let key = signer.public_key();
        let confirmed = |elements: &[(u32, &[u8])]| {
            let mut content = Writer::default();
            for (kind, value) in elements {
                content.element(*kind, value);
            }
            let data = Data::builder("/a/32=confirm".parse().unwrap());
            let data = data.content(content.finish()).sign(&signer);
            check_confirmation(&data, &key, &keys)
        };
        let (proof, said) = (keys.prove(true), *keys.transcript());
        assert_eq!(confirmed(&[(PROOF, &proof), (TRANSCRIPT, &said)]), Ok(()));
        for wrong in [
            &[(TRANSCRIPT, &said[..])][..],
            &[(PROOF, &keys.prove(false)), (TRANSCRIPT, &said)],
            &[(PROOF, &proof)],
            &[(PROOF, &proof), (TRANSCRIPT, &[7; 31])],
        ] {
            assert_eq!(confirmed(wrong), Err(Refused::Forged), "{wrong:?}");
        }
    }
}
