//! One experiment file, as it is written.

mod sweep;

use core::ops::Range;
use std::collections::BTreeMap;

use namecast_command::source::{Problem, Sources};
use serde::Deserialize;
use smart_default::SmartDefault;
use toml::Spanned;
use toml::de::DeValue;

use super::tree::{self, Node, Override, Table};

/// What the runner knows by default, and the most that one file may ask for.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct FileLimits {
    /// Octets of one file.
    #[default(1 << 20)]
    pub octets: usize,
    /// Files in a chain of `extends`.
    #[default(8)]
    pub chain: usize,
    /// Points of all sweeps together.
    #[default(10_000)]
    pub points: usize,
    /// Seeds per point.
    #[default(10_000)]
    pub seeds: u32,
    /// Figures, references, checks and claims, each.
    #[default(1_000)]
    pub entries: usize,
}

/// Seeds per point where a file does not say: the fewest that a fair comparison needs.
pub(super) const DEFAULT_SEEDS: u32 = 10;

/// What a file says about itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Header {
    /// What is shown, in a few words.
    pub(super) title: String,
    /// Figure or table of the paper, such as `Fig. 5`; empty if it is of none.
    #[serde(default)]
    pub(super) item: String,
    /// Key in `docs/papers.md`; empty if it is of none.
    #[serde(default)]
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
    /// Whether each run is a dot beside the mean.
    pub(super) runs: Option<bool>,
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

/// What a paper says, and what must be measured for it to hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Claim {
    /// What the paper says, in our words.
    pub(super) says: String,
    /// Where in the paper.
    pub(super) place: String,
    pub(super) metric: Spanned<String>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    /// Whether it holds in runs in which what is measured never happened.
    #[serde(default)]
    pub(super) never: bool,
    /// Why it came out as it did; needed where it did not hold.
    #[serde(default)]
    pub(super) because: String,
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
    pub(super) claims: Vec<Placed<Claim>>,
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
    let claims = reader.entries(table.remove("claim"), "[[claim]]");
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
            claims,
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
}
