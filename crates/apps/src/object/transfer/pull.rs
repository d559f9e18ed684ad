//! Segments of one version, until there are enough of each block.
//!
//! ```text
//!  AnyNext ──▶ content has left, little is missing or neighbours have it ──▶ ByName
//!     └─────▶ refused, or silent for 3 s ──────────────────────────────────▶ ByName
//! ```
//!
//! Meanwhile, and once there are enough, [`Neighbours`] of the same node get what is here, and give what is missing.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{
    Component, Data, Extensions, Interest, InterestBuilder, LpPacket, Name, Nonce, Packet, any_next,
};
use namecast_stream::path::{AnyNext, AnyNextOutput, Feedback, NumberedConfig, Received};
use namecast_stream::rate::{RateControl, said};
use namecast_units::{ByteSize, Duration, Instant, Random};

use super::packets::{Packets, Serving};
use super::receiver::Ready;
use super::{
    Contents, KeptSegments, ReceiverConfig, ReceiverCounters, ReceiverEvent, Refused, SegmentSet,
};
use crate::face;
use crate::neighbours::Neighbours;
use crate::object::by_name::ByName;
use crate::receivers::Reporting;

/// Largest part of the content that a receiver requests by name instead of as parity: a smaller request costs others less than the wait.
const LITTLE: u64 = 16;
/// Segments of an object that is requested by name from the start: the first request for any next ones waits until each node on the path
/// has asked the next whether it counts such requests, half a second together.
const SMALL: u64 = 64;
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
/// Segments in a chunk, which is what neighbours announce: at least, and as many that no object has more chunks than nodes remember.
const CHUNK: u64 = 100;
const MAX_CHUNKS: u64 = 1 << 16;
/// Segments before the newest that may come yet, overtaken.
const OVERTAKEN: u64 = 2;

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
    packets: Packets,
    signer: crate::object::KnownSigner,
    here: SegmentSet,
    needs: Needs,
    mode: Mode,
    /// One after the newest segment with content that came as any next.
    newest: u64,
    /// Segments before this one are here, or were requested of neighbours since those have said what they have.
    looked_at: u64,
    neighbours: Neighbours,
    /// Whether neighbours have announced chunks since it was seen whether they have all.
    may_have_all: bool,
    serving: Serving,
    forged: BTreeSet<u64>,
    reporting: Reporting,
    /// Whether the sender knows that all is here.
    is_reported: bool,
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

    /// Returns the first missing segment from `from` on and before `end` whose block lacks one.
    fn next(&self, (contents, here): (&Contents, &SegmentSet), from: u64, end: u64) -> Option<u64> {
        let mut from = from;
        loop {
            let number = here.next_missing(from, end)?;
            let block = Self::block(contents, number);
            match self.blocks.get(block as usize)? {
                0 => from = (block + 1) * Self::block_size(contents),
                _ => return Some(number),
            }
        }
    }

    fn block_size(contents: &Contents) -> u64 {
        let coding = contents.coding;
        coding.map_or(contents.segments(), |it| u64::from(it.block))
    }

    /// Returns the first segment from `from` on to request by name: as many of each block as it lacks.
    fn choose(&mut self, contents: &Contents, here: &SegmentSet, from: u64) -> Option<u64> {
        if from == 0 {
            self.chosen = (0, self.blocks.first().copied()?);
        }
        let mut from = from;
        loop {
            let number = here.next_missing(from, contents.segments())?;
            let block = Self::block(contents, number);
            if block != self.chosen.0 {
                self.chosen = (block, *self.blocks.get(block as usize)?);
            }
            if self.chosen.1 > 0 {
                self.chosen.1 -= 1;
                return Some(number);
            }
            from = (block + 1) * Self::block_size(contents);
        }
    }
}

