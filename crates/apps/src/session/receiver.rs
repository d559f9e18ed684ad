//! The other side's packets: Interests that wait for them before they exist, and what was lost.
//!
//! A packet is missing once one that was requested after it has come, and the path has had time to reorder them. It is requested
//! again at once, then by a timer; what nobody made yet is only repeated before its Interest ends. The other side says how long it
//! held an Interest, so that each packet shows the round-trip time of the path alone.

mod pace;
mod pending;

use std::collections::BTreeMap;

use bytes::Bytes;
use derive_more::AddAssign;
use namecast_packet::{Component, Data, Interest, InterestTemplate, Name, Nonce};
use namecast_stream::path::Feedback;
use namecast_stream::rate::{Arrival, Loss, Lost, RoundTrip, RoundTripConfig};
use namecast_units::{ByteSize, Duration, Instant, Random};

use super::config::{Flow, SessionConfig};
use super::keyring::Keyring;
use super::keys::Cipher;
use super::message::{Kind, Message};
use pace::Pace;
use pending::{Pending, PendingInterests};

/// Least time that a packet may be overtaken for, and least time beyond a round trip that an answer may take.
const MIN_MARGIN: Duration = Duration::from_millis(5);
/// Retransmissions of one number after which they come less and less often.
const MAX_PROMPT_RETRIES: u32 = 10;
/// Longest time from one transmission of a missing number to the next.
const MAX_RETRY: Duration = Duration::from_secs(1);

/// What a receiver counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, AddAssign)]
pub struct ReceiverCounters {
    /// Interests sent, all transmissions.
    pub interests: u64,
    /// Of those, for numbers that were missing.
    pub retransmissions: u64,
    /// Of those, repeated because nothing was there to answer them.
    pub refreshes: u64,
    /// Packets opened.
    pub packets: u64,
    /// Packets that came again.
    pub replayed: u64,
    /// Packets that were changed, or sealed by somebody else.
    pub forged: u64,
    /// Packets that nobody requested.
    pub unasked: u64,
    /// Numbers that were not waited for any longer.
    pub given_up: u64,
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) kind: Kind,
    pub(super) body: Bytes,
}

pub(super) struct Receiver {
    names: Name,
    template: InterestTemplate,
    keyring: Keyring,
    flow: Flow,
    config: SessionConfig,
    /// All below have come, or are not waited for.
    next: u64,
    /// The lowest number that was never requested.
    requested: u64,
    /// The first number after the highest that came.
    end: u64,
    /// The highest number that came with a message.
    newest_message: Option<u64>,
    /// What came above `next`; empty for numbers that are not used.
    early: BTreeMap<u64, Option<Received>>,
    pending: PendingInterests,
    other_has_more: bool,
    /// When a packet came last.
    heard_at: Instant,
    rtt: RoundTrip,
    /// How late packets come that others overtook.
    reordering: Duration,
    pace: Pace,
    random: Random,
    counters: ReceiverCounters,
}

