//! All that one node watches and fetches, over uplinks that they share.

use core::convert::Infallible;

use bytes::Bytes;
use namecast_apps::live::watcher::{ObjectId, Watch, WatchId, Watched, Watchers, WatchersConfig};
use namecast_apps::live::{Screen, Stats, WatcherConfig};
use namecast_apps::object::{self, Failure, Fetched, FetcherConfig};
use namecast_apps::{Application, Now, Output};
use namecast_stream::path::Control;
use namecast_units::Instant;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// Frames and news that wait in the channel of one watch at most. The watch keeps more.
const MAX_EVENTS: usize = 1_024;

/// Watches and objects. Each has a channel of its own, so a slow reader holds up no other.
#[derive(Debug)]
pub(crate) struct Consumers {
    watchers: Watchers,
    players: Vec<Player>,
    /// Objects that did not come yet, and who waits for them.
    objects: Vec<(ObjectId, oneshot::Sender<Result<Fetched, Failure>>)>,
}

#[derive(Debug)]
struct Player {
    id: WatchId,
    screen: Screen,
    events: mpsc::Sender<Watched>,
}

impl Consumers {
    /// Watches and fetches nothing yet. `seed` must be secret: an attacker who knows the Nonces could have them answered beforehand.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            watchers: Watchers::new(WatchersConfig {
                seed,
                control: Control::default(),
            }),
            players: Vec::new(),
            objects: Vec::new(),
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

    /// Fetches an object, unless its receiver is gone before it has come.
    pub(crate) fn fetch(
        &mut self,
        config: FetcherConfig,
    ) -> oneshot::Receiver<Result<Fetched, Failure>> {
        let (waiting, taken) = oneshot::channel();
        self.objects.push((self.watchers.fetch(config), waiting));
        taken
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

    /// Passes on what has come, and removes what nobody waits for any more.
    fn hand_out(&mut self) {
        self.hand_out_objects();
        let watchers = &mut self.watchers;
        self.players.retain_mut(|player| {
            let is_gone = player.hand_out(watchers) == Err(TrySendError::Closed(()));
            if is_gone {
                watchers.remove(player.id);
            }
            !is_gone
        });
    }

    fn hand_out_objects(&mut self) {
        let watchers = &mut self.watchers;
        let ended = self.objects.extract_if(.., |(id, waiting)| {
            waiting.is_closed() || watchers.has_object_ended(*id)
        });
        for (id, waiting) in ended.collect::<Vec<_>>() {
            let mut events = core::iter::from_fn(|| self.watchers.poll_object(id));
            if let Some(outcome) = events.find_map(outcome) {
                // Who waits may be gone by now.
                drop(waiting.send(outcome));
            }
            self.watchers.forget_object(id);
        }
    }
}

/// Returns how an object ended, if that is what `event` says.
fn outcome(event: object::Event) -> Option<Result<Fetched, Failure>> {
    match event {
        object::Event::Progress { .. } => None,
        object::Event::Fetched(fetched) => Some(Ok(fetched)),
        object::Event::Failed(failure) => Some(Err(failure)),
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

impl Application for Consumers {
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
