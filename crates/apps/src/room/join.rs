//! Invitations: a link has a token, and whoever has the token is certified.
//!
//! ```text
//!  #room=/calls/fox&key=<digest of the anchor's key>&t=<token>
//!
//!  /<root>/32=join/<ParametersSha256Digest>   signed with the newcomer's key
//!     Join 170 ─ Invitation 172, Key 174, ExchangeKey 138, Label 140, Tag 176
//!  answered by the anchor with
//!     Welcome 180 ─ SchemaVersion 182, RosterVersion 184, Certificate 186
//! ```
//!
//! The token is not in the request: the tag is HMAC-SHA256 under SHA-256(token), over root, anchor and each field of the request. So whoever carries
//! a request can neither put another key into it nor make one of its own, and one that is sent again is answered with the same certificate.

use core::fmt;
use core::str::FromStr;

use bytes::Bytes;
use namecast_packet::signature::{HmacSigner, HmacVerifier};
use namecast_packet::tlv::{Element, Fields, Reader, Writer};
use namecast_packet::{
    Certificate, Data, DecodeError, KeyLocator, Name, Problem, PublicKey, Signer as _,
    Verifier as _, hex_decode,
};
use sha2::{Digest as _, Sha256};

use crate::trust::MAX_TEXT;

/// Octets of a token.
pub const TOKEN_SIZE: usize = 16;

const JOIN: u32 = 170;
const INVITATION: u32 = 172;
const KEY: u32 = 174;
const EXCHANGE_KEY: u32 = 138;
const LABEL: u32 = 140;
const TAG: u32 = 176;
const WELCOME: u32 = 180;
const SCHEMA_VERSION: u32 = 182;
const ROSTER_VERSION: u32 = 184;
const CERTIFICATE: u32 = 186;

/// Keyword behind the root.
const KEYWORD: &str = "join";
/// Purpose of the tag, so that no other HMAC under the same key passes for one.
const PURPOSE: &[u8] = b"namecast join, version 1";

/// Returns the name of requests to join `root`, without the digest of their parameters.
pub fn join_name(root: &Name) -> Name {
    root.builder().keyword(KEYWORD).finish()
}

/// A link that invites to a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Root of the room.
    pub root: Name,
    /// SHA-256 digest of the anchor's public key.
    pub anchor: [u8; 32],
    /// Token.
    pub token: [u8; TOKEN_SIZE],
}

/// Why a link is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the link has no {0}: write all of it, as it was printed: …#room=…&key=…&t=…")]
pub struct NotALink(&'static str);

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |octets: &[u8]| {
            let digits = octets.iter().map(|octet| format!("{octet:02x}"));
            digits.collect::<String>()
        };
        let (anchor, token) = (hex(&self.anchor), hex(&self.token));
        write!(f, "#room={}&key={anchor}&t={token}", self.root)
    }
}

impl FromStr for Link {
    type Err = NotALink;

    /// Reads what is behind the `#`.
    fn from_str(text: &str) -> Result<Self, NotALink> {
        let (_, fragment) = text.split_once('#').ok_or(NotALink("#"))?;
        let field = |key: &str| {
            let mut fields = fragment.split('&').filter_map(|it| it.split_once('='));
            fields.find_map(|(name, value)| (name == key).then_some(value))
        };
        let root = field("room").and_then(|it| it.parse().ok());
        let octets = |key: &str| field(key).and_then(hex_decode);
        Ok(Self {
            root: root.ok_or(NotALink("room"))?,
            anchor: octets("key")
                .and_then(|it| it.try_into().ok())
                .ok_or(NotALink("key"))?,
            token: octets("t")
                .and_then(|it| it.try_into().ok())
                .ok_or(NotALink("token"))?,
        })
    }
}

/// Secret of an invitation: the SHA-256 digest of its token, which is all that a host keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InvitationSecret([u8; 32]);

impl fmt::Debug for InvitationSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InvitationSecret")
    }
}

