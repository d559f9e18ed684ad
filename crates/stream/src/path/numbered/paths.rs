//! Numbers fetched over several paths, in segments.
//!
//! ```text
//!                    ┌─ path a: controller, pacer, timers ─┐
//!  segment: 7 8 9 … ─┤                                     ├─▶ number, Nonce, label
//!                    └─ path b: controller, pacer, timers ─┘
//! ```
//!
//! The next number goes to whichever path may send first; a number that is lost is retransmitted on its path.

use std::collections::VecDeque;

use namecast_packet::{Nonce, PathLabel};
use namecast_units::{Bitrate, Instant};

use super::{NumberedAnswer, NumberedConfig, NumberedCounters, NumberedRequester, Unanswered};
use crate::feedback::Received;
use crate::rate::RateControl;

/// A path on which so many Interests in a row ran out, and nothing came for the lifetime of one, is given up.
const TIMEOUTS_OF_A_DEAD_PATH: u64 = 8;

/// Interests of each further segment that ask for labels, while there may be more paths.
const REDISCOVERIES: u64 = 2;

/// An Interest that is to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedRequest {
    /// The number.
    pub number: u64,
    /// Its Nonce.
    pub nonce: Nonce,
    /// The path that it is to take.
    pub path: PathChoice,
}

/// Which path an Interest is to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChoice {
    /// That of the nodes' choice.
    Any,
    /// One that the nodes are asked to write down.
    Discover,
    /// This one.
    Along(PathLabel),
}

impl PathChoice {
    /// Returns the label that an Interest carries for it.
    pub const fn label(&self) -> Option<PathLabel> {
        match self {
            Self::Any => None,
            Self::Discover => Some(PathLabel::DISCOVERY),
            Self::Along(label) => Some(*label),
        }
    }
}

/// Where the fetching of segments is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentProgress {
    /// The segment that is being fetched, from 0 on.
    pub index: u64,
    /// Its numbers that have not come.
    pub missing: u64,
}

/// Requests consecutive numbers, as fast as the controllers of its paths allow.
///
/// A plain value: give it what came and the time, and take everything from [`poll_request`](Self::poll_request) after each
/// call. Nothing is requested before [`start`](Self::start).
///
/// An Interest is lost once Data requested later on its path has come (a gap), or once its timer has run out; the path's
/// controller hears of each sign, and of the second for the same Interest as a repeated one. What is lost leaves the window.
/// It is retransmitted, or else still counts if it comes late.
///
/// With [`max_paths`](NumberedConfig::max_paths) above 1, the first Interests ask the nodes to write down their paths. Each label
/// that comes with Data begins a path; if none does, there is one path without. A path that answers nothing any more leaves
/// its numbers to the others.
#[derive(Debug)]
pub struct NumberedPaths {
    config: NumberedConfig,
    lanes: Vec<Lane>,
    /// The number after the last one requested.
    next: u64,
    /// Numbers from here on are not requested yet.
    end: u64,
    /// Numbers of the segment that have not come.
    missing: u64,
    /// Interests that may ask for labels, of each path that does nothing else.
    discoveries: u64,
    /// Who requests each number from `base` on, and as which of its own.
    owners: VecDeque<(usize, u64)>,
    base: u64,
    /// Numbers of paths that were given up.
    orphans: VecDeque<u64>,
    is_running: bool,
    requests: VecDeque<NumberedRequest>,
}

/// One path. Its numbers are its own, without gaps, whatever others request.
#[derive(Debug)]
struct Lane {
    choice: PathChoice,
    requester: NumberedRequester,
    /// What its own numbers from `first` on stand for.
    numbers: VecDeque<u64>,
    first: u64,
    /// When Data came last, and the timeouts until then.
    came_at: Instant,
    timeouts: u64,
    is_retired: bool,
}

