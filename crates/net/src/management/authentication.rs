//! Who may command: whose command is whole, recent and new, and if the node was told keys, signed with one of them.
//!
//! Commands are signed Interests. A recorded command of a key is never carried out again: the node remembers time and nonce of
//! the key's last commands, and refuses what is no later than the newest that it forgot. So commands that a key signs at once may
//! arrive in any order; NFD wants their times to grow. Where a digest will do, which anybody can make, a nonce must not be one of
//! the last ones of such commands; these can push out each other, and nothing of a key's. Without keys this is NFD's trust anchor
//! "any", and as there, signatures with keys are not checked then.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_packet::signature::{DigestVerifier, PublicKey, SignatureType, Verifier, VerifyError};
use namecast_packet::tlv::{self, Reader};
use namecast_packet::{Certificate, Component, Interest, Name, SignatureInfo};
use namecast_units::{Duration, Timestamp};

use crate::ManagementConfig;
use crate::freshness::{Commands, Refusal, check_time};

/// Components of a command in the old form after its prefix: parameters, time, nonce, signature info, signature value.
const OLD_FORM_COMPONENTS: usize = 5;

/// Checks commands, and remembers them.
#[derive(Debug)]
pub struct Authenticator {
    keys: Vec<CommandKey>,
    grace: Duration,
    max_nonces: usize,
    /// Nonces of commands that no key was checked of.
    seen: BTreeSet<Bytes>,
    order: VecDeque<Bytes>,
}

/// A key that may command.
#[derive(Debug)]
struct CommandKey {
    certificate: Certificate,
    public_key: PublicKey,
    commands: Commands,
}

/// What protects a command against being played again.
struct Freshness {
    time: Option<Duration>,
    nonce: Option<Bytes>,
}

impl Freshness {
    fn of(info: &SignatureInfo) -> Self {
        Self {
            time: info.time,
            nonce: info.nonce.clone(),
        }
    }
}

impl Authenticator {
    /// As the configuration says, for a node that starts now. Keys that cannot be used are left out, and said so.
    pub fn new(config: &ManagementConfig, now: Timestamp) -> Self {
        let usable = |certificate: &Certificate| match certificate.public_key() {
            Ok(public_key) => Some(CommandKey {
                certificate: certificate.clone(),
                public_key,
                commands: Commands::since(now),
            }),
            Err(error) => {
                tracing::error!(certificate = %certificate.name(), %error, "a management key cannot be used");
                None
            }
        };
        Self {
            keys: config.keys.iter().filter_map(usable).collect(),
            grace: config.time_grace,
            max_nonces: config.max_nonces,
            seen: BTreeSet::new(),
            order: VecDeque::new(),
        }
    }

    /// Checks a command whose module and verb take up `prefix` components of its name. Where it `needs_key`, only one of
    /// the configured keys will do, in the form of a signed Interest.
    ///
    /// # Errors
    /// Why it must not be carried out.
    pub fn check(
        &mut self,
        now: Timestamp,
        command: &Interest,
        prefix: usize,
        needs_key: bool,
    ) -> Result<(), Refusal> {
        if needs_key {
            return self.check_key(now, command);
        }
        let freshness = match command.signature_info() {
            Some(info) => check_signed_interest(command, info)?,
            None => check_old_form(command.name(), prefix)?,
        };
        check_time(now, freshness.time, self.grace)?;
        let nonce = freshness.nonce.ok_or(Refusal::NoNonce)?;
        self.remember(nonce)
    }

    /// Checks that one of the configured keys signed a command, which it did not see before.
    ///
    /// # Errors
    /// Why it must not be carried out.
    fn check_key(&mut self, now: Timestamp, command: &Interest) -> Result<(), Refusal> {
        let info = command.signature_info().ok_or(Refusal::Key)?;
        let place = self.find_key(now, command)?;
        let time = check_time(now, info.time, self.grace)?;
        let nonce = info.nonce.as_ref().ok_or(Refusal::NoNonce)?;
        (self.keys[place].commands).remember(time, nonce, self.max_nonces)
    }

    /// Whether one of the configured keys signed a command, whenever that was.
    pub fn is_of_key(&self, now: Timestamp, command: &Interest) -> bool {
        self.find_key(now, command).is_ok()
    }

