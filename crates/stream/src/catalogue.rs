//! The catalogue: which streams and bitrates there are. UTF-8 JSON, `docs/stream-format.md`, section "Catalogue".

use core::time::Duration;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use namecast_units::{Bitrate, Timestamp};

use crate::inter_frame::InterFrameFec;
use crate::names;
use crate::sample::MAX_REORDERED;

/// Largest catalogue that is read or written, in octets.
pub const MAX_CATALOGUE_SIZE: usize = 65_536;
/// Most streams in a catalogue.
pub const MAX_STREAMS: usize = 8;
/// Most rungs in a stream.
pub const MAX_RUNGS: usize = 16;
/// Longest name of a stream, a rung or a codec, in octets.
pub const MAX_TEXT: usize = 64;
/// Longest description of a rung, in hexadecimal digits.
pub const MAX_DESCRIPTION: usize = 1_024;
/// Longest title, in octets of UTF-8.
pub const MAX_TITLE: usize = 200;
/// Longest name of a signer, in octets of its URI.
pub const MAX_SIGNER: usize = 1_024;
/// Content of a segment, in octets: a lead with its header must fit the least, a packet the most.
pub const SEGMENT_SIZES: core::ops::RangeInclusive<u32> = 256..=8_000;
/// Most samples per second.
pub const MAX_SAMPLES_PER_SECOND: u32 = 1_000;
/// Longest time from one sample to the next, in seconds: spans and sizes that follow from it stay far from overflowing.
pub const MAX_SECONDS_PER_SAMPLE: u32 = 3_600;
/// Most samples from one key sample to the next.
pub const MAX_KEY_INTERVAL: u32 = 100_000;
/// Longest reorder delay of a rung, in microseconds: that of the largest composition offset.
pub const MAX_REORDER_DELAY: u64 = 10_000_000;
/// Largest bitrate of a rung.
pub const MAX_BITRATE: Bitrate = Bitrate::mbps(10_000);
/// Largest width and height, in pixels.
pub const MAX_PIXELS: u32 = 32_768;
/// Octets that a sample of a member of a family is taken to have.
const MEMBER_SIZE: u64 = 100;
/// Sequences count from 2025-01-01 00:00 UTC, which keeps them short.
pub const SEQUENCE_EPOCH: Timestamp = Timestamp::from_micros(1_735_689_600_000_000);

/// Everything a consumer must know before it requests samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    /// The version in the catalogue's name; a publisher that starts again, or changes its streams, has a larger one.
    pub version: u64,
    /// Start of the numbering of each stream that was published under an earlier version and goes on, in microseconds since 1970. Of all others it is
    /// the version.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub starts: BTreeMap<String, u64>,
    /// Title for people, as text: 1 to 200 octets without control characters; `None`: the name is all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What is published under the root.
    pub streams: Vec<StreamInfo>,
    /// URI of the name of the key that signs.
    pub signer: String,
}

/// One camera, microphone or other source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// The stream's name component.
    pub name: String,
    /// What it carries.
    pub kind: StreamKind,
    /// Codec for people and for choosing a decoder: `h264`, `opus`, …
    pub codec: String,
    /// The stream at different bitrates.
    pub rungs: Vec<Rung>,
    /// Octets of Content that segments aim at.
    pub segment_size: u32,
    /// Parity segments per hundred data segments.
    pub parity_percent: u32,
    /// How its samples are read; data only.
    #[serde(default, skip_serializing_if = "Reading::is_complete")]
    pub reading: Reading,
}

/// How the samples of a data stream are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// Each once and in order, however late. They have no rhythm.
    Events,
    /// As soon as it is complete, unless a later one was delivered: none waits for one before it.
    Newest,
    /// In order, within the playout target: those that are later are left out. Another word that this version does not know is read so.
    #[default]
    #[serde(other)]
    Complete,
}

