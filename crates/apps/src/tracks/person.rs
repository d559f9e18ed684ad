//! One person's position, as JSON and CSV.

use core::fmt::Write;

use namecast_units::Timestamp;
use serde_json::{Map, Number, Value};

use super::sample::MAX_SAMPLE;

/// Longest id and longest name of a clock, in octets.
pub const MAX_ID: usize = 64;
/// Largest coordinate, in metres.
pub const MAX_METRES: f64 = 100_000.0;
/// Most octets of a person's other fields, as JSON.
pub const MAX_EXTRA: usize = 1_000;
/// Fields of a person that are no extra ones; `tick` is the watcher's.
const FIELDS: [&str; 7] = ["tick", "id", "x", "y", "z", "at", "clock"];

/// Position of one person.
#[derive(Clone, Debug, PartialEq)]
pub struct Person {
    /// Id: 1 to [`MAX_ID`] octets without control characters.
    pub id: String,
    /// Position in metres, within [`MAX_METRES`]; samples keep 0.1 mm.
    pub x: f64,
    /// As `x`.
    pub y: f64,
    /// As `x`; up.
    pub z: f64,
    /// Time of measurement.
    pub at: Timestamp,
    /// Name of the clock of that time; `None`: the publisher's.
    pub clock: Option<String>,
    /// Other fields: at most [`MAX_EXTRA`] octets of JSON.
    pub extra: Map<String, Value>,
}

/// Why a position was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackError {
    /// It is not JSON.
    #[error("not JSON{}: {error}", after(.field))]
    Json {
        /// The field whose value stops being JSON, if any.
        field: Option<String>,
        /// The problem.
        error: serde_json::Error,
    },
    /// It is no object.
    #[error("expected a JSON object")]
    NoObject,
    /// A field is missing or out of bounds.
    #[error("{field}: {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// The problem.
        problem: String,
    },
    /// There are too many people.
    #[error("id: {0} people are tracked: publish with a higher --max-people")]
    TooManyPeople(usize),
    /// More people are announced than the reader takes.
    #[error("more than {0} people are announced: watch with a higher --max-people")]
    TooManyAnnounced(usize),
    /// People take more octets than a sample has.
    #[error("{0} octets of people: a tick has room for {MAX_SAMPLE}")]
    TooManyOctets(usize),
    /// The number of a tick does not follow the one before it.
    #[error("tick {tick}: expected one of the 4096 ticks after {newest}")]
    Tick {
        /// Its number.
        tick: u64,
        /// The number before it.
        newest: u64,
    },
    /// A sample ends early, or has another form.
    #[error("sample, octet {at}: {problem}")]
    Sample {
        /// Where.
        at: usize,
        /// The problem.
        problem: &'static str,
    },
    /// A line or datagram has too many octets.
    #[error("more than {0} octets")]
    TooLong(usize),
}

fn after(field: &Option<String>) -> String {
    let text = field.as_ref().map(|field| format!(" in {field}"));
    text.unwrap_or_default()
}

/// Returns the problem of `field`.
pub(super) fn wrong(field: &'static str, problem: impl Into<String>) -> TrackError {
    let problem = problem.into();
    TrackError::Field { field, problem }
}

impl Person {
    /// Reads a person from a JSON object. One without `at` was measured `now`, by the publisher's clock.
    ///
    /// # Errors
    /// The first field that is missing or out of bounds.
    pub fn from_json(json: &[u8], now: Timestamp) -> Result<Self, TrackError> {
        let value = serde_json::from_slice(json).map_err(|error| TrackError::Json {
            field: field_before(json, &error),
            error,
        })?;
        match value {
            Value::Object(fields) => Self::from_fields(fields, now),
            _ => Err(TrackError::NoObject),
        }
    }

    /// Reads a person from the fields of an object, as [`from_json`](Self::from_json).
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_fields(mut fields: Map<String, Value>, now: Timestamp) -> Result<Self, TrackError> {
        let id = match fields.remove("id") {
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            None => return Err(wrong("id", "missing")),
            Some(_) => return Err(wrong("id", "expected a string or a number")),
        };
        let [x, y, z] = ["x", "y", "z"].map(|field| coordinate(&mut fields, field));
        let at = match fields.remove("at") {
            None => now,
            Some(at) => {
                let micros = at.as_u64().filter(|at| i64::try_from(*at).is_ok());
                let problem = "expected microseconds since 1970";
                Timestamp::from_micros(micros.ok_or_else(|| wrong("at", problem))?)
            }
        };
        let clock = match fields.remove("clock") {
            None | Some(Value::Null) => None,
            Some(Value::String(clock)) => Some(clock),
            Some(_) => return Err(wrong("clock", "expected a string")),
        };
        fields.remove("tick");
        let person = Self {
            id,
            x: x?,
            y: y?,
            z: z?,
            at,
            clock,
            extra: fields,
        };
        person.validate()?;
        Ok(person)
    }

