//! Requests samples before they exist, and what turns out to be missing.
//!
//! ```text
//!                 Interest leaves                                    sample arrives
//!  namecast  ───────────┼──── DRD + margin before the sample clock says ───┼──▶
//!  by gaps   a slot of λ_p is free: at once
//! ```

use core::time::Duration;

use namecast_packet::{Nonce, lp::NackReason};
use namecast_units::{ByteSize, Instant};

use crate::catalogue::StreamKind;
use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::path::{Group, Kind, Token, Want};
use crate::rate::Loss;

use super::assembler::{Opening, Request, Sent, SentAs};
use super::order::SampleKey;
use super::repair::Times;
use super::synchroniser::State;
use super::timeline::CLOCK_WAS_SET;
use super::{Consumer, Output};

/// How long, beside one more DRD, samples are requested by the clock alone before the first has come.
const RUN_ON: Duration = Duration::from_millis(100);
/// Wait after a Nack that says that the Nonce was seen before.
const DUPLICATE_WAIT: Duration = Duration::from_millis(2);
/// Wait after a Nack that says that there is no route to the producer; routes need time to come back.
const NO_ROUTE_WAIT: Duration = Duration::from_millis(100);
/// Segments of a sample that leave the producer together; others are spaced.
const AT_ONCE: u64 = 6;
/// What names, headers, digests and signatures add to a segment.
const HEADERS: f64 = 84.0;

impl Consumer {
    /// Requests samples whose time has come, while there is room.
    pub(super) fn request_ahead(&mut self, now: Instant) {
        self.make_room();
        self.pass_unseen(now);
        self.pipeline.clear_wake();
        for class in SampleClass::ALL {
            while self.assembler.has_room(class) {
                let Some((sequence, at)) = self.next_to_request(now, class) else {
                    break;
                };
                if at > now {
                    self.pipeline.wake_by(at);
                    break;
                }
                self.pipeline.pop(class);
                if !self.passes_over(class, sequence) {
                    self.begin_sample(now, (class, sequence));
                }
            }
        }
    }

    /// Moves the pipeline on past samples that should be here, although nothing of them came.
    fn pass_unseen(&mut self, now: Instant) {
        let most = self.recovery.profile().max_unseen();
        let moment = self.moment(now);
        if most == 0 || !moment.is_alive {
            return;
        }
        for class in SampleClass::ALL {
            let Some(newest) = self.pipeline.newest(class) else {
                continue;
            };
            let known = self.pipeline.assumed(class).max(newest);
            for sequence in known.saturating_add(1)..=newest.saturating_add(most) {
                let times = self.times(now, (class, sequence));
                let is_due = self.recovery.due_at(&moment, &times) <= now;
                if times.earliest.is_none() || !is_due {
                    break;
                }
                self.pipeline.assume(class, sequence);
            }
        }
    }

    /// Returns the next sample of `class`, and when to request it; `None` while it would be too far ahead.
    fn next_to_request(&self, now: Instant, class: SampleClass) -> Option<(u64, Instant)> {
        let sequence = self.pipeline.peek(class)?;
        let key = (class, sequence);
        if self.is_left_to_another(key) {
            return None;
        }
        if self.handover.allowance().is_some() {
            return Some((sequence, self.soonest(now, key)));
        }
        let ahead = self.pipeline.ahead(class);
        let is_clocked = class == self.pipeline.clocked();
        if let Some(has_free_slot) = self.synchroniser.has_free_slot() {
            let may = if is_clocked { has_free_slot } else { ahead < 1 };
            return may.then_some((sequence, now));
        }
        if self.pipeline.newest(class).is_some_and(|n| sequence <= n) {
            return Some((sequence, now));
        }
        let before = self.ahead_by(now);
        if !is_clocked {
            let may = ahead < self.pipeline.lead(class, before);
            let at = match self.published_at(key) {
                Some(_) => self.soonest(now, key).saturating_sub(before),
                None => now,
            };
            return may.then_some((sequence, at));
        }
        let config = &self.config.synchroniser;
        let is_chasing = self.synchroniser.state() == State::Chasing;
        if is_chasing && config.initial_lead.is_some_and(|first| ahead < first) {
            return Some((sequence, now));
        }
        // Until the first has come, nothing else moves the pipeline on.
        let run_on = match is_chasing {
            true => self.path.delay.estimate(now) + RUN_ON,
            false => Duration::ZERO,
        };
        let most = self.pipeline.lead(class, before + run_on);
        let at = self.soonest(now, key).saturating_sub(before);
        (ahead < most).then_some((sequence, at))
    }

