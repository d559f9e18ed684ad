//! One pushed stream from its first octet to its last: through a pipe to ffmpeg, and from there under its name.

use core::pin::pin;
use std::collections::BTreeMap;
use std::io::{self, PipeWriter};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use namecast_media::ingest::source::{Input, Pipe};
use namecast_media::ingest::{Exceeded, IngestError, Meter};
use namecast_packet::Name;
use namecast_units::Duration;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::super::FIGURES_INTERVAL;
use super::super::claiming::{ClaimedName, Claiming};
use super::super::publish::LINGER;
use super::super::publishing::{Figures, Happened, Manner, Publishing};
use super::Told;
use super::described::Described;
use super::outlet::Place;
use crate::arguments::{Encoding, Keys, Media, Reading};
use crate::push::{Admitted, FIRST_FRAME, Gate, GateCounters, Pushed, Seen};

/// A pusher that sends nothing for so long is gone.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// One that sends nothing for so long may be gone: pictures come many times as often.
const SILENT_AFTER: Duration = Duration::from_millis(500);
/// Longest wait for the frames that ffmpeg holds when the pusher leaves.
const MAX_REST: Duration = Duration::from_secs(2);
/// Octets that are carried to ffmpeg at once.
const READ_SIZE: usize = 1 << 16;

/// A stream that is pushed, and what it takes to publish it.
pub(super) struct Publication {
    pub(super) place: Place,
    pub(super) gate: Gate,
    pub(super) encoding: Encoding,
    pub(super) keys: Keys,
    /// Whether it takes names over from other publishers.
    pub(super) takes_over: bool,
    pub(super) streams: Streams,
    pub(super) told: mpsc::Sender<Told>,
}

impl Publication {
    /// Publishes the pushed stream until the pusher leaves, and reports how it ended. The last frames remain available for a while,
    /// unless another pusher wants the name.
    pub(super) async fn run(self, pushed: Pushed) {
        let name = pushed.admitted.name().to_string();
        let seen = pushed.seen.clone();
        let why = match self.publish(pushed, &name).await {
            Ok(left) => {
                let changed = seen.and_then(|seen| seen.get().changed);
                changed.map_or_else(|| left.to_owned(), |it| format!("{it}; it begins anew"))
            }
            Err(error) => {
                if let Some(exceeded) = exceeded(&error) {
                    self.gate.count(&exceeded.into());
                }
                format!("{error:#}").replace('\n', "; ")
            }
        };
        let object = json!({ "event": "ended", "name": name, "why": why });
        let reason = ("ended", name.clone());
        self.tell(reason, format!("{name} ended: {why}"), object)
            .await;
    }

