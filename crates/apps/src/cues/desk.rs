//! A desk sends cues while it leads, and takes over from another one.

use std::collections::VecDeque;

use core::time::Duration;

use namecast_units::Timestamp;

use super::cue::{Action, Cue, CueId, MAX_TERM};
use super::terms::{Leader, Standing, Terms};

/// Cues of the leading desk that are kept, for whoever takes over.
const MAX_KEPT: usize = 64;

/// A desk of a show.
#[derive(Debug)]
pub struct Desk {
    name: String,
    /// Its term while it leads.
    term: Option<u64>,
    terms: Terms,
    /// Cues that were sent lately, by this desk's clock.
    recent: VecDeque<Cue>,
    stale: Duration,
    rehearsal: bool,
}

impl Desk {
    /// A desk that leads from the start, if `leads`; else it follows. Devices execute no cue that is later than `stale`.
    pub fn new(name: &str, leads: bool, stale: Duration) -> Self {
        let mut terms = Terms::default();
        if leads {
            terms.hear(name, 0);
        }
        Self {
            name: name.to_owned(),
            term: leads.then_some(0),
            terms,
            recent: VecDeque::new(),
            stale,
            rehearsal: false,
        }
    }

    /// Sends all cues for a rehearsal: only devices in rehearsal execute them.
    #[must_use]
    pub const fn in_rehearsal(mut self, rehearsal: bool) -> Self {
        self.rehearsal = rehearsal;
        self
    }

    /// Returns whether it leads.
    pub const fn leads(&self) -> bool {
        self.term.is_some()
    }

    /// Returns the desk that leads, once one was heard.
    pub const fn leader(&self) -> Option<&Leader> {
        self.terms.leader()
    }

    /// Returns `cue` with this desk's term, to be sent; or `None` if it does not lead.
    pub fn send(&mut self, cue: Cue) -> Option<Cue> {
        let term = self.term?;
        let rehearsal = self.rehearsal;
        let cue = Cue {
            term,
            rehearsal,
            ..cue
        };
        if cue.action != Action::Check {
            self.keep(cue.clone());
        }
        Some(cue)
    }

    /// Takes over, with the term after the highest that was heard. Returns the cues to send: the first has the identity `id` and
    /// states the term, the others are those of the last leader that are not stale. Devices that have executed these do not do so again.
    pub fn take_over(&mut self, now: Timestamp, id: CueId) -> Vec<Cue> {
        let next = self.leader().map_or(0, |leader| leader.term + 1);
        let term = next.min(MAX_TERM);
        self.term = Some(term);
        self.terms.hear(&self.name, term);
        let stated = Cue {
            id,
            number: "lead".to_owned(),
            action: Action::Lead,
            term,
            at: now,
            targets: Vec::new(),
            values: serde_json::Map::new(),
            rehearsal: self.rehearsal,
        };
        let stale = self.stale;
        self.recent.retain(|cue| now.since(cue.at) <= stale);
        self.recent.iter_mut().for_each(|cue| cue.term = term);
        core::iter::once(stated)
            .chain(self.recent.iter().cloned())
            .collect()
    }

    /// Takes a verified cue of another desk, with its time by this desk's clock. Returns whether that desk leads; one that led until now
    /// does not any more. A desk in rehearsal and one that is not do not hear each other.
    pub fn handle_cue(&mut self, desk: &str, cue: Cue) -> bool {
        if cue.rehearsal != self.rehearsal {
            return false;
        }
        let leads = self.hear(desk, cue.term);
        if leads && !matches!(cue.action, Action::Lead | Action::Check) {
            self.keep(cue);
        }
        leads
    }

    /// Learns that `desk` states `term`. Returns whether it leads.
    pub fn hear(&mut self, desk: &str, term: u64) -> bool {
        let standing = self.terms.hear(desk, term);
        let leads = matches!(standing, Standing::Leads | Standing::TakesOver);
        if leads {
            // A desk that was started again keeps its own term.
            self.term = self.term.filter(|_| desk == self.name).map(|_| term);
        }
        leads
    }

