//! What leaves next: the most urgent wants, while budget and credit last.

use namecast_packet::{Interest, Nonce};
use namecast_units::{Bitrate, Instant};

use crate::names::SampleClass;

use super::super::in_flight::Out;
use super::super::queue::Rank;
use super::super::want::{Event, Kind, Token, Want};
use super::{EARLY, HEARTBEAT, Uplink};

/// Objects wait beside live media while more than this queues, in seconds.
const MAX_OBJECT_QUEUE: f64 = 0.02;

impl Uplink {
    /// Sends the most urgent wants while the budget lasts.
    pub(super) fn pump(&mut self, now: Instant) {
        if self.wanted.queue.is_empty() {
            return;
        }
        while self.may_send_more()
            && self.may_send_sound(now)
            && let Some(want) = self.wanted.queue.peek(Rank::Sound)
        {
            let token = want.token;
            self.send(now, token);
        }
        if self.budget.is_holding() {
            self.pump_while_held(now);
        }
        self.window = self.wanted.in_flight.survey(now, &self.path).window;
        while self.may_send_more()
            && self
                .budget
                .allows(now, self.window, self.wanted.in_flight.len())
            && let Some(token) = self.next_paced(now)
        {
            self.send(now, token);
        }
    }

    fn may_send_more(&self) -> bool {
        self.wanted.in_flight.len() < self.config.max_in_flight && self.credit.allows()
    }

    /// While requests are held back, one leaves now and then, enough to notice that the path is back; and the first of each key
    /// sample, as what is out may be of samples that are never published.
    fn pump_while_held(&mut self, now: Instant) {
        let last = self.sound_at.into_iter().chain(self.paced_at).max();
        let is_due = last.is_none_or(|at| now.since(at) >= HEARTBEAT);
        if is_due && let Some(token) = self.next_paced(now) {
            self.send(now, token);
        }
        if let Some(token) = self.next_key(now) {
            self.send(now, token);
        }
    }

    /// Returns the first of a key sample that may leave.
    fn next_key(&self, now: Instant) -> Option<Token> {
        let is_key = |want: &&Want| {
            let segment = want.token.segment;
            segment.class == SampleClass::Key && segment.is_lead()
        };
        let repairs = self.wanted.queue.of(Rank::Repair);
        let lead = repairs
            .chain(self.wanted.queue.of(Rank::Media))
            .find(is_key)?;
        (self.leaves_at(now, lead) <= now).then_some(lead.token)
    }

    fn may_send_sound(&self, now: Instant) -> bool {
        let is_late = self.path.queue_now() > self.path.target().as_secs_f64();
        !is_late || self.sound_at.is_none_or(|at| now.since(at) >= HEARTBEAT)
    }

    fn next_paced(&self, now: Instant) -> Option<Token> {
        if self.repairs.allow()
            && let Some(want) = self.next_repair(now)
        {
            return Some(want.token);
        }
        let queue = &self.wanted.queue;
        // What waits for its time holds up nobody but probes.
        let mut media = queue.heads(Rank::Media);
        let first = media
            .find(|want| self.leaves_at(now, want) <= now)
            .or_else(|| self.next_object());
        if first.is_some() || queue.peek(Rank::Media).is_some() {
            return first.map(|want| want.token);
        }
        let want = self.wanted.queue.peek(Rank::Spare)?;
        let free_at = self
            .limits
            .get(&want.token.client)
            .map(|(limit, pacer)| pacer.next_send(Some(limit.rate)));
        free_at.is_none_or(|at| at <= now).then_some(want.token)
    }

    /// Returns the segment of an object that may leave: beside live media, only into room that these do not need.
    fn next_object(&self) -> Option<&Want> {
        let queue = &self.wanted.queue;
        let is_free = self.need == Bitrate::default()
            || self.budget.has_spare(self.window) && self.path.queue_now() < MAX_OBJECT_QUEUE;
        let objects = queue
            .peek(Rank::ObjectRepair)
            .or_else(|| queue.peek(Rank::Object));
        objects.filter(|_| is_free)
    }

    /// Returns the repair that is next: what can still be in time goes before what is late, which may be much of a sample.
    fn next_repair(&self, now: Instant) -> Option<&Want> {
        let is_late = |want: &&Want| want.due.is_some_and(|due| due <= now);
        let mut repairs = self.wanted.queue.of(Rank::Repair);
        repairs
            .find(|want| !is_late(want))
            .or_else(|| self.wanted.queue.peek(Rank::Repair))
    }

    pub(super) fn leaves_at(&self, now: Instant, want: &Want) -> Instant {
        want.not_before.map_or(Instant::ZERO, |at| {
            at.saturating_sub(self.path.round_trip(now) + EARLY)
        })
    }

    fn send(&mut self, now: Instant, token: Token) {
        let Some(want) = self.wanted.queue.remove(token) else {
            return;
        };
        if let Some(out) = self.wanted.equal_out(now, &want) {
            self.ride(now, want, out);
            return;
        }
        let before = self.wanted.in_flight.get(token);
        let attempts = before.map_or(0, |entry| entry.attempts);
        // One name is answered once: a second Interest for it brings nothing unless the first was lost.
        let is_duplicate = before.is_some_and(|entry| !entry.is_lost && !entry.is_withdrawn);
        if attempts >= self.config.max_attempts && !want.kind.is_object() {
            self.drop_want(token);
            return;
        }
        let nonce = Nonce::draw(&mut self.random);
        let order = self.counters.interests;
        self.counters.interests += 1;
        self.counters.retransmissions += u64::from(attempts > 0);
        self.counters.probes += u64::from(want.kind == Kind::Probe);
        match want.kind {
            Kind::Sound => self.sound_at = Some(now),
            Kind::Repair if is_duplicate => {}
            Kind::Repair => self.repairs.on_repair(),
            Kind::Key | Kind::Delta => self.repairs.on_first(&self.config),
            Kind::Parity | Kind::ObjectRepair | Kind::Object | Kind::Probe => {}
        }
        if want.kind.is_paced() {
            self.paced_at = Some(now);
        }
        if !is_duplicate {
            self.credit.on_sent();
        }
        if want.kind.is_paced() && !is_duplicate {
            self.budget.on_sent(now, want.size);
            self.window += want.size.as_bits() as f64;
        }
        if let Some((limit, pacer)) = self.limits.get_mut(&token.client) {
            pacer.on_sent(now, limit.packet_size, Some(limit.rate));
        }
        let out = Out {
            nonce,
            sent_at: now,
            expires_at: now + want.lifetime,
        };
        self.tell(
            token,
            Event::Sent {
                token,
                nonce,
                order,
            },
        );
        self.reports.push(Event::Interest {
            interest: interest(&want, nonce),
            avoid_face: want.avoid_face,
        });
        let equal = self.wanted.equal_queued(&want);
        self.wanted
            .in_flight
            .insert(now, want, (out, false), &self.path);
        for token in equal {
            if let Some(want) = self.wanted.queue.remove(token) {
                self.ride(now, want, out);
            }
        }
    }
}

fn interest(want: &Want, nonce: Nonce) -> Interest {
    let mut builder = Interest::builder(want.name.clone()).lifetime(want.lifetime);
    if want.must_be_fresh {
        builder = builder.must_be_fresh();
    }
    builder.build(nonce)
}
