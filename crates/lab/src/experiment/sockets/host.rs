//! A node with one application and one socket towards its neighbour.

use std::net::SocketAddr;

use namecast_apps::sequence::{Fetcher, FetcherConfig, Figures, Server, ServerConfig};
use namecast_forward::{Config, FaceConfig, FaceId, Forwarder, Transmit};
use namecast_packet::Name;
use namecast_sim::{Application, Now, Output};
use namecast_stream::path::NumberedConfig;
use namecast_units::{ByteSize, Duration, Instant};

use super::super::laboratory::Refusal;
use super::stage::Stage;
use crate::impair::{Buffers, Errors, Port, Quantiles, Received};

/// Lateness beyond which a deadline counts as missed by the rest.
const MADE_UP_FOR: Duration = Duration::from_millis(1);
/// Deadlines that are served before datagrams get their turn again.
const MAX_STEPS: usize = 1_000;

/// A node, driven from outside: one face to its application, one to whoever is behind the socket.
#[derive(Debug)]
pub(super) struct Host<A> {
    application: A,
    forwarder: Forwarder,
    application_face: FaceId,
    socket_face: FaceId,
    pub(super) port: Port,
    /// Who sent last, unless the socket is connected.
    neighbour: Option<SocketAddr>,
    is_connected: bool,
    /// The node's own time.
    lived_until: Instant,
    /// The time before which nothing is taken to have happened.
    earliest: Instant,
}

/// What nodes read with and into, and how late they were.
#[derive(Debug)]
pub(super) struct Watch {
    buffers: Buffers,
    received: Vec<Received>,
    errors: Errors,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self {
            buffers: Buffers::default(),
            received: Vec::new(),
            errors: Errors::new(),
        }
    }

    /// From deadlines, and from the kernel's receive times, to their handling.
    pub(super) fn error_ms(&self) -> Quantiles {
        self.errors.quantiles()
    }
}

impl Host<Fetcher> {
    /// The node that asks, on a connected socket.
    ///
    /// # Errors
    /// If the scenario makes no sense.
    pub(super) fn consumer(stage: &Stage<'_>, seed: u64, port: Port) -> Result<Self, Refusal> {
        let (flow, prefix) = (stage.flow, prefix(stage)?);
        let requests = NumberedConfig {
            expected_size: ByteSize::bytes(u64::from(stage.scenario.packet.payload)),
            control: flow.controller.get()?,
            lifetime: flow.lifetime,
            retransmit: flow.retransmit,
            reordering_tolerance: flow.reordering_tolerance,
            seed,
            ..NumberedConfig::default()
        };
        let fetcher = Fetcher::new(FetcherConfig {
            sample_interval: None,
            ..FetcherConfig::new(prefix.clone(), requests)
        });
        let mut host = Self::new(stage, fetcher, port, true)?;
        host.route(prefix, host.socket_face)?;
        Ok(host)
    }

    /// What its fetcher has counted.
    pub(super) const fn figures(&self) -> Figures {
        self.application.figures()
    }
}

impl Host<Server> {
    /// The node that answers, to whoever asks.
    ///
    /// # Errors
    /// If the scenario makes no sense.
    pub(super) fn producer(stage: &Stage<'_>, port: Port) -> Result<Self, Refusal> {
        let (size, prefix) = (stage.scenario.packet, prefix(stage)?);
        let server = Server::new(ServerConfig {
            prefix: prefix.clone(),
            content_size: size.payload as usize,
            wire_size: Some(size.wire as usize),
            ..ServerConfig::default()
        })
        .map_err(|error| Refusal {
            field: Some("packet".to_owned()),
            message: error.to_string(),
        })?;
        let mut host = Self::new(stage, server, port, false)?;
        host.route(prefix, host.application_face)?;
        Ok(host)
    }
}

fn prefix(stage: &Stage<'_>) -> Result<Name, Refusal> {
    let text = stage.flow.prefix.replace("{}", "1");
    text.parse()
        .map_err(|error| Refusal::from(format!("'{text}' is no name: {error}")))
}

