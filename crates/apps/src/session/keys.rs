//! Keys of a session: made by both sides from two ephemeral secrets, gone with the session.

use core::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce as SealNonce};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// A seal that does not fit: the content was changed, or sealed by somebody else, or under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forged;

/// Draws ephemeral secrets, none of which can be computed from what is left.
pub(super) struct Secrets(Zeroizing<[u8; 32]>);

impl Secrets {
    /// `seed` is 32 octets that nobody can guess.
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self(Zeroizing::new(seed))
    }

    pub(super) fn draw(&mut self) -> StaticSecret {
        let mut drawn = Zeroizing::new([0; 64]);
        let chain = Hkdf::<Sha256>::new(None, &*self.0);
        expand(&chain, "namecast ephemeral", &mut *drawn);
        let (next, secret) = drawn.split_at(32);
        self.0.copy_from_slice(next);
        let mut octets = Zeroizing::new([0; 32]);
        octets.copy_from_slice(secret);
        StaticSecret::from(*octets)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// Digest of all that was said while a call was set up, each part behind its length.
pub(super) fn transcript<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut digest = Sha256::new_with_prefix("namecast call, version 1");
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// What both sides have once each knows the other's ephemeral key.
#[derive(Debug)]
pub(super) struct SessionKeys {
    transcript: [u8; 32],
    caller_proof: Cipher,
    callee_proof: Cipher,
    pub(super) from_caller: Cipher,
    pub(super) from_callee: Cipher,
}

impl SessionKeys {
    /// Derives the keys; `None` if the other's key is one under which everybody would derive the same.
    ///
    /// ```text
    /// extract: HKDF-SHA256(salt = transcript, secret = X25519(own, other's))
    /// expand:  one key for each direction and each proof
    /// ```
    pub(super) fn derive(
        own: &StaticSecret,
        other: [u8; 32],
        transcript: [u8; 32],
    ) -> Option<Self> {
        let shared = own.diffie_hellman(&PublicKey::from(other));
        if !shared.was_contributory() {
            return None;
        }
        let secret = Hkdf::<Sha256>::new(Some(&transcript), shared.as_bytes());
        let cipher = |label| {
            let mut key = Zeroizing::new([0; 32]);
            expand(&secret, label, &mut *key);
            Cipher::new(&key)
        };
        Some(Self {
            transcript,
            caller_proof: cipher("caller has the keys"),
            callee_proof: cipher("callee has the keys"),
            from_caller: cipher("caller to callee"),
            from_callee: cipher("callee to caller"),
        })
    }

    pub(super) const fn transcript(&self) -> &[u8; 32] {
        &self.transcript
    }

    /// Shows that the caller, or the callee, has the keys.
    pub(super) fn prove(&self, is_caller: bool) -> Vec<u8> {
        self.proof(is_caller).seal(0, &self.transcript, &[])
    }

    /// # Errors
    /// If the caller, or the callee, has not shown that it has the keys.
    pub(super) fn check_proof(&self, is_caller: bool, proof: &[u8]) -> Result<(), Forged> {
        let opened = self.proof(is_caller).open(0, &self.transcript, proof)?;
        opened.is_empty().then_some(()).ok_or(Forged)
    }

    const fn proof(&self, is_caller: bool) -> &Cipher {
        if is_caller {
            &self.caller_proof
        } else {
            &self.callee_proof
        }
    }
}

fn expand(secret: &Hkdf<Sha256>, label: &str, output: &mut [u8]) {
    secret
        .expand(label.as_bytes(), output)
        .expect("HKDF gives up to 8160 octets");
}

/// Seals what one side sends, each number once: ChaCha20-Poly1305 (RFC 8439), with the number as nonce.
#[derive(Clone)]
pub(super) struct Cipher(ChaCha20Poly1305);

impl Cipher {
    fn new(key: &[u8; 32]) -> Self {
        Self(ChaCha20Poly1305::new(&Key::from(*key)))
    }

    /// Seals `content` under `name`. No two contents may have the same `number`.
    pub(super) fn seal(&self, number: u64, name: &[u8], content: &[u8]) -> Vec<u8> {
        let payload = Payload {
            msg: content,
            aad: name,
        };
        self.0
            .encrypt(&nonce(number), payload)
            .expect("packets are shorter than 256 GiB")
    }

    /// # Errors
    /// If anything is not as it was sealed.
    pub(super) fn open(&self, number: u64, name: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Forged> {
        let payload = Payload {
            msg: sealed,
            aad: name,
        };
        let opened = self.0.decrypt(&nonce(number), payload);
        opened.map_err(|_| Forged)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher")
    }
}

fn nonce(number: u64) -> SealNonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (SessionKeys, SessionKeys) {
        let (a, b) = (Secrets::new([1; 32]).draw(), Secrets::new([2; 32]).draw());
        let derive = |own: &StaticSecret, other: &StaticSecret| {
            let other = PublicKey::from(other).to_bytes();
            SessionKeys::derive(own, other, [7; 32]).unwrap()
        };
        (derive(&a, &b), derive(&b, &a))
    }

    #[test]
    fn both_derive_the_same_and_each_direction_has_its_own() {
        let (caller, callee) = pair();
        let sealed = caller.from_caller.seal(5, b"name", b"content");
        assert_eq!(sealed.len(), 7 + 16);
        let opened = callee.from_caller.open(5, b"name", &sealed);
        assert_eq!(opened.as_deref(), Ok(&b"content"[..]));
        assert_eq!(callee.from_callee.open(5, b"name", &sealed), Err(Forged));
        assert_eq!(callee.from_caller.open(6, b"name", &sealed), Err(Forged));
        assert_eq!(callee.from_caller.open(5, b"nam", &sealed), Err(Forged));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(callee.from_caller.open(5, b"name", &changed), Err(Forged));
        }
    }

    #[test]
    fn a_proof_is_of_one_side_and_one_transcript() {
        let (caller, callee) = pair();
        let proof = caller.prove(true);
        assert_eq!(callee.check_proof(true, &proof), Ok(()));
        assert_eq!(callee.check_proof(false, &proof), Err(Forged));
        assert_eq!(callee.check_proof(true, &[]), Err(Forged));
        let own = Secrets::new([1; 32]).draw();
        let other = PublicKey::from(&Secrets::new([2; 32]).draw()).to_bytes();
        let elsewhere = SessionKeys::derive(&own, other, [8; 32]).unwrap();
        assert_eq!(elsewhere.check_proof(true, &proof), Err(Forged));
    }

    /// The point of order 1, under which every secret gives zero.
    #[test]
    fn a_key_that_fixes_the_secret_is_refused() {
        let own = Secrets::new([1; 32]).draw();
        assert!(SessionKeys::derive(&own, [0; 32], [7; 32]).is_none());
    }

    #[test]
    fn secrets_differ_and_transcripts_know_where_parts_end() {
        let mut secrets = Secrets::new([9; 32]);
        let drawn = [(); 3].map(|()| secrets.draw().to_bytes());
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
        let joined = |parts: [&[u8]; 2]| transcript(parts);
        assert_ne!(joined([b"ab", b"c"]), joined([b"a", b"bc"]));
    }
}
