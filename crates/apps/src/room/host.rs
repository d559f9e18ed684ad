//! Serves what members and readers need of a root: schema, roster and certificates.

use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::{Certificate, Data, Interest, Name, Packet, Signer};
use namecast_stream::names::KEY;
use namecast_units::{Instant, Timestamp};

use super::bulletin::Part;
use crate::object::{Server, ServerConfig, ServerCounters, ServerError};
use crate::trust::MAX_ENTRIES;
use crate::{Application, Now, Output, face};

/// Packets kept until they are polled; those beyond are dropped, as their Interests are retransmitted.
const MAX_OUTPUT: usize = 1_024;

/// Serves schema, roster and certificates of a root, as the holder of the anchor's key.
pub struct Host {
    root: Name,
    server: Server,
    /// Certificates of members, and the anchor's.
    certificates: BTreeMap<Name, Data>,
    outputs: VecDeque<Bytes>,
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
        let server = Server::new(ServerConfig::new(root.clone()), signer, certificate)?;
        Ok(Self {
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
            self.outputs.push_back(packet);
        }
    }
}

impl Application for Host {
    type Event = Infallible;

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
        if self.is_own(interest.name()) {
            self.server.handle_packet(now.monotonic, frame);
        }
        while let Some(requested) = self.server.poll_event() {
            self.server.refuse(&requested.0);
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        self.server.handle_timeout(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        let packet = self.outputs.pop_front();
        packet
            .or_else(|| self.server.poll_output())
            .map(Output::Send)
    }
}
