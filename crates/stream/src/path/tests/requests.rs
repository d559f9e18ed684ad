//! What leaves, and in which order.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use namecast_units::{Bitrate, ByteSize, Random};

use super::*;
use crate::rate::{Arrival, Lost, RateController, Target};

/// Round trip of a path of which nothing is known, and how much earlier Interests leave than that.
const LEAVES_BEFORE: Duration = ms(50 + 2);

/// Calls the uplink whenever it wants to be called until `until`. Returns what left, and when.
fn run(uplink: &mut Uplink, from: Instant, until: Instant) -> Vec<(Instant, Token)> {
    let mut all = Vec::new();
    let mut now = from;
    while now <= until {
        let left = sent(uplink, now);
        all.extend(left.into_iter().map(|(token, _)| (now, token)));
        now = uplink.poll_timeout().unwrap_or(until + ms(1)).max(now);
    }
    all
}

fn live_want(token: Token, available_at: Instant) -> Want {
    Want {
        available_at: Some(available_at),
        not_before: Some(available_at),
        ..want(token, Kind::Delta)
    }
}

/// Two owners' clients, of which the second weighs 8.
fn light_and_heavy(uplink: &mut Uplink) -> [ClientId; 2] {
    let [light, heavy] = [(); 2].map(|()| uplink.new_clients().draw());
    uplink.carry_out(at(0), Request::Weigh(heavy, Weight::new(8)));
    [light, heavy]
}

/// Both want the same packets of media, the light one first: all of the heavy one leave before any of it, though they are published
/// later. Sound of the light one goes before both, and an owner whose weight is one again has no advantage.
#[test]
fn media_of_a_heavier_owner_leaves_first() {
    let mut uplink = uplink(UplinkConfig::default());
    let [light, heavy] = light_and_heavy(&mut uplink);
    let of = |client: ClientId, index| client.token(token(1, 1, index).segment);
    let mut order = |first: u64| {
        for index in first..first + 5 {
            for (client, published) in [(light, 0), (heavy, 5)] {
                let live = Want {
                    available_at: Some(at(published)),
                    ..want(of(client, index), Kind::Delta)
                };
                uplink.want(at(10), live);
            }
        }
        uplink.want(at(10), want(of(light, first + 5), Kind::Sound));
        let left = sent(&mut uplink, at(10));
        left.iter()
            .map(|(token, _)| token.client)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        order(0),
        [[light; 1].as_slice(), &[heavy; 5], &[light; 5]].concat()
    );
    uplink.carry_out(at(10), Request::Weigh(heavy, Weight::ONE));
    let mut order = |first: u64| {
        for index in first..first + 3 {
            uplink.want(at(20), want(of(light, index), Kind::Delta));
            uplink.want(at(20), want(of(heavy, index), Kind::Delta));
        }
        let left = sent(&mut uplink, at(20));
        left.iter()
            .map(|(token, _)| token.client)
            .collect::<Vec<_>>()
    };
    assert_eq!(order(10), [light, heavy, light, heavy, light, heavy]);
}

/// What the heavy one wants is published in a second: what the light one wants now leaves now. Backlog of the light one is none for
/// the heavy one.
#[test]
fn a_heavy_owner_that_waits_holds_up_nobody() {
    let mut uplink = uplink(UplinkConfig::default());
    let [light, heavy] = light_and_heavy(&mut uplink);
    let of = |client: ClientId| client.token(token(1, 1, 0).segment);
    uplink.want(at(0), live_want(of(heavy), at(1_000)));
    uplink.want(at(0), live_want(of(light), at(20)));
    let backlog = |uplink: &Uplink, parts| uplink.backlog(at(30), Weight::new(parts)) as u64;
    let size = SIZE.as_bits();
    assert_eq!([1, 8].map(|parts| backlog(&uplink, parts)), [size, 0]);
    let left = run(&mut uplink, at(0), at(500));
    assert_eq!(left, [(at(0), of(light))]);
    assert_eq!([1, 8].map(|parts| backlog(&uplink, parts)), [0, 0]);
    let left = run(&mut uplink, at(500), at(2_000));
    assert_eq!(
        left.iter().map(|(_, token)| *token).collect::<Vec<_>>(),
        [of(heavy)]
    );
}

