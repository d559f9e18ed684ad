//! Which samples to request, before they exist.

use core::ops::Range;
use core::time::Duration;

use namecast_units::Instant;

use crate::names::SampleClass;

/// Returns the samples to have requested beyond the newest one seen, so that each Interest is at the producer when its sample is
/// published: λ_d (RTSD Eq. 1), with a margin of time.
///
/// ```text
/// λ = ⌈(DRD + margin) / T⌉
/// ```
///
/// | paper | here      | meaning                                       |
/// |-------|-----------|-----------------------------------------------|
/// | DRD   | `delay`   | time from Interest to Data that exists        |
/// | T     | `period`  | time from one sample of this class to the next |
///
/// Differs from the paper: the margin of one sample period covers jitter, and the loss of one lead, since the pipeline
/// moves on only when a lead arrives. With T of a key interval it usually vanishes in the rounding.
pub(super) fn demand(delay: Duration, margin: Duration, period: Duration) -> u64 {
    let nanos = (delay + margin).as_nanos();
    let demand = nanos.div_ceil(period.as_nanos().max(1));
    u64::try_from(demand).unwrap_or(u64::MAX).max(1)
}

/// One of a rung's two sequences.
#[derive(Clone, Debug)]
struct Sequence {
    /// Time from one sample to the next.
    period: Duration,
    /// Where the consumer started; `None` until a sequence number is known.
    first: Option<u64>,
    /// Next sample to request.
    next: u64,
    /// Newest sample known to be published; the one before `first` if none is.
    newest: u64,
    /// Newest sample taken for published by the clock, whether or not anything of it came.
    assumed: u64,
    /// A sample, and when its lead arrived: others are expected at multiples of the period from it.
    anchor: (u64, Instant),
}

impl Sequence {
    const fn new(period: Duration) -> Self {
        Self {
            period,
            first: None,
            next: 0,
            newest: 0,
            assumed: 0,
            anchor: (0, Instant::ZERO),
        }
    }
}

/// What became of the news that a sample is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// These samples were overtaken by it.
    Overtakes(Range<u64>),
    /// It was known.
    Known,
    /// It lies too far ahead to be accepted.
    Refused,
}

/// The pipeline of one rung: both sequences, and samples to catch up on.
#[derive(Clone, Debug)]
pub(super) struct Pipeline {
    sample_period: Duration,
    key_interval: u32,
    sequences: [Sequence; 2],
    /// Delta samples of the group that playback starts in, published before we came.
    backlog: Range<u64>,
    /// Key sample that playback starts with, until its lead has told which delta samples follow it.
    start_key: Option<u64>,
    /// When a verified lead came last, or the pipeline was started.
    last_arrival: Option<Instant>,
    /// When the next sample is to be requested.
    wake: Option<Instant>,
    limits: PipelineLimits,
}

/// Bounds of a pipeline.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipelineLimits {
    /// Samples that may be requested ahead of the newest one seen.
    pub lead: u64,
    /// How far beyond what is known a sequence number may jump.
    pub jump: u64,
    /// Samples behind the live edge that there is room to catch up with.
    pub catch_up: u64,
}

/// Samples by which encoders that do not keep time may be ahead.
const UNEVEN: u64 = 8;
/// Periods for which nothing may come of a stream that runs.
const SILENT_PERIODS: u32 = 4;

impl Pipeline {
    /// A pipeline for samples every `sample_period`, of which every `key_interval`-th is a key sample.
    pub(super) fn new(sample_period: Duration, key_interval: u32, limits: PipelineLimits) -> Self {
        let interval = key_interval.max(1);
        // Delta samples keep the sample period: one that is expected too early is better than one too late.
        Self {
            sample_period,
            key_interval: interval,
            sequences: [sample_period * interval, sample_period].map(Sequence::new),
            backlog: 0..0,
            start_key: None,
            last_arrival: None,
            wake: None,
            limits,
        }
    }

    /// Starts again from nothing. Playback starts with `start_key`, and it is not known yet what follows it.
    pub(super) fn restart(&mut self, now: Instant, start_key: Option<u64>) {
        for sequence in &mut self.sequences {
            *sequence = Sequence::new(sequence.period);
        }
        self.backlog = 0..0;
        self.start_key = start_key;
        self.last_arrival = Some(now);
    }

    /// Returns whether playback starts with key sample `sequence`; it is known now what follows it.
    pub(super) fn take_start(&mut self, sequence: u64) -> bool {
        self.start_key.take_if(|start| *start == sequence).is_some()
    }

    /// Playback does not start with the key sample that it should have.
    pub(super) const fn forget_start(&mut self) {
        self.start_key = None;
    }

    /// Records that a verified lead came.
    pub(super) const fn on_lead(&mut self, now: Instant) {
        self.last_arrival = Some(now);
    }

