//! Takes Data: verifies, measures, and puts samples together.
//!
//! ```text
//!  packet ──▶ requested? ──▶ lead: signature ──▶ times, sizes, round trip ──▶ pipeline moves on
//!                 │          follower: digest, or kept until its lead comes ──▶ sample whole?
//!                 └ no: counted, dropped
//! ```

use core::time::Duration;

use namecast_packet::Data;
use namecast_units::{ByteSize, Instant};

use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::rate::Arrival;
use crate::rate::PathEvent;
use crate::sample::{Lead, SampleHeader};

use super::assembler::{Accepted, Asked, Assembly, Complete, Rejected, Slot};
use super::order::SampleKey;
use super::repair::{Came, LONG_QUEUE};
use super::synchroniser::FirstSegment;
use super::timeline::{CLOCK_WAS_SET, LeadArrival};
use super::{Consumer, Delivery, Output};

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
        if matches!(id.kind, SegmentKind::Parity | SegmentKind::Across) {
            self.counters.parity_octets += size.as_bytes();
        }
        let Some(asked) = self.take_asked(id, size, delivery) else {
            self.recovery.on_unwanted(now);
            return;
        };
        self.learn(now, id, &asked);
        let rtt = self.take(now, id, &asked, data);
        self.outputs.note(PathEvent::Data(Arrival {
            asked_at: asked.last_at,
            rtt,
            size: ByteSize::of(&data.content().unwrap_or_default()),
            was_lost: (asked.attempts > 1 && !asked.is_hedged) || asked.is_lost,
            is_limiting: false,
            congestion_marked: delivery.congestion_marked,
            offered_rate: None,
        }));
        self.finish_if_whole(now, (id.class, id.sequence));
    }

    /// Returns the Interest that `id` answers. Without one the packet is counted and dropped.
    fn take_asked(&mut self, id: SegmentId, size: ByteSize, delivery: Delivery) -> Option<Asked> {
        let Some(answered) = self.assembler.answer(id, delivery.face) else {
            self.counters.drop_unwanted += 1;
            return None;
        };
        if answered.was_queued {
            // Whatever it is worth, it answers what was to be requested again; if it is bad, that is decided anew.
            self.outputs.push(Output::WithdrawOne(id));
        }
        match answered.asked {
            Some(_) if answered.is_repair => self.counters.repair_octets += size.as_bytes(),
            Some(_) => {}
            None if answered.is_complete => self.counters.drop_surplus += 1,
            None => self.counters.drop_unwanted += 1,
        }
        answered.asked
    }

    /// Learns from when a packet came, whatever is in it.
    fn learn(&mut self, now: Instant, id: SegmentId, asked: &Asked) {
        let key = (id.class, id.sequence);
        let moment = self.moment(now);
        if id.kind != SegmentKind::Across {
            self.on_any_segment(now, key, asked.first_at);
            let sample = self.assembler.get(key);
            if let Some(at) = sample.and_then(|sample| sample.thought_lost_at(id.is_lead())) {
                self.recovery.learn_reordering(&moment, asked, at);
            }
        }
        let times = self.times(now, key);
        let came = Came {
            name: (id.kind, id.index),
            asked,
            is_first: self.assembler.slot(id).is_some_and(Slot::is_first),
        };
        if self.recovery.on_segment(&moment, &times, &came) {
            self.assembler.mark_late(id);
        }
    }

    /// A segment of a sample came, whose first Interest left at `asked_at`.
    fn on_any_segment(&mut self, now: Instant, key: SampleKey, asked_at: Instant) {
        if !self.synchroniser.on_gone(key) {
            return;
        }
        let target = self.timeline.target().as_secs_f64().max(1e-3);
        let first = FirstSegment {
            sample: key,
            drd: now.since(asked_at),
            buffer: self.buffered_time(now).as_secs_f64() / target,
        };
        let lead = self.interest_lead(now);
        self.synchroniser.on_first_segment(now, &first, lead);
    }

    /// Takes what answers an Interest of ours. Returns the round trip, if it shows.
    fn take(
        &mut self,
        now: Instant,
        id: SegmentId,
        asked: &Asked,
        data: &Data,
    ) -> Option<Duration> {
        let key = (id.class, id.sequence);
        if id.kind == SegmentKind::Across {
            self.on_across(now, id, data);
            None
        } else if !id.is_lead_or_copy() {
            self.on_follower(now, id, data);
            self.plain_round_trip(now, key, asked)
        } else if self.assembler.has_lead(key) {
            self.counters.drop_surplus += 1;
            None
        } else {
            self.on_lead(now, id, *asked, data)
        }
    }

    fn on_follower(&mut self, now: Instant, id: SegmentId, data: &Data) {
        let look_at = now + self.recovery.reordering(&self.moment(now));
        match self.assembler.accept(now, id, data, look_at) {
            Some(Accepted::Bad) => self.on_bad(now, id),
            Some(_) => {}
            None => self.counters.drop_unverified += 1,
        }
    }

    /// Takes what claims to be a lead. Returns the DRD that it measured, if it could.
    fn on_lead(
        &mut self,
        now: Instant,
        id: SegmentId,
        asked: Asked,
        data: &Data,
    ) -> Option<Duration> {
        let key = (id.class, id.sequence);
        let Some(verifier) = self.verifier.as_ref() else {
            if !self.assembler.keep_unjudged(id, data) {
                self.counters.drop_unverified += 1;
            }
            return None;
        };
        if data.verify(&**verifier).is_err() {
            self.on_bad(now, id);
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

    /// Takes what a verified lead says. Returns the DRD that it measured, if it could.
    pub(super) fn take_lead(
        &mut self,
        now: Instant,
        key: SampleKey,
        asked: Asked,
        data: &Data,
    ) -> Option<Duration> {
        let Some(lead) = self.read_lead(key, data) else {
            self.counters.drop_malformed += 1;
            self.give_up(key);
            return None;
        };
        let delay = self.measure(now, key, lead.header(), &asked);
        self.counters.leads += 1;
        let is_doubtful = self.assembler.on_lead(key.0, &lead);
        self.timeline.on_lead(now, key, lead.header());
        self.handover.on_lead(key, lead.header());
        self.note_published(now, key, lead.header());
        self.pipeline.on_lead(now);
        self.accept_lead(now, key, lead, is_doubtful);
        delay
    }

    /// Returns the lead in `data`, unless it contradicts itself, or points to where nothing can be.
    fn read_lead(&self, key: SampleKey, data: &Data) -> Option<Lead> {
        let lead = Lead::decode(data).ok()?;
        let most = self.config.max_segments as usize;
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
            lead.header().other_sequence.saturating_sub(known) <= self.config.max_jump
        });
        near.then_some(lead)
    }

    /// Judges leads that came before the key that signs.
    pub(super) fn judge_kept_leads(&mut self, now: Instant) {
        for key in self.assembler.keys(|_, _| true) {
            let Some(data) = self.assembler.take_unjudged(key) else {
                continue;
            };
            // It was answered long ago.
            let asked = Asked::unmeasured(now);
            self.on_lead(now, SegmentId::lead(key.0, key.1), asked, &data);
            self.finish_if_whole(now, key);
        }
    }

    /// Puts a verified lead to its sample, and requests what it tells of.
    fn accept_lead(&mut self, now: Instant, key: SampleKey, lead: Lead, is_doubtful: bool) {
        let other = lead.header().other_sequence;
        if key.0 == SampleClass::Delta && self.playback.order().is_useless(other) {
            self.counters.drop_undecodable += 1;
            self.remove(key);
            return;
        }
        if !self.assembler.has_room_for(key, &lead) {
            self.counters.drop_no_room += 1;
            self.give_up(key);
            return;
        }
        let Some((gone, bad)) = self.assembler.accept_lead(now, key, lead, is_doubtful) else {
            return;
        };
        for id in gone {
            self.outputs.push(Output::Forget(id));
        }
        for id in bad {
            self.on_bad(now, id);
        }
        if self.assembler.request_claimed(key) {
            let (moment, times) = (self.moment(now), self.times(now, key));
            if let Some(at) = self.recovery.hedge_round_at(&moment, &times) {
                self.assembler.hedge_round_by(key, at);
            }
        }
        self.wake_for_check(now, key);
    }

    /// Learns from when, and for whom, a lead was published. Returns the DRD if the lead shows it.
    fn measure(
        &mut self,
        now: Instant,
        key: SampleKey,
        header: &SampleHeader,
        asked: &Asked,
    ) -> Option<Duration> {
        let sample = self.assembler.get(key);
        let asked_ahead = sample.is_some_and(|sample| sample.asked_ahead);
        let answer = asked.answered_by(now, header.asked, asked_ahead);
        self.counters.leads_for_others += u64::from(!answer.is_ours);
        if asked.is_hedged && answer.is_ours {
            self.recovery.on_hedged(!answer.is_first);
        }
        let measured = answer
            .delay
            .and_then(|sample| self.path.delay.on_sample(now, sample));
        if let Some(round_trip) = measured {
            self.outputs.push(Output::RoundTrip(round_trip));
            self.synchroniser.on_delay(round_trip);
        }
        let class = key.0;
        let is_live = asked_ahead && (answer.is_clear || answer.is_first);
        let tells_base = self.synchroniser.lead().is_none() || class == self.pipeline.clocked();
        let available_at = self.timeline.on_arrival(
            now,
            &LeadArrival {
                published_at: header.published_at(),
                asked_ahead,
                is_live,
                tells_base,
                rebuffers: tells_base && self.synchroniser.take_rebuffers(),
                is_queued: self.path.outlook.queueing > LONG_QUEUE,
            },
        );
        // By a clock that was set, it would have been here long before it was requested.
        if now.since(available_at) < CLOCK_WAS_SET {
            let group = self.group(key);
            self.outputs.push(Output::Revise(group, available_at));
        }
        if asked_ahead {
            let waited = answer.waited.filter(|_| is_live);
            self.learn_ahead(now, key, header, waited);
        }
        measured
    }

    /// Learns from a sample requested ahead: how long our Interest waited for it, or that it came too late to wait.
    fn learn_ahead(
        &mut self,
        now: Instant,
        (class, sequence): SampleKey,
        header: &SampleHeader,
        waited: Option<Duration>,
    ) {
        let late = self.timeline.lateness(now, header.published_at());
        if late <= self.source.rate.period() {
            self.synchroniser.on_live(now);
        }
        if class != self.pipeline.clocked() {
            return;
        }
        match waited {
            Some(Duration::ZERO) => self.synchroniser.on_late(now, sequence, late),
            Some(waited) => self.synchroniser.on_waited(now, sequence, waited),
            None => {}
        }
    }

    /// A packet was not what it should be: it is requested again, past all caches.
    fn on_bad(&mut self, now: Instant, id: SegmentId) {
        self.counters.drop_verification += 1;
        self.outputs.push(Output::Disbelieve(id));
        let key = (id.class, id.sequence);
        let is_published = self.is_published(key);
        if self.assembler.reject(now, id, is_published) == Rejected::Hopeless {
            self.mark_given_up(key);
        }
    }

    /// Puts a sample together once enough of it is here.
    pub(super) fn finish_if_whole(&mut self, now: Instant, key: SampleKey) {
        let Some(sample) = self.assembler.get(key) else {
            return;
        };
        let Some((payload, used_parity)) = sample.try_assemble() else {
            return;
        };
        let asked_again = sample.was_asked_again();
        let (moment, times) = (self.moment(now), self.times(now, key));
        self.recovery.on_whole(&moment, &times, sample);
        let late = times.render_at.is_some_and(|at| now > at);
        self.counters.complete += 1;
        self.counters.payload_octets += payload.len() as u64;
        self.counters.recovered_parity += u64::from(used_parity);
        self.counters.recovered_retransmission += u64::from(asked_again && !used_parity);
        self.counters.late += u64::from(late && !self.playback.is_catching_up());
        let complete = Complete {
            at: now,
            late,
            payload,
        };
        for id in self.assembler.finish(key, complete) {
            self.outputs.push(Output::WithdrawOne(id));
        }
    }

    /// Drops a sample and whatever is out for it.
    pub(super) fn remove(&mut self, key: SampleKey) -> Option<Assembly> {
        let (sample, was_requested) = self.assembler.remove(key)?;
        self.synchroniser.on_gone(key);
        if was_requested {
            self.outputs.push(Output::Withdraw(self.group(key)));
        }
        Some(sample)
    }
}
