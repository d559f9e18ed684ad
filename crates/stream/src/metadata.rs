//! Content of metadata and of newest-sample Data: `docs/stream-format.md`, section "Metadata and newest sample".

use bytes::Bytes;

use namecast_packet::tlv::{self, Element, Fields, Reader, Writer};
use namecast_packet::{DecodeError, Name, Nonce, Problem};
use namecast_units::Timestamp;

/// Most Latest elements in metadata: every rung of the largest catalogue.
pub const MAX_LATEST: usize = crate::catalogue::MAX_STREAMS * crate::catalogue::MAX_RUNGS;

const CATALOGUE: u32 = 160;
const LATEST: u32 = 162;
const KEY_SEQUENCE: u32 = 164;
const DELTA_SEQUENCE: u32 = 166;
const KEY_POSITION: u32 = 168;
const SERVED_AT: u32 = 170;
const NEXT_DELTA: u32 = 172;
const NONCE: u32 = 174;
const TAKEN_OVER_AT: u32 = 194;
const ROSTER_VERSION: u32 = 202;

/// What a rung had published when the producer answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// Name of the rung.
    pub rung: Name,
    /// Newest key sample; `None` before the first.
    pub key_sequence: Option<u64>,
    /// Newest delta sample; `None` before the first.
    pub delta_sequence: Option<u64>,
    /// Playback position of the newest key sample; `None` before the first.
    pub key_position: Option<u64>,
    /// The producer's wall clock when it answered.
    pub served_at: Timestamp,
    /// The delta sample that follows the newest key sample, published or not; `None` before the first key sample, and where
    /// the producer does not say.
    pub next_delta: Option<u64>,
}

impl Latest {
    fn encode(&self, writer: &mut Writer) {
        writer.nested(LATEST, |latest| {
            self.rung.encode(latest);
            let numbers = [
                (KEY_SEQUENCE, self.key_sequence),
                (DELTA_SEQUENCE, self.delta_sequence),
                (KEY_POSITION, self.key_position),
                (SERVED_AT, Some(self.served_at.as_micros())),
                (NEXT_DELTA, self.next_delta),
            ];
            for (element_type, number) in numbers {
                if let Some(number) = number {
                    latest.number(element_type, number);
                }
            }
        });
    }

    fn decode(content: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        const ORDER: [u32; 6] = [
            tlv::NAME,
            KEY_SEQUENCE,
            DELTA_SEQUENCE,
            KEY_POSITION,
            SERVED_AT,
            NEXT_DELTA,
        ];
        let (mut rung, mut served_at, mut next_delta) = (None, None, None);
        let (mut key_sequence, mut delta_sequence, mut key_position) = (None, None, None);
        let reader = Reader::within(content, element.value.clone());
        let mut fields = Fields::new(reader, "Latest", &ORDER);
        while let Some(field) = fields.field()? {
            let number = |name| field.number(name, content);
            match field.element_type {
                tlv::NAME => rung = Some(Name::from_element(content, &field)?),
                KEY_SEQUENCE => key_sequence = Some(number("KeySequence")?),
                DELTA_SEQUENCE => delta_sequence = Some(number("DeltaSequence")?),
                KEY_POSITION => key_position = Some(number("KeyPosition")?),
                SERVED_AT => served_at = Some(Timestamp::from_micros(number("ServedAt")?)),
                _ => next_delta = Some(number("NextDelta")?),
            }
        }
        Ok(Self {
            rung: rung.ok_or(element.error("Name", Problem::Missing))?,
            key_sequence,
            delta_sequence,
            key_position,
            served_at: served_at.ok_or(element.error("ServedAt", Problem::Missing))?,
            next_delta,
        })
    }
}

/// Content of `/<root>/32=metadata`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Name of the current catalogue, without segment number.
    pub catalogue_name: Name,
    /// Content of the catalogue, unless it is too large to travel along.
    pub catalogue: Option<Bytes>,
    /// What each rung has published.
    pub latest: Vec<Latest>,
    /// Nonce of the Interest that this answers.
    pub nonce: Option<Nonce>,
    /// When the producer took the name over from another one, by its clock; `None` if it did not.
    pub taken_over_at: Option<Timestamp>,
    /// Version of the room's roster that the producer knows; `None`: it is in no room.
    pub roster_version: Option<u64>,
}

