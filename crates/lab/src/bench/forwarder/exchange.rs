//! What it is worth that Data and Interests travel in one packet.
//!
//! ```text
//!   peer A ──Data and Interest──▶ forwarder ──▶ peer B      one thread that never sleeps has both peers
//!          ◀──Interest and Data──           ◀──
//! ```
//!
//! Both peers have a window of Interests; each Data packet that comes is answered with the next Interest, each Interest with Data. What
//! is sent together is either bundles, or all Data and then all Interests, so that the kernel joins equal datagrams either way. An
//! exchange is a Data packet and an Interest.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use anyhow::{Context, ensure};
use bytes::Bytes;
use namecast_forward::fragment;
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{
    Component, Data, DataTemplate, Interest, InterestTemplate, LpPacket, Name, Nonce, piggyback,
};
use namecast_units::Duration;
use serde::Serialize;

use super::ours::{self, Options};
use super::port::{Port, Sending};
use super::{WARM_UP, median};

/// Interests that each peer has outstanding.
const WINDOW: u64 = 64;
/// Without anything new for so long, windows are filled anew.
const STALLED: Duration = Duration::from_millis(100);
/// How long the forwarder may take to send a packet to each peer.
const FIRST_PACKET: Duration = Duration::from_secs(5);
/// Octets of the longest frame.
const MTU: usize = 1_400;
/// Frames that a Data packet is cut into at most.
const MAX_PIECES: usize = 16;

/// One size of Data, medians of all rounds.
#[derive(Debug, Serialize)]
pub(super) struct ExchangeReport {
    case: String,
    plain: Side,
    bundled: Side,
    /// Median over the rounds of the saved share of processor time for an exchange.
    saved: f64,
}

/// A forwarder with bundles or without.
#[derive(Clone, Copy, Debug, Serialize)]
struct Side {
    /// Processor time for an exchange, in microseconds.
    cost_us: f64,
    /// The kernel's part of it.
    kernel_us: f64,
    exchanges_per_second: f64,
    /// Frames that the peers sent for an exchange.
    frames: f64,
    lost_share: f64,
}

impl ExchangeReport {
    /// For people.
    pub(super) fn line(&self) -> String {
        let side = |side: &Side| {
            format!(
                "{:.2} µs, kernel {:.2}, {:.0} k/s, {:.2} frames, lost {:.2} %",
                side.cost_us,
                side.kernel_us,
                side.exchanges_per_second / 1e3,
                side.frames,
                side.lost_share * 100.0
            )
        };
        format!(
            "{:<14} one by one: {};  bundles: {};  saved {:.1} %",
            self.case,
            side(&self.plain),
            side(&self.bundled),
            self.saved * 100.0
        )
    }
}

/// Lets forwarders with bundles and without take turns.
pub(super) fn measure(
    case: String,
    payload: usize,
    rounds: usize,
    span: Duration,
) -> anyhow::Result<ExchangeReport> {
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (is_bundled, sides) in [false, true].into_iter().zip(&mut turns) {
            sides.push(measure_turn(payload, is_bundled, span)?);
        }
    }
    let rounds = turns[0].iter().zip(&turns[1]);
    let saved = median(rounds.map(|(plain, bundled)| 1.0 - bundled.cost_us / plain.cost_us));
    let [plain, bundled] = turns.map(|sides| {
        let over = |figure: fn(&Side) -> f64| median(sides.iter().map(figure));
        Side {
            cost_us: over(|it| it.cost_us),
            kernel_us: over(|it| it.kernel_us),
            exchanges_per_second: over(|it| it.exchanges_per_second),
            frames: over(|it| it.frames),
            lost_share: over(|it| it.lost_share),
        }
    });
    Ok(ExchangeReport {
        case,
        plain,
        bundled,
        saved,
    })
}

