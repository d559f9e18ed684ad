//! Runs an archive on a node: a recorder, a server, and a keeper that seals and deletes.
//!
//! ```text
//!   face ◀─▶ Recorder ─▶ Writer ─ sync, once a second ─▶ Archive ◀─ lookups ─ Server ◀─▶ face
//!                                                           ▲
//!                                  keeper, once a second ───┘
//! ```

mod keeper;
mod recording;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use namecast::{Handle, drive};
use namecast_apps::Now;
use namecast_apps::archive::recorder::{self, PublisherMemory, Recorder, RecorderConfig};
use namecast_apps::archive::server::{self, Found, Lookup, Server, ServerConfig};
use namecast_apps::room::published_names;
use namecast_archive::{
    Archive, Config, FoundRung, FoundSample, Location, Moment, RetentionConfig, Writer,
};
use namecast_net::{Clock, FaceId, Node, NodeError, Registration, Wanted};
use namecast_packet::Name;
use namecast_stream::index::{IndexedSample, RungIndex, TimeIndex};
use namecast_units::{ByteSize, Duration, Timestamp};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::keeper::{Troubles, keep};
use self::recording::Recording;
use crate::key_check::KeyCheck;

/// What is appended becomes durable, and is served, so often.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);
/// Cost of the routes by which an archive stands in for a publisher.
const STAND_IN_COST: u64 = 100;
/// Cost of the routes by which it stands in for the host of a room: above that of the host, which names below its root inherit.
const HOST_COST: u64 = 200;
/// Keyword before an archive's number in its own name.
const KEYWORD: &str = "archive";
/// Lookups at a time.
const MAX_LOOKUPS: usize = 64;
/// Sentences for people that may wait.
const MAX_SENTENCES: usize = 256;

/// What to archive, and where.
#[derive(Debug)]
pub(crate) struct ArchivingConfig {
    /// The name that is published.
    pub root: Name,
    /// Where chunks go.
    pub location: Location,
    /// Age that is kept.
    pub keep: Option<Duration>,
    /// Size that is kept.
    pub keep_size: Option<ByteSize>,
    /// Room whose schema, rosters and anchor's certificates are kept, too.
    pub room: Option<Name>,
    /// The face to the forwarder that publishers and watchers use; `None`: they are on this node.
    pub upstream: Option<FaceId>,
}

impl ArchivingConfig {
    /// What the store of writer `number` is opened with.
    fn store(&self, number: u32) -> Config {
        Config {
            retention: RetentionConfig {
                keep: self.keep,
                ..RetentionConfig::default()
            },
            keep_size: self.keep_size,
            ..Config::new(self.root.clone(), self.location.clone(), number)
        }
    }
}

/// One object of an archive's statistics.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ArchiveFigures {
    /// Samples of which every packet is kept.
    pub samples: u64,
    /// Samples kept without some of their packets.
    pub samples_incomplete: u64,
    /// Samples that could not be had.
    pub samples_missing: u64,
    /// Samples that are published and not kept yet.
    pub backlog: u64,
    /// Octets written.
    pub bytes_written: u64,
    /// Chunks kept.
    pub chunks: u64,
    /// Octets kept.
    pub octets: u64,
    /// Seconds since 1970 at which the oldest chunk was begun.
    pub since: Option<f64>,
    /// Chunks deleted by age and size.
    pub chunks_deleted: u64,
    /// Damaged records that were met.
    pub records_damaged: u64,
    /// Times that writing, or the directory or bucket, failed.
    pub store_failures: u64,
    /// Packets that were not what was signed.
    pub verification_failures: u64,
    /// Interests that came.
    pub interests_received: u64,
    /// Of those, answered.
    pub interests_answered: u64,
    /// Of those, sent back: nothing is kept under their name.
    pub interests_not_found: u64,
    /// Of those, dropped: too many waited, or looking took longer than they lived.
    pub interests_dropped: u64,
}

impl ArchiveFigures {
    /// A line for people.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} samples kept, {} missing, {} MB in {} chunks, {} Interests answered",
            self.samples,
            self.samples_missing,
            self.octets / 1_000_000,
            self.chunks,
            self.interests_answered
        )
    }
}

/// What an archive has to say to people.
#[derive(Clone, Debug)]
pub(crate) enum Sentence {
    /// What happened.
    News(String),
    /// Why somebody's packets are not kept.
    Refusal(String),
}