#[test]
fn four_interests_leave_for_one_name_and_no_more() {
    for kind in [Kind::Sound, Kind::Repair, Kind::Delta] {
        let mut uplink = uplink(UplinkConfig::default());
        let token = token(1, 1, 0);
        let mut nonces = Vec::new();
        for round in 0..7 {
            uplink.want(at(round * 50), want(token, kind));
            nonces.extend(sent(&mut uplink, at(round * 50)));
        }
        assert_eq!(nonces.len(), 4, "{kind:?}");
        nonces.sort_by_key(|(_, nonce)| nonce.0);
        nonces.dedup();
        assert_eq!(nonces.len(), 4, "each has a Nonce of its own");
        let counters = uplink.counters();
        assert_eq!((counters.interests, counters.retransmissions), (4, 3));
        assert_eq!(counters.dropped, 3);
        assert_eq!(uplink.sizes(), (1, 0));
    }
}

#[test]
fn a_fifth_interest_is_reported_as_dropped() {
    let config = UplinkConfig::default();
    let mut uplink = uplink(config);
    let token = token(1, 1, 0);
    for round in 0..=u64::from(config.max_attempts) {
        let before = core::iter::from_fn(|| uplink.poll_event()).count();
        assert!(round == 0 || before == 2, "an Interest and its report");
        uplink.want(at(round), want(token, Kind::Sound));
        uplink.handle_timeout(at(round));
    }
    assert_eq!(uplink.poll_event(), Some(Event::Dropped(token)));
    assert_eq!(uplink.poll_event(), None);
}

/// Against a sort by rank and by when the Data is published. 40 packets are within the first burst of 48.
#[test]
fn sound_leaves_before_repairs_before_media_before_probes() {
    let kinds = [
        (0, Kind::Sound),
        (1, Kind::Repair),
        (2, Kind::Key),
        (2, Kind::Delta),
        (2, Kind::Parity),
        (3, Kind::Probe),
    ];
    for seed in 0..20 {
        let mut random = Random::from_seed(seed);
        let mut uplink = uplink(UplinkConfig::default());
        let mut expected = Vec::new();
        for index in 0..40 {
            let (rank, kind) = kinds[random.below(kinds.len() as u64) as usize];
            let available_at = at(random.below(10));
            let want = Want {
                available_at: Some(available_at),
                ..want(token(1, 1, index), kind)
            };
            expected.push((rank, available_at, index));
            uplink.want(at(0), want);
        }
        expected.sort();
        let expected: Vec<_> = expected.into_iter().map(|(_, _, index)| index).collect();
        let found: Vec<_> = sent(&mut uplink, at(0))
            .into_iter()
            .map(|(token, _)| token.segment.index)
            .collect();
        assert_eq!(found, expected, "seed {seed}");
    }
}

/// 100 repairs are saved up; a first Interest earns another half, and a second earns 20. So the 101st waits for 50 ms, or
/// until the next tick after that.
#[test]
fn repairs_leave_within_their_share() {
    let large_budget = LiveConfig {
        first_burst: 1_000,
        ..LiveConfig::default()
    };
    let config = UplinkConfig::default();
    let mut uplink = Uplink::new(config, Budget::live(large_budget));
    for index in 0..102 {
        uplink.want(at(0), want(token(1, 1, index), Kind::Repair));
    }
    let left = run(&mut uplink, at(0), at(99));
    let times: Vec<_> = left.iter().map(|(at, _)| *at).collect();
    assert_eq!(times[..100], [at(0); 100]);
    assert_eq!(times.len(), 101);
    assert!((at(50)..=at(55)).contains(&times[100]), "{}", times[100]);
}

