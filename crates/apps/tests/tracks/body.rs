//! Samples of people, and lines and datagrams of their positions, of any octets.

use namecast_apps::tracks::{Crowd, Hint, Lines, MAX_SAMPLE, OpenPTrack, Person, Sample, encode};
use namecast_units::Timestamp;

/// Kinds of inputs of [`tracks`], by their first octet: a sample; lines; datagrams, between octets of zero; a hint.
pub(crate) const KINDS: u8 = 4;

const NOW: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);
/// Most people of a reader.
const MAX_PEOPLE: usize = 4;

/// Reads `octets` by their kind. Returns whether they hold what their kind says.
pub(crate) fn tracks(octets: &[u8]) -> bool {
    let Some((kind, rest)) = octets.split_first() else {
        return false;
    };
    match kind % KINDS {
        0 => sample(rest),
        1 => lines(rest),
        2 => datagrams(rest),
        _ => hint(rest),
    }
}

/// A sample that is written again has the same people.
fn sample(octets: &[u8]) -> bool {
    let Ok(sample) = Sample::decode(octets, MAX_PEOPLE) else {
        return false;
    };
    assert!(sample.people.len() <= MAX_PEOPLE);
    // Clocks that nobody uses, and spaces in JSON, are not written again.
    let again = encode(sample.tick, &sample.people).expect("it was read");
    let read = Sample::decode(&again, MAX_PEOPLE).expect("it was written");
    assert_eq!(
        (read.tick, read.people.len()),
        (sample.tick, sample.people.len())
    );
    let pairs = sample.people.iter().zip(&read.people);
    pairs.for_each(|(one, other)| is_alike(one, other));
    true
}

/// A hint is written as it was read.
fn hint(octets: &[u8]) -> bool {
    let Ok(hint) = Hint::decode(octets, MAX_PEOPLE) else {
        return false;
    };
    assert!(hint.people.len() <= MAX_PEOPLE);
    assert_eq!(hint.encode().expect("it was read"), octets);
    true
}

/// Lines read alike whole and in parts; each person is one of a sample, and its JSON says the same.
fn lines(octets: &[u8]) -> bool {
    let read = |step: usize| {
        let mut lines = Lines::default();
        let chunks = octets.chunks(step);
        let mut read: Vec<_> = chunks.flat_map(|chunk| lines.read(chunk, NOW)).collect();
        read.extend(lines.finish(NOW));
        let read = read.into_iter().map(|it| it.map_err(|it| it.to_string()));
        read.collect::<Vec<_>>()
    };
    let whole = read(octets.len().max(1));
    assert_eq!(whole, read(3));
    let mut crowd = Crowd::new(MAX_PEOPLE);
    for person in whole.iter().flatten() {
        is_consistent(person);
        let _ = crowd.put(NOW, person.clone());
        assert!(crowd.people(NOW).len() <= MAX_PEOPLE);
    }
    whole.iter().any(Result::is_ok)
}

/// People are bounded, and each is one of a sample.
fn datagrams(octets: &[u8]) -> bool {
    let mut reader = OpenPTrack::new(MAX_PEOPLE);
    for datagram in octets.split(|octet| *octet == 0) {
        reader.handle_datagram(NOW, datagram);
        assert!(reader.people().count() <= MAX_PEOPLE);
        reader.people().for_each(is_consistent);
    }
    reader.people().count() > 0
}

fn is_consistent(person: &Person) {
    let json = person.to_json(1);
    assert!(!json.contains('\n'));
    is_alike(
        person,
        &Person::from_json(json.as_bytes(), NOW).expect("it was written"),
    );
    assert!(!person.to_csv(1).is_empty());
    let sample = encode(1, core::slice::from_ref(person)).expect("it was read");
    assert!(sample.len() <= MAX_SAMPLE);
    let read = Sample::decode(&sample, 1).expect("it was written");
    is_alike(person, &read.people[0]);
}

/// Samples keep 0.1 mm, and numbers of JSON may be one unit in the last place apart.
fn is_alike(one: &Person, other: &Person) {
    assert_eq!(
        (&one.id, one.at, &one.clock),
        (&other.id, other.at, &other.clock)
    );
    let distances = [one.x - other.x, one.y - other.y, one.z - other.z];
    assert!(
        distances.iter().all(|it| it.abs() <= 0.000_051),
        "{one:?} {other:?}"
    );
    assert!(one.extra.keys().eq(other.extra.keys()));
}
