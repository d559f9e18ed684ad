//! Judges live watchers on a table of set-ups, and prints a line for each.
//!
//! `cargo run --release -p namecast-sim --example live -- [--seeds N] [--first N] [--filter TEXT] [--threads N] [--limit SECONDS]
//! [--series FILE] [--toml] [--file SCENARIO] [--traces DIRECTORY]`
//!
//! Each run is a process of its own, which is ended if it takes too long or too much memory: a watcher under construction may do
//! either. `--series` writes the curves of the first seed of the first set-up that the filter leaves, a line for each 100 ms;
//! `--toml` prints the scenarios instead of running them; `--file` runs such a one and prints its metrics.

#![expect(
    clippy::disallowed_methods,
    reason = "a program that looks after other processes"
)]

mod report;
mod setups;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use namecast_sim::scenario::{Outcome, Scenario, Series};

use report::Finished;
use setups::Setup;

const USAGE: &str = "[--seeds N] [--first N] [--filter TEXT] [--threads N] [--limit SECONDS] [--series FILE] [--toml] \
[--file SCENARIO] [--traces DIRECTORY]
filter: part of a set-up's name; first: the first seed; limit: of a run, in time of the processor; series: curves of one run as CSV;
toml: print scenarios; file: run one, and print its metrics; traces: with lte-a.trace and umts-a.trace";

/// Memory of a run, beyond which it is ended. Sixteen publishers of all bitrates keep more than one gigabyte.
const MAX_RESIDENT: u64 = 4 << 30;
/// How often a run is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// What was asked for.
struct Arguments {
    seeds: u64,
    first: u64,
    filter: String,
    threads: usize,
    limit: Duration,
    series: Option<PathBuf>,
    traces: Option<PathBuf>,
    toml: bool,
    /// A scenario to run instead of the set-ups.
    file: Option<PathBuf>,
    /// Name and seed of the run that this process is for.
    one: Option<(String, u64)>,
}

impl Arguments {
    fn read() -> Result<Self, String> {
        let mut arguments = Self {
            seeds: 3,
            first: 1,
            filter: String::new(),
            threads: 2,
            limit: Duration::from_secs(60),
            series: None,
            traces: None,
            toml: false,
            file: None,
            one: None,
        };
        let mut given = std::env::args().skip(1);
        while let Some(option) = given.next() {
            if option == "--help" {
                return Err(USAGE.to_owned());
            }
            if option == "--toml" {
                arguments.toml = true;
                continue;
            }
            let value = given
                .next()
                .ok_or_else(|| format!("{option}: expected a value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|error| format!("{option}: {error}"))
            };
            match &*option {
                "--seeds" => arguments.seeds = number()?,
                "--first" => arguments.first = number()?,
                "--filter" => arguments.filter = value,
                "--threads" => arguments.threads = number()? as usize,
                "--limit" => arguments.limit = Duration::from_secs(number()?),
                "--file" => arguments.file = Some(value.into()),
                "--series" => arguments.series = Some(value.into()),
                "--traces" => arguments.traces = Some(value.into()),
                "--one" => {
                    let (seed, name) = value.split_once(' ').ok_or("--one: expected SEED NAME")?;
                    let seed = seed.parse().map_err(|error| format!("--one: {error}"))?;
                    arguments.one = Some((name.to_owned(), seed));
                }
                _ => return Err(format!("{option} is no option")),
            }
        }
        Ok(arguments)
    }
}

fn main() -> ExitCode {
    let done = Arguments::read().and_then(|arguments| match (&arguments.one, &arguments.file) {
        (Some((name, seed)), _) => run_named(&arguments, name, *seed),
        (None, Some(file)) => run_file(&arguments, file),
        (None, None) => run_all(&arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one set-up and prints its metrics, for the process that started this one.
fn run_named(arguments: &Arguments, name: &str, seed: u64) -> Result<(), String> {
    let setups = setups::all(arguments.traces.as_deref());
    let setup = setups.iter().find(|setup| setup.name == name);
    let setup = setup.ok_or_else(|| format!("there is no set-up '{name}'"))?;
    run(arguments, &setup.toml, seed)
}

/// Runs the scenario of a file, such as one that `--toml` printed, and prints its metrics.
fn run_file(arguments: &Arguments, file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
    run(arguments, &text, arguments.first)
}

fn run(arguments: &Arguments, text: &str, seed: u64) -> Result<(), String> {
    let mut scenario: Scenario = toml::from_str(text).map_err(|error| error.to_string())?;
    if let Scenario::Stream(stream) = &mut scenario {
        stream.series = arguments.series.is_some();
    }
    let outcome = scenario.run(Path::new("."), seed);
    let outcome: Outcome = outcome.map_err(|error| error.to_string())?;
    if let Some(file) = &arguments.series {
        let table = report::csv(&outcome.series);
        std::fs::write(file, table).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    for (name, value) in &outcome.metrics {
        println!("{name} {value}");
    }
    Ok(())
}

fn run_all(arguments: &Arguments) -> Result<(), String> {
    let mut setups = setups::all(arguments.traces.as_deref());
    setups.retain(|setup| setup.name.contains(&arguments.filter));
    if arguments.toml {
        for setup in &setups {
            println!("# {}\n{}", setup.name, setup.toml);
        }
        return Ok(());
    }
    let mut seeds = arguments.first..arguments.first + arguments.seeds;
    if arguments.series.is_some() {
        setups.truncate(1);
        seeds.end = seeds.start + 1;
    }
    report::print_head();
    let runs = setups.iter().enumerate();
    let runs = runs.flat_map(|(place, _)| seeds.clone().map(move |seed| (place, seed)));
    let queue = Mutex::new(runs);
    let table = Mutex::new(report::Table::new(
        &setups,
        arguments.seeds.min(seeds.end - seeds.start),
    ));
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no thread panics").next();
                    let Some((place, seed)) = next else { break };
                    let finished = run_in_process(arguments, &setups[place], seed);
                    let mut table = table.lock().expect("no thread panics");
                    table.add(place, seed, finished);
                }
            });
        }
    });
    Ok(())
}

