//! The table, and curves as a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use namecast_sim::scenario::Series;

use crate::setups::Setup;
use crate::value_at;

/// A run that is over.
pub(crate) struct Finished {
    /// How long it took by the wall's clock.
    pub(crate) took: Duration,
    /// Its metrics, or why there are none.
    pub(crate) end: Result<BTreeMap<String, f64>, String>,
}

/// Runs so far. A set-up's line is printed when all its runs, and those of the set-ups before it, are over.
pub(crate) struct Table<'a> {
    setups: &'a [Setup],
    seeds: u64,
    finished: Vec<Vec<(u64, Finished)>>,
    printed: usize,
}

/// Columns: heading, metric, digits.
const COLUMNS: [(&str, &str, usize); 18] = [
    ("compl", "complete-share", 3),
    ("shown", "shown-rate", 2),
    ("q", "link-1-own-queue-delay", 0),
    ("q95", "link-1-own-queue-delay-p95", 0),
    ("long", "link-1-own-queue-long", 1),
    ("drop", "link-1-own-dropped", 0),
    ("freeze", "freeze", 0),
    ("sw/min", "switches", 1),
    ("sound", "sound-in-time-share", 3),
    ("gap", "sound-gap", 0),
    ("int", "interest-ratio", 2),
    ("load", "interest-load", 2),
    ("peak", "interest-peak-load", 2),
    ("asks", "interests-per-segment", 0),
    ("share", "link-1-own-rate-share", 2),
    ("goal", "goal-in-time", 1),
    ("minw", "in-time-share-min", 3),
    ("jain", "jain", 2),
];

/// Prints the first line.
pub(crate) fn print_head() {
    let mut line = format!("{:<32} {:>5} ({:>5})", "set-up", "time", "min");
    for (heading, _, _) in COLUMNS {
        let _ = write!(line, " {heading:>6}");
    }
    println!("{line}   took  windows");
}

impl<'a> Table<'a> {
    /// None yet.
    pub(crate) fn new(setups: &'a [Setup], seeds: u64) -> Self {
        Self {
            setups,
            seeds,
            finished: setups.iter().map(|_| Vec::new()).collect(),
            printed: 0,
        }
    }

    /// Takes a run of set-up `place`.
    pub(crate) fn add(&mut self, place: usize, seed: u64, finished: Finished) {
        self.finished[place].push((seed, finished));
        while let Some(runs) = self.finished.get(self.printed)
            && runs.len() as u64 == self.seeds
        {
            println!("{}", line(&self.setups[self.printed], runs));
            self.printed += 1;
        }
    }
}

fn line(setup: &Setup, runs: &[(u64, Finished)]) -> String {
    let known: Vec<_> = runs
        .iter()
        .filter_map(|(_, run)| run.end.as_ref().ok())
        .collect();
    let values = |metric: &str| -> Vec<f64> {
        let values = known
            .iter()
            .filter_map(|metrics| metrics.get(metric).copied());
        values.filter(|value| value.is_finite()).collect()
    };
    let mean = |metric: &str| {
        let values = values(metric);
        values.iter().sum::<f64>() / values.len() as f64
    };
    let least = |metric: &str| values(metric).into_iter().fold(f64::NAN, f64::min);
    let mut line = format!("{:<32}", setup.name);
    if !known.is_empty() {
        let share = "in-time-share";
        let _ = write!(line, " {:>5.3} ({:>5.3})", mean(share), least(share));
        for (_, metric, digits) in COLUMNS {
            match mean(metric) {
                value if value.is_nan() => line += "      -",
                value => {
                    let _ = write!(line, " {value:>6.digits$}");
                }
            }
        }
    }
    let took: f64 = runs.iter().map(|(_, run)| run.took.as_secs_f64()).sum();
    let _ = write!(line, " {:>5.1}s", took / runs.len() as f64);
    for window in &setup.windows {
        let named = |metric: &str| format!("{metric}-{window}");
        let (share, shown) = (named("in-time-share"), named("shown-rate"));
        let _ = write!(
            line,
            " {window}={:.3}({:.3})/{:.2}",
            mean(&share),
            least(&share),
            mean(&shown)
        );
        if *window == "after" {
            let after = [
                ("rung-back", "back"),
                ("sound-back", "sound"),
                ("link-1-own-rate-share", "link"),
            ];
            for (metric, word) in after {
                let _ = write!(line, " {word}:{:.2}", mean(&named(metric)));
            }
        }
    }
    let ideal = mean("ideal-in-time-share");
    if ideal.is_finite() {
        let _ = write!(line, " ideal={ideal:.3}/{:.2}", mean("ideal-shown-rate"));
    }
    let mut failed: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (seed, run) in runs {
        if let Err(why) = &run.end {
            failed.entry(why).or_default().push(*seed);
        }
    }
    for (why, seeds) in failed {
        let _ = write!(line, " [{why}: {seeds:?}]");
    }
    line
}

/// Curves as a table with a line for each 100 ms.
pub(crate) fn csv(series: &[Series]) -> String {
    let wanted = |series: &&Series| {
        let prefixes = [
            "rung",
            "shown",
            "queue",
            "data",
            "bandwidth",
            "link",
            "lead",
            "drd",
            "target",
            "state",
        ];
        let name = series
            .name
            .trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '-');
        prefixes.contains(&name)
    };
    let wanted: Vec<&Series> = series.iter().filter(wanted).collect();
    let mut table = "time".to_owned();
    for series in &wanted {
        let _ = write!(table, ",{}", series.name);
    }
    table.push('\n');
    let ends = wanted.iter().filter_map(|series| series.points.last());
    let end = ends.map(|(time, _)| *time).fold(0.0, f64::max);
    for tenth in 0..=(end * 10.0).round() as u64 {
        let at = tenth as f64 / 10.0;
        let _ = write!(table, "{at:.1}");
        for series in &wanted {
            match value_at(series, at) {
                Some(value) => {
                    let _ = write!(table, ",{value:.3}");
                }
                None => table.push(','),
            }
        }
        table.push('\n');
    }
    table
}
