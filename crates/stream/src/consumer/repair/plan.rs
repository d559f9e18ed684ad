//! What to request, so that a sample is whole before its time.
//!
//! ```text
//!   asked ahead     due        hedge      a round trip later       hedge      deadline
//!  ─────┬────────────┬───────────┬────────────────┬─────────────────┬────────────┬──▶
//!       │            │ what is   │ others, if all │ as many as make │ others
//!       │            │ missing   │ may be lost    │ failure unlikely│
//! ```
//!
//! A round requests segments that are missing and for further ones, parity or copies of the lead: each name once, since
//! routers hold a second Interest for the same name back, and where both came through, the first Data answers both.

use core::cmp::Reverse;
use core::time::Duration;

use namecast_units::Instant;

use crate::names::SegmentKind;
use crate::path::PathOutlook;
use crate::sample::Lead;

use super::super::assembler::{Asked, Assembly, Name, Slot};
use super::odds::Losses;
use super::progress::Progress;
use super::{LEAD, RecoveryConfig};

/// Probability with which a round that another one can follow may fail: requesting more than is missing would cost more than it
/// saves. Measured: by half the producer sends 2.7 % more in bursts for 0.5 % more frames in time; double changes less than that.
const FAILS_BEFORE_LAST: f64 = 0.3;
/// Longest time between two rounds for a sample whose time is over, or of a stream that stands still. A bound alone: half and double
/// change no run that was measured.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Queueing delay from which on nothing in a queue counts as lost. A choice, about half a period at 30 frames a
/// second. Measured: half of it loses 0.9 % of frames in bursts, double 0.3 %.
pub(in crate::consumer) const LONG_QUEUE: Duration = Duration::from_millis(15);
/// Queueing delay below which there may be none: what timers and the segments of another stream take. Measured: half and double stay
/// within the noise, except behind a full link, where both deliver 1 to 3 % more frames in time, by two seeds.
const SHORT_QUEUE: Duration = Duration::from_millis(3);
/// Longest time that a packet waits in any queue: 300 packets of 1000 octets at 1.5 Mbit/s. A bound alone: half and double change no run that was measured.
const GONE: Duration = Duration::from_millis(1_600);
/// Time after the last Interest for a name within which forwarders hold another one back: NFD's retransmission suppression
/// begins with 10 ms and doubles, so two in a row are beyond 20 ms. Measured: double loses 1.4 % of frames in bursts.
pub(super) const NAME_REST: Duration = Duration::from_millis(25);

/// What the decision rests on besides the sample itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook<'a> {
    pub now: Instant,
    /// When all that was requested before it existed should be here.
    pub due_at: Instant,
    /// When the sample could be here at the earliest.
    pub expected_at: Instant,
    /// How much later than that segments come that are not lost.
    pub margin: Duration,
    /// The same for what a link may repeat.
    pub wait: Duration,
    /// What is overdue mostly comes by itself.
    pub repeats: bool,
    /// Copies of the lead are requested before the lead itself is again.
    pub prefers_copies: bool,
    /// What queues on the path, and how delays vary.
    pub path: PathOutlook,
    /// How the queue on the path moves on.
    pub progress: Progress,
    /// Data that exists takes this long.
    pub delay: Duration,
    /// And at least this long.
    pub min_delay: Duration,
    /// What was requested now should be here after this.
    pub round_trip: Duration,
    /// A burst of losses lasts no longer than this.
    pub hedge_after: Duration,
    /// When the sample must be whole.
    pub deadline: Instant,
    /// Until when a late sample is still worth hurrying for.
    pub hurry_until: Instant,
    /// Something of the stream came lately: it is not all of it that is gone.
    pub is_alive: bool,
    /// It is known to be published.
    pub is_published: bool,
    /// Loss of an Interest and its Data together.
    pub losses: Losses,
    /// Transmissions of one Interest, at most.
    pub max_attempts: u32,
    pub config: &'a RecoveryConfig,
}

/// What to do about one sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Round {
    /// Segments that did not come when they should have, which was not known before.
    pub lost: Vec<(SegmentKind, u64)>,
    /// Segments to request.
    pub ask: Vec<(SegmentKind, u64)>,
    /// More is needed than may be requested.
    pub give_up: bool,
    /// When to reckon with the loss of all that the last round requested.
    pub hedge_round_at: Option<Instant>,
    /// When to decide again if nothing happens before.
    pub next_look: Option<Instant>,
}

/// A name that can be requested, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It was lost: perhaps a router near us has it.
    Lost,
    /// It was not requested.
    Fresh,
    /// It is requested, and may still come.
    Pending,
}

/// Names of one sample, sorted by what is known of them.
#[derive(Debug, Default)]
struct Names {
    /// On their way.
    pending: usize,
    /// Can be requested, now or later.
    left: usize,
    /// Can be requested now. Of one rank those requested most come first: where losses come together, those of several names are lost together, and
    /// the others stay for later.
    candidates: Vec<(Rank, Reverse<u32>, Name)>,
}

