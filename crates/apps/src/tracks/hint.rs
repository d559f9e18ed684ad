//! The hint: who is here, since when, and the newest tick.
//!
//! | octets | field |
//! |---|---|
//! | 1 | version: 1 |
//! | 8 | number of the newest tick |
//! | rest | people, each: 1 octet of length and the id, UTF-8; 8: since when they are here, in µs since 1970 by the publisher's clock |

use namecast_units::Timestamp;

use super::person::{TrackError, check_id};
use super::sample::{MAX_SAMPLE, Reader};

const VERSION: u8 = 1;

/// Who is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// Number of the newest tick.
    pub tick: u64,
    /// Ids of people, and since when they are here by the publisher's clock.
    pub people: Vec<(String, Timestamp)>,
}

impl Hint {
    /// Writes a hint.
    ///
    /// # Errors
    /// If there is no room for all.
    pub fn encode(&self) -> Result<Vec<u8>, TrackError> {
        let mut hint = vec![VERSION];
        hint.extend_from_slice(&self.tick.to_be_bytes());
        for (id, since) in &self.people {
            check_id(id)?;
            hint.push(id.len() as u8);
            hint.extend_from_slice(id.as_bytes());
            hint.extend_from_slice(&since.as_micros().to_be_bytes());
        }
        match hint.len() {
            0..=MAX_SAMPLE => Ok(hint),
            octets => Err(TrackError::TooManyOctets(octets)),
        }
    }

    /// Reads a hint of at most `max_people` people.
    ///
    /// # Errors
    /// Where it ends early, the first field that is out of bounds, or that it announces more people.
    pub fn decode(octets: &[u8], max_people: usize) -> Result<Self, TrackError> {
        let mut reader = Reader::new(octets)?;
        if reader.u8()? != VERSION {
            return Err(reader.error("expected version 1: update namecast"));
        }
        let tick = u64::from_be_bytes(reader.take()?);
        let mut people = Vec::new();
        while !reader.is_at_end() {
            if people.len() == max_people {
                return Err(TrackError::TooManyAnnounced(max_people));
            }
            let id = reader.text()?;
            check_id(&id)?;
            let since = Timestamp::from_micros(u64::from_be_bytes(reader.take()?));
            people.push((id, since));
        }
        Ok(Self { tick, people })
    }
}
