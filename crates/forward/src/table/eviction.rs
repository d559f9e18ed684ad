//! Which cached packet gives way.

use namecast_units::ByteSize;

use super::recency::Recency;
use super::s3_fifo::S3Fifo;
use crate::config::CachePolicy;

/// The places of a slab, in the order of some policy.
#[derive(Debug)]
pub(super) enum Eviction {
    Lru(Recency),
    /// Boxed, as it is larger, and a simulation has many stores of the other kind.
    S3Fifo(Box<S3Fifo>),
}

impl Eviction {
    pub(super) fn new(policy: CachePolicy) -> Self {
        match policy {
            CachePolicy::Lru => Self::Lru(Recency::default()),
            CachePolicy::S3Fifo => Self::S3Fifo(Box::default()),
        }
    }

    /// Memory that each place takes.
    pub(super) fn memory_per_place(policy: CachePolicy) -> ByteSize {
        match policy {
            CachePolicy::Lru => Recency::MEMORY_PER_PLACE,
            CachePolicy::S3Fifo => S3Fifo::memory_per_place(),
        }
    }

    /// Adds `place`, which must not be there, for a packet whose name hashes to `hash`.
    pub(super) fn add(&mut self, place: usize, hash: u64) {
        match self {
            Self::Lru(order) => order.add(place),
            Self::S3Fifo(order) => order.add(place, hash),
        }
    }

    /// Notes that `place` was used.
    pub(super) fn touch(&mut self, place: usize) {
        match self {
            Self::Lru(order) => {
                order.remove(place);
                order.add(place);
            }
            Self::S3Fifo(order) => order.touch(place),
        }
    }

    /// Takes `place`, which must be there, out.
    pub(super) fn remove(&mut self, place: usize) {
        match self {
            Self::Lru(order) => order.remove(place),
            Self::S3Fifo(order) => order.remove(place),
        }
    }

    /// Which place gives way, if there is one. The caller removes it.
    pub(super) fn victim(&mut self) -> Option<usize> {
        match self {
            Self::Lru(order) => order.oldest(),
            Self::S3Fifo(order) => order.victim(),
        }
    }

    /// Which of `places`, all of them there, is the least recent.
    pub(super) fn oldest_of(&self, places: &[usize]) -> Option<usize> {
        match self {
            Self::Lru(order) => order.oldest_of(places),
            Self::S3Fifo(order) => order.oldest_of(places),
        }
    }
}
