//! Certificates: Data packets that tie a public key to a name for some time.
//!
//! NDN Packet Format v0.3, section "NDN Certificate Format Version 2.0". Named
//! `/<identity>/KEY/<key-id>/<issuer-id>/<version>`.

use core::time::Duration;

use bytes::Bytes;
use namecast_units::Timestamp;

use crate::data::{ContentType, Data};
use crate::error::{DecodeError, Problem};
use crate::name::{Component, Name};
use crate::signature::{
    KeyError, KeyLocator, KeyPair, PublicKey, SignatureInfo, Signer, VALIDITY_PERIOD,
};
use crate::tlv::{Element, Fields, Reader, Writer};

const NOT_BEFORE: u32 = 254;
const NOT_AFTER: u32 = 255;
const ADDITIONAL_DESCRIPTION: u32 = 258;
const DESCRIPTION_ENTRY: u32 = 512;
const DESCRIPTION_KEY: u32 = 513;
const DESCRIPTION_VALUE: u32 = 514;
/// Components after the identity: `KEY`, key-id, issuer-id, version.
const SUFFIX: usize = 4;
/// Customary FreshnessPeriod of certificates.
const FRESHNESS: Duration = Duration::from_secs(3600);

/// When a key may be used; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// First moment.
    pub not_before: Timestamp,
    /// Last moment.
    pub not_after: Timestamp,
}

impl Validity {
    /// Twenty years from `now`, as nothing is gained by a shorter time where a key certifies itself; and a day before, by which
    /// clocks of verifiers may be behind.
    pub fn of_own_key(now: Timestamp) -> Self {
        const DAY: u64 = 86_400;
        let before = now.as_micros().saturating_sub(DAY * 1_000_000);
        Self {
            not_before: Timestamp::from_micros(before),
            not_after: now + Duration::from_secs(20 * 365 * DAY),
        }
    }
}

/// One entry of a certificate's AdditionalDescription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What the entry is about, such as `fullname`; UTF-8 by custom.
    pub key: Bytes,
    /// What it says.
    pub value: Bytes,
}

/// A Data packet that is a certificate. Says nothing about whether its signature is right, or its issuer trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    data: Data,
    validity: Validity,
    descriptions: Vec<Description>,
}

impl Certificate {
    /// Takes `data` for a certificate.
    ///
    /// # Errors
    /// If its name, ContentType, FreshnessPeriod, Content or SignatureInfo are not a certificate's. Offsets count from
    /// the packet's start, and inside SignatureInfo's extensions from the start of those.
    pub fn decode(data: Data) -> Result<Self, DecodeError> {
        let error = |field, problem| Err(DecodeError::new(field, 0, problem));
        let length = data.name().len();
        let key_at = length.checked_sub(SUFFIX);
        let keyword = key_at.and_then(|at| data.name().get(at));
        if keyword != Some(Component::generic("KEY")) {
            return error("certificate name", Problem::Malformed);
        }
        if data.content_type() != ContentType::Key {
            return error("ContentType", Problem::ValueOutOfRange);
        }
        if data.freshness().is_zero() {
            return error("FreshnessPeriod", Problem::Missing);
        }
        if data.content().is_none_or(|content| content.is_empty()) {
            return error("Content", Problem::Missing);
        }
        let (validity, descriptions) = decode_extensions(&data.signature_info().extensions)?;
        Ok(Self {
            data,
            validity,
            descriptions,
        })
    }

    /// Certifies the key of `pair` by itself, as `/<identity>/KEY/<key_id>/self/v=<version>`.
    ///
    /// `version` is the time of issue by custom, in milliseconds since 1970. `validity` is cut to whole seconds.
    pub fn self_signed(
        identity: &Name,
        key_id: &[u8],
        version: u64,
        validity: Validity,
        pair: &dyn KeyPair,
    ) -> Self {
        let key_id = Component {
            kind: Component::GENERIC,
            value: key_id,
        };
        let key_name = identity.builder().generic("KEY").component(key_id).finish();
        let name = key_name.builder().generic("self").version(version).finish();
        let mut info = pair.info();
        info.key_locator = Some(KeyLocator::Name(key_name));
        info.extensions = validity.encode();
        let signed = Self::signed(name, &pair.public_key(), info, pair);
        signed.expect("what is written here is a certificate")
    }

