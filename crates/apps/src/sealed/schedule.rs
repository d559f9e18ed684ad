//! Secrets of generations and steps, and the keys of samples.

use bytes::Bytes;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use hkdf::Hkdf;
use namecast_packet::Name;
use namecast_stream::Seal;
use sha2::Sha256;
use zeroize::Zeroize as _;

/// Octets of a secret.
pub(super) const SECRET: usize = 32;
/// Octets that sealing adds to a sample, while a publisher has had fewer than 2^32 generations: the tag of its cipher and the element Seal.
pub const OVERHEAD: usize = 28;

const NEXT_STEP: &[u8] = b"namecast sealed stream, version 1: next step";
const SAMPLE_KEY: &[u8] = b"namecast sealed stream, version 1: samples of ";

/// The secret of a step.
#[derive(Clone)]
pub(super) struct StepSecret([u8; SECRET]);

impl Drop for StepSecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl StepSecret {
    pub(super) const fn new(secret: [u8; SECRET]) -> Self {
        Self(secret)
    }

    pub(super) const fn octets(&self) -> &[u8; SECRET] {
        &self.0
    }

    /// Returns the secret of the next step.
    pub(super) fn next(&self) -> Self {
        Self(expand(&self.0, &[NEXT_STEP]))
    }

    /// Returns the secret `steps` later.
    pub(super) fn after(&self, steps: u16) -> Self {
        (0..steps).fold(self.clone(), |secret, _| secret.next())
    }

    /// Returns the key of samples whose names begin with `sequence`: root, stream, rung and class.
    pub(super) fn sample_key(&self, sequence: &Name) -> SampleKey {
        SampleKey(expand(&self.0, &[SAMPLE_KEY, sequence.value()]))
    }
}

/// HKDF-Expand (RFC 5869) of a uniform secret.
pub(super) fn expand(secret: &[u8; SECRET], info: &[&[u8]]) -> [u8; SECRET] {
    let mut output = [0; SECRET];
    let hkdf = Hkdf::<Sha256>::from_prk(secret).expect("as long as a hash");
    let expanded = hkdf.expand_multi_info(info, &mut output);
    expanded.expect("HKDF-SHA256 gives up to 8160 octets");
    output
}

/// Key of one sequence of samples.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SampleKey(pub(super) [u8; SECRET]);

impl Drop for SampleKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl SampleKey {
    /// Returns sealed `payload` of the sample `number`.
    pub(super) fn seal(&self, number: u64, seal: &Seal, payload: &[u8]) -> Bytes {
        let aad = seal.encode();
        let sealed = self.cipher().encrypt(
            &nonce(number),
            Payload {
                msg: payload,
                aad: &aad,
            },
        );
        sealed.expect("a sample is shorter than 256 GiB").into()
    }

    /// Returns the payload of the sample `number`; `None` if it was changed, or sealed with another key.
    pub(super) fn open(&self, number: u64, seal: &Seal, sealed: &[u8]) -> Option<Bytes> {
        let aad = seal.encode();
        let opened = self.cipher().decrypt(
            &nonce(number),
            Payload {
                msg: sealed,
                aad: &aad,
            },
        );
        opened.ok().map(Bytes::from)
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(&Key::from(self.0))
    }
}

/// Nonce of a sample: its number.
pub(super) fn nonce(number: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce.into()
}