    /// Returns how the pusher left.
    async fn publish(&self, pushed: Pushed, name: &str) -> anyhow::Result<&'static str> {
        let source = (pushed.protocol, pushed.from);
        // Held until this function returns, and the octets no shorter than the name is published: their pusher may begin anew then.
        let admitted = pushed.admitted;
        let mut octets = pushed.octets;
        let (reader, writer) = std::io::pipe()?;
        let writer = asynchronous(writer)?;
        let label = format!("{} from {}", source.0, source.1);
        let media = self.media(Pipe::new(reader, pushed.container, label));
        let mut carrying = pin!(async {
            tokio::select! {
                left = carry(&mut octets, writer, |is_silent| admitted.set_silent(is_silent), self.gate.limits().octets()) => left,
                () = admitted.given_away() => Ok("its pusher fell silent, and another one came, or its key was taken back"),
            }
        });
        let late_at = Instant::now() + FIRST_FRAME;
        let node = &self.place.node;
        let manner = self.manner();
        let mut claimed = self.claim(admitted.name(), manner).await?;
        let mut taken = pin!(taken(&mut claimed));
        let mut starting = pin!(Publishing::start(
            node,
            admitted.name(),
            &media,
            &self.keys,
            manner,
        ));
        let mut is_late = false;
        let mut publishing = loop {
            tokio::select! {
                started = &mut starting => break started?,
                left = &mut carrying => bail!("{}, before it was known what is pushed", left?),
                rival = &mut taken => return Err(rival),
                () = sleep_until(late_at), if !is_late => {
                    is_late = true;
                    self.tell_late(name, pushed.seen.as_ref()).await;
                }
            }
        };
        let listed = self.streams.list(name);
        let mut tick = tokio::time::interval(FIGURES_INTERVAL);
        let mut has_begun = false;
        loop {
            tokio::select! {
                happened = publishing.next() => match happened {
                    Happened::Frame => if !core::mem::replace(&mut has_begun, true) {
                        let seen = pushed.seen.as_ref().map(Seen::get);
                        let described = Described::new(seen, publishing.streams());
                        self.tell_begun(&publishing, name, &source, &described).await;
                    },
                    Happened::Trouble(text) => self.tell_trouble(name, &text).await,
                    Happened::Over(outcome) => {
                        outcome?;
                        return Ok("the input is over");
                    }
                },
                _ = tick.tick() => listed.set(publishing.figures().await),
                rival = &mut taken => return Err(rival),
                left = &mut carrying => {
                    let left = left?;
                    finish(&mut publishing, &admitted, pushed.seen.as_ref()).await;
                    return Ok(left);
                }
                () = sleep_until(late_at), if !has_begun && !is_late => {
                    is_late = true;
                    self.tell_late(name, pushed.seen.as_ref()).await;
                }
            }
        }
    }

    fn manner(&self) -> Manner {
        Manner {
            takes_over: self.takes_over,
            ..Manner::plain(self.place.node.clock())
        }
    }

    /// Claims the name at the forwarder that the stream is published through, if there is one.
    async fn claim(&self, name: &Name, manner: Manner) -> anyhow::Result<Option<ClaimedName>> {
        let Some((uplink, registered)) = &self.place.uplink else {
            return Ok(None);
        };
        let claiming = Claiming::new(name, &self.keys, None, manner).among(registered.clone());
        let claimed = ClaimedName::begin(&self.place.node, *uplink, claiming).await?;
        Ok(Some(claimed))
    }

    fn media(&self, pipe: Pipe) -> Media {
        Media {
            input: vec![Input::Pipe(pipe)],
            data: Vec::new(),
            reading: Reading::default(),
            title: None,
            looped: false,
            limits: Some(*self.gate.limits()),
            encoded: Vec::new(),
            encoding: self.encoding.clone(),
        }
    }

    /// Says that the stream flows, and what it is.
    async fn tell_begun(
        &self,
        publishing: &Publishing,
        name: &str,
        (protocol, from): &(&'static str, SocketAddr),
        described: &Described,
    ) {
        let urls = &self.place.urls;
        let watch_at = match urls.first() {
            Some(url) => format!("open {url}"),
            None => format!("namecast watch {name}"),
        };
        let mut object = json!({
            "event": "begun", "name": name, "from": format!("{protocol} from {from}"), "urls": urls,
            "streams": publishing.streams_json(), "key_name": publishing.key_name.to_string(),
            "key_digest": publishing.key_digest,
        });
        described.put_into(&mut object);
        let from = from.ip();
        let sentence =
            format!("{name}: {described} ({protocol} from {from}); to watch: {watch_at}");
        let reason = ("begun", name.to_owned());
        self.tell(reason, sentence, object).await;
    }

    /// Says why nothing is published yet.
    async fn tell_late(&self, name: &str, seen: Option<&Seen>) {
        let unseen = "nothing could be read of it so far: set the encoder's key frame interval to 2 s or less";
        let obstacle = seen.map_or(unseen, |seen| seen.get().obstacle());
        let text = format!(
            "nothing is published after {} s: {obstacle}",
            FIRST_FRAME.as_secs()
        );
        self.tell_trouble(name, &text).await;
    }

    async fn tell_trouble(&self, name: &str, text: &str) {
        let _ = self.told.send(Told::trouble(name, text)).await;
    }

    async fn tell(&self, reason: (&'static str, String), sentence: String, object: Value) {
        let told = Told {
            reason,
            sentence,
            object,
        };
        // Nobody listens when the program ends.
        let _ = self.told.send(told).await;
    }
}

/// Registers the name once it is free, and waits until somebody else turns out to publish it.
async fn taken(claimed: &mut Option<ClaimedName>) -> anyhow::Error {
    let Some(claimed) = claimed else {
        return core::future::pending().await;
    };
    loop {
        if let Err(rival) = claimed.changed().await {
            claimed.cancel();
            return rival;
        }
    }
}

/// Publishes the frames that ffmpeg still holds. Watchers can fetch them for [`LINGER`], unless the stream restarts or another pusher
/// wants the name.
async fn finish(publishing: &mut Publishing, admitted: &Admitted, seen: Option<&Seen>) {
    let begins_anew = seen.is_some_and(|seen| seen.get().changed.is_some());
    let rest = async {
        let over = async { while !matches!(publishing.next().await, Happened::Over(_)) {} };
        // A new pusher waits for the place: later frames are dropped.
        let is_over = timeout(MAX_REST, over).await.is_ok();
        if is_over && !begins_anew {
            sleep(LINGER).await;
        }
    };
    admitted.set_silent(true);
    tokio::select! {
        () = rest => {}
        () = admitted.given_away() => {}
    }
}

/// Makes the writing end of a pipe one that tasks wait for.
#[cfg(unix)]
fn asynchronous(writer: PipeWriter) -> io::Result<impl AsyncWrite + Unpin> {
    tokio::net::unix::pipe::Sender::from_owned_fd(writer.into())
}
#[cfg(windows)]
fn asynchronous(writer: PipeWriter) -> io::Result<impl AsyncWrite + Unpin> {
    let handle = std::os::windows::io::OwnedHandle::from(writer);
    Ok(tokio::fs::File::from_std(handle.into()))
}

/// Returns the bound that a push exceeds, if that is the error.
fn exceeded(error: &anyhow::Error) -> Option<Exceeded> {
    match error.downcast_ref() {
        Some(IngestError::Exceeded(exceeded)) => Some(*exceeded),
        _ => error.downcast_ref().copied(),
    }
}

/// Carries what is pushed to ffmpeg. Returns how that ended.
///
/// # Errors
/// If more comes than `meter` allows.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    set_silent: impl Fn(bool),
    mut meter: Meter,
) -> Result<&'static str, Exceeded> {
    let mut octets = vec![0; READ_SIZE];
    let mut silence = Duration::ZERO;
    while silence < MAX_SILENCE {
        match timeout(SILENT_AFTER, from.read(&mut octets)).await {
            Err(_) => silence += SILENT_AFTER,
            Ok(Ok(0)) => return Ok("the pusher left"),
            Ok(Err(_)) => return Ok("the connection broke"),
            Ok(Ok(count)) => {
                silence = Duration::ZERO;
                meter.take(Instant::now().into_std(), count as u64)?;
                match timeout(MAX_SILENCE, to.write_all(&octets[..count])).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => {
                        // The publication ends with ffmpeg, and gives the reason.
                        sleep(MAX_SILENCE).await;
                        return Ok("ffmpeg ended");
                    }
                    Err(_) => return Ok("ffmpeg does not read on"),
                }
            }
        }
        set_silent(silence > Duration::ZERO);
    }
    Ok("the pusher fell silent")
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

#[cfg(test)]
mod tests {
    use super::*;
    use namecast_media::ingest::Limits;

    async fn carried(to: impl AsyncWrite + Unpin, octets: &[u8]) -> (&'static str, Duration) {
        let begun = Instant::now();
        let (mut pusher, from) = tokio::io::duplex(1 << 16);
        pusher.write_all(octets).await.unwrap();
        let meter = Limits::default().octets();
        let left = carry(from, to, |_| {}, meter).await.unwrap();
        (left, begun.elapsed())
    }

    /// The publication ends in less time and says why, so that the pusher hears that reason.
    #[tokio::test(start_paused = true)]
    async fn an_ended_reader_is_no_reason_of_its_own() {
        let (to, reader) = tokio::io::duplex(64);
        drop(reader);
        assert_eq!(carried(to, &[0; 100]).await, ("ffmpeg ended", MAX_SILENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_hangs_is_one() {
        let (to, _reader) = tokio::io::duplex(64);
        let expected = ("ffmpeg does not read on", MAX_SILENCE);
        assert_eq!(carried(to, &[0; 100]).await, expected);
    }
}
