//! Amounts of data, and rates at which they flow.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A data rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bitrate(u64);

impl Bitrate {
    /// No traffic at all.
    pub const ZERO: Self = Self(0);

    /// A rate of `n` bits per second.
    pub const fn bps(n: u64) -> Self {
        Self(n)
    }

    /// A rate of `n` thousand bits per second.
    pub const fn kbps(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// A rate of `n` million bits per second.
    pub const fn mbps(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
}

impl Mul<Duration> for Bitrate {
    type Output = ByteSize;

    /// Data that flows at this rate in `span`, rounded down to whole bytes.
    fn mul(self, span: Duration) -> ByteSize {
        let bits = u128::from(self.0).saturating_mul(span.as_nanos()) / NANOS_PER_SECOND;
        ByteSize(u64::try_from(bits / 8).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kbit/s", self.0 as f64 / 1e3),
            _ => write!(f, "{:.3} Mbit/s", self.0 as f64 / 1e6),
        }
    }
}

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

impl ByteSize {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A size of `n` bytes.
    pub const fn bytes(n: u64) -> Self {
        Self(n)
    }

    /// A size of `n` · 1024 · 1024 bytes.
    pub const fn mebibytes(n: u64) -> Self {
        Self(n << 20)
    }

    /// Size of something that is held in memory.
    pub const fn of(octets: &[u8]) -> Self {
        Self(octets.len() as u64)
    }

    /// Bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }

    /// Bits: the only place the stack multiplies by eight.
    pub const fn as_bits(self) -> u64 {
        self.0.saturating_mul(8)
    }
}

impl Add for ByteSize {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for ByteSize {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for ByteSize {
    type Output = Self;

    /// Stops at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for ByteSize {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for ByteSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::ZERO, Add::add)
    }
}

impl Div<Bitrate> for ByteSize {
    type Output = Duration;

    /// Returns the time this much data takes at `rate`; practically for ever at rate zero.
    fn div(self, rate: Bitrate) -> Duration {
        let nanos = u128::from(self.as_bits()) * NANOS_PER_SECOND / u128::from(rate.0.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Div<Duration> for ByteSize {
    type Output = Bitrate;

    /// Returns the rate at which this much data arrives over `span`.
    fn div(self, span: Duration) -> Bitrate {
        let bps = u128::from(self.as_bits()) * NANOS_PER_SECOND / span.as_nanos().max(1);
        Bitrate(u64::try_from(bps).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_024 => write!(f, "{} B", self.0),
            1_024..1_048_576 => write!(f, "{:.1} KiB", self.0 as f64 / 1024.0),
            _ => write!(f, "{:.1} MiB", self.0 as f64 / 1_048_576.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1250 bytes are 10 000 bits: 10 ms at 1 Mbit/s.
    #[test]
    fn size_rate_and_time_agree() {
        let (size, rate, span) = (
            ByteSize::bytes(1_250),
            Bitrate::mbps(1),
            Duration::from_millis(10),
        );
        assert_eq!(size / rate, span);
        assert_eq!(size / span, rate);
        assert_eq!(rate * span, size);
    }

    #[test]
    fn no_rate_takes_for_ever_and_no_time_gives_the_largest_rate() {
        assert!(ByteSize::bytes(1) / Bitrate::ZERO >= Duration::from_secs(8));
        assert!(ByteSize::bytes(1) / Duration::ZERO > Bitrate::mbps(1_000));
    }

    #[test]
    fn subtraction_stops_at_zero() {
        assert_eq!(ByteSize::bytes(3) - ByteSize::bytes(5), ByteSize::ZERO);
    }
}
