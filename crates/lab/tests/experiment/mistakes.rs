//! What is said about files that are wrong.

use std::sync::atomic::AtomicBool;

use namecast_lab::experiment::{Experiment, Progress, run};

use super::{Arithmetic, CHILD, FILE, Folder};

/// What of the file is changed, into what, and what is said about it: the line is that of the change.
const CASES: &[(&str, &str, &str)] = &[
    (
        "seeds = 4",
        "seeds = 0",
        "arc/noise.toml:7:9: 0 seeds: expected 1 to 10000",
    ),
    (
        "seeds = 4",
        "seed = 4",
        "arc/noise.toml:7:1: unknown field `seed`, expected one of",
    ),
    ("seeds = 4", "seeds = ", "arc/noise.toml:7:"),
    (
        "rate = 1.0,",
        "rat = 1.0,",
        "arc/noise.toml:10:12: unknown field `rat`, expected `rate` or `controller`",
    ),
    (
        "kind = \"noise\"",
        "kind = \"noise\"\nduration = 'x'",
        "arc/noise.toml:10:1: invalid type: string \"x\", expected f64",
    ),
    (
        "duration = 0.5",
        "length = 0.5",
        "arc/noise.toml:12:1: unknown field `length`",
    ),
    (
        "duration = 0.5",
        "duration = 500.0",
        "arc/noise.toml:12:1: too long: expected at most 100",
    ),
    (
        "[1, 2, 5]",
        "[1, 2, 5, -7]",
        "arc/noise.toml:21:20: flows.0.rate: expected a rate of 0 or more (point slow, -7, and 1 more)",
    ),
    (
        "[1, 2, 5]",
        "[1, 2, 1]",
        "arc/noise.toml:21:17: a second '1': labels differ",
    ),
    ("[1, 2, 5]", "[]", "sweep 'rate' has no values"),
    (
        "flows.*.rate",
        "flows.1.rate",
        "arc/noise.toml:21:11: path 'flows.1.rate': 'flows' is a list of 1: expected a number below 1",
    ),
    (
        "\"slow\" = { \"flows.0.controller\"",
        "\"slow\" = { \"flows.0.control\"",
        "arc/noise.toml:16:12: unknown field `control`",
    ),
    (
        "\"slow\" =",
        "\"slow/er\" =",
        "arc/noise.toml:16:1: label 'slow/er': expected a text without '/'",
    ),
    (
        "name = \"rate\"",
        "name = \"controller\"",
        "a second sweep named 'controller'",
    ),
    (
        "x = \"rate\"",
        "x = \"rates\"",
        "arc/noise.toml:25:5: no sweep is called 'rates': expected one of 'controller', 'rate'",
    ),
    (
        "x = \"rate\"",
        "x = \"controller\"",
        "'slow' has no place on an axis",
    ),
    (
        "pick = { rate = \"2\" }",
        "pick = { rate = \"3\" }",
        "sweep 'rate' has no '3': expected one of '1', '2', '5'",
    ),
    ("pick = { rate = \"2\" }", "", "sweep 'rate' is not shown"),
    (
        "kind = \"bars\"",
        "kind = \"bar\"",
        "arc/noise.toml:29:8: unknown variant `bar`, expected one of `lines`",
    ),
    (
        "bins = 5",
        "seed = 5",
        "this kind of figure has no use for `seed`",
    ),
    (
        "y = \"utilisation\"\ngroup",
        "y = \"utilization\"\ngroup",
        "arc/noise.toml:26:5: no metric is called 'utilization': expected one of utilisation, convergence, duration",
    ),
    (
        "\"estim*\"",
        "\"window\"",
        "no series is called 'window': expected one of estimate",
    ),
    (
        "\"utilisation/*/2\"",
        "\"utilisation/*/3\"",
        "sweep 'rate' has no '3'",
    ),
    (
        "min = 9.5",
        "min = 99.5",
        "expected `min`, `max` or both, `min` not above `max`",
    ),
    (
        "\"utilisation/*/*\"",
        "\"utilisation/*\"",
        "is not of the form <metric>/<controller>/<rate>",
    ),
    (
        "[scenario]",
        "extends = \"nothing\"\n[scenario]",
        "arc/noise.toml:8:11: there is no experiment 'arc/nothing' to extend",
    ),
    (
        "[scenario]",
        "extends = \"noise\"\n[scenario]",
        "arc/noise.toml:8:11: 'arc/noise' extends itself",
    ),
    ("[scenario]", "[scenarios]", "unknown field `scenarios`"),
];

#[test]
fn mistakes_are_told_with_their_line() {
    let mut wrong = Vec::new();
    for (from, to, expected) in CASES {
        assert!(FILE.contains(from), "{from}");
        let folder = Folder::new(&[("arc/noise", &FILE.replacen(from, to, 1))]);
        let problems = folder.problems();
        if !problems.contains(expected) {
            wrong.push(format!("{to}: expected\n{expected}\nin\n{problems}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn several_mistakes_are_told_at_once() {
    let file = FILE
        .replace("kind = \"bars\"", "kind = \"bar\"")
        .replace("seeds = 4", "seed = 4")
        .replace("values = [1, 2, 5]", "values = 3");
    let problems = Folder::new(&[("arc/noise", &file)]).problems();
    assert_eq!(problems.lines().count(), 3, "{problems}");
}

#[test]
fn mistakes_in_a_file_that_is_extended_are_told_with_its_name() {
    let parent = FILE.replace("rate = 1.0,", "rat = 1.0,");
    let folder = Folder::new(&[
        ("arc/noise", &parent),
        ("zoo/other", &CHILD.replace("\"noise\"", "\"arc/noise\"")),
    ]);
    let library = folder.library();
    let experiments = [Experiment::read(&library, "zoo/other").unwrap()];
    let stop = AtomicBool::new(false);
    let config = folder.config("out");
    let error = run(
        &Arithmetic::default(),
        &experiments,
        &config,
        &stop,
        &Progress::new(true),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("arc/noise.toml:10:12: unknown field `rat`"),
        "{error}"
    );
}
