//! Connections of the web server, with bounds on what each may take and how long.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, AddExtension, Next};
use axum::response::{IntoResponse, Response};
use axum_server::Server;
use axum_server::accept::Accept;
use hyper_util::rt::TokioTimer;
use namecast_net::admission::{Entrance, Place};
use namecast_net::supervision::{ListenerState, keep_running};
use namecast_net::web::WebConfig;
use namecast_net::{DenyList, NodeConfig};
use namecast_units::Duration;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// Smallest buffer for a header that the HTTP library takes, in octets.
const MIN_HEADER_SIZE: usize = 8_192;
/// How long a connection that was ended here is still read, and the most octets of it. Closed with octets unread, TCP resets the
/// connection, and the peer may lose the last response (RFC 9112 section 9.6).
const LINGER: Duration = Duration::from_secs(1);
const MAX_LINGERING: usize = 256 * 1024;

/// What answers the requests of one connection.
type Service = AddExtension<Router, ConnectInfo<SocketAddr>>;

/// Counters of connections to a web server, and the state of its listener.
#[derive(Debug)]
pub(crate) struct WebCounters {
    listening: Arc<ListenerState>,
    accepted: AtomicU64,
    ended: AtomicU64,
    refused_full: AtomicU64,
    refused_handshake: AtomicU64,
    refused_foreign: AtomicU64,
    refused_denied: AtomicU64,
}

impl WebCounters {
    /// Returns counters of the server `name`, at zero.
    pub(crate) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            listening: ListenerState::new(name),
            accepted: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            refused_full: AtomicU64::new(0),
            refused_handshake: AtomicU64::new(0),
            refused_foreign: AtomicU64::new(0),
            refused_denied: AtomicU64::new(0),
        })
    }

    /// Whether the server listens.
    pub(crate) const fn listening(&self) -> &Arc<ListenerState> {
        &self.listening
    }

    /// A request came from a page of another site, or under another's name.
    pub(crate) fn refused_foreign(&self) {
        count(&self.refused_foreign);
    }

    /// The same, for programs, by the names that metrics have.
    pub(crate) fn figures(&self, uri: &str) -> Value {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (accepted, ended) = (load(&self.accepted), load(&self.ended));
        json!({
            "uri": uri,
            "accepted": accepted,
            "open": accepted.saturating_sub(ended),
            "refused": {
                "full": load(&self.refused_full),
                "handshake": load(&self.refused_handshake),
                "foreign": load(&self.refused_foreign),
                "denied": load(&self.refused_denied),
            },
        })
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A running web server. Dropping it stops it.
#[derive(Debug)]
#[must_use = "dropping the server stops it"]
pub(crate) struct WebServer {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl WebServer {
    /// The address it is bound to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts connections through `acceptor` and serves `router`, within the bounds of `node`. Starts again if the server ends.
    /// HTTP/1.1 only, as WebSocket needs it.
    ///
    /// # Errors
    /// If the socket has no address.
    pub(crate) fn start<A>(
        listener: TcpListener,
        acceptor: A,
        node: &NodeConfig,
        router: Router,
        counters: Arc<WebCounters>,
    ) -> io::Result<Self>
    where
        A: Accept<TcpStream, Service, Service = Service> + Clone + Send + Sync + 'static,
        A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
        A::Future: Send + 'static,
    {
        let address = listener.local_addr()?;
        let config = &node.web;
        let denial = Denial {
            deny: node.deny.clone(),
            web: config.clone(),
            counters: Arc::clone(&counters),
        };
        let router = router.layer(middleware::from_fn_with_state(denial, keep_out));
        let bounded = Bounded {
            acceptor,
            deny: node.deny.clone(),
            entrance: Entrance::new(config.max_connections),
            first_timeout: config.header_timeout,
            send_timeout: config.send_timeout,
            counters,
        };
        let socket = listener.into_std()?;
        let limits = config.clone();
        let state = Arc::clone(&bounded.counters.listening);
        let serving = keep_running(state, move |state| {
            let server = server(&socket, bounded.clone(), &limits);
            let service = router
                .clone()
                .into_make_service_with_connect_info::<SocketAddr>();
            async move {
                let served = match server {
                    Ok(server) => {
                        state.set_up();
                        server.serve(service).await
                    }
                    Err(error) => Err(error),
                };
                served.map_or_else(|error| error.to_string(), |()| "it ended".to_owned())
            }
        });
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            // Connections that are open end with the process: a page's WebSocket would never end by itself.
            tokio::select! {
                () = serving => {}
                _ = stopped => {}
            }
        });
        Ok(Self {
            address,
            _stop: stop,
        })
    }
}

