//! The producing end of streams under one root: answers Interests the moment what they ask for exists.
//!
//! ```text
//!                     ┌─ cached ──────────────▶ answered at once
//!   Interest ─────────┼─ not yet published ───▶ held ──▶ answered when published
//!                     │                           └────▶ dropped when its lifetime ends
//!                     ├─ metadata, newest, catalogue, key ─▶ answered at once, signed once per freshness period
//!                     ├─ challenge ───────────▶ answered at once, signed each time
//!                     └─ what will never exist ─▶ refused at once
//! ```

mod answers;
mod cache;
mod config;
mod counters;
mod index;
mod pending;
mod rung;
mod segments;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use namecast_packet::{Data, DataBuilder, Interest, Name, Nonce, Signer};
use namecast_units::{ByteSize, Duration, Instant, Timestamp};

use crate::catalogue::{Catalogue, is_rung_name};
use crate::metadata::{MAX_LATEST, Metadata, NewestSample};
use crate::names::{INDEX, RungNames, SampleClass, SegmentId, SegmentKind, StreamNames};
use crate::sample::Asked;
use crate::segmenter::{Sample, Segments, Stamp};

use answers::{FreshAnswer, Objects, momentary};
pub use cache::{CacheConfig, Lookup, SegmentCache};
pub use config::{ProducerConfig, PublishError, RungConfig};
pub use counters::{DropReason, ProducerCounters};
pub use pending::{Held, PendingTable, Waiter};
use rung::RungState;

/// Most octets of Content in a catalogue segment, so that it fits a datagram.
const CATALOGUE_SEGMENT: usize = 1_000;
/// Most octets of Content in metadata; a catalogue that does not fit is left out, then the last rungs.
const MAX_METADATA_CONTENT: usize = 8_000;

/// A rung that was requested within this time is requested still.
const ASKED_FOR: Duration = Duration::from_secs(2);
/// In which at most [`ProducerConfig::max_challenges`] are answered.
const CHALLENGE_PERIOD: Duration = Duration::from_secs(1);

/// One rung of one stream of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RungId(usize);

/// An answer, and what to send with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The packet.
    pub data: Data,
    /// Octets that the link wants back.
    pub pit_token: Option<Bytes>,
}

/// How an Interest came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Octets that the link wants back with the answer.
    pub pit_token: Option<Bytes>,
    /// Number of the face that it came in on, if the forwarder said it. Interests of one face take no more than their share of places.
    pub face: Option<u64>,
}

/// What an Interest requests will not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub DropReason);

/// What an Interest waits for: rung, then segment.
type Key = (RungId, SegmentId);

/// Publishes streams under one root.
///
/// Call [`publish`](Self::publish) and [`handle_interest`](Self::handle_interest) as things happen; after each call
/// fetch [`poll_output`](Self::poll_output) until `None`, and call [`handle_timeout`](Self::handle_timeout) at
/// [`poll_timeout`](Self::poll_timeout). Early or repeated calls are harmless.
pub struct Producer {
    names: StreamNames,
    /// Components of a rung's name: root, stream, rung.
    rung_depth: usize,
    signer: Box<dyn Signer + Send>,
    config: ProducerConfig,
    rungs: BTreeMap<RungId, RungState>,
    /// Rungs that are members of families.
    members: usize,
    /// Of the next rung that is added: ids of rungs that ended do not come again.
    next_rung: usize,
    by_name: BTreeMap<Name, RungId>,
    pending: PendingTable<Key>,
    objects: Objects,
    catalogue: Option<(Name, Bytes)>,
    roster_version: Option<u64>,
    metadata: FreshAnswer,
    /// Challenges answered, and since when.
    challenges: (Instant, u32),
    output: VecDeque<Reply>,
    counters: ProducerCounters,
}

impl core::fmt::Debug for Producer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Producer")
            .field("root", self.names.root())
            .field("rungs", &self.rungs.len())
            .field("pending", &self.pending.len())
            .finish_non_exhaustive()
    }
}