impl Outlook<'_> {
    /// Returns when the answer to `asked` counts as lost: not while what set out before it still comes.
    fn due(&self, assembly: &Assembly, slot: &Slot, asked: &Asked) -> Instant {
        if asked.is_nacked {
            return asked.retry_at;
        }
        if asked.is_gone && self.path.queueing > SHORT_QUEUE {
            // Only the path can tell what is in a queue from what is lost.
            return self.now;
        }
        let set_out = self.expected_at.max(asked.last_at + self.min_delay);
        if self.path.queueing > LONG_QUEUE {
            // Only the path can tell what is in a queue from what is lost.
            return if asked.is_gone {
                self.now
            } else {
                set_out + GONE
            };
        }
        let due = self.due_alone(assembly, slot, asked) + self.path.queueing + self.path.jitter;
        let behind = self.progress.until((set_out, asked.order));
        behind.map_or(due, |until| due.max(until))
    }

    /// Returns the same if it were all alone.
    fn due_alone(&self, assembly: &Assembly, slot: &Slot, asked: &Asked) -> Instant {
        if slot.is_first() {
            // What a link repeats is overtaken.
            let overtaken = assembly.overtaken_at.filter(|_| self.wait <= self.margin);
            let overtaken = overtaken.map_or(self.due_at, |at| {
                (at + self.round_trip.saturating_sub(self.delay)).min(self.due_at)
            });
            let at_best = asked.last_at + self.delay;
            let in_turn = at_best > self.expected_at;
            let margin = if in_turn { self.margin } else { Duration::ZERO };
            return overtaken.max(at_best + margin);
        }
        let wait = match self.is_alive {
            // Nothing is gained by haste any more: each wait is as long as all before it.
            true => asked.last_at.since(self.hurry_until),
            false => self.round_trip * (1 << asked.attempts.min(5)),
        };
        let due = asked.last_at + wait.clamp(self.round_trip, MAX_WAIT);
        let last_call = self.deadline.saturating_sub(self.round_trip);
        due.max(last_call.min(due + self.wait.saturating_sub(self.margin)))
    }

    fn sort<'s>(
        &self,
        assembly: &Assembly,
        slots: impl Iterator<Item = (SegmentKind, u64, &'s Slot)>,
        round: &mut Round,
    ) -> Names {
        let mut names = Names::default();
        for (kind, index, slot) in slots {
            let name = (kind, index);
            if !slot.is_missing() {
                continue;
            }
            let rank = match slot.asked {
                _ if slot.queued => {
                    names.pending += 1;
                    continue;
                }
                None => Rank::Fresh,
                Some(asked) => {
                    let due = self.due(assembly, slot, &asked);
                    if due <= self.now {
                        if !asked.is_lost {
                            round.lost.push(name);
                        }
                        let repeats = self.repeats && slot.is_first();
                        names.pending += usize::from(repeats);
                        self.rank_of_lost(name, slot)
                    } else {
                        names.pending += 1;
                        round.look_at(due);
                        if asked.last_at + NAME_REST > self.now {
                            continue;
                        }
                        Rank::Pending
                    }
                }
            };
            let left = self.max_attempts.saturating_sub(slot.attempts);
            names.left += usize::from(left > 0 || !self.is_published);
            // The last Interest for a name is for when haste is over: one frame late is better than all that need it.
            let in_reserve = u32::from(rank == Rank::Pending || self.now <= self.hurry_until);
            if left > in_reserve || !self.is_published {
                names.candidates.push((rank, Reverse(slot.attempts), name));
            }
        }
        names.candidates.sort();
        names
    }

    /// Returns the rank of a lost name: what may come by itself is requested by other names first.
    fn rank_of_lost(&self, name: Name, slot: &Slot) -> Rank {
        let is_lead = name == LEAD;
        match slot.is_first() && (self.repeats || is_lead && self.prefers_copies) {
            true => Rank::Pending,
            false => Rank::Lost,
        }
    }

    /// Returns when to hedge a round that begins now: once a burst of losses has ended, and while an answer can still be in time.
    pub(super) fn hedge_round_at(&self) -> Option<Instant> {
        let last_call = self.deadline.saturating_sub(self.round_trip);
        let at = (self.now + self.hedge_after).min(last_call);
        (at >= self.now + NAME_REST).then_some(at)
    }

    /// Returns when to hedge what is on its way of `assembly`: not while it keeps coming, nor before the last Interest for it has been
    /// out as long as the others.
    fn hedge_of(&self, assembly: &Assembly) -> Option<Instant> {
        let at = assembly.hedge_round_at?;
        let moves_until = self
            .progress
            .of_sample((assembly.class, assembly.sequence), self.expected_at);
        let missing = assembly.slots().filter(|(_, _, slot)| slot.is_missing());
        let left = missing.filter_map(|(_, _, slot)| match slot.queued {
            true => Some(self.now + NAME_REST),
            false => Some(slot.asked?.last_at + self.hedge_after),
        });
        left.chain(moves_until).chain([at]).max()
    }

    /// Returns whether none that begins after this one can be in time.
    fn is_last_round(&self) -> bool {
        self.now + self.round_trip * 2 > self.deadline
    }

    /// Returns how often a round that begins now may fail.
    fn may_fail(&self) -> f64 {
        match self.is_last_round() {
            _ if self.now > self.hurry_until => 1.0,
            true => self.config.miss,
            false => FAILS_BEFORE_LAST,
        }
    }

    /// Returns how many more to request in addition to `pending` ones, of which at least `needed` must come.
    fn count(&self, pending: usize, needed: usize, may_fail: f64) -> usize {
        let least = needed.saturating_sub(pending);
        let most = least + self.config.max_extra;
        (least..most)
            .find(|&more| self.losses.fewer(pending + more, needed) <= may_fail)
            .unwrap_or(most)
    }

    /// Decides about `assembly`.
    pub(super) fn plan(&self, assembly: &Assembly) -> Round {
        let mut round = Round::default();
        match assembly.lead() {
            Some(lead) => self.plan_segments(assembly, lead, &mut round),
            None => self.plan_lead(assembly, &mut round),
        }
        if !round.ask.is_empty() {
            round.look_at(self.now + self.round_trip);
        } else if self.now <= self.hurry_until {
            round.look_at(self.hurry_until + NAME_REST);
        }
        round.hedge_round_at = match self.hedge_of(assembly) {
            // A round begins; what hedges it is not hedged in turn.
            _ if !round.lost.is_empty() => self.hedge_round_at(),
            hedge_round_at => hedge_round_at.filter(|&at| at > self.now),
        };
        if let Some(at) = round.hedge_round_at {
            round.look_at(at);
        }
        round
    }

    /// The lead is here, so it is known how many segments are needed.
    fn plan_segments(&self, assembly: &Assembly, lead: &Lead, round: &mut Round) {
        let names = self.sort(assembly, assembly.slots(), round);
        let needed = lead.data_count().saturating_sub(assembly.here());
        let count = self.how_many(assembly, names.pending, needed, !round.lost.is_empty());
        let enough = needed.saturating_sub(names.pending);
        round.give_up = names.left < enough;
        let chosen = names.candidates.iter().take(count);
        round.ask.extend(chosen.map(|(.., name)| *name));
    }

    /// Returns how many to request now, where `needed` must come and `pending` are on their way.
    fn how_many(
        &self,
        assembly: &Assembly,
        pending: usize,
        needed: usize,
        has_lost: bool,
    ) -> usize {
        if has_lost || needed > pending {
            return self.count(pending, needed, self.may_fail());
        }
        if self.hedge_of(assembly).is_none_or(|at| at > self.now) {
            return 0;
        }
        // All of what is on its way may be lost in one burst; what is requested now would be lost in another.
        let fails = self.losses.fewer(pending, needed);
        let may_fail = match self.is_last_round() {
            true => self.config.miss,
            // As far as the last round will not make up for it.
            false => self.config.miss / self.losses.fewer(needed + self.config.max_extra, needed),
        };
        if fails <= may_fail {
            return 0;
        }
        self.count(0, needed, may_fail / fails)
    }

    /// Without the lead nobody knows how many segments there are, and nothing can be verified.
    fn plan_lead(&self, assembly: &Assembly, round: &mut Round) {
        let lead = assembly.slots().take(1).chain(assembly.copies());
        let mut leads = self.sort(assembly, lead, round);
        if self.prefers_copies && leads.candidates.len() > 1 {
            // Retransmitted, it would not show whether it comes by itself.
            leads.candidates.retain(|(.., name)| *name != LEAD);
        }
        if !assembly
            .slots()
            .next()
            .is_some_and(|(_, _, slot)| slot.is_missing())
        {
            // It is here, and waits for the key to judge it by.
            return;
        }
        let count = match self.is_alive {
            true => self.how_many(assembly, leads.pending, 1, !round.lost.is_empty()),
            false => usize::from(leads.pending == 0),
        };
        round.give_up = leads.left == 0 && leads.pending == 0;
        let chosen = leads.candidates.iter().take(count);
        round.ask.extend(chosen.map(|(.., name)| *name));
        let others = self.sort(assembly, assembly.slots().skip(1), round);
        if !self.is_alive {
            return;
        }
        let lost = |rank: Rank| rank == Rank::Lost;
        let missing = others.candidates.iter().filter(|(rank, ..)| lost(*rank));
        let count = missing.clone().count();
        round.ask.extend(missing.map(|(.., name)| *name));
        if count > 0 && self.is_last_round() {
            let fresh = others
                .candidates
                .iter()
                .filter(|(rank, ..)| *rank == Rank::Fresh);
            let fresh = fresh.take(self.config.max_extra);
            round.ask.extend(fresh.map(|(.., name)| *name));
        }
    }
}

impl Round {
    fn look_at(&mut self, at: Instant) {
        self.next_look = Some(self.next_look.map_or(at, |look| look.min(at)));
    }
}
