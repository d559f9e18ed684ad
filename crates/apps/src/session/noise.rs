//! The Noise protocol as sessions use it: two patterns, over primitives of this crate and randomness from outside.

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key};
use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use super::keys::Secrets;
use super::refusal::Refusal;

/// Length of an X25519 public key.
pub(super) const KEY: usize = 32;
/// Length of an authentication tag.
const TAG: usize = 16;
/// Length of a Noise message at most: the framework's own limit.
const MAX_MESSAGE: usize = 65_535;

/// Handshake pattern of a set-up (Noise Protocol Framework, revision 34, section 7.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// Both static keys are transmitted.
    Xx,
    /// The caller knows the callee's static key.
    Ik,
}

impl Pattern {
    const fn protocol_name(self) -> &'static str {
        match self {
            Self::Xx => "Noise_XX_25519_ChaChaPoly_SHA256",
            Self::Ik => "Noise_IK_25519_ChaChaPoly_SHA256",
        }
    }

    /// Length of message `index` with an empty payload.
    pub(super) const fn min_length(self, index: usize) -> usize {
        match (self, index) {
            (Self::Xx, 0) => KEY,
            (Self::Xx, 1) | (Self::Ik, 0) => KEY + (KEY + TAG) + TAG,
            (Self::Xx, _) => (KEY + TAG) + TAG,
            (Self::Ik, _) => KEY + TAG,
        }
    }
}

/// One side of a handshake. Equal sides write equal messages, so a handshake is repeated instead of kept.
pub(super) struct Side<'a> {
    pub(super) pattern: Pattern,
    /// Octets that both sides must agree on.
    pub(super) prologue: &'a [u8],
    pub(super) static_key: &'a StaticSecret,
    /// The other side's static key, if it is known beforehand.
    pub(super) remote: Option<&'a [u8; KEY]>,
    /// Seed of the ephemeral key.
    pub(super) seed: &'a [u8; 32],
}

impl Side<'_> {
    pub(super) fn initiator(&self) -> HandshakeState {
        self.build(true)
    }

    pub(super) fn responder(&self) -> HandshakeState {
        self.build(false)
    }

    fn build(&self, is_initiator: bool) -> HandshakeState {
        let params: NoiseParams = (self.pattern.protocol_name().parse()).expect("a known protocol");
        let resolver = Resolver(Zeroizing::new(*self.seed));
        let secret = Zeroizing::new(self.static_key.to_bytes());
        let builder = Builder::with_resolver(params, Box::new(resolver))
            .prologue(self.prologue)
            .and_then(|it| it.local_private_key(&*secret))
            .and_then(|it| match self.remote {
                Some(key) => it.remote_public_key(key),
                None => Ok(it),
            })
            .expect("each is set once");
        let built = if is_initiator {
            builder.build_initiator()
        } else {
            builder.build_responder()
        };
        built.expect("the pattern has the keys that it needs")
    }
}

/// Writes the next message.
///
/// # Errors
/// [`Refusal::WeakKey`] if the other side's key fixes the shared secret.
pub(super) fn write(state: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut message = vec![0; MAX_MESSAGE.min(payload.len() + 3 * KEY + 2 * TAG)];
    let length = state
        .write_message(payload, &mut message)
        .map_err(|error| refusal(&error))?;
    message.truncate(length);
    Ok(message)
}

/// Reads the payload of the next message.
///
/// # Errors
/// [`Refusal::WeakKey`], or [`Refusal::Changed`] if it is not sealed with the keys of this handshake.
pub(super) fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut payload = vec![0; message.len()];
    let length = state
        .read_message(message, &mut payload)
        .map_err(|error| refusal(&error))?;
    payload.truncate(length);
    Ok(payload)
}

fn refusal(error: &Error) -> Refusal {
    match error {
        Error::Dh => Refusal::WeakKey,
        Error::Decrypt => Refusal::Changed,
        _ => Refusal::Cut,
    }
}

