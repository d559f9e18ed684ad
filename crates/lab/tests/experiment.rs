//! Experiments from files to figures, with a laboratory whose numbers can be worked out by hand.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

#[path = "experiment/compare.rs"]
mod compare;
#[path = "experiment/mistakes.rs"]
mod mistakes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use namecast_lab::experiment::{
    Experiment, Laboratory, Library, Listed, Outcome, Problems, Progress, Refusal, RunConfig,
    RunError, Series, StoreLimits, Summary, report, run, run_seed,
};
use namecast_units::Random;
use serde::Deserialize;
use tempfile::TempDir;

/// `rate` times ten, with noise of up to half a unit to both sides; a curve of a thousand points.
#[derive(Debug, Default)]
struct Arithmetic {
    runs: AtomicUsize,
    /// Sets its flag after this many runs.
    stop_after: Option<(usize, AtomicBool)>,
}

/// Told apart by a field, as those of the simulator are.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Scenario {
    Noise(Noise),
    Failure {},
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Noise {
    flows: Vec<Flow>,
    #[serde(default = "one")]
    duration: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Flow {
    rate: f64,
    controller: String,
}

fn one() -> f64 {
    1.0
}

impl Laboratory for Arithmetic {
    type Scenario = Scenario;

    fn validate(&self, scenario: &Scenario, _: &Path) -> Result<(), Refusal> {
        let Scenario::Noise(scenario) = scenario else {
            return Ok(());
        };
        for (index, flow) in scenario.flows.iter().enumerate() {
            if flow.rate < 0.0 {
                return Err(Refusal {
                    field: Some(format!("flows.{index}.rate")),
                    message: "expected a rate of 0 or more".to_owned(),
                });
            }
        }
        if scenario.duration > 100.0 {
            return Err("too long: expected at most 100".to_owned().into());
        }
        Ok(())
    }

    fn run(&self, scenario: &Scenario, _: &Path, seed: u64) -> Result<Outcome, Refusal> {
        let done = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some((after, flag)) = &self.stop_after {
            flag.store(done >= *after, Ordering::SeqCst);
        }
        let Scenario::Noise(scenario) = scenario else {
            panic!("on purpose");
        };
        let mut random = Random::from_seed(seed);
        let flow = &scenario.flows[0];
        let mut noise = || random.unit() - 0.5;
        let late = if flow.controller == "slow" && seed == run_seed(1, 0) {
            f64::INFINITY
        } else {
            2.0
        };
        let metrics = [
            ("utilisation", flow.rate * 10.0 + noise()),
            ("convergence", late),
            ("duration", scenario.duration),
        ];
        let points = (0..1_000)
            .map(|i| (f64::from(i) / 10.0, flow.rate + noise()))
            .collect();
        Ok(Outcome {
            metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
            series: vec![Series {
                name: "estimate".to_owned(),
                unit: "Mbit/s".to_owned(),
                points,
            }],
        })
    }
}

const FILE: &str = r#"title = "Noise over <rate>"
item = "Fig. 5"
paper = "ARC"
about = """What is *shown*.

Nothing & more."""
seeds = 4
[scenario]
kind = "noise"
flows = [{ rate = 1.0, controller = "quick" }]
[quick]
duration = 0.5
[[sweep]]
name = "controller"
[sweep.values]
"slow" = { "flows.0.controller" = "slow" }
"quick" = { "flows.0.controller" = "quick" }
[[sweep]]
name = "rate"
parameter = "flows.*.rate"
values = [1, 2, 5]
[[figure]]
kind = "lines"
title = "Lines & <marks>"
x = "rate"
y = "utilisation"
group = "controller"
[[figure]]
kind = "bars"
x = "controller"
y = "utilisation"
pick = { rate = "2" }
[[figure]]
kind = "series"
series = "estim*"
group = "controller"
pick = { rate = "5" }
[[figure]]
kind = "histogram"
y = "utilisation"
group = "controller"
pick = { rate = "1" }
bins = 5
[[figure]]
kind = "table"
y = ["utilisation", "convergence"]
[[reference]]
metric = "utilisation/*/2"
paper = 19.0
ideal = 20.5
[[check]]
metric = "utilisation/*/*"
min = 9.5
max = 50.5
of = "worst"
why = "rate · 10 ∓ ½"
[[check]]
metric = "utilisation/quick/* - utilisation/slow/*"
min = 0.0
max = 0.0
why = "both have the same seeds"
"#;

struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (id, text) in files {
            let path = folder.path().join("experiments").join(format!("{id}.toml"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn library(&self) -> Library {
        Library::open(&self.0.path().join("experiments")).unwrap()
    }

    fn config(&self, out: &str) -> RunConfig {
        RunConfig {
            out: self.0.path().join(out),
            seed: 1,
            runs: None,
            threads: Some(2),
            quick: false,
            fresh: false,
            program: "program".to_owned(),
            limits: StoreLimits::default(),
        }
    }

    /// Runs everything there is.
    fn run(&self, laboratory: &Arithmetic, config: &RunConfig) -> Result<Vec<Summary>, String> {
        let library = self.library();
        let read = |id| Experiment::read(&library, id);
        let experiments: Result<Vec<_>, Problems> = library.ids().map(read).collect();
        let experiments = experiments.map_err(|problems| problems.to_string())?;
        let stop = AtomicBool::new(false);
        let stop = laboratory
            .stop_after
            .as_ref()
            .map_or(&stop, |(_, flag)| flag);
        let finished = run(laboratory, &experiments, config, stop, &Progress::new(true));
        let finished = finished.map_err(|error| error.to_string())?;
        finished.into_iter().map(|one| one.result).collect()
    }

    fn problems(&self) -> String {
        let root = self.0.path().join("experiments").display().to_string() + "/";
        let result = self.run(&Arithmetic::default(), &self.config("out"));
        let problems = result.map_or_else(|problems| problems, |_| "accepted".to_owned());
        problems.replace(&root, "")
    }
}

/// All files below `folder` but those that say how long things took.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != ".runs" {
            found.extend(contents(&path));
        } else if path.is_file() && !["timing.json", "replay.json"].contains(&&*name) {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

fn outputs(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let found = contents(folder).into_iter();
    found
        .map(|(path, text)| (path.strip_prefix(folder).unwrap().to_owned(), text))
        .collect()
}

#[test]
fn a_summary_says_what_was_found() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    let laboratory = Arithmetic::default();
    let summaries = folder.run(&laboratory, &folder.config("out")).unwrap();
    assert_eq!(
        laboratory.runs.load(Ordering::SeqCst),
        24,
        "2 · 3 points, 4 seeds"
    );
    let summary = &summaries[0];
    assert_eq!(
        (summary.id.as_str(), summary.seed, summary.runs),
        ("arc/noise", 1, 4)
    );
    assert_eq!(summary.paper["utilisation/slow/2"], Some(19.0));
    assert_eq!(summary.ideal["utilisation/quick/2"], Some(20.5));
    assert_eq!(summary.paper["utilisation/slow/1"], None);
    assert!(
        summary.metrics.keys().eq(summary.paper.keys())
            && summary.metrics.keys().eq(summary.ideal.keys())
    );
    // One of four runs of the slow one never converges.
    let slow = &summary.confidence["convergence/slow/1"];
    assert_eq!((slow.runs, slow.missing), (3, 1));
    assert_eq!(summary.checks.len(), 6 + 3);
    assert!(
        summary.checks.iter().all(|check| check.ok),
        "{:?}",
        summary.checks
    );
    assert_eq!(
        summary.checks[6].name,
        "utilisation/quick/1 - utilisation/slow/1"
    );
    assert_eq!(summary.checks[6].value, Some(0.0));
    // By hand: the first number of each of the four seeds.
    let first = |index| Random::from_seed(run_seed(1, index)).unit() - 0.5;
    let mean = 50.0 + (first(0) + first(1) + first(2) + first(3)) / 4.0;
    let found = summary.metrics["utilisation/slow/5"].unwrap();
    assert!((found - mean).abs() < 1e-12, "{found} {mean}");
    let table = &summary.figures[4].table;
    assert_eq!(table[0][..2], ["controller", "rate"]);
    assert_eq!(table.len(), 1 + 6);
    let text = fs::read_to_string(folder.0.path().join("out/arc/noise/summary.json")).unwrap();
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), *summary);
}

