//! Finding out whether somebody else publishes a name that is about to be published here, or is already.
//!
//! ```text
//!  neighbour there ──▶ challenge ── answered ──▶ Taken
//!                          │ Nack, or silence
//!                          ▼
//!                        Free ──▶ challenge, ever more rarely ── answered by a stronger claim ──▶ Taken
//! ```
//!
//! Only a publisher that runs can answer a challenge (`docs/stream-format.md`), so that neither caches and archives nor a
//! publisher that was killed keep another one away. Of two that missed each other, as both began at the same time, the answers
//! say which one stays: both compare the same claims.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::{Component, Data, Interest, KeyLocator, LpPacket, Name, Nonce, Packet};
use namecast_stream::StreamNames;
use namecast_stream::metadata::Metadata;
use namecast_units::{Instant, Random, Timestamp};

use crate::{Application, Now, Output, face};

/// Time after which a name is free without an answer. A neighbour that knows nobody else sends the first Interest back at once.
const SETTLE: Duration = Duration::from_millis(300);
/// Pause after the first challenge of a free name; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Longest pause, and the lifetime of challenges.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// Why a publisher may have a name. The greater claim stays.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// When it took the name over; later is greater, and greater than not at all.
    pub taken_over_at: Option<Timestamp>,
    /// Version of its catalogue, that is when it began; earlier is greater.
    pub version: Reverse<u64>,
    /// Name of its key, or the digest in a component.
    pub key: Reverse<Name>,
}

impl Claim {
    /// Returns the claim of a publisher that began at `since`, signs as `locator` says, and took the name over then or not.
    pub fn new(since: Timestamp, locator: Option<&KeyLocator>, takes_over: bool) -> Self {
        Self {
            taken_over_at: takes_over.then_some(since),
            version: Reverse(since.as_micros()),
            key: Reverse(key_of(locator)),
        }
    }

    /// Reads the claim of whoever answered a challenge with `data`.
    fn read(data: &Data) -> Option<Self> {
        let metadata = Metadata::decode(&data.content()?).ok()?;
        Some(Self {
            taken_over_at: metadata.taken_over_at,
            version: Reverse(
                metadata
                    .catalogue_name
                    .last()?
                    .number_of(Component::VERSION)?,
            ),
            key: Reverse(key_of(data.signature_info().key_locator.as_ref())),
        })
    }
}

fn key_of(locator: Option<&KeyLocator>) -> Name {
    match locator {
        Some(KeyLocator::Name(name)) => name.detached(),
        Some(KeyLocator::Digest(digest)) => Name::root().child(Component {
            kind: Component::GENERIC,
            value: digest,
        }),
        None => Name::root(),
    }
}

/// Somebody else who publishes the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Name of the key that signs there.
    pub key_name: Name,
    /// Whether it is the key that signs here.
    pub is_same_key: bool,
    /// Whether it took the name over from here.
    pub took_over: bool,
}

/// Result of a [`NameGuard`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardEvent {
    /// Nobody else publishes the name: it may be registered.
    Free,
    /// Somebody else does, and stays. Nothing follows.
    Taken(Rival),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Any publisher that answers keeps the name.
    Asking,
    /// Only a publisher with a greater claim takes the name.
    Free,
    Taken,
}

/// Challenges whoever else may publish a name, through the neighbour that the name is to be registered with.
///
/// The guard needs a face of its own with local fields: each of its packets names the face that leads to the neighbour.
#[derive(Debug)]
pub struct NameGuard {
    names: StreamNames,
    claim: Claim,
    random: Random,
    /// Number of the face that leads to the neighbour.
    neighbour: Option<u64>,
    phase: Phase,
    /// The challenges whose answers count, and until when: the newest two.
    challenges: VecDeque<(Name, Instant)>,
    /// When an unanswered name counts as free, or is challenged next.
    due: Option<Instant>,
    pause: Duration,
    outputs: VecDeque<Output<GuardEvent>>,
}

