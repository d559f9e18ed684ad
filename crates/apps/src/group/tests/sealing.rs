//! Groups whose publications are sealed.

use super::*;
use crate::trust::ExchangeSecret;

/// Lets in members as [`Door`] does; those of `readers` may read.
struct Room(BTreeSet<[u8; 32]>);

impl Gate for Room {
    fn is_member(&self, member: &Name) -> bool {
        Door.is_member(member)
    }

    fn accepts(&self, now: Now, data: &Data) -> bool {
        Door.accepts(now, data)
    }

    fn readers(&self, _: Now) -> BTreeSet<[u8; 32]> {
        self.0.clone()
    }
}

fn secret(index: usize) -> ExchangeSecret {
    ExchangeSecret::of_seed(&[index as u8; 32])
}

/// The gate of a room in which these members may read.
fn room(readers: &[usize]) -> Box<Room> {
    let keys = readers.iter().map(|it| secret(*it).public());
    Box::new(Room(keys.collect()))
}

fn sealed(index: usize, start: u8, readers: &[usize]) -> Group {
    let mut config = group(index).config;
    config.sealing = Some(Sealing {
        seed: [start; 32],
        own: vec![secret(index)],
    });
    Group::new(config, room(readers), Box::new(DigestSigner))
}

/// Members who all may read.
fn net(members: usize, seed: u64) -> Net {
    let all: Vec<_> = (0..members).collect();
    let mut net = Net::new(members, seed);
    for index in 0..members {
        net.groups[index] = Some(sealed(index, index as u8 + 1, &all));
    }
    net
}

fn write(net: &mut Net, index: usize, text: &str) {
    let now = at(net.millis);
    net.group(index).send(now, text).unwrap();
    net.drain(index);
}

fn counters(net: &mut Net, index: usize) -> Counters {
    net.group(index).counters().0
}

/// Three members see each other's labels and messages; no frame has any of them in clear.
#[test]
fn members_alone_read_what_members_write() {
    let mut net = net(3, 1);
    net.run_for(1_500);
    write(&mut net, 0, "only for us");
    net.run_for(500);
    assert!(net.is_whole());
    assert_eq!(net.messages(1), ["only for us"]);
    assert_eq!(net.messages(2), ["only for us"]);
    let label = |(_, _, event): &(_, _, Event)| match event {
        Event::Here { status, .. } => Some(status.label.clone()),
        _ => None,
    };
    let labels: BTreeSet<_> = net.events.iter().filter_map(label).collect();
    assert_eq!(labels.len(), 3);
    for text in ["only for us", "Member"] {
        let shows = |frame: &Bytes| frame.windows(text.len()).any(|it| it == text.as_bytes());
        assert!(!net.sent.iter().any(shows), "{text}");
    }
}

/// A newcomer sees all within 1.5 s of the new roster, and does not open what was written before; somebody who was taken off it opens nothing from a second
/// later on.
#[test]
fn who_comes_reads_from_then_on_and_who_goes_no_more() {
    let mut net = net(4, 2);
    for index in 0..3 {
        net.groups[index] = Some(sealed(index, index as u8 + 1, &[0, 1, 2]));
    }
    let newcomer = net.groups[3].take();
    net.run_for(1_500);
    write(&mut net, 0, "before");
    net.run_for(1_500);
    for index in 0..3 {
        net.group(index).set_gate(room(&[0, 1, 2, 3]));
    }
    net.groups[3] = newcomer;
    net.run_for(1_500);
    assert!(net.is_whole());
    assert_eq!(net.messages(3), Vec::<&str>::new());
    // Four were published before it came.
    let Counters {
        before_joining,
        not_a_reader,
        ..
    } = counters(&mut net, 3);
    assert_eq!(before_joining + not_a_reader, 4);
    write(&mut net, 0, "together");
    net.run_for(500);
    assert_eq!(net.messages(3), ["together"]);

    for index in [0, 1, 3] {
        net.group(index).set_gate(room(&[0, 1, 3]));
    }
    net.run_for(1_000);
    write(&mut net, 0, "without you");
    net.run_for(1_000);
    assert_eq!(net.messages(2), ["before", "together"]);
    assert!(counters(&mut net, 2).not_a_reader > 0);
    assert_eq!(net.messages(3), ["together", "without you"]);
}

/// At 20 % loss each way, with copies and overtaking, all read all within 12 s, each once.
#[test]
fn lost_boxes_and_publications_are_fetched_again() {
    for seed in 0..20 {
        let mut net = net(4, seed);
        (net.loss, net.doubled, net.jitter) = (0.2, 0.2, 200);
        net.run_for(4_000);
        write(&mut net, 0, "here");
        net.run_for(8_000);
        assert!(net.is_whole(), "seed {seed}");
        for index in 1..4 {
            assert_eq!(net.messages(index), ["here"], "seed {seed}");
            let Counters {
                unsealed, damaged, ..
            } = counters(&mut net, index);
            assert_eq!((unsealed, damaged), (0, 0));
        }
    }
}

/// A member that does not seal is not shown, and one that seals is not read where nothing is sealed.
#[test]
fn open_publications_are_refused_where_all_are_sealed() {
    let mut net = net(2, 3);
    net.groups[1] = Some(group(1));
    net.run_for(500);
    write(&mut net, 1, "in clear");
    net.run_for(3_000);
    assert_eq!(net.messages(0), Vec::<&str>::new());
    assert_eq!(net.group(0).here().count(), 0);
    assert!(counters(&mut net, 0).unsealed > 0);
    assert!(counters(&mut net, 1).unsealed > 0);
}

/// A forged box is counted, the genuine one is fetched past caches, and costs four Interests a second at most with all else.
#[test]
fn forged_boxes_are_fetched_again() {
    let mut net = net(2, 4);
    net.run_for(100);
    let is_box = |frame: &Bytes| match face::open(frame.clone()) {
        Ok(Some((Packet::Data(data), _))) => {
            let of = parse_box_name(&prefix(&name("/room"), &member(1)), data.name());
            of.is_some() && data.verify(&DigestVerifier).is_ok()
        }
        _ => false,
    };
    // The boxes of member 1 are changed on their way.
    for _ in 0..3_000 {
        for (_, frame) in net.flying.values_mut() {
            if is_box(frame) {
                let mut octets = frame.to_vec();
                let last = octets.len() - 1;
                octets[last] ^= 1;
                *frame = octets.into();
            }
        }
        net.run_for(1);
    }
    let forged = counters(&mut net, 0).forged;
    assert!((2..=13).contains(&forged), "{forged}");
    assert_eq!(net.group(0).here().count(), 0);
    net.run_for(9_000);
    assert!(net.is_whole());
}

/// A member that starts again has other keys, and is read.
#[test]
fn another_start_has_other_keys() {
    let mut net = net(2, 5);
    net.run_for(2_000);
    net.groups[0] = Some(sealed(0, 99, &[0, 1]));
    net.run_for(2_000);
    write(&mut net, 0, "back");
    net.run_for(1_000);
    assert!(net.is_whole());
    assert_eq!(net.messages(1), ["back"]);
}
