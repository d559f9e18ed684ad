//! Hashes of a name and all its prefixes, taken in one pass and used by every table.

use core::hash::{BuildHasher, BuildHasherDefault, Hasher};

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use namecast_packet::{Component, Name, Nonce, tlv};
use smallvec::SmallVec;

/// Hashes names. Two with the same seed agree; without the seed nobody can aim at a bucket.
#[derive(Clone, Debug)]
pub(crate) struct NameHasher(SeedableRandomState);

/// Derives the folding constants; the per-node seed is mixed in beside it.
static SHARED_SEED: SharedSeed = SharedSeed::from_u64(0x6E61_6D65_6361_7374);

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

/// Where a name's prefixes end, and their hashes; the first is that of `/`.
#[derive(Clone, Debug)]
pub(crate) struct NameHashes {
    prefixes: SmallVec<[(usize, u64); USUAL_COMPONENTS + 1]>,
    /// Length of the shortest prefix that ends in an implicit digest.
    digest_at: Option<usize>,
}

impl NameHasher {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeedableRandomState::with_seed(seed, &SHARED_SEED))
    }

    /// The hashes of `name`, or `None` if it has more than `max_components`.
    pub(crate) fn hashes(&self, name: &Name, max_components: usize) -> Option<NameHashes> {
        let mut prefixes = SmallVec::new();
        let mut digest_at = None;
        let (mut end, mut hash) = (0, 0);
        prefixes.push((end, hash));
        for component in name.components() {
            if prefixes.len() > max_components {
                return None;
            }
            if component.kind == Component::IMPLICIT_DIGEST {
                digest_at.get_or_insert(prefixes.len());
            }
            let size = tlv::element_size(u32::from(component.kind), component.value.len());
            hash = self.child(hash, &name.value()[end..end + size]);
            end += size;
            prefixes.push((end, hash));
        }
        Some(NameHashes {
            prefixes,
            digest_at,
        })
    }

    /// Hash of the name that hashes to `parent` with one more component, whose whole element is `element`.
    ///
    /// Chained, so that a long name is read once and not once per prefix.
    fn child(&self, parent: u64, element: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(parent);
        hasher.write(element);
        hasher.finish()
    }

    /// Hash of the full name of Data: its name, which hashes to `name`, and its implicit digest.
    pub(crate) fn full_name(&self, name: u64, digest: &[u8; 32]) -> u64 {
        let mut element = [0; 34];
        // The digest component's type and length take an octet each.
        element[0] = Component::IMPLICIT_DIGEST as u8;
        element[1] = 32;
        element[2..].copy_from_slice(digest);
        self.child(name, &element)
    }

    /// A number that stands for one transmission of an Interest whose name hashes to `name`.
    pub(crate) fn transmission(&self, name: u64, nonce: Nonce) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(name);
        hasher.write(&nonce.0);
        hasher.finish()
    }
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
        self.prefixes[depth].1
    }

    /// Octets of the first `depth` components of `name`, which the hashes must be of.
    pub(crate) fn prefix<'n>(&self, name: &'n Name, depth: usize) -> &'n [u8] {
        &name.value()[..self.prefixes[depth].0]
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
            assert_eq!(hashes.prefix(&name, depth), prefix.value());
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
