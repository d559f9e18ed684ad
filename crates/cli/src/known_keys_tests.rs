use std::collections::BTreeMap;

use namecast_units::Random;

use super::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn key(uri: &str, digest: u8) -> KnownKey {
    KnownKey {
        name: name(uri),
        digest: [digest; 32],
        since: Timestamp::from_micros(1_777_636_800_000_000),
    }
}

/// A file in a directory that ends with the test.
fn file() -> (tempfile::TempDir, KnownKeys) {
    let directory = tempfile::tempdir().unwrap();
    let keys = KnownKeys::new(Some(directory.path().join("data/known"))).unwrap();
    (directory, keys)
}

#[test]
fn the_first_key_of_a_name_stays_until_it_is_forgotten() {
    let (_directory, keys) = file();
    assert_eq!(keys.find(&name("/cam")).unwrap(), None);
    assert_eq!(keys.remember(key("/cam", 1)).unwrap(), key("/cam", 1));
    assert_eq!(keys.remember(key("/cam", 2)).unwrap(), key("/cam", 1));
    assert_eq!(keys.remember(key("/cam/b", 3)).unwrap(), key("/cam/b", 3));
    assert_eq!(keys.find(&name("/cam")).unwrap(), Some(key("/cam", 1)));
    assert_eq!(keys.forget(&name("/cam")).unwrap(), Some(key("/cam", 1)));
    assert_eq!(keys.forget(&name("/cam")).unwrap(), None);
    assert_eq!(keys.remember(key("/cam", 2)).unwrap(), key("/cam", 2));
    let replaced = keys.replace(key("/cam/b", 4)).unwrap();
    assert_eq!(replaced, Some(key("/cam/b", 3)));
    assert_eq!(keys.all().unwrap(), [key("/cam/b", 4), key("/cam", 2)]);
}

#[test]
fn comments_and_the_order_of_lines_stay() {
    let (_directory, keys) = file();
    keys.remember(key("/a", 1)).unwrap();
    let digest = "ab".repeat(32);
    let text = format!("# mine\n\n/b {digest} 2026-01-02\n  # indented\n/c\t{digest}   2026-01-03");
    fs::write(keys.path(), &text).unwrap();
    keys.remember(key("/d", 5)).unwrap();
    keys.forget(&name("/b")).unwrap();
    let left = text.replace(&format!("/b {digest} 2026-01-02\n"), "");
    let expected = format!("{left}\n{}\n", key("/d", 5).line());
    assert_eq!(fs::read_to_string(keys.path()).unwrap(), expected);
}

/// The file, the line and the problem are named, and not a byte of the file changes.
#[test]
fn a_bad_line_is_named_and_left_alone() {
    let digest = "ab".repeat(32);
    let long = "a".repeat(65);
    for (line, problem) in [
        ("/cam".to_owned(), "three fields"),
        (format!("/cam {digest} 2026-01-02 more"), "three fields"),
        (format!("/a=% {digest} 2026-01-02"), "no name"),
        (format!("/cam {} 2026-01-02", &digest[1..]), "no digest"),
        (format!("/cam {long} 2026-01-02"), "no digest"),
        (format!("/cam {} 2026-01-02", "é".repeat(32)), "no digest"),
        (format!("/cam {digest} yesterday"), "no date"),
        (
            format!("/x {digest} 2026-01-02"),
            "line 2 has a key of this name",
        ),
    ] {
        let (_directory, keys) = file();
        keys.remember(key("/first", 1)).unwrap();
        let text = format!("# mine\n/x {digest} 2026-01-01\n\n{line}\n");
        fs::write(keys.path(), &text).unwrap();
        let path = keys.path().display().to_string();
        let refused = |error: anyhow::Error| {
            let error = format!("{error:#}");
            assert!(error.contains(problem), "{line}: {error}");
            assert!(error.contains(&format!("{path}, line 4: ")), "{error}");
        };
        refused(keys.all().unwrap_err());
        refused(keys.remember(key("/new", 1)).unwrap_err());
        refused(keys.replace(key("/x", 1)).unwrap_err());
        refused(keys.forget(&name("/x")).unwrap_err());
        assert_eq!(fs::read_to_string(keys.path()).unwrap(), text);
    }
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let (_directory, keys) = file();
    keys.remember(key("/first", 1)).unwrap();
    fs::write(keys.path(), "#".repeat(MAX_FILE_SIZE as usize + 1)).unwrap();
    let error = keys.all().unwrap_err().to_string();
    assert!(error.contains("larger than 1048576 bytes"), "{error}");
    fs::write(keys.path(), "#".repeat(MAX_FILE_SIZE as usize - 1)).unwrap();
    let error = format!("{:#}", keys.remember(key("/b", 1)).unwrap_err());
    assert!(error.contains("would be larger"), "{error}");
}

