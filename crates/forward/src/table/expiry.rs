//! When pending Interests expire.
//!
//! Each Interest sets a timer and nearly each is answered long before it, so setting and clearing must cost next to
//! nothing. Interests of one lifetime expire in the order in which they came: such a run is a lane, a list linked both
//! ways, in which a timer is set at the end and cleared anywhere without a search. What fits no lane goes into a tree.

use std::collections::BTreeSet;

use namecast_units::{ByteSize, Instant};

use super::memory;
use super::pit::EntryId;

/// So many lifetimes may be in use at a time with a lane each.
const LANES: usize = 4;

/// Memory that an entry takes here.
pub(super) const MEMORY_PER_PLACE: ByteSize = ByteSize::bytes(24);

const _: () = memory::check::<Link>(MEMORY_PER_PLACE);

/// When each pending Interest expires.
#[derive(Debug, Default)]
pub(crate) struct ExpiryQueue {
    lanes: [Option<Lane>; LANES],
    /// By place of the entry.
    links: Vec<Link>,
    others: BTreeSet<(Instant, EntryId)>,
}

/// A run of entries in order of time; never empty. When its ends expire stands here too, as each packet looks at it.
#[derive(Clone, Copy, Debug)]
struct Lane {
    first: EntryId,
    last: EntryId,
    first_at: Instant,
    last_at: Instant,
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    at: Instant,
    place: Place,
    earlier: Option<EntryId>,
    later: Option<EntryId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// It does not expire.
    #[default]
    None,
    Lane(u8),
    Others,
}

