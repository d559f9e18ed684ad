//! Lines and fields of text files, with the places that errors name.

use std::path::Path;
use std::str::FromStr;

use super::{Limits, TopologyError};

/// Most characters of a file that an error quotes.
const QUOTED: usize = 40;

/// One line of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) file: &'a str,
    /// From 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
}

/// A run of characters between blanks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) line: Line<'a>,
    /// Octets before it in the line.
    pub(super) start: usize,
    pub(super) text: &'a str,
}

/// What a reader passes over, of one kind.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    count: usize,
    /// Line and text of the first.
    first: Option<(usize, String)>,
}

impl Ignored {
    pub(super) fn add(&mut self, line: usize, text: &str) {
        self.count += 1;
        self.first.get_or_insert_with(|| (line, quote(text)));
    }

    /// One sentence about all of `kind`, such as "links of a node to itself"; none if nothing was ignored.
    pub(super) fn remark(&self, file: &str, kind: &str) -> Option<String> {
        let (line, text) = self.first.as_ref()?;
        let count = self.count;
        Some(format!(
            "{file}:{line}: ignored {kind}: {text}, {count} in total"
        ))
    }
}

/// The lines of `text`, numbered.
pub(super) fn lines<'a>(text: &'a str, file: &'a str) -> impl Iterator<Item = Line<'a>> {
    text.lines().enumerate().map(move |(at, text)| Line {
        file,
        number: at + 1,
        text,
    })
}

/// Quotes what was found, but not pages of it, and nothing that moves a terminal's cursor.
pub(super) fn quote(text: &str) -> String {
    let end = text.char_indices().nth(QUOTED).map(|(end, _)| end);
    let start = text[..end.unwrap_or(text.len())].replace(char::is_control, " ");
    let more = if end.is_some() { "…" } else { "" };
    format!("'{start}{more}'")
}

impl<'a> Line<'a> {
    /// What stands between blanks; from a field that starts with `#` on, it is a comment.
    pub(super) fn fields(self) -> Vec<Field<'a>> {
        let mut fields = Vec::new();
        for text in self.text.split_ascii_whitespace() {
            if text.starts_with('#') {
                break;
            }
            let start = text.as_ptr().addr() - self.text.as_ptr().addr();
            fields.push(Field {
                line: self,
                start,
                text,
            });
        }
        fields
    }

    /// An error that concerns the whole line.
    pub(super) fn error(
        self,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> TopologyError {
        self.error_at(None, found, expected)
    }

    /// An error at the octet `start`.
    pub(super) fn error_at(
        self,
        start: Option<usize>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> TopologyError {
        TopologyError::Syntax {
            file: self.file.to_owned(),
            line: self.number,
            column: start.map(|start| self.text[..start].chars().count() + 1),
            found: found.into(),
            expected: expected.into(),
        }
    }
}

impl Field<'_> {
    /// An error that blames this field.
    pub(super) fn error(&self, expected: impl Into<String>) -> TopologyError {
        self.line
            .error_at(Some(self.start), quote(self.text), expected)
    }

    /// The field as a value of type `T`.
    pub(super) fn parse<T: FromStr>(&self, expected: &str) -> Result<T, TopologyError> {
        self.text.parse().map_err(|_| self.error(expected))
    }

    /// The field as a number that is finite; `f64` itself would also read `nan` and `inf`.
    pub(super) fn finite(&self, expected: &str) -> Result<f64, TopologyError> {
        let number: f64 = self.parse(expected)?;
        if number.is_finite() {
            Ok(number)
        } else {
            Err(self.error(expected))
        }
    }
}

/// An error at the end of a file that lacks something.
pub(super) fn end_error(text: &str, file: &str, expected: &str) -> TopologyError {
    TopologyError::Syntax {
        file: file.to_owned(),
        line: text.lines().count().max(1),
        column: None,
        found: "the end of the file".to_owned(),
        expected: expected.to_owned(),
    }
}

/// Reads a file whole.
///
/// # Errors
/// If it cannot be read, is larger than `limits` allow, or is no UTF-8.
pub(super) fn read(path: &Path, limits: &Limits) -> Result<String, TopologyError> {
    let failed = |error| TopologyError::Read {
        file: path.to_path_buf(),
        error,
    };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > limits.file.as_bytes() {
        let expected = format!("at most {}", limits.file);
        let field = format!("size of {}", path.display());
        return Err(TopologyError::value(
            field,
            format!("{size} bytes"),
            expected,
        ));
    }
    let octets = std::fs::read(path).map_err(failed)?;
    String::from_utf8(octets).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..good];
        TopologyError::Syntax {
            file: path.display().to_string(),
            line: before.iter().filter(|&&octet| octet == b'\n').count() + 1,
            column: None,
            found: format!("octet 0x{:02x}", error.as_bytes()[good]),
            expected: "UTF-8 text".to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_know_their_column_and_comments_end_the_line() {
        let line = lines("x\n  ä\tbb # c d\n", "f").nth(1).unwrap();
        let fields = line.fields();
        let texts: Vec<_> = fields.iter().map(|field| field.text).collect();
        assert_eq!(texts, ["ä", "bb"]);
        // Two blanks, ä, a tab: the fifth character, though the sixth octet.
        assert_eq!(
            fields[1].error("a number").to_string(),
            "f:2:5: found 'bb', expected a number"
        );
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for text in ["nan", "inf", "-inf", "1e999", "x"] {
            let line = lines(text, "f").next().unwrap();
            assert!(line.fields()[0].finite("a number").is_err(), "{text}");
        }
        let line = lines("-1.5", "f").next().unwrap();
        let number = line.fields()[0].finite("a number").unwrap();
        assert!((number + 1.5).abs() < f64::EPSILON);
    }

    #[test]
    fn errors_quote_little() {
        assert_eq!(quote(&"ä".repeat(50)), format!("'{}…'", "ä".repeat(40)));
        assert_eq!(quote(&"ä".repeat(40)), format!("'{}'", "ä".repeat(40)));
        assert_eq!(quote("a\t\u{1b}b"), "'a  b'");
    }
}
