//! What a fetcher counted and measured.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_stream::path::{NumberedAnswer, NumberedCounters, Received, Source};
use namecast_units::{Bitrate, ByteSize, Instant};

/// What a fetcher counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Of its Interests.
    pub requests: NumberedCounters,
    /// Interests that are neither answered nor lost.
    pub in_flight: u64,
    /// Numbers that came.
    pub data: u64,
    /// Of those, ones that were taken for lost, whether retransmitted or not.
    pub late: u64,
    /// Content of them.
    pub content: ByteSize,
    /// Frames that brought them, whole.
    pub wire: ByteSize,
    /// Data whose number had come before, or was given up long ago.
    pub duplicates: u64,
    /// Interests of neighbours that were answered.
    pub served: u64,
    /// Data that carried a congestion mark.
    pub congestion_marks: u64,
    /// Round-trip times measured, of numbers that were requested once.
    pub rtt_samples: u64,
    /// Their sum, in nanoseconds.
    pub rtt_sum_nanos: u64,
    /// The least of them.
    pub min_rtt: Option<Duration>,
    /// The greatest of them.
    pub greatest_rtt: Option<Duration>,
    /// Data that the verifier did not accept.
    pub unverified: u64,
    /// Data for what was never requested, and Nacks of what is not waited for.
    pub unasked: u64,
    /// Packets that broke the format.
    pub malformed: u64,
}

impl Figures {
    /// Takes what `answer` says of Data of `size`.
    pub(super) fn on_data(&mut self, size: ByteSize, answer: &NumberedAnswer) {
        self.data += 1;
        self.content += size;
        self.late += u64::from(answer.was_lost);
        if let Some(rtt) = answer.rtt {
            self.on_rtt(rtt);
        }
    }

    fn on_rtt(&mut self, rtt: Duration) {
        self.rtt_samples += 1;
        let nanos = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
        self.rtt_sum_nanos = self.rtt_sum_nanos.saturating_add(nanos);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
        self.greatest_rtt = Some(self.greatest_rtt.map_or(rtt, |greatest| greatest.max(rtt)));
    }
}

/// A number that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The number.
    pub sequence: u64,
    /// Since the last Interest for it.
    pub delay: Duration,
    /// Since the first Interest for it.
    pub full_delay: Duration,
    /// Interests sent for it.
    pub transmissions: u32,
    /// Its content.
    pub size: ByteSize,
}

/// A segment that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// When its first numbers could be requested.
    pub started: Instant,
    /// When all of it had come.
    pub finished: Instant,
    /// Its content.
    pub content: ByteSize,
    /// Packets of it that nodes said came from caches.
    pub from_caches: u64,
}

impl Segment {
    /// Segments of which is kept what is said here, at most.
    pub const MAX: usize = 10_000;

    /// Returns the rate at which it came.
    pub fn rate(&self) -> Bitrate {
        let nanos = self.finished.since(self.started).as_nanos().max(1);
        Bitrate::bps((self.content.as_bits() as f64 * 1e9 / nanos as f64) as u64)
    }
}

/// Packets of whose sources the majority counts.
const SOURCES: usize = 32;

/// Collects [`Segment`]s, and times at which the source of Data changed from a cache to a producer.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    done: Vec<Segment>,
    current: Option<Segment>,
    switches: Vec<Instant>,
    /// Which of the last packets came from caches.
    cached: VecDeque<bool>,
    is_cached: bool,
}

impl Segments {
    pub(super) fn start(&mut self, now: Instant) {
        self.current.get_or_insert(Self::begun(now));
    }

    const fn begun(now: Instant) -> Segment {
        Segment {
            started: now,
            finished: now,
            content: ByteSize::ZERO,
            from_caches: 0,
        }
    }

