use namecast_packet::{Extensions, LpPacket};
use namecast_units::Random;

use super::*;
use crate::link::path_probe::answer;

const CEILING: usize = 1_400;
const ROUND_TRIP: Duration = Duration::from_millis(20);
const TICK: Duration = Duration::from_millis(10);

/// A neighbour at the end of a path in virtual time, and large packets that leave all the time.
struct Network {
    path: PathMtu,
    random: Random,
    now: Instant,
    /// Largest datagram that passes, of a number of octets.
    passes: usize,
    answers: bool,
    /// The system's limit, if it knows one.
    limit: Option<usize>,
    loss: f64,
    under_way: Vec<(Instant, Bytes)>,
    /// Sizes of all probes.
    probes: Vec<usize>,
    falls: usize,
}

impl Network {
    fn new(config: PathMtuConfig, passes: usize) -> Self {
        Self {
            path: PathMtu::new(config, CEILING),
            random: Random::from_seed(7),
            now: Instant::ZERO,
            passes,
            answers: true,
            limit: None,
            loss: 0.0,
            under_way: Vec::new(),
            probes: Vec::new(),
            falls: 0,
        }
    }

    fn v4(passes: usize) -> Self {
        Self::new(PathMtuConfig::UDP_V4, passes)
    }

    fn value(frame: Bytes, number: u32) -> Option<Vec<u8>> {
        let packet = LpPacket::decode(frame).unwrap();
        packet.extensions.get(number).map(<[u8]>::to_vec)
    }

    fn tick(&mut self) {
        let before = self.path.mtu();
        self.now += TICK;
        self.path.on_packet(self.now, CEILING);
        if self.path.poll_timeout().is_some_and(|due| due <= self.now) {
            self.path.set_system_limit(self.now, self.limit);
            self.path.handle_timeout(self.now, &mut self.random);
        }
        while let Some(probe) = self.path.poll_output() {
            self.probes.push(probe.len());
            let is_lost = probe.len() > self.passes || self.random.chance(self.loss);
            let answer = answer(&Self::value(probe, Extensions::PATH_PROBE).unwrap()).unwrap();
            if self.answers && !is_lost {
                self.under_way.push((self.now + ROUND_TRIP, answer));
            }
        }
        let now = self.now;
        for (_, answer) in self.under_way.extract_if(.., |(due, _)| *due <= now) {
            let nonce = Self::value(answer, Extensions::PATH_ANSWER).unwrap();
            self.path.handle_answer(now, &nonce);
        }
        self.falls += usize::from(self.path.mtu() < before);
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.tick();
        }
    }

    /// Time until the MTU is at least `from` and at most `to`.
    fn until(&mut self, from: usize, to: usize) -> Duration {
        let start = self.now;
        while !(from..=to).contains(&self.path.mtu()) {
            self.tick();
            assert!(
                self.now.since(start) < Duration::from_secs(600),
                "{:?}",
                self.path
            );
        }
        self.now.since(start)
    }
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Every size that an IPv4 path of 1228 to 1500 octets lets pass is found to 16 octets, without help of the system and never beyond, within
/// 10 s; the start is what any of them takes.
#[test]
fn probes_find_what_the_path_takes() {
    for passes in 1_200..=1_472 {
        let mut network = Network::v4(passes);
        assert_eq!(network.path.mtu(), 1_200);
        network.run(secs(10));
        let (mtu, most) = (network.path.mtu(), passes.min(CEILING));
        assert!(mtu <= most && most - mtu <= STEP, "{passes}: {mtu}");
        assert_eq!(network.falls, 0, "{passes}");
    }
}

/// With the system's word, as on a direct link, the very size is found, and at the first try.
#[test]
fn the_systems_limit_is_tried_first() {
    for limit in (1_172..=1_472).step_by(20) {
        let mut network = Network::v4(limit);
        network.limit = Some(limit);
        network.run(secs(2));
        assert_eq!(network.path.mtu(), limit.min(CEILING));
        let first = if limit > 1_200 {
            limit.min(CEILING)
        } else {
            CEILING
        };
        assert_eq!(network.probes[..2], [SMALL, first]);
    }
}

