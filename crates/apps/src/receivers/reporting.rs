//! The reports of one receiver.

use std::collections::VecDeque;

use namecast_packet::{Data, Interest, Name, Nonce};
use namecast_units::{Bitrate, Duration, Instant, Random};

use super::reports::{ACKNOWLEDGED, ReceiverId, Report, acknowledgement, read_answer, reporter};

/// First pause before a report.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Reports what has come of a flow, and acknowledges segments if the sender wants that.
#[derive(Debug)]
pub(crate) struct Reporting {
    flow: Name,
    id: ReceiverId,
    number: u64,
    /// One after the number of the newest report that was answered.
    answered: u64,
    next_at: Instant,
    sent_at: Instant,
    round_trip: Duration,
    pause: Duration,
    /// Content since the last report.
    octets: u64,
    is_finished: bool,
    /// Numbers of the last segments, the newest first; `None`: none is acknowledged.
    acknowledged: Option<VecDeque<u64>>,
    acknowledgements: u64,
}

/// The answer to a report is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Malformed;

impl Reporting {
    /// Begins to report on `flow` within the first pause.
    pub(crate) fn new(now: Instant, (flow, id): (Name, ReceiverId), random: &mut Random) -> Self {
        Self {
            flow,
            id,
            number: 0,
            answered: 0,
            next_at: now + FIRST_PAUSE.mul_f64(random.unit()),
            sent_at: now,
            round_trip: Duration::ZERO,
            pause: FIRST_PAUSE,
            octets: 0,
            is_finished: false,
            acknowledged: None,
            acknowledgements: 0,
        }
    }

    /// Returns whether Data of that name answer a report of this receiver.
    pub(crate) fn is_answer(&self, name: &Name) -> bool {
        reporter(&self.flow, name) == Some(self.id)
    }

    /// Counts content that is of use.
    pub(crate) const fn on_content(&mut self, octets: u64) {
        self.octets += octets;
    }

    /// Returns the acknowledgement of a segment, if the sender wants one.
    pub(crate) fn acknowledge(&mut self, number: u64, random: &mut Random) -> Option<Interest> {
        let acknowledged = self.acknowledged.as_mut()?;
        acknowledged.truncate(ACKNOWLEDGED - 1);
        acknowledged.push_front(number);
        let whose = (self.id, self.acknowledgements);
        self.acknowledgements += 1;
        let numbers = acknowledged.iter().copied();
        let nonce = Nonce::draw(random);
        Some(acknowledgement(&self.flow, numbers, whose, nonce))
    }

    /// Takes the answer to a report. Returns whether it answers the last one of all.
    ///
    /// # Errors
    /// If it breaks the format.
    pub(crate) fn on_answer(&mut self, now: Instant, data: &Data) -> Result<bool, Malformed> {
        let answer = data.content().and_then(|it| read_answer(&it));
        let (pause, acknowledges) = answer.ok_or(Malformed)?;
        let number = data.name().get(self.flow.len() + 2);
        let number = number.and_then(|it| it.number()).ok_or(Malformed)?;
        if !(self.answered..self.number).contains(&number) {
            return Ok(false);
        }
        self.answered = number + 1;
        self.pause = pause;
        // Where an answer takes longer than a pause, the next report has left.
        let is_last = self.answered == self.number;
        if is_last {
            self.round_trip = now.since(self.sent_at);
            self.next_at = self.sent_at + pause;
        }
        match acknowledges {
            true => _ = self.acknowledged.get_or_insert_default(),
            false => self.acknowledged = None,
        }
        Ok(self.is_finished && is_last)
    }

    /// From now on reports that nothing is missing, at once and often.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.is_finished = true;
        self.pause = FIRST_PAUSE / 2;
        self.next_at = now;
    }

    /// Returns a report, if one is due. `missing`: segments that are needed yet; nothing is missing only once it is finished.
    pub(crate) fn poll_report(
        &mut self,
        now: Instant,
        (received, missing): (u64, u64),
        random: &mut Random,
    ) -> Option<Interest> {
        if now < self.next_at {
            return None;
        }
        let time = now.since(self.sent_at).max(Duration::from_millis(1));
        let report = Report {
            received,
            missing: if self.is_finished { 0 } else { missing.max(1) },
            rate: Bitrate::bps((self.octets as f64 * 8.0 / time.as_secs_f64()) as u64),
            round_trip: self.round_trip,
        };
        let whose = (self.id, self.number);
        let interest = report.interest(&self.flow, whose, Nonce::draw(random));
        self.octets = 0;
        self.number += 1;
        self.sent_at = now;
        self.next_at = now + self.pause;
        Some(interest)
    }

    /// Returns when the next report is due.
    pub(crate) const fn next_at(&self) -> Instant {
        self.next_at
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;

    use super::super::reports::answer;
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// The answer to the first of two reports comes after the second has left: it counts, but measures nothing.
    #[test]
    fn answers_that_take_longer_than_a_pause_count() {
        let mut random = Random::from_seed(1);
        let flow: Name = "/f".parse().unwrap();
        let mut reporting = Reporting::new(at(0), (flow, [7; 8]), &mut random);
        let mut report = |reporting: &mut Reporting, now| {
            reporting.poll_report(now, (1, 9), &mut random).unwrap()
        };
        let first = report(&mut reporting, at(1_000));
        let second = report(&mut reporting, at(2_000));
        let answered = |report: &Interest, acknowledges| {
            let data = Data::builder(report.name().clone());
            let content = answer(Duration::from_secs(3), acknowledges);
            data.content(content).sign(&NullSigner)
        };
        assert!(
            !reporting
                .on_answer(at(2_700), &answered(&first, true))
                .unwrap()
        );
        assert_eq!(
            (reporting.round_trip, reporting.next_at),
            (Duration::ZERO, at(3_000))
        );
        let numbers = |reporting: &mut Reporting| {
            reporting
                .acknowledge(4, &mut Random::from_seed(2))
                .is_some()
        };
        assert!(numbers(&mut reporting));
        assert!(
            !reporting
                .on_answer(at(2_800), &answered(&second, false))
                .unwrap()
        );
        assert_eq!(
            (reporting.round_trip, reporting.next_at),
            (Duration::from_millis(800), at(5_000))
        );
        assert!(!numbers(&mut reporting));
        // Once each.
        assert!(
            !reporting
                .on_answer(at(2_900), &answered(&first, true))
                .unwrap()
        );
        assert!(!numbers(&mut reporting));
    }
}
