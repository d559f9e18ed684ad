//! Names of everything in a published stream: `docs/stream-format.md`, section "Names".

use namecast_packet::{Component, Name, tlv};

/// Keyword under which metadata is found.
pub const METADATA: &str = "metadata";
/// Hexadecimal digits of a challenge.
const CHALLENGE_DIGITS: usize = 16;
/// Keyword under which a rung's newest sample is found.
pub const LATEST: &str = "latest";
/// Component before a catalogue's version; no stream may have this name.
pub const CATALOGUE: &str = "catalogue";
/// Component between a stream and a time of its index; no rung may have this name.
pub const INDEX: &str = "index";
/// Component before a key's identifier; no stream may have this name.
pub const KEY: &str = "KEY";
/// Components of a segment's name behind its rung's.
const SEGMENT_DEPTH: usize = 4;

/// Whether a sample stands alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleClass {
    /// Decodes by itself: key frames, every audio packet.
    Key,
    /// Needs the samples before it, back to the last key sample.
    Delta,
}

impl SampleClass {
    /// Both classes, key first.
    pub const ALL: [Self; 2] = [Self::Key, Self::Delta];

    /// Returns the class's name component.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Delta => "delta",
        }
    }

    /// 0 for key, 1 for delta: for tables with an entry per class.
    pub const fn index(self) -> usize {
        match self {
            Self::Key => 0,
            Self::Delta => 1,
        }
    }
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentKind {
    /// A share of the sample; number 0 is the lead.
    Data,
    /// A Reed–Solomon shard.
    Parity,
    /// A copy of the lead under a name of its own.
    LeadCopy,
    /// A Reed–Solomon shard over the leads of a group of samples, of which this one is the last.
    InterFrame,
}

impl SegmentKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Data, Self::Parity, Self::LeadCopy, Self::InterFrame];

    /// Returns the kind's name component.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Parity => "parity",
            Self::LeadCopy => "lead",
            Self::InterFrame => "across",
        }
    }
}

/// One segment within its rung.
///
/// Ordered by class, sequence, kind and index, so that a sample's segments stand together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId {
    /// Key or delta.
    pub class: SampleClass,
    /// Number of the sample in its class.
    pub sequence: u64,
    /// Data, parity, copy of the lead, or inter-frame FEC.
    pub kind: SegmentKind,
    /// Number of the segment among those of its kind, from 0.
    pub index: u64,
}

impl SegmentId {
    /// The segment that carries the signature and the digests of the sample's others.
    pub const fn lead(class: SampleClass, sequence: u64) -> Self {
        Self {
            class,
            sequence,
            kind: SegmentKind::Data,
            index: 0,
        }
    }

    /// Returns whether this is a sample's lead segment, or a copy of it.
    pub fn is_lead_or_copy(&self) -> bool {
        self.is_lead() || self.kind == SegmentKind::LeadCopy
    }

    /// Returns whether this is a sample's lead segment.
    pub fn is_lead(&self) -> bool {
        self.kind == SegmentKind::Data && self.index == 0
    }
}

/// Names under the root that was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamNames {
    root: Name,
}

impl StreamNames {
    /// Names under `root`, such as `/demo`.
    pub const fn new(root: Name) -> Self {
        Self { root }
    }

    /// Returns the name that was published.
    pub const fn root(&self) -> &Name {
        &self.root
    }

    /// Returns what a consumer requests to learn everything else, with CanBePrefix and MustBeFresh.
    pub fn metadata(&self) -> Name {
        self.root.builder().keyword(METADATA).finish()
    }

    /// Returns the name of metadata that was made at `micros` since 1970.
    pub fn metadata_version(&self, micros: u64) -> Name {
        versioned(&self.metadata(), micros)
    }

    /// Returns the name of metadata that is made for one consumer, who asks by the exact name: no cache has it, and no Interest of
    /// another consumer is combined with it.
    pub fn challenge(&self, random: u64) -> Name {
        let name = self.root.builder().keyword(METADATA);
        name.generic(&format!("{random:0CHALLENGE_DIGITS$x}"))
            .finish()
    }

    /// Returns whether `name` is such a name.
    pub fn is_challenge(&self, name: &Name) -> bool {
        let is_random = name.last().is_some_and(|last| {
            last.kind == Component::GENERIC && last.value.len() == CHALLENGE_DIGITS
        });
        is_random && name.parent() == self.metadata()
    }

    /// Returns the name of catalogue `version`, without segment number: what metadata names.
    pub fn catalogue(&self, version: u64) -> Name {
        let name = self.root.builder().generic(CATALOGUE);
        name.version(version).finish()
    }

    /// Returns the name of one segment of catalogue `version`.
    pub fn catalogue_segment(&self, version: u64, segment: u64) -> Name {
        let name = self.root.builder().generic(CATALOGUE);
        name.version(version).segment(segment).finish()
    }

