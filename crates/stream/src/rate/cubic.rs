//! CUBIC \[RFC9438\].

use core::time::Duration;

use namecast_units::Instant;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::law::{self, Law};
use super::window::Window;

/// Constants of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, SmartDefault)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Interests at the start (10 in \[RFC6928\]).
    #[default(10.0)]
    pub initial_window: f64,
    /// Interests at least.
    #[default(2.0)]
    pub min_window: f64,
    /// Whether the window is spread over its round trip, as Linux does.
    #[default(true)]
    pub paced: bool,
    /// C, in Interests per second³ (\[RFC9438\] §5.1).
    #[default(0.4)]
    pub aggressiveness: f64,
    /// β, what is left of the window after congestion (\[RFC9438\] §4.6).
    #[default(0.7)]
    pub decrease: f64,
    /// Whether a flow that does not reach its old window makes room (\[RFC9438\] §4.7).
    #[default(true)]
    pub fast_convergence: bool,
    /// Whether it is at least as fast as AIMD (\[RFC9438\] §4.3).
    #[default(true)]
    pub reno_friendly: bool,
    /// What the timeout is longer than the smoothed round-trip time, at least (200 ms in Linux).
    #[serde(with = "namecast_units::duration")]
    #[default(Duration::from_millis(200))]
    pub timeout_margin: Duration,
}

/// CUBIC \[RFC9438\]: the window is a cubic function of the time since the last decrease.
///
/// ```text
/// W_cubic(t) = C·(t − K)³ + W_max                         K = ∛((W_max − cwnd_epoch)/C)      (Fig. 1, 2)
/// target     = W_cubic(t + RTT), between cwnd and 1.5·cwnd
/// W_est      ← W_est + α/cwnd,   α = 3·(1−β)/(1+β), or 1 once W_est ≥ cwnd_prior             (Fig. 4)
///
/// Data:        cwnd ← W_est                          if W_cubic(t) < W_est
///              cwnd ← cwnd + (target − cwnd)/cwnd    else
/// congestion:  W_max ← cwnd, or cwnd·(1+β)/2 if cwnd < W_max;   ssthresh ← cwnd ← β·cwnd
/// ```
///
/// | RFC          | here                 | meaning                                         |
/// |--------------|----------------------|-------------------------------------------------|
/// | cwnd         | `window`             | Interests out                                   |
/// | C            | `aggressiveness`     | gain                                            |
/// | β            | `decrease`           | what is left                                    |
/// | W_max        | `plateau`            | window at which congestion came                 |
/// | cwnd_prior   | `prior`              | window just before the last decrease            |
/// | cwnd_epoch   | at `Cubic::begin`    | window when congestion avoidance began          |
/// | W_est        | `Epoch::friendly`    | window of an AIMD flow in our place             |
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    config: Config,
    plateau: f64,
    prior: f64,
    epoch: Option<Epoch>,
}

/// Congestion avoidance since the last decrease.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K in seconds.
    inflexion: f64,
    /// W_est.
    friendly: f64,
}

/// Slow start, then the law of [`Cubic`]. Congestion is a gap, a Nack or a mark, once per window; a timeout starts anew from
/// the least window.
pub type Controller = law::Controller<Cubic>;

impl Controller {
    /// A controller in slow start.
    pub fn new(config: Config) -> Self {
        Self::with_law(
            Cubic::new(config),
            Window::new(config.initial_window, config.min_window),
            config.paced,
            config.timeout_margin,
        )
    }
}

impl Cubic {
    pub(super) fn new(config: Config) -> Self {
        Self {
            plateau: 0.0,
            prior: 0.0,
            epoch: None,
            config: Config {
                aggressiveness: config.aggressiveness.max(1e-9),
                ..config
            },
        }
    }

    /// Begins congestion avoidance with a window of `size`.
    fn begin(&mut self, now: Instant, size: f64) -> Epoch {
        // After a timeout, or slow start without a loss, there is no plateau to return to: K = 0.
        self.plateau = self.plateau.max(size);
        let below = (self.plateau - size) / self.config.aggressiveness;
        Epoch {
            start: now,
            inflexion: libm::cbrt(below),
            friendly: size,
        }
    }

    fn cubic(&self, epoch: &Epoch, time: f64) -> f64 {
        let offset = time - epoch.inflexion;
        self.config.aggressiveness * offset * offset * offset + self.plateau
    }
}

impl Law for Cubic {
    const NAME: &'static str = "cubic";

