//! Namecast's repair: by the stream's clock, in rounds, with as much ahead as loss and the time left warrant.

use core::time::Duration;

use namecast_units::Instant;

use crate::names::{SampleClass, SegmentKind};
use crate::sample::MAX_LEAD_COPIES;

use super::super::Consumer;
use super::super::claims::FEW;
use super::super::order::SampleKey;
use super::super::segments::SegmentCounts;
use super::plan::Outlook;
use super::{CLEAN, RecoveryConfig, Repair};

/// Bounds of the time from an Interest to another one that makes up for its loss: beyond what forwarders hold back
/// (NFD: 10 ms, then 20 ms), and long enough for a burst of losses to end.
const BURST: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(40));
/// Loss to reckon with once anything is missing.
const LEAST_LOSS: f64 = 0.01;
/// Samples that may be taken for published although nothing of them came, beyond those asked for ahead.
const MOST_UNSEEN: u64 = 8;
/// Interests for samples that nobody will show, at most, if there is time to wait for the next key sample.
const MOST_IN_VAIN: usize = 8;

/// [`RecoveryProfile::Namecast`](super::RecoveryProfile::Namecast).
pub(super) struct Namecast;

impl Repair for Namecast {
    fn ahead(&self, consumer: &Consumer, now: Instant, class: SampleClass) -> SegmentCounts {
        let SegmentCounts { mut data, parity } = consumer.segments.estimate(class);
        if !consumer.source.is_standalone() && !consumer.has_time_to_repair(now, class) {
            // One that turns out larger could not be asked for the rest in time; what it does not have costs no Data.
            data = (data + parity.max(1)).min(consumer.config.most_segments);
        }
        let parity = consumer.parity_ahead(now, class, data);
        SegmentCounts { data, parity }
    }

    fn lead_copies(&self, config: &RecoveryConfig) -> usize {
        config.lead_copies.min(MAX_LEAD_COPIES)
    }

    fn uses_across(&self, config: &RecoveryConfig) -> bool {
        config.across
    }

    fn insurance(&self, consumer: &Consumer) -> Option<Duration> {
        let warranted = !consumer.recovery.patience.is_trusted()
            && consumer.loss() >= consumer.config.recovery.insure_from;
        warranted.then(|| consumer.burst())
    }

    fn is_paced(&self) -> bool {
        true
    }

    fn requests_reported(&self, kind: SegmentKind) -> bool {
        kind == SegmentKind::Data
    }

    fn doubts_claims(&self) -> bool {
        true
    }

    fn most_in_vain(&self) -> usize {
        MOST_IN_VAIN
    }

    fn check_at(&self, consumer: &Consumer, now: Instant, key: SampleKey) -> Instant {
        consumer.due_at(now, key)
    }

    fn check_sent_at(&self, due: Instant, _retry_at: Instant) -> Instant {
        due
    }

    fn check(&self, consumer: &mut Consumer, now: Instant, key: SampleKey) {
        consumer.insure(now, key);
        consumer.rebuild(now, key);
        if let Some(until) = consumer.waits_for_across(now, key) {
            if let Some(sample) = consumer.samples.get_mut(&key) {
                sample.wake = sample.next_insurance().into_iter().chain([until]).min();
            }
            return;
        }
        let outlook = consumer.outlook(now, key);
        let Some(sample) = consumer.samples.get(&key).filter(|s| s.complete.is_none()) else {
            if let Some(sample) = consumer.samples.get_mut(&key) {
                sample.wake = None;
            }
            return;
        };
        let mut round = outlook.plan(sample);
        if sample.is_doubtful {
            // What may not exist is not worth more.
            round.ask.truncate(FEW);
        }
        for &(kind, index) in &round.lost {
            consumer.note_lost(now, key, (kind, index));
        }
        if let Some(sample) = consumer.samples.get_mut(&key) {
            sample.hedge_at = round.hedge_at;
            let insured = sample.next_insurance().into_iter();
            sample.wake = insured.chain(round.next_look).min();
        }
        for &(kind, index) in &round.ask {
            if let Some(slot) = consumer.slot_mut(key, (kind, index)) {
                slot.is_repair = true;
            }
            consumer.queue_repair(key, kind, index);
        }
        if round.give_up {
            consumer.give_up(key);
        }
    }

