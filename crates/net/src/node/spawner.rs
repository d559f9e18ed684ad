//! Starting a node's tasks.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Plane;
use super::lanes::Lanes;
use crate::NodeConfig;

/// What a part of the node needs to start tasks.
#[derive(Clone, Debug)]
pub(crate) struct Spawner {
    pub(crate) config: NodeConfig,
    pub(crate) stopping: CancellationToken,
    pub(crate) plane: Arc<Plane>,
    pub(super) tasks: TaskTracker,
    pub(super) lanes: Arc<Lanes>,
    pub(super) aborting: CancellationToken,
    pub(super) registrations: TaskTracker,
    pub(super) leaving: CancellationToken,
}

impl Spawner {
    /// Returns the token that cancels a registration before the node stops, and the token that its task holds until it ends.
    pub(crate) fn registration_token(&self) -> (CancellationToken, TaskTrackerToken) {
        (self.leaving.child_token(), self.registrations.token())
    }

    /// A thread for a link, on which its socket is to be made and its tasks are to run.
    pub(crate) fn lane(&self) -> &Handle {
        self.lanes.next()
    }

    /// Runs `task` on a thread for links, until it ends by itself or the node cuts everything off.
    pub(crate) fn spawn_on(&self, lane: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        let aborting = self.aborting.clone();
        let task = async move {
            aborting.run_until_cancelled(task).await;
        };
        self.tasks.spawn_on(task, lane);
    }

    /// Runs `task` until it ends by itself or the node cuts everything off.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let aborting = self.aborting.clone();
        self.tasks.spawn(async move {
            aborting.run_until_cancelled(task).await;
        });
    }
}
