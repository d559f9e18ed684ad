use super::*;
use crate::name_hash::{HashKey, NameHasher};
use namecast_packet::signature::NullSigner;
use namecast_units::Random;

const MAX_COMPONENTS: usize = 16;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pit() -> (Pit, NameHasher) {
    let hasher = NameHasher::new(HashKey::FIXED);
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
        fields: KeptFields::default(),
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
    let mut max_matches = 0;
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
        max_matches = max_matches.max(expected.len());
        if random.chance(0.3) && !list.is_empty() {
            let at = usize::try_from(random.below(list.len() as u64)).unwrap();
            pit.remove(list.swap_remove(at).0);
        }
        assert_eq!(pit.len(), list.len());
    }
    assert!(max_matches >= 5, "{max_matches}");
    list.drain(..).for_each(|(id, _)| drop(pit.remove(id)));
    assert_eq!(pit.memory, ByteSize::ZERO);
    assert!(pit.index.is_empty() && pit.digest_parents.is_empty());
    assert_eq!(pit.prefix_depths, [0; 5]);
}

/// An entry with one downstream holds one buffer, of which the name is a part; each Interest more is a buffer of its own, and
/// from the second record on records are outside the entry.
#[test]
fn memory_is_counted_through_every_change_of_records() {
    let (mut pit, hasher) = pit();
    let interest = Interest::builder(name("/a/b")).build(Nonce::from(1));
    let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
    let id = insert(&mut pit, &interest, &hashes);
    let first = ENTRY + buffer(interest.wire().len());
    assert_eq!(pit.memory, first);
    let faces = [300, 301].map(FaceId::from_number);
    let shares = faces.map(|face| pit.add_face(face));
    pit.record_received(id, record(300, interest.wire(), 5), shares[0]);
    assert_eq!(pit.memory, first);
    pit.record_received(id, record(301, &Bytes::from(vec![0; 70]), 9), shares[1]);
    let records = |count: u64| ByteSize::bytes(count * IN_RECORD.as_bytes());
    assert_eq!(pit.memory, first + buffer(70) + records(2));
    assert_eq!(pit.get(id).expiry, Instant::from_nanos(9));
    // The name goes on holding the Interest that it came with.
    pit.record_received(id, record(300, &Bytes::from(vec![0; 40]), 7), shares[0]);
    let all = first + buffer(70) + buffer(40) + records(2);
    assert_eq!(pit.memory, all);
    assert!(pit.take_in_record(id, faces[1]).is_some());
    assert_eq!(pit.memory, all - buffer(70));
    assert_eq!(pit.get(id).expiry, Instant::from_nanos(7));
    assert!(pit.take_in_record(id, faces[1]).is_none());
    assert!(pit.take_in_record(id, faces[0]).is_some());
    assert_eq!(pit.memory, first + records(2));
    pit.remove(id);
    assert_eq!(pit.memory, ByteSize::ZERO);
}

#[test]
fn memory_is_counted_for_upstreams_and_digests() {
    let (mut pit, hasher) = pit();
    let digest = Component {
        kind: Component::IMPLICIT_DIGEST,
        value: &[7; 32],
    };
    let interest = Interest::builder(name("/a").child(digest)).build(Nonce::from(1));
    let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
    let id = insert(&mut pit, &interest, &hashes);
    let first = ENTRY + buffer(interest.wire().len()) + DIGEST_PARENT;
    assert_eq!(pit.memory, first);
    for face in [300, 301, 302] {
        pit.record_sent(id, sent(face, 0), |interval| interval);
    }
    // Room for three records is made for four.
    let records = ByteSize::bytes(4 * OUT_RECORD.as_bytes());
    assert_eq!(pit.memory, first + records);
    pit.remove(id);
    assert_eq!(pit.memory, ByteSize::ZERO);
}

