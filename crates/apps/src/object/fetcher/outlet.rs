//! Where Interests leave, and Data is taken from its packets.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, Packet};
use namecast_stream::consumer::Delivery;
use namecast_stream::path::{Event, Token, Uplink, UplinkConfig};
use namecast_units::{Bitrate, Instant};

use super::config::{FetcherConfig, FetcherCounters};
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

    /// Sends what may be sent, and calls `lost` for what did not come, until nothing is lost.
    pub(super) fn settle(&mut self, now: Instant, mut lost: impl FnMut(&mut Uplink, Token)) {
        loop {
            self.uplink.handle_timeout(now);
            let mut is_settled = true;
            while let Some(event) = self.uplink.poll_event() {
                match event {
                    Event::Interest {
                        interest,
                        avoid_face,
                    } => self.outputs.push_back(face::request(&interest, avoid_face)),
                    Event::Lost(token) | Event::Dropped(token) => {
                        is_settled = false;
                        lost(&mut self.uplink, token);
                    }
                    _ => {}
                }
            }
            if is_settled {
                return;
            }
        }
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