fn measure_turn(payload: usize, is_bundled: bool, span: Duration) -> anyhow::Result<Side> {
    let ports = [Port::new()?, Port::new()?];
    let addresses = [ports[0].address()?, ports[1].address()?];
    let options = Options {
        mtu: Some(MTU),
        is_remote: true,
        hops: if is_bundled {
            vec!["piggyback".to_owned()]
        } else {
            Vec::new()
        },
        ..Options::default()
    };
    let (program, entry, _directory) = ours::start(&addresses, &options)?;
    let peers = ports.into_iter().enumerate();
    let peers: anyhow::Result<Vec<_>> = peers
        .map(|(number, port)| Peer::new(number, port, (payload, is_bundled), entry))
        .collect();
    let mut peers = peers?;
    program.keep_off()?;
    run(&mut peers, WARM_UP);
    let before = (program.processor_time()?, program.kernel_time()?);
    let outcome = run(&mut peers, span);
    let after = (program.processor_time()?, program.kernel_time()?);
    ensure!(outcome.delivered > 0, "the forwarder passes nothing on");
    let delivered = outcome.delivered as f64;
    let micros = |before: Duration, after: Duration| {
        after.saturating_sub(before).as_secs_f64() * 1e6 / delivered
    };
    let kernel_share = micros(before.1.kernel, after.1.kernel)
        / (micros(before.1.kernel, after.1.kernel) + micros(before.1.user, after.1.user));
    let cost_us = micros(before.0, after.0);
    Ok(Side {
        cost_us,
        kernel_us: cost_us * kernel_share,
        exchanges_per_second: delivered / outcome.span.as_secs_f64(),
        frames: outcome.sent as f64 / delivered,
        lost_share: outcome.lost as f64 / (delivered + outcome.lost as f64),
    })
}

#[derive(Debug, Default)]
struct Outcome {
    delivered: u64,
    sent: u64,
    lost: u64,
    span: Duration,
}

fn run(peers: &mut [Peer], span: Duration) -> Outcome {
    let start = Instant::now();
    let mut outcome = Outcome::default();
    let mut last = start;
    while start.elapsed() < span {
        let before = outcome.delivered;
        for peer in &mut *peers {
            peer.turn(&mut outcome);
        }
        let now = Instant::now();
        if outcome.delivered > before {
            last = now;
        } else if now - last > STALLED {
            last = now;
            peers.iter_mut().for_each(|peer| peer.restart(&mut outcome));
        } else {
            // The kernel may have left the delivery of packets to a thread of its own, which wants this processor.
            std::thread::yield_now();
        }
    }
    outcome.span = start.elapsed();
    outcome
}

/// One side.
#[derive(Debug)]
struct Peer {
    port: Port,
    forwarder: SocketAddr,
    is_bundled: bool,
    name: Name,
    data: DataTemplate,
    interests: InterestTemplate,
    /// Number of the next Interest.
    next: u64,
    outstanding: u64,
    /// Numbers that the other has requested.
    requested: Vec<u64>,
    sequence: u64,
}

impl Peer {
    /// Side `number`, to which the forwarder that listens at `entry` has a route.
    fn new(
        number: usize,
        mut port: Port,
        (payload, is_bundled): (usize, bool),
        entry: SocketAddr,
    ) -> anyhow::Result<Self> {
        let [own, other]: [Name; 2] = [
            format!("/bench/{number}/call").parse()?,
            format!("/bench/{}/call", 1 - number).parse()?,
        ];
        Ok(Self {
            forwarder: address_of_face(&mut port, &own, entry)?,
            port,
            is_bundled,
            data: Data::builder(Name::root())
                .freshness(Duration::from_secs(3_600))
                .content(vec![7; payload])
                .template(NullSigner.info(), 32),
            interests: Interest::builder(other).template(Component::SEQUENCE),
            name: own,
            // Of eight octets, and never those of the other side, which would not be told again.
            next: (1 + number as u64) << 32,
            outstanding: 0,
            requested: Vec::new(),
            sequence: 0,
        })
    }