#[test]
fn the_contracts_keys_are_there() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    folder
        .run(&Arithmetic::default(), &folder.config("out"))
        .unwrap();
    let text = fs::read_to_string(folder.0.path().join("out/arc/noise/summary.json")).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in ["id", "seed", "runs", "metrics", "paper", "ideal", "checks"] {
        assert!(value.get(key).is_some(), "{key}");
    }
    let check = value["checks"][0].as_object().unwrap();
    let keys: Vec<&str> = check.keys().map(String::as_str).collect();
    assert_eq!(keys, ["max", "min", "name", "ok", "value"]);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    for threads in [1, 2, 7] {
        let config = RunConfig {
            threads: Some(threads),
            ..folder.config(&threads.to_string())
        };
        folder.run(&Arithmetic::default(), &config).unwrap();
    }
    let of = |threads: &str| outputs(&folder.0.path().join(threads));
    // Summary, metrics, two tables of runs, four pictures, one table of series.
    assert_eq!(of("1").len(), 9, "{:?}", of("1").keys());
    assert_eq!(of("1"), of("2"));
    assert_eq!(of("1"), of("7"));
}

#[test]
fn what_was_finished_is_not_run_again_and_gives_the_same_bytes() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    let (config, out) = (folder.config("out"), folder.0.path().join("out"));
    let count = |config: &RunConfig| {
        let laboratory = Arithmetic::default();
        folder.run(&laboratory, config).unwrap();
        laboratory.runs.load(Ordering::SeqCst)
    };
    assert_eq!(count(&config), 24);
    let before = outputs(&out);
    assert_eq!(count(&config), 0);
    assert_eq!(outputs(&out), before);

    let mut kept: Vec<_> = fs::read_dir(out.join(".runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    kept.sort();
    assert_eq!(kept.len(), 24);
    kept[..12]
        .iter()
        .for_each(|path| fs::remove_file(path).unwrap());
    // A damaged result is no result.
    fs::write(&kept[12], "{").unwrap();
    fs::copy(&kept[14], &kept[13]).unwrap();
    assert_eq!(count(&config), 14);
    assert_eq!(outputs(&out), before);

    assert_eq!(
        count(&RunConfig {
            fresh: true,
            ..config.clone()
        }),
        24
    );
    assert_eq!(
        count(&RunConfig {
            program: "rebuilt".to_owned(),
            ..config.clone()
        }),
        24
    );
    assert_eq!(
        count(&RunConfig {
            seed: 2,
            ..config.clone()
        }),
        24
    );
    assert_eq!(
        count(&RunConfig {
            runs: Some(6),
            ..config
        }),
        12,
        "two more seeds of six points"
    );
}

#[test]
fn an_interrupted_run_loses_nothing_that_was_finished() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    let config = RunConfig {
        threads: Some(1),
        ..folder.config("out")
    };
    let first = Arithmetic {
        stop_after: Some((10, AtomicBool::new(false))),
        ..Arithmetic::default()
    };
    let error = folder.run(&first, &config).unwrap_err();
    assert_eq!(
        error,
        RunError::Interrupted { kept: 10, all: 24 }.to_string()
    );
    assert!(!folder.0.path().join("out/arc").exists());
    let second = Arithmetic::default();
    folder.run(&second, &config).unwrap();
    assert_eq!(second.runs.load(Ordering::SeqCst), 14);
}

