//! Paths that are discovered, shared and lost.

use std::collections::BTreeMap;

use core::time::Duration;

use namecast_units::{ByteSize, Instant};

use super::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn config(control: &str) -> NumberedConfig {
    NumberedConfig {
        control: control.parse().unwrap(),
        ..NumberedConfig::default()
    }
}

fn requests(paths: &mut NumberedPaths) -> Vec<(u64, PathChoice)> {
    let requests = core::iter::from_fn(|| paths.poll_request());
    requests.map(|it| (it.number, it.path)).collect()
}

fn numbers(paths: &mut NumberedPaths) -> Vec<u64> {
    requests(paths).into_iter().map(|it| it.0).collect()
}

fn label(hop: u8) -> PathLabel {
    PathLabel::EMPTY.behind([0, 0, hop]).expect("room for one")
}

fn received(label: Option<PathLabel>) -> Received {
    let mut received = Received::new(ByteSize::bytes(1_000), false);
    received.feedback.label = label;
    received
}

fn answer(paths: &mut NumberedPaths, millis: u64, number: u64) {
    let answer = paths.handle_data(at(millis), number, &received(None));
    assert!(answer.is_ok(), "{number}: {answer:?}");
}

#[test]
fn a_segment_begins_when_the_one_before_is_complete() {
    let mut paths = NumberedPaths::new(NumberedConfig {
        segment: Some(4),
        count: Some(6),
        ..config("window:3")
    });
    paths.start(at(0));
    assert_eq!(numbers(&mut paths), [0, 1, 2]);
    for number in [0, 1, 3] {
        // 3 was not requested before 0 came.
        answer(&mut paths, 10, number);
    }
    // What 3 overtook is lost, and requested again.
    assert_eq!(numbers(&mut paths), [3, 2]);
    let progress = SegmentProgress {
        index: 0,
        missing: 1,
    };
    assert_eq!(paths.progress(), progress);
    answer(&mut paths, 20, 2);
    assert_eq!(numbers(&mut paths), [4, 5]);
    assert_eq!(paths.progress().index, 1);
    answer(&mut paths, 30, 4);
    assert!(!paths.is_done());
    answer(&mut paths, 30, 5);
    assert!(paths.is_done());
}

/// Paths `a` and `b`, which are discovered by 2 Interests each; both have a window of 2 from then on.
fn discovered() -> NumberedPaths {
    let mut paths = NumberedPaths::new(NumberedConfig {
        max_paths: 4,
        discoveries: 4,
        ..config("window:2")
    });
    paths.start(at(0));
    let discovery = |number| (number, PathChoice::Discover);
    assert_eq!(requests(&mut paths), [0, 1, 2, 3].map(discovery));
    for number in 0..4 {
        let hop = if number % 2 == 0 { 1 } else { 2 };
        let came = paths.handle_data(at(50), number, &received(Some(label(hop))));
        assert!(came.is_ok());
    }
    assert_eq!(paths.paths(), 2);
    paths
}

#[test]
fn each_path_that_is_found_requests_numbers_of_its_own() {
    let mut paths = discovered();
    let (a, b) = (PathChoice::Along(label(1)), PathChoice::Along(label(2)));
    assert_eq!(requests(&mut paths), [(4, a), (5, a), (6, b), (7, b)]);
    // Whichever has room gets the next, and what is lost stays on its path.
    answer(&mut paths, 60, 6);
    answer(&mut paths, 70, 5);
    assert_eq!(requests(&mut paths), [(8, b), (4, a), (9, a)]);
    assert_eq!(paths.window(), Some(4));
    let counters = paths.counters();
    assert_eq!(
        (counters.interests, counters.retransmissions, counters.gaps),
        (11, 1, 1)
    );
}

/// Everything comes once, in whatever order, and is requested once.
#[test]
fn no_number_is_requested_twice_or_left_out() {
    let mut paths = discovered();
    let mut seen = BTreeMap::new();
    for step in 0..200 {
        for number in numbers(&mut paths) {
            *seen.entry(number).or_insert(0) += 1;
        }
        let mut out = seen.keys().copied().filter(|number| seen[number] == 1);
        let next = out.nth(usize::from(step % 3 == 0));
        let Some(next) = next.or_else(|| seen.keys().copied().find(|it| seen[it] == 1)) else {
            break;
        };
        if paths
            .handle_data(at(60 + step), next, &received(None))
            .is_ok()
        {
            seen.insert(next, 100);
        }
    }
    let expected: Vec<_> = (4..4 + seen.len() as u64).collect();
    assert_eq!(seen.into_keys().collect::<Vec<_>>(), expected);
}

/// Path `b` answers nothing any more: after eight timeouts its numbers are requested on `a`.
#[test]
fn a_dead_path_leaves_its_numbers_to_the_others() {
    let mut paths = discovered();
    assert_eq!(numbers(&mut paths), [4, 5, 6, 7]);
    let mut millis = 60;
    let mut moved = Vec::new();
    while paths.paths() == 2 && millis < 100_000 {
        for (number, path) in requests(&mut paths) {
            if path == PathChoice::Along(label(1)) {
                let _ = paths.handle_data(at(millis), number, &received(None));
            }
        }
        paths.handle_timeout(at(millis));
        millis += 50;
    }
    assert_eq!(paths.paths(), 1);
    for turn in 0..10 {
        for (number, path) in requests(&mut paths) {
            // What left before it was given up may be on the dead path.
            if turn == 0 && path != PathChoice::Along(label(1)) {
                continue;
            }
            assert_eq!(path, PathChoice::Along(label(1)));
            moved.push(number);
            let _ = paths.handle_data(at(millis), number, &received(None));
        }
        millis += 50;
        paths.handle_timeout(at(millis));
    }
    assert!(moved.contains(&6) && moved.contains(&7), "{moved:?}");
}

#[test]
fn where_nobody_knows_labels_there_is_one_path() {
    let mut paths = NumberedPaths::new(NumberedConfig {
        max_paths: 4,
        discoveries: 2,
        ..config("window:3")
    });
    paths.start(at(0));
    assert_eq!(requests(&mut paths).len(), 2);
    answer(&mut paths, 50, 0);
    let any = |number| (number, PathChoice::Any);
    assert_eq!(requests(&mut paths), [2, 3, 4].map(any));
    answer(&mut paths, 51, 1);
    assert_eq!(paths.paths(), 1);
}
