//! Opens sealed samples. Those whose key box is missing are held until it is here, in order.
//!
//! ```text
//!  sample ── sealed? ──▶ opened ─────────────────────▶ delivered
//!                          │ box missing                  ▲
//!                          ▼                              │
//!                        held, box requested ── box ──────┘
//!
//!  the box of the next generation: requested ahead, and its Interest waits at the publisher. Who is no reader yet so requests the box of the next
//!  step, which is made as soon as somebody becomes one.
//! ```

use std::collections::VecDeque;

use core::time::Duration;

use bytes::Bytes;
use namecast_packet::{Component, Data, Interest, Name};
use namecast_stream::consumer::{Sample, SharedVerifier};
use namecast_stream::path::{ClientId, Object, Request, Retry, Token};
use namecast_stream::{SampleClass, Seal};
use namecast_units::Instant;

use super::super::stats::SealedStats;
use super::Watch;
use super::output::{Event, Label, Watched};
use crate::sealed::{Opener, OpenerConfig, Unopened, box_name, decode_entries};
use crate::trust::ExchangeSecret;

/// Retries for the box that samples wait for.
const RETRY: Retry = Retry {
    first_wait: Duration::from_millis(250),
    max_wait: Duration::from_secs(2),
    max_interests: 4,
};
/// Retries for the next box: one each time the Interest's lifetime ends.
const AHEAD: Retry = Retry {
    first_wait: Duration::from_secs(1),
    max_wait: Duration::from_secs(1),
    max_interests: u32::MAX,
};
/// Samples and gaps that are held: 12 s of pictures and sound.
const MAX_HELD: usize = 1_024;

/// Where a sample is from.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    /// Name of its rung.
    pub rung: Name,
    /// Whether it is played from the past.
    pub is_past: bool,
    /// Where boxes of the past may be archived.
    pub delegation: Option<Name>,
}

/// Something in decoding order, which may wait for a key box.
#[derive(Debug)]
pub(super) enum Held {
    Sample {
        label: Label,
        sample: Box<Sample>,
        decode_only: bool,
        origin: Origin,
    },
    Gap(Label),
}

impl Held {
    /// A sample, and whether it is only decoded.
    pub(super) fn sample(
        label: Label,
        (sample, decode_only): (Sample, bool),
        origin: Origin,
    ) -> Self {
        Self::Sample {
            label,
            sample: Box::new(sample),
            decode_only,
            origin,
        }
    }

    const fn label(&self) -> &Label {
        match self {
            Self::Sample { label, .. } | Self::Gap(label) => label,
        }
    }
}

/// Outcome of opening a sealed sample.
enum Opened {
    /// It has this payload; `is_first`: some before it were reported as not opened.
    Payload { payload: Bytes, is_first: bool },
    /// Its key box is requested.
    Missing,
    /// It is not opened, or of no use.
    Not(Option<Event>),
}

/// A packet of a box that is requested.
#[derive(Clone, Copy, Debug)]
struct Fetching {
    seal: Seal,
    segment: u64,
}

/// Keys of a watcher, and samples that wait for them.
pub(super) struct Unsealing {
    root: Name,
    client: ClientId,
    opener: Opener,
    held: VecDeque<Held>,
    /// The box that samples wait for.
    missing: Option<Fetching>,
    /// The box of the next generation, or of the next step for who is no reader.
    ahead: Option<Fetching>,
    /// The newest box that was requested so.
    followed: Option<Seal>,
    /// Streams that go on with a key sample, as samples before it were not opened.
    needs_key: Vec<Label>,
    /// Why samples are not opened, as reported last.
    reported: Option<Unopened>,
    requests: VecDeque<Request>,
    stats: SealedStats,
}

impl Unsealing {
    /// Opens samples under `root` with the keys of `own`; `client` requests boxes.
    pub(super) fn new(root: Name, own: Vec<ExchangeSecret>, client: ClientId) -> Self {
        Self {
            opener: Opener::new(root.clone(), own, OpenerConfig::default()),
            root,
            client,
            held: VecDeque::new(),
            missing: None,
            ahead: None,
            followed: None,
            needs_key: Vec::new(),
            reported: None,
            requests: VecDeque::new(),
            stats: SealedStats::default(),
        }
    }

    /// Returns what it counted.
    pub(super) const fn stats(&self) -> &SealedStats {
        &self.stats
    }

    /// Returns the next request, until `None`.
    pub(super) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Drops the samples that wait, as playback moves to another place.
    pub(super) fn forget_held(&mut self) {
        self.held.clear();
    }

    const fn missing_token(&self) -> Token {
        self.client.object(0)
    }

    const fn ahead_token(&self) -> Token {
        self.client.object(1)
    }

