use super::*;

use namecast_units::{Bitrate, ByteSize};

use super::super::fixtures::{WALL, at, header, latest, ms, playout, source};
use super::super::{Allowance, LineUp, SynchroniserProfile};

/// A schedule that goes by the clock of a path of 60 ms, and nothing under way.
fn schedule(config: &Config) -> (Schedule, Assembler) {
    let mut schedule = Schedule::new(config, &source());
    schedule.set_playout(at(0), playout(), Duration::ZERO);
    schedule.on_round_trip(at(0), ms(60));
    let policy = super::super::assembler::Policy {
        requests_parity: false,
        suspects_counts: false,
    };
    let samples = Assembler::new(config, policy, source().estimators(config.max_segments));
    (schedule, samples)
}

fn start(schedule: &mut Schedule, latest: &Latest, to: StartAt) -> Option<Start> {
    schedule.start(at(0), &source(), latest, to)
}

/// All samples of `class` to request now.
fn requests(
    schedule: &mut Schedule,
    now: Instant,
    class: SampleClass,
    samples: &Assembler,
) -> Vec<u64> {
    let next = || schedule.take_next(now, class, samples, Duration::ZERO);
    core::iter::from_fn(next).collect()
}

#[test]
fn nothing_starts_before_anything_is_published() {
    let (mut schedule, samples) = schedule(&Config::default());
    let nothing = Latest {
        key_sequence: None,
        ..latest(5, 99)
    };
    assert_eq!(start(&mut schedule, &nothing, StartAt::NewestKey), None);
    for class in SampleClass::ALL {
        assert!(requests(&mut schedule, at(0), class, &samples).is_empty());
    }
}

/// A key sample that is there, and the next one: 1 s later, of which ⌈(60 + 40 + margin) / 1000⌉ = 1 is requested ahead. As for
/// delta samples, 100 comes 40 ms later at the soonest, less than the 60 ms and the margin that its Interest takes.
#[test]
fn samples_are_requested_so_that_interests_wait_for_them() {
    let (mut schedule, samples) = schedule(&Config::default());
    let started = start(&mut schedule, &latest(5, 99), StartAt::NewestKey);
    let expected = Start {
        first: 5,
        plays_from: 5,
    };
    assert_eq!(started, Some(expected));
    let keys = requests(&mut schedule, at(0), SampleClass::Key, &samples);
    assert_eq!(keys, [5, 6]);
    let deltas = requests(&mut schedule, at(0), SampleClass::Delta, &samples);
    assert_eq!(deltas, [100, 101]);
    let next_at = schedule.poll_timeout().unwrap();
    let before = schedule.ahead_by(at(0), Duration::ZERO);
    assert_eq!(next_at, at(120).saturating_sub(before));
    let early = next_at.saturating_sub(Duration::from_nanos(1));
    assert!(requests(&mut schedule, early, SampleClass::Delta, &samples).is_empty());
    assert_eq!(
        requests(&mut schedule, next_at, SampleClass::Delta, &samples),
        [102]
    );
}

/// What is hedged after 20 ms leaves 20 ms earlier.
#[test]
fn time_to_hedge_is_time_to_leave_earlier() {
    let (schedule, _) = schedule(&Config::default());
    let before = |hedging| schedule.ahead_by(at(0), hedging);
    assert_eq!(before(ms(20)), before(Duration::ZERO) + ms(20));
}

/// Lead of delta 102, which needs key 5: 100 and 101 were overtaken, as was the key sample; 102 is no news twice.
#[test]
fn a_lead_says_what_is_published() {
    let (mut schedule, _) = schedule(&Config::default());
    start(&mut schedule, &latest(5, 99), StartAt::NewestKey);
    let key = (SampleClass::Delta, 102);
    let news = schedule.on_lead(at(200), key, &header(3, 5));
    assert_eq!(news.newer, [(SampleClass::Delta, 100..=102)]);
    assert_eq!(
        news.overtaken,
        [(SampleClass::Delta, 99..=101), (SampleClass::Key, 5..=5)]
    );
    assert_eq!((news.refused, news.plays_from), (0, None));
    assert_eq!(schedule.newest_delta(), Some(102));
    let again = schedule.on_lead(at(200), key, &header(3, 5));
    assert_eq!(again.newer, []);
}

