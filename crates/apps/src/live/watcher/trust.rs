//! Whose signature counts.

use std::sync::Arc;

use namecast_packet::signature::PublicKey;
use namecast_packet::{Certificate, Data, KeyLocator, Name};
use namecast_stream::names::KEY;
use namecast_units::Timestamp;

use super::config::{Pin, Trust};
use super::output::{Refusal, Signer, Verdict};

/// The key that counts, once one does.
#[derive(Clone, Debug)]
pub(crate) struct TrustedKey {
    pub key: Arc<PublicKey>,
}

/// What to ask for, to have the certificate of the key that a packet under `root` names; `None` if it names none of `root`.
pub(crate) fn certificate_of(root: &Name, packet: &Data) -> Option<Name> {
    match &packet.signature_info().key_locator {
        Some(KeyLocator::Name(name)) if root.is_prefix_of(name) && name != root => {
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
}

impl Judge<'_> {
    /// Judges the certificate in `data`. Gives the signer with its verdict, and the key if it counts; `None` if the
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
        if certificate.identity() != *self.root {
            return Verdict::Refused(Refusal::OtherIdentity);
        }
        if certificate.data().verify(key).is_err() {
            return Verdict::Refused(Refusal::BadCertificate);
        }
        if !certificate.is_valid_at(self.wall) {
            return Verdict::Refused(Refusal::NotValidNow);
        }
        if self.known.is_some_and(|known| *known.key != *key) {
            return Verdict::Refused(Refusal::OtherKey);
        }
        match self.trust {
            Trust::FirstUse => Verdict::FirstUse,
            Trust::Pinned(Pin::Digest(digest)) if *digest == key.digest() => Verdict::Pinned,
            Trust::Pinned(Pin::Name(name)) if name.is_prefix_of(certificate.name()) => {
                Verdict::Pinned
            }
            Trust::Pinned(_) => Verdict::Refused(Refusal::OtherKey),
            // Whoever knows the secret is who it is, whatever the certificate says.
            Trust::Secret(_) => Verdict::Pinned,
        }
    }
}
