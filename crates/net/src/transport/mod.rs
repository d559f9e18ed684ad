//! Ways in and out of a node: sockets that peers come to, connections that are kept, and what drives them.

mod accept;
mod connect;
mod ethernet;
mod stream;
mod tcp;
mod udp;
#[cfg_attr(not(unix), path = "no_unix.rs")]
mod unix;

pub mod websocket;
pub mod webtransport;

pub(crate) use connect::Backoff;
pub use ethernet::{EthernetConfig, EthernetPort};
pub use udp::UdpMulticast;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use namecast_forward::FaceId;

use crate::FaceUri;
use crate::node::{FaceOptions, ListenError, Listener, Node, NodeError};

/// Permissions of a socket's file: whoever may write to it may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixAccess {
    /// Permission bits, such as `0o666`. `None`: those that the process's umask leaves.
    pub mode: Option<u32>,
    /// Name of the group that owns the file. `None`: the process's.
    pub group: Option<String>,
}

impl Node {
    /// Receives UDP at `address`; each peer becomes a face when it first sends, and ends when it has long been silent.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub async fn listen_udp(
        &self,
        address: SocketAddr,
    ) -> Result<Listener<SocketAddr>, ListenError> {
        udp::listen(self, address).await
    }

    /// Accepts TCP connections at `address`; each is a face.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub async fn listen_tcp(
        &self,
        address: SocketAddr,
    ) -> Result<Listener<SocketAddr>, ListenError> {
        tcp::listen(self, address).await
    }

    /// Accepts connections on a Unix socket at `path`; each is a face. A socket file that nobody listens on is replaced;
    /// the file goes when the listener ends.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub async fn listen_unix(&self, path: &Path) -> Result<Listener<PathBuf>, ListenError> {
        self.listen_unix_as(path, &UnixAccess::default()).await
    }

    /// Accepts connections on a Unix socket at `path`, whose file has the permissions of `access`.
    ///
    /// # Errors
    /// If the socket cannot be had, or its file cannot get these permissions.
    pub async fn listen_unix_as(
        &self,
        path: &Path,
        access: &UnixAccess,
    ) -> Result<Listener<PathBuf>, ListenError> {
        unix::listen(self, path, access).await
    }

    /// Adds a persistent face to a peer: it stays, with its routes, however often the connection is lost, and connects
    /// anew with growing pauses. Returns at once; [`link_state`](Self::link_state) shows whether the peer is there.
    ///
    /// # Errors
    /// If the node has stopped or has too many faces, or the address is one that only peers have.
    pub async fn connect(&self, remote: FaceUri) -> Result<FaceId, NodeError> {
        self.connect_with(remote, &FaceOptions::default()).await
    }

    /// The same, with a face as `options` say.
    ///
    /// # Errors
    /// Also if there can be no such face.
    pub async fn connect_with(
        &self,
        remote: FaceUri,
        options: &FaceOptions,
    ) -> Result<FaceId, NodeError> {
        connect::connect(self, remote, options).await
    }
}
