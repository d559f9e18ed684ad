//! Results of finished runs, kept under `OUT/.runs`, so that nothing is run twice.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use smart_default::SmartDefault;

use super::laboratory::{DISTURBED, Outcome, Series};

/// Version of the files' form; another one is not read.
const FORM: u32 = 1;
/// Octets of a file that a scenario refers to, beyond which it is not looked into.
const MAX_REFERRED: u64 = 256 << 20;

/// Bounds of what is kept of one run.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct StoreLimits {
    /// Series of a run; more are an error.
    #[default(1_000)]
    pub series: usize,
    /// Points of a series; more are thinned out.
    #[default(2_000)]
    pub points: usize,
    /// Metrics of a run; more are an error.
    #[default(10_000)]
    pub metrics: usize,
}

/// What was measured in one run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Record {
    form: u32,
    /// Equal to the file's name, or the file is not what it seems.
    hash: String,
    pub(super) seed: u64,
    pub(super) wall_seconds: f64,
    pub(super) cpu_seconds: f64,
    /// `None` for numbers that are not finite.
    pub(super) metrics: BTreeMap<String, Option<f64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) series: Vec<StoredSeries>,
}

/// A series, thinned out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct StoredSeries {
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// The same without the series, which take most of the memory.
#[derive(Debug, Deserialize)]
struct Brief {
    form: u32,
    hash: String,
    seed: u64,
    wall_seconds: f64,
    cpu_seconds: f64,
    metrics: BTreeMap<String, Option<f64>>,
}

/// Processor and wall time of a run, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) wall: f64,
    pub(super) cpu: f64,
}

impl Record {
    /// What is kept of `outcome`.
    ///
    /// # Errors
    /// It is larger than `limits` allow.
    pub(super) fn new(
        hash: &str,
        seed: u64,
        outcome: Outcome,
        spent: Spent,
        limits: &StoreLimits,
    ) -> Result<Self, String> {
        let Outcome { metrics, series } = outcome;
        if series.len() > limits.series || metrics.len() > limits.metrics {
            return Err(format!(
                "{} series and {} metrics: expected at most {} and {}",
                series.len(),
                metrics.len(),
                limits.series,
                limits.metrics
            ));
        }
        let metrics = metrics.into_iter();
        let metrics = metrics.map(|(name, value)| (name, value.is_finite().then_some(value)));
        let series = series
            .into_iter()
            .map(|series| thinned(series, limits.points));
        Ok(Self {
            form: FORM,
            hash: hash.to_owned(),
            seed,
            wall_seconds: spent.wall,
            cpu_seconds: spent.cpu,
            metrics: metrics.collect(),
            series: series.collect(),
        })
    }

    /// Whether something else disturbed the run.
    pub(super) fn is_disturbed(&self) -> bool {
        let disturbed = self.metrics.get(DISTURBED).copied().flatten();
        disturbed.is_some_and(|value| value > 0.0)
    }

    /// The part that is small.
    pub(super) fn without_series(self) -> Self {
        Self {
            series: Vec::new(),
            ..self
        }
    }
}

/// Keeps at most `most` points: of each stretch the lowest and the highest, so that no peak is lost.
fn thinned(series: Series, most: usize) -> StoredSeries {
    let Series {
        name,
        unit,
        mut points,
    } = series;
    points.retain(|(x, y)| x.is_finite() && y.is_finite());
    if points.len() > most {
        let stretches = (most / 2).max(1);
        let count = points.len();
        let thin = (0..stretches).flat_map(|stretch| {
            let range = stretch * count / stretches..(stretch + 1) * count / stretches;
            let by_height = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
            let low = range.clone().min_by(by_height);
            let high = range.max_by(by_height);
            let first = low.min(high).into_iter();
            first.chain(low.max(high).filter(|_| low != high))
        });
        points = thin.map(|index| points[index]).collect();
    }
    StoredSeries { name, unit, points }
}

/// What makes a run what it is.
#[derive(Clone, Debug)]
pub(super) struct Identity<'a> {
    /// Canonical form of the scenario.
    pub(super) scenario: &'a Value,
    /// Where its paths start.
    pub(super) base: &'a Path,
    /// Digest of what runs it: a rebuilt program never uses results of the old one.
    pub(super) program: &'a str,
}

impl Identity<'_> {
    /// A name for the run with this seed: SHA-256 in hexadecimal.
    ///
    /// Every text in the scenario that is the path of a file counts with the file's content, for a changed map is another run.
    pub(super) fn hash(&self, seed: u64) -> String {
        let mut files = BTreeMap::new();
        self.collect_files(self.scenario, &mut files);
        let whole = json!({
            "form": FORM,
            "program": self.program,
            "scenario": self.scenario,
            "files": files,
            "seed": seed,
        });
        hexadecimal(&Sha256::digest(whole.to_string()))
    }

    fn collect_files(&self, value: &Value, files: &mut BTreeMap<String, String>) {
        match value {
            Value::String(text) if !files.contains_key(text) => {
                let path = self.base.join(text);
                let small = fs::metadata(&path)
                    .is_ok_and(|file| file.is_file() && file.len() <= MAX_REFERRED);
                if small && let Ok(content) = fs::read(&path) {
                    files.insert(text.clone(), hexadecimal(&Sha256::digest(content)));
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| self.collect_files(item, files)),
            Value::Object(entries) => {
                entries
                    .values()
                    .for_each(|item| self.collect_files(item, files));
            }
            _ => {}
        }
    }
}

/// Octets as people write digests.
pub(super) fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The folder of finished runs.
#[derive(Clone, Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

