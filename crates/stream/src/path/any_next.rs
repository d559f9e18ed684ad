//! Any next Data of a flow, as many requests pending as a window allows.
//!
//! ```text
//!            number on the link, spare             window
//!  Data ───▶ pending −= number − seen ───▶ RateController ───▶ pending < window: request (window, seen)
//!              │
//!              └── which numbers have come: holes
//!
//!  silence of 250 ms, up to 1 s:  request (window, seen, refresh)
//!  Nack "not here":               numbers one by one, from the newest on; now and then a request
//! ```
//!
//! After \[SAID\]. Where the next node counts no requests, [`NumberedPaths`] fetches the same numbers.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::{AnyNextRequest, Nonce, any_next};
use namecast_units::{Instant, Random};

use super::numbered::{
    NumberedAnswer, NumberedConfig, NumberedCounters, NumberedPaths, NumberedRequest, Unanswered,
};
use crate::feedback::Received;
use crate::rate::{Arrival, RateController};

/// Silence after which what was under way is lost: T. It doubles while nothing comes.
const SILENCE: Duration = Duration::from_millis(250);
const MAX_SILENCE: Duration = Duration::from_secs(1);
/// Silence from the start on after which numbers are requested instead: whoever answers may know no other requests.
const UNANSWERED_AFTER: Duration = Duration::from_secs(4);
/// Pause before any next Data are requested again where they were refused; it doubles while they are.
const RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(16);
/// Largest window: what nodes count at most.
const MAX_WINDOW: u32 = any_next::MAX_PENDING as u32;

/// What is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyNextOutput {
    /// A request for any next Data, with the Interest's Nonce.
    AnyNext(AnyNextRequest, Nonce),
    /// An Interest for a number.
    Number(NumberedRequest),
}

/// Requests whatever comes next of a flow of numbered Data.
///
/// A plain value: give it what came and the time, and take everything from [`poll_output`](Self::poll_output) after each call.
/// Nothing is requested before [`start`](Self::start).
#[derive(Debug)]
pub struct AnyNext {
    config: NumberedConfig,
    random: Random,
    /// Present from the start on.
    controller: Option<Box<dyn RateController>>,
    is_running: bool,
    pending: u32,
    seen: u32,
    /// Whether Data have come for such requests.
    was_answered: bool,
    started_at: Instant,
    /// When the last Data came, or were requested anew.
    heard_at: Instant,
    silence: Duration,
    arrived: Arrived,
    fallback: Option<Fallback>,
    /// Data that are of use at most: no more requests are pending.
    needed: u64,
    /// Number of parts of the window, one of which has to be free before requests are renewed.
    batches: Option<u32>,
    outputs: VecDeque<AnyNextRequest>,
    counters: NumberedCounters,
}

/// Numbers one by one, where any next Data are refused.
#[derive(Debug)]
struct Fallback {
    paths: NumberedPaths,
    retry_at: Instant,
    pause: Duration,
}

impl AnyNext {
    /// A receiver that waits for [`start`](Self::start). Segments and paths of the configuration are those of numbered requests.
    pub fn new(config: NumberedConfig) -> Self {
        Self {
            random: Random::from_seed(config.seed),
            controller: None,
            is_running: false,
            pending: 0,
            seen: 0,
            was_answered: false,
            started_at: Instant::ZERO,
            heard_at: Instant::ZERO,
            silence: SILENCE,
            arrived: Arrived::new(config.first),
            fallback: None,
            needed: u64::MAX,
            batches: None,
            outputs: VecDeque::new(),
            counters: NumberedCounters::default(),
            config,
        }
    }

    /// Starts, or goes on after [`stop`](Self::stop).
    pub fn start(&mut self, now: Instant) {
        self.controller
            .get_or_insert_with(|| self.config.control.build(now));
        if !self.is_running {
            self.started_at = now;
            self.heard_at = now;
            self.silence = SILENCE;
        }
        self.is_running = true;
        if let Some(fallback) = &mut self.fallback {
            fallback.paths.start(now);
        }
        self.settle();
    }

