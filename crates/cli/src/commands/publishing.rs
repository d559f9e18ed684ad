//! What `demo`, `publish` and `serve` have in common: an input is encoded, and published on a node.

use core::fmt::Write as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use namecast::{Handle, drive};
use namecast_apps::Now;
use namecast_apps::live::{
    EncodedFrame, Publisher, PublisherConfig, PublisherCounters, SealingCounters,
};
use namecast_media::capture_clock;
use namecast_media::ingest::{IngestCounters, MediaFrame, StreamKind};
use namecast_media::package::Packager;
use namecast_net::{Clock, Identity, Node, random};
use namecast_packet::{Certificate, Name};
use namecast_stream::producer::{ProducerCounters, RungId};
use namecast_stream::{ProducerConfig, StreamInfo};
use namecast_units::{ByteSize, Duration, Histogram, Instant, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use super::key_store;
use super::packaging::{PackagedFigures, Packaging};
use super::sources::{Came, Sources};
use crate::archiving::ArchiveFigures;
use crate::arguments::{Keys, Media};
use crate::hexadecimal::hex;

/// Time without pictures and sound after which an input is not well.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// Inputs that are being published.
pub(super) struct Publishing {
    sources: Sources,
    handle: Handle<Publisher>,
    /// What becomes of frames instead, if they are packaged.
    packaging: Option<Packaging>,
    /// The rungs of each stream.
    rungs: BTreeMap<String, Vec<RungId>>,
    refused: u64,
    encode_times: EncodeTimes,
    clock: Clock,
    /// When a frame of these came last, or the inputs were opened: pictures, if there are any, as sound may end before them.
    followed: StreamKind,
    last_frame_at: Instant,
    /// Name of the key that signs.
    pub(super) key_name: Name,
    /// SHA-256 digest of the key, in hexadecimal.
    pub(super) key_digest: String,
    /// The same as octets.
    pub(super) digest: [u8; 32],
}

/// Options for publishing inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Length of segments, if HLS is packaged.
    pub(super) package: Option<Duration>,
    /// When the publisher began.
    pub(super) started_at: Timestamp,
    /// Whether it takes the name over from another publisher.
    pub(super) takes_over: bool,
    /// Whether the key is the one that a certificate was installed for, under that certificate.
    pub(super) is_certified: bool,
    /// Whether samples are sealed, for nobody at first.
    pub(super) is_sealed: bool,
}

impl Manner {
    /// Frames that are published from now on.
    pub(super) fn plain(clock: Clock) -> Self {
        Self {
            package: None,
            started_at: clock.wall(),
            takes_over: false,
            is_certified: false,
            is_sealed: false,
        }
    }

    /// Returns the key that `name` is published with.
    pub(super) fn identity(&self, keys: &Keys, name: &Name) -> anyhow::Result<Identity> {
        let store = key_store(keys.keys.clone())?;
        let certified = match self.is_certified {
            true => store.certified(name)?,
            false => None,
        };
        certified.map_or_else(|| Ok(store.identity(name)?), Ok)
    }
}

/// What happened, for the command to tell.
pub(super) enum Happened {
    /// A frame was published, or not; nothing to tell.
    Frame,
    /// Something broke and is being mended.
    Trouble(String),
    /// The inputs are over, or failed.
    Over(anyhow::Result<()>),
}

