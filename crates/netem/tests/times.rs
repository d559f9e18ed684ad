//! Times worked by hand, to the nanosecond.

use namecast_netem::{Bytes, Config, DropReason, Frame, Jitter, Link, Outage, Output, Queue, Step};
use namecast_units::{Bitrate, ByteSize, Duration, Instant};

fn ms(n: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(n)
}

fn span(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A frame of 1250 octets, 10 000 bits: 10 ms at 1 Mbit/s. The first octet tells it from others.
fn frame(mark: u8) -> Bytes {
    let mut octets = vec![0; 1_250];
    octets[0] = mark;
    Bytes::from(octets)
}

fn megabit() -> Config {
    Config {
        rate: Some(Bitrate::mbps(1).into()),
        delay: span(5),
        ..Config::default()
    }
}

/// What became of each frame: its mark, when in nanoseconds, and how long it waited or why it did not arrive.
type Fates = Vec<(u8, u64, Result<u64, DropReason>)>;

fn fate(output: Output) -> (u8, u64, Result<u64, DropReason>) {
    match output {
        Output::Delivered {
            at,
            frame,
            queued_for,
            ..
        } => {
            let waited = u64::try_from(queued_for.as_nanos()).expect("a short wait");
            (frame[0], at.as_nanos(), Ok(waited))
        }
        Output::Dropped { at, frame, reason } => (frame[0], at.as_nanos(), Err(reason)),
    }
}

/// Runs the link's timers until `end`; each output must come out at its own time.
fn run(link: &mut Link, end: Instant) -> Fates {
    let mut fates = Vec::new();
    let drain = |link: &mut Link, fates: &mut Fates| {
        while let Some(output) = link.poll_output() {
            fates.push(fate(output));
        }
    };
    drain(link, &mut fates);
    while let Some(at) = link.poll_timeout()
        && at <= end
    {
        link.handle_timeout(at);
        let before = fates.len();
        drain(link, &mut fates);
        assert!(fates[before..].iter().all(|fate| fate.1 == at.as_nanos()));
    }
    fates
}

const MS: u64 = 1_000_000;

/// With 50 octets of headers a frame of 1250 takes 10.4 ms, and a queue of 2600 bytes has room for two: of four at once the last is
/// dropped.
#[test]
fn headers_take_time_and_room() {
    let mut link = Link::new(
        Config {
            headers: ByteSize::bytes(50),
            queue: Queue::DropTailBytes {
                size: ByteSize::bytes(2_600),
            },
            ..megabit()
        },
        1,
    );
    for mark in 1..=4 {
        link.handle_frame(ms(0), frame(mark));
    }
    assert_eq!(link.queue_size(), ByteSize::bytes(2_600));
    let micros = |n: u64| n * 1_000;
    let expected = vec![
        (4, 0, Err(DropReason::QueueFull)),
        (1, micros(15_400), Ok(0)),
        (2, micros(25_800), Ok(micros(10_400))),
        (3, micros(36_200), Ok(micros(20_800))),
    ];
    assert_eq!(run(&mut link, ms(100)), expected);
    let delivered = link.counters().delivered_size;
    assert_eq!(delivered, ByteSize::bytes(3 * 1_300));
}

/// Three at once: serialised from 0, 10 and 20 ms on, each arrives 15 ms after that.
#[test]
fn frames_are_serialised_one_after_another() {
    let mut link = Link::new(megabit(), 1);
    for mark in 1..=3 {
        link.handle_frame(ms(0), frame(mark));
    }
    assert_eq!(link.queue_length(), 2);
    assert_eq!(link.queue_size(), ByteSize::bytes(2_500));
    assert_eq!(link.queue_delay(), span(30));
    let expected = vec![
        (1, 15 * MS, Ok(0)),
        (2, 25 * MS, Ok(10 * MS)),
        (3, 35 * MS, Ok(20 * MS)),
    ];
    assert_eq!(run(&mut link, ms(100)), expected);
    assert_eq!(link.counters().queued_nanos, 30 * MS);
    assert_eq!(link.counters().delivered_size, ByteSize::bytes(3_750));
}

/// 1250 octets at 7 Mbit/s take 10⁷/7 = 1 428 571.43 ns; each is rounded down before the next begins.
#[test]
fn rounding_is_down_to_nanoseconds_frame_by_frame() {
    let config = Config {
        rate: Some(Bitrate::mbps(7).into()),
        ..Config::default()
    };
    let mut link = Link::new(config, 1);
    for mark in 1..=3 {
        link.handle_frame(ms(0), frame(mark));
    }
    let times: Vec<u64> = run(&mut link, ms(100)).iter().map(|fate| fate.1).collect();
    assert_eq!(times, [1_428_571, 2_857_142, 4_285_713]);
}

/// Sizes alternate, so that a remembered serialisation time would show: 80 octets take 0.64 ms.
#[test]
fn each_size_takes_its_own_time() {
    let mut link = Link::new(megabit(), 1);
    for mark in [1, 2, 3, 4] {
        let short = frame(mark).slice(..80);
        link.handle_frame(ms(0), if mark % 2 == 1 { frame(mark) } else { short });
    }
    let times: Vec<u64> = run(&mut link, ms(100)).iter().map(|fate| fate.1).collect();
    assert_eq!(times, [15 * MS, 15_640_000, 25_640_000, 26_280_000]);
}

#[test]
fn a_perfect_link_delivers_at_once() {
    let mut link = Link::new(Config::default(), 1);
    link.handle_frame(ms(7), frame(1));
    assert_eq!(link.poll_output().map(fate), Some((1, 7 * MS, Ok(0))));
    assert_eq!(link.poll_timeout(), None);
}

/// Two wait, one is being serialised: a fourth has no room until the first is out, at 10 ms exactly.
#[test]
fn a_full_queue_drops_what_comes() {
    let queue = Queue::DropTail { packets: 2 };
    let mut link = Link::new(Config { queue, ..megabit() }, 1);
    for mark in 1..=4 {
        link.handle_frame(ms(0), frame(mark));
    }
    link.handle_frame(Instant::from_nanos(10 * MS - 1), frame(5));
    link.handle_frame(ms(10), frame(6));
    let fates = run(&mut link, ms(100));
    let dropped: Vec<_> = fates.iter().filter(|fate| fate.2.is_err()).collect();
    assert_eq!(
        dropped,
        [
            &(4, 0, Err(DropReason::QueueFull)),
            &(5, 10 * MS - 1, Err(DropReason::QueueFull))
        ]
    );
    // It waits for the second and third: until 30 ms.
    assert_eq!(fates.last(), Some(&(6, 45 * MS, Ok(20 * MS))));
    assert_eq!(link.counters().queue_full, 2);
}

/// 2500 octets of room: two frames of 1250 wait, or one of them and fifteen of 80 (2450), not sixteen.
#[test]
fn a_queue_in_bytes_counts_bytes() {
    let size = ByteSize::bytes(2_500);
    let queue = Queue::DropTailBytes { size };
    let mut link = Link::new(Config { queue, ..megabit() }, 1);
    link.handle_frame(ms(0), frame(1));
    link.handle_frame(ms(0), frame(2));
    for _ in 0..16 {
        link.handle_frame(ms(0), frame(3).slice(..80));
    }
    assert_eq!(link.queue_length(), 16);
    assert_eq!(link.counters().queue_full, 1);
    link.handle_frame(ms(0), frame(4).slice(..50));
    assert_eq!(link.queue_size(), size);
    link.handle_frame(ms(0), Bytes::new());
    assert_eq!(link.counters().queue_full, 2);
}

/// What finds the link idle does not wait, so it needs no room.
#[test]
fn an_idle_link_needs_no_queue() {
    for queue in [
        Queue::DropTail { packets: 0 },
        Queue::DropTailBytes {
            size: ByteSize::ZERO,
        },
    ] {
        let mut link = Link::new(Config { queue, ..megabit() }, 1);
        link.handle_frame(ms(0), frame(1));
        link.handle_frame(ms(9), frame(2));
        link.handle_frame(ms(10), frame(3));
        let expected = vec![
            (2, 9 * MS, Err(DropReason::QueueFull)),
            (1, 15 * MS, Ok(0)),
            (3, 25 * MS, Ok(0)),
        ];
        assert_eq!(run(&mut link, ms(100)), expected);
    }
}

/// The one under way from 10 to 20 ms keeps its rate when it doubles at 15 ms; the third takes 5 ms.
#[test]
fn a_new_rate_begins_with_the_next_frame() {
    let step = Step {
        at: span(15),
        rate: Some(Bitrate::mbps(2)),
        delay: None,
    };
    let mut link = Link::new(
        Config {
            schedule: vec![step],
            ..megabit()
        },
        1,
    );
    for mark in 1..=4 {
        link.handle_frame(ms(0), frame(mark));
    }
    let times: Vec<u64> = run(&mut link, ms(100)).iter().map(|fate| fate.1).collect();
    assert_eq!(times, [15 * MS, 25 * MS, 30 * MS, 35 * MS]);
}

/// Without a rate frames leave at once; from 10 ms on they take 10 ms each.
#[test]
fn a_rate_may_begin_later() {
    let step = Step {
        at: span(10),
        rate: Some(Bitrate::mbps(1)),
        delay: None,
    };
    let config = Config {
        schedule: vec![step],
        ..Config::default()
    };
    let mut link = Link::new(config, 1);
    for (at, mark) in [(9, 1), (9, 2), (10, 3), (10, 4)] {
        link.handle_frame(ms(at), frame(mark));
    }
    let times: Vec<u64> = run(&mut link, ms(100)).iter().map(|fate| fate.1).collect();
    assert_eq!(times, [9 * MS, 9 * MS, 20 * MS, 30 * MS]);
}

/// Serialised by 10, 20 and 30 ms. The delay falls from 50 ms to 1 ms at 15 ms: the first arrives at 60 ms, and those behind it
/// wait for it, unless they may overtake: 21 and 31 ms.
#[test]
fn a_shorter_delay_does_not_let_frames_overtake() {
    let step = Step {
        at: span(15),
        rate: None,
        delay: Some(span(1)),
    };
    let config = Config {
        delay: span(50),
        schedule: vec![step],
        ..megabit()
    };
    let times = |reorder: bool| {
        let jitter = Jitter {
            reorder,
            ..Jitter::default()
        };
        let mut link = Link::new(
            Config {
                jitter,
                ..config.clone()
            },
            1,
        );
        for mark in 1..=3 {
            link.handle_frame(ms(0), frame(mark));
        }
        let fates = run(&mut link, ms(100));
        fates
            .iter()
            .map(|fate| (fate.0, fate.1 / MS))
            .collect::<Vec<_>>()
    };
    assert_eq!(times(false), [(1, 60), (2, 60), (3, 60)]);
    assert_eq!(times(true), [(2, 21), (3, 31), (1, 60)]);
}

/// A frame that is being serialised while the delay changes gets the new one: serialised by 10 ms, 20 ms more.
#[test]
fn the_delay_is_that_of_the_end_of_serialisation() {
    let step = Step {
        at: span(10),
        rate: None,
        delay: Some(span(20)),
    };
    let mut link = Link::new(
        Config {
            schedule: vec![step],
            ..megabit()
        },
        1,
    );
    link.handle_frame(ms(0), frame(1));
    assert_eq!(run(&mut link, ms(100)), [(1, 30 * MS, Ok(0))]);
}

/// From 25 to 40 ms nothing passes: the first has arrived at 15 ms, the second at 25 ms exactly; the third, being serialised, and
/// the fourth, waiting, are lost, as is what comes before 40 ms. The link is then idle.
#[test]
fn an_outage_loses_what_is_under_way() {
    let outage = Outage {
        from: span(25),
        until: span(40),
    };
    let mut link = Link::new(
        Config {
            outages: vec![outage],
            ..megabit()
        },
        1,
    );
    for mark in 1..=4 {
        link.handle_frame(ms(0), frame(mark));
    }
    let down = Err(DropReason::Down);
    let expected = vec![
        (1, 15 * MS, Ok(0)),
        (2, 25 * MS, Ok(10 * MS)),
        (3, 25 * MS, down),
        (4, 25 * MS, down),
    ];
    assert_eq!(run(&mut link, ms(39)), expected);
    link.handle_frame(ms(39), frame(5));
    link.handle_frame(ms(40), frame(6));
    let expected = vec![(5, 39 * MS, down), (6, 55 * MS, Ok(0))];
    assert_eq!(run(&mut link, ms(100)), expected);
    assert_eq!(link.counters().down, 3);
}

/// The frame that is lost at 5 ms would have been out at 10 ms, after the delay changes at 8 ms; the one that comes at 6 ms and is
/// out at 6.64 ms still has the old delay.
#[test]
fn a_lost_frame_does_not_bring_the_future() {
    let step = Step {
        at: span(8),
        rate: None,
        delay: Some(span(30)),
    };
    let mut link = Link::new(
        Config {
            schedule: vec![step],
            ..megabit()
        },
        1,
    );
    link.handle_frame(ms(0), frame(1));
    link.set_up(ms(5), false);
    link.set_up(ms(6), true);
    link.handle_frame(ms(6), frame(2).slice(..80));
    let fates = run(&mut link, ms(100));
    assert_eq!(fates.last(), Some(&(2, 11_640_000, Ok(0))));
}

/// Nobody called between 0 and 100 ms: what the outage at 16 ms lost was lost then, after the first had arrived.
#[test]
fn an_outage_is_made_up_for_at_a_late_call() {
    let outage = Outage {
        from: span(16),
        until: span(17),
    };
    let mut link = Link::new(
        Config {
            outages: vec![outage],
            ..megabit()
        },
        1,
    );
    link.handle_frame(ms(0), frame(1));
    link.handle_frame(ms(0), frame(2));
    let mut punctual = link.clone();
    punctual.handle_timeout(ms(15));
    assert_eq!(punctual.poll_timeout(), Some(ms(16)));
    link.handle_timeout(ms(100));
    assert_eq!(link.poll_output().map(fate), Some((1, 15 * MS, Ok(0))));
    let down = Err(DropReason::Down);
    assert_eq!(link.poll_output().map(fate), Some((2, 16 * MS, down)));
    assert_eq!(link.poll_timeout(), None);
}

#[test]
fn a_link_taken_down_loses_what_is_under_way_and_comes_back_idle() {
    let mut link = Link::new(megabit(), 1);
    link.handle_frame(ms(0), frame(1));
    link.handle_frame(ms(0), frame(2));
    link.set_up(ms(3), false);
    link.handle_frame(ms(4), frame(3));
    link.set_up(ms(5), true);
    link.set_up(ms(5), true);
    link.handle_frame(ms(5), frame(4));
    let down = Err(DropReason::Down);
    let fates: Vec<_> = core::iter::from_fn(|| link.poll_output().map(fate)).collect();
    assert_eq!(
        fates,
        [(1, 3 * MS, down), (2, 3 * MS, down), (3, 4 * MS, down)]
    );
    assert_eq!(run(&mut link, ms(100)), [(4, 20 * MS, Ok(0))]);
}

/// Coming up does not end a scripted outage.
#[test]
fn an_outage_holds_though_the_link_is_up() {
    let outage = Outage {
        from: span(10),
        until: span(20),
    };
    let config = Config {
        outages: vec![outage],
        ..Config::default()
    };
    let mut link = Link::new(config, 1);
    link.set_up(ms(5), false);
    link.set_up(ms(12), true);
    link.handle_frame(ms(19), frame(1));
    link.handle_frame(ms(20), frame(2));
    assert_eq!(link.counters().down, 1);
    assert_eq!(link.counters().delivered, 1);
}

/// Three may be in flight for the second that they take; the fourth is refused, and another passes once they have arrived.
#[test]
fn frames_in_flight_are_bounded() {
    let config = Config {
        delay: span(1_000),
        max_in_flight: 3,
        ..Config::default()
    };
    let mut link = Link::new(config, 1);
    for mark in 1..=4 {
        link.handle_frame(ms(0), frame(mark));
    }
    link.handle_frame(ms(1_000), frame(5));
    let fates = run(&mut link, ms(2_000));
    assert_eq!(fates[0], (4, 0, Err(DropReason::InFlightFull)));
    assert_eq!(fates.len(), 5);
    assert_eq!(link.counters().in_flight_full, 1);
    assert_eq!(link.counters().dropped(), 1);
}

/// One timer a frame, though frames wait: the queue is made up for when one arrives.
#[test]
fn an_ordered_link_needs_one_timer_a_frame() {
    let mut link = Link::new(megabit(), 1);
    for mark in 0..50 {
        link.handle_frame(ms(0), frame(mark));
    }
    let mut timers = 0;
    while let Some(at) = link.poll_timeout() {
        link.handle_timeout(at);
        timers += 1;
        assert!(link.poll_output().is_some());
        assert!(link.poll_output().is_none());
    }
    assert_eq!(timers, 50);
}

/// A time that has passed counts as now.
#[test]
fn time_does_not_run_backwards() {
    let mut link = Link::new(megabit(), 1);
    link.handle_timeout(ms(50));
    link.handle_frame(ms(20), frame(1));
    link.handle_timeout(ms(10));
    assert_eq!(run(&mut link, ms(100)), [(1, 65 * MS, Ok(0))]);
}

/// A rate of one bit a second, a schedule at the end of time: nothing overflows.
#[test]
fn absurd_times_saturate() {
    let step = Step {
        at: Duration::MAX,
        rate: Some(Bitrate::ZERO),
        delay: Some(Duration::MAX),
    };
    let outage = Outage {
        from: Duration::MAX,
        until: Duration::MAX,
    };
    let config = Config {
        rate: Some(Bitrate::ZERO.into()),
        delay: Duration::MAX,
        schedule: vec![step; 2],
        outages: vec![outage],
        ..Config::default()
    };
    let mut link = Link::new(config, 1);
    for mark in 0..3 {
        link.handle_frame(ms(0), frame(mark));
        link.handle_timeout(Instant::from_nanos(u64::MAX));
        assert!(link.poll_timeout().is_none());
    }
}

/// A frame may be more than octets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parcel(u16);

impl Frame for Parcel {
    fn octets(&self) -> usize {
        1_250
    }

    fn flip_bit(&mut self, bit: usize) {
        self.0 ^= 1 << (bit % 16);
    }
}

#[test]
fn a_link_carries_what_has_a_size() {
    let mut link = Link::carrying(megabit(), 1);
    link.handle_frame(ms(0), Parcel(7));
    link.handle_timeout(ms(15));
    let delivered = Output::Delivered {
        at: ms(15),
        frame: Parcel(7),
        queued_for: Duration::ZERO,
        congestion_marked: false,
    };
    assert_eq!(link.poll_output(), Some(delivered));
}
