//! The sending end of live video and audio: a [`Producer`] whose streams and rungs a catalogue lists.
//!
//! ```text
//!   encoder ── publish_frame ──▶ Publisher ── poll_output ──▶ application face
//!                                    ▲                              │
//!                                    └──────── handle_packet ───────┘
//! ```

mod sealing;

use core::convert::Infallible;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use namecast_packet::lp::NackReason;
use namecast_packet::{Certificate, Data, Name, Packet, Signer};
use namecast_stream::producer::{
    Arrival, ProducerCounters, PublishError, Reply, RungConfig, RungId,
};
use namecast_stream::segmenter::SegmenterConfig;
use namecast_stream::{
    Catalogue, Producer, ProducerConfig, Rung, Sample, SampleClass, StreamInfo, StreamNames,
};
use namecast_units::{ByteSize, Instant, Timestamp};

use super::stream_clock::StreamClock;
use crate::sealed::Unsealed;
use crate::{Application, Now, Output, face};
use sealing::Sealing;
pub use sealing::SealingCounters;

/// What to publish, and under which name.
#[derive(Clone, Debug)]
pub struct PublisherConfig {
    /// The name to publish under, such as `/demo`.
    pub root: Name,
    /// Streams and their rungs.
    pub streams: Vec<StreamInfo>,
    /// Bounds.
    pub producer: ProducerConfig,
    /// Set if several publishers give one and the same stream, so that one can take over from another: the time since which
    /// all of them count, by agreement. It is the catalogue's version, and a frame's numbers follow from its position
    /// alone, whatever each has published before. Positions count from that time, and key frames are at multiples of the
    /// rung's key interval.
    pub shared_since: Option<Timestamp>,
}

/// One frame or audio packet, as the encoder gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedFrame {
    /// Decoding order; the same key frame of a closed group has the same position in every rung.
    pub position: u64,
    /// Whether it decodes by itself.
    pub key: bool,
    /// Wall clock at capture, the one whose time is given to [`Publisher::publish_frame`]; of a picture that is decoded before one
    /// shown earlier: the decoding time by that clock.
    pub captured_at: Timestamp,
    /// Presentation time minus decoding time, at most 10 s; zero where pictures are shown in decoding order.
    pub composition_offset: Duration,
    /// The same clock at the end of encoding.
    pub encoded_at: Timestamp,
    /// The encoded frame.
    pub payload: Bytes,
}

impl EncodedFrame {
    /// A frame that was captured and encoded at `wall`.
    pub fn at(wall: Timestamp, position: u64, key: bool, payload: impl Into<Bytes>) -> Self {
        Self {
            position,
            key,
            captured_at: wall,
            composition_offset: Duration::ZERO,
            encoded_at: wall,
            payload: payload.into(),
        }
    }
}

/// Why a publisher could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Catalogue, rungs or certificate were refused.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The certificate is not that of the key that signs.
    #[error("certificate {0} is not of the key that signs")]
    Certificate(Name),
    /// The stream is shared by several publishers, who would use the same nonces.
    #[error("a stream that several publishers share cannot be sealed")]
    SealedAndShared,
    /// The streams are shared by several publishers, who would have to change them together.
    #[error("streams that several publishers share cannot be changed")]
    ChangedAndShared,
}

/// Why a frame was not published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The rung is not one of this publisher's.
    #[error("no such rung")]
    NoSuchRung,
    /// A frame that needs earlier ones came before any key frame, or after a frame that was not published.
    #[error("frame at position {0} needs a key frame that was not published")]
    NeedsKey(u64),
    /// Of a shared stream: a key frame at a position that is no multiple of the key interval, or none where it is one.
    #[error(
        "frame at position {0} does not keep the key interval that publishers of this stream agreed on"
    )]
    OffBeat(u64),
    /// It could not be sealed.
    #[error(transparent)]
    Seal(#[from] Unsealed),
    /// The producer refused it.
    #[error(transparent)]
    Publish(#[from] PublishError),
}

/// What a publisher counts of what arrives; what its producer counts is not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherCounters {
    /// Frames published, in all rungs.
    pub frames: u64,
    /// Frames refused.
    pub frames_refused: u64,
    /// Packets that break the format.
    pub malformed: u64,
    /// Data, Nacks and link packets without a whole Interest: nothing for a publisher.
    pub unexpected: u64,
}

