//! A program that is measured: a process of its own, on a processor of its own.

use core::ops::Range;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::super::measure::anonymous;
use anyhow::Context;
use namecast_units::Duration;
use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// What `nice` calls 19.
const LOWEST_PRIORITY: i32 = 19;

/// A running program, which ends with this value.
#[derive(Debug)]
pub(super) struct Measured {
    child: Child,
    /// The relay, and a side of sessions, end when this does.
    input: Option<ChildStdin>,
    /// What it prints.
    output: BufReader<ChildStdout>,
    /// The processors that the thread which started it had before, and has again afterwards.
    all: CpuSet,
    /// The processors that it does not run on.
    others: CpuSet,
}

/// Processor time, to 10 ms.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelTime {
    pub(super) user: Duration,
    pub(super) kernel: Duration,
}

impl Measured {
    /// Starts `command` on the processors with these ranks.
    pub(super) fn start(mut command: Command, ranks: Range<usize>) -> anyhow::Result<Self> {
        let all = sched_getaffinity(None)?;
        let (theirs, others) = divide(&all, &ranks);
        sched_setaffinity(None, &theirs)?;
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        sched_setaffinity(None, &all)?;
        let mut child = spawned.with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("no output")?;
        Ok(Self {
            input: child.stdin.take(),
            child,
            output: BufReader::new(output),
            all,
            others,
        })
    }

    /// Keeps the calling thread off the program's processors, if there are others, as long as the program runs.
    pub(super) fn keep_off(&self) -> anyhow::Result<()> {
        Ok(sched_setaffinity(None, &self.others)?)
    }

    /// The next line that it prints.
    pub(super) fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    /// Writes a line to its input.
    pub(super) fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        let input = self.input.as_mut().context("no input")?;
        Ok(writeln!(input, "{line}")?)
    }

    /// Lets others have its processors first.
    pub(super) fn step_back(&self) -> anyhow::Result<()> {
        for thread in self.thread_times()?.keys() {
            let number = thread.to_str().and_then(|number| number.parse().ok());
            setpriority_process(number.and_then(Pid::from_raw), LOWEST_PRIORITY)?;
        }
        Ok(())
    }

    /// Octets of its resident memory, without those of files.
    pub(super) fn memory(&self) -> anyhow::Result<u64> {
        anonymous(&self.child.id().to_string())
    }

    /// Processor time of all its threads so far.
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        Ok(self.thread_times()?.into_values().sum())
    }

    /// Processor time of all its threads so far, the kernel's for it apart, as the kernel's clock ticks.
    pub(super) fn kernel_time(&self) -> anyhow::Result<KernelTime> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // What stands before may have spaces, within parentheses. Times are the 14th and 15th, the state is the third.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
        let mut next = || anyhow::Ok(times.next().context("no times")??);
        let tick = |count: u64| Duration::from_millis(10 * count);
        Ok(KernelTime {
            user: tick(next()?),
            kernel: tick(next()?),
        })
    }

    /// Processor time of each of its threads so far, by their numbers.
    pub(super) fn thread_times(&self) -> anyhow::Result<BTreeMap<OsString, Duration>> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id()))?;
        let times = tasks.map(|task| {
            let task = task?;
            let path = task.path().join("schedstat");
            let times = std::fs::read_to_string(path).unwrap_or_default();
            let first = times.split_whitespace().next();
            let nanos = first.and_then(|first| first.parse().ok());
            let time = Duration::from_nanos(nanos.unwrap_or_default());
            anyhow::Ok((task.file_name(), time))
        });
        times.collect()
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = sched_setaffinity(None, &self.all);
    }
}

/// The processors that this thread may run on.
pub(super) fn processors() -> anyhow::Result<Vec<usize>> {
    let all = sched_getaffinity(None)?;
    let places = (0..CpuSet::MAX_CPU).filter(|&place| all.is_set(place));
    Ok(places.collect())
}

/// Keeps the calling thread on one processor.
pub(super) fn stay_on(processor: usize) -> anyhow::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor);
    Ok(sched_setaffinity(None, &only)?)
}

/// The processors with these ranks, and the others; all for both if there are no others.
fn divide(all: &CpuSet, ranks: &Range<usize>) -> (CpuSet, CpuSet) {
    let (mut theirs, mut ours) = (CpuSet::new(), CpuSet::new());
    let places = (0..CpuSet::MAX_CPU).filter(|&place| all.is_set(place));
    for (rank, place) in places.enumerate() {
        match ranks.contains(&rank) {
            true => theirs.set(place),
            false => ours.set(place),
        }
    }
    let some = |set: CpuSet| if set.count() == 0 { *all } else { set };
    (some(theirs), some(ours))
}
