//! A publisher and its watchers in virtual time, joined by one link with delay, loss and damage.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use core::time::Duration;

use bytes::Bytes;
use namecast_apps::Output;
use namecast_apps::live::publisher::{EncodedFrame, Publisher, PublisherConfig};
use namecast_apps::live::watcher::{Event, Frame, Signer, Watched, Watcher, WatcherConfig};
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{
    Certificate, Data, Interest, KeyLocator, LpPacket, Name, Nonce, Packet, Validity,
};
use namecast_stream::{ProducerConfig, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::{Bitrate, ByteSize, Instant, Random, Timestamp};

/// The publisher's wall clock at the start of virtual time.
pub(crate) const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
pub(crate) const ROOT: &str = "/demo";
/// From capture to the end of encoding.
pub(crate) const ENCODE: Duration = Duration::from_millis(7);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// What is published.
#[derive(Clone, Debug)]
pub(crate) struct Show {
    pub(crate) fps: u32,
    pub(crate) key_interval: u32,
    /// Octets of key and delta frames at each rung, lowest first.
    pub(crate) rungs: Vec<(&'static str, usize, usize)>,
    /// Frames by which all rungs but the lowest are encoded later.
    pub(crate) lag: u64,
    /// Whether the highest rung has B-frames, and how its groups begin.
    pub(crate) pyramid: Option<Pyramid>,
    /// Whether there is audio: 50 packets of 160 octets a second.
    pub(crate) audio: bool,
    /// Streams of 16 rungs in which nothing is published: they only make the catalogue long.
    pub(crate) spare_streams: usize,
}

impl Default for Show {
    /// 1 Mbit/s at 30 fps, one key frame a second: 12 kB and 3.9 kB a frame.
    fn default() -> Self {
        Self {
            fps: 30,
            key_interval: 30,
            rungs: vec![("1M", 12_000, 3_900)],
            lag: 0,
            pyramid: None,
            audio: false,
            spare_streams: 0,
        }
    }
}

impl Show {
    pub(crate) fn streams(&self) -> Vec<StreamInfo> {
        let rung = |name: &str, octets: usize, rate: u32, key_interval| Rung {
            name: name.to_owned(),
            bitrate: Bitrate::bps(octets as u64 * 8 * u64::from(rate)),
            width: None,
            height: None,
            rate: SampleRate::new(rate, 1),
            key_interval,
            reorder_delay: 0,
            codec_string: "x".to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: None,
            description: None,
        };
        let stream = |name: &str, kind, rungs| StreamInfo {
            name: name.to_owned(),
            kind,
            codec: "x".to_owned(),
            rungs,
            segment_size: 1_000,
            parity_percent: 20,
            reading: Reading::default(),
        };
        let mut video: Vec<_> = self
            .rungs
            .iter()
            .map(|&(name, _, delta)| rung(name, delta, self.fps, self.key_interval))
            .collect();
        if let Some(highest) = video.last_mut().filter(|_| self.pyramid.is_some()) {
            let period = highest.rate.period().as_micros() as u64;
            highest.reorder_delay = Pyramid::MAX_OFFSET * period;
        }
        let mut streams = vec![stream("video", StreamKind::Video, video)];
        if self.audio {
            let audio = vec![rung("64k", 160, 50, 1)];
            streams.push(stream("audio", StreamKind::Audio, audio));
        }
        for spare in 0..self.spare_streams {
            let rungs = (0..16).map(|n| rung(&format!("{n:060}"), 10, 30, 30));
            let name = format!("spare{spare}");
            streams.push(stream(&name, StreamKind::Video, rungs.collect()));
        }
        streams
    }
}

/// Three B-frames between two others, of which the middle one is a reference: P₄ B₂ B₁ B₃.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pyramid {
    /// Groups of 4·n + 1 pictures: nothing before a key frame needs it.
    Closed,
    /// Groups of 4·n pictures: the three before a key frame are decoded after it.
    Open,
}

impl Pyramid {
    /// Pictures that wait for others.
    pub(crate) const DEPTH: u64 = 2;
    /// P₄ is decoded as the second picture and shown as the fifth, two periods after it could be.
    pub(crate) const MAX_OFFSET: u64 = 4 - 1 + Self::DEPTH;
    const STEPS: [u64; 4] = [4, 2, 1, 3];

    /// The picture that is decoded at `position`, by its number in the order of presentation.
    pub(crate) const fn picture(self, position: u64, key_interval: u64) -> u64 {
        let begins = match self {
            Self::Closed => position / key_interval * key_interval,
            Self::Open => 0,
        };
        match (position - begins).checked_sub(1) {
            None => begins,
            Some(after) => begins + after / 4 * 4 + Self::STEPS[(after % 4) as usize],
        }
    }
}

/// Octets that belong to the frame at `position`, whatever its size.
pub(crate) fn payload(position: u64, size: usize) -> Bytes {
    let mut random = Random::from_seed(position);
    let mut octets = vec![0; size];
    random.fill(&mut octets);
    octets.into()
}

pub(crate) fn signer(seed: u8) -> Ed25519Signer {
    let key = format!("{ROOT}/KEY/k{seed}").parse().unwrap();
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(key))
}