/// Sequence numbers of one rung.
#[derive(Clone, Copy, Debug)]
struct Numbering {
    first: u64,
    next: [u64; 2],
    /// Key sample that delta samples depend on; `None` while one would depend on something not published.
    key: Option<u64>,
    /// Of a shared stream: frames from key to key.
    beat: Option<u64>,
}

impl Numbering {
    /// Class, number and other sequence number of the next frame.
    fn assign(&self, position: u64, key: bool) -> Result<(SampleClass, u64, u64), FrameError> {
        let depends_on = || self.key.ok_or(FrameError::NeedsKey(position));
        let Some(beat) = self.beat else {
            let [next_key, next_delta] = self.next;
            return Ok(if key {
                (SampleClass::Key, next_key, next_delta)
            } else {
                (SampleClass::Delta, next_delta, depends_on()?)
            });
        };
        if key != position.is_multiple_of(beat) {
            return Err(FrameError::OffBeat(position));
        }
        let group = position / beat;
        let key_sequence = self.first + group;
        // Delta frames up to and with this one, or before it if it is a key frame: all but one of each group.
        let deltas = position - group;
        if key {
            return Ok((SampleClass::Key, key_sequence, self.first + deltas));
        }
        if depends_on()? != key_sequence {
            return Err(FrameError::NeedsKey(position));
        }
        Ok((SampleClass::Delta, self.first + deltas - 1, key_sequence))
    }

    /// Records that the frame was published.
    const fn advance(&mut self, class: SampleClass, sequence: u64) {
        self.next[class.index()] = sequence + 1;
        if let SampleClass::Key = class {
            self.key = Some(sequence);
        }
    }
}

/// Publishes live streams.
///
/// After each call fetch [`poll_output`](Self::poll_output) until `None`, and call
/// [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout). Early or repeated calls are
/// harmless.
#[derive(Debug)]
pub struct Publisher {
    producer: Producer,
    catalogue: Catalogue,
    rungs: BTreeMap<(String, String), RungId>,
    numbering: BTreeMap<RungId, Numbering>,
    counters: PublisherCounters,
    clock: StreamClock,
    /// Why the last frame that was refused was.
    last_refusal: Option<String>,
    /// Nacks for what will never exist.
    refusals: VecDeque<Bytes>,
    max_refusals: usize,
    /// Set if samples are sealed.
    sealing: Option<Sealing>,
}

impl Publisher {
    /// A publisher that starts at `wall`, signs with `signer`, and hands out the signer's `certificate`.
    ///
    /// Sequence numbers and the catalogue's version come from `wall`, so that a publisher that starts again reuses no
    /// name; those of a stream that publishers share come from [`PublisherConfig::shared_since`].
    ///
    /// # Errors
    /// If a stream or rung is not valid, or `certificate` is not the signer's.
    pub fn new(
        config: PublisherConfig,
        wall: Timestamp,
        signer: Box<dyn Signer + Send>,
        certificate: &Certificate,
    ) -> Result<Self, SetupError> {
        let locator = signer.info().key_locator;
        if !locator.is_some_and(|locator| certificate.matches(&locator)) {
            return Err(SetupError::Certificate(certificate.name().clone()));
        }
        let since = config.shared_since.unwrap_or(wall);
        let catalogue = Catalogue {
            version: since.as_micros(),
            starts: Default::default(),
            title: None,
            streams: config.streams,
            signer: certificate.key_name().to_string(),
        };
        let max_refusals = config.producer.max_output;
        let mut producer = Producer::new(config.root, signer, config.producer);
        producer.add_object(certificate.data().clone())?;
        producer.set_catalogue(&catalogue)?;
        let mut publisher = Self {
            producer,
            rungs: BTreeMap::new(),
            numbering: BTreeMap::new(),
            counters: PublisherCounters::default(),
            clock: StreamClock::default(),
            last_refusal: None,
            refusals: VecDeque::new(),
            max_refusals,
            sealing: None,
            catalogue: catalogue.clone(),
        };
        for stream in &catalogue.streams {
            for rung in &stream.rungs {
                let beat = config
                    .shared_since
                    .map(|_| u64::from(rung.key_interval.max(1)));
                publisher.add_rung(since, beat, stream, rung)?;
            }
        }
        Ok(publisher)
    }

