//! What datagram peers may cost that have not shown yet that they are where they say they are.
//!
//! Anybody can write any source address into a datagram. Until a peer has returned something that only he can have received, he
//! is a *stranger*: he may take a place only while there are enough, loses it soon after he fell silent, and what is sent to his
//! address stays in proportion to what came from it, as with QUIC (RFC 9000, section 8.1).
//!
//! ```text
//!   unknown source ─┬─ room for its prefix ──▶ stranger with a face ── echo ──▶ proven
//!                   └─ none ─▶ a challenge, nothing is kept ───────── echo ──▶ proven, instead of a stranger
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use namecast_forward::FaceId;
use namecast_packet::{Component, Interest, LpPacket, Name, Nonce};
use namecast_units::{Duration, Instant};
use sha2::{Digest, Sha256};

use crate::StrangersConfig;
use crate::admission::Source;

/// Octets that may be sent to a stranger for each that came from him (RFC 9000, section 8.1).
const AMPLIFICATION: u64 = 3;
/// Over which the budget beyond that is counted.
const WINDOW: Duration = Duration::from_secs(1);
/// Octets of what a challenge asks to be returned.
const ECHO_SIZE: usize = 8;

/// What becomes of an unknown source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// He gets a face.
    Welcome,
    /// He gets a face, and this one ends.
    InsteadOf(FaceId),
    /// He gets none until he has shown that he receives what is sent to him.
    Challenge,
}

/// All strangers with faces.
#[derive(Debug)]
pub(crate) struct Strangers {
    config: StrangersConfig,
    peers: BTreeMap<FaceId, Peer>,
    /// By when they were last heard.
    by_silence: BTreeSet<(Instant, FaceId)>,
    per_source: BTreeMap<Source, usize>,
    budget: Budget,
}

#[derive(Debug)]
struct Peer {
    source: Source,
    echo: [u8; ECHO_SIZE],
    received: u64,
    sent: u64,
    last_heard: Instant,
}

impl Strangers {
    /// None yet.
    pub(crate) fn new(config: StrangersConfig) -> Self {
        Self {
            budget: Budget::new(config.budget * WINDOW),
            config,
            peers: BTreeMap::new(),
            by_silence: BTreeSet::new(),
            per_source: BTreeMap::new(),
        }
    }

    /// What becomes of a source at `address` without a face, of which there is room for so many more. He `is_proven` if he
    /// returned a challenge.
    pub(crate) fn admission(
        &self,
        now: Instant,
        address: IpAddr,
        room: usize,
        is_proven: bool,
    ) -> Admission {
        let source = Source::of(address);
        let count = self.per_source.get(&source).copied().unwrap_or(0);
        let is_crowded = !is_proven && count >= self.config.max_per_prefix;
        if room > 0 && !is_crowded {
            return Admission::Welcome;
        }
        let mut silent = self.by_silence.iter();
        let oldest = match is_crowded {
            true => silent.find(|(_, face)| self.peers[face].source == source),
            false => silent.next(),
        };
        match oldest {
            Some(&(heard, face)) if is_proven || now.since(heard) >= self.config.replace_after => {
                Admission::InsteadOf(face)
            }
            _ => Admission::Challenge,
        }
    }

    /// Takes in a stranger who got a face.
    pub(crate) fn add(&mut self, now: Instant, face: FaceId, address: SocketAddr, echo: Echo) {
        let source = Source::of(address.ip());
        let peer = Peer {
            source,
            echo: echo.0,
            received: 0,
            sent: 0,
            last_heard: now,
        };
        self.remove(face);
        self.peers.insert(face, peer);
        self.by_silence.insert((now, face));
        *self.per_source.entry(source).or_default() += 1;
    }

    /// Forgets him: his face has ended, or he is no stranger any more.
    pub(crate) fn remove(&mut self, face: FaceId) {
        let Some(peer) = self.peers.remove(&face) else {
            return;
        };
        self.by_silence.remove(&(peer.last_heard, face));
        if let Some(count) = self.per_source.get_mut(&peer.source) {
            *count -= 1;
            if *count == 0 {
                self.per_source.remove(&peer.source);
            }
        }
    }

    /// Counts frames that came from him. True if they prove that he receives what is sent to him; then he is forgotten.
    pub(crate) fn hear(&mut self, now: Instant, face: FaceId, frames: &[Bytes]) -> bool {
        let Some(peer) = self.peers.get_mut(&face) else {
            return false;
        };
        self.by_silence.remove(&(peer.last_heard, face));
        self.by_silence.insert((now, face));
        peer.last_heard = now;
        peer.received += frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
        let echo = Echo(peer.echo);
        let is_proof = frames.iter().any(|frame| echo.is_in(frame));
        if is_proof {
            self.remove(face);
        }
        is_proof
    }

