use std::collections::BTreeMap;

use namecast_packet::hex_decode;
use namecast_units::{Random, Timestamp};
use serde_json::{Map, Value, json};

use super::*;

const NOW: Timestamp = Timestamp::from_micros(1_760_000_000_000_000);

fn person(id: &str) -> Person {
    Person {
        id: id.to_owned(),
        x: 1.5,
        y: -0.0001,
        z: 1.7,
        at: NOW,
        clock: None,
        extra: Map::new(),
    }
}

/// 1.5 m are 15 000 units (3a98), −0.0001 m is −1 (ffffffff), 1.7 m are 17 000 (4268); the time is 640b5eece0000 in hexadecimal.
#[test]
fn a_sample_has_these_octets() {
    let mut ann = person("Ann");
    ann.clock = Some("cam".to_owned());
    ann.extra.insert("n".to_owned(), 1.into());
    let octets = "01 0000000000000007 0001 0363616d \
                  03416e6e 00003a98 ffffffff 00004268 000640b5eece0000 0001 0007 7b226e223a317d \
                  03616c6c 00003a98 ffffffff 00004268 000640b5eece0000 0000 0000";
    let octets = hex_decode(&octets.replace(' ', "")).unwrap();
    assert_eq!(encode(7, &[ann.clone(), person("all")]).unwrap(), octets);
    let sample = Sample::decode(&octets, 2).unwrap();
    assert_eq!(sample.tick, 7);
    assert_eq!(sample.people, [ann, person("all")]);
    let refused = Sample::decode(&octets, 1).unwrap_err().to_string();
    assert!(refused.starts_with("more than 1 people"), "{refused}");
}

/// Each prefix of a sample ends in the middle of something, but for those that end behind a person.
#[test]
fn a_sample_that_ends_early_is_refused() {
    let sample = encode(7, &[person("a"), person("b")]).unwrap();
    let read = (0..=sample.len()).filter(|end| Sample::decode(&sample[..*end], 2).is_ok());
    // Header: 11 octets; a person with an id of one: 26.
    assert_eq!(read.collect::<Vec<_>>(), [11, 37, 63]);
    let refused = |at: usize, octet: u8| {
        let mut wrong = sample.clone();
        wrong[at] = octet;
        Sample::decode(&wrong, 2).unwrap_err().to_string()
    };
    assert!(refused(0, 2).contains("version 1"));
    assert!(refused(13, 0x7f).starts_with("x: 2.13"));
    assert!(refused(34, 1).contains("no such clock"));
}

fn any_person(random: &mut Random) -> Person {
    let metres = |random: &mut Random| (random.below(2_000_001) as f64 - 1_000_000.0) / 10_000.0;
    let [x, y, z] = core::array::from_fn(|_| metres(random));
    let id = "ü".repeat(random.below(31) as usize) + &random.below(1_000).to_string();
    let clock = random
        .chance(0.5)
        .then(|| format!("clock {}", random.below(400)));
    let mut extra = Map::new();
    if random.chance(0.3) {
        let text = "x".repeat(random.below(900) as usize);
        extra.insert("note".to_owned(), Value::from(text));
    }
    Person {
        id: id.chars().rev().take(40).collect(),
        x,
        y,
        z,
        at: NOW,
        clock,
        extra,
    }
}

/// Of any crowd that fits, with any clocks and fields, everybody arrives.
#[test]
fn nobody_is_lost() {
    let mut crowded = 0;
    for seed in 0..60 {
        let mut random = Random::from_seed(seed);
        let count = random.below(2_000) as usize;
        let mut crowd = Crowd::new(4_000);
        for number in 0..count {
            let person = any_person(&mut random);
            let id: String = person.id.chars().take(20).collect();
            let id = format!("{number} {id}");
            crowded += usize::from(crowd.put(NOW, Person { id, ..person }).is_err());
        }
        let people = crowd.people(NOW);
        let sample = encode(seed, &people).unwrap();
        assert!(sample.len() <= MAX_SAMPLE);
        let read = Sample::decode(&sample, people.len()).unwrap();
        assert_eq!((read.tick, read.people), (seed, people), "seed {seed}");
    }
    assert!(crowded > 100, "{crowded}");
}

