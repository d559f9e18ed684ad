//! Whose signature counts: what waits for the key that signs, the key, and who was judged last.
//!
//! ```text
//!  metadata ──▶ held ── certificate requested ──▶ judged ──▶ key counts ──▶ signature of what was held verified ──▶ verifier
//!                                                    └ refused: forgotten          └ another's: forgotten
//! ```

use std::sync::Arc;

use namecast_packet::signature::{HmacVerifier, PublicKey};
use namecast_packet::{Data, Name};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::path::{Retry, Uplink};
use namecast_units::{Duration, Instant};

use super::join::Heard;
use crate::discovery::{CERTIFICATE, Refusal, Signer, Trust, TrustedKey, Verdict, certificate};

/// Of a certificate. Once it is given up, the join begins anew.
const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(2),
    max_interests: 4,
};

/// The publisher's key, or how far it was found.
#[derive(Default)]
pub(super) struct Authority {
    /// Metadata that waits for the key that signed it.
    held: Option<(Data, Heard)>,
    /// The certificate that is requested.
    certificate: Option<Name>,
    trusted: Option<TrustedKey>,
    verifier: Option<SharedVerifier>,
    /// The signer judged last, trusted or not.
    signer: Option<Signer>,
}

impl Authority {
    /// Returns what verifies the publisher's packets, once that is known.
    pub(super) const fn verifier(&self) -> Option<&SharedVerifier> {
        self.verifier.as_ref()
    }

    /// Returns the key that counted first.
    pub(super) const fn trusted(&self) -> Option<&TrustedKey> {
        self.trusted.as_ref()
    }

    /// Returns the signer judged last, trusted or not.
    pub(super) const fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// Returns whether metadata waits for its key.
    pub(super) const fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Keeps metadata until the key that signed it is known.
    pub(super) fn hold(&mut self, data: Data, heard: Heard) {
        self.held = Some((data, heard));
    }

    /// Requests the certificate `name`.
    pub(super) fn request(&mut self, now: Instant, name: Name, uplink: &mut Uplink) {
        // A certificate that was refused may be a cache's, not the publisher's.
        let is_refused = |signer: &Signer| matches!(signer.verdict, Verdict::Refused(_));
        let must_be_fresh = self.signer.as_ref().is_some_and(is_refused);
        let certificate = certificate(name.clone(), must_be_fresh, Some(RETRY));
        uplink.want_object(now, certificate);
        self.certificate = Some(name);
    }

    /// Returns whether a certificate is requested.
    pub(super) const fn is_requesting(&self) -> bool {
        self.certificate.is_some()
    }

    /// Returns whether `name` is of the certificate that is requested.
    pub(super) fn has_requested(&self, name: &Name) -> bool {
        let certificate = self.certificate.as_ref();
        certificate.is_some_and(|certificate| certificate.is_prefix_of(name))
    }

    /// Does without the certificate, which did not come. Returns whether no key is trusted, so that what waits for it is of no
    /// use.
    pub(super) fn on_dropped(&mut self) -> bool {
        self.certificate = None;
        self.trusted.is_none()
    }

    /// Records who a certificate is of. Returns the signer if it is another, or judged differently now.
    pub(super) fn on_judged(&mut self, signer: Signer, uplink: &mut Uplink) -> Option<&Signer> {
        self.certificate = None;
        uplink.forget(CERTIFICATE);
        if self.signer.as_ref() == Some(&signer) {
            return None;
        }
        Some(self.signer.insert(signer))
    }

    /// Lets `key` count, if it signed what waited for it. Returns that; or, if it did not sign it, the signer who is refused.
    ///
    /// One of the two is forged then, so a key that is seen for the first time is not kept: the right one could not take its place
    /// any more.
    pub(super) fn accept(
        &mut self,
        key: Arc<PublicKey>,
        trust: &Trust,
    ) -> Result<Option<(Heard, SharedVerifier)>, Option<Signer>> {
        let verifier: SharedVerifier = match trust {
            Trust::Secret(secret) => Arc::new(HmacVerifier::new(secret)),
            Trust::FirstUse | Trust::Remembered(_) | Trust::Pinned(_) => key.clone(),
        };
        let held = self.held.take();
        if let Some((data, _)) = &held
            && data.verify(&*verifier).is_err()
        {
            let refused = self.signer.as_mut().map(|signer| {
                signer.verdict = Verdict::Refused(Refusal::NotSigner);
                signer.clone()
            });
            return Err(refused);
        }
        self.trusted.get_or_insert(TrustedKey { key });
        self.verifier = Some(verifier.clone());
        Ok(held.map(|(_, heard)| (heard, verifier)))
    }

