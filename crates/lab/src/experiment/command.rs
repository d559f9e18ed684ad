//! `namecast experiment`: figures and tables of papers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use namecast_command::Stop;
use namecast_command::report::{print, print_error, print_line};
use namecast_media::ingest::quality::{self as rungs, QualityConfig};
use serde_json::json;

use super::arguments::{
    Choice, CompareArguments, ExperimentArguments, ListArguments, QualityArguments,
    ReportArguments, RunArguments, TraceArguments, What,
};
use super::{
    Comparison, Experiment, Finished, Library, Listed, Problems, Progress, RunConfig, RunError,
    Simulator, StoreLimits, Summary, TracedRun, failures, program_digest, quality, report,
    run as run_all, table,
};

/// Does what was asked for.
pub(crate) async fn run(
    arguments: ExperimentArguments,
    simulator: Simulator,
) -> anyhow::Result<()> {
    match arguments.what {
        What::List(arguments) => list(&arguments),
        What::Run(arguments) => run_until_stopped(arguments, simulator).await,
        What::Report(arguments) => write_report(&arguments),
        What::Compare(arguments) => compare(&arguments),
        What::Quality(arguments) => measure_quality(&arguments),
        What::Trace(arguments) => write_trace(&arguments, &simulator),
    }
}

fn open(choice: &Choice) -> anyhow::Result<Library> {
    Ok(match &choice.experiments {
        Some(folder) => Library::open(folder)?,
        None => Library::embedded()?,
    })
}

fn select<'l>(library: &'l Library, choice: &Choice) -> anyhow::Result<Vec<&'l str>> {
    let mut ids = library.select(&choice.ids)?;
    let narrowed = library.select(&choice.filter)?;
    ids.retain(|id| narrowed.contains(id));
    if ids.is_empty() {
        bail!("there is no such experiment: name a folder of experiment files with --experiments");
    }
    Ok(ids)
}

/// Reads each of `ids` with `read`. All that is wrong with all files is told at once.
fn read_each<T>(
    ids: &[&str],
    read: impl Fn(&str) -> Result<T, Problems>,
) -> Result<Vec<T>, Problems> {
    let mut values = Vec::new();
    let mut problems = Vec::new();
    for id in ids {
        match read(id) {
            Ok(value) => values.push(value),
            Err(Problems(more)) => problems.extend(more),
        }
    }
    if problems.is_empty() {
        Ok(values)
    } else {
        // Files that extend the same one have its problems in common.
        problems.sort();
        problems.dedup();
        Err(Problems(problems))
    }
}

fn list(arguments: &ListArguments) -> anyhow::Result<()> {
    let library = open(&arguments.choice)?;
    let ids = select(&library, &arguments.choice)?;
    let listed = read_each(&ids, |id| Listed::read(&library, id, &arguments.out))?;
    if arguments.json {
        print_line(serde_json::to_string_pretty(&listed)?)?;
    } else {
        print(table(&listed))?;
    }
    Ok(())
}

/// Runs on other threads, so that an interrupt ends the wait at once. What is finished is on disk by then.
async fn run_until_stopped(arguments: RunArguments, simulator: Simulator) -> anyhow::Result<()> {
    let mut interrupt = Stop::new(None)?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let running = tokio::task::spawn_blocking(move || run_chosen(&arguments, &simulator, &told));
    tokio::select! {
        result = running => result?,
        () = interrupt.wait() => {
            stop.store(true, Ordering::Relaxed);
            bail!("interrupted: finished runs are kept, and the same command goes on from there");
        }
    }
}

fn run_chosen(
    arguments: &RunArguments,
    simulator: &Simulator,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let library = open(&arguments.choice)?;
    let ids = select(&library, &arguments.choice)?;
    let experiments = read_each(&ids, |id| {
        Experiment::read(&library, id).map(|read| read.scaled(&arguments.scale))
    })?;
    let program = std::env::current_exe().and_then(|path| program_digest(&path));
    let config = RunConfig {
        out: arguments.out.clone(),
        seed: arguments.seed,
        runs: arguments.runs,
        threads: arguments.threads.map(usize::from),
        quick: arguments.quick,
        fresh: arguments.fresh,
        program: program.context("cannot read the program itself, to name results by it")?,
        limits: StoreLimits::default(),
    };
    let progress = Progress::new(arguments.quiet);
    let finished = run_all(simulator, &experiments, &config, stop, &progress);
    // Problems already say where they are; they need no further words.
    let finished = finished.map_err(|error: RunError| anyhow::anyhow!("{error}"))?;
    conclude(&finished, arguments)
}

