//! Management as a client sees it: commands in, responses and routes out.

mod announce;
mod client;
mod commands;
mod content_store;
mod datasets;
mod events;
mod face_commands;
mod hostile;
mod readvertise;
mod rib;
mod rights;
mod tickets;

use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::{DigestSigner, DigestVerifier};
use namecast_packet::{Component, Data, Interest, LpPacket, Name, Nonce, Packet, Signer};

use super::{ControlParameters, ControlResponse};
use crate::{ApplicationFace, Clock, Node, RouteStatus, key_store};

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn about(prefix: &str) -> ControlParameters {
    ControlParameters {
        name: Some(name(prefix)),
        ..ControlParameters::default()
    }
}

fn command(prefix: &str, parameters: &ControlParameters) -> Interest {
    let name = name(prefix).child(Component {
        kind: Component::GENERIC,
        value: &parameters.encode(),
    });
    signed(name)
}

/// A signed Interest of this name.
fn signed(name: Name) -> Interest {
    let mut info = DigestSigner.info();
    info.nonce = Some(Bytes::copy_from_slice(&key_store::random::<8>()));
    info.time = Some(Duration::from_micros(Clock::new().wall().as_micros()));
    Interest::builder(name).sign(Nonce(key_store::random()), &DigestSigner, &info)
}

/// Sends an Interest and waits for the packet that comes back.
async fn fetch(face: &mut ApplicationFace, interest: &Interest) -> Data {
    let packet = LpPacket {
        pit_token: Some(Bytes::from_static(b"token6")),
        ..LpPacket::carrying(interest.wire().clone())
    };
    face.send(packet.encode()).await.unwrap();
    let frame = tokio::time::timeout(Duration::from_secs(60), face.recv()).await;
    let packet = LpPacket::decode(frame.unwrap().unwrap()).unwrap();
    assert_eq!(packet.pit_token.as_deref(), Some(&b"token6"[..]));
    let Ok(Packet::Data(data)) = Packet::decode(packet.fragment.unwrap()) else {
        panic!("no Data");
    };
    assert_eq!(data.verify(&DigestVerifier), Ok(()));
    data
}

async fn ask(
    face: &mut ApplicationFace,
    verb: &str,
    parameters: &ControlParameters,
) -> ControlResponse {
    let prefix = format!("/localhost/nfd/{verb}");
    exchange(face, &command(&prefix, parameters)).await
}

fn to(uri: &str) -> ControlParameters {
    ControlParameters {
        uri: Some(uri.to_owned()),
        ..ControlParameters::default()
    }
}

fn verdict(response: &ControlResponse) -> (u64, &str) {
    (response.code, &response.text)
}

#[track_caller]
fn assert_done(response: &ControlResponse, expected: &ControlParameters) {
    assert_eq!(verdict(response), (200, "OK"));
    assert_eq!(&response.parameters, expected);
}

async fn exchange(face: &mut ApplicationFace, command: &Interest) -> ControlResponse {
    let data = fetch(face, command).await;
    assert_eq!(data.name(), command.name());
    ControlResponse::decode(&data.content().unwrap()).unwrap()
}

/// Routes, without those of management itself.
async fn routes(node: &Node) -> Vec<RouteStatus> {
    let mut routes = node.status().await.unwrap().routes;
    routes.retain(|route| !route.prefix.starts_with("/localho"));
    routes
}
