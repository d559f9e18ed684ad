//! What a consumer wants done, and what became of packets, for those who estimate bandwidth by them.

use std::collections::VecDeque;

use crate::path::Request;
use crate::rate::PathEvent;

use super::types::Output;

/// Events kept until somebody takes them; the oldest go first.
const MAX_EVENTS: usize = 64;

/// Outputs, and events if somebody takes them.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    outputs: VecDeque<Output>,
    events: VecDeque<PathEvent>,
    keeps_events: bool,
}

impl Outbox {
    /// Wants `output` done.
    pub(super) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Wants `request` done by the uplink.
    pub(super) fn request(&mut self, request: Request) {
        self.push(Output::Request(request));
    }

    /// Returns the next thing to do, until `None`.
    pub(super) fn pop(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Sets whether events are kept.
    pub(super) const fn keep_events(&mut self, keeps_events: bool) {
        self.keeps_events = keeps_events;
    }

    /// Reports what became of a packet.
    pub(super) fn note(&mut self, event: PathEvent) {
        if !self.keeps_events {
            return;
        }
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Returns the next event, until `None`.
    pub(super) fn pop_event(&mut self) -> Option<PathEvent> {
        self.events.pop_front()
    }
}
