//! Passes what clients want to the uplink, and what comes of it back to them.
//!
//! ```text
//!  clients ──Request──▶ Uplink ──▶ Interests
//!     ▲                   │ ◀───── Data, Nacks
//!     └── by their tokens ┘
//! ```

use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest};
use namecast_stream::consumer::{Consumer, Delivery};
use namecast_stream::path::{Event, Nacked, Token};
use namecast_units::Instant;

use super::Watcher;
use crate::{Output, face};

impl Watcher {
    pub(super) fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) {
        self.meters.on_data(now, data.wire().len() as u64);
        let received = delivery.received(data);
        self.uplink.handle_data(now, data.name(), &received);
        let mut is_of_use = false;
        while let Some(answer) = self.uplink.poll_answer() {
            is_of_use |= self.handle_answer(now, answer.token, (data, delivery));
        }
        if !is_of_use {
            self.meters.counters_mut().unexpected += 1;
        }
    }

    /// Passes Data on to whoever wants it. Returns whether it is of use, or comes too late for that.
    fn handle_answer(
        &mut self,
        now: Instant,
        token: Token,
        (data, delivery): (&Data, Delivery),
    ) -> bool {
        if let Some(consumer) = self.streams.consumer(token.client) {
            consumer.handle_data(now, token.segment, data, delivery);
            return true;
        }
        let verifier = self.authority.verifier();
        if let Some(taken) = self.travel.handle_answer(now, token, (data, verifier)) {
            self.meters.counters_mut().verification_failures += u64::from(taken.is_err());
            return taken.unwrap_or(true);
        }
        if token == self.probes.token || token == self.proof.token() {
            return self.on_metadata(now, token, data);
        } else if token == self.authority.token() {
            self.on_certificate(now, data);
        } else if self.catalogues.fetcher.has_requested(token) {
            self.on_catalogue_segment(now, token, data);
        }
        // Else its consumer is gone: it shows something of the path.
        true
    }

    pub(super) fn handle_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) {
        let all = self.uplink.handle_nack(interest);
        if all.is_empty() {
            let name = interest.name();
            let of_rung = |it: &mut Consumer| it.source().names.prefix().is_prefix_of(name);
            let is_object =
                self.names.root().is_prefix_of(name) && !self.streams.consumers().any(of_rung);
            let counters = self.meters.counters_mut();
            counters.nacked += u64::from(is_object);
            counters.unexpected += u64::from(!is_object);
        }
        for nacked in all {
            let Nacked {
                token, is_latest, ..
            } = nacked;
            if let Some(consumer) = self.streams.consumer(token.client) {
                self.uplink.take_back(now, nacked, reason);
                consumer.handle_nack(now, token.segment, (interest.nonce(), reason));
                if reason == NackReason::None && token.segment.is_lead() && is_latest {
                    // The publisher knows nothing of a sample that should come: it may be another one.
                    self.probes.hasten(now);
                }
            } else if !self.travel.on_nack(now, nacked) {
                // Metadata, certificate and catalogue are requested again in their own time.
                self.meters.counters_mut().nacked += 1;
            }
        }
    }

    /// Does what clients want, apart from consumers.
    pub(super) fn carry_out(&mut self, now: Instant) {
        while let Some(request) = self
            .authority
            .poll_request()
            .or_else(|| self.catalogues.fetcher.poll_request())
            .or_else(|| self.travel.poll_request())
            .or_else(|| self.streams.poll_request())
        {
            self.uplink.carry_out(now, request);
        }
    }

    /// Sends what may be sent, and tells consumers what became of their requests.
    pub(super) fn run_uplink(&mut self, now: Instant) {
        self.uplink.set_target(self.streams.target(&self.config));
        self.uplink.set_need(self.streams.need());
        self.uplink.handle_timeout(now);
        let mut changed = false;
        while let Some(event) = self.uplink.poll_event() {
            for consumer in self.streams.consumers() {
                consumer.on_event(now, &event);
            }
            match event {
                Event::Interest {
                    interest,
                    avoid_face,
                } => {
                    let packet = face::request(&interest, avoid_face);
                    self.outbox.put(Output::Send(packet));
                }
                // A consumer's is for it alone.
                Event::Dropped(token) => {
                    if !self.on_object_dropped(token) && self.travel.on_dropped(token) {
                        self.run_past(now);
                    }
                    self.carry_out(now);
                }
                Event::PathGrew(_) | Event::PathShrank => changed = true,
                Event::Sent { .. } | Event::Lost(_) => {}
            }
        }
        if changed {
            self.streams.share_playout(now, &self.config);
        }
        let outlook = self.uplink.path().outlook(now);
        for consumer in self.streams.consumers() {
            consumer.schedule_mut().set_outlook(outlook);
        }
    }

    /// Lets ladders decide, a few hundred times a second at most.
    pub(super) fn steer(&mut self, now: Instant) {
        if !self.streams.may_steer(now) {
            return;
        }
        let mut steered = false;
        for at in 0..self.streams.len() {
            if !self.streams.at(at).is_steered() || self.travel.is_away() {
                continue;
            }
            let client = self.uplink.new_client();
            let mut pulled = self.streams.take_out(at);
            let wheel = self.wheel(now, client);
            let wants = pulled.steer(now, &wheel);
            self.streams.put_back(at, pulled);
            steered = true;
            for want in wants {
                self.uplink.want(now, want);
            }
        }
        if steered {
            self.drain(now);
            self.run_uplink(now);
        }
    }
}
