//! Persistent faces: connections that are made again whenever they end.

use std::net::SocketAddr;

use namecast_forward::Scope;
use namecast_units::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::webtransport::{self, CertificateHash};
use super::{tcp, unix, websocket};
use crate::link::{LinkDrop, UdpLink};
use crate::node::{LinkEnd, LinkState, NewFace, Node, NodeError, SessionEnd, carry_datagrams};
use crate::{FaceOptions, FaceUri, Host, NodeConfig};

/// Where a persistent face leads.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// An address that says everything.
    Uri(FaceUri),
    /// A WebTransport server with the hashes of the certificates it may show.
    WebTransport(SocketAddr, Vec<CertificateHash>),
}

/// A connection that has been made.
enum Connection {
    Udp(Box<UdpLink>, SocketAddr),
    Tcp(TcpStream),
    Unix(unix::UnixStream),
    WebSocket(Box<websocket::ClientSocket>),
    WebTransport(webtransport::ClientSession),
}

/// Adds a face that leads to `remote`.
pub(crate) async fn connect(
    node: &Node,
    remote: FaceUri,
    options: &FaceOptions,
) -> Result<namecast_forward::FaceId, NodeError> {
    let connectable = matches!(
        remote,
        FaceUri::Udp(_)
            | FaceUri::Tcp(_)
            | FaceUri::Host(_)
            | FaceUri::Unix(_)
            | FaceUri::WebSocket { .. }
    );
    if !connectable || remote.obstacle().is_some() {
        return Err(NodeError::NotConnectable(remote));
    }
    let (is_udp, is_loopback, udp) = (remote.is_udp(), remote.is_loopback(), &node.config().udp);
    let mtu = is_udp.then_some(match is_loopback {
        true => udp.loopback_mtu,
        false => udp.mtu,
    });
    let local = is_loopback && (!is_udp || udp.loopback_is_local);
    let scope = if local { Scope::Local } else { Scope::NonLocal };
    let is_reliable = is_udp && udp.reliability;
    let new = NewFace::on_demand(remote.clone(), scope, mtu)
        .with_reliability(is_reliable)
        .persistent()
        .with_options(options)?;
    keep_connected(node, Peer::Uri(remote), new).await
}

/// Adds the face `new` and keeps its link connected to `peer`.
pub(super) async fn keep_connected(
    node: &Node,
    peer: Peer,
    new: NewFace,
) -> Result<namecast_forward::FaceId, NodeError> {
    let (state, _) = watch::channel(LinkState::Connecting);
    let link = node.add_face(new.with_state(state.clone())).await?;
    let face = link.face;
    let spawner = node.spawner();
    spawner.spawn_on(spawner.lane(), drive(node.clone(), peer, link, state));
    Ok(face)
}

async fn drive(node: Node, peer: Peer, mut link: LinkEnd, state: watch::Sender<LinkState>) {
    let config = node.config();
    let mut backoff = Backoff::new(config.reconnect_backoff);
    for attempt in 0.. {
        let dialled = tokio::time::timeout(config.connect_timeout, dial(&peer, config, attempt));
        let end = match discard_during(&mut link, dialled).await {
            None => return,
            Some(Err(_)) => SessionEnd::Transport("connecting took too long".to_owned()),
            Some(Ok(Err(end))) => end,
            Some(Ok(Ok(connection))) => {
                link.forget_neighbour();
                state.send_replace(LinkState::Up);
                node.link_changed(link.face, true).await;
                tracing::info!(face = %link.face, ?peer, "connected");
                let since = node.clock().now();
                let end = run(connection, &mut link, config).await;
                backoff.connected(since, node.clock().now());
                end
            }
        };
        if let SessionEnd::Stopped = end {
            return;
        }
        tracing::debug!(face = %link.face, ?peer, reason = %end, "not connected");
        let before = state.send_replace(LinkState::Down(end.to_string()));
        if before == LinkState::Up {
            node.link_changed(link.face, false).await;
        }
        let pause = tokio::time::sleep(backoff.next());
        if discard_during(&mut link, pause).await.is_none() {
            return;
        }
    }
}

