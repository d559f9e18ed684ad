use namecast_packet::Data;
use namecast_packet::signature::NullSigner;
use namecast_units::Random;

use super::*;

fn header() -> SampleHeader {
    SampleHeader {
        captured_at: Timestamp::from_micros(0x1_0000_0000),
        composition_offset: Duration::ZERO,
        encoded_after: Duration::from_micros(7),
        published_after: Duration::from_micros(300),
        position: 9,
        other_sequence: 70_000,
        payload_size: 5,
        shard_size: None,
        parity_count: 0,
        asked: None,
        seal: None,
    }
}

/// N = 3, P = 1 with shards of 4: the lead holds 10 − 2 · 4 = 2.
fn segmented() -> SampleHeader {
    SampleHeader {
        payload_size: 10,
        shard_size: Some(4),
        parity_count: 1,
        asked: Some(Asked {
            waited_for: Duration::from_micros(256),
            nonce: Nonce([1, 2, 3, 4]),
        }),
        ..header()
    }
}

fn digests(count: u8) -> Digests {
    (0..count).map(|n| PacketDigest::from([n; 16])).collect()
}

fn decode(header: &SampleHeader, digests: &Digests, share: &[u8]) -> Result<Lead, SampleError> {
    Lead::decode_content(&encode_lead(header, digests, share))
}

#[test]
fn a_lead_alone_is_encoded_as_worked_by_hand() {
    #[rustfmt::skip]
    let expected = [
        128, 29,
            130, 8, 0, 0, 0, 1, 0, 0, 0, 0, 132, 1, 7, 134, 2, 1, 44,
            136, 1, 9, 138, 4, 0, 1, 0x11, 0x70, 140, 1, 5,
        // Digests are there even if empty: without them, this payload would look like them.
        150, 0,
        150, b'a', b'b', b'c', b'd',
    ];
    let lead = encode_lead(&header(), &Digests::default(), b"\x96abcd");
    assert_eq!(lead[..], expected[..]);
    assert_eq!(header().encoded_size(), 31);
    let read = Lead::decode_content(&lead).unwrap();
    assert_eq!(
        (read.header(), &read.share()[..]),
        (&header(), &b"\x96abcd"[..])
    );
    assert_eq!(
        (read.data_count(), read.parity_count(), read.shard_size()),
        (1, 0, 5)
    );
}

#[test]
fn a_lead_of_several_is_encoded_as_worked_by_hand() {
    let lead = encode_lead(&segmented(), &digests(3), b"ab");
    #[rustfmt::skip]
    let tail = [
            140, 1, 10, 142, 1, 4, 144, 1, 1, 146, 2, 1, 0, 148, 4, 1, 2, 3, 4,
        150, 48,
    ];
    assert_eq!(lead[28..49], tail);
    let read = Lead::decode_content(&lead).unwrap();
    assert_eq!(read.header(), &segmented());
    assert_eq!(
        (read.data_count(), read.parity_count(), read.shard_size()),
        (3, 1, 4)
    );
    let digest = |kind, index| read.digest(kind, index).map(|digest| digest.as_bytes()[0]);
    assert_eq!(digest(SegmentKind::Data, 0), None);
    assert_eq!(digest(SegmentKind::Data, 1), Some(0));
    assert_eq!(digest(SegmentKind::Data, 2), Some(1));
    assert_eq!(digest(SegmentKind::Data, 3), None);
    assert_eq!(digest(SegmentKind::Parity, 0), Some(2));
    assert_eq!(digest(SegmentKind::Parity, 1), None);
    assert_eq!(digest(SegmentKind::Parity, u64::MAX), None);
}

#[test]
fn the_largest_header_has_the_size_that_bounds_assume() {
    let largest = SampleHeader {
        captured_at: Timestamp::from_micros(u64::MAX),
        composition_offset: MAX_COMPOSITION_OFFSET,
        encoded_after: Duration::MAX,
        published_after: Duration::MAX,
        position: u64::MAX,
        other_sequence: u64::MAX,
        payload_size: MAX_PAYLOAD_SIZE,
        shard_size: Some(MAX_SHARD_SIZE),
        parity_count: MAX_SEGMENTS,
        asked: Some(Asked {
            waited_for: Duration::MAX,
            nonce: Nonce([0; 4]),
        }),
        seal: Some(Seal {
            start: [0xff; 4],
            generation: u64::MAX,
            step: 1_023,
        }),
    };
    assert_eq!(
        largest.encoded_size(),
        2 + 5 * 10 + 6 + 4 + 4 + 10 + 6 + 6 + 16
    );
    assert!(largest.encoded_size() <= 111);
}

