//! Reads a data stream as events: samples without a rhythm, each once and in order, however late.
//!
//! ```text
//!  n + 1         its lead and two copies are requested ahead, and their Interests wait at the publisher
//!  32=latest     each 250 ms: what was published and did not arrive is requested until it does
//! ```
//!
//! A lost packet thus costs a quarter of a second and a round trip, not the lifetime of the Interest that waited.

use std::collections::{BTreeMap, VecDeque};

use core::time::Duration;

use namecast_packet::lp::NackReason;
use namecast_packet::{Data, Interest, Verifier};
use namecast_stream::consumer::{Output, Sample};
use namecast_stream::metadata::{Latest, NewestSample};
use namecast_stream::path::{ClientId, Nacked, Object, Request, Retry, Token};
use namecast_stream::{Lead, RungNames, SampleClass, SegmentId, SegmentKind};
use namecast_units::Instant;

use crate::samples::{self, Limits, News, RETRY, Sequence, Taken};

/// Time from one question for the newest event to the next.
const ASKS_EVERY: Duration = Duration::from_millis(250);
/// The Interests that wait for the next event are repeated whenever their lifetime ends.
const AHEAD: Retry = Retry {
    first_wait: Duration::from_secs(8),
    max_wait: Duration::from_secs(8),
    max_interests: u32::MAX,
};
/// Copies of the next event's lead that are requested ahead.
const COPIES: u64 = 2;
/// The copy that is requested for an event which was missed: no Interest for it waits at a router that lost the answer.
const REPAIR: u64 = COPIES;
/// Bounds of what is pulled at a time.
const LIMITS: Limits = Limits {
    max_samples: 64,
    max_behind: 1_024,
};
/// Events that wait for one before them.
const MAX_READY: u64 = 256;
/// Packets requested at a time.
const MAX_OUTSTANDING: usize = 256;
/// Refusals by the publisher after which an event counts as gone.
const MAX_REFUSALS: u32 = 3;
/// Largest number of an event. Numbers follow the time since 2025, so a larger one is a lie.
const MAX_NUMBER: u64 = u64::MAX >> 1;

/// Outcome of requesting an event.
#[derive(Debug)]
enum Ready {
    /// It is whole.
    Whole(Box<Sample>),
    /// Neither it nor those after it up to this number can be delivered.
    GoneUntil(u64),
}

/// Events of one stream.
#[derive(Debug)]
pub(super) struct Events {
    names: RungNames,
    client: ClientId,
    sequence: Sequence,
    /// The publisher started again while its events were read: all that the new one has published are read.
    follows: bool,
    /// The event that is requested before it is published.
    ahead: Option<u64>,
    /// The event to deliver next.
    next: Option<u64>,
    /// Events that wait for one before them.
    ready: BTreeMap<u64, Ready>,
    refusals: BTreeMap<u64, u32>,
    asks_at: Option<Instant>,
    requests: VecDeque<Request>,
    outputs: VecDeque<Output>,
}

impl Events {
    /// Reads nothing yet.
    pub(super) const fn new(names: RungNames, client: ClientId) -> Self {
        Self {
            names,
            client,
            sequence: Sequence::without_parity(SampleClass::Key),
            follows: false,
            ahead: None,
            next: None,
            ready: BTreeMap::new(),
            refusals: BTreeMap::new(),
            asks_at: None,
            requests: VecDeque::new(),
            outputs: VecDeque::new(),
        }
    }

    /// Goes on with what a publisher that started again publishes.
    pub(super) const fn follow(&mut self) {
        self.follows = true;
    }

    /// Learns from verified metadata which event is the newest. Begins behind it; or with the event `first`, if there is none yet or
    /// the publisher started again. Returns where, if that is new.
    pub(super) fn line_up(
        &mut self,
        now: Instant,
        latest: &Latest,
        first: Option<u64>,
    ) -> Option<u64> {
        let newest = latest.key_sequence.filter(|newest| *newest <= MAX_NUMBER);
        let begins = self.next.is_none();
        if begins {
            let newest = newest.filter(|_| !self.follows);
            let next = newest.map_or(first, |newest| newest.checked_add(1))?;
            self.next = Some(next);
            self.sequence.start_at(next);
            self.asks_at = Some(now + ASKS_EVERY);
        }
        self.on_newest(now, newest);
        self.next.filter(|_| begins)
    }

    /// Requests again what is not there, as the transport came back.
    pub(super) fn handle_link_change(&mut self, now: Instant) {
        self.asks_at = self.asks_at.map(|_| now);
        self.handle_timeout(now);
    }

