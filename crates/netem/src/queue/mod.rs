//! Queue disciplines: who has room, who is marked, who is dropped.

mod pi2;
mod ramp;
mod red;

use namecast_units::{CoDel, Duration, Instant};

use crate::config::Queue;
use crate::fate::Purpose;
use pi2::Pi2;
use ramp::Ramp;
use red::Red;

/// What becomes of a frame that leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    Mark,
    Drop,
}

/// A frame comes to the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Instant,
    /// Frames that wait already.
    pub(crate) waiting: usize,
    /// Time that serialising the frame would take.
    pub(crate) serialisation: Duration,
}

/// A frame leaves the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) now: Instant,
    /// When it came.
    pub(crate) since: Instant,
    pub(crate) octets: usize,
    /// Octets that still wait behind it.
    pub(crate) bytes_left: u64,
    /// Frames that still wait behind it.
    pub(crate) waiting: usize,
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    packets: usize,
    octets: u64,
}

impl Room {
    pub(crate) const fn new(queue: &Queue) -> Self {
        match *queue {
            Queue::DropTailBytes { size } => Self {
                packets: usize::MAX,
                octets: size.as_bytes(),
            },
            Queue::DropTail { packets }
            | Queue::CoDel { packets, .. }
            | Queue::Red { packets, .. }
            | Queue::Pi2 { packets, .. }
            | Queue::Ramp { packets, .. } => Self {
                packets,
                octets: u64::MAX,
            },
        }
    }

    /// Returns whether a frame of `octets` fits beside `waiting` frames of `waiting_bytes`.
    #[inline]
    pub(crate) const fn fits(&self, waiting: usize, waiting_bytes: u64, octets: u64) -> bool {
        waiting < self.packets && waiting_bytes.saturating_add(octets) <= self.octets
    }
}

/// A discipline that does more than drop what does not fit.
#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    CoDel(CoDel),
    Red(Red),
    Pi2(Pi2),
    Ramp(Ramp),
}

impl Discipline {
    /// None for a plain queue.
    pub(crate) fn new(queue: &Queue, seed: u64) -> Option<Box<Self>> {
        let random = Purpose::Queue.sequence(seed);
        let discipline = match *queue {
            Queue::DropTail { .. } | Queue::DropTailBytes { .. } => return None,
            Queue::CoDel {
                target,
                interval,
                mark,
                ..
            } => Self::CoDel(match mark {
                true => CoDel::marking(target, interval),
                false => CoDel::dropping(target, interval),
            }),
            Queue::Red {
                min,
                max,
                max_probability,
                weight,
                gentle,
                ..
            } => {
                let thresholds = red::Thresholds {
                    min,
                    max,
                    max_probability,
                    gentle,
                };
                Self::Red(Red::new(thresholds, weight, random))
            }
            Queue::Pi2 {
                target,
                update,
                alpha,
                beta,
                ..
            } => Self::Pi2(Pi2::new(target, update, (alpha, beta), random)),
            Queue::Ramp { min, max, .. } => Self::Ramp(Ramp::new(min, max, random)),
        };
        Some(Box::new(discipline))
    }

    /// Returns whether it may drop frames that leave the queue.
    pub(crate) const fn drops_at_departure(&self) -> bool {
        matches!(self, Self::CoDel(codel) if codel.drops())
    }

    /// Records a frame that comes; true if it is marked. Whether there is room is asked afterwards.
    pub(crate) fn on_arrival(&mut self, arrival: &Arrival) -> bool {
        match self {
            Self::Red(red) => red.on_arrival(arrival),
            Self::CoDel(_) | Self::Pi2(_) | Self::Ramp(_) => false,
        }
    }

    /// Returns what becomes of a frame that leaves.
    pub(crate) fn on_departure(&mut self, departure: &Departure) -> Verdict {
        match self {
            Self::CoDel(codel) => {
                let Departure {
                    now,
                    since,
                    octets,
                    bytes_left,
                    ..
                } = *departure;
                match codel.acts(now, since, octets, bytes_left) {
                    true if codel.drops() => Verdict::Drop,
                    true => Verdict::Mark,
                    false => Verdict::Pass,
                }
            }
            Self::Red(red) => {
                if departure.waiting == 0 {
                    red.on_empty(departure.now);
                }
                Verdict::Pass
            }
            Self::Pi2(pi2) => pi2.on_departure(departure),
            Self::Ramp(ramp) => ramp.on_departure(departure),
        }
    }

    /// All that waited was lost.
    pub(crate) const fn on_loss_of_all(&mut self, now: Instant) {
        if let Self::Red(red) = self {
            red.on_empty(now);
        }
    }
}
