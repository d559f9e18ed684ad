//! The framework's own vectors, and what is read of a message before it is paid for.

use super::*;
use crate::session::refusal::Refusal;

fn key(seed: u8) -> StaticSecret {
    StaticSecret::from([seed; 32])
}

fn side<'a>(own: &'a StaticSecret, remote: Option<&'a [u8; KEY]>, seed: &'a [u8; 32]) -> Side<'a> {
    Side {
        pattern: Pattern::Ik,
        prologue: b"names",
        static_key: own,
        remote,
        seed,
    }
}

fn peeked(prologue: &[u8], own: &StaticSecret, message: &[u8]) -> Result<[u8; KEY], Refusal> {
    peek(prologue, (own, PublicKey::from(own).as_bytes()), message)
}

/// What is peeked is what the handshake reads; of a message to somebody else it is nothing.
#[test]
fn a_caller_is_peeked_at_by_whom_it_calls() {
    let (caller, callee) = (key(1), key(2));
    let remote = PublicKey::from(&callee).to_bytes();
    let mut state = side(&caller, Some(&remote), &[3; 32]).initiator();
    let message = write(&mut state, b"payload").unwrap();
    let expected = PublicKey::from(&caller).to_bytes();
    assert_eq!(peeked(b"names", &callee, &message), Ok(expected));
    let mut state = side(&callee, None, &[4; 32]).responder();
    assert_eq!(read(&mut state, &message).as_deref(), Ok(&b"payload"[..]));
    assert_eq!(state.get_remote_static(), Some(&expected[..]));
    let other = Err(Refusal::OtherStatic);
    assert_eq!(peeked(b"names", &key(5), &message), other);
    assert_eq!(peeked(b"other names", &callee, &message), other);
    assert_eq!(peeked(b"names", &callee, &message[..79]), Err(Refusal::Cut));
}

/// Sides with equal seeds write equal messages: handshakes are repeated instead of kept.
#[test]
fn a_seed_fixes_the_ephemeral_key() {
    let caller = key(1);
    let remote = PublicKey::from(&key(2)).to_bytes();
    let written = |seed: u8| {
        let seed = [seed; 32];
        write(&mut side(&caller, Some(&remote), &seed).initiator(), b"").unwrap()
    };
    assert_eq!(written(3), written(3));
    assert_ne!(written(3)[..KEY], written(4)[..KEY]);
}

fn octets(hex: &serde_json::Value) -> Vec<u8> {
    let hex = hex.as_str().expect("octets in hexadecimal digits");
    let octet = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(octet).collect()
}

fn built(vector: &serde_json::Value, is_initiator: bool) -> HandshakeState {
    let of = |field: &str| {
        let side = if is_initiator { "init" } else { "resp" };
        octets(&vector[format!("{side}_{field}")])
    };
    let params: NoiseParams = vector["protocol_name"].as_str().unwrap().parse().unwrap();
    let resolver = Box::new(Resolver(Zeroizing::new([0; 32])));
    let (prologue, secret, ephemeral) = (of("prologue"), of("static"), of("ephemeral"));
    let remote = vector.get("init_remote_static").filter(|_| is_initiator);
    let remote = remote.map(octets);
    let mut builder = Builder::with_resolver(params, resolver)
        .prologue(&prologue)
        .unwrap()
        .local_private_key(&secret)
        .unwrap()
        .fixed_ephemeral_key_for_testing_only(&ephemeral);
    if let Some(remote) = &remote {
        builder = builder.remote_public_key(remote).unwrap();
    }
    if is_initiator {
        builder.build_initiator().unwrap()
    } else {
        builder.build_responder().unwrap()
    }
}

/// The framework's published vectors, octet for octet: handshakes, their hashes, and what is sealed with the keys that are split
/// off, which sessions take.
#[test]
fn published_vectors() {
    let file: serde_json::Value = serde_json::from_str(include_str!("vectors/noise.json")).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    let names: Vec<_> = vectors
        .iter()
        .map(|it| it["protocol_name"].as_str())
        .collect();
    let expected = [Pattern::Ik, Pattern::Xx].map(|it| Some(it.protocol_name()));
    assert_eq!(names, expected);
    for (vector, handshake) in vectors.iter().zip([2, 3]) {
        let mut sides = [built(vector, true), built(vector, false)];
        let messages = vector["messages"].as_array().unwrap();
        let mut nonces = [0, 0];
        for (index, message) in messages.iter().enumerate() {
            let (payload, expected) = (octets(&message["payload"]), octets(&message["ciphertext"]));
            let from = index % 2;
            if index < handshake {
                let written = write(&mut sides[from], &payload).unwrap();
                assert_eq!(written, expected, "message {index}");
                let opened = read(&mut sides[1 - from], &written).unwrap();
                assert_eq!(opened, payload, "message {index}");
                continue;
            }
            let hashes = sides.each_ref().map(|it| it.get_handshake_hash().to_vec());
            let hash = octets(&vector["handshake_hash"]);
            assert_eq!(hashes, [hash.clone(), hash]);
            for side in &mut sides {
                let (from_initiator, from_responder) = side.dangerously_get_raw_split();
                let mut cipher = ChaChaPoly::default();
                cipher.set(if from == 0 {
                    &from_initiator
                } else {
                    &from_responder
                });
                let mut sealed = vec![0; payload.len() + TAG];
                cipher.encrypt(nonces[from], &[], &payload, &mut sealed);
                assert_eq!(sealed, expected, "message {index}");
            }
            nonces[from] += 1;
        }
    }
}
