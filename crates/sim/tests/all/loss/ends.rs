//! A producer with a synthetic encoder, and a consumer that keeps what became of each frame.

#[path = "../../../../stream/tests/single/mod.rs"]
mod single;

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::{HmacSigner, HmacVerifier};
use namecast_packet::{KeyLocator, LpPacket, Packet};
use namecast_sim::{Application, Now, Output};
use namecast_stream::consumer::{self, Consumer, Delivery, Playout, Source, StartAt};
use namecast_stream::path::{Control, Uplink, UplinkConfig};
use namecast_stream::producer::{Arrival, ProducerCounters, Reply, RungConfig, RungId};
use namecast_stream::{
    Latest, Producer, ProducerConfig, Sample, SampleClass, SampleRate, SegmenterConfig, StreamKind,
    StreamNames,
};
use namecast_units::{Bitrate, Instant, Random, Timestamp};

use single::{Single, SingleOutput};

pub(crate) const ROOT: &str = "/demo";
const RATE: SampleRate = SampleRate::new(30, 1);
pub(crate) const GOP: u32 = 30;
const BITRATE: Bitrate = Bitrate::mbps(1);
/// Key frames are so many times as large as others.
const KEY_FACTOR: f64 = 4.0;
/// Standard deviation of frame sizes, as a share of their mean.
const DEVIATION: f64 = 0.2;

fn names() -> StreamNames {
    StreamNames::new(ROOT.parse().unwrap())
}

/// When frame `position` is published.
pub(crate) fn published_at(position: u64) -> Instant {
    Instant::ZERO + RATE.period() * u32::try_from(position).unwrap()
}

/// Publishes a frame every period from time zero on.
pub(crate) struct Encoder {
    producer: Producer,
    rung: RungId,
    random: Random,
    next: [u64; 2],
    pub(crate) position: u64,
    /// Frames from this one on to the next key frame are not published: it is refused as too large.
    pub(crate) giant: Option<u64>,
}

impl Encoder {
    pub(crate) fn new(segmenter: SegmenterConfig) -> Self {
        let locator = KeyLocator::Name("/demo/KEY/1".parse().unwrap());
        let signer = Box::new(HmacSigner::new(b"key", locator));
        let mut producer = Producer::new(ROOT.parse().unwrap(), signer, ProducerConfig::default());
        let config = RungConfig {
            segmenter,
            first_sequence: 1_000,
            inter_frame: None,
            ..RungConfig::default()
        };
        let rung = producer.add_rung("video", "1M", config).unwrap();
        Self {
            producer,
            rung,
            random: Random::from_seed(99),
            next: [1_000; 2],
            position: 0,
            giant: None,
        }
    }

    pub(crate) fn counters(&self) -> &ProducerCounters {
        self.producer.counters()
    }

    /// Octets of a frame: twelve uniform draws make a bell curve of deviation 1.
    fn size(&mut self, key: bool) -> usize {
        let mean = (BITRATE * RATE.period()).as_bytes() as f64;
        let delta = mean * f64::from(GOP) / (f64::from(GOP) - 1.0 + KEY_FACTOR);
        let mean = if key { delta * KEY_FACTOR } else { delta };
        let bell: f64 = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
        (mean * (1.0 + DEVIATION * bell)).max(mean / 4.0) as usize
    }

    /// A key frame of four thousand segments is refused, and what needs it is of no use.
    fn refuse(&mut self, now: Now, key: bool) {
        let giant = Sample {
            class: SampleClass::Key,
            sequence: self.next[0],
            other_sequence: self.next[1],
            position: self.position,
            captured_at: now.wall,
            composition_offset: Duration::ZERO,
            encoded_at: now.wall,
            payload: Bytes::from(vec![0; 4_000 * 1_000]),
            seal: None,
        };
        if key {
            let published = self
                .producer
                .publish(now.monotonic, now.wall, self.rung, &giant);
            let error = published.unwrap_err().to_string();
            assert!(error.contains("choose larger segments"), "{error}");
        }
    }

    fn publish(&mut self, now: Now) {
        let key = self.position.is_multiple_of(u64::from(GOP));
        let class = if key {
            SampleClass::Key
        } else {
            SampleClass::Delta
        };
        let [next_key, next_delta] = self.next;
        let (sequence, other_sequence) = match class {
            SampleClass::Key => (next_key, next_delta),
            SampleClass::Delta => (next_delta, next_key - 1),
        };
        let size = self.size(key);
        let group = |position: u64| position / u64::from(GOP);
        if self.giant.map(group) == Some(group(self.position)) {
            self.refuse(now, key);
            self.position += 1;
            return;
        }
        let sample = Sample {
            class,
            sequence,
            other_sequence,
            position: self.position,
            captured_at: now.wall,
            composition_offset: Duration::ZERO,
            encoded_at: now.wall,
            payload: Bytes::from(vec![self.position as u8; size]),
            seal: None,
        };
        self.producer
            .publish(now.monotonic, now.wall, self.rung, &sample)
            .unwrap();
        self.next[class.index()] += 1;
        self.position += 1;
    }
}