#[test]
fn the_number_of_keys_is_bounded() {
    let (_directory, keys) = file();
    let line = |index| key(&format!("/cam/{index}"), 1).line() + "\n";
    keys.remember(key("/first", 1)).unwrap();
    let full: String = (0..MAX_KEYS).map(line).collect();
    fs::write(keys.path(), full).unwrap();
    let error = keys.remember(key("/one/more", 1)).unwrap_err().to_string();
    assert!(error.contains("namecast key forget"), "{error}");
    assert_eq!(keys.all().unwrap().len(), MAX_KEYS);
    assert!(keys.forget(&name("/cam/7")).unwrap().is_some());
    keys.remember(key("/one/more", 1)).unwrap();
}

/// A file that cannot be replaced is left as it is, and no draft stays.
#[test]
fn a_failed_write_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known");
    fs::create_dir(&path).unwrap();
    let keys = KnownKeys::new(Some(path)).unwrap();
    assert!(keys.remember(key("/cam", 1)).is_err());
    let left = fs::read_dir(directory.path()).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["known", "known.lock"]);
}

#[test]
fn what_a_link_leads_to_is_changed() {
    let (directory, keys) = file();
    keys.remember(key("/cam", 1)).unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(keys.path(), &link).unwrap();
    let linked = KnownKeys::new(Some(link.clone())).unwrap();
    linked.remember(key("/b", 2)).unwrap();
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
    assert_eq!(keys.all().unwrap().len(), 2);
}

/// Against a map: whatever is remembered, replaced and forgotten in whatever order, also with a file opened anew each time.
#[test]
fn it_is_a_map_on_disk() {
    let mut random = Random::from_seed(11);
    for _ in 0..20 {
        let (_directory, keys) = file();
        let mut model = BTreeMap::new();
        for _ in 0..40 {
            let keys = KnownKeys::new(Some(keys.path().to_owned())).unwrap();
            let new = key(&format!("/{}", random.below(6)), random.below(250) as u8);
            match random.below(4) {
                0 | 1 => {
                    let kept = model.entry(new.name.clone()).or_insert_with(|| new.clone());
                    assert_eq!(keys.remember(new).unwrap(), *kept);
                }
                2 => {
                    let old = model.insert(new.name.clone(), new.clone());
                    assert_eq!(keys.replace(new).unwrap(), old);
                }
                _ => assert_eq!(keys.forget(&new.name).unwrap(), model.remove(&new.name)),
            }
            let mut all = keys.all().unwrap();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            assert_eq!(all, model.values().cloned().collect::<Vec<_>>());
        }
    }
}

/// Eight writers at once, each with names of its own and one that all share: nothing is lost, nothing is there twice, and all
/// agree about the shared one. Whoever reads meanwhile finds a whole file.
#[test]
fn writers_at_the_same_time_lose_and_double_nothing() {
    let (_directory, keys) = file();
    let keys = &keys;
    let shared: Vec<_> = std::thread::scope(|scope| {
        let write = |writer: u8| {
            for number in 0..12 {
                keys.remember(key(&format!("/{writer}/{number}"), writer))
                    .unwrap();
                keys.all().unwrap();
            }
            keys.forget(&name(&format!("/{writer}/0"))).unwrap();
            keys.remember(key("/shared", writer)).unwrap()
        };
        let writers: Vec<_> = (0..8)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    assert!(shared.iter().all(|key| *key == shared[0]), "{shared:?}");
    let mut names: Vec<_> = keys.all().unwrap();
    names.sort_by(|a, b| a.name.cmp(&b.name));
    names.dedup_by(|a, b| a.name == b.name);
    assert_eq!(names.len(), 8 * 11 + 1);
}
