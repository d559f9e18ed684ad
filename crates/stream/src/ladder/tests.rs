//! The ladder on the path of a model link.

#[expect(
    clippy::duplicate_mod,
    reason = "modules of tests are seen by their own parents only"
)]
#[path = "../path/tests/link.rs"]
mod link;

use super::*;
use link::{Bench, Link, PERIOD, ms};

/// Half, one, two and a half, and five Mbit/s.
const NEEDS: [Bitrate; 4] = [
    Bitrate::kbps(500),
    Bitrate::kbps(1_000),
    Bitrate::kbps(2_500),
    Bitrate::kbps(5_000),
];
/// From key sample to key sample.
const GROUP: Duration = ms(2_000);
/// A key sample is about to be requested.
const DUE: Duration = ms(1_990);

fn ladder(current: usize) -> Ladder {
    Ladder::new(Instant::ZERO, Config::default(), &NEEDS, current).unwrap()
}

fn bench(rate: Bitrate) -> Bench {
    Bench::new(Link::new(rate, ms(20), 100))
}

fn view(bench: &Bench, since_key: Duration) -> View<'_> {
    View {
        path: bench.uplink.path(),
        backlog: bench.uplink.backlog(bench.now, Weight::ONE),
        others: &[],
        weight: Weight::ONE,
        sound: Bitrate::default(),
        base_growth: Duration::ZERO,
        until_key: GROUP.saturating_sub(since_key),
        since_key,
    }
}

/// A path of 4 Mbit/s on which hardly anything queues: 1 Mbit/s is played.
fn quiet_path() -> Bench {
    let mut bench = bench(Bitrate::mbps(4));
    bench.play(Bitrate::mbps(1), ms(3_000));
    let path = bench.uplink.path();
    assert!((path.fast_capacity() / 4e6 - 1.0).abs() < 0.01);
    assert!(path.queue_now() < 0.01 && path.queued() < 1.0);
    bench
}

/// That path, with so much to request that the lag is `lag` seconds.
fn behind(bench: &Bench, lag: f64, (since_key, until_key): (u64, u64)) -> View<'_> {
    View {
        backlog: lag * 4e6,
        until_key: ms(until_key),
        since_key: ms(since_key),
        ..view(bench, ms(0))
    }
}

#[test]
fn one_rung_is_no_ladder() {
    let new = |needs: &[Bitrate], current| {
        Ladder::new(Instant::ZERO, Config::default(), needs, current).is_some()
    };
    assert!(new(&NEEDS, 3));
    assert!(!new(&NEEDS, 4));
    assert!(!new(&NEEDS[..1], 0));
    assert!(!new(&[NEEDS[1], NEEDS[0]], 0));
}

/// The highest rung of which the link carries 1.1 times what it needs, within four groups, and no higher one.
#[test]
fn pick_climbs_to_what_the_link_carries() {
    for (kbps, highest) in [
        (400, 0),
        (1_000, 0),
        (1_200, 1),
        (2_600, 1),
        (2_700, 1),
        (4_000, 2),
        (5_200, 2),
        (6_000, 3),
    ] {
        let mut bench = bench(Bitrate::kbps(kbps));
        let mut ladder = ladder(0);
        for group in 0..15 {
            bench.play(ladder.need(), GROUP);
            let rung = ladder.pick(bench.now, &view(&bench, DUE));
            assert_eq!(rung, ladder.current());
            assert!(rung <= highest, "{rung} at {kbps} kbit/s");
            assert!(group < 4 || rung == highest, "{rung} at {kbps} kbit/s");
        }
    }
}

