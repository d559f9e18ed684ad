//! Key boxes: secrets of steps, each sealed for one reader by HPKE (RFC 9180).
//!
//! ```text
//!  /<root>/32=keys/<start>/seq=<generation>/seq=<step>/seg=<k>
//!
//!  Entry 160 for each reader, up to 64 a packet ─ Reader 162, Step 164, EncapsulatedKey 166, SealedSecret 168
//! ```
//!
//! A box has an entry of each reader of its step: that of the step at which the reader came, as it was made then. So one packet is enough for whoever
//! looks, whenever it came, and nothing is sealed twice.

use bytes::Bytes;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::rand_core::{TryCryptoRng, TryRng};
use hpke::{Deserializable as _, Kem, OpModeR, OpModeS, Serializable as _};
use namecast_packet::tlv::{Fields, Reader, Writer, number_size};
use namecast_packet::{Component, DecodeError, Name, Problem};
use namecast_stream::Seal;
use sha2::{Digest as _, Sha256};

use super::schedule::{SECRET, StepSecret, expand};
use crate::trust::ExchangeSecret;

const ENTRY: u32 = 160;
const READER: u32 = 162;
const STEP: u32 = 164;
const ENCAPSULATED_KEY: u32 = 166;
const SEALED_SECRET: u32 = 168;

/// Entries of one packet.
pub const MAX_ENTRIES: usize = 64;
/// Packets of one box.
pub const MAX_PACKETS: usize = 16;
/// Keyword behind the root.
const KEYS: &str = "keys";
/// Components behind the root: keyword, start, generation, step, segment.
const DEPTH: usize = 5;
/// Octets of a sealed secret: the secret and a tag.
const SEALED: usize = SECRET + 16;

/// Returns the name of the box under `root` that has the key of samples sealed so, without a segment.
pub fn box_name(root: &Name, seal: &Seal) -> Name {
    let start = Component {
        kind: Component::GENERIC,
        value: &seal.start,
    };
    let name = root.builder().keyword(KEYS).component(start);
    name.sequence(seal.generation)
        .sequence(seal.step.into())
        .finish()
}

/// Returns whose box under `root`, and which segment of it, `name` is the exact name of.
pub fn parse_box_name(root: &Name, name: &Name) -> Option<(Seal, u64)> {
    if !root.is_prefix_of(name) || name.len() != root.len() + DEPTH {
        return None;
    }
    let mut rest = name.components().skip(root.len());
    if rest.next()? != Component::keyword(KEYS) {
        return None;
    }
    let start = rest.next().filter(|it| it.kind == Component::GENERIC)?;
    // Numbers in a longer form than needed are no box's name.
    let mut number = |kind| {
        let component = rest.next()?;
        let number = component.number_of(kind)?;
        (number_size(number) == component.value.len()).then_some(number)
    };
    let generation = number(Component::SEQUENCE)?;
    let step = number(Component::SEQUENCE)?;
    let segment = number(Component::SEGMENT)?;
    let seal = Seal {
        start: start.value.try_into().ok()?,
        generation,
        step: u16::try_from(step).ok()?,
    };
    Some((seal, segment))
}

/// A secret, sealed for one reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxEntry {
    /// First octets of the SHA-256 digest of the reader's X25519 key.
    pub reader: [u8; 8],
    /// Step at which the reader came, whose secret it is.
    pub step: u16,
    encapsulated: [u8; 32],
    sealed: [u8; SEALED],
}

/// A reader's X25519 key that cannot be used: of small order, for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the X25519 key cannot be used")]
pub struct BadKey;

/// Returns what names the reader with this X25519 key.
pub(super) fn reader_of(key: &[u8; 32]) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::digest(key).into();
    *digest.first_chunk().expect("32 octets are more than 8")
}

