//! Runs experiments: every point with every seed, on all processors, each run once.
//!
//! ```text
//!  files ─▶ points × seeds ─▶ runs, named by what they are ─┬─ kept from before ─┐
//!                                                           └─ workers ─▶ .runs ─┴─▶ summary, tables, figures
//! ```
//!
//! What comes out depends on files and seed only: workers take runs in any order, but results are put together by place.
//! Runs in real time go one by one beside them, with workers that give way; one that was disturbed all the same is run again alone.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use rayon::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;

use namecast_command::source::Problems;

use super::laboratory::{Laboratory, Refusal};
use super::measured::Measured;
use super::output::{self, Output};
use super::plan::{Experiment, Point};
use super::progress::Progress;
use super::replay::Replay;
use super::store::{Absent, Identity, Record, Spent, Store, StoreLimits};
use super::summary::{Asked, Summary, usual_runs};
use crate::priority::give_way;

/// How to run.
#[derive(Clone, Debug)]
pub struct RunConfig {
    /// Where results go.
    pub out: PathBuf,
    /// From which the seeds of all runs follow, by [`run_seed`].
    pub seed: u64,
    /// Runs of each point, if not as many as its file says.
    pub runs: Option<u32>,
    /// Threads, if not one for each processor.
    pub threads: Option<usize>,
    /// Shorter and fewer runs, of which nothing is claimed.
    pub quick: bool,
    /// Does not use what was finished before.
    pub fresh: bool,
    /// Digest of the program: results of another one are not used.
    pub program: String,
    /// Bounds of what is kept of a run.
    pub limits: StoreLimits,
}