const CHILD: &str = r#"title = "The same, seen otherwise"
item = "Fig. 6"
paper = "ARC"
extends = "noise"
[[figure]]
kind = "bars"
x = "rate"
y = "convergence"
group = "controller"
"#;

#[test]
fn experiments_with_the_same_points_share_their_runs() {
    let folder = Folder::new(&[("arc/noise", FILE), ("arc/other", CHILD)]);
    let laboratory = Arithmetic::default();
    let summaries = folder.run(&laboratory, &folder.config("out")).unwrap();
    assert_eq!(laboratory.runs.load(Ordering::SeqCst), 24);
    assert_eq!(summaries[1].id, "arc/other");
    assert_eq!(summaries[0].metrics, summaries[1].metrics);
}

#[test]
fn what_a_file_says_goes_before_what_it_extends() {
    let child = CHILD.replace(
        "[[figure]]",
        "seeds = 3\n[scenario]\nduration = 7.0\n[[figure]]",
    );
    let child = child.replace(
        "[scenario]",
        "[scenario]\nflows = [{ rate = 3.0, controller = \"quick\" }]",
    );
    let folder = Folder::new(&[
        ("arc/noise", FILE),
        ("zoo/other", &child.replace("\"noise\"", "\"arc/noise\"")),
    ]);
    let summaries = folder
        .run(&Arithmetic::default(), &folder.config("out"))
        .unwrap();
    assert_eq!((summaries[0].runs, summaries[1].runs), (4, 3));
    assert_eq!(summaries[1].metrics["duration/slow/5"], Some(7.0));
    let utilisation = summaries[1].metrics["utilisation/slow/5"].unwrap();
    assert!(
        (49.5..=50.5).contains(&utilisation),
        "the sweep is that of the other file: {utilisation}"
    );
}

