//! Whether a figure can be drawn, as far as its file tells.

use toml::Spanned;

use super::MAX_BINS;
use crate::experiment::file::{Figure, FigureKind, Names, Placed, Sweep};
use crate::experiment::plan::Experiment;
use crate::experiment::source::Problem;

/// What is wrong with a figure, as far as can be told without a run.
pub(in crate::experiment) fn problems(
    experiment: &Experiment<'_>,
    placed: &Placed<Figure>,
) -> Vec<Problem> {
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
