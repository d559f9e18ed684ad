//! Passes what consumers want to the uplink, and what comes of it back to them.
//!
//! ```text
//!  Consumer ──Want──▶ Uplink ──▶ Interests        Data ──▶ Uplink ──▶ Path
//!     ▲                   │                           └─────▶ Consumer
//!     └── sent, dropped, lost, path longer
//! ```

use namecast_stream::path::Event;
use namecast_units::Instant;

use super::{Watcher, steer};
use crate::{Output, face};

impl Watcher {
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
                Event::Dropped(token) if !self.on_object_dropped(token) => {
                    if self.travel.on_dropped(token, &mut self.uplink) {
                        self.run_past(now);
                    }
                }
                Event::PathGrew(_) | Event::PathShrank => changed = true,
                Event::Dropped(_) | Event::Sent { .. } | Event::Lost(_) => {}
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
            let client = self.streams.new_client();
            let mut pulled = self.streams.take_out(at);
            let wheel = steer::Wheel {
                factory: self.factory(now),
                uplink: &self.uplink,
                client,
            };
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
