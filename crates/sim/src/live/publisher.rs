//! A publisher with its encoder.

use bytes::Bytes;
use core::convert::Infallible;
use namecast_apps::live::{EncodedFrame, Publisher, PublisherConfig, PublisherCounters};
use namecast_apps::{Application, Now, Output};
use namecast_packet::Name;
use namecast_stream::ProducerConfig;
use namecast_stream::producer::{ProducerCounters, RungId};
use namecast_units::{ByteSize, Duration, Instant, Timestamp};

use super::identity::Signing;
use super::media::Media;
use super::traffic::Traffic;
use crate::clock::EPOCH;

/// What is published, and when.
#[derive(Clone, Debug)]
pub struct LivePublisherConfig {
    /// The name to publish under.
    pub root: Name,
    /// Streams.
    pub media: Vec<Media>,
    /// Bounds.
    pub producer: ProducerConfig,
    /// Who signs.
    pub signing: Signing,
    /// When the first frame is captured, on the host's clock.
    pub start: Duration,
    /// When the publisher dies, if it does.
    pub stop: Option<Duration>,
    /// Of a stream that several publishers give: see [`PublisherConfig::shared_since`]. Their hosts' clocks must agree to
    /// within a frame or so, as cameras' do.
    pub shared_since: Option<Timestamp>,
}

impl LivePublisherConfig {
    /// Publishes `media` under `root` from the start on.
    pub fn new(root: Name, media: Vec<Media>) -> Self {
        Self {
            root,
            media,
            producer: ProducerConfig::default(),
            signing: Signing::default(),
            start: Duration::ZERO,
            stop: None,
            shared_since: None,
        }
    }
}

/// A publisher that is fed by a synthetic encoder. A frame is captured, encoded and published at one instant.
#[derive(Debug)]
pub struct LivePublisher {
    config: LivePublisherConfig,
    running: Option<Running>,
    /// When to start, if it does not run.
    start_at: Option<Instant>,
    traffic: Traffic,
}

#[derive(Debug)]
struct Running {
    publisher: Publisher,
    /// When the frames at position 0 were captured.
    origin: Instant,
    tracks: Vec<Track>,
}

/// Where a stream is.
#[derive(Debug)]
struct Track {
    media: Media,
    rungs: Vec<RungId>,
    position: u64,
    /// Frames were missed, so that the next one must stand alone.
    needs_key: bool,
}

impl LivePublisher {
    /// A publisher that starts when its configuration says.
    pub const fn new(config: LivePublisherConfig) -> Self {
        let start_at = Instant::from_nanos(config.start.as_nanos() as u64);
        Self {
            config,
            running: None,
            start_at: Some(start_at),
            traffic: Traffic::NONE,
        }
    }

    fn publisher(&self) -> Option<&Publisher> {
        self.running.as_ref().map(|running| &running.publisher)
    }

    /// What was published and what arrived since the publisher was started last.
    pub fn counters(&self) -> Option<(&PublisherCounters, &ProducerCounters)> {
        let publisher = self.publisher()?;
        Some((publisher.counters(), publisher.producer_counters()))
    }

    /// Interests held, and memory that cached samples take.
    pub fn sizes(&self) -> (usize, ByteSize) {
        self.publisher().map_or((0, ByteSize::ZERO), |publisher| {
            (publisher.pending(), publisher.cache_size())
        })
    }

    /// Packets at its face, in all its lives.
    pub const fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Dies: it answers nothing any more.
    pub fn die(&mut self) {
        self.running = None;
        self.start_at = None;
    }

    /// Starts, anew if it runs: positions and the catalogue begin again, unless the stream is shared.
    pub fn restart(&mut self, now: Now) {
        self.die();
        self.start(now);
    }

    /// Starts anew with other streams.
    pub fn restart_with(&mut self, now: Now, media: Vec<Media>) {
        self.config.media = media;
        self.restart(now);
    }

    /// # Panics
    /// If a catalogue cannot have such streams.
    fn start(&mut self, now: Now) {
        let config = PublisherConfig {
            root: self.config.root.clone(),
            streams: self.config.media.iter().map(Media::info).collect(),
            producer: self.config.producer.clone(),
            shared_since: self.config.shared_since,
        };
        let (signer, certificate) = self.config.signing.signer(&self.config.root);
        let publisher = Publisher::new(config, now.wall, signer, &certificate)
            .expect("streams are what a catalogue can have");
        // A shared stream goes on wherever its encoder is by now.
        let origin = match self.config.shared_since {
            Some(since) => Instant::ZERO + since.since(EPOCH),
            None => now.monotonic,
        };
        let passed = now.monotonic.since(origin);
        let tracks = self.config.media.iter().map(|media| Track {
            rungs: rungs(&publisher, media),
            position: media.position_after(passed),
            needs_key: true,
            media: media.clone(),
        });
        self.running = Some(Running {
            origin,
            tracks: tracks.collect(),
            publisher,
        });
        self.start_at = None;
    }
}

/// # Panics
/// If the publisher was not made with this stream.
fn rungs(publisher: &Publisher, media: &Media) -> Vec<RungId> {
    let find = |name: &str| publisher.rung(&media.name, name);
    let rungs = media.rungs.iter();
    rungs
        .map(|rung| find(&rung.name).expect("it was made with them"))
        .collect()
}

impl Running {
    /// Publishes what is due.
    fn publish_due(&mut self, now: Now) {
        for track in &mut self.tracks {
            while let at = track.due(self.origin)
                && at <= now.monotonic
            {
                // The next frame is due: this one belongs to a time when the host was down.
                let is_past = now.monotonic.since(at) >= track.media.rate.period();
                track.needs_key |= is_past;
                if !is_past && (!track.needs_key || track.media.is_key(track.position)) {
                    track.needs_key = false;
                    track.publish(now, &mut self.publisher);
                }
                track.position += 1;
            }
        }
    }
}

impl Track {
    fn due(&self, origin: Instant) -> Instant {
        origin + self.media.captured_after(self.position)
    }

    fn publish(&self, now: Now, publisher: &mut Publisher) {
        for (id, rung) in self.rungs.iter().zip(&self.media.rungs) {
            let frame = EncodedFrame {
                position: self.position,
                key: self.media.is_key(self.position),
                captured_at: now.wall,
                composition_offset: Duration::ZERO,
                encoded_at: now.wall,
                payload: self.media.payload(rung, self.position),
            };
            // A refusal is in the publisher's counters.
            let _ = publisher.publish_frame(now.monotonic, now.wall, *id, frame);
        }
    }
}

impl Application for LivePublisher {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        if let Some(running) = &mut self.running {
            self.traffic.count(&frame);
            let publisher = &mut running.publisher;
            publisher.handle_packet(now.monotonic, now.wall, frame);
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.start_at.is_some_and(|at| at <= now.monotonic) {
            self.start(now);
        }
        let stop = self.config.stop.map(|stop| Instant::ZERO + stop);
        if stop.is_some_and(|at| at <= now.monotonic) {
            self.die();
        }
        if let Some(running) = &mut self.running {
            running.publish_due(now);
            running.publisher.handle_timeout(now.monotonic);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let Some(running) = &self.running else {
            return self.start_at;
        };
        let stop = self.config.stop.map(|stop| Instant::ZERO + stop);
        let frames = running.tracks.iter().map(|track| track.due(running.origin));
        let times = frames.chain(stop).chain(running.publisher.poll_timeout());
        times.min()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        let frame = self.running.as_mut()?.publisher.poll_output()?;
        self.traffic.count(&frame);
        Some(Output::Send(frame))
    }
}
