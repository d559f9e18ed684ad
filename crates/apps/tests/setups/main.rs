//! Endpoints against messages of a set-up of any octets.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

#[test]
fn damaged_set_ups_harm_nothing() {
    let setup = |octets: &[u8]| {
        body::setup(octets);
    };
    damaged_seeds::harm_nothing("setup", body::KINDS, 10, damaged_seeds::any, setup);
}

/// The second message of the caller's own peer establishes a call there, the third one at the callee; no message does at an endpoint that
/// takes nobody's calls.
#[test]
fn messages_that_nobody_changed_establish_calls() {
    for (name, established) in [
        ("0-0-0", [false; 2]),
        ("1-0-1", [true, false]),
        ("1-1-1", [true, false]),
        ("2-0-2", [false, true]),
        ("2-1-2", [false, true]),
        ("2-4-2", [false; 2]),
        ("3-0-3", [true; 2]),
    ] {
        let (_, seed) = body::seeds().into_iter().find(|it| it.0 == name).unwrap();
        assert_eq!(body::setup(&seed), established, "{name}");
    }
}

/// The seeds are what two honest sides send each other. `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_of_real_set_ups() {
    for (name, seed) in body::seeds() {
        damaged_seeds::is_kept("setup", &name, &seed);
    }
}
