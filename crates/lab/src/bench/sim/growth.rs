//! What more pending events cost: dumbbells of ever more flows at one rate in all, beside the logarithm of those events.

use namecast_command::report::print_line;
use serde::Serialize;

use super::{BenchSim, Figures, in_own_process, scenarios};

/// Flows of the dumbbells, which are the last scenarios.
pub(super) const FLOWS: [usize; 3] = [8, 128, 2_048];
/// Times that each is run, in turn, so that a slow phase of the machine falls on all.
const ROUNDS: usize = 5;

/// A dumbbell beside the one with the fewest flows.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Growth {
    pending_events: usize,
    /// Processor time of a hop, in microseconds.
    hop_us: f64,
    /// The same, over that of the dumbbell with the fewest flows.
    cost_ratio: f64,
    /// Logarithm of the pending events over that of the dumbbell with the fewest flows: no more should a hop cost.
    log_ratio: f64,
}

/// Each scenario beside the first.
pub(super) fn growth(scenarios: &[Figures]) -> Vec<Growth> {
    let hop_us = |it: &Figures| it.cpu_seconds / it.hops as f64 * 1e6;
    let log = |it: &Figures| (it.pending_events as f64).ln();
    let Some(first) = scenarios.first() else {
        return Vec::new();
    };
    let rows = scenarios.iter().map(|it| Growth {
        pending_events: it.pending_events,
        hop_us: hop_us(it),
        cost_ratio: hop_us(it) / hop_us(first),
        log_ratio: log(it) / log(first),
    });
    rows.collect()
}

/// Runs the dumbbells in turn, and prints the median of each figure.
pub(super) fn run(arguments: &BenchSim) -> anyhow::Result<()> {
    let count = scenarios(arguments)?.len();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let places = count - FLOWS.len()..count;
        let figures: Result<Vec<_>, _> = places
            .map(|place| in_own_process(arguments, place))
            .collect();
        rounds.push(growth(&figures?));
    }
    let rows = medians(&rounds);
    if arguments.json {
        print_line(serde_json::to_string_pretty(&rows)?)?;
    } else {
        print(&rows)?;
    }
    Ok(())
}

/// The median of each figure over the rounds.
fn medians(rounds: &[Vec<Growth>]) -> Vec<Growth> {
    let median = |place: usize, figure: fn(&Growth) -> f64| {
        let mut all: Vec<_> = rounds.iter().map(|round| figure(&round[place])).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let first = rounds.first().into_iter().flatten().enumerate();
    let rows = first.map(|(place, row)| Growth {
        pending_events: row.pending_events,
        hop_us: median(place, |row| row.hop_us),
        cost_ratio: median(place, |row| row.cost_ratio),
        log_ratio: row.log_ratio,
    });
    rows.collect()
}

/// Prints rows as a table.
pub(super) fn print(rows: &[Growth]) -> anyhow::Result<()> {
    print_line(format_args!(
        "\n{:>14} {:>9} {:>10} {:>14}",
        "pending events", "us a hop", "times", "times by log"
    ))?;
    for row in rows {
        print_line(format_args!(
            "{:>14} {:>9.2} {:>10.2} {:>14.2}",
            row.pending_events, row.hop_us, row.cost_ratio, row.log_ratio
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(pending_events: usize, cpu_seconds: f64) -> Figures {
        Figures {
            hops: 1_000_000,
            cpu_seconds,
            pending_events,
            ..Figures::default()
        }
    }

    /// 100 has twice the logarithm of 10: 2.30 and 4.61. Of 3, 1 and 2 times as long, 2 is in the middle.
    #[test]
    fn costs_stand_beside_the_logarithm_of_the_events() {
        let round = |times: f64| growth(&[figures(10, 0.5), figures(100, 0.5 * times)]);
        let rows = medians(&[round(3.0), round(1.0), round(2.0)]);
        let expected = [(10, 0.5, 1.0, 1.0), (100, 1.0, 2.0, 2.0)];
        assert_eq!(rows.len(), 2);
        for (row, (events, hop_us, cost, log)) in rows.iter().zip(expected) {
            assert_eq!(row.pending_events, events);
            for (is, should) in [
                (row.hop_us, hop_us),
                (row.cost_ratio, cost),
                (row.log_ratio, log),
            ] {
                assert!((is - should).abs() < 1e-9, "{row:?}");
            }
        }
    }
}