impl Application for Encoder {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let packet = LpPacket::decode(frame).unwrap();
        let token = packet.pit_token.clone();
        if let Ok(Packet::Interest(interest)) = Packet::decode(packet.fragment.unwrap()) {
            self.producer
                .handle_interest(
                    now.monotonic,
                    now.wall,
                    &interest,
                    Arrival {
                        pit_token: token,
                        face: None,
                    },
                )
                .ok();
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        while published_at(self.position) <= now.monotonic {
            self.publish(now);
        }
        self.producer.handle_timeout(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = Some(published_at(self.position));
        own.into_iter().chain(self.producer.poll_timeout()).min()
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        let Reply { data, pit_token } = self.producer.poll_output()?;
        let packet = LpPacket {
            pit_token,
            ..LpPacket::carrying(data.wire().clone())
        };
        Some(Output::Send(packet.encode()))
    }
}

/// What became of a frame that was delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// When it was complete, and when it was to be shown.
    pub(crate) complete_at: Instant,
    pub(crate) render_at: Instant,
}

/// Pulls the encoder's stream.
pub(crate) struct Viewer {
    pub(crate) single: Single,
    has_started: bool,
    pub(crate) frames: BTreeMap<u64, Shown>,
    pub(crate) interest_bytes: u64,
}

impl Viewer {
    pub(crate) fn new(
        config: consumer::Config,
        segmenter: SegmenterConfig,
        target: Duration,
        seed: u64,
    ) -> Self {
        let source = Source {
            kind: StreamKind::Video,
            names: names().rung("video", "1M"),
            rate: RATE,
            key_interval: GOP,
            bitrate: BITRATE,
            segment_size: u32::try_from(segmenter.segment_size).unwrap(),
            parity_percent: u32::try_from(segmenter.parity_percent).unwrap(),
            inter_frame: None,
            reorder_delay: Duration::ZERO,
            is_newest: false,
            every: 1,
        };
        let bounds = UplinkConfig {
            seed,
            target,
            ..UplinkConfig::default()
        };
        let budget = Control::Live.build(Instant::ZERO, BITRATE);
        let mut uplink = Uplink::new(bounds, budget);
        let mut consumer = Consumer::new(&config, source, uplink.new_client());
        let playout = Playout {
            wall_at_zero: wall_at_zero(),
            base: None,
            target,
        };
        consumer.set_playout(Instant::ZERO, playout, Duration::ZERO);
        consumer.set_verifier(Instant::ZERO, Arc::new(HmacVerifier::new(b"key")));
        Self {
            single: Single::new(consumer, uplink),
            has_started: false,
            frames: BTreeMap::new(),
            interest_bytes: 0,
        }
    }
}

/// Virtual time starts at 2026-01-01 00:00 UTC.
fn wall_at_zero() -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000)
}

impl Application for Viewer {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let packet = LpPacket::decode(frame).unwrap();
        if let Ok(Packet::Data(data)) = Packet::decode(packet.fragment.unwrap()) {
            let delivery = Delivery::default();
            self.single.handle_data(now.monotonic, &data, delivery);
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if !core::mem::replace(&mut self.has_started, true) {
            let latest = Latest {
                rung: names().rung("video", "1M").prefix().clone(),
                key_sequence: Some(1_000),
                delta_sequence: None,
                key_position: Some(0),
                served_at: now.wall,
                next_delta: None,
            };
            self.single
                .consumer
                .start(now.monotonic, &latest, StartAt::NewestKey);
        }
        self.single.handle_timeout(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.has_started {
            true => self.single.poll_timeout(),
            false => Some(Instant::ZERO + Duration::from_millis(1)),
        }
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        loop {
            match self.single.poll_output()? {
                SingleOutput::Interest(interest) => {
                    self.interest_bytes += interest.wire().len() as u64;
                    return Some(Output::Send(interest.wire().clone()));
                }
                SingleOutput::Sample(sample) => {
                    let shown = Shown {
                        complete_at: sample.complete_at,
                        render_at: sample.render_at,
                    };
                    self.frames.insert(sample.header.position, shown);
                }
                SingleOutput::Discontinuity => {}
            }
        }
    }
}
