//! Positions of people, published and watched by real processes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Program, command, home, newest_stats, start_forwarder, until};

fn people(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.lines().map(serde_json::from_str);
    whole.filter_map(Result::ok).collect()
}

/// Starts a command whose lines go to `output`.
fn start(home: &Path, arguments: &str, output: impl Into<Stdio>) -> Program {
    let mut command = command(home, arguments);
    Program(command.stdout(output).spawn().unwrap())
}

/// Each tick that arrives has all hundred people, and ticks are in order.
#[test]
fn a_hundred_people_arrive_tick_by_tick() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let [here, there] = ["here", "there"].map(|name| home(directory.path(), name));
    let line = format!("tracks publish /stage --generate 100 --connect {face}");
    let _publisher = start(&here, &line, Stdio::null());
    let seen = there.join("seen.json");
    let line = format!("tracks watch /stage --connect {face}");
    let watcher = start(&there, &line, fs::File::create(&seen).unwrap());
    until("a second of ticks", || {
        (people(&seen).len() > 6_000).then_some(())
    });
    drop(watcher);
    let mut ticks = Vec::<(u64, Vec<String>)>::new();
    for person in people(&seen) {
        let tick = person["tick"].as_u64().unwrap();
        let id = person["id"].as_str().unwrap().to_owned();
        match ticks.last_mut() {
            Some((last, ids)) if *last == tick => ids.push(id),
            _ => ticks.push((tick, vec![id])),
        }
    }
    assert!(ticks.is_sorted_by(|(one, _), (next, _)| one < next));
    // The watcher was killed, perhaps within the last one.
    ticks.pop();
    for (tick, mut ids) in ticks {
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 100, "tick {tick}");
    }
}

/// A line that is wrong is named, and harms no other; a watcher prints one person as CSV.
#[test]
fn a_bad_line_is_named_and_the_others_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let [here, there] = ["here", "there"].map(|name| home(directory.path(), name));
    let line = format!("tracks publish /stage --rate 20 --connect {face}");
    let errors = here.join("errors");
    let mut publisher = command(&here, &line);
    let publisher = publisher.stdin(Stdio::piped()).stdout(Stdio::null());
    let publisher = publisher.stderr(fs::File::create(&errors).unwrap());
    let mut publisher = Program(publisher.spawn().unwrap());
    let seen = there.join("seen.csv");
    let line = format!("tracks watch /stage --id ann --format csv --connect {face}");
    let _watcher = start(&there, &line, fs::File::create(&seen).unwrap());
    let read = || fs::read_to_string(&seen).unwrap_or_default();
    until("Ann's lines", || {
        let input = publisher.0.stdin.as_mut().unwrap();
        let lines = concat!(
            r#"{"id":"ann","x":1.5,"y":-2,"z":0,"at":7}"#,
            "\n",
            r#"{"id":"ann","x":1.5,"y":"far","z":0}"#,
            "\n",
            r#"{"id":"bob","x":1,"y":1,"z":0}"#,
            "\n",
        );
        input.write_all(lines.as_bytes()).unwrap();
        (read().lines().count() > 3).then_some(())
    });
    let lines = read();
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("tick,id,x,y,z,at,clock,extra"));
    let line = lines.next().unwrap().split_once(',').unwrap().1;
    assert_eq!(line, "ann,1.5,-2,0,7,,");
    assert!(!read().contains("bob"));
    let errors = fs::read_to_string(errors).unwrap();
    assert!(errors.contains("line 2: y: expected metres"), "{errors}");
}

/// People of two publishers are told apart, and each line has its tick and a clock.
#[test]
fn several_publishers_are_merged() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let [one, two, there] = ["one", "two", "there"].map(|name| home(directory.path(), name));
    let publish = |home: &Path, name: &str| {
        let line = format!("tracks publish {name} --generate 2 --rate 20 --connect {face}");
        start(home, &line, Stdio::null())
    };
    let _publishers = [publish(&one, "/stage"), publish(&two, "/foyer")];
    let seen = there.join("seen.json");
    let line = format!("tracks watch /stage /foyer --id person-2 --connect {face}");
    let _watcher = start(&there, &line, fs::File::create(&seen).unwrap());
    let ids = ["/foyer/person-2", "/stage/person-2"];
    let seen = until("ten ticks of each", || {
        let people = people(&seen);
        let count = |id: &str| people.iter().filter(|it| it["id"] == id).count();
        ids.iter().all(|id| count(id) >= 10).then_some(people)
    });
    let mut newest = BTreeMap::new();
    for person in seen {
        let id = person["id"].as_str().unwrap().to_owned();
        let name = id.strip_suffix("/person-2").expect("nobody else");
        assert_eq!(person["clock"], name);
        let tick = person["tick"].as_u64().unwrap();
        assert!(newest.insert(id, tick).is_none_or(|before| before < tick));
    }
    // Ticks are common: within a minute, however busy the machine is.
    let ticks: Vec<u64> = newest.into_values().collect();
    assert!(ticks[0].abs_diff(ticks[1]) <= 1_200, "{ticks:?}");
}

