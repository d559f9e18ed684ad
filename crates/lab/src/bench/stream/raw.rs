//! The limit: what plain UDP sockets do on this machine.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;

use namecast_net::Clock;
use namecast_units::Duration;

use crate::bench::measure::Usage;

/// Octets of a datagram: what a segment with its wrapping takes.
const SIZE: usize = 1_200;
/// How long to send.
const SPAN: Duration = Duration::from_secs(1);
/// How long the receiver waits for the last datagrams.
const READ_TIMEOUT: Duration = Duration::from_millis(200);

/// What plain UDP reached.
pub(super) struct Raw {
    pub(super) megabits_per_second: f64,
    pub(super) cpu_ms_per_megabit: f64,
}

/// Sends as fast as one thread can, and counts what another receives.
pub(super) async fn measure() -> anyhow::Result<Raw> {
    let usage = Usage::now()?;
    let received = tokio::task::spawn_blocking(transfer).await??;
    let used = Usage::now()?.since(usage);
    let megabits = received as f64 * SIZE as f64 * 8e-6;
    Ok(Raw {
        megabits_per_second: megabits / SPAN.as_secs_f64(),
        cpu_ms_per_megabit: used.as_secs_f64() * 1e3 / megabits.max(f64::MIN_POSITIVE),
    })
}

fn transfer() -> io::Result<u64> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    receiver.set_read_timeout(Some(READ_TIMEOUT))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    let counting = thread::spawn(move || {
        let mut buffer = [0; SIZE];
        let mut count = 0;
        while receiver.recv(&mut buffer).is_ok() {
            count += 1;
        }
        count
    });
    let clock = Clock::new();
    let end = clock.now() + SPAN;
    let datagram = [0; SIZE];
    while clock.now() < end {
        // A full buffer loses the datagram, as it would on the way.
        let _ = sender.send(&datagram);
    }
    Ok(counting.join().unwrap_or(0))
}