pub(crate) fn certificate(seed: u8) -> Certificate {
    let validity = Validity {
        not_before: Timestamp::from_micros(0),
        not_after: WALL + Duration::from_secs(1 << 30),
    };
    let id = format!("k{seed}");
    let identity = ROOT.parse().unwrap();
    Certificate::self_signed(&identity, id.as_bytes(), 1, validity, &signer(seed))
}

pub(crate) fn key_digest(seed: u8) -> [u8; 32] {
    signer(seed).public_key().digest()
}

/// One watcher and what it delivered.
pub(crate) struct Peer {
    pub(crate) watcher: Watcher,
    pub(crate) frames: Vec<(Instant, Frame)>,
    pub(crate) events: Vec<(Instant, Event)>,
    pub(crate) signers: Vec<Signer>,
    pub(crate) resets: Vec<(Instant, StreamKind)>,
    /// When the frame delivered last was published, and its position, by stream.
    last_published: BTreeMap<&'static str, (Instant, u64)>,
    pub(crate) interests: u64,
    /// Names asked for with MustBeFresh.
    pub(crate) fresh: Vec<Name>,
    /// Whether nobody calls it for now: a hidden tab.
    pub(crate) asleep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum To {
    /// The publisher, from a watcher.
    Publisher(usize),
    Watcher(usize),
}

/// What the link does to a packet towards a watcher: drops it (`None`), passes it on, or something else.
pub(crate) type Tamper = Box<dyn FnMut(Instant, Bytes) -> Option<Bytes>>;

/// A frame, whatever rung it comes from: stream, time of capture, position.
type FrameId = (&'static str, Timestamp, u64);

/// Names pending in the aggregating node before the publisher, and who asked.
type Pending = BTreeMap<Name, Vec<(usize, bool, Instant)>>;

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) show: Show,
    pub(crate) publisher: Option<Publisher>,
    pub(crate) peers: Vec<Peer>,
    /// One-way delay, and what is added at random, up to this.
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    /// What the link carries towards watchers.
    pub(crate) rate: Option<Bitrate>,
    /// When the link has sent all that waits for it.
    free_at: Instant,
    /// Loss in each direction.
    pub(crate) loss: f64,
    pub(crate) tamper: Option<Tamper>,
    /// Whether nothing passes.
    pub(crate) cut: bool,
    /// Whether the publisher has nothing to publish.
    pub(crate) silent: bool,
    /// Added to the publisher's clock, in microseconds.
    pub(crate) skew: i64,
    /// The same when the publisher was first called, by which its stream runs.
    skew_at_start: Option<i64>,
    /// Readers of sealed samples; `None`: they are not sealed.
    pub(crate) readers: Option<BTreeSet<[u8; 32]>>,
    /// Data packets that left the publisher, if they are kept.
    pub(crate) captured: Option<Vec<Data>>,
    /// Data packets that left the publisher.
    pub(crate) data_sent: u64,
    pub(crate) interests_seen: u64,
    in_flight: BinaryHeap<Reverse<(Instant, u64, To, Bytes)>>,
    pending: Pending,
    number: u64,
    random: Random,
    video: (Instant, u64),
    audio: (Instant, u64),
    /// When each frame was published, by stream, time of capture and position.
    published: BTreeMap<FrameId, Instant>,
}

