//! From what was measured to what is drawn.

mod table;
mod validity;

use std::collections::BTreeMap;

use toml::Spanned;

use namecast_command::source::Problem;

use super::chart::{Body, Chart, Group, Spot};
use super::file::{Figure, FigureKind, Placed, Sweep};
use super::key;
use super::library::glob;
use super::measured::Measured;
use super::plan::Experiment;
use super::statistics::Statistics;
use super::store::StoredSeries;
use super::summary::Summary;
pub(super) use table::{bound, number, significant};
pub(super) use validity::problems;

/// Bars of a histogram unless the file says.
const DEFAULT_BINS: u32 = 20;
/// The most bars that can be told apart.
const MAX_BINS: u32 = 200;

/// What a figure shows.
#[derive(Debug)]
pub(super) enum Drawing {
    /// A picture.
    Chart(Chart),
    /// Rows and columns, the first row being the heads of the columns.
    Table(Vec<Vec<String>>),
}

/// Where a figure's curves come from.
pub(super) trait Curves {
    /// All series of run `run` (from 0) of point `point`.
    ///
    /// # Errors
    /// They cannot be read.
    fn series(&self, point: usize, run: usize) -> Result<Vec<StoredSeries>, String>;
}

/// One series that a figure shows, for its CSV file.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) labels: Vec<String>,
    /// From 1.
    pub(super) run: usize,
    pub(super) series: StoredSeries,
}

/// Draws figures of one experiment.
pub(super) struct Artist<'a> {
    pub(super) experiment: &'a Experiment<'a>,
    pub(super) measured: &'a Measured,
    /// For what the paper reports, and what would be ideal.
    pub(super) summary: &'a Summary,
    pub(super) curves: &'a dyn Curves,
    /// Runs of each point.
    pub(super) runs: usize,
}

