//! Whatever arrives, in whatever order: a consumer does not panic, keeps its tables within bounds, and never delivers a sample
//! twice. Body of a fuzz target (see `fuzz/`), run here on random scripts.

#[path = "../single/mod.rs"]
mod single;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::{HmacSigner, HmacVerifier};
use namecast_packet::tlv::Writer;
use namecast_packet::{Data, Digests, Interest, KeyLocator, PacketDigest, lp::NackReason};
use namecast_stream::consumer::{
    Config, Consumer, Counters, Delivery, Playout, Shown, Source, StartAt,
};
use namecast_stream::path::{Budget, LiveConfig, Uplink, UplinkConfig};
use namecast_stream::producer::{Arrival, RungConfig, RungId};
use namecast_stream::rate::RateControl;
use namecast_stream::{
    InterFrameFec, Latest, Lead, Producer, ProducerConfig, Sample, SampleClass, SampleHeader,
    SampleRate, SegmentKind, SegmenterConfig, StreamKind, StreamNames,
};
use namecast_units::{Bitrate, Instant, Timestamp};

use single::{Single, SingleOutput};

const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
const PERIOD: Duration = Duration::from_millis(33);
const GROUP: u64 = 8;
const INTER_FRAME: InterFrameFec = InterFrameFec {
    samples: 3,
    parity: 2,
};
/// Interests and packets that the script may choose from.
const MAX_KEPT: usize = 256;

/// A script: octets that say what happens next.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn octet(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number of any size, small ones mostly.
    fn number(&mut self) -> u64 {
        let shift = self.octet().unwrap_or(0);
        let value = u64::from(self.octet().unwrap_or(0));
        match shift {
            0..=191 => value,
            192..=247 => value << (shift - 192),
            _ => u64::MAX - value,
        }
    }
}

fn signer() -> HmacSigner {
    let locator = KeyLocator::Name("/demo/KEY/1".parse().expect("a name"));
    HmacSigner::new(b"key", locator)
}

/// A consumer with its uplink, the producer whose stream it pulls, and what is between them.
struct Scene {
    now: Instant,
    /// Added to the producer's clock, in microseconds.
    skew: i64,
    single: Single,
    config: Config,
    producer: Producer,
    rung: RungId,
    next: [u64; 2],
    position: u64,
    interests: VecDeque<Interest>,
    packets: VecDeque<Data>,
    /// Positions may repeat once the script has lied about them.
    is_honest: bool,
    last: Option<u64>,
}

impl Scene {
    fn new(bounds: UplinkConfig, budget: Budget) -> Self {
        let names = StreamNames::new("/demo".parse().expect("a name"));
        let mut producer = Producer::new(
            names.root().clone(),
            Box::new(signer()),
            ProducerConfig::default(),
        );
        let config = RungConfig {
            segmenter: SegmenterConfig::default(),
            first_sequence: 1_000,
            inter_frame: Some(INTER_FRAME),
            ..RungConfig::default()
        };
        let rung = producer.add_rung("video", "1M", config).expect("one rung");
        let source = Source {
            kind: StreamKind::Video,
            names: names.rung("video", "1M"),
            rate: SampleRate::new(30, 1),
            key_interval: GROUP as u32,
            bitrate: Bitrate::mbps(1),
            segment_size: 1_000,
            parity_percent: 60,
            inter_frame: Some(INTER_FRAME),
            reorder_delay: Duration::ZERO,
            is_newest: false,
            every: 1,
        };
        // Small tables, so that a short script fills them.
        let config = Config {
            max_samples: 48,
            max_buffered: 200_000,
            max_outstanding: 600,
            max_unverified: 64,
            ..Config::default()
        };
        let mut uplink = Uplink::new(bounds, budget);
        let mut consumer = Consumer::new(&config.clone(), source, uplink.new_client());
        let playout = Playout {
            wall_at_zero: WALL,
            base: None,
            target: Duration::from_millis(100),
        };
        consumer.set_playout(Instant::ZERO, playout, Duration::ZERO);
        Self {
            now: Instant::ZERO,
            skew: 0,
            single: Single::new(consumer, uplink),
            config,
            producer,
            rung,
            next: [1_000; 2],
            position: 0,
            interests: VecDeque::new(),
            packets: VecDeque::new(),
            is_honest: true,
            last: None,
        }
    }

