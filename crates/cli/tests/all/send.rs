//! Files go from one sender to receivers that come and go, are killed and go on, through forwarders with and without the hop `any-next`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use crate::program::{Program, command, home, newest_stats, start_forwarder_with, until};

/// Octets that differ everywhere.
fn content(size: u32, seed: u32) -> Vec<u8> {
    (0..size)
        .map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8)
        .collect()
}

/// A forwarder with a configuration, and the face that programs connect to.
fn start_configured_forwarder(home: &Path, hops: &str, more: &str) -> (Program, String) {
    start_forwarder_at(home, "127.0.0.1:0", (hops, more))
}

fn start_forwarder_at(home: &Path, tcp: &str, (hops, more): (&str, &str)) -> (Program, String) {
    let config = home.join("forwarder.toml");
    let listen = format!("listen = {{ udp = [], tcp = [\"{tcp}\"], unix = [] }}");
    fs::write(&config, format!("hops = [{hops}]\n{listen}\n{more}")).unwrap();
    let arguments = format!("--config {}", config.display());
    let (forwarder, [face]) = start_forwarder_with(home, &arguments);
    (forwarder, face)
}

/// One that counts requests for any next packets.
fn start_counting_forwarder(home: &Path) -> (Program, String) {
    start_configured_forwarder(home, "\"any-next\"", "")
}

/// One that requests everything from another.
fn start_near_forwarder(home: &Path, hops: &str, far: &str) -> (Program, String) {
    let far = format!("[[face]]\nuri = \"{far}\"\n[[route]]\nprefix = \"/\"\nface = \"{far}\"\n");
    start_configured_forwarder(home, hops, &far)
}

fn start(home: &Path, arguments: &str) -> Child {
    let mut command = command(home, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for a program that is to succeed. Returns what it said.
fn succeed(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}

/// Waits for a program that is to fail. Returns why it did.
fn fail(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    text(&output)
}

/// A sender's home with a file of `size`.
fn sender(of: &Path, size: u32) -> (PathBuf, Vec<u8>) {
    let (home, content) = (home(of, "alice"), content(size, 1));
    fs::write(home.join("file"), &content).unwrap();
    (home, content)
}

/// Two receivers at once, one late, one that prints to standard output; then the sender ends as three have all, and sent little more
/// than the file.
#[test]
fn receivers_share_one_flow() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_counting_forwarder(directory.path());
    let (alice, content) = sender(directory.path(), 3_000_000);
    let at = format!("--connect {face} --duration 120s");
    let sending = start(
        &alice,
        &format!("send file /alice/film --until 3 --stats stats {at}"),
    );
    let receivers = ["bob", "carol"].map(|name| home(directory.path(), name));
    let receive = format!("receive /alice/film --stats stats {at}");
    let receiving = receivers.each_ref().map(|home| start(home, &receive));
    let said = receiving.map(succeed);
    for (home, said) in receivers.iter().zip(&said) {
        assert!(
            said.contains("Received") && said.contains("verified"),
            "{said}"
        );
        assert!(fs::read(home.join("file")).unwrap() == content);
        let stats = newest_stats(&home.join("stats")).unwrap();
        assert_eq!(stats["forged"], 0, "{stats}");
        assert!(stats["received_any_next"].as_u64().unwrap() > 0, "{stats}");
    }
    // Files that are complete are not received again.
    let again = succeed(start(&receivers[0], &receive));
    assert!(again.contains("is here already"), "{again}");
    let dave = home(directory.path(), "dave");
    let printed = start(&dave, &format!("receive /alice/film --output - {at}"));
    let printed = printed.wait_with_output().unwrap();
    assert!(printed.status.success(), "{}", text(&printed));
    assert!(printed.stdout == content);
    succeed(sending);
    let stats = newest_stats(&alice.join("stats")).unwrap();
    assert_eq!(stats["complete"], 3, "{stats}");
}

/// Returns once a receiver has some segments and knows so after a restart.
fn until_a_part_came(home: &Path) {
    until("a part of the file", || {
        let stats = newest_stats(&home.join("stats"))?;
        (stats["received"].as_u64()? > 0).then_some(())
    });
    assert!(!home.join("file").exists(), "it was still coming");
}

/// Either end is killed in mid-object, behind two forwarders: what came before is not received again.
#[test]
fn what_was_killed_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (_far, far) = start_counting_forwarder(directory.path());
    let (_near, near) = start_near_forwarder(&home(directory.path(), "near"), "\"any-next\"", &far);
    let (alice, content) = sender(directory.path(), 30_000_000);
    let [bob, carol] = ["bob", "carol"].map(|name| home(directory.path(), name));
    let send = format!("send file /alice/film --policy 40M --connect {far} --duration 300s");
    let receive = format!("receive /alice/film --stats stats --connect {near} --duration 300s");
    let mut sending = Program(start(&alice, &send));
    let receiving = start(&bob, &receive);
    until_a_part_came(&bob);
    sending.kill();
    let sending = start(&alice, &format!("{send} --until 2"));
    succeed(receiving);
    let mut receiving = Program(start(&carol, &receive));
    until_a_part_came(&carol);
    receiving.kill();
    let said = succeed(start(&carol, &receive));
    assert!(said.contains("segments are here"), "{said}");
    succeed(sending);
    for home in [bob, carol] {
        assert!(fs::read(home.join("file")).unwrap() == content);
        let mut entries = fs::read_dir(&home).unwrap().flatten();
        let part = entries.find(|it| it.file_name().to_str().unwrap().starts_with(".namecast-"));
        assert!(part.is_none(), "nothing else is left");
    }
}