impl Publishing {
    /// Opens the inputs, and publishes them under `name` on `node`.
    pub(super) async fn start(
        node: &Node,
        name: &Name,
        media: &Media,
        keys: &Keys,
        manner: Manner,
    ) -> anyhow::Result<Self> {
        let identity = manner.identity(keys, name)?;
        let certificate = Certificate::decode(identity.certificate.clone())?;
        let digest = certificate.public_key()?.digest();
        let sources = Sources::open(media).await?;
        let packager = manner.package;
        let packager = packager.map(|segment| Packager::new(&sources.streams, segment));
        let packager = packager.transpose()?;
        let streams = match &packager {
            None => sources.streams.clone(),
            Some(packager) => vec![packager.stream()],
        };
        let clock = node.clock();
        let publisher = Publisher::new(
            PublisherConfig {
                root: name.clone(),
                streams: streams.clone(),
                producer: ProducerConfig {
                    taken_over_at: manner.takes_over.then_some(manner.started_at),
                    ..ProducerConfig::default()
                },
                shared_since: None,
            },
            manner.started_at,
            identity.signer,
            &certificate,
        )?
        .with_title(media.title.clone())?;
        let publisher = match manner.is_sealed {
            true => publisher.sealed(random(), &BTreeSet::new())?,
            false => publisher,
        };
        let rungs = rung_ids(&publisher, &streams);
        let is_video = |stream: &StreamInfo| stream.kind == StreamKind::Video;
        let followed = match sources.streams.iter().any(is_video) {
            true => StreamKind::Video,
            false => StreamKind::Audio,
        };
        // With them the publisher tells whose Interests are whose.
        let face = node.application_face_with_local_fields().await?;
        node.add_route(name.clone(), face.id(), 0).await?;
        let (handle, _) = drive(clock, face, publisher).spawn(|| {});
        let packaging = match packager {
            None => None,
            Some(packager) => {
                let signer = manner.identity(keys, name)?.signer;
                let certificate = certificate.clone();
                Some(Packaging::start(node, name, packager, signer, certificate).await?)
            }
        };
        Ok(Self {
            handle,
            packaging,
            sources,
            rungs,
            refused: 0,
            encode_times: EncodeTimes::default(),
            clock,
            followed,
            last_frame_at: clock.now(),
            key_name: certificate.key_name(),
            key_digest: hex(&digest),
            digest,
        })
    }

    /// Publishes what comes next.
    pub(super) async fn next(&mut self) -> Happened {
        let came = match &mut self.packaging {
            None => self.sources.next().await,
            Some(packaging) => tokio::select! {
                came = self.sources.next() => came,
                trouble = packaging.step() => {
                    return trouble.map_or(Happened::Frame, Happened::Trouble);
                }
            },
        };
        match came {
            Came::Frame(stream, frame) => {
                if frame.stream == self.followed {
                    self.last_frame_at = self.clock.now();
                }
                match self.publish(&stream, frame) {
                    Ok(()) => Happened::Frame,
                    Err(error) => Happened::Over(Err(error)),
                }
            }
            Came::Sample(stream, line) => {
                let publish = move |publisher: &mut Publisher, now: Now| {
                    // A refusal is in the publisher's counters.
                    let _ = publisher.publish_sample(now, &stream, line);
                };
                self.refused += u64::from(!self.handle.try_call(publish));
                Happened::Frame
            }
            Came::Trouble(text) => Happened::Trouble(text),
            Came::Over(outcome) => Happened::Over(outcome.map_err(Into::into)),
        }
    }

    fn publish(&mut self, stream: &str, frame: MediaFrame) -> anyhow::Result<()> {
        if frame.stream == StreamKind::Video {
            self.encode_times
                .add(frame.encoded_at.since(frame.captured_at));
        }
        if let Some(packaging) = &mut self.packaging {
            return packaging.write(&frame);
        }
        let rungs = self.rungs.get(stream);
        let Some(&rung) = rungs.and_then(|rungs| rungs.get(frame.rung)) else {
            return Ok(());
        };
        let encoded = EncodedFrame {
            position: frame.position,
            key: frame.key,
            captured_at: frame.captured_at,
            composition_offset: frame.composition_offset,
            encoded_at: frame.encoded_at,
            payload: frame.payload,
        };
        let publish = move |publisher: &mut Publisher, now: Now| {
            // A refusal is in the publisher's counters.
            let _ = publisher.publish_frame(now.monotonic, capture_clock(), rung, encoded);
        };
        if !self.handle.try_call(publish) {
            self.refused += 1;
        }
        Ok(())
    }

    /// Goes by a roster of this version: the holders of these X25519 keys can open what is sealed from now on, and nobody else soon.
    pub(super) async fn follow(&self, (readers, version): (BTreeSet<[u8; 32]>, u64)) {
        let set = move |publisher: &mut Publisher, now: Now| {
            publisher.set_readers(now.monotonic, &readers);
            publisher.set_roster_version(Some(version));
        };
        // `None`: the node has stopped.
        let _ = self.handle.call(set).await;
    }

    /// What is wrong with the inputs, as long as it is.
    pub(super) fn problem(&self) -> Option<String> {
        let silence = self.clock.now().since(self.last_frame_at);
        match self.sources.failed {
            0 if self.sources.has_media() && silence > MAX_SILENCE => {
                let seconds = silence.as_secs();
                let what = match self.followed {
                    StreamKind::Video => "no picture",
                    _ => "no sound",
                };
                Some(format!("{what} has come from the input for {seconds} s"))
            }
            0 => None,
            failed => Some(format!("{failed} of the inputs failed")),
        }
    }