impl Sentence {
    /// The sentence itself.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::News(text) | Self::Refusal(text) => text,
        }
    }
}

impl From<String> for Sentence {
    fn from(text: String) -> Self {
        Self::News(text)
    }
}

/// Figures of a recorder.
#[derive(Clone, Copy, Debug, Default)]
struct Recorded {
    counters: recorder::Counters,
    /// Samples published and not kept yet.
    backlog: u64,
    publisher: Option<PublisherMemory>,
}

/// An archive that runs; it ends when this is dropped, [`stop`](Self::stop) loses nothing.
pub(crate) struct Archiving {
    archive: Archive,
    node: Node,
    /// The name that is published.
    root: Name,
    say: mpsc::Sender<Sentence>,
    /// What the archive has to say to people.
    sentences: mpsc::Receiver<Sentence>,
    show_recorded: watch::Sender<Recorded>,
    recorded: watch::Receiver<Recorded>,
    served: watch::Receiver<server::Counters>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    upstream: Option<FaceId>,
    serving_face: FaceId,
    /// The time indexes that are routed here, each with its registration at the forwarder if there is one.
    indexes: BTreeMap<Name, Option<Registration>>,
    registrations: Vec<Registration>,
}

impl Archiving {
    /// Opens the archive, and begins to serve what it has.
    pub(crate) async fn open(node: &Node, config: ArchivingConfig) -> anyhow::Result<Self> {
        let root = config.root.clone();
        let number = RandomState::new().build_hasher().finish() as u32;
        let clock = node.clock();
        let archive = Archive::open(config.store(number), moment(clock)).await?;
        let delegation = root.builder().keyword(KEYWORD);
        let delegation = delegation.generic(&format!("{number:08x}")).finish();
        let (say, sentences) = mpsc::channel(MAX_SENTENCES);
        let (stop, stopping) = watch::channel(false);
        let (show_recorded, recorded) = watch::channel(Recorded::default());
        let (show_served, served) = watch::channel(server::Counters::default());
        let face = node.application_face().await?;
        let serving_face = face.id();
        let server = Server::new(ServerConfig {
            room: config.room.clone(),
            delegation: Some(delegation.clone()),
            ..ServerConfig::new(root.clone())
        });
        let mut tasks = JoinSet::new();
        let (server, lookups) = drive(clock, face, server).spawn(|| {});
        tasks.spawn(serve(server, lookups, archive.clone(), show_served));
        tasks.spawn(keep(clock, archive.clone(), say.clone(), stopping));
        let mut archiving = Self {
            archive,
            node: node.clone(),
            root: root.clone(),
            say,
            sentences,
            show_recorded,
            recorded,
            served,
            stop,
            tasks,
            upstream: config.upstream,
            serving_face,
            indexes: BTreeMap::new(),
            registrations: Vec::new(),
        };
        for name in config.room.iter().flat_map(published_names) {
            if let Some(upstream) = config.upstream {
                node.add_route(name.clone(), upstream, 0).await?;
            }
            let registration = archiving.stand_in(name, HOST_COST).await?;
            archiving.registrations.extend(registration);
        }
        let registration = archiving.stand_in(root, STAND_IN_COST).await?;
        archiving.registrations.extend(registration);
        let registration = archiving.route_own(delegation, 0).await?;
        archiving.registrations.extend(registration);
        Ok(archiving)
    }

    /// Begins to record, by the keys that count.
    pub(crate) async fn record(&mut self, keys: KeyCheck) -> anyhow::Result<()> {
        let clock = self.node.clock();
        let face = self.node.application_face().await?;
        let link = match self.upstream {
            Some(upstream) => Some(self.node.link_state(upstream).await?),
            None => None,
        };
        let recorder = Recorder::new(RecorderConfig {
            trust: keys.trust(),
            wall_at_zero: clock.wall_at_zero(),
            kept: self.archive.newest(),
            seed: u64::from_le_bytes(namecast_net::random()),
            ..RecorderConfig::new(self.root.clone())
        });
        let (recorder, recorded_packets) = drive(clock, face, recorder).spawn(|| {});
        let recording = Recording {
            clock,
            recorder,
            writer: Writer::new(self.archive.clone()),
            keys,
            say: self.say.clone(),
            troubles: Troubles::default(),
            shown: self.show_recorded.clone(),
            link,
            is_refused: false,
        };
        let stopping = self.stop.subscribe();
        self.tasks.spawn(recording.run(recorded_packets, stopping));
        Ok(())
    }

