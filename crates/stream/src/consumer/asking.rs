//! Sends Interests: ahead of production, for what a lead says is missing, and again for what was lost.

use core::time::Duration;

use namecast_packet::{Interest, Nonce, lp::NackReason};
use namecast_units::{ByteSize, Instant};

use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::rate::Loss;

use super::Consumer;
use super::assembly::{Asked, Assembly};
use super::order::SampleKey;
use super::retransmit::Situation;

/// Bounds of the time that packets are given to overtake each other before they were seen to do so.
const LEAST_REORDERING: Duration = Duration::from_millis(2);
const USUAL_REORDERING: Duration = Duration::from_millis(10);
/// Wait after a Nack that says that there is no way to the producer; routes need time to come back.
const NO_ROUTE_WAIT: Duration = Duration::from_millis(100);

impl Consumer {
    /// Asks for samples up to λ ahead, while tables have room.
    pub(super) fn ask_ahead(&mut self, now: Instant) {
        self.make_room();
        let delay = self.ahead_by(now);
        for class in SampleClass::ALL {
            while self.has_room() {
                let Some(sequence) = self.pipeline.next(class, delay) else {
                    break;
                };
                self.ask_sample(now, class, sequence);
            }
        }
    }

    /// Time before a sample's arrival at best that its Interest must leave: DRD, and what the newest sample was late by.
    pub(super) fn ahead_by(&self, now: Instant) -> Duration {
        self.delay.estimate(now) + self.lateness
    }

    fn has_room(&self) -> bool {
        self.samples.len() < self.config.most_samples
            && self.outstanding + self.repairs.len() + self.wanted.len()
                < self.config.most_outstanding
            && self.buffered < self.config.most_buffered
    }

    fn ask_sample(&mut self, now: Instant, class: SampleClass, sequence: u64) {
        let key = (class, sequence);
        if self.samples.contains_key(&key) {
            return;
        }
        let counts = self.segments.estimate(class);
        let mut sample = Assembly::new(class, sequence, counts);
        sample.asked_ahead = self
            .pipeline
            .newest(class)
            .is_none_or(|newest| sequence > newest);
        let ids: Vec<_> = sample
            .slots()
            .map(|(kind, index, _)| SegmentId {
                class,
                sequence,
                kind,
                index,
            })
            .collect();
        for id in &ids {
            if let Some(slot) = sample.slot_mut(id.kind, id.index) {
                slot.queued = true;
            }
        }
        self.wanted.extend(ids);
        self.samples.insert(key, sample);
        let checkpoint = self.checkpoint(now, key);
        if let Some(sample) = self.samples.get_mut(&key) {
            sample.wake_by(checkpoint.max(now));
        }
    }

