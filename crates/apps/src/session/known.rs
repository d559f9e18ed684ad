//! Static keys of peers that calls were established with.

use std::collections::{BTreeMap, VecDeque};

use namecast_packet::Name;

/// A peer that was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPeer {
    /// What names of its packets start with.
    pub root: Name,
    /// SHA-256 digest of its certificate's public key.
    pub key_digest: [u8; 32],
    /// Its static X25519 key.
    pub static_key: [u8; 32],
}

/// Peers by static key; the oldest is forgotten for a new one.
#[derive(Debug)]
pub(super) struct KnownPeers {
    by_key: BTreeMap<[u8; 32], KnownPeer>,
    order: VecDeque<[u8; 32]>,
    max: usize,
}

impl KnownPeers {
    pub(super) const fn new(max: usize) -> Self {
        Self {
            by_key: BTreeMap::new(),
            order: VecDeque::new(),
            max,
        }
    }

    pub(super) fn insert(&mut self, peer: KnownPeer) {
        let key = peer.static_key;
        if self.by_key.insert(key, peer).is_some() {
            self.order.retain(|it| *it != key);
        }
        self.order.push_back(key);
        while self.order.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_key.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, static_key: &[u8; 32]) -> bool {
        self.by_key.contains_key(static_key)
    }

    /// Returns the static key that `root` used last.
    pub(super) fn key_of(&self, root: &Name) -> Option<[u8; 32]> {
        let mut newest = self.order.iter().rev();
        newest
            .find(|it| self.by_key.get(*it).is_some_and(|it| it.root == *root))
            .copied()
    }

    /// Forgets all peers but those for which `keeps` is true.
    pub(super) fn retain(&mut self, keeps: impl Fn(&KnownPeer) -> bool) {
        self.by_key.retain(|_, it| keeps(it));
        self.order.retain(|it| self.by_key.contains_key(it));
    }

    /// Returns all, the newest last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &KnownPeer> {
        self.order.iter().filter_map(|it| self.by_key.get(it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_keys_stay() {
        let peer = |root: &str, key: u8| KnownPeer {
            root: root.parse().unwrap(),
            key_digest: [key / 10; 32],
            static_key: [key; 32],
        };
        let mut known = KnownPeers::new(3);
        for (root, key) in [("/a", 10), ("/b", 20), ("/a", 11), ("/a", 10), ("/c", 30)] {
            known.insert(peer(root, key));
        }
        let keys: Vec<_> = known.iter().map(|it| it.static_key[0]).collect();
        assert_eq!(keys, [11, 10, 30]);
        assert_eq!(known.key_of(&"/a".parse().unwrap()), Some([10; 32]));
        assert_eq!(known.key_of(&"/b".parse().unwrap()), None);
        known.retain(|it| it.key_digest == [1; 32]);
        assert!(known.contains(&[11; 32]) && !known.contains(&[30; 32]));
    }
}
