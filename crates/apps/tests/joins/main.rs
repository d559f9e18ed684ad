//! Requests to join, answers and links, and damaged ones.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use bytes::Bytes;
use namecast_apps::room::{Join, Link, TOKEN_SIZE, Welcome};
use namecast_packet::signature::{Ed25519Signer, KeyPair};
use namecast_packet::{Certificate, KeyLocator, Validity};
use namecast_units::Timestamp;

#[test]
fn damaged_requests_answers_and_links_harm_nothing() {
    let read = |octets: &[u8]| {
        body::join(octets);
    };
    damaged_seeds::harm_nothing("join", body::KINDS, 50, damaged_seeds::any, read);
}

fn pair() -> Ed25519Signer {
    let name = body::ROOT.parse().expect("a name");
    Ed25519Signer::from_seed([1; 32], KeyLocator::Name(name))
}

fn request() -> Bytes {
    let root = body::ROOT.parse().expect("a name");
    let keys = (pair().public_key(), [2; 32]);
    Join::new(
        (&root, &body::ANCHOR),
        &body::secret(),
        keys,
        "Ann".to_owned(),
    )
    .encode()
}

fn welcome() -> Bytes {
    let root = body::ROOT.parse().expect("a name");
    let validity = Validity::of_own_key(Timestamp::from_micros(1_760_000_000_000_000));
    let certificate = Certificate::self_signed(&root, b"1", 1, validity, &pair());
    let welcome = Welcome {
        schema_version: 1,
        roster_version: 300,
        certificate,
    };
    welcome.encode()
}

/// `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_what_newcomers_and_hosts_make() {
    let link = Link {
        root: body::ROOT.parse().expect("a name"),
        anchor: body::ANCHOR,
        token: [9; TOKEN_SIZE],
    };
    for (name, kind, octets) in [
        ("request", 0, request()),
        ("answer", 1, welcome()),
        ("link", 2, link.to_string().into()),
    ] {
        let seed = [&[kind], &octets[..]].concat();
        damaged_seeds::is_kept("join", name, &seed);
        assert!(body::join(&seed), "{name}");
    }
}
