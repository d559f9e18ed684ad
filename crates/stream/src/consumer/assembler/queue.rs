//! Requests of segments, from the moment they are wanted until their Interests have left.

use namecast_packet::Nonce;
use namecast_units::{Duration, Instant};

use crate::names::{SegmentId, SegmentKind};

use super::super::order::SampleKey;
use super::sample::{Assembly, Name};
use super::segments::SegmentCounts;
use super::slot::{Asked, Slot};
use super::{Assembler, FEW};

/// Wait after an Interest that was not sent.
const DROPPED_WAIT: Duration = Duration::from_millis(50);

/// A sample to begin with.
#[derive(Clone, Copy, Debug)]
pub(in crate::consumer) struct Opening {
    pub key: SampleKey,
    /// Segments that it is reckoned to have.
    pub counts: SegmentCounts,
    /// Parity segments to request of those.
    pub parity: u32,
    /// Copies of its lead that there may be.
    pub copies: usize,
    /// How many of them to request.
    pub copies_ahead: usize,
    /// Inter-frame FEC of the group that ends with it to request.
    pub inter_frame: usize,
    /// It is not known to be published.
    pub asked_ahead: bool,
}

/// A segment to request, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(in crate::consumer) struct Request {
    pub id: SegmentId,
    /// Transmissions so far.
    pub attempts: u32,
    pub is_repair: bool,
    /// Caches gave a bad packet, by the face given.
    pub must_be_fresh: bool,
    pub avoid_face: Option<u64>,
    /// How likely it is to exist.
    pub likelihood: f64,
    /// Octets of payload in segments of its class, on average.
    pub size: f64,
}

/// An Interest that has left.
#[derive(Clone, Copy, Debug)]
pub(in crate::consumer) struct Sent {
    pub id: SegmentId,
    pub nonce: Nonce,
    /// How many Interests had left before it.
    pub order: u64,
    /// When it is to be sent again if nothing happens before.
    pub retry_at: Instant,
    /// When to look at the sample for it.
    pub look_at: Instant,
    /// When to send it a second time if it is the first one, and early.
    pub hedge_at: Option<Instant>,
    /// The sample is known to be published.
    pub is_published: bool,
}

/// What an Interest that has left was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::consumer) enum SentAs {
    /// The first one.
    First,
    /// The second of two that left before the segment existed.
    Hedge,
    /// A retransmission.
    Again,
}

impl Assembler {
    /// Begins with a sample: its segments are wanted.
    pub(in crate::consumer) fn begin(&mut self, opening: &Opening) {
        let key = opening.key;
        let mut sample = Assembly::new(key.0, key.1, opening.counts, opening.copies);
        sample.asked_ahead = opening.asked_ahead;
        sample.expect_inter_frame(opening.inter_frame);
        let parity = u64::from(opening.parity);
        let own = sample
            .slots()
            .filter(|(kind, index, _)| *kind == SegmentKind::Data || *index < parity);
        let all: Vec<Name> = own
            .chain(sample.copies().take(opening.copies_ahead))
            .chain(sample.inter_frame())
            .map(|(kind, index, _)| (kind, index))
            .collect();
        for name in all {
            let slot = sample.slot_mut(name.0, name.1);
            if let Some(slot) = slot.filter(|_| self.can_request(1)) {
                slot.queued = true;
                self.waiting += 1;
                self.wanted.push_back(id_of(key, name));
            }
        }
        self.samples.insert(key, sample);
    }

    /// Requests a segment before all that are wanted of new samples.
    pub(in crate::consumer) fn request(&mut self, id: SegmentId) {
        let has_room = self.can_request(1);
        // Without room, the next look at the sample plans anew.
        let may_queue = |slot: &&mut Slot| !slot.queued && (has_room || slot.asked.is_some());
        if let Some(slot) = self.slot_mut(id).filter(may_queue) {
            slot.queued = true;
            self.waiting += 1;
            self.repairs.push_back(id);
        }
    }

    /// Requests a segment in repair of its sample.
    pub(in crate::consumer) fn repair(&mut self, id: SegmentId) {
        if let Some(slot) = self.slot_mut(id) {
            slot.is_repair = true;
        }
        self.request(id);
    }

