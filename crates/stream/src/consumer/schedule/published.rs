//! What is known to be published: lead segments say so, and what the publisher says of its newest samples.
//!
//! ```text
//!   lead of delta 41: 41, and key 7 that it needs ──┐                    ┌─▶ those before it were overtaken
//!   lead of key 8: 8, and the delta before it ──────┼──▶ Pipeline::on_published
//!   metadata: the newest of both ───────────────────┘                    └─▶ too many to catch up with: passed over
//! ```

use core::ops::RangeInclusive;
use core::time::Duration;

use namecast_units::{Instant, Timestamp};

use crate::metadata::Latest;
use crate::names::SampleClass;
use crate::sample::SampleHeader;

use super::super::LineUp;
use super::super::assembler::LeadAnswer;
use super::super::order::SampleKey;
use super::super::pipeline::Advance;
use super::super::repair::LONG_QUEUE;
use super::super::timeline::LeadArrival;
use super::Schedule;

/// What follows from a sample's being published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::consumer) struct News {
    /// Samples that are known to exist now.
    pub newer: Vec<(SampleClass, RangeInclusive<u64>)>,
    /// Samples that a later one overtook.
    pub overtaken: Vec<(SampleClass, RangeInclusive<u64>)>,
    /// Numbers that jumped too far to be followed.
    pub refused: u64,
    /// The group that playback starts with is too long to catch up with: it starts with this key sample.
    pub plays_from: Option<u64>,
}

impl Schedule {
    /// Learns from when, and in answer to whom, a lead segment was published. Returns the DRD if it shows, and when the sample
    /// could have been here at the earliest.
    pub(in crate::consumer) fn measure(
        &mut self,
        now: Instant,
        key: SampleKey,
        published_at: Timestamp,
        answer: &LeadAnswer,
    ) -> (Option<Duration>, Instant) {
        let measured = answer
            .delay
            .and_then(|sample| self.path.delay.on_sample(now, sample));
        if let Some(round_trip) = measured {
            self.synchroniser.on_delay(round_trip);
        }
        let asked_ahead = answer.asked_ahead;
        let is_live = asked_ahead && (answer.is_clear || answer.is_first);
        let tells_base = !self.goes_by_gaps() || key.0 == self.pipeline.clocked();
        let available_at = self.timeline.on_arrival(
            now,
            &LeadArrival {
                published_at,
                asked_ahead,
                is_live,
                tells_base,
                rebuffers: tells_base && self.synchroniser.take_rebuffers(),
                is_queued: self.path.outlook.queueing > LONG_QUEUE,
            },
        );
        if asked_ahead {
            let waited = answer.waited.filter(|_| is_live);
            self.learn_ahead(now, key, published_at, waited);
        }
        (measured, available_at)
    }

    /// Learns from a sample requested ahead: how long our Interest waited for it, or that it came too late to wait.
    fn learn_ahead(
        &mut self,
        now: Instant,
        (class, sequence): SampleKey,
        published_at: Timestamp,
        waited: Option<Duration>,
    ) {
        let late = self.timeline.lateness(now, published_at);
        if late <= self.period {
            self.synchroniser.on_live(now);
        }
        if class != self.pipeline.clocked() {
            return;
        }
        match waited {
            Some(Duration::ZERO) => self.synchroniser.on_late(now, sequence, late),
            Some(waited) => self.synchroniser.on_waited(now, sequence, waited),
            None => {}
        }
    }

