use namecast_apps::management::{ControlParameters, ControlResponse};
use namecast_apps::room::{Host, HostEvent, InvitationSecret, Part, Welcome};
use namecast_apps::trust::schema::Limits;
use namecast_apps::trust::template::Template;
use namecast_apps::trust::{Member, Revocation};
use namecast_forward::{Config, Scope, Transmit};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{LpPacket, Packet, Validity};
use serde_json::Value;

use super::*;
use crate::config::{LiveFrame, PublicationConfig, WatchConfig};
use crate::tab::Tab;
use crate::transports::Transport;

const WALL: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);
const TICK: Duration = Duration::from_millis(5);
const ROOT: &str = "/calls/fox";
const TOKEN: [u8; 16] = [9; 16];
/// Seed of the anchor's key.
const FOX: u8 = 100;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn pair(seed: u8, locator: &Name) -> Ed25519Signer {
    Ed25519Signer::from_seed([seed; 32], KeyLocator::Name(locator.clone()))
}

fn anchor() -> Certificate {
    let validity = Validity::of_own_key(WALL);
    let own = pair(FOX, &name(ROOT));
    Certificate::self_signed(&name(ROOT), b"1", 1, validity, &own)
}

/// A host and tabs at one node, without delay.
struct Call {
    now: Instant,
    node: Node,
    management: FaceId,
    host: Host,
    host_face: FaceId,
    roster: Roster,
    version: u64,
    /// Whether newcomers wait until somebody says yes.
    knocks: bool,
    waiting: Vec<namecast_apps::room::Join>,
    tabs: Vec<Tab>,
    /// The node's end of each tab's transport, and the tab's.
    links: Vec<(FaceId, FaceId)>,
    /// Payloads of frames that each tab gets, and its events.
    frames: Vec<Vec<Vec<u8>>>,
    events: Vec<Vec<Value>>,
    /// All that passed between tabs and node.
    captured: Vec<Bytes>,
}

