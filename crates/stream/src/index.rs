//! Content of the time index: which samples a rung had at a time. `docs/stream-format.md`, section "Time index".
//!
//! The answer is a hint, which anybody may give: what it leads to is proven by the signed leads, which state their time.

use bytes::Bytes;
use core::time::Duration;

use namecast_packet::signature::DigestSigner;
use namecast_packet::tlv::{self, Element, Fields, Reader, Writer};
use namecast_packet::{Component, Data, DecodeError, Name, Problem};
use namecast_units::Timestamp;

use crate::catalogue::MAX_RUNGS;
use crate::names::{INDEX, SampleClass};

/// How long caches may repeat an answer to those who want it fresh.
const FRESHNESS: Duration = Duration::from_millis(100);

const CAPTURED_AT: u32 = 130;
const POSITION: u32 = 136;
const OTHER_SEQUENCE: u32 = 138;
const KEY_SEQUENCE: u32 = 164;
const DELTA_SEQUENCE: u32 = 166;
const RUNG_INDEX: u32 = 176;
const KEY: u32 = 178;
const SAMPLE: u32 = 180;
const NEXT_KEY: u32 = 182;
const DELEGATION: u32 = 184;
const CLASS: u32 = 186;
const SEQUENCE: u32 = 188;
const PUBLISHED_AT: u32 = 190;
const SINCE: u32 = 192;

/// Returns the name of what the rungs of `stream` (`/<root>/<stream>`) had at `time`.
pub fn name(stream: &Name, time: Timestamp) -> Name {
    let name = stream.builder().generic(INDEX);
    name.timestamp(time.as_micros()).finish()
}

/// Returns the stream and time of an index's `name`; `None` if it is no such name.
pub fn parse(name: &Name) -> Option<(Name, Timestamp)> {
    let micros = name.last()?.number_of(Component::TIMESTAMP)?;
    let depth = name.len().checked_sub(2)?;
    let is_index = name.get(depth)? == Component::generic(INDEX);
    is_index.then(|| (name.prefix(depth), Timestamp::from_micros(micros)))
}

/// A sample and its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedSample {
    /// Key or delta.
    pub class: SampleClass,
    /// Number in its class.
    pub sequence: u64,
    /// Of a delta sample its key sample, of a key sample the delta sample after it.
    pub other_sequence: u64,
    /// Decoding order.
    pub position: u64,
    /// Publisher's clock at capture.
    pub captured_at: Timestamp,
    /// Publisher's clock at publication.
    pub published_at: Timestamp,
}

impl IndexedSample {
    fn encode(&self, element_type: u32, writer: &mut Writer) {
        writer.nested(element_type, |sample| {
            sample
                .number(CAPTURED_AT, self.captured_at.as_micros())
                .number(POSITION, self.position)
                .number(OTHER_SEQUENCE, self.other_sequence)
                .number(CLASS, self.class.index() as u64)
                .number(SEQUENCE, self.sequence)
                .number(PUBLISHED_AT, self.published_at.as_micros());
        });
    }

    fn decode(content: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        const ORDER: [u32; 6] = [
            CAPTURED_AT,
            POSITION,
            OTHER_SEQUENCE,
            CLASS,
            SEQUENCE,
            PUBLISHED_AT,
        ];
        const NAMES: [&str; 6] = [
            "CapturedAt",
            "Position",
            "OtherSequence",
            "Class",
            "Sequence",
            "PublishedAt",
        ];
        let mut numbers = [None; ORDER.len()];
        let reader = Reader::within(content, element.value.clone());
        let mut fields = Fields::new(reader, "IndexedSample", &ORDER);
        while let Some(field) = fields.field()? {
            let at = ORDER.iter().position(|&known| known == field.element_type);
            let at = at.expect("Fields gives types of ORDER only");
            numbers[at] = Some(field.number(NAMES[at], content)?);
        }
        let required = |at: usize| numbers[at].ok_or(element.error(NAMES[at], Problem::Missing));
        let class = usize::try_from(required(3)?).ok();
        let class = class.and_then(|class| SampleClass::ALL.get(class));
        Ok(Self {
            class: *class.ok_or(element.error("Class", Problem::ValueOutOfRange))?,
            sequence: required(4)?,
            other_sequence: required(2)?,
            position: required(1)?,
            captured_at: Timestamp::from_micros(required(0)?),
            published_at: Timestamp::from_micros(required(5)?),
        })
    }
}

