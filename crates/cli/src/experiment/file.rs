//! One experiment file, as it is written.

use core::ops::Range;
use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::source::{Problem, Sources};
use super::tree::{self, Node, Override, Table};

/// What the runner knows by default, and the most that one file may ask for.
#[derive(Clone, Copy, Debug)]
pub struct FileLimits {
    /// Octets of one file.
    pub octets: usize,
    /// Files in a chain of `extends`.
    pub chain: usize,
    /// Points of all sweeps together.
    pub points: usize,
    /// Seeds per point.
    pub seeds: u32,
    /// Figures, references and checks, each.
    pub entries: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            octets: 1 << 20,
            chain: 8,
            points: 10_000,
            seeds: 10_000,
            entries: 1_000,
        }
    }
}

/// Seeds per point where a file does not say: the fewest that the issue of fair comparison asks for.
pub(super) const DEFAULT_SEEDS: u32 = 10;

/// What a file says about itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Header {
    /// What is shown, in a few words.
    pub(super) title: String,
    /// Figure or table of the paper, such as `Fig. 5`.
    pub(super) item: String,
    /// Key in `docs/papers.md`.
    pub(super) paper: String,
    /// Markdown for the report.
    #[serde(default)]
    pub(super) about: String,
    /// How many seeds each point is run with.
    pub(super) seeds: Option<Spanned<u32>>,
    /// File that gives scenario and sweeps unless this one does.
    pub(super) extends: Option<Spanned<String>>,
}

/// What a figure draws.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum FigureKind {
    /// A metric over a sweep of numbers, one line a label of `group`.
    Lines,
    /// A metric over any sweep, one bar a label of `group`.
    Bars,
    /// How often values occur.
    Histogram,
    /// Curves of one run.
    Series,
    /// Metrics as rows and columns.
    Table,
}

/// One or several names.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    pub(super) fn as_slice(&self) -> &[String] {
        match self {
            Self::One(name) => core::slice::from_ref(name),
            Self::Many(names) => names,
        }
    }
}

/// One figure. Which fields it needs depends on its kind; [`super::figure`] says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Figure {
    pub(super) kind: FigureKind,
    pub(super) title: Option<String>,
    pub(super) x: Option<Spanned<String>>,
    pub(super) y: Option<Spanned<Names>>,
    pub(super) group: Option<Spanned<String>>,
    pub(super) x_label: Option<String>,
    pub(super) y_label: Option<String>,
    pub(super) y_min: Option<f64>,
    pub(super) y_max: Option<f64>,
    /// Names of series of a run; `*` stands for anything.
    pub(super) series: Option<Spanned<Names>>,
    /// Sweep → label, for the sweeps that the figure does not show.
    #[serde(default)]
    pub(super) pick: BTreeMap<Spanned<String>, Spanned<String>>,
    /// Which run of a point to show, from 1.
    pub(super) seed: Option<Spanned<u32>>,
    /// Bars of a histogram.
    pub(super) bins: Option<Spanned<u32>>,
}

/// What the paper reports, and what would be ideal.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Reference {
    pub(super) metric: Spanned<String>,
    pub(super) paper: Option<f64>,
    pub(super) ideal: Option<f64>,
}

/// Which of a point's runs a check is about.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Of {
    /// Their mean.
    #[default]
    Mean,
    /// Each of them: the one that is furthest from where it should be.
    Worst,
}

/// What must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Check {
    pub(super) metric: Spanned<String>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    #[serde(default)]
    pub(super) of: Of,
    /// Where the bounds come from.
    pub(super) why: String,
}

/// One axis of the points.
#[derive(Clone, Debug)]
pub(super) struct Sweep<'l> {
    pub(super) name: String,
    pub(super) choices: Vec<Choice<'l>>,
}

/// One value of a sweep.
#[derive(Clone, Debug)]
pub(super) struct Choice<'l> {
    pub(super) label: String,
    /// Its place on an axis, if it has one.
    pub(super) x: Option<f64>,
    pub(super) overrides: Vec<Override<'l>>,
    pub(super) span: Range<usize>,
}

/// Everything that one file says, and where.
#[derive(Debug)]
pub(super) struct Parsed<'l> {
    pub(super) header: Header,
    pub(super) scenario: Option<Table<'l>>,
    pub(super) quick: Option<Vec<Override<'l>>>,
    pub(super) sweeps: Option<Vec<Sweep<'l>>>,
    pub(super) figures: Vec<Placed<Figure>>,
    pub(super) references: Vec<Placed<Reference>>,
    pub(super) checks: Vec<Placed<Check>>,
}

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Placed<T> {
    pub(super) span: Range<usize>,
    pub(super) value: T,
}

