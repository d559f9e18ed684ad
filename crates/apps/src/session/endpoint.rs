//! Who calls and is called: one's own root, the calls under it, and nothing of what is said in them.

mod call;
mod called;
mod calling;
mod events;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::Signer as PacketSigner;
use namecast_packet::{Certificate, Component, Data, Interest, LpPacket, Name, Packet};
use namecast_units::{Duration, Instant, Random};
use x25519_dalek::StaticSecret;

use super::config::EndpointConfig;
use super::handshake::{self, Admission, Own, Peer, Refused};
use super::keys::Secrets;
use super::message::Kind;
use super::names::{self, CallId, Suffix};
use super::stream::{Ends, Session, SessionStats};
use crate::discovery::Trust;
use crate::{Application, Now, Output, face};
use call::{Call, Stage};
use calling::Calling;
pub use events::{End, EndpointCounters, Event, Full, NoCall};

/// Lifetime of the Interests of a set-up.
const SETUP_LIFETIME: Duration = Duration::from_secs(2);
/// How long a session that was closed still answers, so that the other side has the last message.
const LINGER: Duration = Duration::from_secs(4);
/// Longest reason for closing that is told.
const MAX_REASON: usize = 200;

/// One side of any number of calls.
///
/// After each call take everything from [`poll_output`](Application::poll_output), and call
/// [`handle_timeout`](Application::handle_timeout) at [`poll_timeout`](Application::poll_timeout).
pub struct Endpoint {
    config: EndpointConfig,
    own: Own,
    secrets: Secrets,
    random: Random,
    calling: Option<Calling>,
    calls: BTreeMap<CallId, Call>,
    /// Set-ups that were answered, the newest last.
    remembered: VecDeque<CallId>,
    /// Second in which signatures were checked last, and how many.
    checks: (u64, u32),
    /// When a stranger was reported last.
    refused_at: Option<Instant>,
    frames: VecDeque<Bytes>,
    events: VecDeque<Event>,
    counters: EndpointCounters,
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint")
            .field("root", &self.own.root)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint that signs set-ups with `signer`, whose certificate is `certificate`.
    pub fn new(
        mut config: EndpointConfig,
        signer: Box<dyn PacketSigner + Send>,
        certificate: &Certificate,
    ) -> Self {
        let secret = core::mem::take(&mut config.secret);
        Self {
            own: Own {
                root: config.root.clone(),
                signer,
                certificate: certificate.data().clone(),
            },
            secrets: Secrets::new(secret),
            random: Random::from_seed(config.seed),
            calling: None,
            calls: BTreeMap::new(),
            remembered: VecDeque::new(),
            checks: (0, 0),
            refused_at: None,
            frames: VecDeque::new(),
            events: VecDeque::new(),
            counters: EndpointCounters::default(),
            config,
        }
    }

    /// Calls whoever is at `callee`, if its signature counts by `trust`; in place of the call before, if that was not answered.
    pub fn call(&mut self, now: Now, callee: Name, trust: Trust) {
        let signed = self.sign_call(&callee);
        let until = now.monotonic + self.config.call_timeout;
        self.calling = Some(Calling::new(now.monotonic, signed, (callee, trust), until));
        self.handle_timeout(now);
    }

    fn sign_call(&mut self, callee: &Name) -> (Interest, StaticSecret) {
        let secret = self.secrets.draw();
        let nonce = self.random.next_u64().to_be_bytes();
        let interest = handshake::call(&self.own, callee, &secret, SETUP_LIFETIME, nonce);
        (interest, secret)
    }

    /// Lets only those call from now on whose public keys have these SHA-256 digests; calls that are established stay.
    pub fn authorise(&mut self, keys: Vec<[u8; 32]>) {
        self.config.authorised = Some(keys);
    }

    /// Takes the call.
    pub fn accept(&mut self, now: Now, call: CallId) {
        self.send_kind(now, call, Kind::Accept, Bytes::new());
    }

    /// Sends a message.
    ///
    /// # Errors
    /// If there is no room, or no such call.
    pub fn send(&mut self, now: Now, call: CallId, message: Bytes) -> Result<(), Full> {
        let Some(found) = self.open_call(call) else {
            return Err(Full(message));
        };
        let sent = found.session.send(now.monotonic, Kind::Message, message);
        sent.map_err(Full)
    }

    /// Ends the call, and tells the other side why.
    pub fn close(&mut self, now: Now, call: CallId, why: &str) {
        let why: String = why.chars().take(MAX_REASON).collect();
        self.send_kind(now, call, Kind::Close, why.into());
        if let Some(found) = self.open_call(call) {
            found.stage = Stage::Closing {
                until: now.monotonic + LINGER,
                end: Some(End::Own),
            };
        }
    }

    fn send_kind(&mut self, now: Now, call: CallId, kind: Kind, body: Bytes) {
        if let Some(found) = self.open_call(call) {
            // Only messages need room.
            let _ = found.session.send(now.monotonic, kind, body);
        }
    }

