//! Tables of parameters, as the program has them.

use std::path::Path;

use namecast_netem::{self as netem, Queue};
use namecast_stream::rate::RateControl;
use namecast_units::{ByteSize, parse_duration};
use serde::{Deserialize, Serialize};

use super::place::Direction;
use super::{Outcome, ScenarioError};
use crate::topology::Spec;

/// A controller's constants: a metric for each number that its configuration has, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ParameterTable {
    /// The controller.
    pub controller: RateControl,
}

/// A topology: metrics `nodes`, `links`, and for each of the links named, `rate` in Mbit/s, `delay` in ms, `queue` in
/// packets, followed by a hyphen and its place in the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyTable {
    /// Nodes and links.
    pub topology: Spec,
    /// Links to tell about, as `R1>R2`.
    pub links: Vec<String>,
}

impl ParameterTable {
    pub(super) fn run(&self) -> Outcome {
        let mut outcome = Outcome::default();
        let whole = serde_json::to_value(self.controller);
        let Ok(serde_json::Value::Object(fields)) = whole else {
            return outcome;
        };
        for (name, value) in fields {
            let value = match &value {
                serde_json::Value::String(text) => quantity(text),
                other => other.as_f64(),
            };
            if let Some(value) = value {
                outcome.metrics.insert(name, value);
            }
        }
        outcome
    }
}

/// A time in milliseconds, or a size in octets.
fn quantity(text: &str) -> Option<f64> {
    let span = parse_duration(text).map(|span| span.as_secs_f64() * 1e3);
    let size = || text.parse::<ByteSize>().map(|size| size.as_bytes() as f64);
    span.or_else(|_| size()).ok()
}

impl TopologyTable {
    pub(super) fn run(&self, base: &Path) -> Result<Outcome, ScenarioError> {
        let topology = self.topology.build(base);
        let topology = topology.map_err(|error| ScenarioError::new("topology", error))?;
        let mut outcome = Outcome::default();
        let mut metric = |name: String, value: f64| {
            outcome.metrics.insert(name, value);
        };
        metric("nodes".to_owned(), topology.nodes.len() as f64);
        metric("links".to_owned(), topology.links.len() as f64);
        for (place, link) in self.links.iter().enumerate() {
            let direction = Direction::parse(link, &topology);
            let wrong = |problem| ScenarioError::new(format!("links.{place}"), problem);
            let config = direction.map_err(wrong)?.config(&topology);
            let number = place + 1;
            metric(format!("rate-{number}"), rate(config));
            metric(format!("delay-{number}"), config.delay.as_secs_f64() * 1e3);
            if let Queue::DropTail { packets } = config.queue {
                metric(format!("queue-{number}"), packets as f64);
            }
        }
        Ok(outcome)
    }
}

fn rate(config: &netem::Config) -> f64 {
    let rate = config.rate.as_ref().and_then(netem::Rate::mean);
    rate.map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / 1e6)
}