impl Reading {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    const fn is_complete(&self) -> bool {
        matches!(self, Self::Complete)
    }
}

/// What a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamKind {
    /// Pictures.
    Video,
    /// Sound.
    Audio,
    /// Samples of any application, which stand alone.
    Data,
    /// A kind this version does not know.
    #[serde(other)]
    Other,
}

/// A stream at one bitrate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    /// The rung's name component: `200k`, `1M`, …; 1 to 64 of `A-Z a-z 0-9 . _ -`.
    pub name: String,
    /// Rate of the encoded samples, in bits per second on the wire.
    #[serde(with = "bits_per_second")]
    pub bitrate: Bitrate,
    /// Picture width in pixels; video only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Picture height in pixels; video only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// Samples per second, key and delta together.
    pub rate: SampleRate,
    /// Samples from one key sample to the next; 1: all are key samples.
    pub key_interval: u32,
    /// Largest composition offset of the rung's encoder, in microseconds: with three B-frames in a pyramid five frame intervals, as a
    /// picture is encoded three after its capture and shown two after it could be. 0 where pictures are shown in decoding order.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reorder_delay: u64,
    /// The codec as WebCodecs names it: `avc1.42E01F`, `opus`, …
    pub codec_string: String,
    /// Sound samples per second; audio only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// Sound channels; audio only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Inter-frame FEC on offer, if any.
    #[serde(default, rename = "across", skip_serializing_if = "Option::is_none")]
    pub inter_frame: Option<InterFrameFec>,
    /// What a decoder needs before the first sample, in hexadecimal: of AAC the AudioSpecificConfig; absent where the samples
    /// have all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Samples per second as a fraction: 30/1, 30000/1001, 50/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRate {
    /// Samples …
    pub num: u32,
    /// … in so many seconds.
    pub den: u32,
}

impl SampleRate {
    /// `num` samples in `den` seconds.
    pub const fn new(num: u32, den: u32) -> Self {
        Self { num, den }
    }

    /// Returns the time from one sample to the next, rounded down to nanoseconds.
    pub fn period(self) -> Duration {
        let nanos = u64::from(self.den) * 1_000_000_000 / u64::from(self.num.max(1));
        Duration::from_nanos(nanos)
    }

    /// Sequence number of the first sample of a publisher that starts at `wall`.
    ///
    /// ```text
    /// (t − 2025-01-01) · ⌈num / den⌉, rounded down
    /// ```
    ///
    /// Sequences of a publisher that runs grow no faster than this, so one that starts later starts beyond them.
    pub fn first_sequence(self, wall: Timestamp) -> u64 {
        let micros = u128::from(wall.as_micros().saturating_sub(SEQUENCE_EPOCH.as_micros()));
        let per_second = u128::from(self.num.div_ceil(self.den.max(1)));
        u64::try_from(micros * per_second / 1_000_000).unwrap_or(u64::MAX)
    }

    const fn is_valid(self) -> bool {
        // In 64 bits, so that a large denominator cannot overflow.
        self.num > 0
            && self.den > 0
            && self.num as u64 <= MAX_SAMPLES_PER_SECOND as u64 * self.den as u64
            && self.den as u64 <= MAX_SECONDS_PER_SAMPLE as u64 * self.num as u64
    }
}