/// Returns the caller's static key out of the first message of an IK handshake, at the cost of one Diffie–Hellman exchange.
/// Whether the caller has the secret key is not shown by that.
///
/// # Errors
/// [`Refusal::Cut`], [`Refusal::WeakKey`], or [`Refusal::OtherStatic`] if the message is for another static key.
pub(super) fn peek(
    prologue: &[u8],
    (own, public): (&StaticSecret, &[u8; KEY]),
    message: &[u8],
) -> Result<[u8; KEY], Refusal> {
    let (ephemeral, rest) = message.split_first_chunk::<KEY>().ok_or(Refusal::Cut)?;
    let sealed = rest.get(..KEY + TAG).ok_or(Refusal::Cut)?;
    // A protocol name of 32 octets stands for itself (section 5.2).
    let name = Pattern::Ik.protocol_name().as_bytes();
    let mut hash: [u8; 32] = name.try_into().expect("the name has 32 octets");
    let chain = hash;
    for part in [prologue, public, ephemeral] {
        hash = Sha256::new()
            .chain_update(hash)
            .chain_update(part)
            .finalize()
            .into();
    }
    let shared = exchange(own, ephemeral).ok_or(Refusal::WeakKey)?;
    let mut keys = Zeroizing::new([0; 64]);
    Hkdf::<Sha256>::new(Some(&chain), &*shared)
        .expand(&[], &mut *keys)
        .expect("HKDF gives up to 8160 octets");
    let mut cipher = ChaChaPoly::default();
    cipher.set(keys[32..].try_into().expect("half of 64 octets"));
    let mut key = [0; KEY];
    cipher
        .decrypt(0, &hash, sealed, &mut key)
        .map_err(|_| Refusal::OtherStatic)?;
    Ok(key)
}

/// Returns the shared secret, unless the public key is of small order, so that everybody computes the same.
fn exchange(own: &StaticSecret, other: &[u8; KEY]) -> Option<Zeroizing<[u8; 32]>> {
    let shared = own.diffie_hellman(&PublicKey::from(*other));
    shared
        .was_contributory()
        .then(|| Zeroizing::new(shared.to_bytes()))
}

/// Gives Noise its primitives, and randomness that follows from a seed.
struct Resolver(Zeroizing<[u8; 32]>);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Seeded(Secrets::new(*self.0))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::new(X25519::default())),
            _ => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        match choice {
            HashChoice::SHA256 => Some(Box::new(HashSha256(Sha256::new()))),
            _ => None,
        }
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        match choice {
            CipherChoice::ChaChaPoly => Some(Box::new(ChaChaPoly::default())),
            _ => None,
        }
    }
}

struct Seeded(Secrets);

impl Random for Seeded {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        for part in dest.chunks_mut(32) {
            part.copy_from_slice(&self.0.draw()[..part.len()]);
        }
        Ok(())
    }
}

#[derive(Default)]
struct X25519 {
    secret: Zeroizing<[u8; KEY]>,
    public: [u8; KEY],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY
    }

    fn priv_len(&self) -> usize {
        KEY
    }

    fn set(&mut self, privkey: &[u8]) {
        self.secret.copy_from_slice(privkey);
        self.public = PublicKey::from(&StaticSecret::from(*self.secret)).to_bytes();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut secret = Zeroizing::new([0; KEY]);
        rng.try_fill_bytes(&mut *secret)?;
        self.set(&*secret);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.secret
    }

    /// Refuses keys that fix the secret, which the framework leaves to the implementation (section 12.1).
    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let other = pubkey.first_chunk().ok_or(Error::Input)?;
        let secret = StaticSecret::from(*self.secret);
        let shared = exchange(&secret, other).ok_or(Error::Dh)?;
        out[..KEY].copy_from_slice(&*shared);
        Ok(())
    }
}

struct HashSha256(Sha256);

impl Hash for HashSha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0.reset();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&self.0.finalize_reset());
    }
}

#[derive(Default)]
struct ChaChaPoly(Zeroizing<[u8; 32]>);

impl ChaChaPoly {
    fn cipher(&self, nonce: u64) -> (ChaCha20Poly1305, chacha20poly1305::Nonce) {
        let mut octets = [0; 12];
        octets[4..].copy_from_slice(&nonce.to_le_bytes());
        let cipher = ChaCha20Poly1305::new(&Key::from(*self.0));
        (cipher, octets.into())
    }
}

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        *self.0 = *key;
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (cipher, nonce) = self.cipher(nonce);
        let payload = Payload {
            msg: plaintext,
            aad: authtext,
        };
        let sealed = cipher.encrypt(&nonce, payload);
        let sealed = sealed.expect("messages are shorter than 256 GiB");
        out[..sealed.len()].copy_from_slice(&sealed);
        sealed.len()
    }

    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let (cipher, nonce) = self.cipher(nonce);
        let payload = Payload {
            msg: ciphertext,
            aad: authtext,
        };
        let opened = cipher
            .decrypt(&nonce, payload)
            .map_err(|_| Error::Decrypt)?;
        out[..opened.len()].copy_from_slice(&opened);
        Ok(opened.len())
    }
}

#[cfg(test)]
#[path = "noise_tests.rs"]
mod tests;
