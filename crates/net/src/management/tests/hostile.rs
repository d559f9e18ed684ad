//! Whatever comes is read or refused, and management goes on.

use bytes::Bytes;
use namecast_packet::tlv::Writer;
use namecast_packet::{Component, Interest, LpPacket, Nonce};
use namecast_units::Random;

use super::super::{
    ChannelStatus, ControlParameters, ControlResponse, CsInfo, FaceEventNotification,
    FaceQueryFilter, FaceStatus, FibEntry, GeneralStatus, Item, NextHopRecord, RibEntry, RibRoute,
    StrategyChoice, decode_items,
};
use super::{about, command, exchange, name, signed};
use crate::{Node, NodeConfig, key_store};

/// One of everything that is read from a packet.
fn specimens() -> Vec<Bytes> {
    let parameters = ControlParameters {
        face: Some(300),
        uri: Some("udp4://192.0.2.1:6363".to_owned()),
        strategy: Some(name("/s/v=5")),
        mtu: Some(1_400),
        ..about("/a/b")
    };
    let response = ControlResponse {
        code: 409,
        text: "no".to_owned(),
        parameters: parameters.clone(),
    };
    let fib = FibEntry {
        prefix: name("/a"),
        next_hops: vec![NextHopRecord { face: 300, cost: 7 }],
    };
    let rib = RibEntry {
        prefix: name("/a"),
        routes: vec![RibRoute::default()],
    };
    let mut filter = Writer::default();
    filter.nested(150, |inner| {
        inner
            .number(105, 300)
            .element(114, b"udp4://192.0.2.1:6363");
    });
    vec![
        parameters.encode(),
        response.encode(),
        fib.encode(),
        rib.encode(),
        FaceStatus::default().encode(),
        FaceEventNotification::default().encode(),
        StrategyChoice::default().encode(),
        CsInfo::default().encode(),
        ChannelStatus::default().encode(),
        GeneralStatus::default().encode(),
        filter.finish(),
    ]
}

/// Changes, removes or adds some octets.
fn damage(random: &mut Random, octets: &Bytes) -> Bytes {
    let mut octets = octets.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(octets.len() as u64 + 1) as usize;
        let octet = random.next_u64() as u8;
        match random.below(4) {
            0 if at < octets.len() => drop(octets.remove(at)),
            1 => octets.insert(at, octet),
            2 => octets.truncate(at),
            _ if at < octets.len() => octets[at] = octet,
            _ => octets.push(octet),
        }
    }
    octets.into()
}

/// All that reads the octets of strangers; says how many took them.
fn read(octets: &Bytes) -> usize {
    [
        ControlParameters::decode(octets).is_ok(),
        ControlResponse::decode(octets).is_ok(),
        FaceQueryFilter::decode(octets).is_ok(),
        GeneralStatus::decode(octets).is_ok(),
        decode_items::<FaceStatus>(octets).is_ok(),
        decode_items::<FaceEventNotification>(octets).is_ok(),
        decode_items::<FibEntry>(octets).is_ok(),
        decode_items::<RibEntry>(octets).is_ok(),
        decode_items::<StrategyChoice>(octets).is_ok(),
        decode_items::<CsInfo>(octets).is_ok(),
        decode_items::<ChannelStatus>(octets).is_ok(),
    ]
    .into_iter()
    .filter(|taken| *taken)
    .count()
}

/// Some of the damaged ones are still right for somebody, some for nobody: both ways are gone.
#[test]
fn damaged_octets_are_read_or_refused() {
    let mut random = Random::from_seed(11);
    let specimens = specimens();
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let specimen = &specimens[random.below(specimens.len() as u64) as usize];
        match read(&damage(&mut random, specimen)) {
            0 => refused += 1,
            _ => taken += 1,
        }
    }
    assert!(taken > 1_000 && refused > 1_000, "{taken} {refused}");
}

/// Names of all modules and verbs with damaged parameters, as commands, signed and not, and as questions. Of the signed
/// ones some are carried out, even such that end faces, so that another one asks at the end.
#[tokio::test]
async fn strange_commands_and_questions_leave_management_as_it_is() {
    let node = Node::start(NodeConfig::default());
    let mut face = node.application_face().await.unwrap();
    let mut random = Random::from_seed(12);
    let specimens = specimens();
    let modules = [
        "faces",
        "fib",
        "rib",
        "cs",
        "strategy-choice",
        "status",
        "x",
    ];
    let verbs = [
        "create",
        "update",
        "destroy",
        "list",
        "query",
        "events",
        "register",
        "unregister",
        "config",
        "erase",
        "info",
        "set",
        "unset",
        "general",
        "x",
    ];
    for _ in 0..2_000 {
        let module = modules[random.below(7) as usize];
        let verb = verbs[random.below(15) as usize];
        let specimen = &specimens[random.below(specimens.len() as u64) as usize];
        let parameters = damage(&mut random, specimen);
        let asked = name(&format!("/localhost/nfd/{module}/{verb}")).child(Component {
            kind: Component::GENERIC,
            value: &parameters,
        });
        let asked = match random.below(4) {
            0 => Interest::builder(asked).build(Nonce(key_store::random())),
            1 => Interest::builder(asked)
                .can_be_prefix()
                .build(Nonce(key_store::random())),
            2 => Interest::builder(asked)
                .parameters(parameters.to_vec())
                .build(Nonce(key_store::random())),
            _ => signed(asked),
        };
        let packet = LpPacket::carrying(asked.wire().clone());
        face.send(packet.encode()).await.unwrap();
        while face.try_recv().is_some() {}
    }
    let mut other = node.application_face().await.unwrap();
    let register = command("/localhost/nfd/rib/register", &about("/a"));
    assert_eq!(exchange(&mut other, &register).await.code, 200);
}