    /// Place of the key that signed a command.
    fn find_key(&self, now: Timestamp, command: &Interest) -> Result<usize, Refusal> {
        let info = command.signature_info().ok_or(Refusal::Key)?;
        let locator = info.key_locator.as_ref().ok_or(Refusal::Key)?;
        let is_meant =
            |key: &CommandKey| key.certificate.matches(locator) && key.certificate.is_valid_at(now);
        let place = self.keys.iter().position(is_meant).ok_or(Refusal::Key)?;
        let verified = command.verify(&self.keys[place].public_key);
        verified.map_err(|_| Refusal::WrongSignature)?;
        Ok(place)
    }

    fn remember(&mut self, nonce: Bytes) -> Result<(), Refusal> {
        // The nonce may be part of a larger buffer.
        let nonce = Bytes::copy_from_slice(&nonce);
        if !self.seen.insert(nonce.clone()) {
            return Err(Refusal::Repeated);
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
    Ok(Freshness::of(info))
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
    use namecast_packet::signature::{DigestSigner, Ed25519Signer};
    use namecast_packet::{KeyLocator, Signer, Validity};

    use super::*;

    /// Time in the signatures below: 1 700 000 000 s after 1970.
    const SIGNED_AT: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
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

    /// With the default grace of 120 s.
    fn authenticator(max_nonces: usize) -> Authenticator {
        let config = ManagementConfig {
            max_nonces,
            ..ManagementConfig::default()
        };
        Authenticator::new(&config, SIGNED_AT)
    }

    fn check(now: Timestamp, hex: &str) -> Result<(), Refusal> {
        authenticator(10).check(now, &interest(hex), 4, false)
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
        let result = authenticator(10).check(SIGNED_AT, &unsigned, 4, false);
        assert_eq!(result, Err(Refusal::Unsigned));
    }

    /// 120 s before and after the signature's time are taken, a microsecond more is not.
    #[test]
    fn the_time_may_differ_by_the_grace_and_no_more() {
        let early = |micros| Timestamp::from_micros(SIGNED_AT.as_micros() - micros);
        let late = |micros| Timestamp::from_micros(SIGNED_AT.as_micros() + micros);
        assert_eq!(check(early(120_000_000), PYTHON), Ok(()));
        let off = |is_ahead| {
            Err(Refusal::Clock {
                by: Duration::from_micros(120_000_001),
                is_ahead,
                grace: Duration::from_secs(120),
            })
        };
        assert_eq!(check(early(120_000_001), PYTHON), off(true));
        assert_eq!(check(late(120_000_000), PYTHON), Ok(()));
        assert_eq!(check(late(120_000_001), PYTHON), off(false));
    }

    #[test]
    fn a_command_passes_once_while_its_nonce_is_remembered() {
        let mut authenticator = authenticator(2);
        let mut check = |hex: &str| authenticator.check(SIGNED_AT, &interest(hex), 4, false);
        assert_eq!(check(PYTHON), Ok(()));
        assert_eq!(check(PYTHON), Err(Refusal::Repeated));
        authenticator.remember(Bytes::from_static(b"one")).unwrap();
        let mut check = |hex: &str| authenticator.check(SIGNED_AT, &interest(hex), 4, false);
        assert_eq!(check(PYTHON), Err(Refusal::Repeated));
        authenticator.remember(Bytes::from_static(b"two")).unwrap();
        assert_eq!(authenticator.seen.len(), 2);
        let again = authenticator.check(SIGNED_AT, &interest(PYTHON), 4, false);
        assert_eq!(again, Ok(()));
    }

    /// The key of `seed` and a certificate of it that is valid from the signatures' time on, for an hour.
    fn key(seed: u8) -> (Ed25519Signer, Certificate) {
        let name: Name = "/operator/KEY/k".parse().unwrap();
        let pair = Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(name));
        let validity = Validity {
            not_before: SIGNED_AT,
            not_after: SIGNED_AT + Duration::from_secs(3_600),
        };
        let operator = "/operator".parse().unwrap();
        let certificate = Certificate::self_signed(&operator, b"k", 1, validity, &pair);
        (pair, certificate)
    }

    fn signed_at(time: Timestamp, signer: &dyn Signer) -> Interest {
        let mut info = signer.info();
        info.time = Some(Duration::from_micros(time.as_micros()));
        info.nonce = Some(Bytes::from_static(b"12345678"));
        let name = "/localhost/nfd/cs/erase/x".parse().unwrap();
        Interest::builder(name).sign(7.into(), signer, &info)
    }

    /// Neither a digest, nor another key of the same name, nor the old form will do; nor the right key before its time.
    #[test]
    fn where_a_key_is_needed_only_a_configured_one_will_do() {
        let (signer, certificate) = key(1);
        let config = ManagementConfig {
            keys: vec![certificate],
            ..ManagementConfig::default()
        };
        let check = |now, command: &Interest| {
            let mut authenticator = Authenticator::new(&config, SIGNED_AT);
            authenticator.check(now, command, 4, true)
        };
        assert_eq!(check(SIGNED_AT, &signed_at(SIGNED_AT, &signer)), Ok(()));
        let early = Timestamp::from_micros(SIGNED_AT.as_micros() - 1);
        let command = signed_at(early, &signer);
        assert_eq!(check(early, &command), Err(Refusal::Key));
        let (other, _) = key(2);
        let forged = check(SIGNED_AT, &signed_at(SIGNED_AT, &other));
        assert_eq!(forged, Err(Refusal::WrongSignature));
        let digest = check(SIGNED_AT, &signed_at(SIGNED_AT, &DigestSigner));
        assert_eq!(digest, Err(Refusal::Key));
        assert_eq!(check(SIGNED_AT, &interest(OLD_FORM)), Err(Refusal::Key));
        let mut authenticator = Authenticator::new(&config, SIGNED_AT);
        let command = signed_at(SIGNED_AT, &signer);
        assert_eq!(authenticator.check(SIGNED_AT, &command, 4, true), Ok(()));
        let replayed = authenticator.check(SIGNED_AT, &command, 4, true);
        assert_eq!(replayed, Err(Refusal::Repeated));
    }

    /// Of the last two, which is the bound here, a key's commands count in any order; an older one does not, as it might be a
    /// repetition.
    #[test]
    fn commands_that_a_key_signs_at_once_may_arrive_in_any_order() {
        let (signer, certificate) = key(1);
        let config = ManagementConfig {
            keys: vec![certificate],
            max_nonces: 2,
            ..ManagementConfig::default()
        };
        let mut authenticator = Authenticator::new(&config, SIGNED_AT);
        let later = |millis| SIGNED_AT + Duration::from_millis(millis);
        let mut check =
            |millis| authenticator.check(SIGNED_AT, &signed_at(later(millis), &signer), 4, true);
        assert_eq!((check(30), check(10), check(20)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(check(10), Err(Refusal::Old));
        assert_eq!(check(20), Err(Refusal::Repeated));
        assert_eq!(check(9), Err(Refusal::Old));
    }

    /// A key's command stays refused however many others come, with digests or keys; one that is a millisecond later is not.
    #[test]
    fn a_captured_command_of_a_key_never_works_again() {
        let (signer, certificate) = key(1);
        let config = ManagementConfig {
            keys: vec![certificate],
            ..ManagementConfig::default()
        };
        let mut authenticator = Authenticator::new(&config, SIGNED_AT);
        let command = signed_at(SIGNED_AT, &signer);
        assert_eq!(authenticator.check(SIGNED_AT, &command, 4, true), Ok(()));
        for number in 0..1_001_u32 {
            let nonce = Bytes::copy_from_slice(&number.to_be_bytes());
            authenticator.remember(nonce).unwrap();
        }
        let later = |micros| Timestamp::from_micros(SIGNED_AT.as_micros() + micros);
        let next = signed_at(later(1_000), &signer);
        assert_eq!(authenticator.check(SIGNED_AT, &next, 4, true), Ok(()));
        for _ in 0..2 {
            let replayed = authenticator.check(later(2), &command, 4, true);
            assert_eq!(replayed, Err(Refusal::Repeated));
        }
        // A command that the key did not sign moves nothing.
        let (other, _) = key(2);
        let forged = signed_at(later(60_000_000), &other);
        let refused = authenticator.check(SIGNED_AT, &forged, 4, true);
        assert_eq!(refused, Err(Refusal::WrongSignature));
        let after = signed_at(later(2_000), &signer);
        assert_eq!(authenticator.check(SIGNED_AT, &after, 4, true), Ok(()));
        // Nor does one that was captured before a restart, which took 10 ms.
        let mut restarted = Authenticator::new(&config, later(12_000));
        let replayed = restarted.check(later(12_000), &after, 4, true);
        assert_eq!(replayed, Err(Refusal::Old));
        let at_once = signed_at(later(12_000), &signer);
        assert_eq!(restarted.check(later(12_000), &at_once, 4, true), Ok(()));
    }
}
