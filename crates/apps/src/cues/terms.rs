//! The desk that leads: of several desks that hear each other or not, devices obey one.

use core::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::cue::MAX_TERM;

/// Terms by which a desk may be ahead of what was heard before. A desk takes over with the next term, so that more would take that many
/// take-overs which this device did not hear while it was cut off.
const MAX_STEP: u64 = 64;
/// Highest term of the desk that is heard first.
const MAX_FIRST: u64 = 1_000_000;
// A desk that lies moves terms on by at most a step: none is the last one before 10^14 of them.
const _: () = assert!(MAX_FIRST + MAX_STEP < MAX_TERM);

/// A desk and its term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Its term.
    pub term: u64,
    /// Its name.
    pub desk: String,
}

impl Leader {
    /// Of two desks the one with the higher term leads, of equal terms the name that comes first.
    fn rank(&self) -> (u64, Reverse<&str>) {
        (self.term, Reverse(&self.desk))
    }
}

/// Standing of a desk by the term that it states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It leads, as before.
    Leads,
    /// It leads from now on.
    TakesOver,
    /// Another one leads.
    Superseded,
    /// Its term is too far ahead of all that were heard.
    Implausible,
}

/// The desk that leads, as far as it was heard.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    leader: Option<Leader>,
}

impl Terms {
    /// Returns the desk that leads, once one was heard.
    pub const fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref()
    }

    /// Learns that `desk` states `term`.
    pub fn hear(&mut self, desk: &str, term: u64) -> Standing {
        let stated = Leader {
            term,
            desk: desk.to_owned(),
        };
        let Some(leader) = &self.leader else {
            if term > MAX_FIRST {
                return Standing::Implausible;
            }
            self.leader = Some(stated);
            return Standing::TakesOver;
        };
        if stated == *leader {
            Standing::Leads
        } else if stated.rank() < leader.rank() {
            Standing::Superseded
        } else if term > leader.term.saturating_add(MAX_STEP) {
            Standing::Implausible
        } else {
            let is_same = leader.desk == desk;
            self.leader = Some(stated);
            match is_same {
                true => Standing::Leads,
                false => Standing::TakesOver,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All who heard the same terms obey the same desk, in whichever order they heard them.
    #[test]
    fn all_who_heard_the_same_obey_the_same_desk() {
        let stated = [("main", 0), ("backup", 1), ("main", 2), ("third", 2)];
        let mut orders = vec![Vec::new()];
        for _ in 0..stated.len() {
            orders = orders
                .iter()
                .flat_map(|order: &Vec<usize>| {
                    let rest = (0..stated.len()).filter(|it| !order.contains(it));
                    rest.map(|it| [&order[..], &[it]].concat())
                })
                .collect();
        }
        assert_eq!(orders.len(), 24);
        for order in orders {
            let mut terms = Terms::default();
            for place in order {
                let (desk, term) = stated[place];
                terms.hear(desk, term);
            }
            let leader = terms.leader().unwrap();
            assert_eq!((leader.term, &*leader.desk), (2, "main"));
        }
    }

    #[test]
    fn a_term_says_whether_its_desk_leads() {
        let mut terms = Terms::default();
        assert_eq!(terms.hear("main", 0), Standing::TakesOver);
        assert_eq!(terms.hear("main", 0), Standing::Leads);
        assert_eq!(terms.hear("backup", 1), Standing::TakesOver);
        assert_eq!(terms.hear("main", 0), Standing::Superseded);
        assert_eq!(terms.hear("backup", 2), Standing::Leads);
        assert_eq!(terms.hear("main", 67), Standing::Implausible);
        assert_eq!(terms.hear("main", 66), Standing::TakesOver);
    }

    /// No lie takes the last term: the next desk has one above it.
    #[test]
    fn a_term_that_lies_is_implausible() {
        let lies = [1_000_001, MAX_TERM, u64::MAX];
        let mut first = Terms::default();
        assert_eq!(
            lies.map(|term| first.hear("liar", term)),
            [Standing::Implausible; 3]
        );
        assert_eq!(first.leader(), None);
        assert_eq!(first.hear("main", 3), Standing::TakesOver);
        assert_eq!(
            lies.map(|term| first.hear("liar", term)),
            [Standing::Implausible; 3]
        );
        assert_eq!(first.leader().unwrap().term, 3);
    }
}