    /// Passes over the next delta sample if the allowance has not sufficed for those before it: Interests of more than a
    /// sample period still wait. Key samples never are passed over.
    fn passes_over(&mut self, class: SampleClass, sequence: u64) -> bool {
        let allowance = self.handover.allowance();
        let Some(allowance) = allowance.filter(|_| class == SampleClass::Delta) else {
            return false;
        };
        let in_a_period = (allowance.rate * self.source.rate.period()).as_bytes();
        let waiting = self.assembler.waiting() as u64 * u64::from(self.source.segment_size);
        let newest = self.pipeline.newest(class).unwrap_or(sequence);
        // Of a stream that stands still, no more than a jump is passed over.
        let is_near = sequence.saturating_sub(newest) <= self.config.max_jump;
        let is_behind = waiting > in_a_period && is_near;
        if is_behind {
            // Nothing of it will come, and others must not wait for that.
            self.pipeline.assume(class, sequence);
        }
        is_behind
    }

    /// Returns the time before a sample's arrival at best that its Interest must leave: DRD, a margin for what varies, and time to hedge
    /// the Interest.
    pub(super) fn ahead_by(&self, now: Instant) -> Duration {
        let hedging = self.recovery.hedge_delay().unwrap_or_default();
        self.path.delay.floor(now) + self.synchroniser.margin(now) + hedging
    }

    /// Returns when a sample that does not exist yet may arrive at the soonest.
    fn soonest(&self, now: Instant, key: SampleKey) -> Instant {
        let in_turn = self.pipeline.expected_at(key.0, key.1);
        let by_clock = self.published_at(key);
        let by_clock = by_clock.map(|at| self.timeline.earliest(now, at));
        // Whatever clocks say, it is not long after it should follow the newest.
        by_clock.map_or(in_turn, |at| at.min(in_turn + self.source.rate.period()))
    }

    /// Begins with a sample: its segments are wanted.
    fn begin_sample(&mut self, now: Instant, key: SampleKey) {
        if self.assembler.get(key).is_some() {
            return;
        }
        let (class, sequence) = key;
        let moment = self.moment(now);
        let mut counts = self.assembler.estimate(class);
        // To catch up, a round trip for what turns out to be missing is worth more than some parity.
        let mut parity = counts.parity;
        let mut across = 0;
        let newest = self.pipeline.newest(class);
        let asked_ahead = newest.is_none_or(|newest| sequence > newest);
        if asked_ahead {
            let ahead = self.recovery.ahead(&moment, class, counts);
            (counts.data, parity) = (ahead.data, ahead.parity);
            across = self.shards_ahead(now, key);
        }
        self.assembler.begin(&Opening {
            key,
            counts,
            parity,
            copies: self.recovery.lead_copies(),
            across,
            asked_ahead,
        });
        if asked_ahead || self.synchroniser.lead().is_some() {
            self.synchroniser.on_asked(key);
        }
        self.wake_for_check(now, key);
    }

    /// Passes on what is to be requested, repairs first.
    pub(super) fn request_queued(&mut self, now: Instant) {
        while let Some(request) = self.assembler.next_request() {
            let want = self.want(now, &request);
            self.outputs.push(Output::Want(want));
        }
    }

    fn want(&self, now: Instant, request: &Request) -> Want {
        let id = request.id;
        let is_first = request.attempts == 0;
        let is_paced = id.kind == SegmentKind::Data && id.index >= AT_ONCE && is_first;
        let may_pace = self.recovery.profile().is_paced() && self.synchroniser.lead().is_none();
        let available_at = self.available_at(now, (id.class, id.sequence));
        let due = available_at.map(|at| at + self.timeline.target());
        let most = f64::from(self.source.segment_size);
        let size = (request.size.min(most) + HEADERS) * request.likelihood;
        Want {
            token: Token {
                client: self.client,
                segment: id,
            },
            name: self.source.names.segment(id),
            lifetime: self.lifetime(now, id.class),
            must_be_fresh: request.must_be_fresh || self.handover.needs_fresh(now),
            can_be_prefix: false,
            avoid_face: request.avoid_face,
            kind: match id.kind {
                _ if request.is_repair => Kind::Repair,
                _ if self.source.kind == StreamKind::Audio => Kind::Sound,
                SegmentKind::Data if id.class == SampleClass::Key => Kind::Key,
                SegmentKind::Data => Kind::Delta,
                SegmentKind::Parity | SegmentKind::LeadCopy | SegmentKind::Across => Kind::Parity,
            },
            size: ByteSize::bytes(size as u64),
            available_at,
            not_before: available_at.filter(|_| is_paced && may_pace),
            due,
            deadline: due.filter(|_| self.source.is_standalone() && is_first),
        }
    }

    pub(super) const fn group(&self, (class, sequence): SampleKey) -> Group {
        Group {
            client: self.client,
            class,
            sequence,
        }
    }

    /// Returns when a sample could be here at the earliest, by what is known of its publication.
    fn available_at(&self, now: Instant, key: SampleKey) -> Option<Instant> {
        let by_clock = self
            .published_at(key)
            .map(|published_at| self.timeline.earliest(now, published_at));
        // A publisher's clock that was set says nothing until the base has followed.
        match by_clock.filter(|at| now.since(*at) < CLOCK_WAS_SET) {
            Some(available_at) => Some(available_at),
            None if self.is_published(key) => None,
            None => Some(self.pipeline.expected_at(key.0, key.1)),
        }
    }