#[test]
fn a_lead_vouches_for_its_segments_and_no_others() {
    let segment = |content: &'static str| {
        Data::builder("/a/seg=1".parse().unwrap())
            .content(content)
            .sign(&NullSigner)
    };
    let packets = [segment("efgh"), segment("ijkl"), segment("PPPP")];
    let lead = decode(&segmented(), &Digests::from_packets(&packets), b"ab").unwrap();
    assert!(lead.vouches_for(SegmentKind::Data, 1, &packets[0]));
    assert!(lead.vouches_for(SegmentKind::Data, 2, &packets[1]));
    assert!(lead.vouches_for(SegmentKind::Parity, 0, &packets[2]));
    assert!(!lead.vouches_for(SegmentKind::Data, 2, &packets[0]));
    assert!(!lead.vouches_for(SegmentKind::Data, 0, &packets[0]));
    assert!(!lead.vouches_for(SegmentKind::Data, 1, &segment("efgX")));
    // A signer who digests a segment of the wrong size gains nothing.
    let short = [segment("efg"), segment("ijkl"), segment("PPPP")];
    let lead = decode(&segmented(), &Digests::from_packets(&short), b"ab").unwrap();
    assert!(!lead.vouches_for(SegmentKind::Data, 1, &short[0]));
}

#[test]
fn sizes_and_counts_that_lie_are_refused_by_name() {
    type Change = fn(&mut SampleHeader);
    let refused = |change: Change, digests: &Digests, share: &[u8]| {
        let mut header = segmented();
        change(&mut header);
        decode(&header, digests, share).unwrap_err()
    };
    let three = digests(3);
    assert!(decode(&segmented(), &three, b"ab").is_ok());
    let share = |expected, got| SampleError::Share { expected, got };
    let parity = |parity, digests| SampleError::ParityCount { parity, digests };
    assert_eq!(refused(|_| {}, &three, b"abc"), share(2, 3));
    assert_eq!(refused(|_| {}, &three, b""), share(2, 0));
    assert_eq!(refused(|h| h.payload_size = 7, &three, b""), share(-1, 0));
    // The lead's share may be as long as a shard, not longer.
    let mut full = segmented();
    full.payload_size = 12;
    assert!(decode(&full, &three, b"abcd").is_ok());
    assert_eq!(
        refused(|h| h.payload_size = 13, &three, b"abcde"),
        share(5, 5)
    );
    assert_eq!(refused(|h| h.parity_count = 4, &three, b"ab"), parity(4, 3));
    assert_eq!(refused(|h| h.parity_count = 3, &three, b"ab"), parity(3, 3));
    assert_eq!(
        refused(|h| h.shard_size = None, &three, b"ab"),
        parity(1, 3)
    );
    assert_eq!(
        refused(|h| h.parity_count = 481, &three, b"ab"),
        parity(481, 0)
    );
    assert_eq!(
        refused(|h| h.shard_size = Some(0), &three, b"ab"),
        SampleError::ShardSize(0)
    );
    assert_eq!(
        refused(|h| h.shard_size = Some(8_001), &three, b"ab"),
        SampleError::ShardSize(8_001)
    );
    assert_eq!(
        refused(|h| h.payload_size = MAX_PAYLOAD_SIZE + 1, &three, b"ab"),
        SampleError::PayloadTooLarge(3_840_001)
    );
    assert_eq!(refused(|_| {}, &Digests::default(), b"ab"), parity(1, 0));
}

#[test]
fn the_number_of_segments_is_bounded() {
    let mut header = segmented();
    let many = |count| core::iter::repeat_n(PacketDigest::from([7; 16]), count).collect();
    header.payload_size = 2 + 478 * 4;
    assert!(decode(&header, &many(479), b"ab").is_ok());
    assert_eq!(
        decode(&header, &many(480), b"ab"),
        Err(SampleError::TooManySegments(480))
    );
}

