//! What the rest of the crate asks of a node.

use std::collections::BTreeSet;
use std::sync::Arc;

use namecast_forward::{CacheOptions, Erased, FaceId, LearnedRoute};
use namecast_packet::{Name, PrefixAnnouncement};
use namecast_units::{ByteSize, Duration};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::room::FaceRefusal;
use super::{
    CacheUpdate, Command, ContentStoreDescription, FaceDescription, FaceEvent, LinkEnd,
    ListenerEntry, NewFace, NextHops, Node, NodeError, Plane, Query, Readvertises, Spawner,
    StrategyChoice,
};
use crate::admission::Source;
use crate::link::{ListenerId, UdpPath};

impl Node {
    /// Resolves when the node is told to stop.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.shared.stopping
    }

    /// The way of frames through the node, which has not stopped.
    pub(super) fn running(&self) -> Result<&Plane, NodeError> {
        match self.shared.stopping.is_cancelled() {
            true => Err(NodeError::Stopped),
            false => Ok(&self.shared.plane),
        }
    }

    /// The way of frames through the node.
    pub(crate) fn plane(&self) -> &Arc<Plane> {
        &self.shared.plane
    }

    /// Has the status show what a routing daemon is told by `readvertising`.
    pub(crate) fn set_readvertising(&self, readvertising: Arc<dyn Readvertises>) {
        // It is set when the node starts, and never again.
        let _ = self.shared.readvertising.set(readvertising);
    }

    /// Where what changes faces, listeners and routes is asked for.
    pub(crate) fn commands(&self) -> mpsc::Sender<Command> {
        self.shared.commands.clone()
    }

    /// Face of a datagram's sender, which is made if there is none; else the reason why it gets none.
    pub(crate) async fn datagram_face(
        &self,
        listener: ListenerId,
        path: UdpPath,
        is_proven: bool,
    ) -> Result<Result<FaceId, FaceRefusal>, NodeError> {
        self.ask(|reply| Command::DatagramFace {
            listener,
            path,
            is_proven,
            reply,
        })
        .await
    }

    /// Ends the face of a listener that gives way to one more of `source`; false if none does.
    pub(crate) async fn end_idlest(
        &self,
        listener: ListenerId,
        source: Source,
    ) -> Result<bool, NodeError> {
        self.ask(|reply| Command::EndIdlest {
            listener,
            source,
            reply,
        })
        .await
    }

    pub(crate) async fn add_face(&self, new: NewFace) -> Result<LinkEnd, NodeError> {
        self.ask(|reply| Command::AddFace(new, reply)).await?
    }

    pub(crate) async fn add_listener(&self, entry: ListenerEntry) -> Result<(), NodeError> {
        self.ask(|reply| Command::AddListener(entry, reply)).await
    }

    pub(crate) async fn describe(&self, face: FaceId) -> Result<FaceDescription, NodeError> {
        self.query(|reply| Query::Face(face, reply))
            .await?
            .ok_or(NodeError::NoSuchFace(face))
    }

    pub(crate) async fn faces(&self) -> Result<Vec<FaceDescription>, NodeError> {
        self.query(Query::Faces).await
    }

    pub(crate) async fn routes(&self) -> Result<NextHops, NodeError> {
        self.query(Query::Routes).await
    }

    /// Tells the forwarders what the face's peer announces, and for how long that holds; none if its signer may not, or not
    /// now.
    pub(crate) fn announce(
        &self,
        face: FaceId,
        announcement: &PrefixAnnouncement,
    ) -> Result<Option<Duration>, NodeError> {
        let plane = self.running()?;
        let now = plane.clock.now();
        Ok(plane.change_first(|forwarder| {
            let mut learning = forwarder.learning(now);
            let is_taken = learning.announce(face, announcement);
            is_taken.then(|| learning.announced_for(announcement))
        }))
    }

    pub(crate) fn learned_routes(&self) -> Result<Vec<LearnedRoute>, NodeError> {
        Ok(self.running()?.learned_routes())
    }

    pub(crate) fn strategies(&self) -> Result<Vec<StrategyChoice>, NodeError> {
        let all = self.running()?.strategies();
        Ok(all.into_iter().map(StrategyChoice::from).collect())
    }

    pub(crate) fn content_store(&self) -> Result<ContentStoreDescription, NodeError> {
        let plane = self.running()?;
        let counters = plane.counters();
        Ok(ContentStoreDescription {
            options: plane.cache_options(),
            packets: plane.sum(|forwarder| forwarder.content_store().packets()),
            size: ByteSize::bytes(
                plane.sum(|forwarder| forwarder.content_store().size().as_bytes() as usize) as u64,
            ),
            hits: counters.content_store_hits,
            misses: counters.content_store_misses,
        })
    }

    pub(crate) fn update_cache(&self, update: CacheUpdate) -> Result<CacheOptions, NodeError> {
        let plane = self.running()?;
        let now = plane.cache_options();
        let options = CacheOptions {
            capacity: update.capacity.unwrap_or(now.capacity),
            admits: update.admits.unwrap_or(now.admits),
            serves: update.serves.unwrap_or(now.serves),
        };
        plane.set_cache_options(options);
        Ok(options)
    }

    pub(crate) fn erase_cached(&self, prefix: &Name, limit: usize) -> Result<Erased, NodeError> {
        let plane = self.running()?;
        Ok(plane.erase_cached(prefix, limit))
    }

    /// What became of faces, from the event numbered `first` on.
    pub(crate) async fn face_events(&self, first: u64) -> Result<Vec<FaceEvent>, NodeError> {
        self.query(|reply| Query::FaceEvents(first, reply)).await
    }

    /// Tells that a face's peer can be reached, or not any more.
    pub(crate) async fn link_changed(&self, face: FaceId, is_up: bool) {
        let command = Command::LinkChanged { face, is_up };
        // A node that has stopped need not know.
        let _ = self.shared.commands.send(command).await;
    }

    pub(crate) async fn face_ids(&self) -> Result<BTreeSet<FaceId>, NodeError> {
        self.query(Query::FaceIds).await
    }

    pub(crate) fn try_command(&self, command: Command) {
        // The event loop also notices by itself what these commands tell it.
        let _ = self.shared.commands.try_send(command);
    }

    /// Runs `task` until it ends by itself or the node cuts everything off.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.spawner().spawn(task);
    }

    pub(crate) fn spawner(&self) -> Spawner {
        Spawner {
            config: self.shared.config.clone(),
            tasks: self.shared.tasks.clone(),
            lanes: Arc::clone(&self.shared.lanes),
            registrations: self.shared.registrations.clone(),
            leaving: self.shared.leaving.clone(),
            stopping: self.shared.stopping.clone(),
            aborting: self.shared.aborting.clone(),
            plane: Arc::clone(self.plane()),
        }
    }

    pub(crate) async fn query<T>(
        &self,
        query: impl FnOnce(oneshot::Sender<T>) -> Query,
    ) -> Result<T, NodeError> {
        self.ask(|reply| Command::Ask(query(reply))).await
    }

    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, NodeError> {
        let (reply, answer) = oneshot::channel();
        self.shared
            .commands
            .send(command(reply))
            .await
            .map_err(|_| NodeError::Stopped)?;
        answer.await.map_err(|_| NodeError::Stopped)
    }
}
