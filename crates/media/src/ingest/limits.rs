//! Bounds of what a stranger's input may cost: picture size, frame rate, bitrate; and the memory of the ffmpeg that reads it.

use core::time::Duration;
use std::time::Instant;

use namecast_units::Bitrate;
use smart_default::SmartDefault;

use super::ladder::PictureSize;

/// How long a rate may be exceeded at twice its value: what gathers while a connection is set up comes at once.
const BURST: Duration = Duration::from_secs(5);

/// Bounds of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct Limits {
    /// Largest picture, lying or upright.
    #[default(PictureSize { width: 3_840, height: 2_160 })]
    pub picture: PictureSize,
    /// Most pictures per second.
    #[default = 120]
    pub frame_rate: u32,
    /// Highest bitrate of all that is sent.
    #[default(Bitrate::mbps(50))]
    pub bitrate: Bitrate,
}

/// Bound that an input exceeds. The texts are for whoever sends it, and for whoever runs the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// Size of its pictures, and the largest.
    #[error(
        "its pictures have {0} pixels, more than {1}: choose a smaller size in the encoder, or start the server with a larger --max-picture"
    )]
    Picture(PictureSize, PictureSize),
    /// Most pictures per second.
    #[error(
        "it has more than {0} pictures per second: choose a lower frame rate in the encoder, or start the server with a higher --max-fps"
    )]
    FrameRate(u32),
    /// Highest bitrate.
    #[error(
        "it has more than {0}: choose a lower bitrate in the encoder, or start the server with a higher --max-bitrate"
    )]
    Bitrate(Bitrate),
}

impl Limits {
    /// Checks the size of pictures.
    ///
    /// # Errors
    /// If they are larger than the largest, lying or upright.
    pub fn check(&self, size: PictureSize) -> Result<(), Exceeded> {
        let sides = |size: PictureSize| {
            let (width, height) = (size.width, size.height);
            (width.max(height), width.min(height))
        };
        let ((long, short), (max_long, max_short)) = (sides(size), sides(self.picture));
        match long <= max_long && short <= max_short {
            true => Ok(()),
            false => Err(Exceeded::Picture(size, self.picture)),
        }
    }

    /// Returns a meter of pictures.
    pub fn pictures(&self) -> Meter {
        Meter::new(self.frame_rate.into(), Exceeded::FrameRate(self.frame_rate))
    }

    /// Returns a meter of octets.
    pub fn octets(&self) -> Meter {
        Meter::new(self.bitrate.as_bps() / 8, Exceeded::Bitrate(self.bitrate))
    }
}

/// Meter of a rate that may be exceeded for a short time only: a bucket that leaks at the rate, and holds five seconds of it.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Per second.
    rate: u64,
    exceeded: Exceeded,
    /// Time in which the content of the bucket leaks, as of `at`.
    content: Duration,
    at: Option<Instant>,
}

impl Meter {
    fn new(rate: u64, exceeded: Exceeded) -> Self {
        Self {
            rate: rate.max(1),
            exceeded,
            content: Duration::ZERO,
            at: None,
        }
    }

    /// Takes what has come at `now`.
    ///
    /// # Errors
    /// If the rate is exceeded for too long.
    pub fn take(&mut self, now: Instant, count: u64) -> Result<(), Exceeded> {
        let since = now.saturating_duration_since(self.at.unwrap_or(now));
        self.at = Some(now);
        let nanos = u128::from(count) * 1_000_000_000 / u128::from(self.rate);
        let added = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.content = self.content.saturating_sub(since).saturating_add(added);
        match self.content <= BURST {
            true => Ok(()),
            false => Err(self.exceeded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn size(width: u32, height: u32) -> PictureSize {
        PictureSize { width, height }
    }

    #[test]
    fn pictures_may_lie_or_stand() {
        let limits = Limits::default();
        for (width, height) in [(3_840, 2_160), (2_160, 3_840), (1, 1), (2_880, 2_160)] {
            assert_eq!(limits.check(size(width, height)), Ok(()));
        }
        for (width, height) in [
            (16_384, 16_384),
            (4_096, 2_160),
            (2_400, 2_400),
            (3_840, 2_162),
        ] {
            let exceeded = Exceeded::Picture(size(width, height), limits.picture);
            assert_eq!(limits.check(size(width, height)), Err(exceeded));
        }
        let said = limits.check(size(16_384, 16_384)).unwrap_err().to_string();
        assert!(
            said.contains("16384x16384") && said.contains("--max-picture"),
            "{said}"
        );
    }

    /// Seconds until `meter` is exceeded by `count` each `interval`; at most a minute.
    fn lasts(mut meter: Meter, interval: Duration, count: u64) -> Option<Duration> {
        let begin = Instant::now();
        let times = (0..).map(|number| interval * number);
        let mut times = times.take_while(|at| *at < Duration::from_secs(60));
        times.find(|at| meter.take(begin + *at, count).is_err())
    }

    /// 1000 pictures a second are 880 too many: 600, five seconds of 120, last for 0.68 s. At the rate, and in a burst of four seconds,
    /// nothing is exceeded.
    #[test]
    fn a_thousand_pictures_a_second_are_too_many() {
        let pictures = || Limits::default().pictures();
        let millis = Duration::from_millis;
        let after = lasts(pictures(), millis(1), 1).unwrap();
        assert!((millis(670)..millis(690)).contains(&after), "{after:?}");
        assert_eq!(lasts(pictures(), Duration::from_secs(1) / 120, 1), None);
        let mut meter = pictures();
        assert_eq!(meter.take(Instant::now(), 4 * 120), Ok(()));
        assert_eq!(
            meter.take(Instant::now(), 2 * 120),
            Err(Exceeded::FrameRate(120))
        );
    }

    /// 200 Mbit/s are 150 too many: 250 Mbit last for 1.67 s.
    #[test]
    fn two_hundred_megabits_are_too_many() {
        let octets = || Limits::default().octets();
        let millis = Duration::from_millis;
        let after = lasts(octets(), millis(10), 250_000).unwrap();
        assert!((millis(1_600)..millis(1_700)).contains(&after), "{after:?}");
        assert_eq!(lasts(octets(), millis(10), 62_500), None);
    }
}
