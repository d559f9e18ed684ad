//! Samples, lines and datagrams of positions, and damaged ones.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use namecast_apps::tracks::{Hint, encode, walking};
use namecast_units::Timestamp;

#[test]
fn damaged_positions_harm_nothing() {
    let read = |octets: &[u8]| {
        body::tracks(octets);
    };
    damaged_seeds::harm_nothing("tracks", body::KINDS, 300, damaged_seeds::any, read);
}

/// `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_positions() {
    let mut people = walking(3, Timestamp::from_micros(1_760_000_000_000_000));
    people[0].clock = Some("cam".to_owned());
    people[1].extra.insert("age".to_owned(), 4.into());
    let sample = encode(7, &people).expect("three people");
    let hint = Hint {
        tick: 7,
        people: vec![("ann".to_owned(), Timestamp::from_micros(1))],
    };
    let hint = hint.encode().expect("one person");
    let lines = b"{\"id\":\"a\",\"x\":1.5,\"y\":-2,\"z\":0,\"at\":5,\"clock\":\"c\",\"age\":4.5}\n{\"id\":3,\"x\":1e9,\"y\":0,\"z\":0}\n";
    let datagrams = b"{\"header\":{\"seq\":7,\"stamp\":{\"sec\":1,\"nsec\":5000}},\"tracks\":[{\"id\":3,\"x\":1.5,\"y\":2,\"height\":1.8,\"age\":4}]}\
        {\"header\":{\"seq\":7},\"pose_tracks\":[{\"id\":3,\"joints\":{\"CHEST\":{\"x\":1,\"y\":2,\"z\":1}}}]}\0{\"header\":{\"seq\":8},\"tracks\":[]}";
    let seeds = [
        ("sample", 0, &sample[..]),
        ("lines", 1, &lines[..]),
        ("datagrams", 2, &datagrams[..]),
        ("hint", 3, &hint[..]),
    ];
    for (name, kind, octets) in seeds {
        let seed = [&[kind], octets].concat();
        damaged_seeds::is_kept("tracks", name, &seed);
        assert!(body::tracks(&seed), "{name}");
    }
}
