//! What an Interest and its Data cost a fetcher and a server, without a network between them.
//!
//! `cargo run --release -p namecast-apps --example sequence`
//!
//! Counts the time that the process ran, as Linux tells it, and not the time that passed: other load on the machine
//! disturbs less.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use namecast_apps::sequence::{Fetcher, FetcherConfig, Server, ServerConfig};
use namecast_packet::Name;
use namecast_stream::path::NumberedConfig;
use namecast_units::{ByteSize, Instant};

const PAIRS: u64 = 500_000;
const RTT: Duration = Duration::from_millis(20);

fn main() {
    for controller in ["arc", "aimd-gap", "cubic", "window:23"] {
        let mut best = [f64::MAX; 2];
        for _ in 0..3 {
            let seconds = run(controller);
            best[0] = best[0].min(seconds[0]);
            best[1] = best[1].min(seconds[1]);
        }
        let [fetcher, server] = best.map(|seconds| seconds * 1e9 / PAIRS as f64);
        println!(
            "{controller}: fetcher {fetcher:.0} ns, server {server:.0} ns for each Interest and Data"
        );
    }
}

/// Processor seconds of the fetcher and of the server for [`PAIRS`] pairs, some hundred at a time.
fn run(controller: &str) -> [f64; 2] {
    let prefix: Name = "/p7".parse().expect("a valid name");
    let control = controller.parse().expect("a valid controller");
    let requests = NumberedConfig {
        control,
        expected_size: ByteSize::bytes(1_024),
        ..NumberedConfig::default()
    };
    let mut fetcher = Fetcher::new(FetcherConfig::new(prefix.clone(), requests));
    let mut server = Server::new(ServerConfig {
        prefix,
        wire_size: Some(1_074),
        ..ServerConfig::default()
    })
    .expect("a size that can be had");
    let (mut fetching, mut serving) = (0.0, 0.0);
    let mut interests: Vec<(Instant, Bytes)> = Vec::new();
    let mut data: VecDeque<(Instant, Bytes)> = VecDeque::new();
    let mut now = Instant::ZERO;
    fetcher.start(now);
    while fetcher.figures().data < PAIRS {
        let end = now + RTT;
        let begin = processor_seconds();
        while now < end {
            while let Some(wire) = fetcher.poll_output() {
                interests.push((now, wire));
            }
            let arrival = data.front().map(|(at, _)| *at);
            let timer = fetcher.poll_timeout();
            now = [arrival, timer, Some(end)]
                .into_iter()
                .flatten()
                .min()
                .expect("an end");
            match data.pop_front() {
                Some((at, wire)) if at <= now => fetcher.handle_packet(now, wire),
                Some(later) => {
                    data.push_front(later);
                    fetcher.handle_timeout(now);
                }
                None => fetcher.handle_timeout(now),
            }
        }
        let middle = processor_seconds();
        for (at, wire) in interests.drain(..) {
            server.handle_packet(at, wire);
            let answer = server.poll_output().expect("an answer");
            data.push_back((at + RTT, answer));
        }
        fetching += middle - begin;
        serving += processor_seconds() - middle;
    }
    [fetching, serving]
}

/// Time that this thread has run so far.
fn processor_seconds() -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = schedule
        .split(' ')
        .next()
        .and_then(|n| n.parse::<u64>().ok());
    nanos.expect("starts with nanoseconds") as f64 / 1e9
}
