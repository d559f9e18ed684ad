//! The real command: trust schemas are compiled and checked, and rooms have members, strangers and revocations.

use std::path::Path;
use std::process::Output;

use crate::program::{Program, command, home, start_forwarder, start_forwarder_with, until};
use namecast_net::Clock;
use serde_json::{Value, json};

fn run(home: &Path, arguments: &str) -> Output {
    command(home, arguments).current_dir(home).output().unwrap()
}

fn printed(home: &Path, arguments: &str) -> Vec<u8> {
    let output = run(home, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {error}");
    output.stdout
}

/// The standard error of a command that ends with 1.
fn refused(home: &Path, arguments: &str) -> String {
    let output = run(home, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_template_compiles_and_is_checked_as_text_and_compiled() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    std::fs::write(
        home.join("site.trust"),
        printed(home, "trust template /site"),
    )
    .unwrap();
    let summary = printed(home, "trust compile site.trust --output site.lvs");
    let summary = String::from_utf8(summary).unwrap();
    assert!(
        summary.contains("21 rules") && summary.ends_with("anchors: #anchor\n"),
        "{summary}"
    );
    let octets = std::fs::read(home.join("site.lvs")).unwrap();
    assert_eq!(printed(home, "trust compile site.trust -o -"), octets);
    let about: Value =
        serde_json::from_slice(&printed(home, "trust compile site.lvs --json")).unwrap();
    assert_eq!(
        (&about["bytes"], &about["anchors"]),
        (&json!(octets.len()), &json!(["#anchor"]))
    );

    let packet = "/site/cam/catalogue/v=1/seg=0";
    let own = "/site/cam/KEY/1/site/v=1";
    for schema in ["site.trust", "site.lvs"] {
        let check = |key: &str| format!("trust check {packet} {key} --schema {schema}");
        let allowed = printed(home, &check(own));
        let allowed = String::from_utf8(allowed).unwrap();
        assert_eq!(
            allowed,
            format!("allowed: {packet} matches #stream1, {own} matches #key1\n")
        );
        let said = refused(home, &check("/site/door/KEY/1/site/v=1"));
        assert!(
            said.contains("does not allow /site/door/KEY/1/site/v=1 to sign"),
            "{said}"
        );
        let json = printed(home, &format!("{} --json", check(own)));
        let json: Value = serde_json::from_slice(&json).unwrap();
        let expected = json!({
            "allowed": true,
            "rules": ["#stream1"],
            "patterns": { "p1": "cam" },
            "signer_rules": ["#key1"],
        });
        assert_eq!(json, expected);
    }
}

#[test]
fn mistakes_are_said_with_file_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    std::fs::write(home.join("bad.trust"), "#a: \"x\"\n#b: \"y\" <= #c\n").unwrap();
    let said = refused(home, "trust compile bad.trust");
    assert!(
        said.contains("bad.trust") && said.contains("line 2, column 12"),
        "{said}"
    );
    assert!(said.contains("in rule #b: there is no rule #c"), "{said}");
    std::fs::write(home.join("bad.lvs"), b"a\x04\0\x01\x10\x01").unwrap();
    let said = refused(home, "trust compile bad.lvs");
    assert!(
        said.contains("0x00011001 of Light VerSec is unknown"),
        "{said}"
    );
    assert!(refused(home, "trust check /a /b --schema none").contains("cannot read none"));
}

const ROOM: &str = "/calls/fox";

fn text(home: &Path, arguments: &str) -> String {
    String::from_utf8(printed(home, arguments)).unwrap()
}

/// Makes a room at `host`. Returns the digest of its anchor's key.
pub(crate) fn init(host: &Path, root: &str, template: &str) -> String {
    let line = text(host, &format!("trust init {root} --template {template}"));
    let digest = line.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(digest.len(), 64, "{line}");
    digest.to_owned()
}

/// Has the host certify a key of `member` as `name`, which the member installs.
pub(crate) fn certify(host: &Path, member: &Path, name: &str) {
    let request = member.join("request");
    std::fs::write(&request, printed(member, &format!("trust request {name}"))).unwrap();
    let sign = format!("trust sign {} --valid 7d", request.display());
    let certificate = member.join("certificate");
    std::fs::write(&certificate, printed(host, &sign)).unwrap();
    let install = text(member, &format!("trust install {}", certificate.display()));
    assert!(
        install.starts_with(&format!("{name} is certified until")),
        "{install}"
    );
}

/// Reads the signers that a watcher prints, until `found` returns something.
fn until_signer<T>(watcher: &mut Program, found: impl FnMut(Value) -> Option<T>) -> T {
    let signers = watcher
        .lines()
        .filter_map(|said| Some(said.get("signer")?.clone()));
    let mut signers = signers.filter(|signer| !signer.is_null());
    signers.find_map(found).expect("it goes on")
}

/// Anchor, member and stranger: the member's stream is watched by the anchor's digest alone. A stranger can neither publish by the rules
/// nor be watched by them, another anchor has no say, and a revocation ends what is live.
#[test]
fn members_of_a_room_are_watched_until_their_keys_are_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let [host, ann, eve, bob] =
        ["host", "ann", "eve", "bob"].map(|who| home(directory.path(), who));
    let (_forwarder, face) = start_forwarder(directory.path());
    let anchor = init(&host, ROOM, "call");
    certify(&host, &ann, "/calls/fox/ann");
    let _serving = Program::start(
        &host,
        &format!("trust serve {ROOM} --quiet --connect {face}"),
    );

    let publish = "--input test --ladder 200k --no-audio --json";
    let by_rules =
        |name: &str| format!("publish {name} {publish} --schema {ROOM} --connect {face}");
    let mut publisher = Program::start(&ann, &by_rules("/calls/fox/ann"));
    let about = publisher.lines().next().unwrap();
    let ann_key = about["key_digest"].as_str().unwrap().to_owned();
    let watch = |name: &str, key: &str| {
        format!(
            "watch {name} --no-audio --schema {ROOM} --key {key} --connect {face} --json --stats stats"
        )
    };
    let mut watcher = Program::start(&bob, &watch("/calls/fox/ann", &anchor));
    until("verified pictures", || {
        let stats = crate::program::newest_stats(&bob.join("stats"))?;
        (stats["latency"]["frames"].as_u64()? > 10).then_some(())
    });

    let said = refused(&eve, &by_rules("/calls/fox/eve"));
    assert!(
        said.contains("no certificate for /calls/fox/eve is installed"),
        "{said}"
    );
    let said = refused(&bob, &watch("/calls/fox/ann", &"0".repeat(64)));
    assert!(
        said.contains("another key is trusted for this name"),
        "{said}"
    );
    let plain = format!("publish /calls/fox/eve {publish} --connect {face}");
    let _stranger = Program::start(&eve, &plain);
    let mut strangers = Program::start(&home(&bob, "eve"), &watch("/calls/fox/eve", &anchor));
    let verdict = until_signer(&mut strangers, |it| {
        Some(it["verdict"].as_str()?.to_owned())
    });
    assert!(verdict.contains("does not allow this key"), "{verdict}");

    let members = printed(&host, "trust members --json");
    let members: Value = serde_json::from_slice(&members).unwrap();
    assert_eq!(members[0]["key_digest"], json!(ann_key));
    let revoked = text(&host, "trust revoke /calls/fox/ann");
    assert!(
        revoked.starts_with("revoked /calls/fox/ann/KEY/"),
        "{revoked}"
    );
    let verdict = until_signer(&mut watcher, |it| {
        let verdict = it["verdict"].as_str()?;
        verdict.contains("revoked").then(|| verdict.to_owned())
    });
    assert!(
        verdict.contains("a certificate of the chain was revoked"),
        "{verdict}"
    );
    let said = refused(&ann, &by_rules("/calls/fox/ann"));
    assert!(
        said.contains("a certificate of the chain was revoked"),
        "{said}"
    );
}

