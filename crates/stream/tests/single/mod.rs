//! A consumer that has an uplink, and so a path, to itself.

#![allow(dead_code, reason = "each test that includes this uses a part of it")]

use std::collections::VecDeque;

use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest};
use namecast_stream::consumer::{Consumer, Delivery, Output, Sample};
use namecast_stream::path::{Event, Uplink};
use namecast_units::Instant;

/// Something a single consumer wants done.
#[derive(Clone, Debug)]
pub(crate) enum SingleOutput {
    /// An Interest to send.
    Interest(Interest),
    /// The next sample, in decoding order.
    Sample(Sample),
    /// The next sample, a key sample, does not follow the last one.
    Discontinuity,
}

/// One consumer and its uplink.
///
/// A plain value: give it Data, Nacks and the time, and after each call take everything from
/// [`poll_output`](Self::poll_output). Whatever else is done with the consumer takes effect with the next
/// [`handle_timeout`](Self::handle_timeout).
#[derive(Debug)]
pub(crate) struct Single {
    /// The consumer.
    pub(crate) consumer: Consumer,
    uplink: Uplink,
    outputs: VecDeque<SingleOutput>,
}

impl Single {
    /// Lets `uplink`, which drew the number of `consumer`, send what it wants.
    pub(crate) fn new(consumer: Consumer, mut uplink: Uplink) -> Self {
        uplink.set_need(consumer.source().bitrate_with_parity());
        Self {
            consumer,
            uplink,
            outputs: VecDeque::new(),
        }
    }

    /// Returns what sends Interests.
    pub(crate) const fn uplink(&self) -> &Uplink {
        &self.uplink
    }

    /// Takes one Data packet. Returns whether it was requested.
    pub(crate) fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) -> bool {
        let received = delivery.received(data);
        self.uplink.handle_data(now, data.name(), &received);
        let Some(answer) = self.uplink.poll_answer() else {
            return false;
        };
        let segment = answer.token.segment;
        self.consumer.handle_data(now, segment, data, delivery);
        self.settle(now);
        true
    }

    /// Takes an Interest that came back. Returns whether it is the consumer's.
    pub(crate) fn handle_nack(
        &mut self,
        now: Instant,
        interest: &Interest,
        reason: NackReason,
    ) -> bool {
        let nacked = self.uplink.handle_nack(interest);
        for nacked in &nacked {
            self.uplink.take_back(now, *nacked, reason);
            let nack = (interest.nonce(), reason);
            self.consumer.handle_nack(now, nacked.token.segment, nack);
        }
        self.settle(now);
        !nacked.is_empty()
    }

    /// The transport came back: everything that is out is requested again.
    pub(crate) fn handle_link_change(&mut self, now: Instant) {
        self.uplink.handle_link_change();
        self.consumer.handle_link_change(now);
        self.settle(now);
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.consumer.handle_timeout(now);
        self.settle(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let both = [self.consumer.poll_timeout(), self.uplink.poll_timeout()];
        both.into_iter().flatten().min()
    }

    /// Returns the next thing to do, until `None`.
    pub(crate) fn poll_output(&mut self) -> Option<SingleOutput> {
        self.outputs.pop_front()
    }

    fn settle(&mut self, now: Instant) {
        while let Some(output) = self.consumer.poll_output() {
            let output = match output {
                Output::Request(request) => {
                    self.uplink.carry_out(now, request);
                    continue;
                }
                Output::Sample(sample) => SingleOutput::Sample(sample),
                Output::Discontinuity => SingleOutput::Discontinuity,
            };
            self.outputs.push_back(output);
        }
        self.uplink.handle_timeout(now);
        while let Some(event) = self.uplink.poll_event() {
            self.consumer.on_event(now, &event);
            if let Event::Interest { interest, .. } = event {
                self.outputs.push_back(SingleOutput::Interest(interest));
            }
        }
        let outlook = self.uplink.path().outlook(now);
        self.consumer.schedule_mut().set_outlook(outlook);
    }
}
