//! What a folder of results holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::experiment::key::key;
use crate::experiment::library::is_chosen;
use crate::experiment::report;
use crate::experiment::statistics::Statistics;
use crate::experiment::summary::Summary;

/// What an experiment found.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) summary: Summary,
    /// Name of a value → what it is in each run that `runs.csv` tells of, by the run's seed.
    runs: BTreeMap<String, BTreeMap<u64, Option<f64>>>,
}

impl Results {
    /// Reads all results below `folder` that `patterns` mean, in order of ID; what cannot be read goes into `skipped`.
    ///
    /// # Errors
    /// There are none, or there are several of one experiment.
    pub(super) fn below(
        folder: &Path,
        patterns: &[String],
        skipped: &mut Vec<String>,
    ) -> Result<Vec<Self>, String> {
        let shown = folder.display();
        let paths = report::summaries(folder).map_err(|error| format!("{shown}: {error}"))?;
        let mut found: BTreeMap<String, Self> = BTreeMap::new();
        for path in paths {
            match Self::read(&path) {
                Ok(results) => {
                    let id = results.summary.id.clone();
                    if is_chosen(patterns, &id) && found.insert(id.clone(), results).is_some() {
                        return Err(format!(
                            "{shown} has {id} twice: name one folder of results"
                        ));
                    }
                }
                Err(why) => skipped.push(format!("{}: {why}", path.display())),
            }
        }
        if found.is_empty() {
            return Err(format!(
                "{shown} has no such results: name a folder that `namecast experiment run --out` wrote to"
            ));
        }
        Ok(found.into_values().collect())
    }

    fn read(path: &Path) -> Result<Self, String> {
        let summary = report::read_json(path)?;
        let mut results = Self {
            summary,
            runs: BTreeMap::new(),
        };
        let runs = path.with_file_name("runs.csv");
        if runs.exists() {
            let text = report::read_text(&runs)?;
            let read = results.read_runs(&text);
            read.map_err(|why| format!("runs.csv beside it: {why}"))?;
        }
        Ok(results)
    }

    /// Takes the rows of `runs.csv`: a label for each sweep, the run's number and seed, its metrics.
    fn read_runs(&mut self, text: &str) -> Result<(), String> {
        let mut table = csv::Reader::from_reader(text.as_bytes());
        let head = table.headers().map_err(|error| error.to_string())?.clone();
        let sweeps = self.summary.sweeps.len();
        if head.get(sweeps + 1) != Some("seed") {
            let expected = format!("expected 'seed' as column {}", sweeps + 2);
            return Err(expected);
        }
        for (index, row) in table.records().enumerate() {
            let wrong = |what: &str| format!("line {}: {what}", index + 2);
            let row = row.map_err(|error| wrong(&error.to_string()))?;
            let labels: Vec<String> = row.iter().take(sweeps).map(str::to_owned).collect();
            let seed = row.get(sweeps + 1).and_then(|seed| seed.parse().ok());
            let seed = seed.ok_or_else(|| wrong("expected a number as seed"))?;
            for (metric, value) in head.iter().zip(&row).skip(sweeps + 2) {
                let value = match value {
                    "" => None,
                    value => Some(value.parse().map_err(|_| {
                        wrong(&format!("found '{value}', expected a number for {metric}"))
                    })?),
                };
                let runs = self.runs.entry(key(metric, &labels)).or_default();
                runs.insert(seed, value);
            }
        }
        Ok(())
    }

    /// Returns the values of each seed in both, if both have the same seeds.
    pub(super) fn pairs(a: &Self, b: &Self, name: &str) -> Option<Vec<[Option<f64>; 2]>> {
        let (a, b) = (a.runs.get(name)?, b.runs.get(name)?);
        if !a.keys().eq(b.keys()) {
            return None;
        }
        let pairs = a.values().zip(b.values());
        Some(pairs.map(|(a, b)| [*a, *b]).collect())
    }

    /// Returns mean and spread of a value; a summary from elsewhere may have the mean only.
    pub(super) fn statistics(&self, name: &str) -> Option<Statistics> {
        let known = self.summary.confidence.get(name).copied();
        known.or_else(|| Statistics::of(&[*self.summary.metrics.get(name)?]))
    }

    /// Whether there is such a value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.summary.metrics.contains_key(name)
    }

    /// The metric and the labels of a name, unless it is an expression.
    pub(super) fn split<'n>(&self, name: &'n str) -> Option<(&'n str, &'n str)> {
        if name.contains(" - ") || name.contains(" / ") {
            return None;
        }
        let sweeps = self.summary.sweeps.len();
        match sweeps.checked_sub(1) {
            None => Some((name, "")),
            Some(before) => {
                let (slash, _) = name.rmatch_indices('/').nth(before)?;
                Some((&name[..slash], &name[slash + 1..]))
            }
        }
    }

    /// All labels of points, and all names of metrics.
    pub(super) fn points_and_metrics(&self) -> (BTreeSet<&str>, BTreeSet<&str>) {
        let names = self.summary.metrics.keys();
        let split = names.filter_map(|name| self.split(name));
        split.map(|(metric, point)| (point, metric)).unzip()
    }
}
