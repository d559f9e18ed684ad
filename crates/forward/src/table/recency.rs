//! The order in which the places of a slab were last used.

use namecast_units::ByteSize;

use super::list::{Links, List};
use super::memory;

/// A list of places; every operation but [`oldest_of`](Self::oldest_of) takes the same short time.
#[derive(Debug, Default)]
pub(super) struct Recency {
    order: List,
    links: Vec<Links>,
    uses: u64,
    /// By place; grows with each use.
    used_at: Vec<u64>,
}

const _: () = memory::check::<(Links, u64)>(Recency::MEMORY_PER_PLACE);

impl Recency {
    /// Memory that each place takes: its links, and when it was used.
    pub(super) const MEMORY_PER_PLACE: ByteSize = ByteSize::bytes(16);

    /// What was not used for longest.
    pub(super) fn oldest(&self) -> Option<usize> {
        self.order.oldest()
    }

    /// Which of `places`, all in the list, was not used for longest.
    pub(super) fn oldest_of(&self, places: &[usize]) -> Option<usize> {
        let used_at = |place: &usize| self.used_at[*place];
        places.iter().copied().min_by_key(used_at)
    }

    /// Appends `place`, which must not be in the list, as the most recently used.
    pub(super) fn add(&mut self, place: usize) {
        if place >= self.used_at.len() {
            self.used_at.resize(place + 1, 0);
        }
        self.uses += 1;
        self.used_at[place] = self.uses;
        self.order.append(&mut self.links, place);
    }

    /// Takes `place`, which must be in the list, out.
    pub(super) fn remove(&mut self, place: usize) {
        self.order.remove(&mut self.links, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(mut list: Recency) -> Vec<usize> {
        core::iter::from_fn(|| {
            let oldest = list.oldest()?;
            list.remove(oldest);
            Some(oldest)
        })
        .collect()
    }

    #[test]
    fn places_leave_in_the_order_of_their_last_use() {
        let mut list = Recency::default();
        [5, 0, 3].into_iter().for_each(|place| list.add(place));
        list.remove(5);
        list.add(5);
        assert_eq!(list.oldest_of(&[5, 3]), Some(3));
        assert_eq!(order(list), [0, 3, 5]);
    }

    #[test]
    fn the_last_one_out_leaves_an_empty_list() {
        let mut list = Recency::default();
        list.add(1);
        list.remove(1);
        assert_eq!(list.oldest(), None);
        list.add(2);
        assert_eq!(order(list), [2]);
    }
}
