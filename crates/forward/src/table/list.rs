//! Lists of the places of a slab, linked both ways; each operation takes the same short time.

use core::num::NonZeroU32;

/// A place's neighbours in the list that it is in. There is one of these for each cached packet, so it is small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    older: Option<Neighbour>,
    newer: Option<Neighbour>,
}

/// A place, counted from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neighbour(NonZeroU32);

impl Neighbour {
    pub(super) fn at(place: usize) -> Self {
        let number = u32::try_from(place + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("memory does not hold 2^32 packets"))
    }

    pub(super) const fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// One list. Several may share their links, as a place is in one of them at most.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    oldest: Option<Neighbour>,
    newest: Option<Neighbour>,
    length: u32,
}

impl List {
    pub(crate) fn oldest(&self) -> Option<usize> {
        self.oldest.map(Neighbour::place)
    }

    pub(crate) const fn len(&self) -> usize {
        self.length as usize
    }

    /// Appends `place`, which must be in no list.
    pub(crate) fn append(&mut self, links: &mut Vec<Links>, place: usize) {
        if place >= links.len() {
            links.resize(place + 1, Links::default());
        }
        links[place] = Links {
            older: self.newest,
            newer: None,
        };
        let appended = Some(Neighbour::at(place));
        match self.newest {
            Some(newest) => links[newest.place()].newer = appended,
            None => self.oldest = appended,
        }
        self.newest = appended;
        self.length += 1;
    }

    /// Takes `place`, which must be in this list, out.
    pub(crate) fn remove(&mut self, links: &mut [Links], place: usize) {
        let Links { older, newer } = links[place];
        match older {
            Some(older) => links[older.place()].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => links[newer.place()].older = older,
            None => self.newest = older,
        }
        self.length -= 1;
    }
}
