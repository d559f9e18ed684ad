//! Samples of a tick.

use std::collections::BTreeMap;

use namecast_units::Timestamp;

use super::person::{MAX_METRES, Person, TrackError};

/// Most octets of a sample.
pub const MAX_SAMPLE: usize = 320_000;
/// Octets before clocks and people.
pub(super) const HEADER: usize = 11;
const VERSION: u8 = 1;
/// Units of a coordinate in a metre.
const UNITS: f64 = 10_000.0;
/// Ticks by which a sample may be ahead of the one before it; readers take samples that are further ahead for those of another publisher.
const MAX_AHEAD: u64 = 4_096;

const _: () = assert!(MAX_METRES * UNITS <= i32::MAX as f64);

/// People of a tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Number of the tick.
    pub tick: u64,
    /// The people.
    pub people: Vec<Person>,
}

/// Writes the sample of a tick; there may be nobody.
///
/// # Errors
/// The first person that is out of bounds, or if they take more than [`MAX_SAMPLE`] octets.
pub fn encode(tick: u64, people: &[Person]) -> Result<Vec<u8>, TrackError> {
    let mut clocks: BTreeMap<&str, usize> = BTreeMap::new();
    for person in people {
        person.validate()?;
        let next = clocks.len() + 1;
        if let Some(clock) = &person.clock {
            clocks.entry(clock).or_insert(next);
        }
    }
    let size = people.iter().map(size_of).sum::<usize>() + HEADER;
    if size > MAX_SAMPLE {
        return Err(TrackError::TooManyOctets(size));
    }
    let mut named: Vec<_> = clocks.iter().collect();
    named.sort_unstable_by_key(|(_, number)| **number);
    let mut sample = vec![VERSION];
    sample.extend_from_slice(&tick.to_be_bytes());
    sample.extend_from_slice(&(named.len() as u16).to_be_bytes());
    for (clock, _) in named {
        sample.push(clock.len() as u8);
        sample.extend_from_slice(clock.as_bytes());
    }
    for person in people {
        let clock = person.clock.as_deref().map_or(0, |clock| clocks[clock]);
        write(person, clock as u16, &mut sample);
    }
    Ok(sample)
}

/// Returns the octets that a person takes in a sample, at most.
pub(super) fn size_of(person: &Person) -> usize {
    let clock = person.clock.as_ref().map_or(0, |clock| 1 + clock.len());
    1 + person.id.len() + 12 + 8 + 2 + 2 + person.extra_json().len() + clock
}

fn write(person: &Person, clock: u16, to: &mut Vec<u8>) {
    to.push(person.id.len() as u8);
    to.extend_from_slice(person.id.as_bytes());
    for metres in [person.x, person.y, person.z] {
        to.extend_from_slice(&((metres * UNITS).round() as i32).to_be_bytes());
    }
    to.extend_from_slice(&person.at.as_micros().to_be_bytes());
    to.extend_from_slice(&clock.to_be_bytes());
    let extra = person.extra_json();
    to.extend_from_slice(&(extra.len() as u16).to_be_bytes());
    to.extend_from_slice(&extra);
}

impl Sample {
    /// Reads a sample of at most `max_people` people.
    ///
    /// # Errors
    /// Where it ends early, the first field that is out of bounds, or that it announces more people.
    pub fn decode(octets: &[u8], max_people: usize) -> Result<Self, TrackError> {
        let mut reader = Reader::new(octets)?;
        if reader.u8()? != VERSION {
            return Err(reader.error("expected version 1: update namecast"));
        }
        let tick = u64::from_be_bytes(reader.take()?);
        let count = reader.u16()?;
        let clocks = (0..count).map(|_| reader.text());
        let clocks = clocks.collect::<Result<Vec<_>, _>>()?;
        let mut people = Vec::new();
        while !reader.is_at_end() {
            if people.len() == max_people {
                return Err(TrackError::TooManyAnnounced(max_people));
            }
            people.push(reader.person(&clocks)?);
        }
        Ok(Self { tick, people })
    }
}

/// Reads what is received.
pub(super) struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `octets` from the first on.
    ///
    /// # Errors
    /// If there are more than [`MAX_SAMPLE`].
    pub(super) const fn new(octets: &'a [u8]) -> Result<Self, TrackError> {
        match octets.len() {
            0..=MAX_SAMPLE => Ok(Self { octets, at: 0 }),
            octets => Err(TrackError::TooManyOctets(octets)),
        }
    }

    /// Returns whether all is read.
    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= self.octets.len()
    }

    pub(super) const fn error(&self, problem: &'static str) -> TrackError {
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

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], TrackError> {
        let slice = self.slice(N)?;
        Ok(slice.try_into().expect("of that length"))
    }

    pub(super) fn u8(&mut self) -> Result<u8, TrackError> {
        let [octet] = self.take()?;
        Ok(octet)
    }

    fn u16(&mut self) -> Result<u16, TrackError> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    pub(super) fn text(&mut self) -> Result<String, TrackError> {
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
        let clock = match usize::from(self.u16()?) {
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

/// Keeps the ticks of one publisher in order: each is above the one before it, and near.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks {
    newest: Option<u64>,
}

impl Ticks {
    /// Takes the number of the next tick.
    ///
    /// # Errors
    /// If it is not above the one before it, or too far ahead.
    pub fn handle_tick(&mut self, tick: u64) -> Result<(), TrackError> {
        if let Some(newest) = self.newest
            && (tick <= newest || tick - newest > MAX_AHEAD)
        {
            return Err(TrackError::Tick { tick, newest });
        }
        self.newest = Some(tick);
        Ok(())
    }

    /// Takes any number next: the publisher has started again, or playback goes on elsewhere.
    pub const fn restart(&mut self) {
        self.newest = None;
    }
}
