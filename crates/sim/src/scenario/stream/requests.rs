//! How many Interests a watcher sent, relative to what it needed and to what the path carries.

use namecast_units::{Bitrate, ByteSize, Duration, Instant};

use super::observed::Viewing;
use crate::live::{Media, MediaRung, Requests};

/// Slots of ten seconds, and of one.
const LONG: usize = 100;
const SHORT: usize = 10;
/// Most Interests in ten seconds, or in the window if that is shorter: so many per segment needed, and so many more a slot.
const PER_SEGMENT: f64 = 1.5;
const MORE: f64 = 5.0;
/// Most in a second: so many per segment that the path carries in a second, and [`MORE`].
const PER_CARRIED: f64 = 1.25;
/// A segment on the wire.
const SEGMENT: ByteSize = ByteSize::bytes(1_080);

/// What a watcher took the path to carry, by time.
pub(super) type Capacity = Vec<(Duration, Option<Bitrate>)>;

/// Metrics of a watcher's Interests between two times.
pub(super) fn values(
    viewing: &Viewing<'_>,
    capacity: &Capacity,
    (from, until): (Duration, Duration),
) -> Vec<(&'static str, f64)> {
    let Some(watcher) = viewing.simulated else {
        return Vec::new();
    };
    let slot = |at: Duration| (at.as_nanos() / Requests::SLOT.as_nanos()) as usize;
    let (first, end) = (slot(from), slot(until));
    let sent = |slot: usize| f64::from(*watcher.requests().slots().get(slot).unwrap_or(&0));
    let needed = needed(viewing, end);
    let carried: Vec<f64> = (0..end)
        .map(|number| carried(capacity, Requests::SLOT * number as u32))
        .collect();
    let windows = |length: usize| {
        let length = length.min(end - first.min(end)).max(1);
        (first..(end + 1).saturating_sub(length)).map(move |at| at..at + length)
    };
    let sum = |slots: core::ops::Range<usize>| slots.map(sent).sum::<f64>();
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NAN, f64::max);
    let need = |slots: core::ops::Range<usize>| needed[slots].iter().sum::<f64>();
    vec![
        (
            "interest-ratio",
            most(&mut windows(LONG).map(|slots| sum(slots.clone()) / need(slots))),
        ),
        (
            "interest-load",
            most(&mut windows(LONG).map(|slots| {
                let more = MORE * slots.len() as f64;
                sum(slots.clone()) / (PER_SEGMENT * need(slots) + more)
            })),
        ),
        ("interests-peak", most(&mut windows(SHORT).map(sum))),
        (
            "interest-peak-load",
            most(&mut windows(SHORT).map(|slots| {
                let carried = carried[slots.clone()].iter().copied().fold(0.0, f64::max);
                sum(slots) / (PER_CARRIED * carried + MORE * SHORT as f64)
            })),
        ),
        (
            "interests-per-segment",
            f64::from(watcher.requests().max_per_segment()),
        ),
    ]
}

/// Segments a second by the newest value at or before `at`; infinite while it is unknown.
fn carried(capacity: &Capacity, at: Duration) -> f64 {
    let known = capacity.partition_point(|(time, _)| *time <= at);
    let newest = known.checked_sub(1).and_then(|place| capacity[place].1);
    newest.map_or(f64::INFINITY, |rate| {
        rate.as_bps() as f64 / SEGMENT.as_bits() as f64
    })
}

/// Segments of what was published in each slot, at the rungs that the watcher received: of a frame that it did not, at the rung
/// before.
fn needed(viewing: &Viewing<'_>, slots: usize) -> Vec<f64> {
    let mut needed = vec![0.0; slots];
    let all = [Some(&viewing.media), viewing.sound.as_ref()];
    for media in all.into_iter().flatten() {
        add_needed(viewing, media, &mut needed);
    }
    needed
}

fn add_needed(viewing: &Viewing<'_>, media: &Media, needed: &mut [f64]) {
    let records = viewing.records.iter();
    let mut received: Vec<(u64, &str)> = records
        .filter(|record| record.stream == media.kind)
        .map(|record| (record.position, &*record.rung))
        .collect();
    received.sort_unstable();
    received.dedup();
    let mut received = received.into_iter().peekable();
    let find = |name: &str| media.rungs.iter().find(|rung| rung.name == name);
    let lowest = media.rungs.iter().min_by_key(|rung| rung.bitrate);
    let mut current = received.peek().and_then(|(_, name)| find(name)).or(lowest);
    let segments = |rung: &MediaRung, position: u64| {
        let size = media.size(rung, position) as u64;
        size.div_ceil(u64::from(media.segment_size)) as f64
    };
    for position in 0.. {
        let at = (viewing.origin + media.captured_after(position)).since(Instant::ZERO);
        let slot = (at.as_nanos() / Requests::SLOT.as_nanos()) as usize;
        let Some(needed) = needed.get_mut(slot) else {
            return;
        };
        let mut is_received = false;
        while let Some((_, name)) = received.next_if(|(known, _)| *known <= position) {
            current = find(name).or(current);
            is_received = true;
            *needed += current.map_or(0.0, |rung| segments(rung, position));
        }
        if !is_received {
            *needed += current.map_or(0.0, |rung| segments(rung, position));
        }
    }
}
