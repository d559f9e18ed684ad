//! Groups without a server: who is here, what they show, and what they write, by State Vector Sync v3.
//!
//! ```text
//!  /<group>/v=3/<digest>                     Sync Interest: a signed state vector, to all
//!  /<member>/<group>/t=<start>/seq=<n>       publication: label, hand, muted, left, text
//!  /<member>/<group>/32=metadata             name of the newest publication: the member is here
//!  /<member>/<group>/32=keys/…               key boxes, where publications are sealed
//! ```
//!
//! Vectors say which publications there are, and are hearsay: members sign what they know of each other. What a member publishes and answers, it signs
//! itself. Nodes forward `/<group>/v=3` to everybody: strategy `multicast`.

mod gate;
mod member;
mod own;
mod pace;
mod publication;
mod sealing;
mod sync;
mod vector;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::tlv::Reader;
use namecast_packet::{Component, Data, Interest, Name, Nonce, Packet, Signer};
use namecast_stream::Seal;
use namecast_stream::names::METADATA;
use namecast_units::{Duration, Instant, Random};

use crate::sealed::{Unopened, box_name, decode_entries, parse_box_name};
use crate::{Application, Now, Output, face};
use member::{Change, FETCH_WAIT, Fetched, Member, PROBE_INTERVAL, Request, prefix};
use own::{MAX_PUBLICATIONS, Own};
use pace::Pace;
use sealing::{OwnSealing, Unsealing};
use sync::Sync;

pub use gate::{Gate, RoomGate};
pub use publication::{MAX_MESSAGE, Publication, Status};
pub use sealing::Sealing;
pub use sync::SyncCounters;
pub use vector::{MAX_BOOTS, MAX_MEMBERS, StateVector};

/// Version of State Vector Sync, in the names `/<group>/v=3` of Sync Interests.
pub const VERSION: u64 = 3;
/// Lifetime of Sync Interests, which nobody answers.
const SYNC_LIFETIME: Duration = Duration::from_secs(1);
/// State vectors a second whose signatures are checked: three times those of 64 members.
const MAX_VECTORS: usize = 200;
/// Answers kept until they are polled; those beyond are dropped, as their Interests are retransmitted.
const MAX_OUTPUT: usize = 1_024;

/// Configuration of a [`Group`].
#[derive(Clone, Debug)]
pub struct GroupConfig {
    /// Name of the group.
    pub group: Name,
    /// Name of this member.
    pub member: Name,
    /// State that it shows at first.
    pub status: Status,
    /// Keys, if publications are sealed: those that are not are refused. Presence and vectors are open to all.
    pub sealing: Option<Sealing>,
    /// Seed of timers and Nonces.
    pub seed: u64,
}

/// Report of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A member has come or come back, or shows another state.
    Here {
        /// Name of the member.
        member: Name,
        /// Its state.
        status: Status,
    },
    /// A member left, or has not answered for 5 s.
    Gone {
        /// Name of the member.
        member: Name,
        /// Whether it said so.
        has_left: bool,
    },
    /// A message to the group. Of messages from before this member came, those among the newest 16 publications of each other one are reported, the
    /// newest first.
    Message {
        /// Name of the member who wrote it.
        member: Name,
        /// Start of the member, in seconds since 1970, and number of the publication: messages of one member sort by them.
        number: (u64, u64),
        /// The message.
        text: String,
    },
}

/// Why a message is not published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpublished {
    /// It is too long.
    #[error("message has {0} bytes: at most {MAX_MESSAGE} are possible")]
    TooLong(usize),
    /// Others fetch four publications a second.
    #[error("more than {MAX_PUBLICATIONS} messages in a second: wait a second")]
    TooOften,
    /// This member has left.
    #[error("you have left the group")]
    Left,
}

