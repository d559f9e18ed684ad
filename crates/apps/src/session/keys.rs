//! Keys of a session, and the secrets that handshakes draw.

use core::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce as SealNonce};
use hkdf::Hkdf;
use sha2::Sha256;
use snow::HandshakeState;
use zeroize::Zeroizing;

/// A seal that does not fit: the content was changed, or sealed by somebody else, or under another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forged;

/// Draws secrets, none of which can be computed from what is left.
pub(super) struct Secrets(Zeroizing<[u8; 32]>);

impl Secrets {
    /// `seed` is 32 octets that nobody can guess.
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self(Zeroizing::new(seed))
    }

    pub(super) fn draw(&mut self) -> Zeroizing<[u8; 32]> {
        let mut drawn = Zeroizing::new([0; 64]);
        let chain = Hkdf::<Sha256>::new(None, &*self.0);
        expand(&chain, "namecast ephemeral", &mut *drawn);
        let (next, secret) = drawn.split_at(32);
        self.0.copy_from_slice(next);
        let mut octets = Zeroizing::new([0; 32]);
        octets.copy_from_slice(secret);
        octets
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// Number under which no packet is sealed: that of the caller's proof.
const PROOF: u64 = u64::MAX;

/// Keys that both sides have once a handshake is complete.
#[derive(Clone, Debug)]
pub(super) struct SessionKeys {
    pub(super) from_caller: Cipher,
    pub(super) from_callee: Cipher,
    /// Hash of the handshake, by which the next one is of the same session.
    pub(super) hash: [u8; 32],
}

impl SessionKeys {
    /// Takes the keys of a handshake of which all messages were written and read.
    pub(super) fn split(state: &mut HandshakeState) -> Self {
        let (from_caller, from_callee) = state.dangerously_get_raw_split();
        let [from_caller, from_callee] = [from_caller, from_callee].map(Zeroizing::new);
        let hash = state.get_handshake_hash().try_into();
        Self {
            from_caller: Cipher::new(&from_caller),
            from_callee: Cipher::new(&from_callee),
            hash: hash.expect("SHA-256 has 32 octets"),
        }
    }

    /// Returns what shows that the caller has the keys, under `name`.
    pub(super) fn prove(&self, name: &[u8]) -> Vec<u8> {
        self.from_caller.seal(PROOF, name, &[])
    }

    /// # Errors
    /// If `proof` does not show that the caller has the keys.
    pub(super) fn check_proof(&self, name: &[u8], proof: &[u8]) -> Result<(), Forged> {
        let opened = self.from_caller.open(PROOF, name, proof)?;
        opened.is_empty().then_some(()).ok_or(Forged)
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
    pub(super) fn new(key: &[u8; 32]) -> Self {
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

    /// Keys that both sides of one call have.
    fn keys(seed: u8) -> SessionKeys {
        SessionKeys {
            from_caller: Cipher::new(&[seed; 32]),
            from_callee: Cipher::new(&[seed ^ 0xFF; 32]),
            hash: [seed; 32],
        }
    }

    #[test]
    fn each_direction_number_and_name_is_sealed_apart() {
        let keys = keys(1);
        let sealed = keys.from_caller.seal(5, b"name", b"content");
        assert_eq!(sealed.len(), 7 + 16);
        let opened = keys.from_caller.open(5, b"name", &sealed);
        assert_eq!(opened.as_deref(), Ok(&b"content"[..]));
        assert_eq!(keys.from_callee.open(5, b"name", &sealed), Err(Forged));
        assert_eq!(keys.from_caller.open(6, b"name", &sealed), Err(Forged));
        assert_eq!(keys.from_caller.open(5, b"nam", &sealed), Err(Forged));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(keys.from_caller.open(5, b"name", &changed), Err(Forged));
        }
    }

    #[test]
    fn a_proof_is_of_one_call_and_one_name() {
        let proof = keys(1).prove(b"name");
        assert_eq!(keys(1).check_proof(b"name", &proof), Ok(()));
        assert_eq!(keys(2).check_proof(b"name", &proof), Err(Forged));
        assert_eq!(keys(1).check_proof(b"nam", &proof), Err(Forged));
        assert_eq!(keys(1).check_proof(b"name", &[]), Err(Forged));
        let message = keys(1).from_caller.seal(PROOF, b"name", b"content");
        assert_eq!(keys(1).check_proof(b"name", &message), Err(Forged));
    }

    #[test]
    fn secrets_differ() {
        let mut secrets = Secrets::new([9; 32]);
        let drawn = [(); 3].map(|()| secrets.draw());
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
    }
}
