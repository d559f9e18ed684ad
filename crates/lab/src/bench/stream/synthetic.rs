//! A made-up stream on a node of its own, and watchers of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use bytes::Bytes;
use namecast::{Handle, drive};
use namecast_apps::live::watcher::Watched;
use namecast_apps::live::{
    EncodedFrame, Player, Publisher, PublisherConfig, Watcher, WatcherConfig,
};
use namecast_net::{Clock, KeyStore, Listener, Node, NodeConfig};
use namecast_packet::{Certificate, Name};
use namecast_stream::producer::{ProducerCounters, RungId};
use namecast_stream::{ProducerConfig, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::{Bitrate, ByteSize, Duration, Random, Timestamp};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::BenchStream;

/// Pictures of the stream.
pub(super) const FRAMES_PER_SECOND: u32 = 30;
/// What each node keeps: little, so that it is full before memory is looked at.
const CACHE: ByteSize = ByteSize::mebibytes(4);
/// A key frame is so many times as large as the others.
const KEY_FACTOR: u64 = 5;
/// Longest that a join may take before the run counts as failed.
const JOIN_LIMIT: Duration = Duration::from_secs(10);

/// How a watcher reaches the publisher's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From a node of its own, over UDP on loopback.
    Udp,
    /// On a face of the publisher's node.
    InProcess,
}

/// A node that publishes a made-up stream.
pub(super) struct Stage {
    node: Node,
    name: Name,
    listener: Listener<SocketAddr>,
    publisher: Handle<Publisher>,
    ticker: JoinHandle<()>,
    _keys: tempfile::TempDir,
}

/// What a watcher received.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) octets: u64,
    pub(super) delays: Vec<Duration>,
}

impl Stage {
    /// Parity of the stream where it is not the question.
    pub(super) const PARITY_PERCENT: u32 = 20;
    /// After this long the publisher's and the node's caches hold as much as they ever will.
    pub(super) const CACHE_FILLS: Duration = Duration::from_secs(30);

