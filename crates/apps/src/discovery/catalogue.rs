//! Fetches a catalogue that is too large to travel in metadata: its first segment tells how many there are, then all
//! others are asked for at once.

use std::collections::BTreeMap;

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use namecast_packet::{Component, Data, Interest, Name};
use namecast_stream::catalogue::MAX_CATALOGUE_SIZE;
use namecast_stream::path::{Client, Object, Retry, Token, Uplink};
use namecast_units::Instant;

/// Whoever requests it.
const CLIENT: Client = Client::MAX - 1;
/// Most segments of a catalogue: enough for the largest in segments of 500 octets.
const MAX_SEGMENTS: u64 = 132;
/// Of a segment. One that is given up ends the fetch.
const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(4),
    max_interests: 5,
};

/// A catalogue on its way.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    pub catalogue_name: Name,
    /// Number of the last segment, once the first has come.
    last: Option<u64>,
    parts: BTreeMap<u64, Bytes>,
}

/// What became of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Others are missing.
    Partial,
    /// This is the whole catalogue.
    Whole(Bytes),
    /// It is larger than a catalogue may be.
    TooLarge,
}

impl Fetch {
    /// Requests `catalogue_name`, and nothing more of another.
    pub(crate) fn begin(now: Instant, catalogue_name: Name, uplink: &mut Uplink) -> Self {
        Self::end(uplink);
        let fetch = Self {
            catalogue_name,
            last: None,
            parts: BTreeMap::new(),
        };
        fetch.request(now, 0, uplink);
        fetch
    }

    /// Requests nothing more of any catalogue.
    pub(crate) fn end(uplink: &mut Uplink) {
        uplink.withdraw_client(CLIENT);
    }

    /// Returns whether `token` is of a segment of a catalogue.
    pub(crate) const fn has_requested(token: Token) -> bool {
        token.client == CLIENT
    }

    fn request(&self, now: Instant, number: u64, uplink: &mut Uplink) {
        let name = self.catalogue_name.builder().segment(number).finish();
        let token = Token::object(CLIENT, number);
        uplink.want_object(
            now,
            Object::new(token, Interest::builder(name), Some(RETRY)),
        );
    }

    /// The segment that `name` is of, if it is still missing.
    pub(crate) fn token_of(&self, name: &Name) -> Option<Token> {
        let number = name.last()?.number_of(Component::SEGMENT)?;
        let is_asked_for = number <= self.last.unwrap_or(0) && !self.parts.contains_key(&number);
        let is_missing = is_asked_for && name.parent() == self.catalogue_name;
        is_missing.then(|| Token::object(CLIENT, number))
    }

    /// Takes segment `token`, which is verified.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        token: Token,
        data: &Data,
        uplink: &mut Uplink,
    ) -> Progress {
        uplink.forget(token);
        let content = data.content().unwrap_or_default();
        self.parts.insert(token.segment.index, content);
        let size: usize = self.parts.values().map(Bytes::len).sum();
        let last = data
            .final_block()
            .and_then(|id| id.last()?.number_of(Component::SEGMENT));
        let is_news = self.last.is_none();
        let last = *self.last.get_or_insert(last.unwrap_or(0));
        if size > MAX_CATALOGUE_SIZE || last >= MAX_SEGMENTS {
            Self::end(uplink);
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
            (1..=last).for_each(|number| self.request(now, number, uplink));
        }
        Progress::Partial
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;
    use namecast_stream::path::{Budget, Event, LiveConfig, UplinkConfig};

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

    fn fetch() -> (Fetch, Uplink) {
        let budget = Budget::live(LiveConfig::default());
        let mut uplink = Uplink::new(UplinkConfig::default(), budget);
        let name = "/demo/catalogue/v=1".parse().unwrap();
        let fetch = Fetch::begin(Instant::ZERO, name, &mut uplink);
        (fetch, uplink)
    }

    fn take(fetch: &mut Fetch, uplink: &mut Uplink, data: &Data) -> Progress {
        let token = fetch.token_of(data.name()).unwrap();
        fetch.take(Instant::ZERO, token, data, uplink)
    }

    /// What is requested by now.
    fn asked(uplink: &mut Uplink) -> Vec<Name> {
        let events = core::iter::from_fn(|| uplink.poll_event());
        let names = events.filter_map(|event| match event {
            Event::Interest { interest, .. } => Some(interest.name().clone()),
            _ => None,
        });
        names.collect()
    }

    #[test]
    fn the_first_segment_tells_of_the_others_which_may_come_in_any_order() {
        let (mut fetch, mut uplink) = fetch();
        assert_eq!(asked(&mut uplink), [name(0)]);
        assert!(fetch.token_of(&name(0)).is_some() && fetch.token_of(&name(1)).is_none());
        let progress = take(&mut fetch, &mut uplink, &segment(0, 2, b"a"));
        assert_eq!(progress, Progress::Partial);
        assert_eq!(asked(&mut uplink), [name(1), name(2)]);
        let progress = take(&mut fetch, &mut uplink, &segment(2, 2, b"c"));
        assert_eq!(progress, Progress::Partial);
        assert!(fetch.token_of(&name(2)).is_none() && fetch.token_of(&name(3)).is_none());
        uplink.handle_timeout(Instant::ZERO + RETRY.first_wait);
        assert_eq!(asked(&mut uplink), [name(1)]);
        let progress = take(&mut fetch, &mut uplink, &segment(1, 2, b"b"));
        assert_eq!(progress, Progress::Whole("abc".into()));
        assert_eq!(uplink.objects_out(CLIENT), 0);
    }

    #[test]
    fn a_catalogue_without_end_is_refused() {
        let (mut endless, mut uplink) = fetch();
        let progress = take(&mut endless, &mut uplink, &segment(0, MAX_SEGMENTS, b"a"));
        assert_eq!(progress, Progress::TooLarge);
        let (mut long, mut uplink) = fetch();
        let progress = take(&mut long, &mut uplink, &segment(0, MAX_SEGMENTS - 1, b"a"));
        assert_eq!(progress, Progress::Partial);
    }

    /// Waits of 250 ms, 500 ms, 1 s, 2 s and 4 s.
    #[test]
    fn a_segment_that_does_not_come_is_given_up() {
        let (_, mut uplink) = fetch();
        let times = core::iter::from_fn(|| {
            let now = uplink.poll_timeout()?;
            uplink.handle_timeout(now);
            Some(now.since(Instant::ZERO).as_millis())
        });
        let times: Vec<_> = times.collect();
        assert_eq!(times, [250, 750, 1_750, 3_750, 7_750]);
        assert_eq!(asked(&mut uplink), vec![name(0); 5]);
    }
}
