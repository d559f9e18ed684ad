//! Asks for the segments of large samples one after the other, no faster than the narrowest link of the way passes them on.
//!
//! ```text
//!                 published
//!  the link     ───┼─lead─1─2─3─4─5─6─7─8─9─┼─lead─1─2 …
//!  Interests   l123────────4─5─6─7─8─9──l12──────────3 …     DRD before their Data is due
//! ```
//!
//! All segments of a sample would leave the producer at once if their Interests were there, and wait in the link's queue.
//! The first few still do: they show what the link carries ([`Train`](crate::ladder::Train)). Leads never wait for others, so
//! what they tell of the way has nothing of ours in it.

use std::collections::BTreeMap;

use core::time::Duration;

use namecast_units::{Bitrate, ByteSize, Instant};

use crate::names::{SampleClass, SegmentId};

use super::Consumer;
use super::order::SampleKey;

/// So much may leave the producer at once: less is not worth a timer.
const BURST: Duration = Duration::from_millis(5);
/// The same in segments: a train, and one to spare.
const BURST_SEGMENTS: u32 = 4;
/// Most samples whose segments are to be asked for when their time comes.
const MOST_HELD: usize = 8;

/// When segments pass the narrowest link, by our own reckoning.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacing {
    /// Time that a segment takes on the link, and a little more; `None`: no pacing.
    gap: Option<Duration>,
    /// When the link has passed on all that was planned.
    free_at: Instant,
    /// Interests to send, by when their Data is due here.
    later: BTreeMap<(Instant, u64), SegmentId>,
    planned: u64,
    /// Segments of samples that are too far ahead to be planned.
    held: Vec<(SampleKey, Vec<SegmentId>)>,
}

impl Pacing {
    fn set(&mut self, pace: Option<(Bitrate, ByteSize)>) {
        self.gap = pace
            .map(|(rate, segment)| segment / rate)
            .filter(|gap| *gap > Duration::ZERO);
    }

    /// How much may leave at once.
    fn burst(gap: Duration) -> Duration {
        BURST.max(gap * (BURST_SEGMENTS - 1))
    }

    pub(super) fn clear(&mut self) {
        let (gap, free_at) = (self.gap, self.free_at);
        *self = Self::default();
        (self.gap, self.free_at) = (gap, free_at);
    }

    /// Takes over what the link is busy with.
    pub(super) fn learn_from(&mut self, other: &Self) {
        self.gap = other.gap;
        self.free_at = other.free_at;
    }

    /// Forgets what is asked for no more.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(SampleKey) -> bool) {
        self.held.retain(|(key, _)| is_wanted(*key));
        let before = self.later.len();
        self.later
            .retain(|_, id| is_wanted((id.class, id.sequence)));
        if self.later.len() < before {
            let last = self.later.keys().next_back();
            self.free_at = last.map_or(Instant::ZERO, |(due_at, _)| *due_at);
        }
    }

    /// Interests that wait for their time.
    pub(super) fn len(&self) -> usize {
        let held: usize = self.held.iter().map(|(_, ids)| ids.len()).sum();
        self.later.len() + held
    }

    fn put(&mut self, due_at: Instant, id: SegmentId) {
        self.planned += 1;
        self.later.insert((due_at, self.planned), id);
    }

    /// When the next one is due here.
    fn next_due(&self) -> Option<Instant> {
        self.later.keys().next().map(|(due_at, _)| *due_at)
    }

    fn pop_due(&mut self, due_by: Instant) -> Option<SegmentId> {
        let first = self.later.first_entry()?;
        (first.key().0 <= due_by).then(|| first.remove())
    }

    /// Takes note that a sample has so many segments more, or less, than was reckoned with.
    fn correct(&mut self, more: f64) {
        let Some(gap) = self.gap else { return };
        let off = gap.mul_f64(more.abs());
        self.free_at = match more > 0.0 {
            true => self.free_at + off,
            false => self.free_at.saturating_sub(off),
        };
    }
}

impl Consumer {
    /// Asks for segments no faster than at this rate, each of that size; `None` lets those of a sample leave the producer
    /// together.
    pub fn set_pace(&mut self, pace: Option<(Bitrate, ByteSize)>) {
        self.pacing.set(pace);
    }

    /// Whether segments are asked for one after the other.
    pub(super) fn is_paced(&self) -> bool {
        self.gap().is_some()
    }

    /// Time that a segment takes, where samples are asked for when their time comes.
    pub(super) fn gap(&self) -> Option<Duration> {
        let goes_by_gaps = self.follows_paper() || self.synchroniser.lead().is_some();
        self.pacing.gap.filter(|_| !goes_by_gaps)
    }

    /// Of a sample that does not exist yet, the segments to ask for now; the others when their time comes.
    pub(super) fn pace_sample(
        &mut self,
        now: Instant,
        key: SampleKey,
        mut ids: Vec<SegmentId>,
    ) -> Vec<SegmentId> {
        let Some(gap) = self.gap() else {
            return ids;
        };
        let burst = Pacing::burst(gap).as_nanos() / gap.as_nanos().max(1) + 1;
        let burst = usize::try_from(burst).unwrap_or(usize::MAX);
        if key.0 != self.clocked_class() && self.plan_at(now, key) > now {
            let rest = ids.split_off(burst.min(ids.len()));
            if self.pacing.held.len() < MOST_HELD && !rest.is_empty() {
                self.pacing.held.push((key, rest));
                return ids;
            }
            ids.extend(rest);
        }
        let soonest = self.soonest(now, key).max(now);
        let start = self.pacing.free_at.max(soonest);
        let behind = start.since(soonest);
        self.note_behind(key, behind);
        let at_once = if behind > BURST { 1 } else { burst };
        let rest = ids.split_off(at_once.min(ids.len()));
        self.plan(start, gap, at_once, rest);
        let count = self.segments.mean(key.0);
        self.pacing.free_at = start + gap.mul_f64(count);
        ids
    }