impl Call {
    /// Tabs that are in no room yet.
    fn new(count: u32) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let mut node = Node::new(Config::default());
        let local = |label: &str| FaceConfig {
            local_fields: true,
            ..FaceConfig::application(label)
        };
        let management = node.add_face(local("management")).unwrap();
        let host_face = node.add_face(local("host")).unwrap();
        let commands = name("/localhop/nfd/rib");
        node.forwarder.add_route(commands, management, 0).unwrap();
        node.forwarder
            .add_route(name(ROOT), host_face, 100)
            .unwrap();
        let signer = pair(FOX, anchor().name());
        let mut host = Host::new(name(ROOT), Box::new(signer), anchor()).unwrap();
        host.set_invitations(&[InvitationSecret::of_token(&TOKEN)]);
        let rules = Template::Call.rules(&name(ROOT));
        let schema = Schema::compile(&rules, &Limits::default()).unwrap();
        host.publish(Part::Schema, 1, schema.encode()).unwrap();
        let mut call = Self {
            now,
            node,
            management,
            host,
            host_face,
            roster: Roster::default(),
            version: 0,
            knocks: false,
            waiting: vec![],
            tabs: vec![],
            links: vec![],
            frames: vec![],
            events: vec![],
            captured: vec![],
        };
        call.publish_roster();
        for seed in 0..count {
            let end = call.node.add_face(FaceConfig {
                scope: Scope::NonLocal,
                ..FaceConfig::default()
            });
            let mut tab = Tab::new(WALL, seed);
            let transport = Transport::new("websocket", 0, false);
            let face = tab.face_up(now, &transport).unwrap();
            call.links.push((end.unwrap(), face));
            call.tabs.push(tab);
            call.frames.push(vec![]);
            call.events.push(vec![]);
        }
        call
    }

    fn publish_roster(&mut self) {
        self.version += 1;
        let content = self.roster.encode();
        self.host
            .publish(Part::Roster, self.version, content)
            .unwrap();
    }

    /// Enters the room with the secret of a number.
    fn enter(&mut self, at: usize, secret: u8, token: Option<[u8; 16]>) {
        let config = RoomConfig {
            root: ROOT.to_owned(),
            key: hex(&pair(FOX, &name("/")).public_key().digest()),
            secret: hex(&[secret; 32]),
            token: token.map(|it| hex(&it)),
            label: "Ann".to_owned(),
            certificate: None,
        };
        self.tabs[at].enter(self.now, &config).unwrap();
    }

    /// Certifies a newcomer.
    fn certify(&mut self, join: &namecast_apps::room::Join) {
        let id = format!("m{}", self.roster.members.len() + 1);
        let uri = name(&format!("{ROOT}/{id}/KEY/1/fox/v=1"));
        let validity = Validity::of_own_key(WALL);
        let signer = pair(FOX, anchor().name());
        let certificate = Certificate::issue(uri, &join.key, validity, &[], &signer).unwrap();
        self.host.add_certificate(&certificate);
        self.roster.members.push(Member {
            certificate: certificate.name().clone(),
            key_digest: join.key.digest(),
            until: validity.not_after,
            role: "member".to_owned(),
            exchange_key: Some(join.exchange_key),
            label: join.label.clone(),
        });
        self.publish_roster();
        let welcome = Welcome {
            schema_version: 1,
            roster_version: self.version,
            certificate,
        };
        self.host.welcome(join.key.digest(), &welcome);
    }

    fn run_for(&mut self, milliseconds: u64) {
        let end = self.now + Duration::from_millis(milliseconds);
        while self.now < end {
            self.now += TICK;
            self.node.handle_timeout(self.now);
            self.host.handle_timeout(self.both());
            for tab in &mut self.tabs {
                tab.handle_timeout(self.now);
            }
            while self.exchange() {}
        }
    }

    fn both(&self) -> Now {
        Now {
            monotonic: self.now,
            wall: WALL + self.now.since(Instant::ZERO),
        }
    }

    /// Carries what waits; returns whether there was anything.
    fn exchange(&mut self) -> bool {
        let mut has_moved = false;
        for at in 0..self.tabs.len() {
            let batch = self.tabs[at].drain();
            let mut rest = &batch[..];
            while let Some((length, after)) = rest.split_first_chunk::<4>() {
                let (record, after) = after.split_at(u32::from_le_bytes(*length) as usize);
                has_moved = true;
                match record[0] {
                    1 => {
                        let frame = Bytes::copy_from_slice(&record[5..]);
                        self.captured.push(frame.clone());
                        self.node.handle_frame(self.now, self.links[at].0, frame);
                    }
                    // Watch 4, stream 1, flags 1, length of the rung's name 1, the name, 3 numbers of 8 and 4 of 4 octets.
                    2 => {
                        let payload = 1 + 7 + usize::from(record[7]) + 3 * 8 + 4 * 4;
                        self.frames[at].push(record[payload..].to_vec());
                    }
                    4 => self.events[at].push(serde_json::from_slice(&record[1..]).unwrap()),
                    _ => {}
                }
                rest = after;
            }
        }
        while let Some(output) = self.host.poll_output() {
            has_moved = true;
            match output {
                Output::Send(frame) => self.node.handle_frame(self.now, self.host_face, frame),
                Output::Event(HostEvent::Join(join)) if self.knocks => self.waiting.push(*join),
                Output::Event(HostEvent::Join(join)) => self.certify(&join),
                Output::Event(HostEvent::Leave(name)) => panic!("{name} leaves"),
            }
        }
        while let Some(Transmit { face, frame }) = self.node.poll_output() {
            has_moved = true;
            if face == self.management {
                self.register(frame);
            } else if face == self.host_face {
                self.host.handle_frame(self.both(), frame);
            } else {
                self.captured.push(frame.clone());
                let mut links = self.links.iter();
                let at = links.position(|(end, _)| *end == face).unwrap();
                self.tabs[at].handle_frame(self.now, self.links[at].1, frame.to_vec());
            }
        }
        has_moved
    }

    /// Routes what is registered by a member's certificate to where it came from.
    fn register(&mut self, frame: Bytes) {
        let packet = LpPacket::decode(frame).unwrap();
        let from = FaceId::from_number(packet.incoming_face.unwrap());
        let Ok(Packet::Interest(command)) = Packet::decode(packet.fragment.unwrap()) else {
            return;
        };
        let shown = command.parameters().unwrap();
        let certificate = Certificate::decode(Data::decode(shown).unwrap()).unwrap();
        command.verify(&certificate.public_key().unwrap()).unwrap();
        let parameters = Bytes::copy_from_slice(command.name().get(4).unwrap().value);
        let parameters = ControlParameters::decode(&parameters).unwrap();
        let prefix = parameters.name.clone().unwrap();
        self.node.forwarder.add_route(prefix, from, 0).unwrap();
        let response = ControlResponse {
            code: 200,
            text: "OK".to_owned(),
            parameters,
        };
        let data = Data::builder(command.name().clone()).content(response.encode());
        let wire = data.sign(&DigestSigner).wire().clone();
        self.node.handle_frame(self.now, self.management, wire);
    }

    /// States of the tab's room, in the order in which it reported them.
    fn states(&self, at: usize) -> Vec<&str> {
        let rooms = self.events[at].iter().filter(|it| it["type"] == "room");
        rooms.map(|it| it["state"].as_str().unwrap()).collect()
    }

    /// Name of the member who has joined.
    fn member(&self, at: usize) -> Option<&str> {
        let mut all = self.events[at].iter();
        let joined = all.find(|it| it["state"] == "joined")?;
        joined["why"].as_str()
    }

    /// Has a member publish sealed video under its own name. Returns the number of the publication.
    fn publish(&mut self, at: usize) -> u32 {
        let json = format!(
            r#"{{"name":"{}","secret":"","sealed":"{}","streams":[{{"name":"video","kind":"video","codec":"vp8","rungs":[{{"name":"1M","bitrate":1000000,"width":640,"height":360,"rate":{{"num":20,"den":1}},"key_interval":20,"codec_string":"vp8"}}],"segment_size":1000,"parity_percent":0}}]}}"#,
            self.member(at).unwrap(),
            "0d".repeat(32)
        );
        let config = PublicationConfig::decode(&json).unwrap();
        self.tabs[at].publish(self.now, &config).unwrap()
    }

    /// Publishes pictures, 20 a second. Returns how often a key picture was requested.
    fn film(&mut self, at: usize, publication: u32, frames: core::ops::Range<u64>) -> usize {
        let mut requests = 0;
        for position in frames {
            let frame = LiveFrame {
                stream: "video".to_owned(),
                rung: "1M".to_owned(),
                position,
                key: position % 20 == 0,
                captured_at: crate::outbox::to_ms(self.now),
            };
            let payload = format!("picture {position} of tab {at}").into_bytes();
            let published = self.tabs[at].publish_frame(self.now, publication, &frame, payload);
            requests += usize::from(published.unwrap());
            self.run_for(50);
        }
        requests
    }

    fn watch(&mut self, at: usize, of: &str) {
        let json = format!(r#"{{"root":"{of}","in_room":true,"target_ms":100,"audio":false}}"#);
        let config = WatchConfig::decode(&json).unwrap();
        self.tabs[at].watch(self.now, &config).unwrap();
    }
}