/// An object is put under a member's name and fetched by the anchor's digest, and neither another member's name nor another anchor.
#[test]
fn objects_of_members_are_put_and_fetched_by_the_rules() {
    let directory = tempfile::tempdir().unwrap();
    let [host, ann] = ["host", "ann"].map(|who| home(directory.path(), who));
    let (_forwarder, face) = start_forwarder(directory.path());
    let anchor = init(&host, ROOM, "call");
    certify(&host, &ann, "/calls/fox/ann");
    let _serving = Program::start(
        &host,
        &format!("trust serve {ROOM} --quiet --connect {face}"),
    );
    std::fs::write(ann.join("plan"), "the plan").unwrap();
    let rules = format!("--schema {ROOM} --connect {face}");
    let _put = Program::start(
        &ann,
        &format!("put /calls/fox/ann/plan plan --quiet {rules}"),
    );
    let peek = format!("peek /calls/fox/ann/plan --object --pipe {rules} --key {anchor}");
    until("the object", || {
        let output = run(&host, &peek);
        (output.status.success() && output.stdout == b"the plan").then_some(())
    });
    let said = refused(&ann, &format!("put /calls/fox/bob/plan plan {rules}"));
    assert!(
        said.contains("no certificate for /calls/fox/bob/plan"),
        "{said}"
    );
    let other = format!(
        "peek /calls/fox/ann/plan --object {rules} --key {}",
        "1".repeat(64)
    );
    let said = refused(&host, &other);
    assert!(
        said.contains("another key is trusted for this name"),
        "{said}"
    );
}