impl Producer {
    /// A producer of nothing yet, under `root`, whose leads and answers `signer` signs.
    pub fn new(root: Name, signer: Box<dyn Signer + Send>, config: ProducerConfig) -> Self {
        Self {
            rung_depth: root.len() + 2,
            names: StreamNames::new(root),
            signer,
            rungs: BTreeMap::new(),
            members: 0,
            next_rung: 0,
            by_name: BTreeMap::new(),
            pending: PendingTable::new(config.max_pending, config.max_pending_per_segment),
            objects: Objects::default(),
            catalogue: None,
            roster_version: None,
            metadata: FreshAnswer::default(),
            challenges: (Instant::ZERO, 0),
            output: VecDeque::new(),
            counters: ProducerCounters::default(),
            config,
        }
    }

    /// Adds rung `rung` of stream `stream`.
    ///
    /// # Errors
    /// If it is there already, its name is reserved or not 1 to 64 of `A-Z a-z 0-9 . _ -`, or there are too many.
    pub fn add_rung(
        &mut self,
        stream: &str,
        rung: &str,
        config: RungConfig,
    ) -> Result<RungId, PublishError> {
        let names = self.names.rung(stream, rung);
        let reserved =
            [crate::names::CATALOGUE, crate::names::KEY].contains(&stream) || rung == INDEX;
        if !is_rung_name(rung) || reserved || self.by_name.contains_key(names.prefix()) {
            return Err(PublishError::RungName(names.prefix().clone()));
        }
        if self.rungs.len() - self.members == MAX_LATEST {
            return Err(PublishError::TooManyRungs);
        }
        Ok(self.insert(names, &config, false))
    }

    /// Adds the member `member`, `8=…` or `32=…`, of the family `stream`: a rung that metadata does not list, as its numbers are those of the family.
    ///
    /// # Errors
    /// If it is there already, or there are too many.
    pub fn add_member(
        &mut self,
        stream: &str,
        member: &str,
        config: RungConfig,
    ) -> Result<RungId, PublishError> {
        let names = self.names.rung(stream, member);
        if self.by_name.contains_key(names.prefix()) {
            return Err(PublishError::RungName(names.prefix().clone()));
        }
        if self.members >= self.config.max_members {
            return Err(PublishError::TooManyMembers(self.members));
        }
        self.members += 1;
        Ok(self.insert(names, &config, true))
    }

    fn insert(&mut self, names: RungNames, config: &RungConfig, is_member: bool) -> RungId {
        let id = RungId(self.next_rung);
        self.next_rung += 1;
        self.by_name.insert(names.prefix().clone(), id);
        let mut state = RungState::new(names, config, &self.config);
        state.is_member = is_member;
        self.rungs.insert(id, state);
        id
    }

    /// Returns whether anybody requests key sample `sequence` of a rung, or has requested one of its samples within two seconds.
    pub fn is_asked(&self, now: Instant, rung: RungId, sequence: u64) -> bool {
        let Some(state) = self.rungs.get(&rung) else {
            return false;
        };
        let is_recent = |at| now.since(at) < ASKED_FOR;
        let first = |sequence| (rung, SegmentId::lead(SampleClass::Key, sequence));
        let number = first(sequence)..first(sequence.saturating_add(1));
        state.asked_at.is_some_and(is_recent) || self.pending.has_any(number)
    }

    /// Leaves out key samples up to `sequence`: Interests for them are dropped.
    pub fn pass(&mut self, rung: RungId, sequence: u64) {
        let Some(state) = self.rungs.get_mut(&rung) else {
            return;
        };
        let next = &mut state.next[SampleClass::Key.index()];
        *next = sequence.saturating_add(1).max(*next);
        let first = |sequence| (rung, SegmentId::lead(SampleClass::Key, sequence));
        let skipped = self.pending.remove(first(0)..first(*next));
        self.counters.drop(DropReason::Skipped, skipped);
    }

