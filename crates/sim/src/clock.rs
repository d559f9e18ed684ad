//! Clocks of hosts, which are not right.

use namecast_apps::Now;
use namecast_units::{Duration, Instant, Timestamp};

/// How far a host's clocks are from the network's true time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostClock {
    /// Microseconds that the wall clock is ahead.
    pub wall_offset_micros: i64,
    /// Nanoseconds that both clocks gain in a second of true time; crystals are within ±100 000.
    pub drift_ppb: i32,
}

/// 2026-01-01 00:00 UTC, where virtual time starts.
pub(crate) const EPOCH: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

const BILLION: i128 = 1_000_000_000;

impl HostClock {
    /// What the monotonic clock shows at a true time.
    pub fn monotonic(&self, at: Instant) -> Instant {
        if self.drift_ppb == 0 {
            return at;
        }
        let gained = i128::from(at.as_nanos()) * i128::from(self.drift_ppb) / BILLION;
        nanos(i128::from(at.as_nanos()) + gained)
    }

    /// The first true time at which the monotonic clock shows `local` or later.
    pub fn true_time(&self, local: Instant) -> Instant {
        if self.drift_ppb == 0 {
            return local;
        }
        let scale = BILLION + i128::from(self.drift_ppb);
        let guess = nanos(i128::from(local.as_nanos()) * BILLION / scale);
        // Rounding is off by a nanosecond or two at most.
        let mut at = guess.saturating_sub(Duration::from_nanos(2));
        while self.monotonic(at) < local {
            at += Duration::from_nanos(1);
        }
        at
    }

    /// What both clocks show at a true time.
    pub fn read(&self, at: Instant) -> Now {
        let monotonic = self.monotonic(at);
        let micros = i128::from(EPOCH.as_micros())
            + i128::from(monotonic.as_nanos() / 1_000)
            + i128::from(self.wall_offset_micros);
        let wall = u64::try_from(micros.max(0)).unwrap_or(u64::MAX);
        Now {
            monotonic,
            wall: Timestamp::from_micros(wall),
        }
    }
}

fn nanos(value: i128) -> Instant {
    Instant::from_nanos(u64::try_from(value.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 50 parts per million of 100 s are 5 ms.
    #[test]
    fn a_drifting_clock_gains_on_both_readings() {
        let clock = HostClock {
            wall_offset_micros: -2_000_000,
            drift_ppb: 50_000,
        };
        let now = clock.read(Instant::ZERO + Duration::from_secs(100));
        assert_eq!(now.monotonic.as_nanos(), 100_005_000_000);
        assert_eq!(now.wall.micros_since(EPOCH), 98_005_000);
    }

    /// A deadline in local time is never served early, and at most a few nanoseconds late.
    #[test]
    fn true_time_is_the_first_at_which_the_clock_has_reached_a_deadline() {
        for drift_ppb in [-100_000, -3, 0, 7, 100_000] {
            let clock = HostClock {
                drift_ppb,
                ..HostClock::default()
            };
            for local in [1, 999, 123_456_789, 86_400_000_000_000] {
                let local = Instant::from_nanos(local);
                let at = clock.true_time(local);
                assert!(clock.monotonic(at) >= local);
                let before = at.saturating_sub(Duration::from_nanos(1));
                assert!(clock.monotonic(before) < local, "{drift_ppb} {local}");
            }
        }
    }
}
