use core::time::Duration;

use namecast_packet::signature::Ed25519Signer;
use namecast_packet::{KeyLocator, Name, Nonce};
use namecast_units::Random;

use super::*;
use crate::names::StreamNames;
use crate::sample::Lead;

/// Datagrams that WebTransport carries whole, with room to spare.
const DATAGRAM: usize = 1_200;

fn signer(root: &str) -> Ed25519Signer {
    let root: Name = root.parse().unwrap();
    let key = root.builder().generic("KEY").generic("12345678").finish();
    Ed25519Signer::from_seed([7; 32], KeyLocator::Name(key))
}

fn segmenter(segment_size: usize, parity_percent: usize) -> Segmenter {
    let config = SegmenterConfig {
        segment_size,
        parity_percent,
    };
    let names = StreamNames::new("/demo".parse().unwrap()).rung("video", "3M");
    Segmenter::new(names, config)
}

/// A sample as one in the year 2027: sequence numbers have four octets.
fn sample(size: usize) -> Sample {
    let mut payload = vec![0; size];
    Random::from_seed(size as u64).fill(&mut payload);
    Sample {
        class: SampleClass::Delta,
        sequence: 2_000_000_000,
        other_sequence: 66_000_000,
        position: 2_000_000_000,
        captured_at: Timestamp::from_micros(1_800_000_000_000_000),
        composition_offset: Duration::ZERO,
        encoded_at: Timestamp::from_micros(1_800_000_000_012_000),
        payload: payload.into(),
        seal: None,
    }
}

fn stamp() -> Stamp {
    Stamp {
        published_at: Timestamp::from_micros(1_800_000_000_013_000),
        asked: Some(Asked {
            waited_for: Duration::from_millis(90),
            nonce: Nonce([1, 2, 3, 4]),
        }),
    }
}

fn cut(segmenter: &Segmenter, size: usize) -> Segments {
    let segments = segmenter.segment(&sample(size), stamp(), &signer("/demo"));
    segments.unwrap()
}

/// What a consumer gets from `segments`, having checked every digest.
fn reassembled(segments: &Segments) -> Vec<u8> {
    let lead = Lead::decode(&segments.data[0]).unwrap();
    assert_eq!(lead.data_count(), segments.data.len());
    assert_eq!(lead.parity_count(), segments.parity.len());
    let mut payload = lead.share().to_vec();
    for (index, data) in (0..).zip(&segments.data).skip(1) {
        assert!(lead.vouches_for(SegmentKind::Data, index, data));
        payload.extend(data.content().unwrap());
    }
    for (index, data) in (0..).zip(&segments.parity) {
        assert!(lead.vouches_for(SegmentKind::Parity, index, data));
    }
    payload
}

#[test]
fn every_size_comes_back_whole_and_keeps_to_its_bounds() {
    for (segment_size, percent) in [(256, 20), (257, 100), (1_000, 20), (1_001, 0), (8_000, 33)] {
        let segmenter = segmenter(segment_size, percent);
        let mut random = Random::from_seed(segment_size as u64);
        let random = (0..60).map(|_| usize::try_from(random.below(60_000)).unwrap());
        for size in (0..=4).chain(850..=1_100).step_by(3).chain(random) {
            let segments = cut(&segmenter, size);
            assert_eq!(
                reassembled(&segments),
                sample(size).payload,
                "{segment_size} {size}"
            );
            let content = |data: &Data| data.content().unwrap().len();
            let mut followers = segments.iter().skip(1);
            assert!(followers.all(|data| content(data) <= segment_size));
            let digests = segments.data.len() + segments.parity.len() - 1;
            if digests * 16 + 100 <= segment_size {
                assert!(content(&segments.data[0]) <= segment_size, "{size}");
            }
            let n = segments.data.len();
            let parity = if n == 1 {
                0
            } else {
                (n * percent).div_ceil(100)
            };
            assert_eq!(segments.parity.len(), parity, "{segment_size} {size}");
        }
    }
}

