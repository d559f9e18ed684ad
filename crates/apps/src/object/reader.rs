//! An object of any producer, segment after segment: also one that numbers otherwise, or is signed by whom nobody knows.
//!
//! ```text
//!  Finding ─ name, numbering ─▶ First ─ its Data ─▶ Waiting ─ begin ─▶ Pulling ─ the last one ─▶ over
//!                                                   whoever reads verifies    ByName, in order
//! ```
//!
//! [`Fetcher`](super::Fetcher) takes only objects that it can verify, and keeps them whole.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Component, ContentType, Data, Interest, LpPacket, Name, Nonce, Packet};
use namecast_stream::path::{Feedback, Received};
use namecast_units::{ByteSize, Duration, Instant, Random};

use super::by_name::ByName;
use super::finder::{Finder, Found, NotFound, Numbering};
use crate::{Application, Now, Output, face};

/// Pause after which the Interest for the first segment is repeated.
const REPEAT: Duration = Duration::from_secs(1);
/// Segments behind one that is missing that are kept, at most.
const MAX_KEPT: u64 = 4_096;

/// Which object to read.
#[derive(Clone, Debug)]
pub struct ReaderConfig {
    /// Name of the object, with or without a version.
    pub name: Name,
    /// Longest time without an answer.
    pub timeout: Duration,
    /// Seed of the Nonces.
    pub seed: u64,
}

/// Report of a reader.
#[derive(Clone, Debug, PartialEq)]
pub enum ReaderEvent {
    /// The next packet of the object, and the number of the last one where it is known. After the first one reading pauses until
    /// [`Reader::begin`].
    Packet(Data, Option<u64>),
    /// All packets have been reported. Nothing follows.
    Complete,
    /// It cannot be read. Nothing follows.
    Failed(Unreadable),
}

/// Why an object cannot be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// Nobody has it.
    #[error(transparent)]
    NotFound(NotFound),
    /// Segments stopped coming.
    #[error(
        "{0} stopped coming before segment {1}: its producer has left, or the path is down; try again"
    )]
    Stopped(Name, u64),
    /// Two segments name different last ones.
    #[error("segments of {0} do not agree which is the last: {1} or {2}")]
    Contradiction(Name, u64, u64),
}

enum Stage {
    Finding(Box<Finder>),
    First(First),
    /// Waits for `begin`.
    Waiting(First),
    Pulling(Box<Pulling>),
    Over,
}

/// The first segment that is requested, or has come.
struct First {
    object: Name,
    /// `None`: the object is a packet without segments.
    numbering: Option<Numbering>,
    last: Option<u64>,
    size: ByteSize,
    ask_at: Instant,
    deadline: Instant,
}

/// The segments after the first.
struct Pulling {
    object: Name,
    numbering: Numbering,
    /// Some producers tell it with the last segment only.
    last: Option<u64>,
    by_name: ByName,
    /// Number of the segment that is reported next, and those behind it that are here.
    next: u64,
    kept: BTreeMap<u64, Data>,
    heard_at: Instant,
}

/// Reads one object.
///
/// A plain value: the first call of `handle_timeout` starts; after each call take everything from `poll_output`.
pub struct Reader {
    config: ReaderConfig,
    random: Random,
    /// `None` before the start.
    stage: Option<Stage>,
    frames: VecDeque<Bytes>,
    events: VecDeque<ReaderEvent>,
}

impl core::fmt::Debug for Reader {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Reader")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl First {
    fn new(
        now: Instant,
        (object, numbering): (Name, Option<Numbering>),
        timeout: Duration,
    ) -> Self {
        Self {
            object,
            numbering,
            last: None,
            size: ByteSize::ZERO,
            ask_at: now,
            deadline: now + timeout,
        }
    }

    fn name(&self) -> Name {
        match self.numbering {
            Some(numbering) => numbering.segment(&self.object, 0),
            None => self.object.clone(),
        }
    }
}