impl InvitationSecret {
    /// Returns the secret of the invitation with this token.
    pub fn of_token(token: &[u8; TOKEN_SIZE]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Returns the secret with these octets.
    pub const fn from_octets(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// Returns the secret's octets.
    pub const fn octets(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns what names the invitation in requests: the first octets of the secret's SHA-256 digest.
    pub fn id(&self) -> [u8; 8] {
        let digest: [u8; 32] = Sha256::digest(self.0).into();
        *digest.first_chunk().expect("32 octets are more than 8")
    }
}

/// A request to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Which invitation.
    pub invitation: [u8; 8],
    /// The newcomer's public key.
    pub key: PublicKey,
    /// The newcomer's X25519 key.
    pub exchange_key: [u8; 32],
    /// Name shown to people; empty if there is none.
    pub label: String,
    tag: [u8; 32],
}

impl Join {
    /// Makes a request to join `root`, whose anchor's key has the digest `anchor`, with an invitation.
    pub fn new(
        (root, anchor): (&Name, &[u8; 32]),
        secret: &InvitationSecret,
        (key, exchange_key): (PublicKey, [u8; 32]),
        label: String,
    ) -> Self {
        let mut join = Self {
            invitation: secret.id(),
            key,
            exchange_key,
            label,
            tag: [0; 32],
        };
        let mac = HmacSigner::new(secret.octets(), KeyLocator::Name(Name::root()));
        let tag = mac.sign(&join.tagged(root, anchor));
        join.tag = (*tag).try_into().expect("HMAC-SHA256 has 32 octets");
        join
    }

    /// Returns the octets that the tag covers: each field behind its length.
    fn tagged(&self, root: &Name, anchor: &[u8; 32]) -> Vec<u8> {
        let key = self.key.to_spki();
        let fields: [&[u8]; 7] = [
            PURPOSE,
            root.value(),
            anchor,
            &self.invitation,
            &key,
            &self.exchange_key,
            self.label.as_bytes(),
        ];
        let mut octets = Vec::new();
        for field in fields {
            octets.extend_from_slice(&(field.len() as u64).to_be_bytes());
            octets.extend_from_slice(field);
        }
        octets
    }

    /// Returns whether it was made with this secret, for this room.
    pub fn is_by(&self, (root, anchor): (&Name, &[u8; 32]), secret: &InvitationSecret) -> bool {
        let info = HmacSigner::new(&[], KeyLocator::Name(Name::root())).info();
        let verifier = HmacVerifier::new(secret.octets());
        let tagged = self.tagged(root, anchor);
        verifier.verify(&info, &tagged, &self.tag).is_ok()
    }

    /// Returns it as the parameters of an Interest.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.nested(JOIN, |writer| {
            writer.element(INVITATION, &self.invitation);
            writer.element(KEY, &self.key.to_spki());
            writer.element(EXCHANGE_KEY, &self.exchange_key);
            if !self.label.is_empty() {
                writer.element(LABEL, self.label.as_bytes());
            }
            writer.element(TAG, &self.tag);
        });
        writer.finish()
    }

    /// Decodes the parameters of an Interest.
    ///
    /// # Errors
    /// The first violation of the format, with field and offset. Labels have no control characters.
    pub fn decode(octets: &Bytes) -> Result<Self, DecodeError> {
        const ORDER: [u32; 5] = [INVITATION, KEY, EXCHANGE_KEY, LABEL, TAG];
        let element = Reader::new(octets).only("Join", JOIN)?;
        let reader = Reader::within(octets, element.value.clone());
        let mut fields = Fields::new(reader, "Join", &ORDER);
        let (mut invitation, mut key, mut exchange_key, mut tag) = (None, None, None, None);
        let mut label = String::new();
        while let Some(field) = fields.field()? {
            match field.element_type {
                INVITATION => invitation = Some(field.array("Invitation", octets)?),
                KEY => {
                    let read = PublicKey::from_spki(&octets[field.value.clone()]);
                    let error = field.error("Key", Problem::Malformed);
                    key = Some(read.map_err(|_| error)?);
                }
                EXCHANGE_KEY => exchange_key = Some(field.array("ExchangeKey", octets)?),
                LABEL => label = text(octets, &field)?,
                _ => tag = Some(field.array("Tag", octets)?),
            }
        }
        let missing = |field| element.error(field, Problem::Missing);
        Ok(Self {
            invitation: invitation.ok_or_else(|| missing("Invitation"))?,
            key: key.ok_or_else(|| missing("Key"))?,
            exchange_key: exchange_key.ok_or_else(|| missing("ExchangeKey"))?,
            label,
            tag: tag.ok_or_else(|| missing("Tag"))?,
        })
    }
}

fn text(octets: &Bytes, field: &Element) -> Result<String, DecodeError> {
    let text = &octets[field.value.clone()];
    if text.is_empty() || text.len() > MAX_TEXT {
        return Err(field.error("Label", Problem::BadLength(text.len())));
    }
    let text = core::str::from_utf8(text).ok();
    let text = text.filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| field.error("Label", Problem::Malformed))?;
    Ok(text.to_owned())
}

/// Answer to a request to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Newest version of the schema; the newcomer accepts none before.
    pub schema_version: u64,
    /// Newest version of the roster, likewise.
    pub roster_version: u64,
    /// The newcomer's certificate.
    pub certificate: Certificate,
}

