//! Management against messages of strangers.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

/// All four readers have some.
#[test]
fn damaged_seeds_harm_nothing() {
    damaged_seeds::harm_nothing("management", 4, 200, damaged_seeds::any, body::management);
}

/// Recipes of signed commands of every kind: accepted exactly if they should be.
#[test]
fn commands_are_accepted_as_their_recipes_say() {
    for how in 0..8 {
        for seconds in [0_i16, 120, 121, -120, -121] {
            for nonce in [0, 1, 8] {
                let [high, low] = seconds.to_be_bytes();
                body::management(&[2, high, low, how, nonce, 0, 0, 104, 0]);
            }
        }
    }
}
