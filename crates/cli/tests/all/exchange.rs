//! Two people's files cross through a forwarder; what was interrupted goes on; other keys are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use crate::program::{command, newest_stats, start_bundling_forwarder, start_forwarder, until};

/// Octets that differ everywhere.
fn content(size: u32, seed: u32) -> Vec<u8> {
    (0..size)
        .map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8)
        .collect()
}

/// Somebody's home, with a file to give and a directory for what comes.
fn home(of: &Path, name: &str, file: &[u8]) -> PathBuf {
    let home = of.join(name);
    fs::create_dir_all(home.join("into")).unwrap();
    fs::write(home.join(format!("{name}.bin")), file).unwrap();
    home
}

fn start(home: &Path, arguments: &str) -> Child {
    let mut command = command(
        home,
        &format!("exchange {arguments} --into into --stats stats"),
    );
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn two_files_cross() {
    let directory = tempfile::tempdir().unwrap();
    let (_plain, face) = start_forwarder(directory.path());
    let files = [content(3_000_000, 1), content(2_000_001, 2)];
    let alice = home(directory.path(), "alice", &files[0]);
    let bob = home(directory.path(), "bob", &files[1]);
    let (_bundling, other) = start_bundling_forwarder(directory.path());
    for (face, flag) in [(&other, ""), (&other, "--no-bundle"), (&face, "")] {
        let at = format!("--connect {face} --duration 60s {flag}");
        let ends = [
            start(&alice, &format!("/alice /bob alice.bin {at}")),
            start(&bob, &format!("/bob /alice bob.bin {at}")),
        ];
        for end in ends {
            let output = end.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", text(&output));
            assert!(text(&output).contains("verified"), "{}", text(&output));
        }
        assert!(fs::read(alice.join("into/bob.bin")).unwrap() == files[1]);
        assert!(fs::read(bob.join("into/alice.bin")).unwrap() == files[0]);
        fs::remove_file(bob.join("into/alice.bin")).unwrap();
    }
    let stats = newest_stats(&alice.join("stats")).unwrap();
    assert_eq!(stats["final"], true);
    assert_eq!(stats["bytes_received"], 2_000_001);
    // Somebody else under Bob's name: the key is another.
    let at = format!("--connect {face} --duration 5s");
    let mallory = home(directory.path(), "mallory", b"evil");
    let ends = [
        start(&mallory, &format!("/bob /alice mallory.bin {at}")),
        start(&alice, &format!("/alice /bob alice.bin {at}")),
    ];
    let [_, output] = ends.map(|end| end.wait_with_output().unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("namecast key forget /bob"),
        "{}",
        text(&output)
    );
    assert!(!alice.join("into/mallory.bin").exists());
}

/// The taker is killed while the file comes; started again, it has the rest only.
#[test]
fn what_was_killed_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_forwarder(directory.path());
    let file = content(20_000_000, 3);
    let alice = home(directory.path(), "alice", &file);
    let bob = home(directory.path(), "bob", b"");
    let at = format!("--connect {face} --duration 120s");
    let giver = start(&alice, &format!("/alice /bob alice.bin {at}"));
    let mut taker = start(&bob, &format!("/bob /alice {at}"));
    let part = until("part of a file", || {
        let mut entries = fs::read_dir(bob.join("into")).unwrap().flatten();
        let size = entries.next()?.metadata().ok()?.len();
        (size > 500_000).then_some(size)
    });
    taker.kill().unwrap();
    taker.wait().unwrap();
    assert!(part < 20_000_000, "it was still coming");
    let taker = start(&bob, &format!("/bob /alice {at}"));
    for end in [taker, giver] {
        let output = end.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        eprintln!("{}", text(&output));
    }
    assert!(fs::read(bob.join("into/alice.bin")).unwrap() == file);
}