impl World {
    pub(crate) fn new(show: Show) -> Self {
        let mut world = Self {
            now: Instant::ZERO,
            show,
            publisher: None,
            peers: Vec::new(),
            delay: ms(25),
            jitter: Duration::ZERO,
            rate: None,
            free_at: Instant::ZERO,
            loss: 0.0,
            tamper: None,
            cut: false,
            silent: false,
            skew: 0,
            skew_at_start: None,
            readers: None,
            captured: None,
            data_sent: 0,
            interests_seen: 0,
            in_flight: BinaryHeap::new(),
            pending: Pending::new(),
            number: 0,
            random: Random::from_seed(1),
            video: (Instant::ZERO, 0),
            audio: (Instant::ZERO, 0),
            published: BTreeMap::new(),
        };
        world.start_publisher(7);
        world
    }

    /// Starts the publisher, anew if there is one, with the key of `seed`.
    pub(crate) fn start_publisher(&mut self, seed: u8) {
        let config = PublisherConfig {
            root: ROOT.parse().unwrap(),
            streams: self.show.streams(),
            producer: ProducerConfig::default(),
            shared_since: None,
        };
        let publisher = Publisher::new(
            config,
            self.wall(),
            Box::new(signer(seed)),
            &certificate(seed),
        );
        let publisher = publisher.unwrap();
        self.publisher = Some(match &self.readers {
            None => publisher,
            Some(readers) => publisher.sealed([self.number as u8; 32], readers).unwrap(),
        });
        self.skew_at_start = None;
        self.pending.clear();
        (self.video, self.audio) = ((self.now, 0), (self.now, 0));
    }

    /// Has the publisher that runs publish another show. Sound that comes begins now.
    pub(crate) fn change(&mut self, show: Show) {
        if show.audio && !self.show.audio {
            self.audio = (self.now, 0);
        }
        let (wall, streams) = (self.wall(), show.streams());
        self.show = show;
        let publisher = self.publisher.as_mut().unwrap();
        publisher.set_streams(wall, streams).unwrap();
    }

    pub(crate) fn config() -> WatcherConfig {
        WatcherConfig {
            wall_at_zero: WALL,
            ..WatcherConfig::new(ROOT.parse().unwrap())
        }
    }

    pub(crate) fn join(&mut self, config: WatcherConfig) -> usize {
        self.peers.push(Peer {
            watcher: Watcher::new(config),
            frames: Vec::new(),
            events: Vec::new(),
            signers: Vec::new(),
            resets: Vec::new(),
            last_published: BTreeMap::new(),
            interests: 0,
            fresh: Vec::new(),
            asleep: false,
        });
        self.peers.len() - 1
    }

    pub(crate) fn wall(&self) -> Timestamp {
        let wall = (WALL + self.now.since(Instant::ZERO)).as_micros();
        Timestamp::from_micros(wall.saturating_add_signed(self.skew))
    }

    pub(crate) fn run_until(&mut self, end: Instant) {
        let mut steps_here = 0;
        loop {
            let next = self.next_event();
            if next > end {
                break;
            }
            steps_here = if next > self.now { 0 } else { steps_here + 1 };
            assert!(steps_here < 20_000, "time stands still at {}", self.now);
            self.now = self.now.max(next);
            self.step();
        }
        self.now = end;
    }

