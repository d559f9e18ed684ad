//! Who signs an object, and whether that counts.

use namecast_packet::{Component, Data, KeyLocator, Name};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::names::KEY;
use namecast_units::Instant;

use super::config::{Failure, FetcherConfig};
use crate::discovery::{Judge, Signer, Trust, certificate_of, verifier};

/// A signer that counts.
#[derive(Clone)]
pub(in crate::object) struct KnownSigner {
    pub signer: Signer,
    verifier: SharedVerifier,
}

/// A certificate that is needed.
#[derive(Debug)]
pub(super) struct Missing {
    /// What its name starts with.
    pub name: Name,
    /// Whose it must be.
    identity: Name,
    /// The packet that is to be verified with it.
    held: Data,
}

/// Why a certificate does not do.
pub(super) enum Unfit {
    /// The packet is no certificate.
    NoCertificate,
    /// Its key does not count, or did not sign the packet.
    Refused(Failure),
}

impl Missing {
    /// The certificate that `held` names, if it belongs to a prefix of `object`.
    pub(super) fn of(object: &Name, trust: &Trust, held: Data) -> Option<Self> {
        let identity = identity_of(&held).filter(|identity| identity.is_prefix_of(object))?;
        let name = certificate_of(&identity, trust, &held)?;
        Some(Self {
            name,
            identity,
            held,
        })
    }

    /// Judges `certificate`, and verifies with it the packet that needs it. Returns the signer and that packet.
    pub(super) fn judge(
        &self,
        now: Instant,
        config: &FetcherConfig,
        certificate: Data,
    ) -> Result<(KnownSigner, Data), Unfit> {
        let judge = Judge {
            root: &self.identity,
            trust: &config.trust,
            known: None,
            wall: config.wall_at_zero + now.since(Instant::ZERO),
            is_past: false,
        };
        let name = certificate.name().clone();
        let (signer, key) = judge.judge(certificate).ok_or(Unfit::NoCertificate)?;
        let Some(key) = key else {
            return Err(Unfit::Refused(Failure::NotAccepted(signer)));
        };
        let verifier = verifier(&config.trust, &name, key);
        let known = KnownSigner { signer, verifier };
        match known.has_signed(&self.held) {
            true => Ok((known, self.held.clone())),
            // One of the two is forged.
            false => Err(Unfit::Refused(Failure::BadSignature)),
        }
    }
}

impl KnownSigner {
    /// Whether the signature of `data` is this signer's.
    pub(in crate::object) fn has_signed(&self, data: &Data) -> bool {
        data.verify(&*self.verifier).is_ok()
    }

    /// Whether its key belongs to a prefix of `name`.
    pub(in crate::object) fn may_sign(&self, name: &Name) -> bool {
        let key = &self.signer.key_name;
        let identity = key.len().checked_sub(2).map(|length| key.prefix(length));
        identity.is_some_and(|identity| identity.is_prefix_of(name))
    }
}

/// Whose key `data` names: what stands before `KEY`, in a key's name or in a certificate's.
fn identity_of(data: &Data) -> Option<Name> {
    let Some(KeyLocator::Name(locator)) = data.signature_info().key_locator else {
        return None;
    };
    let places = [2, 4].map(|from_end| locator.len().checked_sub(from_end));
    let mut places = places.into_iter().flatten();
    let at = places.find(|at| locator.get(*at) == Some(Component::generic(KEY)))?;
    Some(locator.prefix(at))
}
