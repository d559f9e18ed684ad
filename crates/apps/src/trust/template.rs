//! Schemas to begin with.
//!
//! | template | signs | names, below the root |
//! |---|---|---|
//! | `streams` | anchor; keys up to eight components below | streams of their own names |
//! | `call` | members `<id>` | streams, objects and publications of their own; the group `v=3` |
//! | `show` | anchor; desks `desk/<desk>`; devices `device/<id>` | streams of the root; cues `cues/<list>/<desk>`, operators `ops/<path>` and `desk/<desk>`; `device/<id>` |
//! | `tracks` | anchor; trackers `<id>` | streams of their own names; objects of trackers |
//!
//! In each, the anchor signs certificates, schema, roster and answers to those who join and leave.

use core::fmt::Write as _;

use namecast_packet::{Component, Name};

/// Components that a publisher's name may have below the root, and an operator's path. Patterns have a fixed length, so each depth has rules
/// of its own.
pub const MAX_DEPTH: usize = 8;

/// What is signed under the name of a published stream: `docs/stream-format.md`, section "Names". The last one is signed to register the name.
const SIGNED: [&str; 10] = [
    r#"stream/rung/class/_/kind/_ & {class: "key"|"delta", kind: "data"|"parity"|"lead"|"across"}"#,
    r#"stream/rung/"32=latest"/_/_"#,
    r#"stream/"index"/_"#,
    r#""32=metadata"/_/_"#,
    r#""32=metadata"/_"#,
    r#""catalogue"/_/_"#,
    r#""hls"/_/_/_"#,
    r#""hls"/_/_/_/_"#,
    r#""32=keys"/_/_/_/_"#,
    r#""32=route""#,
];

/// What the anchor of each template signs under the root beside certificates: versions of schema and roster, the names of their newest ones, and answers to
/// those who join and leave.
const ADMINISTRATION: [&str; 6] = [
    r#""32=trust"/_/_"#,
    r#""32=trust"/"32=metadata"/_/_"#,
    r#""32=roster"/_/_"#,
    r#""32=roster"/"32=metadata"/_/_"#,
    r#""32=join"/_"#,
    r#""32=leave"/_"#,
];

/// Segments of an object and of its metadata, and what is signed to register its name.
const OBJECT: [&str; 3] = [
    r#"file/_/_"#,
    r#"file/"32=metadata"/_/_"#,
    r#"file/"32=route""#,
];

/// Rules for one kind of application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// Streams of a site, whose names are below its name.
    Streams,
    /// A call of several members.
    Call,
    /// A show: streams, cues and devices.
    Show,
    /// Tracks of several trackers.
    Tracks,
}

impl Template {
    /// All templates.
    pub const ALL: [Self; 4] = [Self::Streams, Self::Call, Self::Show, Self::Tracks];

    /// Returns what people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Streams => "streams",
            Self::Call => "call",
            Self::Show => "show",
            Self::Tracks => "tracks",
        }
    }

    /// Returns its rules under `root`, whose key is the anchor.
    pub fn rules(self, root: &Name) -> String {
        let mut rules = Text::new(root);
        match self {
            Self::Streams => rules.streams(),
            Self::Call => rules.call(),
            Self::Show => rules.show(),
            Self::Tracks => rules.tracks(),
        }
        rules.text
    }
}

/// Rules that are being written.
struct Text {
    text: String,
    /// Prefixes of names under the root: components and slashes.
    start: String,
}

impl Text {
    /// Writes what all templates have.
    fn new(root: &Name) -> Self {
        let written: String = root.components().map(|it| quoted(it) + "/").collect();
        let mut rules = Self {
            text: String::new(),
            start: written,
        };
        rules.line(r#"#KEY: "KEY"/_/_/_"#);
        rules.lines("signed", &SIGNED);
        rules.below("anchor", "#KEY", "");
        for signed in ADMINISTRATION {
            rules.below("administration", signed, "anchor");
        }
        rules
    }

    fn streams(&mut self) {
        self.below("own", "#signed", "anchor");
        let mut path = String::new();
        for depth in 1..=MAX_DEPTH {
            path += &format!("p{depth}/");
            let key = format!("key{depth}");
            self.below(&key, &format!("{path}#KEY"), "anchor");
            self.below(&format!("stream{depth}"), &format!("{path}#signed"), &key);
        }
    }

    fn call(&mut self) {
        self.below("route", r#""32=route""#, "anchor");
        self.below("member", "id/#KEY", "anchor");
        self.below("stream", "id/#signed", "member");
        self.objects("member");
        self.below("group", r#""v=3""#, "member");
        self.below("route", r#""v=3"/"32=route""#, "member");
        // State Vector Sync, version 3: `/<node>/<group>/t=<boot>/seq=<n>`, in segments or asked for a mapping.
        let publication = format!("id/{}", self.start);
        self.below("publication", &format!("{publication}_/_"), "member");
        self.below("publication", &format!("{publication}_/_/_/_"), "member");
        for own in [r#""32=keys"/_/_/_/_"#, r#""32=route""#] {
            self.below("publication", &format!("{publication}{own}"), "member");
        }
    }

    fn show(&mut self) {
        self.below("own", "#signed", "anchor");
        self.below("desk", r#""desk"/desk/#KEY"#, "anchor");
        self.below("state", r#""desk"/desk/#signed"#, "desk");
        self.below("cues", r#""cues"/list/desk/#signed"#, "desk");
        let mut path = "\"ops\"/".to_owned();
        for depth in 1..=MAX_DEPTH {
            path += &format!("p{depth}/");
            self.below("operator", &format!("{path}#signed"), "desk");
        }
        self.below("device", r#""device"/id/#KEY"#, "anchor");
        self.below("acks", r#""device"/id/#signed"#, "device");
    }

    fn tracks(&mut self) {
        self.below("own", "#signed", "anchor");
        self.below("tracker", "id/#KEY", "anchor");
        self.below("stream", "id/#signed", "tracker");
        self.objects("tracker");
    }

    /// Objects of whoever is called `id`. The anchor has none: their metadata would have the names of members' metadata.
    fn objects(&mut self, signer: &str) {
        for object in OBJECT {
            self.below("object", &format!("id/{object}"), signer);
        }
    }

    fn lines(&mut self, rule: &str, names: &[&str]) {
        for name in names {
            self.line(&format!("#{rule}: {name}"));
        }
    }

    /// Writes a definition of `rule`: `name` under the root, signed by keys that `signer` matches, if there is one.
    fn below(&mut self, rule: &str, name: &str, signer: &str) {
        let signer = match signer {
            "" => String::new(),
            signer => format!(" <= #{signer}"),
        };
        let start = self.start.clone();
        self.line(&format!("#{rule}: {start}{name}{signer}"));
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a String takes everything");
    }
}

/// `component` as schemas write it.
fn quoted(component: Component<'_>) -> String {
    let mut text = "\"".to_owned();
    if component.kind != Component::GENERIC {
        text += &format!("{}=", component.kind);
    }
    for &octet in component.value {
        match octet {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(octet));
            }
            _ => text += &format!("%{octet:02X}"),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
