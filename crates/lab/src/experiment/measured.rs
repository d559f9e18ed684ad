//! All runs of an experiment, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use super::key::{Expression, Operator, Pattern};

/// The most names of metrics that a message tells.
const NAMES_TOLD: usize = 12;

/// One value a run, in the order of the seeds; `None` where the metric has none.
pub(super) type Runs = Vec<Option<f64>>;

/// The metrics of all points.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Labels of each point.
    pub(super) points: Vec<Vec<String>>,
    /// Metric → a place for each point, empty where its runs do not measure it.
    metrics: BTreeMap<String, Vec<Runs>>,
}

/// The values of an expression at one point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Evaluated {
    /// As in `summary.json`.
    pub(super) name: String,
    pub(super) runs: Runs,
}

impl Measured {
    /// Takes the results of all runs: of each point, the metrics of each seed.
    pub(super) fn new<'a>(
        points: impl IntoIterator<Item = (Vec<String>, Vec<&'a BTreeMap<String, Option<f64>>>)>,
    ) -> Self {
        let mut measured = Self::default();
        for (labels, runs) in points {
            let index = measured.points.len();
            measured.points.push(labels);
            let names: BTreeSet<&String> = runs.iter().flat_map(|metrics| metrics.keys()).collect();
            for name in names {
                let values = runs.iter().map(|run| run.get(name).copied().flatten());
                let places = measured.metrics.entry(name.clone()).or_default();
                places.resize(index, Runs::new());
                places.push(values.collect());
            }
        }
        let count = measured.points.len();
        for places in measured.metrics.values_mut() {
            places.resize(count, Runs::new());
        }
        measured
    }

    /// All metrics at all points that have them: metric, labels, runs.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &[String], &Runs)> {
        self.metrics.iter().flat_map(|(metric, places)| {
            let places = self.points.iter().zip(places);
            let present = places.filter(|(_, runs)| !runs.is_empty());
            present.map(|(labels, runs)| (metric.as_str(), labels.as_slice(), runs))
        })
    }

    /// Names of the metrics.
    pub(super) fn metric_names(&self) -> impl Iterator<Item = &str> {
        self.metrics.keys().map(String::as_str)
    }

    /// Returns what one run measured, in the order of [`metric_names`](Self::metric_names).
    pub(super) fn values(&self, point: usize, run: usize) -> impl Iterator<Item = Option<f64>> {
        let places = self.metrics.values();
        places.map(move |places| places[point].get(run).copied().flatten())
    }

    /// The runs of `metric` at the point with these labels.
    pub(super) fn get(&self, metric: &str, labels: &[String]) -> Option<&Runs> {
        let index = self.points.iter().position(|point| point == labels)?;
        let runs = &self.metrics.get(metric)?[index];
        (!runs.is_empty()).then_some(runs)
    }

    /// The values of `expression` wherever its asterisks lead.
    ///
    /// # Errors
    /// It speaks of something that was not measured.
    pub(super) fn evaluate(&self, expression: &Expression) -> Result<Vec<Evaluated>, String> {
        self.known(&expression.left)?;
        if let Some((_, right)) = &expression.right {
            self.known(right)?;
        }
        let mut found = Vec::new();
        for labels in &self.points {
            let Some(stars) = expression.left.matches(labels) else {
                continue;
            };
            let Some(left) = self.get(&expression.left.metric, labels) else {
                continue;
            };
            let runs = match &expression.right {
                None => left.clone(),
                Some((operator, right)) => {
                    let Some(right) = self.get(&right.metric, &right.filled(&stars)) else {
                        continue;
                    };
                    combine(left, *operator, right)
                }
            };
            let name = expression.name(&stars);
            found.push(Evaluated { name, runs });
        }
        if found.is_empty() {
            return Err(format!("'{expression}' was measured at no point"));
        }
        Ok(found)
    }

    /// Says what there is if `pattern` names a metric that there is not.
    ///
    /// # Errors
    /// What was expected.
    fn known(&self, pattern: &Pattern) -> Result<(), String> {
        self.known_metric(&pattern.metric)
    }

    /// Says what there is if there is no such metric.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn known_metric(&self, metric: &str) -> Result<(), String> {
        if self.metrics.contains_key(metric) {
            return Ok(());
        }
        let mut names: Vec<&str> = self.metric_names().collect();
        // With many flows there are hundreds: those that begin alike are the ones that may be meant.
        let alike = |name: &str| {
            name.bytes()
                .zip(metric.bytes())
                .take_while(|(a, b)| a == b)
                .count()
        };
        names.sort_by_key(|name| core::cmp::Reverse(alike(name)));
        let more = names.len().saturating_sub(NAMES_TOLD);
        names.truncate(NAMES_TOLD);
        let more = if more > 0 {
            format!(", or {more} others")
        } else {
            String::new()
        };
        Err(format!(
            "no metric is called '{metric}': expected one of {}{more}",
            names.join(", ")
        ))
    }
}

/// Run by run: all points of an experiment are run with the same seeds, so what differs by chance cancels.
fn combine(left: &Runs, operator: Operator, right: &Runs) -> Runs {
    let pairs = left.iter().zip(right);
    let combined = pairs.map(|(left, right)| {
        let (left, right) = ((*left)?, (*right)?);
        let value = match operator {
            Operator::Minus => left - right,
            Operator::Over => left / right,
        };
        value.is_finite().then_some(value)
    });
    combined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(entries: &[(&str, Option<f64>)]) -> BTreeMap<String, Option<f64>> {
        let entries = entries
            .iter()
            .map(|&(name, value)| (name.to_owned(), value));
        entries.collect()
    }

    #[test]
    fn expressions_are_worked_out_run_by_run_and_point_by_point() {
        let a = [
            metrics(&[("u", Some(6.0))]),
            metrics(&[("u", Some(8.0)), ("late", Some(1.0))]),
        ];
        let b = [metrics(&[("u", Some(3.0))]), metrics(&[("u", Some(0.0))])];
        let point =
            |label: &str, runs: &'static [_; 2]| (vec![label.to_owned()], runs.iter().collect());
        let leak = |runs: [_; 2]| &*Box::leak(Box::new(runs));
        let measured = Measured::new([point("A", leak(a)), point("B", leak(b))]);
        let evaluate = |text| {
            let expression = Expression::parse(text, &[("s", vec!["A", "B"])]).unwrap();
            let found = measured.evaluate(&expression)?;
            let found = found.into_iter().map(|found| (found.name, found.runs));
            Ok::<_, String>(found.collect::<Vec<_>>())
        };
        let one = |name: &str, runs: [Option<f64>; 2]| (name.to_owned(), runs.to_vec());
        assert_eq!(
            evaluate("u/A").unwrap(),
            [one("u/A", [Some(6.0), Some(8.0)])]
        );
        assert_eq!(
            evaluate("u/A - u/B").unwrap(),
            [one("u/A - u/B", [Some(3.0), Some(8.0)])]
        );
        // 8 / 0 has no value.
        assert_eq!(
            evaluate("u/A / u/B").unwrap(),
            [one("u/A / u/B", [Some(2.0), None])]
        );
        assert_eq!(evaluate("u/*").unwrap().len(), 2);
        assert_eq!(
            evaluate("late/*").unwrap(),
            [one("late/A", [None, Some(1.0)])]
        );
        assert!(evaluate("late/B").unwrap_err().contains("at no point"));
        assert!(
            evaluate("v/A")
                .unwrap_err()
                .contains("expected one of late, u")
        );
    }
}