/// Of 4 Mbit/s another watcher takes 2 over the same uplink: 1 Mbit/s fits, and 2.5 do not. Once that has ended, 2.5 fit.
#[test]
fn pick_leaves_room_for_others_of_the_uplink() {
    let mut bench = bench(Bitrate::mbps(4));
    let mut ladder = ladder(0);
    let other = Neighbour {
        weight: Weight::ONE,
        need: Bitrate::mbps(2),
        next: None,
    };
    for (others, expected) in [(&[other][..], 1), (&[], 2)] {
        let theirs: u64 = others.iter().map(|other| other.need.as_bps()).sum();
        for _ in 0..8 {
            let all = theirs + ladder.need().as_bps();
            bench.play(Bitrate::bps(all), GROUP);
            let seen = View {
                others,
                ..view(&bench, DUE)
            };
            ladder.pick(bench.now, &seen);
        }
        assert_eq!(ladder.current(), expected);
    }
}

/// On 4 Mbit/s, 2.5 are played beside 0.5. The other one's next rung is 1, for which 4 − 2.5 is enough; were it 2, it would not be, and
/// the higher yields; likewise if sound takes 0.5. If both have 2.5, each has an equal part, in which 1 fits.
#[test]
fn pick_yields_to_who_is_lower() {
    let mbps = |tenths: u64| Bitrate::kbps(100 * tenths);
    for (need, next, sound, expected) in
        [(5, 10, 0, 2), (5, 20, 0, 1), (5, 10, 5, 1), (25, 50, 0, 1)]
    {
        let mut bench = bench(Bitrate::mbps(4));
        bench.play(mbps(25), ms(4_000));
        let other = Neighbour {
            weight: Weight::ONE,
            need: mbps(need),
            next: Some(mbps(next)),
        };
        let seen = View {
            others: &[other],
            sound: mbps(sound),
            ..view(&bench, DUE)
        };
        assert_eq!(ladder(2).pick(bench.now, &seen), expected, "{need}, {next}");
    }
}

/// On 4 Mbit/s, 1 is played beside 1, whose next rung is 2.5, as is the own one's. With equal weights, both need 2 · 2.5, and stay; with
/// weights 3 : 1 the heavy one has a part of 3 and takes 2.5, and the light one, a part of 1, stays at what is left. Beside 2.5 of a light
/// one the heavy one takes 2.5, too, as that is within its part.
#[test]
fn pick_shares_by_weight() {
    let mbps = |tenths: u64| Bitrate::kbps(100 * tenths);
    for (own, other, theirs, expected) in [
        (1, 1, 10, 1),
        (3, 1, 10, 2),
        (1, 3, 10, 1),
        (3, 1, 25, 2),
        (1, 1, 25, 1),
    ] {
        let mut bench = bench(Bitrate::mbps(4));
        bench.play(mbps(20), ms(4_000));
        let other = Neighbour {
            weight: Weight::new(other),
            need: mbps(theirs),
            next: Some(mbps(if theirs == 10 { 25 } else { 50 })),
        };
        let seen = View {
            others: &[other],
            weight: Weight::new(own),
            ..view(&bench, DUE)
        };
        let picked = ladder(1).pick(bench.now, &seen);
        assert_eq!(
            picked,
            expected,
            "{own} : {}, {theirs}",
            other.weight.parts()
        );
    }
}

#[test]
fn pick_climbs_two_rungs_at_a_time() {
    let mut bench = bench(Bitrate::mbps(20));
    let mut ladder = ladder(0);
    let mut rungs = Vec::new();
    for _ in 0..3 {
        bench.play(ladder.need(), GROUP);
        rungs.push(ladder.pick(bench.now, &view(&bench, DUE)));
    }
    assert_eq!(rungs, [2, 3, 3]);
}

/// A link that falls to a fifth: half a second later the rung is one that fits, and a group later the link carries it.
#[test]
fn pick_leaves_a_rung_that_needs_more_than_the_link_carries() {
    let mut bench = bench(Bitrate::mbps(4));
    let mut ladder = ladder(2);
    bench.play(NEEDS[2], ms(4_000));
    assert_eq!(ladder.pick(bench.now, &view(&bench, DUE)), 2);
    bench.link.rate = Bitrate::kbps(800);
    bench.play(NEEDS[2], ms(500));
    let rung = ladder.pick(bench.now, &view(&bench, DUE));
    assert!(rung < 2);
    for _ in 0..3 {
        bench.play(ladder.need(), GROUP);
        ladder.pick(bench.now, &view(&bench, DUE));
    }
    assert_eq!(ladder.current(), 0);
}

