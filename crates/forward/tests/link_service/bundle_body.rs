//! A node with bundles, and anything in front of Data that somebody has requested. No panic, and the Data get through. Body of a fuzz
//! target (see `fuzz/`), run here on its seeds and damaged ones.

use bytes::Bytes;
use namecast_forward::{Config, ExtensionFields, FaceConfig, Node, Piggyback};
use namecast_packet::signature::NullSigner;
use namecast_packet::{Data, Interest, LpPacket, Name, Nonce};
use namecast_units::Instant;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

/// Sends Data with these octets as what comes with them, and then the octets as a frame.
pub(crate) fn bundle(octets: &[u8]) {
    let mut node = Node::new(Config::default());
    node.forwarder.install(Box::<Piggyback>::default());
    let config = FaceConfig {
        extension_fields: ExtensionFields::On,
        ..FaceConfig::default()
    };
    let [left, right] = [(); 2].map(|()| node.add_face(config.clone()).expect("room"));
    for (prefix, face) in [("/left", left), ("/right", right)] {
        let added = node.forwarder.add_route(name(prefix), face, 0);
        added.expect("room");
    }
    let now = Instant::ZERO;
    let asked = Interest::builder(name("/left/1")).build(Nonce([1; 4]));
    node.handle_frame(now, right, asked.wire().clone());
    while node.poll_output().is_some() {}
    let embedded = Interest::builder(name("/right/7")).build(Nonce([7; 4]));
    let data = Data::builder(name("/left/1")).embed(&embedded);
    let data = data.sign(&NullSigner);
    node.handle_frame(now, left, LpPacket::bundle(data.wire(), octets));
    let mut came = 0;
    while let Some(transmit) = node.poll_output() {
        let sent = LpPacket::decode(transmit.frame).expect("well-formed");
        came += u32::from(transmit.face == right && sent.fragment.as_ref() == Some(data.wire()));
    }
    assert_eq!(came, 1, "{octets:?}");
    node.handle_frame(now, left, Bytes::copy_from_slice(octets));
    while let Some(transmit) = node.poll_output() {
        LpPacket::decode(transmit.frame).expect("well-formed");
    }
    assert!(node.forwarder.pending_interests() <= 2);
}
