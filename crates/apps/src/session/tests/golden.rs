//! Set-ups with fixed secrets, octet for octet: what another implementation has to write and read.

use core::fmt::Write as _;

use namecast_packet::{Interest, Packet};
use namecast_units::Instant;
use serde_json::{Value, json};

use super::super::*;
use super::pipe::{both, key, sent};
use crate::discovery::Trust;
use crate::{Application, Output};

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// An endpoint that has drawn the first 32 octets of its secret's chain for the ephemeral key of its next handshake.
fn side(identity: &str, seed: u8, known: Vec<KnownPeer>) -> Endpoint {
    let (signer, certificate) = key(identity, seed);
    let config = EndpointConfig {
        root: format!("{identity}/talk").parse().unwrap(),
        answers: true,
        static_key: Some([seed + 0x10; 32]),
        secret: [seed + 0x20; 32],
        seed: u64::from(seed),
        known,
        ..EndpointConfig::default()
    };
    Endpoint::new(config, &signer, &certificate)
}

/// The packets of one set-up, and the first one that is sealed with its keys.
fn set_up(alice: &mut Endpoint, bob: &mut Endpoint) -> Value {
    let now = both(Instant::ZERO);
    alice.call(now, "/bob/talk".parse().unwrap(), Trust::FirstUse);
    let Packet::Interest(call) = sent(alice).remove(0) else {
        panic!("no call");
    };
    bob.handle_frame(now, call.wire().clone());
    let mut answers = sent(bob);
    let (Packet::Interest(asked), Packet::Data(answer)) = (answers.remove(1), answers.remove(0))
    else {
        panic!("no answer");
    };
    alice.handle_frame(now, answer.wire().clone());
    for packet in sent(alice) {
        if let Packet::Interest(interest) = packet {
            bob.handle_frame(now, interest.wire().clone());
        }
    }
    alice.handle_frame(now, asked.wire().clone());
    let Packet::Data(confirmation) = sent(alice).remove(0) else {
        panic!("no confirmation");
    };
    bob.handle_frame(now, confirmation.wire().clone());
    let outputs = core::iter::from_fn(|| bob.poll_output());
    let established = outputs.filter_map(|it| match it {
        Output::Event(Event::Established { call, .. }) => Some(call),
        _ => None,
    });
    let call_id = established.last().expect("established");
    bob.accept(now, call_id);
    let first = sent(bob).into_iter().find_map(|it| match it {
        Packet::Data(data) => Some(data),
        Packet::Interest(_) => None,
    });
    json!({
        "call": { "name": call.name().to_string(), "parameters": hex(&parameters(&call)) },
        "answer": hex(&answer.content().unwrap()),
        "confirmation": { "name": confirmation.name().to_string(), "content": hex(&confirmation.content().unwrap()) },
        "accepted": hex(&first.expect("accepted").content().unwrap()),
    })
}

fn parameters(interest: &Interest) -> Vec<u8> {
    interest.parameters().unwrap().to_vec()
}

/// XX, and then IK between the same two: no octet of what is on the wire changes unnoticed.
#[test]
fn set_ups_are_as_recorded() {
    let (mut alice, mut bob) = (side("/alice", 1, Vec::new()), side("/bob", 2, Vec::new()));
    let xx = set_up(&mut alice, &mut bob);
    let known: Vec<_> = alice.known().cloned().collect();
    let (mut alice, mut bob) = (side("/alice", 1, known), side("/bob", 2, Vec::new()));
    let ik = set_up(&mut alice, &mut bob);
    let made = json!({
        "about": "Ed25519 seeds 01…, 02…; static X25519 secrets 11…, 12…; secrets of the endpoints 21…, 22…; roots /alice/talk, /bob/talk",
        "xx": xx,
        "ik": ik,
    });
    let recorded: Value = serde_json::from_str(include_str!("../vectors/setup.json")).unwrap();
    assert_eq!(made, recorded, "{made:#}");
}
