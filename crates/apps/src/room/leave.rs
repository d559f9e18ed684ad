//! Leaving: a member takes itself off the roster.
//!
//! ```text
//!  /<root>/32=leave/<ParametersSha256Digest>   signed with the member's key, whose certificate the KeyLocator names; no parameters
//!  answered by the anchor with empty Data, once the certificate is in no roster any more
//! ```
//!
//! The Interest is about one certificate and no other. So one that is replayed after its sender joined again names a certificate that was replaced,
//! and is refused.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_packet::{Certificate, Data, Interest, KeyLocator, Name, Nonce, Signer};
use namecast_units::{Duration, Instant};

/// Keyword behind the root.
const KEYWORD: &str = "leave";
/// Lifetime of the Interest.
const LIFETIME: Duration = Duration::from_secs(4);
/// Signatures that a host verifies in a second.
const MAX_VERIFIED: u32 = 1_024;
/// Of those, signatures of one certificate's key: a flood in the name of one member leaves room for the others.
const MAX_OF_CERTIFICATE: u32 = 256;

/// Returns the name of requests to leave `root`, without the digest of their parameters.
pub fn leave_name(root: &Name) -> Name {
    root.builder().keyword(KEYWORD).finish()
}

/// Returns the Interest by which the member that `signer` signs for leaves `root`. Its KeyLocator names the certificate whole.
pub fn leave(root: &Name, signer: &dyn Signer, nonce: Nonce) -> Interest {
    let interest = Interest::builder(leave_name(root)).lifetime(LIFETIME);
    interest.sign(nonce, signer, &signer.info())
}

/// Counters of requests to leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaveCounters {
    /// Requests received, those sent again included.
    pub requests: u64,
    /// Of those, held until the member is off the roster.
    pub held: u64,
    /// Of those, answered at once: the member had left already.
    pub repeated: u64,
    /// Of those, refused: the member has another certificate now. Requests replayed after it joined again are among them.
    pub replaced: u64,
    /// Of those, refused: they name no certificate.
    pub malformed: u64,
    /// Of those, refused: the host issued no such certificate.
    pub unknown_certificate: u64,
    /// Of those, refused: not signed with the key of the certificate.
    pub wrong_signature: u64,
    /// Of those, sent back: too many in this second, or too many wait.
    pub dropped_full: u64,
}

/// Verdict on a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The holder of the certificate of this name leaves.
    Leaves(Name),
    /// It is refused.
    Refused,
    /// It comes too often.
    TooOften,
}

/// Checks requests to leave.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    pub(super) counters: LeaveCounters,
    /// Signatures verified since `since`, by certificate.
    verified: BTreeMap<Name, u32>,
    total: u32,
    since: Instant,
}

impl Leaving {
    /// Checks a request by the certificates of the room.
    pub(super) fn check(
        &mut self,
        now: Instant,
        interest: &Interest,
        certificates: &BTreeMap<Name, Data>,
    ) -> Verdict {
        self.counters.requests += 1;
        let locator = interest.signature_info().map(|info| &info.key_locator);
        let Some(Some(KeyLocator::Name(name))) = locator else {
            self.counters.malformed += 1;
            return Verdict::Refused;
        };
        let certificate = certificates.get(name).cloned();
        let key = certificate.and_then(|it| Certificate::decode(it).ok()?.public_key().ok());
        let Some(key) = key else {
            self.counters.unknown_certificate += 1;
            return Verdict::Refused;
        };
        if !self.has_room(now, name) {
            self.counters.dropped_full += 1;
            return Verdict::TooOften;
        }
        if interest.verify(&key).is_err() {
            self.counters.wrong_signature += 1;
            return Verdict::Refused;
        }
        Verdict::Leaves(name.detached())
    }

    /// Counts a signature of this certificate's key. Returns whether it may be verified in this second.
    fn has_room(&mut self, now: Instant, certificate: &Name) -> bool {
        if now.since(self.since) >= Duration::from_secs(1) {
            self.since = now;
            self.total = 0;
            self.verified.clear();
        }
        let of_certificate = self.verified.get(certificate).copied().unwrap_or(0);
        let has_room = self.total < MAX_VERIFIED && of_certificate < MAX_OF_CERTIFICATE;
        if has_room {
            self.total += 1;
            let of_certificate = of_certificate + 1;
            self.verified.insert(certificate.detached(), of_certificate);
        }
        has_room
    }
}

/// An Interest that waits for a roster.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) interest: Interest,
    pub(super) pit_token: Option<Bytes>,
    /// The certificate that leaves; `None`: the roster itself is requested.
    pub(super) leaver: Option<Name>,
    pub(super) expires_at: Instant,
}

#[cfg(test)]
#[path = "leave_tests.rs"]
mod tests;