    /// Ends a rung: its samples are forgotten, and Interests for them dropped. Does nothing if it has ended.
    pub fn end_rung(&mut self, id: RungId) {
        if let Some(state) = self.rungs.remove(&id) {
            self.by_name.remove(state.segmenter.names().prefix());
            self.members -= usize::from(state.is_member);
        }
        let first = |id| (id, SegmentId::lead(SampleClass::Key, 0));
        let dropped = self.pending.remove(first(id)..first(RungId(id.0 + 1)));
        self.counters.drop(DropReason::UnknownName, dropped);
    }

    /// Publishes `catalogue` under its version, in place of the one before.
    ///
    /// # Errors
    /// If it is not valid, or there is no room for its packets.
    pub fn set_catalogue(&mut self, catalogue: &Catalogue) -> Result<(), PublishError> {
        let json = Bytes::from(catalogue.encode()?);
        let name = self.names.catalogue(catalogue.version);
        let last = json.len().saturating_sub(1) / CATALOGUE_SEGMENT;
        if self.objects.len() + last >= self.config.max_objects {
            return Err(PublishError::TooManyObjects(last + 1));
        }
        if let Some((before, _)) = self.catalogue.take() {
            self.objects.remove(&before);
        }
        let final_block = Name::root().builder().segment(last as u64).finish();
        for segment in 0..=last {
            let start = segment * CATALOGUE_SEGMENT;
            let content = json.slice(start..json.len().min(start + CATALOGUE_SEGMENT));
            let name = self
                .names
                .catalogue_segment(catalogue.version, segment as u64);
            let data = Data::builder(name)
                .final_block(final_block.clone())
                .content(content)
                .sign(&*self.signer);
            self.objects.insert(data);
        }
        self.catalogue = Some((name, json));
        Ok(())
    }

    /// Publishes `data` as it is, under its own name: a certificate.
    ///
    /// # Errors
    /// If there is no room.
    pub fn add_object(&mut self, data: Data) -> Result<(), PublishError> {
        if self.objects.len() >= self.config.max_objects {
            return Err(PublishError::TooManyObjects(1));
        }
        self.objects.insert(data);
        Ok(())
    }

    /// Sets the version of the room's roster that metadata names from now on.
    pub const fn set_roster_version(&mut self, version: Option<u64>) {
        self.roster_version = version;
    }

    /// Signs `data` with the key that signs all that is published.
    pub fn sign(&self, data: DataBuilder) -> Data {
        data.sign(&*self.signer)
    }

    /// Publishes one sample and answers the Interests that waited for it.
    ///
    /// # Errors
    /// If there is no such rung, its number was used, or it cannot be cut; then nothing has changed.
    pub fn publish(
        &mut self,
        now: Instant,
        wall: Timestamp,
        rung: RungId,
        sample: &Sample,
    ) -> Result<(), PublishError> {
        self.handle_timeout(now);
        let state = self.rungs.get_mut(&rung).ok_or(PublishError::NoSuchRung)?;
        let next = state.next[sample.class.index()];
        // The largest number is left out, so that there is always a next one.
        if sample.sequence < next || sample.sequence == u64::MAX {
            let got = sample.sequence;
            return Err(PublishError::SequenceUsed { got, next });
        }
        let lead = SegmentId::lead(sample.class, sample.sequence);
        let oldest = self.pending.oldest(&(rung, lead));
        let asked = oldest.map(|waiter| Asked {
            waited_for: now.since(waiter.arrived_at),
            nonce: waiter.nonce,
        });
        let stamp = Stamp {
            published_at: wall,
            asked,
        };
        let mut segments = state.segmenter.segment(sample, stamp, &*self.signer)?;

        state.next[sample.class.index()] = sample.sequence + 1;
        state.newest[sample.class.index()] = Some(sample.sequence);
        if sample.class == SampleClass::Key {
            state.key_position = Some(sample.position);
            state.next_delta = Some(sample.other_sequence);
        }
        self.count(sample, &segments);
        self.make_what_is_waited_for(rung, lead, &mut segments);
        self.answer_waiting(rung, lead, &segments);
        let sample = (sample.class, sample.sequence);
        if let Some(state) = self.rungs.get_mut(&rung) {
            state.cache.insert(now, sample, segments);
        }
        Ok(())
    }