/// Counters of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sync Interests sent.
    pub sent: u64,
    /// Sync Interests dropped: over 200 a second.
    pub too_frequent: u64,
    /// Sync Interests, publications and answers dropped: malformed.
    pub malformed: u64,
    /// Sync Interests, publications and answers dropped: the signature does not count.
    pub forged: u64,
    /// Data dropped: not requested, or received before.
    pub unsolicited: u64,
    /// Publications received and opened.
    pub publications: u64,
    /// Key boxes received.
    pub boxes: u64,
    /// Publications dropped: not sealed, where they are to be, or sealed where they are not.
    pub unsealed: u64,
    /// Sealed publications dropped: from before this member came.
    pub before_joining: u64,
    /// Sealed publications dropped: their publisher has no key for this member.
    pub not_a_reader: u64,
    /// Sealed publications dropped: changed, or sealed with another key.
    pub damaged: u64,
}

/// One member's view of a group.
pub struct Group {
    config: GroupConfig,
    gate: Box<dyn Gate>,
    own: Own,
    vectors: Pace,
    sync: Sync,
    members: BTreeMap<Name, Member>,
    nonces: Random,
    counters: Counters,
    outputs: VecDeque<Output<Event>>,
}

impl core::fmt::Debug for Group {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Group")
            .field("config", &self.config)
            .field("members", &self.members.len())
            .finish_non_exhaustive()
    }
}

impl Group {
    /// Joins a group. A label of more than 64 octets is cut.
    pub fn new(config: GroupConfig, gate: Box<dyn Gate>, signer: Box<dyn Signer + Send>) -> Self {
        let shown = (prefix(&config.group, &config.member), config.status.clone());
        let seed = config.sealing.as_ref().map(|it| it.seed);
        Self {
            own: Own::new(shown, signer, seed),
            sync: Sync::new(config.seed),
            nonces: Random::from_seed(config.seed ^ 1),
            gate,
            vectors: Pace::new(MAX_VECTORS),
            members: BTreeMap::new(),
            counters: Counters::default(),
            outputs: VecDeque::new(),
            config,
        }
    }

    /// Returns the prefixes whose Interests are to reach this application: that of Sync Interests, which all members register, and its own.
    pub fn prefixes(config: &GroupConfig) -> [Name; 2] {
        let sync = config.group.builder().version(VERSION).finish();
        [sync, prefix(&config.group, &config.member)]
    }

    fn sync_name(&self) -> Name {
        self.config.group.builder().version(VERSION).finish()
    }

    /// Judges by another gate from now on, as who belongs to the group has changed.
    pub fn set_gate(&mut self, gate: Box<dyn Gate>) {
        self.gate = gate;
        if let Some(sealing) = &mut self.own.sealing {
            sealing.renew_readers();
        }
    }

    /// Shows another state. It is published as soon as the pace of four publications a second allows.
    pub fn set_status(&mut self, status: Status) {
        self.own.set_status(status);
    }

    /// Raises the hand of this member, or lowers it.
    pub fn raise_or_lower_hand(&mut self) {
        let mut status = self.own.status().clone();
        status.has_hand_up = !status.has_hand_up;
        self.set_status(status);
    }

    /// Publishes a message.
    ///
    /// # Errors
    /// If it is too long or too soon, or this member has left.
    pub fn send(&mut self, now: Now, text: &str) -> Result<(), Unpublished> {
        if self.own.has_left() {
            return Err(Unpublished::Left);
        }
        if text.len() > MAX_MESSAGE {
            return Err(Unpublished::TooLong(text.len()));
        }
        if !self.own.take_turn(now.monotonic) {
            return Err(Unpublished::TooOften);
        }
        self.publish(now, Some(text.to_owned()));
        Ok(())
    }

    /// Leaves the group. The application is to run for another second, so that others fetch the publication that says so.
    pub fn leave(&mut self, now: Now) {
        if !self.own.has_left() {
            self.own.leave();
            self.publish(now, None);
        }
    }

    /// Records that something that `member` signed was received elsewhere, such as its sound: it is here, and need not be asked.
    pub fn on_alive(&mut self, now: Instant, member: &Name) {
        if let Some(member) = self.members.get_mut(member) {
            member.on_alive(now);
        }
    }

    /// Returns the members who are here, this one not counted.
    pub fn here(&self) -> impl Iterator<Item = &Name> {
        let all = self.members.iter();
        all.filter_map(|(name, member)| member.is_here().then_some(name))
    }

    /// Returns the state vector.
    pub const fn vector(&self) -> &StateVector {
        self.sync.vector()
    }

