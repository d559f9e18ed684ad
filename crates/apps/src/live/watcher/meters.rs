//! What a watcher records for people: how long the join took, rates, latency, and what went wrong.

use core::time::Duration;

use namecast_stream::StreamKind;
use namecast_stream::consumer::Sample;
use namecast_units::Instant;

use super::measure::{Frames, RateMeter};
use super::output::Stages;

/// What a watcher counts, its consumers apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnCounters {
    pub nacked: u64,
    /// Metadata or certificates that did not verify.
    pub verification_failures: u64,
    pub malformed: u64,
    pub unexpected: u64,
    /// Times that playback began again.
    pub rejoins: u64,
}

/// Records of one watcher.
#[derive(Debug, Default)]
pub(super) struct Meters {
    /// When the first Interest left.
    started_at: Option<Instant>,
    /// From then to the first frame.
    joined_after: Option<Duration>,
    wire: RateMeter,
    payload: RateMeter,
    frames: Frames,
    counters: OwnCounters,
}

impl Meters {
    /// Records that an Interest leaves. Returns whether it is the first one.
    pub(super) const fn start(&mut self, now: Instant) -> bool {
        let is_first = self.started_at.is_none();
        if is_first {
            self.started_at = Some(now);
        }
        is_first
    }

    /// Records a packet of `bytes`.
    pub(super) fn on_data(&mut self, now: Instant, bytes: u64) {
        self.wire.add(now, bytes);
    }

    /// Records a sample that is delivered.
    pub(super) fn on_sample(
        &mut self,
        now: Instant,
        stream: StreamKind,
        sample: &Sample,
        stages: Stages,
    ) {
        self.payload.add(now, sample.payload.len() as u64);
        self.frames.on_handed_out(stream, sample, stages);
    }

    /// Records the first frame of a stream. Returns the time since the first Interest.
    pub(super) fn on_first_frame(&mut self, now: Instant) -> Duration {
        let after = now.since(self.started_at.unwrap_or(now));
        self.joined_after.get_or_insert(after);
        after
    }

    /// Returns the time from the first Interest to the first frame, once that is over.
    pub(super) const fn joined_after(&self) -> Option<Duration> {
        self.joined_after
    }

    /// Returns the bits of packets in a second.
    pub(super) fn throughput(&self, now: Instant) -> u64 {
        self.wire.bits_per_second(now)
    }

    /// Returns the bits of samples in a second.
    pub(super) fn goodput(&self, now: Instant) -> u64 {
        self.payload.bits_per_second(now)
    }

    /// Returns the frames between delivery and display.
    pub(super) const fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Returns the frames between delivery and display, to report what became of them.
    pub(super) const fn frames_mut(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// Returns what was counted.
    pub(super) const fn counters(&self) -> &OwnCounters {
        &self.counters
    }

    /// Returns what is counted, to count on.
    pub(super) const fn counters_mut(&mut self) -> &mut OwnCounters {
        &mut self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_join_takes_from_the_first_interest_to_the_first_frame() {
        let mut meters = Meters::default();
        assert!(meters.start(at(100)) && !meters.start(at(200)));
        assert_eq!(meters.joined_after(), None);
        let video = meters.on_first_frame(at(350));
        let audio = meters.on_first_frame(at(400));
        assert_eq!([video, audio].map(|it| it.as_millis()), [250, 300]);
        assert_eq!(meters.joined_after(), Some(video));
    }

    /// 1000 bytes within the last second are 8 kbit/s.
    #[test]
    fn rates_are_of_the_last_second() {
        let mut meters = Meters::default();
        meters.on_data(at(50), 1_000);
        assert_eq!(meters.throughput(at(950)), 8_000);
        assert_eq!(meters.throughput(at(1_150)), 0);
        assert_eq!(meters.goodput(at(950)), 0);
    }
}
