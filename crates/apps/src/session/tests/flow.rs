//! What is said once two are connected: in time, once, in order, over paths that lose and reorder.

use bytes::Bytes;
use namecast_packet::{LpPacket, Packet};
use namecast_units::{Bitrate, Duration, Instant};

use super::super::*;
use super::pipe::{A, B, Pipe, at, ms, packet};

/// Round-trip time of the pipe.
const RTT: Duration = ms(50);

/// Both speak for so many frames of 20 ms. Returns when each frame was sent.
fn speak(pipe: &mut Pipe, call: CallId, frames: u32, sides: &[usize]) -> Vec<Instant> {
    let mut sent = Vec::new();
    for frame in 0..frames {
        for &side in sides {
            pipe.say(side, call, frame.to_be_bytes().to_vec());
        }
        sent.push(pipe.now);
        pipe.run_for(ms(20));
    }
    pipe.run_for(ms(400));
    sent
}

/// Delays of the frames that came to `side`, and how many did not.
fn delays(pipe: &Pipe, side: usize, sent: &[Instant]) -> (Vec<Duration>, usize) {
    let mut came = vec![None; sent.len()];
    for (at, body) in pipe.heard(side) {
        let frame = u32::from_be_bytes(body[..].try_into().unwrap()) as usize;
        assert_eq!(came[frame], None, "frame {frame} came twice");
        came[frame] = Some(at.since(sent[frame]));
    }
    let missing = came.iter().filter(|it| it.is_none()).count();
    let mut delays: Vec<_> = came.into_iter().flatten().collect();
    delays.sort();
    (delays, missing)
}

fn quantile(sorted: &[Duration], permille: usize) -> Duration {
    sorted[(sorted.len() - 1) * permille / 1_000]
}

/// RTT 50 ms, 50 packets a second: w = ⌈2.5⌉ + 2, and one more that waits for Data to ride with. Each frame is there after half a
/// round trip, so its Interest was there before it.
#[test]
fn interests_wait_for_what_will_be_said() {
    for bundles in [false, true] {
        let mut pipe = Pipe::with(|config| {
            config.session.flow = Flow::VOICE;
            config.session.bundles = bundles;
        });
        let call = pipe.connect();
        let sent = speak(&mut pipe, call, 500, &[A, B]);
        for side in [A, B] {
            let (delays, missing) = delays(&pipe, side, &sent);
            assert_eq!((delays[0], delays[499], missing), (ms(25), ms(25), 0));
            let stats = pipe.ends[side].stats(call).unwrap();
            assert_eq!(stats.received.retransmissions, 0);
            // One Interest a frame, and those that wait at the end.
            let interests = stats.received.interests - stats.received.refreshes;
            assert!((500..512).contains(&interests), "{stats:?}");
            assert!(stats.rtt.unwrap().abs_diff(RTT) < ms(1), "{stats:?}");
        }
    }
}

/// Frames that left directly behind Data, in the same step, as a share of all Interests.
fn riders(frames: &[(Instant, Bytes)]) -> (usize, usize) {
    let mut riders = 0;
    let mut interests = 0;
    let mut data: Vec<Instant> = Vec::new();
    for (at, frame) in frames {
        match packet(frame) {
            Some(Packet::Data(_)) => data.push(*at),
            Some(Packet::Interest(_)) => {
                interests += 1;
                if data.pop().is_some_and(|it| it == *at) {
                    riders += 1;
                }
            }
            None => {}
        }
    }
    (riders, interests)
}

/// Phases differ by 7 ms, as those of two microphones do.
#[test]
fn data_and_the_next_interest_leave_together() {
    for (bundles, share) in [(true, 95..=100), (false, 0..=10)] {
        let mut pipe = Pipe::with(|config| {
            config.session.flow = Flow::VOICE;
            config.session.bundles = bundles;
        });
        let call = pipe.connect();
        let start = [A, B].map(|side| pipe.sent[side].len());
        for _ in 0..500 {
            pipe.say(A, call, "a");
            pipe.run_for(ms(7));
            pipe.say(B, call, "b");
            pipe.run_for(ms(13));
        }
        for side in [A, B] {
            let (riders, interests) = riders(&pipe.sent[side][start[side]..]);
            let percent = riders * 100 / interests;
            assert!(share.contains(&percent), "{riders} of {interests}");
        }
    }
}