    fn open_call(&mut self, call: CallId) -> Option<&mut Call> {
        let found = self.calls.get_mut(&call)?;
        matches!(found.stage, Stage::Open { .. }).then_some(found)
    }

    /// Has [`Event::Room`] reported as soon as half of the room for messages is free.
    pub fn wake_when_room(&mut self, call: CallId) {
        if let Some(found) = self.open_call(call) {
            found.session.wake_when_room();
        }
    }

    /// Messages that can be sent at once in `call`.
    pub fn room(&self, call: CallId) -> usize {
        self.calls.get(&call).map_or(0, |call| call.session.room())
    }

    /// What was measured in `call`.
    pub fn stats(&self, call: CallId) -> Option<SessionStats> {
        Some(self.calls.get(&call)?.session.stats())
    }

    /// What it counted.
    pub const fn counters(&self) -> &EndpointCounters {
        &self.counters
    }

    fn handle_interest(&mut self, now: Now, interest: Interest, link: LpPacket) {
        match names::suffix(&self.own.root, interest.name()) {
            Some(Suffix::Packet(id, number)) => {
                let Some(call) = self.calls.get_mut(&id) else {
                    self.counters.unknown += 1;
                    return;
                };
                let asked = (link.pit_token, interest.lifetime());
                call.session.handle_interest(now.monotonic, number, asked);
            }
            Some(Suffix::Confirmation(id)) => {
                if let Some(call) = self.calls.get(&id)
                    && let Stage::Open {
                        confirmation: Some(data),
                    } = &call.stage
                {
                    let frame = face::answer(data.wire().clone(), link.pit_token);
                    self.frames.push_back(frame);
                } else {
                    self.counters.unknown += 1;
                }
            }
            None if self.config.answers => self.handle_call(now, interest, link.pit_token),
            None => self.counters.unknown += 1,
        }
    }

    fn handle_data(&mut self, now: Now, data: &Data, is_marked: bool) {
        if let Some(calling) = &self.calling
            && calling.is_answer(data)
        {
            self.handle_answer(now, data);
            return;
        }
        let name = data.name();
        let id = name.len().checked_sub(2).and_then(|at| name.get(at));
        let id = id.filter(|id| id.kind == Component::GENERIC);
        let id = id.and_then(|id| id.value.try_into().ok()).map(CallId);
        let Some((id, call)) = id.and_then(|id| Some((id, self.calls.get_mut(&id)?))) else {
            self.counters.unknown += 1;
            return;
        };
        match names::suffix(&call.peer.root, name) {
            Some(Suffix::Packet(_, number)) => {
                (call.session).handle_data(now.monotonic, number, data, is_marked);
            }
            Some(Suffix::Confirmation(_)) => self.handle_confirmation(now, id, data),
            None => self.counters.unknown += 1,
        }
    }

    fn handle_answer(&mut self, now: Now, data: &Data) {
        let Some(mut calling) = self.calling.take() else {
            return;
        };
        let admission = Admission {
            trust: &calling.trust,
            root: None,
            authorised: None,
            wall: now.wall,
        };
        let own = (&calling.interest, &calling.secret);
        let read = handshake::read_answer(&calling.callee, own, data, &admission);
        let id = handshake::call_id(&calling.interest);
        let (id, (peer, keys, key)) = match (id, read) {
            (Some(id), Ok(read)) => (id, read),
            (_, refused) => {
                match refused {
                    Err(Refused::Malformed) => self.counters.malformed += 1,
                    Err(Refused::Untrusted(peer)) => {
                        self.counters.strangers += 1;
                        calling.refused = Some(peer);
                    }
                    _ => self.counters.forged += 1,
                }
                // Anybody may have answered: the right answer may come yet.
                self.calling = Some(calling);
                return;
            }
        };
        let packets = names::packets(&self.own.root, id);
        let confirmation = names::confirmation(&packets);
        let confirmation = handshake::confirm(&self.own, confirmation, &keys);
        let ends = Ends {
            own: (packets, keys.from_caller.clone()),
            other: (names::packets(&peer.root, id), keys.from_callee.clone()),
            was_called: false,
        };
        let seed = self.random.next_u64();
        let mut session = Session::new(now.monotonic, ends, &self.config.session, seed);
        session.open(now.monotonic, calling.rtt(now.monotonic));
        let call = Call {
            peer: peer.clone(),
            key,
            stage: Stage::Open {
                confirmation: Some(confirmation),
            },
            session,
        };
        self.calls.insert(id, call);
        self.establish(id, peer, false);
    }

    fn establish(&mut self, call: CallId, peer: Peer, was_called: bool) {
        self.counters.established += 1;
        self.events.push_back(Event::Established {
            call,
            peer: Box::new(peer),
            was_called,
        });
    }