    /// Takes what came, and answers it.
    fn turn(&mut self, outcome: &mut Outcome) {
        let (requested, mut delivered) = (&mut self.requested, 0);
        self.port.receive(|_, frame| {
            let Some(packet) = Received::read(frame) else {
                return;
            };
            delivered += u64::from(packet.is_data);
            requested.extend(packet.requested);
        });
        outcome.delivered += delivered;
        self.outstanding = self.outstanding.saturating_sub(delivered);
        let count = (WINDOW - self.outstanding) as usize;
        let first = self.next;
        let interests: Vec<_> = (0..count as u64)
            .map(|more| self.interest(first + more))
            .collect();
        self.next += count as u64;
        self.outstanding += count as u64;
        let answers: Vec<_> = self.requested.drain(..).collect();
        let mut frames = Vec::with_capacity(answers.len() + count);
        let mut riders = interests.into_iter();
        for number in answers {
            let data = self
                .data
                .build(self.name.builder().sequence(number).finish());
            let mut packet = LpPacket::carrying(data.wire().clone());
            if self.is_bundled
                && let Some(interest) = riders.next()
            {
                packet.piggybacked_interest = Some(piggyback::encode(&interest, data.name()));
            }
            let whole = packet.encode();
            if whole.len() <= MTU {
                frames.push(whole);
                continue;
            }
            let pieces = fragment(&packet, self.sequence, MTU, MAX_PIECES).unwrap_or_default();
            self.sequence += pieces.len() as u64;
            frames.extend(pieces);
        }
        frames.extend(riders.map(|interest| interest.wire().clone()));
        outcome.sent += frames.len() as u64;
        self.port.send(self.forwarder, &frames, Sending::Joined);
    }

    fn interest(&self, number: u64) -> Interest {
        let nonce = Nonce::from(number as u32 ^ (self.forwarder.port() as u32) << 16);
        self.interests.build(number, nonce)
    }

    /// Gives up what is outstanding.
    fn restart(&mut self, outcome: &mut Outcome) {
        outcome.lost += self.outstanding;
        self.outstanding = 0;
    }
}

/// What a frame brought; of pieces, the first alone is looked at.
#[derive(Debug, Default)]
struct Received {
    is_data: bool,
    requested: Option<u64>,
}

impl Received {
    fn read(frame: &[u8]) -> Option<Self> {
        let packet = LpPacket::decode(Bytes::copy_from_slice(frame)).ok()?;
        if packet.fragment_index > 0 {
            return None;
        }
        let wire = packet.fragment?;
        let Some(value) = packet
            .piggybacked_interest
            .filter(|value| !value.is_empty())
        else {
            return Some(match Interest::decode(wire) {
                Ok(interest) => Self {
                    is_data: false,
                    requested: number_of(interest.name()),
                },
                Err(_) => Self {
                    is_data: true,
                    requested: None,
                },
            });
        };
        // The number stands last in either form.
        let number = value.last_chunk().map(|&last| u64::from_be_bytes(last));
        Some(Self {
            is_data: true,
            requested: number,
        })
    }
}

fn number_of(name: &Name) -> Option<u64> {
    name.last()?.number_of(Component::SEQUENCE)
}

/// Has the forwarder send a peer something, to learn where from it does.
fn address_of_face(port: &mut Port, own: &Name, entry: SocketAddr) -> anyhow::Result<SocketAddr> {
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let start = Instant::now();
    let mut sender = None;
    let mut nonce = 0;
    while sender.is_none() {
        ensure!(
            start.elapsed() < FIRST_PACKET,
            "the forwarder sends nothing"
        );
        nonce += 1;
        let interest = Interest::builder(own.builder().generic("where").finish());
        other.send_to(interest.build(Nonce::from(nonce)).wire(), entry)?;
        std::thread::sleep(Duration::from_millis(20));
        port.receive(|from, _| sender = Some(from));
    }
    sender.context("the forwarder sends nothing")
}