/// 1 s between confirmations and three probes of 0.3 s each: lowered within 2 s, to the start if that passes, else to the floor. IPv6
/// has no path below its start.
#[test]
fn a_black_hole_shows_within_two_seconds() {
    for (config, passes, expected) in [
        (PathMtuConfig::UDP_V4, 1_252, 1_200),
        (PathMtuConfig::UDP_V4, 1_199, 524),
        (PathMtuConfig::UDP_V6, 1_232, 1_232),
    ] {
        for phase in 0..250 {
            let mut network = Network::new(config, 1_452);
            network.until(CEILING, CEILING);
            network.run(secs(3) + TICK * phase);
            network.passes = passes;
            let took = network.until(0, CEILING - 1);
            assert!(took <= secs(2), "{took:?}");
            assert_eq!(network.path.mtu(), expected);
        }
    }
}

/// A link that gets large again is used within 60 s, whatever the time of the last search.
#[test]
fn the_mtu_rises_within_a_minute() {
    for phase in 0..40 {
        let mut network = Network::v4(1_472);
        network.until(CEILING, CEILING);
        network.passes = 1_252;
        network.run(secs(20 + phase));
        assert!((1_236..=1_252).contains(&network.path.mtu()));
        network.passes = 1_472;
        let took = network.until(CEILING, CEILING);
        assert!(took <= secs(60), "{took:?}");
    }
}

/// Neither loss of everything nor of every tenth packet is a black hole; the latter may look like one now and then, but not for long.
#[test]
fn outages_and_loss_do_not_lower_the_mtu_for_long() {
    let mut network = Network::v4(1_472);
    network.until(CEILING, CEILING);
    network.passes = 0;
    network.run(secs(30));
    network.passes = 1_472;
    network.run(secs(30));
    assert_eq!((network.falls, network.path.mtu()), (0, CEILING));

    network.loss = 0.1;
    let mut lowered = 0;
    for _ in 0..60_000 {
        network.tick();
        lowered += usize::from(network.path.mtu() < CEILING);
    }
    assert!(lowered < 60_000 / 20, "{lowered}");
}

/// A hole that opens and closes each second lowers the MTU a few times, and then the pauses between searches are long.
#[test]
fn a_hole_that_comes_and_goes_has_a_bounded_effect() {
    let mut network = Network::v4(1_472);
    for second in 0..600 {
        network.passes = if second % 2 == 0 { 1_472 } else { 1_252 };
        network.run(secs(1));
    }
    assert!(network.falls <= 30, "{}", network.falls);
    // Below 3 kB a second.
    let octets: usize = network.probes.iter().sum();
    assert!(octets < 600 * 3_000, "{octets}");
}

/// Five questions are all that a neighbour gets that knows no probes, and one a minute; its MTU is the system's, or the start.
#[test]
fn a_neighbour_without_answers_gets_what_the_system_says() {
    let mut network = Network::v4(1_472);
    network.answers = false;
    network.run(secs(30));
    assert_eq!(network.path.mtu(), 1_200);
    network.limit = Some(1_472);
    network.run(secs(2));
    assert_eq!(network.path.mtu(), CEILING);
    for (limit, expected) in [(1_252, 1_252), (40, 524), (1_472, CEILING)] {
        network.limit = Some(limit);
        network.run(secs(3));
        assert_eq!(network.path.mtu(), expected);
    }
    network.run(secs(200) - network.now.since(Instant::ZERO));
    assert_eq!(network.probes, [SMALL; 5 + 3]);
    network.answers = true;
    network.run(secs(61));
    assert_eq!(network.path.answers, Answers::Yes);
}

/// A forged ICMP message that names 68 octets lowers the MTU to the floor at most, and probes prove it wrong within a minute though the
/// system still believes it.
#[test]
fn a_forged_limit_is_proved_wrong() {
    let mut network = Network::v4(1_472);
    network.limit = Some(1_472);
    network.until(CEILING, CEILING);
    network.limit = Some(40);
    let now = network.now;
    network.path.on_too_large(now, 1_300, network.limit);
    assert_eq!(network.path.mtu(), 524);
    let took = network.until(CEILING, CEILING);
    assert!(took <= secs(60), "{took:?}");
    network.run(secs(120));
    assert_eq!(network.path.mtu(), CEILING);
    assert_eq!(network.falls, 0);
}