    fn handle_confirmation(&mut self, now: Now, id: CallId, data: &Data) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        let Stage::HalfOpen(half_open) = &call.stage else {
            self.counters.unknown += 1;
            return;
        };
        if handshake::check_confirmation(data, &call.key, &half_open.keys).is_err() {
            self.counters.forged += 1;
            return;
        }
        let (sent_at, transmissions) = half_open.requested;
        let rtt = (transmissions == 1).then(|| now.monotonic.since(sent_at));
        call.stage = Stage::Open { confirmation: None };
        call.session.open(now.monotonic, rtt);
        let peer = call.peer.clone();
        self.establish(id, peer, true);
    }

    /// Requests what shows the keys of half-open calls, and ends what has lasted too long.
    fn handle_calls(&mut self, now: Now) {
        let mut over = Vec::new();
        for (&id, call) in &mut self.calls {
            call.session.handle_timeout(now.monotonic);
            match &mut call.stage {
                Stage::HalfOpen(it) if it.until <= now.monotonic => {
                    self.counters.unconfirmed += 1;
                    over.push((id, None));
                }
                Stage::HalfOpen(it) => {
                    if it.due() <= now.monotonic {
                        it.requested = (now.monotonic, it.requested.1 + 1);
                        let interest = Interest::builder(it.confirmation.clone());
                        // What a forger has put into caches does not answer.
                        let interest = interest.must_be_fresh().lifetime(SETUP_LIFETIME);
                        let nonce = names::draw_nonce(&mut self.random);
                        self.frames.push_back(interest.build(nonce).wire().clone());
                    }
                }
                Stage::Open { .. } if call.session.silent_at() <= now.monotonic => {
                    over.push((id, Some(End::Silence)));
                }
                Stage::Open { .. } => {}
                Stage::Closing { until, end } => {
                    let is_done = end.is_some() && call.session.is_done();
                    if is_done || *until <= now.monotonic {
                        over.push((id, end.take()));
                    }
                }
            }
        }
        for (id, end) in over {
            self.calls.remove(&id);
            if let Some(end) = end {
                self.events.push_back(Event::Ended(id, end));
            }
        }
    }

    /// Takes what sessions have for the network and for the application.
    fn collect(&mut self, now: Now) {
        for (&id, call) in &mut self.calls {
            while let Some(received) = call.session.poll_message() {
                if !matches!(call.stage, Stage::Open { .. }) {
                    continue;
                }
                match received.kind {
                    Kind::Nothing => {}
                    Kind::Message => self.events.push_back(Event::Message(id, received.body)),
                    Kind::Accept => self.events.push_back(Event::Accepted(id)),
                    Kind::Close => {
                        let why = String::from_utf8_lossy(&received.body);
                        let why = why.chars().take(MAX_REASON).collect();
                        self.events.push_back(Event::Ended(id, End::Other(why)));
                        call.session.acknowledge(now.monotonic);
                        call.stage = Stage::Closing {
                            until: now.monotonic + LINGER,
                            end: None,
                        };
                    }
                }
            }
            if call.session.take_room() {
                self.events.push_back(Event::Room(id));
            }
            while let Some(frame) = call.session.poll_frame() {
                self.frames.push_back(frame);
            }
        }
    }
}

impl Application for Endpoint {
    type Event = Event;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        match face::open(frame) {
            Ok(Some((Packet::Interest(interest), link))) => match link.nack {
                None => self.handle_interest(now, interest, link),
                Some(reason) => {
                    if let Some(calling) = &mut self.calling {
                        calling.on_nack(&interest, reason);
                    }
                }
            },
            Ok(Some((Packet::Data(data), link))) => {
                self.handle_data(now, &data, link.congestion_mark > 0);
            }
            Ok(None) => {}
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if let Some(mut calling) = self.calling.take() {
            if calling.is_old(now.monotonic) {
                calling.renew(now.monotonic, self.sign_call(&calling.callee));
            }
            match calling.handle_timeout(now.monotonic, &mut self.random) {
                Ok(interest) => {
                    self.frames.extend(interest);
                    self.calling = Some(calling);
                }
                Err(why) => self.events.push_back(Event::Failed(why)),
            }
        }
        self.handle_calls(now);
        self.collect(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let calls = self.calls.values().flat_map(|call| {
            let stage = match &call.stage {
                Stage::HalfOpen(it) => it.due().min(it.until),
                Stage::Open { .. } => call.session.silent_at(),
                Stage::Closing { until, .. } => *until,
            };
            call.session.poll_timeout().into_iter().chain([stage])
        });
        let calling = self.calling.as_ref().map(Calling::poll_timeout);
        calls.chain(calling).min()
    }

    fn poll_output(&mut self) -> Option<Output<Event>> {
        if let Some(frame) = self.frames.pop_front() {
            return Some(Output::Send(frame));
        }
        self.events.pop_front().map(Output::Event)
    }
}
