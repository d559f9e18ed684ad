//! Serves what members and readers need of a root: schema, roster and certificates, and certifies newcomers.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::lp::NackReason;
use namecast_packet::{Certificate, Data, Interest, LpPacket, Name, Packet, Signer};
use namecast_stream::names::KEY;
use namecast_units::{Instant, Timestamp};

use super::bulletin::Part;
use super::door::{Door, JoinCounters, Step};
use super::join::{InvitationSecret, Join, Welcome, join_name};
use crate::object::{Server, ServerConfig, ServerCounters, ServerError};
use crate::trust::MAX_ENTRIES;
use crate::{Application, Now, Output, face};

/// Packets kept until they are polled; those beyond are dropped, as their Interests are retransmitted.
const MAX_OUTPUT: usize = 1_024;

/// Report of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// Somebody with a link requests a certificate: the tag and the signature are right. Answer with [`Host::welcome`] or [`Host::turn_away`].
    Join(Box<Join>),
}

/// Serves schema, roster and certificates of a root, as the holder of the anchor's key.
pub struct Host {
    root: Name,
    server: Server,
    /// Certificates of members, and the anchor's.
    certificates: BTreeMap<Name, Data>,
    door: Door,
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
            outputs: VecDeque::new(),
        })
    }

    /// Publishes this version of schema or roster, unless it or a newer one is published. Returns its name.
    ///
    /// # Errors
    /// If the root is too long for a packet.
    pub fn publish(
        &mut self,
        part: Part,
        version: u64,
        content: Bytes,
    ) -> Result<Name, ServerError> {
        // The server takes the time for the version, and a newer number if that one is taken.
        let version = Timestamp::from_micros(version);
        self.server.put(part.name(&self.root), content, version)
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
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let all = [self.server.poll_timeout(), self.door.poll_timeout()];
        all.into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output<HostEvent>> {
        let output = self.outputs.pop_front();
        output.or_else(|| self.server.poll_output().map(Output::Send))
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
