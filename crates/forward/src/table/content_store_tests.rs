use super::*;
use crate::name_hash::{HashKey, NameHasher};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Component, Nonce};
use namecast_units::Random;

const MAX_COMPONENTS: usize = 16;
const VERSIONS: usize = 3;

struct Tester {
    store: ContentStore,
    hasher: NameHasher,
}

impl Tester {
    fn new(capacity: ByteSize) -> Self {
        Self {
            store: ContentStore::new(
                Keep::Copies,
                ContentStoreConfig {
                    capacity,
                    max_versions: VERSIONS,
                    ..ContentStoreConfig::default()
                },
            ),
            hasher: NameHasher::new(HashKey::FIXED),
        }
    }

    fn insert(&mut self, now: Instant, data: &Data) {
        let hashes = self.hasher.hashes(data.name(), MAX_COMPONENTS).unwrap();
        self.store.insert(now, data, &hashes);
    }

    /// As if nobody had asked for a prefix before.
    fn forget_order(&mut self) {
        let store = &mut self.store;
        if store.order.take().is_some() {
            store.overhead -= Order::MEMORY_PER_PLACE;
            store.used -=
                ByteSize::bytes(Order::MEMORY_PER_PLACE.as_bytes() * store.entries.len() as u64);
        }
    }

    fn find(&mut self, now: Instant, interest: &Interest) -> Option<Bytes> {
        let hashes = self.hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
        self.store.find(now, interest, &hashes)
    }
}

/// All cached packets, least recently used first, searched from end to end; and whether names are in order.
#[derive(Default)]
struct Twin(Vec<(Data, Option<Instant>)>, bool);

impl Twin {
    fn insert(&mut self, now: Instant, data: &Data, capacity: ByteSize) {
        let fresh_until = (!data.freshness().is_zero()).then(|| now + data.freshness());
        let same_name = |(other, _): &(Data, _)| other.name() == data.name();
        if let Some(at) = self.0.iter().position(|(other, _)| other == data) {
            let (_, before) = self.0.remove(at);
            self.0.push((data.clone(), fresh_until.or(before)));
            return;
        }
        if self.0.iter().filter(|&entry| same_name(entry)).count() == VERSIONS {
            let oldest = self.0.iter().position(same_name).unwrap();
            self.0.remove(oldest);
        }
        self.0.push((data.clone(), fresh_until));
        self.shrink(capacity);
    }

    fn shrink(&mut self, capacity: ByteSize) {
        while self.used() > capacity {
            self.0.remove(0);
        }
    }

    fn find(&mut self, now: Instant, interest: &Interest) -> Option<Bytes> {
        let is_match = |(data, fresh_until): &(Data, Option<Instant>)| {
            interest.matches(data)
                && (!interest.must_be_fresh() || fresh_until.is_some_and(|until| now <= until))
        };
        let (at, _) = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, entry)| is_match(entry))
            .min_by_key(|(_, (data, _))| (data.name().clone(), data.implicit_digest()))?;
        let entry = self.0.remove(at);
        self.0.push(entry);
        self.0.last().map(|(data, _)| data.wire().clone())
    }

    fn used(&self) -> ByteSize {
        let order = match self.1 {
            true => Order::MEMORY_PER_PLACE,
            false => ByteSize::ZERO,
        };
        let each = overhead(CachePolicy::Lru, Keep::Copies) + order;
        let sizes = self.0.iter().map(|(data, _)| ByteSize::of(data.wire()));
        sizes.map(|size| size + each).sum()
    }
}

fn random_name(random: &mut Random) -> Name {
    (0..1 + random.below(3)).fold(Name::root(), |name, _| {
        let word = ["a", "b", "cc"][usize::try_from(random.below(3)).unwrap()];
        name.child(Component::generic(word))
    })
}

fn random_data(random: &mut Random) -> Data {
    let content = vec![0; usize::try_from(random.below(5)).unwrap() * 100];
    Data::builder(random_name(random))
        .freshness(Duration::from_millis(random.below(4)))
        .content(content)
        .sign(&NullSigner)
}

fn random_interest(random: &mut Random) -> Interest {
    let mut name = random_name(random);
    if random.chance(0.2) {
        let digest = random_data(random).implicit_digest();
        name = name.child(Component {
            kind: Component::IMPLICIT_DIGEST,
            value: &digest,
        });
    }
    let mut builder = Interest::builder(name);
    if random.chance(0.5) {
        builder = builder.can_be_prefix();
    }
    if random.chance(0.5) {
        builder = builder.must_be_fresh();
    }
    builder.build(Nonce::from(1))
}