    /// Returns what was counted.
    pub const fn counters(&self) -> (Counters, SyncCounters) {
        (self.counters, self.sync.counters)
    }

    fn publish(&mut self, now: Now, text: Option<String>) {
        let (boot, number) = self.own.publish(now, text);
        let own = (&self.config.member, boot);
        self.sync.publish(now.monotonic, own, number);
    }

    fn handle_interest(&mut self, now: Now, interest: &Interest, pit_token: Option<Bytes>) {
        if self.sync_name().is_prefix_of(interest.name()) {
            self.handle_sync(now, interest);
            return;
        }
        let is_own = self.own.prefix().is_prefix_of(interest.name());
        if !is_own || self.outputs.len() >= MAX_OUTPUT {
            return;
        }
        let at = now.monotonic;
        let sealing = self.own.sealing.as_mut();
        let of_box = sealing.and_then(|it| it.handle_interest(at, interest, &pit_token));
        if let Some(frame) = of_box {
            self.outputs.extend(frame.map(Output::Send));
            return;
        }
        let frame = match self.own.data(now, interest) {
            Some(data) => face::answer(data.wire().clone(), pit_token),
            None => face::refusal(interest, pit_token, NackReason::None),
        };
        self.outputs.push_back(Output::Send(frame));
    }

    /// Takes a state vector.
    fn handle_sync(&mut self, now: Now, interest: &Interest) {
        if !self.vectors.take(now.monotonic) {
            self.counters.too_frequent += 1;
            return;
        }
        let data = interest.parameters().and_then(|it| first_data(&it));
        let data = data.filter(|data| data.name().parent() == self.config.group);
        let vector = data.as_ref().and_then(Data::content);
        let vector = vector.and_then(|it| StateVector::decode(&it).ok());
        let (Some(data), Some(vector)) = (data, vector) else {
            self.counters.malformed += 1;
            return;
        };
        if !self.gate.accepts(now, &data) {
            self.counters.forged += 1;
            return;
        }
        let (own, gate) = (&self.config.member, &self.gate);
        let wall = now.wall.as_micros() / 1_000_000;
        let is_member = |name: &Name| name == own || gate.is_member(name);
        let times = (now.monotonic, wall);
        for (member, boot, number) in self.sync.handle_vector(times, &vector, is_member) {
            if member != self.config.member {
                let prefix = prefix(&self.config.group, &member);
                let known = self.members.entry(member);
                let known = known.or_insert_with(|| {
                    let keys = self.config.sealing.as_ref().map(|it| it.own.clone());
                    let unsealing = keys.map(|own| Unsealing::new(prefix, own));
                    Member::new(now.monotonic, unsealing)
                });
                known.on_claim(boot, number);
            } else {
                self.own.on_claim(boot, number);
            }
        }
        let vector = self.sync.vector();
        let outputs = &mut self.outputs;
        self.members.retain(|name, member| {
            let is_kept = vector.has_member(name);
            if !is_kept && member.is_here() {
                let change = Change::Gone { has_left: false };
                outputs.push_back(report(name.clone(), change));
            }
            is_kept
        });
    }

    /// Takes Data of another member.
    fn handle_data(&mut self, now: Now, data: &Data) {
        let group = &self.config.group;
        let is_of = |member: &&Name| prefix(group, member).is_prefix_of(data.name());
        let Some(member) = self.members.keys().find(is_of).cloned() else {
            self.counters.unsolicited += 1;
            return;
        };
        let prefix = prefix(group, &member);
        let next = data.name().get(prefix.len());
        if next == Some(Component::keyword(METADATA)) {
            self.handle_answer(now, (&member, &prefix), data);
        } else if let Some(place) = parse_box_name(&prefix, data.name()) {
            self.handle_box(now, (&member, place), data);
        } else {
            self.handle_publication(now, (&member, &prefix), data);
        }
    }