impl Artist<'_> {
    /// What `placed` shows, and the series it is made from.
    ///
    /// # Errors
    /// It needs something that was not measured.
    pub(super) fn draw(&self, placed: &Placed<Figure>) -> Result<(Drawing, Vec<Shown>), Problem> {
        let figure = &placed.value;
        let mut shown = Vec::new();
        let body = match figure.kind {
            FigureKind::Lines => self.lines(figure)?,
            FigureKind::Bars => self.bars(figure)?,
            FigureKind::Histogram => self.histogram(placed, &mut shown)?,
            FigureKind::Series => self.series(placed, &mut shown)?,
            FigureKind::Table => return Ok((Drawing::Table(self.table(figure)?), shown)),
        };
        let unit = shown.first().map(|shown| shown.series.unit.as_str());
        let named = figure
            .series
            .as_ref()
            .map(|names| names.get_ref().as_slice().join(", "));
        let y_name = figure.y.as_ref().map(|y| y.get_ref().as_slice().join(", "));
        let (x_default, y_default) = match figure.kind {
            FigureKind::Histogram => (named.or(y_name), Some("number".to_owned())),
            FigureKind::Series => (
                Some("time (s)".to_owned()),
                named.map(|name| with_unit(&name, unit)),
            ),
            _ => (figure.x.as_ref().map(|x| x.get_ref().clone()), y_name),
        };
        let chart = Chart {
            title: figure
                .title
                .clone()
                .unwrap_or_else(|| self.experiment.header.title.clone()),
            x_label: figure.x_label.clone().or(x_default).unwrap_or_default(),
            y_label: figure.y_label.clone().or(y_default).unwrap_or_default(),
            y_min: figure.y_min,
            y_max: figure.y_max,
            body,
        };
        Ok((Drawing::Chart(chart), shown))
    }

    /// The groups' names, and for each of them the labels that are fixed by it and by `pick`.
    fn groups(&self, figure: &Figure) -> Vec<(String, BTreeMap<String, String>)> {
        let picked = figure.pick.iter();
        let picked: BTreeMap<String, String> = picked
            .map(|(name, label)| (name.get_ref().clone(), label.get_ref().clone()))
            .collect();
        let Some(sweep) = self.sweep(figure.group.as_ref()) else {
            return vec![(String::new(), picked)];
        };
        let of_label = |label: &String| {
            let mut fixed = picked.clone();
            fixed.insert(sweep.name.clone(), label.clone());
            (label.clone(), fixed)
        };
        sweep
            .choices
            .iter()
            .map(|choice| of_label(&choice.label))
            .collect()
    }

    fn sweep(&self, name: Option<&Spanned<String>>) -> Option<&Sweep<'_>> {
        let name = name?.get_ref();
        self.experiment
            .sweeps
            .iter()
            .find(|sweep| sweep.name == *name)
    }

    /// Labels of the point that `fixed` leads to; sweeps that it does not name have one label.
    fn labels(&self, fixed: &BTreeMap<String, String>) -> Vec<String> {
        let sweeps = self.experiment.sweeps.iter();
        let label = |sweep: &Sweep<'_>| {
            let only = || sweep.choices[0].label.clone();
            fixed.get(&sweep.name).cloned().unwrap_or_else(only)
        };
        sweeps.map(label).collect()
    }

    fn metric<'a>(&self, figure: &'a Figure) -> Result<Option<&'a str>, Problem> {
        let Some(y) = &figure.y else {
            return Ok(None);
        };
        for name in y.get_ref().as_slice() {
            let known = self.measured.known_metric(name);
            known.map_err(|message| self.experiment.sources.problem(y.span(), message))?;
        }
        Ok(y.get_ref().as_slice().first().map(String::as_str))
    }

    fn references(&self, metric: &str, labels: &[String]) -> (Option<f64>, Option<f64>) {
        let name = key::key(metric, labels);
        let of = |known: &BTreeMap<String, Option<f64>>| known.get(&name).copied().flatten();
        (of(&self.summary.paper), of(&self.summary.ideal))
    }

    /// One spot for each label of the sweep on the horizontal axis.
    fn spots(&self, figure: &Figure) -> Result<(Vec<String>, Vec<Group>), Problem> {
        let metric = self.metric(figure)?.unwrap_or_default();
        let choices = self
            .sweep(figure.x.as_ref())
            .map_or(&[][..], |sweep| &sweep.choices);
        let x_name = figure
            .x
            .as_ref()
            .map(|x| x.get_ref().clone())
            .unwrap_or_default();
        let mut groups = Vec::new();
        for (name, mut fixed) in self.groups(figure) {
            let mut group = Group::new(name);
            for (index, choice) in choices.iter().enumerate() {
                fixed.insert(x_name.clone(), choice.label.clone());
                let labels = self.labels(&fixed);
                let runs = self.measured.get(metric, &labels);
                let statistics = runs.and_then(|runs| Statistics::of(runs));
                let shown = runs.filter(|_| figure.runs == Some(true));
                let (paper, ideal) = self.references(metric, &labels);
                let x = if figure.kind == FigureKind::Bars {
                    None
                } else {
                    choice.x
                };
                group.spots.push(Spot {
                    x: x.unwrap_or(index as f64),
                    measured: statistics.map(|s| [s.mean, s.low, s.high]),
                    runs: shown.into_iter().flatten().copied().flatten().collect(),
                    paper,
                    ideal,
                });
            }
            group.spots.sort_by(|a, b| a.x.total_cmp(&b.x));
            groups.push(group);
        }
        let categories = choices.iter().map(|choice| choice.label.clone());
        Ok((categories.collect(), groups))
    }

    fn lines(&self, figure: &Figure) -> Result<Body, Problem> {
        let (_, groups) = self.spots(figure)?;
        Ok(Body::Lines { groups })
    }

    fn bars(&self, figure: &Figure) -> Result<Body, Problem> {
        let (categories, groups) = self.spots(figure)?;
        Ok(Body::Bars { categories, groups })
    }

    /// Curves of one run of each group; `y` only adds the levels that it should have.
    fn series(&self, placed: &Placed<Figure>, shown: &mut Vec<Shown>) -> Result<Body, Problem> {
        let figure = &placed.value;
        let metric = self.metric(figure)?;
        let run = figure
            .seed
            .as_ref()
            .map_or(0, |seed| *seed.get_ref() as usize - 1);
        // A quick run has fewer runs than the file speaks of.
        let run = run.min(self.runs.saturating_sub(1));
        let mut groups = Vec::new();
        for (name, fixed) in self.groups(figure) {
            let labels = self.labels(&fixed);
            let (paper, ideal) =
                metric.map_or((None, None), |metric| self.references(metric, &labels));
            let found = self.find(figure, &labels, run)?;
            let several = found.len() > 1;
            for series in found {
                let title = match (name.is_empty(), several) {
                    (true, _) => series.name.clone(),
                    (false, true) => format!("{name}: {}", series.name),
                    (false, false) => name.clone(),
                };
                let mut group = Group::new(title);
                group.curve.clone_from(&series.points);
                group.levels = [paper, ideal];
                groups.push(group);
                let labels = labels.clone();
                shown.push(Shown {
                    labels,
                    run: run + 1,
                    series,
                });
            }
        }
        Ok(Body::Lines { groups })
    }

    fn find(
        &self,
        figure: &Figure,
        labels: &[String],
        run: usize,
    ) -> Result<Vec<StoredSeries>, Problem> {
        let Some(names) = &figure.series else {
            return Ok(Vec::new());
        };
        let refuse = |message: String| self.experiment.sources.problem(names.span(), message);
        let point = self
            .measured
            .points
            .iter()
            .position(|point| point == labels);
        let all = point
            .map_or(Ok(Vec::new()), |point| self.curves.series(point, run))
            .map_err(refuse)?;
        let wanted = |series: &&StoredSeries| {
            let patterns = names.get_ref().as_slice();
            patterns.iter().any(|pattern| glob(pattern, &series.name))
        };
        let found: Vec<StoredSeries> = all.iter().filter(wanted).cloned().collect();
        if found.is_empty() {
            let known: Vec<&str> = all.iter().map(|series| series.name.as_str()).collect();
            let message = format!(
                "no series is called '{}': expected one of {}",
                names.get_ref().as_slice().join("', '"),
                known.join(", ")
            );
            return Err(refuse(message));
        }
        Ok(found)
    }

    fn histogram(&self, placed: &Placed<Figure>, shown: &mut Vec<Shown>) -> Result<Body, Problem> {
        let figure = &placed.value;
        let metrics = self.numbered(figure)?;
        let mut values: Vec<(String, Vec<f64>)> = Vec::new();
        let mut levels = [None, None];
        for (name, fixed) in self.groups(figure) {
            let labels = self.labels(&fixed);
            let mut group = Vec::new();
            for metric in &metrics {
                let (paper, ideal) = self.references(metric, &labels);
                levels = [levels[0].or(paper), levels[1].or(ideal)];
                let runs = self.measured.get(metric, &labels);
                if figure.series.is_none() {
                    group.extend(runs.into_iter().flatten().copied().flatten());
                }
            }
            for run in 0..self.runs {
                for series in self.find(figure, &labels, run)? {
                    group.extend(series.points.iter().map(|(_, value)| *value));
                    let labels = labels.clone();
                    shown.push(Shown {
                        labels,
                        run: run + 1,
                        series,
                    });
                }
            }
            values.push((name, group));
        }
        let bins = figure
            .bins
            .as_ref()
            .map_or(DEFAULT_BINS, |bins| *bins.get_ref());
        // Values of one metric are one a run, and counted; of others there are many a run, and their mean number is shown.
        let single = figure.series.is_none() && metrics.len() == 1;
        let per_run = if single { 1 } else { self.runs.max(1) };
        Ok(binned(values, bins as usize, per_run as f64, levels))
    }

    /// The metrics that a histogram is made of: `*` in `y` stands for a number.
    fn numbered<'a>(&'a self, figure: &'a Figure) -> Result<Vec<&'a str>, Problem> {
        let Some(y) = &figure.y else {
            return Ok(Vec::new());
        };
        let names = y.get_ref().as_slice();
        let matches = |metric: &&str| names.iter().any(|name| has_number(name, metric));
        let found: Vec<&str> = self.measured.metric_names().filter(matches).collect();
        if found.is_empty() {
            return self
                .metric(figure)
                .map(|metric| metric.into_iter().collect());
        }
        Ok(found)
    }
}

