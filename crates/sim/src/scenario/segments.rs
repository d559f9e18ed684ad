//! What is read off flows that fetch in segments, and off the queues that their Data pass.

use namecast_apps::sequence::{Fetcher, Segment};
use namecast_netem as netem;
use namecast_units::{Bitrate, Duration, Instant};

use super::Series;
use super::place::Direction;
use crate::network::Network;
use crate::topology::Topology;

/// Time between two looks at queues.
const STEP: Duration = Duration::from_millis(10);
/// Time after a switch in which the longest queue is its own.
const AFTER_SWITCH: Duration = Duration::from_secs(2);
/// Looks for a point of a curve.
const LOOKS: usize = 10;

/// Looks at links while a network runs.
pub(super) struct LinkWatch {
    /// With their rates at the start.
    links: Vec<(Direction, Option<Bitrate>)>,
    looks: Vec<Look>,
}

/// All links at one time.
struct Look {
    at: Instant,
    links: Vec<(netem::Counters, Duration)>,
}

impl LinkWatch {
    /// Watches the directions of those names.
    pub(super) fn new(links: &[String], topology: &Topology) -> Result<Self, String> {
        let links = links.iter().map(|link| {
            let direction = Direction::parse(link, topology)?;
            let rate = direction.config(topology).rate.as_ref();
            Ok((direction, rate.and_then(netem::Rate::mean)))
        });
        Ok(Self {
            links: links.collect::<Result<_, String>>()?,
            looks: Vec::new(),
        })
    }

    /// Lets `network` run.
    pub(super) fn run_until(&mut self, network: &mut Network, end: Instant) {
        while !self.links.is_empty() && network.now() < end {
            let next = (network.now() + STEP).min(end);
            network.run_until(next);
            self.look(network);
        }
        network.run_until(end);
    }

    fn look(&mut self, network: &Network) {
        let links = self.links.iter().map(|&(at, rate)| {
            let direction = network.direction(at.link, at.from_second);
            let octets = network.queued_in_node(at.link, at.from_second);
            let in_node = rate.map_or(Duration::ZERO, |rate| octets / rate);
            (*direction.counters(), direction.queue_delay() + in_node)
        });
        self.looks.push(Look {
            at: network.now(),
            links: links.collect(),
        });
    }

    fn looks(&self, (from, until): (Instant, Instant)) -> &[Look] {
        let start = self.looks.partition_point(|look| look.at < from);
        let end = self.looks.partition_point(|look| look.at <= until);
        self.looks.get(start..end).unwrap_or_default()
    }

    /// Frames and the sum of their waits, in milliseconds, of one link.
    fn waits(&self, link: usize, during: (Instant, Instant)) -> (f64, f64) {
        let pairs = self.looks(during).windows(2).map(|pair| {
            let frames = pair[1].links[link].0.delivered - pair[0].links[link].0.delivered;
            let wait = pair[1].links[link].1.as_secs_f64() * 1e3;
            (frames as f64, frames as f64 * wait)
        });
        pairs.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1))
    }

    /// Returns the mean wait of all frames on all links, in milliseconds.
    fn mean_wait(&self, during: (Instant, Instant)) -> f64 {
        let waits = (0..self.links.len()).map(|link| self.waits(link, during));
        let (frames, sum) = waits.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        sum / frames
    }

    /// Returns the longest wait at a link, in milliseconds.
    fn max_wait(&self, link: usize, during: (Instant, Instant)) -> f64 {
        let waits = self.looks(during).iter().map(|look| look.links[link].1);
        waits.max().unwrap_or_default().as_secs_f64() * 1e3
    }

    /// Returns the metrics of each link.
    pub(super) fn metrics(&self, during: (Instant, Instant)) -> Vec<(String, f64)> {
        let looks = self.looks(during);
        let (Some(first), Some(last)) = (looks.first(), looks.last()) else {
            return Vec::new();
        };
        let seconds = last.at.since(first.at).as_secs_f64();
        let mut metrics = vec![("links-queue-delay".to_owned(), self.mean_wait(during))];
        for link in 0..self.links.len() {
            let (before, after) = (&first.links[link].0, &last.links[link].0);
            let bits = (after.delivered_size - before.delivered_size).as_bits() as f64;
            let (frames, sum) = self.waits(link, during);
            let drops = |counters: &netem::Counters| counters.queue_full + counters.active_queue;
            let values = [
                ("rate", bits / seconds / 1e6),
                ("queue-delay", sum / frames),
                ("queue-max", self.max_wait(link, during)),
                ("drops", (drops(after) - drops(before)) as f64),
            ];
            let named = values.map(|(name, value)| (format!("link-{}-{name}", link + 1), value));
            metrics.extend(named);
        }
        metrics
    }

    /// Returns the rate and the queue of each link over time.
    pub(super) fn series(&self) -> Vec<Series> {
        let mut series = Vec::new();
        let seconds = |look: &Look| look.at.since(Instant::ZERO).as_secs_f64();
        for link in 0..self.links.len() {
            let steps = self.looks.windows(LOOKS + 1).step_by(LOOKS);
            let rates = steps.map(|looks| {
                let (first, last) = (&looks[0], &looks[LOOKS]);
                let size = |look: &Look| look.links[link].0.delivered_size;
                let bits = (size(last) - size(first)).as_bits() as f64;
                let span = seconds(last) - seconds(first);
                (seconds(last), bits / span / 1e6)
            });
            let looks = self.looks.iter().step_by(LOOKS / 2);
            let waits = looks.map(|look| (seconds(look), look.links[link].1.as_secs_f64() * 1e3));
            let curves: [(&str, &str, Vec<_>); 2] = [
                ("link-rate", "Mbit/s", rates.collect()),
                ("link-queue", "ms", waits.collect()),
            ];
            series.extend(curves.map(|(name, unit, points)| Series {
                name: format!("{name}-{}", link + 1),
                unit: unit.to_owned(),
                points,
            }));
        }
        series
    }
}

