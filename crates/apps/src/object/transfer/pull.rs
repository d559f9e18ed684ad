//! Segments of one version, until there are enough of each block.
//!
//! ```text
//!  AnyNext ──▶ content has left, little is missing ──▶ ByName
//!     └─────▶ refused, or silent for 3 s ────────────▶ ByName
//! ```

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Component, Data, Extensions, Interest, LpPacket, Name, Packet, any_next};
use namecast_stream::path::{AnyNext, AnyNextOutput, Feedback, NumberedConfig, Received};
use namecast_stream::rate::{RateControl, said};
use namecast_units::{ByteSize, Duration, Instant, Random};

use super::receiver::Ready;
use super::{
    ContentKey, Contents, ReceiverConfig, ReceiverCounters, ReceiverEvent, Refused, SegmentSet,
};
use crate::face;
use crate::object::by_name::ByName;
use crate::receivers::Reporting;

/// Largest part of the content that a receiver requests by name instead of as parity: a smaller request costs others less than the wait.
const LITTLE: u64 = 16;
/// Silence after which little that is missing is requested by name: less than that after which requests are refreshed, as those would
/// have the sender go on.
const SHORT_SILENCE: Duration = Duration::from_millis(200);
/// Silence after which any next segments do not come so.
const LONG_SILENCE: Duration = Duration::from_secs(3);
/// Lifetime of Interests.
const LIFETIME: Duration = Duration::from_secs(2);
/// Requests for any next segments at the start.
const INITIAL_WINDOW: f64 = 10.0;
/// Parts of the window that are requested at a time.
const BATCHES: u32 = 8;
/// Segments that came forged and are requested past caches.
const MAX_FORGED: usize = 1_024;

/// How segments are requested.
#[derive(Debug)]
enum Mode {
    AnyNext(Box<AnyNext>),
    ByName(Box<ByName>),
    /// There are enough.
    Done,
}

/// Missing segments of a block.
#[derive(Debug)]
struct Needs {
    /// Of each block.
    blocks: Vec<u64>,
    total: u64,
    /// The block whose segments are chosen for repair, and how many are to be yet.
    chosen: (u64, u64),
}

/// Pulls what is missing of one version.
pub(super) struct Pull {
    contents: Contents,
    flow: Name,
    signer: crate::object::KnownSigner,
    key: Option<ContentKey>,
    here: SegmentSet,
    needs: Needs,
    mode: Mode,
    forged: BTreeSet<u64>,
    reporting: Reporting,
    heard_at: Instant,
    random: Random,
    outputs: VecDeque<Bytes>,
    events: VecDeque<ReceiverEvent>,
    counters: ReceiverCounters,
}

impl Needs {
    fn new(contents: &Contents, here: &SegmentSet) -> Self {
        let segments = contents.segments();
        let blocks = match contents.coding {
            None => vec![segments - here.count().min(segments)],
            Some(coding) => (0..coding.blocks(segments))
                .map(|index| {
                    let block = coding.block(segments, index);
                    let own = block.first..block.first + u64::from(block.count);
                    let parity = block.parity..block.parity + u64::from(coding.parity);
                    let count = own.chain(parity).filter(|it| here.contains(*it)).count() as u64;
                    u64::from(block.count).saturating_sub(count)
                })
                .collect(),
        };
        Self {
            total: blocks.iter().sum(),
            blocks,
            chosen: (0, 0),
        }
    }

    /// Block of a segment.
    fn block(contents: &Contents, number: u64) -> u64 {
        let coding = contents.coding;
        coding.map_or(0, |it| it.block_of(contents.segments(), number))
    }

    /// Uses a segment, if its block lacks one.
    fn take(&mut self, block: u64) -> bool {
        let Some(missing) = self.blocks.get_mut(block as usize).filter(|it| **it > 0) else {
            return false;
        };
        *missing -= 1;
        self.total -= 1;
        true
    }

    /// Returns the first segment from `from` on to request by name: as many of each block as it lacks.
    fn choose(&mut self, contents: &Contents, here: &SegmentSet, from: u64) -> Option<u64> {
        let segments = contents.segments();
        let size = contents.coding.map_or(segments, |it| u64::from(it.block));
        if from == 0 {
            self.chosen = (0, self.blocks.first().copied()?);
        }
        let mut from = from;
        loop {
            let number = here.next_missing(from, segments)?;
            let block = Self::block(contents, number);
            if block != self.chosen.0 {
                self.chosen = (block, *self.blocks.get(block as usize)?);
            }
            if self.chosen.1 > 0 {
                self.chosen.1 -= 1;
                return Some(number);
            }
            from = (block + 1) * size;
        }
    }
}