/// Why there is no result to use.
#[derive(Debug)]
pub(super) enum Absent {
    /// Not run yet.
    Never,
    /// There is a file, but not with a whole result.
    Damaged(String),
}

impl Store {
    /// Uses `OUT/.runs`, which is made if need be.
    pub(super) fn open(out: &Path) -> io::Result<Self> {
        let folder = out.join(".runs");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Where the result with this hash is.
    pub(super) fn path(&self, hash: &str) -> PathBuf {
        self.folder.join(format!("{hash}.json"))
    }

    /// The result with this hash, without series.
    pub(super) fn load_brief(&self, hash: &str) -> Result<Record, Absent> {
        let brief: Brief = self.load(hash)?;
        let Brief {
            form,
            hash: found,
            seed,
            wall_seconds,
            cpu_seconds,
            metrics,
        } = brief;
        let record = Record {
            form,
            hash: found,
            seed,
            wall_seconds,
            cpu_seconds,
            metrics,
            series: Vec::new(),
        };
        whole(record, hash)
    }

    /// The result with this hash.
    pub(super) fn load_full(&self, hash: &str) -> Result<Record, Absent> {
        whole(self.load(hash)?, hash)
    }

    fn load<T: serde::de::DeserializeOwned>(&self, hash: &str) -> Result<T, Absent> {
        let octets = match fs::read(self.path(hash)) {
            Ok(octets) => octets,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Absent::Never),
            Err(error) => return Err(Absent::Damaged(error.to_string())),
        };
        serde_json::from_slice(&octets).map_err(|error| Absent::Damaged(error.to_string()))
    }

    /// Keeps a result. Whoever looks finds all of it or nothing.
    pub(super) fn save(&self, record: &Record) -> io::Result<()> {
        let octets = serde_json::to_vec(record)?;
        write_whole(&self.path(&record.hash), &octets)
    }
}

fn whole(record: Record, hash: &str) -> Result<Record, Absent> {
    if record.form != FORM {
        let found = record.form;
        return Err(Absent::Damaged(format!("form {found}, expected {FORM}")));
    }
    if record.hash != hash {
        return Err(Absent::Damaged("it is of another run".to_owned()));
    }
    Ok(record)
}

/// Writes a file beside its place and moves it there, so that nobody ever sees half of it.
pub(super) fn write_whole(path: &Path, octets: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".unfinished-")
        .tempfile_in(folder)?;
    file.write_all(octets)?;
    // Private as temporary files are would keep others from reading the report.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(hash: &str) -> Record {
        let outcome = Outcome {
            metrics: BTreeMap::from([("a".to_owned(), 0.1), ("never".to_owned(), f64::INFINITY)]),
            series: vec![Series {
                name: "s".to_owned(),
                unit: "ms".to_owned(),
                points: vec![(0.0, 1.0), (1.0, f64::NAN)],
            }],
        };
        Record::new(hash, 7, outcome, Spent::default(), &StoreLimits::default()).unwrap()
    }

    #[test]
    fn a_result_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert!(matches!(store.load_full("x"), Err(Absent::Never)));
        let record = record("x");
        store.save(&record).unwrap();
        assert_eq!(store.load_full("x").unwrap(), record);
        assert_eq!(record.metrics["never"], None);
        assert_eq!(record.series[0].points, [(0.0, 1.0)]);
        let brief = store.load_brief("x").unwrap();
        assert_eq!((brief.metrics, brief.series.len()), (record.metrics, 0));
    }

    #[test]
    fn damaged_results_are_told_from_missing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let octets = serde_json::to_vec(&record("x")).unwrap();
        let damaged = |octets: &[u8], hash: &str| {
            fs::write(store.path(hash), octets).unwrap();
            matches!(store.load_full(hash), Err(Absent::Damaged(_)))
                && matches!(store.load_brief(hash), Err(Absent::Damaged(_)))
        };
        assert!(!damaged(&octets, "x"));
        assert!(damaged(&octets[..octets.len() - 1], "x") && damaged(b"", "x"));
        assert!(damaged(&octets, "y"), "it is a copy of another run");
    }

    #[test]
    fn thinning_keeps_peaks_order_and_bound() {
        let points: Vec<_> = (0..10_000)
            .map(|i| {
                (
                    f64::from(i),
                    if i == 7_777 { 99.0 } else { f64::from(i % 10) },
                )
            })
            .collect();
        let series = Series {
            name: String::new(),
            unit: String::new(),
            points,
        };
        let thin = thinned(series.clone(), 100).points;
        assert!((90..=100).contains(&thin.len()), "{}", thin.len());
        assert!(thin.contains(&(7_777.0, 99.0)));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(thinned(series.clone(), 10_000).points, series.points);
    }

    #[test]
    fn the_hash_depends_on_everything_that_matters() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("map.txt"), "one").unwrap();
        let scenario = json!({ "topology": { "path": "map.txt" } });
        let hash = |scenario: &Value, program: &str, seed| {
            Identity {
                scenario,
                base: folder.path(),
                program,
            }
            .hash(seed)
        };
        let first = hash(&scenario, "p", 1);
        assert_eq!(first.len(), 64);
        assert_eq!(first, hash(&scenario.clone(), "p", 1));
        assert_ne!(first, hash(&scenario, "p", 2));
        assert_ne!(first, hash(&scenario, "q", 1));
        assert_ne!(
            first,
            hash(&json!({ "topology": { "path": "map" } }), "p", 1)
        );
        fs::write(folder.path().join("map.txt"), "two").unwrap();
        assert_ne!(first, hash(&scenario, "p", 1), "the map changed");
    }
}
