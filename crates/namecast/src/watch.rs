//! Streams in.

use core::time::Duration;

use namecast_apps::live::watcher::{Frame, RungChoice, Trust, Watched};
use namecast_apps::live::{Player, Stats, Watcher, WatcherConfig};
use namecast_net::Handle;
use namecast_units::Timestamp;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::node::{Node, parse_name};

/// What is to be watched. Say how, then [`start`](Self::start).
#[derive(Clone, Debug)]
pub struct Watch {
    node: Node,
    config: WatcherConfig,
}

impl Node {
    /// Begins to watch `name`, such as `/studio/camera1`: video and sound of it, live, as good as the network carries.
    ///
    /// # Errors
    /// If it is no name.
    pub fn watch(&self, name: &str) -> Result<Watch, Error> {
        let clock = self.inner().clock();
        let mut config = WatcherConfig::new(parse_name(name)?);
        config.wall_at_zero = clock.wall_at_zero();
        // Whoever could foresee Nonces and challenges could have them answered beforehand.
        config.seed = u64::from_le_bytes(namecast_net::random());
        Ok(Watch {
            node: self.clone(),
            config,
        })
    }
}

impl Watch {
    /// Watches the first data stream, and neither video nor sound.
    #[must_use]
    pub const fn data(mut self) -> Self {
        self.config.video = false;
        self.config.audio = false;
        self.config.data = true;
        self
    }

    /// Delays playback by `target` beyond the earliest moment at which a frame could be here: more of it repairs more losses.
    /// 100 ms unless said otherwise.
    #[must_use]
    pub const fn target(mut self, target: Duration) -> Self {
        self.config.target = target;
        self
    }

    /// Takes this bitrate of the video.
    #[must_use]
    pub fn rung(mut self, rung: impl Into<RungChoice>) -> Self {
        self.config.rung = rung.into();
        self
    }

    /// Begins with what was captured at this time, if an archive has it.
    #[must_use]
    pub const fn from(mut self, captured_at: Timestamp) -> Self {
        self.config.from = Some(captured_at);
        self
    }

    /// Accepts only what this vouches for, instead of the first key that is seen.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.config.trust = trust;
        self
    }

    /// Changes anything else.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut WatcherConfig)) -> Self {
        change(&mut self.config);
        self
    }

    /// Joins as soon as the network answers.
    ///
    /// # Errors
    /// If the node has stopped.
    pub async fn start(self) -> Result<Watching, Error> {
        let player = Player::new(Watcher::new(self.config));
        let (handle, events) = self.node.run(None, player).await?;
        let watching = Watching { handle, events };
        let player = watching.handle.downgrade();
        let on_return = move || {
            let player = player.upgrade();
            player.is_some_and(|player| player.try_call(Player::handle_link_change))
        };
        self.node.on_return_of_uplinks(on_return).await?;
        Ok(watching)
    }
}

/// What is being watched. It ends when this is dropped.
#[derive(Debug)]
pub struct Watching {
    handle: Handle<Player>,
    events: mpsc::Receiver<Watched>,
}

impl Watching {
    /// Waits for what comes next: a frame, or news of the stream. `None` once the node has stopped.
    pub async fn next(&mut self) -> Option<Watched> {
        self.events.recv().await
    }

    /// Waits for the next frame, verified and in order. `None` once the node has stopped.
    pub async fn next_frame(&mut self) -> Option<Frame> {
        loop {
            if let Watched::Frame(frame) = self.next().await? {
                return Some(frame);
            }
        }
    }

    /// Moves the playout target. Frames that were not delivered yet are timed anew; none is lost.
    pub fn set_target(&self, target: Duration) {
        self.handle
            .try_call(move |player, now| player.watcher.set_target(now.monotonic, target));
    }

    /// Changes to another bitrate at the next key frame.
    pub fn set_rung(&self, rung: impl Into<RungChoice>) {
        let rung = rung.into();
        self.handle
            .try_call(move |player, now| player.watcher.set_rung(now.monotonic, rung));
    }

    /// Returns delays, losses and rates so far; `None` once the node has stopped.
    pub async fn stats(&self) -> Option<Stats> {
        self.handle.call(Player::stats).await
    }

    /// The player, to call it.
    pub const fn handle(&self) -> &Handle<Player> {
        &self.handle
    }
}
