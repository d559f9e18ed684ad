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
    /// When the link counts as congested.
    pub(crate) rule: CongestionMarking,
    /// Whether packets are marked then.
    pub(crate) is_on: bool,
    /// When the next packet is marked if the queue stays as long; none while it is short.
    next_at: Option<Instant>,
    /// Marks since the queue became long.
    marks: u32,
}

impl CongestionMarker {
    /// A link without a queue yet; none: its packets are not marked until that is chosen for it.
    pub(crate) fn new(rule: Option<CongestionMarking>) -> Self {
        Self {
            rule: rule.unwrap_or_default(),
            is_on: rule.is_some(),
            ..Self::default()
        }
    }

    /// Whether to mark a packet that is queued now behind so many octets. The time is asked for only while they are many.
    ///
    /// The first mark comes after one interval, the n-th one interval/√n after the one before it.
    pub(crate) fn marks(&mut self, now: impl FnOnce() -> Instant, queued: ByteSize) -> bool {
        if !self.is_on || queued <= self.rule.threshold {
            (self.next_at, self.marks) = (None, 0);
            return false;
        }
        let now = now();
        let next_at = *self.next_at.get_or_insert(now + self.rule.interval);
        if now < next_at {
            return false;
        }
        self.marks = self.marks.saturating_add(1);
        let pause = self
            .rule
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

    fn marker() -> CongestionMarker {
        CongestionMarker::new(Some(CongestionMarking::default()))
    }

    /// With a packet each millisecond: the first mark after 100 ms, then 100/√2 = 70.7, 100/√3 = 57.7 and 50 ms later.
    #[test]
    fn marks_come_ever_faster_while_the_queue_is_long() {
        let mut marker = marker();
        let marked: Vec<_> = (0..300)
            .filter(|&ms| marker.marks(|| at(ms), LONG))
            .collect();
        assert_eq!(marked, [100, 171, 229, 279]);
    }

    #[test]
    fn a_queue_that_was_short_once_begins_anew() {
        let mut marker = marker();
        assert!(!marker.marks(|| at(0), LONG));
        assert!(!marker.marks(|| at(90), marker.rule.threshold));
        assert!(!marker.marks(|| at(100), LONG));
        assert!(!marker.marks(|| at(199), LONG));
        assert!(marker.marks(|| at(200), LONG));
    }

    #[test]
    fn a_link_whose_marks_were_turned_off_begins_anew_when_they_are_on_again() {
        let mut marker = marker();
        assert!(!marker.marks(|| at(0), LONG));
        marker.is_on = false;
        assert!(!marker.marks(|| at(100), LONG));
        marker.is_on = true;
        assert!(!marker.marks(|| at(101), LONG));
        assert!(!marker.marks(|| at(200), LONG));
        assert!(marker.marks(|| at(201), LONG));
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
