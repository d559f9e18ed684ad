//! An experiment, read whole: its points, and what is drawn and checked.

use core::ops::Range;
use std::collections::BTreeMap;
use std::path::PathBuf;

use namecast_command::source::{Problem, Problems, Sources};
use serde_json::Value;
use toml::Spanned;

use super::figure;
use super::file::{
    self, Check, Claim, DEFAULT_SEEDS, Figure, Header, Parsed, Placed, Reference, Sweep,
};
use super::key::Expression;
use super::laboratory::Laboratory;
use super::library::Library;
use super::tree::{self, Override, Scale, Table};

/// An experiment as its file, and those it extends, describe it.
#[derive(Debug)]
pub struct Experiment<'l> {
    pub(super) id: String,
    pub(super) header: Header,
    pub(super) seeds: u32,
    pub(super) base: PathBuf,
    pub(super) sweeps: Vec<Sweep<'l>>,
    pub(super) figures: Vec<Placed<Figure>>,
    pub(super) references: Vec<(Placed<Reference>, Expression)>,
    pub(super) checks: Vec<(Placed<Check>, Expression)>,
    pub(super) claims: Vec<(Placed<Claim>, Expression)>,
    pub(super) sources: Sources<'l>,
    scenario: Table<'l>,
    quick: Vec<Override<'l>>,
    pub(super) scales: Vec<Scale>,
}

/// One combination of the sweeps' values.
#[derive(Debug)]
pub(super) struct Point<S> {
    /// One label a sweep.
    pub(super) labels: Vec<String>,
    /// What is run.
    pub(super) scenario: S,
    /// The same as canonical JSON.
    pub(super) canonical: Value,
    /// Whether it takes real time.
    pub(super) takes_real_time: bool,
    /// Warnings about parts of its files that are ignored.
    pub(super) remarks: Vec<String>,
}

impl<'l> Experiment<'l> {
    /// Reads `id` from `library`.
    ///
    /// # Errors
    /// All that is wrong with the file or one that it extends.
    pub fn read(library: &'l Library, id: &str) -> Result<Self, Problems> {
        let mut sources = Sources::default();
        let mut chain = read_chain(library, id, &mut sources)?;
        let first = chain.remove(0);
        let mut scenario = first.scenario;
        let (mut quick, mut sweeps) = (first.quick, first.sweeps);
        let mut seeds = first.header.seeds.clone();
        for parent in chain {
            scenario = match (parent.scenario, scenario) {
                (Some(mut under), Some(over)) => {
                    tree::merge(under.get_mut(), over.into_inner());
                    Some(under)
                }
                (under, over) => over.or(under),
            };
            quick = quick.or(parent.quick);
            sweeps = sweeps.or(parent.sweeps);
            seeds = seeds.or(parent.header.seeds);
        }
        let Some(scenario) = scenario else {
            let message = "no [scenario], neither here nor in a file that this extends";
            return Err(Problems(vec![sources.problem(0..0, message)]));
        };
        let experiment = Experiment {
            id: id.to_owned(),
            header: first.header,
            seeds: seeds
                .as_ref()
                .map_or(DEFAULT_SEEDS, |seeds| *seeds.get_ref()),
            base: library.base(id),
            sweeps: sweeps.unwrap_or_default(),
            figures: first.figures,
            references: Vec::new(),
            checks: Vec::new(),
            claims: Vec::new(),
            sources,
            scenario,
            quick: quick.unwrap_or_default(),
            scales: Vec::new(),
        };
        let seeds_span = seeds.map_or(0..0, |seeds| seeds.span());
        let judged = Judged {
            references: first.references,
            checks: first.checks,
            claims: first.claims,
        };
        experiment.complete(library, seeds_span, judged)
    }

