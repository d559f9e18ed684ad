//! Trust schemas: what python-ndn says of them, the rules of calls, and schemas that are too much.

mod body;
#[path = "../../../../fuzz/damaged_seeds.rs"]
mod damaged_seeds;

use bytes::Bytes;
use namecast_apps::trust::schema::{
    Limits, ModelError, Place, Schema, Shape, TextError, TextProblem, TooManySteps,
};
use namecast_packet::tlv::{Reader, Writer};
use namecast_packet::{Component, Name};
use serde_json::Value;

/// Rules of a call: members by certificates of the host, what they publish under their own names, and what one may announce.
const CALLS: &str = include_str!("calls.trust");

fn compile(text: &str) -> Result<Schema, TextError> {
    Schema::compile(text, &Limits::default())
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn is_allowed(schema: &Schema, packet: &str, certificate: &str) -> bool {
    let verdict = schema.check(&name(packet), &name(certificate));
    verdict.expect("few steps").is_some()
}

fn unhex(text: &str) -> Bytes {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("digits");
    (0..text.len()).step_by(2).map(digits).collect()
}

/// The vector of the shared golden packets: its source compiles to its octets, which are read and written the same.
#[test]
fn the_golden_model_is_compiled_read_and_written_octet_for_octet() {
    let text = include_str!("../../../packet/tests/vectors/trust-schema.json");
    let file: Value = serde_json::from_str(text).unwrap();
    let [vector] = &file["vectors"].as_array().unwrap()[..] else {
        panic!("one vector");
    };
    let wire = unhex(vector["wire"].as_str().unwrap());
    let source = vector["decoded"]["source"].as_str().unwrap();
    let compiled = compile(source).unwrap();
    assert_eq!(compiled.encode(), wire);
    let read = Schema::decode(&wire, &Limits::default()).unwrap();
    assert_eq!(read, compiled);
    assert_eq!(read.encode(), wire);
    let nodes = vector["decoded"]["n_nodes"].as_u64().unwrap();
    assert_eq!(read.node_count() as u64, nodes);
    assert_eq!(read.anchors(), ["#root"]);
    let user = "/conf/ann/KEY/1/root/v=1";
    assert!(is_allowed(&read, user, "/conf/KEY/1/self/v=1"));
    assert!(is_allowed(&read, "/conf/ann/audio/7", user));
    assert!(!is_allowed(&read, "/conf/bob/audio/7", user));
    assert!(!is_allowed(&read, "/conf/ann/text/7", user));
}

/// Schemas, names and keys that `interop/python/schemas.py golden 1 120` made, with what python-ndn 0.5.2 says of them.
#[test]
fn python_ndn_compiles_the_same_octets_and_gives_the_same_verdicts() {
    let (mut refused, mut allowed, mut denied) = (0, 0, 0);
    for line in include_str!("python_ndn.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let source = line["source"].as_str().unwrap();
        let compiled = compile(source);
        let Some(model) = line["model"].as_str() else {
            assert!(compiled.is_err(), "python-ndn refuses {source}");
            refused += 1;
            continue;
        };
        let compiled = compiled.unwrap_or_else(|error| panic!("{error}: {source}"));
        assert_eq!(compiled.encode(), unhex(model), "{source}");
        let schema = Schema::decode(&unhex(model), &Limits::default()).unwrap();
        for check in line["checks"].as_array().unwrap() {
            let octets = [0, 1].map(|at| unhex(check[at].as_str().unwrap()));
            let [packet, key] = octets.map(|octets| Name::decode(&octets).unwrap());
            let verdict = schema.check(&packet, &key).unwrap().is_some();
            assert_eq!(Value::Bool(verdict), check[2], "{packet} {key}: {source}");
            allowed += u32::from(verdict);
            denied += u32::from(!verdict);
        }
    }
    assert!(
        refused > 10 && allowed > 200 && denied > 100,
        "{refused} {allowed} {denied}"
    );
}

/// Who may sign what in a call, as it is meant.
#[test]
fn a_call_lets_each_member_sign_under_its_own_name_alone() {
    let schema = compile(CALLS).unwrap();
    assert_eq!(schema.anchors(), ["#anchor"]);
    let anchor = "/calls/fox/KEY/1/self/v=1";
    let [ann, bob] = ["ann", "bob"].map(|id| format!("/calls/fox/{id}/KEY/1/fox/v=1"));
    for (packet, key, expected) in [
        (&*ann, anchor, true),
        (&ann, &*bob, false),
        (&ann, &ann, false),
        ("/calls/hen/ann/KEY/1/fox/v=1", anchor, false),
        (&ann, "/calls/hen/KEY/1/self/v=1", false),
        ("/calls/fox/32=roster/v=1/seg=0", anchor, true),
        ("/calls/fox/32=roster/v=1/seg=0", &ann, false),
        ("/calls/fox/ann/32=route", &ann, true),
        ("/calls/fox/bob/32=route", &ann, false),
        ("/calls/fox/v=3/32=route", &ann, true),
        ("/calls/fox/v=3/32=route", anchor, false),
        ("/calls/fox/anything", &bob, true),
        ("/calls/fox/ann/video/1M/key/seq=3/data/seg=0", &ann, true),
        ("/calls/fox/ann/video/1M/delta/seq=3/data/seg=0", &ann, true),
        (
            "/calls/fox/ann/video/1M/other/seq=3/data/seg=0",
            &ann,
            false,
        ),
        (
            "/calls/fox/ann/video/1M/key/seq=3/parity/seg=0",
            &ann,
            false,
        ),
        ("/calls/fox/ann/video/1M/key/seq=3/data/seg=0", &bob, false),
        (
            "/calls/fox/ann/video/1M/key/seq=3/data/seg=0",
            anchor,
            false,
        ),
        ("/calls/fox/ann/video/1M/key/seq=3/data", &ann, false),
    ] {
        assert_eq!(is_allowed(&schema, packet, key), expected, "{packet} {key}");
    }
    // Rules match names of certificates, not of keys.
    let key = "/calls/fox/ann/KEY/1";
    assert!(!is_allowed(&schema, "/calls/fox/ann/32=route", key));
}

#[test]
fn a_permission_says_by_which_rules_and_values() {
    let schema = compile(CALLS).unwrap();
    let packet = name("/calls/fox/ann/video/1M/key/seq=3/data/seg=0");
    let certificate = name("/calls/fox/ann/KEY/1/fox/v=1");
    let permission = schema.check(&packet, &certificate).unwrap().unwrap();
    assert_eq!(permission.packet.rules, ["#lead"]);
    assert_eq!(permission.signer, ["#member"]);
    let values: Vec<_> = permission
        .packet
        .values
        .iter()
        .map(|(pattern, value)| (*pattern, &value[2..]))
        .collect();
    let expected: [(&str, &[u8]); 4] = [
        ("id", b"ann"),
        ("stream", b"video"),
        ("rung", b"1M"),
        ("class", b"key"),
    ];
    assert_eq!(values, expected);
}

#[test]
fn mistakes_are_named_with_line_column_and_rule() {
    let place = |line, column| Place { line, column };
    for (text, expected, problem) in [
        (
            "#a: \"x\"/?",
            place(1, 9),
            "in rule #a: unexpected character '?'",
        ),
        ("\n  a: b", place(2, 3), "found 'a', expected a rule"),
        (
            "#a \"x\"",
            place(1, 4),
            "in rule #a: found \"x\", expected ':'",
        ),
        ("#a: \"x", place(1, 5), "no second one in this line"),
        ("#a: \"ä\"", place(1, 5), "\"ä\" is not a name component"),
        ("#a: \"99999=x\"", place(1, 5), "its type is unknown"),
        ("#a: b/#c", place(1, 7), "there is no rule #c"),
        ("#_a: b\n#b: #_a", place(2, 5), "#_a is temporary"),
        ("#a: b <= #c", place(1, 10), "there is no rule #c"),
        ("#a: #b\n#b: #a", place(1, 1), "#a, #b contain each other"),
        ("#a: x\n#b: #a/#b", place(2, 1), "#b contain each other"),
        (
            "#a: \"a\"\n#b: \"b\" <= #c\n#c: \"c\" <= #b",
            place(2, 1),
            "#b, #c sign each other",
        ),
        (
            "#a: b & {c: \"x\"}",
            place(1, 10),
            "no name contains the pattern c",
        ),
        ("#a: b & {b: _}", place(1, 13), "_ is temporary"),
        (
            "#a: b & {b: $regex(\"x\")}",
            place(1, 13),
            "there is no function $regex",
        ),
        ("#a: b & b", place(1, 9), "found 'b', expected '{'"),
        (
            "#a: b <=",
            place(1, 9),
            "found the end, expected a rule that signs",
        ),
    ] {
        let error = compile(text).expect_err(text);
        assert_eq!(error.place, expected, "{text}: {error}");
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }
}

/// `//` is a comment even between components, as python-ndn's lexer has it.
#[test]
fn comments_and_blanks_mean_nothing() {
    let plain = compile("#a: \"x\"/b & {b: \"y\"|$eq(\"z\",\"z\")} <= #k\n#k: \"k\"").unwrap();
    let blank = "// first\n #a :/ \"x\"//y\n /b\t&{ b : \"y\" | $eq ( \"z\" , \"z\" ) }<=#k // last\r\n#k:\"k\"";
    assert_eq!(compile(blank).unwrap(), plain);
}

fn too_many(text: &str, expected: &str) {
    let error = compile(text).expect_err("too many");
    assert!(
        matches!(error.problem, TextProblem::TooMany { .. }),
        "{error}"
    );
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn schemas_beyond_a_limit_are_refused_by_rule_and_place() {
    let rules: String = (0..10_000)
        .map(|it| format!("#r{it}: \"{it}\"\n"))
        .collect();
    too_many(
        &rules,
        "line 4097, column 1, in rule #r4096: 4097 rules: the limit is 4096",
    );
    let options = vec!["\"x\""; 100_000].join("|");
    too_many(
        &format!("#a: b & {{b: {options}}}"),
        "column 4109, in rule #a: 1025 options",
    );
    // 10⁶ alternatives are more text than there may be; where there may, they are refused at the 1 025th.
    let ways = format!("#a: b & {{b: {}}}", vec!["\"x\""; 1_000_000].join("|"));
    too_many(&ways, "octets: the limit is 1048576");
    let limits = Limits {
        max_octets: 1 << 24,
        ..Limits::default()
    };
    let error = Schema::compile(&ways, &limits).unwrap_err().to_string();
    assert!(error.contains("1025 options"), "{error}");
    let parts = vec!["\"x\""; 129].join("/");
    too_many(
        &format!("#a: {parts}"),
        "in rule #a: 129 components: the limit is 128",
    );
    too_many(&" ".repeat((1 << 20) + 1), "1048577 octets");
    // Each rule has the one before twice: 2^20 components.
    let doubled: String = (1..21)
        .map(|it| format!("#r{it}: #r{}/#r{}\n", it - 1, it - 1))
        .collect();
    too_many(
        &format!("#r0: x\n{doubled}"),
        "line 9, column 1, in rule #r8: ",
    );
    // Each rule has four readings, and the one before twice: 4^(2^n) chains.
    let squared = "#a: \"1\"\n#a: \"2\"\n#a: \"3\"\n#a: \"4\"\n#b: #a/#a/#a/#a\n#c: #b/#b/#b/#b\n";
    too_many(squared, "in rule #c: ");
}

/// With larger limits, 10^4 rules compile, and 10^4 of them are checked by a few steps.
#[test]
fn ten_thousand_rules_compile_where_they_may() {
    let limits = Limits {
        max_rules: 20_000,
        max_steps: 100,
        ..Limits::default()
    };
    let rules: String = (0..10_000)
        .map(|it| format!("#r{it}: \"{it}\"/x <= #k\n"))
        .collect();
    let schema = Schema::compile(&format!("{rules}#k: \"k\"/x"), &limits).unwrap();
    assert_eq!(schema.node_count(), 20_003);
    assert!(is_allowed(&schema, "/9999/a", "/k/a"));
    assert!(!is_allowed(&schema, "/9999/a", "/k/b"));
    let again = Schema::decode(&schema.encode(), &limits).unwrap();
    assert!(is_allowed(&again, "/9999/a", "/k/a"));
}

/// Two patterns at each of 8 places: a name of equal components matches 2^8 paths, none of which a key may sign.
#[test]
fn a_check_ends_after_as_many_steps_as_configured() {
    let mut text = "#k: \"k\"\n#r0: _ & {_: \"x\"}\n#r0: _ & {_: \"x\"|\"x\"}\n".to_owned();
    for it in 1..4 {
        text += &format!("#r{it}: #r{}/#r{}\n", it - 1, it - 1);
    }
    text += "#p: #r3/\"y\" <= #k\n";
    let limits = Limits {
        max_expansion: 1 << 24,
        max_nodes: 1 << 20,
        max_steps: 1_000,
        ..Limits::default()
    };
    let schema = Schema::compile(&text, &limits).unwrap();
    let long = name(&"/x".repeat(9));
    assert_eq!(schema.check(&long, &name("/k")), Err(TooManySteps(1_000)));
    let whole = name("/x/x/x/x/x/x/x/x/y");
    assert_eq!(
        schema.check(&whole, &name("/k")).map(|it| it.is_some()),
        Ok(true)
    );
}

#[test]
fn names_of_128_components_match_and_longer_ones_do_not() {
    let parts: Vec<_> = (0..128).map(|it| format!("p{it}")).collect();
    let schema = compile(&format!("#a: {} <= #k\n#k: p127", parts.join("/"))).unwrap();
    let components = |count: usize| (0..count).map(|it| format!("/{it}")).collect::<String>();
    assert!(is_allowed(&schema, &components(128), "/127"));
    assert!(!is_allowed(&schema, &components(128), "/126"));
    assert!(!is_allowed(&schema, &components(129), "/127"));
    assert!(!is_allowed(&schema, "/", "/127"));
}

/// The model of `#a: "x" <= #k` and `#k: "k"`, with `change` made to the octets of a node.
fn changed(change: impl Fn(usize, &mut Vec<u8>)) -> Result<Schema, ModelError> {
    let wire = compile("#a: \"x\"/\"y\" <= #k\n#k: \"k\"")
        .expect("rules")
        .encode();
    let mut reader = Reader::new(&wire);
    let mut writer = Writer::default();
    let mut node = 0;
    while let Some(element) = reader.element("model").expect("a model") {
        let mut value = wire[element.value.clone()].to_vec();
        if element.element_type == 0x63 {
            change(node, &mut value);
            node += 1;
        }
        writer.element(element.element_type, &value);
    }
    Schema::decode(&writer.finish(), &Limits::default())
}

/// Nodes: 0 the start, 1 `k`, 2 `x`, 3 `x/y`. Each has its number first, in three octets.
#[test]
fn models_that_are_no_trees_are_refused_by_node() {
    let shape = |change: &dyn Fn(usize, &mut Vec<u8>)| match changed(change) {
        Err(ModelError::Node { node, shape, .. }) => (node, shape),
        other => panic!("{other:?}"),
    };
    assert!(changed(|_, _| {}).is_ok());
    let number = |node, octets: &mut Vec<u8>| octets[2] += u8::from(node == 1);
    assert_eq!(shape(&number), (1, Shape::Number));
    let start = |node, octets: &mut Vec<u8>| {
        if node == 0 {
            octets.splice(3..3, [0x57, 1, 1]);
        }
    };
    assert_eq!(shape(&start), (0, Shape::StartHasParent));
    let parent = |node, octets: &mut Vec<u8>| octets[5] += u8::from(node == 1);
    assert_eq!(shape(&parent), (0, Shape::Parent(1)));
    let missing = |node, octets: &mut Vec<u8>| {
        if node == 3 {
            octets.extend([0x55, 1, 9]);
        }
    };
    assert_eq!(shape(&missing), (3, Shape::Missing(9)));
    let circle = |node, octets: &mut Vec<u8>| {
        if node == 1 {
            octets.extend([0x55, 1, 3]);
        }
    };
    assert_eq!(shape(&circle), (1, Shape::SigningCircle));
}

#[test]
fn models_of_other_versions_and_with_other_functions_are_refused() {
    let wire = compile("#a: b & {b: $eq(\"x\")}").unwrap().encode();
    let refused = |octets: Vec<u8>| Schema::decode(&octets.into(), &Limits::default()).unwrap_err();
    let mut version = wire.to_vec();
    version[4..6].copy_from_slice(&[1, 0]);
    assert_eq!(refused(version), ModelError::Version(0x0001_0100));
    let mut other = wire.to_vec();
    let place = other.windows(3).position(|octets| octets == b"$eq");
    other[place.expect("the function's name") + 2] = b'z';
    let error = refused(other).to_string();
    assert!(error.contains("function $ez at octet"), "{error}");
    for cut in 0..wire.len() {
        let start = wire.slice(..cut);
        match Schema::decode(&start, &Limits::default()) {
            // Whole without its last fields, the names of patterns.
            Ok(schema) => assert_eq!(schema.encode(), start),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn damaged_schemas_harm_nothing() {
    let schema = |octets: &[u8]| {
        body::schema(octets);
    };
    damaged_seeds::harm_nothing("schema", body::KINDS, 50, damaged_seeds::any, schema);
}

/// `NAMECAST_WRITE_SEEDS=1` writes them anew.
#[test]
fn seeds_are_schemas() {
    let model = compile(CALLS).unwrap().encode();
    let names = "/calls/fox/ann/32=route\n/calls/fox/ann/KEY/1/fox/v=1\n";
    let functions = "#a: x/_/\"32=k\" & {x: $eq(\"b\")|\"c\", _: $eq_type(x, \"v=1\")} <= #k\n#k: \"%00\"/x\n#_t: #k/#k <= #k\n";
    for (name, seed) in [
        ("text-calls", [b"\x00", CALLS.as_bytes()].concat()),
        ("text-functions", [b"\x00", functions.as_bytes()].concat()),
        ("model-calls", [b"\x01", &model[..]].concat()),
        (
            "names-calls",
            [b"\x02", names.as_bytes(), CALLS.as_bytes()].concat(),
        ),
    ] {
        damaged_seeds::is_kept("schema", name, &seed);
        assert!(body::schema(&seed).is_some(), "{name}");
    }
}

/// Names of one pattern differ where no rule looks: the numbers of samples and segments. Those of other members are of another pattern.
#[test]
fn a_permission_covers_names_that_rules_do_not_tell_apart() {
    let schema = compile(CALLS).unwrap();
    let ann = name("/calls/fox/ann/KEY/1/host/v=1");
    let lead = name("/calls/fox/ann/video/1M/key/seq=3/data/seg=0");
    let names = schema.check(&lead, &ann).unwrap().unwrap().names;
    let covers = |uri: &str| names.covers(&name(uri));
    assert!(covers("/calls/fox/ann/video/1M/key/seq=3/data/seg=0"));
    assert!(covers("/calls/fox/ann/video/1M/key/seq=9/data/seg=1"));
    for other in [
        "/calls/fox/bob/video/1M/key/seq=3/data/seg=0",
        "/calls/fox/ann/video/3M/key/seq=3/data/seg=0",
        "/calls/fox/ann/video/1M/delta/seq=3/data/seg=0",
        "/calls/fox/ann/video/1M/key/seq=3/data",
        "/calls/fox/ann/video/1M/key/seq=3/data/seg=0/more",
    ] {
        assert!(!covers(other), "{other}");
    }
}

/// For all golden names: a permission for one name covers others only if the same key may sign them, too.
#[test]
fn a_permission_covers_what_its_key_may_sign() {
    let mut compared = 0;
    for line in include_str!("python_ndn.jsonl").lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(model) = line["model"].as_str() else {
            continue;
        };
        let schema = Schema::decode(&unhex(model), &Limits::default()).unwrap();
        let checks = line["checks"].as_array().unwrap();
        let names = |at: usize| {
            let octets = checks
                .iter()
                .map(move |check| unhex(check[at].as_str().unwrap()));
            octets.map(|octets| Name::decode(&octets).unwrap())
        };
        for (one, key) in names(0).flat_map(|one| names(1).map(move |key| (one.clone(), key))) {
            let Some(permission) = schema.check(&one, &key).unwrap() else {
                continue;
            };
            // A digest at the end is left out, so the pattern is of the name without it.
            let is_digest = one
                .last()
                .is_some_and(|it| it.kind == Component::IMPLICIT_DIGEST);
            assert_ne!(permission.names.covers(&one), is_digest, "{one}");
            for other in names(0).filter(|other| permission.names.covers(other)) {
                let verdict = schema.check(&other, &key).unwrap();
                assert!(verdict.is_some(), "{one} {other} {key}: {}", line["source"]);
                compared += u32::from(one != other);
            }
        }
    }
    assert!(compared > 100, "{compared}");
}
