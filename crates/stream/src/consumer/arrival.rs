//! Takes Data: verifies, measures, and puts samples together.

use std::cmp::Reverse;

use core::ops::RangeInclusive;
use core::time::Duration;

use namecast_packet::Data;
use namecast_units::{ByteSize, Instant};

use crate::ladder::PathEvent;
use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::rate::Arrival;
use crate::sample::{Lead, SampleHeader};

use super::assembly::{Accepted, Asked, Assembly, Complete};
use super::order::SampleKey;
use super::pipeline::Advance;
use super::repair::LONG_QUEUE;
use super::segments::SegmentCounts;
use super::timeline::{CLOCK_WAS_SET, LeadArrival};
use super::{Consumer, Delivery, Output};

/// Samples by which encoders that do not keep time may be ahead.
const UNEVEN: u64 = 8;

/// A lead that verified, and the Interest that brought it.
struct Arrived {
    key: SampleKey,
    lead: Lead,
    asked: Asked,
}

impl Consumer {
    /// Takes segment `id`, whatever it claims to be.
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        id: SegmentId,
        data: &Data,
        delivery: Delivery,
    ) {
        let size = ByteSize::of(data.wire());
        self.counters.wire_octets += size.as_bytes();
        let key = (id.class, id.sequence);
        if matches!(id.kind, SegmentKind::Parity | SegmentKind::Across) {
            self.counters.parity_octets += size.as_bytes();
        }
        let Some(asked) = self.take_asked(id, size, delivery) else {
            self.recovery.progress.still_moves(now);
            return;
        };
        let is_of_sample = id.kind != SegmentKind::Across;
        if is_of_sample {
            self.on_any_segment(now, key, asked.first_at);
            self.learn_reordering(now, id, asked);
        }
        self.learn_lag(now, id, &asked);
        self.note_progress(now, id, &asked);
        let has_lead = |sample: &Assembly| sample.lead().is_some();
        let rtt = if !is_of_sample {
            self.on_across(now, id, data);
            None
        } else if !id.is_lead_or_copy() {
            self.on_follower(now, id, data);
            self.plain_round_trip(now, key, &asked)
        } else if self.samples.get(&key).is_some_and(has_lead) {
            self.counters.drop_surplus += 1;
            None
        } else {
            self.on_lead(now, id, asked, data)
        };
        let arrival = Arrival {
            asked_at: asked.last_at,
            rtt,
            size: ByteSize::of(&data.content().unwrap_or_default()),
            was_lost: (asked.attempts > 1 && !asked.is_insured) || asked.is_lost,
            is_limiting: false,
            congestion_marked: delivery.congestion_marked,
            offered_rate: None,
        };
        self.note_event(PathEvent::Data(arrival));
        self.finish_if_whole(now, key);
    }

    /// The Interest that `id` answers. Without one the packet is counted and dropped.
    fn take_asked(&mut self, id: SegmentId, size: ByteSize, delivery: Delivery) -> Option<Asked> {
        let Some(sample) = self.samples.get_mut(&(id.class, id.sequence)) else {
            self.counters.drop_unwanted += 1;
            return None;
        };
        let is_complete = sample.complete.is_some();
        let slot = sample.slot_mut(id.kind, id.index);
        let (asked, is_repair) = slot.map_or((None, false), |slot| {
            slot.insure_at = None;
            if core::mem::take(&mut slot.queued) {
                // Whatever it is worth, it answers what was to be requested again; if it is bad, that is decided anew.
                self.waiting -= 1;
                self.outputs.push_back(Output::WithdrawOne(id));
            }
            let asked = slot.asked.take();
            if asked.is_some() {
                slot.from_face = delivery.face;
            }
            (asked, slot.is_repair)
        });
        match asked {
            Some(_) => {
                self.outstanding -= 1;
                self.counters.repair_octets += if is_repair { size.as_bytes() } else { 0 };
            }
            None if is_complete => self.counters.drop_surplus += 1,
            None => self.counters.drop_unwanted += 1,
        }
        asked
    }

    /// Learns by how much packets overtake each other, from one that came after it was thought lost.
    fn learn_reordering(&mut self, now: Instant, id: SegmentId, asked: Asked) {
        let least = self.delay.least(now).unwrap_or_default();
        // An answer that came sooner than possible belongs to an earlier transmission.
        let is_late_answer = asked.attempts > 1 && now.since(asked.last_at) * 4 < least * 3;
        let Some(sample) = self.samples.get(&(id.class, id.sequence)) else {
            return;
        };
        let stray_at = sample.stray_at.filter(|_| id.is_lead());
        let thought_lost = [sample.overtaken_at, stray_at].into_iter().flatten().min();
        let Some(thought_lost) = thought_lost else {
            return;
        };
        let was_due = asked.attempts == 1 && asked.last_at + least <= thought_lost;
        if is_late_answer || was_due {
            let by = now.since(thought_lost);
            self.reordering.push(now, Reverse(by));
        }
    }

    fn on_follower(&mut self, now: Instant, id: SegmentId, data: &Data) {
        let key = (id.class, id.sequence);
        let reordering = self.reordering(now);
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        if sample.lead().is_none() && self.strays >= self.config.most_strays {
            self.counters.drop_strays += 1;
            return;
        }
        match sample.accept(id.kind, id.index, data.clone()) {
            Accepted::Here => self.believe(key),
            Accepted::Again => {}
            Accepted::Bad => self.on_bad(now, key, id.kind, id.index),
            Accepted::Stray => {
                self.strays += 1;
                if sample.lacks_lead() {
                    sample.stray_at.get_or_insert(now);
                    sample.wake_by(now + reordering);
                }
            }
        }
    }

    /// Takes what claims to be a lead. Gives the DRD that it measured, if it could.
    fn on_lead(
        &mut self,
        now: Instant,
        id: SegmentId,
        asked: Asked,
        data: &Data,
    ) -> Option<Duration> {
        let key = (id.class, id.sequence);
        let Some(verifier) = self.verifier.clone() else {
            if self.strays < self.config.most_strays && id.is_lead() {
                let sample = self.samples.get_mut(&key)?;
                let kept = sample.keep_unjudged_lead(data.clone());
                self.strays += usize::from(kept == Accepted::Stray);
            } else {
                self.counters.drop_strays += 1;
            }
            return None;
        };
        if data.verify(&*verifier).is_err() {
            self.on_bad(now, key, id.kind, id.index);
            return None;
        }
        if !id.is_lead() {
            self.counters.recovered_copy += 1;
            // Only the lead itself was waited for; a copy measures nothing.
            return self.take_lead(now, key, Asked::unmeasured(now), data);
        }
        self.keep_lead(key, &asked, data);
        let measured = self.take_lead(now, key, asked, data);
        self.rebuild(now, key);
        measured
    }

    /// Takes what a verified lead says. Gives the DRD that it measured, if it could.
    pub(super) fn take_lead(
        &mut self,
        now: Instant,
        key: SampleKey,
        asked: Asked,
        data: &Data,
    ) -> Option<Duration> {
        match self.read_lead(key, data) {
            Some(lead) => self.accept_lead(now, Arrived { key, lead, asked }),
            None => {
                self.counters.drop_malformed += 1;
                self.give_up(key);
                None
            }
        }
    }

    /// The lead in `data`, unless it contradicts itself, or points to where nothing can be.
    fn read_lead(&self, key: SampleKey, data: &Data) -> Option<Lead> {
        let lead = Lead::decode(data).ok()?;
        let most = self.config.most_segments as usize;
        if lead.data_count() > most || lead.parity_count() > most {
            return None;
        }
        let other = match key.0 {
            SampleClass::Key if self.source.is_standalone() => return Some(lead),
            SampleClass::Key => SampleClass::Delta,
            SampleClass::Delta => SampleClass::Key,
        };
        let known = self.pipeline.newest(other);
        let near = known.is_none_or(|known| {
            lead.header().other_sequence.saturating_sub(known) <= self.config.most_jump
        });
        near.then_some(lead)
    }

    /// Judges leads that came before the key that signs.
    pub(super) fn judge_kept_leads(&mut self, now: Instant) {
        let keys: Vec<_> = self.samples.keys().copied().collect();
        for key in keys {
            let Some(sample) = self.samples.get_mut(&key) else {
                continue;
            };
            let Some(data) = sample.take_unjudged_lead() else {
                continue;
            };
            self.strays -= 1;
            // It was answered long ago.
            let asked = Asked::unmeasured(now);
            self.on_lead(now, SegmentId::lead(key.0, key.1), asked, &data);
            self.finish_if_whole(now, key);
        }
    }

    fn accept_lead(&mut self, now: Instant, arrived: Arrived) -> Option<Duration> {
        let Arrived { key, lead, asked } = arrived;
        let header = lead.header().clone();
        let delay = self.measure(now, key, &lead, &asked);
        self.counters.leads += 1;
        let counts = SegmentCounts::of(&lead);
        let is_doubtful =
            counts.data > self.segments.estimate(key.0).data && self.repair.doubts_claims();
        if !is_doubtful {
            self.segments.observe(key.0, counts);
        }
        let share = header.payload_size / lead.data_count().max(1);
        self.segments.observe_size(key.0, share);
        self.note_lead(now, key, &header);
        self.note_published(now, key, &header);
        self.pipeline.on_lead(now);

        if key.0 == SampleClass::Delta && self.playback.order().is_useless(header.other_sequence) {
            self.counters.drop_undecodable += 1;
            self.remove(key);
            return delay;
        }
        if !self.has_room_to_assemble(key, &lead) {
            self.counters.drop_no_room += 1;
            self.give_up(key);
            return delay;
        }
        let sample = self.samples.get_mut(&key)?;
        let (strays, out) = (sample.strays(), sample.outstanding());
        let (waiting, awaited) = (sample.waiting(), sample.awaited());
        let bad = sample.accept_lead(now, lead);
        let gone = awaited
            .into_iter()
            .filter(|(kind, index)| sample.slot(*kind, *index).is_none());
        let gone: Vec<_> = gone.collect();
        // A segment that came before it was proof enough.
        sample.is_doubtful = is_doubtful && sample.here() < 2;
        if is_doubtful && !sample.is_doubtful {
            self.segments.observe(key.0, counts);
        }
        self.strays -= strays - sample.strays();
        self.outstanding -= out - sample.outstanding();
        self.waiting -= waiting - sample.waiting();
        self.buffered += header.payload_size;
        for (kind, index) in gone {
            let (class, sequence) = key;
            let id = SegmentId {
                class,
                sequence,
                kind,
                index,
            };
            self.outputs.push_back(Output::Forget(id));
        }
        for (kind, index) in bad {
            self.on_bad(now, key, kind, index);
        }
        if self.ask_claimed(key) {
            self.repair.hedge_missing(self, now, key);
        }
        self.wake_for_check(now, key);
        delay
    }

    /// Whether tables have room for what `lead` says of its sample: its payload, and the Interests that it takes.
    fn has_room_to_assemble(&self, key: SampleKey, lead: &Lead) -> bool {
        let known = self
            .samples
            .get(&key)
            .map_or(0, |sample| sample.slots().count());
        let segments = lead.data_count() + lead.parity_count();
        let buffered = self.buffered + lead.header().payload_size;
        buffered <= self.config.most_buffered && self.can_ask(segments.saturating_sub(known))
    }

    /// Learns from when, and for whom, a lead was published. Gives the DRD if the lead shows it.
    fn measure(
        &mut self,
        now: Instant,
        key: SampleKey,
        lead: &Lead,
        asked: &Asked,
    ) -> Option<Duration> {
        let header = lead.header();
        let asked_ahead = self
            .samples
            .get(&key)
            .is_some_and(|sample| sample.asked_ahead);
        let rtt = now.since(asked.last_at);
        let since_first = now.since(asked.first_at);
        let once = asked.attempts == 1 || asked.is_insured;
        let nonce = header.asked.map(|asked| asked.nonce);
        let is_ours = asked.attempts > 0 && nonce.is_some_and(|n| asked.nonces.contains(&n));
        self.counters.leads_for_others += u64::from(!is_ours);
        let is_first_nonce = is_ours && nonce == Some(asked.nonces[0]);
        if asked.is_insured && is_ours {
            self.note_insured(!is_first_nonce);
        }
        let waited = match header.asked {
            Some(oldest) if is_first_nonce => Some((since_first, oldest.waited_for)),
            Some(oldest) if is_ours && asked.is_insured => Some((rtt, oldest.waited_for)),
            // Nobody waited when it was published, so our Interest came too late to wait.
            None if asked_ahead && asked.attempts == 1 => Some((rtt, Duration::ZERO)),
            None if asked_ahead && asked.attempts > 0 => Some((since_first, Duration::ZERO)),
            _ => None,
        };
        let mut measured = None;
        match waited {
            Some((rtt, waited)) if once => {
                self.delay.on_own(now, rtt, waited);
                let round_trip = rtt.saturating_sub(waited);
                measured = Some(round_trip);
                self.outputs.push_back(Output::RoundTrip(round_trip));
                self.synchroniser.on_delay(rtt.saturating_sub(waited));
            }
            Some((rtt, waited)) => self.delay.on_ambiguous(now, rtt, waited),
            None if asked.attempts == 1 => self.delay.on_plain(now, rtt),
            None => {}
        }
        let tells_base = self.tells_base(key.0);
        let available_at = self.timeline.on_arrival(
            now,
            &LeadArrival {
                published_at: header.published_at(),
                asked_ahead,
                is_live: asked_ahead && (once || is_first_nonce),
                tells_base,
                rebuffers: tells_base && self.synchroniser.take_rebuffers(),
                is_queued: self.outlook.queueing > LONG_QUEUE,
            },
        );
        let group = self.group(key);
        // By a clock that was set, it would have been here long before it was requested.
        if now.since(available_at) < CLOCK_WAS_SET {
            self.outputs.push_back(Output::Revise(group, available_at));
        }
        if asked_ahead {
            let waited = waited.filter(|_| once || is_first_nonce);
            self.learn_ahead(now, key, header, waited.map(|(_, waited)| waited));
        }
        measured
    }

    /// Moves the pipeline on: `key` is published, and so is what it refers to.
    fn note_published(&mut self, now: Instant, key: SampleKey, header: &SampleHeader) {
        let (class, sequence) = key;
        let other = header.other_sequence;
        if self.pipeline.newest(class).is_none_or(|n| sequence > n) {
            self.pipeline.on_arrival(now, class, sequence);
        }
        self.on_published(now, class, sequence);
        match class {
            SampleClass::Key if !self.source.is_standalone() => {
                self.on_key_published(now, sequence, other);
            }
            SampleClass::Key => {}
            SampleClass::Delta => {
                self.on_published(now, SampleClass::Key, other);
                self.mark_overtaken(now, SampleClass::Key, other..=other);
            }
        }
    }

    /// Key sample `sequence` is published, and `next` is the delta sample after it.
    fn on_key_published(&mut self, now: Instant, sequence: u64, next: u64) {
        let before = next.saturating_sub(1);
        if !self.pipeline.has_started(SampleClass::Delta) {
            self.pipeline.start(now, SampleClass::Delta, next, before);
        }
        if self.pipeline.take_start(sequence) {
            self.catch_up_from(sequence, next);
        }
        self.on_published(now, SampleClass::Delta, before);
        self.mark_overtaken(now, SampleClass::Delta, before..=before);
    }

    /// Samples behind the live edge that there is room to catch up with: of key samples among others no more than are ever
    /// asked for ahead, since nobody would show them.
    fn room_to_catch_up(&self, class: SampleClass) -> u64 {
        let room = self.config.most_samples as u64 / 2;
        match class == self.clocked_class() {
            true => room,
            false => room.min(self.config.most_lead.saturating_add(1)),
        }
    }

    /// Samples behind the live edge that are caught up with: as many as were published since the last one came, or can
    /// still be shown. Numbers that were skipped are of samples that never existed, and would take the place of others.
    fn most_catching_up(&self, now: Instant, class: SampleClass) -> u64 {
        let silence = self
            .pipeline
            .last_arrival()
            .map_or(Duration::ZERO, |at| now.since(at));
        let period = self.source.rate.period().as_nanos().max(1);
        let samples = (silence + self.timeline.target()).as_nanos() / period;
        let samples = u64::try_from(samples).unwrap_or(u64::MAX);
        let interval = u64::from(self.source.key_interval.max(1));
        let likely = match class == self.clocked_class() {
            true => samples.saturating_add(UNEVEN),
            false => samples / interval + 2,
        };
        likely.min(self.room_to_catch_up(class))
    }

    /// Asks for the delta samples between the key sample playback starts with and the live edge.
    pub(super) fn catch_up_from(&mut self, key: u64, next: u64) {
        let Some(first) = self.pipeline.first(SampleClass::Delta) else {
            return;
        };
        let behind = first.saturating_sub(next);
        if behind > self.room_to_catch_up(SampleClass::Delta) {
            // Too long a group to catch up with: its successor comes sooner.
            self.playback.skip_to(key.saturating_add(1));
        } else if behind > 0 {
            self.pipeline.catch_up(next..first);
        }
    }

    /// Takes note that sample `sequence` of `class` is published, by whatever says so.
    pub(super) fn on_published(&mut self, now: Instant, class: SampleClass, sequence: u64) {
        match self.pipeline.advance(class, sequence) {
            Advance::Overtakes(range) if !range.is_empty() => {
                if self.missed(class, Some(sequence)) > self.most_catching_up(now, class) {
                    // Too many to catch up with, if they exist at all.
                    self.pipeline.skip_to(class, sequence);
                }
                self.forget_attempts(class, range.start.saturating_add(1)..=range.end);
                self.mark_overtaken(now, class, range.start..=range.end - 1);
            }
            Advance::Refused => self.counters.refused_jumps += 1,
            Advance::Overtakes(_) | Advance::Known => {}
        }
    }

    /// Samples in `range` exist now: what was asked for in vain before says nothing of whether they will come.
    fn forget_attempts(&mut self, class: SampleClass, range: RangeInclusive<u64>) {
        let range = (class, *range.start())..=(class, *range.end());
        for (_, sample) in self.samples.range_mut(range) {
            sample.forget_attempts();
        }
    }

    fn mark_overtaken(&mut self, now: Instant, class: SampleClass, range: RangeInclusive<u64>) {
        let look_at = now + self.reordering(now);
        let range = (class, *range.start())..=(class, *range.end());
        for (_, sample) in self.samples.range_mut(range) {
            if sample.complete.is_none() && sample.overtaken_at.is_none() {
                sample.overtaken_at = Some(now);
                sample.wake_by(look_at);
            }
        }
    }

    /// A packet was not what it should be: it is asked for again, past all caches.
    fn on_bad(&mut self, now: Instant, key: SampleKey, kind: SegmentKind, index: u64) {
        self.counters.drop_verification += 1;
        self.outputs.push_back(Output::Disbelieve(SegmentId {
            class: key.0,
            sequence: key.1,
            kind,
            index,
        }));
        let published = self.is_published(key);
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        let Some(slot) = sample.slot_mut(kind, index) else {
            return;
        };
        slot.must_be_fresh = true;
        // Bad packets can come as fast as we ask; a sample that is not out yet gets no more attempts than others.
        if slot.attempts >= self.config.most_attempts {
            match published {
                // Others of its segments may make up for it.
                true => sample.wake_by(now),
                false => self.mark_given_up(key),
            }
            return;
        }
        self.queue_repair(key, kind, index);
    }

    pub(super) fn finish_if_whole(&mut self, now: Instant, key: SampleKey) {
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        let Some((payload, used_parity)) = sample.try_assemble() else {
            return;
        };
        let published_at = sample.lead().map(|lead| lead.header().published_at());
        let render_at = published_at.map(|at| self.timeline.render_at(now, at));
        let late = render_at.is_some_and(|at| now > at);
        let asked_again = sample.was_asked_again();
        self.note_whole(now, key);
        self.note_losses(key);
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        self.counters.complete += 1;
        self.counters.payload_octets += payload.len() as u64;
        self.counters.recovered_parity += u64::from(used_parity);
        self.counters.recovered_retransmission += u64::from(asked_again && !used_parity);
        self.counters.late += u64::from(late && !self.playback.is_catching_up());
        let (out, waiting, awaited) = (sample.outstanding(), sample.waiting(), sample.awaited());
        sample.finish(Complete {
            at: now,
            late,
            payload,
        });
        self.outstanding -= out - sample.outstanding();
        self.waiting -= waiting - sample.waiting();
        let (class, sequence) = key;
        let gone = awaited.into_iter().map(|(kind, index)| SegmentId {
            class,
            sequence,
            kind,
            index,
        });
        self.outputs.extend(gone.map(Output::WithdrawOne));
    }

    /// Drops a sample and whatever is out for it.
    pub(super) fn remove(&mut self, key: SampleKey) -> Option<Assembly> {
        let sample = self.samples.remove(&key)?;
        self.synchroniser.on_gone(key);
        self.outstanding -= sample.outstanding();
        self.waiting -= sample.waiting();
        self.strays -= sample.strays();
        if sample.outstanding() + sample.waiting() > 0 {
            self.outputs.push_back(Output::Withdraw(self.group(key)));
        }
        self.buffered -= sample.size();
        Some(sample)
    }
}
