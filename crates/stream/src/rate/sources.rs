//! Where Data come from, as nodes say, and what caches tell of the path behind them: for controllers that use it.

use std::collections::BTreeMap;

use core::time::Duration;

use namecast_units::{Bitrate, Instant, WindowedMinimum};

use super::backlog::Meter;
use crate::feedback::{Feedback, Source};

/// Share of what a cache gets that is requested from beyond it: what is measured is a little too much now and then.
const TAKEN: f64 = 0.95;
/// A tag counts for so long.
const TAG_HOLDS: Duration = Duration::from_secs(1);
/// What may wait behind a cache that runs dry, of what the path carries there.
const RUN_DRY_QUEUE: Duration = Duration::from_millis(20);
/// The same in packets, at least.
const MIN_AHEAD: f64 = 2.0;
/// How much longer than two round trips a cache is silent that has run dry.
const SILENCE: Duration = Duration::from_millis(5);
/// Round trip to a farther source of which nothing is known yet.
const UNKNOWN_RTT: Duration = Duration::from_millis(250);
/// So many packets in a row are from a cache that can run dry. Where two consumers request the same at about the same time, caches and
/// producers answer in turn.
const RUN_OF_A_CACHE: u32 = 16;
/// Packets over which the rate of receiving is measured.
const METER_WINDOW: usize = 16;
/// Weight of a new measurement of it.
const METER_GAIN: f64 = 0.75;
/// Packets requested ahead are at most so many times what comes in a round trip.
const MAX_GAIN: f64 = 2.0;

/// The least round-trip time of the last half round, or a little more.
#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    before: Option<Duration>,
    current: Option<Duration>,
    /// When `current` began.
    since: Instant,
}

impl Standing {
    fn push(&mut self, now: Instant, rtt: Duration, smoothed: Duration) {
        if now.since(self.since) * 4 >= smoothed {
            (self.before, self.current) = (self.current.take(), None);
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
    }

    fn get(&self) -> Option<Duration> {
        self.before.into_iter().chain(self.current).min()
    }
}

/// Round-trip times of what comes from so many hops away.
#[derive(Clone, Debug)]
struct RoundTrips {
    min: WindowedMinimum<Duration>,
    standing: Standing,
    /// The window when another source answered instead.
    window: Option<f64>,
}

/// All sources, and the one that the last packet came from.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    /// Length of a part of the window of the least round-trip time, and how many parts.
    window: (Duration, u64),
    known: BTreeMap<u8, RoundTrips>,
    current: u8,
    is_cache: bool,
    /// Packets in a row that came from caches, up to the last one from a producer.
    cached: u32,
    tag: Option<(Instant, Bitrate)>,
    meter: Meter,
    last_at: Instant,
    /// The cache has been silent for so long that it has probably run dry.
    is_dry: bool,
}

/// Data come from another source than before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moved {
    /// Whether it is farther away, and answers because a cache has run dry that answered for some time.
    pub has_run_dry: bool,
    /// The window when it answered last.
    pub window: Option<f64>,
    /// How many times longer its round trip is without queues.
    pub ratio: f64,
}

impl Sources {
    /// Remembers least round-trip times for `count` parts of `span`.
    pub(super) fn new(span: Duration, count: u64) -> Self {
        Self {
            window: (span, count),
            known: BTreeMap::new(),
            current: 0,
            is_cache: false,
            cached: 0,
            tag: None,
            meter: Meter::new(METER_WINDOW, METER_GAIN),
            last_at: Instant::ZERO,
            is_dry: false,
        }
    }

    /// Takes a packet, and what nodes say of it. `is_limiting`: more would have been requested if that were allowed.
    pub(super) fn on_data(&mut self, now: Instant, told: &Feedback, is_limiting: bool) {
        if !is_limiting || self.is_dry {
            self.meter.interrupt();
        }
        self.meter.on_arrival(now);
        self.tag = told.offered.map(|tag| (now, tag)).or(self.tag);
        let was_cache = self.is_cache;
        self.is_cache = told.source == Some(Source::Cache);
        self.cached = match (was_cache, self.is_cache) {
            (true, true) => self.cached.saturating_add(1),
            (true, false) => self.cached,
            (false, is_cache) => u32::from(is_cache),
        };
        self.last_at = now;
        self.is_dry = false;
    }

