//! Sends Interests: ahead of production, for what a lead says is missing, and again for what was lost.

use core::time::Duration;

use namecast_packet::{Nonce, lp::NackReason};
use namecast_units::{ByteSize, Instant};

use crate::catalogue::StreamKind;
use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::path::{Group, Kind, Token, Want};
use crate::rate::Loss;

use super::assembly::{Asked, Assembly, Slot};
use super::order::SampleKey;
use super::timeline::CLOCK_WAS_SET;
use super::{Consumer, Output, PathOutlook};

/// Wait after a Nack that says that the Nonce was seen before.
const DUPLICATE_WAIT: Duration = Duration::from_millis(2);
/// Wait after a Nack that says that there is no way to the producer; routes need time to come back.
const NO_ROUTE_WAIT: Duration = Duration::from_millis(100);

/// Wait after an Interest that was not sent.
const DROPPED_WAIT: Duration = Duration::from_millis(50);
/// Segments of a sample that leave the producer together; others are spaced.
const AT_ONCE: u64 = 6;
/// What names, headers, digests and signatures add to a segment.
const HEADERS: f64 = 84.0;

impl Consumer {
    /// Whether the tables have room for another sample of `class`.
    pub(super) fn has_room(&self, class: SampleClass) -> bool {
        self.samples.len() < self.config.most_samples
            && self.can_ask(self.segments_expected(class))
            && self.buffered < self.config.most_buffered
    }

    /// Segments that the next sample of `class` is reckoned to have, parity included.
    pub(super) fn segments_expected(&self, class: SampleClass) -> usize {
        let counts = self.segments.estimate(class);
        (counts.data + counts.parity) as usize
    }

    /// Whether so many more segments may be asked for at a time.
    pub(super) fn can_ask(&self, segments: usize) -> bool {
        self.outstanding + self.waiting + segments <= self.config.most_outstanding
    }

    pub(super) fn ask_sample(&mut self, now: Instant, class: SampleClass, sequence: u64) {
        let key = (class, sequence);
        if self.samples.contains_key(&key) {
            return;
        }
        let mut counts = self.segments.estimate(class);
        // To catch up, a round trip for what turns out to be missing is worth more than some parity.
        let mut parity = counts.parity;
        let newest = self.pipeline.newest(class);
        let asked_ahead = newest.is_none_or(|newest| sequence > newest);
        if asked_ahead {
            let ahead = self.repair.ahead(self, now, class);
            (counts.data, parity) = (ahead.data, ahead.parity);
        }
        let copies = self.repair.lead_copies(&self.config.recovery);
        let mut sample = Assembly::new(class, sequence, counts, copies);
        sample.asked_ahead = asked_ahead;
        if asked_ahead {
            let count = self.across_ahead(now, key);
            sample.expect_across(count);
            if count > 0 {
                self.groups.expect(key);
            }
        }
        self.on_asked_ahead(key, asked_ahead);
        let id = |(kind, index, _)| SegmentId {
            class,
            sequence,
            kind,
            index,
        };
        let ids: Vec<_> = sample
            .slots()
            .filter(|(kind, index, _)| *kind == SegmentKind::Data || *index < u64::from(parity))
            .map(id)
            .collect();
        let across: Vec<_> = sample.across().map(id).collect();
        for id in ids.into_iter().chain(across) {
            if let Some(slot) = sample
                .slot_mut(id.kind, id.index)
                .filter(|_| self.can_ask(1))
            {
                slot.queued = true;
                self.waiting += 1;
                self.wanted.push_back(id);
            }
        }
        self.samples.insert(key, sample);
        self.wake_for_check(now, key);
    }

    /// Looks at a sample again when what is missing of it should be asked for.
    pub(super) fn wake_for_check(&mut self, now: Instant, key: SampleKey) {
        let at = self.repair.check_at(self, now, key);
        if let Some(sample) = self.samples.get_mut(&key) {
            sample.wake_by(at.max(now));
        }
    }