/// Returns the metrics of all flows that fetch in segments; those of segments themselves of what began at `from` or later.
pub(super) fn metrics(
    fetchers: &[&Fetcher],
    links: &LinkWatch,
    from: Instant,
    enough: Option<Bitrate>,
) -> Vec<(String, f64)> {
    let mut metrics = Vec::new();
    let switches = fetchers.iter().flat_map(|fetcher| fetcher.segments().1);
    let first_switch = switches.min().copied();
    for (number, fetcher) in (1..).zip(fetchers) {
        let (segments, switches) = fetcher.segments();
        if segments.is_empty() {
            continue;
        }
        let rates = segments.iter().filter(|segment| segment.started >= from);
        let rates: Vec<_> = rates.map(megabits).collect();
        let mut values = vec![
            ("segments", rates.len() as f64),
            (
                "segment-rate",
                rates.iter().sum::<f64>() / rates.len() as f64,
            ),
            (
                "segment-rate-min",
                rates.iter().copied().fold(f64::NAN, f64::min),
            ),
            ("switches", switches.len() as f64),
            ("paths", fetcher.paths() as f64),
        ];
        if let Some(enough) = enough {
            let later = &segments[1..];
            let count = later
                .iter()
                .filter(|segment| segment.rate() >= enough)
                .count();
            values.push(("enough-share", count as f64 / later.len() as f64));
        }
        let at_switch = |segment: &&Segment| {
            first_switch.is_some_and(|at| segment.started <= at && at <= segment.finished)
        };
        if let Some(segment) = segments.iter().find(at_switch) {
            let during = (segment.started, segment.finished);
            values.push(("switch-rate", megabits(segment)));
            values.push(("switch-queue", links.mean_wait(during)));
        }
        let named = values.into_iter();
        metrics.extend(named.map(|(name, value)| (format!("{name}-{number}"), value)));
    }
    if let Some(at) = first_switch {
        metrics.push((
            "first-switch".to_owned(),
            at.since(Instant::ZERO).as_secs_f64(),
        ));
        let during = (at, at + AFTER_SWITCH);
        let peaks: Vec<_> = (0..links.links.len())
            .map(|link| links.max_wait(link, during))
            .collect();
        metrics.push((
            "switch-peak".to_owned(),
            peaks.iter().copied().fold(0.0, f64::max),
        ));
        let each = (1..).zip(peaks);
        metrics.extend(each.map(|(link, peak)| (format!("switch-peak-{link}"), peak)));
    }
    metrics
}

fn megabits(segment: &Segment) -> f64 {
    segment.rate().as_bps() as f64 / 1e6
}
