//! How a watcher found the live edge of its video, and how long before their samples its Interests leave.

use core::time::Duration;

use namecast_stream::consumer::synchroniser::{Bootstrap, Observation, State};
use namecast_stream::{SampleClass, StreamKind};
use namecast_units::Instant;

use super::super::Series;
use crate::live::Shown;

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// First segments of delta frames: key frames are asked for an interval ahead, so their DRD′ tells nothing.
fn of_deltas<'a>(watcher: Shown<'a>) -> impl Iterator<Item = &'a Observation> {
    let all = watcher.observations().iter();
    all.filter(|seen| seen.class == SampleClass::Delta)
}

/// Metrics of the start, and of what came from `start` until `end`. What is not over is missing.
pub(super) fn values(watcher: Shown<'_>, start: Instant, end: Instant) -> Vec<(&'static str, f64)> {
    let live = watcher.watch();
    let consumer = live.and_then(|live| live.consumer(StreamKind::Video));
    let synchroniser = consumer.map(|consumer| consumer.schedule().synchroniser());
    let states = [State::Adjusting, State::Fetching, State::Challenge];
    let from = |first: usize, time: fn(&Bootstrap) -> Duration| {
        let known = synchroniser.filter(|it| states[first..].contains(&it.state()));
        known.map_or(f64::NAN, |it| millis(time(it.bootstrap())))
    };
    let values: Vec<f64> = of_deltas(watcher)
        .filter(|seen| (start..=end).contains(&seen.at))
        .map(|seen| millis(seen.drd))
        .collect();
    vec![
        ("chasing", from(0, |start| start.chasing)),
        ("adjusting", from(1, |start| start.adjusting)),
        ("back-off", from(1, |start| start.backoff)),
        ("response", values.iter().sum::<f64>() / values.len() as f64),
        (
            "response-max",
            values.iter().copied().fold(f64::NAN, f64::max),
        ),
    ]
}

/// D_arr of all frames, DRD′ of delta frames and λ, from frame to frame.
pub(super) fn series(watcher: Shown<'_>, number: usize) -> [Series; 3] {
    let curve = |name: &str, unit: &str, points: Vec<(f64, f64)>| Series {
        name: format!("{name}-{number}"),
        unit: unit.to_owned(),
        points,
    };
    let at = |seen: &Observation| seen.at.since(Instant::ZERO).as_secs_f64();
    let all = || watcher.observations().iter();
    let gaps = all().filter_map(|seen| Some((at(seen), millis(seen.gap?))));
    let responses = of_deltas(watcher).map(|seen| (at(seen), millis(seen.drd)));
    let leads = all().map(|seen| (at(seen), seen.lead as f64));
    [
        curve("gap", "ms", gaps.collect()),
        curve("response", "ms", responses.collect()),
        curve("pipeline", "frames", leads.collect()),
    ]
}