    fn plan(&mut self, start: Instant, gap: Duration, before: usize, rest: Vec<SegmentId>) {
        for (index, id) in (before..).zip(rest) {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            self.pacing.put(start + gap.saturating_mul(index), id);
        }
    }

    /// When the segments of a sample that was asked for long before are to be planned.
    fn plan_at(&self, now: Instant, key: SampleKey) -> Instant {
        self.soonest(now, key).saturating_sub(self.ahead_by(now))
    }

    /// Plans those whose time has come. When the next one's does.
    pub(super) fn plan_held(&mut self, now: Instant) -> Option<Instant> {
        let mut next: Option<Instant> = None;
        let mut at = 0;
        while let Some((key, _)) = self.pacing.held.get(at) {
            let key = *key;
            let plan_at = match self.is_published(key) {
                true => now,
                false => self.plan_at(now, key),
            };
            if plan_at > now {
                next = next.into_iter().chain([plan_at]).min();
                at += 1;
                continue;
            }
            let (_, rest) = self.pacing.held.remove(at);
            let soonest = self.soonest(now, key).max(now);
            match self.gap() {
                Some(gap) => {
                    let start = self.pacing.free_at.max(soonest);
                    let first = rest.first().map_or(0, |id| id.index);
                    self.plan(start, gap, usize::try_from(first).unwrap_or(0), rest);
                    let count = self.segments.mean(key.0);
                    self.pacing.free_at = start + gap.mul_f64(count);
                    self.note_behind(key, start.since(soonest));
                }
                None => self.wanted.extend(rest),
            }
        }
        next
    }

    fn note_behind(&mut self, key: SampleKey, behind: Duration) {
        if let Some(sample) = self.samples.get_mut(&key) {
            sample.behind = behind;
        }
    }

    /// Queues what must leave now. When the next one must.
    pub(super) fn release_paced(&mut self, now: Instant) -> Option<Instant> {
        // What Data takes now may be for queues, which are not to be made longer.
        let delay = self.least_delay(now);
        while let Some(id) = self.pacing.pop_due(now + delay) {
            self.wanted.push_back(id);
        }
        Some(self.pacing.next_due()?.saturating_sub(delay))
    }

    /// Corrects the plan by what a lead says of its sample.
    pub(super) fn correct_plan(&mut self, class: SampleClass, data: usize) {
        let reckoned = self.segments.mean(class);
        self.pacing.correct(data as f64 - reckoned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SegmentKind;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn id(sequence: u64, index: u64) -> SegmentId {
        SegmentId {
            class: SampleClass::Delta,
            sequence,
            kind: SegmentKind::Data,
            index,
        }
    }

    /// 1000 octets at 4 Mbit/s are 2 ms: three gaps are 6 ms of burst. At 100 Mbit/s, 5 ms are 62 segments.
    #[test]
    fn so_much_leaves_at_once() {
        let mut pacing = Pacing::default();
        pacing.set(Some((Bitrate::mbps(4), ByteSize::bytes(1_000))));
        assert_eq!(
            pacing.gap.map(Pacing::burst),
            Some(Duration::from_millis(6))
        );
        pacing.set(Some((Bitrate::mbps(100), ByteSize::bytes(1_000))));
        assert_eq!(pacing.gap.map(Pacing::burst), Some(BURST));
        pacing.set(None);
        assert_eq!(pacing.gap, None);
    }

    #[test]
    fn segments_leave_in_the_order_in_which_they_are_due() {
        let mut pacing = Pacing::default();
        for (millis, index) in [(14, 7), (10, 5), (12, 6), (10, 4)] {
            pacing.put(at(millis), id(1, index));
        }
        assert_eq!((pacing.len(), pacing.next_due()), (4, Some(at(10))));
        let due: Vec<u64> = core::iter::from_fn(|| pacing.pop_due(at(12)))
            .map(|id| id.index)
            .collect();
        assert_eq!(due, [5, 4, 6]);
        assert_eq!(pacing.next_due(), Some(at(14)));
    }

    /// A sample that turns out to have three segments more keeps the link busy for 6 ms more; what is asked for no more frees it.
    #[test]
    fn the_plan_follows_what_is_known() {
        let mut pacing = Pacing::default();
        pacing.set(Some((Bitrate::mbps(4), ByteSize::bytes(1_000))));
        pacing.free_at = at(100);
        pacing.correct(3.0);
        assert_eq!(pacing.free_at, at(106));
        pacing.correct(-1.0);
        assert_eq!(pacing.free_at, at(104));
        pacing.put(at(90), id(1, 5));
        pacing.put(at(102), id(2, 5));
        pacing.retain(|(_, sequence)| sequence == 1);
        assert_eq!((pacing.len(), pacing.free_at), (1, at(90)));
    }
}
