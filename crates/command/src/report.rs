//! What commands tell: lines for people, and a statistics file for programs.

use core::fmt::Display;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use chrono::{DateTime, Local, SecondsFormat, Utc};
use namecast_units::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::standard_error;

/// A time by the calendar, in UTC.
fn calendar(time: Timestamp) -> DateTime<Utc> {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

/// A time as people read it: by the clock of this machine's time zone, and how far that is from UTC. `--from` reads it, too.
pub fn local(time: Timestamp) -> String {
    let time = calendar(time).with_timezone(&Local);
    time.format("%Y-%m-%d %H:%M:%S %:z").to_string()
}

/// A time as programs read it: by RFC 3339, in UTC.
pub fn rfc3339(time: Timestamp) -> String {
    calendar(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Whoever read standard output has left. A program that prints to a pipe ends quietly then, and with success: `head` has
/// had enough.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads what is printed")]
pub struct OutputClosed;

/// Prints to standard output.
///
/// # Errors
/// [`OutputClosed`], or that nothing can be written, to a full disk for example.
pub fn print(text: impl Display) -> anyhow::Result<()> {
    print_bytes(text.to_string().as_bytes())
}

/// Prints what need not be text to standard output.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(OutputClosed.into()),
        done => done.context("cannot write to standard output"),
    }
}

/// Prints a line to standard output.
///
/// # Errors
/// As [`print`](fn@print).
pub fn print_line(line: impl Display) -> anyhow::Result<()> {
    print(format_args!("{line}\n"))
}

/// An error and its causes, each once: errors of libraries often name their cause themselves.
pub fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Prints a line to standard error, where nobody has to listen.
pub fn print_error(line: impl Display) {
    let _ = standard_error::writer().write_all(format!("{line}\n").as_bytes());
}

/// A line of text that may come from the network, with all that would not be text in a terminal written as `\u{1b}`: control
/// characters, line breaks, and what changes the direction of writing.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, is_harmful)
}

/// Text of several lines, some of which may come from the network: like a line's, except that line breaks stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| character != '\n' && is_harmful(character))
}

fn escape(text: &str, is_harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match is_harmful(character) {
            true => escaped.extend(character.escape_unicode()),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a character shows as something else than itself: C0, DEL and C1, which terminals obey; line and paragraph separators;
/// marks, embeddings, overrides and isolates of bidirectional text, which show characters in another order.
pub const fn is_harmful(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}

/// Writes one JSON object per line.
#[derive(Debug)]
pub struct StatsFile(Option<BufWriter<File>>);

impl StatsFile {
    /// Makes the file; without a path, everything written is thrown away.
    pub fn create(path: Option<&Path>) -> anyhow::Result<Self> {
        let file = path.map(|path| {
            File::create(path).with_context(|| {
                format!(
                    "cannot write statistics to {}: name another file with --stats",
                    path.display()
                )
            })
        });
        Ok(Self(file.transpose()?.map(BufWriter::new)))
    }

    /// Appends one object; the last one of a run is marked.
    pub fn write(&mut self, stats: &impl Serialize, is_final: bool) -> anyhow::Result<()> {
        let Some(file) = &mut self.0 else {
            return Ok(());
        };
        let mut object = serde_json::to_value(stats)?;
        if let Value::Object(fields) = &mut object {
            fields.insert("final".to_owned(), Value::Bool(is_final));
        }
        writeln!(file, "{object}").context("cannot write statistics")?;
        file.flush().context("cannot write statistics")
    }
}

/// One line that is written over while things change, on standard error.
#[derive(Debug)]
pub struct ProgressLine {
    enabled: bool,
    shown: usize,
    said: String,
}

impl ProgressLine {
    /// A line; a disabled one shows nothing at all, one on something else than a terminal only what stays.
    pub const fn new(enabled: bool) -> Self {
        Self {
            enabled,
            shown: 0,
            said: String::new(),
        }
    }

    /// Shows `text` in place of what was there.
    pub fn show(&mut self, text: &str) {
        let text = printable(text);
        if self.enabled && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            let width = text.chars().count();
            let blank = self.shown.saturating_sub(width);
            // Nobody has to listen.
            let line = format!("\r{text}{:blank$}", "");
            let _ = standard_error::writer().write_all(line.as_bytes());
            self.shown = width;
        }
    }

    /// Prints a line that stays, unless it is the one printed last.
    pub fn say_once(&mut self, text: &str) {
        if self.said != text {
            self.say(text);
        }
    }

    /// Prints a line that stays.
    pub fn say(&mut self, text: &str) {
        if self.enabled {
            self.say_error(text);
        }
    }

    /// Prints a line that stays, also for those who want to hear of errors only.
    pub fn say_error(&mut self, text: &str) {
        self.show("");
        let return_to_start = if self.shown > 0 { "\r" } else { "" };
        print_error(format_args!("{return_to_start}{}", printable(text)));
        self.shown = 0;
        text.clone_into(&mut self.said);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.enabled && self.shown > 0 {
            print_error("");
        }
    }
}

/// Rows below a head, in columns.
pub fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let head = head.map(str::to_owned);
    let rows: Vec<_> = core::iter::once(head).chain(rows).collect();
    columns(&rows)
}

/// Cells in columns that are as wide as they must be; each is a line of [`printable`] text.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let printable = |row: &[String; N]| row.each_ref().map(|cell| printable(cell).into_owned());
    let rows: Vec<_> = rows.iter().map(printable).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(cell);
            text.push_str(&" ".repeat(width + 2 - cell.chars().count()));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_names_itself_is_named_once() {
        let cause = anyhow::anyhow!("disk full");
        let named = cause.context("cannot write x: disk full");
        assert_eq!(causes(&named), "cannot write x: disk full");
        let apart = anyhow::anyhow!("disk full").context("cannot write x");
        assert_eq!(
            causes(&apart.context("no copy")),
            "no copy: cannot write x: disk full"
        );
    }

    /// Every character there is: what is escaped is what terminals obey or what turns the direction, and nothing else.
    #[test]
    fn each_character_is_printed_or_escaped() {
        let turns = [0x61c, 0x200e, 0x200f, 0x2028, 0x2029];
        for character in char::MIN..=char::MAX {
            let code = u32::from(character);
            let is_harmful = character.is_control()
                || turns.contains(&code)
                || (0x202a..=0x202e).contains(&code)
                || (0x2066..=0x2069).contains(&code);
            let text = format!("a{character}b");
            let expected = match is_harmful {
                true => format!("a\\u{{{code:x}}}b"),
                false => text.clone(),
            };
            assert_eq!(printable(&text), expected);
            let lines = printable_lines(&text);
            let expected = if character == '\n' { &text } else { &expected };
            assert_eq!(&*lines, expected.as_str());
        }
    }

    #[test]
    fn a_table_keeps_to_its_rows() {
        let row = ["\u{1b}[2J\nx".to_owned(), "\u{202e}é".to_owned()];
        assert_eq!(
            table(["name", "what"], [row]),
            "name             what\n\\u{1b}[2J\\u{a}x  \\u{202e}é\n"
        );
    }
}
