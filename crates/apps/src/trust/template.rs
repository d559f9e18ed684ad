//! Schemas to begin with.

use core::fmt::Write as _;

use namecast_packet::{Component, Name};

/// Components that a publisher's name may have below the root. Patterns have a fixed length, so each depth has rules of its own.
pub const MAX_DEPTH: usize = 8;

/// What is signed under the name of a published stream: `docs/stream-format.md`, section "Names".
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
    r#""32=trust"/_/_"#,
];

/// Returns rules for streams under `root`: the anchor's key is that of `root`. It signs streams of its own name, and certificates of
/// names up to [`MAX_DEPTH`] components below. Each of those signs streams of its own name.
pub fn streams(root: &Name) -> String {
    let mut text = String::from("#KEY: \"KEY\"/_/_/_\n");
    for signed in SIGNED {
        line(&mut text, format_args!("#signed: {signed}"));
    }
    let written: Vec<_> = root.components().map(quoted).collect();
    let start = match written.is_empty() {
        true => String::new(),
        false => written.join("/") + "/",
    };
    line(&mut text, format_args!("#anchor: {start}#KEY"));
    line(&mut text, format_args!("#own: {start}#signed <= #anchor"));
    let mut path = start;
    for depth in 1..=MAX_DEPTH {
        path += &format!("p{depth}/");
        line(
            &mut text,
            format_args!("#key{depth}: {path}#KEY <= #anchor"),
        );
        line(
            &mut text,
            format_args!("#stream{depth}: {path}#signed <= #key{depth}"),
        );
    }
    text
}

fn line(text: &mut String, line: core::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a String takes everything");
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
mod tests {
    use namecast_stream::names::{SampleClass, SegmentId, SegmentKind, StreamNames};

    use super::super::schema::{Limits, Schema};
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn schema(root: &str) -> Schema {
        Schema::compile(&streams(&name(root)), &Limits::default()).unwrap()
    }

    /// Every signed name of `docs/stream-format.md` under `root`.
    fn signed(root: &str) -> Vec<Name> {
        let names = StreamNames::new(name(root));
        let rung = names.rung("video", "1M");
        let mut all = vec![
            names.metadata_version(7),
            names.challenge(7),
            names.catalogue_segment(7, 1),
            rung.latest_version(7),
        ];
        for class in SampleClass::ALL {
            all.extend(SegmentKind::ALL.map(|kind| {
                rung.segment(SegmentId {
                    class,
                    sequence: 3,
                    kind,
                    index: 0,
                })
            }));
        }
        let others = [
            "video/index/t=7",
            "hls/index.m3u8/v=7/seg=0",
            "hls/1M/index.m3u8/v=7/seg=0",
            "hls/1M/init-1.mp4/v=7/seg=0",
            "hls/1M/seq=5/v=7/seg=0",
            "32=keys/%01%02%03%04/seq=1/seq=2/seg=0",
            "32=trust/v=7/seg=0",
        ];
        all.extend(others.map(|tail| name(&format!("{root}/{tail}"))));
        all
    }

    fn certificate(root: &str) -> Name {
        name(&format!("{root}/KEY/1/site/v=1"))
    }

    /// Each signed name, at each depth: its own key may sign it, neither a neighbour's nor the anchor's.
    #[test]
    fn every_signed_name_of_streams_is_signed_by_its_own_key_alone() {
        let schema = schema("/site/tv");
        let is_allowed = |packet: &Name, key: &Name| schema.check(packet, key).unwrap().is_some();
        let anchor = certificate("/site/tv");
        for packet in signed("/site/tv") {
            assert!(is_allowed(&packet, &anchor), "{packet}");
            assert!(!is_allowed(&packet, &certificate("/site/tv/a")), "{packet}");
        }
        for depth in 1..=MAX_DEPTH {
            let path: String = (0..depth).map(|it| format!("/n{it}")).collect();
            let own = format!("/site/tv{path}");
            assert!(is_allowed(&certificate(&own), &anchor), "{own}");
            for packet in signed(&own) {
                assert!(is_allowed(&packet, &certificate(&own)), "{packet}");
                let neighbour = certificate(&format!("/site/tv{}/x", &path[..path.len() - 3]));
                assert!(!is_allowed(&packet, &neighbour), "{packet}");
                assert!(!is_allowed(&packet, &anchor), "{packet}");
            }
        }
        let deeper = format!("/site/tv{}", "/n".repeat(MAX_DEPTH + 1));
        assert!(!is_allowed(&certificate(&deeper), &anchor));
        assert_eq!(schema.anchors(), ["#anchor"]);
    }

    #[test]
    fn any_root_is_written_as_schemas_read_it() {
        for root in ["/", "/a%20b/..../32=x/v=7/t=300", "/a%3Db/8=.../%00"] {
            let parsed = name(root);
            let schema = Schema::compile(&streams(&parsed), &Limits::default()).unwrap();
            let own = parsed.builder().name(&certificate("/")).finish();
            let stream = parsed.builder().name(&name("/32=trust/v=1/seg=0")).finish();
            assert!(schema.check(&stream, &own).unwrap().is_some(), "{root}");
        }
    }

    /// The documentation shows the rules for streams under `/site`.
    #[test]
    fn the_documentation_has_the_template() {
        let page = include_str!("../../../../docs/trust.md");
        assert!(page.contains(&streams(&name("/site"))));
    }
}