impl NumberedPaths {
    /// Paths that wait for [`start`](Self::start).
    pub fn new(config: NumberedConfig) -> Self {
        let config = NumberedConfig {
            segment: config.segment.map(|numbers| numbers.max(1)),
            retransmit: config.retransmit || config.segment.is_some() || config.max_paths > 1,
            ..config
        };
        let mut paths = Self {
            lanes: Vec::new(),
            next: config.first,
            end: config.first,
            missing: 0,
            discoveries: 0,
            owners: VecDeque::new(),
            base: config.first,
            orphans: VecDeque::new(),
            is_running: false,
            requests: VecDeque::new(),
            config,
        };
        paths.begin_segment();
        match config.max_paths {
            0 | 1 => paths.add(PathChoice::Any),
            _ => paths.add(PathChoice::Discover),
        }
        paths
    }

    /// Starts, or goes on after [`stop`](Self::stop).
    pub fn start(&mut self, now: Instant) {
        self.is_running = true;
        for index in 0..self.lanes.len() {
            self.lanes[index].requester.start(now);
            self.collect(index);
        }
        self.settle(now);
    }

    /// Requests nothing more, neither new nor lost. What is out still counts.
    pub fn stop(&mut self) {
        self.is_running = false;
        for lane in &mut self.lanes {
            lane.requester.stop();
        }
    }

    /// Takes Data for `number`. Returns what it answers.
    ///
    /// # Errors
    /// If nothing was out for it.
    pub fn handle_data(
        &mut self,
        now: Instant,
        number: u64,
        received: &Received,
    ) -> Result<NumberedAnswer, Unanswered> {
        let (index, own) = self.owner(number)?;
        let lane = &mut self.lanes[index];
        lane.timeouts = lane.requester.counters().timeouts;
        lane.came_at = now;
        let is_discovery = lane.choice == PathChoice::Discover;
        let answer = lane.requester.handle_data(now, own, received);
        self.collect(index);
        if answer.is_ok() {
            self.missing = self.missing.saturating_sub(1);
            if self.missing == 0 {
                self.begin_segment();
            }
            if is_discovery {
                self.on_path(now, received.feedback.label);
            }
        }
        self.settle(now);
        answer
    }

