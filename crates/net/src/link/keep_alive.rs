//! Keeping a datagram face alive: frames without a packet, so that the peer, and a NAT on the way, know that it is there.
//!
//! NDNLPv2 calls them IDLE packets. NFD takes them and sends none; NDNts sends one a minute.

use bytes::Bytes;
use namecast_units::{Duration, Instant};

/// An LpPacket without anything in it.
const IDLE: [u8; 2] = [0x64, 0x00];
/// Intervals of silence after which a peer that sends such frames counts as gone: two may get lost.
const SILENT_INTERVALS: u32 = 3;

/// One face's keep-alive. It is looked at from time to time, so that packets cost nothing.
#[derive(Clone, Debug)]
pub(crate) struct KeepAlive {
    interval: Duration,
    sent: Progress,
    heard: Progress,
    /// Whether the peer was found silent.
    is_silent: bool,
}

/// What a face has counted so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Frames to the peer, without those that keep alive.
    pub(crate) sent: u64,
    /// Frames from the peer.
    pub(crate) heard: u64,
    /// Those of them that only keep alive.
    pub(crate) keep_alives: u64,
}

/// What a look at a face led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// A frame that keeps alive is due.
    pub(crate) is_due: bool,
    /// The peer has become silent (true), or is heard again (false).
    pub(crate) silence: Option<bool>,
}

/// A counter, and when it was first seen as it is.
#[derive(Clone, Copy, Debug)]
struct Progress {
    count: u64,
    since: Instant,
}

impl Progress {
    const fn new(now: Instant) -> Self {
        Self {
            count: 0,
            since: now,
        }
    }

    fn note(&mut self, now: Instant, count: u64) -> bool {
        let has_moved = count != self.count;
        if has_moved {
            *self = Self { count, since: now };
        }
        has_moved
    }
}

impl KeepAlive {
    /// For a face that was made now.
    pub(crate) const fn new(now: Instant, interval: Duration) -> Self {
        Self {
            interval,
            sent: Progress::new(now),
            heard: Progress::new(now),
            is_silent: false,
        }
    }

    /// The frame that is due.
    pub(crate) const fn frame() -> Bytes {
        Bytes::from_static(&IDLE)
    }

    /// Looks at a face's counters: once an interval at least, or frames come later.
    ///
    /// A peer counts as silent only if it keeps alive too, as others may have nothing to say.
    pub(crate) fn look(&mut self, now: Instant, counted: Counted) -> Findings {
        self.sent.note(now, counted.sent);
        let is_due = now.since(self.sent.since) >= self.interval;
        if is_due {
            self.sent.since = now;
        }
        let is_heard = self.heard.note(now, counted.heard);
        let timeout = self.interval * SILENT_INTERVALS;
        let is_silent = counted.keep_alives > 0 && now.since(self.heard.since) >= timeout;
        let was_silent = core::mem::replace(&mut self.is_silent, is_silent);
        let silence = match (was_silent, is_silent) {
            (false, true) => Some(true),
            (true, false) if is_heard => Some(false),
            _ => None,
        };
        Findings { is_due, silence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn due(keep_alive: &mut KeepAlive, sent: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut look = |second| {
            let counted = Counted {
                sent: sent(second),
                ..Counted::default()
            };
            keep_alive.look(at(second), counted).is_due
        };
        (0..35).filter(|&second| look(second)).collect()
    }

    /// With nothing to send, one each 10 s. With a packet at 4 s and one at 9 s, the first is due at 19 s.
    #[test]
    fn frames_are_due_only_after_an_interval_without_packets() {
        assert_eq!(
            due(&mut KeepAlive::new(at(0), INTERVAL), |_| 0),
            [10, 20, 30]
        );
        let two = |second| u64::from(second >= 4) + u64::from(second >= 9);
        assert_eq!(due(&mut KeepAlive::new(at(0), INTERVAL), two), [19, 29]);
        assert!(due(&mut KeepAlive::new(at(0), INTERVAL), |second| second).is_empty());
    }

    /// Last heard at 10 s: silent at 40 s, not at 39 s; heard again at 50 s. Told once each.
    #[test]
    fn a_peer_that_kept_alive_and_is_silent_for_three_intervals_is_gone() {
        let mut keep_alive = KeepAlive::new(at(0), INTERVAL);
        let heard = |second| match second {
            0..10 => 0,
            10..50 => 1,
            _ => 2,
        };
        let mut told = Vec::new();
        for second in 0..70 {
            let counted = Counted {
                heard: heard(second),
                keep_alives: u64::from(second >= 10),
                ..Counted::default()
            };
            if let Some(silence) = keep_alive.look(at(second), counted).silence {
                told.push((second, silence));
            }
        }
        assert_eq!(told, [(40, true), (50, false)]);
    }

    #[test]
    fn a_peer_that_never_kept_alive_may_be_silent_for_ever() {
        let mut keep_alive = KeepAlive::new(at(0), INTERVAL);
        let counted = Counted {
            heard: 5,
            ..Counted::default()
        };
        let looks = (0..1_000).map(|second| keep_alive.look(at(second), counted).silence);
        assert!(looks.into_iter().all(|silence| silence.is_none()));
    }

    #[test]
    fn the_frame_is_a_link_packet_that_carries_nothing() {
        let packet = namecast_packet::LpPacket::decode(KeepAlive::frame()).unwrap();
        assert_eq!(packet, namecast_packet::LpPacket::default());
    }
}
