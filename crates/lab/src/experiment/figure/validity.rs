//! Whether a figure can be drawn, as far as its file tells.

use core::ops::Range;

use toml::Spanned;

use namecast_command::source::Problem;

use super::MAX_BINS;
use crate::experiment::file::{Figure, FigureKind, Names, Placed, Sweep};
use crate::experiment::plan::Experiment;

/// What is wrong with a figure, as far as can be told without a run.
pub(in crate::experiment) fn problems(
    experiment: &Experiment<'_>,
    placed: &Placed<Figure>,
) -> Vec<Problem> {
    let mut reader = Reader {
        experiment,
        figure: &placed.value,
        place: placed.span.clone(),
        problems: Vec::new(),
    };
    reader.names();
    reader.fields();
    reader.sweeps_shown();
    reader.numbers();
    reader.problems
}

struct Reader<'a> {
    experiment: &'a Experiment<'a>,
    figure: &'a Figure,
    place: Range<usize>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    fn refuse(&mut self, span: Range<usize>, message: String) {
        self.problems
            .push(self.experiment.sources.problem(span, message));
    }

    fn sweep(&self, name: &str) -> Option<&'a Sweep<'a>> {
        let mut sweeps = self.experiment.sweeps.iter();
        sweeps.find(|sweep| sweep.name == name)
    }

    /// Sweeps and labels are there.
    fn names(&mut self) {
        let figure = self.figure;
        let axes = figure.x.iter().chain(&figure.group);
        for name in axes.chain(figure.pick.keys()) {
            if self.sweep(name.get_ref()).is_none() {
                let sweeps = self.experiment.sweeps.iter();
                let known: Vec<&str> = sweeps.map(|sweep| sweep.name.as_str()).collect();
                let (name_text, known) = (name.get_ref(), known.join("', '"));
                let message =
                    format!("no sweep is called '{name_text}': expected one of '{known}'");
                self.refuse(name.span(), message);
            }
        }
        for (name, label) in &figure.pick {
            let Some(sweep) = self.sweep(name.get_ref()) else {
                continue;
            };
            let choices = sweep.choices.iter();
            let known: Vec<&str> = choices.map(|choice| choice.label.as_str()).collect();
            if !known.contains(&label.get_ref().as_str()) {
                let (name, text, known) = (&sweep.name, label.get_ref(), known.join("', '"));
                let message = format!("sweep '{name}' has no '{text}': expected one of '{known}'");
                self.refuse(label.span(), message);
            }
        }
    }

    /// There is what the kind of figure needs, and nothing else.
    fn fields(&mut self) {
        for (field, wanted) in wanted_fields(self.figure) {
            let message = match wanted {
                Wanted::Needed => format!("this kind of figure needs `{field}`"),
                Wanted::Useless => format!("this kind of figure has no use for `{field}`"),
            };
            self.refuse(self.place.clone(), message);
        }
    }

    /// No sweep is left of which nobody knows which value the figure shows.
    fn sweeps_shown(&mut self) {
        let figure = self.figure;
        let is = |name: &Option<Spanned<String>>, sweep: &Sweep<'_>| {
            let name = name.as_ref().map(Spanned::get_ref);
            name == Some(&sweep.name)
        };
        for sweep in &self.experiment.sweeps {
            let picked = figure.pick.keys().any(|name| *name.get_ref() == sweep.name);
            let axis = is(&figure.x, sweep) || is(&figure.group, sweep);
            if axis || picked || sweep.choices.len() == 1 || figure.kind == FigureKind::Table {
                continue;
            }
            let name = &sweep.name;
            let message = format!(
                "sweep '{name}' is not shown: make it `x` or `group`, or fix it with `pick = {{ {name} = … }}`"
            );
            self.refuse(self.place.clone(), message);
        }
    }

    fn numbers(&mut self) {
        let figure = self.figure;
        if let (FigureKind::Lines, Some(x)) = (figure.kind, &figure.x) {
            let choices = self.sweep(x.get_ref()).map(|sweep| &sweep.choices);
            let mut choices = choices.into_iter().flatten();
            if let Some(choice) = choices.find(|choice| choice.x.is_none()) {
                let label = &choice.label;
                let message =
                    format!("'{label}' has no place on an axis: give the sweep `x`, or draw bars");
                self.refuse(x.span(), message);
            }
        }
        if let Some(bins) = &figure.bins
            && !(1..=MAX_BINS).contains(bins.get_ref())
        {
            self.refuse(bins.span(), format!("expected 1 to {MAX_BINS} bins"));
        }
        if let Some(seed) = figure.seed.as_ref().filter(|seed| *seed.get_ref() == 0) {
            self.refuse(seed.span(), "runs are counted from 1".to_owned());
        }
        if let (Some(low), Some(high)) = (figure.y_min, figure.y_max)
            && low >= high
        {
            let message = "expected `y-min` below `y-max`".to_owned();
            self.refuse(self.place.clone(), message);
        }
    }
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
        ("runs", figure.runs.is_some(), false, kind == Lines),
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