impl Pulling {
    fn new(now: Instant, first: First, numbering: Numbering, seed: u64) -> Self {
        Self {
            by_name: ByName::new(now, first.last, (first.size, seed)),
            object: first.object,
            numbering,
            last: first.last,
            next: 1,
            kept: BTreeMap::new(),
            heard_at: now,
        }
    }

    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.next > last)
    }

    /// Takes a segment.
    ///
    /// # Errors
    /// If it names another last one than others do.
    fn handle_data(
        &mut self,
        now: Instant,
        data: Data,
        received: &Received,
    ) -> Result<(), Unreadable> {
        let Some(number) = Numbering::number(&self.object, data.name()) else {
            return Ok(());
        };
        // What was not requested, or came before, answers nothing.
        if !self.by_name.handle_data(now, number, received) {
            return Ok(());
        }
        self.heard_at = now;
        if let Some(last) = last_of(&data) {
            let known = *self.last.get_or_insert(last);
            if known != last {
                return Err(Unreadable::Contradiction(self.object.clone(), known, last));
            }
        }
        if number >= self.next {
            self.kept.insert(number, data);
        }
        Ok(())
    }

    fn poll_interest(&mut self) -> Option<Interest> {
        let (next, last) = (self.next, self.last.unwrap_or(u64::MAX));
        let kept = &self.kept;
        let is_of_use = |number: &u64| {
            let is_near = *number < next + MAX_KEPT;
            *number <= last && is_near && !kept.contains_key(number)
        };
        let choose = |from: u64| {
            // After a silence all are chosen anew.
            let mut numbers = from.max(next)..=last.min(next + MAX_KEPT);
            numbers.find(is_of_use)
        };
        let (number, nonce) = self.by_name.poll_request(choose)?;
        let name = self.numbering.segment(&self.object, number);
        Some(Interest::builder(name).build(nonce))
    }
}

