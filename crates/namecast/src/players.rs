//! All watches of one node, which share its uplinks.

use core::convert::Infallible;

use bytes::Bytes;
use namecast_apps::live::watcher::{Watch, WatchId, Watched, Watchers, WatchersConfig};
use namecast_apps::live::{Screen, Stats, WatcherConfig};
use namecast_apps::{Application, Now, Output};
use namecast_stream::path::Control;
use namecast_units::Instant;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

/// Frames and news that wait in the channel of one watch at most. The watch keeps more.
const MAX_EVENTS: usize = 1_024;

/// Watches. Each has a channel of its own, so a slow reader holds up no other.
#[derive(Debug)]
pub(crate) struct Players {
    watchers: Watchers,
    players: Vec<Player>,
}

#[derive(Debug)]
struct Player {
    id: WatchId,
    screen: Screen,
    events: mpsc::Sender<Watched>,
}

impl Players {
    /// Watches nothing yet. `seed` must be secret: an attacker who knows the Nonces could have them answered beforehand.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            watchers: Watchers::new(WatchersConfig {
                seed,
                control: Control::default(),
            }),
            players: Vec::new(),
        }
    }

    /// Watches one more root. The watch ends when its receiver is gone.
    pub(crate) fn add(&mut self, config: WatcherConfig) -> (WatchId, mpsc::Receiver<Watched>) {
        let (events, taken) = mpsc::channel(MAX_EVENTS);
        let id = self.watchers.add(config);
        self.players.push(Player {
            id,
            screen: Screen::default(),
            events,
        });
        (id, taken)
    }

    pub(crate) fn get_mut(&mut self, id: WatchId) -> Option<&mut Watch> {
        self.watchers.get_mut(id)
    }

    pub(crate) fn stats(&self, now: Now, id: WatchId) -> Option<Stats> {
        self.watchers.stats(now.monotonic, id)
    }

    /// The connection came back.
    pub(crate) fn handle_link_change(&mut self, now: Now) {
        self.watchers.handle_link_change(now.monotonic);
    }

    /// Passes frames and news to channels with room, and removes watches whose receiver is gone.
    fn hand_out(&mut self) {
        let watchers = &mut self.watchers;
        self.players.retain_mut(|player| {
            let is_gone = player.hand_out(watchers) == Err(TrySendError::Closed(()));
            if is_gone {
                watchers.remove(player.id);
            }
            !is_gone
        });
    }
}

impl Player {
    fn hand_out(&mut self, watchers: &mut Watchers) -> Result<(), TrySendError<()>> {
        loop {
            let room = self.events.try_reserve()?;
            let Some(watched) = watchers.poll_watched(self.id) else {
                return Ok(());
            };
            self.screen.take(&watched);
            room.send(watched);
        }
    }
}

impl Application for Players {
    type Event = Infallible;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.watchers.handle_frame(now, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        for player in &mut self.players {
            if let Some(watch) = self.watchers.get_mut(player.id) {
                player.screen.show_due(now.monotonic, watch);
            }
        }
        self.watchers.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let shown = self
            .players
            .iter()
            .filter_map(|it| it.screen.poll_timeout());
        shown.chain(self.watchers.poll_timeout()).min()
    }

    fn poll_output(&mut self) -> Option<Output<Infallible>> {
        let packet = self.watchers.poll_packet();
        if packet.is_none() {
            self.hand_out();
        }
        packet.map(Output::Send)
    }
}
