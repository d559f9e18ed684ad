//! WebSocket: one frame per binary message.
//!
//! The server side is a router, so that one port can serve the page and its packets.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{Message as ServerMessage, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, request};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use core::sync::atomic::{AtomicU32, Ordering};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use namecast_units::Duration;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message as ClientMessage;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
};

use super::accept::Door;
use crate::admission::Source;
use crate::link::{BATCH_FRAMES, LinkDrop, LinkReceiver, MAX_FRAME_SIZE};
use crate::node::{Intake, LinkEnd, NewFace, Node, SessionEnd};
use crate::web::{self, PageSource, Purpose, Refusal, Scheme, Visitor, WebConfig, WebRequest};
use crate::{FaceUri, NodeConfig};

/// Largest message that is read at all; larger than any frame, so that a wrong one costs a packet and not the face.
const MAX_MESSAGE_SIZE: usize = 64 * 1024;
/// Pings without a sign of life after which a peer counts as dead.
const PINGS: u32 = 3;

/// The client's end of a connection.
pub(super) type ClientSocket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A node's side of web servers: who may come, and as what.
#[derive(Clone, Debug)]
pub struct WebDoor {
    door: Door,
    /// Where this node's own pages come from.
    pages: Arc<[PageSource]>,
}

impl WebDoor {
    /// A door of `node`, whose own pages come from `pages`.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn open(node: &Node, pages: &[PageSource]) -> Self {
        let uri = FaceUri::Internal("websocket".to_owned());
        let (door, entry) = Door::prepare(node, uri);
        let (listener, stop) = (door.clone(), door.stop.clone());
        node.spawn(async move {
            // If the node has stopped, there is nothing to make known.
            if listener.node().add_listener(entry).await.is_ok() {
                stop.cancelled().await;
                listener.close();
            }
        });
        Self {
            door,
            pages: pages.into(),
        }
    }

    /// Tells who sent a request, and counts those that are to be refused.
    ///
    /// # Errors
    /// If it is to be refused.
    pub fn judge(&self, request: &WebRequest<'_>) -> Result<Visitor, Refusal> {
        let judged = self.config().judge(&self.pages, request);
        judged.inspect_err(|refusal| self.door.refused(refusal))
    }

    /// What is configured of it.
    pub fn config(&self) -> &WebConfig {
        &self.door.node().config().web
    }

    /// A router whose path `/` takes WebSocket connections, each a face: mount it with `Router::nest("/ws", door.router(scheme))`
    /// in a server that is reached by `scheme`.
    ///
    /// A peer is local, and may then command, as [`Visitor::Local`]. For that the server must be made by
    /// `into_make_service_with_connect_info::<SocketAddr>()`; otherwise no peer is local.
    pub fn router(&self, scheme: Scheme) -> Router {
        Router::new()
            .route("/", any(accept))
            .with_state((self.clone(), scheme))
    }
}

