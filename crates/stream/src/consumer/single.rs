//! A consumer that has a requester, and so a path, to itself.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::{Data, Interest, lp::NackReason};
use namecast_units::{ByteSize, Instant};

use crate::path::{Event, PathOutlook, Requester, Token};

use super::Consumer;
use super::types::{Delivery, Output, Sample};

/// Something a single consumer wants done.
#[derive(Clone, Debug)]
pub enum SingleOutput {
    /// An Interest to send.
    Interest(Interest),
    /// The next sample, in decoding order.
    Sample(Sample),
    /// The next sample, a key sample, does not follow the last one.
    Discontinuity,
}

/// One consumer and its requester.
///
/// A plain value: give it Data, Nacks and the time, and after each call take everything from
/// [`poll_output`](Self::poll_output). Whatever else is done with the consumer takes effect with the next
/// [`handle_timeout`](Self::handle_timeout).
#[derive(Debug)]
pub struct Single {
    /// The consumer.
    pub consumer: Consumer,
    requester: Requester,
    outputs: VecDeque<SingleOutput>,
}

impl Single {
    /// Lets `requester` send what `consumer` wants.
    pub fn new(consumer: Consumer, mut requester: Requester) -> Self {
        requester.set_need(consumer.source().bitrate_with_parity());
        Self {
            consumer,
            requester,
            outputs: VecDeque::new(),
        }
    }

    /// Returns what sends Interests.
    pub const fn requester(&self) -> &Requester {
        &self.requester
    }

    /// Takes one Data packet. Returns whether its name is one of the consumer's.
    pub fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) -> bool {
        let Some(token) = self.consumer.token_of(data.name()) else {
            return false;
        };
        let size = ByteSize::of(data.wire());
        self.requester
            .handle_data(now, token, size, delivery.congestion_marked);
        self.consumer.handle_data(now, data, delivery);
        self.settle(now);
        true
    }

    /// Takes an Interest that came back. Returns whether its name is one of the consumer's.
    pub fn handle_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) -> bool {
        let Some(token) = self.consumer.token_of(interest.name()) else {
            return false;
        };
        self.requester
            .handle_nack(now, token, interest.nonce(), reason);
        self.consumer.handle_nack(now, interest, reason);
        self.settle(now);
        true
    }

    /// The transport came back: everything that is out is requested again.
    pub fn handle_link_change(&mut self, now: Instant) {
        self.requester.handle_link_change();
        self.consumer.handle_link_change(now);
        self.settle(now);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.consumer.handle_timeout(now);
        self.settle(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let both = [self.consumer.poll_timeout(), self.requester.poll_timeout()];
        both.into_iter().flatten().min()
    }

    /// Returns the next thing to do, until `None`.
    pub fn poll_output(&mut self) -> Option<SingleOutput> {
        self.outputs.pop_front()
    }

    fn settle(&mut self, now: Instant) {
        self.pass_on(now);
        self.requester.handle_timeout(now);
        while let Some(event) = self.requester.poll_event() {
            self.on_event(now, event);
        }
        let queueing = self.requester.path().queue_of_all(now);
        self.consumer.set_outlook(PathOutlook {
            queueing: Duration::from_secs_f64(queueing),
            jitter: Duration::from_secs_f64(self.requester.path().jitter()),
        });
    }

    fn pass_on(&mut self, now: Instant) {
        let client = self.consumer.client();
        let requester = &mut self.requester;
        while let Some(output) = self.consumer.poll_output() {
            match output {
                Output::Want(want) => requester.want(now, want),
                Output::Forget(segment) => requester.forget(Token { client, segment }),
                Output::WithdrawOne(segment) => requester.withdraw_one(Token { client, segment }),
                Output::Disbelieve(segment) => requester.disbelieve(Token { client, segment }),
                Output::Withdraw(group) => requester.withdraw(group),
                Output::WithdrawAll => requester.withdraw_client(client),
                Output::Revise(group, available_at) => requester.revise(now, group, available_at),
                Output::RoundTrip(rtt) => requester.on_round_trip(now, rtt),
                Output::Limit(limit) => requester.set_limit(client, limit),
                Output::Sample(sample) => self.outputs.push_back(SingleOutput::Sample(sample)),
                Output::Discontinuity => self.outputs.push_back(SingleOutput::Discontinuity),
            }
        }
    }

    fn on_event(&mut self, now: Instant, event: Event) {
        let consumer = &mut self.consumer;
        match event {
            Event::Interest { interest, .. } => {
                self.outputs.push_back(SingleOutput::Interest(interest));
            }
            Event::Sent {
                token,
                nonce,
                order,
            } => consumer.on_sent(now, token.segment, nonce, order),
            Event::Dropped(token) => consumer.on_dropped(now, token.segment),
            Event::Lost(token) => consumer.on_lost(now, token.segment),
            Event::PathGrew(shift) => consumer.on_path_grew(now, shift),
            Event::PathShrank => consumer.on_path_shrank(now),
        }
    }
}
