//! What a publisher has under its root, and who signs it: metadata, certificate and catalogue, requested and judged.

mod authority;
mod catalogue;
mod probes;
mod recorded;
mod trust;

use namecast_packet::{Interest, Name};
use namecast_stream::StreamNames;
use namecast_stream::path::{Object, Retry, Token};

pub(crate) use authority::Authority;
pub(crate) use catalogue::{CatalogueFetcher, Progress};
pub(crate) use probes::{PROBE_SPACING, Probes, SentProbes};
pub(crate) use recorded::recorded_verifier;
pub(crate) use trust::{Judge, TrustedKey, certificate_of, certificates, verifier};
pub use trust::{Pin, Refusal, Signer, Trust, Verdict};

/// A request for metadata as it is now. Whoever wants to know how that changes requests it again.
pub(crate) fn metadata(token: Token, names: &StreamNames) -> Object {
    let interest = Interest::builder(names.metadata());
    let interest = interest.can_be_prefix().must_be_fresh();
    Object::new(token, interest, None)
}

/// A request for the certificate `name`.
pub(crate) fn certificate(
    token: Token,
    name: Name,
    must_be_fresh: bool,
    retry: Option<Retry>,
) -> Object {
    let interest = Interest::builder(name).can_be_prefix();
    let interest = match must_be_fresh {
        true => interest.must_be_fresh(),
        false => interest,
    };
    Object::new(token, interest, retry)
}
