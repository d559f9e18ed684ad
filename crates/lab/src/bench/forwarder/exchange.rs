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

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::ensure;
use namecast_units::Duration;
use serde::Serialize;
use tempfile::TempDir;

use super::measured::Measured;
use super::ours::{self, Options};
use super::peer::{Exchanged, MTU, Outcome, Peer, learn_faces};
use super::port::{Port, Sending};
use super::{WARM_UP, What, median, plane};

/// One size of Data, medians of all rounds.
#[derive(Debug, Serialize)]
pub(super) struct ExchangeReport {
    case: String,
    plain: Side,
    bundled: Side,
    /// Median over the rounds of the saved share of processor time for an exchange.
    saved: f64,
    /// Of a look-up in the FIB, in microseconds.
    look_up_us: f64,
    /// What would be saved if a bundle cost the forwarder as many frames less as the relay, and a look-up less, and nothing more.
    attainable: f64,
}

/// A forwarder with bundles or without.
#[derive(Clone, Copy, Debug, Serialize)]
struct Side {
    /// Processor time for an exchange, in microseconds.
    cost_us: f64,
    /// The kernel's part of it.
    kernel_us: f64,
    /// The tables' part of it: that of the forwarding plane without sockets.
    plane_us: f64,
    /// Processor time of a relay between the same peers.
    relay_us: f64,
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
                "{:.2} µs (kernel {:.2}, tables {:.2}), relay {:.2}, {:.0} k/s, {:.2} frames, lost {:.2} %",
                side.cost_us,
                side.kernel_us,
                side.plane_us,
                side.relay_us,
                side.exchanges_per_second / 1e3,
                side.frames,
                side.lost_share * 100.0
            )
        };
        format!(
            "{:<16} one by one: {}\n{:<16} bundles:    {}\n{:<16} saved {:.1} % of {:.1} % that frames and look-ups ({:.3} µs) allow",
            self.case,
            side(&self.plain),
            "",
            side(&self.bundled),
            "",
            self.saved * 100.0,
            self.attainable * 100.0,
            self.look_up_us
        )
    }
}

/// Lets forwarders and relays with bundles and without take turns.
pub(super) fn measure(
    case: String,
    load: Exchanged,
    rounds: usize,
    span: Duration,
) -> anyhow::Result<ExchangeReport> {
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (is_bundled, sides) in [false, true].into_iter().zip(&mut turns) {
            let load = Exchanged { is_bundled, ..load };
            let relay = measure_turn(Between::Relay, load, span)?;
            sides.push(Side {
                relay_us: relay.cost_us,
                ..measure_turn(Between::Forwarder, load, span)?
            });
        }
    }
    let rounds = turns[0].iter().zip(&turns[1]);
    let saved = median(rounds.map(|(plain, bundled)| 1.0 - bundled.cost_us / plain.cost_us));
    let planes = plane::measure(load.payload)?;
    let mut planes_us = [planes.plain_us, planes.bundled_us].into_iter();
    let [plain, bundled] = turns.map(|sides| {
        let over = |figure: fn(&Side) -> f64| median(sides.iter().map(figure));
        Side {
            cost_us: over(|it| it.cost_us),
            kernel_us: over(|it| it.kernel_us),
            plane_us: planes_us.next().unwrap_or_default(),
            relay_us: over(|it| it.relay_us),
            exchanges_per_second: over(|it| it.exchanges_per_second),
            frames: over(|it| it.frames),
            lost_share: over(|it| it.lost_share),
        }
    });
    let allowed = plain.relay_us - bundled.relay_us + planes.look_up_us;
    Ok(ExchangeReport {
        case,
        saved,
        look_up_us: planes.look_up_us,
        attainable: allowed / plain.cost_us,
        plain,
        bundled,
    })
}

/// Who passes on what peers exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    /// A program that copies datagrams, with one call for several.
    Relay,
    Forwarder,
}

fn measure_turn(between: Between, load: Exchanged, span: Duration) -> anyhow::Result<Side> {
    let ports = [Port::new()?, Port::new()?];
    let addresses = [ports[0].address()?, ports[1].address()?];
    let (program, entry, _directory) = match between {
        Between::Relay => What::Relay(Sending::Joined).start(addresses[1], None)?,
        Between::Forwarder => start_forwarder(&addresses, load.is_bundled)?,
    };
    let peers = ports.into_iter().enumerate();
    let peers: anyhow::Result<Vec<_>> = peers
        .map(|(side, port)| {
            let known = (between == Between::Relay && side == 0).then_some(entry);
            Peer::new((0, side), port, load, known)
        })
        .collect();
    let mut peers = peers?;
    if between == Between::Forwarder {
        learn_faces(&mut peers, |side| (0, side), entry)?;
    }
    program.keep_off()?;
    run(&mut peers, WARM_UP);
    let before = (program.processor_time()?, program.kernel_time()?);
    let outcome = run(&mut peers, span);
    let after = (program.processor_time()?, program.kernel_time()?);
    ensure!(outcome.delivered > 0, "nothing is passed on");
    let delivered = outcome.delivered as f64;
    let micros = |before: Duration, after: Duration| {
        after.saturating_sub(before).as_secs_f64() * 1e6 / delivered
    };
    let kernel = micros(before.1.kernel, after.1.kernel);
    let both = kernel + micros(before.1.user, after.1.user);
    // The kernel's clock may not have ticked.
    let kernel_share = if both > 0.0 { kernel / both } else { 0.0 };
    let cost_us = micros(before.0, after.0);
    Ok(Side {
        cost_us,
        kernel_us: cost_us * kernel_share,
        plane_us: 0.0,
        relay_us: 0.0,
        exchanges_per_second: delivered / outcome.span.as_secs_f64(),
        frames: outcome.sent as f64 / delivered,
        lost_share: outcome.lost as f64 / (delivered + outcome.lost as f64),
    })
}

/// Starts a forwarder, with bundles or without, with a face and a route to each address: two for a session.
pub(super) fn start_forwarder(
    addresses: &[SocketAddr],
    is_bundled: bool,
) -> anyhow::Result<(Measured, SocketAddr, Option<TempDir>)> {
    let options = Options {
        mtu: Some(MTU),
        is_remote: true,
        hops: match is_bundled {
            true => vec!["piggyback".to_owned()],
            false => Vec::new(),
        },
        ..Options::default()
    };
    let (program, entry, directory) = ours::start(addresses, &options)?;
    Ok((program, entry, Some(directory)))
}

fn run(peers: &mut [Peer], span: Duration) -> Outcome {
    let start = Instant::now();
    let mut outcome = Outcome::default();
    while start.elapsed() < span {
        let before = outcome.delivered;
        for peer in &mut *peers {
            peer.turn(&mut outcome);
        }
        if outcome.delivered == before {
            // The kernel may have left the delivery of packets to a thread of its own, which wants this processor.
            std::thread::yield_now();
        }
    }
    outcome.span = start.elapsed();
    outcome
}
