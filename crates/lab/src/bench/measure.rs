//! Delays, processor time and memory.

use core::fmt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use namecast_units::Duration;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// Percentiles of some delays, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(in crate::bench) struct Delays {
    pub(in crate::bench) count: usize,
    pub(in crate::bench) min: f64,
    pub(in crate::bench) p50: f64,
    pub(in crate::bench) p90: f64,
    pub(in crate::bench) p99: f64,
    pub(in crate::bench) max: f64,
}

impl Delays {
    /// Sorts delays out; all are zero if there are none.
    pub(in crate::bench) fn new(mut delays: Vec<Duration>) -> Self {
        delays.sort_unstable();
        // The smallest delay that so many percent are not above.
        let at = |percent: usize| {
            let index = (delays.len() * percent).div_ceil(100).saturating_sub(1);
            delays
                .get(index)
                .map_or(0.0, |delay| delay.as_secs_f64() * 1e3)
        };
        Self {
            count: delays.len(),
            min: at(0),
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max: at(100),
        }
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            min,
            p50,
            p90,
            p99,
            max,
        } = self;
        write!(
            f,
            "median {p50:.2} ms, 90 % {p90:.2}, 99 % {p99:.2} ({min:.2} to {max:.2}, of {count})"
        )
    }
}

/// Processor time of this process so far.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) struct Usage(Duration);

impl Usage {
    /// Reads it.
    pub(in crate::bench) fn now() -> anyhow::Result<Self> {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Ok(Self(Duration::try_from(time).context("no processor time")?))
    }

    /// What was used since `earlier`.
    pub(in crate::bench) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Resident memory of this process.
pub(in crate::bench) fn resident_mib() -> anyhow::Result<f64> {
    Ok(memory("self", "VmRSS:")? as f64 / f64::from(1 << 20))
}

/// Octets of resident memory of a process, by its number, that are not those of files: what it allocated and used. How much of
/// a program's own file is resident is the system's choice, and as much as many a table.
#[cfg(target_os = "linux")]
pub(in crate::bench) fn anonymous(process: &str) -> anyhow::Result<u64> {
    memory(process, "RssAnon:")
}

fn memory(process: &str, figure: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.context("no memory figures")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix(figure))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("no memory figures")? * 1_024)
}

/// Processes that wanted to run over the last minute; zero where the system does not tell.
pub(in crate::bench) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// The program that forwards and talks: this one, unless it is a laboratory of one's own and the environment variable `NAMECAST` names
/// another.
pub(in crate::bench) fn namecast() -> std::io::Result<Command> {
    let named = std::env::var_os("NAMECAST").map(PathBuf::from);
    let program = named.map_or_else(std::env::current_exe, Ok)?;
    Ok(Command::new(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1 to 200 ms: half are at most 100, 99 % at most 198.
    #[test]
    fn percentiles_are_the_nearest_rank() {
        let delays = Delays::new((1..=200).rev().map(Duration::from_millis).collect());
        let figures = [delays.min, delays.p50, delays.p90, delays.p99, delays.max];
        for (figure, expected) in figures.into_iter().zip([1.0, 100.0, 180.0, 198.0, 200.0]) {
            assert!((figure - expected).abs() < 1e-9, "{figure}");
        }
        assert_eq!(Delays::new(Vec::new()), Delays::default());
    }
}
