//! Whose signature counts.

use core::fmt;
use std::sync::Arc;

use namecast_packet::signature::{HmacVerifier, PublicKey};
use namecast_packet::{Certificate, Data, KeyLocator, Name};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::names::KEY;
use namecast_units::Timestamp;

use crate::trust::{self, Judgement, Moment, SharedChains};

/// Whose signature counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The first key that is found under the root; no other after it.
    #[default]
    FirstUse,
    /// The key that was found at an earlier first use: SHA-256 digest of its SubjectPublicKeyInfo.
    Remembered([u8; 32]),
    /// Only what this vouches for.
    Pinned(Pin),
    /// A secret that signer and watcher share: packets carry HMACs made with it, under the certificate's key name.
    Secret([u8; 32]),
    /// Keys by names: those that a schema lets sign each name, under an anchor. All readers with these chains share them.
    Schema(SharedChains),
}

/// What is known of a key beforehand. A name is not enough: anybody can make a key with any name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    /// SHA-256 digest of the public key's SubjectPublicKeyInfo.
    Digest([u8; 32]),
    /// A certificate that is accepted as it is. It vouches for its key, and for each key under its identity that it signed
    /// the certificate of.
    Certificate(Box<Certificate>),
}

/// Who signs the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// Name of the key.
    pub key_name: Name,
    /// SHA-256 digest of the public key, to be compared or pinned.
    pub key_digest: [u8; 32],
    /// Whether its signatures count.
    pub verdict: Verdict,
}

/// What is thought of a signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the pinned key, or certified by it.
    Pinned,
    /// A chain of certificates leads from it to the anchor.
    Certified,
    /// A chain of certificates led from it to the anchor when what is played was recorded, and does not any more.
    CertifiedThen,
    /// It is the key that was remembered at an earlier first use.
    Remembered,
    /// It is the first key seen under the root, which its certificate is signed with.
    FirstUse,
    /// Its signatures do not count.
    Refused(Refusal),
}

/// Why a signer was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Another key is pinned.
    #[error("another key is trusted for this name")]
    OtherKey,
    /// Another key was seen first, now or at an earlier use.
    #[error("it is another key than the one remembered for this name")]
    ChangedKey,
    /// The certificate is not valid at this time.
    #[error("its certificate is not valid now")]
    NotValidNow,
    /// The certificate verifies neither with its own key nor with a pinned one.
    #[error("its certificate is damaged or forged, or signed by somebody who is not trusted")]
    BadCertificate,
    /// What was received is not signed with the certificate's key.
    #[error("what was received is not signed with its key")]
    NotSigner,
    /// The certificate belongs to another name.
    #[error("its certificate belongs to another name")]
    OtherIdentity,
    /// A certificate between it and the anchor is not known, which is called so.
    #[error("the certificate of its issuer, {0}, is missing")]
    MissingIssuer(Name),
    /// No chain leads from its certificate to the anchor.
    #[error("its certificate is refused: {0}")]
    Chain(trust::Refusal),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned => f.write_str("pinned"),
            Self::Certified => f.write_str("certified by the anchor"),
            Self::CertifiedThen => {
                f.write_str("certified by the anchor at the time of the recording")
            }
            Self::Remembered => f.write_str("remembered"),
            Self::FirstUse => f.write_str("trusted on first use"),
            Self::Refused(why) => write!(f, "refused: {why}"),
        }
    }
}

/// The key that counts, once one does.
#[derive(Clone, Debug)]
pub(crate) struct TrustedKey {
    pub key: Arc<PublicKey>,
}

/// Returns the name by which to request the certificate of the key that signed a packet under `root`; `None` if the packet names no key of
/// `root`. By a schema, keys of all names may sign.
pub(crate) fn certificate_of(root: &Name, trust: &Trust, packet: &Data) -> Option<Name> {
    let is_by_schema = matches!(trust, Trust::Schema(_));
    match &packet.signature_info().key_locator {
        Some(KeyLocator::Name(name)) if is_by_schema || root.is_prefix_of(name) && name != root => {
            Some(name.detached())
        }
        Some(KeyLocator::Digest(_)) => Some(certificates(root)),
        _ => None,
    }
}

/// What names of certificates under `root` start with.
pub(crate) fn certificates(root: &Name) -> Name {
    root.builder().generic(KEY).finish()
}

/// Returns what verifies packets of `key`, which counts by `trust` and has the certificate called `certificate`.
pub(crate) fn verifier(trust: &Trust, certificate: &Name, key: Arc<PublicKey>) -> SharedVerifier {
    match trust {
        Trust::Secret(secret) => Arc::new(HmacVerifier::new(secret)),
        Trust::Schema(chains) => Arc::new(chains.verifier(certificate, key)),
        Trust::FirstUse | Trust::Remembered(_) | Trust::Pinned(_) => key,
    }
}

