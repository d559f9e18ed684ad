//! State vectors and publications of any octets, and scripts of what reaches a member of a group.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use namecast_apps::group::{
    Gate, Group, GroupConfig, MAX_BOOTS, MAX_MEMBERS, Publication, Sealing, StateVector, Status,
};
use namecast_apps::trust::ExchangeSecret;
use namecast_apps::{Application, Now, Output};
use namecast_packet::signature::{DigestSigner, DigestVerifier};
use namecast_packet::tlv::Writer;
use namecast_packet::{Data, Interest, Name, Nonce, Packet};
use namecast_units::{Instant, Timestamp};

/// Kinds of inputs of [`svs`], by their first octet: a state vector; a publication.
pub(crate) const KINDS: u8 = 2;

/// Wall clock at the start, in seconds since 1970.
const WALL: u64 = 1_760_000_000;

/// Reads `octets` by their kind. Returns whether they hold what their kind says.
pub(crate) fn svs(octets: &[u8]) -> bool {
    let Some((kind, rest)) = octets.split_first() else {
        return false;
    };
    let rest = Bytes::copy_from_slice(rest);
    match kind % KINDS {
        0 => StateVector::decode(&rest).is_ok_and(|vector| {
            assert!(vector.entries().count() <= MAX_MEMBERS * MAX_BOOTS);
            assert_eq!(StateVector::decode(&vector.encode()), Ok(vector));
            true
        }),
        _ => Publication::decode(&rest).is_ok_and(|publication| {
            assert_eq!(Publication::decode(&publication.encode()), Ok(publication));
            true
        }),
    }
}

/// Lets in everybody in the room whose signature is a digest.
struct Door;

impl Gate for Door {
    fn is_member(&self, member: &Name) -> bool {
        member.len() == 2
    }

    fn accepts(&self, _: Now, data: &Data) -> bool {
        data.verify(&DigestVerifier).is_ok()
    }
}

/// A member, and what it has sent.
struct World {
    group: Group,
    now: Duration,
    /// When each sort of Interest left, within the last second.
    sent: BTreeMap<Vec<u8>, VecDeque<Duration>>,
}

impl World {
    /// A member; sealing, if there are keys.
    fn new(sealing: Option<Sealing>) -> Self {
        let config = GroupConfig {
            group: name("/r"),
            member: name("/r/m0"),
            status: Status::default(),
            sealing,
            seed: 1,
        };
        Self {
            group: Group::new(config, Box::new(Door), Box::new(DigestSigner)),
            now: Duration::ZERO,
            sent: BTreeMap::new(),
        }
    }

    fn at(&self) -> Now {
        Now {
            monotonic: Instant::ZERO + self.now,
            wall: Timestamp::from_micros(WALL * 1_000_000 + self.now.as_micros() as u64),
        }
    }

    fn take(&mut self, frame: Bytes) {
        let now = self.at();
        self.group.handle_frame(now, frame);
        self.drain();
    }

    /// Takes what the member sends: of vectors at most 10 a second and one to begin with, of requests of one member at most four publications and one
    /// question.
    fn drain(&mut self) {
        while let Some(output) = self.group.poll_output() {
            let Output::Send(frame) = output else {
                continue;
            };
            let Ok(Packet::Interest(interest)) = Packet::decode(frame) else {
                continue;
            };
            let of = interest.name().prefix(2);
            let sent = self.sent.entry(of.value().to_vec()).or_default();
            sent.push_back(self.now);
            sent.retain(|at| *at + Duration::from_secs(1) > self.now);
            let is_vector = of == name("/r/v=3");
            assert!(sent.len() <= if is_vector { 10 } else { 5 }, "{of}");
        }
        assert!(self.group.here().count() < MAX_MEMBERS);
    }

    /// Lets so many milliseconds pass: each deadline that passes is the last one, or later.
    fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        let mut calls = 0;
        while let Some(due) = self.group.poll_timeout() {
            let due = due.since(Instant::ZERO).max(self.now);
            if due > end {
                break;
            }
            self.now = due;
            let now = self.at();
            self.group.handle_timeout(now);
            self.drain();
            calls += 1;
            assert!(calls < 100_000, "it stands still at {due:?}");
        }
        self.now = end;
    }
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

