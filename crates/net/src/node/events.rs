//! What has become of faces lately.

use std::collections::VecDeque;

use namecast_units::Instant;
use tokio::sync::watch;

use super::FaceDescription;

/// Events that are kept for those who ask late; NFD keeps as many.
const MAX_EVENTS: usize = 256;

/// What became of a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaceEventKind {
    /// There is a new one.
    Created,
    /// It is no more.
    Destroyed,
    /// Its peer can be reached.
    Up,
    /// Its peer cannot be reached any more.
    Down,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct FaceEvent {
    /// Counts events, from 0.
    pub(crate) number: u64,
    /// When it happened.
    pub(crate) at: Instant,
    /// What happened.
    pub(crate) kind: FaceEventKind,
    /// The face, as it is after the event, or was before it ended.
    pub(crate) face: FaceDescription,
}

/// The newest events; the older ones are forgotten, which their numbers show.
#[derive(Debug)]
pub(crate) struct FaceEvents {
    kept: VecDeque<FaceEvent>,
    next: watch::Sender<u64>,
}

impl FaceEvents {
    pub(crate) fn new() -> Self {
        Self {
            kept: VecDeque::new(),
            next: watch::channel(0).0,
        }
    }

    /// Records an event.
    pub(crate) fn add(&mut self, at: Instant, kind: FaceEventKind, face: FaceDescription) {
        let number = *self.next.borrow();
        if self.kept.len() >= MAX_EVENTS {
            self.kept.pop_front();
        }
        self.kept.push_back(FaceEvent {
            number,
            at,
            kind,
            face,
        });
        self.next.send_replace(number + 1);
    }

    /// The number of the next event, and every change of that.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.next.subscribe()
    }

    /// The events that are kept from number `first` on.
    pub(crate) fn since(&self, first: u64) -> Vec<FaceEvent> {
        let kept = self.kept.iter();
        kept.filter(|event| event.number >= first)
            .cloned()
            .collect()
    }
}
