//! The thread that drives both nodes.

use std::collections::VecDeque;

use namecast_apps::sequence::{Fetcher, Figures, Server};
use namecast_net::Clock;
use namecast_sim::Now;
use namecast_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::host::{Host, Watch};
use crate::impair::Quantiles;
use crate::priority::rise;

/// Longest wait, if nothing is due.
const TICK: Duration = Duration::from_millis(100);

/// Both nodes, and what happens when.
#[derive(Debug)]
pub(super) struct Ends {
    clock: Clock,
    consumer: Host<Fetcher>,
    producer: Host<Server>,
    agenda: VecDeque<(Duration, Item)>,
    told: Vec<(Duration, Figures)>,
    watch: Watch,
}

/// Something that happens once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// The fetcher starts.
    Start,
    /// It stops.
    Stop,
    /// Its figures are read.
    Read,
}

/// What the thread tells at its end.
#[derive(Debug)]
pub(super) struct Told {
    /// The fetcher's figures for each time that was on the agenda, and when they were read.
    pub(super) figures: Vec<(Duration, Figures)>,
    /// From deadlines, and from the kernel's receive times, to their handling.
    pub(super) error_ms: Quantiles,
}

/// What happens when, in order of time.
pub(super) fn agenda(
    starts_at: Duration,
    stops_at: Option<Duration>,
    edges: &[Duration],
) -> VecDeque<(Duration, Item)> {
    let start = [(starts_at, Item::Start)].into_iter();
    let stop = stops_at.map(|at| (at, Item::Stop));
    let edges = edges.iter().map(|&at| (at, Item::Read));
    let mut agenda: Vec<_> = start.chain(stop).chain(edges).collect();
    agenda.sort_by_key(|&(at, _)| at);
    agenda.into()
}

impl Ends {
    pub(super) fn new(
        clock: Clock,
        consumer: Host<Fetcher>,
        producer: Host<Server>,
        agenda: VecDeque<(Duration, Item)>,
    ) -> Self {
        Self {
            clock,
            consumer,
            producer,
            agenda,
            told: Vec::new(),
            watch: Watch::new(),
        }
    }

    /// Runs to the end of the agenda, whose times count from `zero`.
    pub(super) fn run(mut self, zero: Instant) -> Told {
        // Without it, the run is more likely to be disturbed, and known to be.
        let _ = rise();
        while let Some(&(next, _)) = self.agenda.front() {
            let deadlines = [self.consumer.poll_timeout(), self.producer.poll_timeout()];
            let due = deadlines
                .into_iter()
                .flatten()
                .fold(zero + next, Instant::min);
            let [consumer_is_ready, producer_is_ready] = self.wait(due);
            let now = self.now();
            self.producer.live(now, producer_is_ready, &mut self.watch);
            self.consumer.live(now, consumer_is_ready, &mut self.watch);
            self.work_off_agenda(zero, now);
        }
        Told {
            figures: self.told,
            error_ms: self.watch.error_ms(),
        }
    }

    fn now(&self) -> Now {
        Now {
            monotonic: self.clock.now(),
            wall: self.clock.wall(),
        }
    }

    fn work_off_agenda(&mut self, zero: Instant, now: Now) {
        while let Some(&(at, item)) = self.agenda.front()
            && zero + at <= now.monotonic
        {
            self.agenda.pop_front();
            match item {
                Item::Start => self.consumer.act(zero + at, now, Fetcher::start),
                Item::Stop => self.consumer.act(zero + at, now, Fetcher::stop),
                Item::Read => {
                    let read_at = now.monotonic.since(zero);
                    self.told.push((read_at, self.consumer.figures()));
                }
            }
        }
    }

    /// Waits until something is due or has come, and says for whom it has.
    fn wait(&self, due: Instant) -> [bool; 2] {
        let wait = due.since(self.clock.now()).min(TICK);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: wait.subsec_nanos().into(),
        };
        let mut polled = [
            PollFd::new(&self.consumer.port, PollFlags::IN),
            PollFd::new(&self.producer.port, PollFlags::IN),
        ];
        // An interrupted wait is a short one.
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) => polled.map(|polled| !polled.revents().is_empty()),
            Err(_) => [false; 2],
        }
    }
}
