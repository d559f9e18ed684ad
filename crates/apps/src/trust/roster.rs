//! Rosters: who belongs to a root, and whose certificates were revoked.
//!
//! ```text
//!  /<root>/32=roster/v=<n>/seg=<k>     signed by the anchor; versions only grow
//!
//!  Members 128 ─ Member 130 ─ Name 7 of the certificate, KeyDigest 132, Until 134, Role 136, ExchangeKey 138, Label 140
//!  Revocations 150 ─ Revocation 152 ─ KeyDigest 132, Since 154, Name 7 of the certificate
//! ```

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use namecast_packet::tlv::{Element, Fields, NAME, Reader, Writer};
use namecast_packet::{DecodeError, Name, Problem};
use namecast_units::Timestamp;

const MEMBERS: u32 = 128;
const MEMBER: u32 = 130;
const KEY_DIGEST: u32 = 132;
const UNTIL: u32 = 134;
const ROLE: u32 = 136;
const EXCHANGE_KEY: u32 = 138;
const LABEL: u32 = 140;
const REVOCATIONS: u32 = 150;
const REVOCATION: u32 = 152;
const SINCE: u32 = 154;

/// Number of members, and of revocations, that a roster may have.
pub const MAX_ENTRIES: usize = 16_384;
/// Longest role and label, in octets.
pub const MAX_TEXT: usize = 64;

/// Who belongs to a root, and whose certificates were revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// Members, in no order.
    pub members: Vec<Member>,
    /// Revocations, in no order.
    pub revocations: Vec<Revocation>,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Name of the certificate, whole.
    pub certificate: Name,
    /// SHA-256 digest of the public key's SubjectPublicKeyInfo.
    pub key_digest: [u8; 32],
    /// Last moment of the certificate.
    pub until: Timestamp,
    /// Role, as text for people, such as `member`.
    pub role: String,
    /// X25519 key, by which it reads sealed streams.
    pub exchange_key: Option<[u8; 32]>,
    /// Name shown to people; empty if there is none.
    pub label: String,
}

/// A revocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// SHA-256 digest of the public key's SubjectPublicKeyInfo.
    pub key_digest: [u8; 32],
    /// From when on the key counts no more.
    pub since: Timestamp,
    /// Name of the certificate; empty if it is not known.
    pub certificate: Name,
}

impl Member {
    /// Returns who it is: the certificate's name before `KEY`.
    pub fn identity(&self) -> Name {
        self.certificate
            .prefix(self.certificate.len().saturating_sub(4))
    }
}

impl Roster {
    /// Returns when keys were revoked, by their digests.
    pub fn revoked(&self) -> BTreeMap<[u8; 32], Timestamp> {
        let mut revoked = BTreeMap::new();
        for revocation in &self.revocations {
            let since = revoked
                .entry(revocation.key_digest)
                .or_insert(revocation.since);
            *since = revocation.since.min(*since);
        }
        revoked
    }

    /// Returns the X25519 keys of the members whose certificates are valid, and not revoked, at `now`: those who may open sealed streams.
    pub fn readers(&self, now: Timestamp) -> BTreeSet<[u8; 32]> {
        let revoked = self.revoked();
        let members = self.members.iter();
        let valid = members.filter(|it| it.until > now && !revoked.contains_key(&it.key_digest));
        valid.filter_map(|it| it.exchange_key).collect()
    }

    /// Returns the roster as the content of its object.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.nested(MEMBERS, |writer| {
            for member in &self.members {
                writer.nested(MEMBER, |writer| member.encode(writer));
            }
        });
        writer.nested(REVOCATIONS, |writer| {
            for revocation in &self.revocations {
                writer.nested(REVOCATION, |writer| revocation.encode(writer));
            }
        });
        writer.finish()
    }

    /// Decodes a roster that fills `octets` whole.
    ///
    /// # Errors
    /// The first violation of the format, with field and offset.
    pub fn decode(octets: &Bytes) -> Result<Self, DecodeError> {
        const ORDER: [u32; 2] = [MEMBERS, REVOCATIONS];
        let mut roster = Self::default();
        let mut fields = Fields::new(Reader::new(octets), "Roster", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                MEMBERS => roster.members = entries(octets, &field, MEMBER, Member::decode)?,
                _ => {
                    let read = Revocation::decode;
                    roster.revocations = entries(octets, &field, REVOCATION, read)?;
                }
            }
        }
        Ok(roster)
    }
}

