//! S3-FIFO: which place of a slab gives way, such that a scan does not sweep out what is requested again and again.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi: FIFO queues are all you need for cache eviction, SOSP 2023, algorithm 1. What is new
//! goes into a small queue, a tenth of all, and leaves it soon: for the main queue if it was used more than once meanwhile,
//! else for good, but its hash is remembered as a ghost. What comes back while its ghost is there goes to the main
//! queue at once. What is used in the main queue gets further rounds, one for each use up to three.

use namecast_units::ByteSize;

use super::ghosts::Ghosts;
use super::list::{Links, List};
use super::memory;

/// The small queue gives way while it is longer than one part in so many.
const SMALL_PART: usize = 10;
/// Uses that are counted.
const MAX_USES: u8 = 3;
/// Uses in the small queue above which a place is kept.
const KEPT_ABOVE: u8 = 1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Queue {
    #[default]
    Small,
    Main,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    queue: Queue,
    uses: u8,
    hash: u32,
    /// Grows with each place that is added, and begins again after 2^32.
    added: u32,
}

/// Two queues and ghosts; each operation takes a short time but for [`victim`](Self::victim), which takes
/// it on average.
#[derive(Debug, Default)]
pub(super) struct S3Fifo {
    places: Vec<Place>,
    links: Vec<Links>,
    small: List,
    main: List,
    ghosts: Ghosts,
    added: u32,
}

/// A [`Place`], and its links.
const PLACE: ByteSize = ByteSize::bytes(20);

const _: () = memory::check::<(Place, Links)>(PLACE);

impl S3Fifo {
    /// Memory that each place takes, with a ghost for each.
    pub(super) fn memory_per_place() -> ByteSize {
        PLACE + Ghosts::MEMORY_PER_PLACE
    }

    /// Adds `place`, which must not be there, for what hashes to `hash`.
    pub(super) fn add(&mut self, place: usize, hash: u64) {
        if place >= self.places.len() {
            self.places.resize(place + 1, Place::default());
            self.ghosts.grow(self.places.len());
        }
        self.added = self.added.wrapping_add(1);
        let hash = short(hash);
        self.places[place] = Place {
            hash,
            added: self.added,
            ..Place::default()
        };
        let queue = match self.ghosts.remove(hash, self.small.len() + self.main.len()) {
            true => Queue::Main,
            false => Queue::Small,
        };
        self.append(place, queue);
    }

    /// Notes that `place` was used.
    pub(super) fn touch(&mut self, place: usize) {
        let place = &mut self.places[place];
        place.uses = (place.uses + 1).min(MAX_USES);
    }

    /// Takes `place`, which must be there, out.
    pub(super) fn remove(&mut self, place: usize) {
        let (list, links) = self.list(self.places[place].queue);
        list.remove(links, place);
    }

    /// Which place gives way, if there is one. The caller removes it.
    pub(super) fn victim(&mut self) -> Option<usize> {
        loop {
            let total = self.small.len() + self.main.len();
            let is_small_due = self.small.len() * SMALL_PART > total || self.main.len() == 0;
            let queue = if is_small_due {
                Queue::Small
            } else {
                Queue::Main
            };
            let oldest = self.list(queue).0.oldest()?;
            let uses = &mut self.places[oldest].uses;
            let is_kept = match queue {
                Queue::Small => *uses > KEPT_ABOVE,
                Queue::Main => *uses > 0,
            };
            if !is_kept {
                if queue == Queue::Small {
                    self.ghosts.insert(self.places[oldest].hash);
                }
                return Some(oldest);
            }
            *uses = match queue {
                Queue::Small => 0,
                Queue::Main => *uses - 1,
            };
            self.remove(oldest);
            self.append(oldest, Queue::Main);
        }
    }

    /// Which of `places`, all of them there, was added first.
    pub(super) fn oldest_of(&self, places: &[usize]) -> Option<usize> {
        let age = |place: &usize| self.added.wrapping_sub(self.places[*place].added);
        places.iter().copied().max_by_key(age)
    }

    fn append(&mut self, place: usize, queue: Queue) {
        self.places[place].queue = queue;
        let (list, links) = self.list(queue);
        list.append(links, place);
    }

