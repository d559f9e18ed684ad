use super::*;
use crate::table::NameHasher;
use namecast_packet::signature::NullSigner;
use namecast_units::Random;

const MAX_COMPONENTS: usize = 16;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pit() -> (Pit, NameHasher) {
    let hasher = NameHasher::new(3);
    let pit = Pit::new(10, ByteSize::mebibytes(1));
    (pit, hasher)
}

fn insert(pit: &mut Pit, interest: &Interest, hashes: &NameHashes) -> EntryId {
    pit.insert(interest, interest.name().clone(), hashes, Duration::ZERO)
}

fn record(face: u64, wire: &Bytes, expiry: u64) -> InRecord {
    InRecord {
        face: FaceId::from_number(face),
        nonce: Nonce::from(1),
        expiry: Instant::from_nanos(expiry),
        token: None,
        wire: wire.clone(),
    }
}

/// One of few names, so that equal ones and prefixes are common.
fn random_name(random: &mut Random) -> Name {
    (0..1 + random.below(3)).fold(Name::root(), |name, _| {
        let word = ["a", "b", "c"][usize::try_from(random.below(3)).unwrap()];
        name.child(Component::generic(word))
    })
}

fn random_data(random: &mut Random) -> Data {
    let content = vec![0; usize::try_from(random.below(2)).unwrap()];
    Data::builder(random_name(random))
        .content(content)
        .sign(&NullSigner)
}

fn random_interest(random: &mut Random) -> Interest {
    let mut name = random_name(random);
    if random.chance(0.3) {
        let digest = random_data(random).implicit_digest();
        name = name.child(Component {
            kind: Component::IMPLICIT_DIGEST,
            value: &digest,
        });
    }
    let mut builder = Interest::builder(name);
    if random.chance(0.4) {
        builder = builder.can_be_prefix();
    }
    if random.chance(0.4) {
        builder = builder.must_be_fresh();
    }
    builder.build(Nonce::from(1))
}

/// Against a list that is searched from end to end with [`Interest::matches`].
#[test]
fn the_table_finds_what_a_plain_list_finds() {
    let mut random = Random::from_seed(21);
    let (mut pit, hasher) = pit();
    let mut list: Vec<(EntryId, Interest)> = Vec::new();
    let mut most_matches = 0;
    for _ in 0..30_000 {
        let interest = random_interest(&mut random);
        let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
        let same = |other: &Interest| {
            other.name() == interest.name()
                && other.can_be_prefix() == interest.can_be_prefix()
                && other.must_be_fresh() == interest.must_be_fresh()
        };
        let listed = list
            .iter()
            .find(|(_, other)| same(other))
            .map(|&(id, _)| id);
        assert_eq!(pit.find(&interest, &hashes), listed);
        if listed.is_none() && list.len() < 30 {
            list.push((insert(&mut pit, &interest, &hashes), interest));
        }
        let data = random_data(&mut random);
        let hashes = hasher.hashes(data.name(), MAX_COMPONENTS).unwrap();
        let mut expected: Vec<_> = list
            .iter()
            .filter(|(_, interest)| interest.matches(&data))
            .map(|&(id, _)| id)
            .collect();
        expected.sort();
        assert_eq!(pit.matches(&data, &hashes)[..], expected);
        most_matches = most_matches.max(expected.len());
        if random.chance(0.3) && !list.is_empty() {
            let at = usize::try_from(random.below(list.len() as u64)).unwrap();
            pit.remove(list.swap_remove(at).0);
        }
        assert_eq!(pit.len(), list.len());
    }
    assert!(most_matches >= 5, "{most_matches}");
    list.drain(..).for_each(|(id, _)| drop(pit.remove(id)));
    assert_eq!(pit.octets, ByteSize::ZERO);
    assert!(pit.index.is_empty() && pit.digest_parents.is_empty());
    assert_eq!(pit.prefix_depths, [0; 5]);
}

#[test]
fn octets_are_counted_through_every_change_of_records() {
    let (mut pit, hasher) = pit();
    let interest = Interest::builder(name("/a/b")).build(Nonce::from(1));
    let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
    let id = insert(&mut pit, &interest, &hashes);
    // The name's value is two components of three octets.
    assert_eq!(pit.octets, ByteSize::bytes(6));
    pit.record_received(id, record(300, &Bytes::from_static(&[0; 50]), 5));
    pit.record_received(id, record(301, &Bytes::from_static(&[0; 70]), 9));
    pit.record_received(id, record(300, &Bytes::from_static(&[0; 40]), 7));
    assert_eq!(pit.octets, ByteSize::bytes(116));
    assert_eq!(pit.get(id).expiry, Instant::from_nanos(9));
    pit.remove_face(FaceId::from_number(301));
    assert_eq!(pit.octets, ByteSize::bytes(46));
    assert!(pit.take_in_record(id, FaceId::from_number(301)).is_none());
    assert!(pit.take_in_record(id, FaceId::from_number(300)).is_some());
    assert_eq!(pit.octets, ByteSize::bytes(6));
}

#[test]
fn both_bounds_make_the_table_full() {
    let hasher = NameHasher::new(3);
    let mut pit = Pit::new(2, ByteSize::bytes(100));
    for uri in ["/a", "/b"] {
        assert!(!pit.is_full(true, ByteSize::bytes(94)));
        let interest = Interest::builder(name(uri)).build(Nonce::from(1));
        let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
        insert(&mut pit, &interest, &hashes);
    }
    assert!(pit.is_full(true, ByteSize::ZERO) && !pit.is_full(false, ByteSize::bytes(94)));
    assert!(pit.is_full(false, ByteSize::bytes(95)));
}

#[test]
fn a_renewed_out_record_waits_longer_and_an_expired_one_starts_anew() {
    let (mut pit, hasher) = pit();
    let interest = Interest::builder(name("/a")).build(Nonce::from(1));
    let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
    let id = insert(&mut pit, &interest, &hashes);
    let entry = pit.get_mut(id);
    let sent = |at: u64| OutRecord {
        face: FaceId::from_number(300),
        nonce: Nonce::from(1),
        sent_at: Instant::from_nanos(at),
        expiry: Instant::from_nanos(at + 100),
        nack: None,
        suppression: Duration::from_millis(10),
    };
    let mut intervals = Vec::new();
    for at in [0, 50, 149, 249] {
        entry.record_sent(sent(at), |interval| interval * 2);
        intervals.push(entry.out_records[0].suppression.as_millis());
    }
    assert_eq!(intervals, [10, 20, 40, 10]);
    assert_eq!(entry.out_records.len(), 1);
}
