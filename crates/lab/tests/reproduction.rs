//! What is kept of the papers' experiments is what this program finds.

use std::fs;
use std::path::Path;

use namecast_lab::experiment::{Experiment, Kept, Library, Replay, Simulator};
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