/// Requests and names that the host must not certify.
#[test]
fn a_host_certifies_no_name_that_another_key_had() {
    let directory = tempfile::tempdir().unwrap();
    let [host, ann, eve] = ["host", "ann", "eve"].map(|who| home(directory.path(), who));
    init(&host, ROOM, "call");
    let said = refused(&host, &format!("trust init {ROOM}"));
    assert!(
        said.contains("there is a room /calls/fox already"),
        "{said}"
    );
    certify(&host, &ann, "/calls/fox/ann");
    // The same key again: it is renewed.
    certify(&host, &ann, "/calls/fox/ann");
    let request = eve.join("request");
    let written = printed(&eve, "trust request /calls/fox/ann");
    std::fs::write(&request, &written).unwrap();
    let sign = format!("trust sign {}", request.display());
    assert!(refused(&host, &sign).contains("is the name of another key"));
    printed(&host, "trust revoke /calls/fox/ann");
    assert!(refused(&host, &sign).contains("is the name of another key"));
    for (name, why) in [
        ("/calls/fox/KEY", "is no name for a member"),
        ("/calls/fox/a_b", "is no name for a member"),
        ("/calls/fox/a/b", "does not let the anchor certify"),
        ("/calls/hen/ann", "belongs to no room here"),
    ] {
        let said = refused(&host, &format!("{sign} --as {name}"));
        assert!(said.contains(why), "{name}: {said}");
    }
    let certificate = eve.join("certificate");
    std::fs::write(
        &certificate,
        printed(&host, &format!("{sign} --as /calls/fox/eve")),
    )
    .unwrap();
    let install = format!("trust install {}", certificate.display());
    printed(&eve, &install);
    assert!(refused(&ann, &install).contains("is not in this key store"));
    let own = refused(&eve, &format!("trust install {}", request.display()));
    assert!(own.contains("is a request"), "{own}");
    let members = text(&host, "trust members");
    assert!(
        members.contains("/calls/fox/eve") && members.contains("revoked"),
        "{members}"
    );
}

/// Playback of `name` by `home` from a time on, and its figures at the end.
fn figures_of_past(home: &Path, watch: &str, from: u64) -> Value {
    let line = format!("{watch} --from {from} --duration 10s");
    let mut watcher = Program::start(home, &line);
    let last = watcher.lines().last().unwrap();
    assert_eq!(last["final"], json!(true));
    last["stats"].clone()
}

