//! What an uplink wants done or known, in order, up to a number for each client.

use std::collections::{BTreeMap, VecDeque};

use super::super::queue::count_down;
use super::super::want::{ClientId, Event};

/// Reports that nobody took yet.
#[derive(Debug, Default)]
pub(super) struct Reports {
    events: VecDeque<Event>,
    /// How many of them are for each client alone.
    untaken: BTreeMap<ClientId, usize>,
}

impl Reports {
    /// Reports what is for all clients, or an Interest to send.
    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Reports `event` to `client`, unless it has `max_untaken` others to take.
    pub(super) fn tell(&mut self, client: ClientId, event: Event, max_untaken: usize) {
        let untaken = self.untaken.entry(client).or_default();
        if *untaken < max_untaken {
            *untaken += 1;
            self.events.push_back(event);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Sent { token, .. } | Event::Dropped(token) | Event::Lost(token) = &event {
            count_down(&mut self.untaken, token.client);
        }
        Some(event)
    }
}
