//! The random processes behind the models.

use namecast_units::{Bitrate, Random};

use super::Model;
use crate::jitter::standard_normal;
use crate::schedule::OPPORTUNITY_BYTES;

/// The rate is drawn anew so often: a radio's scheduling changes little within it.
const TICK_MILLIS: u32 = 10;
const TICK: f64 = TICK_MILLIS as f64 / 1e3;

/// How a model behaves. Times are in seconds.
pub(super) struct Parameters {
    /// Deviation of the rate's logarithm and correlation time, over seconds: how good the place is.
    pub(super) slow: (f64, f64),
    /// The same, over fractions of a second: fading and scheduling.
    pub(super) fast: (f64, f64),
    /// Least and largest multiple of the median rate.
    pub(super) bounds: (f64, f64),
    pub(super) silence: Option<Silence>,
    /// Mean number of datagrams in a clump.
    pub(super) clump: f64,
    pub(super) contention: Option<Contention>,
    pub(super) assignment: Option<Assignment>,
}

/// Times without any delivery.
pub(super) struct Silence {
    /// Mean time from the end of one to the next while the rate is at its median; at a rate of r medians, r times that.
    pub(super) every: f64,
    pub(super) shortest: f64,
    /// Longer ones are cut.
    pub(super) longest: f64,
    /// α of the Pareto distribution: a length above x has probability (shortest/x)^α.
    pub(super) exponent: f64,
}

/// Bursts of others' traffic that take a part of the rate.
pub(super) struct Contention {
    /// Mean time from the end of one to the next.
    pub(super) every: f64,
    /// Mean length.
    pub(super) lasts: f64,
    /// What they leave: between these shares, each equally likely.
    pub(super) share: (f64, f64),
}

/// Another satellite at fixed times.
pub(super) struct Assignment {
    pub(super) every: f64,
    /// Deviation of the logarithm of the rate from one to the next.
    pub(super) deviation: f64,
    /// Shortest and longest gap.
    pub(super) gap: (f64, f64),
}

/// An Ornstein–Uhlenbeck process, stepped by ticks: x ← a·x + √(1−a²)·deviation·N(0, 1) with a = exp(−tick/time).
struct Walk {
    value: f64,
    keep: f64,
    kick: f64,
}

impl Walk {
    /// It starts as it goes on: with its stationary distribution.
    fn new((deviation, time): (f64, f64), random: &mut Random) -> Self {
        let keep = libm::exp(-TICK / time);
        Self {
            value: deviation * standard_normal(random),
            keep,
            kick: deviation * (1.0 - keep * keep).sqrt(),
        }
    }

    fn step(&mut self, random: &mut Random) -> f64 {
        self.value = self.keep * self.value + self.kick * standard_normal(random);
        self.value
    }
}

/// Times of deliveries in milliseconds over a period, at `mean` rate.
pub(super) fn deliveries(parameters: &Parameters, mean: Bitrate, seed: u64) -> Vec<u32> {
    let mut random = Random::from_seed(seed);
    let levels = levels(parameters, &mut random);
    let sum: f64 = levels.iter().sum();
    // Clumps in a millisecond at level 1, so that all of them together have the mean.
    let datagrams = mean.as_bps() as f64 / (8 * OPPORTUNITY_BYTES) as f64;
    let unit = datagrams / 1e3 * levels.len() as f64 / sum / parameters.clump;
    let mut times = Vec::new();
    let mut until_next = exponential(&mut random);
    for (tick, level) in levels.iter().enumerate() {
        let start = u32::try_from(tick).expect("a period has few ticks") * TICK_MILLIS;
        for time in start..start + TICK_MILLIS {
            // A Poisson process of changing rate: exponential steps of the integral of the rate.
            until_next -= unit * level;
            while until_next < 0.0 {
                until_next += exponential(&mut random);
                times.push(time);
                while random.chance(1.0 - 1.0 / parameters.clump) {
                    times.push(time);
                }
            }
        }
    }
    let period = u32::try_from(Model::PERIOD.as_millis()).expect("it is some minutes");
    // The last one makes the period.
    times.push(period);
    times
}

/// Returns the rate of each tick, in some unit.
fn levels(parameters: &Parameters, random: &mut Random) -> Vec<f64> {
    let mut slow = Walk::new(parameters.slow, random);
    let mut fast = Walk::new(parameters.fast, random);
    let mut silent = 0.0;
    let mut contended = 0.0;
    let mut contender_share = 1.0;
    let mut assigned = Assigned::default();
    let ticks = (Model::PERIOD.as_secs_f64() / TICK).round() as u32;
    let mut levels = Vec::new();
    for tick in 0..ticks {
        if let Some(assignment) = &parameters.assignment {
            assigned.step(assignment, f64::from(tick) * TICK, random);
        }
        let place = slow.step(random) + assigned.logarithm;
        let (least, most) = parameters.bounds;
        let level = libm::exp(place + fast.step(random)).clamp(least, most);
        silent -= TICK;
        assigned.gap -= TICK;
        if let Some(silence) = &parameters.silence
            && silent <= 0.0
            && random.chance(TICK / (silence.every * libm::exp(place)))
        {
            silent = silence.length(random);
        }
        contended -= TICK;
        if let Some(contention) = &parameters.contention
            && contended <= 0.0
        {
            contender_share = 1.0;
            if random.chance(TICK / contention.every) {
                contended = contention.lasts * exponential(random);
                contender_share = between(contention.share, random);
            }
        }
        let is_silent = silent > 0.0 || assigned.gap > 0.0;
        levels.push(if is_silent {
            0.0
        } else {
            level * contender_share
        });
    }
    levels
}

/// The satellite of the moment.
#[derive(Default)]
struct Assigned {
    until: f64,
    logarithm: f64,
    gap: f64,
}

impl Assigned {
    fn step(&mut self, assignment: &Assignment, at: f64, random: &mut Random) {
        if at >= self.until {
            self.until += assignment.every;
            self.logarithm = assignment.deviation * standard_normal(random);
            // A tick is taken off before it is looked at.
            self.gap = between(assignment.gap, random) + TICK;
        }
    }
}

impl Silence {
    fn length(&self, random: &mut Random) -> f64 {
        // In (0, 1].
        let u = 1.0 - random.unit();
        (self.shortest * libm::pow(u, -1.0 / self.exponent)).min(self.longest)
    }
}

fn between((least, most): (f64, f64), random: &mut Random) -> f64 {
    least + (most - least) * random.unit()
}

/// Returns a draw from the exponential distribution with mean 1.
fn exponential(random: &mut Random) -> f64 {
    -libm::log(1.0 - random.unit())
}