/// A forwarder is killed in mid-object and started again, with two threads: sender and receiver find it, and go on.
#[test]
fn a_forwarder_that_is_started_again_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (mut forwarder, face) = start_counting_forwarder(directory.path());
    let (alice, content) = sender(directory.path(), 10_000_000);
    let bob = home(directory.path(), "bob");
    let at = format!("--connect {face} --duration 120s");
    let sending = start(
        &alice,
        &format!("send file /alice/film --policy 20M --until 1 {at}"),
    );
    let receiving = start(&bob, &format!("receive /alice/film --stats stats {at}"));
    until_a_part_came(&bob);
    forwarder.kill();
    let tcp = face.trim_start_matches("tcp4://");
    let settings = ("\"any-next\"", "threads = 2\n");
    let (_forwarder, again) = start_forwarder_at(directory.path(), tcp, settings);
    assert_eq!(again, face);
    succeed(receiving);
    succeed(sending);
    assert!(fs::read(bob.join("file")).unwrap() == content);
}

/// Who joins late gets of a neighbour what it missed, while the rest comes as any next: the sender makes no parity, and sends little
/// more than the file.
#[test]
fn a_late_receiver_gets_of_another_what_it_missed() {
    let directory = tempfile::tempdir().unwrap();
    let store = "[content-store]\ncapacity = \"80 KiB\"\n";
    let (_forwarder, face) = start_configured_forwarder(directory.path(), "\"any-next\"", store);
    let (alice, content) = sender(directory.path(), 12_000_000);
    let [bob, carol] = ["bob", "carol"].map(|name| home(directory.path(), name));
    let at = format!("--connect {face} --duration 120s");
    let sending = start(
        &alice,
        &format!("send file /alice/film --policy 8M --until 2 --stats stats {at}"),
    );
    let receive = format!("receive /alice/film --stats stats {at}");
    let early = start(&bob, &format!("{receive} --stay 5s"));
    until("a tenth of the file", || {
        let stats = newest_stats(&bob.join("stats"))?;
        (stats["received"].as_u64()? > 300).then_some(())
    });
    let late = start(&carol, &receive);
    succeed(late);
    succeed(sending);
    assert!(fs::read(carol.join("file")).unwrap() == content);
    let stats = newest_stats(&carol.join("stats")).unwrap();
    let from_neighbours = stats["received_from_neighbours"].as_u64().unwrap();
    assert!(from_neighbours >= 100, "{stats}");
    let stats = newest_stats(&alice.join("stats")).unwrap();
    let sent = |what: &str| stats[what].as_u64().unwrap();
    assert!(sent("provided") + sent("answered") < 4_000, "{stats}");
    succeed(early);
    let stats = newest_stats(&bob.join("stats")).unwrap();
    assert!(stats["served"].as_u64().unwrap() >= 100, "{stats}");
    assert!(fs::read(bob.join("file")).unwrap() == content);
    let mut entries = fs::read_dir(&bob).unwrap().flatten();
    let part = entries.find(|it| it.file_name().to_str().unwrap().starts_with(".namecast-"));
    assert!(part.is_none(), "nothing else is left");
}