/// One link, nine tabs: nine certificates. Each joins once.
#[test]
fn nine_tabs_of_one_link_get_nine_certificates() {
    let mut call = Call::new(9);
    for at in 0..9 {
        call.enter(at, 10 + at as u8, Some(TOKEN));
    }
    call.run_for(3_000);
    let names: BTreeSet<_> = (0..9).map(|at| call.member(at).unwrap()).collect();
    assert_eq!(names.len(), 9);
    for at in 0..9 {
        assert_eq!(call.states(at), ["joined", "ready"], "tab {at}");
    }
    let keys: BTreeSet<_> = call.roster.members.iter().map(|it| it.key_digest).collect();
    assert_eq!(keys.len(), 9);
}

/// A sealed stream of one tab is seen by another member. A stranger, whose key nobody certified, sees none of it, and an event says so; nor is a picture in
/// what passed between tabs and node.
#[test]
fn members_see_what_is_sealed_and_strangers_do_not() {
    let mut call = Call::new(3);
    call.enter(0, 1, Some(TOKEN));
    call.enter(1, 2, Some(TOKEN));
    call.enter(2, 3, None);
    call.run_for(1_000);
    assert_eq!(call.states(2), ["ready"]);
    let publication = call.publish(0);
    let name = call.member(0).unwrap().to_owned();
    // The publisher reads the roster every 5 s.
    call.run_for(6_000);
    call.watch(1, &name);
    call.watch(2, &name);
    call.film(0, publication, 0..60);
    assert!(call.frames[1].len() > 20, "{:?}", call.events[1]);
    let is_picture = |octets: &[u8]| octets.windows(8).any(|it| it == b"picture ");
    assert!(call.frames[1].iter().all(|it| is_picture(it)));
    assert_eq!(call.frames[2], [] as [Vec<u8>; 0]);
    let told = |at: usize| {
        let mut all = call.events[at].iter().filter(|it| it["type"] == "sealed");
        all.any(|it| it["why"] == "notareader")
    };
    assert!(told(2) && !told(1), "{:?}", call.events[2]);
    assert!(call.captured.len() > 100);
    assert!(!call.captured.iter().any(|it| is_picture(it)));
}

