//! Messages of desks and devices, as JSON.

use core::fmt;
use core::str::FromStr;

use namecast_units::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::terms::Leader;

/// Longest cue or report, in octets of JSON.
pub const MAX_CUE: usize = 4_000;
/// Longest number of a cue, and longest name of a target, in octets.
const MAX_TEXT: usize = 64;
/// Most targets of a cue.
const MAX_TARGETS: usize = 64;
/// Longest reason in a report, in octets.
const MAX_REASON: usize = 200;
/// Highest term: the largest integer that JSON readers agree on. Terms grow by small steps, so none is ever the last one.
pub const MAX_TERM: u64 = (1 << 53) - 1;

/// Identity of a cue: 16 random octets, as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CueId(pub [u8; 16]);

/// Action of a cue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Prepare for the cue.
    Standby,
    /// Execute it.
    Go,
    /// End all that runs, and execute no cue that waits for its time.
    Stop,
    /// Undo the cue.
    Undo,
    /// Nothing but the term: the desk leads from now on.
    Lead,
    /// Nothing but a report: whether the device is ready.
    Check,
}

/// One cue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cue {
    /// Its identity: devices execute it once.
    pub id: CueId,
    /// Its number in the list: `12.5`.
    pub number: String,
    /// Its action.
    pub action: Action,
    /// Term of the desk that sends it: devices execute cues of the highest term.
    #[serde(default)]
    pub term: u64,
    /// Time of execution, by the desk's clock: microseconds since 1970.
    #[serde(with = "micros")]
    pub at: Timestamp,
    /// Devices that it is for; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Values for whatever executes it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// Whether it is for a rehearsal: only devices in rehearsal execute it, and these no other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rehearsal: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// Report of a device on a cue, or of a desk on one that it did not send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The cue.
    pub id: CueId,
    /// Its number.
    pub number: String,
    /// Its outcome.
    pub outcome: Outcome,
    /// The outcome's time after that of the cue, in microseconds; negative: before it.
    pub late_us: i64,
    /// The desk that leads, as far as the reporter has heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
    /// Why it was not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The desk's clock, as the device knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<DeskClock>,
    /// Whether the device is in rehearsal.
    #[serde(default, skip_serializing_if = "is_false")]
    pub rehearsal: bool,
}

/// The desk's clock, as a device knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeskClock {
    /// The desk's clock less that of the device, in microseconds.
    pub offset_us: i64,
    /// Largest error of that: half the round trip by which it was measured.
    pub error_us: u64,
}

/// Outcome of a cue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was executed.
    Executed,
    /// It arrived too late, and was not executed.
    Stale,
    /// A stop arrived before its time.
    Stopped,
    /// Another desk leads.
    Superseded,
    /// It was refused: [`Done::why`] gives the reason.
    Refused,
    /// It was not executed, as the journal could not be written.
    Failed,
    /// It asked whether the device is ready, which it is.
    Ready,
}

/// Why a cue was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CueError {
    /// It has more than [`MAX_CUE`] octets.
    #[error("{0} octets: expected at most {MAX_CUE}")]
    TooLong(usize),
    /// It is not JSON, or not of this shape.
    #[error("no cue: {0}")]
    Json(#[from] serde_json::Error),
    /// A field's value is out of bounds.
    #[error("{field}: {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// The problem.
        problem: &'static str,
    },
}

impl Action {
    /// Returns the word that stands for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Standby => "standby",
            Self::Go => "go",
            Self::Stop => "stop",
            Self::Undo => "undo",
            Self::Lead => "lead",
            Self::Check => "check",
        }
    }
}

impl Outcome {
    /// Returns the word that stands for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Stale => "stale",
            Self::Stopped => "stopped",
            Self::Superseded => "superseded",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Ready => "ready",
        }
    }
}

impl Cue {
    /// Reads a cue.
    ///
    /// # Errors
    /// The first field that is out of bounds, or where it stops being JSON.
    pub fn decode(json: &[u8]) -> Result<Self, CueError> {
        if json.len() > MAX_CUE {
            return Err(CueError::TooLong(json.len()));
        }
        let cue: Self = serde_json::from_slice(json)?;
        cue.validate()?;
        Ok(cue)
    }

    /// Validates and writes the cue.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn encode(&self) -> Result<Vec<u8>, CueError> {
        self.validate()?;
        let json = serde_json::to_vec(self)?;
        match json.len() {
            0..=MAX_CUE => Ok(json),
            length => Err(CueError::TooLong(length)),
        }
    }

    /// Returns whether it is for `device`.
    pub fn is_for(&self, device: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|target| target == device)
    }

    fn validate(&self) -> Result<(), CueError> {
        let wrong = |field, problem| Err(CueError::Field { field, problem });
        let is_text = |text: &str| {
            (1..=MAX_TEXT).contains(&text.len()) && !text.chars().any(char::is_control)
        };
        let problem = "expected 1 to 64 octets without control characters";
        if !is_text(&self.number) {
            return wrong("number", problem);
        }
        if self.targets.len() > MAX_TARGETS {
            return wrong("targets", "expected at most 64");
        }
        if !self.targets.iter().all(|target| is_text(target)) {
            return wrong("targets", problem);
        }
        if self.term > MAX_TERM {
            return wrong("term", "expected at most 9007199254740991");
        }
        Ok(())
    }
}

