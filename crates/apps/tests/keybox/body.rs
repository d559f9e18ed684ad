//! Key boxes, seals and rosters of any octets: what is read says the same when written again, and opens nothing that was not sealed for it.

use bytes::Bytes;
use namecast_apps::sealed::{
    MAX_ENTRIES, Opener, OpenerConfig, Seal, Unopened, decode_entries, encode_entries,
};
use namecast_apps::trust::{ExchangeSecret, Roster};
use namecast_packet::Name;

/// Kinds of inputs, by their first octet: a packet of a key box; a seal; a roster.
pub(crate) const KINDS: u8 = 3;

/// Seed of the reader's key.
pub(crate) const READER: [u8; 32] = [7; 32];
/// The stream.
pub(crate) const ROOT: &str = "/calls/fox/ann";

/// Reads `octets` by their kind. Returns whether they hold what their kind says; of a key box, whether it has a secret for the reader.
pub(crate) fn key_box(octets: &[u8]) -> bool {
    let Some((kind, rest)) = octets.split_first() else {
        return false;
    };
    let rest = Bytes::copy_from_slice(rest);
    match kind % KINDS {
        0 => entries(&rest),
        1 => Seal::decode(&rest).is_some_and(|seal| {
            assert_eq!(seal.encode(), rest);
            true
        }),
        _ => Roster::decode(&rest).is_ok_and(|roster| {
            assert_eq!(Roster::decode(&roster.encode()), Ok(roster.clone()));
            assert!(roster.revoked().len() <= roster.revocations.len());
            true
        }),
    }
}

/// Seal that the seeds are boxes of.
pub(crate) fn seal(start: [u8; 4]) -> Seal {
    Seal {
        start,
        generation: 0,
        step: 0,
    }
}

fn entries(octets: &Bytes) -> bool {
    let Ok(entries) = decode_entries(octets) else {
        return false;
    };
    assert!(entries.len() <= MAX_ENTRIES);
    assert_eq!(
        decode_entries(&encode_entries(&entries)),
        Ok(entries.clone())
    );
    let root: Name = ROOT.parse().expect("a name");
    let secret = ExchangeSecret::of_seed(&READER);
    let mut opener = Opener::new(root.clone(), vec![secret], OpenerConfig::default());
    let name = seal(START);
    assert!(opener.take(&name, &entries, (0, 1)));
    let seal = Seal {
        start: name.start,
        generation: name.generation,
        step: name.step,
    };
    let sequence = root.builder().generic("video").finish();
    match opener.open(&sequence, (1, &seal), b"sixteen octets at least") {
        Err(Unopened::Damaged) => true,
        Err(Unopened::NotAReader) => false,
        other => panic!("{other:?}"),
    }
}

/// Start of the publisher whose boxes the seeds are.
pub(crate) const START: [u8; 4] = [218, 153, 117, 208];
