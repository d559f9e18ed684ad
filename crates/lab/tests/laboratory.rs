//! The experiments that are part of the program.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use namecast_lab::experiment::{
    Experiment, Library, Progress, RunConfig, Simulator, StoreLimits, TracedRun, run,
};

const fn traced(point: &str, quick: bool) -> TracedRun<'_> {
    TracedRun {
        point: Some(point),
        quick,
        seed: 1,
    }
}

/// Asking for a point that there is not has all points made and looked at, of the whole experiment and of its short form.
#[test]
fn every_point_of_every_experiment_is_valid() {
    let (simulator, library) = (Simulator::default(), Library::embedded().unwrap());
    let ids = library.select(&[]).unwrap();
    assert!(ids.len() >= 25, "{ids:?}");
    for id in ids {
        let experiment = Experiment::read(&library, id).unwrap();
        for quick in [false, true] {
            let nowhere = Path::new("never written");
            let error = experiment
                .trace(&simulator, traced("no such point", quick), nowhere)
                .unwrap_err();
            let error = error.to_string();
            assert!(error.contains("choose one of its points"), "{id}: {error}");
        }
    }
}

/// Tables and closed forms take no time; what they check is checked in every test run.
#[test]
fn tables_and_closed_forms_hold() {
    let library = Library::embedded().unwrap();
    let ids = [
        "arc/figure02a",
        "arc/figure02b",
        "arc/figure02c",
        "arc/table1",
        "arc/table2",
        "arc/table3",
    ];
    let experiments: Vec<_> = ids
        .iter()
        .map(|id| Experiment::read(&library, id).unwrap())
        .collect();
    let out = tempfile::tempdir().unwrap();
    let config = RunConfig {
        out: out.path().to_owned(),
        seed: 1,
        runs: None,
        threads: Some(2),
        quick: false,
        fresh: false,
        program: "test".to_owned(),
        limits: StoreLimits::default(),
    };
    let stop = AtomicBool::new(false);
    let finished = run(
        &Simulator::default(),
        &experiments,
        &config,
        &stop,
        &Progress::new(true),
    )
    .unwrap();
    for one in finished {
        let summary = one.result.unwrap();
        assert!(!summary.checks.is_empty(), "{}", one.id);
        let failed: Vec<_> = summary.failed().collect();
        assert!(failed.is_empty(), "{}: {failed:?}", one.id);
    }
}

#[test]
fn a_point_is_traced_by_its_labels() {
    let library = Library::embedded().unwrap();
    let experiment = Experiment::read(&library, "arc/low-rate").unwrap();
    let out = tempfile::tempdir().unwrap();
    let digest = experiment
        .trace(&Simulator::default(), traced("ARC", true), out.path())
        .unwrap();
    assert_eq!(digest.len(), 64);
    let csv = std::fs::read_to_string(out.path().join("events.csv")).unwrap();
    assert!(csv.lines().count() > 1_000);
}
