//! Writes what an experiment found: `summary.json`, tables as CSV, figures as SVG.

use std::fs;
use std::io;
use std::path::Path;

use namecast_command::report;
use namecast_command::source::{Problem, Problems};
use serde::{Deserialize, Serialize};

use super::figure::{Artist, Curves, Drawing, Shown, number};
use super::measured::Measured;
use super::plan::Experiment;
use super::replay::Replay;
use super::runs::RunTable;
use super::statistics::Statistics;
use super::store::{Absent, Spent, Store, StoredSeries, write_whole};
use super::summary::{Asked, FigureEntry, Summary};

/// How long an experiment took. Apart from `summary.json`, which is the same every time.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Timing {
    /// Runs, over all points.
    pub runs: usize,
    /// What they would take one after another, in seconds.
    pub wall_seconds: f64,
    /// Processor time that they took.
    pub cpu_seconds: f64,
}

/// An experiment all of whose runs are done.
pub(super) struct Output<'a> {
    pub(super) experiment: &'a Experiment<'a>,
    pub(super) measured: &'a Measured,
    pub(super) asked: Asked,
    pub(super) store: &'a Store,
    /// Names of all runs, those of the first point first.
    pub(super) hashes: Vec<&'a str>,
    pub(super) spent: Spent,
    /// None if all runs take real time.
    pub(super) replay: Option<Replay>,
}

impl Curves for Output<'_> {
    fn series(&self, point: usize, run: usize) -> Result<Vec<StoredSeries>, String> {
        let hash = self.hashes[point * self.asked.runs as usize + run];
        match self.store.load_full(hash) {
            Ok(record) => Ok(record.series),
            Err(Absent::Never) => Err(format!("{} is gone", self.store.path(hash).display())),
            Err(Absent::Damaged(why)) => Err(format!("{}: {why}", self.store.path(hash).display())),
        }
    }
}

