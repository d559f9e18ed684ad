//! Consumers against catalogues and metadata of any octets.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use namecast_stream::{Catalogue, SampleRate};
use namecast_units::Random;

/// Half of what is put in are digits, so that numbers become others and JSON stays JSON.
#[test]
fn damaged_seeds_harm_nothing() {
    let octet = |random: &mut Random| match random.chance(0.5) {
        true => b'0' + random.below(10) as u8,
        false => damaged_seeds::any(random),
    };
    damaged_seeds::harm_nothing(
        "catalogue_metadata",
        5,
        150,
        octet,
        body::catalogue_metadata,
    );
}

/// Each number of a stream at its bounds, with all others: a catalogue is refused, or harmless.
#[test]
fn numbers_at_their_bounds_harm_nothing() {
    let catalogue = |rate: SampleRate, bitrate: u64, key_interval: u32| {
        let SampleRate { num, den } = rate;
        format!(
            r#"{{"version":1,"streams":[{{"name":"v","kind":"video","codec":"h264","rungs":[{{"name":"1M",
            "bitrate":{bitrate},"rate":{{"num":{num},"den":{den}}},"key_interval":{key_interval},"codec_string":"x"}}],
            "segment_size":256,"parity_percent":100}}],"signer":""}}"#
        )
    };
    let mut accepted = 0;
    for num in [0, 1, 1_000, u32::MAX] {
        for den in [0, 1, 3_600, 3_601, u32::MAX] {
            for bitrate in [0, 1, 10_000_000_000, u64::MAX] {
                for key_interval in [0, 1, 100_000, u32::MAX] {
                    let json = catalogue(SampleRate::new(num, den), bitrate, key_interval);
                    accepted += u32::from(Catalogue::decode(json.as_bytes()).is_ok());
                    let length = u16::try_from(json.len()).unwrap().to_be_bytes();
                    body::catalogue_metadata(&[&[3], &length[..], json.as_bytes()].concat());
                }
            }
        }
    }
    // 1 and 1000 a second; 1 and 1000 in 3600 s, 1000 in 3601 s; as many as there are seconds; three bitrates, two intervals.
    assert_eq!(accepted, 6 * 3 * 2);
}