    /// What was counted.
    pub(super) async fn figures(&mut self) -> Figures {
        let counted = self.handle.call(|publisher, _| Counted::of(publisher));
        let counted = Counted {
            encode_ms: self.encode_times.take(),
            encode_times: self.encode_times.all,
            ..counted.await.unwrap_or_default()
        };
        let mut figures = Figures::new(&counted, &self.sources.counters(), self.refused);
        figures.inputs.inputs_failed = self.sources.failed;
        if let Some(packaging) = &self.packaging {
            figures.package = Some(packaging.figures().await);
        }
        figures
    }

    /// The streams in a line for people.
    pub(super) fn describe(&self) -> String {
        let mut line = String::new();
        for stream in &self.sources.streams {
            let rungs: Vec<_> = stream
                .rungs
                .iter()
                .map(|rung| match (rung.width, rung.height) {
                    (Some(width), Some(height)) => format!("{} {width}x{height}", rung.name),
                    _ => rung.name.clone(),
                })
                .collect();
            let separator = if line.is_empty() { "" } else { "; " };
            let (name, codec) = (&stream.name, &stream.codec);
            // Writing to a string cannot fail.
            let _ = write!(line, "{separator}{name} {codec} {}", rungs.join(", "));
        }
        line
    }

    /// The streams as the catalogue describes them.
    pub(super) fn streams(&self) -> &[StreamInfo] {
        &self.sources.streams
    }

    /// The same for programs.
    pub(super) fn streams_json(&self) -> Value {
        json!(self.sources.streams)
    }
}

fn rung_ids(publisher: &Publisher, streams: &[StreamInfo]) -> BTreeMap<String, Vec<RungId>> {
    let ids = |stream: &StreamInfo| {
        let rungs = stream.rungs.iter();
        rungs
            .filter_map(|rung| publisher.rung(&stream.name, &rung.name))
            .collect()
    };
    let named = streams
        .iter()
        .map(|stream| (stream.name.clone(), ids(stream)));
    named.collect()
}

/// What a publisher has counted.
#[derive(Clone, Debug, Default)]
struct Counted {
    publisher: PublisherCounters,
    producer: ProducerCounters,
    /// Interests held now.
    pending: usize,
    /// Memory that cached samples take.
    cache_size: ByteSize,
    /// Why the last frame that was refused was.
    last_refusal: Option<String>,
    /// Of sealed samples, and their readers.
    sealing: Option<SealedFigures>,
    /// Capture to end of encoding, median and 99th percentile of the last second.
    encode_ms: [f64; 2],
    /// The same since the start.
    encode_times: Histogram,
}

impl Counted {
    fn of(publisher: &Publisher) -> Self {
        Self {
            publisher: *publisher.counters(),
            producer: publisher.producer_counters().clone(),
            pending: publisher.pending(),
            cache_size: publisher.cache_size(),
            last_refusal: publisher.last_refusal().map(str::to_owned),
            sealing: publisher
                .sealing()
                .map(|(counters, readers)| SealedFigures {
                    readers: readers as u64,
                    counters: *counters,
                }),
            encode_ms: [0.0; 2],
            encode_times: Histogram::default(),
        }
    }
}

/// Times from capture to the end of encoding.
#[derive(Debug, Default)]
struct EncodeTimes {
    /// Since they were last taken.
    recent: Vec<Duration>,
    all: Histogram,
}

impl EncodeTimes {
    /// At most so many: more than a second has.
    const MAX: usize = 4_096;

    fn add(&mut self, time: Duration) {
        self.all.record(time);
        if self.recent.len() < Self::MAX {
            self.recent.push(time);
        }
    }

