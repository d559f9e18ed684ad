//! Schemas of any octets: what is read says the same when written again, and checks end.

use bytes::Bytes;
use namecast_apps::trust::schema::{Limits, Schema};
use namecast_packet::Name;

/// Kinds of inputs, by their first octet: a text; a model; two lines with a name and a certificate's name, then a text.
pub(crate) const KINDS: u8 = 3;

/// Small limits, so that inputs of a few octets reach them.
const LIMITS: Limits = Limits {
    max_octets: 4_096,
    max_rules: 32,
    max_components: 16,
    max_options: 8,
    max_expansion: 2_048,
    max_nodes: 512,
    max_steps: 5_000,
};

/// Names that are checked by each schema.
const NAMES: [(&str, &str); 4] = [
    (
        "/calls/fox/ann/video/1M/key/seq=1/data/seg=0",
        "/calls/fox/ann/KEY/1/host/v=1",
    ),
    ("/a/b/c", "/a/KEY/b/c/d"),
    ("/a/a/a/a/a/a/a/a", "/a/a/a/a/a/a/a/a/a"),
    ("/", "/v=3"),
];

/// Reads `octets` by their kind. Returns the schema, if they hold one.
pub(crate) fn schema(octets: &[u8]) -> Option<Schema> {
    let (kind, rest) = octets.split_first()?;
    if kind % KINDS == 1 {
        let schema = Schema::decode(&Bytes::copy_from_slice(rest), &LIMITS).ok()?;
        check(&schema, NAMES[0]);
        return Some(schema);
    }
    let text = String::from_utf8_lossy(rest);
    let (packet, certificate, text) = match kind % KINDS {
        0 => ("/a", "/b", &*text),
        _ => {
            let (packet, text) = text.split_once('\n')?;
            let (certificate, text) = text.split_once('\n')?;
            (packet, certificate, text)
        }
    };
    let compiled = Schema::compile(text, &LIMITS);
    if let Err(error) = &compiled {
        let line = error.place.line as usize;
        assert!(line <= text.lines().count() + 1, "{error}");
    }
    let schema = compiled.ok()?;
    check(&schema, (packet, certificate));
    Some(schema)
}

/// Whoever reads what the schema says when written decides the same.
fn check(schema: &Schema, names: (&str, &str)) {
    let written = schema.encode();
    let again = Schema::decode(&written, &Limits::default()).expect("what is written is read");
    assert_eq!(again.encode(), written);
    assert_eq!(again.anchors(), schema.anchors());
    for (packet, certificate) in NAMES.into_iter().chain([names]) {
        let (Ok(packet), Ok(certificate)) = (packet.parse::<Name>(), certificate.parse::<Name>())
        else {
            continue;
        };
        let Ok(verdict) = schema.check(&packet, &certificate) else {
            continue;
        };
        assert_eq!(again.check(&packet, &certificate), Ok(verdict.clone()));
        let Some(permission) = verdict else {
            continue;
        };
        assert!(!permission.signer.is_empty(), "a signer matches a rule");
        let matches = schema.matches(&packet).expect("it takes fewer steps");
        assert!(matches.contains(&permission.packet));
    }
}