    /// Takes the round-trip time of the packet. Returns whether it came from another source than the one before.
    pub(super) fn on_round_trip(
        &mut self,
        now: Instant,
        hops: u8,
        (rtt, smoothed): (Duration, Duration),
        window: f64,
    ) -> Option<Moved> {
        let (span, count) = self.window;
        let round_trips = self.known.entry(hops).or_insert_with(|| RoundTrips {
            min: WindowedMinimum::new(span, count),
            standing: Standing::default(),
            window: None,
        });
        round_trips.min.push(now, rtt);
        round_trips.standing.push(now, rtt, smoothed);
        let least = round_trips.min.minimum(now)?.as_secs_f64();
        let before = core::mem::replace(&mut self.current, hops);
        if before == hops {
            return None;
        }
        let stored = self.known.get(&hops)?.window;
        let left = self.known.get_mut(&before)?;
        left.window = Some(window);
        let old = left.min.last()?.as_secs_f64();
        Some(Moved {
            has_run_dry: hops > before && self.cached >= RUN_OF_A_CACHE,
            window: stored,
            ratio: (least / old).clamp(1e-3, 1e3),
        })
    }

    /// Returns whether Data come from different distances.
    pub(super) fn are_several(&self) -> bool {
        self.known.len() > 1
    }

    /// Returns RTT_min and RTT_standing of the present source, in seconds.
    pub(super) fn delays(&self, now: Instant) -> Option<(f64, f64)> {
        let round_trips = self.known.get(&self.current)?;
        let least = round_trips.min.minimum(now)?.as_secs_f64();
        let standing = round_trips.standing.get()?.as_secs_f64();
        (standing > 0.0).then_some((least, standing))
    }

    /// Returns RTT_min of the present source, when it came last.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        let round_trips = self.known.get(&self.current)?;
        round_trips.min.minimum(round_trips.standing.since)
    }

    /// Returns the packets of `size` octets that may be requested in a second from beyond the cache, by what it told.
    fn offered(&self, now: Instant, size: f64) -> Option<f64> {
        let (at, tag) = self.tag?;
        let packets = TAKEN * tag.as_bps() as f64 / 8.0 / size.max(1.0);
        (now.since(at) <= TAG_HOLDS).then_some(packets)
    }

    /// Returns the window for a source farther away that has just begun to answer: what the cache told, if that is not more than
    /// twice what came.
    pub(super) fn window_beyond(&self, now: Instant, size: f64) -> Option<f64> {
        let (least, _) = self.delays(now)?;
        let offered = self.offered(now, size)?;
        Some(offered.min(MAX_GAIN * self.meter.rate()) * least)
    }

    /// Returns the most that a window may be while a cache answers: if it runs dry, no more than a short queue builds up behind it.
    pub(super) fn window_at_cache(&self, now: Instant, size: f64) -> Option<f64> {
        let (least, _) = self.delays(now)?;
        let offered = self.offered(now, size).filter(|_| self.is_cache)?;
        let ahead = RUN_DRY_QUEUE.as_secs_f64() * offered / TAKEN;
        Some(offered * least + ahead.max(MIN_AHEAD))
    }

    /// Returns when a cache that tells of the path behind it has been silent for so long that it has run dry.
    pub(super) fn runs_dry_at(&self) -> Option<Instant> {
        let round_trips = self.known.get(&self.current)?;
        let is_telling = self.is_cache && !self.is_dry && self.tag.is_some();
        let rtt = round_trips.standing.get()?;
        is_telling.then(|| self.last_at + rtt * 2 + SILENCE)
    }

    /// Notices that a cache has run dry.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.is_dry |= self.runs_dry_at().is_some_and(|at| at <= now);
    }

    /// Returns packets a second, and packets beyond the window, that are requested of a source that nobody knows yet: the cache has run dry,
    /// and no answer can have come from beyond it.
    pub(super) fn beyond_dry_cache(&self, size: f64) -> Option<(f64, f64)> {
        let (_, tag) = self.tag.filter(|_| self.is_dry)?;
        let offered = TAKEN * tag.as_bps() as f64 / 8.0 / size.max(1.0);
        let rate = offered.min(self.meter.rate());
        let farther = self.known.range(self.current.saturating_add(1)..);
        let rtts = farther.filter_map(|(_, round_trips)| round_trips.min.last());
        let rtt = rtts.max().unwrap_or(UNKNOWN_RTT).as_secs_f64();
        Some((rate, rate * rtt))
    }
}
