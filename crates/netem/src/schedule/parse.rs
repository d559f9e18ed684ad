//! Schedules as text, read line by line.

use std::io::{self, BufRead, Read};

use namecast_units::{Bitrate, Duration};
use serde::{Deserialize, Serialize};

use super::{MAX_ENTRIES, Schedule, ScheduleError};

/// Octets that a line may have.
const MAX_LINE: u64 = 4_096;
const BITS_PER_MEGABIT: f64 = 1e6;

/// How a schedule is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceFormat {
    /// Each line is the time of one delivery opportunity in whole milliseconds; lines may be equal.
    Mahimahi,
    /// Each line is `seconds,bits-per-second`, perhaps with this very line first.
    Csv,
    /// Each line is a time in seconds, blanks, and a rate in Mbit/s, as Pensieve's traces have it. The schedule begins at the
    /// first time.
    TwoColumn,
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
    /// Reads a schedule from text, as [`read`](Self::read) does.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str, format: Option<TraceFormat>) -> Result<Self, TraceError> {
        Self::read(text.as_bytes(), format)
    }

    /// Reads a schedule. Without a format, a comma in the first line that counts shows CSV, and two fields show two columns.
    /// Empty lines and those that begin with `#` do not count. Memory holds the entries, not the text.
    ///
    /// # Errors
    /// The first line that is wrong or cannot be read. There may be at most [`MAX_ENTRIES`](super::MAX_ENTRIES) lines that
    /// count, of 4096 octets each.
    pub fn read(source: impl BufRead, format: Option<TraceFormat>) -> Result<Self, TraceError> {
        let mut reader = Reader {
            source,
            line: 0,
            buffer: Vec::new(),
            places: Places::default(),
            max_entries: MAX_ENTRIES,
        };
        let first = reader.next_line()?.unwrap_or_default().to_owned();
        let guess = match first.split_ascii_whitespace().count() {
            _ if first.contains(',') => TraceFormat::Csv,
            2 => TraceFormat::TwoColumn,
            _ => TraceFormat::Mahimahi,
        };
        let result = match format.unwrap_or(guess) {
            TraceFormat::Mahimahi => Self::from_deliveries(reader.entries(&first, delivery)?),
            TraceFormat::Csv => {
                let first = match first.eq_ignore_ascii_case(HEADER) {
                    true => reader.next_line()?.unwrap_or_default().to_owned(),
                    false => first,
                };
                Self::from_rates(&reader.entries(&first, rate)?)
            }
            TraceFormat::TwoColumn => {
                let mut rates = reader.entries(&first, columns)?;
                let start = rates.first().map_or(Duration::ZERO, |&(at, _)| at);
                for (at, _) in &mut rates {
                    *at = at.saturating_sub(start);
                }
                Self::from_rates(&rates)
            }
        };
        result.map_err(|ScheduleError { entry, problem }| TraceError {
            line: reader.places.line(entry),
            problem: problem.to_owned(),
        })
    }
}

/// Reads lines that count.
struct Reader<S> {
    source: S,
    /// Lines that were read.
    line: usize,
    buffer: Vec<u8>,
    places: Places,
    max_entries: usize,
}

impl<S: BufRead> Reader<S> {
    /// The next line that counts, without blanks around it.
    fn next_line(&mut self) -> Result<Option<&str>, TraceError> {
        loop {
            self.buffer.clear();
            let mut limited = self.source.by_ref().take(MAX_LINE + 1);
            let read = limited.read_until(b'\n', &mut self.buffer);
            let octets = read.map_err(|error| self.unreadable(&error))?;
            if octets == 0 {
                return Ok(None);
            }
            self.line += 1;
            if octets as u64 > MAX_LINE {
                return Err(self.wrong(format!("expected at most {MAX_LINE} octets in a line")));
            }
            let first = self
                .buffer
                .iter()
                .find(|octet| !octet.is_ascii_whitespace());
            if !matches!(first, None | Some(b'#')) {
                break;
            }
        }
        match core::str::from_utf8(&self.buffer) {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(self.wrong("expected UTF-8 text".to_owned())),
        }
    }

    fn wrong(&self, problem: String) -> TraceError {
        let line = self.line;
        TraceError { line, problem }
    }

    fn unreadable(&self, error: &io::Error) -> TraceError {
        TraceError {
            line: self.line + 1,
            problem: error.to_string(),
        }
    }

    /// Reads the line `first` and those that follow, and notes which line each entry is from. An empty line is the end.
    fn entries<T>(
        &mut self,
        first: &str,
        entry: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, TraceError> {
        let mut entries = Vec::new();
        let mut text = first.to_owned();
        while !text.is_empty() {
            if entries.len() == self.max_entries {
                let problem = format!("expected at most {} lines", self.max_entries);
                return Err(self.wrong(problem));
            }
            let read = entry(&text).map_err(|problem| self.wrong(problem))?;
            self.places.add(entries.len(), self.line);
            entries.push(read);
            text.clear();
            text.push_str(self.next_line()?.unwrap_or_default());
        }
        Ok(entries)
    }
}

/// Which line each entry is from.
#[derive(Default)]
struct Places {
    /// Entry and line wherever lines that do not count are before an entry.
    jumps: Vec<(usize, usize)>,
    last: usize,
}

impl Places {
    fn add(&mut self, entry: usize, line: usize) {
        if self.jumps.is_empty() || line != self.last + 1 {
            self.jumps.push((entry, line));
        }
        self.last = line;
    }

    /// The line of an entry; without one the last that counts, or 1.
    fn line(&self, entry: Option<usize>) -> usize {
        let Some(entry) = entry else {
            return self.last.max(1);
        };
        let after = self.jumps.partition_point(|&(at, _)| at <= entry);
        let place = after.checked_sub(1).map(|before| self.jumps[before]);
        place.map_or(1, |(at, line)| line + entry - at)
    }
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

fn columns(text: &str) -> Result<(Duration, Bitrate), String> {
    let number = |part: &str| {
        let number = part.parse::<f64>().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let mut fields = text.split_ascii_whitespace();
    let entry = match (fields.next(), fields.next(), fields.next()) {
        (Some(seconds), Some(megabits), None) => number(seconds).zip(number(megabits)),
        _ => None,
    };
    let entry = entry.and_then(|(seconds, megabits)| {
        let at = Duration::try_from_secs_f64(seconds).ok()?;
        Some((
            at,
            Bitrate::bps((megabits * BITS_PER_MEGABIT).round() as u64),
        ))
    });
    entry.ok_or_else(|| format!("found '{text}', expected seconds and Mbit/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_bound_on_lines_that_count() {
        let mut reader = Reader {
            source: &b"# three\n1\n\n2\n3\n"[..],
            line: 0,
            buffer: Vec::new(),
            places: Places::default(),
            max_entries: 2,
        };
        let first = reader.next_line().unwrap().unwrap().to_owned();
        let error = reader.entries(&first, delivery).unwrap_err();
        assert_eq!(error.to_string(), "line 5: expected at most 2 lines");
        assert_eq!([0, 1].map(|entry| reader.places.line(Some(entry))), [2, 4]);
    }
}