    /// Returns the data segments of the newest key sample of `rung` as they were signed, its lead first; none if it is not kept.
    pub fn newest_sample(&self, rung: RungId) -> Vec<Data> {
        let state = self.rungs.get(&rung);
        let newest = state.and_then(|state| Some((state, state.newest[SampleClass::Key.index()]?)));
        let Some((state, sequence)) = newest else {
            return Vec::new();
        };
        let lead = SegmentId::lead(SampleClass::Key, sequence);
        let segment = |index| match state.cache.get(&SegmentId { index, ..lead }) {
            Lookup::Found(data) => Some(data.clone()),
            _ => None,
        };
        (0..).map_while(segment).collect()
    }

    fn count(&mut self, sample: &Sample, segments: &Segments) {
        let counters = &mut self.counters;
        counters.samples += 1;
        counters.data_segments += segments.data.len() as u64;
        counters.parity_segments += segments.parity.len() as u64;
        counters.payload += sample.payload.len() as u64;
        counters.wire += segments.wire_size().as_bytes();
        counters.parity_wire += segments.parity_size().as_bytes();
    }

    /// Answers what waited for the sample of `lead`, and gives up on what it turns out not to have, and on samples
    /// before it that were left out.
    fn answer_waiting(&mut self, rung: RungId, lead: SegmentId, segments: &Segments) {
        let first = |sequence| (rung, SegmentId::lead(lead.class, sequence));
        let skipped = self.pending.remove(first(0)..first(lead.sequence));
        self.counters.drop(DropReason::Skipped, skipped);
        let numbered = |kind, packets| {
            (0..)
                .zip(packets)
                .map(move |(index, data)| (kind, index, data))
        };
        let packets = numbered(SegmentKind::Data, &segments.data)
            .chain(numbered(SegmentKind::Parity, &segments.parity));
        let copies = segments.copies.iter();
        let copies = copies.map(|(index, data)| (SegmentKind::LeadCopy, *index, data));
        let inter_frame = segments.inter_frame.iter();
        let inter_frame = inter_frame.map(|(index, data)| (SegmentKind::InterFrame, *index, data));
        for (kind, index, data) in packets.chain(copies).chain(inter_frame) {
            let id = SegmentId {
                kind,
                index,
                ..lead
            };
            let waiters = self.pending.take(&(rung, id));
            self.reply(data, &waiters);
        }
        let missing = first(lead.sequence)..first(lead.sequence + 1);
        let missing = self.pending.remove(missing);
        self.counters.drop(DropReason::NoSuchSegment, missing);
    }

    /// Hands out `data` once for each PIT token among `waiters`.
    fn reply(&mut self, data: &Data, waiters: &[Waiter]) {
        for (index, waiter) in waiters.iter().enumerate() {
            let told = waiters[..index]
                .iter()
                .any(|w| w.pit_token == waiter.pit_token);
            let room = told || self.output.len() < self.config.max_output;
            if !room {
                self.counters.drop(DropReason::OutputFull, 1);
                continue;
            }
            self.counters.answered_after_waiting += 1;
            if !told {
                self.send(data.clone(), waiter.pit_token.clone());
            }
        }
    }

    fn send(&mut self, data: Data, pit_token: Option<Bytes>) {
        self.counters.data_sent += 1;
        self.output.push_back(Reply { data, pit_token });
    }