/// OpenPTrack's tracks and poses of one `seq`, in two datagrams, are one person.
#[test]
fn openptrack_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let [here, there] = ["here", "there"].map(|name| home(directory.path(), name));
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let line = format!("tracks publish /stage --openptrack {address} --connect {face}");
    let _publisher = start(&here, &line, Stdio::null());
    let seen = there.join("seen.json");
    let line = format!("tracks watch /stage --connect {face}");
    let _watcher = start(&there, &line, fs::File::create(&seen).unwrap());
    let camera = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut seq = 0;
    let person = until("a person with a pose", || {
        seq += 1;
        let header = format!(r#"{{"header":{{"seq":{seq}}}"#);
        let track = r#""tracks":[{"id":3,"x":1.5,"y":2,"height":1.75}]}"#;
        let pose = r#""pose_tracks":[{"id":3,"joints":{"CHEST":{"x":9,"y":9,"z":9}}}]}"#;
        for part in [track, pose] {
            // Nobody may listen yet.
            let _ = camera.send_to(format!("{header},{part}").as_bytes(), address);
        }
        let mut people = people(&seen).into_iter();
        people.find(|person| person["joints"].is_object())
    });
    let fields = ["id", "x", "y", "z"].map(|field| (field, person[field].clone()));
    let expected = [
        ("id", "3".into()),
        ("x", 1.5.into()),
        ("y", 2.0.into()),
        ("z", 1.75.into()),
    ];
    assert_eq!(BTreeMap::from(fields), BTreeMap::from(expected));
}

/// Each of two people is watched alone, though one is called as a keyword is, and the list has everybody.
#[test]
fn one_person_is_watched_and_everybody_listed() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let [here, there] = ["here", "there"].map(|name| home(directory.path(), name));
    let line = format!("tracks publish /stage --rate 20 --connect {face}");
    let mut publisher = command(&here, &line);
    let publisher = publisher.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut publisher = Program(publisher.spawn().unwrap());
    let seen = there.join("seen.json");
    let line = format!("tracks watch /stage --id all --rate 10 --connect {face}");
    let _watcher = start(&there, &line, fs::File::create(&seen).unwrap());
    let list = there.join("list.json");
    let line = format!("tracks list /stage --connect {face}");
    let mut listing = None;
    let seen = until("ten ticks, and a list", || {
        let input = publisher.0.stdin.as_mut().unwrap();
        for id in ["all", "ann", "hint"] {
            writeln!(input, r#"{{"id":"{id}","x":1,"y":2,"z":3}}"#).unwrap();
        }
        let seen = people(&seen);
        if seen.is_empty() {
            return None;
        }
        let output = || fs::File::create(&list).unwrap();
        let listing = listing.get_or_insert_with(|| start(&there, &line, output()));
        let has_ended = listing.0.try_wait().unwrap().is_some();
        (seen.len() >= 10 && has_ended).then_some(seen)
    });
    assert!(seen.iter().all(|person| person["id"] == "all"));
    let ticks: Vec<_> = seen.iter().map(|it| it["tick"].as_u64().unwrap()).collect();
    assert!(ticks.iter().all(|tick| tick.is_multiple_of(2)), "{ticks:?}");
    let listed = people(&list);
    let ids: Vec<_> = listed.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["all", "ann", "hint"]);
    assert!(listed.iter().all(|it| it["since"].as_u64().is_some()));
}

/// What was seen live is replayed from an archive at eight times the speed, tick by tick in the same order, though the publisher is gone.
#[test]
fn an_archive_replays_what_was_seen() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let [here, kept, there] = ["here", "kept", "there"].map(|name| home(directory.path(), name));
    let line = format!("tracks publish /stage --generate 5 --rate 30 --connect {face}");
    let mut publisher = start(&here, &line, Stdio::null());
    let line = format!("archive /stage --quiet --store kept --stats stats.json --connect {face}");
    let _archive = start(&kept, &line, Stdio::null());
    let samples = || newest_stats(&kept.join("stats.json"))?["samples"].as_u64();
    until("the archive", || (samples() >= Some(1)).then_some(()));
    let seen = there.join("seen.json");
    let line = format!("tracks watch /stage --connect {face}");
    let mut watcher = start(&there, &line, fs::File::create(&seen).unwrap());
    until("eight seconds", || {
        (people(&seen).len() >= 1_200).then_some(())
    });
    watcher.kill();
    let before = samples();
    until("later seconds in the archive", || {
        (samples() >= before.map(|it| it + 90)).then_some(())
    });
    publisher.kill();
    let seen = people(&seen);
    // The last line may be cut, and its tick be incomplete.
    let seen = &seen[..seen.len() - seen.len() % 5 - 5];
    let from = seen[0]["at"].as_f64().unwrap() / 1e6;
    let again = there.join("again.json");
    let line = format!("tracks watch /stage --from {from:.6} --speed 8 --connect {face}");
    let _again = start(&there, &line, fs::File::create(&again).unwrap());
    let again = until("the same ticks", || {
        let again = people(&again);
        // Playback begins with the last sample before that time.
        let start = again.iter().position(|it| it["tick"] == seen[0]["tick"])?;
        (again.len() - start >= seen.len()).then(|| again[start..start + seen.len()].to_vec())
    });
    // The watcher may have skipped a tick; the archive has all.
    let ticks: Vec<_> = seen.iter().map(|it| &it["tick"]).collect();
    let again: Vec<_> = again
        .iter()
        .filter(|it| ticks.contains(&&it["tick"]))
        .collect();
    let seen: Vec<_> = seen.iter().take(again.len()).collect();
    assert!(again.len() >= 1_000, "{}", again.len());
    assert_eq!(again, seen);
}