    fn next_event(&self) -> Instant {
        let media = [
            Some(self.video.0).filter(|_| !self.silent && self.publisher.is_some()),
            Some(self.audio.0)
                .filter(|_| !self.silent && self.publisher.is_some() && self.show.audio),
        ];
        let packets = self.in_flight.peek().map(|Reverse((at, ..))| *at);
        let publisher = self.publisher.as_ref().and_then(Publisher::poll_timeout);
        let peers = self
            .peers
            .iter()
            .filter(|peer| !peer.asleep)
            .filter_map(|peer| peer.watcher.poll_timeout());
        let times = media.into_iter().flatten().chain(packets).chain(publisher);
        let far = Instant::from_nanos(u64::MAX);
        times.chain(peers).min().unwrap_or(far)
    }

    fn step(&mut self) {
        self.publish_due();
        while let Some(Reverse((at, ..))) = self.in_flight.peek()
            && *at <= self.now
        {
            let Reverse((_, _, to, packet)) = self.in_flight.pop().unwrap();
            self.deliver(to, packet);
        }
        if let Some(publisher) = &mut self.publisher {
            publisher.handle_timeout(self.now);
        }
        self.drain_publisher();
        for index in 0..self.peers.len() {
            let due = self.peers[index]
                .watcher
                .poll_timeout()
                .is_some_and(|at| at <= self.now);
            if due && !self.peers[index].asleep {
                self.peers[index].watcher.handle_timeout(self.now);
            }
            self.drain(index);
        }
    }

    fn publish_due(&mut self) {
        let (now, wall) = (self.now, self.wall());
        let set = *self.skew_at_start.get_or_insert(self.skew) - self.skew;
        let on_stream =
            |at: Timestamp| Timestamp::from_micros(at.as_micros().saturating_add_signed(set));
        if self.silent {
            self.video.0 = self.video.0.max(now);
            self.audio.0 = self.audio.0.max(now);
            return;
        }
        let Some(publisher) = &mut self.publisher else {
            return;
        };
        let period = Duration::from_secs(1) / self.show.fps;
        let captured = |before: Duration| {
            Timestamp::from_micros(wall.as_micros() - (ENCODE + before).as_micros() as u64)
        };
        let encoded = |position, key, payload| EncodedFrame {
            position,
            key,
            captured_at: captured(Duration::ZERO),
            composition_offset: Duration::ZERO,
            encoded_at: wall,
            payload,
        };
        while self.video.0 <= now {
            let newest = self.video.1;
            if let Some(pyramid) = self.show.pyramid {
                let frame = encoded(newest, false, Bytes::new());
                publish_pictures(publisher, &self.show, pyramid, &frame);
                self.video.0 += period;
                self.video.1 += 1;
                continue;
            }
            for (number, &(name, key_size, delta_size)) in self.show.rungs.iter().enumerate() {
                let lag = if number == 0 { 0 } else { self.show.lag };
                let Some(position) = newest.checked_sub(lag) else {
                    continue;
                };
                let rung = publisher.rung("video", name).unwrap();
                let key = position.is_multiple_of(u64::from(self.show.key_interval));
                let size = if key { key_size } else { delta_size };
                let frame = EncodedFrame {
                    captured_at: captured(period * lag as u32),
                    composition_offset: Duration::ZERO,
                    ..encoded(position, key, payload(position, size))
                };
                publisher.publish_frame(now, wall, rung, frame).unwrap();
            }
            let id = ("video", on_stream(captured(Duration::ZERO)), newest);
            self.published.insert(id, now);
            self.video.0 += period;
            self.video.1 += 1;
        }
        while self.show.audio && self.audio.0 <= now {
            let rung = publisher.rung("audio", "64k").unwrap();
            let frame = encoded(self.audio.1, true, payload(self.audio.1, 160));
            let id = ("audio", on_stream(frame.captured_at), frame.position);
            publisher.publish_frame(now, wall, rung, frame).unwrap();
            self.published.insert(id, now);
            self.audio.0 += ms(20);
            self.audio.1 += 1;
        }
    }

    fn deliver(&mut self, to: To, packet: Bytes) {
        match to {
            To::Publisher(from) => self.forward(from, packet),
            To::Watcher(index) => {
                if !self.peers[index].asleep {
                    self.peers[index].watcher.handle_packet(self.now, packet);
                    self.drain(index);
                }
            }
        }
    }

