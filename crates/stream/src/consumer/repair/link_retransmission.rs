//! Tells what is late, as a link repeats it, from what is lost.
//!
//! Retransmission as soon as something is overdue is best where it is lost, and pays twice where a reliable link brings it a
//! moment later. Which of both it is shows where another name is requested, a copy, so that the lead itself can only come by
//! itself. So copies are requested first now and then. Once leads mostly come, they are waited for until the *last call*, the
//! last moment at which to request a copy in time; once those mostly come that have not by then, and are many, until the sample's
//! time.

use core::ops::Range;
use core::time::Duration;
use std::cmp::Reverse;

use namecast_units::{Instant, WindowedMinimum};
use smart_default::SmartDefault;

/// Copies are requested first of one sample in so many; where more has come by itself than has not; and where hardly anything
/// does. Measured: half and double of the first and third stay within the noise; double of the second sends 1.3 % more over
/// reliable links, which are found out later.
const TESTS: u64 = 8;
const LIKELY_TESTS: u64 = 2;
const FEW_TESTS: u64 = 32;
/// Share that does not come above which that is rare. Measured: half of it sends 2.4 % more over reliable links, more than 0.85 changes
/// nothing there.
const HOPELESS: f64 = 0.85;
/// Share of what comes that is later than the last call below which a copy of each costs less than a frame: a copy is one packet, a frame
/// all that depend on it. A choice, and a bound alone: half and double change no run that was measured.
const RARE: f64 = 0.02;
/// Weight of a new one in that share: a memory of 64, of which `RARE` is one. Measured: half and double change no run.
const RARE_GAIN: f64 = 1.0 / 64.0;
/// Where no lead came in time for so long, the path delay increased, or a clock was set: 15 frames at 30 a second. A bound alone: half and
/// double change no run that was measured.
const PATH_CHANGE_AFTER: Duration = Duration::from_millis(500);
/// How long lags are remembered: eight times this. Measured: half and double change no run.
const MEMORY: Duration = Duration::from_millis(500);

/// How long there is to wait, from the earliest time on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Until one round of repair is only just in time.
    pub(super) last_call: Duration,
    /// Until the sample's time.
    pub(super) deadline: Duration,
}

/// Whether it pays to wait.
#[derive(Clone, Debug, SmartDefault)]
pub(super) struct LinkRetransmissionDetector {
    /// Leads that were overdue and came by themselves, or did not. Once all is waited for, other segments as well.
    // Waiting costs nothing where at least half of it comes; it begins later than it ends, so that it does not change to and fro. Measured: half
    // of where it begins sends 0.7 % more over reliable links, the other bounds change no run.
    #[default(Outcomes::new(0.3..0.5))]
    all: Outcomes,
    /// Those of them that had not come by the last call.
    // Lower, as a frame is lost with each of these that does not come.
    #[default(Outcomes::new(0.25..0.4))]
    late: Outcomes,
    /// Share of what comes that had not come by the last call.
    late_share: f64,
    /// By how much leads came late that came by themselves (a minimum in reverse).
    #[default(WindowedMinimum::new(MEMORY, 8))]
    lags: WindowedMinimum<Reverse<Duration>>,
    /// When a lead came in time.
    in_time_at: Option<Instant>,
}

impl LinkRetransmissionDetector {
    /// Returns whether what is overdue mostly comes by itself.
    pub(super) const fn is_trusted(&self) -> bool {
        self.all.is_trusted
    }

    /// Returns whether to find out by the sample with this number, if it loses its lead.
    pub(super) fn is_test(&self, sequence: u64) -> bool {
        let one_of = match self.all.share_in_vain() {
            share if share > HOPELESS => FEW_TESTS,
            share if share < 0.5 => LIKELY_TESTS,
            _ => TESTS,
        };
        sequence % one_of == one_of - 1
    }

    /// Returns how long to wait: twice what took longest lately, as what is repeated may be lost again, and a quarter. `None`
    /// where that does not pay.
    pub(super) fn wait(&self, now: Instant, room: Room) -> Option<Duration> {
        let most = match self.late.is_trusted && self.late_share > RARE {
            true => room.deadline,
            false => room.last_call,
        };
        let lag = self.lags.minimum(now).map(|lag| lag.0 * 9 / 4);
        self.is_trusted()
            .then(|| lag.map_or(most, |lag| most.min(lag)))
    }

    /// A lead came when it should.
    pub(super) const fn on_arrival(&mut self, now: Instant) {
        self.in_time_at = Some(now);
        self.late_share *= 1.0 - RARE_GAIN;
    }

    fn note_late(&mut self, came: bool) {
        self.late_share += RARE_GAIN * (1.0 - self.late_share);
        self.late.learn(came);
    }

    /// A lead that was overdue came by itself, so much later than it could.
    pub(super) fn on_late_arrival(&mut self, now: Instant, lag: Duration, room: Room) {
        let some_are_in_time = self
            .in_time_at
            .is_some_and(|at| now.since(at) < PATH_CHANGE_AFTER);
        if !some_are_in_time {
            return;
        }
        self.lags.push(now, Reverse(lag));
        self.all.learn(true);
        if lag > room.last_call {
            self.note_late(lag <= room.deadline);
        }
    }

    /// Something was waited for that has not come yet.
    pub(super) fn on_timeout(&mut self) {
        if self.is_trusted() {
            self.all.learn(false);
        }
    }

    /// A lead that was overdue had not come by itself when the sample was done with, so much later than it could.
    pub(super) fn on_loss(&mut self, lag: Duration, room: Room) {
        if !self.is_trusted() {
            self.all.learn(false);
        }
        if lag > room.last_call {
            self.note_late(false);
        }
    }
}

