use namecast_packet::LpPacket;

use super::*;
use crate::config::LinkConfig;
use crate::link::{CongestionMarking, FrameCount};

const UNLIMITED: ByteSize = ByteSize::bytes(u64::MAX);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn link(config: &FaceConfig, queue: SendQueueConfig) -> Link {
    Link::new(Arc::new(Config::default()), config, queue, 1)
}

/// A link packet with so many octets of a packet, which has a header so that marks of it can be seen.
fn packet(octets: usize) -> Bytes {
    let packet = LpPacket {
        congestion_mark: 1,
        ..LpPacket::carrying(vec![7; octets].into())
    };
    packet.encode()
}

fn sent(link: &mut Link, now: Instant) -> Vec<Bytes> {
    core::iter::from_fn(|| link.poll_frame(now, UNLIMITED)).collect()
}

/// Both ends of a link whose frames have at most 400 octets.
struct Ends {
    near: Link,
    far: Link,
}

impl Ends {
    fn new(reliability: bool, queue: SendQueueConfig) -> Self {
        let face = FaceConfig {
            mtu: Some(400),
            reliability,
            ..FaceConfig::default()
        };
        Self {
            near: link(&face, queue),
            far: link(&face, SendQueueConfig::default()),
        }
    }

    fn send(&mut self, octets: usize) -> Vec<Bytes> {
        self.near.enqueue(Instant::ZERO, packet(octets));
        sent(&mut self.near, Instant::ZERO)
    }

    fn receive(&mut self, frames: impl IntoIterator<Item = Bytes>) -> Vec<usize> {
        let frames = frames.into_iter();
        let opened = frames.filter_map(|frame| self.far.handle_frame(Instant::ZERO, frame));
        opened.map(|it| it.fragment.unwrap().len()).collect()
    }
}

/// 1000 octets take three frames of 400, of which each has room for 374.
#[test]
fn a_packet_crosses_in_pieces_and_comes_whole() {
    for reliability in [false, true] {
        let mut ends = Ends::new(reliability, SendQueueConfig::default());
        let frames = ends.send(1_000);
        assert_eq!(frames.len(), 3);
        assert!(frames.iter().all(|frame| frame.len() <= 400));
        let octets = frames.iter().map(|frame| ByteSize::of(frame)).sum();
        let expected = FrameCount { frames: 3, octets };
        assert_eq!(ends.near.counters().sent, expected);
        assert!(frames.iter().all(|frame| Link::concerns(frame)));
        assert_eq!(ends.receive(frames), [1_000]);
        assert_eq!(ends.far.counters().received, expected);
        let small = ends.send(100);
        assert_eq!(ends.receive(small), [100]);
        assert_eq!(ends.far.poll_timeout().is_some(), reliability);
        assert_eq!(ends.far.counters().drops.total(), 0);
    }
}

/// Three frames find no room for two, nor 1000 octets for 999: nothing is sent, numbered or waited for.
#[test]
fn a_packet_that_finds_no_room_is_dropped_whole_and_leaves_nothing() {
    let frames = SendQueueConfig {
        max_frames: 2,
        ..SendQueueConfig::default()
    };
    let octets = SendQueueConfig {
        max_size: ByteSize::bytes(999),
        ..SendQueueConfig::default()
    };
    for (reliability, queue) in [
        (false, frames),
        (true, frames),
        (false, octets),
        (true, octets),
    ] {
        let mut ends = Ends::new(reliability, queue);
        assert_eq!(ends.send(1_000), Vec::<Bytes>::new());
        let counters = ends.near.counters();
        assert_eq!((counters.queue_full, counters.sent.frames), (1, 0));
        assert_eq!(counters.drops.total(), 0);
        assert_eq!(
            (ends.near.next_sequence, ends.near.poll_timeout()),
            (0, None)
        );
        assert!(ends.near.is_empty());
        let frames = ends.send(600);
        assert_eq!(ends.receive(frames), [600]);
    }
}

/// The peer has acknowledged something before, or it would be taken for one that does not. Then a frame is lost, and sent again
/// by itself.
#[test]
fn what_the_link_lost_is_sent_again_where_both_ends_acknowledge() {
    let mut ends = Ends::new(true, SendQueueConfig::default());
    let first = ends.send(100);
    assert_eq!(ends.receive(first), [100]);
    ends.far.handle_timeout(at(10));
    let ack = ends.far.poll_frame(at(10), UNLIMITED).unwrap();
    assert!(Link::concerns(&ack));
    let acknowledged = ends.near.handle_frame(at(10), ack);
    assert_eq!(acknowledged.unwrap().fragment, None);
    let lost = ends.send(200);
    let due = ends.near.poll_timeout().unwrap();
    let before = due.saturating_sub(Duration::from_nanos(1));
    ends.near.handle_timeout(before);
    assert_eq!(ends.near.poll_frame(before, UNLIMITED), None);
    ends.near.handle_timeout(due);
    let again = ends.near.poll_frame(due, UNLIMITED).unwrap();
    assert_ne!(again, lost[0], "it has a number of its own");
    assert_eq!(ends.receive([again]), [200]);
    assert_eq!(ends.near.counters().reliability.retransmitted, 1);
}