/// A figure of sealed samples, of the program that runs at `home`.
fn sealed(home: &Path, what: &str) -> Option<u64> {
    let stats = crate::program::newest_stats(&home.join("stats"))?;
    stats["sealed"][what].as_u64()
}

/// Waits until the watcher at `home` has opened more than `more_than` samples.
fn opens(home: &Path, more_than: u64) -> u64 {
    until("opened samples", || {
        sealed(home, "opened").filter(|opened| *opened > more_than)
    })
}

/// Ann publishes for the members alone. Bob watches; Eve, a stranger, is told who can and how to become one. Carol is certified meanwhile and
/// watches from then on, Bob is revoked and sees no more. Years later, with Ann gone, Bob watches in the archive what was sealed for him, and Carol,
/// who came later, sees nothing of it.
#[test]
fn a_sealed_stream_is_opened_by_members_alone() {
    let directory = tempfile::tempdir().unwrap();
    let [host, ann, bob, carol, eve, keeper] =
        ["host", "ann", "bob", "carol", "eve", "keeper"].map(|who| home(directory.path(), who));
    let (_forwarder, face) = start_forwarder(directory.path());
    let anchor = init(&host, ROOM, "call");
    certify(&host, &ann, "/calls/fox/ann");
    certify(&host, &bob, "/calls/fox/bob");
    let mut serving = Program::start(
        &host,
        &format!("trust serve {ROOM} --quiet --connect {face}"),
    );
    let publish = "publish /calls/fox/ann --input test --ladder 200k --no-audio --sealed --quiet";
    let mut publisher = Program::start(
        &ann,
        &format!("{publish} --stats stats --schema {ROOM} --connect {face}"),
    );
    let rules = format!("--schema {ROOM} --key {anchor} --connect {face}");
    let _archive = Program::start(
        &keeper,
        &format!("archive /calls/fox/ann --quiet --store kept --stats stats {rules}"),
    );
    let watch = format!("watch /calls/fox/ann --no-audio --json {rules}");
    let live = format!("{watch} --stats stats");
    let _watcher = Program::start(&bob, &live);
    opens(&bob, 10);
    let recorded = until("recorded samples", || {
        let kept = crate::program::newest_stats(&keeper.join("stats"))?;
        (kept["samples"].as_u64()? > 100).then(|| Clock::new().wall().as_micros() / 1_000_000)
    });

    let said = refused(&eve, &watch);
    assert!(
        said.contains("is sealed for the members of /calls/fox"),
        "{said}"
    );
    let advice = "namecast trust request /calls/fox/YOUR-ID";
    assert!(said.contains(advice), "{said}");
    let file = refused(
        &ann,
        &format!("{publish} --schema request --connect {face}"),
    );
    assert!(file.contains("request"), "{file}");

    certify(&host, &carol, "/calls/fox/carol");
    let _carol = Program::start(&carol, &live);
    opens(&carol, 10);
    text(&host, "trust revoke /calls/fox/bob");
    until("samples that Bob cannot open", || {
        sealed(&bob, "not_a_reader").filter(|unopened| *unopened > 10)
    });
    let unopened = ["not_a_reader", "before_joining", "box_missing", "damaged"];
    let unopened = || unopened.map(|why| sealed(&carol, why));
    let (before, then) = (sealed(&carol, "opened").unwrap(), unopened());
    opens(&carol, before + 10);
    // Those from before the publisher knew her are all that she could not open.
    assert_eq!(unopened(), then);
    // Figures are written once a second.
    let changed = until("a change of keys", || {
        sealed(&ann, "generations").filter(|changes| *changes > 0)
    });
    assert_eq!(changed, 1);

    publisher.kill();
    let from = recorded - 2;
    let stats = figures_of_past(&bob, &watch, from);
    assert!(stats["sealed"]["opened"].as_u64() > Some(50), "{stats}");
    let stats = figures_of_past(&carol, &watch, from);
    assert_eq!(stats["sealed"]["opened"], json!(0), "{stats}");
    let not_for_her = stats["sealed"]["not_a_reader"].as_u64();
    assert!(not_for_her > Some(50), "{stats}");
    // The archive has the rules, too.
    serving.kill();
    let stats = figures_of_past(&bob, &watch, from);
    assert!(stats["sealed"]["opened"].as_u64() > Some(50), "{stats}");
}