    /// Answers `interest`, which came as `arrival` says, or holds it until what it requests exists.
    ///
    /// # Errors
    /// If what it requests will not exist here however long it waits, so that a Nack should tell the sender.
    pub fn handle_interest(
        &mut self,
        now: Instant,
        wall: Timestamp,
        interest: &Interest,
        arrival: Arrival,
    ) -> Result<(), Refused> {
        self.handle_timeout(now);
        self.counters.interests += 1;
        let verdict = match self.find_segment(interest.name()) {
            Some(key) => {
                if let Some(state) = self.rungs.get_mut(&key.0) {
                    state.asked_at = Some(now);
                }
                self.segment_verdict(key)
            }
            None => self.other_verdict(now, wall, interest),
        };
        match verdict {
            Verdict::Refuse(reason) => {
                self.counters.drop(reason, 1);
                return Err(Refused(reason));
            }
            Verdict::Drop(reason) => self.counters.drop(reason, 1),
            Verdict::Answer(_) if self.output.len() >= self.config.max_output => {
                self.counters.drop(DropReason::OutputFull, 1);
            }
            Verdict::Answer(data) => {
                self.counters.answered_at_once += 1;
                self.send(data, arrival.pit_token);
            }
            Verdict::Hold(key) => {
                let until = self.rungs[&key.0].time_until(&key.1);
                let lifetime = interest.lifetime().min(self.config.max_lifetime);
                let held = self.pending.insert(
                    key,
                    Waiter {
                        arrived_at: now,
                        expires_at: now + lifetime,
                        // Forwarders add a Nonce, so only a misbehaving one can be without.
                        nonce: interest.nonce().unwrap_or(Nonce([0; 4])),
                        pit_token: arrival.pit_token,
                        due_at: now + until,
                        face: arrival.face,
                    },
                );
                match held {
                    Held::Yes => {}
                    Held::Duplicate => self.counters.drop(DropReason::Duplicate, 1),
                    Held::Full | Held::InsteadOfAnother => {
                        self.counters.drop(DropReason::TableFull, 1);
                    }
                }
            }
        }
        Ok(())
    }

    fn find_segment(&self, name: &Name) -> Option<Key> {
        let rung = self.find_rung(name)?;
        let id = self.rungs[&rung].segmenter.names().parse(name)?;
        Some((rung, id))
    }

    /// Returns the rung that `name` lies in: its first components are root, stream and rung.
    fn find_rung(&self, name: &Name) -> Option<RungId> {
        self.by_name.get(&name.prefix(self.rung_depth)).copied()
    }

    /// Metadata, newest sample, catalogue, certificate.
    fn other_verdict(&mut self, now: Instant, wall: Timestamp, interest: &Interest) -> Verdict {
        let name = interest.name();
        if let Some(data) = self.objects.find(interest) {
            return Verdict::Answer(data.clone());
        }
        if *name == self.names.metadata() && interest.can_be_prefix() {
            let made = self.make_metadata(now, wall, interest);
            return made.map_or(Verdict::Refuse(DropReason::UnknownName), Verdict::Answer);
        }
        if self.names.is_challenge(name) {
            return self.challenge_verdict(now, wall, interest);
        }
        if let Some((stream, time)) = crate::index::parse(name) {
            let index = self.index(&stream, time);
            return match index.since.is_some() {
                true => Verdict::Answer(index.answer(name.detached())),
                false => Verdict::Refuse(DropReason::UnknownName),
            };
        }
        let rung = self.find_rung(name);
        if let Some(rung) = rung
            && *name == self.rungs[&rung].segmenter.names().latest()
            && interest.can_be_prefix()
        {
            return Verdict::Answer(self.make_newest(now, wall, rung, interest.nonce()));
        }
        // A version that was learnt from somebody else.
        let answers = [
            Some(&self.metadata),
            rung.map(|rung| &self.rungs[&rung].answer),
        ];
        let current = answers
            .into_iter()
            .flatten()
            .filter_map(FreshAnswer::current);
        match current.into_iter().find(|data| interest.matches(data)) {
            Some(data) => Verdict::Answer(data.clone()),
            None => Verdict::Refuse(DropReason::UnknownName),
        }
    }