    /// Certifies `key` under `name`, `/<identity>/KEY/<key-id>/<issuer-id>/<version>`, by the key of `issuer`, whose KeyLocator
    /// the certificate has. `validity` is cut to whole seconds.
    ///
    /// # Errors
    /// If `name` is no name of a certificate.
    pub fn issue(
        name: Name,
        key: &PublicKey,
        validity: Validity,
        descriptions: &[Description],
        issuer: &dyn Signer,
    ) -> Result<Self, DecodeError> {
        let mut info = issuer.info();
        info.extensions = [validity.encode(), encode_descriptions(descriptions)]
            .concat()
            .into();
        Self::signed(name, key, info, issuer)
    }

    /// Signs a certificate with `signer` under another SignatureInfo.
    fn signed(
        name: Name,
        key: &PublicKey,
        info: SignatureInfo,
        signer: &dyn Signer,
    ) -> Result<Self, DecodeError> {
        let data = Data::builder(name)
            .content_type(ContentType::Key)
            .freshness(FRESHNESS)
            .content(key.to_spki())
            .sign(&WithInfo { signer, info });
        Self::decode(data)
    }

    /// Returns the packet.
    pub const fn data(&self) -> &Data {
        &self.data
    }

    /// Returns the certificate's name.
    pub const fn name(&self) -> &Name {
        self.data.name()
    }

    /// Returns the name of the key: the certificate's up to the key-id.
    pub fn key_name(&self) -> Name {
        self.name().prefix(self.name().len() - 2)
    }

    /// Returns the name of who holds the key.
    pub fn identity(&self) -> Name {
        self.name().prefix(self.name().len() - SUFFIX)
    }

    /// Tells this key from others of the same identity.
    pub fn key_id(&self) -> Component<'_> {
        self.component_from_end(3)
    }

    /// Who issued the certificate; `self` for a key that certifies itself.
    pub fn issuer(&self) -> Component<'_> {
        self.component_from_end(2)
    }

    /// Tells this certificate from others of the same issuer for the same key; customarily a number of type version.
    pub fn version(&self) -> Component<'_> {
        self.component_from_end(1)
    }

    /// Returns the key.
    ///
    /// # Errors
    /// If it is malformed, or of an algorithm that is not supported.
    pub fn public_key(&self) -> Result<PublicKey, KeyError> {
        PublicKey::from_spki(&self.spki())
    }

    /// Returns when the key may be used.
    pub const fn validity(&self) -> Validity {
        self.validity
    }

    /// Returns whether the key may be used at `time`.
    pub fn is_valid_at(&self, time: Timestamp) -> bool {
        (self.validity.not_before..=self.validity.not_after).contains(&time)
    }

    /// Returns what else the issuer states.
    pub fn descriptions(&self) -> &[Description] {
        &self.descriptions
    }

    /// Returns whether `locator` means this certificate or its key.
    pub fn matches(&self, locator: &KeyLocator) -> bool {
        match locator {
            KeyLocator::Name(name) => *name == self.key_name() || name == self.name(),
            KeyLocator::Digest(digest) => *digest == sha256(&self.spki())[..],
        }
    }

    fn spki(&self) -> Bytes {
        let content = self.data.content();
        content.expect("checked when the certificate was decoded")
    }

    fn component_from_end(&self, back: usize) -> Component<'_> {
        let component = self.name().get(self.name().len() - back);
        component.expect("checked when the certificate was decoded")
    }
}

fn sha256(octets: &[u8]) -> [u8; 32] {
    use sha2::Digest as _;
    sha2::Sha256::digest(octets).into()
}

/// Signs with `signer`, but says more about it than `signer` itself.
struct WithInfo<'a> {
    signer: &'a dyn Signer,
    info: SignatureInfo,
}

impl Signer for WithInfo<'_> {
    fn info(&self) -> SignatureInfo {
        self.info.clone()
    }

    fn sign(&self, portion: &[u8]) -> Bytes {
        self.signer.sign(portion)
    }
}

