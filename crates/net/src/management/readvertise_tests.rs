use super::*;
use namecast_units::{Duration, Random};

const CONFIG: ReadvertiseConfig = ReadvertiseConfig {
    refresh: Duration::from_secs(300),
    backoff: (Duration::from_secs(1), Duration::from_secs(4)),
};
const FACE: FaceId = FaceId::from_number(300);
const OTHER: FaceId = FaceId::from_number(301);

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn command(prefix: &str, cost: Option<u64>) -> Option<Command> {
    let prefix = name(prefix);
    Some(Command { prefix, cost })
}

/// One with a daemon, and room for two prefixes.
fn with_daemon() -> Readvertise {
    let mut state = Readvertise::new(CONFIG, 2);
    state.set_daemon(Instant::ZERO, BTreeSet::from([FACE]));
    state
}

/// Sends what is due, has it carried out or not, and tells what it was.
fn exchange(state: &mut Readvertise, now: Instant, is_done: bool) -> Option<Command> {
    let command = state.next(now)?;
    assert_eq!(state.next(now), None, "one at a time");
    state.answered(now, &command, is_done);
    Some(command)
}

#[test]
fn nothing_is_said_before_there_is_a_daemon_and_all_is_when_it_comes() {
    let mut state = Readvertise::new(CONFIG, 2);
    state.want(at(0), &name("/b"), Some(1));
    state.want(at(0), &name("/a"), Some(7));
    assert_eq!((state.next(at(9)), state.poll_timeout()), (None, None));
    state.set_daemon(at(9), BTreeSet::from([FACE]));
    assert_eq!(state.poll_timeout(), Some(at(9)));
    assert_eq!(exchange(&mut state, at(9), true), command("/a", Some(7)));
    assert_eq!(exchange(&mut state, at(9), true), command("/b", Some(1)));
    assert_eq!(state.next(at(9)), None);
    let expected = ReadvertisingStatus {
        daemons: 1,
        prefixes: 2,
        told: 2,
        registered: 2,
        unregistered: 0,
        failed: 0,
    };
    assert_eq!(state.status(), expected);
}

/// Pauses of 1, 2, 4 and again 4 s, the longest; then the refresh of 300 s, and short pauses again.
#[test]
fn what_is_not_answered_is_said_again_ever_more_rarely() {
    let mut state = with_daemon();
    state.want(at(0), &name("/a"), Some(0));
    for (sent, next) in [(0, 1), (1, 3), (3, 7), (7, 11)] {
        assert!(exchange(&mut state, at(sent), false).is_some(), "{sent} s");
        assert_eq!(state.poll_timeout(), Some(at(next)));
        assert_eq!(state.next(at(next - 1)), None);
    }
    assert!(exchange(&mut state, at(11), true).is_some());
    assert_eq!(state.poll_timeout(), Some(at(311)));
    assert!(exchange(&mut state, at(311), false).is_some());
    assert_eq!(state.poll_timeout(), Some(at(312)));
    assert_eq!((state.failed, state.registered), (5, 1));
    assert_eq!(state.status().told, 1, "it has agreed before");
}

#[test]
fn a_route_that_ends_is_taken_back_until_the_daemon_agrees() {
    let mut state = with_daemon();
    state.want(at(0), &name("/a"), Some(0));
    exchange(&mut state, at(0), true);
    state.want(at(1), &name("/a"), None);
    assert_eq!(exchange(&mut state, at(1), false), command("/a", None));
    assert_eq!((state.status().prefixes, state.prefixes.len()), (0, 1));
    assert_eq!(exchange(&mut state, at(2), true), command("/a", None));
    assert!(state.prefixes.is_empty() && state.due.is_empty());
    // What was never said need not be taken back.
    state.want(at(3), &name("/b"), Some(0));
    state.want(at(3), &name("/b"), None);
    assert_eq!((state.next(at(3)), state.prefixes.len()), (None, 0));
}

/// The daemon got the first cost, and the answer comes after the route has ended, or has another cost.
#[test]
fn a_change_while_a_command_is_under_way_is_said_after_it() {
    for (changed, is_done) in [
        (None, true),
        (None, false),
        (Some(9), true),
        (Some(9), false),
    ] {
        let mut state = with_daemon();
        state.want(at(0), &name("/a"), Some(1));
        let first = state.next(at(0)).unwrap();
        state.want(at(0), &name("/a"), changed);
        assert_eq!(state.next(at(0)), None);
        state.answered(at(0), &first, is_done);
        assert_eq!(state.status().told, 0);
        assert_eq!(exchange(&mut state, at(1), true), command("/a", changed));
        assert_eq!(state.status().told, changed.map_or(0, |_| 1));
    }
}