#[test]
fn a_packet_that_cannot_be_cut_so_small_is_dropped() {
    let narrow = FaceConfig {
        mtu: Some(64),
        ..FaceConfig::default()
    };
    let bounds = Config {
        link: LinkConfig {
            max_fragments: 3,
            ..LinkConfig::default()
        },
        ..Config::default()
    };
    let mut link = Link::new(Arc::new(bounds), &narrow, SendQueueConfig::default(), 1);
    link.enqueue(Instant::ZERO, packet(1_000));
    assert!(link.is_empty());
    assert_eq!(link.counters().drops.get(DropReason::CannotFragment), 1);
}

/// A piece that never comes, and one that contradicts another.
#[test]
fn pieces_that_are_of_no_use_are_counted() {
    let mut ends = Ends::new(false, SendQueueConfig::default());
    let frames = ends.send(1_000);
    assert_eq!(ends.receive([frames[0].clone(), frames[0].clone()]), []);
    let drops = ends.far.counters().drops;
    assert_eq!(drops.get(DropReason::DuplicateFragment), 1);
    assert_eq!(ends.far.poll_timeout(), Some(at(500)));
    ends.far.handle_timeout(at(499));
    assert_eq!(ends.far.counters().drops.total(), 1);
    ends.far.handle_timeout(at(500));
    let drops = ends.far.counters().drops;
    assert_eq!(
        (drops.get(DropReason::ReassemblyTimeout), drops.total()),
        (1, 2)
    );
    assert_eq!(ends.far.poll_timeout(), None);
}

#[test]
fn only_frames_that_say_something_of_frames_concern_the_link() {
    let whole = LpPacket::carrying(Bytes::from_static(&[6, 1, 0]));
    let piece = LpPacket {
        sequence: Some(1),
        fragment_count: Some(2),
        ..whole.clone()
    };
    let numbered = LpPacket {
        tx_sequence: Some(1),
        ..whole.clone()
    };
    let acknowledging = LpPacket {
        acks: vec![1],
        ..whole.clone()
    };
    for packet in [piece, numbered, acknowledging, LpPacket::default()] {
        assert!(Link::concerns(&packet.encode()), "{packet:?}");
    }
    let token = LpPacket {
        pit_token: Some(Bytes::from_static(b"token!")),
        fragment_count: Some(1),
        ..whole.clone()
    };
    for frame in [whole.encode(), whole.encode_whole(), token.encode()] {
        assert!(!Link::concerns(&frame), "{frame:?}");
    }
    // What breaks the format is for a forwarder to count.
    for broken in [&[][..], &[0x64], &[0x64, 5, 0], &[5, 0]] {
        assert!(!Link::concerns(broken), "{broken:?}");
    }
}

/// A link with room for so many frames and octets in its queue.
fn bounded(max_frames: usize, octets: u64, marking: Option<CongestionMarking>) -> Link {
    let queue = SendQueueConfig {
        max_frames,
        max_size: ByteSize::bytes(octets),
        marking,
    };
    link(&FaceConfig::default(), queue)
}

fn frame(octets: usize) -> Bytes {
    Bytes::from(vec![0; octets])
}

/// Room for 4 frames and 100 octets: 40 + 60 fit, the 1 after them does not, and 40 fit again once 40 are out.
#[test]
fn octets_are_bounded_and_given_back() {
    let mut link = bounded(4, 100, None);
    let full = |link: &Link| link.counters().queue_full;
    for octets in [40, 60, 1] {
        link.enqueue(at(0), frame(octets));
    }
    assert_eq!((full(&link), link.queued()), (1, ByteSize::bytes(100)));
    assert_eq!(link.poll_frame(at(0), UNLIMITED).unwrap().len(), 40);
    link.enqueue(at(0), frame(40));
    assert_eq!(full(&link), 1);
    let lengths: Vec<_> = sent(&mut link, at(0)).iter().map(Bytes::len).collect();
    assert_eq!(lengths, [60, 40]);
    assert_eq!((link.queued(), link.is_empty()), (ByteSize::ZERO, true));
}

#[test]
fn frames_are_bounded_and_the_newest_is_lost() {
    let mut link = bounded(2, 100, None);
    (1..=3).for_each(|octets| link.enqueue(at(0), frame(octets)));
    assert_eq!(link.counters().queue_full, 1);
    link.enqueue_frame(at(0), frame(1));
    assert_eq!(link.counters().queue_full, 2);
    assert_eq!(sent(&mut link, at(0)), [frame(1), frame(2)]);
    let mut face = crate::FaceCounters::default();
    link.counters().merge_into_face(&mut face);
    assert_eq!(face.drops.get(DropReason::OutputQueueFull), 2);
    assert_eq!(face.drops.total(), 2);
}

