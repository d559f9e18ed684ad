//! The handle on a running node.

mod command;
mod datagrams;
mod event_loop;
mod events;
mod execute;
mod face_table;
mod inside;
mod keep_alive;
mod lanes;
mod link_end;
mod listener;
mod options;
mod plane;
mod room;
mod spawner;
mod status;
mod tap;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use namecast_forward::{AddFaceError, FaceId, HashKey, StrategyKind, StrategyNameError};
use namecast_packet::Name;
use namecast_units::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use command::{
    CacheUpdate, Command, ContentStoreDescription, FaceDescription, NewFace, NextHops, Query,
};
pub(crate) use datagrams::{carry_datagrams, receive_datagrams};
pub(crate) use events::{FaceEvent, FaceEventKind};
pub use face_table::{LinkState, Persistency};
pub(crate) use link_end::{Intake, LinkEnd, SessionEnd};
pub(crate) use listener::{EthernetRequest, EthernetRequests, ListenerEntry};
pub use listener::{ListenError, Listener};
pub use options::FaceOptions;
pub(crate) use plane::Plane;
pub(crate) use room::FaceRefusal;
pub(crate) use spawner::Spawner;
pub use status::{
    FaceStatus, FeedbackStatus, ListenerStatus, NodeStatus, ReadvertisingStatus, RouteStatus,
    SourceStatus, StrategyChoice, StrategyCounts, TrafficStatus,
};
pub use tap::{Trace, TracedFrame};

pub(crate) use status::{Readvertises, STRATEGY_COUNTS};

use crate::deny::Network;
use crate::{Clock, FaceUri, NodeConfig, key_store};

use event_loop::EventLoop;
use lanes::Lanes;

/// Commands that wait for the event loop; those who give them wait when there are more.
const COMMAND_QUEUE: usize = 256;
/// Longest wait for neighbours to answer that prefixes are unregistered.
const MAX_LEAVING: Duration = Duration::from_millis(500);

/// A running node. Clones are handles on the same node; it runs until [`shutdown`](Self::shutdown).
#[derive(Clone, Debug)]
pub struct Node {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: NodeConfig,
    plane: Arc<Plane>,
    commands: mpsc::Sender<Command>,
    tasks: TaskTracker,
    lanes: Arc<Lanes>,
    /// Who tells a routing daemon of prefixes, if it is told.
    readvertising: OnceLock<Arc<dyn Readvertises>>,
    /// Set when the node stops: nothing new begins, what is queued goes out.
    stopping: CancellationToken,
    /// Tasks of registrations, and the token that cancels them: before anything else stops, so that their commands can leave.
    registrations: TaskTracker,
    leaving: CancellationToken,
    /// Set when stopping took too long: every task ends where it is.
    aborting: CancellationToken,
}