    fn wall(&self) -> Timestamp {
        let wall = (WALL + self.now.since(Instant::ZERO)).as_micros();
        Timestamp::from_micros(wall.saturating_add_signed(self.skew))
    }

    fn publish(&mut self, size: usize) {
        let is_key = self.position.is_multiple_of(GROUP);
        let class = if is_key {
            SampleClass::Key
        } else {
            SampleClass::Delta
        };
        let [key, delta] = self.next;
        let (sequence, other_sequence) = if is_key {
            (key, delta)
        } else {
            (delta, key - 1)
        };
        let wall = self.wall();
        let sample = Sample {
            class,
            sequence,
            other_sequence,
            position: self.position,
            captured_at: wall,
            composition_offset: Duration::ZERO,
            encoded_at: wall,
            payload: Bytes::from(vec![1; size]),
            seal: None,
        };
        if self
            .producer
            .publish(self.now, wall, self.rung, &sample)
            .is_ok()
        {
            self.next[class.index()] += 1;
            self.position += 1;
        }
        self.collect();
    }

    /// Lets the producer answer Interest `at` of those that are out.
    fn answer(&mut self, at: usize) {
        if let Some(interest) = self.interests.get(at % self.interests.len().max(1)) {
            let wall = self.wall();
            self.producer
                .handle_interest(self.now, wall, interest, Arrival::default())
                .ok();
            self.collect();
        }
    }

    /// A sample, all that is requested, and all of it that is not `lost`, over a way so long that what is lost cannot be asked
    /// for again in time: inter-frame FEC is.
    fn play(&mut self, mut lost: u64) {
        self.now += PERIOD;
        self.single
            .consumer
            .schedule_mut()
            .on_round_trip(self.now, PERIOD * 4);
        self.publish(200);
        for interest in core::mem::take(&mut self.interests) {
            let wall = self.wall();
            self.producer
                .handle_interest(self.now, wall, &interest, Arrival::default())
                .ok();
        }
        self.collect();
        for data in core::mem::take(&mut self.packets) {
            if lost & 1 == 0 {
                self.give(&data);
            }
            lost >>= 1;
        }
    }

    fn collect(&mut self) {
        while let Some(reply) = self.producer.poll_output() {
            self.packets.push_back(reply.data);
            if self.packets.len() > MAX_KEPT {
                self.packets.pop_front();
            }
        }
    }

    fn deliver(&mut self, at: usize, repeats: bool) {
        let count = self.packets.len().max(1);
        let data = match repeats {
            true => self.packets.get(at % count).cloned(),
            false => self.packets.remove(at % count),
        };
        if let Some(data) = data {
            self.give(&data);
        }
    }

    fn give(&mut self, data: &Data) {
        let delivery = Delivery {
            congestion_marked: false,
            face: Some(1),
            ..Delivery::default()
        };
        self.single.handle_data(self.now, data, delivery);
    }

    /// A lead that is signed and says whatever the script says, under the name that an Interest requests.
    fn lie(&mut self, script: &mut Script<'_>) {
        let Some(interest) = self.interests.get(script.number() as usize % MAX_KEPT) else {
            return;
        };
        self.is_honest = false;
        let digests = vec![0x5a; (script.number() as usize % 500) * PacketDigest::SIZE];
        let count = digests.len() / PacketDigest::SIZE;
        let parity_count = script.number() as usize % (count + 1);
        let several = count > parity_count;
        let shard = script.number() as usize % 8_000 + 1;
        let share = vec![0; script.number() as usize % 1_000];
        let header = SampleHeader {
            captured_at: Timestamp::from_micros(WALL.as_micros().wrapping_add(script.number())),
            composition_offset: Duration::ZERO,
            encoded_after: Duration::from_micros(script.number()),
            published_after: Duration::from_micros(script.number()),
            position: script.number(),
            other_sequence: script.number(),
            payload_size: share.len()
                + if several {
                    (count - parity_count) * shard
                } else {
                    0
                },
            shard_size: several.then_some(shard),
            parity_count,
            asked: None,
            seal: None,
        };
        let mut writer = Writer::default();
        header.encode(&mut writer);
        if let Ok(digests) = Digests::decode(&digests.into()) {
            digests.encode(&mut writer);
        }
        writer.raw(&share);
        let lead = Data::builder(interest.name().clone())
            .content(writer.finish())
            .sign(&signer());
        // Most of them pass the format's own checks.
        let _ = Lead::decode(&lead);
        self.give(&lead);
    }

