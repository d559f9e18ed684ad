//! One number that stands for all events, to tell whether two runs were the same.

use core::fmt::Write;
use core::time::Duration;

use sha2::{Digest, Sha256};

use super::{Event, EventKind, Sink, reason_name};

/// SHA-256 over every event in a canonical encoding: all numbers as eight octets, the least significant first; frames and
/// names with their length before them.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint {
    hash: Sha256,
    events: u64,
}

impl Fingerprint {
    /// The digest of the events so far.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = self.hash.clone();
        hash.update(self.events.to_le_bytes());
        hash.finalize().into()
    }

    /// The digest in hexadecimal digits.
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(64);
        for octet in self.digest() {
            write!(text, "{octet:02x}").expect("a String takes everything");
        }
        text
    }

    /// How many events there were.
    pub const fn events(&self) -> u64 {
        self.events
    }

    fn numbers<const N: usize>(&mut self, numbers: [u64; N]) {
        for number in numbers {
            self.hash.update(number.to_le_bytes());
        }
    }

    fn octets(&mut self, octets: &[u8]) {
        self.numbers([octets.len() as u64]);
        self.hash.update(octets);
    }
}

impl Sink for Fingerprint {
    fn record(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.numbers([event.at.as_nanos(), event.node as u64, event.face]);
        match event.kind {
            EventKind::Received(frame) => {
                self.numbers([0]);
                self.octets(frame);
            }
            EventKind::Sent(frame) => {
                self.numbers([1]);
                self.octets(frame);
            }
            EventKind::Dropped(frame, reason) => {
                self.numbers([2]);
                self.octets(frame);
                self.octets(reason_name(reason).as_bytes());
            }
            EventKind::Fetched(fetched) => {
                let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
                let delays = [nanos(fetched.delay), nanos(fetched.full_delay)];
                self.numbers([
                    3,
                    fetched.sequence,
                    delays[0],
                    delays[1],
                    u64::from(fetched.transmissions),
                ]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use namecast_netem::DropReason;
    use namecast_units::Instant;

    use super::*;
    use namecast_apps::sequence::Fetched;

    fn of(events: &[(u64, usize, u64, EventKind<'_>)]) -> String {
        let mut fingerprint = Fingerprint::default();
        for (at, node, face, kind) in events {
            let (at, kind) = (Instant::from_nanos(*at), kind.clone());
            fingerprint.record(&Event {
                at,
                node: *node,
                face: *face,
                kind,
            });
        }
        fingerprint.hex()
    }

    #[test]
    fn every_part_of_an_event_and_their_order_count() {
        let (a, b) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"));
        let fetched = |sequence, delay, full, transmissions| {
            EventKind::Fetched(Fetched {
                sequence,
                delay: Duration::from_nanos(delay),
                full_delay: Duration::from_nanos(full),
                transmissions,
                size: namecast_units::ByteSize::ZERO,
            })
        };
        let sent = EventKind::Sent(&a);
        let mut all = vec![
            of(&[]),
            of(&[(1, 2, 3, sent.clone())]),
            of(&[(2, 2, 3, sent.clone())]),
            of(&[(1, 3, 3, sent.clone())]),
            of(&[(1, 2, 4, sent.clone())]),
            of(&[(1, 2, 3, EventKind::Sent(&b))]),
            of(&[(1, 2, 3, EventKind::Received(&a))]),
            of(&[(1, 2, 3, EventKind::Dropped(&a, DropReason::Loss))]),
            of(&[(1, 2, 3, EventKind::Dropped(&a, DropReason::Down))]),
            of(&[(1, 2, 3, fetched(1, 2, 3, 4))]),
            of(&[(1, 2, 3, fetched(2, 2, 3, 4))]),
            of(&[(1, 2, 3, fetched(1, 3, 3, 4))]),
            of(&[(1, 2, 3, fetched(1, 2, 4, 4))]),
            of(&[(1, 2, 3, fetched(1, 2, 3, 5))]),
            of(&[(1, 2, 3, sent.clone()), (1, 2, 3, EventKind::Sent(&b))]),
            of(&[(1, 2, 3, EventKind::Sent(&b)), (1, 2, 3, sent)]),
        ];
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    /// The encoding is part of recorded results, so it is pinned: time, node, face, 1 for sent, length, frame, and at the
    /// end the number of events.
    #[test]
    fn the_encoding_never_changes() {
        let mut octets = Vec::new();
        for number in [5_u64, 1, 256, 1, 3] {
            octets.extend(number.to_le_bytes());
        }
        octets.extend(b"abc");
        octets.extend(1_u64.to_le_bytes());
        let expected = Sha256::digest(&octets);
        let mut fingerprint = Fingerprint::default();
        let frame = Bytes::from_static(b"abc");
        fingerprint.record(&Event {
            at: Instant::from_nanos(5),
            node: 1,
            face: 256,
            kind: EventKind::Sent(&frame),
        });
        assert_eq!(fingerprint.digest()[..], expected[..]);
        assert_eq!(fingerprint.events(), 1);
        assert_eq!(fingerprint.hex().len(), 64);
    }
}