/// Why the node did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// The node has stopped.
    #[error("the node has stopped")]
    Stopped,
    /// There is no such face.
    #[error("there is no face {0}")]
    NoSuchFace(FaceId),
    /// The forwarder took no more faces.
    #[error(transparent)]
    Face(#[from] AddFaceError),
    /// The forwarder took no more routes.
    #[error(transparent)]
    Route(#[from] namecast_forward::AddRouteError),
    /// A face of this kind cannot have these options.
    #[error("the face cannot have {0:?}")]
    ImpossibleOptions(FaceOptions),
    /// Only addresses that can be connected to may be given.
    #[error("{0} is not an address that a node can connect to{reason}", reason = obstacle(.0))]
    NotConnectable(FaceUri),
    /// Ethernet faces are made on interfaces only that were opened for them.
    #[error("{0} carries no Ethernet faces")]
    NoEthernet(FaceUri),
}

fn obstacle(uri: &FaceUri) -> String {
    let obstacle = uri.obstacle();
    obstacle.map_or_else(String::new, |reason| format!(": {reason}"))
}

impl Node {
    /// Starts a node on which an application of the crate's own is `served` that answers under `prefixes`, if there are any: it
    /// has the first face, and hears of faces that come and go. Must be called inside a tokio runtime.
    pub(crate) fn run(
        config: NodeConfig,
        prefixes: Vec<Name>,
        served: impl FnOnce(&Self, LinkEnd, watch::Receiver<u64>),
    ) -> Self {
        let (commands, command_queue) = mpsc::channel(COMMAND_QUEUE);
        let forwarder = namecast_forward::Config {
            seed: seed(config.forwarder.seed),
            hash_key: HashKey::from_words(
                [(); 3].map(|()| u64::from_ne_bytes(key_store::random())),
            ),
            // Links and applications hand in each frame in an allocation of its own.
            keep: namecast_forward::Keep::LargeFrames,
            learning: config.learning(Clock::new()),
            ..config.forwarder.clone()
        };
        let shared = Shared {
            plane: Arc::new(Plane::new(
                Clock::new(),
                &forwarder,
                (config.forwarders, &config.hops),
                config.udp.strangers.clone(),
            )),
            commands,
            tasks: TaskTracker::new(),
            lanes: Arc::new(Lanes::new(config.forwarders)),
            readvertising: OnceLock::new(),
            stopping: CancellationToken::new(),
            registrations: TaskTracker::new(),
            leaving: CancellationToken::new(),
            aborting: CancellationToken::new(),
            config,
        };
        let node = Self {
            shared: Arc::new(shared),
        };
        let mut event_loop = EventLoop::new(node.spawner());
        // A forwarder that may not have even one face has no such application.
        if !prefixes.is_empty()
            && let Ok(link) =
                event_loop.add_face(NewFace::application("management").with_local_fields())
        {
            for prefix in prefixes {
                event_loop.add_route(prefix, link.face, 0).ok();
            }
            served(&node, link, event_loop.face_events.subscribe());
        }
        node.spawn(event_loop.run(command_queue));
        node
    }

    /// Changes a face as `options` say, or not at all.
    ///
    /// # Errors
    /// If there is no such face, or it cannot be so.
    pub async fn update_face(&self, face: FaceId, options: FaceOptions) -> Result<(), NodeError> {
        self.ask(|reply| Command::UpdateFace {
            face,
            options,
            reply,
        })
        .await?
    }

    /// Whether the face's peer can be reached at present, and from then on every change of that.
    ///
    /// # Errors
    /// If there is no such face.
    pub async fn link_state(&self, face: FaceId) -> Result<watch::Receiver<LinkState>, NodeError> {
        self.query(|reply| Query::LinkState(face, reply))
            .await?
            .ok_or(NodeError::NoSuchFace(face))
    }

    /// Waits until the face's peer can be reached.
    ///
    /// # Errors
    /// If there is no such face, or no more.
    pub async fn connected(&self, face: FaceId) -> Result<(), NodeError> {
        let mut state = self.link_state(face).await?;
        let reached = state.wait_for(|state| matches!(state, LinkState::Up)).await;
        reached.map(|_| ()).map_err(|_| NodeError::NoSuchFace(face))
    }

    /// Ends a face; its routes go with it.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn remove_face(&self, face: FaceId) -> Result<(), NodeError> {
        let command = Command::RemoveFace(face);
        let sent = self.shared.commands.send(command).await;
        sent.map_err(|_| NodeError::Stopped)
    }

    /// Lets nobody come from `networks`, and anybody from those that were denied before. Faces of peers there end, except those that
    /// this node made.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn deny(&self, networks: Vec<Network>) -> Result<(), NodeError> {
        self.config().deny.set(networks);
        let sent = self.shared.commands.send(Command::EndDenied).await;
        sent.map_err(|_| NodeError::Stopped)
    }

    /// Sends Interests for names under `prefix` to `face`; of several next hops, the strategy takes the lowest `cost`.
    ///
    /// # Errors
    /// If there is no such face, or the table is full.
    pub async fn add_route(&self, prefix: Name, face: FaceId, cost: u64) -> Result<(), NodeError> {
        self.ask(|reply| Command::AddRoute {
            prefix,
            face,
            cost,
            reply,
        })
        .await?
    }

    /// Takes a route back; no effect if there is none.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn remove_route(&self, prefix: Name, face: FaceId) -> Result<(), NodeError> {
        self.ask(|reply| Command::RemoveRoute {
            prefix,
            face,
            reply,
        })
        .await
    }

    /// Chooses how Interests for names under `prefix` are forwarded.
    ///
    /// # Errors
    /// If the node has stopped, or the table is full.
    pub fn set_strategy(&self, prefix: &Name, strategy: StrategyKind) -> Result<(), NodeError> {
        // The name may be part of a received packet, whose memory the table should not hold on to.
        let prefix = prefix.detached();
        let plane = self.running()?;
        Ok(plane.change(|forwarder| forwarder.set_strategy(prefix.clone(), strategy))?)
    }

    /// Returns the strategy that a name as management has it stands for, one of the program's [own](NodeConfig::strategy) among
    /// them.
    ///
    /// # Errors
    /// If there is no such strategy, or it has no such parameter.
    pub fn strategy_named(&self, name: &Name) -> Result<StrategyKind, StrategyNameError> {
        StrategyKind::from_name_among(name, &self.shared.plane.own_strategies)
    }

    /// Takes a choice of strategy back; no effect if there is none.
    ///
    /// # Errors
    /// If the node has stopped.
    pub fn unset_strategy(&self, prefix: &Name) -> Result<(), NodeError> {
        let plane = self.running()?;
        plane.change(|forwarder| forwarder.unset_strategy(prefix));
        Ok(())
    }

    /// Faces, routes and counters as they are now.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn status(&self) -> Result<NodeStatus, NodeError> {
        let status = self.query(Query::Status).await?;
        Ok(NodeStatus {
            readvertising: self.shared.readvertising.get().map(|it| it.status()),
            tickets: self.config().management.tickets.counters(),
            rights: self.config().management.rights.counters(),
            ..status
        })
    }

    /// Returns the faces with a pending Interest under `prefix`. Viewers of a live stream always have one. Looks at all pending Interests.
    pub fn waiting_faces(&self, prefix: &Name) -> BTreeSet<FaceId> {
        self.shared.plane.waiting_faces(prefix)
    }

    /// Traces every frame that the node takes and sends from now on. `capacity` frames may wait for the receiver; others are left out
    /// and counted. `None`: the node is traced already.
    pub fn trace(&self, capacity: usize) -> Option<Trace> {
        self.shared.plane.tap.open(capacity)
    }

    /// Stops the node: registrations are taken back, listeners end, what is queued goes out, connections close. Takes no longer than
    /// [`NodeConfig::shutdown_timeout`]; repeated calls are harmless.
    pub async fn shutdown(&self) {
        self.shared.leaving.cancel();
        self.shared.registrations.close();
        // A neighbour that does not answer forgets by itself.
        let _ = tokio::time::timeout(MAX_LEAVING, self.shared.registrations.wait()).await;
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        let timeout = self.config().shutdown_timeout;
        if tokio::time::timeout(timeout, self.shared.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("some connections did not end in time and were cut off");
            self.shared.aborting.cancel();
            self.shared.tasks.wait().await;
        }
    }

    /// The clock this node goes by.
    pub fn clock(&self) -> Clock {
        self.shared.plane.clock
    }

    /// What the node was told when it started.
    pub fn config(&self) -> &NodeConfig {
        &self.shared.config
    }
}

/// A seed that nobody can guess, unless the configuration gives one.
fn seed(configured: u64) -> u64 {
    match configured {
        0 => u64::from_ne_bytes(key_store::random()),
        seed => seed,
    }
}