/// Returns AdditionalDescription; nothing if there are none.
fn encode_descriptions(descriptions: &[Description]) -> Bytes {
    let mut writer = Writer::default();
    if !descriptions.is_empty() {
        writer.nested(ADDITIONAL_DESCRIPTION, |writer| {
            for description in descriptions {
                writer.nested(DESCRIPTION_ENTRY, |writer| {
                    writer.element(DESCRIPTION_KEY, &description.key);
                    writer.element(DESCRIPTION_VALUE, &description.value);
                });
            }
        });
    }
    writer.finish()
}

fn decode_extensions(octets: &Bytes) -> Result<(Validity, Vec<Description>), DecodeError> {
    const ORDER: [u32; 2] = [VALIDITY_PERIOD, ADDITIONAL_DESCRIPTION];
    let mut validity = None;
    let mut descriptions = Vec::new();
    let mut fields = Fields::new(Reader::new(octets), "SignatureInfo", &ORDER);
    while let Some(field) = fields.field()? {
        match field.element_type {
            VALIDITY_PERIOD => validity = Some(Validity::decode(octets, &field)?),
            _ => descriptions = decode_descriptions(octets, &field)?,
        }
    }
    let missing = DecodeError::new("ValidityPeriod", 0, Problem::Missing);
    Ok((validity.ok_or(missing)?, descriptions))
}

fn decode_descriptions(octets: &Bytes, element: &Element) -> Result<Vec<Description>, DecodeError> {
    let reader = Reader::within(octets, element.value.clone());
    let mut entries = Fields::new(reader, "AdditionalDescription", &[DESCRIPTION_ENTRY])
        .repeating(DESCRIPTION_ENTRY);
    let mut descriptions = Vec::new();
    while let Some(entry) = entries.field()? {
        const ORDER: [u32; 2] = [DESCRIPTION_KEY, DESCRIPTION_VALUE];
        let (mut key, mut value) = (None, None);
        let reader = Reader::within(octets, entry.value.clone());
        let mut fields = Fields::new(reader, "DescriptionEntry", &ORDER);
        while let Some(field) = fields.field()? {
            let text = Some(octets.slice(field.value));
            match field.element_type {
                DESCRIPTION_KEY => key = text,
                _ => value = text,
            }
        }
        let missing = |field| entry.error(field, Problem::Missing);
        descriptions.push(Description {
            key: key.ok_or(missing("DescriptionKey"))?,
            value: value.ok_or(missing("DescriptionValue"))?,
        });
    }
    Ok(descriptions)
}

impl Validity {
    /// Decodes the element of type ValidityPeriod that `element` is in `octets`.
    pub(crate) fn decode(octets: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        let reader = Reader::within(octets, element.value.clone());
        let mut fields = Fields::new(reader, "ValidityPeriod", &[NOT_BEFORE, NOT_AFTER]);
        let (mut not_before, mut not_after) = (None, None);
        while let Some(field) = fields.field()? {
            match field.element_type {
                NOT_BEFORE => not_before = Some(decode_time("NotBefore", octets, &field)?),
                _ => not_after = Some(decode_time("NotAfter", octets, &field)?),
            }
        }
        let missing = |field| element.error(field, Problem::Missing);
        Ok(Self {
            not_before: not_before.ok_or(missing("NotBefore"))?,
            not_after: not_after.ok_or(missing("NotAfter"))?,
        })
    }

    /// Returns the ValidityPeriod element.
    pub(crate) fn encode(self) -> Bytes {
        let mut writer = Writer::default();
        writer.nested(VALIDITY_PERIOD, |period| {
            period.element(NOT_BEFORE, print_time(self.not_before).as_bytes());
            period.element(NOT_AFTER, print_time(self.not_after).as_bytes());
        });
        writer.finish()
    }
}

fn decode_time(
    field: &'static str,
    octets: &Bytes,
    element: &Element,
) -> Result<Timestamp, DecodeError> {
    let text: [u8; 15] = element.array(field, octets)?;
    parse_time(&text).ok_or_else(|| element.error(field, Problem::Malformed))
}

