//! OpenPTrack's datagrams of JSON.
//!
//! ```text
//! {"header": {"seq": 7, "stamp": {"sec": 1700000000, "nsec": 5000}, "frame_id": "world"},
//!  "tracks": [{"id": 3, "x": 1.5, "y": 2.0, "height": 1.8, "age": 4.2, "confidence": 0.7}]}
//! {"header": {"seq": 7, …}, "pose_tracks": [{"id": 3, "joints": {"CHEST": {"x": 1.5, "y": 2.0, "z": 1.3}}}]}
//! ```
//!
//! Objects of one `seq` describe the same people: they are merged, in whatever order and datagrams they arrive. `z` is the height where there is
//! no `z`. A pose without a position is at its chest, unless `tracks` says where the person is. Frames without people are dropped.

use std::collections::BTreeMap;

use namecast_units::Timestamp;
use serde_json::{Map, Value};

use super::person::{Person, TrackError, wrong};

/// Largest datagram, in octets: that of UDP.
pub const MAX_DATAGRAM: usize = 65_535;
/// Sequences by which a frame may be late. One that is further behind is of an OpenPTrack that started again.
const MAX_BEHIND: u64 = 300;
/// Clock of measurements, unless the frame names a coordinate system.
const CLOCK: &str = "openptrack";

/// Reads OpenPTrack's datagrams.
#[derive(Debug)]
pub struct OpenPTrack {
    seq: Option<u64>,
    /// People of that frame, and whether `tracks` gave their position.
    people: BTreeMap<String, (Person, bool)>,
    arrived: Timestamp,
    max_people: usize,
    empty: u64,
}

impl OpenPTrack {
    /// A reader of at most `max_people` people in a frame.
    pub const fn new(max_people: usize) -> Self {
        Self {
            seq: None,
            people: BTreeMap::new(),
            arrived: Timestamp::from_micros(0),
            max_people,
            empty: 0,
        }
    }

    /// Takes a datagram of one or more objects that arrived `now`. Returns the problems of people, objects and the rest that is not JSON: the
    /// others count.
    pub fn handle_datagram(&mut self, now: Timestamp, datagram: &[u8]) -> Vec<TrackError> {
        let mut errors = Vec::new();
        if datagram.len() > MAX_DATAGRAM {
            return vec![TrackError::TooLong(MAX_DATAGRAM)];
        }
        // Some senders end their text as C does.
        let text = datagram.trim_ascii_end();
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        for object in serde_json::Deserializer::from_slice(text).into_iter() {
            match object {
                Ok(Value::Object(fields)) => self.handle_object(now, fields, &mut errors),
                Ok(_) => errors.push(TrackError::NoObject),
                Err(error) => errors.push(TrackError::Json { field: None, error }),
            }
        }
        errors
    }

    /// Returns the people of the newest frame.
    pub fn people(&self) -> impl Iterator<Item = &Person> {
        self.people.values().map(|(person, _)| person)
    }

    /// Returns when the last of them arrived.
    pub const fn arrived(&self) -> Timestamp {
        self.arrived
    }

    /// Returns how many objects had no people.
    pub const fn empty(&self) -> u64 {
        self.empty
    }

    fn handle_object(
        &mut self,
        now: Timestamp,
        mut fields: Map<String, Value>,
        errors: &mut Vec<TrackError>,
    ) {
        let header = fields.remove("header").unwrap_or_default();
        let at = stamp(&header["stamp"]);
        let at = at.map_or((now, None), |at| (at, Some(CLOCK.to_owned())));
        let mut people = Vec::new();
        for (name, has_position) in [("pose_tracks", false), ("tracks", true)] {
            match fields.remove(name) {
                None => {}
                Some(Value::Array(tracks)) => {
                    people.extend(tracks.into_iter().map(|track| (track, has_position)));
                }
                Some(_) => errors.push(wrong(name, "expected an array")),
            }
        }
        if people.is_empty() {
            self.empty += 1;
            return;
        }
        let Some(seq) = header["seq"].as_u64() else {
            errors.push(wrong("header.seq", "expected a number"));
            return;
        };
        if !self.begin(seq) {
            return;
        }
        self.arrived = now;
        for (track, has_position) in people {
            match person(track, has_position, &at) {
                Ok(person) => errors.extend(self.merge(person, has_position).err()),
                Err(error) => errors.push(error),
            }
        }
    }

    /// Returns whether people of `seq` count.
    fn begin(&mut self, seq: u64) -> bool {
        match self.seq {
            Some(known) if seq == known => true,
            Some(known) if seq < known && known - seq <= MAX_BEHIND => false,
            _ => {
                self.seq = Some(seq);
                self.people.clear();
                true
            }
        }
    }

    fn merge(&mut self, person: Person, has_position: bool) -> Result<(), TrackError> {
        if let Some((known, is_placed)) = self.people.get_mut(&person.id) {
            let before = known.clone();
            let (mut merged, other) = match has_position || !*is_placed {
                true => (person, before),
                false => (before, person),
            };
            for (name, value) in other.extra {
                merged.extra.entry(name).or_insert(value);
            }
            merged.validate()?;
            *is_placed |= has_position;
            *known = merged;
            return Ok(());
        }
        if self.people.len() >= self.max_people {
            return Err(TrackError::TooManyPeople(self.people.len()));
        }
        self.people
            .insert(person.id.clone(), (person, has_position));
        Ok(())
    }
}

/// Reads one person of `tracks` or, without a position, of `pose_tracks`.
fn person(
    track: Value,
    has_position: bool,
    (at, clock): &(Timestamp, Option<String>),
) -> Result<Person, TrackError> {
    let Value::Object(mut fields) = track else {
        return Err(TrackError::NoObject);
    };
    if has_position {
        if !fields.contains_key("z") {
            let height = fields.remove("height");
            fields.insert("z".to_owned(), height.unwrap_or(Value::from(0)));
        }
    } else {
        for axis in ["x", "y", "z"] {
            if !fields.contains_key(axis) {
                let place = fields.get("joints").map(|joints| &joints["CHEST"][axis]);
                let place = place.cloned().unwrap_or_default();
                fields.insert(axis.to_owned(), place);
            }
        }
    }
    fields.remove("at");
    fields.remove("clock");
    let mut person = Person::from_fields(fields, *at)?;
    person.clock.clone_from(clock);
    Ok(person)
}

/// Reads a time of ROS: `sec` and `nsec`, or `secs` and `nsecs`.
fn stamp(stamp: &Value) -> Option<Timestamp> {
    let field = |names: [&str; 2]| names.iter().find_map(|name| stamp[*name].as_u64());
    let [seconds, nanos] = [field(["sec", "secs"])?, field(["nsec", "nsecs"])?];
    let micros = seconds.checked_mul(1_000_000)?.checked_add(nanos / 1_000)?;
    i64::try_from(micros).ok()?;
    Some(Timestamp::from_micros(micros))
}