    /// Long enough for the sample to appear, twice over, within what producers keep.
    fn lifetime(&self, now: Instant, class: SampleClass) -> Duration {
        let delay = self.ahead_by(now);
        let lead = u32::try_from(self.pipeline.lead(class, delay)).unwrap_or(u32::MAX);
        let interval = match class {
            SampleClass::Key => self.source.key_interval.max(1),
            SampleClass::Delta => 1,
        };
        let wait = self.source.rate.period().saturating_mul(interval);
        let (least, most) = (self.config.lifetime.start(), self.config.lifetime.end());
        let lifetime = wait.saturating_mul(lead).saturating_mul(2) + delay;
        // Whole milliseconds are all that an Interest can say.
        Duration::from_millis(u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX))
            .clamp(*least, *most)
    }

    /// Records that the Interest for `id` has left.
    pub fn on_sent(&mut self, now: Instant, id: SegmentId, nonce: Nonce, order: u64) {
        let key = (id.class, id.sequence);
        let Some(attempts) = self.assembler.slot(id).map(|slot| slot.attempts) else {
            return;
        };
        let moment = self.moment(now);
        let times = self.times(now, key);
        let expected_at = match times.is_published {
            true => now,
            false => times.in_turn + times.period,
        };
        let until = now + self.lifetime(now, id.class);
        let retry_at = until.min(now.max(expected_at) + moment.timer.after(attempts));
        let due = now + moment.round_trip();
        let hedge_at = self.recovery.hedge_at(&moment, &times);
        let sent = self.assembler.on_sent(
            now,
            &Sent {
                id,
                nonce,
                order,
                retry_at,
                look_at: self.recovery.profile().check_sent_at(due, retry_at),
                hedge_at: hedge_at.filter(|_| !times.is_published),
                is_published: times.is_published,
            },
        );
        if id.is_lead() && sent == Some(SentAs::First) {
            self.on_lead_sent(now, &times);
        }
        self.counters.interests_sent += 1;
        self.counters.interests_hedged += u64::from(sent == Some(SentAs::Hedge));
        self.counters.interests_retransmitted += u64::from(sent == Some(SentAs::Again));
    }

    /// Records that the first Interest for the lead of a sample has left.
    fn on_lead_sent(&mut self, now: Instant, times: &Times) {
        // One that left later than planned, or before there was a clock to plan by, tells nothing of the path.
        let key = times.key;
        let has_clock = times.earliest.is_some() && key.0 == self.pipeline.clocked();
        let sample = self.assembler.get(key).filter(|_| has_clock);
        if sample.is_some_and(|sample| sample.asked_ahead) {
            let floor = self.path.delay.floor(now);
            let latest = self.soonest(now, key).saturating_sub(floor);
            if latest > now {
                self.synchroniser.on_left(key.1, latest.since(now));
            }
        }
    }

    /// Records that the Interest for `id` will not leave: its time is over.
    pub fn on_dropped(&mut self, now: Instant, id: SegmentId) {
        self.assembler.on_dropped(now, id);
        if self.source.is_standalone() {
            self.give_up((id.class, id.sequence));
        }
    }

    /// Records that the answer for `id` is lost, and not in any queue.
    pub fn on_lost(&mut self, now: Instant, id: SegmentId) {
        self.assembler.on_gone(now, id);
    }

    /// Takes an Interest that came back: it is sent again after a while. Without a reason, as publishers refuse what they do not
    /// have, it is one that is not answered: what the sample's lead says decides whether it is sent again.
    pub(super) fn on_nack(
        &mut self,
        now: Instant,
        id: SegmentId,
        nonce: Option<Nonce>,
        reason: NackReason,
    ) {
        if reason == NackReason::None {
            self.counters.interests_nacked += 1;
            return;
        }
        let timer = self.path.delay.timer(now);
        let wait = |attempts| match reason {
            NackReason::Duplicate => DUPLICATE_WAIT,
            NackReason::Congestion => timer.after(attempts),
            _ => timer.after(attempts).max(NO_ROUTE_WAIT),
        };
        if !self.assembler.on_nack(now, id, nonce, wait) {
            self.counters.drop_unwanted += 1;
            return;
        }
        self.counters.interests_nacked += 1;
        if reason == NackReason::Congestion {
            self.report_loss(id, Loss::Nack);
        }
    }

    /// Returns whether a sample is known to be published.
    pub(super) fn is_published(&self, key: SampleKey) -> bool {
        let newest = self.pipeline.newest(key.0);
        newest.is_some_and(|newest| key.1 <= newest) || self.assembler.has_lead(key)
    }
}
