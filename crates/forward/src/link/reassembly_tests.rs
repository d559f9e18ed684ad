use core::time::Duration;

use super::*;

fn reassembler() -> Reassembler {
    let config = ReassemblyConfig {
        timeout: Duration::from_millis(500),
        max_packets: 3,
        max_octets: ByteSize::bytes(1_000),
    };
    Reassembler::new(config, 10)
}

/// Piece `index` of `count`, `length` octets that all hold the index.
fn piece(first_sequence: u64, index: u64, count: u64, length: usize) -> LpPacket {
    LpPacket {
        sequence: Some(first_sequence.wrapping_add(index)),
        fragment_index: index,
        fragment_count: Some(count),
        congestion_mark: u64::from(index == 0),
        fragment: Some(Bytes::from(vec![index as u8; length])),
        ..LpPacket::default()
    }
}

type Outcome = Result<Option<LpPacket>, DropReason>;

fn handle(this: &mut Reassembler, at_millis: u64, packet: LpPacket) -> (Outcome, u64) {
    let mut evicted = 0;
    let now = Instant::ZERO + Duration::from_millis(at_millis);
    let result = this.handle_fragment(now, packet, ByteSize::bytes(100), &mut evicted);
    (result, evicted)
}

#[test]
fn pieces_join_in_order_of_index_across_the_end_of_sequences() {
    let mut this = reassembler();
    let start = u64::MAX - 1;
    for index in [2, 0, 3] {
        assert_eq!(
            handle(&mut this, 0, piece(start, index, 4, 2)),
            (Ok(None), 0)
        );
    }
    let (whole, _) = handle(&mut this, 0, piece(start, 1, 4, 2));
    let whole = whole.unwrap().unwrap();
    assert_eq!(
        whole.fragment.as_deref(),
        Some(&[0, 0, 1, 1, 2, 2, 3, 3][..])
    );
    assert_eq!(
        (whole.congestion_mark, whole.sequence, whole.fragment_count),
        (1, None, None)
    );
    assert_eq!((this.held, this.poll_timeout()), (ByteSize::ZERO, None));
}

#[test]
fn pieces_that_make_no_sense_are_refused_and_harm_nothing() {
    let mut this = reassembler();
    assert_eq!(handle(&mut this, 0, piece(0, 0, 3, 2)).0, Ok(None));
    assert_eq!(
        handle(&mut this, 0, piece(0, 0, 3, 2)).0,
        Err(DropReason::DuplicateFragment)
    );
    assert_eq!(
        handle(&mut this, 0, piece(0, 1, 4, 2)).0,
        Err(DropReason::BadFragment)
    );
    assert_eq!(
        handle(&mut this, 0, piece(0, 0, 11, 2)).0,
        Err(DropReason::BadFragment)
    );
    assert_eq!(
        handle(&mut this, 0, piece(50, 3, 3, 2)).0,
        Err(DropReason::BadFragment)
    );
    let unnumbered = LpPacket {
        sequence: None,
        ..piece(0, 1, 3, 2)
    };
    assert_eq!(
        handle(&mut this, 0, unnumbered).0,
        Err(DropReason::BadFragment)
    );
    assert_eq!(handle(&mut this, 0, piece(0, 1, 3, 2)).0, Ok(None));
    assert!(handle(&mut this, 0, piece(0, 2, 3, 2)).0.unwrap().is_some());
    assert!(this.partials.is_empty());
}

#[test]
fn a_packet_larger_than_any_is_given_up_as_soon_as_that_shows() {
    let mut this = reassembler();
    assert_eq!(handle(&mut this, 0, piece(0, 0, 3, 8_000)).0, Ok(None));
    assert_eq!(handle(&mut this, 0, piece(0, 1, 3, 800)).0, Ok(None));
    assert_eq!(
        handle(&mut this, 0, piece(0, 2, 3, 1)).0,
        Err(DropReason::PacketTooLarge)
    );
    assert_eq!((this.held, this.partials.len()), (ByteSize::ZERO, 0));
}

#[test]
fn the_one_that_waited_longest_gives_way() {
    let mut this = reassembler();
    for (at, start) in [(0, 0), (1, 10), (2, 20)] {
        assert_eq!(handle(&mut this, at, piece(start, 0, 5, 1)), (Ok(None), 0));
    }
    // The first is heard of again, so the second is the oldest.
    assert_eq!(handle(&mut this, 3, piece(0, 1, 5, 1)), (Ok(None), 0));
    assert_eq!(handle(&mut this, 4, piece(30, 0, 5, 1)), (Ok(None), 1));
    assert_eq!(
        this.partials.keys().copied().collect::<Vec<_>>(),
        [0, 20, 30]
    );
    // Ten frames of 100 octets fit; the eleventh pushes out packet 0, by then silent for longest, with its four.
    for (index, start) in [(2, 0), (3, 0), (1, 30), (2, 30), (3, 30)] {
        assert_eq!(
            handle(&mut this, 5, piece(start, index, 5, 1)),
            (Ok(None), 0)
        );
    }
    assert_eq!(this.held, ByteSize::bytes(900));
    assert_eq!(
        handle(&mut this, 6, piece(20, 1, 6, 1)).0,
        Err(DropReason::BadFragment)
    );
    assert_eq!(handle(&mut this, 6, piece(20, 1, 5, 1)), (Ok(None), 0));
    assert_eq!(handle(&mut this, 7, piece(20, 2, 5, 1)), (Ok(None), 1));
    assert_eq!(this.held, ByteSize::bytes(700));
}

#[test]
fn silence_of_exactly_the_timeout_ends_a_packet() {
    let mut this = reassembler();
    handle(&mut this, 0, piece(0, 0, 3, 1)).0.unwrap();
    handle(&mut this, 100, piece(0, 1, 3, 1)).0.unwrap();
    let due = Instant::ZERO + Duration::from_millis(600);
    assert_eq!(this.poll_timeout(), Some(due));
    assert_eq!(
        this.handle_timeout(due.saturating_sub(Duration::from_nanos(1))),
        0
    );
    assert_eq!(this.handle_timeout(due), 1);
    assert_eq!((this.poll_timeout(), this.held), (None, ByteSize::ZERO));
}
