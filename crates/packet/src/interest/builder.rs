//! Putting Interests together.

use core::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{Interest, InterestTemplate, Nonce, name_without_digest};
use crate::error::DecodeError;
use crate::name::{Component, Name};
use crate::signature::{SignatureInfo, Signer};
use crate::tlv::{self, Writer};

/// Puts an [`Interest`] together.
#[derive(Clone, Debug)]
pub struct InterestBuilder {
    pub(super) name: Name,
    can_be_prefix: bool,
    must_be_fresh: bool,
    forwarding_hint: Vec<Name>,
    lifetime: Option<Duration>,
    hop_limit: Option<u8>,
    parameters: Option<Bytes>,
}

impl InterestBuilder {
    pub(super) const fn new(name: Name) -> Self {
        Self {
            name,
            can_be_prefix: false,
            must_be_fresh: false,
            forwarding_hint: Vec::new(),
            lifetime: None,
            hop_limit: None,
            parameters: None,
        }
    }

    /// Lets Data with a longer name answer.
    pub const fn can_be_prefix(mut self) -> Self {
        self.can_be_prefix = true;
        self
    }

    /// Lets caches answer with fresh Data only.
    pub const fn must_be_fresh(mut self) -> Self {
        self.must_be_fresh = true;
        self
    }

    /// Adds a name whose routes to follow instead of the Interest's own.
    pub fn forwarding_hint(mut self, delegation: Name) -> Self {
        self.forwarding_hint.push(delegation);
        self
    }

    /// How long the Interest stays pending (whole milliseconds).
    pub const fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// How many nodes may receive the Interest.
    pub const fn hop_limit(mut self, hops: u8) -> Self {
        self.hop_limit = Some(hops);
        self
    }

    /// Sets ApplicationParameters; their digest becomes the name's last component.
    pub fn parameters(mut self, parameters: impl Into<Bytes>) -> Self {
        self.parameters = Some(parameters.into());
        self
    }

    /// Makes the name a prefix, to which each Interest of a series adds a number as a component of type `kind`.
    ///
    /// # Panics
    /// If there are parameters, or `kind` is a digest's or 0.
    pub fn template(self, kind: u16) -> InterestTemplate {
        assert!(
            self.parameters.is_none(),
            "a template has no parameters, as their digest would end the name"
        );
        assert!(
            kind > Component::PARAMETERS_DIGEST,
            "digests are not numbers"
        );
        InterestTemplate::new(&self, kind)
    }

    /// Encodes the Interest for one transmission. A parameters digest in the name is taken out, and put in anew if there
    /// are parameters.
    ///
    /// # Panics
    /// If the name is empty. For names from the network there is [`try_build`](Self::try_build).
    pub fn build(self, nonce: Nonce) -> Interest {
        self.try_build(nonce)
            .expect("only an Interest for the empty name is invalid")
    }

    /// Encodes the Interest for one transmission, as [`build`](Self::build) does.
    ///
    /// # Errors
    /// If the name is empty.
    pub fn try_build(self, nonce: Nonce) -> Result<Interest, DecodeError> {
        let mut tail = Writer::default();
        if let Some(parameters) = &self.parameters {
            tail.element(tlv::APPLICATION_PARAMETERS, parameters);
        }
        self.finish(nonce, &tail)
    }

    /// Signs the Interest with `signer` and encodes it. `info` is the signer's, to which the caller has added what
    /// protects against replay: SignatureNonce, SignatureTime or SignatureSeqNum.
    pub fn sign(mut self, nonce: Nonce, signer: &dyn Signer, info: &SignatureInfo) -> Interest {
        self.name = name_without_digest(&self.name);
        let parameters = self.parameters.get_or_insert_with(Bytes::new);
        let mut tail = Writer::default();
        tail.element(tlv::APPLICATION_PARAMETERS, parameters);
        info.encode(tlv::INTEREST_SIGNATURE_INFO, &mut tail);
        let mut portion = self.name.value().to_vec();
        portion.extend_from_slice(tail.as_slice());
        tail.element(tlv::INTEREST_SIGNATURE_VALUE, &signer.sign(&portion));
        self.finish(nonce, &tail)
            .expect("a signed Interest's name holds at least the digest")
    }

    /// Encodes the Interest; `tail` holds everything from ApplicationParameters on.
    fn finish(self, nonce: Nonce, tail: &Writer) -> Result<Interest, DecodeError> {
        let mut name = name_without_digest(&self.name);
        if !tail.is_empty() {
            name = name.child(Component {
                kind: Component::PARAMETERS_DIGEST,
                value: &Sha256::digest(tail.as_slice()),
            });
        }
        let mut wire = Writer::with_capacity(name.value().len() + tail.len() + 40);
        wire.nested(tlv::INTEREST, |body| {
            name.encode(body);
            if self.can_be_prefix {
                body.element(tlv::CAN_BE_PREFIX, &[]);
            }
            if self.must_be_fresh {
                body.element(tlv::MUST_BE_FRESH, &[]);
            }
            if !self.forwarding_hint.is_empty() {
                body.nested(tlv::FORWARDING_HINT, |hint| {
                    self.forwarding_hint
                        .iter()
                        .for_each(|name| name.encode(hint));
                });
            }
            body.element(tlv::NONCE, &nonce.0);
            if let Some(lifetime) = self.lifetime.filter(|&l| l != Interest::DEFAULT_LIFETIME) {
                let millis = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
                body.number(tlv::INTEREST_LIFETIME, millis);
            }
            if let Some(hops) = self.hop_limit {
                body.element(tlv::HOP_LIMIT, &[hops]);
            }
            body.raw(tail.as_slice());
        });
        Interest::decode(wire.finish())
    }
}
