//! Serves what members and readers need of a root: schema, roster and certificates, and certifies newcomers.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Certificate, Component, Data, Interest, LpPacket, Name, Packet, Signer};
use namecast_stream::names::KEY;
use namecast_units::{Instant, Timestamp};

use super::bulletin::Part;
use super::door::{Door, JoinCounters, Step};
use super::join::{InvitationSecret, Join, Welcome, join_name};
use super::leave::{Held, LeaveCounters, Leaving, Verdict, leave_name};
use crate::object::{Server, ServerConfig, ServerCounters, ServerError};
use crate::trust::{MAX_ENTRIES, Roster};
use crate::{Application, Now, Output, face};

/// Packets kept until they are polled; those beyond are dropped, as their Interests are retransmitted.
const MAX_OUTPUT: usize = 1_024;
/// Interests that wait for a roster, and how long. Those for the next roster have one name, so a node in front of the host makes one of them.
const MAX_HELD: usize = 256;
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Report of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// Somebody with a link requests a certificate: the tag and the signature are right. Answer with [`Host::welcome`] or [`Host::turn_away`].
    Join(Box<Join>),
    /// The member with the certificate of this name leaves: the signature is right. Publish a roster without it, which answers the member.
    Leave(Name),
}

/// Serves schema, roster and certificates of a root, as the holder of the anchor's key.
pub struct Host {
    root: Name,
    server: Server,
    /// Certificates of members, and the anchor's.
    certificates: BTreeMap<Name, Data>,
    door: Door,
    leaving: Leaving,
    /// Version of the roster that is published, and certificates of its members.
    roster: (u64, BTreeSet<Name>),
    held: Vec<Held>,
    outputs: VecDeque<Output<HostEvent>>,
}

impl core::fmt::Debug for Host {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Host")
            .field("root", &self.root)
            .field("certificates", &self.certificates.len())
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Serves `root`, whose anchor is the key of `signer` and `certificate`.
    ///
    /// # Errors
    /// If `certificate` is not the signer's.
    pub fn new(
        root: Name,
        signer: Box<dyn Signer + Send>,
        certificate: Certificate,
    ) -> Result<Self, ServerError> {
        let anchor = certificate.data().clone();
        let digest = certificate.public_key().map(|key| key.digest());
        let digest = digest.map_err(|_| ServerError::Certificate(certificate.name().clone()))?;
        let server = Server::new(ServerConfig::new(root.clone()), signer, certificate)?;
        Ok(Self {
            door: Door::new(root.clone(), digest),
            root,
            server,
            certificates: [(anchor.name().clone(), anchor)].into(),
            leaving: Leaving::default(),
            roster: (0, BTreeSet::new()),
            held: Vec::new(),
            outputs: VecDeque::new(),
        })
    }

    /// Publishes this version of schema or roster, unless it or a newer one is published. Answers Interests that wait for the roster, and members
    /// who requested to leave and are not in it. Returns its name.
    ///
    /// # Errors
    /// If the root is too long for a packet.
    pub fn publish(
        &mut self,
        part: Part,
        version: u64,
        content: Bytes,
    ) -> Result<Name, ServerError> {
        let roster = Roster::decode(&content);
        // The server takes the time for the version, and a newer number if that one is taken.
        let version = Timestamp::from_micros(version);
        let name = self.server.put(part.name(&self.root), content, version)?;
        if part == Part::Roster {
            let last = name.last();
            let version = last.and_then(|last| last.number_of(Component::VERSION));
            let members = roster.map_or_else(|_| Vec::new(), |roster| roster.members);
            let members = members.into_iter().map(|it| it.certificate);
            self.roster = (version.unwrap_or_default(), members.collect());
            self.answer_held();
        }
        Ok(name)
    }

    /// Answers what waited for the roster that is published now.
    fn answer_held(&mut self) {
        let members = &self.roster.1;
        let is_due = |it: &mut Held| !it.leaver.as_ref().is_some_and(|it| members.contains(it));
        let due: Vec<_> = self.held.extract_if(.., is_due).collect();
        for held in due {
            match held.leaver {
                Some(_) => self.answer_leave(&held.interest, held.pit_token),
                // A version that was passed over is refused: its reader looks for the newest.
                None => self.server.answer(&held.interest, held.pit_token),
            }
        }
    }