    fn hedge_missing(&self, consumer: &mut Consumer, now: Instant, key: SampleKey) {
        // Where segments are asked for one by one, all of them in one burst of losses are few; where links repeat them, none.
        let is_clean = consumer.recovery.losses.share() < CLEAN;
        if is_clean || consumer.recovery.patience.is_trusted() {
            return;
        }
        let hedge_at = consumer.outlook(now, key).hedge_at();
        if let Some((at, sample)) = hedge_at.zip(consumer.samples.get_mut(&key)) {
            sample.hedge_at = Some(sample.hedge_at.map_or(at, |before| before.min(at)));
            sample.wake_by(at);
        }
    }

    fn pass_unseen(&self, consumer: &mut Consumer, now: Instant) {
        if !consumer.is_alive(now, consumer.delay.timeout(now, 0)) {
            return;
        }
        for class in SampleClass::ALL {
            let Some(newest) = consumer.pipeline.newest(class) else {
                continue;
            };
            let known = consumer.pipeline.assumed(class).max(newest);
            for sequence in known.saturating_add(1)..=newest.saturating_add(MOST_UNSEEN) {
                let key = (class, sequence);
                if consumer.published_at(key).is_none() || consumer.due_at(now, key) > now {
                    break;
                }
                consumer.pipeline.assume(class, sequence);
            }
        }
    }
}

impl Consumer {
    fn outlook(&self, now: Instant, key: SampleKey) -> Outlook<'_> {
        let expected_at = self.expected_at(now, key);
        let margin = self.margin(now, key.0);
        let wait = self.wait(now, margin);
        let round_trip = self.delay.timeout(now, 0);
        let deadline = match self.published_at(key) {
            Some(published_at) => self.timeline.render_at(now, published_at),
            None => expected_at + self.timeline.target(),
        };
        Outlook {
            now,
            due_at: expected_at + wait + self.unpunctuality(now, key),
            expected_at,
            margin,
            wait,
            repeats: self.recovery.patience.is_trusted(),
            prefers_copies: self.prefers_copies(key),
            queueing: self.outlook.queueing,
            jitter: self.outlook.jitter,
            progress: self.progress(),
            delay: self.delay.estimate(now),
            least_delay: self.least_delay(now),
            round_trip,
            hedge_after: self.burst(),
            deadline,
            hurry_until: deadline + self.playback.tolerance(),
            is_alive: self.is_alive(now, round_trip),
            is_published: self.is_published(key),
            losses: self.recovery.losses.losses(LEAST_LOSS).of_round_trip(),
            most_attempts: self.config.most_attempts,
            config: &self.config.recovery,
        }
    }

    /// Whether copies of a sample's lead are asked for before the lead itself is again. To find out by a key sample would risk
    /// all that needs it.
    fn prefers_copies(&self, (class, sequence): SampleKey) -> bool {
        let patience = &self.recovery.patience;
        let may_test = class == SampleClass::Delta || self.source.is_standalone();
        patience.is_trusted() || may_test && patience.is_test(sequence)
    }

    /// Whether something came lately. A stream that stands still is not asked for again and again.
    fn is_alive(&self, now: Instant, round_trip: Duration) -> bool {
        self.pipeline.is_alive(now, round_trip)
    }

    /// Time after which another Interest is not lost in the same burst: about one sample.
    fn burst(&self) -> Duration {
        let (least, most) = BURST;
        self.source.rate.period().clamp(least, most)
    }

    /// Sends Interests of a sample a second time that are due for it.
    fn insure(&mut self, now: Instant, key: SampleKey) {
        let Some(sample) = self.samples.get(&key) else {
            return;
        };
        let due: Vec<_> = sample
            .slots()
            .chain(sample.across())
            .filter(|(_, _, slot)| slot.insure_at.is_some_and(|at| at <= now))
            .map(|(kind, index, _)| (kind, index))
            .collect();
        for (kind, index) in due {
            let Some(slot) = self.slot_mut(key, (kind, index)) else {
                continue;
            };
            slot.insure_at = None;
            if slot.is_missing()
                && let Some(asked) = &mut slot.asked
            {
                asked.is_insured = true;
                self.queue_repair(key, kind, index);
            }
        }
    }

    /// Parity segments of a sample of `data` segments to ask for ahead: none where a repair round fits before its time,
    /// else as many as make it unlikely that it misses it.
    fn parity_ahead(&self, now: Instant, class: SampleClass, data: u32) -> u32 {
        let losses = self.recovery.losses.losses(0.0);
        if losses.share < CLEAN || self.has_time_to_repair(now, class) {
            return 0;
        }
        let most = self.segments.estimate(class).parity;
        (0..most)
            .find(|&more| {
                let (sent, needed) = ((data + more) as usize, data as usize);
                losses.fewer(sent, needed) <= self.config.recovery.miss
            })
            .unwrap_or(most)
    }
}
