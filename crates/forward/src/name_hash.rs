//! Hashes of a name and all its prefixes, taken in one pass and used by every table.
//!
//! The octets of a name, in pieces of up to seven, are the coefficients of a polynomial over the integers modulo the prime
//! 2⁶¹ − 1, which is evaluated at a secret point:
//!
//! ```text
//! h ← (h + piece) · factor  mod 2⁶¹ − 1
//! ```
//!
//! Two names of `n` pieces at most that are chosen without knowledge of the factor differ by a polynomial which is not zero
//! and has `n` roots at most, so that they have the same hash with a probability of n / 2⁵⁸, whoever chooses them \[CW79\].
//! Components are cut into pieces each for itself, and say how long they are, so that no two names have the same pieces. Of
//! SipHash-1-3, which holds also against those who see hashes, one component costs as much as a whole name does here; nobody
//! outside sees these hashes but for the choice of a shard, which has a key of its own.

use core::fmt;
use core::hash::{BuildHasherDefault, Hasher};

use namecast_packet::{Component, Name, Nonce};
use smallvec::{SmallVec, smallvec};

/// Secret of a node's name hashes. Without it, nobody can find names that share a place in a table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    /// State in which all hashes begin.
    start: u64,
    /// Point at which polynomials are evaluated.
    factor: u64,
    /// Odd; spreads a state over the bits of a hash.
    spread: u64,
}

impl HashKey {
    /// One that everybody knows, and with which each run is the same: for simulations.
    pub const FIXED: Self = Self::from_words([
        0x243F_6A88_85A3_08D3,
        0x1319_8A2E_0370_7344,
        0xA409_3822_299F_31D0,
    ]);

    /// The key of 192 random bits.
    pub const fn from_words([start, factor, spread]: [u64; 3]) -> Self {
        Self {
            start: start & PRIME,
            // Below 2⁵⁸, so that one reduction a step is enough, and neither 0 nor 1.
            factor: (factor & ((1 << 58) - 1)) | 2,
            spread: spread | 1,
        }
    }

    /// The same secret for another purpose: what is seen of hashes of one kind says nothing of the other.
    #[must_use]
    pub(crate) const fn for_shards(self) -> Self {
        Self::from_words([
            self.spread,
            self.factor.wrapping_mul(self.spread),
            self.start.wrapping_mul(self.spread),
        ])
    }

    /// The state after one more piece, which has 56 bits at most. States have less than 62 bits.
    #[inline]
    const fn step(self, state: u64, piece: u64) -> u64 {
        let product = (state + piece) as u128 * self.factor as u128;
        // Below 2¹²⁰, so that the upper part is below 2⁵⁹.
        (product as u64 & PRIME) + (product >> 61) as u64
    }

    /// The state after one more component, which is this `element`.
    #[inline(always)]
    fn component(self, mut state: u64, element: &[u8]) -> u64 {
        if element.len() <= PIECE {
            return self.step(state, short_piece(element));
        }
        let mut rest = element;
        while let Some(&eight) = rest.first_chunk() {
            state = self.step(state, u64::from_le_bytes(eight) & FULL_PIECE);
            rest = &rest[PIECE..];
        }
        // What is before them, in the last eight octets, is shifted out.
        let last = element.last_chunk().expect("it is longer than a piece");
        self.step(state, u64::from_le_bytes(*last) >> (64 - 8 * rest.len()))
    }

    /// The hash of what has led to `state`, in which all bits depend on all of it. One to one.
    #[inline]
    const fn finish(self, state: u64) -> u64 {
        let spread = state.wrapping_mul(self.spread);
        spread ^ (spread >> 32)
    }
}

impl Default for HashKey {
    fn default() -> Self {
        Self::FIXED
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(…)")
    }
}

/// 2⁶¹ − 1.
const PRIME: u64 = (1 << 61) - 1;
/// Octets of a piece.
const PIECE: usize = 7;
/// The octets of a piece, of eight that begin with them.
const FULL_PIECE: u64 = (1 << (8 * PIECE)) - 1;

/// The number whose octets, up to [`PIECE`], these are: first and last ones overlap.
#[inline(always)]
fn short_piece(octets: &[u8]) -> u64 {
    if let (Some(&first), Some(&last)) = (octets.first_chunk(), octets.last_chunk()) {
        let [first, last] = [first, last].map(|four| u64::from(u32::from_le_bytes(four)));
        return first | last << (8 * (octets.len() - 4));
    }
    let octets = octets.iter().rev();
    octets.fold(0, |number, &octet| number << 8 | u64::from(octet))
}