    /// Queues Interests for all segments of a sample that nobody asked for yet: the N − M that its lead tells of. Tells whether
    /// there are any.
    pub(super) fn ask_missing(&mut self, key: SampleKey) -> bool {
        self.ask_some(key, usize::MAX)
    }

    /// The same for no more than `most` of them.
    pub(super) fn ask_some(&mut self, key: SampleKey, most: usize) -> bool {
        let Some(sample) = self.samples.get(&key) else {
            return false;
        };
        let missing: Vec<_> = sample
            .slots()
            .filter(|(kind, _, _)| self.repair.requests_reported(*kind))
            .filter(|(_, _, slot)| slot.is_missing() && slot.asked.is_none() && !slot.queued)
            .map(|(kind, index, _)| (kind, index))
            .take(most)
            .collect();
        for &(kind, index) in &missing {
            self.queue_repair(key, kind, index);
        }
        !missing.is_empty()
    }

    /// Queues an Interest before all that ask for new samples.
    pub(super) fn queue_repair(&mut self, key: SampleKey, kind: SegmentKind, index: u64) {
        let (class, sequence) = key;
        let has_room = self.can_ask(1);
        let slot = self
            .samples
            .get_mut(&key)
            .and_then(|sample| sample.slot_mut(kind, index));
        // Without room, the next look at the sample plans anew.
        let may_queue = |slot: &&mut Slot| !slot.queued && (has_room || slot.asked.is_some());
        let Some(slot) = slot.filter(may_queue) else {
            return;
        };
        slot.queued = true;
        self.waiting += 1;
        self.repairs.push_back(SegmentId {
            class,
            sequence,
            kind,
            index,
        });
    }

    /// Passes on what is to be requested, repairs first.
    pub(super) fn express_queued(&mut self, now: Instant) {
        while let Some(id) = self.repairs.pop_front().or_else(|| self.wanted.pop_front()) {
            if let Some(want) = self.want(now, id) {
                self.outputs.push_back(Output::Want(want));
            }
        }
    }

    /// The want for `id`, unless it is no longer needed.
    fn want(&mut self, now: Instant, id: SegmentId) -> Option<Want> {
        let key = (id.class, id.sequence);
        let lifetime = self.lifetime(id.class, now);
        let available_at = self.available_at(now, key);
        let kind = self.kind_of(id);
        let is_fresh = self.fresh_until.is_some_and(|until| now < until);
        let size = self.expected_size(id);
        let due = available_at.map(|at| at + self.timeline.target());
        let is_standalone = self.source.is_standalone();
        let may_pace = self.repair.is_paced() && self.synchroniser.lead().is_none();
        let token = self.token(id);
        let slot = self.samples.get_mut(&key)?.slot_mut(id.kind, id.index)?;
        if !slot.queued {
            return None;
        }
        if !slot.is_missing() {
            slot.queued = false;
            self.waiting -= 1;
            return None;
        }
        let is_paced = id.kind == SegmentKind::Data && id.index >= AT_ONCE && slot.attempts == 0;
        Some(Want {
            token,
            name: self.source.names.segment(id),
            lifetime,
            must_be_fresh: slot.must_be_fresh || is_fresh,
            can_be_prefix: false,
            // The face that gave a bad packet is the wrong one to use again.
            avoid_face: slot.from_face.filter(|_| slot.must_be_fresh),
            kind,
            size,
            available_at,
            not_before: available_at.filter(|_| is_paced && may_pace),
            due,
            deadline: due.filter(|_| is_standalone && slot.attempts == 0),
        })
    }

    /// Size of the answer, on average: what may not exist brings nothing.
    fn expected_size(&self, id: SegmentId) -> ByteSize {
        let most = f64::from(self.source.segment_size);
        let whole = self.segments.size(id.class).min(most) + HEADERS;
        let has_lead = |sample: &Assembly| sample.lead().is_some();
        let is_sure = id.kind != SegmentKind::Data
            || id.index == 0
            || self
                .samples
                .get(&(id.class, id.sequence))
                .is_some_and(has_lead);
        if is_sure {
            return ByteSize::bytes(whole as u64);
        }
        let likelihood = self.segments.likelihood(id.class, id.index);
        ByteSize::bytes((whole * likelihood) as u64)
    }

