//! Schedules as text.

use namecast_units::{Bitrate, Duration};
use serde::{Deserialize, Serialize};

use super::{MAX_ENTRIES, Schedule, ScheduleError};

/// How a schedule is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Each line is the time of one delivery opportunity in whole milliseconds; lines may be equal.
    Mahimahi,
    /// Each line is `seconds,bits-per-second`, perhaps with this very line first.
    Csv,
}

/// A line that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TraceError {
    /// The line, from 1; the last one if there are too few.
    pub line: usize,
    /// What was found, and what was expected.
    pub problem: String,
}

/// What a CSV file may begin with.
const HEADER: &str = "seconds,bits-per-second";

impl Schedule {
    /// Reads a schedule. Without a format, a comma in the first line that counts shows CSV. Empty lines and those that begin
    /// with `#` do not count.
    ///
    /// # Errors
    /// The first line that is wrong. There may be at most [`MAX_ENTRIES`](super::MAX_ENTRIES) lines that count.
    pub fn parse(text: &str, format: Option<TraceFormat>) -> Result<Self, TraceError> {
        let numbered = text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line.trim()));
        let mut lines = numbered
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .peekable();
        let guess = match lines.peek() {
            Some((_, first)) if first.contains(',') => TraceFormat::Csv,
            _ => TraceFormat::Mahimahi,
        };
        let mut places = Vec::new();
        let result = match format.unwrap_or(guess) {
            TraceFormat::Mahimahi => {
                let times = read(lines, &mut places, delivery)?;
                Self::from_deliveries(times)
            }
            TraceFormat::Csv => {
                lines.next_if(|(_, first)| first.eq_ignore_ascii_case(HEADER));
                Self::from_rates(&read(lines, &mut places, rate)?)
            }
        };
        result.map_err(|ScheduleError { entry, problem }| {
            let place = entry.map_or_else(|| places.last(), |entry| places.get(entry));
            TraceError {
                line: place.map_or(1, |&line| line as usize),
                problem: problem.to_owned(),
            }
        })
    }
}

/// Reads line by line, and notes which line each entry is from.
fn read<'a, T>(
    lines: impl Iterator<Item = (usize, &'a str)>,
    places: &mut Vec<u32>,
    entry: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, TraceError> {
    let mut entries = Vec::new();
    for (line, text) in lines {
        let wrong = |problem| TraceError { line, problem };
        if entries.len() == MAX_ENTRIES {
            return Err(wrong(format!("expected at most {MAX_ENTRIES} lines")));
        }
        entries.push(entry(text).map_err(wrong)?);
        places.push(u32::try_from(line).unwrap_or(u32::MAX));
    }
    Ok(entries)
}

fn delivery(text: &str) -> Result<u32, String> {
    let time = text.parse();
    time.map_err(|_| format!("found '{text}', expected whole milliseconds"))
}

fn rate(text: &str) -> Result<(Duration, Bitrate), String> {
    let number = |part: &str| {
        let number = part.trim().parse::<f64>().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let fields = text.split_once(',').and_then(|(seconds, bits)| {
        let at = Duration::try_from_secs_f64(number(seconds)?).ok()?;
        // A cast saturates, and the schedule refuses what is too large.
        Some((at, Bitrate::bps(number(bits)?.round() as u64)))
    });
    fields.ok_or_else(|| format!("found '{text}', expected seconds,bits-per-second"))
}
