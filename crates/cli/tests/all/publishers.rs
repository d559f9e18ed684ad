//! The real command: two publishers of one name.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::program::{Program, command, home, start_forwarder, until};

/// A publisher whose complaints can be read.
fn publish(home: &Path, face: &str, more: &str) -> Program {
    let line = format!("publish /test --quiet --input test --ladder 200k --connect {face} {more}");
    let mut command = command(home, &line);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    Program(command.spawn().unwrap())
}

/// Waits until a publisher answers, by a challenge, which nobody else can answer.
fn until_published(home: &Path, face: &str) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    until("publisher", || {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let peek = format!("peek /test/32=metadata/{number:016x} --lifetime 1s --connect {face}");
        let answered = command(home, &peek).output().unwrap();
        answered.status.success().then_some(())
    });
}

/// Waits until a publisher ends, and returns why.
fn refusal(publisher: &mut Program) -> String {
    let process: &mut Child = &mut publisher.0;
    let status = until("end", || process.try_wait().unwrap());
    let mut text = String::new();
    let mut errors = process.stderr.take().unwrap();
    errors.read_to_string(&mut text).unwrap();
    assert_eq!(status.code(), Some(1), "{text}");
    text
}

fn lives(publisher: &mut Program) -> bool {
    publisher.0.try_wait().unwrap().is_none()
}

/// Another user and the same one are refused while the first publisher lives, and it does not notice. Once it is killed nobody has
/// the name, and an archive is nobody.
#[test]
fn a_second_publisher_is_refused_until_the_first_one_has_died() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| home(directory.path(), name));
    let (_forwarder, face) = start_forwarder(&first);
    let archive = format!("archive /test --quiet --store kept --connect {face}");
    let _archive = Program::start(&first, &archive);
    let mut publisher = publish(&first, &face, "");
    until_published(&first, &face);
    for (home, words) in [
        (&second, "add --take-over"),
        (&first, "the key that is used here"),
    ] {
        let text = refusal(&mut publish(home, &face, ""));
        let is_published = "/test is published already (key /test/KEY/";
        assert!(
            text.contains(is_published) && text.contains(words),
            "{text}"
        );
    }
    assert!(lives(&mut publisher));
    publisher.kill();
    let mut publisher = publish(&first, &face, "");
    until_published(&first, &face);
    assert!(lives(&mut publisher));
}

/// The publisher with `--take-over` stays, and the first publisher reports that and exits.
#[test]
fn a_name_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| home(directory.path(), name));
    let (_forwarder, face) = start_forwarder(&first);
    let mut publisher = publish(&first, &face, "");
    until_published(&first, &face);
    let mut next = publish(&second, &face, "--take-over");
    let text = refusal(&mut publisher);
    let sentence = "/test was taken over by another publisher (key /test/KEY/";
    assert!(text.contains(sentence), "{text}");
    until_published(&second, &face);
    assert!(lives(&mut next));
}

/// One of two publishers that start at once stays.
#[test]
fn of_two_publishers_that_start_at_once_one_stays() {
    let directory = tempfile::tempdir().unwrap();
    let homes = ["first", "second"].map(|name| home(directory.path(), name));
    let (_forwarder, face) = start_forwarder(&homes[0]);
    let mut both = homes.map(|home| publish(&home, &face, ""));
    let ended = until("end of one", || both.iter_mut().position(|it| !lives(it)));
    let text = refusal(&mut both[ended]);
    assert!(text.contains("published already"), "{text}");
    until_published(directory.path(), &face);
    assert!(lives(&mut both[1 - ended]));
}