/// A packet more than needed would be a round of Interests more.
#[test]
fn no_segment_more_than_needed() {
    let segmenter = segmenter(1_000, 20);
    // Header: 2 + 10 + 4 + 4 + 6 + 6 + PayloadSize 4 + WaitedFor 6 + InterestNonce 6 octets; empty Digests: 2.
    let alone = 1_000 - 48 - 2;
    assert_eq!(cut(&segmenter, alone).data.len(), 1);
    assert_eq!(cut(&segmenter, alone + 1).data.len(), 2);
    // Twelve followers of 1000 and a lead beside 15 digests of 16 octets (12 500 B at N = 13, P = 3).
    let segments = cut(&segmenter, 12_500);
    assert_eq!((segments.data.len(), segments.parity.len()), (13, 3));
    let segments = cut(&segmenter, 4_167);
    assert_eq!((segments.data.len(), segments.parity.len()), (5, 1));
}

#[test]
fn only_the_lead_is_signed_and_its_signature_is_right() {
    use namecast_packet::SignatureType;
    use namecast_packet::signature::KeyPair;
    let segments = cut(&segmenter(1_000, 20), 5_000);
    let key = signer("/demo").public_key();
    assert_eq!(segments.data[0].verify(&key), Ok(()));
    for data in segments.iter().skip(1) {
        assert_eq!(data.signature_info().signature_type, SignatureType::Null);
        assert!(data.signature_value().is_empty());
        assert!(data.freshness().is_zero());
        assert_eq!(Data::decode(data.wire().clone()).as_ref(), Ok(data));
    }
}

#[test]
fn parity_of_the_packets_gives_lost_ones_back() {
    let segments = cut(&segmenter(1_000, 20), 12_500);
    let lead = Lead::decode(&segments.data[0]).unwrap();
    let mut data: Vec<_> = segments.data.iter().map(Data::content).collect();
    data[0] = Some(lead.share().clone());
    let whole = data.clone();
    (data[3], data[7], data[12]) = (None, None, None);
    let parity: Vec<_> = segments.parity.iter().map(Data::content).collect();
    let recovered = fec::recover(&data, &parity, lead.shard_size()).unwrap();
    assert!(
        recovered
            .iter()
            .map(Some)
            .eq(whole.iter().map(Option::as_ref))
    );
}

#[test]
fn the_stamp_and_the_times_are_in_the_header() {
    let segments = cut(&segmenter(1_000, 20), 3_000);
    let lead = Lead::decode(&segments.data[0]).unwrap();
    let header = lead.header();
    assert_eq!(header.encoded_after, Duration::from_millis(12));
    assert_eq!(header.published_after, Duration::from_millis(13));
    assert_eq!(header.asked, stamp().asked);
    assert_eq!(header.payload_size, 3_000);
    assert_eq!(
        segments.parity[0].name().to_string(),
        "/demo/video/3M/delta/seq=2000000000/parity/seg=0"
    );
}

/// N + ⌈N/5⌉ ≤ 480 holds up to N = 400: 399 followers of 1000 octets, and what the lead has room for beside 479 digests
/// of 16 octets, the 4 before them, and a header of 48 + 2 (larger PayloadSize) + 4 + 4 (ShardSize, ParityCount).
#[test]
fn the_largest_sample_is_cut_and_one_octet_more_is_refused_with_the_sizes() {
    let segmenter = segmenter(1_000, 20);
    let largest = 399 * 1_000 + 8_000 - 479 * 16 - 4 - 58;
    let segments = cut(&segmenter, largest);
    assert_eq!((segments.data.len(), segments.parity.len()), (400, 80));
    assert!(segments.data[0].wire().len() <= MAX_PACKET_SIZE);
    assert_eq!(reassembled(&segments), sample(largest).payload);
    let refused = segmenter.segment(&sample(largest + 1), stamp(), &signer("/demo"));
    assert_eq!(
        refused,
        Err(SegmentError::TooLarge {
            payload: largest + 1,
            largest,
            segment_size: 1_000
        })
    );
}

#[test]
fn names_that_make_packets_too_large_are_refused() {
    let root = format!("/{}", "x".repeat(900));
    let names = StreamNames::new(root.parse().unwrap()).rung("video", "3M");
    let config = SegmenterConfig {
        segment_size: 8_000,
        parity_percent: 0,
    };
    let refused = Segmenter::new(names, config).segment(&sample(15_000), stamp(), &signer(&root));
    assert!(matches!(
        refused,
        Err(SegmentError::PacketTooLarge(8_801..))
    ));
}

