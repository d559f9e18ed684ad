//! Private objects: segments and table sealed with a key that only the ticket holds.

use bytes::Bytes;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce as SealNonce};
use sha2::{Digest, Sha256};

use super::Contents;
use namecast_packet::Signer;

/// First octet of a sealed table. One that is not sealed is JSON.
const SEALED: u8 = 0;
/// Octets that a seal adds.
pub(super) const SEAL: usize = 16;
/// Number of the table, which no segment has.
const TABLE: u64 = u64::MAX;
/// Prefix of the octets that are signed for a content key. No packet has this prefix, so no packet's signature gives the key away.
const LABEL: &[u8] = b"namecast content key\0";

/// The key of a private object.
#[derive(Clone, PartialEq, Eq)]
pub struct ContentKey([u8; 32]);

impl core::fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ContentKey(secret)")
    }
}

impl ContentKey {
    /// A key of these octets.
    pub const fn new(octets: [u8; 32]) -> Self {
        Self(octets)
    }

    /// Returns the key's octets, which the ticket holds.
    pub const fn octets(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the key of an object with this table, as nobody but `signer` can compute it: the same again after a restart, and another
    /// one for any other content, so that no two contents are sealed under one number.
    ///
    /// The signer has to sign the same octets the same way each time, as Ed25519 does.
    pub fn derive(signer: &dyn Signer, identity: &[u8; 32]) -> Self {
        let secret = signer.sign(&[LABEL, identity].concat());
        Self(
            Sha256::new()
                .chain_update(LABEL)
                .chain_update(secret)
                .finalize()
                .into(),
        )
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(&Key::from(self.0))
    }

    /// Seals segment `number`.
    pub(super) fn seal(&self, number: u64, content: &[u8]) -> Bytes {
        let sealed = self.cipher().encrypt(&seal_nonce(number), content);
        sealed.expect("contents are shorter than 256 GiB").into()
    }

    /// Opens segment `number`; `None` if it was sealed with another key.
    pub(super) fn open(&self, number: u64, sealed: &[u8]) -> Option<Bytes> {
        let content = self.cipher().decrypt(&seal_nonce(number), sealed);
        content.ok().map(Bytes::from)
    }

    pub(super) fn seal_table(&self, table: &[u8]) -> Bytes {
        [&[SEALED], &*self.seal(TABLE, table)].concat().into()
    }

    /// Opens a table that [is sealed](is_sealed); `None` if it was with another key.
    pub(super) fn open_table(&self, sealed: &[u8]) -> Option<Bytes> {
        self.open(TABLE, sealed.get(1..)?)
    }
}

/// Returns whether a table, as it is sent, is sealed.
pub(super) fn is_sealed(table: &[u8]) -> bool {
    table.first() == Some(&SEALED)
}

fn seal_nonce(number: u64) -> SealNonce {
    let mut octets = [0; 12];
    octets[4..].copy_from_slice(&number.to_le_bytes());
    octets.into()
}

/// Returns what tells an object from any other: the digest of its table without a version.
pub fn identity(contents: &Contents) -> [u8; 32] {
    let unversioned = Contents {
        version: 0,
        ..contents.clone()
    };
    let octets = serde_json::to_vec(&unversioned).unwrap_or_default();
    Sha256::digest(octets).into()
}

/// Returns the version of an object. Of a private one it shows nothing about the content to who lacks the key.
pub fn version(identity: &[u8; 32], key: Option<&ContentKey>) -> u64 {
    let mut digest = Sha256::new_with_prefix(b"namecast version\0");
    if let Some(key) = key {
        digest.update(key.0);
    }
    let digest: [u8; 32] = digest.chain_update(identity).finalize().into();
    let [first, ..] = digest.as_chunks::<8>().0 else {
        return 0;
    };
    u64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests {
    use namecast_packet::KeyLocator;
    use namecast_packet::signature::Ed25519Signer;

    use super::super::contents::tests::contents;
    use super::*;

    #[test]
    fn a_key_follows_from_signer_and_content() {
        let locator = KeyLocator::Digest(Bytes::from_static(&[0; 32]));
        let [ours, theirs] = [1, 2].map(|it| Ed25519Signer::from_seed([it; 32], locator.clone()));
        let [this, other] = [3, 4].map(|size| identity(&contents(&[("a", size)])));
        let key = ContentKey::derive(&ours, &this);
        assert_eq!(key, ContentKey::derive(&ours, &this));
        assert_ne!(key, ContentKey::derive(&ours, &other));
        assert_ne!(key, ContentKey::derive(&theirs, &this));
        assert_ne!(version(&this, None), version(&this, Some(&key)));
        assert_ne!(version(&this, None), version(&other, None));
        let mut versioned = contents(&[("a", 3)]);
        versioned.version = 99;
        assert_eq!(identity(&versioned), this);
    }

    #[test]
    fn only_the_key_and_the_number_open_a_segment() {
        let [key, other] = [1, 2].map(|it| ContentKey::new([it; 32]));
        let sealed = key.seal(7, b"content");
        assert_eq!(sealed.len(), 7 + SEAL);
        assert_eq!(key.open(7, &sealed).as_deref(), Some(&b"content"[..]));
        assert_eq!(key.open(8, &sealed), None);
        assert_eq!(other.open(7, &sealed), None);
        let table = key.seal_table(b"table");
        assert!(is_sealed(&table) && !is_sealed(b"{}"));
        assert_eq!(key.open_table(&table).as_deref(), Some(&b"table"[..]));
    }
}