    /// Whether so many octets may be sent to him now, which are then counted.
    pub(crate) fn may_send(&mut self, now: Instant, face: FaceId, octets: u64) -> bool {
        let Some(peer) = self.peers.get_mut(&face) else {
            return true;
        };
        let is_in_proportion = peer.sent + octets <= AMPLIFICATION * peer.received;
        let may = is_in_proportion || self.budget.spend(now, peer.source, octets);
        if may && is_in_proportion {
            peer.sent += octets;
        }
        may
    }

    /// Those who were silent for so long that their faces end.
    pub(crate) fn silent(&self, now: Instant) -> Vec<FaceId> {
        let is_silent =
            |(heard, _): &&(Instant, FaceId)| now.since(*heard) >= self.config.idle_timeout;
        let silent = self.by_silence.iter().take_while(is_silent);
        silent.map(|&(_, face)| face).collect()
    }

    /// How many there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.peers.len()
    }
}

/// Octets that strangers share in each window.
///
/// A prefix gets its even share among all that asked for some in this window or the one before; so the newest may have to
/// wait for the next window, and all together never get more than there is.
#[derive(Debug)]
struct Budget {
    octets: u64,
    window: u64,
    spent: u64,
    spent_by: BTreeMap<Source, u64>,
    asked_before: usize,
}

impl Budget {
    const fn new(size: namecast_units::ByteSize) -> Self {
        Self {
            octets: size.as_bytes(),
            window: 0,
            spent: 0,
            spent_by: BTreeMap::new(),
            asked_before: 0,
        }
    }

    fn spend(&mut self, now: Instant, source: Source, octets: u64) -> bool {
        let window = now.since(Instant::ZERO).as_nanos() as u64 / WINDOW.as_nanos() as u64;
        if window != self.window {
            let is_next = window == self.window + 1;
            self.asked_before = if is_next { self.spent_by.len() } else { 0 };
            self.spent_by.clear();
            (self.window, self.spent) = (window, 0);
        }
        let spent = self.spent_by.entry(source).or_default();
        let wanted = *spent + octets;
        let sharers = self.spent_by.len().max(self.asked_before) as u64;
        if wanted > self.octets / sharers || self.spent + octets > self.octets {
            return false;
        }
        self.spent_by.insert(source, wanted);
        self.spent += octets;
        true
    }
}

/// What a peer has to return, which nobody else knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Echo([u8; ECHO_SIZE]);

impl Echo {
    /// Whether a frame returns it.
    pub(crate) fn is_in(self, frame: &[u8]) -> bool {
        frame.windows(ECHO_SIZE).any(|octets| octets == self.0)
    }
}

/// Makes what peers have to return from their addresses, so that nothing need be kept of those who were asked.
///
/// The challenge is an Interest under `/localhop` for a name that nobody has, for one hop: a forwarder returns it with a Nack.
/// Applications that return nothing stay strangers.
#[derive(Clone, Debug)]
pub(crate) struct Challenge {
    secret: [u8; 16],
}

impl Challenge {
    pub(crate) const fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// What the peer at `address` has to return.
    pub(crate) fn echo(&self, address: SocketAddr) -> Echo {
        let digest = Sha256::new()
            .chain_update(self.secret)
            .chain_update(address.to_string())
            .finalize();
        let mut echo = [0; ECHO_SIZE];
        echo.copy_from_slice(&digest[..ECHO_SIZE]);
        Echo(echo)
    }

    /// The frame that asks him to.
    pub(crate) fn frame(&self, address: SocketAddr) -> Bytes {
        let Echo(echo) = self.echo(address);
        let name: Name = "/localhop/echo".parse().expect("a name");
        let nonce = Nonce::from(u32::from_be_bytes([echo[0], echo[1], echo[2], echo[3]]));
        let unknown = Component {
            kind: Component::GENERIC,
            value: &echo,
        };
        let interest = Interest::builder(name.child(unknown))
            .lifetime(WINDOW)
            .hop_limit(1)
            .build(nonce);
        LpPacket::carrying(interest.wire().clone()).encode()
    }

    /// The frame, if it is no more than may be sent for `octets` from a stranger.
    pub(crate) fn frame_for(&self, address: SocketAddr, octets: usize) -> Option<Bytes> {
        let frame = self.frame(address);
        (frame.len() as u64 <= AMPLIFICATION * octets as u64).then_some(frame)
    }
}

#[cfg(test)]
#[path = "strangers_tests.rs"]
mod tests;
