//! Who may command: anybody on this machine whose command is whole, recent and new.
//!
//! Commands are signed Interests. The signature proves little, as anybody can make a digest; the time and the nonce
//! keep a recorded command from being played again. As NFD with the trust anchor "any", signatures with keys are not
//! checked: the node knows nobody's keys.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_packet::signature::{DigestVerifier, SignatureType, Verifier, VerifyError};
use namecast_packet::tlv::{self, Reader};
use namecast_packet::{Component, Interest, Name, SignatureInfo};
use namecast_units::{Duration, Timestamp};

/// Components of a command in the old form after its prefix: parameters, time, nonce, signature info, signature value.
const OLD_FORM_COMPONENTS: usize = 5;

/// Why a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// It has no signature.
    #[error("the command is not signed")]
    Unsigned,
    /// Its digest is not that of its octets.
    #[error("the signature is wrong")]
    WrongSignature,
    /// There is no time in its signature, or one too far from now.
    #[error("the time of the signature is missing or too far from now")]
    Time,
    /// There is no nonce in its signature, or one that was used.
    #[error("the nonce of the signature is missing or was used before")]
    Nonce,
}

/// Checks commands, and remembers them.
#[derive(Debug)]
pub(crate) struct Authenticator {
    grace: Duration,
    max_nonces: usize,
    seen: BTreeSet<Bytes>,
    order: VecDeque<Bytes>,
}

/// What protects a command against being played again.
struct Freshness {
    time: Option<Duration>,
    nonce: Option<Bytes>,
}

impl Authenticator {
    /// Takes times within `grace` of now, and remembers `max_nonces` nonces.
    pub(crate) const fn new(grace: Duration, max_nonces: usize) -> Self {
        Self {
            grace,
            max_nonces,
            seen: BTreeSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Checks a command whose module and verb take up `prefix` components of its name.
    ///
    /// # Errors
    /// Why it must not be carried out.
    pub(crate) fn check(
        &mut self,
        now: Timestamp,
        command: &Interest,
        prefix: usize,
    ) -> Result<(), Refusal> {
        let freshness = match command.signature_info() {
            Some(info) => check_signed_interest(command, info)?,
            None => check_old_form(command.name(), prefix)?,
        };
        let time = freshness.time.ok_or(Refusal::Time)?;
        let time = Timestamp::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        if time.since(now).max(now.since(time)) > self.grace {
            return Err(Refusal::Time);
        }
        let nonce = freshness.nonce.ok_or(Refusal::Nonce)?;
        self.remember(nonce)
    }

    fn remember(&mut self, nonce: Bytes) -> Result<(), Refusal> {
        // The nonce may be part of a larger buffer.
        let nonce = Bytes::copy_from_slice(&nonce);
        if !self.seen.insert(nonce.clone()) {
            return Err(Refusal::Nonce);
        }
        self.order.push_back(nonce);
        while self.order.len() > self.max_nonces {
            let oldest = self.order.pop_front().expect("longer than its bound");
            self.seen.remove(&oldest);
        }
        Ok(())
    }
}

fn check_signed_interest(command: &Interest, info: &SignatureInfo) -> Result<Freshness, Refusal> {
    let checked = match info.signature_type {
        SignatureType::DigestSha256 => command.verify(&DigestVerifier),
        _ => command
            .check_parameters_digest()
            .map_err(|_| VerifyError::ParametersDigest),
    };
    checked.map_err(|_| Refusal::WrongSignature)?;
    Ok(Freshness {
        time: info.time,
        nonce: info.nonce.clone(),
    })
}

/// The form that commands had before signed Interests: time (8 octets), nonce (8 octets), SignatureInfo and
/// SignatureValue as the last components of the name; signed are the components before the last.
fn check_old_form(name: &Name, prefix: usize) -> Result<Freshness, Refusal> {
    let components: Vec<_> = name.components().collect();
    let [_, time, nonce, info, value] = components
        .get(prefix..)
        .and_then(|rest| <[Component<'_>; OLD_FORM_COMPONENTS]>::try_from(rest).ok())
        .ok_or(Refusal::Unsigned)?;
    let element = |component: Component<'_>, element_type| {
        let octets = component.value;
        let whole = Reader::new(octets).only("signature", element_type).ok()?;
        Some(Bytes::copy_from_slice(&octets[whole.value]))
    };
    let info = element(info, tlv::SIGNATURE_INFO).ok_or(Refusal::Unsigned)?;
    let value = element(value, tlv::SIGNATURE_VALUE).ok_or(Refusal::Unsigned)?;
    let mut fields = Reader::new(&info);
    let signature_type = fields
        .element("SignatureInfo")
        .ok()
        .flatten()
        .filter(|field| field.element_type == tlv::SIGNATURE_TYPE)
        .and_then(|field| field.number("SignatureType", &info).ok())
        .ok_or(Refusal::Unsigned)?;
    if SignatureType::from(signature_type) == SignatureType::DigestSha256 {
        let info = SignatureInfo::new(SignatureType::DigestSha256, None);
        DigestVerifier
            .verify(&info, name.parent().value(), &value)
            .map_err(|_| Refusal::WrongSignature)?;
    }
    Ok(Freshness {
        time: time.number().map(Duration::from_millis),
        nonce: Some(Bytes::copy_from_slice(nonce.value)),
    })
}