    /// Gives the stream a title for people. To be called before the first packet arrives, as catalogues of one version are equal.
    ///
    /// # Errors
    /// If the title is not 1 to 200 octets without control characters.
    pub fn with_title(mut self, title: Option<String>) -> Result<Self, SetupError> {
        self.catalogue.title = title;
        self.producer.set_catalogue(&self.catalogue)?;
        Ok(self)
    }

    /// Seals all samples, so that the holders of these X25519 keys alone can open them. `seed` has to be drawn anew for each start: all keys follow
    /// from it. To be called before the first sample is published.
    ///
    /// # Errors
    /// If the stream is shared by several publishers: they would use a nonce twice.
    pub fn sealed(
        mut self,
        seed: [u8; 32],
        readers: &BTreeSet<[u8; 32]>,
    ) -> Result<Self, SetupError> {
        if self.numbering.values().any(|it| it.beat.is_some()) {
            return Err(SetupError::SealedAndShared);
        }
        let mut sealing = Sealing::new(self.producer.root(), seed, self.max_refusals);
        let names = StreamNames::new(self.producer.root().clone());
        for ((stream, rung), id) in &self.rungs {
            sealing.add_rung(*id, names.rung(stream, rung).prefix());
        }
        self.sealing = Some(sealing);
        self.set_readers(Instant::ZERO, readers);
        Ok(self)
    }

    /// Sets who may open sealed samples. Newcomers can open the next sample; those who leave are shut out after 0.3 s, or 0.8 s if others left just before. Does nothing unless samples
    /// are [`sealed`](Self::sealed).
    pub fn set_readers(&mut self, now: Instant, readers: &BTreeSet<[u8; 32]>) {
        if let Some(sealing) = &mut self.sealing {
            sealing.set_readers(now, readers);
            sealing.publish_boxes(&self.producer);
        }
    }

    /// Returns whether encoders are to make a key picture: readers have left since the last call, and samples are sealed with a new key.
    pub const fn take_key_request(&mut self) -> bool {
        match &mut self.sealing {
            Some(sealing) => core::mem::replace(&mut sealing.needs_key, false),
            None => false,
        }
    }

    /// Sets the version of the room's roster that metadata names from now on, so that readers notice if theirs is held back.
    pub const fn set_roster_version(&mut self, version: Option<u64>) {
        self.producer.set_roster_version(version);
    }

    /// Publishes these streams from now on, under a new catalogue: rungs that are new are added, and those that are not among them end. Rungs that are
    /// equal in both go on with their numbers, and so do their readers. `wall` is the wall clock.
    ///
    /// # Errors
    /// If a stream or rung is not valid, or several publishers share the streams; then nothing has changed.
    pub fn set_streams(
        &mut self,
        wall: Timestamp,
        streams: Vec<StreamInfo>,
    ) -> Result<(), SetupError> {
        if self.numbering.values().any(|it| it.beat.is_some()) {
            return Err(SetupError::ChangedAndShared);
        }
        let before = &self.catalogue;
        let version = wall.as_micros().max(before.version.saturating_add(1));
        let lasting = |of: &StreamInfo| {
            let rungs = of.rungs.iter();
            let kept = rungs.filter(|rung| has_rung(before, of, rung));
            kept.map(|rung| (of.name.clone(), rung.name.clone()))
                .collect()
        };
        let mut kept: BTreeSet<(String, String)> = BTreeSet::new();
        let mut starts = BTreeMap::new();
        for stream in &streams {
            let lasting: Vec<_> = lasting(stream);
            if !lasting.is_empty() {
                starts.insert(stream.name.clone(), before.start(&stream.name).as_micros());
            }
            kept.extend(lasting);
        }
        let catalogue = Catalogue {
            version,
            starts,
            title: before.title.clone(),
            streams,
            signer: before.signer.clone(),
        };
        self.producer.set_catalogue(&catalogue)?;
        self.catalogue = catalogue.clone();
        let ended = self.rungs.extract_if(.., |names, _| !kept.contains(names));
        for (_, id) in ended {
            self.producer.end_rung(id);
            self.numbering.remove(&id);
            if let Some(sealing) = &mut self.sealing {
                sealing.end_rung(id);
            }
        }
        let since = Timestamp::from_micros(version);
        for stream in &catalogue.streams {
            for rung in &stream.rungs {
                if self.rung(&stream.name, &rung.name).is_none() {
                    self.add_rung(since, None, stream, rung)?;
                }
            }
        }
        Ok(())
    }

