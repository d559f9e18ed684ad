//! The order in which the places of a slab were last used.

#[derive(Clone, Copy, Debug, Default)]
struct Links {
    older: Option<usize>,
    newer: Option<usize>,
    /// Grows with each use.
    used_at: u64,
}

/// A list of places, linked both ways; every operation but [`oldest_of`](Self::oldest_of) takes the same short time.
#[derive(Debug, Default)]
pub(super) struct Recency {
    oldest: Option<usize>,
    newest: Option<usize>,
    uses: u64,
    /// By place.
    links: Vec<Links>,
}

impl Recency {
    /// What was not used for longest.
    pub(super) const fn oldest(&self) -> Option<usize> {
        self.oldest
    }

    /// Which of `places`, all in the list, was not used for longest.
    pub(super) fn oldest_of(&self, places: &[usize]) -> Option<usize> {
        let used_at = |place: &usize| self.links[*place].used_at;
        places.iter().copied().min_by_key(used_at)
    }

    /// Appends `place`, which must not be in the list, as the most recently used.
    pub(super) fn add(&mut self, place: usize) {
        if place >= self.links.len() {
            self.links.resize(place + 1, Links::default());
        }
        self.uses += 1;
        self.links[place] = Links {
            older: self.newest,
            newer: None,
            used_at: self.uses,
        };
        match self.newest {
            Some(newest) => self.links[newest].newer = Some(place),
            None => self.oldest = Some(place),
        }
        self.newest = Some(place);
    }

    /// Takes `place`, which must be in the list, out.
    pub(super) fn remove(&mut self, place: usize) {
        let Links { older, newer, .. } = self.links[place];
        match older {
            Some(older) => self.links[older].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.links[newer].older = older,
            None => self.newest = older,
        }
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
