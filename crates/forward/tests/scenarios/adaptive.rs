//! Adaptive SRTT-based forwarding: the fastest next hop, found by probes.

use core::time::Duration;

use namecast_forward::{AsfConfig, Config, FaceConfig, StrategyKind};
use namecast_packet::lp::NackReason;
use namecast_packet::{Interest, Nonce};
use namecast_units::Instant;

use crate::topology::{End, Net, data, interest, millis, name};

/// Time from Interest to Interest.
const PERIOD: Duration = millis(500);

/// A consumer that requests new Data every half second, and upstreams that answer after some time, or never.
struct Paths<const N: usize> {
    net: Net,
    consumer: End,
    upstreams: [End; N],
    delays: [Option<Duration>; N],
    asked: u32,
}

impl<const N: usize> Paths<N> {
    fn new(asf: AsfConfig, delays: [u64; N]) -> Self {
        let mut net = Net::new(1);
        let consumer = net.app(0);
        let upstreams = core::array::from_fn(|_| net.app(0));
        for (cost, upstream) in (1..).zip(&upstreams) {
            net.route(0, "/p", upstream.1, cost);
        }
        net.nodes[0]
            .forwarder
            .set_strategy(name("/"), StrategyKind::Asf(asf))
            .unwrap();
        Self {
            net,
            consumer,
            upstreams,
            delays: delays.map(|delay| Some(millis(delay))),
            asked: 0,
        }
    }

    /// Asks once; tells which upstreams were asked.
    fn step(&mut self) -> Vec<usize> {
        self.asked += 1;
        let uri = format!("/p/{}", self.asked);
        let net = &mut self.net;
        let start = net.now;
        net.ask(self.consumer, &interest(&uri, self.asked));
        let asked: Vec<_> = (0..N)
            .filter(|&n| !net.interests(self.upstreams[n]).is_empty())
            .collect();
        let answering = asked.iter().filter_map(|&n| Some((self.delays[n]?, n)));
        let mut answering: Vec<_> = answering.collect();
        answering.sort_unstable();
        for &(delay, n) in &answering {
            net.run_for((start + delay).since(net.now));
            net.answer(self.upstreams[n], &data(&uri));
        }
        net.run_for((start + PERIOD).since(net.now));
        let got = net.data(self.consumer).len();
        assert_eq!(got, usize::from(!answering.is_empty()));
        asked
    }

    /// Asks until more than one upstream was asked; tells when, and whom.
    fn run_to_probe(&mut self) -> (Instant, Vec<usize>) {
        for _ in 0..1_000 {
            let at = self.net.now;
            let asked = self.step();
            if asked.len() > 1 {
                return (at, asked);
            }
        }
        panic!("no probe");
    }
}

#[test]
fn a_faster_path_is_found_by_the_first_probe_and_used_from_then_on() {
    let mut paths = Paths::new(AsfConfig::DEFAULT, [100, 10]);
    assert_eq!(paths.step(), [0]);
    let (at, _) = paths.run_to_probe();
    assert!(at.since(Instant::ZERO) <= Duration::from_secs(5) + PERIOD);
    for _ in 0..100 {
        assert_eq!(paths.step(), [1]);
    }
}

/// The next Interest after an interval is the probe, neither sooner nor later.
#[test]
fn probes_come_once_an_interval() {
    for seconds in [1, 30, 60] {
        let interval = Duration::from_secs(seconds);
        let asf = AsfConfig {
            probing_interval: interval,
            ..AsfConfig::DEFAULT
        };
        let mut paths = Paths::new(asf, [10, 20, 30]);
        let (mut last, _) = paths.run_to_probe();
        for _ in 0..5 {
            let (at, _) = paths.run_to_probe();
            assert_eq!(at.since(last), interval);
            last = at;
        }
    }
}

/// The slower answer comes when the Interest is pending no more, and counts nevertheless. RTO of the first path is the least
/// of 200 ms, so each Interest that it does not answer has timed out when the next one leaves: three are lost.
#[test]
fn after_three_timeouts_the_next_path_takes_over_until_a_probe_finds_the_first_well() {
    let mut paths = Paths::new(AsfConfig::DEFAULT, [10, 100]);
    let (probed, _) = paths.run_to_probe();
    assert_eq!(paths.step(), [0]);
    paths.delays[0] = None;
    let asked: Vec<_> = (0..5).map(|_| paths.step()).collect();
    assert_eq!(asked, [[0], [0], [0], [1], [1]]);
    paths.delays[0] = Some(millis(10));
    let (at, asked) = paths.run_to_probe();
    assert_eq!(asked, [0, 1]);
    assert_eq!(at.since(probed), Duration::from_secs(60));
    assert_eq!(paths.step(), [0]);
}

