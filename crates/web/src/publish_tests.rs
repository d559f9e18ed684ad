use bytes::Bytes;
use namecast_apps::management::{ControlParameters, ControlResponse};
use namecast_forward::FaceId;
use namecast_packet::signature::DigestSigner;
use namecast_packet::{Component, Data, Interest, LpPacket, Name, Nonce, Packet};
use namecast_units::Timestamp;

use super::*;
use crate::transports::Transport;

const WALL: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);

fn config() -> PublicationConfig {
    let rung = |name: &str, bitrate: u32| {
        format!(
            r#"{{"name":"{name}","bitrate":{bitrate},"width":640,"height":360,"rate":{{"num":30,"den":1}},"key_interval":30,"codec_string":"vp8"}}"#
        )
    };
    let json = format!(
        r#"{{"name":"/cam","secret":"{}","ticket":"{}","streams":[{{"name":"video","kind":"video","codec":"vp8","rungs":[{},{}],"segment_size":1000,"parity_percent":20}}]}}"#,
        "0b".repeat(32),
        "0c".repeat(32),
        rung("300k", 300_000),
        rung("1M", 1_000_000),
    );
    PublicationConfig::decode(&json).unwrap()
}

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

fn frame(rung: &str, position: u64, key: bool, captured_at: f64) -> LiveFrame {
    LiveFrame {
        stream: "video".to_owned(),
        rung: rung.to_owned(),
        position,
        key,
        captured_at,
    }
}

/// Packets that the tab has for its transport, and its events.
fn drained(tab: &mut Tab) -> (Vec<Packet>, Vec<String>) {
    let batch = tab.drain();
    let (mut packets, mut events, mut rest) = (Vec::new(), Vec::new(), &batch[..]);
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (record, after) = after.split_at(u32::from_le_bytes(*length) as usize);
        match record[0] {
            1 => {
                let link = LpPacket::decode(Bytes::copy_from_slice(&record[5..])).unwrap();
                packets.push(Packet::decode(link.fragment.unwrap()).unwrap());
            }
            _ => events.push(String::from_utf8(record[1..].to_vec()).unwrap()),
        }
        rest = after;
    }
    (packets, events)
}

/// A tab whose challenge nobody answers, and its command to register the name. Its only publication has number 0.
fn live() -> (Tab, FaceId, Interest) {
    let mut tab = Tab::new(WALL, 7);
    assert_eq!(tab.publish(at(700), &config()).unwrap(), 0);
    let transport = Transport {
        description: "websocket",
        mtu: None,
        is_local: false,
    };
    let face = tab.face_up(at(700), &transport).unwrap();
    let challenge = only_interest(&mut tab);
    let metadata: Name = "/cam/32=metadata".parse().unwrap();
    assert!(metadata.is_prefix_of(challenge.name()), "{challenge:?}");
    tab.handle_timeout(at(999));
    assert!(drained(&mut tab).0.is_empty());
    tab.handle_timeout(at(1_000));
    let command = only_interest(&mut tab);
    (tab, face, command)
}

fn only_interest(tab: &mut Tab) -> Interest {
    let (packets, _) = drained(tab);
    let [Packet::Interest(interest)] = &packets[..] else {
        panic!("{packets:?}");
    };
    interest.clone()
}

fn answer(command: &Interest, code: u64, text: &str) -> Vec<u8> {
    let response = ControlResponse {
        code,
        text: text.to_owned(),
        parameters: ControlParameters::default(),
    };
    let data = Data::builder(command.name().clone())
        .content(response.encode())
        .sign(&DigestSigner);
    data.wire().to_vec()
}

