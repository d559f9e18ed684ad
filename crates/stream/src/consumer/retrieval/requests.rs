//! Requests samples whose time has come, and what is missing of them.

use core::time::Duration;

use namecast_packet::{Nonce, lp::NackReason};
use namecast_units::{ByteSize, Instant};

use crate::catalogue::StreamKind;
use crate::names::{SampleClass, SegmentId, SegmentKind};
use crate::path::{self, Kind, Want};
use crate::rate::Loss;

use super::super::assembler::{Opening, Request, Sent, SentAs};
use super::super::order::SampleKey;
use super::{Retrieval, Schedule};

/// Wait after a Nack that says that the Nonce was seen before.
const DUPLICATE_WAIT: Duration = Duration::from_millis(2);
/// Wait after a Nack that says that there is no route to the producer; routes need time to come back.
const NO_ROUTE_WAIT: Duration = Duration::from_millis(100);
/// Segments of a sample that leave the producer together; others are spaced.
const AT_ONCE: u64 = 6;
/// Copies of a lead that are requested with it where repair would be too late, as only the newest sample counts.
const COPIES_AHEAD: usize = 1;
/// What names, headers, digests and signatures add to a segment.
const HEADERS: f64 = 84.0;

impl Retrieval {
    /// Requests samples whose time has come, while there is room.
    pub(in crate::consumer) fn request_ahead(&mut self, now: Instant, schedule: &mut Schedule) {
        schedule.pass_unseen(now, &self.assembler, &self.recovery);
        for class in SampleClass::ALL {
            while self.assembler.has_room(class) {
                let hedging = self.hedging();
                let next = schedule.take_next(now, class, &self.assembler, hedging);
                let Some(sequence) = next else {
                    break;
                };
                let waiting = self.assembler.waiting() as u64;
                let waiting = ByteSize::bytes(waiting * u64::from(self.source.segment_size));
                if !schedule.passes_over((class, sequence), waiting) {
                    self.begin_sample(now, (class, sequence), schedule);
                }
            }
        }
    }

    /// Begins with a sample: its segments are wanted.
    fn begin_sample(&mut self, now: Instant, key: SampleKey, schedule: &mut Schedule) {
        if self.assembler.get(key).is_some() {
            return;
        }
        let class = key.0;
        let mut counts = self.assembler.estimate(class);
        // To catch up, a round trip for what turns out to be missing is worth more than some parity.
        let mut parity = counts.parity;
        let mut inter_frame = 0;
        let asked_ahead = schedule.on_begun(key);
        if asked_ahead {
            let moment = schedule.moment(now);
            let ahead = self.recovery.ahead(&moment, class, counts);
            (counts.data, parity) = (ahead.data, ahead.parity);
            inter_frame = self.shards_ahead(now, key, schedule);
        }
        let is_newest_ahead = self.source.is_newest && asked_ahead;
        self.assembler.begin(&Opening {
            key,
            counts,
            parity,
            copies: self.recovery.lead_copies(),
            copies_ahead: if is_newest_ahead { COPIES_AHEAD } else { 0 },
            inter_frame,
            asked_ahead,
        });
        self.wake_for_check(now, key, schedule);
    }

    /// Returns the shards to request ahead of the group that ends with a sample.
    fn shards_ahead(&mut self, now: Instant, key: SampleKey, schedule: &Schedule) -> usize {
        let moment = schedule.moment(now);
        let position = |key| schedule.timeline().position(key);
        let count = self.recovery.shards_ahead(&moment, key, position);
        let expected = self.assembler.segments_expected(key.0);
        let has_room = |count: &usize| self.assembler.can_request(expected + count);
        let count = count.filter(has_room).unwrap_or(0);
        if count > 0 {
            self.recovery.expect_shards(key);
        }
        count
    }

    /// Passes on what is to be requested, repairs first.
    pub(in crate::consumer) fn request_queued(&mut self, now: Instant, schedule: &Schedule) {
        while let Some(request) = self.assembler.next_request() {
            let want = self.want(now, &request, schedule);
            self.outputs.request(path::Request::Want(want));
        }
    }