    /// Returns whether `token` requests a box.
    pub(super) fn has_requested(&self, token: Token) -> bool {
        let missing = self.missing.is_some() && token == self.missing_token();
        missing || (self.ahead.is_some() && token == self.ahead_token())
    }

    fn is_holding(&self, label: &Label) -> bool {
        self.held.iter().any(|held| held.label() == label)
    }

    fn request(&mut self, token: Token, fetching: Fetching, delegation: Option<Name>) {
        let name = box_name(&self.root, &fetching.seal);
        let name = name.builder().segment(fetching.segment).finish();
        let retry = match token == self.ahead_token() {
            true => AHEAD,
            false => RETRY,
        };
        let object = Object {
            delegation,
            ..Object::new(token, Interest::builder(name), Some(retry))
        };
        self.requests.push_back(Request::Object(object));
    }

    /// Requests the box that a sample needs, unless one is on its way.
    fn fetch_missing(&mut self, seal: &Seal, delegation: Option<Name>) {
        if self.missing.is_some() {
            return;
        }
        let fetching = Fetching {
            seal: *seal,
            segment: 0,
        };
        if self.ahead.is_some_and(|ahead| ahead.seal == fetching.seal) {
            // Its answer was lost: the Interest that waited must not keep this one back.
            self.ahead = None;
            self.requests.push_back(Request::Forget(self.ahead_token()));
        }
        self.missing = Some(fetching);
        self.request(self.missing_token(), fetching, delegation);
    }

    /// Lets an Interest for the box of `next` wait at the publisher, unless one for it or a later one did.
    fn follow(&mut self, next: Seal) {
        let order = |seal: &Seal| (seal.generation, seal.step);
        let is_old = |it: &Seal| it.start == next.start && order(it) >= order(&next);
        if self.followed.as_ref().is_some_and(is_old) {
            return;
        }
        self.followed = Some(next);
        let fetching = Fetching {
            seal: next,
            segment: 0,
        };
        self.ahead = Some(fetching);
        self.request(self.ahead_token(), fetching, None);
    }

    fn hold(&mut self, held: Held, is_first: bool) {
        if self.held.len() >= MAX_HELD {
            let oldest = self.held.pop_front();
            self.stats.box_missing += 1;
            self.need_key(oldest.as_ref().map(Held::label));
        }
        match is_first {
            true => self.held.push_front(held),
            false => self.held.push_back(held),
        }
    }

    fn need_key(&mut self, label: Option<&Label>) {
        if let Some(label) = label.filter(|label| !self.needs_key.contains(label)) {
            self.needs_key.push(label.clone());
        }
    }

    /// Counts a sample that is not opened. Returns the event, if it was not reported before.
    fn fail(&mut self, label: &Label, why: Unopened) -> Option<Event> {
        match why {
            Unopened::MissingBox(_) => self.stats.box_missing += 1,
            Unopened::NotAReader => self.stats.not_a_reader += 1,
            Unopened::BeforeJoining => self.stats.before_joining += 1,
            Unopened::Damaged => self.stats.damaged += 1,
        }
        self.need_key(Some(label));
        if self.reported.as_ref() == Some(&why) {
            return None;
        }
        self.reported = Some(why.clone());
        Some(Event::Unopened(why))
    }

    /// Opens a sample.
    fn open(&mut self, label: &Label, of: (&Sample, &Seal), origin: &Origin) -> Opened {
        let (sample, seal) = of;
        let class = match sample.key {
            true => SampleClass::Key,
            false => SampleClass::Delta,
        };
        let sequence = origin.rung.builder().generic(class.word()).finish();
        let place = (sample.sequence, seal);
        let payload = match self.opener.open(&sequence, place, &sample.payload) {
            Ok(payload) => payload,
            Err(Unopened::MissingBox(_)) => {
                self.fetch_missing(seal, origin.delegation.clone());
                return Opened::Missing;
            }
            Err(why) => {
                if why == Unopened::NotAReader && self.opener.has_keys() && !origin.is_past {
                    self.follow(Seal {
                        step: seal.step.saturating_add(1),
                        ..*seal
                    });
                }
                return Opened::Not(self.fail(label, why));
            }
        };
        if !origin.is_past {
            self.follow(Seal {
                generation: seal.generation.saturating_add(1),
                step: 0,
                ..*seal
            });
        }
        if !sample.key && self.needs_key.contains(label) {
            // The samples that it needs were not opened.
            self.stats.undecodable += 1;
            return Opened::Not(None);
        }
        self.stats.opened += 1;
        Opened::Payload {
            payload,
            is_first: self.reported.take().is_some(),
        }
    }