    /// Returns the names in rung `rung` of stream `stream`. A rung `32=…` is a keyword, and `8=…` is any text: a member of a family, whose stream may
    /// have the member behind a slash in its name.
    pub fn rung(&self, stream: &str, rung: &str) -> RungNames {
        let stream = stream.split('/').next().unwrap_or(stream);
        let name = self.root.builder().generic(stream);
        let name = match rung.split_once('=') {
            Some(("32", word)) => name.keyword(word),
            Some(("8", text)) => name.generic(text),
            _ => name.generic(rung),
        };
        RungNames::new(name.finish())
    }
}

/// Names in one rung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RungNames {
    prefix: Name,
    components: usize,
    /// Key samples from one that has a number here to the next.
    every: u64,
}

impl RungNames {
    /// Names under `prefix`, which is `/<root>/<stream>/<rung>`.
    pub fn new(prefix: Name) -> Self {
        let components = prefix.len();
        Self {
            prefix,
            components,
            every: 1,
        }
    }

    /// Returns names of every `count`-th key sample alone: sample n here is sample n · `count` of the rung.
    pub(crate) fn every(self, count: u32) -> Self {
        let every = u64::from(count.max(1));
        Self { every, ..self }
    }

    /// Returns the number here of the last sample up to number `sequence` of the rung.
    pub const fn numbered(&self, class: SampleClass, sequence: u64) -> u64 {
        match class {
            SampleClass::Key => sequence / self.every,
            SampleClass::Delta => sequence,
        }
    }

    /// Returns the number in the rung of what has the number `sequence` here.
    pub const fn in_rung(&self, class: SampleClass, sequence: u64) -> u64 {
        match class {
            SampleClass::Key => sequence.saturating_mul(self.every),
            SampleClass::Delta => sequence,
        }
    }

    /// Returns the rung's own name.
    pub const fn prefix(&self) -> &Name {
        &self.prefix
    }

    /// Returns what to request to learn the newest sample, with CanBePrefix and MustBeFresh.
    pub fn latest(&self) -> Name {
        self.prefix.builder().keyword(LATEST).finish()
    }

    /// Returns the name of newest-sample Data that was made at `micros` since 1970.
    pub fn latest_version(&self, micros: u64) -> Name {
        versioned(&self.latest(), micros)
    }

    /// Returns the name of one segment.
    pub fn segment(&self, id: SegmentId) -> Name {
        self.prefix
            .builder()
            .generic(id.class.word())
            .sequence(self.in_rung(id.class, id.sequence))
            .generic(id.kind.word())
            .segment(id.index)
            .finish()
    }

    /// Returns the rung and the segment of it that `name` is the exact name of; `None` if it is no segment's.
    pub fn of_segment(name: &Name) -> Option<(Name, SegmentId)> {
        let depth = name.len().checked_sub(SEGMENT_DEPTH)?;
        let rung = name.prefix(depth).detached();
        let id = Self::new(rung.clone()).parse(name)?;
        Some((rung, id))
    }

    /// Returns the segment that `name` is the exact name of; `None` if it is not one of this rung's.
    ///
    /// The inverse of [`segment`](Self::segment): numbers in a longer form than needed are no segment's name.
    pub fn parse(&self, name: &Name) -> Option<SegmentId> {
        if !self.prefix.is_prefix_of(name) {
            return None;
        }
        let mut rest = name.components().skip(self.components);
        let class = rest.next()?;
        let mut classes = SampleClass::ALL.into_iter();
        let class = classes.find(|known| Component::generic(known.word()) == class)?;
        let sequence = number(rest.next()?, Component::SEQUENCE)?;
        let every = match class {
            SampleClass::Key => self.every,
            SampleClass::Delta => 1,
        };
        if !sequence.is_multiple_of(every) {
            return None;
        }
        let id = SegmentId {
            class,
            sequence: sequence / every,
            kind: kind(rest.next()?)?,
            index: number(rest.next()?, Component::SEGMENT)?,
        };
        rest.next().is_none().then_some(id)
    }
}

fn kind(component: Component<'_>) -> Option<SegmentKind> {
    SegmentKind::ALL
        .into_iter()
        .find(|known| Component::generic(known.word()) == component)
}

fn number(component: Component<'_>, kind: u16) -> Option<u64> {
    component
        .number_of(kind)
        .filter(|&number| tlv::number_size(number) == component.value.len())
}