    /// Takes the Interest for `number` that came back. Returns whether it is the one that left last, and came back for the
    /// first time. It is retransmitted by its timer only, or a node that refuses at once would be asked without end.
    pub fn handle_nack(
        &mut self,
        now: Instant,
        number: u64,
        nonce: Option<Nonce>,
        is_congestion: bool,
    ) -> bool {
        let Ok((index, own)) = self.owner(number) else {
            return false;
        };
        let requester = &mut self.lanes[index].requester;
        let is_ours = requester.handle_nack(now, own, nonce, is_congestion);
        self.collect(index);
        self.settle(now);
        is_ours
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        for index in 0..self.lanes.len() {
            // Less is left than before if an earlier one has sent.
            self.open(index);
            self.lanes[index].requester.handle_timeout(now);
            self.collect(index);
        }
        self.retire_dead_paths(now);
        self.settle(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let lanes = self.lanes.iter();
        lanes.filter_map(|lane| lane.requester.poll_timeout()).min()
    }

    /// Returns the next Interest to send, until `None`.
    pub fn poll_request(&mut self) -> Option<NumberedRequest> {
        self.requests.pop_front()
    }

    /// Returns what was counted on all paths.
    pub fn counters(&self) -> NumberedCounters {
        let lanes = self.lanes.iter().map(|lane| *lane.requester.counters());
        lanes.fold(NumberedCounters::default(), |sum, lane| NumberedCounters {
            interests: sum.interests + lane.interests,
            retransmissions: sum.retransmissions + lane.retransmissions,
            gaps: sum.gaps + lane.gaps,
            timeouts: sum.timeouts + lane.timeouts,
            nacks: sum.nacks + lane.nacks,
        })
    }

    /// Returns the Interests that are neither answered nor lost.
    pub fn in_flight(&self) -> usize {
        let lanes = self.lanes.iter();
        lanes.map(|lane| lane.requester.in_flight()).sum()
    }

    /// Returns the Interests that the controllers allow to be out; `None`: one of them does not go by that.
    pub fn window(&self) -> Option<u32> {
        let mut windows = self.fetching().map(|lane| lane.requester.window());
        windows.try_fold(0, |sum: u32, window| Some(sum.saturating_add(window?)))
    }

    /// Returns the bandwidth of content that the controllers take to be their own: what they estimate, or their windows in each
    /// smoothed round-trip time, or the rates they allow.
    pub fn estimate(&self) -> Option<Bitrate> {
        let estimates = self.fetching().filter_map(|lane| lane.requester.estimate());
        estimates.reduce(|sum, rate| Bitrate::bps(sum.as_bps().saturating_add(rate.as_bps())))
    }

    /// Returns whether every number has come, or been given up, and nothing is out.
    pub fn is_done(&self) -> bool {
        let mut lanes = self.lanes.iter().filter(|lane| !lane.is_retired);
        self.available() == 0 && lanes.all(|lane| lane.requester.is_done())
    }

    /// Returns the paths in use.
    pub fn paths(&self) -> usize {
        self.fetching().count()
    }

    /// Returns where the fetching of segments is.
    pub fn progress(&self) -> SegmentProgress {
        let length = self.config.segment.unwrap_or(u64::MAX);
        let before = self.end.saturating_sub(self.config.first).saturating_sub(1);
        SegmentProgress {
            index: before / length,
            missing: self.missing,
        }
    }

    /// Those that are not only for discovery.
    fn fetching(&self) -> impl Iterator<Item = &Lane> {
        let is_fetching = |lane: &&Lane| lane.choice != PathChoice::Discover && !lane.is_retired;
        self.lanes.iter().filter(is_fetching)
    }

    /// Numbers that may be requested for the first time, or on another path than before.
    fn available(&self) -> u64 {
        self.end - self.next + self.orphans.len() as u64
    }

    fn begin_segment(&mut self) {
        let last = match self.config.count {
            Some(count) => self.config.first.saturating_add(count),
            None => u64::MAX,
        };
        let end = match self.config.segment {
            Some(numbers) => self.end.saturating_add(numbers).min(last),
            None => last,
        };
        self.missing = end - self.end;
        self.end = end;
        if self.config.max_paths > 1 && self.paths() < self.config.max_paths {
            self.discoveries += match self.discoveries {
                0 => u64::from(self.config.discoveries.max(1)),
                _ => REDISCOVERIES,
            };
        }
    }

    fn add(&mut self, choice: PathChoice) {
        let control = match choice {
            PathChoice::Discover => RateControl::Window {
                window: self.config.discoveries.max(1),
            },
            PathChoice::Any | PathChoice::Along(_) => self.config.control,
        };
        let config = NumberedConfig {
            first: 0,
            count: Some(0),
            control,
            seed: self.config.seed.wrapping_add(self.lanes.len() as u64),
            ..self.config
        };
        self.lanes.push(Lane {
            choice,
            requester: NumberedRequester::new(config),
            numbers: VecDeque::new(),
            first: 0,
            came_at: Instant::ZERO,
            timeouts: 0,
            is_retired: false,
        });
    }

    /// A path was discovered, perhaps again.
    fn on_path(&mut self, now: Instant, label: Option<PathLabel>) {
        let choice = label.map_or(PathChoice::Any, PathChoice::Along);
        let is_known = |lane: &Lane| lane.choice == choice && !lane.is_retired;
        if self.lanes.iter().any(is_known) || self.paths() >= self.config.max_paths {
            return;
        }
        if label.is_some() {
            // Nodes that did not speak of labels yet do now.
            for lane in &mut self.lanes {
                lane.is_retired |= lane.choice == PathChoice::Any;
            }
        }
        self.add(choice);
        if self.is_running {
            let last = self.lanes.len() - 1;
            self.lanes[last].requester.start(now);
        }
    }

    fn owner(&self, number: u64) -> Result<(usize, u64), Unanswered> {
        if (self.config.first..self.base).contains(&number) {
            return Err(Unanswered::Duplicate);
        }
        let index = number.checked_sub(self.base).map(usize::try_from);
        let owner = index.and_then(|index| self.owners.get(index.ok()?));
        owner.copied().ok_or(Unanswered::NotRequested)
    }

    /// Takes the Interests that a path sends, gives new ones their numbers, and forgets what is done with.
    fn collect(&mut self, index: usize) {
        while let Some((own, nonce)) = self.lanes[index].requester.poll_request() {
            let lane = &self.lanes[index];
            let place = usize::try_from(own - lane.first).ok();
            let known = place.and_then(|place| lane.numbers.get(place)).copied();
            let path = lane.choice;
            let number = known.unwrap_or_else(|| self.assign(index, own));
            self.requests.push_back(NumberedRequest {
                number,
                nonce,
                path,
            });
        }
        let lane = &mut self.lanes[index];
        while lane.first < lane.requester.oldest() && lane.numbers.pop_front().is_some() {
            lane.first += 1;
        }
        self.forget();
    }

    /// Gives a path's `own` number one that nobody else requests.
    fn assign(&mut self, index: usize, own: u64) -> u64 {
        let orphan = self.orphans.pop_front();
        let number = orphan.unwrap_or(self.next);
        self.lanes[index].numbers.push_back(number);
        if orphan.is_none() {
            self.next += 1;
            self.owners.push_back((index, own));
        } else if let Ok(at) = usize::try_from(number.saturating_sub(self.base))
            && let Some(owner) = self.owners.get_mut(at)
        {
            *owner = (index, own);
        }
        number
    }

    fn forget(&mut self) {
        while let Some(&(index, own)) = self.owners.front()
            && own < self.lanes[index].requester.oldest()
        {
            self.owners.pop_front();
            self.base += 1;
        }
    }

    /// Lets each path have what is left, one after the other.
    fn settle(&mut self, now: Instant) {
        for index in 0..self.lanes.len() {
            if self.open(index) {
                self.lanes[index].requester.settle(now);
                self.collect(index);
            }
        }
        // What the later ones took is not there for the earlier ones.
        for index in 0..self.lanes.len() {
            self.open(index);
        }
    }

    /// Lets a path request what nobody has requested yet. Returns whether it had nothing to request.
    fn open(&mut self, index: usize) -> bool {
        let available = self.available();
        let lane = &mut self.lanes[index];
        let next = lane.requester.next_number();
        let end = match lane.choice {
            _ if lane.is_retired => next,
            PathChoice::Discover => {
                let most = next.saturating_add(available);
                most.min(self.discoveries).max(next)
            }
            PathChoice::Any | PathChoice::Along(_) => next.saturating_add(available),
        };
        lane.requester.set_end(end)
    }

    /// Gives up paths on which nothing comes any more, and has their numbers requested on others.
    fn retire_dead_paths(&mut self, now: Instant) {
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            let is_labelled = matches!(lane.choice, PathChoice::Along(_));
            let in_vain = lane.requester.counters().timeouts - lane.timeouts;
            let is_silent = now.since(lane.came_at) >= self.config.lifetime;
            let is_dead = is_silent && in_vain >= TIMEOUTS_OF_A_DEAD_PATH;
            if !is_labelled || lane.is_retired || !is_dead {
                continue;
            }
            lane.is_retired = true;
            lane.requester.stop();
            let missing = (lane.first..).zip(&lane.numbers);
            let missing = missing.filter(|(own, _)| lane.requester.is_missing(*own));
            self.orphans.extend(missing.map(|(_, &number)| number));
            if self.paths() == 0 {
                self.add(PathChoice::Discover);
                let last = self.lanes.len() - 1;
                self.lanes[last].requester.start(now);
            }
        }
    }
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