    /// Requests the segments of a sample that its lead tells of. Returns whether any were missing.
    ///
    /// ```text
    ///   lead: 480 segments ──▶ all, or a few where another is suspicious ──▶ the first that comes: all others
    /// ```
    ///
    /// What a lead says of its sample's size is only as good as the segments that come: a lead may be signed and still lie. All at
    /// once where the count is as usual, or no other is suspicious: a frame that is large indeed would come a round trip
    /// later. While another suspicious count stands unproven, only a few.
    pub(in crate::consumer) fn request_advertised(&mut self, key: SampleKey) -> bool {
        let is_suspicious = self.get(key).is_some_and(|sample| sample.is_suspicious);
        let another_is_suspicious = self.suspicious.is_some_and(|other| other != key);
        if is_suspicious {
            self.suspicious.get_or_insert(key);
        }
        let few = is_suspicious && another_is_suspicious;
        self.request_missing(key, if few { FEW } else { usize::MAX })
    }

    /// A segment came that the lead of `key` vouches for: it has as many as it says.
    pub(super) fn accept_count(&mut self, key: SampleKey) {
        let sample = self.samples.get_mut(&key);
        let Some(sample) = sample.filter(|sample| sample.is_suspicious) else {
            return;
        };
        sample.is_suspicious = false;
        if let Some(lead) = sample.lead() {
            self.segments.observe(key.0, SegmentCounts::of(lead));
        }
        self.suspicious = None;
        self.request_missing(key, usize::MAX);
    }

    /// Requests what nobody requested yet: the N − M that the lead tells of, no more than `most` of them. Returns whether there are any.
    fn request_missing(&mut self, key: SampleKey, most: usize) -> bool {
        let Some(sample) = self.samples.get(&key) else {
            return false;
        };
        let parity_too = self.policy.requests_parity;
        let missing: Vec<_> = sample
            .slots()
            .filter(|(kind, ..)| parity_too || *kind == SegmentKind::Data)
            .filter(|(_, _, slot)| slot.is_missing() && slot.asked.is_none() && !slot.queued)
            .map(|(kind, index, _)| id_of(key, (kind, index)))
            .take(most)
            .collect();
        missing.iter().for_each(|id| self.request(*id));
        !missing.is_empty()
    }

    /// Sends Interests of a sample a second time that are due for it.
    pub(in crate::consumer) fn hedge(&mut self, now: Instant, key: SampleKey) {
        let Some(sample) = self.samples.get_mut(&key) else {
            return;
        };
        let due: Vec<Name> = sample
            .slots()
            .chain(sample.inter_frame())
            .filter(|(_, _, slot)| slot.hedge_at.is_some_and(|at| at <= now))
            .map(|(kind, index, _)| (kind, index))
            .collect();
        for name in due {
            let Some(slot) = self.slot_mut(id_of(key, name)) else {
                continue;
            };
            slot.hedge_at = None;
            if slot.is_missing()
                && let Some(asked) = &mut slot.asked
            {
                asked.is_hedged = true;
                self.request(id_of(key, name));
            }
        }
    }

    /// Requests everything that is out again: the old transport lost it. Returns how much that was.
    pub(in crate::consumer) fn request_again(&mut self) -> u64 {
        let mut again = Vec::new();
        for (key, sample) in &mut self.samples {
            let out: Vec<Name> = sample
                .slots()
                .chain(sample.copies())
                .chain(sample.inter_frame())
                .filter(|(_, _, slot)| slot.asked.is_some() && slot.is_missing())
                .map(|(kind, index, _)| (kind, index))
                .collect();
            for name in out {
                // The network did not lose them: they start anew.
                if let Some(slot) = sample.slot_mut(name.0, name.1) {
                    slot.asked = None;
                    slot.attempts = 0;
                    self.outstanding -= 1;
                }
                again.push(id_of(*key, name));
            }
        }
        again.iter().for_each(|id| self.request(*id));
        again.len() as u64
    }

    /// Returns the next segment to request, repairs first; `None` once there are no more.
    pub(in crate::consumer) fn next_request(&mut self) -> Option<Request> {
        loop {
            let next = self.repairs.pop_front();
            let id = next.or_else(|| self.wanted.pop_front())?;
            let Some(slot) = self.slot_mut(id).filter(|slot| slot.queued) else {
                continue;
            };
            if !slot.is_missing() {
                slot.queued = false;
                self.waiting -= 1;
                continue;
            }
            let request = Request {
                id,
                attempts: slot.attempts,
                is_repair: slot.is_repair || slot.attempts > 0,
                must_be_fresh: slot.must_be_fresh,
                // The face that gave a bad packet is the wrong one to use again.
                avoid_face: slot.from_face.filter(|_| slot.must_be_fresh),
                likelihood: 1.0,
                size: self.segments.size(id.class),
            };
            return Some(Request {
                likelihood: self.likelihood(id),
                ..request
            });
        }
    }

