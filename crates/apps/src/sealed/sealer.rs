//! The publisher's end: seals samples, and makes boxes for whoever may open them.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_packet::Name;
use namecast_stream::seal::{MAX_STEPS, Seal};
use namecast_units::Instant;

use super::key_box::{BoxEntry, MAX_ENTRIES, MAX_PACKETS, box_name, encode_entries};
use super::schedule::{SECRET, SampleKey, StepSecret, expand};

/// How a stream is sealed.
#[derive(Clone, Debug)]
pub struct SealerConfig {
    /// Name of the stream.
    pub root: Name,
    /// From the first reader who leaves to the new generation, so that others who leave meanwhile cost nothing more.
    pub gather: Duration,
    /// From a generation's boxes to its first sample.
    pub lead_time: Duration,
    /// Sequences of samples, those of rungs that ended included.
    pub max_sequences: usize,
}

impl SealerConfig {
    /// Seals `root`: readers who leave are shut out 0.8 s later.
    pub const fn new(root: Name) -> Self {
        Self {
            root,
            gather: Duration::from_millis(500),
            lead_time: Duration::from_millis(300),
            max_sequences: 256,
        }
    }

    /// Number of readers that one box has room for.
    pub const MAX_READERS: usize = MAX_ENTRIES * MAX_PACKETS;
}

/// A sealed sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The key that its header names.
    pub seal: Seal,
    /// The payload, sealed.
    pub payload: Bytes,
}

/// Why a sample is not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    /// Its number was used, or lies before one that was: a key and a nonce must never be used twice.
    #[error("sample {number} is not after {last}, the last one of its sequence")]
    Repeated {
        /// The sample's number.
        number: u64,
        /// The last one that was sealed.
        last: u64,
    },
    /// Too many sequences have had samples.
    #[error("more than {0} sequences of samples")]
    TooManySequences(usize),
}

/// A box to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBox {
    /// Seal of the samples that it has the key of.
    pub seal: Seal,
    /// Contents of its packets.
    pub packets: Vec<Bytes>,
}

/// Report of a sealer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SealerEvent {
    /// Publish this box.
    Box(KeyBox),
    /// A generation is in force: encoders are to make a key picture.
    Changed(u64),
    /// The key of a reader cannot be used.
    BadKey([u8; 32]),
}

/// A generation, and the entries of its readers.
struct Generation {
    number: u64,
    step: u16,
    secret: StepSecret,
    entries: BTreeMap<[u8; 32], BoxEntry>,
    /// Whether the box of its step is published, and does not change any more.
    has_box: bool,
}

/// A sequence of samples.
struct Sequence {
    /// Generation and step of the key.
    of: (u64, u16),
    key: SampleKey,
    last: u64,
}

/// Seals samples of one start of a publisher.
///
/// Tell it who may read ([`set_readers`](Self::set_readers)) and the time, and take events from [`poll_event`](Self::poll_event). Early and repeated
/// calls are harmless.
pub struct Sealer {
    config: SealerConfig,
    start: [u8; 4],
    seed: [u8; SECRET],
    drawn: u64,
    readers: BTreeSet<[u8; 32]>,
    current: Generation,
    /// When a generation is to be made, as somebody left.
    leave_at: Option<Instant>,
    /// The next generation, and when it is in force.
    next: Option<(Instant, Generation)>,
    sequences: BTreeMap<Name, Sequence>,
    events: VecDeque<SealerEvent>,
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sealer")
            .field("start", &self.start)
            .field("generation", &self.current.number)
            .field("step", &self.current.step)
            .field("readers", &self.readers.len())
            .finish_non_exhaustive()
    }
}

impl Sealer {
    /// Begins with generation 0 and no readers. `seed` must be drawn by each start of a publisher anew, from a source that nobody can foresee.
    pub fn new(config: SealerConfig, seed: [u8; SECRET]) -> Self {
        let mut sealer = Self {
            config,
            start: [0; 4],
            seed,
            drawn: 0,
            readers: BTreeSet::new(),
            current: Generation {
                number: 0,
                step: 0,
                secret: StepSecret::new([0; SECRET]),
                entries: BTreeMap::new(),
                has_box: false,
            },
            leave_at: None,
            next: None,
            sequences: BTreeMap::new(),
            events: VecDeque::new(),
        };
        let start = sealer.draw();
        sealer.start = *start.first_chunk().expect("32 octets are more than 4");
        sealer.current.secret = StepSecret::new(sealer.draw());
        sealer
    }

    /// Returns the random octets that tell this start from others.
    pub const fn start(&self) -> [u8; 4] {
        self.start
    }

    /// Draws the next secret.
    fn draw(&mut self) -> [u8; SECRET] {
        self.drawn += 1;
        expand(&self.seed, &[b"draw", &self.drawn.to_be_bytes()])
    }

