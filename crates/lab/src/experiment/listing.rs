//! What `namecast experiment list` shows.

use std::fs;
use std::path::Path;

use namecast_command::report;
use namecast_command::source::Problems;
use serde::Serialize;

use super::library::Library;
use super::output::Timing;
use super::plan::Experiment;

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// Such as `arc/figure05`.
    pub id: String,
    /// Figure or table of the paper.
    pub item: String,
    /// Key of the paper.
    pub paper: String,
    /// What is shown.
    pub title: String,
    /// Combinations of all sweeps.
    pub points: usize,
    /// Runs of each.
    pub seeds: u32,
    /// Processor time that all of them take, from results of before.
    pub cpu_seconds: Option<f64>,
}

impl Listed {
    /// Reads `id`, and looks under `out` for how long it takes.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn read(library: &Library, id: &str, out: &Path) -> Result<Self, Problems> {
        let experiment = Experiment::read(library, id)?;
        let points = experiment.point_count();
        let runs = points * experiment.seeds as usize;
        let timing = fs::read(out.join(id).join("timing.json")).ok();
        let timing: Option<Timing> = timing.and_then(|text| serde_json::from_slice(&text).ok());
        // Results of other options say little about how long this takes.
        let timing = timing.filter(|timing| timing.runs == runs);
        Ok(Self {
            id: id.to_owned(),
            points,
            seeds: experiment.seeds,
            cpu_seconds: timing.map(|timing| timing.cpu_seconds),
            item: experiment.header.item,
            paper: experiment.header.paper,
            title: experiment.header.title,
        })
    }
}

/// Rows and columns for people.
pub fn table(listed: &[Listed]) -> String {
    let rows = listed.iter().map(|one| {
        let time = one
            .cpu_seconds
            .map_or_else(String::new, |seconds| format!("{seconds:.0} s"));
        let runs = format!("{} × {}", one.points, one.seeds);
        let item = format!("{} {}", one.paper, one.item);
        [one.id.clone(), item, runs, time, one.title.clone()]
    });
    report::table(["ID", "ITEM", "RUNS", "TIME", "TITLE"], rows)
}
