use namecast_apps::management::{ControlParameters, ControlResponse};
use namecast_forward::{Config, Scope};
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Data, LpPacket, Packet};

use super::*;

/// Two tabs at one node, which takes what they register; without delay.
struct Room {
    now: Instant,
    node: Node,
    management: FaceId,
    tabs: [Tab; 2],
    /// The node's end of each tab's transport, and the tab's.
    links: [(FaceId, FaceId); 2],
    /// Data that each tab got, by the number of its watch.
    watched: [BTreeMap<u32, Vec<Vec<u8>>>; 2],
    events: [Vec<String>; 2],
    /// Which tab sent a command, and its verb.
    commands: Vec<(usize, String)>,
}

impl Room {
    fn new(is_local: bool) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        let mut node = Node::new(Config::default());
        let management = node.add_face(FaceConfig {
            local_fields: true,
            ..FaceConfig::application("management")
        });
        let management = management.unwrap();
        let (prefix, scope) = match is_local {
            true => ("/localhost/nfd", Scope::Local),
            false => ("/localhop/nfd/rib", Scope::NonLocal),
        };
        let prefix = prefix.parse().unwrap();
        node.forwarder.add_route(prefix, management, 0).unwrap();
        let mut config = config();
        config.root = "/room/a".to_owned();
        let mut tabs = [3, 4].map(|seed| {
            let mut tab = Tab::new(WALL, seed);
            assert_eq!(tab.watch(now, &config).unwrap(), 0);
            tab
        });
        let links = tabs.each_mut().map(|tab| {
            let end = node.add_face(FaceConfig {
                scope,
                mtu: TRANSPORT.mtu,
                ..FaceConfig::default()
            });
            let transport = Transport {
                is_local,
                ..TRANSPORT
            };
            (end.unwrap(), tab.face_up(now, &transport).unwrap())
        });
        Self {
            now,
            node,
            management,
            tabs,
            links,
            watched: [const { BTreeMap::new() }; 2],
            events: [vec![], vec![]],
            commands: vec![],
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += TICK;
            self.node.handle_timeout(self.now);
            for tab in &mut self.tabs {
                tab.handle_timeout(self.now);
            }
            while self.exchange() {}
        }
    }

    /// Carries what waits; returns whether there was anything.
    fn exchange(&mut self) -> bool {
        let mut has_moved = false;
        for at in 0..2 {
            for (kind, fields) in records(&self.tabs[at].drain()) {
                has_moved = true;
                match kind {
                    1 => {
                        let frame = Bytes::copy_from_slice(&fields[4..]);
                        self.node.handle_frame(self.now, self.links[at].0, frame);
                    }
                    2 => {
                        let (watch, frame) = fields.split_first_chunk().unwrap();
                        let samples = self.watched[at].entry(u32::from_le_bytes(*watch));
                        samples.or_default().push(read_frame(frame).payload);
                    }
                    4 => self.events[at].push(String::from_utf8(fields).unwrap()),
                    _ => {}
                }
            }
        }
        while let Some(Transmit { face, frame }) = self.node.poll_output() {
            has_moved = true;
            if face == self.management {
                self.command(frame);
            } else {
                let at = usize::from(face == self.links[1].0);
                self.tabs[at].handle_frame(self.now, self.links[at].1, frame.to_vec());
            }
        }
        has_moved
    }

    /// Carries out a command: routes what it registers to where it came from.
    fn command(&mut self, frame: Bytes) {
        let packet = LpPacket::decode(frame).unwrap();
        let from = FaceId::from_number(packet.incoming_face.unwrap());
        let Ok(Packet::Interest(command)) = Packet::decode(packet.fragment.unwrap()) else {
            return;
        };
        let verb = command.name().prefix(4).to_string();
        let registers = verb.ends_with("/register");
        let tab = self.links.iter().position(|(end, _)| *end == from);
        self.commands.push((tab.unwrap(), verb));
        let parameters = Bytes::copy_from_slice(command.name().get(4).unwrap().value);
        let parameters = ControlParameters::decode(&parameters).unwrap();
        let prefix = parameters.name.clone().unwrap();
        if registers {
            self.node.forwarder.add_route(prefix, from, 0).unwrap();
        }
        let response = ControlResponse {
            code: 200,
            text: "OK".to_owned(),
            parameters,
        };
        let data = Data::builder(command.name().clone())
            .content(response.encode())
            .sign(&DigestSigner);
        let wire = data.wire().clone();
        self.node.handle_frame(self.now, self.management, wire);
    }
}

