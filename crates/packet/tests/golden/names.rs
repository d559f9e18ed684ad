//! Names: components, both URI forms, canonical order.

use namecast_packet::Name;
use namecast_packet::tlv::Writer;

use crate::support::{Vector, unhex, vectors};

/// python-ndn reads `...` as three periods, the specification as none.
const OTHER_DIALECT: &str = "py-name-three-dots";

#[test]
fn names_decode_print_and_encode() {
    let mut seen = 0;
    for vector in vectors("names") {
        if vector.text("kind") == "name" {
            check(&vector);
            seen += 1;
        }
    }
    assert_eq!(seen, 36);
}

fn check(vector: &Vector) {
    let (id, decoded) = (vector.id(), vector.get("decoded"));
    let name = Name::decode(&vector.wire()).unwrap();
    assert_eq!(name, vector.name("decoded"), "{id}");
    assert_eq!(name.len(), decoded.list("components").len(), "{id}");

    let (printed, canonical) = if decoded.get("uri").is_null() {
        ("pyndn_uri", "pyndn_canonical_uri")
    } else {
        ("uri_alt", "uri")
    };
    let same = |key| decoded.text(key).parse::<Name>().unwrap() == name;
    if id == OTHER_DIALECT {
        assert!(!same(printed) && !same(canonical));
        assert_eq!(name.to_string(), "/a/....../b");
    } else {
        assert_eq!(name.to_string(), decoded.text(printed), "{id}");
        assert!(same(printed) && same(canonical), "{id}");
    }

    let mut writer = Writer::default();
    name.encode(&mut writer);
    assert_eq!(writer.len(), name.encoded_size(), "{id}");
    assert_eq!(writer.finish(), vector.wire(), "{id}");
}

#[test]
fn names_come_in_canonical_order() {
    let vectors = vectors("names");
    let vector = vectors.iter().find(|v| v.text("kind") == "name-order");
    let wires = vector.unwrap().texts("wires");
    let names: Vec<_> = wires
        .iter()
        .map(|wire| Name::decode(&unhex(wire)).unwrap())
        .collect();
    assert_eq!(names.len(), 20);
    for (index, low) in names.iter().enumerate() {
        for high in &names[index + 1..] {
            assert!(low < high, "{low} {high}");
        }
    }
}
