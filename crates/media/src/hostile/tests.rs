//! Bodies of fuzz targets on damaged seeds.

#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use damaged_seeds::{any, harm_nothing};

#[test]
fn damaged_flv_harms_nothing() {
    harm_nothing("flv", 0, 100, any, super::flv);
}

#[test]
fn damaged_nut_harms_nothing() {
    harm_nothing("nut", 0, 100, any, super::nut);
}

#[test]
fn damaged_codec_headers_harm_nothing() {
    harm_nothing("codec_headers", 12, 100, any, super::codec_headers);
}

#[test]
fn damaged_captions_harm_nothing() {
    harm_nothing("captions", 6, 100, any, super::captions);
}

#[test]
fn damaged_packets_harm_nothing() {
    harm_nothing("packets", 0, 100, any, super::packets);
}

#[cfg(feature = "whip")]
#[test]
fn damaged_offers_harm_nothing() {
    harm_nothing("whip", 3, 30, any, super::whip);
}