    /// The node before the publisher: one Interest upstream for each name, however many ask.
    fn forward(&mut self, from: usize, packet: Bytes) {
        let interest = Interest::decode(packet.clone()).unwrap();
        let expires = self.now + interest.lifetime();
        let entry = self.pending.entry(interest.name().clone()).or_default();
        entry.retain(|(_, _, at)| *at > self.now);
        let is_again = entry.iter().any(|(peer, ..)| *peer == from);
        let is_first = entry.is_empty();
        entry.retain(|(peer, ..)| *peer != from);
        entry.push((from, interest.can_be_prefix(), expires));
        if is_first || is_again {
            self.interests_seen += 1;
            let wall = self.wall();
            if let Some(publisher) = &mut self.publisher {
                publisher.handle_packet(self.now, wall, packet);
            }
            self.drain_publisher();
        }
    }

    fn drain_publisher(&mut self) {
        while let Some(packet) = self.publisher.as_mut().and_then(Publisher::poll_output) {
            let Ok(Packet::Data(data)) = Packet::decode(packet.clone()) else {
                // A Nack, for what will never exist: who sent the Interest gives it up.
                let link = LpPacket::decode(packet).expect("a publisher sends Data or Nacks");
                assert!(link.nack.is_some());
                continue;
            };
            self.data_sent += 1;
            if let Some(captured) = &mut self.captured {
                captured.push(data.clone());
            }
            let names: Vec<_> = data.name().prefixes().collect();
            for name in names {
                let is_exact = name == *data.name();
                let Some(entry) = self.pending.get_mut(&name) else {
                    continue;
                };
                let now = self.now;
                let takers: Vec<_> = entry
                    .iter()
                    .filter(|(_, prefix, at)| (is_exact || *prefix) && *at > now)
                    .map(|(peer, ..)| *peer)
                    .collect();
                self.pending.remove(&name);
                for peer in takers {
                    self.send(To::Watcher(peer), packet.clone());
                }
            }
        }
    }

    /// Puts a packet on the link as if the publisher's side had sent it.
    pub(crate) fn inject(&mut self, peer: usize, packet: Bytes) {
        self.send(To::Watcher(peer), packet);
    }

    fn send(&mut self, to: To, packet: Bytes) {
        if self.cut || self.random.chance(self.loss) {
            return;
        }
        let packet = match (&mut self.tamper, to) {
            (Some(tamper), To::Watcher(_)) => tamper(self.now, packet),
            _ => Some(packet),
        };
        let Some(packet) = packet else {
            return;
        };
        let jitter = self.random.below(self.jitter.as_nanos() as u64 + 1);
        let mut leaves = self.now;
        if let (Some(rate), To::Watcher(_)) = (self.rate, to) {
            leaves = self.free_at.max(leaves) + ByteSize::bytes(packet.len() as u64) / rate;
            self.free_at = leaves;
        }
        let arrives = leaves + self.delay + Duration::from_nanos(jitter);
        self.number += 1;
        self.in_flight
            .push(Reverse((arrives, self.number, to, packet)));
    }

    fn drain(&mut self, index: usize) {
        let now = self.now;
        while let Some(output) = self.peers[index].watcher.poll_output() {
            let peer = &mut self.peers[index];
            match output {
                Output::Send(wire) => {
                    peer.interests += 1;
                    let interest = Interest::decode(wire.clone()).unwrap();
                    if interest.must_be_fresh() {
                        peer.fresh.push(interest.name().clone());
                    }
                    self.send(To::Publisher(index), wire);
                }
                Output::Event(Watched::Frame(frame)) => {
                    // Whatever happens, nothing is shown twice, nor anything after what came later.
                    let stream = stream_name(frame.stream);
                    let id = (stream, frame.captured_at, frame.position);
                    let published = match self.show.pyramid {
                        Some(_) => now,
                        None => self.published[&id],
                    };
                    let published = (published, frame.position);
                    let before = peer.last_published.insert(stream, published);
                    let is_later = before < Some(published) || self.show.pyramid.is_some();
                    assert!(is_later, "{} again", frame.position);
                    peer.watcher
                        .handle_decoded(frame.stream, frame.position, ms(2));
                    peer.watcher.handle_rendered(
                        frame.render_at.max(now),
                        frame.stream,
                        frame.position,
                    );
                    peer.frames.push((now, frame));
                }
                Output::Event(Watched::Event(event)) => peer.events.push((now, event)),
                Output::Event(Watched::Signer(signer)) => peer.signers.push(signer),
                Output::Event(Watched::Discontinuity { stream, .. }) => {
                    peer.resets.push((now, stream))
                }
                Output::Event(Watched::Catalogue(_)) => {}
            }
        }
    }