    const fn token(&self, segment: SegmentId) -> Token {
        Token {
            client: self.client,
            segment,
        }
    }

    pub(super) const fn group(&self, (class, sequence): SampleKey) -> Group {
        Group {
            client: self.client,
            class,
            sequence,
        }
    }

    fn kind_of(&self, id: SegmentId) -> Kind {
        let slot = self.samples.get(&(id.class, id.sequence));
        let slot = slot.and_then(|sample| sample.slot(id.kind, id.index));
        match id.kind {
            _ if slot.is_some_and(|slot| slot.is_repair || slot.attempts > 0) => Kind::Repair,
            _ if self.source.kind == StreamKind::Audio => Kind::Sound,
            SegmentKind::Data if id.class == SampleClass::Key => Kind::Key,
            SegmentKind::Data => Kind::Delta,
            SegmentKind::Parity | SegmentKind::LeadCopy | SegmentKind::Across => Kind::Parity,
        }
    }

    /// When a sample could be here at the earliest, by what is known of its publication.
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

    /// Records that the Interest for `id` has left.
    pub fn on_sent(&mut self, now: Instant, id: SegmentId, nonce: Nonce, order: u64) {
        let key = (id.class, id.sequence);
        let published = self.is_published(key);
        let lifetime = self.lifetime(id.class, now);
        let expected_at = match published {
            true => now,
            false => self.pipeline.expected_at(id.class, id.sequence) + self.source.rate.period(),
        };
        let insure_at = self.insure_at(now, id).filter(|_| !published);
        let round_trip = self.delay.timeout(now, 0);
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        let is_early = sample.asked_ahead && !published;
        let Some(slot) = sample.slot_mut(id.kind, id.index) else {
            return;
        };
        self.waiting -= usize::from(core::mem::take(&mut slot.queued));
        let timer = self.delay.timeout(now, slot.attempts);
        let retry_at = (now + lifetime).min(now.max(expected_at) + timer);
        let again = slot.attempts > 0;
        slot.attempts = slot.attempts.saturating_add(1);
        if !again {
            slot.is_early = is_early;
            slot.insure_at = insure_at.filter(|_| is_early);
        }
        let earlier = slot.asked;
        let insures = earlier.is_some_and(|asked| asked.is_insured && asked.attempts == 1);
        let before = earlier.map(|asked| (asked.first_at, asked.nonces[0]));
        let (first_at, first) = before.unwrap_or((now, nonce));
        let is_new = slot
            .asked
            .replace(Asked {
                first_at,
                last_at: now,
                order,
                nonces: [first, nonce],
                attempts: slot.attempts,
                retry_at,
                is_lost: false,
                is_gone: false,
                is_insured: insures,
                is_nacked: false,
            })
            .is_none();
        let look_at = self.repair.check_sent_at(now + round_trip, retry_at);
        let look_at = slot.insure_at.unwrap_or(look_at);
        sample.wake_by(look_at);
        if id.is_lead() && !again {
            self.on_lead_sent(now, key);
        }
        self.outstanding += usize::from(is_new);
        self.counters.interests_insured += u64::from(insures);
        self.counters.interests_sent += 1;
        self.counters.interests_retransmitted += u64::from(again && !insures);
    }

    /// Records that the Interest for `id` will not leave: its time is over.
    pub fn on_dropped(&mut self, now: Instant, id: SegmentId) {
        let key = (id.class, id.sequence);
        if let Some(sample) = self.samples.get_mut(&key) {
            if let Some(slot) = sample.slot_mut(id.kind, id.index) {
                self.waiting -= usize::from(core::mem::take(&mut slot.queued));
            }
            sample.wake_by(now + DROPPED_WAIT);
        }
        if self.source.is_standalone() {
            self.give_up(key);
        }
    }

