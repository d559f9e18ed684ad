//! Connections of the web server, with bounds on what each may take and how long.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use hyper_util::rt::TokioTimer;
use namecast_net::web::WebConfig;
use namecast_units::Duration;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Smallest buffer for a header that the HTTP library takes, in octets.
const MIN_HEADER_SIZE: usize = 8_192;
/// How long a connection that was ended here is still read, and the most octets of it. Closed with octets unread, TCP resets the
/// connection, and the peer may lose the last response (RFC 9112 section 9.6).
const LINGER: Duration = Duration::from_secs(1);
const MAX_LINGERING: usize = 256 * 1024;

/// What answers the requests of one connection.
type Service = AddExtension<Router, ConnectInfo<SocketAddr>>;

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

    pub(crate) fn run(
        address: SocketAddr,
        serving: impl Future<Output = std::io::Result<()>> + Send + 'static,
    ) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(async move {
            // Connections that are open end with the process: a page's WebSocket would never end by itself.
            tokio::select! {
                result = serving => {
                    if let Err(error) = result {
                        tracing::error!("web server: {error}");
                    }
                }
                _ = stopped => {}
            }
        });
        Self {
            address,
            _stop: stop,
        }
    }
}

/// Takes connections through `acceptor` and serves `router`, within the bounds of `config`. HTTP/1.1 only, as WebSocket needs
/// it.
///
/// # Errors
/// If the socket cannot be listened on any more.
pub(crate) async fn serve<A>(
    listener: TcpListener,
    acceptor: A,
    config: WebConfig,
    router: Router,
) -> io::Result<()>
where
    A: Accept<TcpStream, Service, Service = Service> + Clone + Send + Sync + 'static,
    A::Stream: AsyncRead + AsyncWrite + Unpin + Send,
    A::Future: Send + 'static,
{
    let bounded = Bounded {
        acceptor,
        places: Arc::new(Semaphore::new(config.max_connections)),
        first_timeout: config.header_timeout,
        send_timeout: config.send_timeout,
    };
    let mut server = axum_server::from_tcp(listener.into_std()?)?.acceptor(bounded);
    let builder = server.http_builder();
    *builder = builder.clone().http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(config.max_header_size.max(MIN_HEADER_SIZE));
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    server.serve(service).await
}

/// Accepts connections while there are places for them.
#[derive(Clone, Debug)]
struct Bounded<A> {
    acceptor: A,
    places: Arc<Semaphore>,
    first_timeout: Duration,
    send_timeout: Duration,
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
        let place = Arc::clone(&self.places).try_acquire_owned();
        // Linux also counts the time in which the peer has no room for what is sent.
        #[cfg(target_os = "linux")]
        let prepared = SockRef::from(&stream).set_tcp_user_timeout(Some(self.send_timeout));
        #[cfg(not(target_os = "linux"))]
        let prepared = Ok::<_, io::Error>(());
        let accepting = self.acceptor.accept(stream, service);
        let first_timeout = self.first_timeout;
        Box::pin(async move {
            let place = place.map_err(io::Error::other)?;
            prepared?;
            let (stream, service) = accepting.await?;
            let stream = Placed {
                stream,
                silence: Some(Box::pin(tokio::time::sleep(first_timeout))),
                lingering: None,
                _place: place,
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
    _place: OwnedSemaphorePermit,
}

impl<T: AsyncRead + Unpin> AsyncRead for Placed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_ready() {
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
