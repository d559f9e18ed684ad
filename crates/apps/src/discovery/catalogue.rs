//! Fetches a catalogue that is too large to travel in metadata: its first segment tells how many there are, then all
//! others are asked for at once.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use bytes::{Bytes, BytesMut};
use namecast_packet::{Component, Data, Interest, Name};
use namecast_stream::catalogue::MAX_CATALOGUE_SIZE;
use namecast_stream::path::{ClientId, Object, Request, Retry, Token};

/// Most segments of a catalogue: enough for the largest in segments of 500 octets.
const MAX_SEGMENTS: u64 = 132;
/// Of a segment. One that is given up ends the fetch.
const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(4),
    max_interests: 5,
};

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

/// A catalogue on its way.
#[derive(Clone, Debug)]
struct Fetch {
    catalogue_name: Name,
    /// Number of the last segment, once the first has come.
    last: Option<u64>,
    parts: BTreeMap<u64, Bytes>,
}

/// Fetches catalogues, one at a time.
#[derive(Clone, Debug)]
pub(crate) struct CatalogueFetcher {
    client: ClientId,
    fetch: Option<Fetch>,
    requests: VecDeque<Request>,
}

impl CatalogueFetcher {
    pub(crate) const fn new(client: ClientId) -> Self {
        Self {
            client,
            fetch: None,
            requests: VecDeque::new(),
        }
    }

    /// Returns whether `token` is of a segment of a catalogue.
    pub(crate) fn has_requested(&self, token: Token) -> bool {
        token.client == self.client
    }

    /// Returns the name of the catalogue that is on its way.
    pub(crate) fn fetching(&self) -> Option<&Name> {
        self.fetch.as_ref().map(|fetch| &fetch.catalogue_name)
    }

    /// Requests `catalogue_name`, and nothing more of another.
    pub(crate) fn begin(&mut self, catalogue_name: Name) {
        self.end();
        self.fetch = Some(Fetch {
            catalogue_name,
            last: None,
            parts: BTreeMap::new(),
        });
        self.request(0);
    }

    /// Requests nothing more of any catalogue. Returns the name of the one that was on its way.
    pub(crate) fn end(&mut self) -> Option<Name> {
        self.requests
            .push_back(Request::Withdraw(self.client.tokens()));
        self.fetch.take().map(|fetch| fetch.catalogue_name)
    }

    fn request(&mut self, number: u64) {
        let Some(fetch) = &self.fetch else {
            return;
        };
        let name = fetch.catalogue_name.builder().segment(number).finish();
        let token = self.client.object(number);
        let object = Object::new(token, Interest::builder(name), Some(RETRY));
        self.requests.push_back(Request::Object(object));
    }

    /// Segment `number` is not what was signed.
    pub(crate) fn reject(&mut self, number: u64) {
        let token = self.client.object(number);
        self.requests.push_back(Request::Reject(token));
    }

    /// Takes segment `number`, which is verified. A catalogue that is whole or too large is not on its way any more.
    pub(crate) fn handle_answer(&mut self, number: u64, data: &Data) -> Progress {
        self.requests
            .push_back(Request::Forget(self.client.object(number)));
        let Some(fetch) = &mut self.fetch else {
            return Progress::Partial;
        };
        let content = data.content().unwrap_or_default();
        fetch.parts.insert(number, content);
        let size: usize = fetch.parts.values().map(Bytes::len).sum();
        let last = data
            .final_block()
            .and_then(|id| id.last()?.number_of(Component::SEGMENT));
        let is_news = fetch.last.is_none();
        let last = *fetch.last.get_or_insert(last.unwrap_or(0));
        if size > MAX_CATALOGUE_SIZE || last >= MAX_SEGMENTS {
            self.end();
            return Progress::TooLarge;
        }
        if fetch.parts.len() as u64 > last {
            let mut whole = BytesMut::with_capacity(size);
            let parts = fetch.parts.values();
            parts.for_each(|part| whole.extend_from_slice(part));
            self.fetch = None;
            return Progress::Whole(whole.freeze());
        }
        if is_news {
            (1..=last).for_each(|number| self.request(number));
        }
        Progress::Partial
    }

    /// Returns the next thing to request or to withdraw, until `None`.
    pub(crate) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use namecast_packet::signature::NullSigner;
    use namecast_stream::path::{Event, Received, Uplink};
    use namecast_units::{ByteSize, Instant};

    use super::*;
    use crate::fixtures::uplink;

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

    fn fetch() -> (CatalogueFetcher, Uplink) {
        let mut uplink = uplink();
        let mut fetcher = CatalogueFetcher::new(uplink.new_client());
        fetcher.begin("/demo/catalogue/v=1".parse().unwrap());
        carry_out(&mut fetcher, &mut uplink);
        (fetcher, uplink)
    }

    fn carry_out(fetcher: &mut CatalogueFetcher, uplink: &mut Uplink) {
        while let Some(request) = fetcher.poll_request() {
            uplink.carry_out(Instant::ZERO, request);
        }
    }

    /// Takes `data`; `None` if it was not requested.
    fn take(fetcher: &mut CatalogueFetcher, uplink: &mut Uplink, data: &Data) -> Option<Progress> {
        let received = Received::new(ByteSize::of(data.wire()), false);
        uplink.handle_data(Instant::ZERO, data.name(), &received);
        let number = uplink.poll_answer()?.token.segment.index;
        let progress = fetcher.handle_answer(number, data);
        carry_out(fetcher, uplink);
        Some(progress)
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
        let progress = take(&mut fetch, &mut uplink, &segment(1, 2, b"b"));
        assert_eq!(progress, None, "it is not requested yet");
        let progress = take(&mut fetch, &mut uplink, &segment(0, 2, b"a"));
        assert_eq!(progress, Some(Progress::Partial));
        assert_eq!(asked(&mut uplink), [name(1), name(2)]);
        let progress = take(&mut fetch, &mut uplink, &segment(2, 2, b"c"));
        assert_eq!(progress, Some(Progress::Partial));
        for number in [2, 3] {
            let progress = take(&mut fetch, &mut uplink, &segment(number, 2, b"c"));
            assert_eq!(progress, None);
        }
        uplink.handle_timeout(Instant::ZERO + RETRY.first_wait);
        assert_eq!(asked(&mut uplink), [name(1)]);
        let progress = take(&mut fetch, &mut uplink, &segment(1, 2, b"b"));
        assert_eq!(progress, Some(Progress::Whole("abc".into())));
        assert_eq!(uplink.objects_out(fetch.client), 0);
    }

    #[test]
    fn a_catalogue_without_end_is_refused() {
        let (mut endless, mut uplink) = fetch();
        let progress = take(&mut endless, &mut uplink, &segment(0, MAX_SEGMENTS, b"a"));
        assert_eq!(progress, Some(Progress::TooLarge));
        let (mut long, mut uplink) = fetch();
        let progress = take(&mut long, &mut uplink, &segment(0, MAX_SEGMENTS - 1, b"a"));
        assert_eq!(progress, Some(Progress::Partial));
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