impl Output<'_> {
    /// Writes all files under `out`. `summary.json` comes last: where it is, everything is.
    ///
    /// # Errors
    /// The experiment's file speaks of what was not measured, or files cannot be written.
    pub(super) fn write(&self, out: &Path) -> Result<Summary, String> {
        let together = |problems: Vec<Problem>| Problems(problems).to_string();
        let mut summary =
            Summary::new(self.experiment, self.measured, self.asked).map_err(together)?;
        let artist = Artist {
            experiment: self.experiment,
            measured: self.measured,
            summary: &summary,
            curves: self,
            runs: self.asked.runs as usize,
        };
        let (mut drawings, mut problems) = (Vec::new(), Vec::new());
        for figure in &self.experiment.figures {
            match artist.draw(figure) {
                Ok(drawing) => drawings.push((figure.value.title.clone(), drawing)),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(together(problems));
        }
        let folder = out.join(&self.experiment.id);
        let unwritable = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(unwritable)?;
        clear(&folder).map_err(unwritable)?;
        let write =
            |name: &str, octets: &[u8]| write_whole(&folder.join(name), octets).map_err(unwritable);
        for (index, (title, (drawing, shown))) in drawings.into_iter().enumerate() {
            let number = index + 1;
            let mut entry = FigureEntry {
                title: title.unwrap_or_else(|| self.experiment.header.title.clone()),
                ..FigureEntry::default()
            };
            match drawing {
                Drawing::Chart(chart) => {
                    let name = format!("figure-{number}.svg");
                    write(&name, chart.svg()?.as_bytes())?;
                    entry.file = Some(name);
                }
                Drawing::Table(rows) => entry.table = rows,
            }
            if !shown.is_empty() {
                let table = self.series_csv(&shown).map_err(unwritable)?;
                write(&format!("series-{number}.csv"), &table)?;
            }
            summary.figures.push(entry);
        }
        write("metrics.csv", &self.metrics_csv().map_err(unwritable)?)?;
        let table = RunTable {
            sweeps: self.sweep_names().collect(),
            measured: self.measured,
            runs: self.asked.runs,
            seed: self.asked.seed,
        };
        write("runs.csv", &table.csv().map_err(unwritable)?)?;
        let parquet = table.parquet().map_err(io::Error::other);
        write("runs.parquet", &parquet.map_err(unwritable)?)?;
        let timing = Timing {
            runs: self.hashes.len(),
            wall_seconds: self.spent.wall,
            cpu_seconds: self.spent.cpu,
        };
        write("timing.json", &json(&timing)?)?;
        write("replay.json", &json(&self.replay)?)?;
        write("summary.json", &json(&summary)?)?;
        Ok(summary)
    }

    fn sweep_names(&self) -> impl Iterator<Item = &str> {
        let sweeps = self.experiment.sweeps.iter();
        sweeps.map(|sweep| sweep.name.as_str())
    }

    fn metrics_csv(&self) -> io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        let mut head = vec!["metric"];
        head.extend(self.sweep_names());
        head.extend(["mean", "low", "high", "min", "max", "runs", "missing"]);
        table.write_record(&head)?;
        for (metric, labels, runs) in self.measured.all() {
            let mut row = vec![metric.to_owned()];
            row.extend(labels.iter().cloned());
            if let Some(s) = Statistics::of(runs) {
                row.extend([s.mean, s.low, s.high, s.min, s.max].map(|number| number.to_string()));
                row.extend([s.runs, s.missing].map(|number| number.to_string()));
            } else {
                row.extend([""; 5].map(str::to_owned));
                row.extend([0, runs.len()].map(|number| number.to_string()));
            }
            table.write_record(&row)?;
        }
        table.into_inner().map_err(|error| error.into_error())
    }

    fn series_csv(&self, shown: &[Shown]) -> io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        let mut head = vec!["series", "unit"];
        head.extend(self.sweep_names());
        head.extend(["run", "x", "y"]);
        table.write_record(&head)?;
        for Shown {
            labels,
            run,
            series,
        } in shown
        {
            let mut row = vec![series.name.clone(), series.unit.clone()];
            row.extend(labels.iter().cloned());
            row.push(run.to_string());
            let fixed = row.len();
            for (x, y) in &series.points {
                row.truncate(fixed);
                row.extend([x.to_string(), y.to_string()]);
                table.write_record(&row)?;
            }
        }
        table.into_inner().map_err(|error| error.into_error())
    }
}

pub(super) fn json(value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut octets = serde_json::to_vec_pretty(value).map_err(|error| error.to_string())?;
    octets.push(b'\n');
    Ok(octets)
}

/// Takes away what an earlier form of the experiment left, which nothing would point to any more.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ours = name == "summary.json"
            || name.starts_with("figure-") && name.ends_with(".svg")
            || name.starts_with("series-") && name.ends_with(".csv");
        if ours {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// One line that says how an experiment went.
pub(super) fn verdict(summary: &Summary) -> String {
    let all = summary.checks.len();
    let failed = summary.failed().count();
    let id = &summary.id;
    let metrics = summary.metrics.len();
    if summary.quick {
        format!("{id}: {metrics} values, a quick run that claims nothing")
    } else if all == 0 {
        format!("{id}: {metrics} values, nothing to check")
    } else if failed == 0 {
        format!("{id}: {metrics} values, all {all} checks hold")
    } else {
        format!("{id}: {metrics} values, {failed} of {all} checks FAIL")
    }
}

/// A table of the checks that do not hold; empty if all do.
pub fn failures(summaries: &[&Summary]) -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for summary in summaries {
        for check in summary.failed() {
            let allowed = format!("{} … {}", number(check.min), number(check.max));
            let found = number(check.value);
            rows.push([summary.id.clone(), check.name.clone(), found, allowed]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    report::table(["experiment", "check", "found", "allowed"], rows)
}
