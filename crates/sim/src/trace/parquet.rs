//! Every event as a row of a Parquet file: the same columns as the lines of [`CsvTrace`](super::CsvTrace), typed.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use smart_default::SmartDefault;

use super::row::{Value, values};
use super::{Event, Sink};

/// The columns, as `docs/trace-format.md` documents them. Numbers without a sign, in 64 bits.
const SCHEMA: &str = "message events {
    required int64 time_ns (INTEGER(64, false));
    required binary node (STRING);
    required int64 face (INTEGER(64, false));
    required binary event (STRING);
    optional binary packet (STRING);
    optional binary name (STRING);
    optional int64 octets (INTEGER(64, false));
    optional binary reason (STRING);
    optional int64 sequence (INTEGER(64, false));
    optional int64 delay_ns (INTEGER(64, false));
    optional int64 full_delay_ns (INTEGER(64, false));
    optional int64 transmissions (INTEGER(64, false));
    optional int64 congestion_mark (INTEGER(64, false));
}";
/// Columns of the schema that are required; the rest are optional.
const REQUIRED: usize = 4;

/// Bounds of what is held in memory before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SmartDefault)]
pub struct ParquetConfig {
    /// Most events in a row group.
    #[default(65_536)]
    pub rows_per_group: usize,
    /// Octets of text after which a row group ends, though it has fewer events.
    #[default(8 << 20)]
    pub text_per_group: usize,
}

/// Writes a Parquet file, row group by row group.
pub struct ParquetTrace<W: Write + Send> {
    /// Gone after an error.
    writer: Option<SerializedFileWriter<W>>,
    names: Vec<String>,
    config: ParquetConfig,
    columns: [Column; 13],
    rows: usize,
    text: usize,
    error: Option<io::Error>,
}

/// Values of one column that are not written yet.
#[derive(Default)]
struct Column {
    numbers: Vec<i64>,
    texts: Vec<ByteArray>,
    /// 1 where there is a value, 0 where there is none.
    levels: Vec<i16>,
}

impl<W: Write + Send> ParquetTrace<W> {
    /// Writes to `output`, which it buffers; `names` are those of the nodes, by index.
    pub fn new(output: W, names: Vec<String>, config: ParquetConfig) -> Self {
        let mut this = Self {
            writer: None,
            names,
            config,
            columns: Default::default(),
            rows: 0,
            text: 0,
            error: None,
        };
        match open(output) {
            Ok(writer) => this.writer = Some(writer),
            Err(error) => this.error = Some(io::Error::other(error)),
        }
        this
    }

    /// Writes what is left, and gives the output back.
    ///
    /// # Errors
    /// The first error there was; nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush();
        match (self.error, self.writer) {
            (None, Some(writer)) => writer.into_inner().map_err(io::Error::other),
            (Some(error), _) => Err(error),
            (None, None) => unreachable!("the writer goes only with an error"),
        }
    }

    /// Ends the row group, and returns what makes a whole file of all so far, if it is behind it. It is not written: the next row group
    /// belongs in its place.
    ///
    /// # Errors
    /// The first error there was; nothing was written after it.
    pub fn footer(&mut self) -> io::Result<Vec<u8>> {
        self.flush();
        match (&mut self.writer, self.error.take()) {
            (Some(writer), _) => footer(writer).map_err(io::Error::other),
            (None, error) => Err(error.unwrap_or_else(|| io::ErrorKind::Other.into())),
        }
    }

    /// What row groups were written to; `None` after an error.
    pub fn output_mut(&mut self) -> Option<&mut W> {
        self.writer.as_mut().map(SerializedFileWriter::inner_mut)
    }

    /// Ends the row group.
    fn flush(&mut self) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        if self.rows == 0 {
            return;
        }
        if let Err(error) = write_group(writer, &self.columns) {
            self.error = Some(io::Error::other(error));
            self.writer = None;
        }
        for column in &mut self.columns {
            column.numbers.clear();
            column.texts.clear();
            column.levels.clear();
        }
        (self.rows, self.text) = (0, 0);
    }
}

impl<W: Write + Send> Sink for ParquetTrace<W> {
    fn record(&mut self, event: &Event<'_>) {
        if self.writer.is_none() {
            return;
        }
        let row = values(event, &self.names);
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.levels.push(i16::from(value != Value::None));
            match value {
                Value::Number(number) => column.numbers.push(number.cast_signed()),
                Value::Text(text) => {
                    self.text += text.len();
                    column.texts.push(text.as_bytes().to_vec().into());
                }
                Value::None => {}
            }
        }
        self.rows += 1;
        if self.rows >= self.config.rows_per_group || self.text >= self.config.text_per_group {
            self.flush();
        }
    }
}

fn open<W: Write + Send>(output: W) -> Result<SerializedFileWriter<W>> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    // Times rise and names share their beginnings, so both are written as differences; all else repeats itself.
    let (time, name) = (ColumnPath::from("time_ns"), ColumnPath::from("name"));
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_column_dictionary_enabled(time.clone(), false)
        .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
        .set_column_dictionary_enabled(name.clone(), false)
        .set_column_encoding(name, Encoding::DELTA_BYTE_ARRAY)
        .build();
    SerializedFileWriter::new(output, schema, Arc::new(properties))
}

/// Metadata of the row groups so far, with its length and the magic number.
fn footer<W: Write + Send>(writer: &mut SerializedFileWriter<W>) -> Result<Vec<u8>> {
    writer.flush()?;
    let groups = writer.flushed_row_groups().to_vec();
    let properties = writer.properties();
    let file = FileMetaData::new(
        properties.writer_version().as_num(),
        groups.iter().map(RowGroupMetaData::num_rows).sum(),
        Some(properties.created_by().to_owned()),
        None,
        Arc::new(writer.schema_descr().clone()),
        None,
    );
    let mut octets = Vec::new();
    let metadata = ParquetMetaData::new(file, groups);
    ParquetMetaDataWriter::new(&mut octets, &metadata).finish()?;
    Ok(octets)
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    columns: &[Column],
) -> Result<()> {
    let mut group = writer.next_row_group()?;
    for (at, column) in columns.iter().enumerate() {
        let next = group.next_column()?;
        let next = next.expect("the schema has as many columns as a row has values");
        column.write(next, at < REQUIRED)?;
    }
    group.close()?;
    Ok(())
}

impl Column {
    fn write(&self, mut writer: SerializedColumnWriter<'_>, required: bool) -> Result<()> {
        let levels = (!required).then_some(self.levels.as_slice());
        match writer.untyped() {
            parquet::column::writer::ColumnWriter::Int64ColumnWriter(_) => {
                let typed = writer.typed::<Int64Type>();
                typed.write_batch(&self.numbers, levels, None)?;
            }
            _ => {
                let typed = writer.typed::<ByteArrayType>();
                typed.write_batch(&self.texts, levels, None)?;
            }
        }
        writer.close()
    }
}
