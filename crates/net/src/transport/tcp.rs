//! TCP: elements one behind another.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use namecast_forward::Scope;
use namecast_units::Duration;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};

use super::accept::Door;
use super::stream;
use crate::FaceUri;
use crate::node::{LinkEnd, ListenError, Listener, NewFace, Node, SessionEnd};

/// Probes without an answer after which a peer counts as dead.
const PROBES: u32 = 3;

/// Accepts connections at `address`.
pub(crate) async fn listen(
    node: &Node,
    address: SocketAddr,
) -> Result<Listener<SocketAddr>, ListenError> {
    let error = || ListenError::bind(FaceUri::Tcp(address));
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| error()(source))?;
    let address = listener.local_addr().map_err(|source| error()(source))?;
    let uri = FaceUri::Tcp(address);
    let door = Door::open(node, uri.clone()).await?;
    let (state, stop) = (Arc::clone(&door.state), door.stop.clone());
    node.spawn(door.accept_all(
        async move || listener.accept().await,
        |(_, remote)| Some(remote.ip()),
        |door, (connection, remote), place| {
            let node = door.node().clone();
            node.spawn(async move {
                serve(&door, connection, remote).await;
                drop(place);
            });
        },
    ));
    Ok(Listener::new(address, uri, state, stop))
}

async fn serve(door: &Door, connection: TcpStream, remote: SocketAddr) {
    let dead_peer_timeout = door.node().config().dead_peer_timeout;
    if let Err(error) = prepare(&connection, dead_peer_timeout) {
        tracing::debug!(%remote, %error, "connection ended before it began");
        return;
    }
    let local = connection.local_addr().unwrap_or(remote);
    let new = NewFace::on_demand(FaceUri::Tcp(remote), scope(local, remote), None);
    if let Some(mut link) = door.face(new.at(FaceUri::Tcp(local))).await {
        let end = run(connection, &mut link).await;
        door.leave(link, end).await;
    }
}

/// Connects to `remote`.
pub(super) async fn connect(
    remote: SocketAddr,
    dead_peer_timeout: Duration,
) -> io::Result<TcpStream> {
    let connection = TcpStream::connect(remote).await?;
    prepare(&connection, dead_peer_timeout)?;
    Ok(connection)
}

/// Carries frames both ways until the connection or the face ends.
pub(super) async fn run(connection: TcpStream, link: &mut LinkEnd) -> SessionEnd {
    let (reader, writer) = connection.into_split();
    stream::run(reader, writer, link).await
}

/// Local if both ends are on this machine, as NFD has it.
pub(super) fn scope(local: SocketAddr, remote: SocketAddr) -> Scope {
    let loopback = |address: SocketAddr| address.ip().to_canonical().is_loopback();
    match loopback(local) && loopback(remote) {
        true => Scope::Local,
        false => Scope::NonLocal,
    }
}

/// Sends small frames at once, and finds out about a peer whose machine vanished, whether or not there is traffic.
fn prepare(connection: &TcpStream, dead_peer_timeout: Duration) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let interval = (dead_peer_timeout / (PROBES + 1)).max(Duration::from_secs(1));
    let keepalive = TcpKeepalive::new()
        .with_time(interval)
        .with_interval(interval);
    // Windows before 10.1703 refuses to count them otherwise than to ten.
    #[cfg(not(windows))]
    let keepalive = keepalive.with_retries(PROBES);
    let socket = SockRef::from(connection);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(dead_peer_timeout))?;
    Ok(())
}
