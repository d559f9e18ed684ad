//! A live ladder as HLS by name: each playlist and segment is an object under `NAME/hls`.
//!
//! ```text
//!  frames ─▶ Packager ─ Change ─▶ object::Server ◀── Interests for /NAME/hls/index.m3u8, /NAME/hls/1M/seq=7, …
//! ```
//!
//! Interests for the next segments wait until these exist; those for what is gone, or will never be, are refused.

use std::collections::BTreeMap;

use namecast::{Handle, drive};
use namecast_apps::object::{Requested, Server, ServerConfig};
use namecast_media::ingest::MediaFrame;
use namecast_media::package::{Change, HLS, Packager};
use namecast_net::Node;
use namecast_packet::{Certificate, Component, Name, Signer};
use namecast_units::Duration;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

/// How often it is looked for what the ffmpegs have written.
const LOOK: Duration = Duration::from_millis(50);
/// Segments beyond the newest that may be waited for.
const AHEAD: u64 = 2;
/// Changes that may wait to be published: those of six rungs in half a minute.
const MAX_CHANGES: usize = 256;
const TOO_SLOW: &str = "segments come faster than they are signed: leave qualities out of --ladder";

/// What is packaged, and served.
pub(super) struct Packaging {
    packager: Packager,
    /// What all names start with.
    prefix: Name,
    server: Handle<Server>,
    requested: mpsc::Receiver<Requested>,
    /// To the task that puts objects: signing takes longer than the time from one frame to the next.
    changes: mpsc::Sender<Change>,
    troubles: mpsc::Receiver<String>,
    /// Number of the newest segment of each rung.
    newest: BTreeMap<Name, u64>,
    looks: Interval,
    segments: u64,
    refused: u64,
}

impl Packaging {
    /// Serves on `node`, under the stream's `root`, what `packager` makes.
    pub(super) async fn start(
        node: &Node,
        root: &Name,
        packager: Packager,
        signer: Box<dyn Signer + Send>,
        certificate: Certificate,
    ) -> anyhow::Result<Self> {
        let prefix = root.builder().generic(HLS).finish();
        let mut config = ServerConfig::new(prefix.clone());
        config.segment_size = packager.stream().segment_size as usize;
        let server = Server::new(config, signer, certificate)?;
        let face = node.application_face().await?;
        node.add_route(prefix.clone(), face.id(), 0).await?;
        let (server, requested) = drive(node.clock(), face, server).spawn(|| {});
        let (changes, changed) = mpsc::channel(MAX_CHANGES);
        let (trouble, troubles) = mpsc::channel(1);
        tokio::spawn(publish(prefix.clone(), server.clone(), changed, trouble));
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            packager,
            prefix,
            server,
            requested,
            changes,
            troubles,
            newest: BTreeMap::new(),
            looks,
            segments: 0,
            refused: 0,
        })
    }

    /// Takes a frame.
    pub(super) fn write(&mut self, frame: &MediaFrame) -> anyhow::Result<()> {
        self.packager.write(frame)
    }

    /// Publishes what is new, or refuses what was requested in vain. Returns what people should know. Loses nothing if it is
    /// given up.
    pub(super) async fn step(&mut self) -> Option<String> {
        tokio::select! {
            _ = self.looks.tick() => self.look(),
            Some(Requested(name)) = self.requested.recv() => {
                // Before there is a segment of each rung, nothing is known of what will be.
                let is_known = self.newest.len() == self.packager.stream().rungs.len();
                if is_known && !is_coming(&self.newest, &name) {
                    self.refused += 1;
                    self.server.try_call(move |server, _| server.refuse(&name));
                }
                None
            }
            Some(trouble) = self.troubles.recv() => Some(trouble),
        }
    }

    fn look(&mut self) -> Option<String> {
        let mut trouble = None;
        for change in self.packager.changes() {
            if let Change::Put(path, _) = &change
                && let Some(name) = name_of(&self.prefix, path)
                && let Some(number) = sequence_of(&name)
            {
                self.segments += 1;
                self.newest.insert(name.parent().detached(), number);
            }
            if self.changes.try_send(change).is_err() {
                trouble = Some(TOO_SLOW.to_owned());
            }
        }
        trouble
    }

    /// What was counted.
    pub(super) async fn figures(&self) -> PackagedFigures {
        let counted = self
            .server
            .call(|server, _| (*server.counters(), server.pending(), server.size()));
        let (counters, pending, size) = counted.await.unwrap_or_default();
        PackagedFigures {
            segments_published: self.segments,
            interests_answered: counters.answered,
            interests_refused: counters.refused,
            interests_expired: counters.expired,
            interests_waiting: pending as u64,
            requests_refused: self.refused,
            kept_octets: size.as_bytes(),
        }
    }
}