/// Reads a file. All problems that do not hide each other are found at once.
///
/// # Errors
/// What is wrong.
pub(super) fn read<'l>(
    sources: &mut Sources<'l>,
    path: &'l str,
    text: &'l str,
    limits: &FileLimits,
) -> Result<Parsed<'l>, Vec<Problem>> {
    let mut root = tree::parse(sources, path, text).map_err(|problem| vec![problem])?;
    let mut reader = Reader {
        sources,
        limits,
        problems: Vec::new(),
    };
    let table = root.get_mut();
    let scenario = table.remove("scenario");
    let scenario = scenario.and_then(|node| reader.table(node, "[scenario]"));
    let quick = table.remove("quick");
    let quick = quick.and_then(|node| reader.table(node, "[quick]"));
    let sweeps = table.remove("sweep").map(|node| reader.sweeps(node));
    let figures = reader.entries(table.remove("figure"), "[[figure]]");
    let references = reader.entries(table.remove("reference"), "[[reference]]");
    let checks = reader.entries(table.remove("check"), "[[check]]");
    let header = reader.typed(root);
    match (header, reader.problems) {
        (Some(header), problems) if problems.is_empty() => Ok(Parsed {
            header,
            scenario,
            quick: quick.map(overrides),
            sweeps,
            figures,
            references,
            checks,
        }),
        (_, problems) => Err(problems),
    }
}