/// Bob says that he leaves, and opens nothing more that Ann seals; the room lists him as one who left. The link by which he joined does not let him in again,
/// as somebody may send his old request again; a new one does, under his name.
#[test]
fn a_member_leaves_and_joins_again() {
    let directory = tempfile::tempdir().unwrap();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|who| home(directory.path(), who));
    let room = Served::new(directory.path());
    certify(&room.host, &ann, "/calls/fox/ann");
    let _serving = Program::start(&room.host, &room.serve());
    let link = room.invite("");
    text(&bob, &room.join(&link, "Bob"));
    let _running = room.show_sealed(&ann, &bob);

    let leave = format!("trust leave /calls/fox/bob --connect {}", room.face);
    let said = refused(&eve, &leave);
    assert!(
        said.contains("no certificate for /calls/fox/bob is installed here"),
        "{said}"
    );
    // A second time, too, as the first answer may be lost.
    for _ in 0..2 {
        let left = text(&bob, &leave);
        assert_eq!(left, "/calls/fox/bob has left /calls/fox\n");
    }
    until("samples that Bob cannot open", || {
        sealed(&bob, "not_a_reader").filter(|unopened| *unopened > 10)
    });
    let members = printed(&room.host, "trust members --json");
    let members: Vec<Value> = serde_json::from_slice(&members).unwrap();
    let [ann, bobs] = &members[..] else {
        panic!("{members:?}");
    };
    assert_eq!(ann["role"], "member");
    assert_eq!(bobs["name"], "/calls/fox/bob");
    assert!(bobs["left"].is_string() && bobs["revoked"].is_null());

    let said = refused(&bob, &room.join(&link, "Bob"));
    assert!(said.contains("the host refuses the link"), "{said}");
    let joined = text(&bob, &room.join(&room.invite(""), "Bob"));
    assert!(
        joined.starts_with("/calls/fox/bob is certified until"),
        "{joined}"
    );
    let before = sealed(&bob, "opened").unwrap();
    opens(&bob, before + 10);
}

/// A room that is served at `host`, its forwarder, and the digest of its anchor's key.
pub(crate) struct Served {
    pub(crate) host: std::path::PathBuf,
    _forwarder: Program,
    pub(crate) face: String,
    anchor: String,
}

impl Served {
    pub(crate) fn new(directory: &Path) -> Self {
        let (forwarder, face) = start_forwarder(directory);
        let host = home(directory, "host");
        Self {
            anchor: init(&host, ROOM, "call"),
            host,
            _forwarder: forwarder,
            face,
        }
    }

    /// Ann publishes a sealed stream, of which Bob opens ten samples and then more. Returns both programs.
    fn show_sealed(&self, ann: &Path, bob: &Path) -> [Program; 2] {
        let (face, anchor) = (&self.face, &self.anchor);
        let publish =
            "publish /calls/fox/ann --input test --ladder 200k --no-audio --sealed --quiet";
        let publish = format!("{publish} --schema {ROOM} --connect {face}");
        let publisher = Program::start(ann, &publish);
        let watch =
            format!("watch /calls/fox/ann --no-audio --json --schema {ROOM} --key {anchor}");
        let watch = format!("{watch} --connect {face} --stats stats");
        let watcher = Program::start(bob, &watch);
        opens(bob, 10);
        [publisher, watcher]
    }

    pub(crate) fn serve(&self) -> String {
        format!("trust serve {ROOM} --quiet --connect {}", self.face)
    }

    /// Makes a link.
    pub(crate) fn invite(&self, more: &str) -> String {
        let link = text(&self.host, &format!("trust invite {ROOM} {more}"));
        let begins = format!("#room=/calls/fox&key={}&t=", self.anchor);
        assert!(link.contains(&begins), "{link}");
        link.trim_end().to_owned()
    }

