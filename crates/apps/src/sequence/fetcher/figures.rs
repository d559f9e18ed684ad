//! What a fetcher counted and measured.

use core::time::Duration;

use namecast_stream::path::{NumberedAnswer, NumberedCounters};
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
    /// Data whose number had come before, or was given up long ago.
    pub duplicates: u64,
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
            });
            (self.content, self.rtt_sum, self.rtts) = (ByteSize::ZERO, Duration::ZERO, 0);
            let has_room = self.samples.len() < self.most;
            self.end = has_room.then(|| end + self.interval);
        }
    }

    pub(super) fn on_data(&mut self, size: ByteSize, rtt: Option<Duration>) {
        self.content += size;
        if let Some(rtt) = rtt {
            self.rtt_sum = self.rtt_sum.saturating_add(rtt);
            self.rtts += 1;
        }
    }

    pub(super) fn samples(&self) -> &[Sample] {
        &self.samples
    }
}
