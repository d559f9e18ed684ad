//! Sessions against messages of any octets.

#[path = "../../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

#[test]
fn damaged_messages_harm_nothing() {
    damaged_seeds::harm_nothing("session", 2, 300, damaged_seeds::any, super::body::session);
}
