//! Prefix announcements: Data packets by which a producer says that it answers for a prefix.
//!
//! NDN Prefix Announcement Protocol, as in ndn-cxx's `prefix-announcement.hpp`: a Data packet named
//! `/<prefix>/32=PA/<version>/seg=0` of ContentType 5, whose Content holds ExpirationPeriod and perhaps ValidityPeriod.
//! Link packets carry it beside the Data that it was requested with: `LpPacket::prefix_announcement`.

use core::time::Duration;

use namecast_units::Timestamp;

use crate::certificate::Validity;
use crate::data::{ContentType, Data};
use crate::error::{DecodeError, Problem};
use crate::name::{Component, Name};
use crate::signature::{Signer, VALIDITY_PERIOD};
use crate::tlv::{Fields, Reader, Writer};

/// ExpirationPeriod in milliseconds, with NFD management's number.
const EXPIRATION_PERIOD: u32 = 109;
/// Components after the prefix: keyword, version, segment.
const SUFFIX: usize = 3;
const KEYWORD: &str = "PA";

/// A Data packet that announces a prefix. Says nothing about whether its signature is right, or its signer trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixAnnouncement {
    data: Data,
    prefix: Name,
    expiration: Duration,
    validity: Option<Validity>,
}

impl PrefixAnnouncement {
    /// Takes `data` for an announcement.
    ///
    /// # Errors
    /// If its name, ContentType or Content are not an announcement's. Offsets inside Content count from its start.
    pub fn decode(data: Data) -> Result<Self, DecodeError> {
        const ORDER: [u32; 2] = [EXPIRATION_PERIOD, VALIDITY_PERIOD];
        let error = |field, problem| DecodeError::new(field, 0, problem);
        let prefix = announced(data.name());
        let prefix = prefix.ok_or(error("announcement name", Problem::Malformed))?;
        if data.content_type() != ContentType::PrefixAnnouncement {
            return Err(error("ContentType", Problem::ValueOutOfRange));
        }
        let content = data.content().ok_or(error("Content", Problem::Missing))?;
        let (mut expiration, mut validity) = (None, None);
        let mut fields = Fields::new(Reader::new(&content), "Content", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                EXPIRATION_PERIOD => {
                    expiration = Some(field.number("ExpirationPeriod", &content)?);
                }
                _ => validity = Some(Validity::decode(&content, &field)?),
            }
        }
        let expiration = expiration.ok_or(error("ExpirationPeriod", Problem::Missing))?;
        Ok(Self {
            prefix,
            expiration: Duration::from_millis(expiration),
            validity,
            data,
        })
    }

    /// Announces `prefix` for `expiration` from when the announcement is heard, cut to whole milliseconds; if `validity` is
    /// given, only within it.
    ///
    /// Of several announcements of a prefix, the one of the highest `version` is the newest.
    pub fn sign(
        prefix: &Name,
        version: u64,
        expiration: Duration,
        validity: Option<Validity>,
        signer: &dyn Signer,
    ) -> Self {
        let name = prefix.builder().keyword(KEYWORD).version(version);
        let millis = u64::try_from(expiration.as_millis()).unwrap_or(u64::MAX);
        let mut content = Writer::default();
        content.number(EXPIRATION_PERIOD, millis);
        if let Some(validity) = validity {
            content.raw(&validity.encode());
        }
        let data = Data::builder(name.segment(0).finish())
            .content_type(ContentType::PrefixAnnouncement)
            .content(content.finish())
            .sign(signer);
        Self {
            data,
            prefix: prefix.clone(),
            expiration: Duration::from_millis(millis),
            validity,
        }
    }

    /// Returns the packet.
    pub const fn data(&self) -> &Data {
        &self.data
    }

    /// Returns what is announced.
    pub const fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// Returns how long after it is heard the announcement may be relied on.
    pub const fn expiration(&self) -> Duration {
        self.expiration
    }

    /// Returns when it may be relied on at all, if it says so.
    pub const fn validity(&self) -> Option<Validity> {
        self.validity
    }

    /// Returns how long after `time` it stays valid; none: for ever, as it names no period. Its last moment belongs to it.
    pub fn left_at(&self, time: Timestamp) -> Option<Duration> {
        const MOMENT: Duration = Duration::from_micros(1);
        let end = self.validity?.not_after + MOMENT;
        Some(end.since(time))
    }

    /// Returns whether it may be relied on at `time`.
    pub fn is_valid_at(&self, time: Timestamp) -> bool {
        let is_within = |validity: Validity| {
            let Validity {
                not_before,
                not_after,
            } = validity;
            (not_before..=not_after).contains(&time)
        };
        self.validity.is_none_or(is_within)
    }
}

