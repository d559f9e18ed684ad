//! Publisher and watchers on their nodes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use namecast::{Handle, Timer, drive};
use namecast_apps::Now;
use namecast_apps::live::watcher::{Frame, Watched};
use namecast_apps::live::{
    EncodedFrame, Player, Publisher, PublisherConfig, Watcher, WatcherConfig,
};
use namecast_media::ingest::MediaFrame;
use namecast_net::{Clock, FaceId};
use namecast_packet::Name;
use namecast_sim::live::{FrameRecord, Signing};
use namecast_sim::scenario::{Signature, Snapshot, WatcherSnapshot};
use namecast_sim::topology::NodeIndex;
use namecast_stream::producer::RungId;
use namecast_stream::{ProducerConfig, StreamKind};
use namecast_units::{ByteSize, Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::super::super::laboratory::Refusal;
use super::super::broken;
use super::super::world::World;
use super::stage::{Stage, Viewer};

/// A publisher that publishes frames at their times.
pub(super) struct Publishing {
    node: NodeIndex,
    face: FaceId,
    publisher: Handle<Publisher>,
    feeding: JoinHandle<u64>,
}

impl Publishing {
    /// Publishes `frames` under `root`, the first at `zero`.
    ///
    /// # Errors
    /// If the publisher takes no such streams.
    pub(super) async fn start(
        stage: &Stage<'_>,
        world: &World,
        root: &Name,
        (frames, zero): (Arc<[MediaFrame]>, Instant),
    ) -> Result<Self, Refusal> {
        let clock = Clock::new();
        let (signer, certificate) = signing(stage).signer(root);
        let config = PublisherConfig {
            root: root.clone(),
            streams: stage.streams.clone(),
            producer: ProducerConfig::default(),
            shared_since: None,
        };
        let publisher = Publisher::new(config, clock.wall(), signer, &certificate);
        let publisher = publisher.map_err(broken)?;
        let rungs = stage.streams.iter().map(|stream| {
            let rungs = stream.rungs.iter();
            let ids = rungs.filter_map(|rung| publisher.rung(&stream.name, &rung.name));
            (stream.kind, ids.collect())
        });
        let rungs = rungs.collect();
        let node = world.node(stage.publisher);
        let face = node.application_face().await.map_err(broken)?;
        let added = node.add_route(root.clone(), face.id(), 0).await;
        added.map_err(broken)?;
        let id = face.id();
        let (publisher, _) = drive(clock, face, publisher).spawn(|| {});
        Ok(Self {
            node: stage.publisher,
            face: id,
            feeding: tokio::spawn(feed(publisher.clone(), rungs, frames, zero)),
            publisher,
        })
    }

    /// Waits until all frames are published, and says how many were not.
    ///
    /// # Errors
    /// If it ended early, which is a defect.
    pub(super) async fn stop(self) -> Result<u64, Refusal> {
        let no_room = self.feeding.await.map_err(broken)?;
        let refused = self.publisher.call(|it, _| it.counters().frames_refused);
        Ok(no_room + refused.await.unwrap_or(0))
    }
}

fn signing(stage: &Stage<'_>) -> Signing {
    match stage.scenario.signature {
        Signature::Ed25519 => Signing::default(),
        Signature::Hmac => Signing::Hmac,
    }
}

/// Publishes each frame at its time, as if it were captured and encoded then. Says how many the publisher had no room for.
async fn feed(
    publisher: Handle<Publisher>,
    rungs: Vec<(StreamKind, Vec<RungId>)>,
    frames: Arc<[MediaFrame]>,
    zero: Instant,
) -> u64 {
    let (clock, timer) = (Clock::new(), Timer::default());
    let mut unpublished = 0;
    for frame in frames.iter() {
        let due = zero + Duration::from_micros(frame.captured_at.as_micros());
        timer.sleep_until(clock, Some(due)).await;
        let of_kind = rungs.iter().find(|(kind, _)| *kind == frame.stream);
        let Some(&rung) = of_kind.and_then(|(_, rungs)| rungs.get(frame.rung)) else {
            continue;
        };
        let wall = clock.wall();
        let encoded = EncodedFrame {
            position: frame.position,
            key: frame.key,
            captured_at: wall,
            composition_offset: Duration::ZERO,
            encoded_at: wall,
            payload: frame.payload.clone(),
        };
        let publish = move |publisher: &mut Publisher, now: Now| {
            // A refusal is in the publisher's counters.
            let _ = publisher.publish_frame(now.monotonic, now.wall, rung, encoded);
        };
        unpublished += u64::from(!publisher.try_call(publish));
    }
    unpublished
}

/// A watcher that watches.
pub(super) struct Watching {
    node: NodeIndex,
    face: FaceId,
    player: Handle<Player>,
    pub(super) joined_at: Instant,
    heard: Arc<Mutex<Heard>>,
    hearing: JoinHandle<()>,
}

/// What a watcher has delivered. Instants count from the start of the run.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) records: VecDeque<FrameRecord>,
    payload: ByteSize,
}