/// Reads `YYYYMMDDThhmmss`, in UTC. Times before 1970 count as 1970, as timestamps begin there.
fn parse_time(text: &[u8; 15]) -> Option<Timestamp> {
    let digits = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0_u64, |number, &octet| {
            let digit = char::from(octet).to_digit(10)?;
            Some(number * 10 + u64::from(digit))
        })
    };
    let (year, month, day) = (digits(0, 4)?, digits(4, 6)?, digits(6, 8)?);
    let (hour, minute, second) = (digits(9, 11)?, digits(11, 13)?, digits(13, 15)?);
    let is_date = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    if text[8] != b'T' || !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let before_1970 = year < 1970;
    Some(Timestamp::from_micros(if before_1970 {
        0
    } else {
        seconds * 1_000_000
    }))
}

/// Writes `YYYYMMDDThhmmss`, in UTC; the last second of 9999 for all that is later.
fn print_time(time: Timestamp) -> String {
    let seconds = time.as_micros() / 1_000_000;
    let mut days = seconds / 86_400;
    // A year has at least 365 days, so that this never guesses too early a year.
    let mut year = (1970 + days / 365).min(10_000);
    while days_since_1970(year, 1, 1) > days {
        year -= 1;
    }
    if year > 9_999 {
        return "99991231T235959".to_owned();
    }
    days -= days_since_1970(year, 1, 1);
    let mut month = 1;
    while days >= days_in_month(year, month) {
        days -= days_in_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let day = days + 1;
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}")
}

/// Days from 1970-01-01 to a day of the Gregorian calendar; 0 if that is earlier.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    if year < 1970 {
        return 0;
    }
    let past = year - 1;
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let months: u64 = (1..month).map(|month| days_in_month(year, month)).sum();
    (year - 1970) * 365 + leap_days(past) - leap_days(1969) + months + day - 1
}

