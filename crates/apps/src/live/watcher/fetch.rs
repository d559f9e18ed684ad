//! Fetches a catalogue that is too large to travel in metadata: its first segment tells how many there are, then all
//! others are asked for at once.

use std::collections::BTreeMap;

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use namecast_packet::{Component, Data, Name};
use namecast_stream::catalogue::MAX_CATALOGUE_SIZE;
use namecast_units::Instant;

/// Most segments of a catalogue: enough for the largest in segments of 500 octets.
const MOST_SEGMENTS: u64 = 132;
/// First wait for segments that do not come; doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Transmissions of what is missing, before the fetch is given up.
const MOST_ATTEMPTS: u32 = 5;

/// A catalogue on its way.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    pub catalogue_name: Name,
    /// Number of the last segment, once the first has come.
    last: Option<u64>,
    parts: BTreeMap<u64, Bytes>,
    attempts: u32,
    pub retry_at: Instant,
}

/// What became of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Others are missing.
    Partial,
    /// Others are missing, and it is known now which: they should be asked for at once.
    Known,
    /// This is the whole catalogue.
    Whole(Bytes),
    /// It is larger than a catalogue may be.
    TooLarge,
}

impl Fetch {
    /// A fetch of `catalogue_name`, which asks at once.
    pub(crate) fn new(now: Instant, catalogue_name: Name) -> Self {
        Self {
            catalogue_name,
            last: None,
            parts: BTreeMap::new(),
            attempts: 0,
            retry_at: now,
        }
    }

    /// Whether `name` is that of a segment which is still missing.
    pub(crate) fn wants(&self, name: &Name) -> bool {
        self.number_of(name)
            .is_some_and(|number| !self.parts.contains_key(&number))
    }

    fn number_of(&self, name: &Name) -> Option<u64> {
        let number = name.last()?.number_of(Component::SEGMENT)?;
        let is_asked_for = number <= self.last.unwrap_or(0);
        (is_asked_for && name.parent() == self.catalogue_name).then_some(number)
    }

    /// Names to ask for now, and how often they were asked for before; `None` once that was too often.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<(Vec<Name>, u32)> {
        if self.attempts >= MOST_ATTEMPTS {
            return None;
        }
        self.retry_at = now + FIRST_WAIT * (1 << self.attempts);
        self.attempts += 1;
        let missing = (0..=self.last.unwrap_or(0)).filter(|n| !self.parts.contains_key(n));
        let names = missing.map(|n| self.catalogue_name.builder().segment(n).finish());
        Some((names.collect(), self.attempts - 1))
    }

    /// Takes a segment that [`wants`](Self::wants) was true for, and that is verified.
    pub(crate) fn take(&mut self, data: &Data) -> Progress {
        let Some(number) = self.number_of(data.name()) else {
            return Progress::Partial;
        };
        let content = data.content().unwrap_or_default();
        self.parts.insert(number, content);
        let size: usize = self.parts.values().map(Bytes::len).sum();
        let last = data
            .final_block()
            .and_then(|id| id.last()?.number_of(Component::SEGMENT));
        let is_news = self.last.is_none();
        let last = *self.last.get_or_insert(last.unwrap_or(0));
        if size > MAX_CATALOGUE_SIZE || last >= MOST_SEGMENTS {
            return Progress::TooLarge;
        }
        if self.parts.len() as u64 > last {
            let mut whole = BytesMut::with_capacity(size);
            self.parts
                .values()
                .for_each(|part| whole.extend_from_slice(part));
            return Progress::Whole(whole.freeze());
        }
        if is_news {
            self.attempts = 0;
            return Progress::Known;
        }
        Progress::Partial
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;

    use super::*;

    fn name(number: u64) -> Name {
        let name: Name = "/demo/catalogue/v=1".parse().unwrap();
        name.builder().segment(number).finish()
    }

    fn segment(number: u64, last: u64, content: &'static [u8]) -> Data {
        Data::builder(name(number))
            .final_block(Name::root().builder().segment(last).finish())
            .content(content)
            .sign(&NullSigner)
    }

    fn fetch() -> Fetch {
        Fetch::new(Instant::ZERO, "/demo/catalogue/v=1".parse().unwrap())
    }

    #[test]
    fn the_first_segment_tells_of_the_others_which_may_come_in_any_order() {
        let mut fetch = fetch();
        assert_eq!(fetch.ask(Instant::ZERO), Some((vec![name(0)], 0)));
        assert!(fetch.wants(&name(0)) && !fetch.wants(&name(1)));
        assert_eq!(fetch.take(&segment(0, 2, b"a")), Progress::Known);
        assert_eq!(fetch.ask(Instant::ZERO), Some((vec![name(1), name(2)], 0)));
        assert_eq!(fetch.take(&segment(2, 2, b"c")), Progress::Partial);
        assert!(!fetch.wants(&name(2)) && !fetch.wants(&name(3)));
        assert_eq!(fetch.ask(Instant::ZERO), Some((vec![name(1)], 1)));
        assert_eq!(
            fetch.take(&segment(1, 2, b"b")),
            Progress::Whole("abc".into())
        );
    }

    #[test]
    fn a_catalogue_without_end_is_refused() {
        assert_eq!(
            fetch().take(&segment(0, MOST_SEGMENTS, b"a")),
            Progress::TooLarge
        );
        assert_eq!(
            fetch().take(&segment(0, MOST_SEGMENTS - 1, b"a")),
            Progress::Known
        );
        let mut fetch = fetch();
        let asked = core::iter::from_fn(|| fetch.ask(Instant::ZERO)).count();
        assert_eq!(asked, MOST_ATTEMPTS as usize);
    }
}