/// Answers that repeat no probe's octets do nothing, and neither do those to probes from before the path changed.
#[test]
fn liars_do_not_raise_the_mtu() {
    let mut network = Network::v4(1_252);
    network.run(secs(5));
    let mtu = network.path.mtu();
    let mut random = Random::from_seed(1);
    for _ in 0..1_000 {
        network.tick();
        let now = network.now;
        for length in 0..20 {
            let mut forged = vec![0; length];
            random.fill(&mut forged);
            network.path.handle_answer(now, &forged);
        }
        assert!(network.path.mtu() <= mtu.max(1_252));
    }
    let nonces: Vec<_> = network.path.outstanding.iter().map(|it| it.nonce).collect();
    assert!(!nonces.is_empty());
    let now = network.now;
    network.path.on_too_large(now, 600, Some(560));
    nonces
        .iter()
        .for_each(|it| network.path.handle_answer(now, it));
    assert_eq!(network.path.mtu(), 560);
}

/// Refused for all sizes, the MTU stays at the floor, and timers do not run faster than every 10 ms.
#[test]
fn refusal_of_all_sizes_is_bounded() {
    let mut network = Network::v4(0);
    let mut due = 0;
    for _ in 0..6_000 {
        network.tick();
        let (now, mtu) = (network.now, network.path.mtu());
        network.path.on_too_large(now, mtu, None);
        due += usize::from(network.path.poll_timeout().is_some_and(|due| due <= now));
        assert!((524..=1_200).contains(&network.path.mtu()));
    }
    assert_eq!(network.path.mtu(), 524);
    assert!(network.probes.len() < 100 && due < 100);
}

/// While nothing large leaves, nothing is due, and packets pass unseen up to the floor.
#[test]
fn a_quiet_path_is_not_probed() {
    let mut path = PathMtu::new(PathMtuConfig::UDP_V4, CEILING);
    assert_eq!((path.unwatched(), path.poll_timeout()), (524, None));
    path.on_packet(Instant::ZERO, 524);
    assert_eq!(path.poll_timeout(), None);
    path.on_packet(Instant::ZERO, 525);
    assert_eq!(path.poll_timeout(), Some(Instant::ZERO));
    assert_eq!(path.unwatched(), usize::MAX);
    // A face whose MTU is at the floor has nothing to find.
    let mut path = PathMtu::new(PathMtuConfig::UDP_V4, 524);
    path.on_packet(Instant::ZERO, 525);
    assert_eq!((path.mtu(), path.poll_timeout()), (524, None));
}

/// For random events in any order, the MTU stays between the floor and the ceiling, no probe exceeds the ceiling, and queues are bounded.
#[test]
fn bounds_hold_whatever_happens() {
    for seed in 0..200 {
        let mut random = Random::from_seed(seed);
        let config = [PathMtuConfig::UDP_V4, PathMtuConfig::UDP_V6][random.below(2) as usize];
        let mut network = Network::new(config, 1_472);
        let mut ceiling = CEILING;
        for _ in 0..1_000 {
            let (now, any) = (network.now, random.below(2_000) as usize);
            match random.below(12) {
                0 => network.passes = any,
                1 => network.limit = random.chance(0.8).then_some(any),
                2 => network.path.on_too_large(now, any, network.limit),
                3 => network.answers = random.chance(0.7),
                4 => network.loss = random.unit() / 2.0,
                5 if random.chance(0.1) => {
                    ceiling = 64 + random.below(1_337) as usize;
                    network.path.set_ceiling(ceiling);
                }
                6 => network.run(secs(1)),
                _ => network.tick(),
            }
            let mtu = network.path.mtu();
            assert!(
                (config.floor.min(ceiling)..=ceiling).contains(&mtu),
                "{seed}: {mtu}"
            );
            assert!(network.probes.drain(..).all(|size| size <= CEILING));
            assert!(network.path.outstanding.len() <= MAX_OUTSTANDING);
            assert!(network.path.output.is_empty());
        }
    }
}
