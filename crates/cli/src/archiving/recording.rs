//! Drives the recorder, writes what it gives, and says who signed it.

use bytes::Bytes;
use namecast_apps::archive::recorder::{self, Recorder};
use namecast_apps::live::watcher::{Signer, Verdict};
use namecast_archive::Writer;
use namecast_command::pump::{send_all, sleep_until};
use namecast_net::{ApplicationFace, Clock, LinkState};
use tokio::sync::{mpsc, watch};
use tokio::time::interval;

use super::keeper::Troubles;
use super::{BATCH, SYNC_INTERVAL, Sentence, moment, tell};
use crate::key_check::KeyCheck;

/// The recorder and what writes.
pub(super) struct Recording {
    pub(super) clock: Clock,
    pub(super) recorder: Recorder,
    pub(super) writer: Writer,
    pub(super) keys: KeyCheck,
    pub(super) say: mpsc::Sender<Sentence>,
    pub(super) troubles: Troubles,
    pub(super) shown: watch::Sender<(recorder::Counters, u64)>,
    pub(super) link: Option<watch::Receiver<LinkState>>,
    /// Whether another key than the recorded one turned out to be the remembered one.
    pub(super) is_refused: bool,
}

impl Recording {
    /// Records until the face is gone, or it is to stop.
    pub(super) async fn run(mut self, face: ApplicationFace, mut stopping: watch::Receiver<bool>) {
        let (sender, mut receiver) = face.split();
        let mut packets = Vec::with_capacity(BATCH);
        let mut tick = interval(SYNC_INTERVAL);
        self.recorder.handle_timeout(self.clock.now());
        loop {
            let interests = self.drain();
            if self.is_refused || !send_all(&sender, interests).await {
                break;
            }
            let deadline = self.recorder.poll_timeout();
            tokio::select! {
                alive = receiver.recv_many(&mut packets, BATCH) => {
                    if !alive {
                        break;
                    }
                    for packet in packets.drain(..) {
                        self.recorder.handle_packet(self.clock.now(), packet);
                    }
                }
                _ = tick.tick() => self.sync().await,
                () = sleep_until(self.clock, deadline) => {}
                is_up = changed(&mut self.link) => {
                    if is_up {
                        self.recorder.handle_link_change(self.clock.now());
                    }
                }
                _ = stopping.changed() => break,
            }
            self.recorder.handle_timeout(self.clock.now());
        }
        self.drain();
        let finished = self.writer.finish(moment(self.clock)).await;
        if let Err(error) = finished {
            tell(&self.say, error.to_string());
        }
    }

    /// Writes what was recorded. Gives the Interests to send.
    fn drain(&mut self) -> Vec<Bytes> {
        let mut interests = Vec::new();
        while let Some(output) = self.recorder.poll_output() {
            let now = moment(self.clock);
            let written = match output {
                recorder::Output::Interest(interest) => {
                    interests.push(interest);
                    continue;
                }
                recorder::Output::Event(event) => {
                    self.on_event(&event);
                    continue;
                }
                recorder::Output::Sample(packets) => self.writer.append(now, &packets),
                recorder::Output::Object { data, replaces } => match replaces {
                    Some(replaced) => self.writer.append_lasting(now, &data, &replaced),
                    None => self.writer.append(now, &[*data]),
                },
            };
            if let Err(error) = written {
                let trouble = format!("not kept: {error}");
                self.troubles.tell(&self.say, now.monotonic, trouble);
            }
        }
        interests
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
        let figures = (*self.recorder.counters(), self.recorder.backlog());
        self.shown.send_replace(figures);
    }
}

/// Waits for the link to change, and tells whether it is up then.
async fn changed(link: &mut Option<watch::Receiver<LinkState>>) -> bool {
    match link {
        Some(state) => match state.changed().await {
            Ok(()) => matches!(*state.borrow_and_update(), LinkState::Up),
            Err(_) => core::future::pending().await,
        },
        None => core::future::pending().await,
    }
}