/// Sends as much as there is room for, both ways, for `time`. Returns how many messages came to each side, all in order.
fn transfer(pipe: &mut Pipe, call: CallId, time: Duration, sides: &[usize]) -> [u32; 2] {
    let mut next = [0_u32; 2];
    let until = pipe.now + time;
    while pipe.now < until {
        for &side in sides {
            while pipe.ends[side].room(call) > 0 {
                let mut body = vec![0; 1_000];
                body[..4].copy_from_slice(&next[side].to_be_bytes());
                pipe.say(side, call, body);
                next[side] += 1;
            }
        }
        pipe.run_for(ms(5));
    }
    [A, B].map(|side| {
        let heard = pipe.heard(side);
        for (expected, (_, body)) in heard.iter().enumerate() {
            assert_eq!(body[..4], (expected as u32).to_be_bytes(), "in order, once");
        }
        heard.len() as u32
    })
}

/// A window of 40 brings 40 packets in each round trip of 50 ms: 800 a second.
fn windowed() -> Flow {
    Flow::Elastic {
        control: "window:40".parse().unwrap(),
        standing: 8,
        is_interactive: false,
    }
}

#[test]
fn both_directions_carry_a_window_each_round_trip() {
    let mut pipe = Pipe::new(windowed());
    let call = pipe.connect();
    let before = pipe.now;
    let start = [A, B].map(|side| pipe.sent[side].len());
    let heard = transfer(&mut pipe, call, Duration::from_secs(10), &[A, B]);
    for count in heard {
        assert!((7_800..=8_000).contains(&count), "{heard:?}");
    }
    // N + w packets instead of 2N: all but the first w ride.
    let (riders, interests) = riders(&pipe.sent[A][start[A]..]);
    assert!(riders * 100 >= interests * 98, "{riders} of {interests}");
    assert!(before < pipe.now);
}

/// As much comes with bundles as without, to a hundredth, in both directions together over 4 Mbit/s each way, although a loss takes
/// both packets.
#[test]
fn bundles_cost_a_transfer_nothing() {
    for loss in [0.0, 0.05] {
        let [plain, bundled] = [false, true].map(|bundles| {
            let came = (0..2).map(|seed| {
                let mut pipe = Pipe::with(|config| config.session.bundles = bundles);
                pipe.joins = bundles;
                let call = pipe.connect();
                pipe.random = namecast_units::Random::from_seed(seed);
                (pipe.loss, pipe.rate) = ([loss; 2], Some(Bitrate::mbps(4)));
                let came = transfer(&mut pipe, call, Duration::from_secs(6), &[A, B]);
                came[A] + came[B]
            });
            came.sum::<u32>()
        });
        assert!(
            bundled * 100 >= plain * 99,
            "loss {loss}: {bundled} of {plain}"
        );
    }
}

/// A round trip of 1 ms, without a bottleneck: an Interest that waited for Data as long would be there after the Data it is for.
#[test]
fn on_a_short_path_nothing_waits_for_a_bundle() {
    let [plain, bundled] = [false, true].map(|bundles| {
        let mut pipe = Pipe::with(|config| config.session.bundles = bundles);
        (pipe.joins, pipe.delay) = (bundles, Duration::from_micros(500));
        let call = pipe.connect();
        transfer(&mut pipe, call, ms(40), &[A, B])
    });
    for side in [A, B] {
        assert!(
            bundled[side] * 100 >= plain[side] * 99,
            "{bundled:?} of {plain:?}"
        );
    }
}

/// Loss of 5 % in each direction: a packet is lost in one of twenty answers, and what it takes to have it again is one more round
/// trip, a quarter for reordering, and the time until the next one comes.
#[test]
fn losses_are_repaired_within_two_and_a_half_round_trips() {
    for seed in 0..5 {
        let mut pipe = Pipe::new(windowed());
        let call = pipe.connect();
        pipe.random = namecast_units::Random::from_seed(seed);
        pipe.loss = [0.05; 2];
        let heard = transfer(&mut pipe, call, Duration::from_secs(15), &[A, B]);
        for side in [A, B] {
            let waits = pipe.waited(side);
            let (p99, longest) = (quantile(&waits, 990), waits[waits.len() - 1]);
            assert!(waits.len() > 8_000, "{}", waits.len());
            assert!(p99 <= RTT * 5 / 2, "seed {seed}: {p99:?}");
            assert!(longest <= RTT * 6, "seed {seed}: {longest:?}");
            // 800 a second, less what waits for the lost ones in the window.
            assert!(heard[side] > 15 * 800 * 8 / 10, "seed {seed}: {heard:?}");
        }
    }
}

