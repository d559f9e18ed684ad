//! Every run as a row: its point, its seed and all that it measured, as CSV and as Parquet.

use std::io;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::measured::Measured;
use super::run::run_seed;

/// The runs of an experiment, those of the first point first.
pub(super) struct RunTable<'a> {
    /// Names of the sweeps, of which each has a column of labels.
    pub(super) sweeps: Vec<&'a str>,
    /// What the runs measured.
    pub(super) measured: &'a Measured,
    /// Runs of each point.
    pub(super) runs: u32,
    /// The seed that all seeds follow from.
    pub(super) seed: u64,
}

impl RunTable<'_> {
    /// Returns the table as CSV. A metric that a run does not have is empty.
    ///
    /// # Errors
    /// None, as memory takes whatever is written.
    pub(super) fn csv(&self) -> io::Result<Vec<u8>> {
        let mut table = csv::Writer::from_writer(Vec::new());
        let mut head = self.sweeps.clone();
        head.extend(["run", "seed"]);
        head.extend(self.measured.metric_names());
        table.write_record(&head)?;
        for (point, labels) in self.measured.points.iter().enumerate() {
            for run in 0..self.runs {
                let mut row = labels.clone();
                row.push((run + 1).to_string());
                row.push(run_seed(self.seed, run).to_string());
                let values = self.measured.values(point, run as usize);
                let text = |value: Option<f64>| value.map_or_else(String::new, |it| it.to_string());
                row.extend(values.map(text));
                table.write_record(&row)?;
            }
        }
        table.into_inner().map_err(|error| error.into_error())
    }

    /// Returns the table as Parquet: labels are strings, seeds numbers without a sign, metrics doubles that may be missing.
    ///
    /// # Errors
    /// A column is too large for the format.
    pub(super) fn parquet(&self) -> Result<Vec<u8>> {
        let properties = Arc::new(WriterProperties::default());
        let mut writer = SerializedFileWriter::new(Vec::new(), self.schema()?, properties)?;
        let mut group = writer.next_row_group()?;
        for place in 0..self.sweeps.len() {
            let labels = self.measured.points.iter().flat_map(|labels| {
                let label = ByteArray::from(labels[place].as_bytes().to_vec());
                core::iter::repeat_n(label, self.runs as usize)
            });
            let labels: Vec<_> = labels.collect();
            write::<ByteArrayType>(&mut group, &labels, None)?;
        }
        let points = self.measured.points.len();
        let each = |number: &dyn Fn(u32) -> i64| {
            let of_point: Vec<i64> = (0..self.runs).map(number).collect();
            of_point.repeat(points)
        };
        write::<Int64Type>(&mut group, &each(&|run| i64::from(run) + 1), None)?;
        let seeds = each(&|run| run_seed(self.seed, run).cast_signed());
        write::<Int64Type>(&mut group, &seeds, None)?;
        for metric in 0..self.measured.metric_names().count() {
            let rows =
                (0..points).flat_map(|point| (0..self.runs as usize).map(move |run| (point, run)));
            let values: Vec<Option<f64>> = rows
                .map(|(point, run)| self.measured.values(point, run).nth(metric).flatten())
                .collect();
            let levels: Vec<i16> = values
                .iter()
                .map(|value| i16::from(value.is_some()))
                .collect();
            let present: Vec<f64> = values.into_iter().flatten().collect();
            write::<DoubleType>(&mut group, &present, Some(&levels))?;
        }
        group.close()?;
        writer.into_inner()
    }

    fn schema(&self) -> Result<TypePtr> {
        let column = |name: &str, kind, repetition, logical| {
            let column = Type::primitive_type_builder(name, kind)
                .with_repetition(repetition)
                .with_logical_type(logical);
            column.build().map(Arc::new)
        };
        let text = |name: &&str| {
            let kind = PhysicalType::BYTE_ARRAY;
            column(name, kind, Repetition::REQUIRED, Some(LogicalType::String))
        };
        let mut columns: Vec<TypePtr> = self.sweeps.iter().map(text).collect::<Result<_>>()?;
        for name in ["run", "seed"] {
            let unsigned = Some(LogicalType::integer(64, false));
            let kind = PhysicalType::INT64;
            columns.push(column(name, kind, Repetition::REQUIRED, unsigned)?);
        }
        for name in self.measured.metric_names() {
            let kind = PhysicalType::DOUBLE;
            columns.push(column(name, kind, Repetition::OPTIONAL, None)?);
        }
        let schema = Type::group_type_builder("runs").with_fields(columns);
        schema.build().map(Arc::new)
    }
}

/// Writes the next column.
fn write<T: parquet::data_type::DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let next = group.next_column()?;
    let mut column = next.expect("the schema has a column for each that is written");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    /// Two points, of which the second has no delay in its second run, and a metric that the first does not know.
    #[test]
    fn both_forms_have_a_row_for_each_run() {
        let run = |metrics: &[(&str, Option<f64>)]| -> BTreeMap<String, Option<f64>> {
            metrics
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect()
        };
        let first = [run(&[("delay", Some(1.5))]), run(&[("delay", Some(2.0))])];
        let second = [
            run(&[("delay", Some(3.0)), ("loss", Some(0.0))]),
            run(&[("delay", None), ("loss", Some(0.5))]),
        ];
        let points = [("fast", &first), ("slow", &second)];
        let points = points.map(|(label, runs)| (vec![label.to_owned()], runs.iter().collect()));
        let measured = Measured::new(points);
        let table = RunTable {
            sweeps: vec!["mode"],
            measured: &measured,
            runs: 2,
            seed: 1,
        };
        let seeds = [run_seed(1, 0), run_seed(1, 1)];
        let csv = String::from_utf8(table.csv().unwrap()).unwrap();
        let expected = format!(
            "mode,run,seed,delay,loss\nfast,1,{0},1.5,\nfast,2,{1},2,\nslow,1,{0},3,0\nslow,2,{1},,0.5\n",
            seeds[0], seeds[1]
        );
        assert_eq!(csv, expected);

        let file = SerializedFileReader::new(Bytes::from(table.parquet().unwrap())).unwrap();
        let rows: Vec<_> = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap())
            .collect();
        assert_eq!(rows.len(), 4);
        let modes: Vec<_> = rows
            .iter()
            .map(|row| row.get_string(0).unwrap().as_str())
            .collect();
        assert_eq!(modes, ["fast", "fast", "slow", "slow"]);
        let numbers: Vec<_> = rows.iter().map(|row| row.get_ulong(1).unwrap()).collect();
        assert_eq!(numbers, [1, 2, 1, 2]);
        let found: Vec<_> = rows.iter().map(|row| row.get_ulong(2).unwrap()).collect();
        assert_eq!(found, [seeds[0], seeds[1], seeds[0], seeds[1]]);
        let delays: Vec<_> = rows.iter().map(|row| row.get_double(3).ok()).collect();
        assert_eq!(delays, [Some(1.5), Some(2.0), Some(3.0), None]);
        let losses: Vec<_> = rows.iter().map(|row| row.get_double(4).ok()).collect();
        assert_eq!(losses, [None, None, Some(0.0), Some(0.5)]);
    }
}