/// Within a target of 100 ms what is lost can be requested again after 20 ms, and not after 200 ms.
#[test]
fn little_may_be_lost_where_there_is_no_time_to_request_it_again() {
    let most = |delay| {
        let mut bench = Bench::new(Link::new(Bitrate::mbps(4), delay, 100));
        bench.uplink.set_target(ms(100));
        bench.play(Bitrate::mbps(1), ms(3_000));
        up::max_squeezed(bench.now, bench.uplink.path())
    };
    assert!((most(ms(10)) - up::SQUEEZED).abs() < 1e-9);
    assert!((most(ms(100)) - up::SQUEEZED_FOR_GOOD).abs() < 1e-9);
}

/// A rung of 4 Mbit/s fails on a link of as much, which then becomes one of 6 Mbit/s: all that holds the rung back is
/// that it has failed. It is barred for some 8 s, and for up to twice that the next time.
#[test]
fn a_rung_that_failed_is_barred_for_longer_each_time() {
    let needs = [1, 2, 4].map(Bitrate::mbps);
    let mut bench = bench(Bitrate::mbps(4));
    let mut ladder = Ladder::new(Instant::ZERO, Config::default(), &needs, 1).unwrap();
    let mut barred = Vec::new();
    for _ in 0..2 {
        bench.link.rate = Bitrate::mbps(4);
        bench.play(needs[1], ms(5_000));
        ladder.set_current(2);
        bench.play(Bitrate::kbps(4_200), ms(600));
        assert_eq!(ladder.pick(bench.now, &view(&bench, DUE)), 1);

        let failed_at = bench.now;
        bench.link.rate = Bitrate::mbps(6);
        while ladder.clone().pick(bench.now, &view(&bench, DUE)) < 2 {
            bench.play(needs[1], PERIOD);
            assert!(bench.now.since(failed_at) < ms(60_000));
        }
        barred.push(bench.now.since(failed_at).as_secs_f64());
    }
    assert!((6.3..=8.1).contains(&barred[0]), "{barred:?}");
    assert!((1.5..=2.1).contains(&(barred[1] / barred[0])), "{barred:?}");
}

/// On 4 Mbit/s, 0.5 s into a group of 1.5 s, on the rung of 2.5 Mbit/s and 0.6 s behind, where 0.08 s would be in time:
///
/// ```text
/// staying        (0.6 − 0.08) / (1 − 0.625)                 = 1.39 s > 1 s      nothing is in time
/// rung 1         group 1·1.5·(4.5 + 20)/64.5 = 0.57 Mbit, 0.142 s
///                1 − (0.142 − 0.04) / (1 − 0.25)            = 0.86 s in time
/// rung 0         half of that, 1 − (0.071 − 0.04) / 0.875   = 0.96 s, less than 0.15 s more
/// ```
///
/// And 1 s into a group of 2 s, of which 34.5/64.5 has to be fetched again: 0.267 s and 0.134 s, so that 0.70 s and 0.89 s
/// are in time, which is more than 0.15 s apart.
#[test]
fn react_catches_up_where_most_is_in_time() {
    let bench = quiet_path();
    for (times, rung) in [((500, 1_000), 1), ((1_000, 1_000), 0)] {
        let mut ladder = ladder(2);
        let reaction = ladder.react(bench.now, &behind(&bench, 0.6, times));
        assert_eq!(reaction, Some(Reaction::CatchUp(rung)));
        assert_eq!(ladder.current(), rung);
        assert!(!ladder.is_blank());
    }
}

/// On the rung of 1 Mbit/s, a quarter of the link, 0.2 s behind is made up in (0.2 − 0.08) / 0.75 = 0.16 s: of 1 s until
/// the next key sample, 0.84 s are in time. The lowest rung cannot show 0.25 s more than that.
#[test]
fn react_leaves_what_will_be_made_up() {
    let bench = quiet_path();
    let late = behind(&bench, 0.2, (500, 1_000));
    assert_eq!(ladder(1).react(bench.now, &late), None);
    // The lowest has nothing below it, and is not given up for what passes.
    assert_eq!(ladder(0).react(bench.now, &late), None);
}

