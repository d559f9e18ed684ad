//! Where in which file something was written.
//!
//! An experiment may extend another file, and what comes out of both is read as one. So each file gets its own range of offsets,
//! and whatever an offset belongs to, its file and line can be told.

use core::fmt;
use core::ops::Range;

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, as people know it.
    pub path: String,
    /// Line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// Column in characters, from 1; 0 for the line as a whole.
    pub column: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        for number in [self.line, self.column] {
            if number > 0 {
                write!(f, ":{number}")?;
            }
        }
        write!(f, ": {}", self.message)
    }
}

/// All that is wrong with the files that were read, never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The files that one experiment was read from.
#[derive(Clone, Debug, Default)]
pub struct Sources<'l> {
    files: Vec<File<'l>>,
}

#[derive(Clone, Debug)]
struct File<'l> {
    path: &'l str,
    text: &'l str,
    start: usize,
}

impl<'l> Sources<'l> {
    /// Adds a file. Returns the offset of its first octet.
    pub fn add(&mut self, path: &'l str, text: &'l str) -> usize {
        // One apart, so that the end of one file is not the start of the next.
        let start = self
            .files
            .last()
            .map_or(0, |last| last.start + last.text.len() + 1);
        self.files.push(File { path, text, start });
        start
    }

    /// A problem with what was written at `span`.
    pub fn problem(&self, span: Range<usize>, message: impl Into<String>) -> Problem {
        let message = message.into();
        let Some(file) = self
            .files
            .iter()
            .rev()
            .find(|file| file.start <= span.start)
        else {
            return Problem {
                path: String::new(),
                line: 0,
                column: 0,
                message,
            };
        };
        let mut at = (span.start - file.start).min(file.text.len());
        while !file.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &file.text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Problem {
            path: file.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_across_files() {
        let mut sources = Sources::default();
        let first = sources.add("a.toml", "one\ntwo\n");
        let second = sources.add("b.toml", "é = 1\n  x = 2\n");
        assert_eq!((first, second), (0, 9));
        let place = |offset| sources.problem(offset..offset, "odd").to_string();
        assert_eq!(place(0), "a.toml:1:1: odd");
        assert_eq!(place(4), "a.toml:2:1: odd");
        assert_eq!(place(8), "a.toml:3:1: odd");
        assert_eq!(place(9), "b.toml:1:1: odd");
        // "é = 1\n" is seven octets; the x is the third character of its line.
        assert_eq!(place(9 + 7 + 2), "b.toml:2:3: odd");
        // Inside of é, and beyond the end.
        assert_eq!(place(10), "b.toml:1:1: odd");
        assert_eq!(place(1_000), "b.toml:3:1: odd");
    }
}