/// Against the list: same answers, same packets left, same memory.
#[test]
fn the_store_answers_as_a_plain_list_does() {
    for capacity in [3_000, 8_000, 40_000] {
        let capacity = ByteSize::bytes(capacity);
        let mut random = Random::from_seed(capacity.as_bytes());
        let (mut tester, mut twin) = (Tester::new(capacity), Twin::default());
        let (mut now, mut hits) = (Instant::ZERO, 0);
        for step in 0..8_000 {
            if step % 100 == 0 {
                tester.forget_order();
                twin.1 = false;
            }
            now += Duration::from_micros(random.below(500));
            if random.chance(0.4) {
                let data = random_data(&mut random);
                tester.insert(now, &data);
                twin.insert(now, &data, capacity);
            } else {
                let interest = random_interest(&mut random);
                let found = tester.find(now, &interest);
                twin.1 |= interest.can_be_prefix();
                twin.shrink(capacity);
                assert_eq!(found, twin.find(now, &interest), "{:?}", interest.name());
                hits += u64::from(found.is_some());
            }
            assert_eq!(
                (tester.store.packets(), tester.store.size()),
                (twin.0.len(), twin.used())
            );
        }
        assert!(hits > 500, "{hits}");
    }
}

fn data(uri: &str, length: usize) -> Data {
    Data::builder(uri.parse().unwrap())
        .content(vec![0; length])
        .sign(&NullSigner)
}

fn interest(uri: &str) -> Interest {
    Interest::builder(uri.parse().unwrap()).build(Nonce::from(1))
}

/// Room for exactly three packets; the one that was asked for stays, the one before it goes.
#[test]
fn the_least_recently_used_goes_first_and_only_as_needed() {
    let overhead = overhead(CachePolicy::Lru, Keep::Copies);
    let each = ByteSize::of(data("/1", 500).wire()) + overhead;
    let mut tester = Tester::new(each + each + each);
    for uri in ["/1", "/2", "/3"] {
        tester.insert(Instant::ZERO, &data(uri, 500));
    }
    assert_eq!(tester.store.packets(), 3);
    assert!(tester.find(Instant::ZERO, &interest("/1")).is_some());
    tester.insert(Instant::ZERO, &data("/4", 500));
    let left =
        ["/1", "/2", "/3", "/4"].map(|uri| tester.find(Instant::ZERO, &interest(uri)).is_some());
    assert_eq!(left, [true, false, true, true]);
    // One octet more than the whole store is not taken, and costs nobody a place.
    let too_large = (each + each + each - overhead).as_bytes();
    tester.insert(
        Instant::ZERO,
        &data("/large", usize::try_from(too_large).unwrap()),
    );
    assert_eq!(tester.store.packets(), 3);
}

/// What a look-up returns, and every key, is in memory of the store's own.
#[test]
fn a_cached_packet_does_not_keep_the_receive_buffer() {
    let packet = data("/a", 100);
    let mut buffer = vec![0; 65_536];
    buffer[..packet.wire().len()].copy_from_slice(packet.wire());
    let buffer = Bytes::from(buffer);
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    tester.insert(
        Instant::ZERO,
        &Data::decode(buffer.slice(..packet.wire().len())).unwrap(),
    );
    tester.store.put_in_order();
    assert!(buffer.is_unique());
    assert_eq!(
        tester.find(Instant::ZERO, &interest("/a")).as_ref(),
        Some(packet.wire())
    );
}

/// Ten packets of one name, of which three may stay: one is found by the prefix until the last of them went.
#[test]
fn versions_of_one_name_are_found_by_prefix_until_the_last_one_went() {
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    tester.store.put_in_order();
    for length in 0..10 {
        tester.insert(Instant::ZERO, &data("/a/b", length));
    }
    assert_eq!(tester.store.packets(), VERSIONS);
    let prefix = Interest::builder("/a".parse().unwrap()).can_be_prefix();
    let prefix = prefix.build(Nonce::from(1));
    for _ in 0..VERSIONS {
        assert!(tester.find(Instant::ZERO, &prefix).is_some());
        tester.store.erase(&"/a".parse().unwrap(), 1);
    }
    assert_eq!(tester.find(Instant::ZERO, &prefix), None);
    assert_eq!(tester.store.packets(), 0);
}

#[test]
fn the_first_interest_for_a_prefix_puts_names_in_order_even_if_there_are_none() {
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    assert_eq!(tester.find(Instant::ZERO, &interest("/a")), None);
    assert!(tester.store.order.is_none());
    let prefix = Interest::builder("/a".parse().unwrap()).can_be_prefix();
    assert_eq!(
        tester.find(Instant::ZERO, &prefix.build(Nonce::from(1))),
        None
    );
    tester.insert(Instant::ZERO, &data("/a/b", 1));
    assert!(tester.store.order.is_some());
    let prefix = Interest::builder("/a".parse().unwrap()).can_be_prefix();
    assert!(
        tester
            .find(Instant::ZERO, &prefix.build(Nonce::from(1)))
            .is_some()
    );
}

