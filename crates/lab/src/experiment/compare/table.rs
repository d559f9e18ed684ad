//! A comparison, as people read it.

use std::fmt::Write as _;

use namecast_command::report;

use super::{Comparison, Judged, Test, ValueChange};
use crate::experiment::figure::{number, significant};
use crate::experiment::statistics::Statistics;

/// See [`Comparison::text`].
pub(super) fn text(comparison: &Comparison, all: bool) -> String {
    let mut text = verdicts(comparison);
    text.push_str(&values(comparison, all));
    let lists = [("A", &comparison.only_a), ("B", &comparison.only_b)];
    for (side, list) in lists {
        for item in list {
            let _ = writeln!(text, "only in {side}: {item}");
        }
    }
    text
}

fn verdicts(comparison: &Comparison) -> String {
    let changes = &comparison.verdicts;
    if changes.is_empty() {
        return "No claim or check has another verdict.\n".to_owned();
    }
    let cell = |judged: &Judged| {
        let Judged {
            verdict,
            measured,
            bound,
            ..
        } = judged;
        format!("{verdict}: {measured}, bound {bound}")
    };
    let rows = changes.iter().map(|change| {
        let direction = if change.worse { "worse" } else { "better" };
        let (a, b) = (cell(&change.a), cell(&change.b));
        let experiment = change.experiment.clone();
        [direction.to_owned(), experiment, change.what.clone(), a, b]
    });
    report::table(["VERDICT", "EXPERIMENT", "OF", "A", "B"], rows)
}

fn values(comparison: &Comparison, all: bool) -> String {
    let values = &comparison.values;
    let differing = values.iter().filter(|value| value.differs).count();
    let marked = values.iter().filter(|value| value.significant).count();
    let mut text = format!("{differing} of {} values differ", values.len());
    let is_shown = |value: &&ValueChange| all || value.differs;
    let shown: Vec<&ValueChange> = values.iter().filter(is_shown).collect();
    if shown.is_empty() {
        text.push_str(".\n");
        return text;
    }
    let _ = writeln!(text, ", {marked} of them significantly (*).");
    let rows = shown.into_iter().map(|value| {
        let test = match value.test {
            Test::Paired => "paired",
            Test::Welch => "Welch",
        };
        let mark = if value.significant { "*" } else { "" };
        [
            mark.to_owned(),
            value.experiment.clone(),
            value.name.clone(),
            mean(value.a),
            mean(value.b),
            number(value.difference),
            value.p.map_or_else(|| "–".to_owned(), probability),
            test.to_owned(),
        ]
    });
    let head = ["", "EXPERIMENT", "VALUE", "A", "B", "B - A", "P", "T-TEST"];
    text.push_str(&report::table(head, rows));
    text
}

/// A mean with its interval, and how many runs have a value, if not all.
fn mean(of: Option<Statistics>) -> String {
    let Some(of) = of else {
        return "never".to_owned();
    };
    let [mean, low, high] = [of.mean, of.low, of.high].map(significant);
    let mut text = format!("{mean} ({low} … {high})");
    if of.missing > 0 {
        let _ = write!(text, ", {} of {} runs", of.runs, of.runs + of.missing);
    }
    text
}

fn probability(p: f64) -> String {
    /// Below, how much less says nothing.
    const SHOWN: f64 = 0.000_1;
    match p {
        p if p < SHOWN => format!("< {SHOWN}"),
        p => format!("{p:.4}"),
    }
}