    /// Reads what depends on the sweeps.
    fn complete(
        mut self,
        library: &Library,
        seeds: Range<usize>,
        judged: Judged,
    ) -> Result<Self, Problems> {
        let mut problems = Vec::new();
        let most = library.limits().seeds;
        if !(1..=most).contains(&self.seeds) {
            let message = format!("{} seeds: expected 1 to {most}", self.seeds);
            problems.push(self.sources.problem(seeds, message));
        }
        for (field, text) in [("title", &self.header.title), ("item", &self.header.item)] {
            let is_missing = text.is_empty() && field == "title";
            if is_missing || text.contains(char::is_control) {
                let message = format!("`{field}`: expected one line of text");
                problems.push(self.sources.problem(0..0, message));
            }
        }
        for figure in &self.figures {
            problems.extend(figure::problems(&self, figure));
        }
        for reference in judged.references {
            match self.expression(&reference.value.metric) {
                Ok(expression) => self.references.push((reference, expression)),
                Err(problem) => problems.push(problem),
            }
        }
        for check in judged.checks {
            if !is_range(check.value.min, check.value.max) {
                problems.push(self.sources.problem(check.span.clone(), NO_RANGE));
            }
            match self.expression(&check.value.metric) {
                Ok(expression) => self.checks.push((check, expression)),
                Err(problem) => problems.push(problem),
            }
        }
        for claim in judged.claims {
            if !is_range(claim.value.min, claim.value.max) {
                problems.push(self.sources.problem(claim.span.clone(), NO_RANGE));
            }
            match self.expression(&claim.value.metric) {
                Ok(expression) => self.claims.push((claim, expression)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(self)
        } else {
            Err(Problems(problems))
        }
    }

    fn expression(&self, text: &Spanned<String>) -> Result<Expression, Problem> {
        let sweeps: Vec<(&str, Vec<&str>)> = self
            .sweeps
            .iter()
            .map(|sweep| {
                let labels = sweep.choices.iter().map(|choice| choice.label.as_str());
                (sweep.name.as_str(), labels.collect())
            })
            .collect();
        Expression::parse(text.get_ref(), &sweeps)
            .map_err(|message| self.sources.problem(text.span(), message))
    }

    /// Has quantities of each point multiplied.
    #[must_use]
    pub fn scaled(mut self, scales: &[Scale]) -> Self {
        self.scales = scales.to_vec();
        self
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How many points its sweeps make.
    pub fn point_count(&self) -> usize {
        self.sweeps
            .iter()
            .map(|sweep| sweep.choices.len())
            .product()
    }

    /// Makes all points, of the shorter form if `quick`, and has `laboratory` look at them.
    ///
    /// # Errors
    /// What is wrong with overrides and scenarios; the same problem of many points is told once.
    pub(super) fn points<L: Laboratory>(
        &self,
        laboratory: &L,
        quick: bool,
    ) -> Result<Vec<Point<L::Scenario>>, Problems> {
        let mut points = Vec::with_capacity(self.point_count());
        let mut problems: BTreeMap<Problem, (String, usize)> = BTreeMap::new();
        for index in 0..self.point_count() {
            let (labels, changes) = self.changes(index, quick);
            match self.point(laboratory, &changes) {
                Ok((scenario, canonical)) => points.push(Point {
                    labels,
                    takes_real_time: laboratory.takes_real_time(&scenario),
                    remarks: laboratory.remarks(&scenario, &self.base),
                    scenario,
                    canonical,
                }),
                Err(problem) => {
                    let known = problems.entry(problem).or_insert((labels.join(", "), 0));
                    known.1 += 1;
                }
            }
        }
        if problems.is_empty() {
            return Ok(points);
        }
        let problems = problems.into_iter().map(|(mut problem, (labels, count))| {
            problem.message.push_str(&match (labels.is_empty(), count) {
                (true, _) => String::new(),
                (false, 1) => format!(" (point {labels})"),
                (false, count) => format!(" (point {labels}, and {} more)", count - 1),
            });
            problem
        });
        Err(Problems(problems.collect()))
    }

    /// Labels and overrides of the point with this index; the last sweep changes fastest.
    fn changes(&self, index: usize, quick: bool) -> (Vec<String>, Vec<&Override<'l>>) {
        let mut chosen = Vec::with_capacity(self.sweeps.len());
        let mut rest = index;
        for sweep in self.sweeps.iter().rev() {
            chosen.push(&sweep.choices[rest % sweep.choices.len()]);
            rest /= sweep.choices.len();
        }
        chosen.reverse();
        let labels = chosen.iter().map(|choice| choice.label.clone()).collect();
        let quick = self.quick.iter().filter(|_| quick);
        let changes = chosen.iter().flat_map(|choice| &choice.overrides);
        (labels, changes.chain(quick).collect())
    }

    fn point<L: Laboratory>(
        &self,
        laboratory: &L,
        changes: &[&Override<'l>],
    ) -> Result<(L::Scenario, Value), Problem> {
        let mut tree = self.scenario.clone();
        for change in changes {
            change.apply(&mut tree).map_err(|message| {
                let place = change.path.span();
                self.sources.problem(place, message)
            })?;
        }
        for scale in &self.scales {
            scale
                .apply(&mut tree)
                .map_err(|message| self.sources.problem(self.scenario.span(), message))?;
        }
        match self.accept(laboratory, &tree) {
            Ok(scenario) => Ok((scenario, tree::canonical(tree.get_ref()))),
            Err(objection) => {
                let place = self.blame(laboratory, changes, &tree, &objection);
                Err(self.sources.problem(place, objection.message))
            }
        }
    }

    /// The scenario that `tree` describes, if there is nothing wrong with it.
    fn accept<L: Laboratory>(
        &self,
        laboratory: &L,
        tree: &Table<'l>,
    ) -> Result<L::Scenario, Objection> {
        let scenario: L::Scenario = tree::read(tree.clone()).map_err(|(span, message)| {
            // Enums that are told apart by a field are read twice, which loses the places of what is in them.
            let span = span.filter(|span| *span != tree.span());
            Objection { span, message }
        })?;
        match laboratory.validate(&scenario, &self.base) {
            Ok(()) => Ok(scenario),
            Err(refusal) => {
                let field = refusal.field.as_deref();
                let span = field.and_then(|field| tree::find(tree.get_ref(), field));
                let message = refusal.to_string();
                Err(Objection { span, message })
            }
        }
    }

    /// Where an objection comes from: what it names, else the override from which on it is raised, else `[scenario]`.
    fn blame<L: Laboratory>(
        &self,
        laboratory: &L,
        changes: &[&Override<'l>],
        tree: &Table<'l>,
        objection: &Objection,
    ) -> Range<usize> {
        if let Some(span) = &objection.span {
            return span.clone();
        }
        let objects = |tree: &Table<'l>| {
            let other = self.accept(laboratory, tree).err();
            other.is_some_and(|other| other.message == objection.message)
        };
        let mut partial = self.scenario.clone();
        let mut place = objects(&partial).then(|| self.scenario.span());
        for change in changes {
            if change.apply(&mut partial).is_err() || !objects(&partial) {
                place = None;
            } else if place.is_none() {
                place = Some(change.path.span());
            }
        }
        let place = place.unwrap_or_else(|| self.scenario.span());
        if place == self.scenario.span() {
            tree::culprit(tree, &objects).unwrap_or(place)
        } else {
            place
        }
    }
}

/// What a file says about the metrics, before it is known whether they can be.
struct Judged {
    references: Vec<Placed<Reference>>,
    checks: Vec<Placed<Check>>,
    claims: Vec<Placed<Claim>>,
}

const NO_RANGE: &str = "expected `min`, `max` or both, `min` not above `max`";

/// Whether something lies between these.
fn is_range(min: Option<f64>, max: Option<f64>) -> bool {
    let (least, most) = (
        min.unwrap_or(f64::NEG_INFINITY),
        max.unwrap_or(f64::INFINITY),
    );
    (min.is_some() || max.is_some()) && least <= most
}

/// What someone has against a scenario.
struct Objection {
    /// Where, if that is known.
    span: Option<Range<usize>>,
    message: String,
}

/// The file of `id` and those it extends, nearest first.
fn read_chain<'l>(
    library: &'l Library,
    id: &str,
    sources: &mut Sources<'l>,
) -> Result<Vec<Parsed<'l>>, Problems> {
    let mut chain: Vec<Parsed<'l>> = Vec::new();
    let mut ids = vec![id.to_owned()];
    let mut wanted: Option<Range<usize>> = None;
    loop {
        let id = ids
            .last()
            .expect("one at the start, and one more each turn");
        let Some((path, text)) = library.file(id) else {
            let message = format!("there is no experiment '{id}' to extend");
            return Err(Problems(vec![
                sources.problem(wanted.unwrap_or(0..0), message),
            ]));
        };
        let parsed = file::read(sources, path, text, library.limits()).map_err(Problems)?;
        let extends = parsed.header.extends.clone();
        chain.push(parsed);
        let Some(extends) = extends else {
            return Ok(chain);
        };
        let slug = id.split('/').next().unwrap_or_default();
        let parent = extends.get_ref();
        let parent = if parent.contains('/') {
            parent.clone()
        } else {
            format!("{slug}/{parent}")
        };
        let refusal = if ids.contains(&parent) {
            Some(format!("'{parent}' extends itself"))
        } else if ids.len() >= library.limits().chain {
            Some(format!("more than {} files extend each other", ids.len()))
        } else {
            None
        };
        if let Some(message) = refusal {
            return Err(Problems(vec![sources.problem(extends.span(), message)]));
        }
        wanted = Some(extends.span());
        ids.push(parent);
    }
}
