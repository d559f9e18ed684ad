//! What was requested and not answered.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_packet::Nonce;
use namecast_units::Instant;

/// Numbers that were requested, and every transmission of an Interest, in the order they were sent.
///
/// ```text
///  numbers       base ……… next            each: answered? which transmission was the last?
///  transmissions ▭▭▭▭▭▭▭▭▭▭▭▭▭▭▭▭▭▭▭▭     each: number, time, answered or lost
///                ▲      ▲       ▲
///               old   timed   overtaken: all before it were looked at for gaps
/// ```
///
/// Every transmission passes each mark once, so that an event costs no more than what it changes.
#[derive(Clone, Debug)]
pub(super) struct Table {
    first: u64,
    /// Number of the first entry of `numbers`.
    base: u64,
    numbers: VecDeque<Wanted>,
    /// Index of the first entry of `transmissions`, counted from the start.
    old: u64,
    transmissions: VecDeque<Transmission>,
    timed: u64,
    overtaken: u64,
    in_flight: usize,
    most: usize,
}

/// A number that was requested.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    first_sent_at: Instant,
    /// Index of the last transmission.
    last: u64,
    transmissions: u32,
    is_answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    number: u64,
    sent_at: Instant,
    nonce: Nonce,
    /// Answered, or followed by another transmission of the same number: nothing to wait for.
    is_settled: bool,
    /// Overtaken, timed out or Nacked: out of flight.
    is_lost: bool,
    is_nacked: bool,
}

/// The Interests that Data answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedAnswer {
    /// Index of the last transmission.
    pub(super) transmission: u64,
    /// When the last Interest for the number left.
    pub sent_at: Instant,
    /// When the first did.
    pub first_sent_at: Instant,
    /// Interests sent for it.
    pub transmissions: u32,
    /// Round-trip time; `None`: which transmission was answered is not known.
    pub rtt: Option<Duration>,
    /// The last transmission, or an earlier one, was lost by some sign.
    pub was_lost: bool,
}

impl NumberedAnswer {
    /// Data that no Interest for their number was sent for.
    pub(in crate::path) const fn unmeasured(now: Instant) -> Self {
        Self {
            transmission: 0,
            sent_at: now,
            first_sent_at: now,
            transmissions: 1,
            rtt: None,
            was_lost: false,
        }
    }
}

/// Why Data answers nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The number was never requested.
    NotRequested,
    /// It has been answered before, or given up so long ago that nobody knows.
    Duplicate,
}

/// A transmission that some sign says is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overdue {
    pub number: u64,
    pub sent_at: Instant,
    /// Another sign said so before.
    pub repeated: bool,
    /// It leaves the flight by this sign.
    pub leaves: bool,
}

impl Table {
    /// A table of numbers from `first`, `most` of them at a time.
    pub(super) fn new(first: u64, most: usize) -> Self {
        Self {
            first,
            base: first,
            numbers: VecDeque::new(),
            old: 0,
            transmissions: VecDeque::new(),
            timed: 0,
            overtaken: 0,
            in_flight: 0,
            most: most.max(1),
        }
    }

    /// Transmissions that are neither answered nor lost. Nacked ones count until their timers run out, or a node that
    /// refuses at once would be asked without end.
    pub(super) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the number after the last one requested.
    pub(super) fn next_number(&self) -> u64 {
        self.base.saturating_add(self.numbers.len() as u64)
    }

    /// Returns the oldest number that is neither answered nor given up.
    pub(super) const fn oldest(&self) -> u64 {
        self.base
    }

    /// Returns whether one more Interest may be sent, as far as memory goes.
    pub(super) fn has_room(&self) -> bool {
        self.numbers.len() < self.most && self.transmissions.len() < self.most * 2
    }

    /// Returns whether `number` was requested and not answered.
    pub(super) fn is_missing(&self, number: u64) -> bool {
        self.wanted(number)
            .is_some_and(|wanted| !wanted.is_answered)
    }

    /// Records an Interest for [`next_number`](Self::next_number).
    pub(super) fn send_next(&mut self, now: Instant, nonce: Nonce) {
        let number = self.next_number();
        let last = self.push(now, number, nonce);
        self.numbers.push_back(Wanted {
            first_sent_at: now,
            last,
            transmissions: 1,
            is_answered: false,
        });
    }

    /// Records another Interest for `number`, which [is missing](Self::is_missing).
    pub(super) fn send_again(&mut self, now: Instant, number: u64, nonce: Nonce) {
        let last = self.push(now, number, nonce);
        let Some(wanted) = self.wanted_mut(number) else {
            return;
        };
        let before = core::mem::replace(&mut wanted.last, last);
        wanted.transmissions = wanted.transmissions.saturating_add(1);
        self.settle(before);
    }

    fn push(&mut self, now: Instant, number: u64, nonce: Nonce) -> u64 {
        self.transmissions.push_back(Transmission {
            number,
            sent_at: now,
            nonce,
            is_settled: false,
            is_lost: false,
            is_nacked: false,
        });
        self.in_flight += 1;
        self.old + self.transmissions.len() as u64 - 1
    }

