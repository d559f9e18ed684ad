//! What all listeners for connections have in common.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use namecast_units::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::FaceUri;
use crate::admission::Source;
use crate::link::{LinkCounters, LinkDrop, ListenerId, next_number};
use crate::log_limit;
use crate::node::{Command, LinkEnd, ListenError, ListenerEntry, NewFace, Node, SessionEnd};
use crate::supervision::ListenerState;
use crate::web::Refusal;

/// Pause after an error of accepting: mostly the process has too many open files, and that does not pass at once.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);
/// Time that a connection may take to end for another.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// One connection's place.
pub(crate) type Place = OwnedSemaphorePermit;

/// A listener's side of the node: counts connections, makes faces.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    node: Node,
    id: ListenerId,
    counters: Arc<LinkCounters>,
    places: Arc<Semaphore>,
    /// Whether its task runs.
    pub(crate) state: Arc<ListenerState>,
    /// Ends the listener.
    pub(crate) stop: CancellationToken,
}

impl Door {
    /// Makes a listener known to the node.
    pub(crate) async fn open(node: &Node, uri: FaceUri) -> Result<Self, ListenError> {
        let (door, mut entry) = Self::prepare(node, uri);
        entry.state = Some(Arc::clone(&door.state));
        node.add_listener(entry)
            .await
            .map_err(|_| ListenError::Stopped)?;
        Ok(door)
    }

    /// Prepares a listener without a task of its own, whose entry the caller hands the node.
    pub(crate) fn prepare(node: &Node, uri: FaceUri) -> (Self, ListenerEntry) {
        let id = ListenerId(next_number());
        let counters = Arc::new(LinkCounters::default());
        let state = ListenerState::new(uri.to_string());
        let entry = ListenerEntry {
            id,
            uri,
            counters: Arc::clone(&counters),
            accepted: 0,
            state: None,
            socket: None,
            ethernet: None,
        };
        let door = Self {
            node: node.clone(),
            id,
            counters,
            places: Arc::new(Semaphore::new(node.config().max_connections)),
            state,
            stop: node.stopping().child_token(),
        };
        (door, entry)
    }

    /// Takes connections until the listener is stopped, also after its task ended; `address` says where one comes from, and `serve` starts
    /// a task for each.
    pub(crate) async fn accept_all<C>(
        self,
        mut accept: impl AsyncFnMut() -> io::Result<C>,
        address: impl Fn(&C) -> Option<IpAddr>,
        serve: impl Fn(Self, C, Place),
    ) {
        let accepting = async {
            loop {
                let listening = async {
                    self.state.set_up();
                    loop {
                        match accept().await {
                            Ok(connection) => {
                                if let Some(place) = self.admit(address(&connection)).await {
                                    serve(self.clone(), connection, place);
                                }
                            }
                            Err(error) => {
                                if let Some(left_out) = log_limit::admit("accept") {
                                    tracing::warn!(%error, "cannot accept a connection{left_out}");
                                }
                                tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                            }
                        }
                    }
                };
                self.state.run(listening).await;
            }
        };
        self.stop.run_until_cancelled(accepting).await;
        self.close();
    }

    /// Room for one more connection from `address`, for which another may have to end; `None`: it is refused, and counted.
    ///
    /// Without an address it comes from this machine by no network; then no other ends.
    pub(crate) async fn admit(&self, address: Option<IpAddr>) -> Option<Place> {
        if address.is_some_and(|address| self.node.config().deny.contains(address)) {
            self.counters.dropped(LinkDrop::Denied, 1);
            return None;
        }
        let places = Arc::clone(&self.places);
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            return Some(place);
        }
        self.counters.dropped(LinkDrop::TooManyFaces, 1);
        let source = Source::of(address?);
        if !self.node.end_idlest(self.id, source).await.unwrap_or(false) {
            return None;
        }
        let waiting = tokio::time::timeout(MAX_WAIT, places.acquire_owned());
        waiting.await.ok()?.ok()
    }

    /// Counts a request that is refused.
    pub(crate) fn refused(&self, refusal: &Refusal) {
        self.counters.dropped(LinkDrop::from(refusal), 1);
    }

    /// Makes a face for a connection; counts it as lost if the node takes no more.
    pub(crate) async fn face(&self, new: NewFace) -> Option<LinkEnd> {
        let added = self.node.add_face(new.accepted_by(self.id)).await;
        if added.is_err() {
            self.counters.dropped(LinkDrop::TooManyFaces, 1);
        }
        added.ok()
    }

    /// Removes a connection's face at its end.
    pub(crate) async fn leave(&self, link: LinkEnd, end: SessionEnd) {
        tracing::debug!(face = %link.face, reason = %end, "connection ended");
        // If the node has stopped, the face is gone already.
        let _ = self.node.remove_face(link.face).await;
    }

    /// The node this door leads to.
    pub(crate) const fn node(&self) -> &Node {
        &self.node
    }

    /// Tells the node that the listener is gone.
    pub(crate) fn close(&self) {
        self.node.try_command(Command::RemoveListener(self.id));
    }
}
