//! The people that a publisher knows.

use core::time::Duration;
use std::collections::BTreeMap;

use namecast_units::Timestamp;
use serde_json::Map;

use super::person::{Person, TrackError};
use super::sample::{HEADER, MAX_SAMPLE, size_of};

/// Somebody of whom nothing is heard for so long has left.
const GONE_AFTER: Duration = Duration::from_secs(1);

/// Newest positions, of a bounded number of people.
#[derive(Debug)]
pub struct Crowd {
    people: BTreeMap<String, (Timestamp, Person)>,
    max_people: usize,
    /// Octets that they take in a sample.
    octets: usize,
}

impl Crowd {
    /// Nobody, with room for `max_people`.
    pub const fn new(max_people: usize) -> Self {
        Self {
            people: BTreeMap::new(),
            max_people,
            octets: 0,
        }
    }

    /// Records a position that arrived `now`.
    ///
    /// # Errors
    /// If it is of one person too many, or a tick has no room for it; the others are kept.
    pub fn put(&mut self, now: Timestamp, person: Person) -> Result<(), TrackError> {
        let is_known = self.people.contains_key(&person.id);
        if !is_known && self.people.len() >= self.max_people {
            self.leave(now);
            if self.people.len() >= self.max_people {
                return Err(TrackError::TooManyPeople(self.people.len()));
            }
        }
        let before = self.people.get(&person.id);
        let before = before.map_or(0, |(_, before)| size_of(before));
        let octets = self.octets - before + size_of(&person);
        if octets + HEADER > MAX_SAMPLE {
            return Err(TrackError::TooManyOctets(octets + HEADER));
        }
        self.octets = octets;
        self.people.insert(person.id.clone(), (now, person));
        Ok(())
    }

    /// Forgets everybody.
    pub fn clear(&mut self) {
        self.people.clear();
        self.octets = 0;
    }

    /// Returns everybody, by id, without those of whom nothing arrived for a second.
    pub fn people(&mut self, now: Timestamp) -> Vec<Person> {
        self.leave(now);
        let people = self.people.values();
        people.map(|(_, person)| person.clone()).collect()
    }

    fn leave(&mut self, now: Timestamp) {
        let is_gone = |_: &String, (at, _): &mut (Timestamp, Person)| now.since(*at) > GONE_AFTER;
        for (_, (_, person)) in self.people.extract_if(.., is_gone) {
            self.octets -= size_of(&person);
        }
    }
}

/// Returns `count` people who walk in circles, as they are at `now`.
pub fn walking(count: usize, now: Timestamp) -> Vec<Person> {
    let seconds = now.as_micros() as f64 / 1e6;
    let people = (0..count).map(|number| {
        // Ten in a row, four metres apart; a turn of a metre's radius takes about six seconds.
        let (column, row) = ((number % 10) as f64, (number / 10) as f64);
        let angle = seconds + number as f64;
        Person {
            id: format!("person-{}", number + 1),
            x: 4.0 * column + libm::cos(angle),
            y: 4.0 * row + libm::sin(angle),
            z: 1.7,
            at: now,
            clock: None,
            extra: Map::new(),
        }
    });
    people.collect()
}