/// Octets beside payload and parity shards: names, headers, digests, the lead's header and signature. Parity's shards are
/// not overhead but redundancy; what wraps them is.
///
/// Of all packets, and of the data segments alone, whose lead also carries the digests of parity.
fn overhead(segments: &Segments, payload: usize) -> [usize; 2] {
    let wire = |packets: &[Data]| packets.iter().map(|data| data.wire().len()).sum::<usize>();
    let content = |data: &Data| data.content().unwrap().len();
    let shards: usize = segments.parity.iter().map(content).sum();
    let data = wire(&segments.data) - payload;
    [data + wire(&segments.parity) - shards, data]
}

/// Samples of 3 Mbit/s and 1 Mbit/s at 30 a second: 12 500 octets in 13 + 3 segments, 4 167 in 5 + 1.
///
/// A follower costs 56 octets: Data 4, Name 41, Content 4, SignatureInfo 5, SignatureValue 2; its digest 16 more. A lead
/// costs 41 + 4 + 4 for Name, Data and Content, 29 + 66 for key name and signature, 54 or 58 for its header, 2 to 4 before digests.
#[test]
fn overhead_per_segment_is_at_most_120_octets_and_every_packet_fits_a_datagram() {
    for (size, exact) in [(12_500, [1_288, 1_114]), (4_167, [564, 506])] {
        let segments = cut(&segmenter(1_000, 20), size);
        let octets = overhead(&segments, size);
        assert_eq!(octets, exact, "{size}");
        let data = segments.data.len();
        for (octets, count) in octets.into_iter().zip([data + segments.parity.len(), data]) {
            assert!(octets <= 120 * count, "{size}: {octets} in {count}");
        }
        assert!(segments.iter().all(|data| data.wire().len() <= DATAGRAM));
    }
    // A follower that is full.
    let full = cut(&segmenter(1_000, 20), 399_000);
    assert_eq!(full.data[1].content().unwrap().len(), 1_000);
    assert_eq!(full.data[1].wire().len(), 1_056);
}

/// Of 4167 octets there are five segments and one of parity. Followers have some 50 octets of headers; filled up, each has 230, and the lead,
/// whose digests and signature are headers as well, is what it was.
#[test]
fn packets_are_filled_up_to_the_headers_of_another_format() {
    let plain = cut(&segmenter(1_000, 20), 4_167);
    let filled = cut(&segmenter(1_000, 20).with_headers(230), 4_167);
    assert_eq!((filled.data.len(), filled.parity.len()), (5, 1));
    let headers = |data: &Data| data.wire().len() - data.content().unwrap().len();
    for (plain, filled) in plain.iter().zip(filled.iter()).skip(1) {
        assert!((40..70).contains(&headers(plain)), "{}", headers(plain));
        assert_eq!(headers(filled), 230);
        assert_eq!(Data::decode(filled.wire().clone()).as_ref(), Ok(filled));
    }
    assert_eq!(plain.data[0].wire().len(), filled.data[0].wire().len());
    assert_eq!(reassembled(&filled), sample(4_167).payload);
}

#[test]
fn a_picture_that_is_shown_far_too_late_is_refused() {
    let late = Sample {
        composition_offset: Duration::from_micros(10_000_001),
        ..sample(100)
    };
    let cut = segmenter(1_000, 0).segment(&late, stamp(), &signer("/demo"));
    let offset = late.composition_offset;
    assert_eq!(cut, Err(SegmentError::CompositionOffset(offset)));
}

/// 480 segments: 300 of data and 180 of parity, of which the lead may have room for nothing: 299 · 1000 octets, and so on up to
/// 299 · 8000.
#[test]
fn segments_grow_with_what_they_have_to_carry() {
    let config = SegmenterConfig {
        segment_size: 1_000,
        parity_percent: 60,
    };
    let size = |payload| Some(config.carrying(payload)?.segment_size);
    let sizes = [299_000, 299_001, 598_001, 1_500_000, 2_392_000, 2_392_001].map(size);
    let expected = [1_000, 2_000, 4_000, 8_000, 8_000].map(Some);
    assert_eq!(sizes[..5], expected);
    assert_eq!(sizes[5], None);
    let cut = segmenter(8_000, 60).segment(&sample(2_392_000), stamp(), &signer("/demo"));
    assert_eq!(cut.unwrap().data.len(), 300);
}
