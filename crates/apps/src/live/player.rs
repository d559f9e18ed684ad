//! Watchers whose front-end decodes nothing: a frame counts as shown when its time has come.

use std::collections::VecDeque;

use bytes::Bytes;
use namecast_stream::StreamKind;
use namecast_units::Instant;

use super::Stats;
use super::watcher::{Watch, Watched, Watcher};
use crate::{Application, Now, Output};

/// Frames that wait for their time; more are not reported as shown.
const MAX_WAITING: usize = 1_024;

/// Frames of one watch that were delivered and are not shown yet, with the time at which they are.
#[derive(Debug, Default)]
pub struct Screen {
    waiting: VecDeque<(Instant, StreamKind, u64)>,
}

impl Screen {
    /// Takes what was delivered.
    pub fn take(&mut self, watched: &Watched) {
        if let Watched::Frame(frame) = watched
            && !frame.late
            && self.waiting.len() < MAX_WAITING
        {
            let shown = (frame.render_at, frame.stream, frame.position);
            self.waiting.push_back(shown);
        }
    }

    /// Tells `watch` of the frames whose time has come.
    pub fn show_due(&mut self, now: Instant, watch: &mut Watch) {
        self.waiting.retain(|&(at, stream, position)| {
            if at <= now {
                watch.handle_rendered(now, stream, position);
            }
            at > now
        });
    }

    /// Returns when to call [`show_due`](Self::show_due) next, if ever.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.iter().map(|&(at, ..)| at).min()
    }
}

/// A watcher that is told by itself when frames are shown, so that its figures hold.
#[derive(Debug)]
pub struct Player {
    /// The watcher.
    pub watcher: Watcher,
    screen: Screen,
}

impl Player {
    /// Plays what `watcher` delivers.
    pub fn new(watcher: Watcher) -> Self {
        Self {
            watcher,
            screen: Screen::default(),
        }
    }

    /// Returns delays, losses and rates so far.
    pub fn stats(&mut self, now: Now) -> Stats {
        self.watcher.stats(now.monotonic)
    }

    /// Has everything that is pending requested again, since the connection came back.
    pub fn handle_link_change(&mut self, now: Now) {
        self.watcher.handle_link_change(now.monotonic);
    }
}

impl Application for Player {
    type Event = Watched;

    fn handle_frame(&mut self, now: Now, frame: Bytes) {
        self.watcher.handle_packet(now.monotonic, frame);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.screen.show_due(now.monotonic, &mut self.watcher);
        self.watcher.handle_timeout(now.monotonic);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let shown = self.screen.poll_timeout();
        self.watcher.poll_timeout().into_iter().chain(shown).min()
    }

    fn poll_output(&mut self) -> Option<Output<Watched>> {
        let output = self.watcher.poll_output()?;
        if let Output::Event(watched) = &output {
            self.screen.take(watched);
        }
        Some(output)
    }
}