/// Hashes names. Two with the same key agree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameHasher {
    key: HashKey,
}

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
    key: HashKey,
    /// States after so many components.
    states: SmallVec<[u64; USUAL_COMPONENTS + 1]>,
    /// Length of the shortest prefix that ends in an implicit digest.
    digest_at: Option<usize>,
}

impl NameHasher {
    pub(crate) const fn new(key: HashKey) -> Self {
        Self { key }
    }

    /// The hashes of `name`, or `None` if it has more than `max_components`.
    pub(crate) fn hashes(&self, name: &Name, max_components: usize) -> Option<NameHashes> {
        let mut digest_at = None;
        let (mut state, mut depth) = (self.key.start, 0);
        let mut states: SmallVec<_> = smallvec![state];
        states.extend(name.elements().take(max_components + 1).map(|element| {
            depth += 1;
            if element[0] == IMPLICIT_DIGEST {
                digest_at.get_or_insert(depth);
            }
            state = self.key.component(state, element);
            state
        }));
        if depth > max_components {
            return None;
        }
        Some(NameHashes {
            key: self.key,
            states,
            digest_at,
        })
    }

    /// A number that stands for one transmission of an Interest whose name has this hash.
    pub(crate) fn transmission(&self, name: u64, nonce: Nonce) -> u64 {
        let state = self
            .key
            .step(name & PRIME, u32::from_le_bytes(nonce.0).into());
        self.key.finish(self.key.step(state, name >> 61))
    }

    /// The hash of a name that has these components, as they stand on the wire.
    pub(crate) fn hash_of<'a>(&self, elements: impl Iterator<Item = &'a [u8]>) -> u64 {
        let component = |state, element| self.key.component(state, element);
        self.key.finish(elements.fold(self.key.start, component))
    }
}

impl NameHashes {
    /// Components of the name.
    pub(crate) fn depth(&self) -> usize {
        self.states.len() - 1
    }

    /// The hashes of a name that differs in its last component, which is no digest, nor is any of this one.
    pub(crate) fn with_last(&self, element: &[u8]) -> Self {
        let depth = self.depth();
        let mut states = SmallVec::from_slice(&self.states);
        states[depth] = self.key.component(states[depth - 1], element);
        Self { states, ..*self }
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

    /// Hash of the full name of Data: its name, which these are the hashes of, and its implicit digest.
    pub(crate) fn full_name(&self, digest: &[u8; 32]) -> u64 {
        let mut element = [0; 34];
        // The digest component's type and length take an octet each.
        element[0] = IMPLICIT_DIGEST;
        element[1] = 32;
        element[2..].copy_from_slice(digest);
        let state = self.states[self.depth()];
        self.key.finish(self.key.component(state, &element))
    }

    /// Hash of the first `depth` components.
    pub(crate) fn hash(&self, depth: usize) -> u64 {
        self.key.finish(self.states[depth])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_hashes_as_the_name_it_is() {
        let hasher = NameHasher::new(HashKey::FIXED);
        let name: Name = "/demo/video/1M/key/seq=300/data/seg=2".parse().unwrap();
        let hashes = hasher.hashes(&name, 7).unwrap();
        for depth in 0..=7 {
            let prefix = name.prefix(depth);
            assert_eq!(
                hashes.hash(depth),
                hasher.hashes(&prefix, 7).unwrap().whole()
            );
        }
        let other: Name = "/demo/video/1M/key/seq=300/data/seg=300".parse().unwrap();
        let last = other.elements().last().unwrap();
        let with_last = hashes.with_last(last);
        assert_eq!(with_last.states, hasher.hashes(&other, 7).unwrap().states);
        assert!(hasher.hashes(&name, 6).is_none());
    }

    #[test]
    fn the_key_and_the_boundaries_of_components_matter() {
        let whole = |start, uri: &str| {
            let name: Name = uri.parse().unwrap();
            let hasher = NameHasher::new(HashKey::from_words([start, 3, 5]));
            hasher.hashes(&name, 9).unwrap().whole()
        };
        assert_eq!(whole(1, "/a/b"), whole(1, "/a/b"));
        assert_ne!(whole(1, "/a/b"), whole(2, "/a/b"));
        assert_ne!(whole(1, "/a/b"), whole(1, "/ab"));
        assert_ne!(whole(1, "/a/b"), whole(1, "/b/a"));
    }
}
