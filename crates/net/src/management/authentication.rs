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

#[cfg(test)]
mod tests {
    use super::*;

    /// Time in the signatures below: 1 700 000 000 s after 1970.
    const SIGNED_AT: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
    const GRACE: Duration = Duration::from_secs(120);
    /// `rib/register` as NDNts sends it.
    const NDNTS: &str = "05a8076308096c6f63616c686f737408036e66640803726962080872656769737465720820681e070d0804636f6e660805616c6963656f01416a01006c01026d0400124f8002209074cf2b79bbccb81f2d8a931be140afb738d351f363c1d6e89ab38787e8781f0a04a1b2c3d424002c171b01002608010203040506070828080000018bcfe568002e2004ba83f803b1b1870a57e96b8e21ec4da9ab2a2839752885956584dab7b0ddbb";
    /// `rib/register` as python-ndn sends it.
    const PYTHON: &str = "059d075408096c6f63616c686f737408036e66640803726962080872656769737465720811680f070d0804636f6e660805616c6963650220673fedbdd30843c10a2528af928e1e4cc627cb682ac9524c960b939af95ebc100a04a1b2c3d40c0203e824002c171b01002608010203040506070828080000018bcfe568002e20de203ef4fdc9d688d440301a868104ac8818ff68a61723427b2c99cb7bc81696";
    /// The same in the old form.
    const OLD_FORM: &str = "057d077108096c6f63616c686f737408036e66640803726962080872656769737465720811680f070d0804636f6e660805616c69636508080000018bcfe5680008080102030405060708080516031b01000822172030e138d88e9dbcc6a8028bdcb66bf233d8920ad3da5ca1df0189476005c8ef440a04a1b2c3d40c0203e8";

    fn interest(hex: &str) -> Interest {
        let octets: Vec<_> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        Interest::decode(octets.into()).unwrap()
    }

    fn check(now: Timestamp, hex: &str) -> Result<(), Refusal> {
        Authenticator::new(GRACE, 10).check(now, &interest(hex), 4)
    }

    #[test]
    fn commands_of_other_clients_pass() {
        for command in [NDNTS, PYTHON, OLD_FORM] {
            assert_eq!(check(SIGNED_AT, command), Ok(()), "{command}");
        }
    }

    #[test]
    fn a_changed_command_does_not_pass() {
        // The value of SignatureInfo's nonce, or in the old form the time, changes by one bit.
        let changed = PYTHON.replace("2608010203", "2608010202");
        assert_eq!(check(SIGNED_AT, &changed), Err(Refusal::WrongSignature));
        let changed = OLD_FORM.replace("08080000018bcfe56800", "08080000018bcfe56801");
        assert_eq!(check(SIGNED_AT, &changed), Err(Refusal::WrongSignature));
        let unsigned = Interest::builder("/a/b/c/d/e".parse().unwrap()).build(7.into());
        let result = Authenticator::new(GRACE, 10).check(SIGNED_AT, &unsigned, 4);
        assert_eq!(result, Err(Refusal::Unsigned));
    }

    /// 120 s before and after the signature's time are taken, a microsecond more is not.
    #[test]
    fn the_time_may_differ_by_the_grace_and_no_more() {
        let early = |micros| Timestamp::from_micros(SIGNED_AT.as_micros() - micros);
        let late = |micros| Timestamp::from_micros(SIGNED_AT.as_micros() + micros);
        assert_eq!(check(early(120_000_000), PYTHON), Ok(()));
        assert_eq!(check(early(120_000_001), PYTHON), Err(Refusal::Time));
        assert_eq!(check(late(120_000_000), PYTHON), Ok(()));
        assert_eq!(check(late(120_000_001), PYTHON), Err(Refusal::Time));
    }

    #[test]
    fn a_command_passes_once_while_its_nonce_is_remembered() {
        let mut authenticator = Authenticator::new(GRACE, 2);
        let mut check = |hex: &str| authenticator.check(SIGNED_AT, &interest(hex), 4);
        assert_eq!(check(PYTHON), Ok(()));
        assert_eq!(check(PYTHON), Err(Refusal::Nonce));
        authenticator.remember(Bytes::from_static(b"one")).unwrap();
        let mut check = |hex: &str| authenticator.check(SIGNED_AT, &interest(hex), 4);
        assert_eq!(check(PYTHON), Err(Refusal::Nonce));
        authenticator.remember(Bytes::from_static(b"two")).unwrap();
        assert_eq!(authenticator.seen.len(), 2);
        assert_eq!(authenticator.check(SIGNED_AT, &interest(PYTHON), 4), Ok(()));
    }
}
