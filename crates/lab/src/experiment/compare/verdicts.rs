//! Claims and checks that came out otherwise.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::experiment::claim::Verdict;
use crate::experiment::figure::number;
use crate::experiment::summary::Summary;

/// A claim or check with another verdict in B than in A.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictChange {
    /// The experiment's ID.
    pub experiment: String,
    /// What is claimed or checked.
    pub what: String,
    /// In A.
    pub a: Judged,
    /// In B.
    pub b: Judged,
    /// Whether that of B is worse.
    pub worse: bool,
}

/// How a claim or check came out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// `holds`, `differs`, `did not come out` or `fails`.
    pub verdict: &'static str,
    /// What was measured.
    pub measured: String,
    /// What had to be.
    pub bound: String,
    /// From 0, the best.
    #[serde(skip)]
    severity: u8,
}

/// What became of the claims and checks of two experiments.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) changes: Vec<VerdictChange>,
    pub(super) only_a: Vec<String>,
    pub(super) only_b: Vec<String>,
}

/// Compares the verdicts of two experiments.
pub(super) fn changed(experiment: &str, a: &Summary, b: &Summary) -> Changes {
    let (a, mut b) = (judged(a), judged(b));
    let mut found = Changes::default();
    for (what, in_a) in a {
        match b.remove(&what) {
            Some(in_b) if in_a.severity != in_b.severity => {
                let worse = in_b.severity > in_a.severity;
                found.changes.push(VerdictChange {
                    experiment: experiment.to_owned(),
                    what,
                    a: in_a,
                    b: in_b,
                    worse,
                });
            }
            Some(_) => {}
            None => found.only_a.push(format!("{experiment}: {what}")),
        }
    }
    let lonely = b.into_keys().map(|what| format!("{experiment}: {what}"));
    found.only_b.extend(lonely);
    found
}

/// All claims and checks of an experiment, by what they say.
fn judged(summary: &Summary) -> BTreeMap<String, Judged> {
    let mut found = BTreeMap::new();
    let mut add = |what: String, judged: Judged| {
        // Two checks of one value, such as one for each bound, are told apart by their order.
        let names = (2..).map(|number| format!("{what} ({number})"));
        let mut names = [what.clone()].into_iter().chain(names);
        let free = names.find(|name| !found.contains_key(name));
        found.insert(free.expect("names have no end"), judged);
    };
    for claim in &summary.claims {
        let what = format!("claim {}: {}: {}", claim.place, claim.says, claim.metric);
        let severity = match claim.verdict {
            Verdict::Holds => 0,
            Verdict::Differs => 1,
            Verdict::DidNotComeOut => 2,
        };
        let judged = Judged {
            verdict: claim.verdict.text(),
            measured: claim.measured(),
            bound: claim.bound(),
            severity,
        };
        add(what, judged);
    }
    for check in &summary.checks {
        let judged = Judged {
            verdict: if check.ok { "holds" } else { "fails" },
            measured: number(check.value),
            bound: format!("{} … {}", number(check.min), number(check.max)),
            severity: if check.ok { 0 } else { 2 },
        };
        add(format!("check {}", check.name), judged);
    }
    found
}