    fn add_rung(
        &mut self,
        since: Timestamp,
        beat: Option<u64>,
        stream: &StreamInfo,
        rung: &Rung,
    ) -> Result<(), SetupError> {
        let config = rung_config(stream, rung, rung.rate.first_sequence(since));
        let id = self.producer.add_rung(&stream.name, &rung.name, config)?;
        self.begin_rung(id, beat, (&stream.name, &rung.name), config.first_sequence);
        let names = (stream.name.clone(), rung.name.clone());
        self.rungs.insert(names, id);
        Ok(())
    }

    /// Numbers the samples of a new rung of that stream and name.
    fn begin_rung(
        &mut self,
        id: RungId,
        beat: Option<u64>,
        (stream, rung): (&str, &str),
        first: u64,
    ) {
        let numbering = Numbering {
            first,
            next: [first; 2],
            key: None,
            beat,
        };
        self.numbering.insert(id, numbering);
        if let Some(sealing) = &mut self.sealing {
            let names = StreamNames::new(self.producer.root().clone());
            sealing.add_rung(id, names.rung(stream, rung).prefix());
        }
    }

    /// Adds a member of the family `stream`, `8=…` or `32=…`, whose samples have numbers from `first` on. Publish them by
    /// [`publish_number`](Self::publish_number), as those of the family, while the member [is requested](Self::is_asked).
    ///
    /// # Errors
    /// If there is no such family, several publishers share it, or it has the member already or too many.
    pub fn add_member(
        &mut self,
        stream: &str,
        member: &str,
        first: u64,
    ) -> Result<RungId, SetupError> {
        if self.numbering.values().any(|it| it.beat.is_some()) {
            return Err(SetupError::ChangedAndShared);
        }
        let family = self.catalogue.stream(stream);
        let rung = family.and_then(|family| Some((family, family.rung(StreamInfo::ALL_RUNG)?)));
        let (family, rung) = rung.ok_or(PublishError::NoSuchRung)?;
        let config = rung_config(family, rung, first);
        let id = self.producer.add_member(stream, member, config)?;
        self.begin_rung(id, None, (stream, member), first);
        Ok(id)
    }

    /// Ends a member: its samples are forgotten. Does nothing if it has ended.
    pub fn end_member(&mut self, member: RungId) {
        self.producer.end_rung(member);
        self.numbering.remove(&member);
        if let Some(sealing) = &mut self.sealing {
            sealing.end_rung(member);
        }
    }

    /// Returns whether anybody requests sample `number` of a rung, or has requested one of its samples within two seconds.
    pub fn is_asked(&self, now: Instant, rung: RungId, number: u64) -> bool {
        self.producer.is_asked(now, rung, number)
    }

    /// Leaves out samples of a data stream or member up to `number`.
    pub fn pass(&mut self, rung: RungId, number: u64) {
        self.producer.pass(rung, number);
    }

    /// Publishes a sample of a data stream or member, captured now, as number `number`. Numbers that are left out are lost to readers.
    ///
    /// # Errors
    /// If there is no such rung, the number was used, or the sample is too large.
    pub fn publish_number(
        &mut self,
        now: Now,
        rung: RungId,
        number: u64,
        payload: impl Into<Bytes>,
    ) -> Result<(), FrameError> {
        let numbering = self.numbering.get_mut(&rung);
        let numbering = numbering.ok_or(FrameError::NoSuchRung)?;
        let next = &mut numbering.next[SampleClass::Key.index()];
        if number < *next {
            let (got, next) = (number, *next);
            return Err(PublishError::SequenceUsed { got, next }.into());
        }
        *next = number;
        let position = number - numbering.first;
        let frame = EncodedFrame::at(now.wall, position, true, payload);
        self.publish_frame(now.monotonic, now.wall, rung, frame)
    }

