//! Positions as lines of JSON.

use namecast_units::Timestamp;

use super::person::{Person, TrackError};

/// Longest line, in octets.
pub const MAX_LINE: usize = 65_536;

/// A line that was refused.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {error}")]
pub struct LineError {
    /// Number of the line, from 1.
    pub line: u64,
    /// The problem.
    pub error: TrackError,
}

/// Cuts octets into lines, and reads a person from each.
#[derive(Debug, Default)]
pub struct Lines {
    line: u64,
    /// The start of a line, cut at one octet more than [`MAX_LINE`].
    start: Vec<u8>,
}

impl Lines {
    /// Reads the lines that end in `octets`; empty ones are passed over. A person without a time was measured `now`.
    pub fn read(&mut self, octets: &[u8], now: Timestamp) -> Vec<Result<Person, LineError>> {
        let mut read = Vec::new();
        let mut rest = octets;
        while let Some(end) = rest.iter().position(|octet| *octet == b'\n') {
            self.append(&rest[..end]);
            read.extend(self.finish(now));
            rest = &rest[end + 1..];
        }
        self.append(rest);
        read
    }

    /// Reads the last line, which may lack its end.
    pub fn finish(&mut self, now: Timestamp) -> Option<Result<Person, LineError>> {
        self.line += 1;
        let line = core::mem::take(&mut self.start);
        let text = line.trim_ascii();
        let person = match line.len() {
            0..=MAX_LINE if text.is_empty() => return None,
            0..=MAX_LINE => Person::from_json(text, now),
            _ => Err(TrackError::TooLong(MAX_LINE)),
        };
        let line = self.line;
        Some(person.map_err(|error| LineError { line, error }))
    }

    fn append(&mut self, octets: &[u8]) {
        let room = (MAX_LINE + 1).saturating_sub(self.start.len());
        self.start
            .extend_from_slice(&octets[..octets.len().min(room)]);
    }
}