    /// Starts to publish.
    pub(super) async fn start(arguments: &BenchStream, parity: u32) -> anyhow::Result<Self> {
        let keys = tempfile::tempdir().context("no directory for keys")?;
        let name: Name = "/bench".parse()?;
        let identity = KeyStore::open(keys.path())?.identity(&name)?;
        let certificate = Certificate::decode(identity.certificate)?;
        let node = Node::start(NodeConfig::caching(CACHE));
        let listener = node.listen_udp((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let config = PublisherConfig {
            root: name.clone(),
            streams: vec![stream(arguments, parity)],
            producer: ProducerConfig::default(),
            shared_since: None,
        };
        let clock = node.clock();
        let publisher = Publisher::new(config, clock.wall(), identity.signer, &certificate)?;
        let rung = publisher
            .rung("video", "bench")
            .context("the rung exists")?;
        let face = node.application_face().await?;
        node.add_route(name.clone(), face.id(), 0).await?;
        let (publisher, _) = drive(clock, face, publisher).spawn(|| {});
        let ticker = tokio::spawn(publish(publisher.clone(), rung, arguments.bitrate));
        Ok(Self {
            node,
            name,
            listener,
            publisher,
            ticker,
            _keys: keys,
        })
    }

    /// What the publisher counted.
    pub(super) async fn counters(&self) -> ProducerCounters {
        let counters = self.publisher.call(|it, _| it.producer_counters().clone());
        counters.await.unwrap_or_default()
    }

    /// Starts a watcher.
    pub(super) async fn watch(&self, way: Way) -> anyhow::Result<Watching> {
        let (own_node, node) = match way {
            Way::InProcess => (None, self.node.clone()),
            Way::Udp => {
                let node = Node::start(NodeConfig::caching(CACHE));
                let face = node.connect(self.listener.uri().clone()).await?;
                node.add_route(self.name.clone(), face, 0).await?;
                (Some(node.clone()), node)
            }
        };
        let mut config = WatcherConfig::new(self.name.clone());
        config.wall_at_zero = node.clock().wall_at_zero();
        config.seed = node.clock().now().as_nanos();
        let face = node.application_face_with_local_fields().await?;
        let player = Player::new(Watcher::new(config));
        let (player, mut heard) = drive(node.clock(), face, player).spawn(|| {});
        let received = Arc::<Mutex<Received>>::default();
        let shared = Arc::clone(&received);
        let (key_seen, first_key) = tokio::sync::oneshot::channel();
        let listener = tokio::spawn(async move {
            let clock = Clock::new();
            let mut key_seen = Some(key_seen);
            while let Some(watched) = heard.recv().await {
                let Watched::Frame(frame) = watched else {
                    continue;
                };
                let mut received = shared.lock().unwrap_or_else(PoisonError::into_inner);
                received.octets += frame.payload.len() as u64;
                let stages = frame.stages;
                received
                    .delays
                    .push(stages.publish + stages.network + stages.reassembly);
                if let Some(key_seen) = key_seen.take_if(|_| frame.key) {
                    // The measurement may be over.
                    let _ = key_seen.send(clock.now());
                }
            }
        });
        Ok(Watching {
            own_node,
            player,
            listener,
            received,
            first_key,
        })
    }

    /// Joins over UDP with a new node, and says how long it took until the first key sample was complete.
    pub(super) async fn join(&self) -> anyhow::Result<Duration> {
        let began = self.node.clock().now();
        let mut watching = self.watch(Way::Udp).await?;
        let key = tokio::time::timeout(JOIN_LIMIT, &mut watching.first_key).await;
        let Ok(Ok(at)) = key else {
            let stats = watching.player.call(Player::stats).await;
            bail!("no key sample within {JOIN_LIMIT:?}: {stats:?}");
        };
        watching.stop().await;
        Ok(at.since(began))
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        self.ticker.abort();
        drop((self.publisher, self.listener));
        self.node.shutdown().await;
    }
}

/// A watcher that runs.
pub(super) struct Watching {
    own_node: Option<Node>,
    player: Handle<Player>,
    listener: JoinHandle<()>,
    received: Arc<Mutex<Received>>,
    first_key: tokio::sync::oneshot::Receiver<namecast_units::Instant>,
}

impl Watching {
    /// What was received since the last call.
    pub(super) fn take(&self) -> Received {
        core::mem::take(&mut *self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets what was received so far.
    pub(super) fn reset(&self) {
        self.take();
    }

    /// Ends it.
    pub(super) async fn stop(self) {
        self.listener.abort();
        drop(self.player);
        if let Some(node) = self.own_node {
            node.shutdown().await;
        }
    }
}

/// The made-up stream.
pub(super) fn stream(arguments: &BenchStream, parity_percent: u32) -> StreamInfo {
    StreamInfo {
        name: "video".to_owned(),
        kind: StreamKind::Video,
        codec: "h264".to_owned(),
        rungs: vec![Rung {
            name: "bench".to_owned(),
            bitrate: arguments.bitrate,
            width: None,
            height: None,
            rate: SampleRate::new(FRAMES_PER_SECOND, 1),
            key_interval: FRAMES_PER_SECOND,
            reorder_delay: 0,
            codec_string: "avc1.42C01E".to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: None,
            description: None,
        }],
        segment_size: arguments.segment_size,
        parity_percent,
        reading: Reading::default(),
    }
}

/// Frames of random octets, a key frame each second.
pub(super) struct Synthetic {
    octets: Bytes,
    delta_size: usize,
}

impl Synthetic {
    /// Frames with a mean of `bitrate`.
    pub(super) fn new(bitrate: Bitrate) -> Self {
        let (key_size, delta_size) = frame_sizes(bitrate);
        let mut octets = vec![0; key_size];
        Random::from_seed(u64::from(FRAMES_PER_SECOND)).fill(&mut octets);
        Self {
            octets: octets.into(),
            delta_size,
        }
    }

    /// Returns the frame at `position`, captured and encoded at `wall`.
    pub(super) fn frame(&self, position: u64, wall: Timestamp) -> EncodedFrame {
        let key = position.is_multiple_of(u64::from(FRAMES_PER_SECOND));
        let payload = match key {
            true => self.octets.clone(),
            false => self.octets.slice(..self.delta_size),
        };
        EncodedFrame {
            position,
            key,
            captured_at: wall,
            composition_offset: Duration::ZERO,
            encoded_at: wall,
            payload,
        }
    }
}

/// Octets of a key frame and of the others, for a mean of `bitrate`.
fn frame_sizes(bitrate: Bitrate) -> (usize, usize) {
    let second = (bitrate * Duration::from_secs(1)).as_bytes();
    let delta = second / (u64::from(FRAMES_PER_SECOND) - 1 + KEY_FACTOR);
    let size = |octets| usize::try_from(octets).expect("a frame fits in memory");
    (size(delta * KEY_FACTOR), size(delta))
}

/// Publishes frames at their times.
async fn publish(publisher: Handle<Publisher>, rung: RungId, bitrate: Bitrate) {
    let clock = Clock::new();
    let synthetic = Synthetic::new(bitrate);
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / FRAMES_PER_SECOND);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for position in 0.. {
        ticks.tick().await;
        let frame = synthetic.frame(position, clock.wall());
        publisher.try_call(move |publisher, now| {
            // A refusal is in the publisher's counters.
            let _ = publisher.publish_frame(now.monotonic, now.wall, rung, frame);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 Mbit/s are 375 000 octets a second, over 29 + 5 shares: 11 029 each.
    #[test]
    fn frames_add_up_to_the_bitrate() {
        assert_eq!(frame_sizes(Bitrate::mbps(3)), (55_145, 11_029));
    }
}
