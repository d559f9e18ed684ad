//! Recordings are judged by the time at which they were published, and what is live by now.

use std::collections::{BTreeMap, BTreeSet};

use core::time::Duration;

use bytes::Bytes;
use namecast_apps::archive::recorder::{Recorded, Recorder, RecorderConfig};
use namecast_apps::archive::server::{Found, Lookup, Server, ServerConfig};
use namecast_apps::live::publisher::{EncodedFrame, Publisher, PublisherConfig};
use namecast_apps::live::watcher::{
    PastConfig, Refusal, Seek, Signer, Trust, Verdict, Watched, Watcher, WatcherConfig,
};
use namecast_apps::room::{Bulletin, BulletinConfig, Host, Part, published_names};
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::template::Template;
use namecast_apps::trust::{
    self, Anchor, ChainConfig, Chains, ExchangeSecret, Roster, SharedChains,
};
use namecast_apps::{Application as _, Now, Output};
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, Data, Interest, KeyLocator, Name, Validity};
use namecast_stream::index::{IndexedSample, RungIndex, TimeIndex};
use namecast_stream::{Lead, ProducerConfig, RungNames, SampleClass};
use namecast_units::{Instant, Timestamp};

use crate::world::{Show, WALL, at, ms, payload};

const ROOM: &str = "/calls/fox";
const ANN: &str = "/calls/fox/ann";
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);
/// Seeds of the keys of the anchor, of Ann who publishes, and of Bob who reads.
const FOX: u8 = 1;
const KEY: u8 = 2;
const BOB: u8 = 3;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pair(seed: u8, locator: &Name) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(locator.clone()))
}

fn digest(seed: u8) -> [u8; 32] {
    pair(seed, &name("/")).public_key().digest()
}

/// When the certificates of anchor and Ann are valid: a week before the recording, to `until`.
fn validity(until: Timestamp) -> Validity {
    Validity {
        not_before: Timestamp::from_micros(WALL.as_micros() - 7 * DAY.as_micros() as u64),
        not_after: until,
    }
}

fn anchor(until: Timestamp) -> Certificate {
    let pair = pair(FOX, &name(ROOM));
    Certificate::self_signed(&name(ROOM), b"1", 1, validity(until), &pair)
}

/// Ann's certificate, by the anchor.
fn ann(until: Timestamp) -> Certificate {
    let uri = name(&format!("{ANN}/KEY/1/fox/v=1"));
    let key = pair(KEY, &uri).public_key();
    let issuer = pair(FOX, anchor(until).name());
    Certificate::issue(uri, &key, validity(until), &[], &issuer).unwrap()
}

/// Chains that have the anchor's certificate, and these revocations of Ann's key.
fn chains(
    until: Timestamp,
    revoked: impl IntoIterator<Item = Timestamp>,
    config: ChainConfig,
) -> SharedChains {
    let rules = Template::Call.rules(&name(ROOM));
    let schema = Schema::compile(&rules, &Limits::default()).unwrap();
    let mut chains = Chains::new(schema.into(), 1, Anchor::Digest(digest(FOX)), config);
    chains.offer(anchor(until).data().clone()).unwrap();
    let revoked = revoked.into_iter().map(|since| (digest(KEY), since));
    chains.set_revoked(1, revoked.collect()).unwrap();
    SharedChains::new(chains)
}

/// Chains that know the digest of the anchor's key and nothing else.
fn strangers(config: ChainConfig) -> SharedChains {
    let nothing = Schema::nothing().into();
    let chains = Chains::new(nothing, 0, Anchor::Digest(digest(FOX)), config);
    SharedChains::new(chains)
}

/// Returns whether schema and roster are in force, before which nobody begins to record or to play.
fn has_rules(chains: &SharedChains) -> bool {
    chains.with(|it| it.schema_version() > 0 && it.roster_version() > 0)
}

/// Keeps `chains` up to date by a clock that is `later` than the recording.
fn bulletin(chains: &SharedChains, later: Duration) -> Bulletin {
    let config = BulletinConfig {
        wall_at_zero: WALL + later,
        ..BulletinConfig::new(Some(name(ROOM)), Anchor::Digest(digest(FOX)))
    };
    Bulletin::new(config, chains.clone())
}

