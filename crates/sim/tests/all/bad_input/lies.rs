//! Leads that lie, of a broken publisher and of a forger.

use std::time::Duration;

use bytes::Bytes;
use namecast_packet::signature::Ed25519Signer;
use namecast_packet::tlv::Writer;
use namecast_packet::{Data, Digests, PacketDigest};
use namecast_sim::live::Media;
use namecast_stream::sample::{MAX_SEGMENTS, MAX_SHARD_SIZE};
use namecast_units::Timestamp;

use crate::bad_input::stage::{LOSSES, Stage, viewer};
use crate::bad_input::studio::{Changed, Studio, Written, frame_at, lead_in, right_key, wrong_key};
use crate::live_world::ms;

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// A Digests element that holds `count` digests of nothing.
fn digests(count: usize) -> Bytes {
    let octets = vec![0x5a; count * PacketDigest::SIZE];
    let mut writer = Writer::default();
    Digests::decode(&octets.into()).unwrap().encode(&mut writer);
    writer.finish()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// 480 segments of 8000 octets, none of which exists but the lead.
    Segments,
    /// More parity than digests.
    Parity,
    /// Another size than segments and shares add up to.
    Size,
    /// The other sequence is a million further.
    Ahead,
    /// Captured a year from now.
    Time,
    /// The largest numbers there are.
    Extreme,
}

const LIES: [Lie; 6] = [
    Lie::Segments,
    Lie::Parity,
    Lie::Size,
    Lie::Ahead,
    Lie::Time,
    Lie::Extreme,
];

/// `data`, which is a lead, as `lie` has it, signed by `key`.
fn lying(data: &Data, lie: Lie, key: &Ed25519Signer) -> Data {
    let mut written = Written::of(data);
    let header = &mut written.header;
    match lie {
        Lie::Segments => {
            header.payload_size = (MAX_SEGMENTS - 1) * MAX_SHARD_SIZE + written.share.len();
            header.shard_size = Some(MAX_SHARD_SIZE);
            header.parity_count = 0;
            written.digests = digests(MAX_SEGMENTS - 1);
        }
        Lie::Parity => header.parity_count = 100,
        Lie::Size => header.payload_size += 1,
        Lie::Ahead => header.other_sequence += 1_000_000,
        Lie::Time => header.captured_at = header.captured_at + YEAR,
        Lie::Extreme => {
            header.position = u64::MAX;
            header.captured_at = Timestamp::from_micros(u64::MAX);
            header.encoded_after = Duration::from_micros(u64::MAX);
            header.published_after = Duration::from_micros(u64::MAX);
        }
    }
    written.sign(data, key)
}

/// Runs a stream of which the leads of frames `from..to` lie; `once`: only in the first answer of each.
fn lied_to(loss: f64, lie: Lie, frames: std::ops::Range<u64>, is_forged: bool) -> Stage {
    let mut stage = Stage::new(loss, viewer());
    let key = if is_forged { wrong_key() } else { right_key() };
    let studio = Studio::new(Media::video(), |_, _| {});
    let mut told = std::collections::BTreeSet::new();
    let changed = Changed::new(studio, move |_, data| {
        let lies = lead_in(data).is_some_and(|(_, lead)| {
            let position = lead.header().position;
            // A forger gets in now and then, a broken publisher always says the same.
            frames.contains(&position) && (!is_forged || told.insert(data.name().clone()))
        });
        if lies {
            vec![lying(data, lie, &key)]
        } else {
            vec![data.clone()]
        }
    });
    stage.produce(changed);
    stage.run_until(ms(20_000));
    stage
}

/// One delta, one key frame, thirty frames of a broken publisher lie.
///
/// A lead that contradicts itself or points to where nothing can be costs what needs it: its group, 20 or 30 frames, and
/// 45 of the two groups that the thirty touch. So does one that claims segments which do not exist: they are
/// asked for once, those of the next such leads a few at a time, and a few frames after them come late. A wrong time makes the frames after it late for half a second, the time that it takes to
/// accept in a longer way.
#[test]
fn a_broken_publisher_costs_what_it_breaks() {
    for loss in LOSSES {
        for lie in LIES {
            for (frames, group) in [(310..311, 20), (330..331, 30), (315..345, 45)] {
                let count = frames.end - frames.start;
                let stage = lied_to(loss, lie, frames.clone(), false);
                let at = frame_at(frames.start as u32);
                let missing = stage.missing(at - ms(1_000)..at + ms(5_000));
                let most = match lie {
                    Lie::Segments => group + 10,
                    Lie::Parity | Lie::Size | Lie::Ahead => group,
                    Lie::Time => 25,
                    Lie::Extreme => count + 1,
                };
                let most = most + stage.allowance();
                assert!(missing <= most, "{lie:?} {frames:?} {loss}: {missing}");
                stage.assert_steady(at + ms(3_000)..ms(19_500));
                let stats = stage.stats();
                assert_eq!(stats.rejoins, 0);
                // Without lies it is 10 800.
                assert!(
                    stats.interests_sent < 20_000,
                    "{lie:?} {frames:?} {loss}: {}",
                    stats.interests_sent
                );
                if lie != Lie::Extreme {
                    stage.assert_decodable();
                }
                let lost = stats.video.unwrap().lost;
                let expected = match lie {
                    Lie::Segments => 0..=group + 10,
                    // A copy of the lead may tell the truth.
                    Lie::Parity | Lie::Size | Lie::Ahead => 0..=group,
                    // A time a year off shifts the clock by which repairs go, for a few frames where packets are lost.
                    Lie::Time | Lie::Extreme => 0..=stage.allowance(),
                };
                assert!(expected.contains(&lost), "{lie:?} {frames:?}: {lost}");
            }
        }
    }
}

/// A forger answers first, once for each of thirty frames: nothing of it has an effect. Each lead is counted, and asked for
/// again in time.
#[test]
fn a_forger_costs_a_round_trip() {
    for loss in LOSSES {
        for lie in LIES {
            let stage = lied_to(loss, lie, 315..345, true);
            stage.assert_about(stage.missing(ms(9_500)..ms(15_500)), 0);
            stage.assert_decodable();
            let stats = stage.stats();
            assert_eq!(stats.verification_failures, 30, "{lie:?} {loss}");
            assert_eq!((stats.rejoins, stats.video.unwrap().lost), (0, 0));
        }
    }
}
