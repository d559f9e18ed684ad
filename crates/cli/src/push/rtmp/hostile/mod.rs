//! RTMP against octets of any kind.

mod body;
#[path = "../../../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use super::{amf, chunks, session};

#[test]
fn damaged_seeds_harm_nothing() {
    damaged_seeds::harm_nothing("rtmp", 4, 100, damaged_seeds::any, body::rtmp);
}
