//! How precise the relay is here and now: `cargo run --release -p namecast-lab --example impair_error [SECONDS [ordinary]]`.
//!
//! Sends 20 Mbit/s of datagrams of 1000 to 1200 octets through a delay of 10 ms, and prints how late they were by the relay's
//! own account and by the receiver's clock, which adds the receiver's own lateness. With
//! `ordinary` it does not ask for real-time priority.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use namecast_lab::impair::{Relay, RelayConfig};

const DELAY: Duration = Duration::from_millis(10);
/// Mean size of 1100 octets at 20 Mbit/s.
const GAP: Duration = Duration::from_micros(440);

fn main() -> anyhow::Result<()> {
    let seconds: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 10,
    };
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    server.set_read_timeout(Some(Duration::from_secs(1)))?;
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut config = RelayConfig::new(any, server.local_addr()?);
    config.forward.delay = DELAY;
    config.realtime = std::env::args().nth(2).as_deref() != Some("ordinary");
    let relay = Relay::start(config)?;
    let client = UdpSocket::bind(any)?;
    client.connect(relay.address())?;
    let zero = Instant::now();
    let receiver = thread::spawn(move || receive(&server, zero));
    let mut next = zero;
    let mut size = 1_000;
    while next < zero + Duration::from_secs(seconds) {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let mut datagram = vec![0; size];
        datagram[..16].copy_from_slice(&zero.elapsed().as_nanos().to_be_bytes());
        client.send(&datagram)?;
        size = if size < 1_200 { size + 1 } else { 1_000 };
        next += GAP;
    }
    let mut late = receiver.join().expect("it does not panic");
    late.sort_unstable();
    let report = relay.stop().expect("it ran until now");
    println!(
        "{} frames, real-time priority: {}",
        report.forward.delivered, report.realtime
    );
    let own = report.forward.error_ms;
    println!(
        "relay's account: p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
        own.p50, own.p99, own.max
    );
    let at = |share: usize| late[(late.len() - 1) * share / 1_000].as_secs_f64() * 1e3;
    println!(
        "receiver's clock: p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
        at(500),
        at(990),
        at(1_000)
    );
    println!(
        "{}",
        if report.disturbed {
            "disturbed"
        } else {
            "undisturbed"
        }
    );
    Ok(())
}

/// How late each datagram was, until none has come for a second.
fn receive(server: &UdpSocket, zero: Instant) -> Vec<Duration> {
    let mut late = Vec::new();
    let mut buffer = [0; 2_048];
    while let Ok(length) = server.recv(&mut buffer) {
        if let Some(sent) = buffer[..length].first_chunk::<16>() {
            let sent = Duration::from_nanos(u64::try_from(u128::from_be_bytes(*sent)).unwrap_or(0));
            late.push(zero.elapsed().saturating_sub(sent + DELAY));
        }
    }
    late
}
