//! One pushed stream from its first octet to its last: through a pipe to ffmpeg, and from there under its name.

use core::pin::pin;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use namecast_media::ingest::source::{Input, Pipe};
use namecast_units::Duration;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::FIGURES_INTERVAL;
use super::super::publishing::{Figures, Happened, Manner, Publishing};
use super::Told;
use super::outlet::Place;
use crate::arguments::{Encoding, Keys, Media};
use crate::push::{Admitted, Gate, GateCounters, Pushed};

/// A pusher that sends nothing for so long is gone.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// One that sends nothing for so long may be gone: pictures come many times as often.
const SILENT_AFTER: Duration = Duration::from_millis(500);
/// Octets that are carried to ffmpeg at once.
const READ_SIZE: usize = 1 << 16;

/// A stream that is pushed, and what it takes to publish it.
pub(super) struct Publication {
    pub(super) place: Place,
    pub(super) encoding: Encoding,
    pub(super) keys: Keys,
    pub(super) streams: Streams,
    pub(super) told: mpsc::Sender<Told>,
}

impl Publication {
    /// Publishes what is pushed until the pusher leaves, and tells how it went. The name is free as soon as the pusher has left:
    /// what ffmpeg still holds of a live stream is worth less than that the next one is taken.
    pub(super) async fn run(self, pushed: Pushed) {
        let name = pushed.admitted.name().to_string();
        let why = match self.publish(pushed, &name).await {
            Ok(left) => left.to_owned(),
            Err(error) => format!("{error:#}").replace('\n', "; "),
        };
        let object = json!({ "event": "ended", "name": name, "why": why });
        self.tell(format!("{name} ended: {why}"), object).await;
    }

    /// Returns how the pusher left.
    async fn publish(&self, pushed: Pushed, name: &str) -> anyhow::Result<&'static str> {
        let from = format!("{} from {}", pushed.protocol, pushed.from);
        // Held until this function returns.
        let admitted = pushed.admitted;
        let (reader, writer) = std::io::pipe()?;
        let writer = pipe::Sender::from_owned_fd(writer.into())?;
        let media = Media {
            input: vec![Input::Pipe(Pipe::new(
                reader,
                pushed.container,
                from.clone(),
            ))],
            data: Vec::new(),
            looped: false,
            encoded: Vec::new(),
            encoding: self.encoding.clone(),
        };
        let mut carrying = pin!(async {
            tokio::select! {
                left = carry(pushed.octets, writer, &admitted) => left,
                () = admitted.given_away() => "its pusher fell silent, and another one came",
            }
        });
        let node = &self.place.node;
        let mut publishing = tokio::select! {
            started = Publishing::start(node, admitted.name(), &media, &self.keys, Manner::plain(node.clock())) => started?,
            left = &mut carrying => bail!("{left}, before it was known what is pushed"),
        };
        self.tell_begun(&publishing, name, &from).await;
        let listed = self.streams.list(name);
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        loop {
            tokio::select! {
                happened = publishing.next() => match happened {
                    Happened::Frame => {}
                    Happened::Trouble(text) => {
                        let object = json!({ "event": "trouble", "name": name, "what": text });
                        self.tell(format!("{name}: {text}"), object).await;
                    }
                    Happened::Over(outcome) => {
                        outcome?;
                        return Ok("the input is over");
                    }
                },
                _ = tick.tick() => listed.set(publishing.figures().await),
                left = &mut carrying => return Ok(left),
            }
        }
    }

    async fn tell_begun(&self, publishing: &Publishing, name: &str, from: &str) {
        let urls = &self.place.urls;
        let streams = publishing.describe();
        let watch_at = match urls.first() {
            Some(url) => format!("open {url}"),
            None => format!("namecast watch {name}"),
        };
        let object = json!({
            "event": "begun", "name": name, "from": from, "urls": urls, "streams": publishing.streams_json(),
            "key_name": publishing.key_name.to_string(), "key_digest": publishing.key_digest,
        });
        let sentence = format!("{name} began, {from}: {streams}; to watch: {watch_at}");
        self.tell(sentence, object).await;
    }

    async fn tell(&self, sentence: String, object: Value) {
        // Nobody listens when the program ends.
        let _ = self.told.send(Told { sentence, object }).await;
    }
}

/// Carries what is pushed to ffmpeg. Returns how that ended.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: pipe::Sender,
    admitted: &Admitted,
) -> &'static str {
    let mut octets = vec![0; READ_SIZE];
    let mut silence = Duration::ZERO;
    while silence < MAX_SILENCE {
        match timeout(SILENT_AFTER, from.read(&mut octets)).await {
            Err(_) => silence += SILENT_AFTER,
            Ok(Ok(0)) => return "the pusher left",
            Ok(Err(_)) => return "the connection broke",
            Ok(Ok(count)) => {
                silence = Duration::ZERO;
                let written = timeout(MAX_SILENCE, to.write_all(&octets[..count])).await;
                if !matches!(written, Ok(Ok(()))) {
                    return "ffmpeg does not read on";
                }
            }
        }
        admitted.set_silent(silence > Duration::ZERO);
    }
    "the pusher fell silent"
}

/// Figures of the streams that are being published.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Mutex<BTreeMap<String, Figures>>>);

impl Streams {
    fn list(&self, name: &str) -> Listed {
        Listed {
            streams: self.clone(),
            name: name.to_owned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Figures>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, until it is dropped.
struct Listed {
    streams: Streams,
    name: String,
}

impl Listed {
    fn set(&self, figures: Figures) {
        self.streams.lock().insert(self.name.clone(), figures);
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.name);
    }
}

/// One object of the statistics.
#[derive(Debug, Serialize)]
pub(super) struct ServeFigures {
    #[serde(flatten)]
    gate: GateCounters,
    /// By name.
    streams: BTreeMap<String, Figures>,
}

impl ServeFigures {
    pub(super) fn new(gate: &Gate, streams: &Streams) -> Self {
        Self {
            gate: gate.counters(),
            streams: streams.lock().clone(),
        }
    }

    /// A line for people.
    pub(super) fn line(&self) -> String {
        let frames: u64 = self.streams.values().map(|it| it.frames_published).sum();
        let waiting: u64 = self.streams.values().map(|it| it.interests_pending).sum();
        format!(
            "{} streams, {frames} frames published, {waiting} Interests waiting",
            self.streams.len()
        )
    }
}