fn versioned(name: &Name, version: u64) -> Name {
    name.builder().version(version).segment(0).finish()
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn rung() -> RungNames {
        StreamNames::new("/demo".parse().unwrap()).rung("video", "3M")
    }

    #[test]
    fn names_are_those_of_the_format() {
        let names = StreamNames::new("/demo".parse().unwrap());
        assert_eq!(names.metadata().to_string(), "/demo/32=metadata");
        assert_eq!(
            names.metadata_version(7).to_string(),
            "/demo/32=metadata/v=7/seg=0"
        );
        assert_eq!(names.catalogue(3).to_string(), "/demo/catalogue/v=3");
        assert_eq!(
            names.catalogue_segment(3, 1).to_string(),
            "/demo/catalogue/v=3/seg=1"
        );
        assert_eq!(rung().latest().to_string(), "/demo/video/3M/32=latest");
        assert_eq!(
            rung().latest_version(9).to_string(),
            "/demo/video/3M/32=latest/v=9/seg=0"
        );
        let id = SegmentId {
            class: SampleClass::Delta,
            sequence: 258,
            kind: SegmentKind::Parity,
            index: 2,
        };
        let name = rung().segment(id);
        assert_eq!(
            name.to_string(),
            "/demo/video/3M/delta/seq=258/parity/seg=2"
        );
        let kind = SegmentKind::LeadCopy;
        let name = rung().segment(SegmentId { kind, ..id });
        assert_eq!(name.to_string(), "/demo/video/3M/delta/seq=258/lead/seg=2");
        let kind = SegmentKind::InterFrame;
        let name = rung().segment(SegmentId { kind, ..id });
        assert_eq!(
            name.to_string(),
            "/demo/video/3M/delta/seq=258/across/seg=2"
        );
        let lead = rung().segment(SegmentId::lead(SampleClass::Key, 0));
        assert_eq!(lead.to_string(), "/demo/video/3M/key/seq=0/data/seg=0");
    }

    /// Keywords of a family and members who are called like them have different names.
    #[test]
    fn members_are_no_keywords() {
        let names = StreamNames::new("/stage".parse().unwrap());
        let rung = |rung: &str| names.rung("tracks/it", rung).prefix().to_string();
        assert_eq!(rung("32=all"), "/stage/tracks/32=all");
        assert_eq!(rung("8=all"), "/stage/tracks/all");
        assert_eq!(rung("8=32=all"), "/stage/tracks/32%3Dall");
        assert_eq!(rung("8=a/b"), "/stage/tracks/a%2Fb");
    }

    #[test]
    fn every_segment_parses_back() {
        let mut random = Random::from_seed(5);
        for _ in 0..1_000 {
            let id = SegmentId {
                class: SampleClass::ALL[usize::from(random.chance(0.5))],
                sequence: random.next_u64() >> random.below(64),
                kind: SegmentKind::ALL[random.below(4) as usize],
                index: random.next_u64() >> random.below(64),
            };
            assert_eq!(rung().parse(&rung().segment(id)), Some(id));
        }
    }

    /// Of every third sample, number 7 is the rung's 21, and 22 is none. Deltas keep their numbers.
    #[test]
    fn every_third_sample_has_a_number_of_its_own() {
        let thirds = rung().every(3);
        let lead = SegmentId::lead(SampleClass::Key, 7);
        let name = thirds.segment(lead);
        assert_eq!(name.to_string(), "/demo/video/3M/key/seq=21/data/seg=0");
        assert_eq!(thirds.parse(&name), Some(lead));
        let other = rung().segment(SegmentId::lead(SampleClass::Key, 22));
        assert_eq!(thirds.parse(&other), None);
        let delta = SegmentId::lead(SampleClass::Delta, 22);
        assert_eq!(thirds.parse(&rung().segment(delta)), Some(delta));
    }

    #[test]
    fn no_other_name_is_a_segment() {
        let parse = |name: &str| rung().parse(&name.parse().unwrap());
        assert!(parse("/demo/video/3M/key/seq=1/data/seg=0").is_some());
        for wrong in [
            "/demo/video/3M",
            "/demo/video/3M/key/seq=1/data",
            "/demo/video/3M/key/seq=1/data/seg=0/more",
            "/demo/video/1M/key/seq=1/data/seg=0",
            "/demo/video/3M/none/seq=1/data/seg=0",
            "/demo/video/3M/32=key/seq=1/data/seg=0",
            "/demo/video/3M/key/v=1/data/seg=0",
            "/demo/video/3M/key/seq=1/other/seg=0",
            "/demo/video/3M/key/seq=1/data/seq=0",
            // One in two octets: not the shortest form.
            "/demo/video/3M/key/58=%00%01/data/seg=0",
            "/demo/video/3M/32=latest/v=1/seg=0",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn segments_of_a_sample_stand_together_in_order() {
        let id = |sequence, kind, index| SegmentId {
            class: SampleClass::Key,
            sequence,
            kind,
            index,
        };
        let sorted = [
            id(4, SegmentKind::Parity, 9),
            id(5, SegmentKind::Data, 0),
            id(5, SegmentKind::Data, 7),
            id(5, SegmentKind::Parity, 0),
            id(6, SegmentKind::Data, 0),
            SegmentId::lead(SampleClass::Delta, 0),
        ];
        assert!(sorted.is_sorted());
    }
}
