//! Answers Interests from what is kept: samples, objects and the time index.
//!
//! ```text
//!   Interest ──▶ in memory ──▶ answer
//!                    │ no
//!                    ▼
//!            Lookup ──▶ the front-end's store ──▶ handle_found ──▶ answers, or Nacks
//! ```

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, LpPacket, Name, Packet};
use namecast_stream::index::{self, TimeIndex};
use namecast_stream::{RungNames, SampleClass};
use namecast_units::{ByteSize, Instant, Timestamp};

use crate::{Application, Now, Output, face, room};

/// Longest that an Interest is held, whatever its lifetime.
const MAX_LIFETIME: Duration = Duration::from_secs(4);

/// Bounds of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The name of what is kept.
    pub root: Name,
    /// Room whose schema, rosters and anchor's certificates are kept beside it.
    pub room: Option<Name>,
    /// Name under which this archive alone is reached, below the root: it goes with answers of the time index, so that
    /// Interests for old samples find it while the publisher is the nearest way to the root.
    pub delegation: Option<Name>,
    /// Packets that were looked up, in memory.
    pub max_cached: ByteSize,
    /// Interests that wait for a lookup.
    pub max_pending: usize,
}

impl ServerConfig {
    /// 16 MiB and 4096 Interests.
    pub const fn new(root: Name) -> Self {
        Self {
            root,
            room: None,
            delegation: None,
            max_cached: ByteSize::mebibytes(16),
            max_pending: 4_096,
        }
    }
}

/// Something to be looked up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// All packets of a sample.
    Sample {
        /// Name of the rung.
        rung: Name,
        /// Key or delta.
        class: SampleClass,
        /// Its number.
        sequence: u64,
    },
    /// The newest packet whose name starts so.
    Object(Name),
    /// What the rungs of a stream had at a time.
    Index {
        /// `/<root>/<stream>`.
        stream: Name,
        /// Publisher's clock at capture.
        time: Timestamp,
    },
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// These packets; none: nothing is kept.
    Packets(Vec<Data>),
    /// What the rungs had.
    Index(TimeIndex),
}

/// What a server has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests that came.
    pub interests: u64,
    /// Of those, answered.
    pub answered: u64,
    /// Of those, sent back since nothing is kept under their name.
    pub not_found: u64,
    /// Of those, dropped since too many wait.
    pub dropped_full: u64,
    /// Of those, dropped since the lookup took longer than they live.
    pub dropped_expired: u64,
    /// Packets that break the format, or are no Interests.
    pub malformed: u64,
}

/// An Interest that waits for a lookup.
#[derive(Debug)]
struct Waiter {
    interest: Interest,
    pit_token: Option<Bytes>,
    expires_at: Instant,
}

/// Answers for one root.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    waiting: BTreeMap<Lookup, Vec<Waiter>>,
    pending: usize,
    /// Samples that were looked up: their packets are asked for one after another.
    cached: BTreeMap<Lookup, Vec<Data>>,
    /// In the order they came.
    order: VecDeque<Lookup>,
    size: usize,
    outputs: VecDeque<Output<Lookup>>,
    counters: Counters,
}

