//! How fast the past is played.

use core::time::Duration;

use namecast_units::{Instant, Timestamp};

/// Speed of playback from the past, in parts of the normal one: 0.25 to 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    permille: u32,
}

impl Default for Speed {
    fn default() -> Self {
        Self { permille: NORMAL }
    }
}

const NORMAL: u32 = 1_000;

impl Speed {
    /// Returns a speed of `times` the normal one; `None` if that is not within 0.25 and 8.
    pub fn new(times: f64) -> Option<Self> {
        (0.25..=8.0).contains(&times).then(|| Self {
            permille: (times * f64::from(NORMAL)).round() as u32,
        })
    }

    /// Returns how much is played in `time`.
    pub(super) fn played_in(self, time: Duration) -> Duration {
        scaled(time, self.permille, NORMAL)
    }

    /// Returns the time in which `span` is played.
    pub(super) fn time_of(self, span: Duration) -> Duration {
        scaled(span, NORMAL, self.permille)
    }
}

/// Returns `span` · `by` / `of`, at most some centuries.
fn scaled(span: Duration, by: u32, of: u32) -> Duration {
    let nanos = span.as_nanos() * u128::from(by) / u128::from(of);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// When the samples of the past are shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor {
    /// A time of publication.
    pub(super) published_at: Timestamp,
    /// When samples published then are shown.
    pub(super) shown_at: Instant,
    pub(super) speed: Speed,
}

impl Anchor {
    /// Returns when a sample published at `sample` is shown.
    pub(super) fn render_at(self, sample: Timestamp) -> Instant {
        let Self {
            published_at,
            shown_at,
            speed,
        } = self;
        match sample >= published_at {
            true => shown_at + speed.time_of(sample.since(published_at)),
            false => shown_at.saturating_sub(speed.time_of(published_at.since(sample))),
        }
    }

    /// Returns when the sample that is shown `now` was published.
    pub(super) fn playing(self, now: Instant) -> Timestamp {
        self.published_at + self.speed.played_in(now.since(self.shown_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 8 ×, what was published 4 s later is shown 0.5 s later; at a quarter, 16 s later.
    #[test]
    fn samples_are_shown_sooner_at_a_higher_speed() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let published_at = Timestamp::from_micros(100_000_000);
        for (times, after) in [(8.0, 500), (1.0, 4_000), (0.25, 16_000)] {
            let anchor = Anchor {
                published_at,
                shown_at: at(50),
                speed: Speed::new(times).unwrap(),
            };
            let after = Duration::from_millis(after);
            let later = published_at + Duration::from_secs(4);
            assert_eq!(anchor.render_at(later), at(50) + after);
            assert_eq!(anchor.playing(at(50) + after), later);
            let earlier = Timestamp::from_micros(96_000_000);
            assert_eq!(anchor.render_at(earlier), at(50).saturating_sub(after));
            assert_eq!(anchor.playing(at(10)), published_at);
        }
        let wrong = [0.0, 0.24, 8.1, -1.0, f64::NAN, f64::INFINITY];
        assert!(wrong.iter().all(|times| Speed::new(*times).is_none()));
    }
}
