//! How fast a link serialises.

use core::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use namecast_units::Bitrate;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{Model, ModelKind};
use crate::schedule::{Schedule, TraceFormat};

/// Rate of one direction of a link.
///
/// ```toml
/// rate = "6 Mbit/s"
/// rate = { trace = "lte.trace" }                        # or .csv; format = "mahimahi", "csv" or "two-column" if the first line does not show it
/// rate = { model = "lte", seed = 3, mean = "4 Mbit/s" } # seed and mean are optional
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Constant, except for the link's own [`Step`](crate::Step)s.
    Constant(Bitrate),
    /// In a file that has not been read yet. This crate reads none: [`Config::resolve_rate`](crate::Config::resolve_rate)
    /// replaces it, and [`Config::validate`](crate::Config::validate) refuses it.
    Trace(TraceFile),
    /// Drawn from a model. [`Config::resolve_rate`](crate::Config::resolve_rate) draws it once for many links.
    Model(Model),
    /// As a schedule says, which several links may share. It has no text form.
    Schedule(Arc<Schedule>),
}

/// A file with a schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceFile {
    /// Path, relative to the file that names it.
    pub trace: PathBuf,
    /// Its format; `None`: recognised by its first line.
    pub format: Option<TraceFormat>,
}

impl Rate {
    /// Returns the rate, if it is constant.
    pub const fn constant(&self) -> Option<Bitrate> {
        match self {
            Self::Constant(rate) => Some(*rate),
            _ => None,
        }
    }

    /// Returns the mean rate: of a schedule over its period. `None` for a trace that has not been read, or a model that has not been
    /// drawn.
    pub fn mean(&self) -> Option<Bitrate> {
        match self {
            Self::Constant(rate) => Some(*rate),
            Self::Schedule(schedule) => Some(schedule.mean()),
            Self::Trace(_) | Self::Model(_) => None,
        }
    }

    /// Returns the schedule: the one it has, or what its model draws. `None` for constant rates and traces that have not been read.
    pub fn schedule(&self) -> Option<Arc<Schedule>> {
        match self {
            Self::Schedule(schedule) => Some(Arc::clone(schedule)),
            Self::Model(model) => Some(Arc::new(model.schedule())),
            Self::Constant(_) | Self::Trace(_) => None,
        }
    }
}

impl From<Bitrate> for Rate {
    fn from(rate: Bitrate) -> Self {
        Self::Constant(rate)
    }
}

impl From<Schedule> for Rate {
    fn from(schedule: Schedule) -> Self {
        Self::Schedule(Arc::new(schedule))
    }
}

impl From<Model> for Rate {
    fn from(model: Model) -> Self {
        Self::Model(model)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, sink: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(rate) => rate.serialize(sink),
            Self::Trace(file) => {
                let mut map = sink.serialize_map(None)?;
                map.serialize_entry("trace", &file.trace)?;
                if let Some(format) = file.format {
                    map.serialize_entry("format", &format)?;
                }
                map.end()
            }
            Self::Model(model) => {
                let mut map = sink.serialize_map(None)?;
                map.serialize_entry("model", &model.kind)?;
                map.serialize_entry("seed", &model.seed)?;
                if let Some(mean) = model.mean {
                    map.serialize_entry("mean", &mean)?;
                }
                map.end()
            }
            Self::Schedule(_) => Err(S::Error::custom("a schedule cannot be written as text")),
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

/// What a table may hold.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "kebab-case")]
enum Key {
    Trace,
    Format,
    Model,
    Seed,
    Mean,
}

impl<'de> Visitor<'de> for RateVisitor {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"6 Mbit/s\", { trace = \"file\" } or { model = \"lte\" }")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Rate, E> {
        text.parse().map(Rate::Constant).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Rate, A::Error> {
        let (mut trace, mut format) = (None, None);
        let (mut kind, mut seed, mut mean) = (None::<ModelKind>, None, None);
        while let Some(key) = map.next_key()? {
            match key {
                Key::Trace => trace = Some(map.next_value()?),
                Key::Format => format = Some(map.next_value()?),
                Key::Model => kind = Some(map.next_value()?),
                Key::Seed => seed = Some(map.next_value()?),
                Key::Mean => mean = Some(map.next_value()?),
            }
        }
        match (trace, kind) {
            (Some(trace), None) if seed.is_none() && mean.is_none() => {
                Ok(Rate::Trace(TraceFile { trace, format }))
            }
            (None, Some(kind)) if format.is_none() => Ok(Rate::Model(Model {
                kind,
                seed: seed.unwrap_or(Model::SEED),
                mean,
            })),
            (None, None) => Err(A::Error::custom("expected 'trace' or 'model'")),
            (Some(_), Some(_)) => Err(A::Error::custom(
                "expected either 'trace' or 'model', not both",
            )),
            (Some(_), None) => Err(A::Error::custom(
                "'seed' and 'mean' belong to 'model', not to 'trace'",
            )),
            (None, Some(_)) => Err(A::Error::custom(
                "'format' belongs to 'trace', not to 'model'",
            )),
        }
    }
}