/// Whether `name` is `pattern` with a number for its asterisk, or just `pattern`.
fn has_number(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let rest = name.strip_prefix(before);
    let number = rest.and_then(|rest| rest.strip_suffix(after));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn with_unit(name: &str, unit: Option<&str>) -> String {
    match unit {
        Some(unit) if !unit.is_empty() => format!("{name} ({unit})"),
        _ => name.to_owned(),
    }
}

/// Counts how many values fall into each of `bins` equal parts of their range, per run.
fn binned(
    values: Vec<(String, Vec<f64>)>,
    bins: usize,
    runs: f64,
    levels: [Option<f64>; 2],
) -> Body {
    let all = || values.iter().flat_map(|(_, values)| values.iter().copied());
    let low = all().fold(f64::INFINITY, f64::min);
    let high = all().fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = match (low <= high, low < high) {
        (false, _) => (0.0, 1.0),
        (true, false) => (low - 0.5, low + 0.5),
        (true, true) => (low, high),
    };
    let width = (high - low) / bins as f64;
    let groups = values.into_iter().map(|(name, values)| {
        let mut counts = vec![0.0; bins];
        for value in values {
            let bin = ((value - low) / width) as usize;
            counts[bin.min(bins - 1)] += 1.0 / runs;
        }
        (name, counts)
    });
    Body::Histogram {
        groups: groups.collect(),
        low,
        width,
        levels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asterisk_in_a_metric_is_a_number() {
        assert!(has_number("goodput-*", "goodput-12") && has_number("goodput", "goodput"));
        for other in ["goodput-min", "goodput-1-whole", "goodput-", "goodput"] {
            assert!(!has_number("goodput-*", other), "{other}");
        }
        assert!(has_number("goodput-*-whole", "goodput-1-whole"));
    }

    /// 0…4 in four bins of width 1: the highest value belongs to the last bin.
    #[test]
    fn every_value_falls_into_one_bin() {
        let values = vec![
            ("a".to_owned(), vec![0.0, 1.0, 1.5, 4.0]),
            ("b".to_owned(), vec![3.9, 3.9]),
        ];
        let Body::Histogram {
            groups, low, width, ..
        } = binned(values, 4, 2.0, [None, None])
        else {
            panic!("a histogram");
        };
        assert!(low.abs() < 1e-12 && (width - 1.0).abs() < 1e-12);
        assert_eq!(groups[0].1, [0.5, 1.0, 0.0, 0.5]);
        assert_eq!(groups[1].1, [0.0, 0.0, 0.0, 1.0]);
        for values in [vec![], vec![2.0, 2.0]] {
            let count = values.len() as f64;
            let Body::Histogram { groups, .. } =
                binned(vec![(String::new(), values)], 3, 1.0, [None, None])
            else {
                panic!("a histogram");
            };
            assert!((groups[0].1.iter().sum::<f64>() - count).abs() < 1e-12);
        }
    }
}
