//! Rungs tried one beside the other, over the link of \[RTSD\] §5.2.3.

mod live_world;

use std::time::Duration;

use live_world::{LiveWorld, link, ms, watch};
use namecast_netem as netem;
use namecast_sim::live::{LiveWatcherConfig, Media, MediaRung, Signing};
use namecast_sim::topology::Topology;
use namecast_sim::{ApplicationId, Network, NodeConfig};
use namecast_stream::StreamKind;
use namecast_stream::consumer::RecoveryProfile;
use namecast_stream::consumer::synchroniser::State;
use namecast_stream::ladder::{LadderConfig, challenge};
use namecast_units::{Bitrate, Instant};

fn scene(rate: Bitrate, delay: Duration, config: challenge::Config) -> (LiveWorld, ApplicationId) {
    let mut topology = Topology::default();
    let nodes = ["P", "R", "C"].map(|name| topology.add_node(name));
    topology.connect(nodes[0], nodes[1], &link(ms(0)));
    let bottleneck = netem::Config {
        rate: Some(rate),
        ..link(delay / 2)
    };
    topology.connect(nodes[1], nodes[2], &bottleneck);
    let mut world = LiveWorld {
        network: Network::new(&topology, 1, |_| NodeConfig::default()),
        topology,
        signing: Signing::Hmac,
    };
    let rung = |(name, kbps)| MediaRung::new(name, Bitrate::kbps(kbps));
    let media = Media {
        rungs: [("200k", 200), ("1M", 1_000), ("3M", 3_000)].map(rung).to_vec(),
        ..Media::video()
    };
    world.publish("P", vec![media]);
    let mut watcher = LiveWatcherConfig {
        start: ms(1_000),
        ..watch()
    };
    watcher.watcher.target = ms(250);
    watcher.watcher.ladder = LadderConfig::Paper(config);
    watcher.watcher.consumer.recovery.profile = RecoveryProfile::Paper;
    let watcher = world.watch("C", watcher);
    (world, watcher)
}

#[test]
fn explore() {
    for (rate, delay, aborts) in [(3_447, 0, true), (3_447, 0, false), (4_000, 0, true), (3_447, 100, true)] {
        let config = challenge::Config { aborts, ..challenge::Config::default() };
        let (mut world, id) = scene(Bitrate::kbps(rate), ms(delay), config);
        println!("== {rate} {delay} {aborts}");
        let mut last = String::new();
        let mut octets = 0;
        for step in 0..300 {
            let at = ms(step * 100);
            world.run_until(at);
            let now = Instant::ZERO + at;
            let watcher = world.watcher(id);
            let Some(live) = watcher.watcher() else { continue };
            let state = live.consumer(StreamKind::Video).map(|c| c.synchroniser().state());
            let beside = live.upcoming(StreamKind::Video).map(|c| (c.source().bitrate.as_bps()/1000, c.sizes(), *c.counters()));
            let rung = live.consumer(StreamKind::Video).map(|c| c.source().bitrate.as_bps()/1000);
            let line = format!("{rung:?} {state:?} {:?}", beside.as_ref().map(|b| b.0));
            let total = watcher.traffic().data_size.as_bytes();
            if line != last || step % 20 == 0 {
                println!("{:5} {line} est {:?} rate {} drd {:?} {:?}", step * 100, live.bandwidth(now, StreamKind::Video).map(|b| b.as_bps()/1000), (total - octets) * 80 / 1000, live.consumer(StreamKind::Video).map(|c| c.delay().estimate(now)), beside.map(|b| (b.1.samples, b.1.queued, b.1.outstanding, b.2.interests_sent, b.2.interests_retransmitted, b.2.complete, b.2.drop_unwanted)));
                last = line;
            }
            octets = total;
        }
    }
    let _ = State::Challenge;
}