#[test]
fn a_thousand_people_are_one_sample_of_at_most_60_octets_each() {
    let sample = encode(1, &walking(MAX_PEOPLE, NOW)).unwrap();
    assert!(sample.len() <= MAX_PEOPLE * PERSON_SIZE);
    assert!(encode(1, &walking(3_500, NOW)).is_ok());
    let many = encode(1, &walking(200_000, NOW)).unwrap_err().to_string();
    assert!(
        many.ends_with("octets of people: a tick has room for 320000"),
        "{many}"
    );
    // A million people in a sample are refused at the bound of the reader, and at that of a sample.
    let refused = Sample::decode(&vec![1; MAX_SAMPLE + 1], MAX_PEOPLE);
    assert!(refused.unwrap_err().to_string().contains("320001 octets"));
    let many = encode(1, &walking(2_000, NOW)).unwrap();
    let refused = Sample::decode(&many, MAX_PEOPLE).unwrap_err().to_string();
    assert_eq!(
        refused,
        "more than 1024 people are announced: watch with a higher --max-people"
    );
}

/// A crowd has room for what a sample has room for, as people come, change and leave.
#[test]
fn a_crowd_fits_a_sample() {
    let large = |id: usize| {
        let mut person = person(&format!("{id:03}"));
        person.extra.insert("n".to_owned(), "n".repeat(990).into());
        person
    };
    let mut crowd = Crowd::new(1_000);
    // Each takes 28 octets, and 998 of other fields.
    let refused = (0..400).filter(|id| crowd.put(NOW, large(*id)).is_err());
    assert_eq!(refused.count(), 400 - (MAX_SAMPLE - 11) / 1_026);
    assert!(encode(1, &crowd.people(NOW)).is_ok());
    assert!(crowd.put(NOW, large(0)).is_ok());
    assert!(crowd.put(NOW, person("000")).is_ok());
    assert!(crowd.put(NOW, large(399)).is_ok());
    assert!(crowd.put(NOW, large(0)).is_err());
    crowd.clear();
    assert!(crowd.put(NOW, large(399)).is_ok());
    let later = NOW + core::time::Duration::from_secs(2);
    assert!(crowd.people(later).is_empty());
    let refused = (0..400).filter(|id| crowd.put(later, large(*id)).is_err());
    assert_eq!(refused.count(), 400 - (MAX_SAMPLE - 11) / 1_026);
}

/// "Ann" has come 256 µs after 1970.
#[test]
fn a_hint_has_these_octets() {
    let hint = Hint {
        tick: 7,
        people: vec![("Ann".to_owned(), Timestamp::from_micros(256))],
    };
    let octets = "01 0000000000000007 03416e6e 0000000000000100".replace(' ', "");
    let octets = hex_decode(&octets).unwrap();
    assert_eq!(hint.encode().unwrap(), octets);
    assert_eq!(Hint::decode(&octets, 1).unwrap(), hint);
    let read = (0..=octets.len()).filter(|end| Hint::decode(&octets[..*end], 1).is_ok());
    assert_eq!(read.collect::<Vec<_>>(), [9, 21]);
    let refused = |octets: &[u8], most: usize| Hint::decode(octets, most).unwrap_err().to_string();
    assert!(refused(&octets, 0).starts_with("more than 0 people"));
    let without_id = [&octets[..9], &[0; 9]].concat();
    assert_eq!(refused(&without_id, 1), "id: 0 octets: expected 1 to 64");
    // As many as a sample has room for.
    let many = [&octets[..9], &octets[9..].repeat(26_665)].concat();
    assert!(refused(&many, MAX_PEOPLE).starts_with("more than 1024 people"));
    let more = [&many[..], &octets[9..]].concat();
    assert!(
        refused(&more, MAX_PEOPLE).starts_with("320001 octets"),
        "{}",
        refused(&more, MAX_PEOPLE)
    );
}

