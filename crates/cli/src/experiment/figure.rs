//! From what was measured to what is drawn.

use std::collections::BTreeMap;

use toml::Spanned;

use super::chart::{Body, Chart, Group, Spot};
use super::file::{Figure, FigureKind, Names, Placed, Sweep};
use super::key;
use super::library::glob;
use super::measured::{Measured, Runs};
use super::plan::Experiment;
use super::source::Problem;
use super::statistics::Statistics;
use super::store::StoredSeries;
use super::summary::Summary;

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

/// What is wrong with a figure, as far as can be told without a run.
pub(super) fn problems(experiment: &Experiment<'_>, placed: &Placed<Figure>) -> Vec<Problem> {
    let figure = &placed.value;
    let mut problems = Vec::new();
    let mut refuse =
        |span, message: String| problems.push(experiment.sources.problem(span, message));
    let sweep = |name: &str| experiment.sweeps.iter().find(|sweep| sweep.name == name);
    let names = || {
        let names = experiment.sweeps.iter().map(|sweep| sweep.name.as_str());
        names.collect::<Vec<_>>().join("', '")
    };
    for name in figure
        .x
        .iter()
        .chain(&figure.group)
        .chain(figure.pick.keys())
    {
        if sweep(name.get_ref()).is_none() {
            let message = format!(
                "no sweep is called '{}': expected one of '{}'",
                name.get_ref(),
                names()
            );
            refuse(name.span(), message);
        }
    }
    for (name, label) in &figure.pick {
        let Some(sweep) = sweep(name.get_ref()) else {
            continue;
        };
        let known: Vec<&str> = sweep
            .choices
            .iter()
            .map(|choice| choice.label.as_str())
            .collect();
        if !known.contains(&label.get_ref().as_str()) {
            let (name, label_text) = (&sweep.name, label.get_ref());
            let message = format!(
                "sweep '{name}' has no '{label_text}': expected one of '{}'",
                known.join("', '")
            );
            refuse(label.span(), message);
        }
    }
    for (field, wanted) in wanted_fields(figure) {
        let place = placed.span.clone();
        match wanted {
            Wanted::Needed => refuse(place, format!("this kind of figure needs `{field}`")),
            Wanted::Useless => refuse(
                place,
                format!("this kind of figure has no use for `{field}`"),
            ),
        }
    }
    let shown = |sweep: &Sweep<'_>| {
        let is = |name: &Option<Spanned<String>>| {
            name.as_ref()
                .is_some_and(|name| *name.get_ref() == sweep.name)
        };
        let picked = figure.pick.keys().any(|name| *name.get_ref() == sweep.name);
        is(&figure.x) || is(&figure.group) || picked || sweep.choices.len() == 1
    };
    if figure.kind != FigureKind::Table {
        for sweep in experiment.sweeps.iter().filter(|sweep| !shown(sweep)) {
            let name = &sweep.name;
            let message = format!(
                "sweep '{name}' is not shown: make it `x` or `group`, or fix it with `pick = {{ {name} = … }}`"
            );
            refuse(placed.span.clone(), message);
        }
    }
    if let (FigureKind::Lines, Some(x)) = (figure.kind, &figure.x) {
        let choices = sweep(x.get_ref()).map(|sweep| &sweep.choices);
        for choice in choices
            .into_iter()
            .flatten()
            .filter(|choice| choice.x.is_none())
        {
            let message = format!(
                "'{}' has no place on an axis: give the sweep `x`, or draw bars",
                choice.label
            );
            refuse(x.span(), message);
        }
    }
    if let Some(bins) = figure
        .bins
        .as_ref()
        .filter(|bins| !(1..=MAX_BINS).contains(bins.get_ref()))
    {
        refuse(bins.span(), format!("expected 1 to {MAX_BINS} bins"));
    }
    if let Some(seed) = figure.seed.as_ref().filter(|seed| *seed.get_ref() == 0) {
        refuse(seed.span(), "runs are counted from 1".to_owned());
    }
    problems
}

enum Wanted {
    Needed,
    Useless,
}

/// Fields that a figure lacks or should not have.
fn wanted_fields(figure: &Figure) -> Vec<(&'static str, Wanted)> {
    use FigureKind::{Bars, Histogram, Lines, Series, Table};
    let kind = figure.kind;
    let many = matches!(
        figure.y.as_ref().map(Spanned::get_ref),
        Some(Names::Many(_))
    );
    // Field, whether it is there, whether it is needed, whether it may be there.
    let fields = [
        (
            "x",
            figure.x.is_some(),
            matches!(kind, Lines | Bars),
            matches!(kind, Lines | Bars),
        ),
        ("y", figure.y.is_some(), matches!(kind, Lines | Bars), true),
        ("a list as `y`", many, false, kind == Table),
        ("group", figure.group.is_some(), false, kind != Table),
        (
            "series",
            figure.series.is_some(),
            kind == Series,
            matches!(kind, Series | Histogram),
        ),
        ("seed", figure.seed.is_some(), false, kind == Series),
        ("bins", figure.bins.is_some(), false, kind == Histogram),
        (
            "y or series",
            figure.y.is_some() || figure.series.is_some(),
            kind == Histogram,
            true,
        ),
    ];
    let fields = fields.into_iter();
    let wrong =
        fields.filter_map(
            |(field, present, needed, allowed)| match (present, needed, allowed) {
                (false, true, _) => Some((field, Wanted::Needed)),
                (true, _, false) => Some((field, Wanted::Useless)),
                _ => None,
            },
        );
    wrong.collect()
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
    /// It asks for something that was not measured.
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
                let statistics = self
                    .measured
                    .get(metric, &labels)
                    .and_then(|runs| Statistics::of(runs));
                let (paper, ideal) = self.references(metric, &labels);
                let x = if figure.kind == FigureKind::Bars {
                    None
                } else {
                    choice.x
                };
                group.spots.push(Spot {
                    x: x.unwrap_or(index as f64),
                    measured: statistics.map(|s| [s.mean, s.low, s.high]),
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
        let metric = self.metric(figure)?;
        let mut values: Vec<(String, Vec<f64>)> = Vec::new();
        let mut levels = [None, None];
        for (name, fixed) in self.groups(figure) {
            let labels = self.labels(&fixed);
            let mut group = Vec::new();
            if let Some(metric) = metric {
                let (paper, ideal) = self.references(metric, &labels);
                levels = [levels[0].or(paper), levels[1].or(ideal)];
            }
            if figure.series.is_some() {
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
            } else if let Some(runs) = metric.and_then(|metric| self.measured.get(metric, &labels))
            {
                group.extend(runs.iter().copied().flatten());
            }
            values.push((name, group));
        }
        let bins = figure
            .bins
            .as_ref()
            .map_or(DEFAULT_BINS, |bins| *bins.get_ref());
        let per_run = if figure.series.is_some() {
            self.runs.max(1)
        } else {
            1
        };
        Ok(binned(values, bins as usize, per_run as f64, levels))
    }

    fn table(&self, figure: &Figure) -> Result<Vec<Vec<String>>, Problem> {
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

fn with_unit(name: &str, unit: Option<&str>) -> String {
    match unit {
        Some(unit) if !unit.is_empty() => format!("{name} ({unit})"),
        _ => name.to_owned(),
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

/// A number with about four digits that say something.
pub(super) fn significant(value: f64) -> String {
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