    /// Sends Interests for `prefix` here where whoever publishes it does not answer.
    async fn stand_in(&self, prefix: Name, cost: u64) -> Result<Option<Registration>, NodeError> {
        let (node, face) = (&self.node, self.serving_face);
        node.add_route(prefix.clone(), face, cost).await?;
        let register = |upstream| node.register_prefix(upstream, prefix, cost);
        Ok(self.upstream.map(register))
    }

    /// Sends Interests for `prefix` here, on this node and at the forwarder, before the publisher of a shorter one has them.
    async fn route_own(&self, prefix: Name, cost: u64) -> Result<Option<Registration>, NodeError> {
        let (node, face) = (&self.node, self.serving_face);
        node.add_route(prefix.clone(), face, 0).await?;
        let wanted = Wanted {
            captures: true,
            ..Wanted::new(prefix, cost)
        };
        let register = |upstream| node.register(upstream, wanted);
        Ok(self.upstream.map(register))
    }

    /// Sends Interests for the time index of streams here that are kept for longer than the publisher has them in memory, and
    /// leaves those of others to it. To be called once a second.
    pub(crate) async fn route_indexes(&mut self) -> Result<(), NodeError> {
        let Some(publisher) = self.recorded.borrow().publisher else {
            return Ok(());
        };
        for stream in self.archive.streams() {
            // A failed read keeps the last value.
            if let Ok(since) = self.archive.since(&stream).await {
                let index = stream.builder().generic(namecast_stream::names::INDEX);
                let cost = since.and_then(|since| index_cost(since, publisher));
                self.route_index(index.finish(), cost).await?;
            }
        }
        Ok(())
    }

    async fn route_index(&mut self, index: Name, cost: Option<u64>) -> Result<(), NodeError> {
        match (self.indexes.get(&index), cost) {
            (Some(Some(registration)), Some(cost)) => registration.set_cost(cost),
            (Some(None), Some(_)) | (None, None) => {}
            (None, Some(cost)) => {
                let registration = self.route_own(index.clone(), cost).await?;
                self.indexes.insert(index, registration);
            }
            (Some(registration), None) => {
                registration.iter().for_each(Registration::cancel);
                self.indexes.remove(&index);
                self.node.remove_route(index, self.serving_face).await?;
            }
        }
        Ok(())
    }

    /// The next sentence for people.
    pub(crate) async fn next_sentence(&mut self) -> Sentence {
        match self.sentences.recv().await {
            Some(sentence) => sentence,
            None => core::future::pending().await,
        }
    }

    /// What was counted.
    pub(crate) fn figures(&self) -> ArchiveFigures {
        let Recorded {
            counters: recorder,
            backlog,
            ..
        } = *self.recorded.borrow();
        let server = *self.served.borrow();
        let (store, size) = (self.archive.counters(), self.archive.figures());
        ArchiveFigures {
            samples: recorder.complete,
            samples_incomplete: recorder.incomplete,
            samples_missing: recorder.missing,
            backlog,
            bytes_written: store.octets,
            chunks: size.chunks,
            octets: size.octets,
            since: size.since.map(|since| since.as_micros() as f64 / 1e6),
            chunks_deleted: store.deleted,
            records_damaged: store.damaged,
            store_failures: store.store_failures + store.write_failures,
            verification_failures: recorder.verification_failures,
            interests_received: server.interests,
            interests_answered: server.answered,
            interests_not_found: server.not_found,
            interests_dropped: server.dropped_full + server.dropped_expired,
        }
    }

    /// Writes everything, and ends. What is written last is sealed when the archive is opened the next time.
    pub(crate) async fn stop(mut self) {
        let indexes = self.indexes.values().flatten();
        let registrations = self.registrations.iter().chain(indexes);
        registrations.for_each(Registration::cancel);
        self.stop.send_replace(true);
        // The server goes on until the node ends, so it is not waited for.
        let mut ended = 0;
        while ended < 2 && self.tasks.join_next().await.is_some() {
            ended += 1;
        }
    }
}