/// Bursts aside, the Data of a limited client is of 100 kbit/s: 8,640 bits every 86.4 ms.
#[test]
fn a_limited_client_requests_no_faster_than_its_limit() {
    let mut uplink = uplink(UplinkConfig::default());
    let limit = Limit {
        rate: Bitrate::kbps(100),
        packet_size: SIZE,
    };
    uplink.set_limit(ClientId(2), Some(limit));
    for index in 0..40 {
        uplink.want(at(0), want(token(2, 1, index), Kind::Key));
    }
    let left = run(&mut uplink, at(0), at(1_000));
    assert!((11..=13).contains(&left.len()), "{}", left.len());
    assert_eq!(uplink.counters().probes, left.len() as u64);
}

#[test]
fn nothing_of_a_withdrawn_sample_leaves() {
    let mut uplink = uplink(UplinkConfig::default());
    for (sequence, index) in [(1, 0), (1, 1), (2, 0), (3, 0), (3, 7)] {
        uplink.want(at(0), live_want(token(1, sequence, index), at(200)));
    }
    uplink.want(at(0), live_want(token(2, 1, 0), at(200)));
    uplink.withdraw(&token(1, 1, 0).sample());
    uplink.withdraw(&(token(1, 3, 0)..=token(1, 3, 0)));
    let left: Vec<_> = run(&mut uplink, at(0), at(1_000))
        .into_iter()
        .map(|(_, token)| token)
        .collect();
    assert_eq!(left, [token(1, 2, 0), token(1, 3, 7), token(2, 1, 0)]);
}

/// Ten packets at 4 Mbit/s, 2.16 ms apart, whose sample is withdrawn while they are under way.
#[test]
fn data_of_a_withdrawn_sample_tells_of_the_path() {
    let mut bench = Bench::new(Link::new(Bitrate::mbps(4), ms(20), 50));
    let sample = token(1, 1, 0).sample();
    for index in 0..10 {
        bench.want(want(token(1, 1, index), Kind::Delta), at(0));
    }
    bench.run_for(ms(10));
    assert_eq!(bench.sent.len(), 10);
    bench.uplink.withdraw(&sample);
    assert_eq!(bench.uplink.sizes(), (10, 0));
    bench.run_for(ms(200));
    let path = bench.uplink.path();
    assert_eq!(bench.came.len(), 10);
    assert!(path.last_arrival() > Some(at(60)));
    assert!((3.9e6..4.1e6).contains(&path.capacity()));
    assert_eq!(bench.uplink.sizes(), (0, 0));
    assert_eq!(bench.events, []);
}

#[test]
fn what_was_withdrawn_and_does_not_come_is_not_reported_as_lost() {
    type Withdraw = fn(&mut Uplink, Token);
    let ways: [Withdraw; 4] = [
        |_, _| {},
        |uplink, token| uplink.withdraw(&(token..=token)),
        |uplink, token| uplink.withdraw(&token.sample()),
        |uplink, token| uplink.withdraw(&token.client.tokens()),
    ];
    for (index, withdraw) in ways.into_iter().enumerate() {
        let mut uplink = uplink(UplinkConfig::default());
        let token = token(1, 1, 0);
        uplink.want(at(0), want(token, Kind::Delta));
        assert_eq!(sent(&mut uplink, at(0)).len(), 1);
        withdraw(&mut uplink, token);
        assert_eq!(uplink.sizes(), (1, 0));
        uplink.handle_timeout(at(5_000));
        let lost = (index == 0).then_some(Event::Lost(token));
        assert_eq!(uplink.poll_event(), lost);
        assert_eq!(uplink.sizes(), (0, 0));
    }
}