/// What a certificate is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Judge<'a> {
    /// The name that is watched; the certificate must belong to it.
    pub root: &'a Name,
    /// What was configured.
    pub trust: &'a Trust,
    /// The key that counted so far.
    pub known: Option<&'a TrustedKey>,
    /// Time now.
    pub wall: Timestamp,
    /// Whether recordings are wanted, which may be older than the certificate's end.
    pub is_past: bool,
}

impl Judge<'_> {
    /// Judges the certificate in `data`. Returns the signer with its verdict, and the key if it counts; `None` if the
    /// packet is no certificate at all.
    pub(crate) fn judge(&self, data: Data) -> Option<(Signer, Option<Arc<PublicKey>>)> {
        let certificate = Certificate::decode(data).ok()?;
        let key = certificate.public_key().ok()?;
        let verdict = self.verdict(&certificate, &key);
        let counts = !matches!(verdict, Verdict::Refused(_));
        let signer = Signer {
            key_name: certificate.key_name().detached(),
            key_digest: key.digest(),
            verdict,
        };
        Some((signer, counts.then(|| Arc::new(key))))
    }

    fn verdict(&self, certificate: &Certificate, key: &PublicKey) -> Verdict {
        if let Trust::Schema(chains) = self.trust {
            return self.by_chain(chains, certificate);
        }
        if certificate.identity() != *self.root {
            return Verdict::Refused(Refusal::OtherIdentity);
        }
        if !self.is_signed(certificate, key) {
            return Verdict::Refused(Refusal::BadCertificate);
        }
        if !certificate.is_valid_at(self.wall) {
            return Verdict::Refused(Refusal::NotValidNow);
        }
        let is_known = self.known.is_none_or(|known| *known.key == *key);
        match self.trust {
            Trust::FirstUse if is_known => Verdict::FirstUse,
            Trust::FirstUse => Verdict::Refused(Refusal::ChangedKey),
            Trust::Remembered(digest) if *digest == key.digest() => Verdict::Remembered,
            Trust::Remembered(_) => Verdict::Refused(Refusal::ChangedKey),
            Trust::Pinned(pin) if self.vouches(pin, certificate, key) => Verdict::Pinned,
            // Whoever knows the secret is who it is, whatever the certificate says.
            Trust::Secret(_) if is_known => Verdict::Pinned,
            Trust::Pinned(_) | Trust::Secret(_) | Trust::Schema(_) => {
                Verdict::Refused(Refusal::OtherKey)
            }
        }
    }

    /// Judges by a chain to the anchor. Whether the key may sign a name is for [`verifier`] to check, by each name.
    fn by_chain(&self, chains: &SharedChains, certificate: &Certificate) -> Verdict {
        chains.with(|it| it.tell(Moment::Live(self.wall)));
        let moment = match self.is_past {
            true => Moment::Ever,
            false => Moment::Live(self.wall),
        };
        match chains.judge_certificate(certificate.data(), moment) {
            Judgement::Accepted { certificate, .. } => {
                match chains.with(|it| it.counts_now(&certificate)) {
                    true => Verdict::Certified,
                    false => Verdict::CertifiedThen,
                }
            }
            Judgement::Missing(name) => Verdict::Refused(Refusal::MissingIssuer(name)),
            Judgement::Refused(refusal) => Verdict::Refused(Refusal::Chain(refusal)),
        }
    }

    /// Returns whether `certificate` is as the key itself signed it, or the pinned issuer, or is the pinned one.
    fn is_signed(&self, certificate: &Certificate, key: &PublicKey) -> bool {
        let is_pinned = |pinned: &Certificate| *pinned == *certificate;
        let data = certificate.data();
        match self.trust {
            Trust::Pinned(Pin::Certificate(pinned)) if is_pinned(pinned) => true,
            Trust::Pinned(Pin::Certificate(pinned)) if has_issued(pinned, data) => true,
            _ => data.verify(key).is_ok(),
        }
    }

    /// Returns whether `pin` stands for `key`, which `certificate` is of.
    fn vouches(&self, pin: &Pin, certificate: &Certificate, key: &PublicKey) -> bool {
        match pin {
            Pin::Digest(digest) => *digest == key.digest(),
            Pin::Certificate(pinned) => {
                let is_pinned = pinned.public_key().is_ok_and(|pinned| pinned == *key);
                is_pinned
                    || pinned.identity().is_prefix_of(self.root)
                        && pinned.is_valid_at(self.wall)
                        && has_issued(pinned, certificate.data())
            }
        }
    }
}

/// Returns whether `data` is signed with the key that `issuer` certifies.
fn has_issued(issuer: &Certificate, data: &Data) -> bool {
    issuer
        .public_key()
        .is_ok_and(|key| data.verify(&key).is_ok())
}

#[cfg(test)]
#[path = "trust_tests.rs"]
mod tests;