async fn accept(
    State((web, scheme)): State<(WebDoor, Scheme)>,
    parts: request::Parts,
    upgrade: WebSocketUpgrade,
) -> Response {
    let door = web.door.clone();
    if door.stop.is_cancelled() {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let peer = parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map(|&ConnectInfo(peer)| peer);
    let request = WebRequest {
        peer: peer.map(|peer| peer.ip()),
        scheme,
        authority: web::authority(&parts.uri, &parts.headers),
        headers: &parts.headers,
        purpose: Purpose::Face,
    };
    let visitor = match web.judge(&request) {
        Ok(visitor) => visitor,
        Err(refusal) => return (refusal.status(), format!("{refusal}\n")).into_response(),
    };
    let address = web.config().address(request.peer, request.headers);
    let Some(place) = door.admit(address).await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let upgrade = upgrade
        .max_message_size(MAX_MESSAGE_SIZE)
        .max_frame_size(MAX_MESSAGE_SIZE);
    upgrade.on_upgrade(async move |socket| {
        let node = door.node().clone();
        // Its own task, so that stopping the node waits for what is queued, and cuts it off if need be.
        node.spawn(async move {
            let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
            let remote = FaceUri::WebSocketClient(peer.unwrap_or(unknown));
            let new = NewFace::of_visitor(remote, visitor, None);
            serve(&door, socket, new.of_source(address.map(Source::of))).await;
            drop(place);
        });
    })
}

async fn serve(door: &Door, socket: WebSocket, new: NewFace) {
    let timeout = door.node().config().dead_peer_timeout;
    if let Some(mut link) = door.face(new).await {
        let end = run(socket, &mut link, timeout).await;
        door.leave(link, end).await;
    }
}

/// Connects to a server, over TLS with the certificate authorities that the system trusts.
pub(super) async fn dial(
    authority: &str,
    path: &str,
    is_secure: bool,
) -> Result<ClientSocket, SessionEnd> {
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(MAX_MESSAGE_SIZE);
    config.max_frame_size = Some(MAX_MESSAGE_SIZE);
    let (scheme, connector) = match is_secure {
        true => (
            "wss",
            Connector::Rustls(Arc::new(trusting_the_system().map_err(transport)?)),
        ),
        false => ("ws", Connector::Plain),
    };
    let url = format!("{scheme}://{authority}{path}");
    let connecting = connect_async_tls_with_config(url, Some(config), true, Some(connector));
    let (socket, _) = connecting.await.map_err(transport)?;
    Ok(socket)
}

/// Read anew for each connection, as authorities come and go.
fn trusting_the_system() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        let text = format!(
            "the system has no certificate authorities ({}): install ca-certificates, or name a file in SSL_CERT_FILE",
            reasons.join(", ")
        );
        return Err(rustls::Error::General(text));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Carries frames both ways until the connection or the face ends.
pub(super) async fn run_client(
    socket: ClientSocket,
    link: &mut LinkEnd,
    config: &NodeConfig,
) -> SessionEnd {
    run(socket, link, config.dead_peer_timeout).await
}

/// A message of either WebSocket library; they are the same on the wire, but not the same type.
trait Message {
    fn binary(frame: Bytes) -> Self;
    fn ping() -> Self;
    fn read(self) -> Received;
}

/// What a message is to a link.
enum Received {
    Frame(Bytes),
    /// Text, which no NDN peer sends.
    NoFrame,
    /// A sign of life.
    Control,
    Close,
}

impl Message for ServerMessage {
    fn binary(frame: Bytes) -> Self {
        Self::Binary(frame)
    }

    fn ping() -> Self {
        Self::Ping(Bytes::new())
    }

    fn read(self) -> Received {
        match self {
            Self::Binary(frame) => Received::Frame(frame),
            Self::Text(_) => Received::NoFrame,
            Self::Ping(_) | Self::Pong(_) => Received::Control,
            Self::Close(_) => Received::Close,
        }
    }
}

impl Message for ClientMessage {
    fn binary(frame: Bytes) -> Self {
        Self::Binary(frame)
    }

    fn ping() -> Self {
        Self::Ping(Bytes::new())
    }

    fn read(self) -> Received {
        match self {
            Self::Binary(frame) => Received::Frame(frame),
            Self::Text(_) => Received::NoFrame,
            Self::Ping(_) | Self::Pong(_) | Self::Frame(_) => Received::Control,
            Self::Close(_) => Received::Close,
        }
    }
}

async fn run<M: Message, E: core::fmt::Display>(
    socket: impl Stream<Item = Result<M, E>> + Sink<M, Error = E>,
    link: &mut LinkEnd,
    dead_peer_timeout: Duration,
) -> SessionEnd {
    let (intake, queue) = link.split();
    let (sink, stream) = socket.split();
    let ping_interval = (dead_peer_timeout / PINGS).max(Duration::from_millis(1));
    // Ticks since the peer last gave a sign of life.
    let silence = AtomicU32::new(0);
    let end = tokio::select! {
        end = read(stream, &intake, &silence) => end,
        end = write(sink, queue, ping_interval) => end,
        end = watch(&silence, ping_interval) => end,
    };
    let Err(end) = end;
    end
}

type Endless = Result<core::convert::Infallible, SessionEnd>;

async fn read<M: Message, E: core::fmt::Display>(
    mut stream: impl Stream<Item = Result<M, E>> + Unpin,
    intake: &Intake,
    silence: &AtomicU32,
) -> Endless {
    while let Some(message) = stream.next().await {
        silence.store(0, Ordering::Relaxed);
        match message.map_err(transport)?.read() {
            Received::Frame(frame) if frame.len() > MAX_FRAME_SIZE => {
                intake.dropped(LinkDrop::TooLarge);
            }
            Received::Frame(frame) => {
                // A copy of its own: a message may be part of a larger read buffer.
                intake.deliver(vec![Bytes::copy_from_slice(&frame)])?;
            }
            Received::NoFrame => intake.dropped(LinkDrop::Framing),
            Received::Control => {}
            Received::Close => break,
        }
    }
    Err(SessionEnd::Closed)
}

async fn write<M: Message, E: core::fmt::Display>(
    mut sink: impl Sink<M, Error = E> + Unpin,
    queue: &mut LinkReceiver,
    ping_interval: Duration,
) -> Endless {
    let mut batch = Vec::with_capacity(BATCH_FRAMES);
    let mut pings = tokio::time::interval(ping_interval);
    pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            more = queue.recv_many(&mut batch, BATCH_FRAMES) => {
                if !more {
                    break;
                }
                for frame in batch.drain(..) {
                    sink.feed(M::binary(frame)).await.map_err(transport)?;
                }
            }
            _ = pings.tick() => sink.feed(M::ping()).await.map_err(transport)?,
        }
        sink.flush().await.map_err(transport)?;
    }
    sink.close().await.map_err(transport)?;
    Err(SessionEnd::Stopped)
}

/// Ends once the peer gave no sign of life for as long as it takes to answer several pings.
async fn watch(silence: &AtomicU32, ping_interval: Duration) -> Endless {
    let mut ticks = tokio::time::interval(ping_interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if silence.fetch_add(1, Ordering::Relaxed) > PINGS {
            return Err(SessionEnd::Silent);
        }
    }
}

fn transport(error: impl core::fmt::Display) -> SessionEnd {
    SessionEnd::Transport(error.to_string())
}
