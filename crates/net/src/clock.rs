//! The one place that reads the machine's clocks.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use namecast_apps::Now;
use namecast_units::{Duration, Instant, Timestamp};

/// Monotonic time since the process first asked for it, and wall-clock time.
///
/// All clocks of a process agree: an [`Instant`] from one may be compared with one from another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// The clock of this process.
    pub const fn new() -> Self {
        Self
    }

    /// Monotonic time now.
    pub fn now(self) -> Instant {
        let nanos = read_monotonic()
            .saturating_duration_since(epoch())
            .as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Wall-clock time now; 1970 if the machine's clock stands before that.
    pub fn wall(self) -> Timestamp {
        let since_1970 = read_wall()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO);
        Timestamp::from_micros(u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX))
    }

    /// Both times now.
    pub fn both(self) -> Now {
        Now {
            monotonic: self.now(),
            wall: self.wall(),
        }
    }

    /// Wall-clock time at [`Instant::ZERO`], as far as that can be told now.
    pub fn wall_at_zero(self) -> Timestamp {
        let run = Duration::from_nanos(self.now().as_nanos());
        let run = u64::try_from(run.as_micros()).unwrap_or(u64::MAX);
        Timestamp::from_micros(self.wall().as_micros().saturating_sub(run))
    }

    /// Waits until the instant `at`, if there is one; else for ever.
    pub(crate) async fn sleep_until(self, at: Option<Instant>) {
        match at {
            Some(at) => tokio::time::sleep_until(self.deadline(at)).await,
            None => core::future::pending().await,
        }
    }

    /// The instant `at` as tokio's timers count.
    fn deadline(self, at: Instant) -> tokio::time::Instant {
        let start = tokio::time::Instant::from_std(epoch());
        let offset = Duration::from_nanos(at.as_nanos());
        // A deadline past the end of tokio's time is none; a day later the caller asks again.
        start
            .checked_add(offset)
            .unwrap_or_else(|| start + Duration::from_secs(86_400))
    }
}

fn epoch() -> std::time::Instant {
    static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
    *EPOCH.get_or_init(read_monotonic)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the runtime reads the clock for everyone"
)]
fn read_monotonic() -> std::time::Instant {
    std::time::Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the runtime reads the clock for everyone"
)]
fn read_wall() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_the_clock_agree_and_never_run_backwards() {
        let (first, second) = (Clock::new(), Clock::new());
        let before = first.now();
        let middle = second.now();
        assert!(before <= middle && middle <= first.now());
    }

    #[test]
    fn deadlines_keep_the_distance_between_instants() {
        let clock = Clock::new();
        let (early, late) = (Instant::from_nanos(5), Instant::from_nanos(1_000_005));
        let distance = clock.deadline(late) - clock.deadline(early);
        assert_eq!(distance, Duration::from_millis(1));
    }

    #[test]
    fn a_deadline_beyond_all_time_does_not_panic() {
        Clock::new().deadline(Instant::from_nanos(u64::MAX));
    }

    /// 2020-01-01 is 1 577 836 800 s after 1970; 2100-01-01 is 4 102 444 800 s.
    #[test]
    fn wall_time_is_in_this_century() {
        let micros = Clock::new().wall().as_micros();
        assert!((1_577_836_800_000_000..4_102_444_800_000_000).contains(&micros));
    }
}