    fn give_signed(&mut self, interest: Option<Interest>, content: Vec<u8>) {
        if let Some(interest) = interest {
            let data = Data::builder(interest.name().clone()).content(content);
            self.give(&data.sign(&signer()));
        }
    }

    /// A shard across samples that is signed and holds `octets` over and over, as many as the right one or as it likes.
    fn lie_inter_frame(&mut self, octets: &[u8], fits: bool) {
        let names = self.single.consumer.source().names.clone();
        let is_inter_frame = |interest: &&Interest| {
            let id = names.parse(interest.name());
            id.is_some_and(|id| id.kind == SegmentKind::InterFrame)
        };
        let interest = self.interests.iter().rev().find(is_inter_frame).cloned();
        let mut writer = Writer::default();
        writer.nested(194, |code| {
            code.number(196, u64::from(INTER_FRAME.samples));
            code.number(144, u64::from(INTER_FRAME.parity));
        });
        let most = if fits { 1_024 } else { octets.len() };
        let shard: Vec<u8> = octets.iter().copied().cycle().take(most).collect();
        writer.raw(&shard);
        self.give_signed(interest, writer.finish().to_vec());
    }

    fn latest(&self, script: &mut Script<'_>) -> Latest {
        let honest = script.octet().unwrap_or(0) < 192;
        let mut newest = |next: u64| match honest {
            true => next.checked_sub(1).filter(|&newest| newest >= 1_000),
            false => Some(script.number()),
        };
        let (key_sequence, delta_sequence) = (newest(self.next[0]), newest(self.next[1]));
        Latest {
            rung: self.single.consumer.source().names.prefix().clone(),
            key_sequence,
            delta_sequence,
            key_position: None,
            served_at: self.wall(),
            next_delta: None,
        }
    }

    fn line_up(&mut self, script: &mut Script<'_>) {
        let latest = self.latest(script);
        let starved = script.octet().is_some_and(|octet| octet < 64);
        let _ = self.single.consumer.line_up(self.now, &latest, starved);
        self.single.consumer.catch_up(self.now);
    }

    fn start(&mut self, script: &mut Script<'_>) {
        let latest = self.latest(script);
        let shown = self.last.map(|position| Shown {
            position: Some(position),
            presented_at: Timestamp::from_micros(u64::MAX / 2),
        });
        self.single.consumer.set_shown(shown);
        self.single
            .consumer
            .start(self.now, &latest, StartAt::NewestKey);
    }