const fn days_in_month(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{Ed25519Signer, VerifyError};

    fn time(text: &[u8; 15]) -> u64 {
        parse_time(text).unwrap().as_micros() / 1_000_000
    }

    fn self_signed() -> (Certificate, Ed25519Signer) {
        let locator = KeyLocator::Name("/demo/KEY/%01".parse().unwrap());
        let signer = Ed25519Signer::from_seed([7; 32], locator);
        let validity = Validity {
            not_before: Timestamp::from_micros(1_700_000_000_000_000),
            not_after: Timestamp::from_micros(1_700_000_060_000_000),
        };
        let identity = "/demo".parse().unwrap();
        let certificate = Certificate::self_signed(&identity, &[1], 1_700, validity, &signer);
        (certificate, signer)
    }

    /// By `date -u -d … +%s`.
    #[test]
    fn times_are_seconds_of_the_gregorian_calendar() {
        for (text, seconds) in [
            (b"19700101T000000", 0),
            (b"20000229T235959", 951_868_799),
            (b"20231114T221320", 1_700_000_000),
            (b"21000301T000000", 4_107_542_400),
            (b"99991231T235959", 253_402_300_799),
        ] {
            assert_eq!(time(text), seconds);
            let printed = print_time(Timestamp::from_micros(seconds * 1_000_000));
            assert_eq!(printed.as_bytes(), text);
        }
        assert_eq!(time(b"19691231T235959"), 0);
        assert_eq!(
            print_time(Timestamp::from_micros(u64::MAX)),
            "99991231T235959"
        );
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            b"20230229T000000",
            b"20231301T000000",
            b"20230001T000000",
            b"20230100T000000",
            b"20230101T240000",
            b"20230101T006000",
            b"20230101T000060",
            b"20230101 000000",
            b"2023010aT000000",
            b"+2230101T000000",
        ] {
            assert_eq!(parse_time(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_self_signed_certificate_holds_the_key_that_verifies_it() {
        let (certificate, signer) = self_signed();
        assert_eq!(certificate.name().to_string(), "/demo/KEY/%01/self/v=1700");
        let key = certificate.public_key().unwrap();
        assert_eq!(key, signer.public_key());
        assert_eq!(certificate.data().verify(&key), Ok(()));
        let other = Ed25519Signer::from_seed([8; 32], KeyLocator::Name(Name::root()));
        assert_eq!(
            certificate.data().verify(&other.public_key()),
            Err(VerifyError::Wrong)
        );
        let again = Data::decode(certificate.data().wire().clone()).unwrap();
        assert_eq!(Certificate::decode(again), Ok(certificate));
    }

    /// Returns a certificate with these elements behind its KeyLocator.
    fn with_extensions(extensions: &[u8]) -> Result<Certificate, DecodeError> {
        let (certificate, pair) = self_signed();
        let mut info = pair.info();
        info.extensions = Bytes::copy_from_slice(extensions);
        let data = Data::builder(certificate.name().clone())
            .content_type(ContentType::Key)
            .freshness(FRESHNESS)
            .content(certificate.spki())
            .sign(&WithInfo {
                signer: &pair,
                info,
            });
        Data::decode(data.wire().clone()).and_then(Certificate::decode)
    }

    #[test]
    fn only_extensions_that_may_be_skipped_are() {
        let (good, _) = self_signed();
        let validity = good.validity().encode();
        let with = |after: &[u8]| with_extensions(&[&validity[..], after].concat());
        assert_eq!(with(&[]), Ok(good));
        assert!(with(&[0xFD, 1, 4, 0]).is_ok(), "260 may be skipped");
        let odd = with(&[0xFD, 1, 5, 0]).unwrap_err();
        assert_eq!(odd.problem, Problem::Critical(261));
        assert_eq!(with_extensions(&[]).unwrap_err().field, "ValidityPeriod");
        let mut bad = validity.to_vec();
        bad[10] = b'x';
        let bad = with_extensions(&bad).unwrap_err();
        assert_eq!((bad.field, bad.problem), ("NotBefore", Problem::Malformed));
    }

    #[test]
    fn an_issued_certificate_names_its_issuer_and_says_what_it_was_told() {
        let (anchor, issuer) = self_signed();
        let own = Ed25519Signer::from_seed([8; 32], KeyLocator::Name(Name::root()));
        let name: Name = "/demo/ann/KEY/1/demo/v=2".parse().unwrap();
        let description = Description {
            key: "x25519".into(),
            value: Bytes::from_static(&[1, 2]),
        };
        let validity = anchor.validity();
        let said = core::slice::from_ref(&description);
        let key = own.public_key();
        let issued = Certificate::issue(name, &key, validity, said, &issuer).unwrap();
        assert_eq!(issued.public_key(), Ok(key));
        assert_eq!(issued.validity(), validity);
        assert_eq!(issued.descriptions(), [description]);
        assert_eq!(issued.identity().to_string(), "/demo/ann");
        assert_eq!(issued.data().verify(&issuer.public_key()), Ok(()));
        let locator = &issued.data().signature_info().key_locator;
        assert!(locator.as_ref().is_some_and(|it| anchor.matches(it)));
        let short: Name = "/demo/ann/KEY/1".parse().unwrap();
        let issued = Certificate::issue(short, &own.public_key(), validity, &[], &issuer);
        assert!(issued.is_err());
    }

    #[test]
    fn both_ends_of_the_validity_belong_to_it() {
        let (certificate, _) = self_signed();
        let valid = |micros| certificate.is_valid_at(Timestamp::from_micros(micros));
        assert!(!valid(1_699_999_999_999_999) && valid(1_700_000_000_000_000));
        assert!(valid(1_700_000_060_000_000) && !valid(1_700_000_060_000_001));
    }

    #[test]
    fn locators_may_name_key_or_certificate_or_give_the_digest() {
        let (certificate, signer) = self_signed();
        let by_name = |uri: &str| certificate.matches(&KeyLocator::Name(uri.parse().unwrap()));
        assert!(by_name("/demo/KEY/%01") && by_name("/demo/KEY/%01/self/v=1700"));
        assert!(!by_name("/demo/KEY") && !by_name("/demo/KEY/%02"));
        assert!(!by_name("/demo/KEY/%01/self") && !by_name("/demo/KEY/%01/self/v=1701"));
        let by_digest =
            |digest: [u8; 32]| certificate.matches(&KeyLocator::Digest(digest.to_vec().into()));
        assert!(by_digest(signer.public_key().digest()) && !by_digest([0; 32]));
    }
}
