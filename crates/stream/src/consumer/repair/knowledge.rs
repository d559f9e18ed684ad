//! What is known of losses: how many, how late packets come that are not lost, and what still waits in a queue.

use core::time::Duration;
use std::cmp::Reverse;

use namecast_units::{Instant, WindowedMinimum};

use crate::names::SampleClass;

use super::super::assembler::{Asked, Assembly};
use super::link_retransmission::{LinkRetransmissionDetector, Room};
use super::loss::LossEstimator;
use super::plan::LONG_QUEUE;
use super::progress::Progress;
use super::{Came, LEAD, MIN_MARGIN, Moment, Times};

/// The margin before anything was seen: a choice, about a third of a period at 30 frames a second. Measured: half and double lose 0.5 and 1.7 % of frames
/// in bursts, and 0.2 % at most without.
const FIRST_MARGIN: Duration = Duration::from_millis(10);
/// Bounds of the time that packets are given to overtake each other before they were seen to do so: an eighth of the delay, as
/// RFC 9002 section 6.1.2 gives a packet, between these. Measured: half and double of the first change nothing; of the second, 0.3 % of
/// frames in bursts.
const MIN_REORDERING: Duration = Duration::from_millis(2);
const USUAL_REORDERING: Duration = Duration::from_millis(10);

/// What a consumer knows of losses.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    pub(super) losses: LossEstimator,
    /// Of Interests alone, as far as hedged ones show it.
    interests: LossEstimator,
    /// The most by which segments of key and delta samples came after the earliest time lately (a minimum in reverse).
    lags: [WindowedMinimum<Reverse<Duration>>; 2],
    /// The most by which packets overtook each other lately (a minimum in reverse).
    reordering: WindowedMinimum<Reverse<Duration>>,
    progress: Progress,
    pub(super) link_retransmission: LinkRetransmissionDetector,
}

impl Knowledge {
    pub(super) fn new(period: Duration, key_interval: u32) -> Self {
        // A key sample comes every second or so: each class remembers a few dozen samples.
        let key_period = period.saturating_mul(key_interval.max(1));
        let spans = [key_period, period].map(|period| (period * 4).max(Duration::from_millis(250)));
        Self {
            losses: LossEstimator::default(),
            interests: LossEstimator::default(),
            lags: spans.map(|span| WindowedMinimum::new(span, 10)),
            reordering: WindowedMinimum::new(Duration::from_secs(1), 10),
            progress: Progress::default(),
            link_retransmission: LinkRetransmissionDetector::default(),
        }
    }

    /// Returns the share of segments lost lately.
    pub(super) fn loss(&self) -> f64 {
        self.losses.share().max(self.interests.share())
    }

    /// Returns how the queue on the path moves on, no faster than we ask.
    pub(super) fn progress(&self) -> Progress {
        self.progress.of_slow_links()
    }

    /// Returns how much later than at the earliest segments come that are not lost.
    pub(super) fn margin(&self, moment: &Moment, class: SampleClass) -> Duration {
        let seen = self.lags[class.index()].minimum(moment.now);
        let margin = seen.map_or(FIRST_MARGIN, |lag| lag.0 * 5 / 4);
        let most = (moment.delay / 2).max(self.progress().ordinary());
        margin.min(most).max(MIN_MARGIN)
    }

    /// Returns how long what is late is waited for, from the earliest time on: for `margin`, or what links take that repeat it.
    pub(super) fn wait(&self, moment: &Moment, margin: Duration) -> Duration {
        let wait = self.link_retransmission.wait(moment.now, room(moment));
        wait.map_or(margin, |wait| wait.max(margin))
    }

    /// Returns the time that packets are given to overtake each other: what was seen in the last seconds and a quarter, or the usual
    /// time if that is more.
    pub(super) fn reordering(&self, moment: &Moment) -> Duration {
        let delay = moment.delay;
        let usual = (delay / 8).clamp(MIN_REORDERING, USUAL_REORDERING);
        let seen = self.reordering.minimum(moment.now);
        let seen = seen.map_or(Duration::ZERO, |seen| seen.0);
        (seen * 5 / 4).min(delay / 2).max(usual)
    }