impl Metadata {
    /// Returns the Content.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        self.catalogue_name.encode(&mut writer);
        if let Some(catalogue) = &self.catalogue {
            writer.element(CATALOGUE, catalogue);
        }
        for latest in &self.latest {
            latest.encode(&mut writer);
        }
        encode_nonce(self.nonce, &mut writer);
        if let Some(at) = self.taken_over_at {
            writer.number(TAKEN_OVER_AT, at.as_micros());
        }
        if let Some(version) = self.roster_version {
            writer.number(ROSTER_VERSION, version);
        }
        writer.finish()
    }

    /// Returns the Content in at most `size` octets: without the catalogue if it does not fit, then without the last rungs.
    pub fn encode_within(mut self, size: usize) -> Bytes {
        let mut content = self.encode();
        if content.len() > size {
            self.catalogue = None;
            content = self.encode();
        }
        while content.len() > size && self.latest.pop().is_some() {
            content = self.encode();
        }
        content
    }

    /// Reads Content; what it holds shares its memory.
    ///
    /// # Errors
    /// The first violation of the format; offsets count from the start of the Content.
    pub fn decode(content: &Bytes) -> Result<Self, DecodeError> {
        const ORDER: [u32; 6] = [
            tlv::NAME,
            CATALOGUE,
            LATEST,
            NONCE,
            TAKEN_OVER_AT,
            ROSTER_VERSION,
        ];
        let (mut name, mut catalogue, mut nonce) = (None, None, None);
        let (mut taken_over_at, mut roster_version) = (None, None);
        let mut latest = Vec::new();
        let mut fields = Fields::new(Reader::new(content), "metadata", &ORDER).repeating(LATEST);
        while let Some(field) = fields.field()? {
            match field.element_type {
                tlv::NAME => name = Some(Name::from_element(content, &field)?),
                CATALOGUE => catalogue = Some(content.slice(field.value)),
                LATEST if latest.len() == MAX_LATEST => {
                    return Err(field.error("Latest", Problem::ValueOutOfRange));
                }
                LATEST => latest.push(Latest::decode(content, &field)?),
                NONCE => nonce = Some(Nonce(field.array("Nonce", content)?)),
                TAKEN_OVER_AT => {
                    let micros = field.number("TakenOverAt", content)?;
                    taken_over_at = Some(Timestamp::from_micros(micros));
                }
                _ => roster_version = Some(field.number("RosterVersion", content)?),
            }
        }
        Ok(Self {
            catalogue_name: name.ok_or(DecodeError::new("Name", 0, Problem::Missing))?,
            catalogue,
            latest,
            nonce,
            taken_over_at,
            roster_version,
        })
    }
}

/// Content of `/<root>/<stream>/<rung>/32=latest`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewestSample {
    /// What the rung has published.
    pub latest: Latest,
    /// Nonce of the Interest that this answers.
    pub nonce: Option<Nonce>,
}

impl NewestSample {
    /// Returns the Content.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        self.latest.encode(&mut writer);
        encode_nonce(self.nonce, &mut writer);
        writer.finish()
    }

    /// Reads Content; what it holds shares its memory.
    ///
    /// # Errors
    /// The first violation of the format; offsets count from the start of the Content.
    pub fn decode(content: &Bytes) -> Result<Self, DecodeError> {
        let (mut latest, mut nonce) = (None, None);
        let mut fields = Fields::new(Reader::new(content), "newest sample", &[LATEST, NONCE]);
        while let Some(field) = fields.field()? {
            match field.element_type {
                LATEST => latest = Some(Latest::decode(content, &field)?),
                _ => nonce = Some(Nonce(field.array("Nonce", content)?)),
            }
        }
        Ok(Self {
            latest: latest.ok_or(DecodeError::new("Latest", 0, Problem::Missing))?,
            nonce,
        })
    }
}