    const fn list(&mut self, queue: Queue) -> (&mut List, &mut Vec<Links>) {
        let list = match queue {
            Queue::Small => &mut self.small,
            Queue::Main => &mut self.main,
        };
        (list, &mut self.links)
    }
}

/// The part of a hash that is kept.
const fn short(hash: u64) -> u32 {
    hash as u32
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    /// Keeps at most ten, of names that are their own hashes.
    #[derive(Default)]
    struct Cache {
        order: S3Fifo,
        names: Vec<Option<u64>>,
    }

    impl Cache {
        /// Uses a name, which is added if it is not there; says whether it was.
        fn get(&mut self, name: u64) -> bool {
            if let Some(place) = self.names.iter().position(|it| *it == Some(name)) {
                self.order.touch(place);
                return true;
            }
            if self.names.iter().flatten().count() == 10 {
                let victim = self.order.victim().unwrap();
                self.order.remove(victim);
                self.names[victim] = None;
            }
            let free = self.names.iter().position(Option::is_none);
            let place = free.unwrap_or(self.names.len());
            self.names.resize(self.names.len().max(place + 1), None);
            self.names[place] = Some(name);
            self.order.add(place, name);
            false
        }

        fn names(&self) -> Vec<u64> {
            let mut names: Vec<_> = self.names.iter().flatten().copied().collect();
            names.sort_unstable();
            names
        }
    }

    /// Names 0 and 1 are used three times, then a hundred others once each: the two stay, the others go in the order in
    /// which they came.
    #[test]
    fn a_scan_leaves_what_was_used_again() {
        let mut cache = Cache::default();
        for name in [0, 1, 0, 1, 0, 1].into_iter().chain(100..200) {
            cache.get(name);
        }
        assert_eq!(
            cache.names(),
            [0, 1, 192, 193, 194, 195, 196, 197, 198, 199]
        );
    }

    /// 0 leaves when the eleventh name comes; back soon, it is a ghost and goes to the main queue, where one use more
    /// lets it outlive a scan of nine, all of which stay in the small queue.
    #[test]
    fn a_ghost_returns_to_the_main_queue() {
        let mut cache = Cache::default();
        (0..11).for_each(|name| assert!(!cache.get(name)));
        assert!(!cache.names().contains(&0));
        cache.get(0);
        (20..29).for_each(|name| assert!(!cache.get(name)));
        assert!(cache.get(0));
        (30..60).for_each(|name| assert!(!cache.get(name)));
        assert!(cache.get(0));
    }

    #[test]
    fn what_is_used_in_the_main_queue_loses_a_round_each_time() {
        let mut order = S3Fifo::default();
        for (place, uses) in [(0, 2), (1, 3)] {
            order.add(place, place as u64);
            (0..uses).for_each(|_| order.touch(place));
        }
        // Both move to the main queue with no uses left, and 0 is the oldest there.
        assert_eq!(order.victim(), Some(0));
        (0..2).for_each(|_| order.touch(0));
        assert_eq!(order.victim(), Some(1));
        order.remove(1);
        assert_eq!(order.victim(), Some(0));
        order.remove(0);
        assert_eq!(order.victim(), None);
    }

    /// Places that come, are used and go in any order: the two queues hold exactly those that are there.
    #[test]
    fn the_queues_hold_what_is_there() {
        let mut random = Random::from_seed(3);
        let (mut order, mut there) = (S3Fifo::default(), Vec::new());
        for step in 0..20_000 {
            let place = usize::try_from(random.below(50)).unwrap();
            match there.iter().position(|&it| it == place) {
                None => {
                    order.add(place, random.below(200));
                    there.push(place);
                }
                Some(at) if random.chance(0.3) => {
                    there.remove(at);
                    order.remove(place);
                }
                Some(_) => order.touch(place),
            }
            if step % 7 == 0
                && let Some(victim) = order.victim()
            {
                let at = there.iter().position(|&it| it == victim);
                there.remove(at.unwrap());
                order.remove(victim);
            }
            assert_eq!(order.small.len() + order.main.len(), there.len());
        }
    }
}
