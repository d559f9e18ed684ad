//! What happens when time passes.

use namecast_packet::Name;
use namecast_units::Instant;

use super::Forwarder;
use crate::face::FaceId;
use crate::fields::LinkFields;
use crate::hop::{Actions, Context};
use crate::table::pit::EntryId;
use crate::table::{ChoiceId, Outcome};

impl Forwarder {
    /// Does what is due by `now`. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
        while let Some(entry) = self.tables.expiries.pop_due(self.now) {
            self.expire(entry);
        }
        if self.hops.see_all() {
            self.time_hops();
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

    /// A pending Interest's time is over.
    fn expire(&mut self, id: EntryId) {
        if self.hops.see_all() {
            self.show_expiry(id);
        }
        let choice = self.end(id, Outcome::Expired);
        self.strategies.count(choice, |choice| choice.timeouts += 1);
    }

    /// Ends a pending Interest; returns the choice that it counts for.
    pub(super) fn end(&mut self, id: EntryId, outcome: Outcome) -> ChoiceId {
        self.tables.end(self.now, id, outcome)
    }

    #[cold]
    fn show_expiry(&mut self, id: EntryId) {
        let name = self.tables.pit.get(id).name.clone();
        let Some(hashes) = self.tables.hashes(&name) else {
            return;
        };
        let fields = LinkFields::default();
        let entries = [id];
        let context = &mut Context {
            entries: &entries,
            ..Context::new(
                (&name, &hashes),
                &fields,
                &mut self.tables,
                &self.strategies,
                &mut self.random,
            )
        };
        let actions = self.hops.on_expiry(self.now, context);
        self.originate(actions);
    }

    #[cold]
    fn time_hops(&mut self) {
        if self.hops.poll_timeout().is_none_or(|at| at > self.now) {
            return;
        }
        let name = Name::root();
        let Some(hashes) = self.tables.hashes(&name) else {
            return;
        };
        let fields = LinkFields::default();
        let context = &mut Context::new(
            (&name, &hashes),
            &fields,
            &mut self.tables,
            &self.strategies,
            &mut self.random,
        );
        let actions = self.hops.on_timeout(self.now, context);
        self.originate(actions);
    }

    /// Sends what a hop sends by itself.
    pub(super) fn originate(&mut self, actions: Actions) {
        let Some(extras) = actions.extras else { return };
        for packet in extras.originated {
            let kind = super::receive::kind_of(&packet.wire);
            self.send_later(
                extras.delay,
                (kind, FaceId::NONE, packet.face),
                packet.wire,
                packet.fields,
            );
        }
    }
}
