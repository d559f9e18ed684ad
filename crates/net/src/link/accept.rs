//! What all listeners for connections have in common.

use std::io;
use std::sync::Arc;

use namecast_units::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{LinkCounters, LinkDrop, LinkEnd, ListenerId, SessionEnd, next_number};
use crate::FaceUri;
use crate::node::{Command, ListenError, ListenerEntry, NewFace, Node};

/// Pause after an error of accepting: mostly the process has too many open files, and that does not pass at once.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// A listener's side of the node: counts connections, makes faces.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    node: Node,
    id: ListenerId,
    counters: Arc<LinkCounters>,
    room: Arc<Semaphore>,
    /// Ends the listener.
    pub(crate) stop: CancellationToken,
}

impl Door {
    /// Makes a listener known to the node.
    pub(crate) async fn open(node: &Node, uri: FaceUri) -> Result<Self, ListenError> {
        let (door, entry) = Self::prepare(node, uri);
        node.add_listener(entry)
            .await
            .map_err(|_| ListenError::Stopped)?;
        Ok(door)
    }

    /// As [`open`](Self::open), but leaves it to the caller to hand the node the entry.
    pub(crate) fn prepare(node: &Node, uri: FaceUri) -> (Self, ListenerEntry) {
        let id = ListenerId(next_number());
        let counters = Arc::new(LinkCounters::default());
        let entry = ListenerEntry {
            id,
            uri,
            counters: Arc::clone(&counters),
            socket: None,
            ethernet: None,
        };
        let door = Self {
            node: node.clone(),
            id,
            counters,
            room: Arc::new(Semaphore::new(node.config().max_connections)),
            stop: node.stopping().child_token(),
        };
        (door, entry)
    }

    /// Takes connections until the listener is stopped; `serve` starts a task for each.
    pub(crate) async fn accept_all<C>(
        self,
        mut accept: impl AsyncFnMut() -> io::Result<C>,
        serve: impl Fn(Self, C, OwnedSemaphorePermit),
    ) {
        let stop = self.stop.clone();
        let accepting = async {
            loop {
                match accept().await {
                    Ok(connection) => {
                        if let Some(permit) = self.admit() {
                            serve(self.clone(), connection, permit);
                        }
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(PAUSE_AFTER_ERROR).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(accepting).await;
        self.close();
    }

    /// Room for one more connection, if there is any.
    pub(crate) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.room).try_acquire_owned().ok();
        if permit.is_none() {
            self.counters.dropped(LinkDrop::TooManyFaces, 1);
        }
        permit
    }

    /// Makes a face for a connection; counts it as lost if the node takes no more.
    pub(crate) async fn face(&self, new: NewFace) -> Option<LinkEnd> {
        let added = self.node.add_face(new).await;
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
