//! A program that is measured: a process of its own, on a processor of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use namecast_units::Duration;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A running program, which ends with this value.
#[derive(Debug)]
pub(super) struct Measured {
    child: Child,
    /// The relay ends when this does.
    _input: Option<ChildStdin>,
    /// What it prints.
    output: BufReader<ChildStdout>,
}

impl Measured {
    /// Starts `command` on the first `processors` processors, and keeps the calling thread off them if there are others.
    pub(super) fn start(mut command: Command, processors: usize) -> anyhow::Result<Self> {
        let all = sched_getaffinity(None)?;
        let (theirs, ours) = divide(&all, processors);
        sched_setaffinity(None, &theirs)?;
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        sched_setaffinity(None, &ours)?;
        let mut child = spawned.with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("no output")?;
        Ok(Self {
            _input: child.stdin.take(),
            child,
            output: BufReader::new(output),
        })
    }

    /// The next line that it prints.
    pub(super) fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line)
    }

    /// Processor time of all its threads so far.
    pub(super) fn processor_time(&self) -> anyhow::Result<Duration> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let mut nanos = 0;
        for task in std::fs::read_dir(tasks)? {
            let path = task?.path().join("schedstat");
            let times = std::fs::read_to_string(path).unwrap_or_default();
            nanos += times
                .split_whitespace()
                .next()
                .and_then(|first| first.parse::<u64>().ok())
                .unwrap_or_default();
        }
        Ok(Duration::from_nanos(nanos))
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first so many processors, and the others; all for both if there are no others.
fn divide(all: &CpuSet, first: usize) -> (CpuSet, CpuSet) {
    let (mut theirs, mut ours) = (CpuSet::new(), CpuSet::new());
    let places = (0..CpuSet::MAX_CPU).filter(|&place| all.is_set(place));
    for (rank, place) in places.enumerate() {
        match rank < first {
            true => theirs.set(place),
            false => ours.set(place),
        }
    }
    match ours.count() {
        0 => (theirs, *all),
        _ => (theirs, ours),
    }
}
