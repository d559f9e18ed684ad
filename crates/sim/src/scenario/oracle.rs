//! What a sender could reach that knows all of a link's future.

use namecast_netem::Schedule;
use namecast_units::{Bitrate, Duration, Instant};
use smart_default::SmartDefault;

/// Capacity is taken from a schedule in steps of so long, and as if it came evenly within each.
const BIN: Duration = Duration::from_millis(100);

/// Most frames: some ten hours of video.
const MAX_FRAMES: u64 = 1 << 20;

/// A stream, and how long it is watched.
#[derive(Clone, Debug, PartialEq, SmartDefault)]
pub struct OracleConfig {
    /// Bitrates of the rungs, lowest first, without headers.
    #[default([150, 300, 600, 1_200, 2_500, 5_000, 8_000] .map(Bitrate::kbps) .to_vec())]
    pub rungs: Vec<Bitrate>,
    /// Octets on the wire for each octet of a frame.
    #[default(1.12)]
    pub overhead: f64,
    /// Rate of what comes before all frames, headers included: sound.
    #[default(Bitrate::kbps(90))]
    pub sound: Bitrate,
    /// Frames per second.
    #[default(30)]
    pub frame_rate: u32,
    /// Frames of a group, of which the first is a key frame.
    #[default(60)]
    pub key_interval: u32,
    /// Size of a key frame, in others.
    #[default(4.5)]
    pub key_size: f64,
    /// Time from a frame's capture to when it must have passed the link.
    #[default(Duration::from_millis(250))]
    pub target: Duration,
    /// Frames captured within this time from the schedule's zero on count.
    #[default(Duration::from_secs(126))]
    pub duration: Duration,
}

/// The best that can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Oracle {
    /// Share of frames that pass the link in time.
    pub in_time_share: f64,
    /// Mean bitrate of these, without headers, over the whole time.
    pub bitrate: Bitrate,
}

/// The largest share of frames in time over a link with this schedule and, among all ways to reach it, the highest mean
/// bitrate. A group of frames is sent on one rung; where none of them fits with all its frames, those of the lowest that do.
///
/// It is a bound and nobody reaches it: the sender knows the future, frames need neither others to be decoded nor time on
/// other links, and a frame that would be late is never begun. Sound is served first, and gives up what is older than the target.
///
/// Frames are sent in order, so a state is how much capacity the frames so far have taken, and what they were worth. States that
/// take more for no more are left out, which loses nothing; few remain. A stream without rungs, frames or time gives
/// zero; frames beyond the first 2²⁰ are not looked at.
pub fn oracle(schedule: &Schedule, config: &OracleConfig) -> Oracle {
    let Some(stream) = Stream::new(config) else {
        return Oracle::default();
    };
    let capacity = Capacity::new(schedule, config);
    let mut states = vec![State::default()];
    let mut first = 0;
    while first < stream.frames {
        let end = (first + u64::from(config.key_interval)).min(stream.frames);
        let frames: Vec<_> = (first..end)
            .map(|number| stream.frame(&capacity, number))
            .collect();
        let next_release = capacity.until(stream.captured(end));
        let mut next = Vec::new();
        for state in &states {
            stream.extend(*state, &frames, &mut next);
        }
        // What is not used before the next frame is there is lost.
        next.iter_mut()
            .for_each(|state: &mut State| state.taken = state.taken.max(next_release));
        states = best(next);
        first = end;
    }
    let best = states.last().copied().unwrap_or_default();
    let seconds = stream.frames as f64 / f64::from(config.frame_rate);
    Oracle {
        in_time_share: best.in_time as f64 / stream.frames as f64,
        bitrate: Bitrate::bps((best.bits / seconds).round() as u64),
    }
}

/// A way to send the frames so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct State {
    /// Capacity until the last of them has passed, in bits since the schedule's zero, used or lost.
    taken: f64,
    in_time: u64,
    /// Of frames in time, without headers.
    bits: f64,
}

impl State {
    /// Whether it is worth more.
    fn beats(&self, other: &Self) -> bool {
        (self.in_time, self.bits) > (other.in_time, other.bits)
    }
}

