//! Hashes of a name and all its prefixes, taken in one pass and used by every table.

use core::hash::{BuildHasherDefault, Hasher};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use namecast_packet::{Component, Name, Nonce};
use smallvec::SmallVec;

/// Hashes names. Two with the same seed agree; without the seed nobody can aim at a bucket.
#[derive(Clone, Debug)]
pub(crate) struct NameHasher {
    /// Hash of `/`, in which all others begin.
    root: u64,
}

/// Derives the folding constants; the per-node seed is mixed in beside it.
static SHARED_SEED: SharedSeed = SharedSeed::from_u64(0x6E61_6D65_6361_7374);

/// Type of implicit digests, as it stands on the wire.
const IMPLICIT_DIGEST: u8 = Component::IMPLICIT_DIGEST as u8;

/// Most names have fewer components, so that their hashes need no allocation.
const USUAL_COMPONENTS: usize = 12;

/// For tables whose keys are hashes already.
pub(crate) type HashedKeys = BuildHasherDefault<PassThrough>;

/// Hands a key on as its own hash.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for &octet in octets {
            self.0 = self.0 << 8 | u64::from(octet);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Hashes of a name's prefixes; the first is that of `/`.
#[derive(Clone, Debug)]
pub(crate) struct NameHashes {
    prefixes: SmallVec<[u64; USUAL_COMPONENTS + 1]>,
    /// Length of the shortest prefix that ends in an implicit digest.
    digest_at: Option<usize>,
}

impl NameHasher {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { root: seed }
    }

    /// Hash of `/`.
    pub(crate) const fn root(&self) -> u64 {
        self.root
    }

    /// The hashes of `name`, or `None` if it has more than `max_components`.
    pub(crate) fn hashes(&self, name: &Name, max_components: usize) -> Option<NameHashes> {
        let mut prefixes = SmallVec::new();
        let mut digest_at = None;
        let mut hash = self.root;
        prefixes.push(hash);
        for element in name.elements() {
            if prefixes.len() > max_components {
                return None;
            }
            if element[0] == IMPLICIT_DIGEST {
                digest_at.get_or_insert(prefixes.len());
            }
            hash = child(hash, element);
            prefixes.push(hash);
        }
        Some(NameHashes {
            prefixes,
            digest_at,
        })
    }
}

/// Hash of the name that hashes to `parent` with one more component, whose whole element is `element`.
///
/// Chained, so that a long name is read once and not once per prefix.
#[inline]
pub(crate) fn child(parent: u64, element: &[u8]) -> u64 {
    let mut hasher = FoldHasher::with_seed(parent, &SHARED_SEED);
    hasher.write(element);
    hasher.finish()
}

/// Hash of the full name of Data: its name, which hashes to `name`, and its implicit digest.
pub(crate) fn full_name(name: u64, digest: &[u8; 32]) -> u64 {
    let mut element = [0; 34];
    // The digest component's type and length take an octet each.
    element[0] = IMPLICIT_DIGEST;
    element[1] = 32;
    element[2..].copy_from_slice(digest);
    child(name, &element)
}

/// A number that stands for one transmission of an Interest whose name hashes to `name`.
pub(crate) fn transmission(name: u64, nonce: Nonce) -> u64 {
    child(name, &nonce.0)
}

impl NameHashes {
    /// Components of the name.
    pub(crate) fn depth(&self) -> usize {
        self.prefixes.len() - 1
    }

    /// Whether any component is an implicit digest.
    pub(crate) fn has_digest(&self) -> bool {
        self.digest_at.is_some()
    }

    /// Whether the last component, and no other, is an implicit digest.
    pub(crate) fn ends_in_digest(&self) -> bool {
        self.digest_at == Some(self.depth())
    }

    /// Hash of all but the last component.
    pub(crate) fn parent(&self) -> u64 {
        self.hash(self.depth().saturating_sub(1))
    }

    /// Hash of the whole name.
    pub(crate) fn whole(&self) -> u64 {
        self.hash(self.depth())
    }

    /// Hash of the first `depth` components.
    pub(crate) fn hash(&self, depth: usize) -> u64 {
        self.prefixes[depth]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_hashes_as_the_name_it_is() {
        let hasher = NameHasher::new(7);
        let name: Name = "/demo/video/1M/key/seq=300/data/seg=2".parse().unwrap();
        let hashes = hasher.hashes(&name, 7).unwrap();
        for depth in 0..=7 {
            let prefix = name.prefix(depth);
            assert_eq!(
                hashes.hash(depth),
                hasher.hashes(&prefix, 7).unwrap().whole()
            );
        }
        assert!(hasher.hashes(&name, 6).is_none());
    }

    #[test]
    fn the_seed_and_the_boundaries_of_components_matter() {
        let whole = |seed, uri: &str| {
            let name: Name = uri.parse().unwrap();
            NameHasher::new(seed).hashes(&name, 9).unwrap().whole()
        };
        assert_eq!(whole(1, "/a/b"), whole(1, "/a/b"));
        assert_ne!(whole(1, "/a/b"), whole(2, "/a/b"));
        assert_ne!(whole(1, "/a/b"), whole(1, "/ab"));
        assert_ne!(whole(1, "/a/b"), whole(1, "/b/a"));
    }
}