    /// Median and 99th percentile in milliseconds.
    fn take(&mut self) -> [f64; 2] {
        let mut times = core::mem::take(&mut self.recent);
        times.sort_unstable();
        let at = |percent: usize| {
            let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
            times
                .get(index)
                .map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        [at(50), at(99)]
    }
}

/// One object of a publisher's statistics.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Figures {
    /// Frames and sound packets published, in all rungs.
    pub frames_published: u64,
    /// Frames that were encoded but not published.
    pub frames_refused: u64,
    /// Why the last one was not.
    pub last_refusal: Option<String>,
    /// What happened to the inputs.
    #[serde(flatten)]
    pub inputs: InputFigures,
    /// Capture to end of encoding, median and 99th percentile of the last second, in milliseconds.
    pub encode_ms_p50: f64,
    /// See above.
    pub encode_ms_p99: f64,
    /// The same since the start.
    pub encode_times: Histogram,
    /// Interests received.
    pub interests_received: u64,
    /// Of those, answered when they came.
    pub interests_answered_at_once: u64,
    /// Of those, answered when their sample existed.
    pub interests_answered_after_waiting: u64,
    /// Interests held now.
    pub interests_pending: u64,
    /// Interests not answered.
    pub interests_dropped: u64,
    /// Data packets sent.
    pub data_sent: u64,
    /// Octets of encoded samples.
    pub payload_octets: u64,
    /// Octets of their packets, parity included.
    pub wire_octets: u64,
    /// Memory that cached samples take, in octets.
    pub cache_octets: u64,
    /// Packets that broke the format.
    pub malformed: u64,
    /// Of sealed samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed: Option<SealedFigures>,
    /// Of a package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<PackagedFigures>,
    /// Of the archive beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveFigures>,
}

/// Sealed samples and key boxes of a publisher.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct SealedFigures {
    /// Readers now.
    pub readers: u64,
    /// Samples and key boxes.
    #[serde(flatten)]
    pub counters: SealingCounters,
}

/// What happened to the inputs of a publisher, all together.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct InputFigures {
    /// Raw frames that came from the input.
    pub frames_captured: u64,
    /// Raw frames lost since an encoder was down.
    pub frames_lost: u64,
    /// Times an encoder was started again.
    pub encoder_restarts: u64,
    /// Inputs that failed while others went on.
    pub inputs_failed: u64,
    /// Times that a live input gave nothing for five seconds.
    pub input_silences: u64,
    /// Things in inputs that were damaged and passed over.
    pub input_damages: u64,
    /// Times that an input's pictures changed their size in mid-stream.
    pub input_size_changes: u64,
}

impl InputFigures {
    fn new(inputs: &[Arc<IngestCounters>]) -> Self {
        Self {
            frames_captured: sum(inputs, |it| &it.captured),
            frames_lost: sum(inputs, |it| &it.lost),
            encoder_restarts: sum(inputs, |it| &it.encoder_restarts),
            inputs_failed: 0,
            input_silences: sum(inputs, |it| &it.silences),
            input_damages: sum(inputs, |it| &it.damages),
            input_size_changes: sum(inputs, |it| &it.size_changes),
        }
    }
}

fn sum(inputs: &[Arc<IngestCounters>], counter: fn(&IngestCounters) -> &AtomicU64) -> u64 {
    let counters = inputs.iter().map(|input| counter(input));
    counters.map(|it| it.load(Ordering::Relaxed)).sum()
}

impl Figures {
    fn new(counted: &Counted, inputs: &[Arc<IngestCounters>], refused: u64) -> Self {
        let [encode_ms_p50, encode_ms_p99] = counted.encode_ms;
        let Counted {
            publisher,
            producer,
            ..
        } = counted;
        Self {
            frames_published: publisher.frames,
            frames_refused: publisher.frames_refused + refused + sum(inputs, |it| &it.overflowed),
            last_refusal: counted.last_refusal.clone(),
            inputs: InputFigures::new(inputs),
            encode_ms_p50,
            encode_ms_p99,
            encode_times: counted.encode_times,
            interests_received: producer.interests,
            interests_answered_at_once: producer.answered_at_once,
            interests_answered_after_waiting: producer.answered_after_waiting,
            interests_pending: counted.pending as u64,
            interests_dropped: producer.dropped.iter().sum(),
            data_sent: producer.data_sent,
            payload_octets: producer.payload,
            wire_octets: producer.wire,
            cache_octets: counted.cache_size.as_bytes(),
            malformed: publisher.malformed,
            sealed: counted.sealing,
            package: None,
            archive: None,
        }
    }

    /// A line for people.
    pub(super) fn line(&self) -> String {
        if let Some(package) = &self.package {
            return format!(
                "{} segments published, encoding {:.0} ms, {} Interests waiting, {} answered",
                package.segments_published,
                self.encode_ms_p50,
                package.interests_waiting,
                package.interests_answered
            );
        }
        format!(
            "{} frames published, encoding {:.0} ms, {} Interests waiting, {} Data sent",
            self.frames_published, self.encode_ms_p50, self.interests_pending, self.data_sent
        )
    }
}
