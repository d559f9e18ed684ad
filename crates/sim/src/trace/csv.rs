//! Every event as a line of comma-separated values.

use std::io::{self, Write};

use super::row::{COLUMNS, Value, values};
use super::{Event, Sink};

/// Writes a header and a line for each event. `docs/trace-format.md` documents the columns; those that have no meaning
/// for an event are empty.
#[derive(Debug)]
pub struct CsvTrace<W: Write> {
    writer: csv::Writer<W>,
    names: Vec<String>,
    error: Option<io::Error>,
}

impl<W: Write> CsvTrace<W> {
    /// Writes to `output`, which it buffers; `names` are those of the nodes, by index.
    pub fn new(output: W, names: Vec<String>) -> Self {
        let mut this = Self {
            writer: csv::Writer::from_writer(output),
            names,
            error: None,
        };
        let header = this.writer.write_record(COLUMNS);
        this.note(header);
        this
    }

    /// Writes what is left, and gives the output back.
    ///
    /// # Errors
    /// The first error there was; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.into_inner().map_err(|error| error.into_error()),
        }
    }

    fn note(&mut self, result: csv::Result<()>) {
        if let Err(error) = result {
            self.error.get_or_insert(error.into());
        }
    }
}

impl<W: Write> Sink for CsvTrace<W> {
    fn record(&mut self, event: &Event<'_>) {
        if self.error.is_some() {
            return;
        }
        let row = values(event, &self.names);
        let mut write = || {
            for value in &row {
                match value {
                    Value::Number(number) => self.writer.write_field(number.to_string())?,
                    Value::Text(text) => self.writer.write_field(text.as_ref())?,
                    Value::None => self.writer.write_field("")?,
                }
            }
            self.writer.write_record(None::<&[u8]>)
        };
        let result = write();
        self.note(result);
    }
}
