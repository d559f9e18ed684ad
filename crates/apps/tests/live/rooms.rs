//! A room's host and a publisher who follows it: who comes and who leaves is known to the publisher at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use namecast_apps::live::watcher::WatcherConfig;
use namecast_apps::room::{Bulletin, BulletinConfig, Event, Host, HostEvent, Part, leave};
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_apps::trust::template::Template;
use namecast_apps::trust::{
    Anchor, ChainConfig, Chains, ExchangeSecret, Member, Roster, SharedChains,
};
use namecast_apps::{Application, Now, Output};
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, KeyLocator, Name, Nonce, Validity};
use namecast_units::{Duration, Instant, Random};

use crate::world::{Show, WALL, World, at, ms};

const ROOM: &str = "/calls/fox";
/// One-way delay, as that of the world's link.
const DELAY: Duration = ms(25);
/// Seeds of the keys of the anchor and of two members.
const FOX: u8 = 1;
const BOB: u8 = 2;
const EVE: u8 = 9;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pair(seed: u8, locator: &Name) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(locator.clone()))
}

fn anchor() -> Certificate {
    let pair = pair(FOX, &name(ROOM));
    Certificate::self_signed(&name(ROOM), b"1", 1, Validity::of_own_key(WALL), &pair)
}

fn certificate(seed: u8) -> Certificate {
    let uri = name(&format!("{ROOM}/m{seed}/KEY/1/fox/v=1"));
    let key = pair(seed, &uri).public_key();
    let issuer = pair(FOX, anchor().name());
    Certificate::issue(uri, &key, Validity::of_own_key(WALL), &[], &issuer).unwrap()
}

fn secret(seed: u8) -> ExchangeSecret {
    ExchangeSecret::of_seed(&[seed; 32])
}

fn roster(members: &[u8]) -> Roster {
    let members = members.iter().map(|seed| Member {
        certificate: certificate(*seed).name().clone(),
        key_digest: pair(*seed, &name("/")).public_key().digest(),
        until: Validity::of_own_key(WALL).not_after,
        role: "member".to_owned(),
        exchange_key: Some(secret(*seed).public()),
        label: String::new(),
    });
    Roster {
        members: members.collect(),
        revocations: Vec::new(),
    }
}

/// Host and publisher's bulletin, with a link between them.
struct Room {
    host: Host,
    version: u64,
    members: Vec<u8>,
    bulletin: Bulletin,
    /// Packets on the link, and whether they go to the host.
    on_link: BTreeMap<(Instant, u64), (bool, Bytes)>,
    sent: u64,
    loss: f64,
    random: Random,
    /// The newest roster that the publisher knows, and since when.
    known: Option<(Instant, u64, Arc<Roster>)>,
}

impl Room {
    fn new(loss: f64, seed: u64) -> Self {
        let certificate = anchor();
        let signer = Box::new(pair(FOX, certificate.name()));
        let host = Host::new(name(ROOM), signer, certificate).unwrap();
        let anchor = Anchor::Digest(pair(FOX, &name("/")).public_key().digest());
        let nothing = Arc::new(Schema::nothing());
        let chains = Chains::new(nothing, 0, anchor.clone(), ChainConfig::default());
        let config = BulletinConfig {
            wall_at_zero: WALL,
            seed,
            ..BulletinConfig::new(Some(name(ROOM)), anchor)
        };
        let mut room = Self {
            host,
            version: 0,
            members: Vec::new(),
            bulletin: Bulletin::new(config, SharedChains::new(chains)),
            on_link: BTreeMap::new(),
            sent: 0,
            loss,
            random: Random::from_seed(seed),
            known: None,
        };
        let rules = Template::Call.rules(&name(ROOM));
        let schema = Schema::compile(&rules, &Limits::default()).unwrap();
        let published = room.host.publish(Part::Schema, 1, schema.encode());
        published.unwrap();
        room.set_members(&[BOB]);
        room
    }

    fn set_members(&mut self, members: &[u8]) {
        self.version += 1;
        self.members = members.to_vec();
        for seed in members {
            assert!(self.host.add_certificate(&self::certificate(*seed)));
        }
        let content = roster(members).encode();
        self.host
            .publish(Part::Roster, self.version, content)
            .unwrap();
    }

    fn send(&mut self, now: Instant, to_host: bool, packet: Bytes) {
        if !self.random.chance(self.loss) {
            self.sent += 1;
            self.on_link
                .insert((now + DELAY, self.sent), (to_host, packet));
        }
    }

    /// Does what is due at `now`. Returns whether the publisher knows a newer roster.
    fn step(&mut self, now: Instant) -> bool {
        let both = Now {
            monotonic: now,
            wall: WALL + now.since(Instant::ZERO),
        };
        let later = self.on_link.split_off(&(now + ms(1), 0));
        for (_, (to_host, packet)) in core::mem::replace(&mut self.on_link, later) {
            match to_host {
                true => self.host.handle_frame(both, packet),
                false => self.bulletin.handle_frame(both, packet),
            }
        }
        self.host.handle_timeout(both);
        self.bulletin.handle_timeout(both);
        while let Some(output) = self.host.poll_output() {
            match output {
                Output::Send(packet) => self.send(now, false, packet),
                Output::Event(HostEvent::Leave(leaver)) => {
                    let stays = |seed: &u8| *self::certificate(*seed).name() != leaver;
                    let staying: Vec<_> = self.members.iter().copied().filter(stays).collect();
                    self.set_members(&staying);
                }
                Output::Event(HostEvent::Join(_)) => panic!("nobody joins"),
            }
        }
        let before = self.known.as_ref().map(|(_, version, _)| *version);
        while let Some(output) = self.bulletin.poll_output() {
            match output {
                Output::Send(packet) => self.send(now, true, packet),
                Output::Event(Event::Roster(version, roster)) => {
                    self.known = Some((now, version, roster));
                }
                Output::Event(_) => {}
            }
        }
        self.known.as_ref().map(|(_, version, _)| *version) != before
    }