#[test]
fn a_missing_field_is_named() {
    let content = Bytes::from_static(&[128, 3, 130, 1, 5]);
    let expected = DecodeError::new("EncodedAfter", 0, Problem::Missing);
    assert_eq!(Lead::decode_content(&content), Err(expected.into()));
    let expected = DecodeError::new("SampleHeader", 0, Problem::Missing);
    assert_eq!(Lead::decode_content(&Bytes::new()), Err(expected.into()));
    let mut writer = Writer::default();
    header().encode(&mut writer);
    let expected = DecodeError::new("Digests", 31, Problem::Missing);
    assert_eq!(Lead::decode_content(&writer.finish()), Err(expected.into()));
    let bare = Data::builder("/a".parse().unwrap()).sign(&NullSigner);
    assert_eq!(Lead::decode(&bare), Err(SampleError::Empty));
}

/// Damaged leads are refused, or obey every relation that consumers rely on.
#[test]
fn damaged_leads_never_panic_and_never_lie() {
    let mut random = Random::from_seed(23);
    let good = encode_lead(&segmented(), &digests(3), b"ab");
    let mut accepted = 0;
    for _ in 0..50_000 {
        let mut content = good.to_vec();
        for _ in 0..=random.below(3) {
            let at = usize::try_from(random.below(content.len() as u64)).unwrap();
            content[at] = random.next_u64() as u8;
        }
        content.truncate(usize::try_from(random.below(4 * good.len() as u64)).unwrap());
        let Ok(lead) = Lead::decode_content(&content.into()) else {
            continue;
        };
        accepted += 1;
        assert!((1..=MAX_SEGMENTS).contains(&(lead.data_count() + lead.parity_count())));
        assert!(lead.shard_size() <= MAX_PAYLOAD_SIZE);
        let followers = (lead.data_count() - 1) * lead.shard_size();
        assert_eq!(followers + lead.share().len(), lead.header().payload_size);
    }
    assert!(accepted > 1_000, "only {accepted} reached the checks");
}

/// 80 000 µs are 0x13880: four octets, as lengths are powers of two. Without an offset the element is absent.
#[test]
fn the_composition_offset_is_there_where_pictures_are_reordered() {
    let reordered = SampleHeader {
        composition_offset: Duration::from_millis(80),
        ..header()
    };
    let mut writer = Writer::default();
    reordered.encode(&mut writer);
    let octets = writer.finish();
    assert!(octets.ends_with(&[198, 4, 0, 1, 0x38, 0x80]));
    assert_eq!(octets.len(), header().encoded_size() + 6);
    let lead = decode(&reordered, &digests(0), b"12345").unwrap();
    assert_eq!(*lead.header(), reordered);
    let presented_at = reordered.captured_at + Duration::from_millis(80);
    assert_eq!(lead.header().presented_at(), presented_at);
    let absurd = SampleHeader {
        composition_offset: Duration::from_micros(10_000_001),
        ..header()
    };
    assert_eq!(
        decode(&absurd, &digests(0), b"12345"),
        Err(SampleError::CompositionOffset(10_000_001))
    );
}

/// A reader that knows nothing of seals must not pass sealed octets to its decoder: the element's type is odd, and so critical.
#[test]
fn sealed_samples_name_their_key() {
    let sealed = SampleHeader {
        seal: Some(Seal {
            start: [1, 2, 3, 4],
            generation: 258,
            step: 5,
        }),
        ..header()
    };
    let read = decode(&sealed, &Digests::default(), b"abcde").unwrap();
    assert_eq!(*read.header(), sealed);
    let content = encode_lead(&sealed, &Digests::default(), b"abcde");
    let element = [201, 8, 1, 2, 3, 4, 0, 5, 1, 2];
    let at = content.windows(10).position(|it| it == element).unwrap();
    assert_eq!(SEAL % 2, 1);
    // Step 1029 is none.
    let mut wrong = content.to_vec();
    wrong[at + 6] = 4;
    let error = Lead::decode_content(&wrong.into()).unwrap_err();
    let SampleError::Malformed(error) = error else {
        panic!("{error}");
    };
    assert_eq!((error.field, error.problem), ("Seal", Problem::Malformed));
}
