//! Numbered Data, requested in order as fast as a rate controller allows.
//!
//! ```text
//!            number, size               Target: rate and window
//!  Data ───▶ table ──▶ RateController ──────────────────────────▶ Pacer ──▶ number, Nonce
//!              │  Arrival, Lost                                     ▲
//!              └────────────── numbers to be retransmitted ─────────┘
//! ```
//!
//! The [`Requester`](super::Requester) of a watcher chooses the most urgent of many wants, and may withdraw them. Here the next
//! number is the next Interest, so that a transmission costs the same however many are out.

mod paths;
mod table;

use std::collections::VecDeque;

use core::time::Duration;

use derive_more::AddAssign;
use namecast_packet::Nonce;
use namecast_units::{Bitrate, ByteSize, Instant, Random};

use crate::rate::{
    Arrival, Loss, Lost, Pacer, RateControl, RateController, RoundTrip, RoundTripConfig, Target,
};

use crate::feedback::Received;

use smart_default::SmartDefault;
use table::{Overdue, Table};

pub use paths::{NumberedPaths, NumberedRequest, PathChoice, SegmentProgress};
pub use table::{NumberedAnswer, Unanswered};

/// What a timeout is longer than the smoothed round-trip time, at least, where the controller has no timer.
const TIMER_GRANULARITY: Duration = Duration::from_millis(10);

/// What to request and how.
///
/// The default is everything from 0 on, as fast as possible: set [`control`](Self::control).
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct NumberedConfig {
    /// First number.
    pub first: u64,
    /// How many; `None`: without end.
    pub count: Option<u64>,
    /// Numbers in a segment: the next one's are not requested before all of it has come, as players of segments do, so that
    /// everything lost is retransmitted. `None`: it is all one.
    pub segment: Option<u64>,
    /// Paths that are used at a time: with more than one, nodes are asked for labels, and each path has a controller of its own.
    #[default(1)]
    pub max_paths: usize,
    /// Interests that ask for labels of paths at the start, all at once. Nodes take their next hops in turn, so that twice the number of
    /// paths finds most.
    #[default(8)]
    pub discoveries: u32,
    /// What decides how fast.
    #[default(RateControl::Unlimited)]
    pub control: RateControl,
    /// Lifetime of the Interests, in whole milliseconds. Without retransmission, a lost number may come late for so long.
    #[default(Duration::from_secs(2))]
    pub lifetime: Duration,
    /// Whether what was lost is retransmitted. Otherwise it is left out, as real-time applications do.
    pub retransmit: bool,
    /// Packets that Data may be overtaken by before it counts as lost: zero on paths that keep the order.
    pub reordering_tolerance: u32,
    /// Least time after which unanswered Interests count as lost, where the controller has no timer.
    #[default(Duration::from_millis(100))]
    pub min_timeout: Duration,
    /// Numbers that are out, or lost and not forgotten yet, at most: a hard cap independent of the controller.
    #[default(1 << 17)]
    pub max_in_flight: usize,
    /// Time's worth of the allowed rate that may leave at once. Zero paces to the nanosecond; machines want some
    /// milliseconds.
    pub burst: Duration,
    /// Content that one packet is taken to bring before one has come.
    #[default(ByteSize::bytes(1_024))]
    pub expected_size: ByteSize,
    /// Seed of the Nonces.
    pub seed: u64,
}

/// What a requester of numbers counted.
#[derive(AddAssign, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NumberedCounters {
    /// Interests sent, all transmissions.
    pub interests: u64,
    /// Of those, further transmissions of a number.
    pub retransmissions: u64,
    /// Interests found lost because Data requested later came first.
    pub gaps: u64,
    /// Interests found lost by their timer, and by nothing before.
    pub timeouts: u64,
    /// Interests that came back.
    pub nacks: u64,
}

/// Requests consecutive numbers, as fast as its controller allows.
///
/// A plain value: give it what came and the time, and take everything from [`poll_request`](Self::poll_request) after each
/// call. Nothing is requested before [`start`](Self::start).
///
/// An Interest is lost once Data requested later has come (a gap), or once its timer has run out; the controller hears of
/// each sign, and of the second for the same Interest as a repeated one. What is lost leaves the window. It is retransmitted,
/// or else still counts if it comes late.
#[derive(Debug)]
pub(super) struct NumberedRequester {
    config: NumberedConfig,
    random: Random,
    /// Present from the start on.
    controller: Option<Box<dyn RateController>>,
    /// What the controller allows.
    target: Target,
    pacer: Pacer,
    table: Table,
    /// Numbers to be retransmitted.
    lost: VecDeque<u64>,
    /// The timer where the controller has none.
    round_trip: RoundTrip,
    backed_off_at: Instant,
    /// Content that one packet brings, in octets: 0.9 of it and 0.1 of the newest.
    mean_size: f64,
    is_running: bool,
    /// Numbers from here on are not requested.
    end: u64,
    requests: VecDeque<(u64, Nonce)>,
    counters: NumberedCounters,
}

