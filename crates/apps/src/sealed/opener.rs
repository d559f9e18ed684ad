//! The reader's end: opens samples with the secrets of boxes.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::Name;
use namecast_stream::Seal;

use super::key_box::{BoxEntry, MAX_PACKETS, box_name, reader_of};
use super::schedule::{SampleKey, StepSecret};
use crate::trust::ExchangeSecret;

/// Bounds of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct OpenerConfig {
    /// Generations whose secrets are kept; the oldest is forgotten, and its box fetched again if it is needed.
    #[default(16)]
    pub max_generations: usize,
    /// Keys of sequences that are kept.
    #[default(64)]
    pub max_keys: usize,
}

/// Why a sample is not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unopened {
    /// The key box is needed: fetch its packets, which are called so, pass each to [`Opener::take`], and try again.
    #[error("the key box {0} is missing")]
    MissingBox(Name),
    /// The box has no entry for this reader.
    #[error("the publisher has no key for this reader")]
    NotAReader,
    /// It was sealed before this reader came.
    #[error("it was sealed before this reader came")]
    BeforeJoining,
    /// It was changed, or sealed with another key.
    #[error("it was changed, or sealed with another key")]
    Damaged,
}

/// State of a generation.
enum Known {
    /// The secret of the step at which this reader came, and the newest one derived.
    Secret {
        first: (u16, StepSecret),
        newest: (u16, StepSecret),
    },
    /// Boxes up to this step have no entry for this reader.
    Excluded(u16),
}

/// Opens samples of one root.
pub struct Opener {
    root: Name,
    /// Secrets, by which its entries are found.
    own: Vec<([u8; 8], ExchangeSecret)>,
    config: OpenerConfig,
    generations: BTreeMap<([u8; 4], u64), Known>,
    /// Generations in the order in which they became known.
    order: VecDeque<([u8; 4], u64)>,
    keys: BTreeMap<Name, (Seal, SampleKey)>,
}

impl core::fmt::Debug for Opener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Opener")
            .field("root", &self.root)
            .field("generations", &self.generations.len())
            .finish_non_exhaustive()
    }
}

impl Opener {
    /// Opens samples of `root` with the secrets `own`, of one reader. Without any, it opens nothing.
    pub fn new(root: Name, own: Vec<ExchangeSecret>, config: OpenerConfig) -> Self {
        let own = own.into_iter().map(|own| (reader_of(&own.public()), own));
        Self {
            root,
            own: own.collect(),
            config,
            generations: BTreeMap::new(),
            order: VecDeque::new(),
            keys: BTreeMap::new(),
        }
    }

    /// Returns whether it has secrets.
    pub fn has_keys(&self) -> bool {
        !self.own.is_empty()
    }

    /// Opens sample `number` of `sequence`: root, stream, rung and class.
    ///
    /// # Errors
    /// If its box is missing, or has no key for it, or the sample was changed.
    pub fn open(
        &mut self,
        sequence: &Name,
        (number, seal): (u64, &Seal),
        sealed: &[u8],
    ) -> Result<Bytes, Unopened> {
        let known = self.keys.get(sequence);
        let known = known
            .filter(|(of, _)| of == seal)
            .map(|(_, key)| key.clone());
        let key = match known {
            Some(key) => key,
            None => {
                let key = self.secret(seal)?.sample_key(sequence);
                if self.keys.len() >= self.config.max_keys {
                    self.keys.clear();
                }
                self.keys.insert(sequence.detached(), (*seal, key.clone()));
                key
            }
        };
        key.open(number, seal, sealed).ok_or(Unopened::Damaged)
    }

    /// The secret of a step.
    fn secret(&mut self, seal: &Seal) -> Result<StepSecret, Unopened> {
        if self.own.is_empty() {
            return Err(Unopened::NotAReader);
        }
        let missing = || Unopened::MissingBox(box_name(&self.root, seal));
        match self.generations.get_mut(&(seal.start, seal.generation)) {
            None => Err(missing()),
            Some(Known::Excluded(step)) if *step >= seal.step => Err(Unopened::NotAReader),
            Some(Known::Excluded(_)) => Err(missing()),
            Some(Known::Secret { first, newest }) => {
                if seal.step < first.0 {
                    return Err(Unopened::BeforeJoining);
                }
                let (step, secret) = match newest.0 <= seal.step {
                    true => &*newest,
                    false => &*first,
                };
                let secret = secret.after(seal.step - step);
                if seal.step > newest.0 {
                    *newest = (seal.step, secret.clone());
                }
                Ok(secret)
            }
        }
    }

    /// Takes the entries of packet `number` of the `total` packets of the box for `seal`. The packet must be verified. Returns whether no further packet of
    /// the box is needed.
    pub fn take(
        &mut self,
        seal: &Seal,
        entries: &[BoxEntry],
        (number, total): (usize, usize),
    ) -> bool {
        let of = (seal.start, seal.generation);
        let entries = entries.iter().filter(|entry| entry.step <= seal.step);
        let opened = entries.flat_map(|entry| {
            let own = self.own.iter().filter(|(own, _)| *own == entry.reader);
            own.map(move |(_, own)| (entry, own))
        });
        let opened = opened.filter_map(|(entry, own)| {
            let made = Seal {
                step: entry.step,
                ..*seal
            };
            let secret = entry.open(&box_name(&self.root, &made), own)?;
            Some((entry.step, secret))
        });
        let opened = opened.min_by_key(|(step, _)| *step);
        match opened {
            Some(first) => {
                let newest = first.clone();
                self.remember(of, Known::Secret { first, newest });
                true
            }
            None if number + 1 >= total.min(MAX_PACKETS) => {
                let is_known = matches!(self.generations.get(&of), Some(Known::Secret { .. }));
                if !is_known {
                    self.remember(of, Known::Excluded(seal.step));
                }
                true
            }
            None => false,
        }
    }

    #[cfg(test)]
    pub(super) fn generation_count(&self) -> usize {
        self.generations.len()
    }

    fn remember(&mut self, of: ([u8; 4], u64), known: Known) {
        if self.generations.insert(of, known).is_none() {
            self.order.push_back(of);
        }
        while self.generations.len() > self.config.max_generations.max(1) {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            self.generations.remove(&oldest);
            self.keys
                .retain(|_, (seal, _)| (seal.start, seal.generation) != oldest);
        }
    }
}
