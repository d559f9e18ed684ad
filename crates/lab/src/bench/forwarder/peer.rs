//! One side of an exchange: it answers the other's Interests and has a window of its own.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use anyhow::ensure;
use bytes::Bytes;
use namecast_forward::{Config, ExtensionFields, FaceConfig, Link, SendQueueConfig, fragment};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{
    Component, Data, DataTemplate, Interest, InterestTemplate, LpPacket, Name, Nonce, piggyback,
};
use namecast_units::Duration;

use super::port::{Port, Sending};

/// Octets of the longest frame.
pub(super) const MTU: usize = 1_400;
/// Without anything new for so long, a peer requests again what is outstanding.
const STALLED: Duration = Duration::from_millis(200);
/// How long an Interest waits for Data to travel with, unless that is more than this share of a round trip: then it does not wait.
/// Both are what sessions have.
const WAIT: Duration = Duration::from_millis(1);
const WAIT_SHARE: u32 = 16;
/// How long the forwarder may take to send a packet to each peer.
const FIRST_PACKET: Duration = Duration::from_secs(5);
/// Frames that a Data packet is cut into at most.
const MAX_PIECES: usize = 16;

/// What peers exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanged {
    /// Octets of content of a Data packet.
    pub(super) payload: usize,
    /// Interests that each peer has outstanding.
    pub(super) window: u64,
    /// Data packets that each peer requests.
    pub(super) count: u64,
    /// Whether Interests travel with Data.
    pub(super) is_bundled: bool,
}

/// What peers had.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) delivered: u64,
    /// Frames.
    pub(super) sent: u64,
    /// Interests that were sent again.
    pub(super) lost: u64,
    pub(super) span: Duration,
    /// From wanting a packet to having it.
    pub(super) delays: Vec<Duration>,
}

/// An Interest, and when it was wanted.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    number: u64,
    at: Instant,
}

/// One side.
#[derive(Debug)]
pub(super) struct Peer {
    port: Port,
    /// Where frames go; unknown until the first came, where that was not told.
    forwarder: Option<SocketAddr>,
    /// For pieces of packets.
    link: Link,
    load: Exchanged,
    /// Whether it requests something before it is asked for anything.
    is_first: bool,
    name: Name,
    data: DataTemplate,
    interests: InterestTemplate,
    /// Number of the next Interest, and of the one after the last.
    numbers: core::ops::Range<u64>,
    nonce: u32,
    outstanding: VecDeque<Wanted>,
    /// Those that wait for Data to travel with.
    waiting: VecDeque<Wanted>,
    /// Numbers that the other has requested.
    requested: Vec<u64>,
    sequence: u64,
    /// Smoothed.
    round_trip: Duration,
    last_progress: Instant,
}

impl Peer {
    /// Side `side` of session `session`, which requests something first if it is side 0.
    pub(super) fn new(
        (session, side): (usize, usize),
        port: Port,
        load: Exchanged,
        forwarder: Option<SocketAddr>,
    ) -> anyhow::Result<Self> {
        let [own, other] = [side, 1 - side].map(|side| prefix(session, side).parse::<Name>());
        let own = own?.builder().generic("call").finish();
        let other = other?.builder().generic("call").finish();
        // Of eight octets, and never those of the other side, which would not be told again.
        let first = (1 + side as u64) << 32;
        let face = FaceConfig {
            mtu: Some(MTU),
            extension_fields: ExtensionFields::On,
            ..FaceConfig::default()
        };
        Ok(Self {
            port,
            forwarder,
            link: Link::new(
                Config::default().into(),
                &face,
                SendQueueConfig::default(),
                0,
            ),
            load,
            is_first: side == 0,
            data: Data::builder(Name::root())
                .freshness(Duration::from_secs(3_600))
                .content(vec![7; load.payload])
                .template(NullSigner.info(), 32),
            interests: Interest::builder(other).template(Component::SEQUENCE),
            name: own,
            numbers: first..first.saturating_add(load.count),
            nonce: (side as u32) << 31,
            outstanding: VecDeque::new(),
            waiting: VecDeque::new(),
            requested: Vec::new(),
            sequence: 0,
            round_trip: Duration::ZERO,
            last_progress: Instant::now(),
        })
    }

    /// Takes what came, answers it, and requests what there is room for.
    pub(super) fn turn(&mut self, outcome: &mut Outcome) {
        let now = Instant::now();
        let heard = self.receive(now, outcome);
        if heard {
            self.last_progress = now;
        } else if now - self.last_progress > STALLED && !self.outstanding.is_empty() {
            self.last_progress = now;
            self.waiting.append(&mut self.outstanding);
            outcome.lost += self.waiting.len() as u64;
        }
        if heard || self.is_first {
            let under_way = (self.outstanding.len() + self.waiting.len()) as u64;
            for _ in under_way..self.load.window {
                let Some(number) = self.numbers.next() else {
                    break;
                };
                self.waiting.push_back(Wanted { number, at: now });
            }
        }
        let Some(forwarder) = self.forwarder else {
            return;
        };
        let answers: Vec<_> = self.requested.drain(..).collect();
        let mut frames = Vec::with_capacity(answers.len() + self.waiting.len());
        for number in answers {
            self.answer(number, &mut frames);
        }
        let may_wait = self.load.is_bundled && !self.is_first;
        let wait = match may_wait && self.round_trip >= WAIT * WAIT_SHARE {
            true => WAIT,
            false => Duration::ZERO,
        };
        while let Some(interest) = self.waiting.front()
            && now - interest.at >= wait
        {
            let interest = self.request();
            frames.extend(interest.map(|it| it.wire().clone()));
        }
        self.is_first = false;
        outcome.sent += frames.len() as u64;
        self.port.send(forwarder, &frames, Sending::Joined);
    }

