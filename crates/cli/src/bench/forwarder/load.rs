//! Consumers and a producer in one thread that never sleeps.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{
    Component, Data, DataTemplate, Interest, InterestTemplate, LpPacket, Name, Nonce, Packet,
};
use namecast_units::Duration;

use super::port::{Port, Sending};

/// Without a Data packet for so long, what is outstanding counts as lost.
const PATIENCE: Duration = Duration::from_millis(200);

/// What is asked for, and how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Octets of content of a Data packet.
    pub(super) payload: usize,
    /// Interests that each consumer has outstanding, at most.
    pub(super) window: u64,
    /// Interests that leave together, and Data likewise.
    pub(super) burst: u64,
    /// Consumers, all of which ask for the same names.
    pub(super) consumers: usize,
    /// How many names there are, asked for over and over; none: each name is asked for once.
    pub(super) catalogue: Option<u64>,
    /// Interests a second of each consumer; none: as many as the window lets pass.
    pub(super) rate: Option<f64>,
    /// How long the producer takes to answer, as one does that is asked before the Data exist.
    pub(super) hold: Duration,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            payload: 1_000,
            window: 256,
            burst: 1,
            consumers: 1,
            catalogue: None,
            rate: None,
            hold: Duration::ZERO,
        }
    }
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
    traffic: Traffic,
    consumers: Vec<Consumer>,
    producer: Port,
    interests: InterestTemplate,
    data: DataTemplate,
    /// Data on their way out: when, to whom.
    answers: VecDeque<(Instant, SocketAddr, Vec<Bytes>)>,
    /// What was asked of the producer.
    requests: Vec<Bytes>,
}

#[derive(Debug)]
struct Consumer {
    port: Port,
    /// Number of the next Interest.
    next: u64,
    /// Numbers that are outstanding, with the times at which they were asked for; in order.
    outstanding: VecDeque<(u64, Instant)>,
    next_at: Instant,
    heard_at: Instant,
}

impl Load {
    /// A load whose producer is `producer`.
    pub(super) fn new(traffic: Traffic, producer: Port) -> anyhow::Result<Self> {
        let now = Instant::now();
        let consumer = || {
            Ok(Consumer {
                port: Port::new()?,
                next: 0,
                outstanding: VecDeque::new(),
                next_at: now,
                heard_at: now,
            })
        };
        let consumers: anyhow::Result<_> = (0..traffic.consumers).map(|_| consumer()).collect();
        let prefix: Name = "/bench".parse()?;
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
            traffic,
        })
    }

    /// Sends Interests to `entry` for `span`, and answers those that come through.
    pub(super) fn run(&mut self, entry: SocketAddr, span: Duration) -> Outcome {
        let start = Instant::now();
        let mut outcome = Outcome::default();
        while start.elapsed() < span {
            for place in 0..self.consumers.len() {
                self.ask(place, entry);
            }
            self.answer();
            for consumer in &mut self.consumers {
                consumer.take(&mut outcome);
            }
        }
        outcome.span = start.elapsed();
        outcome
    }

    /// Sends what the window or the rate lets pass.
    fn ask(&mut self, place: usize, entry: SocketAddr) {
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
            return;
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
    }

    /// Answers the Interests that came through, those of a while ago if the producer takes its time.
    fn answer(&mut self) {
        let mut from = None;
        let requests = &mut self.requests;
        self.producer.receive(|sender, datagram| {
            from = Some(sender);
            requests.push(Bytes::copy_from_slice(datagram));
        });
        if let Some(from) = from {
            let requests = self.requests.drain(..);
            let frames = requests.filter_map(|request| data_for(&self.data, request));
            let due = Instant::now() + self.traffic.hold;
            self.answers.push_back((due, from, frames.collect()));
        }
        let how = sending(self.traffic.burst);
        while let Some((due, _, _)) = self.answers.front()
            && *due <= Instant::now()
            && let Some((_, to, frames)) = self.answers.pop_front()
        {
            self.producer.send(to, &frames, how);
        }
    }
}

/// The frame that answers an Interest's.
fn data_for(template: &DataTemplate, request: Bytes) -> Option<Bytes> {
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
        let mut now = None;
        self.port.receive(|_, datagram| {
            let now = *now.get_or_insert_with(Instant::now);
            let Some(number) = number_of(datagram) else {
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
        match now {
            Some(now) => self.heard_at = now,
            None if self.heard_at.elapsed() > PATIENCE => {
                outcome.lost += self.outstanding.len() as u64;
                self.outstanding.clear();
                self.heard_at = Instant::now();
            }
            None => {}
        }
    }
}

/// The sequence number that ends the name of a Data packet.
fn number_of(frame: &[u8]) -> Option<u64> {
    let wire = LpPacket::decode(Bytes::copy_from_slice(frame))
        .ok()?
        .fragment?;
    match Packet::decode(wire).ok()? {
        Packet::Data(data) => data.name().last()?.number_of(Component::SEQUENCE),
        Packet::Interest(_) => None,
    }
}
