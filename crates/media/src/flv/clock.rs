//! Times of a push.

/// The first frame is shown so many milliseconds after the beginning, so that one of before has a time, too.
pub(super) const START: i64 = 10_000;

/// RTMP's times, which have 32 bits and begin anywhere, in milliseconds from [`START`] on.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Time of the newest frame, as written and since the beginning.
    newest: Option<(u32, i64)>,
}

impl Clock {
    /// When a tag is shown. What is no frame, such as a header, has its time from the frames: encoders write zero into it, however
    /// long they have been on.
    pub(super) fn at(&mut self, time: u32, is_frame: bool) -> i64 {
        let (written, from_start) = self.newest.unwrap_or((time, START));
        if !is_frame {
            return from_start;
        }
        // Differences are right across the wrap after 49.7 days.
        let since = i64::from(time.wrapping_sub(written).cast_signed());
        let now = (from_start + since).max(0);
        self.newest = Some((time, now));
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before the first frame, across the wrap after 49.7 days, and back.
    #[test]
    fn times_go_on_across_the_wrap() {
        let mut clock = Clock::default();
        assert_eq!(clock.at(0, false), 10_000);
        assert_eq!(clock.at(u32::MAX - 9, true), 10_000);
        assert_eq!(clock.at(30, true), 10_040);
        assert_eq!(clock.at(u32::MAX - 19, true), 9_990);
        assert_eq!(clock.at(0xff_ffff, true), 10_010 + 0xff_ffff);
        assert_eq!(clock.at(5, false), 10_010 + 0xff_ffff);
    }
}