/// The host of the room, with version 1 of schema and roster.
fn host() -> Host {
    let anchor = anchor(WALL + 30 * YEAR);
    let signer = Box::new(pair(FOX, anchor.name()));
    let mut host = Host::new(name(ROOM), signer, anchor).unwrap();
    let rules = Template::Call.rules(&name(ROOM));
    let schema = Schema::compile(&rules, &Limits::default()).unwrap();
    host.publish(Part::Schema, 1, schema.encode()).unwrap();
    let roster = Roster::default().encode();
    host.publish(Part::Roster, 1, roster).unwrap();
    host
}

/// What an archive keeps.
#[derive(Default)]
struct Kept {
    samples: BTreeMap<(Name, SampleClass, u64), Vec<Data>>,
    objects: BTreeMap<Name, Data>,
}

impl Kept {
    fn take(&mut self, recorded: Recorded) {
        match recorded {
            Recorded::Sample(packets) => {
                let (rung, id) = RungNames::of_segment(packets[0].name()).unwrap();
                self.samples.insert((rung, id.class, id.sequence), packets);
            }
            Recorded::Object { data, .. } => {
                self.objects.insert(data.name().clone(), *data);
            }
            Recorded::Event(_) => {}
        }
    }

    fn find(&self, lookup: &Lookup) -> Found {
        match lookup {
            Lookup::Sample {
                rung,
                class,
                sequence,
            } => {
                let key = (rung.clone(), *class, *sequence);
                Found::Packets(self.samples.get(&key).cloned().unwrap_or_default())
            }
            Lookup::Object(prefix) => {
                let below = self.objects.range(prefix..);
                let below = below.take_while(|(name, _)| prefix.is_prefix_of(name));
                Found::Packets(below.last().map(|(_, it)| it.clone()).into_iter().collect())
            }
            Lookup::Index { time, .. } => Found::Index(self.index(*time)),
        }
    }

    /// The index of the one rung that there is.
    fn index(&self, time: Timestamp) -> TimeIndex {
        let indexed = |((_, class, sequence), packets): (&(Name, SampleClass, u64), &Vec<Data>)| {
            let lead = Lead::decode(&packets[0]).unwrap();
            IndexedSample {
                class: *class,
                sequence: *sequence,
                other_sequence: lead.header().other_sequence,
                position: lead.header().position,
                captured_at: lead.header().captured_at,
                published_at: lead.header().published_at(),
            }
        };
        let mut samples: Vec<_> = self.samples.iter().map(indexed).collect();
        samples.sort_by_key(|sample| sample.captured_at);
        let is_key = |sample: &&IndexedSample| sample.class == SampleClass::Key;
        let since = samples.iter().find(is_key).map(|key| key.captured_at);
        let newest = SampleClass::ALL.map(|class| {
            let of_class = samples.iter().filter(|sample| sample.class == class);
            of_class.map(|sample| sample.sequence).max()
        });
        let before = samples.iter().filter(|sample| sample.captured_at <= time);
        let mut after = samples.iter().filter(|sample| sample.captured_at > time);
        let rung = before.clone().rev().find(is_key).map(|key| RungIndex {
            rung: self.samples.keys().next().unwrap().0.clone(),
            key: *key,
            sample: *before.clone().next_back().unwrap(),
            next_key: after.find(is_key).copied(),
            newest,
        });
        TimeIndex {
            rungs: rung.into_iter().collect(),
            delegation: None,
            since,
        }
    }
}

/// Ann publishes pictures for 8 s, sealed for Bob, under a certificate that ends at `until`. All of it is recorded, whatever the certificate says.
fn record(until: Timestamp) -> Kept {
    record_in(until, None)
}