    /// The rung `rung` of stream `stream`, for [`publish_frame`](Self::publish_frame).
    pub fn rung(&self, stream: &str, rung: &str) -> Option<RungId> {
        let names = (stream.to_owned(), rung.to_owned());
        self.rungs.get(&names).copied()
    }

    /// Returns the position after that of the last frame of `rung`, for streams whose frames have none of their own.
    pub fn next_position(&self, rung: RungId) -> u64 {
        let published = self.numbering.get(&rung);
        published.map_or(0, |numbering| numbering.next[0] - numbering.first)
    }

    /// Publishes one frame of `rung` and answers the Interests that waited for it.
    ///
    /// `wall` is what the clock shows now that the frame was captured by. Only the frame's age counts: a stream runs on a
    /// continuous time of its own, whether that clock is set or not.
    ///
    /// # Errors
    /// If it needs a key frame that was not published, or the producer refuses it. Frames that need one that was
    /// refused are refused too, up to the next key frame.
    pub fn publish_frame(
        &mut self,
        now: Instant,
        wall: Timestamp,
        rung: RungId,
        frame: EncodedFrame,
    ) -> Result<(), FrameError> {
        let published = self.try_publish(now, wall, rung, frame);
        match &published {
            Ok(()) => self.counters.frames += 1,
            Err(error) => {
                self.counters.frames_refused += 1;
                self.last_refusal = Some(error.to_string());
            }
        }
        published
    }

    /// Publishes a sample of the data stream `stream`, captured now.
    ///
    /// # Errors
    /// If there is no such stream, or the sample is too large.
    pub fn publish_sample(
        &mut self,
        now: Now,
        stream: &str,
        payload: impl Into<Bytes>,
    ) -> Result<(), FrameError> {
        let rung = self.rung(stream, StreamInfo::ONLY_RUNG);
        let rung = rung.ok_or(FrameError::NoSuchRung)?;
        let frame = EncodedFrame::at(now.wall, self.next_position(rung), true, payload);
        self.publish_frame(now.monotonic, now.wall, rung, frame)
    }

    /// Returns the packets of the newest sample of the data stream `stream` as they were signed, its lead first; none if it is not kept.
    pub fn newest_sample(&self, stream: &str) -> Vec<Data> {
        let rung = self.rung(stream, StreamInfo::ONLY_RUNG);
        rung.map_or_else(Vec::new, |rung| self.producer.newest_sample(rung))
    }

    fn try_publish(
        &mut self,
        now: Instant,
        wall: Timestamp,
        rung: RungId,
        frame: EncodedFrame,
    ) -> Result<(), FrameError> {
        let numbering = self
            .numbering
            .get_mut(&rung)
            .ok_or(FrameError::NoSuchRung)?;
        let (class, sequence, other_sequence) = numbering.assign(frame.position, frame.key)?;
        let (wall, stream_time) = self.clock.of(now, wall);
        let (payload, seal) = match &mut self.sealing {
            None => (frame.payload, None),
            Some(sealing) => {
                let sealed = sealing.seal(now, (rung, class), (sequence, &frame.payload))?;
                sealing.publish_boxes(&self.producer);
                (sealed.payload, Some(sealed.seal))
            }
        };
        let sample = Sample {
            class,
            sequence,
            other_sequence,
            position: frame.position,
            captured_at: stream_time(frame.captured_at),
            composition_offset: frame.composition_offset,
            encoded_at: stream_time(frame.encoded_at),
            payload,
            seal,
        };
        if let Err(error) = self.producer.publish(now, wall, rung, &sample) {
            numbering.key = None;
            if seal.is_some() {
                // A number is sealed once.
                numbering.next[class.index()] = sequence + 1;
            }
            return Err(error.into());
        }
        numbering.advance(class, sequence);
        Ok(())
    }

