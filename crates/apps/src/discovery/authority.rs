//! Whose signature counts: what waits for the key that signs, the key, and who was judged last.
//!
//! ```text
//!  metadata ──▶ held ── certificate requested ──▶ judged ──▶ key counts ──▶ signature of what was held verified ──▶ verifier
//!                                                    └ refused: forgotten          └ another's: forgotten
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use namecast_packet::signature::PublicKey;
use namecast_packet::{Data, Name};
use namecast_stream::consumer::SharedVerifier;
use namecast_stream::path::{Request, Retry, Token};
use namecast_units::{Duration, Instant};

use super::{Refusal, Signer, TrustedKey, Verdict, certificate};

/// Of a certificate. Once it is given up, the join begins anew.
const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(2),
    max_interests: 4,
};

/// From a certificate that was refused to the next request for it; doubles.
const REFUSED_WAIT: Duration = Duration::from_secs(1);
/// Longest such time.
const MAX_REFUSED_WAIT: Duration = Duration::from_secs(8);

/// A certificate that was refused.
#[derive(Debug)]
struct Refused {
    name: Name,
    /// Refusals one after the other.
    count: u32,
    at: Instant,
}

/// The publisher's key, or how far it was found.
pub(crate) struct Authority<Heard> {
    /// Token of the certificate request.
    token: Token,
    requests: VecDeque<Request>,
    /// Metadata that waits for the key that signed it.
    held: Option<(Data, Heard)>,
    /// Whether a certificate is requested.
    is_requesting: bool,
    trusted: Option<TrustedKey>,
    verifier: Option<SharedVerifier>,
    /// The signer judged last, trusted or not.
    signer: Option<Signer>,
    /// The certificate refused last, until another one is accepted.
    refused: Option<Refused>,
}

impl<Heard> Authority<Heard> {
    /// Nothing is known; `token` is to request certificates.
    pub(crate) const fn new(token: Token) -> Self {
        Self {
            token,
            requests: VecDeque::new(),
            held: None,
            is_requesting: false,
            trusted: None,
            verifier: None,
            signer: None,
            refused: None,
        }
    }

    /// Returns the next thing to request or to withdraw, until `None`.
    pub(crate) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Returns the token of the certificate request.
    pub(crate) const fn token(&self) -> Token {
        self.token
    }

    /// Returns what verifies the publisher's packets, once that is known.
    pub(crate) const fn verifier(&self) -> Option<&SharedVerifier> {
        self.verifier.as_ref()
    }

    /// Returns the key that counted first.
    pub(crate) const fn trusted(&self) -> Option<&TrustedKey> {
        self.trusted.as_ref()
    }

    /// Returns the signer judged last, trusted or not.
    pub(crate) const fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// Returns whether metadata waits for its key.
    pub(crate) const fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Keeps metadata until the key that signed it is known.
    pub(crate) fn hold(&mut self, data: Data, heard: Heard) {
        self.held = Some((data, heard));
    }

    /// Records that the certificate `name` was refused.
    pub(crate) fn on_refused(&mut self, now: Instant, name: &Name) {
        let before = self.refused.take().filter(|it| it.name == *name);
        self.refused = Some(Refused {
            name: name.detached(),
            count: before.map_or(0, |it| it.count.saturating_add(1)),
            at: now,
        });
    }

    /// Returns whether the certificate `name` may be requested now. Each refusal doubles the wait, as a revoked
    /// signer keeps publishing and each of its packets names the certificate.
    pub(crate) fn may_request(&self, now: Instant, name: &Name) -> bool {
        let same = self
            .refused
            .as_ref()
            .filter(|it| name.is_prefix_of(&it.name));
        same.is_none_or(|refused| {
            let wait = REFUSED_WAIT * (1 << refused.count.min(8));
            now >= refused.at + wait.min(MAX_REFUSED_WAIT)
        })
    }

    /// Requests the certificate `name`.
    pub(crate) fn request(&mut self, name: Name) {
        // A certificate that was refused may be a cache's, not the publisher's.
        let is_refused = |signer: &Signer| matches!(signer.verdict, Verdict::Refused(_));
        let must_be_fresh = self.signer.as_ref().is_some_and(is_refused);
        let certificate = certificate(self.token, name, must_be_fresh, Some(RETRY));
        self.requests.push_back(Request::Object(certificate));
        self.is_requesting = true;
    }

    /// Returns whether a certificate is requested.
    pub(crate) const fn is_requesting(&self) -> bool {
        self.is_requesting
    }

    /// The Data that came is no certificate: it is requested again at once, past all caches.
    pub(crate) fn reject(&mut self, now: Instant) {
        self.requests.push_back(Request::Reject(self.token));
        self.requests.push_back(Request::Hasten(self.token, now));
    }

    /// Does without the certificate, which did not come. Returns whether no key is trusted, so that what waits for it is of no
    /// use.
    pub(crate) fn on_dropped(&mut self) -> bool {
        self.is_requesting = false;
        self.trusted.is_none()
    }

    /// Records who a certificate is of. Returns the signer if it is another, or judged differently now.
    pub(crate) fn on_judged(&mut self, signer: Signer) -> Option<&Signer> {
        self.is_requesting = false;
        self.requests.push_back(Request::Forget(self.token));
        if self.signer.as_ref() == Some(&signer) {
            return None;
        }
        Some(self.signer.insert(signer))
    }