#[test]
fn speech_is_repaired_in_time() {
    for seed in 0..5 {
        let mut pipe = Pipe::new(Flow::VOICE);
        let call = pipe.connect();
        pipe.random = namecast_units::Random::from_seed(seed);
        (pipe.loss, pipe.jitter) = ([0.05; 2], ms(5));
        let sent = speak(&mut pipe, call, 2_000, &[A, B]);
        for side in [A, B] {
            let (delays, missing) = delays(&pipe, side, &sent);
            let late = delays.iter().filter(|&&it| it > ms(150)).count();
            // One in a thousand is lost three times.
            assert!(
                missing + late <= 4,
                "seed {seed}: {missing} missing, {late} late"
            );
            assert!(quantile(&delays, 500) <= ms(30), "seed {seed}");
            let repaired = quantile(&delays, 980);
            assert!(repaired <= RTT * 5 / 2, "seed {seed}: {repaired:?}");
        }
    }
}

#[test]
fn a_path_that_reorders_costs_no_message() {
    let mut pipe = Pipe::new(windowed());
    let call = pipe.connect();
    pipe.jitter = ms(20);
    let heard = transfer(&mut pipe, call, Duration::from_secs(10), &[A, B]);
    let stats = pipe.ends[A].stats(call).unwrap().received;
    assert!(heard[A] > 5_000, "{heard:?}");
    // Spurious ones are few: the margin of a quarter of a round trip grows with the delay.
    assert!(stats.retransmissions * 10 < stats.packets, "{stats:?}");
}

/// One side has nothing to send but acknowledgements: one for the 40 packets that come each 50 ms.
#[test]
fn one_side_may_have_nothing_to_send() {
    let mut pipe = Pipe::new(windowed());
    let call = pipe.connect();
    let heard = transfer(&mut pipe, call, Duration::from_secs(10), &[A]);
    assert_eq!(heard[A], 0);
    assert!((7_800..=8_000).contains(&heard[B]), "{heard:?}");
    let sent = pipe.ends[B].stats(call).unwrap().sent;
    assert!((195..=210).contains(&sent.packets), "{sent:?}");
}

/// Ten seconds in which nothing passes, in the middle of typing.
#[test]
fn an_outage_loses_and_doubles_nothing() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    for key in 0..200_u32 {
        pipe.loss = match key {
            50..150 => [1.0; 2],
            _ => [0.05; 2],
        };
        pipe.say(A, call, key.to_be_bytes().to_vec());
        pipe.run_for(ms(100));
    }
    pipe.run_for(Duration::from_secs(3));
    let heard = pipe.heard(B);
    let keys: Vec<_> = heard.iter().map(|it| it.1.clone()).collect();
    let expected: Vec<_> = (0..200_u32)
        .map(|key| Bytes::from(key.to_be_bytes().to_vec()))
        .collect();
    assert_eq!(keys, expected);
    // The first after it is there within the lifetime of an Interest.
    let back = heard[150].0.since(at(0));
    let outage_ends = pipe.now.since(at(0)) - Duration::from_secs(3 + 5);
    assert!(
        back - outage_ends < Duration::from_secs(2),
        "{back:?}, {outage_ends:?}"
    );
}

/// Single keystrokes, 300 ms apart, with 5 % loss each way: nothing follows them that would show a loss but the empty packet, after a
/// quarter of a round trip. With half of one each for its way, the request and the answer, and an eighth for reordering, that is
/// less than two; and the loss of an empty packet costs nothing.
#[test]
fn a_lost_keystroke_is_there_within_two_round_trips() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    pipe.loss = [0.05; 2];
    let mut sent = Vec::new();
    for key in 0..2_000_u32 {
        sent.push(pipe.now);
        pipe.say(A, call, key.to_be_bytes().to_vec());
        pipe.run_for(ms(300));
    }
    let (delays, missing) = delays(&pipe, B, &sent);
    assert!(missing <= 1, "{missing}");
    let (p99, longest) = (quantile(&delays, 990), delays[delays.len() - 1]);
    assert_eq!(delays[0], ms(25));
    assert!(p99 <= RTT * 2 && longest <= RTT * 6, "{p99:?} {longest:?}");
}