impl Pull {
    pub(super) fn new(
        now: Instant,
        config: &ReceiverConfig,
        (ready, here): (Ready, SegmentSet),
        kept: Box<dyn KeptSegments + Send>,
    ) -> Self {
        let mut random = Random::from_seed(config.seed);
        let needs = Needs::new(&ready.contents, &here);
        let reporting = Reporting::new(now, (ready.flow.clone(), config.id), &mut random);
        let is_any_next = config.any_next && here.count() == 0 && ready.contents.segments() > SMALL;
        let packets = Packets::new(&ready.contents, ready.flow, config.key.clone());
        let neighbours = neighbours(&ready.contents, &packets.flow, &here);
        let mut pull = Self {
            contents: ready.contents,
            serving: Serving::new(packets.clone(), kept),
            packets,
            signer: ready.signer,
            here,
            needs,
            mode: Mode::Done,
            newest: 0,
            looked_at: 0,
            neighbours,
            may_have_all: false,
            forged: BTreeSet::new(),
            reporting,
            is_reported: false,
            heard_at: now,
            random,
            outputs: VecDeque::new(),
            events: VecDeque::new(),
            counters: ReceiverCounters::default(),
        };
        match is_any_next {
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
        match face::open(frame.clone()) {
            Ok(Some((Packet::Data(data), link))) if link.nack.is_none() => {
                self.on_data(now, &data, &link);
            }
            Ok(Some((Packet::Interest(interest), link))) => match link.nack {
                Some(reason) => self.on_nack(now, &interest, reason),
                None => self.serve(&interest, link.pit_token),
            },
            Ok(None) => self.on_bare_frame(now, frame),
            _ => self.counters.unexpected += 1,
        }
        self.settle(now);
    }

    /// Takes what a frame without a packet says: chunks that neighbours have.
    fn on_bare_frame(&mut self, now: Instant, frame: Bytes) {
        let link = LpPacket::decode(frame).unwrap_or_default();
        match link.extensions.get(Extensions::CHUNKS_HAD) {
            Some(had) => {
                self.neighbours.on_announcement(now, had);
                self.may_have_all = true;
                self.looked_at = 0;
            }
            None => self.counters.unexpected += 1,
        }
    }

    /// Answers a neighbour's Interest, if the segment is here as it came.
    fn serve(&mut self, interest: &Interest, token: Option<Bytes>) {
        let number = self.number_of(interest.name());
        let number = number.filter(|it| self.here.contains(*it));
        let data = number.and_then(|it| self.serving.data(it, &self.signer));
        let frame = match data.filter(|it| interest.matches(it)) {
            Some(data) => {
                self.counters.served += 1;
                face::answer(data.wire().clone(), token)
            }
            None => {
                self.counters.unexpected += u64::from(number.is_none());
                face::refusal(interest, token, NackReason::NoRoute)
            }
        };
        self.outputs.push_back(frame);
    }

    /// Returns the number of a segment with that name.
    fn number_of(&self, name: &Name) -> Option<u64> {
        let number = name.last()?.number_of(Component::SEGMENT)?;
        (number < self.contents.total() && name.parent() == self.packets.flow).then_some(number)
    }

    fn on_data(&mut self, now: Instant, data: &Data, link: &LpPacket) {
        if self.reporting.is_answer(data.name()) {
            return self.on_report(now, data);
        }
        let Some(number) = self.number_of(data.name()) else {
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
        let content = self.verified(number, data);
        if link.is_none() {
            self.neighbours.on_answer(now, content.is_none());
        }
        match content {
            Some(content) => {
                if let Mode::ByName(by_name) = &mut self.mode {
                    by_name.handle_data(now, number, &received);
                }
                let is_marked = received.congestion_marked;
                let is_neighbours = self.neighbours.on_data(now, number, is_marked);
                self.serving.on_segment(data);
                let how = (link.is_some(), is_neighbours && link.is_none());
                let signature = Bytes::copy_from_slice(data.signature_value());
                self.keep(now, (number, content, signature), how);
            }
            None => self.on_forgery(now, number),
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

    /// Requests a forged segment again, past caches and neighbours.
    fn on_forgery(&mut self, now: Instant, number: u64) {
        self.counters.forged += 1;
        if self.forged.len() < MAX_FORGED {
            self.forged.insert(number);
        }
        self.neighbours.on_nack(now, number);
        if let Mode::ByName(by_name) = &mut self.mode {
            by_name.handle_forgery(now, number);
        }
    }

    /// Returns what a segment holds, if it is the signer's.
    fn verified(&self, number: u64, data: &Data) -> Option<Bytes> {
        if !self.signer.has_signed(data) {
            return None;
        }
        let content = data.content().unwrap_or_default();
        let content = match &self.packets.key {
            Some(key) => key.open(number, &content)?,
            None => content,
        };
        (content.len() == self.contents.span(number).1).then_some(content)
    }

    fn keep(
        &mut self,
        now: Instant,
        (number, content, signature): (u64, Bytes, Bytes),
        (is_any_next, is_neighbours): (bool, bool),
    ) {
        let segments = self.contents.segments();
        let block = Needs::block(&self.contents, number);
        if is_any_next {
            self.newest = self.newest.max((number + 1).min(segments));
        }
        self.heard_at = now;
        self.forged.remove(&number);
        if self.here.contains(number) || !self.needs.take(block) {
            self.counters.duplicates += 1;
        } else {
            self.here.insert(number);
            self.counters.segments += 1;
            self.counters.any_next += u64::from(is_any_next);
            self.counters.from_neighbours += u64::from(is_neighbours);
            self.reporting.on_content(content.len() as u64);
            let here = &self.here;
            let missing = |from, end| here.next_missing(from, end);
            self.neighbours.on_number(number, missing);
            let event = ReceiverEvent::Segment(number, content, signature);
            self.events.push_back(event);
        }
        let is_content_over = is_any_next && number + 1 >= segments;
        let is_coded = self.contents.coding.is_some();
        if is_content_over && (!is_coded || self.lacks_little() || self.neighbours_have_all(now)) {
            self.end_any_next(now);
        }
    }

    /// Returns whether neighbours have announced all missing segments: then no parity is needed.
    fn neighbours_have_all(&mut self, now: Instant) -> bool {
        let objects = (&self.contents, &self.here);
        let segments = self.contents.segments();
        let needs = &self.needs;
        core::mem::take(&mut self.may_have_all)
            && (self.neighbours).have_all(now, |from| needs.next(objects, from, segments))
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
        let segment = self.number_of(interest.name());
        let is_flow = *interest.name() == self.packets.flow;
        let is_neighbours = segment.is_some_and(|it| self.neighbours.on_nack(now, it));
        if is_neighbours || matches!(self.mode, Mode::Done) {
            return;
        }
        if reason == NackReason::None && (segment.is_some() || is_flow) {
            self.mode = Mode::Done;
            self.events.push_back(ReceiverEvent::Failed(Refused::Gone));
        } else if is_flow {
            self.end_any_next(now);
        } else if let (Mode::ByName(by_name), Some(segment)) = (&mut self.mode, segment) {
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
            Some(Ok(true)) => {
                self.is_reported = true;
                self.events.push_back(ReceiverEvent::Reported);
            }
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
        if self.is_reported {
            return;
        }
        let state = (self.here.count(), self.needs.total);
        let interest = self.reporting.poll_report(now, state, &mut self.random);
        self.outputs.extend(interest.map(|it| it.wire().clone()));
    }

    /// Does what is due. Early and repeated calls do nothing.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.report(now);
        self.neighbours.handle_timeout(now);
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
        let report = (!self.is_reported).then(|| self.reporting.next_at());
        let all = [mode, report, self.neighbours.poll_timeout()];
        all.into_iter().flatten().min()
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
                        let interest = Interest::builder(self.packets.flow.clone())
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
                let passes_all_by = self.neighbours.are_resting(now);
                while let Some((segment, nonce)) = by_name.poll_request(&mut choose) {
                    let interest = interest(&self.packets.flow, segment);
                    let interest = match passes_all_by || self.forged.contains(&segment) {
                        true => interest.must_be_fresh(),
                        false => interest,
                    };
                    self.outputs.push_back(interest.build(nonce).wire().clone());
                }
            }
            Mode::Done => {}
        }
        self.request_of_neighbours(now);
        self.outputs.extend(self.neighbours.poll_announcement(now));
    }

    /// Requests of neighbours what has passed, as long as any next segments come.
    fn request_of_neighbours(&mut self, now: Instant) {
        if !matches!(self.mode, Mode::AnyNext(_)) {
            return;
        }
        let end = self.newest.saturating_sub(OVERTAKEN);
        let (needs, objects) = (&self.needs, (&self.contents, &self.here));
        let missing = |from| needs.next(objects, from, end);
        let mut from = missing(self.looked_at).unwrap_or(end.max(self.looked_at));
        while let Some(number) = (self.neighbours).poll_request(now, &mut from, missing, |_| false)
        {
            let nonce = Nonce::draw(&mut self.random);
            let interest = interest(&self.packets.flow, number).build(nonce);
            self.outputs.push_back(interest.wire().clone());
        }
        self.looked_at = from;
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

/// An Interest for one segment, whose Nonce is missing.
fn interest(flow: &Name, number: u64) -> InterestBuilder {
    let name = flow.builder().segment(number).finish();
    Interest::builder(name).lifetime(LIFETIME)
}

/// Chunks of the segments with content: those that are whole are announced.
fn neighbours(contents: &Contents, flow: &Name, here: &SegmentSet) -> Neighbours {
    let segments = contents.segments();
    let size = CHUNK.max(segments.div_ceil(MAX_CHUNKS));
    let size = u32::try_from(size).unwrap_or(u32::MAX);
    let mut neighbours = Neighbours::new(flow.clone(), segments, size);
    if here.count() > 0 {
        for first in (0..segments).step_by(size as usize) {
            neighbours.on_number(first, |from, end| here.next_missing(from, end));
        }
    }
    neighbours
}