/// What a rung had at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RungIndex {
    /// Name of the rung.
    pub rung: Name,
    /// The key sample captured at the time or before.
    pub key: IndexedSample,
    /// The sample captured at the time or before.
    pub sample: IndexedSample,
    /// The first key sample captured after the time; `None` if there is none yet.
    pub next_key: Option<IndexedSample>,
    /// Last numbers that there are, key and delta.
    pub newest: [Option<u64>; 2],
}

impl RungIndex {
    fn encode(&self, writer: &mut Writer) {
        writer.nested(RUNG_INDEX, |rung| {
            self.rung.encode(rung);
            for (element_type, number) in
                [KEY_SEQUENCE, DELTA_SEQUENCE].into_iter().zip(self.newest)
            {
                if let Some(number) = number {
                    rung.number(element_type, number);
                }
            }
            self.key.encode(KEY, rung);
            self.sample.encode(SAMPLE, rung);
            if let Some(next) = &self.next_key {
                next.encode(NEXT_KEY, rung);
            }
        });
    }

    fn decode(content: &Bytes, element: &Element) -> Result<Self, DecodeError> {
        const ORDER: [u32; 6] = [
            tlv::NAME,
            KEY_SEQUENCE,
            DELTA_SEQUENCE,
            KEY,
            SAMPLE,
            NEXT_KEY,
        ];
        let (mut rung, mut newest) = (None, [None; 2]);
        let (mut key, mut sample, mut next_key) = (None, None, None);
        let reader = Reader::within(content, element.value.clone());
        let mut fields = Fields::new(reader, "RungIndex", &ORDER);
        while let Some(field) = fields.field()? {
            match field.element_type {
                tlv::NAME => rung = Some(Name::from_element(content, &field)?),
                KEY_SEQUENCE => newest[0] = Some(field.number("KeySequence", content)?),
                DELTA_SEQUENCE => newest[1] = Some(field.number("DeltaSequence", content)?),
                KEY => key = Some(IndexedSample::decode(content, &field)?),
                SAMPLE => sample = Some(IndexedSample::decode(content, &field)?),
                _ => next_key = Some(IndexedSample::decode(content, &field)?),
            }
        }
        Ok(Self {
            rung: rung.ok_or(element.error("Name", Problem::Missing))?,
            key: key.ok_or(element.error("Key", Problem::Missing))?,
            sample: sample.ok_or(element.error("Sample", Problem::Missing))?,
            next_key,
            newest,
        })
    }
}

/// Content of `/<root>/<stream>/index/t=<µs>`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeIndex {
    /// Rungs that have a sample at the time or before it.
    pub rungs: Vec<RungIndex>,
    /// Where to request the samples (a ForwardingHint): the name of the archive that answers. `None`: as for live ones.
    pub delegation: Option<Name>,
    /// When the oldest key sample of the stream was captured that who answers has; `None`: it has none, or does not say.
    pub since: Option<Timestamp>,
}