/// What it takes to keep visitors out.
#[derive(Clone)]
struct Denial {
    deny: DenyList,
    web: WebConfig,
    counters: Arc<WebCounters>,
}

/// Refuses the requests of visitors from denied addresses, whose connection is that of a trusted proxy or began before the denial.
async fn keep_out(State(denial): State<Denial>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map(|ConnectInfo(peer)| peer.ip());
    let address = denial.web.address(peer, request.headers());
    if address.is_some_and(|address| denial.deny.contains(address)) {
        count(&denial.counters.refused_denied);
        return (StatusCode::FORBIDDEN, "this address is denied\n").into_response();
    }
    next.run(request).await
}

/// Makes a server of another handle of `socket`.
fn server<A>(
    socket: &std::net::TcpListener,
    bounded: Bounded<A>,
    config: &WebConfig,
) -> io::Result<Server<SocketAddr, Bounded<A>>> {
    let mut server = axum_server::from_tcp(socket.try_clone()?)?.acceptor(bounded);
    let builder = server.http_builder();
    *builder = builder.clone().http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(config.max_header_size.max(MIN_HEADER_SIZE));
    Ok(server)
}

/// Accepts connections while there are places for them.
#[derive(Clone, Debug)]
struct Bounded<A> {
    acceptor: A,
    deny: DenyList,
    entrance: Entrance,
    first_timeout: Duration,
    send_timeout: Duration,
    counters: Arc<WebCounters>,
}

/// Ends a connection whose peer neither acknowledges what is sent nor has room for more, where the system can.
#[cfg(target_os = "linux")]
fn bound_sending(stream: &TcpStream, timeout: Duration) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(timeout))
}
#[cfg(not(target_os = "linux"))]
const fn bound_sending(_: &TcpStream, _: Duration) -> io::Result<()> {
    Ok(())
}