/// As many as told: with one, the second Interest goes elsewhere.
#[test]
fn timeouts_are_as_many_as_the_parameter_says() {
    let asf = AsfConfig {
        max_timeouts: 1,
        ..AsfConfig::DEFAULT
    };
    let mut paths = Paths::new(asf, [10, 100]);
    paths.run_to_probe();
    paths.delays[0] = None;
    assert_eq!([paths.step(), paths.step()], [[0], [1]]);
}

/// Of two others that are measured, the better has two thirds of the probes: of 3000, 2000 and σ = 26.
#[test]
fn probes_prefer_better_ranks() {
    let asf = AsfConfig {
        probing_interval: Duration::from_secs(1),
        ..AsfConfig::DEFAULT
    };
    let mut paths = Paths::new(asf, [10, 30, 20]);
    let mut probes = [0; 3];
    for _ in 0..3_000 {
        let (_, asked) = paths.run_to_probe();
        assert_eq!(asked[0], 0);
        probes[asked[1]] += 1;
    }
    assert!((1_896..=2_104).contains(&probes[2]), "{probes:?}");
    assert_eq!(probes[0] + probes[1] + probes[2], 3_000);
}

#[test]
fn a_probe_is_a_transmission_of_its_own() {
    let mut paths = Paths::new(AsfConfig::DEFAULT, [10, 20]);
    paths.step();
    paths.net.run_for(Duration::from_secs(5));
    paths.net.ask(paths.consumer, &interest("/p/x", 99));
    let [first, second] = paths
        .upstreams
        .map(|upstream| paths.net.interests(upstream));
    assert_eq!(first, [interest("/p/x", 99)]);
    assert_ne!(second[0].nonce(), Some(Nonce::from(99)));
    // A Nack for either counts as that one's; the consumer hears of it after both.
    paths
        .net
        .nack(paths.upstreams[1], &second[0], NackReason::NoRoute);
    assert_eq!(paths.net.seen(paths.consumer), []);
    paths
        .net
        .nack(paths.upstreams[0], &first[0], NackReason::Congestion);
    assert_eq!(paths.net.nacks(paths.consumer), [NackReason::Congestion]);
}

#[test]
fn a_nack_sends_the_next_interest_elsewhere() {
    let mut paths = Paths::new(AsfConfig::DEFAULT, [10, 10]);
    let Paths {
        net,
        consumer,
        upstreams,
        ..
    } = &mut paths;
    net.ask(*consumer, &interest("/p/1", 1));
    assert_eq!(net.interests(upstreams[0]).len(), 1);
    net.nack(upstreams[0], &interest("/p/1", 1), NackReason::NoRoute);
    assert_eq!(net.nacks(*consumer), [NackReason::NoRoute]);
    net.ask(*consumer, &interest("/p/2", 2));
    assert_eq!(
        upstreams.map(|upstream| net.interests(upstream).len()),
        [0, 1]
    );
    net.ask(*consumer, &interest("/none", 3));
    assert_eq!(net.nacks(*consumer), [NackReason::NoRoute]);
}

/// As NFD's asf: the other next hops at once, then the one used longest ago, each held back for 10 ms, 20 ms, …
#[test]
fn retransmissions_try_the_others_and_are_then_held_back() {
    let mut paths = Paths::new(AsfConfig::DEFAULT, [10, 10]);
    let Paths {
        net,
        consumer,
        upstreams,
        ..
    } = &mut paths;
    let mut counts = Vec::new();
    for (nonce, wait) in (1..).zip([0, 1, 8, 1, 1, 18, 1]) {
        net.run_for(millis(wait));
        net.ask(*consumer, &interest("/p/1", nonce));
        counts.push(upstreams.map(|upstream| net.interests(upstream).len()));
    }
    // At 0, 1, 9, 10, 11, 29 and 30 ms.
    let expected = [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1], [0, 0], [1, 0]];
    assert_eq!(counts, expected);
}

