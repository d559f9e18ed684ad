//! Starting a node's tasks.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Plane;
use crate::NodeConfig;

/// What a part of the node needs to start tasks.
#[derive(Clone, Debug)]
pub(crate) struct Spawner {
    pub(crate) config: NodeConfig,
    pub(crate) stopping: CancellationToken,
    pub(crate) plane: Arc<Plane>,
    pub(super) tasks: TaskTracker,
    pub(super) aborting: CancellationToken,
}

impl Spawner {
    /// Runs `task` until it ends by itself or the node cuts everything off.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let aborting = self.aborting.clone();
        self.tasks.spawn(async move {
            aborting.run_until_cancelled(task).await;
        });
    }
}
