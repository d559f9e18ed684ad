//! Figures in OpenMetrics' text format, as tables say.

use core::fmt;

use namecast_units::Histogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;

use super::tables::{COMMON, Command, Kind, Metric, Table};

/// Media type of OpenMetrics text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Rates are per second in bytes, times in seconds, as Prometheus' conventions have it; ours are not.
const BITS_PER_BYTE: f64 = 8.0;
const MILLIS_PER_SECOND: f64 = 1e3;

/// All of `figures` that the tables of `command` name.
///
/// # Errors
/// If memory ends.
pub(super) fn openmetrics(command: &'static Command, figures: Value) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("namecast");
    registry.register_collector(Box::new(Snapshot { command, figures }));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

type Labels = Vec<(String, String)>;

/// The figures of one moment.
#[derive(Debug)]
struct Snapshot {
    command: &'static Command,
    figures: Value,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("command", self.command.name),
        ];
        let help = "The program that runs";
        let mut info = encoder.encode_descriptor("build_info", help, None, MetricType::Gauge)?;
        ConstGauge::new(1_u64).encode(info.encode_family(&labels)?)?;
        let help = "Lines of logs and messages that could not be written to standard error";
        let lost = encoder.encode_descriptor("log_lines_lost", help, None, MetricType::Counter)?;
        ConstCounter::new(namecast_command::lines_lost()).encode(lost)?;
        for table in COMMON.iter().chain(self.command.tables) {
            self.encode_table(table, &mut encoder)?;
        }
        Ok(())
    }
}

impl Snapshot {
    /// Lines of the same name are one family.
    fn encode_table(&self, table: &Table, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        for family in table.metrics.chunk_by(|a, b| a.1 == b.1) {
            let mut samples = Vec::new();
            for metric in family {
                let (path, labels) = metric.2.split_once(' ').unwrap_or((metric.2, ""));
                let labels = pairs(labels).map(|(key, value)| (key.to_owned(), value.to_owned()));
                let path = format!("{}.{path}", table.root);
                find(&self.figures, &path, &labels.collect(), &mut samples);
            }
            if !samples.is_empty() {
                encode_family(table, &family[0], &samples, encoder)?;
            }
        }
        Ok(())
    }
}

fn encode_family(
    table: &Table,
    &(kind, name, path, help): &Metric,
    samples: &[(Labels, &Value)],
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    let name = format!("{}{name}", table.prefix);
    let (name, unit) = match name.rsplit_once('_') {
        Some((name, "seconds")) => (name, Some(Unit::Seconds)),
        Some((name, "bytes")) => (name, Some(Unit::Bytes)),
        _ => (name.as_str(), None),
    };
    let metric_type = match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
        Kind::Histogram => MetricType::Histogram,
    };
    let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), metric_type)?;
    let divisor = match path.split(' ').next() {
        Some(path) if path.split('.').any(|step| step.ends_with("_ms")) => MILLIS_PER_SECOND,
        Some(path) if path.ends_with("_bps") => BITS_PER_BYTE,
        _ => 1.0,
    };
    match samples {
        // The metric itself.
        [(labels, value)] if labels.is_empty() => encode_sample(kind, value, divisor, family),
        samples => samples.iter().try_for_each(|(labels, value)| {
            encode_sample(kind, value, divisor, family.encode_family(labels)?)
        }),
    }
}

fn encode_sample(
    kind: Kind,
    value: &Value,
    divisor: f64,
    mut to: MetricEncoder<'_>,
) -> fmt::Result {
    let number = value
        .as_f64()
        .unwrap_or_else(|| f64::from(value == &Value::Bool(true)));
    match (kind, value.as_u64()) {
        (Kind::Counter, Some(count)) => ConstCounter::new(count).encode(to),
        (Kind::Counter, None) => ConstCounter::new(number / divisor).encode(to),
        (Kind::Gauge, _) => ConstGauge::new(number / divisor).encode(to),
        (Kind::Histogram, _) => {
            let counts = value["buckets"].as_array().map_or(&[][..], Vec::as_slice);
            let bounds = Histogram::BOUNDS.iter().map(|bound| bound.as_secs_f64());
            let counts = counts.iter().filter_map(Value::as_u64);
            let buckets: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
            let count = buckets.iter().map(|(_, count)| count).sum();
            let sum = value["sum_ns"].as_f64().unwrap_or_default() / 1e9;
            to.encode_histogram::<[(&str, &str); 0]>(sum, count, &buckets, None)
        }
    }
}

/// Appends what is at `path` below `value`; see [`Table`] for how paths are written. What is absent has no sample.
fn find<'a>(value: &'a Value, path: &str, labels: &Labels, samples: &mut Vec<(Labels, &'a Value)>) {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    if path.is_empty() {
        if value.is_number() || value.is_boolean() || value.get("buckets").is_some() {
            samples.push((labels.clone(), value));
        }
        return;
    }
    if let Some((name, label)) = step.strip_suffix('}').and_then(|it| it.split_once('{')) {
        for (key, element) in value[name].as_object().into_iter().flatten() {
            let mut labels = labels.clone();
            labels.push((label.to_owned(), key.clone()));
            find(element, rest, &labels, samples);
        }
    } else if let Some((name, keys)) = step.strip_suffix(']').and_then(|it| it.split_once('[')) {
        for element in value[name].as_array().into_iter().flatten() {
            let mut labels = labels.clone();
            labels.extend(pairs(keys).map(|(label, field)| {
                let text = element[field].as_str().map(str::to_owned);
                (
                    label.to_owned(),
                    text.unwrap_or_else(|| element[field].to_string()),
                )
            }));
            find(element, rest, &labels, samples);
        }
    } else if let Some((name, wanted)) = step.split_once('=') {
        if let Some(text) = value[name].as_str() {
            let is_it: &Value = if text == wanted { &TRUE } else { &FALSE };
            samples.push((labels.clone(), is_it));
        }
    } else {
        find(&value[step], rest, labels, samples);
    }
}

static TRUE: Value = Value::Bool(true);
static FALSE: Value = Value::Bool(false);

/// Reads `a=b,c=d`.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').filter_map(|pair| pair.split_once('='))
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
