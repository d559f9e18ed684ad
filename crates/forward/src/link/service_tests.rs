use namecast_packet::LpPacket;

use super::*;
use crate::config::LinkConfig;
use crate::face::LinkType;
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

/// Two links over a path in virtual time that loses datagrams above a size, which changes, and whose ends know nothing of it.
struct Path {
    ends: [Link; 2],
    now: Instant,
    passes: usize,
    /// Packets that came through, and frames of both directions.
    arrived: Vec<usize>,
    frames: u64,
}

impl Path {
    fn new(face: &FaceConfig) -> Self {
        let mut ends = [1, 2].map(|seed| {
            let queue = SendQueueConfig::default();
            Link::new(Arc::new(Config::default()), face, queue, seed)
        });
        for end in &mut ends {
            end.discover_path_mtu(Some(PathMtuConfig::UDP_V4));
        }
        Self {
            ends,
            now: Instant::ZERO,
            passes: 1_472,
            arrived: Vec::new(),
            frames: 0,
        }
    }

    /// Carries frames until none waits, and then a millisecond passes.
    fn carry(&mut self) {
        self.now += Duration::from_millis(1);
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|due| due <= self.now) {
                end.handle_timeout(self.now);
            }
        }
        while self.ends.iter().any(|end| !end.is_empty()) {
            for from in 0..2 {
                while let Some(frame) = self.ends[from].poll_frame(self.now, UNLIMITED) {
                    self.frames += 1;
                    if frame.len() <= self.passes {
                        let packet = self.ends[1 - from].handle_frame(self.now, frame);
                        self.arrived
                            .extend(packet.map(|it| it.fragment.unwrap().len()));
                    }
                }
            }
        }
    }

    /// One packet of 1300 octets every 10 ms; returns how many of 100 a second arrived.
    fn send_for(&mut self, seconds: usize) -> Vec<usize> {
        let second = |path: &mut Self| {
            path.arrived.clear();
            for millisecond in 0..1_000 {
                if millisecond % 10 == 0 {
                    path.ends[0].enqueue(path.now, packet(1_300));
                }
                path.carry();
            }
            assert!(path.arrived.iter().all(|&octets| octets == 1_300));
            path.arrived.len()
        };
        (0..seconds).map(|_| second(self)).collect()
    }
}

/// Packets of 1300 octets over a path that takes 1400, 1252, 600 and 1400: whole at first, all in pieces at last, and lost for two seconds
/// at most after each fall.
#[test]
fn packets_arrive_whatever_the_path_takes() {
    let face = FaceConfig {
        mtu: Some(1_400),
        ..FaceConfig::default()
    };
    let mut path = Path::new(&face);
    assert_eq!(path.ends[0].mtu(), Some(1_200));
    assert_eq!(path.send_for(3), [100; 3]);
    assert_eq!(path.ends[0].mtu(), Some(1_400));
    for passes in [1_252, 600] {
        path.passes = passes;
        let arrived = path.send_for(12);
        assert_eq!(arrived[2..], [100; 10], "{passes}: {arrived:?}");
        let mtu = path.ends[0].mtu().unwrap();
        assert!((passes - 16..=passes).contains(&mtu) || mtu == 524, "{mtu}");
        assert_eq!(path.ends[0].meter().path_mtu(), Some(mtu));
    }
    path.passes = 1_472;
    assert_eq!(path.send_for(60), [100; 60]);
    assert_eq!(path.ends[0].mtu(), Some(1_400));
    // Idle: nothing is sent, and nothing due.
    (0..10_000).for_each(|_| path.carry());
    path.frames = 0;
    (0..10_000).for_each(|_| path.carry());
    assert_eq!((path.frames, path.ends[0].poll_timeout()), (0, None));
}

/// Packets that bypass the link fit into one frame, and the link sees a large one each second.
#[test]
fn large_packets_pass_by_between_two_looks() {
    let mut path = Path::new(&FaceConfig {
        mtu: Some(1_400),
        ..FaceConfig::default()
    });
    assert_eq!(path.ends[0].longest_whole(), 524);
    path.send_for(3);
    let looks: Vec<_> = (0..3_000)
        .map(|_| {
            path.carry();
            path.ends[0].longest_whole()
        })
        .collect();
    assert!(looks.iter().all(|it| [524, 1_400].contains(it)));
    assert_eq!(looks.last(), Some(&524));
    path.ends[0].enqueue(path.now, packet(1_300));
    assert_eq!(path.ends[0].longest_whole(), 1_400);
}

/// A packet that the face takes whole and the path does not counts as its frames: the forwarder has counted one of its size.
#[test]
fn frames_of_a_smaller_path_are_counted_once() {
    let mut path = Path::new(&FaceConfig {
        mtu: Some(1_400),
        ..FaceConfig::default()
    });
    let whole = packet(1_300);
    path.ends[0].enqueue(Instant::ZERO, whole.clone());
    let frames = sent(&mut path.ends[0], Instant::ZERO);
    assert_eq!(frames.len(), 2);
    let octets: usize = frames.iter().map(Bytes::len).sum();
    let counted = path.ends[0].counters().sent;
    assert_eq!(counted.frames + 1, 2);
    assert_eq!(
        counted.octets + ByteSize::of(&whole),
        ByteSize::bytes(octets as u64)
    );
}

/// Links that take no extension fields, and those with several peers, neither probe nor answer.
#[test]
fn probes_go_only_where_extension_fields_may() {
    let probe = neighbour_probe();
    for (fields, link_type, answers) in [
        (ExtensionFields::Auto, LinkType::PointToPoint, 1),
        (ExtensionFields::Off, LinkType::PointToPoint, 0),
        (ExtensionFields::Auto, LinkType::MultiAccess, 0),
    ] {
        let mut end = link(
            &FaceConfig {
                mtu: Some(1_400),
                extension_fields: fields,
                link_type,
                ..FaceConfig::default()
            },
            SendQueueConfig::default(),
        );
        assert_eq!(end.handle_frame(Instant::ZERO, probe.clone()), None);
        let answered = sent(&mut end, Instant::ZERO);
        assert_eq!(answered.len(), answers);
        assert!(answered.iter().all(|it| it.len() < probe.len()));
        end.discover_path_mtu(Some(PathMtuConfig::UDP_V4));
        end.enqueue(Instant::ZERO, packet(1_000));
        sent(&mut end, Instant::ZERO);
        end.handle_timeout(Instant::ZERO);
        assert_eq!(sent(&mut end, Instant::ZERO).len(), answers);
    }
}

fn neighbour_probe() -> Bytes {
    let mut probe = LpPacket::default();
    probe.extensions.set(Extensions::PATH_PROBE, [5; 600]);
    probe.encode()
}

/// Where frames are acknowledged, Acks make none larger than the path takes.
#[test]
fn acknowledgements_fit_a_smaller_path() {
    let face = FaceConfig {
        mtu: Some(1_400),
        reliability: true,
        ..FaceConfig::default()
    };
    let mut path = Path::new(&face);
    for _ in 0..100 {
        path.ends[1].enqueue(path.now, packet(10));
    }
    for frame in sent(&mut path.ends[1], path.now) {
        path.ends[0].handle_frame(path.now, frame);
    }
    path.ends[0].enqueue(path.now, packet(1_100));
    let frames = sent(&mut path.ends[0], path.now);
    let lengths: Vec<_> = frames.iter().map(Bytes::len).collect();
    assert!(lengths.iter().all(|it| *it <= 1_200), "{lengths:?}");
    assert!(lengths[0] > 1_180, "{lengths:?}");
}
