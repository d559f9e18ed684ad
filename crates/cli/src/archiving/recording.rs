//! Writes what the recorder gives, and says who signed it.

use namecast::Handle;
use namecast_apps::archive::recorder::{self, Recorded, Recorder};
use namecast_apps::live::watcher::{Signer, Verdict};
use namecast_archive::Writer;
use namecast_net::{Clock, LinkState};
use tokio::sync::{mpsc, watch};
use tokio::time::interval;

use super::keeper::Troubles;
use super::{Recorded as Shown, SYNC_INTERVAL, Sentence, moment, tell};
use crate::key_check::KeyCheck;

/// The recorder and what writes.
pub(super) struct Recording {
    pub(super) clock: Clock,
    pub(super) recorder: Handle<Recorder>,
    pub(super) writer: Writer,
    pub(super) keys: KeyCheck,
    pub(super) say: mpsc::Sender<Sentence>,
    pub(super) troubles: Troubles,
    pub(super) shown: watch::Sender<Shown>,
    pub(super) link: Option<watch::Receiver<LinkState>>,
    /// Whether another key than the recorded one turned out to be the remembered one.
    pub(super) is_refused: bool,
}

impl Recording {
    /// Writes what is recorded, until the recorder ends, or it is to stop.
    pub(super) async fn run(
        mut self,
        mut recorded: mpsc::Receiver<Recorded>,
        mut stopping: watch::Receiver<bool>,
    ) {
        let mut tick = interval(SYNC_INTERVAL);
        while !self.is_refused {
            tokio::select! {
                what = recorded.recv() => match what {
                    Some(what) => self.take(what),
                    None => break,
                },
                _ = tick.tick() => self.sync().await,
                is_up = changed(&mut self.link) => {
                    if is_up {
                        self.recorder.try_call(|recorder, now| recorder.handle_link_change(now.monotonic));
                    }
                }
                _ = stopping.changed() => break,
            }
        }
        if !self.is_refused {
            while let Ok(what) = recorded.try_recv() {
                self.take(what);
            }
        }
        let finished = self.writer.finish(moment(self.clock)).await;
        if let Err(error) = finished {
            tell(&self.say, error.to_string());
        }
    }

    /// Writes what was recorded.
    fn take(&mut self, recorded: Recorded) {
        let now = moment(self.clock);
        let written = match recorded {
            Recorded::Event(event) => return self.on_event(&event),
            Recorded::Sample(packets) => self.writer.append(now, &packets),
            Recorded::Object { data, replaces } => match replaces {
                Some(replaced) => self.writer.append_lasting(now, &data, &replaced),
                None => self.writer.append(now, &[*data]),
            },
        };
        if let Err(error) = written {
            let trouble = format!("not kept: {error}");
            self.troubles.tell(&self.say, now.monotonic, trouble);
        }
    }

    fn on_event(&mut self, event: &recorder::Event) {
        match event {
            recorder::Event::Signer(signer) => self.on_signer(signer),
            recorder::Event::Recording { .. } => {
                tell(&self.say, event.to_string());
                // The catalogue is verified.
                self.on_verified();
            }
            _ => tell(&self.say, event.to_string()),
        }
    }

    fn on_signer(&mut self, signer: &Signer) {
        let text = self.keys.on_signer(signer);
        match signer.verdict {
            Verdict::Refused(_) => tell(&self.say, Sentence::Refusal(text)),
            _ => tell(&self.say, text),
        }
    }

    /// Remembers the signer. If another one was remembered meanwhile, nothing more of this one is kept.
    fn on_verified(&mut self) {
        match self.keys.on_verified() {
            Ok(text) => text.into_iter().for_each(|text| tell(&self.say, text)),
            Err(error) => {
                tell(&self.say, Sentence::Refusal(error.to_string()));
                self.is_refused = true;
            }
        }
    }

    async fn sync(&mut self) {
        if let Err(error) = self.writer.sync(moment(self.clock)).await {
            let trouble = format!("not kept: {error}");
            self.troubles.tell(&self.say, self.clock.now(), trouble);
        }
        let figures = |recorder: &mut Recorder, _| Shown {
            counters: *recorder.counters(),
            backlog: recorder.backlog(),
            publisher: recorder.publisher_memory(),
        };
        if let Some(figures) = self.recorder.call(figures).await {
            self.shown.send_replace(figures);
        }
    }
}

/// Waits for the link to change, and returns whether it is up then.
async fn changed(link: &mut Option<watch::Receiver<LinkState>>) -> bool {
    match link {
        Some(state) => match state.changed().await {
            Ok(()) => matches!(*state.borrow_and_update(), LinkState::Up),
            Err(_) => core::future::pending().await,
        },
        None => core::future::pending().await,
    }
}