/// Runs one set-up in a process of its own.
fn run_in_process(arguments: &Arguments, setup: &Setup, seed: u64) -> Finished {
    let started = Instant::now();
    let finished = |end: Result<BTreeMap<String, f64>, String>| Finished {
        took: started.elapsed(),
        end,
    };
    // This very program, even if another has been built in its place meanwhile.
    let own = Path::new("/proc/self/exe");
    let own = match own.exists() {
        true => Ok(own.to_owned()),
        false => std::env::current_exe(),
    };
    let mut command = match own {
        Ok(program) => Command::new(program),
        Err(error) => return finished(Err(error.to_string())),
    };
    command.args(["--one", &format!("{seed} {}", setup.name)]);
    for (option, path) in [
        ("--series", &arguments.series),
        ("--traces", &arguments.traces),
    ] {
        if let Some(path) = path {
            command.arg(option).arg(path);
        }
    }
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    finished(match child {
        Ok(child) => watch(child, arguments.limit),
        Err(error) => Err(error.to_string()),
    })
}

/// Waits for a run, or ends it.
fn watch(mut child: Child, limit: Duration) -> Result<BTreeMap<String, f64>, String> {
    let started = Instant::now();
    let reader = child.stdout.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = pipe.read_to_string(&mut text);
            text
        })
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return Err(error.to_string()),
        }
        let end = |child: &mut Child, why: &str| {
            let _ = child.kill();
            let _ = child.wait();
            Err(why.to_owned())
        };
        if worked(child.id()).unwrap_or(started.elapsed()) > limit {
            return end(&mut child, "does not end");
        }
        if resident(child.id()) > MAX_RESIDENT {
            return end(&mut child, "takes too much memory");
        }
        std::thread::sleep(LOOK);
    };
    let text = reader
        .and_then(|reader| reader.join().ok())
        .unwrap_or_default();
    if !status.success() {
        let mut error = String::new();
        if let Some(mut pipe) = child.stderr.take() {
            let _ = pipe.read_to_string(&mut error);
        }
        // A panic's first line says where, and the second why.
        let lines = error.lines().map(str::trim);
        let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with("thread '"));
        return Err(lines.next().unwrap_or("ended without a word").to_owned());
    }
    let lines = text.lines().filter_map(|line| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Ok(lines.collect())
}

/// Time that a process has had a processor for, as far as the system says.
fn worked(process: u32) -> Option<Duration> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name, which is in brackets, the 12th and the 13th: in its own code and in the system's, in hundredths of a second.
    let (_, rest) = status.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (next()? + next()?)))
}

/// Octets of memory that a process has, as far as the system says.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// Value of a curve at `at`: that of its newest point.
pub(crate) fn value_at(series: &Series, at: f64) -> Option<f64> {
    let known = series
        .points
        .partition_point(|(time, _)| *time <= at + 1e-9);
    Some(series.points[known.checked_sub(1)?].1)
}
