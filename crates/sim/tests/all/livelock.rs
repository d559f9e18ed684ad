//! Runs in which time would never pass.

use core::convert::Infallible;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use namecast_netem as netem;
use namecast_packet::{Interest, Name, Nonce};
use namecast_sim::topology::{Topology, routes};
use namecast_sim::workload::Responder;
use namecast_sim::{Application, MAX_CALLS_AT_INSTANT, Network, NodeConfig, Now, Output};
use namecast_units::Instant;

/// Wants to be called at one instant until it has been called so often.
struct Restless {
    at: Instant,
    left: u32,
}

impl Application for Restless {
    type Event = Infallible;

    fn handle_frame(&mut self, _: Now, _: Bytes) {}

    fn handle_timeout(&mut self, now: Now) {
        if now.monotonic >= self.at {
            self.left -= 1;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.left > 0).then_some(self.at)
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        None
    }
}

/// Sends another Interest for each frame it gets, without end.
struct Eager {
    number: u64,
    output: VecDeque<Bytes>,
}

impl Eager {
    fn new() -> Self {
        let mut eager = Self {
            number: 0,
            output: VecDeque::new(),
        };
        eager.send();
        eager
    }

    fn send(&mut self) {
        self.number += 1;
        let name: Name = format!("/p/{}", self.number).parse().expect("it is a name");
        let interest = Interest::builder(name).build(Nonce::from(7));
        self.output.push_back(interest.wire().clone());
    }
}

impl Application for Eager {
    type Event = Infallible;

    fn handle_frame(&mut self, _: Now, _: Bytes) {
        self.send();
    }

    fn handle_timeout(&mut self, _: Now) {}

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_output(&mut self) -> Option<Output<Self::Event>> {
        self.output.pop_front().map(Output::Send)
    }
}

/// Two nodes.
fn network() -> (Topology, Network) {
    let mut topology = Topology::default();
    let nodes = ["here", "there"].map(|name| topology.add_node(name));
    topology.connect(nodes[0], nodes[1], &netem::Config::default());
    let network = Network::new(&topology, 1, |_| NodeConfig::default());
    (topology, network)
}

/// What it panics with within a second of virtual time.
fn panic_of(mut network: Network) -> Option<String> {
    let run = AssertUnwindSafe(move || network.run_for(Duration::from_secs(1)));
    let payload = catch_unwind(run).err()?;
    payload.downcast_ref::<String>().cloned()
}

/// As many calls as are allowed, beyond the first ones of all, which are not counted by whom.
fn restless(calls: u32) -> Option<String> {
    let (_, mut network) = network();
    let at = Instant::ZERO + Duration::from_millis(250);
    network.add_application(1, Restless { at, left: calls });
    panic_of(network)
}

#[test]
fn an_application_that_asks_for_the_same_instant_for_ever_is_named() {
    let message = restless(u32::MAX).expect("it panics");
    let expected = format!(
        "time stands still at 0.250000 s: application 0 of node 'there' had {} timeouts and 0 frames",
        MAX_CALLS_AT_INSTANT + 1
    );
    assert!(message.starts_with(&expected), "{message}");
}

#[test]
fn one_that_comes_to_an_end_is_left_alone() {
    assert_eq!(restless(2 * MAX_CALLS_AT_INSTANT), None);
    assert!(restless(2 * MAX_CALLS_AT_INSTANT + 1).is_some());
}

/// An Interest and its Data are two frames for the node, which has three faces; the application gets one of them.
#[test]
fn frames_that_go_to_and_fro_without_time_are_found() {
    let (topology, mut network) = network();
    let prefix: Name = "/p".parse().expect("it is a name");
    let responder = Responder::new(100, Duration::ZERO);
    let towards = routes::towards(&topology, 0);
    network
        .add_producer(0, &prefix, responder, &towards)
        .expect("there are routes");
    let run = AssertUnwindSafe(|| {
        network.add_application(0, Eager::new());
        network.run_for(Duration::from_secs(1));
    });
    let payload = catch_unwind(run).expect_err("it never ends");
    let message = payload.downcast_ref::<String>().expect("it has a message");
    assert!(
        message.starts_with("time stands still at 0.000000 s: application "),
        "{message}"
    );
    assert!(message.contains("0 timeouts and 10001 frames"), "{message}");
}