impl Pull {
    pub(super) fn new(
        now: Instant,
        config: &ReceiverConfig,
        (ready, here): (Ready, SegmentSet),
    ) -> Self {
        let mut random = Random::from_seed(config.seed);
        let needs = Needs::new(&ready.contents, &here);
        let reporting = Reporting::new(now, (ready.flow.clone(), config.id), &mut random);
        let is_new = here.count() == 0;
        let mut pull = Self {
            contents: ready.contents,
            flow: ready.flow,
            signer: ready.signer,
            key: config.key.clone(),
            here,
            needs,
            mode: Mode::Done,
            forged: BTreeSet::new(),
            reporting,
            heard_at: now,
            random,
            outputs: VecDeque::new(),
            events: VecDeque::new(),
            counters: ReceiverCounters::default(),
        };
        match config.any_next && is_new {
            true => pull.request_any_next(now),
            false => pull.repair(now),
        }
        pull.settle(now);
        pull
    }

    fn request_any_next(&mut self, now: Instant) {
        let mut receiver = AnyNext::new(NumberedConfig {
            control: RateControl::Said(said::Config {
                initial_window: INITIAL_WINDOW,
                ..said::Config::ours()
            }),
            seed: self.random.next_u64(),
            ..NumberedConfig::default()
        });
        receiver.renew_in_batches(BATCHES);
        receiver.set_needed(self.needs.total);
        receiver.start(now);
        self.mode = Mode::AnyNext(Box::new(receiver));
    }

    fn repair(&mut self, now: Instant) {
        let size = ByteSize::bytes(self.contents.segment_size.into());
        let count = Some(self.needs.total);
        let by_name = ByName::new(now, count, (size, self.random.next_u64()));
        self.mode = Mode::ByName(Box::new(by_name));
    }

