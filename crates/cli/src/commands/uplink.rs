//! The connection to the forwarder, for commands that go on while it is away, and say so.

use namecast_net::{FaceId, LinkState, Node};
use tokio::sync::watch;

use crate::connect::{Chosen, Connect};

/// A face to the forwarder that was asked for.
#[derive(Debug)]
pub(super) struct Uplink {
    face: FaceId,
    remote: String,
    state: watch::Receiver<LinkState>,
    was_up: bool,
}

impl Uplink {
    /// Connects `node`, or goes on trying.
    pub(super) async fn new(node: &Node, connect: &Connect) -> anyhow::Result<Self> {
        let Chosen { uri, face } = connect.keep(node).await?;
        let state = node.link_state(face).await?;
        let was_up = matches!(*state.borrow(), LinkState::Up);
        Ok(Self {
            face,
            remote: uri.to_string(),
            state,
            was_up,
        })
    }

    /// Its address, for people.
    pub(super) fn remote(&self) -> &str {
        &self.remote
    }

    pub(super) const fn face(&self) -> FaceId {
        self.face
    }

    /// Waits for a change. Returns whether the forwarder can be reached, and the same for people.
    pub(super) async fn changed(&mut self) -> (bool, String) {
        if self.state.changed().await.is_err() {
            // The node has ended, and the command is about to.
            core::future::pending::<()>().await;
        }
        let state = self.state.borrow_and_update().clone();
        let is_up = matches!(state, LinkState::Up);
        self.was_up |= is_up;
        let remote = &self.remote;
        let text = match state {
            LinkState::Up => format!("Connected to {remote}"),
            LinkState::Down(reason) => format!(
                "No forwarder at {remote} at the moment ({reason}); trying on. To start one: namecast forwarder"
            ),
            LinkState::Connecting => format!("Connecting to {remote}"),
        };
        (is_up, text)
    }

    /// Says whether anything can have gone through the forwarder.
    ///
    /// # Errors
    /// If it was never there.
    pub(super) fn ensure_was_up(&self) -> anyhow::Result<()> {
        let remote = &self.remote;
        anyhow::ensure!(
            self.was_up,
            "no forwarder at {remote}: start one with namecast forwarder, or name another with --connect"
        );
        Ok(())
    }
}
