//! `docs/reproduction.md`: whether what the papers say came out.

use std::fmt::Write as _;

use crate::experiment::claim::ClaimResult;
use crate::experiment::summary::Summary;

/// Returns a Markdown document with one row for each claim of the papers, by paper.
pub(super) fn document<'s>(summaries: impl Iterator<Item = &'s Summary> + Clone) -> String {
    let claimed = summaries.filter(|summary| !summary.claims.is_empty());
    let mut sources: Vec<&str> = claimed.clone().map(|summary| &*summary.source).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut text = HEAD.to_owned();
    for source in sources {
        let _ = write!(text, "\n## {source}\n\n{COLUMNS}");
        for summary in claimed.clone().filter(|summary| summary.source == source) {
            for claim in &summary.claims {
                row(&mut text, summary, claim);
            }
        }
    }
    text
}

const HEAD: &str = "# What came out of the papers' claims

Made by `namecast experiment report results --claims docs/reproduction.md` after `namecast experiment run`; the command for one row is
`namecast experiment run ID`, with the ID in its last column. Values are means over the runs with their 95 % interval, or the least and the
greatest mean of several points. *Holds* means: in nine of ten runs or more, at each point; *differs*: so at some of the points; *did not come out*: at none.
";
const COLUMNS: &str =
    "| place | the paper says | judged by | bound | measured | verdict | why | experiment |
|---|---|---|---|---|---|---|---|
";

fn row(text: &mut String, summary: &Summary, claim: &ClaimResult) {
    let runs = match summary.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let _ = writeln!(
        text,
        "| {} | {} | `{}` | {} | {} | **{}** | {} | `{}`, {runs} |",
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
        let text = document([&summary].into_iter());
        let row =
            "| Fig. 1 | a \\| b | `u/*` | ≥ 1 | 2 (2 … 2) | **holds** | it is | `x/y`, 10 runs |";
        assert!(text.lines().any(|line| line == row), "{text}");
    }
}
