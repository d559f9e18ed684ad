//! WebTransport: one frame per datagram of an HTTP/3 session.
//!
//! Browsers accept a server without a certificate from an authority if the page names the hash of its certificate, and
//! that is of ECDSA P-256 and valid for at most two weeks. So the listener makes such certificates by itself.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use namecast_forward::{FaceId, Scope};
use namecast_units::Duration;
use tokio::sync::watch;
use tokio::time::Interval;
use tokio_util::sync::DropGuard;
use wtransport::endpoint::endpoint_side::{Client, Server};
use wtransport::endpoint::{IncomingSession, SessionRequest};
use wtransport::error::{ConnectionError, SendDatagramError};
use wtransport::tls::Sha256Digest;
use wtransport::tls::self_signed::time::OffsetDateTime;
use wtransport::{ClientConfig, Connection, Endpoint, Identity, ServerConfig, VarInt};

use super::accept::{Door, Place};
use super::connect::{Peer, keep_connected};
use crate::admission::{Entrance, Place as HandshakePlace};
use crate::link::{LinkDrop, MAX_FRAME_SIZE};
use crate::node::{LinkEnd, ListenError, NewFace, Node, NodeError, SessionEnd};
use crate::supervision::{ListenerState, catch_panic};
use crate::web::{PageSource, Purpose, Refusal, Scheme, Visitor, WebRequest};
use crate::{Clock, FaceUri, NodeConfig};

/// How long a certificate is valid, in days, starting a day ago for clocks that are behind. Browsers refuse more than 14.
const VALIDITY_DAYS: u32 = 13;
/// How long a certificate is shown before it is replaced: pages that were given its hash late can still connect.
const ROTATION: Duration = Duration::from_secs(10 * 86_400);
/// Smallest datagram that every QUIC path carries, less the headers of QUIC and HTTP/3: the MTU until the path is known.
const MIN_MTU: usize = 1_100;
/// Application error code of a regular end.
const NO_ERROR: VarInt = VarInt::from_u32(0);

const _: () = assert!(VALIDITY_DAYS <= 14);
const _: () = assert!(ROTATION.as_secs() < (VALIDITY_DAYS as u64 - 1) * 86_400);

/// SHA-256 of a server's certificate, in DER.
pub type CertificateHash = [u8; 32];

/// A WebTransport server. Dropping it stops taking new sessions.
#[derive(Debug)]
#[must_use = "dropping a listener stops it"]
pub struct WebTransportListener {
    address: SocketAddr,
    hash: watch::Receiver<CertificateHash>,
    state: Arc<ListenerState>,
    _stop: DropGuard,
}

impl WebTransportListener {
    /// The address it is bound to.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Hash of the certificate in use, for `serverCertificateHashes`. Ask each time: certificates are replaced.
    pub fn certificate_hash(&self) -> CertificateHash {
        *self.hash.borrow()
    }

    /// Returns whether its task runs, and how often it was started again.
    pub const fn state(&self) -> &Arc<ListenerState> {
        &self.state
    }
}

/// Serves WebTransport at `address`, on any path; each session is a face. No peer is local. The node's own pages come from
/// `pages`.
///
/// # Errors
/// If the socket or a certificate cannot be had.
pub async fn listen(
    node: &Node,
    address: SocketAddr,
    pages: &[PageSource],
) -> Result<WebTransportListener, ListenError> {
    let (server, listener) = bind(node, address, pages).await?;
    node.spawn(server.serve());
    Ok(listener)
}

async fn bind(
    node: &Node,
    address: SocketAddr,
    pages: &[PageSource],
) -> Result<(SessionServer, WebTransportListener), ListenError> {
    let names = subject_names(address);
    let (config, hash) = server_config(&names, address, node.config())?;
    let bind_error = ListenError::bind(FaceUri::WebTransport(address));
    let endpoint = Endpoint::server(config).map_err(bind_error)?;
    let bind_error = ListenError::bind(FaceUri::WebTransport(address));
    let address = endpoint.local_addr().map_err(bind_error)?;
    let door = Door::open(node, FaceUri::WebTransport(address)).await?;
    let (state, stop) = (Arc::clone(&door.state), door.stop.clone());
    let (published, hash) = watch::channel(hash);
    let mut rotation = tokio::time::interval(ROTATION);
    rotation.reset();
    let server = SessionServer {
        sessions: Sessions {
            door,
            pages: pages.into(),
        },
        address,
        endpoint: Some(endpoint),
        handshakes: Entrance::new(node.config().max_connections),
        names,
        published,
        rotation,
    };
    let listener = WebTransportListener {
        address,
        hash,
        state,
        _stop: stop.drop_guard(),
    };
    Ok((server, listener))
}

