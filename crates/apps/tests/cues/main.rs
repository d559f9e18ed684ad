//! Cues, logs and OSC, and damaged ones.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use std::time::Duration;

use namecast_apps::Now;
use namecast_apps::cues::osc::{encode_press, encode_slip};
use namecast_apps::cues::{
    self, Action, CUES, Cue, CueId, Device, DeviceConfig, Done, Outcome, Output, Press,
};
use namecast_apps::live::{Publisher, PublisherConfig};
use namecast_packet::signature::Ed25519Signer;
use namecast_packet::{Certificate, KeyLocator, Name, Validity};
use namecast_stream::ProducerConfig;
use namecast_units::{Instant, Timestamp};

#[test]
fn damaged_shows_harm_nothing() {
    let read = |octets: &[u8]| {
        body::cues(octets);
    };
    damaged_seeds::harm_nothing("cues", body::CUES, 300, damaged_seeds::any, read);
}

#[test]
fn damaged_osc_harms_nothing() {
    let read = |octets: &[u8]| {
        body::osc(octets);
    };
    damaged_seeds::harm_nothing("osc", body::OSC, 2_000, damaged_seeds::any, read);
}

const WALL: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);

fn cue() -> Cue {
    Cue {
        id: CueId([0xab; 16]),
        number: "12.5".to_owned(),
        action: Action::Go,
        term: 2,
        at: WALL,
        targets: vec!["light-1".to_owned()],
        values: [
            ("osc".to_owned(), "/level".into()),
            ("args".to_owned(), vec![1, 2].into()),
        ]
        .into_iter()
        .collect(),
        rehearsal: false,
    }
}

/// A certificate, and cues of one packet and of two.
fn log() -> Vec<u8> {
    let show: Name = "/show".parse().expect("a name");
    let root = cues::desk_root(&show, "main");
    let key = root.builder().generic("KEY").generic("1").finish();
    let signer = Ed25519Signer::from_seed([7; 32], KeyLocator::Name(key));
    let validity = Validity::of_own_key(WALL);
    let certificate = Certificate::self_signed(&root, b"1", 9, validity, &signer);
    let config = PublisherConfig {
        root,
        streams: vec![cues::stream(CUES)],
        producer: ProducerConfig::default(),
        shared_since: None,
    };
    let publisher = Publisher::new(config, WALL, Box::new(signer), &certificate);
    let mut publisher = publisher.expect("one stream");
    let mut log = certificate.data().wire().to_vec();
    for length in [0, 1_200] {
        let mut cue = cue();
        cue.values
            .insert("text".to_owned(), "x".repeat(length).into());
        let now = Now {
            monotonic: Instant::ZERO + Duration::from_secs(1),
            wall: WALL + Duration::from_secs(1),
        };
        let message = cue.encode().expect("a cue");
        let published = publisher.publish_sample(now, CUES, message);
        published.expect("room for it");
        let packets = publisher.newest_sample(CUES);
        packets
            .iter()
            .for_each(|data| log.extend_from_slice(data.wire()));
    }
    log
}

/// `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_shows_and_osc() {
    let report = Done {
        number: "12.5".to_owned(),
        ..Done::refusal("late")
    };
    // Two desks, a take-over, a stop and a journal that fails.
    let script = [
        [0, 1, 0, 10],
        [0, 2, 0, 0],
        [8, 3, 1, 200],
        [0x80, 4, 1, 0],
        [1, 5, 1, 0],
        [0x20, 6, 2, 5],
        [0x10, 7, 1, 0],
        [0x40, 8, 1, 90],
        [0, 9, 1, 255],
    ];
    let seeds = [
        ("cue", 0, cue().encode().expect("a cue")),
        ("report", 1, report.encode()),
        ("log", 2, log()),
        ("script", 3, script.concat()),
    ];
    for (name, kind, octets) in seeds {
        let seed = [&[kind], &octets[..]].concat();
        damaged_seeds::is_kept("cues", name, &seed);
        assert!(body::cues(&seed), "{name}");
    }
    let go = encode_press(&Press::Go(Some("12.5".to_owned()))).expect("a press");
    let stop = encode_press(&Press::Stop).expect("a press");
    let length = |packet: &[u8]| u32::try_from(packet.len()).expect("short").to_be_bytes();
    let head = b"#bundle\0\0\0\0\0\0\0\0\x01";
    let inner = [&head[..], &length(&stop), &stop].concat();
    let bundle = [&head[..], &length(&go), &go, &length(&inner), &inner].concat();
    let arrays = b"/cue/7/start\0\0\0\0,[[i]s]\0\0\0\0\x05a\0\0\0".to_vec();
    let slip = [encode_slip(&go), encode_slip(&[0xc0, 0xdb])].concat();
    let lengths = [&length(&go)[..], &go, &length(&stop), &stop].concat();
    let seeds = [
        ("bundle", 0, bundle),
        ("arrays", 0, arrays),
        ("slip", 1, slip),
        ("lengths", 1, lengths),
    ];
    for (name, kind, octets) in seeds {
        let seed = [&[kind], &octets[..]].concat();
        damaged_seeds::is_kept("osc", name, &seed);
        assert!(body::osc(&seed), "{name}");
    }
}

/// 10 000 cues of certified desks that are replayed, of a lower term, of one that nobody can have, of a rehearsal, or far ahead: none is
/// executed, and each is reported with its outcome.
#[test]
fn no_wrong_cue_is_executed_and_each_is_reported() {
    let mut device = Device::new(DeviceConfig::default());
    let lead = Cue {
        action: Action::Lead,
        targets: Vec::new(),
        ..cue()
    };
    device.handle_cue(WALL, "main", lead);
    let mut reported = [0; 3];
    for number in 0..10_000_u32 {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        let mut wrong = Cue {
            id: CueId(id),
            targets: Vec::new(),
            ..cue()
        };
        match number % 5 {
            0 => {
                wrong.at = Timestamp::from_micros(WALL.as_micros() - 2_000_001 - u64::from(number))
            }
            1 => wrong.term = 1,
            2 => wrong.term = 67 + u64::from(number),
            3 => wrong.rehearsal = true,
            _ => wrong.at = WALL + Duration::from_secs(61),
        }
        device.handle_cue(WALL, "main", wrong);
        while let Some(output) = device.poll_output() {
            let Output::Report(done) = output else {
                panic!("{output:?}");
            };
            let place = [Outcome::Stale, Outcome::Superseded, Outcome::Refused];
            let place = place.iter().position(|outcome| *outcome == done.outcome);
            reported[place.expect("none was executed")] += 1;
        }
    }
    assert_eq!(reported, [2_000, 2_000, 6_000]);
    assert_eq!(
        (device.poll_timeout(), device.counters().executed),
        (None, 0)
    );
}
