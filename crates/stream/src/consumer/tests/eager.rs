//! A consumer of which everything is requested at once: the twin of an uplink without bounds.

use core::ops::{Deref, DerefMut};
use std::collections::VecDeque;

use namecast_packet::{Nonce, Verifier};
use namecast_units::Random;

use super::*;
use crate::path::{ClientId, Event, Request, Want};

/// What comes of it.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// An Interest has left.
    Sent(Want, Nonce),
    Sample(Sample),
}

/// The consumer, and what has left. What is called by way of this sends at once; all else is the consumer's own.
pub(super) struct Eager {
    consumer: Consumer,
    random: Random,
    /// Interests so far.
    order: u64,
    done: VecDeque<Done>,
}

impl Deref for Eager {
    type Target = Consumer;

    fn deref(&self) -> &Consumer {
        &self.consumer
    }
}

impl DerefMut for Eager {
    fn deref_mut(&mut self) -> &mut Consumer {
        &mut self.consumer
    }
}

impl Eager {
    pub(super) fn new(config: &Config, source: Source) -> Self {
        Self {
            consumer: Consumer::new(config, source, ClientId(1)),
            random: Random::from_seed(1),
            order: 0,
            done: VecDeque::new(),
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Sends what is wanted.
    fn send(&mut self, now: Instant) {
        while let Some(output) = self.consumer.poll_output() {
            match output {
                Output::Request(Request::Want(want)) => {
                    let nonce = Nonce::from(self.random.next_u64() as u32);
                    let sent = Event::Sent {
                        token: want.token,
                        nonce,
                        order: self.order,
                    };
                    self.consumer.on_event(now, &sent);
                    self.order += 1;
                    self.done.push_back(Done::Sent(want, nonce));
                }
                Output::Sample(sample) => self.done.push_back(Done::Sample(sample)),
                _ => {}
            }
        }
    }

    pub(super) fn start(&mut self, now: Instant, latest: &Latest, at: StartAt) -> Option<u64> {
        let first = self.consumer.start(now, latest, at);
        self.send(now);
        first
    }

    pub(super) fn handle_data(&mut self, now: Instant, data: &Data, delivery: Delivery) -> bool {
        let segment = self.consumer.source().names.parse(data.name());
        if let Some(segment) = segment {
            self.consumer.handle_data(now, segment, data, delivery);
        }
        self.send(now);
        segment.is_some()
    }

    pub(super) fn handle_nack(&mut self, now: Instant, of: &Interest, reason: NackReason) -> bool {
        let segment = self.consumer.source().names.parse(of.name());
        if let Some(segment) = segment {
            let nack = (of.nonce(), reason);
            self.consumer.handle_nack(now, segment, nack);
        }
        self.send(now);
        segment.is_some()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.consumer.handle_timeout(now);
        self.send(now);
    }

    pub(super) fn handle_link_change(&mut self, now: Instant) {
        self.consumer.handle_link_change(now);
        self.send(now);
    }

    pub(super) fn handle_decoder_error(&mut self, now: Instant) {
        self.consumer.handle_decoder_error(now);
        self.send(now);
    }

    pub(super) fn set_verifier(&mut self, now: Instant, verifier: Arc<dyn Verifier + Send + Sync>) {
        self.consumer.set_verifier(now, verifier);
        self.send(now);
    }

    pub(super) fn set_held(&mut self, now: Instant, is_held: bool) {
        self.consumer.set_held(now, is_held);
        self.send(now);
    }

    pub(super) fn pass_over(&mut self, now: Instant, position: u64) {
        let shown = Shown {
            position: Some(position),
            presented_at: Timestamp::default(),
        };
        self.consumer.pass_over(now, shown);
        self.send(now);
    }

    pub(super) fn begin_at(&mut self, now: Instant, position: u64) {
        self.consumer.begin_at(now, position);
        self.send(now);
    }
}
