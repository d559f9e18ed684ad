//! Points in time: monotonic ones for timers, wall-clock ones for media.

use core::fmt;
use core::ops::{Add, AddAssign};
use core::time::Duration;

/// A point in monotonic time: nanoseconds since an epoch the driver chose.
///
/// Not `std::time::Instant`: that cannot start at zero, be written to a trace, or run in a browser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The driver's epoch; virtual time starts here.
    pub const ZERO: Self = Self(0);

    /// The point `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time passed since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point `span` before this one, or the epoch if that would lie before it.
    pub fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// Saturates after 584 years, so that an absurd lifetime from the network cannot overflow.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.0 as f64 / 1e9)
    }
}

/// A point in wall-clock time: microseconds since 1970-01-01 00:00 UTC, as NDN's Timestamp name component counts.
///
/// Media carries these; they compare across hosts only as well as their clocks agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The point `micros` microseconds after 1970-01-01 00:00 UTC.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01 00:00 UTC.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the time passed since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// Microseconds from `earlier` to this point, negative if `earlier` is later.
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_does_not_fit_saturates() {
        let end = Instant::from_nanos(u64::MAX);
        assert_eq!(Instant::from_nanos(5) + Duration::MAX, end);
        assert_eq!(end + Duration::from_nanos(1), end);
    }

    #[test]
    fn since_an_instant_that_is_later_is_zero() {
        let later = Instant::from_nanos(7);
        assert_eq!(Instant::from_nanos(3).since(later), Duration::ZERO);
        assert_eq!(later.since(Instant::from_nanos(3)), Duration::from_nanos(4));
    }

    #[test]
    fn timestamps_differ_with_a_sign() {
        let (early, late) = (Timestamp::from_micros(100), Timestamp::from_micros(350));
        assert_eq!(late.micros_since(early), 250);
        assert_eq!(early.micros_since(late), -250);
    }
}
