//! Two endpoints in virtual time, and a pipe between them that delays, loses and reorders.

use std::collections::BTreeMap;

use bytes::Bytes;
use namecast_packet::signature::Ed25519Signer;
use namecast_packet::{Certificate, KeyLocator, LpPacket, Name, Packet, Validity};
use namecast_units::{Bitrate, ByteSize, Duration, Instant, Random, Timestamp};

use super::super::*;
use crate::discovery::Trust;
use crate::{Application, Now, Output};

pub(super) const A: usize = 0;
pub(super) const B: usize = 1;

/// Longest wait before a link with a rate.
const MAX_QUEUE: Duration = ms(100);
/// Octets of UDP and IP in front of each packet.
const HEADERS: u64 = 28;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// A key of `identity`, the same for one `seed`.
pub(super) fn key(identity: &str, seed: u8) -> (Ed25519Signer, Certificate) {
    let identity: Name = identity.parse().unwrap();
    let signer = Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(identity.clone()));
    let validity = Validity::of_own_key(wall(Instant::ZERO));
    let certificate = Certificate::self_signed(&identity, &[seed; 8], 1, validity, &signer);
    let locator = KeyLocator::Name(certificate.key_name());
    (Ed25519Signer::from_seed([seed; 32], locator), certificate)
}

pub(super) fn endpoint(identity: &str, seed: u8, config: EndpointConfig) -> Endpoint {
    let (signer, certificate) = key(identity, seed);
    let config = EndpointConfig {
        root: format!("{identity}/talk").parse().unwrap(),
        secret: config.secret.map(|octet| octet ^ seed),
        seed: u64::from(seed),
        ..config
    };
    Endpoint::new(config, &signer, &certificate)
}

fn wall(now: Instant) -> Timestamp {
    let micros = now.since(Instant::ZERO).as_micros() as u64;
    Timestamp::from_micros(1_700_000_000_000_000 + micros)
}

pub(super) fn both(now: Instant) -> Now {
    Now {
        monotonic: now,
        wall: wall(now),
    }
}

/// Everything that an endpoint sends.
pub(super) fn sent(end: &mut Endpoint) -> Vec<Packet> {
    end.handle_timeout(both(Instant::ZERO));
    let outputs = core::iter::from_fn(|| end.poll_output());
    let frames = outputs.filter_map(|it| match it {
        Output::Send(frame) => packet(&frame),
        Output::Event(_) => None,
    });
    frames.collect()
}

/// When an Interest for a packet left first, and when the packet came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    pub(super) asked: Option<Instant>,
    pub(super) came: Option<Instant>,
}

/// A (`/alice`) and B (`/bob`).
pub(super) struct Pipe {
    pub(super) ends: [Endpoint; 2],
    pub(super) now: Instant,
    pub(super) delay: Duration,
    /// Longest delay beyond that, drawn for each packet.
    pub(super) jitter: Duration,
    /// Share of packets from each side that is lost.
    pub(super) loss: [f64; 2],
    /// Whether Data and the Interest that leaves behind them are one packet.
    pub(super) joins: bool,
    /// Rate each way, with a queue of [`MAX_QUEUE`].
    pub(super) rate: Option<Bitrate>,
    /// When all that each side sent has left.
    free_at: [Instant; 2],
    pub(super) events: [Vec<(Instant, Event)>; 2],
    /// Frames that each side sent.
    pub(super) sent: [Vec<(Instant, Bytes)>; 2],
    /// Of each side's requests.
    pub(super) waits: [BTreeMap<Name, Wait>; 2],
    pub(super) random: Random,
    queue: BTreeMap<(Instant, u64), (usize, Bytes)>,
    count: u64,
}

impl Pipe {
    pub(super) fn new(flow: Flow) -> Self {
        Self::with(|config| config.session.flow = flow)
    }

    pub(super) fn with(change: impl FnOnce(&mut EndpointConfig)) -> Self {
        let mut config = EndpointConfig {
            answers: true,
            ..EndpointConfig::default()
        };
        change(&mut config);
        Self {
            ends: [
                endpoint("/alice", 1, config.clone()),
                endpoint("/bob", 2, config),
            ],
            now: Instant::ZERO,
            delay: ms(25),
            jitter: Duration::ZERO,
            loss: [0.0; 2],
            joins: false,
            rate: None,
            free_at: [Instant::ZERO; 2],
            events: Default::default(),
            sent: Default::default(),
            waits: Default::default(),
            random: Random::from_seed(7),
            queue: BTreeMap::new(),
            count: 0,
        }
    }

    /// Alice calls, Bob accepts. Returns the call.
    pub(super) fn connect(&mut self) -> CallId {
        self.call();
        let until = self.now + Duration::from_secs(10);
        while self.now < until {
            self.run_for(ms(1));
            if let Some(call) = self.established(B) {
                self.with_end(B, |end, now| end.accept(now, call));
                self.run_for(self.delay * 4);
                return call;
            }
        }
        panic!("never established");
    }

    pub(super) fn call(&mut self) {
        self.with_end(A, |end, now| {
            end.call(now, "/bob/talk".parse().unwrap(), Trust::FirstUse);
        });
    }

