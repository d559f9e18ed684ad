//! State vectors, publications and scripts, and damaged ones.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use namecast_apps::group::{Publication, Status};
use namecast_packet::hex_decode;
use namecast_units::Random;

#[test]
fn damaged_vectors_and_publications_harm_nothing() {
    let read = |octets: &[u8]| {
        body::svs(octets);
    };
    damaged_seeds::harm_nothing("svs", body::KINDS, 100, damaged_seeds::any, read);
}

#[test]
fn scripts_of_any_octets_harm_nothing() {
    let run = |octets: &[u8]| {
        body::group(octets);
    };
    damaged_seeds::harm_nothing("group", 1, 300, damaged_seeds::any, run);
    // Of few members, starts and numbers, so that they meet each other.
    for seed in 0..300 {
        let mut random = Random::from_seed(seed);
        let steps = (0..random.below(200)).flat_map(|_| {
            let [kind, high, low, member] = [128, 4, 20, 4].map(|below| random.below(below) as u8);
            [kind, high, low, member]
        });
        run(&steps.collect::<Vec<_>>());
    }
}

/// NDNts's vector, and a publication. `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_what_members_send() {
    let vector = "c954ca21070908046e6f6465080161d209d4046187715ad6010ad209d404677d52e9d60101\
                  ca16070908046e6f6465080162d209d404618771acd6010fca17070908046e6f6465080163\
                  d20ad40461877083d602012c";
    let vector = hex_decode(vector).expect("octets");
    let publication = Publication {
        status: Status {
            label: "Ann".to_owned(),
            has_hand_up: true,
            is_muted: true,
        },
        has_left: true,
        text: Some("bye".to_owned()),
    };
    let publication = publication.encode();
    for (name, kind, octets) in [("vector", 0, &vector[..]), ("publication", 1, &publication)] {
        let seed = [&[kind], octets].concat();
        damaged_seeds::is_kept("svs", name, &seed);
        assert!(body::svs(&seed), "{name}");
    }
}

/// Scripts: a member is claimed, publishes and answers; it leaves; others claim what there is not. `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn scripts_are_of_what_happens_in_groups() {
    let comes = [0, 0, 10, 0, 1, 0, 1, 1, 0, 0, 10, 0, 3, 0, 1, 1, 4, 0, 1, 1];
    let leaves = [&comes[..], &[1, 0, 5, 1, 0, 0, 10, 0, 3, 0, 5, 1]].concat();
    let claims = [
        &comes[..],
        &[2, 0, 40, 1, 17, 255, 255, 1, 0, 8, 0, 0, 6, 0, 3, 0],
    ]
    .concat();
    let frames = [&comes[..], &[7, 0, 2, 0, 5, 0, 5, 0, 1, 0, 6, 0, 2, 0]].concat();
    for (name, script, here) in [
        ("comes", &comes[..], 1),
        ("leaves", &leaves, 0),
        ("claims", &claims, 1),
        ("frames", &frames, 1),
    ] {
        damaged_seeds::is_kept("group", name, script);
        assert_eq!(body::group(script), here, "{name}");
    }
}