    /// Lets `key` count, if it signed what waited for it, as `verifier` finds. Returns that; or, if it did not sign it, the signer who is refused.
    ///
    /// One of the two is forged then, so a key that is seen for the first time is not kept: the right one could not take its place
    /// any more.
    pub(crate) fn accept(
        &mut self,
        key: Arc<PublicKey>,
        verifier: SharedVerifier,
    ) -> Result<Option<(Heard, SharedVerifier)>, Option<Signer>> {
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
        self.refused = None;
        self.trusted.get_or_insert(TrustedKey { key });
        self.verifier = Some(verifier.clone());
        Ok(held.map(|(_, heard)| (heard, verifier)))
    }

    /// Returns whether the signer counts for what was recorded, and not for what is live.
    pub(crate) fn is_of_the_past(&self) -> bool {
        let signer = self.signer.as_ref();
        let counted_then = signer.is_some_and(|it| it.verdict == Verdict::CertifiedThen);
        counted_then && self.verifier.is_some()
    }

    /// Forgets whose signature counts: its certificate is judged anew.
    pub(crate) fn reset(&mut self) {
        self.trusted = None;
        self.verifier = None;
        self.forget();
    }

    /// Drops what nobody vouches for.
    pub(crate) fn forget(&mut self) {
        self.held = None;
        self.is_requesting = false;
        self.requests.push_back(Request::Forget(self.token));
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::KeyLocator;
    use namecast_packet::signature::{Ed25519Signer, KeyPair};

    use super::*;
    use crate::fixtures::client;

    fn authority() -> Authority<()> {
        Authority::new(client().object(0))
    }

    fn pair(seed: u8) -> Ed25519Signer {
        Ed25519Signer::from_seed([seed; 32], KeyLocator::Name("/demo/KEY/1".parse().unwrap()))
    }

    fn key(seed: u8) -> Arc<PublicKey> {
        Arc::new(pair(seed).public_key())
    }

    /// Requests 1, 2, 4, 8 and 8 s after refusals of one certificate. Another one, or a newer version of it, is requested at once.
    #[test]
    fn a_refused_certificate_is_requested_ever_more_seldom() {
        let mut authority = authority();
        let name: Name = "/demo/KEY/1/fox/v=1".parse().unwrap();
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        assert!(authority.may_request(at(0), &name));
        let mut now = 0;
        for wait in [1, 2, 4, 8, 8] {
            authority.on_refused(at(now), &name);
            assert!(!authority.may_request(
                at(now) + (Duration::from_secs(wait) - Duration::from_nanos(1)),
                &name
            ));
            assert!(authority.may_request(at(now + wait), &name));
            now += wait;
        }
        authority.on_refused(at(now), &name);
        assert!(!authority.may_request(at(now), &name.parent()));
        let newer = "/demo/KEY/1/fox/v=2".parse().unwrap();
        assert!(authority.may_request(at(now), &newer));
        assert!(authority.accept(key(1), key(1)).is_ok());
        assert!(authority.may_request(at(now), &name));
    }

    fn metadata(seed: u8) -> Data {
        Data::builder("/demo/metadata".parse().unwrap()).sign(&pair(seed))
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
        let mut authority = authority();
        authority.hold(metadata(1), ());
        assert!(authority.is_holding() && authority.verifier().is_none());
        let accepted = authority.accept(key(1), key(1));
        assert!(matches!(accepted, Ok(Some(_))));
        assert!(!authority.is_holding());
        let verifier = authority.verifier().unwrap();
        assert!(metadata(1).verify(&**verifier).is_ok());
        assert!(metadata(2).verify(&**verifier).is_err());
    }

    #[test]
    fn a_key_that_did_not_sign_what_waited_is_refused_and_not_kept() {
        let mut authority = authority();
        authority.on_judged(signer(Verdict::FirstUse));
        authority.hold(metadata(2), ());
        let refused = signer(Verdict::Refused(Refusal::NotSigner));
        let accepted = authority.accept(key(1), key(1));
        assert_eq!(accepted.err(), Some(Some(refused.clone())));
        assert_eq!(authority.signer(), Some(&refused));
        assert!(authority.trusted().is_none() && authority.verifier().is_none());
    }

    #[test]
    fn a_signer_is_news_once_for_each_verdict() {
        let mut authority = authority();
        let first = signer(Verdict::FirstUse);
        assert!(authority.on_judged(first.clone()).is_some());
        assert!(authority.on_judged(first).is_none());
        let pinned = signer(Verdict::Pinned);
        assert!(authority.on_judged(pinned).is_some());
    }

    /// One Interest, which no cache may answer after a refusal; nothing is left of it once it is forgotten.
    #[test]
    fn after_a_refusal_no_cache_may_answer_for_the_certificate() {
        let mut authority = authority();
        let name: Name = "/demo/KEY/1".parse().unwrap();
        for verdict in [Verdict::FirstUse, Verdict::Refused(Refusal::BadCertificate)] {
            let is_refused = verdict != Verdict::FirstUse;
            authority.on_judged(signer(verdict));
            authority.request(name.clone());
            assert!(authority.is_requesting());
            let requests = core::iter::from_fn(|| authority.poll_request());
            let fresh: Vec<_> = requests
                .filter_map(|request| match request {
                    Request::Object(object) => {
                        let interest = object.interest.build(1.into());
                        assert_eq!(*interest.name(), name);
                        Some(interest.must_be_fresh())
                    }
                    _ => None,
                })
                .collect();
            assert_eq!(fresh, [is_refused]);
            authority.forget();
            assert!(!authority.is_requesting());
            let forgotten = authority.poll_request();
            assert!(
                matches!(forgotten, Some(Request::Forget(token)) if token == authority.token())
            );
        }
        assert!(authority.on_dropped(), "no key is trusted");
    }
}