/// What became of the last waits.
#[derive(Clone, Copy, Debug)]
struct Outcomes {
    came: f64,
    in_vain: f64,
    /// Share in vain below which it pays to wait, and above which it does not any more.
    trusted: f64,
    mistrusted: f64,
    is_trusted: bool,
}

impl Outcomes {
    /// Of either kind to begin with; they stay, so that no share is ever certain: Jeffreys' prior of a share, 1/2 and 1/2. Measured: half and
    /// double stay within the noise.
    const PRIOR: f64 = 0.5;
    /// Share of older outcomes that still counts after each new one: a memory of sixteen. Measured: memories of eight and thirty change Data
    /// over reliable links by 0.5 and −0.2 %.
    const KEPT: f64 = 15.0 / 16.0;
    /// What comes a few times may be chance. Measured: double sends 1.7 % more over reliable links, half 0.8 % less.
    const LEAST: f64 = 5.0;

    const fn new(trust: Range<f64>) -> Self {
        Self {
            came: Self::PRIOR,
            in_vain: Self::PRIOR,
            trusted: trust.start,
            mistrusted: trust.end,
            is_trusted: false,
        }
    }

    fn share_in_vain(self) -> f64 {
        self.in_vain / (self.came + self.in_vain)
    }

    fn learn(&mut self, came: bool) {
        let next = |before: f64, new: bool| {
            let kept = (before - Self::PRIOR) * Self::KEPT;
            Self::PRIOR + kept + f64::from(u8::from(new))
        };
        self.came = next(self.came, came);
        self.in_vain = next(self.in_vain, !came);
        let most = if self.is_trusted {
            self.mistrusted
        } else {
            self.trusted
        };
        self.is_trusted = self.came >= Self::LEAST && self.share_in_vain() < most;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consumer::fixtures::at;

    const ROOM: Room = Room {
        last_call: Duration::from_millis(100),
        deadline: Duration::from_millis(200),
    };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn detector() -> LinkRetransmissionDetector {
        let mut detector = LinkRetransmissionDetector::default();
        detector.on_arrival(at(0));
        detector
    }

    /// 0.5 + 1 + 15/16 + … + (15/16)⁴ is 4.91 after five that came, and 5.64 after six.
    #[test]
    fn six_leads_that_come_by_themselves_earn_trust() {
        let mut detector = detector();
        for _ in 0..5 {
            detector.on_late_arrival(at(10), ms(40), ROOM);
            assert_eq!(detector.wait(at(10), ROOM), None);
        }
        detector.on_late_arrival(at(10), ms(40), ROOM);
        assert_eq!(detector.wait(at(10), ROOM), Some(ms(90)));
        assert_eq!(detector.wait(at(5_000), ROOM), Some(ms(100)), "forgotten");
    }

    /// Where nothing is in time, nothing was repeated.
    #[test]
    fn a_longer_path_earns_no_trust() {
        let mut detector = detector();
        (0..200).for_each(|n| detector.on_late_arrival(at(500 + n), ms(50), ROOM));
        assert!(!detector.is_trusted());
        detector.on_arrival(at(700));
        (0..6).for_each(|n| detector.on_late_arrival(at(700 + n), ms(50), ROOM));
        assert!(detector.is_trusted());
    }

    /// After many that came there are 16 + 0.5 of 17. Eleven in vain: 0.5 + 16·(1 − (15/16)¹¹) = 8.6 of 17, just over half.
    #[test]
    fn trust_is_lost_with_the_eleventh_in_a_row_that_does_not_come() {
        let mut detector = detector();
        (0..200).for_each(|_| detector.on_late_arrival(at(10), ms(50), ROOM));
        for _ in 0..10 {
            detector.on_timeout();
            assert!(detector.is_trusted());
        }
        detector.on_timeout();
        assert!(!detector.is_trusted());
    }

    /// 1.5 / 2 = 0.75, 2.44 / 2.94 = 0.83, 3.32 / 3.82 = 0.87.
    #[test]
    fn where_nothing_comes_by_itself_tests_are_rare() {
        let mut detector = detector();
        let tests = |detector: &LinkRetransmissionDetector| {
            (0..64).filter(|&n| detector.is_test(n)).count()
        };
        for _ in 0..3 {
            assert_eq!(tests(&detector), 8);
            detector.on_loss(ms(150), ROOM);
        }
        assert_eq!(tests(&detector), 2);
    }

    /// 1.5 / 0.5, then 1.44 / 1.5.
    #[test]
    fn what_came_by_itself_once_is_soon_tested_again() {
        let mut detector = detector();
        let tests = |detector: &LinkRetransmissionDetector| {
            (0..64).filter(|&n| detector.is_test(n)).count()
        };
        assert_eq!(tests(&detector), 8);
        detector.on_late_arrival(at(10), ms(40), ROOM);
        assert_eq!(tests(&detector), 32);
        detector.on_loss(ms(150), ROOM);
        assert_eq!(tests(&detector), 8);
    }

    #[test]
    fn waits_go_on_past_the_last_call_once_what_is_so_late_comes() {
        let mut detector = detector();
        (0..10).for_each(|_| detector.on_late_arrival(at(10), ms(60), ROOM));
        assert_eq!(detector.wait(at(10), ROOM), Some(ms(100)));
        (0..6).for_each(|_| detector.on_late_arrival(at(10), ms(120), ROOM));
        assert_eq!(detector.wait(at(10), ROOM), Some(ms(200)));
        (0..5).for_each(|_| detector.on_loss(ms(200), ROOM));
        assert_eq!(detector.wait(at(10), ROOM), Some(ms(100)));
    }
}