/// Adds a persistent face to the WebTransport server at `address`, which must show a certificate with one of `hashes`.
///
/// # Errors
/// If the node has stopped or has too many faces.
pub async fn connect(
    node: &Node,
    address: SocketAddr,
    hashes: Vec<CertificateHash>,
) -> Result<FaceId, NodeError> {
    let remote = FaceUri::WebTransport(address);
    let new = NewFace::on_demand(remote, Scope::NonLocal, Some(MIN_MTU)).persistent();
    keep_connected(node, Peer::WebTransport(address, hashes), new).await
}

/// Names that the certificate is for; clients that pin its hash do not look at them.
fn subject_names(address: SocketAddr) -> Vec<String> {
    let mut names = vec![
        "localhost".to_owned(),
        Ipv4Addr::LOCALHOST.to_string(),
        Ipv6Addr::LOCALHOST.to_string(),
    ];
    let own = address.ip().to_string();
    if !address.ip().is_unspecified() && !names.contains(&own) {
        names.push(own);
    }
    names
}

fn server_config(
    names: &[String],
    address: SocketAddr,
    config: &NodeConfig,
) -> Result<(ServerConfig, CertificateHash), ListenError> {
    let now = i64::try_from(Clock::new().wall().as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let yesterday = OffsetDateTime::from_unix_timestamp(now - 86_400)
        .map_err(|error| ListenError::Certificate(error.to_string()))?;
    let identity = Identity::self_signed_builder()
        .subject_alt_names(names)
        .not_before(yesterday)
        .validity_days(VALIDITY_DAYS)
        .build()
        .map_err(|error| ListenError::Certificate(error.to_string()))?;
    let certificate = &identity.certificate_chain().as_slice()[0];
    let hash = *certificate.hash().as_ref();
    let server = ServerConfig::builder()
        .with_bind_address(address)
        .with_identity(identity)
        .keep_alive_interval(Some(keep_alive(config)))
        .max_idle_timeout(Some(config.dead_peer_timeout))
        .map_err(|_| ListenError::Certificate("the dead peer timeout is too long".to_owned()))?
        .build();
    Ok((server, hash))
}

/// Often enough that a living peer is never silent for the whole timeout.
fn keep_alive(config: &NodeConfig) -> Duration {
    config.dead_peer_timeout / 3
}

/// What each session needs.
#[derive(Clone)]
struct Sessions {
    door: Door,
    pages: Arc<[PageSource]>,
}

/// What the listener's task has, however often it is started again.
struct SessionServer {
    sessions: Sessions,
    address: SocketAddr,
    /// `None`: its own task ended, and it is to be made anew.
    endpoint: Option<Endpoint<Server>>,
    handshakes: Entrance,
    names: Vec<String>,
    published: watch::Sender<CertificateHash>,
    rotation: Interval,
}

impl SessionServer {
    /// Serves until the listener is stopped, also after its task ended.
    async fn serve(mut self) {
        let (state, stop) = {
            let door = &self.sessions.door;
            (Arc::clone(&door.state), door.stop.clone())
        };
        let serving = async {
            loop {
                state.run(self.accept_all(&state)).await;
            }
        };
        stop.run_until_cancelled(serving).await;
        self.sessions.door.close();
        // Sessions end by themselves: when the node stops, each sends what is queued and closes.
        if let Some(endpoint) = &self.endpoint {
            endpoint.wait_idle().await;
        }
    }

    /// Accepts sessions until the endpoint ends; returns why it did.
    async fn accept_all(&mut self, state: &ListenerState) -> String {
        let endpoint = match self.endpoint.take() {
            Some(endpoint) => endpoint,
            None => match self.bind_again() {
                Ok(endpoint) => endpoint,
                Err(error) => return error.to_string(),
            },
        };
        let endpoint = self.endpoint.insert(endpoint);
        state.set_up();
        let config = self.sessions.door.node().config();
        loop {
            tokio::select! {
                biased;
                _ = self.rotation.tick() => {
                    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                    // The endpoint keeps its socket: the address does not matter.
                    let replaced = server_config(&self.names, address, config)
                        .ok()
                        .and_then(|(config, hash)| {
                            endpoint.reload_config(config, false).ok().map(|()| hash)
                        });
                    match replaced {
                        Some(hash) => {
                            self.published.send_replace(hash);
                        }
                        None => tracing::warn!("the WebTransport certificate could not be replaced"),
                    }
                }
                // It panics where the task behind the socket has ended.
                incoming = catch_panic(endpoint.accept()) => match incoming {
                    Ok(incoming) => self.sessions.admit(incoming, &self.handshakes),
                    Err(why) => {
                        self.endpoint = None;
                        return why;
                    }
                },
            }
        }
    }

    /// Makes the endpoint anew at its address, with another certificate.
    fn bind_again(&self) -> Result<Endpoint<Server>, ListenError> {
        let config = self.sessions.door.node().config();
        let (config, hash) = server_config(&self.names, self.address, config)?;
        let bind_error = ListenError::bind(FaceUri::WebTransport(self.address));
        let endpoint = Endpoint::server(config).map_err(bind_error)?;
        self.published.send_replace(hash);
        Ok(endpoint)
    }
}

impl Sessions {
    /// Starts the task of a session that comes in, if there is a place among the `handshakes`.
    fn admit(&self, incoming: IncomingSession, handshakes: &Entrance) {
        let node = self.door.node();
        // Where many wait, whoever comes shows first that it is where it says it is.
        let is_crowded = handshakes.taken() > node.config().max_connections / 2;
        if is_crowded && !incoming.remote_address_validated() {
            incoming.retry();
        } else if let Some(handshake) = handshakes.admit(incoming.remote_address().ip()) {
            let sessions = self.clone();
            node.spawn(async move { sessions.serve(incoming, handshake).await });
        } else {
            incoming.refuse();
        }
    }

    /// Serves one session to its end. Until it is known who comes it has the place of a `handshake`, as there is a bound on
    /// those, too.
    async fn serve(&self, incoming: IncomingSession, handshake: HandshakePlace) {
        let timeout = self.door.node().config().connect_timeout;
        let opened = tokio::select! {
            opened = tokio::time::timeout(timeout, self.open(incoming)) => opened,
            () = handshake.gives_way() => return,
        };
        drop(handshake);
        let Ok(Some((connection, place, visitor))) = opened else {
            return;
        };
        let remote = FaceUri::WebTransport(connection.remote_address());
        let new = NewFace::of_visitor(remote, visitor, Some(mtu(&connection)));
        if let Some(mut link) = self.door.face(new).await {
            let end = run(&connection, &mut link).await;
            self.door.leave(link, end).await;
        }
        drop(place);
    }

    /// Accepts a session from whoever may come while there is a place.
    async fn open(&self, incoming: IncomingSession) -> Option<(Connection, Place, Visitor)> {
        let no_session =
            |error: &ConnectionError| tracing::debug!(%error, "no WebTransport session");
        let request = incoming.await.inspect_err(no_session).ok()?;
        let visitor = match self.judge(&request) {
            Ok(visitor) => visitor,
            Err(refusal) => {
                tracing::debug!(%refusal, "no WebTransport session");
                self.door.refused(&refusal);
                request.forbidden().await;
                return None;
            }
        };
        let address = request.remote_address().ip();
        let Some(place) = self.door.admit(Some(address)).await else {
            request.too_many_requests().await;
            return None;
        };
        let connection = request.accept().await.inspect_err(no_session).ok()?;
        Some((connection, place, visitor))
    }

    fn judge(&self, request: &SessionRequest) -> Result<Visitor, Refusal> {
        let header = |(name, value): (&String, &String)| {
            let name: HeaderName = name.parse().ok()?;
            Some((name, HeaderValue::from_str(value).ok()?))
        };
        let headers: HeaderMap = request.headers().iter().filter_map(header).collect();
        let config = &self.door.node().config().web;
        config.judge(
            &self.pages,
            &WebRequest {
                peer: Some(request.remote_address().ip()),
                scheme: Scheme::Https,
                authority: Some(request.authority()),
                headers: &headers,
                purpose: Purpose::Face,
            },
        )
    }
}

/// Largest frame that fits a datagram now. It grows as QUIC probes the path, but a face's MTU is set once.
fn mtu(connection: &Connection) -> usize {
    connection
        .max_datagram_size()
        .unwrap_or(MIN_MTU)
        .clamp(namecast_forward::MIN_MTU, MAX_FRAME_SIZE)
}

/// A session of which this node is the client.
pub(super) struct ClientSession {
    connection: Connection,
    /// Drives the connection's socket.
    _endpoint: Endpoint<Client>,
}

/// Connects to the server at `address`.
pub(super) async fn dial(
    address: SocketAddr,
    hashes: &[CertificateHash],
    config: &NodeConfig,
) -> Result<ClientSession, SessionEnd> {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let client = ClientConfig::builder()
        .with_bind_address(any)
        .with_server_certificate_hashes(hashes.iter().copied().map(Sha256Digest::new))
        .keep_alive_interval(Some(keep_alive(config)))
        .max_idle_timeout(Some(config.dead_peer_timeout))
        .map_err(transport)?
        .build();
    let endpoint = Endpoint::client(client)?;
    let url = format!("https://{address}/ndn");
    let connection = endpoint.connect(url).await.map_err(transport)?;
    Ok(ClientSession {
        connection,
        _endpoint: endpoint,
    })
}

/// Carries frames both ways until the session or the face ends.
pub(super) async fn run_client(session: ClientSession, link: &mut LinkEnd) -> SessionEnd {
    run(&session.connection, link).await
}

async fn run(connection: &Connection, link: &mut LinkEnd) -> SessionEnd {
    let (intake, queue) = link.split();
    let read = async {
        loop {
            let datagram = connection.receive_datagram().await.map_err(transport)?;
            let frame = datagram.payload();
            match frame.len() <= MAX_FRAME_SIZE {
                // A copy of its own: a datagram shares its memory with the session's header, and maybe with others.
                true => intake.deliver(vec![Bytes::copy_from_slice(&frame)])?,
                false => intake.dropped(LinkDrop::TooLarge),
            }
        }
    };
    let write = async {
        while let Some(frame) = queue.recv().await {
            match send(connection, &frame) {
                Ok(()) => {}
                Err(Unsent::Dropped(reason)) => intake.dropped(reason),
                Err(Unsent::Ended(end)) => return Err(end),
            }
        }
        Err(SessionEnd::Stopped)
    };
    let end: Result<core::convert::Infallible, SessionEnd> = tokio::select! {
        end = read => end,
        end = write => end,
    };
    let Err(end) = end;
    connection.close(NO_ERROR, b"");
    end
}

/// Why a frame did not go out.
enum Unsent {
    Dropped(LinkDrop),
    Ended(SessionEnd),
}

fn send(connection: &Connection, frame: &[u8]) -> Result<(), Unsent> {
    // QUIC would make room by dropping its oldest datagrams, and tell nobody.
    if connection.quic_connection().datagram_send_buffer_space() < frame.len() {
        return Err(Unsent::Dropped(LinkDrop::QueueFull));
    }
    connection
        .send_datagram(frame)
        .map_err(|error| match error {
            SendDatagramError::TooLarge => Unsent::Dropped(LinkDrop::TooLarge),
            SendDatagramError::NotConnected => Unsent::Ended(SessionEnd::Closed),
            SendDatagramError::UnsupportedByPeer => Unsent::Ended(transport(error)),
        })
}

fn transport(error: impl core::fmt::Display) -> SessionEnd {
    SessionEnd::Transport(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::until_restarted;

    fn names(address: &str) -> Vec<String> {
        subject_names(address.parse().unwrap())
    }

    #[test]
    fn a_certificate_names_this_machine_and_the_address_asked_for() {
        assert_eq!(names("127.0.0.1:0"), ["localhost", "127.0.0.1", "::1"]);
        assert_eq!(names("0.0.0.0:0"), ["localhost", "127.0.0.1", "::1"]);
        assert_eq!(names("192.0.2.7:1").last().unwrap(), "192.0.2.7");
    }

    /// An endpoint whose own task ended is made anew at its address.
    #[tokio::test]
    async fn an_endpoint_that_ended_is_replaced() {
        let far = Node::start(NodeConfig::default());
        let address = "127.0.0.1:0".parse().unwrap();
        let (server, listener) = bind(&far, address, &[]).await.unwrap();
        let first = listener.certificate_hash();
        server.endpoint.as_ref().unwrap().close(NO_ERROR, b"");
        far.spawn(server.serve());
        until_restarted(listener.state(), 1).await;
        let hash = listener.certificate_hash();
        assert_ne!(hash, first);
        let near = Node::start(NodeConfig::default());
        let face = connect(&near, listener.address(), vec![hash]).await;
        near.connected(face.unwrap()).await.unwrap();
        assert_eq!(listener.state().restarts(), 1);
    }

    #[test]
    fn every_certificate_is_another() {
        let make = || {
            let address = "127.0.0.1:0".parse().unwrap();
            server_config(&names("127.0.0.1:0"), address, &NodeConfig::default())
                .unwrap()
                .1
        };
        assert_ne!(make(), make());
    }
}
