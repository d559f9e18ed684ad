//! `docs/reproduction.md`: whether what the papers say came out.

use std::fmt::Write as _;

use crate::experiment::claim::ClaimResult;
use crate::experiment::summary::Summary;

/// Returns a Markdown document with one row for each claim of the papers, by paper. `varied` are the same experiments with other
/// numbers.
pub(super) fn document<'s>(
    summaries: impl Iterator<Item = &'s Summary> + Clone,
    varied: impl Iterator<Item = &'s Summary> + Clone,
) -> String {
    let claimed = summaries.filter(|summary| !summary.claims.is_empty());
    let mut sources: Vec<&str> = claimed.clone().map(|summary| &*summary.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut text = HEAD.to_owned();
    for source in sources {
        let _ = write!(text, "\n## {source}\n\n{COLUMNS}");
        for summary in claimed.clone().filter(|summary| summary.source == source) {
            let varied = varied.clone().filter(|other| other.id == summary.id);
            for claim in &summary.claims {
                row(
                    &mut text,
                    summary,
                    claim,
                    &robustness(claim, varied.clone()),
                );
            }
        }
    }
    text
}

const HEAD: &str = "# What came out of the papers' claims

Made by `namecast experiment report results --claims docs/reproduction.md` after `namecast experiment run`; the command for one row is
`namecast experiment run ID`, with the ID in its last column. Values are means over the runs with their 95 % interval, or the least and the
greatest mean of several points. *Holds* means: in nine of ten runs or more, at each point; *differs*: so at some of the points; *did not come out*: at none.

*A fifth off* is how many variants of the experiment, in each of which one number is a fifth larger or smaller than the paper has it, keep the verdict, in three runs
of each point; and with what it is another. `scripts/vary.sh results` runs them before the report is made.
";
const COLUMNS: &str =
    "| place | the paper says | judged by | bound | measured | verdict | why | a fifth off | experiment |
|---|---|---|---|---|---|---|---|---|
";

fn row(text: &mut String, summary: &Summary, claim: &ClaimResult, robustness: &str) {
    let runs = match summary.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let _ = writeln!(
        text,
        "| {} | {} | `{}` | {} | {} | **{}** | {} | {robustness} | `{}`, {runs} |",
        cell(&claim.place),
        cell(&claim.says),
        claim.metric,
        claim.bound(),
        claim.measured(),
        claim.verdict.text(),
        cell(&claim.because),
        summary.id,
    );
}

/// Returns how many of `varied` say the same of a claim, and which do not.
fn robustness<'s>(claim: &ClaimResult, varied: impl Iterator<Item = &'s Summary>) -> String {
    let mut kept = 0;
    let mut all = 0;
    let mut others = String::new();
    for summary in varied {
        let mut claims = summary.claims.iter();
        let Some(other) = claims.find(|other| other.is_same_claim(claim)) else {
            continue;
        };
        all += 1;
        if other.verdict == claim.verdict {
            kept += 1;
        } else {
            let (verdict, scales) = (other.verdict.text(), summary.scales.join(", "));
            let _ = write!(others, "; *{verdict}* with `{scales}`");
        }
    }
    match all {
        0 => String::new(),
        _ => format!("{kept} of {all}{others}"),
    }
}

/// Text that stays within its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::claim::{Found, Verdict};

    #[test]
    fn a_row_keeps_its_cells() {
        let found = Found {
            name: "u/0".to_owned(),
            mean: Some([2.0; 3]),
            share: 1.0,
        };
        let claim = ClaimResult {
            says: "a | b".to_owned(),
            place: "Fig. 1".to_owned(),
            metric: "u/*".to_owned(),
            min: Some(1.0),
            max: None,
            found: vec![found],
            verdict: Verdict::Holds,
            because: "it is".to_owned(),
        };
        let summary = Summary {
            id: "x/y".to_owned(),
            source: "X".to_owned(),
            runs: 10,
            claims: vec![claim],
            ..Summary::default()
        };
        let mut lower = summary.clone();
        lower.scales = vec!["r=0.8".to_owned()];
        let mut higher = summary.clone();
        higher.scales = vec!["r=1.2".to_owned()];
        higher.claims[0].verdict = Verdict::Differs;
        let text = document([&summary].into_iter(), [&lower, &higher].into_iter());
        let row = "| Fig. 1 | a \\| b | `u/*` | ≥ 1 | 2 (2 … 2) | **holds** | it is | \
             1 of 2; *differs* with `r=1.2` | `x/y`, 10 runs |";
        assert!(text.lines().any(|line| line == row), "{text}");
    }
}
