//! What commands tell: lines for people, and a statistics file for programs.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;

/// Writes one JSON object per line.
#[derive(Debug)]
pub(crate) struct StatsFile(Option<BufWriter<File>>);

impl StatsFile {
    /// Makes the file; without a path, everything written is thrown away.
    pub(crate) fn create(path: Option<&Path>) -> anyhow::Result<Self> {
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
    pub(crate) fn write(&mut self, stats: &impl Serialize, is_final: bool) -> anyhow::Result<()> {
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
pub(crate) struct ProgressLine {
    enabled: bool,
    shown: usize,
    said: String,
}

impl ProgressLine {
    /// A line; a disabled one shows nothing at all, one on something else than a terminal only what stays.
    pub(crate) const fn new(enabled: bool) -> Self {
        Self {
            enabled,
            shown: 0,
            said: String::new(),
        }
    }

    /// Shows `text` in place of what was there.
    pub(crate) fn show(&mut self, text: &str) {
        if self.enabled && std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            let width = text.chars().count();
            let blank = self.shown.saturating_sub(width);
            eprint!("\r{text}{:blank$}", "");
            self.shown = width;
        }
    }

    /// Prints a line that stays, unless it is the one printed last.
    pub(crate) fn say_once(&mut self, text: &str) {
        if self.said != text {
            self.say(text);
        }
    }

    /// Prints a line that stays.
    pub(crate) fn say(&mut self, text: &str) {
        if self.enabled {
            self.show("");
            let return_to_start = if self.shown > 0 { "\r" } else { "" };
            eprintln!("{return_to_start}{text}");
            self.shown = 0;
            text.clone_into(&mut self.said);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.enabled && self.shown > 0 {
            eprintln!();
        }
    }
}

/// Rows below a head, in columns.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let head = head.map(str::to_owned);
    let rows: Vec<_> = core::iter::once(head).chain(rows).collect();
    columns(&rows)
}

/// Cells in columns that are as wide as they must be.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(cell);
            text.push_str(&" ".repeat(width + 2 - cell.chars().count()));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}
