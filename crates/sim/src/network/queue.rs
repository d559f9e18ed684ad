//! What happens next: deadlines of many parts, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use namecast_units::Instant;

/// Deadlines by time; those of one instant come in the order in which they were set, where a part that asked for the instant
/// before may keep its place.
///
/// A part has at most one deadline that counts. Setting an earlier one overrides; setting a later one is ignored, since a
/// part that is called early asks again. So a part whose deadline keeps moving costs one entry, not one for each move.
#[derive(Debug)]
pub(super) struct EventQueue<P> {
    heap: BinaryHeap<Reverse<Entry>>,
    /// Whether the first entry of the heap was taken. The next deadline to be set takes its place, which is one way through
    /// the heap and not two; hardly anything happens that sets none.
    first_is_taken: bool,
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
            first_is_taken: false,
            parts: Vec::new(),
            order: 0,
        }
    }

    /// Adds a part without a deadline and tells its number.
    pub(super) fn add_part(&mut self, part: P) -> u32 {
        self.parts.push(Waking { due: NEVER, part });
        u32::try_from(self.parts.len() - 1).expect("memory ends before 2^32 parts")
    }

    /// Wakes the part of this number at `at`, unless it is woken before.
    pub(super) fn wake(&mut self, part: u32, at: Instant) {
        let due = &mut self.parts[part as usize].due;
        if at < *due {
            *due = at;
            self.order += 1;
            let order = self.order;
            let entry = Reverse(Entry { at, order, part });
            if self.first_is_taken
                && let Some(mut first) = self.heap.peek_mut()
            {
                *first = entry;
                self.first_is_taken = false;
            } else {
                self.heap.push(entry);
            }
        }
    }

    /// When the next part is due.
    pub(super) fn next(&mut self) -> Option<Instant> {
        while let Some(first) = self.heap.peek_mut() {
            let Reverse(Entry { at, part, .. }) = *first;
            if !self.first_is_taken && self.parts[part as usize].due == at {
                return Some(at);
            }
            self.first_is_taken = false;
            PeekMut::pop(first);
        }
        None
    }

    /// Takes the part that is due by `now`, if any, with its deadline.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(P, Instant)> {
        let at = self.next().filter(|&at| at <= now)?;
        let Reverse(entry) = self.heap.peek().expect("just seen");
        self.first_is_taken = true;
        let waking = &mut self.parts[entry.part as usize];
        waking.due = NEVER;
        Some((waking.part, at))
    }

    /// Entries held, overridden ones included.
    pub(super) fn len(&self) -> usize {
        self.heap.len() - usize::from(self.first_is_taken)
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

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

    /// Whether the taken entry is still in the heap must show in nothing: a naive twin searches all that is set.
    #[test]
    fn any_order_of_setting_and_taking_gives_what_a_search_gives() {
        let mut random = Random::from_seed(4);
        let mut queue = EventQueue::new();
        let parts: Vec<_> = (0..9).map(|part| queue.add_part(part)).collect();
        let (mut due, mut now) = ([u64::MAX; 9], 0);
        for step in 0..20_000 {
            let first = (0..9).filter(|&part| due[part] < u64::MAX);
            let first = first.min_by_key(|&part| due[part]);
            let first = first.map(|part| (part, at(due[part])));
            match random.below(3) {
                0 => {
                    let first = first.filter(|(_, time)| *time <= at(now));
                    assert_eq!(queue.pop(at(now)), first, "step {step}");
                    if let Some((part, _)) = first {
                        due[part] = u64::MAX;
                    }
                }
                1 => {
                    assert_eq!(queue.next(), first.map(|(_, time)| time), "step {step}");
                    now += random.below(4 << 16);
                }
                _ => {
                    // No two are for one instant.
                    let time = (((now >> 16) + random.below(20)) << 16) + step;
                    let part = random.below(9) as usize;
                    queue.wake(parts[part], at(time));
                    due[part] = due[part].min(time);
                }
            }
        }
    }
}