/// Cost of the route by which the time index of a stream that is kept since `kept_since` is asked for here: of several archives
/// the one that goes back farthest answers, to a factor of two. `None` where the publisher remembers more.
fn index_cost(kept_since: Timestamp, publisher: PublisherMemory) -> Option<u64> {
    let kept = publisher.until.since(kept_since).as_secs();
    let kept = u32::try_from(kept).unwrap_or(u32::MAX);
    (kept_since <= publisher.since).then(|| u64::from(kept.leading_zeros()))
}

/// Both clocks of this machine.
fn moment(clock: Clock) -> Moment {
    Moment {
        monotonic: clock.now(),
        wall: clock.wall(),
    }
}

/// Tells people, unless they do not listen.
fn tell(say: &mpsc::Sender<Sentence>, sentence: impl Into<Sentence>) {
    let sentence = sentence.into();
    tracing::info!(sentence = sentence.text(), "archive");
    // Whoever does not listen misses it.
    let _ = say.try_send(sentence);
}

/// Looks up what a server requests, until it ends.
async fn serve(
    server: Handle<Server>,
    mut lookups: mpsc::Receiver<Lookup>,
    archive: Archive,
    shown: watch::Sender<server::Counters>,
) {
    let mut running: JoinSet<(Lookup, Found)> = JoinSet::new();
    let mut tick = tokio::time::interval(SYNC_INTERVAL);
    loop {
        tokio::select! {
            lookup = lookups.recv(), if running.len() < MAX_LOOKUPS => match lookup {
                Some(lookup) => drop(running.spawn(look_up(archive.clone(), lookup))),
                None => return,
            },
            Some(found) = running.join_next() => {
                if let Ok((lookup, found)) = found {
                    let handle = move |server: &mut Server, now: Now| {
                        server.handle_found(now.monotonic, &lookup, found);
                    };
                    if server.call(handle).await.is_none() {
                        return;
                    }
                }
            }
            _ = tick.tick() => match server.call(|server, _| *server.counters()).await {
                Some(counters) => drop(shown.send_replace(counters)),
                None => return,
            },
        }
    }
}

/// Looks something up; what cannot be read counts as not there.
async fn look_up(archive: Archive, lookup: Lookup) -> (Lookup, Found) {
    let found = match &lookup {
        Lookup::Sample {
            rung,
            class,
            sequence,
        } => {
            let found = archive.sample(rung, *class, *sequence).await;
            found.map(|packets| Found::Packets(packets.unwrap_or_default()))
        }
        Lookup::Object(prefix) => {
            let found = archive.object(prefix).await;
            found.map(|packet| Found::Packets(packet.into_iter().collect()))
        }
        Lookup::Index { stream, time } => {
            let since = archive.since(stream).await;
            let found = archive.find(stream, *time).await;
            since.and_then(|since| Ok(Found::Index(index(found?, since))))
        }
    };
    let found = found.unwrap_or_else(|error| {
        tracing::warn!(%error, "archive");
        Found::Packets(Vec::new())
    });
    (lookup, found)
}

fn index(rungs: Vec<FoundRung>, since: Option<Timestamp>) -> TimeIndex {
    let sample = |found: FoundSample| IndexedSample {
        class: found.class,
        sequence: found.sequence,
        other_sequence: found.entry.other_sequence,
        position: found.entry.position,
        captured_at: found.entry.captured_at,
        published_at: found.entry.published_at,
    };
    let rungs = rungs.into_iter().map(|found| RungIndex {
        rung: found.rung,
        key: sample(found.key),
        sample: sample(found.sample),
        next_key: found.next_key.map(sample),
        newest: found.newest,
    });
    TimeIndex {
        rungs: rungs.take(namecast_stream::catalogue::MAX_RUNGS).collect(),
        delegation: None,
        since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    /// A publisher that has the last 30 s in memory. 30 s, 60 s and a day (86 400 s) have 27, 26 and 15 leading
    /// zeros of 32 bits.
    #[test]
    fn the_longest_memory_answers_for_the_time_index() {
        let publisher = PublisherMemory {
            since: at(100_000),
            until: at(100_030),
        };
        assert_eq!(index_cost(at(100_001), publisher), None);
        assert_eq!(index_cost(at(100_000), publisher), Some(27));
        assert_eq!(index_cost(at(99_970), publisher), Some(26));
        assert_eq!(index_cost(at(13_630), publisher), Some(15));
    }
}