    pub(super) fn on_data(&mut self, now: Instant, received: &Received, is_last: bool) {
        if let Some(source) = received.feedback.source {
            self.on_source(now, source == Source::Cache);
        }
        let mut segment = self.current.unwrap_or(Self::begun(now));
        segment.content += received.size;
        segment.from_caches += u64::from(received.feedback.source == Some(Source::Cache));
        self.current = Some(segment);
        if is_last {
            segment.finished = now;
            if self.done.len() < Segment::MAX {
                self.done.push(segment);
            }
            self.current = Some(Self::begun(now));
        }
    }

    fn on_source(&mut self, now: Instant, is_cache: bool) {
        if self.cached.len() >= SOURCES {
            self.cached.pop_front();
        }
        self.cached.push_back(is_cache);
        let cached = self.cached.iter().filter(|is_cache| **is_cache).count();
        if cached * 2 > SOURCES {
            self.is_cached = true;
        } else if self.is_cached && (self.cached.len() - cached) * 2 > SOURCES {
            self.is_cached = false;
            if self.switches.len() < Segment::MAX {
                self.switches.push(now);
            }
        }
    }

    pub(super) fn get(&self) -> (&[Segment], &[Instant]) {
        (&self.done, &self.switches)
    }
}

/// One interval of a fetcher's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it ended.
    pub at: Instant,
    /// Rate the controller allowed at its end, or the one that its window amounts to.
    pub estimate: Option<Bitrate>,
    /// Mean round-trip time of what came in it.
    pub rtt: Option<Duration>,
    /// Content that came in it.
    pub content: ByteSize,
    /// Window at its end.
    pub window: Option<u32>,
    /// Interests out at its end.
    pub in_flight: u32,
    /// Requests for any next Data to spare: the least that came with Data in it.
    pub spare: Option<u16>,
}

/// Collects [`Sample`]s.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    interval: Duration,
    most: usize,
    /// When the current interval ends; `None`: not started, or no samples are wanted.
    end: Option<Instant>,
    content: ByteSize,
    rtt_sum: Duration,
    rtts: u32,
    spare: Option<u16>,
    samples: Vec<Sample>,
}

/// What holds at the end of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub estimate: Option<Bitrate>,
    pub window: Option<u32>,
    pub in_flight: usize,
}

impl Sampler {
    pub(super) const fn new(interval: Duration, most: usize) -> Self {
        Self {
            interval,
            most,
            end: None,
            content: ByteSize::ZERO,
            rtt_sum: Duration::ZERO,
            rtts: 0,
            spare: None,
            samples: Vec::new(),
        }
    }

    /// Begins the first interval, unless it has begun.
    pub(super) fn start(&mut self, now: Instant) {
        let is_new = self.end.is_none() && self.samples.is_empty();
        if is_new && self.most > 0 && !self.interval.is_zero() {
            self.end = Some(now + self.interval);
        }
    }

    /// Whether an interval has ended.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| end <= now)
    }

    /// Closes the intervals that ended by `now`. Nothing changed since the first of them ended.
    pub(super) fn advance(&mut self, now: Instant, state: &State) {
        while let Some(end) = self.end.filter(|&end| end <= now) {
            self.samples.push(Sample {
                at: end,
                estimate: state.estimate,
                rtt: (self.rtts > 0).then(|| self.rtt_sum / self.rtts),
                content: self.content,
                window: state.window,
                in_flight: u32::try_from(state.in_flight).unwrap_or(u32::MAX),
                spare: self.spare.take(),
            });
            (self.content, self.rtt_sum, self.rtts) = (ByteSize::ZERO, Duration::ZERO, 0);
            let has_room = self.samples.len() < self.most;
            self.end = has_room.then(|| end + self.interval);
        }
    }

    pub(super) fn on_data(&mut self, received: &Received, rtt: Option<Duration>) {
        self.content += received.size;
        let spare = received.feedback.spare;
        self.spare = self.spare.into_iter().chain(spare).min();
        if let Some(rtt) = rtt {
            self.rtt_sum = self.rtt_sum.saturating_add(rtt);
            self.rtts += 1;
        }
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }
}