#[test]
fn a_sample_leaves_a_round_trip_before_it_is_available() {
    for revised in [None, Some(at(500)), Some(at(1_500))] {
        let mut uplink = uplink(UplinkConfig::default());
        let (this, other) = (token(1, 1, 0), token(1, 2, 0));
        for (token, available_at) in [(this, at(1_000)), (other, at(2_000))] {
            uplink.want(at(0), live_want(token, available_at));
        }
        if let Some(available_at) = revised {
            uplink.revise(at(0), &this.sample(), available_at);
        }
        let left = run(&mut uplink, at(0), at(3_000));
        let leaves = |available_at: Instant| available_at.saturating_sub(LEAVES_BEFORE);
        let expected = leaves(revised.unwrap_or(at(1_000)));
        assert_eq!(left, [(expected, this), (leaves(at(2_000)), other)]);
    }
}

/// A key frame that comes nine seconds before its time is requested then, though delta samples are wanted before that time.
#[test]
fn a_sample_that_is_available_early_overtakes_what_was_to_come_before_it() {
    let mut uplink = uplink(UplinkConfig::default());
    let [first, second, key] = [1, 2, 3].map(|sample| token(1, sample, 0));
    for (token, available_at) in [(first, 1_000), (second, 1_040), (key, 10_000)] {
        uplink.want(at(0), live_want(token, at(available_at)));
    }
    uplink.revise(at(0), &key.sample(), at(1_000));
    let left = run(&mut uplink, at(0), at(20_000));
    let leaves = |millis| at(millis).saturating_sub(LEAVES_BEFORE);
    let expected = [
        (leaves(1_000), first),
        (leaves(1_000), key),
        (leaves(1_040), second),
    ];
    assert_eq!(left, expected);
}

/// What leaves at 0 ms and is available at 300 ms is not late before that, nor taken for lost until 1.5 s after it.
#[test]
fn revise_moves_when_data_is_late() {
    let lost_at = |revised: Option<Instant>| {
        let mut uplink = uplink(UplinkConfig::default());
        let token = token(1, 1, 0);
        let available_at = Some(at(300));
        let media = Want {
            available_at,
            ..want(token, Kind::Delta)
        };
        uplink.want(at(0), media);
        let mut now = at(0);
        uplink.handle_timeout(now);
        if let Some(at) = revised {
            uplink.revise(now, &token.sample(), at);
        }
        while core::iter::from_fn(|| uplink.poll_event()).all(|event| event != Event::Lost(token)) {
            now = uplink.poll_timeout().unwrap();
            uplink.handle_timeout(now);
        }
        now.since(at(0)).as_millis()
    };
    for (revised, due) in [(None, 300), (Some(at(1_000)), 1_000), (Some(at(10)), 50)] {
        let found = lost_at(revised);
        assert!((due + 1_500..=due + 1_510).contains(&found), "{found}");
    }
}

/// 4 Mbit/s carry 463 packets a second, so that no more than 1.25 · 463 + 50 = 628 Interests leave in any; and so on.
///
/// At least seven tenths of the link are used while something waits.
#[test]
fn a_backlog_leaves_about_as_fast_as_the_link_carries_it() {
    for kbps in [1_000, 4_000, 10_000] {
        let carried = (kbps * 1_000) as f64 / SIZE.as_bits() as f64;
        let mut bench = Bench::new(Link::new(Bitrate::kbps(kbps), ms(20), 100));
        for index in 0..8_000 {
            bench.want(want(token(1, 1, index), Kind::Delta), at(0));
        }
        bench.run_for(ms(5_000));
        assert!(bench.uplink.sizes().1 > 0, "there is a backlog");
        let times: Vec<_> = bench.sent.iter().map(|(at, _)| *at).collect();
        let most = (1.25 * carried + 50.0) as usize;
        for window in times.windows(most + 1) {
            let span = window[most].since(window[0]);
            assert!(
                span >= ms(1_000),
                "{most} Interests within {span:?} at {kbps} kbit/s"
            );
        }
        let came = bench.came.len() as f64 / 5.0;
        let range = 0.7 * carried..=carried;
        assert!(
            range.contains(&came),
            "{came} of {carried} packets a second"
        );
    }
}