fn encode_nonce(nonce: Option<Nonce>, writer: &mut Writer) {
    if let Some(nonce) = nonce {
        writer.element(NONCE, &nonce.0);
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn latest() -> Latest {
        Latest {
            rung: "/a/v/r".parse().unwrap(),
            key_sequence: Some(5),
            delta_sequence: Some(300),
            key_position: Some(0),
            served_at: Timestamp::from_micros(0x1_0000),
            next_delta: Some(270),
        }
    }

    fn metadata() -> Metadata {
        Metadata {
            catalogue_name: "/a/catalogue/v=1".parse().unwrap(),
            catalogue: Some(Bytes::from_static(b"{}")),
            latest: vec![latest(), latest()],
            nonce: Some(Nonce([1, 2, 3, 4])),
            taken_over_at: Some(Timestamp::from_micros(5)),
            roster_version: Some(300),
        }
    }

    #[test]
    fn newest_sample_is_encoded_as_worked_by_hand() {
        let newest = NewestSample {
            latest: latest(),
            nonce: Some(Nonce([1, 2, 3, 4])),
        };
        #[rustfmt::skip]
        let expected = [
            162, 31,
                7, 9, 8, 1, b'a', 8, 1, b'v', 8, 1, b'r',
                164, 1, 5, 166, 2, 1, 44, 168, 1, 0, 170, 4, 0, 1, 0, 0, 172, 2, 1, 14,
            174, 4, 1, 2, 3, 4,
        ];
        assert_eq!(newest.encode(), expected[..]);
        assert_eq!(NewestSample::decode(&newest.encode()), Ok(newest));
    }

    #[test]
    fn metadata_begins_with_the_name_and_reads_back() {
        let content = metadata().encode();
        let name = metadata().catalogue_name;
        assert_eq!(content[0], 7);
        assert_eq!(content[2..2 + name.value().len()], name.value()[..]);
        assert_eq!(Metadata::decode(&content), Ok(metadata()));
        let bare = Metadata {
            catalogue: None,
            latest: vec![Latest {
                key_sequence: None,
                delta_sequence: None,
                key_position: None,
                next_delta: None,
                ..latest()
            }],
            nonce: None,
            taken_over_at: None,
            roster_version: None,
            ..metadata()
        };
        assert_eq!(Metadata::decode(&bare.encode()), Ok(bare));
    }

    #[test]
    fn what_does_not_fit_is_left_out_catalogue_first() {
        let size = metadata().encode().len();
        let within = |size| Metadata::decode(&metadata().encode_within(size)).unwrap();
        assert_eq!(within(size), metadata());
        let smaller = within(size - 1);
        assert_eq!((smaller.catalogue, smaller.latest.len()), (None, 2));
        assert_eq!(within(size - 5).latest.len(), 1);
    }

    #[test]
    fn elements_of_later_versions_are_skipped_unless_critical() {
        let mut content = metadata().encode().to_vec();
        content.extend([204, 1, 9]);
        assert_eq!(Metadata::decode(&content.clone().into()), Ok(metadata()));
        content.extend([205, 0]);
        let error = Metadata::decode(&content.into()).unwrap_err();
        assert_eq!(error.problem, Problem::Critical(205));
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |content: &[u8]| Metadata::decode(&Bytes::copy_from_slice(content));
        assert_eq!(
            missing(&[]),
            Err(DecodeError::new("Name", 0, Problem::Missing))
        );
        // Latest without a name, then one without ServedAt.
        let error = missing(&[7, 0, 162, 3, 170, 1, 1]).unwrap_err();
        assert_eq!(error, DecodeError::new("Name", 2, Problem::Missing));
        let error = missing(&[7, 0, 162, 2, 7, 0]).unwrap_err();
        assert_eq!(error, DecodeError::new("ServedAt", 2, Problem::Missing));
    }

    #[test]
    fn the_number_of_rungs_is_bounded() {
        let many = |count| Metadata {
            latest: vec![latest(); count],
            ..metadata()
        };
        assert!(Metadata::decode(&many(MAX_LATEST).encode()).is_ok());
        let error = Metadata::decode(&many(MAX_LATEST + 1).encode()).unwrap_err();
        assert_eq!(
            (error.field, error.problem),
            ("Latest", Problem::ValueOutOfRange)
        );
    }

    #[test]
    fn damaged_content_is_refused_or_read_but_never_panics() {
        let mut random = Random::from_seed(11);
        let good = metadata().encode();
        for _ in 0..20_000 {
            let mut content = good.to_vec();
            for _ in 0..=random.below(3) {
                let at = usize::try_from(random.below(content.len() as u64)).unwrap();
                content[at] = random.next_u64() as u8;
            }
            content.truncate(usize::try_from(random.below(2 * good.len() as u64)).unwrap());
            let content = Bytes::from(content);
            if let Ok(read) = Metadata::decode(&content) {
                assert_eq!(Metadata::decode(&read.encode()), Ok(read));
            }
            let _: Result<_, _> = NewestSample::decode(&content);
        }
    }
}