    /// One step. `None` at the end of the script.
    fn step(&mut self, script: &mut Script<'_>) -> Option<()> {
        let what = script.octet()?;
        match what % 16 {
            0..=2 => {
                self.now += Duration::from_millis(script.number() % 5_000);
                self.single.handle_timeout(self.now);
            }
            3 | 4 => {
                self.now += PERIOD;
                self.publish(script.number() as usize % 40_000 + 1);
            }
            5 if what < 128 => (0..4).for_each(|at| self.answer(at)),
            5 => self.play(script.number()),
            6 => self.answer(script.number() as usize),
            7 | 8 => (0..4).for_each(|_| self.deliver(0, false)),
            9 => self.deliver(script.number() as usize, what < 128),
            10 => self.lie(script),
            11 => {
                let at = script.number() as usize % self.interests.len().max(1);
                if let Some(interest) = self.interests.get(at).cloned() {
                    let reason = match what / 16 % 3 {
                        0 => NackReason::Congestion,
                        1 => NackReason::Duplicate,
                        _ => NackReason::NoRoute,
                    };
                    self.single.handle_nack(self.now, &interest, reason);
                }
            }
            12 => {
                let end = (script.number() as usize % 64).min(script.0.len());
                let (octets, rest) = script.0.split_at(end);
                script.0 = rest;
                if what < 128 {
                    self.give_signed(self.interests.front().cloned(), octets.to_vec());
                } else {
                    self.lie_inter_frame(octets, what < 192);
                }
            }
            13 => self.line_up(script),
            14 => match what / 16 {
                0..=3 => self.start(script),
                4..=7 => self.single.handle_link_change(self.now),
                8..=10 => self.single.consumer.handle_decoder_error(self.now),
                11 => self.single.consumer.set_held(self.now, true),
                _ => self.single.consumer.set_held(self.now, false),
            },
            _ => match what / 16 {
                0..=7 => {
                    let verifier = Arc::new(HmacVerifier::new(b"key"));
                    self.single.consumer.set_verifier(self.now, verifier);
                }
                _ => self.skew = self.skew.wrapping_add(script.number().cast_signed()) % (1 << 50),
            },
        }
        Some(())
    }

    fn check(&mut self) {
        self.single.handle_timeout(self.now);
        // Time may stand still for no more than a few calls.
        for _ in 0..1_000 {
            match self.single.poll_timeout() {
                Some(at) if at <= self.now => self.single.handle_timeout(self.now),
                _ => break,
            }
        }
        let at = self.single.poll_timeout();
        assert!(at.is_none_or(|at| at > self.now), "time stands still");
        while let Some(output) = self.single.poll_output() {
            match output {
                SingleOutput::Interest(interest) => {
                    self.interests.push_back(interest);
                    if self.interests.len() > MAX_KEPT {
                        self.interests.pop_front();
                    }
                }
                SingleOutput::Sample(sample) => {
                    let position = sample.header.position;
                    let follows = self.last.is_none_or(|last| position > last);
                    assert!(
                        follows || !self.is_honest,
                        "{position} after {:?}",
                        self.last
                    );
                    self.last = Some(position);
                }
                SingleOutput::Discontinuity => {}
            }
        }
        let (sizes, most) = (self.single.consumer.sizes(), &self.config);
        assert!(sizes.samples <= most.max_samples, "{sizes:?}");
        assert!(sizes.buffered <= most.max_buffered, "{sizes:?}");
        assert!(sizes.outstanding <= most.max_outstanding, "{sizes:?}");
        assert!(sizes.queued <= most.max_outstanding, "{sizes:?}");
        assert!(sizes.unverified <= most.max_unverified, "{sizes:?}");
    }
}

/// Takes `octets` for a script, once bounded as watchers are, once without bounds, so that repairs are in use whatever the
/// path seems like. Returns what the consumer counted the second time.
pub(crate) fn consumer(octets: &[u8]) -> Counters {
    let live = Budget::live(LiveConfig::default());
    play(octets, Scene::new(UplinkConfig::default(), live));
    let unlimited = Budget::controller(RateControl::Unlimited.build(Instant::ZERO));
    let bounds = UplinkConfig {
        max_attempts: u32::MAX,
        max_repairs: f64::INFINITY,
        ..UplinkConfig::default()
    };
    play(octets, Scene::new(bounds, unlimited))
}

fn play(octets: &[u8], mut scene: Scene) -> Counters {
    let mut script = Script(octets);
    scene.publish(5_000);
    let verifier = Arc::new(HmacVerifier::new(b"key"));
    scene.single.consumer.set_verifier(scene.now, verifier);
    scene.start(&mut Script(&[]));
    scene.check();
    while scene.step(&mut script).is_some() {
        scene.check();
    }
    scene.single.consumer.counters()
}