/// Whoever leaves sees nothing more, the others see on; encoders are asked for a key picture once.
#[test]
fn a_member_who_leaves_sees_no_more() {
    let mut call = Call::new(3);
    for (at, secret) in [1, 2, 3].into_iter().enumerate() {
        call.enter(at, secret, Some(TOKEN));
    }
    call.run_for(1_000);
    let publication = call.publish(0);
    let name = call.member(0).unwrap().to_owned();
    call.watch(1, &name);
    call.watch(2, &name);
    call.run_for(6_000);
    assert_eq!(call.film(0, publication, 0..40), 0);
    assert!(call.frames[1].len() > 10 && call.frames[2].len() > 10);
    let left = call.member(2).unwrap().to_owned();
    let members = &mut call.roster.members;
    let at = members
        .iter()
        .position(|it| it.identity().to_string() == left)
        .unwrap();
    let gone = members.remove(at);
    call.roster.revocations.push(Revocation {
        key_digest: gone.key_digest,
        since: WALL,
        certificate: gone.certificate,
    });
    call.publish_roster();
    // The publisher reads the roster within 5 s, and seals anew 0.8 s later.
    assert_eq!(call.film(0, publication, 40..160), 1);
    let before = [1, 2].map(|at| call.frames[at].len());
    assert_eq!(call.film(0, publication, 160..200), 0);
    assert!(call.frames[1].len() > before[0] + 30);
    assert_eq!(call.frames[2].len(), before[1]);
}

/// Where the host knocks, the tab waits and says why, until somebody says yes.
#[test]
fn a_tab_waits_until_somebody_says_yes() {
    let mut call = Call::new(1);
    call.knocks = true;
    call.enter(0, 1, Some(TOKEN));
    call.run_for(3_000);
    assert_eq!(call.states(0), ["undecided"]);
    let [join, ..] = &call.waiting[..] else {
        panic!("the host heard nothing");
    };
    let join = join.clone();
    call.certify(&join);
    call.run_for(1_000);
    assert_eq!(call.states(0), ["undecided", "joined", "ready"]);
}

/// A kept certificate needs no link. One that has ended, or is another key's, does not count.
#[test]
fn a_kept_certificate_is_used_again() {
    let mut call = Call::new(3);
    call.enter(0, 1, Some(TOKEN));
    call.run_for(1_000);
    let mut all = call.events[0].iter();
    let joined = all.find(|it| it["state"] == "joined").unwrap();
    let kept = joined["certificate"].as_str().unwrap().to_owned();
    for (at, secret) in [(1, 1), (2, 2)] {
        let config = RoomConfig {
            root: ROOT.to_owned(),
            key: hex(&pair(FOX, &name("/")).public_key().digest()),
            secret: hex(&[secret; 32]),
            token: None,
            label: String::new(),
            certificate: Some(kept.clone()),
        };
        call.tabs[at].enter(call.now, &config).unwrap();
        assert!(matches!(
            call.tabs[at].enter(call.now, &config),
            Err(RoomError::Entered)
        ));
    }
    call.run_for(1_000);
    assert_eq!(call.states(1), ["joined", "ready"]);
    assert_eq!(call.member(1), call.member(0));
    assert_eq!(call.states(2), ["ready"]);
    assert_eq!(call.roster.members.len(), 1);
}

/// What the page says is checked field by field.
#[test]
fn what_makes_no_sense_is_refused() {
    let whole = format!(
        r#"{{"root":"/calls/fox","key":"{}","secret":"{}","token":"{}"}}"#,
        "0a".repeat(32),
        "0b".repeat(32),
        "0c".repeat(16)
    );
    let mut tab = Tab::new(WALL, 1);
    let mut refused = |from: &str, to: &str| {
        let config = RoomConfig::decode(&whole.replace(from, to));
        let entered = config.map_err(RoomError::from);
        let entered = entered.and_then(|config| tab.enter(Instant::ZERO, &config));
        entered.unwrap_err().to_string()
    };
    assert!(refused("/calls/fox", "/a=%").contains("/a=%"));
    assert!(refused("0a0a", "0a").contains("digest of a key"));
    assert!(refused("0b0b", "xy").contains("secret of a key"));
    assert!(refused("0c0c", "0c").contains("no valid token"));
    assert!(refused("token", "tokens").contains("malformed"));
}
