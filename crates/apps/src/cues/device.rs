//! A device executes each cue once and at its time, unless it is stale.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use core::time::Duration;

use namecast_units::Timestamp;
use smart_default::SmartDefault;

use super::cue::{Action, Cue, CueId, Done, Outcome};
use super::terms::{Leader, Standing, Terms};

/// How a device works, within which bounds.
#[derive(Clone, Debug, SmartDefault)]
pub struct DeviceConfig {
    /// Its name in the targets of cues.
    pub id: String,
    /// A cue that arrives later than this after its time is not executed.
    #[default(Duration::from_secs(2))]
    pub stale: Duration,
    /// A cue whose time is further ahead is refused.
    #[default(Duration::from_secs(60))]
    pub max_ahead: Duration,
    /// Cues that wait for their time.
    #[default(1_024)]
    pub max_waiting: usize,
    /// Identities of cues, from its journal: none of them is executed.
    pub executed: Vec<CueId>,
    /// Identities that are remembered; of more, the first are forgotten.
    #[default(100_000)]
    pub max_remembered: usize,
    /// Whether it executes cues of rehearsals, and no others.
    pub rehearsal: bool,
}

/// Something that a device is to do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Write the identity to the journal, and do nothing else before it is there. If that fails, call [`Device::handle_journal_failure`].
    Journal(CueId),
    /// Execute the cue.
    Execute(Cue),
    /// Tell the desk.
    Report(Done),
}

/// Counters of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Cues that were executed.
    pub executed: u64,
    /// Cues that arrived too late.
    pub stale: u64,
    /// Cues that a stop ended before their time.
    pub stopped: u64,
    /// Cues that arrived again.
    pub repeated: u64,
    /// Cues for others.
    pub for_others: u64,
    /// Cues whose time or term is too far ahead, or for which there was no room.
    pub refused: u64,
    /// Cues of desks that do not lead.
    pub superseded: u64,
    /// Cues that were not executed, as the journal could not be written.
    pub failed: u64,
    /// Checks that were answered.
    pub checks: u64,
}

/// Decides which cues are executed, and when. Times are those of the device's clock.
#[derive(Debug)]
pub struct Device {
    config: DeviceConfig,
    /// Cues that wait, by their time and in the order in which they came.
    waiting: BTreeMap<(Timestamp, u64), Cue>,
    came: u64,
    terms: Terms,
    known: BTreeSet<CueId>,
    /// The same in their order.
    order: VecDeque<CueId>,
    outputs: VecDeque<Output>,
    counters: DeviceCounters,
}

impl Device {
    /// A device that has executed the cues of its journal.
    pub fn new(mut config: DeviceConfig) -> Self {
        let executed = core::mem::take(&mut config.executed);
        let mut device = Self {
            config,
            waiting: BTreeMap::new(),
            came: 0,
            terms: Terms::default(),
            known: BTreeSet::new(),
            order: VecDeque::new(),
            outputs: VecDeque::new(),
            counters: DeviceCounters::default(),
        };
        executed.into_iter().for_each(|id| device.remember(id));
        device
    }

    /// Returns its counters.
    pub const fn counters(&self) -> &DeviceCounters {
        &self.counters
    }

    /// Returns the desk that it obeys, once it heard one.
    pub const fn leader(&self) -> Option<&Leader> {
        self.terms.leader()
    }

    /// Takes a verified cue of `desk`, with its time by the device's clock.
    pub fn handle_cue(&mut self, now: Timestamp, desk: &str, cue: Cue) {
        if cue.action == Action::Check {
            if cue.is_for(&self.config.id) {
                self.counters.checks += 1;
                self.report(now, &cue, Outcome::Ready);
            }
            return;
        }
        if cue.rehearsal != self.config.rehearsal {
            let why = match cue.rehearsal {
                true => "it is of a rehearsal: start the device with --rehearsal",
                false => "the device is in rehearsal: start it without --rehearsal",
            };
            return self.refuse(now, &cue, why);
        }
        let standing = self.terms.hear(desk, cue.term);
        if standing == Standing::Superseded {
            self.counters.superseded += 1;
            self.report(now, &cue, Outcome::Superseded);
        } else if standing == Standing::Implausible {
            self.refuse(
                now,
                &cue,
                "its term is too far ahead of all that were heard",
            );
        } else if cue.action == Action::Lead {
            // Its term is all that it says.
        } else if !cue.is_for(&self.config.id) {
            self.counters.for_others += 1;
        } else if self.known.contains(&cue.id) || self.is_waiting(cue.id) {
            self.counters.repeated += 1;
        } else if cue.at.since(now) > self.config.max_ahead {
            self.refuse(now, &cue, "its time is too far ahead");
        } else if self.waiting.len() >= self.config.max_waiting {
            self.refuse(now, &cue, "too many cues wait for their time");
        } else if now.since(cue.at) > self.config.stale {
            self.counters.stale += 1;
            self.remember(cue.id);
            self.report(now, &cue, Outcome::Stale);
        } else {
            self.came += 1;
            self.waiting.insert((cue.at, self.came), cue);
        }
        self.handle_timeout(now);
    }