/// Makes the connection, for the time after `attempt` others.
async fn dial(peer: &Peer, config: &NodeConfig, attempt: usize) -> Result<Connection, SessionEnd> {
    let uri = match peer {
        Peer::WebTransport(address, hashes) => {
            let session = webtransport::dial(*address, hashes, config).await?;
            return Ok(Connection::WebTransport(session));
        }
        Peer::Uri(uri) => uri,
    };
    Ok(match uri {
        FaceUri::Udp(remote) => Connection::Udp(Box::new(UdpLink::connect(*remote)?), *remote),
        FaceUri::Tcp(remote) => {
            Connection::Tcp(tcp::connect(*remote, config.dead_peer_timeout).await?)
        }
        FaceUri::Host(host) => return dial_host(host, config, attempt).await,
        FaceUri::Unix(path) => Connection::Unix(unix::connect(path).await?),
        FaceUri::WebSocket {
            authority,
            path,
            is_secure,
        } => {
            let socket = websocket::dial(authority, path, *is_secure).await?;
            Connection::WebSocket(Box::new(socket))
        }
        other => {
            return Err(SessionEnd::Transport(format!(
                "{other} cannot be connected to"
            )));
        }
    })
}

/// Connects to the first address of a host that can be reached. Over UDP nothing shows that nobody listens until something was
/// sent, so each attempt begins with another address.
async fn dial_host(
    host: &Host,
    config: &NodeConfig,
    attempt: usize,
) -> Result<Connection, SessionEnd> {
    let mut addresses = host.resolve().await?;
    let share = config.connect_timeout / u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    if host.is_udp {
        let first = attempt % addresses.len();
        addresses.rotate_left(first);
    }
    let mut end = SessionEnd::Transport("connecting took too long".to_owned());
    for address in addresses {
        if host.is_udp {
            match UdpLink::connect(address) {
                Ok(socket) => return Ok(Connection::Udp(Box::new(socket), address)),
                Err(error) => end = error.into(),
            }
            continue;
        }
        let connecting = tcp::connect(address, config.dead_peer_timeout);
        match tokio::time::timeout(share, connecting).await {
            Ok(Ok(connection)) => return Ok(Connection::Tcp(connection)),
            Ok(Err(error)) => end = error.into(),
            Err(_) => {}
        }
    }
    Err(end)
}

async fn run(connection: Connection, link: &mut LinkEnd, config: &NodeConfig) -> SessionEnd {
    match connection {
        Connection::Udp(socket, remote) => carry_datagrams(*socket, remote.into(), link).await,
        Connection::Tcp(connection) => tcp::run(connection, link).await,
        Connection::Unix(connection) => unix::run(connection, link).await,
        Connection::WebSocket(socket) => websocket::run_client(*socket, link, config).await,
        Connection::WebTransport(session) => webtransport::run_client(session, link).await,
    }
}

/// Drops the link's frames until `until` is done, so that none is sent late. `None` if the face ends first.
async fn discard_during<T>(link: &mut LinkEnd, until: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(until);
    loop {
        tokio::select! {
            done = until.as_mut() => return Some(done),
            frame = link.queue.recv() => {
                frame?;
                link.counters.dropped(LinkDrop::LinkDown, 1);
            }
        }
    }
}

/// Pauses that double with every failure in a row.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from the first to the longest.
    pub(crate) fn new((first, longest): (Duration, Duration)) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// How long to pause now.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }

    /// Starts again from the first pause.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// Records a connection. One that ended at once is another failure: a server may accept and then refuse.
    fn connected(&mut self, since: Instant, until: Instant) {
        if until.since(since) >= self.longest {
            self.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let millis = Duration::from_millis;
        let mut backoff = Backoff::new((millis(100), millis(500)));
        let pauses = [100, 200, 400, 500, 500].map(millis);
        assert_eq!(pauses.map(|_| backoff.next()), pauses);
    }

    #[test]
    fn only_a_connection_that_lasted_starts_the_pauses_anew() {
        let millis = Duration::from_millis;
        let mut backoff = Backoff::new((millis(100), millis(500)));
        backoff.next();
        backoff.connected(Instant::ZERO, Instant::ZERO + millis(499));
        assert_eq!(backoff.next(), millis(200));
        backoff.connected(Instant::ZERO, Instant::ZERO + millis(500));
        assert_eq!(backoff.next(), millis(100));
    }
}
