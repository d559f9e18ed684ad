//! Links whose rate is a schedule.

use namecast_netem::{
    Bytes, Config, DropReason, Link, Output, Queue, Rate, Schedule, TraceError, TraceFormat,
};
use namecast_units::{Bitrate, ByteSize, Duration, Instant, Random};

const fn ms(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

fn deliveries(times: &[u32]) -> Schedule {
    Schedule::from_deliveries(times.to_vec()).expect("the times are in order")
}

fn link(rate: impl Into<Rate>, queue: Queue) -> Link {
    let config = Config {
        rate: Some(rate.into()),
        queue,
        ..Config::default()
    };
    Link::new(config, 1)
}

/// Runs the link by its timers: when, in milliseconds, which frame came out, by its first octet, and how long it had waited.
fn run(link: &mut Link, until: Instant) -> Vec<(u64, u8, u64)> {
    while let Some(at) = link.poll_timeout().filter(|&at| at <= until) {
        link.handle_timeout(at);
    }
    core::iter::from_fn(|| link.poll_output())
        .map(|output| match output {
            Output::Delivered {
                at,
                frame,
                queued_for,
                ..
            } => {
                let waited = u64::try_from(queued_for.as_millis()).expect("it is short");
                (at.as_nanos() / 1_000_000, frame[0], waited)
            }
            Output::Dropped { .. } => panic!("{output:?}"),
        })
        .collect()
}

fn frame(number: u8, octets: usize) -> Bytes {
    Bytes::from(vec![number; octets])
}

/// Opportunities at 2, 5, 5, 10, 12, 15, 15, 20 ms and so on. Frame 1 of 1000 octets leaves 500 of the first one to frame 2 of
/// 2000, which takes all of the second and leaves the third to frame 3. Frame 4 has to wait until 10 ms, though it comes
/// right after an opportunity of which much was left; that at 12 ms finds nobody, and so is of no use to frame 5.
#[test]
fn opportunities_serve_what_waits_and_are_lost_otherwise() {
    let mut link = link(deliveries(&[2, 5, 5, 10]), Queue::default());
    for (number, octets) in [(1, 1_000), (2, 2_000), (3, 100)] {
        link.handle_frame(ms(1), frame(number, octets));
    }
    assert_eq!(link.queue_delay(), Duration::from_millis(4));
    assert_eq!(run(&mut link, ms(5)), [(2, 1, 1), (5, 2, 1), (5, 3, 4)]);
    link.handle_frame(Instant::from_nanos(5_000_001), frame(4, 1));
    assert_eq!(run(&mut link, ms(12)), [(10, 4, 4)]);
    assert_eq!(link.poll_timeout(), None);
    link.handle_frame(ms(13), frame(5, 1_500));
    assert_eq!(link.poll_timeout(), Some(ms(15)));
    assert_eq!(run(&mut link, ms(20)), [(15, 5, 2)]);
}

/// Two opportunities at 10 ms: frames that come at that very time use what frame 1 leaves, up to 3000 octets together.
#[test]
fn what_comes_at_an_opportunity_can_use_it() {
    let mut link = link(deliveries(&[10, 10]), Queue::default());
    link.handle_frame(ms(3), frame(1, 1_200));
    for number in 2..=4 {
        link.handle_frame(ms(10), frame(number, 800));
    }
    assert_eq!(
        run(&mut link, ms(20)),
        [(10, 1, 7), (10, 2, 0), (10, 3, 0), (20, 4, 0)],
        "of frame 4, the last 200 octets"
    );
}

/// An opportunity a second. Of five frames, three find room, as none is being serialised meanwhile.
#[test]
fn a_queue_holds_as_many_frames_as_it_should_between_opportunities() {
    let mut link = link(deliveries(&[1_000]), Queue::DropTail { packets: 3 });
    for number in 1..=5 {
        link.handle_frame(ms(1), frame(number, 1_500));
    }
    assert_eq!(link.queue_length(), 3);
    assert_eq!(link.queue_delay(), Duration::from_millis(2_999));
    for number in [4, 5] {
        let Some(Output::Dropped { frame, reason, .. }) = link.poll_output() else {
            panic!("frame {number} was dropped");
        };
        assert_eq!((frame[0], reason), (number, DropReason::QueueFull));
    }
    let arrived = run(&mut link, ms(9_000));
    assert_eq!(
        arrived,
        [(1_000, 1, 999), (2_000, 2, 1_999), (3_000, 3, 2_999)]
    );
}

/// What was partly sent when the link went down is lost, and so is nothing of the opportunities after it.
#[test]
fn opportunities_after_an_interruption_are_whole() {
    let mut link = link(deliveries(&[10, 20, 30]), Queue::default());
    link.handle_frame(ms(10), frame(1, 4_000));
    link.set_up(ms(15), false);
    assert!(matches!(link.poll_output(), Some(Output::Dropped { .. })));
    link.set_up(ms(16), true);
    link.handle_frame(ms(17), frame(2, 1_500));
    assert_eq!(run(&mut link, ms(30)), [(20, 2, 3)]);
}

/// The same frames through a single rate and a link of that rate; 12 ms a frame at 1 Mbit/s.
#[test]
fn one_rate_is_a_constant_rate() {
    let single = Schedule::parse("0, 1e6\n", None).unwrap();
    assert_eq!(single.mean(), Bitrate::mbps(1));
    let mut random = Random::from_seed(3);
    let mut links = [
        link(single, Queue::codel(50, false)),
        link(Bitrate::mbps(1), Queue::codel(50, false)),
    ];
    let mut at = Instant::ZERO;
    for _ in 0..500 {
        at += Duration::from_micros(random.below(20_000));
        let octets = usize::try_from(random.below(2_000)).unwrap();
        for link in &mut links {
            link.handle_frame(at, frame(1, octets));
        }
        let [traced, constant] = &mut links;
        assert_eq!(traced.queue_delay(), constant.queue_delay());
        assert_eq!(traced.poll_timeout(), constant.poll_timeout());
        while let Some(output) = constant.poll_output() {
            assert_eq!(traced.poll_output(), Some(output));
        }
        assert_eq!(traced.poll_output(), None);
    }
}

/// 1 Mbit/s for 10 ms, nothing for 10 ms, 2 Mbit/s for 10 ms: 1250 + 0 + 2500 octets in a period. A frame of 1500 that comes
/// at 4 ms has 750 by 10 ms and the others by 23 ms; one of 9250 then has 1750 by 30 ms, a period by 60 ms, 1250 by 70 ms and
/// 2500 by 90 ms: at the end of a period rather than after it. Its last one is at the beginning of the rates that follow.
#[test]
fn a_frame_takes_as_long_as_its_bits_need_at_changing_rates() {
    let text = "seconds,bits-per-second\n0,1000000\n0.01,0\n0.02,2000000\n0.03,0\n";
    let schedule = Schedule::parse(text, Some(TraceFormat::Csv)).unwrap();
    assert_eq!(schedule.period(), Duration::from_millis(30));
    assert_eq!(schedule.mean(), Bitrate::mbps(1));
    let mut link = link(schedule, Queue::default());
    link.handle_frame(ms(4), frame(1, 1_500));
    link.handle_frame(ms(4), frame(2, 9_250));
    link.handle_frame(ms(4), frame(3, 125));
    assert_eq!(
        run(&mut link, ms(200)),
        [(23, 1, 0), (90, 2, 19), (91, 3, 86)]
    );
    link.handle_frame(ms(312), frame(4, 250));
    assert_eq!(
        run(&mut link, ms(999)),
        [(321, 4, 0)],
        "it waits for a rate"
    );
}

/// 400 octets come one by one as a frame does, from any time on: a sum of steps against one search.
#[test]
fn many_small_frames_take_as_long_as_a_large_one() {
    let mut random = Random::from_seed(8);
    for seed in 0..200 {
        let mut rates = vec![(Duration::ZERO, Bitrate::kbps(8))];
        let mut at = 0;
        for _ in 0..random.below(5) + 1 {
            at += 1 + random.below(30);
            // A whole number of nanoseconds for each octet.
            let rate = [0, 8, 16, 40, 80][usize::try_from(random.below(5)).unwrap()];
            rates.push((Duration::from_millis(at), Bitrate::kbps(rate)));
        }
        let schedule = Schedule::from_rates(&rates).unwrap();
        let start = ms(random.below(500));
        let mut one = link(schedule.clone(), Queue::default());
        let mut many = link(schedule, Queue::default());
        one.handle_frame(start, frame(1, 400));
        (0..400).for_each(|_| many.handle_frame(start, frame(1, 1)));
        let (one, many) = (run(&mut one, ms(99_999)), run(&mut many, ms(99_999)));
        // Each of the small ones may end within a rate's last nanosecond.
        assert_eq!(
            (many.len(), one[0].0),
            (400, many[399].0),
            "{seed}: {rates:?}"
        );
    }
}

/// Opportunities at 0, 4, 10; 10, 14, 20; 20 and so on.
#[test]
fn the_capacity_until_a_time_counts_what_is_before_it() {
    let schedule = deliveries(&[0, 4, 10]);
    let counts = [
        (0, 0),
        (4, 1),
        (5, 2),
        (10, 2),
        (11, 4),
        (14, 4),
        (20, 5),
        (21, 7),
        (25, 8),
    ];
    for (at, count) in counts {
        let capacity = schedule.capacity_until(ms(at));
        assert_eq!(capacity, ByteSize::bytes(count * 1_500), "{at} ms");
    }
    let text = "0,1000000\n0.01,0\n0.02,2000000\n0.03,0\n";
    let schedule = Schedule::parse(text, None).unwrap();
    for (at, octets) in [
        (0, 0),
        (4, 500),
        (10, 1_250),
        (20, 1_250),
        (25, 2_500),
        (30, 3_750),
        (34, 4_250),
    ] {
        assert_eq!(
            schedule.capacity_until(ms(at)),
            ByteSize::bytes(octets),
            "{at} ms"
        );
    }
}

fn refused(text: &str, format: Option<TraceFormat>) -> (usize, String) {
    let TraceError { line, problem } = Schedule::parse(text, format).expect_err("it is no trace");
    (line, problem)
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    for (text, line, expected) in [
        ("", 1, "an entry at least"),
        ("# nothing\n\n", 1, "an entry at least"),
        ("1\n2\nx\n", 3, "found 'x', expected whole milliseconds"),
        ("1\n2.5\n", 2, "whole milliseconds"),
        ("1\n-2\n", 2, "whole milliseconds"),
        ("4294967296\n", 1, "whole milliseconds"),
        ("# times\n3\n\n2\n", 4, "not before the one above"),
        ("0\n0\n", 2, "above zero at the end"),
        ("0,5\n1;5\n", 2, "expected seconds,bits-per-second"),
        ("0,5\n1,-5\n", 2, "expected seconds,bits-per-second"),
        ("0,5\n1,nan\n", 2, "expected seconds,bits-per-second"),
        ("1,5\n2,5\n", 1, "time 0 first"),
        ("0,5\n2,5\n2,6\n", 3, "after the one above"),
        ("0,5\n1e9,5\n", 2, "within 49 days"),
        ("0,5\n1,1e13\n2,5\n", 2, "at most 1 Tbit/s"),
        (
            "seconds,bits-per-second\n0,0\n1,5\n",
            3,
            "some rate above zero",
        ),
    ] {
        let (found, problem) = refused(text, None);
        assert!(
            found == line && problem.contains(expected),
            "{text:?}: {found}: {problem}"
        );
    }
    for (text, line, expected) in [
        ("0 1\n1\n", 2, "found '1', expected seconds and Mbit/s"),
        ("0 1\n1 x\n", 2, "expected seconds and Mbit/s"),
        ("0\t1\n# pause\n0\t2\n", 3, "after the one above"),
    ] {
        let (found, problem) = refused(text, None);
        assert!(
            found == line && problem.contains(expected),
            "{text:?}: {found}: {problem}"
        );
    }
    assert_eq!(refused("5\n", Some(TraceFormat::Csv)).0, 1);
    assert_eq!(refused("0,5\n", Some(TraceFormat::Mahimahi)).0, 1);
    let (line, problem) = refused(&format!("1\n{}\n", "1".repeat(5_000)), None);
    assert_eq!(line, 2);
    assert!(problem.contains("at most 4096 octets"), "{problem}");
}

/// Five million lines, of which no more than the entries are held: 50 ms of opportunities at 1.2 Gbit/s, many times over.
#[test]
fn a_long_trace_is_read_as_a_stream() {
    let lines = (0..5_000_000_u32).flat_map(|at| format!("{}\n", at / 100).into_bytes());
    let schedule = Schedule::read(std::io::BufReader::new(Lines(lines)), None).unwrap();
    let times = schedule.deliveries().unwrap();
    assert_eq!((times.len(), times[times.len() - 1]), (5_000_000, 49_999));
}

/// Octets as a source.
struct Lines<I: Iterator<Item = u8>>(I);

impl<I: Iterator<Item = u8>> std::io::Read for Lines<I> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let octets = buffer.iter_mut().zip(self.0.by_ref());
        Ok(octets.map(|(place, octet)| *place = octet).count())
    }
}