    /// Returns when a verified lead came last, or the pipeline was started.
    pub(super) const fn last_arrival(&self) -> Option<Instant> {
        self.last_arrival
    }

    /// Returns whether something came lately. A stream that stands still is not requested over and over.
    pub(super) fn is_alive(&self, now: Instant, round_trip: Duration) -> bool {
        let silence = round_trip + self.sample_period * SILENT_PERIODS;
        self.last_arrival.is_none_or(|last| now <= last + silence)
    }

    /// Returns when the next sample is to be requested, if nothing happens before.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }

    /// Forgets when the next sample is to be requested.
    pub(super) const fn clear_wake(&mut self) {
        self.wake = None;
    }

    /// A sample is to be requested at `at`.
    pub(super) fn wake_by(&mut self, at: Instant) {
        self.wake = self.wake.into_iter().chain([at]).min();
    }

    /// Starts the sequence of `class` at `first`, of which `newest` is published (`first − 1`: none is).
    pub(super) fn start(&mut self, now: Instant, class: SampleClass, first: u64, newest: u64) {
        let sequence = &mut self.sequences[class.index()];
        sequence.first = Some(first);
        sequence.next = first;
        sequence.newest = newest;
        sequence.assumed = newest;
        sequence.anchor = (newest, now);
    }

    /// Returns whether the sequence of `class` has started.
    pub(super) const fn has_started(&self, class: SampleClass) -> bool {
        self.sequences[class.index()].first.is_some()
    }

    /// Returns where the sequence of `class` was started.
    pub(super) const fn first(&self, class: SampleClass) -> Option<u64> {
        self.sequences[class.index()].first
    }

    /// Returns the first sample of `class` that was never requested.
    pub(super) fn next_to_ask(&self, class: SampleClass) -> Option<u64> {
        let sequence = &self.sequences[class.index()];
        sequence.first.map(|_| sequence.next)
    }

    /// Newest sample of `class` known to be published.
    pub(super) fn newest(&self, class: SampleClass) -> Option<u64> {
        let sequence = &self.sequences[class.index()];
        sequence.first.map(|_| sequence.newest)
    }

    /// Returns the samples known to be published since the start, both classes.
    pub(super) fn published(&self) -> u64 {
        self.sequences
            .iter()
            .filter_map(|sequence| {
                Some(
                    sequence
                        .newest
                        .saturating_add(1)
                        .saturating_sub(sequence.first?),
                )
            })
            .sum()
    }

    /// Returns the samples of `class` requested beyond the newest one taken for published.
    pub(super) fn ahead(&self, class: SampleClass) -> u64 {
        let sequence = &self.sequences[class.index()];
        let asked = sequence.next.saturating_sub(1);
        sequence.first.map_or(0, |_| {
            asked.saturating_sub(sequence.newest.max(sequence.assumed))
        })
    }

    /// λ_d of `class` while Data takes `delay`, with a margin of one sample period.
    pub(super) fn lead(&self, class: SampleClass, delay: Duration) -> u64 {
        let period = self.sequences[class.index()].period;
        demand(delay, self.sample_period, period).min(self.limits.lead)
    }

    /// Returns the class of which a sample comes every period, but for key samples in between.
    pub(super) const fn clocked(&self) -> SampleClass {
        if self.key_interval <= 1 {
            SampleClass::Key
        } else {
            SampleClass::Delta
        }
    }

    /// Returns how many samples of `class` up to `newest` were never requested.
    pub(super) fn missed(&self, class: SampleClass, newest: u64) -> u64 {
        let next = self.next_to_ask(class);
        next.map_or(0, |next| newest.saturating_add(1).saturating_sub(next))
    }

    /// Returns the samples behind the live edge that there is room to catch up with: of key samples among others no more than are ever
    /// requested ahead, since nobody would show them.
    fn room_to_catch_up(&self, class: SampleClass) -> u64 {
        match class == self.clocked() {
            true => self.limits.catch_up,
            false => self.limits.catch_up.min(self.limits.lead.saturating_add(1)),
        }
    }

    /// Returns the samples behind the live edge that are caught up with: as many as were published since the last one came, or can
    /// still be shown within `target`. Numbers that were skipped are of samples that never existed, and would take the place of
    /// others.
    fn max_catching_up(&self, now: Instant, class: SampleClass, target: Duration) -> u64 {
        let silence = self.last_arrival.map_or(Duration::ZERO, |at| now.since(at));
        let samples = (silence + target).as_nanos() / self.sample_period.as_nanos().max(1);
        let samples = u64::try_from(samples).unwrap_or(u64::MAX);
        let likely = match class == self.clocked() {
            true => samples.saturating_add(UNEVEN),
            false => samples / u64::from(self.key_interval) + 2,
        };
        likely.min(self.room_to_catch_up(class))
    }