    pub(super) const fn on_unwanted(&mut self, now: Instant) {
        self.progress.still_moves(now);
    }

    pub(super) fn learn_reordering(
        &mut self,
        moment: &Moment,
        asked: &Asked,
        thought_lost: Instant,
    ) {
        let now = moment.now;
        let least = moment.least.unwrap_or_default();
        // An answer that came sooner than possible belongs to an earlier transmission.
        let is_late_answer = asked.attempts > 1 && now.since(asked.last_at) * 4 < least * 3;
        let was_due = asked.attempts == 1 && asked.last_at + least <= thought_lost;
        if is_late_answer || was_due {
            self.reordering.push(now, Reverse(now.since(thought_lost)));
        }
    }

    /// Learns by how much a segment came after the earliest time, unless it was given up before: what is requested again
    /// may come from a cache nearby, so that its time says nothing. The margin still grows to whatever jitter there is,
    /// since it lies above the greatest lag seen, by a quarter. Returns whether it came by itself, and was not lost.
    pub(super) fn learn_lag(&mut self, moment: &Moment, times: &Times, came: &Came<'_>) -> bool {
        let asked = came.asked;
        let now = moment.now;
        if moment.path.queueing > LONG_QUEUE {
            // What comes late was queued; that is no jitter, nor does a link repeat it.
            return false;
        }
        let class = times.key.0;
        let least = moment.least.unwrap_or_default();
        // Where packets are late, one that comes sooner than it could if it had been requested again was so, not lost.
        let margin = self.margin(moment, class);
        let is_late = margin > MIN_MARGIN;
        let by_itself = is_late && now.since(asked.last_at) * 5 < least * 2;
        let Some(earliest) = times.earliest.filter(|_| came.is_first) else {
            return by_itself;
        };
        let asked_once = asked.attempts == 1 || asked.is_hedged;
        let lag = now.since(earliest.max(asked.last_at + moment.delay));
        let is_overdue = lag > margin;
        let tells = came.name == LEAD || self.link_retransmission.is_trusted();
        match is_overdue {
            true if tells && asked_once => {
                self.link_retransmission
                    .on_late_arrival(now, lag, room(moment))
            }
            true => {}
            false => self.link_retransmission.on_arrival(now),
        }
        // What a link repeats is no jitter.
        if !(is_overdue && self.link_retransmission.is_trusted()) {
            self.lags[class.index()].push(now, Reverse(lag));
        }
        by_itself
    }

    /// Learns how the queue on the path moves on.
    pub(super) fn learn_progress(&mut self, moment: &Moment, times: &Times, asked: &Asked) {
        if asked.attempts != 1 {
            self.progress.still_moves(moment.now);
            return;
        }
        let least = moment.min_delay();
        let set_out = times.expected_at().max(asked.last_at + least);
        let place = (set_out, asked.order);
        self.progress
            .note(moment.now, times.key, place, asked.last_at);
    }

    pub(super) fn on_first_lost(&mut self) {
        self.link_retransmission.on_timeout();
    }

    pub(super) fn on_hedged(&mut self, first_was_lost: bool) {
        self.interests.observe(core::iter::once(first_was_lost));
    }

    pub(super) fn on_whole(&mut self, moment: &Moment, times: &Times, sample: &Assembly) {
        let lead = sample.slots().next();
        // It was overdue, and requested by the names of its copies alone.
        let on_loss = lead
            .is_some_and(|(_, _, slot)| slot.asked.is_some() && slot.is_first() && slot.was_lost);
        if on_loss {
            let lag = moment.now.since(times.expected_at());
            self.link_retransmission.on_loss(lag, room(moment));
        }
        let early = sample.data().iter().filter(|slot| slot.is_early);
        let lost: Vec<_> = early.map(|slot| slot.was_lost).collect();
        if !lost.is_empty() {
            self.losses.observe(lost.into_iter());
        }
    }
}

/// Returns how long after the earliest time what is late may be waited for.
fn room(moment: &Moment) -> Room {
    let deadline = moment.time_to_leave;
    let round = moment.delay + MIN_MARGIN;
    Room {
        last_call: deadline.saturating_sub(round),
        deadline,
    }
}
