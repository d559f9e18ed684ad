//! Passes what consumers want to the requester, and what comes of it back to them.
//!
//! ```text
//!  Consumer ──Want──▶ Requester ──▶ Interests        Data ──▶ Requester ──▶ Path
//!     ▲                   │                           └─────▶ Consumer
//!     └── sent, dropped, lost, path longer
//! ```

use core::time::Duration;

use namecast_packet::{Data, LpPacket};
use namecast_stream::StreamKind;
use namecast_stream::consumer::{self, Delivery};
use namecast_stream::path::{Client, Event, Token};
use namecast_units::{Bitrate, ByteSize, Instant};

use super::pull::{ConsumerFactory, Pulled, Retired};
use super::{Watcher, steer};
use crate::Output;

/// Ladders decide this often at most.
const STEERING: Duration = Duration::from_millis(5);
/// Consumers that are gone and remembered.
const MAX_RETIRED: usize = 16;

impl Watcher {
    /// Sends what may be sent, and tells consumers what became of their requests.
    pub(super) fn run_requester(&mut self, now: Instant) {
        self.requester.set_target(self.config.target);
        let need: u64 = self
            .streams
            .iter()
            .map(|pulled| pulled.need().as_bps())
            .sum();
        self.requester.set_need(Bitrate::bps(need));
        self.requester.handle_timeout(now);
        let mut changed = false;
        while let Some(event) = self.requester.poll_event() {
            for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
                consumer.on_event(now, &event);
            }
            match event {
                Event::Interest {
                    interest,
                    avoid_face,
                } => {
                    let packet = LpPacket {
                        avoid_face,
                        ..LpPacket::carrying(interest.wire().clone())
                    };
                    self.put(Output::Send(packet.encode()));
                }
                // A consumer's is for it alone.
                Event::Dropped(token) if !self.on_object_dropped(token) => {
                    self.on_past_dropped(now, token);
                }
                Event::PathGrew(_) | Event::PathShrank => changed = true,
                Event::Dropped(_) | Event::Sent { .. } | Event::Lost(_) => {}
            }
        }
        if changed {
            self.share_playout(now);
        }
        let outlook = self.requester.path().outlook(now);
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            consumer.schedule_mut().set_outlook(outlook);
        }
    }

    /// Requests, or withdraws, what a consumer wants.
    pub(super) fn on_request(&mut self, now: Instant, client: Client, request: consumer::Output) {
        if matches!(request, consumer::Output::RoundTrip(_)) {
            // Small packets are sooner through a slow link.
            let sound = self.stream(StreamKind::Audio);
            let is_sound = sound.is_some_and(|it| it.consumer.client() == client);
            if is_sound && self.streams.len() > 1 {
                return;
            }
        }
        request.carry_out(now, client, &mut self.requester);
    }

    /// Takes Data that may be a segment. Returns whether it is.
    pub(super) fn on_segment(&mut self, now: Instant, data: &Data, delivery: Delivery) -> bool {
        let size = ByteSize::of(data.wire());
        let mut found = None;
        for consumer in self.streams.iter_mut().flat_map(Pulled::consumers) {
            let Some(token) = consumer.token_of(data.name()) else {
                continue;
            };
            // Of two that pull one rung, the one that requested it.
            let is_out = self.requester.is_out(token);
            if is_out || found.is_none() {
                found = Some((consumer, token));
            }
            if is_out {
                break;
            }
        }
        let retired = self.retired.iter().find_map(|(client, names)| {
            let (client, segment) = (*client, names.parse(data.name())?);
            let token = Token { client, segment };
            self.requester.is_out(token).then_some(token)
        });
        let is_wanted = found
            .as_ref()
            .is_some_and(|(_, token)| self.requester.is_out(*token));
        if let Some(token) = retired.filter(|_| !is_wanted) {
            self.requester
                .handle_data(now, token, size, delivery.congestion_marked);
            return true;
        }
        if let Some((consumer, token)) = found {
            let is_marked = delivery.congestion_marked;
            self.requester.handle_data(now, token, size, is_marked);
            return consumer.handle_data(now, data, delivery);
        }
        let mut probing = self
            .streams
            .iter()
            .filter_map(|pulled| pulled.probing.as_ref());
        let token = probing.find_map(|probing| probing.parse(data.name()));
        if let Some(token) = token {
            self.requester
                .handle_data(now, token, size, delivery.congestion_marked);
        }
        token.is_some()
    }

    /// Lets ladders decide, a few hundred times a second at most.
    pub(super) fn steer(&mut self, now: Instant) {
        if now.since(self.steered_at) < STEERING {
            return;
        }
        self.steered_at = now;
        let mut steered = false;
        for at in 0..self.streams.len() {
            if !self.streams[at].is_steered() || self.travel.is_away() {
                continue;
            }
            let client = self.client();
            let mut pulled = self.streams.remove(at);
            let sound = self.sound_need();
            let wheel = steer::Wheel {
                factory: ConsumerFactory {
                    sound,
                    ..self.factory(now)
                },
                requester: &self.requester,
                client,
            };
            let wants = pulled.steer(now, &wheel);
            self.streams.insert(at, pulled);
            steered = true;
            for want in wants {
                self.requester.want(now, want);
            }
        }
        if steered {
            self.drain(now);
            self.run_requester(now);
        }
    }

    pub(super) fn client(&mut self) -> Client {
        self.next_client = self.next_client.wrapping_add(1);
        self.next_client
    }

    /// What sound takes on the wire.
    pub(super) fn sound_need(&self) -> Bitrate {
        let sound = self.stream(StreamKind::Audio);
        sound.map_or(Bitrate::default(), Pulled::need)
    }

    /// Withdraws all that `pulled` has requested.
    pub(super) fn withdraw(&mut self, pulled: &Pulled) {
        for retired in pulled.clients() {
            self.retire(retired);
        }
    }

    /// Withdraws what a consumer that is gone has requested. What is out comes all the same, and tells of the path.
    pub(super) fn retire(&mut self, (client, names): Retired) {
        self.requester.withdraw_client(client);
        if self.retired.len() == MAX_RETIRED {
            self.retired.pop_front();
        }
        self.retired.push_back((client, names));
    }
}