impl TimeIndex {
    /// Returns the Content.
    pub fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        self.rungs.iter().for_each(|rung| rung.encode(&mut writer));
        if let Some(delegation) = &self.delegation {
            writer.nested(DELEGATION, |element| delegation.encode(element));
        }
        if let Some(since) = self.since {
            writer.number(SINCE, since.as_micros());
        }
        writer.finish()
    }

    /// Returns the answer under `name`, which is not signed by anybody.
    pub fn answer(&self, name: Name) -> Data {
        Data::builder(name)
            .freshness(FRESHNESS)
            .content(self.encode())
            .sign(&DigestSigner)
    }

    /// Reads Content; what it holds shares its memory.
    ///
    /// # Errors
    /// The first violation of the format; offsets count from the start of the Content.
    pub fn decode(content: &Bytes) -> Result<Self, DecodeError> {
        const ORDER: [u32; 3] = [RUNG_INDEX, DELEGATION, SINCE];
        let mut index = Self::default();
        let reader = Reader::new(content);
        let mut fields = Fields::new(reader, "time index", &ORDER).repeating(RUNG_INDEX);
        while let Some(field) = fields.field()? {
            match field.element_type {
                RUNG_INDEX if index.rungs.len() == MAX_RUNGS => {
                    return Err(field.error("RungIndex", Problem::ValueOutOfRange));
                }
                RUNG_INDEX => index.rungs.push(RungIndex::decode(content, &field)?),
                SINCE => {
                    let micros = field.number("Since", content)?;
                    index.since = Some(Timestamp::from_micros(micros));
                }
                _ => {
                    let reader = Reader::within(content, field.value.clone());
                    let name = reader.only("Delegation", tlv::NAME)?;
                    index.delegation = Some(Name::from_element(content, &name)?);
                }
            }
        }
        Ok(index)
    }

    /// Returns what it says of `rung`.
    pub fn rung(&self, rung: &Name) -> Option<&RungIndex> {
        self.rungs.iter().find(|index| index.rung == *rung)
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn sample(sequence: u64) -> IndexedSample {
        IndexedSample {
            class: SampleClass::ALL[usize::from(sequence % 2 == 1)],
            sequence,
            other_sequence: 300,
            position: 5,
            captured_at: Timestamp::from_micros(7),
            published_at: Timestamp::from_micros(9),
        }
    }

    fn index() -> TimeIndex {
        let rung = RungIndex {
            rung: "/a/v/r".parse().unwrap(),
            key: sample(2),
            sample: sample(3),
            next_key: Some(sample(4)),
            newest: [Some(10), None],
        };
        let bare = RungIndex {
            next_key: None,
            newest: [None; 2],
            ..rung.clone()
        };
        TimeIndex {
            rungs: vec![rung, bare],
            delegation: Some("/a/32=archive/x".parse().unwrap()),
            since: Some(Timestamp::from_micros(1)),
        }
    }

    #[test]
    fn a_sample_is_encoded_as_worked_by_hand() {
        let mut writer = Writer::default();
        sample(3).encode(SAMPLE, &mut writer);
        #[rustfmt::skip]
        let expected = [
            180, 19, 130, 1, 7, 136, 1, 5, 138, 2, 1, 44, 186, 1, 1, 188, 1, 3, 190, 1, 9,
        ];
        assert_eq!(writer.finish(), expected[..]);
    }

    /// Nothing is kept of the time, but something since 300 µs after 1970.
    #[test]
    fn an_answer_without_rungs_tells_since_when_there_are_any() {
        let index = TimeIndex {
            since: Some(Timestamp::from_micros(300)),
            ..TimeIndex::default()
        };
        assert_eq!(index.encode(), [192, 2, 1, 44][..]);
        assert_eq!(TimeIndex::decode(&index.encode()), Ok(index));
    }

    #[test]
    fn names_read_back() {
        let stream: Name = "/a/v".parse().unwrap();
        let name = name(&stream, Timestamp::from_micros(1_000));
        assert_eq!(name.to_string(), "/a/v/index/t=1000");
        assert_eq!(parse(&name), Some((stream, Timestamp::from_micros(1_000))));
        for wrong in ["/a/v/index", "/a/v/index/v=5", "/a/v/1M/t=5", "/t=5", "/"] {
            assert_eq!(parse(&wrong.parse().unwrap()), None, "{wrong}");
        }
    }

    #[test]
    fn answers_read_back() {
        assert_eq!(TimeIndex::decode(&index().encode()), Ok(index()));
        let nothing = TimeIndex::default();
        assert_eq!(TimeIndex::decode(&nothing.encode()), Ok(nothing));
        let name: Name = "/a/v/index/t=5".parse().unwrap();
        let data = index().answer(name.clone());
        assert_eq!(data.name(), &name);
        assert_eq!(TimeIndex::decode(&data.content().unwrap()), Ok(index()));
    }

    #[test]
    fn bad_classes_and_too_many_rungs_are_refused() {
        let mut content = index().encode().to_vec();
        let at = content.windows(3).position(|w| w == [186, 1, 0]).unwrap();
        content[at + 2] = 2;
        let error = TimeIndex::decode(&content.into()).unwrap_err();
        assert_eq!(
            (error.field, error.problem),
            ("Class", Problem::ValueOutOfRange)
        );
        let many = |count| TimeIndex {
            rungs: vec![index().rungs[0].clone(); count],
            ..TimeIndex::default()
        };
        assert!(TimeIndex::decode(&many(MAX_RUNGS).encode()).is_ok());
        assert!(TimeIndex::decode(&many(MAX_RUNGS + 1).encode()).is_err());
    }

    #[test]
    fn damaged_content_is_refused_or_read_but_never_panics() {
        let mut random = Random::from_seed(5);
        let good = index().encode();
        for _ in 0..20_000 {
            let mut content = good.to_vec();
            for _ in 0..=random.below(3) {
                let at = usize::try_from(random.below(content.len() as u64)).unwrap();
                content[at] = random.next_u64() as u8;
            }
            content.truncate(usize::try_from(random.below(2 * good.len() as u64)).unwrap());
            if let Ok(read) = TimeIndex::decode(&content.into()) {
                assert_eq!(TimeIndex::decode(&read.encode()), Ok(read));
            }
        }
    }
}
