//! Serves the key boxes of a publisher, and holds Interests for the next ones.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::{Data, DataBuilder, Interest, Name, Nonce};
use namecast_stream::producer::{Arrival, Held, PendingTable, Reply, Waiter};
use namecast_stream::seal::MAX_STEPS;
use namecast_units::{ByteSize, Duration, Instant};

use super::key_box::{MAX_PACKETS, box_name, parse_box_name};
use super::sealer::KeyBox;

/// Generations after the newest one whose Interests are held.
const GENERATIONS_AHEAD: u64 = 1;

/// Bounds of a server of boxes.
#[derive(Clone, Debug)]
pub struct BoxServerConfig {
    /// Boxes that are kept, the newest ones.
    pub max_boxes: usize,
    /// Their packets: of the oldest boxes, those beyond it are dropped. The newest box is kept whatever its size.
    pub max_size: ByteSize,
    /// Interests that are held.
    pub max_pending: usize,
    /// Interests for one packet that are held.
    pub max_pending_per_packet: usize,
    /// Longest time for which an Interest is held.
    pub max_lifetime: Duration,
}

impl Default for BoxServerConfig {
    /// 256 boxes, 8 MiB, and 1,024 Interests for 4 s.
    fn default() -> Self {
        Self {
            max_boxes: 256,
            max_size: ByteSize::mebibytes(8),
            max_pending: 1_024,
            max_pending_per_packet: 1_024,
            max_lifetime: Duration::from_secs(4),
        }
    }
}

/// Outcome of an Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requested {
    /// This answers it.
    Answer(Box<Data>),
    /// It is held until the box is published, or its lifetime ends.
    Held,
    /// There is no room for it: it is dropped.
    Dropped,
    /// The requested box will not exist.
    Refused,
}

/// Generation, step, segment.
type Place = (u64, u16, u64);

/// Boxes of one start of a publisher.
#[derive(Debug)]
pub struct BoxServer {
    root: Name,
    start: [u8; 4],
    config: BoxServerConfig,
    boxes: BTreeMap<(u64, u16), Vec<Data>>,
    /// In the order in which they were published.
    order: VecDeque<(u64, u16)>,
    size: usize,
    pending: PendingTable<Place>,
}

impl BoxServer {
    /// Serves boxes under `root` of the publisher's start `start`.
    pub const fn new(root: Name, start: [u8; 4], config: BoxServerConfig) -> Self {
        Self {
            root,
            start,
            boxes: BTreeMap::new(),
            order: VecDeque::new(),
            size: 0,
            pending: PendingTable::new(config.max_pending, config.max_pending_per_packet),
            config,
        }
    }

    /// Publishes a box, whose packets `sign` signs. Returns the answers to Interests that waited for it, one for each PIT token.
    pub fn publish(
        &mut self,
        key_box: &KeyBox,
        mut sign: impl FnMut(DataBuilder) -> Data,
    ) -> Vec<Reply> {
        let name = box_name(&self.root, &key_box.seal);
        let last = key_box.packets.len().saturating_sub(1) as u64;
        let final_block = Name::root().builder().segment(last).finish();
        let packets = (0..).zip(&key_box.packets).map(|(segment, content)| {
            let name = name.builder().segment(segment).finish();
            let data = Data::builder(name).final_block(final_block.clone());
            sign(data.content(content.clone()))
        });
        let packets: Vec<_> = packets.collect();
        let place = (key_box.seal.generation, key_box.seal.step);
        let mut replies = Vec::new();
        for (segment, data) in (0..).zip(&packets) {
            let waiters = self.pending.take(&(place.0, place.1, segment));
            replies.extend(answers(data, &waiters));
        }
        // A box has no further packets.
        self.pending
            .remove((place.0, place.1, 0)..=(place.0, place.1, u64::MAX));
        self.size += packets.iter().map(|it| it.wire().len()).sum::<usize>();
        self.boxes.insert(place, packets);
        self.order.push_back(place);
        let max_size = self.config.max_size.as_bytes();
        while self.order.len() > 1
            && (self.order.len() > self.config.max_boxes || self.size as u64 > max_size)
            && let Some(oldest) = self.order.pop_front()
        {
            let dropped = self.boxes.remove(&oldest).unwrap_or_default();
            self.size -= dropped.iter().map(|it| it.wire().len()).sum::<usize>();
        }
        replies
    }