/// Why nothing was run, or not all of it.
#[derive(Debug, Error)]
pub enum RunError {
    /// The files are wrong.
    #[error(transparent)]
    Files(#[from] Problems),
    /// Results cannot be written.
    #[error("cannot use {path}: {error}: name another folder with --out", path = .path.display())]
    Folder {
        /// Which folder.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The system gives no threads.
    #[error("the system gives no threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Someone wanted an end.
    #[error("interrupted: {kept} of {all} runs are kept; the same command goes on from there")]
    Interrupted {
        /// Runs that are finished.
        kept: usize,
        /// Runs that were wanted.
        all: usize,
    },
}

/// What came of one experiment.
#[derive(Debug)]
pub struct Finished {
    /// Its name.
    pub id: String,
    /// What it found, or why it found nothing.
    pub result: Result<Summary, String>,
}

/// The seed of run `index` (from 0) where the command line says `seed`: the output function of SplitMix64 with that state.
///
/// The same for all points and experiments: what differs between two points then is not chance.
pub fn run_seed(seed: u64, index: u32) -> u64 {
    /// The golden ratio, as SplitMix64 steps.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = seed.wrapping_add(STEP.wrapping_mul(u64::from(index) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Runs `experiments` and writes what they found. Ends early once `stop` is set.
///
/// # Errors
/// A file is wrong, in which case nothing is run; or see [`RunError`]. What goes wrong with one experiment only is in its [`Finished`].
pub fn run<L: Laboratory>(
    laboratory: &L,
    experiments: &[Experiment<'_>],
    config: &RunConfig,
    stop: &AtomicBool,
    progress: &Progress,
) -> Result<Vec<Finished>, RunError> {
    let folder = |error| RunError::Folder {
        path: config.out.clone(),
        error,
    };
    let store = Store::open(&config.out).map_err(folder)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(config.threads.unwrap_or(0))
        .build()?;
    let plan = pool.install(|| Plan::new(laboratory, experiments, config))?;
    for remark in &plan.remarks {
        progress.warn(remark);
    }
    let session = Session {
        laboratory,
        plan,
        config,
        store,
        stop,
        progress,
    };
    let kept = pool.install(|| session.load_kept());
    session.progress.begin(session.plan.jobs.len() - kept, kept);
    for index in 0..session.plan.experiments.len() {
        session.finish_if_complete(index, 0);
    }
    let next = AtomicUsize::new(0);
    pool.in_place_scope(|scope| {
        scope.spawn_broadcast(|_, _| session.work(&next));
        session.work_in_real_time();
    });
    // What was disturbed beside the others has the machine for itself now.
    session.work_in_real_time();
    session.progress.end();
    session.into_finished()
}

/// All that is to be done.
struct Plan<'a, 'l, S> {
    experiments: Vec<Planned<'a, 'l, S>>,
    jobs: Vec<Job>,
    /// Warnings about parts of scenario files that are ignored.
    remarks: BTreeSet<String>,
}

struct Planned<'a, 'l, S> {
    experiment: &'a Experiment<'l>,
    points: Vec<Point<S>>,
    runs: u32,
    /// Index of the job of each run: those of the first point, then those of the second, …
    jobs: Vec<usize>,
    /// Jobs that are not done yet.
    left: AtomicUsize,
    finished: OnceLock<Result<Summary, String>>,
}

impl<S> Planned<'_, '_, S> {
    /// The cheapest first run of a point, out of the records of all runs.
    fn cheapest(&self, records: &[&Record]) -> Option<Replay> {
        let firsts = records.chunks(self.runs as usize).zip(&self.points);
        let firsts = firsts.filter(|(_, point)| !point.takes_real_time);
        let (records, point) =
            firsts.min_by(|(a, _), (b, _)| a[0].cpu_seconds.total_cmp(&b[0].cpu_seconds))?;
        Some(Replay {
            point: point.labels.join("/"),
            seed: records[0].seed,
            cpu_seconds: records[0].cpu_seconds,
            metrics: records[0].metrics.clone(),
        })
    }
}

/// One run, for all experiments that want it.
struct Job {
    hash: String,
    seed: u64,
    /// Who runs it: experiment and point.
    owner: (usize, usize),
    /// Experiments that wait for it, each once.
    wanted_by: Vec<usize>,
    takes_real_time: bool,
    result: OnceLock<Result<Record, String>>,
}

impl<'a, 'l, S: Send> Plan<'a, 'l, S> {
    fn new<L: Laboratory<Scenario = S>>(
        laboratory: &L,
        experiments: &'a [Experiment<'l>],
        config: &RunConfig,
    ) -> Result<Self, Problems> {
        let points: Vec<Result<Vec<Point<S>>, Problems>> = experiments
            .par_iter()
            .map(|experiment| {
                // A file that is wrong in its other form is wrong, too.
                experiment.points(laboratory, !config.quick)?;
                experiment.points(laboratory, config.quick)
            })
            .collect();
        let mut problems = Vec::new();
        let mut plan = Self {
            experiments: Vec::new(),
            jobs: Vec::new(),
            remarks: BTreeSet::new(),
        };
        let mut by_hash = BTreeMap::new();
        for (experiment, points) in experiments.iter().zip(points) {
            match points {
                Ok(points) => plan.add(experiment, points, config, &mut by_hash),
                Err(Problems(more)) => problems.extend(more),
            }
        }
        if problems.is_empty() {
            Ok(plan)
        } else {
            Err(Problems(problems))
        }
    }

    fn add(
        &mut self,
        experiment: &'a Experiment<'l>,
        points: Vec<Point<S>>,
        config: &RunConfig,
        by_hash: &mut BTreeMap<String, usize>,
    ) {
        let own = self.experiments.len();
        let runs = config
            .runs
            .unwrap_or_else(|| usual_runs(experiment, config.quick));
        let remarks = points
            .iter()
            .flat_map(|point| point.remarks.iter().cloned());
        self.remarks.extend(remarks);
        let mut jobs = Vec::new();
        for (index, point) in points.iter().enumerate() {
            let identity = Identity {
                scenario: &point.canonical,
                base: &experiment.base,
                program: &config.program,
            };
            for run in 0..runs {
                let seed = run_seed(config.seed, run);
                let hash = identity.hash(seed);
                let job = *by_hash.entry(hash.clone()).or_insert(self.jobs.len());
                if job == self.jobs.len() {
                    self.jobs.push(Job {
                        hash,
                        seed,
                        owner: (own, index),
                        wanted_by: Vec::new(),
                        takes_real_time: point.takes_real_time,
                        result: OnceLock::new(),
                    });
                }
                if self.jobs[job].wanted_by.last() != Some(&own) {
                    self.jobs[job].wanted_by.push(own);
                }
                jobs.push(job);
            }
        }
        let distinct = self
            .jobs
            .iter()
            .filter(|job| job.wanted_by.last() == Some(&own));
        self.experiments.push(Planned {
            experiment,
            points,
            runs,
            left: AtomicUsize::new(distinct.count()),
            jobs,
            finished: OnceLock::new(),
        });
    }
}

struct Session<'a, 'l, L: Laboratory> {
    laboratory: &'a L,
    plan: Plan<'a, 'l, L::Scenario>,
    config: &'a RunConfig,
    store: Store,
    stop: &'a AtomicBool,
    progress: &'a Progress,
}

impl<L: Laboratory> Session<'_, '_, L> {
    /// Looks for results from before. Returns how many there are.
    fn load_kept(&self) -> usize {
        if self.config.fresh {
            return 0;
        }
        let load = |job: &&Job| match self.store.load_brief(&job.hash) {
            Ok(record) if record.is_disturbed() => false,
            Ok(record) => {
                for &experiment in &job.wanted_by {
                    self.plan.experiments[experiment]
                        .left
                        .fetch_sub(1, Ordering::AcqRel);
                }
                job.result.set(Ok(record)).is_ok()
            }
            Err(Absent::Never) => false,
            Err(Absent::Damaged(why)) => {
                let path = self.store.path(&job.hash);
                let path = path.display();
                self.progress
                    .warn(&format!("{path} is damaged and run again: {why}"));
                false
            }
        };
        self.plan.jobs.par_iter().filter(load).count()
    }

    /// Does jobs until there are none left, in the order of the plan, so that experiments are finished one after another.
    fn work(&self, next: &AtomicUsize) {
        if self.waits_for(|job| job.takes_real_time) {
            // Without it, runs in real time are more likely to be disturbed, and known to be.
            let _ = give_way();
        }
        while !self.stop.load(Ordering::Relaxed) {
            let Some(job) = self.plan.jobs.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            // Only whoever took its number gets here.
            if !job.takes_real_time && job.result.get().is_none() {
                self.conclude(job, self.carry_out(job));
            }
        }
    }

    /// Does the jobs that take real time, one after the other. One that was disturbed beside others is left for later.
    fn work_in_real_time(&self) {
        for job in self.plan.jobs.iter().filter(|job| job.takes_real_time) {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            if job.result.get().is_some() {
                continue;
            }
            let has_company = self.waits_for(|job| !job.takes_real_time);
            let result = self.carry_out(job);
            let is_disturbed = result.as_ref().is_ok_and(Record::is_disturbed);
            if !(is_disturbed && has_company) {
                self.conclude(job, result);
            }
        }
    }

    /// Whether a job of this kind is not done yet.
    fn waits_for(&self, kind: impl Fn(&Job) -> bool) -> bool {
        let mut jobs = self.plan.jobs.iter();
        jobs.any(|job| kind(job) && job.result.get().is_none())
    }

    /// Records what came of a job.
    fn conclude(&self, job: &Job, result: Result<Record, String>) {
        let (owner, _) = job.owner;
        let id = &self.plan.experiments[owner].experiment.id;
        if result.as_ref().is_ok_and(Record::is_disturbed) {
            let warning = format!("{id}: a run was disturbed; the same command runs it again");
            self.progress.warn(&warning);
        }
        self.progress.done(id);
        let done = job.result.set(result);
        debug_assert!(done.is_ok(), "a job is done once");
        for &experiment in &job.wanted_by {
            self.finish_if_complete(experiment, 1);
        }
    }

    fn carry_out(&self, job: &Job) -> Result<Record, String> {
        let (experiment, point) = job.owner;
        let planned = &self.plan.experiments[experiment];
        let point = &planned.points[point];
        let base = &planned.experiment.base;
        let (begun, cpu_begun) = (Instant::now(), thread_time());
        let run = || self.laboratory.run(&point.scenario, base, job.seed);
        let outcome = panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| {
            let message = format!("the program failed: {}", text_of(&*payload));
            Err(Refusal::from(message))
        });
        let spent = Spent {
            wall: begun.elapsed().as_secs_f64(),
            cpu: thread_time() - cpu_begun,
        };
        let record = outcome
            .map_err(|refusal| refusal.to_string())
            .and_then(|outcome| {
                Record::new(&job.hash, job.seed, outcome, spent, &self.config.limits)
            })
            .map_err(|why| {
                format!(
                    "point {}, seed {}: {why}",
                    point.labels.join(", "),
                    job.seed
                )
            })?;
        self.store
            .save(&record)
            .map_err(|error| format!("{}: {error}", self.store.path(&job.hash).display()))?;
        // Figures that show series read them from the file again, so that memory does not grow with the runs.
        Ok(record.without_series())
    }

    /// Records that `done` more of an experiment's jobs are, and writes what it found after the last one.
    fn finish_if_complete(&self, index: usize, done: usize) {
        let planned = &self.plan.experiments[index];
        let left = planned.left.fetch_sub(done, Ordering::AcqRel) - done;
        if left > 0 || planned.finished.get().is_some() {
            return;
        }
        let result = self.finish(planned);
        match &result {
            Ok(summary) => self.progress.say(&output::verdict(summary)),
            Err(why) => self.progress.warn(why),
        }
        // Only whoever did the last job gets here.
        let _ = planned.finished.set(result);
    }

    fn finish(&self, planned: &Planned<'_, '_, L::Scenario>) -> Result<Summary, String> {
        let records = planned.jobs.iter().map(|&job| {
            let result = self.plan.jobs[job].result.get();
            result
                .expect("all its jobs are done")
                .as_ref()
                .map_err(Clone::clone)
        });
        let experiment = planned.experiment;
        let records: Vec<&Record> = records
            .collect::<Result<_, _>>()
            .map_err(|why| format!("{}: {why}", experiment.id))?;
        let runs = planned.runs as usize;
        let by_point = records.chunks(runs.max(1)).zip(&planned.points);
        let measured = Measured::new(by_point.map(|(records, point)| {
            let metrics = records.iter().map(|record| &record.metrics).collect();
            (point.labels.clone(), metrics)
        }));
        let hashes = planned
            .jobs
            .iter()
            .map(|&job| self.plan.jobs[job].hash.as_str());
        let output = Output {
            experiment,
            measured: &measured,
            asked: Asked {
                seed: self.config.seed,
                runs: planned.runs,
                quick: self.config.quick,
            },
            store: &self.store,
            hashes: hashes.collect(),
            spent: records.iter().fold(Spent::default(), |sum, record| Spent {
                wall: sum.wall + record.wall_seconds,
                cpu: sum.cpu + record.cpu_seconds,
            }),
            replay: planned.cheapest(&records),
        };
        output.write(&self.config.out)
    }

    fn into_finished(self) -> Result<Vec<Finished>, RunError> {
        let done = |job: &&Job| job.result.get().is_some();
        let kept = self.plan.jobs.iter().filter(done).count();
        let all = self.plan.jobs.len();
        let mut finished = Vec::new();
        for planned in self.plan.experiments {
            let Some(result) = planned.finished.into_inner() else {
                return Err(RunError::Interrupted { kept, all });
            };
            let id = planned.experiment.id.clone();
            finished.push(Finished { id, result });
        }
        Ok(finished)
    }
}

/// Processor time of this thread, in seconds.
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it does not say why")
}

/// Digest of a program's file, for [`RunConfig::program`].
///
/// # Errors
/// The file cannot be read.
pub fn program_digest(path: &Path) -> io::Result<String> {
    use sha2::{Digest, Sha256};
    let mut digest = Sha256::new();
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(super::store::hexadecimal(&digest.finalize())),
            octets => digest.update(&buffer[..octets]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of SplitMix64 with state 0, from its authors' code.
    #[test]
    fn seeds_follow_from_the_one_given() {
        assert_eq!(run_seed(0, 0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(run_seed(0, 1), 0x6e78_9e6a_a1b9_65f4);
        assert_ne!(run_seed(1, 0), run_seed(0, 0));
    }
}