/// Prints what was found. An error if something failed, for whoever looks at the exit code.
fn conclude(finished: &[Finished], arguments: &RunArguments) -> anyhow::Result<()> {
    let summaries: Vec<&Summary> = finished
        .iter()
        .filter_map(|one| one.result.as_ref().ok())
        .collect();
    if arguments.json {
        for Finished { id, result } in finished {
            let line = match result {
                Ok(summary) => json!({
                    "id": id,
                    "ok": summary.failed().next().is_none(),
                    "quick": summary.quick,
                    "checks": summary.checks.len(),
                    "failed": summary.failed().map(|check| &check.name).collect::<Vec<_>>(),
                    "summary": arguments.out.join(id).join("summary.json"),
                }),
                Err(why) => json!({ "id": id, "ok": false, "error": why }),
            };
            print_line(line)?;
        }
    }
    let failures = failures(&summaries);
    if !failures.is_empty() {
        print_error(failures.trim_end());
    }
    let broken = finished.len() - summaries.len();
    let failed: usize = summaries
        .iter()
        .map(|summary| summary.failed().count())
        .sum();
    match (broken, failed) {
        (0, 0) => {
            if !arguments.quiet {
                let out = arguments.out.display();
                print_error(format_args!(
                    "results are in {out}; `namecast experiment report {out}` makes a page of them"
                ));
            }
            Ok(())
        }
        (0, failed) => bail!("{failed} checks do not hold"),
        (broken, 0) => bail!("{broken} experiments could not be finished"),
        (broken, failed) => {
            bail!("{failed} checks do not hold, {broken} experiments could not be finished")
        }
    }
}

fn write_report(arguments: &ReportArguments) -> anyhow::Result<()> {
    let folder: &Path = &arguments.folder;
    let report = report::write(folder, &arguments.filter, arguments.claims.as_deref())
        .with_context(|| {
            let folder = folder.display();
            format!("cannot make a report of {folder}: name the folder that `run` wrote to")
        })?;
    for reason in &report.skipped {
        print_error(format_args!("warning: left out: {reason}"));
    }
    if arguments.json {
        let ids = &report.ids;
        print_line(
            json!({ "report": report.path, "experiments": ids, "skipped": report.skipped }),
        )?;
    } else {
        let count = report.ids.len();
        print_line(format_args!(
            "{}: {count} experiments",
            report.path.display()
        ))?;
    }
    Ok(())
}

fn compare(arguments: &CompareArguments) -> anyhow::Result<()> {
    let comparison = Comparison::new(&arguments.a, &arguments.b, &arguments.filter);
    let mut comparison = comparison.map_err(|error| anyhow::anyhow!("{error}"))?;
    for reason in &comparison.skipped {
        print_error(format_args!("warning: left out: {reason}"));
    }
    let worse = comparison.verdicts.iter().filter(|change| change.worse);
    let worse = worse.count();
    if arguments.json {
        (comparison.values).retain(|value| arguments.all || value.differs);
        print_line(serde_json::to_string_pretty(&comparison)?)?;
    } else {
        print(comparison.text(arguments.all))?;
    }
    if arguments.fail && worse > 0 {
        bail!("{worse} verdicts became worse");
    }
    Ok(())
}

fn measure_quality(arguments: &QualityArguments) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let rungs = arguments.ladder.iter().flat_map(|wish| wish.rungs.clone());
    let config = QualityConfig {
        input: Some(arguments.input.clone()).filter(|input| input != Path::new("test")),
        rungs: rungs.collect(),
        codec: arguments.codec,
        rate: arguments.fps,
        key_interval: arguments.gop,
        length: arguments.duration,
    };
    if config.rungs.is_empty() {
        bail!("no rung is encoded: write --ladder 200k,1M,3M");
    }
    let found = rungs::measure(&config, scratch.path())?;
    if arguments.json {
        print_line(quality::json(&found))
    } else {
        print(quality::text(&found))
    }
}

fn write_trace(arguments: &TraceArguments, simulator: &Simulator) -> anyhow::Result<()> {
    let library = match &arguments.experiments {
        Some(folder) => Library::open(folder)?,
        None => Library::embedded()?,
    };
    let experiment = Experiment::read(&library, &arguments.id)?;
    let run = TracedRun {
        point: arguments.point.as_deref(),
        quick: arguments.quick,
        seed: arguments.seed,
    };
    let digest = experiment.trace(simulator, run, &arguments.out)?;
    print_line(format_args!(
        "{}: events with digest {digest}",
        arguments.out.display()
    ))?;
    Ok(())
}