/// Reads the elements of `kind` in `list`.
fn entries<T>(
    octets: &Bytes,
    list: &Element,
    kind: u32,
    read: impl Fn(&Bytes, &Element) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut entries = Vec::new();
    let mut reader = Reader::within(octets, list.value.clone());
    while let Some(entry) = reader.element("Roster entry")? {
        if entry.element_type != kind {
            return Err(entry.error("Roster entry", Problem::UnexpectedType(entry.element_type)));
        }
        if entries.len() == MAX_ENTRIES {
            return Err(entry.error("Roster entry", Problem::ValueOutOfRange));
        }
        entries.push(read(octets, &entry)?);
    }
    Ok(entries)
}

impl Member {
    fn encode(&self, writer: &mut Writer) {
        self.certificate.encode(writer);
        writer.element(KEY_DIGEST, &self.key_digest);
        writer.number(UNTIL, self.until.as_micros());
        writer.element(ROLE, self.role.as_bytes());
        if let Some(key) = &self.exchange_key {
            writer.element(EXCHANGE_KEY, key);
        }
        if !self.label.is_empty() {
            writer.element(LABEL, self.label.as_bytes());
        }
    }

    fn decode(octets: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        const ORDER: [u32; 6] = [NAME, KEY_DIGEST, UNTIL, ROLE, EXCHANGE_KEY, LABEL];
        let missing = |field| element.error(field, Problem::Missing);
        let (mut certificate, mut key_digest, mut until, mut role) = (None, None, None, None);
        let (mut exchange_key, mut label) = (None, String::new());
        let reader = Reader::within(octets, element.value.clone());
        let mut fields = Fields::new(reader, "Member", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                NAME => certificate = Some(Name::from_element(octets, &field)?.detached()),
                KEY_DIGEST => key_digest = Some(field.array("KeyDigest", octets)?),
                UNTIL => until = Some(field.number("Until", octets)?),
                ROLE => role = Some(text(octets, &field, "Role")?),
                EXCHANGE_KEY => exchange_key = Some(field.array("ExchangeKey", octets)?),
                _ => label = text(octets, &field, "Label")?,
            }
        }
        Ok(Self {
            certificate: certificate.ok_or_else(|| missing("Name"))?,
            key_digest: key_digest.ok_or_else(|| missing("KeyDigest"))?,
            until: Timestamp::from_micros(until.ok_or_else(|| missing("Until"))?),
            role: role.ok_or_else(|| missing("Role"))?,
            exchange_key,
            label,
        })
    }
}

impl Revocation {
    fn encode(&self, writer: &mut Writer) {
        writer.element(KEY_DIGEST, &self.key_digest);
        writer.number(SINCE, self.since.as_micros());
        self.certificate.encode(writer);
    }

    fn decode(octets: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        const ORDER: [u32; 3] = [KEY_DIGEST, SINCE, NAME];
        let missing = |field| element.error(field, Problem::Missing);
        let (mut key_digest, mut since, mut certificate) = (None, None, Name::root());
        let reader = Reader::within(octets, element.value.clone());
        let mut fields = Fields::new(reader, "Revocation", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                KEY_DIGEST => key_digest = Some(field.array("KeyDigest", octets)?),
                SINCE => since = Some(field.number("Since", octets)?),
                _ => certificate = Name::from_element(octets, &field)?.detached(),
            }
        }
        Ok(Self {
            key_digest: key_digest.ok_or_else(|| missing("KeyDigest"))?,
            since: Timestamp::from_micros(since.ok_or_else(|| missing("Since"))?),
            certificate,
        })
    }
}