    /// Requests the number of the newest event when it is time.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.asks_at.is_some_and(|at| at <= now) {
            self.asks_at = Some(now + ASKS_EVERY);
            let interest = Interest::builder(self.names.latest())
                .can_be_prefix()
                .must_be_fresh();
            let question = Object::new(self.question(), interest, None);
            self.requests.push_back(Request::Object(question));
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.asks_at
    }

    /// Returns the next request, until `None`.
    pub(super) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Returns the next event, or the gap before it, until `None`.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    const fn question(&self) -> Token {
        self.client.object(0)
    }

    /// Takes Data that answers `token`. Returns whether it is of use.
    ///
    /// # Errors
    /// If it is not what the publisher signed.
    pub(super) fn handle_answer(
        &mut self,
        now: Instant,
        token: Token,
        (data, verifier): (&Data, &dyn Verifier),
    ) -> Result<bool, ()> {
        if token == self.question() {
            let newest = data.content();
            let newest = newest.and_then(|content| NewestSample::decode(&content).ok());
            let newest = newest.filter(|_| data.verify(verifier).is_ok()).ok_or(())?;
            self.requests.push_back(Request::Forget(token));
            self.on_newest(now, newest.latest.key_sequence);
            return Ok(true);
        }
        let id = token.segment;
        let (taken, lead) = self.sequence.on_data(id, data, verifier);
        self.requests.extend(taken.requests(now, token));
        if lead.is_some() {
            self.on_lead(id.sequence);
        }
        self.settle(now);
        match taken {
            Taken::Kept => Ok(true),
            Taken::Unwanted => Ok(false),
            Taken::Bad => Err(()),
        }
    }

    /// One of the requests for an event's lead was answered: the others are over.
    fn on_lead(&mut self, sequence: u64) {
        let all = leads(sequence).chain([copy(sequence, REPAIR)]);
        let tokens = all.map(|id| self.client.token(id));
        self.requests.extend(tokens.map(Request::Forget));
        self.ahead.take_if(|ahead| *ahead == sequence);
        self.sequence.on_published(Some(sequence));
    }

    /// An Interest came back.
    pub(super) fn handle_nack(&mut self, now: Instant, nacked: Nacked, reason: NackReason) {
        let token = nacked.token;
        if token == self.question() {
            return;
        }
        let sequence = token.segment.sequence;
        // Publishers refuse what they do not have without a reason.
        if reason == NackReason::None && self.ahead != Some(sequence) {
            let refusals = self.refusals.entry(sequence).or_default();
            *refusals += 1;
            if *refusals >= MAX_REFUSALS {
                let tokens = self.client.sample(SampleClass::Key, sequence);
                self.requests.push_back(Request::Withdraw(tokens));
                self.sequence.give_up(sequence);
                return self.settle(now);
            }
        }
        let again = match self.ahead == Some(sequence) {
            true => Request::Hasten(token, now + ASKS_EVERY),
            false => samples::on_nack(now, nacked),
        };
        self.requests.push_back(again);
    }

    /// A packet did not come: it is requested again for as long as the publisher has it.
    pub(super) fn on_dropped(&mut self, token: Token) {
        if token != self.question() {
            self.request(token.segment, RETRY);
        }
    }

    fn on_newest(&mut self, now: Instant, newest: Option<u64>) {
        let newest = newest.filter(|newest| *newest <= MAX_NUMBER);
        self.sequence.on_published(newest);
        if let Some(missed) = self.ahead.take_if(|ahead| newest >= Some(*ahead)) {
            // What waited for it was answered or lost.
            self.request(SegmentId::lead(SampleClass::Key, missed), RETRY);
            self.request(copy(missed, REPAIR), RETRY);
        }
        self.settle(now);
    }

    fn request(&mut self, id: SegmentId, retry: Retry) {
        let interest = Interest::builder(self.names.segment(id));
        let object = Object::new(self.client.token(id), interest, Some(retry));
        self.requests.push_back(Request::Object(object));
    }

    /// Requests what is next, and delivers what is whole.
    fn settle(&mut self, now: Instant) {
        self.sequence.flush_gap();
        while let Some(news) = self.sequence.poll_news() {
            match news {
                News::Sample(sequence, packets, _) => {
                    let sample = sample(now, sequence, &packets).map(Box::new);
                    let ready = sample.map_or(Ready::GoneUntil(sequence), Ready::Whole);
                    self.ready.insert(sequence, ready);
                }
                News::Gap(gone) => {
                    let (first, last) = gone.into_inner();
                    let first = first.max(self.next.unwrap_or(first));
                    if first <= last {
                        self.ready.insert(first, Ready::GoneUntil(last));
                    }
                }
            }
        }
        self.deliver();
        let Some(next) = self.next else { return };
        self.refusals = self.refusals.split_off(&next);
        let last = next.saturating_add(MAX_READY);
        self.sequence.begin(&LIMITS, last);
        if self.ahead.is_none() {
            self.ahead = self.sequence.begin_ahead(&LIMITS, last);
        }
        let room = MAX_OUTSTANDING.saturating_sub(self.sequence.outstanding());
        for id in self.sequence.ask(room) {
            match self.ahead == Some(id.sequence) {
                true => leads(id.sequence).for_each(|id| self.request(id, AHEAD)),
                false => self.request(id, RETRY),
            }
        }
    }

    /// Delivers the next events. Those that cannot be delivered are a gap.
    fn deliver(&mut self) {
        while let Some(next) = self.next
            && let Some(ready) = self.ready.remove(&next)
        {
            let (last, output) = match ready {
                Ready::Whole(sample) => (next, Output::Sample(*sample)),
                Ready::GoneUntil(last) => (last, Output::Discontinuity),
            };
            self.next = last.checked_add(1);
            self.outputs.push_back(output);
        }
    }
}

