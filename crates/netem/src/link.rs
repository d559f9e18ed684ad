//! The link itself.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_units::{Bitrate, ByteSize, Duration, Instant};

use crate::config::{Config, Queue};

/// Why a frame did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The queue discipline chose it.
    ActiveQueue,
    /// Random loss.
    Loss,
    /// An outage, or the link was down.
    Down,
}

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// It arrived.
    Delivered {
        /// When.
        at: Instant,
        /// The frame, damaged if the link damages.
        frame: Bytes,
        /// How long it waited to be serialised.
        queued_for: Duration,
        /// The queue discipline marked it.
        congestion_marked: bool,
    },
    /// It will not arrive.
    Dropped {
        /// When.
        at: Instant,
        /// The frame.
        frame: Bytes,
        /// Why.
        reason: DropReason,
    },
}

/// What a link has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that arrived, copies included.
    pub delivered: u64,
    /// Bytes of these.
    pub delivered_size: ByteSize,
    /// Frames marked.
    pub marked: u64,
    /// Frames dropped because the queue was full.
    pub queue_full: u64,
    /// Frames dropped by the queue discipline.
    pub active_queue: u64,
    /// Frames lost at random.
    pub lost: u64,
    /// Frames lost because the link was down.
    pub down: u64,
    /// Sum of the times that delivered frames waited to be serialised, in nanoseconds.
    pub queued_nanos: u64,
}

/// One direction of a link.
///
/// Hand frames to [`handle_frame`](Self::handle_frame); take from [`poll_output`](Self::poll_output) until there is
/// nothing, and call [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) says so. Early or
/// repeated calls are harmless. The same calls with the same seed give the same outputs.
#[derive(Clone, Debug)]
pub struct Link {
    config: Config,
    rate: Option<Bitrate>,
    delay: Duration,
    waiting: VecDeque<(Instant, Bytes)>,
    free_at: Instant,
    in_flight: VecDeque<(Instant, Bytes, Duration)>,
    output: VecDeque<Output>,
    counters: Counters,
    is_up: bool,
    now: Instant,
}

impl Link {
    /// A link like `config` says; `seed` fixes its randomness.
    pub fn new(config: Config, _seed: u64) -> Self {
        Self {
            rate: config.rate,
            delay: config.delay,
            config,
            waiting: VecDeque::new(),
            free_at: Instant::ZERO,
            in_flight: VecDeque::new(),
            output: VecDeque::new(),
            counters: Counters::default(),
            is_up: true,
            now: Instant::ZERO,
        }
    }

    /// Takes a frame to send.
    pub fn handle_frame(&mut self, now: Instant, frame: Bytes) {
        self.handle_timeout(now);
        let capacity = match self.config.queue {
            Queue::DropTail { packets } => packets,
            _ => 1_000,
        };
        if !self.is_up || self.waiting.len() >= capacity {
            self.counters.queue_full += 1;
            self.output.push_back(Output::Dropped {
                at: now,
                frame,
                reason: DropReason::QueueFull,
            });
            return;
        }
        self.waiting.push_back((now, frame));
        self.serialise();
    }

    /// Works off what is due by `now`. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.serialise();
        while self.in_flight.front().is_some_and(|f| f.0 <= self.now) {
            let (at, frame, queued_for) = self.in_flight.pop_front().expect("just seen");
            self.counters.delivered += 1;
            self.counters.delivered_size += ByteSize::of(&frame);
            self.output.push_back(Output::Delivered {
                at,
                frame,
                queued_for,
                congestion_marked: false,
            });
        }
    }

    fn serialise(&mut self) {
        while let Some((since, frame)) = self.waiting.front() {
            let start = self.free_at.max(*since);
            if start > self.now {
                return;
            }
            let takes = self
                .rate
                .map_or(Duration::ZERO, |r| ByteSize::of(frame) / r);
            self.free_at = start + takes;
            let queued_for = start.since(*since);
            let (_, frame) = self.waiting.pop_front().expect("just seen");
            self.in_flight
                .push_back((self.free_at + self.delay, frame, queued_for));
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.in_flight.front().map(|f| f.0)
    }

    /// The next thing that became of a frame, in order of time.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.output.pop_front()
    }

    /// Takes the link down, which loses what is under way, or up again.
    pub fn set_up(&mut self, now: Instant, is_up: bool) {
        self.handle_timeout(now);
        self.is_up = is_up;
    }

    /// What the link has seen.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Frames that wait now.
    pub fn queue_length(&self) -> usize {
        self.waiting.len()
    }
}