    fn join(&self, link: &str, name: &str) -> String {
        format!("trust join {link} --name {name} --connect {}", self.face)
    }
}

/// A link for one use lets one in, again and again with the same certificate, also when the host has started again, and nobody else. A wrong token
/// lets nobody in, and neither does a key that was revoked.
#[test]
fn a_link_for_one_use_lets_one_in() {
    let directory = tempfile::tempdir().unwrap();
    let [ann, eve] = ["ann", "eve"].map(|who| home(directory.path(), who));
    let room = Served::new(directory.path());
    let mut serving = Program::start(&room.host, &room.serve());
    // State vectors of the room's group reach all members.
    let list = format!("strategy list --connect {}", room.face);
    until("the strategy of the room's group", || {
        let listed = text(&room.host, &list);
        let group = listed
            .lines()
            .find(|it| it.starts_with("/calls/fox/v=3 "))?;
        group
            .contains("/localhost/nfd/strategy/multicast")
            .then_some(())
    });
    let once = room.invite("--uses 1 --page https://example.org/");
    let joined = text(&ann, &room.join(&once, "Ann"));
    assert!(
        joined.starts_with("/calls/fox/ann is certified until"),
        "{joined}"
    );
    serving.kill();
    let _serving = Program::start(&room.host, &room.serve());
    assert_eq!(text(&ann, &room.join(&once, "Ann")), joined);
    let wrong = format!("{}00000000", &once[..once.len() - 8]);
    for link in [once, wrong] {
        let said = refused(&eve, &room.join(&link, "Eve"));
        assert!(said.contains("the host refuses the link"), "{said}");
    }
    text(&room.host, "trust revoke /calls/fox/ann");
    let said = refused(&ann, &room.join(&room.invite(""), "Ann"));
    assert!(said.contains("the host refuses the link"), "{said}");
}

/// Nine join with one link at once, under one name shown to people: they get nine certificates with nine names.
#[test]
fn nine_join_with_one_link() {
    let directory = tempfile::tempdir().unwrap();
    let room = Served::new(directory.path());
    let _serving = Program::start(&room.host, &room.serve());
    let link = room.invite("--role guest");
    let joining = (0..9).map(|n| {
        let home = home(directory.path(), &format!("n{n}"));
        let mut command = command(&home, &room.join(&link, "Ann"));
        let command = command.stdout(std::process::Stdio::piped());
        command.spawn().unwrap()
    });
    let joining: Vec<_> = joining.collect();
    let names = joining.into_iter().map(|joining| {
        let output = joining.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        text.split(' ').next().unwrap().to_owned()
    });
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    let others = (2..=9).map(|n| format!("/calls/fox/ann-{n}"));
    let expected = core::iter::once("/calls/fox/ann".to_owned()).chain(others);
    assert_eq!(names, expected.collect::<Vec<_>>());
    let members = printed(&room.host, "trust members --json");
    let members: Vec<Value> = serde_json::from_slice(&members).unwrap();
    let guests = members.iter().filter(|it| it["role"] == "guest");
    assert_eq!((members.len(), guests.count()), (9, 9));
}