    /// Drops what nobody vouches for.
    pub(super) fn forget(&mut self, uplink: &mut Uplink) {
        self.held = None;
        self.certificate = None;
        uplink.forget(CERTIFICATE);
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::KeyLocator;
    use namecast_packet::signature::{Ed25519Signer, KeyPair};
    use namecast_stream::Metadata;
    use namecast_stream::path::{Budget, Event, LiveConfig, UplinkConfig};

    use super::*;

    fn uplink() -> Uplink {
        let budget = Budget::live(LiveConfig::default());
        Uplink::new(UplinkConfig::default(), budget)
    }

    fn pair(seed: u8) -> Ed25519Signer {
        Ed25519Signer::from_seed([seed; 32], KeyLocator::Name("/demo/KEY/1".parse().unwrap()))
    }

    fn key(seed: u8) -> Arc<PublicKey> {
        Arc::new(pair(seed).public_key())
    }

    fn metadata(seed: u8) -> Data {
        Data::builder("/demo/metadata".parse().unwrap()).sign(&pair(seed))
    }

    fn heard() -> Heard {
        let metadata = Metadata {
            catalogue_name: Name::root(),
            catalogue: None,
            latest: Vec::new(),
            nonce: None,
            taken_over_at: None,
        };
        Heard::new(metadata, Instant::ZERO, None)
    }

    fn signer(verdict: Verdict) -> Signer {
        Signer {
            key_name: "/demo/KEY/1".parse().unwrap(),
            key_digest: [0; 32],
            verdict,
        }
    }

    /// What waits for a key that signed it comes back, and whoever comes later is verified with the key.
    #[test]
    fn a_key_that_signed_what_waited_counts() {
        let mut authority = Authority::default();
        authority.hold(metadata(1), heard());
        assert!(authority.is_holding() && authority.verifier().is_none());
        let accepted = authority.accept(key(1), &Trust::FirstUse);
        assert!(matches!(accepted, Ok(Some(_))));
        assert!(!authority.is_holding());
        let verifier = authority.verifier().unwrap();
        assert!(metadata(1).verify(&**verifier).is_ok());
        assert!(metadata(2).verify(&**verifier).is_err());
    }

    #[test]
    fn a_key_that_did_not_sign_what_waited_is_refused_and_not_kept() {
        let (mut authority, mut uplink) = (Authority::default(), uplink());
        authority.on_judged(signer(Verdict::FirstUse), &mut uplink);
        authority.hold(metadata(2), heard());
        let refused = signer(Verdict::Refused(Refusal::NotSigner));
        let accepted = authority.accept(key(1), &Trust::FirstUse);
        assert_eq!(accepted.err(), Some(Some(refused.clone())));
        assert_eq!(authority.signer(), Some(&refused));
        assert!(authority.trusted().is_none() && authority.verifier().is_none());
    }

    #[test]
    fn a_signer_is_news_once_for_each_verdict() {
        let (mut authority, mut uplink) = (Authority::default(), uplink());
        let first = signer(Verdict::FirstUse);
        assert!(authority.on_judged(first.clone(), &mut uplink).is_some());
        assert!(authority.on_judged(first, &mut uplink).is_none());
        let pinned = signer(Verdict::Pinned);
        assert!(authority.on_judged(pinned, &mut uplink).is_some());
    }

    /// One Interest, which no cache may answer after a refusal; nothing is left of it once it is forgotten.
    #[test]
    fn after_a_refusal_no_cache_may_answer_for_the_certificate() {
        let (mut authority, mut uplink) = (Authority::default(), uplink());
        let name: Name = "/demo/KEY/1".parse().unwrap();
        for verdict in [Verdict::FirstUse, Verdict::Refused(Refusal::BadCertificate)] {
            let is_refused = verdict != Verdict::FirstUse;
            authority.on_judged(signer(verdict), &mut uplink);
            authority.request(Instant::ZERO, name.clone(), &mut uplink);
            assert!(authority.is_requesting() && authority.has_requested(&name));
            let events = core::iter::from_fn(|| uplink.poll_event());
            let fresh: Vec<_> = events
                .filter_map(|event| match event {
                    Event::Interest { interest, .. } => Some(interest.must_be_fresh()),
                    _ => None,
                })
                .collect();
            assert_eq!(fresh, [is_refused]);
            authority.forget(&mut uplink);
            assert!(!authority.is_requesting());
        }
        assert!(authority.on_dropped(), "no key is trusted");
    }
}
