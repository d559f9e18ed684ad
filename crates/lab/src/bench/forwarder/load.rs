//! Consumers and a producer in one thread that never sleeps.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use namecast_forward::fragment;
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{
    Component, Data, DataTemplate, Interest, InterestTemplate, LpPacket, Name, Nonce, Packet,
};
use namecast_units::Duration;
use smart_default::SmartDefault;

use super::port::{Port, Sending};

/// Without its Data packet for so long, an Interest counts as lost.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// Frames that a Data packet is cut into at most.
const MAX_PIECES: usize = 16;
/// Interests that a consumer sends before the others get their turn: as many as one call receives. With fewer, this thread
/// cannot keep up with what is measured, which then falls asleep between any two packets.
const INTERESTS_PER_TURN: u64 = 16;

/// What is asked for, and how fast.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub(super) struct Traffic {
    /// Octets of content of a Data packet.
    #[default(1_000)]
    pub(super) payload: usize,
    /// Interests that each consumer has outstanding, at most.
    #[default(256)]
    pub(super) window: u64,
    /// Interests that leave together, and Data likewise.
    #[default(1)]
    pub(super) burst: u64,
    /// Consumers, all of which ask for the same names.
    #[default(1)]
    pub(super) consumers: usize,
    /// How many names there are, asked for over and over; none: each name is asked for once.
    pub(super) catalogue: Option<u64>,
    /// Interests a second of each consumer; none: as many as the window lets pass.
    pub(super) rate: Option<f64>,
    /// Octets of the frames into which Data are cut; none: each is one frame.
    pub(super) mtu: Option<usize>,
    /// How often to take what has come and to send what the window lets pass, and in between leave the processor to what is
    /// measured; none: all the time.
    pub(super) rhythm: Option<Duration>,
    /// How long the producer takes to answer, as one does that is asked before the Data exist.
    pub(super) hold: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Data packets that reached consumers.
    pub(super) delivered: u64,
    /// Interests that nobody answered in time.
    pub(super) lost: u64,
    /// From each Interest to its Data.
    pub(super) delays: Vec<Duration>,
    /// How long it took.
    pub(super) span: Duration,
}

/// Both ends of what is measured.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) traffic: Traffic,
    consumers: Vec<Consumer>,
    producer: Port,
    interests: InterestTemplate,
    data: DataTemplate,
    /// Data on their way out: when, to whom.
    answers: VecDeque<(Instant, SocketAddr, Vec<Bytes>)>,
    /// What was asked of the producer.
    requests: Vec<Bytes>,
    /// Number of the producer's next fragment.
    sequence: u64,
}

#[derive(Debug)]
struct Consumer {
    port: Port,
    /// Number of the next Interest.
    next: u64,
    /// Numbers that are outstanding, with the times at which they were asked for; in order.
    outstanding: VecDeque<(u64, Instant)>,
    next_at: Instant,
    /// Pieces of Data that are not whole yet, by the number of the first.
    pieces: BTreeMap<u64, Vec<Bytes>>,
}

impl Load {
    /// A load whose producer is `producer`, and whose names begin with `/bench` and a number.
    pub(super) fn new(traffic: Traffic, producer: Port, number: usize) -> anyhow::Result<Self> {
        let now = Instant::now();
        let consumer = || {
            Ok(Consumer {
                port: Port::new()?,
                next: 0,
                outstanding: VecDeque::new(),
                next_at: now,
                pieces: BTreeMap::new(),
            })
        };
        let consumers: anyhow::Result<_> = (0..traffic.consumers).map(|_| consumer()).collect();
        let prefix: Name = format!("/bench/{number}").parse()?;
        Ok(Self {
            consumers: consumers?,
            producer,
            interests: Interest::builder(prefix)
                .lifetime(Duration::from_secs(1))
                .template(Component::SEQUENCE),
            data: Data::builder(Name::root())
                .freshness(Duration::from_secs(3_600))
                .content(vec![7; traffic.payload])
                .template(NullSigner.info(), 32),
            answers: VecDeque::new(),
            requests: Vec::new(),
            sequence: 0,
            traffic,
        })
    }

    /// Sends Interests to `entry` for `span`, and answers those that come through.
    pub(super) fn run(&mut self, entry: SocketAddr, span: Duration) -> Outcome {
        let start = Instant::now();
        for consumer in &mut self.consumers {
            // What was due before this run is not made up for.
            consumer.next_at = consumer.next_at.max(start);
        }
        let mut outcome = Outcome::default();
        let mut asked = 0;
        while start.elapsed() < span {
            let before = outcome.delivered;
            let newly_asked = self.ask_all(entry);
            let was_asked = self.answer();
            for consumer in &mut self.consumers {
                consumer.take(&mut outcome);
            }
            let is_idle = newly_asked == 0 && !was_asked && outcome.delivered == before;
            asked += newly_asked;
            match self.traffic.rhythm {
                // What comes back meanwhile is for the next time: else this would go on until nothing comes back any more.
                Some(rhythm) if is_idle || asked >= self.traffic.window => {
                    asked = 0;
                    std::thread::sleep(until_next(rhythm, start.elapsed()));
                }
                // The kernel may have left the delivery of packets to a thread of its own, which wants this processor.
                None if outcome.delivered == before => std::thread::yield_now(),
                _ => {}
            }
        }
        outcome.span = start.elapsed();
        outcome
    }

    /// Lets each consumer send what it may; says how many Interests that were.
    fn ask_all(&mut self, entry: SocketAddr) -> u64 {
        let mut asked = 0;
        for place in 0..self.consumers.len() {
            let mut left = INTERESTS_PER_TURN;
            while left > 0 && self.ask(place, entry) {
                left = left.saturating_sub(self.traffic.burst);
                asked += self.traffic.burst;
            }
        }
        asked
    }