    /// Takes the answer of a member that it is here.
    fn handle_answer(&mut self, now: Now, (member, prefix): (&Name, &Name), data: &Data) {
        let version = data.name().get(prefix.len() + 1);
        let version = version.and_then(|it| it.number_of(Component::VERSION));
        let newest = data.content().and_then(|it| Name::decode(&it).ok());
        let newest = newest.and_then(|it| numbers(prefix, &it));
        let state = self.members.get_mut(member);
        let (Some(version), Some(newest), Some(state)) = (version, newest, state) else {
            self.counters.malformed += 1;
            return;
        };
        if !self.gate.accepts(now, data) {
            self.counters.forged += 1;
        } else if !state.on_answer(now.monotonic, newest, version) {
            self.counters.unsolicited += 1;
        }
    }

    /// Takes a packet of a key box, and opens the publications that waited for it.
    fn handle_box(&mut self, now: Now, (member, place): (&Name, (Seal, u64)), data: &Data) {
        let state = self.members.get_mut(member);
        let unsealing = state.and_then(|it| it.unsealing.as_mut());
        let Some(unsealing) = unsealing.filter(|it| it.awaits(place)) else {
            self.counters.unsolicited += 1;
            return;
        };
        if !self.gate.accepts(now, data) {
            self.counters.forged += 1;
            unsealing.on_forged();
            return;
        }
        let entries = data.content().and_then(|it| decode_entries(&it).ok());
        let Some(entries) = entries else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.boxes += 1;
        let last = data.final_block().and_then(Name::last);
        let last = last.and_then(|it| it.number_of(Component::SEGMENT));
        for (place, sealed) in unsealing.on_box(&entries, last.unwrap_or(place.1)) {
            self.open(member, place, sealed);
        }
    }

    /// Takes a publication that was requested.
    fn handle_publication(&mut self, now: Now, (member, prefix): (&Name, &Name), data: &Data) {
        let place = numbers(prefix, data.name());
        let awaited = place.zip(self.members.get_mut(member));
        let awaited = awaited.filter(|((boot, number), state)| state.awaits(*boot, *number));
        let Some((place, state)) = awaited else {
            self.counters.unsolicited += 1;
            return;
        };
        if !self.gate.accepts(now, data) {
            self.counters.forged += 1;
            state.on_forged(place.1);
            return;
        }
        state.on_received(place.1);
        let content = data.content().unwrap_or_default();
        match (Publication::sealed(&content), &self.config.sealing) {
            (None, None) => self.read(member, place, &content),
            (Some(sealed), Some(_)) => self.open(member, place, sealed),
            (None, Some(_)) | (Some(_), None) => self.counters.unsealed += 1,
        }
    }

    /// Opens a sealed publication, unless its key box is missing.
    fn open(&mut self, member: &Name, place: (u64, u64), sealed: (Seal, Bytes)) {
        let state = self.members.get_mut(member);
        let Some(unsealing) = state.and_then(|it| it.unsealing.as_mut()) else {
            return;
        };
        match unsealing.open(place, sealed) {
            Ok(content) => self.read(member, place, &content),
            // It waits for the box.
            Err(Unopened::MissingBox(_)) => {}
            Err(Unopened::NotAReader) => self.counters.not_a_reader += 1,
            Err(Unopened::BeforeJoining) => self.counters.before_joining += 1,
            Err(Unopened::Damaged) => self.counters.damaged += 1,
        }
    }

    /// Takes the content of a publication.
    fn read(&mut self, member: &Name, place: (u64, u64), content: &Bytes) {
        let Ok(publication) = Publication::decode(content) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.publications += 1;
        if let Some(text) = publication.text {
            let (member, number) = (member.clone(), place);
            let event = Event::Message {
                member,
                number,
                text,
            };
            self.outputs.push_back(Output::Event(event));
        }
        let shown = (publication.status, publication.has_left);
        let state = self.members.get_mut(member);
        let change = state.and_then(|it| it.on_state(place, shown));
        let changes = change.map(|it| report(member.clone(), it));
        self.outputs.extend(changes);
    }

    /// Seals for those who may read now, and answers those who waited for it.
    fn settle_sealing(&mut self, now: Now) {
        let Some(sealing) = &mut self.own.sealing else {
            return;
        };
        let has_more = sealing.take_readers(now.monotonic, || self.gate.readers(now));
        let answers = sealing.settle(now.monotonic, &*self.own.signer);
        self.outputs.extend(answers.into_iter().map(Output::Send));
        if has_more {
            self.own.show_again();
        }
    }