/// Where a forwarder on the path counts nothing, segments are requested by name.
#[test]
fn forwarders_need_not_have_the_hop() {
    let directory = tempfile::tempdir().unwrap();
    let (_far, far) = start_counting_forwarder(directory.path());
    let (_near, near) = start_near_forwarder(&home(directory.path(), "near"), "", &far);
    let (alice, content) = sender(directory.path(), 1_000_000);
    let _sending = Program(start(
        &alice,
        &format!("send file /alice/film --connect {far}"),
    ));
    let bob = home(directory.path(), "bob");
    let at = format!("--connect {near} --duration 60s");
    succeed(start(
        &bob,
        &format!("receive /alice/film --stats stats {at}"),
    ));
    assert!(fs::read(bob.join("file")).unwrap() == content);
    let stats = newest_stats(&bob.join("stats")).unwrap();
    assert_eq!(
        (&stats["received_any_next"], &stats["received"]),
        (&0.into(), &265.into())
    );
}

/// A directory comes as it was, private and through a ticket only; other files are left alone.
#[test]
fn directories_and_tickets() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_counting_forwarder(directory.path());
    let alice = home(directory.path(), "alice");
    fs::create_dir_all(alice.join("photos/more")).unwrap();
    let files = [
        ("photos/a", 10_000),
        ("photos/more/b", 100_000),
        ("photos/empty", 0),
    ];
    for (path, size) in files {
        fs::write(alice.join(path), content(size, size)).unwrap();
    }
    let at = format!("--connect {face} --duration 60s");
    let send = format!("send photos /alice/photos --private --json {at}");
    let mut sending = Program(start(&alice, &send));
    // A sender whose reader has left ends.
    let mut printed = sending.lines();
    let about = printed.next().unwrap();
    let ticket = about["ticket"].as_str().unwrap().to_owned();
    assert!(ticket.starts_with("/alice/photos#"), "{ticket}");
    let bob = home(directory.path(), "bob");
    let without = fail(start(&bob, &format!("receive /alice/photos {at}")));
    assert!(without.contains("it is private"), "{without}");
    fs::create_dir(bob.join("photos")).unwrap();
    fs::write(bob.join("photos/a"), "mine").unwrap();
    let refused = fail(start(&bob, &format!("receive {ticket} {at}")));
    assert!(refused.contains("photos/a is there already"), "{refused}");
    fs::create_dir(bob.join("into")).unwrap();
    succeed(start(&bob, &format!("receive {ticket} --into into {at}")));
    for (path, size) in files {
        assert!(
            fs::read(bob.join("into").join(path)).unwrap() == content(size, size),
            "{path}"
        );
    }
    assert_eq!(fs::read(bob.join("photos/a")).unwrap(), b"mine");
    let send = format!("send photos/../photos/a photos/a /alice/twice {at}");
    let twice = fail(start(&alice, &send));
    assert!(twice.contains("in the table twice"), "{twice}");
}

/// A full disk and a file that changes end a command with a sentence.
#[test]
fn full_disks_and_changed_files_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let (_forwarder, face) = start_counting_forwarder(directory.path());
    let (alice, _) = sender(directory.path(), 20_000_000);
    let at = format!("--connect {face} --duration 120s");
    let sending = start(&alice, &format!("send file /alice/film --policy 20M {at}"));
    let bob = home(directory.path(), "bob");
    let mut full = command(&bob, &format!("receive /alice/film --output - {at}"));
    let full = full.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
    let full = full.stderr(Stdio::piped()).spawn().unwrap();
    let full = fail(full);
    assert!(full.contains("No space left on device"), "{full}");
    let receiving = start(&bob, &format!("receive /alice/film {at}"));
    until("a part of the file", || {
        let mut entries = fs::read_dir(&bob).unwrap().flatten();
        entries.find(|it| it.file_name().to_str().unwrap().starts_with(".namecast-"))
    });
    // In place, so that what is open changes, too.
    fs::write(alice.join("file"), content(20_000_000, 2)).unwrap();
    let changed = fail(sending);
    assert!(
        changed.contains("has changed while it was sent"),
        "{changed}"
    );
    // Whoever sends it again sends another version.
    let _sending = Program(start(&alice, &format!("send file /alice/film {at}")));
    let gone = fail(receiving);
    assert!(gone.contains("does not offer this version"), "{gone}");
}
