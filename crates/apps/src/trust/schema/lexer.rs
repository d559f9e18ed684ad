//! Words of a text.

use super::error::{Place, TextProblem};

/// A word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A pattern: letters, digits and `_`.
    Pattern(&'a str),
    /// A rule, with its `#`.
    Rule(&'a str),
    /// A function, with its `$`.
    Function(&'a str),
    /// What stands between quotation marks.
    Text(&'a str),
    /// `/ : & | { } , ( )` or `<=`.
    Sign(&'static str),
    /// Nothing is left.
    End,
}

impl Token<'_> {
    /// Describes the word for people.
    pub(super) fn described(self) -> String {
        match self {
            Self::Pattern(text) | Self::Rule(text) | Self::Function(text) => format!("'{text}'"),
            Self::Text(text) => format!("\"{text}\""),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Signs; none is the beginning of another.
const SIGNS: [&str; 10] = ["/", ":", "&", "<=", "|", "{", "}", ",", "(", ")"];

/// Reads words one by one.
#[derive(Clone, Debug)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    place: Place,
}

impl<'a> Lexer<'a> {
    /// Reads `text` from its start.
    pub(super) const fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            place: Place { line: 1, column: 1 },
        }
    }

    /// Returns the next word and where it begins.
    pub(super) fn next(&mut self) -> (Place, Result<Token<'a>, TextProblem>) {
        self.skip_blanks();
        (self.place, self.token())
    }

    fn token(&mut self) -> Result<Token<'a>, TextProblem> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token::End);
        };
        if let Some(sign) = SIGNS.into_iter().find(|sign| self.rest.starts_with(sign)) {
            self.take(sign.len());
            return Ok(Token::Sign(sign));
        }
        match first {
            '"' => self.text(),
            '#' | '$' => {
                let word = self.word(1).ok_or(TextProblem::Character(first))?;
                Ok(match first {
                    '#' => Token::Rule(word),
                    _ => Token::Function(word),
                })
            }
            _ => {
                let word = self.word(0).ok_or(TextProblem::Character(first))?;
                Ok(Token::Pattern(word))
            }
        }
    }

    /// A letter or `_`, then letters, digits and `_`, behind `prefix` octets that belong to the word.
    fn word(&mut self, prefix: usize) -> Option<&'a str> {
        let is_part = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'_';
        let body = &self.rest.as_bytes()[prefix..];
        let length = body.iter().take_while(|octet| is_part(octet)).count();
        let is_word = body.first().is_some_and(|first| !first.is_ascii_digit());
        (is_word && length > 0).then(|| self.take(prefix + length))
    }

    /// What stands between quotation marks. A backslash would hide the second one, but components have none.
    fn text(&mut self) -> Result<Token<'a>, TextProblem> {
        let body = &self.rest[1..];
        let end = body.find(['"', '\n']);
        let end = end.filter(|&end| body.as_bytes()[end] == b'"');
        let end = end.ok_or(TextProblem::OpenString)?;
        self.take(end + 2);
        Ok(Token::Text(&body[..end]))
    }

    /// Skips blanks and comments, which begin with `//` and end with the line.
    fn skip_blanks(&mut self) {
        loop {
            let is_blank = |c: char| matches!(c, ' ' | '\t' | '\x0c' | '\r' | '\n');
            let blanks = self.rest.len() - self.rest.trim_start_matches(is_blank).len();
            self.take(blanks);
            if !self.rest.starts_with("//") {
                return;
            }
            self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        for character in taken.chars() {
            if character == '\n' {
                self.place.line += 1;
                self.place.column = 1;
            } else {
                self.place.column += 1;
            }
        }
        self.rest = rest;
        taken
    }
}
