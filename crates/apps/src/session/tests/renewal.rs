//! New keys for sessions that last.

use bytes::Bytes;
use namecast_packet::{Name, Packet};
use namecast_units::Duration;

use super::super::*;
use super::pipe::{A, B, Pipe, ms, packet};

const HOUR: Duration = Duration::from_secs(3_600);

fn renewed(pipe: &Pipe) -> [u64; 2] {
    pipe.ends.each_ref().map(|it| it.counters().renewed)
}

fn forged(pipe: &Pipe, call: CallId) -> [u64; 2] {
    let stats = pipe.ends.each_ref().map(|it| it.stats(call));
    stats.map(|it| it.expect("open").received.forged)
}

/// After an hour, and again an hour later: nobody notices.
#[test]
fn a_session_of_hours_gets_new_keys() {
    let mut pipe = Pipe::new(Flow::interactive());
    let call = pipe.connect();
    pipe.run_for(HOUR - Duration::from_secs(1));
    assert_eq!(renewed(&pipe), [0, 0]);
    for hour in 1..=2 {
        pipe.run_for(Duration::from_secs(3));
        assert_eq!(renewed(&pipe), [hour, hour]);
        pipe.say(A, call, "still here");
        pipe.say(B, call, "so am I");
        pipe.run_for(ms(200));
        let heard = [A, B].map(|side| pipe.heard(side).len() as u64);
        assert_eq!(heard, [hour, hour]);
        pipe.run_for(HOUR - Duration::from_secs(3));
    }
    assert_eq!(forged(&pipe, call), [0, 0]);
    let refused = |side: usize| {
        pipe.ends[side]
            .counters()
            .refused
            .iter()
            .map(|it| it.1)
            .sum()
    };
    let sums: [u64; 2] = [refused(A), refused(B)];
    assert_eq!(sums, [0, 0]);
}

/// With messages both ways all the time and a third of all packets lost and out of order, none is lost, doubled or refused.
#[test]
fn keys_change_under_load_and_loss() {
    for (seed, flow) in (0..12).zip([Flow::bulk(), Flow::interactive()].into_iter().cycle()) {
        let mut pipe = Pipe::with(|config| {
            config.session.flow = flow;
            config.session.renew_after = Duration::from_secs(90);
        });
        pipe.random = namecast_units::Random::from_seed(seed);
        let call = pipe.connect();
        (pipe.loss, pipe.jitter) = ([0.33; 2], ms(40));
        let mut said = 0_u32;
        for _ in 0..1_200 {
            for side in [A, B] {
                pipe.say(side, call, said.to_be_bytes().to_vec());
            }
            said += 1;
            pipe.run_for(ms(250));
        }
        pipe.loss = [0.0; 2];
        pipe.run_for(Duration::from_secs(10));
        let [own, other] = renewed(&pipe);
        assert!(own >= 3 && own == other, "seed {seed}: {own} and {other}");
        let expected: Vec<Bytes> = (0..said)
            .map(|it| it.to_be_bytes().to_vec().into())
            .collect();
        for side in [A, B] {
            let heard: Vec<_> = pipe.heard(side).into_iter().map(|it| it.1).collect();
            assert!(
                heard == expected,
                "seed {seed}, side {side}: {}",
                heard.len()
            );
        }
        assert_eq!(forged(&pipe, call), [0, 0], "seed {seed}");
    }
}

/// What is spoken gives up what is late; its keys change all the same.
#[test]
fn keys_of_speech_change_over_a_lossy_path() {
    for seed in 0..6 {
        let mut pipe = Pipe::with(|config| {
            config.session.flow = Flow::VOICE;
            config.session.renew_after = Duration::from_secs(70);
        });
        pipe.random = namecast_units::Random::from_seed(seed);
        let call = pipe.connect();
        pipe.loss = [0.3; 2];
        for _ in 0..100 * 50 {
            for side in [A, B] {
                pipe.say(side, call, "speech");
            }
            pipe.run_for(ms(20));
        }
        assert_eq!(renewed(&pipe), [1, 1], "seed {seed}");
        assert_eq!(forged(&pipe, call), [0, 0], "seed {seed}");
    }
}

/// Packets of the same session, sealed with its first keys under numbers that are requested: they count until it is renewed.
#[test]
fn the_first_keys_seal_nothing_any_more() {
    for (renew_after, is_renewed) in [(90, true), (10_000, false)] {
        let connected = |renew_after| {
            let mut pipe = Pipe::with(|config| {
                config.session.renew_after = Duration::from_secs(renew_after);
            });
            let call = pipe.connect();
            (pipe, call)
        };
        // The twin has the same secrets, and is not renewed.
        let ((mut pipe, call), (mut twin, other)) = (connected(renew_after), connected(10_000));
        assert_eq!(call, other);
        pipe.run_for(Duration::from_secs(100));
        assert_eq!(renewed(&pipe), [u64::from(is_renewed); 2]);
        twin.run_for(Duration::from_secs(1));
        for _ in 0..40 {
            twin.say(B, call, "old keys");
            twin.run_for(ms(100));
        }
        let is_requested =
            |name: &Name| pipe.waits[A].get(name).is_some_and(|it| it.came.is_none());
        let forgeries: Vec<_> = (twin.sent[B].iter())
            .filter(|(_, frame)| match packet(frame) {
                Some(Packet::Data(data)) => is_requested(data.name()),
                _ => false,
            })
            .map(|(_, frame)| frame.clone())
            .collect();
        assert!(!forgeries.is_empty());
        for frame in &forgeries {
            pipe.inject(A, frame.clone());
        }
        let count = forgeries.len() as u64;
        let expected = if is_renewed { count } else { 0 };
        assert_eq!(forged(&pipe, call), [expected, 0]);
    }
}

/// More often than once a minute a caller makes nobody compute.
#[test]
fn a_callee_takes_new_keys_once_a_minute() {
    let mut pipe = Pipe::with(|config| config.session.renew_after = Duration::from_secs(30));
    pipe.connect();
    pipe.run_for(Duration::from_secs(55));
    assert_eq!(renewed(&pipe), [0, 0]);
    assert!(pipe.ends[B].counters().refused[Refusal::Crowded] >= 4);
    pipe.run_for(Duration::from_secs(10));
    assert_eq!(renewed(&pipe), [1, 1]);
}

/// Keys that are not renewed within ten minutes are used no more, and the application hears why.
#[test]
fn keys_that_cannot_be_renewed_end_the_session() {
    let mut pipe = Pipe::with(|config| {
        config.session.renew_after = Duration::from_secs(90);
        config.session.max_silence = Duration::from_secs(10_000);
    });
    let call = pipe.connect();
    pipe.loss = [1.0; 2];
    pipe.run_for(Duration::from_secs(689));
    let ended = |pipe: &Pipe| {
        let last = pipe.events.each_ref().map(|it| it.last().cloned());
        last.map(|it| it.map(|it| it.1) == Some(Event::Ended(call, End::Unrenewed)))
    };
    assert_eq!(ended(&pipe), [false, false]);
    pipe.run_for(Duration::from_secs(6));
    assert_eq!(ended(&pipe), [true, true]);
}
