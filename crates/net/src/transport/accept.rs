//! What all listeners for connections have in common.

use std::io;
use std::sync::Arc;

use namecast_units::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::link::{LinkCounters, LinkDrop, ListenerId, next_number};
use crate::log_limit;
use crate::node::{Command, LinkEnd, ListenError, ListenerEntry, NewFace, Node, SessionEnd};
use crate::web::{Refusal, Visitor};
use crate::{FaceUri, NodeConfig};

/// Pause after an error of accepting: mostly the process has too many open files, and that does not pass at once.
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(100);

/// A listener's side of the node: counts connections, makes faces.
#[derive(Clone, Debug)]
pub(crate) struct Door {
    node: Node,
    id: ListenerId,
    counters: Arc<LinkCounters>,
    places: Places,
    /// Port of a TCP listener, whose connections make room for others.
    tcp_port: Option<u16>,
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
        let tcp_port = match &uri {
            FaceUri::Tcp(address) => Some(address.port()),
            _ => None,
        };
        let entry = ListenerEntry {
            id,
            uri,
            counters: Arc::clone(&counters),
            accepted: 0,
            socket: None,
            ethernet: None,
        };
        let door = Self {
            node: node.clone(),
            id,
            counters,
            places: Places::new(node.config()),
            tcp_port,
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
                        if let Some(permit) = self.admit().await {
                            serve(self.clone(), connection, permit);
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
        stop.run_until_cancelled(accepting).await;
        self.close();
    }

    /// Room for one more connection, for which another that was of no use yet may have to end.
    async fn admit(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places.all);
        if let Ok(permit) = Arc::clone(&place).try_acquire_owned() {
            return Some(permit);
        }
        self.counters.dropped(LinkDrop::TooManyFaces, 1);
        let has_ended = self.node.end_useless_connection(self.tcp_port?).await;
        if !has_ended.unwrap_or(false) {
            return None;
        }
        let waiting = tokio::time::timeout(PAUSE_AFTER_ERROR, place.acquire_owned());
        waiting.await.ok()?.ok()
    }

    /// Room for one more connection from the web, if there is any for such a visitor.
    pub(crate) fn admit_visitor(&self, visitor: Visitor) -> Option<Place> {
        let place = self.places.take(visitor);
        if place.is_none() {
            self.counters.dropped(LinkDrop::TooManyFaces, 1);
        }
        place
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

/// A listener's places. Strangers leave some of them to own pages, and those leave half of these to pages on this machine,
/// as whoever comes from elsewhere may only pretend to be an own page.
#[derive(Clone, Debug)]
struct Places {
    all: Arc<Semaphore>,
    of_own_pages: Arc<Semaphore>,
    of_strangers: Arc<Semaphore>,
}

/// One connection's place.
pub(crate) type Place = Vec<OwnedSemaphorePermit>;

impl Places {
    fn new(config: &NodeConfig) -> Self {
        let all = config.max_connections;
        let kept = config.web.own_page_places.min(all);
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            all: places(all),
            of_own_pages: places(all - kept.div_ceil(2)),
            of_strangers: places(all - kept),
        }
    }

    /// Strangers take a place of each sort, so that those of one sort bound the places of all below it.
    fn take(&self, visitor: Visitor) -> Option<Place> {
        let sorts = match visitor {
            Visitor::Stranger => &[&self.of_strangers, &self.of_own_pages, &self.all][..],
            Visitor::OwnPage => &[&self.of_own_pages, &self.all],
            Visitor::Local => &[&self.all],
        };
        let take = |&sort: &&Arc<Semaphore>| Arc::clone(sort).try_acquire_owned().ok();
        sorts.iter().map(take).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::WebConfig;

    /// Of 8 places 4 are kept: strangers have 4; own pages 6, so 2 more; pages on this machine all 8, so another 2.
    #[test]
    fn strangers_take_no_place_of_own_pages_nor_these_any_of_this_machine() {
        let places = Places::new(&NodeConfig {
            max_connections: 8,
            web: WebConfig {
                own_page_places: 4,
                ..WebConfig::default()
            },
            ..NodeConfig::default()
        });
        let mut taken = Vec::new();
        for (visitor, expected) in [
            (Visitor::Stranger, 4),
            (Visitor::OwnPage, 2),
            (Visitor::Local, 2),
        ] {
            let before = taken.len();
            taken.extend(core::iter::from_fn(|| places.take(visitor)));
            assert_eq!(taken.len() - before, expected, "{visitor:?}");
        }
        taken.remove(0);
        assert!(places.take(Visitor::Stranger).is_some());
    }
}