/// Room for one entry with an Interest of 100 octets, but not for one octet more; and for 64 entries, whatever they take.
/// Local Interests find room for one entry more, and for a 64th part more of memory.
#[test]
fn both_bounds_make_the_table_full() {
    let hasher = NameHasher::new(HashKey::FIXED);
    let mut pit = Pit::new(64, ENTRY + buffer(100));
    assert_eq!(pit.shortage(true, 100, false), None);
    assert_eq!(pit.shortage(true, 101, false), Some(Shortage::Memory));
    let reserve = pit.max_memory.as_bytes().div_ceil(64) as usize;
    assert_eq!(pit.shortage(true, 100 + reserve, true), None);
    assert_eq!(
        pit.shortage(true, 101 + reserve, true),
        Some(Shortage::Memory)
    );
    pit.max_memory = ByteSize::mebibytes(1);
    for number in 0..65 {
        let expected = (number == 64).then_some(Shortage::Entries);
        assert_eq!(pit.shortage(true, 100, false), expected);
        assert_eq!(pit.shortage(true, 100, true), None);
        let interest = Interest::builder(name(&format!("/{number}"))).build(Nonce::from(1));
        let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
        insert(&mut pit, &interest, &hashes);
    }
    assert_eq!(pit.shortage(true, 0, true), Some(Shortage::Entries));
    assert_eq!(pit.shortage(false, 100, false), None);
    pit.max_memory = pit.memory + buffer(100);
    assert_eq!(pit.shortage(false, 100, false), None);
    assert_eq!(pit.shortage(false, 101, false), Some(Shortage::Memory));
}

fn sent(face: u64, at: u64) -> OutRecord {
    OutRecord {
        non_discovery: false,
        face: FaceId::from_number(face),
        nonce: Nonce::from(1),
        sent_at: Instant::from_nanos(at),
        expiry: Instant::from_nanos(at + 100),
        nack: None,
        suppression: Duration::from_millis(10),
    }
}

#[test]
fn a_renewed_out_record_waits_longer_and_an_expired_one_starts_anew() {
    let (mut pit, hasher) = pit();
    let interest = Interest::builder(name("/a")).build(Nonce::from(1));
    let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
    let id = insert(&mut pit, &interest, &hashes);
    let mut intervals = Vec::new();
    for at in [0, 50, 149, 249] {
        pit.record_sent(id, sent(300, at), |interval| interval * 2);
        intervals.push(pit.get(id).out_records[0].suppression.as_millis());
    }
    assert_eq!(intervals, [10, 20, 40, 10]);
    assert_eq!(pit.get(id).out_records.len(), 1);
}

/// Against a list of what each downstream asked: a downstream waits as long as its longest Interest, the entry as long as any of them.
#[test]
fn records_expire_with_the_longest_interest_of_a_naive_twin() {
    let mut random = Random::from_seed(43);
    let (mut pit, hasher) = pit();
    let interest = Interest::builder(name("/a")).build(Nonce::from(1));
    let hashes = hasher.hashes(interest.name(), MAX_COMPONENTS).unwrap();
    let id = insert(&mut pit, &interest, &hashes);
    let shares = [300, 301, 302].map(|face| pit.add_face(FaceId::from_number(face)));
    let mut asked: Vec<(u64, u64)> = Vec::new();
    for _ in 0..20_000 {
        let at = usize::try_from(random.below(3)).unwrap();
        let (face, expiry) = (300 + at as u64, random.below(1_000));
        if random.chance(0.2) {
            let left = pit.take_in_record(id, FaceId::from_number(face));
            assert_eq!(left.is_some(), asked.iter().any(|it| it.0 == face));
            asked.retain(|it| it.0 != face);
        } else {
            let share = shares[at];
            pit.record_received(id, record(face, interest.wire(), expiry), share);
            asked.push((face, expiry));
        }
        let longest = |face: u64| {
            let of = asked.iter().filter(|it| it.0 == face);
            of.map(|it| it.1).max().map(Instant::from_nanos)
        };
        for face in 300..303 {
            let record = pit.get(id).in_record(FaceId::from_number(face));
            assert_eq!(record.map(|it| it.expiry), longest(face));
        }
        let last = asked.iter().map(|it| it.1).max().unwrap_or(0);
        assert_eq!(pit.get(id).expiry, Instant::from_nanos(last));
    }
}
