use super::super::schema::{Limits, Schema};
use super::*;

const STREAM_FORMAT: &str = include_str!("../../../../docs/stream-format.md");

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn schema(template: Template, root: &str) -> Schema {
    Schema::compile(&template.rules(&name(root)), &Limits::default()).unwrap()
}

fn certificate(identity: &str) -> String {
    format!("{identity}/KEY/1/site/v=1")
}

fn is_allowed(schema: &Schema, packet: &str, key: &str) -> bool {
    let key = name(&certificate(key));
    schema.check(&name(packet), &key).unwrap().is_some()
}

/// Names of `documented` with a value for each placeholder: `{a,b}` stands for both.
fn expanded(documented: &str) -> Vec<String> {
    let Some((before, rest)) = documented.split_once('{') else {
        return vec![documented.to_owned()];
    };
    let (options, after) = rest.split_once('}').unwrap();
    let options = options.split(',').map(|it| format!("{before}{it}{after}"));
    options.flat_map(|it| expanded(&it)).collect()
}

/// Every signed name of a stream under `root`: those of the documentation's table but for certificates, and those that its text adds.
fn signed(root: &str) -> Vec<String> {
    let rows = STREAM_FORMAT.split("## Names").nth(1).unwrap();
    let rows = rows.split("\n\n`<root>`").next().unwrap();
    let names = rows.split('`').filter(|it| it.starts_with("/<root>"));
    let mut all = Vec::new();
    for documented in names.filter(|it| !it.contains("/KEY/")) {
        let mut text = documented.replace("<root>", root);
        for (placeholder, value) in [
            ("<stream>", "video"),
            ("<rung>", "1M"),
            ("<µs>", "7"),
            ("<n>", "8"),
            ("<k>", "3"),
            ("<start>", "%01%02%03%04"),
            ("<generation>", "1"),
            ("<step>", "2"),
        ] {
            text = text.replace(placeholder, value);
        }
        assert!(!text.contains('<'), "a placeholder without a value: {text}");
        all.extend(expanded(&text));
    }
    assert_eq!(
        all.len(),
        13,
        "rows of the table, both classes and both kinds"
    );
    let others = [
        "32=metadata/0123456789abcdef",
        "hls/index.m3u8/v=7/seg=0",
        "hls/1M/index.m3u8/v=7/seg=0",
        "hls/1M/init-1.mp4/v=7/seg=0",
        "hls/1M/seq=5/v=7/seg=0",
        "32=route",
    ];
    all.extend(others.map(|tail| format!("{root}/{tail}")));
    all
}

/// All names that `publishers` may publish a stream under, with whose key signs them.
fn assert_streams(schema: &Schema, publishers: &[(&str, &str)], others: &[&str]) {
    for (root, own) in publishers {
        for packet in signed(root) {
            assert!(is_allowed(schema, &packet, own), "{packet} by {own}");
            for other in others.iter().filter(|other| *other != own) {
                assert!(!is_allowed(schema, &packet, other), "{packet} by {other}");
            }
        }
    }
}

/// Each signed name, at each depth: its own key may sign it, neither a neighbour's nor the anchor's.
#[test]
fn every_signed_name_of_streams_is_signed_by_its_own_key_alone() {
    let schema = schema(Template::Streams, "/site/tv");
    assert_streams(&schema, &[("/site/tv", "/site/tv")], &["/site/tv/a"]);
    for depth in 1..=MAX_DEPTH {
        let path: String = (0..depth).map(|it| format!("/n{it}")).collect();
        let own = format!("/site/tv{path}");
        assert!(is_allowed(&schema, &certificate(&own), "/site/tv"));
        let neighbour = format!("/site/tv{}/x", &path[..path.len() - 3]);
        assert_streams(&schema, &[(&own, &own)], &[&neighbour, "/site/tv"]);
    }
    let deeper = format!("/site/tv{}", "/n".repeat(MAX_DEPTH + 1));
    assert!(!is_allowed(&schema, &certificate(&deeper), "/site/tv"));
}

/// Schema, roster and answers are the anchor's in every template, and so are certificates.
#[test]
fn the_anchor_alone_administers() {
    for (template, member) in [
        (Template::Streams, "/site/a"),
        (Template::Call, "/site/a"),
        (Template::Show, "/site/desk/a"),
        (Template::Tracks, "/site/a"),
    ] {
        let schema = schema(template, "/site");
        assert_eq!(schema.anchors(), ["#anchor"]);
        for tail in [
            "32=trust/v=1/seg=0",
            "32=trust/32=metadata/v=1/seg=0",
            "32=roster/v=1/seg=0",
            "32=roster/32=metadata/v=1/seg=0",
            "32=join/answer",
            "32=leave/answer",
        ] {
            let packet = format!("/site/{tail}");
            assert!(is_allowed(&schema, &packet, "/site"), "{packet}");
            assert!(!is_allowed(&schema, &packet, member), "{packet}");
        }
        assert!(is_allowed(&schema, &certificate(member), "/site"));
        assert!(!is_allowed(&schema, &certificate(member), member));
        assert!(!is_allowed(&schema, &certificate(member), "/other"));
    }
}

