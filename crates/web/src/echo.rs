//! How long what leaves a tab waits on its path to the node at the other end.
//!
//! Small Interests for names that nobody has, for one hop: a node returns each with a Nack at once, and they wait where
//! everything else waits that this tab sends. What they take longer than the quickest did is queue.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_packet::{Component, Interest, LpPacket, Name, Nonce};
use namecast_units::{Duration, Instant, Random};

/// Octets that nobody else knows.
const ECHO_SIZE: usize = 8;
/// A Nack of such an Interest is no larger.
const MAX_RETURNED: usize = 160;
/// Interests that may be under way; those before count as lost.
const MAX_SENT: usize = 64;
/// How long the quickest counts: paths change.
const WINDOW: Duration = Duration::from_secs(30);

/// Measures one transport.
#[derive(Debug)]
pub(crate) struct Echoes {
    random: Random,
    /// What has not come back, the oldest first.
    sent: VecDeque<([u8; ECHO_SIZE], Instant)>,
    newest: Option<Duration>,
    window: Instant,
    quickest: Duration,
    quickest_before: Duration,
}

impl Echoes {
    /// For a transport that is up from now on. `seed` is not to be foreseen.
    pub(crate) fn new(now: Instant, seed: u64) -> Self {
        Self {
            random: Random::from_seed(seed),
            sent: VecDeque::new(),
            newest: None,
            window: now,
            quickest: Duration::MAX,
            quickest_before: Duration::MAX,
        }
    }

    /// Another transport is up: what is known of the one before does not count for it.
    pub(crate) fn restart(&mut self, now: Instant) {
        *self = Self::new(now, self.random.next_u64());
    }

    /// The next frame to send.
    pub(crate) fn send(&mut self, now: Instant) -> Bytes {
        let echo = self.random.next_u64().to_be_bytes();
        if self.sent.len() == MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back((echo, now));
        let name: Name = "/localhop/echo".parse().expect("a name");
        let unknown = Component {
            kind: Component::GENERIC,
            value: &echo,
        };
        let nonce = Nonce([echo[0], echo[1], echo[2], echo[3]]);
        let interest = Interest::builder(name.child(unknown)).hop_limit(1);
        LpPacket::carrying(interest.build(nonce).wire().clone()).encode()
    }

    /// Returns whether `frame` brings back what was sent. What was sent before that is lost: nothing overtakes on a queue.
    pub(crate) fn handle_frame(&mut self, now: Instant, frame: &[u8]) -> bool {
        if frame.len() > MAX_RETURNED {
            return false;
        }
        let is_in = |echo: &[u8; ECHO_SIZE]| frame.windows(ECHO_SIZE).any(|octets| octets == echo);
        let Some(at) = self.sent.iter().position(|(echo, _)| is_in(echo)) else {
            return false;
        };
        let took = now.since(self.sent[at].1);
        self.sent.drain(..=at);
        if now.since(self.window) >= WINDOW {
            self.quickest_before = self.quickest;
            (self.quickest, self.window) = (Duration::MAX, now);
        }
        self.quickest = self.quickest.min(took);
        self.newest = Some(took);
        true
    }

    /// How long what is sent now waits for others before it, as far as is known; `None` before anything came back.
    pub(crate) fn queueing(&self, now: Instant) -> Option<Duration> {
        let pending = self.sent.front().map(|(_, sent_at)| now.since(*sent_at));
        let took = self.newest?.max(pending.unwrap_or_default());
        Some(took.saturating_sub(self.quickest.min(self.quickest_before)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    /// As a node returns it.
    fn returned(frame: &Bytes) -> Vec<u8> {
        let mut nack = b"\x64\x40\xfd\x03\x20\x05".to_vec();
        nack.extend_from_slice(frame);
        nack
    }

    /// The first takes 20 ms and the second 120; the third is lost, as the fourth shows, and counts while that is unknown.
    #[test]
    fn queueing_is_what_is_above_the_quickest() {
        let mut echoes = Echoes::new(at(0), 1);
        assert_eq!(echoes.queueing(at(0)), None);
        let first = echoes.send(at(0));
        assert!(echoes.handle_frame(at(20), &returned(&first)));
        assert!(!echoes.handle_frame(at(20), &returned(&first)));
        assert_eq!(echoes.queueing(at(20)), Some(Duration::ZERO));
        let second = echoes.send(at(100));
        assert!(echoes.handle_frame(at(220), &returned(&second)));
        assert_eq!(echoes.queueing(at(220)), Some(Duration::from_millis(100)));
        echoes.send(at(300));
        let fourth = echoes.send(at(500));
        assert_eq!(echoes.queueing(at(600)), Some(Duration::from_millis(280)));
        assert!(echoes.handle_frame(at(620), &returned(&fourth)));
        assert_eq!(echoes.queueing(at(620)), Some(Duration::from_millis(100)));
    }

    /// A path that became longer is not taken for a queue for ever: after two windows of 30 s only what came then counts.
    #[test]
    fn the_quickest_is_forgotten() {
        let mut echoes = Echoes::new(at(0), 1);
        let mut after = |sent_at: u64, took: u64| {
            let frame = echoes.send(at(sent_at));
            assert!(echoes.handle_frame(at(sent_at + took), &returned(&frame)));
            echoes.queueing(at(sent_at + took))
        };
        after(0, 20);
        assert_eq!(after(31_000, 200), Some(Duration::from_millis(180)));
        assert_eq!(after(62_000, 200), Some(Duration::ZERO));
    }

    #[test]
    fn what_is_under_way_is_bounded() {
        let mut echoes = Echoes::new(at(0), 1);
        let first = echoes.send(at(0));
        for sent in 0..MAX_SENT as u64 {
            echoes.send(at(sent));
        }
        assert_eq!(echoes.sent.len(), MAX_SENT);
        assert!(!echoes.handle_frame(at(99), &returned(&first)));
    }
}