/// Ten packets fill the store to the last octet; with their names in order there is room for nine.
#[test]
fn order_takes_its_memory_from_the_packets() {
    let each = ByteSize::of(data("/1", 50).wire()) + overhead(CachePolicy::Lru, Keep::Copies);
    let times = |count: u64, size: ByteSize| ByteSize::bytes(count * size.as_bytes());
    let mut tester = Tester::new(times(10, each));
    for digit in 0..10 {
        tester.insert(Instant::ZERO, &data(&format!("/{digit}"), 50));
    }
    assert_eq!(tester.store.packets(), 10);
    let prefix = Interest::builder("/2".parse().unwrap()).can_be_prefix();
    let prefix = prefix.build(Nonce::from(1));
    assert!(tester.find(Instant::ZERO, &prefix).is_some());
    let nine = times(9, each + Order::MEMORY_PER_PLACE);
    assert_eq!((tester.store.packets(), tester.store.size()), (9, nine));
    assert_eq!(tester.find(Instant::ZERO, &interest("/0")), None);
}

/// Questions to management come by prefix and are never answered from here: they alone must not make names be kept in order.
#[test]
fn local_prefixes_need_order_only_where_local_packets_are() {
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    tester.insert(Instant::ZERO, &data("/localhostess/a", 1));
    let local: Name = "/localhost/nfd".parse().unwrap();
    let question = Interest::builder(local).can_be_prefix();
    let question = question.build(Nonce::from(1));
    assert_eq!(tester.find(Instant::ZERO, &question), None);
    assert!(tester.store.order.is_none());
    tester.insert(Instant::ZERO, &data("/localhost/nfd/a", 1));
    assert!(tester.find(Instant::ZERO, &question).is_some());
    tester.store.erase(&"/localhost".parse().unwrap(), 9);
    assert_eq!(tester.store.local_packets, 0);
}

/// Where frames are kept, a packet that is cached and one that is delivered are the one that came in.
#[test]
fn a_store_that_keeps_frames_copies_nothing() {
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    tester.store.keep = Keep::Frames;
    let packet = data("/a", 100);
    tester.insert(Instant::ZERO, &packet);
    let found = tester.find(Instant::ZERO, &interest("/a")).unwrap();
    assert_eq!(found.as_ptr(), packet.wire().as_ptr());
}

/// `/a` and what is below it goes in canonical order, `/ab` stays; the names' order, which costs time, is not kept.
#[test]
fn erasing_takes_what_is_below_a_prefix_up_to_a_limit() {
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    for name in ["/a/2", "/ab", "/a", "/a/1", "/b/a"] {
        tester.insert(Instant::ZERO, &data(name, 1));
    }
    let prefix = "/a".parse().unwrap();
    let erased = |count, is_more_left| Erased {
        count,
        is_more_left,
    };
    assert_eq!(tester.store.erase(&prefix, 2), erased(2, true));
    assert_eq!(tester.find(Instant::ZERO, &interest("/a/1")), None);
    assert!(tester.find(Instant::ZERO, &interest("/a/2")).is_some());
    assert_eq!(tester.store.erase(&prefix, 2), erased(1, false));
    assert_eq!(tester.store.erase(&prefix, 2), erased(0, false));
    assert!(tester.store.order.is_none());
    assert_eq!(tester.store.erase(&Name::root(), 9), erased(2, false));
    assert_eq!(
        (tester.store.packets(), tester.store.size()),
        (0, ByteSize::ZERO)
    );
}

/// Room for two of three packets: the least recently used one goes.
#[test]
fn a_smaller_capacity_holds_at_once() {
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    for name in ["/a", "/b", "/c"] {
        tester.insert(Instant::ZERO, &data(name, 1));
    }
    tester.find(Instant::ZERO, &interest("/a")).unwrap();
    let options = tester.store.options();
    let capacity = ByteSize::bytes(tester.store.size().as_bytes() - 1);
    tester.store.set_options(CacheOptions {
        capacity,
        ..options
    });
    assert_eq!(tester.find(Instant::ZERO, &interest("/b")), None);
    assert!(tester.find(Instant::ZERO, &interest("/a")).is_some());
    assert!(tester.find(Instant::ZERO, &interest("/c")).is_some());
}

#[test]
fn a_store_that_admits_nothing_keeps_what_it_has_and_one_that_serves_nothing_is_silent() {
    let mut tester = Tester::new(ByteSize::mebibytes(1));
    tester.insert(Instant::ZERO, &data("/a", 1));
    let options = tester.store.options();
    tester.store.set_options(CacheOptions {
        admits: false,
        ..options
    });
    tester.insert(Instant::ZERO, &data("/b", 1));
    assert_eq!(tester.find(Instant::ZERO, &interest("/b")), None);
    assert!(tester.find(Instant::ZERO, &interest("/a")).is_some());
    tester.store.set_options(CacheOptions {
        serves: false,
        ..options
    });
    assert_eq!(tester.find(Instant::ZERO, &interest("/a")), None);
    assert_eq!(tester.store.packets(), 1);
}