impl Reader {
    /// A reader that has requested nothing.
    pub fn new(config: ReaderConfig) -> Self {
        Self {
            random: Random::from_seed(config.seed),
            config,
            stage: None,
            frames: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Requests the packets after the first.
    pub fn begin(&mut self, now: Instant) {
        match self.stage.take() {
            Some(Stage::Waiting(first)) => {
                let numbering = first.numbering.filter(|_| first.last != Some(0));
                let seed = self.random.next_u64();
                self.stage = Some(match numbering {
                    Some(numbering) => {
                        Stage::Pulling(Box::new(Pulling::new(now, first, numbering, seed)))
                    }
                    None => {
                        self.events.push_back(ReaderEvent::Complete);
                        Stage::Over
                    }
                });
                self.settle(now);
            }
            other => self.stage = other,
        }
    }

    fn start(&mut self, now: Instant) -> Stage {
        let name = self.config.name.clone();
        let last = name.last();
        let has_version = last.is_some_and(|it| it.number_of(Component::VERSION).is_some());
        let timeout = self.config.timeout;
        match has_version {
            true => {
                let numbering = Some(Numbering::Typed);
                Stage::First(First::new(now, (name, numbering), timeout))
            }
            false => Stage::Finding(Box::new(Finder::new(now, name, timeout))),
        }
    }

    fn fail(&mut self, why: Unreadable) {
        self.stage = Some(Stage::Over);
        self.events.push_back(ReaderEvent::Failed(why));
    }

    fn on_data(&mut self, now: Instant, data: Data, link: &LpPacket) {
        match &mut self.stage {
            Some(Stage::Finding(finder)) => finder.handle_data(now, &data),
            Some(Stage::First(first)) if *data.name() == first.name() => self.on_first(now, data),
            Some(Stage::Pulling(pulling)) => {
                let received = Received {
                    size: ByteSize::of(data.wire()),
                    congestion_marked: link.congestion_mark > 0,
                    feedback: Feedback::read(&link.extensions),
                };
                if let Err(why) = pulling.handle_data(now, data, &received) {
                    self.fail(why);
                }
            }
            _ => {}
        }
    }

    /// Reports the first packet.
    fn on_first(&mut self, now: Instant, data: Data) {
        let (Some(Stage::First(mut first)), false) =
            (self.stage.take(), data.content_type() == ContentType::Nack)
        else {
            return self.fail(Unreadable::NotFound(NotFound::Denied));
        };
        first.last = first.numbering.and_then(|_| last_of(&data));
        let size = data.content().map_or(0, |content| content.len() as u64);
        first.size = ByteSize::bytes(size.max(1));
        first.deadline = now;
        let last = first.last;
        self.stage = Some(Stage::Waiting(first));
        self.events.push_back(ReaderEvent::Packet(data, last));
    }

    fn on_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) {
        match &mut self.stage {
            Some(Stage::Finding(finder)) => finder.handle_nack(now, interest, reason),
            Some(Stage::First(first)) if *interest.name() == first.name() => {
                self.fail(Unreadable::NotFound(NotFound::Refused(reason)));
            }
            Some(Stage::Pulling(pulling)) => {
                if let Some(number) = Numbering::number(&pulling.object, interest.name()) {
                    let what = (number, interest.nonce());
                    pulling.by_name.handle_nack(now, what, reason);
                }
            }
            _ => {}
        }
    }

    /// After every event: requests and reports what there is.
    fn settle(&mut self, now: Instant) {
        if let Some(Stage::Finding(finder)) = &mut self.stage {
            match finder.outcome().cloned() {
                Some(Ok(found)) => self.on_found(now, found),
                Some(Err(why)) => self.fail(Unreadable::NotFound(why)),
                None => {
                    while let Some(interest) = finder.poll_interest(now) {
                        let interest = interest.build(Nonce::draw(&mut self.random));
                        self.frames.push_back(interest.wire().clone());
                    }
                }
            }
        }
        match &mut self.stage {
            Some(Stage::First(first)) if now >= first.deadline => {
                self.fail(Unreadable::NotFound(NotFound::Silence));
            }
            Some(Stage::First(first)) if now >= first.ask_at => {
                first.ask_at = now + REPEAT;
                let interest = Interest::builder(first.name()).lifetime(first.deadline.since(now));
                let interest = interest.build(Nonce::draw(&mut self.random));
                self.frames.push_back(interest.wire().clone());
            }
            Some(Stage::Pulling(pulling)) => {
                while let Some(data) = pulling.kept.remove(&pulling.next) {
                    pulling.next += 1;
                    self.events
                        .push_back(ReaderEvent::Packet(data, pulling.last));
                }
                while let Some(interest) = pulling.poll_interest() {
                    self.frames.push_back(interest.wire().clone());
                }
                if pulling.is_complete() {
                    self.stage = Some(Stage::Over);
                    self.events.push_back(ReaderEvent::Complete);
                } else if now >= pulling.heard_at + self.config.timeout {
                    let why = Unreadable::Stopped(pulling.object.clone(), pulling.next);
                    self.fail(why);
                }
            }
            _ => {}
        }
    }

    fn on_found(&mut self, now: Instant, found: Found) {
        let timeout = self.config.timeout;
        match found {
            Found::Segments { name, numbering } => {
                let first = First::new(now, (name, Some(numbering)), timeout);
                self.stage = Some(Stage::First(first));
            }
            Found::Packet(data) => {
                let first = First::new(now, (data.name().clone(), None), timeout);
                self.stage = Some(Stage::First(first));
                self.on_first(now, data);
            }
        }
    }
}

/// Returns the number of the last segment, where a segment tells it.
fn last_of(segment: &Data) -> Option<u64> {
    let last = segment.final_block()?;
    Numbering::number(&last.parent(), last)
}

impl Application for Reader {
    type Event = ReaderEvent;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        match face::open(frame) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                self.on_data(now.monotonic, data, &link);
            }
            Ok(Some((Packet::Interest(interest), link))) => {
                if let Some(reason) = link.nack {
                    self.on_nack(now.monotonic, &interest, reason);
                }
            }
            // A reader counts nothing: what is no packet answers nothing.
            _ => {}
        }
        self.settle(now.monotonic);
    }

    fn handle_timeout(&mut self, now: Now) {
        match &mut self.stage {
            None => self.stage = Some(self.start(now.monotonic)),
            Some(Stage::Finding(finder)) => finder.handle_timeout(now.monotonic),
            Some(Stage::Pulling(pulling)) => {
                let missing = pulling
                    .last
                    .map(|last| (last + 1).saturating_sub(pulling.next));
                pulling.by_name.handle_timeout(now.monotonic, missing);
            }
            _ => {}
        }
        self.settle(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.stage {
            None => Some(Instant::ZERO),
            Some(Stage::Finding(finder)) => finder.poll_timeout(),
            Some(Stage::First(first)) => Some(first.ask_at.min(first.deadline)),
            Some(Stage::Pulling(pulling)) => {
                let silence = pulling.heard_at + self.config.timeout;
                pulling
                    .by_name
                    .poll_timeout()
                    .into_iter()
                    .chain([silence])
                    .min()
            }
            Some(Stage::Waiting(_) | Stage::Over) => None,
        }
    }

    fn poll_output(&mut self) -> Option<Output<ReaderEvent>> {
        if let Some(event) = self.events.pop_front() {
            return Some(Output::Event(event));
        }
        self.frames.pop_front().map(Output::Send)
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