/// Runs a script: an octet that says what happens, two of a number, one of a member, and for raw frames as many octets as the number says.
/// Returns how many members are here in the end. The same script reaches a member whose group is sealed, too.
pub(crate) fn group(script: &[u8]) -> usize {
    let sealing = Sealing {
        seed: [1; 32],
        own: vec![ExchangeSecret::of_seed(&[2; 32])],
    };
    run(World::new(Some(sealing)), script);
    run(World::new(None), script)
}

fn run(mut world: World, script: &[u8]) -> usize {
    world.pass(0);
    let mut rest = script;
    while let [kind, high, low, member, after @ ..] = rest {
        rest = after;
        let number = u64::from(u16::from_be_bytes([*high, *low]));
        let boot = WALL + u64::from(*kind >> 4);
        let member = name(&format!("/r/m{member}"));
        let prefix = member.builder().name(&name("/r"));
        let publication = prefix.timestamp(boot).sequence(number).finish();
        match kind % 8 {
            0 => world.pass(number),
            1 => world.take(claim(&member, boot, number)),
            2 => world.take(claim(
                &member,
                boot << (number % 32),
                u64::MAX >> (number % 64),
            )),
            3 => {
                let status = Status {
                    label: format!("{number}"),
                    has_hand_up: number & 1 > 0,
                    is_muted: number & 2 > 0,
                };
                let content = Publication {
                    status,
                    has_left: number % 5 == 0,
                    text: (number & 4 > 0).then(|| "text".to_owned()),
                };
                let content = match number & 8 > 0 {
                    true => sealed(*low),
                    false => content.encode(),
                };
                let data = Data::builder(publication).content(content);
                world.take(data.sign(&DigestSigner).wire().clone());
            }
            4 => {
                let version = WALL * 1_000_000 + world.now.as_micros() as u64;
                let answer = member.builder().name(&name("/r")).keyword("metadata");
                let mut content = Writer::default();
                publication.encode(&mut content);
                let data = Data::builder(answer.version(version).finish());
                let data = data.content(content.finish()).sign(&DigestSigner);
                world.take(data.wire().clone());
            }
            5 => {
                let interest = Interest::builder(publication);
                world.take(interest.build(Nonce([1; 4])).wire().clone());
            }
            6 => {
                let now = world.at();
                match number % 4 {
                    0 => world.group.leave(now),
                    1 => world.group.on_alive(now.monotonic, &member),
                    2 => world.group.set_status(Status {
                        label: "x".repeat(usize::from(*low)),
                        ..Status::default()
                    }),
                    // Too many or too long ones are refused.
                    _ => drop(world.group.send(now, "hello")),
                }
                world.drain();
            }
            _ => {
                let (frame, after) = rest.split_at(rest.len().min(number as usize));
                rest = after;
                world.take(Bytes::copy_from_slice(frame));
            }
        }
    }
    world.pass(100);
    world.group.here().count()
}

/// A publication that nobody can open: of generation and step `number`.
fn sealed(number: u8) -> Bytes {
    let seal = [[1, 2, 3, 4].as_slice(), &[0, number, number]].concat();
    let mut content = Writer::default();
    content.element(138, &seal).element(140, &[number; 40]);
    content.finish()
}

/// A Sync Interest of somebody who says that `member` has published so many since `boot`.
fn claim(member: &Name, boot: u64, number: u64) -> Bytes {
    let mut vector = Writer::default();
    vector.nested(201, |vector| {
        vector.nested(202, |entry| {
            member.encode(entry);
            entry.nested(210, |entry| {
                entry.number(212, boot).number(214, number);
            });
        });
    });
    let data = Data::builder(name("/r/v=3")).content(vector.finish());
    let parameters = data.sign(&DigestSigner).wire().clone();
    let interest = Interest::builder(name("/r/v=3")).parameters(parameters);
    interest.build(Nonce([1; 4])).wire().clone()
}
