//! Calls of two hosts: the sessions of `talk`, behind voices that never pause.

use core::convert::Infallible;
use std::collections::VecDeque;

use bytes::Bytes;
use namecast_apps::live::watcher::Trust;
use namecast_apps::session::{CallId, Endpoint, EndpointConfig, Event, Flow, SessionConfig};
use namecast_apps::{Application, Now, Output};
use namecast_packet::Name;
use namecast_units::{Duration, Instant};

use super::identity::Signing;

/// Time between two packets of a voice.
const INTERVAL: Duration = Duration::from_millis(20);
/// Octets of a packet: Opus at 32 kbit/s.
const PACKET: usize = 80;
/// Packets that wait for an Interest, as in `talk`.
const MAX_QUEUED: usize = 4;

/// One side of a call.
#[derive(Clone, Debug)]
pub struct LiveTalkerConfig {
    /// Its name.
    pub root: Name,
    /// Whom it calls; none: it takes calls.
    pub peer: Option<Name>,
    /// When it calls, on the host's clock.
    pub start: Duration,
    /// Seed of its keys and Nonces.
    pub seed: u8,
}

/// A packet that one side spoke and the other heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When it was spoken.
    pub spoken_at: Instant,
    /// Time from then until it was heard.
    pub delay: Duration,
}

/// One side of a call, with its records.
#[derive(Debug)]
pub struct LiveTalker {
    config: LiveTalkerConfig,
    endpoint: Endpoint,
    has_called: bool,
    call: Option<CallId>,
    /// When it speaks next, since the call was taken.
    speaks_at: Option<Instant>,
    spoken: Vec<Instant>,
    heard: Vec<Heard>,
    frames: VecDeque<Bytes>,
}

impl LiveTalker {
    /// A side that has not called yet.
    pub fn new(config: LiveTalkerConfig) -> Self {
        // A root of calls is an identity, and the application behind it.
        let identity = config.root.parent();
        let (signer, certificate) = Signing::Ed25519 { seed: config.seed }.signer(&identity);
        let session = SessionConfig {
            flow: Flow::VOICE,
            max_queued: MAX_QUEUED,
            ..SessionConfig::default()
        };
        let endpoint = EndpointConfig {
            root: config.root.clone(),
            answers: config.peer.is_none(),
            trust: Trust::FirstUse,
            session,
            secret: [config.seed; 32],
            seed: config.seed.into(),
            ..EndpointConfig::default()
        };
        Self {
            endpoint: Endpoint::new(endpoint, &*signer, &certificate),
            has_called: false,
            call: None,
            speaks_at: None,
            spoken: Vec::new(),
            heard: Vec::new(),
            frames: VecDeque::new(),
            config,
        }
    }

    /// Times at which it spoke.
    pub fn spoken(&self) -> &[Instant] {
        &self.spoken
    }

    /// Packets of the other side that it heard.
    pub fn heard(&self) -> &[Heard] {
        &self.heard
    }

    /// Calls, and speaks, when it is time.
    fn speak(&mut self, now: Now) {
        let calls_at = Instant::ZERO + self.config.start;
        if let Some(peer) = &self.config.peer
            && !self.has_called
            && calls_at <= now.monotonic
        {
            self.has_called = true;
            self.endpoint.call(now, peer.clone(), Trust::FirstUse);
        }
        while let (Some(call), Some(at)) = (self.call, self.speaks_at)
            && at <= now.monotonic
        {
            let mut packet = vec![0; PACKET];
            let nanos = at.since(Instant::ZERO).as_nanos() as u64;
            packet[..8].copy_from_slice(&nanos.to_be_bytes());
            self.spoken.push(at);
            // A packet that finds no room is a gap.
            let _ = self.endpoint.send(now, call, packet.into());
            self.speaks_at = Some(at + INTERVAL);
        }
    }

    fn on_event(&mut self, now: Now, event: Event) {
        match event {
            Event::Established {
                call,
                was_called: true,
                ..
            } => {
                self.endpoint.accept(now, call);
                self.begin(now, call);
            }
            Event::Accepted(call) => self.begin(now, call),
            Event::Message(_, packet) => {
                if let Some(nanos) = packet.first_chunk() {
                    let since = Duration::from_nanos(u64::from_be_bytes(*nanos));
                    let spoken_at = Instant::ZERO + since;
                    let delay = now.monotonic.since(spoken_at);
                    self.heard.push(Heard { spoken_at, delay });
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, now: Now, call: CallId) {
        self.call = Some(call);
        self.speaks_at = Some(now.monotonic);
    }

    fn drain(&mut self, now: Now) {
        while let Some(output) = Application::poll_output(&mut self.endpoint) {
            match output {
                Output::Send(frame) => self.frames.push_back(frame),
                Output::Event(event) => self.on_event(now, event),
            }
        }
    }
}

impl Application for LiveTalker {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.endpoint.handle_frame(now, frame);
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.speak(now);
        self.endpoint.handle_timeout(now);
        self.drain(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let calls_at = Instant::ZERO + self.config.start;
        let calls_at = Some(calls_at).filter(|_| self.config.peer.is_some() && !self.has_called);
        let all = [calls_at, self.speaks_at, self.endpoint.poll_timeout()];
        all.into_iter().flatten().min()
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        self.frames.pop_front().map(Output::Send)
    }
}