impl BoxEntry {
    /// Seals the secret of the step of `info`, the box's name, for `reader`. `seed` must be drawn anew for each entry.
    pub(super) fn seal(
        (info, step): (&Name, u16),
        secret: &StepSecret,
        reader: &[u8; 32],
        seed: [u8; SECRET],
    ) -> Result<Self, BadKey> {
        let key = <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(reader).map_err(|_| BadKey)?;
        let (encapsulated, sealed) =
            hpke::single_shot_seal_with_rng::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
                &OpModeS::Base,
                &key,
                info.value(),
                secret.octets(),
                &[],
                &mut Seed { seed, taken: 0 },
            )
            .map_err(|_| BadKey)?;
        Ok(Self {
            reader: reader_of(reader),
            step,
            encapsulated: encapsulated.to_bytes().into(),
            sealed: sealed.try_into().map_err(|_| BadKey)?,
        })
    }

    /// Returns the secret, if it was sealed for `own` in the box called `info`.
    pub(super) fn open(&self, info: &Name, own: &ExchangeSecret) -> Option<StepSecret> {
        let own = <X25519HkdfSha256 as Kem>::PrivateKey::from_bytes(&own.to_bytes()).ok()?;
        let encapsulated =
            <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(&self.encapsulated).ok()?;
        let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &own,
            &encapsulated,
            info.value(),
            &self.sealed,
            &[],
        );
        Some(StepSecret::new(opened.ok()?.try_into().ok()?))
    }
}

/// Returns entries as the content of a packet.
pub fn encode_entries(entries: &[BoxEntry]) -> Bytes {
    let mut writer = Writer::default();
    for entry in entries {
        writer.nested(ENTRY, |writer| {
            writer.element(READER, &entry.reader);
            writer.number(STEP, entry.step.into());
            writer.element(ENCAPSULATED_KEY, &entry.encapsulated);
            writer.element(SEALED_SECRET, &entry.sealed);
        });
    }
    writer.finish()
}

/// Decodes the content of a packet of a box.
///
/// # Errors
/// The first violation of the format, with field and offset; more than 64 entries are one.
pub fn decode_entries(octets: &Bytes) -> Result<Vec<BoxEntry>, DecodeError> {
    let mut fields = Fields::new(Reader::new(octets), "KeyBox", &[ENTRY]).repeating(ENTRY);
    let mut entries = Vec::new();
    while let Some(element) = fields.field()? {
        const ORDER: [u32; 4] = [READER, STEP, ENCAPSULATED_KEY, SEALED_SECRET];
        if entries.len() == MAX_ENTRIES {
            return Err(element.error("Entry", Problem::ValueOutOfRange));
        }
        let (mut reader, mut step, mut encapsulated, mut sealed) = (None, None, None, None);
        let inner = Reader::within(octets, element.value.clone());
        let mut fields = Fields::new(inner, "Entry", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                READER => reader = Some(field.array("Reader", octets)?),
                STEP => {
                    let number = field.number("Step", octets)?;
                    let number = u16::try_from(number).ok();
                    let number = number.filter(|step| *step < super::MAX_STEPS);
                    let error = field.error("Step", Problem::ValueOutOfRange);
                    step = Some(number.ok_or(error)?);
                }
                ENCAPSULATED_KEY => encapsulated = Some(field.array("EncapsulatedKey", octets)?),
                _ => sealed = Some(field.array("SealedSecret", octets)?),
            }
        }
        let missing = |field| element.error(field, Problem::Missing);
        entries.push(BoxEntry {
            reader: reader.ok_or_else(|| missing("Reader"))?,
            step: step.ok_or_else(|| missing("Step"))?,
            encapsulated: encapsulated.ok_or_else(|| missing("EncapsulatedKey"))?,
            sealed: sealed.ok_or_else(|| missing("SealedSecret"))?,
        });
    }
    Ok(entries)
}

/// Random source for the ephemeral key of HPKE: blocks of HKDF-Expand of a seed that the runtime drew.
struct Seed {
    seed: [u8; SECRET],
    taken: u32,
}

impl TryRng for Seed {
    type Error = core::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut octets = [0; 4];
        self.try_fill_bytes(&mut octets)?;
        Ok(u32::from_le_bytes(octets))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut octets = [0; 8];
        self.try_fill_bytes(&mut octets)?;
        Ok(u64::from_le_bytes(octets))
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), Self::Error> {
        for block in octets.chunks_mut(SECRET) {
            let drawn = expand(&self.seed, &[b"block", &self.taken.to_be_bytes()]);
            self.taken += 1;
            block.copy_from_slice(&drawn[..block.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Seed {}