/// The lead of an event, and the copies of it that are requested ahead.
fn leads(sequence: u64) -> impl Iterator<Item = SegmentId> {
    let lead = SegmentId::lead(SampleClass::Key, sequence);
    let copies = (0..COPIES).map(move |index| copy(sequence, index));
    [lead].into_iter().chain(copies)
}

/// A copy of an event's lead.
const fn copy(sequence: u64, index: u64) -> SegmentId {
    SegmentId {
        kind: SegmentKind::LeadCopy,
        index,
        ..SegmentId::lead(SampleClass::Key, sequence)
    }
}

/// The event whose packets these are; `None` if they do not make one.
fn sample(now: Instant, sequence: u64, packets: &[(samples::Place, Data)]) -> Option<Sample> {
    let (_, lead) = packets.first()?;
    let lead = Lead::decode(lead).ok()?;
    Some(Sample {
        key: true,
        sequence,
        payload: samples::assemble(&lead, packets)?,
        header: lead.header().clone(),
        lead_at: now,
        complete_at: now,
        render_at: now,
        late: false,
        catching_up: false,
    })
}

#[cfg(test)]
mod tests {
    use namecast_stream::StreamNames;
    use namecast_stream::path::{Budget, LiveConfig, Uplink, UplinkConfig};
    use namecast_units::Timestamp;

    use super::*;

    fn events() -> Events {
        let mut uplink = Uplink::new(UplinkConfig::default(), Budget::live(LiveConfig::default()));
        let names = StreamNames::new("/show".parse().unwrap()).rung("cues", "only");
        Events::new(names, uplink.new_client())
    }

    fn latest(newest: u64) -> Latest {
        Latest {
            rung: "/show/cues/only".parse().unwrap(),
            key_sequence: Some(newest),
            delta_sequence: None,
            key_position: None,
            served_at: Timestamp::default(),
            next_delta: None,
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// The publisher refuses event 11 three times, and says that the newest is 2⁶³ − 1, then 2⁶⁴ − 1: one gap each, and no more room.
    #[test]
    fn a_publisher_that_lies_about_its_newest_event_takes_no_room() {
        let mut events = events();
        assert_eq!(events.line_up(at(0), &latest(10), None), Some(11));
        events.on_newest(at(1), Some(MAX_NUMBER));
        events.on_newest(at(2), Some(u64::MAX));
        assert_eq!(events.next, Some(11));
        assert!(events.ready.len() <= 1);
        let nacked = Nacked {
            token: events.client.token(SegmentId::lead(SampleClass::Key, 11)),
            is_latest: true,
            attempts: 1,
        };
        for millis in 3..6 {
            events.handle_nack(at(millis), nacked, NackReason::None);
        }
        assert_eq!(events.next, Some(MAX_NUMBER - LIMITS.max_behind));
        assert!(events.ready.is_empty());
        let gaps = core::iter::from_fn(|| events.poll_output()).count();
        assert_eq!(gaps, 2);
        assert!(events.requests.len() < 2 * LIMITS.max_samples);
    }
}
