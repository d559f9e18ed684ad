//! Names of the places of a slab in canonical order, in sixteen octets a place.
//!
//! A treap (Aragon, Seidel: Randomized Search Trees, FOCS 1989): a search tree by name that is a heap by priority, and so is
//! shaped as if names had come in the order of their priorities. These are seeded hashes, which makes that a random order
//! whatever names somebody chooses, and the tree as deep as a small multiple of the logarithm. What has the same name is in
//! order of its place.
//!
//! ```text
//!                    /m/4, priority 90, fresh until 7
//!                   ╱                                ╲
//!      /m/1, 40, until 7                        /n, 75, until 5
//!                       ╲                      ╱
//!              /m/3, 20, until 7       /m/9, 60, until 5
//! ```
//!
//! Each node knows how long anything from it downwards is fresh. So what is stale is stepped over together, not one by
//! one, and time that passes changes nothing in the tree.

use namecast_units::{ByteSize, Instant};
use smallvec::SmallVec;

use super::list::Neighbour;
use super::memory;

/// What the places hold that are put in order.
pub(super) trait Named {
    /// The name's TLV-VALUE, whose octets are in canonical order.
    fn name(&self, place: usize) -> &[u8];
    /// A hash of the name that nobody can foresee.
    fn hash(&self, place: usize) -> u64;
    /// First instant at which it is not fresh any more.
    fn stale_from(&self, place: usize) -> Instant;
}

/// A tree of places; each operation takes a time that grows with the logarithm of their number.
#[derive(Debug, Default)]
pub(super) struct Order {
    root: Option<Neighbour>,
    /// By place.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Where the names before this one go on, and those after it.
    below: [Option<Neighbour>; 2],
    /// From when on nothing is fresh any more, neither this place nor what is below it.
    stale_from: Instant,
}

const BEFORE: usize = 0;
const AFTER: usize = 1;

/// Where a link is: on a side of a place, or at the root.
type Link = Option<(usize, usize)>;

/// Places from the root downwards. Deeper trees than this are rare, and only cost an allocation.
type Path = SmallVec<[usize; 32]>;

const _: () = memory::check::<Node>(Order::MEMORY_PER_PLACE);

impl Order {
    /// Memory that each place takes.
    pub(super) const MEMORY_PER_PLACE: ByteSize = ByteSize::bytes(16);

    /// Adds `place`, which must not be there.
    pub(super) fn add(&mut self, names: &impl Named, place: usize) {
        if place >= self.nodes.len() {
            self.nodes.resize(place + 1, Node::default());
        }
        let (priority, stale_from) = (priority(names, place), names.stale_from(place));
        let (mut link, mut latest) = (None, stale_from);
        while let Some(node) = self.at(link) {
            if self::priority(names, node) < priority {
                latest = latest.max(self.nodes[node].stale_from);
                break;
            }
            self.nodes[node].stale_from = self.nodes[node].stale_from.max(stale_from);
            link = Some((node, side(names, place, node)));
        }
        let rest = self.at(link);
        self.nodes[place] = Node {
            below: [None; 2],
            stale_from: latest,
        };
        self.set(link, Some(place));
        self.split(names, rest, place);
    }

    /// Puts what is from `rest` downwards below `place`, on the side where it belongs.
    fn split(&mut self, names: &impl Named, mut rest: Option<usize>, place: usize) {
        let mut path = Path::new();
        // Where the next name before `place` goes, and the next one after it.
        let mut ends: [Link; 2] = [Some((place, BEFORE)), Some((place, AFTER))];
        while let Some(node) = rest {
            path.push(node);
            let own = side(names, node, place);
            self.set(ends[own], Some(node));
            let inner = Some((node, 1 - own));
            ends[own] = inner;
            rest = self.at(inner);
        }
        ends.into_iter().for_each(|end| self.set(end, None));
        self.refresh(names, &path, 0);
    }

    /// Takes `place`, which must be there, out. Must be called while its name is still there.
    pub(super) fn remove(&mut self, names: &impl Named, place: usize) {
        let (mut path, mut link) = self.path(names, place);
        let above = path.len();
        let mut halves = [BEFORE, AFTER].map(|side| self.at(Some((place, side))));
        while let [Some(before), Some(after)] = halves {
            let own = match priority(names, before) >= priority(names, after) {
                true => BEFORE,
                false => AFTER,
            };
            let top = [before, after][own];
            self.set(link, Some(top));
            path.push(top);
            link = Some((top, 1 - own));
            halves[own] = self.at(link);
        }
        self.set(link, halves[BEFORE].or(halves[AFTER]));
        self.refresh(names, &path, above);
    }