/// The command names `/cam` and shows the 32 octets of the ticket; what the node says comes to the page in its words.
#[test]
fn the_name_is_registered_with_the_ticket() {
    let (mut tab, face, command) = live();
    assert_eq!(
        command.name().prefix(4).to_string(),
        "/localhop/nfd/rib/register"
    );
    assert_eq!(command.parameters().as_deref(), Some(&[0x0c; 32][..]));
    let parameters = Bytes::copy_from_slice(command.name().get(4).unwrap().value);
    let parameters = ControlParameters::decode(&parameters).unwrap();
    assert_eq!(parameters.name, Some("/cam".parse().unwrap()));
    tab.handle_frame(at(1_010), face, answer(&command, 403, "used already"));
    let (_, events) = drained(&mut tab);
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains("403 used already"), "{events:?}");
}

/// One frame is published in both rungs under one position, with the time of capture; a viewer's Interests bring both.
#[test]
fn both_rungs_of_a_frame_are_published() {
    let (mut tab, face, _) = live();
    for rung in ["300k", "1M"] {
        let payload = vec![1; 200];
        tab.publish_frame(at(1_040), 0, &frame(rung, 0, true, 1_030.0), payload)
            .unwrap();
        let missing = tab.publish_frame(at(1_040), 0, &frame("3M", 0, true, 0.0), vec![1]);
        assert!(missing.is_err());
    }
    for rung in ["300k", "1M"] {
        let name: Name = format!("/cam/video/{rung}").parse().unwrap();
        let latest = name.child(Component {
            kind: Component::KEYWORD,
            value: b"latest",
        });
        let interest = Interest::builder(latest).can_be_prefix().must_be_fresh();
        let interest = interest.build(Nonce([1; 4]));
        tab.handle_frame(at(1_050), face, interest.wire().to_vec());
        let (packets, _) = drained(&mut tab);
        assert!(
            matches!(&packets[..], [Packet::Data(_)]),
            "{rung}: {packets:?}"
        );
    }
    let figures = tab.publication_stats(0).unwrap();
    assert!(figures.contains(r#""frames":2"#), "{figures}");
    assert!(figures.contains(r#""interests":2"#), "{figures}");
}

/// Of a key that follows from the secret alone, so that viewers know it again.
#[test]
fn the_key_is_that_of_the_secret() {
    let (mut tab, ..) = live();
    let digest = tab.key_digest(0).unwrap();
    assert_eq!(digest.len(), 64);
    let mut other = Tab::new(WALL, 8);
    let number = other.publish(at(9), &config()).unwrap();
    assert_eq!(digest, other.key_digest(number).unwrap());
}

/// A frame from the past of a clock, or one that needs what was never published, changes nothing.
#[test]
fn what_cannot_be_published_is_refused() {
    let (mut tab, ..) = live();
    let delta = tab.publish_frame(at(1_040), 0, &frame("1M", 0, false, 0.0), vec![1]);
    assert!(delta.is_err());
    let mut config = config();
    config.ticket = Some("0c".to_owned());
    let refused = tab.publish(at(1_050), &config).unwrap_err().to_string();
    assert!(refused.contains("as it was printed"), "{refused}");
}

/// The path carries less: the tab publishes one rung from now on. Viewers learn that from a catalogue of another version, under a name
/// that stays registered, by the same key.
#[test]
fn streams_are_replaced_while_the_name_stays() {
    let (mut tab, face, command) = live();
    tab.handle_frame(at(1_010), face, answer(&command, 200, "OK"));
    drained(&mut tab);
    let key = tab.key_digest(0).unwrap();
    let mut streams = config().streams;
    streams[0].rungs.truncate(1);
    tab.set_streams(at(2_000), 0, streams).unwrap();
    assert_eq!(tab.key_digest(0).unwrap(), key);
    let payload = vec![1; 200];
    tab.publish_frame(
        at(2_010),
        0,
        &frame("300k", 0, true, 2_000.0),
        payload.clone(),
    )
    .unwrap();
    assert!(
        tab.publish_frame(at(2_010), 0, &frame("1M", 0, true, 2_000.0), payload)
            .is_err()
    );
    let (packets, events) = drained(&mut tab);
    assert!(
        packets.is_empty() && events.is_empty(),
        "{packets:?} {events:?}"
    );
    assert!(tab.set_streams(at(2_020), 5, vec![]).is_err());
}