    fn is_waiting(&self, id: CueId) -> bool {
        self.waiting.values().any(|cue| cue.id == id)
    }

    /// Executes the cues that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().0 <= now
        {
            let cue = entry.remove();
            if cue.action == Action::Stop {
                self.stop(now);
            }
            self.counters.executed += 1;
            self.remember(cue.id);
            self.outputs.push_back(Output::Journal(cue.id));
            self.outputs.push_back(Output::Execute(cue.clone()));
            self.report(now, &cue, Outcome::Executed);
        }
    }

    /// The identity of [`Output::Journal`] could not be written: the cue is not executed, now or later, and the desk is told. A stop is
    /// executed all the same: twice does no harm.
    pub fn handle_journal_failure(&mut self, now: Timestamp, id: CueId) {
        let is_execution = |output: &Output| matches!(output, Output::Execute(cue) if cue.id == id && cue.action != Action::Stop);
        let Some(place) = self.outputs.iter().position(is_execution) else {
            return;
        };
        let Some(Output::Execute(cue)) = self.outputs.remove(place) else {
            return;
        };
        self.outputs
            .retain(|output| !matches!(output, Output::Report(done) if done.id == id));
        self.counters.executed -= 1;
        self.counters.failed += 1;
        self.report_why(
            now,
            &cue,
            Outcome::Failed,
            Some("the journal cannot be written"),
        );
    }

    fn refuse(&mut self, now: Timestamp, cue: &Cue, why: &str) {
        self.counters.refused += 1;
        self.report_why(now, cue, Outcome::Refused, Some(why));
    }

    /// Executes no cue that waits for its time.
    fn stop(&mut self, now: Timestamp) {
        for cue in core::mem::take(&mut self.waiting).into_values() {
            self.counters.stopped += 1;
            self.remember(cue.id);
            self.outputs.push_back(Output::Journal(cue.id));
            self.report(now, &cue, Outcome::Stopped);
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }

    /// Returns the next thing to do, until `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn remember(&mut self, id: CueId) {
        if self.known.insert(id) {
            self.order.push_back(id);
        }
        if self.order.len() > self.config.max_remembered
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn report(&mut self, now: Timestamp, cue: &Cue, outcome: Outcome) {
        self.report_why(now, cue, outcome, None);
    }

    fn report_why(&mut self, now: Timestamp, cue: &Cue, outcome: Outcome, why: Option<&str>) {
        let micros = |at: Timestamp| i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
        self.outputs.push_back(Output::Report(Done {
            id: cue.id,
            number: cue.number.clone(),
            outcome,
            late_us: micros(now) - micros(cue.at),
            leader: self.terms.leader().cloned(),
            why: why.map(str::to_owned),
            clock: None,
            rehearsal: self.config.rehearsal,
        }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::super::cue::MAX_TERM;
    use super::*;

    const START: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);

    fn after(millis: u64) -> Timestamp {
        START + Duration::from_millis(millis)
    }

    fn cue(number: u8, action: Action, at: Timestamp) -> Cue {
        Cue {
            id: CueId([number; 16]),
            number: number.to_string(),
            action,
            term: 0,
            at,
            targets: Vec::new(),
            values: Map::new(),
            rehearsal: false,
        }
    }

    fn device(executed: &[u8]) -> Device {
        Device::new(DeviceConfig {
            id: "light-1".to_owned(),
            executed: executed.iter().map(|number| CueId([*number; 16])).collect(),
            ..DeviceConfig::default()
        })
    }

    /// Numbers of cues in the journal, that were executed, and what was reported.
    fn taken(device: &mut Device) -> (Vec<u8>, Vec<u8>, Vec<Outcome>) {
        let (mut journal, mut executed, mut reported) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(output) = device.poll_output() {
            match output {
                Output::Journal(id) => journal.push(id.0[0]),
                Output::Execute(cue) => {
                    assert_eq!(journal.last(), Some(&cue.id.0[0]), "journalled first");
                    executed.push(cue.id.0[0]);
                }
                Output::Report(done) => reported.push(done.outcome),
            }
        }
        (journal, executed, reported)
    }

    /// A GO with 300 ms of lead is executed then, and not again when it comes again, nor after a restart with the journal.
    #[test]
    fn a_cue_is_executed_once_and_at_its_time() {
        let mut device_1 = device(&[]);
        let go = cue(1, Action::Go, after(300));
        device_1.handle_cue(after(25), "main", go.clone());
        device_1.handle_cue(after(30), "main", go.clone());
        assert_eq!(taken(&mut device_1), (vec![], vec![], vec![]));
        assert_eq!(device_1.poll_timeout(), Some(after(300)));
        device_1.handle_timeout(after(299));
        assert!(taken(&mut device_1).1.is_empty());
        device_1.handle_timeout(after(300));
        assert_eq!(
            taken(&mut device_1),
            (vec![1], vec![1], vec![Outcome::Executed])
        );
        device_1.handle_cue(after(310), "main", go.clone());
        assert!(taken(&mut device_1).1.is_empty());
        assert_eq!(device_1.counters().repeated, 2);
        let mut again = device(&[1]);
        again.handle_cue(after(400), "main", go);
        again.handle_timeout(after(500));
        assert_eq!(taken(&mut again), (vec![], vec![], vec![]));
    }

    /// A cue that is 2 s late is executed, a later one is not, and the device reports both. After an outage no cue fires late.
    #[test]
    fn a_stale_cue_is_reported_and_not_executed() {
        let mut device = device(&[]);
        device.handle_cue(after(2_000), "main", cue(1, Action::Go, START));
        device.handle_cue(after(2_001), "main", cue(2, Action::Go, START));
        let (journal, executed, reported) = taken(&mut device);
        assert_eq!((journal, executed), (vec![1], vec![1]));
        assert_eq!(reported, [Outcome::Executed, Outcome::Stale]);
        // It is not executed either if the clock is set back, and it comes again.
        device.handle_cue(after(0), "main", cue(2, Action::Go, START));
        assert!(taken(&mut device).1.is_empty());
    }

    /// What waits when a stop is executed is not executed any more; what comes after it is.
    #[test]
    fn a_stop_takes_back_what_waits() {
        let mut device = device(&[]);
        device.handle_cue(after(0), "main", cue(1, Action::Go, after(500)));
        device.handle_cue(after(100), "main", cue(2, Action::Stop, after(100)));
        device.handle_cue(after(110), "main", cue(3, Action::Go, after(600)));
        device.handle_timeout(after(1_000));
        let (journal, executed, reported) = taken(&mut device);
        assert_eq!((journal, executed), (vec![1, 2, 3], vec![2, 3]));
        let expected = [Outcome::Stopped, Outcome::Executed, Outcome::Executed];
        assert_eq!(reported, expected);
    }

    #[test]
    fn tables_are_bounded() {
        let mut device = Device::new(DeviceConfig {
            id: "a".to_owned(),
            max_waiting: 2,
            max_remembered: 2,
            ..DeviceConfig::default()
        });
        for number in 1..=3 {
            device.handle_cue(START, "main", cue(number, Action::Go, after(10)));
        }
        device.handle_cue(START, "main", cue(4, Action::Go, after(60_001)));
        assert_eq!(device.counters().refused, 2);
        device.handle_timeout(after(10));
        device.handle_cue(after(10), "main", cue(5, Action::Go, after(10)));
        assert_eq!((device.known.len(), device.order.len()), (2, 2));
        let mut theirs = cue(6, Action::Go, START);
        theirs.targets = vec!["b".to_owned()];
        device.handle_cue(START, "main", theirs);
        assert_eq!(device.counters().for_others, 1);
    }

    /// The disk is full: the cue is not executed, not when it comes again either, and the desk is told. The next one is executed once there
    /// is room.
    #[test]
    fn a_cue_that_the_journal_does_not_take_is_not_executed() {
        let mut device = device(&[]);
        device.handle_cue(after(0), "main", cue(1, Action::Go, after(100)));
        device.handle_cue(after(0), "main", cue(2, Action::Go, after(100)));
        device.handle_timeout(after(100));
        assert_eq!(device.poll_output(), Some(Output::Journal(CueId([1; 16]))));
        device.handle_journal_failure(after(100), CueId([1; 16]));
        let (journal, executed, reported) = taken(&mut device);
        assert_eq!((journal, executed), (vec![2], vec![2]));
        assert_eq!(reported, [Outcome::Executed, Outcome::Failed]);
        device.handle_cue(after(150), "main", cue(1, Action::Go, after(100)));
        assert_eq!(taken(&mut device), (vec![], vec![], vec![]));
        assert_eq!(
            (device.counters().executed, device.counters().failed),
            (1, 1)
        );
        // A stop needs no journal.
        device.handle_cue(after(200), "main", cue(3, Action::Stop, after(200)));
        assert_eq!(device.poll_output(), Some(Output::Journal(CueId([3; 16]))));
        device.handle_journal_failure(after(200), CueId([3; 16]));
        assert!(
            matches!(device.poll_output(), Some(Output::Execute(cue)) if cue.action == Action::Stop)
        );
    }

    /// What is replayed in a rehearsal reaches devices in rehearsal alone, and moves no term of a show.
    #[test]
    fn a_cue_of_a_rehearsal_is_executed_in_rehearsal_alone() {
        let replayed = Cue {
            rehearsal: true,
            term: 5,
            ..cue(1, Action::Go, after(0))
        };
        let mut in_show = device(&[]);
        in_show.handle_cue(after(0), "main", replayed.clone());
        assert_eq!(
            taken(&mut in_show),
            (vec![], vec![], vec![Outcome::Refused])
        );
        assert_eq!(in_show.leader(), None);
        let config = DeviceConfig {
            rehearsal: true,
            ..DeviceConfig::default()
        };
        let mut in_rehearsal = Device::new(config);
        in_rehearsal.handle_cue(after(0), "main", replayed);
        in_rehearsal.handle_cue(after(0), "main", cue(2, Action::Go, after(0)));
        let (_, executed, reported) = taken(&mut in_rehearsal);
        assert_eq!(executed, [1]);
        assert_eq!(reported, [Outcome::Executed, Outcome::Refused]);
    }

    /// A check is answered whoever leads, and executes nothing.
    #[test]
    fn a_check_is_answered_and_not_executed() {
        let mut device = device(&[]);
        device.handle_cue(after(0), "main", cue(1, Action::Lead, after(0)));
        let check = Cue {
            targets: vec!["light-1".to_owned()],
            term: MAX_TERM,
            ..cue(2, Action::Check, after(0))
        };
        device.handle_cue(after(5), "check", check.clone());
        device.handle_cue(
            after(5),
            "check",
            Cue {
                targets: vec!["light-2".to_owned()],
                ..check
            },
        );
        assert_eq!(taken(&mut device), (vec![], vec![], vec![Outcome::Ready]));
        assert_eq!(device.leader().unwrap().desk, "main");
    }

    /// Two desks were cut apart, and the device hears both: it obeys the one that took over, and tells the other.
    #[test]
    fn of_two_desks_the_one_with_the_higher_term_is_obeyed() {
        let mut device = device(&[]);
        let with_term = |number, term, at| Cue {
            term,
            ..cue(number, Action::Go, at)
        };
        device.handle_cue(after(0), "main", with_term(1, 0, after(300)));
        let lead = Cue {
            term: 1,
            ..cue(9, Action::Lead, after(100))
        };
        device.handle_cue(after(100), "backup", lead);
        // The new leader repeats what the last one sent.
        device.handle_cue(after(101), "backup", with_term(1, 1, after(300)));
        device.handle_cue(after(110), "main", with_term(2, 0, after(400)));
        device.handle_cue(after(120), "backup", with_term(3, 1, after(420)));
        device.handle_cue(after(130), "other", with_term(4, 900, after(130)));
        device.handle_timeout(after(1_000));
        let mut reported = Vec::new();
        let mut executed = Vec::new();
        while let Some(output) = device.poll_output() {
            match output {
                Output::Execute(cue) => executed.push(cue.id.0[0]),
                Output::Report(done) => reported.push((done.id.0[0], done.outcome, done.leader)),
                Output::Journal(_) => {}
            }
        }
        assert_eq!(executed, [1, 3]);
        let backup = Leader {
            term: 1,
            desk: "backup".to_owned(),
        };
        assert_eq!(reported[0], (2, Outcome::Superseded, Some(backup)));
        // It obeys the desk that repeated the cue, and has refused the term of the third one.
        assert_eq!(reported[1].1, Outcome::Refused);
        assert_eq!(reported[2].1, Outcome::Executed);
        assert_eq!(reported[2].2.as_ref().unwrap().desk, "backup");
        let counters = device.counters();
        assert_eq!((counters.superseded, counters.refused), (1, 1));
        assert_eq!(device.leader().unwrap().desk, "backup");
    }
}
