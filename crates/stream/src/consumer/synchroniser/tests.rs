//! The synchroniser by gaps against a path that neither loses nor delays, in virtual time.

use std::collections::BTreeSet;

use super::*;

const PERIOD: Duration = Duration::from_nanos(33_333_333);
const RTT: Duration = Duration::from_millis(100);
const START: Instant = Instant::from_nanos(20_000_000_000);
/// Samples from one key sample to the next.
const INTERVAL: u64 = 30;

/// A producer that has published for 20 s, and a consumer that keeps λ samples in flight, the next key sample among them.
///
/// The sample at position p is published at p·T. An Interest sent at t for it brings Data at max(t + RTT, p·T + RTT/2).
struct Path {
    synchroniser: Synchroniser,
    /// Arrival, class, sequence number, time of the Interest.
    under_way: BTreeSet<(Instant, u8, u64, Instant)>,
    next: [u64; 2],
    now: Instant,
    /// DRD′ of delta samples, λ after them.
    arrivals: Vec<(Instant, Duration, u64)>,
}

impl Path {
    fn new(config: &SynchroniserConfig, staleness: Duration) -> Self {
        let mut synchroniser = Synchroniser::new(config, PERIOD, true, 64);
        synchroniser.start(START, RTT);
        let behind = START.since(Instant::ZERO + staleness).as_nanos() / PERIOD.as_nanos();
        let position = behind as u64;
        let keys = position / INTERVAL + 1;
        let mut path = Self {
            synchroniser,
            under_way: BTreeSet::new(),
            next: [keys, position + 1 - keys],
            now: START,
            arrivals: Vec::new(),
        };
        path.ask(SampleClass::Key);
        path.fill();
        path
    }

    fn position(class: SampleClass, sequence: u64) -> u64 {
        match class {
            SampleClass::Key => sequence * INTERVAL,
            SampleClass::Delta => sequence + sequence / (INTERVAL - 1) + 1,
        }
    }

    fn ask(&mut self, class: SampleClass) {
        let sequence = self.next[class.index()];
        self.next[class.index()] += 1;
        let position = Self::position(class, sequence);
        let published = Instant::ZERO + PERIOD * u32::try_from(position).unwrap();
        let arrives = (self.now + RTT).max(published + RTT / 2);
        self.synchroniser.on_asked((class, sequence));
        self.under_way
            .insert((arrives, class.index() as u8, sequence, self.now));
    }

    fn fill(&mut self) {
        while self.synchroniser.has_free_slot() == Some(true) {
            self.ask(SampleClass::Delta);
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some((at, class, sequence, asked_at)) = self.under_way.pop_first() {
            if at > end {
                self.under_way.insert((at, class, sequence, asked_at));
                break;
            }
            self.now = at;
            let class = SampleClass::ALL[usize::from(class)];
            assert!(self.synchroniser.on_gone((class, sequence)));
            let drd = at.since(asked_at);
            let first = FirstSegment {
                sample: (class, sequence),
                drd,
                buffer: 1.0,
            };
            self.synchroniser.on_first_segment(at, &first, 0);
            match class {
                SampleClass::Key => self.ask(SampleClass::Key),
                SampleClass::Delta => {
                    let lead = self.synchroniser.lead().unwrap();
                    self.arrivals.push((at, drd, lead));
                }
            }
            self.fill();
        }
        self.now = end;
    }

    /// Mean DRD′ of the last second's delta samples, in milliseconds.
    fn last_drd(&self) -> f64 {
        let last = self.arrivals.iter().rev().take(29);
        last.map(|(_, drd, _)| drd.as_secs_f64() * 1e3).sum::<f64>() / 29.0
    }
}

fn config(profile: SynchroniserProfile, lead: u64) -> SynchroniserConfig {
    SynchroniserConfig {
        profile,
        initial_lead: Some(lead),
        ..SynchroniserConfig::default()
    }
}

/// λ₀ of Table 1 of \[RTSD\], and DRD′ in milliseconds and λ that it prints for the end.
const TABLE_1: [(u64, f64, u64); 6] = [
    (30, 110.0, 4),
    (15, 110.0, 4),
    (5, 140.0, 5),
    (4, 110.0, 4),
    (3, 110.0, 4),
    (2, 110.0, 4),
];

/// One slot is the next key sample's, so λ − 1 delta samples fill DRD′ = (λ − 1) · T · 30/29: 103.4 ms with 4, 137.9 ms with
/// 5. Every row ends with the λ that was printed, whatever the first sample's age.
#[test]
fn table_1_ends_as_printed() {
    for staleness in [0, 300, 1_000, 5_000].map(Duration::from_millis) {
        for (first, drd, last) in TABLE_1 {
            let mut path = Path::new(&config(SynchroniserProfile::Paper, first), staleness);
            path.run_for(Duration::from_secs(40));
            let lead = path.synchroniser.lead().unwrap();
            assert_eq!(path.synchroniser.state(), State::Fetching);
            assert!(lead.abs_diff(last) <= 1, "{staleness:?} {first}: {lead}");
            let off = (path.last_drd() - (lead - 1) as f64 * 1e3 / 29.0).abs();
            assert!(off <= 4.0, "{staleness:?} {first}: {}", path.last_drd());
            if staleness == Duration::ZERO {
                assert_eq!(lead, last);
                assert!((path.last_drd() - drd).abs() <= 10.0);
            }
        }
    }
}

/// The code's numbers end there as well, but for λ₀ = 3: a burst makes it 5, half of which is the 2 that it never tries.
#[test]
fn table_1_ends_as_printed_with_the_numbers_of_the_code() {
    let ends = TABLE_1.map(|(first, ..)| {
        let mut path = Path::new(&config(SynchroniserProfile::Code144, first), Duration::ZERO);
        path.run_for(Duration::from_secs(25));
        assert_eq!(path.synchroniser.state(), State::Fetching);
        path.synchroniser.lead().unwrap()
    });
    assert_eq!(ends, [4, 4, 5, 4, 5, 4]);
}
