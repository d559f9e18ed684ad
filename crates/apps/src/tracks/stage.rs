//! The publishing end: ticks of everybody, of each person that is requested, and the hint.

use std::collections::BTreeMap;

use namecast_stream::producer::RungId;
use namecast_stream::{SampleRate, StreamInfo};
use namecast_units::Timestamp;

use super::hint::Hint;
use super::person::{Person, TrackError};
use super::{HINTS_PER_SECOND, TRACKS, encode};
use crate::Now;
use crate::live::publisher::{FrameError, Publisher, SetupError};

/// Why a tick was not published whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// A person is out of bounds, or there are too many.
    #[error(transparent)]
    Track(#[from] TrackError),
    /// A person could not be added.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The publisher refused a sample.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Publishes ticks through a publisher of [`tracks::stream`](super::stream).
///
/// ```text
///  people ─ each tick ─┬─▶ /<root>/tracks/32=all/…    everybody
///                      ├─▶ /<root>/tracks/<id>/…      a person, while somebody requests it
///                      └─▶ /<root>/tracks/32=hint/…   who is here: 5 times a second, and when somebody comes or goes
/// ```
#[derive(Debug)]
pub struct Stage {
    rate: SampleRate,
    everybody: RungId,
    hint: RungId,
    people: BTreeMap<String, (RungId, Timestamp)>,
    newest: u64,
}

impl Stage {
    /// Begins at `wall`.
    ///
    /// # Errors
    /// If the publisher has no tracks.
    pub fn new(publisher: &mut Publisher, wall: Timestamp) -> Result<Self, StageError> {
        let rung = publisher.rung(TRACKS, StreamInfo::ALL_RUNG);
        let everybody = rung.ok_or(FrameError::NoSuchRung)?;
        let family = publisher.catalogue().stream(TRACKS);
        let rate = family.map_or(SampleRate::new(1, 1), |family| family.rungs[0].rate);
        let first = rate.first_sequence(wall);
        Ok(Self {
            rate,
            everybody,
            hint: publisher.add_member(TRACKS, "32=hint", first)?,
            people: BTreeMap::new(),
            newest: first.saturating_sub(1),
        })
    }

    /// Publishes the tick at `now`. Its number goes by the wall clock, so that ticks of several publishers of one rate have the same numbers, and grows.
    ///
    /// # Errors
    /// The first problem; what comes before it is published.
    pub fn publish(
        &mut self,
        publisher: &mut Publisher,
        now: Now,
        people: &[Person],
    ) -> Result<(), StageError> {
        let tick = self.rate.first_sequence(now.wall).max(self.newest + 1);
        self.newest = tick;
        publisher.publish_number(now, self.everybody, tick, encode(tick, people)?)?;
        let has_changed = self.learn(publisher, now.wall, people)?;
        for person in people {
            let Some((member, _)) = self.people.get(&person.id) else {
                continue;
            };
            if publisher.is_asked(now.monotonic, *member, tick) {
                let sample = encode(tick, core::slice::from_ref(person))?;
                publisher.publish_number(now, *member, tick, sample)?;
            } else {
                publisher.pass(*member, tick);
            }
        }
        // Readers take at most as many a second, so that they request the same numbers.
        let every = u64::from(self.rate.num).div_ceil(u64::from(self.rate.den * HINTS_PER_SECOND));
        let is_due = has_changed || tick.is_multiple_of(every.max(1));
        if is_due && publisher.is_asked(now.monotonic, self.hint, tick) {
            let people = self.people.iter();
            let people = people.map(|(id, (_, since))| (id.clone(), *since));
            let people = people.collect();
            let hint = Hint { tick, people }.encode()?;
            publisher.publish_number(now, self.hint, tick, hint)?;
        } else {
            publisher.pass(self.hint, tick);
        }
        Ok(())
    }

    /// Adds those who have come, and ends those who have left. Returns whether there are any.
    fn learn(
        &mut self,
        publisher: &mut Publisher,
        wall: Timestamp,
        people: &[Person],
    ) -> Result<bool, StageError> {
        let before = self.people.len();
        let here: std::collections::BTreeSet<&str> =
            people.iter().map(|person| person.id.as_str()).collect();
        let left = self
            .people
            .extract_if(.., |id, _| !here.contains(id.as_str()));
        let left: Vec<_> = left.map(|(_, (member, _))| member).collect();
        left.iter().for_each(|member| publisher.end_member(*member));
        let mut has_changed = before != self.people.len();
        for id in here {
            if !self.people.contains_key(id) {
                let member = publisher.add_member(TRACKS, &format!("8={id}"), self.newest)?;
                self.people.insert(id.to_owned(), (member, wall));
                has_changed = true;
            }
        }
        Ok(has_changed)
    }
}