/// Whether an object that does not exist will exist soon, by the number of the newest segment of each rung.
fn is_coming(newest: &BTreeMap<Name, u64>, name: &Name) -> bool {
    let newest = newest.get(&name.parent());
    let is_next =
        |(number, &newest): (u64, &u64)| (newest..=newest.saturating_add(AHEAD)).contains(&number);
    sequence_of(name).zip(newest).is_some_and(is_next)
}

/// Puts and removes objects as files change, until nobody tells of changes any more.
async fn publish(
    prefix: Name,
    server: Handle<Server>,
    mut changes: mpsc::Receiver<Change>,
    trouble: mpsc::Sender<String>,
) {
    while let Some(change) = changes.recv().await {
        let (path, content) = match change {
            Change::Put(path, content) => (path, Some(content)),
            Change::Gone(path) => (path, None),
        };
        let Some(name) = name_of(&prefix, &path) else {
            continue;
        };
        let done = server.call(move |server, now| match content {
            Some(content) => server.put(name, content, now.wall).map(drop),
            None => {
                server.remove(&name);
                Ok(())
            }
        });
        match done.await {
            Some(Ok(())) => {}
            // One is enough to read.
            Some(Err(error)) => drop(trouble.try_send(format!("{path} is not published: {error}"))),
            None => return,
        }
    }
}

/// The name of a file: what stands between its slashes are components as URIs have them.
fn name_of(prefix: &Name, path: &str) -> Option<Name> {
    format!("{prefix}/{path}").parse().ok()
}

/// The number of a segment.
fn sequence_of(name: &Name) -> Option<u64> {
    name.last()?.number_of(Component::SEQUENCE)
}

/// What was published and requested of a package.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct PackagedFigures {
    /// Segments of all rungs.
    pub segments_published: u64,
    /// Interests answered by Data.
    pub interests_answered: u64,
    /// Interests answered by a Nack.
    pub interests_refused: u64,
    /// Interests whose lifetime ended while they waited.
    pub interests_expired: u64,
    /// Interests that wait for the next segments now.
    pub interests_waiting: u64,
    /// Objects that were requested, and are gone or will never be.
    pub requests_refused: u64,
    /// Content of all objects, in octets.
    pub kept_octets: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The newest one may not be put yet.
    #[test]
    fn only_the_next_segments_of_a_rung_are_waited_for() {
        let name = |uri: &str| uri.parse::<Name>().unwrap();
        let newest = BTreeMap::from([(name("/tv/hls/1M"), 7)]);
        let coming = |uri: &str| is_coming(&newest, &name(uri));
        assert!(coming("/tv/hls/1M/seq=7") && coming("/tv/hls/1M/seq=9"));
        for never in [
            "/tv/hls/1M/seq=6",
            "/tv/hls/1M/seq=10",
            "/tv/hls/3M/seq=8",
            "/tv/hls/1M/seg=8",
            "/tv/hls/1M/8",
            "/tv/hls/1M",
            "/",
        ] {
            assert!(!coming(never), "{never}");
        }
    }
}