impl<A> Bounded<A> {
    /// Takes a place for a connection, for which another may end.
    fn admit(&self, stream: &TcpStream) -> io::Result<Place> {
        let address = stream.peer_addr()?.ip();
        if self.deny.contains(address) {
            count(&self.counters.refused_denied);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.entrance.admit(address).ok_or_else(|| {
            count(&self.counters.refused_full);
            io::ErrorKind::QuotaExceeded.into()
        })
    }
}

impl<A> Accept<TcpStream, Service> for Bounded<A>
where
    A: Accept<TcpStream, Service>,
    A::Future: Send + 'static,
{
    type Stream = Placed<A::Stream>;
    type Service = A::Service;
    type Future =
        Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send + 'static>>;

    fn accept(&self, stream: TcpStream, service: Service) -> Self::Future {
        let place = self.admit(&stream);
        let prepared = bound_sending(&stream, self.send_timeout);
        let accepting = self.acceptor.accept(stream, service);
        let first_timeout = self.first_timeout;
        let counters = Arc::clone(&self.counters);
        Box::pin(async move {
            let place = place?;
            prepared?;
            let accepted = tokio::select! {
                accepted = accepting => accepted,
                () = place.gives_way() => Err(io::ErrorKind::ConnectionAborted.into()),
            };
            let (stream, service) = accepted.inspect_err(|_| count(&counters.refused_handshake))?;
            count(&counters.accepted);
            let stream = Placed {
                stream,
                silence: Some(Box::pin(tokio::time::sleep(first_timeout))),
                lingering: None,
                counters,
                gives_way: Box::pin(place.gives_way()),
                place,
            };
            Ok((stream, service))
        })
    }
}

/// A connection, with its place, which is free once it ends.
struct Placed<T> {
    stream: T,
    /// Until when it may say nothing at all. The HTTP library takes the time of headers only from their first octet on.
    silence: Option<Pin<Box<tokio::time::Sleep>>>,
    /// Since it was ended here: until when it is still read, and how many octets more.
    lingering: Option<(Pin<Box<tokio::time::Sleep>>, usize)>,
    counters: Arc<WebCounters>,
    place: Place,
    /// Until its place is another's.
    gives_way: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<T> Drop for Placed<T> {
    fn drop(&mut self) {
        count(&self.counters.ended);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Placed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.gives_way.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
            self.place.touch();
            self.silence = None;
        } else if let Some(silence) = &mut self.silence
            && silence.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Placed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let placed = &mut *self;
        if placed.lingering.is_none() {
            ready!(Pin::new(&mut placed.stream).poll_shutdown(cx))?;
        }
        let sleep = || (Box::pin(tokio::time::sleep(LINGER)), MAX_LINGERING);
        let (until, room) = placed.lingering.get_or_insert_with(sleep);
        let mut octets = [0; 4_096];
        while *room > 0 && until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut octets);
            let read = ready!(Pin::new(&mut placed.stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            *room = room.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use axum_server::accept::DefaultAcceptor;
    use namecast_net::Node;
    use namecast_net::supervision::until_restarted;
    use namecast_net::web::Scheme;
    use namecast_net::websocket::WebDoor;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// Whom a trusted proxy names is denied at whatever is asked for; others come by the same proxy, and who is not behind one may not
    /// say so.
    #[tokio::test]
    async fn visitors_of_a_proxy_are_denied() {
        let mut node = NodeConfig::default();
        node.deny.set(vec!["203.0.113.0/24".parse().unwrap()]);
        for (trusted, visitor, status) in [
            (true, "203.0.113.9", "403"),
            (true, "203.0.113.9, 127.0.0.1", "403"),
            (true, "198.51.100.7", "200"),
            (false, "203.0.113.9", "200"),
        ] {
            let proxy = trusted.then(|| "127.0.0.1".parse().unwrap());
            node.web.trusted_proxies = proxy.into_iter().collect();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let counters = WebCounters::new("page");
            let router = Router::new().fallback(get(|| async { "here" }));
            let acceptor = DefaultAcceptor::new();
            let server =
                WebServer::start(listener, acceptor, &node, router, Arc::clone(&counters)).unwrap();
            for path in ["/", "/hls/film/index.m3u8", "/ws/", "/whip/cam"] {
                let mut stream = TcpStream::connect(server.address()).await.unwrap();
                let request = format!(
                    "GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {visitor}\r\nConnection: close\r\n\r\n"
                );
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                let found = answer.split(' ').nth(1);
                assert_eq!(found, Some(status), "{visitor} at {path}: {answer}");
            }
            let denied = if status == "403" { 4 } else { 0 };
            assert_eq!(counters.refused_denied.load(Ordering::Relaxed), denied);
        }
    }

    #[tokio::test]
    async fn a_server_whose_task_panicked_serves_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let counters = WebCounters::new("page");
        let state = Arc::clone(counters.listening());
        let node = Node::start(NodeConfig::default());
        let door = WebDoor::open(&node, &[]);
        let router = Router::new().route("/", get(|| async { "here" }));
        let router = router.nest("/ws", door.router(Scheme::Http));
        let acceptor = DefaultAcceptor::new();
        let server = WebServer::start(listener, acceptor, node.config(), router, counters).unwrap();
        let mut watchers = Vec::new();
        for restarts in 0..=20 {
            until_restarted(&state, restarts).await;
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            stream.write_all(request).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.ends_with("here"), "{answer}");
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            let request = "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 101");
            watchers.push(stream);
            assert_eq!(state.restarts(), restarts);
            state.inject_fault();
        }
        // Those who came before a fault are there still.
        let open = async || node.status().await.unwrap().listeners[0].open;
        while open().await < watchers.len() {
            tokio::task::yield_now().await;
        }
    }
}
