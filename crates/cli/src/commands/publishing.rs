//! What `demo`, `publish` and `serve` have in common: an input is encoded, and published on a node.

use core::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast::{Handle, drive};
use namecast_apps::Now;
use namecast_apps::live::{EncodedFrame, Publisher, PublisherConfig, PublisherCounters};
use namecast_media::ingest::ladder::Ladder;
use namecast_media::ingest::source::Input;
use namecast_media::ingest::{
    AudioConfig, Ingest, IngestConfig, IngestCounters, IngestError, MediaEvent, MediaFrame,
    Opening, StreamKind, VideoConfig,
};
use namecast_media::streams::{self, Cutting};
use namecast_net::Node;
use namecast_packet::{Certificate, Name};
use namecast_stream::producer::{ProducerCounters, RungId};
use namecast_stream::{ProducerConfig, StreamInfo};
use namecast_units::{ByteSize, Duration};
use serde::Serialize;
use serde_json::{Value, json};

use super::key_store;
use crate::arguments::{Keys, Media};
use crate::page_server::hex;

/// An input that is being published.
pub(super) struct Publishing {
    ingest: Ingest,
    handle: Handle<Publisher>,
    /// What was counted a second ago.
    counted: Arc<Mutex<Counted>>,
    streams: Vec<StreamInfo>,
    rungs: Vec<(StreamKind, Vec<RungId>)>,
    refused: u64,
    encode_times: EncodeTimes,
    /// Name of the key that signs.
    pub(super) key_name: Name,
    /// SHA-256 digest of the key, in hexadecimal.
    pub(super) key_digest: String,
    /// The same as octets.
    pub(super) digest: [u8; 32],
}

/// Gives an input up that nobody waits for any more.
struct GivenUp(Option<Opening>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(opening) = &self.0 {
            opening.cancel();
        }
    }
}

/// What happened, for the command to tell.
pub(super) enum Happened {
    /// A frame was published, or not; nothing to tell.
    Frame,
    /// Something broke and is being mended.
    Trouble(String),
    /// The input is over, or failed.
    Over(Result<(), IngestError>),
}

impl Publishing {
    /// Opens the input, and publishes it under `name` on `node`.
    pub(super) async fn start(
        node: &Node,
        name: &Name,
        media: &Media,
        keys: &Keys,
    ) -> anyhow::Result<Self> {
        let identity = key_store(keys.keys.clone())?.identity(name)?;
        let certificate = Certificate::decode(identity.certificate.clone())?;
        let digest = certificate.public_key()?.digest();
        let (config, encoded) = (ingest_config(media)?, media.encoded.clone());
        let opening = Opening::default();
        let mut given_up = GivenUp(Some(opening.clone()));
        let start = move || match encoded.is_empty() {
            true => Ingest::start_by(&config, &opening),
            false => Ingest::copy(&encoded, config.looped, config.audio.as_ref()),
        };
        let ingest = tokio::task::spawn_blocking(start).await??;
        given_up.0 = None;
        let cutting = Cutting {
            segment_size: media.encoding.segment_size,
            parity_percent: media.encoding.fec,
        };
        let streams = streams::describe(ingest.video(), ingest.audio(), cutting);
        let clock = node.clock();
        let publisher = Publisher::new(
            PublisherConfig {
                root: name.clone(),
                streams: streams.clone(),
                producer: ProducerConfig::default(),
                shared_since: None,
            },
            clock.wall(),
            identity.signer,
            &certificate,
        )?;
        let rungs = rung_ids(&publisher, &streams);
        let face = node.application_face().await?;
        node.add_route(name.clone(), face.id(), 0).await?;
        let (handle, _) = drive(clock, face, publisher).spawn(|| {});
        Ok(Self {
            handle,
            counted: Arc::default(),
            ingest,
            streams,
            rungs,
            refused: 0,
            encode_times: EncodeTimes::default(),
            key_name: certificate.key_name(),
            key_digest: hex(&digest),
            digest,
        })
    }

    /// Publishes what comes next.
    pub(super) async fn next(&mut self) -> Happened {
        match self.ingest.next().await {
            Some(MediaEvent::Frame(frame)) => {
                self.publish(frame);
                Happened::Frame
            }
            Some(MediaEvent::Trouble(text)) => Happened::Trouble(text),
            Some(MediaEvent::Ended {
                stream: StreamKind::Audio,
                error: None,
            }) => Happened::Frame,
            Some(MediaEvent::Ended {
                error: Some(error), ..
            }) => Happened::Over(Err(error)),
            Some(MediaEvent::Ended { .. }) | None => Happened::Over(Ok(())),
        }
    }

    fn publish(&mut self, frame: MediaFrame) {
        let rungs = self.rungs.iter().find(|(kind, _)| *kind == frame.stream);
        let Some(&rung) = rungs.and_then(|(_, rungs)| rungs.get(frame.rung)) else {
            return;
        };
        if frame.stream == StreamKind::Video {
            self.encode_times
                .add(frame.encoded_at.since(frame.captured_at));
        }
        let encoded = EncodedFrame {
            position: frame.position,
            key: frame.key,
            captured_at: frame.captured_at,
            encoded_at: frame.encoded_at,
            payload: frame.payload,
        };
        let publish = move |publisher: &mut Publisher, now: Now| {
            // A refusal is in the publisher's counters.
            let _ = publisher.publish_frame(now.monotonic, now.wall, rung, encoded);
        };
        if !self.handle.try_call(publish) {
            self.refused += 1;
        }
    }