impl NumberedRequester {
    /// A requester that waits for [`start`](Self::start).
    pub(super) fn new(config: NumberedConfig) -> Self {
        let timer = RoundTripConfig::new(config.min_timeout, TIMER_GRANULARITY);
        Self {
            random: Random::from_seed(config.seed),
            controller: None,
            target: Target::default(),
            pacer: Pacer::new(config.burst),
            table: Table::new(config.first, config.max_in_flight),
            lost: VecDeque::new(),
            round_trip: RoundTrip::new(timer),
            backed_off_at: Instant::ZERO,
            mean_size: 0.0,
            is_running: false,
            end: match config.count {
                Some(count) => config.first.saturating_add(count),
                None => u64::MAX,
            },
            requests: VecDeque::new(),
            counters: NumberedCounters::default(),
            config,
        }
    }

    /// Starts, or goes on after [`stop`](Self::stop).
    pub(super) fn start(&mut self, now: Instant) {
        self.controller
            .get_or_insert_with(|| self.config.control.build(now));
        self.is_running = true;
        self.settle(now);
    }

    /// Requests nothing more, neither new nor lost. What is out still counts.
    pub(super) const fn stop(&mut self) {
        self.is_running = false;
    }

    /// Takes Data for `number`. Returns what it answers.
    ///
    /// # Errors
    /// If nothing was out for it.
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        number: u64,
        received: &Received,
    ) -> Result<NumberedAnswer, Unanswered> {
        let answer = self.table.answer(now, number);
        if let Ok(answer) = &answer {
            self.on_answer(now, answer, received);
        }
        self.settle(now);
        answer
    }

    fn on_answer(&mut self, now: Instant, answer: &NumberedAnswer, received: &Received) {
        if answer.rtt.is_some() && !self.target.ignores_gaps {
            // Which transmission was answered is known only if there was but one.
            self.on_overtaking(now, answer.transmission);
        }
        let octets = received.size.as_bytes() as f64;
        self.mean_size = match self.mean_size {
            mean if mean > 0.0 => 0.9 * mean + 0.1 * octets,
            _ => octets,
        };
        if let Some(rtt) = answer.rtt {
            self.round_trip.on_sample(rtt);
        }
        let arrival = Arrival {
            asked_at: answer.sent_at,
            rtt: answer.rtt,
            size: received.size,
            was_lost: answer.was_lost,
            is_limiting: self.has_next() || !self.lost.is_empty(),
            congestion_marked: received.congestion_marked,
            feedback: received.feedback,
        };
        if let Some(controller) = &mut self.controller {
            controller.on_data(now, &arrival);
        }
    }

    /// Finds what was requested before `transmission` and did not come.
    fn on_overtaking(&mut self, now: Instant, transmission: u64) {
        let tolerance = u64::from(self.config.reordering_tolerance);
        let before = transmission.saturating_sub(tolerance);
        while let Some(overdue) = self.table.next_overtaken(before) {
            self.counters.gaps += u64::from(!overdue.repeated);
            self.on_lost(now, &overdue, Loss::Gap);
        }
    }

    /// Takes the Interest for `number` that came back. Returns whether it is the one that left last, and came back for the
    /// first time. It is retransmitted by its timer only, or a node that refuses at once would be asked without end.
    pub(super) fn handle_nack(
        &mut self,
        now: Instant,
        number: u64,
        nonce: Option<Nonce>,
        is_congestion: bool,
    ) -> bool {
        let nacked = self.table.nack(number, nonce);
        if let Some(overdue) = &nacked {
            self.counters.nacks += 1;
            if is_congestion {
                self.report(now, overdue, Loss::Nack);
            }
        }
        self.settle(now);
        nacked.is_some()
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(controller) = &mut self.controller {
            let is_due = controller.poll_timeout().is_some_and(|at| at <= now);
            if is_due {
                controller.handle_timeout(now);
            }
        }
        self.on_timers(now);
        self.settle(now);
    }

    fn on_timers(&mut self, now: Instant) {
        // The timeout of this moment, for all: what is reported may change it.
        let timeout = self.timeout();
        while let Some(overdue) = self.table.next_timed_out(now, timeout) {
            self.counters.timeouts += u64::from(!overdue.repeated);
            if overdue.sent_at >= self.backed_off_at {
                self.backed_off_at = now;
                self.round_trip.back_off();
            }
            self.on_lost(now, &overdue, Loss::Timeout);
        }
    }

    fn on_lost(&mut self, now: Instant, overdue: &Overdue, kind: Loss) {
        if self.config.retransmit && overdue.leaves {
            self.lost.push_back(overdue.number);
        }
        self.report(now, overdue, kind);
    }

    fn report(&mut self, now: Instant, overdue: &Overdue, kind: Loss) {
        let lost = Lost {
            asked_at: overdue.sent_at,
            kind,
            repeated: overdue.repeated,
        };
        if let Some(controller) = &mut self.controller {
            controller.on_loss(now, &lost);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let controller = self.controller.as_ref()?;
        let send =
            (self.is_running && self.may_send()).then(|| self.pacer.next_send(self.target.rate));
        let timer = self.table.timeout_at(self.timeout());
        let room = self.table.room_at(self.memory());
        [send, timer, room, controller.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Returns the next number to send an Interest for, and its Nonce, until `None`.
    pub(super) fn poll_request(&mut self) -> Option<(u64, Nonce)> {
        self.requests.pop_front()
    }

    /// Returns what it counted.
    pub(super) const fn counters(&self) -> &NumberedCounters {
        &self.counters
    }

    /// Returns the Interests that are neither answered nor lost.
    pub(super) const fn in_flight(&self) -> usize {
        self.table.in_flight()
    }

    /// Returns the Interests that the controller allows to be out.
    pub(super) const fn window(&self) -> Option<u32> {
        self.target.window
    }

    /// Returns the bandwidth of content that the controller takes to be its own: what it estimates, or its window in each smoothed
    /// round-trip time, or the rate it allows.
    pub(super) fn estimate(&self) -> Option<Bitrate> {
        let estimated = self.controller.as_ref()?.estimates().bandwidth;
        let windowed = || {
            let window = u64::from(self.target.window?);
            let content = ByteSize::bytes(self.packet_size().as_bytes().saturating_mul(window));
            Some(content / self.round_trip.smoothed()?)
        };
        estimated.or_else(windowed).or(self.target.rate)
    }

    /// Returns whether every number has come, or been given up, and nothing is out.
    pub(super) fn is_done(&self) -> bool {
        !self.has_next() && self.lost.is_empty() && self.in_flight() == 0
    }

    /// Returns what one Interest is taken to bring.
    fn packet_size(&self) -> ByteSize {
        self.target.packet_size.unwrap_or(match self.mean_size {
            size if size > 0.0 => ByteSize::bytes(size.round() as u64),
            _ => self.config.expected_size,
        })
    }

    fn timeout(&self) -> Duration {
        self.target
            .timeout
            .unwrap_or_else(|| self.round_trip.timeout())
    }

    /// Returns how long what was lost is remembered: until it comes, if it is retransmitted.
    fn memory(&self) -> Option<Duration> {
        (!self.config.retransmit).then_some(self.config.lifetime)
    }

    /// After every event: hears what the controller allows now, and sends.
    pub(super) fn settle(&mut self, now: Instant) {
        if let Some(controller) = &self.controller {
            self.target = controller.target();
        }
        self.table.tidy(now, self.memory());
        while self.is_running && self.may_send() && self.pacer.next_send(self.target.rate) <= now {
            self.send(now);
        }
    }

    /// Returns whether there is something to request, and room for it.
    fn may_send(&self) -> bool {
        let window = self.target.window;
        window.is_none_or(|window| self.in_flight() < window as usize)
            && self.table.has_room()
            && (self.has_next() || !self.lost.is_empty())
    }

    /// Returns whether there are numbers that were never requested.
    fn has_next(&self) -> bool {
        self.table.next_number() < self.end
    }

    /// Lets numbers up to `end` be requested, without it. Returns whether there are more to request than before.
    pub(super) fn set_end(&mut self, end: u64) -> bool {
        let had_next = self.has_next();
        self.end = end;
        self.has_next() && !had_next
    }

    /// Returns the number after the last one requested.
    pub(super) fn next_number(&self) -> u64 {
        self.table.next_number()
    }

    /// Returns whether `number` was requested and has not come.
    pub(super) fn is_missing(&self, number: u64) -> bool {
        self.table.is_missing(number)
    }

    /// Returns the oldest number that is not done with.
    pub(super) fn oldest(&self) -> u64 {
        self.table.oldest()
    }

    /// Sends the next Interest: what is to be retransmitted comes first.
    fn send(&mut self, now: Instant) {
        let nonce = Nonce::draw(&mut self.random);
        let number = match self.lost.pop_front() {
            Some(number) if !self.table.is_missing(number) => return,
            Some(number) => {
                self.table.send_again(now, number, nonce);
                self.counters.retransmissions += 1;
                number
            }
            None if self.has_next() => {
                let number = self.table.next_number();
                self.table.send_next(now, nonce);
                number
            }
            None => return,
        };
        self.counters.interests += 1;
        self.pacer
            .on_sent(now, self.packet_size(), self.target.rate);
        self.requests.push_back((number, nonce));
    }
}