/// Measurements cost memory up to their bound, none without asf, and go with faces and with the last choice of asf.
#[test]
fn measurements_are_bounded() {
    let mut net = Net::with(Config {
        max_measurements: 10,
        ..Config::default()
    });
    let (consumer, first, second) = (net.app(0), net.app(0), net.app(0));
    let ask_all = |net: &mut Net, round: u32| {
        for prefix in 0..25 {
            let uri = format!("/p/{prefix}/{round}");
            net.ask(consumer, &interest(&uri, round));
            net.answer(first, &data(&uri));
        }
        assert_eq!(net.data(consumer).len(), 25);
        assert_eq!(net.interests(first).len(), 25);
    };
    for prefix in 0..25 {
        net.route(0, &format!("/p/{prefix}"), first.1, 1);
        net.route(0, &format!("/p/{prefix}"), second.1, 2);
    }
    ask_all(&mut net, 1);
    assert_eq!(net.nodes[0].forwarder.measured().1, 0);
    let asf = StrategyKind::Asf(AsfConfig::DEFAULT);
    net.nodes[0]
        .forwarder
        .set_strategy(name("/p"), asf)
        .unwrap();
    net.nodes[0]
        .forwarder
        .set_strategy(name("/q"), asf)
        .unwrap();
    ask_all(&mut net, 2);
    assert_eq!(net.nodes[0].forwarder.measured().1, 10);
    assert_eq!(net.nodes[0].forwarder.measured().0, 10);
    net.nodes[0]
        .forwarder
        .set_strategy(name("/q"), StrategyKind::Random)
        .unwrap();
    assert_eq!(net.nodes[0].forwarder.measured().1, 10);
    net.nodes[0].remove_face(net.now, first.1);
    assert_eq!(net.nodes[0].forwarder.measured().1, 0);
    net.ask(consumer, &interest("/p/3/3", 3));
    assert_eq!(net.nodes[0].forwarder.measured().1, 1);
    assert_eq!(net.nodes[0].forwarder.measured().0, 1);
    // It has a place until somebody needs that, but is not a measurement any more.
    let expired = net.now + AsfConfig::DEFAULT.measurements_lifetime;
    net.nodes[0].handle_timeout(expired);
    assert_eq!(net.nodes[0].forwarder.measured().1, 1);
    assert_eq!(net.nodes[0].forwarder.measured().0, 0);
    net.nodes[0].forwarder.unset_strategy(&name("/p"));
    assert_eq!(net.nodes[0].forwarder.measured().1, 0);
}

/// Interests whose HopLimit keeps them here are not sent, so nobody can make a path look bad with them.
#[test]
fn an_interest_that_may_not_leave_is_no_timeout() {
    let mut net = Net::new(1);
    let consumer = net.app(0);
    let upstreams = [0; 2].map(|_| net.face(0, FaceConfig::default()));
    net.route(0, "/p", upstreams[0].1, 1);
    net.route(0, "/p", upstreams[1].1, 2);
    let asf = StrategyKind::Asf(AsfConfig::DEFAULT);
    net.nodes[0]
        .forwarder
        .set_strategy(name("/p"), asf)
        .unwrap();
    for number in 0..10 {
        let stuck = Interest::builder(name(&format!("/p/{number}")));
        net.ask(consumer, &stuck.hop_limit(1).build(Nonce::from(number)));
        net.run_for(Duration::from_secs(5));
    }
    assert_eq!(net.nodes[0].forwarder.measured().1, 0);
    net.ask(consumer, &interest("/p/x", 100));
    assert_eq!(
        upstreams.map(|upstream| net.interests(upstream).len()),
        [1, 0]
    );
}

/// Names below a prefix of another strategy are not measured.
#[test]
fn only_prefixes_with_asf_are_measured() {
    let mut paths = Paths::new(AsfConfig::DEFAULT, [10, 10]);
    let node = &mut paths.net.nodes[0];
    node.forwarder
        .set_strategy(name("/p"), StrategyKind::BestRoute)
        .unwrap();
    for _ in 0..20 {
        assert_eq!(paths.step(), [0]);
    }
    assert_eq!(paths.net.nodes[0].forwarder.measured().1, 0);
}