/// Those of which no other takes at most as much and is worth as much, by what they take.
fn best(mut states: Vec<State>) -> Vec<State> {
    states.sort_by(|a, b| {
        let worth = (b.in_time.cmp(&a.in_time)).then(b.bits.total_cmp(&a.bits));
        a.taken.total_cmp(&b.taken).then(worth)
    });
    let mut kept: Vec<State> = Vec::new();
    for state in states {
        if kept.last().is_none_or(|last| state.beats(last)) {
            kept.push(state);
        }
    }
    kept
}

/// A frame's time on the link, in bits of capacity since the schedule's zero.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// When it was captured.
    release: f64,
    /// When it must have passed.
    deadline: f64,
    /// Its size on the wire at 1 bit/s of the rung.
    size: f64,
}

impl Frame {
    /// What is taken once it has passed after `taken`, if that is in time.
    fn pass(&self, taken: f64, rung: f64) -> Option<f64> {
        let end = taken.max(self.release) + self.size * rung;
        // Sums of fractions of bits are not exact.
        (end <= self.deadline + 1e-3).then_some(end)
    }
}

struct Stream<'a> {
    config: &'a OracleConfig,
    frames: u64,
    /// Share of a group's size that a frame has which is no key frame.
    delta: f64,
    /// Seconds of a group.
    group: f64,
}

impl<'a> Stream<'a> {
    /// None if there is nothing to send.
    fn new(config: &'a OracleConfig) -> Option<Self> {
        let frames = config.duration.as_nanos() * u128::from(config.frame_rate) / 1_000_000_000;
        let frames = u64::try_from(frames).unwrap_or(u64::MAX).min(MAX_FRAMES);
        let interval = f64::from(config.key_interval);
        let is_stream = frames > 0 && config.key_interval > 0 && !config.rungs.is_empty();
        is_stream.then(|| Self {
            config,
            frames,
            delta: 1.0 / (interval - 1.0 + config.key_size),
            group: interval / f64::from(config.frame_rate),
        })
    }

    fn captured(&self, number: u64) -> Duration {
        let rate = u64::from(self.config.frame_rate);
        let rest = number % rate * 1_000_000_000 / rate;
        Duration::from_secs(number / rate) + Duration::from_nanos(rest)
    }

    fn frame(&self, capacity: &Capacity, number: u64) -> Frame {
        let captured = self.captured(number);
        let is_key = number.is_multiple_of(u64::from(self.config.key_interval));
        let share = if is_key { self.config.key_size } else { 1.0 } * self.delta;
        Frame {
            release: capacity.until(captured),
            deadline: capacity.until(captured + self.config.target),
            size: share * self.group * self.config.overhead,
        }
    }

    /// Adds what can become of a state with the frames of a group.
    fn extend(&self, state: State, frames: &[Frame], next: &mut Vec<State>) {
        let seconds = frames.len() as f64 / f64::from(self.config.frame_rate);
        for (place, rung) in self.config.rungs.iter().enumerate() {
            let rung = rung.as_bps() as f64;
            let mut all = frames.iter();
            let taken = all.try_fold(state.taken, |taken, frame| frame.pass(taken, rung));
            if let Some(taken) = taken {
                next.push(State {
                    taken,
                    in_time: state.in_time + frames.len() as u64,
                    bits: state.bits + rung * seconds,
                });
            } else if place == 0 {
                let some = min_taken(state.taken, frames, rung);
                next.extend((0_u64..).zip(some).map(|(count, taken)| State {
                    taken,
                    in_time: state.in_time + count,
                    bits: state.bits + rung * count as f64 / f64::from(self.config.frame_rate),
                }));
            }
        }
    }
}

/// The least that is taken if none, one, two … of the frames pass in time, up to as many as can.
fn min_taken(taken: f64, frames: &[Frame], rung: f64) -> Vec<f64> {
    let mut least = vec![taken];
    for frame in frames {
        let more = frame.pass(least[least.len() - 1], rung);
        for count in (1..least.len()).rev() {
            let with = frame.pass(least[count - 1], rung);
            least[count] = with.map_or(least[count], |with| with.min(least[count]));
        }
        least.extend(more);
    }
    least
}