    /// Returns whether a stream begins again, with a key sample, behind samples that were not opened.
    fn begins_again(&mut self, label: &Label) -> bool {
        let count = self.needs_key.len();
        self.needs_key.retain(|it| it != label);
        self.needs_key.len() < count
    }

    /// Does without a key box that did not come. Returns whether `token` requested one, and what to report.
    pub(super) fn on_dropped(&mut self, token: Token) -> (bool, Option<Event>) {
        if !self.has_requested(token) {
            return (false, None);
        }
        if token == self.ahead_token() {
            self.ahead = None;
            return (true, None);
        }
        let Some(Fetching { seal, .. }) = self.missing.take() else {
            return (true, None);
        };
        let why = Unopened::MissingBox(box_name(&self.root, &seal));
        let mut event = None;
        for held in core::mem::take(&mut self.held) {
            if let Held::Sample { label, .. } = held {
                event = event.or(self.fail(&label, why.clone()));
            }
        }
        (true, event)
    }

    /// Takes a packet of a box, which is verified. Returns whether samples may be opened by it; `None`: it is malformed.
    fn on_box(&mut self, token: Token, data: &Data) -> Option<bool> {
        let is_ahead = token == self.ahead_token();
        let fetching = match is_ahead {
            true => self.ahead,
            false => self.missing,
        };
        let Fetching { seal, segment } = fetching?;
        let entries = decode_entries(&data.content()?).ok()?;
        let last = data
            .final_block()
            .and_then(|it| it.last()?.number_of(Component::SEGMENT));
        let total = last.unwrap_or(segment).saturating_add(1);
        let place = [segment, total].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
        self.stats.boxes += 1;
        let next = match self.opener.take(&seal, &entries, place.into()) {
            true => None,
            false => Some(Fetching {
                seal,
                segment: segment + 1,
            }),
        };
        match is_ahead {
            true => self.ahead = next,
            false => self.missing = next,
        }
        match next {
            None => self.requests.push_back(Request::Forget(token)),
            Some(fetching) => self.request(token, fetching, None),
        }
        Some(next.is_none())
    }
}

impl Watch {
    /// Takes what is next in decoding order. A sample that is sealed is opened, or held until its key box is here.
    pub(super) fn take(&mut self, now: Instant, held: Held) {
        let held = match self.unsealing.is_holding(held.label()) {
            true => Some(held),
            false => self.open(now, held),
        };
        if let Some(held) = held {
            self.unsealing.hold(held, false);
        }
        self.requests.extend(self.unsealing.requests.drain(..));
    }

    /// Opens and delivers. Returns a sample whose key box is missing.
    fn open(&mut self, now: Instant, held: Held) -> Option<Held> {
        let Held::Sample {
            label,
            mut sample,
            decode_only,
            origin,
        } = held
        else {
            self.outbox.push(Watched::gap(held.label().kind));
            return None;
        };
        let at = self.streams.iter().position(|it| it.label == label)?;
        if let Some(seal) = sample.header.seal {
            match self.unsealing.open(&label, (&sample, &seal), &origin) {
                Opened::Payload { payload, is_first } => {
                    if is_first {
                        self.outbox.event(Event::Opened);
                    }
                    if self.unsealing.begins_again(&label) && self.streams.at(at).had_frame {
                        self.outbox.push(Watched::gap(label.kind));
                    }
                    sample.payload = payload;
                }
                Opened::Missing => {
                    return Some(Held::Sample {
                        label,
                        sample,
                        decode_only,
                        origin,
                    });
                }
                Opened::Not(event) => {
                    event.into_iter().for_each(|it| self.outbox.event(it));
                    return None;
                }
            }
        }
        self.hand_out(now, at, *sample, decode_only);
        None
    }

    /// Takes a packet of a key box. Samples that waited for it are opened, in order, until one needs another box.
    pub(super) fn on_key_box(&mut self, now: Instant, token: Token, data: &Data) {
        let is_verified = |verifier: &SharedVerifier| data.verify(&**verifier).is_ok();
        let verifier = match self.travel.is_away() {
            true => self.travel.verifier(),
            false => self.authority.verifier(),
        };
        if !verifier.is_some_and(is_verified) {
            self.meters.counters_mut().verification_failures += 1;
            self.requests.push_back(Request::Reject(token));
            if token == self.unsealing.missing_token() {
                self.requests.push_back(Request::Hasten(token, now));
            }
            return;
        }
        let may_open = self.unsealing.on_box(token, data);
        self.meters.counters_mut().malformed += u64::from(may_open.is_none());
        while may_open == Some(true)
            && let Some(held) = self.unsealing.held.pop_front()
        {
            if let Some(held) = self.open(now, held) {
                self.unsealing.hold(held, true);
                break;
            }
        }
        self.requests.extend(self.unsealing.requests.drain(..));
    }
}