    /// Serves a certificate, for members who are not there themselves. Returns whether there was room.
    pub fn add_certificate(&mut self, certificate: &Certificate) -> bool {
        let name = certificate.name();
        let has_room = self.certificates.len() < MAX_ENTRIES;
        let is_kept = has_room || self.certificates.contains_key(name);
        if is_kept {
            let data = certificate.data().clone();
            self.certificates.insert(name.detached(), data);
        }
        is_kept
    }

    /// Sets the invitations whose requests to join are reported; all others are refused. Requests that were answered are reported again if they come
    /// again.
    pub fn set_invitations(&mut self, secrets: &[InvitationSecret]) {
        self.door.set_invitations(secrets);
    }

    /// Answers the request to join of the key with this digest, and each later one of that key.
    pub fn welcome(&mut self, digest: [u8; 32], welcome: &Welcome) {
        let content = welcome.encode();
        for (interest, pit_token) in self.door.decide(digest, Some(content.clone())) {
            self.answer_join(&interest, content.clone(), pit_token);
        }
    }

    /// Refuses the request to join of the key with this digest.
    pub fn turn_away(&mut self, digest: [u8; 32]) {
        for (interest, pit_token) in self.door.decide(digest, None) {
            self.push(face::refusal(&interest, pit_token, NackReason::None));
        }
    }

    /// Returns the digests of the keys whose requests to join wait to be decided.
    pub fn waiting(&self) -> impl Iterator<Item = &[u8; 32]> {
        self.door.pending()
    }

    /// Returns the counters of requests to join.
    pub const fn join_counters(&self) -> &JoinCounters {
        &self.door.counters
    }

    fn answer_join(&mut self, interest: &Interest, content: Bytes, pit_token: Option<Bytes>) {
        let data = Door::answer(interest, content).sign(self.server.signer());
        self.push(face::answer(data.wire().clone(), pit_token));
    }

    /// Takes a request to join.
    fn on_join(&mut self, now: Instant, interest: &Interest, link: LpPacket) {
        let LpPacket {
            incoming_face,
            pit_token,
            ..
        } = link;
        let arrival = (incoming_face, pit_token.clone());
        match self.door.handle_interest(now, interest, arrival) {
            Step::Answer(content) => self.answer_join(interest, content, pit_token),
            Step::Refuse => self.push(face::refusal(interest, pit_token, NackReason::None)),
            Step::Full => self.push(face::refusal(interest, pit_token, NackReason::Congestion)),
            Step::Wait(Some(join)) => {
                let event = Output::Event(HostEvent::Join(join));
                self.outputs.push_back(event);
            }
            Step::Wait(None) => {}
        }
    }

    /// Returns the counters of requests to leave.
    pub const fn leave_counters(&self) -> &LeaveCounters {
        &self.leaving.counters
    }

    /// Takes a request to leave.
    fn on_leave(&mut self, now: Instant, interest: Interest, pit_token: Option<Bytes>) {
        let reason = match self.leaving.check(now, &interest, &self.certificates) {
            Verdict::Leaves(name) if self.roster.1.contains(&name) => {
                let held = Held {
                    expires_at: now + interest.lifetime().min(MAX_WAIT),
                    interest: interest.clone(),
                    pit_token: pit_token.clone(),
                    leaver: Some(name.clone()),
                };
                // One of each certificate waits: the newest.
                let before = self.held.len();
                self.held.retain(|it| it.leaver.as_ref() != Some(&name));
                let is_known = self.held.len() < before;
                if self.hold(now, held) {
                    self.leaving.counters.held += 1;
                    if !is_known {
                        let event = Output::Event(HostEvent::Leave(name));
                        self.outputs.push_back(event);
                    }
                    return;
                }
                self.leaving.counters.dropped_full += 1;
                NackReason::Congestion
            }
            Verdict::Leaves(name) if self.has_replaced(&name) => {
                self.leaving.counters.replaced += 1;
                NackReason::None
            }
            Verdict::Leaves(_) => {
                self.leaving.counters.repeated += 1;
                self.answer_leave(&interest, pit_token);
                return;
            }
            Verdict::Refused => NackReason::None,
            Verdict::TooOften => NackReason::Congestion,
        };
        self.push(face::refusal(&interest, pit_token, reason));
    }

