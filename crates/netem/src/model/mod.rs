//! Links that vary as measured ones do, from a seed.

mod kinds;
mod process;

use namecast_units::{Bitrate, Duration};
use serde::{Deserialize, Serialize};

use crate::schedule::Schedule;
use process::Parameters;

/// Smallest mean rate of a model: one datagram in 1.2 s.
const MIN_MEAN: Bitrate = Bitrate::kbps(10);
/// Largest mean rate of a model: a period then has 2.5 million opportunities.
const MAX_MEAN: Bitrate = Bitrate::mbps(100);

/// A kind of access network, and a seed that fixes how it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// What it resembles.
    pub kind: ModelKind,
    /// Another seed is another place and time.
    pub seed: u64,
    /// Mean rate; `None`: [`ModelKind::mean`]. Everything else stays as it is.
    pub mean: Option<Bitrate>,
}

/// What a model resembles.
///
/// All are *doubly stochastic*, as the link model of \[Sprout\] is: datagrams of 1500 octets come as a Poisson process whose
/// rate itself is random. The logarithm of the rate is the sum of a slow and a fast Ornstein–Uhlenbeck process (a Brownian
/// walk that is pulled back to its mean, so that a geometric walk stays in bounds), between a least and a largest multiple of
/// the mean. Silences, during which nothing is delivered, begin at random, the rather the lower the rate is, and their lengths
/// have a Pareto distribution that is cut. Deliveries are in clumps within a millisecond, of a geometric number of datagrams.
///
/// | | LTE | UMTS | EVDO | Wi-Fi | satellite |
/// |---|---|---|---|---|---|
/// | mean, Mbit/s | 5 | 1.2 | 0.6 | 20 | 20 |
/// | slow: deviation of ln(rate), correlation time | 0.66, 6 s | 0.95, 8 s | 0.8, 6 s | 0.2, 10 s | 0.08, 5 s |
/// | fast: the same | 0.3, 80 ms | 0.4, 80 ms | 0.4, 80 ms | 0.25, 50 ms | 0.1, 50 ms |
/// | silences, one in | 9 s | 1.5 s | 1.6 s | 4 s | – |
/// | shortest, longest | 90 ms, 3 s | 120 ms, 10 s | 120 ms, 8 s | 20, 200 ms | – |
/// | exponent of their lengths | 1.8 | 0.8 | 1.0 | 1.2 | – |
/// | datagrams in a clump | 1.2 | 1.3 | 2 | 8 | 2 |
///
/// What comes of it, the mean of eight seeds, and what two measured traces of 140 s have (downlinks published with \[Sprout\]):
///
/// | | LTE | measured | UMTS | measured | EVDO | Wi-Fi | satellite |
/// |---|---|---|---|---|---|---|---|
/// | deviation of 1 s averages, of the mean | 0.63 | 0.64 | 1.17 | 1.16 | 0.97 | 0.26 | 0.37 |
/// | their correlation after 1 s | 0.82 | 0.84 | 0.79 | 0.89 | 0.71 | 0.51 | 0.91 |
/// | after 5 s | 0.38 | 0.39 | 0.32 | 0.38 | 0.30 | 0.28 | 0.63 |
/// | share of 100 ms without delivery | 0.016 | 0.016 | 0.40 | 0.41 | 0.39 | 0.004 | 0.001 |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// A phone that moves in an LTE network: 1 s averages vary by a factor of ten within some ten seconds, with few silences.
    Lte,
    /// A phone in a car with UMTS: four tenths of the time without any delivery, for seconds on end.
    Umts,
    /// A phone with CDMA EV-DO, revision A: slow, in clumps, and with many silences.
    Evdo,
    /// A home network that neighbours share: aggregates of datagrams, a tenth of the time with half the airtime or less,
    /// and stalls of 20 to 200 ms while the radio scans or repeats.
    Wifi,
    /// Satellites in low orbit: every 15 s another one is assigned, with another rate, after 50 to 100 ms without any.
    Satellite,
}

impl Model {
    /// The seed that holds where none is given.
    pub const SEED: u64 = 1;
    /// Period of what a model draws, after which it is repeated.
    pub const PERIOD: Duration = Duration::from_secs(300);

    /// Returns whether its mean is within bounds.
    pub(crate) fn is_sound(&self) -> bool {
        (MIN_MEAN..=MAX_MEAN).contains(&self.mean())
    }

    /// Returns the mean rate that was requested, or else the kind's.
    pub fn mean(&self) -> Bitrate {
        self.mean.unwrap_or_else(|| self.kind.mean())
    }

    /// Draws the schedule: the same on every platform, with the mean rate within a few percent. It takes some ten
    /// milliseconds.
    pub fn schedule(&self) -> Schedule {
        let mean = self.mean().clamp(MIN_MEAN, MAX_MEAN);
        let times = process::deliveries(&self.kind.parameters(), mean, self.seed);
        Schedule::from_deliveries(times).expect("they are in order, and the bounds keep them few")
    }
}

impl ModelKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Lte,
        Self::Umts,
        Self::Evdo,
        Self::Wifi,
        Self::Satellite,
    ];

    /// Returns how it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lte => "lte",
            Self::Umts => "umts",
            Self::Evdo => "evdo",
            Self::Wifi => "wifi",
            Self::Satellite => "satellite",
        }
    }

    /// Returns the mean rate.
    pub const fn mean(self) -> Bitrate {
        match self {
            Self::Lte => Bitrate::mbps(5),
            Self::Umts => Bitrate::kbps(1_200),
            Self::Evdo => Bitrate::kbps(600),
            Self::Wifi | Self::Satellite => Bitrate::mbps(20),
        }
    }

    const fn parameters(self) -> Parameters {
        match self {
            Self::Lte => kinds::LTE,
            Self::Umts => kinds::UMTS,
            Self::Evdo => kinds::EVDO,
            Self::Wifi => kinds::WIFI,
            Self::Satellite => kinds::SATELLITE,
        }
    }
}

#[cfg(test)]
mod tests;
