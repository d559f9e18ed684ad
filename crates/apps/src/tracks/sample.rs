//! Samples of a tick.

use namecast_units::Timestamp;

use super::person::{MAX_METRES, Person, TrackError};
use super::{MAX_PEOPLE, PERSON_SIZE};

/// Octets of people in a sample; those of a tick with more are in several.
pub const MAX_SAMPLE: usize = MAX_PEOPLE * PERSON_SIZE;
/// Most samples of a tick.
pub const MAX_PARTS: u16 = 64;
const VERSION: u8 = 1;
/// Units of a coordinate in a metre.
const UNITS: f64 = 10_000.0;
/// Most clocks of a sample.
const MAX_CLOCKS: usize = 255;

const _: () = assert!(MAX_METRES * UNITS <= i32::MAX as f64);

/// People of a tick, or a part of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Number of the tick.
    pub tick: u64,
    /// Number of this part, less than `parts`.
    pub part: u16,
    /// Number of samples of the tick: 1 to [`MAX_PARTS`].
    pub parts: u16,
    /// The people.
    pub people: Vec<Person>,
}

/// Writes the samples of a tick: one, also of nobody, and several beyond [`MAX_SAMPLE`] octets.
///
/// # Errors
/// The first person that is out of bounds, or if there are too many.
pub fn encode(tick: u64, people: &[Person]) -> Result<Vec<Vec<u8>>, TrackError> {
    let mut parts = vec![Part::default()];
    for person in people {
        person.validate()?;
        let part = parts.last_mut().expect("there is one");
        if !part.add(person) {
            let mut next = Part::default();
            next.add(person);
            parts.push(next);
        }
    }
    let count = u16::try_from(parts.len())
        .ok()
        .filter(|it| *it <= MAX_PARTS);
    let count = count.ok_or(TrackError::TooManyParts(people.len()))?;
    let samples = parts.iter().zip(0..);
    Ok(samples
        .map(|(part, at)| part.finish((tick, at, count)))
        .collect())
}

/// A sample that is written.
#[derive(Default)]
struct Part<'a> {
    clocks: Vec<&'a str>,
    people: Vec<u8>,
}

impl<'a> Part<'a> {
    /// Adds a valid person. Returns whether there is room.
    fn add(&mut self, person: &'a Person) -> bool {
        let extra = person.extra_json();
        let octets = 1 + person.id.len() + 12 + 8 + 1 + 2 + extra.len();
        if self.people.len() + octets > MAX_SAMPLE {
            return false;
        }
        let clock = match person.clock.as_deref() {
            None => 0,
            Some(clock) => match self.clocks.iter().position(|known| *known == clock) {
                Some(at) => at + 1,
                None if self.clocks.len() == MAX_CLOCKS => return false,
                None => {
                    self.clocks.push(clock);
                    self.clocks.len()
                }
            },
        };
        let to = &mut self.people;
        to.push(person.id.len() as u8);
        to.extend_from_slice(person.id.as_bytes());
        for metres in [person.x, person.y, person.z] {
            to.extend_from_slice(&((metres * UNITS).round() as i32).to_be_bytes());
        }
        to.extend_from_slice(&person.at.as_micros().to_be_bytes());
        to.push(clock as u8);
        to.extend_from_slice(&(extra.len() as u16).to_be_bytes());
        to.extend_from_slice(&extra);
        true
    }

    fn finish(&self, (tick, part, parts): (u64, u16, u16)) -> Vec<u8> {
        let mut sample = vec![VERSION];
        sample.extend_from_slice(&tick.to_be_bytes());
        sample.extend_from_slice(&part.to_be_bytes());
        sample.extend_from_slice(&parts.to_be_bytes());
        sample.push(self.clocks.len() as u8);
        for clock in &self.clocks {
            sample.push(clock.len() as u8);
            sample.extend_from_slice(clock.as_bytes());
        }
        sample.extend_from_slice(&self.people);
        sample
    }
}