/// Where the host knocks, a newcomer waits until somebody says yes.
#[test]
fn a_newcomer_waits_until_somebody_says_yes() {
    let directory = tempfile::tempdir().unwrap();
    let eve = home(directory.path(), "eve");
    let room = Served::new(directory.path());
    let link = room.invite("");
    let mut serving = command(&room.host, &format!("{} --knock", room.serve()));
    let serving = serving.stdout(std::process::Stdio::null());
    let serving = serving.stderr(std::process::Stdio::piped());
    let mut serving = Program(serving.spawn().unwrap());
    let mut waiting = Program::start(&eve, &room.join(&link, "Eve"));
    let said = std::io::BufReader::new(serving.0.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(said).map_while(Result::ok);
    let knock = lines.find(|line| line.contains("wants to join")).unwrap();
    assert!(knock.contains("'Eve' with the key"), "{knock}");
    let (_, key) = knock.split_once("admit ").unwrap();
    text(&room.host, &format!("trust admit {}", &key[..16]));
    let mut joined = String::new();
    let output = waiting.0.stdout.as_mut().unwrap();
    std::io::Read::read_to_string(output, &mut joined).unwrap();
    assert!(
        joined.starts_with("/calls/fox/eve is certified until"),
        "{joined}"
    );
}

/// The host dies: Bob sees what Ann seals, as before, and the holder of a link learns why she waits, and becomes a member once the host is back.
#[test]
fn without_a_host_members_go_on_and_newcomers_learn_why_they_wait() {
    let directory = tempfile::tempdir().unwrap();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|who| home(directory.path(), who));
    let room = Served::new(directory.path());
    certify(&room.host, &ann, "/calls/fox/ann");
    certify(&room.host, &bob, "/calls/fox/bob");
    let mut serving = Program::start(&room.host, &room.serve());
    let _running = room.show_sealed(&ann, &bob);
    let link = room.invite("");
    serving.kill();
    let mut joining = command(&eve, &room.join(&link, "Eve"));
    let joining = joining.stdout(std::process::Stdio::piped());
    let joining = joining.stderr(std::process::Stdio::piped());
    let mut joining = Program(joining.spawn().unwrap());
    let said = std::io::BufReader::new(joining.0.stderr.take().unwrap());
    let mut lines = std::io::BufRead::lines(said).map_while(Result::ok);
    let why = lines.find(|line| line.contains("its host has to run"));
    assert!(why.is_some(), "she is not told");
    let before = sealed(&bob, "opened").unwrap();
    // Longer than from one look for a newer roster to the next.
    opens(&bob, before + 200);
    let _serving = Program::start(&room.host, &room.serve());
    let mut joined = String::new();
    let output = joining.0.stdout.as_mut().unwrap();
    std::io::Read::read_to_string(output, &mut joined).unwrap();
    assert!(
        joined.starts_with("/calls/fox/eve is certified until"),
        "{joined}"
    );
}

/// Starts a room of `host` with Ann as a member, and a forwarder that lets nobody register but members. Returns the anchor's digest, the
/// forwarder's face, and both programs.
fn start_trusting_room(host: &Path, ann: &Path) -> (String, String, [Program; 2]) {
    let anchor = init(host, ROOM, "call");
    std::fs::write(host.join("operator.cert"), printed(host, "key /operator")).unwrap();
    let config = host.join("namecast.toml");
    let settings = format!(
        "listen = {{ udp = [], tcp = [\"127.0.0.1:0\"], unix = [] }}\n\
         management = {{ keys = [\"operator.cert\"], open = [] }}\n\
         [[trust]]\nroot = \"{ROOM}\"\nanchor = \"{anchor}\"\n"
    );
    std::fs::write(&config, settings).unwrap();
    let arguments = format!("--config {}", config.display());
    let (forwarder, [face]) = start_forwarder_with(host, &arguments);
    let serve = format!("trust serve {ROOM} --quiet --connect {face}");
    let serving = Program::start(host, &serve);
    certify(host, ann, "/calls/fox/ann");
    (anchor, face, [forwarder, serving])
}

/// Ann puts one object and sends another through a forwarder that lets members alone register: her certificate goes with both, and a stranger's
/// `put` is refused.
#[test]
fn members_put_and_send_by_right() {
    let directory = tempfile::tempdir().unwrap();
    let [host, ann, eve] = ["host", "ann", "eve"].map(|who| home(directory.path(), who));
    let (anchor, face, _running) = start_trusting_room(&host, &ann);
    for file in ["plan", "film"] {
        std::fs::write(ann.join(file), format!("the {file}")).unwrap();
    }
    std::fs::write(eve.join("plan"), "another plan").unwrap();
    let rules = format!("--schema {ROOM} --connect {face}");
    let put = format!("put /calls/fox/ann/plan plan --quiet {rules}");
    let _put = Program::start(&ann, &put);
    let send = format!("send film /calls/fox/ann/film --quiet {rules}");
    let _send = Program::start(&ann, &send);
    for file in ["plan", "film"] {
        let name = format!("/calls/fox/ann/{file}");
        let peek = format!("peek {name} --object --pipe {rules} --key {anchor}");
        until("the object", || {
            let output = run(&eve, &peek);
            let is_it = output.stdout == format!("the {file}").as_bytes();
            (output.status.success() && is_it).then_some(())
        });
    }
    let put = format!("put /calls/fox/eve/plan plan --connect {face}");
    let said = refused(&eve, &put);
    assert!(said.contains("a key that may command"), "{said}");
}