/// It comes back with another face, perhaps before the old one has ended; one of two that goes changes nothing.
#[test]
fn a_daemon_that_comes_back_is_told_all_again() {
    let mut state = with_daemon();
    for prefix in ["/a", "/b"] {
        state.want(at(0), &name(prefix), Some(0));
        exchange(&mut state, at(0), true);
    }
    state.want(at(1), &name("/a"), None);
    let late = state.next(at(1)).unwrap();
    state.set_daemon(at(2), BTreeSet::new());
    assert_eq!((state.poll_timeout(), state.status().told), (None, 0));
    state.set_daemon(at(3), BTreeSet::from([OTHER]));
    // The answer of the one that went says nothing of the new one, which never knew /a.
    state.answered(at(3), &late, true);
    assert_eq!(state.unregistered, 0);
    assert_eq!(exchange(&mut state, at(3), true), command("/b", Some(0)));
    state.set_daemon(at(4), BTreeSet::from([FACE, OTHER]));
    assert_eq!(exchange(&mut state, at(4), true), command("/b", Some(0)));
    state.set_daemon(at(5), BTreeSet::from([FACE]));
    assert_eq!((state.next(at(5)), state.status().told), (None, 1));
}

#[test]
fn no_more_is_kept_than_there_is_room_for() {
    let mut state = with_daemon();
    for prefix in ["/a", "/b", "/c"] {
        state.want(at(0), &name(prefix), Some(0));
    }
    assert_eq!((state.prefixes.len(), state.failed), (2, 1));
    state.want(at(0), &name("/d"), None);
    assert_eq!((state.prefixes.len(), state.failed), (2, 1));
}

/// Routes come, change and go; commands are lost on their way there or their answers on the way back; the daemon
/// restarts. Once all that ends, the daemon knows what it should, and nothing else.
#[test]
fn a_daemon_comes_to_know_what_is_registered_whatever_is_lost() {
    for seed in 0..200 {
        let mut random = Random::from_seed(seed);
        let mut state = Readvertise::new(CONFIG, 100);
        let mut wanted: BTreeMap<Name, u64> = BTreeMap::new();
        let mut known: BTreeMap<Name, u64> = BTreeMap::new();
        let mut faces = 300;
        let mut now = Instant::ZERO;
        for step in 0..400 {
            let is_calm = step >= 200;
            now += Duration::from_millis(500);
            match random.below(10) {
                _ if is_calm => {}
                0 => {
                    state.set_daemon(now, BTreeSet::new());
                    known.clear();
                }
                1 => {
                    faces += 1;
                    known.clear();
                    state.set_daemon(now, BTreeSet::from([FaceId::from_number(faces)]));
                }
                2..6 => {
                    let prefix = name(&format!("/{}", random.below(8)));
                    let cost = (random.below(2) == 0).then(|| random.below(3));
                    state.want(now, &prefix, cost);
                    match cost {
                        Some(cost) => wanted.insert(prefix, cost),
                        None => wanted.remove(&prefix),
                    };
                }
                _ => {}
            }
            if step == 200 {
                known.clear();
                state.set_daemon(now, BTreeSet::from([OTHER]));
            }
            while let Some(sent) = state.next(now) {
                let (arrives, is_done) = match random.below(4) {
                    _ if is_calm => (true, true),
                    0 => (false, false),
                    1 => (true, false),
                    _ => (true, true),
                };
                match sent.cost.filter(|_| arrives) {
                    Some(cost) => known.insert(sent.prefix.clone(), cost),
                    None if arrives => known.remove(&sent.prefix),
                    None => None,
                };
                state.answered(now, &sent, is_done);
            }
            let scheduled: BTreeSet<_> = state
                .prefixes
                .iter()
                .filter_map(|(prefix, entry)| Some((entry.due?, prefix.clone())))
                .collect();
            assert_eq!(state.due, scheduled, "seed {seed}");
        }
        assert_eq!(known, wanted, "seed {seed}");
        assert_eq!(state.status().told, wanted.len() as u64, "seed {seed}");
    }
}