    /// Does what is due.
    fn settle(&mut self, now: Now) {
        let at = now.monotonic;
        self.settle_sealing(now);
        if self.own.take_news(at) {
            self.publish(now, None);
        }
        if self.sync.handle_timeout(at) {
            self.send_vector();
        }
        if self.own.has_left() {
            return;
        }
        let mut interests = Vec::new();
        for (name, member) in &mut self.members {
            let change = member.poll_change(at);
            self.outputs
                .extend(change.map(|it| report(name.clone(), it)));
            let prefix = || prefix(&self.config.group, name).builder();
            if member.poll_probe(at) {
                let interest = Interest::builder(prefix().keyword(METADATA).finish());
                let interest = interest.can_be_prefix().must_be_fresh();
                interests.push(interest.lifetime(PROBE_INTERVAL));
            }
            while let Some(Request { of, must_be_fresh }) = member.poll_request(at) {
                let name = match of {
                    Fetched::Publication { boot, number } => {
                        prefix().timestamp(boot).sequence(number)
                    }
                    Fetched::KeyBox { seal, segment } => {
                        let prefix = prefix().finish();
                        box_name(&prefix, &seal).builder().segment(segment)
                    }
                };
                let interest = Interest::builder(name.finish()).lifetime(FETCH_WAIT);
                interests.push(match must_be_fresh {
                    true => interest.must_be_fresh(),
                    false => interest,
                });
            }
        }
        for interest in interests {
            let interest = interest.build(Nonce::draw(&mut self.nonces));
            let frame = face::request(&interest, None);
            self.outputs.push_back(Output::Send(frame));
        }
    }

    fn send_vector(&mut self) {
        let nonce = Nonce::draw(&mut self.nonces);
        let signing = (&*self.own.signer as &dyn Signer, nonce);
        let interest = sync_interest(self.sync_name(), self.sync.vector(), signing);
        let frame = face::request(&interest, None);
        self.counters.sent += 1;
        self.outputs.push_back(Output::Send(frame));
    }
}

/// The Sync Interest `name`, without its digest, with a vector.
fn sync_interest(
    name: Name,
    vector: &StateVector,
    (signer, nonce): (&dyn Signer, Nonce),
) -> Interest {
    let data = Data::builder(name.clone()).content(vector.encode());
    Interest::builder(name)
        .lifetime(SYNC_LIFETIME)
        .parameters(data.sign(signer).wire().clone())
        .build(nonce)
}

/// The Data packet that parameters begin with.
fn first_data(parameters: &Bytes) -> Option<Data> {
    let element = Reader::new(parameters).element("Data").ok()??;
    Data::decode(parameters.slice(element.whole())).ok()
}

/// Start and number in the name of a publication under `prefix`.
fn numbers(prefix: &Name, name: &Name) -> Option<(u64, u64)> {
    let length = prefix.len();
    if !prefix.is_prefix_of(name) || name.len() != length + 2 {
        return None;
    }
    let boot = name.get(length)?.number_of(Component::TIMESTAMP)?;
    let number = name.get(length + 1)?.number_of(Component::SEQUENCE)?;
    Some((boot, number))
}

fn report(member: Name, change: Change) -> Output<Event> {
    Output::Event(match change {
        Change::Here(status) => Event::Here { member, status },
        Change::Gone { has_left } => Event::Gone { member, has_left },
    })
}

impl Application for Group {
    type Event = Event;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        match face::open(frame) {
            Ok(Some((Packet::Interest(interest), link))) if link.nack.is_none() => {
                self.handle_interest(now, &interest, link.pit_token);
            }
            Ok(Some((Packet::Data(data), _))) => self.handle_data(now, &data),
            Ok(_) => {}
            Err(_) => self.counters.malformed += 1,
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.settle(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let members = self.members.values().filter_map(Member::poll_timeout);
        let members = members.min().filter(|_| !self.own.has_left());
        let sync = Some(self.sync.poll_timeout());
        let sealing = self.own.sealing.as_ref().map(OwnSealing::poll_timeout);
        let all = [self.own.poll_timeout(), members, sync, sealing];
        all.into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output<Event>> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
mod tests;