    /// Lets the holders of these X25519 keys read from now on, and nobody else, up to [`SealerConfig::MAX_READERS`]. Those who come can open the next
    /// sample; those who leave are shut out within half a second and the lead time.
    pub fn set_readers(&mut self, now: Instant, readers: &BTreeSet<[u8; 32]>) {
        let wanted: BTreeSet<_> = readers
            .iter()
            .take(SealerConfig::MAX_READERS)
            .copied()
            .collect();
        let came: Vec<_> = wanted.difference(&self.readers).copied().collect();
        let has_left = self.readers.difference(&wanted).next().is_some();
        self.readers = wanted;
        if has_left && self.leave_at.is_none() {
            self.leave_at = Some(now + self.config.gather);
        }
        // The first box is published even if nobody reads, so that nobody waits for it.
        if !came.is_empty() || !self.current.has_box {
            self.admit(now, &came);
        }
    }

    /// Makes the next step, for those who came.
    fn admit(&mut self, now: Instant, came: &[[u8; 32]]) {
        let room = SealerConfig::MAX_READERS.saturating_sub(self.current.entries.len());
        if self.current.step + 1 >= MAX_STEPS || room < came.len() {
            // A new generation has room for all of them.
            self.leave_at = Some(self.leave_at.map_or(now, |at| at.min(now)));
            return;
        }
        if self.current.has_box {
            self.current.advance();
        }
        self.enter(came, false);
        if let Some((_, next)) = &mut self.next {
            next.advance();
            self.enter(came, true);
        }
    }

    /// Makes entries for `came` in the current generation or the next one, and publishes its box.
    fn enter(&mut self, came: &[[u8; 32]], is_next: bool) {
        let seeds: Vec<_> = came.iter().map(|_| self.draw()).collect();
        let generation = match (&mut self.next, is_next) {
            (Some((_, next)), true) => next,
            _ => &mut self.current,
        };
        let seal = Seal {
            start: self.start,
            generation: generation.number,
            step: generation.step,
        };
        let info = box_name(&self.config.root, &seal);
        for (reader, seed) in came.iter().zip(seeds) {
            let place = (&info, generation.step);
            match BoxEntry::seal(place, &generation.secret, reader, seed) {
                Ok(entry) => drop(generation.entries.insert(*reader, entry)),
                Err(_) => self.events.push_back(SealerEvent::BadKey(*reader)),
            }
        }
        let entries: Vec<_> = generation.entries.values().cloned().collect();
        generation.has_box = true;
        let mut packets: Vec<_> = entries.chunks(MAX_ENTRIES).map(encode_entries).collect();
        if packets.is_empty() {
            packets.push(encode_entries(&[]));
        }
        self.events
            .push_back(SealerEvent::Box(KeyBox { seal, packets }));
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some((_, next)) = self.next.take_if(|(at, _)| *at <= now) {
            self.events.push_back(SealerEvent::Changed(next.number));
            self.current = next;
            // Its keys are new: numbers may be used again.
            self.sequences.clear();
        }
        if self.next.is_none() && self.leave_at.is_some_and(|at| at <= now) {
            self.leave_at = None;
            let next = Generation {
                number: self.current.number + 1,
                step: 0,
                secret: StepSecret::new(self.draw()),
                entries: BTreeMap::new(),
                has_box: false,
            };
            self.next = Some((now + self.config.lead_time, next));
            let readers: Vec<_> = self.readers.iter().copied().collect();
            self.enter(&readers, true);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.next {
            Some((at, _)) => Some(*at),
            None => self.leave_at,
        }
    }

    /// Returns the next event, until `None`.
    pub fn poll_event(&mut self) -> Option<SealerEvent> {
        self.events.pop_front()
    }

    /// Seals `payload` as sample `number` of `sequence`: root, stream, rung and class.
    ///
    /// # Errors
    /// If the number is not after the last one of the sequence, or there are too many sequences.
    pub fn seal(
        &mut self,
        now: Instant,
        sequence: &Name,
        (number, payload): (u64, &[u8]),
    ) -> Result<Sealed, Unsealed> {
        self.handle_timeout(now);
        let seal = Seal {
            start: self.start,
            generation: self.current.number,
            step: self.current.step,
        };
        let of = (seal.generation, seal.step);
        let known = self.sequences.get_mut(sequence);
        let key = match known {
            Some(known) if number <= known.last => {
                let last = known.last;
                return Err(Unsealed::Repeated { number, last });
            }
            Some(known) => {
                known.last = number;
                if known.of != of {
                    known.of = of;
                    known.key = self.current.secret.sample_key(sequence);
                }
                known.key.clone()
            }
            None => {
                let max = self.config.max_sequences;
                if self.sequences.len() >= max {
                    return Err(Unsealed::TooManySequences(max));
                }
                let key = self.current.secret.sample_key(sequence);
                let new = Sequence {
                    of,
                    key: key.clone(),
                    last: number,
                };
                self.sequences.insert(sequence.detached(), new);
                key
            }
        };
        Ok(Sealed {
            payload: key.seal(number, &seal, payload),
            seal,
        })
    }

    #[cfg(test)]
    pub(super) fn key_of(&self, sequence: &Name) -> SampleKey {
        self.sequences[sequence].key.clone()
    }
}

impl Generation {
    fn advance(&mut self) {
        self.secret = self.secret.next();
        self.step += 1;
    }
}