/// 1 s into a group, 0.3 s before the next: of the lowest rung (4.5 + 46)/64.5 of 0.65 Mbit would take 0.127 s, and show
/// 0.2 s. Staying shows nothing where the lag is 0.3 s. Where it is less than one and a half targets, it is left alone.
#[test]
fn react_blanks_when_nothing_helps() {
    let bench = quiet_path();
    for (lag, reaction) in [(0.12, None), (0.3, Some(Reaction::Blank))] {
        let mut ladder = ladder(2);
        let late = behind(&bench, lag, (1_000, 300));
        assert_eq!(ladder.react(bench.now, &late), reaction);
        assert_eq!(ladder.is_blank(), reaction.is_some());
        assert_eq!(ladder.current(), 2);
        ladder.pick(bench.now, &behind(&bench, 0.0, (1_300, 0)));
        assert!(!ladder.is_blank());
    }
}

/// A machine that is busy has as little time for a lower rung, and none is shown sooner by waiting for the next key sample.
#[test]
fn react_does_not_blank_for_a_busy_machine() {
    let mut bench = quiet_path();
    let late = |bench: &Bench| ladder(0).react(bench.now, &behind(bench, 0.3, (1_000, 300)));
    assert_eq!(late(&bench), Some(Reaction::Blank));
    bench.uplink.set_wake_delay(ms(20));
    assert_eq!(late(&bench), Some(Reaction::Blank));
    bench.uplink.set_wake_delay(ms(21));
    assert_eq!(late(&bench), None);
}

/// What takes no frame twice cannot catch up, and goes blank once the lag is more than one and a half targets.
#[test]
fn what_cannot_catch_up_goes_blank() {
    let bench = quiet_path();
    let config = Config {
        catches_up: false,
        ..Config::default()
    };
    let mut ladder = Ladder::new(Instant::ZERO, config, &NEEDS, 2).unwrap();
    let late = behind(&bench, 0.6, (500, 1_000));
    assert_eq!(ladder.react(bench.now, &late), Some(Reaction::Blank));
}

/// 0.1 s into a group of 2 s with 7.5/64.5 of it to fetch: rung 2 would need 0.58 Mbit, 0.145 s / 0.375 = 0.39 s, which is
/// more than 0.35 s. Rung 1 needs 0.058 s / 0.75 = 0.08 s. Reactions are 120 ms apart.
#[test]
fn what_is_blank_goes_on_where_that_is_soon() {
    let mut bench = quiet_path();
    let mut ladder = ladder(2);
    let late = behind(&bench, 0.3, (1_000, 300));
    assert_eq!(ladder.react(bench.now, &late), Some(Reaction::Blank));

    bench.play(Bitrate::mbps(1), ms(80));
    let early = behind(&bench, 0.0, (100, 1_900));
    assert_eq!(ladder.react(bench.now, &early), None);
    bench.play(Bitrate::mbps(1), ms(40));
    let early = behind(&bench, 0.0, (100, 1_900));
    assert_eq!(ladder.react(bench.now, &early), Some(Reaction::CatchUp(1)));
    assert!(!ladder.is_blank());
}

/// A link that seems free whenever nothing is fetched, and is not as soon as something is: within a group of 2 s it is tried
/// after 0.12 s, after 0.48 s and after that no more, as 1.92 s would be too late; and in the next group again.
#[test]
fn what_is_blank_again_at_once_is_tried_less_and_less() {
    let mut bench = quiet_path();
    let mut ladder = ladder(0);
    for _ in 0..2 {
        let mut tried = 0;
        for since_key in (0..2_000).step_by(20) {
            bench.play(Bitrate::mbps(1), ms(20));
            let was_blank = ladder.is_blank();
            let lag = if was_blank { 0.0 } else { 2.5 };
            let view = behind(&bench, lag, (since_key, 2_000 - since_key));
            let reaction = ladder.react(bench.now, &view);
            tried += u32::from(was_blank && reaction.is_some());
        }
        assert_eq!(tried, 2);
        ladder.pick(bench.now, &behind(&bench, 0.0, (2_000, 0)));
    }
}

