//! The real command: what was sealed and archived in 2020, under certificates that ended in that year, is played now.

use std::collections::BTreeSet;
use std::path::Path;

use crate::program::{Program, home, start_forwarder};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use namecast_apps::archive::recorder::{Recorded, Recorder, RecorderConfig};
use namecast_apps::live::publisher::{EncodedFrame, Publisher, PublisherConfig};
use namecast_apps::live::watcher::Trust;
use namecast_apps::room::{Bulletin, BulletinConfig, Host, Part, published_names};
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::template::Template;
use namecast_apps::trust::{Anchor, ChainConfig, Chains, Member, Roster, SharedChains};
use namecast_apps::{Application as _, Now, Output};
use namecast_archive::{Archive, Config, Location, Moment, Writer};
use namecast_net::KeyStore;
use namecast_packet::signature::{Ed25519Signer, KeyPair as _};
use namecast_packet::{Certificate, Interest, KeyLocator, Name, PublicKey, Validity};
use namecast_stream::{ProducerConfig, Reading, Rung, SampleRate, StreamInfo, StreamKind};
use namecast_units::{Bitrate, Duration, Instant, Timestamp};
use serde_json::{Value, json};

const ROOM: &str = "/calls/fox";
const ANN: &str = "/calls/fox/ann";
/// Noon of the third of March 2020, when the recording begins.
const THEN: Timestamp = Timestamp::from_micros(1_583_236_800_000_000);
const SECONDS: u64 = 12;
/// Seeds of the keys of anchor and publisher.
const FOX: u8 = 1;
const KEY: u8 = 2;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pair(seed: u8, locator: &Name) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(locator.clone()))
}

/// From the day before the recording to the week after it.
fn validity() -> Validity {
    let day = 86_400_000_000;
    let at = |days: u64| Timestamp::from_micros(THEN.as_micros() - day + days * day);
    Validity {
        not_before: at(0),
        not_after: at(8),
    }
}

/// The anchor's certificate. Its name is the same whatever its validity is.
fn anchor(validity: Validity) -> Certificate {
    let pair = pair(FOX, &name(ROOM));
    Certificate::self_signed(&name(ROOM), b"1", 1, validity, &pair)
}

/// The certificate of `key` as `id`, by the anchor.
fn member(id: &str, key: (&PublicKey, &str)) -> Certificate {
    let uri = name(&format!("{ROOM}/{id}/KEY/{}/fox/v=1", key.1));
    let issuer = pair(FOX, anchor(validity()).name());
    Certificate::issue(uri, key.0, validity(), &[], &issuer).unwrap()
}

fn video() -> StreamInfo {
    let rung = Rung {
        name: "1M".to_owned(),
        bitrate: Bitrate::kbps(480),
        width: None,
        height: None,
        rate: SampleRate::new(30, 1),
        key_interval: 30,
        reorder_delay: 0,
        codec_string: "avc1.42e01f".to_owned(),
        sample_rate: None,
        channels: None,
        inter_frame: None,
        description: None,
    };
    StreamInfo {
        name: "video".to_owned(),
        kind: StreamKind::Video,
        codec: "h264".to_owned(),
        rungs: vec![rung],
        segment_size: 1_000,
        parity_percent: 20,
        reading: Reading::default(),
    }
}

