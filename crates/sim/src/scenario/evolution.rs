//! A rate controller alone, on a path that does exactly what a closed form assumes.

use std::collections::VecDeque;

use namecast_stream::path::Feedback;
use namecast_stream::rate::{Arrival, Loss, Lost, RateControl, RateController};
use namecast_units::{Bitrate, ByteSize, Duration, Instant, Random};
use serde::{Deserialize, Serialize};

use super::{Choice, Outcome, ScenarioError, Series};

/// Content of every packet: the papers' s.
const SIZE: ByteSize = ByteSize::bytes(1_024);
/// Time between two points of the curve: the papers' P.
const SAMPLE: Duration = Duration::from_millis(10);
/// Most points of the curve.
const MAX_SAMPLES: u128 = 1_000_000;

/// What a controller is told.
///
/// | metric | meaning |
/// |---|---|
/// | `time` | seconds from when the rate first reaches `from` until it reaches `until`; the rest of the run if it never does |
/// | `slope` | mean growth of the rate over the whole run, Mbit/s per second |
/// | `rate`, `pps` | mean rate over the second half, in Mbit/s of content and in packets of 1024 octets a second |
/// | `last-pps` | the same at the end |
///
/// The series `rate` is the rate over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Evolution {
    /// The controller.
    pub controller: Choice<RateControl>,
    /// What the path does.
    pub path: Path,
    /// How long it goes on.
    #[serde(with = "namecast_units::duration")]
    pub duration: Duration,
    /// Lose the first packet, which ends a start phase.
    #[serde(default)]
    pub first_lost: bool,
    /// Rate from which `time` counts.
    #[serde(default)]
    pub from: Option<Bitrate>,
    /// Rate at which `time` ends.
    #[serde(default)]
    pub until: Option<Bitrate>,
}

/// A path of any bandwidth with a round-trip time of 20 ms, and:
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "kind")]
pub enum Path {
    /// Nothing else.
    Idle,
    /// A round-trip time that grows all the time, by 20 ms at once and by 50 ms each second.
    Congested,
    /// Nothing arrives any more after some time.
    Blackout {
        /// When.
        #[serde(with = "namecast_units::duration")]
        after: Duration,
    },
    /// Packets are lost at random.
    Loss {
        /// With this probability.
        share: f64,
        /// The round-trip time instead of 20 ms.
        #[serde(with = "namecast_units::duration")]
        rtt: Duration,
    },
    /// After a second the round-trip time rises by 20 ms for good, with a random addition that keeps the order.
    Jitter {
        /// At most this much.
        #[serde(with = "namecast_units::duration")]
        spread: Duration,
    },
}

const RTT: Duration = Duration::from_millis(20);

impl Evolution {
    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        let samples = self.duration.as_nanos() / SAMPLE.as_nanos();
        if !(1..=MAX_SAMPLES).contains(&samples) {
            return Err(ScenarioError::new("duration", "expected 10ms to 10000s"));
        }
        if let Path::Loss { share, .. } = self.path
            && !(0.0..1.0).contains(&share)
        {
            return Err(ScenarioError::new("path.share", "expected 0 to below 1"));
        }
        self.controller().map(drop)
    }

    fn controller(&self) -> Result<RateControl, ScenarioError> {
        let controller = self.controller.get();
        controller.map_err(|problem| ScenarioError::new("controller", problem))
    }

    pub(super) fn run(&self, seed: u64) -> Result<Outcome, ScenarioError> {
        self.validate()?;
        let controller = self.controller()?.build(Instant::ZERO);
        if controller.target().rate.is_none() {
            let problem = "expected one that sets a rate; windows need a network";
            return Err(ScenarioError::new("controller", problem));
        }
        let mut pipe = Pipe {
            controller,
            random: Random::from_seed(seed),
            under_way: VecDeque::new(),
            sent_at: Instant::ZERO,
            arrived_at: Instant::ZERO,
            is_first: self.first_lost,
        };
        let mut points = Vec::new();
        let end = Instant::ZERO + self.duration;
        let mut at = Instant::ZERO;
        while at < end {
            at += SAMPLE;
            pipe.run_until(at, &self.path);
            points.push((at.since(Instant::ZERO).as_secs_f64(), pipe.megabits()));
        }
        Ok(self.outcome(points))
    }

    fn outcome(&self, points: Vec<(f64, f64)>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut metric = |name: &str, value: f64| {
            outcome.metrics.insert(name.to_owned(), value);
        };
        let (first, last) = (points[0], points[points.len() - 1]);
        metric(
            "slope",
            (last.1 - first.1) / (last.0 - first.0).max(f64::EPSILON),
        );
        let half = &points[points.len() / 2..];
        let mean = half.iter().map(|point| point.1).sum::<f64>() / half.len() as f64;
        let pps = 1e6 / SIZE.as_bits() as f64;
        metric("rate", mean);
        metric("pps", mean * pps);
        metric("last-pps", last.1 * pps);
        if let (Some(from), Some(until)) = (self.from, self.until) {
            let (from, until) = (from.as_bps() as f64 / 1e6, until.as_bps() as f64 / 1e6);
            // Rates before the first crossing of `from` in the right direction do not count.
            let is_past = |rate: f64, bound: f64| {
                if from < until {
                    rate >= bound
                } else {
                    rate <= bound
                }
            };
            let mut points = points.iter().skip_while(|(_, rate)| is_past(*rate, from));
            let start = points
                .find(|(_, rate)| is_past(*rate, from))
                .map_or(last.0, |point| point.0);
            let end = points
                .find(|(_, rate)| is_past(*rate, until))
                .map_or(last.0, |point| point.0);
            metric("time", end - start);
        }
        outcome.series.push(Series {
            name: "rate".to_owned(),
            unit: "Mbit/s".to_owned(),
            points,
        });
        outcome
    }
}