    /// Runs until the publisher knows roster `version`. Returns when.
    fn until_known(&mut self, from: u64, version: u64) -> u64 {
        for millis in from..from + 60_000 {
            self.step(at(millis));
            let known = self.known.as_ref();
            if known.is_some_and(|(_, known, _)| *known >= version) {
                return millis;
            }
        }
        panic!("roster {version} is not known within a minute");
    }
}

/// A publisher that seals for the members, and both members as its watchers.
fn sealed(room: &mut Room, world: &mut World, millis: u64) {
    world.run_until(at(millis));
    if room.step(at(millis)) {
        let (_, _, roster) = room.known.as_ref().unwrap();
        let readers = roster.readers(world.wall());
        let publisher = world.publisher.as_mut().unwrap();
        publisher.set_readers(at(millis), &readers);
    }
}

fn world() -> (World, [usize; 2]) {
    let mut world = World::new(Show {
        audio: true,
        ..Show::default()
    });
    world.readers = Some([secret(BOB).public()].into());
    world.start_publisher(7);
    let watchers = [BOB, EVE].map(|seed| {
        world.join(WatcherConfig {
            reader: vec![secret(seed)],
            seed: u64::from(seed),
            ..World::config()
        })
    });
    (world, watchers)
}

/// Host, publisher and watchers are 25 ms apart. Eve watches, and opens samples two round trips and 50 ms after the host admitted her at most, whenever
/// that is: it takes 25 ms to the publisher and up to 20 ms to its next packet of sound, which is played 85 ms after it was published. The box, for which
/// her Interest waits, comes before.
#[test]
fn a_newcomer_opens_samples_two_round_trips_after_the_host_admits_it() {
    for admitted_at in [3_003, 3_010, 4_217, 6_999, 9_001] {
        let mut room = Room::new(0.0, 1);
        let (mut world, [bob, eve]) = world();
        for millis in 0..admitted_at {
            sealed(&mut room, &mut world, millis);
        }
        let opened = |world: &World, peer: usize| world.peers[peer].watcher.stats(world.now).sealed;
        assert_eq!(opened(&world, eve).opened, 0);
        room.set_members(&[BOB, EVE]);
        let mut opened_at = None;
        for millis in admitted_at..admitted_at + 1_000 {
            sealed(&mut room, &mut world, millis);
            if opened(&world, eve).opened > 0 {
                opened_at.get_or_insert(millis);
            }
        }
        let after = opened_at.unwrap() - admitted_at;
        assert!(
            (110..=150).contains(&after),
            "{after} ms after {admitted_at}"
        );
        // Bob was not shut out meanwhile.
        assert_eq!(opened(&world, bob).not_a_reader, 0);
    }
}

/// Bob says that he leaves. The host hears it 25 ms later and the publisher 50 ms later: a new key is in force 0.8 s after that, and Eve, who stays, loses
/// nothing.
#[test]
fn a_leaver_is_shut_out_soon_after_it_says_so() {
    let mut room = Room::new(0.0, 1);
    room.set_members(&[BOB, EVE]);
    let (mut world, [bob, eve]) = world();
    let left_at = 4_321;
    let mut last_opened = 0;
    for millis in 0..7_000 {
        if millis == left_at {
            let signer = pair(BOB, certificate(BOB).name());
            let interest = leave(&name(ROOM), &signer, Nonce([1; 4]));
            room.send(at(millis), true, interest.wire().clone());
        }
        let before = world.peers[bob].frames.len();
        sealed(&mut room, &mut world, millis);
        if world.peers[bob].frames.len() > before {
            last_opened = millis;
        }
    }
    let captured = |peer: usize| world.peers[peer].frames.last().unwrap().1.captured_at;
    let left = WALL + ms(left_at);
    let last = captured(bob).since(left);
    assert!((ms(800)..=ms(850)).contains(&last), "{last:?}");
    assert!(last_opened < left_at + 1_000, "{last_opened}");
    assert!(captured(eve) > WALL + ms(6_850));
    assert_eq!(
        world.peers[eve].watcher.stats(world.now).sealed.box_missing,
        0
    );
    assert_eq!(room.members, [EVE]);
    assert_eq!(room.host.leave_counters().held, 1);
}

/// With a loss of 5 % each way, nine of ten rosters are known after half a round trip, as the Interest for it waits at the host. Others are known with the
/// next one, 2 s later at most, or the next look.
#[test]
fn rosters_are_known_soon_in_spite_of_losses() {
    let mut delays = Vec::new();
    for seed in 0..200 {
        let mut room = Room::new(0.05, seed);
        let known_at = room.until_known(0, 1);
        let published_at = known_at + 2_500 + 37 * seed;
        for millis in known_at..published_at {
            room.step(at(millis));
        }
        room.set_members(&[BOB, EVE]);
        delays.push(room.until_known(published_at, 2) - published_at);
    }
    delays.sort_unstable();
    assert_eq!(delays[0], 25);
    assert_eq!(delays[160], 25, "{delays:?}");
    assert!(delays[199] <= 5_500, "{delays:?}");
}