/// Ann, who publishes for the key of `reader`.
fn publisher(reader: [u8; 32]) -> Publisher {
    let key = pair(KEY, &name(ANN)).public_key();
    let certificate = member("ann", (&key, "1"));
    let config = PublisherConfig {
        root: name(ANN),
        streams: vec![video()],
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    let signer = Box::new(pair(KEY, certificate.name()));
    let publisher = Publisher::new(config, THEN, signer, &certificate).unwrap();
    publisher
        .sealed([9; 32], &BTreeSet::from([reader]))
        .unwrap()
}

/// The room's host, with one version of schema and roster.
fn host(anchor: Certificate) -> Host {
    let signer = Box::new(pair(FOX, anchor.name()));
    let mut host = Host::new(name(ROOM), signer, anchor).unwrap();
    let rules = Template::Call.rules(&name(ROOM));
    let schema = Schema::compile(&rules, &Limits::default()).unwrap();
    host.publish(Part::Schema, 1, schema.encode()).unwrap();
    let key = pair(KEY, &name(ANN)).public_key();
    let ann = Member {
        certificate: member("ann", (&key, "1")).name().clone(),
        key_digest: key.digest(),
        until: validity().not_after,
        role: "member".to_owned(),
        exchange_key: None,
        label: String::new(),
    };
    let roster = Roster {
        members: vec![ann],
        revocations: Vec::new(),
    };
    host.publish(Part::Roster, 1, roster.encode()).unwrap();
    host
}

fn digest() -> [u8; 32] {
    pair(FOX, &name(ROOM)).public_key().digest()
}

/// An archive's recorder, and what reads the rules that it judges by.
fn recorder() -> (Recorder, Bulletin) {
    let anchor = Anchor::Digest(digest());
    let nothing = Schema::nothing().into();
    let chains = Chains::new(nothing, 0, anchor.clone(), ChainConfig::default());
    let chains = SharedChains::new(chains);
    let config = BulletinConfig {
        wall_at_zero: THEN,
        ..BulletinConfig::new(Some(name(ROOM)), anchor)
    };
    let recorder = Recorder::new(RecorderConfig {
        trust: Trust::Schema(chains.clone()),
        wall_at_zero: THEN,
        ..RecorderConfig::new(name(ANN))
    });
    (recorder, Bulletin::new(config, chains))
}

/// Carries what bulletin and host have for each other.
fn follow(bulletin: &mut Bulletin, host: &mut Host, now: Now) {
    bulletin.handle_timeout(now);
    while let Some(output) = bulletin.poll_output() {
        if let Output::Send(packet) = output {
            host.handle_frame(now, packet);
        }
        while let Some(Output::Send(packet)) = host.poll_output() {
            bulletin.handle_frame(now, packet);
        }
    }
}

/// Ann publishes for 12 s of 2020, sealed for the key of `reader`, in a room with this anchor, and an archive in `store` records it.
async fn record(store: &Path, reader: [u8; 32], anchor: Certificate) {
    let (mut publisher, mut host) = (publisher(reader), host(anchor));
    let (mut recorder, mut bulletin) = recorder();
    let of_room = published_names(&name(ROOM));
    let moment = |millis: u64| Moment {
        monotonic: Instant::ZERO + Duration::from_millis(millis),
        wall: THEN + Duration::from_millis(millis),
    };
    let location = Location::Directory(store.to_owned());
    let config = Config::new(name(ANN), location, 1);
    let archive = Archive::open(config, moment(0)).await.unwrap();
    let mut writer = Writer::new(archive);
    let mut position = 0;
    for millis in (0..SECONDS * 1_000).step_by(2) {
        let Moment { monotonic, wall } = moment(millis);
        while position * 1_000 <= millis * 30 {
            let rung = publisher.rung("video", "1M").unwrap();
            let frame = EncodedFrame {
                position,
                key: position % 30 == 0,
                captured_at: wall,
                composition_offset: Duration::ZERO,
                encoded_at: wall,
                payload: vec![position as u8; 2_000].into(),
            };
            publisher
                .publish_frame(monotonic, wall, rung, frame)
                .unwrap();
            position += 1;
        }
        publisher.handle_timeout(monotonic);
        let now = Now { monotonic, wall };
        follow(&mut bulletin, &mut host, now);
        recorder.handle_timeout(monotonic);
        while let Some(output) = recorder.poll_output() {
            match output {
                Output::Send(packet) => {
                    let interest = Interest::decode(packet.clone()).unwrap();
                    match of_room.iter().any(|it| it.is_prefix_of(interest.name())) {
                        true => host.handle_frame(now, packet),
                        false => publisher.handle_packet(monotonic, wall, packet),
                    }
                }
                Output::Event(Recorded::Sample(packets)) => {
                    writer.append(moment(millis), &packets).unwrap();
                }
                Output::Event(Recorded::Object { data, replaces }) => match replaces {
                    Some(replaced) => writer
                        .append_lasting(moment(millis), &data, &replaced)
                        .unwrap(),
                    None => writer.append(moment(millis), &[*data]).unwrap(),
                },
                Output::Event(Recorded::Event(_)) => {}
            }
            while let Some(packet) = publisher.poll_output() {
                recorder.handle_packet(monotonic, packet);
            }
            while let Some(Output::Send(packet)) = host.poll_output() {
                recorder.handle_packet(monotonic, packet);
            }
        }
    }
    writer.finish(moment(SECONDS * 1_000)).await.unwrap();
}

/// What a watcher that plays from a time on prints: its signers' verdicts, and its last figures.
fn played(home: &Path, line: &str) -> (Vec<String>, Value) {
    let mut watcher = Program::start(home, line);
    let lines: Vec<_> = watcher.lines().collect();
    let verdicts = lines
        .iter()
        .filter_map(|it| it["signer"]["verdict"].as_str());
    let last = lines.last().unwrap();
    assert_eq!(last["final"], json!(true), "{last}");
    (verdicts.map(str::to_owned).collect(), last["stats"].clone())
}

/// The keys of Bob, whose certificate ended, and whose box an archive of `keeper` has recorded, in a room with this anchor.
fn record_for(bob: &Path, keeper: &Path, anchor: Certificate) {
    let keys = KeyStore::open(bob.join("keys")).unwrap();
    let own = name("/calls/fox/bob");
    let identity = Certificate::decode(keys.identity(&own).unwrap().certificate).unwrap();
    let id = identity.key_id().to_string();
    let issued = member("bob", (&identity.public_key().unwrap(), &id));
    keys.install(&issued).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let reader = keys.exchange_secret(&own).unwrap().public();
    runtime.block_on(record(&keeper.join("kept"), reader, anchor));
}

/// Bob opens the recording, of which Eve opens nothing. Returns her statistics.
fn opened_by_bob_alone([bob, eve]: [&Path; 2], watch: &str) -> Value {
    let past = format!("{watch} --from 2020-03-03T12:00:02Z --duration 8s");
    let (verdicts, stats) = played(bob, &past);
    assert_eq!(
        verdicts[0],
        "certified by the anchor at the time of the recording"
    );
    let opened = stats["sealed"]["opened"].as_u64().unwrap();
    assert!(opened > 100, "{stats}");
    let (_, stats) = played(eve, &past);
    assert_eq!(stats["sealed"]["opened"], json!(0), "{stats}");
    stats
}

/// Anchor, host and publisher are gone. Bob has the rules in a file, the anchor's certificate and the key that it was sealed for, whose certificate
/// ended too: he plays all of it. Eve has no such key and opens nothing, and whoever wants it live is refused.
#[test]
fn what_was_sealed_years_ago_is_opened_by_the_key_that_it_was_sealed_for() {
    let directory = tempfile::tempdir().unwrap();
    let [bob, eve, keeper] = ["bob", "eve", "keeper"].map(|who| home(directory.path(), who));
    record_for(&bob, &keeper, anchor(validity()));
    let rules = directory.path().join("call.trust");
    std::fs::write(&rules, Template::Call.rules(&name(ROOM))).unwrap();
    let pinned = directory.path().join("anchor.cert");
    std::fs::write(&pinned, STANDARD.encode(anchor(validity()).data().wire())).unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let (rules, pinned) = (rules.display(), pinned.display());
    let trusted = format!("--schema {rules} --key {pinned} --connect {face}");
    let archive = format!("archive {ANN} --quiet --store kept {trusted}");
    let _archive = Program::start(&keeper, &archive);
    let watch = format!("watch {ANN} --no-audio --keys keys --json {trusted}");
    let stats = opened_by_bob_alone([&bob, &eve], &watch);
    assert!(
        stats["sealed"]["not_a_reader"].as_u64() > Some(100),
        "{stats}"
    );
    let (verdicts, stats) = played(&bob, &format!("{watch} --duration 3s"));
    let over = "refused: its certificate is refused: a certificate of the chain is not valid now";
    assert_eq!(verdicts, [over]);
    assert_eq!(stats["sealed"]["opened"], json!(0), "{stats}");
}

/// Host and publisher are gone. Bob knows the name of the room and the digest of its anchor, and nothing else: schema, roster and the anchor's certificate,
/// which is valid for 20 years as all anchors' are, come from the archive, which is started as it was in 2020. Eve opens nothing.
#[test]
fn an_archive_has_the_rules_of_what_it_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let [bob, eve, keeper] = ["bob", "eve", "keeper"].map(|who| home(directory.path(), who));
    record_for(&bob, &keeper, anchor(Validity::of_own_key(THEN)));
    let (_forwarder, face) = start_forwarder(directory.path());
    let digest: String = digest().iter().map(|it| format!("{it:02x}")).collect();
    let trusted = format!("--schema {ROOM} --key {digest} --connect {face}");
    let archive = format!("archive {ANN} --quiet --store kept {trusted}");
    let _archive = Program::start(&keeper, &archive);
    let watch = format!("watch {ANN} --no-audio --keys keys --json {trusted}");
    opened_by_bob_alone([&bob, &eve], &watch);
}
