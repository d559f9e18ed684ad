//! What a pending Interest and a cached packet take, by the process's resident memory: `cargo run --release -p namecast-forward
//! --example memory`.

use bytes::Bytes;
use namecast_forward::{Config, ContentStoreConfig, FaceConfig, Forwarder, Keep, PitConfig};
use namecast_packet::signature::{NullSigner, Signer};
use namecast_packet::{Component, Data, Interest, Name, Nonce};
use namecast_units::{ByteSize, Instant};

/// Pending Interests, and cached packets.
const COUNT: u64 = 300_000;
/// Octets of content.
const PAYLOAD: usize = 1_000;

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("pending") => pending(),
        Some(_) => cached(),
        // Each in a process that has used no memory before.
        None => ["pending", "cached"].into_iter().for_each(|what| {
            let itself = std::env::current_exe().expect("it runs");
            let status = std::process::Command::new(itself).arg(what).status();
            assert!(status.is_ok_and(|status| status.success()), "{what}");
        }),
    }
}

/// Resident octets of this process.
fn resident() -> u64 {
    const PAGE: u64 = 4_096;
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number is that of resident pages") * PAGE
}

/// As sockets do: each frame in an allocation of its own.
fn frame(wire: &Bytes) -> Bytes {
    Bytes::copy_from_slice(wire)
}

fn name() -> Name {
    "/demo/video/1M/delta/seq=300/data".parse().expect("a name")
}

fn pending() {
    let mut node = Forwarder::new(Config {
        keep: Keep::LargeFrames,
        pit: PitConfig {
            capacity: COUNT as usize,
            face_capacity: COUNT as usize,
            max_size: ByteSize::mebibytes(1_024),
            ..PitConfig::default()
        },
        ..Config::default()
    });
    let (consumer, producer) = faces(&mut node);
    let template = Interest::builder(name()).template(Component::SEQUENCE);
    let mut names = 0;
    let before = resident();
    for number in 0..COUNT {
        let interest = template.build(number, Nonce::from(number as u32));
        names += interest.name().value().len() as u64;
        node.handle_frame(Instant::ZERO, consumer, frame(interest.wire()));
        core::iter::from_fn(|| node.poll_output()).for_each(drop);
    }
    assert_eq!(node.pending_interests() as u64, COUNT);
    let each = (resident() - before) / COUNT;
    let name = names / COUNT;
    println!(
        "pending Interest: {each} octets, {} beyond the name's {name}",
        each - name
    );
    let _ = producer;
}

fn cached() {
    let mut node = Forwarder::new(Config {
        keep: Keep::LargeFrames,
        content_store: ContentStoreConfig::with_capacity(ByteSize::mebibytes(2_048)),
        ..Config::default()
    });
    let (consumer, producer) = faces(&mut node);
    let interests = Interest::builder(name()).template(Component::SEQUENCE);
    let data = Data::builder(Name::root())
        .content(vec![0; PAYLOAD])
        .template(NullSigner.info(), 32);
    let mut packets = 0;
    let before = resident();
    for number in 0..COUNT {
        let interest = interests.build(number, Nonce::from(number as u32));
        node.handle_frame(Instant::ZERO, consumer, frame(interest.wire()));
        let data = data.build(interest.name().clone());
        packets += data.wire().len() as u64;
        node.handle_frame(Instant::ZERO, producer, frame(data.wire()));
        core::iter::from_fn(|| node.poll_output()).for_each(drop);
    }
    assert_eq!(node.content_store().packets() as u64, COUNT);
    let each = (resident() - before) / COUNT;
    let packet = packets / COUNT;
    println!(
        "cached packet: {each} octets, {} beyond the packet's {packet}; counted as {}",
        each - packet,
        node.content_store().size().as_bytes() / COUNT
    );
}

fn faces(node: &mut Forwarder) -> (namecast_forward::FaceId, namecast_forward::FaceId) {
    let mut add = || node.add_face(FaceConfig::default()).expect("there is room");
    let (consumer, producer) = (add(), add());
    node.add_route(Name::root(), producer, 0)
        .expect("the face is there");
    (consumer, producer)
}