#[test]
fn a_quick_run_is_short_and_claims_nothing() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    let laboratory = Arithmetic::default();
    let config = RunConfig {
        quick: true,
        ..folder.config("out")
    };
    let summaries = folder.run(&laboratory, &config).unwrap();
    assert_eq!(laboratory.runs.load(Ordering::SeqCst), 12);
    assert!(summaries[0].quick && summaries[0].checks.is_empty());
    assert_eq!(summaries[0].metrics["duration/slow/1"], Some(0.5));
    assert!(
        summaries[0].command.ends_with("--seed 1 --quick"),
        "{}",
        summaries[0].command
    );
}

#[test]
fn checks_that_do_not_hold_are_told() {
    let file = FILE.replace("min = 0.0\nmax = 0.0", "min = 0.25");
    let folder = Folder::new(&[("arc/noise", &file)]);
    let summaries = folder
        .run(&Arithmetic::default(), &folder.config("out"))
        .unwrap();
    let failed: Vec<_> = summaries[0]
        .failed()
        .map(|check| check.name.clone())
        .collect();
    assert_eq!(failed.len(), 3);
    let table = namecast_lab::experiment::failures(&[&summaries[0]]);
    assert!(
        table.contains("utilisation/quick/5 - utilisation/slow/5  0      0.25 … –"),
        "{table}"
    );
}

#[test]
fn a_run_that_fails_takes_only_its_experiment_along() {
    let broken = FILE.replace(
        "kind = \"noise\"\nflows = [{ rate = 1.0, controller = \"quick\" }]",
        "kind = \"failure\"\nflows = [{}]",
    );
    let folder = Folder::new(&[("arc/broken", &broken), ("arc/noise", FILE)]);
    let library = folder.library();
    let experiments: Vec<_> = library
        .ids()
        .map(|id| Experiment::read(&library, id).unwrap())
        .collect();
    let stop = AtomicBool::new(false);
    let config = folder.config("out");
    let finished = run(
        &Arithmetic::default(),
        &experiments,
        &config,
        &stop,
        &Progress::new(true),
    )
    .unwrap();
    let why = finished[0].result.as_ref().unwrap_err();
    assert!(why.starts_with("arc/broken: point slow, 1, seed "), "{why}");
    assert!(why.ends_with("the program failed: on purpose"), "{why}");
    assert!(finished[1].result.is_ok());
}

#[test]
fn pictures_are_well_formed_and_say_what_they_show() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    folder
        .run(&Arithmetic::default(), &folder.config("out"))
        .unwrap();
    for number in 1..=4 {
        let path = folder
            .0
            .path()
            .join(format!("out/arc/noise/figure-{number}.svg"));
        let text = fs::read_to_string(path).unwrap();
        let picture = roxmltree::Document::parse(&text).unwrap();
        let texts: Vec<&str> = picture
            .descendants()
            .filter_map(|node| node.text())
            .map(str::trim)
            .collect();
        let has =
            |wanted: &str| assert!(texts.contains(&wanted), "{wanted} in {number}: {texts:?}");
        if number != 2 {
            has("slow");
            has("quick");
        }
        if number == 1 {
            has("Lines & <marks>");
            has("utilisation");
            has("reported in the paper");
            has("ideal");
        }
        if number == 3 {
            has("estim* (Mbit/s)");
        }
    }
}