    /// Notes that `place`, which must be there, is fresh for longer, or less long.
    pub(super) fn update(&mut self, names: &impl Named, place: usize) {
        let (mut path, _) = self.path(names, place);
        let above = path.len();
        path.push(place);
        self.refresh(names, &path, above);
    }

    /// The first place whose name begins with `prefix`.
    pub(super) fn first(&self, names: &impl Named, prefix: &[u8]) -> Option<usize> {
        let (mut link, mut first) = (None, None);
        while let Some(node) = self.at(link) {
            let is_before = names.name(node) < prefix;
            if !is_before {
                first = Some(node);
            }
            link = Some((node, usize::from(is_before)));
        }
        first.filter(|&first| names.name(first).starts_with(prefix))
    }

    /// The first place whose name begins with `prefix` and that is fresh.
    pub(super) fn first_fresh(
        &self,
        names: &impl Named,
        prefix: &[u8],
        now: Instant,
    ) -> Option<usize> {
        let mut path = Path::new();
        let mut link = None;
        while let Some(node) = self.at_fresh(link, now) {
            let is_before = names.name(node) < prefix;
            if !is_before {
                path.push(node);
            }
            link = Some((node, usize::from(is_before)));
        }
        // From the lowest upwards, what is after each of them, which is before the next.
        while let Some(node) = path.pop()
            && names.name(node).starts_with(prefix)
        {
            let found = match now < names.stale_from(node) {
                true => Some(node),
                false => self.first_fresh_below(names, (node, AFTER), now),
            };
            if found.is_some() {
                return found.filter(|&found| names.name(found).starts_with(prefix));
            }
        }
        None
    }

    fn first_fresh_below(
        &self,
        names: &impl Named,
        link: (usize, usize),
        now: Instant,
    ) -> Option<usize> {
        let mut node = self.at_fresh(Some(link), now)?;
        loop {
            if let Some(before) = self.at_fresh(Some((node, BEFORE)), now) {
                node = before;
            } else if now < names.stale_from(node) {
                return Some(node);
            } else {
                node = self.at_fresh(Some((node, AFTER)), now)?;
            }
        }
    }

    /// The places above `place`, and the link to it.
    fn path(&self, names: &impl Named, place: usize) -> (Path, Link) {
        let (mut path, mut link) = (Path::new(), None);
        while let Some(node) = self.at(link).filter(|&node| node != place) {
            path.push(node);
            link = Some((node, side(names, place, node)));
        }
        (path, link)
    }

    fn at(&self, link: Link) -> Option<usize> {
        let there = match link {
            Some((node, side)) => self.nodes[node].below[side],
            None => self.root,
        };
        there.map(Neighbour::place)
    }

    /// The same, if anything from there downwards is fresh.
    fn at_fresh(&self, link: Link, now: Instant) -> Option<usize> {
        let is_fresh = |&node: &usize| now < self.nodes[node].stale_from;
        self.at(link).filter(is_fresh)
    }

    fn set(&mut self, link: Link, place: Option<usize>) {
        let there = match link {
            Some((node, side)) => &mut self.nodes[node].below[side],
            None => &mut self.root,
        };
        *there = place.map(Neighbour::at);
    }

    /// Finds out again how long these are fresh, the lowest first. The first `above` of them have not moved: once one of
    /// these is fresh for as long as before, so are those over it.
    fn refresh(&mut self, names: &impl Named, path: &[usize], above: usize) {
        for (depth, &node) in path.iter().enumerate().rev() {
            let below = self.nodes[node].below.into_iter().flatten();
            let below = below.map(|it| self.nodes[it.place()].stale_from);
            let latest = below.fold(names.stale_from(node), Instant::max);
            let before = core::mem::replace(&mut self.nodes[node].stale_from, latest);
            if depth < above && before == latest {
                return;
            }
        }
    }
}

/// On which side of `other` a place is.
fn side(names: &impl Named, place: usize, other: usize) -> usize {
    let key = |place| (names.name(place), place);
    usize::from(key(place) > key(other))
}

/// Another one for each place, as those of one name would be a list otherwise.
fn priority(names: &impl Named, place: usize) -> u64 {
    // Odd, and so one number for each; 2⁶⁴ over the golden ratio.
    names.hash(place) ^ (place as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
