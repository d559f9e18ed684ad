use namecast_packet::signature::NullSigner;
use namecast_units::Random;

use super::*;
use crate::names::SegmentKind;

fn segments(count: usize, content: usize) -> Segments {
    let packet = |_| {
        Data::builder("/a/b".parse().unwrap())
            .content(vec![7; content])
            .sign(&NullSigner)
    };
    Segments {
        data: (0..count).map(packet).collect(),
        parity: Vec::new(),
        copies: Default::default(),
        inter_frame: Default::default(),
    }
}

fn id(class: SampleClass, sequence: u64, index: u64) -> SegmentId {
    SegmentId {
        class,
        sequence,
        kind: SegmentKind::Data,
        index,
    }
}

fn cache(size: u64, age: Duration) -> SegmentCache {
    SegmentCache::new(CacheConfig {
        size: ByteSize::bytes(size),
        age,
    })
}

#[test]
fn a_lookup_tells_a_missing_sample_from_a_missing_segment() {
    let mut cache = cache(1 << 20, Duration::MAX);
    let two = segments(2, 10);
    cache.insert(Instant::ZERO, (SampleClass::Key, 5), two.clone());
    assert_eq!(
        cache.get(&id(SampleClass::Key, 5, 1)),
        Lookup::Found(&two.data[1])
    );
    assert_eq!(
        cache.get(&id(SampleClass::Key, 5, 2)),
        Lookup::NoSuchSegment
    );
    assert_eq!(
        cache.get(&id(SampleClass::Key, 5, u64::MAX)),
        Lookup::NoSuchSegment
    );
    let parity = SegmentId {
        kind: SegmentKind::Parity,
        ..id(SampleClass::Key, 5, 0)
    };
    assert_eq!(cache.get(&parity), Lookup::NoSuchSegment);
    assert_eq!(cache.get(&id(SampleClass::Delta, 5, 0)), Lookup::Absent);
    assert_eq!(cache.get(&id(SampleClass::Key, 4, 0)), Lookup::Absent);
}

#[test]
fn a_sample_is_kept_up_to_its_age_and_dropped_beyond() {
    let mut cache = cache(1 << 20, Duration::from_nanos(10));
    let at = Instant::from_nanos;
    cache.insert(at(0), (SampleClass::Key, 0), segments(1, 1));
    cache.insert(at(10), (SampleClass::Key, 1), segments(1, 1));
    assert_eq!(cache.len(), 2);
    cache.insert(at(11), (SampleClass::Key, 2), segments(1, 1));
    assert_eq!(cache.len(), 2);
    assert_eq!(cache.get(&id(SampleClass::Key, 0, 0)), Lookup::Absent);
}

#[test]
fn size_is_bounded_exactly() {
    let one = memory(&segments(1, 100)).as_bytes();
    let mut cache = cache(3 * one, Duration::MAX);
    for sequence in 0..3 {
        cache.insert(
            Instant::ZERO,
            (SampleClass::Delta, sequence),
            segments(1, 100),
        );
    }
    assert_eq!((cache.len(), cache.size().as_bytes()), (3, 3 * one));
    // One octet more drops the oldest.
    cache.insert(Instant::ZERO, (SampleClass::Delta, 3), segments(1, 101));
    assert_eq!((cache.len(), cache.size().as_bytes()), (2, 2 * one + 1));
    // A sample that does not fit alone is not kept, nor is anything else: it was the newest.
    cache.insert(Instant::ZERO, (SampleClass::Delta, 4), segments(9, 100));
    assert_eq!((cache.len(), cache.size()), (0, ByteSize::ZERO));
}

/// 10⁵ samples go through: memory never exceeds its bound, and what is kept is what a plain list keeps.
#[test]
fn a_long_stream_stays_within_its_bounds() {
    let mut random = Random::from_seed(4);
    let (bound, age) = (100_000, Duration::from_nanos(400));
    let mut cache = cache(bound, age);
    let mut list: VecDeque<(Instant, u64, u64)> = VecDeque::new();
    let sizes = [segments(1, 10), segments(3, 300), segments(12, 1_000)];
    let mut now = Instant::ZERO;
    for sequence in 0..100_000 {
        now += Duration::from_nanos(random.below(20));
        let segments = &sizes[usize::try_from(random.below(3)).unwrap()];
        cache.insert(now, (SampleClass::Delta, sequence), segments.clone());
        list.push_back((now, sequence, memory(segments).as_bytes()));
        let total =
            |list: &VecDeque<(Instant, u64, u64)>| list.iter().map(|(_, _, m)| m).sum::<u64>();
        while list.front().is_some_and(|(at, ..)| now.since(*at) > age) || total(&list) > bound {
            list.pop_front();
        }
        assert_eq!(cache.len(), list.len());
        assert_eq!(cache.size().as_bytes(), total(&list));
        assert_eq!(cache.order.len(), list.len());
        if let Some((_, oldest, _)) = list.front() {
            assert!(matches!(
                cache.get(&id(SampleClass::Delta, *oldest, 0)),
                Lookup::Found(_)
            ));
        }
    }
    assert!(!cache.is_empty());
}
