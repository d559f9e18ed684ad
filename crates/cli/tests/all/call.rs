//! The real command: members of a room see each other and what they write, also without the host.

use std::io::Write as _;
use std::path::Path;
use std::process::{ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::program::{Program, command, home};
use crate::trust::Served;

/// A member who calls, what it hears, and what it types on.
struct Caller {
    _program: Program,
    typing: ChildStdin,
    heard: Box<dyn Iterator<Item = Value>>,
}

impl Caller {
    fn start(home: &Path, room: &str, face: &str) -> Self {
        let line = format!("call {room} --json --quiet --duration 60s --connect {face}");
        let mut command = command(home, &line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = Program(command.spawn().unwrap());
        Self {
            typing: program.0.stdin.take().unwrap(),
            heard: Box::new(program.lines()),
            _program: program,
        }
    }

    fn write(&mut self, line: &str) {
        writeln!(self.typing, "{line}").unwrap();
    }

    /// Hears events until one has these fields, within a minute.
    fn hear(&mut self, wanted: &Value) {
        let wanted = wanted.as_object().unwrap();
        let is_wanted = |it: &Value| wanted.iter().all(|(key, value)| it[key] == *value);
        let heard = self.heard.find(is_wanted);
        assert!(heard.is_some(), "nothing like {wanted:?}");
    }
}

/// Ann and Bob come by a link. The host is killed; they see each other's messages and hands, each message once, and that Ann leaves.
#[test]
fn members_meet_and_write_without_the_host() {
    let directory = tempfile::tempdir().unwrap();
    let [ann, bob] = ["ann", "bob"].map(|who| home(directory.path(), who));
    let room = Served::new(directory.path());
    let mut serving = Program::start(&room.host, &room.serve());
    let link = room.invite("");
    let mut ann = Caller::start(&ann, &format!("{link} --name Ann"), &room.face);
    let mut bob = Caller::start(&bob, &format!("{link} --name Bob"), &room.face);
    ann.hear(&json!({ "event": "here", "member": "/calls/fox/bob", "label": "Bob" }));
    bob.hear(&json!({ "event": "here", "member": "/calls/fox/ann", "hand_up": false }));
    serving.kill();
    for number in 1..=6 {
        ann.write(&format!("message {number}"));
    }
    ann.write("/hand");
    let mut texts: Vec<String> = Vec::new();
    while texts.len() < 6 {
        let event = bob.heard.next().unwrap();
        if event["event"] == "message" {
            texts.push(event["text"].as_str().unwrap().to_owned());
        }
    }
    texts.sort();
    let expected: Vec<_> = (1..=6).map(|number| format!("message {number}")).collect();
    assert_eq!(texts, expected);
    bob.write("seen");
    ann.hear(&json!({ "event": "message", "member": "/calls/fox/bob", "text": "seen" }));
    ann.write("/leave");
    bob.hear(&json!({ "event": "gone", "member": "/calls/fox/ann", "left": true }));
}