#[test]
fn a_trace_is_recognised_by_its_first_line() {
    let text = "# of a drive\r\n 0 \r\n\r\n7\r\n";
    assert_eq!(Schedule::parse(text, None), Ok(deliveries(&[0, 7])));
    let text = "Seconds,Bits-per-second\n0,8000\n 1.5 , 16000.4\n2,0\n";
    let rates = [(0, 8_000), (1_500, 16_000), (2_000, 0)];
    let rates = rates.map(|(at, rate)| (Duration::from_millis(at), Bitrate::bps(rate)));
    assert_eq!(
        Schedule::parse(text, None),
        Ok(Schedule::from_rates(&rates).unwrap())
    );
}

/// Seconds and Mbit/s from the first time on, as Pensieve's traces have it: 1.5 Mbit/s for half a second, then 0.2.
#[test]
fn two_columns_are_seconds_and_megabits() {
    let schedule = Schedule::parse("7.25\t1.5\n7.75 0.2\n8.25 9\n", None).unwrap();
    let rates = [(0, 1_500_000), (500, 200_000), (1_000, 9_000_000)];
    let rates = rates.map(|(at, rate)| (Duration::from_millis(at), Bitrate::bps(rate)));
    assert_eq!(schedule, Schedule::from_rates(&rates).unwrap());
}

/// After ten hours without a frame, of a trace with an opportunity a millisecond for ten seconds, the next one is found; so
/// are those of frames that come once an hour, which would take minutes if each opportunity were looked at.
#[test]
fn a_long_pause_costs_nothing() {
    let times: Vec<u32> = (1..=10_000).collect();
    let mut link = link(deliveries(&times), Queue::default());
    for hour in 10..2_000 {
        let at = hour * 3_600_000;
        link.handle_frame(Instant::from_nanos(at * 1_000_000 + 1), frame(1, 1_500));
        assert_eq!(link.poll_timeout(), Some(ms(at + 1)));
        assert_eq!(run(&mut link, ms(at + 1)), [(at + 1, 1, 0)]);
    }
}