    /// Returns whether a member has another certificate under the name of this one.
    fn has_replaced(&self, certificate: &Name) -> bool {
        let identity = certificate.prefix(certificate.len().saturating_sub(4));
        let keys = identity.builder().generic(KEY).finish();
        let mut others = self.roster.1.range::<Name, _>(&keys..);
        others.next().is_some_and(|other| keys.is_prefix_of(other))
    }

    fn answer_leave(&mut self, interest: &Interest, pit_token: Option<Bytes>) {
        let data = Data::builder(interest.name().detached()).sign(self.server.signer());
        self.push(face::answer(data.wire().clone(), pit_token));
    }

    /// Returns whether `interest` is for the first segment of the roster after the one that is published.
    fn is_next_roster(&self, interest: &Interest) -> bool {
        let next = Part::Roster.name(&self.root).builder();
        let next = next.version(self.roster.0.saturating_add(1));
        self.roster.0 > 0 && *interest.name() == next.segment(0).finish()
    }

    /// Lets an Interest wait. Returns whether there is room.
    fn hold(&mut self, now: Instant, held: Held) -> bool {
        self.held.retain(|it| {
            let is_same =
                it.interest.name() == held.interest.name() && it.pit_token == held.pit_token;
            it.expires_at > now && !is_same
        });
        let has_room = self.held.len() < MAX_HELD;
        if has_room {
            self.held.push(held);
        }
        has_room
    }

    /// Returns what became of Interests for schema and roster.
    pub const fn counters(&self) -> &ServerCounters {
        self.server.counters()
    }

    /// The certificate that answers `interest`.
    fn certificate(&self, interest: &Interest) -> Option<&Data> {
        let name = interest.name();
        if !name.components().any(|it| it.value == KEY.as_bytes()) {
            return None;
        }
        let mut following = self.certificates.range::<Name, _>(name..);
        let (_, data) = following.next()?;
        interest.matches(data).then_some(data)
    }

    /// Returns whether `name` is of schema or roster. Names of members are theirs to answer for, and to refuse.
    fn is_own(&self, name: &Name) -> bool {
        Part::ALL
            .iter()
            .any(|part| part.name(&self.root).is_prefix_of(name))
    }

    fn push(&mut self, packet: Bytes) {
        if self.outputs.len() < MAX_OUTPUT {
            self.outputs.push_back(Output::Send(packet));
        }
    }
}

impl Application for Host {
    type Event = HostEvent;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        let Ok(Some((Packet::Interest(interest), link))) = face::open(frame.clone()) else {
            return;
        };
        if link.nack.is_some() {
            return;
        }
        if let Some(data) = self.certificate(&interest) {
            let answer = face::answer(data.wire().clone(), link.pit_token);
            self.push(answer);
            return;
        }
        if join_name(&self.root).is_prefix_of(interest.name()) {
            self.on_join(now.monotonic, &interest, link);
            return;
        }
        if leave_name(&self.root).is_prefix_of(interest.name()) {
            self.on_leave(now.monotonic, interest, link.pit_token);
            return;
        }
        if self.is_next_roster(&interest) {
            let held = Held {
                expires_at: now.monotonic + interest.lifetime().min(MAX_WAIT),
                interest,
                pit_token: link.pit_token,
                leaver: None,
            };
            // Without room, its reader requests the newest roster within seconds.
            self.hold(now.monotonic, held);
            return;
        }
        if self.is_own(interest.name()) {
            self.server.handle_packet(now.monotonic, frame);
        }
        while let Some(requested) = self.server.poll_event() {
            self.server.refuse(&requested.0);
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        self.server.handle_timeout(now.monotonic);
        self.door.handle_timeout(now.monotonic);
        self.held.retain(|it| it.expires_at > now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let all = [self.server.poll_timeout(), self.door.poll_timeout()];
        let held = self.held.iter().map(|it| it.expires_at);
        all.into_iter().flatten().chain(held).min()
    }

    fn poll_output(&mut self) -> Option<Output<HostEvent>> {
        let output = self.outputs.pop_front();
        output.or_else(|| self.server.poll_output().map(Output::Send))
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