    /// Sets how many Data are of use: without loss, whoever has that many has no request pending that others would answer in vain.
    pub fn set_needed(&mut self, needed: u64) {
        self.needed = needed;
        self.settle();
    }

    /// Renews requests once one of `batches` parts of the window is free, not with each Data: one Interest for many.
    ///
    /// Differs from \[SAID\], where each Interest is for one Data.
    pub fn renew_in_batches(&mut self, batches: u32) {
        self.batches = Some(batches.max(1));
    }

    /// Requests nothing more. What is under way still counts.
    pub fn stop(&mut self) {
        self.is_running = false;
        if let Some(fallback) = &mut self.fallback {
            fallback.paths.stop();
        }
    }

    /// Takes Data for `number`, with their number on the link if they answer a request for any next.
    ///
    /// # Errors
    /// If the number has come before, or nothing was out for it.
    pub fn handle_data(
        &mut self,
        now: Instant,
        (number, link): (u64, Option<u32>),
        received: &Received,
    ) -> Result<NumberedAnswer, Unanswered> {
        let Some(link) = link else {
            return self.on_numbered_data(now, number, received);
        };
        self.on_link_number(now, link);
        if let Some(controller) = &mut self.controller {
            controller.on_data(
                now,
                &Arrival {
                    asked_at: self.heard_at,
                    rtt: None,
                    size: received.size,
                    was_lost: false,
                    is_limiting: true,
                    congestion_marked: received.congestion_marked,
                    feedback: received.feedback,
                },
            );
        }
        let is_new = self.arrived.insert(number);
        self.settle();
        match is_new {
            true => Ok(NumberedAnswer::unmeasured(now)),
            false => Err(Unanswered::Duplicate),
        }
    }

    /// Takes Data without a number on the link: of a fallback, or that nobody here requested.
    fn on_numbered_data(
        &mut self,
        now: Instant,
        number: u64,
        received: &Received,
    ) -> Result<NumberedAnswer, Unanswered> {
        let Some(fallback) = &mut self.fallback else {
            return Err(Unanswered::NotRequested);
        };
        let answer = fallback.paths.handle_data(now, number, received)?;
        match self.arrived.insert(number) {
            true => Ok(answer),
            false => Err(Unanswered::Duplicate),
        }
    }

    fn on_link_number(&mut self, now: Instant, link: u32) {
        self.heard_at = now;
        self.silence = SILENCE;
        self.was_answered = true;
        // Any next Data come after all.
        if let Some(fallback) = self.fallback.take() {
            self.counters += fallback.paths.counters();
        }
        let advance = link.wrapping_sub(self.seen);
        if (1..=i32::MAX as u32).contains(&advance) {
            self.pending = self.pending.saturating_sub(advance);
            self.seen = link;
        }
    }

    /// Takes a request that came back: any next Data are not to be had here.
    pub fn handle_refusal(&mut self, now: Instant) {
        self.counters.nacks += 1;
        self.fall_back(now);
    }

    /// Takes the Interest for `number` that came back. Returns whether it was waited for.
    pub fn handle_nack(
        &mut self,
        now: Instant,
        number: u64,
        nonce: Option<Nonce>,
        is_congestion: bool,
    ) -> bool {
        self.fallback
            .as_mut()
            .is_some_and(|it| it.paths.handle_nack(now, number, nonce, is_congestion))
    }