impl Welcome {
    /// Returns it as the content of the answer.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        writer.nested(WELCOME, |writer| {
            writer.number(SCHEMA_VERSION, self.schema_version);
            writer.number(ROSTER_VERSION, self.roster_version);
            writer.element(CERTIFICATE, self.certificate.data().wire());
        });
        writer.finish()
    }

    /// Decodes the content of the answer.
    ///
    /// # Errors
    /// The first violation of the format, with field and offset.
    pub fn decode(octets: &Bytes) -> Result<Self, DecodeError> {
        const ORDER: [u32; 3] = [SCHEMA_VERSION, ROSTER_VERSION, CERTIFICATE];
        let element = Reader::new(octets).only("Welcome", WELCOME)?;
        let reader = Reader::within(octets, element.value.clone());
        let mut fields = Fields::new(reader, "Welcome", &ORDER);
        let (mut schema_version, mut roster_version, mut certificate) = (None, None, None);
        while let Some(field) = fields.field()? {
            match field.element_type {
                SCHEMA_VERSION => schema_version = Some(field.number("SchemaVersion", octets)?),
                ROSTER_VERSION => roster_version = Some(field.number("RosterVersion", octets)?),
                _ => {
                    let data = Data::decode(octets.slice(field.value))?;
                    certificate = Some(Certificate::decode(data)?);
                }
            }
        }
        let missing = |field| element.error(field, Problem::Missing);
        Ok(Self {
            schema_version: schema_version.ok_or_else(|| missing("SchemaVersion"))?,
            roster_version: roster_version.ok_or_else(|| missing("RosterVersion"))?,
            certificate: certificate.ok_or_else(|| missing("Certificate"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::{Ed25519Signer, KeyPair as _};

    use super::*;

    const ANCHOR: [u8; 32] = [5; 32];

    fn root() -> Name {
        "/calls/fox".parse().unwrap()
    }

    fn key(seed: u8) -> PublicKey {
        Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(root())).public_key()
    }

    fn secret(token: u8) -> InvitationSecret {
        InvitationSecret::of_token(&[token; TOKEN_SIZE])
    }

    fn join(label: &str) -> Join {
        let keys = (key(1), [7; 32]);
        Join::new((&root(), &ANCHOR), &secret(9), keys, label.to_owned())
    }

    #[test]
    fn links_are_read_as_they_are_written() {
        let link = Link {
            root: root(),
            anchor: [0xab; 32],
            token: [0x01; TOKEN_SIZE],
        };
        let text = link.to_string();
        assert!(text.starts_with("#room=/calls/fox&key=abab"), "{text}");
        assert!(
            text.ends_with("&t=01010101010101010101010101010101"),
            "{text}"
        );
        assert_eq!(format!("https://example.org/{text}").parse(), Ok(link));
        for (text, missing) in [
            ("https://example.org/", "#"),
            ("#key=00", "room"),
            ("#room=/a&key=00&t=00", "key"),
            (&text[..text.len() - 2], "token"),
        ] {
            assert_eq!(text.parse::<Link>(), Err(NotALink(missing)), "{text}");
        }
    }

    /// The tag is of this room, this anchor and this secret, and covers every field.
    #[test]
    fn a_tag_covers_everything() {
        for label in ["Ann \u{1F98A}", ""] {
            let join = join(label);
            assert_eq!(Join::decode(&join.encode()), Ok(join.clone()));
            assert!(join.is_by((&root(), &ANCHOR), &secret(9)));
            assert!(!join.is_by((&root(), &ANCHOR), &secret(8)));
            assert!(!join.is_by((&root(), &[6; 32]), &secret(9)));
            assert!(!join.is_by((&"/calls/hen".parse().unwrap(), &ANCHOR), &secret(9)));
            let changed = [
                Join {
                    key: key(2),
                    ..join.clone()
                },
                Join {
                    exchange_key: [8; 32],
                    ..join.clone()
                },
                Join {
                    label: "Bob".to_owned(),
                    ..join.clone()
                },
                Join {
                    invitation: [0; 8],
                    ..join
                },
            ];
            let mut right = changed
                .iter()
                .filter(|it| it.is_by((&root(), &ANCHOR), &secret(9)));
            assert_eq!(right.next(), None);
        }
    }

    /// Each octet cut off and each bit flipped: an error, or a request that is written as it is read and that nobody made.
    #[test]
    fn damaged_requests_are_refused() {
        let octets = join("Ann").encode();
        for length in 0..octets.len() {
            assert!(Join::decode(&octets.slice(..length)).is_err(), "{length}");
        }
        for bit in 0..octets.len() * 8 {
            let mut changed = octets.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(read) = Join::decode(&changed.into()) {
                assert_eq!(Join::decode(&read.encode()), Ok(read.clone()));
                assert!(!read.is_by((&root(), &ANCHOR), &secret(9)), "bit {bit}");
            }
        }
        let error = Join::decode(&join("Ann\u{7}").encode()).unwrap_err();
        assert_eq!((error.field, error.problem), ("Label", Problem::Malformed));
        let error = Join::decode(&join(&"x".repeat(65)).encode()).unwrap_err();
        assert_eq!(error.problem, Problem::BadLength(65));
    }
}
