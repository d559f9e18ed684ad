//! Where Interests leave, and Data is taken from its packets.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, Packet};
use namecast_stream::consumer::Delivery;
use namecast_stream::path::{Event, Uplink, UplinkConfig};
use namecast_units::{Bitrate, Instant};

use super::config::{FetcherConfig, FetcherCounters};
use super::fetch::Fetch;
use crate::face;

/// Everything that is requested over one path, and the packets that leave.
pub(super) struct Outlet {
    pub(super) uplink: Uplink,
    outputs: VecDeque<Bytes>,
}

/// What arrived.
pub(super) enum Arrived {
    Data(Data, Delivery),
    Nack(Interest, NackReason),
}

impl Outlet {
    /// An outlet with the controller of `config`, of which `max_queued` requests may wait for the budget.
    pub(super) fn new(config: &FetcherConfig, max_queued: usize) -> Self {
        let bounds = UplinkConfig {
            seed: config.seed,
            max_queued,
            max_attempts: config.max_attempts,
            ..UplinkConfig::default()
        };
        let budget = config.control.build(Instant::ZERO, Bitrate::default());
        Self {
            uplink: Uplink::new(bounds, budget),
            outputs: VecDeque::new(),
        }
    }

    /// Sends what may be sent, and tells `fetches` what became of their requests, until that leads to no others.
    pub(super) fn settle(&mut self, now: Instant, fetches: &mut [&mut Fetch]) {
        loop {
            for fetch in fetches.iter_mut() {
                while let Some(request) = fetch.poll_request() {
                    self.uplink.carry_out(now, request);
                }
            }
            self.uplink.handle_timeout(now);
            let mut is_settled = true;
            while let Some(event) = self.uplink.poll_event() {
                let token = match event {
                    Event::Interest {
                        interest,
                        avoid_face,
                    } => {
                        self.outputs.push_back(face::request(&interest, avoid_face));
                        continue;
                    }
                    Event::Lost(token) | Event::Dropped(token) => {
                        is_settled = false;
                        token
                    }
                    Event::Sent { token, .. } => token,
                    Event::PathGrew(_) | Event::PathShrank => continue,
                };
                let mut fetches = fetches.iter_mut();
                if let Some(fetch) = fetches.find(|it| it.has_requested(token)) {
                    fetch.handle_event(now, &event);
                }
            }
            if is_settled {
                return;
            }
        }
    }

    /// Takes what arrived. Returns whether it is a Nack, or Data of use.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        arrived: &Arrived,
        fetches: &mut [&mut Fetch],
    ) -> bool {
        let mut is_of_use = false;
        match arrived {
            Arrived::Data(data, delivery) => {
                let received = delivery.received(data);
                self.uplink.handle_data(now, data.name(), &received);
                while let Some(answer) = self.uplink.poll_answer() {
                    let mut fetches = fetches.iter_mut();
                    let fetch = fetches.find(|it| it.has_requested(answer.token));
                    is_of_use |= fetch.is_some_and(|fetch| {
                        fetch.round_trip = self.uplink.path().round_trip(now);
                        fetch.handle_answer(now, answer.token, (data, *delivery))
                    });
                }
            }
            Arrived::Nack(interest, reason) => {
                for nacked in self.uplink.handle_nack(interest) {
                    let mut fetches = fetches.iter_mut();
                    if let Some(fetch) = fetches.find(|it| it.has_requested(nacked.token)) {
                        fetch.handle_nack(now, nacked, *reason);
                    }
                }
                is_of_use = true;
            }
        }
        is_of_use
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.uplink.poll_timeout()
    }

    pub(super) fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }
}

/// Takes Data or a Nack, bare or in a link packet. Anything else is counted.
pub(super) fn open(wire: Bytes, counters: &mut FetcherCounters) -> Option<Arrived> {
    match face::open(wire) {
        Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
            return Some(Arrived::Data(data, face::delivery(&link)));
        }
        Ok(Some((Packet::Interest(interest), link))) => match link.nack {
            Some(reason) => {
                counters.nacked += 1;
                return Some(Arrived::Nack(interest, reason));
            }
            None => counters.unexpected += 1,
        },
        Ok(_) => counters.unexpected += 1,
        Err(_) => counters.malformed += 1,
    }
    None
}