#[test]
fn members_of_a_call_sign_what_is_theirs_and_the_group() {
    let schema = schema(Template::Call, "/calls/fox");
    let (ann, bob, fox) = ("/calls/fox/ann", "/calls/fox/bob", "/calls/fox");
    assert_streams(&schema, &[(ann, ann), (bob, bob)], &[ann, bob, fox]);
    for own in [
        "/calls/fox/ann/notes.pdf/v=1/seg=0",
        "/calls/fox/ann/notes.pdf/32=metadata/v=1/seg=0",
        "/calls/fox/ann/notes.pdf/32=route",
        "/calls/fox/ann/calls/fox/t=1/seq=1",
        "/calls/fox/ann/calls/fox/t=1/seq=1/v=0/seg=0",
        "/calls/fox/ann/calls/fox/t=1/MAPPING/seq=1/seq=9",
    ] {
        assert!(is_allowed(&schema, own, ann), "{own}");
        assert!(!is_allowed(&schema, own, bob), "{own}");
    }
    for group in ["/calls/fox/v=3", "/calls/fox/v=3/32=route"] {
        assert!(is_allowed(&schema, group, ann) && is_allowed(&schema, group, bob));
        assert!(!is_allowed(&schema, group, fox), "{group}");
    }
    assert!(is_allowed(&schema, "/calls/fox/32=route", fox));
    assert!(!is_allowed(&schema, "/calls/fox/32=route", ann));
    assert!(!is_allowed(&schema, "/calls/fox/ann/32=route", bob));
    assert!(!is_allowed(&schema, "/calls/fox/ann/KEY/2/ann/v=1", ann));
}

#[test]
fn desks_sign_cues_and_operators_and_devices_their_acknowledgements() {
    let schema = schema(Template::Show, "/show");
    let (desk, other, device) = ("/show/desk/main", "/show/desk/b", "/show/device/lamp");
    let own = [
        ("/show", "/show"),
        (desk, desk),
        ("/show/cues/act1/main", desk),
        (device, device),
    ];
    assert_streams(&schema, &own, &[other, device, "/show"]);
    for depth in 1..=MAX_DEPTH {
        let path: String = (0..depth).map(|it| format!("/n{it}")).collect();
        let operator = format!("/show/ops{path}");
        assert_streams(&schema, &[(&operator, desk), (&operator, other)], &[]);
        assert!(!is_allowed(
            &schema,
            &format!("{operator}/catalogue/v=1/seg=0"),
            device
        ));
    }
    assert!(!is_allowed(
        &schema,
        "/show/cues/act1/b/catalogue/v=1/seg=0",
        desk
    ));
}

#[test]
fn trackers_sign_streams_and_objects_of_their_own() {
    let schema = schema(Template::Tracks, "/hall");
    let own = [("/hall", "/hall"), ("/hall/north", "/hall/north")];
    assert_streams(&schema, &own, &["/hall", "/hall/north", "/hall/south"]);
    assert!(is_allowed(
        &schema,
        "/hall/north/plan.svg/v=1/seg=0",
        "/hall/north"
    ));
    assert!(!is_allowed(
        &schema,
        "/hall/north/plan.svg/v=1/seg=0",
        "/hall/south"
    ));
}

#[test]
fn any_root_is_written_as_schemas_read_it() {
    for root in ["/", "/a%20b/..../32=x/v=7/t=300", "/a%3Db/8=.../%00"] {
        for template in Template::ALL {
            let schema = schema(template, root);
            let own = name(root).builder().name(&name(&certificate("/"))).finish();
            let roster = name("/32=roster/v=1/seg=0");
            let roster = name(root).builder().name(&roster).finish();
            assert!(schema.check(&roster, &own).unwrap().is_some(), "{root}");
        }
    }
}

/// The documentation shows the rules for calls under `/calls/fox`.
#[test]
fn the_documentation_has_a_template() {
    let page = include_str!("../../../../docs/trust.md");
    assert!(page.contains(&Template::Call.rules(&name("/calls/fox"))));
}
