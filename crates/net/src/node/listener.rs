//! Sockets that peers come to.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use namecast_forward::FaceId;
use rustix::io::Errno;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{FaceOptions, NodeError};
use crate::link::{LinkCounters, ListenerId, UdpLink};
use crate::supervision::ListenerState;
use crate::{FaceUri, MacAddress};

/// A socket that peers come to. Dropping it stops taking new ones; connections that were accepted live on.
#[derive(Debug)]
#[must_use = "dropping a listener stops it"]
pub struct Listener<A> {
    address: A,
    uri: FaceUri,
    state: Arc<ListenerState>,
    _stop: DropGuard,
}

impl<A> Listener<A> {
    pub(crate) fn new(
        address: A,
        uri: FaceUri,
        state: Arc<ListenerState>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            address,
            uri,
            state,
            _stop: stop.drop_guard(),
        }
    }

    /// The address it is bound to.
    pub const fn address(&self) -> &A {
        &self.address
    }

    /// The address as a peer on this machine would write it.
    pub const fn uri(&self) -> &FaceUri {
        &self.uri
    }

    /// Returns whether its task runs, and how often it was started again.
    pub const fn state(&self) -> &Arc<ListenerState> {
        &self.state
    }
}

/// Errors of Unix systems for an absent interface.
const GONE: &[Errno] = &[
    #[cfg(unix)]
    Errno::NODEV,
    #[cfg(unix)]
    Errno::NXIO,
];

/// Why a socket cannot be listened on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The system refused.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address asked for.
        address: FaceUri,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process listens there.
    #[error("another process listens on {}; stop it, or choose another path", .0.display())]
    InUse(PathBuf),
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
    /// The node takes no face for the socket.
    #[error(transparent)]
    Face(#[from] NodeError),
}

impl ListenError {
    /// Whether an interface is not there, or lacks what it gets when it comes up: then it may work later.
    pub fn is_of_absent_interface(&self) -> bool {
        let Self::Bind {
            address: FaceUri::Device(_) | FaceUri::Udp(_),
            source,
        } = self
        else {
            return false;
        };
        let is_gone = |error| GONE.contains(&error);
        matches!(
            source.kind(),
            ErrorKind::NotFound | ErrorKind::AddrNotAvailable | ErrorKind::NetworkDown
        ) || Errno::from_io_error(source).is_some_and(is_gone)
    }

    pub(crate) fn bind(address: FaceUri) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Bind { address, source }
    }

    pub(crate) fn refused(error: NodeError) -> Self {
        match error {
            NodeError::Stopped => Self::Stopped,
            other => Self::Face(other),
        }
    }
}

/// What the event loop knows about a listener.
#[derive(Debug)]
pub(crate) struct ListenerEntry {
    pub(crate) id: ListenerId,
    pub(crate) uri: FaceUri,
    pub(crate) counters: Arc<LinkCounters>,
    /// Peers that came and got a face.
    pub(crate) accepted: u64,
    /// Whether its task runs; `None`: it has no task of its own.
    pub(crate) state: Option<Arc<ListenerState>>,
    /// The socket, if its datagrams make faces.
    pub(crate) socket: Option<Arc<UdpLink>>,
    /// By which faces to peers are asked for, if it is an interface that carries Ethernet faces.
    pub(crate) ethernet: Option<EthernetRequests>,
}

/// The way to the task behind an interface.
#[derive(Clone, Debug)]
pub(crate) struct EthernetRequests(mpsc::Sender<EthernetRequest>);

impl EthernetRequests {
    pub(crate) const fn new(queue: mpsc::Sender<EthernetRequest>) -> Self {
        Self(queue)
    }

    pub(crate) async fn connect(
        &self,
        peer: MacAddress,
        options: &FaceOptions,
    ) -> Result<FaceId, NodeError> {
        if peer.is_group() {
            return Err(NodeError::NotConnectable(FaceUri::Ethernet(peer)));
        }
        let (reply, answer) = oneshot::channel();
        let request = EthernetRequest {
            peer,
            options: *options,
            reply,
        };
        let sent = self.0.send(request).await;
        sent.map_err(|_| NodeError::Stopped)?;
        answer.await.map_err(|_| NodeError::Stopped)?
    }
}

/// A face to one peer is wanted.
#[derive(Debug)]
pub(crate) struct EthernetRequest {
    pub(crate) peer: MacAddress,
    pub(crate) options: FaceOptions,
    pub(crate) reply: oneshot::Sender<Result<FaceId, NodeError>>,
}