    /// Queues Interests for all segments of a sample that nobody asked for yet: the N − M that its lead tells of.
    pub(super) fn ask_missing(&mut self, key: SampleKey) {
        let Some(sample) = self.samples.get(&key) else {
            return;
        };
        let missing: Vec<_> = sample
            .slots()
            .filter(|(_, _, slot)| slot.is_missing() && slot.asked.is_none() && !slot.queued)
            .map(|(kind, index, _)| (kind, index))
            .collect();
        for (kind, index) in missing {
            self.queue_repair(key, kind, index);
        }
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
            let target = self.controller.target();
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
        let Some(sample) = self.samples.get_mut(&key) else {
            return false;
        };
        let Some(slot) = sample.slot_mut(id.kind, id.index) else {
            return false;
        };
        if !core::mem::take(&mut slot.queued) || !slot.is_missing() {
            return false;
        }
        let nonce = Nonce::from(self.random.next_u64() as u32);
        let timer = self.delay.timeout(now, slot.attempts);
        let retry_at = (now + lifetime).min(now.max(expected_at) + timer);
        let again = slot.attempts > 0;
        slot.attempts = slot.attempts.saturating_add(1);
        let before = slot.asked.map(|asked| (asked.first_at, asked.nonces[0]));
        let (first_at, first) = before.unwrap_or((now, nonce));
        let is_new = slot
            .asked
            .replace(Asked {
                first_at,
                last_at: now,
                nonces: [first, nonce],
                attempts: slot.attempts,
                retry_at,
                is_lost: false,
            })
            .is_none();
        let must_be_fresh = slot.must_be_fresh;
        // The face that gave a bad packet is the wrong one to ask again.
        let avoid_face = slot.from_face.filter(|_| must_be_fresh);
        sample.wake_by(retry_at);
        self.outstanding += usize::from(is_new);
        self.counters.interests_sent += 1;
        self.counters.interests_retransmitted += u64::from(again);
        let interest = Interest::builder(self.source.names.segment(id)).lifetime(lifetime);
        let interest = if must_be_fresh {
            interest.must_be_fresh()
        } else {
            interest
        };
        self.outputs.push_back(super::Output::Interest {
            interest: interest.build(nonce),
            avoid_face,
        });
        true
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

    /// When what is still missing of a sample should be asked for again, so that one more round trip fits before its
    /// deadline: γ·DRD before it (RTSD §3.4).
    pub(super) fn checkpoint(&self, now: Instant, key: SampleKey) -> Instant {
        let margin = self.delay.estimate(now).mul_f64(self.config.checkpoint);
        let lead = self.samples.get(&key).and_then(Assembly::lead);
        match lead {
            Some(lead) => self
                .playout
                .render_at(now, lead.header().published_at())
                .saturating_sub(margin),
            None => {
                let expected = self.pipeline.expected_at(key.0, key.1);
                let deadline = expected + self.playout.target;
                // A delta sample after a key sample comes one period later than the one before promised.
                let soonest = expected + self.source.rate.period() + self.reordering(now);
                deadline.saturating_sub(margin).max(soonest)
            }
        }
    }

    /// Time that packets are given to overtake each other: what was seen in the last seconds and a quarter, or the usual
    /// time if that is more.
    pub(super) fn reordering(&self, now: Instant) -> Duration {
        let delay = self.delay.estimate(now);
        let usual = (delay / 8).clamp(LEAST_REORDERING, USUAL_REORDERING);
        let seen = self
            .reordering
            .minimum(now)
            .map_or(Duration::ZERO, |seen| seen.0);
        (seen * 5 / 4).min(delay / 2).max(usual)
    }

    /// Looks at every sample whose time has come.
    pub(super) fn repair_due(&mut self, now: Instant) {
        let due: Vec<_> = self
            .samples
            .iter()
            .filter(|(_, sample)| sample.wake.is_some_and(|wake| wake <= now))
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            self.repair(now, key);
        }
    }

    fn repair(&mut self, now: Instant, key: SampleKey) {
        let delay = self.delay.estimate(now);
        let situation = Situation {
            now,
            delay,
            least_delay: self.delay.least(now).unwrap_or(delay).min(delay),
            reordering: self.reordering(now),
            checkpoint: self.checkpoint(now, key),
            published: self.is_published(key),
            most_attempts: self.config.most_attempts,
        };
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        if sample.complete.is_some() {
            sample.wake = None;
            return;
        }
        let repair = situation.repair(sample);
        for &(kind, index) in &repair.timed_out {
            if let Some(slot) = sample.slot_mut(kind, index) {
                let timer = self.delay.timeout(now, slot.attempts);
                if let Some(asked) = &mut slot.asked {
                    asked.retry_at = now + timer;
                }
            }
        }
        sample.given_up |= repair.give_up;
        sample.checked |= situation.checkpoint <= now;
        sample.wake = situation.next_look(sample);
        let timed_out = repair.timed_out.len() as u64;
        self.counters.interests_timed_out += timed_out;
        for &(kind, index) in &repair.timed_out {
            self.report_loss(now, key, (kind, index), Loss::Timeout);
        }
        for (kind, index) in repair.again {
            self.report_loss(now, key, (kind, index), Loss::Gap);
            self.queue_repair(key, kind, index);
        }
        if repair.give_up {
            self.on_given_up(key);
        }
    }

    /// Tells the controller of a loss, once per transmission.
    fn report_loss(
        &mut self,
        now: Instant,
        key: SampleKey,
        (kind, index): (SegmentKind, u64),
        loss: Loss,
    ) {
        let asked = self
            .samples
            .get_mut(&key)
            .and_then(|sample| sample.slot_mut(kind, index))
            .and_then(|slot| slot.asked.as_mut());
        if let Some(asked) = asked.filter(|asked| !asked.is_lost) {
            asked.is_lost = true;
            let asked_at = asked.last_at;
            self.on_loss(now, asked_at, loss);
        }
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
            NackReason::Duplicate => now + LEAST_REORDERING,
            NackReason::Congestion => now + timer,
            _ => now + timer.max(NO_ROUTE_WAIT),
        };
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
