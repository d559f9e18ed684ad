//! Frames between the queue and the far end.

use core::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use namecast_units::{Duration, Instant};

/// A frame that has left the queue.
#[derive(Clone, Debug)]
pub(crate) struct Flying<F> {
    /// When it arrives.
    pub(crate) at: Instant,
    pub(crate) frame: F,
    /// How long it waited before.
    pub(crate) queued_for: Duration,
    pub(crate) is_marked: bool,
    pub(crate) is_damaged: bool,
    pub(crate) has_copy: bool,
}

/// Frames under way, to be taken in the order of their arrival; those that arrive together, in the order they were sent.
#[derive(Clone, Debug)]
pub(crate) enum Flight<F> {
    /// Nobody overtakes: the order in which they were sent.
    Ordered {
        flying: VecDeque<Flying<F>>,
        /// No frame arrives before this.
        last: Instant,
    },
    /// By arrival.
    Overtaking {
        flying: BinaryHeap<Reverse<Numbered<F>>>,
        sent: u64,
    },
}

impl<F> Flight<F> {
    pub(crate) const fn new(reorder: bool) -> Self {
        match reorder {
            false => Self::Ordered {
                flying: VecDeque::new(),
                last: Instant::ZERO,
            },
            true => Self::Overtaking {
                flying: BinaryHeap::new(),
                sent: 0,
            },
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Ordered { flying, .. } => flying.len(),
            Self::Overtaking { flying, .. } => flying.len(),
        }
    }

    /// Returns when the next frame arrives.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        match self {
            Self::Ordered { flying, .. } => flying.front().map(|frame| frame.at),
            Self::Overtaking { flying, .. } => flying.peek().map(|Reverse(next)| next.flying.at),
        }
    }

    /// Adds a frame. One that would overtake, where none may, waits for those before it.
    #[inline]
    pub(crate) fn push(&mut self, mut frame: Flying<F>) {
        match self {
            Self::Ordered { flying, last } => {
                *last = frame.at.max(*last);
                frame.at = *last;
                flying.push_back(frame);
            }
            Self::Overtaking { flying, sent } => {
                *sent += 1;
                flying.push(Reverse(Numbered {
                    number: *sent,
                    flying: frame,
                }));
            }
        }
    }

    /// Returns the next frame.
    pub(crate) fn pop(&mut self) -> Option<Flying<F>> {
        match self {
            Self::Ordered { flying, .. } => flying.pop_front(),
            Self::Overtaking { flying, .. } => flying.pop().map(|Reverse(next)| next.flying),
        }
    }

    /// Returns the next frame if it arrives by `until`.
    #[inline]
    pub(crate) fn pop_until(&mut self, until: Instant) -> Option<Flying<F>> {
        match self {
            Self::Ordered { flying, .. } => flying.pop_front_if(|next| next.at <= until),
            Self::Overtaking { .. } if self.next_at().is_some_and(|at| at <= until) => self.pop(),
            Self::Overtaking { .. } => None,
        }
    }

    /// Forgets that later frames have to wait: those before are lost.
    pub(crate) const fn forget_order(&mut self) {
        if let Self::Ordered { last, .. } = self {
            *last = Instant::ZERO;
        }
    }
}

/// A frame with its place in the order of sending, compared by arrival and that.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<F> {
    number: u64,
    flying: Flying<F>,
}

impl<F> Numbered<F> {
    const fn key(&self) -> (Instant, u64) {
        (self.flying.at, self.number)
    }
}

impl<F> PartialEq for Numbered<F> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<F> Eq for Numbered<F> {}

impl<F> PartialOrd for Numbered<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F> Ord for Numbered<F> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