/// Why a catalogue was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogueError {
    /// More octets than [`MAX_CATALOGUE_SIZE`].
    #[error("catalogue has {0} octets, more than {MAX_CATALOGUE_SIZE}")]
    TooLarge(usize),
    /// Not JSON, or not of this shape.
    #[error("catalogue is not what the format requires: {0}")]
    Json(#[from] serde_json::Error),
    /// A field's value is out of bounds.
    #[error("catalogue: {field} of {of:?} is {problem}")]
    Field {
        /// Field that is wrong.
        field: &'static str,
        /// Stream or `stream/rung` it belongs to; empty for the catalogue itself.
        of: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl Catalogue {
    /// Reads and validates a catalogue. Fields that are not known are ignored.
    ///
    /// # Errors
    /// If it is too large, not of this shape, or a value is out of bounds.
    pub fn decode(json: &[u8]) -> Result<Self, CatalogueError> {
        if json.len() > MAX_CATALOGUE_SIZE {
            return Err(CatalogueError::TooLarge(json.len()));
        }
        let catalogue: Self = serde_json::from_slice(json)?;
        catalogue.validate()?;
        Ok(catalogue)
    }

    /// Validates and writes the catalogue.
    ///
    /// # Errors
    /// If a value is out of bounds, or it becomes too large.
    pub fn encode(&self) -> Result<Vec<u8>, CatalogueError> {
        self.validate()?;
        let json = serde_json::to_vec(self)?;
        match json.len() {
            0..=MAX_CATALOGUE_SIZE => Ok(json),
            size => Err(CatalogueError::TooLarge(size)),
        }
    }

    /// Returns the catalogue with the streams of these names before the others: the first of a kind is what people watch. `tracks/8=ann` names a
    /// member of the family `tracks`, which then is a stream of its own.
    #[must_use]
    pub fn preferring(mut self, names: &[String]) -> Self {
        let members = names.iter().filter_map(|name| {
            let (family, _) = name.split_once('/')?;
            self.stream(family)?.member(name)
        });
        let members: Vec<_> = members.collect();
        self.streams.extend(members);
        (self.streams).sort_by_key(|stream| !names.contains(&stream.name));
        self
    }

    /// Returns when the numbering of the stream named `name` began.
    pub fn start(&self, name: &str) -> Timestamp {
        let family = name.split('/').next().unwrap_or(name);
        Timestamp::from_micros(self.starts.get(family).copied().unwrap_or(self.version))
    }

    /// Returns the stream named `name`.
    pub fn stream(&self, name: &str) -> Option<&StreamInfo> {
        self.streams.iter().find(|stream| stream.name == name)
    }

    /// Checks every bound.
    ///
    /// # Errors
    /// The first field that is out of bounds.
    pub fn validate(&self) -> Result<(), CatalogueError> {
        check("signer", "", self.signer.len() <= MAX_SIGNER, "too long")?;
        let is_titled = self.title.as_deref().is_none_or(is_title);
        let problem = "not 1 to 200 octets without control characters";
        check("title", "", is_titled, problem)?;
        let count = self.streams.len();
        check("streams", "", count <= MAX_STREAMS, "too many")?;
        for (index, stream) in self.streams.iter().enumerate() {
            let of = &stream.name;
            check_name("name", of, of)?;
            let reserved = [names::CATALOGUE, names::KEY].contains(&of.as_str());
            check("name", of, !reserved, "reserved")?;
            let twice = self.streams[..index].iter().any(|other| other.name == *of);
            check("name", of, !twice, "there twice")?;
            stream.validate()?;
        }
        for (name, start) in &self.starts {
            check("starts", name, self.stream(name).is_some(), "of no stream")?;
            check("starts", name, *start <= self.version, "after the version")?;
        }
        Ok(())
    }
}

impl StreamInfo {
    /// Name of the only rung of a stream that has no choice.
    pub const ONLY_RUNG: &'static str = "only";
    /// Name of the only rung of a family: it has all members in one sample, and each member has a rung of its own beside it, which the catalogue does
    /// not list. It is a keyword, as members may be called `all`.
    pub const ALL_RUNG: &'static str = "32=all";
    /// Octets of a segment: with its wrapping it fits a datagram of 1200.
    pub const SEGMENT_SIZE: u32 = 1_000;
    /// Parity segments per hundred data segments.
    pub const PARITY_PERCENT: u32 = 20;

    /// Describes a stream of samples that stand alone: readings, positions, cues. There may be up to `samples_per_second`, of
    /// about `octets` each; both only help those who watch to request in time.
    pub fn data(name: &str, samples_per_second: u32, octets: u32) -> Self {
        let bitrate = u64::from(samples_per_second) * u64::from(octets) * 8;
        let rung = Rung {
            name: Self::ONLY_RUNG.to_owned(),
            bitrate: Bitrate::bps(bitrate.max(1)),
            width: None,
            height: None,
            rate: SampleRate::new(samples_per_second, 1),
            key_interval: 1,
            reorder_delay: 0,
            codec_string: "application/octet-stream".to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: None,
            description: None,
        };
        Self {
            name: name.to_owned(),
            kind: StreamKind::Data,
            codec: "octets".to_owned(),
            rungs: vec![rung],
            segment_size: Self::SEGMENT_SIZE,
            parity_percent: Self::PARITY_PERCENT,
            reading: Reading::Complete,
        }
    }

    /// Describes a stream of events: samples without a rhythm, up to `samples_per_second` for a while, each of which readers get once
    /// and in order, however late.
    pub fn events(name: &str, samples_per_second: u32, octets: u32) -> Self {
        Self {
            reading: Reading::Events,
            ..Self::data(name, samples_per_second, octets)
        }
    }

    /// Describes a stream of states, such as positions, `samples_per_second` of them: readers get each as soon as it is complete, unless
    /// they have a later one.
    pub fn newest(name: &str, samples_per_second: u32, octets: u32) -> Self {
        Self {
            reading: Reading::Newest,
            ..Self::data(name, samples_per_second, octets)
        }
    }

    /// Describes a family: a stream of states, as [`newest`](Self::newest), of many members, which may be read one by one as well. Samples of members
    /// have the numbers of the samples of all.
    pub fn family(name: &str, samples_per_second: u32, octets: u32) -> Self {
        let mut stream = Self::newest(name, samples_per_second, octets);
        Self::ALL_RUNG.clone_into(&mut stream.rungs[0].name);
        stream
    }

    /// Returns the stream of the member `name`, such as `tracks/8=ann`, of this family. `None` if it is no family.
    pub fn member(&self, name: &str) -> Option<Self> {
        let (_, member) = name.split_once('/')?;
        let mut rung = self.rung(Self::ALL_RUNG)?.clone();
        member.clone_into(&mut rung.name);
        // Its size shows in its first sample; until then it is a segment.
        let bitrate = u64::from(rung.rate.num) * MEMBER_SIZE * 8 / u64::from(rung.rate.den.max(1));
        rung.bitrate = Bitrate::bps(bitrate.max(1));
        Some(Self {
            name: name.to_owned(),
            rungs: vec![rung],
            ..self.clone()
        })
    }

    /// Returns the rung named `name`.
    pub fn rung(&self, name: &str) -> Option<&Rung> {
        self.rungs.iter().find(|rung| rung.name == name)
    }

    fn validate(&self) -> Result<(), CatalogueError> {
        let of = &self.name;
        check_name("codec", of, &self.codec)?;
        let size_fits = SEGMENT_SIZES.contains(&self.segment_size);
        check("segment_size", of, size_fits, "not in 256..=8000")?;
        let parity_fits = self.parity_percent <= 100;
        check("parity_percent", of, parity_fits, "more than 100")?;
        let count = self.rungs.len();
        check("rungs", of, count <= MAX_RUNGS, "too many")?;
        for (index, rung) in self.rungs.iter().enumerate() {
            let of = format!("{of}/{}", rung.name);
            let problem = "not 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-'";
            check("name", &of, is_rung_name(&rung.name), problem)?;
            check("name", &of, rung.name != names::INDEX, "reserved")?;
            let twice = self.rungs[..index].iter().any(|r| r.name == rung.name);
            check("name", &of, !twice, "there twice")?;
            rung.validate(&of)?;
        }
        Ok(())
    }
}

impl Rung {
    /// Returns the largest composition offset of the rung's encoder.
    pub const fn reorder_delay(&self) -> Duration {
        Duration::from_micros(self.reorder_delay)
    }

    /// Returns the most pictures that a decoder holds back to put them into the order in which they are shown.
    pub fn reorder_depth(&self) -> u64 {
        let period = self.rate.period().as_micros().max(1);
        let depth = (u128::from(self.reorder_delay) + period / 2) / period;
        u64::try_from(depth).unwrap_or(u64::MAX).min(MAX_REORDERED)
    }

    fn validate(&self, of: &str) -> Result<(), CatalogueError> {
        check_name("codec_string", of, &self.codec_string)?;
        check("bitrate", of, self.bitrate <= MAX_BITRATE, "too large")?;
        let rate = "not from one an hour to 1000 a second";
        check("rate", of, self.rate.is_valid(), rate)?;
        let interval = (1..=MAX_KEY_INTERVAL).contains(&self.key_interval);
        check("key_interval", of, interval, "not in 1..=100000")?;
        let inter_frame = self.inter_frame.is_none_or(InterFrameFec::is_valid);
        let bounds = "not 1 to 8 shards for 2 to 32 samples";
        check("across", of, inter_frame, bounds)?;
        let reorders = self.reorder_delay <= MAX_REORDER_DELAY;
        check("reorder_delay", of, reorders, "longer than 10 s")?;
        let bounded = |value: Option<u32>, most| value.is_none_or(|v| (1..=most).contains(&v));
        let (width, height) = (self.width, self.height);
        check("width", of, bounded(width, MAX_PIXELS), "out of bounds")?;
        check("height", of, bounded(height, MAX_PIXELS), "out of bounds")?;
        let (rate, channels) = (self.sample_rate, self.channels);
        check("sample_rate", of, bounded(rate, 768_000), "out of bounds")?;
        check("channels", of, bounded(channels, 255), "out of bounds")?;
        let described = self.description.as_ref().is_none_or(|digits| {
            let is_whole = digits.len() % 2 == 0 && digits.len() <= MAX_DESCRIPTION;
            is_whole && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        let problem = "not up to 512 octets in hexadecimal";
        check("description", of, described, problem)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde fixes the signature"
)]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn check(
    field: &'static str,
    of: &str,
    holds: bool,
    problem: &'static str,
) -> Result<(), CatalogueError> {
    if holds {
        return Ok(());
    }
    let of = of.to_owned();
    Err(CatalogueError::Field { field, of, problem })
}

/// Returns whether a stream may have this title: it is shown as text, on one line.
pub fn is_title(title: &str) -> bool {
    (1..=MAX_TITLE).contains(&title.len()) && !title.chars().any(char::is_control)
}

/// Returns whether a rung may have this name: people type it, and it is printed as it is.
pub(crate) fn is_rung_name(name: &str) -> bool {
    let name = name.strip_prefix("32=").unwrap_or(name);
    let is_allowed = |octet: u8| octet.is_ascii_alphanumeric() || b"._-".contains(&octet);
    (1..=MAX_TEXT).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn check_name(field: &'static str, of: &str, text: &str) -> Result<(), CatalogueError> {
    check(field, of, !text.is_empty(), "empty")?;
    check(field, of, text.len() <= MAX_TEXT, "longer than 64 octets")
}

mod bits_per_second {
    use namecast_units::Bitrate;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde fixes the signature"
    )]
    pub(super) fn serialize<S: Serializer>(rate: &Bitrate, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(rate.as_bps())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bitrate, D::Error> {
        u64::deserialize(from).map(Bitrate::bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let rung = Rung {
            name: "1M".to_owned(),
            bitrate: Bitrate::mbps(1),
            width: Some(640),
            height: Some(360),
            rate: SampleRate::new(30, 1),
            key_interval: 30,
            reorder_delay: 0,
            codec_string: "avc1.42E01E".to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: None,
            description: None,
        };
        let stream = StreamInfo {
            name: "video".to_owned(),
            kind: StreamKind::Video,
            codec: "h264".to_owned(),
            rungs: vec![rung],
            segment_size: 1_000,
            parity_percent: 20,
            reading: Reading::default(),
        };
        Catalogue {
            version: 12,
            starts: Default::default(),
            title: None,
            streams: vec![stream],
            signer: "/demo/KEY/%01".to_owned(),
        }
    }

    #[test]
    fn the_json_is_that_of_the_format() {
        let json = String::from_utf8(catalogue().encode().unwrap()).unwrap();
        let expected = r#"{"version":12,"streams":[{"name":"video","kind":"video","codec":"h264","rungs":[{"name":"1M","bitrate":1000000,"width":640,"height":360,"rate":{"num":30,"den":1},"key_interval":30,"codec_string":"avc1.42E01E"}],"segment_size":1000,"parity_percent":20}],"signer":"/demo/KEY/%01"}"#;
        assert_eq!(json, expected);
        assert_eq!(Catalogue::decode(json.as_bytes()).unwrap(), catalogue());
    }

    /// Numbering begins with the version, unless the catalogue says otherwise of a stream.
    #[test]
    fn starts_are_of_streams_and_no_later_than_the_version() {
        let mut changed = catalogue();
        assert_eq!(changed.start("video").as_micros(), 12);
        changed.starts = [("video".to_owned(), 11)].into();
        let json = changed.encode().unwrap();
        assert!(json.starts_with(br#"{"version":12,"starts":{"video":11},"streams":"#));
        let read = Catalogue::decode(&json).unwrap();
        assert_eq!(read.start("video").as_micros(), 11);
        assert_eq!(read.start("audio").as_micros(), 12);
        for (stream, start) in [("video", 13), ("audio", 11)] {
            changed.starts = [(stream.to_owned(), start)].into();
            assert!(changed.validate().is_err(), "{stream} {start}");
        }
    }

    #[test]
    fn a_title_is_any_text_of_one_line() {
        let mut titled = catalogue();
        titled.title = Some("<b>Öffentliche „Sitzung“ & مساء</b>".to_owned());
        let json = titled.encode().unwrap();
        assert!(json.starts_with(br#"{"version":12,"title":"<b>"#));
        assert_eq!(Catalogue::decode(&json).unwrap(), titled);
        titled.title = Some("é".repeat(100));
        assert!(titled.validate().is_ok());
    }

    /// Every character, alone and within a name: a rung's name is of `[A-Za-z0-9._-]`, and 1 to 64 long.
    #[test]
    fn names_of_rungs_are_plain() {
        let named = |name: &str| {
            let mut catalogue = catalogue();
            catalogue.streams[0].rungs[0].name = name.to_owned();
            let json = serde_json::to_vec(&catalogue).unwrap();
            let (written, read) = (catalogue.encode(), Catalogue::decode(&json));
            assert_eq!(written.is_ok(), read.is_ok(), "{name:?}");
            read
        };
        let plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
        for character in (0..0x3000).filter_map(char::from_u32) {
            for name in [character.to_string(), format!("1{character}M")] {
                let is_read = named(&name).is_ok();
                assert_eq!(is_read, plain.contains(character), "{name:?}");
            }
        }
        assert!(named(&"x".repeat(64)).is_ok());
        for wrong in ["", &"x".repeat(65)] {
            assert!(named(wrong).is_err(), "{wrong:?}");
        }
        let error = named("1M\u{1b}[2J").unwrap_err().to_string();
        let expected = r#"catalogue: name of "video/1M\u{1b}[2J" is not 1 to 64 of A-Z, a-z, 0-9, '.', '_', '-'"#;
        assert_eq!(error, expected);
    }

    #[test]
    fn streams_that_are_preferred_come_first_and_the_others_keep_their_order() {
        let mut catalogue = catalogue();
        catalogue.streams = ["video", "audio", "video-2"]
            .map(|name| StreamInfo {
                name: name.to_owned(),
                ..catalogue.streams[0].clone()
            })
            .to_vec();
        let catalogue = catalogue.preferring(&["video-2".to_owned(), "smell".to_owned()]);
        let names = catalogue.streams.iter().map(|stream| stream.name.as_str());
        assert!(names.eq(["video-2", "video", "audio"]));
    }

    #[test]
    fn what_later_versions_add_is_ignored() {
        let json = String::from_utf8(catalogue().encode().unwrap()).unwrap();
        let json = json
            .replace("\"version\"", "\"new\":[{}],\"version\"")
            .replace("\"kind\":\"video\"", "\"kind\":\"smell\",\"more\":1");
        let read = Catalogue::decode(json.as_bytes()).unwrap();
        assert_eq!(read.streams[0].kind, StreamKind::Other);
        assert_eq!(read.streams[0].rungs, catalogue().streams[0].rungs);
    }

    #[test]
    fn each_bound_is_checked_and_named() {
        type Change = fn(&mut Catalogue);
        let changes: [(&str, Change); 30] = [
            ("signer", |c| c.signer = "x".repeat(1_025)),
            ("title", |c| c.title = Some(String::new())),
            ("title", |c| c.title = Some("é".repeat(100) + "e")),
            ("title", |c| c.title = Some("two\nlines".to_owned())),
            ("streams", |c| c.streams = vec![c.streams[0].clone(); 9]),
            ("name", |c| c.streams[0].name = String::new()),
            ("name", |c| c.streams[0].name = "x".repeat(65)),
            ("name", |c| c.streams[0].name = "KEY".to_owned()),
            ("name", |c| c.streams[0].name = "catalogue".to_owned()),
            ("name", |c| c.streams = vec![c.streams[0].clone(); 2]),
            ("codec", |c| c.streams[0].codec = String::new()),
            ("segment_size", |c| c.streams[0].segment_size = 255),
            ("segment_size", |c| c.streams[0].segment_size = 8_001),
            ("parity_percent", |c| c.streams[0].parity_percent = 101),
            ("name", |c| {
                c.streams[0].rungs = vec![c.streams[0].rungs[0].clone(); 2];
            }),
            ("bitrate", |c| {
                c.streams[0].rungs[0].bitrate = Bitrate::mbps(10_001);
            }),
            ("rate", |c| {
                c.streams[0].rungs[0].rate = SampleRate::new(0, 1);
            }),
            ("rate", |c| {
                c.streams[0].rungs[0].rate = SampleRate::new(1, 0);
            }),
            ("rate", |c| {
                c.streams[0].rungs[0].rate = SampleRate::new(1_001, 1);
            }),
            ("rate", |c| {
                c.streams[0].rungs[0].rate = SampleRate::new(1, 3_601);
            }),
            ("name", |c| c.streams[0].rungs[0].name = "index".to_owned()),
            ("key_interval", |c| c.streams[0].rungs[0].key_interval = 0),
            ("width", |c| c.streams[0].rungs[0].width = Some(0)),
            ("channels", |c| c.streams[0].rungs[0].channels = Some(256)),
            ("across", |c| {
                c.streams[0].rungs[0].inter_frame = inter_frame(1, 1)
            }),
            ("across", |c| {
                c.streams[0].rungs[0].inter_frame = inter_frame(33, 1)
            }),
            ("across", |c| {
                c.streams[0].rungs[0].inter_frame = inter_frame(4, 0)
            }),
            ("across", |c| {
                c.streams[0].rungs[0].inter_frame = inter_frame(4, 9)
            }),
            ("description", |c| {
                c.streams[0].rungs[0].description = Some("123".to_owned());
            }),
            ("description", |c| {
                c.streams[0].rungs[0].description = Some("ab".repeat(513));
            }),
        ];
        for (index, (expected, change)) in changes.into_iter().enumerate() {
            let mut changed = catalogue();
            change(&mut changed);
            match changed.validate() {
                Err(CatalogueError::Field { field, .. }) => assert_eq!(field, expected, "{index}"),
                other => panic!("{index}: {other:?}"),
            }
            // What is refused when written is refused when read.
            let json = serde_json::to_vec(&changed).unwrap();
            assert!(Catalogue::decode(&json).is_err(), "{index}");
        }
    }

    const fn inter_frame(samples: u32, parity: u32) -> Option<InterFrameFec> {
        Some(InterFrameFec { samples, parity })
    }

    /// Who does not know inter-frame FEC passes over it; who does finds none in catalogues of those that do not.
    #[test]
    fn inter_frame_fec_is_an_offer_that_may_be_absent() {
        let mut catalogue = catalogue();
        let json = String::from_utf8(catalogue.encode().unwrap()).unwrap();
        assert!(!json.contains("across"), "{json}");
        assert_eq!(Catalogue::decode(json.as_bytes()).unwrap(), catalogue);
        catalogue.streams[0].rungs[0].inter_frame = inter_frame(4, 2);
        let json = String::from_utf8(catalogue.encode().unwrap()).unwrap();
        assert!(
            json.contains(r#""across":{"samples":4,"parity":2}"#),
            "{json}"
        );
        assert_eq!(Catalogue::decode(json.as_bytes()).unwrap(), catalogue);
    }

    #[test]
    fn a_huge_or_deep_catalogue_is_refused() {
        let huge = vec![b' '; MAX_CATALOGUE_SIZE + 1];
        assert!(matches!(
            Catalogue::decode(&huge),
            Err(CatalogueError::TooLarge(65_537))
        ));
        let deep = "[".repeat(60_000);
        assert!(Catalogue::decode(deep.as_bytes()).is_err());
    }

    #[test]
    fn periods_are_those_of_the_rate() {
        assert_eq!(
            SampleRate::new(30, 1).period(),
            Duration::from_nanos(33_333_333)
        );
        assert_eq!(SampleRate::new(50, 1).period(), Duration::from_millis(20));
        assert_eq!(
            SampleRate::new(30_000, 1_001).period(),
            Duration::from_nanos(33_366_666)
        );
    }

    /// 29.97 a second counts as 30: 100.5 s after the epoch that is 3 015.
    #[test]
    fn a_sequence_starts_where_the_clock_says() {
        let rate = SampleRate::new(30_000, 1_001);
        let after = |millis| SEQUENCE_EPOCH + Duration::from_millis(millis);
        assert_eq!(rate.first_sequence(after(100_500)), 3_015);
        assert_eq!(rate.first_sequence(SEQUENCE_EPOCH), 0);
        assert_eq!(rate.first_sequence(Timestamp::from_micros(5)), 0);
        let end = Timestamp::from_micros(u64::MAX);
        assert!(SampleRate::new(u32::MAX, 1).first_sequence(end) > 0);
    }

    /// A publisher that ran for `n` periods used `n` numbers; the next one starts beyond them.
    #[test]
    fn a_restarted_publisher_reuses_no_sequence_number() {
        for rate in [
            SampleRate::new(30, 1),
            SampleRate::new(30_000, 1_001),
            SampleRate::new(50, 1),
        ] {
            for samples in [1_u32, 7, 1_000, 100_000] {
                let start = SEQUENCE_EPOCH + Duration::from_micros(987_654_321);
                let restart = start + rate.period() * samples + Duration::from_millis(1);
                let used =
                    rate.first_sequence(start)..rate.first_sequence(start) + u64::from(samples);
                let next = rate.first_sequence(restart);
                assert!(next >= used.end, "{rate:?} {samples}: {next} in {used:?}");
            }
        }
    }
}
