//! What is kept of the papers' experiments is what this program finds.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use namecast_lab::experiment::{
    Experiment, Kept, Library, Progress, Replay, RunConfig, Simulator, StoreLimits, run,
};
use rayon::prelude::*;

/// Processor time of the runs that are replayed, in seconds of an optimised program: all together take half a minute here.
const MAX_CPU_SECONDS: f64 = 0.5;

#[test]
fn one_run_of_each_experiment_is_as_it_was_kept() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduction");
    let library = Library::embedded().unwrap();
    let simulator = Simulator::default();
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let different: Vec<String> = paths
        .par_iter()
        .filter_map(|path| {
            let kept: Kept = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let cheap = |replay: &Replay| replay.cpu_seconds < MAX_CPU_SECONDS;
            let replay = kept.replay.filter(cheap)?;
            let experiment = Experiment::read(&library, &kept.id).unwrap();
            let found = replay.differences(&experiment, &simulator).unwrap();
            let all = found.join(", ");
            (!found.is_empty()).then(|| format!("{} at {}: {all}", kept.id, replay.point))
        })
        .collect();
    assert!(
        different.is_empty(),
        "{}\nIf this is meant, run `namecast experiment run` for them, then `namecast experiment report results --claims docs/reproduction.md`",
        different.join("\n")
    );
}

/// The bounds of the files, for the first of their seeds.
#[test]
fn any_next_packets_reach_receivers_of_every_speed() {
    let library = Library::embedded().unwrap();
    let ids = ["figure01", "figure09", "figure11", "figure12", "loss"];
    let read = |name: &str| Experiment::read(&library, &format!("said/{name}")).unwrap();
    let experiments = ids.map(read);
    let out = tempfile::tempdir().unwrap();
    let config = RunConfig {
        out: out.path().to_owned(),
        seed: 1,
        runs: Some(1),
        threads: None,
        quick: false,
        fresh: true,
        program: "test".to_owned(),
        limits: StoreLimits::default(),
    };
    let (stop, progress) = (AtomicBool::new(false), Progress::new(true));
    let finished = run(
        &Simulator::default(),
        &experiments,
        &config,
        &stop,
        &progress,
    )
    .unwrap();
    let failed = finished.into_iter().flat_map(|one| {
        let summary = one.result.unwrap();
        assert!(!summary.checks.is_empty(), "{}", one.id);
        let failed = summary
            .failed()
            .map(|check| format!("{}: {check:?}", one.id));
        failed.collect::<Vec<_>>()
    });
    let failed: Vec<_> = failed.collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