    /// What was counted.
    pub(super) async fn figures(&mut self) -> Figures {
        let counted = self.handle.call(|publisher, _| Counted::of(publisher));
        let counted = Counted {
            encode_ms: self.encode_times.take(),
            ..counted.await.unwrap_or_default()
        };
        *lock(&self.counted) = counted.clone();
        Figures::new(&counted, self.ingest.counters(), self.refused)
    }

    /// A function that tells the same to the web server.
    pub(super) fn status(&self) -> crate::page_server::MoreStatus {
        let counted = Arc::clone(&self.counted);
        let counters = Arc::clone(self.ingest.counters());
        Arc::new(move || {
            let figures = Figures::new(&lock(&counted), &counters, 0);
            serde_json::to_value(figures).unwrap_or(Value::Null)
        })
    }

    /// The streams in a line for people.
    pub(super) fn describe(&self) -> String {
        let mut line = String::new();
        for stream in &self.streams {
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

    /// The same for programs.
    pub(super) fn streams_json(&self) -> Value {
        json!(self.streams)
    }
}

fn ingest_config(media: &Media) -> anyhow::Result<IngestConfig> {
    let encoding = &media.encoding;
    let wish = encoding.ladder.clone().unwrap_or_default();
    let ladder = match media.input {
        Input::Test => wish.ladder()?,
        _ => Ladder::default(),
    };
    Ok(IngestConfig {
        input: media.input.clone(),
        looped: media.looped,
        video: VideoConfig {
            codec: encoding.codec,
            ladder,
            ..VideoConfig::default()
        },
        wish,
        audio: (!encoding.no_audio).then(|| AudioConfig {
            bitrate: encoding.audio_bitrate,
            ..AudioConfig::default()
        }),
    })
}

fn rung_ids(publisher: &Publisher, streams: &[StreamInfo]) -> Vec<(StreamKind, Vec<RungId>)> {
    let ids = |stream: &StreamInfo| {
        let rungs = stream.rungs.iter();
        rungs
            .filter_map(|rung| publisher.rung(&stream.name, &rung.name))
            .collect()
    };
    streams
        .iter()
        .map(|stream| (stream.kind, ids(stream)))
        .collect()
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
    /// Capture to end of encoding, median and 99th percentile of the last second.
    encode_ms: [f64; 2],
}

impl Counted {
    fn of(publisher: &Publisher) -> Self {
        Self {
            publisher: *publisher.counters(),
            producer: publisher.producer_counters().clone(),
            pending: publisher.pending(),
            cache_size: publisher.cache_size(),
            last_refusal: publisher.last_refusal().map(str::to_owned),
            encode_ms: [0.0; 2],
        }
    }
}

fn lock(counted: &Mutex<Counted>) -> MutexGuard<'_, Counted> {
    counted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Times from capture to the end of encoding since they were last taken.
#[derive(Debug, Default)]
struct EncodeTimes(Vec<Duration>);

impl EncodeTimes {
    /// At most so many: more than a second has.
    const MAX: usize = 4_096;

    fn add(&mut self, time: Duration) {
        if self.0.len() < Self::MAX {
            self.0.push(time);
        }
    }

    /// Median and 99th percentile in milliseconds.
    fn take(&mut self) -> [f64; 2] {
        let mut times = core::mem::take(&mut self.0);
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
    /// Raw frames that came from the input.
    pub frames_captured: u64,
    /// Raw frames lost since an encoder was down.
    pub frames_lost: u64,
    /// Times an encoder was started again.
    pub encoder_restarts: u64,
    /// Capture to end of encoding, median and 99th percentile of the last second, in milliseconds.
    pub encode_ms_p50: f64,
    /// See above.
    pub encode_ms_p99: f64,
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
}

impl Figures {
    fn new(counted: &Counted, ingest: &IngestCounters, refused: u64) -> Self {
        let [encode_ms_p50, encode_ms_p99] = counted.encode_ms;
        let Counted {
            publisher,
            producer,
            ..
        } = counted;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            frames_published: publisher.frames,
            frames_refused: publisher.frames_refused + refused + read(&ingest.overflowed),
            last_refusal: counted.last_refusal.clone(),
            frames_captured: read(&ingest.captured),
            frames_lost: read(&ingest.lost),
            encoder_restarts: read(&ingest.encoder_restarts),
            encode_ms_p50,
            encode_ms_p99,
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
        }
    }

    /// A line for people.
    pub(super) fn line(&self) -> String {
        format!(
            "{} frames published, encoding {:.0} ms, {} Interests waiting, {} Data sent",
            self.frames_published, self.encode_ms_p50, self.interests_pending, self.data_sent
        )
    }
}
