//! A neighbour that changes what it forwards: nothing of it reaches the output, all of it is counted and fetched again.

use std::collections::BTreeSet;

use bytes::Bytes;
use namecast::drive;
use namecast_apps::live::watcher::{Frame, Watched};
use namecast_apps::live::{
    EncodedFrame, Player, Publisher, PublisherConfig, Watcher, WatcherConfig,
};
use namecast_net::{ApplicationFace, Identity, KeyStore, Node, NodeConfig};
use namecast_packet::{Certificate, Data, LpPacket, Name, Packet};
use namecast_stream::{ProducerConfig, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::{Bitrate, Duration, Random};
use tokio::sync::mpsc;

/// No step takes this long, however loaded the machine is.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Every so many Data packets one is changed.
const FORGE_EVERY: u64 = 15;
const FRAMES: usize = 90;

fn stream() -> StreamInfo {
    StreamInfo {
        name: "video".to_owned(),
        kind: StreamKind::Video,
        codec: "h264".to_owned(),
        rungs: vec![Rung {
            name: "1M".to_owned(),
            bitrate: Bitrate::mbps(1),
            width: None,
            height: None,
            rate: SampleRate::new(30, 1),
            key_interval: 30,
            reorder_delay: 0,
            codec_string: "avc1.42C01E".to_owned(),
            sample_rate: None,
            channels: None,
            inter_frame: None,
            description: None,
        }],
        segment_size: 1_000,
        parity_percent: 0,
        reading: Reading::default(),
    }
}

/// A bit of the Content flipped, or the whole packet made anew with a key of the forger's, in turn.
fn forge(data: &Data, count: u64, key: &Identity) -> Bytes {
    if count.is_multiple_of(2) {
        let content = data.content().unwrap_or_default();
        let forged = Data::builder(data.name().clone()).content(content);
        return forged.sign(&*key.signer).wire().clone();
    }
    let mut octets = data.wire().to_vec();
    let content = data.content().unwrap_or_default();
    let at = content.as_ptr() as usize - data.wire().as_ptr() as usize + content.len() / 2;
    octets[at] ^= 1;
    octets.into()
}

/// What a neighbour changes of the segments that it forwards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lies {
    Never,
    /// Every [`FORGE_EVERY`]th, but none that was asked for with MustBeFresh: a cache with bad packets in it.
    Sometimes,
    Always,
}

/// Passes Interests one way and Data the other, and lies.
async fn relay(mut near: ApplicationFace, mut far: ApplicationFace, forger: Identity, lies: Lies) {
    let mut fresh = BTreeSet::new();
    let (mut seen, mut forged) = (0, 0);
    loop {
        tokio::select! {
            interest = near.recv() => {
                let Some(frame) = interest else { return };
                let link = LpPacket::decode(frame.clone()).unwrap();
                if let Some(Ok(Packet::Interest(interest))) = link.fragment.map(Packet::decode) {
                    if interest.must_be_fresh() {
                        fresh.insert(interest.name().to_string());
                    }
                    far.send(interest.wire().clone()).await.unwrap();
                }
            }
            data = far.recv() => {
                let Some(frame) = data else { return };
                let link = LpPacket::decode(frame).unwrap();
                let Some(Ok(Packet::Data(data))) = link.fragment.map(Packet::decode) else { continue };
                let is_segment = data.name().to_string().contains("/video/1M/");
                let may_forge = is_segment && match lies {
                    Lies::Never => false,
                    Lies::Sometimes => !fresh.contains(&data.name().to_string()),
                    Lies::Always => true,
                };
                seen += u64::from(may_forge);
                if may_forge && (lies == Lies::Always || seen.is_multiple_of(FORGE_EVERY)) {
                    forged += 1;
                    near.send(forge(&data, forged, &forger)).await.unwrap();
                } else {
                    near.send(data.wire().clone()).await.unwrap();
                }
            }
        }
    }
}

/// The octets of each frame follow from its position, so that a changed one is recognised.
fn payload(position: u64) -> Bytes {
    let mut octets = vec![0; 4_000];
    Random::from_seed(position).fill(&mut octets);
    octets.into()
}