fn text(octets: &Bytes, element: &Element, field: &'static str) -> Result<String, DecodeError> {
    let text = &octets[element.value.clone()];
    if text.len() > MAX_TEXT {
        return Err(element.error(field, Problem::BadLength(text.len())));
    }
    let text = core::str::from_utf8(text);
    let text = text.map_err(|_| element.error(field, Problem::Malformed))?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, exchange_key: Option<[u8; 32]>, label: &str) -> Member {
        Member {
            certificate: format!("/calls/fox/{id}/KEY/1/fox/v=1").parse().unwrap(),
            key_digest: [1; 32],
            until: Timestamp::from_micros(1_760_000_000_000_000),
            role: "member".to_owned(),
            exchange_key,
            label: label.to_owned(),
        }
    }

    fn revocation(digest: u8, since: u64) -> Revocation {
        Revocation {
            key_digest: [digest; 32],
            since: Timestamp::from_micros(since),
            certificate: "/calls/fox/eve/KEY/1/fox/v=1".parse().unwrap(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let roster = Roster {
            members: vec![
                member("ann", Some([7; 32]), "Ann \u{1F98A}"),
                member("bob", None, ""),
            ],
            revocations: vec![revocation(9, 5), revocation(9, 3), revocation(8, 4)],
        };
        assert_eq!(Roster::decode(&roster.encode()), Ok(roster.clone()));
        assert_eq!(Roster::decode(&Bytes::new()), Ok(Roster::default()));
        assert_eq!(roster.members[0].identity().to_string(), "/calls/fox/ann");
        // The earliest of two revocations of one key.
        let times = [([8; 32], 4), ([9; 32], 3)].map(|(key, at)| (key, Timestamp::from_micros(at)));
        assert_eq!(roster.revoked(), times.into());
    }

    /// Each octet cut off, and each flipped: an error, or a roster that is written as it is read.
    #[test]
    fn damaged_rosters_are_refused_or_read_as_they_are() {
        let roster = Roster {
            members: vec![member("ann", Some([7; 32]), "Ann")],
            revocations: vec![revocation(9, 5)],
        };
        let octets = roster.encode();
        for length in 1..octets.len() {
            let read = Roster::decode(&octets.slice(..length));
            assert!(
                read.is_err() || read.is_ok_and(|it| it != roster),
                "{length}"
            );
        }
        for bit in 0..octets.len() * 8 {
            let mut changed = octets.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = Roster::decode(&changed.into()) {
                assert_eq!(Roster::decode(&read.encode()), Ok(read));
            }
        }
    }

    #[test]
    fn rosters_keep_to_their_limits() {
        let of = |count: usize| Roster {
            members: Vec::new(),
            revocations: vec![revocation(1, 1); count],
        };
        assert!(Roster::decode(&of(MAX_ENTRIES).encode()).is_ok());
        let octets = of(100_000).encode();
        let error = Roster::decode(&octets).unwrap_err();
        assert_eq!(error.field, "Roster entry");
        assert_eq!(error.problem, Problem::ValueOutOfRange);
        assert!(error.offset < octets.len() / 5, "{error}");
        let long = Roster {
            members: vec![member("ann", None, &"x".repeat(MAX_TEXT + 1))],
            revocations: Vec::new(),
        };
        let error = Roster::decode(&long.encode()).unwrap_err();
        assert_eq!(
            (error.field, error.problem),
            ("Label", Problem::BadLength(65))
        );
    }

    #[test]
    fn readers_are_members_with_a_valid_certificate_and_a_key() {
        let at = Timestamp::from_micros;
        let member = |id: u8, until: u64, exchange_key| Member {
            certificate: format!("/calls/fox/m{id}/KEY/1/fox/v=1").parse().unwrap(),
            key_digest: [id; 32],
            until: at(until),
            role: "member".to_owned(),
            exchange_key,
            label: String::new(),
        };
        let roster = Roster {
            members: vec![
                member(1, 100, Some([1; 32])),
                member(2, 50, Some([2; 32])),
                member(3, 100, None),
                member(4, 100, Some([4; 32])),
            ],
            revocations: vec![Revocation {
                key_digest: [4; 32],
                since: at(1),
                certificate: Name::root(),
            }],
        };
        assert_eq!(roster.readers(at(49)), [[1; 32], [2; 32]].into());
        assert_eq!(roster.readers(at(50)), [[1; 32]].into());
    }
}