    /// Records what a verified lead segment says: it is published, and so is what it refers to.
    pub(in crate::consumer) fn on_lead(
        &mut self,
        now: Instant,
        key: SampleKey,
        header: &SampleHeader,
    ) -> News {
        self.timeline.on_lead(now, key, header);
        self.handover.on_lead(key, header);
        let mut news = News::default();
        let (class, sequence) = key;
        let other = header.other_sequence;
        if self.pipeline.newest(class).is_none_or(|n| sequence > n) {
            self.pipeline.on_arrival(now, class, sequence);
        }
        self.on_published(now, key, &mut news);
        match class {
            SampleClass::Key if self.is_standalone() => {}
            SampleClass::Key => self.on_key_published(now, sequence, other, &mut news),
            SampleClass::Delta => {
                self.on_published(now, (SampleClass::Key, other), &mut news);
                news.overtaken.push((SampleClass::Key, other..=other));
            }
        }
        self.pipeline.on_lead(now);
        news
    }

    /// Key sample `sequence` is published, and `next` is the delta sample after it.
    fn on_key_published(&mut self, now: Instant, sequence: u64, next: u64, news: &mut News) {
        let before = next.saturating_sub(1);
        if !self.pipeline.has_started(SampleClass::Delta) {
            self.pipeline.start(now, SampleClass::Delta, next, before);
        }
        if self.pipeline.take_start(sequence) {
            news.plays_from = self.catch_up_from(sequence, next);
        }
        self.on_published(now, (SampleClass::Delta, before), news);
        news.overtaken.push((SampleClass::Delta, before..=before));
    }

    /// A sample is published, by whatever says so.
    fn on_published(&mut self, now: Instant, (class, sequence): SampleKey, news: &mut News) {
        let target = self.timeline.target();
        match self.pipeline.on_published(now, class, sequence, target) {
            Advance::Overtakes(range) if !range.is_empty() => {
                let newer = range.start.saturating_add(1)..=range.end;
                news.newer.push((class, newer));
                news.overtaken.push((class, range.start..=range.end - 1));
            }
            Advance::Refused => news.refused += 1,
            Advance::Overtakes(_) | Advance::Known => {}
        }
    }

    /// Compares what the publisher says of its newest samples with what is known, while playback waits for nothing before key
    /// sample `first_key`. `is_starved`: nothing comes.
    pub(in crate::consumer) fn line_up(
        &mut self,
        now: Instant,
        latest: &Latest,
        first_key: u64,
        is_starved: bool,
    ) -> (LineUp, News) {
        let mut news = News::default();
        let known = self.pipeline.newest(SampleClass::Key);
        let Some((key, known)) = latest.key_sequence.zip(known) else {
            return (LineUp::OutOfLine, news);
        };
        let is_lower = key < known && (is_starved || self.timeline.is_news(latest));
        if is_lower
            || key.saturating_sub(known) > self.max_jump
            || self.synchroniser.waits_for_start()
        {
            return (LineUp::OutOfLine, news);
        }
        if self.goes_by_gaps() {
            // What is newest shows in the gaps between arrivals.
            return (LineUp::Missed(Duration::ZERO), news);
        }
        let missed_deltas = |newest| self.pipeline.missed(SampleClass::Delta, newest);
        let missed = self.pipeline.missed(SampleClass::Key, key)
            + latest.delta_sequence.map_or(0, missed_deltas);
        self.timeline.on_news(latest.served_at);
        self.on_published(now, (SampleClass::Key, key), &mut news);
        if let Some(delta) = latest.delta_sequence {
            self.on_published(now, (SampleClass::Delta, delta), &mut news);
        }
        // Only a later key sample than the one in hand allows to leave samples out.
        let missed = if key > first_key { missed } else { 0 };
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        (LineUp::Missed(self.period.saturating_mul(missed)), news)
    }

    /// Returns whether a lead segment of `class` may refer to sample `other` of the other class: it is no more than a jump away.
    pub(in crate::consumer) fn is_near(&self, class: SampleClass, other: u64) -> bool {
        let known = match class {
            SampleClass::Key if self.is_standalone() => return true,
            SampleClass::Key => self.pipeline.newest(SampleClass::Delta),
            SampleClass::Delta => self.pipeline.newest(SampleClass::Key),
        };
        known.is_none_or(|known| other.saturating_sub(known) <= self.max_jump)
    }
}