impl ExpiryQueue {
    /// The entry that expires first, and when; of several, any, but in equal runs the same.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Instant, EntryId)> {
        let lanes = self.lanes.iter().flatten();
        let firsts = lanes.map(|lane| (lane.first_at, lane.first));
        firsts.chain(self.others.first().copied()).min()
    }

    /// Takes out the first entry that expires by `now`.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<EntryId> {
        let (_, entry) = self.first().filter(|&(at, _)| at <= now)?;
        self.clear(entry);
        Some(entry)
    }

    /// Lets `entry` expire at `at`, and no longer when it did before.
    pub(crate) fn set(&mut self, entry: EntryId, at: Instant) {
        let index = entry.place();
        if index >= self.links.len() {
            self.links.resize(index + 1, Link::default());
        }
        if self.links[index].place != Place::None {
            if self.links[index].at == at {
                return;
            }
            self.clear(entry);
        }
        let (place, earlier) = match self.lane_for(at) {
            Some(number) => {
                let lane = &mut self.lanes[number];
                let before = lane.map(|lane| lane.last);
                *lane = Some(Lane {
                    first: lane.map_or(entry, |lane| lane.first),
                    first_at: lane.map_or(at, |lane| lane.first_at),
                    last: entry,
                    last_at: at,
                });
                (Place::Lane(number as u8), before)
            }
            None => {
                self.others.insert((at, entry));
                (Place::Others, None)
            }
        };
        if let Some(earlier) = earlier {
            self.links[earlier.place()].later = Some(entry);
        }
        self.links[index] = Link {
            at,
            place,
            earlier,
            later: None,
        };
    }

    /// Forgets when `entry` expires, if it does.
    pub(crate) fn clear(&mut self, entry: EntryId) {
        let Some(link) = self.links.get_mut(entry.place()) else {
            return;
        };
        let Link {
            at,
            place,
            earlier,
            later,
        } = core::mem::take(link);
        match place {
            Place::None => {}
            Place::Others => {
                self.others.remove(&(at, entry));
            }
            Place::Lane(number) => self.unlink(usize::from(number), earlier, later),
        }
    }

    /// Joins the neighbours of an entry that leaves a lane.
    fn unlink(&mut self, number: usize, earlier: Option<EntryId>, later: Option<EntryId>) {
        if let Some(later) = later {
            self.links[later.place()].earlier = earlier;
        }
        if let Some(earlier) = earlier {
            self.links[earlier.place()].later = later;
        }
        let lane = &mut self.lanes[number];
        match (lane.as_mut(), earlier, later) {
            (Some(lane), None, Some(later)) => {
                lane.first = later;
                lane.first_at = self.links[later.place()].at;
            }
            (Some(lane), Some(earlier), None) => {
                lane.last = earlier;
                lane.last_at = self.links[earlier.place()].at;
            }
            (_, None, None) => *lane = None,
            _ => {}
        }
    }

    /// The lane that `at` prolongs by least, or an empty one.
    fn lane_for(&self, at: Instant) -> Option<usize> {
        let fitting =
            |(_, lane): &(usize, &Option<Lane>)| lane.is_none_or(|lane| lane.last_at <= at);
        let last_at = |(_, lane): &(usize, &Option<Lane>)| lane.map(|lane| lane.last_at);
        let lanes = self.lanes.iter().enumerate();
        lanes
            .filter(fitting)
            .max_by_key(last_at)
            .map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use namecast_units::Random;

    use super::*;

    /// Against a tree of all: with one lifetime, with as many as there are lanes, with more, and with any.
    #[test]
    fn the_queue_does_what_a_plain_tree_does() {
        for lifetimes in [1, LANES as u64, 3 * LANES as u64, 40] {
            let mut random = Random::from_seed(lifetimes);
            let (mut queue, mut tree) = (ExpiryQueue::default(), BTreeSet::new());
            let (mut now, mut expired, mut not_in_lanes) = (Instant::ZERO, 0, 0);
            for _ in 0..30_000 {
                now += Duration::from_nanos(random.below(4));
                let entry = EntryId::from_place(random.below(200) as usize);
                tree.retain(|&(_, other)| other != entry);
                if random.chance(0.7) {
                    let lifetime = 50 * (1 + random.below(lifetimes));
                    let at = now + Duration::from_nanos(lifetime);
                    tree.insert((at, entry));
                    queue.set(entry, at);
                } else {
                    queue.clear(entry);
                }
                while tree.first().is_some_and(|&(at, _)| at <= now) {
                    let due = queue.pop_due(now).expect("the tree has one");
                    let at = tree.iter().find(|(_, other)| *other == due).copied();
                    assert!(at.is_some_and(|(at, _)| at <= now), "{at:?}");
                    tree.remove(&at.expect("just seen"));
                    expired += 1;
                }
                assert_eq!(queue.pop_due(now), None);
                let first = queue.first().map(|(at, _)| at);
                assert_eq!(first, tree.first().map(|&(at, _)| at));
                not_in_lanes += queue.others.len();
            }
            assert!(expired > 1_000, "{expired}");
            assert_eq!(not_in_lanes > 0, lifetimes > LANES as u64);
            (0..200).for_each(|place| queue.clear(EntryId::from_place(place)));
            assert!(queue.first().is_none() && queue.lanes.iter().all(Option::is_none));
        }
    }

    /// The tree is for what fits no lane; the usual case must not need it.
    #[test]
    fn as_many_lifetimes_as_lanes_need_no_tree() {
        let mut queue = ExpiryQueue::default();
        for round in 0..100 {
            for lane in 0..LANES {
                let at = Instant::from_nanos(1_000 * (lane as u64 + 1) + round);
                queue.set(EntryId::from_place(round as usize * LANES + lane), at);
            }
        }
        assert!(queue.others.is_empty());
        let beyond = EntryId::from_place(1_000);
        queue.set(beyond, Instant::ZERO);
        assert_eq!(queue.first(), Some((Instant::ZERO, beyond)));
        assert_eq!(queue.others.len(), 1);
    }

    /// A lane that a long lifetime prolonged is as short as before once that entry has gone.
    #[test]
    fn a_lane_ends_with_its_last_entry() {
        let mut queue = ExpiryQueue::default();
        let [first, long, last] = [0, 1, 2].map(EntryId::from_place);
        queue.set(first, Instant::from_nanos(10));
        queue.set(long, Instant::from_nanos(1_000));
        queue.clear(long);
        queue.set(last, Instant::from_nanos(20));
        let lanes: Vec<_> = queue.lanes.iter().flatten().collect();
        assert_eq!(
            (lanes.len(), lanes[0].first, lanes[0].last),
            (1, first, last)
        );
    }
}