/// A controller and the packets that it has under way.
struct Pipe {
    controller: Box<dyn RateController>,
    random: Random,
    /// When each was asked for and arrives, in order; none if it is lost.
    under_way: VecDeque<(Instant, Option<Instant>)>,
    sent_at: Instant,
    /// When the last packet arrives that has been asked for: later ones do not overtake it.
    arrived_at: Instant,
    /// The next packet is the first, and is to be lost.
    is_first: bool,
}

impl Pipe {
    fn run_until(&mut self, end: Instant, path: &Path) {
        loop {
            let send_at = self.sent_at + self.interval();
            let arrival = self.under_way.iter().find_map(|(_, arrives)| *arrives);
            let timer = self.controller.poll_timeout();
            let next = [Some(send_at), arrival, timer].into_iter().flatten().min();
            let Some(now) = next.filter(|&now| now <= end) else {
                return;
            };
            if arrival == Some(now) {
                self.receive(now);
            } else if timer == Some(now) {
                self.controller.handle_timeout(now);
            } else {
                self.send(now, path);
            }
        }
    }

    /// Time between two Interests.
    fn interval(&self) -> Duration {
        let target = self.controller.target();
        let rate = target.rate.unwrap_or(Bitrate::ZERO).max(Bitrate::kbps(8));
        target.packet_size.unwrap_or(SIZE) / rate
    }

    fn send(&mut self, now: Instant, path: &Path) {
        self.sent_at = now;
        let at = now.since(Instant::ZERO);
        let rtt = match *path {
            Path::Idle => Some(RTT),
            Path::Congested => Some(RTT * 2 + at / 20),
            Path::Blackout { after } => (at < after).then_some(RTT),
            Path::Loss { share, rtt } => (!self.random.chance(share)).then_some(rtt),
            Path::Jitter { .. } if at < Duration::from_secs(1) => Some(RTT),
            Path::Jitter { spread } => Some(RTT * 2 + spread.mul_f64(self.random.unit())),
        };
        let first_of_congested = matches!(path, Path::Congested) && at < RTT;
        let rtt = if first_of_congested { Some(RTT) } else { rtt };
        let lost = core::mem::take(&mut self.is_first);
        let arrives = rtt
            .filter(|_| !lost)
            .map(|rtt| self.arrived_at.max(now + rtt));
        self.arrived_at = arrives.unwrap_or(self.arrived_at);
        self.under_way.push_back((now, arrives));
    }

    /// The first packet under way that is not lost arrives, which shows that those before it are.
    fn receive(&mut self, now: Instant) {
        while let Some((asked_at, arrives)) = self.under_way.pop_front() {
            if arrives.is_some() {
                let arrival = Arrival {
                    asked_at,
                    rtt: Some(now.since(asked_at)),
                    size: SIZE,
                    was_lost: false,
                    is_limiting: true,
                    congestion_marked: false,
                    feedback: Feedback::default(),
                };
                self.controller.on_data(now, &arrival);
                return;
            }
            let lost = Lost {
                asked_at,
                kind: Loss::Gap,
                repeated: false,
            };
            self.controller.on_loss(now, &lost);
        }
    }

    fn megabits(&self) -> f64 {
        let rate = self.controller.target().rate.unwrap_or(Bitrate::ZERO);
        rate.as_bps() as f64 / 1e6
    }
}