fn publication() -> PublicationConfig {
    PublicationConfig {
        name: "/room/a".to_owned(),
        secret: "0b".repeat(32),
        ticket: None,
        sealed: None,
        title: Some("A room".to_owned()),
        streams: vec![],
        data: vec![DataStream {
            name: "notes".to_owned(),
            samples_per_second: 10,
            sample_size: 20,
        }],
    }
}

/// The one tab registers its name, where pages of this machine do as applications and others as neighbours, and what it sends
/// comes out of the other, in order.
#[test]
fn what_one_tab_publishes_another_reads() {
    for (is_local, verb) in [
        (true, "/localhost/nfd/rib/register"),
        (false, "/localhop/nfd/rib/register"),
    ] {
        let mut room = Room::new(is_local);
        let number = room.tabs[0].publish(room.now, &publication()).unwrap();
        room.run_for(Duration::from_secs(7));
        // The second one refreshes the first after 4 s.
        let command = (0, verb.to_owned());
        assert_eq!(room.commands, [command.clone(), command]);
        let registered = |event: &String| event.contains(r#""state":"registered""#);
        assert!(room.events[0].iter().any(registered), "{:?}", room.events);
        let sent: Vec<Vec<u8>> = (0..30).map(|number| vec![number; 20]).collect();
        // Each is here within 300 ms, the first one, too, after all that silence.
        for sample in &sent {
            room.tabs[0].send(room.now, number, sample.clone()).unwrap();
            room.run_for(Duration::from_millis(100));
            let there = room.watched[1].get(&0).map_or(0, Vec::len);
            assert!(there >= usize::from(sample[0]).saturating_sub(2), "{there}");
        }
        room.run_for(Duration::from_millis(500));
        assert_eq!(room.watched[1][&0], sent, "{is_local}");
        // The tab reads what it publishes itself, too.
        assert_eq!(room.watched[0][&0], sent, "{is_local}");
        let titled = |event: &String| event.contains(r#""title":"A room""#);
        assert!(room.events[1].iter().any(titled), "{:?}", room.events[1]);
    }
}

/// A second tab reports that the name is published and does not register it. It registers the name after the first tab disconnects.
#[test]
fn a_second_publisher_of_a_name_is_refused_while_the_first_one_lives() {
    let mut room = Room::new(false);
    room.tabs[0].publish(room.now, &publication()).unwrap();
    room.run_for(Duration::from_secs(1));
    let second = PublicationConfig {
        secret: "0c".repeat(32),
        ..publication()
    };
    room.tabs[1].publish(room.now, &second).unwrap();
    room.run_for(Duration::from_secs(5));
    assert!(room.commands.iter().all(|(tab, _)| *tab == 0));
    let taken = |event: &&String| event.contains("it is published already (key /room/a/KEY/");
    assert_eq!(
        room.events[1].iter().filter(taken).count(),
        1,
        "{:?}",
        room.events
    );
    assert_eq!(room.events[0].iter().filter(taken).count(), 0);
    let (end, own) = room.links[0];
    room.tabs[0].face_down(room.now, own);
    room.node.remove_face(room.now, end);
    room.commands.clear();
    room.tabs[1].publish(room.now, &second).unwrap();
    room.run_for(Duration::from_secs(1));
    assert_eq!(
        room.commands,
        [(1, "/localhop/nfd/rib/register".to_owned())]
    );
}

/// A node that restarted has forgotten the name: it is registered again over the next transport.
#[test]
fn a_name_is_registered_again_over_the_next_transport() {
    let mut room = Room::new(false);
    room.tabs[0].publish(room.now, &publication()).unwrap();
    room.run_for(Duration::from_millis(50));
    assert_eq!(room.commands.len(), 1);
    let (end, own) = room.links[0];
    room.tabs[0].face_down(room.now, own);
    room.node.remove_face(room.now, end);
    room.run_for(Duration::from_secs(2));
    assert_eq!(room.commands.len(), 1);
    let end = room.node.add_face(FaceConfig::default()).unwrap();
    let own = room.tabs[0].face_up(room.now, &TRANSPORT).unwrap();
    room.links[0] = (end, own);
    room.run_for(Duration::from_millis(50));
    assert_eq!(room.commands.len(), 2);
}

#[test]
fn what_cannot_be_published_is_refused() {
    let mut tab = Tab::new(WALL, 3);
    let now = Instant::from_nanos(1);
    let mut publish = |change: &dyn Fn(&mut PublicationConfig)| {
        let mut config = publication();
        change(&mut config);
        tab.publish(now, &config).map_err(|error| error.to_string())
    };
    let refused = publish(&|config| config.secret = "0b".to_owned()).unwrap_err();
    assert!(refused.contains("64 hexadecimal"), "{refused}");
    let refused = publish(&|config| config.name = "/a=%".to_owned()).unwrap_err();
    assert!(refused.contains("/a=%"), "{refused}");
    let refused = publish(&|config| config.data[0].samples_per_second = 5_000).unwrap_err();
    assert!(refused.contains("1000 a second"), "{refused}");
    let names = ["/room/0", "/room/1", "/room/2", "/room/3"];
    let numbers = names.map(|name| publish(&|config| config.name = name.to_owned()).unwrap());
    assert_eq!(numbers, [0, 1, 2, 3]);
    let refused = publish(&|_| ()).unwrap_err();
    assert!(refused.contains("four"), "{refused}");
    let refused = tab.send(now, 9, vec![1]).unwrap_err().to_string();
    assert!(refused.contains('9'), "{refused}");
    let refused = tab.send(now, 0, vec![0; 10 << 20]);
    assert!(refused.is_err());
    // Without a neighbour nobody has to be told.
    tab.unpublish(now, 2);
    assert_eq!(tab.publish(now, &publication()).unwrap(), 4);
}

/// Both tabs publish and both watch both, in one tab each: each watch gets the samples of its own root alone, in order. A watch that
/// ends gets nothing more, and the other one goes on; so with a name that is published no more.
#[test]
fn a_tab_watches_and_publishes_several_names() {
    let mut room = Room::new(false);
    let named = |name: &str, secret: &str| PublicationConfig {
        name: name.to_owned(),
        secret: secret.repeat(32),
        ..publication()
    };
    let of = [named("/room/a", "0b"), named("/room/b", "0c")];
    let watch_b = WatchConfig {
        root: "/room/b".to_owned(),
        ..config()
    };
    let mut numbers = [0, 0];
    for (at, number) in numbers.iter_mut().enumerate() {
        room.tabs[at].watch(room.now, &watch_b).unwrap();
        *number = room.tabs[at].publish(room.now, &of[at]).unwrap();
    }
    room.run_for(Duration::from_secs(7));
    let send = |room: &mut Room, range: core::ops::Range<u8>| {
        for value in range {
            for (at, number) in numbers.into_iter().enumerate() {
                let payload = vec![100 * at as u8 + value; 20];
                room.tabs[at].send(room.now, number, payload).unwrap();
            }
            room.run_for(Duration::from_millis(100));
        }
        room.run_for(Duration::from_millis(500));
    };
    send(&mut room, 0..20);
    let sent = |at: u8| {
        (0..20)
            .map(|it| vec![100 * at + it; 20])
            .collect::<Vec<_>>()
    };
    for of_tab in &room.watched {
        assert_eq!(of_tab[&0], sent(0));
        assert_eq!(of_tab[&1], sent(1));
    }
    let now = room.now;
    room.tabs[0].unwatch(now, 0);
    room.tabs[1].unpublish(now, numbers[1]);
    room.run_for(Duration::from_millis(100));
    let unregister = (1, "/localhop/nfd/rib/unregister".to_owned());
    assert_eq!(room.commands.last(), Some(&unregister));
    assert!(room.tabs[1].send(now, numbers[1], vec![1]).is_err());
    assert_eq!(room.tabs[0].stats(now, 0), "null");
    room.tabs[0].send(now, numbers[0], vec![99; 20]).unwrap();
    room.run_for(Duration::from_millis(500));
    assert_eq!(room.watched[0][&0].len(), 20);
    assert_eq!(room.watched[1][&0].last().unwrap(), &vec![99; 20]);
}

#[test]
fn watches_of_a_tab_are_bounded() {
    let mut tab = Tab::new(WALL, 3);
    let now = Instant::from_nanos(1);
    let numbers: Vec<u32> = (0..16)
        .map(|_| tab.watch(now, &config()).unwrap())
        .collect();
    let refused = tab.watch(now, &config()).unwrap_err().to_string();
    assert!(refused.contains("sixteen"), "{refused}");
    tab.unwatch(now, numbers[3]);
    assert_eq!(tab.watch(now, &config()).unwrap(), 16);
}