/// Ticks rise by at most 4096, until the publisher starts again.
#[test]
fn a_tick_from_the_future_is_refused() {
    let mut ticks = Ticks::default();
    assert!(ticks.handle_tick(100).is_ok());
    assert!(ticks.handle_tick(4_196).is_ok());
    for tick in [4_196, 1, 8_293, u64::MAX] {
        let refused = ticks.handle_tick(tick).unwrap_err().to_string();
        let expected = format!("tick {tick}: expected one of the 4096 ticks after 4196");
        assert_eq!(refused, expected);
    }
    assert!(ticks.handle_tick(4_197).is_ok());
    ticks.restart();
    assert!(ticks.handle_tick(1).is_ok());
}

#[test]
fn a_field_that_is_wrong_is_named() {
    let refused = |json: &str| {
        Person::from_json(json.as_bytes(), NOW)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(refused(r#"{"x":1,"y":2,"z":3}"#), "id: missing");
    assert_eq!(refused(r#"{"id":"a","x":1,"z":3}"#), "y: missing");
    assert!(refused(r#"{"id":"a","x":1,"y":NaN,"z":3}"#).starts_with("not JSON in y: "));
    assert!(refused(r#"{"id":"a","x":1,"y":1e400,"z":3}"#).starts_with("not JSON in y: "));
    assert_eq!(
        refused(r#"{"id":"a","x":1,"y":1e300,"z":3}"#),
        "y: 1e300: expected metres within ±100000"
    );
    assert!(refused(r#"{"id":"a","x":1,"y":2,"z":"inf"}"#).starts_with("z: expected metres"));
    assert!(refused(r#"{"id":"a","x":1,"y":2,"z":3,"at":-1}"#).starts_with("at: "));
    assert!(refused(r#"{"id":"a","x":1,"y":2,"z":3,"clock":7}"#).starts_with("clock: "));
    assert!(refused(r#"{"id":"a\n","x":1,"y":2,"z":3}"#).starts_with("id: has a control"));
    assert!(refused("[1]").starts_with("expected a JSON object"));
    let long = json!({ "id": "a".repeat(10_000), "x": 1, "y": 2, "z": 3 }).to_string();
    assert_eq!(refused(&long), "id: 10000 octets: expected 1 to 64");
    let much = json!({ "id": "a", "x": 1, "y": 2, "z": 3, "n": "n".repeat(1_000) }).to_string();
    assert!(
        refused(&much).starts_with("other fields: 1008 octets"),
        "{}",
        refused(&much)
    );
    let deep = format!(
        r#"{{"id":"a","x":1,"y":2,"z":3,"n":{}"#,
        "[".repeat(100_000)
    );
    assert!(refused(&deep).starts_with("not JSON"));
    for id in ["all", "hint"] {
        let json = json!({ "id": id, "x": 1, "y": 2, "z": 3 }).to_string();
        assert_eq!(Person::from_json(json.as_bytes(), NOW).unwrap().id, id);
    }
}

/// A line of JSON reads as the person who was written, without the tick. Numbers are ids, too.
#[test]
fn json_and_csv_have_all_fields() {
    let json = r#"{"id":3,"x":1.25,"y":-2,"z":0,"at":5,"clock":"c","age":4.5,"tick":1}"#;
    let person = Person::from_json(json.as_bytes(), NOW).unwrap();
    assert_eq!(
        (person.id.as_str(), person.at),
        ("3", Timestamp::from_micros(5))
    );
    let line = person.to_json(9);
    assert_eq!(Person::from_json(line.as_bytes(), NOW).unwrap(), person);
    let value: Value = serde_json::from_str(&line).unwrap();
    let expected = json!({ "tick": 9, "id": "3", "x": 1.25, "y": -2.0, "z": 0.0, "at": 5, "clock": "c", "age": 4.5 });
    assert_eq!(value, expected);
    let csv = person.to_csv(9);
    assert_eq!(csv, r#"9,3,1.25,-2,0,5,c,"{""age"":4.5}""#);
    assert_eq!(csv_header().split(',').count(), 8);
}

/// A bad line is named, and the others are read, however the octets are cut.
#[test]
fn a_bad_line_harms_no_other() {
    let good = |id| format!(r#"{{"id":"{id}","x":1,"y":2,"z":3}}"#);
    let long = "x".repeat(MAX_LINE + 100);
    let text = format!(
        "{}\n\n{{\"id\":\"b\",\"x\":1}}\r\n{long}\n{}",
        good("a"),
        good("c")
    );
    for step in [1, 7, 1_000, text.len()] {
        let mut lines = Lines::default();
        let chunks = text.as_bytes().chunks(step);
        let mut read: Vec<_> = chunks.flat_map(|chunk| lines.read(chunk, NOW)).collect();
        read.extend(lines.finish(NOW));
        let read = read.into_iter().map(|it| match it {
            Ok(person) => person.id,
            Err(error) => error.to_string(),
        });
        let expected = [
            "a",
            "line 3: y: missing",
            "line 4: more than 65536 octets",
            "c",
        ];
        assert_eq!(read.collect::<Vec<_>>(), expected, "{step}");
    }
}

fn frame(seq: u64, kind: &str, tracks: &[Value]) -> String {
    let header = json!({ "seq": seq, "stamp": { "sec": 1_700_000_000, "nsec": 5_000 } });
    json!({ "header": header, kind: tracks }).to_string()
}

#[test]
fn objects_of_one_seq_are_merged_and_empty_ones_dropped() {
    let track = json!({ "id": 3, "x": 1.5, "y": 2.0, "height": 1.8, "age": 4.2 });
    let joints = json!({ "CHEST": { "x": 1.4, "y": 2.1, "z": 1.3 } });
    let pose = json!({ "id": 3, "joints": joints, "name": "standing" });
    let both = [
        frame(7, "tracks", &[track]),
        frame(7, "pose_tracks", &[pose]),
    ];
    for order in [[0, 1], [1, 0]] {
        let mut reader = OpenPTrack::new(MAX_PEOPLE);
        let datagram = order.map(|at| both[at].clone()).concat();
        assert!(reader.handle_datagram(NOW, datagram.as_bytes()).is_empty());
        let people: Vec<_> = reader.people().cloned().collect();
        let [person] = &people[..] else {
            panic!("{people:?}")
        };
        assert_eq!(
            [person.x, person.y, person.z].map(|it| (it * 10.0) as i32),
            [15, 20, 18]
        );
        assert_eq!(person.at, Timestamp::from_micros(1_700_000_000_000_005));
        assert_eq!(person.clock.as_deref(), Some("openptrack"));
        let keys: Vec<_> = person.extra.keys().map(String::as_str).collect();
        assert_eq!(
            BTreeMap::from_iter(keys.iter().map(|it| (*it, ())))
                .into_keys()
                .collect::<Vec<_>>(),
            ["age", "joints", "name"]
        );
        let later = NOW + core::time::Duration::from_secs(1);
        reader.handle_datagram(later, frame(8, "tracks", &[]).as_bytes());
        assert_eq!((reader.people().count(), reader.empty()), (1, 1));
        assert_eq!(reader.arrived(), NOW);
    }
}

/// The people of the newest frame are what a twin finds that keeps all objects, and looks at those of the highest `seq` at the end.
#[test]
fn a_naive_twin_merges_alike() {
    for seed in 0..200 {
        let mut random = Random::from_seed(seed);
        let mut reader = OpenPTrack::new(MAX_PEOPLE);
        let mut all: Vec<(u64, bool, Vec<Value>)> = Vec::new();
        for _ in 0..random.below(30) {
            let mut datagram = String::new();
            for _ in 0..=random.below(2) {
                let seq = 100 + random.below(6);
                let has_position = random.chance(0.5);
                let kind = if has_position {
                    "tracks"
                } else {
                    "pose_tracks"
                };
                let tracks = (0..random.below(4)).map(|id| {
                    let place =
                        id as f64 + seq as f64 / 1_000.0 + f64::from(u8::from(has_position)) * 10.0;
                    json!({ "id": id, "x": place, "y": place, "z": place, kind: seq })
                });
                let tracks: Vec<_> = tracks.collect();
                datagram += &frame(seq, kind, &tracks);
                all.push((seq, has_position, tracks));
            }
            assert!(reader.handle_datagram(NOW, datagram.as_bytes()).is_empty());
        }
        let filled = all.iter().filter(|(.., tracks)| !tracks.is_empty());
        let newest = filled.map(|(seq, ..)| *seq).max();
        let mut twin = BTreeMap::<String, (f64, Vec<String>)>::new();
        for (_, has_position, tracks) in all.iter().filter(|(seq, ..)| Some(*seq) == newest) {
            for track in tracks {
                let entry = twin.entry(track["id"].to_string()).or_default();
                entry.0 = entry.0.max(track["x"].as_f64().unwrap());
                let kind = if *has_position {
                    "tracks"
                } else {
                    "pose_tracks"
                };
                entry.1.push(kind.to_owned());
                entry.1.sort();
                entry.1.dedup();
            }
        }
        let found = reader.people().map(|person| {
            let mut keys: Vec<_> = person.extra.keys().cloned().collect();
            keys.sort();
            (person.id.clone(), (person.x, keys))
        });
        assert_eq!(found.collect::<BTreeMap<_, _>>(), twin, "seed {seed}");
    }
}

#[test]
fn bad_datagrams_are_named_and_bounded() {
    let mut reader = OpenPTrack::new(2);
    let mut errors = |text: &str| {
        let errors = reader.handle_datagram(NOW, text.as_bytes()).into_iter();
        errors.map(|error| error.to_string()).collect::<Vec<_>>()
    };
    let track = |id: u64, x: Value| json!({ "id": id, "x": x, "y": 2, "height": 1.8 });
    let three = frame(7, "tracks", &[1, 2, 3].map(|id| track(id, 1.into())));
    assert!(errors(&three)[0].starts_with("id: 2 people are tracked"));
    let wrong = frame(8, "tracks", &[track(1, "far".into()), track(2, 1.into())]);
    assert!(errors(&wrong)[0].starts_with("x: expected metres"));
    assert_eq!(errors(r#"{"tracks":7}"#), ["tracks: expected an array"]);
    assert_eq!(
        errors(r#"{"tracks":[{}]}"#),
        ["header.seq: expected a number"]
    );
    assert!(errors(&"[".repeat(60_000))[0].starts_with("not JSON"));
    assert_eq!(
        errors(&" ".repeat(MAX_DATAGRAM + 1)),
        ["more than 65535 octets"]
    );
    // A restart begins with low numbers.
    assert!(errors(&frame(1_000, "tracks", &[track(1, 1.into())])).is_empty());
    assert!(errors(&frame(1, "tracks", &[track(2, 1.into())])).is_empty());
    let ids: Vec<_> = reader.people().map(|person| person.id.clone()).collect();
    assert_eq!(ids, ["2"]);
}

#[test]
fn people_leave_after_a_second_and_are_bounded() {
    let at = |millis: u64| NOW + core::time::Duration::from_millis(millis);
    let mut crowd = Crowd::new(2);
    crowd.put(at(0), person("a")).unwrap();
    crowd.put(at(600), person("b")).unwrap();
    assert!(crowd.put(at(1_000), person("c")).is_err());
    assert_eq!(crowd.people(at(1_000)).len(), 2);
    crowd.put(at(1_001), person("c")).unwrap();
    let ids: Vec<_> = crowd
        .people(at(1_001))
        .into_iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(ids, ["b", "c"]);
    crowd.clear();
    assert!(crowd.people(at(1_001)).is_empty());
}
