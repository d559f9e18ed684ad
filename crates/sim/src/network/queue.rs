//! What happens next: deadlines of many parts, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use namecast_units::Instant;

/// Deadlines by time; those of one instant come in the order in which they were set.
///
/// A part has at most one deadline that counts. Setting an earlier one overrides; setting a later one is ignored, since a
/// part that is called early asks again. So a part whose deadline keeps moving costs one entry, not one for each move.
#[derive(Debug)]
pub(super) struct EventQueue<P> {
    heap: BinaryHeap<Reverse<Entry>>,
    parts: Vec<Waking<P>>,
    order: u64,
}

/// A part: beside its deadline who it is, as that is asked for next.
#[derive(Debug)]
struct Waking<P> {
    /// The deadline that counts.
    due: Instant,
    part: P,
}

/// Compares by time, then order; the part never decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Instant,
    order: u64,
    part: u32,
}

const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl<P: Copy> EventQueue<P> {
    pub(super) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            parts: Vec::new(),
            order: 0,
        }
    }

    /// Adds a part without a deadline and tells its number.
    pub(super) fn add_part(&mut self, part: P) -> u32 {
        self.parts.push(Waking { due: NEVER, part });
        u32::try_from(self.parts.len() - 1).expect("memory ends before four thousand million parts")
    }

    /// Wakes the part of this number at `at`, unless it is woken before.
    pub(super) fn wake(&mut self, part: u32, at: Instant) {
        let due = &mut self.parts[part as usize].due;
        if at < *due {
            *due = at;
            self.order += 1;
            let order = self.order;
            self.heap.push(Reverse(Entry { at, order, part }));
        }
    }

    /// When the next part is due.
    pub(super) fn next(&mut self) -> Option<Instant> {
        while let Some(Reverse(entry)) = self.heap.peek() {
            if self.parts[entry.part as usize].due == entry.at {
                return Some(entry.at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the part that is due by `now`, if any, with its deadline.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(P, Instant)> {
        let at = self.next().filter(|&at| at <= now)?;
        let Reverse(entry) = self.heap.pop().expect("just seen");
        let waking = &mut self.parts[entry.part as usize];
        waking.due = NEVER;
        Some((waking.part, at))
    }

    /// Entries held, overridden ones included.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn parts_come_by_time_and_then_in_the_order_they_were_set() {
        let mut queue = EventQueue::new();
        let parts: Vec<_> = (0..4).map(|part| queue.add_part(part)).collect();
        for (part, time) in [(3, 20), (1, 10), (0, 10), (2, 5)] {
            queue.wake(parts[part], at(time));
        }
        let order: Vec<_> = core::iter::from_fn(|| queue.pop(at(20))).collect();
        assert_eq!(order, [(2, at(5)), (1, at(10)), (0, at(10)), (3, at(20))]);
    }

    #[test]
    fn an_earlier_deadline_overrides_and_a_later_one_does_not() {
        let mut queue = EventQueue::new();
        let part = queue.add_part(7);
        queue.wake(part, at(10));
        queue.wake(part, at(30));
        queue.wake(part, at(4));
        assert_eq!(queue.pop(at(3)), None);
        assert_eq!(queue.pop(at(100)), Some((7, at(4))));
        assert_eq!((queue.pop(at(100)), queue.len()), (None, 0));
    }

    #[test]
    fn a_deadline_that_moves_with_every_packet_keeps_the_queue_short() {
        let mut queue = EventQueue::new();
        let part = queue.add_part(());
        (1..10_000).for_each(|time| queue.wake(part, at(time)));
        assert_eq!(queue.len(), 1);
    }
}
