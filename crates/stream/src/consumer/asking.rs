//! Sends Interests: ahead of production, for what a lead says is missing, and again for what was lost.

use core::time::Duration;

use namecast_packet::{Interest, Nonce, lp::NackReason};
use namecast_units::{ByteSize, Instant};

use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::rate::Loss;
use crate::sample::MAX_LEAD_COPIES;

use super::Consumer;
use super::assembly::{Asked, Assembly};
use super::order::SampleKey;

/// Wait after a Nack that says that the Nonce was seen before.
const DUPLICATE_WAIT: Duration = Duration::from_millis(2);
/// Wait after a Nack that says that there is no way to the producer; routes need time to come back.
const NO_ROUTE_WAIT: Duration = Duration::from_millis(100);

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
        let queued = self.repairs.len() + self.wanted.len() + self.pacing.len();
        let asked = self.outstanding + queued;
        asked + segments <= self.config.most_outstanding
    }

    pub(super) fn ask_sample(&mut self, now: Instant, class: SampleClass, sequence: u64) {
        let key = (class, sequence);
        if self.samples.contains_key(&key) {
            return;
        }
        let mut counts = self.segments.estimate(class);
        let newest = self.pipeline.newest(class);
        let asked_ahead = newest.is_none_or(|newest| sequence > newest);
        if asked_ahead && !self.follows_paper() && !self.has_time_to_repair(now, class) {
            // One that turns out larger could not be asked for the rest in time; what it does not have costs no Data.
            counts.data = (counts.data + counts.parity.max(1)).min(self.config.most_segments);
        }
        let copies = match self.follows_paper() {
            true => 0,
            false => self.config.recovery.lead_copies.min(MAX_LEAD_COPIES),
        };
        let parity = match asked_ahead && !self.follows_paper() {
            true => self.parity_ahead(now, class, counts.data),
            // To catch up, a round trip for what turns out to be missing is worth more than some parity.
            false => counts.parity,
        };
        let mut sample = Assembly::new(class, sequence, counts, copies);
        sample.asked_ahead = asked_ahead;
        if asked_ahead {
            let count = self.across_ahead(now, key);
            sample.expect_across(count);
            if count > 0 {
                self.groups.expect(key);
            }
        }
        self.on_asked_ahead(now, key, asked_ahead);
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
        for id in ids.iter().chain(&across) {
            if let Some(slot) = sample.slot_mut(id.kind, id.index) {
                slot.queued = true;
            }
        }
        self.samples.insert(key, sample);
        let ids = match asked_ahead {
            true => self.pace_sample(now, key, ids),
            false => ids,
        };
        self.wanted.extend(ids.into_iter().chain(across));
        self.wake_for_check(now, key);
    }

    /// Looks at a sample again when what is missing of it should be asked for.
    pub(super) fn wake_for_check(&mut self, now: Instant, key: SampleKey) {
        let at = match self.follows_paper() {
            true => self.checkpoint(now, key),
            false => self.due_at(now, key),
        };
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
        let all = self.follows_paper();
        let missing: Vec<_> = sample
            .slots()
            .filter(|(kind, _, _)| all || *kind == SegmentKind::Data)
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
        let slot = self
            .samples
            .get_mut(&key)
            .and_then(|sample| sample.slot_mut(kind, index));
        let Some(slot) = slot.filter(|slot| !slot.queued) else {
            return;
        };
        slot.queued = true;
        self.repairs.push_back(SegmentId {
            class,
            sequence,
            kind,
            index,
        });
    }

    pub(super) fn has_queued(&self) -> bool {
        !(self.repairs.is_empty() && self.wanted.is_empty()) && self.window_is_open()
    }

    fn window_is_open(&self) -> bool {
        let window = self.controller.target().window;
        window.is_none_or(|window| self.outstanding < window as usize)
    }

    /// Sends queued Interests as fast as the controller allows.
    pub(super) fn send_queued(&mut self, now: Instant) {
        loop {
            let target = self.target();
            if !self.has_queued() || self.pacer.next_send(target.rate) > now {
                return;
            }
            let next = self.repairs.pop_front();
            let Some(id) = next.or_else(|| self.wanted.pop_front()) else {
                return;
            };
            if self.send(now, id) {
                let segment = ByteSize::bytes(u64::from(self.source.segment_size));
                let size = target.packet_size.unwrap_or(segment);
                self.pacer.on_sent(now, size, target.rate);
                self.usage.on_sent(now, size);
            }
        }
    }

    /// Whether the controller is what keeps more from being asked for.
    pub(super) fn is_limited(&mut self, now: Instant) -> bool {
        let target = self.controller.target();
        match (target.rate, target.window) {
            (Some(rate), _) => self.usage.is_limited_by(now, rate),
            (None, Some(window)) => self.outstanding * 2 >= window as usize,
            (None, None) => false,
        }
    }

    /// Sends the Interest for `id`, unless it is no longer needed.
    fn send(&mut self, now: Instant, id: SegmentId) -> bool {
        let key = (id.class, id.sequence);
        let published = self.is_published(key);
        let lifetime = self.lifetime(id.class, now);
        let expected_at = match published {
            true => now,
            false => self.pipeline.expected_at(id.class, id.sequence) + self.source.rate.period(),
        };
        let insure_at = self.insure_at(now, id).filter(|_| !published);
        let round_trip = self.delay.timeout(now, 0);
        let follows_paper = self.follows_paper();
        let is_full = self.outstanding >= self.config.most_outstanding;
        let Some(sample) = self.samples.get_mut(&key) else {
            return false;
        };
        let is_early = sample.asked_ahead && !published;
        let Some(slot) = sample.slot_mut(id.kind, id.index) else {
            return false;
        };
        if !core::mem::take(&mut slot.queued) || !slot.is_missing() {
            return false;
        }
        if is_full && slot.asked.is_none() {
            // The next look at the sample plans anew.
            return false;
        }
        let nonce = Nonce::from(self.random.next_u64() as u32);
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
                order: self.counters.interests_sent,
                nonces: [first, nonce],
                attempts: slot.attempts,
                retry_at,
                is_lost: false,
                is_insured: insures,
                is_nacked: false,
            })
            .is_none();
        // The face that gave a bad packet is the wrong one to ask again.
        let avoid_face = slot.from_face.filter(|_| slot.must_be_fresh);
        let must_be_fresh = slot.must_be_fresh || self.fresh_until.is_some_and(|until| now < until);
        let look_at = match slot.insure_at {
            _ if follows_paper => retry_at,
            Some(insure_at) => insure_at,
            None => now + round_trip,
        };
        sample.wake_by(look_at);
        self.outstanding += usize::from(is_new);
        self.counters.interests_insured += u64::from(insures);
        self.counters.interests_sent += 1;
        self.counters.interests_retransmitted += u64::from(again && !insures);
        let interest = Interest::builder(self.source.names.segment(id)).lifetime(lifetime);
        let interest = match must_be_fresh {
            true => interest.must_be_fresh(),
            false => interest,
        };
        self.put_out(interest.build(nonce), avoid_face);
        true
    }

    fn put_out(&mut self, interest: Interest, avoid_face: Option<u64>) {
        self.outputs.push_back(super::Output::Interest {
            interest,
            avoid_face,
        });
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
