//! What a way carries, from segments that left together.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

/// Segments of one sample whose Interests had all reached the producer when it was published: they left it together, so what
/// lies between them at the other end is the narrowest link's doing (packet-train dispersion).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// How many segments.
    pub segments: u32,
    /// Octets of all but the first.
    pub size: ByteSize,
    /// Time from the first to the last.
    pub span: Duration,
}

impl Train {
    /// Segments below which gaps are mostly jitter.
    pub const LEAST_SEGMENTS: u32 = 3;

    /// Octets of all but the first in the time from the first to the last.
    pub fn rate(&self) -> Bitrate {
        self.size / self.span
    }
}

/// Trains kept.
const MOST: usize = 8;
/// Older trains tell of another time.
const AGE: Duration = Duration::from_secs(5);
/// Trains that count as of late.
const LATE: usize = 2;

/// What the last trains had.
///
/// Traffic of others between two segments makes a train slower than the narrowest link, and never faster; a cache nearby has
/// no part in it, since samples that were waited for come from no cache.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    trains: VecDeque<(Instant, Bitrate)>,
    segment: Option<ByteSize>,
}

impl Capacity {
    /// Takes a train, if it is long enough to count.
    pub fn push(&mut self, now: Instant, train: Train) {
        if train.segments < Train::LEAST_SEGMENTS {
            return;
        }
        if self.trains.len() == MOST {
            self.trains.pop_front();
        }
        self.trains.push_back((now, train.rate()));
        let followers = u64::from(train.segments - 1);
        self.segment = Some(ByteSize::bytes(train.size.as_bytes() / followers));
    }

    fn recent(&self, now: Instant) -> impl DoubleEndedIterator<Item = Bitrate> {
        let recent = move |(at, _): &&(Instant, Bitrate)| now.since(*at) <= AGE;
        self.trains.iter().filter(recent).map(|(_, rate)| *rate)
    }

    /// What three of four recent trains had at least; `None` if there are fewer than `least`.
    pub fn usual(&self, now: Instant, least: usize) -> Option<Bitrate> {
        let mut rates: Vec<_> = self.recent(now).collect();
        rates.sort_unstable();
        let quarter = rates.len() / 4;
        (rates.len() >= least.max(1)).then(|| rates[quarter])
    }

    /// Mean size of the segments of the last train, on the wire.
    pub const fn segment(&self) -> Option<ByteSize> {
        self.segment
    }

    /// What the better of the last two trains had.
    pub fn best_of_late(&self, now: Instant) -> Option<Bitrate> {
        self.recent(now).rev().take(LATE).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn train(segments: u32, kbps: u64) -> Train {
        let size = ByteSize::bytes(u64::from(segments - 1) * 1_000);
        Train {
            segments,
            size,
            span: size / Bitrate::kbps(kbps),
        }
    }

    /// Five segments of 1000 octets over 4 Mbit/s: 4000 octets after the first, 2 ms each.
    #[test]
    fn a_train_has_the_rate_of_the_narrowest_link() {
        let train = Train {
            segments: 5,
            size: ByteSize::bytes(4_000),
            span: Duration::from_millis(8),
        };
        assert_eq!(train.rate(), Bitrate::mbps(4));
        let at_once = Train {
            span: Duration::ZERO,
            ..train
        };
        assert!(at_once.rate() > Bitrate::mbps(1_000_000));
    }

    #[test]
    fn it_is_what_three_of_four_had() {
        let mut capacity = Capacity::default();
        capacity.push(at(0), train(2, 9_000));
        assert_eq!(capacity.usual(at(0), 1), None, "one gap tells nothing");
        for (step, kbps) in [4_000, 1_500, 3_900, 4_100, 4_000, 2_000, 4_200, 4_000]
            .into_iter()
            .enumerate()
        {
            capacity.push(at(step as u64 * 100), train(5, kbps));
        }
        // 1500, 2000 | 3900, 4000, 4000, 4000, 4100, 4200.
        assert_eq!(capacity.usual(at(800), 3), Some(Bitrate::kbps(3_900)));
        assert_eq!(capacity.usual(at(800), 9), None);
        assert_eq!(capacity.best_of_late(at(800)), Some(Bitrate::kbps(4_200)));
    }

    #[test]
    fn old_trains_do_not_count() {
        let mut capacity = Capacity::default();
        capacity.push(at(0), train(5, 4_000));
        capacity.push(at(3_000), train(5, 1_000));
        assert_eq!(capacity.usual(at(5_000), 2), Some(Bitrate::kbps(1_000)));
        assert_eq!(capacity.usual(at(5_001), 2), None);
        assert_eq!(capacity.best_of_late(at(9_000)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut capacity = Capacity::default();
        (0..1_000).for_each(|step| capacity.push(at(step), train(5, 4_000)));
        assert_eq!(capacity.trains.len(), MOST);
    }
}
