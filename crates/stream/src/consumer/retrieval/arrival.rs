//! Takes Data: verifies, measures, and puts samples together.
//!
//! ```text
//!  packet ──▶ requested? ──▶ lead: signature ──▶ times, sizes, round trip ──▶ schedule moves on
//!                 │          follower: digest, or kept until its lead comes ──▶ sample whole?
//!                 └ no: counted, dropped
//! ```

use core::time::Duration;

use namecast_units::{ByteSize, Instant};

use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::path::Request;
use crate::rate::{Arrival, PathEvent};
use crate::sample::{Lead, SampleHeader};

use super::super::assembler::{Accepted, Asked, Complete, Rejected, Slot};
use super::super::order::SampleKey;
use super::super::repair::Came;
use super::super::synchroniser::FirstSegment;
use super::super::timeline::CLOCK_WAS_SET;
use super::{Answer, Playback, Retrieval, Schedule, Segment, SharedVerifier};

impl Retrieval {
    /// Takes a segment, whatever it claims to be.
    pub(in crate::consumer) fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        schedule: &mut Schedule,
        playback: &Playback,
    ) {
        let Segment { id, data, delivery } = *segment;
        let size = ByteSize::of(data.wire());
        self.counters.wire_bytes += size.as_bytes();
        if matches!(id.kind, SegmentKind::Parity | SegmentKind::InterFrame) {
            self.counters.parity_bytes += size.as_bytes();
        }
        let Some(asked) = self.take_asked(segment, size) else {
            self.recovery.on_unwanted(now);
            return;
        };
        self.learn(now, id, &asked, schedule);
        let answer = Answer { id, asked, data };
        let rtt = self.take(now, &answer, schedule, playback);
        self.outputs.note(PathEvent::Data(Arrival {
            asked_at: asked.last_at,
            rtt,
            size: ByteSize::of(&data.content().unwrap_or_default()),
            was_lost: (asked.attempts > 1 && !asked.is_hedged) || asked.is_lost,
            is_limiting: false,
            congestion_marked: delivery.congestion_marked,
            feedback: delivery.feedback,
        }));
        self.finish_if_whole(now, answer.key(), schedule, playback);
    }

    /// Returns the Interest that a segment answers. Without one the packet is counted and dropped.
    fn take_asked(&mut self, segment: &Segment<'_>, size: ByteSize) -> Option<Asked> {
        let id = segment.id;
        let Some(answered) = self.assembler.answer(id, segment.delivery.face) else {
            self.counters.drop_unwanted += 1;
            return None;
        };
        if answered.was_queued {
            // Whatever it is worth, it answers what was to be retransmitted; if it is bad, that is decided anew.
            let token = self.client.token(id);
            self.outputs.request(Request::Withdraw(token..=token));
        }
        match answered.asked {
            Some(_) if answered.is_repair => self.counters.repair_bytes += size.as_bytes(),
            Some(_) => {}
            None if answered.is_complete => self.counters.drop_surplus += 1,
            None => self.counters.drop_unwanted += 1,
        }
        answered.asked
    }

    /// Learns from when a packet came, whatever is in it.
    fn learn(&mut self, now: Instant, id: SegmentId, asked: &Asked, schedule: &mut Schedule) {
        let key = (id.class, id.sequence);
        let moment = schedule.moment(now);
        if id.kind != SegmentKind::InterFrame {
            if schedule.on_gone(key) {
                let target = schedule.timeline().target().as_secs_f64().max(1e-3);
                let first = FirstSegment {
                    sample: key,
                    drd: now.since(asked.first_at),
                    buffer: self.buffered_time(now, schedule).as_secs_f64() / target,
                };
                let was_held = schedule.synchroniser().holds_playback();
                schedule.on_first_segment(now, &first, self.hedging());
                if was_held && !schedule.synchroniser().holds_playback() {
                    // Samples have deadlines from now on.
                    self.wake_incomplete(now);
                }
            }
            let sample = self.assembler.get(key);
            if let Some(at) = sample.and_then(|sample| sample.thought_lost_at(id.is_lead())) {
                self.recovery.learn_reordering(&moment, asked, at);
            }
        }
        let times = self.times(now, key, schedule);
        let came = Came {
            name: (id.kind, id.index),
            asked,
            is_first: self.assembler.slot(id).is_some_and(Slot::is_first),
        };
        if self.recovery.on_segment(&moment, &times, &came) {
            self.assembler.mark_late(id);
        }
    }

    /// Takes what answers an Interest of ours. Returns the round trip, if it shows.
    fn take(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
        schedule: &mut Schedule,
        playback: &Playback,
    ) -> Option<Duration> {
        let (id, key) = (answer.id, answer.key());
        if id.kind == SegmentKind::InterFrame {
            self.on_inter_frame(now, answer, schedule, playback);
            None
        } else if !id.is_lead_or_copy() {
            self.on_follower(now, answer, schedule);
            schedule.plain_round_trip(now, key, &answer.asked, &self.assembler)
        } else if self.assembler.has_lead(key) {
            self.counters.drop_surplus += 1;
            None
        } else {
            self.on_lead(now, answer, schedule, playback)
        }
    }

    fn on_follower(&mut self, now: Instant, answer: &Answer<'_>, schedule: &Schedule) {
        let look_at = now + self.recovery.reordering(&schedule.moment(now));
        let (id, data) = (answer.id, answer.data);
        match self.assembler.accept(now, id, data, look_at) {
            Some(Accepted::Bad) => self.on_bad(now, id, schedule),
            Some(_) => {}
            None => self.counters.drop_unverified += 1,
        }
    }

    /// Takes what claims to be a lead segment. Returns the DRD that it measured, if it could.
    fn on_lead(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
        schedule: &mut Schedule,
        playback: &Playback,
    ) -> Option<Duration> {
        let (id, data, key) = (answer.id, answer.data, answer.key());
        let Some(verifier) = self.verifier.as_ref() else {
            if !self.assembler.keep_unjudged(id, data) {
                self.counters.drop_unverified += 1;
            }
            return None;
        };
        if data.verify(&**verifier).is_err() {
            self.on_bad(now, id, schedule);
            return None;
        }
        if !id.is_lead() {
            self.counters.recovered_copy += 1;
            // Only the lead itself was waited for; a copy measures nothing.
            let copy = Answer::unmeasured(now, key, data);
            return self.take_lead(now, &copy, schedule, playback);
        }
        let was_lost = self.assembler.slot(id).is_some_and(|slot| slot.was_lost);
        let was_repeated = answer.asked.attempts > 1 && !answer.asked.is_hedged;
        self.recovery.keep_lead(key, data, was_lost || was_repeated);
        let measured = self.take_lead(now, answer, schedule, playback);
        self.rebuild(now, key, schedule, playback);
        measured
    }

    /// Takes what a verified lead segment says. Returns the DRD that it measured, if it could.
    pub(super) fn take_lead(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
        schedule: &mut Schedule,
        playback: &Playback,
    ) -> Option<Duration> {
        let key = answer.key();
        let Some(lead) = self.read_lead(answer, schedule) else {
            self.counters.drop_malformed += 1;
            self.give_up(key);
            return None;
        };
        let delay = self.measure(now, answer, lead.header(), schedule);
        self.counters.leads += 1;
        let is_suspicious = self.assembler.on_lead(key.0, &lead);
        let news = schedule.on_lead(now, key, lead.header());
        self.on_news(now, news, schedule);
        let other = lead.header().other_sequence;
        if key.0 == SampleClass::Delta && playback.order().is_useless(other) {
            self.counters.drop_undecodable += 1;
            self.remove(key, schedule);
        } else if !self.assembler.has_room_for(key, &lead) {
            self.counters.drop_no_room += 1;
            self.give_up(key);
        } else if let Some((gone, bad)) = self.assembler.accept_lead(now, key, lead, is_suspicious)
        {
            for id in gone {
                let token = self.client.token(id);
                self.outputs.request(Request::Forget(token));
            }
            for id in bad {
                self.on_bad(now, id, schedule);
            }
            self.request_advertised(now, key, schedule);
        }
        delay
    }

    /// Returns the lead in a segment, unless it contradicts itself, or points to where nothing can be.
    fn read_lead(&self, answer: &Answer<'_>, schedule: &Schedule) -> Option<Lead> {
        let lead = Lead::decode(answer.data).ok()?;
        let most = self.max_segments;
        if lead.data_count() > most || lead.parity_count() > most {
            return None;
        }
        let other = lead.header().other_sequence;
        schedule.is_near(answer.id.class, other).then_some(lead)
    }

    /// Sets whose signature counts, and judges lead segments that came before.
    pub(in crate::consumer) fn set_verifier(
        &mut self,
        now: Instant,
        verifier: SharedVerifier,
        schedule: &mut Schedule,
        playback: &Playback,
    ) {
        self.verifier = Some(verifier);
        for key in self.assembler.keys(|_, _| true) {
            let Some(data) = self.assembler.take_unjudged(key) else {
                continue;
            };
            // It was answered long ago.
            let answer = Answer::unmeasured(now, key, &data);
            self.on_lead(now, &answer, schedule, playback);
            self.finish_if_whole(now, key, schedule, playback);
        }
    }

    /// Requests what a verified lead segment has reported of its sample.
    fn request_advertised(&mut self, now: Instant, key: SampleKey, schedule: &Schedule) {
        if self.assembler.request_advertised(key) {
            let (moment, times) = (schedule.moment(now), self.times(now, key, schedule));
            if let Some(at) = self.recovery.hedge_round_at(&moment, &times) {
                self.assembler.hedge_round_by(key, at);
            }
        }
        self.wake_for_check(now, key, schedule);
    }

    /// Learns from when, and for whom, a lead segment was published. Returns the DRD if it shows.
    fn measure(
        &mut self,
        now: Instant,
        answer: &Answer<'_>,
        header: &SampleHeader,
        schedule: &mut Schedule,
    ) -> Option<Duration> {
        let (asked, key) = (&answer.asked, answer.key());
        let sample = self.assembler.get(key);
        let asked_ahead = sample.is_some_and(|sample| sample.asked_ahead);
        let answer = asked.answered_by(now, header.asked, asked_ahead);
        self.counters.leads_for_others += u64::from(!answer.is_ours);
        if asked.is_hedged && answer.is_ours {
            self.recovery.on_hedged(!answer.is_first);
        }
        let (measured, available_at) = schedule.measure(now, key, header.published_at(), &answer);
        if let Some(round_trip) = measured {
            self.outputs
                .request(Request::RoundTrip(self.client, round_trip));
        }
        // By a clock that was set, it would have been here long before it was requested.
        if now.since(available_at) < CLOCK_WAS_SET {
            let tokens = self.client.sample(key.0, key.1);
            self.outputs.request(Request::Revise(tokens, available_at));
        }
        measured
    }

    /// A packet was not what it should be: it is requested again, past all caches.
    fn on_bad(&mut self, now: Instant, id: SegmentId, schedule: &Schedule) {
        self.counters.drop_verification += 1;
        let token = self.client.token(id);
        self.outputs.request(Request::Reject(token));
        let key = (id.class, id.sequence);
        let is_published = schedule.is_published(key, &self.assembler);
        if self.assembler.reject(now, id, is_published) == Rejected::Hopeless {
            self.mark_given_up(key);
        }
    }

    /// Puts a sample together once enough of it is here.
    pub(super) fn finish_if_whole(
        &mut self,
        now: Instant,
        key: SampleKey,
        schedule: &Schedule,
        playback: &Playback,
    ) {
        let Some(sample) = self.assembler.get(key) else {
            return;
        };
        let Some((payload, used_parity)) = sample.try_assemble() else {
            return;
        };
        let asked_again = sample.was_asked_again();
        let (moment, times) = (schedule.moment(now), self.times(now, key, schedule));
        self.recovery.on_whole(&moment, &times, sample);
        let offset = sample.lead().map(|lead| lead.header().composition_offset);
        let offset = offset.unwrap_or_default();
        let late = times.render_at.is_some_and(|at| now > at + offset);
        self.counters.complete += 1;
        self.counters.payload_bytes += payload.len() as u64;
        self.counters.recovered_parity += u64::from(used_parity);
        self.counters.recovered_retransmission += u64::from(asked_again && !used_parity);
        self.counters.late += u64::from(late && !playback.is_catching_up());
        let complete = Complete {
            at: now,
            late,
            payload,
        };
        for id in self.assembler.finish(key, complete) {
            let token = self.client.token(id);
            self.outputs.request(Request::Withdraw(token..=token));
        }
    }
}
