//! Two ends over links that lose, delay, overtake and double.

use super::*;

/// What a link does to frames.
#[derive(Clone, Copy, Debug)]
struct Channel {
    loss: f64,
    duplicate: f64,
    delay: u64,
    /// Milliseconds that may be added, so that frames overtake each other.
    jitter: u64,
}

/// Two ends in virtual time of milliseconds.
struct Pair {
    channel: Channel,
    random: Random,
    ends: [Reliability; 2],
    /// Frames under way by arrival, order and direction.
    flying: BTreeMap<(u64, u64, usize), Bytes>,
    sent: u64,
    /// Sequences that each end handed on, in order.
    delivered: [Vec<u64>; 2],
}

impl Pair {
    fn new(channel: Channel, seed: u64) -> Self {
        let end = || Reliability::new(ReliabilityConfig::default(), Some(1_400));
        Self {
            channel,
            random: Random::from_seed(seed),
            ends: [end(), end()],
            flying: BTreeMap::new(),
            sent: 0,
            delivered: [Vec::new(), Vec::new()],
        }
    }

    fn put(&mut self, at: u64, from: usize, frame: &Bytes) {
        let copies = 1 + u64::from(self.random.chance(self.channel.duplicate));
        for _ in 0..copies {
            let arrival = at + self.channel.delay + self.random.below(self.channel.jitter + 1);
            self.sent += 1;
            if !self.random.chance(self.channel.loss) {
                self.flying
                    .insert((arrival, self.sent, 1 - from), frame.clone());
            }
        }
    }

    fn send(&mut self, at: u64, from: usize, sequence: u64) {
        let frame = self.ends[from].send(ms(at), piece(sequence, 0, 1));
        self.put(at, from, &frame);
    }

    fn step(&mut self, at: u64) {
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= at
        {
            let ((_, _, to), frame) = entry.remove_entry();
            let packet = decode(frame);
            if self.ends[to].handle_packet(ms(at), &packet) && packet.fragment.is_some() {
                self.delivered[to].push(packet.sequence.unwrap());
            }
        }
        for end in [0, 1] {
            self.ends[end].handle_timeout(ms(at));
            while let Some(frame) = self.ends[end].poll_output(ms(at)) {
                self.put(at, end, &frame);
            }
        }
    }
}

/// 5000 packets each way, 20 % lost, 10 % doubled, overtaking by up to 15 of 25 ms: each arrives once, but for one that
/// was sent before the peer had been heard of, or lost 8 times (0.2⁸); then all tables are empty. More are given up than do
/// not arrive, as Acks are lost as well: (1 − 0.8²)⁸ · 5000 = 1.4.
#[test]
fn whatever_the_link_does_everything_arrives_once() {
    const PACKETS: u64 = 5_000;
    for seed in 0..4 {
        let channel = Channel {
            loss: 0.2,
            duplicate: 0.1,
            delay: 25,
            jitter: 15,
        };
        let mut pair = Pair::new(channel, seed);
        for at in 0..PACKETS + 10_000 {
            for end in [0, 1] {
                if at < PACKETS {
                    pair.send(at, end, at);
                }
            }
            pair.step(at);
        }
        for end in [0, 1] {
            let once: BTreeSet<u64> = pair.delivered[end].iter().copied().collect();
            assert_eq!(once.len(), pair.delivered[end].len(), "twice, seed {seed}");
            assert!(once.len() as u64 >= PACKETS - 1, "{} {seed}", once.len());
            let this = &mut pair.ends[end];
            assert_eq!((this.poll_timeout(), this.sender.sizes().0), (None, 0));
            assert_eq!(this.sender.sizes().1, 0);
            assert!(this.take_given_up() <= 8);
        }
    }
}

/// On a link that only delays, nothing is sent twice, even where frames overtake by less than the link's variation.
#[test]
fn a_good_link_carries_everything_once() {
    for (delay, jitter) in [(0, 0), (1, 0), (25, 0), (100, 0), (300, 0), (25, 2)] {
        let channel = Channel {
            loss: 0.0,
            duplicate: 0.0,
            delay,
            jitter,
        };
        let mut pair = Pair::new(channel, 1);
        for at in 0..4_000 {
            if at < 3_000 && at % 5 == 0 {
                pair.send(at, 0, at);
            }
            pair.step(at);
        }
        let counters = pair.ends[0].counters();
        // Before the first Ack there is only the initial RTO of 250 ms to go by, which 600 ms are beyond.
        let early = if delay > 125 { 150 } else { 0 };
        assert!(counters.retransmitted <= early, "{delay}: {counters:?}");
        assert!(pair.delivered[1].len() == 600 && counters.acknowledged >= 600 - early);
    }
}