#[test]
fn replayed_and_changed_packets_are_counted_and_change_nothing() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    for key in 0..20_u32 {
        pipe.say(A, call, key.to_be_bytes().to_vec());
        pipe.run_for(ms(100));
    }
    assert_eq!(pipe.heard(B).len(), 20);
    let frames: Vec<_> = pipe.sent[A].iter().map(|it| it.1.clone()).collect();
    let is_packet = |frame: &Bytes| matches!(packet(frame), Some(Packet::Data(it)) if it.name().to_string().contains("/seq="));
    let data: Vec<_> = frames.into_iter().filter(is_packet).collect();
    for frame in &data {
        pipe.inject(B, frame.clone());
    }
    let received = pipe.ends[B].stats(call).unwrap().received;
    assert_eq!(received.replayed, data.len() as u64);
    // The next packet is changed on its way, again and again, and then comes as it is.
    let start = pipe.sent[A].len();
    pipe.loss[A] = 1.0;
    pipe.say(A, call, "next");
    let next = pipe.sent[A][start..].iter().map(|it| it.1.clone());
    let next = next.filter(|it| is_packet(it)).last().unwrap();
    for at in 0..16 {
        let mut octets = next.to_vec();
        let place = octets.len() - 10 - at;
        octets[place] ^= 1;
        pipe.inject(B, octets.into());
    }
    assert_eq!(pipe.heard(B).len(), 20);
    assert_eq!(pipe.ends[B].stats(call).unwrap().received.forged, 16);
    pipe.loss[A] = 0.0;
    pipe.run_for(ms(500));
    assert_eq!(pipe.heard(B).len(), 21);
    // Past all caches.
    let is_fresh = |(_, frame): &(Instant, Bytes)| matches!(packet(frame), Some(Packet::Interest(it)) if it.must_be_fresh());
    assert!(pipe.sent[B].iter().any(is_fresh));
}

/// A stranger requests numbers far ahead, and near ones that nobody waits for: what is said still reaches who was meant.
#[test]
fn a_strangers_interests_divert_nothing() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    let interest = |number: u64| {
        let name = names::packets(&"/alice/talk".parse().unwrap(), call);
        let name = name.builder().sequence(number).finish();
        let interest = namecast_packet::Interest::builder(name);
        LpPacket::carrying(
            interest
                .build(namecast_packet::Nonce([9; 4]))
                .wire()
                .clone(),
        )
        .encode()
    };
    for number in [1_000_000, u64::MAX, 900, 100, 50] {
        pipe.inject(A, interest(number));
    }
    let before = pipe.sent[A].len();
    for key in 0..50_u32 {
        pipe.say(A, call, key.to_be_bytes().to_vec());
        pipe.run_for(ms(60));
    }
    pipe.run_for(Duration::from_secs(2));
    assert_eq!(pipe.heard(B).len(), 50);
    let sent = pipe.ends[A].stats(call).unwrap().sent;
    assert_eq!(sent.too_far, 2, "{sent:?}");
    assert!(pipe.sent[A].len() > before);
}

/// Nothing is said for two minutes: a few packets a second, and then both still hear each other; once one is gone, the other knows.
#[test]
fn silence_is_cheap_and_noticed() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    let start = pipe.sent[A].len();
    pipe.run_for(Duration::from_secs(120));
    let rate = (pipe.sent[A].len() - start) as f64 / 120.0;
    assert!(rate < 10.0, "{rate} packets a second");
    pipe.say(B, call, "still here?");
    pipe.run_for(ms(100));
    assert_eq!(pipe.heard(A).len(), 1);
    pipe.loss = [1.0; 2];
    pipe.run_for(Duration::from_secs(40));
    for side in [A, B] {
        let last = pipe.events[side].last().map(|it| it.1.clone());
        assert_eq!(last, Some(Event::Ended(call, End::Silence)));
    }
}
