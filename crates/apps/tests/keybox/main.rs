//! Key boxes, seals and rosters, and damaged ones.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use std::collections::BTreeSet;

use bytes::Bytes;
use namecast_apps::sealed::{Seal, Sealer, SealerConfig, SealerEvent};
use namecast_apps::trust::{ExchangeSecret, Member, Revocation, Roster};
use namecast_units::{Instant, Timestamp};

#[test]
fn damaged_boxes_seals_and_rosters_harm_nothing() {
    let read = |octets: &[u8]| {
        body::key_box(octets);
    };
    damaged_seeds::harm_nothing("keybox", body::KINDS, 50, damaged_seeds::any, read);
}

/// The packet of a box for the reader of the body and another one.
fn key_box() -> Bytes {
    let root = body::ROOT.parse().expect("a name");
    let mut sealer = Sealer::new(SealerConfig::new(root), [3; 32]);
    assert_eq!(sealer.start(), body::START, "of the seed above");
    let readers = [body::READER, [8; 32]].map(|it| ExchangeSecret::of_seed(&it).public());
    sealer.set_readers(Instant::ZERO, &BTreeSet::from(readers));
    let Some(SealerEvent::Box(key_box)) = sealer.poll_event() else {
        panic!("a box");
    };
    assert_eq!(key_box.seal, body::seal(body::START));
    key_box.packets[0].clone()
}

fn roster() -> Roster {
    Roster {
        members: vec![Member {
            certificate: "/calls/fox/ann/KEY/1/fox/v=1".parse().expect("a name"),
            key_digest: [1; 32],
            until: Timestamp::from_micros(1_760_000_000_000_000),
            role: "member".to_owned(),
            exchange_key: Some([2; 32]),
            label: "Ann".to_owned(),
        }],
        revocations: vec![Revocation {
            key_digest: [3; 32],
            since: Timestamp::from_micros(1_750_000_000_000_000),
            certificate: "/calls/fox/eve/KEY/1/fox/v=1".parse().expect("a name"),
        }],
    }
}

/// `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_what_publishers_and_hosts_make() {
    let seal = Seal {
        start: body::START,
        generation: 70_000,
        step: 3,
    };
    for (name, kind, octets) in [
        ("box-of-two", 0, key_box()),
        ("seal", 1, seal.encode()),
        ("roster", 2, roster().encode()),
    ] {
        let seed = [&[kind], &octets[..]].concat();
        damaged_seeds::is_kept("keybox", name, &seed);
        assert!(body::key_box(&seed), "{name}");
    }
}