    /// Takes what came; returns whether there was anything new.
    fn receive(&mut self, now: Instant, outcome: &mut Outcome) -> bool {
        let mut packets = Vec::new();
        let (link, forwarder) = (&mut self.link, &mut self.forwarder);
        self.port.receive(|from, frame| {
            forwarder.get_or_insert(from);
            let octets = Bytes::copy_from_slice(frame);
            packets.extend(match Link::concerns(frame) {
                // Nothing is lost for long enough that the time would matter.
                true => link.handle_frame(namecast_units::Instant::ZERO, octets),
                false => LpPacket::decode(octets).ok(),
            });
        });
        let mut heard = false;
        for packet in packets {
            let Some(wire) = packet.fragment else {
                continue;
            };
            if let Ok(data) = Data::decode(wire.clone()) {
                let is_it = |it: &Wanted| Some(it.number) == number_of(data.name());
                let Some(place) = self.outstanding.iter().position(is_it) else {
                    continue;
                };
                heard = true;
                let wanted = self.outstanding.remove(place);
                outcome.delivered += 1;
                if let Some(delay) = wanted.map(|it| now - it.at) {
                    self.round_trip = (self.round_trip * 7 + delay) / 8;
                    if self.load.count < u64::MAX {
                        outcome.delays.push(delay);
                    }
                }
                let rider = packet.piggybacked_interest;
                let rider = rider.and_then(|value| piggyback::decode(&value, &data).ok());
                self.requested
                    .extend(rider.and_then(|it| number_of(it.name())));
            } else if let Ok(interest) = Interest::decode(wire) {
                heard = true;
                self.requested.extend(number_of(interest.name()));
            }
        }
        heard
    }

    /// Answers with Data and, if there is one that fits, an Interest.
    fn answer(&mut self, number: u64, frames: &mut Vec<Bytes>) {
        let name = self.name.builder().sequence(number).finish();
        let data = self.data.build(name);
        let rider = match self.load.is_bundled {
            true => self.request(),
            false => None,
        };
        let mut packet = LpPacket::carrying(data.wire().clone());
        let Some(interest) = rider else {
            frames.extend(self.frames_of(&packet));
            return;
        };
        packet.piggybacked_interest = Some(piggyback::encode(&interest, data.name()));
        let joint = self.frames_of(&packet);
        packet.piggybacked_interest = None;
        if joint.len() == 1 || joint.len() <= self.frames_of(&packet).len() {
            frames.extend(joint);
        } else {
            frames.extend(self.frames_of(&packet));
            frames.push(interest.wire().clone());
        }
    }

    fn frames_of(&mut self, packet: &LpPacket) -> Vec<Bytes> {
        let whole = packet.encode();
        if whole.len() <= MTU {
            return vec![whole];
        }
        self.sequence += MAX_PIECES as u64;
        fragment(packet, self.sequence, MTU, MAX_PIECES).unwrap_or_default()
    }

    /// The next Interest, if one waits, which is outstanding from now on.
    fn request(&mut self) -> Option<Interest> {
        let wanted = self.waiting.pop_front()?;
        self.outstanding.push_back(wanted);
        self.nonce += 1;
        Some(self.interests.build(wanted.number, Nonce::from(self.nonce)))
    }

    /// Whether it has everything that it was to request.
    pub(super) fn is_complete(&self) -> bool {
        self.numbers.is_empty() && self.outstanding.is_empty() && self.waiting.is_empty()
    }

    /// Whether an Interest waits for Data to travel with.
    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn is_open(&self) -> bool {
        self.forwarder.is_some()
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.port.as_fd()
    }
}

/// What names of a side begin with, and routes lead to.
pub(super) fn prefix(session: usize, side: usize) -> String {
    format!("/bench/{}", 2 * session + side)
}

fn number_of(name: &Name) -> Option<u64> {
    name.last()?.number_of(Component::SEQUENCE)
}

/// Has the forwarder that listens at `entry` send each peer something, so that they learn where from it does.
pub(super) fn learn_faces(
    peers: &mut [Peer],
    sessions: impl Fn(usize) -> (usize, usize),
    entry: SocketAddr,
) -> anyhow::Result<()> {
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let start = Instant::now();
    let mut nonce = 0;
    while !peers.iter().all(Peer::is_open) {
        ensure!(
            start.elapsed() < FIRST_PACKET,
            "the forwarder sends nothing"
        );
        for (place, _) in peers.iter().enumerate().filter(|(_, it)| !it.is_open()) {
            let (session, side) = sessions(place);
            let name: Name = prefix(session, side).parse()?;
            nonce += 1;
            let interest = Interest::builder(name.builder().generic("where").finish());
            other.send_to(
                interest.build(Nonce::from(0x4000_0000 + nonce)).wire(),
                entry,
            )?;
        }
        std::thread::sleep(Duration::from_millis(20));
        for peer in &mut *peers {
            peer.receive(Instant::now(), &mut Outcome::default());
            peer.requested.clear();
        }
    }
    Ok(())
}