    fn keep(&mut self, cue: Cue) {
        if self.recent.len() == MAX_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(cue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: Duration = Duration::from_secs(2);

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_micros(millis * 1_000)
    }

    fn go(number: u8, at: Timestamp) -> Cue {
        Cue {
            id: CueId([number; 16]),
            number: number.to_string(),
            action: Action::Go,
            term: 0,
            at,
            targets: Vec::new(),
            values: serde_json::Map::new(),
            rehearsal: false,
        }
    }

    /// A certified desk that lies about its term keeps nobody from taking over: all cues of the other are valid.
    #[test]
    fn a_term_that_lies_does_not_keep_a_desk_from_taking_over() {
        for lie in [65, 1_000_000, MAX_TERM, u64::MAX] {
            let mut desk = Desk::new("backup", false, STALE);
            assert!(desk.handle_cue("main", go(1, at(0))));
            for _ in 0..3 {
                let cue = Cue {
                    term: lie,
                    ..go(2, at(0))
                };
                assert!(!desk.handle_cue("liar", cue), "{lie}");
            }
            let sent = desk.take_over(at(100), CueId([9; 16]));
            assert_eq!(sent.len(), 2);
            assert!(sent.iter().all(|cue| cue.term == 1 && cue.encode().is_ok()));
            // One that it hears first, and a desk that started again.
            let mut first = Desk::new("backup", false, STALE);
            first.hear("liar", lie);
            first.hear("main", 0);
            let sent = first.take_over(at(100), CueId([9; 16]));
            assert!(sent[0].encode().is_ok());
        }
    }

    /// What is sent in a rehearsal is marked, and moves no desk that is not in rehearsal.
    #[test]
    fn a_rehearsal_and_a_show_do_not_mix() {
        let mut rehearsing = Desk::new("main", true, STALE).in_rehearsal(true);
        let mut backup = Desk::new("backup", false, STALE);
        let cue = rehearsing.send(go(1, at(0))).unwrap();
        assert!(cue.rehearsal);
        assert!(!backup.handle_cue("main", cue) && backup.leader().is_none());
        assert!(
            rehearsing
                .take_over(at(1), CueId([1; 16]))
                .iter()
                .all(|cue| cue.rehearsal)
        );
    }

    /// The second desk repeats what the first sent in the last two seconds. The first one stops once it hears of that.
    #[test]
    fn a_desk_that_takes_over_repeats_what_may_be_missing() {
        let mut main = Desk::new("main", true, STALE);
        let mut backup = Desk::new("backup", false, STALE);
        assert!(main.leads() && !backup.leads());
        assert_eq!(backup.send(go(9, at(0))), None);
        for (number, millis) in [(1, 1_000), (2, 2_500), (3, 3_300)] {
            let cue = main.send(go(number, at(millis))).unwrap();
            assert!(backup.handle_cue("main", cue));
        }
        let sent = backup.take_over(at(3_100), CueId([7; 16]));
        let told: Vec<_> = sent.iter().map(|cue| (cue.id.0[0], cue.term)).collect();
        assert_eq!(told, [(7, 1), (2, 1), (3, 1)]);
        assert!(main.handle_cue("backup", sent[0].clone()));
        assert!(!main.leads());
        assert_eq!(main.leader().unwrap().desk, "backup");
        assert_eq!(main.send(go(4, at(4_000))), None);
        assert!(!backup.handle_cue("main", go(5, at(5_000))));
        assert_eq!(main.take_over(at(9_000), CueId([8; 16]))[0].term, 2);
        assert!(backup.hear("main", 2) && !backup.leads());
        let mut again = Desk::new("main", true, STALE);
        assert!(again.hear("main", 2) && again.leads());
        assert_eq!(again.send(go(6, at(9_500))).unwrap().term, 2);
    }

    /// Two desks that do not hear each other both take the next term: one of them leads once they do.
    #[test]
    fn of_two_that_took_over_one_leads() {
        let mut desks = ["a", "b"].map(|name| Desk::new(name, false, STALE));
        let stated = desks.each_mut().map(|desk| {
            desk.hear("main", 4);
            desk.take_over(at(0), CueId([1; 16])).remove(0)
        });
        let [a, b] = &mut desks;
        assert!(b.handle_cue("a", stated[0].clone()));
        assert!(!a.handle_cue("b", stated[1].clone()));
        assert!(a.leads() && !b.leads());
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut main = Desk::new("main", true, STALE);
        for number in 0..=255 {
            main.send(go(number, at(0)));
        }
        assert_eq!(main.recent.len(), MAX_KEPT);
    }
}