    /// Records Data with `number`.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        number: u64,
    ) -> Result<NumberedAnswer, Unanswered> {
        if (self.first..self.base).contains(&number) {
            return Err(Unanswered::Duplicate);
        }
        let wanted = self.wanted_mut(number).ok_or(Unanswered::NotRequested)?;
        if core::mem::replace(&mut wanted.is_answered, true) {
            return Err(Unanswered::Duplicate);
        }
        let wanted = *wanted;
        let last = self.settle(wanted.last).ok_or(Unanswered::Duplicate)?;
        Ok(NumberedAnswer {
            transmission: wanted.last,
            sent_at: last.sent_at,
            first_sent_at: wanted.first_sent_at,
            transmissions: wanted.transmissions,
            rtt: (wanted.transmissions == 1).then(|| now.since(last.sent_at)),
            was_lost: last.is_lost || last.is_nacked || wanted.transmissions > 1,
        })
    }

    /// Settles transmission `index`; gives it as it was.
    fn settle(&mut self, index: u64) -> Option<Transmission> {
        let transmission = self.transmission_mut(index)?;
        let before = *transmission;
        transmission.is_settled = true;
        if !before.is_settled && !before.is_lost {
            self.in_flight -= 1;
        }
        Some(before)
    }

    /// Returns the next transmission before `before` that is neither answered nor was looked at for this.
    pub(super) fn next_overtaken(&mut self, before: u64) -> Option<Overdue> {
        while self.overtaken < before {
            let index = self.overtaken;
            self.overtaken += 1;
            if let Some(lost) = self.lose(index) {
                return Some(lost);
            }
        }
        None
    }

    /// Returns the next transmission that was sent `timeout` ago or earlier, and is not answered.
    pub(super) fn next_timed_out(&mut self, now: Instant, timeout: Duration) -> Option<Overdue> {
        while let Some(transmission) = self.oldest_waiting() {
            if transmission.sent_at + timeout > now {
                return None;
            }
            let index = self.timed;
            self.timed += 1;
            if let Some(lost) = self.lose(index) {
                return Some(lost);
            }
        }
        None
    }

    /// Returns when the next transmission times out.
    pub(super) fn timeout_at(&self, timeout: Duration) -> Option<Instant> {
        let at = usize::try_from(self.timed.saturating_sub(self.old)).ok()?;
        let oldest = self.transmissions.get(at)?;
        Some(oldest.sent_at + timeout)
    }

    /// Moves on to the oldest transmission whose timer has to run out yet, and forgets what has been answered, or lost
    /// more than `memory` ago.
    pub(super) fn tidy(&mut self, now: Instant, memory: Option<Duration>) {
        let _ = self.oldest_waiting();
        while let Some(front) = self.numbers.front() {
            let is_given_up = || {
                let forget_at = memory.and_then(|memory| self.forget_at(front, memory));
                front.last < self.timed && forget_at.is_some_and(|at| at <= now)
            };
            if !front.is_answered && !is_given_up() {
                break;
            }
            self.numbers.pop_front();
            self.base += 1;
        }
        while let Some(front) = self.transmissions.front() {
            let is_forgotten = front.is_settled || front.number < self.base;
            if !is_forgotten {
                break;
            }
            self.transmissions.pop_front();
            self.old += 1;
        }
        self.timed = self.timed.max(self.old);
        self.overtaken = self.overtaken.max(self.old);
    }

    fn forget_at(&self, wanted: &Wanted, memory: Duration) -> Option<Instant> {
        let last = self.transmission(wanted.last)?;
        Some(last.sent_at + memory)
    }

    /// Returns when forgetting what was lost makes room, if there is none now.
    pub(super) fn room_at(&self, memory: Option<Duration>) -> Option<Instant> {
        let front = self.numbers.front().filter(|_| !self.has_room())?;
        // While its own timer runs, that comes first.
        let is_timed_out = front.last < self.timed;
        self.forget_at(front, memory?).filter(|_| is_timed_out)
    }

    fn oldest_waiting(&mut self) -> Option<Transmission> {
        self.timed = self.timed.max(self.old);
        loop {
            let transmission = *self.transmission(self.timed)?;
            if !transmission.is_settled {
                return Some(transmission);
            }
            self.timed += 1;
        }
    }

    fn lose(&mut self, index: u64) -> Option<Overdue> {
        let transmission = self.transmission_mut(index)?;
        if transmission.is_settled {
            return None;
        }
        let was_lost = core::mem::replace(&mut transmission.is_lost, true);
        let lost = Overdue {
            number: transmission.number,
            sent_at: transmission.sent_at,
            repeated: was_lost || transmission.is_nacked,
            leaves: !was_lost,
        };
        self.in_flight -= usize::from(!was_lost);
        Some(lost)
    }

    /// Records that the last Interest for `number` came back. `None` if it was an earlier one, or did so before.
    pub(super) fn nack(&mut self, number: u64, nonce: Option<Nonce>) -> Option<Overdue> {
        let wanted = self.wanted(number).filter(|wanted| !wanted.is_answered)?;
        let transmission = self.transmission_mut(wanted.last)?;
        if Some(transmission.nonce) != nonce || transmission.is_nacked {
            return None;
        }
        transmission.is_nacked = true;
        Some(Overdue {
            number,
            sent_at: transmission.sent_at,
            repeated: transmission.is_lost,
            leaves: false,
        })
    }

    fn wanted(&self, number: u64) -> Option<Wanted> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.numbers.get(index).copied()
    }

    fn wanted_mut(&mut self, number: u64) -> Option<&mut Wanted> {
        let index = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.numbers.get_mut(index)
    }

    fn transmission(&self, index: u64) -> Option<&Transmission> {
        let index = usize::try_from(index.checked_sub(self.old)?).ok()?;
        self.transmissions.get(index)
    }

    fn transmission_mut(&mut self, index: u64) -> Option<&mut Transmission> {
        let index = usize::try_from(index.checked_sub(self.old)?).ok()?;
        self.transmissions.get_mut(index)
    }
}