impl Done {
    /// A refusal that is of no cue, such as that of packets with wrong signatures.
    pub fn refusal(why: &str) -> Self {
        Self {
            id: CueId([0; 16]),
            number: "-".to_owned(),
            outcome: Outcome::Refused,
            late_us: 0,
            leader: None,
            why: Some(why.to_owned()),
            clock: None,
            rehearsal: false,
        }
        .bounded()
    }

    /// Cuts the reason where it is too long.
    fn bounded(mut self) -> Self {
        if let Some(why) = &mut self.why {
            why.truncate(why.floor_char_boundary(MAX_REASON));
        }
        self
    }

    /// Reads a report.
    ///
    /// # Errors
    /// Where it stops being JSON of this shape.
    pub fn decode(json: &[u8]) -> Result<Self, CueError> {
        match json.len() {
            0..=MAX_CUE => Ok(serde_json::from_slice::<Self>(json)?.bounded()),
            length => Err(CueError::TooLong(length)),
        }
    }

    /// Writes the report.
    ///
    /// # Panics
    /// Never: its fields are JSON.
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text and numbers")
    }
}

impl fmt::Display for CueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for CueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CueId {
    type Err = CueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let problem = CueError::Field {
            field: "id",
            problem: "expected 32 hexadecimal digits",
        };
        if text.len() != 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(problem);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| problem)?;
        Ok(Self(number.to_be_bytes()))
    }
}

impl TryFrom<String> for CueId {
    type Error = CueError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CueId> for String {
    fn from(id: CueId) -> Self {
        id.to_string()
    }
}

/// Times as microseconds since 1970.
mod micros {
    use namecast_units::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    pub(super) fn serialize<S: Serializer>(at: &Timestamp, sink: S) -> Result<S::Ok, S::Error> {
        sink.serialize_u64(at.as_micros())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Timestamp, D::Error> {
        u64::deserialize(source).map(Timestamp::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cue() -> Cue {
        Cue {
            id: CueId([0xab; 16]),
            number: "12.5".to_owned(),
            action: Action::Go,
            term: 2,
            at: Timestamp::from_micros(1_760_000_000_300_000),
            targets: vec!["light-1".to_owned()],
            values: Map::from_iter([("level".to_owned(), Value::from(80))]),
            rehearsal: false,
        }
    }

    #[test]
    fn a_cue_is_readable_json_and_reads_back() {
        let json = r#"{"id":"abababababababababababababababab","number":"12.5","action":"go","term":2,"at":1760000000300000,"targets":["light-1"],"values":{"level":80}}"#;
        let octets = cue().encode().unwrap();
        assert_eq!(String::from_utf8(octets.clone()).unwrap(), json);
        assert_eq!(Cue::decode(&octets).unwrap(), cue());
        assert!(cue().is_for("light-1") && !cue().is_for("light-2"));
    }

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let refused = |change: fn(&mut Cue)| {
            let mut wrong = cue();
            change(&mut wrong);
            wrong.encode().unwrap_err().to_string()
        };
        assert!(refused(|cue| cue.number.clear()).starts_with("number: "));
        assert!(refused(|cue| cue.term = MAX_TERM + 1).starts_with("term: "));
        assert!(refused(|cue| cue.number = "x\n".to_owned()).starts_with("number: "));
        assert!(refused(|cue| cue.targets = vec!["a".to_owned(); 65]).starts_with("targets: "));
        let long =
            |cue: &mut Cue| drop(cue.values.insert("x".to_owned(), "y".repeat(4_000).into()));
        assert!(refused(long).ends_with("octets: expected at most 4000"));
        let text = |json: &str| Cue::decode(json.as_bytes()).unwrap_err().to_string();
        assert!(
            text(r#"{"id":"ab","number":"1","action":"go","at":1}"#).contains("32 hexadecimal")
        );
        assert!(
            text(r#"{"id":"abababababababababababababababab","number":"1","action":"go","term":18446744073709551615,"at":1}"#)
                .contains("term: expected at most 9007199254740991")
        );
        assert!(
            text(r#"{"id":"abababababababababababababababab","number":"1","action":"go","term":-1,"at":1}"#)
                .contains("invalid value")
        );
        assert!(
            text(r#"{"id":"+bababababababababababababababab","number":"1","action":"go","at":1}"#)
                .contains("32 hex")
        );
        assert!(text(r#"{"number":"1","action":"go","at":1}"#).contains("missing field `id`"));
        assert!(
            text(
                r#"{"id":"abababababababababababababababab","number":"1","action":"jump","at":1}"#
            )
            .contains("jump")
        );
        assert!(
            text(
                r#"{"id":"abababababababababababababababab","number":"1","action":"go","at":1e400}"#
            )
            .contains("number out of range")
        );
    }
}