    fn want(&self, now: Instant, request: &Request, schedule: &Schedule) -> Want {
        let id = request.id;
        let is_first = request.attempts == 0;
        let is_paced = id.kind == SegmentKind::Data && id.index >= AT_ONCE && is_first;
        let may_pace = self.recovery.profile().is_paced() && !schedule.goes_by_gaps();
        let key = (id.class, id.sequence);
        let available_at = schedule.available_at(now, key, &self.assembler);
        let due = available_at.map(|at| at + schedule.timeline().target());
        let most = f64::from(self.source.segment_size);
        let size = (request.size.min(most) + HEADERS) * request.likelihood;
        Want {
            token: self.client.token(id),
            name: self.source.names.segment(id),
            lifetime: schedule.lifetime(now, id.class, self.hedging()),
            must_be_fresh: request.must_be_fresh || schedule.handover().needs_fresh(now),
            avoid_face: request.avoid_face,
            kind: match id.kind {
                _ if request.is_repair => Kind::Repair,
                _ if self.source.kind == StreamKind::Audio => Kind::Sound,
                SegmentKind::Data if id.class == SampleClass::Key => Kind::Key,
                SegmentKind::Data => Kind::Delta,
                SegmentKind::Parity | SegmentKind::LeadCopy | SegmentKind::InterFrame => {
                    Kind::Parity
                }
            },
            size: ByteSize::bytes(size as u64),
            available_at,
            not_before: available_at.filter(|_| is_paced && may_pace),
            due,
            deadline: due.filter(|_| self.source.is_standalone() && is_first),
        }
    }

    /// Requests everything that is out again: the transport came back.
    pub(in crate::consumer) fn request_again(&mut self) {
        self.counters.interests_retransmitted += self.assembler.request_again();
    }

    /// Records that the Interest for `id` has left.
    pub(in crate::consumer) fn on_sent(
        &mut self,
        now: Instant,
        id: SegmentId,
        (nonce, order): (Nonce, u64),
        schedule: &mut Schedule,
    ) {
        let key = (id.class, id.sequence);
        let Some(attempts) = self.assembler.slot(id).map(|slot| slot.attempts) else {
            return;
        };
        let moment = schedule.moment(now);
        let times = self.times(now, key, schedule);
        let expected_at = match times.is_published {
            true => now,
            false => times.in_turn + times.period,
        };
        let until = now + schedule.lifetime(now, id.class, self.hedging());
        let retry_at = match self.recovery.profile().has_timers() {
            true => until.min(now.max(expected_at) + moment.timer.after(attempts)),
            false => until,
        };
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
        let asked_ahead = self.assembler.get(key).is_some_and(|it| it.asked_ahead);
        if id.is_lead() && sent == Some(SentAs::First) && asked_ahead {
            schedule.on_lead_sent(now, &times, &self.assembler);
        }
        self.counters.interests_sent += 1;
        self.counters.interests_hedged += u64::from(sent == Some(SentAs::Hedge));
        self.counters.interests_retransmitted += u64::from(sent == Some(SentAs::Again));
    }

    /// Records that the Interest for `id` will not leave: its time is over.
    pub(in crate::consumer) fn on_dropped(&mut self, now: Instant, id: SegmentId) {
        self.assembler.on_dropped(now, id);
        if self.source.is_standalone() {
            self.give_up((id.class, id.sequence));
        }
    }

    /// Records that the answer for `id` is lost, and not in any queue.
    pub(in crate::consumer) fn on_lost(&mut self, now: Instant, id: SegmentId) {
        self.assembler.on_gone(now, id);
    }

    /// Takes an Interest that came back: it is retransmitted after a while. Without a reason, as publishers refuse what they do
    /// not have, it is one that is not answered: what the sample's lead segment says decides whether it is retransmitted.
    pub(in crate::consumer) fn on_nack(
        &mut self,
        now: Instant,
        id: SegmentId,
        (nonce, reason): (Option<Nonce>, NackReason),
        schedule: &Schedule,
    ) {
        if reason == NackReason::None {
            self.counters.interests_nacked += 1;
            return;
        }
        let timer = schedule.moment(now).timer;
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
}