impl Server {
    /// A server of nothing yet in memory.
    pub fn new(config: ServerConfig) -> Self {
        Self {
            config,
            waiting: BTreeMap::new(),
            pending: 0,
            cached: BTreeMap::new(),
            order: VecDeque::new(),
            size: 0,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Takes what an application face received: an Interest, bare or in a link packet. Anything else is counted.
    pub fn handle_packet(&mut self, now: Instant, packet: Bytes) {
        let (interest, pit_token) = match face::open(packet) {
            Ok(Some((Packet::Interest(interest), link))) if link.nack.is_none() => {
                (interest, link.pit_token)
            }
            _ => {
                self.counters.malformed += 1;
                return;
            }
        };
        self.counters.interests += 1;
        let lookup = self.lookup_of(&interest);
        let waiter = Waiter {
            expires_at: now + interest.lifetime().min(MAX_LIFETIME),
            interest,
            pit_token,
        };
        let Some(lookup) = lookup else {
            self.refuse(&waiter);
            return;
        };
        if let Some(packets) = self.cached.get(&lookup) {
            let found = packets.iter().find(|data| waiter.interest.matches(data));
            match found.cloned() {
                Some(data) => self.reply(&data, waiter.pit_token),
                None => self.refuse(&waiter),
            }
            return;
        }
        if self.pending >= self.config.max_pending {
            self.counters.dropped_full += 1;
            return;
        }
        self.pending += 1;
        let waiting = self.waiting.entry(lookup.clone()).or_default();
        waiting.push(waiter);
        if waiting.len() == 1 {
            self.outputs.push_back(Output::Event(lookup));
        }
    }

    /// Where the answer to `interest` is; `None` if the name is none of ours.
    fn lookup_of(&self, interest: &Interest) -> Option<Lookup> {
        let name = interest.name();
        if !self.config.root.is_prefix_of(name) {
            let of_room = self.config.room.as_ref().map(room::published_names);
            let mut of_room = of_room.into_iter().flatten();
            let is_kept = of_room.any(|prefix| prefix.is_prefix_of(name));
            return is_kept.then(|| Lookup::Object(name.detached()));
        }
        if let Some((stream, time)) = index::parse(name)
            && stream.parent() == self.config.root
        {
            return Some(Lookup::Index {
                stream: stream.detached(),
                time,
            });
        }
        Some(match RungNames::of_segment(name) {
            Some((rung, id)) => Lookup::Sample {
                rung,
                class: id.class,
                sequence: id.sequence,
            },
            None => Lookup::Object(name.detached()),
        })
    }

    /// Takes what a lookup found, and answers those who wait for it.
    pub fn handle_found(&mut self, now: Instant, lookup: &Lookup, found: Found) {
        let waiting = self.waiting.remove(lookup).unwrap_or_default();
        self.pending -= waiting.len();
        let packets = match found {
            Found::Packets(packets) => packets,
            Found::Index(index) => self.index_answer(lookup, index),
        };
        for waiter in waiting {
            let data = packets.iter().find(|data| waiter.interest.matches(data));
            match data {
                _ if waiter.expires_at <= now => self.counters.dropped_expired += 1,
                Some(data) => self.reply(&data.clone(), waiter.pit_token),
                None => self.refuse(&waiter),
            }
        }
        // Objects have newer versions, and indexes newer samples.
        if matches!(lookup, Lookup::Sample { .. }) {
            self.keep(lookup, packets);
        }
    }

    fn index_answer(&self, lookup: &Lookup, mut index: TimeIndex) -> Vec<Data> {
        let Lookup::Index { stream, time } = lookup else {
            return Vec::new();
        };
        if index.since.is_none() {
            return Vec::new();
        }
        index.delegation.clone_from(&self.config.delegation);
        vec![index.answer(index::name(stream, *time))]
    }

    fn keep(&mut self, lookup: &Lookup, packets: Vec<Data>) {
        if packets.is_empty() || self.cached.contains_key(lookup) {
            return;
        }
        self.size += size(&packets);
        self.cached.insert(lookup.clone(), packets);
        self.order.push_back(lookup.clone());
        while self.size as u64 > self.config.max_cached.as_bytes() {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            let gone = self.cached.remove(&oldest);
            self.size -= size(&gone.unwrap_or_default());
        }
    }

    fn reply(&mut self, data: &Data, pit_token: Option<Bytes>) {
        self.counters.answered += 1;
        let packet = face::answer(data.wire().clone(), pit_token);
        self.outputs.push_back(Output::Send(packet));
    }

    /// Sends the Interest back: whoever sent it need not wait.
    fn refuse(&mut self, waiter: &Waiter) {
        self.counters.not_found += 1;
        let packet = LpPacket {
            nack: Some(NackReason::NoRoute),
            pit_token: waiter.pit_token.clone(),
            ..LpPacket::carrying(waiter.interest.wire().clone())
        };
        self.outputs.push_back(Output::Send(packet.encode()));
    }

    /// The next thing to do, until `None`.
    pub fn poll_output(&mut self) -> Option<Output<Lookup>> {
        self.outputs.pop_front()
    }

    /// What it counted.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Octets of packets in memory.
    pub const fn cached(&self) -> ByteSize {
        ByteSize::bytes(self.size as u64)
    }
}

fn size(packets: &[Data]) -> usize {
    packets.iter().map(|data| data.wire().len()).sum()
}

impl Application for Server {
    type Event = Lookup;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, _now: Now) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        Self::poll_output(self)
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::Nonce;
    use namecast_packet::signature::NullSigner;

    use super::*;

    fn server() -> Server {
        let mut config = ServerConfig::new("/demo".parse().unwrap());
        config.delegation = Some("/demo/32=archive/1".parse().unwrap());
        config.max_cached = ByteSize::bytes(3_000);
        config.max_pending = 3;
        Server::new(config)
    }

    fn ask(server: &mut Server, name: &str) -> Interest {
        let interest = Interest::builder(name.parse().unwrap()).can_be_prefix();
        let interest = interest.build(Nonce([1; 4]));
        server.handle_packet(Instant::ZERO, interest.wire().clone());
        interest
    }

    fn packet(name: &str) -> Data {
        let name = name.parse().unwrap();
        Data::builder(name).content(vec![0; 900]).sign(&NullSigner)
    }

    fn segment(sequence: u64, index: u64) -> String {
        format!("/demo/video/1M/key/seq={sequence}/data/seg={index}")
    }

    fn sample(sequence: u64) -> Lookup {
        Lookup::Sample {
            rung: "/demo/video/1M".parse().unwrap(),
            class: SampleClass::Key,
            sequence,
        }
    }

    fn outputs(server: &mut Server) -> Vec<Output<Lookup>> {
        core::iter::from_fn(|| server.poll_output()).collect()
    }

    fn nack(interest: &Interest) -> Output<Lookup> {
        let packet = LpPacket {
            nack: Some(NackReason::NoRoute),
            ..LpPacket::carrying(interest.wire().clone())
        };
        Output::Send(packet.encode())
    }

    #[test]
    fn the_segments_of_a_sample_are_looked_up_once() {
        let mut server = server();
        ask(&mut server, &segment(5, 0));
        ask(&mut server, &segment(5, 1));
        assert_eq!(outputs(&mut server), [Output::Event(sample(5))]);
        let packets = vec![packet(&segment(5, 0)), packet(&segment(5, 1))];
        let sent = |n: usize| Output::Send(packets[n].wire().clone());
        let found = Found::Packets(packets.clone());
        server.handle_found(Instant::ZERO, &sample(5), found);
        assert_eq!(outputs(&mut server), [sent(0), sent(1)]);
        ask(&mut server, &segment(5, 1));
        assert_eq!(outputs(&mut server), [sent(1)]);
        let missing = ask(&mut server, &segment(5, 2));
        assert_eq!(outputs(&mut server), [nack(&missing)]);
    }

    #[test]
    fn what_is_not_there_comes_back_and_is_looked_up_anew() {
        let mut server = server();
        for _ in 0..2 {
            let interest = ask(&mut server, &segment(7, 0));
            assert_eq!(outputs(&mut server), [Output::Event(sample(7))]);
            server.handle_found(Instant::ZERO, &sample(7), Found::Packets(Vec::new()));
            assert_eq!(outputs(&mut server), [nack(&interest)]);
        }
        let foreign = ask(&mut server, "/other/name");
        assert_eq!(outputs(&mut server), [nack(&foreign)]);
        assert_eq!(server.counters().not_found, 3);
    }

    #[test]
    fn memory_and_waiting_interests_are_bounded() {
        let mut server = server();
        for sequence in 0..4 {
            ask(&mut server, &segment(sequence, 0));
        }
        assert_eq!(outputs(&mut server).len(), 3);
        assert_eq!(server.counters().dropped_full, 1);
        for sequence in 0..3 {
            let packets = vec![packet(&segment(sequence, 0)), packet(&segment(sequence, 1))];
            let found = Found::Packets(packets);
            server.handle_found(Instant::ZERO, &sample(sequence), found);
        }
        // Two packets of some 950 octets each: one sample of them fits in 3000.
        assert!((1_900..3_000).contains(&server.cached().as_bytes()));
        let late = Instant::ZERO + MAX_LIFETIME;
        ask(&mut server, &segment(9, 0));
        server.handle_found(
            late,
            &sample(9),
            Found::Packets(vec![packet(&segment(9, 0))]),
        );
        assert_eq!(server.counters().dropped_expired, 1);
    }

    #[test]
    fn the_index_names_the_archive() {
        let mut server = server();
        ask(&mut server, "/demo/video/index/t=55");
        let lookup = Lookup::Index {
            stream: "/demo/video".parse().unwrap(),
            time: Timestamp::from_micros(55),
        };
        assert_eq!(outputs(&mut server), [Output::Event(lookup.clone())]);
        let sample = namecast_stream::index::IndexedSample {
            class: SampleClass::Key,
            sequence: 5,
            other_sequence: 6,
            position: 7,
            captured_at: Timestamp::from_micros(50),
            published_at: Timestamp::from_micros(51),
        };
        let rung = namecast_stream::index::RungIndex {
            rung: "/demo/video/1M".parse().unwrap(),
            key: sample,
            sample,
            next_key: None,
            newest: [Some(5), None],
        };
        let index = TimeIndex {
            rungs: vec![rung],
            delegation: None,
            since: Some(Timestamp::from_micros(50)),
        };
        server.handle_found(Instant::ZERO, &lookup, Found::Index(index.clone()));
        let [Output::Send(answer)] = &outputs(&mut server)[..] else {
            panic!("one answer");
        };
        let answer = Data::decode(answer.clone()).unwrap();
        let read = TimeIndex::decode(&answer.content().unwrap()).unwrap();
        assert_eq!(read.rungs, index.rungs);
        assert_eq!(read.delegation, Some("/demo/32=archive/1".parse().unwrap()));
    }
}