    /// Takes a packet of the object, or what the link says about one.
    pub(super) fn handle_packet(&mut self, now: Instant, frame: Bytes) {
        match face::open(frame) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                self.on_data(now, &data, &link);
            }
            Ok(Some((Packet::Interest(interest), link))) => match link.nack {
                Some(reason) => self.on_nack(now, &interest, reason),
                None => self.counters.unexpected += 1,
            },
            _ => self.counters.unexpected += 1,
        }
        self.settle(now);
    }

    fn on_data(&mut self, now: Instant, data: &Data, link: &LpPacket) {
        if self.reporting.is_answer(data.name()) {
            return self.on_report(now, data);
        }
        let number = data
            .name()
            .last()
            .and_then(|it| it.number_of(Component::SEGMENT));
        let number =
            number.filter(|it| *it < self.contents.total() && data.name().parent() == self.flow);
        let Some(number) = number else {
            self.counters.unexpected += 1;
            return;
        };
        let received = Received {
            size: ByteSize::of(data.wire()),
            congestion_marked: link.congestion_mark > 0,
            feedback: Feedback::read(&link.extensions),
        };
        self.counters.marked += u64::from(received.congestion_marked);
        let link = link
            .extensions
            .get(Extensions::ANY_NEXT)
            .and_then(any_next::decode_number);
        match self.verified(number, data) {
            Some(content) => {
                if let Mode::ByName(by_name) = &mut self.mode {
                    by_name.handle_data(now, number, &received);
                }
                self.keep(now, (number, content), link.is_some());
            }
            None => {
                self.counters.forged += 1;
                if self.forged.len() < MAX_FORGED {
                    self.forged.insert(number);
                }
            }
        }
        if link.is_some() {
            self.acknowledge(number);
        }
        if let (Mode::AnyNext(receiver), Some(link)) = (&mut self.mode, link) {
            // First what is needed yet, or one more than that would be requested.
            receiver.set_needed(self.needs.total);
            // Its number on the link counts in any case; what the receiver knows of numbers does not matter here.
            let _ = receiver.handle_data(now, (number, Some(link)), &received);
        }
    }

    /// Returns what a segment holds, if it is the signer's.
    fn verified(&self, number: u64, data: &Data) -> Option<Bytes> {
        if !self.signer.has_signed(data) {
            return None;
        }
        let content = data.content().unwrap_or_default();
        let content = match &self.key {
            Some(key) => key.open(number, &content)?,
            None => content,
        };
        (content.len() == self.contents.span(number).1).then_some(content)
    }

    fn keep(&mut self, now: Instant, (number, content): (u64, Bytes), is_any_next: bool) {
        let block = Needs::block(&self.contents, number);
        self.heard_at = now;
        self.forged.remove(&number);
        if self.here.contains(number) || !self.needs.take(block) {
            self.counters.duplicates += 1;
        } else {
            self.here.insert(number);
            self.counters.segments += 1;
            self.counters.any_next += u64::from(is_any_next);
            self.reporting.on_content(content.len() as u64);
            self.events
                .push_back(ReceiverEvent::Segment(number, content));
        }
        let segments = self.contents.segments();
        let is_content_over = is_any_next && number + 1 >= segments;
        if is_content_over && (self.contents.coding.is_none() || self.lacks_little()) {
            self.end_any_next(now);
        }
    }

    fn lacks_little(&self) -> bool {
        self.needs.total <= (self.contents.segments() / LITTLE).max(LITTLE / 4)
    }

    /// Returns the silence after which any next segments are not waited for.
    fn max_silence(&self) -> Duration {
        match self.counters.any_next > 0 && self.lacks_little() {
            true => SHORT_SILENCE,
            false => LONG_SILENCE,
        }
    }

    fn end_any_next(&mut self, now: Instant) {
        if let Mode::AnyNext(_) = self.mode {
            self.repair(now);
        }
    }

    fn on_nack(&mut self, now: Instant, interest: &Interest, reason: NackReason) {
        let name = interest.name();
        let segment = name.last().and_then(|it| it.number_of(Component::SEGMENT));
        let is_segment = segment.is_some() && name.parent() == self.flow;
        if reason == NackReason::None && (is_segment || *name == self.flow) {
            self.mode = Mode::Done;
            self.events.push_back(ReceiverEvent::Failed(Refused::Gone));
        } else if *name == self.flow {
            self.end_any_next(now);
        } else if let (Mode::ByName(by_name), Some(segment)) =
            (&mut self.mode, segment.filter(|_| is_segment))
        {
            by_name.handle_nack(now, (segment, interest.nonce()), reason);
        }
    }

    /// Tells the sender that a segment came, if it wants to know.
    fn acknowledge(&mut self, number: u64) {
        let interest = self.reporting.acknowledge(number, &mut self.random);
        self.outputs.extend(interest.map(|it| it.wire().clone()));
    }

    fn on_report(&mut self, now: Instant, data: &Data) {
        let is_signed = self.signer.has_signed(data);
        match is_signed.then(|| self.reporting.on_answer(now, data)) {
            Some(Ok(true)) => self.events.push_back(ReceiverEvent::Reported),
            Some(Ok(false)) => {}
            Some(Err(_)) | None => self.counters.forged += 1,
        }
    }

    /// Tells the sender that all is here.
    pub(super) fn finish(&mut self, now: Instant) {
        self.reporting.finish(now);
        self.report(now);
    }

    fn report(&mut self, now: Instant) {
        let state = (self.here.count(), self.needs.total);
        let interest = self.reporting.poll_report(now, state, &mut self.random);
        self.outputs.extend(interest.map(|it| it.wire().clone()));
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.report(now);
        if now >= self.heard_at + self.max_silence() {
            self.end_any_next(now);
        }
        match &mut self.mode {
            Mode::AnyNext(receiver) => receiver.handle_timeout(now),
            Mode::ByName(by_name) => by_name.handle_timeout(now, Some(self.needs.total)),
            Mode::Done => {}
        }
        self.settle(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let mode = match &self.mode {
            Mode::AnyNext(receiver) => {
                let silence = self.heard_at + self.max_silence();
                receiver.poll_timeout().into_iter().chain([silence]).min()
            }
            Mode::ByName(by_name) => by_name.poll_timeout(),
            Mode::Done => None,
        };
        mode.into_iter().chain([self.reporting.next_at()]).min()
    }

    /// After every event: requests what may be requested.
    fn settle(&mut self, now: Instant) {
        if self.needs.total == 0 && !matches!(self.mode, Mode::Done) {
            self.mode = Mode::Done;
            self.events.push_back(ReceiverEvent::Enough);
        }
        if let Mode::AnyNext(receiver) = &mut self.mode {
            receiver.set_needed(self.needs.total);
            if receiver.has_fallen_back() {
                self.repair(now);
            }
        }
        match &mut self.mode {
            Mode::AnyNext(receiver) => {
                while let Some(output) = receiver.poll_output() {
                    if let AnyNextOutput::AnyNext(request, nonce) = output {
                        let interest = Interest::builder(self.flow.clone())
                            .lifetime(LIFETIME)
                            .build(nonce);
                        let mut fields = Extensions::default();
                        fields.set(Extensions::ANY_NEXT, request.encode());
                        self.outputs
                            .push_back(LpPacket::wrapped(interest.wire().clone(), &fields));
                    }
                }
            }
            Mode::ByName(by_name) => {
                let (needs, contents, here) = (&mut self.needs, &self.contents, &self.here);
                let mut choose = |from| needs.choose(contents, here, from);
                while let Some((segment, nonce)) = by_name.poll_request(&mut choose) {
                    let name = self.flow.builder().segment(segment).finish();
                    let interest = Interest::builder(name).lifetime(LIFETIME);
                    let interest = match self.forged.contains(&segment) {
                        true => interest.must_be_fresh(),
                        false => interest,
                    };
                    self.outputs.push_back(interest.build(nonce).wire().clone());
                }
            }
            Mode::Done => {}
        }
    }

    pub(super) fn poll_output(&mut self) -> Option<Bytes> {
        self.outputs.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    pub(super) const fn heard_at(&self) -> Instant {
        self.heard_at
    }

    pub(super) const fn needed(&self) -> u64 {
        self.needs.total
    }

    pub(super) const fn is_any_next(&self) -> bool {
        matches!(self.mode, Mode::AnyNext(_))
    }

    pub(super) const fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }
}