    /// Sends a burst if the window and the rate let it pass; says whether they did.
    fn ask(&mut self, place: usize, entry: SocketAddr) -> bool {
        let Traffic {
            window,
            burst,
            catalogue,
            rate,
            ..
        } = self.traffic;
        let consumer = &mut self.consumers[place];
        let now = Instant::now();
        if consumer.outstanding.len() as u64 + burst > window || consumer.next_at > now {
            return false;
        }
        if let Some(rate) = rate {
            consumer.next_at += Duration::from_secs_f64(burst as f64 / rate);
        }
        let mut interests: Vec<Bytes> = Vec::with_capacity(burst as usize);
        for _ in 0..burst {
            let number = catalogue.map_or(consumer.next, |count| consumer.next % count);
            let nonce = Nonce((consumer.next as u32 ^ (place as u32) << 28).to_be_bytes());
            interests.push(self.interests.build(number, nonce).wire().clone());
            consumer.outstanding.push_back((number, now));
            consumer.next += 1;
        }
        consumer.port.send(entry, &interests, sending(burst));
        true
    }

    /// Answers the Interests that came through, those of a while ago if the producer takes its time. Says whether any came.
    fn answer(&mut self) -> bool {
        let mut from = None;
        let requests = &mut self.requests;
        self.producer.receive(|sender, datagram| {
            from = Some(sender);
            requests.push(Bytes::copy_from_slice(datagram));
        });
        if let Some(from) = from {
            let requests = self.requests.drain(..);
            let frames = requests.filter_map(|request| data_for(&self.data, request));
            let frames = match self.traffic.mtu {
                None => frames.collect(),
                Some(mtu) => frames
                    .flat_map(|frame| pieces_of(frame, mtu, &mut self.sequence))
                    .collect(),
            };
            let due = Instant::now() + self.traffic.hold;
            self.answers.push_back((due, from, frames));
        }
        let how = sending(self.traffic.burst);
        while let Some((due, _, _)) = self.answers.front()
            && *due <= Instant::now()
            && let Some((_, to, frames)) = self.answers.pop_front()
        {
            self.producer.send(to, &frames, how);
        }
        from.is_some()
    }
}

/// What is left until the next beat.
fn until_next(rhythm: Duration, since_start: Duration) -> Duration {
    let beats = since_start.as_nanos() / rhythm.as_nanos().max(1);
    let next = rhythm.saturating_mul(beats as u32 + 1);
    next.saturating_sub(since_start)
}

/// The frame that answers an Interest's.
pub(super) fn data_for(template: &DataTemplate, request: Bytes) -> Option<Bytes> {
    let LpPacket {
        fragment,
        pit_token,
        ..
    } = LpPacket::decode(request).ok()?;
    let Packet::Interest(interest) = Packet::decode(fragment?).ok()? else {
        return None;
    };
    let data = template.build(interest.name().clone()).wire().clone();
    Some(match pit_token {
        None => data,
        Some(_) => LpPacket {
            pit_token,
            ..LpPacket::carrying(data)
        }
        .encode(),
    })
}

/// How a load sends that does, or does not, make bursts.
const fn sending(burst: u64) -> Sending {
    match burst {
        1 => Sending::OneByOne,
        _ => Sending::Joined,
    }
}

impl Consumer {
    /// Takes the Data that came.
    fn take(&mut self, outcome: &mut Outcome) {
        let outstanding = &mut self.outstanding;
        let pieces = &mut self.pieces;
        let mut now = None;
        self.port.receive(|_, datagram| {
            let now = *now.get_or_insert_with(Instant::now);
            let Some(number) = whole(datagram, pieces).and_then(number_of) else {
                return;
            };
            let Some(place) = outstanding.iter().position(|(asked, _)| *asked == number) else {
                return;
            };
            if let Some((_, asked_at)) = outstanding.remove(place) {
                outcome.delivered += 1;
                outcome.delays.push(now - asked_at);
            }
        });
        while let Some((_, asked_at)) = outstanding.front()
            && asked_at.elapsed() > ANSWER_TIMEOUT
        {
            outcome.lost += 1;
            outstanding.pop_front();
            pieces.clear();
        }
    }
}

/// A packet in frames of at most `mtu` octets.
fn pieces_of(frame: Bytes, mtu: usize, sequence: &mut u64) -> Vec<Bytes> {
    let packet = LpPacket::decode(frame).ok();
    let pieces = packet.and_then(|packet| fragment(&packet, *sequence, mtu, MAX_PIECES));
    let pieces = pieces.unwrap_or_default();
    *sequence += pieces.len() as u64;
    pieces
}

/// The network packet that a frame carries, or completes with those before it.
fn whole(frame: &[u8], pieces: &mut BTreeMap<u64, Vec<Bytes>>) -> Option<Bytes> {
    let packet = LpPacket::decode(Bytes::copy_from_slice(frame)).ok()?;
    let fragment = packet.fragment?;
    let count = packet.fragment_count.unwrap_or(1) as usize;
    if count == 1 {
        return Some(fragment);
    }
    let first = packet.sequence? - packet.fragment_index;
    let there = pieces.entry(first).or_default();
    there.push(fragment);
    // Nothing on the way changes their order.
    (there.len() == count).then(|| pieces.remove(&first).unwrap_or_default().concat().into())
}

/// The sequence number that ends the name of a Data packet.
fn number_of(wire: Bytes) -> Option<u64> {
    match Packet::decode(wire).ok()? {
        Packet::Data(data) => data.name().last()?.number_of(Component::SEQUENCE),
        Packet::Interest(_) => None,
    }
}