/// Every third group is fetched whole: without any picture nothing would show whether the path carries one again.
#[test]
fn not_all_groups_in_a_row_are_blank() {
    let mut bench = quiet_path();
    let mut ladder = ladder(0);
    let mut blank = Vec::new();
    for _ in 0..6 {
        bench.play(Bitrate::mbps(1), ms(200));
        ladder.react(bench.now, &behind(&bench, 2.5, (1_000, 300)));
        blank.push(ladder.is_blank());
        ladder.pick(bench.now, &behind(&bench, 2.5, (1_300, 0)));
    }
    assert_eq!(blank, [true, true, false, true, true, false]);
}

/// Under the rung of 2.5 Mbit/s the link falls from 4 Mbit/s to 1.2: the lag is half a target to one and a half when a
/// lower rung is fetched instead, and small again a second after.
#[test]
fn react_follows_a_link_that_falls() {
    let mut bench = bench(Bitrate::mbps(4));
    let mut ladder = ladder(2);
    bench.play(NEEDS[2], ms(4_000));
    bench.link.rate = Bitrate::kbps(1_200);
    let fell_at = bench.now;
    let reaction = loop {
        bench.play(NEEDS[2], ms(10));
        let view = view(&bench, bench.now.since(fell_at));
        let lag = ladder.lag(&view);
        if let Some(reaction) = ladder.react(bench.now, &view) {
            assert!((0.03..0.15).contains(&lag), "{lag}");
            break reaction;
        }
    };
    let took = bench.now.since(fell_at);
    assert!((ms(50)..=ms(300)).contains(&took), "{took:?}");
    assert!(matches!(reaction, Reaction::CatchUp(0 | 1)), "{reaction:?}");
    // Nothing more of the rung before is requested.
    bench.uplink.withdraw(&crate::path::ClientId(1).tokens());
    bench.play(ladder.need(), ms(1_000));
    let lag = ladder.lag(&view(&bench, ms(1_500)));
    assert!(lag < 0.1, "{lag}");
}

/// A link that is dead for 2 s, with 0.6 s to request: the lag grows, but nothing says what would help.
///
/// What comes after such a pause says nothing for another 80 ms.
#[test]
fn nothing_is_decided_while_nothing_arrives() {
    let mut bench = quiet_path();
    let mut ladder = ladder(2);
    let late = behind(&bench, 0.6, (500, 1_000));
    assert!(ladder.clone().react(bench.now, &late).is_some());
    bench.link.rate = Bitrate::bps(1_000);
    bench.play(Bitrate::mbps(1), ms(100));
    for _ in 0..100 {
        bench.play(Bitrate::mbps(1), ms(20));
        let late = behind(&bench, 0.6, (500, 1_000));
        assert_eq!(ladder.react(bench.now, &late), None);
        assert!(ladder.clone().pick(bench.now, &late) <= 2);
    }
}

#[test]
fn what_comes_after_a_pause_says_nothing_yet() {
    let mut bench = quiet_path();
    let mut ladder = ladder(2);
    bench.run_for(ms(500));
    let paused_at = bench.now;
    let mut reacted_at = None;
    while reacted_at.is_none() {
        bench.play(Bitrate::mbps(1), ms(5));
        let late = behind(&bench, 0.6, (500, 1_000));
        if ladder.react(bench.now, &late).is_some() {
            reacted_at = Some(bench.now);
        }
        assert!(bench.now.since(paused_at) < ms(1_000));
    }
    let resumed_at = bench.uplink.path().resumed_at();
    let after = reacted_at
        .zip(resumed_at)
        .map(|(at, since)| at.since(since));
    assert!(resumed_at > Some(paused_at));
    assert!((Some(ms(80))..Some(ms(86))).contains(&after), "{after:?}");
}