impl Sample {
    /// Reads a sample.
    ///
    /// # Errors
    /// Where it ends early, or the first field that is out of bounds.
    pub fn decode(octets: &[u8]) -> Result<Self, TrackError> {
        let mut reader = Reader { octets, at: 0 };
        if reader.u8()? != VERSION {
            return Err(reader.error("expected version 1: update namecast"));
        }
        let tick = u64::from_be_bytes(reader.take()?);
        let [part, parts] = [reader.u16()?, reader.u16()?];
        if part >= parts || parts > MAX_PARTS {
            return Err(reader.error("expected a part of 1 to 64"));
        }
        let count = reader.u8()?;
        let clocks = (0..count).map(|_| reader.text());
        let clocks = clocks.collect::<Result<Vec<_>, _>>()?;
        let start = reader.at;
        let mut people = Vec::new();
        while reader.at < octets.len() {
            people.push(reader.person(&clocks)?);
        }
        if reader.at - start > MAX_SAMPLE {
            return Err(reader.error("more people than a sample has room for"));
        }
        Ok(Self {
            tick,
            part,
            parts,
            people,
        })
    }
}

struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    const fn error(&self, problem: &'static str) -> TrackError {
        let at = self.at;
        TrackError::Sample { at, problem }
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8], TrackError> {
        let rest = self.octets.get(self.at..).unwrap_or_default();
        let slice = rest.get(..length);
        let slice = slice.ok_or_else(|| self.error("ends early"))?;
        self.at += length;
        Ok(slice)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], TrackError> {
        let slice = self.slice(N)?;
        Ok(slice.try_into().expect("of that length"))
    }

    fn u8(&mut self) -> Result<u8, TrackError> {
        let [octet] = self.take()?;
        Ok(octet)
    }

    fn u16(&mut self) -> Result<u16, TrackError> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    fn text(&mut self) -> Result<String, TrackError> {
        let length = self.u8()?;
        let text = core::str::from_utf8(self.slice(usize::from(length))?);
        let text = text.map_err(|_| self.error("expected UTF-8"))?;
        Ok(text.to_owned())
    }

    fn person(&mut self, clocks: &[String]) -> Result<Person, TrackError> {
        let id = self.text()?;
        let mut metres = || Ok(f64::from(i32::from_be_bytes(self.take()?)) / UNITS);
        let [x, y, z] = [metres()?, metres()?, metres()?];
        let at = Timestamp::from_micros(u64::from_be_bytes(self.take()?));
        let clock = match usize::from(self.u8()?) {
            0 => None,
            number => {
                let clock = clocks.get(number - 1);
                let clock = clock.ok_or_else(|| self.error("no such clock"))?;
                Some(clock.clone())
            }
        };
        let length = self.u16()?;
        let extra = match self.slice(usize::from(length))? {
            [] => serde_json::Map::new(),
            json => serde_json::from_slice(json)
                .map_err(|_| self.error("other fields: expected a JSON object"))?,
        };
        let person = Person {
            id,
            x,
            y,
            z,
            at,
            clock,
            extra,
        };
        person.validate()?;
        Ok(person)
    }
}

/// Puts the parts of ticks together. Samples come in order, so that one of another tick ends the tick before.
#[derive(Debug, Default)]
pub struct Ticks {
    /// Tick, its number of parts, and the first parts of it.
    pending: Option<(u64, u16, Vec<Person>)>,
    /// Parts of `pending`.
    arrived: u16,
    /// The last tick that was found to lack a part.
    last_incomplete: Option<u64>,
    incomplete: u64,
}

impl Ticks {
    /// Takes the next sample. Returns its tick and everybody in it, once the tick is complete.
    pub fn handle_sample(&mut self, sample: Sample) -> Option<(u64, Vec<Person>)> {
        let Sample {
            tick,
            part,
            parts,
            people,
        } = sample;
        let follows = |(of, count, _): &(u64, u16, _)| (*of, *count) == (tick, parts);
        let is_next = self.pending.as_ref().is_some_and(follows) && part == self.arrived;
        if !is_next {
            if let Some((begun, ..)) = self.pending.take() {
                self.count_incomplete(begun);
            }
            self.arrived = 0;
            if part != 0 {
                self.count_incomplete(tick);
                return None;
            }
        }
        let (.., everybody) = self
            .pending
            .get_or_insert_with(|| (tick, parts, Vec::new()));
        everybody.extend(people);
        self.arrived += 1;
        if self.arrived < parts {
            return None;
        }
        let (tick, _, everybody) = self.pending.take()?;
        self.arrived = 0;
        Some((tick, everybody))
    }

    fn count_incomplete(&mut self, tick: u64) {
        if self.last_incomplete.replace(tick) != Some(tick) {
            self.incomplete += 1;
        }
    }

    /// Returns how many ticks lost a part.
    pub const fn incomplete(&self) -> u64 {
        self.incomplete
    }
}
