use super::*;

const FACE: FaceId = FaceId::from_number(256);

const fn ms(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

const fn exchange(at: u64, face: FaceId, name: u64) -> Exchange {
    Exchange {
        now: ms(at),
        namespace: 1,
        face,
        name,
    }
}

fn asf(max_timeouts: u32) -> AsfConfig {
    AsfConfig {
        max_timeouts,
        ..AsfConfig::DEFAULT
    }
}

struct Table {
    measurements: Measurements,
    random: Random,
    asf: AsfConfig,
}

impl Table {
    fn new(capacity: usize, max_timeouts: u32) -> Self {
        Self {
            measurements: Measurements::new(capacity),
            random: Random::from_seed(1),
            asf: asf(max_timeouts),
        }
    }

    fn sent(&mut self, sent: Exchange) {
        self.measurements
            .on_sent(&sent, &self.asf, &mut self.random);
    }

    fn data(&mut self, answer: Exchange, sent_at: Option<u64>) {
        self.measurements
            .on_data(&answer, sent_at.map(ms), &self.asf);
    }

    fn standing_at(&self, now: Instant) -> Standing {
        let namespace = self.measurements.namespace(1).unwrap();
        namespace.standing(FACE, now, &self.asf)
    }

    fn standing(&self, at: u64) -> Standing {
        self.standing_at(ms(at))
    }

    /// Whether the standing falls exactly at `at`.
    fn falls_at(&self, at: u64) -> bool {
        let before = Instant::from_nanos(ms(at).as_nanos() - 1);
        self.standing_at(before) != Standing::TimedOut && self.standing(at) == Standing::TimedOut
    }
}

/// By hand: nothing measured gives 1 s; 100 ms gives SRTT 100, RTTVAR 50, RTO 300; then 20 ms give RTTVAR (3·50 + 80)/4 =
/// 57.5, SRTT 90, RTO 320; 1 ms alone gives 3, which is below the least of 200.
#[test]
fn the_time_to_wait_is_the_rtos() {
    let mut table = Table::new(10, 1);
    table.sent(exchange(0, FACE, 7));
    assert!(table.falls_at(1_000));
    table.data(exchange(100, FACE, 7), Some(0));
    assert_eq!(
        table.standing(9_000),
        Standing::Working(Duration::from_millis(100))
    );
    table.sent(exchange(200, FACE, 8));
    assert!(table.falls_at(500));
    table.data(exchange(220, FACE, 8), Some(200));
    assert_eq!(
        table.standing(9_000),
        Standing::Working(Duration::from_millis(90))
    );
    table.sent(exchange(300, FACE, 9));
    assert!(table.falls_at(620));

    let mut quick = Table::new(10, 1);
    quick.sent(exchange(0, FACE, 7));
    quick.data(exchange(1, FACE, 7), Some(0));
    quick.sent(exchange(10, FACE, 8));
    assert!(quick.falls_at(210));
}

#[test]
fn only_timeouts_in_a_row_make_a_failure_and_data_ends_it() {
    let mut table = Table::new(10, 3);
    for at in [0, 1_000] {
        table.sent(exchange(at, FACE, at));
    }
    // Two times were up, when Data came; so three more are needed.
    table.data(exchange(2_000, FACE, 1_000), Some(1_000));
    for at in [10_000, 20_000, 30_000] {
        table.sent(exchange(at, FACE, at));
        assert!(matches!(table.standing(at), Standing::Working(_)));
    }
    // SRTT 1 s, RTTVAR 0.5 s: 3 s after the last.
    assert!(table.falls_at(33_000));
    table.data(exchange(40_000, FACE, 30_000), Some(30_000));
    assert!(matches!(table.standing(40_000), Standing::Working(_)));
    table.measurements.on_nack(&exchange(41_000, FACE, 1));
    assert_eq!(table.standing(41_000), Standing::TimedOut);
}

/// Another face answered first: the Interest is pending no more, and yet the slower answer tells how slow it is.
#[test]
fn a_late_answer_counts_if_it_was_waited_for() {
    let mut table = Table::new(10, 3);
    table.sent(exchange(0, FACE, 7));
    table.data(exchange(300, FACE, 8), None);
    assert_eq!(table.standing(300), Standing::Unmeasured);
    table.data(exchange(400, FACE, 7), None);
    let measured = Standing::Working(Duration::from_millis(400));
    assert_eq!(table.standing(400), measured);
    table.data(exchange(500, FACE, 7), None);
    assert_eq!(table.standing(500), measured);
    // After the time to wait, it comes too late to count.
    table.sent(exchange(1_000, FACE, 9));
    table.data(exchange(2_200, FACE, 9), None);
    assert_eq!(table.standing(2_200), measured);
}

#[test]
fn the_table_is_bounded_and_what_is_unused_makes_room() {
    let mut table = Table::new(3, 3);
    let face = |number: u64| FaceId::from_number(256 + number);
    for (at, number) in (0..5).zip(0..) {
        table.sent(exchange(at, face(number), 0));
    }
    assert_eq!(table.measurements.len(), 3);
    // The first stays in use; the two behind it are forgotten after five minutes, to the nanosecond.
    table.sent(exchange(100_000, face(0), 0));
    let lifetime = 300_000;
    for number in 10..20 {
        table.sent(Exchange {
            namespace: 2,
            ..exchange(lifetime, face(number), 0)
        });
    }
    assert_eq!(table.measurements.len(), 3);
    assert!(table.measurements.namespace(2).is_none());
    for number in 10..20 {
        table.sent(Exchange {
            namespace: 2,
            ..exchange(lifetime + 2, face(number), 0)
        });
    }
    assert_eq!(table.measurements.len(), 3);
    let hops = |hash| table.measurements.namespace(hash).unwrap().hops.len();
    assert_eq!([hops(1), hops(2)], [1, 2]);
    table.measurements.remove_face(face(0));
    assert_eq!(table.measurements.len(), 2);
    assert!(table.measurements.namespace(1).is_none());
}

/// Against a naive list of pairs, each with its expiry.
#[test]
fn the_table_holds_what_a_plain_list_holds() {
    let mut table = Table::new(12, 3);
    let mut random = Random::from_seed(5);
    let mut list: Vec<(u64, FaceId, u64)> = Vec::new();
    let (mut at, mut refused) = (0, 0);
    for _ in 0..20_000 {
        at += random.below(60_000);
        let face = FaceId::from_number(256 + random.below(5));
        let namespace = random.below(6);
        if random.chance(0.02) {
            table.measurements.remove_face(face);
            list.retain(|&(_, other, _)| other != face);
            continue;
        }
        list.retain(|&(.., expiry)| expiry > at);
        let known = list
            .iter()
            .position(|&(n, f, _)| (n, f) == (namespace, face));
        match known {
            Some(known) => list[known].2 = at + 300_000,
            None if list.len() < 12 => list.push((namespace, face, at + 300_000)),
            None => refused += 1,
        }
        table.sent(Exchange {
            namespace,
            ..exchange(at, face, 0)
        });
        let all = table.measurements.namespaces.iter();
        let pairs = all.flat_map(|(&hash, space)| space.hops.iter().map(move |hop| (hash, hop)));
        let mut held: Vec<_> = pairs
            .filter(|(_, hop)| hop.expiry > ms(at))
            .map(|(hash, hop)| (hash, hop.face))
            .collect();
        held.sort_unstable();
        let mut expected: Vec<_> = list.iter().map(|&(n, f, _)| (n, f)).collect();
        expected.sort_unstable();
        assert_eq!(held, expected);
        assert!(table.measurements.len() <= 12);
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn first_probes_are_due_within_five_seconds() {
    let mut table = Table::new(1_000, 3);
    let mut waits: Vec<_> = (0..1_000)
        .map(|namespace| {
            let sent = Exchange {
                namespace,
                ..exchange(1_000, FACE, 0)
            };
            table.sent(sent);
            let namespace = table.measurements.namespace(namespace).unwrap();
            namespace.probe_at.since(ms(1_000))
        })
        .collect();
    waits.sort_unstable();
    assert!(waits[999] <= FIRST_PROBE);
    // Uniform: of a thousand, σ of the median is 5 s / (2·√1000) = 79 ms.
    assert!(
        (2_184..=2_816).contains(&waits[500].as_millis()),
        "{:?}",
        waits[500]
    );
}
