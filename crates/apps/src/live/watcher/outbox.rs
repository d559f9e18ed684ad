//! What a watcher wants done or known, until somebody asks.

use std::collections::VecDeque;

use super::output::{Event, Watched};
use crate::Output;

/// Outputs in order, up to a number.
#[derive(Debug)]
pub(super) struct Outbox {
    outputs: VecDeque<Output<Watched>>,
    max_outputs: usize,
}

impl Outbox {
    pub(super) const fn new(max_outputs: usize) -> Self {
        Self {
            outputs: VecDeque::new(),
            max_outputs,
        }
    }

    /// Reports a step or an incident.
    pub(super) fn event(&mut self, event: Event) {
        self.push(Watched::Event(event));
    }

    /// Reports `watched`.
    pub(super) fn push(&mut self, watched: Watched) {
        self.put(Output::Event(watched));
    }

    /// Wants `output` done.
    pub(super) fn put(&mut self, output: Output<Watched>) {
        if self.outputs.len() >= self.max_outputs {
            // Nobody listens. What is requested is retransmitted in time; frames can be skipped.
            self.outputs.pop_front();
        }
        self.outputs.push_back(output);
    }

    /// Returns the oldest output, until `None`.
    pub(super) fn pop(&mut self) -> Option<Output<Watched>> {
        self.outputs.pop_front()
    }

    pub(super) fn len(&self) -> usize {
        self.outputs.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_for_others() {
        let mut outbox = Outbox::new(2);
        outbox.event(Event::AskingForMetadata);
        outbox.event(Event::Starved);
        outbox.event(Event::Recovered);
        assert_eq!(outbox.len(), 2);
        let events = core::iter::from_fn(|| outbox.pop()).map(|output| match output {
            Output::Event(Watched::Event(event)) => event,
            other => panic!("{other:?}"),
        });
        let events: Vec<_> = events.collect();
        assert_eq!(events, [Event::Starved, Event::Recovered]);
    }
}