/// One probe: when it began, counted from the key sample before, and how long it was.
#[derive(Clone, Copy, Debug)]
struct Tried {
    probe: Probe,
    began: Duration,
    took: Duration,
}

/// Plays the first of three rungs, a packet a sample and no burst that shows the link's rate, and what is tried beside it.
fn probes(link: Bitrate, groups: u32) -> (Vec<Tried>, Vec<usize>) {
    let needs = [216, 1_000, 2_500].map(Bitrate::kbps);
    let mut bench = bench(link);
    let mut ladder = Ladder::new(Instant::ZERO, Config::default(), &needs, 0).unwrap();
    let (mut tried, mut picks): (Vec<Tried>, _) = (Vec::new(), Vec::new());
    for _ in 0..groups {
        for step in 0..50 {
            let since_key = PERIOD * step;
            let probe = ladder.probe(bench.now, &view(&bench, since_key));
            let beside = probe.map_or(0, |probe| probe.rate.as_bps());
            if let Some(probe) = probe {
                let took = bench.now.since(probe.since) + PERIOD;
                match tried.last_mut().filter(|last| last.probe == probe) {
                    Some(last) => last.took = took,
                    None => tried.push(Tried {
                        probe,
                        began: since_key,
                        took,
                    }),
                }
            }
            bench.play(Bitrate::bps(ladder.need().as_bps() + beside), PERIOD);
        }
        picks.push(ladder.pick(bench.now, &view(&bench, DUE)));
    }
    (tried, picks)
}

/// The rung above needs 1 Mbit/s, with a tenth to spare 1.1: beside what is played, that is 1.1 − 0.216 = 0.884 Mbit/s, for
/// half a second that is over when the key sample is requested. On 4 Mbit/s it is enough to climb by.
#[test]
fn a_probe_adds_what_the_rung_above_does() {
    let (tried, picks) = probes(Bitrate::mbps(4), 2);
    assert_eq!(tried.len(), 1, "{tried:?}");
    let Tried { probe, began, took } = tried[0];
    assert_eq!(probe.rung, 1);
    assert_eq!(probe.rate, Bitrate::kbps(884));
    assert!((ms(1_250)..=ms(1_450)).contains(&began), "{began:?}");
    assert!((ms(500)..=ms(540)).contains(&took), "{took:?}");
    assert!(picks[0] >= 1);
}

/// On 900 kbit/s a queue grows, and the probe ends before its time. The next one is 4 · 1.7 = 6.8 s away, and the one after
/// that 1.7 times as long: of groups 2 s long, it is those numbered 0, 4 and 10.
#[test]
fn a_probe_ends_when_a_queue_grows() {
    for kbps in [600, 900] {
        let (tried, picks) = probes(Bitrate::kbps(kbps), 12);
        assert!(tried.iter().all(|it| it.took <= ms(400)), "{tried:?}");
        assert!(tried.iter().all(|it| it.took >= ms(80)), "{tried:?}");
        let group = |it: &Tried| it.probe.since.as_nanos() / 2_000_000_000;
        let groups: Vec<_> = tried.iter().map(group).collect();
        assert_eq!(groups, [0, 4, 10]);
        assert_eq!(picks, [0; 12]);
    }
}

/// Where bursts show that the rung above fits, or that it does not, nothing is tried.
#[test]
fn what_is_known_is_not_probed() {
    for (kbps, rung) in [(4_000, 1), (4_000, 2), (20_000, 1)] {
        let mut bench = bench(Bitrate::kbps(kbps));
        let mut ladder = ladder(rung);
        bench.play(NEEDS[rung], ms(4_000));
        for since_key in (0..2_000).step_by(40) {
            bench.play(NEEDS[rung], PERIOD);
            let probe = ladder.probe(bench.now, &view(&bench, ms(since_key)));
            assert_eq!(probe, None, "{kbps} kbit/s");
        }
    }
}