/// Bits that frames can have, until each bin's end.
struct Capacity(Vec<f64>);

impl Capacity {
    fn new(schedule: &Schedule, config: &OracleConfig) -> Self {
        // One more for what is captured last, and one for what a bin is looked up at its very end.
        let span = config.duration + config.target;
        let bins = usize::try_from(span.as_nanos() / BIN.as_nanos()).unwrap_or(usize::MAX);
        let bins = bins.min(usize::try_from(MAX_FRAMES).expect("it is small")) + 2;
        let mut at = Instant::ZERO;
        let mut before = 0;
        let mut sum = 0.0;
        let mut sums = vec![sum];
        let sound = config.sound.as_bps() as f64;
        let max_waiting = sound * config.target.as_secs_f64();
        let mut waiting = 0.0;
        for _ in 0..bins {
            at += BIN;
            let until = schedule.capacity_until(at).as_bits();
            let bits = (until - before) as f64;
            before = until;
            waiting += sound * BIN.as_secs_f64();
            let served = bits.min(waiting);
            waiting = (waiting - served).min(max_waiting);
            sum += bits - served;
            sums.push(sum);
        }
        Self(sums)
    }

    fn until(&self, at: Duration) -> f64 {
        let bins = at.as_secs_f64() / BIN.as_secs_f64();
        let whole = (bins as usize).min(self.0.len() - 2);
        let (from, to) = (self.0[whole], self.0[whole + 1]);
        from + (to - from) * (bins - whole as f64).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use namecast_units::Random;

    use super::*;

    fn rates(rates: &[(u64, u64)]) -> Schedule {
        let rates = rates
            .iter()
            .map(|&(millis, kilobits)| (Duration::from_millis(millis), Bitrate::kbps(kilobits)));
        Schedule::from_rates(&rates.collect::<Vec<_>>()).unwrap()
    }

    /// All frames of one size, without headers or sound.
    fn plain(rungs: &[u64]) -> OracleConfig {
        OracleConfig {
            rungs: rungs.iter().map(|&rung| Bitrate::kbps(rung)).collect(),
            overhead: 1.0,
            sound: Bitrate::ZERO,
            key_size: 1.0,
            duration: Duration::from_secs(20),
            ..OracleConfig::default()
        }
    }

    /// At 2.7 Mbit/s, sound leaves 2.61, and 2.5 with headers take 2.8. A bit less than that, and 1.2 take 1.344 only; the
    /// key frame of 4.5 others has 4.5/63.5 of two seconds' bits, 190 kbit, for which 250 ms are enough.
    #[test]
    fn a_constant_rate_carries_the_highest_rung_that_fits() {
        let config = OracleConfig::default();
        let reached = oracle(&rates(&[(0, 2_700)]), &config);
        let expected = Oracle {
            in_time_share: 1.0,
            bitrate: Bitrate::kbps(1_200),
        };
        assert!((reached.in_time_share - 1.0).abs() < 1e-9, "{reached:?}");
        assert!(
            reached.bitrate > expected.bitrate,
            "it takes 2.5 Mbit/s now and then: {reached:?}"
        );
        let steady = OracleConfig {
            rungs: [150, 1_200, 2_500].map(Bitrate::kbps).to_vec(),
            key_size: 1.0,
            ..config
        };
        assert_eq!(oracle(&rates(&[(0, 1_435)]), &steady), expected);
        let just = oracle(&rates(&[(0, 2_891)]), &steady);
        assert_eq!(just.bitrate, Bitrate::kbps(2_500));
    }

    /// 1 Mbit/s but for one of twenty seconds: at 500 kbit/s, what is captured in the last 250 ms of that second can still pass
    /// at twice its rate, and all before is late: 0.75 s of 30 frames a second, give or take those at the edges.
    #[test]
    fn an_interruption_of_a_second_costs_its_frames_but_those_that_can_wait() {
        let schedule = rates(&[(0, 1_000), (5_000, 0), (6_000, 1_000), (20_000, 0)]);
        let reached = oracle(&schedule, &plain(&[500]));
        let lost = (1.0 - reached.in_time_share) * 600.0;
        assert!((21.0..=30.0).contains(&lost), "{lost}");
        let longer = OracleConfig {
            target: Duration::from_millis(1_300),
            ..plain(&[400])
        };
        let all = oracle(&schedule, &longer);
        assert!((all.in_time_share - 1.0).abs() < 1e-9, "{all:?}");
        let without = oracle(&rates(&[(0, 1_000)]), &plain(&[500]));
        assert_eq!(
            (without.in_time_share, without.bitrate),
            (1.0, Bitrate::kbps(500))
        );
    }

    /// Every choice of a rung or of some frames of the lowest for each group, one by one.
    fn brute(schedule: &Schedule, config: &OracleConfig) -> (u64, f64) {
        let stream = Stream::new(config).unwrap();
        let capacity = Capacity::new(schedule, config);
        let all: Vec<_> = (0..stream.frames)
            .map(|it| stream.frame(&capacity, it))
            .collect();
        let groups: Vec<_> = all.chunks(config.key_interval as usize).collect();
        let mut ways = vec![(0.0, 0, 0.0)];
        for group in groups {
            let mut next = Vec::new();
            for &(taken, count, bits) in &ways {
                for rung in &config.rungs {
                    for chosen in 0_u32..1 << group.len() {
                        let whole = chosen.count_ones() as usize == group.len();
                        if !whole && rung != &config.rungs[0] {
                            continue;
                        }
                        let rung = rung.as_bps() as f64;
                        let sent =
                            (group.iter().enumerate()).filter(|(at, _)| chosen >> at & 1 == 1);
                        let mut end = taken;
                        let in_time = sent.fold(true, |in_time, (_, frame)| {
                            end = f64::max(end, frame.release) + frame.size * rung;
                            in_time && end <= frame.deadline + 1e-3
                        });
                        if in_time {
                            let frames = u64::from(chosen.count_ones());
                            let rate = f64::from(config.frame_rate);
                            next.push((end, count + frames, bits + rung * frames as f64 / rate));
                        }
                    }
                }
            }
            ways = next;
        }
        let worth = ways.into_iter().map(|(_, count, bits)| (count, bits));
        worth.fold((0, 0.0), |best, way| if way > best { way } else { best })
    }

    #[test]
    fn nothing_better_is_found_by_trying_all_choices() {
        let mut random = Random::from_seed(11);
        let mut partial = 0;
        for seed in 0..60 {
            let pieces: Vec<_> = (0..12)
                .map(|piece| (piece * 150, [0, 100, 400, 1_500][random.below(4) as usize]))
                .chain([(1_800, 0), (1_801, 1)])
                .collect();
            let schedule = rates(&pieces);
            let config = OracleConfig {
                frame_rate: 6,
                key_interval: 3,
                key_size: 2.0,
                sound: Bitrate::kbps(random.below(2) * 20),
                duration: Duration::from_millis(1_500),
                target: Duration::from_millis(150 + random.below(300)),
                ..plain(&[100, 250, 600])
            };
            let reached = oracle(&schedule, &config);
            let (count, bits) = brute(&schedule, &config);
            let share = count as f64 / 9.0;
            assert!(
                (reached.in_time_share - share).abs() < 1e-9,
                "{seed}: {reached:?}, {share}"
            );
            let bitrate = bits / 1.5;
            let found = reached.bitrate.as_bps() as f64;
            assert!((found - bitrate).abs() < 1.0, "{seed}: {found}, {bitrate}");
            partial += u32::from((1..9).contains(&count));
        }
        assert!(partial > 20, "{partial}");
    }

    #[test]
    fn nothing_to_send_is_no_error() {
        let schedule = rates(&[(0, 100)]);
        for config in [
            plain(&[]),
            OracleConfig {
                duration: Duration::ZERO,
                ..plain(&[100])
            },
            OracleConfig {
                frame_rate: 0,
                ..plain(&[100])
            },
            OracleConfig {
                key_interval: 0,
                ..plain(&[100])
            },
        ] {
            assert_eq!(oracle(&schedule, &config), Oracle::default());
        }
    }
}