/// Publishes a frame at each thirtieth of a second.
async fn publish(node: &Node, name: &Name, identity: Identity) {
    let config = PublisherConfig {
        root: name.clone(),
        streams: vec![stream()],
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    let certificate = Certificate::decode(identity.certificate.clone()).unwrap();
    let clock = node.clock();
    let publisher = Publisher::new(config, clock.wall(), identity.signer, &certificate).unwrap();
    let rung = publisher.rung("video", "1M").unwrap();
    let face = node.application_face().await.unwrap();
    node.add_route(name.clone(), face.id(), 0).await.unwrap();
    let (publisher, _) = drive(clock, face, publisher).spawn(|| {});
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / 30);
        for position in 0.. {
            ticks.tick().await;
            let wall = clock.wall();
            let frame = EncodedFrame {
                position,
                key: position.is_multiple_of(30),
                captured_at: wall,
                composition_offset: Duration::ZERO,
                encoded_at: wall,
                payload: payload(position),
            };
            publisher.try_call(move |publisher, now| {
                publisher
                    .publish_frame(now.monotonic, now.wall, rung, frame)
                    .unwrap();
            });
        }
    });
}

/// The next frame that a watcher hands out.
async fn next_frame(heard: &mut mpsc::Receiver<Watched>) -> Frame {
    loop {
        let watched = tokio::time::timeout(TIMEOUT, heard.recv()).await;
        let watched = watched.expect("frames go on coming");
        if let Watched::Frame(frame) = watched.expect("the watcher lives") {
            return frame;
        }
    }
}

/// Two nodes, and neighbours between them at rising cost.
struct Way {
    here: Node,
    there: Node,
    name: Name,
    _keys: tempfile::TempDir,
}

impl Way {
    async fn through(neighbours: &[Lies]) -> Self {
        let keys = tempfile::tempdir().unwrap();
        let store = KeyStore::open(keys.path()).unwrap();
        let name: Name = "/test".parse().unwrap();
        let here = Node::start(NodeConfig::default());
        let there = Node::start(NodeConfig::default());
        publish(&there, &name, store.identity(&name).unwrap()).await;
        for (cost, &lies) in (0..).zip(neighbours) {
            let near = here.application_face().await.unwrap();
            here.add_route(name.clone(), near.id(), cost).await.unwrap();
            let far = there.application_face().await.unwrap();
            let forger = store.identity(&"/forger".parse().unwrap()).unwrap();
            tokio::spawn(relay(near, far, forger, lies));
        }
        Self {
            here,
            there,
            name,
            _keys: keys,
        }
    }

    /// Watches [`FRAMES`] frames, each of which must be what was published; gives the failures of verification.
    async fn watch(&self) -> u64 {
        let mut config = WatcherConfig::new(self.name.clone());
        config.wall_at_zero = self.here.clock().wall_at_zero();
        config.audio = false;
        let face = self
            .here
            .application_face_with_local_fields()
            .await
            .unwrap();
        let clock = self.here.clock();
        let player = Player::new(Watcher::new(config));
        let (player, mut heard) = drive(clock, face, player).spawn(|| {});
        let mut last = None;
        for _ in 0..FRAMES {
            let frame = next_frame(&mut heard).await;
            let position = frame.position;
            assert_eq!(frame.payload, payload(position), "frame {position}");
            assert!(last.is_none_or(|last| position > last), "in order");
            last = Some(position);
        }
        let stats = player.call(Player::stats).await.unwrap();
        assert!(stats.signer.unwrap().trusted);
        stats.verification_failures
    }

    async fn stop(self) {
        self.here.shutdown().await;
        self.there.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_data_never_comes_out_and_is_counted() {
    let way = Way::through(&[Lies::Sometimes]).await;
    let failures = way.watch().await;
    // Five segments a frame: of 90 frames' 450, every fifteenth was changed.
    assert!((10..=450).contains(&failures), "{failures}");
    way.stop().await;
}

/// The cheaper neighbour never tells the truth, so everything that is shown was fetched again from the other.
#[tokio::test(flavor = "multi_thread")]
async fn forged_data_is_fetched_again_from_another_face() {
    let way = Way::through(&[Lies::Always, Lies::Never]).await;
    let failures = way.watch().await;
    assert!(failures >= FRAMES as u64, "{failures}");
    way.stop().await;
}
