//! x
use std::time::Duration;

use namecast_netem as netem;
use namecast_packet::Name;
use namecast_sim::topology::{Link, Node, Topology};
use namecast_sim::workload::*;
use namecast_sim::{Network, NodeConfig};
use namecast_units::{Bitrate, ByteSize, Instant};

fn main() {
    let cache: u64 = std::env::args().nth(1).map_or(0, |a| a.parse().unwrap());
    let n = 32;
    let mut t = Topology::default();
    for i in 0..2 * n + 2 {
        t.nodes.push(Node {
            name: format!("n{i}"),
            position: None,
        });
    }
    let (r1, r2) = (2 * n, 2 * n + 1);
    let link = |rate, ms| netem::Config {
        rate: Some(Bitrate::mbps(rate)),
        delay: Duration::from_millis(ms),
        queue: netem::Queue::DropTail { packets: 50 },
        ..netem::Config::default()
    };
    let mut add = |a, b, c: netem::Config| {
        t.links.push(Link {
            ends: (a, b),
            cost: 1,
            forward: c.clone(),
            backward: c,
        });
        t.links.len() - 1
    };
    let mid = add(r1, r2, link(100, 8));
    let ls: Vec<_> = (0..n)
        .map(|i| (add(i, r1, link(1000, 1)), add(n + i, r2, link(1000, 1))))
        .collect();
    let mut net = Network::new(&t, 1, |_| NodeConfig {
        forwarder: namecast_forward::Config {
            content_store: ByteSize::bytes(cache),
            ..Default::default()
        },
        ..NodeConfig::default()
    });
    for i in 0..n {
        let prefix: Name = format!("/p{i}").parse().unwrap();
        let app = net.add_application(i, Responder::new(1024, Duration::ZERO));
        let f = net.application_face(app);
        net.add_route(i, prefix.clone(), f, 0).unwrap();
        net.add_route(r1, prefix.clone(), net.face_of(r1, ls[i].0).unwrap(), 1)
            .unwrap();
        net.add_route(r2, prefix.clone(), net.face_of(r2, mid).unwrap(), 1)
            .unwrap();
        net.add_route(
            n + i,
            prefix.clone(),
            net.face_of(n + i, ls[i].1).unwrap(),
            1,
        )
        .unwrap();
        net.add_application(
            n + i,
            Requester::new(RequesterConfig {
                prefix,
                interval: Duration::from_secs_f64(32.0 / 11000.0),
                spacing: Spacing::Even,
                choice: Choice::Sequence,
                lifetime: Duration::from_secs(2),
                start: Duration::from_micros(i as u64 * 90),
                seed: i as u64,
            }),
        );
    }
    let cpu = || {
        let s = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        s.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
    };
    for _ in 0..3 {
        let (h, c) = (net.hops(), cpu());
        net.run_until(net.now() + Duration::from_secs(10));
        let (dh, dc) = (net.hops() - h, cpu() - c);
        println!(
            "{dh} hops {dc:.3} s {:.0} k hops/s at {}",
            dh as f64 / dc / 1e3,
            net.now().since(Instant::ZERO).as_secs()
        );
    }
}