/// At a round trip of 200 ms and 6 Mbit/s, of which half is played, 150 packets are published together. What leaves shows a round
/// trip later: until then an empty queue widens the window by 1.25 times the queue that it aims at, and not by half a round trip.
#[test]
fn a_burst_leaves_no_long_queue_before_a_round_trip_has_shown_it() {
    let mut bench = Bench::new(Link::new(Bitrate::mbps(6), ms(100), 80));
    bench.play(Bitrate::mbps(3), ms(5_000));
    for index in 0..150 {
        bench.want(want(token(2, 1, index), Kind::Key), bench.now);
    }
    bench.play(Bitrate::mbps(3), ms(1_000));
    assert_eq!(bench.link.overflows, 0);
    let came = bench
        .came
        .iter()
        .filter(|(_, token)| token.client == ClientId(2));
    assert_eq!(came.count(), 150);
}

/// Nobody requests Data a packet at a time before anything was measured: three packets of 100 kB leave at once.
#[test]
fn the_first_burst_has_room_for_three_large_packets() {
    let mut uplink = uplink(UplinkConfig::default());
    for index in 0..10 {
        let large = Want {
            size: ByteSize::bytes(100_000),
            ..want(token(1, 1, index), Kind::Key)
        };
        uplink.want(at(0), large);
    }
    assert_eq!(sent(&mut uplink, at(0)).len(), 3);
}

/// At 1 Gbit/s and a round trip of 200 µs, 100 packets take 0.2 + 100 · 0.009 = 1.1 ms, of which the first burst leaves out 52:
/// what the first Data showed of the path counts for these at once, and not from the next tick on, 5 ms after the first.
#[test]
fn what_is_measured_first_counts_at_once() {
    let delay = Duration::from_micros(100);
    let mut bench = Bench::new(Link::new(Bitrate::mbps(1_000), delay, 1_000));
    for index in 0..100 {
        bench.want(want(token(1, 1, index), Kind::Key), bench.now);
    }
    bench.run_for(ms(3));
    assert_eq!(bench.came.len(), 100);
}

/// Notes the round-trip times that it is told.
#[derive(Clone, Debug, Default)]
struct RoundTrips(Arc<Mutex<Vec<Option<Duration>>>>);

impl RateController for RoundTrips {
    fn on_data(&mut self, _now: Instant, data: &Arrival) {
        self.0.lock().unwrap().push(data.rtt);
    }

    fn on_loss(&mut self, _now: Instant, _lost: &Lost) {}

    fn target(&self) -> Target {
        Target::default()
    }

    fn name(&self) -> &'static str {
        "round-trips"
    }
}

/// Of what may have been published after it was requested, and of what was requested twice, nobody here knows how long it took.
#[test]
fn controllers_hear_how_long_the_way_of_what_exists_is() {
    let round_trips = RoundTrips::default();
    let budget = Budget::controller(Box::new(round_trips.clone()));
    let mut uplink = Uplink::new(UplinkConfig::default(), budget);
    let [once, twice, live] = [1, 2, 3].map(|sequence| token(1, sequence, 0));
    uplink.want(at(0), want(once, Kind::Delta));
    uplink.want(at(0), want(twice, Kind::Delta));
    uplink.want(at(0), live_want(live, at(0)));
    assert_eq!(sent(&mut uplink, at(0)).len(), 3);
    uplink.want(at(20), want(twice, Kind::Sound));
    sent(&mut uplink, at(20));
    for token in [once, twice, live] {
        answer(&mut uplink, at(70), token, &Received::new(SIZE, false));
    }
    uplink.handle_timeout(at(70));
    let heard = round_trips.0.lock().unwrap();
    assert_eq!(*heard, [Some(ms(70)), None, None]);
}