    /// Puts the delta samples from `next` to where the consumer started before all others. Returns whether there is room to.
    pub(super) fn catch_up_from(&mut self, next: u64) -> bool {
        let Some(first) = self.first(SampleClass::Delta) else {
            return true;
        };
        let behind = first.saturating_sub(next);
        let has_room = behind <= self.room_to_catch_up(SampleClass::Delta);
        if has_room && behind > 0 {
            self.catch_up(next..first);
        }
        has_room
    }

    /// Records that sample `number` of `class` is published, and passes over those before it if they are too many to catch up with.
    pub(super) fn on_published(
        &mut self,
        now: Instant,
        class: SampleClass,
        number: u64,
        target: Duration,
    ) -> Advance {
        let advance = self.advance(class, number);
        if matches!(&advance, Advance::Overtakes(range) if !range.is_empty())
            && self.missed(class, number) > self.max_catching_up(now, class, target)
        {
            // Too many, if they exist at all.
            self.skip_to(class, number);
        }
        advance
    }

    /// Puts delta samples `range`, published before the start, before all others.
    const fn catch_up(&mut self, range: Range<u64>) {
        self.backlog = range;
    }

    /// Returns the next sample of `class` to request, published ones first; `None` if that would be too many ahead.
    pub(super) fn peek(&self, class: SampleClass) -> Option<u64> {
        if class == SampleClass::Delta && !self.backlog.is_empty() {
            return Some(self.backlog.start);
        }
        let sequence = &self.sequences[class.index()];
        sequence.first?;
        let most = sequence.newest.max(sequence.assumed);
        let most = most.saturating_add(self.limits.lead);
        (sequence.next <= most && sequence.next < u64::MAX).then_some(sequence.next)
    }

    /// Records that the sample which [`peek`](Self::peek) gave was requested.
    pub(super) fn pop(&mut self, class: SampleClass) {
        if class == SampleClass::Delta && self.backlog.next().is_some() {
            return;
        }
        let sequence = &mut self.sequences[class.index()];
        sequence.next = sequence.next.saturating_add(1);
    }

    /// Records that sample `number` of `class`, which was requested, is to be retransmitted in its turn.
    pub(super) fn give_back(&mut self, class: SampleClass, number: u64) {
        let sequence = &mut self.sequences[class.index()];
        sequence.next = sequence.next.min(number);
    }

    /// Passes over samples of `class` before `from`.
    pub(super) fn skip_to(&mut self, class: SampleClass, from: u64) {
        let sequence = &mut self.sequences[class.index()];
        sequence.next = sequence.next.max(from);
        if class == SampleClass::Delta {
            self.backlog.start = self.backlog.start.max(from).min(self.backlog.end);
        }
    }

    /// Records that sample `number` of `class` is published.
    pub(super) fn advance(&mut self, class: SampleClass, number: u64) -> Advance {
        let max_jump = self.limits.jump;
        let sequence = &mut self.sequences[class.index()];
        if sequence.first.is_none() || number <= sequence.newest {
            return Advance::Known;
        }
        if number - sequence.newest > max_jump {
            return Advance::Refused;
        }
        let before = core::mem::replace(&mut sequence.newest, number);
        // The newest one before was overtaken as well.
        Advance::Overtakes(before..number)
    }

    /// Takes sample `number` of `class` for published, without any proof: others are requested as if it were.
    pub(super) fn assume(&mut self, class: SampleClass, number: u64) {
        let sequence = &mut self.sequences[class.index()];
        sequence.assumed = sequence.assumed.max(number);
    }

    /// Newest sample of `class` taken for published.
    pub(super) const fn assumed(&self, class: SampleClass) -> u64 {
        self.sequences[class.index()].assumed
    }

    /// Records that the lead of sample `number` of `class` arrived without detour.
    pub(super) fn on_arrival(&mut self, now: Instant, class: SampleClass, number: u64) {
        let sequence = &mut self.sequences[class.index()];
        if number >= sequence.anchor.0 {
            sequence.anchor = (number, now);
        }
    }