impl<A: Application> Host<A> {
    fn new(
        stage: &Stage<'_>,
        application: A,
        port: Port,
        is_connected: bool,
    ) -> Result<Self, Refusal> {
        let mut forwarder = Forwarder::new(Config {
            content_store: stage.scenario.cache,
            ..Config::default()
        });
        let mut face = |config| {
            let added = forwarder.add_face(config);
            added.map_err(|error| Refusal::from(error.to_string()))
        };
        Ok(Self {
            application_face: face(FaceConfig::application("application"))?,
            socket_face: face(FaceConfig::default())?,
            application,
            forwarder,
            port,
            neighbour: None,
            is_connected,
            lived_until: Instant::ZERO,
            earliest: Instant::ZERO,
        })
    }

    fn route(&mut self, prefix: Name, face: FaceId) -> Result<(), Refusal> {
        let added = self.forwarder.add_route(prefix, face, 0);
        added.map_err(|error| Refusal::from(error.to_string()))
    }

    /// Lives through all that came or was due by `now`, each at its own time, and records how late that was.
    ///
    /// The time of a datagram is the one at which the kernel received it. What is later than [`MADE_UP_FOR`] is not made
    /// up for: after a pause there is no burst. Datagrams are read if `is_ready`, a bounded number.
    pub(super) fn live(&mut self, now: Now, is_ready: bool, watch: &mut Watch) {
        self.earliest = now.monotonic.saturating_sub(MADE_UP_FOR);
        if is_ready {
            self.port.receive(&mut watch.buffers, &mut watch.received);
        }
        let wall = Duration::from_micros(now.wall.as_micros());
        for datagram in watch.received.drain(..) {
            let age = wall.saturating_sub(datagram.at.unwrap_or(wall));
            let at = now.monotonic.saturating_sub(age);
            self.do_due(at, now, &mut watch.errors);
            watch.errors.record(age);
            self.neighbour = Some(datagram.from);
            let at = self.pass(at, now);
            self.forwarder
                .handle_frame(at.monotonic, self.socket_face, datagram.octets);
            self.settle(at);
        }
        self.do_due(now.monotonic, now, &mut watch.errors);
    }

    /// Lets the application do something that was due `at`, by `now`.
    pub(super) fn act(&mut self, at: Instant, now: Now, action: impl FnOnce(&mut A, Instant)) {
        let at = self.pass(at, now);
        action(&mut self.application, at.monotonic);
        self.settle(at);
    }

    /// Does what is due by `until`, at its time.
    fn do_due(&mut self, until: Instant, now: Now, errors: &mut Errors) {
        for _ in 0..MAX_STEPS {
            let Some(due) = self.poll_timeout().filter(|due| *due <= until) else {
                return;
            };
            errors.record(now.monotonic.since(due.max(self.lived_until)));
            let at = self.pass(due, now);
            self.application.handle_timeout(at);
            self.forwarder.handle_timeout(at.monotonic);
            self.settle(at);
        }
    }

    /// Lets the node's time, which never goes back, pass to `at`.
    fn pass(&mut self, at: Instant, now: Now) -> Now {
        self.lived_until = self.lived_until.max(at).max(self.earliest);
        Now {
            monotonic: self.lived_until,
            wall: now.wall,
        }
    }

    /// When to call [`live`](Self::live) next, whether something has come or not, if ever.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [
            self.application.poll_timeout(),
            self.forwarder.poll_timeout(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Hands frames over until nobody has any.
    fn settle(&mut self, now: Now) {
        loop {
            while let Some(output) = self.application.poll_output() {
                // What it reports is in its figures, too.
                if let Output::Send(frame) = output {
                    self.forwarder
                        .handle_frame(now.monotonic, self.application_face, frame);
                }
            }
            let Some(Transmit { face, frame }) = self.forwarder.poll_output() else {
                return;
            };
            if face == self.application_face {
                self.application.handle_frame(now, frame);
            } else {
                self.send(&frame);
            }
        }
    }

    /// What the system does not take is lost, as on any link.
    fn send(&self, octets: &[u8]) {
        let _ = match (self.is_connected, self.neighbour) {
            (true, _) => self.port.send(octets),
            (false, Some(neighbour)) => self.port.send_to(octets, neighbour),
            (false, None) => Ok(()),
        };
    }
}