    /// `None` while there is no catalogue.
    fn make_metadata(
        &mut self,
        now: Instant,
        wall: Timestamp,
        interest: &Interest,
    ) -> Option<Data> {
        let (catalogue_name, catalogue) = self.catalogue.as_ref()?;
        let (names, rungs, signer) = (&self.names, &self.rungs, &*self.signer);
        let freshness = self.config.freshness;
        let taken_over_at = self.config.taken_over_at;
        let roster_version = self.roster_version;
        let make = |version| {
            let metadata = Metadata {
                catalogue: Some(catalogue.clone()),
                taken_over_at,
                roster_version,
                ..metadata(catalogue_name, rungs, wall, interest)
            };
            let content = metadata.encode_within(MAX_METADATA_CONTENT);
            momentary(names.metadata_version(version), freshness, content).sign(signer)
        };
        Some(self.metadata.get(now, wall, freshness, make))
    }

    /// Metadata made for one consumer, to prove that the publisher is there: signed each time, a bounded number a second.
    fn challenge_verdict(&mut self, now: Instant, wall: Timestamp, interest: &Interest) -> Verdict {
        let Some((catalogue_name, _)) = &self.catalogue else {
            return Verdict::Refuse(DropReason::UnknownName);
        };
        let (since, signed) = &mut self.challenges;
        if now.since(*since) >= CHALLENGE_PERIOD {
            (*since, *signed) = (now, 0);
        }
        if *signed == self.config.max_challenges {
            return Verdict::Refuse(DropReason::TooManyChallenges);
        }
        *signed += 1;
        let metadata = Metadata {
            taken_over_at: self.config.taken_over_at,
            roster_version: self.roster_version,
            ..metadata(catalogue_name, &self.rungs, wall, interest)
        };
        let content = metadata.encode_within(MAX_METADATA_CONTENT);
        let answer = momentary(interest.name().detached(), self.config.freshness, content);
        Verdict::Answer(answer.sign(&*self.signer))
    }

    fn make_newest(
        &mut self,
        now: Instant,
        wall: Timestamp,
        rung: RungId,
        nonce: Option<Nonce>,
    ) -> Data {
        let (signer, freshness) = (&*self.signer, self.config.freshness);
        let state = self.rungs.get_mut(&rung).expect("found by its name");
        let names = state.segmenter.names().clone();
        let latest = state.latest(wall);
        let make = |version| {
            let content = NewestSample { latest, nonce }.encode();
            momentary(names.latest_version(version), freshness, content).sign(signer)
        };
        state.answer.get(now, wall, freshness, make)
    }

    /// Drops held Interests whose lifetime has ended. Early calls do nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let expired = self.pending.expire(now);
        self.counters.drop(DropReason::Expired, expired);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pending.next_expiry()
    }

    /// Returns the next answer to send.
    pub fn poll_output(&mut self) -> Option<Reply> {
        self.output.pop_front()
    }

    /// Returns the name under which everything is published.
    pub const fn root(&self) -> &Name {
        self.names.root()
    }

    /// Returns what has happened so far.
    pub const fn counters(&self) -> &ProducerCounters {
        &self.counters
    }

    /// Returns the Interests held now.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Memory that cached samples take.
    pub fn cache_size(&self) -> ByteSize {
        self.rungs.values().map(|rung| rung.cache.size()).sum()
    }
}

/// Metadata that answers `interest` now, without the catalogue itself.
fn metadata(
    catalogue_name: &Name,
    rungs: &BTreeMap<RungId, RungState>,
    wall: Timestamp,
    interest: &Interest,
) -> Metadata {
    Metadata {
        catalogue_name: catalogue_name.clone(),
        catalogue: None,
        latest: rungs
            .values()
            .filter(|rung| !rung.is_member)
            .map(|rung| rung.latest(wall))
            .collect(),
        nonce: interest.nonce(),
        taken_over_at: None,
        roster_version: None,
    }
}

/// Action for an Interest.
enum Verdict {
    Answer(Data),
    Hold(Key),
    Refuse(DropReason),
    /// Nothing is sent. Consumers request a few segments more than a sample turns out to have, and Nacks for all of them would take
    /// of their links.
    Drop(DropReason),
}

#[cfg(test)]
mod tests;