    /// Records that the answer for `id` is lost, and not in any queue.
    pub fn on_lost(&mut self, now: Instant, id: SegmentId) {
        if let Some(sample) = self.samples.get_mut(&(id.class, id.sequence)) {
            let slot = sample.slot_mut(id.kind, id.index);
            if let Some(asked) = slot.and_then(|slot| slot.asked.as_mut()) {
                asked.is_gone = true;
                sample.wake_by(now);
            }
        }
    }

    /// Sets what the path is like.
    pub const fn set_outlook(&mut self, outlook: PathOutlook) {
        self.outlook = outlook;
    }

    /// The path is no longer than it was before it was last found to be.
    pub fn on_path_shrank(&mut self, now: Instant) {
        self.timeline.on_path_shrank(now);
    }

    /// Every delay is longer by `shift` from now on.
    pub fn on_path_grew(&mut self, now: Instant, shift: Duration) {
        self.timeline.on_path_grew(now, shift);
        self.delay.raise(shift);
    }

    /// Long enough for the sample to appear, twice over, within what producers keep.
    fn lifetime(&self, class: SampleClass, now: Instant) -> Duration {
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

    pub(super) fn is_published(&self, (class, sequence): SampleKey) -> bool {
        let newest = self.pipeline.newest(class);
        let has_lead = || {
            let sample = self.samples.get(&(class, sequence));
            sample.is_some_and(|sample| sample.lead().is_some())
        };
        newest.is_some_and(|newest| sequence <= newest) || has_lead()
    }

    /// Takes an Interest that came back: it is sent again after a while.
    pub(super) fn on_nack(
        &mut self,
        now: Instant,
        id: SegmentId,
        nonce: Option<Nonce>,
        reason: NackReason,
    ) {
        let Some(sample) = self.samples.get_mut(&(id.class, id.sequence)) else {
            self.counters.drop_unwanted += 1;
            return;
        };
        let asked = sample
            .slot_mut(id.kind, id.index)
            .and_then(|slot| slot.asked.as_mut());
        // An earlier transmission that comes back says nothing of the last one.
        let Some(asked) = asked.filter(|asked| nonce.is_none_or(|n| n == asked.nonces[1])) else {
            self.counters.drop_unwanted += 1;
            return;
        };
        let timer = self.delay.timeout(now, asked.attempts);
        asked.retry_at = match reason {
            NackReason::Duplicate => now + DUPLICATE_WAIT,
            NackReason::Congestion => now + timer,
            _ => now + timer.max(NO_ROUTE_WAIT),
        };
        asked.is_nacked = true;
        let retry_at = asked.retry_at;
        sample.wake_by(retry_at);
        self.counters.interests_nacked += 1;
        if reason == NackReason::Congestion {
            self.report_loss(
                now,
                (id.class, id.sequence),
                (id.kind, id.index),
                Loss::Nack,
            );
        }
    }

    /// Queues every Interest that is out.
    pub(super) fn ask_everything_again(&mut self) {
        let mut again = Vec::new();
        for (key, sample) in &mut self.samples {
            let out: Vec<_> = sample
                .slots()
                .chain(sample.copies())
                .chain(sample.across())
                .filter(|(_, _, slot)| slot.asked.is_some() && slot.is_missing())
                .map(|(kind, index, _)| (kind, index))
                .collect();
            for (kind, index) in out {
                // The old transport lost them, not the network: they start anew.
                if let Some(slot) = sample.slot_mut(kind, index) {
                    slot.asked = None;
                    slot.attempts = 0;
                    self.outstanding -= 1;
                    self.counters.interests_retransmitted += 1;
                }
                again.push((*key, kind, index));
            }
        }
        for (key, kind, index) in again {
            self.queue_repair(key, kind, index);
        }
    }
}