    /// Requests numbers from the newest on, unless that is what it does.
    fn fall_back(&mut self, now: Instant) {
        if self.fallback.is_some() || !self.is_running {
            return;
        }
        let first = self.arrived.next();
        let after_first = first.saturating_sub(self.config.first);
        let mut paths = NumberedPaths::new(NumberedConfig {
            first,
            count: (self.config.count).map(|count| count.saturating_sub(after_first)),
            ..self.config
        });
        paths.start(now);
        self.pending = 0;
        self.fallback = Some(Fallback {
            paths,
            retry_at: now + RETRY,
            pause: RETRY,
        });
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(controller) = &mut self.controller
            && controller.poll_timeout().is_some_and(|at| at <= now)
        {
            controller.handle_timeout(now);
        }
        if let Some(fallback) = &mut self.fallback {
            fallback.paths.handle_timeout(now);
            if self.is_running && now >= fallback.retry_at {
                fallback.pause = (fallback.pause * 2).min(MAX_RETRY);
                fallback.retry_at = now + fallback.pause;
                self.request(1, true);
            }
            return;
        }
        if self.is_running && !self.is_done() && now >= self.heard_at + self.silence {
            self.on_silence(now);
        }
        self.settle();
    }

    fn on_silence(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        if !self.was_answered && now.since(self.started_at) >= UNANSWERED_AFTER {
            return self.fall_back(now);
        }
        self.silence = (self.silence * 2).min(MAX_SILENCE);
        self.heard_at = now;
        let wanted = self.wanted();
        self.request(wanted, true);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let controller = self.controller.as_ref()?.poll_timeout();
        let next = match &self.fallback {
            Some(fallback) => {
                let retry = self.is_running.then_some(fallback.retry_at);
                fallback.paths.poll_timeout().into_iter().chain(retry).min()
            }
            None if self.is_running && !self.is_done() => Some(self.heard_at + self.silence),
            None => None,
        };
        controller.into_iter().chain(next).min()
    }

    /// Returns what is to be sent next, until `None`.
    pub fn poll_output(&mut self) -> Option<AnyNextOutput> {
        if let Some(request) = self.outputs.pop_front() {
            let nonce = Nonce::draw(&mut self.random);
            return Some(AnyNextOutput::AnyNext(request, nonce));
        }
        let fallback = self.fallback.as_mut()?;
        fallback.paths.poll_request().map(AnyNextOutput::Number)
    }

    /// Returns what was counted: requests of both kinds, and silences as timeouts.
    pub fn counters(&self) -> NumberedCounters {
        let mut sum = self.counters;
        if let Some(fallback) = &self.fallback {
            sum += fallback.paths.counters();
        }
        sum
    }

    /// Returns the requests that are pending.
    pub fn in_flight(&self) -> usize {
        match &self.fallback {
            Some(fallback) => fallback.paths.in_flight(),
            None => self.pending as usize,
        }
    }

    /// Returns how many requests may be pending.
    pub fn window(&self) -> u32 {
        let target = self.controller.as_ref().map(|it| it.target());
        let window = target.and_then(|target| target.window);
        window.unwrap_or(MAX_WINDOW).clamp(1, MAX_WINDOW)
    }

    /// Returns how many requests are of use.
    fn wanted(&self) -> u32 {
        let needed = u32::try_from(self.needed).unwrap_or(u32::MAX);
        self.window().min(needed)
    }

    /// Returns whether numbers are requested one by one, as the next node counts no requests.
    pub const fn has_fallen_back(&self) -> bool {
        self.fallback.is_some()
    }

    /// Returns whether the last number has come, after which nothing comes by itself.
    pub fn is_done(&self) -> bool {
        let last = (self.config.count).map(|count| self.config.first.saturating_add(count));
        self.needed == 0 || last.is_some_and(|last| self.arrived.next() >= last)
    }

    /// Takes Data for `number` that were requested by name elsewhere.
    ///
    /// # Errors
    /// If the number has come before.
    pub fn handle_repair(
        &mut self,
        now: Instant,
        number: u64,
    ) -> Result<NumberedAnswer, Unanswered> {
        match self.arrived.insert(number) {
            true => Ok(NumberedAnswer::unmeasured(now)),
            false => Err(Unanswered::Duplicate),
        }
    }

    /// Returns the first number from `from` on and before `end` that has not come.
    pub fn next_missing(&self, from: u64, end: u64) -> Option<u64> {
        self.arrived.next_missing(from).filter(|it| *it < end)
    }