    /// Checks all bounds.
    pub(super) fn validate(&self) -> Result<(), TrackError> {
        check_id(&self.id)?;
        for (field, value) in [("x", self.x), ("y", self.y), ("z", self.z)] {
            check_metres(field, value)?;
        }
        if let Some(clock) = &self.clock {
            is_text("clock", clock)?;
        }
        if self.extra.keys().any(|key| FIELDS.contains(&key.as_str())) {
            return Err(wrong("other fields", "one has the name of a position's"));
        }
        match self.extra_json().len() {
            0..=MAX_EXTRA => Ok(()),
            octets => {
                let problem = format!("{octets} octets: expected at most {MAX_EXTRA}");
                Err(wrong("other fields", problem))
            }
        }
    }

    /// Returns the other fields as JSON; empty if there are none.
    pub(super) fn extra_json(&self) -> Vec<u8> {
        match self.extra.is_empty() {
            true => Vec::new(),
            false => serde_json::to_vec(&self.extra).expect("values of JSON"),
        }
    }

    /// Writes a line of JSON, without its end.
    pub fn to_json(&self, tick: u64) -> String {
        let metres = |metres| Number::from_f64(metres).map_or(Value::Null, Value::Number);
        let mut fields = Map::new();
        fields.insert("tick".to_owned(), tick.into());
        fields.insert("id".to_owned(), self.id.clone().into());
        fields.insert("x".to_owned(), metres(self.x));
        fields.insert("y".to_owned(), metres(self.y));
        fields.insert("z".to_owned(), metres(self.z));
        fields.insert("at".to_owned(), self.at.as_micros().into());
        if let Some(clock) = &self.clock {
            fields.insert("clock".to_owned(), clock.clone().into());
        }
        fields.extend(self.extra.clone());
        Value::Object(fields).to_string()
    }

    /// Writes a line of CSV, without its end. Its columns are those of [`csv_header`].
    pub fn to_csv(&self, tick: u64) -> String {
        let mut line = format!("{tick},");
        quote(&mut line, &self.id);
        let micros = self.at.as_micros();
        write!(line, ",{},{},{},{micros},", self.x, self.y, self.z).expect("a string has room");
        quote(&mut line, self.clock.as_deref().unwrap_or_default());
        line.push(',');
        let extra = String::from_utf8(self.extra_json());
        quote(&mut line, &extra.expect("JSON is UTF-8"));
        line
    }
}

/// The columns of CSV.
pub const fn csv_header() -> &'static str {
    "tick,id,x,y,z,at,clock,extra"
}

/// Appends a field of CSV, quoted where RFC 4180 requires it.
fn quote(line: &mut String, field: &str) {
    if !field.contains(['"', ',', '\r', '\n']) {
        line.push_str(field);
        return;
    }
    line.push('"');
    line.push_str(&field.replace('"', "\"\""));
    line.push('"');
}

/// Checks an id.
///
/// # Errors
/// If it has not 1 to [`MAX_ID`] octets, or a control character.
pub fn check_id(id: &str) -> Result<(), TrackError> {
    is_text("id", id)
}

fn is_text(field: &'static str, text: &str) -> Result<(), TrackError> {
    if !(1..=MAX_ID).contains(&text.len()) {
        let problem = format!("{} octets: expected 1 to {MAX_ID}", text.len());
        return Err(wrong(field, problem));
    }
    if text.chars().any(char::is_control) {
        return Err(wrong(field, "has a control character"));
    }
    Ok(())
}

fn coordinate(fields: &mut Map<String, Value>, field: &'static str) -> Result<f64, TrackError> {
    let value = fields.remove(field);
    let value = value.ok_or_else(|| wrong(field, "missing"))?;
    let metres = value.as_f64();
    metres.ok_or_else(|| {
        wrong(
            field,
            format!("expected metres, a number within ±{MAX_METRES}"),
        )
    })
}

fn check_metres(field: &'static str, metres: f64) -> Result<(), TrackError> {
    // NaN is within no range.
    match (-MAX_METRES..=MAX_METRES).contains(&metres) {
        true => Ok(()),
        false => {
            let problem = format!("{metres:e}: expected metres within ±{MAX_METRES}");
            Err(wrong(field, problem))
        }
    }
}

/// Returns the last name of a field before the error, as NaN and numbers beyond all bounds are not JSON.
fn field_before(json: &[u8], error: &serde_json::Error) -> Option<String> {
    let mut lines = json.split(|octet| *octet == b'\n');
    let line = lines.nth(error.line().checked_sub(1)?)?;
    let before = line.get(..error.column().min(line.len()))?;
    let colon = before.iter().rposition(|octet| *octet == b':')?;
    let name = before[..colon].trim_ascii_end().strip_suffix(b"\"")?;
    let start = name.iter().rposition(|octet| *octet == b'"')? + 1;
    let name = core::str::from_utf8(&name[start..]).ok()?;
    let is_plain = name.len() <= MAX_ID && !name.chars().any(char::is_control);
    is_plain.then(|| name.to_owned())
}