    /// Returns how likely a segment is to exist: what may not brings nothing.
    fn likelihood(&self, id: SegmentId) -> f64 {
        let is_sure =
            id.kind != SegmentKind::Data || id.index == 0 || self.has_lead((id.class, id.sequence));
        match is_sure {
            true => 1.0,
            false => self.segments.likelihood(id.class, id.index),
        }
    }

    /// Records that an Interest has left. Returns what it was, if it is still known.
    pub(in crate::consumer) fn on_sent(&mut self, now: Instant, sent: &Sent) -> Option<SentAs> {
        let Sent { id, nonce, .. } = *sent;
        let sample = self.samples.get_mut(&(id.class, id.sequence))?;
        let is_early = sample.asked_ahead && !sent.is_published;
        let slot = sample.slot_mut(id.kind, id.index)?;
        self.waiting -= usize::from(core::mem::take(&mut slot.queued));
        let again = slot.attempts > 0;
        slot.attempts = slot.attempts.saturating_add(1);
        if !again {
            slot.is_early = is_early;
            slot.hedge_at = sent.hedge_at.filter(|_| is_early);
        }
        let earlier = slot.asked;
        let hedges = earlier.is_some_and(|asked| asked.is_hedged && asked.attempts == 1);
        let before = earlier.map(|asked| (asked.first_at, asked.nonces[0]));
        let (first_at, first) = before.unwrap_or((now, nonce));
        slot.asked = Some(Asked {
            first_at,
            last_at: now,
            order: sent.order,
            nonces: [first, nonce],
            attempts: slot.attempts,
            retry_at: sent.retry_at,
            is_hedged: hedges,
            ..Asked::unmeasured(now)
        });
        let look_at = slot.hedge_at.unwrap_or(sent.look_at);
        sample.wake_by(look_at);
        self.outstanding += usize::from(earlier.is_none());
        Some(match again {
            _ if hedges => SentAs::Hedge,
            true => SentAs::Again,
            false => SentAs::First,
        })
    }

    /// Records that an Interest will not leave: its time is over.
    pub(in crate::consumer) fn on_dropped(&mut self, now: Instant, id: SegmentId) {
        if let Some(slot) = self.slot_mut(id) {
            let was_queued = core::mem::take(&mut slot.queued);
            self.waiting -= usize::from(was_queued);
        }
        self.wake_by((id.class, id.sequence), now + DROPPED_WAIT);
    }

    /// Records that the path has lost an answer, and that it is in no queue.
    pub(in crate::consumer) fn on_gone(&mut self, now: Instant, id: SegmentId) {
        if let Some(asked) = self.slot_mut(id).and_then(|slot| slot.asked.as_mut()) {
            asked.is_gone = true;
            self.wake_by((id.class, id.sequence), now);
        }
    }

    /// Records that the Interest with `nonce` came back: it is sent again after `wait` for its number of transmissions. Returns whether it was the last one; earlier ones say nothing of it.
    pub(in crate::consumer) fn on_nack(
        &mut self,
        now: Instant,
        id: SegmentId,
        nonce: Option<Nonce>,
        wait: impl Fn(u32) -> Duration,
    ) -> bool {
        let asked = self.slot_mut(id).and_then(|slot| slot.asked.as_mut());
        let Some(asked) = asked.filter(|asked| nonce.is_none_or(|n| n == asked.nonces[1])) else {
            return false;
        };
        asked.retry_at = now + wait(asked.attempts);
        asked.is_nacked = true;
        let retry_at = asked.retry_at;
        self.wake_by((id.class, id.sequence), retry_at);
        true
    }

    /// Records that a segment did not come when it should have.
    pub(in crate::consumer) fn mark_lost(&mut self, id: SegmentId) {
        if let Some(slot) = self.slot_mut(id) {
            slot.was_lost = true;
        }
    }

    /// Records that a segment came by itself after all.
    pub(in crate::consumer) fn mark_late(&mut self, id: SegmentId) {
        if let Some(slot) = self.slot_mut(id) {
            slot.was_lost = false;
        }
    }

    /// Records that the last Interest for a segment is taken for lost. Returns when it left, unless that was known.
    pub(in crate::consumer) fn lose(&mut self, id: SegmentId) -> Option<Instant> {
        let asked = self.slot_mut(id)?.asked.as_mut()?;
        let is_news = !core::mem::replace(&mut asked.is_lost, true);
        is_news.then_some(asked.last_at)
    }
}

/// Returns the segment `name` of sample `key`.
pub(in crate::consumer) const fn id_of(
    (class, sequence): SampleKey,
    (kind, index): Name,
) -> SegmentId {
    SegmentId {
        class,
        sequence,
        kind,
        index,
    }
}
