//! Members who register by right.

use namecast_apps::trust::Anchor;
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, KeyLocator, Validity};

use super::*;
use crate::node::NewFace;
use crate::rights::{Rights, TrustRoot};
use crate::web::Visitor;
use crate::{FaceUri, ManagementConfig, NodeConfig};

/// The anchor of /calls/fox, with its certificate.
fn anchor() -> (Ed25519Signer, Certificate) {
    let locator = KeyLocator::Name(name("/calls/fox/KEY/1/self/v=1"));
    let signer = Ed25519Signer::from_seed([1; 32], locator);
    let validity = Validity::of_own_key(Clock::new().wall());
    let certificate = Certificate::self_signed(&name("/calls/fox"), b"1", 1, validity, &signer);
    (signer, certificate)
}

/// Sends a command, and waits for its response among Interests for the rules of the room.
async fn ask(face: &mut ApplicationFace, command: &Interest) -> ControlResponse {
    face.send(command.wire().clone()).await.unwrap();
    loop {
        let frame = tokio::time::timeout(Duration::from_secs(60), face.recv()).await;
        let packet = LpPacket::decode(frame.unwrap().unwrap()).unwrap();
        if let Ok(Packet::Data(data)) = Packet::decode(packet.fragment.unwrap()) {
            assert_eq!(data.name(), command.name());
            return ControlResponse::decode(&data.content().unwrap()).unwrap();
        }
    }
}

/// A neighbour registers its root by its key alone, and nothing that it has no right to, however it asks; other commands stay closed. Its route is
/// gone once it unregisters.
#[tokio::test]
async fn a_neighbour_registers_what_its_key_may() {
    let (signer, certificate) = anchor();
    let rights = Rights::new([TrustRoot {
        root: name("/calls/fox"),
        anchor: Anchor::Digest(signer.public_key().digest()),
    }]);
    let node = Node::start(NodeConfig {
        management: ManagementConfig {
            rights,
            ..ManagementConfig::default()
        },
        ..NodeConfig::default()
    });
    let remote = FaceUri::WebSocketClient("192.0.2.1:9".parse().unwrap());
    let new = NewFace::of_visitor(remote, Visitor::Stranger, None);
    let mut face = node.internal_face(new).await.unwrap();
    let command = |verb: &str, prefix: &str| {
        let uri = name(&format!("/localhop/nfd/rib/{verb}")).child(Component {
            kind: Component::GENERIC,
            value: &about(prefix).encode(),
        });
        let mut info = signer.info();
        info.nonce = Some(Bytes::copy_from_slice(&key_store::random::<8>()));
        info.time = Some(Duration::from_micros(Clock::new().wall().as_micros()));
        let command = Interest::builder(uri).parameters(certificate.data().wire().clone());
        command.sign(Nonce(key_store::random()), &signer, &info)
    };
    let done = ask(&mut face, &command("register", "/calls/fox")).await;
    assert_eq!(verdict(&done), (200, "OK"));
    assert_eq!(done.parameters.expiration, Some(Duration::from_secs(30)));
    let is_routed = async || {
        let mut all = routes(&node).await.into_iter();
        all.any(|it| it.prefix == "/calls/fox" && it.face == face.id().number())
    };
    assert!(is_routed().await);
    for (prefix, why) in [
        ("/calls/fox/ann", "has not read the rules"),
        ("/calls/hen", "[[trust]]"),
        ("/", "[[trust]]"),
    ] {
        let refused = ask(&mut face, &command("register", prefix)).await;
        assert_eq!(refused.code, 403);
        assert!(refused.text.contains(why), "{prefix}: {}", refused.text);
    }
    let done = ask(&mut face, &command("unregister", "/calls/fox")).await;
    assert_eq!(verdict(&done), (200, "OK"));
    assert!(
        routes(&node)
            .await
            .iter()
            .all(|it| it.prefix != "/calls/fox")
    );
    let counted = node.status().await.unwrap().rights.unwrap();
    assert_eq!(counted.admitted, 2);
    assert_eq!(counted.refused, [("no_schema", 1)].into());
}
