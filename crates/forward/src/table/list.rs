//! Lists of the places of a slab, linked both ways; each operation takes the same short time.

use core::num::NonZeroU32;

/// A place's neighbours in the list that it is in. There is one of these for each cached packet, so it is small.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    older: Option<Neighbour>,
    newer: Option<Neighbour>,
}

/// A place, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour(NonZeroU32);

impl Neighbour {
    pub(super) fn at(place: usize) -> Self {
        let number = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("memory does not hold four thousand million packets"))
    }

    pub(super) const fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// One list. Several may share their links, as a place is in one of them at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    oldest: Option<usize>,
    newest: Option<usize>,
    length: usize,
}

impl List {
    pub(super) const fn oldest(&self) -> Option<usize> {
        self.oldest
    }

    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Appends `place`, which must be in no list.
    pub(super) fn append(&mut self, links: &mut Vec<Links>, place: usize) {
        if place >= links.len() {
            links.resize(place + 1, Links::default());
        }
        links[place] = Links {
            older: self.newest.map(Neighbour::at),
            newer: None,
        };
        match self.newest {
            Some(newest) => links[newest].newer = Some(Neighbour::at(place)),
            None => self.oldest = Some(place),
        }
        self.newest = Some(place);
        self.length += 1;
    }

    /// Takes `place`, which must be in this list, out.
    pub(super) fn remove(&mut self, links: &mut [Links], place: usize) {
        let Links { older, newer } = links[place];
        match older {
            Some(older) => links[older.place()].newer = newer,
            None => self.oldest = newer.map(Neighbour::place),
        }
        match newer {
            Some(newer) => links[newer.place()].older = older,
            None => self.newest = older.map(Neighbour::place),
        }
        self.length -= 1;
    }
}