    /// Returns when sample `number` of `class` should arrive; in the past if it is published.
    pub(super) fn expected_at(&self, class: SampleClass, number: u64) -> Instant {
        let sequence = &self.sequences[class.index()];
        let (anchor, arrived_at) = sequence.anchor;
        let ahead = number.saturating_sub(anchor).min(self.limits.jump);
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        arrived_at + sequence.period.saturating_mul(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{at, ms};
    use super::*;

    const LIMITS: PipelineLimits = PipelineLimits {
        lead: 64,
        jump: 1_000,
        catch_up: 256,
    };

    fn pipeline() -> Pipeline {
        Pipeline::new(ms(40), 25, LIMITS)
    }

    /// The paper's example: 105 ms at 33.3 ms a sample is ⌈3.15⌉ = 4; with our margin of one sample, ⌈4.15⌉ = 5. Keys every
    /// second: ⌈(105 + 33.3) / 1000⌉ = 1.
    #[test]
    fn demand_is_that_of_equation_1_with_a_margin() {
        let period = Duration::from_nanos(33_333_333);
        assert_eq!(demand(ms(105), Duration::ZERO, period), 4);
        assert_eq!(demand(ms(105), period, period), 5);
        assert_eq!(demand(ms(105), period, ms(1_000)), 1);
        assert_eq!(demand(ms(980), period, ms(1_000)), 2);
        // 100 ms at 25 fps: 2.5 periods; a whole number of periods needs no more.
        assert_eq!(demand(ms(100), Duration::ZERO, ms(40)), 3);
        assert_eq!(demand(ms(120), Duration::ZERO, ms(40)), 3);
        assert_eq!(demand(Duration::ZERO, Duration::ZERO, ms(40)), 1);
        assert_eq!(demand(ms(1), ms(1), Duration::ZERO), 2_000_000);
    }

    /// DRD 60 ms, period 40 ms, margin one period: λ = ⌈100/40⌉ = 3.
    #[test]
    fn samples_are_asked_for_up_to_lambda_ahead() {
        let mut pipeline = Pipeline::new(ms(40), 25, PipelineLimits { lead: 3, ..LIMITS });
        assert_eq!(pipeline.peek(SampleClass::Delta), None);
        pipeline.start(at(0), SampleClass::Delta, 11, 10);
        assert_eq!(pipeline.lead(SampleClass::Delta, ms(60)), 3);
        let ask = |pipeline: &mut Pipeline| {
            let next = || {
                let next = pipeline.peek(SampleClass::Delta)?;
                pipeline.pop(SampleClass::Delta);
                Some(next)
            };
            core::iter::from_fn(next).collect::<Vec<_>>()
        };
        assert_eq!(ask(&mut pipeline), [11, 12, 13]);
        assert_eq!(
            pipeline.advance(SampleClass::Delta, 11),
            Advance::Overtakes(10..11)
        );
        assert_eq!(ask(&mut pipeline), [14]);
        assert_eq!(pipeline.advance(SampleClass::Delta, 11), Advance::Known);
        assert_eq!(
            pipeline.advance(SampleClass::Delta, 14),
            Advance::Overtakes(11..14)
        );
        assert_eq!(ask(&mut pipeline), [15, 16, 17]);
        assert_eq!(pipeline.published(), 4);
    }

    #[test]
    fn the_backlog_comes_first_and_is_cut_by_a_skip() {
        let mut pipeline = pipeline();
        pipeline.start(at(0), SampleClass::Delta, 11, 10);
        pipeline.catch_up(5..11);
        assert_eq!(pipeline.peek(SampleClass::Delta), Some(5));
        pipeline.pop(SampleClass::Delta);
        assert_eq!(pipeline.peek(SampleClass::Delta), Some(6));
        pipeline.skip_to(SampleClass::Delta, 9);
        assert_eq!(pipeline.peek(SampleClass::Delta), Some(9));
        assert_eq!(pipeline.ahead(SampleClass::Delta), 0);
        pipeline.skip_to(SampleClass::Delta, 12);
        assert_eq!(pipeline.peek(SampleClass::Delta), Some(12));
        pipeline.pop(SampleClass::Delta);
        assert_eq!(pipeline.ahead(SampleClass::Delta), 2);
    }

    #[test]
    fn a_jump_is_followed_up_to_the_bound() {
        let mut pipeline = pipeline();
        pipeline.start(at(0), SampleClass::Key, 5, 5);
        assert_eq!(pipeline.advance(SampleClass::Key, 1_006), Advance::Refused);
        assert_eq!(pipeline.newest(SampleClass::Key), Some(5));
        assert_eq!(
            pipeline.advance(SampleClass::Key, 1_005),
            Advance::Overtakes(5..1_005)
        );
        assert_eq!(
            pipeline.advance(SampleClass::Key, u64::MAX),
            Advance::Refused
        );
    }

    /// Keys every 25 · 40 ms = 1 s.
    #[test]
    fn samples_are_expected_at_multiples_of_their_period() {
        let mut pipeline = pipeline();
        pipeline.start(at(0), SampleClass::Key, 5, 5);
        pipeline.on_arrival(at(200), SampleClass::Key, 6);
        pipeline.on_arrival(at(900), SampleClass::Key, 5);
        assert_eq!(pipeline.expected_at(SampleClass::Key, 8), at(2_200));
        assert_eq!(pipeline.expected_at(SampleClass::Key, 4), at(200));
    }

    #[test]
    fn lambda_is_bounded() {
        let pipeline = pipeline();
        assert_eq!(
            pipeline.lead(SampleClass::Delta, Duration::from_secs(9)),
            64
        );
    }
}
