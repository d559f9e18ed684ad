//! A text file with rows of fields between tabs.

use core::fmt::Display;
use std::borrow::Cow;
use std::io::{self, BufWriter, Write};

/// Rows to write, and the first error.
#[derive(Debug)]
pub(super) struct Table<W: Write> {
    output: BufWriter<W>,
    error: Option<io::Error>,
}

impl<W: Write> Table<W> {
    /// A table that starts with `header`, a whole line.
    pub(super) fn new(output: W, header: &str) -> Self {
        let mut this = Self {
            output: BufWriter::new(output),
            error: None,
        };
        this.write(format_args!("{header}\n"));
        this
    }

    /// Writes a row.
    pub(super) fn row(&mut self, fields: &[&dyn Display]) {
        for (at, field) in fields.iter().enumerate() {
            let before = if at == 0 { "" } else { "\t" };
            self.write(format_args!("{before}{field}"));
        }
        self.write(format_args!("\n"));
    }

    fn write(&mut self, text: core::fmt::Arguments<'_>) {
        if self.error.is_none() {
            self.error = self.output.write_fmt(text).err();
        }
    }

    /// Gives the output back.
    ///
    /// # Errors
    /// The first error there was; nothing was written after it.
    pub(super) fn finish(self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.output.into_inner().map_err(|error| error.into_error()),
        }
    }
}

/// A text that is one field to whoever reads the table.
pub(super) fn field(text: &str) -> Cow<'_, str> {
    let splits = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '#' | '"' | '\'');
    if text.is_empty() {
        Cow::Borrowed("-")
    } else if text.contains(splits) {
        Cow::Owned(text.replace(splits, "_"))
    } else {
        Cow::Borrowed(text)
    }
}

/// A node's name from a list, or its number where the list has none.
pub(super) fn node_name(names: &[String], node: usize) -> Cow<'_, str> {
    match names.get(node) {
        Some(name) => field(name),
        None => Cow::Owned(node.to_string()),
    }
}