    fn avoid_congestion(&mut self, now: Instant, window: &mut Window, rtt: Option<Duration>) {
        let size = window.size();
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(now, size),
        };
        let decrease = self.config.decrease;
        let gain = match epoch.friendly >= self.prior {
            true => 1.0,
            false => 3.0 * (1.0 - decrease) / (1.0 + decrease),
        };
        epoch.friendly += gain / size;
        let time = now.since(epoch.start).as_secs_f64();
        if self.config.reno_friendly && self.cubic(&epoch, time) < epoch.friendly {
            window.grow((epoch.friendly - size).max(0.0));
        } else {
            let rtt = rtt.unwrap_or_default();
            let target = self.cubic(&epoch, time + rtt.as_secs_f64());
            let target = target.clamp(size, 1.5 * size);
            window.grow((target - size) / size);
        }
        self.epoch = Some(epoch);
    }

    fn on_congestion(&mut self, window: &Window) -> f64 {
        let size = window.size();
        self.prior = size;
        self.plateau = if size < self.plateau && self.config.fast_convergence {
            size * (1.0 + self.config.decrease) / 2.0
        } else {
            size
        };
        self.epoch = None;
        self.config.decrease * size
    }

    fn on_timeout(&mut self) {
        self.plateau = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::reports::{arrival, at, lost};
    use crate::rate::{Loss, RateController};

    /// In slow start from 10 to 100 at 1 s, then a gap.
    fn at_seventy(config: Config) -> Controller {
        let mut cubic = Controller::new(config);
        for _ in 0..90 {
            cubic.on_data(at(1_000_000), &arrival(at(1_000_000), at(900_000)));
        }
        assert_eq!(cubic.target().window, Some(100));
        for _ in 0..3 {
            cubic.on_loss(at(1_000_000), &lost(at(950_000), Loss::Gap));
        }
        assert!((cubic.window.size() - 70.0).abs() < 1e-9);
        cubic
    }

    /// Returns a window's worth of Data in each round trip of 100 ms, from 1.1 s on.
    fn run(cubic: &mut Controller, millis: u64) -> f64 {
        let end = 1_100_000 + millis * 1_000;
        let mut now = 1_100_000;
        while now <= end {
            cubic.on_data(at(now), &arrival(at(now), at(now - 99_999)));
            now += (100_000.0 / cubic.window.size()) as u64;
        }
        cubic.window.size()
    }

    /// K = ∛(30/0.4) = 4.217 s. W(2) = 100 − 0.4·2.217³ = 95.6; at K the plateau; W(5.5) = 100 + 0.4·1.283³ = 100.8. The window
    /// follows W(t + RTT) by one round trip.
    #[test]
    fn the_window_is_a_cubic_function_of_time() {
        for (millis, least, most) in [
            (2_000, 95.2, 95.9),
            (4_217, 99.9, 100.1),
            (5_500, 100.6, 101.0),
        ] {
            let size = run(&mut at_seventy(Config::default()), millis);
            assert!((least..=most).contains(&size), "{millis} ms: {size}");
        }
    }

    /// AIMD in our place grows by 0.529 in each round trip of 100 ms from 70 to 100, which takes 5.67 s, then by 1: at 6.7 s it
    /// is at 110.3, while W(6.7) = 100 + 0.4·2.483³ = 106.1.
    #[test]
    fn it_is_at_least_as_fast_as_aimd() {
        let friendly = run(&mut at_seventy(Config::default()), 6_700);
        let alone = Config {
            reno_friendly: false,
            ..Config::default()
        };
        let alone = run(&mut at_seventy(alone), 6_700);
        assert!((105.8..=106.4).contains(&alone), "{alone}");
        assert!((109.8..=110.8).contains(&friendly), "{friendly}");
        // A small window on a short path: C·t³ is nothing there, and one more a round trip is 20 in 2 s.
        let mut small = Controller::new(Config {
            initial_window: 10.0,
            ..Config::default()
        });
        small.on_loss(at(1_000_000), &lost(at(0), Loss::Gap));
        let grown = run(&mut small, 2_000);
        // 7 → 10 at 0.53 a round trip takes 0.57 s, then 1.43 s at one.
        assert!((22.5..=25.5).contains(&grown), "{grown}");
    }

    /// Congestion at 80, below the plateau of 100: the next plateau is 80·0.85 = 68, else 80.
    #[test]
    fn a_flow_that_does_not_reach_its_plateau_makes_room() {
        let plateau = |fast_convergence| {
            let mut cubic = at_seventy(Config {
                fast_convergence,
                ..Config::default()
            });
            while cubic.window.size() < 80.0 {
                cubic.on_data(at(1_500_000), &arrival(at(1_500_000), at(1_400_000)));
            }
            let size = cubic.window.size();
            cubic.on_loss(at(1_500_000), &lost(at(1_450_000), Loss::Gap));
            assert!((cubic.window.size() - size * 0.7).abs() < 1e-9);
            cubic.law.plateau / size
        };
        assert!((plateau(true) - 0.85).abs() < 1e-9);
        assert!((plateau(false) - 1.0).abs() < 1e-9);
    }

    /// From 100: slow start up to 70, then on from there.
    #[test]
    fn a_timeout_starts_anew() {
        let mut cubic = Controller::new(Config {
            initial_window: 100.0,
            ..Config::default()
        });
        cubic.on_loss(at(1_000_000), &lost(at(0), Loss::Timeout));
        assert_eq!(cubic.target().window, Some(2));
        assert_eq!(cubic.target().timeout, Some(Duration::from_secs(2)));
        for _ in 0..68 {
            cubic.on_data(at(1_200_000), &arrival(at(1_200_000), at(1_100_000)));
        }
        assert_eq!(cubic.target().window, Some(70));
        cubic.on_data(at(1_300_000), &arrival(at(1_300_000), at(1_200_000)));
        assert!((70.0..70.1).contains(&cubic.window.size()));
        assert!((cubic.law.plateau - 70.0).abs() < 1e-9);
    }
}