    /// Takes what an application face received: an Interest, bare or in a link packet. Anything else is counted. An Interest for
    /// what will never exist is refused by a Nack, so that it does not wait on the way here until its lifetime ends.
    pub fn handle_packet(&mut self, now: Instant, wall: Timestamp, wire: Bytes) {
        match face::open(wire) {
            Ok(Some((Packet::Interest(interest), link))) if link.nack.is_none() => {
                let arrival = Arrival {
                    pit_token: link.pit_token.clone(),
                    face: link.incoming_face,
                };
                if let Some(sealing) = &mut self.sealing
                    && sealing.handle_interest(now, &interest, &arrival)
                {
                    return;
                }
                let wall = self.clock.at(now, wall);
                let taken = self.producer.handle_interest(now, wall, &interest, arrival);
                if taken.is_err() && self.refusals.len() < self.max_refusals {
                    // Not NoRoute: by that, nodes would give up the route that led here.
                    let refusal = face::refusal(&interest, link.pit_token, NackReason::None);
                    self.refusals.push_back(refusal);
                }
            }
            Ok(_) => self.counters.unexpected += 1,
            Err(_) => self.counters.malformed += 1,
        }
    }

    /// Drops Interests whose lifetime has ended. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.producer.handle_timeout(now);
        if let Some(sealing) = &mut self.sealing {
            sealing.handle_timeout(now);
            sealing.publish_boxes(&self.producer);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let sealing = self.sealing.as_ref().and_then(Sealing::poll_timeout);
        let all = [self.producer.poll_timeout(), sealing];
        all.into_iter().flatten().min()
    }

    /// The next packet for the application face: Data, in a link packet only if the Interest's PIT token goes with it; or a Nack.
    pub fn poll_output(&mut self) -> Option<Bytes> {
        // Samples that follow need the box.
        if let Some(packet) = self.sealing.as_mut().and_then(Sealing::poll_output) {
            return Some(packet);
        }
        match self.producer.poll_output() {
            Some(Reply { data, pit_token }) => Some(face::answer(data.wire().clone(), pit_token)),
            None => self.refusals.pop_front(),
        }
    }

    /// The name that Interests for this publisher start with.
    pub const fn root(&self) -> &Name {
        self.producer.root()
    }

    /// What is published.
    pub const fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// What was published and what arrived.
    pub const fn counters(&self) -> &PublisherCounters {
        &self.counters
    }

    /// Returns why the last frame that was refused was.
    pub fn last_refusal(&self) -> Option<&str> {
        self.last_refusal.as_deref()
    }

    /// What became of Interests and samples.
    pub const fn producer_counters(&self) -> &ProducerCounters {
        self.producer.counters()
    }

    /// Counters of sealing, and the number of readers; `None` if samples are not sealed.
    pub fn sealing(&self) -> Option<(&SealingCounters, usize)> {
        let sealing = self.sealing.as_ref()?;
        Some((sealing.counters(), sealing.readers()))
    }

    /// Interests held now.
    pub fn pending(&self) -> usize {
        self.producer.pending()
    }

    /// Memory that cached samples take.
    pub fn cache_size(&self) -> ByteSize {
        self.producer.cache_size()
    }
}

/// Returns what a rung of `stream` starts from, whose first sample is number `first_sequence`.
fn rung_config(stream: &StreamInfo, rung: &Rung, first_sequence: u64) -> RungConfig {
    let period = rung.rate.period();
    RungConfig {
        segmenter: SegmenterConfig {
            segment_size: stream.segment_size as usize,
            parity_percent: stream.parity_percent as usize,
        },
        first_sequence,
        inter_frame: rung.inter_frame,
        periods: [period.saturating_mul(rung.key_interval), period],
    }
}

/// Returns whether `catalogue` has a rung of `stream` as it is.
fn has_rung(catalogue: &Catalogue, stream: &StreamInfo, rung: &Rung) -> bool {
    catalogue.stream(&stream.name).is_some_and(|before| {
        let shape = |it: &StreamInfo| (it.kind, it.segment_size, it.parity_percent);
        shape(before) == shape(stream) && before.rung(&rung.name) == Some(rung)
    })
}

impl Application for Publisher {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, now.wall, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.clock.at(now.monotonic, now.wall);
        Self::handle_timeout(self, now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        Self::poll_output(self).map(Output::Send)
    }
}

#[cfg(test)]
mod tests;