impl core::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Receiver")
            .field("names", &self.names)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Receiver {
    pub(super) fn new(
        now: Instant,
        names: Name,
        cipher: Cipher,
        config: &SessionConfig,
        seed: u64,
    ) -> Self {
        let interest = Interest::builder(names.clone()).lifetime(config.lifetime);
        Self {
            template: interest.template(Component::SEQUENCE),
            names,
            keyring: Keyring::new(cipher),
            flow: config.flow,
            config: config.clone(),
            next: 0,
            requested: 0,
            end: 0,
            newest_message: None,
            early: BTreeMap::new(),
            pending: PendingInterests::default(),
            other_has_more: false,
            heard_at: now,
            rtt: RoundTrip::new(RoundTripConfig::new(MIN_MARGIN, MIN_MARGIN)),
            reordering: Duration::ZERO,
            pace: Pace::new(now, config.flow),
            random: Random::from_seed(seed),
            counters: ReceiverCounters::default(),
        }
    }

    pub(super) const fn keyring(&mut self) -> &mut Keyring {
        &mut self.keyring
    }

    pub(super) const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The round-trip time of the path.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        self.rtt.on_sample(rtt);
    }

    /// Takes Data for `number`. Returns what it says of the other side's Interests, and whether it brings a message.
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        number: u64,
        data: &Data,
        is_marked: bool,
    ) -> Option<(u64, bool)> {
        let is_old = number < self.next || self.early.contains_key(&number);
        if is_old {
            self.counters.replayed += 1;
            return None;
        }
        if self.pending.get(number).is_none() {
            self.counters.unasked += 1;
            return None;
        }
        let content = data.content().unwrap_or_default();
        let opened = self.keyring.open(number, data.name().value(), &content);
        let message = opened.as_deref().ok().and_then(Message::decode);
        let Some(message) = message else {
            self.on_forged(now, number);
            return None;
        };
        self.counters.packets += 1;
        self.heard_at = now;
        let pending = self.pending.remove(number)?;
        self.on_arrival(now, &pending, (&message, is_marked));
        self.on_more(now, number, message.more);
        for skipped in (number.saturating_sub(message.skipped)..number).rev() {
            if skipped < self.next {
                break;
            }
            self.pending.remove(skipped);
            self.early.entry(skipped).or_insert(None);
        }
        let has_message = message.kind != Kind::Nothing;
        if has_message {
            self.newest_message = self.newest_message.max(Some(number));
        }
        let received = has_message.then(|| Received {
            kind: message.kind,
            body: Bytes::copy_from_slice(message.body),
        });
        self.early.insert(number, received);
        self.end = self.end.max(number + 1);
        self.on_overtaking(now, number);
        self.keyring.forget_below(self.next);
        Some((message.next, has_message))
    }

    /// What came for `number` is not the other side's: it is requested again from whoever made it, soon, and not at once.
    fn on_forged(&mut self, now: Instant, number: u64) {
        self.counters.forged += 1;
        let margin = self.margin();
        if let Some(pending) = self.pending.get_mut(number) {
            pending.was_forged = true;
            pending.missing_since.get_or_insert(now);
            let due = pending.due.min(now + margin);
            self.pending.set_due(number, due);
        }
    }

    fn on_arrival(
        &mut self,
        now: Instant,
        pending: &Pending,
        (message, is_marked): (&Message<'_>, bool),
    ) {
        let took = now.since(pending.sent_at).saturating_sub(message.held);
        let rtt = (pending.transmissions == 1).then_some(took);
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt);
        }
        self.on_reordering(now, pending);
        let arrival = Arrival {
            asked_at: pending.sent_at,
            rtt,
            size: ByteSize::of(message.body),
            was_lost: pending.missing_since.is_some(),
            is_limiting: message.more,
            congestion_marked: is_marked,
            feedback: Feedback::default(),
        };
        self.pace.on_data(now, &arrival);
    }

    /// A packet that comes although it counts as missing shows how long others may overtake it.
    fn on_reordering(&mut self, now: Instant, pending: &Pending) {
        self.reordering -= self.reordering / 256;
        let smoothed = self.rtt.smoothed().unwrap_or_default();
        // Else it is what a retransmission brought.
        let is_late = match pending.retries {
            0 => true,
            1 => now.since(pending.sent_at) < smoothed * 3 / 4,
            _ => false,
        };
        if let Some(since) = pending.missing_since.filter(|_| is_late) {
            self.reordering = self.reordering.max(now.since(since)).min(smoothed);
        }
    }

    /// Once the other side can send more at once, what is out is answered within a round trip.
    fn on_more(&mut self, now: Instant, number: u64, more: bool) {
        if number + 1 < self.end {
            return;
        }
        if more && !self.other_has_more {
            let due = now + self.timeout();
            let out: Vec<_> = self.pending.range(number..).map(|(it, _)| it).collect();
            for number in out {
                let due = self.pending.get(number).map_or(due, |it| it.due.min(due));
                self.pending.set_due(number, due);
            }
        }
        self.other_has_more = more;
    }

    /// Finds what was requested before `number`, as all lower numbers are, and has not come.
    fn on_overtaking(&mut self, now: Instant, number: u64) {
        let due = now + self.margin();
        let overtaken: Vec<_> = (self.pending.range(..number))
            .filter(|(_, it)| it.missing_since.is_none())
            .map(|(number, _)| number)
            .collect();
        for number in overtaken {
            if let Some(pending) = self.pending.get_mut(number) {
                pending.missing_since = Some(now);
            }
            self.pending.set_due(number, due);
        }
    }

    /// The next message, in order; where the flow is steady as they come.
    pub(super) fn poll_message(&mut self) -> Option<Received> {
        if let Flow::Steady { .. } = self.flow {
            let came = self.early.iter_mut().find_map(|(_, it)| it.take());
            self.advance();
            return came;
        }
        while let Some(received) = self.early.remove(&self.next) {
            self.next += 1;
            if received.is_some() {
                return received;
            }
        }
        None
    }

    fn advance(&mut self) {
        while self.early.get(&self.next).is_some_and(Option::is_none) {
            self.early.remove(&self.next);
            self.next += 1;
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.pace.handle_timeout(now);
    }

    /// The next Interest to be repeated.
    pub(super) fn repeat_next(&mut self, now: Instant) -> Option<Bytes> {
        while let Some((_, number)) = self.pending.first_due().filter(|(due, _)| *due <= now) {
            let pending = *self.pending.get(number)?;
            if self.is_given_up(now, (number, &pending)) {
                self.pending.remove(number);
                self.early.insert(number, None);
                self.counters.given_up += 1;
                self.advance();
                continue;
            }
            // The other side made it, or can make it at once: it is lost. Else there is nothing to be had yet.
            let is_missing = number < self.end || self.other_has_more || pending.was_forged;
            if is_missing {
                self.counters.retransmissions += 1;
                self.report_loss(now, &pending);
            } else {
                self.counters.refreshes += 1;
            }
            return Some(self.transmit(now, number, is_missing));
        }
        None
    }

    /// The Interest that would be repeated first for what is not there yet, if it is not new: to leave with Data that would leave alone.
    pub(super) fn refresh_next(&mut self, now: Instant) -> Option<Bytes> {
        if self.other_has_more {
            return None;
        }
        let min_age = self.config.lifetime / 8;
        let is_old = |it: &Pending| it.missing_since.is_none() && now.since(it.sent_at) >= min_age;
        let old = self.pending.range(self.end..).filter(|(_, it)| is_old(it));
        let number = old.min_by_key(|(_, it)| it.due).map(|(number, _)| number)?;
        self.counters.refreshes += 1;
        Some(self.transmit(now, number, false))
    }

    /// Nothing is given up for empty packets: what is missing before them may be that the call is taken, or over.
    fn is_given_up(&self, now: Instant, (number, pending): (u64, &Pending)) -> bool {
        match (self.flow, pending.missing_since) {
            (Flow::Steady { give_up, .. }, Some(since)) => {
                now.since(since) >= give_up && self.newest_message > Some(number)
            }
            _ => false,
        }
    }

    fn report_loss(&mut self, now: Instant, pending: &Pending) {
        // As long as others come, one that is lost again is no sign that the path has broken.
        let kind = match self.heard_at >= pending.sent_at {
            true => Loss::Gap,
            false => Loss::Timeout,
        };
        let lost = Lost {
            asked_at: pending.sent_at,
            kind,
            repeated: false,
        };
        self.pace.on_loss(now, &lost);
    }

    /// The next Interest for a number that was never requested, if there is room.
    pub(super) fn request_next(&mut self, now: Instant) -> Option<Bytes> {
        if !self.has_room() || self.may_send_at() > now {
            return None;
        }
        let number = self.requested;
        self.requested += 1;
        if self.other_has_more {
            self.pace.on_sent(now);
        }
        Some(self.transmit(now, number, false))
    }

    /// Returns when the next number may be requested, as far as the rate is concerned.
    fn may_send_at(&self) -> Instant {
        match self.other_has_more {
            true => self.pace.next_send(),
            false => Instant::ZERO,
        }
    }

    /// Whether the other side can send more at once.
    pub(super) const fn other_has_more(&self) -> bool {
        self.other_has_more
    }

    /// Interests that wait for what is not there yet.
    pub(super) fn waiting(&self) -> usize {
        self.pending.range(self.end..).count()
    }

    fn has_room(&self) -> bool {
        let out = match self.flow {
            // What is missing does not hold up what comes after it.
            Flow::Steady { .. } => self.waiting(),
            Flow::Elastic { .. } => self.pending.len(),
        };
        out < self.window() && self.requested < self.next + self.config.max_window
    }

    /// Interests that may be out: w = ⌈RTT / interval⌉ [PIGGYBACK], two for those that are lost or late, and one more where they
    /// wait for Data to ride with; or what the controller allows.
    fn window(&self) -> usize {
        match self.flow {
            Flow::Steady { interval, .. } => {
                let rtt = self.rtt.smoothed().unwrap_or(interval);
                let due = rtt.as_nanos().div_ceil(interval.as_nanos().max(1));
                usize::try_from(due).unwrap_or(usize::MAX) + 2 + usize::from(self.config.bundles)
            }
            Flow::Elastic { standing, .. } => match self.other_has_more {
                true => self.pace.window().max(standing as usize),
                false => standing as usize,
            },
        }
    }

    /// Sends an Interest for `number`, which is missing or not there yet.
    fn transmit(&mut self, now: Instant, number: u64, is_missing: bool) -> Bytes {
        let before = self.pending.get(number).copied();
        let missing_since = before.and_then(|it| it.missing_since);
        let retries = before.map_or(0, |it| it.retries) + u32::from(is_missing);
        let pending = Pending {
            sent_at: now,
            transmissions: before.map_or(0, |it| it.transmissions) + 1,
            retries,
            due: now + self.wait(retries),
            missing_since: missing_since.or(is_missing.then_some(now)),
            was_forged: before.is_some_and(|it| it.was_forged),
        };
        self.counters.interests += 1;
        self.pending.insert(number, pending);
        let nonce = Nonce::draw(&mut self.random);
        if pending.was_forged {
            let name = self.names.builder().sequence(number).finish();
            let interest = Interest::builder(name).lifetime(self.config.lifetime);
            let interest = interest.must_be_fresh().build(nonce);
            return interest.wire().clone();
        }
        let interest = self.template.build(number, nonce);
        interest.wire().clone()
    }

    /// How long the answer to an Interest is waited for that has been sent `retries` times for what is missing. From the second
    /// on they come twice in a round trip, as a message has waited long by then, and where the flow is steady from the first on, as
    /// what is late there is lost; after many, less and less often.
    fn wait(&self, retries: u32) -> Duration {
        let timeout = self.timeout();
        let wait = match retries {
            0 if self.other_has_more => timeout,
            0 => self.config.lifetime * 3 / 4,
            1 if !matches!(self.flow, Flow::Steady { .. }) => timeout,
            1..MAX_PROMPT_RETRIES => timeout / 2,
            more => {
                let doublings = (more - MAX_PROMPT_RETRIES).min(10);
                timeout.saturating_mul(1 << doublings).min(MAX_RETRY)
            }
        };
        wait.max(MIN_MARGIN)
    }

    /// How long a packet may be overtaken for.
    pub(super) fn margin(&self) -> Duration {
        let rtt = self.rtt.smoothed().unwrap_or_default();
        (rtt / 8).max(self.reordering * 5 / 4).max(MIN_MARGIN)
    }

    /// How long an answer to what exists may take.
    fn timeout(&self) -> Duration {
        let smoothed = self.rtt.smoothed().unwrap_or(Duration::from_millis(250));
        self.rtt
            .timeout()
            .min(smoothed * 2 + MIN_MARGIN)
            .max(smoothed + self.margin())
    }

    /// When the next number may be requested, where it waits for the rate alone.
    pub(super) fn next_request(&self) -> Option<Instant> {
        let paced = self.has_room().then(|| self.may_send_at());
        paced.filter(|at| *at > Instant::ZERO)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timer = self.pending.first_due().map(|(due, _)| due);
        [timer, self.pace.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }
}
