//! When to mark packets: NFD's rule, which is like CoDel's but goes by the octets that wait.

use bytes::Bytes;
use namecast_packet::LpPacket;
use namecast_units::{ByteSize, Duration, Instant};

/// When a link counts as congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionMarking {
    /// How long more than the threshold must wait until a packet is marked, and the longest pause between two marks.
    pub interval: Duration,
    /// Octets that may wait.
    pub threshold: ByteSize,
}

impl Default for CongestionMarking {
    /// NFD's.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            threshold: ByteSize::bytes(65_536),
        }
    }
}

/// One link's marks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CongestionMarker {
    /// When the next packet is marked if the queue stays as long; none while it is short.
    next_at: Option<Instant>,
    /// Marks since the queue became long.
    marks: u32,
}

impl CongestionMarker {
    /// Whether to mark a packet that is queued now behind so many octets. The time is asked for only while they are many.
    ///
    /// The first mark comes after one interval, the n-th one interval/√n after the one before it.
    pub(crate) fn marks(
        &mut self,
        now: impl FnOnce() -> Instant,
        queued: ByteSize,
        rule: &CongestionMarking,
    ) -> bool {
        if queued <= rule.threshold {
            *self = Self::default();
            return false;
        }
        let now = now();
        let next_at = *self.next_at.get_or_insert(now + rule.interval);
        if now < next_at {
            return false;
        }
        self.marks = self.marks.saturating_add(1);
        let pause = rule
            .interval
            .div_f64(f64::from(self.marks.saturating_add(1)).sqrt());
        self.next_at = Some(now + pause);
        true
    }
}

/// A frame with a congestion mark, which it keeps if it has one.
pub(crate) fn marked(frame: Bytes) -> Bytes {
    match LpPacket::decode(frame.clone()) {
        Ok(packet) if packet.congestion_mark == 0 && packet.fragment.is_some() => LpPacket {
            congestion_mark: 1,
            ..packet
        }
        .encode(),
        _ => frame,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: ByteSize = ByteSize::bytes(65_537);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// With a packet each millisecond: the first mark after 100 ms, then 100/√2 = 70.7, 100/√3 = 57.7 and 50 ms later.
    #[test]
    fn marks_come_ever_faster_while_the_queue_is_long() {
        let rule = CongestionMarking::default();
        let mut marker = CongestionMarker::default();
        let marked: Vec<_> = (0..300)
            .filter(|&ms| marker.marks(|| at(ms), LONG, &rule))
            .collect();
        assert_eq!(marked, [100, 171, 229, 279]);
    }

    #[test]
    fn a_queue_that_was_short_once_begins_anew() {
        let rule = CongestionMarking::default();
        let mut marker = CongestionMarker::default();
        assert!(!marker.marks(|| at(0), LONG, &rule));
        assert!(!marker.marks(|| at(90), rule.threshold, &rule));
        assert!(!marker.marks(|| at(100), LONG, &rule));
        assert!(!marker.marks(|| at(199), LONG, &rule));
        assert!(marker.marks(|| at(200), LONG, &rule));
    }

    #[test]
    fn a_mark_leaves_the_rest_of_a_frame_as_it_is() {
        let bare = Bytes::from_static(&[6, 2, 7, 0]);
        let fragment = LpPacket {
            sequence: Some(5),
            fragment_count: Some(3),
            ..LpPacket::carrying(bare.clone())
        };
        for packet in [LpPacket::carrying(bare), fragment] {
            let with_mark = LpPacket {
                congestion_mark: 1,
                ..packet.clone()
            };
            let once = marked(packet.encode());
            assert_eq!(LpPacket::decode(once.clone()), Ok(with_mark));
            assert_eq!(marked(once.clone()), once);
        }
        let keep_alive = Bytes::from_static(&[100, 0]);
        assert_eq!(marked(keep_alive.clone()), keep_alive);
    }
}