/// Returns the prefix that an announcement of this name is for.
fn announced(name: &Name) -> Option<Name> {
    let prefix = name.len().checked_sub(SUFFIX)?;
    let number = |at: usize, kind| name.get(at)?.number_of(kind);
    let is_announcement = name.get(prefix) == Some(Component::keyword(KEYWORD))
        && number(prefix + 1, Component::VERSION).is_some()
        && number(prefix + 2, Component::SEGMENT) == Some(0);
    is_announcement.then(|| name.prefix(prefix))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::signature::NullSigner;

    /// `/a/32=PA/v=1/seg=0`, ContentType 5, ExpirationPeriod of an hour (3,600,000 = 0x36EE80), SignatureType 200.
    const HOUR: [u8; 37] = [
        0x06, 35, //
        0x07, 13, 0x08, 1, b'a', 0x20, 2, b'P', b'A', 0x36, 1, 1, 0x32, 1, 0, //
        0x14, 3, 0x18, 1, 5, //
        0x15, 6, 0x6D, 4, 0x00, 0x36, 0xEE, 0x80, //
        0x16, 3, 0x1B, 1, 200, //
        0x17, 0,
    ];
    /// From 1970-01-01 to 2000-01-01.
    const VALIDITY: &[u8; 42] =
        b"\xFD\0\xFD\x26\xFD\0\xFE\x0F19700101T000000\xFD\0\xFF\x0F20000101T000000";

    fn decode(wire: &[u8]) -> Result<PrefixAnnouncement, DecodeError> {
        Data::decode(Bytes::copy_from_slice(wire)).and_then(PrefixAnnouncement::decode)
    }

    fn with(
        name: &str,
        content_type: ContentType,
        content: &[u8],
    ) -> Result<PrefixAnnouncement, DecodeError> {
        let data = Data::builder(name.parse().unwrap())
            .content_type(content_type)
            .content(Bytes::copy_from_slice(content));
        PrefixAnnouncement::decode(data.sign(&NullSigner))
    }

    fn with_content(content: &[u8]) -> Result<PrefixAnnouncement, DecodeError> {
        with(
            "/a/32=PA/v=1/seg=0",
            ContentType::PrefixAnnouncement,
            content,
        )
    }

    #[test]
    fn an_announcement_has_the_octets_of_the_protocol() {
        let hour = Duration::from_secs(3_600);
        let signed = PrefixAnnouncement::sign(&"/a".parse().unwrap(), 1, hour, None, &NullSigner);
        assert_eq!(signed.data().wire()[..], HOUR);
        let decoded = decode(&HOUR).unwrap();
        assert_eq!(decoded, signed);
        assert_eq!(decoded.prefix().to_string(), "/a");
        assert_eq!((decoded.expiration(), decoded.validity()), (hour, None));
    }

    /// 946,684,800 s is 2000-01-01, by `date -u -d 2000-01-01 +%s`.
    #[test]
    fn a_validity_bounds_when_it_may_be_relied_on() {
        let announcement = with_content(&[&[0x6D, 1, 7], &VALIDITY[..]].concat()).unwrap();
        assert_eq!(announcement.expiration(), Duration::from_millis(7));
        let valid =
            |seconds: u64| announcement.is_valid_at(Timestamp::from_micros(seconds * 1_000_000));
        assert_eq!(
            [0, 946_684_800, 946_684_801].map(valid),
            [true, true, false]
        );
        let left = |micros: u64| {
            announcement.left_at(Timestamp::from_micros(946_684_800_000_000 + micros))
        };
        let micros = |micros: u64| Some(Duration::from_micros(micros));
        assert_eq!(
            [left(0), left(1), left(2)],
            [micros(1), micros(0), micros(0)]
        );
        let (prefix, validity) = (announcement.prefix(), announcement.validity());
        let again =
            PrefixAnnouncement::sign(prefix, 1, announcement.expiration(), validity, &NullSigner);
        assert_eq!(again, announcement);
        assert!(
            decode(&HOUR)
                .unwrap()
                .is_valid_at(Timestamp::from_micros(u64::MAX))
        );
    }

    #[test]
    fn names_that_announce_nothing_are_refused() {
        let announced = |name| {
            let content_type = ContentType::PrefixAnnouncement;
            with(name, content_type, &[0x6D, 1, 7]).map(|it| it.prefix().to_string())
        };
        assert_eq!(announced("/32=PA/v=1/seg=0"), Ok("/".to_owned()));
        assert_eq!(
            announced("/a/32=PA/b/32=PA/v=9/seg=0"),
            Ok("/a/32=PA/b".to_owned())
        );
        for name in [
            "/",
            "/v=1/seg=0",
            "/a/PA/v=1/seg=0",
            "/a/32=PB/v=1/seg=0",
            "/a/32=PA/1/seg=0",
            "/a/32=PA/54=%01%02%03/seg=0",
            "/a/32=PA/v=1/0",
            "/a/32=PA/v=1/seg=1",
            "/a/32=PA/v=1",
            "/a/32=PA/v=1/seg=0/b",
        ] {
            let refused = announced(name).unwrap_err();
            let expected = DecodeError::new("announcement name", 0, Problem::Malformed);
            assert_eq!(refused, expected, "{name}");
        }
    }

    #[test]
    fn contents_that_announce_nothing_are_refused() {
        let blob = with("/a/32=PA/v=1/seg=0", ContentType::Blob, &[0x6D, 1, 7]).unwrap_err();
        assert_eq!(
            (blob.field, blob.problem),
            ("ContentType", Problem::ValueOutOfRange)
        );
        let refused = |content: &[u8]| {
            let error = with_content(content).unwrap_err();
            (error.field, error.problem)
        };
        assert_eq!(refused(&[]), ("ExpirationPeriod", Problem::Missing));
        assert_eq!(refused(VALIDITY), ("ExpirationPeriod", Problem::Missing));
        assert_eq!(
            refused(&[0x6D, 3, 0, 0, 7]),
            ("ExpirationPeriod", Problem::BadLength(3))
        );
        assert_eq!(
            refused(&[0x6D, 1, 7, 0x6D, 1, 7]),
            ("Content", Problem::Critical(109))
        );
        assert_eq!(
            refused(&[0x6D, 1, 7, 0x6F, 0]),
            ("Content", Problem::Critical(0x6F))
        );
        assert_eq!(refused(&[0x6D, 9, 7]), ("Content", Problem::Truncated));
        let mut month_13 = [&[0x6D, 1, 7], &VALIDITY[..]].concat();
        month_13[15..17].copy_from_slice(b"13");
        assert_eq!(refused(&month_13), ("NotBefore", Problem::Malformed));
        assert!(
            with_content(&[0x6D, 1, 7, 0x70, 0]).is_ok(),
            "112 may be skipped"
        );
    }

    /// Whatever octet of one is changed to whatever, and wherever it is cut.
    #[test]
    fn no_octets_make_decoding_panic() {
        let whole = with_content(&[&[0x6D, 1, 7], &VALIDITY[..]].concat()).unwrap();
        let wire = whole.data().wire().to_vec();
        let mut accepted = 0;
        for at in 0..wire.len() {
            for octet in 0..=u8::MAX {
                let mut changed = wire.clone();
                changed[at] = octet;
                accepted += usize::from(decode(&changed).is_ok());
            }
            assert!(decode(&wire[..at]).is_err(), "cut at {at}");
        }
        assert!(
            (wire.len()..wire.len() * 128).contains(&accepted),
            "{accepted}"
        );
    }
}