/// A key that is revoked since an earlier time, at once or later: members shows that time, and never a later one.
#[test]
fn a_revocation_is_dated_back_and_never_forward() {
    let directory = tempfile::tempdir().unwrap();
    let [host, ann] = ["host", "ann"].map(|who| home(directory.path(), who));
    init(&host, ROOM, "call");
    certify(&host, &ann, "/calls/fox/ann");
    let revoke = |since: &str| format!("trust revoke /calls/fox/ann --since {since}");
    let since = || {
        let members = printed(&host, "trust members --json");
        let members: Value = serde_json::from_slice(&members).unwrap();
        assert_eq!(members.as_array().unwrap().len(), 1);
        members[0]["revoked"].as_str().unwrap().to_owned()
    };
    text(&host, &revoke("2021-03-01T00:00:00Z"));
    assert_eq!(since(), "2021-03-01T00:00:00Z");
    let said = refused(&host, &revoke("2021-03-02T00:00:00Z"));
    assert!(said.contains("no member"), "{said}");
    text(&host, &revoke("2021-02-01T00:00:00Z"));
    assert_eq!(since(), "2021-02-01T00:00:00Z");
    text(&host, &revoke("0"));
    assert_eq!(since(), "1970-01-01T00:00:00Z");
}

/// A forwarder that lets nobody register but the members of a room: the host serves it and Ann publishes, each by its key. Eve, who has a key of that
/// name and no certificate, and Ann once her key is revoked, are refused with the reason, which is counted.
#[test]
fn members_alone_register_where_a_root_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let [host, ann, eve] = ["host", "ann", "eve"].map(|who| home(directory.path(), who));
    let (anchor, face, _running) = start_trusting_room(&host, &ann);
    let publish = "publish /calls/fox/ann --input test --ladder 200k --no-audio";
    let publish = |more: &str| format!("{publish} --connect {face} {more}");
    let mut publisher = Program::start(&ann, &publish(&format!("--schema {ROOM}")));
    let watch = format!("watch /calls/fox/ann --no-audio --schema {ROOM} --key {anchor}");
    let watch = format!("{watch} --connect {face} --json --stats stats");
    let _watcher = Program::start(&eve, &watch);
    until("verified pictures", || {
        let stats = crate::program::newest_stats(&eve.join("stats"))?;
        (stats["latency"]["frames"].as_u64()? > 10).then_some(())
    });
    publisher.kill();

    let refusal = |home: &Path, more: &str| {
        let mut publisher = command(home, &publish(more));
        let publisher = publisher.stderr(std::process::Stdio::piped());
        let mut publisher = Program(publisher.spawn().unwrap());
        let said = std::io::BufReader::new(publisher.0.stderr.take().unwrap());
        let mut lines = std::io::BufRead::lines(said).map_while(Result::ok);
        lines.find(|line| line.contains("refuses")).unwrap()
    };
    let said = refusal(&eve, "");
    assert!(said.contains("a key that may command"), "{said}");
    text(&host, "trust revoke /calls/fox/ann");
    let rules = host.join("call.trust");
    std::fs::write(
        &rules,
        printed(&host, &format!("trust template {ROOM} --template call")),
    )
    .unwrap();
    let said = refusal(&ann, &format!("--schema {}", rules.display()));
    assert!(
        said.contains("a certificate of the chain was revoked"),
        "{said}"
    );
}