impl Watching {
    /// Joins now.
    ///
    /// # Errors
    /// If its node has stopped.
    pub(super) async fn start(
        stage: &Stage<'_>,
        world: &World,
        viewer: &Viewer<'_>,
        (seed, zero): (u64, Instant),
    ) -> Result<Self, Refusal> {
        let node = world.node(viewer.node);
        // With local fields, as `namecast watch` has it.
        let face = node.application_face_with_local_fields().await;
        let face = face.map_err(broken)?;
        let (clock, id) = (Clock::new(), face.id());
        let watcher = Watcher::new(WatcherConfig {
            wall_at_zero: clock.wall_at_zero(),
            trust: signing(stage).trust(),
            ..viewer
                .spec
                .config(stage.layout.prefixes[viewer.root].clone(), seed)?
        });
        let joined_at = Instant::ZERO + clock.now().since(zero);
        let (player, said) = drive(clock, face, Player::new(watcher)).spawn(|| {});
        let heard = Arc::<Mutex<Heard>>::default();
        Ok(Self {
            node: viewer.node,
            face: id,
            player,
            joined_at,
            hearing: tokio::spawn(hear(said, Arc::clone(&heard), zero)),
            heard,
        })
    }

    async fn snapshot(&self, world: &World) -> Result<WatcherSnapshot, Refusal> {
        let stats = self.player.call(Player::stats).await;
        Ok(WatcherSnapshot {
            stats: stats.ok_or_else(|| broken("a watcher ended early"))?,
            traffic: world.traffic(self.node, self.face).await?.of_watcher(),
            payload: lock(&self.heard).payload,
            object: ByteSize::ZERO,
        })
    }

    /// Ends it, and gives all that it delivered.
    pub(super) async fn stop(self) -> Heard {
        drop(self.player);
        // It ends with the watcher.
        let _ = self.hearing.await;
        core::mem::take(&mut lock(&self.heard))
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes down what a watcher hands out.
async fn hear(mut said: mpsc::Receiver<Watched>, heard: Arc<Mutex<Heard>>, zero: Instant) {
    while let Some(watched) = said.recv().await {
        match watched {
            Watched::Frame(frame) => {
                let mut heard = lock(&heard);
                heard.payload += ByteSize::of(&frame.payload);
                heard.records.push_back(record(frame, zero));
            }
            Watched::Event(event) => {
                let at = Clock::new().now().since(zero).as_secs_f64();
                tracing::debug!("{at:.3} s: {event}");
            }
            Watched::Catalogue(_) | Watched::Signer(_) | Watched::Discontinuity { .. } => {}
        }
    }
}

fn record(frame: Frame, zero: Instant) -> FrameRecord {
    let since_zero = |at: Instant| Instant::ZERO + at.since(zero);
    FrameRecord {
        stream: frame.stream,
        rung: frame.rung,
        position: frame.position,
        key: frame.key,
        size: frame.payload.len(),
        captured_at: frame.captured_at,
        complete_at: since_zero(frame.complete_at),
        handed_out_at: since_zero(Clock::new().now()),
        render_at: since_zero(frame.render_at),
        catching_up: frame.catching_up,
    }
}

/// What everybody has counted by now; it was wanted `at`.
///
/// # Errors
/// If something has ended that should not have.
pub(super) async fn snapshot(
    world: &World,
    publishing: &[Publishing],
    watching: &[Option<Watching>],
    at: Duration,
) -> Result<Snapshot, Refusal> {
    let mut watchers = Vec::with_capacity(watching.len());
    for one in watching {
        watchers.push(match one {
            Some(watching) => watching.snapshot(world).await?,
            None => WatcherSnapshot::default(),
        });
    }
    let mut publishers = Vec::with_capacity(publishing.len());
    for one in publishing {
        let traffic = world.traffic(one.node, one.face).await?;
        publishers.push(traffic.of_publisher());
    }
    Ok(Snapshot {
        at,
        watchers,
        publishers,
        links: Vec::new(),
    })
}
