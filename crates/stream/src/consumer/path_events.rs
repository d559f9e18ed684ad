//! What became of packets, for those who estimate bandwidth by them.

use std::collections::VecDeque;

use crate::ladder::PathEvent;

use super::Consumer;

/// Events kept until somebody takes them; the oldest go first.
const MAX_EVENTS: usize = 64;

/// Events, if somebody takes them.
#[derive(Clone, Debug, Default)]
pub(super) struct PathEvents {
    events: VecDeque<PathEvent>,
    is_enabled: bool,
}

impl Consumer {
    /// The next event, until `None`.
    pub fn poll_path_event(&mut self) -> Option<PathEvent> {
        self.events.events.pop_front()
    }

    /// Sets whether events are kept.
    pub const fn enable_path_events(&mut self, is_enabled: bool) {
        self.events.is_enabled = is_enabled;
    }

    pub(super) fn note_event(&mut self, event: PathEvent) {
        if !self.events.is_enabled {
            return;
        }
        if self.events.events.len() == MAX_EVENTS {
            self.events.events.pop_front();
        }
        self.events.events.push_back(event);
    }
}