    /// Frames of `stream` that peer `index` was handed, checked octet for octet.
    pub(crate) fn frames(&self, index: usize, stream: StreamKind) -> Vec<(Instant, &Frame)> {
        let frames = self.peers[index].frames.iter();
        let frames = frames.filter(|(_, frame)| frame.stream == stream);
        frames
            .map(|(at, frame)| {
                let expected = payload(frame.position, frame.payload.len());
                assert!(frame.payload == expected, "frame {}", frame.position);
                (*at, frame)
            })
            .collect()
    }

    /// Checks that `frames` decode: positions rise, by one except to a key frame; the first is a key frame.
    pub(crate) fn assert_decodable(frames: &[(Instant, &Frame)]) {
        assert!(frames.first().is_none_or(|(_, frame)| frame.key));
        for pair in frames.windows(2) {
            let (before, after) = (pair[0].1, pair[1].1);
            let follows = after.position == before.position + 1;
            assert!(
                follows || after.key && after.position > before.position,
                "{} after {}",
                after.position,
                before.position
            );
        }
    }

    /// Share of the frames with positions `from..to` that were delivered by their time.
    pub(crate) fn share_in_time(&self, index: usize, from: u64, to: u64) -> f64 {
        let frames = self.frames(index, StreamKind::Video);
        let in_time = frames.iter().filter(|(at, frame)| {
            (from..to).contains(&frame.position) && *at <= frame.render_at && !frame.late
        });
        in_time.count() as f64 / (to - from) as f64
    }
}

/// Publishes what is decoded now at each rung, as `now` says: the highest in the order of its pyramid, the others two pictures
/// later in the order of presentation.
fn publish_pictures(publisher: &mut Publisher, show: &Show, pyramid: Pyramid, now: &EncodedFrame) {
    let period = Duration::from_secs(1) / show.fps;
    let interval = u64::from(show.key_interval);
    let monotonic = Instant::ZERO + now.encoded_at.since(WALL);
    for (number, &(name, key_size, delta_size)) in show.rungs.iter().enumerate() {
        let is_highest = number + 1 == show.rungs.len();
        let position = match is_highest {
            true => now.position,
            false => match now.position.checked_sub(Pyramid::DEPTH) {
                None => continue,
                Some(position) => position,
            },
        };
        let picture = match is_highest {
            true => pyramid.picture(position, interval),
            false => position,
        };
        let key = picture.is_multiple_of(interval);
        let size = if key { key_size } else { delta_size };
        let shown_after = picture + Pyramid::DEPTH - position;
        let frame = EncodedFrame {
            position,
            key,
            composition_offset: match is_highest {
                true => period * shown_after as u32,
                false => Duration::ZERO,
            },
            payload: payload(position, size),
            ..now.clone()
        };
        let rung = publisher.rung("video", name).unwrap();
        let wall = now.encoded_at;
        publisher
            .publish_frame(monotonic, wall, rung, frame)
            .unwrap();
    }
}

/// The name under which the world publishes streams of a kind.
const fn stream_name(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Video => "video",
        StreamKind::Audio => "audio",
        StreamKind::Data => "data",
        StreamKind::Other => "other",
    }
}

/// An Interest's Nonce that no watcher uses on purpose.
pub(crate) fn nonce() -> Nonce {
    Nonce::from(0xFFFF_FFFF)
}
