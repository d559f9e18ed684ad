//! A node with one application and one socket towards its neighbour.

use std::net::SocketAddr;

use namecast_apps::sequence::{Fetcher, FetcherConfig, Server, ServerConfig};
use namecast_forward::{Config, FaceConfig, FaceId, Forwarder, Transmit};
use namecast_packet::Name;
use namecast_sim::{Application, Now};
use namecast_units::{ByteSize, Duration, Instant};

use super::super::laboratory::Refusal;
use super::stage::Stage;
use crate::impair::{Buffers, Port, Received};

/// Lateness that the next Interest makes up for: without it, a fixed rate loses the share of its interval that waits are late
/// by, two in a hundred. It is less than any interval between Interests here, so that no two leave at once.
const BURST: Duration = Duration::from_micros(500);

/// A node, driven from outside: one face to its application, one to whoever is behind the socket.
#[derive(Debug)]
pub(super) struct Host<A> {
    pub(super) application: A,
    forwarder: Forwarder,
    application_face: FaceId,
    socket_face: FaceId,
    pub(super) port: Port,
    /// Who sent last, unless the socket is connected.
    neighbour: Option<SocketAddr>,
    is_connected: bool,
}

impl Host<Fetcher> {
    /// The node that asks, on a connected socket.
    ///
    /// # Errors
    /// If the scenario makes no sense.
    pub(super) fn consumer(stage: &Stage<'_>, seed: u64, port: Port) -> Result<Self, Refusal> {
        let (flow, prefix) = (stage.flow, prefix(stage)?);
        let fetcher = Fetcher::new(FetcherConfig {
            prefix: prefix.clone(),
            sample_interval: None,
            expected_size: ByteSize::bytes(u64::from(stage.scenario.packet.payload)),
            control: flow.controller,
            lifetime: flow.lifetime,
            retransmit: flow.retransmit,
            reordering_tolerance: flow.reordering_tolerance,
            burst: BURST,
            seed,
            ..FetcherConfig::default()
        });
        let mut host = Self::new(stage, fetcher, port, true)?;
        host.route(prefix, host.socket_face)?;
        Ok(host)
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
        })
    }

    fn route(&mut self, prefix: Name, face: FaceId) -> Result<(), Refusal> {
        let added = self.forwarder.add_route(prefix, face, 0);
        added.map_err(|error| Refusal::from(error.to_string()))
    }

    /// Takes what the socket has, a bounded number of datagrams, and appends how long each had been there: `wall` is the time
    /// since 1970.
    pub(super) fn receive(&mut self, now: Now, buffers: &mut Buffers, ages: &mut Vec<Duration>) {
        let wall = Duration::from_micros(now.wall.as_micros());
        let mut received: Vec<Received> = Vec::new();
        self.port.receive(buffers, &mut received);
        for datagram in received {
            self.neighbour = Some(datagram.from);
            ages.push(wall.saturating_sub(datagram.at.unwrap_or(wall)));
            self.forwarder
                .handle_frame(now.monotonic, self.socket_face, datagram.octets);
            self.settle(now);
        }
    }

    /// Does what is due. Early calls do nothing.
    pub(super) fn handle_timeout(&mut self, now: Now) {
        self.application.handle_timeout(now);
        self.forwarder.handle_timeout(now.monotonic);
        self.settle(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, if ever.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [
            self.application.poll_timeout(),
            self.forwarder.poll_timeout(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Hands frames over until nobody has any.
    pub(super) fn settle(&mut self, now: Now) {
        loop {
            while let Some(frame) = self.application.poll_output() {
                self.forwarder
                    .handle_frame(now.monotonic, self.application_face, frame);
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