/// The entries of a table, in the order in which they were written.
fn overrides(table: Table<'_>) -> Vec<Override<'_>> {
    let entries = table.into_inner().into_iter();
    let mut overrides: Vec<_> = entries
        .map(|(path, value)| Override { path, value })
        .collect();
    overrides.sort_by_key(|change| change.path.span().start);
    overrides
}

struct Reader<'a, 'l> {
    sources: &'a Sources<'l>,
    limits: &'a FileLimits,
    problems: Vec<Problem>,
}

impl<'l> Reader<'_, 'l> {
    fn refuse(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.problems.push(self.sources.problem(span, message));
    }

    fn typed<T: serde::de::DeserializeOwned>(&mut self, table: Table<'l>) -> Option<T> {
        let span = table.span();
        match tree::read(table) {
            Ok(value) => Some(value),
            Err((place, message)) => {
                self.refuse(place.unwrap_or(span), message);
                None
            }
        }
    }

    fn table(&mut self, node: Node<'l>, what: &str) -> Option<Table<'l>> {
        let span = node.span();
        match node.into_inner() {
            DeValue::Table(table) => Some(Spanned::new(span, table)),
            other => {
                let message = format!("{what}: found a {}, expected a table", other.type_str());
                self.refuse(span, message);
                None
            }
        }
    }

    fn tables(&mut self, node: Node<'l>, what: &str) -> Vec<Table<'l>> {
        let span = node.span();
        let DeValue::Array(items) = node.into_inner() else {
            self.refuse(span, format!("expected a list of tables: write {what}"));
            return Vec::new();
        };
        if items.len() > self.limits.entries {
            let most = self.limits.entries;
            self.refuse(span, format!("more than {most} of {what}"));
            return Vec::new();
        }
        let tables = items.into_iter().map(|item| self.table(item, what));
        tables.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    fn entries<T: serde::de::DeserializeOwned>(
        &mut self,
        node: Option<Node<'l>>,
        what: &str,
    ) -> Vec<Placed<T>> {
        let Some(node) = node else {
            return Vec::new();
        };
        let mut entries = Vec::new();
        for table in self.tables(node, what) {
            let span = table.span();
            if let Some(value) = self.typed(table) {
                entries.push(Placed { span, value });
            }
        }
        entries
    }

    fn sweeps(&mut self, node: Node<'l>) -> Vec<Sweep<'l>> {
        let mut sweeps: Vec<Sweep<'l>> = Vec::new();
        for table in self.tables(node, "[[sweep]]") {
            let span = table.span();
            let Some(sweep) = self.sweep(table) else {
                continue;
            };
            if sweeps.iter().any(|other| other.name == sweep.name) {
                let message = format!("a second sweep named '{}': names differ", sweep.name);
                self.refuse(span, message);
                continue;
            }
            sweeps.push(sweep);
        }
        let points = sweeps.iter().try_fold(1_usize, |product, sweep| {
            product.checked_mul(sweep.choices.len())
        });
        if points.is_none_or(|points| points > self.limits.points) {
            let message = format!("more than {} points", self.limits.points);
            self.refuse(sweeps[0].choices[0].span.clone(), message);
        }
        sweeps
    }

    fn sweep(&mut self, table: Table<'l>) -> Option<Sweep<'l>> {
        let span = table.span();
        let mut table = table.into_inner();
        let name = self.text(&mut table, "name", &span)?;
        let values = table.remove("values");
        let parameter = table.remove("parameter");
        let x = table.remove("x");
        for (key, _) in table {
            let message = format!(
                "unknown field `{}`, expected one of `name`, `values`, `parameter`, `x`",
                key.get_ref()
            );
            self.refuse(key.span(), message);
        }
        let Some(values) = values else {
            self.refuse(span, format!("sweep '{name}' has no values"));
            return None;
        };
        let values_span = values.span();
        let mut choices = match (parameter, values.into_inner()) {
            (None, DeValue::Table(table)) => self.labelled(table),
            (Some(parameter), DeValue::Array(values)) => {
                let paths = self.parameters(parameter)?;
                values
                    .into_iter()
                    .filter_map(|value| self.short(&paths, value))
                    .collect()
            }
            _ => {
                let message = "expected either a table 'values' (label → overrides), or a 'parameter' and a list 'values'";
                self.refuse(values_span, message);
                return None;
            }
        };
        if choices.is_empty() {
            self.refuse(values_span, format!("sweep '{name}' has no values"));
            return None;
        }
        self.check_labels(&choices);
        if let Some(x) = x {
            self.place_on_axis(&mut choices, x);
        }
        Some(Sweep { name, choices })
    }

    fn text(
        &mut self,
        table: &mut DeTable<'l>,
        field: &str,
        span: &Range<usize>,
    ) -> Option<String> {
        let node = table.remove(field);
        match node.as_ref().map(Spanned::get_ref) {
            Some(DeValue::String(text)) if !text.is_empty() => Some(text.to_string()),
            _ => {
                let span = node.map_or_else(|| span.clone(), |node| node.span());
                self.refuse(span, format!("expected `{field}`, a text"));
                None
            }
        }
    }

    fn parameters(&mut self, node: Node<'l>) -> Option<Vec<tree::Key<'l>>> {
        let span = node.span();
        let items = match node.into_inner() {
            DeValue::Array(items) => items.into_iter().collect(),
            other => vec![Spanned::new(span.clone(), other)],
        };
        let mut paths = Vec::new();
        for item in items {
            let place = item.span();
            let DeValue::String(path) = item.into_inner() else {
                self.refuse(
                    span,
                    "expected a path such as \"topology.delay\", or a list of them",
                );
                return None;
            };
            paths.push(Spanned::new(place, path));
        }
        Some(paths)
    }

    fn labelled(&mut self, table: DeTable<'l>) -> Vec<Choice<'l>> {
        let mut choices = Vec::new();
        for (label, value) in table {
            let span = label.span();
            let label: DeString<'l> = label.into_inner();
            let what = format!("values of '{label}'");
            if let Some(changes) = self.table(value, &what) {
                choices.push(Choice {
                    x: leading_number(&label),
                    label: label.into_owned(),
                    overrides: overrides(changes),
                    span,
                });
            }
        }
        // Points are in the order of the file, which a map does not keep.
        choices.sort_by_key(|choice| choice.span.start);
        choices
    }

    /// `"3 ms"` as label and value.
    fn short(&mut self, paths: &[tree::Key<'l>], value: Node<'l>) -> Option<Choice<'l>> {
        let span = value.span();
        let label = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(value) => value.to_string(),
            other => {
                let kind = other.type_str();
                self.refuse(
                    span,
                    format!("a {kind} has no label: write a table 'values'"),
                );
                return None;
            }
        };
        let overrides = paths.iter().map(|path| Override {
            // An error is about the value, not about the parameter that others take too.
            path: Spanned::new(span.clone(), path.get_ref().clone()),
            value: value.clone(),
        });
        Some(Choice {
            x: leading_number(&label),
            label,
            overrides: overrides.collect(),
            span,
        })
    }

    fn check_labels(&mut self, choices: &[Choice<'l>]) {
        for (index, choice) in choices.iter().enumerate() {
            let label = &choice.label;
            let forbidden = label.is_empty()
                || label.trim() != label
                || label.contains(" - ")
                || label.contains(['/', '*'])
                || label.contains(char::is_control);
            if forbidden {
                let message = format!(
                    "label '{}': expected a text without '/', '*', ' - ', line breaks, and spaces at its ends",
                    label.escape_debug()
                );
                self.refuse(choice.span.clone(), message);
            }
            if choices[..index].iter().any(|other| other.label == *label) {
                self.refuse(
                    choice.span.clone(),
                    format!("a second '{label}': labels differ"),
                );
            }
        }
    }

    fn place_on_axis(&mut self, choices: &mut [Choice<'l>], x: Node<'l>) {
        let span = x.span();
        let numbers: Option<Vec<f64>> = x.get_ref().as_array().and_then(|items| {
            let items = items.iter().map(|item| number(item.get_ref()));
            items.collect()
        });
        match numbers {
            Some(numbers) if numbers.len() == choices.len() => {
                for (choice, x) in choices.iter_mut().zip(numbers) {
                    choice.x = Some(x);
                }
            }
            _ => {
                let count = choices.len();
                self.refuse(
                    span,
                    format!("expected one number for each of the {count} values"),
                );
            }
        }
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    let text = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => return None,
    };
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The number that `3.5 ms` begins with.
fn leading_number(label: &str) -> Option<f64> {
    let end = label
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(label.len());
    label[..end]
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}
