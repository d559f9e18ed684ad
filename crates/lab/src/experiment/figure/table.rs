//! Figures that are tables.

use std::collections::BTreeMap;

use namecast_command::source::Problem;

use super::Artist;
use crate::experiment::file::Figure;
use crate::experiment::key;
use crate::experiment::measured::Runs;
use crate::experiment::statistics::Statistics;

impl Artist<'_> {
    /// One row a point, one column a metric, and more for what is known of it.
    pub(super) fn table(&self, figure: &Figure) -> Result<Vec<Vec<String>>, Problem> {
        self.metric(figure)?;
        let metrics: Vec<&str> = match &figure.y {
            Some(y) => y.get_ref().as_slice().iter().map(String::as_str).collect(),
            None => self.measured.metric_names().collect(),
        };
        let sweeps = || self.experiment.sweeps.iter();
        let mut head: Vec<String> = sweeps().map(|sweep| sweep.name.clone()).collect();
        for metric in &metrics {
            head.push((*metric).to_owned());
            let named = |known: &BTreeMap<String, Option<f64>>| {
                self.measured.points.iter().any(|labels| {
                    known
                        .get(&key::key(metric, labels))
                        .copied()
                        .flatten()
                        .is_some()
                })
            };
            if named(&self.summary.paper) {
                head.push(format!("{metric}: paper"));
            }
            if named(&self.summary.ideal) {
                head.push(format!("{metric}: ideal"));
            }
        }
        let mut rows = vec![head];
        for labels in &self.measured.points {
            let picked = sweeps().zip(labels).all(|(sweep, label)| {
                let mut picks = figure.pick.iter();
                picks.all(|(name, wanted)| {
                    *name.get_ref() != sweep.name || wanted.get_ref() == label
                })
            });
            if picked {
                let row = self.row(&rows[0], labels, &metrics);
                rows.push(row);
            }
        }
        Ok(rows)
    }

    fn row(&self, head: &[String], labels: &[String], metrics: &[&str]) -> Vec<String> {
        let mut row = labels.to_vec();
        for metric in metrics {
            row.push(
                self.measured
                    .get(metric, labels)
                    .map_or_else(String::new, cell),
            );
            let (paper, ideal) = self.references(metric, labels);
            for (column, value) in [("paper", paper), ("ideal", ideal)] {
                if head.contains(&format!("{metric}: {column}")) {
                    row.push(value.map_or_else(String::new, significant));
                }
            }
        }
        row
    }
}

fn cell(runs: &Runs) -> String {
    Statistics::of(runs).map_or_else(
        || "–".to_owned(),
        |s| {
            let half = (s.high - s.low) / 2.0;
            if half > 0.0 {
                format!("{} ± {}", significant(s.mean), significant(half))
            } else {
                significant(s.mean)
            }
        },
    )
}

/// The values that are allowed.
pub(in crate::experiment) fn bound(min: Option<f64>, max: Option<f64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{} … {}", significant(min), significant(max)),
        (Some(min), None) => format!("≥ {}", significant(min)),
        (None, Some(max)) => format!("≤ {}", significant(max)),
        (None, None) => String::new(),
    }
}

/// A number with about four digits that say something, or a dash where there is none.
pub(in crate::experiment) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), significant)
}

/// A number with about four digits that say something.
pub(in crate::experiment) fn significant(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e9).contains(&size) {
        return format!("{value:.3e}");
    }
    let digits = match size {
        s if s >= 1_000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 1.0 => 3,
        s if s >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_what_they_can_say() {
        let shown = [
            0.98341, 12.3456, 3.0, 1234.56, 0.0, -0.5, 0.00012, 1e-7, 2.5e10,
        ]
        .map(significant);
        let expected = [
            "0.9834", "12.35", "3", "1235", "0", "-0.5", "0.00012", "1.000e-7", "2.500e10",
        ];
        assert_eq!(shown, expected);
    }
}