    pub(super) fn established(&self, side: usize) -> Option<CallId> {
        let mut events = self.events[side].iter();
        events.find_map(|(_, event)| match event {
            Event::Established { call, .. } => Some(*call),
            _ => None,
        })
    }

    pub(super) fn with_end<R>(
        &mut self,
        side: usize,
        call: impl FnOnce(&mut Endpoint, Now) -> R,
    ) -> R {
        let result = call(&mut self.ends[side], both(self.now));
        self.step(side, Vec::new());
        result
    }

    /// Has `side` send `text`.
    pub(super) fn say(&mut self, side: usize, call: CallId, text: impl Into<Bytes>) {
        let text = text.into();
        let sent = self.with_end(side, |end, now| end.send(now, call, text));
        assert_eq!(sent, Ok(()));
    }

    /// Has a frame arrive at `side` now.
    pub(super) fn inject(&mut self, side: usize, frame: Bytes) {
        self.step(side, vec![frame]);
    }

    fn step(&mut self, side: usize, frames: Vec<Bytes>) {
        let now = both(self.now);
        for frame in &frames {
            self.note(side, frame, false);
        }
        let frames = frames.into_iter().map(|frame| (now, frame));
        let mut outputs = Vec::new();
        crate::step(&mut self.ends[side], now, frames, |it| outputs.push(it));
        let mut packets: Vec<Vec<Bytes>> = Vec::new();
        for output in outputs {
            match output {
                Output::Event(event) => self.events[side].push((self.now, event)),
                Output::Send(frame) => match packets.last_mut() {
                    Some(last) if self.joins && is_rider(last, &frame) => last.push(frame),
                    _ => packets.push(vec![frame]),
                },
            }
        }
        for frames in packets {
            self.send(side, frames);
        }
    }

    /// Sends a packet of one frame or two.
    fn send(&mut self, side: usize, frames: Vec<Bytes>) {
        let mut size = HEADERS;
        for frame in &frames {
            self.note(side, frame, true);
            self.sent[side].push((self.now, frame.clone()));
            size += frame.len() as u64;
        }
        let mut left_at = self.now;
        if let Some(rate) = self.rate {
            left_at = left_at.max(self.free_at[side]);
            if left_at.since(self.now) > MAX_QUEUE {
                return;
            }
            left_at += ByteSize::bytes(size) / rate;
            self.free_at[side] = left_at;
        }
        if self.random.chance(self.loss[side]) {
            return;
        }
        let jitter = self.random.below(self.jitter.as_nanos() as u64 + 1);
        let arrival = left_at + self.delay + Duration::from_nanos(jitter);
        for frame in frames {
            self.count += 1;
            self.queue.insert((arrival, self.count), (1 - side, frame));
        }
    }

    fn note(&mut self, side: usize, frame: &Bytes, is_leaving: bool) {
        match packet(frame) {
            Some(Packet::Interest(interest)) if is_leaving => {
                let wait = self.waits[side].entry(interest.name().clone());
                wait.or_default().asked.get_or_insert(self.now);
            }
            Some(Packet::Data(data)) if !is_leaving => {
                if let Some(wait) = self.waits[side].get_mut(data.name()) {
                    wait.came.get_or_insert(self.now);
                }
            }
            _ => {}
        }
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let timers = [A, B].map(|side| self.ends[side].poll_timeout());
            let arrival = self.queue.first_key_value().map(|((at, _), _)| *at);
            let next = timers.into_iter().flatten().chain(arrival).min();
            let Some(next) = next.filter(|&next| next <= until) else {
                break;
            };
            // What is due in the past is due now.
            self.now = self.now.max(next);
            let mut came = [Vec::new(), Vec::new()];
            while let Some(entry) = self.queue.first_entry().filter(|it| it.key().0 <= self.now) {
                let (side, frame) = entry.remove();
                came[side].push(frame);
            }
            for (side, frames) in came.into_iter().enumerate() {
                let is_due = self.ends[side]
                    .poll_timeout()
                    .is_some_and(|it| it <= self.now);
                if is_due || !frames.is_empty() {
                    self.step(side, frames);
                }
            }
        }
        self.now = until;
    }

    /// Messages that came to `side`.
    pub(super) fn heard(&self, side: usize) -> Vec<(Instant, Bytes)> {
        let events = self.events[side].iter();
        let messages = events.filter_map(|(at, event)| match event {
            Event::Message(_, body) => Some((*at, body.clone())),
            _ => None,
        });
        messages.collect()
    }

    /// Times from the first Interest for a packet until it came to `side`, the shortest first.
    pub(super) fn waited(&self, side: usize) -> Vec<Duration> {
        let came = self.waits[side].values();
        let mut waits: Vec<_> = came
            .filter_map(|it| Some(it.came?.since(it.asked?)))
            .collect();
        waits.sort();
        waits
    }
}

pub(super) fn packet(frame: &Bytes) -> Option<Packet> {
    Packet::decode(LpPacket::decode(frame.clone()).ok()?.fragment?).ok()
}

/// Whether a frame can leave with those before it: an Interest with Data.
fn is_rider(before: &[Bytes], frame: &Bytes) -> bool {
    let is_data = |frame: &Bytes| matches!(packet(frame), Some(Packet::Data(_)));
    before.len() == 1 && is_data(&before[0]) && !is_data(frame)
}