impl NameGuard {
    /// Returns a guard of `root` without a neighbour yet. `seed` gives names, and is not to be foreseen.
    pub fn new(root: Name, claim: Claim, seed: u64) -> Self {
        Self {
            names: StreamNames::new(root),
            claim,
            random: Random::from_seed(seed),
            neighbour: None,
            phase: Phase::Asking,
            challenges: VecDeque::new(),
            due: None,
            pause: FIRST_PAUSE,
            outputs: VecDeque::new(),
        }
    }

    /// Challenges through the face `neighbour` from now on; `None` stops challenges while the neighbour is unreachable.
    pub fn set_neighbour(&mut self, now: Instant, neighbour: Option<u64>) {
        if core::mem::replace(&mut self.neighbour, neighbour) == neighbour {
            return;
        }
        self.challenges.clear();
        self.due = None;
        if neighbour.is_none() || self.phase == Phase::Taken {
            return;
        }
        if self.phase == Phase::Asking && self.claim.taken_over_at.is_none() {
            self.challenge(now);
            self.due = Some(now + SETTLE);
        } else {
            self.become_free(now);
        }
    }

    /// Records that the name is registered: whoever registered it meanwhile can be found from now on.
    pub fn on_registered(&mut self, now: Instant) {
        if self.phase == Phase::Free && self.neighbour.is_some() {
            self.pause = FIRST_PAUSE;
            self.check(now);
        }
    }

    fn become_free(&mut self, now: Instant) {
        if self.phase != Phase::Free {
            self.phase = Phase::Free;
            self.outputs.push_back(Output::Event(GuardEvent::Free));
        }
        self.due = Some(now + self.pause);
    }

    /// Challenges again, and after a longer pause next time.
    fn check(&mut self, now: Instant) {
        self.challenge(now);
        self.due = Some(now + self.pause);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }

    fn challenge(&mut self, now: Instant) {
        let name = self.names.challenge(self.random.next_u64());
        let nonce = Nonce::draw(&mut self.random);
        let interest = Interest::builder(name.clone()).lifetime(MAX_PAUSE);
        let packet = LpPacket {
            next_hop_face: self.neighbour,
            ..LpPacket::carrying(interest.build(nonce).wire().clone())
        };
        self.outputs.push_back(Output::Send(packet.encode()));
        self.challenges.push_back((name, now + MAX_PAUSE));
        if self.challenges.len() > 2 {
            self.challenges.pop_front();
        }
    }

    fn handle_data(&mut self, now: Instant, data: &Data) {
        let mut asked = self.challenges.iter();
        if !asked.any(|(name, until)| name == data.name() && now < *until) {
            return;
        }
        let Some(other) = Claim::read(data).filter(|other| *other != self.claim) else {
            return;
        };
        let is_taken = match self.phase {
            Phase::Asking => true,
            Phase::Free => other > self.claim,
            Phase::Taken => false,
        };
        if is_taken {
            self.phase = Phase::Taken;
            self.due = None;
            let rival = Rival {
                is_same_key: other.key == self.claim.key,
                took_over: other.taken_over_at > self.claim.taken_over_at,
                key_name: other.key.0,
            };
            self.outputs
                .push_back(Output::Event(GuardEvent::Taken(rival)));
        }
    }
}

impl Application for NameGuard {
    type Event = GuardEvent;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        match face::open(frame) {
            Ok(Some((Packet::Data(data), _))) => self.handle_data(now.monotonic, &data),
            Ok(Some((Packet::Interest(nacked), link))) if link.nack.is_some() => {
                let newest = self.challenges.back();
                if self.phase == Phase::Asking
                    && newest.is_some_and(|(name, _)| name == nacked.name())
                {
                    self.become_free(now.monotonic);
                }
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.due.is_none_or(|due| now.monotonic < due) {
            return;
        }
        match self.phase {
            Phase::Asking => self.become_free(now.monotonic),
            Phase::Free => self.check(now.monotonic),
            Phase::Taken => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }

    fn poll_output(&mut self) -> Option<Output<GuardEvent>> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