/// 60 octets wait for room for 60, and keep back the 10 behind them.
#[test]
fn frames_leave_in_order_as_there_is_room() {
    let mut link = bounded(9, 1_000, None);
    link.enqueue(at(3), frame(60));
    link.enqueue(at(5), frame(10));
    assert_eq!(link.poll_frame(at(9), ByteSize::bytes(59)), None);
    assert_eq!(link.delay(at(9)), Duration::from_millis(6));
    let first = link.poll_frame(at(9), ByteSize::bytes(60)).unwrap();
    assert_eq!(link.delay(at(9)), Duration::from_millis(4));
    // The socket had no room for it after all.
    link.put_back(at(9), [first].into_iter());
    assert_eq!(link.queued(), ByteSize::bytes(70));
    assert_eq!(sent(&mut link, at(9)), [frame(60), frame(10)]);
    assert_eq!(link.delay(at(9)), Duration::ZERO);
}

#[test]
fn a_frame_that_waits_does_not_keep_the_buffer_it_was_cut_from() {
    let mut link = bounded(4, 9_000, None);
    let buffer = frame(60_000);
    link.enqueue(at(0), buffer.slice(..40));
    assert!(buffer.is_unique());
}

fn marked(frame: Bytes) -> bool {
    LpPacket::decode(frame).unwrap().congestion_mark > 0
}

/// A link whose every packet carries 100 octets, with marks beyond so many that wait.
fn marking(law: crate::CongestionLaw, threshold: u64) -> (Link, Bytes) {
    let rule = CongestionMarking {
        law,
        threshold: ByteSize::bytes(threshold),
        ..CongestionMarking::default()
    };
    let packet = LpPacket::carrying([&[6, 100][..], &[0; 100]].concat().into());
    (bounded(9_999, 1 << 20, Some(rule)), packet.encode())
}

/// One packet comes and one leaves each millisecond, 102 octets each, and three wait before: exactly the threshold of 306
/// octets is not too long, one less is. NFD's first mark comes 100 ms after the queue became long, the next 70.7 ms later.
#[test]
fn marks_go_by_the_octets_that_wait_beyond_the_threshold() {
    for (threshold, expected) in [(306, &[][..]), (305, &[100, 171])] {
        let (mut link, packet) = marking(crate::CongestionLaw::Nfd, threshold);
        (0..3).for_each(|_| link.enqueue(at(0), packet.clone()));
        let passed = |millis: &u64| {
            let before = link.counters().marked;
            link.enqueue(at(*millis), packet.clone());
            link.poll_frame(at(*millis), UNLIMITED).unwrap();
            link.counters().marked > before
        };
        let marks: Vec<_> = (0..229).filter(passed).collect();
        assert_eq!(marks, expected, "{threshold}");
    }
}

/// A mark is on the frame that leaves, and once frames passed by an empty queue the time is counted anew.
#[test]
fn a_queue_that_was_long_before_counts_for_no_mark() {
    for (is_idle_between, is_marked) in [(false, true), (true, false)] {
        let (mut link, packet) = marking(crate::CongestionLaw::Nfd, 10);
        link.enqueue(at(0), packet.clone());
        link.enqueue(at(0), packet.clone());
        if is_idle_between {
            link.rest();
        }
        link.enqueue(at(200), packet.clone());
        let marks: Vec<_> = sent(&mut link, at(200)).into_iter().map(marked).collect();
        assert_eq!(marks, [false, false, is_marked]);
        assert_eq!(link.counters().marked, u64::from(is_marked));
    }
}

/// A packet leaves each millisecond after it has waited for ten, with others behind it: CoDel's first mark comes 100 ms
/// after the first packet, the second 100 ms later. By NFD's law, which goes by octets, there is none.
#[test]
fn packets_that_waited_for_too_long_leave_with_a_mark() {
    for (law, expected) in [
        (crate::CongestionLaw::CoDel, &[110, 210][..]),
        (crate::CongestionLaw::Nfd, &[]),
    ] {
        let (mut link, packet) = marking(law, 1 << 20);
        let mut marks = Vec::new();
        (0..10).for_each(|millis| link.enqueue(at(millis), packet.clone()));
        for millis in 10..250 {
            link.enqueue(at(millis), packet.clone());
            if marked(link.poll_frame(at(millis), UNLIMITED).unwrap()) {
                marks.push(millis);
            }
        }
        assert_eq!(marks, expected, "{law:?}");
    }
}

#[test]
fn marks_can_be_turned_off() {
    let (mut link, packet) = marking(crate::CongestionLaw::Nfd, 10);
    link.marker_mut().is_on = false;
    for millis in 0..300 {
        link.enqueue(at(millis), packet.clone());
    }
    assert_eq!(link.counters().marked, 0);
}