#[test]
fn tables_hold_all_points() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    folder
        .run(&Arithmetic::default(), &folder.config("out"))
        .unwrap();
    let read = |name: &str| {
        let mut table =
            csv::Reader::from_path(folder.0.path().join("out/arc/noise").join(name)).unwrap();
        let head: Vec<String> = table.headers().unwrap().iter().map(str::to_owned).collect();
        let rows: Vec<csv::StringRecord> = table.records().map(Result::unwrap).collect();
        (head, rows)
    };
    let (head, rows) = read("metrics.csv");
    let expected = [
        "metric",
        "controller",
        "rate",
        "mean",
        "low",
        "high",
        "min",
        "max",
        "runs",
        "missing",
    ];
    assert_eq!(head, expected);
    assert_eq!(rows.len(), 3 * 6);
    assert_eq!(
        rows[0].iter().collect::<Vec<_>>(),
        [
            "convergence",
            "slow",
            "1",
            "2",
            "2",
            "2",
            "2",
            "2",
            "3",
            "1"
        ]
    );
    let (head, rows) = read("series-3.csv");
    assert_eq!(
        head,
        ["series", "unit", "controller", "rate", "run", "x", "y"]
    );
    assert_eq!(rows.len(), 2 * 1_000);
    assert_eq!(
        rows[1].iter().take(6).collect::<Vec<_>>(),
        ["estimate", "Mbit/s", "slow", "5", "1", "0.1"]
    );
}

#[test]
fn the_report_holds_everything_and_nothing_from_elsewhere() {
    let folder = Folder::new(&[("arc/noise", FILE), ("arc/other", CHILD)]);
    folder
        .run(&Arithmetic::default(), &folder.config("out"))
        .unwrap();
    let out = folder.0.path().join("out");
    // Results of other programs have the contract's keys only.
    let foreign = r#"{"id":"arc/real","seed":1,"runs":1,"metrics":{"u":1.5},"paper":{"u":null},"ideal":{"u":2},
        "checks":[{"name":"u","value":1.5,"min":2,"max":null,"ok":false}]}"#;
    fs::create_dir_all(out.join("arc/real")).unwrap();
    fs::write(out.join("arc/real/summary.json"), foreign).unwrap();
    fs::create_dir_all(out.join("arc/torn")).unwrap();
    fs::write(out.join("arc/torn/summary.json"), &foreign[..40]).unwrap();

    let made = report::write(&out, &[], None).unwrap();
    assert_eq!(made.ids, ["arc/noise", "arc/other", "arc/real"]);
    assert_eq!(made.skipped.len(), 1);
    let page = fs::read_to_string(made.path).unwrap();
    for expected in [
        "id=\"arc-noise\"",
        "id=\"arc-other\"",
        "id=\"arc-real\"",
        "Noise over &lt;rate&gt;",
        "<em>shown</em>",
        "Nothing &amp; more",
        "namecast experiment run arc/noise --seed 1",
        "✗ 1 of 10 checks do not hold",
        "rate · 10 ∓ ½",
        "arc/torn",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert_eq!(page.matches("<figure>").count(), 5);
    for elsewhere in ["src=", "@import", "url(", "<script", "<link"] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    let addresses =
        page.matches("http").count() - page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(addresses, 0);
    let some = report::write(&out, &["arc/*e*".to_owned()], None).unwrap();
    assert_eq!(some.ids, ["arc/noise", "arc/other", "arc/real"]);
    assert_eq!(
        report::write(&out, &["*/real".to_owned()], None)
            .unwrap()
            .ids,
        ["arc/real"]
    );
}

#[test]
fn the_list_knows_how_long_a_run_takes_once_there_was_one() {
    let folder = Folder::new(&[("arc/noise", FILE)]);
    let (library, out) = (folder.library(), folder.0.path().join("out"));
    let listed = Listed::read(&library, "arc/noise", &out).unwrap();
    assert_eq!(
        (listed.points, listed.seeds, listed.cpu_seconds),
        (6, 4, None)
    );
    folder
        .run(&Arithmetic::default(), &folder.config("out"))
        .unwrap();
    let seconds = Listed::read(&library, "arc/noise", &out)
        .unwrap()
        .cpu_seconds
        .unwrap();
    assert!((0.0..60.0).contains(&seconds), "{seconds}");
}