/// A group of 5 000 delta samples is more than there is room for: playback starts with its successor. One of 20 is caught up with.
#[test]
fn a_group_too_long_to_catch_up_with_is_passed_over() {
    for (group, plays_from) in [(20, 5), (5_000, 6)] {
        let (mut schedule, samples) = schedule(&Config::default());
        let latest = Latest {
            next_delta: Some(10_000 - group),
            ..latest(5, 9_999)
        };
        let started = start(&mut schedule, &latest, StartAt::NewestKey);
        assert_eq!(started.map(|it| it.plays_from), Some(plays_from));
        let deltas = requests(&mut schedule, at(0), SampleClass::Delta, &samples);
        let expected = if group == 20 { 9_980 } else { 10_000 };
        assert_eq!(deltas[0], expected);
    }
}

/// 2 key samples and 48 delta samples of 40 ms. A start that is a million samples ahead, or behind although newer, is of another
/// numbering.
#[test]
fn what_was_missed_is_reported_in_playing_time() {
    let (mut schedule, samples) = schedule(&Config::default());
    start(&mut schedule, &latest(5, 99), StartAt::NewestKey);
    requests(&mut schedule, at(0), SampleClass::Key, &samples);
    requests(&mut schedule, at(0), SampleClass::Delta, &samples);
    let mut line_up = |key, is_starved| {
        let latest = Latest {
            served_at: WALL + ms(1),
            ..latest(key, 149)
        };
        schedule.line_up(at(2_100), &latest, 5, is_starved).0
    };
    assert_eq!(line_up(1_000_000, false), LineUp::OutOfLine);
    assert_eq!(line_up(4, false), LineUp::OutOfLine);
    assert_eq!(line_up(5, false), LineUp::Missed(Duration::ZERO));
    assert_eq!(line_up(8, false), LineUp::Missed(ms(40) * 50));
    assert_eq!(line_up(7, true), LineUp::OutOfLine);
}

/// 600 kbit/s for 40 ms are 3000 B: with more than that waiting, delta samples are passed over, key samples never.
#[test]
fn what_the_allowance_does_not_suffice_for_is_passed_over() {
    let (mut schedule, _) = schedule(&Config::default());
    start(&mut schedule, &latest(5, 99), StartAt::NewestKey);
    let delta = (SampleClass::Delta, 100);
    let much = ByteSize::bytes(3_001);
    assert!(!schedule.passes_over(delta, much), "no allowance");
    let allowance = Allowance {
        rate: Bitrate::kbps(600),
        packet_size: None,
    };
    schedule.handover_mut().set_allowance(Some(allowance));
    assert!(!schedule.passes_over(delta, ByteSize::bytes(3_000)));
    assert!(!schedule.passes_over((SampleClass::Key, 6), much));
    assert!(schedule.passes_over(delta, much));
    assert_eq!(schedule.newest_delta(), Some(100), "others do not wait");
    assert!(!schedule.passes_over((SampleClass::Delta, 100_000), much));
}

/// From position 25 on another rung requests what there is: key 6, and the delta samples after it.
#[test]
fn what_is_left_to_another_rung_is_not_requested() {
    let (mut schedule, samples) = schedule(&Config::default());
    start(&mut schedule, &latest(5, 99), StartAt::NewestKey);
    schedule.on_lead(at(60), (SampleClass::Key, 5), &header(0, 100));
    schedule.handover_mut().set_ask_before(Some(25));
    let keys = requests(&mut schedule, at(900), SampleClass::Key, &samples);
    assert_eq!(keys, [5]);
    schedule.handover_mut().set_ask_before(None);
    let keys = requests(&mut schedule, at(900), SampleClass::Key, &samples);
    assert_eq!(keys, [6]);
}

/// By gaps, playback begins with a key sample that does not exist yet, and a slot of λ is what a request needs.
#[test]
fn by_gaps_slots_bound_what_is_requested() {
    let mut config = Config::default();
    config.synchroniser.profile = SynchroniserProfile::Paper;
    let (mut schedule, samples) = schedule(&config);
    assert!(schedule.goes_by_gaps());
    let started = start(&mut schedule, &latest(5, 99), StartAt::NewestKey);
    assert_eq!(started.map(|it| it.first), Some(6));
    let lead = schedule.interest_lead(at(0), Duration::ZERO);
    let mut begun = 0;
    while let Some(next) = schedule.take_next(at(0), SampleClass::Delta, &samples, Duration::ZERO) {
        schedule.on_begun((SampleClass::Delta, next));
        begun += 1;
    }
    assert_eq!(begun, lead);
}
