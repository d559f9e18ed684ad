//! The RTP clocks of pictures and sound on one clock: by when they came, and by the sender's reports as soon as it made some.

use str0m::media::MediaTime;
use str0m::rtp::rtcp::SenderInfo;

/// A track further than this from when its packets come begins anew, in microseconds.
const MAX_DISTANCE: i64 = 2_000_000;
/// Sender reports move the sound by at most this: what says more is wrong, or of clocks that jumped.
const MAX_CORRECTION: i64 = 1_000_000;
/// What reports are off by without being followed: they are written with the sender's jitter, and each jump is heard.
const TOLERANCE: i64 = 5_000;

/// The clock of one track. Times are microseconds on the session's clock.
#[derive(Debug, Default)]
pub(super) struct TrackClock {
    /// What the session's clock is ahead of the RTP clock.
    offset: Option<i64>,
    /// What the sender's wall clock is ahead of the RTP clock.
    reported: Option<i64>,
    /// When the frame before is shown, and the one that is shown last.
    last: i64,
    highest: i64,
    /// No frame is shown before this: it rises where the clock is moved, so that no time is given twice.
    floor: i64,
}

impl TrackClock {
    /// When a frame is shown that has the RTP time `rtp` and came at `arrived`. Frames that are sent before ones that are shown earlier
    /// (B-frames) keep their order.
    pub(super) fn at(&mut self, rtp: MediaTime, arrived: i64) -> u64 {
        let rtp = micros(rtp.numer(), rtp);
        let by_arrival = arrived.saturating_sub(rtp);
        let near = |offset: &i64| (by_arrival - offset).abs() <= MAX_DISTANCE;
        let offset = self.offset.filter(near).unwrap_or(by_arrival);
        self.set_offset(offset);
        let wanted = rtp.saturating_add(offset);
        let shown = match wanted < self.floor || wanted == self.last {
            true => self.highest.saturating_add(1),
            false => wanted,
        };
        self.last = shown;
        self.highest = self.highest.max(shown);
        u64::try_from(shown).unwrap_or(0)
    }

    fn set_offset(&mut self, offset: i64) {
        if self.offset.replace(offset) != Some(offset) {
            self.floor = self.highest.saturating_add(1);
        }
    }

    /// Records the newest sender report (RFC 3550, section 6.4.1) with a frame of RTP time `rtp`.
    pub(super) fn report(&mut self, rtp: MediaTime, report: &SenderInfo) {
        // Both count modulo 2^32.
        let since = (report.rtp_time.numer() as u32)
            .wrapping_sub(rtp.numer() as u32)
            .cast_signed();
        let reported_rtp = rtp.numer().saturating_add_signed(since.into());
        let wall = report.ntp_time.duration_since(std::time::UNIX_EPOCH);
        let wall = wall
            .ok()
            .and_then(|wall| i64::try_from(wall.as_micros()).ok());
        self.reported = wall.map(|wall| wall.saturating_sub(micros(reported_rtp, rtp)));
    }

    /// Moves this track to where its sender says that it is beside `other`.
    pub(super) fn follow(&mut self, other: &Self) {
        if let (Some(offset), Some(ours), Some(their_offset), Some(theirs)) =
            (self.offset, self.reported, other.offset, other.reported)
        {
            let wanted = ours.saturating_sub(theirs).saturating_add(their_offset);
            let correction = wanted.saturating_sub(offset).saturating_abs();
            if (TOLERANCE..=MAX_CORRECTION).contains(&correction) {
                self.set_offset(wanted);
            }
        }
    }
}

/// `count` ticks of the clock of `unit`, in microseconds.
fn micros(count: u64, unit: MediaTime) -> i64 {
    let micros = u128::from(count) * 1_000_000 / u128::from(unit.denom());
    i64::try_from(micros).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use str0m::media::Frequency;

    use super::*;

    const WALL: u64 = 1_790_000_000;

    fn video(millis: u64) -> MediaTime {
        MediaTime::new(7_000_000 + millis * 90, Frequency::NINETY_KHZ)
    }

    fn audio(millis: u64) -> MediaTime {
        // Just below where the octets of a sender report begin anew.
        let start = u64::from(u32::MAX) - 48_000;
        MediaTime::new(start + millis * 48, Frequency::FORTY_EIGHT_KHZ)
    }

    fn report(rtp: MediaTime, millis: u64) -> SenderInfo {
        SenderInfo {
            ssrc: 1.into(),
            ntp_time: UNIX_EPOCH + Duration::from_secs(WALL) + Duration::from_millis(millis),
            rtp_time: MediaTime::new(rtp.numer() & u64::from(u32::MAX), rtp.frequency()),
            sender_packet_count: 0,
            sender_octet_count: 0,
        }
    }

    /// Pictures take 60 ms on the way, sound 20: before reports, what was captured together is 40 ms apart; then it is not.
    #[test]
    fn reports_bring_sound_and_picture_together() {
        let (mut pictures, mut sound) = (TrackClock::default(), TrackClock::default());
        assert_eq!(pictures.at(video(0), 60_000), 60_000);
        assert_eq!(sound.at(audio(0), 20_000), 20_000);
        sound.follow(&pictures);
        assert_eq!(sound.at(audio(20), 41_000), 40_000);
        // The report of sound is of two seconds later, beyond the end of 32 bits.
        pictures.report(video(1_000), &report(video(500), 500));
        sound.report(audio(1_500), &report(audio(2_000), 2_000));
        sound.follow(&pictures);
        assert_eq!(sound.at(audio(1_520), 1_540_000), 1_580_000);
        assert_eq!(pictures.at(video(1_520), 1_590_000), 1_580_000);
    }

    /// Sent as 0, 120, 40, 80 ms; then the clock jumps, and the next ones follow what was shown last.
    #[test]
    fn pictures_that_are_sent_before_others_keep_their_times() {
        let mut clock = TrackClock::default();
        for (millis, arrived, shown) in [
            (0, 100_000, 100_000),
            (120, 140_000, 220_000),
            (40, 180_000, 140_000),
            (80, 220_000, 180_000),
            (160, 260_000, 260_000),
            (9_000, 300_000, 300_000),
            (8_960, 340_000, 300_001),
            (9_040, 380_000, 340_000),
        ] {
            assert_eq!(clock.at(video(millis), arrived), shown, "{millis}");
        }
    }

    #[test]
    fn times_only_rise_and_follow_jumps() {
        let mut clock = TrackClock::default();
        assert_eq!(clock.at(video(1_000), 50_000), 50_000);
        assert_eq!(clock.at(video(1_000), 51_000), 50_001);
        assert_eq!(clock.at(video(60_000), 90_000), 90_000);
        assert_eq!(clock.at(video(60_040), 91_000), 130_000);
        // A report that is hours off is not followed.
        let mut sound = TrackClock::default();
        sound.at(audio(0), 90_000);
        clock.report(video(60_040), &report(video(60_040), 0));
        sound.report(audio(0), &report(audio(0), 7_200_000));
        sound.follow(&clock);
        assert_eq!(sound.at(audio(20), 90_000), 110_000);
    }
}