    /// Takes an Interest for a box. `None`: its name is none of a box of this root.
    pub fn handle_interest(
        &mut self,
        now: Instant,
        interest: &Interest,
        arrival: Arrival,
    ) -> Option<Requested> {
        let (seal, segment) = parse_box_name(&self.root, interest.name())?;
        self.handle_timeout(now);
        if seal.start != self.start {
            return Some(Requested::Refused);
        }
        let place = (seal.generation, seal.step);
        if let Some(packets) = self.boxes.get(&place) {
            let packet = usize::try_from(segment).ok().and_then(|at| packets.get(at));
            return Some(packet.map_or(Requested::Refused, |data| {
                Requested::Answer(Box::new(data.clone()))
            }));
        }
        if !self.may_come(place) || segment >= MAX_PACKETS as u64 {
            return Some(Requested::Refused);
        }
        let lifetime = interest.lifetime().min(self.config.max_lifetime);
        let waiter = Waiter {
            arrived_at: now,
            expires_at: now + lifetime,
            nonce: interest.nonce().unwrap_or(Nonce([0; 4])),
            pit_token: arrival.pit_token,
            due_at: now + lifetime,
            face: arrival.face,
        };
        let held = self.pending.insert((place.0, place.1, segment), waiter);
        Some(match held {
            Held::Yes | Held::Duplicate | Held::InsteadOfAnother => Requested::Held,
            Held::Full => Requested::Dropped,
        })
    }

    /// Returns whether a box that is not published may still be.
    fn may_come(&self, (generation, step): (u64, u16)) -> bool {
        let newest = self.boxes.keys().next_back();
        newest.is_none_or(|newest| {
            let ahead = generation.checked_sub(newest.0);
            match ahead {
                Some(0) => step > newest.1 && step < MAX_STEPS,
                Some(ahead) => ahead <= GENERATIONS_AHEAD,
                None => false,
            }
        })
    }

    /// Drops Interests whose lifetime has ended. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pending.expire(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pending.next_expiry()
    }

    /// Returns the number of Interests that are held.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }
}

/// One answer for each PIT token.
fn answers(data: &Data, waiters: &[Waiter]) -> Vec<Reply> {
    let mut tokens: Vec<&Option<Bytes>> = Vec::new();
    for waiter in waiters {
        if !tokens.contains(&&waiter.pit_token) {
            tokens.push(&waiter.pit_token);
        }
    }
    let reply = |token: &Option<Bytes>| Reply {
        data: data.clone(),
        pit_token: token.clone(),
    };
    tokens.into_iter().map(reply).collect()
}

#[cfg(test)]
mod tests {
    use core::ops::RangeInclusive;

    use namecast_packet::signature::NullSigner;
    use namecast_stream::Seal;

    use super::*;

    const START: [u8; 4] = [1, 2, 3, 4];

    fn root() -> Name {
        "/calls/fox/ann".parse().unwrap()
    }

    fn key_box(generation: u64, step: u16, packets: usize) -> KeyBox {
        KeyBox {
            seal: Seal {
                start: START,
                generation,
                step,
            },
            packets: (0..packets).map(|n| vec![n as u8; 100].into()).collect(),
        }
    }

    fn publish(server: &mut BoxServer, key_box: &KeyBox) -> Vec<Reply> {
        server.publish(key_box, |data| data.sign(&NullSigner))
    }

    fn request(server: &mut BoxServer, (generation, step): (u64, u16), segment: u64) -> Requested {
        let name = box_name(&root(), &key_box(generation, step, 0).seal);
        let name = name.builder().segment(segment).finish();
        let nonce = Nonce([segment as u8, generation as u8, step as u8, 0]);
        let interest = Interest::builder(name).build(nonce);
        let arrival = Arrival {
            pit_token: Some(vec![7].into()),
            face: None,
        };
        let requested = server.handle_interest(Instant::ZERO, &interest, arrival);
        requested.unwrap()
    }

