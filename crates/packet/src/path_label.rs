//! Path labels: which way an Interest is to go, or Data came.
//!
//! ```text
//!  flags │ label of the next hop │ label of the one after it │ …       1 octet, and 3 for each hop
//! ```
//!
//! As in \[RFC9531\], each node on the way back puts the label of the face in front that Data came from, and each on the way there
//! takes its own off. Labels are here of 24 bits, and a label means something to the node that made it only.

use core::fmt;

/// What one node calls one of its next hops.
pub type HopLabel = [u8; 3];

/// Length of flags and of a label.
const FLAGS: usize = 1;
const HOP: usize = 3;
/// In the flags: nodes choose among next hops where no label is left. Others are ignored.
const DISCOVERY: u8 = 1;

/// A path as the value of the link header field [`PATH_LABEL`](crate::Extensions::PATH_LABEL).
///
/// Consumers send back what came with Data, and need not know what is in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathLabel {
    octets: [u8; Self::MAX_SIZE],
    size: u8,
}

impl PathLabel {
    /// Most hops of a path.
    pub const MAX_HOPS: usize = 9;
    /// Most octets of a label.
    pub const MAX_SIZE: usize = FLAGS + HOP * Self::MAX_HOPS;
    /// The path of which nothing is left, or that began at the node that has it.
    pub const EMPTY: Self = Self {
        octets: [0; Self::MAX_SIZE],
        size: FLAGS as u8,
    };
    /// Requests a path: nodes take each of their next hops in turn, so that several such Interests find several paths.
    pub const DISCOVERY: Self = {
        let mut label = Self::EMPTY;
        label.octets[0] = DISCOVERY;
        label
    };

    /// Reads the value of the field; `None` if it is no label, or one of too many hops.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (&flags, hops) = value.split_first()?;
        if value.len() > Self::MAX_SIZE || !hops.len().is_multiple_of(HOP) {
            return None;
        }
        let mut label = Self::EMPTY;
        label.octets[..value.len()].copy_from_slice(value);
        label.octets[0] = flags & DISCOVERY;
        label.size = value.len() as u8;
        Some(label)
    }

    /// Returns the value of the field.
    pub fn as_octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.size)]
    }

    /// Returns whether nodes are to choose a next hop where no label is left.
    pub const fn is_discovery(&self) -> bool {
        self.octets[0] & DISCOVERY != 0
    }

    /// Returns how many labels there are.
    pub fn hops(&self) -> usize {
        (usize::from(self.size) - FLAGS) / HOP
    }

    /// Returns the label of the next hop, if one is left.
    pub fn first(&self) -> Option<HopLabel> {
        self.as_octets()[FLAGS..].first_chunk().copied()
    }

    /// Returns what is left of the path after the next hop.
    #[must_use]
    pub fn after_first(&self) -> Self {
        let mut rest = Self::EMPTY;
        rest.octets[0] = self.octets[0];
        if let Some((_, hops)) = self.as_octets()[FLAGS..].split_first_chunk::<HOP>() {
            rest.octets[FLAGS..FLAGS + hops.len()].copy_from_slice(hops);
            rest.size = (FLAGS + hops.len()) as u8;
        }
        rest
    }

    /// Returns the path that goes to `hop` first; `None` if that is one hop too many.
    pub fn behind(&self, hop: HopLabel) -> Option<Self> {
        let hops = &self.as_octets()[FLAGS..];
        if self.hops() == Self::MAX_HOPS {
            return None;
        }
        let mut whole = Self::EMPTY;
        whole.octets[0] = self.octets[0];
        whole.octets[FLAGS..FLAGS + HOP].copy_from_slice(&hop);
        whole.octets[FLAGS + HOP..FLAGS + HOP + hops.len()].copy_from_slice(hops);
        whole.size = self.size + HOP as u8;
        Some(whole)
    }

    /// Returns the same path, with nothing to be discovered behind it: what Data say.
    #[must_use]
    pub const fn found(mut self) -> Self {
        self.octets[0] = 0;
        self
    }
}

impl fmt::Debug for PathLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_discovery() {
            f.write_str("?")?;
        }
        let hops = self.as_octets()[FLAGS..].chunks(HOP);
        f.debug_list().entries(hops).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three nodes put labels in front, and take them off in the opposite order.
    #[test]
    fn what_is_put_in_front_on_the_way_back_comes_off_on_the_way_there() {
        let hops = [[3, 3, 3], [2, 2, 2], [1, 1, 1]];
        let path = hops
            .iter()
            .try_fold(PathLabel::EMPTY, |path, &hop| path.behind(hop));
        let mut path = path.expect("room for three");
        assert_eq!(path.as_octets(), [0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        assert_eq!(PathLabel::decode(path.as_octets()), Some(path));
        for &hop in hops.iter().rev() {
            assert_eq!(path.first(), Some(hop));
            path = path.after_first();
        }
        assert_eq!((path, path.first()), (PathLabel::EMPTY, None));
        assert_eq!(path.after_first(), path);
    }

    /// 1 octet and 9 labels are 28 octets.
    #[test]
    fn a_path_has_nine_hops_at_most() {
        let longer = |path: PathLabel| path.behind([7; 3]);
        let paths: Vec<_> =
            core::iter::successors(Some(PathLabel::EMPTY), |&path| longer(path)).collect();
        let longest = paths.last().expect("the empty one at least");
        assert_eq!(
            (paths.len(), longest.hops(), longest.as_octets().len()),
            (10, 9, 28)
        );
        assert_eq!(PathLabel::decode(&[0; 31]), None);
    }

    #[test]
    fn other_values_are_no_labels_and_unknown_flags_mean_nothing() {
        for value in [&[][..], &[0, 1], &[0, 1, 2], &[0, 1, 2, 3, 4]] {
            assert_eq!(PathLabel::decode(value), None, "{value:?}");
        }
        assert_eq!(PathLabel::decode(&[0xFE]), Some(PathLabel::EMPTY));
        assert_eq!(PathLabel::decode(&[0xFF]), Some(PathLabel::DISCOVERY));
        let found = PathLabel::DISCOVERY
            .behind([1, 2, 3])
            .expect("room")
            .found();
        assert_eq!(found.as_octets(), [0, 1, 2, 3]);
    }
}