    /// Returns one more than the newest number.
    pub const fn newest(&self) -> u64 {
        self.arrived.next()
    }

    /// Returns how many numbers have come, of those that are remembered.
    pub const fn received(&self) -> u64 {
        let span = self.arrived.next.saturating_sub(self.config.first);
        span.saturating_sub(self.arrived.holes)
    }

    /// Returns the numbers before the newest that have not come, of those that are remembered.
    pub fn holes(&self) -> u64 {
        self.arrived.holes()
    }

    /// After every event: requests what the window allows.
    fn settle(&mut self) {
        let wanted = self.wanted();
        let room = wanted.saturating_sub(self.pending);
        let batch = self.batches.map_or(1, |batches| (wanted / batches).max(1));
        let has_room = self.fallback.is_none() && room >= batch;
        if self.is_running && has_room && !self.is_done() {
            self.request(wanted, false);
        }
    }

    fn request(&mut self, pending: u32, refresh: bool) {
        self.pending = pending;
        self.counters.interests += 1;
        self.outputs.push_back(AnyNextRequest {
            pending: u16::try_from(pending).unwrap_or(u16::MAX),
            seen: self.seen,
            refresh,
        });
    }
}

/// Numbers that have come, the newest [`Arrived::MEMORY`] of them.
#[derive(Clone, Debug)]
struct Arrived {
    /// The number of the first bit.
    base: u64,
    words: VecDeque<u64>,
    /// One after the newest.
    next: u64,
    holes: u64,
}

impl Arrived {
    /// Numbers that are remembered: 128 KiB.
    const MEMORY: u64 = 1 << 20;
    const BITS: u64 = u64::BITS as u64;

    fn new(first: u64) -> Self {
        Self {
            base: first,
            words: VecDeque::new(),
            next: first,
            holes: 0,
        }
    }

    /// Records a number. Returns whether it is new: not if it was forgotten.
    fn insert(&mut self, number: u64) -> bool {
        let Some(offset) = number.checked_sub(self.base) else {
            return false;
        };
        if offset / Self::BITS >= Self::MEMORY / Self::BITS {
            self.forget_before(number - Self::MEMORY + 1);
        }
        let offset = number - self.base;
        let place = (offset / Self::BITS) as usize;
        while self.words.len() <= place {
            self.words.push_back(0);
        }
        let bit = 1 << (offset % Self::BITS);
        let is_new = self.words[place] & bit == 0;
        self.words[place] |= bit;
        if number >= self.next {
            self.holes += number - self.next;
            self.next = number.saturating_add(1);
        } else if is_new {
            self.holes -= 1;
        }
        is_new
    }

    /// Returns the first number from `from` on that has not come, of those that are remembered.
    fn next_missing(&self, from: u64) -> Option<u64> {
        let mut number = from.max(self.base);
        while let Some(word) = self.words.get(((number - self.base) / Self::BITS) as usize) {
            let within = (number - self.base) % Self::BITS;
            let left = (!word >> within).trailing_zeros() as u64;
            if left < Self::BITS - within {
                return Some(number + left);
            }
            number += Self::BITS - within;
        }
        Some(number)
    }

    /// Forgets whole words before a number; what is missing in them is no hole any more.
    fn forget_before(&mut self, number: u64) {
        let count = (number - self.base).div_ceil(Self::BITS);
        let known = self
            .words
            .len()
            .min(usize::try_from(count).unwrap_or(usize::MAX));
        for word in self.words.drain(..known) {
            let before = self.next.saturating_sub(self.base).min(Self::BITS);
            self.holes -= before - u64::from(word.count_ones()).min(before);
            self.base += Self::BITS;
        }
        let left = (count - known as u64) * Self::BITS;
        self.holes = if left > 0 { 0 } else { self.holes };
        self.base += left;
        self.next = self.next.max(self.base);
    }

    const fn next(&self) -> u64 {
        self.next
    }

    const fn holes(&self) -> u64 {
        self.holes
    }
}

#[cfg(test)]
mod tests;
