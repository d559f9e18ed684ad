//! What happens when time passes.

use std::borrow::Cow;

use bytes::Bytes;
use namecast_packet::{Extensions, Name};
use namecast_units::Instant;

use super::bundle::push_or_join;
use super::{Forwarder, Transmit};
use crate::counters::{DropReason, PacketKind};
use crate::face::FaceId;
use crate::fields::{HeardExtensions, LinkFields, Said};
use crate::hop::{Actions, Context, Event, Extras, Hops};
use crate::link::question;
use crate::table::{EntryId, Outcome, Slot};

/// What a packet is, where it came from, and where it goes.
type Passage = (PacketKind, FaceId, FaceId);

/// What hops are asked about.
type Ask = fn(&mut Hops, Instant, &mut Context<'_>) -> Actions;

impl Forwarder {
    /// Does what is due by `now`. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some(id) = self.tables.expiries.pop_due(self.now) {
            if self.hops.see_all() {
                let name = self.tables.pit.get(id).name.clone();
                self.show(&name, &[id], Hops::on_expiry);
            }
            let choice = self.tables.end(self.now, id, Outcome::Expired);
            self.strategies.count(choice, |choice| choice.timeouts += 1);
        }
        if self.hops.see_all() && self.hops.poll_timeout().is_some_and(|at| at <= self.now) {
            self.show(&Name::root(), &[], Hops::on_timeout);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.tables.expiries.first().map(|(at, _)| at);
        let due = expiry.into_iter().chain(self.output.poll_timeout());
        due.chain(self.hops.poll_timeout()).min()
    }

    /// The clock never goes back, whatever the driver says.
    pub(super) fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.output.handle_timeout(self.now);
    }

    /// Shows hops what comes about by time alone.
    #[cold]
    fn show(&mut self, name: &Name, entries: &[EntryId], ask: Ask) {
        if let Some(hashes) = self.tables.hashes(name) {
            let fields = LinkFields::default();
            let event = Event {
                entries,
                ..Event::about(name, &hashes, (FaceId::NONE, &fields))
            };
            let actions = self.ask_hops(event, ask);
            self.originate(actions);
        }
    }

    /// Shows hops what happens, and gives what they want.
    #[inline(always)]
    pub(super) fn ask_hops<T>(
        &mut self,
        event: Event<'_>,
        ask: impl FnOnce(&mut Hops, Instant, &mut Context<'_>) -> T,
    ) -> T {
        let mut context = Context {
            event,
            tables: &mut self.tables,
            choices: &self.strategies,
            random: &mut self.random,
            token: self.token.as_ref(),
            slot: Slot::NONE,
        };
        ask(&mut self.hops, self.now, &mut context)
    }

    /// Queues a network packet, with what may be said to the face that it goes to, as much later as a hop wants. What cannot be
    /// sent is dropped and counted.
    pub(super) fn send(
        &mut self,
        extras: Option<&Extras>,
        (kind, from, to): Passage,
        wire: Bytes,
        said: Said,
    ) {
        let Some(face) = self.tables.faces.get_mut(to) else {
            return self.tables.count_drop(to, DropReason::UnknownFace);
        };
        let hops = extras.map_or(&Extensions::NONE, Extras::extensions);
        let is_quiet = hops.is_empty() && said.extensions.is_empty() && self.bundling.is_none();
        let heard = match is_quiet {
            true => HeardExtensions::default(),
            false => face.hears_extensions(self.now),
        };
        let addressee = (&face.config, face.meter.as_deref());
        let frame = LinkFields::frame((said, hops), (kind, from), (addressee, heard), wire);
        if let Err(reason) = self.tables.count_sent(to, kind, &frame) {
            return self.tables.count_drop(to, reason);
        }
        let transmit = Transmit { face: to, frame };
        match extras {
            Some(extras) if !extras.delay.is_zero() => {
                let _ = self.output.push_delayed(self.now + extras.delay, transmit);
            }
            _ if self.bundling.is_some() => push_or_join(self, (kind, from), transmit),
            _ => self.output.push(transmit),
        }
    }

    /// Sends what a hop sends by itself.
    pub(super) fn originate(&mut self, actions: Actions) {
        let Some(mut extras) = actions.extras else {
            return;
        };
        if !extras.originates() {
            return;
        }
        if let Some(face) = extras.asks {
            ask_neighbour(self, face);
        }
        for (face, frame) in core::mem::take(&mut extras.frames) {
            if self.tables.count_own_frame(face, &frame).is_ok() {
                self.output.push(Transmit { face, frame });
            }
        }
        for packet in extras.take_originated() {
            let kind = match packet.nack {
                Some(reason) => PacketKind::Nack(reason),
                None => super::receive::kind_of(&packet.wire),
            };
            let passage = (kind, FaceId::NONE, packet.face);
            self.send(
                Some(&extras),
                passage,
                packet.wire,
                Cow::Owned(packet.fields),
            );
        }
    }
}

/// Asks a neighbour in a frame of its own what it speaks and takes, unless it was asked a moment ago.
fn ask_neighbour(forwarder: &mut Forwarder, to: FaceId) {
    let Some(face) = forwarder.tables.faces.get_mut(to) else {
        return;
    };
    let heard = face.hears_extensions(forwarder.now);
    let frame = question(heard.offers);
    if heard.question && forwarder.tables.count_own_frame(to, &frame).is_ok() {
        forwarder.output.push(Transmit { face: to, frame });
    }
}