    fn refused(server: &mut BoxServer, places: RangeInclusive<u16>) -> usize {
        let places = places.map(|step| request(server, (0, step), 0));
        places.filter(|it| *it == Requested::Refused).count()
    }

    /// The next generation's box is pushed to whoever waits for it, each of its packets, and a packet that it does not have is forgotten.
    #[test]
    fn interests_wait_for_the_next_box() {
        let mut server = BoxServer::new(root(), START, BoxServerConfig::default());
        assert!(publish(&mut server, &key_box(0, 0, 1)).is_empty());
        assert!(matches!(
            request(&mut server, (0, 0), 0),
            Requested::Answer(_)
        ));
        assert_eq!(request(&mut server, (0, 0), 1), Requested::Refused);
        for segment in [0, 1, 2] {
            assert_eq!(request(&mut server, (1, 0), segment), Requested::Held);
        }
        assert_eq!(server.pending(), 3);
        let replies = publish(&mut server, &key_box(1, 0, 2));
        let names: Vec<_> = replies
            .iter()
            .map(|it| it.data.name().to_string())
            .collect();
        let prefix = "/calls/fox/ann/32=keys/%01%02%03%04/seq=1/seq=0";
        assert_eq!(names, [0, 1].map(|n| format!("{prefix}/seg={n}")));
        assert!(
            replies
                .iter()
                .all(|it| it.pit_token == Some(vec![7].into()))
        );
        assert_eq!(server.pending(), 0);
    }

    #[test]
    fn interests_for_what_will_not_exist_are_refused() {
        let mut server = BoxServer::new(root(), START, BoxServerConfig::default());
        publish(&mut server, &key_box(3, 5, 1));
        for place in [(3, 4), (2, 9), (5, 0), (3, MAX_STEPS)] {
            assert_eq!(
                request(&mut server, place, 0),
                Requested::Refused,
                "{place:?}"
            );
        }
        for place in [(3, 6), (4, 0), (4, 7)] {
            assert_eq!(request(&mut server, place, 0), Requested::Held, "{place:?}");
        }
        assert_eq!(request(&mut server, (4, 0), 16), Requested::Refused);
        let other = Seal {
            start: [9; 4],
            generation: 3,
            step: 5,
        };
        let name = box_name(&root(), &other).builder().segment(0).finish();
        let interest = Interest::builder(name).build(Nonce([1; 4]));
        let requested = server.handle_interest(Instant::ZERO, &interest, Arrival::default());
        assert_eq!(requested, Some(Requested::Refused));
        let foreign = Interest::builder(root()).build(Nonce([1; 4]));
        let requested = server.handle_interest(Instant::ZERO, &foreign, Arrival::default());
        assert_eq!(requested, None);
    }

    /// 4 boxes are kept, and of large ones fewer: a packet has 100 octets of content and 64 more, so 6 fit.
    #[test]
    fn boxes_and_interests_are_bounded() {
        let config = BoxServerConfig {
            max_boxes: 4,
            max_size: ByteSize::bytes(1_100),
            max_pending: 2,
            ..BoxServerConfig::default()
        };
        let mut server = BoxServer::new(root(), START, config);
        for step in 0..6 {
            publish(&mut server, &key_box(0, step, 1));
        }
        assert_eq!(refused(&mut server, 0..=5), 2);
        publish(&mut server, &key_box(0, 6, 3));
        publish(&mut server, &key_box(0, 7, 3));
        assert_eq!(refused(&mut server, 0..=7), 6);
        publish(&mut server, &key_box(0, 8, 16));
        assert_eq!(refused(&mut server, 0..=8), 8);
        assert_eq!(request(&mut server, (1, 0), 0), Requested::Held);
        assert_eq!(request(&mut server, (1, 0), 1), Requested::Held);
        assert_eq!(request(&mut server, (1, 1), 0), Requested::Dropped);
        let later = Instant::ZERO + Duration::from_secs(4);
        server.handle_timeout(later);
        assert_eq!((server.pending(), server.poll_timeout()), (0, None));
    }
}
