//! Who calls and is called: one's own root, the calls under it, and nothing of what is said in them.

mod call;
mod called;
mod calling;
mod events;
mod rates;
mod renewal;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use namecast_packet::Signer as PacketSigner;
use namecast_packet::{Certificate, Component, Data, Interest, LpPacket, Name, Nonce, Packet};
use namecast_units::{Duration, Instant, Random};
use x25519_dalek::StaticSecret;

use super::config::EndpointConfig;
use super::identity::{Own, Peer};
use super::keys::Secrets;
use super::known::{KnownPeer, KnownPeers};
use super::message::Kind;
use super::names::{self, CallId, Suffix};
use super::puzzle::{Gate, Limits};
use super::refusal::Refusal;
use super::remembered::Remembered;
use super::stream::SessionStats;
use crate::discovery::Trust;
use crate::{Application, Now, Output, face};
use call::{Call, HalfOpen, Stage};
use calling::Calling;
pub use events::{End, EndpointCounters, Event, Full, NoCall};
use rates::Rates;

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
    half_open: BTreeMap<CallId, HalfOpen>,
    calls: BTreeMap<CallId, Call>,
    known: KnownPeers,
    /// Ephemeral keys of set-ups that were answered: of strangers, and of known peers, which strangers do not displace.
    remembered: [Remembered; 2],
    gate: Gate,
    /// Static keys that were decrypted, and set-ups of known peers.
    decrypted: Rates,
    known_setups: Rates,
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
    /// Creates an endpoint whose static key `signer` vouches for, whose certificate is `certificate`.
    pub fn new(
        mut config: EndpointConfig,
        signer: &dyn PacketSigner,
        certificate: &Certificate,
    ) -> Self {
        let mut secrets = Secrets::new(core::mem::take(&mut config.secret));
        let drawn = secrets.draw();
        let static_key = StaticSecret::from(config.static_key.take().unwrap_or(*drawn));
        let mut known = KnownPeers::new(config.limits.max_known);
        for peer in core::mem::take(&mut config.known) {
            known.insert(peer);
        }
        let limits = Limits {
            free: config.limits.max_strangers,
            solved: config.limits.max_solved,
            min_difficulty: config.limits.min_difficulty,
        };
        Self {
            own: Own::new(config.root.clone(), static_key, signer, certificate.data()),
            random: Random::from_seed(config.seed),
            calling: None,
            half_open: BTreeMap::new(),
            calls: BTreeMap::new(),
            known,
            remembered: [(); 2].map(|()| Remembered::new(config.limits.max_remembered)),
            gate: Gate::new(secrets.draw(), limits),
            decrypted: Rates::default(),
            known_setups: Rates::default(),
            secrets,
            refused_at: None,
            frames: VecDeque::new(),
            events: VecDeque::new(),
            counters: EndpointCounters::default(),
            config,
        }
    }

    /// Calls whoever is at `callee`, if its signature counts by `trust`; in place of the call before, if that was not answered.
    pub fn call(&mut self, now: Now, callee: Name, trust: Trust) {
        let setup = self.set_up(&callee, true);
        let until = now.monotonic + self.config.call_timeout;
        self.calling = Some(Calling::new(now.monotonic, setup, (callee, trust), until));
        self.handle_timeout(now);
    }

    /// Returns peers that calls were established with, to be given to the next endpoint as [`EndpointConfig::known`].
    pub fn known(&self) -> impl Iterator<Item = &KnownPeer> {
        self.known.iter()
    }

    /// Lets only those call from now on whose public keys have these SHA-256 digests; calls that are established stay.
    pub fn authorise(&mut self, keys: Vec<[u8; 32]>) {
        self.known.retain(|it| keys.contains(&it.key_digest));
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

    fn handle_interest(&mut self, now: Now, interest: &Interest, link: LpPacket) {
        match names::suffix(&self.own.root, interest.name()) {
            Some(Suffix::Packet(id, number)) => {
                let asked = (link.pit_token, interest.lifetime());
                if let Some(call) = self.calls.get_mut(&id) {
                    call.session.handle_interest(now.monotonic, number, asked);
                } else if let Some(half_open) = self.half_open.get_mut(&id) {
                    half_open.keep(number, asked);
                } else {
                    self.counters.unknown += 1;
                }
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
        let Some(id) = id else {
            self.counters.unknown += 1;
            return;
        };
        match self.calls.get_mut(&id) {
            None => self.handle_confirmation(now, id, data),
            Some(call) => match names::suffix(&call.peer.root, name) {
                Some(Suffix::Packet(_, number)) => {
                    (call.session).handle_data(now.monotonic, number, data, is_marked);
                }
                _ => self.counters.unknown += 1,
            },
        }
    }

    fn establish(&mut self, call: CallId, peer: Peer, was_called: bool) {
        self.counters.established += 1;
        self.known.insert(KnownPeer {
            root: peer.root.clone(),
            key_digest: peer.signer.key_digest,
            static_key: peer.static_key,
        });
        self.events.push_back(Event::Established {
            call,
            peer: Box::new(peer),
            was_called,
        });
    }

    /// Requests what shows the keys of half-open calls, and drops those that have lasted too long.
    fn handle_half_open(&mut self, now: Now) {
        let before = self.half_open.len();
        self.half_open.retain(|_, it| it.until > now.monotonic);
        self.counters.unconfirmed += (before - self.half_open.len()) as u64;
        for half_open in self.half_open.values_mut() {
            if half_open.due() > now.monotonic {
                continue;
            }
            half_open.requested = (now.monotonic, half_open.requested.1 + 1);
            half_open.is_expected = true;
            let interest = Interest::builder(half_open.confirmation.clone());
            // A forged packet in a cache is not fresh, so it does not answer.
            let interest = interest.must_be_fresh().lifetime(SETUP_LIFETIME);
            let nonce = Nonce::draw(&mut self.random);
            let frame = interest.build(nonce).wire().clone();
            self.frames.push_back(frame);
        }
    }

    /// Ends what has lasted too long.
    fn handle_calls(&mut self, now: Now) {
        let mut over = Vec::new();
        for (&id, call) in &mut self.calls {
            call.session.handle_timeout(now.monotonic);
            match &mut call.stage {
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
                Stage::Refusing { until } => {
                    if call.session.is_done() || *until <= now.monotonic {
                        over.push((id, None));
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
        let mut set_ups = Vec::new();
        for (&id, call) in &mut self.calls {
            while let Some(received) = call.session.poll_message() {
                if !matches!(call.stage, Stage::Open { .. }) {
                    continue;
                }
                match received.kind {
                    Kind::Nothing => {}
                    Kind::Message => self.events.push_back(Event::Message(id, received.body)),
                    Kind::SetUp => set_ups.push((id, received.body)),
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
        }
        for (id, message) in set_ups {
            self.handle_renewal(now, id, &message);
        }
        for call in self.calls.values_mut() {
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
                None => self.handle_interest(now, &interest, link),
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
            Err(_) => self.counters.refused.add(Refusal::Malformed),
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        if let Some(mut calling) = self.calling.take() {
            if calling.is_old(now.monotonic) {
                let setup = self.set_up(&calling.callee, calling.may_know);
                calling.renew(now.monotonic, setup);
            }
            self.search(now.monotonic, &mut calling);
            match calling.handle_timeout(now.monotonic, &mut self.random) {
                Ok(interest) => {
                    self.frames.extend(interest);
                    self.calling = Some(calling);
                }
                Err(why) => self.events.push_back(Event::Failed(why)),
            }
        }
        self.handle_half_open(now);
        self.handle_calls(now);
        self.renew_due(now);
        self.collect(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let calls = self.calls.values().flat_map(|call| {
            let stage = match &call.stage {
                Stage::Open { .. } => {
                    let renewal = call.renewal.due(&self.config.session);
                    call.session.silent_at().min(renewal)
                }
                Stage::Closing { until, .. } | Stage::Refusing { until } => *until,
            };
            call.session.poll_timeout().into_iter().chain([stage])
        });
        let half_open = self.half_open.values().map(|it| it.due().min(it.until));
        let calling = self.calling.as_ref().map(Calling::poll_timeout);
        calls.chain(half_open).chain(calling).min()
    }

    fn poll_output(&mut self) -> Option<Output<Event>> {
        if let Some(frame) = self.frames.pop_front() {
            return Some(Output::Send(frame));
        }
        self.events.pop_front().map(Output::Event)
    }
}