/// Ann's publisher, sealed for Bob, under a certificate that ends at `until`.
fn anns_publisher(until: Timestamp) -> Publisher {
    let certificate = ann(until);
    let config = PublisherConfig {
        root: name(ANN),
        streams: Show::default().streams(),
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    let signer = Box::new(pair(KEY, certificate.name()));
    let publisher = Publisher::new(config, WALL, signer, &certificate).unwrap();
    let readers = BTreeSet::from([ExchangeSecret::of_seed(&[BOB; 32]).public()]);
    publisher.sealed([9; 32], &readers).unwrap()
}

fn publish(publisher: &mut Publisher, (now, wall): (Instant, Timestamp), position: u64) {
    let rung = publisher.rung("video", "1M").unwrap();
    let frame = EncodedFrame {
        position,
        key: position.is_multiple_of(30),
        captured_at: wall,
        composition_offset: Duration::ZERO,
        encoded_at: wall,
        payload: payload(position, 2_000),
    };
    publisher.publish_frame(now, wall, rung, frame).unwrap();
}

/// Does so in a room with a host, who publishes another roster after 4 s.
fn record_in(until: Timestamp, mut host: Option<Host>) -> Kept {
    let mut publisher = anns_publisher(until);
    let patient = ChainConfig {
        clock_tolerance: YEAR,
        ..ChainConfig::default()
    };
    let chains = match &host {
        Some(_) => strangers(patient),
        None => chains(until, [], patient),
    };
    let mut bulletin = bulletin(&chains, Duration::ZERO);
    let of_room = published_names(&name(ROOM));
    let mut recorder = Recorder::new(RecorderConfig {
        trust: Trust::Schema(chains.clone()),
        wall_at_zero: WALL,
        ..RecorderConfig::new(name(ANN))
    });
    let mut kept = Kept::default();
    let mut position = 0;
    for millis in (0..8_000).step_by(2) {
        let (now, wall) = (at(millis), WALL + ms(millis));
        while position * 1_000 <= millis * 30 {
            publish(&mut publisher, (now, wall), position);
            position += 1;
        }
        publisher.handle_timeout(now);
        let both = Now {
            monotonic: now,
            wall,
        };
        if let Some(host) = &mut host {
            if millis == 4_000 {
                let roster = Roster::default().encode();
                host.publish(Part::Roster, 2, roster).unwrap();
            }
            bulletin.handle_timeout(both);
            while let Some(Output::Send(packet)) = host.poll_output() {
                bulletin.handle_frame(both, packet.clone());
                recorder.handle_packet(now, packet);
            }
            while let Some(output) = bulletin.poll_output() {
                if let Output::Send(packet) = output {
                    host.handle_frame(both, packet);
                }
            }
        }
        if has_rules(&chains) {
            recorder.handle_timeout(now);
        }
        while let Some(output) = recorder.poll_output() {
            match output {
                Output::Send(packet) => {
                    let interest = Interest::decode(packet.clone()).unwrap();
                    let mut of_room = of_room.iter();
                    match &mut host {
                        Some(host) if of_room.any(|it| it.is_prefix_of(interest.name())) => {
                            host.handle_frame(both, packet);
                        }
                        _ => publisher.handle_packet(now, wall, packet),
                    }
                }
                Output::Event(recorded) => kept.take(recorded),
            }
            while let Some(packet) = publisher.poll_output() {
                recorder.handle_packet(now, packet);
            }
        }
    }
    assert_eq!(recorder.counters().verification_failures, 0);
    assert!(kept.samples.len() > 200, "{}", kept.samples.len());
    kept
}

/// A watcher before an archive, a link of 10 ms away.
struct Playback {
    chains: SharedChains,
    signers: Vec<Signer>,
    /// Times of capture, since the recording began.
    captured: Vec<Duration>,
    /// Frames delivered after the end of playback, as live ones.
    live: usize,
    opened: u64,
    not_a_reader: u64,
}

/// Plays what was `kept` for 12 s, and from 9 s on what is live, with Bob's key, or another one, by a clock that is `later` than the recording.
fn play(
    kept: &Kept,
    chains: SharedChains,
    from: Option<u64>,
    (later, seed): (Duration, u8),
) -> Playback {
    let mut server = Server::new(ServerConfig {
        room: Some(name(ROOM)),
        ..ServerConfig::new(name(ANN))
    });
    let mut bulletin = bulletin(&chains, later);
    let mut watcher = Watcher::new(WatcherConfig {
        wall_at_zero: WALL + later,
        trust: Trust::Schema(chains.clone()),
        past: PastConfig {
            from: from.map(|millis| WALL + ms(millis)),
            ..PastConfig::default()
        },
        reader: vec![ExchangeSecret::of_seed(&[seed; 32])],
        audio: false,
        ..WatcherConfig::new(name(ANN))
    });
    let (mut signers, mut captured, mut live) = (Vec::new(), Vec::new(), 0);
    let mut on_link: BTreeMap<Instant, Vec<Bytes>> = BTreeMap::new();
    for millis in (0..12_000).step_by(2) {
        let now = at(millis);
        let both = Now {
            monotonic: now,
            wall: WALL + later + ms(millis),
        };
        for packet in on_link.remove(&now).unwrap_or_default() {
            bulletin.handle_frame(both, packet.clone());
            watcher.handle_packet(now, packet);
        }
        bulletin.handle_timeout(both);
        while let Some(output) = bulletin.poll_output() {
            if let Output::Send(packet) = output {
                server.handle_packet(now, packet);
            }
        }
        if has_rules(&chains) {
            watcher.handle_timeout(now);
        }
        if from.is_some() && millis == 9_000 {
            watcher.seek(now, Seek::Live);
        }
        while let Some(output) = watcher.poll_output() {
            match output {
                Output::Send(packet) => server.handle_packet(now, packet),
                Output::Event(Watched::Frame(_)) if millis >= 9_000 => live += 1,
                Output::Event(Watched::Frame(frame)) => {
                    captured.push(frame.captured_at.since(WALL));
                }
                Output::Event(Watched::Signer(signer)) => signers.push(signer),
                Output::Event(_) => {}
            }
        }
        while let Some(output) = server.poll_output() {
            match output {
                Output::Send(packet) => on_link.entry(now + ms(10)).or_default().push(packet),
                Output::Event(lookup) => {
                    server.handle_found(now, &lookup, kept.find(&lookup));
                }
            }
        }
    }
    let sealed = watcher.stats(at(12_000)).sealed;
    Playback {
        chains,
        signers,
        captured,
        live,
        opened: sealed.opened,
        not_a_reader: sealed.not_a_reader,
    }
}

impl Playback {
    fn verdicts(&self) -> Vec<&Verdict> {
        self.signers.iter().map(|it| &it.verdict).collect()
    }

    fn refused(&self, why: trust::Refusal) -> u64 {
        self.chains.with(|it| it.counters().refused(why))
    }

    /// Asserts that pictures were played from 3 s to `end`, without a gap.
    fn assert_from_3_s_to(&self, end: Duration) {
        let (first, last) = (self.captured[0], *self.captured.last().unwrap());
        assert!(
            first <= ms(3_000) && ms(3_000) - first < ms(34),
            "{first:?}"
        );
        assert!(last <= end && end - last <= ms(34), "{last:?}");
        let frames = (last - first).as_millis() * 30 / 1_000;
        assert!((self.captured.len() as u128).abs_diff(frames) <= 2);
    }
}

fn live() -> ChainConfig {
    ChainConfig::default()
}

const OVER: Verdict = Verdict::Refused(Refusal::Chain(trust::Refusal::NotValidNow));
const REVOKED: Verdict = Verdict::Refused(Refusal::Chain(trust::Refusal::Revoked));

/// All certificates ended a day after the recording. 20 years later Bob plays it with the key that it was sealed for, and somebody with another
/// key sees nothing. What is live is judged by now: the archive's newest metadata does not pass for a publisher that is there.
#[test]
fn a_sealed_recording_is_opened_years_after_its_certificates_ended() {
    let until = WALL + DAY;
    let kept = record(until);
    for later in [HOUR, 3 * DAY, 20 * YEAR] {
        let bob = play(&kept, chains(until, [], live()), Some(3_000), (later, BOB));
        let last = kept.index(WALL + YEAR).rungs[0].sample.captured_at;
        bob.assert_from_3_s_to(last.since(WALL));
        assert!(bob.opened > 120, "{}", bob.opened);
        let verdicts = match later < DAY {
            true => vec![&Verdict::Certified],
            false => vec![&Verdict::CertifiedThen, &OVER],
        };
        assert_eq!(bob.verdicts(), verdicts, "{later:?}");
        assert!(later < DAY || bob.live == 0, "{}", bob.live);
    }
    let later = 20 * YEAR;
    let other = play(&kept, chains(until, [], live()), Some(3_000), (later, 77));
    assert_eq!((other.captured.len(), other.opened), (0, 0));
    assert!(other.not_a_reader > 120);
    let wants_live = play(&kept, chains(until, [], live()), None, (later, BOB));
    assert_eq!(wants_live.captured.len() + wants_live.live, 0);
    assert_eq!(wants_live.verdicts(), [&OVER]);
    assert!(wants_live.refused(trust::Refusal::NotValidNow) > 0);
}

/// Everything was recorded, by somebody who knew of no end. The certificate ends, with a day's tolerance, 5 s into the recording; or Ann's key was
/// revoked then. What says that it was published later is refused, whatever the time now is; and all of it, if the key never counted.
#[test]
fn what_was_published_after_the_end_or_the_revocation_is_refused() {
    let end = WALL + ms(5_000);
    let early = Timestamp::from_micros(end.as_micros() - DAY.as_micros() as u64);
    let expired = play(
        &record(early),
        chains(early, [], live()),
        Some(3_000),
        (YEAR, BOB),
    );
    expired.assert_from_3_s_to(ms(5_000));
    assert_eq!(expired.verdicts()[0], &Verdict::CertifiedThen);
    assert!(expired.refused(trust::Refusal::NotValidNow) > 0);

    let until = WALL + DAY;
    let kept = record(until);
    for later in [HOUR, YEAR] {
        let revoked = chains(until, [end], live());
        let revoked = play(&kept, revoked, Some(3_000), (later, BOB));
        revoked.assert_from_3_s_to(ms(5_000));
        assert_eq!(revoked.verdicts()[0], &Verdict::CertifiedThen);
        assert!(revoked.refused(trust::Refusal::Revoked) > 0);
    }
    let never = chains(until, [Timestamp::from_micros(0)], live());
    let never = play(&kept, never, Some(3_000), (YEAR, BOB));
    assert_eq!(never.captured.len(), 0);
    assert_eq!(never.verdicts(), [&REVOKED]);
}

/// The archive keeps the room's schema, both rosters and the anchor's certificate. 20 years later, with the host gone, Bob has the digest of the anchor's key
/// and nothing else, and plays all of it; somebody who takes another key for the anchor's plays nothing.
#[test]
fn a_recording_brings_the_rules_that_it_is_judged_by() {
    let until = WALL + DAY;
    let kept = record_in(until, Some(host()));
    for object in [
        "32=trust/v=1",
        "32=roster/v=1",
        "32=roster/v=2",
        "KEY/1/self/v=1",
    ] {
        let object = name(&format!("{ROOM}/{object}"));
        let below = kept.objects.keys().filter(|it| object.is_prefix_of(it));
        assert!(below.count() > 0, "{object}");
    }
    let later = 20 * YEAR;
    let bob = play(&kept, strangers(live()), Some(3_000), (later, BOB));
    let last = kept.index(WALL + YEAR).rungs[0].sample.captured_at;
    bob.assert_from_3_s_to(last.since(WALL));
    assert!(bob.opened > 120, "{}", bob.opened);
    assert_eq!(bob.verdicts()[0], &Verdict::CertifiedThen);
    assert_eq!(bob.chains.with(|it| it.roster_version()), 2);
    let nothing = Schema::nothing().into();
    let other = Chains::new(nothing, 0, Anchor::Digest(digest(77)), live());
    let other = play(&kept, SharedChains::new(other), Some(3_000), (later, BOB));
    assert_eq!(other.captured.len(), 0);
}
